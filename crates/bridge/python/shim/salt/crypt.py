"""Keys of minions and masters, and what they seal; by the package `cryptography`, where it is installed."""

import base64
import hashlib
import hmac
import os

from salt.exceptions import AuthenticationError, SaltClientError, SaltException, UnsupportedAlgorithm

PKCS1v15_SHA1 = "PKCS1v15-SHA1"
PKCS1v15_SHA224 = "PKCS1v15-SHA224"
OAEP_SHA1 = "OAEP-SHA1"
OAEP_SHA224 = "OAEP-SHA224"
VALID_SIGNING_ALGORITHMS = (PKCS1v15_SHA1, PKCS1v15_SHA224)
VALID_ENCRYPTION_ALGORITHMS = (OAEP_SHA1, OAEP_SHA224)


def _parts():
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
    except ImportError:
        raise SaltException("salt.crypt needs the Python package `cryptography`") from None
    return hashes, serialization, padding, rsa


def _hash(algorithm, valid):
    if algorithm not in valid:
        raise UnsupportedAlgorithm("Unsupported algorithm {}".format(algorithm))
    hashes = _parts()[0]
    return hashes.SHA224() if algorithm.endswith("SHA224") else hashes.SHA1()


def _oaep(algorithm):
    made = _hash(algorithm, VALID_ENCRYPTION_ALGORITHMS)
    padding = _parts()[2]
    return padding.OAEP(mgf=padding.MGF1(algorithm=made), algorithm=made, label=None)


class _Key:
    @classmethod
    def from_file(cls, path, *args, **kwargs):
        with open(path, "rb") as handle:
            return cls(handle.read(), *args, **kwargs)

    @classmethod
    def from_str(cls, key_string, *args, **kwargs):
        return cls(_bytes(key_string), *args, **kwargs)


BaseKey = _Key


class PrivateKey(_Key):
    def __init__(self, key_bytes, passphrase=None):
        password = _bytes(passphrase) if passphrase else None
        self.key = _parts()[1].load_pem_private_key(key_bytes, password=password)

    def sign(self, data, algorithm=PKCS1v15_SHA1):
        made = _hash(algorithm, VALID_SIGNING_ALGORITHMS)
        return self.key.sign(_bytes(data), _parts()[2].PKCS1v15(), made)

    def decrypt(self, data, algorithm=OAEP_SHA1):
        return self.key.decrypt(data, _oaep(algorithm))

    def public_key(self):
        serialization = _parts()[1]
        pem = self.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return PublicKey(pem)


class PublicKey(_Key):
    def __init__(self, key_bytes):
        self.key = _parts()[1].load_pem_public_key(key_bytes)

    def encrypt(self, data, algorithm=OAEP_SHA1):
        return self.key.encrypt(_bytes(data), _oaep(algorithm))

    def verify(self, data, signature, algorithm=PKCS1v15_SHA1):
        from cryptography.exceptions import InvalidSignature

        made = _hash(algorithm, VALID_SIGNING_ALGORITHMS)
        try:
            self.key.verify(signature, _bytes(data), _parts()[2].PKCS1v15(), made)
        except InvalidSignature:
            return False
        return True


PrivateKeyString, PublicKeyString = PrivateKey, PublicKey


def get_rsa_key(path, passphrase=None):
    return PrivateKey.from_file(path, passphrase).key


def get_rsa_pub_key(path):
    return PublicKey.from_file(path).key


def sign_message(privkey_path, message, passphrase=None, algorithm=PKCS1v15_SHA1):
    """The signature of a message by the private key in a file."""
    return PrivateKey.from_file(privkey_path, passphrase).sign(message, algorithm or PKCS1v15_SHA1)


def verify_signature(pubkey_path, message, signature, algorithm=PKCS1v15_SHA1):
    """Tells whether a signature is that of the key in a file."""
    return PublicKey.from_file(pubkey_path).verify(message, signature, algorithm or PKCS1v15_SHA1)


