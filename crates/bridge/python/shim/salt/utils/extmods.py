"""Users' modules on their way from the file server."""

import os

from salt import _host


def sync(opts, form, saltenv=None, extmod_whitelist=None, extmod_blacklist=None):
    """Fetches the modules of a kind; returns their names, and whether any is new."""
    kind = "runners" if opts.get("__role") == "master" else "modules"
    function = (_host.functions(kind) or {}).get("saltutil.sync_" + form)
    if function is None:
        raise ValueError("there is nothing that syncs {!r} here".format(form))
    if isinstance(saltenv, (list, tuple)):
        saltenv = ",".join(saltenv)
    folder = os.path.join(opts.get("extension_modules") or "", form)
    before = _files(folder)
    names = function(
        saltenv=saltenv or "base", extmod_whitelist=extmod_whitelist, extmod_blacklist=extmod_blacklist
    )
    # Where a list forbids them, files go, which is a change without names.
    return names, bool(names) or _files(folder) != before


def _files(folder):
    return sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
