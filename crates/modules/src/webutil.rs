//! `webutil`: files of names and passwords for web servers, over `htpasswd`.

use std::path::Path;

use halite_spec::{Cx, Need, Result, function, module};
use halite_value::{Dict, Value};

use crate::cmd::{Options, Ran, plain};

module! {
    /// Files of names and passwords for web servers.
    "webutil", needs = [
        Need::program(&["htpasswd"], "The htpasswd execution mdule cannot be loaded: htpasswd binary not in path."),
    ]: useradd, userdel, verify,
}

fn htpasswd(cx: &Cx, words: &[&str], runas: Option<String>, query: bool) -> Result<Ran> {
    let words = ["htpasswd"].into_iter().chain(words.iter().copied());
    plain(cx, words, Options { runas, query, ignore_retcode: query, ..Options::default() })
}

/// Add a user to a file, which is made if need be.
///
/// ```console
/// $ salt web1 webutil.useradd /srv/app/htpasswd ada s3cret
/// ```
#[function]
pub fn useradd(
    cx: &Cx,
    /// The file.
    pwfile: String,
    /// The user.
    user: String,
    /// The password.
    password: String,
    /// Letters: `n` prints only, `m` MD5, `d` crypt, `p` plain text, `s` SHA-1.
    #[default(String::new())]
    opts: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let new = if cx.host.exists(Path::new(&pwfile))? { "" } else { "c" };
    let letters = format!("-b{opts}{new}");
    Ok(htpasswd(cx, &[&letters, &pwfile, &user, &password], runas, false)?.to_value())
}

/// Remove a user from a file.
///
/// ```console
/// $ salt web1 webutil.userdel /srv/app/htpasswd ada
/// ```
#[function]
pub fn userdel(
    cx: &Cx,
    /// The file.
    pwfile: String,
    /// The user.
    user: String,
    /// The user to run as.
    runas: Option<String>,
    /// Return everything about the command, not only its lines.
    #[default(false)]
    all_results: bool,
) -> Result<Value> {
    if !cx.host.exists(Path::new(&pwfile))? {
        return Ok("Error: The specified htpasswd file does not exist".into());
    }
    let ran = htpasswd(cx, &["-D", &pwfile, &user], runas, false)?;
    if all_results {
        return Ok(ran.to_value().into());
    }
    let text = format!("{}{}", ran.stderr, ran.stdout);
    Ok(Value::list(text.lines()))
}

/// Tell whether a password is right.
///
/// ```console
/// $ salt web1 webutil.verify /srv/app/htpasswd ada s3cret
/// ```
#[function]
pub fn verify(
    cx: &Cx,
    /// The file.
    pwfile: String,
    /// The user.
    user: String,
    /// The password.
    password: String,
    /// Letters, as for `useradd`.
    #[default(String::new())]
    opts: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    if !cx.host.exists(Path::new(&pwfile))? {
        return Ok(false);
    }
    let letters = format!("-bv{opts}");
    Ok(htpasswd(cx, &[&letters, &pwfile, &user, &password], runas, true)?.ok())
}
