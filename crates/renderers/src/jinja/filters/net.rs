//! Filters on IP and MAC addresses, with the rules of Python's `ipaddress`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use halite_value::{BigInt, Dict, Value};

use super::Row;
use crate::jinja::{
    call::Bound,
    error::{Error, type_error, value_error},
    eval::{Interp, Result},
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("is_ip", "is_ip_filter(ip_addr, options=)", |_, args| {
        let (value, options) = (args.take(0), args.take(1));
        Ok(Value::Bool(
            shown(&value, 4, &options).is_some() || shown(&value, 6, &options).is_some(),
        ))
    }),
    ("is_ipv4", "is_ipv4_filter(ip_addr, options=)", |_, args| {
        let (value, options) = (args.take(0), args.take(1));
        Ok(Value::Bool(shown(&value, 4, &options).is_some()))
    }),
    ("is_ipv6", "is_ipv6_filter(ip_addr, options=)", |_, args| {
        let (value, options) = (args.take(0), args.take(1));
        Ok(Value::Bool(shown(&value, 6, &options).is_some()))
    }),
    ("ipv4", "ipv4(value, options=)", |interp, args| {
        let (value, options) = (args.take(0), args.take(1));
        of_version(interp, &value, 4, &options)
    }),
    ("ipv6", "ipv6(value, options=)", |interp, args| {
        let (value, options) = (args.take(0), args.take(1));
        of_version(interp, &value, 6, &options)
    }),
    ("ipaddr", "ipaddr(value, options=)", |interp, args| {
        let (value, options) = (args.take(0), args.take(1));
        either(interp, &value, &options)
    }),
    ("ip_host", "ip_host(value, options=, version=)", |interp, args| {
        each(interp, args, |_, network| {
            Ok(Value::from(format!("{}/{}", network.shown(), network.prefix)))
        })
    }),
    ("network_hosts", "network_hosts(value, options=, version=)", |interp, args| {
        each(interp, args, hosts)
    }),
    ("network_size", "network_size(value, options=, version=)", |interp, args| {
        each(interp, args, |_, network| {
            Ok(Value::from_bigint(BigInt::from(1) << network.host_bits()))
        })
    }),
    ("ipwrap", "ipwrap(data)", ipwrap),
    ("filter_by_networks", "filter_by_networks(values, networks)", filter_by_networks),
    ("mac_str_to_bytes", "mac_str_to_bytes(mac_str)", mac_str_to_bytes),
];

/// An address with the length of its network's prefix.
#[derive(Clone, Debug)]
struct Network {
    address: IpAddr,
    zone: Option<String>,
    prefix: u32,
}

impl Network {
    fn shown(&self) -> String {
        match &self.zone {
            Some(zone) => format!("{}%{zone}", self.address),
            None => self.address.to_string(),
        }
    }

    fn width(&self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn host_bits(&self) -> u32 {
        self.width() - self.prefix
    }

    fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    fn first(&self) -> u128 {
        let bits = self.host_bits();
        if bits >= 128 { 0 } else { self.number() >> bits << bits }
    }

    fn contains(&self, address: &IpAddr) -> bool {
        let other = Self { address: *address, zone: None, prefix: self.prefix };
        address.is_ipv4() == self.address.is_ipv4() && other.first() == self.first()
    }

    fn at(&self, number: u128) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
        }
    }
}

fn address(text: &str) -> Option<(IpAddr, Option<String>)> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some((address.into(), None));
    }
    let (text, zone) = match text.split_once('%') {
        Some((_, "")) => return None,
        Some((text, zone)) if !zone.contains('%') => (text, Some(zone.to_owned())),
        Some(_) => return None,
        None => (text, None),
    };
    text.parse::<Ipv6Addr>().ok().map(|address| (address.into(), zone))
}

fn prefix(text: &str, v4: bool) -> Option<u32> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|prefix| *prefix <= if v4 { 32 } else { 128 });
    }
    // A mask, or its inverse.
    let mask = v4.then(|| text.parse::<Ipv4Addr>().ok()).flatten()?.to_bits();
    let ones = mask.leading_ones();
    if mask.checked_shl(ones).unwrap_or(0) == 0 {
        return Some(ones);
    }
    let inverse = !mask;
    let ones = inverse.leading_ones();
    (inverse.checked_shl(ones).unwrap_or(0) == 0).then_some(ones)
}

fn network(text: &str) -> Option<Network> {
    let (own, length) = match text.split_once('/') {
        Some((own, length)) => (own, Some(length)),
        None => (text, None),
    };
    let (address, zone) = address(own)?;
    let prefix = match length {
        Some(length) => prefix(length, address.is_ipv4())?,
        None if address.is_ipv4() => 32,
        None => 128,
    };
    Some(Network { address, zone, prefix })
}

