//! Functions of the genuine package through the bridge: the same answers as in genuine Salt.
//!
//! One module asks for all of them, once under genuine `salt-call` and once under ours with an
//! interpreter that has the package. What we have natively by now is compared just the same.

use std::process::Command;

use halite_e2e::{Machine, genuine};
use serde_json::Value;

/// Asks each of the calls in a file; exceptions are answers, too.
const MODULE: &str = r#"
import json


def every(path, side):
    found = []
    with open(path) as f:
        calls = json.load(f)
    for call in calls:
        args = [word.replace("SIDE", side) for word in call[1:] if "=" not in word]
        kwargs = dict(word.split("=", 1) for word in call[1:] if "=" in word)
        try:
            found.append(__salt__[call[0]](*args, **kwargs))
        except KeyError as error:
            found.append("missing: {}".format(error))
    return json.loads(json.dumps(found).replace(side, "SIDE"))
"#;

/// Function and arguments; `SIDE` is a folder of its own for each side.
const CALLS: &[&[&str]] = &[
    &["xml.get_value", "SIDE/data.xml", ".//b"],
    &["xml.get_attribute", "SIDE/data.xml", ".//b"],
    &["xml.set_value", "SIDE/data.xml", ".//b", "new"],
    &["xml.set_attribute", "SIDE/data.xml", ".//b", "c", "e"],
    &["xml.get_value", "SIDE/data.xml", ".//b"],
    &["ini.get_ini", "SIDE/data.ini"],
    &["ini.get_option", "SIDE/data.ini", "s", "k"],
    &["ini.get_section", "SIDE/data.ini", "s"],
    &["ini.remove_option", "SIDE/data.ini", "s", "k"],
    &["ini.remove_section", "SIDE/data.ini", "s"],
    &["ini.get_ini", "SIDE/data.ini"],
    &["jinja.import_yaml", "map.yaml"],
    &["jinja.import_json", "map.json"],
    &["jinja.load_map", "map.jinja", "values"],
    &["salt_version.get_release_number", "Oxygen"],
    &["salt_version.equal", "Oxygen"],
    &["salt_version.greater_than", "Oxygen"],
    &["salt_version.less_than", "Oxygen"],
    &["dnsutil.parse_hosts", "SIDE/hosts"],
    &["dnsutil.hosts_append", "SIDE/hosts", "10.0.0.2", "x"],
    &["dnsutil.hosts_remove", "SIDE/hosts", "db"],
    &["dnsutil.parse_hosts", "SIDE/hosts"],
    &["dnsutil.check_ip", "10.0.0.1"],
    &["cryptdev.crypttab", "SIDE/crypttab"],
    &["sqlite3.version"],
    &["sqlite3.sqlite_version"],
    &["sqlite3.modify", "SIDE/db", "create table t (a int)"],
    &["sqlite3.modify", "SIDE/db", "insert into t values (7)"],
    &["sqlite3.fetch", "SIDE/db", "select a from t"],
    &["sqlite3.tables", "SIDE/db"],
    &["sqlite3.indices", "SIDE/db"],
    &["highstate_doc.read_file", "SIDE/hosts"],
    &["config.dot_vals", "nothing"],
    &["beacons.list"],
    &["schedule.list"],
    &["schedule.is_enabled", "x"],
    &["slsutil.path_exists", "map.yaml"],
    &["slsutil.file_exists", "map.yaml"],
    &["sysfs.read", "/sys/class/net/lo/mtu"],
    &["sysfs.attr", "/sys/class/net/lo"],
    &["salt_proxy.is_running", "x"],
    &["pyenv.is_installed"],
    &["pyenv.list"],
    &["sdb.get", "plain"],
    &["no_such_module.x"],
];

#[test]
fn the_same_answers_as_genuine() {
    let python = genuine::python();
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine
        .write("etc/salt/minion", &format!("{config}halite: {{python: {}}}\n", python.display()));
    for side in ["genuine", "through"] {
        machine.write(&format!("{side}/data.xml"), "<a><b c='d'>text</b></a>");
        machine.write(&format!("{side}/data.ini"), "[s]\nk = v\nl = w\n");
        machine.write(&format!("{side}/hosts"), "127.0.0.1 localhost\n10.0.0.1 db db1\n");
        machine.write(&format!("{side}/crypttab"), "data /dev/sdb none luks\n");
    }
    machine.write("srv/salt/map.yaml", "a: [1, 2]\n");
    machine.write("srv/salt/map.json", "{\"a\": 1}\n");
    machine.write("srv/salt/map.jinja", "{% set values = {'a': grains['kernel']} %}\n");
    machine.write("srv/salt/_modules/ask.py", MODULE);
    machine.write("calls", &serde_json::to_string(CALLS).expect("plain data"));
    machine.call(&["saltutil.sync_modules"]).code(0);
    let folder = |side: &str| machine.path(side).display().to_string();
    let calls = folder("calls");
    let args = |side: &str| {
        let own = folder(side);
        ["--local", "--out=json", "-l", "quiet", "ask.every", &calls, &own].map(str::to_owned)
    };
    let mut command = Command::new(python.with_file_name("salt-call"));
    command.arg("-c").arg(machine.path("etc/salt")).args(args("genuine"));
    let theirs = machine.run(&mut command);
    let own = args("through");
    let ours = machine.call(&own.iter().map(String::as_str).collect::<Vec<_>>());
    let answers = |text: &str| -> Vec<Value> {
        let found: Value = serde_json::from_str(text).unwrap_or_default();
        found["local"].as_array().cloned().unwrap_or_default()
    };
    let (theirs, ours) = (answers(&theirs.out), answers(&ours.out));
    assert_eq!((theirs.len(), ours.len()), (CALLS.len(), CALLS.len()), "{theirs:?} {ours:?}");
    let mut wrong = Vec::new();
    for (call, (theirs, ours)) in CALLS.iter().zip(theirs.iter().zip(&ours)) {
        if theirs != ours {
            wrong.push(format!("{call:?}: genuine {theirs}, through the bridge {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing = |answer: &&Value| answer.as_str().is_some_and(|text| text.starts_with("missing"));
    assert!(theirs.iter().filter(missing).count() < 6, "{theirs:?}");
}
