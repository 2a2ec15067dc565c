//! Distinguished names: who a certificate is for and who signed it.
//!
//! A name is written as `CN=x,O=y` (RFC 4514: the last part first), given as single arguments
//! (`CN`, `O` …), as a dictionary, a list or such a text, and kept as DER, which is what signatures
//! and comparisons are about.

use halite_spec::{Error, Result};
use halite_value::{Dict, Value};
use sha1::{Digest, Sha1};

use super::der::{self, Item};

/// The parts that have a name among the arguments, in the order they are written. With it the
/// number, the kind of text and how long it may be.
const PARTS: [(&str, &str, u8, usize, usize); 12] = [
    ("C", "2.5.4.6", der::PRINTABLE, 2, 2),
    ("ST", "2.5.4.8", der::UTF8, 1, usize::MAX),
    ("L", "2.5.4.7", der::UTF8, 1, usize::MAX),
    ("STREET", "2.5.4.9", der::UTF8, 1, usize::MAX),
    ("O", "2.5.4.10", der::UTF8, 1, usize::MAX),
    ("OU", "2.5.4.11", der::UTF8, 1, usize::MAX),
    ("CN", "2.5.4.3", der::UTF8, 1, 64),
    ("MAIL", "1.2.840.113549.1.9.1", der::IA5, 1, usize::MAX),
    ("SN", "2.5.4.4", der::UTF8, 1, usize::MAX),
    ("GN", "2.5.4.42", der::UTF8, 1, usize::MAX),
    ("UID", "0.9.2342.19200300.100.1.1", der::UTF8, 1, usize::MAX),
    ("SERIALNUMBER", "2.5.4.5", der::PRINTABLE, 1, usize::MAX),
];

/// Other names of these arguments.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("commonName", "CN"),
    ("Email", "MAIL"),
    ("emailAddress", "MAIL"),
    ("stateOrProvinceName", "ST"),
    ("localityName", "L"),
    ("organizationName", "O"),
    ("givenName", "GN"),
    ("surname", "SN"),
    ("serialNumber", "SERIALNUMBER"),
];

/// The short names RFC 4514 has; everything else is written as its number.
const SHORT: [(&str, &str); 9] = [
    ("CN", "2.5.4.3"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("C", "2.5.4.6"),
    ("STREET", "2.5.4.9"),
    ("DC", DOMAIN),
    ("UID", "0.9.2342.19200300.100.1.1"),
];

const DOMAIN: &str = "0.9.2342.19200300.100.1.25";
const UNREADABLE: &str = "Failed parsing rfc4514 dirName string";

/// Tells whether an argument is a part of a subject, or another name of one.
pub fn is_part(name: &str) -> bool {
    PARTS.iter().any(|(part, ..)| *part == name)
        || OTHER_NAMES.iter().any(|(other, _)| *other == name)
}

/// The argument another name stands for: `CN` for `commonName`.
pub fn short(name: &str) -> Option<&'static str> {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, short)| *short)
}

fn attribute(number: &str, value: &str) -> Result<Vec<u8>> {
    let known = PARTS.iter().find(|(_, own, ..)| *own == number);
    let (tag, least, most) = match known {
        Some((_, _, tag, least, most)) => (*tag, *least, *most),
        None if number == DOMAIN => (der::IA5, 1, usize::MAX),
        None => (der::UTF8, 1, usize::MAX),
    };
    if value.len() < least || value.len() > most {
        let most = if most == usize::MAX { 64 } else { most };
        return Err(Error::failed(format!(
            "Attribute's length must be >= {least} and <= {most}, but it was {}",
            value.len()
        )));
    }
    let number = der::oid(number).ok_or_else(|| Error::failed(UNREADABLE))?;
    Ok(der::sequence(&[&number, &der::element(tag, value.as_bytes())]))
}

