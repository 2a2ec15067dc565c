#!/usr/bin/env python3
"""
Measure masterless runs side by side with genuine Salt, on this machine, in one run.

Usage:  local.py HALITE GENUINE_SALT_CALL [OUT.json]

HALITE is the executable `halite` (a release build for figures worth telling), GENUINE_SALT_CALL
genuine Salt's `salt-call`. Each workload runs on a scratch tree of its own; both sides get the same
trees and the same commands, alternately, and the best of three counts. What is measured is wall time
and, in one more run, the peak memory of the process, by the program `time`: a process begins with the
peak of the one that made it, and this one is larger than what is measured. For both sides every state
must have succeeded.
Whether the cost of a graph is linear is told by instructions, which valgrind counts: they do not depend on
what else the machine does.
Prints one line for each workload and a JSON with all figures and the ratios.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

RUNS = int(os.environ.get("RUNS", "3"))

CONFIG = """\
id: bench
root_dir: {root}
file_client: local
file_roots: {{base: [{root}/srv/salt]}}
pillar_roots: {{base: [{root}/srv/pillar]}}
"""


def managed(count):
    return "".join(
        f"file-{n}:\n  file.managed:\n    - name: ROOT/out/f{n}\n    - contents: line {n}\n"
        "    - mode: '0644'\n    - makedirs: True\n"
        for n in range(count)
    )


def requisites(count):
    """Each state requires the five before it."""
    lines = []
    for n in range(count):
        lines.append(f"s{n}:\n  test.nop:\n")
        before = range(max(0, n - 5), n)
        lines.append("    - require: [%s]\n" % ", ".join(f"test: s{m}" for m in before))
    return "".join(lines)


LOOP = "{% for n in range(2000) %}\ns{{ n }}:\n  test.nop: []\n{% endfor %}\n"
RECURSE = "tree:\n  file.recurse:\n    - name: ROOT/out/tree\n    - source: salt://tree\n"

# name, files of the tree, command, whether a first run prepares it
WORKLOADS = [
    ("test.ping", {}, ["test.ping"], False),
    ("100 files, first run", {"w.sls": managed(100)}, ["state.apply", "w"], False),
    ("100 files, second run", {"w.sls": managed(100)}, ["state.apply", "w"], True),
    ("1000 files, first run", {"w.sls": managed(1000)}, ["state.apply", "w"], False),
    ("1000 files, second run", {"w.sls": managed(1000)}, ["state.apply", "w"], True),
    ("2000 no-op states from a loop", {"w.sls": LOOP}, ["state.apply", "w"], False),
    ("500 states, 5 requisites each", {"w.sls": requisites(500)}, ["state.apply", "w"], False),
    ("1000 states, 5 requisites each", {"w.sls": requisites(1000)}, ["state.apply", "w"], False),
    ("2000 states, 5 requisites each", {"w.sls": requisites(2000)}, ["state.apply", "w"], False),
    (
        "file.recurse of 2000 files",
        {"w.sls": RECURSE, **{f"tree/d{n % 40}/f{n}": f"{n}\n" for n in range(2000)}},
        ["state.apply", "w"],
        False,
    ),
]

TARGETS = {"test.ping": 50, "1000 files, second run": 20}


def prepare(files):
    root = tempfile.mkdtemp(prefix="bench")
    tree = {"etc/salt/minion": CONFIG.format(root=root), "srv/pillar/.keep": "", "srv/salt/.keep": ""}
    tree.update({"srv/salt/" + name: text.replace("ROOT", root) for name, text in files.items()})
    for name, text in tree.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def run(program, root, command):
    """Returns the seconds it took; ends all if a state failed."""
    argv = [*program, "--local", "--config-dir", root + "/etc/salt", "--out", "json", "--log-level", "quiet"]
    with open(root + "/answer", "w+b") as out:
        start = time.monotonic()
        ended = subprocess.run(argv + command, stdout=out, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        out.seek(0)
        answer = json.load(out)["local"]
    good = answer is True or all(state["result"] is True for state in answer.values())
    if not good or ended.returncode != 0:
        sys.exit(f"{program}: {command}: a state failed")
    return seconds


def measure(program, files, command, twice):
    def once(program):
        root = prepare(files)
        if twice:
            run(program, root, command)
        seconds = run(program, root, command)
        shutil.rmtree(root)
        return seconds

    best = min(once(program) for _ in range(RUNS))
    with tempfile.NamedTemporaryFile() as peak:
        once(["time", "-f", "%M", "-o", peak.name, *program])
        return {"seconds": round(best, 4), "peak_kb": int(peak.read())}


def instructions(program, files, command):
    """Returns how many instructions a run takes; `None` where valgrind is not installed."""
    if not shutil.which("valgrind"):
        return None
    root = prepare(files)
    counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={root}/counted"]
    run([*counting, *program], root, command)
    counted = pathlib.Path(root, "counted").read_text()
    shutil.rmtree(root)
    return int(counted.split("Collected :")[1].split()[0])


def graph(halite, results):
    """Tells what a state with five requisites costs in graphs of several sizes."""
    steps = [results.get(f"{count} states, 5 requisites each") for count in (500, 1000, 2000)]
    if not all(steps):
        return
    start = results.get("test.ping", {"halite": {"seconds": 0}})["halite"]["seconds"]
    cost = [max(step["halite"]["seconds"] - start, 0.0001) for step in steps]
    told = {"seconds": cost, "doubling_costs": [round(b / a, 2) for a, b in zip(cost, cost[1:])]}
    print("graph: doubling the states costs", told["doubling_costs"])
    apply = ["state.apply", "w"]
    empty = instructions(halite, {"w.sls": requisites(1)}, apply)
    if empty is not None:
        counts = (500, 1000, 2000, 4000)
        each = {n: (instructions(halite, {"w.sls": requisites(n)}, apply) - empty) // n for n in counts}
        told["instructions_for_each_state"] = each
        print("graph: instructions for each state", each)
    results["graph"] = told


def main():
    halite, genuine = [os.path.abspath(sys.argv[1]), "call"], [os.path.abspath(sys.argv[2])]
    wanted = os.environ.get("ONLY", "")
    results = {}
    for name, files, command, twice in WORKLOADS:
        if wanted not in name:
            continue
        ours = measure(halite, files, command, twice)
        theirs = measure(genuine, files, command, twice)
        ratio = round(theirs["seconds"] / ours["seconds"], 1)
        memory = round(ours["peak_kb"] / theirs["peak_kb"], 3)
        results[name] = {"halite": ours, "salt": theirs, "faster": ratio, "memory": memory}
        if name in TARGETS:
            results[name]["target"] = TARGETS[name]
        print(
            f"{name:32} halite {ours['seconds']:8.3f} s {ours['peak_kb'] >> 10:4} MB   "
            f"salt {theirs['seconds']:8.3f} s {theirs['peak_kb'] >> 10:4} MB   "
            f"{ratio:6.1f} times faster, {memory:.2f} of the memory",
            flush=True,
        )
    graph(halite, results)
    text = json.dumps(results, indent=1)
    if len(sys.argv) > 3:
        pathlib.Path(sys.argv[3]).write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
