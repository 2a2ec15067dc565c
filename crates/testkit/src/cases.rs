//! Case files: what a function or a state does to a machine, as data.
//!
//! ```yaml
//! # tests/cases/file.absent/removes_a_file.yaml
//! machine:                      # as found; every part may be left out
//!   files:
//!     /etc/x: {content: "hi\n", mode: "0644", user: 0, group: 0}   # or !!binary
//!     /etc/d: {dir: true}
//!     /etc/l: {link: /etc/x}
//!   users: {www: {uid: 33, gid: 33}}
//!   groups: {www: {gid: 33, members: [www]}}
//!   programs: [/usr/bin/git]    # exist and are executable
//!   commands:                   # what commands print; the first that begins so answers
//!     - {run: "dpkg-query -W", stdout: "x", stderr: "", code: 0}
//!     - {run: "mysql", input: "SHOW", stdout: "x"}    # only when this is in its standard input
//!   http:                       # what servers say; the last that begins so answers
//!     - {url: "http://db1/x", status: 200, reason: OK, headers: {Content-Type: a/b}, body: "x"}
//! serve: {web/x.conf: "text"}   # salt:// files
//! grains: {os: Debian}
//! pillar: {}
//! opts: {}
//! state: file.absent            # or `call: file.read`
//! args: {name: /etc/x}          # for a call also a list
//! expect: {result: true, comment: "Removed file /etc/x", changes: {removed: /etc/x}}
//! test: {comment: "File /etc/x is set for removal"}    # with test=True; result None unless said
//! after: {/etc/x: null, /etc/y: {content: "..."}}      # null: not there
//! ran: ["apt-get -q -y install x"]                     # commands that were run, beside queries
//! fed: ["DROP USER 'x'"]       # what such commands were given on standard input
//! retcode: 1                    # of a call: the code the job ends with
//! repeats: true                 # a second run does it again (cmd.run)
//! ```
//!
//! A state case is run three times: with `test=True` (the machine must be unchanged, the changes
//! must be those of `expect` unless `test` says otherwise), for real, and once more for real
//! (nothing may change). A call case compares the return with `expect`, or its `error` text.

use std::{fs, path::Path, sync::Arc};

use halite_host::Failing;
use halite_spec::{Call, host::Output};
use halite_value::{Dict, Value, entries, yaml};

use crate::Kit;

/// Runs every case below a folder; panics with all that failed. Returns how many ran.
pub fn run_all(folder: &Path) -> usize {
    let mut failures = Vec::new();
    let mut count = 0;
    for file in files_below(folder) {
        count += 1;
        let shown = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let case = yaml::load_str(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let Value::Dict(case) = case else { panic!("{shown}: not a case") };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&case)));
        match outcome {
            Ok(problems) => {
                failures.extend(problems.into_iter().map(|problem| format!("{shown}: {problem}")));
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                failures.push(format!("{shown}: panicked: {}", text.unwrap_or_default()));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} cases:\n{}", failures.len(), failures.join("\n"));
    count
}

/// Runs every state case again with each of its host calls failing in turn: the state must not
/// panic, must not report success while the machine is wrong, and a second run must repair.
/// Returns how many runs there were.
pub fn run_faults(folder: &Path) -> usize {
    let mut failures = Vec::new();
    let mut runs = 0;
    for file in files_below(folder) {
        let shown = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let Ok(Value::Dict(case)) = yaml::load_str(&text) else { panic!("{shown}: not a case") };
        let fails = dict_of(&case, "expect").get("result") == Some(Value::Bool(false));
        if !case.contains("state") || fails {
            continue;
        }
        let calls = count_calls(&case);
        for n in 1..=calls.min(MOST_FAULTS) {
            runs += 1;
            let outcome =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fault(&case, n)));
            match outcome {
                Ok(problems) => failures.extend(
                    problems
                        .into_iter()
                        .map(|problem| format!("{shown}, call {n} failing: {problem}")),
                ),
                Err(_) => failures.push(format!("{shown}, call {n} failing: panicked")),
            }
        }
    }
    assert!(failures.is_empty(), "{} problems:\n{}", failures.len(), failures.join("\n"));
    runs
}

