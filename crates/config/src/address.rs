//! Where a master is: `host`, `host:port`, `[v6]:port`, or a bare IPv6 address.

use std::net::{IpAddr, Ipv6Addr};

use crate::Opts;

/// One master a minion may connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterAddress {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port for requests, when the address carries one.
    pub port: Option<u16>,
}

impl MasterAddress {
    /// Returns the masters of a minion, in the order given. `master` may be one address or a list.
    pub fn all(opts: &Opts) -> Result<Vec<Self>, String> {
        opts.str_list("master").iter().map(|text| Self::parse(text, opts)).collect()
    }

    /// Reads one address, as `master_uri_format` says.
    pub fn parse(text: &str, opts: &Opts) -> Result<Self, String> {
        if opts.str("master_uri_format") == "ip_only" {
            let ip: IpAddr = text
                .parse()
                .map_err(|_| format!("'{text}' does not appear to be an IPv4 or IPv6 address"))?;
            return Ok(Self { host: ip.to_string(), port: None });
        }
        let (host, port) = parse_host_port(text)?;
        Ok(Self { host, port })
    }
}

/// Splits `host`, `host:port`, `[v6]:port` or a bare IPv6 address.
pub fn parse_host_port(text: &str) -> Result<(String, Option<u16>), String> {
    let integer = |port: &str| {
        port.parse()
            .map_err(|_| format!("host_port \"{text}\" port value \"{port}\" is not an integer."))
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (host, tail) =
            rest.rsplit_once(']').ok_or_else(|| format!("bad hostname: \"{text}\""))?;
        let host: Ipv6Addr = host.parse().map_err(|_| format!("bad hostname: \"{host}\""))?;
        let port = match tail.strip_prefix(':') {
            Some(port) => Some(integer(port)?),
            None if tail.is_empty() => None,
            None => return Err(format!("found ambiguous \"{tail}\" port in \"{text}\"")),
        };
        return Ok((host.to_string(), port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(integer(port)?)),
        _ => (text, None),
    };
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok((ip.to_string(), port));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if host.is_empty() || !host.chars().all(legal) {
        return Err(format!("bad hostname: \"{host}\""));
    }
    Ok((host.into(), port))
}

#[cfg(test)]
mod tests {
    use super::parse_host_port;

    fn check(text: &str, host: &str, port: impl Into<Option<u16>>) {
        assert_eq!(parse_host_port(text), Ok((host.into(), port.into())), "{text}");
    }

    #[test]
    fn forms() {
        check("salt", "salt", None);
        check("salt.example:1234", "salt.example", 1234);
        check("10.1.2.3:4567", "10.1.2.3", 4567);
        check("[::1]:1234", "::1", 1234);
        check("[::1]", "::1", None);
        check("fe80::a00:27ff:fedc:ba98", "fe80::a00:27ff:fedc:ba98", None);
        assert!(parse_host_port("salt:x").is_err());
        assert!(parse_host_port("a b").is_err());
        assert!(parse_host_port("[::1]x").is_err());
    }
}
