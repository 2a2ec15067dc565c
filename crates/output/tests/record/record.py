#!/usr/bin/env python3
"""Records what genuine Salt prints, for tests/golden.rs to compare with.

Run it with the Python that has Salt 3008 installed, from anywhere:

    python record.py > ../golden.json

The file holds inputs, settings, texts, and cases that join them:
[input, outputter, settings, number of the text, or null where genuine Salt fails].
Data that JSON cannot hold is tagged: {"$t": [...]} a tuple, {"$b": "00ff"} bytes,
{"$d": [[key, value], ...]} a dict with keys that are no text, {"$ts": "..."} a date.
"""

import copy
import datetime
import json
import logging
import random
import sys
import tempfile

import salt.output

logging.disable(logging.CRITICAL)

# --- inputs: plain data ---------------------------------------------------------------------

LONG = "The quick brown fox jumps over the lazy dog and keeps on running through the night"
WORDS = ["alpha", "beta gamma", "delta\nepsilon", "é", "日本語", "", "a" * 30, "x: y", "- z", "#h"]


def noise(seed, depth):
    """Returns data that nobody thought of, the same each time."""
    rng = random.Random(seed)

    def make(depth):
        kind = rng.randrange(9 if depth else 6)
        if kind == 0:
            return rng.choice(WORDS) + " " * rng.randrange(2) + rng.choice(WORDS)
        if kind == 1:
            return rng.randrange(-(10**6), 10**12)
        if kind == 2:
            return round(rng.uniform(-1000, 1000), rng.randrange(8))
        if kind == 3:
            return rng.choice([None, True, False, "", 0, "None", "true", "1.0"])
        if kind == 4:
            return rng.choice(WORDS) * rng.randrange(1, 6)
        if kind == 5:
            return "".join(rng.choice("ab-/._ ") for _ in range(rng.randrange(90)))
        if kind == 6:
            return [make(depth - 1) for _ in range(rng.randrange(6))]
        keys = [rng.choice(WORDS) + str(rng.randrange(40)) for _ in range(rng.randrange(6))]
        return {key: make(depth - 1) for key in keys}

    return {"minion%d" % n: make(depth) for n in range(rng.randrange(1, 4))}


