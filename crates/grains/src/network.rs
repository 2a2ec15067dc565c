//! Interfaces, addresses, names, gateways and the resolver's settings.
//!
//! No `ip` program is started: interfaces come from the host, routes from `/proc/net`.
//! differs: Salt has no gateway and interface grains where neither `ip` nor `ifconfig` is installed.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use halite_spec::{Host, host::Interface};
use halite_value::{Dict, Value, dict};

use crate::{Fragments, Slot, probe::Probe};

fn fragment(slot: Slot, entries: &Value) -> (Slot, Dict) {
    (slot, entries.as_dict().cloned().unwrap_or_default())
}

/// First the primary addresses, then (of IPv4) the secondary ones.
fn addresses<'a>(
    interface: &'a Interface,
    wanted: impl Fn(&IpAddr) -> bool + 'a,
    secondary: bool,
) -> impl Iterator<Item = Value> + 'a {
    interface
        .addresses
        .iter()
        .filter(move |address| wanted(&address.ip) && address.secondary == secondary)
        .map(|address| Value::from(address.ip.to_string()))
}

fn by_interface(interfaces: &[Interface], list: impl Fn(&Interface) -> Vec<Value>) -> Value {
    let entries = interfaces.iter().map(|interface| (interface.name.as_str(), list(interface)));
    Value::Dict(entries.collect())
}

pub(crate) fn interfaces(probe: &Probe<'_>) -> Fragments {
    let all = probe.interfaces();
    let of = |wanted: fn(&IpAddr) -> bool| {
        move |interface: &Interface| {
            addresses(interface, wanted, false).chain(addresses(interface, wanted, true)).collect()
        }
    };
    let both = |interface: &Interface| {
        addresses(interface, IpAddr::is_ipv4, false)
            .chain(addresses(interface, IpAddr::is_ipv6, false))
            .chain(addresses(interface, |_| true, true))
            .collect()
    };
    let hardware: Dict = all
        .iter()
        .filter_map(|interface| Some((interface.name.as_str(), interface.hwaddr.as_deref()?)))
        .collect();
    let (four, six) =
        (by_interface(all, of(IpAddr::is_ipv4)), by_interface(all, of(IpAddr::is_ipv6)));
    vec![
        fragment(Slot::HwaddrInterfaces, &dict! { "hwaddr_interfaces" => hardware }),
        fragment(Slot::Ip4Interfaces, &dict! { "ip4_interfaces" => four }),
        fragment(Slot::Ip6Interfaces, &dict! { "ip6_interfaces" => six }),
        fragment(Slot::IpInterfaces, &dict! { "ip_interfaces" => by_interface(all, both) }),
    ]
}

