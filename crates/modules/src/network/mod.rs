//! `network`: addresses, routes and names of the machine.
//!
//! Interfaces come from the kernel through the host, routes from `/proc/net`; nothing here parses
//! the output of `ip` or `ifconfig`. Texts and dict shapes are Salt's.

mod peers;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
};

use halite_spec::{
    Command, Cx, Error, Result, alias, function,
    host::{Address, Interface, Write},
    module,
};
use halite_value::{Dict, Value, dict};

pub use self::peers::{
    active_tcp, connect, fqdns, get_bufsize, ip_neighs, ip_neighs6, ip_networks, ip_networks6,
    ipneighs, ipneighs6, mod_bufsize, netstat, wol,
};

module! {
    /// Addresses, routes and names of the machine.
    "network": interfaces, hw_addr, hwaddr, interface, interface_ip, ip_addrs, ipaddrs, ip_addrs6,
    ipaddrs6, subnets, subnets6, in_subnet, ip_in_subnet, calc_net, convert_cidr, is_private,
    is_loopback, reverse_ip, iphexval, ifacestartswith, routes, default_route, get_route,
    get_hostname, get_fqdn, mod_hostname, ping, dig, traceroute, arp, connect, fqdns, ip_networks,
    ip_networks6, ip_neighs, ipneighs, ip_neighs6, ipneighs6, netstat, active_tcp, get_bufsize,
    mod_bufsize, wol,
}

alias! { hwaddr = hw_addr, ipaddrs = ip_addrs, ipaddrs6 = ip_addrs6 }

fn value_error(message: String) -> Error {
    Error::raised("ValueError", message)
}

fn address(text: &str) -> Result<IpAddr> {
    text.trim().parse().map_err(|_| {
        let shown = Value::str(text).repr();
        value_error(format!("{shown} does not appear to be an IPv4 or IPv6 address"))
    })
}

/// A subnet; host bits are cut off, as Python does with `strict=False`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Net {
    network: IpAddr,
    prefix: u8,
}

impl Net {
    fn new(ip: IpAddr, prefix: u8) -> Self {
        let network = match ip {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask4(prefix))),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask6(prefix))),
        };
        Self { network, prefix }
    }

    /// Reads `10.0.0.1/8`, `10.0.0.1/255.0.0.0`, or an address with a mask beside it.
    fn read(text: &str, mask: Option<&str>) -> Result<Self> {
        let shown = |text: &str| Value::str(text).repr();
        let (ip, rest) = match text.split_once('/') {
            Some((ip, rest)) => (ip, Some(rest)),
            None => (text, mask),
        };
        let ip: IpAddr = ip.trim().parse().map_err(|_| {
            value_error(format!("{} does not appear to be an IPv4 or IPv6 network", shown(text)))
        })?;
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let prefix = match rest {
            None => most,
            Some(rest) => match rest.parse::<u8>() {
                Ok(prefix) if prefix <= most => prefix,
                _ => rest
                    .parse::<Ipv4Addr>()
                    .ok()
                    .filter(|mask| {
                        mask.to_bits().leading_ones() + mask.to_bits().trailing_zeros() >= 32
                    })
                    .map(|mask| mask.to_bits().leading_ones() as u8)
                    .ok_or_else(|| {
                        value_error(format!("{} is not a valid netmask", shown(rest)))
                    })?,
            },
        };
        Ok(Self::new(ip, prefix))
    }

    fn contains(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.network.is_ipv4() && Self::new(ip, self.prefix) == self
    }
}

impl std::fmt::Display for Net {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix)
    }
}

fn mask4(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0)
}

fn mask6(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0)
}

fn scope(ip: Ipv6Addr) -> &'static str {
    match ip {
        ip if ip.is_loopback() => "host",
        ip if ip.segments()[0] & 0xffc0 == 0xfe80 => "link",
        ip if ip.segments()[0] & 0xffc0 == 0xfec0 => "site",
        _ => "global",
    }
}

