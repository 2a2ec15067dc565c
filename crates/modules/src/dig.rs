//! `dig`: what name servers say, over the program of that name.

#![expect(non_snake_case, reason = "records have their own names")]

use std::net::IpAddr;

use halite_spec::{Command, Cx, Need, Result, alias, function, module};
use halite_value::Value;

module! {
    /// What name servers say.
    "dig", needs = [
        Need::program(&["dig"], "The dig execution module cannot be loaded: the dig binary is not in the path."),
    ]: check_ip, A, AAAA, CNAME, PTR, NS, MX, SPF, TXT, a, aaaa, cname, ptr, ns, spf, mx,
}

alias! { a = A, aaaa = AAAA, cname = CNAME, ptr = PTR, ns = NS, spf = SPF, mx = MX }

fn ask(cx: &Cx, name: &str, kind: &str, nameserver: Option<&str>) -> Result<Vec<String>> {
    let server = nameserver.map(|server| format!("@{server}"));
    let mut words = vec!["dig", "+short"];
    words.extend(server.as_deref());
    words.extend([name, kind]);
    if name.starts_with(['-', '+', '@']) {
        return Ok(Vec::new());
    }
    let output = cx.host.run(&Command::line(words).query())?;
    if !output.ok() {
        tracing::warn!(
            "dig returned exit code '{}'. Returning empty list as fallback.",
            output.code
        );
        return Ok(Vec::new());
    }
    let text = output.stdout_text();
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

pub fn is_address(text: &str) -> bool {
    let (address, length) = text.split_once('/').unwrap_or((text, "0"));
    address.parse::<IpAddr>().is_ok_and(|address| {
        length.parse::<u8>().is_ok_and(|bits| bits <= if address.is_ipv4() { 32 } else { 128 })
    })
}

/// Only the addresses: names on the way to them are left out.
pub fn addresses(cx: &Cx, host: &str, kind: &str, nameserver: Option<&str>) -> Result<Vec<String>> {
    Ok(ask(cx, host, kind, nameserver)?.into_iter().filter(|line| is_address(line)).collect())
}

/// The name servers of a domain, or their addresses.
pub fn name_servers(
    cx: &Cx,
    domain: &str,
    resolve: bool,
    nameserver: Option<&str>,
) -> Result<Vec<String>> {
    let names = ask(cx, domain, "ns", nameserver)?;
    if !resolve {
        return Ok(names);
    }
    let mut found = Vec::new();
    for name in names {
        found.extend(addresses(cx, &name, "A", nameserver)?);
    }
    Ok(found)
}

/// Priority and name of the mail servers of a domain, or the addresses in place of the names.
pub fn mail_servers(
    cx: &Cx,
    domain: &str,
    resolve: bool,
    nameserver: Option<&str>,
) -> Result<Vec<Vec<String>>> {
    let mut found = Vec::new();
    for line in ask(cx, domain, "mx", nameserver)? {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if resolve && let Some(name) = words.get(1).cloned() {
            let address = addresses(cx, &name, "A", nameserver)?.into_iter().next();
            words.truncate(1);
            words.extend(address);
        }
        found.push(words);
    }
    Ok(found)
}

/// The networks mail of a domain may come from, those it includes too.
pub fn senders(
    cx: &Cx,
    domain: &str,
    record: &str,
    nameserver: Option<&str>,
    depth: usize,
) -> Result<Vec<String>> {
    let texts = ask(cx, domain, record, nameserver)?;
    if texts.is_empty() && record == "SPF" {
        // Long since everybody writes it as TXT.
        return senders(cx, domain, "TXT", nameserver, depth);
    }
    let mut found = Vec::new();
    for text in texts {
        let text = text.replace("\" \"", "").replace('"', "");
        let Some(rest) = text.strip_prefix("v=spf1") else { continue };
        for word in rest.split_whitespace() {
            if let Some((kind, value)) = word.split_once(':') {
                match kind.trim_start_matches(['+', '?', '~', '-']) {
                    "ip4" | "ip6" => found.push(value.to_owned()),
                    "include" if depth < 10 => {
                        found.extend(senders(cx, value, record, nameserver, depth + 1)?);
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(found)
}

/// Tell whether a text is an address.
///
/// ```console
/// $ salt '*' dig.check_ip 127.0.0.1
/// ```
#[function]
pub fn check_ip(
    _cx: &Cx,
    /// The text.
    addr: String,
) -> Result<bool> {
    Ok(is_address(addr.split_once('/').map_or(addr.as_str(), |(ip, _)| ip)))
}

/// Return the IPv4 addresses of a name.
///
/// ```console
/// $ salt '*' dig.A www.google.com
/// ```
#[function]
pub fn A(
    cx: &Cx,
    /// The name.
    host: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Vec<String>> {
    addresses(cx, &host, "A", nameserver.as_deref())
}

/// Return the IPv6 addresses of a name.
///
/// ```console
/// $ salt '*' dig.AAAA www.google.com
/// ```
#[function]
pub fn AAAA(
    cx: &Cx,
    /// The name.
    host: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Vec<String>> {
    addresses(cx, &host, "AAAA", nameserver.as_deref())
}

/// Return the name behind a name.
///
/// ```console
/// $ salt '*' dig.CNAME mail.google.com
/// ```
#[function]
pub fn CNAME(
    cx: &Cx,
    /// The name.
    host: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Vec<String>> {
    ask(cx, &host, "CNAME", nameserver.as_deref())
}

/// Return the names of an address.
///
/// ```console
/// $ salt '*' dig.PTR 1.2.3.4
/// ```
#[function]
pub fn PTR(
    cx: &Cx,
    /// The name.
    host: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Vec<String>> {
    let reversed = crate::network::reverse_ip(cx, host)?;
    ask(cx, &reversed, "PTR", nameserver.as_deref())
}

/// Return the name servers of a domain, as addresses.
///
/// ```console
/// $ salt '*' dig.NS google.com
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
) -> Result<Vec<String>> {
    name_servers(cx, &domain, resolve, nameserver.as_deref())
}

/// Return the mail servers of a domain: priority and name.
///
/// ```console
/// $ salt '*' dig.MX google.com
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
    let rows = mail_servers(cx, &domain, resolve, nameserver.as_deref())?;
    Ok(Value::list(rows.into_iter().map(Value::list)))
}

/// Return the networks mail of a domain may come from.
///
/// ```console
/// $ salt '*' dig.SPF google.com
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
) -> Result<Vec<String>> {
    senders(cx, &domain, &record, nameserver.as_deref(), 0)
}

/// Return the texts of a name.
///
/// ```console
/// $ salt '*' dig.TXT google.com
/// ```
#[function]
pub fn TXT(
    cx: &Cx,
    /// The name.
    host: String,
    /// The server to ask.
    nameserver: Option<String>,
) -> Result<Vec<String>> {
    ask(cx, &host, "TXT", nameserver.as_deref())
}
