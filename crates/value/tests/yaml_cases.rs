//! Runs the YAML cases recorded from genuine Salt: every load and every dump must come out the
//! same, and every error in the same words at the same place.
//!
//! `tests/spec/yaml_cases.json` is the specification. A typed value is `["int", "7"]`, `["map",
//! [[key, value], …]]` and so on.

#![expect(clippy::print_stdout, reason = "the counts are what a reader of the test log wants")]

use halite_value::{
    BigInt, Dict, Key, List, Value, json,
    set::Set,
    yaml::{self, ErrorKind, LoadOptions},
};

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/spec/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the case file is committed");
    json::from_str(&text).expect("the case file is JSON").as_list().expect("a list").to_vec()
}

/// Makes a value from its typed form.
fn decode(typed: &Value) -> Value {
    let typed = typed.as_list().expect("typed values are lists");
    let kind = typed.get(0).expect("a kind");
    let body = typed.get(1).unwrap_or_default();
    let items = || body.as_list().expect("items").to_vec();
    match kind.as_str().expect("a kind") {
        "null" => Value::Null,
        "bool" | "str" => body,
        "int" => Value::from_bigint(
            body.as_str().and_then(|text| text.parse::<BigInt>().ok()).expect("an int"),
        ),
        "float" => Value::Float(match body.as_str().expect("a float") {
            "nan" => f64::NAN,
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            text => text.parse().expect("a float"),
        }),
        "bytes" => {
            let hex = body.as_str().expect("hex");
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
            Value::bytes((0..hex.len()).step_by(2).map(byte).collect::<Vec<u8>>())
        }
        "seq" => Value::List(items().iter().map(decode).collect()),
        "tuple" => Value::tuple(items().iter().map(decode)),
        "set" => {
            let key = |item: &Value| Key::try_from(decode(item)).expect("hashable");
            Value::from(items().iter().map(key).collect::<Set>())
        }
        "map" => {
            let dict = Dict::new();
            for pair in items() {
                let pair = pair.as_list().expect("a pair").to_vec();
                dict.insert(Key::try_from(decode(&pair[0])).expect("hashable"), decode(&pair[1]));
            }
            Value::Dict(dict)
        }
        "shared-list-under-a-and-b" => {
            let shared = Value::List(items().into_iter().collect::<List>());
            halite_value::dict! { "a" => &shared, "b" => shared }
        }
        "datetime" => {
            Value::Timestamp(body.as_str().and_then(|text| text.parse().ok()).expect("a time"))
        }
        "shared" => {
            let shared = halite_value::list![1, 2];
            let key = |key: &Value| (Key::try_from(key.clone()).expect("hashable"), &shared);
            Value::Dict(items().iter().map(key).collect::<Dict>())
        }
        "crossed" => {
            let (one, two) = (halite_value::list![1], halite_value::list![2]);
            halite_value::list![&one, &two, &two, &one]
        }
        "loop" => {
            let list = List::new();
            list.push(1);
            list.push(list.clone());
            Value::List(list)
        }
        other => panic!("unknown kind {other}"),
    }
}

/// Compares as `repr` does: types must agree, and NaN equals NaN.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(_), Value::Object(_)) => a == b,
        _ => a.repr() == b.repr(),
    }
}

fn text(case: &Value, key: &str) -> Option<String> {
    case.get_str(key).map(|text| text.to_string())
}

fn expect(what: &str, got: impl Into<String>, expected: impl Into<String>) -> Result<(), String> {
    let (got, expected) = (got.into(), expected.into());
    if got == expected { Ok(()) } else { Err(format!("{what}: got {got:?}, not {expected:?}")) }
}