/// An address of the interface `name`, which is its label unless it was given another one.
fn shown(own: &Address, name: &str) -> Value {
    match own.ip {
        IpAddr::V4(ip) => {
            let entry = dict! {
                "address" => ip.to_string(),
                "netmask" => Ipv4Addr::from_bits(mask4(own.prefix)).to_string(),
                "broadcast" => own.broadcast.map(|ip| ip.to_string()),
                "label" => own.label.as_deref().unwrap_or(name),
            };
            if let (Value::Dict(entry), Some(peer)) = (&entry, own.peer) {
                entry.insert("peer", peer.to_string());
            }
            entry
        }
        IpAddr::V6(ip) => dict! {
            "address" => ip.to_string(), "prefixlen" => own.prefix.to_string(),
            "scope" => scope(ip),
        },
    }
}

fn described(own: &Interface) -> Dict {
    let entry = Dict::new();
    entry.insert("up", own.up);
    if let Some(mac) = &own.hwaddr {
        entry.insert("hwaddr", mac);
    }
    let of = |v4: bool, second: bool| {
        own.addresses.iter().filter(move |a| a.ip.is_ipv4() == v4 && (a.secondary && v4) == second)
    };
    for (key, v4) in [("inet", true), ("inet6", false)] {
        let list: Vec<Value> = of(v4, false).map(|address| shown(address, &own.name)).collect();
        if !list.is_empty() {
            entry.insert(key, Value::list(list));
        }
    }
    let secondary: Vec<Value> = of(true, true)
        .map(|address| {
            let entry = shown(address, &own.name);
            if let Value::Dict(entry) = &entry {
                entry.insert("type", "inet");
            }
            entry
        })
        .collect();
    if !secondary.is_empty() {
        entry.insert("secondary", Value::list(secondary));
    }
    entry
}

/// Return the interfaces of the machine.
///
/// ```console
/// $ salt web1 network.interfaces
/// ```
#[function]
pub fn interfaces(cx: &Cx) -> Result<Dict> {
    let all = cx.host.interfaces()?;
    Ok(all.iter().map(|own| (own.name.as_str(), described(own))).collect())
}

fn find(cx: &Cx, name: &str) -> Result<Option<Interface>> {
    Ok(cx.host.interfaces()?.into_iter().find(|own| own.name == name))
}

fn unknown(name: &str, cx: &Cx) -> Result<String> {
    let names: Vec<String> = cx.host.interfaces()?.into_iter().map(|own| own.name).collect();
    let names = names.join("\", \"");
    Ok(format!("Interface \"{name}\" not in available interfaces: \"{names}\""))
}

/// Return the hardware address of an interface.
///
/// ```console
/// $ salt web1 network.hw_addr eth1
/// ```
#[function]
pub fn hw_addr(
    cx: &Cx,
    /// The interface.
    iface: String,
) -> Result<String> {
    match find(cx, &iface)? {
        Some(own) => Ok(own.hwaddr.unwrap_or_default()),
        None => unknown(&iface, cx),
    }
}

/// Return the IPv4 addresses of an interface, with masks.
///
/// ```console
/// $ salt web1 network.interface eth1
/// ```
#[function]
pub fn interface(
    cx: &Cx,
    /// The interface.
    iface: String,
) -> Result<Value> {
    let Some(own) = find(cx, &iface)? else { return unknown(&iface, cx).map(Into::into) };
    Ok(described(&own).get("inet").unwrap_or_else(|| "".into()))
}

/// Return the first IPv4 address of an interface.
///
/// ```console
/// $ salt web1 network.interface_ip eth1
/// ```
#[function]
pub fn interface_ip(
    cx: &Cx,
    /// The interface.
    iface: String,
) -> Result<String> {
    let Some(own) = find(cx, &iface)? else { return unknown(&iface, cx) };
    let first = own.addresses.iter().find(|own| own.ip.is_ipv4());
    Ok(first.map(|own| own.ip.to_string()).unwrap_or_default())
}

fn is_own_loopback(ip: IpAddr) -> bool {
    ip.is_loopback()
}

