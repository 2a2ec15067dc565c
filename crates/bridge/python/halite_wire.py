"""Values on the wire: marshal's version 2, which every Python writes and reads in C.

marshal knows exactly Python's plain types, so nothing changes on the way: bytes stay bytes, keys stay
what they are, tuples stay tuples, integers have no limit. What is not a plain type is made one
(`plain`): subclasses lose their subclass, iterators become lists, dates become a marked tuple that
the other side turns into its own date. What cannot be sent is an error that names it.
"""

import marshal

# A tuple that begins with Ellipsis is ours: (..., kind, text).
MARK = Ellipsis


class Unsendable(TypeError):
    pass


def dumps(value):
    try:
        return marshal.dumps(value, 2)
    except ValueError:
        return marshal.dumps(plain(value), 2)


def loads(body):
    return revived(marshal.loads(body)) if MARKED in body else marshal.loads(body)


# How a marked tuple begins: three items, Ellipsis.
MARKED = b"(\x03\x00\x00\x00."


def revived(value):
    kind = type(value)
    if kind is dict:
        return {revived(key): revived(item) for key, item in value.items()}
    if kind is list:
        return [revived(item) for item in value]
    if kind is tuple:
        if len(value) == 3 and value[0] is MARK:
            import datetime

            return datetime.datetime.fromisoformat(value[2])
        return tuple(revived(item) for item in value)
    return value


def dumps_result(message):
    """A call's result; what cannot be sent is told by where it stands."""
    try:
        return marshal.dumps(message, 2)
    except ValueError:
        pass
    # Outside of the handler, so that marshal's error is not part of the traceback.
    value = plain(message[1], "the return")
    return marshal.dumps((message[0], value) + tuple(message[2:]), 2)


PLAIN = (str, int, float, bool, bytes, type(None))


def plain(value, where="the value", depth=0):
    kind = type(value)
    if kind in PLAIN:
        return value
    if depth > 200:
        raise Unsendable("{} is nested too deeply, or contains itself".format(where))
    if isinstance(value, dict) or hasattr(value, "items") and hasattr(value, "__getitem__"):
        return {
            plain_key(key, where): plain(item, "{}[{!r}]".format(where, key), depth + 1)
            for key, item in list(value.items())
        }
    if isinstance(value, tuple):
        return tuple(plain(item, "{}[{}]".format(where, i), depth + 1) for i, item in enumerate(value))
    if isinstance(value, list):
        return [plain(item, "{}[{}]".format(where, i), depth + 1) for i, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        try:
            items = sorted(value)
        except TypeError:
            items = list(value)
        return [plain(item, where, depth + 1) for item in items]
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, bytes):
        return bytes(value)
    name = kind.__name__
    if name == "datetime" and hasattr(value, "isoformat"):
        return (MARK, "datetime", value.replace(tzinfo=None).isoformat())
    if hasattr(value, "isoformat") or name in ("UUID", "Decimal") or hasattr(value, "__fspath__"):
        return str(value)
    if name in ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"):
        return str(value)
    if hasattr(value, "__next__") or name in ("dict_keys", "dict_values", "dict_items", "range", "deque"):
        return [plain(item, where, depth + 1) for item in value]
    raise Unsendable(
        "{} is a {}, which cannot be sent: {:.200}".format(where, described_type(kind), repr(value))
    )


def described_type(kind):
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("", "builtins") else module + "." + kind.__qualname__


def plain_key(key, where):
    if type(key) in PLAIN:
        return key
    made = plain(key, "a key of " + where)
    if isinstance(made, list):
        made = tuple(made)
    hash(made)
    return made
