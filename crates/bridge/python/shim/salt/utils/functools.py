"""Functions that borrow another module's globals, or have a second name."""

import types


def _twin(function, name=None, scope=None, defaults=None):
    """A function that does the same; what is not given is taken from the first."""
    twin = types.FunctionType(
        function.__code__,
        function.__globals__ if scope is None else scope,
        name=name or function.__name__,
        argdefs=function.__defaults__ if defaults is None else defaults,
        closure=function.__closure__,
    )
    for what in ("__doc__", "__kwdefaults__"):
        setattr(twin, what, getattr(function, what))
    vars(twin).update(vars(function))
    return twin


def namespaced_function(function, global_dict, defaults=None, preserve_context=None):
    return _twin(function, scope={**function.__globals__, **global_dict}, defaults=defaults)


def alias_function(function, name, doc=None):
    twin = _twin(function, name=str(name))
    if not isinstance(doc, str):
        lines = ["", f"This function is an alias of ``{function.__name__}``.", function.__doc__ or ""]
        doc = "\n".join(lines)
    twin.__doc__ = doc
    return twin


def parse_function(text):
    import salt.utils.args

    return salt.utils.args.parse_function(text)


def call_function(function, *args, **kwargs):
    return function(*args, **kwargs)
