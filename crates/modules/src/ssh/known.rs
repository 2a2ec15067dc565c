//! `known_hosts`: looked into with `ssh-keygen`, asked for with `ssh-keyscan`, so that hashed names
//! and odd ports are found as ssh itself finds them.

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Error, Result, host::Write};
use halite_value::{Dict, Value, entries};

use super::keys::fingerprint;
use crate::{file::text::read_to_edit_if_there, user};

/// Where host keys are, and how they are shown.
#[derive(Clone, Debug, Default)]
pub struct Store {
    pub user: Option<String>,
    pub config: Option<String>,
    pub port: Option<i64>,
    pub hash_type: Option<String>,
}

/// A host key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub hostname: String,
    pub enc: Option<String>,
    pub key: String,
    pub fingerprint: Option<String>,
    pub port: Option<i64>,
}

impl Entry {
    pub fn described(&self) -> Value {
        let entry = entries! { "hostname" => &self.hostname };
        if self.fingerprint.is_some() {
            entry.insert("key", &self.key);
            entry.insert("enc", self.enc.clone());
        } else {
            entry.insert("enc", self.enc.clone());
            entry.insert("key", &self.key);
        }
        if let Some(print) = &self.fingerprint {
            entry.insert("fingerprint", print);
        }
        if let Some(port) = self.port {
            entry.insert("port", port);
        }
        entry.into()
    }
}

const USUAL_PORT: i64 = 22;

fn checked(hostname: &str) -> Result<()> {
    if hostname.is_empty() {
        return Err(Error::failed("hostname argument required"));
    }
    if hostname.starts_with('-') {
        return Err(Error::invalid(format!("'{hostname}' cannot be the name of a host")));
    }
    Ok(())
}

impl Store {
    /// The file; fails with Salt's words when there can be none.
    pub fn file(&self, cx: &Cx) -> Result<PathBuf> {
        let user = self.user.as_deref().filter(|user| !user.is_empty());
        let config = self.config.as_deref().filter(|config| !config.is_empty());
        let usual = if user.is_some() { ".ssh/known_hosts" } else { "/etc/ssh/ssh_known_hosts" };
        let config = Path::new(config.unwrap_or(usual));
        if config.is_absolute() {
            return Ok(config.to_owned());
        }
        let Some(user) = user else {
            return Err(Error::failed("Cannot determine absolute path to file."));
        };
        match user::find(cx, user, None)? {
            Some(own) => Ok(Path::new(&own.home).join(config)),
            None => Err(Error::failed(format!("User {user} does not exist"))),
        }
    }

    fn name_of(&self, hostname: &str) -> String {
        match self.port.filter(|port| *port != 0 && *port != USUAL_PORT) {
            Some(port) => format!("[{hostname}]:{port}"),
            None => hostname.to_owned(),
        }
    }

    fn find(&self, cx: &Cx, hostname: &str) -> Result<String> {
        checked(hostname)?;
        let file = self.file(cx)?;
        let line = ["ssh-keygen", "-F", &self.name_of(hostname), "-f"];
        let command = Command::line(line).arg(file).query();
        Ok(cx.host.run(&command)?.stdout_text())
    }

    /// Returns the keys known for a host.
    pub fn entries(&self, cx: &Cx, hostname: &str) -> Result<Vec<Entry>> {
        self.read(&self.find(cx, hostname)?)
    }