fn text(name: &str, value: &Value) -> Result<String> {
    match value {
        Value::Str(text) => Ok(text.to_string()),
        Value::Int(_) | Value::Float(_) => Ok(value.to_string()),
        _ => Err(Error::invalid(format!("The subject's part {name} has to be a text"))),
    }
}

/// A distinguished name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub der: Vec<u8>,
}

impl Name {
    fn of_parts(parts: &[Vec<u8>]) -> Self {
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| der::element(der::SET, part)).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Self { der: der::sequence(&parts) }
    }

    /// Reads the subject among the arguments: `subject` in one of its forms, or single parts.
    pub fn given(given: &Dict) -> Result<Self> {
        match given.get("subject") {
            None | Some(Value::Null) => Self::of_arguments(given),
            Some(subject) => Self::of_value(&subject),
        }
    }

    /// Reads a dictionary, a list of parts (first part first) or a text (last part first).
    pub fn of_value(value: &Value) -> Result<Self> {
        if let Value::Dict(parts) = value {
            return Self::of_arguments(parts);
        }
        if let Some(parts) = value.items_of_sequence() {
            let mut all = Vec::new();
            for part in parts {
                all.push(relative(&part.to_str())?);
            }
            return Ok(Self::of_parts(&all));
        }
        Self::parse(&value.to_str())
    }

    fn of_arguments(given: &Dict) -> Result<Self> {
        let mut all = Vec::new();
        for (name, number, ..) in PARTS {
            let others = OTHER_NAMES.iter().filter(|(_, own)| *own == name);
            let found = others.filter_map(|(other, _)| given.get(*other)).next();
            let Some(value) = found.or_else(|| given.get(name)).filter(|value| !value.is_null())
            else {
                continue;
            };
            all.push(attribute(number, &text(name, &value)?)?);
        }
        Ok(Self::of_parts(&all))
    }

    /// Reads `CN=x,O=y`.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::of_parts(&[]));
        }
        let mut all = Vec::new();
        for part in split(text, ',') {
            all.push(relative(&part)?);
        }
        all.reverse();
        Ok(Self::of_parts(&all))
    }

    /// Every attribute in its order: number and text.
    fn attributes(&self) -> Vec<Vec<(String, String)>> {
        let Some(all) = der::only(&self.der, der::SEQUENCE) else { return Vec::new() };
        all.items().map(attributes_of).collect()
    }

    /// `CN=x,O=y`
    pub fn shown(&self) -> String {
        let parts = self.attributes();
        let parts: Vec<String> = parts.iter().rev().map(|part| relative_shown(part)).collect();
        parts.join(",")
    }

    /// The parts that have a name, by it.
    pub fn to_dict(&self) -> Dict {
        let attributes: Vec<(String, String)> = self.attributes().into_iter().flatten().collect();
        let dict = Dict::new();
        for (name, number, ..) in PARTS {
            if let Some((_, value)) = attributes.iter().find(|(own, _)| own == number) {
                dict.insert(name, value.as_str());
            }
        }
        dict
    }

    pub fn common_name(&self) -> Option<String> {
        self.to_dict().get("CN").map(|name| name.to_str().to_string())
    }

    /// Eight digits that stand for the name: the first four bytes of its SHA-1, last one first.
    pub fn hash(&self) -> String {
        let digest = Sha1::digest(&self.der);
        let bytes: Vec<u8> = digest.iter().take(4).rev().copied().collect();
        super::colons(&bytes)
    }
}

fn attributes_of(set: Item) -> Vec<(String, String)> {
    let pair = |attribute: Item| {
        let mut items = attribute.items();
        Some((items.next()?.oid()?, items.next()?.text()))
    };
    set.items().filter_map(pair).collect()
}

/// Writes the attributes of one part: `CN=x`, or `CN=x+O=y`.
fn relative_shown(attributes: &[(String, String)]) -> String {
    let shown = attributes.iter().map(|(number, value)| {
        let short = SHORT.iter().find(|(_, own)| own == number);
        format!("{}={}", short.map_or(number.as_str(), |(short, _)| short), escaped(value))
    });
    shown.collect::<Vec<_>>().join("+")
}

