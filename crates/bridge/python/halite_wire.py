"""Values on the wire: JSON, which every Python writes and reads in C, with marks for the rest.

A module gets and gives what it would in Salt, where nothing travels: bytes stay bytes, keys stay what
they are, tuples stay tuples, sets sets, integers have no limit. What JSON has no form for is an object with one
member whose name begins with a zero byte; `notation.rs` of the binary has the table. What is not a
plain type is made one: subclasses lose their subclass, iterators become lists, and values that people
write down (durations, fractions, members of an enumeration) their text. What cannot be sent is an
error that names it by its place.
"""

import json

MARK = "\0"
# How a mark begins in a message; without one there is nothing to revive.
MARKED = b'{"\\u0000'
# Levels of JSON in a message, as `notation.rs` has it. A tuple takes two, a dict with other keys than text three.
DEEPEST = 480
# Types of these modules that are not handled otherwise are sent as their text.
WRITTEN_DOWN = frozenset(("datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid", "zoneinfo"))
SCALARS = frozenset((str, int, float, bool, type(None)))

read = json.JSONDecoder().decode
written = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class Unsendable(TypeError):
    """Keeps the way to the value, innermost last, so that naming it costs only those who fail."""

    def __init__(self, text):
        TypeError.__init__(self, text)
        self.way = []

    def named(self, where):
        steps = ["[{!r}]".format(step) for step in self.way]
        if len(steps) > 12:
            steps[6:-2] = ["…"]
        return Unsendable(where + "".join(steps) + str(self))


def dumps(message):
    """A message: what it is, and values."""
    parts = []
    for part in message:
        try:
            parts.append(part if type(part) in SCALARS else marked(part, 0))
        except Unsendable as error:
            unsendable = error.named("the return" if message[0] == "ret" else "the value")
            break
    else:
        # File names may have lone surrogates.
        return written(parts).encode("utf-8", "surrogatepass")
    # Outside of the handler, so that the first error is not part of the traceback.
    raise unsendable


def loads(body):
    value = read(body.decode("utf-8"))
    return revived(value) if MARKED in body else value


def revived(value):
    kind = type(value)
    if kind is dict:
        if len(value) == 1:
            ((key, item),) = value.items()
            if key[:1] == MARK:
                return MEANINGS[key[1:]](item)
        return {key: item if type(item) in SCALARS else revived(item) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in SCALARS else revived(item) for item in value]
    return value


def date_of(text):
    import datetime

    return datetime.datetime.fromisoformat(text)


MEANINGS = {
    "t": lambda items: tuple(revived(items)),
    "s": lambda items: set(revived(items)),
    "b": lambda text: text.encode("latin-1"),
    "d": date_of,
    "p": lambda pairs: {revived(key): revived(item) for key, item in pairs},
}


def marked(value, depth):
    """The value in types that JSON has."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if depth > DEEPEST:
        raise Unsendable(" is nested too deeply (the limit is {} levels), or contains itself".format(DEEPEST))
    if kind is dict or isinstance(value, dict) or hasattr(value, "items") and hasattr(value, "__getitem__"):
        return marked_dict(value, depth)
    if kind is list or isinstance(value, list):
        return marked_items(value, depth)
    if isinstance(value, tuple):
        return {MARK + "t": marked_items(value, depth + 1)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {MARK + "b": bytes(value).decode("latin-1")}
    if isinstance(value, (set, frozenset)):
        try:
            members = sorted(value)
        except TypeError:
            members = value
        return {MARK + "s": [marked_key(member, depth + 1) for member in members]}
    for plain in (bool, int, float):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, str):
        return str.__str__(value)
    name = kind.__name__
    if name == "datetime" and hasattr(value, "isoformat"):
        return {MARK + "d": value.replace(tzinfo=None).isoformat()}
    if kind is complex or is_written_down(kind) or hasattr(value, "__fspath__"):
        return str(value)
    if hasattr(value, "__next__") or name in ("dict_keys", "dict_values", "dict_items", "range", "deque"):
        return marked_items(value, depth)
    raise Unsendable(" is a {}, which cannot be sent: {:.200}".format(described_type(kind), repr(value)))


def is_written_down(kind):
    if hasattr(kind, "__members__") or hasattr(kind, "isoformat"):
        return True
    return any(cls.__module__.partition(".")[0] in WRITTEN_DOWN for cls in kind.__mro__)


def marked_items(items, depth):
    return [
        item if type(item) in SCALARS else marked_at(index, item, depth) for index, item in enumerate(items)
    ]


def marked_at(step, item, depth):
    try:
        return marked(item, depth + 1)
    except Unsendable as error:
        error.way.insert(0, step)
        raise


def marked_dict(value, depth):
    # A copy: another thread may write to it meanwhile.
    entries = list(value.items())
    for key, _ in entries:
        if type(key) is not str or key[:1] == MARK:
            within = depth + 2
            pairs = [[marked_key(key, within), marked_at(key, item, within)] for key, item in entries]
            return {MARK + "p": pairs}
    return {
        key: item if type(item) in SCALARS else marked_at(key, item, depth) for key, item in entries
    }


def marked_key(key, depth):
    # A frozenset can be a key in Python only.
    if isinstance(key, frozenset):
        key = tuple(key)
    made = marked_at(key, key, depth)
    # What an iterator becomes is a list, which is no key.
    return {MARK + "t": made} if type(made) is list else made


def described_type(kind):
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("", "builtins") else module + "." + kind.__qualname__
