//! `augeas`: parts of configuration files by the program `augtool`.
//!
//! A file is seen as a tree by means of a *lens*. Commands go to `augtool` as a script; it goes on
//! after a command that failed, so changes are tried first with saving switched off ([`rehearse`]),
//! and done only when all of them could be.
//!
//! Salt drives the library `libaugeas` through Python, and gave the module up with 3008; functions
//! and answers are those of the releases before.

use halite_spec::{Cx, Error, Need, Rest, Result, Strings, function, module};
use halite_value::{Dict, Value, dict, entries};

use crate::cmd::{Options, Ran, plain, shlex};

module! {
    /// Parts of configuration files, by Augeas.
    "augeas", needs = [
        Need::for_library(&["augtool"], "Cannot load augeas_cfg module: augtool is not installed"),
    ]: execute, get, setvalue, match_, remove, ls, tree,
}

/// How `augtool` is started: what it reads, and by which lenses.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Where paths begin that do not begin with a slash: `/files/etc/hosts`.
    pub context: Option<String>,
    /// A lens for the file of the context: `Hosts.lns`. Without one all files that Augeas knows
    /// are read.
    pub lens: Option<String>,
    /// Further folders of lenses.
    pub load_path: Vec<String>,
}

impl Session {
    fn reading(load_path: Option<String>) -> Self {
        Self { load_path: folders(load_path), ..Self::default() }
    }

    /// The file of the context.
    pub fn file(&self) -> Option<&str> {
        let context = self.context.as_deref()?;
        Some(context.strip_prefix("/files").unwrap_or(context))
    }

    fn run(&self, cx: &Cx, script: &str, query: bool) -> Result<Ran> {
        let mut words = vec!["augtool".to_owned()];
        for folder in &self.load_path {
            words.extend(["-I".into(), folder.clone()]);
        }
        if let (Some(lens), Some(file)) = (&self.lens, self.file()) {
            words.extend(["-A".into(), "-t".into(), format!("{lens} incl {file}")]);
        }
        let options = Options {
            stdin: Some(script.to_owned()),
            stdin_raw_newlines: true,
            rstrip: false,
            query,
            ignore_retcode: true,
            ..Options::default()
        };
        plain(cx, words, options)
    }

    /// Runs a script with saving switched off.
    fn try_out(&self, cx: &Cx, script: &str) -> Result<Saved> {
        let script = format!("{script}set /augeas/save noop\n{SAVE}");
        Ok(outcome(&self.run(cx, &script, true)?))
    }

    /// Runs a script and saves, if all of it can be done and something is another then.
    fn save(&self, cx: &Cx, script: &str) -> Result<Saved> {
        match self.try_out(cx, script)? {
            Ok(files) if !files.is_empty() => {
                Ok(outcome(&self.run(cx, &format!("{script}{SAVE}"), false)?))
            }
            other => Ok(other),
        }
    }

    /// A path as `augtool` reads it: whole, and quoted.
    fn path(&self, path: &str) -> String {
        match &self.context {
            Some(context) if !path.starts_with('/') => {
                quoted(&format!("{}/{path}", context.trim_end_matches('/')))
            }
            _ => quoted(path),
        }
    }
}

fn folders(load_path: Option<String>) -> Vec<String> {
    let path = load_path.unwrap_or_default();
    path.split(':').filter(|folder| !folder.is_empty()).map(str::to_owned).collect()
}

fn quoted(word: &str) -> String {
    let mut ret = String::from("\"");
    for char in word.chars() {
        match char {
            '\n' => ret.push_str("\\n"),
            '\t' => ret.push_str("\\t"),
            '"' | '\\' => ret.extend(['\\', char]),
            _ => ret.push(char),
        }
    }
    ret.push('"');
    ret
}

