"""Dicts and lists."""

import copy
import fnmatch
import re
from collections.abc import Mapping, MutableMapping

from salt.defaults import DEFAULT_TARGET_DELIM, NOT_SET
from salt.utils.stringutils import to_bytes as _to_bytes
from salt.utils.stringutils import to_str as _to_str


class CaseInsensitiveDict(MutableMapping):
    def __init__(self, init=None):
        self._data = {}
        for key, value in dict(init or {}).items():
            self[key] = value

    def __getitem__(self, key):
        return self._data[key.lower()][1]

    def __setitem__(self, key, value):
        self._data[key.lower()] = (key, value)

    def __delitem__(self, key):
        del self._data[key.lower()]

    def __iter__(self):
        return (key for key, _ in self._data.values())

    def __len__(self):
        return len(self._data)


def _step(data, key):
    if isinstance(data, Mapping):
        if key in data:
            return data[key]
        if str(key).isdigit() and int(key) in data:
            return data[int(key)]
        raise KeyError(key)
    if isinstance(data, (list, tuple)):
        return data[int(key)]
    raise TypeError


def traverse_dict(data, key, default=None, delimiter=DEFAULT_TARGET_DELIM):
    """Follows `a:b:c` through dicts."""
    try:
        for step in key.split(delimiter):
            if not isinstance(data, Mapping):
                return default
            data = data[step]
    except (KeyError, IndexError, TypeError):
        return default
    return data


def traverse_dict_and_list(data, key, default=None, delimiter=DEFAULT_TARGET_DELIM):
    """Follows `a:b:0:c` through dicts and lists."""
    found = data
    steps = key.split(delimiter) if isinstance(key, str) else [key]
    for step in steps:
        if isinstance(found, list) and not str(step).lstrip("-").isdigit():
            for item in found:
                if isinstance(item, Mapping) and step in item:
                    found = item[step]
                    break
            else:
                return default
            continue
        try:
            found = _step(found, step)
        except (KeyError, IndexError, TypeError, ValueError):
            return default
    return found


def subdict_match(data, expr, delimiter=DEFAULT_TARGET_DELIM, regex_match=False, exact_match=False):
    def fits(value, pattern):
        if isinstance(value, (list, tuple)):
            return any(fits(item, pattern) for item in value)
        if isinstance(value, Mapping):
            return pattern in value or pattern == "*"
        value, pattern = str(value).lower(), str(pattern).lower()
        if regex_match:
            try:
                return bool(re.match(pattern, value))
            except re.error:
                return False
        return value == pattern if exact_match else fnmatch.fnmatch(value, pattern)

    parts = expr.split(delimiter)
    for at in range(1, len(parts)):
        key, pattern = delimiter.join(parts[:at]), delimiter.join(parts[at:])
        found = traverse_dict_and_list(data, key, NOT_SET, delimiter)
        if found is not NOT_SET and (pattern == "*" or fits(found, pattern)):
            return True
    return False


def substr_in_list(text, items):
    return any(text in item for item in items)


def is_dictlist(data):
    return isinstance(data, list) and bool(data) and all(isinstance(item, dict) and len(item) == 1 for item in data)


def repack_dictlist(data, strict=False, recurse=False, key_cb=None, val_cb=None):
    """`[{a: 1}, b]` → `{a: 1, b: None}`"""
    key_cb = key_cb or (lambda key: key)
    val_cb = val_cb or (lambda key, value: value)
    if isinstance(data, str):
        import salt.utils.yaml

        try:
            data = salt.utils.yaml.safe_load(data)
        except salt.utils.yaml.YAMLError:
            return {}
    if isinstance(data, dict):
        data = [data]
    result = {}
    for item in data if isinstance(data, (list, tuple)) else []:
        if isinstance(item, dict):
            for key, value in item.items():
                if recurse and is_dictlist(value):
                    value = repack_dictlist(value, recurse=True)
                result[key_cb(key)] = val_cb(key, value)
        elif strict:
            return {}
        else:
            result[key_cb(item)] = val_cb(item, None)
    return result


