//! Which line of the output came from which line of which template.
//!
//! YAML reads the output and complains about its lines; people want to hear about theirs. The map
//! holds one entry per change of direction, not one per line: text that was copied line by line is
//! one entry.

use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The output line that it starts with, from 1.
    out: u32,
    /// Which of the map's files.
    file: u16,
    line: u32,
    /// Following output lines come from following source lines; otherwise all from the same.
    copied: bool,
}

/// Counts the line breaks of a text.
pub(crate) fn line_breaks(text: &str) -> u32 {
    let text = text.as_bytes();
    // Most of what templates print is shorter than what it takes to start a search.
    let breaks = if text.len() < 32 {
        text.iter().filter(|byte| **byte == b'\n').count()
    } else {
        memchr::memchr_iter(b'\n', text).count()
    };
    u32::try_from(breaks).unwrap_or(0)
}

/// A map from output lines to template lines.
#[derive(Clone, Debug, Default)]
pub struct LineMap {
    entries: Vec<Entry>,
    files: Vec<Option<Arc<str>>>,
    /// Line breaks written so far.
    breaks: u32,
    /// Something stands on the current line already.
    started: bool,
    /// A line of the rendered file that was taken out before rendering.
    removed: Option<u32>,
}

impl LineMap {
    /// Returns the template file (`None`: the one that was rendered) and line that an output line,
    /// counted from 1, came from.
    pub fn source_of(&self, line: u32) -> Option<(Option<&Arc<str>>, u32)> {
        let at = self.entries.partition_point(|entry| entry.out <= line).checked_sub(1)?;
        let entry = &self.entries[at];
        let offset = if entry.copied { line - entry.out } else { 0 };
        let line = entry.line + offset;
        let file = self.files.get(usize::from(entry.file))?.as_ref();
        let shift = file.is_none() && self.removed.is_some_and(|removed| line >= removed);
        Some((file, line + u32::from(shift)))
    }

    pub(crate) fn line_was_removed(&mut self, line: u32) {
        self.removed = Some(line);
    }

    /// Notes that text was written which stands in the template like this, from `line` on.
    pub(crate) fn copied(&mut self, text: &str, breaks: u32, file: Option<&Arc<str>>, line: u32) {
        self.add(text, breaks, file, line, true);
    }

    /// Notes that text was written which an expression on `line` made.
    pub(crate) fn made(&mut self, text: &str, file: Option<&Arc<str>>, line: u32) {
        self.add(text, line_breaks(text), file, line, false);
    }

    fn add(&mut self, text: &str, breaks: u32, file: Option<&Arc<str>>, line: u32, copied: bool) {
        if text.is_empty() {
            return;
        }
        if !self.started {
            self.push(self.breaks + 1, file, line, copied);
        } else if breaks > 0 {
            // The line that follows is ours, the current one is not.
            self.push(self.breaks + 2, file, line + u32::from(copied), copied);
        }
        self.breaks += breaks;
        self.started = !text.ends_with('\n');
    }

    fn push(&mut self, out: u32, file: Option<&Arc<str>>, line: u32, copied: bool) {
        let file = self.number_of(file);
        if let Some(last) = self.entries.last_mut() {
            if last.out == out {
                *last = Entry { out, file, line, copied };
                return;
            }
            let continues =
                if last.copied { last.line + (out - last.out) == line } else { last.line == line };
            if last.file == file && continues && last.copied == copied {
                return;
            }
        }
        self.entries.push(Entry { out, file, line, copied });
    }

    fn number_of(&mut self, file: Option<&Arc<str>>) -> u16 {
        let same = |own: &Option<Arc<str>>| match (own, file) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        let known = self.files.iter().rposition(same);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.cloned());
            self.files.len() - 1
        });
        // A rendering of more files than that is told about the last of them.
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    /// Returns how much was noted: as much room is made next time.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self { entries: Vec::with_capacity(entries), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_again() {
        let mut map = LineMap::default();
        let file: Arc<str> = "lib".into();
        map.copied("a\nb: ", line_breaks("a\nb: "), None, 1);
        map.made("x", None, 2);
        map.copied("\n", line_breaks("\n"), None, 2);
        map.copied("y\nz\n", line_breaks("y\nz\n"), Some(&file), 7);
        map.copied("end", line_breaks("end"), None, 9);
        let found: Vec<_> =
            (1..=5).map(|n| map.source_of(n).map(|(f, l)| (f.is_some(), l))).collect();
        let expected = [(false, 1), (false, 2), (true, 7), (true, 8), (false, 9)];
        assert_eq!(found, expected.map(Some));
    }
}
