//! Options of the configuration: those marked as acted on are read somewhere, and those that are
//! read are marked. What `halite doctor --config` tells is only as good as these marks.
//!
//! The scan knows no Rust: an option is read where its name stands as a literal in code that is no
//! test. Names that are ordinary words have to stand in a call on options.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::Result;

use super::Findings;
use crate::tree;

/// The tables, in `crates/config/src`.
const TABLES: [&str; 4] = ["common.rs", "master.rs", "minion.rs", "programs.rs"];

/// Files that only take an option in, and pass it on to nobody.
const PARSED_ONLY: [&str; 4] = [
    "crates/config/src/load",
    "crates/cli/src/programs/ssh.rs",
    "crates/cli/src/programs/cloud.rs",
    "crates/cli/src/programs/api.rs",
];

/// Literals that are not the option of that name, and options that are looked at without effect.
const NOT_THE_OPTION: [(&str, &str); 10] = [
    ("cluster_id", "chooses where keys are, but there are no clusters"),
    ("cluster_mode", "an option of the Redis returner"),
    ("cluster_pki_dir", "chooses where keys are, but there are no clusters"),
    ("disable_keepalive", "a flag of the daemons"),
    ("id_function", "is refused"),
    ("local", "a flag of salt-call"),
    ("runner_queue", "the name of a queue"),
    ("serial", "a field of publications"),
    ("ssh_auth", "a state"),
    ("use_os_truststore", "a grain"),
];

/// One line of a table.
#[derive(Debug, PartialEq)]
struct Declared {
    name: String,
    acts: bool,
    is_moot: bool,
}

fn declared(line: &str) -> Option<Declared> {
    let line = line.trim_start();
    let rest =
        ["opt(\"", "both(\"", "each(\""].iter().find_map(|start| line.strip_prefix(start))?;
    let (name, rest) = rest.split_once('"')?;
    let has = |mark: &str| rest.contains(mark);
    Some(Declared { name: name.into(), acts: has(".acts()"), is_moot: has(".moot()") })
}

/// The literals of a file: all, and those in a call on options.
#[derive(Default)]
struct Literals {
    all: BTreeSet<String>,
    of_options: BTreeSet<String>,
}

impl Literals {
    fn read(&mut self, text: &str) {
        let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let mut parts = line.split('"');
            let mut before = parts.next().unwrap_or_default().to_owned();
            while let (Some(literal), Some(after)) = (parts.next(), parts.next()) {
                let is_name = |letter: char| letter.is_alphanumeric() || "_.".contains(letter);
                if !literal.is_empty() && literal.chars().all(is_name) {
                    self.all.insert(literal.to_owned());
                    if is_on_options(&before) {
                        self.of_options.insert(literal.to_owned());
                    }
                }
                before = after.to_owned();
            }
        }
    }
}

/// Tells whether the code before a literal is a call like `opts.get(` or `cx.opt_bool(`.
fn is_on_options(before: &str) -> bool {
    let Some(call) = before.strip_suffix('(') else { return false };
    let start = call.rfind(|letter: char| !(letter.is_alphanumeric() || "_.()".contains(letter)));
    let call = start.map_or(call, |at| &call[at + 1..]);
    call.split(['.', '(', ')'])
        .any(|word| word == "opts" || word == "opt" || word.starts_with("opt_"))
}

pub(super) fn check(root: &Path) -> Result<Findings> {
    let config = root.join("crates/config/src");
    let (mut everywhere, mut acting) = (Literals::default(), Literals::default());
    for file in tree::rust_files(&root.join("crates"))? {
        let name = tree::shown(root, &file);
        let is_table = TABLES.iter().any(|table| file == config.join(table));
        if is_table || !name.contains("/src/") {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        everywhere.read(&text);
        if !PARSED_ONLY.iter().any(|start| name.starts_with(start)) {
            acting.read(&text);
        }
    }
    let mut findings = Findings::new();
    let mut all = Vec::new();
    for table in TABLES {
        all.extend(fs::read_to_string(config.join(table))?.lines().filter_map(declared));
    }
    let marked: BTreeSet<&str> =
        all.iter().filter(|one| one.acts).map(|one| one.name.as_str()).collect();
    for Declared { name, acts, is_moot } in &all {
        let is_word = !name.contains(['_', '.']);
        let is_read = if is_word { &acting.of_options } else { &acting.all }.contains(name);
        let is_excused = NOT_THE_OPTION.iter().any(|(own, _)| own == name);
        if *acts && !everywhere.all.contains(name) {
            findings
                .push(format!("crates/config: `{name}` is marked .acts(), and nothing reads it"));
        }
        if is_read && !marked.contains(name.as_str()) && !is_excused {
            findings.push(format!("crates/config: `{name}` is read, and not marked .acts()"));
        }
        if *acts && *is_moot {
            findings.push(format!("crates/config: `{name}` cannot be both .acts() and .moot()"));
        }
    }
    for (name, _) in NOT_THE_OPTION {
        if !all.iter().any(|one| one.name == name && !one.acts) {
            findings.push(format!("xtask: `{name}` need not be excused"));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let line = r#"    opt("a_b", BOOL, P::Bool(true), "A \"b\".").unchecked().acts(),"#;
        let one = Declared { name: "a_b".into(), acts: true, is_moot: false };
        assert_eq!(declared(line), Some(one));
        assert_eq!(declared("// opt(\"x\")"), None);
    }

    #[test]
    fn reading_is_told_from_mentioning() {
        let mut found = Literals::default();
        found.read(
            "let a = cx.opt_bool(\"test\"); let b = kwargs.get(\"timeout\");\n\
             self.settings.opts.dict(\"acl\") // x\n// opts.get(\"comment\")\n\
             #[cfg(test)]\nmod tests { fn x() { opts.get(\"in_test\"); } }",
        );
        let names: Vec<&str> = found.of_options.iter().map(String::as_str).collect();
        assert_eq!(names, ["acl", "test"]);
        assert!(found.all.contains("timeout") && !found.all.contains("in_test"));
    }
}
