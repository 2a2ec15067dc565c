//! Every sample in `distributions/` gives the grains genuine Salt gives for it.
//!
//! `record_distributions.py` recorded them. Tuples are lists there, as JSON knows no others.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::{fs, path::Path};

use halite_host::Fake;
use halite_value::{Dict, Value, json};

fn check(sample: &Path) -> Vec<String> {
    let data = json::from_str(&fs::read_to_string(sample).unwrap()).unwrap();
    let fake = Fake::new();
    for (path, text) in data.get("files").unwrap().as_dict().unwrap() {
        fake.file(path.value().as_str().unwrap(), text.as_str().unwrap());
    }
    let grains = halite_grains::collect(&fake, &Dict::new());
    let expected = data.get("grains").unwrap().as_dict().unwrap().clone();
    let name = sample.file_stem().unwrap().to_string_lossy();
    let mut wrong = Vec::new();
    for (key, value) in &expected {
        let ours = grains.get(&key).map(|value| match value.items_of_sequence() {
            Some(items) => Value::list(items),
            None => value,
        });
        if ours.as_ref() != Some(&value) {
            let ours = ours.map(|value| value.repr());
            wrong.push(format!(
                "{name}: {:?} is {ours:?}, not {}",
                key.value().as_str(),
                value.repr()
            ));
        }
    }
    for key in grains.keys() {
        let about = key.value().as_str().unwrap_or_default();
        let about = about.starts_with("lsb_") || about == "osmajorrelease" || about == "osfinger";
        if about && !expected.contains(&key) {
            wrong.push(format!("{name}: {:?} should not be there", key.value().as_str()));
        }
    }
    wrong
}

#[test]
fn as_genuine_salt_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/distributions");
    let samples: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(samples.len() > 70, "{}", samples.len());
    let wrong: Vec<String> = samples.iter().flat_map(|sample| check(sample)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
