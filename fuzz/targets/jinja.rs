//! Templates: parsed and evaluated with a small context. A template is a program and may run as long
//! as its fuel lasts, so it gets little; then the time limit speaks of the engine, not of the loop.
#![no_main]

use halite_fuzz::timed;
use halite_renderers::jinja::{Environment, Limits, NoLoader};
use halite_value::{Dict, Value, json};
use libfuzzer_sys::fuzz_target;

const DATA: &str =
    r#"{"a": 1, "b": "text", "c": [1, 2.5, null, true], "d": {"e": {"f": "g"}, "h": []}}"#;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // A new one each time: a full cache of templates would be emptied in the middle of an input.
    let environment = environment();
    let context = context();
    timed(data, || {
        if let Err(error) = environment.render(text, &context, &NoLoader) {
            let _ = error.to_string();
        }
    });
});

fn environment() -> Environment {
    let limits =
        Limits { fuel: 20_000, output_bytes: 1 << 20, object_bytes: 1 << 20, ..Limits::default() };
    Environment::new().with_limits(limits)
}

/// A new one each time: templates may change what they are handed.
fn context() -> Dict {
    match json::from_str(DATA) {
        Ok(Value::Dict(context)) => context,
        other => panic!("{other:?}"),
    }
}
