//! What users read when a function could not do its work: Salt's words.
//!
//! Errors are classes in Salt and its texts differ by class; arguments that do not fit are told in
//! Python's words, as functions there are Python functions.

use halite_spec::{ArgError, Call, Cx, Error, Function, Param};
use halite_value::{Dict, Value};
use halite_wire::typed::{keyword, yamlify};

/// Returns the text a failed call leaves as its return.
pub fn text(name: &str, function: Option<&Function>, error: &Error) -> String {
    match error {
        Error::Failed(_) => format!("ERROR: {error}"),
        Error::Invalid(_) => format!("ERROR executing '{name}': {error}"),
        Error::Args(mismatch) => {
            let doc = function.map(|function| function.help("salt '*'", name)).unwrap_or_default();
            let why = python_text(name, function, mismatch);
            format!("Passed invalid arguments to {name}: {why}\n{doc}")
        }
        Error::NotFound(_) | Error::Unavailable { .. } | Error::NotLoaded(_) => error.to_string(),
        Error::Source { .. } => format!("ERROR: {error}"),
        Error::Raised { class, message, .. } if class == "SaltInvocationError" => {
            format!("ERROR executing '{name}': {message}")
        }
        Error::Raised { class, message, .. } if class == "CommandNotFoundError" => {
            format!("Command required for '{name}' not found: {message}")
        }
        Error::Raised { class, message, traceback } => {
            let trace = traceback.clone().unwrap_or_else(|| {
                format!("Traceback (most recent call last):\n{class}: {message}\n")
            });
            format!("The minion function caused an exception: {trace}")
        }
        Error::Host(_) => {
            let class = error.class();
            format!(
                "The minion function caused an exception: Traceback (most recent call last):\n\
                 {class}: {error}\n"
            )
        }
        Error::Cancelled => "ERROR: the job was cancelled".to_owned(),
    }
}

/// The text for a Python function that was called wrongly, as far as can be told: genuine Salt takes
/// every `TypeError` for that.
pub fn type_error(
    name: &str,
    error: &Error,
    doc: impl FnOnce() -> Option<String>,
) -> Option<String> {
    match error {
        Error::Raised { class, message, .. } if class == "TypeError" => {
            let doc = doc().unwrap_or_default();
            Some(format!("Passed invalid arguments to {name}: {message}\n{doc}"))
        }
        _ => None,
    }
}

/// Returns the keywords that a user's function does not take, as `name=value`.
pub fn unknown_to_users(about: &Value, call: &Call) -> Vec<String> {
    let Some(spec) = about.get("spec") else { return Vec::new() };
    if spec.get("kwargs").is_some_and(|kwargs| kwargs.truthy()) {
        return Vec::new();
    }
    let names = spec.get("args").and_then(|args| args.items_of_sequence()).unwrap_or_default();
    let known = |name: &str| name.starts_with("__") || names.iter().any(|own| *own == *name);
    let unknown = call.kwargs.entries().into_iter().filter(|(key, _)| !known(&key.to_str()));
    unknown.map(|(key, value)| format!("{key}={value}")).collect()
}

/// Returns the text for a function that is not there.
pub fn missing(name: &str) -> String {
    format!("'{name}' is not available.")
}

/// Returns what is shown for a function that is not there if names of others begin with it: their
/// documentation, and that it is missing.
pub fn instead_of(cx: &Cx, fun: &str) -> Option<Dict> {
    let runtime = &cx.runtime;
    let names = runtime.function_names(cx).into_iter();
    let names: Vec<String> = names.filter(|name| name.starts_with(fun)).collect();
    if fun.is_empty() || names.is_empty() {
        return None;
    }
    let (native, users): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| runtime.function(cx, name).is_some());
    let described = match users.is_empty() {
        true => Dict::new(),
        false => runtime.described("modules", &users),
    };
    let users = users.into_iter().map(|name| {
        let doc = described.get(name.as_str()).and_then(|about| about.get("raw_doc"));
        (name, doc.unwrap_or_default())
    });
    let native = native.into_iter().map(|name| {
        let help = |function: &Function| function.help("salt '*'", &name).into();
        let doc = runtime.function(cx, &name).map_or(Value::Null, help);
        (name, doc)
    });
    let mut all: Vec<(String, Value)> = native.chain(users).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    let docs: Dict = all.into_iter().collect();
    docs.insert(fun, missing(fun));
    Some(docs)
}

