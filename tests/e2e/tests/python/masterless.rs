//! `salt-call --local` with a tree that has Python in it.

use halite_e2e::Machine;

use crate::{returned, sync};

const DEPLOY: &str = r#"
"""A module under another name."""
import functools
import logging

log = logging.getLogger(__name__)
__virtualname__ = "deploy"
__func_alias__ = {"list_": "list"}
__outputter__ = {"shown": "txt"}


def __virtual__():
    return __virtualname__ if __grains__["kernel"] == "Linux" else (False, "no Linux")


def _private():
    return "hidden"


def both(text="x"):
    """
    Say it natively.

    .. code-block:: bash

        salt '*' deploy.both
    """
    log.warning("about to say %s", text)
    return [
        __salt__["test.echo"](text),
        __salt__.test.echo("a"),
        __salt__.get("test.echo")("b"),
        "test.ping" in __salt__,
        "no.such" in __salt__,
        __salt__["deploy.list"](),
    ]


def list_():
    return {80: (1, 2), "big": 2**70, "none": None}


def dunders():
    __context__["seen"] = __context__.get("seen", 0) + 1
    again = __salt__["deploy.count"]()
    return [__opts__["id"], __grains__["id"], __pillar__.get("p"), again, __opts__["test"]]


def count():
    return __context__["seen"]


def shown():
    return "plain"


def twice(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return [function(*args, **kwargs), function(*args, **kwargs)]

    return inner


@twice
def decorated(a, b=2):
    return a + b


def letters():
    return {"b", "a"}


def failing():
    return __salt__["cmd.run"]("exit 3", raise_err=True)


def broken():
    return {}["missing"]


def code():
    __context__["retcode"] = 4
    return "set"
"#;

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("srv/salt/_modules/deployment.py", DEPLOY);
    machine.write(
        "srv/salt/_modules/absent.py",
        "def __virtual__():\n    return False, 'not today'\ndef f(): pass\n",
    );
    machine.write("srv/pillar/top.sls", "base: {'*': [p]}\n");
    machine.write("srv/pillar/p.sls", "p: from pillar\n");
    sync(&machine);
    machine
}

#[test]
fn functions_are_called_and_call_back() {
    let machine = machine();
    let expected = r#"["x", "a", "b", true, false, {"80": [1, 2], "big": 1180591620717411303424, "none": null}]"#;
    assert_eq!(returned(&machine, &["deploy.both"]), expected);
    machine.call(&["deploy.both", "text=hey"]).code(0).complains("[WARNING ] about to say hey");
    assert_eq!(
        returned(&machine, &["deploy.dunders"]),
        r#"["e2e", "e2e", "from pillar", 1, false]"#
    );
    machine.call(&["deploy.shown"]).code(0).says("local: plain");
    assert_eq!(returned(&machine, &["deploy.decorated", "1", "b=3"]), "[4, 4]");
    let template = "string={{ salt['deploy.letters']().union(['c']) | sort | join }}";
    let given = ["slsutil.renderer", template, "default_renderer=jinja"];
    assert_eq!(returned(&machine, &given), "\"abc\"");
    machine.call(&["--retcode-passthrough", "deploy.code"]).code(4);
    machine.call(&["deploy._private"]).code(255);
    machine.call(&["deployment.both"]).code(255);
    machine
        .call(&["absent.f"])
        .code(255)
        .complains("'absent' __virtual__ returned False: not today");
    machine
        .call(&["deploy.both", "a", "b"])
        .code(1)
        .complains("takes from 0 to 1 positional arguments");
    machine.call(&["deploy.both", "z=1"]).code(1).complains("keyword arguments are not valid: z=1");
    machine.call(&["deploy.failing"]).code(1).complains("Error running 'deploy.failing'");
    // What a template calls tells the way to the mistake, too.
    machine.write("srv/salt/raises.sls", "x: {{ salt['deploy.broken']() }}\n");
    let ran = machine.call(&["state.apply", "raises"]).code(1);
    ran.says("Traceback (most recent call last):").says(", in broken\n").says("; line 1");
}

