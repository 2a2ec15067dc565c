//! The part of `network` about others: who is reachable, who is near, who is connected.

use std::{net::IpAddr, path::Path, time::Duration};

use halite_spec::{Command, Cx, Error, Rest, Result, function};
use halite_value::{Dict, List, Value, dict, entries};

use super::nets;

/// Try whether somebody listens on a port; returns `result` and `comment`.
///
/// ```console
/// $ salt web1 network.connect db1.example.org 5432
/// ```
#[function]
pub fn connect(
    cx: &Cx,
    /// The machine.
    host: String,
    /// The port.
    port: Option<Value>,
    /// `proto` (`tcp` or `udp`), `timeout` in seconds, `family` (`ipv4` or `ipv6`).
    kwargs: Rest,
) -> Result<Dict> {
    let said =
        |result: bool, comment: String| Ok(entries! { "result" => result, "comment" => comment });
    if host.is_empty() {
        return said(false, "Required argument, host, is missing.".into());
    }
    let Some(port) = port.filter(Value::truthy) else {
        return said(false, "Required argument, port, is missing.".into());
    };
    let given = |name: &str| kwargs.kwargs.get(name).filter(|value| !value.is_null());
    let udp = given("proto").is_some_and(|proto| proto.as_str() == Some("udp"));
    let proto = if udp { "udp" } else { "tcp" };
    let seconds = given("timeout").and_then(|seconds| seconds.as_float()).unwrap_or(5.0);
    let family = given("family").map(|family| family.to_string());
    let fits = |address: &&IpAddr| match family.as_deref() {
        Some("ipv4") => address.is_ipv4(),
        Some("ipv6") => address.is_ipv6(),
        _ => true,
    };
    let literal = host.parse::<IpAddr>().ok().map(|address| vec![address]);
    let addresses = match literal {
        Some(addresses) => addresses,
        None => cx.host.resolve(&host)?.addresses,
    };
    let number = port.to_string().parse::<u16>().ok();
    let (Some(address), Some(number)) = (addresses.iter().find(fits), number) else {
        return said(false, format!("Unable to resolve host {host} on {proto} port {port}"));
    };
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(5));
    let what = format!("{host} ({address}) on {proto} port {port}");
    match cx.host.connect(&address.to_string(), number, udp, time) {
        Ok(()) => said(true, format!("Successfully connected to {what}")),
        Err(_) => said(false, format!("Unable to connect to {what}")),
    }
}

/// Wake a sleeping machine by its network card (Wake-on-LAN).
///
/// ```console
/// $ salt gateway1 network.wol 08:00:27:13:69:77
/// $ salt gateway1 network.wol 080027136977 192.0.2.255 7
/// ```
#[function]
pub fn wol(
    cx: &Cx,
    /// The hardware address: twelve digits, or six pairs with something between them.
    mac: Value,
    /// The address of the network it is in; everybody near, unless told.
    #[default("255.255.255.255".to_owned())]
    bcast: String,
    /// The port.
    #[default(9)]
    destport: i64,
) -> Result<bool> {
    let Some(card) = hardware_address(&mac.to_str()) else {
        return Err(Error::raised("ValueError", "Invalid MAC address"));
    };
    let Ok(port) = u16::try_from(destport) else {
        return Err(Error::raised("OverflowError", "sendto(): port must be 0-65535."));
    };
    let body = [[0xff; 6].as_slice(), card.repeat(16).as_slice()].concat();
    cx.host.send_datagram(&bcast, port, &body)?;
    Ok(true)
}

fn hardware_address(text: &str) -> Option<[u8; 6]> {
    let digits: Vec<char> = text.chars().collect();
    let digits: Vec<char> = match digits.len() {
        12 => digits,
        17 => {
            // One character is between the pairs, the same everywhere.
            let between = *digits.get(2)?;
            digits.into_iter().filter(|char| *char != between).collect()
        }
        _ => return None,
    };
    let mut ret = [0; 6];
    if digits.len() != 12 {
        return None;
    }
    for (byte, pair) in ret.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [pair[0].to_digit(16)?, pair[1].to_digit(16)?];
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(ret)
}

/// Return the full names of the machine's addresses, as the resolver knows them.
///
/// ```console
/// $ salt web1 network.fqdns
/// ```
#[function]
pub fn fqdns(cx: &Cx) -> Result<Dict> {
    let mut names = Vec::new();
    for interface in cx.host.interfaces()? {
        for own in &interface.addresses {
            if !own.ip.is_loopback() {
                names.extend(cx.host.names_of(own.ip)?.into_iter().take(1));
            }
        }
    }
    names.sort();
    names.dedup();
    Ok(entries! { "fqdns" => names })
}

