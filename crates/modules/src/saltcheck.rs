//! `saltcheck`: test states by calling functions and comparing what they return.
//!
//! Beside the files of a state lies a folder `saltcheck-tests`; its `.tst` files are rendered as
//! SLS are, and hold tests by name: a function, its arguments, and what is asserted of the return.
//! The tests of a state are those of all SLS it includes. What is expected takes the type of what
//! was returned, and the greater-and-less assertions compare the expected value with the returned
//! one, in that order, both as in Salt.

use std::{cmp::Ordering, time::Instant};

use halite_spec::{Call, Cx, Error, Rest, Result, Strings, Template, alias, function, module};
use halite_value::{Dict, Value, entries, json, lookup};

module! {
    /// Test states by calling functions and comparing what they return.
    "saltcheck": parallel_scheck, report_highstate_tests, run_highstate_tests, run_state_tests,
    run_state_tests_ssh, run_test, state_apply,
}

const FOLDER: &str = "saltcheck-tests";

/// Assertions with the sign that stands between both sides in details.
const ASSERTIONS: [(&str, &str); 12] = [
    ("assertEqual", "=="),
    ("assertNotEqual", "!="),
    ("assertTrue", "True is"),
    ("assertFalse", "False is"),
    ("assertIn", "IN"),
    ("assertNotIn", "NOT IN"),
    ("assertGreater", ">"),
    ("assertGreaterEqual", ">="),
    ("assertLess", "<"),
    ("assertLessEqual", "<="),
    ("assertEmpty", "IS EMPTY"),
    ("assertNotEmpty", "IS NOT EMPTY"),
];

/// Those that look at the return alone.
fn stands_alone(assertion: &str) -> bool {
    ["assertTrue", "assertFalse", "assertEmpty", "assertNotEmpty"].contains(&assertion)
}

fn expected_of(part: &Dict) -> Option<Value> {
    part.get("expected_return").or_else(|| part.get("expected-return"))
}

/// Tells whether a part of a test can be checked at all.
fn is_sound(part: &Dict) -> bool {
    let assertion = part.get("assertion").unwrap_or_default().to_str();
    if !ASSERTIONS.iter().any(|(name, _)| *name == assertion.as_str()) {
        tracing::error!("Saltcheck: {assertion} is not in the assertions list");
        return false;
    }
    if !stands_alone(&assertion) && expected_of(part).is_none() {
        tracing::error!("Saltcheck: expected_return missing a value");
        return false;
    }
    true
}

/// What is expected, as the type of what was returned.
fn cast(expected: Value, returned: &Value) -> Value {
    let text = expected.to_str();
    match returned {
        Value::Str(_) => text.into(),
        Value::Bool(_) => expected.truthy().into(),
        Value::Int(_) => text.parse::<i64>().map_or(expected, Value::from),
        Value::Float(_) => text.parse::<f64>().map_or(expected, Value::from),
        _ => expected,
    }
}

fn is_in(inner: &Value, outer: &Value) -> bool {
    match outer {
        Value::Str(text) => text.contains(inner.to_str().as_str()),
        Value::Dict(dict) => dict.keys().iter().any(|key| **key == *inner),
        _ => outer.items_of_sequence().unwrap_or_default().contains(inner),
    }
}

/// Checks one assertion: `Pass`, or what is wrong.
fn verdict(assertion: &str, expected: &Value, returned: &Value) -> String {
    let order = || expected.compare(returned);
    let (holds, wrong) = match assertion {
        "assertEqual" => (expected == returned, format!("{expected} is not equal to {returned}")),
        "assertNotEqual" => (expected != returned, format!("{expected} is equal to {returned}")),
        "assertTrue" => (*returned == Value::Bool(true), format!("{returned} not True")),
        "assertFalse" => (*returned == Value::Bool(false), format!("{returned} not False")),
        "assertIn" => (is_in(expected, returned), format!("{expected} not found in {returned}")),
        "assertNotIn" => {
            (!is_in(expected, returned), format!("{expected} was found in {returned}"))
        }
        "assertGreater" => (order().is_some_and(Ordering::is_gt), format!("{returned} not False")),
        "assertGreaterEqual" => {
            (order().is_some_and(Ordering::is_ge), format!("{returned} not False"))
        }
        "assertLess" => (order().is_some_and(Ordering::is_lt), format!("{returned} not False")),
        "assertLessEqual" => {
            (order().is_some_and(Ordering::is_le), format!("{returned} not False"))
        }
        "assertEmpty" => (!returned.truthy(), format!("{returned} is not empty")),
        _ => (returned.truthy(), "value is empty".to_owned()),
    };
    if holds { "Pass".to_owned() } else { format!("Fail: {wrong}") }
}

