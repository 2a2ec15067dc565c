//! Writes `crates/cli/layout.ld`: which functions stand first in the executable.
//!
//! The kernel maps an executable's code in pieces of 64 KB around what is called. What one command calls,
//! a twentieth of all code, is spread over a third of those pieces unless the linker is told to put it
//! together. So a few commands run under valgrind, which notes what was called; the linker script names
//! these functions (docs/decisions/0023-functions-in-order.md). A name that is gone by now, as most are after a change of the
//! compiler, is passed over: run this again when `bench/local` shows more memory than it did.

use std::{
    collections::HashSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::shell;

/// One of each kind that most trees have.
const STATES: &str = "\
{% set names = ['a', 'b', 'c'] %}
{% for name in names %}
step-{{ name }}:
  test.nop:
    - require: [{test: first}]
{% endfor %}
first:
  test.nop: []
file:
  file.managed:
    - name: {{ grains['id'] and root }}/out/file
    - source: salt://tree/one
    - template: jinja
    - mode: '0644'
    - makedirs: True
    - watch_in: [{cmd: seen}]
contents:
  file.managed:
    - name: {{ root }}/out/contents
    - contents: {{ pillar.get('words', 'none') }}
tree:
  file.recurse:
    - name: {{ root }}/out/tree
    - source: salt://tree
seen:
  cmd.run:
    - name: 'true'
    - unless: 'false'
";

/// In the order of their groups: what every command needs comes first.
const COMMANDS: [&[&str]; 5] = [
    &["test.ping"],
    &["grains.items"],
    &["state.apply", "test=True", "--out=json"],
    &["state.apply"],
    &["state.apply", "--out=json"],
];

/// Builds the executable, runs the commands, writes the file.
pub(crate) fn run(root: &Path) -> Result<()> {
    shell::need("valgrind", "valgrind")?;
    shell::run(shell::cargo().args(["build", "--release", "-p", "halite"]))?;
    let scratch = shell::target_dir(root).join("layout");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    prepare(&scratch)?;
    let halite = shell::target_dir(root).join("release/halite");
    let (mut known, mut script) = (HashSet::new(), String::from(HEAD));
    for (number, command) in COMMANDS.iter().enumerate() {
        let notes = scratch.join(format!("calls.{number}"));
        let mut names = called(&halite, &scratch, command, &notes)?;
        names.retain(|name| known.insert(name.clone()));
        names.sort();
        for name in names {
            writeln!(script, "*(.text.{name})")?;
        }
    }
    script.push_str("}\n} INSERT BEFORE .text;\n");
    let file = root.join("crates/cli/layout.ld");
    fs::write(&file, script).with_context(|| format!("writing {}", file.display()))?;
    ensure!(known.len() > 1_000, "the executable has no names: is it stripped?");
    println!("layout: {} functions", known.len());
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

const HEAD: &str = "\
/* The functions that stand first in the executable. Written by `cargo xtask layout`. */
SECTIONS {
.text.first : {
";

fn prepare(scratch: &Path) -> Result<()> {
    let place = scratch.display();
    let config = format!(
        "id: layout\nroot_dir: {place}\nfile_client: local\nfile_roots: {{base: [{place}/salt]}}\n\
         pillar_roots: {{base: [{place}/pillar]}}\n"
    );
    let states = format!("{{% set root = '{place}' %}}\n{STATES}");
    for (path, text) in [
        ("etc/minion", config.as_str()),
        ("salt/top.sls", "base:\n  'os:*':\n    - match: grain\n    - states\n"),
        ("salt/states.sls", &states),
        ("salt/tree/one", "{{ grains['os'] }} {{ salt['test.echo']('x') }}\n"),
        ("salt/tree/below/two", "two\n"),
        ("pillar/top.sls", "base:\n  '*':\n    - words\n"),
        ("pillar/words.sls", "words: some\n"),
    ] {
        let path = scratch.join(path);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// Returns the names of the functions that a command calls, as the linker knows them.
fn called(halite: &Path, scratch: &Path, command: &[&str], notes: &PathBuf) -> Result<Vec<String>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", notes.display()))
        .arg(halite)
        .args(["call", "--local", "-c"])
        .arg(scratch.join("etc"))
        .args(command)
        .output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let notes = String::from_utf8_lossy(&fs::read(notes)?).into_owned();
    Ok(notes.lines().filter_map(name).collect())
}

/// Reads `fn=(12) name` and `cfn=(12) name`, where a name is written the first time.
fn name(line: &str) -> Option<String> {
    let rest = line.strip_prefix("fn=(").or_else(|| line.strip_prefix("cfn=("))?;
    let (_, name) = rest.split_once(") ")?;
    // Calls within calls are counted as `name'2`.
    let name = name.split('\'').next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    // What was private to a crate gets a number that is another in every build.
    Some(match name.split_once(".llvm.") {
        Some((name, _)) => format!("{name}.llvm.*"),
        None => name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_where_they_are_written_first() {
        let check =
            |line: &str, expected: Option<&str>| assert_eq!(name(line).as_deref(), expected);
        check(
            "fn=(12) _ZN4core3fmt5write17h0123456789abcdefE",
            Some("_ZN4core3fmt5write17h0123456789abcdefE"),
        );
        check("cfn=(3) _RNvCs1_3std3run'2", Some("_RNvCs1_3std3run"));
        check("fn=(4) _ZN1a1b17h01E.llvm.123", Some("_ZN1a1b17h01E.llvm.*"));
        check("cfn=(12)", None);
        check("fn=(5) 0x00000000001f2a30", Some("0x00000000001f2a30"));
        check("fn=(6) (below main)", None);
        check("calls=1 23", None);
    }
}
