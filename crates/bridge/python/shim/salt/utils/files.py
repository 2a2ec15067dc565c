"""Files."""

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time

HASHES = {"sha512": 128, "sha384": 96, "sha256": 64, "sha224": 56, "sha1": 40, "md5": 32}
HASHES_REVMAP = {length: name for name, length in HASHES.items()}


def fopen(*args, **kwargs):
    """`open`, with UTF-8 unless the mode is binary."""
    mode = kwargs.get("mode") or (args[1] if len(args) > 1 else "r")
    kwargs.pop("lock", None)
    if "b" not in mode and "encoding" not in kwargs and len(args) < 4:
        kwargs["encoding"] = "utf-8"
        kwargs.setdefault("newline", "")
    for name in ("uid", "gid", "umask"):
        kwargs.pop(name, None)
    return open(*args, **kwargs)


@contextlib.contextmanager
def flopen(*args, **kwargs):
    """`fopen` with the file locked."""
    import fcntl

    with fopen(*args, **kwargs) as handle:
        fcntl.flock(handle.fileno(), fcntl.LOCK_SH)
        try:
            yield handle
        finally:
            fcntl.flock(handle.fileno(), fcntl.LOCK_UN)


@contextlib.contextmanager
def fpopen(*args, **kwargs):
    mode = kwargs.pop("mode", None)
    with fopen(*args, **kwargs) as handle:
        if mode is not None and len(args) > 1:
            os.chmod(args[0], mode)
        yield handle


def mkstemp(*args, **kwargs):
    kwargs.setdefault("prefix", "__salt.tmp.")
    close = kwargs.pop("close_fd", True)
    handle, path = tempfile.mkstemp(*args, **kwargs)
    if not close:
        return handle, path
    os.close(handle)
    return path


def recursive_copy(source, dest):
    shutil.copytree(source, dest, dirs_exist_ok=True)


def copyfile(source, dest, backup_mode="", cachedir=""):
    """Copies a file as one step, keeping the owner and mode of what was there."""
    if not os.path.isfile(source):
        raise OSError("[Errno 2] No such file or directory: {}".format(source))
    if not os.path.isdir(os.path.dirname(dest)):
        raise OSError("[Errno 2] No such file or directory: {}".format(dest))
    temp = mkstemp(prefix=os.path.basename(dest), dir=os.path.dirname(dest))
    shutil.copyfile(source, temp)
    if os.path.exists(dest):
        found = os.stat(dest)
        os.chown(temp, found.st_uid, found.st_gid)
        os.chmod(temp, stat.S_IMODE(found.st_mode))
    shutil.move(temp, dest)


def rename(source, dest):
    os.replace(source, dest)


def safe_rm(path):
    with contextlib.suppress(OSError):
        os.remove(path)


remove = safe_rm


def rm_rf(path):
    if os.path.islink(path) or os.path.isfile(path):
        os.remove(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)


def is_empty(path):
    try:
        return os.stat(path).st_size == 0
    except OSError:
        return False


def is_binary(path):
    try:
        with open(path, "rb") as handle:
            return b"\0" in handle.read(2048)
    except OSError:
        return False


def list_files(directory):
    found = {directory}
    for root, folders, names in os.walk(directory):
        found.update(os.path.join(root, name) for name in names + folders)
    return list(found)


def normalize_mode(mode):
    if mode is None:
        return None
    text = str(mode).replace("0o", "0").strip("\"'")
    return ("0" * max(0, 4 - len(text)) + text) if text else text


def safe_filename_leaf(name):
    return re.sub(r'[\\:/*?"<>|]', "_", name)


safe_filepath = safe_filename_leaf


@contextlib.contextmanager
def set_umask(mask):
    if mask is None:
        yield
        return
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def wait_lock(path, lock_fn=None, timeout=5, sleep=0.1, time_start=None):
    from salt.exceptions import FileLockError

    lock = lock_fn or path + ".lock"
    started = time.time()
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            if timeout and time.time() - started > timeout:
                raise FileLockError("{} is locked".format(path), time_start=started) from None
            time.sleep(sleep)
    try:
        yield
    finally:
        safe_rm(lock)


def backup_minion(path, bkroot):
    name = "{}_{}".format(os.path.basename(path), time.strftime("%a_%b_%d_%H:%M:%S_%Y"))
    folder = os.path.join(bkroot, os.path.dirname(path).lstrip("/"))
    os.makedirs(folder, exist_ok=True)
    shutil.copyfile(path, os.path.join(folder, name))


def get_encoding(path):
    with open(path, "rb") as handle:
        text = handle.read(4096)
    try:
        text.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        return "latin-1"


def is_fcntl_available(check_sunos=False):
    return True
