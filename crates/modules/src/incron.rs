//! `incron`: commands that run when files change, over `incrontab`.
//!
//! A line of the table: path, mask, command. What Salt did not write is kept as it is.

use std::path::Path;

use halite_spec::{Cx, Error, Result, alias, function, host::Write, module};
use halite_value::{Dict, Value, dict};

use crate::cmd::{Options, Ran, plain, scratch_path};

module! {
    /// Commands that run when files change.
    "incron": write_incron_file, write_incron_file_verbose, raw_system_incron, raw_incron,
    list_tab, ls, set_job, rm_job, rm,
}

alias! { ls = list_tab, rm = rm_job }

const MASKS: &[&str] = &[
    "IN_ACCESS",
    "IN_ATTRIB",
    "IN_CLOSE_WRITE",
    "IN_CLOSE_NOWRITE",
    "IN_CREATE",
    "IN_DELETE",
    "IN_DELETE_SELF",
    "IN_MODIFY",
    "IN_MOVE_SELF",
    "IN_MOVED_FROM",
    "IN_MOVED_TO",
    "IN_OPEN",
    "IN_ALL_EVENTS",
    "IN_MOVE",
    "IN_CLOSE",
    "IN_ONLYDIR",
    "IN_DONT_FOLLOW",
    "IN_ONESHOT",
    "IN_NO_LOOP",
];

/// The first word of a mask that means nothing.
fn wrong(mask: &str) -> Option<String> {
    let bad = mask.split(',').find(|word| !MASKS.contains(word))?;
    Some(format!("Invalid mask type: {bad}"))
}

fn load(cx: &Cx, user: &str, path: &str) -> Result<Ran> {
    plain(cx, ["incrontab", path], Options { runas: Some(user.to_owned()), ..Options::default() })
}

fn raw(cx: &Cx, user: &str) -> Result<String> {
    let options = Options {
        runas: Some(user.to_owned()),
        query: true,
        ignore_retcode: true,
        ..Options::default()
    };
    let ran = plain(cx, ["incrontab", "-l", user], options)?;
    Ok(if ran.ok() { ran.stdout } else { String::new() })
}

/// A table: lines to keep as they are, and jobs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    pre: Vec<String>,
    jobs: Vec<(String, String, String)>,
}

impl Table {
    fn read(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [path, mask, command @ ..] if !line.starts_with('#') && !command.is_empty() => {
                    let job = ((*path).to_owned(), (*mask).to_owned(), command.join(" "));
                    table.jobs.push(job);
                }
                _ => table.pre.push(line.to_owned()),
            }
        }
        table
    }

    fn write(&self, cx: &Cx, user: &str) -> Result<Ran> {
        let mut lines = self.pre.clone();
        lines.extend(self.jobs.iter().map(|(path, mask, cmd)| format!("{path}\t{mask}\t{cmd}")));
        let file = scratch_path(cx, None, "");
        let owner = cx.host.user_named(user)?;
        let how = Write { mode: Some(0o600), uid: owner.map(|own| own.uid), ..Write::default() };
        cx.host.write(&file, format!("{}\n", lines.join("\n")).as_bytes(), &how)?;
        let ran = load(cx, user, &file.display().to_string());
        cx.host.remove_file(&file)?;
        ran
    }
}

/// Load a table from a file; tell whether it was taken.
///
/// ```console
/// $ salt web1 incron.write_incron_file ada /srv/app/incrontab
/// ```
#[function]
pub fn write_incron_file(
    cx: &Cx,
    /// The user it is for.
    user: String,
    /// The file.
    path: String,
) -> Result<bool> {
    Ok(load(cx, &user, &path)?.ok())
}

/// Load a table from a file; return what the program said.
///
/// ```console
/// $ salt web1 incron.write_incron_file_verbose ada /srv/app/incrontab
/// ```
#[function]
pub fn write_incron_file_verbose(
    cx: &Cx,
    /// The user it is for.
    user: String,
    /// The file.
    path: String,
) -> Result<Dict> {
    Ok(load(cx, &user, &path)?.to_value())
}

/// Return the table of the system.
///
/// ```console
/// $ salt web1 incron.raw_system_incron
/// ```
#[function]
pub fn raw_system_incron(cx: &Cx) -> Result<String> {
    Ok(cx.host.read_text_if_there(Path::new("/etc/incron.d/salt"))?.unwrap_or_default())
}

