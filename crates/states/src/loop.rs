//! `loop`: call a function until it answers as it should.
//!
//! `until` has a condition in Python. It is evaluated as a Jinja expression, which looks the same:
//! comparisons, membership, keys and items of `m_ret`, `and`, `or`, `not`, methods of texts.
// differs: Salt evaluates any Python expression in `condition`.

use std::time::Duration;

use halite_spec::{Applied, Args, Call, Cx, Error, Keys, Plan, Result, State, Template, states};
use halite_value::{Dict, Value, entries, lookup};

states! {
    /// Call a function until it answers as it should.
    "loop": "until" => Until,
    "until_no_eval" => UntilNoEval,
}

fn call_of(args: Option<&Vec<Value>>, kwargs: Option<&Dict>) -> Call {
    Call {
        args: args.cloned().unwrap_or_default(),
        kwargs: kwargs.map(Dict::shallow_copy).unwrap_or_default(),
    }
}

fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or_default()
}

/// Writes a condition as Jinja has it: `is True` is a test there, with a small letter.
fn as_jinja(condition: &str) -> String {
    let mut text = String::with_capacity(condition.len());
    let (mut quote, mut last) = (None, "");
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = condition;
    while let Some(first) = rest.chars().next() {
        let end = match is_part(first) && quote.is_none() {
            true => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        match (quote, first) {
            (None, '"' | '\'') => quote = Some(first),
            (Some(open), _) if open == first => quote = None,
            _ => {}
        }
        let is_tested = last == "is" && matches!(word, "True" | "False" | "None");
        text += &if is_tested { word.to_lowercase() } else { word.to_owned() };
        // `is not None` is the same test.
        if !(word.trim().is_empty() || last == "is" && word == "not") {
            last = word;
        }
    }
    text
}

/// Evaluates a condition on a return.
fn holds(cx: &Cx, condition: &str, ret: &Value) -> Result<bool> {
    let template = Template {
        engine: "jinja".into(),
        text: format!("{{% if {} %}}yes{{% endif %}}", as_jinja(condition)),
        source: None,
        saltenv: cx.saltenv(),
        sls: None,
        context: entries! { "m_ret" => ret },
    };
    Ok(cx.runtime.render(cx, &template)?.trim() == "yes")
}

/// Python's `in`, the other way round.
fn contains(holder: &Value, item: &Value) -> bool {
    match holder {
        Value::Str(text) => item.as_str().is_some_and(|item| text.contains(item)),
        Value::Dict(dict) => dict.keys().iter().any(|key| key.value() == item),
        other => other.items_of_sequence().is_some_and(|items| items.contains(item)),
    }
}

/// Call a function until a condition holds for its return.
#[derive(Args)]
pub struct Until {
    /// The function.
    name: String,
    /// Its positional arguments.
    m_args: Option<Vec<Value>>,
    /// Its keyword arguments.
    m_kwargs: Option<Dict>,
    /// What must hold; the return is called `m_ret`.
    condition: Option<String>,
    /// Seconds between two calls.
    #[default(Value::from(1))]
    period: Value,
    /// Seconds to try.
    #[default(Value::from(60))]
    timeout: Value,
}

impl State for Until {
    type Seen = bool;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(cx.runtime.has(cx, &self.name))
    }

    fn plan(&self, known: &bool) -> Result<Plan> {
        if !known {
            return Err(Error::failed(format!("Cannot find module {}", self.name)));
        }
        if self.condition.is_none() {
            return Err(Error::failed("An exit condition must be specified"));
        }
        let pending = format!("The execution module {} will be run", self.name);
        Ok(Plan::unknown().pending(pending))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let text = self.condition.as_deref().unwrap_or_default();
        let period = seconds(self.period.as_float().unwrap_or(1.0));
        let limit = self.timeout.as_float().unwrap_or(60.0);
        let began = cx.host.now();
        loop {
            let call = call_of(self.m_args.as_ref(), self.m_kwargs.as_ref());
            let ret = cx.call(&self.name, call)?;
            if holds(cx, text, &ret)? {
                let text = format!("Condition {text} was met");
                return Ok(Applied::changes(Dict::new()).comment(text));
            }
            let gone = cx.host.now().duration_since(began).unwrap_or_default();
            if gone.as_secs_f64() > limit {
                let text = format!("Timed out while waiting for condition {text}");
                return Ok(Applied::failed(Dict::new(), text));
            }
            cx.sleep(period)?;
        }
    }
}

