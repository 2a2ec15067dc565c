"""What is left of six on Python 3: enough for modules that were written for both."""

import builtins
import io
import sys
import types

PY2 = False
PY3 = True
PY34 = True
string_types = (str,)
integer_types = (int,)
class_types = (type,)
text_type = str
binary_type = bytes
MAXSIZE = sys.maxsize
StringIO = io.StringIO
BytesIO = io.BytesIO
cStringIO = io.StringIO
iterbytes = iter
unichr = chr
next = advance_iterator = builtins.next
print_ = builtins.print
exec_ = builtins.exec


def u(text):
    return text


def b(text):
    return text.encode("latin-1")


def iteritems(value, **kwargs):
    return iter(value.items(**kwargs))


def iterkeys(value, **kwargs):
    return iter(value.keys(**kwargs))


def itervalues(value, **kwargs):
    return iter(value.values(**kwargs))


def viewitems(value):
    return value.items()


def viewkeys(value):
    return value.keys()


def viewvalues(value):
    return value.values()


def callable(value):  # noqa: A001
    return hasattr(value, "__call__")


def reraise(kind, value, trace=None):
    raise value.with_traceback(trace) if trace is not None else value


def raise_from(value, cause):
    raise value from cause


def with_metaclass(meta, *bases):
    return types.new_class("temporary", bases, {"metaclass": meta})


def add_metaclass(meta):
    def wrapper(cls):
        space = {key: value for key, value in cls.__dict__.items() if key not in ("__dict__", "__weakref__")}
        return meta(cls.__name__, cls.__bases__, space)

    return wrapper


def ensure_str(value, encoding="utf-8", errors="strict"):
    return value.decode(encoding, errors) if isinstance(value, bytes) else value


ensure_text = ensure_str


def ensure_binary(value, encoding="utf-8", errors="strict"):
    return value.encode(encoding, errors) if isinstance(value, str) else value


def python_2_unicode_compatible(cls):
    return cls


def _moves():
    import collections
    import configparser
    import functools
    import html.parser
    import http.client
    import importlib
    import itertools
    import queue
    import urllib.error
    import urllib.parse
    import urllib.request

    moves = types.ModuleType("salt.ext.six.moves")
    moves.__path__ = []
    names = {
        "range": range,
        "xrange": range,
        "map": map,
        "zip": zip,
        "filter": filter,
        "input": input,
        "reduce": functools.reduce,
        "zip_longest": itertools.zip_longest,
        "filterfalse": itertools.filterfalse,
        "StringIO": io.StringIO,
        "cStringIO": io.StringIO,
        "UserDict": collections.UserDict,
        "UserList": collections.UserList,
        "configparser": configparser,
        "queue": queue,
        "http_client": http.client,
        "html_parser": html.parser,
        "builtins": builtins,
        "reload_module": importlib.reload,
        "shlex_quote": __import__("shlex").quote,
        "cPickle": __import__("pickle"),
        "intern": sys.intern,
        "getcwd": __import__("os").getcwd,
    }
    moves.__dict__.update(names)
    urls = types.ModuleType("salt.ext.six.moves.urllib")
    urls.__path__ = []
    urls.parse, urls.request, urls.error = urllib.parse, urllib.request, urllib.error
    moves.urllib = urls
    sys.modules["salt.ext.six.moves"] = moves
    for name, module in (
        ("urllib", urls),
        ("urllib.parse", urllib.parse),
        ("urllib.request", urllib.request),
        ("urllib.error", urllib.error),
        ("configparser", configparser),
        ("queue", queue),
        ("http_client", http.client),
        ("builtins", builtins),
    ):
        sys.modules["salt.ext.six.moves." + name] = module
    return moves


__path__ = []
moves = _moves()