/// What `augtool` says went wrong, on one line.
fn complaint(ran: &Ran) -> String {
    let lines = ran.stderr.lines().map(|line| line.strip_prefix("error: ").unwrap_or(line).trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(": ")
}

/// Turns a command as people write it (`set 1/canonical "web1"`) into one of `augtool`.
fn command(session: &Session, text: &str) -> Result<String, String> {
    let malformed =
        |shown: &str| format!("Invalid formatted command, see debug log for details: {shown}");
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let known = ["set", "setm", "mv", "move", "ins", "insert", "rm", "remove"];
    if !known.contains(&verb) {
        return Err(format!("Command {verb} is not supported (yet)"));
    }
    let shown = if rest.is_empty() { text } else { rest };
    let words = shlex::split(rest).map_err(|_| malformed(shown))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let path = |path: &str| session.path(path);
    Ok(match (verb, words.as_slice()) {
        ("set", [at]) => format!("set {}", path(at)),
        ("set", [at, value]) => format!("set {} {}", path(at), quoted(value)),
        ("setm", [base, sub, value]) => {
            format!("setm {} {} {}", path(base), quoted(sub), quoted(value))
        }
        ("mv" | "move", [from, to]) => format!("mv {} {}", path(from), path(to)),
        ("ins" | "insert", [label, place @ ("before" | "after"), at]) => {
            format!("ins {} {place} {}", quoted(label), path(at))
        }
        ("rm" | "remove", [at]) => format!("rm {}", path(at)),
        _ => return Err(malformed(shown)),
    })
}

/// The files that are (or would be) another, or why there are none.
type Saved = Result<Vec<String>, String>;

/// The commands as a script.
fn script(session: &Session, commands: &[String]) -> Result<String, String> {
    commands.iter().map(|text| Ok(command(session, text)? + "\n")).collect()
}

/// Tries commands without saving. Returns the files that would be another, or why not.
pub fn rehearse(cx: &Cx, session: &Session, commands: &[String]) -> Result<Saved> {
    match script(session, commands) {
        Ok(script) => session.try_out(cx, &script),
        Err(problem) => Ok(Err(problem)),
    }
}

/// Runs commands and saves. Returns the files that are another now, or why not.
pub fn perform(cx: &Cx, session: &Session, commands: &[String]) -> Result<Saved> {
    match script(session, commands) {
        Ok(script) => session.save(cx, &script),
        Err(problem) => Ok(Err(problem)),
    }
}

// `errors` says what `save` leaves out.
const SAVE: &str = "save\nmatch /augeas/events/saved\nerrors\n";

fn outcome(ran: &Ran) -> Saved {
    if ran.retcode == Some(0) {
        let lines = ran.stdout.lines();
        let saved = lines.filter(|line| line.starts_with("/augeas/events/saved"));
        let files = saved.filter_map(|line| line.split_once(" = /files"));
        return Ok(files.map(|(_, file)| file.to_owned()).collect());
    }
    let said = complaint(ran);
    if !said.contains("saving failed") {
        return Err(said);
    }
    // differs: Salt says `No error` here.
    let details = ran.stdout.lines().skip_while(|line| !line.starts_with("Error in"));
    let details = details.map(str::trim).filter(|line| !line.is_empty());
    Err(format!("Augeas.save() failed: {}", details.collect::<Vec<_>>().join(" ")))
}

/// Run Augeas commands: `set`, `setm`, `mv`, `ins` and `rm`. All of them are done, or none.
///
/// ```console
/// $ salt web1 augeas.execute /files/etc/redis/redis.conf commands='["set bind 0.0.0.0"]'
/// ```
#[function]
pub fn execute(
    cx: &Cx,
    /// Where paths begin: a file, with `/files` before it.
    context: Option<String>,
    /// The lens to read that file by, as `Hosts.lns`.
    lens: Option<String>,
    /// The commands.
    #[default(Strings::default())]
    commands: Strings,
    /// Further folders of lenses, with colons between them.
    load_path: Option<String>,
) -> Result<Dict> {
    let session = Session { context, lens, load_path: folders(load_path) };
    Ok(told(perform(cx, &session, &commands.0)?))
}

/// What functions return after a change.
fn told(saved: Saved) -> Dict {
    match saved {
        Ok(_) => entries! { "retval" => true },
        Err(problem) => entries! { "retval" => false, "error" => problem },
    }
}

/// The value of a line as `get`, `match` and `ls` print it: path, and value or none.
fn entry(line: &str) -> Option<(&str, Value)> {
    if let Some((path, value)) = line.split_once(" = ") {
        return Some((path, if value == "(none)" { Value::Null } else { value.into() }));
    }
    let (path, mark) = line.rsplit_once(' ')?;
    match mark {
        "(none)" => Some((path, Value::Null)),
        "(o)" => Some((path, "".into())),
        _ => None,
    }
}

/// Return the value at a path; an empty text when nothing is there.
///
/// ```console
/// $ salt web1 augeas.get /files/etc/hosts/1/ ipaddr
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The path.
    path: String,
    /// The rest of the path.
    #[default(String::new())]
    value: String,
    /// Further folders of lenses, with colons between them.
    load_path: Option<String>,
) -> Result<Value> {
    let mut path = path.trim_end_matches('/').to_owned();
    if !value.is_empty() {
        path = format!("{path}/{}", value.trim_matches('/'));
    }
    let script = format!("get {}\n", quoted(&path));
    let ran = Session::reading(load_path).run(cx, &script, true)?;
    if ran.retcode != Some(0) {
        return Ok(dict! { "error" => complaint(&ran) });
    }
    // Not by lines: a value may have several.
    let said = ran.stdout.strip_suffix('\n').unwrap_or(&ran.stdout);
    let found = entry(said).map(|(_, value)| value);
    Ok(dict! { path.as_str() => found.unwrap_or_else(|| "".into()) })
}

