//! Python's regular expressions: the syntax, the meaning and the messages of the module `re`.
//!
//! A pattern is parsed here (so that mistakes get Python's words and places), written again in the
//! dialect of the `regex` crate, and run by it in linear time. Patterns that look around or back are
//! run by `fancy-regex`, which backtracks, up to a limit: a pattern from a template can never hang.
//!
//! Surprising: `$` without `MULTILINE` also matches before a line break at the very end. Few texts
//! end so; the fast engine handles all others, and only they need the slow one.

mod template;
mod translate;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, OnceLock},
};

use parking_lot::Mutex;
pub use template::Template;

/// Flags of `re.compile`, also written `(?i)` in a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub ignore_case: bool,
    pub multi_line: bool,
    pub dot_all: bool,
    pub verbose: bool,
    pub ascii: bool,
}

impl Flags {
    pub const NONE: Self = Self {
        ignore_case: false,
        multi_line: false,
        dot_all: false,
        verbose: false,
        ascii: false,
    };

    /// Reads Python's bits: `re.I | re.M` is 10.
    pub fn from_bits(bits: u32) -> Self {
        Self {
            ignore_case: bits & 2 != 0,
            multi_line: bits & 8 != 0,
            dot_all: bits & 16 != 0,
            verbose: bits & 64 != 0,
            ascii: bits & 256 != 0,
        }
    }

    /// Returns the flag that a name such as `IGNORECASE` or `M` stands for, as bits.
    pub fn named(name: &str) -> Option<u32> {
        Some(match name.to_ascii_uppercase().as_str() {
            "I" | "IGNORECASE" => 2,
            "L" | "LOCALE" => 4,
            "M" | "MULTILINE" => 8,
            "S" | "DOTALL" => 16,
            "U" | "UNICODE" => 32,
            "X" | "VERBOSE" => 64,
            "A" | "ASCII" => 256,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pattern or the replacement is wrong: Python's `re.error`.
    #[error("{message} at position {position}")]
    Syntax { message: String, position: usize },
    /// As above, where Python names no position, or our engine refused the pattern.
    #[error("{0}")]
    Refused(String),
    #[error("the regular expression backtracks too much on this text")]
    TooSlow,
}

impl Error {
    pub(crate) fn at(message: impl Into<String>, position: usize) -> Self {
        Self::Syntax { message: message.into(), position }
    }
}

type Result<T> = std::result::Result<T, Error>;

/// Steps that the backtracking engine may take on one text.
const BACKTRACK_LIMIT: usize = 1_000_000;

/// Where each group matched, in bytes.
type Spans = Vec<Option<(usize, usize)>>;

enum Engine {
    Fast(regex::Regex),
    Slow(Box<fancy_regex::Regex>),
}

impl Engine {
    fn new(pattern: &str, fancy: bool) -> Result<Self> {
        if !fancy {
            match regex::Regex::new(pattern) {
                Ok(regex) => return Ok(Self::Fast(regex)),
                Err(regex::Error::CompiledTooBig(_)) => {
                    return Err(Error::Refused("the regular expression is too large".into()));
                }
                Err(_) => {}
            }
        }
        fancy_regex::RegexBuilder::new(pattern)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .map(|regex| Self::Slow(Box::new(regex)))
            .map_err(|error| Error::Refused(error.to_string()))
    }

    fn find(&self, text: &str, from: usize) -> Result<Option<Spans>> {
        Ok(match self {
            Self::Fast(regex) => {
                let mut spans = regex.capture_locations();
                regex
                    .captures_read_at(&mut spans, text, from)
                    .map(|_| (0..spans.len()).map(|group| spans.get(group)).collect())
            }
            Self::Slow(regex) => {
                regex.captures_from_pos(text, from).map_err(|_| Error::TooSlow)?.map(|captures| {
                    (0..captures.len())
                        .map(|group| captures.get(group).map(|found| (found.start(), found.end())))
                        .collect()
                })
            }
        })
    }

    /// As [`Engine::find`], but only whether and where, without groups.
    fn is_match(&self, text: &str, from: usize) -> Result<Option<(usize, usize)>> {
        Ok(match self {
            Self::Fast(regex) => {
                regex.find_at(text, from).map(|found| (found.start(), found.end()))
            }
            Self::Slow(_) => self.find(text, from)?.and_then(|spans| spans[0]),
        })
    }
}

/// A compiled pattern.
pub struct PyRegex {
    pattern: String,
    parsed: translate::Parsed,
    /// For texts that do not end with a line break.
    usual: Engine,
    /// For those that do, when the pattern has a `$`.
    at_break: OnceLock<Result<Engine>>,
    whole: OnceLock<Result<Engine>>,
}

impl std::fmt::Debug for PyRegex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "re.compile({:?})", self.pattern)
    }
}

