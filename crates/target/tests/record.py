#!/usr/bin/env python3
"""Records what genuine Salt answers to target expressions, on made-up minions.

Run it with an interpreter that can import `salt`; it writes `cases.json` beside itself. Each case
holds a target, its kind, and which minions match: asked of the minion's own matchers (`minion`,
where the word "error" stands for an exception) and of the master's cache (`greedy`, `cached`).
"""

import json
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile

logging.disable(logging.CRITICAL)

import salt.cache
import salt.config
import salt.loader
import salt.utils.data
import salt.utils.minions
import fnmatch

MINIONS = {
    "web1": {
        "grains": {
            "os": "Ubuntu", "os_family": "Debian", "osrelease": "22.04", "osmajorrelease": 22,
            "roles": ["web", "frontend"], "num_cpus": 4, "virtual": None, "efi": True, "ratio": 1.5,
            "ipv4": ["127.0.0.1", "10.0.0.5"], "ipv6": ["::1", "2001:db8::5"],
            "ip_interfaces": {"eth0": ["10.0.0.5"], "lo": ["127.0.0.1"]},
            "systemd": {"version": "249", "features": "+PAM"},
            "path": "a:b:c", "url": "http://x/y", "fqdn": "web1.example.org",
            "disks": [{"name": "sda", "size": 10}, {"name": "sdb", "size": 20, "tags": ["x", "y"]}],
            "nested": {"a": {"b": {"c": "deep"}, "l": [1, 2, "three"]}},
            "UP": "Case",
        },
        "pillar": {"app": {"env": "prod", "ports": [80, 443]}, "users": {"joe": {"uid": 1000}},
                   "flag": False, "name": "Web*"},
        "data": {"k": "value", "l": ["One", "two"], "d": {"x": 1}},
    },
    "web2": {
        "grains": {
            "os": "Debian", "os_family": "Debian", "osrelease": "12", "osmajorrelease": 12,
            "roles": ["web"], "num_cpus": 8, "efi": False, "ipv4": ["127.0.0.1", "10.0.1.6"],
            "nested": {"a": {"b": "x:y"}}, "fqdn": "web2.example.org", "1": "one", "empty": {},
            "systemd": {"version": 249},
        },
        "pillar": {"app": {"env": "dev", "ports": [80]}, 7: "seven"},
        "data": {},
    },
    "db1.example.org": {
        "grains": {
            "os": "CentOS Stream", "os_family": "RedHat", "roles": "db", "ipv4": ["192.168.3.4"],
            "ipv6": ["fe80::1"], "ids": {"1": "a", "true": "b"}, "list": [[1, 2], ["a", "b"]],
            "mixed": [{"0": "zero"}, "plain", {"k": {"v": 5}}], "fqdn": "db1.example.org",
        },
        "pillar": {"app": {"env": "prod"}, "tags": [{"role": "db"}, "solo"]},
        "data": {"k": "VALUE"},
    },
    "DB2": {"grains": {"os": "ubuntu", "ipv4": []}, "pillar": {}, "data": {}},
    "[odd]": {"grains": {"os": "Odd", "a.b": "dot", "re": "x+y", "roles": []}, "pillar": {"a": "b"}, "data": {}},
    "nocache": {"grains": None, "pillar": None, "data": {}},
}

NODEGROUPS = {
    "webs": "web*",
    "names": "web1,web2",
    "list": ["web1", "DB2"],
    "listglob": ["web*", "or", "DB2"],
    "words": "web1 DB2",
    "regex": "web(1|2)",
    "deb": "G@os_family:Debian",
    "nested": "N@webs or N@deb or DB2",
    "nestedlist": ["N@names", "or", "E@DB."],
    "notdeb": "not N@deb",
    "loop": "N@loop2 or web1",
    "loop2": "N@loop or web2",
    "self": "N@self",
    "missing": "N@nope or web1",
    "empty": "",
    "emptylist": [],
    "number": 5,
    "paren": "( web1 or web2 ) and not web2",
    "nestedone": "N@list",
    "nestedregex": "N@regex and G@os:Debian",
    "qmark": "web?",
}

GLOBS = """* web* web1 web? web[12] web[!1] web[1-1] WEB1 *1 *.org db1.* *example* [!w]* [[]odd] [[]odd[]] [odd] [^w]*
    web[0-9] web[9-0] w*b* **1 ?eb? db1.example.org *org* D* d* [a-z]* [A-Z]*  web[!a-z] nomatch ''""".split()
PCRES = ["web.*", "web1", "web", "eb", "^web1$", "web(1|2)$", ".*org", "(?i)WEB1", "DB.", r"\w+\d$", "web[12]",
         "(?!web).*", "(?P<x>w)eb(?=1)", "[", "", "web1|DB2", r"db1\.example", r"^(?:web|db)\d"]
