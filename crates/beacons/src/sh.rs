//! `sh`: an event for each command that people start in a shell.
//!
// differs: genuine Salt traces shells with `strace`; this looks at the processes that shells with a
// terminal have started, so commands that end between two looks go unseen, and shells run as fast
// as ever.

use std::{collections::HashSet, path::Path};

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell which commands people start in shells.
    "sh": Sh
}

const SHELLS: [&str; 8] = ["ash", "bash", "csh", "dash", "fish", "ksh", "sh", "zsh"];

#[derive(Default)]
pub struct Sh {
    seen: Option<HashSet<String>>,
}

impl Watch for Sh {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list().map(drop)
    }

    fn look(&mut self, cx: &Cx, _: &Config) -> Result<Vec<Dict>> {
        let mut now = HashSet::new();
        let mut events = Vec::new();
        for entry in cx.host.read_dir(Path::new("/proc"))? {
            let pid = entry.to_string_lossy().into_owned();
            if !pid.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let Some((parent, start, terminal)) = stat(cx, &pid) else { continue };
            let key = format!("{pid}/{start}");
            let is_known = self.seen.as_ref().is_none_or(|seen| seen.contains(&key));
            now.insert(key);
            if is_known || !terminal || !is_shell(cx, &parent) {
                continue;
            }
            let folder = Path::new("/proc").join(&pid);
            let Ok(line) = cx.host.read_text(&folder.join("cmdline")) else { continue };
            let mut words = line.split('\0').filter(|word| !word.is_empty());
            let Some(command) = words.next() else { continue };
            let args: Vec<Value> = words.map(Value::from).collect();
            let uid = cx.host.stat(&folder, true).map(|stat| stat.uid).unwrap_or_default();
            let user = cx.host.user_with_id(uid).ok().flatten();
            let user = user.map_or_else(|| uid.to_string(), |user| user.name);
            events.push(entries! { "tag" => user.as_str(), "user" => user.as_str(), "cmd" => command, "args" => args });
        }
        self.seen = Some(now);
        Ok(events)
    }
}

/// Returns a process's parent, its start, and whether it has a terminal.
fn stat(cx: &Cx, pid: &str) -> Option<(String, String, bool)> {
    let text = cx.host.read_text(&Path::new("/proc").join(pid).join("stat")).ok()?;
    // The name may hold blanks and brackets; the last bracket ends it.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(((*fields.get(1)?).to_owned(), (*fields.get(19)?).to_owned(), *fields.get(4)? != "0"))
}

fn is_shell(cx: &Cx, pid: &str) -> bool {
    let name = cx.host.read_text(&Path::new("/proc").join(pid).join("comm"));
    name.is_ok_and(|name| SHELLS.contains(&name.trim()))
}
