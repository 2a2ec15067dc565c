"""Differences of dicts."""

from salt.utils.data import recursive_diff as _recursive


def deep_diff(old, new, ignore=None):
    return _recursive(old or {}, new or {}, ignore_keys=ignore or [])


class DictDiffer:
    def __init__(self, current, past):
        self.current_dict, self.past_dict = current, past
        self.set_current, self.set_past = set(current), set(past)
        self.intersect = self.set_current & self.set_past

    def same(self):
        return self.current_dict == self.past_dict

    def added(self):
        return self.set_current - self.intersect

    def removed(self):
        return self.set_past - self.intersect

    def changed(self):
        return {key for key in self.intersect if self.past_dict[key] != self.current_dict[key]}

    def unchanged(self):
        return {key for key in self.intersect if self.past_dict[key] == self.current_dict[key]}


def diff(current, past):
    return DictDiffer(current, past)


NONE = "<_null_>"


def recursive_diff(past_dict, current_dict, ignore_missing_keys=True, list_dict_matchers=None):
    """The differences of two dicts, at every depth."""
    return RecursiveDictDiffer(past_dict, current_dict, ignore_missing_keys)


class RecursiveDictDiffer(DictDiffer):
    """`diffs` has `{"old": …, "new": …}` for each value that differs; what one side lacks is `NONE_VALUE`.

    With `ignore_missing_keys` what only the past has does not count.
    """

    NONE_VALUE = NONE

    def __init__(self, past_dict, current_dict, ignore_missing_keys=True, list_dict_matchers=None):
        DictDiffer.__init__(self, current_dict, past_dict)
        self.ignore_unset_values = True
        self._diffs = _differences(past_dict, current_dict, ignore_missing_keys)

    @property
    def diffs(self):
        return self._diffs

    @property
    def old_values(self):
        return _side(self._diffs, "old")

    @property
    def new_values(self):
        return _side(self._diffs, "new")

    @property
    def changes_str(self):
        return "\n".join(_told(self._diffs, ""))

    def _leaves(self, separator, wanted):
        return [separator.join(way) for way, leaf in _walk(self._diffs, ()) if wanted(leaf)]

    def added(self, include_nested=False, separator="."):
        found = self._leaves(separator, lambda leaf: leaf["old"] == NONE)
        return sorted(_with_nested(found, self.current_dict, separator) if include_nested else found)

    def removed(self, include_nested=False, separator="."):
        found = self._leaves(separator, lambda leaf: leaf["new"] == NONE)
        return sorted(_with_nested(found, self.past_dict, separator) if include_nested else found)

    def changed(self, separator="."):
        return sorted(self._leaves(separator, lambda leaf: NONE not in (leaf["old"], leaf["new"])))

    def unchanged(self, separator="."):
        return sorted(separator.join(way) for way in _same(self.past_dict, self.current_dict, ()))


def _differences(past, current, ignore_missing):
    found = {}
    for key in [*current, *(key for key in past if key not in current and not ignore_missing)]:
        old, new = past.get(key, NONE), current.get(key, NONE)
        if isinstance(old, dict) and isinstance(new, dict):
            below = _differences(old, new, ignore_missing)
            if below:
                found[key] = below
        elif old != new:
            found[key] = {"new": new, "old": old}
    return found


def _is_leaf(entry):
    return set(entry) == {"new", "old"}


def _side(diffs, name):
    return {key: entry[name] if _is_leaf(entry) else _side(entry, name) for key, entry in diffs.items()}


def _walk(diffs, way):
    for key, entry in diffs.items():
        here = way + (str(key),)
        if _is_leaf(entry):
            yield here, entry
        else:
            yield from _walk(entry, here)


def _same(past, current, way):
    for key, new in current.items():
        if key not in past:
            continue
        here, old = way + (str(key),), past[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _same(old, new, here)
        elif old == new:
            yield here


def _with_nested(keys, values, separator):
    for full in keys:
        yield full
        found = values
        for step in full.split(separator):
            found = found.get(step, {}) if isinstance(found, dict) else {}
        if isinstance(found, dict):
            yield from (full + separator + separator.join(way) for way in _ways(found, ()))


def _ways(values, way):
    for key, value in values.items():
        yield way + (str(key),)
        if isinstance(value, dict):
            yield from _ways(value, way + (str(key),))


def _told(diffs, indent):
    for key in sorted(diffs, key=str):
        entry = diffs[key]
        if not _is_leaf(entry):
            yield "{}{}:".format(indent, key)
            yield from _told(entry, indent + "  ")
            continue
        old, new = ("nothing" if entry[side] == NONE else _quoted(entry[side]) for side in ("old", "new"))
        yield "{}{} from {} to {}".format(indent, key, old, new)


def _quoted(value):
    return "'{}'".format(value) if isinstance(value, str) else value
