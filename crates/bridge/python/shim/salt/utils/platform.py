"""Which system this is."""

import subprocess
import sys


def is_linux():
    return sys.platform.startswith("linux")


def is_windows():
    return sys.platform.startswith("win")


def is_darwin():
    return sys.platform.startswith("darwin")


def is_sunos():
    return sys.platform.startswith("sunos")


def is_smartos():
    return False


def is_smartos_globalzone():
    return False


def is_smartos_zone():
    return False


def is_freebsd():
    return sys.platform.startswith("freebsd")


def is_netbsd():
    return sys.platform.startswith("netbsd")


def is_openbsd():
    return sys.platform.startswith("openbsd")


def is_aix():
    return sys.platform.startswith("aix")


def is_junos():
    return False


def is_proxy():
    return False


def is_aarch64():
    import os

    return os.uname().machine == "aarch64"


def is_fedora():
    return _release("fedora")


def is_photonos():
    return _release("photon")


def _release(name):
    try:
        with open("/etc/os-release", encoding="utf-8") as handle:
            return "ID={}\n".format(name) in handle.read()
    except OSError:
        return False


def get_machine_identifier():
    try:
        with open("/etc/machine-id", encoding="utf-8") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def spawning_platform():
    return False


def linux_distribution(full_distribution_name=True):
    out = subprocess.run(["lsb_release", "-irs"], capture_output=True, text=True, check=False)
    return tuple(out.stdout.split()[:2]) + ("",)