LISTS = ["web1", "web1,web2", "web1,nosuch", "web1, web2", ",web1", "web1,", "nosuch", "web*", "",
         ["web1", "DB2"], ["nosuch"], [], "web1,,web2", "DB2,web1"]
GRAINS = ["os:Ubuntu", "os:ubuntu", "os:UBUNTU", "OS:Ubuntu", "os:*", "os:U*", "os:[UD]*", "os", "os:", ":os", "*", "",
          "nosuch:x", "nosuch:*", "roles:web", "roles:WEB", "roles:front*", "roles:db", "roles:*", "roles:0", "roles:0:web",
          "roles:1:frontend", "roles:-1:frontend", "roles:5:x", "num_cpus:4", "num_cpus:[48]", "osmajorrelease:22",
          "efi:True", "efi:true", "efi:False", "virtual:None", "virtual:none", "virtual:*", "ratio:1.5", "ratio:1.*",
          "osrelease:22.04", "osrelease:22*", "ip_interfaces:eth0:10.0.0.5", "ip_interfaces:eth0:10.*",
          "ip_interfaces:eth0", "ip_interfaces:eth*", "ip_interfaces:*:10.0.0.5", "ip_interfaces:*:*", "ip_interfaces:*",
          "ip_interfaces:*:127*", "*:10.0.0.5", "*:eth0", "*:eth0:10.0.0.5", "*:*:10.0.0.5", "*:*", "*:Ubuntu", "*:web",
          "*:*:*:deep", "nested:*:*:c", "nested:a:b:c:deep", "nested:a:b:c", "nested:a:b:d", "nested:a:b", "nested:a:b:x:y",
          "nested:a:b:x*", "nested:a:l:three", "nested:a:l:2", "nested:a:l:2:three", "nested:a:l:1:2", "nested:*:b:c",
          "nested:*:c", "nested:*:l:three", "nested:*:l", "nested:a:*:c:deep", "nested:a:*:c", "nested:a:*:deep",
          "systemd:version:249", "systemd:version:2*", "systemd:features:+PAM", "systemd:*:249", "path:a:b:c", "path:a:*",
          "path:*", "path:a", "url:http://x/y", "url:http*", "disks:name:sda", "disks:name:sdb", "disks:0:name:sda",
          "disks:size:10", "disks:size:20", "disks:1:tags:x", "disks:tags:y", "disks:sda", "disks:name", "disks:*",
          "UP:case", "up:Case", "1:one", "1:*", "ids:1:a", "ids:true:b", "ids:True:b", "ids:1", "list:1", "list:0:1",
          "list:0:0:1", "list:1:b", "list:a", "mixed:0:zero", "mixed:0", "mixed:plain", "mixed:k:v:5", "mixed:k:v", "mixed:1:plain",
          "a.b:dot", "re:x+y", "empty:*", "empty:x", "fqdn:*.example.org", "fqdn:web[12].example.org", "ipv4:10.0.*",
          "os:Ubuntu ", "os:CentOS Stream", "os:centos*", "nested:a:l:[1,2]"]
GRAIN_PCRES = ["os:Ub.*", "os:ub", "os:UB", "os:(ubuntu|debian)", "os:buntu", "os:.*tu$", r"osrelease:\d+", r"osrelease:\D+",
               "roles:web", "roles:we", "roles:(web|db)$", "os:[", "num_cpus:[48]$", "ip_interfaces:eth.:10", "ip_interfaces:eth.",
               "nested:a:b:(c|d):de+p", "nested:a:.*", "*:deep", "*:.*eb", "re:x.y", r"re:x\+y", "path:a:b", "os:^u", "efi:t.*e",
               "os:ub(?=untu)", "systemd:version:2[0-9]+$", "nested:.*"]
PILLARS = ["app:env:prod", "app:env:PROD", "app:env:*", "app:ports:80", "app:ports:443", "app:ports:4*", "users:joe", "users:*:uid",
           "users:joe:uid:1000", "users:j*", "flag:False", "flag:false", "7:seven", "tags:role:db", "tags:solo", "tags:s*", "a:b",
           "name:web*", "nosuch:x", "app", "app:*", "*:env:prod"]
IPS = ["10.0.0.5", "10.0.0.0/24", "10.0.0.0/16", "10.0.0.0/8", "10.0.0.5/24", "0.0.0.0/0", "10.0.1.6/32", "192.168.3.4",
       "192.168.0.0/255.255.0.0", "10.0.0.0/0.255.255.255", "::1", "2001:db8::/32", "2001:DB8:0::5", "fe80::/10", "::/0", "10.0.0", "10.0.0.*",
       "x", "", "10.0.0.0/33", "010.0.0.5", "127.0.0.1", "2001:db8::5/128", "2001:db8::5/64", "10.0.0.0/08"]