    fn read(&self, text: &str) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[hostname, enc, key] = words.as_slice() else { continue };
            let Some(print) = fingerprint(key, self.hash_type.as_deref())? else { continue };
            found.push(Entry {
                hostname: hostname.into(),
                enc: Some(enc.into()),
                key: key.into(),
                fingerprint: Some(print),
                port: None,
            });
        }
        Ok(found)
    }

    /// Asks a host for its keys.
    pub fn receive(
        &self,
        cx: &Cx,
        hostname: &str,
        enc: Option<&str>,
        hashed: bool,
        timeout: i64,
    ) -> Result<Vec<Entry>> {
        checked(hostname)?;
        let mut line = vec!["ssh-keyscan".to_owned()];
        if let Some(port) = self.port {
            line.extend(["-p".to_owned(), port.to_string()]);
        }
        if let Some(enc) = enc.filter(|enc| !enc.is_empty()) {
            line.extend(["-t".to_owned(), enc.to_owned()]);
        }
        if hashed {
            line.push("-H".into());
        }
        line.extend(["-T".to_owned(), timeout.to_string(), hostname.to_owned()]);
        for _ in 0..5 {
            let output = cx.host.run(&Command::line(&line).query())?;
            cx.job.set_retcode(output.code.into());
            let text = output.stdout_text();
            if !text.trim().is_empty() {
                return self.read(&text);
            }
        }
        Ok(Vec::new())
    }

    /// Makes the user own what root has written for him.
    fn own(&self, cx: &Cx, path: &Path) -> Result<()> {
        if let Some(user) = self.user.as_deref().filter(|user| !user.is_empty())
            && cx.host.uid() == 0
            && let Some(user) = user::find(cx, user, None)?
        {
            cx.host.set_owner(path, Some(user.uid), Some(user.gid), true)?;
        }
        Ok(())
    }

    /// Removes the lines of a host (of one kind of key, if given) and adds these.
    pub fn write(
        &self,
        cx: &Cx,
        hostname: &str,
        enc: Option<&str>,
        new: &[Entry],
        hashed: bool,
    ) -> Result<()> {
        let file = self.file(cx)?;
        let old = read_to_edit_if_there(cx, &file)?;
        let gone: Vec<usize> = match &old {
            Some(_) => line_numbers(&self.find(cx, hostname)?, enc),
            None => Vec::new(),
        };
        let text = old.as_deref().unwrap_or_default();
        let mut text: String = text
            .split_inclusive('\n')
            .enumerate()
            .filter(|(at, _)| !gone.contains(&(at + 1)))
            .map(|(_, line)| line)
            .collect();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for entry in new {
            let enc = entry.enc.as_deref().unwrap_or("None");
            let plain = hashed
                || self.port.is_none_or(|port| port == USUAL_PORT)
                || entry.hostname.contains(':');
            match self.port.filter(|_| !plain) {
                Some(port) => text += &format!("[{}]:{port} {enc} {}\n", entry.hostname, entry.key),
                None => text += &format!("{} {enc} {}\n", entry.hostname, entry.key),
            }
        }
        if let Some(folder) = file.parent()
            && !cx.host.is_dir(folder)?
        {
            cx.host.create_dirs(folder, None)?;
            if self.user.is_some() {
                self.own(cx, folder)?;
                cx.host.set_mode(folder, 0o700)?;
            }
        }
        let mode = if old.is_some() { None } else { Some(0o600) };
        cx.host.write(&file, text.as_bytes(), &Write { mode, ..Write::default() })?;
        self.own(cx, &file)
    }

    /// Removes a host; returns what `ssh-keygen` said.
    pub fn remove(&self, cx: &Cx, hostname: &str) -> Result<String> {
        checked(hostname)?;
        let file = self.file(cx)?;
        self.must_exist(cx, &file)?;
        let line = ["ssh-keygen", "-R", &self.name_of(hostname), "-f"];
        let output = cx.host.run(&Command::line(line).arg(&file))?;
        self.own(cx, &file)?;
        Ok(said(&output))
    }

    /// Hashes the names in the file; returns what `ssh-keygen` said.
    pub fn hash(&self, cx: &Cx) -> Result<String> {
        let file = self.file(cx)?;
        self.must_exist(cx, &file)?;
        let mode = cx.host.stat(&file, true)?.mode;
        let output = cx.host.run(&Command::line(["ssh-keygen", "-H", "-f"]).arg(&file))?;
        cx.host.set_mode(&file, mode)?;
        self.own(cx, &file)?;
        Ok(said(&output))
    }

    fn must_exist(&self, cx: &Cx, file: &Path) -> Result<()> {
        if cx.host.is_file(file)? {
            return Ok(());
        }
        Err(Error::failed(format!("Known hosts file {} does not exist", file.display())))
    }
}

/// Output and complaints together, as Salt's `cmd.run` returns them.
fn said(output: &halite_spec::Output) -> String {
    let (out, err) = (output.stdout_text(), output.stderr_text());
    let (out, err) = (out.trim_end(), err.trim_end());
    if out.is_empty() || err.is_empty() { format!("{out}{err}") } else { format!("{out}\n{err}") }
}

/// Reads the line numbers `ssh-keygen -F` tells.
fn line_numbers(text: &str, enc: Option<&str>) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pairs = lines.chunks_exact(2).filter_map(|pair| {
        let number = pair[0].split_whitespace().last()?.parse().ok()?;
        let kind = pair[1].split_whitespace().rev().nth(1)?;
        enc.is_none_or(|enc| enc == kind).then_some(number)
    });
    pairs.collect()
}

