"""Passwords."""

import secrets
import string

from salt import _host
from salt.exceptions import SaltInvocationError

METHODS = ("sha512", "sha256", "blowfish", "md5", "crypt")


def secure_password(
    length=20, use_random=True, chars=None, lowercase=True, uppercase=True, digits=True, punctuation=True,
    whitespace=False, printable=False,
):
    """A password by chance, of the kinds of characters asked for."""
    if chars is None:
        kinds = (
            (lowercase, string.ascii_lowercase), (uppercase, string.ascii_uppercase), (digits, string.digits),
            (punctuation, string.punctuation), (whitespace, string.whitespace), (printable, string.printable),
        )
        chars = "".join(kind for is_wanted, kind in kinds if is_wanted)
    if not chars:
        raise SaltInvocationError("The password has no characters to be made of")
    return "".join(secrets.choice(chars) for _ in range(int(length)))


def gen_hash(crypt_salt=None, password=None, algorithm=None):
    """The hash of a password as /etc/shadow has it."""
    if algorithm is None:
        algorithm = "sha512"
    if algorithm not in METHODS:
        raise SaltInvocationError("Algorithm '{}' is not natively supported by this platform.".format(algorithm))
    if password is None:
        password = secure_password()
    if _host.functions() is not None:
        return _host.call("shadow.gen_password", password, crypt_salt=crypt_salt, algorithm=algorithm)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Python has it up to 3.12.
        import crypt
    method = getattr(crypt, "METHOD_" + algorithm.upper())
    if crypt_salt is None:
        return crypt.crypt(password, crypt.mksalt(method))
    if method.ident:
        crypt_salt = "${}${}".format(method.ident.strip("$"), crypt_salt)
    return crypt.crypt(password, crypt_salt)
