//! Salt's own words, for programs.
//!
//! Errors of states point at the author's line and offer help (`\n  --> web.sls:4:7`,
//! `\n   = help: did you mean …`). People read that; a program that compares a list of errors with
//! the texts genuine Salt has known for years must find just these. So the formats that programs
//! read (`json`, `yaml`, `raw`, `txt`, `pprint`) leave the pointers out.
//!
//! They are looked for only where states put them: in a return that is a list of texts, and in the
//! comment of a state's return, also below the `data` of an orchestration. What commands printed is nobody's to change.

use std::borrow::Cow;

use halite_value::{Dict, Value};

/// Returns the return without pointers; itself if it has none.
pub(crate) fn words(ret: &Value) -> Cow<'_, Value> {
    match ret {
        // Minion → return.
        Value::Dict(minions) if minions.read().values().any(has_pointers) => {
            let plain: Dict =
                minions.into_iter().map(|(minion, ret)| (minion, without_pointers(&ret))).collect();
            Cow::Owned(plain.into())
        }
        other if has_pointers(other) => Cow::Owned(without_pointers(other)),
        other => Cow::Borrowed(other),
    }
}

/// The returns of an orchestration, which stand beside their outputter.
fn orchestrated(ret: &Dict) -> Option<Value> {
    ret.get("outputter")?;
    ret.get("data").filter(|data| data.as_dict().is_some())
}

fn has_pointers(ret: &Value) -> bool {
    match ret {
        Value::Dict(run) if let Some(data) = orchestrated(run) => {
            matches!(words(&data), Cow::Owned(_))
        }
        Value::List(list) => list.read().iter().any(is_pointed),
        Value::Dict(states) => states
            .read()
            .values()
            .any(|state| state.get("comment").is_some_and(|it| is_pointed(&it))),
        _ => false,
    }
}

fn without_pointers(ret: &Value) -> Value {
    if !has_pointers(ret) {
        return ret.clone();
    }
    match ret {
        Value::List(list) => Value::list(list.read().iter().map(cut)),
        Value::Dict(run) if let Some(data) = orchestrated(run) => {
            let run = run.shallow_copy();
            run.insert("data", words(&data).into_owned());
            run.into()
        }
        Value::Dict(states) => {
            let states = states.into_iter().map(|(tag, state)| {
                let Some(comment) = state.get("comment").filter(is_pointed) else {
                    return (tag, state);
                };
                let Value::Dict(state) = state else { return (tag, state) };
                let state = state.shallow_copy();
                state.insert("comment", cut(&comment));
                (tag, state.into())
            });
            states.collect::<Dict>().into()
        }
        other => other.clone(),
    }
}

fn is_pointed(text: &Value) -> bool {
    text.as_str().is_some_and(|text| bare(text).len() != text.len())
}

fn cut(text: &Value) -> Value {
    match text.as_str() {
        Some(whole) if is_pointed(text) => Value::str(bare(whole)),
        _ => text.clone(),
    }
}

/// The text up to the pointers at its end; a line feed behind them stays the end.
fn bare(text: &str) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    if !body.as_bytes().contains(&b'\n') {
        return text;
    }
    let mut rest = body;
    while let Some((before, last)) = rest.rsplit_once('\n') {
        let help = last.strip_prefix("   = help: ").is_some();
        if !help && !last.strip_prefix("  --> ").is_some_and(is_place) {
            break;
        }
        rest = before;
    }
    // Help alone is nobody's pointer: it may be the end of a compiler's own output.
    let places = body[rest.len()..].contains("\n  --> ") || !body.contains("\n  --> ");
    if rest.len() == body.len() || !places {
        return text;
    }
    if body.len() == text.len() { rest } else { &text[..=rest.len()] }
}

/// `web/init.sls:4:7` or `web/init.sls:4`.
fn is_place(text: &str) -> bool {
    let Some((before, last)) = text.rsplit_once(':') else { return false };
    !before.is_empty() && !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn pointers_go_and_nothing_else() {
        let pointed = "No list\n  --> a.sls:4:7\n   = help: did you mean `b`?";
        let errors = dict! { "m" => list![pointed, "plain"] };
        assert_eq!(*words(&errors), dict! { "m" => list!["No list", "plain"] });
        let state =
            dict! { "m" => dict! { "t" => dict! { "comment" => pointed, "changes" => pointed } } };
        let expected = dict! { "m" => dict! { "t" => dict! { "comment" => "No list", "changes" => pointed } } };
        assert_eq!(*words(&state), expected);
        let missing = list!["Reason: none\n  --> a.sls:4:7\n"];
        assert_eq!(*words(&missing), list!["Reason: none\n"]);
        let local = list!["Bad\n  --> a.sls:4"];
        assert_eq!(*words(&local), list!["Bad"]);
        let run = |errors: Value| dict! { "local" => dict! { "data" => dict! { "m" => errors }, "outputter" => "highstate" } };
        assert_eq!(*words(&run(list![pointed])), run(list!["No list"]));
        for untouched in ["x\n  --> not a place", "a\nb", pointed] {
            let printed = dict! { "m" => untouched };
            assert!(matches!(words(&printed), Cow::Borrowed(_)), "{untouched}");
        }
    }
}
