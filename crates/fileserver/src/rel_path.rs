//! A path that cannot leave the folder it is joined to.

use std::path::{Path, PathBuf};

/// A relative path without `..`, built from what peers and users send: `a/b`, never empty.
///
/// The only way from such a text to a place on disk is [`RelPath::below`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RelPath(String);

impl RelPath {
    /// Reads a path; `None` if it is absolute, empty, holds NUL, or steps upwards anywhere.
    /// Repeated slashes and `.` are dropped.
    pub fn new(text: &str) -> Option<Self> {
        if text.starts_with('/') || text.contains('\0') {
            return None;
        }
        let mut steps = Vec::new();
        for step in text.split('/') {
            match step {
                "" | "." => {}
                ".." => return None,
                step => steps.push(step),
            }
        }
        (!steps.is_empty()).then(|| Self(steps.join("/")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Joins the path to a folder.
    pub fn below(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out() {
        for hostile in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "a/..",
            "./../x",
            "a/./../b",
            "//etc",
            "a\0b",
            ".",
            "./",
            "..//x",
        ] {
            assert_eq!(RelPath::new(hostile), None, "{hostile:?}");
        }
        for (given, clean) in [
            ("a", "a"),
            ("a//b/./c/", "a/b/c"),
            ("..a/b..", "..a/b.."),
            ("...", "..."),
            ("a\\..\\b", "a\\..\\b"),
        ] {
            assert_eq!(RelPath::new(given).expect("fine").as_str(), clean);
        }
    }
}
