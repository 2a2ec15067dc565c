#!/usr/bin/env python3
"""
Lets genuine Salt judge what `cargo run -p halite-crypt --example interop` printed (on standard input).

Says what failed and exits 1, or prints the number of checks that passed.
"""
import base64
import hashlib
import json
import sys
import tempfile

import salt.crypt
import salt.utils.crypt
from salt.crypt import Crypticle, PrivateKey, PublicKey

checks = 0


def check(what, found, expected=True):
    global checks
    checks += 1
    if found != expected:
        sys.exit(f"{what}: {found!r} instead of {expected!r}")


def main():
    for case in json.load(sys.stdin):
        raw = bytes.fromhex
        private, public = PrivateKey.from_str(case["pem"]), PublicKey.from_str(case["pub"])
        check("bits", private.key.key_size, case["bits"])
        check("pair", private.public_key() == public.key)
        check("locked", PrivateKey.from_str(case["locked"], "sesame").public_key() == public.key)
        with tempfile.NamedTemporaryFile("w") as fh:
            fh.write(case["pub"])
            fh.flush()
            check("finger", salt.utils.crypt.pem_finger(fh.name), case["finger"])
            clean = salt.crypt.clean_key(case["pub"])
            sig = base64.b64decode(case["pub_sig"])
            check("pub_sig", salt.crypt.verify_signature(fh.name, clean, sig, case["sig_algo"]))
        check("signature", public.verify(b"signed data", raw(case["signature"]), case["sig_algo"]))
        check("wrapped", private.decrypt(raw(case["wrapped"]), case["enc_algo"]), case["session"].encode())
        digest = hashlib.sha256(case["session"].encode()).hexdigest().encode()
        check("proof", public.decrypt(raw(case["proof"])), digest)
        check("tok", public.decrypt(raw(case["tok"])), b"salt")
        crypticle = Crypticle({}, case["session"])
        check("sealed", crypticle.loads(raw(case["sealed"])), "hello")
        check("nonce", crypticle.loads(raw(case["sealed_with_nonce"]), nonce=case["nonce"]), "hello")
    print(checks, "checks passed")


main()
