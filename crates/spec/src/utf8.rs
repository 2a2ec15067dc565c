//! Bytes that have to be text.
//!
//! Salt reads templates, SLS files and much else as UTF-8 and ends with Python's words where they are
//! not. To replace the bytes that do not fit, as is kind elsewhere, would put a wrong name, path or
//! password on a machine without a word.

use halite_value::Place;

use crate::Error;

/// Bytes that are not UTF-8, in Python's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: {reason}")]
pub struct NotUtf8 {
    byte: u8,
    at: usize,
    reason: &'static str,
    /// The line, from 1, of the first such byte.
    pub line: u32,
}

impl NotUtf8 {
    /// The error of a file, with its line.
    pub fn in_file(&self, path: &str) -> Error {
        Error::Source {
            message: self.to_string(),
            class: Some("UnicodeDecodeError".into()),
            place: Some(Place::new(path, self.line, 0)),
            excerpt: None,
            help: None,
        }
    }
}

impl From<NotUtf8> for Error {
    fn from(error: NotUtf8) -> Self {
        Self::raised("UnicodeDecodeError", error.to_string())
    }
}

/// Returns bytes as the text they have to be.
pub fn utf8(bytes: Vec<u8>) -> Result<String, NotUtf8> {
    String::from_utf8(bytes).map_err(|error| {
        let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        let byte = bytes.get(at).copied().unwrap_or_default();
        let reason = match error.utf8_error().error_len() {
            None => "unexpected end of data",
            Some(_) if (0xc2..=0xf4).contains(&byte) => "invalid continuation byte",
            Some(_) => "invalid start byte",
        };
        let before = bytes.iter().take(at).filter(|byte| **byte == b'\n').count();
        NotUtf8 { byte, at, reason, line: u32::try_from(before + 1).unwrap_or(u32::MAX) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where() {
        assert_eq!(utf8(b"caf\xc3\xa9".to_vec()).unwrap(), "caf\u{e9}");
        let error = utf8(b"a\nb\ncaf\xe9\n".to_vec()).unwrap_err();
        assert_eq!(error.line, 3);
        assert_eq!(
            error.to_string(),
            "'utf-8' codec can't decode byte 0xe9 in position 7: invalid continuation byte"
        );
    }
}
