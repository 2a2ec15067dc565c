//! Commands operators type, compared with genuine Salt's answers.
//!
//! The answers are in `tests/spec/commands/*.json`, recorded by `tests/spec/record_commands.py`. Each
//! command runs on a machine of its own with the file's tree; its exit code and the data it prints
//! must be those recorded, in the same order. What differs from genuine Salt on purpose is in [`DIFFERS`], with the
//! reason; an entry that is no longer needed fails the test too.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::{Mutex, atomic::AtomicUsize, atomic::Ordering},
    thread,
};

use halite_e2e::{Machine, need, root};
use serde_json::Value;

/// Commands whose answer differs, and why.
const DIFFERS: &[(&str, &str)] = &[
    ("file.comment_line {root}/w/conf off cmnt=False", "a line that does not match is no error"),
    ("file.line {root}/w/f 2 mode=replace match=two", "genuine Salt refuses a number as content"),
    ("file.seek_read {root}/w/f 3 4", "bytes are told as text"),
    ("file.uncomment {root}/w/conf off", "a line that does not match is no error"),
    ("slsutil.renderer path=salt://nosuch.sls", "a file that is not there is an error"),
    ("slsutil.serialize toml {a: 1}", "genuine Salt lacks a library for it"),
    ("state.low {state: test, fun: nop, name: x}", "genuine Salt fails with an exception"),
    (
        "state.single file.managed name={root}/w/n source=salt://nosuch",
        "warns before the state runs",
    ),
    (
        "state.single file.recurse name={root}/w/n source=salt://nosuch",
        "warns before the state runs",
    ),
    (
        "state.single ini.options_present name={root}/w/ini sections={s: {a: 2}} test=True",
        "a test tells the changes",
    ),
    ("sys.list_state_functions cmd", "mod_watch is no state"),
    ("sys.list_state_functions file", "mod_watch is no state; file.shortcut is for Windows"),
    ("sys.list_state_functions test", "mod_watch is no state"),
];

const CONFIG: &str = "\
id: recorded
root_dir: {root}
file_client: local
file_roots: {base: [{root}/srv/salt], dev: [{root}/srv/dev]}
pillar_roots: {base: [{root}/srv/pillar]}
";

struct Command<'a> {
    tree: &'a Value,
    words: Vec<String>,
    code: i64,
    out: &'a Value,
}

#[test]
fn answers_are_genuine_salts() {
    // What some of the functions call.
    for program in ["patch", "zip", "unzip"] {
        need(program, &[program]);
    }
    let folder = root().join("tests/spec/commands");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("recorded answers")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let groups: Vec<Value> = files.iter().map(|path| read(path)).collect();
    let commands: Vec<Command<'_>> = groups.iter().flat_map(commands_of).collect();
    assert!(commands.len() >= 250, "only {} commands are recorded", commands.len());

    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(command) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(problem) = compare(command) {
                        wrong.lock().expect("no panic").push((command.words.join(" "), problem));
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().expect("no panic");
    wrong.sort();
    let known: BTreeSet<&str> = DIFFERS.iter().map(|(command, _)| *command).collect();
    let differing: BTreeSet<&str> = wrong.iter().map(|(command, _)| command.as_str()).collect();
    let settled: Vec<_> = known.difference(&differing).collect();
    assert!(settled.is_empty(), "listed as differing, but answer as genuine Salt: {settled:#?}");
    wrong.retain(|(command, _)| !known.contains(command.as_str()));
    let shown: Vec<String> =
        wrong.iter().map(|(command, problem)| format!("{command}\n{problem}")).collect();
    assert!(shown.is_empty(), "{} of {}:\n{}", shown.len(), commands.len(), shown.join("\n"));
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a recorded file can be read");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn commands_of(group: &Value) -> Vec<Command<'_>> {
    let list = group["commands"].as_array().expect("a list of commands");
    let command = |command| -> Command<'_> {
        let command: &Value = command;
        let words = command["run"].as_array().expect("words");
        Command {
            tree: &group["tree"],
            words: words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect(),
            code: command["code"].as_i64().unwrap_or(-1),
            out: &command["out"],
        }
    };
    list.iter().map(command).collect()
}

fn compare(command: &Command<'_>) -> Option<String> {
    let machine = Machine::new();
    let root = machine.path("").display().to_string();
    let root = root.trim_end_matches('/');
    machine.write("etc/salt/minion", &CONFIG.replace("{root}", root));
    // The recorder's machines have nothing but the tree.
    let _ = fs::remove_dir_all(machine.path("srv"));
    write(&machine, root, command.tree);
    let words: Vec<String> =
        command.words.iter().map(|word| word.replace("{root}", root)).collect();
    let mut args = vec!["--local", "--out", "json", "--log-level", "quiet"];
    args.extend(words.iter().map(String::as_str));
    let ran = machine.call(&args);
    let out = match serde_json::from_str(&ran.out) {
        Ok(value) => plain(value, root),
        Err(_) => serde_json::json!({ "text": ran.out.replace(root, "{root}") }),
    };
    let code = ran.code.map_or(-1, i64::from);
    if (code, &out) == (command.code, command.out) {
        // Programs that print what they read show the order of keys.
        let (text, recorded) = (out.to_string(), command.out.to_string());
        let problem = || format!("    other order\n    out      {text}\n    recorded {recorded}\n");
        return (text != recorded).then(problem);
    }
    let mut problem = String::new();
    if code != command.code {
        problem += &format!("    code {code}, recorded {}\n", command.code);
    }
    if &out != command.out {
        problem += &format!("    out      {out}\n    recorded {}\n", command.out);
    }
    Some(problem)
}

fn write(machine: &Machine, root: &str, tree: &Value) {
    for (name, file) in tree.as_object().expect("a tree") {
        let path = machine.path(name);
        let word = |key: &str| file.get(key).and_then(Value::as_str);
        if let Some(target) = word("link") {
            symlink(target.replace("{root}", root), &path).expect("a link can be made");
            continue;
        }
        let is_dir = file.get("dir").is_some();
        if is_dir {
            fs::create_dir_all(&path).expect("a folder can be made");
        } else {
            let text = file.as_str().or_else(|| word("text")).unwrap_or_default();
            machine.write(name, &text.replace("{root}", root));
        }
        let mode = word("mode").unwrap_or(if is_dir { "0755" } else { "0644" });
        let mode = u32::from_str_radix(mode, 8).expect("an octal mode");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode can be set");
    }
}

/// The answer without what differs from run to run, as the recorder's `plain`.
fn plain(value: Value, root: &str) -> Value {
    match value {
        Value::Object(entries) => Value::Object(
            entries
                .into_iter()
                .filter(|(key, _)| !["start_time", "duration", "__jid__"].contains(&key.as_str()))
                .map(|(key, value)| {
                    let pid = key == "pid" && value.is_i64();
                    let value = if pid { Value::from(0) } else { plain(value, root) };
                    (key.replace(root, "{root}"), value)
                })
                .collect(),
        ),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| plain(item, root)).collect())
        }
        Value::String(text) => Value::String(text.replace(root, "{root}")),
        other => other,
    }
}