fn within(address: &IpAddr, networks: &[&str]) -> bool {
    networks.iter().any(|text| network(text).is_some_and(|network| network.contains(address)))
}

fn is_private(address: &IpAddr) -> bool {
    const V4: [&str; 14] = [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/29",
        "192.0.0.170/31",
        "192.0.2.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
        "255.255.255.255/32",
    ];
    const V6: [&str; 10] = [
        "::1/128",
        "::/128",
        "::ffff:0:0/96",
        "100::/64",
        "2001::/23",
        "2001:2::/48",
        "2001:db8::/32",
        "2001:10::/28",
        "fc00::/7",
        "fe80::/10",
    ];
    within(address, if address.is_ipv4() { &V4 } else { &V6 })
}

fn is_reserved(address: &IpAddr) -> bool {
    const V6: [&str; 15] = [
        "::/8", "100::/8", "200::/7", "400::/6", "800::/5", "1000::/4", "4000::/3", "6000::/3",
        "8000::/3", "a000::/3", "c000::/3", "e000::/4", "f000::/5", "f800::/6", "fe00::/9",
    ];
    if address.is_ipv4() { within(address, &["240.0.0.0/4"]) } else { within(address, &V6) }
}

/// Tells whether an address is of every kind that the options name.
fn fits(address: &IpAddr, options: &str) -> bool {
    options.split(',').map(str::trim).all(|option| match option {
        "global" | "public" => !is_private(address),
        "private" => is_private(address),
        "link-local" | "linklocal" | "ll" | "link_local" => {
            within(address, &["169.254.0.0/16", "fe80::/10"])
        }
        "loopback" | "lo" => address.is_loopback(),
        "multicast" => address.is_multicast(),
        "reserved" => is_reserved(address),
        "site-local" | "sl" | "site_local" => within(address, &["fec0::/10"]),
        "unspecified" => address.is_unspecified(),
        _ => true,
    })
}

/// Returns an address or network as `ipaddress` prints it, if it has this version and fits.
fn shown(value: &Value, version: u8, options: &Value) -> Option<String> {
    let text = match value {
        Value::Int(int) => {
            let number = u128::try_from(*int).ok()?;
            match u32::try_from(number) {
                Ok(small) => Ipv4Addr::from_bits(small).to_string(),
                Err(_) => Ipv6Addr::from_bits(number).to_string(),
            }
        }
        Value::Bytes(bytes) => match bytes.len() {
            4 => Ipv4Addr::from_bits(u32::from_be_bytes((**bytes).try_into().ok()?)).to_string(),
            16 => Ipv6Addr::from_bits(u128::from_be_bytes((**bytes).try_into().ok()?)).to_string(),
            _ => return None,
        },
        other => text_of(other)?.to_string(),
    };
    let found = network(&text)?;
    if found.address.is_ipv4() != (version == 4) {
        return None;
    }
    if let Some(options) = text_of(options).filter(|options| !options.is_empty())
        && !fits(&found.address, options)
    {
        return None;
    }
    Some(if text.contains('/') {
        format!("{}/{}", found.shown(), found.prefix)
    } else {
        found.shown()
    })
}

fn is_many(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Tuple(_)) || value.as_object::<Generator>().is_some()
}

fn of_version(
    interp: &mut Interp<'_>,
    value: &Value,
    version: u8,
    options: &Value,
) -> Result<Value> {
    if text_of(value).is_some() || matches!(value, Value::Bytes(_)) {
        return Ok(Value::from(shown(value, version, options)));
    }
    if is_many(value) {
        let items = interp.collect(value)?;
        return Ok(Value::list(items.iter().filter_map(|item| shown(item, version, options))));
    }
    if let Some(undefined) = undefined(value)
        && undefined.strict
    {
        return Err(interp.undefined_error(undefined));
    }
    Ok(Value::Null)
}

fn either(interp: &mut Interp<'_>, value: &Value, options: &Value) -> Result<Value> {
    // A generator can be read once only, and Salt reads it twice.
    let v4 = of_version(interp, value, 4, options)?;
    let v6 = of_version(interp, value, 6, options)?;
    if v4.is_null() || v6.is_null() {
        return Ok(if v4.truthy() { v4 } else { v6 });
    }
    interp.binary(crate::jinja::ast::Op::Add, &v4, &v6)
}

