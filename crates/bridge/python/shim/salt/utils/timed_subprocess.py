"""A command with a time limit."""

import subprocess

import salt.exceptions
import salt.utils.stringutils


class TimedProc:
    """Starts a command as `subprocess.Popen` does; `run` waits for it, no longer than `timeout` seconds.

    Text given as `stdin` is written to it. With `with_communicate=False` nothing is read from it.
    """

    def __init__(self, args, **kwargs):
        self.wait = not kwargs.pop("bg", False)
        self.stdin = kwargs.pop("stdin", None)
        self.with_communicate = kwargs.pop("with_communicate", self.wait)
        self.timeout = kwargs.pop("timeout", None)
        if self.timeout is not None and not isinstance(self.timeout, (int, float)):
            raise salt.exceptions.TimedProcTimeoutError(
                "Error: timeout {} must be a number".format(self.timeout)
            )
        self.stdin_raw_newlines = kwargs.pop("stdin_raw_newlines", False)
        self.stdout = self.stderr = None
        if self.stdin is not None:
            if not self.stdin_raw_newlines:
                self.stdin = self.stdin.replace("\\n", "\n")
            self.stdin = salt.utils.stringutils.to_bytes(self.stdin)
            kwargs["stdin"] = subprocess.PIPE
        if not self.with_communicate:
            kwargs["stdout"] = kwargs["stderr"] = subprocess.DEVNULL
        if isinstance(args, (list, tuple)):
            args = [one if isinstance(one, (str, bytes)) else str(one) for one in args]
        elif not kwargs.get("shell") and not isinstance(args, (str, bytes)):
            args = str(args)
        self.command = args
        self.process = subprocess.Popen(args, **kwargs)

    def run(self):
        """Waits for the end of the command; returns its code."""
        try:
            if self.with_communicate:
                self.stdout, self.stderr = self.process.communicate(input=self.stdin, timeout=self.timeout)
            elif self.wait:
                self.process.wait(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise salt.exceptions.TimedProcTimeoutError(
                "{} : Timed out after {} seconds".format(self.command, self.timeout)
            ) from None
        return self.process.returncode
