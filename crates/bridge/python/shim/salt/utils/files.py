"""Files."""

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
import time
import urllib.parse

HASHES = {"sha512": 128, "sha384": 96, "sha256": 64, "sha224": 56, "sha1": 40, "md5": 32}
LOCAL_PROTOS = ("", "file")
REMOTE_PROTOS = ("http", "https", "ftp", "swift", "s3")
VALID_PROTOS = ("salt", "file") + REMOTE_PROTOS
TEMPFILE_PREFIX = "__salt.tmp."
HAS_FCNTL = True
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
    kwargs.setdefault("prefix", TEMPFILE_PREFIX)
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
    text = str(mode).replace("0o", "0").strip("\"'").lstrip("0")
    return text.rjust(4, "0")


def safe_filename_leaf(name):
    """A name with what no file system likes written as in addresses."""
    return re.sub(r'[\\:/*?"<>|]', lambda found: urllib.parse.quote(found.group(0), safe=""), name)


def safe_filepath(path, dir_sep=None):
    separator = dir_sep or os.sep
    return separator.join(safe_filename_leaf(part) for part in path.split(separator))


def human_size_to_bytes(size):
    """`5M` → 5242880"""
    found = re.match(r"^(\d+)([KMGTP])?$", str(size).strip().upper())
    if not found:
        raise ValueError("Size must be all digits, with an optional unit type (K, M, G, T, or P)")
    return int(found.group(1)) * 2 ** (10 * (" KMGTP".index(found.group(2) or " ")))


def guess_archive_type(name):
    name = name.lower()
    for kind, endings in (
        ("tar", ("tar", "tar.gz", "tgz", "tar.bz2", "tbz2", "tbz", "tar.xz", "txz", "tar.lzma", "tlz")),
        ("zip", ("zip",)),
        ("rar", ("rar",)),
    ):
        if name.endswith(tuple("." + ending for ending in endings)):
            return kind
    return None


def st_mode_to_octal(mode):
    try:
        return oct(mode)[-4:]
    except (TypeError, IndexError):
        return ""


def get_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def is_text(fp_, blocksize=512):
    """Tells whether a file looks like text."""
    try:
        if hasattr(fp_, "read"):
            block = fp_.read(blocksize)
        else:
            with open(fp_, "rb") as handle:
                block = handle.read(blocksize)
    except OSError:
        return False
    block = block.encode("utf-8") if isinstance(block, str) else block
    if b"\0" in block:
        return False
    if not block:
        return True
    try:
        block.decode("utf-8")
        return True
    except UnicodeDecodeError:
        # A little of anything else is borne.
        strange = sum(1 for byte in block if not (32 <= byte < 127 or byte in b"\n\r\t\f\b"))
        return strange / len(block) <= 0.30


def safe_walk(top, topdown=True, onerror=None, followlinks=True, _seen=None):
    """`os.walk` along links, but into no folder twice."""
    seen = set()
    for root, folders, names in os.walk(top, topdown, onerror, followlinks):
        kept = []
        for folder in folders:
            try:
                found = os.stat(os.path.join(root, folder))
            except OSError:
                continue
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                kept.append(folder)
        folders[:] = kept
        yield root, folders, names


def case_insensitive_filesystem(path=None):
    return False


def process_read_exception(exc, path, ignore=None):
    from salt.exceptions import CommandExecutionError

    ignored = [ignore] if isinstance(ignore, int) else ignore or ()
    if exc.errno in ignored:
        return
    if exc.errno == errno.ENOENT:
        raise CommandExecutionError("{} does not exist".format(path))
    if exc.errno == errno.EACCES:
        raise CommandExecutionError("Permission denied reading from {}".format(path))
    raise CommandExecutionError("Error {} encountered reading from {}: {}".format(exc.errno, path, exc.strerror))


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
