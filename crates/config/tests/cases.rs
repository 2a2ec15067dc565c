//! Configuration files as genuine Salt reads them: `cases.json`, recorded by `record.py`.

use std::collections::BTreeMap;

use halite_config::{Memory, Opts, Request, Role, WarningKind, load};
use halite_value::{Dict, Value, json};

fn role(name: &str) -> Role {
    match name {
        "master" => Role::Master,
        "minion" => Role::Minion,
        "client" => Role::Client,
        "api" => Role::Api,
        "proxy" => Role::Proxy,
        "syndic" => Role::Syndic,
        other => panic!("no role {other}"),
    }
}

fn texts(value: Option<Value>) -> BTreeMap<String, String> {
    let Some(Value::Dict(dict)) = value else { return BTreeMap::new() };
    dict.entries().into_iter().map(|(k, v)| (k.to_str().into(), v.to_str().into())).collect()
}

fn machine(case: &Value) -> Memory {
    let mut names = vec![case.get_str("host").expect("a host").to_string()];
    names.extend(case.get_str("other_host").map(|name| name.to_string()));
    Memory { files: texts(case.get("files")), env: texts(case.get("env")), host_names: names }
}

fn request<'a>(case: &'a Value, config_dir: &'a str, minion_id: Option<&'a str>) -> Request<'a> {
    let role = role(&case.get_str("role").expect("a role"));
    let minion_id = minion_id.or((role == Role::Proxy).then_some("p1"));
    Request { program: "halite-cases", minion_id, ..Request::new(role, config_dir) }
}

/// Python's text of a value, with keys that are no text written as the recorder writes them.
fn text(value: &Value) -> String {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Dict(dict) => Value::Dict(plain_dict(dict)),
            Value::List(list) => Value::list(list.to_vec().iter().map(plain)),
            other => other.clone(),
        }
    }
    plain(value).repr()
}

fn plain_dict(dict: &Dict) -> Dict {
    let key = |key: &Value| match key.as_str() {
        Some(text) => text.to_string(),
        None => format!("<{}>", key.repr()),
    };
    dict.entries()
        .into_iter()
        .map(|(k, v)| {
            let v = match &v {
                Value::Dict(inner) => Value::Dict(plain_dict(inner)),
                other => other.clone(),
            };
            (key(&k), v)
        })
        .collect()
}

fn ours(opts: &Opts) -> BTreeMap<String, String> {
    let all = plain_dict(opts.values());
    all.entries().into_iter().map(|(k, v)| (k.to_str().to_string(), text(&v))).collect()
}

fn messages(opts: &Opts) -> Vec<String> {
    let ours = |kind: &WarningKind| {
        !matches!(
            kind,
            WarningKind::Missing | WarningKind::Unknown { .. } | WarningKind::Foreign { .. }
        )
    };
    let mut all: Vec<String> = opts
        .warnings()
        .iter()
        .filter(|warning| ours(&warning.kind))
        .map(|warning| warning.message.clone())
        .collect();
    all.sort();
    all.dedup();
    all
}

fn check(
    case: &Value,
    baseline: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let dir = case.get_str("config_dir").unwrap_or_else(|| "/cases/etc".into());
    let id = case.get_str("minion_id");
    let loaded = load(&request(case, &dir, id.as_deref()), &machine(case));
    let mut warnings: Vec<String> = case
        .get("warnings")
        .and_then(|all| all.items_of_sequence())
        .unwrap_or_default()
        .iter()
        .map(|one| one.to_str().to_string())
        .collect();
    let opts = match (loaded, case.get_str("error")) {
        (Ok(opts), None) => opts,
        (Err(error), Some(expected)) => {
            let expected =
                if expected == "exit 1" { warnings.remove(0) } else { expected.to_string() };
            let found = error.to_string();
            return if found == expected {
                Ok(BTreeMap::new())
            } else {
                Err(format!("error: {found}\n  Salt: {expected}"))
            };
        }
        (Ok(_), Some(expected)) => return Err(format!("no error; Salt: {expected}")),
        (Err(error), None) => return Err(format!("error: {error}")),
    };
    let all = ours(&opts);
    let Some(Value::Dict(changed)) = case.get("opts") else { return Err("no options".into()) };
    let mut expected = baseline.clone();
    for gone in case.get("gone").and_then(|all| all.items_of_sequence()).unwrap_or_default() {
        expected.remove(gone.to_str().as_str());
    }
    expected.extend(changed.entries().into_iter().map(|(k, v)| (k.to_str().to_string(), text(&v))));
    let mut wrong = String::new();
    for name in all.keys().chain(expected.keys()) {
        let (found, expected) = (all.get(name), expected.get(name));
        if found != expected && !wrong.contains(&format!("  {name}: ")) {
            wrong += &format!("  {name}: {found:?}\n    Salt: {expected:?}\n");
        }
    }
    warnings.sort();
    warnings.dedup();
    let found = messages(&opts);
    if found != warnings {
        wrong += &format!("  warnings: {found:?}\n    Salt: {warnings:?}\n");
    }
    if wrong.is_empty() { Ok(all) } else { Err(wrong) }
}

#[test]
fn as_genuine_salt() {
    let cases = json::from_str(include_str!("cases.json")).expect("recorded JSON");
    let cases = cases.items_of_sequence().expect("a list");
    let mut baselines: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case.get_str("name").expect("a name");
        let role = case.get_str("role").expect("a role").to_string();
        let is_baseline = case.get("baseline").is_some();
        let baseline = baselines.get(&role).cloned().unwrap_or_default();
        match check(case, &baseline) {
            Ok(_) if !is_baseline => {}
            Ok(all) => {
                baselines.insert(role, all);
            }
            Err(error) => {
                wrong.push(format!("{name}:\n{error}"));
                if is_baseline && let Some(Value::Dict(opts)) = case.get("opts") {
                    let all = opts.entries().into_iter();
                    let all = all.map(|(k, v)| (k.to_str().to_string(), text(&v))).collect();
                    baselines.insert(role, all);
                }
            }
        }
    }
    assert!(cases.len() > 120);
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
