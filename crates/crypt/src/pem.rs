//! Public keys as text: the form they have on the wire, and their fingerprints.
//!
//! Nothing here parses a key; these rules apply to the text alone, also to a text that is no key at all.

use crate::algo::{Hash, hex};

/// Returns the form in which a key travels and is compared: outer white space stripped, `\n` line ends, none at the end.
pub fn normalise(pem: &str) -> String {
    // Python's idea of white space and of line ends, which is wider than Rust's `lines`.
    let separator = |c: char| matches!(c, '\x1c'..='\x1f');
    let text = pem.trim_matches(|c: char| c.is_whitespace() || separator(c)).replace("\r\n", "\n");
    let line_end = |c| {
        matches!(c, '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    text.replace(line_end, "\n")
}

/// Returns the fingerprint of the body of a PEM file: `master_finger`, `key.finger`, and `salt-key -f` up to 3007.
///
/// Blank lines and the first and last line do not count, nor does the kind of line end.
pub fn fingerprint(pem: &[u8], hash: Hash) -> String {
    let lines: Vec<_> = pem
        .split_inclusive(|&b| b == b'\n')
        .filter(|line| !line.iter().all(|b| b.is_ascii_whitespace() || *b == 0x0b))
        .collect();
    let body = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default().concat();
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.iter().peekable();
    while let Some(&b) = rest.next() {
        if !(b == b'\r' && rest.peek() == Some(&&b'\n')) {
            bytes.push(b);
        }
    }
    fingerprint_of_text(&bytes, hash)
}

/// Returns the fingerprint of the whole text, header and all: what `salt-key -f` of 3008 prints.
///
/// Genuine 3008 prints this there (and a different one everywhere else), so a fingerprint copied from `salt-key` into
/// `master_finger` does not fit.
pub fn fingerprint_of_text(text: &[u8], hash: Hash) -> String {
    hex(&hash.digest(text), ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        for (text, expected) in [
            ("a\nb\n", "a\nb"),
            ("  \r\na\r\nb\rc\r\n\r\n", "a\nb\nc"),
            ("a\n\nb", "a\n\nb"),
            ("a \x0bb\u{2028}c\x1f", "a \nb\nc"),
            ("", ""),
            (" \n", ""),
        ] {
            assert_eq!(normalise(text), expected, "{text:?}");
        }
    }

    #[test]
    fn fingerprint_ignores_what_it_should() {
        let plain = fingerprint(b"-----BEGIN-----\nAA\nBB\n-----END-----\n", Hash::Sha256);
        for same in [
            &b"-----BEGIN-----\r\nAA\r\nBB\r\n-----END-----"[..],
            b"\n\n-----X-----\nAA\n \t\nBB\n-----Y-----\n\n",
        ] {
            assert_eq!(fingerprint(same, Hash::Sha256), plain);
        }
        assert_ne!(fingerprint(b"x\nAA\nBC\nx", Hash::Sha256), plain);
        assert_eq!(plain.len(), 32 * 3 - 1);
        let empty = fingerprint_of_text(b"", Hash::Md5);
        assert_eq!(empty, "d4:1d:8c:d9:8f:00:b2:04:e9:80:09:98:ec:f8:42:7e");
        for short in [&b""[..], b"x", b"x\n", b"x\ny\n"] {
            assert_eq!(fingerprint(short, Hash::Md5), empty, "{short:?}");
        }
    }
}