fn sorted(interfaces: &[Interface], wanted: fn(&IpAddr) -> bool) -> Vec<IpAddr> {
    let all = interfaces.iter().flat_map(|interface| &interface.addresses);
    let mut found: Vec<_> = all.map(|address| address.ip).filter(wanted).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn texts(addresses: &[IpAddr]) -> Value {
    Value::list(addresses.iter().map(ToString::to_string))
}

/// The machine's own name and what the resolver makes of it.
pub(crate) fn names(probe: &Probe<'_>) -> Fragments {
    let own = probe.host.uname().nodename;
    let resolved = probe.host.resolve(&own).unwrap_or_default();
    let fqdn = resolved.canonical.clone().filter(|name| !name.is_empty());
    let fqdn = fqdn.unwrap_or_else(|| {
        if own.is_empty() { "localhost.localdomain".into() } else { own.clone() }
    });
    let resolved =
        if fqdn == own { resolved } else { probe.host.resolve(&fqdn).unwrap_or_default() };
    let (host, domain) = fqdn.split_once('.').unwrap_or((&fqdn, ""));
    let four = sorted(probe.interfaces(), IpAddr::is_ipv4);
    let six = sorted(probe.interfaces(), IpAddr::is_ipv6);
    // A machine without addresses of a kind has no use for a name's addresses of that kind.
    let of = |own: &[IpAddr], wanted: fn(&IpAddr) -> bool| {
        let found = resolved.addresses.iter().copied().filter(|ip| wanted(ip) && !own.is_empty());
        texts(&found.collect::<Vec<_>>())
    };
    vec![
        fragment(
            Slot::Hostname,
            &dict! { "localhost" => &own, "fqdn" => &fqdn, "host" => host, "domain" => domain },
        ),
        fragment(
            Slot::IpFqdn,
            &dict! {
                "ipv4" => texts(&four),
                "ipv6" => texts(&six),
                "fqdn_ip4" => of(&four, IpAddr::is_ipv4),
                "fqdn_ip6" => of(&six, IpAddr::is_ipv6),
            },
        ),
    ]
}

pub(crate) fn reverse_names(probe: &Probe<'_>) -> Fragments {
    let wanted = probe.enabled("enable_fqdns_grains");
    let names = if wanted { names_of_all(probe.host, probe.interfaces()) } else { Vec::new() };
    vec![fragment(Slot::Fqdns, &dict! { "fqdns" => names })]
}

/// Returns the full names of all addresses but the loopback's, sorted: the `fqdns` grain.
pub fn fqdns(host: &dyn Host) -> Vec<String> {
    names_of_all(host, &host.interfaces().unwrap_or_default())
}

/// Every address is asked for at the same time: one that is not known may take seconds.
fn names_of_all(host: &dyn Host, interfaces: &[Interface]) -> Vec<String> {
    let mut addresses = sorted(interfaces, IpAddr::is_ipv4);
    addresses.extend(sorted(interfaces, IpAddr::is_ipv6));
    addresses.retain(|address| !address.is_loopback());
    // A machine may have hundreds of them.
    let workers = addresses.len().min(32);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(address) = addresses.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let (Some(name), Ok(mut found)) = (full_name(host, *address), found.lock()) {
                found.push(name);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut names = found.into_inner().unwrap_or_default();
    names.sort_unstable();
    names.dedup();
    names
}

/// Asks for the name of an address, and then for the full form of that name.
fn full_name(host: &dyn Host, address: IpAddr) -> Option<String> {
    let name = host.names_of(address).ok()?.into_iter().next()?;
    let Some(first) = host.resolve(&name).ok().and_then(|found| found.addresses.first().copied())
    else {
        return Some(name);
    };
    let names = host.names_of(first).unwrap_or_default();
    let full = names.iter().find(|name| name.contains('.')).or(names.first());
    Some(full.cloned().unwrap_or(name))
}

pub(crate) fn gateways(probe: &Probe<'_>) -> (Slot, Dict) {
    let four = probe.text("/proc/net/route").and_then(|table| default_route(&table));
    let six = probe.text("/proc/net/ipv6_route").and_then(|table| default_route6(&table));
    let value = |route: Option<Option<String>>| match route {
        None => Value::Bool(false),
        Some(None) => Value::Bool(true),
        Some(Some(gateway)) => Value::from(gateway),
    };
    let any = four.is_some() || six.is_some();
    fragment(
        Slot::Gateway,
        &dict! { "ip_gw" => any, "ip4_gw" => value(four), "ip6_gw" => value(six) },
    )
}

const ROUTE_UP: u32 = 1;
const ROUTE_REJECT: u32 = 0x200;

/// Returns the gateway of the best default route: `Some(None)` if it has none.
fn default_route(table: &str) -> Option<Option<String>> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(cells.get(at)?, 16).ok();
        let (target, gateway, flags, mask) = (hex(1)?, hex(2)?, hex(3)?, hex(7)?);
        let metric: u32 = cells.get(6)?.parse().ok()?;
        let usable = flags & ROUTE_UP != 0 && flags & ROUTE_REJECT == 0;
        // Addresses are written as numbers of the machine's own byte order.
        (target == 0 && mask == 0 && usable)
            .then(|| (metric, Ipv4Addr::from(gateway.to_ne_bytes())))
    });
    let (_, gateway) = routes.min_by_key(|(metric, _)| *metric)?;
    Some((!gateway.is_unspecified()).then(|| gateway.to_string()))
}

fn default_route6(table: &str) -> Option<Option<String>> {
    let routes = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(cells.get(at)?, 16).ok();
        let address =
            |at: usize| Some(Ipv6Addr::from(u128::from_str_radix(cells.get(at)?, 16).ok()?));
        let (target, prefix, gateway) = (address(0)?, number(1)?, address(4)?);
        let (metric, flags) = (number(5)?, number(8)?);
        let usable = flags & ROUTE_UP != 0 && flags & ROUTE_REJECT == 0 && *cells.get(9)? != "lo";
        (target.is_unspecified() && prefix == 0 && usable).then_some((metric, gateway))
    });
    let (_, gateway) = routes.min_by_key(|(metric, _)| *metric)?;
    Some((!gateway.is_unspecified()).then(|| gateway.to_string()))
}

