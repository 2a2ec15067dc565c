//! `dnsutil`: names and addresses, hosts files and zone files.
//!
//! `dig` is asked where there is one; otherwise the machine's resolver is.

#![expect(non_snake_case, reason = "records have their own names")]

use std::{net::IpAddr, path::Path};

use halite_spec::{Cx, Error, Result, Strings, function, host::Write, module};
use halite_value::{Dict, List, Value};

use crate::{dig, status};

module! {
    /// Names and addresses, hosts files and zone files.
    "dnsutil": parse_hosts, hosts_append, hosts_remove, parse_zone, check_ip, A, AAAA, NS, SPF,
    MX, serial,
}

fn resolved(cx: &Cx, host: &str, kind: &str, nameserver: Option<&str>) -> Result<Value> {
    if cx.host.which("dig").is_some() {
        return dig::addresses(cx, host, kind, nameserver).map(Value::from);
    }
    if nameserver.is_some() {
        return Ok("This function requires dig, which is not currently available".into());
    }
    let found = cx.host.resolve(host)?;
    let mut own = found.addresses.iter().filter(|address| match address {
        IpAddr::V4(_) => kind == "A",
        IpAddr::V6(_) => kind == "AAAA",
    });
    let list: Vec<String> = own.by_ref().map(IpAddr::to_string).collect();
    if list.is_empty() {
        return Ok(format!("Unable to resolve {host}").into());
    }
    Ok(list.into())
}

fn needs_dig(cx: &Cx) -> Option<Value> {
    let text = "This function requires dig, which is not currently available";
    cx.host.which("dig").is_none().then(|| text.into())
}

/// Host lines: address → names, as often as they are there. Only a line that begins with `#` is a
/// comment; Salt takes everything else for names.
fn read_hosts(text: &str) -> Dict {
    let ret = Dict::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(address) = words.next() else { continue };
        if let Value::List(names) = ret.get_or_insert_with(address, || List::new().into()) {
            words.for_each(|name| names.push(name));
        }
    }
    ret
}

/// Return what a hosts file says: address → names.
///
/// ```console
/// $ salt web1 dnsutil.parse_hosts
/// ```
#[function]
pub fn parse_hosts(
    cx: &Cx,
    /// The file.
    #[default("/etc/hosts".to_owned())]
    hostsfile: String,
    /// Its text, in place of a file.
    hosts: Option<String>,
) -> Result<Value> {
    let text = match hosts {
        Some(text) => text,
        None => match cx.host.read_text_if_there(Path::new(&hostsfile))? {
            Some(text) => text,
            None => return Ok("Error: hosts data was not found".into()),
        },
    };
    Ok(read_hosts(&text).into())
}

/// Add names to an address in a hosts file; returns what is added.
///
/// ```console
/// $ salt web1 dnsutil.hosts_append
/// ```
#[function]
pub fn hosts_append(
    cx: &Cx,
    /// The file.
    #[default("/etc/hosts".to_owned())]
    hostsfile: String,
    /// The address.
    ip_addr: Option<String>,
    /// The names.
    entries: Option<Strings>,
) -> Result<String> {
    let (Some(address), Some(names)) = (ip_addr, entries) else {
        return Err(Error::invalid("an address and names are needed"));
    };
    let text = cx.host.read_text_if_there(Path::new(&hostsfile))?.unwrap_or_default();
    let known = read_hosts(&text).get(address.as_str());
    let known = known.and_then(|known| known.items_of_sequence()).unwrap_or_default();
    // differs: Salt passes over every name that follows a known one, and adds it again.
    let new: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !known.iter().any(|own| own.as_str() == Some(name)))
        .collect();
    if new.is_empty() {
        return Ok(format!("No additional hosts were added to {hostsfile}"));
    }
    // A line of its own whatever comes before it, and without an end.
    let line = format!("\n{address} {}", new.join(" "));
    cx.host.append(Path::new(&hostsfile), line.as_bytes())?;
    Ok(format!("The following line was added to {hostsfile}:{line}"))
}

