"""Functions of an installed `salt` package (and of `saltext.*` packages): what the binary lacks.

The package's own loader is used with the call's options, grains and pillar. Importing it takes a
moment, so it happens when the first such function is asked for. Its `__salt__` has users' functions,
too, as our own loader has them (each file is loaded once), and what only the binary has. Where there
are `saltext.*` packages but no `salt`, their modules are loaded as users' own are (`Extensions`): they
are announced by entry points of the group `salt.loader`, which name a package with a folder per kind,
or a function that returns folders.
"""

import importlib.util
import logging
import os
import sys
import threading
import types

import halite_host as host
import halite_loader
from halite_host import verb

log = logging.getLogger("salt.loader")
LOCK = threading.RLock()
LOADERS = {}


def is_enabled():
    return halite_loader.SETTINGS.get("packages", True)


def present():
    """Tells whether there is anything to ask here."""
    return genuine() or bool(is_enabled() and announced())


def genuine():
    """Tells whether a genuine package can be imported (our own shim does not count)."""
    global PRESENT
    if PRESENT is None:
        PRESENT = False
        if is_enabled():
            try:
                spec = importlib.util.find_spec("salt")
                PRESENT = bool(spec and spec.origin and not str(spec.origin).startswith("<halite"))
            except Exception:
                PRESENT = False
    return PRESENT


PRESENT = None
ANNOUNCED = None
EXTENSIONS = {}


def announced():
    """The entry points of `saltext.*` packages."""
    global ANNOUNCED
    if ANNOUNCED is None:
        try:
            from importlib import metadata

            every = metadata.entry_points()
            # Before Python 3.10 a dict by group.
            found = every.select(group="salt.loader") if hasattr(every, "select") else every.get("salt.loader", [])
            ANNOUNCED = list(found)
        except Exception as error:
            log.debug("entry points cannot be read: %s", error)
            ANNOUNCED = []
    return ANNOUNCED


class Extensions(halite_loader.Kind):
    """The modules of one kind in `saltext.*` packages."""

    def folders(self):
        found = []
        for entry in announced():
            try:
                loaded = entry.load()
                if isinstance(loaded, types.ModuleType):
                    given = [os.path.join(path, self.name) for path in getattr(loaded, "__path__", [])]
                elif callable(loaded):
                    given = loaded()
                    names = (self.name, self.tag, self.name + "_dirs", self.tag + "_dirs")
                    if isinstance(given, dict):
                        given = [path for name in names for path in given.get(name, [])]
                    elif entry.name not in names:
                        given = []
                else:
                    given = []
            except Exception as error:
                log.error("Error calling function from the entry point %s: %s", entry.name, error)
                continue
            found.extend(str(path) for path in given if os.path.isdir(str(path)))
        return found


def extensions(kind):
    with LOCK:
        found = EXTENSIONS.get(kind)
        if found is None:
            found = EXTENSIONS[kind] = Extensions(kind)
            found.load()
    return found


def loader(kind):
    if not genuine():
        return extensions(kind).functions if present() else None
    frame = host.frame()
    basis = (frame.grains, frame.pillar, frame.opts) if frame else ()
    test = frame.full_opts().get("test") if frame else None
    key = (kind, str(test)) + tuple(id(one) for one in basis)
    if kind == "proxy":
        # A proxy module holds the connection with its device.
        key = (kind,)
    found = LOADERS.get(key)
    if found is not None:
        return found[0]
    # Before the lock is taken: a `__virtual__` that another call runs may want it.
    for name in ("utils", "modules", kind):
        halite_loader.kind(name)
    with LOCK:
        found = made(kind, frame)
        # The newest release has a second one behind it, as `__salt__` of its modules.
        for one in (found, getattr(found, "__dict__", {}).get("_dunder_salt")):
            if hasattr(one, "_refresh_file_mapping"):
                join(kind, one)
        while len(LOADERS) > 12:
            LOADERS.pop(next(one for one in LOADERS if one[0] != "proxy"))
        # The values are kept, so that their identities are not used again.
        LOADERS[key] = (found, basis)
    return found


def forget():
    """Users' modules changed: what was made with them is made anew."""
    with LOCK:
        for key in [key for key in LOADERS if key[0] != "proxy"]:
            del LOADERS[key]


def options(frame):
    import salt.config

    opts = {}
    defaults = getattr(salt.config, "DEFAULT_MINION_OPTS", {})
    opts.update(defaults.copy())
    if frame is not None:
        opts.update(frame.full_opts())
        opts["grains"] = dict(frame.grains, **of_interpreter())
        opts["pillar"] = frame.pillar
    opts.setdefault("id", "minion")
    return opts


def of_interpreter():
    """The grains that tell where Salt and Python are: to the package's functions, here."""
    import salt

    return {
        "saltpath": os.path.dirname(os.path.abspath(salt.__file__)),
        "pythonexecutable": sys.executable,
        "pythonpath": list(sys.path),
        "pythonversion": list(sys.version_info),
    }


