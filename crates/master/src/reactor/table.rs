//! Which tags lead to which files: the option `reactor`, and what was added since.

use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, Value, dict, entries};

use crate::settings::placed;

/// Globs of tags with their files, in the order of the configuration.
#[derive(Debug, Default)]
pub(super) struct Table(Vec<(String, Vec<String>)>);

fn files(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Str(one) => vec![one.to_string()],
        other => {
            let list = other.items_of_sequence().unwrap_or_default();
            let paths = list.iter().filter(|item| matches!(item, Value::Str(_)));
            paths.map(Value::to_string).collect()
        }
    }
}

/// Says what is wrong with the files of a tag.
fn not_files(value: &Value) -> Option<String> {
    let list = match value {
        Value::Str(_) => return None,
        Value::Null => Vec::new(),
        other => match other.items_of_sequence() {
            Some(list) => list,
            None => return Some(format!("has no list of files but {other}")),
        },
    };
    if list.is_empty() {
        return Some("has no files".into());
    }
    let odd = list.iter().find(|item| !matches!(item, Value::Str(_)));
    odd.map(|item| format!("has `{item}` among its files, which is no path"))
}

impl Table {
    /// Reads the option; says what in it is no reactor.
    pub(super) fn read(option: &Value) -> (Self, Vec<String>) {
        let (mut table, mut problems) = (Self::default(), Vec::new());
        let entries = match option {
            Value::Null => Vec::new(),
            Value::Dict(_) => vec![option.clone()],
            other => other.items_of_sequence().unwrap_or_else(|| {
                problems.push(format!("a list of tags is expected, not {other}"));
                Vec::new()
            }),
        };
        for (at, entry) in entries.iter().enumerate() {
            let Value::Dict(entry) = entry else {
                let place = match option {
                    Value::List(list) => list.place_of(at),
                    _ => None,
                };
                let text = format!("`{entry}` is no tag with a list of files");
                problems.push(placed(&text, place));
                continue;
            };
            for (tag, list) in entry {
                let place = entry.place_of(&tag);
                let wrong = not_files(&list);
                if let Some(why) = wrong {
                    problems.push(placed(&format!("the tag {tag} {why}"), place));
                }
                table.0.push((tag.to_string(), files(&list)));
            }
        }
        (table, problems)
    }

    pub(super) fn matches(&self, tag: &str) -> bool {
        self.0.iter().any(|(glob, _)| fnmatch(tag, glob))
    }

    /// Returns the files of every glob that matches, each once.
    pub(super) fn entries_of(&self, tag: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for (_, files) in self.0.iter().filter(|(glob, _)| fnmatch(tag, glob)) {
            for file in files {
                if !found.contains(file) {
                    found.push(file.clone());
                }
            }
        }
        found
    }

    pub(super) fn write(&self) -> Value {
        Value::list(self.0.iter().map(|(tag, files)| -> Dict {
            entries! { tag.as_str() => Value::list(files.iter().map(String::as_str)) }
        }))
    }

    pub(super) fn add(&mut self, tag: &str, list: &Value) -> Value {
        if self.0.iter().any(|(own, _)| own == tag) {
            return dict! { "status" => false, "comment" => "Reactor already exists." };
        }
        let list = match list {
            Value::Str(text) => text.split(',').map(|file| file.trim().to_owned()).collect(),
            other => files(other),
        };
        self.0.push((tag.to_owned(), list));
        dict! { "status" => true, "comment" => "Reactor added." }
    }

    pub(super) fn delete(&mut self, tag: &str) -> Value {
        let before = self.0.len();
        self.0.retain(|(own, _)| own != tag);
        match self.0.len() < before {
            true => dict! { "status" => true, "comment" => "Reactor deleted." },
            false => dict! { "status" => false, "comment" => "Reactor does not exists." },
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{
        list,
        yaml::{self, LoadOptions},
    };

    use super::*;

    #[test]
    fn globs_and_several_files() {
        let option = list![
            dict! { "salt/minion/*/start" => list!["/a.sls", "/b.sls"] },
            dict! { "salt/*/*/start" => list!["/b.sls", "salt://c.sls"], "x" => "/x.sls" },
            "nonsense",
        ];
        let (mut table, problems) = Table::read(&option);
        assert_eq!(problems.len(), 1);
        assert_eq!(table.entries_of("salt/minion/web/start"), ["/a.sls", "/b.sls", "salt://c.sls"]);
        assert_eq!(table.entries_of("x"), ["/x.sls"]);
        assert!(!table.matches("salt/auth"));
        let status = |value: Value| value.get("status").unwrap().truthy();
        assert!(status(table.add("salt/auth", &"/a.sls,/b.sls".into())));
        assert!(!status(table.add("salt/auth", &Value::Null)));
        assert_eq!(table.entries_of("salt/auth"), ["/a.sls", "/b.sls"]);
        assert!(status(table.delete("x")) && !status(table.delete("x")));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let text = "- a: /a.sls\n- nonsense\n- b:\n- c: {d: e}\n- f: [1, /g.sls]\n";
        let options = LoadOptions { name: "master", places: true, ..LoadOptions::default() };
        let option = yaml::load(text, &options).unwrap();
        let (table, problems) = Table::read(&option);
        assert_eq!(
            problems,
            [
                "`nonsense` is no tag with a list of files (master:2:3)",
                "the tag b has no files (master:3:3)",
                "the tag c has no list of files but {'d': 'e'} (master:4:3)",
                "the tag f has `1` among its files, which is no path (master:5:3)",
            ]
        );
        assert_eq!(table.entries_of("f"), ["/g.sls"]);
    }
}
