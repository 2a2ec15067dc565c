"""Users' modules, as Salt loads them: folders, `__virtual__`, dunders, private names.

One `Kind` per folder name (`modules`, `states` …). All files of a kind are loaded when the kind is
first asked for: users have few, and a virtual name can only be known by loading. Dunders are not the
values but views on the current call's values (see halite_host.Frame), because modules live longer
than calls and several calls with different options may run at once.
"""

import importlib
import importlib.util
import logging
import os
import sys
import threading
import types
from collections.abc import Mapping, MutableMapping

import halite_host as host
from halite_host import verb

log = logging.getLogger("salt.loader")

SETTINGS = {}
KINDS = {}
LOCK = threading.RLock()
NATIVE = {}
MODULES = {}

# What Salt calls the kinds in module names (`salt.loaded.ext.module.x`).
TAGS = {"modules": "module", "renderers": "render", "runners": "runners", "output": "output"}
SUFFIXES = (".py", ".pyc", ".so")

# Modules that Salt has in files of other names (`aptpkg`, `cmdmod` …), so that a user's file of that name
# does not hide them.
VIRTUAL = {
    "modules": frozenset(
        (
            "acl cmd group haproxy ini ip locale log lowpkg lvm partition pkg random service shadow sys sysctl "
            "user virtualenv"
        ).split()
    ),
    "states": frozenset("ini pip virtualenv".split()),
}


def settle(settings):
    SETTINGS.update(settings)
    if settings.get("proxy"):
        import halite_proxy

        halite_proxy.settle()
    for kind, names in settings.get("native", {}).items():
        NATIVE[kind] = set(names)
    for folder in reversed(settings.get("folders", {}).get("utils", [])):
        if folder not in sys.path:
            sys.path.insert(0, folder)


