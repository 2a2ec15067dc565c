//! Python's regular expressions on the bytes of files.
//!
//! Salt edits files as bytes. [`Re::bytes`] therefore takes the pattern's UTF-8 bytes and the
//! file's bytes each as one character (Latin-1), with ASCII-only classes: exactly what Python's
//! byte patterns do, and no byte of the file is lost. [`Re::new`] is for texts.

use std::{borrow::Cow, sync::Arc};

pub use halite_pyregex::{Error, escape};
use halite_pyregex::{Flags, PyRegex};

/// Python's flag values, as users give them in numbers.
pub const IGNORECASE: u32 = 2;
pub const MULTILINE: u32 = 8;
pub const DOTALL: u32 = 16;
pub const UNICODE: u32 = 32;
pub const VERBOSE: u32 = 64;
pub const ASCII: u32 = 256;

/// A compiled pattern.
#[derive(Clone)]
pub struct Re(Arc<PyRegex>);

/// A text with bytes for characters.
fn latin(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.is_ascii()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect())
}

fn from_latin(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

impl Re {
    /// Compiles a pattern for texts.
    pub fn new(pattern: &str, flags: u32) -> Result<Self, Error> {
        PyRegex::cached(pattern, Flags::from_bits(flags)).map(Self)
    }

    /// Compiles a pattern for the bytes of a file, given to the functions named `…_bytes`.
    pub fn bytes(pattern: &str, flags: u32) -> Result<Self, Error> {
        Self::new(&latin(pattern.as_bytes()), (flags | ASCII) & !UNICODE)
    }

    /// `re.search`
    pub fn found_in(&self, text: &str) -> Result<bool, Error> {
        self.0.is_match(text)
    }

    /// `re.match`: at the start only.
    pub fn starts(&self, text: &str) -> Result<bool, Error> {
        Ok(self.0.match_start(text)?.is_some())
    }

    pub fn found_in_bytes(&self, bytes: &[u8]) -> Result<bool, Error> {
        self.found_in(&latin(bytes))
    }

    /// Returns the groups of a match at the start.
    pub fn groups<'t>(&self, text: &'t str) -> Result<Option<Vec<Option<&'t str>>>, Error> {
        Ok(self.0.match_start(text)?.map(|found| found.groups()))
    }

    /// `re.split`
    pub fn split<'t>(&self, text: &'t str) -> Result<Vec<Option<&'t str>>, Error> {
        self.0.split(text, 0)
    }

    /// `re.subn`: replaces the first `count` matches (all if 0); returns how many there were.
    pub fn replace(
        &self,
        text: &str,
        template: &str,
        count: usize,
    ) -> Result<(String, usize), Error> {
        self.0.sub(&self.0.template(template)?, text, count)
    }

    /// As [`Re::replace`], for bytes; the template's bytes too.
    pub fn replace_bytes(
        &self,
        bytes: &[u8],
        template: &str,
        count: usize,
    ) -> Result<(Vec<u8>, usize), Error> {
        let (text, done) = self.replace(&latin(bytes), &latin(template.as_bytes()), count)?;
        Ok((from_latin(&text), done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(pattern: &str, flags: u32, template: &str, text: &str) -> String {
        let re = Re::bytes(pattern, flags).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let (out, _) = re.replace_bytes(text.as_bytes(), template, 0).expect("replaced");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn replaces_as_python_does() {
        assert_eq!(sub("x*", 0, "-", "abxd"), "-a-b--d-");
        assert_eq!(sub("^a$", MULTILINE, "b", "a\naa\na"), "b\naa\nb");
        assert_eq!(sub("a$", 0, "b", "a\na\n"), "a\nb\n");
        assert_eq!(sub(r"(\w+)=(\w+)", 0, r"\2=\1", "k=v"), "v=k");
        assert_eq!(sub(r"(?P<n>a+)", 0, r"<\g<n>>\g<0>", "aa"), "<aa>aa");
        assert_eq!(sub(r"é", 0, "e", "né"), "ne");
        assert_eq!(sub(r"^.{3}$", 0, "e", "né"), "e", "bytes, not characters");
        assert_eq!(sub(r"[[:space:]]", 0, "_", "a:]b"), "a_b");
        assert_eq!(sub(r"a{,2}b", 0, "_", "aab"), "_");
        assert_eq!(sub(r"{{ x }}", 0, "_", "{{ x }}"), "_");
        assert_eq!(sub(r"^#?\s*(Port) .*", MULTILINE, r"\1 22", "# Port 1\n"), "Port 22\n");
        assert_eq!(sub(r"\Ax|y\Z", 0, "_", "xy"), "__");
        assert_eq!(sub(r"(?i)ABC", 0, "_", "abc"), "_");
        assert_eq!(sub(r"(?x) a b # c", 0, "_", "ab"), "_");
        assert_eq!(sub(r"\bfoo\b", 0, "_", "foo foobar"), "_ foobar");
        assert_eq!(sub(r"[^\w-]", 0, "_", "a-b c"), "a-b_c");
        assert_eq!(sub(r"[\w.-]+@[a&&b]", 0, "_", "x.y-z@&"), "_");
        assert_eq!(sub("a.b", DOTALL, "_", "a\nb"), "_");
        assert_eq!(sub("a.b", 0, "_", "a\nb"), "a\nb");
        assert_eq!(sub(r"(a)\1", 0, r"\\1", "aa"), r"\1");
        assert_eq!(sub(r"\.\/\-\'", 0, "_", "./-'"), "_");
    }

    #[test]
    fn count_and_anchors() {
        let re = Re::bytes("a", 0).unwrap();
        assert_eq!(re.replace_bytes(b"aaa", "b", 2).unwrap(), (b"bba".to_vec(), 2));
        assert!(Re::new("b", 0).unwrap().starts("ab").is_ok_and(|found| !found));
        assert!(Re::new("(", 0).is_err());
        let re = Re::new(&escape("a.b*[c]-{d} #&~"), 0).unwrap();
        assert!(re.found_in("a.b*[c]-{d} #&~").unwrap());
    }
}