def is_list(value):
    return isinstance(value, list)


def is_iter(thing, ignore=(str,)):
    return not isinstance(thing, ignore) and hasattr(thing, "__iter__")


def is_true(value=None):
    """Whether something means yes: a number above zero (cut to a whole one), the word, or,
    for all else, what Python makes of it."""
    if isinstance(value, str) and value.lower() == "true":
        return True
    try:
        return int(value) > 0
    except (TypeError, ValueError):
        return bool(value) and not isinstance(value, (str, float))


def mysql_to_dict(data, key):
    """The table that the program `mysql` prints: rows by one of the columns."""
    names, rows = None, {}
    for line in data:
        if line.startswith("+"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if names is None:
            names = cells
            continue
        row = {name: _number(cell) for name, cell in zip(names, cells)}
        rows[row[key]] = row
    return rows


def _number(text):
    return int(text) if text.isdigit() else text


def simple_types_filter(data):
    simple = (str, int, float, bool, bytes, type(None))
    if isinstance(data, (list, tuple)):
        return [simple_types_filter(item) for item in data]
    if isinstance(data, Mapping):
        return {
            key if isinstance(key, simple) else repr(key): simple_types_filter(value)
            for key, value in data.items()
        }
    return data if isinstance(data, simple) else repr(data)


def stringify(data):
    return [item if isinstance(item, str) else str(item) for item in data]


def _each(data, work, keys=True):
    if isinstance(data, Mapping):
        return {(_each(key, work) if keys else key): _each(value, work, keys) for key, value in data.items()}
    if isinstance(data, tuple):
        return tuple(_each(item, work, keys) for item in data)
    if isinstance(data, (list, set)):
        return [_each(item, work, keys) for item in data]
    return work(data)


def decode(data, encoding=None, errors="strict", keep=False, *args, **kwargs):
    def text(value):
        if not isinstance(value, bytes):
            return value
        try:
            return value.decode(encoding or "utf-8", errors)
        except UnicodeDecodeError:
            if keep:
                return value
            return _to_str(value, encoding)

    return _each(data, text)


decode_dict = decode_list = decode_tuple = decode


def encode(data, encoding=None, errors="strict", keep=False, *args, **kwargs):
    return _each(data, lambda value: _to_bytes(value, encoding) if isinstance(value, str) else value)


encode_dict = encode_list = encode_tuple = encode


def compare_dicts(old=None, new=None):
    """What differs: key -> {"old": ..., "new": ...}, with "" for the side that lacks the key."""
    sides = {"old": old or {}, "new": new or {}}
    absent = object()
    found = {}
    for key in {**sides["old"], **sides["new"]}:
        pair = {side: data.get(key, absent) for side, data in sides.items()}
        if any(value is absent for value in pair.values()) or pair["old"] != pair["new"]:
            found[key] = {side: "" if value is absent else value for side, value in pair.items()}
    return found


def compare_lists(old=None, new=None):
    old, new = old or [], new or []
    found = {}
    added = [item for item in new if item not in old]
    gone = [item for item in old if item not in new]
    if added:
        found["new"] = added
    if gone:
        found["old"] = gone
    return found


def recursive_diff(old, new, ignore_keys=None, ignore_order=False, ignore_missing_keys=False):
    ignored = ignore_keys or []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        result = {"old": {}, "new": {}}
        keys = [key for key in list(old) + [key for key in new if key not in old] if key not in ignored]
        for key in keys:
            if key in old and key in new:
                below = recursive_diff(old[key], new[key], ignored, ignore_order, ignore_missing_keys)
                if below:
                    result["old"][key], result["new"][key] = below["old"], below["new"]
            elif not ignore_missing_keys:
                if key in old:
                    result["old"][key] = old[key]
                else:
                    result["new"][key] = new[key]
        return result if result["old"] or result["new"] else {}
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) and not ignore_order:
        pairs = [(one, other) for one, other in zip(old, new) if one != other]
        found = {"old": [], "new": []}
        for one, other in pairs:
            below = recursive_diff(one, other, ignored, ignore_order, ignore_missing_keys)
            if below:
                found["old"].append(below["old"])
                found["new"].append(below["new"])
        shared = min(len(old), len(new))
        found["old"].extend(old[shared:])
        found["new"].extend(new[shared:])
        return found if found["old"] or found["new"] else {}
    same = sorted(map(repr, old)) == sorted(map(repr, new)) if (
        ignore_order and isinstance(old, list) and isinstance(new, list)
    ) else old == new
    return {} if same else {"old": old, "new": new}


