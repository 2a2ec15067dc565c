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
    // Wrong today: a state of these modules whose look at the machine fails takes what it looked at for absent. The
    // number may only go down.
    let (runs, known) =
        halite_testkit::cases::run_faults(&folder, &["file.", "grains.", "ssh_auth."]);
    assert!(runs > known);
    assert!(known <= 97, "{known} runs go wrong, more than the 97 known");
}