PLAIN = {
    "true": {"web1": True},
    "false": {"web1": False},
    "none": {"web1": None},
    "two minions": {"web2": True, "web1": False},
    "int": {"web1": 42},
    "negative": {"web1": -7},
    "big int": {"web1": 123456789012345678901234567890},
    "floats": {"web1": [0.1, 1.0, 1e16, 1.5e-07, -0.0, 100.0, 3.141592653589793]},
    "not finite": {"web1": [float("inf"), float("-inf"), float("nan")]},
    "text": {"web1": "hello"},
    "empty text": {"web1": ""},
    "spaces": {"web1": "   "},
    "lines": {"web1": "one\ntwo\n\nthree\n"},
    "line ends": {"web1": "a\r\nb\rc\x0bd\x0ce\x1cf\x85g\u2028h"},
    "trailing space": {"web1": "text  \nmore \n \n"},
    "tabs": {"web1": "a\tb\n\tc"},
    "unicode": {"web1": "naïve café 日本語 😀 \u200b\xa0x", "münchen": ["ß", "ñ"]},
    "controls": {"web1": "bell\x07 null\x00 del\x7f"},
    "escapes": {"web1": "\x1b[31mred\x1b[0m", "\x1b[1mkey": ["\x1b]0;title\x07"]},
    "quotes": {"web1": ["it's", 'say "x"', "it's \"both\"", "back\\slash"]},
    "empty list": {"web1": []},
    "empty dict": {"web1": {}},
    "empties": {"web1": [[], {}, "", None, [[]], [{}]]},
    "list": {"web1": ["a", "b", 1, None, True]},
    "nested lists": {"web1": [["a", ["b", ["c"]]], "d"]},
    "list of dicts": {"web1": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]},
    "dict": {"web1": {"b": 1, "a": 2, "c": {"z": [1, 2], "y": "text"}}},
    "deep": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": ["i", {"j": "k"}]}}}}}}}},
    "multi-line items": {"web1": ["one\ntwo", {"k": "three\nfour"}, ["five\nsix"]]},
    "tuple": {"web1": ("a", 1, ("b",), ())},
    "bytes": {"web1": b"plain bytes", "web2": b"\xff\xfe\x00binary", "web3": [b"x'y", b""]},
    "bytes lines": {"web1": b"one\ntwo\r\nthree\x0bfour"},
    "long bytes": b"0123456789" * 12 + b"\xff",
    "long bytes in dict": {"web1": {"key": bytes(range(64))}},
    "int keys": {"web1": {2: "b", 1: "a", 10: "c"}},
    "mixed keys": {"web1": {1: "int", "a": "text", None: "none", 2.5: "float", True: "bool?"}},
    "tuple keys": {"web1": {("a", 1): "x", ("a", 0): "y"}},
    "bytes key": {"web1": {b"k": 1}},
    "same text keys": {"web1": {1: "int", "1": "text", "0": "zero"}},
    "int minions": {1: True, 2: False},
    "long list": {"web1": ["item-%03d" % n for n in range(60)]},
    "long numbers": {"web1": list(range(1000, 1100))},
    "long line": {"web1": LONG},
    "long text": {"web1": {"key": LONG + " " + LONG + "\n" + LONG}},
    "long word": {"web1": {"key": "x" * 200, "other": ["y" * 79, "z" * 40 + " " + "w" * 60]}},
    "wide dict": {"web1": {"key%02d" % n: "value %d" % n for n in range(12)}},
    "grains": {
        "web1": {
            "os": "Debian",
            "osmajorrelease": 12,
            "ipv4": ["127.0.0.1", "10.0.0.5"],
            "ip_interfaces": {"eth0": ["10.0.0.5", "fe80::1"], "lo": ["127.0.0.1", "::1"]},
            "cpu_flags": ["fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic"],
            "mem_total": 15998,
            "locale_info": {"defaultencoding": "UTF-8", "defaultlanguage": None},
            "systemd": {"version": "252", "features": "+PAM +AUDIT " * 12},
            "virtual_subtype": "",
        }
    },
    "yaml words": {"web1": ["yes", "no", "null", "~", "1", "1.5", "0x10", "1e3", "on", "2001-01-01"]},
    "yaml signs": {"web1": ["- a", "a: b", "#c", "a #b", "'q'", '"q"', "%x", "@x", "`x", "*x", "&x", "!x"]},
    "yaml space": {"web1": [" lead", "trail ", "a\n", "\na", "a\n\nb", "tab\t", "multi\n  indented\n"]},
    "date": {"web1": datetime.datetime(2024, 5, 6, 7, 8, 9), "list": [datetime.datetime(2024, 1, 1)]},
    "error text": {"web1": "ERROR: 'foo.bar' is not available.\n"},
    "plain text": "just a text\nin lines",
    "plain empty": "",
    "plain int": 7,
    "plain zero": 0,
    "plain float": 2.5,
    "plain true": True,
    "plain none": None,
    "plain list": ["b", "a", {"k": "v"}],
    "plain long text": LONG + "\n" + LONG + " " + LONG,
    "plain tuple": ("one",),
    "plain empty dict": {},
    "plain empty list": [],
    "long keys": {"k" * 70: {"n" * 30: ["x" * 20, {"deep" * 10: "v"}]}},
    "edge widths": {"m": ["a" * n for n in range(70, 80)], "n": {"k%d" % n: "b" * n for n in range(60, 80)}},
    "edge tuples": {"m": ("a" * 74,), "n": ("a" * 73, "b")},
    "edge text": {"m": {"k": " ".join(["word"] * 15), "kk": " ".join(["wo"] * 24) + " end"}},
    "runner jobs": {
        "20240101000000000000": {
            "Arguments": ["cmd", {"__kwarg__": True, "shell": "/bin/sh"}],
            "Function": "cmd.run",
            "StartTime": "2024, Jan 01 00:00:00.000000",
            "Target": "*",
            "Target-type": "glob",
            "User": "root",
        }
    },
    "trailing blank items": {"web1": ["a", "  ", "\n", ""]},
}
for seed in range(40):
    PLAIN["noise %d" % seed] = noise(seed, 1 + seed % 4)