/// Where a pattern matched, and its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match<'t> {
    text: &'t str,
    spans: Spans,
}

impl<'t> Match<'t> {
    pub fn start(&self) -> usize {
        self.spans[0].map_or(0, |span| span.0)
    }

    pub fn end(&self) -> usize {
        self.spans[0].map_or(0, |span| span.1)
    }

    /// Returns the byte range of a group that took part.
    pub fn span(&self, group: usize) -> Option<(usize, usize)> {
        self.spans.get(group).copied().flatten()
    }

    /// Returns the text of a group; 0 is the whole match.
    pub fn group(&self, group: usize) -> Option<&'t str> {
        self.span(group).map(|(start, end)| &self.text[start..end])
    }

    pub fn as_str(&self) -> &'t str {
        self.group(0).unwrap_or_default()
    }

    /// Returns all groups except the whole match.
    pub fn groups(&self) -> Vec<Option<&'t str>> {
        (1..self.spans.len()).map(|group| self.group(group)).collect()
    }
}

impl PyRegex {
    /// `re.compile(pattern, flags)`.
    pub fn new(pattern: &str, flags: Flags) -> Result<Self> {
        let parsed = translate::translate(pattern, flags)?;
        let usual = Engine::new(&parsed.text(false), parsed.fancy)?;
        Ok(Self {
            pattern: pattern.to_owned(),
            parsed,
            usual,
            at_break: OnceLock::new(),
            whole: OnceLock::new(),
        })
    }

