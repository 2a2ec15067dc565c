"""`SMinion` and `MasterMinion`: functions for scripts."""

import salt.loader


class SMinion:
    def __init__(self, opts, context=None):
        self.opts = opts
        self.functions = salt.loader.minion_mods(opts)


class MasterMinion(SMinion):
    def __init__(self, opts, returners=True, states=True, rend=True, matcher=True, whitelist=None,
                 ignore_config_errors=True):
        super().__init__(opts)
        self.returners = salt.loader.returners(opts, self.functions)
