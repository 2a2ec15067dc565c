//! Compares every outputter with what genuine Salt 3008.3 printed for the same data and settings.
//!
//! `golden.json` is written by `record/record.py`; see there for its form. Where genuine Salt fails
//! with a traceback, all we ask is an answer.

use halite_output::{Style, format};
use halite_value::{Dict, Key, Value, json};

fn dict(value: &Value) -> Dict {
    value.as_dict().expect("a dict").clone()
}

fn items(value: &Value) -> Vec<Value> {
    value.items_of_sequence().expect("a list")
}

/// Undoes the tagging of the recording script.
fn decoded(value: &Value) -> Value {
    let Value::Dict(entries) = value else {
        return match value {
            Value::List(list) => Value::list(list.to_vec().iter().map(decoded)),
            other => other.clone(),
        };
    };
    if let Some(hex) = value.get_str("$b") {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        return Value::bytes((0..hex.len()).step_by(2).map(byte).collect::<Vec<u8>>());
    }
    if let Some(text) = value.get_str("$ts") {
        return Value::Timestamp(text.parse().expect("a date"));
    }
    if let Some(tuple) = value.get("$t") {
        return Value::tuple(items(&tuple).iter().map(decoded));
    }
    if let Some(pairs) = value.get("$d") {
        let pair = |pair: Value| {
            let pair = items(&pair);
            (Key::try_from(decoded(&pair[0])).expect("hashable"), decoded(&pair[1]))
        };
        return items(&pairs).into_iter().map(pair).collect::<Dict>().into();
    }
    entries.into_iter().map(|(key, item)| (key, decoded(&item))).collect::<Dict>().into()
}

fn style(opts: &Dict) -> Style {
    let theme = opts.get("theme").map_or_else(Dict::new, |theme| dict(&theme));
    let mut style = Style::from_opts(opts, &theme);
    style.retcode = opts.get("_retcode").and_then(|code| code.as_int()).unwrap_or(0);
    style
}

#[test]
fn same_text_as_genuine_salt() {
    let golden = json::from_str(include_str!("golden.json")).expect("the recording is JSON");
    let part = |name: &str| golden.get(name).expect("a part of the recording");
    let (inputs, settings) = (dict(&part("inputs")), dict(&part("settings")));
    let (texts, cases) = (items(&part("texts")), items(&part("cases")));
    assert!(cases.len() > 3000, "the recording has been cut");

    let only = std::env::var("GOLDEN").unwrap_or_default();
    let mut wrong = Vec::new();
    for case in &cases {
        let case = items(case);
        let name = |at: usize| case[at].as_str().expect("a name").to_owned();
        let (input, outputter, setting) = (name(0), name(1), name(2));
        let title = format!("{outputter} of «{input}», settings «{setting}»");
        if !title.contains(&only) {
            continue;
        }
        let ret = decoded(&inputs.get(input.as_str()).expect("a known input"));
        let style = style(&dict(&settings.get(setting.as_str()).expect("known settings")));
        let found = format(&outputter, &ret, &style);
        let Some(number) = case[3].as_int() else { continue };
        let expected = texts[number as usize].as_str().expect("a text");
        if found != expected {
            wrong.push(format!("{title}\n--- expected\n{expected}\n--- found\n{found}\n"));
        }
    }
    let count = wrong.len();
    wrong.truncate(10);
    assert!(
        count == 0,
        "{count} of {} differ; set GOLDEN to pick:\n{}",
        cases.len(),
        wrong.join("\n")
    );
}
