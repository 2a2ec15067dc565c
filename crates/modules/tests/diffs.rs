//! Our diffs against those recorded from Python (`data/record_diffs.py`).

use halite_modules::file::diff;
use halite_value::{Value, json};

#[test]
fn the_same_hunks_as_python() {
    let cases = json::from_str(include_str!("data/diffs.json")).expect("recorded cases");
    let cases = cases.items_of_sequence().expect("a list");
    assert!(cases.len() >= 60);
    for (number, case) in cases.iter().enumerate() {
        let lines = |side: &str| -> Vec<String> {
            let lines = case.get(side).and_then(|lines| lines.items_of_sequence());
            lines.expect("lines").iter().map(Value::to_string).collect()
        };
        let expected = case.get_str("diff").expect("a diff");
        assert_eq!(diff::unified(&lines("a"), &lines("b")), expected, "case {number}");
    }
}
