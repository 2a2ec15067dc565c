//! Regular expressions as targets use them: Python's `re.match`, anchored at the start only.

use std::sync::Arc;

use halite_pyregex::{Flags, PyRegex};

/// A compiled expression, matched from the start of a text.
#[derive(Clone, Debug)]
pub struct Regex(Arc<PyRegex>);

impl Regex {
    /// Compiles; the error is Python's sentence.
    pub fn new(pattern: &str) -> Result<Self, String> {
        PyRegex::cached(pattern, Flags::NONE).map(Self).map_err(|error| error.to_string())
    }

    /// A pattern that takes too long on a text does not match it.
    pub fn matches(&self, text: &str) -> bool {
        self.0.match_start(text).is_ok_and(|found| found.is_some())
    }
}
