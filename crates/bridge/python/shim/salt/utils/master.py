"""What the master knows of its minions."""

from salt.defaults import DEFAULT_TARGET_DELIM  # noqa: F401


class MasterPillarUtil:
    """Grains, pillar and mine data of some minions, as the master keeps them."""

    def __init__(
        self, tgt="", tgt_type="glob", saltenv=None, use_cached_grains=True, use_cached_pillar=True,
        grains_fallback=True, pillar_fallback=True, opts=None,
    ):
        self.tgt, self.tgt_type, self.opts = tgt, tgt_type, opts or {}
        self.saltenv = saltenv or self.opts.get("saltenv") or "base"

    def _kept(self):
        from salt.client._socket import Control

        tgt = ",".join(self.tgt) if isinstance(self.tgt, (list, tuple)) else self.tgt
        return Control(self.opts).ask("minion_data", tgt=tgt, tgt_type=self.tgt_type) or {}

    def get_minion_grains(self):
        return {minion: data.get("grains") or {} for minion, data in self._kept().items()}

    def get_minion_pillar(self):
        return {minion: data.get("pillar") or {} for minion, data in self._kept().items()}

    def get_cached_mine_data(self):
        from salt import _host

        runners = _host.functions("runners") or {}
        found = runners.get("cache.mine")
        return found(tgt=self.tgt, tgt_type=self.tgt_type) if found else {}
