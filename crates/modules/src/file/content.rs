//! What a managed file shall hold, and how that differs from what it holds.
//!
//! Content is a file on this machine wherever possible, so that a large one is compared and copied
//! in pieces; only rendered templates and given texts are in memory. A `salt://` file is known by
//! its digest at first and fetched only when it differs.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use halite_spec::{Cx, Error, Fetch, Result, Template, host};
use halite_value::{Dict, Value, suggest};

use super::{
    diff,
    hashes::{Sum, sum_for},
    paths::parent,
    source::{
        REMOTE_PROTOCOLS, Trust, VALID_PROTOCOLS, local_path, parse_salt, redacted, scheme_of,
    },
    text::{decode, is_binary, lines_at_newline, utf8},
};
use crate::{cp, hashutil::Kind};

/// Files larger than this are compared, but their difference is not spelled out.
const DIFF_LIMIT: u64 = 32 << 20;

/// How much of a file tells whether it is text.
const BLOCK: usize = 2048;

/// What a file shall hold.
#[derive(Clone, Debug)]
pub enum Content {
    /// Nobody says; an empty file if it is not there.
    Unknown,
    Bytes(Vec<u8>),
    /// The same as this file on this machine.
    File(PathBuf),
    /// A file of the server, not fetched yet.
    Served {
        source: String,
        saltenv: String,
        sum: Sum,
    },
}

/// Where content comes from; the arguments of `file.get_managed`.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The file it is for: its name is looked for in lists of digests, and templates see it.
    pub name: String,
    pub source: Option<String>,
    pub source_hash: Option<String>,
    pub source_hash_name: Option<String>,
    pub template: Option<String>,
    pub context: Dict,
    pub defaults: Dict,
    pub saltenv: String,
    pub skip_verify: bool,
    pub use_etag: bool,
    /// What the source and the file of its digests must show.
    pub trust: Trust,
    /// What else templates see: `user`, `group`, `mode`, `attrs`.
    pub names: Dict,
}

impl Origin {
    /// Finds the content. The error is a text for people, and a state's comment.
    pub fn content(&self, cx: &Cx) -> Result<Content> {
        let Some(source) = self.source.as_deref().filter(|source| !source.is_empty()) else {
            return Ok(Content::Unknown);
        };
        let scheme = scheme_of(source);
        let scheme =
            if VALID_PROTOCOLS.contains(&scheme.as_str()) { scheme } else { String::new() };
        let found = match scheme.as_str() {
            "salt" => self.served(cx, source)?,
            "" | "file" => {
                let path = local_path(source);
                if !cx.host.exists(Path::new(&path))? {
                    return Err(Error::failed(format!("Local file source {path} does not exist")));
                }
                let path = PathBuf::from(path);
                if !self.skip_verify && self.hash().is_some() {
                    let sum = self.sum(cx, source)?;
                    check_sum(cx, &path, &sum, source, &self.name)?;
                }
                Content::File(path)
            }
            _ => self.remote(cx, source)?,
        };
        if let Content::File(path) = &found
            && path == Path::new(&self.name)
            && (self.template.is_some() || REMOTE_PROTOCOLS.contains(&scheme.as_str()))
        {
            return Err(Error::invalid("Source file cannot be the same as destination"));
        }
        match self.template.as_deref().filter(|engine| !engine.is_empty()) {
            Some(engine) => self.rendered(cx, engine, source, &found),
            None => Ok(found),
        }
    }

    fn hash(&self) -> Option<&str> {
        self.source_hash.as_deref().filter(|hash| !hash.is_empty())
    }

    fn sum(&self, cx: &Cx, source: &str) -> Result<Sum> {
        let hash_name = self.source_hash_name.as_deref().filter(|name| !name.is_empty());
        let hash = self.hash().unwrap_or_default();
        // Salt says so here and once more where the file is written.
        sum_for(cx, &self.name, source, hash, hash_name, &self.saltenv, &self.trust).map_err(
            |error| match error {
                Error::Failed(text) if text.starts_with("Source hash ") => {
                    Error::failed(format!("Unable to manage file: {text}"))
                }
                other => other,
            },
        )
    }