#[test]
fn documentation_and_arguments() {
    let machine = machine();
    // As it stands there, or without its indentation, which Python takes away since 3.13; `-d` shows
    // its markup too.
    let doc = returned(&machine, &["sys.doc", "deploy.both"]);
    let indented = r"\n    Say it natively.\n\n        salt '*' deploy.both\n    ";
    let flush = r"\nSay it natively.\n\n    salt '*' deploy.both\n";
    let expected = [indented, flush].map(|words| format!(r#"{{"deploy.both": "{words}"}}"#));
    assert!(expected.contains(&doc), "{doc}");
    let manual = machine.call(&["-d", "deploy.both"]).code(0);
    manual.says("deploy.both:\n\n").says("Say it natively.\n\n").says(".. code-block:: bash\n");
    assert_eq!(
        returned(&machine, &["sys.argspec", "deploy.both"]),
        r#"{"deploy.both": {"args": ["text"], "defaults": ["x"], "varargs": null, "kwargs": null}}"#
    );
    let names = returned(&machine, &["sys.list_functions", "deploy"]);
    assert!(names.contains("deploy.list") && !names.contains("_private"), "{names}");
    machine.call(&["sys.list_modules", "deploy"]).says("- deploy");
    let states = "'Of all.'\n\n\ndef one(name):\n    'Of one.'\n";
    machine.write("srv/salt/_states/told.py", states);
    sync(&machine);
    let docs = r#"{"told": "Of all.", "told.one": "Of one."}"#;
    assert_eq!(returned(&machine, &["sys.state_doc", "told.one"]), docs);
}

#[test]
fn a_users_module_takes_the_place_of_the_native_one() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/_modules/test.py",
        "def mine():\n    return __salt__['cmd.run']('echo hi')\n",
    );
    assert_eq!(returned(&machine, &["saltutil.sync_modules"]), r#"["modules.test"]"#);
    assert_eq!(returned(&machine, &["saltutil.sync_modules"]), "[]");
    assert_eq!(returned(&machine, &["test.mine"]), r#""hi""#);
    machine.call(&["test.ping"]).code(255).complains("'test.ping' is not available.");
    std::fs::remove_file(machine.path("srv/salt/_modules/test.py")).expect("it is there");
    sync(&machine);
    machine.call(&["test.ping"]).code(0);
    // Salt has `log` in a file of another name: a user's adds to it.
    machine.write("srv/salt/_modules/log.py", "def info(text):\n    return 'mine'\n");
    sync(&machine);
    assert_eq!(returned(&machine, &["log.info", "x"]), r#""mine""#);
    assert_eq!(returned(&machine, &["log.warning", "x"]), "true");
}

#[test]
fn a_module_offers_what_it_defines() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/_utils/tools.py",
        "import functools\n\n\ndef bare(f):\n    return lambda: f()\n\n\ndef good(f):\n    @functools.wraps(f)\n    \
         def inner():\n        return f()\n    return inner\n\n\ndef grain():\n    return {'imported': 1}\n",
    );
    machine.write(
        "srv/salt/_modules/own.py",
        "import functools\nimport tools\nfrom json import loads\nfrom salt.utils.functools import \
         alias_function, namespaced_function\n\n\ndef one():\n    return sorted(n for n in __utils__ if \
         n.startswith('tools.'))\n\n\n@tools.good\ndef good():\n    return 1\n\n\n@tools.bare\ndef \
         bare():\n    return 1\n\n\ntwo = alias_function(one, 'two')\nthree = namespaced_function(loads, \
         globals())\npart = functools.partial(one)\n",
    );
    machine.write("srv/salt/_grains/own.py", "from tools import grain\n");
    machine.write(
        "srv/salt/_returners/own.py",
        "from json import loads\n\n\ndef returner(ret):\n    'Keep it.'\n",
    );
    sync(&machine);
    let own = r#"["own.good", "own.one", "own.three", "own.two"]"#;
    assert_eq!(returned(&machine, &["sys.list_functions", "own"]), own);
    machine.call(&["own.loads", "1"]).code(255).complains("'own.loads' is not available.");
    let utils = r#"["tools.bare", "tools.good", "tools.grain"]"#;
    assert_eq!(returned(&machine, &["own.one"]), utils);
    assert_eq!(returned(&machine, &["grains.get", "imported"]), r#""""#);
    let returners = r#"["own.returner"]"#;
    assert_eq!(returned(&machine, &["sys.list_returner_functions", "own"]), returners);
    let doc = r#"{"own.returner": "Keep it."}"#;
    assert_eq!(returned(&machine, &["sys.returner_doc", "own"]), doc);
}

const STATES: &str = r#"
def mod_init(low):
    """Done the second time only."""
    __context__["inits"] = __context__.get("inits", []) + [low["fun"]]
    return len(__context__["inits"]) > 1


def inits(name):
    return {"name": name, "changes": {}, "result": True, "comment": " ".join(__context__["inits"])}


def present(name, value="v", path=None):
    ret = {"name": name, "changes": {}, "result": True, "comment": ""}
    if __salt__["file.file_exists"](path):
        ret["comment"] = "there"
        return ret
    if __opts__["test"]:
        ret["result"] = None
        ret["comment"] = "would write"
        ret["changes"] = {"new": value}
        return ret
    __salt__["file.write"](path, value)
    ret["changes"] = {"new": value}
    ret["comment"] = "written by " + __low__["__id__"] + " in " + __env__
    return ret


def mod_watch(name, sfun=None, **kwargs):
    return {"name": name, "changes": {"watched": sfun}, "result": True, "comment": "watched"}


def inner(name):
    return __states__["test.nop"](name=name)


def seen(name, **kwargs):
    given = sorted(key for key in __low__ if not key.startswith("__"))
    comment = " ".join(given + [str(isinstance(one, dict)) for one in (__opts__, __running__)])
    return {"name": name, "changes": {}, "result": True, "comment": comment}


def broken(name):
    raise ValueError("on purpose")


def malformed(name):
    return "text"
"#;

#[test]
fn states_run_with_requisites_and_tests() {
    let machine = Machine::new();
    let file = machine.path("made");
    machine.write("srv/salt/_states/own.py", STATES);
    machine.write(
        "srv/salt/web.sls",
        &format!(
            "second:\n  own.present:\n    - path: {file}\n    - require: [own: first]\n\
             third:\n  own.present:\n    - path: {file}\n    - watch: [own: second]\n\
             first:\n  own.inner: []\n\
             last:\n  own.inits:\n    - order: last\n",
            file = file.display()
        ),
    );
    machine.write(
        "srv/salt/bad.sls",
        "a:\n  own.broken: []\nb:\n  own.malformed: []\nc:\n  own.nope: []\n",
    );
    sync(&machine);
    machine.call(&["state.apply", "web", "test=True"]).says("would write").says("unchanged=");
    assert!(!file.exists());
    let ran = machine.call(&["state.apply", "web"]).code(0);
    let ran = ran.says("written by second in base").says("watched").says("Succeeded: 4");
    let ran = ran.says("Comment: inner present\n");
    let place = |text: &str| ran.out.find(text).unwrap_or_else(|| panic!("{}", ran.out));
    assert!(place("ID: first") < place("ID: second"), "{}", ran.out);
    machine.call(&["state.apply", "web"]).says("there");
    machine
        .call(&["state.apply", "bad"])
        .says("An exception occurred in this state: Traceback (most recent call last):")
        .says("ValueError: on purpose")
        .says("Malformed state return. Data must be a dictionary type.")
        .says("Reason: 'own.nope' is not available.");
    machine.call(&["sys.list_state_functions", "own"]).says("- own.present");
    let seen = "Comment: fun name state value True True\n";
    machine.call(&["state.single", "own.seen", "x", "value=1"]).code(0).says(seen);
}

#[test]
fn a_highstate_brings_modules_along() {
    let machine = Machine::new();
    machine.write("srv/salt/_states/own.py", STATES);
    machine.write("srv/salt/_grains/g.py", "def a():\n    return {'own_grain': 'g'}\n");
    machine.write("srv/salt/top.sls", "base: {'*': [web]}\n");
    machine.write("srv/salt/web.sls", "x-{{ grains['own_grain'] }}:\n  own.inner: []\n");
    machine.call(&["state.apply"]).code(0).says("ID: x-g").says("Succeeded: 1");
}

#[test]
fn grains_are_merged_in_order() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/_grains/first.py",
        "def a():\n    return {'one': 1, 'os': 'Own'}\ndef b(grains):\n    \
         return {'two': grains['kernel'] + str(grains['one'])}\ndef c():\n    raise ValueError('bad grain')\n\
         def d():\n    return 'no dict'\ndef _e():\n    return {'hidden': 1}\n",
    );
    sync(&machine);
    let ran = machine.call(&[
        "grains.item",
        "one",
        "two",
        "os",
        "hidden",
        "--out=json",
        "--out-indent=-1",
    ]);
    assert_eq!(
        ran.out.trim(),
        r#"{"local": {"one": 1, "two": "Linux1", "os": "Own", "hidden": ""}}"#
    );
    ran.complains("bad grain");
}

