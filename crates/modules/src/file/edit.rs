//! Simple editing: appending, prepending, commenting, writing, `sed` and `patch`.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Write};
use halite_value::{Dict, Value};

use super::{
    diff,
    paths::{expand_user, real},
    read::run_all,
    regex::{self, Re},
    replace::{Backup, bad_pattern, binary_refused, commit},
    text::{decode, is_binary, lines_at_newline, read_to_edit},
};

/// Splits a text into words as a shell does.
pub fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|&c| c != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => match chars.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => word.push('\\'),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The lines given to `append`, `prepend` and `write`: positions, or `args` by name.
fn lines_of(rest: &Rest) -> Vec<String> {
    let lines = match rest.kwargs.get("args") {
        Some(Value::List(list)) => list.to_vec(),
        Some(value) => vec![value],
        None => rest.args.clone(),
    };
    lines.iter().map(|line| line.to_str().to_string()).collect()
}

/// Returns what must be added to a file so that these lines are its last.
pub fn appendix(content: &[u8], lines: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    if !content.is_empty() && !content.ends_with(b"\n") {
        out.push(b'\n');
    }
    for line in lines {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out
}

/// Add lines to the end of a file.
///
/// ```console
/// $ salt '*' file.append /etc/motd "With all thine offerings thou shalt offer salt." "Salt is what makes things taste bad."
/// ```
#[function]
pub fn append(
    cx: &Cx,
    /// The file; it must be there.
    path: String,
    /// The lines; or a list as `args`.
    args: Rest,
) -> Result<String> {
    let path = expand_user(cx, &path);
    let lines = lines_of(&args);
    let content = cx.host.read(Path::new(&path))?;
    cx.host.append(Path::new(&path), &appendix(&content, &lines))?;
    Ok(format!("Wrote {} lines to \"{path}\"", lines.len()))
}

/// Add lines to the start of a file.
///
/// ```console
/// $ salt '*' file.prepend /etc/motd args="['With all thine offerings thou shalt offer salt.']"
/// ```
#[function]
pub fn prepend(
    cx: &Cx,
    /// The file.
    path: String,
    /// The lines; or a list as `args`.
    args: Rest,
) -> Result<String> {
    let path = expand_user(cx, &path);
    let lines = lines_of(&args);
    let content = cx.host.read_if_there(Path::new(&path))?.unwrap_or_default();
    let mut new = appendix(b"", &lines);
    new.extend_from_slice(&content);
    cx.host.write(Path::new(&path), &new, &Write::default())?;
    Ok(format!("Prepended {} lines to \"{path}\"", lines.len()))
}

/// Write lines to a file, replacing what it held.
///
/// ```console
/// $ salt web1 file.write /srv/app/app.conf 'port=8080'
/// ```
#[function]
pub fn write(
    cx: &Cx,
    /// The file.
    path: String,
    /// The lines; or a list as `args`.
    args: Rest,
) -> Result<String> {
    let path = expand_user(cx, &path);
    let lines = lines_of(&args);
    cx.host.write(Path::new(&path), &appendix(b"", &lines), &Write::default())?;
    Ok(format!("Wrote {} lines to \"{path}\"", lines.len()))
}

/// Write bytes into the middle of a file; returns how many.
///
/// ```console
/// $ salt web1 file.seek_write /srv/app/app.conf 'port=8080' 0
/// ```
#[function]
pub fn seek_write(
    cx: &Cx,
    /// The file.
    path: String,
    /// What to write.
    data: Value,
    /// Where.
    offset: u64,
) -> Result<usize> {
    let path = expand_user(cx, &path);
    let data = data.as_bytes().map_or_else(|| data.to_str().as_bytes().to_vec(), <[u8]>::to_vec);
    let mut content = cx.host.read(Path::new(&path))?;
    let start = usize::try_from(offset).map_err(|_| Error::invalid("the offset is too large"))?;
    if content.len() < start + data.len() {
        content.resize(start + data.len(), 0);
    }
    content[start..start + data.len()].copy_from_slice(&data);
    cx.host.write(Path::new(&path), &content, &Write::default())?;
    Ok(data.len())
}

/// Cut a file (or fill it up with zeros) to a length.
///
/// ```console
/// $ salt web1 file.truncate /srv/app/app.conf 24
/// ```
#[function]
pub fn truncate(
    cx: &Cx,
    /// The file.
    path: String,
    /// The length in bytes.
    length: u64,
) -> Result<Value> {
    let path = expand_user(cx, &path);
    let mut content = cx.host.read(Path::new(&path))?;
    let length = usize::try_from(length).map_err(|_| Error::invalid("the length is too large"))?;
    content.resize(length, 0);
    cx.host.write(Path::new(&path), &content, &Write::default())?;
    Ok(Value::Null)
}

/// Commented or uncommented lines of a file.
#[derive(Clone, Debug)]
pub struct Commented {
    pub new: Vec<u8>,
    /// The lines that change, before and after.
    pub lines: Vec<(String, String)>,
}

/// Comments out (or in) the lines that match.
pub fn comment_lines(content: &[u8], regex: &str, char: &str, on: bool) -> Result<Commented> {
    let middle = regex.trim_start_matches('^').trim_end_matches('$');
    let end = if regex.ends_with('$') { "$" } else { "" };
    let pattern = if on {
        let start = if regex.starts_with('^') { "^" } else { "" };
        format!("{start}({middle}){end}")
    } else {
        format!(r"^{char}\s*({middle}){end}")
    };
    let re = Re::new(&pattern, 0).map_err(bad_pattern)?;
    let mut done = Commented { new: Vec::with_capacity(content.len()), lines: Vec::new() };
    for raw in lines_at_newline(content) {
        let line = decode(raw);
        if !re.starts(&line).map_err(bad_pattern)? {
            done.new.extend_from_slice(raw);
            continue;
        }
        let new = if on {
            format!("{char}{line}")
        } else {
            line.trim_start_matches(|c| char.contains(c)).to_owned()
        };
        done.new.extend_from_slice(new.as_bytes());
        done.lines.push((line.into_owned(), new));
    }
    Ok(done)
}

/// Comment lines of a file out or in; returns the difference, False if no line matches.
///
/// ```console
/// $ salt web1 file.comment_line /srv/app/app.conf '^port='
/// ```
#[function]
pub fn comment_line(
    cx: &Cx,
    /// The file.
    path: String,
    /// A regular expression for the lines.
    regex: String,
    /// What begins a comment.
    #[default("#".to_owned())]
    char: String,
    /// Comment out; False takes the comment sign away.
    #[default(true)]
    cmnt: bool,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
) -> Result<Value> {
    let path = real(cx, &expand_user(cx, &path))?;
    if !cx.host.is_file(Path::new(&path))? {
        return Err(Error::invalid(format!("File not found: {path}")));
    }
    let content = cx.host.read(Path::new(&path))?;
    if is_binary(&content[..content.len().min(512)]) {
        return Err(binary_refused(&path));
    }
    let done = comment_lines(&content, &regex, &char, cmnt)?;
    if done.lines.is_empty() {
        return Ok(false.into());
    }
    commit(cx, &path, &done.new, backup.0.as_deref())?;
    let (old, new): (Vec<_>, Vec<_>) = done.lines.into_iter().unzip();
    Ok(diff::unified(&old, &new).into())
}

/// Comment lines of a file out.
///
/// ```console
/// $ salt web1 file.comment /srv/app/app.conf '^port='
/// ```
#[function]
pub fn comment(
    cx: &Cx,
    /// The file.
    path: String,
    /// A regular expression for the lines.
    regex: String,
    /// What begins a comment.
    #[default("#".to_owned())]
    char: String,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
) -> Result<Value> {
    comment_line(cx, path, regex, char, true, backup)
}

/// Take the comment sign from lines of a file.
///
/// ```console
/// $ salt web1 file.uncomment /srv/app/app.conf '^port='
/// ```
#[function]
pub fn uncomment(
    cx: &Cx,
    /// The file.
    path: String,
    /// A regular expression for the lines, without the sign.
    regex: String,
    /// What begins a comment.
    #[default("#".to_owned())]
    char: String,
    /// The ending of the copy kept; False for none.
    #[default(Backup(Some(".bak".to_owned())))]
    backup: Backup,
) -> Result<Value> {
    comment_line(cx, path, regex, char, false, backup)
}

fn sed_escaped(text: &str, all: bool) -> String {
    let text = text.replace('\'', "'\"'\"'").replace('/', "\\/");
    if !all {
        return text;
    }
    let escaped = text.chars().flat_map(|c| {
        let sign = "^.[$()|*+?{".contains(c).then_some('\\');
        sign.into_iter().chain([c])
    });
    escaped.collect()
}

/// Edit a file with the `sed` program.
///
/// ```console
/// $ salt web1 file.sed /srv/app/app.conf 'port=80' 'port=8080'
/// ```
#[function]
pub fn sed(
    cx: &Cx,
    /// The file.
    path: String,
    /// The pattern.
    before: Value,
    /// What to put there.
    after: Value,
    /// Only on lines that match this.
    #[default(String::new())]
    limit: String,
    /// The ending of the copy kept.
    #[default(".bak".to_owned())]
    backup: String,
    /// Options of `sed`.
    #[default("-r -e".to_owned())]
    options: String,
    /// Flags of the replacement.
    #[default("g".to_owned())]
    flags: String,
    /// Take special characters as they are.
    #[default(false)]
    escape_all: bool,
    /// Only on lines that do not match `limit`.
    #[default(false)]
    negate_match: bool,
) -> Result<Value> {
    let path = expand_user(cx, &path);
    if !cx.host.exists(Path::new(&path))? {
        return Ok(false.into());
    }
    let before = sed_escaped(&before.to_str(), escape_all);
    let after = sed_escaped(&after.to_str(), escape_all);
    let limit = sed_escaped(&limit, escape_all);
    let limit = if limit.is_empty() { limit } else { format!("/{limit}/ ") };
    let negate = if negate_match { "!" } else { "" };
    let command = Command::new("sed")
        .arg(format!("-i{backup}"))
        .args(shell_words(&options))
        .arg(format!("{limit}{negate}s/{before}/{after}/{flags}"))
        .arg(path);
    Ok(Value::Dict(run_all(cx, &cx.host.run(&command)?)))
}

/// Tell whether `sed` finds a pattern in a file.
///
/// ```console
/// $ salt '*' file.sed_contains /etc/crontab 'mymaintenance.sh'
/// ```
#[function]
pub fn sed_contains(
    cx: &Cx,
    /// The file.
    path: String,
    /// The pattern.
    text: Value,
    /// Only on lines that match this.
    #[default(String::new())]
    limit: String,
    /// Flags of the replacement.
    #[default("g".to_owned())]
    flags: String,
) -> Result<bool> {
    let path = expand_user(cx, &path);
    if !cx.host.exists(Path::new(&path))? {
        return Ok(false);
    }
    let limit = sed_escaped(&limit, false);
    let limit = if limit.is_empty() { limit } else { format!("/{limit}/ ") };
    let before = sed_escaped(&text.to_str(), false);
    let command = Command::new("sed")
        .args(["-n", "-r", "-e"])
        .arg(format!("{limit}s/{before}/$/p{flags}"))
        .arg(path)
        .query();
    Ok(!cx.host.run(&command)?.stdout.is_empty())
}

/// Replace in a file as `sed` does, without that program; the old file is kept.
///
/// ```console
/// $ salt '*' file.psed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'
/// ```
#[function]
pub fn psed(
    cx: &Cx,
    /// The file.
    path: String,
    /// The pattern.
    before: Value,
    /// What to put there.
    after: Value,
    /// Only what follows this.
    #[default(String::new())]
    limit: String,
    /// The ending of the copy kept.
    #[default(".bak".to_owned())]
    backup: String,
    /// `g` for all matches; letters of Python's flags.
    #[default("gMS".to_owned())]
    flags: String,
    /// Take special characters as they are.
    #[default(false)]
    escape_all: bool,
    /// Work line by line.
    #[default(false)]
    multi: bool,
) -> Result<Value> {
    let _ = multi;
    let path = expand_user(cx, &path);
    let mut bits = 0;
    for flag in flags.chars().filter(|flag| *flag != 'g') {
        bits |= match flag {
            'I' => regex::IGNORECASE,
            'M' => regex::MULTILINE,
            'S' => regex::DOTALL,
            'X' => regex::VERBOSE,
            'L' | 'U' => 0,
            other => {
                return Err(Error::raised("KeyError", format!("'{other}'")));
            }
        };
    }
    let re = Re::new(&sed_escaped(&before.to_str(), escape_all), bits).map_err(bad_pattern)?;
    let text = read_to_edit(cx, Path::new(&path))?;
    let from = match text.find(&limit) {
        Some(at) if !limit.is_empty() => at + limit.len(),
        _ => 0,
    };
    let count = usize::from(!flags.contains('g'));
    let (new, _) = re.replace(&text[from..], &after.to_str(), count).map_err(bad_pattern)?;
    commit(
        cx,
        &path,
        new.as_bytes(),
        Some(&backup).filter(|end| !end.is_empty()).map(std::string::String::as_str),
    )?;
    Ok(Value::Null)
}

/// What `patch` is told unless the caller chose otherwise.
struct Usual {
    option: &'static str,
    /// Words with which the caller chooses.
    words: &'static [&'static str],
    /// How words begin with which the caller chooses.
    starts: &'static [&'static str],
}

