"""Loading functions from scripts and modules."""

from salt import _host


def minion_mods(opts, context=None, utils=None, whitelist=None, initial_load=False, loaded_base_name=None,
                notify=False, static_modules=None, proxy=None):
    """Returns execution functions: those of the running host, or of `salt-call --local`."""
    found = _host.functions()
    if found is not None:
        return found
    from salt.client import Caller

    return Caller(mopts=dict(opts, file_client="local")).functions()


def utils(opts, whitelist=None, context=None, proxy=None, **kwargs):
    return _host.functions("utils") or {}


def states(opts, functions, utils, serializers, whitelist=None, proxy=None, context=None, **kwargs):
    return _host.functions("states") or {}


def runner(opts, utils=None, context=None, whitelist=None):
    return _host.functions("runners") or {}


def returners(opts, functions, whitelist=None, context=None, proxy=None):
    return _host.functions("returners") or {}


def grains(opts, force_refresh=False, proxy=None, context=None):
    own = _host.opts()
    if own is not None:
        return own.get("grains", {})
    return minion_mods(opts)["grains.items"]()


def render(opts, functions, states=None, proxy=None, context=None):
    return _host.functions("renderers") or {}
