"""Which minions a target means."""



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


