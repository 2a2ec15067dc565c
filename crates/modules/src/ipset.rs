//! `ipset`: sets of addresses, networks and ports for the packet filter, over the program `ipset`.
//!
//! A mistake is an answer here, not an error: Salt returns texts that begin with `Error:`.

use std::net::IpAddr;

use halite_spec::{Args, Cx, Need, Rest, Result, function, module};
use halite_value::{Dict, Value};

use crate::cmd::{Options, Ran, plain};

module! {
    /// Sets of addresses for the packet filter.
    "ipset", needs = [
        Need::program(&["ipset"], "The ipset execution modules cannot be loaded: ipset binary not in path."),
    ]: version, new_set, delete_set, rename_set, list_sets, check_set, add, delete, check,
    test, flush,
}

const NO_SET: &str = "Error: Set needs to be specified";
const NO_ENTRY: &str = "Error: Entry needs to be specified";

/// The options of each type of set, in the order in which they are written.
const TYPES: &[(&str, &[&str])] = &[
    ("bitmap:ip", &["range", "netmask", "timeout", "counters", "skbinfo"]),
    ("bitmap:ip,mac", &["range", "timeout", "counters", "skbinfo"]),
    ("bitmap:port", &["range", "timeout", "counters", "skbinfo"]),
    ("hash:ip", &["family", "hashsize", "maxelem", "netmask", "timeout", "counters", "skbinfo"]),
    ("hash:mac", &["hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:ip,mark", &["family", "markmask", "hashsize", "maxelem", "timeout", "counters"]),
    ("hash:net", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:net,net", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:net,iface", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:net,port", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:net,port,net", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:ip,port", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:ip,port,ip", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("hash:ip,port,net", &["family", "hashsize", "maxelem", "timeout", "counters", "skbinfo"]),
    ("list:set", &["size", "timeout", "counters"]),
];

fn run(cx: &Cx, words: &[&str], query: bool) -> Result<Ran> {
    let words = ["ipset"].into_iter().chain(words.iter().copied());
    plain(cx, words, Options { query, ignore_retcode: query, ..Options::default() })
}

fn refused(ran: &Ran) -> Value {
    let said = if ran.stderr.is_empty() { &ran.stdout } else { &ran.stderr };
    format!("Error: {}", said.trim()).into()
}

/// True, or what the program complained about.
fn done(ran: &Ran) -> Value {
    if ran.ok() { true.into() } else { refused(ran) }
}

fn given(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty())
}

fn missing(name: &str) -> Value {
    format!("Error: Set {name} does not exist").into()
}

fn is_there(cx: &Cx, name: &str) -> Result<bool> {
    let ran = run(cx, &["list", "-t", name], true)?;
    Ok(ran.ok() && !ran.stdout.is_empty())
}

/// The lines after `Members:`, and whether members may have comments.
fn members(cx: &Cx, name: &str) -> Result<(Vec<String>, String)> {
    let ran = run(cx, &["list", name], true)?;
    let header = ran.stdout.lines().find_map(|line| line.strip_prefix("Header:"));
    let members = ran.stdout.lines().skip_while(|line| *line != "Members:").skip(1);
    Ok((members.map(str::to_owned).collect(), header.unwrap_or_default().trim().to_owned()))
}

/// Return the version of the program.
///
/// ```console
/// $ salt web1 ipset.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<Option<String>> {
    let ran = run(cx, &["--version"], true)?;
    Ok(ran.stdout.split_whitespace().nth(1).map(str::to_owned))
}

