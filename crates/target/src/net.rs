//! Addresses and networks as Python's `ipaddress` reads them, for `ipcidr` targets.

use std::{
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

use halite_value::Value;

/// An address, or a network whose host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    Address(IpAddr),
    Network { base: IpAddr, prefix: u8 },
}

/// Why a text is neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotNet {
    Syntax,
    /// The network that was probably meant.
    HostBits(String),
}

impl FromStr for Net {
    type Err = NotNet;

    fn from_str(text: &str) -> Result<Self, NotNet> {
        let Some((base, mask)) = text.split_once('/') else {
            return text.parse().map(Self::Address).map_err(|_| NotNet::Syntax);
        };
        let base: IpAddr = base.parse().map_err(|_| NotNet::Syntax)?;
        let prefix = prefix(&base, mask).ok_or(NotNet::Syntax)?;
        let start = masked(base, prefix);
        if start == base {
            Ok(Self::Network { base, prefix })
        } else {
            Err(NotNet::HostBits(format!("{start}/{prefix}")))
        }
    }
}

impl Net {
    /// Returns the grain that holds addresses of this family.
    pub fn grain(&self) -> &'static str {
        match self {
            Self::Address(IpAddr::V4(_)) | Self::Network { base: IpAddr::V4(_), .. } => "ipv4",
            _ => "ipv6",
        }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match *self {
            Self::Address(own) => own == address,
            Self::Network { base, prefix } => {
                base.is_ipv4() == address.is_ipv4() && masked(address, prefix) == base
            }
        }
    }

    /// Tells whether any address of a grain (a list, or one text) is meant.
    pub fn contains_any(&self, grain: &Value) -> bool {
        let is_ours = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            let bare = text.split('%').next().unwrap_or(text);
            bare.parse().is_ok_and(|address| self.contains(address))
        };
        match grain.items_of_sequence() {
            Some(items) => items.iter().any(is_ours),
            None => is_ours(grain),
        }
    }
}

/// A prefix length, or for IPv4 also a netmask or a hostmask.
fn prefix(base: &IpAddr, mask: &str) -> Option<u8> {
    let bits = if base.is_ipv4() { 32 } else { 128 };
    if !mask.is_empty() && mask.bytes().all(|byte| byte.is_ascii_digit()) {
        return mask.parse().ok().filter(|prefix| *prefix <= bits);
    }
    if !base.is_ipv4() {
        return None;
    }
    let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
    let ones = mask.leading_ones();
    if mask == u32::MAX.checked_shl(32 - ones).unwrap_or(0) {
        return u8::try_from(ones).ok();
    }
    let zeros = mask.leading_zeros();
    (mask == u32::MAX.checked_shr(zeros).unwrap_or(0)).then(|| u8::try_from(zeros).ok())?
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(net: &str, address: &str, expected: bool) {
        let net: Net = net.parse().expect("a network");
        assert_eq!(net.contains(address.parse().expect("an address")), expected);
    }

    #[test]
    fn networks_contain() {
        check("10.0.0.0/8", "10.9.9.9", true);
        check("10.0.0.0/255.0.0.0", "11.0.0.0", false);
        check("10.0.0.0/0.255.255.255", "10.1.2.3", true);
        check("0.0.0.0/0", "1.2.3.4", true);
        check("::/0", "1.2.3.4", false);
        check("2001:db8::/32", "2001:db8:1::", true);
        check("10.0.0.1/32", "10.0.0.1", true);
    }

    #[test]
    fn host_bits_are_refused_with_the_network_meant() {
        let meant = NotNet::HostBits("10.0.0.0/24".into());
        assert_eq!("10.0.0.5/24".parse::<Net>(), Err(meant));
        for wrong in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "::/129", "x/8", "010.0.0.1"] {
            assert_eq!(wrong.parse::<Net>(), Err(NotNet::Syntax), "{wrong}");
        }
    }
}