KEYS = {
    "keys": {
        "minions": ["mail3", "cache", "api-7", "Zebra"],
        "minions_pre": ["fresh", "box.example"],
        "minions_denied": [],
        "minions_rejected": ["rogue\x1b[31m"],
    },
    "keys empty": {"minions": [], "minions_pre": [], "minions_denied": [], "minions_rejected": []},
    "keys local": {"local": ["master.pem", "master.pub"], "minions": ["é"]},
    "keys fingerprints": {"minions": {"mail3": "5e:19:d0", "cache": "07:c4"}, "local": {"master.pub": "e2"}},
    "keys text": {"minions": {"mail3": "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----"}},
    "keys raet": {"accepted": ["in"], "pending": ["door"], "rejected": ["out"], "local": ["here"]},
    "keys other": {"return": True},
    "keys mixed": {"minions": ["a", 1]},
    "keys bytes": {"minions": [b"mail3"]},
    "keys none": {"minions": None},
    "keys deleted": {"minions": ["mail3"]},
}

ROWS = [
    {"port": "swp12", "link_partner": "02:4b:9e:5c:d1:3a", "up": True, "mtu": 9216},
    {"port": "swp3s1", "link_partner": "06:00:ac:00:07:f1", "up": False, "mtu": 1500},
]
TABLES = {
    "table": {"leaf7": {"comment": "", "out": ROWS, "result": True}},
    "table lists": {"leaf7": {"out": [["a", "bb"], ["ccc", "d"]]}},
    "table texts": {"leaf7": ["one", "three words here", "é"]},
    "table wrap": {"leaf7": [{"a": LONG, "b": "short"}, {"a": "x", "b": LONG + " " + LONG}]},
    "table wrap all": {"leaf7": [{"a": LONG, "b": LONG}, {"a": "1", "b": "2"}]},
    "table mixed": {"leaf7": [{"a": 1}, "text"]},
    "table numbers": {"leaf7": [[1, 2], [3, 4]]},
    "table uneven": {"leaf7": [["a", "b", "c"], ["d"]]},
    "table labels": {"leaf7": {"rows": [["a", "b"]], "labels": ["First", "Second"]}},
    "table labels dict": {"leaf7": {"rows": ROWS, "labels": {"a": "A", "b": "B", "c": "C", "d": "D"}}},
    "table top": ROWS,
    "table title case": {"m": [{"it's_a key2x": 1, "ÉCOLE_d'été": "x", "ALLCAPS": "y"}]},
    "table empty row": {"m": [[], []]},
    "table newline": {"m": [{"a": "x\ny\nz", "b": "1\n2\n3"}, {"a": "p", "b": "q"}]},
}

# --- inputs: state runs ---------------------------------------------------------------------


def state(tag, num, result=True, changes=None, comment="All fine", **more):
    name = tag.split("_|-")[2]
    ret = {
        "name": name,
        "changes": {} if changes is None else changes,
        "result": result,
        "comment": comment,
        "__sls__": "web.init",
        "__run_num__": num,
        "start_time": "12:34:5%d.678901" % (num % 10),
        "duration": 1.5 * num + 0.123,
        "__id__": tag.split("_|-")[1],
    }
    ret.update(more)
    drop = [key for key, value in ret.items() if value is KeyError]
    for key in drop:
        del ret[key]
    return {tag: ret}


def run(*states):
    ret = {}
    for one in states:
        ret.update(one)
    return ret


DIFF = "--- \n+++ \n@@ -1,3 +1,3 @@\n line\n-old\n+new\n"
OK = state("file_|-/etc/motd_|-/etc/motd_|-managed", 0, comment="File /etc/motd is in the correct state")
CHANGED = state(
    "file_|-web config_|-/etc/nginx.conf_|-managed",
    1,
    changes={"diff": DIFF, "mode": "0644"},
    comment="File /etc/nginx.conf updated",
)
FAILED = state(
    "cmd_|-deploy_|-/usr/local/bin/deploy --force_|-run",
    2,
    False,
    {"pid": 4711, "retcode": 3, "stderr": "boom\nbang", "stdout": ""},
    'Command "/usr/local/bin/deploy --force" run\nwith trouble',
)
TEST = state(
    "pkg_|-nginx_|-nginx_|-installed",
    3,
    None,
    {"nginx": {"old": "", "new": "1.24"}},
    "The following packages would be installed/updated: nginx",
)
TEST_PLAIN = state("service_|-nginx_|-nginx_|-running", 4, None, comment="Service nginx is set to start")
SKIPPED = state(
    "service_|-web_|-nginx_|-running",
    5,
    False,
    comment="One or more requisite failed: web.init.deploy",
    start_time=KeyError,
    duration=KeyError,
    __state_ran__=False,
)
WARNED = state(
    "test_|-warn_|-warn_|-nop",
    6,
    warnings=[
        "The 'foo' argument is deprecated and will be removed in version 3009 (Potassium); please use "
        "'bar' instead -- see the well-known release-notes at https://example.com/a-very/long-path/"
        "that-goes/on-and-on/without-any-space-in-it/until-the-line-must-break for details.",
        "Second warning\twith tab",
    ],
)
NAMES = run(
    *[
        state(
            "file_|-web files_|-/srv/web/%d_|-absent" % n,
            10 + n,
            n % 3 != 0,
            {"removed": "/srv/web/%d" % n} if n % 2 else {},
            "Removed file",
        )
        for n in range(7)
    ]
)