/// Addresses of one or all interfaces, in numeric order.
fn addresses(cx: &Cx, interface: Option<&str>, loopback: bool, v4: bool) -> Result<Vec<IpAddr>> {
    let all = cx.host.interfaces()?;
    let wanted = |own: &&Interface| interface.is_none_or(|name| own.name == name);
    let mut found: Vec<IpAddr> = all
        .iter()
        .filter(wanted)
        .flat_map(|own| &own.addresses)
        .map(|own| own.ip)
        .filter(|ip| ip.is_ipv4() == v4 && (loopback || !is_own_loopback(*ip)))
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

fn texts(addresses: Vec<IpAddr>) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

/// Return the IPv4 addresses of the machine; those of the loopback only if asked.
///
/// ```console
/// $ salt web1 network.ip_addrs interface=eth1
/// ```
#[function]
pub fn ip_addrs(
    cx: &Cx,
    /// Only of this interface.
    interface: Option<String>,
    /// Those of the loopback too.
    #[default(false)]
    include_loopback: bool,
    /// Only in this subnet.
    cidr: Option<String>,
    /// Only `public` or `private` ones.
    r#type: Option<String>,
) -> Result<Vec<String>> {
    let found = addresses(cx, interface.as_deref(), include_loopback, true)?;
    let found = match (cidr.filter(|cidr| !cidr.is_empty()), r#type.as_deref()) {
        (Some(cidr), _) => {
            let net = Net::read(&cidr, None)?;
            found.into_iter().filter(|ip| net.contains(*ip)).collect()
        }
        (None, Some("public")) => found.into_iter().filter(|ip| !private(*ip)).collect(),
        (None, Some("private")) => found.into_iter().filter(|ip| private(*ip)).collect(),
        _ => found,
    };
    Ok(texts(found))
}

/// Return the IPv6 addresses of the machine; those of the loopback only if asked.
///
/// ```console
/// $ salt web1 network.ip_addrs6
/// ```
#[function]
pub fn ip_addrs6(
    cx: &Cx,
    /// Only of this interface.
    interface: Option<String>,
    /// Those of the loopback too.
    #[default(false)]
    include_loopback: bool,
    /// Only in this subnet.
    cidr: Option<String>,
) -> Result<Vec<String>> {
    let found = addresses(cx, interface.as_deref(), include_loopback, false)?;
    let Some(cidr) = cidr.filter(|cidr| !cidr.is_empty()) else { return Ok(texts(found)) };
    let net = Net::read(&cidr, None)?;
    Ok(texts(found.into_iter().filter(|ip| net.contains(*ip)).collect()))
}

fn nets(cx: &Cx, only: &[String], v4: bool) -> Result<Vec<String>> {
    let all = cx.host.interfaces()?;
    let own = all.iter().filter(|own| only.is_empty() || only.contains(&own.name));
    let mut found: Vec<(IpAddr, u8)> = own
        .flat_map(|own| &own.addresses)
        .filter(|own| own.ip.is_ipv4() == v4 && !is_own_loopback(own.ip))
        .map(|own| Net::new(own.ip, own.prefix))
        .map(|net| (net.network, net.prefix))
        .collect();
    found.sort();
    found.dedup();
    Ok(found.into_iter().map(|(network, prefix)| format!("{network}/{prefix}")).collect())
}

/// Return the IPv4 subnets the machine is in.
///
/// ```console
/// $ salt web1 network.subnets
/// ```
#[function]
pub fn subnets(
    cx: &Cx,
    /// Only of these interfaces.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    interfaces: Vec<String>,
) -> Result<Vec<String>> {
    nets(cx, &interfaces, true)
}

/// Return the IPv6 subnets the machine is in.
///
/// ```console
/// $ salt '*' network.subnets6
/// ```
#[function]
pub fn subnets6(cx: &Cx) -> Result<Vec<String>> {
    nets(cx, &[], false)
}

/// Tell whether the machine has an address in a subnet.
///
/// ```console
/// $ salt web1 network.in_subnet 192.0.2.0/24
/// ```
#[function]
pub fn in_subnet(
    cx: &Cx,
    /// The subnet.
    cidr: String,
) -> Result<bool> {
    let Ok(net) = Net::read(&cidr, None) else {
        tracing::error!("Invalid CIDR '{cidr}'");
        return Ok(false);
    };
    let all = cx.host.interfaces()?;
    // As `network.ip_addrs`, which does not count the machine's own loop.
    let mut own = all.iter().flat_map(|own| &own.addresses).filter(|own| !own.ip.is_loopback());
    Ok(own.any(|own| net.contains(own.ip)))
}

/// Tell whether an address is in a subnet.
///
/// ```console
/// $ salt web1 network.ip_in_subnet 192.0.2.10 192.0.2.0/24
/// ```
#[function]
pub fn ip_in_subnet(
    _cx: &Cx,
    /// The address.
    ip_addr: String,
    /// The subnet.
    cidr: String,
) -> Result<bool> {
    let Ok(net) = Net::read(&cidr, None) else {
        tracing::error!("Invalid CIDR '{cidr}'");
        return Ok(false);
    };
    Ok(net.contains(address(&ip_addr)?))
}

/// Return the subnet of an address.
///
/// ```console
/// $ salt web1 network.calc_net 192.0.2.10 255.255.255.192
/// ```
#[function]
pub fn calc_net(
    _cx: &Cx,
    /// The address, also with a prefix after a slash.
    ip_addr: String,
    /// The mask.
    netmask: Option<String>,
) -> Result<String> {
    Ok(Net::read(&ip_addr, netmask.as_deref())?.to_string())
}

/// Return network, mask and broadcast address of a subnet.
///
/// ```console
/// $ salt web1 network.convert_cidr 192.0.2.0/24
/// ```
#[function]
pub fn convert_cidr(
    _cx: &Cx,
    /// The subnet.
    cidr: String,
) -> Result<Dict> {
    let net = Net::read(&cidr, None)?;
    let (mask, last) = match net.network {
        IpAddr::V4(ip) => (
            Ipv4Addr::from_bits(mask4(net.prefix)).to_string(),
            Ipv4Addr::from_bits(ip.to_bits() | !mask4(net.prefix)).to_string(),
        ),
        IpAddr::V6(ip) => (
            Ipv6Addr::from_bits(mask6(net.prefix)).to_string(),
            Ipv6Addr::from_bits(ip.to_bits() | !mask6(net.prefix)).to_string(),
        ),
    };
    Ok(halite_value::entries! {
        "network" => net.network.to_string(), "netmask" => mask, "broadcast" => last,
    })
}

/// The ranges Python's `ipaddress` calls private.
fn private(ip: IpAddr) -> bool {
    const V4: [&str; 15] = [
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
        "0.0.0.0/32",
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
    let ranges: &[&str] = if ip.is_ipv4() { &V4 } else { &V6 };
    ranges.iter().any(|range| Net::read(range, None).is_ok_and(|net| net.contains(ip)))
}

/// Tell whether an address is a private one.
///
/// ```console
/// $ salt web1 network.is_private 192.0.2.10
/// ```
#[function]
pub fn is_private(
    _cx: &Cx,
    /// The address.
    ip_addr: String,
) -> Result<bool> {
    Ok(private(address(&ip_addr)?))
}

/// Tell whether an address is one of the loopback.
///
/// ```console
/// $ salt web1 network.is_loopback 192.0.2.10
/// ```
#[function]
pub fn is_loopback(
    _cx: &Cx,
    /// The address.
    ip_addr: String,
) -> Result<bool> {
    Ok(address(&ip_addr)?.is_loopback())
}

/// Return the name DNS has an address under.
///
/// ```console
/// $ salt web1 network.reverse_ip 192.0.2.10
/// ```
#[function]
pub fn reverse_ip(
    _cx: &Cx,
    /// The address.
    ip_addr: String,
) -> Result<String> {
    Ok(match address(&ip_addr)? {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(ip) => {
            let digits = format!("{:032x}", ip.to_bits());
            let digits: String = digits.chars().rev().flat_map(|digit| [digit, '.']).collect();
            format!("{digits}ip6.arpa")
        }
    })
}

/// Return an IPv4 address as hexadecimal digits.
///
/// ```console
/// $ salt web1 network.iphexval 192.0.2.10
/// ```
#[function]
pub fn iphexval(
    _cx: &Cx,
    /// The address.
    ip: String,
) -> Result<String> {
    // Each part by itself, as in Salt: they need not be those of an address.
    let part = |part: &str| {
        let number = part.trim().parse::<i64>();
        number
            .map(|number| format!("{number:02X}"))
            .map_err(|_| value_error(format!("invalid literal for int() with base 10: '{part}'")))
    };
    ip.split('.').map(part).collect()
}

/// Return the interfaces with an address that begins with a text.
///
/// ```console
/// $ salt web1 network.ifacestartswith 192.0
/// ```
#[function]
pub fn ifacestartswith(
    cx: &Cx,
    /// The text.
    cidr: String,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for own in cx.host.interfaces()? {
        for ip in own.addresses.iter().filter(|own| own.ip.is_ipv4()) {
            if ip.ip.to_string().starts_with(&cidr) {
                found.push(ip.label.clone().unwrap_or_else(|| own.name.clone()));
            }
        }
    }
    Ok(found)
}

/// Reads `/proc/net/route`.
fn routes4(text: &str) -> Vec<Value> {
    let hex = |word: &str| u32::from_str_radix(word, 16).ok();
    // The kernel writes these in the machine's order, which is little-endian.
    let ip = |bits: u32| Ipv4Addr::from_bits(bits.swap_bytes()).to_string();
    let rows = text.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (iface, target, gateway, bits, mask) = (
            *words.first()?,
            hex(words.get(1)?)?,
            hex(words.get(2)?)?,
            hex(words.get(3)?)?,
            hex(words.get(7)?)?,
        );
        Some(dict! {
            "addr_family" => "inet", "destination" => ip(target), "gateway" => ip(gateway),
            "netmask" => ip(mask), "flags" => flags(bits), "interface" => iface,
        })
    });
    rows.collect()
}

