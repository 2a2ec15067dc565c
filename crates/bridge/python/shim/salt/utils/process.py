"""Processes."""

import os
import signal

from multiprocessing import Process, current_process  # noqa: F401


def os_is_running(pid):
    try:
        os.kill(int(pid), 0)
        return True
    except (OSError, ValueError):
        return False


def daemonize(redirect_out=True):
    raise RuntimeError("a module of Halite's Python host cannot become a daemon")


def appendproctitle(name):
    pass


def clean_proc(sup_proc, wait_for_kill=10):
    if sup_proc and sup_proc.is_alive():
        sup_proc.terminate()
        sup_proc.join(wait_for_kill)


def default_signals(*signals):
    import contextlib

    @contextlib.contextmanager
    def restored():
        before = {one: signal.getsignal(one) for one in signals}
        yield
        for one, handler in before.items():
            signal.signal(one, handler)

    return restored()


SignalHandlingProcess = MultiprocessingProcess = Process