DATA = ["k:value", "k:VALUE", "k:v*", "l:one", "l:ONE", "l:t*", "l:three", "d:x", "d:y", "d:*", "k", "nosuch:x"]
COMPOUNDS = ["*", "web1", "web*", "G@os:Ubuntu", "G@os:Debian or G@os:Ubuntu", "web* and G@os:Debian", "web* and not web1",
             "not web1", "not G@os:Ubuntu", "not ( web1 or web2 )", "( web1 or web2 ) and not web2", "web1 or web2 and DB2",
             "( web1 or web2 ) and DB2", "web1 and web2 or DB2", "not web1 and not web2", "not web1 or web1", "web* not web1",
             "web* not ( web1 )", "not not web1", "web1 and not not web2", "web1 and", "and web1", "or", "not", "", "   ",
             "( web1", "web1 )", "( )", "( web1 or web2", "( ( web1 ) )", "( not web1 )", "( and web1 )", "( or web1", "web1 web2",
             "web1 ( web2 )", "( web1 ) ( web2 )", "web1 and and web2", "web1 or ( )", "(web1 or web2)", "E@web.", "E@web. and G@num_cpus:8",
             "P@os:(Ubuntu|Debian)", "P@os:ub.* or L@DB2,web2", "L@web1,DB2", "L@web1,nosuch", "not L@web1,nosuch", "L@", "G@", "G@os",
             "S@10.0.0.0/16", "S@10.0.0.5", "S@bogus", "S@bogus or web1", "I@app:env:prod", "I@app:env:prod and not G@os:Ubuntu",
             "J@app:env:(prod|dev)", "G!@os!Ubuntu", "G|@nested|a|b|c|deep", "G@@os@Ubuntu", "P|@os|(ubuntu|debian)", "I/@app/env/prod",
             "J!@app!env!p.*", "L!@web1", "E!@web1", "N@webs", "N@names", "N@list", "N@listglob", "N@words", "N@regex", "N@deb", "N@nested",
             "N@nestedlist", "N@notdeb", "N@loop", "N@self", "N@missing", "N@nope", "N@nope or web1", "web1 or N@nope", "N@empty", "N@emptylist",
             "N@number", "N@paren", "N@nestedone", "N@nestedregex", "N@qmark", "N@webs and not N@list", "not N@webs",
             "M@web1", "M@web*", "M@web1 or DB2", "T@thing", "T@thing:x", "R@%range", "R@%range or web1", "X@foo", "X@foo or web1", "D@k:value",
             "g@os:Ubuntu", "G@os:Ubuntu AND web1", "web1 AND web2", "G@os:CentOS*", "G@os:CentOS Stream", "G@roles:web and G@roles:frontend",
             "G@ip_interfaces:eth0:10.0.0.5", "nocache", "not nocache", "nocache or G@os:nosuch", "not G@nosuch:x", "E@[", "P@os:[ or web1",
             "I@name:Web*", "web1,web2", "[[]odd]", "not *", "* and not *", ["web1", "or", "web2"], ["web1"], ["G@os:CentOS Stream"], [],
             "G@os:Ubuntu and ( G@roles:web or G@roles:db ) and not ( web2 or DB2 )", "not ( not web1 )", "not ( web1", "web1 or not web1 and web2",
             "web1 not", "( web1 ) not ( web2 )", "I@app:env:pr*", "J@app:env:pr.*"]

KINDS = {"glob": GLOBS, "pcre": PCRES, "list": LISTS, "grain": GRAINS, "grain_pcre": GRAIN_PCRES, "pillar": PILLARS,
         "pillar_pcre": PILLARS + ["app:env:pr.*", "users:.*:uid", "app:ports:(80|81)"], "pillar_exact": PILLARS, "ipcidr": IPS, "data": DATA,
         "nodegroup": list(NODEGROUPS) + ["nope"], "compound": COMPOUNDS, "compound_pillar_exact": ["I@app:env:pr*", "I@app:env:prod", "J@app:env:pr.*", "web* and I@app:env:prod"],
         "range": ["%x"]}
DELIMITED = [("grain", "os|Ubuntu", "|"), ("grain", "nested|a|b|c|deep", "|"), ("grain", "nested|a|b:c", "|"), ("grain", "*|Ubuntu", "|"),
             ("grain", "nested|a:b|c", "|"), ("grain", "ip_interfaces|*:10.0.0.5", "|"), ("grain", "nested->a->b->c->deep", "->"), ("grain", "path|a:b:c", "|"),
             ("grain_pcre", "os|(ubuntu|debian)", "|"), ("grain_pcre", "os/(ubuntu|debian)", "/"), ("pillar", "app/env/prod", "/"), ("pillar_exact", "app/env/prod", "/")]

