//! Python's versions (PEP 440), as far as comparing and matching them takes.
//!
//! A version is an epoch, a release (`1.4.2`), and perhaps a pre-release, a post-release, a
//! development release and a local part. A specifier is a list of clauses with commas: `>=1.0,!=1.3`.

use std::cmp::Ordering;

use halite_pyregex::{Flags, PyRegex};

/// A version, ready to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    epoch: u64,
    release: Vec<u64>,
    pre: Option<(char, u64)>,
    post: Option<u64>,
    dev: Option<u64>,
    local: String,
}

const PATTERN: &str = r"(?i)^\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?(?:-(\d+)|([-_.]?(?:post|rev|r))[-_.]?(\d*))?(?:([-_.]?dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*$";

impl Version {
    /// Reads a version; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let pattern = PyRegex::cached(PATTERN, Flags::from_bits(0)).ok()?;
        let found = pattern.match_start(text).ok().flatten()?;
        let group = |at: usize| found.group(at);
        let number = |text: Option<&str>| text.map(|text| text.parse().unwrap_or(0));
        Some(Self {
            epoch: number(group(1)).unwrap_or(0),
            release: group(2)?.split('.').map(|part| part.parse().unwrap_or(0)).collect(),
            pre: group(3).map(|kind| {
                let kind = match kind.to_lowercase().as_str() {
                    "a" | "alpha" => 'a',
                    "b" | "beta" => 'b',
                    _ => 'c',
                };
                (kind, number(group(4)).unwrap_or(0))
            }),
            post: number(group(5)).or_else(|| group(6).and_then(|_| number(group(7)))),
            dev: group(8).map(|_| number(group(9)).unwrap_or(0)),
            local: group(10).unwrap_or_default().to_lowercase(),
        })
    }

    pub fn is_prerelease(&self) -> bool {
        self.pre.is_some() || self.dev.is_some()
    }

    fn release_at(&self, at: usize) -> u64 {
        self.release.get(at).copied().unwrap_or(0)
    }

    /// The release up to so many parts is the same.
    fn begins_with(&self, other: &Self, parts: usize) -> bool {
        self.epoch == other.epoch
            && (0..parts).all(|at| self.release_at(at) == other.release_at(at))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let longest = self.release.len().max(other.release.len());
        let release = |version: &Self| -> Vec<u64> {
            (0..longest).map(|at| version.release_at(at)).collect()
        };
        // A development release alone comes before all pre-releases, no pre-release after them.
        let pre = |version: &Self| match (version.pre, version.post, version.dev) {
            (None, None, Some(_)) => (0, ('a', 0)),
            (Some(pre), _, _) => (1, pre),
            (None, _, _) => (2, ('a', 0)),
        };
        let dev = |version: &Self| version.dev.unwrap_or(u64::MAX);
        self.epoch
            .cmp(&other.epoch)
            .then_with(|| release(self).cmp(&release(other)))
            .then_with(|| pre(self).cmp(&pre(other)))
            .then_with(|| self.post.cmp(&other.post))
            .then_with(|| dev(self).cmp(&dev(other)))
            .then_with(|| self.local.cmp(&other.local))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One clause: operator and version.
pub type Clause = (String, String);

/// Splits `>=1.0,!=1.3`; `None` if it does not read as a specifier.
pub fn clauses(text: &str) -> Option<Vec<Clause>> {
    let mut found = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let operator = ["===", "~=", "==", "!=", "<=", ">=", "<", ">"]
            .into_iter()
            .find(|op| part.starts_with(op))?;
        found.push((operator.to_owned(), part.get(operator.len()..)?.trim().to_owned()));
    }
    Some(found)
}

/// Tells whether a version fulfils a clause.
fn fulfils(version: &Version, shown: &str, (operator, wanted): &Clause) -> bool {
    if operator == "===" {
        return shown.eq_ignore_ascii_case(wanted);
    }
    if let Some(prefix) = wanted.strip_suffix(".*") {
        let same = Version::parse(prefix)
            .is_some_and(|prefix| version.begins_with(&prefix, prefix.release.len()));
        return (operator == "!=") != same;
    }
    let Some(wanted) = Version::parse(wanted) else { return false };
    let mut own = version.clone();
    if wanted.local.is_empty() {
        own.local.clear();
    }
    let longest = own.release.len().max(wanted.release.len());
    let same_release = own.begins_with(&wanted, longest);
    match operator.as_str() {
        "==" => own.cmp(&wanted) == Ordering::Equal,
        "!=" => own.cmp(&wanted) != Ordering::Equal,
        "<=" => own <= wanted,
        ">=" => own >= wanted,
        // A pre-release of the version named is not less than it, a post-release not more.
        "<" => own < wanted && (wanted.is_prerelease() || !own.is_prerelease() || !same_release),
        ">" => own > wanted && (wanted.post.is_some() || own.post.is_none() || !same_release),
        "~=" => own >= wanted && own.begins_with(&wanted, wanted.release.len().saturating_sub(1)),
        _ => false,
    }
}

/// Tells whether a version fulfils all clauses.
pub fn satisfies(version: &str, clauses: &[Clause]) -> bool {
    match Version::parse(version) {
        Some(parsed) => clauses.iter().all(|clause| fulfils(&parsed, version, clause)),
        None => clauses.iter().all(|(op, wanted)| op.starts_with("==") && wanted == version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order() {
        let sorted = [
            "1.0.dev1",
            "1.0a1.dev1",
            "1.0a1",
            "1.0b2",
            "1.0rc1",
            "1.0",
            "1.0.post1.dev2",
            "1.0.post1",
            "1.0.1",
            "1.1",
            "1!0.1",
        ];
        for pair in sorted.windows(2) {
            let [one, other] = pair else { continue };
            assert!(Version::parse(one) < Version::parse(other), "{one} < {other}");
        }
        assert_eq!(Version::parse("1.0").cmp(&Version::parse("1.0.0")), Ordering::Equal);
        assert!(Version::parse("garbage").is_none());
    }

    #[test]
    fn specifiers() {
        let check = |version: &str, spec: &str, expected: bool| {
            let clauses = clauses(spec).unwrap();
            assert_eq!(satisfies(version, &clauses), expected, "{version} {spec}");
        };
        check("1.1", "!=1.0,>=1.0", true);
        check("1.0", "!=1.0,>=1.0", false);
        check("1.4.2", "~=1.4", true);
        check("2.0", "~=1.4", false);
        check("1.4.2", "==1.4.*", true);
        check("1.5", "==1.4.*", false);
        check("1.5", "!=1.4.*", true);
        check("1.0", "==1.0.0", true);
        check("1.0+local", "==1.0", true);
        check("2.0rc1", "<2.0", false);
        check("1.9", "<2.0", true);
        check("x", "===x", true);
        assert!(clauses("1.0").is_none());
    }
}