    /// As [`PyRegex::new`]; a pattern that was compiled lately is found again.
    pub fn cached(pattern: &str, flags: Flags) -> Result<Arc<Self>> {
        type Cache = HashMap<(String, Flags), Arc<PyRegex>>;
        static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
        const MOST: usize = 512;
        let key = (pattern.to_owned(), flags);
        if let Some(regex) = CACHE.lock().get(&key) {
            return Ok(regex.clone());
        }
        let regex = Arc::new(Self::new(pattern, flags)?);
        let mut cache = CACHE.lock();
        if cache.len() >= MOST {
            // As Python does: simple, and rare.
            cache.clear();
        }
        cache.insert(key, regex.clone());
        Ok(regex)
    }

    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.parsed.groups
    }

    /// Returns the names of groups, with their numbers.
    pub fn names(&self) -> &[(String, usize)] {
        &self.parsed.names
    }

    fn engine(&self, text: &str) -> Result<&Engine> {
        if !self.parsed.dollar || !text.ends_with('\n') {
            return Ok(&self.usual);
        }
        let engine = self.at_break.get_or_init(|| Engine::new(&self.parsed.text(true), true));
        engine.as_ref().map_err(Clone::clone)
    }

    /// `re.search`, from a byte offset on.
    pub fn search_at<'t>(&self, text: &'t str, from: usize) -> Result<Option<Match<'t>>> {
        if from > text.len() {
            return Ok(None);
        }
        let spans = self.engine(text)?.find(text, from)?;
        Ok(spans.map(|spans| Match { text, spans }))
    }

    /// `re.search`: anywhere in the text.
    pub fn search<'t>(&self, text: &'t str) -> Result<Option<Match<'t>>> {
        self.search_at(text, 0)
    }

    /// `re.match`: at the start of the text.
    pub fn match_start<'t>(&self, text: &'t str) -> Result<Option<Match<'t>>> {
        // The leftmost match is at the start if there is one at the start.
        Ok(self.search(text)?.filter(|found| found.start() == 0))
    }

    /// `re.fullmatch`: the whole text.
    pub fn full_match<'t>(&self, text: &'t str) -> Result<Option<Match<'t>>> {
        let engine = self.whole.get_or_init(|| {
            let pattern = format!(r"\A(?:{})\z", self.parsed.text(true));
            Engine::new(&pattern, self.parsed.fancy || self.parsed.dollar)
        });
        let spans = engine.as_ref().map_err(Clone::clone)?.find(text, 0)?;
        Ok(spans.map(|spans| Match { text, spans }))
    }

    pub fn is_match(&self, text: &str) -> Result<bool> {
        Ok(self.engine(text)?.is_match(text, 0)?.is_some())
    }

    /// `re.finditer`: all matches that do not overlap.
    pub fn find_iter<'t>(&self, text: &'t str) -> Result<Vec<Match<'t>>> {
        self.find_up_to(text, usize::MAX)
    }

    fn find_up_to<'t>(&self, text: &'t str, most: usize) -> Result<Vec<Match<'t>>> {
        let mut found = Vec::new();
        let mut from = 0;
        while found.len() < most && from <= text.len() {
            let Some(next) = self.search_at(text, from)? else { break };
            // An empty match may follow another one directly, but must not stay in its place.
            from = if next.end() > next.start() {
                next.end()
            } else {
                next.end() + text[next.end()..].chars().next().map_or(1, char::len_utf8)
            };
            found.push(next);
        }
        Ok(found)
    }

    /// `re.sub`: replaces matches, all of them if `count` is 0. Also returns how many.
    pub fn sub(&self, template: &Template, text: &str, count: usize) -> Result<(String, usize)> {
        self.sub_with(text, count, |found, out| template.expand(found, out))
    }

    /// As [`PyRegex::sub`], with a function that appends the replacement.
    pub fn sub_with(
        &self,
        text: &str,
        count: usize,
        mut replace: impl FnMut(&Match<'_>, &mut String),
    ) -> Result<(String, usize)> {
        let found = self.find_up_to(text, if count == 0 { usize::MAX } else { count })?;
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for next in &found {
            out.push_str(&text[from..next.start()]);
            replace(next, &mut out);
            from = next.end();
        }
        out.push_str(&text[from..]);
        Ok((out, found.len()))
    }

    /// `re.split`: the parts between matches, with the groups of each match; at most `most` splits,
    /// any number if it is 0.
    pub fn split<'t>(&self, text: &'t str, most: usize) -> Result<Vec<Option<&'t str>>> {
        let found = self.find_up_to(text, if most == 0 { usize::MAX } else { most })?;
        let mut parts = Vec::new();
        let mut from = 0;
        for next in found {
            parts.push(Some(&text[from..next.start()]));
            parts.extend(next.groups());
            from = next.end();
        }
        parts.push(Some(&text[from..]));
        Ok(parts)
    }

    /// Reads a replacement text for this pattern.
    pub fn template(&self, text: &str) -> Result<Template> {
        Template::new(text, self.groups(), self.names())
    }
}

