//! Kinds of modules that Salt itself calls: engines, sdb, matchers, tops, auth, log handlers, `mod_aggregate`; and
//! what `saltext.*` packages bring.

use std::process::Command;

use halite_e2e::{
    Machine, genuine,
    site::{Make, Site, until},
};
use serde_json::json;

use crate::{returned, sync};

const SDB: &str = r#"
import json, os


def _path(profile):
    return profile["path"]


def _all(profile):
    if not os.path.exists(_path(profile)):
        return {}
    with open(_path(profile)) as f:
        return json.load(f)


def get(key, profile=None):
    return _all(profile).get(key)


def set_(key, value, profile=None):
    found = _all(profile)
    found[key] = value
    with open(_path(profile), "w") as f:
        json.dump(found, f)
    return True


def delete(key, profile=None):
    found = _all(profile)
    found.pop(key, None)
    with open(_path(profile), "w") as f:
        json.dump(found, f)
    return True


__func_alias__ = {"set_": "set"}
"#;

const ASKS: &str = r#"
def config():
    return [__opts__["own_secret"], __opts__["own_list"]]


def dunder():
    return __sdb__["shelf.get"]("door", profile=__opts__["shelf"])
"#;

#[test]
fn values_kept_by_a_users_driver() {
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    let shelf = machine.path("shelf.json").display().to_string();
    let own = "own_secret: sdb://shelf/door\nown_list: [1, {deep: 'sdb://shelf/door'}, 'sdb://nobody/x']\n";
    let config = format!("{config}shelf: {{driver: shelf, path: {shelf}}}\n{own}");
    machine.write("etc/salt/minion", &config);
    machine.write("srv/salt/_sdb/shelf.py", SDB);
    machine.write("srv/salt/_modules/asks.py", ASKS);
    machine.write("shelf.json", "{\"door\": \"open\"}");
    sync(&machine);
    assert_eq!(returned(&machine, &["sdb.get", "sdb://shelf/door"]), "\"open\"");
    assert_eq!(returned(&machine, &["sdb.set", "sdb://shelf/new", "thing"]), "true");
    assert_eq!(returned(&machine, &["sdb.get", "sdb://shelf/new"]), "\"thing\"");
    assert_eq!(returned(&machine, &["sdb.delete", "sdb://shelf/new"]), "true");
    assert_eq!(returned(&machine, &["sdb.get", "sdb://shelf/new"]), "null");
    // What no profile is for stays as it is.
    let expected = r#"["open", [1, {"deep": "open"}, "sdb://nobody/x"]]"#;
    assert_eq!(returned(&machine, &["asks.config"]), expected);
    assert_eq!(returned(&machine, &["asks.dunder"]), "\"open\"");
    assert_eq!(returned(&machine, &["config.get", "own_secret"]), "\"open\"");
    machine.write("srv/salt/t.sls", "{{ salt['sdb.get']('sdb://shelf/door') }}: test.nop\n");
    let shown = returned(&machine, &["state.show_sls", "t"]);
    assert!(shown.contains("\"open\""), "{shown}");
    machine.call(&["sdb.get", "sdb://nobody/x", "strict=True"]).code(1);
}

const COLOR: &str =
    "def match(tgt, opts=None, minion_id=None):\n    return tgt == __opts__['color']\n";
/// For the top of the pillar, which the master matches for a minion.
const SHADE: &str = "def match(tgt, opts=None, minion_id=None):\n    \
                     return tgt == __opts__['id'] + '-' + __grains__.get('shade', '')\n";
const GRAIN: &str =
    "def match(tgt, delimiter=':', opts=None, minion_id=None):\n    return tgt == 'magic:yes'\n";
const TOPS: &str = r#"
def top(**kwargs):
    if kwargs["opts"]["id"] == "stranger":
        raise ValueError("no stranger")
    return {"base": ["from_tops_" + kwargs["opts"]["id"], __opts__["master_tops"]["racks"]]}
"#;
const TOP: &str = "
base:
  red: [{match: color}, colored]
  blue: [{match: color}, never]
  'magic:yes': [{match: grain}, by_grain]
  'G@magic:yes and not G@other:x': [by_compound]
  'G@kernel:Linux': [never]