/// Says what does not fit about a call before it is made, as Python would when calling.
///
/// Keywords nobody declared are a matter of their own in Salt: [`unknown_keywords`].
pub fn misfit(function: &Function, call: &Call) -> Option<String> {
    let name = function.own_name;
    let named: Vec<&Param> = function.params.iter().filter(|param| param.has_place()).collect();
    let takes_more = function.params.iter().any(Param::takes_positions);
    let given = call.args.len();
    if let Some(twice) = named.iter().take(given).find(|param| call.kwargs.contains(param.name)) {
        return Some(format!("{name}() got multiple values for argument '{}'", twice.name));
    }
    if given > named.len() && !takes_more {
        let required = named.iter().filter(|param| param.default.is_none()).count();
        return Some(surplus_text(name, required, named.len(), given));
    }
    let lacks = |param: &&&Param| {
        param.default.is_none()
            && !call.kwargs.contains(param.name)
            && !param.aliases.iter().any(|alias| call.kwargs.contains(*alias))
    };
    let absent: Vec<_> = named.iter().skip(given).filter(lacks).map(|param| param.name).collect();
    (!absent.is_empty()).then(|| absent_text(name, &absent))
}

fn surplus_text(name: &str, required: usize, allowed: usize, given: usize) -> String {
    let takes = match required == allowed {
        true => allowed.to_string(),
        false => format!("from {required} to {allowed}"),
    };
    let s = if allowed == 1 && required == 1 { "" } else { "s" };
    let were = if given == 1 { "was" } else { "were" };
    format!("{name}() takes {takes} positional argument{s} but {given} {were} given")
}

fn absent_text(name: &str, absent: &[&str]) -> String {
    let quoted: Vec<String> = absent.iter().map(|one| format!("'{one}'")).collect();
    let list = match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [firsts @ .., last] => format!("{}, and {last}", firsts.join(", ")),
    };
    let s = if absent.len() == 1 { "" } else { "s" };
    format!("{name}() missing {} required positional argument{s}: {list}", absent.len())
}

/// Returns the keywords no argument has, as `name=value`.
pub fn unknown_keywords(function: &Function, call: &Call) -> Vec<String> {
    if function.params.iter().any(Param::takes_names) {
        return Vec::new();
    }
    let known = |name: &str| {
        name.starts_with("__")
            || function
                .params
                .iter()
                .any(|param| param.name == name || param.aliases.contains(&name))
    };
    let unknown = call.kwargs.entries().into_iter().filter(|(key, _)| !known(&key.to_str()));
    unknown.map(|(key, value)| format!("{key}={value}")).collect()
}

/// The refusal of such keywords.
pub fn refused_keywords(unknown: &[String]) -> Error {
    Error::invalid(format!("The following keyword arguments are not valid: {}", unknown.join(", ")))
}

pub fn python_text(name: &str, function: Option<&Function>, mismatch: &ArgError) -> String {
    let short = function.map_or_else(
        || name.rsplit('.').next().unwrap_or(name).to_owned(),
        |function| function.own_name.to_owned(),
    );
    match mismatch {
        ArgError::Missing(argument) => absent_text(&short, &[argument]),
        ArgError::Unexpected { name, .. } => {
            format!("{short}() got an unexpected keyword argument '{name}'")
        }
        ArgError::TooMany { allowed, given } => {
            let required = function.map_or(*allowed, |function| {
                let named = function.params.iter().filter(|param| param.has_place());
                named.filter(|param| param.default.is_none()).count()
            });
            surplus_text(&short, required, *allowed, *given)
        }
        ArgError::Twice(argument) => {
            format!("{short}() got multiple values for argument '{argument}'")
        }
        ArgError::Type { .. } => mismatch.to_string(),
    }
}

/// Turns positional texts of the form `name=value` into keywords, as a minion does with what an
/// old client sent. The values are read as those on a command line are; other texts stay.
pub fn with_keywords(call: Call) -> Call {
    let mut args = Vec::with_capacity(call.args.len());
    for arg in call.args {
        match arg.as_str().and_then(keyword) {
            Some((name, value)) => {
                call.kwargs.insert(name, yamlify(value));
            }
            None => args.push(arg),
        }
    }
    Call { args, kwargs: call.kwargs }
}

/// Says what a panic left behind.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it gave no reason".to_owned())
}

/// Tells whether a return says of itself that it failed.
pub fn says_failed(ret: &Value) -> bool {
    let Value::Dict(ret) = ret else { return false };
    ["result", "success"].iter().any(|key| ret.get(*key).is_some_and(|value| !value.truthy()))
}

#[cfg(test)]
mod tests {
    use halite_spec::By;
    use halite_value::{dict, entries};

    use super::*;

    const fn param(name: &'static str, default: bool) -> Param {
        Param {
            name,
            doc: "",
            kind: "text",
            default: if default { Some(|| Value::Null) } else { None },
            aliases: &[],
            rest: false,
            by: By::Any,
        }
    }