/// Set values at paths.
///
/// ```console
/// $ salt web1 augeas.setvalue /files/etc/hosts/1/canonical localhost
/// $ salt web1 augeas.setvalue prefix=/files/etc/hosts 7/ipaddr 192.0.2.7 7/canonical db1
/// ```
#[function]
pub fn setvalue(
    cx: &Cx,
    /// Paths and values, in turn. `prefix=` comes before every path, `load_path=` names further
    /// folders of lenses.
    args: Rest,
) -> Result<Dict> {
    args.only(&["prefix", "load_path"])?;
    let text = |name: &str| args.kwargs.get(name).map(|value| value.to_str().to_string());
    let (mut prefix, mut load_path) = (text("prefix"), text("load_path"));
    let mut words = Vec::new();
    for word in &args.args {
        let word = word.to_str().to_string();
        if let Some(value) = word.strip_prefix("prefix=") {
            prefix = Some(value.to_owned());
        } else if let Some(value) = word.strip_prefix("load_path=") {
            load_path = Some(value.to_owned());
        } else {
            words.push(word);
        }
    }
    if words.len() % 2 == 1 {
        return Err(Error::invalid("Uneven number of path/value arguments"));
    }
    let mut script = String::new();
    for pair in words.chunks_exact(2) {
        let path = match &prefix {
            Some(prefix) => {
                format!("{}/{}", prefix.trim_end_matches('/'), pair[0].trim_start_matches('/'))
            }
            None => pair[0].clone(),
        };
        script.push_str(&format!("set {} {}\n", quoted(&path), quoted(&pair[1])));
    }
    Ok(told(Session::reading(load_path).save(cx, &script)?))
}

/// Return the paths that an expression matches, with their values.
///
/// ```console
/// $ salt web1 augeas.match /files/etc/services/service-name ssh
/// ```
#[function(name = "match")]
pub fn match_(
    cx: &Cx,
    /// The expression.
    path: String,
    /// Only those with this value.
    #[default(String::new())]
    value: String,
    /// Further folders of lenses, with colons between them.
    load_path: Option<String>,
) -> Result<Dict> {
    let script = format!("match {}\n", quoted(&path));
    let ran = Session::reading(load_path).run(cx, &script, true)?;
    let found = ran.stdout.lines().filter(|line| line.starts_with('/')).filter_map(entry);
    let ret = Dict::new();
    for (path, there) in found {
        if value.is_empty() || there.as_str() == Some(value.as_str()) {
            ret.insert(path, there);
        }
    }
    Ok(ret)
}

/// Remove what an expression matches; tells how many nodes that were.
///
/// ```console
/// $ salt web1 augeas.remove /files/etc/sysctl.conf/net.ipv4.conf.all.log_martians
/// ```
#[function]
pub fn remove(
    cx: &Cx,
    /// The expression.
    path: String,
    /// Further folders of lenses, with colons between them.
    load_path: Option<String>,
) -> Result<Dict> {
    let session = Session::reading(load_path);
    let script = format!("rm {}\n", quoted(&path));
    let counted = session.run(cx, &script, true)?;
    let count = counted.stdout.trim_end().rsplit(' ').next().and_then(|n| n.parse::<i64>().ok());
    let ret = told(session.save(cx, &script)?);
    ret.insert("count", count.unwrap_or(0));
    Ok(ret)
}

