"""Python as a template language: `#!py` files, users' renderers, and Jinja filters of users' utils."""

import inspect
import io
import re
import types

import halite_host as host
import halite_loader as loader
from halite_host import verb


def names(saltenv, sls, context):
    """The globals of a `#!py` file."""
    functions = loader.Functions("modules")
    found = {
        "__salt__": functions,
        "__grains__": loader.GRAINS,
        "__pillar__": loader.PILLAR,
        "__opts__": loader.OPTS,
        "__context__": loader.CONTEXT,
        "__utils__": loader.Functions("utils"),
        "__env__": saltenv,
        "__sls__": sls,
        "salt": functions,
        "grains": loader.GRAINS,
        "pillar": loader.PILLAR,
        "opts": loader.OPTS,
        "saltenv": saltenv,
        "sls": sls,
    }
    found.update(context)
    # Template files find what their state gives them here.
    found.setdefault("context", context)
    return found


@verb
def py(source, path, saltenv, sls, context):
    """Runs `run()` of a source text."""
    module = types.ModuleType(sls.replace(".", "_") if sls else "template")
    module.__file__ = path
    module.__dict__.update(names(saltenv, sls, context))
    if source.startswith("#!"):
        # Keeps the line numbers.
        source = "#" + source
    exec(compile(source, path, "exec"), module.__dict__)
    run = module.__dict__.get("run")
    if not callable(run):
        raise AttributeError("module '{}' has no attribute 'run'".format(module.__name__))
    value = run()
    if inspect.isgenerator(value):
        value = list(value)
    return value


@verb
def render(name, data, path, saltenv, sls, args, context):
    """Runs a renderer of the user's: `render(data, saltenv, sls, argline, **kwargs)`."""
    function = loader.lookup("renderers", name + ".render")
    if function is None:
        return built_in(name, data, path, saltenv, sls, context)
    accepts = inspect.signature(function).parameters
    takes_all = any(one.kind is one.VAR_KEYWORD for one in accepts.values())
    given = {
        "saltenv": saltenv,
        "sls": sls,
        "argline": args,
        "tmplpath": path,
        "context": dict(context),
        "from_str": False,
    }
    if not takes_all:
        given = {key: value for key, value in given.items() if key in accepts}
    elif not args:
        del given["argline"]
    if isinstance(data, str):
        data = io.StringIO(data)
    value = function(data, **given)
    return value.read() if hasattr(value, "read") else value


# Renderers of Salt's that are thin layers over a Python package: name → (package, as data).
PACKAGES = {
    "mako": "mako",
    "genshi": "genshi",
    "cheetah": "Cheetah",
    "wempy": "wemplate",
    "hjson": "hjson",
    "json5": "json5",
    "dson": "dson",
}


def needed(name, package):
    from salt.exceptions import SaltRenderError

    return SaltRenderError(
        "The renderer \"{}\" needs the Python package `{}`, which is not installed".format(name, package)
    )


SEALED = re.compile(r"NACL\[(.*?)\]", re.MULTILINE | re.DOTALL)


