//! Network interfaces, asked from the kernel directly: no `ip` program is needed or started.
//!
//! Two dumps over a netlink socket, links and addresses; what comes back is a sequence of
//! messages, each with a fixed head and a list of attributes. Numbers are in the machine's own
//! byte order. An unknown or broken attribute is passed over.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::AsRawFd,
};

use halite_spec::host::{Address, Interface};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

const ADDRESS_LABEL: u16 = 3;
const ADDRESS_FLAGS: u16 = 8;
const SECONDARY: u32 = 1;

pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let links = dump(libc::RTM_GETLINK, 16)?;
    let addresses = dump(libc::RTM_GETADDR, 8)?;
    Ok(assemble(&links, &addresses))
}

/// Asks for all objects of a kind; returns the bodies of the messages.
fn dump(kind: u16, head: usize) -> io::Result<Vec<Vec<u8>>> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let mut request = Vec::with_capacity(16 + head);
    request.extend(u32::to_ne_bytes((16 + head) as u32));
    request.extend(kind.to_ne_bytes());
    request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    request.extend(u32::to_ne_bytes(1)); // sequence
    request.extend(u32::to_ne_bytes(0)); // to the kernel
    request.resize(16 + head, 0); // of any family
    send(socket.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut bodies = Vec::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        let count = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..count];
        if rest.is_empty() {
            return Ok(bodies);
        }
        while let (Some(length), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
            let Some(body) = rest.get(16..length as usize) else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(bodies),
                libc::NLMSG_ERROR => {
                    let code = u32_at(body, 0).unwrap_or_default().cast_signed();
                    return Err(io::Error::from_raw_os_error(-code));
                }
                _ => bodies.push(body.to_vec()),
            }
            rest = rest.get(aligned(length as usize)..).unwrap_or_default();
        }
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the attributes after a head: kind and content.
fn attributes(body: &[u8], head: usize) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    let mut rest = body.get(head..).unwrap_or_default();
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let Some(content) = rest.get(4..usize::from(length)) else { break };
        found.push((kind, content));
        rest = rest.get(aligned(length.into())..).unwrap_or_default();
    }
    found
}

fn assemble(links: &[Vec<u8>], addresses: &[Vec<u8>]) -> Vec<Interface> {
    let mut found: Vec<(u32, Interface)> = links.iter().filter_map(|body| link(body)).collect();
    for body in addresses {
        let Some((index, address)) = address(body) else { continue };
        if let Some((_, interface)) = found.iter_mut().find(|(own, _)| *own == index) {
            interface.addresses.push(address);
        }
    }
    for (_, interface) in &mut found {
        // The kernel gives each address the interface's name as its label unless told otherwise.
        for address in &mut interface.addresses {
            address.label.take_if(|label| *label == interface.name);
        }
    }
    found.into_iter().map(|(_, interface)| interface).collect()
}

fn link(body: &[u8]) -> Option<(u32, Interface)> {
    let hardware = u16_at(body, 2)?;
    let index = u32_at(body, 4)?;
    let flags = u32_at(body, 8)?;
    let mut interface =
        Interface { up: flags & libc::IFF_UP as u32 != 0, flags, ..Interface::default() };
    let number = |content| u32_at(content, 0).unwrap_or_default();
    for (kind, content) in attributes(body, 16) {
        match kind {
            libc::IFLA_IFNAME => interface.name = text(content),
            libc::IFLA_ADDRESS => interface.hwaddr = hardware_address(hardware, content),
            libc::IFLA_QDISC => interface.qdisc = Some(text(content)),
            libc::IFLA_PROMISCUITY => interface.promiscuity = number(content),
            libc::IFLA_NUM_TX_QUEUES => interface.tx_queues = number(content),
            libc::IFLA_NUM_RX_QUEUES => interface.rx_queues = number(content),
            libc::IFLA_LINKINFO => {
                let mut info = attributes(content, 0).into_iter();
                let kind = info.find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                interface.kind = kind.map(|(_, name)| text(name));
            }
            _ => {}
        }
    }
    Some((index, interface))
}

/// Tunnels have the address of their end where others have a hardware address.
fn hardware_address(hardware: u16, bytes: &[u8]) -> Option<String> {
    const TUNNELS: [u16; 5] =
        [libc::ARPHRD_TUNNEL, libc::ARPHRD_TUNNEL6, libc::ARPHRD_SIT, libc::ARPHRD_IPGRE, 823];
    if TUNNELS.contains(&hardware)
        && let Some(ip) = ip(bytes)
    {
        return Some(ip.to_string());
    }
    let pairs: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(pairs.join(":")).filter(|text| !text.is_empty())
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).into())
}

