"""Functions that borrow another module's globals."""

import types


def namespaced_function(function, global_dict, defaults=None, preserve_context=None):
    scope = dict(function.__globals__)
    scope.update(global_dict)
    made = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__ if defaults is None else defaults,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    made.__dict__.update(function.__dict__)
    return made


def alias_function(function, name, doc=None):
    made = types.FunctionType(
        function.__code__, function.__globals__, str(name), function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__doc__ = doc if isinstance(doc, str) else "\nThis function is an alias of ``{}``.\n{}".format(
        function.__name__, function.__doc__ or ""
    )
    return made


def parse_function(text):
    import salt.utils.args

    return salt.utils.args.parse_function(text)


def call_function(function, *args, **kwargs):
    return function(*args, **kwargs)
