//! Arguments of functions, as Salt reads them from the command line.

use halite_value::{Dict, SmolStr, Value};
pub use halite_wire::typed::{keyword, yamlify};

use crate::programs::is_jid;

/// Arguments by position and by name.
#[derive(Clone, Debug, Default)]
pub struct Args {
    pub args: Vec<Value>,
    pub kwargs: Dict,
}

impl Args {
    /// Reads arguments. The values of the keywords in `no_parse` are taken as they are.
    #[must_use]
    pub fn parse(typed: &[String], no_parse: &[SmolStr]) -> Self {
        let read = Self::default();
        let mut args = Vec::new();
        for arg in typed {
            match keyword(arg) {
                Some((name, value)) if no_parse.iter().any(|raw| raw == name) => {
                    read.kwargs.insert(name, value);
                }
                Some((name, value)) => {
                    read.kwargs.insert(name, yamlify(value));
                }
                None => args.push(jid_as_text(&yamlify(arg))),
            }
        }
        Self { args, ..read }
    }

    /// Reads the arguments of a call that is made here: a dict marked with `__kwarg__: true` holds
    /// keyword arguments, as a minion would take it.
    #[must_use]
    pub fn of_call(typed: &[String], no_parse: &[SmolStr]) -> Self {
        let read = halite_wire::Args::read(&Self::parse(typed, no_parse).condition());
        Self { args: read.args, kwargs: read.kwargs }
    }

    /// Returns the one list that is published: the keywords last, in a marked dict.
    #[must_use]
    pub fn condition(&self) -> Vec<Value> {
        let mut list: Vec<Value> = self.args.clone();
        if !self.kwargs.is_empty() {
            let marked = Dict::new();
            marked.insert("__kwarg__", true);
            marked.update(&self.kwargs);
            list.push(Value::Dict(marked));
        }
        list
    }
}

/// Job ids are texts everywhere, though they look like numbers.
fn jid_as_text(arg: &Value) -> Value {
    let text = arg.to_str();
    match arg {
        Value::Int(_) | Value::BigInt(_) if is_jid(&text) => Value::Str(text),
        _ => arg.clone(),
    }
}

/// Why the arguments of a compound command cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompoundError {
    TooFew,
    TooMany,
}

impl CompoundError {
    /// Returns Salt's message.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::TooFew => "Cannot execute compound command without defining all arguments.\n",
            Self::TooMany => "Cannot execute compound command with more arguments than commands.\n",
        }
    }
}

/// Shares the arguments of a compound command (`a.b,c.d x , y`) among its functions.
///
/// If separators standing alone give the right number of parts, they separate; otherwise every
/// separator inside an argument does.
pub fn share_out(
    functions: usize,
    typed: &[String],
    separator: &str,
) -> Result<Vec<Vec<String>>, CompoundError> {
    let alone = typed.iter().filter(|arg| *arg == separator).count();
    if alone + 1 == functions {
        return Ok(typed.split(|arg| arg == separator).map(<[String]>::to_vec).collect());
    }
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    for arg in typed {
        for (number, piece) in arg.split(separator).enumerate() {
            if number > 0 {
                parts.push(Vec::new());
            }
            // An empty argument is only an argument when it was typed as one.
            let last = parts.last_mut().expect("there is always a part");
            if !piece.is_empty() || arg.is_empty() {
                last.push(piece.into());
            }
        }
    }
    match parts.len().cmp(&functions) {
        std::cmp::Ordering::Less => Err(CompoundError::TooFew),
        std::cmp::Ordering::Greater => Err(CompoundError::TooMany),
        std::cmp::Ordering::Equal => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    fn shared(functions: usize, line: &str, separator: &str) -> Result<Vec<String>, CompoundError> {
        let typed: Vec<String> = line.split('|').map(String::from).collect();
        let typed = if line.is_empty() { Vec::new() } else { typed };
        share_out(functions, &typed, separator)
            .map(|parts| parts.iter().map(|part| part.join("|")).collect())
    }

    // Answers of genuine Salt's `test.arg`, by salt-call and by salt-run.
    #[test]
    fn a_marked_dict_holds_keyword_arguments() {
        let check = |typed: &[&str], args: Value, kwargs: Value| {
            let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
            let read = Args::of_call(&typed, &[]);
            assert_eq!((Value::from(read.args), Value::from(read.kwargs)), (args, kwargs));
        };
        check(&["{__kwarg__: true, x: 2, y: 1}", "x=3"], list![], dict! { "x" => 3, "y" => 1 });
        check(&["a", "{__kwarg__: 1, x: 2}"], list!["a", dict! { "x" => 2 }], dict! {});
        check(&["{x: 2}"], list![dict! { "x" => 2 }], dict! {});
    }

    // Answers of genuine Salt's command line.
    #[test]
    fn compound_commands() {
        let ok = |parts: &[&str]| Ok(parts.iter().map(|part| (*part).to_string()).collect());
        assert_eq!(shared(2, "a|,|b", ","), ok(&["a", "b"]));
        assert_eq!(shared(2, "a,b|,|c", ","), ok(&["a,b", "c"]));
        assert_eq!(shared(2, "a,b", ","), ok(&["a", "b"]));
        assert_eq!(shared(2, ",", ","), ok(&["", ""]));
        assert_eq!(shared(3, "a,,b", ","), ok(&["a", "", "b"]));
        assert_eq!(shared(2, "a,|b", ","), ok(&["a", "b"]));
        assert_eq!(shared(2, "a|++|b,c", "++"), ok(&["a", "b,c"]));
        assert_eq!(shared(2, "a b", ","), Err(CompoundError::TooFew));
        assert_eq!(shared(2, "", ","), Err(CompoundError::TooFew));
        assert_eq!(shared(2, "a,b,c", ","), Err(CompoundError::TooMany));
    }
}