impl Usual {
    fn unless_chosen(&self, options: &[String]) -> Option<String> {
        let chosen = options.iter().any(|own| {
            self.words.contains(&own.as_str()) || self.starts.iter().any(|s| own.starts_with(s))
        });
        (!chosen).then(|| self.option.to_owned())
    }
}

/// A patch that is there already is left alone; no `.rej` files are strewn about.
const FOR_ALL: [Usual; 2] = [
    Usual { option: "--forward", words: &["-N", "--forward"], starts: &[] },
    Usual { option: "--reject-file=-", words: &["-r"], starts: &["-r ", "--reject-file"] },
];
/// Names in a patch of a folder are relative to the folder.
const FOR_FOLDERS: Usual = Usual { option: "--strip=0", words: &[], starts: &["-p", "--strip="] };

/// The command line of `patch`.
pub fn patch_command(
    cx: &Cx,
    file: &str,
    patch: &str,
    options: &[String],
    dry: bool,
) -> Result<Command> {
    let program = cx.host.which("patch").ok_or_else(|| {
        Error::failed("patch executable not found. Is the distribution's patch package installed?")
    })?;
    let rehearsal = match cx.grain_str("kernel").as_str() {
        _ if !dry => None,
        "FreeBSD" | "OpenBSD" => Some("-C"),
        _ => Some("--dry-run"),
    };
    let target: Vec<String> = if cx.host.is_dir(Path::new(file))? {
        let folder = ["-d".to_owned(), file.to_owned()];
        folder.into_iter().chain(FOR_FOLDERS.unless_chosen(options)).collect()
    } else {
        vec![file.to_owned()]
    };
    Ok(Command::new(program)
        .args(options)
        .args(rehearsal)
        .args(FOR_ALL.iter().filter_map(|usual| usual.unless_chosen(options)))
        .args(["-i", patch])
        .args(target))
}

