//! `netaddress`: arithmetic with networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use halite_spec::{Cx, Error, Result, function, module};

module! {
    /// Arithmetic with networks.
    "netaddress": list_cidr_ips, list_cidr_ips_ipv6, cidr_netmask, cidr_broadcast,
}

/// A million addresses are a list nobody reads, and a network of IPv6 would be the end of us.
const MOST: u128 = 1 << 20;

/// A network: its first address as a number, and how many bits name it.
struct Net {
    first: u128,
    prefix: u32,
    bits: u32,
}

impl Net {
    fn of(text: &str) -> Result<Self> {
        let wrong = || Error::raised("AddrFormatError", format!("invalid IPNetwork {text}"));
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let (number, bits) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let prefix = match (prefix, address) {
            (None, _) => bits,
            (Some(text), IpAddr::V4(_)) if text.contains('.') => {
                let mask = u32::from(text.parse::<Ipv4Addr>().map_err(|_| wrong())?);
                if mask.leading_ones() + mask.trailing_zeros() < 32 {
                    return Err(wrong());
                }
                mask.leading_ones()
            }
            (Some(text), _) => {
                text.parse().ok().filter(|prefix| *prefix <= bits).ok_or_else(wrong)?
            }
        };
        let mut net = Self { first: number, prefix, bits };
        net.first = number & net.mask();
        Ok(net)
    }

    /// The bits of an address of this family.
    fn all(&self) -> u128 {
        if self.bits == 32 { u128::from(u32::MAX) } else { u128::MAX }
    }

    fn mask(&self) -> u128 {
        let host = self.bits - self.prefix;
        if host >= 128 { 0 } else { (self.all() >> host) << host }
    }

    fn last(&self) -> u128 {
        self.first | (self.all() & !self.mask())
    }

    fn shown(&self, number: u128) -> String {
        match u32::try_from(number) {
            Ok(number) if self.bits == 32 => Ipv4Addr::from(number).to_string(),
            _ => Ipv6Addr::from(number).to_string(),
        }
    }

    fn addresses(&self) -> Result<impl Iterator<Item = u128>> {
        if self.last() - self.first >= MOST {
            return Err(Error::invalid("the network has too many addresses to list"));
        }
        Ok(self.first..=self.last())
    }
}

/// Return every address of a network.
///
/// ```console
/// $ salt web1 netaddress.list_cidr_ips 192.168.0.0/28
/// ```
#[function]
pub fn list_cidr_ips(
    cx: &Cx,
    /// The network.
    cidr: String,
) -> Result<Vec<String>> {
    let _ = cx;
    let net = Net::of(&cidr)?;
    Ok(net.addresses()?.map(|number| net.shown(number)).collect())
}

/// Return every address of a network as IPv6.
///
/// ```console
/// $ salt web1 netaddress.list_cidr_ips_ipv6 192.168.0.0/28
/// ```
#[function]
pub fn list_cidr_ips_ipv6(
    cx: &Cx,
    /// The network.
    cidr: String,
) -> Result<Vec<String>> {
    let _ = cx;
    let net = Net::of(&cidr)?;
    let mapped = |number: u128| match u32::try_from(number) {
        Ok(number) if net.bits == 32 => format!("::ffff:{}", Ipv4Addr::from(number)),
        _ => net.shown(number),
    };
    Ok(net.addresses()?.map(mapped).collect())
}

/// Return the mask of a network.
///
/// ```console
/// $ salt web1 netaddress.cidr_netmask 192.168.0.0/20
/// ```
#[function]
pub fn cidr_netmask(
    cx: &Cx,
    /// The network.
    cidr: String,
) -> Result<String> {
    let _ = cx;
    let net = Net::of(&cidr)?;
    Ok(net.shown(net.mask()))
}

/// Return the address that reaches all of a network; None where there is none.
///
/// ```console
/// $ salt web1 netaddress.cidr_broadcast 192.168.0.0/20
/// ```
#[function]
pub fn cidr_broadcast(
    cx: &Cx,
    /// The network.
    cidr: String,
) -> Result<String> {
    let _ = cx;
    let net = Net::of(&cidr)?;
    // Two addresses or one are all hosts, and IPv6 has no broadcast.
    let has_one = net.bits == 32 && net.prefix < 31;
    Ok(if has_one { net.shown(net.last()) } else { "None".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cidr: &str, mask: &str, last: &str) {
        let net = Net::of(cidr).expect(cidr);
        assert_eq!((net.shown(net.mask()), net.shown(net.last())), (mask.into(), last.into()));
    }

    #[test]
    fn networks() {
        check("192.168.0.0/20", "255.255.240.0", "192.168.15.255");
        check("10.1.2.3/255.255.255.0", "255.255.255.0", "10.1.2.255");
        check("10.0.0.1", "255.255.255.255", "10.0.0.1");
        check("0.0.0.0/0", "0.0.0.0", "255.255.255.255");
        check("fe80::/126", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc", "fe80::3");
        check("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
        for wrong in ["x", "10.0.0.0/33", "10.0.0.0/255.0.255.0", "fe80::/129", ""] {
            assert!(Net::of(wrong).is_err(), "{wrong}");
        }
        assert!(Net::of("::/0").unwrap().addresses().is_err());
    }
}