/// Return what is right below a path; a name that has more below it ends with a slash.
///
/// ```console
/// $ salt web1 augeas.ls /files/etc/passwd
/// ```
#[function]
pub fn ls(
    cx: &Cx,
    /// The path.
    path: String,
    /// Further folders of lenses, with colons between them.
    load_path: Option<String>,
) -> Result<Dict> {
    let script = format!("ls {}\n", quoted(path.trim_end_matches('/')));
    let ran = Session::reading(load_path).run(cx, &script, true)?;
    let ret = Dict::new();
    for (name, value) in ran.stdout.lines().filter_map(entry) {
        ret.insert(name, value);
    }
    Ok(ret)
}

/// Return everything at and below a path: paths and values.
///
/// ```console
/// $ salt web1 augeas.tree /files/etc/hosts
/// ```
#[function]
pub fn tree(
    cx: &Cx,
    /// The path.
    path: String,
    /// Further folders of lenses, with colons between them.
    load_path: Option<String>,
) -> Result<Dict> {
    // differs: with today's library Salt's function ends with an exception, whatever the path.
    let script = format!("print {}\n", quoted(path.trim_end_matches('/')));
    let ran = Session::reading(load_path).run(cx, &script, true)?;
    let ret = Dict::new();
    for line in ran.stdout.lines().filter(|line| line.starts_with('/')) {
        match line.split_once(" = ") {
            Some((path, value)) => ret.insert(path, unquoted(value)),
            None => ret.insert(line, Value::Null),
        };
    }
    Ok(ret)
}

/// A value as `print` shows it, without quotes and backslashes.
fn unquoted(shown: &str) -> String {
    let inner = shown.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(shown);
    let mut ret = String::new();
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match (char, if char == '\\' { chars.next() } else { None }) {
            (_, Some('n')) => ret.push('\n'),
            (_, Some('t')) => ret.push('\t'),
            (_, Some(other)) => ret.push(other),
            (char, None) => ret.push(char),
        }
    }
    ret
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let session = Session { context: Some("/files/etc/hosts".into()), ..Session::default() };
        let made = command(&session, text);
        assert_eq!(made.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn commands_are_read_as_salt_reads_them() {
        check("set 1/canonical web1", Ok(r#"set "/files/etc/hosts/1/canonical" "web1""#));
        check(r#"set /files/x "a b""#, Ok(r#"set "/files/x" "a b""#));
        check("set 1/canonical", Ok(r#"set "/files/etc/hosts/1/canonical""#));
        check("setm * ipaddr ::1", Ok(r#"setm "/files/etc/hosts/*" "ipaddr" "::1""#));
        check("ins alias after 1", Ok(r#"ins "alias" after "/files/etc/hosts/1""#));
        check("rm 1", Ok(r#"rm "/files/etc/hosts/1""#));
        check("move 1 5", Ok(r#"mv "/files/etc/hosts/1" "/files/etc/hosts/5""#));
        let malformed = "Invalid formatted command, see debug log for details: ";
        check("set", Err(&format!("{malformed}set")));
        check("mv 1", Err(&format!("{malformed}1")));
        check("ins alias sideways 1", Err(&format!("{malformed}alias sideways 1")));
        check("set 5 one two", Err(&format!("{malformed}5 one two")));
        check("frob 1", Err("Command frob is not supported (yet)"));
        check("  set 1 2", Err("Command  is not supported (yet)"));
    }

    #[test]
    fn values_lose_their_quotes() {
        assert_eq!(unquoted(r#""it's \"x\"\tq\n""#), "it's \"x\"\tq\n");
        assert_eq!(entry("/a (none)"), Some(("/a", Value::Null)));
        assert_eq!(entry("/a (o)"), Some(("/a", "".into())));
        assert_eq!(entry("/a = b = c"), Some(("/a", "b = c".into())));
    }
}
