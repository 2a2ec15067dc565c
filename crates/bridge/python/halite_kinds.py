"""Modules that Salt itself calls, each kind in its own way: matchers, tops, auth, executors, `mod_aggregate`."""

import inspect

import halite_loader as loader
from halite_host import verb

# What a sign-in carries that is not for the function that checks it.
NOT_FOR_AUTH = frozenset(
    (
        "client", "cmd", "eauth", "fun", "gather_job_timeout", "kwarg", "match", "metadata", "print_event",
        "raw", "yield_pub_data", "arg", "tgt", "tgt_type", "key", "token", "jid", "ret", "user", "timeout",
        "full_return", "delimiter", "mine_id",
    )
)


@verb
def matches(kind, target, delimiter):
    """Whether a user's matcher means this minion."""
    function = loader.lookup("matchers", kind + "_match.match")
    given = {} if delimiter is None else {"delimiter": delimiter}
    parameters = inspect.signature(function).parameters
    given = {name: value for name, value in given.items() if name in parameters}
    return bool(function(target, **given))


@verb
def top(name, opts, grains):
    """What a user's `master_tops` module gives a minion."""
    function = loader.lookup("tops", name + ".top")
    if function is None:
        return None
    return function(opts=opts, grains=grains)


@verb
def authenticate(name, what, load):
    """Calls `auth`, `groups` or `acl` of an authentication module; None if it has none."""
    function = loader.lookup("auth", name + "." + what)
    if function is None:
        return None
    given = {key: value for key, value in load.items() if key not in NOT_FOR_AUTH}
    return function(**loader.fitting(function, given))


@verb
def execute(name, data, fun, args, kwargs):
    """Hands a job to a user's executor, with the function it may call, or its name if no module has it."""
    function = loader.lookup("executors", name + ".execute")
    return function(loader.OPTS, data, loader.Functions("modules").get(fun, fun), args, kwargs)


@verb
def aggregate(module, own, chunks, running):
    """Lets a state module join chunks; `own` is the place of the one about to run."""
    function = loader.lookup("states", module + ".mod_aggregate")
    # The module may change the others in place, as it may in Salt.
    low = function(chunks[own], chunks, running)
    return low, chunks


@verb
def engine(name, config):
    """Runs an engine; returns when it does."""
    function = loader.lookup("engines", name + ".start")
    if function is None:
        raise KeyError(loader.missing("engines", name + ".start"))
    return function(**config)