/// Remove names from a hosts file.
///
/// ```console
/// $ salt web1 dnsutil.hosts_remove
/// ```
#[function]
pub fn hosts_remove(
    cx: &Cx,
    /// The file.
    #[default("/etc/hosts".to_owned())]
    hostsfile: String,
    /// The names.
    entries: Option<Strings>,
) -> Result<Value> {
    let names = entries.unwrap_or_default();
    let Some(text) = cx.host.read_text_if_there(Path::new(&hostsfile))? else {
        return Err(Error::failed(format!("{hostsfile} was not found")));
    };
    let mut new = String::new();
    for line in text.split_inclusive('\n') {
        if line == "\n" || line.starts_with('#') {
            new += line;
            continue;
        }
        let mut words = line.split_whitespace();
        let address = words.next().unwrap_or_default();
        let left: Vec<&str> = words.filter(|word| !names.iter().any(|name| name == word)).collect();
        // An address alone says nothing.
        if !left.is_empty() {
            new += &format!("{address} {}\n", left.join(" "));
        }
    }
    cx.host.write(Path::new(&hostsfile), new.as_bytes(), &Write::default())?;
    Ok(Value::Null)
}

/// Return what a zone file says.
///
/// ```console
/// $ salt '*' dnsutil.parse_zone /var/lib/named/example.com.zone
/// ```
#[function]
pub fn parse_zone(
    cx: &Cx,
    /// The file.
    zonefile: Option<String>,
    /// Its text, in place of a file.
    zone: Option<String>,
) -> Result<Value> {
    let text = match (zonefile, zone) {
        (Some(path), _) => cx.host.read_text(Path::new(&path))?,
        (None, Some(text)) => text,
        (None, None) => return Ok("Error: Zone data was not found".into()),
    };
    let ret = Dict::new();
    let mut joined = String::new();
    let mut open = false;
    // Brackets join lines; a semicolon begins a comment.
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or_default();
        open = (open || line.contains('(')) && !line.contains(')');
        joined += &line.replace(['(', ')'], " ");
        joined.push(if open { ' ' } else { '\n' });
    }
    let mut last = String::new();
    for line in joined.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["$ORIGIN", origin, ..] => {
                ret.insert("ORIGIN", *origin);
                continue;
            }
            ["$TTL", ttl, ..] => {
                ret.insert("TTL", *ttl);
                continue;
            }
            _ => {}
        }
        if !line.starts_with([' ', '\t']) {
            last = words.first().copied().unwrap_or_default().to_owned();
        }
        let all: Vec<&str> = line.split_whitespace().filter(|word| *word != "IN").collect();
        let kinds = ["SOA", "NS", "MX", "A", "AAAA", "CNAME", "TXT", "PTR", "SRV"];
        let Some(at) = all.iter().position(|word| kinds.contains(word)) else { continue };
        let (kind, rest) =
            (all.get(at).copied().unwrap_or_default(), all.get(at + 1..).unwrap_or(&[]));
        match kind {
            "SOA" => {
                let part = |at: usize| rest.get(at).copied().unwrap_or_default();
                ret.insert(
                    "SOA",
                    halite_value::dict! {
                        "master" => part(0), "email" => part(1), "serial" => part(2),
                        "refresh" => part(3), "retry" => part(4), "expire" => part(5),
                        "minimumttl" => part(6),
                    },
                );
            }
            "NS" => {
                if let Value::List(list) = ret.get_or_insert_with("NS", || List::new().into()) {
                    list.push(rest.join(" "));
                }
            }
            "MX" => {
                if let Value::List(list) = ret.get_or_insert_with("MX", || List::new().into()) {
                    let part = |at: usize| rest.get(at).copied().unwrap_or_default();
                    list.push(halite_value::dict! { "priority" => part(0), "host" => part(1) });
                }
            }
            kind => {
                let own = ret.get_or_insert_with(kind, Value::dict);
                if let Value::Dict(own) = own {
                    own.insert(last.as_str(), rest.join(" "));
                }
            }
        }
    }
    Ok(ret.into())
}