FNMATCH = [(n, p) for p in ["[a-c]", "[c-a]", "[!c-a]", "[a-c-e]", "[-a]", "[a-]", "[]]", "[]a]", "[!]]", "[", "[a", "[]", "[!]", "[^a]", "[a^]",
                            "[\\]", "[--a]", "[a-cx-z]", "[!a-cx-z]", "[a&&b]", "*", "?", "a*b?c", "**", "a\nb", "a?b", "a*", "*\n", "\\*", "[[]", "[[-^]", "é*", "?é", "[à-ü]", "x-[0-9][0-9]", ""]
           for n in ["a", "b", "c", "e", "-", "]", "[", "^", "!", "\\", "x", "axxbyc", "a\nb", "ab", "", "[a", "*", "&", "é", "aé", "ü", "x-12", "x-1", "[]", "\n", "b\n"]]


def main():
    root = tempfile.mkdtemp()
    try:
        record(root)
    finally:
        shutil.rmtree(root)


def record(root):
    pki = os.path.join(root, "pki")
    os.makedirs(os.path.join(pki, "minions"))
    for folder in ("minions_pre", "minions_rejected", "minions_denied", "minions_autosign"):
        os.makedirs(os.path.join(pki, folder))
    for id_ in MINIONS:
        with open(os.path.join(pki, "minions", id_), "w") as key:
            key.write("-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n")
    master = dict(salt.config.DEFAULT_MASTER_OPTS)
    master.update(root_dir=root, pki_dir=pki, cachedir=os.path.join(root, "cache"), sock_dir=root, conf_file=os.path.join(root, "master"),
                  nodegroups=NODEGROUPS, minion_data_cache=True, extension_modules="", __role="master", id="m", log_file="")
    cache = salt.cache.factory(master)
    for id_, data in MINIONS.items():
        if data["grains"] is not None:
            cache.store("grains", id_, data["grains"])
            cache.store("pillar", id_, data["pillar"])
    ck = salt.utils.minions.CkMinions(master)

    asked = [(kind, expr, ":") for kind, exprs in KINDS.items() for expr in exprs] + DELIMITED
    cases = [from_master(ck, *one) for one in asked]
    for id_, data in MINIONS.items():
        # A process for each: the loader shares modules, and with them the options.
        with multiprocessing.get_context("fork").Pool(1) as pool:
            for case, got in zip(cases, pool.apply(from_minion, (root, id_, data, asked))):
                if got == "error":
                    case["minion"] = "error"
                elif got is not None and case.setdefault("minion", []) != "error" and got:
                    case["minion"].append(id_)
    names = [[n, p, fnmatch.fnmatch(n, p)] for n, p in FNMATCH]
    minions = {id_: {**d, "pillar": d["pillar"] and [[k, v] for k, v in d["pillar"].items()]} for id_, d in MINIONS.items()}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.json"), "w") as out:
        json.dump({"minions": minions, "nodegroups": NODEGROUPS, "cases": cases, "fnmatch": names}, out, indent=None, separators=(",", ":"))
    text = open(out.name).read()
    with open(out.name, "w") as file:
        file.write(text.replace('},{"kind"', '},\n{"kind"').replace('"cases":[', '"cases":[\n').replace('"fnmatch":', '\n"fnmatch":').replace('"nodegroups":', '\n"nodegroups":'))
    print(len(cases), "cases", len(names), "globs")


def from_minion(root, id_, data, asked):
    opts = dict(salt.config.DEFAULT_MINION_OPTS)
    opts.update(root_dir=root, cachedir=os.path.join(root, "mcache"), id=id_, grains=data["grains"] or {},
                pillar=data["pillar"] or {"_": 0}, nodegroups=NODEGROUPS, extension_modules="", __role="minion",
                file_client="local", conf_file=os.path.join(root, "minion"))
    matchers = salt.loader.matchers(opts)
    answers = []
    for kind, expr, delimiter in asked:
        if kind == "compound_pillar_exact":
            answers.append(None)
            continue
        try:
            match = matchers[kind + "_match.match"]
            if kind == "nodegroup":
                got = match(expr, NODEGROUPS)
            elif kind == "data":
                got = match(expr, functions={"data.getval": data["data"].get})
            elif delimiter != ":":
                got = match(expr, delimiter=delimiter)
            else:
                got = match(expr)
            answers.append(bool(got))
        except Exception:
            answers.append("error")
    return answers


def from_master(ck, kind, expr, delimiter):
    one = {"kind": kind, "expr": expr}
    if delimiter != ":":
        one["delimiter"] = delimiter
    if kind != "data":
        for name, greedy in (("greedy", True), ("cached", False)):
            found = ck.check_minions(expr, kind, delimiter=delimiter, greedy=greedy)
            one[name] = sorted(found["minions"])
            if found.get("missing"):
                one["missing"] = sorted(found["missing"])
    return one


main()