/// Call a function until its return compares well with a value.
#[derive(Args)]
pub struct UntilNoEval {
    /// The function.
    name: String,
    /// The value.
    expected: Value,
    /// `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `contains`, `data.subdict_match` …
    #[default("eq".to_owned())]
    compare_operator: String,
    /// Seconds to try.
    #[default(Value::from(60))]
    timeout: Value,
    /// Seconds between two calls.
    #[default(Value::from(1))]
    period: Value,
    /// Seconds before the first call.
    #[default(Value::from(0))]
    init_wait: Value,
    /// Its positional arguments.
    args: Option<Vec<Value>>,
    /// Its keyword arguments.
    kwargs: Option<Dict>,
}

impl UntilNoEval {
    /// Nothing when there is no such comparison.
    fn compares(&self, ret: &Value) -> Option<bool> {
        let order = ret.compare(&self.expected);
        Some(match self.compare_operator.as_str() {
            "eq" | "__eq__" => *ret == self.expected,
            "ne" | "__ne__" => *ret != self.expected,
            "lt" | "__lt__" => order.is_some_and(std::cmp::Ordering::is_lt),
            "le" | "__le__" => order.is_some_and(std::cmp::Ordering::is_le),
            "gt" | "__gt__" => order.is_some_and(std::cmp::Ordering::is_gt),
            "ge" | "__ge__" => order.is_some_and(std::cmp::Ordering::is_ge),
            "is_" => ret.is_same(&self.expected),
            "is_not" => !ret.is_same(&self.expected),
            "contains" | "__contains__" => contains(ret, &self.expected),
            "data.subdict_match" => {
                let expected = self.expected.to_string();
                let mut parts = expected.rsplitn(2, ':');
                let (value, path) = (parts.next().unwrap_or_default(), parts.next());
                path.and_then(|path| lookup::traverse(ret, path, ":"))
                    .is_some_and(|own| own.to_str() == value)
            }
            _ => return None,
        })
    }
}

impl State for UntilNoEval {
    type Seen = bool;
    const KEYS: Keys = Keys(["name", "comment", "changes", "result"]);

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(cx.runtime.has(cx, &self.name))
    }

    fn plan(&self, known: &bool) -> Result<Plan> {
        let name = &self.name;
        if !known {
            return Err(Error::failed(format!("Module.function \"{name}\" is unavailable.")));
        }
        if self.compares(&Value::Null).is_none() {
            let text = format!("Invalid operator \"{}\" supplied.", self.compare_operator);
            return Err(Error::failed(text));
        }
        let pending = format!("Would have waited for \"{name}\" to produce \"{}\".", self.expected);
        Ok(Plan::unknown().pending(pending))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let wait = self.init_wait.as_float().unwrap_or(0.0);
        if wait > 0.0 {
            cx.sleep(seconds(wait))?;
        }
        let period = seconds(self.period.as_float().unwrap_or(1.0));
        let limit = self.timeout.as_float().unwrap_or(60.0);
        let began = cx.host.now();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let ret = cx.call(&self.name, call_of(self.args.as_ref(), self.kwargs.as_ref()))?;
            if self.compares(&ret) == Some(true) {
                let text = format!("Call provided the expected results in {attempts} attempts");
                return Ok(Applied::changes(Dict::new()).comment(text));
            }
            cx.sleep(period)?;
            let gone = cx.host.now().duration_since(began).unwrap_or_default();
            if gone.as_secs_f64() >= limit {
                let text =
                    format!("Call did not produce the expected result after {attempts} attempts");
                return Ok(Applied::failed(Dict::new(), text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_tested_as_in_python() {
        for (condition, expected) in [
            ("m_ret is True", "m_ret is true"),
            (
                "m_ret is not None and m_ret['is True'] is False",
                "m_ret is not none and m_ret['is True'] is false",
            ),
            ("m_ret == True", "m_ret == True"),
            ("this True", "this True"),
            ("\"ä is None\" in m_ret", "\"ä is None\" in m_ret"),
        ] {
            assert_eq!(as_jinja(condition), expected);
        }
    }
}
