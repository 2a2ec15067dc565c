"""Modules that Salt itself calls, each kind in its own way: matchers, tops, auth, executors, log handlers, `mod_aggregate`."""

import inspect
import logging

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


# Set up by the first records.
LOG_HANDLERS = None


def log_handlers():
    """The handlers that users' modules set up; one module's failure is not another's."""
    global LOG_HANDLERS
    if LOG_HANDLERS is None:
        LOG_HANDLERS = []
        # A module may have several names.
        modules = {id(module): (name, module) for name, module in loader.kind("log_handlers").order}
        for name, module in modules.values():
            setup = getattr(module, "setup_handlers", None)
            if setup is None:
                continue
            try:
                made = setup() or ()
            except Exception:
                logging.getLogger("salt.loader").exception("The log handlers of %s cannot be set up", name)
                continue
            made = (made,) if isinstance(made, logging.Handler) else made
            LOG_HANDLERS.extend(one for one in made if isinstance(one, logging.Handler))
    return LOG_HANDLERS


@verb
def log_records(records):
    """Hands records to users' log handlers; returns the lowest level they want, None if there is no handler."""
    handlers = log_handlers()
    for given in records:
        record = logging.makeLogRecord(given)
        for handler in handlers:
            if record.levelno < handler.level:
                continue
            try:
                handler.handle(record)
            except Exception:
                handler.handleError(record)
    return min((handler.level for handler in handlers), default=None)


@verb
def close_log_handlers():
    for handler in log_handlers():
        handler.flush()
        handler.close()
