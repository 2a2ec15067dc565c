"""Merging dicts."""

import copy
from collections.abc import Mapping

from salt.defaults import DEFAULT_TARGET_DELIM


def update(dest, upd, recursive_update=True, merge_lists=False):
    """Lays `upd` over `dest`, in place."""
    if not isinstance(dest, Mapping) or not isinstance(upd, Mapping):
        raise TypeError("Cannot update using non-dict types in dictupdate.update()")
    if not recursive_update:
        for key in upd:
            dest[key] = upd[key]
        return dest
    for key, value in upd.items():
        old = dest.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            dest[key] = update(old, value, merge_lists=merge_lists)
        elif isinstance(old, list) and isinstance(value, list) and merge_lists:
            dest[key] = old + [item for item in value if item not in old]
        else:
            dest[key] = value
    return dest


def merge_list(obj_a, obj_b):
    result = {}
    for key in list(obj_a) + [key for key in obj_b if key not in obj_a]:
        result[key] = [side[key] for side in (obj_a, obj_b) if key in side]
        if len(result[key]) == 1:
            result[key] = result[key][0]
    return result


def merge_recurse(obj_a, obj_b, merge_lists=False):
    return update(copy.deepcopy(obj_a), obj_b, merge_lists=merge_lists)


def merge_aggregate(obj_a, obj_b):
    """As `yamlex` does: only what is marked there is joined, anything else is replaced."""
    copied = copy.deepcopy(obj_a)
    copied.update(obj_b)
    return copied


def merge_overwrite(obj_a, obj_b, merge_lists=False):
    copied = dict(obj_a)
    copied.update(obj_b)
    return copied


def merge(obj_a, obj_b, strategy="smart", renderer="yaml", merge_lists=False):
    if strategy == "smart":
        strategy = "recurse"
    if strategy == "list":
        return merge_list(obj_a, obj_b)
    if strategy == "recurse":
        return merge_recurse(obj_a, obj_b, merge_lists)
    if strategy == "aggregate":
        return merge_aggregate(obj_a, obj_b)
    if strategy == "overwrite":
        return merge_overwrite(obj_a, obj_b)
    if strategy == "none":
        return copy.deepcopy(obj_a)
    return merge_recurse(obj_a, obj_b)


def ensure_dict_key(in_dict, keys, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at = in_dict
    for key in keys.split(delimiter) if isinstance(keys, str) else keys:
        at = at.setdefault(key, {})
    return in_dict


def _last(in_dict, keys, delimiter):
    steps = keys.split(delimiter)
    at = in_dict
    for key in steps[:-1]:
        at = at.setdefault(key, {})
    return at, steps[-1]


def set_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, key = _last(in_dict, keys, delimiter)
    at[key] = value
    return in_dict


def update_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, key = _last(in_dict, keys, delimiter)
    at.setdefault(key, {}).update(value)
    return in_dict


def append_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, key = _last(in_dict, keys, delimiter)
    at.setdefault(key, []).append(value)
    return in_dict


def extend_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, key = _last(in_dict, keys, delimiter)
    at.setdefault(key, []).extend(value)
    return in_dict
