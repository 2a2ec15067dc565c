#!/usr/bin/env python3
"""Records the pillar genuine Salt compiles from small trees.

Run it with an interpreter that can import `salt`; it reads `cases.yaml` and writes `cases.json`
beside itself. A case has a tree (path below the scratch folder -> text), options, and what else a
compile depends on; `ROOT` in options stands for the scratch folder.
"""

import json
import logging
import multiprocessing
import os
import shutil
import tempfile

import yaml

logging.disable(logging.CRITICAL)

import salt.config
import salt.pillar

HERE = os.path.dirname(os.path.abspath(__file__))


def compiled(case):
    root = tempfile.mkdtemp()
    try:
        for path, text in case["tree"].items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as out:
                out.write(text)
        opts = dict(salt.config.DEFAULT_MINION_OPTS)
        opts.update(root_dir=root, cachedir=os.path.join(root, "cache"), id=case.get("id", "web1"), file_client="local", extension_modules="",
                    __role="minion", conf_file=os.path.join(root, "minion"), file_roots={"base": [os.path.join(root, "salt")]},
                    pillar_roots={"base": [os.path.join(root, "pillar")]}, fileserver_backend=["roots"], state_top="top.sls", saltenv=None)
        opts.update(json.loads(json.dumps(case.get("opts", {})).replace("ROOT/", root + "/")))
        opts["grains"] = case.get("grains", {"os": "Debian", "id": "web1", "ipv4": ["10.0.0.5"]})
        pillar = salt.pillar.Pillar(opts, opts["grains"], opts["id"], case.get("saltenv"), pillarenv=case.get("pillarenv"),
                                    pillar_override=case.get("override")).compile_pillar()
        return json.loads(json.dumps(pillar, default=lambda data: data.decode()).replace(root, "ROOT"))
    finally:
        shutil.rmtree(root)


def main():
    with open(os.path.join(HERE, "cases.yaml")) as file:
        cases = yaml.safe_load(file)
    for name, case in cases.items():
        with multiprocessing.get_context("fork").Pool(1) as pool:
            try:
                case["expected"] = pool.apply(compiled, (case,))
            except Exception as error:  # a crash of genuine Salt is an answer too
                case["crash"] = f"{type(error).__name__}: {error}"
        print(name, json.dumps(case.get("expected", case.get("crash"))))
    with open(os.path.join(HERE, "cases.json"), "w") as out:
        out.write("{" + ",\n".join(f"{json.dumps(name)}:{json.dumps(case)}" for name, case in cases.items()) + "}\n")


main()
