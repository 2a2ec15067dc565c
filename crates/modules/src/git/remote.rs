//! Remotes of a working copy, and what they have.

use halite_spec::{Cx, Error, Rest, Result, function};
use halite_value::{Dict, Value, dict};

use super::{Git, Https, Login, Options, Output, Who, redacted, with_auth, words};

/// Reads lines of name and hash.
fn refs(text: &str) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    pairs.map(|(hash, name)| (name.trim().to_owned(), hash.to_owned())).collect()
}

/// Asks a repository for its references.
pub fn refs_of(cx: &Cx, git: &Git, url: &str) -> Result<Vec<(String, String)>> {
    if url.starts_with('-') {
        return Err(Error::invalid(format!("'{url}' is not the address of a repository")));
    }
    Ok(refs(&git.ask(cx, words(&["ls-remote", url]))?))
}

/// Return the references of a remote of a working copy, or of a URL.
///
/// ```console
/// $ salt myminion git.ls_remote remote=https://mydomain.tld/repo.git opts='--tags'
/// ```
#[function]
pub fn ls_remote(
    cx: &Cx,
    /// The working copy.
    cwd: Option<String>,
    /// A remote, or a URL.
    #[default("origin".to_owned())]
    remote: String,
    /// Only references of this name.
    r#ref: Option<String>,
    #[group] with: Options,
    #[group] login: Login,
    #[group] output: Output,
    /// The environment `salt://` keys come from.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Dict> {
    let _ = output;
    let (git, opts) = with.at(cx, cwd.as_deref())?;
    let mut line = words(&["ls-remote"]);
    line.extend(opts);
    line.push(login.https.url(&remote)?);
    line.extend(r#ref);
    let git = Git { identity: login.identity, saltenv: Some(saltenv), ..git };
    Ok(refs(&git.ask(cx, line)?).into_iter().collect())
}

/// Reads `git remote --verbose`: name, fetch URL, push URL.
pub fn remotes_of(cx: &Cx, git: &Git) -> Result<Vec<(String, String, String)>> {
    let mut found: Vec<(String, String, String)> = Vec::new();
    for line in git.ask(cx, ["remote", "--verbose"])?.lines() {
        let mut parts = line.split_whitespace();
        let (Some(name), Some(url)) = (parts.next(), parts.next()) else { continue };
        let action = parts.next().unwrap_or_default();
        let at = found.iter().position(|(own, ..)| own == name).unwrap_or_else(|| {
            found.push((name.to_owned(), String::new(), String::new()));
            found.len() - 1
        });
        if let Some(entry) = found.get_mut(at) {
            if action == "(push)" { entry.2 = url.to_owned() } else { entry.1 = url.to_owned() }
        }
    }
    Ok(found)
}

fn shown_remote(fetch: &str, push: &str, hide: bool) -> Value {
    let show = |url: &str| if hide { redacted(url) } else { url.to_owned() };
    dict! { "fetch" => show(fetch), "push" => show(push) }
}

/// Return the remotes of a working copy.
///
/// ```console
/// $ salt web1 git.remotes /srv/app
/// ```
#[function]
pub fn remotes(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    #[group] who: Who,
    /// Hide passwords.
    #[default(true)]
    redact_auth: bool,
    #[group] output: Output,
) -> Result<Dict> {
    let _ = output;
    let git = who.at(cx, &cwd)?;
    let found = remotes_of(cx, &git)?;
    Ok(found
        .iter()
        .map(|(name, fetch, push)| (name, shown_remote(fetch, push, redact_auth)))
        .collect())
}

/// Return one remote of a working copy.
///
/// ```console
/// $ salt web1 git.remote_get /srv/app
/// ```
#[function]
pub fn remote_get(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// The remote.
    #[default("origin".to_owned())]
    remote: String,
    #[group] who: Who,
    /// Hide passwords.
    #[default(true)]
    redact_auth: bool,
    #[group] output: Output,
) -> Result<Value> {
    let all = remotes(cx, cwd.clone(), who, redact_auth, output)?;
    all.get(remote.as_str()).ok_or_else(|| {
        Error::failed(format!("Remote '{remote}' not present in git checkout located at {cwd}"))
    })
}

/// Return the references of a repository by its URL.
///
/// ```console
/// $ salt web1 git.remote_refs https://example.org/shop.git
/// ```
#[function]
pub fn remote_refs(
    cx: &Cx,
    /// The URL.
    url: String,
    /// Only branches.
    #[default(false)]
    heads: bool,
    /// Only tags.
    #[default(false)]
    tags: bool,
    #[group] who: Who,
    #[group] login: Login,
    #[group] output: Output,
    /// The environment `salt://` keys come from.
    #[default("base".to_owned())]
    saltenv: String,
    /// `filter`.
    kwargs: Rest,
) -> Result<Dict> {
    kwargs.only(&["filter"])?;
    let _ = output;
    let url = login.https.url(&url)?;
    let mut line = words(&["ls-remote"]);
    if heads {
        line.push("--heads".into());
    }
    if tags {
        line.push("--tags".into());
    }
    line.push(url);
    line.extend(kwargs.kwargs.get("filter").map(|filter| filter.to_string()));
    let git =
        Git { user: who.user, identity: login.identity, saltenv: Some(saltenv), ..Git::default() };
    Ok(refs(&git.ask(cx, line)?).into_iter().collect())
}

/// Sets a remote, new or there already.
pub fn set_remote(cx: &Cx, git: &Git, remote: &str, url: &str, push: Option<&str>) -> Result<()> {
    if remotes_of(cx, git)?.iter().any(|(name, ..)| name == remote) {
        git.run(cx, words(&["remote", "rm", remote]))?;
    }
    git.run(cx, words(&["remote", "add", remote, url]))?;
    if let Some(push) = push {
        git.run(cx, words(&["remote", "set-url", "--push", remote, push]))?;
    }
    Ok(())
}

/// Set a remote of a working copy.
///
/// ```console
/// $ salt web1 git.remote_set /srv/app https://example.org/shop.git
/// ```
#[function]
pub fn remote_set(
    cx: &Cx,
    /// The working copy.
    cwd: String,
    /// Its URL.
    url: String,
    /// The remote.
    #[default("origin".to_owned())]
    remote: String,
    #[group] who: Who,
    #[group] https: Https,
    /// Another URL to push to.
    push_url: Option<String>,
    /// Its user.
    push_https_user: Option<String>,
    /// Its password.
    push_https_pass: Option<String>,
    #[group] output: Output,
) -> Result<Value> {
    let url = https.url(&url)?;
    let push = push_url
        .map(|push| with_auth(&push, push_https_user.as_deref(), push_https_pass.as_deref()))
        .transpose()?;
    set_remote(cx, &who.clone().at(cx, &cwd)?, &remote, &url, push.as_deref())?;
    remote_get(cx, cwd, remote, who, true, output)
}
