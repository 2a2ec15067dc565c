#!/usr/bin/env python3
"""
Records what genuine Salt 3008 makes of keys and messages, as ../data/genuine.json.

    <python of genuine Salt> genuine.py > ../data/genuine.json

Uses Salt only through its own programming interface; the keys are made for this file and used nowhere else.
"""
import binascii
import json
import os
import sys
import tempfile

import salt.config
import salt.crypt
import salt.key
import salt.utils.crypt
import salt.version
from cryptography.hazmat.primitives import serialization

ENC = ["OAEP-SHA1", "OAEP-SHA224"]
SIG = ["PKCS1v15-SHA1", "PKCS1v15-SHA224"]
HASHES = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]
MESSAGES = [b"", b"x", b"salt", bytes(range(256)) * 5]
PASS = "päss wörd"


def hexed(data):
    return binascii.hexlify(data).decode()


def pkcs8(private, password=None):
    how = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    pem = private.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
    return pem.decode()


def key_case(bits, tmp):
    pem, pub = salt.crypt.gen_keys(bits)
    private = salt.crypt.PrivateKey.from_str(pem)
    public = salt.crypt.PublicKey.from_str(pub)
    locked, _ = salt.crypt.gen_keys(bits, PASS)
    path = os.path.join(tmp, "k.pub")
    with open(path, "w") as fh:
        fh.write(pub)
    x931_messages = [b"x", b"salt", b"0123456789abcdef" * 4, b"y" * (bits // 8 - 4), b"z" * (bits // 8 - 2)]
    return {
        "bits": bits,
        "pem": pem,
        "pkcs8": pkcs8(private),
        "pkcs8_locked": pkcs8(private, PASS),
        "other_locked": locked,
        "other_pub": salt.crypt.clean_key(
            salt.crypt.PrivateKey.from_str(locked, PASS)
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode()
        ),
        "pub": pub,
        "clean": salt.crypt.clean_key(pub),
        "fingerprints": {h: salt.utils.crypt.pem_finger(path, sum_type=h) for h in HASHES},
        "text_fingerprints": {h: salt.utils.crypt.pem_finger(key=pub, sum_type=h) for h in HASHES},
        "signatures": [
            {"algo": a, "data": hexed(m), "sig": hexed(private.sign(m, a))} for a in SIG for m in MESSAGES
        ],
        "ciphertexts": [
            {"algo": a, "clear": hexed(m), "sealed": hexed(public.encrypt(m, a))}
            for a in ENC
            for m in [b"", b"T" * 76, b"m" * 66]
        ],
        "x931": [
            {"message": hexed(m), "sig": hexed(private.encrypt(m))} for m in x931_messages
        ],
    }


def crypticle_cases():
    key = salt.crypt.Crypticle.generate_key_string()
    c = salt.crypt.Crypticle({}, key)
    nonce = "0123456789abcdef0123456789abcdef"
    sizes = [0, 1, 15, 16, 17, 1000]
    return {
        "key": key,
        "nonce": nonce,
        "plain": [{"clear": hexed(b"q" * n), "sealed": hexed(c.encrypt(b"q" * n))} for n in sizes],
        # the payload is msgpack of the text "hello"
        "sealed": hexed(c.dumps("hello")),
        "sealed_with_nonce": hexed(c.dumps("hello", nonce=nonce)),
        "payload": hexed(salt.payload.dumps("hello")),
    }


def master_case(tmp):
    """The files of a fresh 3008 master with a signing pair, and what salt-key says about them."""
    conf = os.path.join(tmp, "master")
    with open(conf, "w") as fh:
        json.dump({"root_dir": tmp, "id": "mst_master", "master_sign_pubkey": True}, fh)
    opts = salt.config.master_config(conf)
    os.makedirs(opts["pki_dir"])
    keys = salt.crypt.MasterKeys(opts)
    files = {}
    for name in sorted(os.listdir(opts["pki_dir"])):
        path = os.path.join(opts["pki_dir"], name)
        if os.path.islink(path):
            files[name] = {"link": os.path.basename(os.readlink(path))}
        else:
            with open(path) as fh:
                files[name] = {"mode": oct(os.stat(path).st_mode & 0o7777), "text": fh.read()}
    pub = keys.get_pub_str()
    sig = {a: binascii.b2a_base64(keys.sign_key.sign(pub, a)).decode() for a in SIG}
    with salt.key.Key(opts) as key:
        finger = key.finger("mst.pub")["local"]["mst.pub"]
    return {"files": files, "pub_key": pub, "pub_sig": sig, "salt_key_finger": finger}


def main():
    with tempfile.TemporaryDirectory() as tmp:
        out = {
            "salt": salt.version.__version__,
            "passphrase": PASS,
            "keys": [key_case(2048, tmp), key_case(3072, tmp)],
            "crypticle": crypticle_cases(),
            "master": master_case(tmp),
            "clean_key": [
                {"text": t, "clean": salt.crypt.clean_key(t)}
                for t in ["a\nb\n", "\r\n a\r\nb\rc \r\n", "", " ", "a\n\n\nb", "a\x0bb\x0cc\x1cd\x85e\u2028f", "\x1fa\x1f"]
            ],
        }
    json.dump(out, sys.stdout, indent=1)
    print()


main()
