//! Templates whose result was recorded from genuine Salt.

mod common;

use common::cases;
use halite_renderers::jinja::Environment;

/// Checks all cases of a file; returns how many there are and how many expect an error.
fn check_all(path: &str) -> (usize, usize) {
    let env = Environment::new();
    let cases = cases(path);
    let errors = cases.iter().filter(|case| case.is_error()).count();
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| case.check(&env).map(|wrong| format!("{}: {wrong}", case.name())))
        .collect();
    assert!(
        failures.is_empty(),
        "{path}: {} of {} cases fail:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
    (cases.len(), errors)
}

#[test]
#[expect(clippy::print_stdout, reason = "the counts are for people")]
fn recorded_cases() {
    let (count, errors) = check_all("tests/spec/jinja_cases.json");
    println!("jinja: {count} cases, {errors} errors");
    assert_eq!((count, errors), (537, 126));
}

#[test]
#[expect(clippy::print_stdout, reason = "the counts are for people")]
fn more_recorded_cases() {
    let (count, errors) = check_all("tests/spec/jinja_more.json");
    println!("jinja: {count} more cases, {errors} errors");
    assert!(count >= 600, "{count}");
}