/// What putting a host's key in would do.
#[derive(Clone, Debug)]
pub enum Change {
    Exists(Vec<String>),
    /// The entries there were, and the new ones.
    Update {
        old: Vec<Entry>,
        new: Vec<Entry>,
    },
    /// The host does not tell its keys; these are known of it.
    Silent(Vec<Entry>),
    /// Salt's words for why not.
    Refused(String),
}

/// Salt's words for [`Change::Silent`].
pub const SILENT: &str = "Unable to receive remote host keys";

/// What is wanted of a host's key.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub hostname: String,
    pub fingerprint: Option<String>,
    pub key: Option<String>,
    pub enc: Option<String>,
    pub hashed: bool,
    pub timeout: i64,
}

impl Store {
    /// Finds out what has to be done; asks the host for its keys where no key is given.
    pub fn compare(&self, cx: &Cx, wanted: &Wanted) -> Result<Change> {
        if self.port.is_some_and(|port| port != USUAL_PORT) && wanted.hashed {
            return Ok(Change::Refused(
                "argument port can not be used in conjunction with argument hash_known_hosts"
                    .into(),
            ));
        }
        let old = match self.entries(cx, &wanted.hostname) {
            Ok(old) => old,
            Err(Error::Failed(text)) => return Ok(Change::Refused(text)),
            Err(error) => return Err(error),
        };
        let of_kind = |entry: &&Entry| wanted.enc.is_none() || entry.enc == wanted.enc;
        let keys: Vec<String> = old.iter().filter(of_kind).map(|entry| entry.key.clone()).collect();
        let prints: Vec<&str> =
            old.iter().filter_map(|entry| entry.fingerprint.as_deref()).collect();
        let check = wanted.key.is_none() && wanted.fingerprint.is_none();
        let stale = old.is_empty()
            || wanted.fingerprint.as_ref().is_some_and(|print| !prints.contains(&print.as_str()))
            || wanted.key.as_ref().is_some_and(|key| !keys.contains(key));
        if !stale && !check {
            return Ok(Change::Exists(keys));
        }
        if let Some(key) = &wanted.key {
            let entry = Entry {
                hostname: wanted.hostname.clone(),
                enc: wanted.enc.clone(),
                key: key.clone(),
                fingerprint: None,
                port: self.port,
            };
            return Ok(Change::Update { old, new: vec![entry] });
        }
        let new = self.receive(
            cx,
            &wanted.hostname,
            wanted.enc.as_deref(),
            wanted.hashed,
            wanted.timeout,
        )?;
        if new.is_empty() {
            return Ok(Change::Silent(old));
        }
        let known =
            |print: &String| new.iter().any(|entry| entry.fingerprint.as_ref() == Some(print));
        if wanted.fingerprint.as_ref().is_some_and(|print| !known(print)) {
            return Ok(Change::Refused(
                "Remote host public keys found but none of their fingerprints match the one you \
                 have provided"
                    .into(),
            ));
        }
        let mut received: Vec<&String> = new.iter().map(|entry| &entry.key).collect();
        let mut stored: Vec<&String> = keys.iter().collect();
        received.sort();
        received.dedup();
        stored.sort();
        stored.dedup();
        if !stale && received == stored {
            return Ok(Change::Exists(keys));
        }
        Ok(Change::Update { old, new })
    }

    /// Writes what [`Store::compare`] found.
    pub fn update(&self, cx: &Cx, wanted: &Wanted, new: &[Entry]) -> Result<()> {
        self.write(cx, &wanted.hostname, wanted.enc.as_deref(), new, wanted.hashed)?;
        if wanted.key.is_some() && wanted.hashed {
            self.hash(cx)?;
        }
        Ok(())
    }
}

/// Shows entries; none is None.
pub fn described(entries: &[Entry]) -> Value {
    if entries.is_empty() { Value::Null } else { Value::list(entries.iter().map(Entry::described)) }
}

/// The dict Salt returns for an error.
pub(super) fn failure(text: &str) -> Dict {
    entries! { "status" => "error", "error" => text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_by_kind() {
        let text =
            "# Host a found: line 3 \na ssh-rsa AAAA\n# Host a found: line 7\na ssh-dss BBBB\n";
        assert_eq!(line_numbers(text, None), [3, 7]);
        assert_eq!(line_numbers(text, Some("ssh-dss")), [7]);
    }
}
