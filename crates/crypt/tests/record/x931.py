#!/usr/bin/env python3
"""
Computes X9.31 vectors with plain integers, as ../data/x931.json.

    python3 x931.py > ../data/x931.json

Needs only `cryptography`, and that only for making keys. The modulus lengths include some that are no multiple of 8 or 128.
"""
import json
import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


def sign(n, d, size, message):
    fill = size - len(message) - 2
    head = bytes([0x6A]) if fill == 0 else bytes([0x6B]) + bytes([0xBB]) * (fill - 1) + bytes([0xBA])
    block = int.from_bytes(head + message + bytes([0xCC]), "big")
    if block >= n:
        return None
    s = pow(block, d, n)
    return min(s, n - s).to_bytes(size, "big").hex()


def main():
    keys = []
    for bits in (1024, 1032, 1536, 2041, 2047, 2048):
        key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
        numbers = key.private_numbers()
        n, size = numbers.public_numbers.n, (bits + 7) // 8
        messages = [b"salt", b"a", bytes(64), b"\xba\xbb\xcc", b"\xbb" * 20, b"k" * (size - 4), b"k" * (size - 2)]
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        keys.append(
            {
                "bits": bits,
                "pem": pem.decode(),
                "vectors": [{"message": m.hex(), "sig": sign(n, numbers.d, size, m)} for m in messages],
            }
        )
    json.dump({"keys": keys}, sys.stdout, indent=1)
    print()


main()
