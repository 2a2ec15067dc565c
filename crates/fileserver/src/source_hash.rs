//! `source_hash`: what a downloaded file must hash to, in every form users write it.
//!
//! A hash with its kind (`sha256=ab12…`), a bare hash (its length tells the kind), or a file or
//! URL that lists hashes: `sha256sum` output, BSD style, Debian `.dsc` files, or a single hash.
//! In a list, the line is found by `source_hash_name`, else by the name of the managed file, else
//! by the name in the source URL, else the first hash counts.

use halite_spec::{Error, Fetch, Files, Result};

use crate::{
    hash::Kind,
    url::{Url, redacted},
};

/// The protocols a list of hashes may be fetched by, in the order in which Salt names them.
const PROTOCOLS: [&str; 7] = ["salt", "file", "http", "https", "ftp", "swift", "s3"];

/// A hash with its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub kind: Kind,
    /// Hexadecimal digits.
    pub digits: String,
}

/// What a `source_hash` belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The managed file.
    pub file_name: &'a str,
    /// Where it comes from.
    pub source: &'a str,
    pub source_hash_name: Option<&'a str>,
}

/// Finds out what a `source_hash` means, fetching the list of hashes if it names one.
pub fn resolve(
    source_hash: &str,
    wanted: &Wanted<'_>,
    files: &dyn Files,
    saltenv: &str,
    how: &Fetch,
    read: &dyn Fn(&std::path::Path) -> Result<String>,
) -> Result<Sum> {
    let url = Url::parse(source_hash);
    let list = if source_hash.starts_with('/') {
        Some(std::path::PathBuf::from(source_hash))
    } else if PROTOCOLS.contains(&url.scheme.as_str()) {
        let missing =
            || Error::failed(format!("Source hash file {} not found", redacted(source_hash)));
        Some(files.cache_with(source_hash, saltenv, how)?.ok_or_else(missing)?)
    } else if url.scheme.is_empty() {
        None
    } else {
        return Err(invalid(source_hash));
    };
    match list {
        None => parse(source_hash),
        Some(path) => {
            let mut sum =
                extract(&read(&path)?, None, wanted).ok_or_else(|| invalid(source_hash))?;
            sum.digits.make_ascii_lowercase();
            Ok(sum)
        }
    }
}

/// Reads `kind=digits` or bare digits.
pub fn parse(source_hash: &str) -> Result<Sum> {
    let Some((name, digits)) = source_hash.split_once('=') else {
        let is_hex = !source_hash.is_empty() && source_hash.bytes().all(|b| b.is_ascii_hexdigit());
        let kind = Kind::of_length(source_hash.len()).filter(|_| is_hex);
        let kind = kind.ok_or_else(|| invalid(source_hash))?;
        return Ok(Sum { kind, digits: source_hash.to_ascii_lowercase() });
    };
    let (name, digits) = (name.trim(), digits.trim());
    let Some(kind) = Kind::named(name) else {
        let known = Kind::ALL.map(Kind::name).join(", ");
        return Err(Error::failed(format!(
            "Invalid hash type '{name}'. Supported hash types are: {known}. Either remove the hash \
             type and simply use '{digits}' as the source_hash, or change the hash type to a \
             supported type."
        )));
    };
    match Kind::of_length(digits.len()) {
        None => Err(invalid(source_hash)),
        Some(other) if other != kind => Err(Error::failed(format!(
            "Invalid length ({}) for hash type '{name}'. Either remove the hash type and simply \
             use '{digits}' as the source_hash, or change the hash type to '{}'",
            digits.len(),
            other.name()
        ))),
        Some(kind) => Ok(Sum { kind, digits: digits.to_ascii_lowercase() }),
    }
}

fn invalid(source_hash: &str) -> Error {
    let lengths: Vec<String> = Kind::ALL
        .into_iter()
        .rev()
        .map(|kind| format!("{} ({})", kind.name(), kind.digits()))
        .collect();
    Error::failed(format!(
        "Source hash {} format is invalid. The supported formats are: 1) a hash, 2) an expression \
         in the format <hash_type>=<hash>, or 3) either a path to a local file containing hashes, \
         or a URI of a remote hash file. Supported protocols for remote hash files are: {}. The \
         hash may also not be of a valid length, the following are supported hash types and \
         lengths: {}.",
        redacted(source_hash),
        PROTOCOLS.join(", "),
        lengths.join(", ")
    ))
}

