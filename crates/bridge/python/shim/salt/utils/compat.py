"""What older modules ask for."""

import sys


def pack_dunder(name):
    """Makes `__utils__` known to a module that Salt did not load."""
    module = sys.modules[name]
    if not hasattr(module, "__utils__"):
        import salt.loader

        module.__utils__ = salt.loader.utils(getattr(module, "__opts__", {}))


def cmp(one, other):
    """-1, 0 or 1. Dicts have no order, only equality."""
    if isinstance(one, dict) and isinstance(other, dict):
        return 0 if one == other else -1
    return (one > other) - (one < other)
