//! Every requisite × every outcome of its targets, as recorded from genuine Salt 3008
//! (`record/requisites.py`).

use std::sync::{Arc, Mutex};

use halite_spec::{Journal, StateRequest, What};
use halite_testkit::Kit;
use halite_value::{Dict, Value, json};

#[test]
fn requisites_do_what_genuine_salt_does() {
    let recorded = json::from_str(include_str!("requisites.json")).expect("valid data");
    let mut failures = Vec::new();
    let cases = recorded.items_of_sequence().expect("a list");
    for case in &cases {
        let text = |key: &str| case.get_str(key).expect("text");
        let test = case.get("test") == Some(Value::Bool(true));
        let sls = json::to_string(&case.get("sls").expect("an SLS")).expect("JSON");
        let path = format!("{}.sls", text("sls_name"));
        let kit = Kit::new().serving(&[(&path, &sls)]);
        let request = StateRequest {
            test: Some(test),
            ..StateRequest::new(What::Sls(vec![text("sls_name").to_string()]))
        };
        let ret = kit.cx.runtime.states().apply(&kit.cx, &request).expect("a return");
        let expected = case.get("expected").expect("an answer");
        if let Some(problem) = differs(&ret, &expected) {
            failures.push(format!("{} (test={test}): {problem}", text("name")));
        }
    }
    let count = cases.len();
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

fn differs(ret: &Value, expected: &Value) -> Option<String> {
    let expected = expected.items_of_sequence()?;
    let Value::Dict(returns) = ret else {
        // Errors: genuine's text, then our place and help.
        let ours = ret.items_of_sequence().unwrap_or_default();
        let same = ours.len() == expected.len()
            && ours.iter().zip(&expected).all(|(a, b)| a.to_str().starts_with(b.to_str().as_str()));
        return (!same).then(|| format!("{ours:?}, expected {expected:?}"));
    };
    let mut rows: Vec<(i64, String, Value)> = returns
        .into_iter()
        .map(|(tag, ret)| {
            let number = ret.get("__run_num__").and_then(|number| number.as_int()).unwrap_or(0);
            (number, tag.to_string(), ret)
        })
        .collect();
    rows.sort_by_key(|(number, ..)| *number);
    let ours: Vec<String> = rows
        .iter()
        .map(|(_, tag, ret)| {
            let get = |key: &str| ret.get(key).unwrap_or_default();
            let ran = ret.get("__state_ran__").unwrap_or(Value::Bool(true));
            shown(tag, [get("result"), get("comment"), get("changes"), ran])
        })
        .collect();
    let theirs: Vec<String> = expected
        .iter()
        .map(|row| {
            let get = |key: &str| row.get(key).unwrap_or_default();
            shown(&get("tag").to_str(), [get("result"), get("comment"), get("changes"), get("ran")])
        })
        .collect();
    (ours != theirs).then(|| {
        format!(
            "\n  ours:   {}\n  theirs: {}",
            ours.join("\n          "),
            theirs.join("\n          ")
        )
    })
}

fn shown(tag: &str, [result, comment, changes, ran]: [Value; 4]) -> String {
    // Genuine lists failed requisites out of a set, in no particular order.
    let comment = match comment.as_str().and_then(|text| text.split_once("requisite failed: ")) {
        Some((before, failed)) => {
            let mut failed: Vec<&str> = failed.split(", ").collect();
            failed.sort_unstable();
            Value::from(format!("{before}requisite failed: {}", failed.join(", ")))
        }
        None => comment,
    };
    let changes =
        json::to_string_styled(&changes, &json::Style { sort_keys: true, ..Default::default() });
    format!("{tag} {result} {comment:?} {} ran={ran}", changes.unwrap_or_default())
}

/// Remembers the comments of finished states.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Journal for Notes {
    fn known(&self) -> Vec<(String, Dict)> {
        Vec::new()
    }

    fn finished(&self, _: &str, ret: &Dict) {
        self.0.lock().expect("notes").push(ret.get("comment").unwrap_or_default().to_string());
    }
}

#[test]
fn a_state_is_written_down_when_its_watch_is_done_or_skipped() {
    let sls = "
source: {test.succeed_with_changes: []}
watches: {test.nop: [{watch: [{test: source}]}]}
first: {file.managed: [{name: /f}, {contents: [a, b]}]}
again: {file.managed: [{name: /f}, {contents: [b, a]}, {ignore_ordering: true}, {require: [{file: first}]}]}
kept: {test.nop: [{watch: [{test: source}]}, {require: [{file: again}]}]}
";
    let kit = Kit::new().serving(&[("notes.sls", sls)]);
    let notes = Arc::new(Notes::default());
    let request = StateRequest {
        journal: Some(notes.clone()),
        ..StateRequest::new(What::Sls(vec!["notes".to_owned()]))
    };
    let ret = kit.cx.runtime.states().apply(&kit.cx, &request).expect("a return");
    let Value::Dict(returns) = ret else { panic!("{ret}") };
    let filed: Vec<String> = returns
        .into_iter()
        .map(|(_, ret)| ret.get("comment").unwrap_or_default().to_string())
        .collect();
    assert_eq!(*notes.0.lock().expect("notes"), filed);
    assert_eq!(filed.iter().filter(|note| note.contains("mod_watch was not run")).count(), 1);
}