def gen_keys(keysize, passphrase=None, *older, **kwargs):
    """A new pair of RSA keys as two texts. Releases before 3008 wrote them into a folder: see `write_keys`."""
    if isinstance(keysize, str) and not keysize.isdigit():
        return write_keys(keysize, passphrase, *older, **kwargs)
    _, serialization, _, rsa = _parts()
    key = rsa.generate_private_key(public_exponent=65537, key_size=max(int(keysize), 2048))
    seal = (
        serialization.BestAvailableEncryption(_bytes(passphrase)) if passphrase else serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, seal)
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    return clean_key(private.decode()), clean_key(public.decode())


def write_keys(keydir, keyname, keysize, user=None, passphrase=None):
    """Writes a pair of RSA keys into a folder; returns the path of the private one."""
    texts = gen_keys(int(keysize), passphrase)
    base = os.path.join(keydir, keyname)
    for path, text, mode in zip((base + ".pem", base + ".pub"), texts, (0o400, 0o644)):
        # The private one can be read by nobody else, not even for a moment.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(fd, "w") as handle:
            handle.write(text)
        os.chmod(path, mode)
        if user:
            import pwd

            entry = pwd.getpwnam(user)
            os.chown(path, entry.pw_uid, entry.pw_gid)
    return base + ".pem"


def clean_key(key):
    """A key with the line ends of Unix."""
    return "\n".join(key.strip().splitlines())


class Crypticle:
    """Seals data with AES and signs it with HMAC, as masters and minions do between each other."""

    PICKLE_PAD = b"pickle::"
    AES_BLOCK_SIZE = 16
    SIG_SIZE = 32

    def __init__(self, opts, key_string, key_size=192, serial=0):
        self.key_string, self.key_size, self.serial = key_string, key_size, serial
        self.keys = self.extract_keys(key_string, key_size)

    @classmethod
    def generate_key_string(cls, key_size=192, **kwargs):
        return base64.b64encode(os.urandom(key_size // 8 + cls.SIG_SIZE)).decode("ascii")

    @classmethod
    def extract_keys(cls, key_string, key_size):
        key = base64.b64decode(key_string)
        assert len(key) == key_size / 8 + cls.SIG_SIZE, "invalid key"
        return key[: -cls.SIG_SIZE], key[-cls.SIG_SIZE :]

    def _cipher(self, start):
        _parts()
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        return Cipher(algorithms.AES(self.keys[0]), modes.CBC(start))

    def encrypt(self, data):
        pad = self.AES_BLOCK_SIZE - len(data) % self.AES_BLOCK_SIZE
        start = os.urandom(self.AES_BLOCK_SIZE)
        work = self._cipher(start).encryptor()
        sealed = start + work.update(_bytes(data) + bytes([pad]) * pad) + work.finalize()
        return sealed + hmac.new(self.keys[1], sealed, hashlib.sha256).digest()

    def decrypt(self, data):
        data = _bytes(data)
        sealed, signature = data[: -self.SIG_SIZE], data[-self.SIG_SIZE :]
        if not hmac.compare_digest(hmac.new(self.keys[1], sealed, hashlib.sha256).digest(), signature):
            raise AuthenticationError("message authentication failed")
        work = self._cipher(sealed[: self.AES_BLOCK_SIZE]).decryptor()
        plain = work.update(sealed[self.AES_BLOCK_SIZE :]) + work.finalize()
        return plain[: -plain[-1]]

    def dumps(self, obj, nonce=None):
        import salt.payload

        return self.encrypt(self.PICKLE_PAD + (nonce or "").encode() + salt.payload.dumps(obj))

    def loads(self, data, raw=False, nonce=None):
        import salt.payload

        plain = self.decrypt(data)
        if not plain.startswith(self.PICKLE_PAD):
            return {}
        plain = plain[len(self.PICKLE_PAD) :]
        if nonce:
            given, plain = plain[:32].decode(), plain[32:]
            if given != nonce:
                raise SaltClientError("Nonce verification error {} {}".format(given, nonce))
        return salt.payload.loads(plain)


def _bytes(message):
    return message.encode() if isinstance(message, str) else bytes(message)
