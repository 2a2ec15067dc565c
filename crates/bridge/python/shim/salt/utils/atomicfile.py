"""Files that are replaced as a whole."""

import os
import tempfile


class _Written:
    """Writes beside the file; closing puts it in its place."""

    def __init__(self, name, mode):
        folder = os.path.dirname(os.path.abspath(name))
        fd, self._tmp = tempfile.mkstemp(dir=folder, prefix=".")
        self._name = name
        self._handle = os.fdopen(fd, mode)

    def __getattr__(self, name):
        return getattr(self._handle, name)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self._handle.close()
            os.remove(self._tmp)

    def close(self):
        if self._handle.closed:
            return
        self._handle.close()
        try:
            about = os.stat(self._name)
            os.chmod(self._tmp, about.st_mode & 0o7777)
            os.chown(self._tmp, about.st_uid, about.st_gid)
        except OSError:
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(self._tmp, 0o666 & ~umask)
        os.replace(self._tmp, self._name)


def atomic_open(filename, mode="w"):
    """As `open` for writing; the file changes when it is closed."""
    if mode in ("r", "rb", "r+", "rb+", "a", "ab"):
        raise TypeError("Read or append modes don't work with atomic_open")
    return _Written(filename, mode)
