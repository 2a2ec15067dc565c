//! `module`: execution functions called as states.
//!
//! `module.run` has two forms, told apart by the arguments: with only dotted names each is a
//! function with its own arguments; otherwise `name` is the one function, and its arguments stand
//! beside it (those that collide with words of the state engine are written `m_name`, `m_fun` …).
//! What a function will change nobody knows: `test=True` only says that it would be called.

use halite_spec::{
    Applied, Args, Call, Cx, Error, Keys, Outcome, Param, Plan, Rest, Result, State, Watcher,
    keywords::is_engine_keyword, states,
};
use halite_value::{Dict, Key, Value, suggest};

states! {
    /// Execution functions called as states.
    "module": "run" => Run,
    "mod_watch" => Run,
    "wait" => Wait,
    "watch" => Wait,
}

/// Call one execution function, or several.
#[derive(Args)]
pub struct Run {
    /// The function, in the old form.
    #[arg(by_name)]
    name: Option<Value>,
    /// Functions with their arguments, or the arguments of the one function.
    #[arg(by_name)]
    args: Rest,
}

/// Call an execution function when a watched state changes.
#[derive(Args)]
pub struct Wait {
    /// The function, in the old form.
    #[arg(required)]
    name: Option<Value>,
    /// As of `run`.
    #[arg(by_name)]
    args: Rest,
}

/// Words in the arguments that are the engine's.
const IGNORED: [&str; 3] = ["name", "__reqs__", "sfun"];

fn run(cx: &Cx, name: Option<&Value>, kwargs: &Dict, test: bool) -> Result<Outcome> {
    let kwargs: Dict = kwargs
        .into_iter()
        .filter(|(key, _)| {
            let key = key.to_str();
            !key.starts_with("__") && !IGNORED.contains(&key.as_str())
        })
        .collect();
    // `umask` and the like stand beside the functions too.
    let functions: Dict =
        kwargs.entries().into_iter().filter(|(key, _)| !is_engine_keyword(&key.to_str())).collect();
    let keys = functions.keys();
    let old_form = keys.is_empty() || keys.iter().any(|key| !key.to_str().contains('.'));
    let id = cx.low.get("__id__").unwrap_or_default();
    if old_form {
        tracing::debug!("Detected legacy module.run syntax: {id}");
        let name = name.map(halite_value::Value::to_str).unwrap_or_default();
        run_one(cx, &name, &kwargs, test)
    } else {
        tracing::debug!("Using new style module.run syntax: {id}");
        run_several(cx, &functions, test)
    }
}

/// The function behind `test.echo:first`, a way to call one twice.
fn function_of(key: &Key) -> String {
    key.to_str().split(':').next().unwrap_or_default().to_owned()
}

/// Adds what functions that there are not may have been meant to be, if that can be guessed.
fn suggest_others(cx: &Cx, missing: &[String], extra: &Dict) {
    let known = cx.runtime.function_names(cx);
    let told = missing.iter().filter_map(|name| {
        let near = suggest::nearest(name, known.iter().map(String::as_str))?;
        Some(format!("there is no function `{name}`; did you mean `{near}`?"))
    });
    let told: Vec<String> = told.collect();
    if !told.is_empty() {
        extra.insert("warnings", told);
    }
}