/// Applies a function to the address, or to each of several.
fn each(
    interp: &mut Interp<'_>,
    args: &mut Bound,
    run: fn(&mut Interp<'_>, &Network) -> Result<Value>,
) -> Result<Value> {
    let (value, options, version) = (args.take(0), args.take(1), args.take(2));
    let found = match version {
        Value::Int(4) => of_version(interp, &value, 4, &options)?,
        Value::Int(6) => of_version(interp, &value, 6, &options)?,
        other if other.truthy() => Value::Null,
        _ => either(interp, &value, &options)?,
    };
    if !found.truthy() {
        return Ok(Value::Null);
    }
    let texts = if matches!(found, Value::List(_)) { interp.collect(&found)? } else { vec![found] };
    let mut results = Vec::new();
    for text in &texts {
        if let Some(network) = text_of(text).and_then(|text| network(text)) {
            results.push(run(interp, &network)?);
        }
    }
    if is_many(&value) {
        return Ok(Value::from(results));
    }
    Ok(results.into_iter().next().unwrap_or_default())
}

fn hosts(interp: &mut Interp<'_>, network: &Network) -> Result<Value> {
    let bits = network.host_bits();
    if bits > 20 {
        return Err(Error::new(
            crate::jinja::error::Class::MemoryError,
            format!("{}/{} has too many hosts to list", network.shown(), network.prefix),
        ));
    }
    interp.room((1usize << bits) * 40)?;
    let first = network.first();
    let last = first + ((1u128 << bits) - 1);
    let (from, to) = match (bits, network.address.is_ipv4()) {
        (0 | 1, _) => (first, last),
        (_, true) => (first + 1, last - 1),
        // Of IPv6 only the routers' own address is left out.
        (_, false) => (first + 1, last),
    };
    Ok(Value::list((from..=to).map(|number| network.at(number).to_string())))
}

fn bracket(value: &Value) -> Result<Value> {
    match (text_of(value), shown(value, 6, &Value::Null)) {
        // A network is let in but cannot be wrapped.
        (Some(text), Some(_)) if text.contains('/') => Err(value_error(format!(
            "{} does not appear to be an IPv4 or IPv6 address",
            halite_value::str_repr(text)
        ))),
        (Some(text), Some(_)) => Ok(Value::from(format!("[{}]", text.trim_matches(['[', ']'])))),
        _ => Ok(value.clone()),
    }
}

fn ipwrap(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if matches!(value, Value::List(_) | Value::Tuple(_)) {
        let items = interp.collect(&value)?;
        return items.iter().map(bracket).collect::<Result<Vec<Value>>>().map(Value::from);
    }
    bracket(&value)
}

fn filter_by_networks(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (values, networks) = (args.take(0), args.take(1));
    if networks.is_null() {
        return Ok(values);
    }
    let mut nets = Vec::new();
    for item in interp.collect(&networks)? {
        let text = interp.str_of(&item)?;
        let Some(found) = network(&text) else {
            return Err(value_error(format!(
                "{} does not appear to be an IPv4 or IPv6 network",
                halite_value::str_repr(&text)
            )));
        };
        if found.first() != found.number() {
            return Err(value_error(format!("{text} has host bits set")));
        }
        nets.push(found);
    }
    let filter = |interp: &mut Interp<'_>, values: &Value| -> Result<Value> {
        let mut kept = Vec::new();
        for item in interp.collect(values)? {
            let text = interp.str_of(&item)?;
            let Some((address, _)) = address(&text) else {
                return Err(value_error(format!(
                    "{} does not appear to be an IPv4 or IPv6 address",
                    halite_value::str_repr(&text)
                )));
            };
            // Once per network that it is in, as Salt has it.
            let count = nets.iter().filter(|network| network.contains(&address)).count();
            kept.extend(std::iter::repeat_n(item, count));
        }
        Ok(Value::from(kept))
    };
    match &values {
        Value::Dict(dict) => {
            let new = Dict::new();
            for (name, values) in dict {
                new.insert(name, filter(interp, &values)?);
            }
            Ok(Value::Dict(new))
        }
        Value::List(_) | Value::Tuple(_) => filter(interp, &values),
        other => Err(value_error(format!(
            "Do not know how to filter a {}",
            super::words::class_of(other)
        ))),
    }
}

fn mac_str_to_bytes(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let length = interp.len(&value)?;
    let Some(text) = text_of(&value) else {
        return Err(type_error(format!("expected str, got {}", value.type_name())));
    };
    let digits: String = match length {
        12 => text.to_string(),
        17 => {
            let separator = text.chars().nth(2).unwrap_or(':');
            text.replace(separator, "")
        }
        _ => return Err(value_error("Invalid MAC address")),
    };
    let chars: Vec<char> = digits.chars().collect();
    let mut bytes = Vec::new();
    for at in (0..12).step_by(2) {
        let pair: String = chars.iter().skip(at).take(2).collect();
        let byte = u8::from_str_radix(&pair, 16).map_err(|_| {
            let pair = halite_value::str_repr(&pair);
            value_error(format!("invalid literal for int() with base 16: {pair}"))
        })?;
        bytes.push(byte);
    }
    Ok(Value::bytes(bytes))
}
