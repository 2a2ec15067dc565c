"""Signatures with the keys of minions and masters; by the package `cryptography`, where it is installed."""

import os


def _parts():
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
    except ImportError:
        from salt.exceptions import SaltException

        raise SaltException("salt.crypt needs the Python package `cryptography`") from None
    return hashes, serialization, padding, rsa


def _hash(hashes, algorithm):
    return hashes.SHA224() if algorithm and "SHA224" in algorithm else hashes.SHA1()


def sign_message(privkey_path, message, passphrase=None, algorithm=None):
    """The signature of a message by the private key in a file."""
    hashes, serialization, padding, _ = _parts()
    with open(privkey_path, "rb") as handle:
        password = passphrase.encode() if isinstance(passphrase, str) else passphrase
        key = serialization.load_pem_private_key(handle.read(), password=password or None)
    return key.sign(_bytes(message), padding.PKCS1v15(), _hash(hashes, algorithm))


def verify_signature(pubkey_path, message, signature, algorithm=None):
    """Tells whether a signature is that of the key in a file."""
    hashes, serialization, padding, _ = _parts()
    from cryptography.exceptions import InvalidSignature

    with open(pubkey_path, "rb") as handle:
        key = serialization.load_pem_public_key(handle.read())
    try:
        key.verify(signature, _bytes(message), padding.PKCS1v15(), _hash(hashes, algorithm))
    except InvalidSignature:
        return False
    return True


def gen_keys(keydir, keyname, keysize, user=None, passphrase=None):
    """Writes a pair of RSA keys; returns the path of the private one."""
    _, serialization, _, rsa = _parts()
    key = rsa.generate_private_key(public_exponent=65537, key_size=max(int(keysize), 2048))
    seal = (
        serialization.BestAvailableEncryption(passphrase.encode())
        if passphrase
        else serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, seal)
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    base = os.path.join(keydir, keyname)
    for path, data, mode in ((base + ".pem", private, 0o400), (base + ".pub", public, 0o644)):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(fd, "wb") as handle:
            handle.write(data)
        os.chmod(path, mode)
    return base + ".pem"


def _bytes(message):
    return message.encode() if isinstance(message, str) else message
