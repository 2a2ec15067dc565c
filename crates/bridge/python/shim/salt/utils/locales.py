"""Text in the local encoding, and names of locales."""

import re

from salt.utils.stringutils import to_unicode as sdecode  # noqa: F401


def get_encodings():
    return ["utf-8", "latin-1"]


def sdecode_if_string(value):
    return sdecode(value) if isinstance(value, bytes) else value


def split_locale(loc):
    """`en_US.UTF-8@modifier charmap` in its parts."""
    found = re.match(r"([^_.@ ]*)(?:_([^.@ ]*))?(?:\.([^@ ]*))?(?:@([^ ]*))?(?: (.*))?$", loc)
    names = ("language", "territory", "codeset", "modifier", "charmap")
    return {name: part or "" for name, part in zip(names, found.groups())}


def join_locale(comps):
    text = comps["language"]
    for mark, name in (("_", "territory"), (".", "codeset"), ("@", "modifier"), (" ", "charmap")):
        if comps.get(name):
            text += mark + comps[name]
    return text


def normalize_locale(loc):
    parts = split_locale(loc)
    parts["territory"] = parts["territory"].upper()
    parts["codeset"] = parts["codeset"].lower().replace("-", "")
    parts["charmap"] = ""
    return join_locale(parts)
