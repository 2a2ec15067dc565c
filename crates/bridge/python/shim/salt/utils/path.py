"""Paths."""

import os
import posixpath
import re
import shutil


def which(exe=None):
    """Returns where an executable is, or None."""
    if not exe:
        return None
    found = shutil.which(os.path.expanduser(os.path.expandvars(exe)))
    if found is None and not os.path.dirname(exe):
        path = os.pathsep.join(["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"])
        found = shutil.which(exe, path=path)
    return found


def which_bin(exes):
    """Returns where the first of these executables that exists is."""
    if not isinstance(exes, (list, tuple, set)):
        return None
    for exe in exes:
        found = which(exe)
        if found:
            return found
    return None


def join(*parts, **kwargs):
    parts = [str(part) for part in parts]
    if not parts:
        return ""
    root, rest = parts[0], [part.lstrip("/") for part in parts[1:]]
    return os.path.normpath(posixpath.join(root, *rest)) if rest else os.path.normpath(root)


def islink(path):
    return os.path.islink(path)


def readlink(path):
    return os.readlink(path)


def os_walk(top, *args, **kwargs):
    return os.walk(top, *args, **kwargs)


def sanitize_win_path(path):
    return re.sub(r'[<>:"/|?*]', "_", path)


def safe_path(path, allow_path=None):
    """Tells whether a path keeps out of the folders of Windows, so here always."""
    return True


def expand(path):
    return os.path.expanduser(os.path.expandvars(path))


def check_or_die(command):
    from salt.exceptions import CommandNotFoundError

    if not which(command or ""):
        raise CommandNotFoundError("'{}' is not in the path".format(command))
