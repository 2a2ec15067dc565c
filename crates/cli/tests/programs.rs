//! Command lines as genuine Salt has them: `programs.json`, recorded by `record_programs.py`.

use halite_cli::{
    optparse::{Action, EX_USAGE, Flag, Program, Stop},
    programs,
};
use halite_value::{Value, json};

fn recorded() -> Value {
    json::from_str(include_str!("programs.json")).expect("recorded JSON")
}

fn program(name: &str) -> &'static Program {
    programs::find(name).unwrap_or_else(|| panic!("no program {name}")).program
}

fn group_of(program: &Program, flag: &Flag) -> Value {
    let holds = |flags: &[Flag]| flags.iter().any(|other| other.names == flag.names);
    let group = program.groups.iter().find(|group| holds(group.flags));
    Value::from(group.map(|group| group.title))
}

/// Returns an option in the words of optparse.
fn described(flag: &Flag) -> (&'static str, Value, i64) {
    match flag.action {
        Action::Version => ("version", Value::Null, 0),
        Action::Help => ("help", Value::Null, 0),
        Action::True => ("store_true", Value::Null, 0),
        Action::False => ("store_false", Value::Null, 0),
        Action::Str => ("store", "string".into(), 1),
        Action::Int => ("store", "int".into(), 1),
        Action::Float => ("store", "float".into(), 1),
        Action::Choice(_) => ("store", "choice".into(), 1),
        Action::Append => ("append", "string".into(), 1),
        Action::Several(count) => ("store", "string".into(), count.into()),
        Action::LogFile => ("callback", "string".into(), 1),
    }
}

#[test]
fn every_option_is_there() {
    let recorded = recorded();
    let all = recorded.get("programs").expect("programs");
    let mut wrong = Vec::new();
    for (name, table) in all.as_dict().expect("a dict").entries() {
        let program = program(name.as_str().expect("a name"));
        assert_eq!(table.get_str("usage").expect("a usage"), program.usage);
        let preset = program.parse(&[], &|_| None).expect("no arguments");
        let rows = table.get("options").and_then(|rows| rows.items_of_sequence()).expect("rows");
        for row in &rows {
            let names = row.get("names").expect("names");
            let found = program.all().find(|flag| Value::list(flag.names.to_vec()) == names);
            let Some(flag) = found else {
                wrong.push(format!("{name} {names}: missing"));
                continue;
            };
            let (action, kind, nargs) = described(flag);
            let choices = match flag.action {
                Action::Choice(words) => Value::list(words.to_vec()),
                _ => Value::Null,
            };
            let dest = if flag.dest.is_empty() { Value::Null } else { flag.dest.into() };
            let default = if flag.dest.is_empty() { Value::Null } else { preset.get(flag.dest) };
            for (what, ours) in [
                ("group", group_of(program, flag)),
                ("dest", dest),
                ("action", action.into()),
                ("type", kind),
                ("nargs", nargs.into()),
                ("metavar", Value::from(flag.metavar)),
                ("choices", choices),
                ("default", default),
            ] {
                let expected = row.get(what).unwrap_or_default();
                if ours != expected {
                    wrong.push(format!("{name} {names} {what}: {ours:?}, Salt: {expected:?}"));
                }
            }
        }
        let ours = program.all().count();
        // Our own: --error-format everywhere, --queue-offline for jobs.
        let own = if name == "salt".into() { 2 } else { 1 };
        assert_eq!(ours, rows.len() + own, "{name} has options Salt has not");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_are_parsed_as_by_optparse() {
    let recorded = recorded();
    let lines = recorded.get("lines").and_then(|lines| lines.items_of_sequence()).expect("lines");
    let mut wrong = Vec::new();
    for case in &lines {
        let line = case.get_str("line").expect("a line");
        let mut words = line.split(' ').map(String::from);
        let program = program(&words.next().expect("a program"));
        let args: Vec<String> = words.collect();
        let found = match program.parse(&args, &|_| None) {
            Err(Stop::Error(message)) => {
                let text =
                    format!("{}\n{}: error: {message}\n", program.usage_line(), program.name);
                (Value::from(EX_USAGE), Value::from(text), Value::Null, Value::Null)
            }
            Err(stop) => panic!("{line}: {stop:?}"),
            Ok(parsed) => {
                let preset = program.parse(&[], &|_| None).expect("no arguments");
                let changed = halite_value::Dict::new();
                for (dest, value) in parsed.iter().filter(|(dest, v)| preset.get(dest) != **v) {
                    changed.insert(dest, value.clone());
                }
                (Value::Null, Value::Null, changed.into(), Value::list(parsed.args))
            }
        };
        let expected =
            ["code", "err", "values", "args"].map(|key| case.get(key).unwrap_or_default());
        if [found.0.clone(), found.1.clone(), found.2.clone(), found.3.clone()] != expected {
            wrong.push(format!("{line}: {found:?}\n    Salt: {expected:?}"));
        }
    }
    assert!(lines.len() > 100);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}
