//! Runs the case files of every function.

use std::path::Path;

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let count = halite_testkit::cases::run_all(&folder);
    assert!(count > 0);
}
