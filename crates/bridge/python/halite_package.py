"""Functions of an installed `salt` package (and of `saltext.*` packages): what the binary lacks.

The package's own loader is used with the call's options, grains and pillar. Importing it takes a
moment, so it happens when the first such function is asked for. Where there are `saltext.*` packages
but no `salt`, their modules are loaded as users' own are (`Extensions`): they are announced by entry
points of the group `salt.loader`, which name a package with a folder per kind, or a function that
returns folders.
"""

import importlib.util
import logging
import os
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
    key = (kind, id(frame.grains) if frame else 0, id(frame.pillar) if frame else 0, id(frame.opts) if frame else 0)
    found = LOADERS.get(key)
    if found is not None:
        return found
    with LOCK:
        found = made(kind, frame)
        while len(LOADERS) > 12:
            LOADERS.pop(next(iter(LOADERS)))
        LOADERS[key] = found
    return found


def options(frame):
    import salt.config

    opts = {}
    defaults = getattr(salt.config, "DEFAULT_MINION_OPTS", {})
    opts.update(defaults.copy())
    if frame is not None:
        opts.update(frame.opts)
        opts["grains"] = frame.grains
        opts["pillar"] = frame.pillar
    opts.setdefault("id", "minion")
    # Users' modules are loaded by our own loader, not twice.
    opts["extension_modules"] = "/nonexistent/halite"
    for name in list(opts):
        if name.endswith("_dirs") and isinstance(opts[name], list):
            opts[name] = []
    return opts


def made(kind, frame):
    import salt.loader

    opts = options(frame)
    if kind == "modules":
        context = frame.context if frame else {}
        return salt.loader.minion_mods(opts, context=context, utils=salt.loader.utils(opts))
    if kind == "states":
        utils = salt.loader.utils(opts)
        serializers = salt.loader.serializers(opts)
        return salt.loader.states(opts, loader("modules"), utils, serializers)
    if kind == "utils":
        return salt.loader.utils(opts)
    if kind == "runners":
        return salt.loader.runner(opts)
    if kind == "returners":
        return salt.loader.returners(opts, loader("modules"))
    if kind == "renderers":
        return salt.loader.render(opts, loader("modules"))
    if kind == "output":
        return salt.loader.outputters(opts)
    if kind == "sdb":
        return salt.loader.sdb(opts, loader("modules"))
    if kind == "beacons":
        return salt.loader.beacons(opts, loader("modules"))
    if kind == "pillar":
        return salt.loader.pillars(opts, loader("modules"))
    if kind == "engines":
        return salt.loader.engines(opts, loader("modules"), loader("runners"), salt.loader.utils(opts))
    if kind == "tops":
        return salt.loader.tops(opts)
    if kind == "auth":
        return salt.loader.auth(opts)
    if kind == "wheel":
        return salt.loader.wheels(opts)
    return {}


def function(kind, name):
    try:
        found = loader(kind)
    except Exception as error:
        log.warning("the installed salt package cannot load %s: %s", kind, error)
        LOADERS[(kind, 0, 0, 0)] = {}
        return None
    if not found:
        return None
    try:
        return found[name]
    except KeyError:
        return None


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