def join(kind, found):
    """Makes users' functions, and those only the binary has, known to a loader of the package."""
    own = halite_loader.kind(kind)
    theirs = set(own.folders())
    # A user's module is loaded by our own loader, not twice.
    found.module_dirs = [folder for folder in found.module_dirs if folder not in theirs]
    refresh, load = found._refresh_file_mapping, found._load

    def refreshed():
        refresh()
        for name in own.hiding:
            found.file_mapping.pop(name, None)

    def loaded(key):
        # Users' modules may be loading yet: a `__virtual__` looks into `__salt__`.
        if key in own.functions:
            found._dict[key] = own.functions[key]
            return True
        # An invalid name raises.
        answer = load(key)
        if key in found._dict or key not in halite_loader.NATIVE.get(kind, ()):
            return answer
        if key.partition(".")[0] in own.hiding or not halite_loader.is_here(kind, key):
            return answer
        found._dict[key] = native(kind, key)
        return True

    found._refresh_file_mapping, found._load = refreshed, loaded
    refreshed()
    found._dict.update(own.functions)


def native(kind, name):
    """A function of the binary as a plain function, which is all the package's loader knows."""
    function = halite_loader.Native(kind, name)

    def call(*args, **kwargs):
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = function.__name__
    return call


def part():
    """Gives users' modules names of their own in the package's loaders.

    Functions of the package make loaders that look into users' folders, too. Under the same names they
    would find ours in `sys.modules` and put their dunders into them.
    """
    import salt.loader.lazy as lazy

    usual = lazy._mod_type
    if getattr(usual, "_halite", False):
        return
    folders = halite_loader.SETTINGS.get("folders", {}).values()
    theirs = tuple(os.path.join(folder, "") for some in folders for folder in some)

    def mod_type(path):
        return "user" if path.startswith(theirs) else usual(path)

    mod_type._halite = True
    lazy._mod_type = mod_type


def made(kind, frame):
    import salt.loader

    part()
    opts = options(frame)
    # Shows that of whichever job runs: loaders outlive jobs.
    context = halite_loader.CONTEXT
    # A minion hands over nothing: some modules ask for it by name, and take anything for a device.
    proxy = halite_loader.DEVICE if "device" in halite_loader.SETTINGS else None
    if kind == "proxy":
        return salt.loader.proxy(opts, loader("modules"), utils=loader("utils"), context=context)
    if kind == "modules":
        return salt.loader.minion_mods(opts, context=context, utils=loader("utils"), proxy=proxy)
    if kind == "states":
        serializers = salt.loader.serializers(opts)
        found = salt.loader.states(opts, loader("modules"), loader("utils"), serializers, context=context, proxy=proxy)
        found.inject_globals = {
            "__low__": halite_loader.LOW,
            "__lowstate__": halite_loader.LOW,
            "__running__": halite_loader.RUNNING,
            "__instance_id__": str(os.getpid()),
        }
        return found
    if kind == "utils":
        return salt.loader.utils(opts, context=context, proxy=proxy)
    if kind == "runners":
        return salt.loader.runner(opts, utils=loader("utils"), context=context)
    if kind == "returners":
        return salt.loader.returners(opts, loader("modules"), context=context, proxy=proxy)
    if kind == "renderers":
        return salt.loader.render(opts, loader("modules"), proxy=proxy)
    if kind == "output":
        return salt.loader.outputters(opts)
    if kind == "sdb":
        return salt.loader.sdb(opts, loader("modules"), utils=loader("utils"))
    if kind == "beacons":
        return salt.loader.beacons(opts, loader("modules"), context=context, proxy=proxy)
    if kind == "pillar":
        return salt.loader.pillars(opts, loader("modules"), context=context)
    if kind == "engines":
        return salt.loader.engines(opts, loader("modules"), loader("runners"), loader("utils"), proxy=proxy)
    if kind == "tops":
        return salt.loader.tops(opts)
    if kind == "auth":
        return salt.loader.auth(opts)
    if kind == "wheel":
        return salt.loader.wheels(opts, context=context)
    return {}


def function(kind, name):
    try:
        found = loader(kind)
    except Exception as error:
        log.warning("the installed salt package cannot load %s: %s", kind, error)
        return None
    if not found:
        return None
    try:
        return found[name]
    except KeyError:
        return None


def module(kind, name):
    """The module behind the functions `name.*`."""
    try:
        found = loader(kind) or {}
        functions = [found[full] for full in found if full.startswith(name + ".")]
    except Exception as error:
        log.warning("the installed salt package cannot load %s: %s", kind, error)
        return None
    # The loader hands out stand-ins with the function behind them.
    behind = [getattr(function, "func", function) for function in functions]
    return next((sys.modules[one.__module__] for one in behind if one.__module__ in sys.modules), None)


@verb
def package_has(kind, names):
    return [name for name in names if function(kind, name) is not None]


@verb
def package_present():
    return present()


@verb
def package_names(kind):
    found = loader(kind)
    return sorted(found) if found else []


@verb
def package_watches(module):
    found = function("states", module + ".mod_watch")
    return found is not None
