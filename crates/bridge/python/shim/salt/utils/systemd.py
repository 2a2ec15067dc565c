"""What systemd there is."""

import os
import re
import subprocess


def _kept(context, name, find):
    key = "salt.utils.systemd." + name
    if isinstance(context, dict) or hasattr(context, "setdefault"):
        if key not in context:
            context[key] = find()
        return context[key]
    return find()


def booted(context=None):
    """Tells whether this machine was started by systemd."""
    return _kept(context, "booted", lambda: os.path.isdir("/run/systemd/system"))


def offline(context=None):
    return _kept(context, "offline", lambda: not booted(context) and os.path.exists("/bin/systemctl"))


def status(context=None):
    """What `systemctl status` says, or None."""

    def find():
        try:
            return subprocess.run(["systemctl", "status"], capture_output=True, text=True, check=False).stdout
        except OSError:
            return None

    return _kept(context, "status", find)


def version(context=None):
    def find():
        try:
            text = subprocess.run(["systemctl", "--version"], capture_output=True, text=True, check=False).stdout
        except OSError:
            return None
        found = re.match(r"systemd (\d+)", text)
        return int(found.group(1)) if found else None

    return _kept(context, "version", find)


def has_scope(context=None):
    """Tells whether `systemd-run --scope` is there."""
    found = booted(context) and version(context)
    return bool(found and found >= 205)


def pid_to_service(pid):
    """The unit a process belongs to, or None."""
    try:
        with open("/proc/{}/cgroup".format(pid), encoding="utf-8") as handle:
            found = re.search(r"/([^/\n]+)\.service(?:/|$)", handle.read(), re.M)
    except OSError:
        return None
    return found.group(1) if found else None
