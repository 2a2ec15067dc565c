//! The dpkg status file, read without running dpkg.
//!
//! `dpkg-query` does the same after merging the journal in `/var/lib/dpkg/updates`; while there is
//! a journal (dpkg is at work, or crashed), we ask it instead.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Result};

const STATUS: &str = "/var/lib/dpkg/status";
const JOURNAL: &str = "/var/lib/dpkg/updates";

/// One package of the status file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// `install`, `hold`, `deinstall`, `purge`.
    pub(super) want: String,
    /// `installed`, `config-files`, `half-configured` …
    pub(super) state: String,
    pub(super) version: String,
    pub(super) arch: String,
}

/// Reads the packages dpkg knows, sorted by name and architecture.
pub(super) fn entries(cx: &Cx) -> Result<Vec<Entry>> {
    let journal = cx.host.read_dir(Path::new(JOURNAL)).unwrap_or_default();
    let busy =
        journal.iter().any(|name| name.to_string_lossy().bytes().all(|b| b.is_ascii_digit()));
    let text = if busy { None } else { cx.host.read_text_if_there(Path::new(STATUS))? };
    let mut entries = match text {
        Some(text) => parse(&text),
        None => asked(cx)?,
    };
    entries.sort_by(|one, other| (&one.name, &one.arch).cmp(&(&other.name, &other.arch)));
    Ok(entries)
}

fn asked(cx: &Cx) -> Result<Vec<Entry>> {
    let format = "${Status} ${Package} ${Version} ${Architecture}\n";
    let command = Command::new("dpkg-query").args(["--showformat", format, "-W"]).query();
    let output = cx.host.run(&command).map_err(|error| Error::failed(error.to_string()))?;
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let want = words.next()?.to_owned();
        let _flag = words.next()?;
        let mut next = || words.next().map(str::to_owned);
        Some(Entry { want, state: next()?, name: next()?, version: next()?, arch: next()? })
    };
    Ok(output.stdout_text().lines().filter_map(entry).collect())
}

fn parse(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut entry = Entry::default();
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            let done = std::mem::take(&mut entry);
            if !done.name.is_empty() && !done.version.is_empty() && !done.arch.is_empty() {
                entries.push(done);
            }
            continue;
        }
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key {
            "Package" => entry.name = value.to_owned(),
            "Version" => entry.version = value.to_owned(),
            "Architecture" => entry.arch = value.to_owned(),
            "Status" => {
                let mut words = value.split_whitespace();
                entry.want = words.next().unwrap_or_default().to_owned();
                entry.state = words.nth(1).unwrap_or_default().to_owned();
            }
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_file() {
        let text = "Package: adduser\nStatus: install ok installed\nPriority: important\n\
                    Architecture: all\nVersion: 3.134\nDescription: add users\n \
                    Version: not this\n\nPackage: gone\nStatus: deinstall ok config-files\n\
                    Architecture: amd64\nVersion: 1:2.0-1\n\nPackage: wanted\n\
                    Status: install ok not-installed\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        let first = found.first().unwrap();
        assert_eq!((first.name.as_str(), first.version.as_str()), ("adduser", "3.134"));
        assert_eq!((first.want.as_str(), first.state.as_str()), ("install", "installed"));
        assert_eq!(found.get(1).unwrap().state, "config-files");
    }
}
