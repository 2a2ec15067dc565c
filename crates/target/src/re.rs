//! Regular expressions as targets use them: Python's `re.match`, anchored at the start only.

use fancy_regex::{Regex as Engine, RegexBuilder};

/// Steps after which a match is given up: a target is written by people, its time must be bounded.
const BACKTRACK_LIMIT: usize = 200_000;

/// A compiled expression, matched from the start of a text.
#[derive(Clone, Debug)]
pub struct Regex(Engine);

impl Regex {
    /// Compiles; the error is one sentence.
    pub fn new(pattern: &str) -> Result<Self, String> {
        // Python's `\Z` is the very end; the engine's `\Z` would accept a newline before it.
        let pattern = format!(r"\A(?:{})", pattern.replace(r"\Z", r"\z"));
        RegexBuilder::new(&pattern)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }

    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text).unwrap_or(false)
    }
}