/// Checks a part of a test against a return, with details if the test asks for them.
fn checked(test: &Dict, part: &Dict, returned: &Value) -> Dict {
    let text =
        |name: &str| part.get(name).filter(Value::truthy).map(|value| value.to_str().to_string());
    let assertion = text("assertion").unwrap_or_default();
    let section = text("assertion_section");
    let returned = match &section {
        Some(path) => {
            let delimiter = text("assertion_section_delimiter");
            let delimiter = delimiter.as_deref().unwrap_or(":");
            lookup::traverse(returned, path, delimiter).unwrap_or(Value::Bool(false))
        }
        None => returned.clone(),
    };
    let expected = cast(expected_of(part).unwrap_or_default(), &returned);
    let result = entries! { "status" => verdict(&assertion, &expected, &returned) };
    if test.get("output_details").is_some_and(|flag| flag.truthy()) {
        let function = test.get("module_and_function").unwrap_or_default();
        let args = json::to_string(&test.get("args").unwrap_or_default()).unwrap_or_default();
        let (title, section) = match section {
            Some(section) => ("module.function [args] assertion_section", format!(" {section}")),
            None => ("module.function [args]", String::new()),
        };
        result.insert(title, format!("{function} {args}{section}"));
        let sign = ASSERTIONS.iter().find(|(name, _)| *name == assertion);
        let sign = sign.map_or("", |(_, sign)| sign);
        let shown = match stands_alone(&assertion) {
            true => format!("{sign} {returned}"),
            false => format!("{expected} {sign} {returned}"),
        };
        result.insert("saltcheck assertion", shown);
    }
    result
}

/// Seconds to milliseconds' precision, as Salt shows them.
fn since(start: Instant) -> f64 {
    (start.elapsed().as_secs_f64() * 10_000.0).round() / 10_000.0
}

/// Runs one test.
fn tested(cx: &Cx, test: &Dict) -> Result<Dict> {
    let start = Instant::now();
    if test.get("skip").is_some_and(|flag| flag.truthy()) {
        return Ok(entries! { "status" => "Skip", "duration" => 0.0 });
    }
    let several = test.get("assertions").filter(Value::truthy);
    let parts: Vec<Dict> = match &several {
        Some(list) => {
            let items = list.items_of_sequence().unwrap_or_default();
            items.iter().filter_map(|item| item.as_dict().cloned()).collect()
        }
        None => vec![test.clone()],
    };
    let function = test.get("module_and_function").filter(Value::truthy);
    let function = function.map(|name| name.to_str().to_string());
    let is_known = match &function {
        None => {
            tracing::error!("Saltcheck: missing module_and_function");
            false
        }
        Some(name) => {
            let known = cx.runtime.has(cx, name);
            if !known {
                let last = name.rsplit('.').next().unwrap_or(name);
                tracing::error!("Saltcheck: {last} is not a valid function");
            }
            known
        }
    };
    let sound = parts.iter().filter(|part| is_sound(part)).count();
    if !is_known || sound < parts.len() || parts.is_empty() {
        return Ok(entries! { "status" => "Fail - invalid test", "duration" => since(start) });
    }
    let args = test.get("args").and_then(|args| args.items_of_sequence()).unwrap_or_default();
    let kwargs = match test.get("kwargs") {
        Some(Value::Dict(kwargs)) => kwargs.shallow_copy(),
        _ => Dict::new(),
    };
    if let Some(pillar) = test.get("pillar_data").or_else(|| test.get("pillar-data")) {
        kwargs.insert("pillar", pillar);
    }
    let returned = cx.call(&function.unwrap_or_default(), Call { args, kwargs })?;
    let result = if several.is_some() {
        let all = Dict::new();
        let mut status = "Pass";
        for (index, part) in parts.iter().enumerate() {
            let one = checked(test, part, &returned);
            if one.get("status").is_none_or(|status| status.to_str() != "Pass") {
                status = "Fail";
            }
            all.insert(format!("assertion{}", index + 1), one);
        }
        all.insert("status", status);
        all
    } else {
        checked(test, test, &returned)
    };
    result.insert("duration", since(start));
    Ok(result)
}

