"""The configuration of beacons."""


def list_to_dict(config):
    """A list of dicts with a key each, as one dict."""
    made = {}
    for one in config:
        made.update(one)
    return made


def remove_hidden_options(config, whitelist):
    """The entries of a list without those that have an option beginning with `_` which is not in the other list."""

    def is_hidden(name):
        return str(name).startswith("_") and name not in whitelist

    return [entry for entry in config if not any(is_hidden(name) for name in entry)]