/// Tell whether a text is an address.
///
/// ```console
/// $ salt '*' dnsutil.check_ip 127.0.0.1
/// ```
#[function]
pub fn check_ip(
    cx: &Cx,
    /// The text.
    ip_addr: String,
) -> Result<Value> {
    // Salt asks its module of `dig` for this, too.
    if let Some(text) = needs_dig(cx) {
        return Ok(text);
    }
    Ok(dig::is_address(&ip_addr).into())
}

/// Return the IPv4 addresses of a name.
///
/// ```console
/// $ salt '*' dnsutil.A www.google.com
/// ```
#[function]
pub fn A(
    cx: &Cx,
    /// The name.
    host: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Value> {
    resolved(cx, &host, "A", nameserver.as_deref())
}

/// Return the IPv6 addresses of a name.
///
/// ```console
/// $ salt '*' dnsutil.AAAA www.google.com
/// ```
#[function]
pub fn AAAA(
    cx: &Cx,
    /// The name.
    host: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Value> {
    resolved(cx, &host, "AAAA", nameserver.as_deref())
}

/// Return the name servers of a domain.
///
/// ```console
/// $ salt '*' dnsutil.NS google.com
/// ```
#[function]
pub fn NS(
    cx: &Cx,
    /// The domain.
    domain: String,
    /// As addresses, not as names.
    #[default(true)]
    resolve: bool,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Value> {
    if let Some(text) = needs_dig(cx) {
        return Ok(text);
    }
    dig::name_servers(cx, &domain, resolve, nameserver.as_deref()).map(Value::from)
}

/// Return the networks mail of a domain may come from.
///
/// ```console
/// $ salt '*' dnsutil.SPF google.com
/// ```
#[function]
pub fn SPF(
    cx: &Cx,
    /// The domain.
    domain: String,
    /// The kind of record.
    #[default("SPF".to_owned())]
    record: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Value> {
    if let Some(text) = needs_dig(cx) {
        return Ok(text);
    }
    dig::senders(cx, &domain, &record, nameserver.as_deref(), 0).map(Value::from)
}

/// Return the mail servers of a domain: priority and name.
///
/// ```console
/// $ salt '*' dnsutil.MX google.com
/// ```
#[function]
pub fn MX(
    cx: &Cx,
    /// The domain.
    domain: String,
    /// As addresses, not as names.
    #[default(false)]
    resolve: bool,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Value> {
    if let Some(text) = needs_dig(cx) {
        return Ok(text);
    }
    let rows = dig::mail_servers(cx, &domain, resolve, nameserver.as_deref())?;
    Ok(Value::list(rows.into_iter().map(Value::list)))
}

/// Return a serial number for a zone, made of the date; keep it in a grain.
///
/// ```console
/// $ salt '*' dnsutil.serial example.com
/// ```
#[function]
pub fn serial(
    cx: &Cx,
    /// The zone.
    #[default(String::new())]
    zone: String,
    /// Count up, not only read.
    #[default(false)]
    update: bool,
) -> Result<String> {
    let key = if zone.is_empty() { "dnsserial".to_owned() } else { format!("dnsserial_{zone}") };
    let now = cx.host.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let today = status::strftime(cx, now, "%Y%m%d01")?;
    let stored = cx.grain(&key).map(|stored| stored.to_string()).unwrap_or_default();
    let newest = match (stored.parse::<u64>(), today.parse::<u64>()) {
        (Ok(stored), Ok(today)) if stored >= today => (stored + u64::from(update)).to_string(),
        _ => today,
    };
    if newest != stored {
        cx.call("grains.setval", halite_spec::Call::of([key, newest.clone()]))?;
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_hosts() {
        let hosts = read_hosts("127.0.0.1 a b\n#c\n10.0.0.1 x # y\n127.0.0.1 b c\n");
        let expected = "{'127.0.0.1': ['a', 'b', 'b', 'c'], '10.0.0.1': ['x', '#', 'y']}";
        assert_eq!(Value::from(hosts).repr(), expected);
    }
}
