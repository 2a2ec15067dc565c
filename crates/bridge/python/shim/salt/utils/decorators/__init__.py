"""Decorators."""

import collections
import functools
import logging
import shlex
import subprocess
import sys

log = logging.getLogger(__name__)


class Depends:
    """`@depends('name')`: where the module does not have the name, its function is taken away, or replaced.

    Which is seen when the module is loaded; the loader asks for it by `enforce_dependencies`. As in Salt that
    concerns functions that are called by the name of their file, not by a virtual name.
    """

    # kind → dependency → (module, function) → where it was written, and how
    dependency_dict = collections.defaultdict(lambda: collections.defaultdict(dict))

    def __init__(self, *dependencies, **kwargs):
        self.dependencies = dependencies
        self.params = kwargs

    def __call__(self, function):
        frame = sys._getframe(1)
        names = frame.f_globals.get("__name__", "").rsplit(".", 2)
        if len(names) == 3:
            where = (names[2], getattr(function, "__name__", ""))
            for dependency in self.dependencies:
                found = (frame.f_locals, frame.f_globals, self.params)
                self.dependency_dict[names[1]][dependency][where] = found
        return function

    @staticmethod
    def run_command(dependency, mod_name, func_name):
        command = dependency.format("{}.{}".format(mod_name, func_name))
        quiet = subprocess.DEVNULL
        return subprocess.run(shlex.split(command), stdout=quiet, stderr=quiet, check=False).returncode

    @classmethod
    def _is_met(cls, dependency, where, local, others, params):
        if "retcode" in params or "nonzero_retcode" in params:
            try:
                code = cls.run_command(dependency, *where)
            except OSError:
                code = -1
            if "retcode" in params:
                return code == params["retcode"]
            return (code != 0) == bool(params["nonzero_retcode"])
        if dependency is True:
            return True
        found = local.get(dependency) or others.get(dependency)
        if found and "version" in params:
            from salt.utils.versions import version_cmp

            return version_cmp(str(getattr(found, "__version__", "0")), params["version"]) >= 0
        return bool(found)

    @classmethod
    def enforce_dependencies(cls, functions, kind, tgt_mod):
        for dependency, wanting in cls.dependency_dict[kind].items():
            for (module, function), (local, others, params) in wanting.items():
                if module != tgt_mod or cls._is_met(dependency, (module, function), local, others, params):
                    continue
                alias = others.get("__func_alias__") or {}
                name = "{}.{}".format(module, alias.get(function, function))
                if name in functions:
                    if params.get("fallback_function") is not None:
                        functions[name] = params["fallback_function"]
                    else:
                        del functions[name]


depends = Depends


def timing(function):
    return function


def memoize(function):
    """Remembers results by arguments."""
    known = {}

    @functools.wraps(function)
    def remembered(*args, **kwargs):
        key = (tuple(map(str, args)), tuple(sorted((name, str(value)) for name, value in kwargs.items())))
        if key not in known:
            known[key] = function(*args, **kwargs)
        return known[key]

    remembered.cache = known
    return remembered


def allow_one_of(*names):
    def wrap(function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            from salt.exceptions import SaltInvocationError

            given = [name for name in names if kwargs.get(name)]
            if len(given) > 1:
                raise SaltInvocationError("Only one of the following is allowed: {}".format(", ".join(names)))
            return function(*args, **kwargs)

        return checked

    return wrap


def require_one_of(*names):
    def wrap(function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            from salt.exceptions import SaltInvocationError

            if not any(kwargs.get(name) for name in names):
                raise SaltInvocationError("One of the following is required: {}".format(", ".join(names)))
            return function(*args, **kwargs)

        return checked

    return wrap


def ensure_unicode_args(function):
    return function


class _Deprecated:
    def __init__(self, globals_, version, with_successor=None, raise_later=False):
        self.successor = with_successor

    def __call__(self, function):
        return function


is_deprecated = with_deprecated = _Deprecated
