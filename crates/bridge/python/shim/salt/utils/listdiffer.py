"""Lists of dicts, compared by one of their keys."""

from salt.utils.dictdiffer import recursive_diff


def list_diff(list_a, list_b, key):
    return ListDictDiffer(list_a, list_b, key)


class ListDictDiffer:
    def __init__(self, current_list, next_list, key):
        self._current, self._new, self._key = list(current_list), list(next_list), key

    def _by_key(self, entries):
        return {entry[self._key]: entry for entry in entries}

    @property
    def added(self):
        old = self._by_key(self._current)
        return [entry for entry in self._new if entry[self._key] not in old]

    @property
    def removed(self):
        new = self._by_key(self._new)
        return [entry for entry in self._current if entry[self._key] not in new]

    @property
    def _pairs(self):
        new = self._by_key(self._new)
        return [(one, new[one[self._key]]) for one in self._current if one[self._key] in new]

    @property
    def intersect(self):
        return [{"key": one[self._key], "old": one, "new": other} for one, other in self._pairs]

    def changed(self, selection="intersect"):
        """What changed, as `key.1.name`."""
        added = [({}, entry) for entry in self.added]
        removed = [(entry, {}) for entry in self.removed]
        chosen = {"intersect": self._pairs, "added": added, "removed": removed}
        chosen["all"] = self._pairs + added + removed
        found = []
        for one, other in chosen[selection]:
            diff = recursive_diff(one, other, ignore_missing_keys=False)
            entry = str((one or other)[self._key])
            found.extend(".".join([self._key, entry, name]) for name in diff.changed())
        return found

    @property
    def diffs(self):
        pairs = self._pairs + [({}, entry) for entry in self.added] + [(entry, {}) for entry in self.removed]
        found = []
        for one, other in pairs:
            diff = recursive_diff(one, other, ignore_missing_keys=False)
            found.append({(one or other)[self._key]: diff.diffs})
        return [one for one in found if any(one.values())]

    @property
    def new_values(self):
        return [other for one, other in self._pairs if one != other] + self.added

    @property
    def old_values(self):
        return [one for one, other in self._pairs if one != other] + self.removed
