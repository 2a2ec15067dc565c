"""Records the command lines of genuine Salt 3008: options, and how some lines are parsed.

    python record_programs.py > programs.json       (with a Python that has Salt)

Only facts are recorded (names, values, defaults, optparse's messages); the sentences of the help
are our own.
"""

import contextlib
import copy
import io
import json
import optparse
import os
import sys

for name in list(os.environ):
    if name.startswith("SALT_"):
        del os.environ[name]

import salt.cli.api
import salt.cloud.cli
import salt.utils.parsers as parsers

PROGRAMS = {
    "salt": parsers.SaltCMDOptionParser,
    "salt-call": parsers.SaltCallOptionParser,
    "salt-key": parsers.SaltKeyOptionParser,
    "salt-run": parsers.SaltRunOptionParser,
    "salt-cp": parsers.SaltCPOptionParser,
    "salt-master": parsers.MasterOptionParser,
    "salt-minion": parsers.MinionOptionParser,
    "salt-syndic": parsers.SyndicOptionParser,
    "salt-proxy": parsers.ProxyMinionOptionParser,
    "salt-api": salt.cli.api.SaltAPI,
    "salt-ssh": parsers.SaltSSHOptionParser,
    "salt-cloud": salt.cloud.cli.SaltCloud,
}

LINES = """
salt * test.ping
salt -G os:Debian test.ping
salt -Gv os:Debian test.ping
salt * -t 9 test.ping
salt * -t9 test.ping
salt * --timeout=9 test.ping
salt * --timeout 9 test.ping
salt * --tim 9 test.ping
salt * test.ping --static
salt * test.ping --stati
salt * test.ping --stat
salt * test.ping --st
salt * test.ping --state-o terse
salt * test.ping --state_o=terse
salt * cmd.run ls -l
salt * cmd.run 'ls -l'
salt * cmd.run -- ls -la
salt -- -t 5
salt -lquiet * test.ping
salt -l debug * test.ping
salt -l DEBUG * test.ping
salt --log-level=nope * test.ping
salt --log-file x * test.ping
salt --log-file=/a/x * test.ping
salt --log-file-level all * test.ping
salt -b 10% * test.ping
salt -b2 * test.ping
salt --batch-size 5 --batch-wait 1.5 * test.ping
salt --batch-wait x * test.ping
salt --subset=3 * test.ping
salt --subset 0x10 * test.ping
salt --subset 010 * test.ping
salt --subset 0b11 * test.ping
salt --subset 1_0 * test.ping
salt --subset -1 * test.ping
salt --subset 1.5 * test.ping
salt --subset= * test.ping
salt --hide-timeout * test.ping
salt --return redis,mysql * test.ping
salt --return= * test.ping
salt --out json --no-color * test.ping
salt --out=json --out=yaml * test.ping
salt --out-f x * test.ping
salt --out-file=x --out-file-append * test.ping
salt --output-indent -1 * test.ping
salt --static=yes * test.ping
salt --nope
salt -Z
salt -tZ
salt -t
salt --timeout
salt -a pam -T --username me * test.ping
salt --eau pam * test.ping
salt --args-separator ++ * a.b,c.d 1 ++ 2
salt -d
salt -d sys.doc test
salt -EG a b
salt - test.ping
salt -c /x -c /y * test.ping
salt -t 1 -t 2 * test.ping
salt --metadata {a:b} * test.ping
salt-call --local test.ping
salt-call --loc test.ping
salt-call --metadata test.ping
salt-call --set-metadata x test.ping
salt-call -m a -m b --file-root /x --file-root=/y state.apply
salt-call -m a,b -l all test.ping
salt-call --tgt-type pcre --tgt x -r test.ping
salt-call --tgt-type nope test.ping
salt-call --id x --master y --priv z test.ping
salt-call state.apply test=True pillar={a: 1}
salt-call -g
salt-call -ldebug --retcode-passthrough state.sls x
salt-key -L
salt-key -l acc
salt-key -lacc
salt-key -a web1 -y
salt-key -ya web1
salt-key --log-level debug -A
salt-key --gen-keys x --keysize 4096
salt-key --keysize big
salt-key --include-a
salt-key --finger x -F
salt-run jobs.list_jobs --async
salt-run -t 5 manage.up --quiet
salt-run --jid x a.b
salt-cp -C * a b /c
salt-cp -n * a b
salt-cp -S * a b
salt-master -d
salt-master --pid-file /x -l info
salt-master -dlinfo
salt-master --daem
salt-minion -d -u salt
salt-minion --disable
salt-proxy --proxyid p1 -d
salt-syndic --log-file x
salt-api -d --saltfile x
salt-ssh -i * test.ping
salt-ssh --sc 22 * test.ping
salt-ssh --scan-p 22 --ssh-option a --ssh-option b * -r ls
salt-ssh --disable-keepalive --max-procs=5 * test.ping
salt-ssh --user me --passwd x --askpass * test.ping
salt-cloud -f list_x my-provider
salt-cloud -f list_x
salt-cloud -p prof a b c
salt-cloud -m map -P -y
salt-cloud --list-profiles all
salt-cloud --no-deploy -p x y
salt-cloud --set-password a b
salt-cloud --function=a b c
"""


def make(name):
    sys.argv = [name]
    return PROGRAMS[name]()


def table(name):
    parser = make(name)
    rows = []

    def add(option, group):
        rows.append(
            {
                "names": option._short_opts + option._long_opts,
                "group": group,
                "dest": option.dest,
                "action": option.action,
                "type": option.type,
                "nargs": option.nargs if option.takes_value() else 0,
                "metavar": option.metavar,
                "choices": list(option.choices) if option.choices else None,
                "default": parser.defaults.get(option.dest),
            }
        )

    for option in parser.option_list:
        add(option, None)
    for group in parser.option_groups:
        for option in group.option_list:
            add(option, group.title)
    return {"usage": parser.usage.replace("%prog ", ""), "options": rows}


def parse(line):
    name, *args = line.split(" ")
    parser = make(name)
    out, err = io.StringIO(), io.StringIO()
    result = {"line": line}
    # optparse appends to a default list in place.
    defaults = copy.deepcopy(parser.defaults)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            values, rest = optparse.OptionParser.parse_args(parser, args)
    except SystemExit as exc:
        result["code"] = exc.code
        result["err"] = err.getvalue()
        return result
    changed = {k: v for k, v in vars(values).items() if v != defaults.get(k)}
    return {**result, "values": changed, "args": rest}


def rows(items):
    return ",\n".join(items)


print('{"programs": {')
print(
    rows(
        '%s: {"usage": %s, "options": [\n%s\n]}'
        % (json.dumps(name), json.dumps(data["usage"]), rows(map(json.dumps, data["options"])))
        for name, data in ((name, table(name)) for name in PROGRAMS)
    )
)
print('}, "lines": [')
print(rows(json.dumps(parse(line)) for line in LINES.strip().splitlines()))
print("]}")
