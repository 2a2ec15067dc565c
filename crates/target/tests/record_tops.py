#!/usr/bin/env python3
"""Records how genuine Salt merges and matches the top files of states.

Run it with an interpreter that can import `salt`; it writes `tops.json` beside itself.
"""

import copy
import json
import logging
import os

logging.disable(logging.CRITICAL)

import salt.config
import salt.loader
import salt.state

BASE = {"base": {"*": ["core"], "web*": ["web", {"dev": "dev_web"}], "os:Debian": [{"match": "grain"}, "deb"]}, "dev": {"*": ["from_base"]}}
DEV = {"dev": {"*": ["from_dev"], "web1": ["more"]}, "base": {"*": ["stray", "core"], "new": ["n"]}}
QA = {"qa": {"G@os:Debian": ["qa"], "db*": ["db"]}, "dev": {"*": [{"match": "glob"}, "qa_dev"]}}
SUB = {"base": {"web*": [{"subfilter": {"G@os:Debian": ["inner"], "db*": ["never"]}, "dev": "x"}, "outer"]}}
TOPS = {
    "one": [["base", [BASE]]],
    "three": [["base", [BASE]], ["dev", [DEV]], ["qa", [QA]]],
    "dev_first": [["dev", [DEV]], ["base", [BASE]], ["qa", [QA]]],
    "dev_missing": [["base", [BASE]], ["dev", [{}]], ["qa", [QA]]],
    "all_missing": [["base", [{}]], ["dev", [{}]]],
    "two_files": [["base", [BASE, {"base": {"*": ["second"], "web1": ["w1"]}}]]],
    "no_targets": [["base", [{"base": None}]]],
    "text_targets": [["base", [{"base": "x"}]]],
    "list_targets": [["base", [{"base": ["x"]}]]],
    "text_states": [["base", [{"base": {"*": "single", "web*": ["w"]}}]]],
    "subfilter": [["base", [SUB]]],
    "matchers": [["base", [{"base": {"web1,db1": [{"match": "list"}, "l"], "web[0-9]": [{"match": "pcre"}, "p"], "10.0.0.0/8": [{"match": "ipcidr"}, "i"],
                                     "grp": [{"match": "nodegroup"}, "n"], "N@grp and not db1": ["cn"], "a:b": [{"match": "pillar"}, "pi"], "x": ["no"], "web1 and": ["bad"]}}]]],
    "malformed": [["base", [{"base": {"*": ["", {"match": ""}], "a": "text", "b": None}}]]],
}


def main():
    opts = dict(salt.config.DEFAULT_MINION_OPTS)
    opts.update(id="web1", grains={"os": "Debian", "ipv4": ["10.0.0.5"]}, pillar={"a": "b"}, nodegroups={"grp": "web*"}, extension_modules="",
                __role="minion", file_client="local", saltenv=None)
    high = object.__new__(salt.state.BaseHighState)
    high.matchers = salt.loader.matchers(opts)
    high.avail = {"base": [], "dev": [], "qa": []}
    high._master_tops = lambda: {}
    cases = []
    for name, tops in TOPS.items():
        for strategy in ("merge", "same", "merge_all", "bogus"):
            for saltenv in (None, "dev"):
                high.opts = dict(opts, top_file_merging_strategy=strategy, default_top="base", saltenv=saltenv)
                case = {"name": name, "tops": tops, "strategy": strategy, "saltenv": saltenv}
                try:
                    top = high.merge_tops({env: files for env, files in copy.deepcopy(tops)})
                    case["top"] = json.loads(json.dumps(top))
                    try:
                        case["verify"] = high.verify_tops(top)
                        case["matches"] = json.loads(json.dumps(high.top_matches(copy.deepcopy(top))))
                    except Exception as error:
                        case["match_crash"] = type(error).__name__
                except Exception as error:
                    case["crash"] = str(error)
                cases.append(case)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tops.json"), "w") as out:
        out.write("[" + ",\n".join(json.dumps(case) for case in cases) + "]\n")
    for case in cases:
        if case.get("crash") or case.get("match_crash") or case.get("verify"):
            print(case["name"], case["strategy"], case.get("crash"), case.get("match_crash"), case.get("verify"), case.get("matches"))


main()