class View(MutableMapping):
    """A dunder: shows a value of whichever call runs now."""

    def __init__(self, name, value):
        self._name = name
        self._value = value
        self._fallback = {}

    def value(self):
        frame = host.frame()
        if frame is None:
            return self._fallback
        return self._value(frame)

    def __getitem__(self, key):
        return self.value()[key]

    def __setitem__(self, key, value):
        self.value()[key] = value

    def __delitem__(self, key):
        del self.value()[key]

    def __iter__(self):
        return iter(self.value())

    def __len__(self):
        return len(self.value())

    def __contains__(self, key):
        return key in self.value()

    def __bool__(self):
        return bool(self.value())

    def __eq__(self, other):
        return self.value() == (other.value() if isinstance(other, View) else other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __repr__(self):
        return repr(self.value())

    def __or__(self, other):
        return dict(self) | dict(other)

    def __ror__(self, other):
        return dict(other) | dict(self)

    def get(self, key, default=None):
        return self.value().get(key, default)

    def copy(self):
        return dict(self.value())

    def __copy__(self):
        return dict(self.value())

    def __deepcopy__(self, memo):
        import copy

        return copy.deepcopy(self.value(), memo)

    def __reduce__(self):
        return (dict, (dict(self.value()),))


class DictView(View, dict):
    """`__opts__` and `__running__` are dicts in Salt."""


OPTS = DictView("__opts__", lambda frame: frame.full_opts())
GRAINS = View("__grains__", lambda frame: frame.grains)
PILLAR = View("__pillar__", lambda frame: frame.pillar)
CONTEXT = View("__context__", lambda frame: frame.context)
LOW = View("__low__", lambda frame: frame.low)
RUNNING = DictView("__running__", lambda frame: frame.extra.get("running") or {})


class Native:
    """A function of the binary."""

    def __init__(self, kind, name):
        self.kind = kind
        self.name = name
        self.__name__ = name.rpartition(".")[2]
        self.__qualname__ = self.__name__
        self.__module__ = "salt.loaded.int.{}.{}".format(TAGS.get(kind, kind), name.partition(".")[0])

    def __call__(self, *args, **kwargs):
        return host.conversation().ask("call", self.kind, self.name, list(args), kwargs)

    @property
    def __doc__(self):
        try:
            return (host.conversation().ask("describe", self.kind, self.name) or {}).get("doc")
        except Exception:
            return None

    def __repr__(self):
        return "<function {}>".format(self.name)


def is_of_machine(kind_name, name):
    """Whether a proxy minion must not take the binary's module, which is about this machine."""
    return bool(SETTINGS.get("proxy")) and kind_name + "." + name.partition(".")[0] in NATIVE.get("machine", ())


def is_here(kind_name, name):
    """Whether this machine has what a native module needs: only the binary knows, and it may change."""
    if is_of_machine(kind_name, name):
        return False
    if kind_name + "." + name.partition(".")[0] not in NATIVE.get("needing", ()):
        return True
    try:
        return bool(host.conversation().ask("describe", kind_name, name))
    except Exception:
        return True


class Functions(Mapping):
    """`__salt__` and its like: users' functions, the binary's, those of an installed package."""

    def __init__(self, kind):
        self._kind = kind

    def _find(self, name):
        if not isinstance(name, str):
            return None
        module, dot, _ = name.partition(".")
        own = kind(self._kind)
        if name in own.functions:
            return own.functions[name]
        if not dot or module in own.hiding:
            return None
        if name in NATIVE.get(self._kind, ()):
            if is_here(self._kind, name):
                return Native(self._kind, name)
            if self._kind + "." + module not in NATIVE.get("libraries", ()) and not is_of_machine(self._kind, name):
                return None
        import halite_package

        return halite_package.function(self._kind, name)

    def __getitem__(self, name):
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name):
        return self._find(name) is not None

    def get(self, name, default=None):
        found = self._find(name)
        return default if found is None else found

    def _names(self):
        own = kind(self._kind)
        native = NATIVE.get(self._kind, ())
        modules = {name.partition(".")[0]: name for name in native}
        here = {module for module, name in modules.items() if is_here(self._kind, name)}
        names = {name for name in native if name.partition(".")[0] in here.difference(own.hiding)}
        return sorted(names.union(own.functions))

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())

    def __bool__(self):
        return True

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if not self._has_module(name):
            raise AttributeError(name)
        return Module(self, name)

    def _has_module(self, name):
        modules = MODULES.get(self._kind)
        if modules is None:
            names = NATIVE.get(self._kind, ())
            modules = MODULES[self._kind] = {full.partition(".")[0] for full in names}
        if name in modules or name in kind(self._kind).modules:
            return True
        import halite_package

        # Which modules a package has is only known by their functions.
        return halite_package.present()

    def missing_fun_string(self, name):
        return missing(self._kind, name)

    def __repr__(self):
        return "<functions: {}>".format(self._kind)


class Device(Functions):
    """`__proxy__`: what proxy modules offer. Empty, and false, where there is no device (see halite_proxy)."""

    def __init__(self):
        super().__init__("proxy")

    def _find(self, name):
        return super()._find(name) if device_is_there() else None

    def _names(self):
        """Those of the device's own module, as in Salt; others can be called by their names."""
        if not device_is_there():
            return []
        begin = SETTINGS["device"] + "."
        own = [name for name in kind("proxy").functions if name.startswith(begin)]
        if not own:
            import halite_package

            own = [name for name in halite_package.loader("proxy") or () if name.startswith(begin)]
        return sorted(own)

    def __bool__(self):
        return device_is_there()

    def _has_module(self, name):
        return device_is_there() and super()._has_module(name)


DEVICE = Device()


def device_is_there():
    """Only proxy minions have one; they say so when they have read their pillar."""
    if "device" not in SETTINGS:
        return False
    import halite_proxy

    return halite_proxy.is_ready()


class Module:
    """`__salt__.cmd`"""

    def __init__(self, functions, name):
        self._functions = functions
        self._name = name

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._functions[self._name + "." + name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, name):
        return self._functions[self._name + "." + name]


