"""The Python side of the bridge: conversations, and what can be asked in them.

The control socket brings one descriptor per conversation. A conversation is strictly turn by turn:
one side asks, the other answers, and while it works it may ask back, on the same thread and stack.
So calls nest both ways without any table of pending calls, and several calls at once are several
conversations. Frames are four bytes of length (little endian) and one value in JSON
(see halite_wire).

Threads that a module starts inherit the conversation of the thread that started them; a lock keeps
their questions apart. A forked child has no conversation: it may not speak for its parent.
"""

import importlib
import logging
import os
import signal
import socket
import sys
import threading
import traceback

import halite_wire as wire

MAIN_PID = os.getpid()
LOCAL = threading.local()
CONVERSATIONS = {}


class HostGone(Exception):
    pass


class TimedOut(BaseException):
    """Raised inside a call that took too long. Not an Exception, so that `except Exception` passes it on."""


class Remote(Exception):
    """An error of the other side whose class does not exist here."""


class Data:
    """What dunders show: opts, grains and pillar arrive once and are referred to by number."""

    def __init__(self):
        self.values = {}
        self.condition = threading.Condition()

    def put(self, token, value):
        with self.condition:
            self.values[token] = value
            while len(self.values) > 96:
                del self.values[next(iter(self.values))]
            self.condition.notify_all()

    def get(self, token, own):
        """Returns a value; `own` is what arrived for this very call, which others cannot push out."""
        if token is None:
            return {}
        if token in own:
            return own[token]
        try:
            return self.values[token]
        except KeyError:
            pass
        with self.condition:
            if not self.condition.wait_for(lambda: token in self.values, 30):
                raise HostGone("data {} did not arrive".format(token))
            return self.values[token]


DATA = Data()


class Frame:
    """What one call sees: the values behind its dunders."""

    __slots__ = ("opts", "grains", "pillar", "context", "low", "env", "extra", "jid", "chain", "_full")

    def __init__(self, given, before=None, own=()):
        self.jid = given.get("jid") or ""
        self.chain = given.get("chain")
        self.grains = DATA.get(given.get("grains"), own)
        self.pillar = DATA.get(given.get("pillar"), own)
        self.opts = DATA.get(given.get("opts"), own)
        self.low = given.get("low") or {}
        self.extra = given.get("extra") or {}
        self.env = given.get("env") or "base"
        self._full = None
        self.context = before.context if before is not None else context_of(self.jid)

    def full_opts(self):
        if self._full is None:
            opts = self.opts
            test = self.extra.get("test")
            if test is not None and bool(opts.get("test")) != test:
                opts = dict(opts, test=test)
            if opts.get("grains") is not self.grains:
                opts["grains"] = self.grains
            if opts.get("pillar") is not self.pillar:
                opts["pillar"] = self.pillar
            if opts.get("add_proxymodule_to_opts") and opts.get("proxyid"):
                import halite_loader

                opts["proxymodule"] = halite_loader.DEVICE
            self._full = opts
        return self._full


CONTEXTS = {}
# What every job finds in its `__context__`: what a proxy module left there when it connected.
BEGINNING = {}


def context_of(jid):
    """`__context__` lives as long as the job."""
    return of_job(CONTEXTS, jid, BEGINNING.copy)


def of_job(table, jid, make):
    """What a table has for a job; the jobs of long ago are forgotten."""
    found = table.get(jid)
    if found is None:
        found = table[jid] = make()
        while len(table) > 64:
            table.pop(next(iter(table)), None)
    return found