/// Finds a hash in a list of hashes; of one kind only, if given.
pub fn extract(list: &str, kind: Option<Kind>, wanted: &Wanted<'_>) -> Option<Sum> {
    let source = Url::parse(wanted.source);
    let source_path = if source.path.is_empty() { &source.host_port } else { &source.path };
    let by_name = wanted.source_hash_name.filter(|name| !name.is_empty()).map(|name| Name {
        short: name,
        full: name,
        separators: "",
    });
    let searches = [
        by_name,
        Name::of_file(wanted.file_name, wanted.file_name),
        Name::of_file(source_path, wanted.source),
    ];
    let mut found: [Option<Sum>; 3] = [None, None, None];
    let mut first = None;
    for line in list.lines().map(str::trim) {
        let Some(sum) = hash_in(line, kind) else { continue };
        first.get_or_insert_with(|| sum.clone());
        for (search, found) in searches.iter().zip(&mut found) {
            if found.is_none() && search.as_ref().is_some_and(|search| search.is_on(line)) {
                *found = Some(sum.clone());
            }
        }
    }
    found.into_iter().flatten().next().or(first)
}

/// A file name as it may stand on a line.
struct Name<'a> {
    /// At the end of the line, after white space or a separator.
    short: &'a str,
    /// At its beginning, before white space.
    full: &'a str,
    separators: &'a str,
}

impl<'a> Name<'a> {
    fn of_file(path: &'a str, full: &'a str) -> Option<Self> {
        let short = path.rsplit('/').next().unwrap_or(path);
        (!full.is_empty()).then_some(Self { short, full, separators: "\\/*" })
    }

    fn is_on(&self, line: &str) -> bool {
        match line.strip_suffix(self.short) {
            Some(before) => before
                .chars()
                .next_back()
                .is_some_and(|c| c.is_ascii_whitespace() || self.separators.contains(c)),
            None => line
                .strip_prefix(self.full)
                .is_some_and(|after| after.starts_with(char::is_whitespace)),
        }
    }
}

/// Returns the first word of a line that can be a hash.
fn hash_in(line: &str, kind: Option<Kind>) -> Option<Sum> {
    let is_hash = |word: &&str| {
        let fits = match kind {
            Some(kind) => word.len() == kind.digits(),
            None => (32..=128).contains(&word.len()),
        };
        fits && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let word = line.split(|c: char| !c.is_ascii_alphanumeric()).find(is_hash)?;
    Some(Sum { kind: Kind::of_length(word.len())?, digits: word.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn list() -> String {
        let sha = |c: &str| c.repeat(64);
        format!(
            "# comment\n{}  dir/app.tgz\n{} *other.tgz\nMD5 (bsd.tgz) = {MD5}\nnamed.tgz {}\n",
            sha("a"),
            sha("B"),
            sha("c")
        )
    }

    fn check(wanted: Wanted<'_>, expected: &str) {
        let found = extract(&list(), None, &wanted).expect("a hash");
        assert_eq!(found.digits, expected, "{wanted:?}");
    }

    #[test]
    fn lines_are_found_by_name() {
        let (a, b, c) = ("a".repeat(64), "B".repeat(64), "c".repeat(64));
        check(Wanted::default(), &a);
        check(Wanted { file_name: "/tmp/other.tgz", ..Wanted::default() }, &b);
        check(Wanted { source: "https://x/y/other.tgz?z=1", ..Wanted::default() }, &b);
        check(Wanted { source_hash_name: Some("dir/app.tgz"), ..Wanted::default() }, &a);
        check(Wanted { source_hash_name: Some("app.tgz"), ..Wanted::default() }, &a);
        check(Wanted { file_name: "named.tgz", ..Wanted::default() }, &c);
        let both = Wanted {
            file_name: "/tmp/other.tgz",
            source: "http://h/app.tgz",
            source_hash_name: Some("nowhere"),
        };
        check(both, &b);
        assert_eq!(extract(&list(), Some(Kind::Md5), &Wanted::default()).unwrap().digits, MD5);
        assert_eq!(extract("nothing here", None, &Wanted::default()), None);
    }

    #[test]
    fn expressions() {
        assert_eq!(parse(&format!("md5 = {MD5}")).unwrap().kind, Kind::Md5);
        assert_eq!(parse(&MD5.to_uppercase()).unwrap().digits, MD5);
        assert!(parse(&format!("sha256={MD5}")).unwrap_err().to_string().ends_with("to 'md5'"));
        assert!(parse(&format!("sha3={MD5}")).unwrap_err().to_string().starts_with(
            "Invalid hash type 'sha3'. Supported hash types are: sha512, sha384, sha256, sha224, \
             sha1, md5."
        ));
        let error = parse("xyz").unwrap_err().to_string();
        assert!(error.starts_with("Source hash xyz format is invalid."), "{error}");
        assert!(error.ends_with(
            "md5 (32), sha1 (40), sha224 (56), sha256 (64), sha384 (96), sha512 (128)."
        ));
    }
}