fn networks(
    cx: &Cx,
    interface: Option<String>,
    loopback: bool,
    verbose: bool,
    v4: bool,
) -> Result<Value> {
    let only: Vec<String> = interface.into_iter().collect();
    let mut found = nets(cx, &only, v4)?;
    if loopback {
        found.push(if v4 { "127.0.0.0/8".into() } else { "::1/128".into() });
    }
    if !verbose {
        return Ok(found.into());
    }
    let ret = Dict::new();
    for net in found {
        let Some((address, prefix)) = net.split_once('/') else { continue };
        let bits = prefix.parse::<u32>().unwrap_or(0);
        let own = Dict::new();
        own.insert("address", address);
        if v4 {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            own.insert("netmask", std::net::Ipv4Addr::from_bits(mask).to_string());
            own.insert("num_addresses", 1u64 << (32 - bits.min(32)));
        } else {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            own.insert("netmask", std::net::Ipv6Addr::from_bits(mask).to_string());
            let count = 1u128.checked_shl(128 - bits).and_then(|count| u64::try_from(count).ok());
            own.insert("num_addresses", count);
        }
        own.insert("prefixlen", i64::from(bits));
        ret.insert(net.as_str(), own);
    }
    Ok(ret.into())
}

/// Return the IPv4 networks the machine is in.
///
/// ```console
/// $ salt web1 network.ip_networks interface=eth1
/// ```
#[function]
pub fn ip_networks(
    cx: &Cx,
    /// Only of this interface.
    interface: Option<String>,
    /// The loopback network, too.
    #[default(false)]
    include_loopback: bool,
    /// With mask and size.
    #[default(false)]
    verbose: bool,
) -> Result<Value> {
    networks(cx, interface, include_loopback, verbose, true)
}

/// Return the IPv6 networks the machine is in.
///
/// ```console
/// $ salt web1 network.ip_networks6
/// ```
#[function]
pub fn ip_networks6(
    cx: &Cx,
    /// Only of this interface.
    interface: Option<String>,
    /// The loopback network, too.
    #[default(false)]
    include_loopback: bool,
    /// With mask and size.
    #[default(false)]
    verbose: bool,
) -> Result<Value> {
    networks(cx, interface, include_loopback, verbose, false)
}

fn neighbours(cx: &Cx, option: &str) -> Result<Dict> {
    let text = cx.host.run(&Command::line(["ip", option, "neigh"]).query())?.stdout_text();
    let ret = Dict::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "lladdr");
        let hardware = at.and_then(|at| words.get(at + 1));
        if let (Some(address), Some(hardware)) = (words.first(), hardware) {
            ret.insert(*hardware, *address);
        }
    }
    Ok(ret)
}

/// Return the IPv4 neighbours: hardware address → address.
///
/// ```console
/// $ salt web1 network.ip_neighs
/// ```
#[function]
pub fn ip_neighs(cx: &Cx) -> Result<Dict> {
    neighbours(cx, "-4")
}

/// As `ip_neighs`.
///
/// ```console
/// $ salt '*' network.ipneighs
/// ```
#[function]
pub fn ipneighs(cx: &Cx) -> Result<Dict> {
    neighbours(cx, "-4")
}

/// Return the IPv6 neighbours: hardware address → address.
///
/// ```console
/// $ salt web1 network.ip_neighs6
/// ```
#[function]
pub fn ip_neighs6(cx: &Cx) -> Result<Dict> {
    neighbours(cx, "-6")
}

/// As `ip_neighs6`.
///
/// ```console
/// $ salt '*' network.ipneighs6
/// ```
#[function]
pub fn ipneighs6(cx: &Cx) -> Result<Dict> {
    neighbours(cx, "-6")
}

/// Return the sockets of the machine, as netstat shows them.
///
/// ```console
/// $ salt web1 network.netstat
/// ```
#[function]
pub fn netstat(cx: &Cx) -> Result<List> {
    let text = cx.host.run(&Command::line(["netstat", "-tulpnea"]).query())?.stdout_text();
    let ret = List::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |place: usize| words.get(place).copied().unwrap_or_default();
        let own = dict! {
            "proto" => at(0), "recv-q" => at(1), "send-q" => at(2), "local-address" => at(3),
            "remote-address" => at(4),
        };
        let Value::Dict(own) = own else { continue };
        let from = match at(0) {
            tcp if tcp.starts_with("tcp") => {
                own.insert("state", at(5));
                6
            }
            udp if udp.starts_with("udp") => 5,
            _ => continue,
        };
        own.insert("user", at(from));
        own.insert("inode", at(from + 1));
        own.insert("program", at(from + 2));
        ret.push(own);
    }
    Ok(ret)
}