/// Run one test, and return whether it passes.
///
/// ```console
/// $ salt '*' saltcheck.run_test test='{module_and_function: test.ping, assertion: assertTrue}'
/// ```
#[function]
pub fn run_test(
    cx: &Cx,
    /// `test`: the test.
    rest: Rest,
) -> Result<Value> {
    match rest.kwargs.get("test") {
        Some(Value::Dict(test)) if !test.is_empty() => Ok(tested(cx, &test)?.into()),
        _ => Ok("Test argument must be a dictionary".into()),
    }
}

/// Run tests given by name.
///
/// ```console
/// $ salt '*' saltcheck.parallel_scheck '{one: {module_and_function: test.ping, assertion: assertTrue}}'
/// ```
#[function]
pub fn parallel_scheck(
    cx: &Cx,
    /// The tests: name → test.
    data: Dict,
) -> Result<Dict> {
    let results = Dict::new();
    for (name, test) in data.entries() {
        if let Value::Dict(test) = test {
            results.insert(name, tested(cx, &test)?);
        }
    }
    Ok(results)
}

/// Apply states: for tests that need something set up, or removed.
///
/// ```console
/// $ salt web1 saltcheck.state_apply web.nginx
/// ```
#[function]
pub fn state_apply(
    cx: &Cx,
    /// The SLS.
    state_name: String,
    /// As for `state.apply`.
    rest: Rest,
) -> Result<Value> {
    let kwargs = rest.kwargs.shallow_copy();
    cx.call("state.apply", Call { args: vec![state_name.into()], kwargs })
}

/// The SLS a state consists of, itself first.
fn parts_of(cx: &Cx, state: &str, saltenv: &str) -> Vec<String> {
    let mut all = vec![state.to_owned()];
    let call = Call { args: vec![state.into()], kwargs: entries! { "saltenv" => saltenv } };
    // A state that does not render has the tests of its own name, and whoever applies it hears why.
    let low = cx.call("state.show_low_sls", call).unwrap_or_default();
    for chunk in low.items_of_sequence().unwrap_or_default() {
        let sls = chunk.get("__sls__").map(|sls| sls.to_str().to_string()).unwrap_or_default();
        if !sls.is_empty() && !all.contains(&sls) {
            all.push(sls);
        }
    }
    all
}

/// Where the tests of an SLS may lie.
fn places(sls: &str) -> [String; 2] {
    let path = sls.replace('.', "/");
    let (folder, last) = match path.rsplit_once('/') {
        Some((folder, last)) => (format!("{folder}/"), last.to_owned()),
        None => (String::new(), path.clone()),
    };
    [format!("{path}/{FOLDER}/init.tst"), format!("{folder}{FOLDER}/{last}.tst")]
}

/// The tests in one file; none if it is not there.
fn tests_in(cx: &Cx, path: &str, saltenv: &str) -> Result<Option<Dict>> {
    let address = format!("salt://{path}");
    let Some(file) = cx.files.cache(&address, saltenv)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&cx.host.read(&file)?).into_owned();
    let template = Template {
        engine: "jinja|yaml".to_owned(),
        text,
        source: Some(address),
        saltenv: saltenv.to_owned(),
        sls: Some(path.trim_end_matches(".tst").replace('/', ".")),
        context: Dict::new(),
    };
    match cx.runtime.compile(cx, &template)? {
        Value::Dict(tests) => Ok(Some(tests)),
        _ => Ok(Some(Dict::new())),
    }
}

