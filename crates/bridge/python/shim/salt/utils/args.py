"""Arguments of functions."""

import fnmatch
import inspect
import re

KWARG_REGEX = re.compile(r"^([^\d\W][\w.-]*)=(?!=)(.*)$")


def clean_kwargs(**kwargs):
    return {key: value for key, value in kwargs.items() if not key.startswith("__")}


def invalid_kwargs(kwargs, raise_exc=True):
    from salt.exceptions import SaltInvocationError

    if kwargs:
        listed = ", ".join("{}={}".format(key, kwargs[key]) for key in kwargs)
        text = "The following keyword arguments are not valid: {}".format(listed)
        if not raise_exc:
            return text
        raise SaltInvocationError(text)
    return None


def yamlify_arg(arg):
    """What a word of a command line means: its YAML, unless that would take something away from it."""
    if not isinstance(arg, str):
        return arg
    bare = arg.strip()
    if bare in ("", "---", "...") or any(char in arg for char in "\t\r\n"):
        return arg
    if "_" in bare and all(char in "0123456789_" for char in bare):
        return arg
    if arg == "None":
        return None
    import salt.utils.yaml

    try:
        found = salt.utils.yaml.safe_load(arg)
    except Exception:
        return arg
    # A comment would be lost.
    if "#" in arg and (found is None or isinstance(found, str)):
        return arg
    if isinstance(found, (dict, list)) and "#" not in arg:
        return found if arg.startswith("{" if isinstance(found, dict) else "[") else arg
    if arg in ("|", "!") and not found:
        return arg
    return found if found is None or isinstance(found, (dict, list, int, float, str)) else arg


def parse_kwarg(text):
    """`name=value` in two, or twice nothing."""
    found = KWARG_REGEX.match(text) if isinstance(text, str) else None
    return found.groups() if found else (None, None)


def parse_input(args, condition=True, no_parse=None, kwargs=None):
    done, named = [], dict(kwargs or {})
    for arg in args:
        name, value = parse_kwarg(arg)
        if name:
            named[name] = value if name in (no_parse or ()) else yamlify_arg(value)
        else:
            done.append(yamlify_arg(arg))
    return condition_input(done, named) if condition else (done, named)


def parse_function(text):
    found = re.match(r"([\w.]+)\((.*)\)\s*$", text, re.S)
    if not found:
        return None, None, None
    args, kwargs = [], {}
    for part in re.findall(r"(?:[^,\[{(\"']|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|\"[^\"]*\"|'[^']*')+", found.group(2)):
        key, equals, value = part.strip().partition("=")
        if equals and key.isidentifier():
            kwargs[key] = value
        else:
            args.append(part.strip())
    return found.group(1), args, kwargs


def condition_input(args, kwargs):
    done = list(args)
    if kwargs:
        done.append(dict(kwargs, __kwarg__=True))
    return done


def get_function_argspec(func, is_class_method=None):
    spec = inspect.getfullargspec(func)
    args = list(spec.args)
    if is_class_method or (is_class_method is None and inspect.ismethod(func)):
        args = args[1:]

    class ArgSpec(tuple):
        args = property(lambda self: self[0])
        varargs = property(lambda self: self[1])
        keywords = property(lambda self: self[2])
        defaults = property(lambda self: self[3])

    return ArgSpec((args, spec.varargs, spec.varkw, spec.defaults))


def arg_lookup(fun, aspec=None):
    spec = aspec or get_function_argspec(fun)
    defaults = spec.defaults or ()
    cut = len(spec.args) - len(defaults)
    return {"args": list(spec.args[:cut]), "kwargs": dict(zip(spec.args[cut:], defaults))}


def shlex_split(text, **kwargs):
    import shlex

    return shlex.split(text, **kwargs) if isinstance(text, str) else text


def test_mode(**kwargs):
    from salt.utils.data import is_true

    return any(key.lower() == "test" and is_true(value) for key, value in kwargs.items())


def split_input(val, mapper=None):
    mapper = mapper or (lambda item: item)
    items = val if isinstance(val, list) else str(val).split(",")
    return [mapper(item.strip() if isinstance(item, str) else item) for item in items]


def format_call(fun, data, initial_ret=None, expected_extra_kws=(), is_class_method=None):
    """Sorts data into the arguments of a function; complains of what is missing and what nobody takes."""
    from salt.exceptions import SaltInvocationError

    ret = initial_ret if initial_ret is not None else {}
    spec = get_function_argspec(fun, is_class_method=is_class_method)
    known = arg_lookup(fun, spec)
    missing = [name for name in known["args"] if name not in data]
    if missing:
        count = len(known["args"])
        raise SaltInvocationError(
            "{} takes at least {} argument{} ({} given)".format(
                fun.__name__, count, "s" if count > 1 else "", count - len(missing)
            )
        )
    ret["args"] = [data[name] for name in known["args"]]
    ret["kwargs"] = {name: data.get(name, default) for name, default in known["kwargs"].items()}
    others = {
        key: value
        for key, value in data.items()
        if key not in known["args"] and key not in known["kwargs"] and key not in expected_extra_kws
        and not key.startswith("__")
    }
    if spec.keywords:
        ret["kwargs"].update(others)
    elif others:
        named = ", ".join("'{}'".format(key) for key in others)
        if len(others) == 1:
            text = "{} is an invalid keyword argument for '{}'".format(named, fun.__name__)
        else:
            text = "{} are invalid keyword arguments for '{}'".format(named, fun.__name__)
        raise SaltInvocationError(text)
    return ret


def prepare_kwargs(all_kwargs, class_init_kwargs):
    """What a class takes, and the rest."""
    taken = {key: all_kwargs[key] for key in class_init_kwargs if key in all_kwargs}
    return taken, {key: value for key, value in all_kwargs.items() if key not in taken}


def matches_any(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
