//! Returners: where returns of jobs (and, on a master, events) go beside the master.
//!
//! One file per returner, named as Salt names it. Options come from the configuration, the pillar
//! or the grains under the returner's name (`rawfile_json.filename`), and are overridden by
//! `--return_kwargs`; `--return_config` chooses an alternative set of them. What has to be reached
//! over a database's own protocol goes through that database's client program.

use halite_spec::{Call, Cx, Error, Result};
use halite_value::{Dict, Value};

pub use self::options::Options;

// gen:begin
pub mod cache;
pub mod local;
pub mod multi_returner;
pub mod mysql;
pub mod options;
pub mod pgjsonb;
pub mod postgres;
pub mod postgres_local_cache;
pub mod rawfile_json;
pub mod redis_return;
pub mod slack_webhook_return;
pub mod smtp_return;
pub mod syslog;

/// Every returner of this crate.
pub static ALL: &[&Returner] = &[
    &local::RETURNER,
    &multi_returner::RETURNER,
    &mysql::RETURNER,
    &pgjsonb::RETURNER,
    &postgres::RETURNER,
    &postgres_local_cache::RETURNER,
    &rawfile_json::RETURNER,
    &redis_return::RETURNER,
    &slack_webhook_return::RETURNER,
    &smtp_return::RETURNER,
    &syslog::RETURNER,
];
// gen:end

/// Takes events, each a dict with `tag` and `data`.
pub type TakeEvents = fn(&Cx, &Options, &[Value]) -> Result<()>;

/// A way for returns.
pub struct Returner {
    pub name: &'static str,
    pub doc: &'static str,
    /// Takes one return.
    pub ret: fn(&Cx, &Options, &Dict) -> Result<()>,
    /// Takes events of the master, if it can.
    pub events: Option<TakeEvents>,
    /// Keeps jobs and gives them back, if it can.
    pub cache: Option<&'static cache::Cache>,
}

/// Declares a returner: `returner! { /// Write lines. "rawfile_json": ret, events = events }`; one
/// that can be a job cache names that as `cache = CACHE`.
#[macro_export]
macro_rules! returner {
    (
        $(#[doc = $doc:literal])*
        $name:literal : $ret:path $(, events = $events:path)? $(, cache = $cache:path)? $(,)?
    ) => {
        /// The returner of this file.
        pub static RETURNER: $crate::Returner = $crate::Returner {
            name: $name,
            doc: concat!($($doc, "\n"),*),
            ret: $ret,
            events: $crate::returner!(@some $($events)?),
            cache: $crate::returner!(@some $(&$cache)?),
        };
    };
    (@some) => { None };
    (@some $some:expr) => { Some($some) };
}

/// Returns the returner of that name.
pub fn returner(name: &str) -> Option<&'static Returner> {
    ALL.iter().copied().find(|returner| returner.name == name)
}

fn unavailable(name: &str, function: &str) -> Error {
    Error::failed(format!(
        "Returner {name}.{function} could not be loaded: '{name}.{function}' is not available."
    ))
}

/// Hands a return to one returner, native or the user's.
pub fn deliver(cx: &Cx, name: &str, options: &Options, ret: &Dict) -> Result<()> {
    if let Some(native) = returner(name) {
        return (native.ret)(cx, &options.of(name), ret);
    }
    let call = Call { args: vec![options.within(ret).into()], kwargs: Dict::new() };
    let function = format!("{name}.returner");
    match cx.runtime.call_extension(cx, "returners", &function, call)? {
        Some(_) => Ok(()),
        None => Err(unavailable(name, "returner")),
    }
}

/// Hands a return to several returners; failures are logged, as they must not keep a job's return
/// from its master.
pub fn deliver_all<'a>(
    cx: &Cx,
    names: impl IntoIterator<Item = &'a str>,
    options: &Options,
    ret: &Dict,
) {
    let mut done: Vec<&str> = Vec::new();
    for name in names.into_iter().map(str::trim).filter(|name| !name.is_empty()) {
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        if let Err(error) = deliver(cx, name, options, ret) {
            tracing::error!(
                "The return failed for job {}: {error}",
                ret.get("jid").unwrap_or_default()
            );
        }
    }
}

/// Hands events of a master to one returner (`event_return`).
pub fn deliver_events(cx: &Cx, name: &str, events: &[Value]) -> Result<()> {
    let options = Options::default();
    if let Some(native) = returner(name) {
        let take = native.events.ok_or_else(|| unavailable(name, "event_return"))?;
        return take(cx, &options.of(name), events);
    }
    let call = Call { args: vec![Value::list(events.to_vec())], kwargs: Dict::new() };
    let function = format!("{name}.event_return");
    match cx.runtime.call_extension(cx, "returners", &function, call)? {
        Some(_) => Ok(()),
        None => Err(unavailable(name, "event_return")),
    }
}

/// Returns the names of all returners, sorted.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|returner| returner.name).collect()
}

/// A value as one line of JSON; what JSON has no word for is written as Python would print it.
pub(crate) fn line(value: &Value) -> String {
    halite_value::json::to_string(value)
        .unwrap_or_else(|_| halite_value::str_repr(&value.to_string()))
}