/// The flags of a route, as `netstat` writes them.
fn flags(bits: u32) -> String {
    let known = [
        (0x1, 'U'),
        (0x2, 'G'),
        (0x4, 'H'),
        (0x8, 'R'),
        (0x10, 'D'),
        (0x20, 'M'),
        (0x0004_0000, 'A'),
        (0x0100_0000, 'C'),
        (0x200, '!'),
        (0x0020_0000, 'n'),
    ];
    known.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, letter)| *letter).collect()
}

/// Reads `/proc/net/ipv6_route`.
fn routes6(text: &str) -> Vec<Value> {
    let ip = |word: &str| u128::from_str_radix(word, 16).ok().map(Ipv6Addr::from_bits);
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[target, prefix, _, _, gateway, _, _, _, bits, iface] = words.as_slice() else {
            return None;
        };
        let prefix = u8::from_str_radix(prefix, 16).ok()?;
        let bits = u32::from_str_radix(bits, 16).ok()?;
        Some(dict! {
            "addr_family" => "inet6", "destination" => format!("{}/{prefix}", ip(target)?),
            "gateway" => ip(gateway)?.to_string(), "netmask" => "", "flags" => flags(bits),
            "interface" => iface,
        })
    });
    rows.collect()
}

/// Return the routes of the machine.
///
/// ```console
/// $ salt web1 network.routes family=inet
/// ```
#[function]
pub fn routes(
    cx: &Cx,
    /// `inet` or `inet6`; both if none is given.
    family: Option<String>,
) -> Result<Value> {
    let family = family.as_deref();
    if !matches!(family, None | Some("inet" | "inet6")) {
        let family = family.unwrap_or_default();
        return Err(Error::failed(format!("Invalid address family {family}")));
    }
    let read = |path: &str| -> Result<String> {
        Ok(cx.host.read_text_if_there(Path::new(path))?.unwrap_or_default())
    };
    let mut found = Vec::new();
    if family != Some("inet6") {
        found.extend(routes4(&read("/proc/net/route")?));
    }
    if family != Some("inet") {
        found.extend(routes6(&read("/proc/net/ipv6_route")?));
    }
    Ok(found.into())
}

