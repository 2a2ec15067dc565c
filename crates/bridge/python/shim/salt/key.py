"""Keys of minions, by the wheel functions."""

import salt.wheel


class Key:
    def __init__(self, opts, io_loop=None):
        self.opts = opts
        self.wheel = salt.wheel.WheelClient(opts)

    def list_keys(self):
        return self.wheel.cmd("key.list_all")

    def name_match(self, match, full=False):
        return self.wheel.cmd("key.name_match", [match])

    def accept(self, match=None, match_dict=None, include_rejected=False, include_denied=False):
        return self.wheel.cmd("key.accept", [match])

    def delete_key(self, match=None, **kwargs):
        return self.wheel.cmd("key.delete", [match])

    def reject(self, match=None, **kwargs):
        return self.wheel.cmd("key.reject", [match])


def get_key(opts):
    return Key(opts)
