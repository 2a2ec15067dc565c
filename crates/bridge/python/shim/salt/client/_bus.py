"""The event bus of a minion: sockets in `sock_dir`, as Salt has them.

From the one every event is read, to the other events are written, each as a msgpack map
`{"head": {}, "body": <tag, two line ends, msgpack of the data>}`. The master's bus is reached over
its control socket instead, which also knows what was missed.
"""

import glob
import hashlib
import os
import select
import socket
import struct
import time

from salt.exceptions import SaltClientError
from salt.utils.msgpack import _unpack, packb, unpackb

TAGEND = b"\n\n"
# Nobody waits behind a daemon that does not read.
PATIENCE = 5


class Listener:
    """Reads events."""

    def __init__(self, opts, sock_dir):
        self.sock = _connect(opts, sock_dir, "pub", 4510)
        self.buffer = b""
        self.ended = False

    def close(self):
        self.sock.close()

    def next(self, wait=None):
        """Returns the next event; None when there is none in time, or no more at all."""
        deadline = None if wait is None else time.monotonic() + wait
        while not self.ended:
            event = self._element()
            if event is not None:
                return event
            left = None if deadline is None else max(0, deadline - time.monotonic())
            if not select.select([self.sock], [], [], left)[0]:
                return None
            part = self.sock.recv(1 << 16)
            self.ended = not part
            self.buffer += part
        return None

    def _element(self):
        # Some releases put four bytes of length before a map; none is so long that they look like one.
        start = 4 if self.buffer and self.buffer[0] < 0x80 else 0
        try:
            element, end = _unpack(memoryview(self.buffer), start)
        except (IndexError, ValueError, struct.error):
            # It has not come whole.
            return None
        if end > len(self.buffer):
            return None
        self.buffer = self.buffer[end:]
        body = element["body"]
        tag, _, data = (body.encode() if isinstance(body, str) else body).partition(TAGEND)
        return {"tag": tag.decode("utf-8", "replace"), "data": unpackb(data)}


def fire(opts, sock_dir, data, tag):
    """Writes one event."""
    body = tag.encode() + TAGEND + packb(data)
    sock = _connect(opts, sock_dir, "pull", 4511)
    try:
        sock.settimeout(PATIENCE)
        sock.sendall(packb({"head": {}, "body": body}))
    except OSError as error:
        raise SaltClientError("the minion takes no events: {}".format(error)) from None
    finally:
        sock.close()


def _connect(opts, sock_dir, side, port):
    if opts.get("ipc_mode") == "tcp":
        family, address = socket.AF_INET, ("127.0.0.1", int(opts.get("tcp_{}_port".format(side), port)))
    else:
        family, address = socket.AF_UNIX, _path(opts, str(sock_dir), side)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.connect(address)
    except OSError as error:
        sock.close()
        raise SaltClientError("no minion listens at {}: {}".format(address, error)) from None
    return sock


def _path(opts, sock_dir, side):
    if opts.get("id"):
        name = hashlib.new(opts.get("hash_type") or "sha256", str(opts["id"]).encode()).hexdigest()[:10]
    else:
        # Who does not say which minion means the only one.
        name = "*"
    path = os.path.join(sock_dir, "minion_event_{}_{}.ipc".format(name, side))
    return next(iter(sorted(glob.glob(path))), path) if name == "*" else path
