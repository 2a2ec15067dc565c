"""yaml."""

import salt.utils.yaml as _own
from salt.serializers import DeserializationError, SerializationError

available = True


def serialize(obj, **options):
    try:
        return _own.dumps(obj, **options) if hasattr(_own, "dumps") else _own.safe_dump(obj, **options)
    except Exception as error:
        raise SerializationError(str(error)) from error


def deserialize(stream_or_string, **options):
    try:
        text = stream_or_string.read() if hasattr(stream_or_string, "read") else stream_or_string
        return _own.loads(text, **options) if hasattr(_own, "loads") else _own.safe_load(text, **options)
    except Exception as error:
        raise DeserializationError(str(error)) from error
