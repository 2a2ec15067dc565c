"""`salt.returners.x.y` is the function `x.y`, as modules that import others expect."""

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
            found = _host.functions("returners")
            if found is None:
                raise RuntimeError("{}.{} can only be called inside Halite".format(short, name))
            return found[short + "." + name](*args, **kwargs)

        function.__name__ = name
        return function


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("salt.returners.") or name.count(".") != 2:
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

    return importlib.import_module("salt.returners." + name)


def get_returner_options(virtualname=None, ret=None, attrs=None, **kwargs):
    """Returns a returner's options: from `ret_kwargs`, then from the configuration."""
    opts = kwargs.get("__opts__") or _host.opts() or {}
    given = (ret or {}).get("ret_kwargs") or {}
    profile = (ret or {}).get("ret_config")
    defaults = kwargs.get("defaults") or {}
    found = {}
    for option, name in (attrs or {}).items():
        name = name or option
        names = ["{}.{}".format(virtualname, name)]
        if profile:
            names.insert(0, "{}.{}.{}".format(profile, virtualname, name))
        value = given.get(option, given.get(name))
        for key in names:
            if value is None:
                value = opts.get(key)
        if value is None and isinstance(opts.get(virtualname), dict):
            value = opts[virtualname].get(name)
        found[option] = defaults.get(option) if value is None else value
    return found
