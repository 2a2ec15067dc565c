//! General names: the addresses certificates carry (`DNS:a.example`, `IP:10.0.0.1`, `URI:…`).

use std::net::IpAddr;

use halite_spec::{Error, Result};
use halite_value::Value;

use super::{
    der::{self, Item},
    name::Name,
};

/// A name as given: what it is and its value.
pub struct Given {
    kind: String,
    value: Value,
}

impl Given {
    /// Reads `DNS:x` or `{DNS: x}`.
    pub fn of(value: &Value) -> Self {
        if let Value::Dict(pair) = value
            && let Some((kind, value)) = pair.entries().into_iter().next()
        {
            return Self { kind: kind.to_str().to_lowercase(), value };
        }
        let text = value.to_str();
        let (kind, value) = text.split_once(':').unwrap_or((&text, ""));
        Self { kind: kind.trim().to_lowercase(), value: value.trim().into() }
    }

    /// `issuer:copy`, which stands for the names of the one who signs.
    pub fn is_copy(&self) -> bool {
        self.kind == "issuer" && self.value.to_str() == "copy"
    }

    /// Writes it.
    pub fn write(&self) -> Result<Vec<u8>> {
        let text = self.value.to_str();
        let plain =
            |number: u8, text: &str| der::element(der::context_plain(number), text.as_bytes());
        Ok(match self.kind.as_str() {
            "email" => plain(1, &mail(&text)?),
            "dns" => plain(2, &host(&text, true)?),
            "uri" => plain(6, &uri(&text)?),
            "ip" => der::element(der::context_plain(7), &address(&text)?),
            "rid" => {
                let number = der::oid_content(&text)
                    .ok_or_else(|| Error::failed(format!("Invalid oid: {text}")))?;
                der::element(der::context_plain(8), &number)
            }
            "dirname" => der::element(der::context(4), &Name::of_value(&self.value)?.der),
            "othername" => {
                return Err(Error::invalid("otherName is currently not implemented"));
            }
            other => {
                return Err(Error::failed(format!("GeneralName type {other} is invalid")));
            }
        })
    }
}

/// Writes several, one after the other.
pub fn write_all(values: &[Value]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for value in values {
        all.extend(Given::of(value).write()?);
    }
    Ok(all)
}

/// Shows one as read.
pub fn shown(item: Item) -> String {
    let text = || item.text();
    match item.tag & 0x1f {
        0 => other_name(item),
        1 => format!("mail:{}", text()),
        2 => format!("DNS:{}", text()),
        4 => format!("dirName:{}", Name { der: item.content.to_vec() }.shown()),
        6 => format!("URI:{}", text()),
        7 => format!("IP:{}", address_shown(item.content)),
        8 => format!("RID:{}", der::dotted(item.content).unwrap_or_default()),
        _ => "unknown".into(),
    }
}

/// The value alone, without its kind.
pub fn bare(item: Item) -> String {
    let shown = shown(item);
    shown.split_once(':').map_or(shown.clone(), |(_, value)| value.to_owned())
}

/// As Python writes the object, which is all Salt shows of it.
fn other_name(item: Item) -> String {
    let mut parts = item.items();
    let number = parts.next().and_then(Item::oid).unwrap_or_default();
    let value = parts.next().map_or(&[][..], |value| value.content);
    format!(
        "<OtherName(type_id=<ObjectIdentifier(oid={number}, name=Unknown OID)>, value={})>",
        Value::bytes(value).repr()
    )
}