class Serializers(Mapping):
    """`__serializers__`: `__serializers__['yaml.serialize'](data)`."""

    def __getitem__(self, name):
        own = kind("serializers").functions.get(name)
        if own is not None:
            return own
        module, _, function = name.partition(".")
        try:
            found = importlib.import_module("salt.serializers." + module)
            return getattr(found, function)
        except (ImportError, AttributeError):
            raise KeyError(name) from None

    def __iter__(self):
        return iter(kind("serializers").functions)

    def __len__(self):
        return len(kind("serializers").functions)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return Module(self, name)



def dunders(kind_name):
    """What a module of this kind finds in its globals."""
    salt = "runners" if kind_name in ("runners", "thorium") else "modules"
    found = {
        "__opts__": OPTS,
        "__grains__": GRAINS,
        "__pillar__": PILLAR,
        "__context__": CONTEXT,
        "__salt__": Functions(salt),
        "__utils__": Functions("utils"),
        "__states__": Functions("states"),
        "__runner__": Functions("runners"),
        "__runners__": Functions("runners"),
        "__wheel__": Functions("wheel"),
        "__ret__": Functions("returners"),
        "__sdb__": Functions("sdb"),
        "__executors__": Functions("executors"),
        "__serializers__": Serializers(),
        "__proxy__": DEVICE,
        "__proxyenabled__": [],
        "__low__": LOW,
        "__lowstate__": LOW,
        "__running__": RUNNING,
        "__instance_id__": str(os.getpid()),
        "__env__": "base",
        "__active_provider_names__": [],
        "__jid_event__": Fire(),
        "__master_opts__": OPTS,
        "__file_client__": None,
        "__events__": Fire(),
    }
    found["__active_provider_name__"] = None
    return found


class Fire:
    """`__jid_event__.fire_event(data, tag)`"""

    def fire_event(self, data, tag="", timeout=None):
        return host.conversation().ask("fire", tag, data)

    def __getattr__(self, name):
        raise AttributeError(name)


