"""Text in the local encoding."""

from salt.utils.stringutils import to_unicode as sdecode  # noqa: F401


def get_encodings():
    return ["utf-8", "latin-1"]


def sdecode_if_string(value):
    return sdecode(value) if isinstance(value, bytes) else value
