"""Writes case files from what genuine Salt answers.

    python record.py file.yaml OUTPUT_FOLDER

Run it as root with the Python of a genuine Salt. `file.yaml` lists cases without expectations:
the machine as found (below /tmp/case), what the file server serves, a state and its arguments.
Each is run with test=True, for real, and once more; the answers and the files afterwards become
the expectations of a case file; `differs` puts ours in their place, with the reason in `why`. Nothing outside /tmp/case and a temporary folder is changed.
"""
import os
import pathlib
import shutil
import stat
import sys
import tempfile

import salt.client
import salt.config
import yaml

ROOT = pathlib.Path("/tmp/case")
USERS = {"root": 0, "daemon": 1, "bin": 2}


def build(case, served):
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(mode=0o755)
    for path, entry in case.get("machine", {}).get("files", {}).items():
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(entry, dict):
            entry = {"content": entry}
        if "link" in entry:
            path.symlink_to(entry["link"])
            continue
        if entry.get("dir"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(entry.get("content", ""))
        if "mode" in entry:
            path.chmod(int(entry["mode"], 8))
        os.chown(path, entry.get("user", 0), entry.get("group", 0))
    shutil.rmtree(served, ignore_errors=True)
    served.mkdir()
    for path, text in case.get("serve", {}).items():
        path = served / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def look():
    found = {}
    for folder, dirs, files in os.walk(ROOT):
        for name in dirs + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                found[path] = {"link": os.readlink(path)}
                continue
            entry = {"mode": f"{stat.S_IMODE(info.st_mode):04o}"}
            if info.st_uid or info.st_gid:
                entry.update(user=info.st_uid, group=info.st_gid)
            if stat.S_ISDIR(info.st_mode):
                entry["dir"] = True
            elif stat.S_ISREG(info.st_mode):
                try:
                    with open(path, encoding="utf-8", newline="") as file:
                        entry["content"] = file.read()
                except UnicodeDecodeError:
                    pass
            found[path] = entry
    return dict(sorted(found.items()))


def main(source, output):
    scratch = pathlib.Path(tempfile.mkdtemp())
    served, pillar = scratch / "served", scratch / "pillar"
    pillar.mkdir()
    opts = salt.config.minion_config(None)
    opts.update(
        root_dir=str(scratch), cachedir=str(scratch / "cache"), file_client="local", id="kit",
        file_roots={"base": [str(served)]}, pillar_roots={"base": [str(pillar)]}, user="root",
        log_level="quiet", extension_modules=str(scratch / "ext"), pki_dir=str(scratch / "pki"),
        sock_dir=str(scratch / "sock"), conf_file=str(scratch / "minion"),
    )
    for case in yaml.safe_load(pathlib.Path(source).read_text()):
        def run(test):
            caller = salt.client.Caller(mopts={**opts, "pillar": {}})
            kwargs = dict(case["args"])
            if case.get("pillar"):
                kwargs["pillar"] = case["pillar"]
            ret = caller.cmd("state.single", case["state"], test=test, **kwargs)
            ret = next(iter(ret.values())) if isinstance(ret, dict) else {"comment": str(ret)}
            return {key: ret.get(key) for key in ("result", "comment", "changes")}

        build(case, served)
        tested = run(True)
        build(case, served)
        applied = run(False)
        after = look()
        again = run(False)
        folder = pathlib.Path(output) / case["state"]
        folder.mkdir(parents=True, exist_ok=True)
        files = {"/tmp/case": {"dir": True}, **case.get("machine", {}).get("files", {})}
        users = {name: {"uid": uid, "gid": uid} for name, uid in USERS.items() if uid}
        groups = {name: {"gid": uid} for name, uid in USERS.items() if uid}
        doc = {"machine": {"users": users, "groups": groups, "files": files}}
        if case.get("machine", {}).get("commands"):
            doc["machine"]["commands"] = case["machine"]["commands"]
        for key in ("serve", "pillar", "grains", "state", "args"):
            if case.get(key):
                doc[key] = case[key]
        doc["expect"] = applied
        doc["test"] = tested
        if again["changes"]:
            doc["repeats"] = True
        doc["after"] = after
        if case.get("differs"):
            # What we answer on purpose; the reason stands in `why`.
            doc = {"why": case["why"], **doc}
            for part, values in case["differs"].items():
                doc[part].update(values)
        text = yaml.safe_dump(doc, sort_keys=False, allow_unicode=True, width=100)
        (folder / f"{case['id']}.yaml").write_text(text)
        print(case["state"], case["id"], applied["result"], applied["comment"][:60])
    shutil.rmtree(scratch)
    shutil.rmtree(ROOT, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
