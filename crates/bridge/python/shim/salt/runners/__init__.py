"""`salt.runners.x.y` is the function `x.y`, as modules that import others expect."""

import sys
import types

from salt import _host


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        short = self.__name__.rpartition(".")[2]
        short = {"cmdmod": "cmd", "linux_service": "service", "systemd_service": "service", "aptpkg": "pkg"}.get(short, short)

        def function(*args, **kwargs):
            found = _host.functions("runners")
            if found is None:
                raise RuntimeError("{}.{} can only be called inside Halite".format(short, name))
            return found[short + "." + name](*args, **kwargs)

        function.__name__ = name
        return function


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("salt.runners.") or name.count(".") != 2:
            return None
        import importlib.machinery

        return importlib.machinery.ModuleSpec(name, _Finder, origin="<halite>")

    @staticmethod
    def create_module(spec):
        return _Module(spec.name)

    @staticmethod
    def exec_module(module):
        pass


sys.meta_path.append(_Finder)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    import importlib

    return importlib.import_module("salt.runners." + name)
