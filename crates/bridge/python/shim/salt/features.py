"""Switches of the option `features`."""


class Features:
    def __init__(self, _features=None):
        self.features = _features if _features is not None else {}

    def setup_features(self, opts):
        self.features.update(opts.get("features") or {})

    def get(self, key, default=None):
        from salt import _host

        own = (_host.opts() or {}).get("features") or {}
        return self.features.get(key, own.get(key, default))


features = Features()
setup_features = features.setup_features