/// `re.escape`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "()[]{}?*+-|^$\\.&~# \t\n\r\x0b\x0c".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Translates a shell pattern as Python's `fnmatch.translate`; match it with
/// [`PyRegex::full_match`].
pub fn from_glob(glob: &str) -> String {
    let chars: Vec<char> = glob.chars().collect();
    let mut out = String::from("(?s:");
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        at += 1;
        match c {
            '*' => {
                while chars.get(at) == Some(&'*') {
                    at += 1;
                }
                out.push_str(".*");
            }
            '?' => out.push('.'),
            '[' => {
                let mut end = at;
                if chars.get(end) == Some(&'!') {
                    end += 1;
                }
                if chars.get(end) == Some(&']') {
                    end += 1;
                }
                while end < chars.len() && chars[end] != ']' {
                    end += 1;
                }
                if end >= chars.len() {
                    out.push_str("\\[");
                } else {
                    let inner: String = chars[at..end].iter().collect();
                    at = end + 1;
                    let inner = inner.replace('\\', "\\\\");
                    let inner = match inner.strip_prefix('!') {
                        Some(rest) => format!("^{rest}"),
                        None if inner.starts_with(['^', '[']) => format!("\\{inner}"),
                        None => inner,
                    };
                    out.push_str(&format!("[{inner}]"));
                }
            }
            c => out.push_str(&escape(&c.to_string())),
        }
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(pattern: &str) -> PyRegex {
        PyRegex::new(pattern, Flags::NONE).unwrap_or_else(|error| panic!("{pattern}: {error}"))
    }

    fn sub(pattern: &str, to: &str, text: &str, expected: &str) {
        let regex = regex(pattern);
        let template = regex.template(to).expect("a template");
        assert_eq!(regex.sub(&template, text, 0).expect("matches").0, expected, "{pattern}");
    }

    #[test]
    fn substitutes_as_python_does() {
        sub("x*", "-", "abxd", "-a-b--d-");
        sub("(a)(b)", r"\2\1", "abab", "baba");
        sub(r"(?P<w>\w+) (?P=w)", r"<\g<w>>", "hey hey you", "<hey> you");
        sub("foo(?=bar)", "X", "foobar foo", "Xbar foo");
        sub("a$", "b", "a\na\n", "a\nb\n");
        sub("(?m)^", "> ", "a\nb", "> a\n> b");
        sub(r"(?i)AB", r"\g<0>!", "ab", "ab!");
        sub(r"(?x) a  b # comment", "X", "ab a b", "X a b");
        sub(r"[\]\-a]", "_", "]-ab", "___b");
        sub(r"\.", r"\n", "a.b", "a\nb");
        sub("{", "<", "a{b", "a<b");
        sub("a{,2}b", "-", "aab", "-");
        sub(r"(?<!x)y", "Y", "xy y", "xy Y");
        sub(r"(a)?b", r"[\1]", "ab b", "[a] []");
        sub(r"[[:a]", "_", "a[:", "___");
        sub(r"[a&&b]", "_", "a&b", "___");
        sub(r"\x41\u0042\103", "-", "ABC", "-");
        sub(r"(?:a|b)++c", "-", "abc", "-");
    }

    #[test]
    fn splits_and_finds() {
        let parts = regex("(-)|,").split("a-b,c", 0).expect("splits");
        assert_eq!(parts, [Some("a"), Some("-"), Some("b"), None, Some("c")]);
        assert_eq!(regex("x*").split("axbc", 0).expect("splits").len(), 6);
        let found = regex(r"\d+").find_iter("1 22").expect("finds");
        assert_eq!(found.iter().map(Match::as_str).collect::<Vec<_>>(), ["1", "22"]);
        assert!(regex("b").match_start("ab").expect("runs").is_none());
        assert!(regex("a|ab").full_match("ab").expect("runs").is_some());
        assert!(regex("a$").full_match("a\n").expect("runs").is_none());
    }

    fn fails(pattern: &str, expected: &str) {
        let error = PyRegex::new(pattern, Flags::NONE).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected), "{pattern}");
    }

    #[test]
    fn mistakes_get_pythons_words() {
        fails("(", "missing ), unterminated subpattern at position 0");
        fails("a)", "unbalanced parenthesis at position 1");
        fails("*a", "nothing to repeat at position 0");
        fails("a**", "multiple repeat at position 2");
        fails("[a", "unterminated character set at position 0");
        fails(r"\q", r"bad escape \q at position 0");
        fails("[b-a]", "bad character range b-a at position 1");
        fails(r"(a)\2", "invalid group reference 2 at position 4");
        fails("a{3,2}", "min repeat greater than max repeat at position 2");
        fails(
            "(?P<a>x)(?P<a>y)",
            "redefinition of group name 'a' as group 2; was group 1 at position 12",
        );
        fails("\\", "bad escape (end of pattern) at position 0");
    }

    #[test]
    fn a_hostile_pattern_stops() {
        let regex = regex(r"(?=a)(a+)+\1$");
        let text = "a".repeat(40) + "b";
        let start = std::time::Instant::now();
        let _ = regex.search(&text);
        assert!(start.elapsed().as_secs() < 5);
    }

    #[test]
    fn globs_and_escapes() {
        assert_eq!(escape("a.b*c d-e"), r"a\.b\*c\ d\-e");
        for (glob, text, expected) in [
            ("web*", "web1", true),
            ("w?b", "web", true),
            ("[!a]b", "ab", false),
            ("[ab]x", "bx", true),
        ] {
            let regex = regex(&from_glob(glob));
            assert_eq!(regex.full_match(text).expect("runs").is_some(), expected, "{glob}");
        }
    }
}