    fn served(&self, cx: &Cx, source: &str) -> Result<Content> {
        let missing = || {
            Error::failed(format!("Source file {source} not found in saltenv '{}'", self.saltenv))
        };
        let (path, env) = parse_salt(source);
        let saltenv = env.unwrap_or_else(|| self.saltenv.clone());
        if self.template.is_none()
            && let Some((kind, digits)) = cx.files.hash(&path, &saltenv)?
            && let Some(kind) = Kind::named(&kind)
        {
            let sum = Sum { kind, digits: digits.to_lowercase() };
            return Ok(Content::Served { source: source.to_owned(), saltenv, sum });
        }
        let cached = cx.files.cache(source, &saltenv)?.ok_or_else(missing)?;
        Ok(Content::File(cached))
    }

    fn remote(&self, cx: &Cx, source: &str) -> Result<Content> {
        let sum = match self.hash() {
            _ if self.skip_verify => None,
            Some(_) => Some(self.sum(cx, source)?),
            None if self.use_etag => None,
            None => {
                return Err(Error::failed(format!(
                    "Unable to verify upstream hash of source file {}, please set source_hash or \
                     set skip_verify to True",
                    redacted(source)
                )));
            }
        };
        if let Some(cached) = cp::cached_path(cx, source, &self.saltenv)? {
            let fits = match &sum {
                Some(sum) => {
                    sum.kind.of_file(&*cx.host, &cached).is_ok_and(|digits| digits == sum.digits)
                }
                None => self.skip_verify,
            };
            if fits {
                return Ok(Content::File(cached));
            }
        }
        let how = Fetch { use_etag: self.use_etag, ..self.trust.fetch() };
        let cached = cx.files.cache_with(source, &self.saltenv, &how).map_err(|error| {
            Error::failed(format!("Failed to cache {}: {error}", redacted(source)))
        })?;
        let cached = cached.ok_or_else(|| {
            Error::failed(format!("Source file '{}' not found", redacted(source)))
        })?;
        if let Some(sum) = &sum {
            check_sum(cx, &cached, sum, source, &self.name)?;
        }
        Ok(Content::File(cached))
    }

    fn rendered(&self, cx: &Cx, engine: &str, source: &str, found: &Content) -> Result<Content> {
        let bytes = found.read(cx)?;
        // A folder of templates may hold pictures and signatures too: they stay what they are.
        if is_binary(bytes.get(..BLOCK).unwrap_or(&bytes)) {
            return Ok(found.clone());
        }
        let names = self.names.shallow_copy();
        names.insert("name", self.name.as_str());
        names.insert("source", source);
        names.update(&self.defaults);
        names.update(&self.context);
        let text = utf8(bytes).map_err(|error| Error::failed(error.to_string()))?;
        render(cx, engine, text, Some(source), &self.saltenv, names)
            .map(|text| Content::Bytes(text.into_bytes()))
    }
}

/// The template engines of Salt.
const ENGINES: [&str; 7] = ["jinja", "mako", "py", "wempy", "genshi", "cheetah", "gpg"];

/// Renders a text with the names given.
pub fn render(
    cx: &Cx,
    engine: &str,
    text: String,
    source: Option<&str>,
    saltenv: &str,
    names: Dict,
) -> Result<String> {
    if !ENGINES.contains(&engine) {
        let help = suggest::help(engine, ENGINES);
        return Err(Error::failed(format!(
            "Specified template format {engine} is not supported{help}"
        )));
    }
    // Jinja reads every kind of line end and writes one; without this the pipe, which renders SLS
    // files too, would restore Windows' own.
    let text = if engine == "jinja" { text.replace("\r\n", "\n") } else { text };
    let template = Template {
        engine: engine.to_owned(),
        text,
        source: source.map(str::to_owned),
        saltenv: saltenv.to_owned(),
        // A file's template does not know the SLS that asks for it.
        sls: None,
        context: names,
    };
    cx.runtime.render(cx, &template)
}

