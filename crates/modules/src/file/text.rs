//! Lines and kinds of content, as Python sees them.
//!
//! Three ways to cut a text into lines are needed, because Salt's functions use three: at `\n`
//! only (reading a file in binary), at `\n`, `\r` and `\r\n` (byte strings), and at every line
//! boundary Unicode knows (texts). Lines keep their ends unless said otherwise.

use std::{borrow::Cow, path::Path};

use halite_spec::{Cx, Result};

/// Cuts after each `\n`.
pub fn lines_at_newline(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

/// Cuts after each `\n`, `\r` or `\r\n`: Python's `bytes.splitlines(True)`.
pub fn byte_lines(content: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < content.len() {
        let end = match content[at] {
            b'\r' if content.get(at + 1) == Some(&b'\n') => at + 2,
            b'\n' | b'\r' => at + 1,
            _ => {
                at += 1;
                continue;
            }
        };
        lines.push(&content[start..end]);
        start = end;
        at = end;
    }
    if start < content.len() {
        lines.push(&content[start..]);
    }
    lines
}

fn is_boundary(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Python's `str.splitlines(True)`.
pub fn text_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !is_boundary(c) {
            continue;
        }
        let mut end = at + c.len_utf8();
        if c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        lines.push(&text[start..end]);
        start = end;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// Python's `str.splitlines()`: without the ends.
pub fn bare_lines(text: &str) -> Vec<&str> {
    text_lines(text)
        .into_iter()
        .map(|line| {
            line.strip_suffix("\r\n").unwrap_or_else(|| match line.chars().next_back() {
                Some(last) if is_boundary(last) => &line[..line.len() - last.len_utf8()],
                _ => line,
            })
        })
        .collect()
}

/// Bytes as text: UTF-8 if they are that, Latin-1 otherwise. No byte is lost.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect()),
    }
}

/// Bytes that have to be UTF-8, refused in Python's words.
pub fn utf8(bytes: Vec<u8>) -> Result<String> {
    Ok(halite_spec::utf8(bytes)?)
}

/// Reads a file whose text is changed and written again. What is not UTF-8 is refused: it would not
/// survive the way through a text.
pub fn read_to_edit(cx: &Cx, path: &Path) -> Result<String> {
    utf8(cx.host.read(path)?)
}

/// As [`read_to_edit`]; `None` when there is no such file.
pub fn read_to_edit_if_there(cx: &Cx, path: &Path) -> Result<Option<String>> {
    match cx.host.read(path) {
        Ok(content) => utf8(content).map(Some),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Tells whether a piece of content is not text: it has a NUL, or too many odd bytes.
pub fn is_binary(block: &[u8]) -> bool {
    if block.is_empty() {
        return false;
    }
    if block.contains(&0) {
        return true;
    }
    let high_is_text = match std::str::from_utf8(block) {
        Ok(_) => true,
        // Cut off in the middle of a character.
        Err(error) => error.error_len().is_none(),
    };
    let odd = block
        .iter()
        .filter(|&&byte| match byte {
            32..=126 | b'\n' | b'\r' | b'\t' | 0x0c | 0x08 => false,
            128..=254 => !high_is_text,
            _ => true,
        })
        .count();
    odd as f64 / block.len() as f64 > 0.30
}

/// Why a text cannot be written in an encoding.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EncodeError {
    #[error("unknown encoding: {0}")]
    Unknown(String),
    #[error(
        "'{codec}' codec can't encode character '{character}' in position {position}: \
         ordinal not in range({limit})"
    )]
    Range { codec: &'static str, character: String, position: usize, limit: u32 },
}

/// Encodes a text; `errors` is Python's handler: `strict`, `ignore`, `replace` …
pub fn encode(text: &str, encoding: &str, errors: &str) -> Result<Vec<u8>, EncodeError> {
    let name = encoding.to_lowercase().replace(['_', ' '], "-");
    let limited = |codec: &'static str, limit: u32| -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::with_capacity(text.len());
        for (position, c) in text.chars().enumerate() {
            let code = u32::from(c);
            match u8::try_from(code) {
                Ok(byte) if code < limit => out.push(byte),
                _ => match errors {
                    "ignore" => {}
                    "replace" => out.push(b'?'),
                    "xmlcharrefreplace" => out.extend(format!("&#{code};").bytes()),
                    "backslashreplace" => out.extend(escaped(code).bytes()),
                    _ => {
                        let character = escaped(code);
                        return Err(EncodeError::Range { codec, character, position, limit });
                    }
                },
            }
        }
        Ok(out)
    };
    let wide = |big: bool, mark: bool| {
        let mark = mark.then_some(0xfeff_u16);
        mark.into_iter()
            .chain(text.encode_utf16())
            .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect::<Vec<u8>>()
    };
    let widest = |big: bool, mark: bool| {
        let mark = mark.then_some('\u{feff}');
        mark.into_iter()
            .chain(text.chars())
            .map(u32::from)
            .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect::<Vec<u8>>()
    };
    Ok(match name.as_str() {
        "utf-8" | "utf8" | "u8" | "cp65001" => text.as_bytes().to_vec(),
        "utf-8-sig" | "utf8-sig" => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        "ascii" | "us-ascii" | "646" => limited("ascii", 128)?,
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "8859" | "l1" | "cp819" => {
            limited("latin-1", 256)?
        }
        "utf-16" | "utf16" | "u16" => wide(false, true),
        "utf-16-le" | "utf-16le" | "utf16le" => wide(false, false),
        "utf-16-be" | "utf-16be" | "utf16be" => wide(true, false),
        "utf-32" | "utf32" | "u32" => widest(false, true),
        "utf-32-le" | "utf-32le" => widest(false, false),
        "utf-32-be" | "utf-32be" => widest(true, false),
        _ => return Err(EncodeError::Unknown(encoding.to_owned())),
    })
}

