//! `archive`: make, list and unpack archives, by the programs `tar`, `gzip`, `zip`, `unzip`, `rar`.
//!
//! [`contents`] is what the state `archive.extracted` compares with the disk. GNU tar finds out the
//! compression by itself.
//!
//! differs: genuine Salt reads zip files by itself; here `zip` and `unzip` must be installed.

use std::path::Path;

use halite_spec::{Args, Command, Cx, Error, Result, Strings, function, module};
use halite_value::{Dict, Value, entries, str_repr};

use crate::file::{
    content::render,
    paths::{expand_user, file_name},
};

module! {
    /// Make, list and unpack archives.
    "archive": tar, gzip, gunzip, cmd_zip, zip, cmd_unzip, unzip, is_encrypted, rar, unrar, list,
}

/// How `unzip` ends when nothing could be unpacked with the password.
const BAD_PASSWORD: i32 = 82;

/// The formats Salt knows.
pub const FORMATS: [&str; 3] = ["tar", "rar", "zip"];

/// Guesses the format of an archive by its name.
pub fn guess_format(name: &str) -> Option<&'static str> {
    let name = name.split(['?', '#']).next().unwrap_or(name).to_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(&[".zip"]) {
        Some("zip")
    } else if ends(&[".rar"]) {
        Some("rar")
    } else if ends(&[".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tlz", ".tzst"])
        || name.rsplit_once('.').is_some_and(|(stem, _)| stem.ends_with(".tar"))
    {
        Some("tar")
    } else {
        None
    }
}

/// What an archive holds; folders end in a slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub dirs: Vec<String>,
    pub files: Vec<String>,
    pub links: Vec<String>,
    /// A password is needed to unpack it.
    pub encrypted: bool,
}

impl Contents {
    /// The names that stand at the top.
    pub fn top(names: &[String]) -> Vec<String> {
        let mut top: Vec<String> = names
            .iter()
            .filter(|name| !name.trim_end_matches('/').contains('/'))
            .cloned()
            .collect();
        top.sort();
        top.dedup();
        top
    }

    /// The folders at the top, named by the archive or not.
    pub fn top_dirs(&self) -> Vec<String> {
        let names = [&self.dirs, &self.files, &self.links].into_iter().flatten();
        let tops = names.filter_map(|name| name.split_once('/'));
        let mut tops: Vec<String> = tops.map(|(top, _)| format!("{top}/")).collect();
        tops.sort();
        tops.dedup();
        tops
    }

    /// All names, sorted.
    pub fn all(&self) -> Vec<String> {
        let mut all = [&self.dirs[..], &self.files, &self.links].concat();
        all.sort();
        all
    }

    fn add(&mut self, kind: char, name: &str, strip: usize) {
        // tar and unzip put what an archive has at the root below the folder all the same.
        let mut rest = name.trim_start_matches('/');
        for _ in 0..strip {
            rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        }
        if rest.is_empty() || rest == "/" {
            return;
        }
        let inner = rest.trim_end_matches('/');
        let list = match kind {
            'd' => &mut self.dirs,
            'l' => &mut self.links,
            _ => &mut self.files,
        };
        let shown = if kind == 'd' { format!("{inner}/") } else { inner.to_owned() };
        if !list.contains(&shown) {
            list.push(shown);
        }
    }
}

/// How many parts `--strip-components` of these options takes off each name.
pub fn strip_of(options: &str) -> usize {
    let mut words = options.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let Some(rest) = word.strip_prefix("--strip") else { continue };
        let rest = rest.strip_prefix("-components").unwrap_or(rest);
        let number = match rest.strip_prefix('=') {
            Some(number) => Some(number),
            None => words.peek().copied(),
        };
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            return number;
        }
    }
    0
}