fn run_several(cx: &Cx, kwargs: &Dict, test: bool) -> Result<Outcome> {
    let functions = kwargs.keys();
    let (there, missing): (Vec<String>, Vec<String>) =
        functions.iter().map(function_of).partition(|function| cx.runtime.has(cx, function));
    let extra = Dict::new();
    extra.insert("name", Value::list(functions.iter().map(|key| key.value().clone())));
    let done = |result: Option<bool>, changes: Dict, comment: String| {
        Ok(Outcome { extra: extra.clone(), ..Outcome::new(result, changes, comment) })
    };
    // differs: Salt writes «functionTrue» where it means more than one.
    let plural = |names: &[String]| if names.len() > 1 { "s" } else { "" };
    let to_run = || format!("Function{} {} to be executed.", plural(&there), there.join(", "));
    if !missing.is_empty() {
        let mut comment =
            format!("Unavailable function{}: {}.", plural(&missing), missing.join(", "));
        if test && !there.is_empty() {
            comment = format!("{comment} {}", to_run());
        }
        suggest_others(cx, &missing, &extra);
        return done(Some(false), Dict::new(), comment);
    }
    if test {
        return done(None, Dict::new(), to_run());
    }
    let (mut failures, mut successes, changes) = (Vec::new(), Vec::new(), Dict::new());
    for (key, arguments) in kwargs {
        let function = function_of(&key);
        let answer = match call_of(cx, &function, &arguments) {
            Ok(call) => cx.call(&function, call),
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) if succeeded(&answer) => {
                let shown = match &answer {
                    Value::Dict(dict) => dict.get("comment").unwrap_or_else(|| "Success".into()),
                    other => other.clone(),
                };
                successes.push(format!("{key}: {shown}"));
                changes.insert(key, answer);
            }
            Ok(Value::Dict(answer)) => {
                let text = answer.get("comment").unwrap_or_else(|| "(error message N/A)".into());
                failures.push(format!("'{key}' failed: {text}"));
            }
            Ok(answer) => failures.push(format!("'{key}': {answer}")),
            Err(error @ (Error::Invalid(_) | Error::Args(_))) => {
                failures.push(format!("'{key}' failed: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    let result = failures.is_empty();
    failures.append(&mut successes);
    done(Some(result), changes, failures.join(", "))
}

/// Arguments of the new form: a list of values and of dicts.
fn call_of(cx: &Cx, function: &str, arguments: &Value) -> Result<Call> {
    let mut call = Call::default();
    match arguments {
        Value::Null => {}
        Value::Dict(named) => call.kwargs.update(named),
        Value::List(_) | Value::Tuple(_) => {
            for item in arguments.items_of_sequence().unwrap_or_default() {
                match item {
                    Value::Dict(named) => call.kwargs.update(&named),
                    value => call.args.push(value),
                }
            }
        }
        value => call.args.push(value.clone()),
    }
    if let Some(native) = cx.runtime.function(cx, function) {
        let required = native.params.iter().filter(|param| !param.rest && param.default.is_none());
        let missing: Vec<&str> = required
            .enumerate()
            .filter(|(at, param)| *at >= call.args.len() && !call.kwargs.contains(param.name))
            .map(|(_, param)| param.name)
            .collect();
        if !missing.is_empty() {
            let declared = || native.params.iter().map(|param| param.name);
            let near = call.kwargs.keys().into_iter().find_map(|word| {
                let word = word.to_str();
                let known = declared().any(|name| name == word.as_str());
                suggest::nearest(&word, missing.iter().copied()).filter(|_| !known)
            });
            let near = near.map(|near| format!("\n   = help: did you mean `{near}`?"));
            return Err(Error::invalid(format!(
                "Missing arguments: {}{}",
                missing.join(", "),
                near.unwrap_or_default()
            )));
        }
    }
    Ok(call)
}

/// How an argument is written beside the engine's words.
fn written(argument: &str) -> String {
    match argument {
        "name" | "fun" | "names" | "state" | "saltenv" => format!("m_{argument}"),
        other => other.to_owned(),
    }
}

fn run_one(cx: &Cx, name: &str, kwargs: &Dict, test: bool) -> Result<Outcome> {
    if !cx.runtime.has(cx, name) {
        let failed = Outcome::failed(format!("Module function {name} is not available"));
        let extra = Dict::new();
        suggest_others(cx, &[name.to_owned()], &extra);
        return Ok(Outcome { extra, ..failed });
    }
    if test {
        let comment = format!("Module function {name} is set to execute");
        return Ok(Outcome::new(None, Dict::new(), comment));
    }
    let call = match cx.runtime.function(cx, name) {
        Some(native) => match old_call(native.params, kwargs) {
            Ok(call) => call,
            Err(comment) => return Ok(Outcome::failed(comment)),
        },
        None => foreign_call(kwargs),
    };
    match cx.call(name, call) {
        Ok(answer) => {
            let changes = Dict::new();
            changes.insert("ret", &answer);
            let comment = format!("Module function {name} executed");
            Ok(Outcome::new(Some(succeeded(&answer)), changes, comment))
        }
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => Ok(Outcome::failed(format!(
            "Module function {name} threw an exception. Exception: {error}"
        ))),
    }
}

/// Picks the declared arguments; others that stand there are ignored, as Salt does.
fn old_call(params: &[Param], kwargs: &Dict) -> Result<Call, String> {
    let call = Call::default();
    let mut missing = Vec::new();
    for param in params.iter().filter(|param| !param.rest) {
        let own = written(param.name);
        let optional = param.default.is_some().then_some(param.name);
        let value = kwargs
            .get(own.as_str())
            .or_else(|| optional.and_then(|name| kwargs.get(name)))
            .or_else(|| param.aliases.iter().find_map(|alias| kwargs.get(*alias)));
        match value {
            Some(value) => {
                call.kwargs.insert(param.name, value);
            }
            None if param.default.is_none() => missing.push(own),
            None => {}
        }
    }
    if !missing.is_empty() {
        return Err(format!("The following arguments are missing: {}", missing.join(" ")));
    }
    let mut call = call;
    if let Some(rest) = params.iter().find(|param| param.rest) {
        if let Some(values) = kwargs.get("args").or_else(|| kwargs.get(rest.name)) {
            match values {
                Value::List(list) => call.args.extend(list.to_vec()),
                _ if rest.name == "kwargs" => {}
                _ => return Err("'args' must be a list.".into()),
            }
        }
        if let Some(named) = kwargs.get("kwargs") {
            match named {
                Value::Dict(named) => call.kwargs.update(&named),
                _ => return Err("'kwargs' must be a dict.".into()),
            }
        }
        // Positions come first: with some given, named ones that precede them keep their names.
        if !call.args.is_empty() {
            let mut first = Vec::new();
            for param in params.iter().filter(|param| !param.rest) {
                let given = call.kwargs.remove(param.name);
                first.push(given.or_else(|| param.default.map(|make| make())).unwrap_or_default());
            }
            first.append(&mut call.args);
            call.args = first;
        }
    }
    Ok(call)
}

/// A function whose declaration is not known here gets everything by name.
fn foreign_call(kwargs: &Dict) -> Call {
    let mut call = Call::default();
    for (key, value) in kwargs {
        let name = key.to_str();
        match (name.as_str(), &value) {
            ("args", Value::List(list)) => call.args.extend(list.to_vec()),
            ("kwargs", Value::Dict(named)) => call.kwargs.update(named),
            ("returner", _) => {}
            (name, _) => {
                call.kwargs.insert(name.strip_prefix("m_").unwrap_or(name), value);
            }
        }
    }
    call
}

/// Reads success from what a function returned: a flag, or `result` and `retcode` at any depth.
fn succeeded(answer: &Value) -> bool {
    match answer {
        Value::Bool(flag) => *flag,
        Value::Dict(dict) => {
            for (key, value) in dict {
                let failed = match key.as_str() {
                    Some("result") => value == Value::Bool(false),
                    Some("retcode") => value != Value::Int(0),
                    _ => false,
                };
                if failed || (value.as_dict().is_some() && !succeeded(&value)) {
                    return false;
                }
            }
            true
        }
        _ => true,
    }
}

impl State for Run {
    type Seen = ();
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);
    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::unknown())
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        run(cx, self.name.as_ref(), &self.args.kwargs, true).map(Some)
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let outcome = run(cx, self.name.as_ref(), &self.args.kwargs, false)?;
        Ok(Applied {
            changes: Some(outcome.changes),
            comment: Some(outcome.comment),
            result: outcome.result,
            extra: outcome.extra,
        })
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        run(cx, self.name.as_ref(), &self.args.kwargs, test)
    }
}

impl Watcher for Wait {
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        run(cx, self.name.as_ref(), &self.args.kwargs, test)
    }
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn success_is_read_at_any_depth() {
        assert!(succeeded(&"text".into()) && succeeded(&Value::Null) && !succeeded(&false.into()));
        assert!(!succeeded(&dict! { "a" => dict! { "result" => false } }));
        assert!(!succeeded(&dict! { "retcode" => 2 }) && succeeded(&dict! { "retcode" => 0 }));
    }
}
