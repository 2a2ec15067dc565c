//! Jobs: what a master publishes and what a minion returns.

use halite_value::{Dict, SmolStr, Value, entries};

use crate::{Error, Fields, Jid, MinionId};

/// Positional and keyword arguments as they travel: the latter as a map marked `__kwarg__`.
#[derive(Clone, Debug, Default)]
pub struct Args {
    pub args: Vec<Value>,
    pub kwargs: Dict,
}

impl Args {
    pub fn read(items: &[Value]) -> Self {
        let mut args = Self::default();
        for item in items {
            match item {
                Value::Dict(map) => {
                    let map = map.shallow_copy();
                    // Only `true` marks; any other value is dropped all the same, as in Salt.
                    match map.remove("__kwarg__") {
                        Some(Value::Bool(true)) => args.kwargs.update(&map),
                        _ => args.args.push(map.into()),
                    }
                }
                other => args.args.push(other.clone()),
            }
        }
        args
    }

    pub fn write(&self) -> Vec<Value> {
        let mut items = self.args.clone();
        if !self.kwargs.is_empty() {
            let named = self.kwargs.shallow_copy();
            named.insert("__kwarg__", true);
            items.push(named.into());
        }
        items
    }
}

/// A job as a minion gets it.
#[derive(Clone, Debug)]
pub struct Publication {
    pub jid: Jid,
    /// One function, or a list for a compound command.
    pub fun: Value,
    /// The arguments; for a compound command a list of lists.
    pub arg: Vec<Value>,
    pub tgt: Value,
    pub tgt_type: SmolStr,
    /// Returners, with commas.
    pub ret: SmolStr,
    pub user: SmolStr,
    /// Grows by one with each publication under one shared key.
    pub serial: Option<i64>,
    /// Everything else a master may add (`metadata`, `ret_config`, `to`, `master_id` …).
    pub extra: Dict,
}

const KNOWN: [&str; 8] = ["jid", "fun", "arg", "tgt", "tgt_type", "ret", "user", "serial"];

impl Publication {
    pub fn read(load: &Dict) -> Result<Self, Error> {
        let fields = Fields(load);
        let extra: Dict = load
            .into_iter()
            .filter(|(key, _)| !key.as_str().is_some_and(|key| KNOWN.contains(&key)))
            .collect();
        Ok(Self {
            jid: Jid::new(&fields.text("jid")?)?,
            fun: fields.value("fun")?,
            arg: fields.value("arg")?.items_of_sequence().ok_or(Error::Type("arg"))?,
            tgt: fields.value("tgt")?,
            tgt_type: fields.text_or("tgt_type", "glob")?,
            ret: fields.text_or("ret", "")?,
            user: fields.text_or("user", "")?,
            serial: fields.optional("serial").and_then(|serial| serial.as_int()),
            extra,
        })
    }

    pub fn write(&self) -> Dict {
        let load = entries! {
            "fun" => &self.fun, "arg" => self.arg.clone(), "tgt" => &self.tgt,
            "jid" => &self.jid, "ret" => &self.ret, "tgt_type" => &self.tgt_type,
            "user" => &self.user,
        };
        if let Some(serial) = self.serial {
            load.insert("serial", serial);
        }
        load.update(&self.extra);
        load
    }

    /// Returns the functions with their arguments: one, or those of a compound command.
    pub fn calls(&self) -> Vec<(SmolStr, Args)> {
        match &self.fun {
            Value::Str(fun) => vec![(fun.clone(), Args::read(&self.arg))],
            other => {
                let funs = other.items_of_sequence().unwrap_or_default();
                let args = self.arg.iter().map(|args| args.items_of_sequence().unwrap_or_default());
                funs.iter()
                    .zip(args.chain(std::iter::repeat(Vec::new())))
                    .map(|(fun, args)| (fun.to_str(), Args::read(&args)))
                    .collect()
            }
        }
    }
}

/// Whose return it is, and of which job; the rest is its load's business.
#[derive(Clone, Debug)]
pub struct Return {
    pub id: MinionId,
    /// A job id, or `req` / `nocache` when the master has to make one.
    pub jid: SmolStr,
}

impl Return {
    pub fn read(load: &Dict) -> Result<Self, Error> {
        let fields = Fields(load);
        let jid = fields.text("jid")?;
        if !matches!(jid.as_str(), "req" | "nocache") {
            Jid::new(&jid)?;
        }
        fields.value("return")?;
        Ok(Self { id: fields.minion_id("id")?, jid })
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn keyword_arguments_travel_in_a_marked_map() {
        let kwargs = entries! { "k" => 1 };
        let args = Args { args: vec!["a".into()], kwargs };
        let wire = args.write();
        assert_eq!(Value::from(wire.clone()), list!["a", dict! { "k" => 1, "__kwarg__" => true }]);
        let back = Args::read(&wire);
        assert_eq!((back.args.len(), back.kwargs.get("k")), (1, Some(Value::Int(1))));
        assert_eq!(Args::read(&[dict! { "plain" => 1 }]).args.len(), 1);
        let almost = Args::read(&[dict! { "__kwarg__" => 1, "k" => 2 }]);
        assert_eq!((Value::from(almost.args), almost.kwargs.len()), (list![dict! { "k" => 2 }], 0));
    }

    #[test]
    fn compound_commands_are_several_calls() {
        let load = entries! {
            "jid" => "20261115224046354303", "fun" => list!["test.ping", "test.echo"],
            "arg" => list![list![], list!["hi"]], "tgt" => "*",
        };
        let calls = Publication::read(&load).unwrap().calls();
        assert_eq!(calls.len(), 2);
        assert_eq!((calls[1].0.as_str(), calls[1].1.args.len()), ("test.echo", 1));
    }

    #[test]
    fn a_job_id_cannot_be_a_path() {
        let load = entries! { "id" => "m", "jid" => "../../x", "return" => true };
        assert!(matches!(Return::read(&load), Err(Error::Jid(_))));
        load.insert("jid", "req");
        assert!(Return::read(&load).is_ok());
    }
}
