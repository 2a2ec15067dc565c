"""The device of a proxy minion: the proxy module, which speaks with it, and its life.

The minion names the module once it has its pillar (`proxy_begin`). An interpreter that is started
later is told the name with its settings, and connects with the device when somebody first wants it.
There is one connection, for all jobs; what `init` leaves in `__context__` every job finds there.
"""

import logging
import os
import sys
import threading

import halite_host as host
import halite_loader as loader
from halite_host import verb

log = logging.getLogger("salt.minion")

# One call at a time connects.
LOCK = threading.Lock()
IS_READY = False
# The chain of calls that connects now: what `init` calls may use the functions of the device.
CONNECTING = None
# What the files of proxy modules looked like.
SEEN = None
# Ends the present connection.
SHUTDOWN = None


def settle():
    """Lets modules know that this is a proxy minion."""
    try:
        import salt.utils.platform as platform
    except ImportError:
        return
    platform.is_proxy = lambda: True


def function(what):
    """A function of the proxy module, None if it has none of that name."""
    return loader.Functions("proxy").get("{}.{}".format(loader.SETTINGS["device"], what))


def is_ready():
    """Whether there is a device; connects with it if this interpreter has not yet."""
    if not IS_READY and (CONNECTING is None or CONNECTING != chain()):
        begin()
    return True


def chain():
    frame = host.frame()
    return frame.chain if frame is not None else None


def begin():
    global CONNECTING, IS_READY, SEEN, SHUTDOWN
    with LOCK:
        if IS_READY:
            return
        end()
        CONNECTING = chain()
        try:
            seen, init = stamps(), function("init")
            if init is None:
                raise KeyError(loader.missing("proxy", loader.SETTINGS["device"] + ".init"))
            init(loader.OPTS)
            SEEN, SHUTDOWN = seen, function("shutdown")
        finally:
            CONNECTING = None
        frame = host.frame()
        if frame is not None:
            host.BEGINNING.clear()
            host.BEGINNING.update((key, value) for key, value in frame.context.items() if key != "retcode")
        IS_READY = True


def end():
    """Disconnects, if there is a connection."""
    global IS_READY, SHUTDOWN
    shutdown, SHUTDOWN, IS_READY = SHUTDOWN, None, False
    if shutdown is None:
        return
    try:
        shutdown(loader.OPTS)
    except Exception as error:
        log.error("The shutdown of the proxy module failed: %s", host.trimmed(error))


def stamps():
    """What the files of proxy modules look like."""
    found = []
    for folder in loader.SETTINGS.get("folders", {}).get("proxy", []):
        try:
            entries = [entry for entry in os.scandir(folder) if entry.name != "__pycache__"]
            found.extend((entry.path, entry.stat().st_mtime_ns, entry.stat().st_size) for entry in entries)
        except OSError:
            continue
    return sorted(found)


def kept():
    """The proxy modules, which hold the connection, if they outlive a reload: their files are the same.

    If they are not, the connection is made anew when somebody next wants it, not in the midst of a reload.
    """
    global IS_READY
    if IS_READY and SEEN != stamps():
        log.info("The proxy modules changed: the connection with the device is made anew")
        IS_READY = False
    return loader.KINDS.get("proxy") if IS_READY or CONNECTING is not None else None


@verb
def proxy_begin(device):
    """Connects with the device; returns whether its module knows how the connection is, or why it is no proxy module."""
    loader.SETTINGS["device"] = device
    package = sys.modules.get("halite_package")
    if package is not None:
        # What was loaded so far knows of no device.
        package.forget()
    for what in ("init", "shutdown"):
        if function(what) is None:
            del loader.SETTINGS["device"]
            return loader.missing("proxy", "{}.{}".format(device, what))
    try:
        begin()
    except BaseException:
        del loader.SETTINGS["device"]
        raise
    return function("alive") is not None


@verb
def proxy_end():
    end()


def grains():
    """What the device says about itself, as `halite_loader.grains` gives it."""
    if not host.frame().opts.get("proxy_merge_grains_in_module", True):
        return []
    told, initialized = function("grains"), function("initialized")
    try:
        if told is None or initialized is not None and not initialized():
            return []
        answer = told()
    except Exception as error:
        log.critical("Failed to load the grains of the proxy module, error:\n%s", host.trimmed(error))
        return []
    if not isinstance(answer, dict):
        return []
    return [(loader.SETTINGS["device"] + ".grains", dict(answer))]
