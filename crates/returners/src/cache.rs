//! Job caches: returners that keep jobs and give them back (`master_job_cache`, `ext_job_cache`).
//!
//! A master writes many [`Record`]s at once: a database is reached by its client program, and one
//! start of that per return would be the bottleneck. A write that fails tells whether the database
//! could not be reached, and trying again may help, or did not want it. Reading is done by Salt's
//! own names for it (`get_load`, `get_jid`, …), for returners of ours as for those in Python.

use halite_spec::{Call, Cx, Error, Result};
use halite_value::{Dict, Value};

use crate::{Options, returner, unavailable};

// gen:pub

/// Something to keep.
#[derive(Clone, Debug)]
pub enum Record {
    /// A job, as it was published.
    Load { jid: String, load: Dict },
    /// What a minion returned.
    Return(Dict),
}

impl Record {
    pub fn jid(&self) -> String {
        match self {
            Self::Load { jid, .. } => jid.clone(),
            Self::Return(ret) => ret.get("jid").unwrap_or_default().to_str().to_string(),
        }
    }
}

/// Why something was not kept, or cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refused {
    /// Another time it may work.
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Rejected(String),
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::failed(refused.to_string())
    }
}

impl From<Error> for Refused {
    /// What cannot be started (the client program is missing) may be there later.
    fn from(error: Error) -> Self {
        Self::Unreachable(error.to_string())
    }
}

pub type Kept<T> = std::result::Result<T, Refused>;

/// Removes what is older than this many seconds.
pub type Clean = fn(&Cx, &Options, i64) -> Kept<()>;

/// What a returner can do beyond taking returns. Writing is all or nothing.
pub struct Cache {
    pub save: fn(&Cx, &Options, &[Record]) -> Kept<()>,
    /// The job as it was published.
    pub load: fn(&Cx, &Options, &str) -> Kept<Option<Value>>,
    /// Minion → its whole return.
    pub returns: fn(&Cx, &Options, &str) -> Kept<Dict>,
    /// Job id → job, oldest first.
    pub loads: fn(&Cx, &Options) -> Kept<Dict>,
    /// Minion → the last job in which it ran a function.
    pub last: fn(&Cx, &Options, &str) -> Kept<Dict>,
    pub minions: fn(&Cx, &Options) -> Kept<Vec<Value>>,
    /// Removes what is old (`keep_jobs_seconds`).
    pub clean: Option<Clean>,
}

/// Tells whether jobs under this name are kept by the master itself.
pub fn is_own(name: &str) -> bool {
    matches!(name, "" | "local_cache" | "salt_cache")
}

/// Writes records. What a returner refuses on its own account is given back, with the reason.
pub fn save(cx: &Cx, name: &str, records: &[Record]) -> Kept<Vec<(usize, String)>> {
    let options = Options::default().of(name);
    let Some(native) = returner(name) else { return save_in_python(cx, name, records) };
    let Some(cache) = native.cache else {
        return Err(Refused::Rejected(unavailable(name, "save_load").to_string()));
    };
    match (cache.save)(cx, &options, records) {
        Ok(()) => return Ok(Vec::new()),
        Err(Refused::Rejected(_)) => {}
        Err(unreachable) => return Err(unreachable),
    }
    // One of them is at fault; the others are kept.
    let mut refused = Vec::new();
    for (at, record) in records.iter().enumerate() {
        match (cache.save)(cx, &options, std::slice::from_ref(record)) {
            Ok(()) => {}
            Err(Refused::Rejected(reason)) => refused.push((at, reason)),
            Err(unreachable) => return Err(unreachable),
        }
    }
    Ok(refused)
}

fn save_in_python(cx: &Cx, name: &str, records: &[Record]) -> Kept<Vec<(usize, String)>> {
    let mut refused = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let (function, args) = match record {
            Record::Load { jid, load } => ("save_load", vec![jid.as_str().into(), load.into()]),
            Record::Return(ret) => ("returner", vec![ret.into()]),
        };
        let call = Call { args, kwargs: Dict::new() };
        let full = format!("{name}.{function}");
        match cx.runtime.call_extension(cx, "returners", &full, call) {
            Ok(Some(_)) => {}
            Ok(None) => refused.push((at, unavailable(name, function).to_string())),
            Err(error) => refused.push((at, error.to_string())),
        }
    }
    Ok(refused)
}

/// Removes old jobs, where the returner does that.
pub fn clean(cx: &Cx, name: &str) -> Kept<()> {
    let seconds = keep_seconds(cx);
    match returner(name) {
        Some(native) => match native.cache.and_then(|cache| cache.clean) {
            Some(clean) if seconds > 0 => clean(cx, &Options::default().of(name), seconds),
            _ => Ok(()),
        },
        None => {
            let call = Call { args: Vec::new(), kwargs: Dict::new() };
            let function = format!("{name}.clean_old_jobs");
            cx.runtime.call_extension(cx, "returners", &function, call)?;
            Ok(())
        }
    }
}

/// Calls a function of a returner of ours by Salt's name; `None` if it has none of that name.
pub fn call(cx: &Cx, function: &str, call: &Call) -> Option<Result<Value>> {
    let (name, function) = function.split_once('.')?;
    let native = returner(name)?;
    let options = Options::default().of(name);
    let given = |at: usize, name: &str| {
        let value = call.args.get(at).cloned().or_else(|| call.kwargs.get(name));
        value.unwrap_or_default()
    };
    let text = |at: usize, name: &str| given(at, name).to_str().to_string();
    let dict = |at: usize, name: &str| given(at, name).as_dict().cloned().unwrap_or_default();
    if function == "returner" {
        return Some((native.ret)(cx, &options, &dict(0, "ret")).map(|()| Value::Null));
    }
    let cache = native.cache?;
    let answer = match function {
        "save_load" => {
            let record = Record::Load { jid: text(0, "jid"), load: dict(1, "load") };
            (cache.save)(cx, &options, &[record]).map(|()| Value::Null)
        }
        "save_minions" => Ok(Value::Null),
        "prep_jid" => {
            let passed = given(1, "passed_jid");
            return passed.truthy().then(|| Ok(passed));
        }
        "get_load" => (cache.load)(cx, &options, &text(0, "jid"))
            .map(|load| load.unwrap_or_else(|| Dict::new().into())),
        "get_jid" => (cache.returns)(cx, &options, &text(0, "jid")).map(Value::from),
        "get_jids" => (cache.loads)(cx, &options).map(Value::from),
        "get_fun" => (cache.last)(cx, &options, &text(0, "fun")).map(Value::from),
        "get_minions" => (cache.minions)(cx, &options).map(Value::list),
        "clean_old_jobs" => clean(cx, name).map(|()| Value::Null),
        _ => return None,
    };
    Some(answer.map_err(Error::from))
}

/// How long jobs are kept; 0: for ever.
pub(crate) fn keep_seconds(cx: &Cx) -> i64 {
    const DAY: i64 = 86_400;
    let number = |name: &str| cx.opt(name).and_then(|value| value.to_int());
    number("keep_jobs_seconds").or_else(|| Some(number("keep_jobs")? * 3600)).unwrap_or(DAY).max(0)
}

/// Reads JSON that this or a genuine returner wrote; what is none is text.
pub(crate) fn parsed(text: &str) -> Value {
    halite_value::json::from_str(text).unwrap_or_else(|_| text.into())
}