class Conversation:
    def __init__(self, sock, number):
        self.sock = sock
        self.number = number
        self.lock = threading.RLock()
        self.arrived = {}
        self.frames = []
        self.thread = None
        self.owner = MAIN_PID

    def close(self):
        CONVERSATIONS.pop(self.number, None)
        try:
            self.sock.close()
        except OSError:
            pass

    def read(self):
        head = self._take(4)
        return wire.loads(self._take(int.from_bytes(head, "little")))

    def _take(self, n):
        part = self.sock.recv(n)
        if len(part) == n:
            return part
        parts = []
        while True:
            if not part:
                raise HostGone("the connection ended")
            parts.append(part)
            n -= len(part)
            if not n:
                return b"".join(parts)
            part = self.sock.recv(min(n, 1 << 20))

    def send(self, body):
        if os.getpid() != self.owner:
            raise RuntimeError("a forked process cannot call functions of the process it came from")
        self.sock.sendall(len(body).to_bytes(4, "little") + body)

    def tell(self, *message):
        """Sends what needs no answer."""
        body = wire.dumps(message)
        with self.lock:
            self.send(body)

    def ask(self, *message):
        """Asks the other side; answers its questions in the meantime."""
        body = wire.dumps(("ask",) + message)
        with self.lock:
            before = getattr(LOCAL, "conversation", None)
            LOCAL.conversation = self
            try:
                self.send(body)
                while True:
                    got = self.read()
                    what = got[0]
                    if what == "ret":
                        return got[1]
                    if what == "err":
                        raise error_of(got)
                    self.handle(got)
            finally:
                LOCAL.conversation = before

    def handle(self, got):
        if got[0] == "data":
            DATA.put(got[1], got[2])
            self.arrived[got[1]] = got[2]
        elif got[0] == "call":
            self.answer(got)
        else:
            raise HostGone("unexpected {!r}".format(got[0]))

    def answer(self, got):
        _, verb, args, given = got
        before = self.frames[-1] if self.frames else None
        pushed = False
        try:
            same = before is not None and before.jid == given.get("jid")
            frame = Frame(given, before if same else None, self.arrived)
            self.arrived = {}
            self.frames.append(frame)
            pushed = True
            value = verb_of(verb)(*args)
            body = wire.dumps(("ret", value, notes(frame)))
        except TimedOut:
            body = wire.dumps(("err", "TimeoutError", "the call took too long", "", [], None))
        except BaseException as error:
            if os.getpid() != MAIN_PID:
                os._exit(1)
            body = wire.dumps(described(error))
        finally:
            if pushed:
                self.frames.pop()
        if os.getpid() != MAIN_PID:
            # A module forked and its child came back here: it has nothing to say.
            sys.stdout.flush()
            os._exit(0)
        with self.lock:
            self.send(body)

    def serve(self):
        LOCAL.conversation = self
        self.thread = threading.get_ident()
        try:
            while True:
                self.handle(self.read())
        except (HostGone, OSError):
            pass
        except TimedOut:
            # It came too late: the call had ended by itself.
            return self.serve()
        finally:
            self.close()


def notes(frame):
    """What a call leaves behind besides its value."""
    code = frame.context.get("retcode")
    return {"retcode": code} if isinstance(code, int) and code else None


def conversation():
    found = getattr(LOCAL, "conversation", None)
    if found is None:
        raise RuntimeError("no call is running in this thread, so there is nobody to ask")
    return found


def frame():
    found = getattr(LOCAL, "conversation", None)
    if found is None or not found.frames:
        return None
    return found.frames[-1]


def described(error):
    text = str(error)
    names = [cls.__name__ for cls in type(error).__mro__]
    if isinstance(error, KeyError) and error.args:
        text = repr(error.args[0]) if isinstance(error.args[0], str) else text
    code = None
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else (1 if error.code else 0)
    info = getattr(error, "info", None)
    try:
        trace = trimmed(error)
    except Exception:
        trace = ""
    try:
        wire.dumps([info])
    except Exception:
        info = str(info)
    return ("err", names[0], text, trace, names, {"code": code, "info": info})


def trimmed(error):
    """The traceback without the frames of this host."""
    tb = error.__traceback__
    while tb is not None and os.path.basename(tb.tb_frame.f_code.co_filename).startswith("halite_"):
        tb = tb.tb_next
    return "".join(traceback.format_exception(type(error), error, tb))


def error_of(got):
    _, name, text, trace = got[:4]
    import builtins

    cls = getattr(builtins, name, None)
    if cls is None:
        try:
            cls = getattr(importlib.import_module("salt.exceptions"), name, None)
        except Exception:
            cls = None
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        cls = type(name, (Remote,), {})
    if cls is SystemExit:
        return RuntimeError(text)
    try:
        error = cls(text)
    except Exception:
        error = Remote(text)
    error.remote_traceback = trace
    return error


class LogHandler(logging.Handler):
    """Python's log lines go into Halite's log, in order with the calls."""

    def emit(self, record):
        try:
            text = record.getMessage()
            if record.exc_info:
                text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
            found = getattr(LOCAL, "conversation", None)
            if found is None or os.getpid() != MAIN_PID:
                os.write(2, (record.levelname + ": " + text + "\n").encode("utf-8", "replace"))
            else:
                found.tell("log", record.levelno, record.name, text)
        except Exception:
            pass


