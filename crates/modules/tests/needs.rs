//! Modules and states exist where genuine Salt's do: with the same programs, and otherwise missing
//! for the same reason (recorded by `data/record_needs.py` on a Debian).

use halite_minion::registry;
use halite_spec::{Call, Error};
use halite_testkit::Kit;
use halite_value::{Value, json};

const RECORDED: &str = include_str!("data/needs.json");

/// Not in the recording, as Salt 3008 has them only together with extensions, or needs a library
/// of Python where we need a program.
const OURS: [(&str, &str); 9] = [
    ("modules", "augeas"),
    ("modules", "ethtool"),
    ("modules", "sqlite3"),
    ("states", "apache_conf"),
    ("states", "apache_module"),
    ("states", "apache_site"),
    ("states", "augeas"),
    ("states", "npm"),
    ("states", "postgres_cluster"),
];

fn with_programs(programs: &[&str]) -> Kit {
    let kit = Kit::new();
    for program in programs {
        kit.fake.program(format!("/usr/bin/{program}"));
    }
    kit
}

fn texts(value: &Value) -> Vec<String> {
    value.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
}

fn said(module: &str, reason: &Value) -> String {
    match reason {
        Value::Null => format!("'{module}' __virtual__ returned False"),
        reason => format!("'{module}' __virtual__ returned False: {reason}"),
    }
}

fn names_of(kind: &str) -> Vec<&'static str> {
    match kind {
        "modules" => halite_modules::ALL.iter().map(|module| module.name).collect(),
        _ => {
            let mut names: Vec<&'static str> = Vec::new();
            for name in registry::state_names() {
                let module = name.split('.').next().unwrap_or_default().to_owned();
                if names.last().is_none_or(|last| *last != module) {
                    names.push(Box::leak(module.into_boxed_str()));
                }
            }
            names
        }
    }
}

#[test]
fn without_any_program() {
    let recorded = json::from_str(RECORDED).unwrap();
    let kit = Kit::new();
    for kind in ["modules", "states"] {
        let Value::Dict(missing) = recorded.get("none").unwrap().get(kind).unwrap() else {
            panic!("{kind} are a map")
        };
        for name in names_of(kind) {
            let own = registry::missing(&kit.cx, kind, &format!("{name}.any"));
            let expected = missing.get(name).map(|reason| said(name, &reason));
            if !OURS.contains(&(kind, name)) {
                assert_eq!(own, expected, "{kind}: {name}");
            }
        }
    }
}

#[test]
fn with_one_program() {
    let recorded = json::from_str(RECORDED).unwrap();
    let none = recorded.get("none").unwrap();
    for case in recorded.get("with").unwrap().items_of_sequence().unwrap() {
        let programs = texts(&case.get("programs").unwrap());
        let kit = with_programs(&programs.iter().map(String::as_str).collect::<Vec<_>>());
        for kind in ["modules", "states"] {
            let there = texts(&case.get(kind).unwrap());
            let others = case.get("missing").unwrap().get(kind).unwrap();
            let Value::Dict(known) = none.get(kind).unwrap() else { panic!("{kind} are a map") };
            let here = names_of(kind);
            for (name, reason) in &known {
                let name = name.to_str();
                if !here.contains(&name.as_str()) {
                    continue;
                }
                let expected = match there.iter().any(|own| *own == *name) {
                    true => None,
                    false => Some(said(&name, &others.get(name.as_str()).unwrap_or(reason))),
                };
                let own = registry::missing(&kit.cx, kind, &format!("{name}.any"));
                assert_eq!(own, expected, "{kind}: {name} with {programs:?}");
            }
        }
    }
}

#[test]
fn what_is_missing_is_nowhere() {
    let kit = Kit::new();
    let (cx, runtime) = (&kit.cx, &kit.cx.runtime);
    assert!(!runtime.has(cx, "cron.list_tab") && runtime.has(cx, "cmd.run"));
    assert!(!runtime.function_names(cx).iter().any(|name| name.starts_with("cron.")));
    assert!(runtime.function(cx, "cron.list_tab").is_none());
    let error = cx.call("cron.list_tab", Call::of(["root"])).unwrap_err();
    let why =
        "'cron' __virtual__ returned False: Cannot load cron module: crontab command not found";
    assert!(matches!(&error, Error::NotLoaded(text) if text == why), "{error}");
    // Installing the program is all it takes.
    let kit = with_programs(&["crontab"]);
    assert!(kit.cx.runtime.has(&kit.cx, "cron.list_tab"));
    assert!(kit.cx.runtime.state(&kit.cx, "cron.present").is_some());
}
