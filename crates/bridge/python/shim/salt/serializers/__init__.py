"""Serializers."""

from salt.exceptions import SaltException


class DeserializationError(SaltException, RuntimeError):
    pass


class SerializationError(SaltException, RuntimeError):
    pass