fn address(text: &str) -> Result<Vec<u8>> {
    let wrong = || {
        Error::failed(format!(
            "Provided value {text} does not seem to be an IP address or network range."
        ))
    };
    let bytes = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let Some((net, mask)) = text.split_once('/') else {
        return text.parse().map(bytes).map_err(|_| wrong());
    };
    let net = bytes(net.parse().map_err(|_| wrong())?);
    let mask: Vec<u8> = match mask.parse::<usize>() {
        Ok(prefix) if prefix <= net.len() * 8 => (0..net.len())
            .map(|index| match prefix.saturating_sub(index * 8) {
                0 => 0,
                8.. => 255,
                bits => 0xff_u8 << (8 - bits),
            })
            .collect(),
        _ => bytes(mask.parse().map_err(|_| wrong())?),
    };
    // As Python: bits of hosts in a network are a mistake.
    let strict =
        mask.len() == net.len() && net.iter().zip(&mask).all(|(net, mask)| net & !mask == 0);
    if strict { Ok([net, mask].concat()) } else { Err(wrong()) }
}

fn address_shown(bytes: &[u8]) -> String {
    let one = |bytes: &[u8]| match *bytes {
        [a, b, c, d] => format!("{a}.{b}.{c}.{d}"),
        _ => {
            let groups = bytes.chunks(2).map(super::super::hashutil::hex);
            groups.collect::<Vec<_>>().join(":")
        }
    };
    match bytes.len() {
        length @ (8 | 32) => {
            let (net, mask) = bytes.split_at(length / 2);
            let prefix: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
            format!("{}/{prefix}", one(net))
        }
        _ => one(bytes),
    }
}

fn mail(text: &str) -> Result<String> {
    let Some((person, domain)) = text.rsplit_once('@') else { return Ok(text.to_owned()) };
    if !person.is_ascii() {
        return Err(Error::failed(
            "RFC822Name values should be passed as an A-label string. This means unicode \
             characters should be encoded via a library like idna.",
        ));
    }
    Ok(format!("{person}@{}", host(domain, false)?))
}

/// The host of an address in its ASCII form; everything else as it is.
fn uri(text: &str) -> Result<String> {
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(text.to_owned()) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (format!("{user}@"), place),
        None => (String::new(), authority),
    };
    let (name, port) = match place.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|digit| digit.is_ascii_digit()) => {
            (name, format!(":{port}"))
        }
        _ => (place, String::new()),
    };
    if name.starts_with('[') || name.is_empty() {
        return Ok(text.to_owned());
    }
    if name.contains('*') {
        return Err(Error::failed("Wildcards are not allowed in this context"));
    }
    Ok(format!("{scheme}://{user}{}{port}{path}", host(name, false)?))
}

/// A host name in its ASCII form, checked as IDNA wants it.
fn host(text: &str, wildcard: bool) -> Result<String> {
    let (prefix, name) = match text {
        _ if wildcard && text.starts_with("*.") => text.split_at(2),
        // A leading dot stands for a whole domain in constraints.
        _ if text.starts_with('.') => text.split_at(1),
        _ => text.split_at(0),
    };
    if name.is_empty() {
        return Err(Error::failed("Empty domain"));
    }
    let labels = name.split('.').map(label).collect::<Result<Vec<_>>>()?;
    Ok(format!("{prefix}{}", labels.join(".")))
}

fn label(text: &str) -> Result<String> {
    let fail = |reason: String| Err(Error::failed(reason));
    if text.is_empty() {
        return fail("Empty Label".into());
    }
    if text.starts_with('-') || text.ends_with('-') {
        return fail("Label must not start or end with a hyphen".into());
    }
    let wrong =
        |letter: &char| letter.is_ascii() && !letter.is_ascii_alphanumeric() && *letter != '-';
    if let Some(position) = text.chars().position(|letter| wrong(&letter)) {
        let letter = text.chars().nth(position).unwrap_or_default();
        return fail(format!(
            "Codepoint U+{:04X} at position {} of '{}' not allowed",
            u32::from(letter),
            position + 1,
            text.to_lowercase()
        ));
    }
    let written = match text.is_ascii() {
        true => text.to_owned(),
        false => format!("xn--{}", punycode(&text.to_lowercase())),
    };
    if written.len() > 63 {
        return fail("Label too long".into());
    }
    Ok(written)
}

