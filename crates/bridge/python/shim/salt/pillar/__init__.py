"""The pillar of a minion, as runners and modules of the master compile it."""

from salt import _host


def get_pillar(
    opts, grains, minion_id, saltenv=None, ext=None, funcs=None, pillar_override=None, pillarenv=None,
    extra_minion_data=None,
):
    return Pillar(opts, grains, minion_id, saltenv, pillar_override=pillar_override, pillarenv=pillarenv)


class Pillar:
    def __init__(
        self, opts, grains, minion_id, saltenv, ext=None, functions=None, pillar_override=None, pillarenv=None,
        extra_minion_data=None,
    ):
        self.opts, self.grains, self.minion_id = opts, grains, minion_id
        self.saltenv, self.pillarenv = saltenv, pillarenv
        self.pillar_override = pillar_override

    def compile_pillar(self, ext=True):
        """On a master that of the minion; on a minion its own."""
        runners = _host.functions("runners")
        if runners is not None and "pillar.show_pillar" in runners and self.opts.get("__role") == "master":
            given = {"saltenv": self.saltenv, "pillarenv": self.pillarenv}
            found = runners["pillar.show_pillar"](
                minion=self.minion_id, **{name: value for name, value in given.items() if value}
            )
        else:
            found = _host.call("pillar.items", pillar=self.pillar_override, pillarenv=self.pillarenv)
        return found
