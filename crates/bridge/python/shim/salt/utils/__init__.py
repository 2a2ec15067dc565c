"""Utilities. `salt.utils.which` and others of Salt's old flat layout are found here still."""

import importlib

_OLD = {
    "which": "path",
    "which_bin": "path",
    "fopen": "files",
    "flopen": "files",
    "is_linux": "platform",
    "is_windows": "platform",
    "is_darwin": "platform",
    "is_proxy": "platform",
    "traverse_dict": "data",
    "traverse_dict_and_list": "data",
    "repack_dictlist": "data",
    "is_true": "data",
    "clean_kwargs": "args",
    "get_function_argspec": "args",
    "warn_until": "versions",
    "to_str": "stringutils",
    "to_bytes": "stringutils",
    "expr_match": "stringutils",
    "namespaced_function": "functools",
    "alias_function": "functools",
    "get_hash": "hashutils",
}


def __getattr__(name):
    home = _OLD.get(name)
    if home is not None:
        return getattr(importlib.import_module("salt.utils." + home), name)
    try:
        # `import salt.utils` was enough in Salt, where something else had imported the rest.
        return importlib.import_module("salt.utils." + name)
    except ImportError:
        raise AttributeError("module 'salt.utils' has no attribute {!r}".format(name)) from None
