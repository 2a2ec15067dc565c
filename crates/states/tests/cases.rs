//! Runs the case files of every state.

use std::path::Path;

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let count = halite_testkit::cases::run_all(&folder);
    assert!(count > 0);
}

#[test]
fn every_host_call_may_fail() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    assert!(halite_testkit::cases::run_faults(&folder) > 0);
}
