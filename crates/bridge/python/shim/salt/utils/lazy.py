"""A dict that looks for its values when they are asked for."""

from collections.abc import MutableMapping

import salt.exceptions


def verify_fun(lazy_obj, fun):
    if not fun:
        raise salt.exceptions.SaltInvocationError("Must specify a function to run!\nex: manage.up")
    if fun not in lazy_obj:
        raise salt.exceptions.CommandExecutionError(lazy_obj.missing_fun_string(fun))


class LazyDict(MutableMapping):
    """Those who inherit write `_load(key)`, which puts a value there and tells whether it did, and `_load_all()`."""

    def __init__(self):
        self.clear()

    def clear(self):
        self._dict = {}
        self.loaded = False

    def _load(self, key):
        raise NotImplementedError

    def _load_all(self):
        raise NotImplementedError

    def _everything(self):
        if not self.loaded:
            self._load_all()
        return self._dict

    def _missing(self, key):
        return False

    def missing_fun_string(self, function_name):
        return "'{}' is not available.".format(function_name)

    def __getitem__(self, key):
        if key not in self._dict and (self.loaded or self._missing(key) or not self._load(key)):
            raise KeyError(key)
        return self._dict[key]

    def __setitem__(self, key, value):
        self._dict[key] = value

    def __delitem__(self, key):
        del self._dict[key]

    def __len__(self):
        return len(self._everything())

    def __iter__(self):
        return iter(self._everything())
