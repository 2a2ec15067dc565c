#!/usr/bin/env python3
"""
Record stateconf.json: what genuine Salt makes of `#!stateconf` files.

Usage:  <python with salt installed> record_stateconf.py stateconf.json

Each case is a list of files that are rendered one after the other, as a state run renders a file
and those it includes. An error is recorded by its first line.
"""
import json
import os
import sys
import tempfile

import salt.config
import salt.loader
import salt.template

CASES = [
    [("web.site", """#!stateconf yaml . jinja
.params:
  stateconf.set:
    - a: 1
    - b: [x, y]

# --- end of state config ---

.first:
  cmd.run:
    - name: echo {{ params.a }} {{ params.b[1] }} {{ sls_dir }}
    - require: [{file: .second}, {pkg: ..third}]
plain:
  test.nop:
    - watch_in: [{cmd: .first}, .second]
    - prereq: [{cmd: .first}]
.second:
  file.managed: []
.short: test.nop
.old:
  test: [nop]
""")],
    [("web.base", """#!stateconf -G
include: [.site, ..top, other]
exclude:
  - id: .gone
  - sls: .gone
extend:
  .site::params:
    stateconf.set:
      - a: 100
  web.site::first:
    cmd.run:
      - require: [{test: .mine}]
.mine: test.nop
"""), ("web.site", """#!stateconf -G
.params:
  stateconf:
    - set
    - a: 1
    - {b: 2, c: 3}
# --- end of state config ---
.first:
  cmd.run: [{name: "{{ params.a }} {{ params.b }} {{ params|length }}"}]
""")],
    [("x", """#!stateconf -os
.one:
  cmd.run: []
.two:
  cmd.run: []
  test.nop: [{require: [{cmd: .one}]}]
three:
  cmd.run: [{name: foo}]
""")],
    [("a.b.c", """#!stateconf -G
...up: {test.nop: []}
.n::id: {test.nop: [{names: [.a, .b]}]}
..n::id: {test.nop: []}
...n::id: {test.nop: []}
""")],
    [("a.b", "#!stateconf\n...n::id: {test.nop: []}\n")],
    [("a.b", "#!stateconf\ninclude: [...n]\n")],
    [("x", "#!stateconf -o\n.one: {cmd.run: [{require: [{cmd: .two}]}]}\n.two: {cmd.run: []}\n")],
    [("x", "#!stateconf -o\n.one: {cmd.run: []}\n.two: {cmd.run: [{watch_in: [{cmd: .one}]}]}\n")],
    [("x", "#!stateconf\n.goal: {cmd.run: []}\n")],
    [("x", "#!stateconf -s\n.start: {cmd.run: []}\n")],
    [("x", "#!stateconf\n- a\n")],
    [("x", "#!stateconf\n.a: [b]\n")],
    [("x", "#!stateconf yaml\n.a: {cmd.run: []}\n")],
    [("x", "#!stateconf -z\n.a: {cmd.run: []}\n")],
    [("x", "#!stateconf -s yaml . jinja\n")],
    [("x", "#!yaml|stateconf -pG\n.a: {cmd.run: []}\n")],
    [("x", "#!stateconf json . jinja\n{\".a\": {\"cmd.run\": []}}\n")],
]

MARKERS = ["# --- end of state config ---", "#-end of state config-", "  # ---- end of state config -- x",
           "# --- End of state config ---", "# --- end of  state config ---", "# end of state config"]
for marker in MARKERS:
    CASES.append([("x", "#!stateconf -G\n.p:\n  stateconf.set: [{a: 1}]\n" + marker +
                   "\n.w: {test.nop: [{name: \"{{ p is defined }}\"}]}\n")])


def main(out):
    work = tempfile.mkdtemp()
    opts = salt.config.minion_config(None)
    opts.update(file_client="local", cachedir=work, root_dir=work, id="m", grains={}, pillar={},
                extension_modules=work, file_roots={"base": [work]})
    functions = salt.loader.minion_mods(opts)
    cases = []
    for files in CASES:
        renderers = salt.loader.render(opts, functions)
        case = []
        for sls, text in files:
            path = os.path.join(work, "case.sls")
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
            entry = {"sls": sls, "text": text}
            try:
                entry["data"] = salt.template.compile_template(
                    path, renderers, "jinja|yaml", [], [], saltenv="base", sls=sls)
            except Exception as error:  # pylint: disable=broad-except
                entry["error"] = str(error).split("\n")[0]
            case.append(entry)
        cases.append(case)
    with open(out, "w", encoding="utf-8") as handle:
        json.dump(cases, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