MINION = run(OK, CHANGED, FAILED, TEST, TEST_PLAIN, SKIPPED, WARNED)

STATES = {
    "ok": {"web1": OK},
    "changed": {"web1": CHANGED},
    "failed": {"web1": FAILED},
    "test": {"web1": run(TEST, TEST_PLAIN)},
    "skipped": {"web1": SKIPPED},
    "warned": {"web1": WARNED},
    "all kinds": {"web1": MINION},
    "out of order": {"web1": run(TEST, FAILED, CHANGED, OK)},
    "two minions": {"web2": run(OK, CHANGED), "web1": run(FAILED)},
    "names": {"web1": run(OK, NAMES)},
    "many": {"web1": run(*[state("test_|-s%d_|-s%d_|-nop" % (n, n), n) for n in range(12)])},
    "nested changes": {
        "web1": state(
            "pkg_|-tools_|-tools_|-installed",
            0,
            changes={
                "installed": {"vim": {"new": "9.0", "old": ""}, "git": {"new": ["1", "2"], "old": None}},
                "list": [1, {"a": [True, None]}, "multi\nline"],
                "empty": {},
                "nothing": "",
            },
        )
    },
    "unicode": {"wéb": state("test_|-ключ_|-naïve 日本_|-nop", 0, changes={"é": "ü\n😀"}, comment="Прошло ✓")},
    "long comment": {"web1": state("test_|-a_|-a_|-nop", 0, comment="line 1\nline 2\n\n  line 4\n")},
    "comment list": {"web1": state("test_|-a_|-a_|-nop", 0, comment=["one", "two\nthree"])},
    "comment dict": {"web1": state("test_|-a_|-a_|-nop", 0, comment={"a": 1})},
    "comment none": {"web1": state("test_|-a_|-a_|-nop", 0, comment=None)},
    "comment bytes": {"web1": state("test_|-a_|-a_|-nop", 0, comment=b"bytes")},
    "comment empty": {"web1": state("test_|-a_|-a_|-nop", 0, comment="")},
    "comment escapes": {"web\x1b[1m1": state("test_|-a_|-a_|-nop", 0, False, {"\x1b[1mk": "\x1b[2mv"}, "\x1b[31mred")},
    "no comment": {"web1": state("test_|-a_|-a_|-nop", 0, comment=KeyError)},
    "no changes key": {"web1": state("test_|-a_|-a_|-nop", 0, changes=KeyError)},
    "data list": {"web1": state("test_|-a_|-a_|-nop", 0, data=["x", 1, {"k": "v"}])},
    "data dict": {"web1": state("test_|-a_|-a_|-nop", 0, data={"k": "v", "l": [1]})},
    "data text": {"web1": state("test_|-a_|-a_|-nop", 0, data="more")},
    "changes text": {"web1": state("test_|-a_|-a_|-nop", 0, changes="not a dict")},
    "changes list": {"web1": state("test_|-a_|-a_|-nop", 0, changes=["a"])},
    "changes none": {"web1": state("test_|-a_|-a_|-nop", 0, changes=None)},
    "duration none": {"web1": state("test_|-a_|-a_|-nop", 0, duration=None)},
    "duration text": {"web1": state("test_|-a_|-a_|-nop", 0, duration="12.5 ms")},
    "duration number text": {"web1": state("test_|-a_|-a_|-nop", 0, duration=" 1_0.5 ")},
    "duration junk": {"web1": state("test_|-a_|-a_|-nop", 0, duration="soon")},
    "duration int": {"web1": state("test_|-a_|-a_|-nop", 0, duration=999)},
    "duration long": {"web1": run(state("test_|-a_|-a_|-nop", 0, duration=999.0), state("test_|-b_|-b_|-nop", 1, duration=12345.6785))},
    "duration none at all": {"web1": state("test_|-a_|-a_|-nop", 0, duration=KeyError)},
    "no start time": {"web1": state("test_|-a_|-a_|-nop", 0, start_time=KeyError)},
    "parallel": {
        "web1": run(
            state("test_|-a_|-a_|-nop", 0, duration=100.5, __parallel__=True),
            state("test_|-b_|-b_|-nop", 1, duration=300.25, __parallel__=True),
            state("test_|-c_|-c_|-nop", 2, duration=10),
        )
    },
    "no run num": {"web1": run(OK, {"test_|-x_|-x_|-nop": {"result": True, "comment": "c", "changes": {}, "name": "x"}})},
    "no run num twice": {"web1": {"a_|-b_|-c_|-d": {"name": "n"}, "e_|-f_|-g_|-h": {"name": LONG, "k": [LONG]}}},
    "run num mixed": {"web1": run(OK, state("test_|-a_|-a_|-nop", 3, __run_num__=None))},
    "run num equal": {"web1": run(state("test_|-b_|-b_|-nop", 3), state("test_|-a_|-a_|-nop", 3))},
    "result one": {"web1": run(state("test_|-a_|-a_|-nop", 0, 1), state("test_|-b_|-b_|-nop", 1, True), state("test_|-c_|-c_|-nop", 2, 0))},
    "result text": {"web1": run(state("test_|-a_|-a_|-nop", 0, "maybe"), OK)},
    "result list": {"web1": state("test_|-a_|-a_|-nop", 0, ["x"])},
    "short tag": {"web1": {"onlyone": OK["file_|-/etc/motd_|-/etc/motd_|-managed"]}},
    "short tag warned": {"web1": {"a_|-b_|-c": OK["file_|-/etc/motd_|-/etc/motd_|-managed"]}},
    "long tag": {"web1": state("a_|-b_|-c_|-d_|-e", 0)},
    "errors": {"web1": ["Rendering SLS 'base:web' failed: Jinja error\n\n---\n{{ x }}  <======\n---", "No matching sls found"]},
    "errors escapes": {"web1": ["\x1b[31mred", b"bytes", 3, {"k": "\x1b"}, None]},
    "errors empty": {"web1": []},
    "text": {"web1": "The function \"state.apply\" is running as PID 1\nsecond line"},
    "text empty": {"web1": ""},
    "int": {"web1": 1},
    "bool": {"web1": False},
    "none": {"web1": None},
    "float": {"web1": 1.5},
    "empty dict": {"web1": {}},
    "no states": {"web1": {"a": "b"}},
    "plain dict": {"web1": {"a": {"b": 1}}},
    "mixed minions": {"a": ["error"], "b": OK, "c": "text", "d": True, "e": run(FAILED)},
    "not a dict": [1, 2],
    "plain text": "some text\n",
    "plain none": None,
    "plain true": True,
    "plain empty": {},
    "int minion": {1: OK},
    "envelope data": {"data": {"web1": OK}, "outputter": "highstate", "retcode": 0},
    "envelope return": {"return": {"data": {"web1": OK}, "outputter": "highstate"}},
    "envelope job": {"master1": {"jid": "2024", "fun": "runner.state.orch", "return": {"data": {"m_master": OK}}}},
    "envelope job plain": {"master1": {"jid": "2024", "fun": "state.apply", "return": {"x": 1}}},
    "envelope job text": {"master1": {"jid": "2024", "fun": "state.apply", "return": "text"}},
    "warnings text": {"web1": state("test_|-a_|-a_|-nop", 0, warnings="abc")},
    "warnings braces": {"web1": state("test_|-a_|-a_|-nop", 0, warnings=["use {0} or {{x}}"])},
    "warnings braces bad": {"web1": state("test_|-a_|-a_|-nop", 0, warnings=["use {name}"])},
    "warnings empty": {"web1": state("test_|-a_|-a_|-nop", 0, warnings=[])},
    "warnings numbers": {"web1": state("test_|-a_|-a_|-nop", 0, warnings=[1])},
    "warnings failed": {"web1": state("test_|-a_|-a_|-nop", 0, False, {"a": 1}, warnings=["x" * 200, "- y -- z"])},
    "module run": {"web1": state("module_|-test.ping_|-test.ping_|-run", 0, changes={"ret": True})},
    "changes with out": {"web1": state("module_|-m_|-m_|-run", 0, changes={"ret": {"a": 1}, "out": "nested"})},
    "orch": {
        "mom_master": run(
            state(
                "salt_|-deploy_|-deploy_|-state",
                0,
                changes={"out": "highstate", "ret": {"web1": run(OK, CHANGED), "web2": run(FAILED)}},
                comment="States ran successfully. Updating web1, web2.",
            ),
            state(
                "salt_|-nothing_|-nothing_|-state",
                1,
                changes={"out": "highstate", "ret": {"web1": OK}},
                comment="States ran successfully. No changes made to web1.",
            ),
            state(
                "salt_|-ping_|-test.ping_|-function",
                2,
                changes={"ret": {"web1": True, "web2": True}, "out": "highstate"},
                comment="Function ran successfully. Function test.ping ran on web1, web2.",
            ),
            state(
                "salt_|-cmd_|-cmd.run_|-function",
                3,
                changes={"ret": {"web1": "line\nline 2"}, "out": "highstate"},
            ),
            state(
                "salt_|-failed_|-failed_|-state",
                4,
                False,
                {"out": "highstate", "ret": {"web1": ["SLS error"], "web2": False}},
                "Run failed on minions: web1",
            ),
        ),
        "retcode": 1,
    },
    "orch envelope": {
        "data": {"mom_master": state("salt_|-a_|-a_|-state", 0, changes={"out": "highstate", "ret": {"web1": OK}}), "retcode": 0},
        "outputter": "highstate",
        "retcode": 0,
    },
    "orch two masters": {"a_master": OK, "b_master": OK, "retcode": 0},
    "orch nested": {
        "mom_master": state(
            "salt_|-sub_|-state.orchestrate_|-runner",
            0,
            changes={
                "return": {
                    "data": {
                        "mom_master": run(
                            state(
                                "salt_|-inner_|-state.sls_|-runner",
                                0,
                                changes={"data": {"mom_master": run(OK, CHANGED)}, "retcode": 0},
                            ),
                            CHANGED,
                        )
                    },
                    "outputter": "highstate",
                }
            },
            comment="Runner function 'state.orchestrate' executed.",
        )
    },
    "orch nested text": {"mom_master": state("salt_|-sub_|-state.orch_|-runner", 0, changes={"return": "text\nlines"})},
    "orch nested empty": {"mom_master": state("salt_|-sub_|-state.orch_|-runner", 0)},
    "orch nested int": {"mom_master": state("salt_|-sub_|-state.orch_|-runner", 0, changes={"return": 3})},
    "orch ret list": {"mom_master": state("salt_|-sub_|-x_|-state", 0, changes={"out": "highstate", "ret": ["x"]})},
    "orch ret empty": {"mom_master": state("salt_|-sub_|-x_|-state", 0, changes={"out": "highstate", "ret": {}})},
    "compress two sls": {
        "web1": run(
            state("cmd_|-x_|-one_|-run", 0, changes={"a": 1}, __sls__="a"),
            state("cmd_|-x_|-two_|-run", 1, __sls__="a", duration=7),
            state("cmd_|-x_|-three_|-run", 2, __sls__="b"),
            state("cmd_|-x_|-four_|-run", 3, __sls__="a", changes={"b": [2]}),
            state("cmd_|-x_|-five_|-run", 4, False, __sls__="a"),
            state("cmd_|-x_|-six_|-run", 5, None, __sls__="a"),
        )
    },
    "compress ints": {"web1": run(state("a_|-x_|-1_|-run", 0, duration=3), state("a_|-x_|-2_|-run", 1, duration=4))},
    "compress late": {"web1": run(state("a_|-x_|-1_|-run", 9), state("a_|-x_|-2_|-run", 1), state("a_|-y_|-3_|-run", 5))},
    "compress text durations": {"web1": run(state("a_|-x_|-1_|-run", 0, duration="3 ms"), state("a_|-x_|-2_|-run", 1, duration="4 ms"))},
    "compress errors": {"web1": NAMES, "web2": ["error"]},
    "no sls": {"web1": state("a_|-x_|-1_|-run", 0, __sls__=KeyError)},
}

