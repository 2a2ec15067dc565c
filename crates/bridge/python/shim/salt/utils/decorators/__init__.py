"""Decorators."""

import functools
import importlib
import logging

log = logging.getLogger(__name__)


class depends:  # noqa: N801
    """`@depends('module')`: without it the function is not there, or another takes its place."""

    def __init__(self, *dependencies, **kwargs):
        self.dependencies = dependencies
        self.fallback = kwargs.get("fallback_function")

    def __call__(self, function):
        for dependency in self.dependencies:
            if dependency is True:
                continue
            if isinstance(dependency, str):
                if dependency in function.__globals__:
                    continue
                try:
                    importlib.import_module(dependency)
                    continue
                except ImportError:
                    pass
            if self.fallback is not None:
                return self.fallback
            function._halite_hidden = True
            return function
        return function


Depends = depends


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
