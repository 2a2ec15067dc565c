"""Versions."""

import re
import warnings


class LooseVersion:
    def __init__(self, text=""):
        self.vstring = str(text)
        parts = re.findall(r"\d+|[a-z]+", self.vstring.lower())
        self.version = [int(part) if part.isdigit() else part for part in parts]

    def _key(self):
        return [(0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.version]

    def __str__(self):
        return self.vstring

    def __repr__(self):
        return "LooseVersion('{}')".format(self.vstring)

    def _of(self, other):
        return other if isinstance(other, LooseVersion) else LooseVersion(other)

    def __eq__(self, other):
        return self._key() == self._of(other)._key()

    def __lt__(self, other):
        return self._key() < self._of(other)._key()

    def __le__(self, other):
        return self._key() <= self._of(other)._key()

    def __gt__(self, other):
        return self._key() > self._of(other)._key()

    def __ge__(self, other):
        return self._key() >= self._of(other)._key()

    __hash__ = None


StrictVersion = Version = LooseVersion


def parse(text):
    return LooseVersion(text)


def warn_until(version, message, category=DeprecationWarning, stacklevel=None, **kwargs):
    warnings.warn(message.format(version=version), category, stacklevel=(stacklevel or 2))


warn_until_date = warn_until


def kwargs_warn_until(kwargs, version, category=DeprecationWarning, stacklevel=None, **more):
    if kwargs:
        warn_until(version, "The following parameter(s) have been deprecated: {}".format(", ".join(kwargs)))


def version_cmp(pkg1, pkg2, ignore_epoch=False):
    one, other = LooseVersion(pkg1), LooseVersion(pkg2)
    return -1 if one < other else 1 if one > other else 0


def compare(ver1="", oper="==", ver2="", cmp_func=None, ignore_epoch=False):
    result = (cmp_func or version_cmp)(ver1, ver2)
    return {
        "==": result == 0,
        "!=": result != 0,
        "<": result < 0,
        "<=": result <= 0,
        ">": result > 0,
        ">=": result >= 0,
    }[oper]


def check_boto_reqs(**kwargs):
    try:
        import boto3  # noqa: F401

        return True
    except ImportError:
        return False, "boto3 is not installed"
