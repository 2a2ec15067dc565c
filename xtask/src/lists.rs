//! The registration lists: `mod` lines and one `ALL` slice per content folder.
//!
//! A `lib.rs` or `mod.rs` of a content crate that carries the markers `// gen:begin` and
//! `// gen:end` gets, between them, a `mod` line for every file and every folder with a `mod.rs`
//! beside it, and a slice with those that declare something. What declares is told by the macro:
//! `module! {` in `crates/modules`, `states! {` in `crates/states` and so on ([`KINDS`]). A file
//! without it is a private helper, unless it holds a line `// gen:pub`. The file is passed through
//! rustfmt, so `make gen` and `cargo fmt` never undo each other.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    generated::{Wanted, between},
    tree,
};

/// What a content crate lists.
struct Kind {
    /// The folder below `crates/`.
    krate: &'static str,
    /// The macro that declares.
    declares: &'static str,
    /// The static the macro makes.
    item: &'static str,
    /// Its type, which the file imports.
    ty: &'static str,
    /// What it is, for people.
    noun: &'static str,
}

const KINDS: [Kind; 6] = [
    Kind { krate: "modules", declares: "module!", item: "MODULE", ty: "Module", noun: "module" },
    Kind {
        krate: "states",
        declares: "states!",
        item: "STATES",
        ty: "StateModule",
        noun: "state module",
    },
    Kind { krate: "runners", declares: "module!", item: "MODULE", ty: "Module", noun: "module" },
    Kind { krate: "beacons", declares: "beacon!", item: "BEACON", ty: "Beacon", noun: "beacon" },
    Kind {
        krate: "returners",
        declares: "returner!",
        item: "RETURNER",
        ty: "Returner",
        noun: "returner",
    },
    Kind { krate: "grains", declares: "grains!", item: "GRAINS", ty: "Grains", noun: "grain file" },
];

/// Words that cannot name a module as they are, though Salt has a module of that name.
const KEYWORDS: [&str; 13] = [
    "async", "box", "const", "loop", "match", "mod", "move", "priv", "ref", "static", "type",
    "use", "virtual",
];

/// Returns each list file as it should be.
pub(crate) fn wanted(root: &Path) -> Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    for kind in &KINDS {
        let source = root.join("crates").join(kind.krate).join("src");
        if !source.is_dir() {
            continue;
        }
        for file in tree::rust_files(&source)? {
            let name = file.file_name().unwrap_or_default();
            if name != "lib.rs" && name != "mod.rs" {
                continue;
            }
            let text = fs::read_to_string(&file)?;
            let folder = file.parent().expect("a file lies in a folder");
            let whole = if name == "lib.rs" { "crate" } else { "folder" };
            let body = body(kind, whole, &entries(kind, folder)?);
            let new = between(&text, &body).with_context(|| file.display().to_string())?;
            if let Some(new) = new {
                let text = rustfmt(root, &new).with_context(|| file.display().to_string())?;
                wanted.push(Wanted { path: file, text });
            }
        }
    }
    Ok(wanted)
}

/// One file or folder of the list.
struct Entry {
    name: String,
    declares: bool,
    public: bool,
}

fn entries(kind: &Kind, folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let Some(source) = source_of(&path) else { continue };
        let text = fs::read_to_string(&source)?;
        let declares = text.lines().any(|line| declares(line, kind.declares));
        let public = declares || text.lines().any(|line| line.trim() == "// gen:pub");
        entries.push(Entry { name: stem.to_owned(), declares, public });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// The file that `mod x;` would read: `x.rs` (not the list's own file) or `x/mod.rs`.
fn source_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        let inner = path.join("mod.rs");
        return inner.is_file().then_some(inner);
    }
    let rust = path.extension().is_some_and(|ext| ext == "rs");
    let root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| path.ends_with(name));
    (rust && !root).then(|| path.to_owned())
}

/// Tells whether a line opens the declaring macro; with or without a path before it.
fn declares(line: &str, name: &str) -> bool {
    let line = line.trim_end();
    let Some(before) = line.strip_suffix('{').or_else(|| line.strip_suffix('(')) else {
        return false;
    };
    let before = before.trim_end();
    before == name || before.strip_prefix("halite_spec::") == Some(name)
}

fn body(kind: &Kind, whole: &str, entries: &[Entry]) -> String {
    let mut body = String::new();
    for entry in entries {
        let public = if entry.public { "pub " } else { "" };
        writeln!(body, "{public}mod {};", ident(&entry.name)).expect("a String takes all");
    }
    let Kind { item, ty, noun, .. } = kind;
    writeln!(body, "\n/// Every {noun} of this {whole}.").expect("as above");
    writeln!(body, "pub static ALL: &[&{ty}] = &[").expect("as above");
    for entry in entries.iter().filter(|entry| entry.declares) {
        writeln!(body, "&{}::{item},", ident(&entry.name)).expect("as above");
    }
    body.push_str("];\n");
    body
}

fn ident(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("r#{name}") } else { name.to_owned() }
}

/// Formats one file's text as `cargo fmt` does.
fn rustfmt(root: &Path, text: &str) -> Result<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--config-path"])
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting rustfmt (rustup component add rustfmt)")?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(text.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("rustfmt refused the generated text");
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_told_from_mentions() {
        assert!(declares("module! {", "module!"));
        assert!(declares("halite_spec::module! {", "module!"));
        assert!(!declares("/// begins with `module! {`", "module!"));
        assert!(!declares("submodule! {", "module!"));
    }

    #[test]
    fn helpers_are_private_and_keywords_are_raw() {
        let entry = |name: &str, declares, public| Entry { name: name.into(), declares, public };
        let entries =
            [entry("diff", false, true), entry("lines", false, false), entry("match", true, true)];
        let text = body(&KINDS[0], "crate", &entries);
        assert!(text.starts_with("pub mod diff;\nmod lines;\npub mod r#match;\n"), "{text}");
        assert!(text.ends_with("&[&Module] = &[\n&r#match::MODULE,\n];\n"), "{text}");
    }

    #[test]
    fn rustfmt_does_not_move_the_result() {
        let lines = "//! x\n// gen:begin\n// gen:end\n";
        let entries: Vec<_> = ["x10", "x9", "a_b", "ab", "zeta"]
            .map(|name| Entry { name: name.into(), declares: true, public: true })
            .into();
        let new = between(lines, &body(&KINDS[0], "crate", &entries)).unwrap().unwrap();
        let once = rustfmt(tree::root(), &new).unwrap();
        assert_eq!(rustfmt(tree::root(), &once).unwrap(), once);
        assert!(once.contains("\n// gen:end\n"), "{once}");
    }
}