fn check_sum(cx: &Cx, path: &Path, sum: &Sum, source: &str, name: &str) -> Result<()> {
    let actual = sum.kind.of_file(&*cx.host, path)?;
    if actual == sum.digits {
        return Ok(());
    }
    let kind = sum.kind.name();
    let wanted = &sum.digits;
    if !cx.host.exists(Path::new(name))? {
        return Err(Error::failed(format!(
            "Specified {kind} checksum for {name} ({wanted}) does not match actual checksum \
             ({actual})"
        )));
    }
    Err(Error::failed(format!(
        "Specified {kind} checksum for {source} ({wanted}) does not match actual checksum \
         ({actual}). If the 'source_hash' value refers to a remote file with multiple possible \
         matches, then it may be necessary to set 'source_hash_name'."
    )))
}

impl Content {
    /// Fetches what is not on this machine yet.
    pub fn fetched(self, cx: &Cx) -> Result<Self> {
        match self {
            Self::Served { source, saltenv, .. } => {
                let cached = cx.files.cache(&source, &saltenv)?;
                cached
                    .map(Self::File)
                    .ok_or_else(|| Error::failed(format!("Source file '{source}' not found")))
            }
            other => Ok(other),
        }
    }

    /// Opens it for reading in pieces.
    pub fn open(&self, cx: &Cx) -> Result<Box<dyn Read + Send>> {
        match self {
            Self::Unknown => Ok(Box::new(io::empty())),
            Self::Bytes(bytes) => Ok(Box::new(io::Cursor::new(bytes.clone()))),
            Self::File(path) => Ok(cx.host.open(path)?),
            Self::Served { .. } => self.clone().fetched(cx)?.open(cx),
        }
    }

    pub fn read(&self, cx: &Cx) -> Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            other => {
                let mut bytes = Vec::new();
                let unread = |error| other.unreadable(error);
                other.open(cx)?.read_to_end(&mut bytes).map_err(unread)?;
                Ok(bytes)
            }
        }
    }

    pub(crate) fn unreadable(&self, error: io::Error) -> Error {
        let path = match self {
            Self::File(path) => path.as_path(),
            _ => Path::new("the content"),
        };
        host::Error::io("read", path, error).into()
    }

    fn size(&self, cx: &Cx) -> Result<u64> {
        Ok(match self {
            Self::Unknown => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(path) => cx.host.stat(path, true)?.size,
            Self::Served { .. } => self.clone().fetched(cx)?.size(cx)?,
        })
    }

    /// Tells whether a file holds it.
    pub fn is_in(&self, cx: &Cx, path: &Path) -> Result<bool> {
        match self {
            Self::Unknown => Ok(true),
            Self::Served { sum, .. } => Ok(sum.kind.of_file(&*cx.host, path)? == sum.digits),
            known => {
                if known.size(cx)? != cx.host.stat(path, true)?.size {
                    return Ok(false);
                }
                let both = same(&mut *known.open(cx)?, &mut *cx.host.open(path)?);
                both.map_err(|error| known.unreadable(error))
            }
        }
    }
}