def unsealed(data):
    """Opens what stands as `NACL[base64]` in a text, or anywhere in data."""
    if isinstance(data, dict):
        return {key: unsealed(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [unsealed(value) for value in data]
    if not isinstance(data, str) or not SEALED.search(data):
        return data
    return SEALED.sub(lambda found: opened(found.group(0), found.group(1)), data)


def opened(whole, sealed):
    try:
        import nacl.exceptions
        import nacl.public
        import nacl.secret
    except ImportError:
        raise needed("nacl", "PyNaCl")
    import base64
    import logging

    settings = dict(loader.OPTS.get("nacl.config") or {})
    place = "/etc/salt/pki/{}/nacl".format("master" if loader.OPTS.get("__role") == "master" else "minion")
    secret = settings.get("sk")
    try:
        if not secret:
            with open(settings.get("sk_file") or place, encoding="ascii") as file:
                secret = file.read()
        secret = base64.b64decode(secret)
        cipher = base64.b64decode("".join(sealed.split()))
        if settings.get("box_type", "sealedbox") == "secretbox":
            plain = nacl.secret.SecretBox(secret).decrypt(cipher)
        else:
            plain = nacl.public.SealedBox(nacl.public.PrivateKey(secret)).decrypt(cipher)
        return plain.decode("utf-8")
    except (OSError, ValueError, TypeError, nacl.exceptions.CryptoError) as error:
        # What cannot be opened stays, as what gpg cannot open does: the state that uses it says so.
        logging.getLogger(__name__).error("the renderer nacl cannot open a value: %s", error)
        return whole


def built_in(name, data, path, saltenv, sls, context):
    """Runs a renderer that Halite leaves to Python."""
    if name == "nacl":
        return unsealed(data)
    if not isinstance(data, str):
        raise TypeError("{} renders text, not data".format(name))
    if name == "pyobjects":
        import halite_pyobjects

        return halite_pyobjects.render(data, path, saltenv, sls, context)
    try:
        package = __import__(PACKAGES[name])
    except ImportError:
        raise needed(name, PACKAGES[name])
    if name in ("hjson", "json5", "dson"):
        # These formats have no line for the pipe.
        body = data.partition("\n")[2] if data.startswith("#!") else data
        return package.loads(body) if body.strip() else {}
    return template(name, data, path, dict(names(saltenv, sls, context), env=saltenv))


def template(name, text, path, variables):
    if name == "mako":
        from mako.lookup import TemplateLookup
        from mako.template import Template

        folders = TemplateLookup([path.rpartition("/")[0] or "."])
        # Names of Mako's own, which newer ones refuse to be given.
        variables = {key: value for key, value in variables.items() if key not in ("context", "loop", "UNDEFINED")}
        return Template(text, lookup=folders, strict_undefined=True, uri=path).render(**variables)
    if name == "genshi":
        from genshi.template import NewTextTemplate

        return str(NewTextTemplate(text).generate(**variables).render("text"))
    if name == "cheetah":
        from Cheetah.Template import Template

        return str(Template(text, searchList=[variables]))
    from wemplate import Template

    return Template(text).substitute(variables)


# Which decorators mark a function, and as what.
MARKS = (("filters", "_halite_jinja_filter"), ("tests", "_halite_jinja_test"), ("globals", "_halite_jinja_global"))
FOUND = {}


def marked():
    """Functions of users' utils and modules that the `jinja_filter` decorators mark."""
    utils = loader.kind("utils")
    if FOUND.get("of") is utils:
        return FOUND
    FOUND.clear()
    FOUND["of"] = utils
    for what, mark in MARKS:
        FOUND[what] = {}
    for kind in ("utils", "modules"):
        for _, module in loader.kind(kind).order:
            for value in list(vars(module).values()):
                for what, mark in MARKS:
                    name = getattr(value, mark, None)
                    if isinstance(name, str):
                        FOUND[what].setdefault(name, value)
    genuine(FOUND)
    return FOUND


def genuine(found):
    """With the genuine package its own decorators keep the lists."""
    import sys

    jinja = sys.modules.get("salt.utils.decorators.jinja")
    for what, holder in (("filters", "JinjaFilter"), ("tests", "JinjaTest"), ("globals", "JinjaGlobal")):
        listed = getattr(getattr(jinja, holder, None), "salt_jinja_" + what, None)
        if isinstance(listed, dict):
            for name, function in listed.items():
                module = getattr(function, "__module__", "") or ""
                if module.startswith("salt.loaded.ext."):
                    found[what].setdefault(name, function)


@verb
def jinja_names():
    found = marked()
    return {what: sorted(found[what]) for what, _ in MARKS}


@verb
def jinja_call(what, name, args, kwargs):
    return marked()[what][name](*args, **kwargs)


@verb
def output(name, data, extra):
    """Runs an outputter of the user's: `output(data, **kwargs)`; it may take `_retcode`."""
    function = loader.lookup("output", name + ".output")
    if function is None:
        raise KeyError(name)
    return function(data, **loader.fitting(function, extra))


@verb
def ext_pillar(name, minion_id, pillar, config):
    """Runs `ext_pillar(minion_id, pillar, …)` with what the configuration gives it."""
    function = loader.lookup("pillar", name + ".ext_pillar")
    if function is None:
        raise KeyError(name)
    accepts = list(inspect.signature(function).parameters)
    first = [minion_id, pillar]
    if accepts[:1] == ["pillar"]:
        # The oldest form had no minion id.
        first = [pillar]
    if isinstance(config, dict):
        return function(*first, **config)
    if isinstance(config, list):
        return function(*first, *config)
    if config is None:
        return function(*first)
    return function(*first, config)


@verb
def returner(name, ret):
    """Hands a job's return to a returner of the user's."""
    function = loader.lookup("returners", name + ".returner")
    if function is None:
        raise KeyError(name)
    return function(ret)
