//! DER, the binary form of keys and certificates, as far as this module writes and reads it.
//!
//! Writing is a set of functions that each return a finished element; a sequence is handed the
//! bytes of its parts. Reading goes through [`Items`], which never copies and fails on anything
//! that is cut short: what is read comes from other people's files.

/// Tags of the elements used here.
pub const BOOLEAN: u8 = 0x01;
pub const INTEGER: u8 = 0x02;
pub const BITS: u8 = 0x03;
pub const OCTETS: u8 = 0x04;
pub const OID: u8 = 0x06;
pub const ENUMERATED: u8 = 0x0a;
pub const UTF8: u8 = 0x0c;
pub const PRINTABLE: u8 = 0x13;
pub const IA5: u8 = 0x16;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const BMP: u8 = 0x1e;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;

/// `[n]` around other elements.
pub fn context(number: u8) -> u8 {
    0xa0 | number
}

/// `[n]` in place of a plain element's tag.
pub fn context_plain(number: u8) -> u8 {
    0x80 | number
}

/// Writes an element.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        short @ 0..=127 => out.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let bytes: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
            out.push(0x80 | bytes.len() as u8);
            out.extend(bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A whole number that is not negative, of any size.
pub fn integer(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let digits = bytes.get(first..).unwrap_or_default();
    let mut content = Vec::with_capacity(digits.len() + 1);
    if digits.first().is_none_or(|top| top & 0x80 != 0) {
        content.push(0);
    }
    content.extend_from_slice(digits);
    element(INTEGER, &content)
}

pub fn small(number: u64) -> Vec<u8> {
    integer(&number.to_be_bytes())
}

/// Writes a dotted number; `None` if it is none.
pub fn oid(dotted: &str) -> Option<Vec<u8>> {
    Some(element(OID, &oid_content(dotted)?))
}

/// The OID of a name of ours, which is well formed.
pub fn known(dotted: &str) -> Vec<u8> {
    oid(dotted).expect("the tables of this module hold well-formed numbers")
}

pub fn oid_content(dotted: &str) -> Option<Vec<u8>> {
    let mut arcs = dotted.split('.').map(|arc| arc.parse::<u64>().ok());
    let (first, second) = (arcs.next()??, arcs.next()??);
    if first > 2 || (first < 2 && second > 39) {
        return None;
    }
    let mut out = Vec::new();
    push_arc(&mut out, (first * 40).checked_add(second)?);
    for arc in arcs {
        push_arc(&mut out, arc?);
    }
    Some(out)
}

fn push_arc(out: &mut Vec<u8>, mut arc: u64) {
    let mut digits = vec![(arc & 0x7f) as u8];
    arc >>= 7;
    while arc > 0 {
        digits.push((arc & 0x7f) as u8 | 0x80);
        arc >>= 7;
    }
    digits.reverse();
    out.extend(digits);
}

/// Reads an OID's content as a dotted number.
pub fn dotted(content: &[u8]) -> Option<String> {
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc: u64 = 0;
    let mut open = false;
    for byte in content {
        arc = arc.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        open = byte & 0x80 != 0;
        if !open {
            arcs.push(std::mem::take(&mut arc));
        }
    }
    if open {
        return None;
    }
    let (first, rest) = arcs.split_first()?;
    let top = (first / 40).min(2);
    let mut text = format!("{top}.{}", first - top * 40);
    for arc in rest {
        text.push_str(&format!(".{arc}"));
    }
    Some(text)
}

/// A string of bits, numbered from the left; none at the end that are not set.
pub fn flags(set: &[bool]) -> Vec<u8> {
    let Some(last) = set.iter().rposition(|bit| *bit) else { return element(BITS, &[0]) };
    let mut content = vec![0_u8; last / 8 + 2];
    content[0] = 7 - (last % 8) as u8;
    for (index, _) in set.iter().enumerate().filter(|(_, bit)| **bit) {
        content[1 + index / 8] |= 0x80 >> (index % 8);
    }
    element(BITS, &content)
}

/// Tells whether a bit is set in a string of bits.
pub fn flag(content: &[u8], index: usize) -> bool {
    content.get(1 + index / 8).is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0)
}

/// One element as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// With tag and length.
    pub whole: &'a [u8],
}

