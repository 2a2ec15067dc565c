"""The event bus of the master, or of the minion."""

import datetime
import fnmatch
import os
import re
import time

from salt.client import _bus
from salt.client._socket import Control
from salt.exceptions import SaltClientError

TAGEND = "\n\n"
TAGPARTER = "/"
TAGS = {
    "auth": "auth", "job": "job", "key": "key", "minion": "minion", "syndic": "syndic", "run": "run",
    "wheel": "wheel", "cloud": "cloud", "fileserver": "fileserver", "queue": "queue",
}


def tagify(suffix="", prefix="", base="salt"):
    """`tagify(['a', 'b'], 'job')` → `salt/job/a/b`"""
    parts = [base, TAGS.get(prefix, prefix)]
    parts += list(suffix) if hasattr(suffix, "append") else [suffix]
    return TAGPARTER.join(str(part) for part in parts if part)


def get_event(node, sock_dir=None, transport=None, opts=None, listen=True, io_loop=None, keep_loop=False,
              raise_errors=False):
    """Returns the event bus of the `master` (or `minion`) of this host."""
    opts = dict(opts or {})
    folder = sock_dir or opts.get("sock_dir")
    if folder is None:
        import salt.config

        if node == "minion":
            opts = salt.config.minion_config(opts.get("conf_file", "/etc/salt/minion"))
            return SaltEvent(node, opts["sock_dir"], opts, listen)
        folder = salt.config.client_config(opts.get("conf_file", "/etc/salt/master"))["sock_dir"]
    return SaltEvent(node, folder, opts, listen)


def get_master_event(opts, sock_dir, listen=True, io_loop=None, raise_errors=False, keep_loop=False):
    return get_event("master", sock_dir, opts=opts, listen=listen)


MasterEvent = get_master_event


class SaltEvent:
    """Reads and fires events; connects when it is first needed, and again when the master restarts."""

    def __init__(self, node, sock_dir=None, opts=None, listen=True, io_loop=None, keep_loop=False,
                 raise_errors=False):
        self.node, self.sock_dir, self.opts = node, sock_dir, opts or {}
        self.control = self.stream = None
        self.cursor = None
        self.pending = []
        self.subscribed = []
        self.cpub = False
        if listen:
            try:
                self.connect_pub()
            except SaltClientError:
                # It is tried again with each question.
                pass

    def connect_pub(self, timeout=None):
        if self.stream is None and self.node == "minion":
            self.control = self.stream = _bus.Listener(self.opts, self.sock_dir)
            self.cpub = True
        elif self.stream is None:
            self.control = Control(str(self.sock_dir))
            self.stream = self.control.stream("events", tag="", after=self.cursor)
            # Once this is answered, what is fired from now on is seen.
            self.control.ask("hello", wait=5)
            self.cpub = True
        return True

    subscribe_all = connect_pub

    def subscribe(self, tag=None, match_type=None):
        if tag is not None:
            self.subscribed.append((tag, match_type or "startswith"))

    def unsubscribe(self, tag=None, match_type=None):
        self.subscribed = [entry for entry in self.subscribed if entry[0] != tag]

    def close_pub(self):
        if self.control is not None:
            self.control.close()
        self.control = self.stream = None
        self.cpub = False

    def destroy(self):
        self.close_pub()

    close_pull = destroy

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.destroy()

    @staticmethod
    def _fits(tag, wanted, match_type):
        if not wanted:
            return True
        if match_type in (None, "startswith"):
            return tag.startswith(wanted)
        if match_type == "endswith":
            return tag.endswith(wanted)
        if match_type == "find":
            return wanted in tag
        if match_type == "regex":
            return re.search(wanted, tag) is not None
        if match_type == "fnmatch":
            return fnmatch.fnmatch(tag, wanted)
        return tag.startswith(wanted)

    def _next(self, wait):
        try:
            self.connect_pub()
            item = self.stream.next(wait)
            if item is None and self.stream.ended:
                raise SaltClientError("the stream ended")
            return item
        except (SaltClientError, OSError):
            self.close_pub()
            time.sleep(min(0.5, wait) if wait is not None else 0.5)
            return None

    def get_event(self, wait=5, tag="", full=False, match_type=None, no_block=False, auto_reconnect=False):
        """Returns the next event that fits a tag, or None when `wait` seconds have passed."""
        deadline = None if not wait or wait < 0 else time.monotonic() + wait
        for at, event in enumerate(self.pending):
            if self._fits(event["tag"], tag, match_type):
                del self.pending[at]
                return event if full else event["data"]
        while True:
            left = 0 if no_block else None if deadline is None else max(0.0, deadline - time.monotonic())
            item = self._next(left)
            if item is not None and "tag" in item:
                if item.get("cursor"):
                    self.cursor = item["cursor"]
                event = {"tag": item["tag"], "data": item.get("data") or {}}
                if self._fits(event["tag"], tag, match_type):
                    return event if full else event["data"]
                if any(self._fits(event["tag"], *entry) for entry in self.subscribed):
                    self.pending.append(event)
                    del self.pending[:-1000]
                continue
            if no_block or deadline is not None and time.monotonic() >= deadline:
                return None

    def get_event_noblock(self):
        return self.get_event(no_block=True, full=True)

    def get_event_block(self):
        return self.get_event(wait=0, full=True)

    def iter_events(self, tag="", full=False, match_type=None, auto_reconnect=False):
        """Yields events for ever."""
        while True:
            event = self.get_event(wait=5, tag=tag, full=full, match_type=match_type)
            if event is not None:
                yield event

    def fire_event(self, data, tag, timeout=1000):
        """Fires an event on the bus."""
        data = dict(data)
        data.setdefault("_stamp", datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None).isoformat())
        if self.node == "minion":
            _bus.fire(self.opts, self.sock_dir, data, tag)
            return True
        with Control(str(self.sock_dir)) as control:
            return bool(control.ask("fire", wait=max(1.0, timeout / 1000), tag=tag, data=data))

    def fire_master(self, data, tag, timeout=1000):
        return self.fire_event(data, tag, timeout)


LocalClientEvent = NamespacedEvent = SaltEvent


def fire_args(opts, jid, tag_data, prefix=""):
    with SaltEvent("master", opts["sock_dir"], opts, listen=False) as bus:
        bus.fire_event(tag_data, tagify(jid, prefix))


def exists(sock_dir):
    return os.path.exists(os.path.join(str(sock_dir), "halite.sock"))