class Printed:
    """Standard output of modules: lines for the log."""

    encoding = "utf-8"
    errors = "replace"
    name = "<stdout>"

    def __init__(self):
        self.part = threading.local()
        self.buffer = self

    def write(self, text):
        if isinstance(text, (bytes, bytearray)):
            size = len(text)
            text = bytes(text).decode("utf-8", "replace")
        else:
            size = len(text)
        held = getattr(self.part, "text", "") + text
        *lines, self.part.text = held.split("\n")
        for line in lines:
            self.line(line)
        return size

    def line(self, line):
        found = getattr(LOCAL, "conversation", None)
        if found is None or os.getpid() != MAIN_PID:
            os.write(2, (line + "\n").encode("utf-8", "replace"))
        else:
            found.tell("out", line)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        held = getattr(self.part, "text", "")
        if held:
            self.part.text = ""
            self.line(held)

    def isatty(self):
        return False

    def writable(self):
        return True

    def readable(self):
        return False

    def fileno(self):
        return 1

    def close(self):
        pass

    @property
    def closed(self):
        return False


def inherit_conversations():
    """Threads started inside a call may use the call's conversation."""
    start = threading.Thread.start

    def inheriting(self):
        found = getattr(LOCAL, "conversation", None)
        if found is not None and not getattr(self, "_halite", False):
            run = self.run

            def inside():
                LOCAL.conversation = found
                run()

            self.run = inside
        return start(self)

    threading.Thread.start = inheriting


def after_fork_in_child():
    for one in list(CONVERSATIONS.values()):
        try:
            os.close(one.sock.detach())
        except OSError:
            pass
    CONVERSATIONS.clear()


VERBS = {}
# Where verbs are defined. The last ones are imported when the first of their verbs is asked for: a
# salt-call that runs one function waits for what it imports.
VERBS_IN = ["halite_loader", "halite_package", "halite_kinds", "halite_render"]


def verb(function):
    VERBS[function.__name__] = function
    return function


def verb_of(name):
    for module in VERBS_IN:
        if name in VERBS:
            break
        # Waits where another thread is importing it.
        importlib.import_module(module)
    return VERBS[name]


@verb
def hello():
    return {"version": list(sys.version_info[:3]), "executable": sys.executable, "pid": os.getpid()}


def settle(settings):
    """Applies what the binary says about limits, logging and folders."""
    import halite_loader

    logging.basicConfig(handlers=[LogHandler()], level=settings.get("log_level", 30))
    logging.captureWarnings(True)
    if settings.get("log_level", 30) > 10:
        # Deprecations are for authors, not for those who run what they wrote.
        logging.getLogger("py.warnings").setLevel(logging.ERROR)
    # Salt's own levels, which modules use as methods of their loggers.
    for name, level in (("profile", 15), ("trace", 5), ("garbage", 1), ("quiet", 1000)):
        logging.addLevelName(level, name.upper())
        if not hasattr(logging.Logger, name):
            setattr(logging.Logger, name, level_method(level))
    limit = settings.get("address_space")
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    halite_loader.settle(settings)


def level_method(level):
    def log(self, message, *args, **kwargs):
        if self.isEnabledFor(level):
            self._log(level, message, args, **kwargs)

    return log


def interrupt(number):
    """Raises TimedOut in the thread of a conversation."""
    found = CONVERSATIONS.get(number)
    if found is not None and found.thread is not None and found.frames:
        import ctypes

        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(found.thread), ctypes.py_object(TimedOut)
        )


def take(sock, n):
    parts = []
    while n:
        part = sock.recv(n)
        if not part:
            end()
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def end():
    """The binary is gone: so is everything started here."""
    try:
        if os.getpgid(0) == MAIN_PID:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(MAIN_PID, signal.SIGTERM)
    except OSError:
        pass
    os._exit(0)


def main(control):
    threading.current_thread()._halite = True
    sys.argv = ["salt"]
    sys.stdout = Printed()
    os.register_at_fork(after_in_child=after_fork_in_child)
    threading.stack_size(16 << 20)
    sys.setrecursionlimit(3000)
    inherit_conversations()
    settle(wire.loads(take(control, int.from_bytes(take(control, 4), "little"))))
    while True:
        # One byte of order, four of number; a new conversation comes with its descriptor.
        order, ancillary, _, _ = control.recvmsg(5, socket.CMSG_SPACE(4))
        if not order:
            end()
        if len(order) < 5:
            order += take(control, 5 - len(order))
        number = int.from_bytes(order[1:5], "little")
        if order[:1] == b"n":
            fds = [
                int.from_bytes(data[:4], sys.byteorder)
                for level, kind, data in ancillary
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS
            ]
            one = Conversation(socket.socket(fileno=fds[0]), number)
            CONVERSATIONS[number] = one
            thread = threading.Thread(target=one.serve, daemon=True)
            thread._halite = True
            thread.start()
        elif order[:1] == b"i":
            interrupt(number)
        elif order[:1] == b"q":
            end()
