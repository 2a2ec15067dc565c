//! `onlyif`, `unless`, `creates` and `check_cmd`: conditions around a state.
//!
//! Commands are run by `cmd.retcode`, functions by name, so that the same code serves native and
//! users' functions. Texts are Salt's.

use halite_spec::{Call, Cx, Result};
use halite_value::{Dict, Value, lookup};

use crate::Low;

/// Arguments of a state that its guard commands share.
const SHARED: [&str; 8] =
    ["cwd", "root", "runas", "env", "prepend_path", "umask", "timeout", "success_retcodes"];

/// What the guards say.
pub(crate) struct Verdict {
    /// The state need not run.
    pub(crate) skip: bool,
    pub(crate) comment: String,
}

/// Asks the guards of a chunk; `None` if it has none.
pub(crate) fn ask(cx: &Cx, low: &Low) -> Result<Option<Verdict>> {
    let options = command_options(cx, low);
    let mut verdicts = Vec::new();
    if let Some(entries) = low.get("onlyif") {
        verdicts.push(onlyif(cx, &as_list(&entries), &options)?);
    }
    if let Some(entries) = low.get("unless") {
        verdicts.push(unless(cx, &as_list(&entries), &options)?);
    }
    if let Some(paths) = low.get("creates") {
        verdicts.push(creates(cx, &paths)?);
    }
    if verdicts.is_empty() {
        return Ok(None);
    }
    let comments: Vec<_> = verdicts.iter().map(|verdict| verdict.comment.as_str()).collect();
    let comment = comments.join("\n");
    Ok(Some(Verdict { skip: verdicts.iter().any(|verdict| verdict.skip), comment }))
}

/// Runs `check_cmd`: the state succeeded if every command does.
pub(crate) fn check(cx: &Cx, low: &Low) -> Result<(bool, &'static str)> {
    let options = Dict::new();
    if let Some(shell) = cx.grain("shell") {
        options.insert("shell", shell);
    }
    for entry in as_list(&low.get("check_cmd").unwrap_or_default()) {
        if retcode(cx, &entry, &options)? != 0 {
            return Ok((false, "check_cmd determined the state failed"));
        }
    }
    Ok((true, "check_cmd determined the state succeeded"))
}

fn as_list(value: &Value) -> Vec<Value> {
    value.items_of_sequence().unwrap_or_else(|| vec![value.clone()])
}

fn command_options(cx: &Cx, low: &Low) -> Dict {
    let left_out = as_list(&low.get("cmd_opts_exclude").unwrap_or_default());
    let is_left_out = |word: &str| left_out.iter().any(|item| *item == *word);
    let options = Dict::new();
    for word in SHARED.into_iter().filter(|word| !is_left_out(word)) {
        if let Some(value) = low.get(word).filter(|value| !value.is_null()) {
            options.insert(word, value);
        }
    }
    let own_shell = low.get("shell").filter(|_| !is_left_out("shell"));
    if let Some(shell) = own_shell.or_else(|| cx.grain("shell")) {
        options.insert("shell", shell);
    }
    options
}

fn retcode(cx: &Cx, command: &Value, options: &Dict) -> Result<i64> {
    let call = Call { args: vec![command.clone()], kwargs: options.shallow_copy() }
        .with("ignore_retcode", true)
        .with("python_shell", true);
    Ok(cx.call("cmd.retcode", call)?.to_int().unwrap_or(1))
}

/// The answer of a function entry: its return's truth, unless it set a return code.
enum Answer {
    Truth(bool),
    Retcode(i64),
    NoFunction(String),
}

fn ask_function(cx: &Cx, entry: &Dict) -> Result<Answer> {
    let call = Call { args: Vec::new(), kwargs: entry.shallow_copy() };
    let Some(function) = call.kwargs.remove("fun") else {
        return Ok(Answer::NoFunction(Value::from(entry).to_string()));
    };
    let path = call.kwargs.remove("get_return").filter(Value::truthy);
    let args = call.kwargs.remove("args").map(|args| as_list(&args)).unwrap_or_default();
    let call = Call { args, kwargs: call.kwargs };
    let call = crate::slots::fill(cx, call)?;
    // The function must not spoil the return code of the whole job.
    let before = cx.job.retcode();
    cx.job.set_retcode(0);
    let result = cx.call(&function.to_str(), call);
    let code = cx.job.retcode();
    cx.job.set_retcode(before);
    let mut result = result?;
    if let Some(path) = path {
        result = lookup::traverse(&result, &path.to_str(), ":").unwrap_or_default();
    }
    Ok(if code != 0 { Answer::Retcode(code) } else { Answer::Truth(result.truthy()) })
}

fn onlyif(cx: &Cx, entries: &[Value], options: &Dict) -> Result<Verdict> {
    let verdict = |skip, comment: &str| Ok(Verdict { skip, comment: comment.to_owned() });
    for entry in entries {
        let holds = match entry {
            // A command that cannot be run at all counts as false.
            Value::Str(_) => retcode(cx, entry, options).unwrap_or(100) == 0,
            Value::Dict(entry) => match ask_function(cx, entry)? {
                Answer::Truth(truth) => truth,
                Answer::Retcode(code) => code == 0,
                Answer::NoFunction(shown) => {
                    return verdict(false, &format!("no `fun` argument in onlyif: {shown}"));
                }
            },
            _ => return verdict(false, "onlyif execution failed, bad type passed"),
        };
        if !holds {
            return verdict(true, "onlyif condition is false");
        }
    }
    verdict(false, "onlyif condition is true")
}

/// The state runs if any of the conditions is false.
fn unless(cx: &Cx, entries: &[Value], options: &Dict) -> Result<Verdict> {
    let verdict = |skip, comment: &str| Ok(Verdict { skip, comment: comment.to_owned() });
    let mut bad_type = false;
    for entry in entries {
        let holds = match entry {
            Value::Str(_) => retcode(cx, entry, options).unwrap_or(0) == 0,
            Value::Dict(entry) => match ask_function(cx, entry)? {
                Answer::Truth(truth) => truth,
                Answer::Retcode(code) => code == 0,
                Answer::NoFunction(shown) => {
                    return verdict(false, &format!("no `fun` argument in unless: {shown}"));
                }
            },
            _ => {
                bad_type = true;
                continue;
            }
        };
        bad_type = false;
        if !holds {
            return verdict(false, "unless condition is false");
        }
    }
    if bad_type {
        return verdict(false, "unless condition is false, bad type passed");
    }
    verdict(true, "unless condition is true")
}

fn creates(cx: &Cx, paths: &Value) -> Result<Verdict> {
    let verdict = |skip, comment: String| Ok(Verdict { skip, comment });
    let (list, found) = match paths {
        Value::Str(path) => (vec![paths.clone()], format!("{path} exists")),
        Value::List(list) => (list.to_vec(), "All files in creates exist".to_owned()),
        _ => return verdict(false, "Creates files not found".to_owned()),
    };
    for path in list {
        if !cx.host.exists(std::path::Path::new(path.to_str().as_str()))? {
            return verdict(false, "Creates files not found".to_owned());
        }
    }
    verdict(true, found)
}
