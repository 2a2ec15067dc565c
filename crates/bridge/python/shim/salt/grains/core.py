"""Grains by the functions that give them in Salt: each returns those that Halite has found.

Users' own grains modules call them to build on. Which function gives which grain is not kept apart: all
return what is known of the machine.
"""


def _known():
    try:
        import halite_host
    except ImportError:
        return {}
    frame = halite_host.frame()
    return dict(frame.grains) if frame is not None else {}


def _some(*names):
    known = _known()
    return {name: known[name] for name in names if name in known}


def os_data():
    return _known()


def hostname():
    return _some("localhost", "fqdn", "host", "domain")


def id_():
    return _some("id")


def ip4():
    return _some("ipv4")


def ip6():
    return _some("ipv6")


def ip_interfaces():
    return _some("ip_interfaces")


def hwaddr_interfaces():
    return _some("hwaddr_interfaces")


def path():
    return _some("path", "systempath")


def pythonversion():
    return _some("pythonversion")


def saltversion():
    return _some("saltversion")


def locale_info():
    return _some("locale_info")