    static ECHO: Function = Function {
        name: "echo",
        own_name: "echo",
        doc: "Doc",
        params: &[param("text", false)],
        call: |_, _| Ok(Value::Null),
    };
    static THREE: Function = Function {
        name: "f",
        own_name: "f",
        doc: "",
        params: &[param("a", false), param("b", false), param("c", true)],
        call: |_, _| Ok(Value::Null),
    };

    const fn rest(name: &'static str, by: By) -> Param {
        let mut param = param(name, false);
        param.rest = true;
        param.by = by;
        param
    }

    /// A function with an optional argument and one that takes the rest.
    fn open(params: &'static [Param]) -> Function {
        let call: fn(&Cx, Call) -> halite_spec::Result<Value> = |_, _| Ok(Value::Null);
        Function { name: "g", own_name: "get", doc: "", params, call }
    }

    #[test]
    fn one_argument_too_many() {
        let told =
            |given| python_text("doc.runner", None, &ArgError::TooMany { allowed: 0, given });
        assert_eq!(told(1), "runner() takes 0 positional arguments but 1 was given");
        assert_eq!(told(2), "runner() takes 0 positional arguments but 2 were given");
    }

    #[test]
    fn keywords_take_no_positions() {
        let told = |function: &Function| misfit(function, &Call::of([1, 2])).unwrap_or_default();
        let refused = "get() takes from 0 to 1 positional arguments but 2 were given";
        assert_eq!(told(&open(const { &[param("a", true), rest("kwargs", By::Name)] })), refused);
        assert_eq!(told(&open(const { &[param("a", true), rest("args", By::Any)] })), "");
    }

    #[test]
    fn mismatches_in_pythons_words() {
        let told = |mismatch: &ArgError| python_text("x.f", Some(&THREE), mismatch);
        let surplus = ArgError::TooMany { allowed: 3, given: 5 };
        assert_eq!(told(&surplus), "f() takes from 2 to 3 positional arguments but 5 were given");
        let unexpected = ArgError::Unexpected { name: "z".into(), suggestion: None };
        assert_eq!(told(&unexpected), "f() got an unexpected keyword argument 'z'");
    }

    #[test]
    fn misfits_in_pythons_words() {
        let told = |function: &Function, call: Call| misfit(function, &call).unwrap_or_default();
        let none = Call::default;
        assert_eq!(told(&ECHO, none()), "echo() missing 1 required positional argument: 'text'");
        assert_eq!(
            told(&ECHO, Call::of([1, 2])),
            "echo() takes 1 positional argument but 2 were given"
        );
        assert_eq!(
            told(&THREE, none()),
            "f() missing 2 required positional arguments: 'a' and 'b'"
        );
        assert_eq!(
            told(&THREE, Call::of([1, 2, 3, 4])),
            "f() takes from 2 to 3 positional arguments but 4 were given"
        );
        assert_eq!(
            told(&THREE, Call::of([1, 2]).with("a", 1)),
            "f() got multiple values for argument 'a'"
        );
        assert_eq!(told(&THREE, Call::of([1, 2])), "");
        assert_eq!(unknown_keywords(&ECHO, &none().with("x", 1).with("__y", 2)), ["x=1"]);
    }

    // What genuine Salt's minion makes of such a list.
    #[test]
    fn texts_that_are_keywords() {
        let sent = ["foo", "1", "{a: 1}", "sp = 2", "a==b", "1a=b", "=x", "m=a\nb"];
        let named =
            ["bar=off", "x=1", "y='1'", "q={a: b=c}", "a.b-c=1=2", "e=", "n=None", "u=1_0", "h=#c"];
        let args = sent.iter().chain(&named).map(|text| Value::from(*text)).collect();
        let read = with_keywords(Call { args, kwargs: entries! { "k" => "v" } });
        assert_eq!(read.args, sent.map(Value::from));
        let expected = entries! {
            "k" => "v", "bar" => false, "x" => 1, "y" => "1", "q" => dict! { "a" => "b=c" },
            "a.b-c" => "1=2", "e" => "", "n" => Value::Null, "u" => "1_0", "h" => "#c",
        };
        assert_eq!(read.kwargs, expected);
    }

    #[test]
    fn returns_that_say_they_failed() {
        assert!(says_failed(&dict! { "result" => false }));
        assert!(says_failed(&dict! { "success" => Value::Null }));
        assert!(!says_failed(&dict! { "result" => true, "x" => false }));
        assert!(!says_failed(&Value::Bool(false)));
    }
}
