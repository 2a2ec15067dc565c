//! Arguments of functions as genuine Salt reads them: `args.json`, recorded by `record_args.py`.

use halite_cli::args::Args;
use halite_value::{SmolStr, Value, json};

fn texts(value: Option<Value>) -> Vec<String> {
    let items = value.and_then(|value| value.items_of_sequence()).expect("a list");
    items.iter().map(|item| item.to_str().to_string()).collect()
}

#[test]
fn as_genuine_salt() {
    let cases = json::from_str(include_str!("args.json")).expect("recorded JSON");
    let cases = cases.items_of_sequence().expect("a list");
    let mut wrong = Vec::new();
    for case in &cases {
        let args = texts(case.get("args"));
        let no_parse: Vec<SmolStr> = texts(case.get("no_parse")).iter().map(SmolStr::new).collect();
        let found = Value::list(Args::parse(&args, &no_parse).condition()).repr();
        let expected = case.get_str("is").expect("a result");
        if found != expected {
            wrong.push(format!("{args:?}: {found}\n    Salt: {expected}"));
        }
    }
    assert!(cases.len() > 350);
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