#[test]
fn python_renders() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/py.sls",
        "#!py\ndef run():\n    return {'a-' + sls: {'test.configurable_test_state': [\n        \
         {'result': True}, {'changes': False}, {'comment': salt['test.echo'](grains['kernel'])}]}}\n",
    );
    machine.write("srv/salt/wrong.sls", "#!py\ndef run():\n    return {}['x']\n");
    machine.write(
        "srv/salt/_utils/own.py",
        "from salt.utils.decorators.jinja import jinja_filter, jinja_global, jinja_test\n\n\
         @jinja_filter('shout')\ndef shout(text, times=1):\n    return text.upper() + '!' * times\n\n\
         @jinja_test('long')\ndef long(text):\n    return len(text) > 3\n\n\
         @jinja_global('answer')\ndef answer():\n    return 42\n\n\
         def plain():\n    return 'util'\n",
    );
    machine
        .write("srv/salt/_modules/uses.py", "def util():\n    return __utils__['own.plain']()\n");
    machine.write(
        "srv/salt/_renderers/swap.py",
        "def render(data, saltenv='base', sls='', **kwargs):\n    return data.read().replace('THIS', sls)\n",
    );
    machine.write(
        "srv/salt/jinja.sls",
        "#!swap|jinja|yaml\n{{ 'abc' | shout(2) }} {{ 'ab' is long }} {{ answer() }} THIS {{ salt['uses.util']() }}:\n  test.nop\n",
    );
    machine.write(
        "srv/salt/file.txt",
        "def run():\n    return name + ' ' + context['x'] + ' ' + grains['id']\n",
    );
    machine.write(
        "srv/salt/file.sls",
        &format!(
            "{}:\n  file.managed:\n    - source: salt://file.txt\n    - template: py\n    - context: {{x: y}}\n",
            machine.path("made.txt").display()
        ),
    );
    sync(&machine);
    machine.call(&["state.apply", "py"]).code(0).says("ID: a-py").says("Comment: Linux");
    machine
        .call(&["state.apply", "wrong"])
        .says("Rendering SLS 'base:wrong' failed")
        .says("KeyError: 'x'");
    machine.call(&["state.apply", "jinja"]).says("ID: ABC!! False 42 jinja util");
    machine.call(&["state.apply", "file"]).code(0);
    let made = machine.read("made.txt").expect("it was made");
    assert_eq!(made, format!("{} y e2e", machine.path("made.txt").display()));
}

