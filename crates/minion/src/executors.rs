//! Executors: what stands between a job and its function (`module_executors`).
//!
//! `direct_call` calls the function here; `splay` waits first, each minion for its own part of
//! `splaytime`, so that a fleet does not do the same at once; `sudo` has a `salt-call` of another user
//! do the job (`sudo_user`). Any other name is a user's own module: its `execute` is handed the
//! function, and may call it. They work in their order until one has a result.
//!
//! A user's executor may have functions that no module has, if its `allow_missing_func` says so.

use std::time::Duration;

use halite_spec::{Call, Cx, Error, Result};
use halite_value::{Dict, SmolStr, Value, entries, json};

/// Seconds over which `splay` spreads minions, if nobody says.
const SPLAYTIME: f64 = 300.0;
const PLACES: u32 = 8192;

/// What the executors made of a job.
pub(crate) enum Outcome {
    /// The function is to be called here.
    Direct,
    Done(Value),
}

/// A job on its way to its function.
pub(crate) struct Work<'a> {
    /// The job as it was published, or what `salt-call` makes of its command line.
    pub(crate) data: &'a Dict,
    pub(crate) fun: &'a str,
    pub(crate) call: &'a Call,
}

impl Work<'_> {
    /// Lets the executors do what stands before the function, or all of it.
    pub(crate) fn execute(&self, cx: &Cx, names: &[SmolStr]) -> Result<Outcome> {
        for name in names {
            match name.as_str() {
                "direct_call" => return Ok(Outcome::Direct),
                "splay" => splay(cx, self.data)?,
                "sudo" if cx.host.which("sudo").is_some() && sudo_user(cx).is_some() => {
                    return Ok(Outcome::Done(sudo(cx, self.fun, self.call)?));
                }
                own => {
                    let ret = self.execute_own(cx, own)?;
                    if ret != Value::Null {
                        return Ok(Outcome::Done(ret));
                    }
                }
            }
        }
        // None of them calls the function, so nobody does.
        Ok(Outcome::Done(Value::Null))
    }

    fn execute_own(&self, cx: &Cx, name: &str) -> Result<Value> {
        let args = vec![
            self.data.into(),
            self.fun.into(),
            Value::list(self.call.args.clone()),
            (&self.call.kwargs).into(),
        ];
        let call = Call { args, kwargs: Dict::new() };
        match cx.runtime.call_extension(cx, "executors", &format!("{name}.execute"), call) {
            Ok(Some(ret)) => Ok(ret),
            Ok(None) | Err(Error::NotLoaded(_)) => {
                Err(Error::invalid(format!("Executor '{name}' is not available")))
            }
            Err(error) => Err(error),
        }
    }
}

/// Tells whether a user's executor takes a function that no module has.
pub(crate) fn take_unknown(cx: &Cx, names: &[SmolStr], fun: &str) -> bool {
    names.iter().filter(|name| !is_native(name)).any(|name| {
        let call = Call { args: vec![fun.into()], kwargs: Dict::new() };
        let function = format!("{name}.allow_missing_func");
        let answer = cx.runtime.call_extension(cx, "executors", &function, call);
        matches!(answer, Ok(Some(Value::Bool(true))))
    })
}

fn is_native(name: &str) -> bool {
    matches!(name, "direct_call" | "splay" | "sudo")
}

fn sudo_user(cx: &Cx) -> Option<SmolStr> {
    cx.opt_str("sudo_user").filter(|user| !user.is_empty())
}

/// Returns the executors of a published job.
pub(crate) fn published(cx: &Cx, data: &Dict) -> Result<Vec<SmolStr>> {
    let published = data.get("module_executors").filter(Value::truthy);
    let given = published.or_else(|| cx.opt("module_executors").filter(Value::truthy));
    names(given, sudo_user(cx).is_some())
}

/// Returns the executors of a call by hand. `sudo` starts one itself, which is not to start another.
pub(crate) fn by_hand(cx: &Cx) -> Result<Vec<SmolStr>> {
    let mut names = names(cx.opt("module_executors").filter(Value::truthy), false)?;
    if sudo_user(cx) == cx.opt_str("user")
        && let Some(last) = names.iter_mut().find(|name| *name == "sudo")
    {
        *last = "direct_call".into();
    }
    Ok(names)
}

/// Returns the names of the executors; whoever has a `sudo_user` calls nothing as himself.
fn names(given: Option<Value>, as_other: bool) -> Result<Vec<SmolStr>> {
    let mut names: Vec<SmolStr> = match given {
        None => vec!["direct_call".into()],
        Some(Value::Str(name)) => vec![name],
        Some(Value::List(names)) => {
            let names = Value::List(names).items_of_sequence().unwrap_or_default();
            names.iter().map(Value::to_str).collect()
        }
        Some(other) => {
            return Err(Error::invalid(format!(
                "Wrong executors specification: {other}. String or non-empty list expected"
            )));
        }
    };
    if let (true, Some(last)) = (as_other, names.last_mut()) {
        *last = "sudo".into();
    }
    Ok(names)
}

