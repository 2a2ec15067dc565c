//! `test`: functions that show that and how a minion answers.

use std::time::Duration;

use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, Value, dict};

module! {
    /// Show that and how a minion answers.
    "test": ping, echo, true_, false_, sleep, arg, kwarg, arg_repr, arg_type, exception, retcode,
}

/// Tell that the minion is up: always True.
///
/// ```console
/// $ salt '*' test.ping
/// ```
#[function]
pub fn ping(_cx: &Cx) -> Result<bool> {
    Ok(true)
}

/// Return a text as it was given.
///
/// ```console
/// $ salt '*' test.echo 'foo bar baz quo qux'
/// ```
#[function]
pub fn echo(
    _cx: &Cx,
    /// What to return.
    text: Value,
) -> Result<Value> {
    Ok(text)
}

/// Return True.
///
/// ```console
/// $ salt '*' test.true
/// ```
#[function(name = "true")]
pub fn true_(_cx: &Cx) -> Result<bool> {
    Ok(true)
}

/// Return False.
///
/// ```console
/// $ salt '*' test.false
/// ```
#[function(name = "false")]
pub fn false_(_cx: &Cx) -> Result<bool> {
    Ok(false)
}

/// Wait, then return True.
///
/// ```console
/// $ salt '*' test.sleep 20
/// ```
#[function]
pub fn sleep(
    cx: &Cx,
    /// Seconds to wait.
    length: f64,
) -> Result<bool> {
    let time = Duration::try_from_secs_f64(length)
        .map_err(|_| Error::invalid(format!("cannot sleep for {length} seconds")))?;
    cx.sleep(time)?;
    Ok(true)
}

fn shown(rest: &Rest, show: impl Fn(&Value) -> Value) -> Value {
    let kwargs: Dict = rest.kwargs.into_iter().map(|(name, value)| (name, show(&value))).collect();
    dict! { "args" => Value::list(rest.args.iter().map(show)), "kwargs" => kwargs }
}

/// Return the arguments as they arrived.
///
/// ```console
/// $ salt '*' test.arg 1 "two" 3.1 txt="hello" wow='{a: 1, b: "hello"}'
/// ```
#[function]
pub fn arg(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<Value> {
    Ok(shown(&args, Value::clone))
}

/// Return the keyword arguments as they arrived.
///
/// ```console
/// $ salt '*' test.kwarg num=1 txt="two" env='{a: 1, b: "hello"}'
/// ```
#[function]
pub fn kwarg(
    _cx: &Cx,
    /// Anything given by name.
    kwargs: Rest,
) -> Result<Value> {
    Ok(kwargs.kwargs.into())
}

/// Return how Python would write the arguments.
///
/// ```console
/// $ salt '*' test.arg_repr 1 "two" 3.1
/// ```
#[function]
pub fn arg_repr(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<Value> {
    let kwargs = Value::from(&args.kwargs).repr();
    Ok(dict! { "args" => Value::list(args.args.iter().map(Value::repr)), "kwargs" => kwargs })
}

/// Return the types of the arguments.
///
/// ```console
/// $ salt '*' test.arg_type 1 'int'
/// ```
#[function]
pub fn arg_type(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<Value> {
    Ok(shown(&args, |value| format!("<class '{}'>", value.type_name()).into()))
}

/// Fail with an exception.
///
/// ```console
/// $ salt '*' test.exception 'Oh noes!'
/// ```
#[function]
pub fn exception(
    _cx: &Cx,
    /// What the exception says.
    #[default("Test Exception".to_owned())]
    message: String,
) -> Result<Value> {
    Err(Error::Raised { class: "Exception".into(), message, traceback: None })
}

/// Set the return code of the job.
///
/// ```console
/// $ salt '*' test.retcode 42
/// ```
#[function]
pub fn retcode(
    cx: &Cx,
    /// The code.
    #[default(42)]
    code: i64,
) -> Result<bool> {
    cx.job.set_retcode(code);
    Ok(true)
}
