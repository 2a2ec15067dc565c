//! `locate`: files found by name, over the database of `locate`.

use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value};

use crate::cmd::{Options, plain};

module! {
    /// Files found by name.
    "locate": version, stats, updatedb, locate,
}

fn lines(cx: &Cx, words: Vec<String>, query: bool) -> Result<Vec<String>> {
    let options = Options { query, redirect_stderr: true, ..Options::default() };
    Ok(plain(cx, words, options)?.stdout.lines().map(str::to_owned).collect())
}

fn line(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Return the version of the program.
///
/// ```console
/// $ salt web1 locate.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<Vec<String>> {
    lines(cx, line(&["locate", "-V"]), true)
}

/// Return what the database holds.
///
/// ```console
/// $ salt web1 locate.stats
/// ```
#[function]
pub fn stats(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for line in lines(cx, line(&["locate", "-S"]), true)? {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Database", path, ..] => ret.insert("database", path.trim_end_matches(':')),
            [count, what @ ..] if !what.is_empty() => ret.insert(what.join(" "), *count),
            _ => None,
        };
    }
    Ok(ret)
}

/// Bring the database up to date.
///
/// ```console
/// $ salt web1 locate.updatedb
/// ```
#[function]
pub fn updatedb(cx: &Cx) -> Result<Vec<String>> {
    lines(cx, line(&["updatedb"]), false)
}

/// Find files by name.
///
/// ```console
/// $ salt '*' locate.locate zsh limit=5 basename=True
/// ```
#[function]
pub fn locate(
    cx: &Cx,
    /// The pattern.
    pattern: String,
    /// Another database.
    #[default(String::new())]
    database: String,
    /// At most this many.
    #[default(0)]
    limit: i64,
    /// `basename`, `count`, `existing`, `follow`, `ignore`, `nofollow`, `wholename`, `regex`.
    kwargs: Rest,
) -> Result<Vec<String>> {
    let known = [
        ("basename", "b"),
        ("count", "c"),
        ("existing", "e"),
        ("follow", "L"),
        ("ignore", "i"),
        ("nofollow", "P"),
        ("wholename", "w"),
    ];
    let is_on = |name: &str| kwargs.kwargs.get(name).is_some_and(|on: Value| on.truthy());
    let letters: String =
        known.iter().filter(|(name, _)| is_on(name)).map(|(_, letter)| *letter).collect();
    let mut words = line(&["locate"]);
    if !letters.is_empty() {
        words.push(format!("-{letters}"));
    }
    if !database.is_empty() {
        words.extend(["-d".to_owned(), database]);
    }
    if limit > 0 {
        words.extend(["-l".to_owned(), limit.to_string()]);
    }
    words.extend(is_on("regex").then(|| "-r".to_owned()));
    words.push(pattern);
    lines(cx, words, true)
}
