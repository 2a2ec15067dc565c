#!/usr/bin/env python3
"""Records what genuine Salt says of configurations of beacons.

Run it with an interpreter that can import `salt` (and `pyinotify`, `pyroute2`, `watchdog` and
`systemd`, without which it has no beacons of those names): it asks anew about every configuration
of `judged.yaml`, and writes the file again. Beacons that this Salt does not have keep what stands
there. Those at which it fails with an exception are left out.
"""

import json
import logging
import os
import tempfile

logging.disable(logging.CRITICAL)

import salt.config
import salt.loader
import yaml

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judged.yaml")
HEAD = """\
# What genuine Salt 3008.3 (wtmp, btmp, cert_info and haproxy: 3006) says of configurations; null: it
# is right. Made by record_configurations.py. Those at which it fails with an exception are left out.
"""


def main():
    with open(PATH) as file:
        cases = yaml.safe_load(file)
    root = tempfile.mkdtemp()
    opts = salt.config.minion_config(None)
    opts.update(id="m", file_client="local", root_dir=root, cachedir=root + "/cache", grains={})
    opts["grains"] = salt.loader.grains(opts)
    beacons = salt.loader.beacons(opts, salt.loader.minion_mods(opts))
    with open(PATH, "w") as file:
        file.write(HEAD)
        for kind, judged in cases.items():
            file.write(f"{kind}:\n")
            for config, text in judged:
                if f"{kind}.validate" in beacons:
                    try:
                        valid, text = beacons[f"{kind}.validate"](json.loads(json.dumps(config)))
                    except Exception:
                        continue
                    text = None if valid else text
                file.write(f"  - {json.dumps([config, text])}\n")


if __name__ == "__main__":
    main()
