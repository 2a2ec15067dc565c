"""`LocalClient` and `Caller`: a running master, and this machine, from Python."""

import json
import os
import random
import subprocess
import time

import salt.config
import salt.utils.args
from salt.client._socket import Control
from salt.exceptions import CommandExecutionError, SaltClientError, SaltInvocationError


def get_local_client(c_path="/etc/salt/master", mopts=None, skip_perm_errors=False, io_loop=None,
                     auto_reconnect=False):
    opts = mopts or salt.config.client_config(c_path)
    return LocalClient(mopts=opts)


class LocalClient:
    """Runs functions on minions through the master of this host."""

    def __init__(self, c_path="/etc/salt/master", mopts=None, skip_perm_errors=False, io_loop=None,
                 keep_loop=False, auto_reconnect=False, listen=False):
        self.opts = mopts if mopts is not None else salt.config.client_config(c_path)
        self.event = None

    def destroy(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.destroy()

    def _timeout(self, timeout):
        return float(timeout if timeout is not None else self.opts.get("timeout", 5))

    def _publish(self, control, tgt, fun, arg, tgt_type, ret, jid, kwarg, follow, timeout, **kwargs):
        if isinstance(tgt, (set, tuple)):
            tgt = list(tgt)
        given = list(arg or ())
        if kwarg:
            if isinstance(fun, list):
                raise SaltInvocationError("kwarg is for one function only")
            given = salt.utils.args.condition_input(given, kwarg)
        more = {
            key: kwargs[key]
            for key in ("metadata", "ret_config", "ret_kwargs", "delimiter", "module_executors", "start_event")
            if kwargs.get(key) is not None
        }
        return control.stream(
            "publish", tgt=tgt, tgt_type=tgt_type or "glob", fun=fun, arg=given, ret=ret or "", jid=jid or "",
            user=kwargs.get("user") or "", to=int(self._timeout(timeout)), kwargs=more, follow=follow,
        )

    def run_job(self, tgt, fun, arg=(), tgt_type="glob", ret="", timeout=None, jid="", kwarg=None, listen=False,
                **kwargs):
        """Publishes a job; returns its id and whom it went to."""
        with Control(self.opts) as control:
            stream = self._publish(control, tgt, fun, arg, tgt_type, ret, jid, kwarg, False, timeout, **kwargs)
            _, published = control.next(stream.request)
        if not published or not published.get("jid"):
            return {}
        return {"jid": published["jid"], "minions": published.get("minions", [])}

    def cmd_async(self, tgt, fun, arg=(), tgt_type="glob", ret="", jid="", kwarg=None, **kwargs):
        """Publishes a job; returns its id, or 0 when nobody is meant."""
        job = self.run_job(tgt, fun, arg, tgt_type, ret, jid=jid, kwarg=kwarg, **kwargs)
        return job.get("jid") or 0

    def _loads(self, tgt, fun, arg, timeout, tgt_type, ret, kwarg, block=True, **kwargs):
        """Yields the returns of a job as they come, then None per pause if it must not block."""
        wait = self._timeout(timeout)
        with Control(self.opts) as control:
            stream = self._publish(control, tgt, fun, arg, tgt_type, ret, kwargs.pop("jid", ""), kwarg, True,
                                   timeout, **kwargs)
            published = stream.next(wait)
            if not published or not published.get("jid"):
                return
            expected = set(published.get("minions", ()))
            done = set(published.get("absent", ()))
            certain = set(published.get("connected", ()))
            yield from self._follow(stream, published, expected, done, certain, wait, block)
            stream.cancel()

    def _follow(self, stream, published, expected, done, certain, wait, block):
        quiet_since = time.monotonic()
        while expected - done:
            news = stream.next(wait if block else 0.01)
            if news is None:
                if stream.ended:
                    return
                if not block:
                    yield None
                if time.monotonic() - quiet_since >= wait:
                    silent = expected - done
                    # Halite minions that are connected say so when they lose a job: wait for them.
                    waiting = silent & certain
                    if not waiting and not self._still_running(published["jid"], silent):
                        return
                    quiet_since = time.monotonic()
                continue
            quiet_since = time.monotonic()
            kind = news.get("is")
            if kind == "returned":
                load = news["load"]
                if load.get("id") in done:
                    continue
                done.add(load.get("id"))
                yield load
            elif kind == "lost":
                done.add(news.get("id"))
            elif kind == "back":
                done.discard(news.get("id"))
            elif kind == "expect":
                expected.update(news.get("ids", ()))
            elif kind == "done":
                return

    def _still_running(self, jid, minions):
        """Asks minions that keep silent whether they still work on a job."""
        if not minions:
            return False
        wait = float(self.opts.get("gather_job_timeout", 10))
        with Control(self.opts) as control:
            stream = self._publish(control, sorted(minions), "saltutil.find_job", [jid], "list", "", "", None, True, wait)
            if not (stream.next(wait) or {}).get("jid"):
                return False
            deadline = time.monotonic() + wait
            while time.monotonic() < deadline:
                news = stream.next(max(0.0, deadline - time.monotonic()))
                if news is None or news.get("is") == "done":
                    return False
                if news.get("is") == "returned" and news["load"].get("return"):
                    return True
        return False

    @staticmethod
    def _full(load):
        full = {"ret": load.get("return")}
        for key in ("out", "retcode", "jid"):
            if key in load:
                full[key] = load[key]
        return full

    def cmd(self, tgt, fun, arg=(), timeout=None, tgt_type="glob", ret="", jid="", full_return=False, kwarg=None,
            **kwargs):
        """Runs a function on minions; returns what they return, by minion."""
        found = {}
        for load in self._loads(tgt, fun, arg, timeout, tgt_type, ret, kwarg, jid=jid, **kwargs):
            found[load["id"]] = self._full(load) if full_return else load.get("return")
        return found

    def cmd_cli(self, tgt, fun, arg=(), timeout=None, tgt_type="glob", ret="", verbose=False, kwarg=None,
                progress=False, **kwargs):
        for load in self._loads(tgt, fun, arg, timeout, tgt_type, ret, kwarg, **kwargs):
            yield {load["id"]: self._full(load)}

    def cmd_iter(self, tgt, fun, arg=(), timeout=None, tgt_type="glob", ret="", kwarg=None, **kwargs):
        """Yields `{minion: {ret: …}}` as the returns come."""
        yield from self.cmd_cli(tgt, fun, arg, timeout, tgt_type, ret, kwarg=kwarg, **kwargs)

    def cmd_iter_no_block(self, tgt, fun, arg=(), timeout=None, tgt_type="glob", ret="", kwarg=None,
                          show_jid=False, verbose=False, **kwargs):
        """As `cmd_iter`; yields None while there is nothing."""
        for load in self._loads(tgt, fun, arg, timeout, tgt_type, ret, kwarg, block=False, **kwargs):
            yield None if load is None else {load["id"]: self._full(load)}

    def cmd_subset(self, tgt, fun, arg=(), tgt_type="glob", ret="", kwarg=None, subset=3, cli=False, progress=False,
                   full_return=False, **kwargs):
        there = sorted(self.cmd(tgt, "sys.list_functions", [fun] if isinstance(fun, str) else [], tgt_type=tgt_type))
        chosen = random.sample(there, min(int(subset), len(there)))
        return self.cmd(chosen, fun, arg, None, "list", ret, kwarg=kwarg, full_return=full_return, **kwargs)

    def cmd_batch(self, tgt, fun, arg=(), tgt_type="glob", ret="", kwarg=None, batch="10%", **kwargs):
        """Runs in batches; yields `{minion: return}`, or with `raw` the event of each return."""
        raw = kwargs.pop("raw", False)
        minions = sorted(self.cmd(tgt, "test.ping", tgt_type=tgt_type))
        text = str(batch)
        size = max(1, int(float(text[:-1]) / 100 * len(minions))) if text.endswith("%") else max(1, int(text))
        for at in range(0, len(minions), size):
            for load in self._loads(minions[at : at + size], fun, arg, None, "list", ret, kwarg, **kwargs):
                if raw:
                    yield {"data": load, "tag": "salt/job/{}/ret/{}".format(load["jid"], load["id"])}
                else:
                    yield {load["id"]: load.get("return")}

    def cmd_full_return(self, tgt, fun, arg=(), timeout=None, tgt_type="glob", ret="", verbose=False, kwarg=None,
                        **kwargs):
        found = {}
        for load in self._loads(tgt, fun, arg, timeout, tgt_type, ret, kwarg, **kwargs):
            found[load["id"]] = {"ret": load.get("return"), "success": load.get("success", True)}
            if "out" in load:
                found[load["id"]]["out"] = load["out"]
        return found

    def get_cache_returns(self, jid):
        """Returns what has been returned to a job so far."""
        with Control(self.opts) as control:
            job = control.ask("job", jid=jid)
        returns = (job or {}).get("returns") or {}
        found = {}
        for minion, load in returns.items():
            is_load = isinstance(load, dict) and "return" in load
            found[minion] = {"ret": load["return"] if is_load else load}
            if is_load and "out" in load:
                found[minion]["out"] = load["out"]
        return found

    def get_full_returns(self, jid, minions, timeout=None):
        return {minion: data for minion, data in self._wait_for(jid, minions, timeout).items()}

    def get_returns(self, jid, minions, timeout=None):
        return {minion: data["ret"] for minion, data in self._wait_for(jid, minions, timeout).items()}

    def get_cli_returns(self, jid, minions, timeout=None, tgt="*", tgt_type="glob", **kwargs):
        known = {minion: data for minion, data in self.get_cache_returns(jid).items() if minion in minions}
        if known:
            yield known
        missing = set(minions) - set(known)
        if missing:
            for minion, data in self._wait_for(jid, missing, timeout).items():
                yield {minion: data}

    get_iter_returns = get_cli_returns

    def _wait_for(self, jid, minions, timeout):
        deadline = time.monotonic() + self._timeout(timeout)
        while True:
            found = self.get_cache_returns(jid)
            if set(minions) <= set(found) or time.monotonic() > deadline:
                return {minion: found[minion] for minion in minions if minion in found}
            time.sleep(0.1)

    def gather_job_info(self, jid, tgt, tgt_type, **kwargs):
        return self.cmd(tgt, "saltutil.find_job", [jid], tgt_type=tgt_type)

    def gather_minions(self, tgt, tgt_type="glob"):
        with Control(self.opts) as control:
            return sorted(control.ask("minion_data", tgt=tgt, tgt_type=tgt_type))


class Function:
    def __init__(self, caller, name):
        self.caller, self.name = caller, name

    def __call__(self, *args, **kwargs):
        return self.caller.cmd(self.name, *args, **kwargs)


class Functions(dict):
    def __init__(self, caller):
        super().__init__()
        self.caller = caller

    def __missing__(self, name):
        return Function(self.caller, name)

    def __contains__(self, name):
        return True


class Caller:
    """Runs functions on this machine, as `salt-call` does."""

    def __init__(self, c_path="/etc/salt/minion", mopts=None):
        self.opts = mopts if mopts is not None else salt.config.minion_config(c_path)
        self.sminion = self

    def functions(self):
        return Functions(self)

    def cmd(self, fun, *args, **kwargs):
        command = [os.environ.get("HALITE", "salt-call")]
        if os.path.basename(command[0]) == "halite":
            command.append("call")
        folder = self.opts.get("config_dir") or os.path.dirname(self.opts.get("conf_file") or "/etc/salt/minion")
        command += ["--config-dir", folder, "--out", "json", "--log-level", "error"]
        if self.opts.get("file_client") == "local":
            command.append("--local")
        command.append(fun)
        for value in args:
            command.append(value if isinstance(value, str) and value.isidentifier() else json.dumps(value))
        for key, value in kwargs.items():
            command.append("{}={}".format(key, json.dumps(value)))
        # Nothing is published by a program that calls: functions are not told of a publication.
        environment = dict(os.environ, HALITE_UNPUBLISHED="1")
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        try:
            return json.loads(done.stdout)["local"]
        except (ValueError, KeyError):
            raise CommandExecutionError((done.stderr or done.stdout).strip()) from None

    function = cmd


class ProxyCaller(Caller):
    pass


class SSHClient:
    def __init__(self, *args, **kwargs):
        raise SaltClientError("the ssh client is not part of this package; run `salt-ssh`")