/// Looks into an archive.
pub fn contents(
    cx: &Cx,
    path: &str,
    format: &str,
    options: Option<&str>,
    strip: usize,
) -> Result<Contents> {
    let mut found = Contents::default();
    match format {
        "tar" => {
            // Options are for what tar cannot read by itself.
            let run = |verbose: bool, options: &str| -> Result<Option<String>> {
                let more: Vec<&str> = options.split_whitespace().collect();
                let command = Command::line(["tar"])
                    .args(more)
                    .arg(if verbose { "-tv" } else { "-t" })
                    .arg("--quoting-style=literal")
                    .arg("-f")
                    .arg(path);
                let output = cx.host.run(&command.query())?;
                Ok(output.ok().then(|| output.stdout_text()))
            };
            let list = |verbose: bool| -> Result<String> {
                let text = match (run(verbose, "")?, options) {
                    (None, Some(options)) => run(verbose, options)?,
                    (text, _) => text,
                };
                text.ok_or_else(|| unlisted(path))
            };
            let (plain, verbose) = (list(false)?, list(true)?);
            for (name, line) in plain.lines().zip(verbose.lines()) {
                found.add(line.chars().next().unwrap_or('-'), name, strip);
            }
        }
        "zip" => {
            let output = cx.host.run(&Command::line(["unzip", "-Z1", path]).query())?;
            if !output.ok() {
                return Err(Error::failed(format!("{path} is not a ZIP file")));
            }
            let listed = cx.host.run(&Command::line(["unzip", "-Z", "-s", path]).query())?;
            let listed = listed.stdout_text();
            found.encrypted = listed.lines().any(is_encrypted_entry);
            let names = output.stdout_text();
            let mut modes = modes_of(&listed, names.lines().count());
            for name in names.lines() {
                let is_link = modes.next().is_some_and(|mode| mode.starts_with('l'));
                // Zip archives seldom name the folders their files are in.
                if let Some((folder, rest)) = name.rsplit_once('/')
                    && !rest.is_empty()
                {
                    found.add('d', folder, strip);
                }
                let kind = match name.ends_with('/') {
                    true => 'd',
                    false if is_link => 'l',
                    false => '-',
                };
                found.add(kind, name, strip);
            }
        }
        _ => {
            let output = cx.host.run(&Command::line(["unrar", "lb", "--", path]).query())?;
            if !output.ok() {
                return Err(Error::failed(format!("{path} is not a RAR file")));
            }
            for name in output.stdout_text().lines() {
                found.add('-', name, strip);
            }
        }
    }
    Ok(found)
}

/// Returns the lines of `unzip -Z -s` that are about entries: between two of the whole archive and
/// the sum. None where there are not as many as names, as with names of several lines.
fn modes_of(listed: &str, count: usize) -> impl Iterator<Item = &str> {
    let fits = listed.lines().count() == count + 3;
    listed.lines().skip(2).take(if fits { count } else { 0 })
}

/// Tells whether a line of `unzip -Z -s` is about an encrypted file: `TX` or `Bx` in place of `tx`.
fn is_encrypted_entry(line: &str) -> bool {
    line.starts_with(['-', 'l'])
        && line.split_whitespace().nth(4).is_some_and(|kind| kind.starts_with(['B', 'T']))
}

fn unlisted(path: &str) -> Error {
    Error::failed(format!(
        "Unable to list contents of {path}. If this is an XZ-compressed tar archive, install XZ \
         Utils to enable listing its contents. If it is compressed using something other than XZ, \
         it may be necessary to specify CLI options to decompress the archive. See the \
         documentation for details."
    ))
}

/// Words given as a list or as one text with commas.
fn words(given: Option<&Value>) -> Vec<String> {
    match given {
        None => Vec::new(),
        Some(value) => match value.items_of_sequence() {
            Some(items) => items.iter().map(|item| item.to_str().to_string()).collect(),
            None => {
                let text = value.to_str();
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                parts.map(str::to_owned).collect()
            }
        },
    }
}

/// A complaint about an archive, with where it lies, as Salt adds it.
fn located(text: &str, path: &str) -> String {
    format!("{text}. Additional info follows:\n\narchive location:\n    {path}")
}

/// Renders the arguments with a template engine, as Salt's `template` argument asks.
fn rendered(cx: &Cx, template: Option<&str>, texts: Vec<String>) -> Result<Vec<String>> {
    let Some(engine) = template.filter(|engine| !engine.is_empty()) else { return Ok(texts) };
    let one = |text| match render(cx, engine, text, None, &cx.saltenv(), Dict::new()) {
        Err(Error::Failed(text)) if text.starts_with("Specified template format ") => {
            let text = format!("Attempted to render file paths with unavailable engine {engine}");
            Err(Error::failed(text))
        }
        other => other,
    };
    texts.into_iter().map(one).collect()
}

