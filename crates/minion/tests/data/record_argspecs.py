#!/usr/bin/env python3
"""Records the arguments of genuine Salt's functions and states.

Run it with the Python of an installed Salt on a machine that has the programs its modules want
(iptables, firewalld, lvm …): a module that does not load is not recorded.

    record_argspecs.py functions.txt states.txt
"""

import sys

import salt.client
import salt.config


def line(name, spec):
    args, defaults = spec["args"] or [], spec["defaults"] or []
    required = len(args) - len(defaults)
    parts = [
        arg if at < required else f"{arg}={defaults[at - required]!r}"
        for at, arg in enumerate(args)
    ]
    if spec["varargs"]:
        parts.append("*args")
    if spec["kwargs"]:
        parts.append("**kwargs")
    return f"{name}({', '.join(parts)})\n"


def main(functions, states):
    opts = salt.config.minion_config(None)
    opts["file_client"] = "local"
    caller = salt.client.Caller(mopts=opts)
    for path, function in ((functions, "sys.argspec"), (states, "sys.state_argspec")):
        specs = caller.cmd(function, "*")
        with open(path, "w") as out:
            out.writelines(line(name, specs[name]) for name in sorted(specs))


main(*sys.argv[1:])