/// `0100007F:1F90` as address and port; the kernel writes IPv4 in the machine's byte order.
fn end_point(text: &str) -> Option<(String, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let address = u32::from_str_radix(address, 16).ok()?;
    Some((std::net::Ipv4Addr::from(address.to_le_bytes()).to_string(), port))
}

/// Return the established TCP connections, numbered.
///
/// ```console
/// $ salt web1 network.active_tcp
/// ```
#[function]
pub fn active_tcp(cx: &Cx) -> Result<Dict> {
    let text = cx.host.read_text_if_there(Path::new("/proc/net/tcp"))?.unwrap_or_default();
    let ret = Dict::new();
    let lines = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = lines.filter_map(|words| match words.as_slice() {
        [_, local, remote, "01", ..] => Some((end_point(local)?, end_point(remote)?)),
        _ => None,
    });
    for (number, ((local, local_port), (remote, remote_port))) in rows.enumerate() {
        let own = dict! {
            "local_addr" => local, "local_port" => local_port, "remote_addr" => remote,
            "remote_port" => remote_port,
        };
        ret.insert(i64::try_from(number).unwrap_or(i64::MAX), own);
    }
    Ok(ret)
}

/// Return the sizes of an interface's buffers, as ethtool shows them.
///
/// ```console
/// $ salt web1 network.get_bufsize eth1
/// ```
#[function]
pub fn get_bufsize(
    cx: &Cx,
    /// The interface.
    iface: String,
) -> Result<Dict> {
    let ret = Dict::new();
    if cx.host.which("ethtool").is_none() || iface.starts_with('-') {
        return Ok(ret);
    }
    let text = cx.host.run(&Command::line(["ethtool", "-g", &iface]).query())?.stdout_text();
    let mut section = Dict::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.starts_with("Pre-set") || name.starts_with("Current") {
            section = Dict::new();
            ret.insert(name, &section);
        } else if let Ok(number) = value.parse::<i64>() {
            section.insert(name.trim(), number);
        }
    }
    Ok(ret)
}

/// Set the sizes of an interface's buffers.
///
/// ```console
/// $ salt '*' network.mod_bufsize p4p1 tx=1024 rx=4096
/// ```
#[function]
pub fn mod_bufsize(
    cx: &Cx,
    /// The interface.
    iface: String,
    /// `tx`, `rx`, `rx-mini`, `rx-jumbo`.
    args: Rest,
) -> Result<Value> {
    if cx.host.which("ethtool").is_none() || iface.starts_with('-') {
        return Ok(false.into());
    }
    let mut words = vec!["ethtool".to_owned(), "-G".to_owned(), iface.clone()];
    for (name, value) in &args.kwargs {
        let name = name.to_string();
        if matches!(name.as_str(), "tx" | "rx" | "rx-mini" | "rx-jumbo") {
            words.extend([name, value.to_string()]);
        }
    }
    if words.len() == 3 {
        return Ok(entries! { "error" => "no options specified" }.into());
    }
    let output = cx.host.run(&Command::line(words))?;
    if !output.ok() {
        return Ok(entries! { "error" => output.stderr_text().trim() }.into());
    }
    Ok(get_bufsize(cx, iface)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses() {
        let card = Some([8, 0, 0x27, 0x13, 0x69, 0x77]);
        assert_eq!(hardware_address("08:00:27:13:69:77"), card);
        assert_eq!(hardware_address("08-00-27-13-69-77"), card);
        assert_eq!(hardware_address("080027136977"), card);
        for wrong in ["", "08:00:27:13:69:7", "08:00:27:13:69-77", "0800271369zz"] {
            assert_eq!(hardware_address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_machine_is_woken() {
        let kit = halite_testkit::Kit::new();
        let woken = wol(&kit.cx, "0800271369ff".into(), "127.0.0.255".into(), 7);
        assert!(matches!(woken, Ok(true)));
        let sent = kit.fake.datagrams();
        let [(host, 7, body)] = sent.as_slice() else { panic!("{sent:?}") };
        assert_eq!(host, "127.0.0.255");
        assert_eq!(body.len(), 6 + 16 * 6);
        assert_eq!(&body[..8], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 8, 0]);
        assert_eq!(body.last(), Some(&0xff));
    }

    #[test]
    fn the_kernel_writes_addresses_backwards() {
        assert_eq!(end_point("0100007F:1F90"), Some(("127.0.0.1".into(), 8080)));
        assert_eq!(end_point("x"), None);
    }
}
