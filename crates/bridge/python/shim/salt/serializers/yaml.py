"""yaml."""

import salt.utils.yaml as _own
from salt.serializers import DeserializationError, SerializationError

available = True


def serialize(obj, **options):
    """Without the marker of a document's end that follows a bare value."""
    options.setdefault("allow_unicode", True)
    options.setdefault("default_flow_style", None)
    try:
        text = _own.safe_dump(obj, **options)
    except Exception as error:
        raise SerializationError(str(error)) from error
    if isinstance(text, str):
        text = text[:-5] if text.endswith("\n...\n") else text[:-1] if text.endswith("\n") else text
    return text


def deserialize(stream_or_string, **options):
    try:
        text = stream_or_string.read() if hasattr(stream_or_string, "read") else stream_or_string
        return _own.safe_load(text, **options)
    except Exception as error:
        raise DeserializationError(str(error)) from error
