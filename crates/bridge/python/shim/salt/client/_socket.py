"""The master's control socket: `sock_dir/halite.sock`.

A frame is four bytes of length (big endian) and one msgpack map. A request has an `id` and a verb
`do`; answers repeat the `id` and have `item` (part of a stream), `end` or `error`.
"""

import os
import select
import socket
import time

from salt.exceptions import (
    AuthenticationError,
    AuthorizationError,
    SaltClientError,
    SaltInvocationError,
    SaltReqTimeoutError,
)
from salt.utils.msgpack import packb, unpackb

_CLASSES = {
    "AuthenticationError": AuthenticationError,
    "AuthorizationError": AuthorizationError,
    "EauthAuthenticationError": AuthenticationError,
    "SaltInvocationError": SaltInvocationError,
}


class Control:
    """One connection; several requests may be open on it."""

    def __init__(self, opts):
        folder = opts["sock_dir"] if not isinstance(opts, str) else opts
        self.path = os.path.join(folder, "halite.sock")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.connect(self.path)
        except OSError as error:
            self.sock.close()
            raise SaltClientError("no master listens at {}: {}".format(self.path, error)) from None
        self.buffer = b""
        self.last = 0
        self.waiting = {}

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def send(self, verb, **fields):
        self.last += 1
        body = packb(dict(fields, id=self.last, do=verb))
        self.sock.sendall(len(body).to_bytes(4, "big") + body)
        return self.last

    def next(self, request, wait=None):
        """Returns `(is_last, value)`, or None when `wait` seconds have passed."""
        deadline = None if wait is None else time.monotonic() + wait
        while True:
            queue = self.waiting.get(request)
            if queue:
                return self._read(queue.pop(0))
            left = None if deadline is None else max(0, deadline - time.monotonic())
            message = self._message(left)
            if message is None:
                return None
            self.waiting.setdefault(message.get("id"), []).append(message)

    def _read(self, message):
        if "error" in message:
            error = message["error"] or {}
            cls = _CLASSES.get(error.get("name"), SaltClientError)
            raise cls(error.get("message", "the master refused"))
        return ("end" in message, message.get("end") if "end" in message else message.get("item"))

    def _message(self, wait):
        deadline = None if wait is None else time.monotonic() + wait
        while True:
            if len(self.buffer) >= 4:
                size = int.from_bytes(self.buffer[:4], "big")
                if len(self.buffer) >= 4 + size:
                    body, self.buffer = self.buffer[4 : 4 + size], self.buffer[4 + size :]
                    return unpackb(body)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < 0:
                left = 0
            ready, _, _ = select.select([self.sock], [], [], left)
            if not ready:
                return None
            part = self.sock.recv(1 << 16)
            if not part:
                raise SaltClientError("the connection to the master broke")
            self.buffer += part

    def ask(self, verb, wait=None, **fields):
        """Asks a question with one answer."""
        request = self.send(verb, **fields)
        answer = self.next(request, wait)
        if answer is None:
            raise SaltReqTimeoutError("the master did not answer in time")
        return answer[1]

    def stream(self, verb, **fields):
        return Stream(self, self.send(verb, **fields))


class Stream:
    def __init__(self, control, request):
        self.control, self.request, self.ended = control, request, False

    def next(self, wait=None):
        """Returns the next item; None when there is none in time, or no more at all."""
        if self.ended:
            return None
        answer = self.control.next(self.request, wait)
        if answer is None:
            return None
        self.ended, value = answer
        return None if self.ended else value

    def cancel(self):
        if not self.ended:
            self.ended = True
            self.control.send("cancel", request=self.request)