class Kind:
    def __init__(self, name):
        self.name = name
        self.tag = TAGS.get(name, name)
        # "mod.fun" → function; names of modules; why a module is not there.
        self.functions = {}
        self.modules = {}
        # Modules of users in whose place nothing else is looked for.
        self.hiding = set()
        self.missing = {}
        self.order = []
        self.files = {}
        self.loaded = threading.Event()
        # The chain of calls that loads it.
        self.loading_for = None

    def folders(self):
        return SETTINGS.get("folders", {}).get(self.name, [])

    def load(self):
        for folder in self.folders():
            try:
                entries = sorted(os.listdir(folder))
            except OSError:
                continue
            for entry in entries:
                path = os.path.join(folder, entry)
                base, suffix = os.path.splitext(entry)
                if suffix in SUFFIXES and not base.startswith(("__", ".")):
                    base = base.split(".")[0]
                elif os.path.isfile(os.path.join(path, "__init__.py")) and not entry.startswith("_"):
                    base, path = entry, os.path.join(path, "__init__.py")
                elif suffix == ".zip":
                    self.add_zip(path)
                    continue
                else:
                    continue
                if base in self.files or self.is_disabled(base):
                    continue
                self.files[base] = path
        for base, path in list(self.files.items()):
            self.add(base, path)

    def is_disabled(self, base):
        disabled = SETTINGS.get("disabled", {}).get(self.name, [])
        return base in disabled

    def add_zip(self, path):
        import zipfile

        try:
            names = zipfile.ZipFile(path).namelist()
        except (OSError, zipfile.BadZipFile):
            return
        if path not in sys.path:
            sys.path.insert(0, path)
        base = os.path.splitext(os.path.basename(path))[0]
        if any(name in (base + ".py", base + "/__init__.py") for name in names):
            self.files.setdefault(base, path)

    def add(self, base, path):
        full = "salt.loaded.ext.{}.{}".format(self.tag, base)
        parents()
        package = "salt.loaded.ext." + self.tag
        if package not in sys.modules:
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = [os.path.dirname(path)]
        given = dunders(self.name)
        try:
            module = self.executed(base, path, full, given)
        except BaseException as error:
            sys.modules.pop(full, None)
            if isinstance(error, host.TimedOut):
                raise
            self.missing[base] = str(error) or repr(error)
            level = logging.DEBUG if isinstance(error, ImportError) else logging.ERROR
            log.log(level, "Failed to import %s %s: %s", self.tag, base, host.trimmed(error))
            return
        for name, value in given.items():
            current = module.__dict__.get(name)
            # Some authors set `__salt__ = {}` to please their linter.
            if current is None or isinstance(current, dict) and not current:
                module.__dict__[name] = value
        name, reason, virtual = self.virtual(module, base)
        if name is None:
            self.missing[base] = reason
            if virtual and virtual != base:
                self.missing.setdefault(virtual, reason)
            log.debug("%s %s is not loaded: %s", self.tag, base, reason)
            return
        init = module.__dict__.get("__init__")
        if callable(init):
            try:
                init(OPTS)
            except TypeError:
                init()
            except Exception as error:
                log.error("__init__ of %s failed: %s", base, host.trimmed(error))
        names = [name]
        for alias in getattr(module, "__virtual_aliases__", ()) or ():
            names.append(alias)
        for one in names:
            hides = one == base
            if hides and one not in VIRTUAL.get(self.name, ()):
                self.hiding.add(one)
            if hides or one not in self.modules:
                self.modules[one] = module
            self.order.append((one, module))
            # `__utils__` has what a file imports, too.
            for function_name, function in functions_of(module, self.name == "utils"):
                full = one + "." + function_name
                if hides or not (full in self.functions or self.yields(base, one, full)):
                    self.functions[full] = function
        # Only of modules that know the decorator `depends`.
        decorators = sys.modules.get("salt.utils.decorators")
        if decorators is not None:
            decorators.Depends.enforce_dependencies(self.functions, self.tag, base)

    def yields(self, base, name, full):
        """Tells whether the binary's function is taken rather than that of a file of another name.

        Salt looks for `pkg.version` in a file called `pkg`, then in files with `pkg` in their names,
        users' first, then in all others, and takes the first that has it.
        """
        if full not in NATIVE.get(self.name, ()) or is_of_machine(self.name, full):
            return False
        return name not in VIRTUAL.get(self.name, ()) or name not in base

    def executed(self, base, path, full, given):
        if path.endswith(".zip"):
            module = importlib.import_module(base)
            module.__dict__.update(given)
            return module
        is_package = os.path.basename(path) == "__init__.py"
        search = [os.path.dirname(path)] if is_package else None
        spec = importlib.util.spec_from_file_location(full, path, submodule_search_locations=search)
        module = importlib.util.module_from_spec(spec)
        module.__dict__.update(given)
        module.__dict__["__virtualname__"] = base
        sys.modules[full] = module
        write = sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        # While it loads a module can import the files beside it, and only then; last, so that they hide nothing.
        folder = os.path.dirname(path)
        sys.path.append(folder)
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(folder)
            sys.dont_write_bytecode = write
        return module

    def virtual(self, module, base):
        """Returns the name to load under, or why not."""
        virtualname = getattr(module, "__virtualname__", base) or base
        function = module.__dict__.get("__virtual__")
        if function is None or not isinstance(function, types.FunctionType):
            return base if function is None else virtualname, None, virtualname
        try:
            answer = function()
        except Exception as error:
            text = "Exception raised when processing __virtual__ function for {}. Module will not be loaded: {}".format(
                module.__name__, error
            )
            log.error("%s", text)
            log.debug("%s", host.trimmed(error))
            return None, text, virtualname
        reason = None
        if isinstance(answer, tuple):
            reason = answer[1] if len(answer) > 1 else None
            answer = answer[0]
        if not answer:
            text = "'{}' __virtual__ returned False".format(base)
            return None, text + (": {}".format(reason) if reason else ""), virtualname
        if answer is True:
            return virtualname, None, virtualname
        return str(answer), None, virtualname