#[test]
fn pillar_returners_and_outputters() {
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}ext_pillar:\n  - own: {{key: k}}\n"));
    machine.write(
        "srv/salt/_pillar/own.py",
        "def ext_pillar(minion_id, pillar, key='x'):\n    return {key: minion_id + str(pillar.get('p'))}\n",
    );
    machine.write("srv/salt/_modules/seen.py", "def pillar():\n    return dict(__pillar__)\n");
    machine.write("srv/pillar/top.sls", "base: {'*': [p]}\n");
    machine.write("srv/pillar/p.sls", "p: 1\n");
    machine.write(
        "srv/salt/_returners/own.py",
        &format!(
            "def returner(ret):\n    with open('{}', 'a') as f:\n        print(ret['fun'], ret['return'], ret.get('out'), file=f)\n",
            machine.path("returned").display()
        ),
    );
    machine.write(
        "srv/salt/_modules/shown.py",
        "__outputter__ = {'loudly': 'loud'}\n\n\ndef loudly():\n    return 1\n",
    );
    machine.write(
        "srv/salt/_output/loud.py",
        "def output(data, **kwargs):\n    return 'LOUD ' + str(data) + str(kwargs)\n",
    );
    machine
        .write("srv/salt/_output/bare.py", "def output(data):\n    return 'BARE ' + str(data)\n");
    sync(&machine);
    let show = ["slsutil.renderer", "string={{ pillar['k'] }}", "default_renderer=jinja"];
    assert_eq!(returned(&machine, &show), r#""e2e1""#);
    assert_eq!(returned(&machine, &["seen.pillar"]), r#"{"p": 1, "k": "e2e1"}"#);
    machine.call(&["--return", "own", "test.ping"]).code(0);
    machine.call(&["--return", "own", "shown.loudly"]).code(0).says("LOUD {'local': 1}");
    let told = "test.ping True None\nshown.loudly 1 loud\n";
    assert_eq!(machine.read("returned").as_deref(), Some(told));
    let loud = machine.call(&["--out", "loud", "test.ping"]).code(0);
    assert_eq!(loud.out, "LOUD {'local': True}{'_retcode': 0}\n");
    assert_eq!(loud.err, "");
    machine.call(&["--out", "loud", "cmd.run", "exit 3"]).says("{'_retcode': 3}");
    machine.call(&["--out", "bare", "test.ping"]).says("BARE {'local': True}");
    machine
        .call(&["--out", "no_such", "test.ping"])
        .complains("Invalid outputter no_such specified");
}

#[test]
fn executors_stand_before_functions() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/_executors/loud.py",
        r#"
def execute(opts, data, func, args, kwargs):
    if data["fun"] == "test.version":
        return None
    given = data.get("executor_opts", {}).get("mark", "!")
    return [opts["id"], func.__name__, func(*args, **kwargs), __salt__["test.echo"](given)]
"#,
    );
    machine.write(
        "srv/salt/_executors/shy.py",
        "def __virtual__():\n    return False, 'not today'\n\ndef execute(*args):\n    return 1\n",
    );
    machine.call(&["saltutil.sync_executors"]).code(0).says("executors.loud");
    let both = "--module-executors=[loud, direct_call]";
    assert_eq!(returned(&machine, &[both, "test.echo", "hi"]), r#"["e2e", "echo", "hi", "!"]"#);
    let marked = "--executor-opts={mark: '?'}";
    let expected = r#"["e2e", "ping", true, "?"]"#;
    assert_eq!(returned(&machine, &["--module-executors=loud", marked, "test.ping"]), expected);
    // What has no result leaves it to the next, if there is one.
    machine.call(&[both, "test.version"]).code(0).says("3008");
    assert_eq!(returned(&machine, &["--module-executors=loud", "test.version"]), "null");
    for missing in ["shy", "nobody"] {
        let option = format!("--module-executors={missing}");
        let told = format!("Executor '{missing}' is not available.");
        machine.call(&[&option, "test.ping"]).code(1).complains(&told);
    }
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}module_executors: [loud]\n"));
    assert_eq!(returned(&machine, &["test.echo", "hi"]), r#"["e2e", "echo", "hi", "!"]"#);
}