/// Shows the content of a part, as a distribution point has it.
pub fn relative_of(set: Item) -> String {
    relative_shown(&attributes_of(set))
}

/// Reads one part; its attributes, one after the other.
pub fn relative(part: &str) -> Result<Vec<u8>> {
    if split(part, ',').len() > 1 {
        return Err(Error::invalid(
            "Specified string is not a Relative Distinguished Name, but a Distinguished Name.",
        ));
    }
    let unreadable = || Error::failed(UNREADABLE);
    let mut all = Vec::new();
    for attribute_text in split(part, '+') {
        let (name, value) = attribute_text.split_once('=').ok_or_else(unreadable)?;
        let name = name.trim();
        let short = SHORT.iter().find(|(short, _)| *short == name);
        let number = match short {
            Some((_, number)) => (*number).to_owned(),
            None if der::oid(name).is_some() => name.to_owned(),
            None => return Err(unreadable()),
        };
        let value = unescaped(value).ok_or_else(unreadable)?;
        all.push(attribute(&number, &value).map_err(|_| unreadable())?);
    }
    all.sort();
    Ok(all.concat())
}

/// Splits at a sign that no backslash protects.
fn split(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut protected = false;
    for letter in text.chars() {
        if letter == at && !protected {
            parts.push(String::new());
            continue;
        }
        protected = letter == '\\' && !protected;
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    let last = value.chars().count().saturating_sub(1);
    for (index, letter) in value.chars().enumerate() {
        let edge = index == 0 || index == last;
        match letter {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => out.extend(['\\', letter]),
            '#' if index == 0 => out.push_str("\\#"),
            ' ' if edge => out.push_str("\\ "),
            '\0' => out.push_str("\\00"),
            _ => out.push(letter),
        }
    }
    out
}

/// Undoes [`escaped`]; `None` if a sign that has to be protected is not.
fn unescaped(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut letters = value.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let next = letters.next()?;
                let low = letters.peek().and_then(|low| low.to_digit(16));
                match (next.to_digit(16), low) {
                    (Some(high), Some(low)) => {
                        letters.next();
                        bytes.push((high * 16 + low) as u8);
                    }
                    _ => bytes.extend(next.to_string().bytes()),
                }
            }
            '"' | ';' | '<' | '>' | '\0' => return None,
            _ => bytes.extend(letter.to_string().bytes()),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        assert_eq!(Name::parse(text).unwrap().shown(), text);
    }

    #[test]
    fn texts() {
        check("");
        check("CN=a,O=b");
        check("CN=a\\,b,O=c");
        check("CN=a+O=b");
        check("UID=x,DC=a,1.2.3=foo");
        for junk in ["foo=b", "CN", "C=USA", "MAIL=x", "CN=a<b"] {
            assert!(Name::parse(junk).is_err(), "{junk}");
        }
    }

    #[test]
    fn arguments() {
        let given = Dict::new();
        given.insert("CN", "x");
        given.insert("O", "y");
        given.insert("Email", "a@b.c");
        let name = Name::given(&given).unwrap();
        assert_eq!(name.shown(), "1.2.840.113549.1.9.1=a@b.c,CN=x,O=y");
        assert_eq!(name.to_dict().get("MAIL"), Some("a@b.c".into()));
        given.insert("subject", Value::list(["CN=a", "O=b"]));
        assert_eq!(Name::given(&given).unwrap().shown(), "O=b,CN=a");
        given.insert("subject", Value::list(["CN=a,O=b"]));
        assert!(Name::given(&given).is_err());
    }

    #[test]
    fn hashes() {
        assert_eq!(Name::parse("").unwrap().hash(), "D6:DC:44:F9");
        assert_eq!(escaped("#x "), "\\#x\\ ");
    }
}