/// Make a set.
///
/// ```console
/// $ salt web1 ipset.new_set blocked hash:ip
/// ```
#[function]
pub fn new_set(
    cx: &Cx,
    /// Its name.
    name: Option<String>,
    /// Its type: `hash:ip` …
    set_type: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// Its members may have comments.
    #[default(false)]
    comment: bool,
    /// What the type takes: `hashsize`, `timeout` …
    kwargs: Rest,
) -> Result<Value> {
    let Some(name) = given(name) else {
        return Ok("Error: Set Name needs to be specified".into());
    };
    let Some(set_type) = given(set_type) else {
        return Ok("Error: Set Type needs to be specified".into());
    };
    let Some((_, options)) = TYPES.iter().find(|(own, _)| *own == set_type) else {
        return Ok("Error: Set Type is invalid".into());
    };
    let mut words = vec!["create".to_owned(), name, set_type.clone()];
    if set_type.starts_with("bitmap") && !kwargs.kwargs.contains("range") {
        return Ok("Error: range is a required argument".into());
    }
    for option in options.iter().filter(|option| **option != "family") {
        match kwargs.kwargs.get(*option) {
            None | Some(Value::Bool(false)) => {}
            Some(_) if ["counters", "skbinfo"].contains(option) => words.push((*option).into()),
            Some(value) => words.extend([(*option).to_owned(), value.to_string()]),
        }
    }
    if options.contains(&"family") {
        let family = if family == "ipv6" { "inet6" } else { "inet" };
        words.extend(["family".to_owned(), family.to_owned()]);
    }
    if comment {
        words.push("comment".to_owned());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(done(&run(cx, &words, false)?))
}

/// Remove a set.
///
/// ```console
/// $ salt web1 ipset.delete_set blocked
/// ```
#[function]
pub fn delete_set(
    cx: &Cx,
    /// Its name.
    name: Option<String>,
    /// `ipv4` or `ipv6`; sets have names of their own, so it says nothing.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let _ = family;
    let Some(name) = given(name) else { return Ok(NO_SET.into()) };
    Ok(done(&run(cx, &["destroy", &name], false)?))
}

/// Rename a set.
///
/// ```console
/// $ salt web1 ipset.rename_set blocked refused
/// ```
#[function]
pub fn rename_set(
    cx: &Cx,
    /// Its name.
    name: Option<String>,
    /// Its new name.
    new_set: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let _ = family;
    let Some(name) = given(name) else { return Ok(NO_SET.into()) };
    let Some(new) = given(new_set) else {
        return Ok("Error: New name for set needs to be specified".into());
    };
    if !is_there(cx, &name)? {
        return Ok("Error: Set does not exist".into());
    }
    if is_there(cx, &new)? {
        return Ok("Error: New Set already exists".into());
    }
    Ok(done(&run(cx, &["rename", &name, &new], false)?))
}

/// Return all sets, without their members.
///
/// ```console
/// $ salt web1 ipset.list_sets
/// ```
#[function]
pub fn list_sets(
    cx: &Cx,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Vec<Value>> {
    let _ = family;
    let ran = run(cx, &["list", "-t"], true)?;
    let mut sets: Vec<Dict> = Vec::new();
    for line in ran.stdout.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        if key == "Name" {
            sets.push(Dict::new());
        }
        if let Some(set) = sets.last() {
            set.insert(key, value.trim());
        }
    }
    Ok(sets.into_iter().map(Value::from).collect())
}

/// Tell whether a set exists.
///
/// ```console
/// $ salt web1 ipset.check_set blocked
/// ```
#[function]
pub fn check_set(
    cx: &Cx,
    /// Its name.
    name: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let _ = family;
    let Some(name) = given(name) else { return Ok(NO_SET.into()) };
    Ok(is_there(cx, &name)?.into())
}

/// An entry of a set.
#[derive(Args)]
pub struct Entry {
    /// The set.
    pub name: Option<String>,
    /// The entry.
    pub entry: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    pub family: String,
    /// `timeout`, `comment` and what else a new entry takes.
    pub kwargs: Rest,
}

impl Entry {
    /// The set and the entry, or what is said of a set that is not there.
    fn found(&self, cx: &Cx) -> Result<Result<(String, String), Value>> {
        let Some(name) = given(self.name.clone()) else { return Ok(Err(NO_SET.into())) };
        let Some(entry) = given(self.entry.clone()) else { return Ok(Err(NO_ENTRY.into())) };
        Ok(if is_there(cx, &name)? { Ok((name, entry)) } else { Err(missing(&name)) })
    }
}

/// Add an entry to a set.
///
/// ```console
/// $ salt web1 ipset.add blocked 192.0.2.10
/// ```
#[function]
pub fn add(cx: &Cx, #[group] entry: Entry) -> Result<Value> {
    let (name, own) = match entry.found(cx)? {
        Ok(found) => found,
        Err(said) => return Ok(said),
    };
    let (known, header) = members(cx, &name)?;
    let takes = |what: &str| header.split_whitespace().any(|word| word == what);
    let mut words: Vec<String> = own.split_whitespace().map(str::to_owned).collect();
    for (option, needs) in [
        ("comment", "comment"),
        ("timeout", "timeout"),
        ("packets", "counters"),
        ("bytes", "counters"),
    ] {
        let Some(value) = entry.kwargs.kwargs.get(option).filter(Value::truthy) else { continue };
        if !takes(needs) && option == "comment" {
            return Ok(format!("Error: Set {name} not created with comment option").into());
        }
        if takes(needs) {
            words.extend([option.to_owned(), value.to_string()]);
        }
    }
    if known.iter().any(|own| *own == words.join(" ")) {
        return Ok(format!("Warn: Entry {} already exists in set {name}", words.join(" ")).into());
    }
    let line: Vec<&str> =
        ["add", "-exist", &name].into_iter().chain(words.iter().map(String::as_str)).collect();
    let ran = run(cx, &line, false)?;
    Ok(if ran.ok() { "Success".into() } else { refused(&ran) })
}

/// Remove an entry from a set.
///
/// ```console
/// $ salt '*' ipset.delete name 192.168.1.26
/// ```
#[function]
pub fn delete(cx: &Cx, #[group] entry: Entry) -> Result<Value> {
    let (name, entry) = match entry.found(cx)? {
        Ok(found) => found,
        Err(said) => return Ok(said),
    };
    let ran = run(cx, &["del", &name, &entry], false)?;
    Ok(if ran.ok() { "Success".into() } else { refused(&ran) })
}

fn bounds(text: &str) -> Option<(IpAddr, IpAddr)> {
    if let Some((first, last)) = text.split_once('-') {
        return Some((first.trim().parse().ok()?, last.trim().parse().ok()?));
    }
    let (address, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    Some(match address {
        IpAddr::V4(ip) => {
            let bits: u32 = bits.map_or(Ok(32), str::parse).ok().filter(|bits| *bits <= 32)?;
            let host = u32::MAX.checked_shr(bits).unwrap_or(0);
            let first = u32::from(ip) & !host;
            (IpAddr::V4(first.into()), IpAddr::V4((first | host).into()))
        }
        IpAddr::V6(ip) => {
            let bits: u32 = bits.map_or(Ok(128), str::parse).ok().filter(|bits| *bits <= 128)?;
            let host = u128::MAX.checked_shr(bits).unwrap_or(0);
            let first = u128::from(ip) & !host;
            (IpAddr::V6(first.into()), IpAddr::V6((first | host).into()))
        }
    })
}

/// An address is in a set when it is a member, or lies within one; a network when a member lies
/// within it.
fn holds(member: &str, entry: &str) -> bool {
    let first = member.split_whitespace().next().unwrap_or_default();
    if member == entry || first == entry {
        return true;
    }
    match (bounds(first), bounds(entry)) {
        (Some(own), Some(wanted)) => {
            let within = |a: (IpAddr, IpAddr), b: (IpAddr, IpAddr)| a.0 >= b.0 && a.1 <= b.1;
            within(wanted, own) || (entry.contains('/') && within(own, wanted))
        }
        _ => false,
    }
}

/// Tell whether an entry is in a set.
///
/// ```console
/// $ salt web1 ipset.check blocked 192.0.2.10
/// ```
#[function]
pub fn check(
    cx: &Cx,
    /// The set.
    name: Option<String>,
    /// The entry, or several of which one is enough.
    entry: Option<Value>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let _ = family;
    let Some(name) = given(name) else { return Ok(NO_SET.into()) };
    let Some(entry) = entry.filter(Value::truthy) else { return Ok(NO_ENTRY.into()) };
    if !is_there(cx, &name)? {
        return Ok(missing(&name));
    }
    let wanted = entry.items_of_sequence().unwrap_or_else(|| vec![entry]);
    let (members, _) = members(cx, &name)?;
    let found = wanted.iter().any(|entry| {
        let entry = entry.to_string();
        members.iter().any(|member| holds(member, &entry))
    });
    Ok(found.into())
}

/// Ask the kernel whether an entry is in a set.
///
/// ```console
/// $ salt '*' ipset.test name 192.168.0.1
/// ```
#[function]
pub fn test(cx: &Cx, #[group] entry: Entry) -> Result<Value> {
    let (name, entry) = match entry.found(cx)? {
        Ok(found) => found,
        Err(said) => return Ok(said),
    };
    Ok(run(cx, &["test", &name, &entry], true)?.ok().into())
}

/// Empty a set, or all of them.
///
/// ```console
/// $ salt web1 ipset.flush blocked
/// ```
#[function]
pub fn flush(
    cx: &Cx,
    /// The set; all if none is given.
    name: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<bool> {
    let _ = family;
    let mut words = vec!["flush"];
    let name = given(name);
    words.extend(name.as_deref());
    Ok(run(cx, &words, false)?.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_within_entries() {
        assert!(holds("10.0.0.1 timeout 5 comment \"x\"", "10.0.0.1"));
        assert!(holds("10.0.0.0/24", "10.0.0.7"));
        assert!(holds("10.0.0.7", "10.0.0.0/24"));
        assert!(!holds("10.0.0.1", "10.0.0.1-10.0.0.2"));
        assert!(!holds("10.0.0.1", "10.0.0.10"));
        assert!(holds("fd00::/8", "fd00::1"));
    }
}