fn splay(cx: &Cx, data: &Dict) -> Result<()> {
    let published = data.get("executor_opts").and_then(|opts| opts.get("splaytime"));
    let given = published.or_else(|| cx.opt("splaytime"));
    let seconds = given.and_then(|time| time.as_float()).unwrap_or(SPLAYTIME);
    if seconds <= 0.0 {
        return Err(Error::failed("splaytime must be a positive integer"));
    }
    let share = f64::from(place_of(&cx.id())) / f64::from(PLACES);
    cx.sleep(Duration::try_from_secs_f64((seconds * share).trunc()).unwrap_or_default())
}

/// Returns the place of a minion among all: Jenkins' one-at-a-time hash of its id, as in Salt, so
/// that a mixed fleet spreads evenly.
fn place_of(id: &str) -> u32 {
    let mixed = id.bytes().fold(0_u32, |hash, byte| {
        let hash = hash.wrapping_add(u32::from(byte));
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    let mixed = mixed.wrapping_add(mixed << 3);
    let mixed = mixed ^ (mixed >> 11);
    mixed.wrapping_add(mixed << 15) & (PLACES - 1)
}

fn sudo(cx: &Cx, fun: &str, given: &Call) -> Result<Value> {
    let user = sudo_user(cx).unwrap_or_default();
    let folder = cx.opt_str("config_dir").unwrap_or_default();
    let words = ["sudo", "-u", &user, "salt-call", "--priv", &user, "--out", "json", "--metadata"];
    let mut command: Vec<String> = words.into_iter().map(str::to_owned).collect();
    command.extend(["-c", &folder, "--", fun].map(str::to_owned));
    let named = (&given.kwargs).into_iter();
    let is_own = |key: &Value| !key.as_str().is_some_and(|key| key.starts_with("__"));
    let kwargs: Dict = named.filter(|(key, _)| is_own(key)).collect();
    if matches!(fun, "state.sls" | "state.highstate" | "state.apply") {
        // The job itself stands in the list of running ones already.
        kwargs.insert("concurrent", true);
    }
    command.extend(given.args.iter().map(word));
    command.extend((&kwargs).into_iter().map(|(key, value)| format!("{key}={}", word(&value))));
    let call =
        Call { args: vec![Value::list(command)], kwargs: entries! { "python_shell" => false } };
    let Value::Dict(ran) = cx.call("cmd.run_all", call)? else { return Ok(Value::Null) };
    let code = ran.get("retcode").and_then(|code| code.as_int()).unwrap_or(1);
    let told = ran.get("stdout").unwrap_or_default().to_str();
    let answer = json::from_str(&told).ok().and_then(|answer| answer.get("local"));
    let (code, ret) = match answer {
        // differs: Salt shows only what a call that failed wrote to stderr, not what it returned.
        Some(answer) => {
            let own = answer.get("retcode").and_then(|code| code.as_int()).unwrap_or_default();
            (if own == 0 { code } else { own }, answer.get("return").unwrap_or_default())
        }
        None => (code, ran.get("stderr").unwrap_or_default()),
    };
    cx.job.set_retcode(code);
    Ok(ret)
}

/// Writes a value so that `salt-call` reads the same one. A text with a `#` it takes as it stands.
// differs: Salt quotes `key=value` as a whole, which salt-call takes for a positional argument.
fn word(value: &Value) -> String {
    match value {
        Value::Str(text) if text.contains('#') => text.to_string(),
        other => json::to_string(other).unwrap_or_else(|_| other.to_str().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Option<Value>, as_other: bool, expected: &str) {
        let shown = match names(given, as_other) {
            Ok(names) => names.join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn executors_have_an_order() {
        let both = || Some(Value::list(["splay", "direct_call"]));
        check(None, false, "direct_call");
        check(Some("splay".into()), false, "splay");
        check(both(), false, "splay direct_call");
        check(both(), true, "splay sudo");
        let wrong = "Wrong executors specification: 3. String or non-empty list expected";
        check(Some(3.into()), false, wrong);
    }

    #[test]
    fn arguments_survive_another_command_line() {
        assert_eq!(word(&"1".into()), "\"1\"");
        assert_eq!(word(&"a # b".into()), "a # b");
        assert_eq!(word(&Value::list([1, 2])), "[1, 2]");
    }

    #[test]
    fn every_minion_has_its_place() {
        // As genuine Salt 3008.3 computes them.
        for (id, place) in [("alpha", 4522), ("beta", 4020), ("", 0)] {
            assert_eq!(place_of(id), place, "{id}");
        }
    }
}