";

#[test]
fn matchers_and_tops_without_a_master() {
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    let own = "color: red\nmaster_tops: {racks: named}\n";
    machine.write("etc/salt/minion", &format!("{config}{own}"));
    machine.write("srv/salt/_matchers/color_match.py", COLOR);
    machine.write("srv/salt/_matchers/grain_match.py", GRAIN);
    machine.write("srv/salt/_tops/racks.py", TOPS);
    machine.call(&["saltutil.sync_all", "saltenv=base"]).code(0);
    machine.write("srv/salt/top.sls", TOP);
    let expected = r#"{"base": ["colored", "by_grain", "by_compound", "from_tops_e2e", "named"]}"#;
    assert_eq!(returned(&machine, &["state.show_top"]), expected);
}

const ENGINE: &str = r#"
import logging, os, time

log = logging.getLogger(__name__)


def start(folder, tag, dies=False):
    path = os.path.join(folder, tag.replace("/", "_"))
    with open(path, "a") as f:
        f.write("begun\n")
    if dies:
        log.warning("the engine is about to end")
        raise ValueError("an engine may fail")
    while True:
        __salt__["event.send"](tag, {"role": __opts__["__role"], "ping": __salt__["test.ping"]()})
        time.sleep(0.2)
"#;

const LISTENER: &str = r#"
import salt.utils.event


def start(path):
    with salt.utils.event.get_master_event(__opts__, __opts__["sock_dir"], listen=True) as bus:
        while True:
            found = bus.get_event(tag="own/minion", full=True)
            if found:
                with open(path, "w") as f:
                    f.write(found["data"]["data"]["role"])
"#;

/// Writes down the tags of its minion's bus, and fires there itself.
const EARS: &str = r#"
import salt.utils.event


def start(path):
    with salt.utils.event.get_event("minion", opts=__opts__, listen=True) as bus:
        bus.fire_event({"n": 1}, "own/fired")
        for found in bus.iter_events(full=True, auto_reconnect=True):
            with open(path, "a") as f:
                f.write("{} {}\n".format(found["tag"], found["data"].get("n")))
"#;

const AUTH: &str = r#"
def auth(username, password, **kwargs):
    return username in ("ann", "bob", "eve") and password == "door-" + username


def groups(username, **kwargs):
    return ["team"] if username == "bob" else []
"#;

const ACL: &str = r#"
def auth(username, password):
    return password == "x"


def acl(username, **kwargs):
    return [{"*": ["test.echo"]}] if username == "ann" else []
"#;

/// As usual, until a file says that m1 alone is ever meant.
const LIST: &str = "
import os


def match(tgt, **kw):
    return __opts__['id'] == 'm1' if os.path.exists('FLAG') else __opts__['id'] in tgt
";

const ROLLS: &str = r#"
def turn(times, way="left"):
    return {"turned": [times, way], "keys": sorted(__salt__["key.list_all"]()["minions"]) if "key.list_all" in __salt__ else None}
"#;

/// A site whose master has modules of all kinds, and two minions.
fn site() -> Site {
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    let folder = site.path("").display().to_string();
    let config = site.read("master/etc/master");
    let more = format!(
        "engines:
  - ticker: {{folder: {folder}, tag: own/master}}
  - second: {{engine_module: ticker, folder: {folder}, tag: own/second, dies: true}}
  - hears: {{path: {folder}/heard}}
  - nowhere
master_tops: {{racks: named}}
external_auth:
  doors:
    ann: ['test.ping']
    team%: ['test.echo']
  lists: {{}}
  nothing: {{ann: ['.*']}}
"
    );
    site.write("master/etc/master", format!("{config}{more}"));
    for (file, text) in [
        ("engines/ticker.py", ENGINE),
        ("engines/hears.py", LISTENER),
        ("tops/racks.py", TOPS),
        ("auth/doors.py", AUTH),
        ("auth/lists.py", ACL),
        ("matchers/shade_match.py", SHADE),
        ("wheel/rolls.py", ROLLS),
    ] {
        site.write(&format!("master/var/cache/salt/master/extmods/{file}"), text);
    }
    site.write("srv/salt/_matchers/color_match.py", COLOR);
    let list = LIST.replace("FLAG", &site.path("only_m1").display().to_string());
    site.write("srv/salt/_matchers/list_match.py", list);
    site.write("srv/salt/_engines/ticker.py", ENGINE);
    site.write("srv/salt/_engines/ears.py", EARS);
    site.write("srv/salt/_executors/around.py", EXECUTOR);
    site.start_master();
    let engines = format!(
        "color: red\ngrains: {{shade: dark}}\nengines: [{{ticker: {{folder: {folder}, tag: own/minion}}}}, \
         {{ears: {{path: {folder}/ears}}}}]\n"
    );
    site.minion("m1", Make::Ours, &engines);
    site.minion("m2", Make::Ours, "color: blue\n");
    site.answer(&["m1", "m2"]);
    site
}

