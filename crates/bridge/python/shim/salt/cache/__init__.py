"""Data kept between jobs, in banks; as files below the cache folder, where Salt's `localfs` puts them."""

import os
import shutil
import time

import salt.payload
import salt.utils.atomicfile
from salt.exceptions import SaltCacheError

ENDING = ".p"


def factory(opts, **kwargs):
    return Cache(opts, **kwargs)


class Cache:
    def __init__(self, opts, cachedir=None, **kwargs):
        self.opts = opts
        self.driver = kwargs.get("driver") or opts.get("cache", "localfs")
        self.cachedir = cachedir or opts.get("cachedir") or "/var/cache/salt/master"

    def _folder(self, bank):
        folder = os.path.normpath(os.path.join(self.cachedir, bank))
        if not (folder + os.sep).startswith(os.path.join(os.path.normpath(self.cachedir), "")):
            raise SaltCacheError("the bank {!r} is outside of the cache".format(bank))
        return folder

    def _file(self, bank, key):
        if os.sep in str(key):
            raise SaltCacheError("{!r} cannot be a key".format(key))
        return os.path.join(self._folder(bank), "{}{}".format(key, ENDING))

    def _of_minion(self, bank, key):
        """What the running master knows of a minion."""
        parts = bank.strip("/").split("/")
        if len(parts) == 2 and parts[0] == "minions" and key == "data":
            from salt.client._socket import Control

            try:
                data = Control(self.opts).ask("minion_data", tgt=parts[1], tgt_type="list")
            except Exception:
                return None
            return data.get(parts[1])
        return None

    def store(self, bank, key, data, expires=None):
        if expires is not None:
            data = {"data": data, "_expires": int(time.time() + expires)}
        path = self._file(bank, key)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with salt.utils.atomicfile.atomic_open(path, "wb") as handle:
                handle.write(salt.payload.dumps(data))
        except OSError as error:
            raise SaltCacheError("There was an error writing the cache file, {}: {}".format(path, error)) from error

    def fetch(self, bank, key):
        path = self._file(bank, key)
        try:
            with open(path, "rb") as handle:
                found = salt.payload.loads(handle.read())
        except FileNotFoundError:
            return self._of_minion(bank, key) or {}
        except OSError as error:
            raise SaltCacheError("There was an error reading the cache file \"{}\": {}".format(path, error)) from error
        if isinstance(found, dict) and "_expires" in found and "data" in found:
            return found["data"] if found["_expires"] > time.time() else {}
        return found

    def updated(self, bank, key):
        try:
            return int(os.path.getmtime(self._file(bank, key)))
        except OSError:
            return None

    def flush(self, bank, key=None):
        try:
            if key is None:
                shutil.rmtree(self._folder(bank))
            else:
                os.remove(self._file(bank, key))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise SaltCacheError("There was an error removing \"{}\": {}".format(bank, error)) from error
        return True

    def list(self, bank):
        try:
            entries = sorted(os.listdir(self._folder(bank)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [entry[: -len(ENDING)] if entry.endswith(ENDING) else entry for entry in entries]

    def contains(self, bank, key=None):
        if key is None:
            return os.path.isdir(self._folder(bank))
        return os.path.isfile(self._file(bank, key)) or self._of_minion(bank, key) is not None

    def cache(self, bank, key, fun, loop_fun=None, **kwargs):
        """What is kept, if it is younger than `expire` seconds; else what the function gives, which is kept."""
        kept = self.updated(bank, key)
        if kept is not None and time.time() - kept < kwargs.get("expire", 86400):
            return self.fetch(bank, key)
        data = fun(**kwargs)
        if loop_fun is not None:
            data = [loop_fun(one) for one in data]
        self.store(bank, key, data)
        return data
