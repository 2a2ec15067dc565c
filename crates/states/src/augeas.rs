//! `augeas`: parts of configuration files, by the program `augtool`.
//!
//! What the commands would do is found out by running them with saving switched off, so `test=True`
//! and a second run know whether a file would be another.

use std::path::Path;

use halite_modules::{
    augeas::{self, Session},
    file::content::{Lenient, difference_of},
};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Rest, Result, State, states};
use halite_value::{Value, entries};

states! {
    /// Parts of configuration files, by Augeas.
    "augeas", needs = [
        Need::function("augeas.execute", "augeas module could not be loaded"),
    ]: "change" => Change,
}

/// Change configuration files by Augeas commands: `set`, `setm`, `mv`, `ins` and `rm`.
///
/// ```yaml
/// redis-conf:
///   augeas.change:
///     - context: /files/etc/redis/redis.conf
///     - changes:
///       - set bind 0.0.0.0
///       - set maxmemory 1G
/// ```
#[derive(Args)]
pub struct Change {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: String,
    /// Where paths begin: a file, with `/files` before it.
    context: Option<String>,
    /// The commands.
    changes: Option<Value>,
    /// The lens to read that file by, as `Hosts.lns`.
    lens: Option<String>,
    /// Further folders of lenses.
    load_path: Option<Value>,
    /// Salt takes further arguments and ignores them.
    #[expect(dead_code, reason = "ignored")]
    kwargs: Rest,
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let Value::List(list) = value else { return None };
    Some(list.to_vec().iter().map(|item| item.to_str().to_string()).collect())
}

impl Change {
    fn commands(&self) -> Result<Vec<String>> {
        let commands = self.changes.as_ref().and_then(texts).filter(|list| !list.is_empty());
        commands.ok_or_else(|| Error::failed("'changes' must be specified as a list"))
    }

    fn session(&self) -> Result<Session> {
        let load_path = match &self.load_path {
            None | Some(Value::Null) => Vec::new(),
            Some(value) => texts(value)
                .ok_or_else(|| Error::failed("'load_path' must be specified as a list"))?,
        };
        Ok(Session { context: self.context.clone(), lens: self.lens.clone(), load_path })
    }
}

impl State for Change {
    /// The files that would be another, with their content.
    type Seen = Vec<(String, Vec<u8>)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let commands = self.commands()?;
        let files = augeas::rehearse(cx, &self.session()?, &commands)?;
        let files = files.map_err(|problem| Error::failed(format!("Error: {problem}")))?;
        let mut seen = Vec::new();
        for file in files {
            let content = cx.host.read_if_there(Path::new(&file))?.unwrap_or_default();
            seen.push((file, content));
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        if seen.is_empty() {
            return Ok(Plan::nothing("No changes made"));
        }
        let commands = self.commands()?.join("\n");
        // differs: with `test=True` Salt says so, with the result True, also when nothing would change.
        let pending = match &self.context {
            Some(context) => format!("Executing commands in file \"{context}\":\n{commands}"),
            None => format!("Executing commands{commands}"),
        };
        Ok(Plan::unknown().pending(pending).done("Changes have been saved"))
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let done = augeas::perform(cx, &self.session()?, &self.commands()?)?;
        done.map_err(|problem| Error::failed(format!("Error: {problem}")))?;
        let mut diff = String::new();
        for (file, old) in seen {
            let new = cx.host.read_if_there(Path::new(&file))?.unwrap_or_default();
            diff.push_str(&difference_of(&old, &new, &Lenient::default()).text);
        }
        Ok(Applied::changes(entries! { "diff" => diff }))
    }
}
