//! `pyenv`: Pythons built and chosen by pyenv.
//!
//! pyenv is a folder with a program in it: the machine's own in `/usr/local/pyenv`, a user's in
//! `~/.pyenv`, or where the option `pyenv.root` says. What goes wrong is an answer here, not an
//! error: False, or nothing.

use std::path::Path;

use halite_spec::{Call, Cx, Result, function, module};
use halite_value::Value;

use crate::{
    cmd::{Options, Ran, execute, plain, shlex},
    file::paths::expand_user,
};

module! {
    /// Build Pythons and choose among them with pyenv.
    "pyenv": install, update, is_installed, install_python, uninstall_python, versions, default,
    list_, rehash, do_, do_with_python,
}

const SOURCE: &str = "https://github.com/yyuu/pyenv.git";

fn option(cx: &Cx, name: &str) -> Result<Option<String>> {
    let value = cx.call("config.option", Call::of([name]))?;
    Ok(value.truthy().then(|| value.to_str().to_string()))
}

/// The folder of pyenv.
fn root(cx: &Cx, runas: Option<&str>) -> Result<String> {
    let path = option(cx, "pyenv.root")?.unwrap_or_else(|| match runas {
        None | Some("root") => "/usr/local/pyenv".into(),
        Some(user) => format!("~{user}/.pyenv"),
    });
    Ok(expand_user(cx, &path))
}

/// The folder asked for, or that of pyenv.
fn folder(cx: &Cx, path: Option<&String>, runas: Option<&str>) -> Result<String> {
    match path.filter(|path| !path.is_empty()) {
        Some(path) => Ok(expand_user(cx, path)),
        None => root(cx, runas),
    }
}

/// Tells whether pyenv is there.
pub fn is_there(cx: &Cx, runas: Option<&str>) -> Result<bool> {
    let program = format!("{}/bin/pyenv", root(cx, runas)?);
    Ok(cx.host.which(&program).is_some())
}

fn as_user(runas: Option<&str>, query: bool) -> Options {
    Options { runas: runas.map(str::to_owned), query, ignore_retcode: query, ..Options::default() }
}

/// Runs pyenv; `None` if there is none.
fn pyenv(
    cx: &Cx,
    runas: Option<&str>,
    env: &[String],
    words: &[&str],
    query: bool,
) -> Result<Option<Ran>> {
    if !is_there(cx, runas)? {
        return Ok(None);
    }
    let root = root(cx, runas)?;
    let mut line = vec!["env".to_owned(), format!("PYENV_ROOT={root}")];
    line.extend(env.iter().cloned());
    line.push(format!("{root}/bin/pyenv"));
    line.extend(words.iter().map(|word| (*word).to_owned()));
    plain(cx, line, as_user(runas, query)).map(Some)
}

/// What pyenv printed, if it is there and was content.
fn said(cx: &Cx, runas: Option<&str>, words: &[&str], query: bool) -> Result<Option<String>> {
    let ran = pyenv(cx, runas, &[], words, query)?;
    Ok(ran.filter(Ran::ok).map(|ran| ran.stdout))
}

fn bare(python: &str) -> &str {
    python.strip_prefix("python-").unwrap_or(python)
}

/// The Pythons that are there.
pub fn installed(cx: &Cx, runas: Option<&str>) -> Result<Vec<String>> {
    let text = said(cx, runas, &["versions", "--bare"], true)?.unwrap_or_default();
    Ok(text.lines().map(str::to_owned).collect())
}

/// The Python that is used unless one is named.
pub fn chosen(cx: &Cx, runas: Option<&str>) -> Result<String> {
    Ok(said(cx, runas, &["global"], true)?.unwrap_or_default().trim().to_owned())
}

/// Install pyenv itself, with git.
///
/// ```console
/// $ salt '*' pyenv.install
/// ```
#[function]
pub fn install(
    cx: &Cx,
    /// Whose it is; the machine's by default.
    runas: Option<String>,
    /// Where to put it.
    path: Option<String>,
) -> Result<bool> {
    let runas = runas.as_deref();
    let path = folder(cx, path.as_ref(), runas)?;
    if cx.host.is_dir(Path::new(&path))? {
        return Ok(true);
    }
    Ok(plain(cx, ["git", "clone", SOURCE, &path], as_user(runas, false))?.ok())
}

/// Bring pyenv itself up to date.
///
/// ```console
/// $ salt '*' pyenv.update
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// Whose it is.
    runas: Option<String>,
    /// Where it is.
    path: Option<String>,
) -> Result<bool> {
    let runas = runas.as_deref();
    let path = folder(cx, path.as_ref(), runas)?;
    if !cx.host.is_dir(Path::new(&path))? {
        return Ok(false);
    }
    let options = Options { cwd: Some(path), ..as_user(runas, false) };
    Ok(plain(cx, ["git", "pull"], options)?.ok())
}