/// Apply a patch with the `patch` program.
///
/// ```console
/// $ salt web1 file.patch /srv/app/app.conf /srv/app/app.patch
/// ```
#[function]
pub fn patch(
    cx: &Cx,
    /// The file or folder to patch.
    originalfile: String,
    /// The patch.
    patchfile: String,
    /// Options of `patch`: a text or a list.
    #[default(Value::str(""))]
    options: Value,
    /// Change nothing.
    #[default(false)]
    dry_run: bool,
) -> Result<Dict> {
    let options = match options.items_of_sequence() {
        Some(words) => words.iter().map(|word| word.to_str().to_string()).collect(),
        None => shell_words(&options.to_str()),
    };
    let mut command = patch_command(cx, &originalfile, &patchfile, &options, dry_run)?;
    if dry_run {
        command = command.query();
    }
    Ok(run_all(cx, &cx.host.run(&command)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, regex: &str, on: bool, expected: &str) {
        let done = comment_lines(content.as_bytes(), regex, "#", on).unwrap();
        assert_eq!(String::from_utf8(done.new).unwrap(), expected);
    }

    #[test]
    fn comments() {
        check("a\nb\n", "^b", true, "a\n#b\n");
        check("a\n# b\n", "b$", false, "a\n b\n");
        check("#a\n", "a", true, "#a\n");
        check("##a\n", "^#a", false, "a\n");
    }

    #[test]
    fn words() {
        assert_eq!(shell_words(r#"-p1 "a b" 'c d'\ e"#), ["-p1", "a b", "c d e"]);
        assert!(shell_words("  ").is_empty());
    }

    #[test]
    fn sed_escapes() {
        assert_eq!(sed_escaped("a/b.c", false), r"a\/b.c");
        assert_eq!(sed_escaped("a.c", true), r"a\.c");
    }
}