# --- settings -------------------------------------------------------------------------------

BASE = {"color": False, "state_verbose": True, "state_output": "full", "state_output_profile": True}
COLOR = dict(BASE, color=True)
PLAIN_SETTINGS = {"": {}, "color": {"color": True}}
INDENTS = {
    "indent none": {"output_indent": None},
    "indent pretty": {"output_indent": "pretty"},
    "indent 0": {"output_indent": 0},
    "indent 1": {"output_indent": 1},
    "indent 2": {"output_indent": 2},
    "indent 7": {"output_indent": 7},
    "indent -1": {"output_indent": -1},
}
NESTED_SETTINGS = {
    "failed": {"color": True, "_retcode": 1},
    "indented": {"nested_indent": 6},
    "red": {"color": "RED"},
    "escapes": {"color": True, "strip_colors": False},
    "theme": {"color": True, "theme": {"GREEN": "1;92", "CYAN": "38;5;45", "ENDC": "0"}},
}
HIGH_SETTINGS = {
    "high": BASE,
    "high color": COLOR,
    "terse": dict(BASE, state_output="terse"),
    "mixed": dict(BASE, state_output="mixed"),
    "changes": dict(BASE, state_output="changes"),
    "compress terse_id": dict(BASE, state_output="terse_id", state_compress_ids=True),
    "tabular": dict(BASE, state_output="terse", state_tabular=True),
    "silent": {"color": False},
}
MORE_HIGH_SETTINGS = {
    "full_id": dict(BASE, state_output="full_id"),
    "Terse_ID": dict(COLOR, state_output="Terse_ID"),
    "mixed_id": dict(BASE, state_output="mixed_id"),
    "changes_id": dict(BASE, state_output="changes_id"),
    "not verbose": dict(BASE, state_verbose=False),
    "diff": dict(BASE, state_output_diff=True),
    "no profile": dict(BASE, state_output_profile=False),
    "terse no profile": dict(BASE, state_output="terse", state_output_profile=False),
    "pct": dict(COLOR, state_output_pct=True),
    "compress": dict(BASE, state_compress_ids=True),
    "compress pct": dict(BASE, state_compress_ids=True, state_output_pct=True, state_output="changes"),
    "tabular color": dict(COLOR, state_output="terse", state_tabular=True),
    "tabular no profile": dict(BASE, state_output="terse", state_tabular=True, state_output_profile=False),
    "tabular own": dict(BASE, state_output="terse", state_tabular="{2}.{3:<12}|{4:^9}|{1!r:>25}|{6[comment]}"),
    "tabular own bad": dict(BASE, state_output="terse", state_tabular="{9}{6[nope]}"),
    "tabular empty": dict(BASE, state_output="terse", state_tabular=""),
    "filter": dict(BASE, state_output="filter"),
    "filter exclude": dict(BASE, state_output="filter", state_output_exclude=["True"]),
    "filter exclude text": dict(BASE, state_output="filter", state_output_exclude="True,None"),
    "filter terse": dict(BASE, state_output="filter_id", state_output_terse=["True", "None"]),
    "filter bool": dict(BASE, state_output="filter", state_output_terse=True),
    "filter bools": dict(BASE, state_output="filter", state_output_exclude=[True]),
    "filter arg": dict(BASE, state_output="filter", arg=["web", {"__kwarg__": True, "exclude": "True,", "terse": "False"}]),
    "escapes high": dict(COLOR, strip_colors=False),
    "odd mode": dict(BASE, state_output="something"),
    "theme high": dict(COLOR, theme={"GREEN": "1;92", "LIGHT_RED": 91}),
}
TABLE_SETTINGS = {
    "table plain": {"out.table.separate_rows": False, "out.table.justify": "left", "out.table.delim": "  ", "out.table.prefix": "", "out.table.suffix": ""},
    "table narrow": {"out.table.width": 10, "out.table.justify": "RIGHT", "out.table.row_delimiter": "="},
    "table rows": {"out.table.rows_key": "rows", "out.table.labels_key": "labels"},
    "table title": {"color": True, "out.table.rows_key": "out", "out.table.title": "My title", "out.table.nested_indent": 2},
    "table no header": {"out.table.has_header": False},
    "table bad": {"out.table.justify": "middle"},
}
KEY_SETTINGS = {
    "key": {"transport": "zeromq"},
    "key color": {"transport": "tcp", "color": True},
    "key multi": {"transport": "ws", "color": True, "__multi_key": True},
    "key other": {"transport": "raet", "color": True},
    "key escapes": {"transport": "zeromq", "strip_colors": False},
}

