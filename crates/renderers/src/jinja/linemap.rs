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
    file: Option<Arc<str>>,
    line: u32,
    /// Following output lines come from following source lines; otherwise all from the same.
    copied: bool,
}

/// A map from output lines to template lines.
#[derive(Clone, Debug, Default)]
pub struct LineMap {
    entries: Vec<Entry>,
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
        let shift = entry.file.is_none() && self.removed.is_some_and(|removed| line >= removed);
        Some((entry.file.as_ref(), line + u32::from(shift)))
    }

    pub(crate) fn line_was_removed(&mut self, line: u32) {
        self.removed = Some(line);
    }

    /// Notes that text was written. `copied`: it stands in the template like this, from `line` on.
    pub(crate) fn add(&mut self, text: &str, file: Option<&Arc<str>>, line: u32, copied: bool) {
        if text.is_empty() {
            return;
        }
        let breaks = u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(0);
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
        if let Some(last) = self.entries.last_mut() {
            if last.out == out {
                *last = Entry { out, file: file.cloned(), line, copied };
                return;
            }
            let same_file = match (&last.file, file) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                _ => false,
            };
            let continues =
                if last.copied { last.line + (out - last.out) == line } else { last.line == line };
            if same_file && continues && last.copied == copied {
                return;
            }
        }
        self.entries.push(Entry { out, file: file.cloned(), line, copied });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_again() {
        let mut map = LineMap::default();
        let file: Arc<str> = "lib".into();
        map.add("a\nb: ", None, 1, true);
        map.add("x", None, 2, false);
        map.add("\n", None, 2, true);
        map.add("y\nz\n", Some(&file), 7, true);
        map.add("end", None, 9, true);
        let found: Vec<_> =
            (1..=5).map(|n| map.source_of(n).map(|(f, l)| (f.is_some(), l))).collect();
        let expected = [(false, 1), (false, 2), (true, 7), (true, 8), (false, 9)];
        assert_eq!(found, expected.map(Some));
    }
}