fn check_load(case: &Value, dialect: yaml::Dialect) -> Result<(), String> {
    let input = text(case, "yaml").expect("a text");
    let loaded = yaml::load(&input, &LoadOptions { dialect, ..LoadOptions::default() });
    let Some(class) = text(case, "error_type") else {
        let expected = case.get("expected").expect("an answer");
        let value = loaded.map_err(|error| format!("failed: {error}"))?;
        if expected.repr() == "['recursive']" {
            let outer = value.get("a").expect("a");
            let inner = outer.as_list().map_or_else(|| outer.get("b"), |list| list.get(0));
            let same = inner.is_some_and(|inner| inner.is_same(&outer));
            return if same { Ok(()) } else { Err("not recursive".into()) };
        }
        let expected = decode(&expected);
        return if same(&value, &expected) {
            Ok(())
        } else {
            Err(format!("got {value:?}, not {expected:?}"))
        };
    };
    let error = match loaded {
        Ok(value) => return Err(format!("got {value:?}, not a {class}")),
        Err(error) => error,
    };
    expect("class", error.kind().class(), class)?;
    expect("message", error.to_string(), text(case, "message").expect("a message"))?;
    if matches!(error.kind(), ErrorKind::Python(_) | ErrorKind::Reader) {
        return Ok(());
    }
    expect("problem", error.problem(), text(case, "problem").unwrap_or_default())?;
    expect(
        "context",
        error.context().unwrap_or_default(),
        text(case, "context").unwrap_or_default(),
    )?;
    let mark = error.mark().map(|mark| (i64::from(mark.line), i64::from(mark.column)));
    let number = |key| case.get(key).and_then(|value| value.as_int());
    expect("mark", format!("{mark:?}"), format!("{:?}", number("line").zip(number("column"))))
}

fn check_dump(case: &Value) -> Result<(), String> {
    let mut options = yaml::DumpOptions::default();
    let given = case.get("options").expect("options");
    options.set_all(given.as_dict().expect("a dict")).map_err(|error| error.to_string())?;
    let value = decode(&case.get("value").expect("a value"));
    let dumped = yaml::dump(&value, &options).map_err(|error| error.to_string())?;
    expect("text", dumped, text(case, "expected").expect("an answer"))
}

fn check_filter(case: &Value) -> Result<(), String> {
    let value = decode(&case.get("value").expect("a value"));
    let given = value.as_str().unwrap_or_default();
    let got = match text(case, "name").as_deref() {
        Some("yaml_dquote") => Some(yaml::dquote(given)),
        Some("yaml_squote") => Some(yaml::squote(given)),
        _ => yaml::encode_scalar(&value),
    };
    expect("text", got.unwrap_or_default(), text(case, "expected").expect("an answer"))
}

fn run(file: &str) -> (usize, usize) {
    let (mut loads, mut dumps) = (0, 0);
    let mut failures = Vec::new();
    for case in cases(file) {
        let outcome = match text(&case, "kind").as_deref() {
            Some("load") => {
                loads += 1;
                check_load(&case, yaml::Dialect::Salt)
            }
            Some("plain") => {
                loads += 1;
                check_load(&case, yaml::Dialect::Plain)
            }
            Some("filter") => {
                dumps += 1;
                check_filter(&case)
            }
            Some("dump") => {
                dumps += 1;
                check_dump(&case)
            }
            other => Err(format!("unknown kind {other:?}")),
        };
        if let Err(why) = outcome {
            failures.push(format!("{}: {why}", text(&case, "name").unwrap_or_default()));
        }
    }
    let failed = failures.len();
    assert!(failures.is_empty(), "{failed} cases of {file} fail:\n{}", failures.join("\n"));
    (loads, dumps)
}

#[test]
fn more_recorded_cases() {
    let (loads, dumps) = run("yaml_more.json");
    println!("yaml, more: {loads} load, {dumps} dump");
    assert!(loads >= 220 && dumps >= 80, "cases went missing");
}

#[test]
fn recorded_cases() {
    let (loads, dumps) = run("yaml_cases.json");
    println!("yaml: {loads} load, {dumps} dump");
    assert!(loads >= 228 && dumps >= 29, "cases went missing");
}