def parents():
    for name in ("salt.loaded", "salt.loaded.ext", "salt.loaded.int"):
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = []


def functions_of(module, with_imported=False):
    """The functions a module offers: its own, not those it imports."""
    alias = getattr(module, "__func_alias__", None) or {}
    for name in getattr(module, "__load__", None) or dir(module):
        if name.startswith("_"):
            continue
        function = getattr(module, name, None)
        if not isinstance(function, types.FunctionType):
            continue
        if with_imported or function.__module__ == module.__name__:
            yield alias.get(name, name), function


def fitting(function, given):
    """Those of the named values that a function takes."""
    import inspect

    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return given
    names = {one.name for one in parameters}
    return {name: value for name, value in given.items() if name in names}


def kind(name):
    found = KINDS.get(name)
    if found is not None and found.loaded.is_set():
        return found
    frame = host.frame()
    chain = frame.chain if frame is not None else None
    with LOCK:
        found = KINDS.get(name)
        is_ours = found is None
        if is_ours:
            # Visible while it loads: a `__virtual__` may look into `__salt__`.
            found = KINDS[name] = Kind(name)
            found.loading_for = chain
    if is_ours:
        try:
            found.load()
        finally:
            found.loaded.set()
    elif chain is not None and chain != found.loading_for:
        # Another call loads them. Our own must not wait for itself.
        found.loaded.wait(120)
    return found


def missing(kind_name, name):
    own = kind(kind_name)
    module = name.partition(".")[0]
    reason = own.missing.get(module)
    if reason:
        return reason if reason.startswith("'") else "'{}' __virtual__ returned False: {}".format(module, reason)
    return "'{}' is not available.".format(name)


@verb
def reload():
    package = sys.modules.get("halite_package")
    if package is not None:
        package.forget()
    proxy = sys.modules.get("halite_proxy")
    kept = proxy.kept() if proxy is not None else None
    with LOCK:
        KINDS.clear()
        if kept is not None:
            KINDS["proxy"] = kept
        for name in [name for name in sys.modules if name.startswith("salt.loaded.ext.")]:
            if kept is None or not (name + ".").startswith("salt.loaded.ext.proxy."):
                del sys.modules[name]
        folders = SETTINGS.get("folders", {})
        for folder in folders.get("utils", []):
            for name, module in list(sys.modules.items()):
                file = getattr(module, "__file__", None)
                if file and file.startswith(folder + os.sep):
                    del sys.modules[name]
        importlib.invalidate_caches()
    return True


@verb
def listing(kind_name):
    """Names of functions, modules that are there, and why others are not."""
    own = kind(kind_name)
    outputters = {}
    for name, module in own.order:
        for function, outputter in (getattr(module, "__outputter__", None) or {}).items():
            outputters[name + "." + function] = outputter
    return {
        "functions": sorted(own.functions),
        "modules": sorted(own.hiding),
        "missing": dict(own.missing),
        "outputters": outputters,
        # Not while it loads: a `__virtual__` may ask.
        "whole": own.loaded.is_set(),
    }


def argspec(function):
    import inspect

    try:
        # A decorated function takes what the one below takes.
        spec = inspect.getfullargspec(inspect.unwrap(function))
    except (TypeError, ValueError):
        return {"args": [], "defaults": None, "varargs": None, "kwargs": None}
    args = list(spec.args) + list(spec.kwonlyargs)
    defaults = list(spec.defaults or ())
    for name in spec.kwonlyargs:
        if spec.kwonlydefaults and name in spec.kwonlydefaults:
            defaults.append(spec.kwonlydefaults[name])
    if args and args[0] in ("self", "cls") and inspect.ismethod(function):
        args = args[1:]
    return {
        "args": args,
        "defaults": [default if simple(default) else repr(default) for default in defaults],
        "varargs": spec.varargs,
        "kwargs": spec.varkw,
        "keyword_only": list(spec.kwonlyargs),
        "required_keywords": [
            name for name in spec.kwonlyargs if not (spec.kwonlydefaults and name in spec.kwonlydefaults)
        ],
    }


