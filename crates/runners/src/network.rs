//! `network`: waking machines up.
//!
//! A magic packet is six bytes 0xff and sixteen times the hardware address, sent to everybody on the
//! network (UDP, no answer is expected). It leaves from the master's machine.

use std::net::UdpSocket;

use halite_client::Request;
use halite_spec::{Cx, Error, Result, function, module};
use halite_value::Value;

use crate::master;

module! {
    /// Wake machines up.
    "network": wol, wollist, wolmatch,
}

/// Reads a hardware address: twelve digits, with or without signs between the pairs.
fn address(text: &str) -> Result<[u8; 6]> {
    let digits: String = match text.len() {
        12 => text.to_owned(),
        17 => {
            let sign = text.as_bytes()[2];
            text.chars()
                .filter(|letter| !letter.is_ascii() || *letter as u32 != sign.into())
                .collect()
        }
        _ => String::new(),
    };
    let wrong = || Error::Raised {
        class: "ValueError".into(),
        message: "Invalid MAC address".into(),
        traceback: None,
    };
    if digits.len() != 12 || !digits.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; 6];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[place * 2..place * 2 + 2], 16).map_err(|_| wrong())?;
    }
    Ok(bytes)
}

fn packet(address: [u8; 6]) -> Vec<u8> {
    let mut packet = vec![0xff; 6];
    for _ in 0..16 {
        packet.extend(address);
    }
    packet
}

fn wake(mac: &str, bcast: &str, destport: i64) -> Result<()> {
    let packet = packet(address(mac)?);
    let destport = u16::try_from(destport)
        .map_err(|_| Error::invalid(format!("destport: {destport} is no port")))?;
    let sent = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.set_broadcast(true)?;
        socket.send_to(&packet, (bcast, destport))
    });
    sent.map(drop).map_err(|error| Error::failed(format!("cannot wake {mac}: {error}")))
}

/// Wake a machine up.
///
/// ```console
/// $ salt-run network.wol 00:00:5e:00:53:01
/// ```
#[function]
pub fn wol(
    _: &Cx,
    /// Its hardware address.
    mac: String,
    /// Where to send it.
    #[default("255.255.255.255".to_owned())]
    bcast: String,
    /// To which port.
    #[default(9)]
    destport: i64,
) -> Result<bool> {
    wake(mac.trim(), &bcast, destport)?;
    Ok(true)
}

/// Wake up all machines of a file with one hardware address on each line.
///
/// ```console
/// $ salt-run network.wollist /srv/maclist
/// ```
#[function]
pub fn wollist(
    cx: &Cx,
    /// The file.
    maclist: String,
    /// Where to send it.
    #[default("255.255.255.255".to_owned())]
    bcast: String,
    /// To which port.
    #[default(9)]
    destport: i64,
) -> Result<Value> {
    let text = match cx.host.read_text(std::path::Path::new(&maclist)) {
        Ok(text) => text,
        Err(error) => {
            tracing::error!("Failed to open the MAC file. Error: {error}");
            return Ok(Vec::<Value>::new().into());
        }
    };
    let mut woken = Vec::new();
    for mac in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        wake(mac, &bcast, destport)?;
        master::say(cx, format!("Waking up {mac}"))?;
        woken.push(mac.to_owned());
    }
    Ok(Value::list(woken))
}

/// Wake up minions by the hardware addresses in their remembered grains.
///
/// ```console
/// $ salt-run network.wolmatch 'web*'
/// ```
#[function]
pub fn wolmatch(
    cx: &Cx,
    /// Whom.
    tgt: Value,
    /// How the target is read.
    #[default("glob".to_owned())]
    tgt_type: String,
    /// Where to send it.
    #[default("255.255.255.255".to_owned())]
    bcast: String,
    /// To which port.
    #[default(9)]
    destport: i64,
) -> Result<Value> {
    let data = master::ask(cx, &Request::MinionData { tgt, tgt_type: tgt_type.into() })?;
    let mut woken = Vec::new();
    for (_, minion) in data.as_dict().map(halite_value::Dict::entries).unwrap_or_default() {
        let interfaces = minion.get("grains").and_then(|grains| grains.get("hwaddr_interfaces"));
        let Some(Value::Dict(interfaces)) = interfaces else { continue };
        for (name, mac) in interfaces.entries() {
            let mac = mac.to_str();
            if name.to_str() == "lo" || mac.is_empty() {
                continue;
            }
            wake(&mac, &bcast, destport)?;
            tracing::info!("Waking up {mac}");
            woken.push(mac);
        }
    }
    Ok(Value::list(woken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_all_forms() {
        let expected = [0x02, 0x4b, 0x9e, 0x5c, 0xd1, 0x3a];
        for text in ["02-4b-9e-5c-d1-3a", "02:4B:9E:5C:D1:3A", "024b9e5cd13a"] {
            assert_eq!(address(text).unwrap(), expected, "{text}");
        }
        for text in ["", "02-4b", "02-4b-9e-5c-d1-3g", "éééééé", "024b9e5cd13a0"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_magic_packet_has_102_bytes() {
        let packet = packet([1, 2, 3, 4, 5, 6]);
        assert_eq!((packet.len(), &packet[..8]), (102, &[255, 255, 255, 255, 255, 255, 1, 2][..]));
    }
}