/// Return the default routes of the machine.
///
/// ```console
/// $ salt web1 network.default_route
/// ```
#[function]
pub fn default_route(
    cx: &Cx,
    /// `inet` or `inet6`; both if none is given.
    family: Option<String>,
) -> Result<Value> {
    let all = routes(cx, family)?.items_of_sequence().unwrap_or_default();
    let default = |route: &Value| {
        matches!(route.get_str("destination").as_deref(), Some("0.0.0.0" | "::/0" | "default"))
    };
    Ok(Value::list(all.into_iter().filter(default)))
}

/// Return the way to an address.
///
/// ```console
/// $ salt web1 network.get_route 192.0.2.10
/// ```
#[function]
pub fn get_route(
    cx: &Cx,
    /// The address.
    ip: String,
) -> Result<Dict> {
    let ip = address(&ip)?.to_string();
    let output = cx.host.run(&Command::line(["ip", "route", "get", &ip]).query())?;
    let text = output.stdout_text();
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |name: &str| {
        words
            .iter()
            .position(|word| *word == name)
            .and_then(|at| words.get(at + 1))
            .map(|word| (*word).to_owned())
    };
    let found = Dict::new();
    // `local 127.0.0.1 dev lo …`: the kind of a route may stand before it.
    let kinds = ["local", "broadcast", "multicast", "unreachable", "prohibit", "blackhole"];
    found.insert("destination", words.iter().find(|word| !kinds.contains(*word)).copied());
    found.insert("gateway", after("via"));
    found.insert("interface", after("dev"));
    found.insert("source", after("src"));
    Ok(found)
}

