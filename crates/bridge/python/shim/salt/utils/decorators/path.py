"""Functions that need a program: `@which('exe')`, `@which_bin(['exe', 'other'])`."""

import functools

from salt.exceptions import CommandNotFoundError
from salt.utils import path


def _needs(found, complaint):
    """Decorates functions that are only called while `found()` finds a program."""

    def decorate(function):
        def guarded(*args, **kwargs):
            if found() is not None:
                return function(*args, **kwargs)
            raise CommandNotFoundError(complaint)

        return functools.update_wrapper(guarded, function)

    return decorate


def which(exe):
    return _needs(lambda: path.which(exe), f"The '{exe}' binary was not found in $PATH.")


def which_bin(exes):
    names = "', '".join(exes)
    return _needs(
        lambda: path.which_bin(exes),
        f"None of provided binaries({names}) were found in $PATH.",
    )
