//! `file.keyvalue`: settings of the form `key=value`, one per line.

use std::path::Path;

use halite_modules::file::{paths::expand_user, text::utf8};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, host::Write};
use halite_value::{Dict, Value};

use super::Found;

/// Manage settings of the form `key=value`, one per line.
#[derive(Args)]
pub struct Keyvalue {
    /// The file.
    name: String,
    /// One key.
    key: Option<Value>,
    /// Its value.
    value: Option<Value>,
    /// Several keys with their values.
    key_values: Option<Value>,
    /// What stands between key and value.
    #[default("=".to_owned())]
    separator: String,
    /// Add keys that are not there at the end.
    #[default(false)]
    append_if_not_found: bool,
    /// Add keys that are not there at the start.
    #[default(false)]
    prepend_if_not_found: bool,
    /// Taken for compatibility.
    #[expect(dead_code, reason = "genuine Salt ignores it, too")]
    #[default(false)]
    search_only: bool,
    /// Show what changes.
    #[default(true)]
    show_changes: bool,
    /// Fine if there is no such file.
    #[default(false)]
    ignore_if_missing: bool,
    /// How many lines of a key are kept; the others go. -1 keeps all.
    #[default(1)]
    count: i64,
    /// Characters that make a line a comment; such a line is taken into use.
    uncomment: Option<String>,
    /// Compare keys without regard to case.
    #[default(false)]
    key_ignore_case: bool,
    /// Compare values without regard to case.
    #[default(false)]
    value_ignore_case: bool,
    /// Make the file if it is not there.
    #[default(false)]
    create_if_missing: bool,
    /// Remove lines of other keys.
    #[default(false)]
    prune: bool,
}

/// A file edited by keys.
#[derive(Default)]
struct Edited {
    content: Vec<String>,
    diff: Vec<String>,
    changes: usize,
    deleted: usize,
}

impl Keyvalue {
    fn settings(&self) -> Result<Dict> {
        let several = self.key_values.as_ref();
        if let (Some(key), Some(value)) = (&self.key, &self.value) {
            if several.is_some_and(|several| several.as_dict().is_some()) {
                return Err(Error::failed(
                    "file.keyvalue can not combine key_values with key and value",
                ));
            }
            let settings = Dict::new();
            settings.insert(key.to_str(), value);
            return Ok(settings);
        }
        match several {
            Some(Value::Dict(several)) if !several.is_empty() => Ok(several.clone()),
            other => {
                let empty = other.is_none_or(|value| !value.truthy());
                let what = if empty { "is empty" } else { "is not a dictionary" };
                Err(Error::failed(format!(
                    "file.keyvalue key and value not supplied and key_values {what}"
                )))
            }
        }
    }