/// Runs a program; returns what it printed, by lines.
fn lines(cx: &Cx, mut command: Command, runas: Option<String>) -> Result<Vec<String>> {
    command.user = runas.filter(|user| !user.is_empty());
    command.merge_stderr = true;
    let output = cx.host.run(&command)?;
    if !output.ok() {
        cx.job.set_retcode(i64::from(output.code));
    }
    let text = output.stdout_text();
    let text = text.trim_end();
    if text.is_empty() { Ok(Vec::new()) } else { Ok(text.split('\n').map(str::to_owned).collect()) }
}

fn trimmed(mut names: Vec<String>, trim: Option<&Value>) -> Vec<String> {
    match trim {
        Some(Value::Bool(true)) => names.truncate(100),
        Some(Value::Int(most)) => names.truncate(usize::try_from(*most).unwrap_or(0)),
        _ => {}
    }
    names
}

/// Run `tar`: make, list or unpack an archive.
///
/// ```console
/// $ salt '*' archive.tar cjvf /tmp/salt.tar.bz2 /tmp/file_1,/tmp/file_2
/// ```
#[function]
pub fn tar(
    cx: &Cx,
    /// The options, with or without a dash.
    options: String,
    /// The archive.
    tarfile: String,
    /// What to put in or take out: a list, or a text with commas.
    sources: Option<Value>,
    /// Change to this folder first.
    dest: Option<String>,
    /// The folder to run in.
    cwd: Option<String>,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Vec<String>> {
    let options = if options.starts_with('-') { options } else { format!("-{options}") };
    let mut texts = vec![tarfile];
    texts.extend(words(sources.as_ref()));
    let texts = rendered(cx, template.as_deref(), texts)?;
    let mut command = Command::new("tar").args(options.split_whitespace());
    let mut texts = texts.into_iter();
    command = command.args(texts.next());
    if let Some(dest) = dest.filter(|dest| !dest.is_empty()) {
        command = command.arg("-C").arg(dest);
    }
    command = command.args(texts);
    command.cwd = cwd.map(Into::into);
    lines(cx, command, runas)
}

/// Compress a file; it gets the ending `.gz`.
///
/// ```console
/// $ salt web1 archive.gzip /srv/backup/site.tar
/// ```
#[function]
pub fn gzip(
    cx: &Cx,
    /// The file.
    sourcefile: String,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The user to run as.
    runas: Option<String>,
    /// Options of the program.
    options: Option<String>,
) -> Result<Vec<String>> {
    by_file(cx, "gzip", sourcefile, template, runas, options)
}

/// Expand a file that `gzip` compressed.
///
/// ```console
/// $ salt web1 archive.gunzip /srv/backup/site.log.gz
/// ```
#[function]
pub fn gunzip(
    cx: &Cx,
    /// The file.
    gzipfile: String,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The user to run as.
    runas: Option<String>,
    /// Options of the program.
    options: Option<String>,
) -> Result<Vec<String>> {
    by_file(cx, "gunzip", gzipfile, template, runas, options)
}

fn by_file(
    cx: &Cx,
    program: &str,
    file: String,
    template: Option<String>,
    runas: Option<String>,
    options: Option<String>,
) -> Result<Vec<String>> {
    let options = options.unwrap_or_default();
    let file = rendered(cx, template.as_deref(), vec![file])?;
    lines(cx, Command::new(program).args(options.split_whitespace()).args(file), runas)
}

/// Make a zip file with the program `zip`.
///
/// ```console
/// $ salt web1 archive.cmd_zip /srv/backup/site.zip /srv/app
/// ```
#[function]
pub fn cmd_zip(
    cx: &Cx,
    /// The archive.
    zip_file: String,
    /// What to put in: a list, or a text with commas.
    sources: Value,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The folder to run in.
    cwd: Option<String>,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Vec<String>> {
    let mut texts = vec![zip_file];
    texts.extend(words(Some(&sources)));
    let texts = rendered(cx, template.as_deref(), texts)?;
    let mut command = Command::new("zip").arg("-r").args(texts);
    command.cwd = cwd.map(Into::into);
    lines(cx, command, runas)
}

/// Make a zip file; return the names put in.
///
/// ```console
/// $ salt web1 archive.zip /srv/backup/site.zip /srv/app
/// ```
#[function]
pub fn zip(
    cx: &Cx,
    /// The archive.
    zip_file: String,
    /// What to put in: a list, or a text with commas.
    sources: Value,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The folder relative names start from.
    cwd: Option<String>,
    /// The user to run as.
    runas: Option<String>,
    /// Allow more than 4 GB; `zip` does by itself.
    #[default(false)]
    zip64: bool,
) -> Result<Vec<String>> {
    let _ = zip64;
    let mut texts = vec![zip_file];
    texts.extend(words(Some(&sources)));
    let texts = rendered(cx, template.as_deref(), texts)?;
    let archive = texts.first().cloned().unwrap_or_default();
    let mut command = Command::line(["zip", "-q", "-r"]).args(texts);
    command.cwd = cwd.map(Into::into);
    command.user = runas;
    let output = cx.host.run(&command)?;
    if !output.ok() {
        let text = format!("{}{}", output.stdout_text(), output.stderr_text());
        return Err(Error::failed(format!(
            "Exception encountered creating zipfile: {}",
            text.trim()
        )));
    }
    let listed = cx.host.run(&Command::line(["unzip", "-Z1", &archive]).query())?;
    Ok(listed.stdout_text().lines().map(str::to_owned).collect())
}

/// What to unpack, and how.
#[derive(Args)]
pub struct Unzip {
    /// The archive.
    zip_file: String,
    /// The folder to unpack into.
    dest: String,
    /// Names to leave out: a list, or a text with commas.
    excludes: Option<Value>,
    /// Options of the program.
    options: Option<String>,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The user to run as.
    runas: Option<String>,
    /// Return at most this many lines; True: 100.
    #[default(Value::Bool(false))]
    trim_output: Value,
    /// The password of an encrypted archive.
    password: Option<String>,
}

/// Unpack a zip file with the program `unzip`.
///
/// ```console
/// $ salt web1 archive.cmd_unzip /srv/backup/site.zip /srv/app
/// ```
#[function]
pub fn cmd_unzip(cx: &Cx, #[group] zip: Unzip) -> Result<Vec<String>> {
    let Unzip { zip_file, dest, excludes, options, template, runas, trim_output, password } = zip;
    let mut command = Command::new("unzip");
    if let Some(password) = password {
        command = command.arg("-P").arg(password);
    }
    if let Some(options) = &options {
        command = command.args(options.split_whitespace());
    }
    let texts = rendered(cx, template.as_deref(), vec![zip_file, dest])?;
    let mut texts = texts.into_iter();
    command = command.args(texts.next()).arg("-d").args(texts);
    let excludes = words(excludes.as_ref());
    if !excludes.is_empty() {
        command = command.arg("-x").args(excludes);
    }
    command.user = runas.filter(|user| !user.is_empty());
    let output = cx.host.run(&command)?;
    if !output.ok() {
        return Err(Error::failed(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()));
    }
    let text = output.stdout_text();
    let names = text.trim_end().lines().map(str::to_owned).collect();
    Ok(trimmed(names, Some(&trim_output)))
}

/// Unpack a zip file; return the names unpacked.
///
/// ```console
/// $ salt web1 archive.unzip /srv/backup/site.zip /srv/app
/// ```
#[function]
pub fn unzip(
    cx: &Cx,
    #[group] zip: Unzip,
    /// Keep the modes of the archive.
    #[default(true)]
    extract_perms: bool,
) -> Result<Vec<String>> {
    let Unzip { zip_file, dest, excludes, options, template, runas, trim_output, password } = zip;
    let texts = rendered(cx, template.as_deref(), vec![zip_file, dest])?;
    let (archive, dest) = (texts.first().cloned().unwrap_or_default(), texts.get(1).cloned());
    let excludes = words(excludes.as_ref());
    let mut command = Command::line(["unzip", "-o", "-q"]);
    if let Some(password) = password {
        command = command.arg("-P").arg(password);
    }
    command = command.args(options.unwrap_or_default().split_whitespace());
    command = command.arg(&archive).arg("-d").args(dest.clone());
    if !excludes.is_empty() {
        command = command.arg("-x").args(&excludes);
    }
    command.user = runas;
    let output = cx.host.run(&command)?;
    if !output.ok() {
        let mut text = format!("{}{}", output.stdout_text(), output.stderr_text());
        // With `-q` the program says nothing of a wrong password.
        if output.code == BAD_PASSWORD {
            let names = cx.host.run(&Command::line(["unzip", "-Z1", &archive]).query())?;
            let names = names.stdout_text();
            let listed = cx.host.run(&Command::line(["unzip", "-Z", "-s", &archive]).query())?;
            let listed = listed.stdout_text();
            let entries = names.lines().zip(modes_of(&listed, names.lines().count()));
            let mut locked = entries.filter(|(_, line)| is_encrypted_entry(line));
            let name = locked.next().map_or_else(String::new, |(name, _)| str_repr(name));
            text = format!("Bad password for file {name}");
        }
        return Err(Error::failed(format!(
            "Exception encountered unpacking zipfile: {}",
            text.trim()
        )));
    }
    let listed = cx.host.run(&Command::line(["unzip", "-Z1", &archive]).query())?;
    let names = listed.stdout_text();
    let names = names.lines().filter(|name| !excludes.iter().any(|out| out == name));
    if !extract_perms {
        // `unzip` always keeps them; these are what anything newly made has.
        let dest = dest.unwrap_or_default();
        for name in names.clone() {
            let mode = if name.ends_with('/') { 0o755 } else { 0o644 };
            let path = Path::new(&dest).join(name);
            if !cx.host.is_link(&path)? {
                cx.host.set_mode(&path, mode)?;
            }
        }
    }
    Ok(trimmed(names.map(str::to_owned).collect(), Some(&trim_output)))
}

/// Tell whether a zip file needs a password.
///
/// ```console
/// $ salt web1 archive.is_encrypted /srv/backup/site.tar.gz
/// ```
#[function]
pub fn is_encrypted(
    cx: &Cx,
    /// The archive: a path or an address.
    name: String,
    /// Fetch it anew.
    #[default(false)]
    clean: bool,
    /// The environment of a salt:// address.
    #[default("base".to_owned())]
    saltenv: String,
    /// The hash it must have.
    source_hash: Option<String>,
    /// Ask the server whether it changed.
    #[default(false)]
    use_etag: bool,
) -> Result<bool> {
    let _ = (clean, source_hash, use_etag);
    let path = local(cx, &name, &saltenv)?;
    let output = cx.host.run(&Command::line(["unzip", "-Z", "-v", &path]).query())?;
    if !output.ok() {
        return Err(Error::failed(located(&format!("{path} is not a ZIP file"), &path)));
    }
    let text = output.stdout_text();
    let secured = |line: &str| {
        line.trim().strip_prefix("file security status:").map(str::trim) == Some("encrypted")
    };
    Ok(text.lines().any(secured))
}

/// Fetches an archive; returns its path here.
fn local(cx: &Cx, name: &str, saltenv: &str) -> Result<String> {
    let path = match name.contains("://") && !name.starts_with("file://") {
        true => {
            let missing = || Error::failed(format!("Failed to cache {name}"));
            cx.files.cache(name, saltenv)?.ok_or_else(missing)?.display().to_string()
        }
        false => expand_user(cx, name.strip_prefix("file://").unwrap_or(name)),
    };
    if !cx.host.exists(Path::new(&path))? {
        return Err(Error::failed(format!("{path} does not exist")));
    }
    Ok(path)
}

/// Make a rar file.
///
/// ```console
/// $ salt web1 archive.rar /srv/backup/site.rar /srv/app
/// ```
#[function]
pub fn rar(
    cx: &Cx,
    /// The archive.
    rarfile: String,
    /// What to put in: a list, or a text with commas.
    sources: Value,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The folder to run in.
    cwd: Option<String>,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Vec<String>> {
    if cx.host.which("rar").is_none() {
        return Err(Error::no_program(&["rar"]));
    }
    let mut texts = vec![rarfile];
    texts.extend(words(Some(&sources)));
    let texts = rendered(cx, template.as_deref(), texts)?;
    let mut command = Command::new("rar").args(["a", "-idp"]).args(texts);
    command.cwd = cwd.map(Into::into);
    lines(cx, command, runas)
}

/// Unpack a rar file.
///
/// ```console
/// $ salt web1 archive.unrar /srv/backup/site.rar /srv/app
/// ```
#[function]
pub fn unrar(
    cx: &Cx,
    /// The archive.
    rarfile: String,
    /// The folder to unpack into.
    dest: String,
    /// Names to leave out: a list, or a text with commas.
    excludes: Option<Value>,
    /// A template engine for the arguments.
    template: Option<String>,
    /// The user to run as.
    runas: Option<String>,
    /// Return at most this many lines; True: 100.
    #[default(Value::Bool(false))]
    trim_output: Value,
) -> Result<Vec<String>> {
    if cx.host.which("unrar").is_none() && cx.host.which("rar").is_none() {
        return Err(Error::no_program(&["unrar", "rar"]));
    }
    let texts = rendered(cx, template.as_deref(), vec![rarfile, dest])?;
    let mut texts = texts.into_iter();
    let mut command = Command::new("unrar").args(["x", "-idp"]).args(texts.next());
    for name in words(excludes.as_ref()) {
        command = command.arg("-x").arg(name);
    }
    Ok(trimmed(lines(cx, command.args(texts), runas)?, Some(&trim_output)))
}

/// List what an archive holds.
///
/// ```console
/// $ salt '*' archive.list salt://foo.tar.gz verbose=True
/// ```
#[function]
pub fn list(
    cx: &Cx,
    /// The archive: a path or an address.
    name: String,
    /// `tar`, `zip` or `rar`; guessed by the name if not given.
    archive_format: Option<String>,
    /// Options of `tar`.
    options: Option<String>,
    /// Parts to take off the front of each name.
    strip_components: Option<i64>,
    /// Remove the cached copy afterwards.
    #[default(false)]
    clean: bool,
    /// Return folders, files and links apart.
    #[default(false)]
    verbose: bool,
    /// The environment of a salt:// address.
    #[default("base".to_owned())]
    saltenv: String,
    /// The hash it must have.
    source_hash: Option<String>,
    /// Ask the server whether it changed.
    #[default(false)]
    use_etag: bool,
) -> Result<Value> {
    let _ = (clean, source_hash, use_etag);
    let path = local(cx, &name, &saltenv)?;
    let format = match archive_format.filter(|format| !format.is_empty()) {
        Some(format) if FORMATS.contains(&format.as_str()) => format,
        Some(format) => {
            return Err(Error::failed(format!("Unsupported archive format '{format}'")));
        }
        None => guess_format(file_name(&name)).map(str::to_owned).ok_or_else(|| {
            let text = "Unable to guess archive format, please pass an 'archive_format' argument";
            Error::failed(located(text, &name))
        })?,
    };
    let options = options.unwrap_or_default();
    let strip = strip_components.and_then(|count| usize::try_from(count).ok());
    let strip = strip.unwrap_or_else(|| strip_of(&options));
    let found = contents(cx, &path, &format, Some(&options), strip)?;
    if !verbose {
        return Ok(found.all().into());
    }
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    Ok(entries! {
        "dirs" => sorted(&found.dirs),
        "files" => sorted(&found.files),
        "links" => sorted(&found.links),
        "top_level_dirs" => found.top_dirs(),
        "top_level_files" => Contents::top(&found.files),
        "top_level_links" => Contents::top(&found.links),
    }
    .into())
}

/// How an archive is unpacked.
#[derive(Debug)]
pub struct Extract<'a> {
    pub options: &'a str,
    pub password: Option<&'a str>,
    /// Keep the modes of a zip file.
    pub perms: bool,
    /// Of a zip file: what the program says, not the names alone.
    pub as_told: bool,
}

/// Unpacks an archive below a folder; returns the names, as Salt tells them.
pub fn extract(
    cx: &Cx,
    path: &str,
    format: &str,
    dest: &str,
    how: &Extract,
) -> Result<Vec<String>> {
    let options = how.options;
    if format == "zip" {
        let options = (!options.is_empty()).then(|| options.to_owned());
        let password = how.password.map(str::to_owned);
        let (path, dest) = (path.to_owned(), dest.to_owned());
        let zip = Unzip {
            zip_file: path,
            dest,
            excludes: None,
            options,
            template: None,
            runas: None,
            trim_output: false.into(),
            password,
        };
        return if how.as_told { cmd_unzip(cx, zip) } else { unzip(cx, zip, how.perms) };
    }
    let command = match format {
        "tar" => {
            // A bare word of options is tar's old style: `xvz`.
            let mut words: Vec<String> = Vec::new();
            for word in options.split_whitespace() {
                let bare = !word.starts_with('-') && words.is_empty();
                let word = if bare {
                    format!("-{}", word.replace(['x', 'f', 'v'], ""))
                } else {
                    word.into()
                };
                if word != "-" {
                    words.push(word);
                }
            }
            Command::line(["tar"]).args(words).args(["-xv", "-f", path, "-C", dest])
        }
        _ => Command::line(["unrar", "x", "-idp", "-o+", "--", path, dest]),
    };
    let output = cx.host.run(&command)?;
    if !output.ok() {
        return Err(Error::failed(output.stderr_text().trim().to_owned()));
    }
    let text = output.stdout_text();
    let name = |name: &str| match options.is_empty() {
        true => name.trim_end_matches('/').to_owned(),
        false => name.to_owned(),
    };
    Ok(text.lines().map(name).collect())
}

/// The names of an argument that is a text or a list of them.
pub fn names_of(names: Option<&Strings>) -> Vec<String> {
    names.map(|names| names.0.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_files_have_capitals() {
        let line =
            |kind: &str| format!("-rw-r--r--  3.0 unx        4 {kind} stor 20-Jan-01 00:00 t/one");
        for (kind, expected) in [("TX", true), ("Bx", true), ("tx", false), ("bX", false)] {
            assert_eq!(is_encrypted_entry(&line(kind)), expected, "{kind}");
        }
        assert!(!is_encrypted_entry("1 file, 4 bytes uncompressed, TX bytes compressed:  0.0%"));
    }

    fn check_format(name: &str, expected: Option<&str>) {
        assert_eq!(guess_format(name), expected, "{name}");
    }

    #[test]
    fn formats_are_guessed() {
        check_format("a.tar", Some("tar"));
        check_format("a.tar.gz", Some("tar"));
        check_format("a.TGZ", Some("tar"));
        check_format("http://x/a.tar.zst?x=1", Some("tar"));
        check_format("a.zip", Some("zip"));
        check_format("a.rar", Some("rar"));
        check_format("a.gz", None);
    }

    #[test]
    fn stripping_is_read_from_options() {
        assert_eq!(strip_of("--strip-components=2"), 2);
        assert_eq!(strip_of("-v --strip 1"), 1);
        assert_eq!(strip_of("--strip-components 3 z"), 3);
        assert_eq!(strip_of("xvf"), 0);
    }

    #[test]
    fn folders_at_the_top_need_not_be_named() {
        let mut found = Contents::default();
        found.add('-', "top/sub/b", 0);
        assert_eq!(found.all(), ["top/sub/b"]);
        assert_eq!(found.top_dirs(), ["top/"]);
        let mut found = Contents::default();
        found.add('-', "top/sub/b", 1);
        found.add('d', "top/", 1);
        assert_eq!((found.all(), found.top_dirs()), (vec!["sub/b".into()], vec!["sub/".into()]));
        let mut found = Contents::default();
        found.add('d', "./", 0);
        found.add('-', "./a/b", 0);
        assert_eq!(found.all(), ["./", "./a/b"]);
        assert_eq!(found.top_dirs(), ["./"]);
    }
}