# --- recording ------------------------------------------------------------------------------


def encode(value):
    if isinstance(value, bytes):
        return {"$b": value.hex()}
    if isinstance(value, tuple):
        return {"$t": [encode(item) for item in value]}
    if isinstance(value, datetime.datetime):
        return {"$ts": value.isoformat()}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"$d": [[encode(key), encode(item)] for key, item in value.items()]}
    return value


def genuine(data, outputter, settings):
    opts = copy.deepcopy(settings)
    opts.setdefault("color", False)
    kwargs = {}
    if "_retcode" in opts:
        kwargs["_retcode"] = opts.pop("_retcode")
    opts["extension_modules"] = "/nonexistent"
    opts["optimization_order"] = [0]
    theme = opts.pop("theme", None)
    with tempfile.NamedTemporaryFile("w") as file:
        if theme:
            file.write(json.dumps(theme))
            file.flush()
            opts["color_theme"] = file.name
        try:
            return salt.output.out_format(copy.deepcopy(data), outputter, opts, **kwargs) or ""
        except Exception:
            return None


def main():
    inputs, settings, texts, cases = {}, {}, {}, []

    def record(group, name, data, outputter, named):
        key = group + name
        if key not in inputs:
            inputs[key] = encode(data)
        for setting, opts in named.items():
            settings[setting] = opts
            text = genuine(data, outputter, opts)
            number = None if text is None else texts.setdefault(text, len(texts))
            cases.append([key, outputter, setting, number])

    for name, data in PLAIN.items():
        noise = name.startswith("noise")
        record("", name, data, "nested", PLAIN_SETTINGS if not noise else {"": {}})
        for outputter in ["raw", "txt", "no_return", "table"]:
            record("", name, data, outputter, {"": {}})
        record("", name, data, "json", {"": {}, **({} if noise else INDENTS)})
        record("", name, data, "pprint", {"": {}, **(INDENTS if not noise else {"indent 2": INDENTS["indent 2"]})})
        record("", name, data, "yaml", {"": {}, **(INDENTS if not noise else {"indent -1": INDENTS["indent -1"]})})
    for name in ["grains", "escapes", "nested lists", "multi-line items", "empties", "mixed keys", "tuple"]:
        record("", name, PLAIN[name], "nested", NESTED_SETTINGS)
        record("", name, PLAIN[name], "no_return", {"color": {"color": True}})
        record("", name, PLAIN[name], "dson", {"": {}})
        record("", name, PLAIN[name], "highstate", {"high": BASE})
    for name, data in TABLES.items():
        record("", name, data, "table", {**PLAIN_SETTINGS, **TABLE_SETTINGS})
    for name, data in KEYS.items():
        record("", name, data, "key", KEY_SETTINGS)
    for name, data in STATES.items():
        record("state: ", name, data, "highstate", HIGH_SETTINGS)
    rich = [
        "all kinds", "two minions", "names", "comment escapes", "orch", "mixed minions", "errors",
        "compress two sls", "compress errors", "result text", "nested changes", "empty dict",
    ]
    for name in rich:
        record("state: ", name, STATES[name], "highstate", MORE_HIGH_SETTINGS)
    for outputter in ["nested", "json", "yaml", "pprint"]:
        record("state: ", "all kinds", STATES["all kinds"], outputter, {"": {}})

    everything = {"inputs": inputs, "settings": settings, "texts": list(texts), "cases": cases}
    parts = []
    for name, part in everything.items():
        items = part.items() if isinstance(part, dict) else part
        rows = []
        for item in items:
            if isinstance(part, dict):
                rows.append(json.dumps(item[0]) + ": " + json.dumps(item[1], ensure_ascii=False))
            else:
                rows.append(json.dumps(item, ensure_ascii=False))
        brackets = "{}" if isinstance(part, dict) else "[]"
        parts.append(json.dumps(name) + ": " + brackets[0] + "\n" + ",\n".join(rows) + "\n" + brackets[1])
    sys.stdout.write("{\n" + ",\n".join(parts) + "\n}\n")


main()
