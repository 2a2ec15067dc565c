"""Iterators."""

import re


def split(orig, sep=None):
    found = re.split(re.escape(sep) if sep else r"\s+", orig)
    return iter([part for part in found if part] if sep is None else found)


def read_file(handle, chunk_size=1048576):
    with handle if hasattr(handle, "read") else open(handle, "rb") as source:
        yield from iter(lambda: source.read(chunk_size), type(source.read(0))())


def fnmatch_multiple(candidates, pattern):
    import fnmatch

    return next((name for name in candidates if fnmatch.fnmatch(name, pattern)), None)
