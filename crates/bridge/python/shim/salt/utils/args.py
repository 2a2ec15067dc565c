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
    if not isinstance(arg, str) or not arg.strip():
        return arg
    import salt.utils.yaml

    try:
        return salt.utils.yaml.safe_load(arg)
    except Exception:
        return arg


def parse_input(args, condition=True, no_parse=None):
    done, named = [], {}
    for arg in args:
        found = KWARG_REGEX.match(arg) if isinstance(arg, str) else None
        if found:
            named[found.group(1)] = yamlify_arg(found.group(2))
        else:
            done.append(yamlify_arg(arg))
    if named:
        named["__kwarg__"] = True
        done.append(named)
    return done


def parse_function(text):
    found = re.match(r"([\w.]+)\((.*)\)\s*$", text, re.S)
    if not found:
        return None, None, None
    args, kwargs = [], {}
    for part in re.findall(r"(?:[^,\[{(\"']|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|\"[^\"]*\"|'[^']*')+", found.group(2)):
        key, equals, value = part.strip().partition("=")
        if equals and key.isidentifier():
            kwargs[key] = yamlify_arg(value)
        else:
            args.append(yamlify_arg(part.strip()))
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
    return any(
        key.lower() == "test" and str(value).lower() in ("true", "1", "yes") or value is True and key.lower() == "test"
        for key, value in kwargs.items()
    )


def split_input(val, mapper=None):
    mapper = mapper or (lambda item: item)
    items = val if isinstance(val, list) else str(val).split(",")
    return [mapper(item.strip() if isinstance(item, str) else item) for item in items]


def format_call(fun, data, initial_ret=None, expected_extra_kws=(), is_class_method=None):
    ret = initial_ret if initial_ret is not None else {}
    known = arg_lookup(fun)
    ret["args"] = [data[name] for name in known["args"] if name in data]
    ret["kwargs"] = {name: data.get(name, default) for name, default in known["kwargs"].items()}
    return ret


def prepare_kwargs(all_kwargs, class_init_kwargs):
    return {key: all_kwargs[key] for key in class_init_kwargs if key in all_kwargs}


def matches_any(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
