//! `alternatives`: which of several programs a name in `/usr/bin` stands for.
//!
//! Debian and Suse call the tool `update-alternatives`, Red Hat and Arch `alternatives`. What a
//! name points to is read from the links themselves; everything else is asked of the tool.

use std::path::Path;

use halite_spec::{Cx, Result, function, module};

use crate::cmd::{self, Options};

module! {
    /// Choose which of several programs a name stands for.
    "alternatives": auto, check_exists, check_installed, display, install, remove, set_,
    show_current, show_link,
}

/// What a name without alternatives answers; Salt's is False.
const LINKS: &str = "/etc/alternatives";

fn tool(cx: &Cx) -> &'static str {
    match cx.grain_str("os_family").as_str() {
        "RedHat" | "Arch" => "alternatives",
        _ => "update-alternatives",
    }
}

fn run(cx: &Cx, words: &[&str], query: bool) -> Result<cmd::Ran> {
    let words = [tool(cx)].into_iter().chain(words.iter().copied());
    cmd::plain(cx, words, Options { query, ignore_retcode: query, ..Options::default() })
}

/// The text of success is stdout, of failure stderr.
fn told(ran: cmd::Ran) -> String {
    if ran.ok() || ran.stderr.is_empty() { ran.stdout } else { ran.stderr }
}

/// Return what the tool says about a name.
///
/// ```console
/// $ salt web1 alternatives.display editor
/// ```
#[function]
pub fn display(
    cx: &Cx,
    /// The name.
    name: String,
) -> Result<String> {
    Ok(told(run(cx, &["--display", &name], true)?))
}

/// Return the link a name is for; False if there is none.
///
/// ```console
/// $ salt web1 alternatives.show_link editor
/// ```
#[function]
pub fn show_link(
    cx: &Cx,
    /// The name.
    name: String,
) -> Result<halite_value::Value> {
    let suse = cx.grain_str("os_family") == "Suse";
    let folder = match cx.grain_str("os_family").as_str() {
        "RedHat" => "/var/lib/alternatives",
        _ if suse => "/var/lib/rpm/alternatives",
        _ => "/var/lib/dpkg/alternatives",
    };
    let text = cx.host.read_text_if_there(&Path::new(folder).join(&name))?;
    // The second line of a record is the link.
    let link = text.as_deref().and_then(|text| text.lines().nth(1));
    if link.is_none() {
        tracing::error!("alternatives: {name} does not exist");
    }
    Ok(link.map_or(false.into(), |link| link.trim().into()))
}

/// Return the path a name stands for now; False if there is none.
///
/// ```console
/// $ salt web1 alternatives.show_current editor
/// ```
#[function]
pub fn show_current(
    cx: &Cx,
    /// The name.
    name: String,
) -> Result<halite_value::Value> {
    Ok(current(cx, &name).map_or(false.into(), Into::into))
}

/// Returns the path a name stands for.
pub fn current(cx: &Cx, name: &str) -> Option<String> {
    let link = cx.host.read_link(&Path::new(LINKS).join(name));
    if link.is_err() {
        tracing::error!("alternative: {name} does not exist");
    }
    link.ok().map(|path| path.display().to_string())
}

/// Tell whether a path is one of the alternatives of a name.
///
/// ```console
/// $ salt '*' alternatives.check_exists editor /usr/bin/vim
/// ```
#[function]
pub fn check_exists(
    cx: &Cx,
    /// The name.
    name: String,
    /// The path.
    path: String,
) -> Result<bool> {
    let ran = run(cx, &["--display", &name], true)?;
    let start = format!("{path} - priority");
    Ok(ran.ok() && ran.stdout.lines().any(|line| line.starts_with(&start)))
}

/// Tell whether a name stands for a path now.
///
/// ```console
/// $ salt '*' alternatives.check_installed editor /usr/bin/vim
/// ```
#[function]
pub fn check_installed(
    cx: &Cx,
    /// The name.
    name: String,
    /// The path.
    path: String,
) -> Result<bool> {
    Ok(current(cx, &name).is_some_and(|own| own == path))
}

/// Add an alternative.
///
/// ```console
/// $ salt '*' alternatives.install editor /usr/bin/editor /usr/bin/vim 50
/// ```
#[function]
pub fn install(
    cx: &Cx,
    /// The name.
    name: String,
    /// The link the name is for.
    link: String,
    /// The path of the alternative.
    path: String,
    /// In automatic mode the highest wins.
    priority: i64,
) -> Result<String> {
    let priority = priority.to_string();
    Ok(told(run(cx, &["--install", &link, &name, &path, &priority], false)?))
}

/// Adds an alternative; the error is the tool's text.
pub fn add(cx: &Cx, name: &str, link: &str, path: &str, priority: i64) -> Result<(), String> {
    let priority = priority.to_string();
    let words = ["--install", link, name, path, &priority];
    changed(run(cx, &words, false))
}

fn changed(ran: Result<cmd::Ran>) -> Result<(), String> {
    match ran {
        Ok(ran) if ran.ok() => Ok(()),
        Ok(ran) => Err(told(ran)),
        Err(error) => Err(error.to_string()),
    }
}

/// Remove an alternative.
///
/// ```console
/// $ salt '*' alternatives.remove editor /usr/bin/vim
/// ```
#[function]
pub fn remove(
    cx: &Cx,
    /// The name.
    name: String,
    /// The path of the alternative.
    path: String,
) -> Result<String> {
    Ok(told(run(cx, &["--remove", &name, &path], false)?))
}

/// Let a name follow the highest priority.
///
/// ```console
/// $ salt '*' alternatives.auto editor
/// ```
#[function]
pub fn auto(
    cx: &Cx,
    /// The name.
    name: String,
) -> Result<String> {
    Ok(told(run(cx, &["--auto", &name], false)?))
}

/// Choose an alternative by hand.
///
/// ```console
/// $ salt '*' alternatives.set editor /usr/bin/vim
/// ```
#[function(name = "set")]
pub fn set_(
    cx: &Cx,
    /// The name.
    name: String,
    /// The path of the alternative.
    path: String,
) -> Result<String> {
    Ok(told(run(cx, &["--set", &name, &path], false)?))
}