/// RFC 3492.
fn punycode(text: &str) -> String {
    const BASE: u32 = 36;
    let letters: Vec<u32> = text.chars().map(u32::from).collect();
    let mut out: String = text.chars().filter(char::is_ascii).collect();
    let basic = out.len() as u32;
    if basic > 0 {
        out.push('-');
    }
    let digit = |value: u32| char::from_digit(if value < 26 { value + 10 } else { value - 26 }, 36);
    let (mut point, mut delta, mut bias, mut done) = (128_u32, 0_u32, 72_u32, basic);
    while (done as usize) < letters.len() {
        let Some(next) = letters.iter().copied().filter(|letter| *letter >= point).min() else {
            break;
        };
        delta = delta.saturating_add((next - point).saturating_mul(done + 1));
        point = next;
        for letter in &letters {
            if *letter < point {
                delta += 1;
            }
            if *letter != point {
                continue;
            }
            let (mut rest, mut position) = (delta, BASE);
            loop {
                let threshold = position.saturating_sub(bias).clamp(1, 26);
                if rest < threshold {
                    break;
                }
                let value = threshold + (rest - threshold) % (BASE - threshold);
                out.extend(digit(value));
                rest = (rest - threshold) / (BASE - threshold);
                position += BASE;
            }
            out.extend(digit(rest));
            delta /= if done == basic { 700 } else { 2 };
            delta += delta / (done + 1);
            let mut steps = 0;
            while delta > 455 {
                delta /= BASE - 1;
                steps += BASE;
            }
            bias = steps + BASE * delta / (delta + 38);
            delta = 0;
            done += 1;
        }
        delta += 1;
        point += 1;
    }
    // The digits of `char::from_digit` are 0-9a-z; punycode counts a-z0-9.
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: &str) {
        let outcome = Given::of(&given.into()).write();
        let shown = match &outcome {
            Ok(der) => {
                let item = der::Items::of(der).next().unwrap();
                shown(item)
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{given}");
    }

    #[test]
    fn names() {
        check("DNS:x", "DNS:x");
        check("DNS:*.b.example", "DNS:*.b.example");
        check("DNS:FOO.Example.COM", "DNS:FOO.Example.COM");
        check("DNS:ä.de", "DNS:xn--4ca.de");
        check("DNS:faß.de", "DNS:xn--fa-hia.de");
        check("DNS:bücher.例え", "DNS:xn--bcher-kva.xn--r8jz45g");
        check("DNS:foo_bar", "Codepoint U+005F at position 4 of 'foo_bar' not allowed");
        check("DNS:*.*.foo", "Codepoint U+002A at position 1 of '*' not allowed");
        check("DNS:", "Empty domain");
        check("DNS:a..b", "Empty Label");
        check("DNS: x", "DNS:x");
        check("IP:10.0.0.1", "IP:10.0.0.1");
        check("IP:2001:db8::1", "IP:2001:0db8:0000:0000:0000:0000:0000:0001");
        check("IP:10.0.0.0/24", "IP:10.0.0.0/24");
        check("IP:192.168.0.0/255.255.0.0", "IP:192.168.0.0/16");
        check(
            "IP:10.0.0.5/24",
            "Provided value 10.0.0.5/24 does not seem to be an IP address or network range.",
        );
        check("email:foo@ä.de", "mail:foo@xn--4ca.de");
        check("URI:http://ä.de:80/x", "URI:http://xn--4ca.de:80/x");
        check("URI:https://*.foo.com", "Wildcards are not allowed in this context");
        check("RID:1.2.3.4", "RID:1.2.3.4");
        check("RID:x", "Invalid oid: x");
        check("dirName:CN=x+O=y", "dirName:CN=x+O=y");
        check("foo:bar", "GeneralName type foo is invalid");
        check("otherName:1.2.3;UTF8:foo", "otherName is currently not implemented");
    }
}