def simple(value):
    return value is None or isinstance(value, (bool, int, float, str, bytes, list, tuple, dict))


@verb
def describe(kind_name, names):
    import inspect

    found = {}
    for name in names:
        if "." not in name:
            module = module_of(kind_name, name)
            if module is not None:
                found[name] = {"doc": inspect.getdoc(module), "raw_doc": module.__doc__}
            continue
        function = lookup(kind_name, name)
        if function is not None:
            found[name] = {"doc": inspect.getdoc(function) if function.__doc__ else None, "spec": argspec(function)}
            found[name]["raw_doc"] = function.__doc__
            module = kind(kind_name).modules.get(name.partition(".")[0])
            outputters = getattr(module, "__outputter__", None) or {}
            outputter = outputters.get(name.partition(".")[2])
            if isinstance(outputter, str):
                found[name]["outputter"] = outputter
    return found


def module_of(kind_name, name):
    """The module of that name, a user's or an installed package's; of several, the one that has its name."""
    own = kind(kind_name).modules.get(name)
    if own is not None:
        return own
    import halite_package

    return halite_package.module(kind_name, name)


def lookup(kind_name, name):
    if kind_name == "proxy":
        return DEVICE.get(name)
    own = kind(kind_name)
    found = own.functions.get(name)
    if found is None and name.partition(".")[0] not in own.hiding:
        import halite_package

        found = halite_package.function(kind_name, name)
    return found


# job → state modules whose `mod_init` is done
BEGUN = {}


def begin_module(frame, module):
    """Calls a state module's `mod_init` before its first state of a run, and again until it says it is done."""
    begun = host.of_job(BEGUN, frame.jid, set)
    if module not in begun:
        init = lookup("states", module + ".mod_init")
        if init is None or init(frame.low):
            begun.add(module)


@verb
def run(kind_name, name, args, kwargs):
    function = lookup(kind_name, name)
    if function is None:
        raise KeyError(missing(kind_name, name))
    frame = host.frame()
    # Only states of a run have low data.
    if kind_name == "states" and frame.low:
        begin_module(frame, name.partition(".")[0])
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if kind_name == "states" and module is not None:
        module.__dict__["__env__"] = frame.env
    elif frame.extra.get("env") is not None and module is not None:
        module.__dict__["__env__"] = frame.extra["env"]
    value = function(*args, **kwargs)
    if isinstance(value, types.GeneratorType):
        value = list(value)
    return value


@verb
def grains():
    """Runs all grains functions; returns what each gave, in order."""
    import inspect

    results = []
    own = kind("grains")
    frame = host.frame()
    device = DEVICE if DEVICE else None
    for name, module in own.order:
        if device is not None and not is_for_device(module):
            continue
        for function_name, function in functions_of(module):
            try:
                accepts = inspect.signature(function).parameters
                given = {}
                if "grains" in accepts:
                    given["grains"] = frame.grains
                if "proxy" in accepts:
                    given["proxy"] = device
                answer = function(**given)
            except Exception as error:
                log.critical(
                    "Failed to load grains defined in grain file %s.%s in function %s, error:\n%s",
                    own.tag, name, function_name, host.trimmed(error),
                )
                continue
            if isinstance(answer, Mapping):
                answer = dict(answer)
                results.append((name + "." + function_name, answer))
                # Later modules see what earlier ones gave.
                frame.grains.update(answer)
    if device is not None:
        import halite_proxy

        results.extend(halite_proxy.grains())
    return results


def is_for_device(module):
    """Whether a grains module speaks for a device: it names its type, or all."""
    named = getattr(module, "__proxyenabled__", None) or ()
    return "*" in named or SETTINGS["device"] in named
