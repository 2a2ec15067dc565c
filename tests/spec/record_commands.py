#!/usr/bin/env python3
"""
Record commands/*.json: what genuine Salt's salt-call answers to commands operators type.

Usage:  record_commands.py PATH_OF_GENUINE_SALT_CALL [GROUP ...]

Each file holds a tree and a list of commands. For every command the tree is written anew to a
scratch folder that stands for `/`, and the command is run there as

    salt-call --local --config-dir ROOT/etc/salt --out json --log-level quiet COMMAND...

What it printed and its exit code are stored beside it. `{root}` stands for the scratch folder in
trees, commands and answers; times, process ids and job ids are replaced (see `plain`). The commands
are chosen so that nothing else of the answer depends on the machine. A file's tree and commands are
written by hand; this script fills in `out` and `code`. The runner is tests/e2e/tests/commands.rs.

To be quick, genuine Salt is imported once and forked for each command.
"""
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent / "commands"

CONFIG = """\
id: recorded
root_dir: {root}
file_client: local
file_roots: {{base: [{root}/srv/salt], dev: [{root}/srv/dev]}}
pillar_roots: {{base: [{root}/srv/pillar]}}
"""


def plain(value, root):
    """The answer without what differs from run to run."""
    if isinstance(value, dict):
        gone = ("start_time", "duration", "__jid__")
        same = {k: plain(v, root) for k, v in value.items() if k not in gone}
        same = {plain(k, root): v for k, v in same.items()}
        if isinstance(value.get("pid"), int):
            same["pid"] = 0
        return same
    if isinstance(value, list):
        return [plain(item, root) for item in value]
    if isinstance(value, str):
        return value.replace(root, "{root}")
    return value


def write(root, tree):
    for name, file in tree.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(file, str):
            file = {"text": file}
        if file.get("dir"):
            path.mkdir(exist_ok=True)
        elif "link" in file:
            path.symlink_to(file["link"].replace("{root}", root))
            continue
        else:
            path.write_text(file["text"].replace("{root}", root))
        path.chmod(int(file.get("mode", "0755" if file.get("dir") else "0644"), 8))


def run(root, argv, salt_call):
    """Runs genuine salt-call in a child; returns its exit code and standard output."""
    with open(root + "/out", "w+b") as out:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(out.fileno(), 1)
            os.dup2(os.open(os.devnull, os.O_RDWR), 2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.chdir(root)
            path = os.environ["PATH"]
            os.environ.clear()
            os.environ.update(PATH=path, HOME=root)
            sys.argv = [salt_call, "--local", "--config-dir", root + "/etc/salt"]
            sys.argv += ["--out", "json", "--log-level", "quiet", *argv]
            code = 1
            try:
                import salt.scripts

                salt.scripts.salt_call()
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
            finally:
                sys.stdout.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        out.seek(0)
        return os.waitstatus_to_exitcode(status), out.read().decode()


def record(path, salt_call):
    group = json.loads(path.read_text())
    for command in group["commands"]:
        root = tempfile.mkdtemp(prefix="record")
        write(root, {"etc/salt/minion": CONFIG.format(root=root).replace("{{", "{").replace("}}", "}")})
        write(root, group["tree"])
        argv = [word.replace("{root}", root) for word in command["run"]]
        code, out = run(root, argv, salt_call)
        try:
            answer = plain(json.loads(out), root)
        except ValueError:
            answer = {"text": plain(out, root)}
        command.pop("out", None), command.pop("code", None)
        command["code"], command["out"] = code, answer
        shutil.rmtree(root)
        print(path.stem, code, " ".join(command["run"])[:100], flush=True)
    lines = [json.dumps(c, ensure_ascii=False) for c in group["commands"]]
    head = json.dumps(group["tree"], ensure_ascii=False, indent=1)
    path.write_text('{"tree": %s,\n"commands": [\n%s\n]}\n' % (head, ",\n".join(lines)))


def main():
    salt_call = sys.argv[1]
    with open(salt_call) as script:
        python = script.readline().removeprefix("#!").strip()
    if os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(python))):
        os.execv(python, [python, *sys.argv])
    import salt.cli.call  # noqa: F401  (what every command needs, loaded before the forks)
    import salt.cli.caller  # noqa: F401
    import salt.modules.cmdmod  # noqa: F401
    import salt.scripts  # noqa: F401
    import salt.state  # noqa: F401

    wanted = sys.argv[2:]
    for path in sorted(FOLDER.glob("*.json")):
        if not wanted or path.stem in wanted:
            record(path, salt_call)


if __name__ == "__main__":
    main()