#[test]
fn names_that_old_modules_import() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/_modules/old.py",
        r#"
from __future__ import absolute_import
import salt.utils
import salt.utils.files, salt.utils.path, salt.utils.data, salt.utils.dictupdate, salt.utils.json
import salt.utils.stringutils, salt.utils.args, salt.utils.platform, salt.utils.yaml, salt.utils.http
import salt.utils.decorators as decorators, salt.utils.decorators.path, salt.utils.hashutils, salt.utils.network
import salt.config, salt.client, salt.loader, salt.minion, salt.runner, salt.wheel, salt.syspaths, salt.version
import salt.modules.cmdmod
from salt.exceptions import CommandExecutionError, SaltInvocationError, CommandNotFoundError
from salt.ext import six
from salt.ext.six.moves import range
from salt.ext.six.moves.urllib.parse import urlparse
from salt.utils.odict import OrderedDict


@decorators.depends("no_such_module_anywhere")
def hidden():
    pass


def used():
    data = OrderedDict([("a", {"b": [1, {"c": 2}]})])
    return [
        salt.utils.data.traverse_dict_and_list(data, "a:b:1:c"),
        salt.utils.dictupdate.update({"x": {"y": 1}}, {"x": {"z": 2}}),
        bool(salt.utils.path.which("sh")),
        salt.utils.stringutils.expr_match("salt/job/1/ret/x", "salt/job/*/ret/*"),
        six.text_type(urlparse("http://h/x").netloc),
        salt.utils.yaml.safe_load("{a: [1, yes]}"),
        salt.modules.cmdmod.run("echo native"),
        salt.utils.args.clean_kwargs(__pub_x=1, y=2),
        data,
    ]


