"""Data that cannot be changed."""

from types import MappingProxyType as ImmutableDict  # noqa: F401


class ImmutableList(tuple):
    pass


class ImmutableSet(frozenset):
    pass


def freeze(value):
    if isinstance(value, dict):
        return ImmutableDict(value)
    if isinstance(value, list):
        return ImmutableList(value)
    return ImmutableSet(value) if isinstance(value, set) else value
