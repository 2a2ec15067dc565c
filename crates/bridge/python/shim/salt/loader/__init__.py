"""Loading functions from scripts and modules."""

from collections.abc import Mapping

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


class Renderers(Mapping):
    """Renderers by name: those of Halite and users' own."""

    def _names(self):
        own = (name.partition(".")[0] for name in _host.functions("renderers") or ())
        return sorted(set(_host.call("sys.list_renderers")).union(own))

    def __getitem__(self, name):
        own = (_host.functions("renderers") or {}).get(name + ".render")
        if own is not None:
            return own
        if name not in self._names():
            raise KeyError(name)

        def rendered(data, saltenv="base", sls="", argline="", **context):
            text = data.read() if hasattr(data, "read") else data
            given = {"sls": sls} if sls else {}
            return _host.call(
                "slsutil.renderer", string=text, default_renderer=(name + " " + argline).strip(), saltenv=saltenv,
                **given, **(context.get("context") or {}),
            )

        return rendered

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())


def render(opts, functions, states=None, proxy=None, context=None, **kwargs):
    return Renderers() if _host.functions() is not None else {}


def _of(kind):
    def found(opts, *args, **kwargs):
        return _host.functions(kind) or {}

    return found


auth, beacons, engines, executors, matchers = map(_of, ("auth", "beacons", "engines", "executors", "matchers"))
outputters, pillars, sdb, tops, wheels = map(_of, ("output", "pillar", "sdb", "tops", "wheel"))


def serializers(opts, **kwargs):
    import halite_loader

    return halite_loader.Serializers()


def raw_mod(opts, name, functions, mod="modules", **kwargs):
    """The functions of one module."""
    every = _host.functions(mod) or {}
    return {full: every[full] for full in every if full.startswith(name + ".")}