    /// The line without the signs of a comment; without `uncomment`, without leading white space.
    fn bare<'a>(&self, line: &'a str) -> &'a str {
        match &self.uncomment {
            Some(signs) => line.trim_start_matches(|c| signs.contains(c)),
            None => line.trim_start(),
        }
    }

    fn edit(&self, lines: &[String], settings: &Dict, append: bool) -> Edited {
        let fold = |text: &str| {
            if self.key_ignore_case { text.to_lowercase() } else { text.to_owned() }
        };
        let mut edited = Edited::default();
        let mut not_matched = Vec::new();
        let settings: Vec<(String, Value)> =
            settings.into_iter().map(|(key, value)| (key.to_str().to_string(), value)).collect();
        let mut open: Vec<i64> = vec![self.count; settings.len()];
        for line in lines {
            let bare = self.bare(line);
            let commented = bare.len() < line.len();
            let tested = fold(bare);
            let working = if commented { bare } else { line.as_str() };
            if self.prune && !settings.iter().any(|(key, _)| tested.starts_with(&fold(key))) {
                not_matched.push(line.clone());
                continue;
            }
            let mut line = line.clone();
            let parts = working.split_once(&self.separator);
            for (at, (key, value)) in settings.iter().enumerate() {
                let Some((line_key, line_value)) = parts else { continue };
                if !tested.starts_with(&fold(key)) || fold(line_key) != fold(key) {
                    continue;
                }
                let (now, wanted) = (line_value.trim(), value.to_str());
                let mut same = if self.value_ignore_case {
                    now.to_lowercase() == wanted.trim().to_lowercase()
                } else {
                    now == wanted.trim()
                };
                let mut needed = false;
                if commented {
                    if open[at] > 0 {
                        needed = true;
                    } else {
                        // A comment stays one once the key has all its lines.
                        same = true;
                    }
                } else if open[at] == 0 {
                    needed = true;
                }
                if !same || needed {
                    edited.diff.push(format!("- {line}"));
                    line.clear();
                    if open[at] != 0 {
                        line = format!("{line_key}{}{wanted}\n", self.separator);
                        edited.diff.push(if value.as_str().is_some() {
                            format!("+ {line}")
                        } else {
                            format!("+ {} (from {} type)\n", line.trim_end(), value.type_name())
                        });
                    }
                    edited.changes += 1;
                }
                if open[at] > 0 {
                    open[at] -= 1;
                }
            }
            edited.content.push(line);
        }
        let missing: Vec<String> = settings
            .iter()
            .zip(&open)
            .filter(|(_, open)| **open > 0)
            .map(|((key, value), _)| format!("{key}{}{value}\n", self.separator))
            .collect();
        if append && !missing.is_empty() {
            edited.diff.push("- <EOF>\n".to_owned());
            edited.diff.extend(missing.iter().map(|line| format!("+ {line}")));
            edited.diff.push("+ <EOF>\n".to_owned());
            edited.changes += missing.len();
            edited.content.extend(missing);
        } else if !append && self.prepend_if_not_found && !missing.is_empty() {
            edited.diff.insert(0, "  <SOF>\n".to_owned());
            edited.changes += missing.len();
            for line in missing {
                edited.diff.insert(1, format!("+ {line}"));
                edited.content.insert(0, line);
            }
        }
        edited.deleted = not_matched.len();
        for line in not_matched {
            let at = edited.diff.len().min(1);
            edited.diff.insert(at, format!("- {line}"));
        }
        edited
    }
}

impl State for Keyvalue {
    type Seen = Found<(String, Vec<u8>)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = expand_user(cx, &self.name);
        if name.is_empty() {
            return Err(Error::failed("Must provide name to file.keyvalue"));
        }
        let settings = self.settings()?;
        let mut append = self.append_if_not_found;
        let text = match cx.host.read(Path::new(&name)) {
            Ok(content) => utf8(content)?,
            Err(error) if error.is_missing() && self.create_if_missing => {
                append = true;
                String::new()
            }
            Err(_) if self.ignore_if_missing => {
                return Ok(Found::right(format!("unable to open {name}")));
            }
            Err(_) => return Err(Error::failed(format!("unable to open {name}"))),
        };
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let edited = self.edit(&lines, &settings, append);
        let (changes, deleted) = (edited.changes, edited.deleted);
        if changes == 0 && deleted == 0 {
            return Ok(Found::right(""));
        }
        let mut plan = Plan::unknown().done(format!("Changed {changes}, deleted {deleted} lines"));
        plan.pending = format!(
            "File {name} is set to be changed ({changes} lines modified, {deleted} deleted)"
        );
        if self.show_changes {
            plan.changes.insert("diff", edited.diff.concat());
            plan.pending.push_str("\nPredicted diff:\n\r\t\t");
            plan.pending.push_str(&edited.diff.join("\r\t\t"));
        }
        Ok(Found::todo(plan, (name, edited.content.concat().into_bytes())))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        if let Some((name, content)) = seen.work {
            cx.host
                .write(Path::new(&name), &content, &Write::default())
                .map_err(|_| Error::failed(format!("{name} not writable")))?;
        }
        Ok(Applied::as_planned())
    }
}