/// All tests of a state, by name.
fn tests_of(cx: &Cx, state: &str, saltenv: &str, check_all: bool) -> Result<Dict> {
    let mut paths: Vec<String> = Vec::new();
    for sls in parts_of(cx, state, saltenv) {
        paths.extend(places(&sls));
    }
    if check_all {
        let folder = format!("{}/{FOLDER}/", state.replace('.', "/"));
        let files = cx.files.list(saltenv, &folder)?;
        paths.extend(files.into_iter().filter(|path| path.ends_with(".tst")));
    }
    let tests = Dict::new();
    let mut seen = Vec::new();
    for path in paths {
        if seen.contains(&path) {
            continue;
        }
        if let Some(more) = tests_in(cx, &path, saltenv)? {
            tests.update(&more);
        }
        seen.push(path);
    }
    Ok(tests)
}

/// Runs the tests of states; returns results by state, and the sum.
fn run_all(
    cx: &Cx,
    states: &[String],
    saltenv: &str,
    check_all: bool,
    only_fails: bool,
) -> Result<Value> {
    let results = Dict::new();
    let mut empty = Vec::new();
    let (mut passed, mut failed, mut skipped, mut time) = (0, 0, 0, 0.0);
    // A test that several states bring along counts once.
    let mut done: Vec<String> = Vec::new();
    for state in states {
        let own = Dict::new();
        for (name, test) in tests_of(cx, state, saltenv, check_all)?.entries() {
            let Value::Dict(test) = test else { continue };
            let title = name.to_str().to_string();
            if done.contains(&title) {
                continue;
            }
            done.push(title);
            let result = tested(cx, &test)?;
            let status = result.get("status").unwrap_or_default().to_str();
            time += result.get("duration").and_then(|time| time.as_float()).unwrap_or_default();
            match status.as_str() {
                "Pass" => passed += 1,
                "Skip" => skipped += 1,
                _ => failed += 1,
            }
            if !only_fails || status.starts_with("Fail") {
                own.insert(name, result);
            }
        }
        if own.is_empty() {
            empty.push(state.clone());
        } else {
            results.insert(state, own);
        }
    }
    // Those without tests are told of only if there are no others.
    let mut missing = 0;
    if passed + failed + skipped == 0 {
        for state in &empty {
            results.insert(state, Dict::new());
            missing += 1;
        }
    }
    if failed > 0 || missing > 0 {
        cx.job.set_retcode(1);
    }
    let time = (time * 10_000.0).round() / 10_000.0;
    let sum = entries! {
        "Execution Time" => time, "Passed" => passed, "Failed" => failed, "Skipped" => skipped,
        "Missing Tests" => missing,
    };
    let each = results.entries().into_iter().map(|pair| Value::from(Dict::from_iter([pair])));
    let each: Vec<Value> = each.collect();
    Ok(Value::list([each, vec![entries! { "TEST RESULTS" => sum }.into()]].concat()))
}

fn env_of(cx: &Cx, saltenv: Option<String>) -> String {
    saltenv.filter(|env| !env.is_empty()).unwrap_or_else(|| cx.saltenv())
}

/// Run the tests of states, and of all they include.
///
/// ```console
/// $ salt web1 saltcheck.run_state_tests web.nginx,web.tls
/// ```
#[function]
pub fn run_state_tests(
    cx: &Cx,
    /// The states: a list, or one text with commas.
    state: Strings,
    /// The environment.
    saltenv: Option<String>,
    /// Run every file of tests in the folders of the states.
    #[default(false)]
    check_all: bool,
    /// Return failures only.
    #[default(false)]
    only_fails: bool,
    /// Accepted, as Salt does where it cannot write JUnit's XML.
    #[default(false)]
    junit: bool,
) -> Result<Value> {
    let _ = junit;
    let saltenv = env_of(cx, saltenv);
    let states: Vec<String> = state.iter().map(|name| name.trim().to_owned()).collect();
    run_all(cx, &states, &saltenv, check_all, only_fails)
}