/// Compares two streams piece by piece.
fn same(a: &mut dyn Read, b: &mut dyn Read) -> io::Result<bool> {
    let mut left = vec![0; 64 << 10];
    let mut right = vec![0; 64 << 10];
    loop {
        let count = fill(a, &mut left)?;
        if fill(b, &mut right)? != count || left[..count] != right[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match reader.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn head(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 512];
    let count = fill(reader, &mut buffer)?;
    buffer.truncate(count);
    Ok(buffer)
}

/// Tells whether the beginning of a file is no text.
pub fn is_binary_file(cx: &Cx, path: &Path) -> bool {
    match cx.host.open(path) {
        Ok(mut reader) => head(&mut *reader).map_or(true, |block| is_binary(&block)),
        Err(_) => true,
    }
}

/// Differences that do not count, if asked so.
#[derive(Clone, Debug, Default)]
pub struct Lenient {
    pub ordering: bool,
    pub whitespace: bool,
    /// What begins a comment.
    pub comments: Vec<String>,
}

impl Lenient {
    pub fn is_on(&self) -> bool {
        self.ordering || self.whitespace || !self.comments.is_empty()
    }

    /// Tells whether a diff holds a difference that counts.
    fn counts(&self, lines: &[String]) -> bool {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for line in lines {
            if line.starts_with("+++") || line.starts_with("---") {
                continue;
            }
            let (side, mut rest) = match (line.strip_prefix('+'), line.strip_prefix('-')) {
                (Some(rest), _) => (&mut added, rest),
                (_, Some(rest)) => (&mut removed, rest),
                _ => continue,
            };
            for comment in self.comments.iter().filter(|comment| !comment.is_empty()) {
                rest = rest.split(comment.as_str()).next().unwrap_or(rest);
            }
            if self.whitespace {
                rest = rest.trim();
            }
            if !rest.is_empty() {
                side.push(rest);
            }
        }
        added.sort_unstable();
        removed.sort_unstable();
        added != removed
    }
}

/// What changes, as `changes: {diff: …}` shows it.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    pub text: String,
    /// It counts, under the leniency asked for.
    pub counts: bool,
}

/// Spells out how content differs from a file (from an empty one if there is none).
pub fn difference(
    cx: &Cx,
    old: Option<&Path>,
    new: &Content,
    lenient: &Lenient,
) -> Result<Difference> {
    let old = old.map_or(Content::Bytes(Vec::new()), |path| Content::File(path.to_owned()));
    let binary = |content: &Content| -> Result<bool> {
        let head = head(&mut *content.open(cx)?).map_err(|error| content.unreadable(error))?;
        Ok(is_binary(&head))
    };
    let fixed = |text: &str| Difference { text: text.to_owned(), counts: true };
    match (binary(&old)?, binary(new)?) {
        (true, true) => return Ok(fixed("Replace binary file")),
        (true, false) => return Ok(fixed("Replace binary file with text file")),
        (false, true) => return Ok(fixed("Replace text file with binary file")),
        (false, false) => {}
    }
    let (old_size, new_size) = (old.size(cx)?, new.size(cx)?);
    if old_size > DIFF_LIMIT || new_size > DIFF_LIMIT {
        // differs: genuine Salt reads both files whole and may compare for hours.
        return Ok(fixed(&format!(
            "Replace {old_size} bytes with {new_size} bytes (too large to show a diff)"
        )));
    }
    let (old, new) = (old.read(cx)?, new.read(cx)?);
    Ok(difference_of(&old, &new, lenient))
}

/// As [`difference`], of two contents in memory that are text.
pub fn difference_of(old: &[u8], new: &[u8], lenient: &Lenient) -> Difference {
    let lines = |bytes| -> Vec<_> { lines_at_newline(bytes).into_iter().map(decode).collect() };
    let lines = diff::unified_lines(&lines(old), &lines(new), diff::Layout::default());
    let counts = if lenient.is_on() { lenient.counts(&lines) } else { !lines.is_empty() };
    Difference { text: lines.concat(), counts }
}

/// Returns the mode of a source, for `mode: keep`; `None` when nobody knows it.
pub fn mode_of_source(cx: &Cx, source: &str, saltenv: &str) -> Result<Option<u32>> {
    Ok(match scheme_of(source).as_str() {
        "salt" => {
            let (path, env) = parse_salt(source);
            let stat = cx.files.stat(&path, env.as_deref().unwrap_or(saltenv))?;
            let mode = stat.and_then(|stat| match stat.items_of_sequence() {
                Some(parts) => parts.first()?.as_int(),
                None => stat.get("st_mode").or_else(|| stat.get("mode"))?.as_int(),
            });
            mode.and_then(|mode| u32::try_from(mode).ok()).map(|mode| mode & 0o7777)
        }
        "file" | "" => {
            let path = local_path(source);
            cx.host.stat_if_there(Path::new(&path), true)?.map(|stat| stat.mode)
        }
        _ => None,
    })
}

/// Tells whether the folder of a path is there.
pub fn has_folder(cx: &Cx, name: &str) -> Result<bool> {
    Ok(cx.host.is_dir(Path::new(parent(name)))?)
}

/// The names of a `context` or `defaults` argument.
pub fn names_of(value: Option<&Value>, what: &str) -> Result<Dict> {
    match value {
        None | Some(Value::Null) => Ok(Dict::new()),
        Some(Value::Dict(dict)) => Ok(dict.clone()),
        Some(value) if !value.truthy() => Ok(Dict::new()),
        // A list of one-key dicts is how SLS files often spell it.
        Some(_) => Err(Error::failed(format!("{what} must be formed as a dict"))),
    }
}
