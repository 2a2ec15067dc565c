"""`WheelClient`: wheel functions of the master on this host."""

from salt.runner import _Client


class WheelClient(_Client):
    verb = "wheel"

    def call_func(self, fun, **kwargs):
        return self.cmd(fun, kwarg=kwargs)

    def cmd_async(self, low):
        return self.cmd_sync(low, full_return=True)


Wheel = WheelClient