impl<'a> Item<'a> {
    pub fn items(self) -> Items<'a> {
        Items { rest: self.content }
    }

    pub fn oid(self) -> Option<String> {
        (self.tag == OID).then(|| dotted(self.content))?
    }

    /// The bytes of a whole number without leading zeros.
    pub fn number(self) -> &'a [u8] {
        let first = self.content.iter().position(|byte| *byte != 0);
        first.and_then(|first| self.content.get(first..)).unwrap_or_default()
    }

    pub fn small(self) -> Option<i64> {
        let digits = self.number();
        let fits = digits.len() < 8;
        fits.then(|| digits.iter().fold(0, |all, byte| all << 8 | i64::from(*byte)))
    }

    /// A text of any of the kinds certificates use.
    pub fn text(self) -> String {
        if self.tag == BMP {
            let units: Vec<u16> = self
                .content
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |all, byte| all << 8 | u16::from(*byte)))
                .collect();
            return String::from_utf16_lossy(&units);
        }
        String::from_utf8_lossy(self.content).into_owned()
    }
}

/// The elements of some bytes, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next one, if it has this tag.
    pub fn tagged(&mut self, tag: u8) -> Option<Item<'a>> {
        let mut ahead = *self;
        let item = ahead.next().filter(|item| item.tag == tag)?;
        *self = ahead;
        Some(item)
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    /// Ends at the first element that is not whole.
    fn next(&mut self) -> Option<Item<'a>> {
        let (&tag, after) = self.rest.split_first()?;
        let (&first, mut after) = after.split_first()?;
        let length = if first & 0x80 == 0 {
            usize::from(first)
        } else {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 {
                return None;
            }
            let digits = after.get(..count)?;
            after = after.get(count..)?;
            digits.iter().fold(0, |all, byte| all << 8 | usize::from(*byte))
        };
        let content = after.get(..length)?;
        let rest = after.get(length..)?;
        let whole = self.rest.get(..self.rest.len() - rest.len())?;
        self.rest = rest;
        Some(Item { tag, content, whole })
    }
}

/// The one element that these bytes are.
pub fn only(bytes: &[u8], tag: u8) -> Option<Item<'_>> {
    let mut items = Items::of(bytes);
    items.tagged(tag).filter(|_| items.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(small(0), [2, 1, 0]);
        assert_eq!(small(127), [2, 1, 127]);
        assert_eq!(small(128), [2, 2, 0, 128]);
        assert_eq!(only(&small(70_000), INTEGER).unwrap().small(), Some(70_000));
    }

    #[test]
    fn object_identifiers() {
        for text in ["1.2.840.113549.1.1.11", "2.5.4.3", "0.9.2342.19200300.100.1.1", "2.999.3"] {
            let written = oid(text).unwrap();
            assert_eq!(only(&written, OID).unwrap().oid().as_deref(), Some(text));
        }
        for junk in ["", "1", "a.b", "3.1", "1.40", "1.2.x", "1..2"] {
            assert_eq!(oid(junk), None, "{junk}");
        }
        assert_eq!(dotted(&[0x2a, 0x86]), None);
    }

    #[test]
    fn bits() {
        assert_eq!(flags(&[true, false, true]), [3, 2, 5, 0xa0]);
        assert_eq!(flags(&[false; 9]), [3, 1, 0]);
        let nine = [false, false, false, false, false, false, false, false, true];
        assert_eq!(flags(&nine), [3, 3, 7, 0, 0x80]);
        assert!(flag(&[7, 0, 0x80], 8) && !flag(&[7, 0, 0x80], 0) && !flag(&[0], 3));
    }

    #[test]
    fn long_and_broken() {
        let long = element(OCTETS, &[7; 300]);
        assert_eq!(long[..4], [4, 0x82, 1, 44]);
        assert_eq!(only(&long, OCTETS).unwrap().content.len(), 300);
        assert_eq!(only(&long[..200], OCTETS), None);
        assert_eq!(only(&[0x30, 0x80, 0, 0], SEQUENCE), None);
        assert_eq!(only(&[0x30], SEQUENCE), None);
        assert_eq!(only(&[0x30, 0x85, 1, 1, 1, 1, 1], SEQUENCE), None);
    }
}