alias! { run_state_tests_ssh = run_state_tests }

/// The states the top file gives this minion.
fn highstates(cx: &Cx, saltenv: &str) -> Result<Vec<String>> {
    let top = cx.call("state.show_top", Call { args: Vec::new(), kwargs: Dict::new() })?;
    let names = top.get(saltenv).and_then(|names| names.items_of_sequence());
    let names = names.ok_or_else(|| Error::failed(format!("the top file has no {saltenv}")))?;
    Ok(names.iter().map(|name| name.to_str().to_string()).collect())
}

/// Run the tests of all states the top file gives this minion.
///
/// ```console
/// $ salt web1 saltcheck.run_highstate_tests
/// ```
#[function]
pub fn run_highstate_tests(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
    /// Return failures only.
    #[default(false)]
    only_fails: bool,
    /// Accepted, as Salt does where it cannot write JUnit's XML.
    #[default(false)]
    junit: bool,
) -> Result<Value> {
    let _ = junit;
    let saltenv = env_of(cx, saltenv);
    run_all(cx, &highstates(cx, &saltenv)?, &saltenv, false, only_fails)
}

/// Tell which states of the top file have tests, and which have none.
///
/// ```console
/// $ salt web1 saltcheck.report_highstate_tests
/// ```
#[function]
pub fn report_highstate_tests(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
) -> Result<Dict> {
    let saltenv = env_of(cx, saltenv);
    let (mut with, mut without): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for state in highstates(cx, &saltenv)? {
        for sls in parts_of(cx, &state, &saltenv) {
            if with.contains(&sls) || without.contains(&sls) {
                continue;
            }
            let mut found = false;
            for path in places(&sls) {
                found = found || tests_in(cx, &path, &saltenv)?.is_some();
            }
            if found { with.push(sls) } else { without.push(sls) }
        }
    }
    let missing = i64::try_from(without.len()).unwrap_or(i64::MAX);
    cx.job.set_retcode(missing);
    let report = entries! {
        "Missing Tests" => missing, "States missing tests" => Value::list(without),
        "States with tests" => Value::list(with),
    };
    Ok(entries! { "TEST REPORT RESULTS" => report })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(assertion: &str, expected: impl Into<Value>, returned: impl Into<Value>, said: &str) {
        let returned = returned.into();
        let expected = cast(expected.into(), &returned);
        assert_eq!(verdict(assertion, &expected, &returned), said);
    }

    #[test]
    fn assertions() {
        check("assertEqual", "x", "x", "Pass");
        check("assertEqual", "no", "yes", "Fail: no is not equal to yes");
        check("assertEqual", 1, "1", "Pass");
        check("assertEqual", "1", 1, "Pass");
        check("assertNotEqual", 1, 1, "Fail: 1 is equal to 1");
        check("assertTrue", Value::Null, "x", "Fail: x not True");
        check("assertTrue", Value::Null, true, "Pass");
        check("assertFalse", Value::Null, false, "Pass");
        check("assertGreater", 3, 2, "Pass");
        check("assertGreater", 2, 3, "Fail: 3 not False");
        check("assertGreaterEqual", 2, 2, "Pass");
        check("assertLess", 2, 1, "Fail: 1 not False");
        check("assertLessEqual", 1, 2, "Pass");
        check("assertIn", "a", "abc", "Pass");
        check("assertIn", "z", "abc", "Fail: z not found in abc");
        check("assertNotIn", "a", "abc", "Fail: a was found in abc");
        check("assertEmpty", Value::Null, "x", "Fail: x is not empty");
        check("assertNotEmpty", Value::Null, "", "Fail: value is empty");
    }

    #[test]
    fn places_of_tests() {
        assert_eq!(places("web"), ["web/saltcheck-tests/init.tst", "saltcheck-tests/web.tst"]);
        assert_eq!(
            places("web.more"),
            ["web/more/saltcheck-tests/init.tst", "web/saltcheck-tests/more.tst"]
        );
    }
}
