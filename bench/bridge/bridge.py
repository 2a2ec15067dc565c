"""What a call of a user's Python function costs: Halite beside genuine Salt.

    bridge.py HALITE SALT_CALL FOLDER

A template calls a trivial function of a `_modules` file many times; the same template without the
calls is subtracted. The start of the interpreter is the difference between the first call of such a
function and a native one where there are no such modules (with them, a native name has to be looked up
among the user's first). Times are medians of wall time; JSON on one line.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

CALLS = 5000
ROUNDS = 5


def main():
    halite, salt_call, folder = sys.argv[1:4]
    result = {
        "halite": measure([halite, "call"], os.path.join(folder, "halite")),
        "salt": measure([salt_call], os.path.join(folder, "salt")),
    }
    print(json.dumps(result))


def measure(program, folder):
    shutil.rmtree(folder, ignore_errors=True)
    tree = os.path.join(folder, "srv")
    os.makedirs(os.path.join(tree, "_modules"), exist_ok=True)
    os.makedirs(os.path.join(folder, "etc"), exist_ok=True)
    write(os.path.join(folder, "etc", "minion"),
          "id: bench\nroot_dir: {0}/root\nfile_client: local\nfile_roots: {{base: [{0}/srv]}}\n".format(folder))
    run = program + ["--local", "-c", os.path.join(folder, "etc"), "-l", "quiet"]
    native = median(run + ["test.echo", "x"])
    write(os.path.join(tree, "_modules", "bench.py"),
          "def trivial(value):\n    return value\n\n\ndef back(value):\n    return __salt__['test.echo'](value)\n")
    for name, call in (("none", "i"), ("trivial", "salt['bench.trivial'](i)"), ("back", "salt['bench.back'](i)")):
        text = "{{% for i in range({}) %}}{{{{ {} }}}}\n{{% endfor %}}".format(CALLS, call)
        write(os.path.join(tree, name + ".jinja"), text)
    timed(run + ["saltutil.sync_all"])
    render = lambda name: run + ["slsutil.renderer", "salt://{}.jinja".format(name), "default_renderer=jinja"]
    none, trivial, back = (median(render(name)) for name in ("none", "trivial", "back"))
    first = median(run + ["bench.trivial", "x"])
    return {
        "call_us": round((trivial - none) / CALLS * 1e6, 1),
        "call_back_us": round((back - none) / CALLS * 1e6, 1),
        "calls_per_s": round(CALLS / max(trivial - none, 1e-9)),
        "start_ms": round((first - native) * 1e3, 1),
        "first_call_ms": round(first * 1e3, 1),
    }


def median(command):
    return statistics.median(timed(command) for _ in range(ROUNDS))


def timed(command):
    before = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    after = time.perf_counter()
    if done.returncode:
        raise SystemExit("{}: {}".format(command, (done.stderr or done.stdout).decode()))
    return after - before


def write(path, text):
    with open(path, "w") as handle:
        handle.write(text)


main()
