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
