//! Mistakes in state trees: every message names the file and line, and the word that was meant.
//!
//! The mistakes are in `mistakes.yaml`; one line there says what a message must hold.

use halite_e2e::{Machine, root};
use halite_value::{Value, yaml};

fn text(case: &Value, key: &str) -> Option<String> {
    case.get(key).map(|value| value.to_str().to_string())
}

/// Line breaks are the outputter's; the words are the message's.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes one mistake; returns what is wrong with what was said of it.
fn judge(case: &Value) -> Vec<String> {
    let machine = Machine::new();
    let here = machine.path("").display().to_string();
    let Some(Value::Dict(files)) = case.get("files") else { return vec!["no files".into()] };
    for (path, content) in &files {
        let path = path.to_string();
        let folder = if path.starts_with("pillar/") { "srv" } else { "srv/salt" };
        let content = content.to_str().replace("{root}", here.trim_end_matches('/'));
        machine.write(&format!("{folder}/{path}"), &content);
    }
    let call: Vec<String> = match case.get("call") {
        Some(call) => {
            let items = call.items_of_sequence().unwrap_or_default();
            items.iter().map(Value::to_string).collect()
        }
        None => vec!["state.apply".into(), "web".into()],
    };
    let mut args = vec!["--retcode-passthrough"];
    args.extend(call.iter().map(String::as_str));
    let ran = machine.call(&args);
    let said = words(&format!("{}\n{}", ran.out, ran.err));
    let mut wrong = Vec::new();
    let warns = case.get("warns").is_some_and(|warns| warns.truthy());
    if (ran.code == Some(0)) != warns {
        wrong.push(format!("exit code {:?}", ran.code));
    }
    let hint = text(case, "hint").map(|hint| format!("did you mean `{hint}`"));
    for needed in [text(case, "place"), text(case, "text"), hint].into_iter().flatten() {
        if !said.contains(&needed) {
            wrong.push(format!("no {needed:?}"));
        }
    }
    if !wrong.is_empty() {
        wrong.push(said);
    }
    wrong
}

#[test]
fn every_mistake_is_pointed_at() {
    let path = root().join("tests/e2e/mistakes.yaml");
    let cases = std::fs::read_to_string(path).expect("the mistakes");
    let cases = yaml::load_str(&cases).expect("YAML").items_of_sequence().expect("a list");
    assert!(cases.len() >= 205, "only {} mistakes", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let problems = judge(case);
        if !problems.is_empty() {
            let name = text(case, "name").unwrap_or_default();
            wrong.push(format!("{name}: {}", problems.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