/// Return the machine's name.
///
/// ```console
/// $ salt web1 network.get_hostname
/// ```
#[function]
pub fn get_hostname(cx: &Cx) -> Result<String> {
    Ok(cx.host.uname().nodename)
}

/// Return the machine's full name.
///
/// ```console
/// $ salt web1 network.get_fqdn
/// ```
#[function]
pub fn get_fqdn(cx: &Cx) -> Result<String> {
    let name = cx.host.uname().nodename;
    Ok(cx.host.resolve(&name)?.canonical.unwrap_or(name))
}

/// Give the machine another name.
///
/// ```console
/// $ salt web1 network.mod_hostname db1.example.org
/// ```
#[function]
pub fn mod_hostname(
    cx: &Cx,
    /// The name.
    #[arg(required)]
    hostname: Option<String>,
) -> Result<bool> {
    let Some(hostname) = hostname else { return Ok(false) };
    if hostname.is_empty() || hostname.starts_with('-') || hostname.contains(char::is_whitespace) {
        return Err(Error::invalid(format!("'{hostname}' cannot be the name of a machine")));
    }
    let old = cx.host.uname().nodename;
    if cx.host.which("hostnamectl").is_some() {
        let line = ["hostnamectl", "set-hostname", &hostname];
        if !cx.host.run(&Command::line(line))?.ok() {
            return Ok(false);
        }
    } else {
        cx.host.run(&Command::line(["hostname", &hostname]))?;
    }
    let hosts = Path::new("/etc/hosts");
    if let Some(text) = cx.host.read_text_if_there(hosts)? {
        let rename = |line: &str| {
            let named = line.split_whitespace().any(|word| word == old);
            if !named || line.trim_start().starts_with('#') {
                // differs: Salt joins the words of every line of the file with tabs.
                return format!("{line}\n");
            }
            let words =
                line.split_whitespace().map(|word| if word == old { &hostname } else { word });
            words.collect::<Vec<_>>().join("\t") + "\n"
        };
        let new: String = text.lines().map(rename).collect();
        if new != text {
            cx.host.write(hosts, new.as_bytes(), &Write::default())?;
        }
    }
    if cx.grain_str("os_family") == "Debian" {
        let text = format!("{hostname}\n");
        cx.host.write(Path::new("/etc/hostname"), text.as_bytes(), &Write::default())?;
    }
    Ok(true)
}

fn looked(cx: &Cx, line: Vec<String>) -> Result<(bool, String)> {
    let output = cx.host.run(&Command::line(line).query())?;
    let text = format!("{}{}", output.stdout_text(), output.stderr_text());
    Ok((output.ok(), text.trim_end().to_owned()))
}

