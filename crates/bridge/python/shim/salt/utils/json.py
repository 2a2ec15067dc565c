"""JSON."""

import json

from json import *  # noqa: F401,F403


def loads(text, **kwargs):
    kwargs.pop("encoding", None)
    json_module = kwargs.pop("_json_module", json)
    return json_module.loads(text, **kwargs)


def dumps(value, **kwargs):
    json_module = kwargs.pop("_json_module", json)
    kwargs.setdefault("default", _plain)
    kwargs.setdefault("ensure_ascii", False)
    return json_module.dumps(value, **kwargs)


def load(handle, **kwargs):
    return loads(handle.read(), **kwargs)


def dump(value, handle, **kwargs):
    handle.write(dumps(value, **kwargs))


def _plain(value):
    if hasattr(value, "items"):
        return dict(value.items())
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    raise TypeError("Object of type {} is not JSON serializable".format(type(value).__name__))


def find_json(text):
    """Returns the first JSON value that stands on a line of its own in a text."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if line.lstrip()[:1] in ("{", "["):
            for end in range(len(lines), start, -1):
                try:
                    return json.loads("\n".join(lines[start:end]))
                except ValueError:
                    continue
    raise ValueError("no JSON found")


def import_json():
    return json