def filter_by(lookup_dict, lookup, traverse, merge=None, default="default", base=None):
    names = [lookup] if not isinstance(lookup, (list, tuple)) else lookup
    found = None
    for name in names:
        values = traverse_dict_and_list(traverse, name, None)
        for value in values if isinstance(values, list) else [values]:
            for key in lookup_dict:
                if fnmatch.fnmatchcase(str(value), str(key)):
                    found = lookup_dict[key]
                    break
            if found is not None:
                break
        if found is not None:
            break
    if found is None:
        found = lookup_dict.get(default)
    if base and base in lookup_dict:
        found = dict_merge(lookup_dict[base], found or {})
    if merge:
        found = dict_merge(found or {}, merge)
    return found


def dict_merge(one, other):
    from salt.utils.dictupdate import update

    return update(copy.deepcopy(one), copy.deepcopy(other))


def sorted_ignorecase(items):
    return sorted(items, key=lambda item: item.lower())


def json_query(data, expr):
    import jmespath

    return jmespath.search(expr, data)


def flatten(data, levels=None, preserve_nulls=False, _ids=None):
    result = []
    for item in data:
        if item is None and not preserve_nulls:
            continue
        if isinstance(item, (list, tuple)) and (levels is None or levels > 0):
            result.extend(flatten(item, None if levels is None else levels - 1, preserve_nulls))
        else:
            result.append(item)
    return result


def hash(value, algorithm="sha512"):  # noqa: A001
    import hashlib

    return hashlib.new(algorithm, _to_bytes(value)).hexdigest()


def get_value(obj, path, default=None):
    found = traverse_dict_and_list(obj, path, default)
    return [{"value": found}]


def to_entries(data):
    items = data.items() if isinstance(data, Mapping) else enumerate(data)
    return [{"key": key, "value": value} for key, value in items]


def from_entries(entries):
    return {entry["key"]: entry["value"] for entry in entries}


def filter_falsey(data, recurse_depth=None, ignore_types=()):
    def below(value):
        if recurse_depth and isinstance(value, (Mapping, list, tuple)):
            return filter_falsey(value, recurse_depth - 1, ignore_types)
        return value

    if isinstance(data, Mapping):
        found = ((key, below(value)) for key, value in data.items())
        return type(data)((key, value) for key, value in found if value or type(value) in ignore_types)
    if isinstance(data, (list, tuple)):
        return type(data)(value for value in map(below, data) if value or type(value) in ignore_types)
    return data


def exactly_n(items, amount=1):
    """Tells whether so many of the items are true."""
    return sum(1 for item in items if item) == amount


def exactly_one(items):
    return exactly_n(items)


def to_lowercase(data, preserve_dict_class=False):
    return _each(data, lambda value: value.lower() if isinstance(value, str) else value)


def to_uppercase(data, preserve_dict_class=False):
    return _each(data, lambda value: value.upper() if isinstance(value, str) else value)


def shuffle(value, seed=None):
    return sample(value, len(value), seed)


def sample(value, size, seed=None):
    import random

    return random.Random(seed).sample(list(value), size)


def unique_list(items):
    return list(dict.fromkeys(items))

