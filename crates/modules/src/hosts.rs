//! `hosts`: the names in `/etc/hosts` (or the file the option `hosts.file` names).
//!
//! The file is read into lines that keep their comments. Salt writes the whole file anew when a
//! name is added: one line per address, empty lines gone. So do we, for the same result.

use std::path::PathBuf;

use halite_spec::{Cx, Result, function, host::Write, module};
use halite_value::{Dict, Value, dict};

use crate::file::text::read_to_edit_if_there;

module! {
    /// The names in `/etc/hosts`.
    "hosts": list_hosts, get_ip, get_alias, has_pair, set_host, rm_host, add_host, set_comment,
}

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Comment(String),
    Host { ip: String, aliases: Vec<String>, comment: Option<String> },
}

/// The file as data: one entry per address, in the order of their first lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(pub Vec<Line>);

impl Hosts {
    pub fn read(text: &str) -> Self {
        let mut hosts = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with('#') {
                hosts.0.push(Line::Comment(line.to_owned()));
                continue;
            }
            let (line, note) = match line.split_once('#') {
                Some((line, note)) => {
                    (line, Some(note.trim_start()).filter(|note| !note.is_empty()))
                }
                None => (line, None),
            };
            let mut words = line.split_whitespace().map(str::to_owned);
            let Some(address) = words.next() else { continue };
            let names = words.collect::<Vec<_>>();
            match hosts.find_mut(&address) {
                Some((aliases, comment)) => {
                    aliases.extend(names);
                    if let Some(note) = note {
                        *comment = Some(note.to_owned());
                    }
                }
                None => hosts.0.push(Line::Host {
                    ip: address,
                    aliases: names,
                    comment: note.map(str::to_owned),
                }),
            }
        }
        hosts
    }

    fn find_mut(&mut self, address: &str) -> Option<(&mut Vec<String>, &mut Option<String>)> {
        self.0.iter_mut().find_map(|line| match line {
            Line::Host { ip, aliases, comment } if ip == address => Some((aliases, comment)),
            _ => None,
        })
    }

    /// Returns the names and the comment of an address.
    pub fn find(&self, address: &str) -> Option<(&[String], Option<&str>)> {
        self.0.iter().find_map(|line| match line {
            Line::Host { ip, aliases, comment } if ip == address => {
                Some((aliases.as_slice(), comment.as_deref()))
            }
            _ => None,
        })
    }

    fn write(&self) -> String {
        let mut text = String::new();
        for line in &self.0 {
            let line = match line {
                Line::Comment(line) => line.clone(),
                Line::Host { ip, aliases, comment: Some(comment) } => {
                    format!("{ip}\t\t{}\t\t# {comment}", aliases.join(" "))
                }
                Line::Host { ip, aliases, comment: None } => {
                    format!("{ip}\t\t{}", aliases.join(" "))
                }
            };
            text += &format!("{}\n", line.trim());
        }
        text
    }
}

fn file(cx: &Cx) -> PathBuf {
    let named = cx.opt_str("hosts.file").filter(|file| !file.is_empty());
    PathBuf::from(named.as_deref().unwrap_or("/etc/hosts"))
}

/// Reads the file; a missing one is empty.
pub fn load(cx: &Cx) -> Result<Hosts> {
    Ok(Hosts::read(&cx.host.read_text_if_there(&file(cx))?.unwrap_or_default()))
}

fn save(cx: &Cx, text: &str) -> Result<()> {
    Ok(cx.host.write(&file(cx), text.as_bytes(), &Write::default())?)
}

/// Return what stands in the file, by address.
///
/// ```console
/// $ salt web1 hosts.list_hosts
/// ```
#[function]
pub fn list_hosts(cx: &Cx) -> Result<Dict> {
    let found = Dict::new();
    let mut comments = 0;
    for line in load(cx)?.0 {
        match line {
            Line::Comment(text) => {
                found.insert(format!("comment-{comments}"), Value::list([text]));
                comments += 1;
            }
            Line::Host { ip, aliases, comment } => {
                let entry = dict! { "aliases" => Value::list(aliases) };
                if let (Value::Dict(entry), Some(comment)) = (&entry, comment) {
                    entry.insert("comment", comment);
                }
                found.insert(ip, entry);
            }
        }
    }
    Ok(found)
}

/// Return the address of a name, or an empty text.
///
/// ```console
/// $ salt web1 hosts.get_ip db1.example.org
/// ```
#[function]
pub fn get_ip(
    cx: &Cx,
    /// The name.
    host: String,
) -> Result<String> {
    let hosts = load(cx)?;
    let found = hosts.0.into_iter().find_map(|line| match line {
        Line::Host { ip, aliases, .. } if aliases.contains(&host) => Some(ip),
        _ => None,
    });
    Ok(found.unwrap_or_default())
}