pub(crate) fn dns(probe: &Probe<'_>) -> (Slot, Dict) {
    const MANAGED: &str = "/run/systemd/resolve/resolv.conf";
    let path = if probe.exists(MANAGED) { MANAGED } else { "/etc/resolv.conf" };
    let settings = probe.text(path).map(|text| dict! { "dns" => resolver_settings(&text) });
    fragment(Slot::Dns, &settings.unwrap_or_else(Value::dict))
}

fn resolver_settings(text: &str) -> Value {
    let (mut servers, mut four, mut six) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sortlist, mut options) = (Vec::new(), Vec::new());
    let (mut domain, mut search) = (String::new(), Vec::new());
    let note = |list: &mut Vec<String>, text: String| {
        if !list.contains(&text) {
            list.push(text);
        }
    };
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(directive) = words.next() else { continue };
        let args: Vec<&str> = words.take_while(|word| !word.starts_with(['#', ';'])).collect();
        match (directive.to_ascii_lowercase().as_str(), args.as_slice()) {
            ("nameserver", [server, ..]) => {
                if let Some((text, is_four)) = server_text(server) {
                    note(&mut servers, text.clone());
                    note(if is_four { &mut four } else { &mut six }, text);
                }
            }
            ("domain", [name, ..]) => domain = (*name).to_owned(),
            ("search", names) => search = names.iter().map(|name| (*name).to_owned()).collect(),
            ("sortlist", nets) => {
                for net in nets.iter().filter_map(|net| with_mask(net)) {
                    note(&mut sortlist, net);
                }
            }
            // Only the first of a line, as in Salt.
            ("options", [option, ..]) => note(&mut options, (*option).to_owned()),
            _ => {}
        }
    }
    dict! {
        "nameservers" => servers,
        "ip4_nameservers" => four,
        "ip6_nameservers" => six,
        "sortlist" => sortlist,
        "domain" => domain,
        "search" => search,
        "options" => options,
    }
}

/// Returns a server's address in its usual form, zone included, and whether it is of IPv4.
fn server_text(server: &str) -> Option<(String, bool)> {
    let (address, zone) = server.split_once('%').map_or((server, None), |(a, z)| (a, Some(z)));
    match (address.parse().ok()?, zone) {
        (IpAddr::V4(four), None) => Some((four.to_string(), true)),
        (IpAddr::V6(six), Some(zone)) if !zone.is_empty() => Some((format!("{six}%{zone}"), false)),
        (IpAddr::V6(six), None) => Some((six.to_string(), false)),
        _ => None,
    }
}

/// Writes a net with its mask; without one, by the classes of old.
fn with_mask(net: &str) -> Option<String> {
    let (address, mask) = net.split_once('/').map_or((net, None), |(a, m)| (a, Some(m)));
    let address: Ipv4Addr = address.parse().ok()?;
    let mask = match mask {
        None => match address.octets()[0] {
            0..128 => Ipv4Addr::new(255, 0, 0, 0),
            128..192 => Ipv4Addr::new(255, 255, 0, 0),
            192.. => Ipv4Addr::new(255, 255, 255, 0),
        },
        Some(bits) if bits.parse::<u32>().is_ok_and(|bits| bits <= 32) => {
            let bits: u32 = bits.parse().ok()?;
            Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - bits).unwrap_or(0))
        }
        Some(mask) => mask.parse().ok()?,
    };
    let inside = Ipv4Addr::from_bits(address.to_bits() & mask.to_bits());
    // A net given with a mask must not have host bits; one without is cut to size.
    (inside == address || !net.contains('/')).then(|| format!("{inside}/{mask}"))
}

#[cfg(test)]
mod tests {
    use halite_host::Fake;
    use halite_spec::host::Address;
    use halite_value::list;

    use super::*;

    fn address(ip: &str, prefix: u8, secondary: bool) -> Address {
        let ip = ip.parse().unwrap();
        Address { ip, prefix, secondary, broadcast: None, peer: None, label: None }
    }

    fn fake() -> Fake {
        let fake = Fake::new();
        fake.set_interfaces(vec![
            Interface {
                name: "lo".into(),
                up: true,
                hwaddr: Some("00:00:00:00:00:00".into()),
                addresses: vec![address("127.0.0.1", 8, false), address("::1", 128, false)],
                ..Interface::default()
            },
            Interface {
                name: "eth0".into(),
                up: true,
                hwaddr: Some("02:00:00:00:00:01".into()),
                addresses: vec![
                    address("10.0.0.9", 24, false),
                    address("10.0.0.8", 24, true),
                    address("fe80::1", 64, false),
                ],
                ..Interface::default()
            },
            Interface { name: "tun0".into(), ..Interface::default() },
        ]);
        fake
    }

