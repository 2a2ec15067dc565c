//! Targets against answers recorded from genuine Salt 3008 (`record.py` wrote `cases.json`).

use halite_target::{Expr, Index, Minion, Options, Search, TargetType, fnmatch::fnmatch};
use halite_value::{Dict, Key, Value, json};

/// Targets that genuine masters answer otherwise than we do, with the reason.
const DIFFERS: &[(&str, &str)] = &[
    ("( web1", "a genuine master closes what was left open, and every genuine minion then refuses"),
    ("( web1 or web2", "the same"),
    ("not ( web1", "the same"),
    ("web1 or ( )", "a genuine master fails on the empty set of parentheses, a minion does not"),
    ("web1,web2", "a genuine master splits a glob at commas, no minion does"),
];

fn recorded() -> Value {
    json::from_str(include_str!("cases.json")).expect("the recorded file is JSON")
}

fn dict_of(value: &Value) -> Option<Dict> {
    match value {
        Value::Dict(dict) => Some(dict.clone()),
        // Pillar is recorded as pairs: it has keys that are no text.
        Value::List(pairs) => Some(
            pairs
                .into_iter()
                .map(|pair| {
                    let pair = pair.items_of_sequence().expect("a pair");
                    (Key::try_from(pair[0].clone()).expect("a key"), pair[1].clone())
                })
                .collect(),
        ),
        _ => None,
    }
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.items_of_sequence().unwrap_or_default();
    let mut texts: Vec<_> = items.iter().map(|item| item.to_str().to_string()).collect();
    texts.sort();
    texts
}

#[test]
fn genuine_answers() {
    let recorded = recorded();
    let groups = recorded.get("nodegroups").expect("nodegroups");
    let minions: Vec<_> = recorded
        .get("minions")
        .and_then(|minions| minions.as_dict().map(Dict::entries))
        .expect("minions")
        .into_iter()
        .map(|(id, data)| {
            let part = |name: &str| data.get(name).and_then(|part| dict_of(&part));
            (id.to_str(), part("grains"), part("pillar"), part("data"))
        })
        .collect();
    let mut index = Index::new();
    for (id, grains, pillar, _) in &minions {
        index.set_accepted(id, true);
        index.set_grains(id, grains.clone());
        index.set_pillar(id, pillar.clone());
    }
    let cases = recorded.get("cases").and_then(|cases| cases.items_of_sequence()).expect("cases");
    assert!(cases.len() > 400);
    let mut wrong = Vec::new();
    for case in &cases {
        let target = case.get("expr").expect("expr");
        let kind: TargetType = case.get_str("kind").expect("kind").parse().expect("known");
        let delimiter = case.get_str("delimiter");
        let options = Options { nodegroups: groups.as_dict(), delimiter: delimiter.as_deref() };
        let expr = Expr::parse(&target, kind, &options);
        if let Some(expected) = case.get("minion") {
            let own: Vec<_> = minions
                .iter()
                .filter(|(id, grains, pillar, data)| {
                    let (grains, pillar, data) = (grains.as_ref(), pillar.as_ref(), data.as_ref());
                    let minion = Minion { id, grains, pillar, data, resources: None };
                    expr.as_ref().is_ok_and(|expr| expr.matches(&minion))
                })
                .map(|(id, ..)| id.to_string())
                .collect();
            let own = {
                let mut own = own;
                own.sort();
                own
            };
            if own != texts(&expected) || (expected == "error" && expr.is_ok()) {
                wrong.push(format!("minion {kind:?} {target:?}: {own:?}, genuine {expected:?}"));
            }
        }
        for (name, greedy) in [("greedy", true), ("cached", false)] {
            let Some(expected) = case.get(name) else { continue };
            let search = Search { greedy, ..Search::default() };
            let found = expr.as_ref().map(|expr| index.search(expr, search)).unwrap_or_default();
            let own = texts(&Value::list(found.ids));
            let missing = texts(&Value::list(found.missing));
            let text = target.to_str();
            if kind == TargetType::Compound && DIFFERS.iter().any(|(differs, _)| *differs == text) {
                assert_ne!(own, texts(&expected), "{text} no longer differs");
                continue;
            }
            let expected_missing = texts(&case.get("missing").unwrap_or_default());
            if own != texts(&expected) || missing != expected_missing {
                wrong.push(format!(
                    "{name} {kind:?} {target:?}: {own:?} {missing:?}, genuine {expected:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn genuine_globs() {
    for case in recorded().get("fnmatch").and_then(|all| all.items_of_sequence()).expect("cases") {
        let case = case.items_of_sequence().expect("a triple");
        let (name, pattern) = (case[0].to_str(), case[1].to_str());
        assert_eq!(fnmatch(&name, &pattern), case[2].truthy(), "{name:?} {pattern:?}");
    }
}
