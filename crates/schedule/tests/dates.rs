//! Dates as people write them are read as Python's dateutil reads them.

use halite_value::{Value, yaml};

#[test]
fn dates_are_read_as_by_dateutil() {
    let cases = yaml::load_str(include_str!("dates.yaml")).expect("YAML");
    let today = jiff::civil::date(2026, 11, 16);
    let mut wrong = Vec::new();
    for case in cases.items_of_sequence().expect("a list") {
        let case = case.items_of_sequence().expect("a pair");
        let (text, expected) = (case[0].to_str(), case[1].as_str().map(str::to_owned));
        let read = halite_schedule::parse_when(&text, today);
        let read = read.ok().map(|read| Value::from(read).to_str().to_string());
        if read.as_deref().map(|read| read.replace(' ', "T")) != expected {
            wrong.push(format!("{text:?}: {read:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
