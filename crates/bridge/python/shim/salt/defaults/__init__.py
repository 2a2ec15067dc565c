"""Defaults that modules look up."""


class _Constant(str):
    pass


DEFAULT_TARGET_DELIM = ":"
NOT_SET = _Constant("NOT_SET")
