//! The renderer `gpg`: texts sealed with OpenPGP become what is in them.
//!
//! Every text of the data (or the text itself, where `gpg` stands before `yaml`) is looked through
//! for `-----BEGIN PGP MESSAGE-----` … `-----END PGP MESSAGE-----`; each such block is replaced by
//! what it says. The keys stay where they are: opening a message is left to a function, which runs
//! `gpg` with the configured key ring.

use std::sync::Arc;

use halite_value::{Dict, Value};

use crate::pipeline::{Data, Error, RenderCx, Renderer};

const BEGIN: &str = "-----BEGIN PGP MESSAGE-----";
const END: &str = "-----END PGP MESSAGE-----";

/// Opens one message; the error is what `gpg` said.
pub type Open = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// The renderer `gpg`.
pub struct Gpg {
    pub open: Open,
    /// A message that cannot be opened is an error; otherwise it stays as it is.
    pub must_succeed: bool,
}

impl Gpg {
    fn text(&self, text: &str) -> Result<Option<String>, Error> {
        if !text.contains(BEGIN) {
            return Ok(None);
        }
        let mut out = String::new();
        let mut rest = text.trim();
        while let Some(start) = rest.find(BEGIN) {
            let Some(length) = rest.get(start..).and_then(|rest| rest.find(END)) else { break };
            let end = start + length + END.len();
            let (before, message) =
                (rest.get(..start).unwrap_or_default(), rest.get(start..end).unwrap_or_default());
            out.push_str(before);
            match (self.open)(message) {
                Ok(opened) => out.push_str(&opened),
                Err(said) if self.must_succeed => {
                    return Err(Error::new(format!(
                        "Could not decrypt cipher {}, received: {}",
                        bytes_repr(message),
                        bytes_repr(&said)
                    )));
                }
                Err(_) => out.push_str(message),
            }
            rest = rest.get(end..).unwrap_or_default();
        }
        out.push_str(rest);
        Ok(Some(out))
    }

    fn value(&self, value: Value) -> Result<Value, Error> {
        Ok(match &value {
            Value::Str(text) => self.text(text)?.map_or(value.clone(), Value::from),
            Value::List(list) => {
                let items: Result<Vec<Value>, Error> =
                    list.into_iter().map(|item| self.value(item)).collect();
                Value::list(items?)
            }
            Value::Dict(dict) => {
                let opened = Dict::new();
                for (key, item) in dict {
                    opened.insert(key, self.value(item)?);
                }
                opened.into()
            }
            _ => value,
        })
    }
}

/// As Python shows bytes.
fn bytes_repr(text: &str) -> String {
    format!("b{}", Value::from(text).repr())
}

impl Renderer for Gpg {
    fn name(&self) -> &str {
        "gpg"
    }

    fn render(&self, input: Data, _args: &str, _cx: &RenderCx<'_>) -> Result<Data, Error> {
        Ok(match input {
            Data::Text(text) => match self.text(text.as_str())? {
                Some(opened) => Data::Text(text.rendered(opened, None)),
                None => Data::Text(text),
            },
            Data::Value(value) => Data::Value(self.value(value)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    fn gpg(must_succeed: bool) -> Gpg {
        let open: Open = Arc::new(|message| {
            let inner = message.trim_start_matches(BEGIN).trim_end_matches(END).trim();
            if inner == "bad" { Err("gpg: no".into()) } else { Ok(inner.to_uppercase()) }
        });
        Gpg { open, must_succeed }
    }

    fn sealed(text: &str) -> String {
        format!("{BEGIN}\n\n{text}\n{END}\n")
    }

    #[test]
    fn opens_every_message() {
        let found = gpg(true)
            .value(dict! { "a" => sealed("x"), "b" => list!["plain\n", format!("q {}r\n", sealed("y"))], "n" => 1 })
            .unwrap();
        assert_eq!(found, dict! { "a" => "X", "b" => list!["plain\n", "q Y\nr"], "n" => 1 });
    }

    #[test]
    fn says_what_is_wrong() {
        let error = gpg(true).value(Value::from(sealed("bad"))).unwrap_err().to_string();
        assert!(
            error.starts_with("Could not decrypt cipher b'-----BEGIN PGP MESSAGE-----\\n"),
            "{error}"
        );
        assert!(error.ends_with("received: b'gpg: no'"), "{error}");
        let kept = gpg(false).value(Value::from(sealed("bad"))).unwrap();
        assert_eq!(kept, Value::from(sealed("bad").trim()));
    }
}