/// Faults tried per case: enough for every step of a state, bounded for those that read trees.
const MOST_FAULTS: usize = 60;

fn count_calls(case: &Dict) -> usize {
    let kit = machine(case);
    let counting = Arc::new(Failing::counting(Arc::new(kit.fake.clone())));
    run_on(&kit, case, counting.clone());
    counting.calls()
}

fn run_on(kit: &Kit, case: &Dict, host: Arc<dyn halite_spec::Host>) -> Dict {
    let mut kit = kit.clone();
    kit.cx.host = host;
    let state = case.get("state").unwrap_or_default().to_str();
    kit.state(&state, &dict_of(case, "args"), false)
}

fn fault(case: &Dict, n: usize) -> Vec<String> {
    let kit = machine(case);
    let failing = Arc::new(Failing::new(Arc::new(kit.fake.clone()), n));
    let ret = run_on(&kit, case, failing);
    let mut problems = Vec::new();
    let claims = ret.get("result") == Some(Value::Bool(true));
    // Commands that were run are not compared: a fault changes them.
    let without_ran = case.shallow_copy();
    without_ran.remove("ran");
    without_ran.remove("fed");
    if claims {
        let wrong = check_machine(&without_ran, &kit);
        problems.extend(wrong.into_iter().map(|wrong| format!("claims success, but {wrong}")));
    }
    let repeats = case.get("repeats").is_some_and(|repeats| repeats.truthy());
    if !repeats {
        run_on(&kit, case, Arc::new(kit.fake.clone()));
        let wrong = check_machine(&without_ran, &kit);
        problems.extend(
            wrong.into_iter().map(|wrong| format!("a second run does not repair: {wrong}")),
        );
    }
    problems
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|end| end == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn run(case: &Dict) -> Vec<String> {
    match case.get("call") {
        Some(function) => run_call(case, &function.to_str()),
        None => run_state(case),
    }
}

fn run_call(case: &Dict, function: &str) -> Vec<String> {
    let kit = machine(case);
    let call = match case.get("args") {
        Some(Value::List(args)) => Call { args: args.to_vec(), kwargs: Dict::new() },
        Some(Value::Dict(kwargs)) => Call { args: Vec::new(), kwargs },
        _ => Call::default(),
    };
    let mut problems = Vec::new();
    match (kit.call(function, call), case.get("error")) {
        (Ok(ret), None) => {
            // YAML has no tuples: a case writes a list for one.
            let ret = match ret {
                Value::Tuple(items) => Value::list(items.to_vec()),
                other => other,
            };
            if let Some(expected) = case.get("expect")
                && ret != expected
            {
                problems.push(format!("returned {ret:?}, expected {expected:?}"));
            }
        }
        (Ok(ret), Some(error)) => {
            problems.push(format!("returned {ret:?}, expected the error {error:?}"));
        }
        (Err(error), None) => problems.push(format!("failed: {error}")),
        (Err(error), Some(expected)) => {
            if !error.to_string().contains(expected.to_str().as_str()) {
                problems
                    .push(format!("failed with {:?}, expected {expected:?}", error.to_string()));
            }
        }
    }
    if let Some(expected) = case.get("retcode") {
        let code = Value::from(kit.cx.job.retcode());
        if code != expected {
            problems.push(format!("the code is {code:?}, expected {expected:?}"));
        }
    }
    problems.extend(check_machine(case, &kit));
    problems
}

fn run_state(case: &Dict) -> Vec<String> {
    let state = case.get("state").unwrap_or_default().to_str();
    let args = dict_of(case, "args");
    let expect = dict_of(case, "expect");
    let mut problems = Vec::new();

    let kit = machine(case);
    let before = kit.fake.snapshot();
    let ret = kit.state(&state, &args, true);
    for line in before.diff(&kit.fake.snapshot()) {
        problems.push(format!("with test=True the machine changed: {line}"));
    }
    let changes = expect.get("changes").unwrap_or_else(Value::dict);
    let fails = expect.get("result") == Some(Value::Bool(false));
    let tested = dict_of(case, "test");
    if !fails || case.contains("test") {
        tested.get_or_insert_with("changes", || changes.clone());
        let would = tested.get("changes").is_some_and(|changes| changes.truthy());
        tested.get_or_insert_with("result", || if would { Value::Null } else { Value::Bool(true) });
        problems.extend(compare("with test=True", &ret, &tested));
    }

    let kit = machine(case);
    let ret = kit.state(&state, &args, false);
    expect.get_or_insert_with("result", || Value::Bool(true));
    expect.get_or_insert_with("changes", Value::dict);
    problems.extend(compare("applied", &ret, &expect));
    problems.extend(check_machine(case, &kit));

    let repeats = case.get("repeats").is_some_and(|repeats| repeats.truthy());
    if !fails && !repeats {
        let before = kit.fake.snapshot();
        let ret = kit.state(&state, &args, false);
        if ret.get("changes").is_some_and(|changes| changes.truthy()) {
            problems.push(format!("a second run changed again: {:?}", ret.get("changes")));
        }
        for line in before.diff(&kit.fake.snapshot()) {
            problems.push(format!("a second run changed the machine: {line}"));
        }
    }
    problems
}

fn dict_of(case: &Dict, key: &str) -> Dict {
    match case.get(key) {
        Some(Value::Dict(dict)) => dict.deep_copy(),
        _ => Dict::new(),
    }
}

fn compare(when: &str, ret: &Dict, expected: &Dict) -> Vec<String> {
    let differing = expected.into_iter().filter_map(|(key, expected)| {
        let got = ret.get(&key).unwrap_or_default();
        (got != expected).then(|| format!("{when}: {key} is {got:?}, expected {expected:?}"))
    });
    differing.collect()
}

fn check_machine(case: &Dict, kit: &Kit) -> Vec<String> {
    let mut problems = Vec::new();
    let host: &dyn halite_spec::Host = &kit.fake;
    for (path, expected) in &dict_of(case, "after") {
        let path = path.to_str();
        let at = Path::new(path.as_str());
        let stat = host.stat_if_there(at, false).ok().flatten();
        let Some(stat) = stat else {
            if !expected.is_null() {
                problems.push(format!("afterwards {path} is not there"));
            }
            continue;
        };
        if expected.is_null() {
            problems.push(format!("afterwards {path} is still there"));
        }
        let got = entries! {
            "mode" => stat.mode_text(), "user" => stat.uid, "group" => stat.gid,
            "dir" => stat.kind == halite_spec::host::Kind::Dir,
        };
        if let Ok(target) = host.read_link(at) {
            got.insert("link", target.display().to_string());
        } else if let Ok(content) = host.read(at) {
            got.insert(
                "content",
                match String::from_utf8(content) {
                    Ok(text) => text.into(),
                    Err(error) => Value::bytes(error.into_bytes()),
                },
            );
        }
        for (key, expected) in expected.as_dict().into_iter().flatten() {
            let value = got.get(&key).unwrap_or_default();
            if value != expected {
                problems
                    .push(format!("afterwards {path}: {key} is {value:?}, expected {expected:?}"));
            }
        }
    }
    if let Some(Value::List(expected)) = case.get("ran") {
        let ran: Vec<String> = kit
            .fake
            .commands()
            .iter()
            .filter(|run| !run.query)
            .map(halite_spec::Command::shown)
            .collect();
        let expected: Vec<String> = expected.into_iter().map(|line| line.to_string()).collect();
        if ran != expected {
            problems.push(format!("ran {ran:?}, expected {expected:?}"));
        }
    }
    if let Some(Value::List(expected)) = case.get("fed") {
        let runs = kit.fake.commands();
        let fed = runs.iter().filter(|run| !run.query).filter_map(|run| run.stdin.as_deref());
        let fed: Vec<String> = fed.map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        let expected: Vec<String> = expected.into_iter().map(|line| line.to_string()).collect();
        if fed != expected {
            problems.push(format!("fed {fed:?}, expected {expected:?}"));
        }
    }
    problems
}

/// Builds the machine of a case.
fn machine(case: &Dict) -> Kit {
    let mut kit = Kit::new();
    let found = dict_of(case, "machine");
    for (name, user) in &dict_of(&found, "users") {
        let id = |key: &str| user.get(key).and_then(|id| id.as_int()).unwrap_or(1000) as u32;
        kit.fake.user(&name.to_str(), id("uid"), id("gid"));
    }
    for (name, group) in &dict_of(&found, "groups") {
        let gid = group.get("gid").and_then(|gid| gid.as_int()).unwrap_or(1000) as u32;
        let members =
            group.get("members").and_then(|list| list.items_of_sequence()).unwrap_or_default();
        let members: Vec<String> = members.iter().map(Value::to_string).collect();
        kit.fake.group(
            &name.to_str(),
            gid,
            &members.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
    for (path, file) in &dict_of(&found, "files") {
        let path = path.to_str();
        if let Some(target) = file.get_str("link") {
            kit.fake.link(path.as_str(), target.as_str());
            continue;
        }
        if file.get("dir").is_some_and(|dir| dir.truthy()) {
            kit.fake.dir(path.as_str());
        } else {
            let content = match &file {
                Value::Str(_) => file.clone(),
                file => file.get("content").unwrap_or_default(),
            };
            kit.fake.file(path.as_str(), content.as_bytes().unwrap_or_default());
        }
        if let Some(mode) = file.get_str("mode") {
            kit.fake.mode(path.as_str(), u32::from_str_radix(&mode, 8).expect("an octal mode"));
        }
        let id = |key: &str| file.get(key).and_then(|id| id.as_int()).unwrap_or(0) as u32;
        kit.fake.owner(path.as_str(), id("user"), id("group"));
    }
    for program in
        found.get("programs").and_then(|list| list.items_of_sequence()).unwrap_or_default()
    {
        kit.fake.program(program.to_str().as_str());
    }
    for command in
        found.get("commands").and_then(|list| list.items_of_sequence()).unwrap_or_default()
    {
        let begin = command.get_str("run").unwrap_or_default();
        let text = |key: &str| command.get_str(key).unwrap_or_default().as_bytes().to_vec();
        let code = command.get("code").and_then(|code| code.as_int()).unwrap_or(0) as i32;
        let output =
            Output { code, stdout: text("stdout"), stderr: text("stderr"), ..Output::default() };
        let input = text("input");
        let asked = move |run: &halite_spec::Command| {
            let given = run.stdin.as_deref().unwrap_or_default();
            run.shown().starts_with(begin.as_str())
                && (input.is_empty() || given.windows(input.len()).any(|part| part == input))
        };
        kit.fake.on_if(asked, move |_, _| output.clone());
    }
    for answer in found.get("http").and_then(|list| list.items_of_sequence()).unwrap_or_default() {
        let text = |key: &str| answer.get_str(key).unwrap_or_default().to_string();
        let status = answer.get("status").and_then(|status| status.as_int()).unwrap_or(200);
        let headers = answer.get("headers");
        let headers = headers.as_ref().and_then(Value::as_dict).map(Dict::entries);
        let headers = headers.into_iter().flatten().map(|(k, v)| (k.to_string(), v.to_string()));
        let reason = answer.get_str("reason").map_or("OK".into(), |reason| reason.to_string());
        let url = text("url");
        let answer = halite_spec::host::HttpResponse {
            status: status as u16,
            reason,
            headers: headers.collect(),
            body: text("body").into_bytes(),
        };
        kit.fake.serves(&url, answer);
    }
    kit.cx.grains.update(&dict_of(case, "grains"));
    kit.cx.pillar.update(&dict_of(case, "pillar"));
    kit.cx.opts.update(&dict_of(case, "opts"));
    let served: Vec<(String, String)> = dict_of(case, "serve")
        .into_iter()
        .map(|(path, text)| (path.to_string(), text.to_string()))
        .collect();
    let served: Vec<(&str, &str)> =
        served.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    kit = kit.serving(&served);
    kit
}
