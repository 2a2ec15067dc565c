"""Hashes."""

import base64
import hashlib
import hmac
import random

from salt.utils.stringutils import to_bytes, to_str


def base64_b64encode(text):
    return to_str(base64.b64encode(to_bytes(text)))


def base64_b64decode(text):
    data = base64.b64decode(to_bytes(text))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def base64_encodestring(text):
    """As mails have it: in lines."""
    return to_str(base64.encodebytes(to_bytes(text)))


base64_decodestring = base64_b64decode


def md5_digest(text):
    return hashlib.md5(to_bytes(text)).hexdigest()


def sha1_digest(text):
    return hashlib.sha1(to_bytes(text)).hexdigest()


def sha256_digest(text):
    return hashlib.sha256(to_bytes(text)).hexdigest()


def sha512_digest(text):
    return hashlib.sha512(to_bytes(text)).hexdigest()


def hmac_signature(text, secret, challenge):
    made = hmac.new(to_bytes(secret), to_bytes(text), hashlib.sha256).digest()
    return base64.b64encode(made) == to_bytes(challenge)


def hmac_compute(text, secret):
    return hmac.new(to_bytes(secret), to_bytes(text), hashlib.sha256).hexdigest()


def get_hash(path, form="sha256", chunk_size=65536):
    if not hasattr(hashlib, form):
        raise ValueError("Invalid hash type: {}".format(form))
    made = hashlib.new(form)
    with open(path, "rb") as handle:
        for chunk in iter(lambda: handle.read(chunk_size), b""):
            made.update(chunk)
    return made.hexdigest()


def random_hash(size=9999999999, hash_type=None):
    return hashlib.new(hash_type or "md5", to_bytes(str(random.SystemRandom().randint(0, size)))).hexdigest()
