//! `test`: to see that runners run.

use std::time::Duration;

use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value, dict, entries};

use crate::master;

module! {
    /// To see that runners run.
    "test": arg, raw_arg, metasyntactic, stdout_print, sleep, stream, get_opts,
}

/// Return the arguments.
///
/// ```console
/// $ salt-run test.arg 1 a=2
/// ```
#[function]
pub fn arg(_: &Cx, rest: Rest) -> Result<Value> {
    let own =
        rest.kwargs.entries().into_iter().filter(|(name, _)| !name.to_str().starts_with("__"));
    let kwargs: Dict = own.collect();
    Ok(dict! { "args" => Value::tuple(rest.args), "kwargs" => kwargs })
}

/// Return the arguments, Salt's own among them.
///
/// ```console
/// $ salt-run test.raw_arg 1 a=2
/// ```
#[function]
pub fn raw_arg(_: &Cx, rest: Rest) -> Result<Value> {
    Ok(dict! { "args" => Value::tuple(rest.args), "kwargs" => rest.kwargs })
}

/// Return words that mean nothing.
///
/// ```console
/// $ salt-run test.metasyntactic
/// ```
#[function]
pub fn metasyntactic(
    _: &Cx,
    /// Whose words.
    #[default("us".to_owned())]
    locality: String,
) -> Result<Value> {
    let words: &[&str] = match locality.as_str() {
        "us" => &[
            "foo", "bar", "baz", "qux", "quux", "quuz", "corge", "grault", "garply", "waldo",
            "fred", "plugh", "xyzzy", "thud",
        ],
        "uk" => &["wibble", "wobble", "wubble", "flob"],
        _ => return Ok(Value::Null),
    };
    Ok(Value::list(words.iter().copied()))
}

/// Print one word and return another.
///
/// ```console
/// $ salt-run test.stdout_print
/// ```
#[function]
pub fn stdout_print(cx: &Cx) -> Result<Value> {
    master::say(cx, "foo")?;
    Ok("bar".into())
}

/// Wait.
///
/// ```console
/// $ salt-run test.sleep 3
/// ```
#[function]
pub fn sleep(
    cx: &Cx,
    /// Seconds.
    #[default(10.0)]
    s_time: f64,
) -> Result<bool> {
    let shown = if s_time.fract() == 0.0 { format!("{s_time:.0}") } else { s_time.to_string() };
    master::say(cx, shown)?;
    cx.sleep(Duration::from_secs_f64(s_time.clamp(0.0, 1e9)))?;
    Ok(true)
}

/// Tell ninety-nine times how far it is.
///
/// ```console
/// $ salt-run test.stream
/// ```
#[function]
pub fn stream(cx: &Cx) -> Result<bool> {
    for percent in 1..100 {
        master::progress(cx, entries! { "message" => format!("Runner is {percent}% done") })?;
        cx.sleep(Duration::from_millis(100))?;
    }
    Ok(true)
}

/// Return the master's configuration.
///
/// ```console
/// $ salt-run test.get_opts
/// ```
#[function]
pub fn get_opts(cx: &Cx) -> Result<Dict> {
    Ok(cx.opts.clone())
}
