"""Other values for a while."""

import contextlib

MISSING = object()


@contextlib.contextmanager
def func_globals_inject(func, **overrides):
    """Inside of the block, the function (also one of an object) sees these as its globals."""
    func = getattr(func, "__func__", func)
    scope = func.__globals__
    before = {name: scope.get(name, MISSING) for name in overrides}
    scope.update(overrides)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is MISSING:
                scope.pop(name, None)
            else:
                scope[name] = value


class NamespacedDictWrapper(dict):
    """Shows the part of a dict below a key, or below several keys one after another."""

    def __init__(self, d, pre_keys):
        super().__init__()
        self.__inner = d
        self.pre_keys = (pre_keys,) if isinstance(pre_keys, str) else tuple(pre_keys)

    def _dict(self):
        found = self.__inner
        for key in self.pre_keys:
            found = found.setdefault(key, {}) if isinstance(found, dict) else found[key]
        return found

    def __getitem__(self, key):
        return self._dict()[key]

    def __setitem__(self, key, value):
        self._dict()[key] = value

    def __delitem__(self, key):
        del self._dict()[key]

    def __contains__(self, key):
        return key in self._dict()

    def __iter__(self):
        return iter(self._dict())

    def __len__(self):
        return len(self._dict())

    def __bool__(self):
        return bool(self._dict())

    def __eq__(self, other):
        return self._dict() == other

    def __ne__(self, other):
        return self._dict() != other

    __hash__ = None

    def __repr__(self):
        return repr(self._dict())

    def get(self, key, default=None):
        return self._dict().get(key, default)

    def setdefault(self, key, default=None):
        return self._dict().setdefault(key, default)

    def pop(self, *args):
        return self._dict().pop(*args)

    def update(self, *args, **kwargs):
        self._dict().update(*args, **kwargs)

    def clear(self):
        self._dict().clear()

    def copy(self):
        return dict(self._dict())

    def keys(self):
        return self._dict().keys()

    def values(self):
        return self._dict().values()

    def items(self):
        return self._dict().items()
