#!/usr/bin/env python3
"""Runs the same states by two `salt-call`s and shows where returns or files differ.

    compare_runs.py SALT_CALL OTHER_SALT_CALL

The SLS in `runs/srv` is run by each in a folder of its own: with test=True, for real, and once more.
Nothing outside of that folder is touched. Tracebacks, times and process ids are not compared, nor
changes of a test where the first names none.
"""
import json, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runs")
PASSES = (("test", ["test=True"]), ("first", []), ("second", []))
KEYS = ("result", "comment", "changes", "name", "__state_ran__")


def prepare():
    # The path is the same for both: it is part of texts.
    root = os.path.join(tempfile.gettempdir(), "compare-runs")
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(os.path.join(HERE, "srv"), root + "/srv")
    os.makedirs(root + "/work/out")
    with open(root + "/minion", "w") as conf:
        conf.write(f"root_dir: {root}\nfile_client: local\nid: x\nfile_roots: {{base: [{root}/srv]}}\n")
    subprocess.run(["tar", "czf", root + "/srv/a.tgz", "-C", root + "/srv", "tree"], check=True)
    git = ["git", "-C", root + "/work/git", "-c", "user.email=a@example", "-c", "user.name=a"]
    os.mkdir(root + "/work/git")
    dates = dict(os.environ, GIT_AUTHOR_DATE="2026-01-01T00:00:00Z", GIT_COMMITTER_DATE="2026-01-01T00:00:00Z")
    for line in ("init -q -b main", "commit -q --allow-empty -m one", "tag v1", "commit -q --allow-empty -m two", "branch dev"):
        subprocess.run(git + line.split(), check=True, env=dates)
    return root


def run(salt_call, root, words):
    line = [salt_call, "--local", "-c", root, "-l", "quiet", "--out", "json", "state.sls", "runs", *words]
    done = subprocess.run(line, capture_output=True, text=True)
    return json.loads(done.stdout)["local"]


def files(root):
    found = {}
    for folder, _, names in os.walk(root + "/work/out"):
        if "/.git" in folder:
            continue
        found[folder] = oct(os.lstat(folder).st_mode)
        for name in names:
            path = os.path.join(folder, name)
            content = os.readlink(path) if os.path.islink(path) else None
            if content is None and os.path.isfile(path):
                content = open(path, errors="replace").read()
            found[path] = (oct(os.lstat(path).st_mode), content)
    return found


def plain(value):
    text = json.dumps(value, sort_keys=True)
    for pattern, instead in ((r"Traceback.*", ""), (r'"pid": \d+', ""), (r"\d\d:\d\d:\d\d[.\d]*", "")):
        text = re.sub(pattern, instead, text)
    return text


def main(one, other):
    answers = []
    for salt_call in (one, other):
        root = prepare()
        answers.append(([run(salt_call, root, words) for _, words in PASSES], files(root)))
    (first, before), (second, after) = answers
    same = total = 0
    for number, (when, _) in enumerate(PASSES):
        for tag in dict.fromkeys([*first[number], *second[number]]):
            total += 1
            left, right = first[number].get(tag, {}), second[number].get(tag, {})
            differing = [key for key in KEYS if plain(left.get(key)) != plain(right.get(key))
                         and not (when == "test" and key == "changes" and not left.get(key))]
            same += not differing
            for key in differing:
                print(f"{when} {tag} {key}\n  {left.get(key)!r:.600}\n  {right.get(key)!r:.600}")
    for path in sorted(set(before) | set(after)):
        if before.get(path) != after.get(path):
            print(f"file {path}\n  {before.get(path)}\n  {after.get(path)}")
    print(f"{same} of {total} returns are the same")


main(*sys.argv[1:])