    fn all(fake: &Fake, opts: &Dict) -> Dict {
        crate::Collector::new().collect(fake, opts).grains
    }

    #[test]
    fn addresses_by_interface() {
        let grains = all(&fake(), &Dict::new());
        assert_eq!(
            grains.get("ip_interfaces").unwrap(),
            dict! {
                "lo" => list!["127.0.0.1", "::1"],
                "eth0" => list!["10.0.0.9", "fe80::1", "10.0.0.8"],
                "tun0" => list![],
            }
        );
        assert_eq!(
            grains.get("ip4_interfaces").unwrap().get("eth0").unwrap(),
            list!["10.0.0.9", "10.0.0.8"]
        );
        assert_eq!(grains.get("ip6_interfaces").unwrap().get("tun0").unwrap(), list![]);
        assert_eq!(grains.get("hwaddr_interfaces").unwrap().get("tun0"), None);
        assert_eq!(grains.get("ipv4").unwrap(), list!["10.0.0.8", "10.0.0.9", "127.0.0.1"]);
        assert_eq!(grains.get("ipv6").unwrap(), list!["::1", "fe80::1"]);
    }

    #[test]
    fn names_of_the_machine() {
        let fake = fake();
        let grains = all(&fake, &Dict::new());
        assert_eq!(grains.get("fqdn").unwrap(), Value::from("fake"));
        assert_eq!(grains.get("domain").unwrap(), Value::from(""));
        assert_eq!(grains.get("fqdn_ip4").unwrap(), list![]);
        let ip: IpAddr = "10.0.0.9".parse().unwrap();
        fake.resolves("fake", "fake.example.com", &[ip]);
        fake.resolves("fake.example.com", "fake.example.com", &[ip]);
        let grains = all(&fake, &Dict::new());
        assert_eq!(grains.get("fqdn").unwrap(), Value::from("fake.example.com"));
        assert_eq!(grains.get("host").unwrap(), Value::from("fake"));
        assert_eq!(grains.get("domain").unwrap(), Value::from("example.com"));
        assert_eq!(grains.get("fqdn_ip4").unwrap(), list!["10.0.0.9"]);
        assert_eq!(grains.get("fqdns").unwrap(), list!["fake.example.com"]);
        assert_eq!(fqdns(&fake), ["fake.example.com"]);
        let off = dict! { "enable_fqdns_grains" => false };
        assert_eq!(all(&fake, off.as_dict().unwrap()).get("fqdns").unwrap(), list![]);
    }

    #[test]
    fn default_routes() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
            eth1 00000000 0101A8C0 0003 0 0 200 00000000 0 0 0\n\
            eth0 00000000 010200C0 0003 0 0 100 00000000 0 0 0\n\
            eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        assert_eq!(default_route(table), Some(Some("192.0.2.1".into())));
        let direct = "head\ntun0 00000000 00000000 0001 0 0 0 00000000 0 0 0\n";
        assert_eq!(default_route(direct), Some(None));
        assert_eq!(default_route("head\n"), None);
        let table = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
            fd000000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n";
        assert_eq!(default_route6(table), Some(Some("fd00::1".into())));
        assert_eq!(default_route6(""), None);
    }

    #[test]
    fn resolver() {
        let settings = resolver_settings(
            "# comment\nnameserver 10.0.0.1 # ours\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\n\
             nameserver nonsense\nsearch a.example b.example ; c\ndomain x.example\n\
             options ndots:2 timeout:1\nsortlist 130.155.160.0/255.255.240.0 130.155.0.0 10.1.1.1/8\n\
             nameserver\n",
        );
        assert_eq!(
            settings,
            dict! {
                "nameservers" => list!["10.0.0.1", "fe80::1%eth0"],
                "ip4_nameservers" => list!["10.0.0.1"],
                "ip6_nameservers" => list!["fe80::1%eth0"],
                "sortlist" => list!["130.155.160.0/255.255.240.0", "130.155.0.0/255.255.0.0"],
                "domain" => "x.example",
                "search" => list!["a.example", "b.example"],
                "options" => list!["ndots:2"],
            }
        );
    }
}
