"""`@which('exe')`"""

import functools

import salt.utils.path
from salt.exceptions import CommandNotFoundError


def which(exe):
    def wrap(function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            if salt.utils.path.which(exe) is None:
                raise CommandNotFoundError("The '{}' binary was not found in $PATH.".format(exe))
            return function(*args, **kwargs)

        return checked

    return wrap


def which_bin(exes):
    def wrap(function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            if salt.utils.path.which_bin(exes) is None:
                names = "', '".join(exes)
                raise CommandNotFoundError("None of provided binaries({}) were found in $PATH.".format(names))
            return function(*args, **kwargs)

        return checked

    return wrap
