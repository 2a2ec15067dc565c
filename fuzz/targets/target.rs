//! Target expressions, which arrive from command lines, top files and the API. The first byte picks
//! the kind; the rest is the expression. What parses is matched against a minion.
#![no_main]

use std::sync::LazyLock;

use halite_fuzz::timed;
use halite_target::{Expr, Minion, TargetType};
use halite_value::{Dict, Value, json};
use libfuzzer_sys::fuzz_target;

/// Stands for grains and pillar alike.
static DATA: LazyLock<Dict> = LazyLock::new(|| {
    let data =
        r#"{"os": "Debian", "roles": ["web", "db"], "ipv4": ["10.0.0.7"], "a": {"b": {"c": 1}}}"#;
    match json::from_str(data) {
        Ok(Value::Dict(data)) => data,
        other => panic!("{other:?}"),
    }
});

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (_, kind) = TargetType::ALL[usize::from(*kind) % TargetType::ALL.len()];
    let minion = Minion {
        id: "web1.example.org",
        grains: Some(&DATA),
        pillar: Some(&DATA),
        ..Minion::default()
    };
    timed(data, || Expr::of(text, kind).is_ok_and(|expr| expr.matches(&minion)));
});
