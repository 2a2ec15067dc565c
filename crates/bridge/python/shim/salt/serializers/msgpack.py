"""msgpack."""

from salt.utils.msgpack import packb, unpackb

available = True


def serialize(obj, **options):
    return packb(obj)


def deserialize(stream_or_string, **options):
    return unpackb(stream_or_string)