#[test]
fn what_a_master_and_its_minions_call() {
    let mut site = site();
    // Engines: of the master, several of one file, one that ends, one that listens.
    until("the master's engine runs", || site.read("own_master").contains("begun"));
    until("an engine that ends is started again", || site.read("own_second").lines().count() > 2);
    until("the log says why", || site.read("master.log").contains("an engine may fail"));
    until("one that is not there is named", || {
        site.read("master.log").contains("'nowhere.start' is not available")
    });
    // The minion's engine comes with the modules, and starts without a restart.
    site.salt(&["*", "saltutil.sync_all", "saltenv=base"]).code(0).says("engines.ticker");
    until("the minion's engine tells the master", || site.read("heard") == "minion");
    // An engine hears its minion's bus, and fires there.
    until("the minion's engine hears itself", || site.read("ears").contains("own/fired 1"));
    site.salt(&["m1", "event.fire", "{n: 2}", "own/told"]).code(0);
    until("the minion's engine hears others", || site.read("ears").contains("own/told 2"));
    // It goes on with a master that was restarted.
    site.kill("master");
    std::fs::remove_file(site.path("heard")).expect("it was there");
    site.start_master();
    until("the engine's events arrive again", || site.read("heard") == "minion");
    site.answer(&["m1", "m2"]);

    // Tops of the master, matchers of the minion.
    site.write("srv/salt/top.sls", "base:\n  red: [{match: color}, colored]\n  'm*': [always]\n");
    let shown = site.ask(&["*", "state.show_top"]);
    let tops = |id: &str| json!([format!("from_tops_{id}"), "named"]);
    let expected = |own: &[&str], id: &str| {
        let all = own.iter().map(|sls| json!(sls));
        let all: Vec<_> = all.chain(tops(id).as_array().cloned().unwrap_or_default()).collect();
        json!({ "base": all })
    };
    assert_eq!(shown["m1"], expected(&["colored", "always"], "m1"), "{shown:?}");
    assert_eq!(shown["m2"], expected(&["always"], "m2"), "{shown:?}");
    // Matchers of the master, for the pillar: alone and as a part.
    site.write(
        "srv/pillar/top.sls",
        "base:\n  m1-dark: [{match: shade}, dark]\n  m2-dark: [{match: shade}, never]\n  'm*': [all]\n",
    );
    for name in ["dark", "never", "all"] {
        site.write(&format!("srv/pillar/{name}.sls"), format!("{name}: yes\n"));
    }
    site.salt(&["*", "saltutil.refresh_pillar", "wait=True"]).code(0);
    let shown = site.ask(&["*", "pillar.ls"]);
    assert_eq!(shown["m1"], json!(["dark", "all"]), "{shown:?}");
    assert_eq!(shown["m2"], json!(["all"]), "{shown:?}");
    // A matcher of the user's decides about publications, too: m2 does not feel meant.
    site.write("only_m1", "");
    let answered = site.salt(&["-L", "m1,m2", "test.ping", "--out=json", "-t", "3"]).out;
    let answered = halite_e2e::site::documents(&answered);
    assert_eq!(answered.get("m1"), Some(&json!(true)), "{answered:?}");
    assert_ne!(answered.get("m2"), Some(&json!(true)), "{answered:?}");

    // Executors of the minion.
    let around = site.ask(&["m1", "--module-executors=[around]", "test.echo", "x"]);
    assert_eq!(around["m1"], json!(["around test.echo on m1", "x"]), "{around:?}");

    // Wheel functions, as a step of an orchestration.
    let step = "roll:\n  salt.wheel: [{name: rolls.turn}, {times: 3}, {way: right}]\n";
    site.write("srv/salt/roll.sls", step);
    let ran = site.run("salt-run", &["state.orchestrate", "roll", "--out=json"]).code(0);
    ran.says(r#""turned": ["#).says("right");

    // Authentication.
    let ask = |system: &str, user: &str, password: &str, function: &str| {
        let password = format!("--password={password}");
        let user = format!("--username={user}");
        site.salt(&["-a", system, &user, &password, "m1", function, "x", "--out=json"]).out
    };
    let may = |text: &str| text.contains("\"m1\"");
    assert!(may(&ask("doors", "bob", "door-bob", "test.echo")), "by a group");
    assert!(!may(&ask("doors", "bob", "door-ann", "test.echo")), "a wrong password");
    assert!(!may(&ask("doors", "ann", "door-ann", "test.echo")), "not hers");
    assert!(!may(&ask("doors", "eve", "door-eve", "test.echo")), "nothing for eve");
    assert!(may(&ask("lists", "ann", "x", "test.echo")), "the module's own list");
    assert!(!may(&ask("lists", "bob", "x", "test.echo")), "an empty list");
    assert!(!may(&ask("nothing", "ann", "x", "test.echo")), "a system that is not there");
}

const EXECUTOR: &str = r#"
def execute(opts, data, func, args, kwargs):
    if data.get("executor_opts") == "leave it":
        return None
    return ["around " + data["fun"] + " on " + opts["id"], func(*args, **kwargs)]
"#;

#[test]
fn executors_stand_before_functions() {
    let machine = Machine::new();
    machine.write("srv/salt/_executors/around.py", EXECUTOR);
    machine.call(&["saltutil.sync_executors"]).code(0).says("executors.around");
    let call = |args: &[&str]| returned(&machine, args);
    let around = r#"["around test.echo on e2e", "x"]"#;
    assert_eq!(call(&["--module-executors=[around]", "test.echo", "x"]), around);
    let left =
        ["--module-executors=[around, direct_call]", "--executor-opts=leave it", "test.ping"];
    assert_eq!(call(&left), "true");
    let nobody = ["--module-executors=around", "--executor-opts=leave it", "test.ping"];
    assert_eq!(call(&nobody), "null");
    machine
        .call(&["--module-executors=[nobody]", "test.ping"])
        .code(1)
        .complains("Executor 'nobody' is not available");
    machine
        .call(&["--module-executors=[around]", "no.such"])
        .code(255)
        .complains("'no.such' is not available.");
}

const AGGREGATE: &str = r#"
def mod_aggregate(low, chunks, running):
    names = []
    for chunk in chunks:
        if chunk.get("state") == "crate" and chunk.get("fun") == low["fun"] and not chunk.get("__agg__"):
            chunk["__agg__"] = True
            names.append(chunk["name"])
    low["more"] = names
    return low


def filled(name, more=None, **kwargs):
    return {"name": name, "result": True, "changes": {}, "comment": repr(more)}
"#;

#[test]
fn states_of_a_user_are_joined() {
    let machine = Machine::new();
    machine.write("srv/salt/_states/crate.py", AGGREGATE);
    let state = |id: &str, more: &str| {
        format!("{id}:\n  crate.filled:\n    - name: n{id}\n    - aggregate: True\n{more}")
    };
    let after = state("three", "    - require: [crate: one]\n");
    machine.write("srv/salt/t.sls", &format!("{}{}{after}", state("one", ""), state("two", "")));
    sync(&machine);
    let ran = machine.call(&["state.apply", "t", "--out=json"]).code(0);
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let comment =
        |id: &str| found["local"][format!("crate_|-{id}_|-n{id}_|-filled")]["comment"].clone();
    assert_eq!(
        [comment("one"), comment("two"), comment("three")],
        ["['ntwo']", "None", "None"],
        "{found}"
    );
}

/// Packs the files of a folder as its authors' tools would: pip installs it without the network.
const WHEEL: &str = r#"
import os, sys, zipfile

source, target = sys.argv[1:3]
info = "saltext.halite_demo-1.0.dist-info"
files = {
    info + "/METADATA": "Metadata-Version: 2.1\nName: saltext.halite-demo\nVersion: 1.0\n",
    info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    info + "/entry_points.txt": "[salt.loader]\nsaltext.halite_demo = saltext.halite_demo\n",
}
for folder, _, names in os.walk(source):
    for name in names:
        path = os.path.join(folder, name)
        with open(path) as f:
            files[os.path.relpath(path, source)] = f.read()
files[info + "/RECORD"] = "".join(name + ",,\n" for name in files) + info + "/RECORD,,\n"
with zipfile.ZipFile(target, "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
"#;

fn write_extension(machine: &Machine) {
    let place = "ext/saltext/halite_demo";
    machine.write(&format!("{place}/__init__.py"), "");
    machine.write(&format!("{place}/modules/__init__.py"), "");
    machine.write(&format!("{place}/states/__init__.py"), "");
    machine.write(
        &format!("{place}/modules/demo_ext.py"),
        "__virtualname__ = 'demo'\n\n\ndef __virtual__():\n    return __virtualname__\n\n\n\
         def hello(name='x'):\n    '''Say hello.'''\n    \
         return ['hello', name, __grains__['id'], __salt__['test.echo']('native')]\n",
    );
    machine.write(
        &format!("{place}/states/demo_ext.py"),
        "__virtualname__ = 'demo'\n\n\ndef __virtual__():\n    return __virtualname__\n\n\n\
         def greeted(name):\n    return {'name': name, 'result': True, 'changes': {}, \
         'comment': __salt__['demo.hello'](name)[1]}\n",
    );
}

fn install(machine: &Machine, python: &std::path::Path, target: &str) {
    let wheel = machine.path("saltext.halite_demo-1.0-py3-none-any.whl");
    machine.write("wheel.py", WHEEL);
    let mut command = Command::new(python);
    command.arg(machine.path("wheel.py")).arg(machine.path("ext")).arg(&wheel);
    machine.run(&mut command).code(0);
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--no-index", "--target"])
        .arg(machine.path(target))
        .arg(&wheel);
    machine.run(&mut command).code(0);
}

#[test]
fn packages_of_extensions_are_served() {
    let genuine = genuine::python();
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    write_extension(&machine);
    install(&machine, &genuine, "site");
    // Once beside the genuine package, and once where there is none.
    for (name, python) in [("with", genuine.display().to_string()), ("without", "python3".into())] {
        let site = machine.path("site").display().to_string();
        let wrapper = machine.path(name);
        machine.write(name, &format!("#!/bin/sh\nPYTHONPATH={site} exec {python} \"$@\"\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&wrapper, mode).expect("it is ours");
        let wrapper = wrapper.display();
        machine.write("etc/salt/minion", &format!("{config}halite: {{python: {wrapper}}}\n"));
        let expected = r#"["hello", "world", "e2e", "native"]"#;
        assert_eq!(returned(&machine, &["demo.hello", "world"]), expected, "{name}");
        let ran = machine.call(&["state.single", "demo.greeted", "you"]).code(0);
        assert!(ran.out.contains("Comment: you"), "{name}: {}", ran.out);
    }
}

/// Functions that want something (`@depends`): the names the module has afterwards, as genuine Salt has them.
const WANTING: &str = r#"
import json

from salt.utils.decorators import depends

NO = False
__func_alias__ = {"list_": "list"}


def plain():
    return "plain"


def names():
    return sorted(name.partition(".")[2] for name in __salt__ if name.startswith("wanting."))


@depends("json", "LATER")
def there():
    return "there"


@depends("nothing")
def missing():
    return "missing"


@depends("nothing")
def list_():
    return "list"


@depends("NO")
def false():
    return "false"


@depends(NO)
def never():
    return "never"


@depends(True)
def always():
    return "always"


@depends("nothing", fallback_function=plain)
def replaced():
    return "replaced"


@depends("json", version="1.0")
def new_enough():
    return "new_enough"


@depends("json", version="99")
def too_old():
    return "too_old"


@depends("true", retcode=0)
def command():
    return "command"


@depends("no-such-command-here", retcode=0)
def no_command():
    return "no_command"


@depends("false", nonzero_retcode=True)
def failing_command():
    return "failing_command"


LATER = 1
"#;

#[test]
fn functions_without_what_they_want_are_not_there() {
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("srv/salt/_modules/wanting.py", WANTING);
    // Called by another name than the file's nothing is taken away, as in Salt.
    let renamed = "def __virtual__():\n    return 'renamed'\n\n";
    machine.write("srv/salt/_modules/other.py", &format!("{renamed}{WANTING}"));
    sync(&machine);
    for python in ["python3".to_owned(), genuine::python().display().to_string()] {
        machine.write("etc/salt/minion", &format!("{config}halite: {{python: {python}}}\n"));
        let expected = r#"["always", "command", "failing_command", "names", "new_enough", "plain", "replaced", "there"]"#;
        assert_eq!(returned(&machine, &["wanting.names"]), expected, "{python}");
        assert_eq!(returned(&machine, &["wanting.replaced"]), r#""plain""#, "{python}");
        assert_eq!(returned(&machine, &["renamed.missing"]), r#""missing""#, "{python}");
        machine.call(&["wanting.missing"]).code(255);
    }
}

const HANDLER: &str = r#"
import logging


class ToFile(logging.Handler):
    def emit(self, record):
        with open(__opts__["own_log"], "a") as f:
            f.write("{} {} {}\n".format(__opts__["__role"], record.levelname, record.getMessage()))


class Broken(logging.Handler):
    def handle(self, record):
        raise RuntimeError("it never works")


def setup_handlers():
    return [Broken(), ToFile(level=getattr(logging, __opts__["wanted_by_handlers"]))]
"#;

/// What a handler's module needs of the configuration.
fn handled(folder: &std::path::Path, level: &str) -> String {
    let folder = folder.display();
    format!(
        "log_handlers_dirs: [{folder}/handlers]\nown_log: {folder}/own.log\nwanted_by_handlers: {level}\n"
    )
}

#[test]
fn log_handlers_of_a_command() {
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    let config = format!("{config}{}", handled(&machine.path(""), "INFO"));
    machine.write("etc/salt/minion", &config);
    machine.write("handlers/to_file.py", HANDLER);
    machine.write("handlers/none.py", "def __virtual__():\n    return False, 'not here'\n");
    machine.call(&["test.ping"]).code(0);
    assert_eq!(machine.read("own.log"), None, "nothing was worth an interpreter");
    machine.write(
        "srv/salt/bad.sls",
        "a:\n  test.succeed_without_changes\nb:\n  test.fail_without_changes\n",
    );
    machine.call(&["state.apply", "bad"]).code(1);
    let log = machine.read("own.log").expect("it was written");
    // What came before the error, too; debugging is not wanted.
    assert!(log.contains("minion INFO Executing state test.succeed_without_changes"), "{log}");
    assert!(log.contains("minion ERROR Failure!"), "{log}");
    assert!(!log.contains("DEBUG"), "{log}");
}

#[test]
fn log_handlers_of_daemons() {
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    site.write("handlers/to_file.py", HANDLER);
    let config = site.read("master/etc/master");
    let more = handled(&site.path(""), "DEBUG");
    site.write("master/etc/master", format!("{config}{more}log_level: quiet\n"));
    site.start_master();
    site.minion("m", Make::Ours, &handled(&site.path(""), "DEBUG"));
    site.answer(&["m"]);
    until("both daemons' lines are there", || {
        let log = std::fs::read_to_string(site.path("own.log")).unwrap_or_default();
        log.contains("master INFO ") && log.contains("minion INFO ")
    });
}