/// Tell whether pyenv is there.
///
/// ```console
/// $ salt '*' pyenv.is_installed
/// ```
#[function]
pub fn is_installed(
    cx: &Cx,
    /// Whose it is.
    runas: Option<String>,
) -> Result<bool> {
    is_there(cx, runas.as_deref())
}

/// Build a Python; returns what the build said, False if it failed.
///
/// The option `pyenv.build_env` has variables for the build.
///
/// ```console
/// $ salt '*' pyenv.install_python 3.12.4
/// ```
#[function]
pub fn install_python(
    cx: &Cx,
    /// The version, as in `pyenv.list`.
    python: String,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<Value> {
    let (runas, python) = (runas.as_deref(), bare(&python));
    let build = option(cx, "pyenv.build_env")?.unwrap_or_default();
    let env = shlex::split(&build).unwrap_or_else(|_| vec![build.clone()]);
    let Some(ran) = pyenv(cx, runas, &env, &["install", python], false)? else {
        return Ok(false.into());
    };
    if ran.ok() {
        said(cx, runas, &["rehash"], false)?;
        return Ok(ran.stderr.into());
    }
    // What is left of a failed build would be taken for a Python.
    said(cx, runas, &["uninstall", "--force", python], false)?;
    Ok(false.into())
}

/// Remove a Python.
///
/// ```console
/// $ salt '*' pyenv.uninstall_python 3.12.4
/// ```
#[function]
pub fn uninstall_python(
    cx: &Cx,
    /// The version, as in `pyenv.versions`.
    python: String,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<bool> {
    said(cx, runas.as_deref(), &["uninstall", "--force", bare(&python)], false)?;
    Ok(true)
}

/// Return the Pythons that are there.
///
/// ```console
/// $ salt '*' pyenv.versions
/// ```
#[function]
pub fn versions(
    cx: &Cx,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<Vec<String>> {
    installed(cx, runas.as_deref())
}

/// Return or choose the Python that is used unless one is named.
///
/// ```console
/// $ salt '*' pyenv.default
/// $ salt '*' pyenv.default 3.12.4
/// ```
#[function]
pub fn default(
    cx: &Cx,
    /// The version to choose.
    python: Option<String>,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<Value> {
    match python.filter(|python| !python.is_empty()) {
        Some(python) => {
            said(cx, runas.as_deref(), &["global", &python], false)?;
            Ok(true.into())
        }
        None => Ok(chosen(cx, runas.as_deref())?.into()),
    }
}

/// Return the Pythons that can be built.
///
/// ```console
/// $ salt '*' pyenv.list
/// ```
#[function(name = "list")]
pub fn list_(
    cx: &Cx,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<Vec<String>> {
    let text = said(cx, runas.as_deref(), &["install", "--list"], true)?.unwrap_or_default();
    let lines = text.lines().filter(|line| *line != "Available versions:");
    Ok(lines.map(|line| line.trim().to_owned()).collect())
}

/// Make the programs of all Pythons known.
///
/// ```console
/// $ salt '*' pyenv.rehash
/// ```
#[function]
pub fn rehash(
    cx: &Cx,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<bool> {
    said(cx, runas.as_deref(), &["rehash"], false)?;
    Ok(true)
}

fn with_shims(cx: &Cx, words: &[&str], runas: Option<&str>) -> Result<Value> {
    let root = shlex::quote(&root(cx, runas)?);
    let words: String = words.iter().map(|word| format!(" {}", shlex::quote(word))).collect();
    let line = format!("env PATH={root}/shims:$PATH {words}");
    let options = Options { cmd: line.into(), python_shell: Some(true), ..as_user(runas, false) };
    let ran = execute(cx, &options)?;
    if !ran.ok() {
        return Ok(false.into());
    }
    said(cx, runas, &["rehash"], false)?;
    Ok(ran.stdout.into())
}

/// Run a command with the programs of pyenv before the machine's; False if it failed.
///
/// ```console
/// $ salt '*' pyenv.do 'pip list'
/// ```
#[function(name = "do")]
pub fn do_(
    cx: &Cx,
    /// The command. Its words are taken as they stand: nothing is expanded.
    cmdline: Option<String>,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<Value> {
    let cmdline = cmdline.unwrap_or_default();
    let words: Vec<&str> = cmdline.split_whitespace().collect();
    with_shims(cx, &words, runas.as_deref())
}

/// Run a command with one of the Pythons; False if it failed.
///
/// ```console
/// $ salt '*' pyenv.do_with_python 3.12.4 'pip list'
/// ```
#[function]
pub fn do_with_python(
    cx: &Cx,
    /// The version; None for the default one.
    #[arg(required)]
    python: Option<String>,
    /// The command.
    cmdline: String,
    /// Whose pyenv.
    runas: Option<String>,
) -> Result<Value> {
    let version = python.filter(|python| !python.is_empty());
    let version = version.map(|python| format!("PYENV_VERSION={python}"));
    let words: Vec<&str> =
        version.as_deref().into_iter().chain(cmdline.split_whitespace()).collect();
    with_shims(cx, &words, runas.as_deref())
}
