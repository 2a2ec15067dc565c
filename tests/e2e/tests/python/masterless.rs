//! `salt-call --local` with a tree that has Python in it.

use halite_e2e::Machine;

use crate::{returned, sync};

const DEPLOY: &str = r#"
"""A module under another name."""
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
    // As it stands there; `-d` shows its markup too.
    let doc = returned(&machine, &["sys.doc", "deploy.both"]);
    let words = r"\n    Say it natively.\n\n        salt '*' deploy.both\n    ";
    assert_eq!(doc, format!(r#"{{"deploy.both": "{words}"}}"#));
    let shown = "deploy.both:\n\n    Say it natively.\n\n    .. code-block:: bash\n";
    machine.call(&["-d", "deploy.both"]).code(0).says(shown);
    assert_eq!(
        returned(&machine, &["sys.argspec", "deploy.both"]),
        r#"{"deploy.both": {"args": ["text"], "defaults": ["x"], "varargs": null, "kwargs": null}}"#
    );
    let names = returned(&machine, &["sys.list_functions", "deploy"]);
    assert!(names.contains("deploy.list") && !names.contains("_private"), "{names}");
    machine.call(&["sys.list_modules", "deploy"]).says("- deploy");
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
}

const STATES: &str = r#"
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
             first:\n  own.inner: []\n",
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
    let ran = ran.says("written by second in base").says("watched").says("Succeeded: 3");
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
    machine.write("srv/pillar/top.sls", "base: {'*': [p]}\n");
    machine.write("srv/pillar/p.sls", "p: 1\n");
    machine.write(
        "srv/salt/_returners/own.py",
        &format!(
            "def returner(ret):\n    with open('{}', 'a') as f:\n        f.write(ret['fun'] + ' ' + str(ret['return']))\n",
            machine.path("returned").display()
        ),
    );
    machine.write(
        "srv/salt/_output/loud.py",
        "def output(data, **kwargs):\n    return 'LOUD ' + str(data)\n",
    );
    sync(&machine);
    let show = ["slsutil.renderer", "string={{ pillar['k'] }}", "default_renderer=jinja"];
    assert_eq!(returned(&machine, &show), r#""e2e1""#);
    machine.call(&["--return", "own", "test.ping"]).code(0);
    assert_eq!(machine.read("returned").as_deref(), Some("test.ping True"));
    machine.call(&["--out", "loud", "test.ping"]).says("LOUD {'local': True}");
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
fn without_an_interpreter_only_python_is_missing() {
    let machine = machine();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}halite: {{python: /no/such/python}}\n"));
    machine.call(&["test.ping"]).code(0);
    machine.call(&["deploy.both"]).code(255).complains("/no/such/python");
}