/// Return the table of a user, as it is.
///
/// ```console
/// $ salt web1 incron.raw_incron ada
/// ```
#[function]
pub fn raw_incron(
    cx: &Cx,
    /// The user.
    user: String,
) -> Result<String> {
    raw(cx, &user)
}

/// Return the table of a user.
///
/// ```console
/// $ salt web1 incron.list_tab ada
/// ```
#[function]
pub fn list_tab(
    cx: &Cx,
    /// The user.
    user: String,
) -> Result<Value> {
    let text = if user == "system" { raw_system_incron(cx)? } else { raw(cx, &user)? };
    let table = Table::read(&text);
    let crons = table.jobs.into_iter().map(|(path, mask, cmd)| {
        dict! { "path" => path, "mask" => mask, "cmd" => cmd }
    });
    Ok(dict! { "crons" => Value::list(crons), "pre" => table.pre })
}

/// What setting a job would do: `new`, `updated` or `present`.
pub fn job_status(cx: &Cx, user: &str, path: &str, mask: &str, cmd: &str) -> Result<&'static str> {
    let table = Table::read(&raw(cx, user)?);
    let own = table.jobs.iter().find(|job| job.0 == path && job.2 == cmd);
    Ok(match own {
        None => "new",
        Some(job) if same_mask(&job.1, mask) => "present",
        Some(_) => "updated",
    })
}

fn same_mask(one: &str, other: &str) -> bool {
    let words = |mask: &str| {
        let mut words: Vec<String> = mask.split(',').map(str::to_owned).collect();
        words.sort();
        words
    };
    words(one) == words(other)
}

/// Make sure of a job: `new`, `updated` or `present`.
///
/// ```console
/// $ salt web1 incron.set_job ada /srv/app IN_MODIFY '/usr/local/bin/report $#'
/// ```
#[function]
pub fn set_job(
    cx: &Cx,
    /// The user.
    user: String,
    /// The path to watch.
    path: String,
    /// What to watch for: `IN_MODIFY,IN_CREATE`.
    mask: String,
    /// The command.
    cmd: String,
) -> Result<String> {
    if let Some(text) = wrong(&mask) {
        return Ok(text);
    }
    let status = job_status(cx, &user, &path, &mask, &cmd)?;
    if status != "present" {
        let mut table = Table::read(&raw(cx, &user)?);
        table.jobs.retain(|job| !(job.0 == path && job.2 == cmd));
        table.jobs.push((path, mask, cmd));
        let ran = table.write(cx, &user)?;
        if !ran.ok() {
            return Ok(ran.stderr);
        }
    }
    Ok(status.to_owned())
}

/// Remove a job: `removed` or `absent`.
///
/// ```console
/// $ salt '*' incron.rm_job root /path IN_MODIFY 'echo hi'
/// ```
#[function]
pub fn rm_job(
    cx: &Cx,
    /// The user.
    user: String,
    /// The path watched.
    path: String,
    /// What is watched for.
    mask: String,
    /// The command.
    cmd: String,
) -> Result<String> {
    if let Some(text) = wrong(&mask) {
        return Ok(text);
    }
    let mut table = Table::read(&raw(cx, &user)?);
    let before = table.jobs.len();
    table.jobs.retain(|job| !(job.0 == path && same_mask(&job.1, &mask) && job.2 == cmd));
    if table.jobs.len() == before {
        return Ok("absent".to_owned());
    }
    let ran = table.write(cx, &user)?;
    if !ran.ok() {
        return Err(Error::failed(ran.stderr));
    }
    Ok("removed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_table() {
        let table = Table::read("# a note\n/tmp IN_MODIFY,IN_CREATE echo $@ x\n");
        let job = ("/tmp".to_owned(), "IN_MODIFY,IN_CREATE".to_owned(), "echo $@ x".to_owned());
        assert_eq!(table, Table { pre: vec!["# a note".to_owned()], jobs: vec![job] });
        assert!(same_mask("IN_MODIFY,IN_CREATE", "IN_CREATE,IN_MODIFY"));
        assert_eq!(wrong("IN_MODIFY,BAD").as_deref(), Some("Invalid mask type: BAD"));
    }
}
