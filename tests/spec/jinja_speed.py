#!/usr/bin/env python3
"""
How fast (in CPU time) genuine Salt renders the templates of crates/renderers/examples/jinja_speed.rs.

Usage:  <python with salt installed> jinja_speed.py [path of jinja_speed.rs]
"""
import os
import re
import sys
import tempfile
import time

import salt.utils.templates as templates

here = os.path.dirname(os.path.abspath(__file__))
path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "../../crates/renderers/examples/jinja_speed.rs")
source = open(path, encoding="utf-8").read()


def const(name):
    text = re.search(r"const %s: &str =\s*\"(.*?)\";\n" % name, source, re.S).group(1)
    return re.sub(r"\\\n\s*", "", text).replace("\\n", "\n").replace('\\"', '"')


FILES = {"f/map.jinja": const("MAP"), "f/lib.jinja": const("LIB"), "f/defaults.yaml": const("DEFAULTS")}


class Client:
    def __init__(self, opts):
        self.opts = opts

    def get_file(self, path, dest="", makedirs=False, saltenv="base", **kw):
        rel = path[len("salt://"):]
        full = os.path.join(self.opts["cachedir"], "files", saltenv, rel)
        if rel not in FILES:
            return False
        if not os.path.exists(full):
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as fh:
                fh.write(FILES[rel])
        return full


def measure(name, template, context, rounds):
    with tempfile.TemporaryDirectory() as tmp:
        opts = {"cachedir": tmp, "file_client": "local", "file_roots": {"base": [tmp]}, "pillar_roots": {"base": [tmp]}, "saltenv": "base"}
        context = dict(context, opts=opts, saltenv="base", sls="x", fileclient=Client(opts), tpldir="f")
        size = len(templates.render_jinja_tmpl(template, context))
        start = time.process_time()
        for _ in range(rounds):
            templates.render_jinja_tmpl(template, context)
        print(f"{name}: {(time.process_time() - start) * 1e6 / rounds:.1f} us ({size} bytes)")


users = [{"name": f"user{n}", "uid": n, "groups": ["wheel", "adm"]} for n in range(2000)]
base = {"grains": {"os_family": "RedHat"}, "pillar": {"foo": {"x": 1}}}
measure("loop2000", const("LOOP"), dict(base, users=users), 10)
measure("chain", const("CHAIN"), base, 50)
measure("tiny", "{{ grains.os_family }}", base, 50)
