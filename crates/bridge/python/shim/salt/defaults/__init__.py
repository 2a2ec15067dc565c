"""Defaults that modules look up."""


class _Constant:
    """A value that is nothing else. A copy of it is equal."""

    def __init__(self, name, value=None):
        self.name, self.value = name, value

    def __eq__(self, other):
        return isinstance(other, _Constant) and (self.name, self.value) == (other.name, other.value)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((self.name, self.value))

    def __repr__(self):
        return "<Constant.{}>".format(self.name)


DEFAULT_TARGET_DELIM = ":"
NOT_SET = _Constant("NOT_SET")
