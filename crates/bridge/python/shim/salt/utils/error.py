"""Exceptions by name."""

import builtins

import salt.exceptions


def raise_error(name=None, args=None, message=""):
    """Raises an exception of Python or of Salt, named by a text."""
    name = (name or "Exception").split(".")[-1]
    args = (message,) if args is None else args
    found = getattr(salt.exceptions, name, None) or getattr(builtins, name, None)
    if found is None:
        raise salt.exceptions.SaltInvocationError("Unknown exception type '{}'".format(name))
    raise found(*args)


def pack_exception(exc):
    return exc.pack() if hasattr(exc, "pack") else {"message": str(exc), "args": exc.args}


def fire_exception(exc, opts, job=None, node="minion"):
    import salt.utils.event

    with salt.utils.event.get_event(node, opts=opts, listen=False) as event:
        event.fire_event(pack_exception(exc), "_salt_error")
