"""Where this package runs: inside Halite's Python host, or in a script of its own."""


def functions(kind="modules"):
    """Returns `__salt__` inside the host, else None."""
    try:
        import halite_host
        import halite_loader
    except ImportError:
        return None
    return halite_loader.Functions(kind) if halite_host.frame() is not None else None


def call(name, *args, **kwargs):
    """Calls a function of the binary; only inside the host."""
    found = functions()
    if found is None:
        raise RuntimeError("{} can only be called inside Halite".format(name))
    return found[name](*args, **kwargs)


def opts():
    try:
        import halite_host

        frame = halite_host.frame()
    except ImportError:
        return None
    return frame.full_opts() if frame is not None else None