fn named(host: &str) -> Result<String> {
    if host.is_empty() || host.starts_with('-') {
        return Err(Error::invalid(format!("'{host}' cannot be the name of a host")));
    }
    Ok(host.to_owned())
}

/// Ping a host.
///
/// ```console
/// $ salt '*' network.ping archlinux.org return_boolean=True timeout=3
/// ```
#[function]
pub fn ping(
    cx: &Cx,
    /// The host.
    host: String,
    /// Seconds to wait.
    #[default(Value::Bool(false))]
    timeout: Value,
    /// Only whether it answers.
    #[default(false)]
    return_boolean: bool,
) -> Result<Value> {
    let mut line = vec!["ping".to_owned()];
    if let Some(seconds) = timeout.to_int().filter(|_| timeout.truthy()) {
        line.extend(["-W".to_owned(), seconds.to_string()]);
    }
    line.extend(["-c".to_owned(), "4".to_owned(), named(&host)?]);
    let (ok, text) = looked(cx, line)?;
    Ok(if return_boolean { ok.into() } else { text.into() })
}

/// Look a name up with `dig`.
///
/// ```console
/// $ salt web1 network.dig db1.example.org
/// ```
#[function]
pub fn dig(
    cx: &Cx,
    /// The name.
    host: String,
) -> Result<String> {
    if cx.host.which("dig").is_none() {
        return Err(Error::no_program(&["dig"]));
    }
    Ok(looked(cx, vec!["dig".into(), named(&host)?])?.1)
}

/// Show the way to a host.
///
/// ```console
/// $ salt web1 network.traceroute db1.example.org
/// ```
#[function]
pub fn traceroute(
    cx: &Cx,
    /// The host.
    host: String,
) -> Result<String> {
    if cx.host.which("traceroute").is_none() {
        return Err(Error::no_program(&["traceroute"]));
    }
    Ok(looked(cx, vec!["traceroute".into(), named(&host)?])?.1)
}

/// Return the hardware addresses the machine knows, with their IPv4 addresses.
///
/// ```console
/// $ salt web1 network.arp
/// ```
#[function]
pub fn arp(cx: &Cx) -> Result<Dict> {
    let text = cx.host.read_text_if_there(Path::new("/proc/net/arp"))?.unwrap_or_default();
    let rows = text.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(((*words.get(3)?).to_owned(), (*words.first()?).to_owned()))
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str, mask: Option<&str>) -> String {
        Net::read(text, mask).unwrap().to_string()
    }

    #[test]
    fn subnets_are_cut() {
        assert_eq!(net("172.17.0.5", Some("255.255.255.240")), "172.17.0.0/28");
        assert_eq!(net("10.1.2.3/8", None), "10.0.0.0/8");
        assert_eq!(net("fd00::5/64", None), "fd00::/64");
        assert_eq!(net("10.0.0.1", None), "10.0.0.1/32");
        assert!(Net::read("10.0.0.1/255.0.255.0", None).is_err());
        assert!(Net::read("x", None).is_err());
        assert!(Net::read("0.0.0.0/0", None).unwrap().contains("8.8.8.8".parse().unwrap()));
    }

    #[test]
    fn private_ranges_are_pythons() {
        let check = |text: &str, expected: bool| {
            assert_eq!(private(text.parse().unwrap()), expected, "{text}");
        };
        check("10.0.0.1", true);
        check("192.0.2.2", true);
        check("8.8.8.8", false);
        check("100.64.0.1", false);
        check("fd00::1", true);
        check("2a00::1", false);
    }

    #[test]
    fn kernel_routes() {
        let four = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
                    eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\n";
        assert_eq!(
            routes4(four),
            [dict! {
                "addr_family" => "inet", "destination" => "0.0.0.0", "gateway" => "192.0.2.1",
                "netmask" => "0.0.0.0", "flags" => "UG", "interface" => "eth0",
            }]
        );
        let six = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                   00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n";
        let found = routes6(six);
        assert_eq!(found[0].get_str("destination").unwrap(), "::/0");
        assert_eq!(found[0].get_str("flags").unwrap(), "!n");
    }
}