fn escaped(code: u32) -> String {
    match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}

/// Decodes content of a named encoding; `None` if it is not in that encoding or nobody knows it.
pub fn decode_as(content: &[u8], encoding: &str) -> Option<String> {
    let name = encoding.to_lowercase().replace(['_', ' '], "-");
    let wide = |bytes: &[u8], big: bool| {
        if !bytes.len().is_multiple_of(2) {
            return None;
        }
        let units = bytes.chunks_exact(2).map(|pair| {
            let pair = [pair[0], pair[1]];
            if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        });
        char::decode_utf16(units).collect::<Result<String, _>>().ok()
    };
    let widest = |bytes: &[u8], big: bool| {
        let (units, rest) = bytes.as_chunks::<4>();
        let unit = |unit: &[u8; 4]| match big {
            true => u32::from_be_bytes(*unit),
            false => u32::from_le_bytes(*unit),
        };
        let text = units.iter().map(|bytes| char::from_u32(unit(bytes))).collect();
        if rest.is_empty() { text } else { None }
    };
    match name.as_str() {
        "utf-8" | "utf8" | "u8" => String::from_utf8(content.to_vec()).ok(),
        "utf-8-sig" | "utf8-sig" => {
            let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
            String::from_utf8(content.to_vec()).ok()
        }
        "ascii" | "us-ascii" => {
            content.is_ascii().then(|| String::from_utf8_lossy(content).into_owned())
        }
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => {
            Some(content.iter().map(|&byte| char::from(byte)).collect())
        }
        "utf-16" | "utf16" => match content {
            [0xfe, 0xff, rest @ ..] => wide(rest, true),
            [0xff, 0xfe, rest @ ..] => wide(rest, false),
            rest => wide(rest, false),
        },
        "utf-16-le" | "utf-16le" => wide(content, false),
        "utf-16-be" | "utf-16be" => wide(content, true),
        "utf-32" | "utf32" | "u32" => match content {
            [0, 0, 0xfe, 0xff, rest @ ..] => widest(rest, true),
            [0xff, 0xfe, 0, 0, rest @ ..] => widest(rest, false),
            rest => widest(rest, false),
        },
        "utf-32-le" | "utf-32le" => widest(content, false),
        "utf-32-be" | "utf-32be" => widest(content, true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_to_cut() {
        assert_eq!(lines_at_newline(b"a\r\nb\rc"), [&b"a\r\n"[..], b"b\rc"]);
        assert_eq!(byte_lines(b"a\r\nb\rc\n\nd"), [&b"a\r\n"[..], b"b\r", b"c\n", b"\n", b"d"]);
        assert_eq!(text_lines("a\r\nb\x0cc\u{2028}d\n"), ["a\r\n", "b\x0c", "c\u{2028}", "d\n"]);
        assert_eq!(bare_lines("a\r\nb\u{85}c"), ["a", "b", "c"]);
        assert!(byte_lines(b"").is_empty());
    }

    #[test]
    fn what_is_not_utf8_is_refused() {
        let told = |bytes: &[u8]| utf8(bytes.to_vec()).map_err(|error| error.to_string());
        assert_eq!(told("gr\u{fc}n".as_bytes()), Ok("gr\u{fc}n".to_owned()));
        let check = |bytes: &[u8], expected: &str| {
            let expected = format!("'utf-8' codec can't decode byte {expected}");
            assert_eq!(told(bytes), Err(expected));
        };
        check(b"gr\xfcn", "0xfc in position 2: invalid start byte");
        check(b"\xe9tat", "0xe9 in position 0: invalid continuation byte");
        check(b"caf\xe9", "0xe9 in position 3: unexpected end of data");
    }

    #[test]
    fn binary_content() {
        assert!(!is_binary(b""));
        assert!(!is_binary("grün\n".as_bytes()));
        assert!(is_binary(b"a\0b"));
        assert!(is_binary(b"\xff\xfe\xfd\xfcab"));
        assert!(!is_binary(b"abc\xc3"), "cut off in a character");
    }

    #[test]
    fn encodings() {
        assert_eq!(encode("é", "latin-1", "strict").unwrap(), b"\xe9");
        assert_eq!(encode("aé", "utf-16-le", "strict").unwrap(), b"a\0\xe9\0");
        assert_eq!(encode("é€", "ascii", "replace").unwrap(), b"??");
        assert_eq!(
            encode("a€", "latin-1", "strict").unwrap_err().to_string(),
            "'latin-1' codec can't encode character '\\u20ac' in position 1: \
             ordinal not in range(256)"
        );
        assert_eq!(decode_as(b"\xff\xfea\0", "utf-16").unwrap(), "a");
        for name in ["utf-32", "utf-32-be", "UTF_32_LE"] {
            let content = encode("aé", name, "strict").unwrap();
            assert_eq!(decode_as(&content, name).unwrap(), "aé");
            assert_eq!(decode_as(content.get(1..).unwrap(), name), None);
        }
    }
}
