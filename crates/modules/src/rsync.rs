//! `rsync`: files copied with `rsync`.

use std::path::Path;

use halite_spec::{Cx, Error, Need, Result, function, module};
use halite_value::{Dict, Value};

use crate::cmd::{Options, plain};

module! {
    /// Files copied with `rsync`.
    "rsync", needs = [
        Need::program(&["rsync"], "The rsync execution module cannot be loaded: the rsync binary is not in the path."),
    ]: rsync, version, config,
}

/// Copy a tree.
///
/// ```console
/// $ salt '*' rsync.rsync /path/to/src /path/to/dest delete=True update=True
/// ```
#[function]
pub fn rsync(
    cx: &Cx,
    /// From; also a `salt://` file.
    src: String,
    /// To.
    dst: String,
    /// Remove what is not at the source.
    #[default(false)]
    delete: bool,
    /// Remove folders that are not empty, too.
    #[default(false)]
    force: bool,
    /// Leave newer files alone.
    #[default(false)]
    update: bool,
    /// A file with the password of a server.
    passwordfile: Option<String>,
    /// What to leave out: a text or a list.
    exclude: Option<Value>,
    /// A file of what to leave out.
    excludefrom: Option<String>,
    /// Only tell.
    #[default(false)]
    dryrun: bool,
    /// The shell to reach another machine with.
    rsh: Option<String>,
    /// Further options.
    additional_opts: Option<Vec<String>>,
    /// The environment of `salt://` files.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Dict> {
    if src.is_empty() || dst.is_empty() {
        return Err(Error::invalid("src and dst cannot be empty"));
    }
    let mut src = src;
    if src.starts_with("salt://") {
        src = match cx.files.cache(&src, &saltenv)? {
            Some(path) => path.display().to_string(),
            None => return Err(Error::failed(format!("{src} does not exist"))),
        };
    }
    let mut words = vec!["rsync".to_owned(), "-avz".to_owned()];
    let flags = [(delete, "--delete"), (force, "--force"), (update, "--update")];
    words.extend(flags.iter().filter(|(on, _)| *on).map(|(_, flag)| (*flag).to_owned()));
    words.extend(rsh.map(|rsh| format!("--rsh={rsh}")));
    if let Some(file) = passwordfile {
        words.extend(["--password-file".to_owned(), file]);
    }
    // Salt takes the file of patterns rather than the patterns, if both are given.
    match (excludefrom, exclude) {
        (Some(file), _) => words.extend(["--exclude-from".to_owned(), file]),
        (None, Some(exclude)) => {
            for name in exclude.items_of_sequence().unwrap_or_else(|| vec![exclude]) {
                words.extend(["--exclude".to_owned(), name.to_string()]);
            }
        }
        (None, None) => {}
    }
    if dryrun {
        words.push("--dry-run".to_owned());
    }
    words.extend(additional_opts.into_iter().flatten());
    words.extend([src, dst]);
    Ok(plain(cx, words, Options { query: dryrun, ..Options::default() })?.to_value())
}

/// Return the version of the program.
///
/// ```console
/// $ salt web1 rsync.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    let ran = plain(cx, ["rsync", "--version"], Options { query: true, ..Options::default() })?;
    let word = ran.stdout.split_whitespace().skip_while(|word| *word != "version").nth(1);
    word.map(str::to_owned).ok_or_else(|| Error::failed("Unable to determine rsync version"))
}

/// Return the configuration of the server.
///
/// ```console
/// $ salt web1 rsync.config
/// ```
#[function]
pub fn config(
    cx: &Cx,
    /// Its file.
    #[default("/etc/rsyncd.conf".to_owned())]
    conf_path: String,
) -> Result<String> {
    let text = cx.host.read_text_if_there(Path::new(&conf_path))?;
    text.ok_or_else(|| Error::failed(format!("{conf_path} does not exist")))
}
