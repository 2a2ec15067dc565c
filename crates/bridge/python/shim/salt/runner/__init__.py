"""`RunnerClient`: runners of the master on this host."""

from salt.client._socket import Control


class _Client:
    verb = ""

    def __init__(self, opts=None, context=None):
        self.opts = opts

    def _ask(self, fun, arg, kwarg, **more):
        from salt import _host

        kwarg = {key: value for key, value in dict(kwarg or {}).items() if not key.startswith("__")}
        own = _host.functions("runners" if self.verb == "runner" else "wheel")
        if own is not None and not more.get("asynchronous") and fun in own:
            return {"return": own[fun](*arg, **kwarg), "success": True}
        with Control(self.opts) as control:
            return control.ask(self.verb, fun=fun, arg=list(arg), kwarg=kwarg, **more)

    @staticmethod
    def _parsed(arg):
        import salt.utils.args

        args, kwargs = [], {}
        for one in arg or ():
            if isinstance(one, dict) and one.get("__kwarg__"):
                kwargs.update({key: value for key, value in one.items() if key != "__kwarg__"})
                continue
            found = salt.utils.args.KWARG_REGEX.match(one) if isinstance(one, str) else None
            if found:
                kwargs[found.group(1)] = salt.utils.args.yamlify_arg(found.group(2))
            else:
                args.append(one)
        return args, kwargs

    def cmd(self, fun, arg=None, pub_data=None, kwarg=None, print_event=True, full_return=False):
        """Runs it and returns its return."""
        args, kwargs = self._parsed(arg)
        kwargs.update(kwarg or {})
        answer = self._ask(fun, args, kwargs)
        return answer if full_return else answer.get("return")

    def cmd_sync(self, low, timeout=None, full_return=False):
        low = dict(low)
        fun = low.pop("fun")
        arg = low.pop("arg", None)
        kwarg = dict(low.pop("kwarg", None) or {})
        for key in ("client", "eauth", "username", "password", "token", "user"):
            low.pop(key, None)
        kwarg.update(low)
        return self.cmd(fun, arg, kwarg=kwarg, full_return=full_return)

    def call_func(self, fun, **kwargs):
        return self.cmd(fun, kwarg=kwargs)


class RunnerClient(_Client):
    verb = "runner"

    def cmd_async(self, low):
        low = dict(low)
        answer = self._ask(low.pop("fun"), low.pop("arg", None) or [], low.pop("kwarg", None) or low, asynchronous=True)
        jid = answer.get("jid", "")
        return {"tag": "salt/run/{}".format(jid), "jid": jid}

    def asynchronous(self, fun, low, user="UNKNOWN", pub=None):
        return self.cmd_async(dict(low, fun=fun))


Runner = RunnerClient
