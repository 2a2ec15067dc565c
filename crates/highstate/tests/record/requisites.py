#!/usr/bin/env python3
"""Records what genuine Salt does for every requisite and every outcome of its targets.

Run it with the Python of a virtual environment that has salt==3008.3 installed:

    python requisites.py > ../requisites.json

Each case is an SLS (as data) and `test`; the answer holds, for every state, its result, comment,
changes, whether it ran, and its position in the run.
"""
import itertools
import json
import os
import sys
import tempfile

import salt.client
import salt.config

OUTCOMES = {
    "changed": "succeed_with_changes",
    "unchanged": "succeed_without_changes",
    "failed": "fail_without_changes",
    "failed_changed": "fail_with_changes",
}
KINDS = ["require", "watch", "onchanges", "onfail", "prereq", "listen"]
MANY = ["require", "require_any", "watch", "watch_any", "onchanges", "onchanges_any",
        "onfail", "onfail_any", "onfail_all"]


def cases():
    for kind, (outcome, fun) in itertools.product(KINDS, OUTCOMES.items()):
        for own in ("nop", "succeed_with_changes"):
            yield f"{kind}/{outcome}/{own}", {
                "a": {f"test.{fun}": []},
                "z": {f"test.{own}": [{kind: [{"test": "a"}]}]},
            }
        yield f"{kind}_in/{outcome}", {
            "a": {f"test.{fun}": [{f"{kind}_in": [{"test": "z"}]}]},
            "z": {"test.nop": []},
        }
    for kind, first, second in itertools.product(MANY, OUTCOMES, OUTCOMES):
        yield f"{kind}/{first}+{second}", {
            "a": {f"test.{OUTCOMES[first]}": []},
            "b": {f"test.{OUTCOMES[second]}": []},
            "z": {"test.succeed_without_changes": [{kind: [{"test": "a"}, {"test": "b"}]}]},
        }
    for one, other in itertools.permutations(["require", "watch", "onchanges", "onfail"], 2):
        for first, second in itertools.product(OUTCOMES, OUTCOMES):
            yield f"{one}+{other}/{first}+{second}", {
                "a": {f"test.{OUTCOMES[first]}": []},
                "b": {f"test.{OUTCOMES[second]}": []},
                "z": {"test.nop": [{one: [{"test": "a"}]}, {other: [{"test": "b"}]}]},
            }
    chain = {
        "a": {"test.fail_without_changes": []},
        "b": {"test.nop": [{"require": [{"test": "a"}]}]},
        "c": {"test.nop": [{"require": [{"test": "b"}]}]},
        "d": {"test.nop": [{"onfail": [{"test": "c"}]}]},
        "e": {"test.nop": [{"onfail": [{"test": "b"}]}, {"order": 1}]},
    }
    yield "chain/failed", chain
    yield "order/mixed", {
        "last": {"test.nop": [{"order": "last"}]},
        "minus": {"test.nop": [{"order": -1}]},
        "one": {"test.nop": [{"order": 1}]},
        "plain": {"test.nop": []},
        "needs": {"test.nop": [{"order": 1}, {"require": [{"test": "late"}]}]},
        "late": {"test.nop": [{"order": 50}]},
        "first": {"test.nop": [{"order": "first"}]},
    }
    yield "names/order", {
        "n": {"test.nop": [{"names": ["x", "y", {"w": [{"order": 3}]}]}]},
        "m": {"test.nop": [{"require": [{"test": "y"}]}]},
    }
    yield "prereq/chain", {
        "a": {"test.succeed_with_changes": [{"prereq": [{"test": "b"}]}]},
        "b": {"test.succeed_with_changes": [{"prereq": [{"test": "c"}]}]},
        "c": {"test.succeed_with_changes": []},
    }
    yield "prereq/chain_unchanged", {
        "a": {"test.succeed_with_changes": [{"prereq": [{"test": "b"}]}]},
        "b": {"test.succeed_with_changes": [{"prereq": [{"test": "c"}]}]},
        "c": {"test.nop": []},
    }
    yield "glob/names", {
        "/etc/a": {"test.succeed_with_changes": []},
        "/etc/b": {"test.nop": []},
        "z": {"test.nop": [{"watch": [{"test": "/etc/*"}]}]},
    }
    yield "bare/id", {
        "a": {"test.succeed_with_changes": []},
        "z": {"test.nop": [{"onchanges": ["a"]}]},
    }
    yield "failhard/own", {
        "a": {"test.fail_without_changes": [{"failhard": True}]},
        "b": {"test.nop": []},
    }
    yield "missing/require", {"z": {"test.nop": [{"require": [{"test": "nothere"}]}]}}
    yield "missing/require_in", {"z": {"test.nop": [{"require_in": [{"test": "nothere"}]}]}}
    yield "cycle/two", {
        "a": {"test.nop": [{"require": [{"test": "b"}]}]},
        "b": {"test.nop": [{"require": [{"test": "a"}]}]},
    }
    yield "use/args", {
        "a": {"test.succeed_with_changes": [{"comment": "from a"}]},
        "z": {"test.succeed_with_changes": [{"use": [{"test": "a"}]}]},
    }
    yield "extend/args", {
        "extend": {"a": {"test": [{"comment": "extended"}]}},
        "a": {"test.succeed_with_changes": [{"comment": "own"}]},
    }
    yield "exclude/id", {
        "exclude": [{"id": "a"}],
        "a": {"test.nop": []},
        "b": {"test.nop": []},
    }


def shown(ret):
    if not isinstance(ret, dict):
        return ret
    rows = []
    for tag, state in sorted(ret.items(), key=lambda item: item[1].get("__run_num__", 0)):
        rows.append({
            "tag": tag,
            "result": state.get("result"),
            "comment": state.get("comment"),
            "changes": state.get("changes"),
            "ran": state.get("__state_ran__", True),
        })
    return rows


def main():
    root = tempfile.mkdtemp()
    roots = os.path.join(root, "srv")
    os.makedirs(roots)
    opts = salt.config.minion_config(None)
    opts.update({
        "root_dir": root, "cachedir": os.path.join(root, "cache"), "id": "kit",
        "pki_dir": os.path.join(root, "pki"), "sock_dir": os.path.join(root, "sock"),
        "extension_modules": os.path.join(root, "ext"),
        "file_client": "local", "file_roots": {"base": [roots]},
        "pillar_roots": {"base": []}, "log_level": "quiet", "state_events": False,
    })
    caller = salt.client.Caller(mopts=opts)
    recorded = []
    for name, sls in cases():
        # A file name of its own for each case: Salt caches rendered templates.
        sls_name = "c%d" % len(recorded)
        with open(os.path.join(roots, sls_name + ".sls"), "w") as handle:
            json.dump(sls, handle)
        for test in (False, True):
            ret = caller.cmd("state.sls", sls_name, test=test)
            recorded.append({"name": name, "sls": sls, "sls_name": sls_name, "test": test,
                             "expected": shown(ret)})
    json.dump(recorded, sys.stdout, indent=0)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
