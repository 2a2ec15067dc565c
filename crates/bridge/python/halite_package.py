"""Functions of an installed `salt` package (and of `saltext.*` packages): what the binary lacks.

The package's own loader is used with the call's options, grains and pillar. Importing it takes a
moment, so it happens when the first such function is asked for.
"""

import importlib.util
import logging
import sys
import threading

import halite_host as host
from halite_host import verb

log = logging.getLogger("salt.loader")
LOCK = threading.RLock()
ENABLED = True
LOADERS = {}


def settle(settings):
    global ENABLED
    ENABLED = settings.get("packages", True)


def present():
    """Tells whether a genuine package can be imported (our own shim does not count)."""
    global PRESENT
    if PRESENT is None:
        PRESENT = False
        if ENABLED:
            try:
                spec = importlib.util.find_spec("salt")
                PRESENT = bool(spec and spec.origin and not str(spec.origin).startswith("<halite"))
            except Exception:
                PRESENT = False
    return PRESENT


PRESENT = None


def loader(kind):
    if not present():
        return None
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
