"""Which minions a target means."""

import re

TARGET = re.compile(r"(?:(?P<engine>[GPIJLNSER])(?P<delimiter>(?<=[GPIJ]).)?@)(?P<pattern>.+)$")


class CkMinions:
    def __init__(self, opts):
        self.opts = opts

    def check_minions(self, expr, tgt_type="glob", delimiter=":", greedy=True, fuzzy_ret=False):
        from salt.client._socket import Control

        data = Control(self.opts).ask("minion_data", tgt=expr, tgt_type=tgt_type)
        return {"minions": sorted(data), "missing": []}

    def connected_ids(self, subset=None, show_ip=False):
        from salt.client._socket import Control

        found = set(Control(self.opts).ask("minions").get("connected", []))
        return found & set(subset) if subset else found


def get_minion_data(minion, opts):
    from salt.client._socket import Control

    data = Control(opts).ask("minion_data", tgt=minion, tgt_type="glob").get(minion, {})
    return minion, data.get("grains"), data.get("pillar")


def parse_target(target_expression):
    """The parts of a word of a compound target: `G@os:Debian`."""
    found = TARGET.match(target_expression)
    if found is None:
        return {"engine": None, "delimiter": None, "pattern": target_expression}
    return found.groupdict()