def wrong():
    raise SaltInvocationError("not like this")
"#,
    );
    sync(&machine);
    let expected = r#"[2, {"x": {"y": 1, "z": 2}}, true, true, "h", {"a": [1, true]}, "native", {"y": 2}, {"a": {"b": [1, {"c": 2}]}}]"#;
    assert_eq!(returned(&machine, &["old.used"]), expected);
    machine.call(&["old.hidden"]).code(255);
    machine.call(&["old.wrong"]).code(1).complains("not like this");
}

#[test]
fn names_that_newer_modules_import() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/_modules/newer.py",
        r#"
import salt.cache, salt.crypt, salt.grains.core, salt.loader, salt.pillar, salt.template, salt.utils.beacons
import salt.utils.extmods
import salt.utils.timed_subprocess, salt.utils.lazy
from salt._compat import ipaddress
from salt.output import nested
from salt.utils.atomicfile import atomic_open
from salt.utils.cloud import is_public_ip
from salt.utils.context import NamespacedDictWrapper, func_globals_inject
from salt.utils.dictdiffer import recursive_diff
from salt.utils.minions import parse_target
from salt.utils.network import remote_port_tcp

NAME = "own"


def name():
    return NAME


def ran(command, **kwargs):
    made = salt.utils.timed_subprocess.TimedProc(command, stdout=-1, stderr=-1, **kwargs)
    try:
        return [made.run(), made.stdout.decode()]
    except salt.exceptions.TimedProcTimeoutError as error:
        return str(error)


def used(path):
    cache = salt.cache.factory(__opts__)
    cache.store("own/bank", "key", {"a": [1]})
    with atomic_open(path) as handle:
        handle.write("written")
    with func_globals_inject(name, NAME="other"):
        other = name()
    context = {}
    NamespacedDictWrapper(context, ("a", "b"))["c"] = 1
    difference = recursive_diff({"a": 1, "b": {"c": 1}}, {"a": 1, "b": {"c": 2}, "n": 3})
    return [
        ran(["cat"], stdin="text"), ran(["sleep", "9"], timeout=0.1),
        cache.fetch("own/bank", "key"), cache.list("own"), cache.flush("own"), cache.fetch("own/bank", "key"),
        [name(), other], context, difference.diffs, difference.changes_str, parse_target("G@os:x"),
        salt.utils.beacons.list_to_dict([{"a": 1}, {"b": 2}]), is_public_ip("10.0.0.1"),
        "id" in salt.grains.core.id_(), isinstance(remote_port_tcp(1), set),
        salt.template.compile_template(
            ":string:", salt.loader.render(__opts__, __salt__), "jinja|yaml", [], [], input_data="a: {{ 1 + 1 }}"
        ),
        salt.utils.extmods.sync(__opts__, "modules"), salt.pillar.get_pillar(__opts__, {}, "e2e").compile_pillar(),
    ]
"#,
    );
    sync(&machine);
    let path = machine.path("written").display().to_string();
    let expected = r#"[[0, "text"], "['sleep', '9'] : Timed out after 0.1 seconds", {"a": [1]}, ["bank"], true, {}, ["own", "other"], {"a": {"b": {"c": 1}}}, {"b": {"c": {"new": 2, "old": 1}}, "n": {"new": 3, "old": "<_null_>"}}, "b:\n  c from 1 to 2\nn from nothing to 3", {"engine": "G", "delimiter": null, "pattern": "os:x"}, {"a": 1, "b": 2}, false, true, true, {"a": 2}, [[], false], {}]"#;
    assert_eq!(returned(&machine, &["newer.used", &path]), expected);
    assert_eq!(machine.read("written").as_deref(), Some("written"));
}

#[test]
fn without_an_interpreter_only_python_is_missing() {
    let machine = machine();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}halite: {{python: /no/such/python}}\n"));
    machine.call(&["test.ping"]).code(0);
    machine.call(&["deploy.both"]).code(255).complains("/no/such/python");
}