/// Return the names of an address.
///
/// ```console
/// $ salt web1 hosts.get_alias 192.0.2.10
/// ```
#[function]
pub fn get_alias(
    cx: &Cx,
    /// The address.
    ip: String,
) -> Result<Vec<String>> {
    Ok(load(cx)?.find(&ip).map(|(aliases, _)| aliases.to_vec()).unwrap_or_default())
}

/// Tell whether an address has a name, or all of several.
///
/// ```console
/// $ salt web1 hosts.has_pair 192.0.2.10 db1
/// ```
#[function]
pub fn has_pair(
    cx: &Cx,
    /// The address.
    ip: String,
    /// The name, or a list of names.
    alias: Vec<String>,
) -> Result<bool> {
    let hosts = load(cx)?;
    Ok(hosts.find(&ip).is_some_and(|(own, _)| alias.iter().all(|name| own.contains(name))))
}

/// Set the names of an address; without names its line goes.
///
/// ```console
/// $ salt web1 hosts.set_host 192.0.2.10 db1
/// ```
#[function]
pub fn set_host(
    cx: &Cx,
    /// The address.
    ip: String,
    /// The names, with spaces.
    alias: String,
    /// A comment on the line.
    comment: Option<String>,
) -> Result<bool> {
    let text = read_to_edit_if_there(cx, &file(cx))?.unwrap_or_default();
    let comment = comment.filter(|comment| !comment.is_empty());
    let comment = comment.map(|comment| format!("\t\t# {comment}")).unwrap_or_default();
    let line =
        if alias.trim().is_empty() { String::new() } else { format!("{ip}\t\t{alias}{comment}\n") };
    let mut new = String::new();
    let mut placed = false;
    for old in text.split_inclusive('\n') {
        let trimmed = old.trim();
        let own = !trimmed.starts_with('#') && trimmed.split_whitespace().next() == Some(&ip);
        if !own {
            new += old;
        } else if !placed {
            new += &line;
            placed = true;
        }
    }
    if !placed {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &line;
    }
    save(cx, &new)?;
    Ok(true)
}

/// Remove a name from an address.
///
/// ```console
/// $ salt web1 hosts.rm_host 192.0.2.10 db1
/// ```
#[function]
pub fn rm_host(
    cx: &Cx,
    /// The address.
    ip: String,
    /// The name.
    alias: String,
) -> Result<bool> {
    if !has_pair(cx, ip.clone(), vec![alias.clone()])? {
        return Ok(true);
    }
    let text = read_to_edit_if_there(cx, &file(cx))?.unwrap_or_default();
    let mut new = String::new();
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let (names, comment) = match trimmed.split_once('#') {
            Some((names, comment)) => (names, Some(comment.trim_start())),
            None => (trimmed, None),
        };
        let mut words = names.split_whitespace();
        if trimmed.starts_with('#') || words.next() != Some(&ip) {
            new += line;
            continue;
        }
        let left: Vec<&str> = words.filter(|name| *name != alias).collect();
        if left.is_empty() {
            continue;
        }
        let names: String = left.iter().map(|name| format!("{name} ")).collect();
        let comment = comment.filter(|text| !text.is_empty()).map(|text| format!("# {text}"));
        new += &format!("{ip}\t\t{names}{}\n", comment.unwrap_or_default());
    }
    save(cx, &new)?;
    Ok(true)
}

/// Add a name to an address.
///
/// ```console
/// $ salt web1 hosts.add_host 192.0.2.10 db1
/// ```
#[function]
pub fn add_host(
    cx: &Cx,
    /// The address.
    ip: String,
    /// The name.
    alias: String,
) -> Result<bool> {
    let mut hosts = load(cx)?;
    match hosts.find_mut(&ip) {
        Some((aliases, _)) if aliases.contains(&alias) => return Ok(true),
        Some((aliases, _)) => aliases.push(alias),
        None => hosts.0.push(Line::Host { ip, aliases: vec![alias], comment: None }),
    }
    save(cx, &hosts.write())?;
    Ok(true)
}

/// Set the comment on the line of an address.
///
/// ```console
/// $ salt web1 hosts.set_comment 192.0.2.10 'set by hand'
/// ```
#[function]
pub fn set_comment(
    cx: &Cx,
    /// The address.
    ip: String,
    /// The comment.
    comment: String,
) -> Result<bool> {
    let mut hosts = load(cx)?;
    let Some((_, own)) = hosts.find_mut(&ip) else { return Ok(false) };
    if own.as_ref() == Some(&comment) {
        return Ok(true);
    }
    *own = Some(comment);
    save(cx, &hosts.write())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let hosts =
            Hosts::read("# top\n\n127.0.0.1 localhost # me\n::1\tip6 six\n127.0.0.1 more\n");
        assert_eq!(hosts.write(), "# top\n127.0.0.1\t\tlocalhost more\t\t# me\n::1\t\tip6 six\n");
        assert_eq!(hosts.find("127.0.0.1").unwrap().1, Some("me"));
    }
}
