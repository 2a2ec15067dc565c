#!/usr/bin/env python3
"""Records what genuine Salt's file server answers, on a made-up tree.

Run it with an interpreter that can import `salt`; it writes `cases.json` beside itself.
"""

import json
import logging
import os
import shutil
import tempfile

logging.disable(logging.CRITICAL)

import salt.config
import salt.fileserver

# path -> text; None: a folder; ("->", target): a link. Paths are below the scratch folder.
TREE = {
    "salt/top.sls": "base: {}\n",
    "salt/web/init.sls": "web\n",
    "salt/web/files/app.conf": "port: 80\n",
    "salt/web/files/.hidden": "h\n",
    "salt/web/files/x.pyc": "bin\n",
    "salt/web/empty": None,
    "salt/empty": None,
    "salt/.git/config": "git\n",
    "salt/odd?name&x.txt": "odd\n",
    "salt/with space.txt": "space\n",
    "salt/ünï.txt": "unicode\n",
    "salt/big.bin": "0123456789" * 30,
    "salt/zero": "",
    "salt/link_in": ("->", "web/init.sls"),
    "salt/link_dir": ("->", "web"),
    "salt/link_out": ("->", "../outside/secret"),
    "salt/link_abs": ("->", "@/outside/secret"),
    "salt/link_out_dir": ("->", "../outside"),
    "salt/dangling": ("->", "nowhere"),
    "salt/web/up": ("->", "../top.sls"),
    "salt2/top.sls": "second\n",
    "salt2/only2.txt": "2\n",
    "salt2/web/files/app.conf": "second\n",
    "dev/salt/dev.txt": "dev\n",
    "dev/salt/top.sls": "dev\n",
    "outside/secret": "secret\n",
}

ROOTS = {"base": ["@/salt", "@/salt2"], "other": ["@/salt2"], "gone": ["@/nothing_here"]}
OPTIONS = [
    {},
    {"fileserver_followsymlinks": False},
    {"fileserver_ignoresymlinks": True},
    {"file_ignore_glob": ["*.pyc", "*/.git/*", "web/empty"]},
    {"file_ignore_regex": ["/\\.git($|/)", "^web/files", "\\.hidden$"]},
    {"file_roots": {"base": ["@/salt2"], "__env__": ["@/__env__/salt"]}},
    {"hash_type": "md5", "file_buffer_size": 100},
]
PATHS = ["top.sls", "web/init.sls", "web//files/./app.conf", "nope", "web", "only2.txt", "top.sls?saltenv=other", "top.sls?index=1",
         "top.sls?index=7", "top.sls?index=x", "top.sls?env=other", "|odd?name&x.txt", "odd?name&x.txt", "../outside/secret", "web/../top.sls", "web/..",
         "/etc/passwd", "", "link_in", "link_dir/init.sls", "link_out", "link_abs", "link_out_dir/secret", "dangling", "web/files/x.pyc", ".git/config",
         "web/files/.hidden", "ünï.txt", "with space.txt", "big.bin", "zero", "dev.txt", "|../outside/secret", "|/etc/passwd", "..", ".", "web/up"]
ENVS = ["base", "other", "gone", "dev", "nosuch", ".."]


def main():
    root = tempfile.mkdtemp()
    try:
        record(root)
    finally:
        shutil.rmtree(root)


def put(root):
    for path, what in TREE.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if what is None:
            os.makedirs(full)
        elif isinstance(what, tuple):
            os.symlink(what[1].replace("@", root), full)
        else:
            with open(full, "w") as out:
                out.write(what)


def record(root):
    put(root)
    cases = []
    for number, given in enumerate(OPTIONS):
        opts = dict(salt.config.DEFAULT_MASTER_OPTS)
        opts.update(root_dir=root, cachedir=os.path.join(root, f"cache{number}"), fileserver_backend=["roots"], extension_modules="",
                    __role="master")
        opts.update(json.loads(json.dumps({"file_roots": ROOTS, **given}).replace("@/", root + "/")))
        server = salt.fileserver.Fileserver(opts)
        case = {"options": {"file_roots": ROOTS, **given}, "envs": sorted(server.envs()), "lists": {}, "finds": [], "serves": []}
        for env in ENVS:
            load = {"saltenv": env}
            lists = {name: getattr(server, name)(dict(load)) for name in ("file_list", "dir_list", "file_list_emptydirs", "symlink_list")}
            lists["prefixed"] = server.file_list({"saltenv": env, "prefix": "/web/fi"})
            case["lists"][env] = lists
            for path in PATHS:
                found = server.find_file(path, env)
                case["finds"].append([path, env, found["path"], found["rel"], server.file_hash({"path": path, "saltenv": env})])
        for path, loc in (("big.bin", 0), ("big.bin", 100), ("big.bin", 250), ("big.bin", 300), ("zero", 0), ("nope", 0), ("top.sls", 0)):
            got = server.serve_file({"path": path, "saltenv": "base", "loc": loc})
            data = got["data"] if isinstance(got["data"], str) else got["data"].decode()
            case["serves"].append([path, loc, data, got["dest"]])
        cases.append(case)
    here = os.path.dirname(os.path.abspath(__file__))
    tree = {path: list(what) if isinstance(what, tuple) else what for path, what in TREE.items()}
    text = json.dumps({"tree": tree, "cases": cases}, separators=(",", ":"), ensure_ascii=False).replace(root, "@")
    with open(os.path.join(here, "cases.json"), "w") as out:
        out.write(text.replace('{"options"', '\n{"options"'))


main()
