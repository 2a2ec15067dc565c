//! Search filters, from the text people write (RFC 4515) to what is sent.

use super::{
    Error,
    ber::{element, put},
};

/// How deep filters may be nested.
const DEPTH: usize = 32;

/// Makes a text harmless inside a filter.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\5c"),
            '*' => out.push_str("\\2a"),
            '(' => out.push_str("\\28"),
            ')' => out.push_str("\\29"),
            '\0' => out.push_str("\\00"),
            other => out.push(other),
        }
    }
    out
}

/// Reads a filter. As the libraries do, the parentheses around the whole may be left out.
pub(super) fn encode(text: &str) -> Result<Vec<u8>, Error> {
    let text = text.trim();
    let wrapped;
    let text = if text.starts_with('(') {
        text
    } else {
        wrapped = format!("({text})");
        &wrapped
    };
    let wrong = || Error::Filter(text.to_owned());
    let mut rest = text;
    let filter = one(&mut rest, DEPTH).ok_or_else(wrong)?;
    if rest.trim().is_empty() { Ok(filter) } else { Err(wrong()) }
}

fn one(rest: &mut &str, depth: usize) -> Option<Vec<u8>> {
    let depth = depth.checked_sub(1)?;
    *rest = rest.trim_start().strip_prefix('(')?;
    let tag = match rest.trim_start().chars().next()? {
        '&' => Some(0xa0),
        '|' => Some(0xa1),
        '!' => Some(0xa2),
        _ => None,
    };
    let Some(tag) = tag else {
        let (item, after) = rest.split_once(')')?;
        *rest = after;
        return comparison(item);
    };
    *rest = &rest.trim_start()[1..];
    let mut body = Vec::new();
    let mut count = 0;
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(')') {
            *rest = after;
            break;
        }
        body.extend(one(rest, depth)?);
        count += 1;
    }
    (tag != 0xa2 || count == 1).then(|| element(tag, &body))
}

fn comparison(item: &str) -> Option<Vec<u8>> {
    let (left, value) = item.split_once('=')?;
    let (left, tag) = match left.as_bytes().last()? {
        b'>' => (&left[..left.len() - 1], 0xa5),
        b'<' => (&left[..left.len() - 1], 0xa6),
        b'~' => (&left[..left.len() - 1], 0xa8),
        b':' => return extensible(&left[..left.len() - 1], value),
        _ => (left, 0xa3),
    };
    let attribute = named(left)?;
    if tag == 0xa3 && value == "*" {
        return Some(element(0x87, attribute));
    }
    let mut body = element(0x04, attribute);
    if tag == 0xa3 && value.contains('*') {
        body.extend(element(0x30, &pieces(value)?));
        return Some(element(0xa4, &body));
    }
    put(&mut body, 0x04, &unescape(value)?);
    Some(element(tag, &body))
}

/// The parts between the stars: at the beginning, anywhere, at the end.
fn pieces(value: &str) -> Option<Vec<u8>> {
    let parts: Vec<&str> = value.split('*').collect();
    let last = parts.len() - 1;
    let mut out = Vec::new();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let tag = match at {
            0 => 0x80,
            at if at == last => 0x82,
            _ => 0x81,
        };
        put(&mut out, tag, &unescape(part)?);
    }
    (!out.is_empty()).then_some(out)
}

/// `attribute:dn:rule:=value`: Active Directory's nested groups are asked for like this.
fn extensible(left: &str, value: &str) -> Option<Vec<u8>> {
    let mut parts = left.split(':');
    let attribute = parts.next()?;
    let (mut rule, mut is_dn) = ("", false);
    for part in parts {
        match part {
            "dn" | "DN" if !is_dn => is_dn = true,
            part if rule.is_empty() && !part.is_empty() => rule = part,
            _ => return None,
        }
    }
    let mut body = Vec::new();
    if !rule.is_empty() {
        put(&mut body, 0x81, named(rule)?);
    }
    if !attribute.is_empty() {
        put(&mut body, 0x82, named(attribute)?);
    }
    put(&mut body, 0x83, &unescape(value)?);
    if is_dn {
        put(&mut body, 0x84, &[0xff]);
    }
    (!rule.is_empty() || !attribute.is_empty()).then(|| element(0xa9, &body))
}

fn named(name: &str) -> Option<&[u8]> {
    let name = name.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;_".contains(&byte);
    (!name.is_empty() && name.bytes().all(plain)).then_some(name.as_bytes())
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'(' => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(filter: &str) -> String {
        let bytes = encode(filter).unwrap();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn filters_are_written_as_the_standard_says() {
        assert_eq!(hex("(cn=ab)"), "a30804026".to_owned() + "36e04026162");
        assert_eq!(hex("cn=ab"), hex("(cn=ab)"));
        assert_eq!(hex("(cn=*)"), "8702636e");
        assert_eq!(hex("(cn=a*b*c)"), "a40f0402636e3009800161810162820163");
        assert_eq!(hex("(cn=*b)"), "a4090402636e3003820162");
        assert_eq!(hex("(!(a=b))"), "a208a30604016104".to_owned() + "0162");
        assert_eq!(hex("(&(a=b)(c>=d))"), "a010a306040161040162a506040163040164");
        assert_eq!(hex("(|(a~=b)(c<=d))"), "a110a806040161040162a606040163040164");
        assert_eq!(hex("(a=\\2a\\29)"), "a307040161".to_owned() + "04022a29");
        assert_eq!(hex("(a:1.2:=b)"), "a90b8103312e3282016183".to_owned() + "0162");
        assert_eq!(hex("(a:dn:=b)"), "a909820161830162".to_owned() + "8401ff");
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in ["", "(", "()", "(a)", "(a=b", "(a=b))", "(!(a=b)(c=d))", "(a=\\zz)", "(a b=c)"]
        {
            assert!(encode(text).is_err(), "{text}");
        }
        assert!(encode(&("(!".repeat(50) + "(a=b)" + &")".repeat(50))).is_err(), "too deep");
    }

    #[test]
    fn names_cannot_change_a_filter() {
        let name = "x)(uid=*";
        assert_eq!(escape(name), "x\\29\\28uid=\\2a");
        let filter = encode(&format!("(uid={})", escape(name))).unwrap();
        assert!(filter.ends_with(name.as_bytes()) && filter[0] == 0xa3);
    }
}