fn address(body: &[u8]) -> Option<(u32, Address)> {
    let (&family, &prefix) = (body.first()?, body.get(1)?);
    let mut flags = u32::from(*body.get(2)?);
    let index = u32_at(body, 4)?;
    let (mut own, mut far, mut broadcast, mut label) = (None, None, None, None);
    for (kind, content) in attributes(body, 8) {
        match kind {
            libc::IFA_LOCAL => own = ip(content),
            libc::IFA_ADDRESS => far = ip(content),
            libc::IFA_BROADCAST => broadcast = ip(content),
            ADDRESS_LABEL => label = Some(text(content)),
            ADDRESS_FLAGS => flags = u32_at(content, 0).unwrap_or(flags),
            _ => {}
        }
    }
    // Without the first, the second is our own: so it is for most of IPv6.
    let ip = own.or(far)?;
    let address = Address {
        ip,
        prefix,
        broadcast: match broadcast {
            Some(IpAddr::V4(broadcast)) => Some(broadcast),
            _ => None,
        },
        peer: far.filter(|far| *far != ip),
        label,
        // For IPv6 the same bit means something else: a temporary address.
        secondary: flags & SECONDARY != 0 && i32::from(family) == libc::AF_INET,
    };
    Some((index, address))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = ((content.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn link_body(hardware: u16, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![0, 0];
        body.extend(hardware.to_ne_bytes());
        body.extend(7_u32.to_ne_bytes());
        body.extend(flags.to_ne_bytes());
        body.extend([0; 4]);
        body.extend(attributes.concat());
        body
    }

    #[test]
    fn links_and_addresses() {
        let links = [link_body(
            1,
            libc::IFF_UP as u32,
            &[
                attribute(libc::IFLA_IFNAME, b"eth0\0"),
                attribute(1, &[2, 0xfc, 0, 0, 0, 1]),
                attribute(libc::IFLA_QDISC, b"fq_codel\0"),
                attribute(libc::IFLA_PROMISCUITY, &2_u32.to_ne_bytes()),
                attribute(libc::IFLA_LINKINFO, &attribute(libc::IFLA_INFO_KIND, b"veth\0")),
            ],
        )];
        let v4 = |flags: u8, own: [u8; 4], label: &[u8]| {
            let mut body = vec![libc::AF_INET as u8, 24, flags, 0];
            body.extend(7_u32.to_ne_bytes());
            body.extend(attribute(libc::IFA_ADDRESS, &own));
            body.extend(attribute(libc::IFA_LOCAL, &own));
            body.extend(attribute(libc::IFA_BROADCAST, &[10, 0, 0, 255]));
            body.extend(attribute(ADDRESS_LABEL, label));
            body
        };
        let addresses = [v4(0, [10, 0, 0, 1], b"eth0\0"), v4(1, [10, 0, 0, 2], b"eth0:1\0")];
        let found = assemble(&links, &addresses);
        assert_eq!(found.len(), 1);
        let eth = &found[0];
        assert_eq!((eth.name.as_str(), eth.up), ("eth0", true));
        assert_eq!(eth.hwaddr.as_deref(), Some("02:fc:00:00:00:01"));
        assert_eq!((eth.qdisc.as_deref(), eth.kind.as_deref()), (Some("fq_codel"), Some("veth")));
        assert_eq!((eth.flags, eth.promiscuity), (1, 2));
        assert_eq!(eth.addresses[0].ip.to_string(), "10.0.0.1");
        assert_eq!(eth.addresses[0].label, None);
        assert!(!eth.addresses[0].secondary && eth.addresses[1].secondary);
        assert_eq!(eth.addresses[1].label.as_deref(), Some("eth0:1"));
        assert_eq!(eth.addresses[1].broadcast, Some(Ipv4Addr::new(10, 0, 0, 255)));
    }

    #[test]
    fn tunnels_show_their_ends() {
        let tunnel = link_body(libc::ARPHRD_SIT, 0, &[attribute(1, &[0; 4])]);
        assert_eq!(link(&tunnel).unwrap().1.hwaddr.as_deref(), Some("0.0.0.0"));
        let none = link_body(libc::ARPHRD_NONE, 0, &[attribute(1, &[])]);
        assert_eq!(link(&none).unwrap().1.hwaddr, None);
    }

    #[test]
    fn nonsense_is_passed_over() {
        assert!(link(&[1, 2, 3]).is_none());
        assert!(address(&[2, 24, 0]).is_none());
        assert!(attributes(&[0; 20], 16).is_empty());
        assert!(attributes(&[255; 40], 16).is_empty());
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let found = interfaces().unwrap();
        let lo = found.iter().find(|interface| interface.name == "lo").unwrap();
        assert_eq!(lo.hwaddr.as_deref(), Some("00:00:00:00:00:00"));
    }
}
