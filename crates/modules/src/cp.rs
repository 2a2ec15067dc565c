//! `cp`: files from the file server to this machine, and back.
//!
//! Fetching itself is the file client's ([`halite_spec::Files`]); here is what users call, and
//! where fetched files lie in the cache.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use halite_spec::{Cx, Error, Fetch, Rest, Result, alias, function, host::Write, module};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, Value, entries};

use crate::{
    file::{
        content::{mode_of_source, render},
        paths::{file_name, joined, normalized, parent, real},
        perms::Mode,
        regex::Re,
        source::{REMOTE_PROTOCOLS, local_path, parse_salt, scheme_of},
        tree::walk,
    },
    hashutil::{Kind, from_base64},
};

module! {
    /// Files from the file server to this machine, and back.
    "cp": cache_dest, cache_dir, cache_file, cache_file_ssh, cache_files, cache_local_file,
    cache_master, envs, get_dir, get_file, get_file_str, get_template, get_url, hash_file,
    hash_file_ssh, is_cached, list_master, list_master_dirs, list_master_symlinks, list_minion,
    list_states, push, push_dir, recv, recv_chunked, stat_file,
}

alias! { cache_file_ssh = cache_file, hash_file_ssh = hash_file }

/// The environment asked for, or the configured one, or `base`.
fn env_of(cx: &Cx, saltenv: Option<String>) -> String {
    saltenv.filter(|env| !env.is_empty()).unwrap_or_else(|| {
        cx.opt_str("saltenv")
            .filter(|env| !env.is_empty())
            .map_or_else(|| "base".into(), |env| env.to_string())
    })
}

/// Where a fetched file lies (or would lie) in the cache.
fn place(cx: &Cx, address: &str, saltenv: &str) -> PathBuf {
    let cache = PathBuf::from(cx.opt_str("cachedir").unwrap_or_default().as_str());
    let scheme = scheme_of(address);
    match scheme.as_str() {
        "salt" => {
            let (path, env) = parse_salt(address);
            cache.join("files").join(env.as_deref().unwrap_or(saltenv)).join(path)
        }
        "" | "file" => cache.join("localfiles").join(local_path(address).trim_start_matches('/')),
        _ => {
            let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
            let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
            let server = server.rsplit('@').next().unwrap_or(server).replace(':', "");
            let (path, query) = match path.split_once('?') {
                Some((path, query)) => (path, format!("-{query}")),
                None => (path, String::new()),
            };
            let file = normalized(&format!("/{path}"));
            let file = file.trim_start_matches('/');
            cache.join("extrn_files").join(saltenv).join(server).join(format!("{file}{query}"))
        }
    }
}

/// Returns the path of a file in the cache, if it is there.
pub fn cached_path(cx: &Cx, address: &str, saltenv: &str) -> Result<Option<PathBuf>> {
    let path = place(cx, address, saltenv);
    Ok(cx.host.is_file(&path)?.then_some(path))
}

/// A place to put something, empty if there is none.
fn text_of(dest: &Value) -> String {
    if dest.is_null() { String::new() } else { dest.to_str().to_string() }
}

fn shown(path: Option<PathBuf>) -> Value {
    path.map_or(Value::Bool(false), |path| path.display().to_string().into())
}

/// Tells whether a path passes the patterns: shell patterns, or regular expressions after `E@`.
pub fn is_included(path: &str, include: &[String], exclude: &[String]) -> Result<bool> {
    let matches = |pattern: &String| match pattern.strip_prefix("E@") {
        Some(expression) => Re::new(expression, 0)
            .and_then(|re| re.found_in(path))
            .map_err(|error| Error::failed(format!("{error}: {expression}"))),
        None => Ok(fnmatch(path, pattern)),
    };
    for pattern in exclude {
        if matches(pattern)? {
            return Ok(false);
        }
    }
    if include.is_empty() {
        return Ok(true);
    }
    for pattern in include {
        if matches(pattern)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The patterns of an `include_pat` or `exclude_pat` argument.
pub fn patterns(value: Option<&Value>) -> Vec<String> {
    match value {
        None => Vec::new(),
        Some(value) if !value.truthy() => Vec::new(),
        Some(value) => match value.items_of_sequence() {
            Some(items) => items.iter().map(|item| item.to_str().to_string()).collect(),
            None => vec![value.to_str().to_string()],
        },
    }
}

/// Return where a file lies in the cache, whether it is there or not.
///
/// ```console
/// $ salt '*' cp.cache_dest salt://foo/bar
/// ```
#[function]
pub fn cache_dest(
    cx: &Cx,
    /// The address.
    url: String,
    /// The environment.
    saltenv: Option<String>,
) -> Result<String> {
    Ok(place(cx, &url, &env_of(cx, saltenv)).display().to_string())
}

/// Bring a file into the cache and return its path; False if there is no such file.
///
/// ```console
/// $ salt web1 cp.cache_file salt://app/app.conf
/// ```
#[function]
pub fn cache_file(
    cx: &Cx,
    /// The address.
    path: String,
    /// The environment.
    saltenv: Option<String>,
    /// The hash the file must have; one that is cached already and has it is not fetched.
    source_hash: Option<String>,
    /// Whether certificates are checked.
    #[default(true)]
    verify_ssl: bool,
    /// Ask the server whether the file changed.
    #[default(false)]
    use_etag: bool,
) -> Result<Value> {
    let saltenv = env_of(cx, saltenv);
    if let Some(digits) = source_hash.filter(|digits| !digits.is_empty())
        && REMOTE_PROTOCOLS.contains(&scheme_of(&path).as_str())
        && let Some(cached) = cached_path(cx, &path, &saltenv)?
        && let Some(kind) = Kind::with_digits(digits.len())
        && kind.of_file(&*cx.host, &cached)? == digits.to_lowercase()
    {
        return Ok(shown(Some(cached)));
    }
    let how = Fetch { verify_ssl, use_etag, ..Fetch::default() };
    cx.files.cache_with(&path, &saltenv, &how).map(shown)
}

/// Bring several files into the cache and return their paths.
///
/// ```console
/// $ salt web1 cp.cache_files '[salt://app/app.conf, salt://app/logo.png]'
/// ```
#[function]
pub fn cache_files(
    cx: &Cx,
    /// The addresses: a list, or one text with commas.
    paths: halite_spec::Strings,
    /// The environment.
    saltenv: Option<String>,
) -> Result<Value> {
    let saltenv = env_of(cx, saltenv);
    let cached = paths.iter().map(|path| cx.files.cache(path, &saltenv).map(shown));
    cached.collect::<Result<Vec<Value>>>().map(Value::from)
}

/// Bring everything below a folder of the server into the cache.
///
/// ```console
/// $ salt web1 cp.cache_dir salt://app
/// ```
#[function]
pub fn cache_dir(
    cx: &Cx,
    /// The folder's address.
    path: String,
    /// The environment.
    saltenv: Option<String>,
    /// Make empty folders too.
    #[default(false)]
    include_empty: bool,
    /// Only what matches.
    include_pat: Option<Value>,
    /// Not what matches.
    exclude_pat: Option<Value>,
) -> Result<Vec<String>> {
    let (folder, env) = parse_salt(&path);
    let saltenv = env.unwrap_or_else(|| env_of(cx, saltenv));
    let (include, exclude) = (patterns(include_pat.as_ref()), patterns(exclude_pat.as_ref()));
    let mut ret = Vec::new();
    for file in cx.files.list(&saltenv, &folder)? {
        if !is_included(&file, &include, &exclude)? {
            continue;
        }
        if let Some(cached) = cx.files.cache(&format!("salt://{file}"), &saltenv)? {
            ret.push(cached.display().to_string());
        }
    }
    if include_empty {
        for dir in cx.files.list_empty_dirs(&saltenv, &folder)? {
            let at = place(cx, &format!("salt://{dir}"), &saltenv);
            cx.host.create_dirs(&at, None)?;
            ret.push(at.display().to_string());
        }
    }
    Ok(ret)
}

/// Bring every file of the server into the cache.
///
/// ```console
/// $ salt web1 cp.cache_master
/// ```
#[function]
pub fn cache_master(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
) -> Result<Value> {
    let saltenv = env_of(cx, saltenv);
    let files = cx.files.list(&saltenv, "")?;
    let cached =
        files.iter().map(|file| cx.files.cache(&format!("salt://{file}"), &saltenv).map(shown));
    cached.collect::<Result<Vec<Value>>>().map(Value::from)
}

/// Copy a file of this machine into the cache.
///
/// ```console
/// $ salt web1 cp.cache_local_file /srv/app/app.conf
/// ```
#[function]
pub fn cache_local_file(
    cx: &Cx,
    /// The file.
    path: String,
) -> Result<String> {
    let from = Path::new(&path);
    if !cx.host.exists(from)? {
        return Ok(String::new());
    }
    let to = place(cx, &path, "base");
    if let Some(folder) = to.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    let mode = cx.host.stat(from, true)?.mode;
    let how = Write { mode: Some(mode), ..Write::default() };
    cx.host.write_from(&to, &mut *cx.host.open(from)?, &how)?;
    Ok(to.display().to_string())
}

/// List the environments of the server.
///
/// ```console
/// $ salt web1 cp.envs
/// ```
#[function]
pub fn envs(cx: &Cx) -> Result<Vec<String>> {
    cx.files.envs()
}

/// Renders addresses and paths that are templates themselves.
fn rendered(cx: &Cx, text: String, template: Option<&String>, saltenv: &str) -> Result<String> {
    match template.filter(|engine| !engine.is_empty()) {
        Some(engine) => {
            render(cx, engine, text, None, saltenv, Dict::new()).map_err(|error| match error {
                Error::Failed(text) if text.starts_with("Specified template format ") => {
                    Error::failed(format!(
                        "Attempted to render file paths with unavailable engine {engine}"
                    ))
                }
                other => other,
            })
        }
        None => Ok(text),
    }
}

/// Copies a fetched file to its place; a folder takes it under its own name. False if there is no
/// folder to put it in.
fn deliver(cx: &Cx, cached: &Path, dest: &str, name: &str, makedirs: bool) -> Result<Value> {
    let dest = if dest.ends_with('/') || cx.host.is_dir(Path::new(dest))? {
        joined(dest, name)
    } else {
        dest.to_owned()
    };
    let folder = parent(&dest);
    if !cx.host.is_dir(Path::new(folder))? {
        if !makedirs {
            return Ok(false.into());
        }
        cx.host.create_dirs(Path::new(folder), None)?;
    }
    cx.host.write_from(Path::new(&dest), &mut *cx.host.open(cached)?, &Write::default())?;
    Ok(dest.into())
}

/// Copy a file of the server to a place on this machine.
///
/// ```console
/// $ salt web1 cp.get_file salt://app/app.conf /srv/app/app.conf
/// ```
#[function]
pub fn get_file(
    cx: &Cx,
    /// The address.
    path: String,
    /// Where to put it; empty or None for the cache.
    dest: Value,
    /// The environment.
    saltenv: Option<String>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// The template engine for `path` and `dest`.
    template: Option<String>,
    /// Taken for compatibility.
    gzip: Option<Value>,
    /// Taken for compatibility.
    rest: Rest,
) -> Result<Value> {
    let _ = (gzip, rest);
    let saltenv = env_of(cx, saltenv);
    let path = rendered(cx, path, template.as_ref(), &saltenv)?;
    let dest = rendered(cx, text_of(&dest), template.as_ref(), &saltenv)?;
    if !path.starts_with("salt://") {
        // The hash is asked for first: to a master, what is no file of this machine has none.
        let is_local = cx.opt_str("file_client").is_some_and(|client| client == "local");
        if is_local || cx.host.is_file(Path::new(&path))? {
            return Err(Error::raised("MinionError", format!("Unsupported path: {path}")));
        }
        tracing::warn!("specified file {path} is not present to generate hash");
        return Ok(Value::str(""));
    }
    match cx.files.cache(&path, &saltenv)? {
        Some(cached) if dest.is_empty() => Ok(shown(Some(cached))),
        Some(cached) => deliver(cx, &cached, &dest, file_name(&parse_salt(&path).0), makedirs),
        None => Ok(Value::str("")),
    }
}

/// Where a rendered file lies in the cache: beside what was fetched from elsewhere.
fn place_of_template(cx: &Cx, address: &str, saltenv: &str) -> PathBuf {
    match scheme_of(address).as_str() {
        "salt" => {
            let (path, env) = parse_salt(address);
            let cache = PathBuf::from(cx.opt_str("cachedir").unwrap_or_default().as_str());
            cache.join("extrn_files").join(env.as_deref().unwrap_or(saltenv)).join(path)
        }
        _ => place(cx, address, saltenv),
    }
}

/// Render a file of the server as a template and put it to a place on this machine.
///
/// ```console
/// $ salt web1 cp.get_template salt://app/app.conf.j2 /srv/app/app.conf
/// ```
#[function]
pub fn get_template(
    cx: &Cx,
    /// The address.
    path: String,
    /// Where to put it; empty or None for the cache.
    dest: Value,
    /// The template engine.
    #[default("jinja".to_owned())]
    template: String,
    /// The environment.
    saltenv: Option<String>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// Names for the template, by themselves or as `context`.
    rest: Rest,
) -> Result<String> {
    let saltenv = env_of(cx, saltenv);
    let is_local = matches!(scheme_of(&path).as_str(), "" | "file");
    if is_local && !cx.host.is_file(Path::new(&local_path(&path)))? {
        return Ok(String::new());
    }
    let Some(cached) = cx.files.cache(&path, &saltenv)? else { return Ok(String::new()) };
    let own = rest.kwargs.entries().into_iter();
    let is_own = |name: &str| name != "context" && !name.starts_with("__");
    let names: Dict = own.filter(|(name, _)| is_own(&name.to_str())).collect();
    if let Some(Value::Dict(context)) = rest.kwargs.get("context") {
        names.update(&context);
    }
    let text = render(cx, &template, cx.host.read_text(&cached)?, Some(&path), &saltenv, names)?;
    let (dest, makedirs) = match text_of(&dest) {
        dest if dest.is_empty() => (place_of_template(cx, &path, &saltenv), true),
        dest => (PathBuf::from(dest), makedirs),
    };
    let folder = dest.parent().unwrap_or(Path::new("/"));
    if !cx.host.is_dir(folder)? {
        if !makedirs {
            return Ok(String::new());
        }
        cx.host.create_dirs(folder, None)?;
    }
    // What is rendered may hold secrets: Salt leaves it to its owner alone.
    let how = Write { mode: Some(0o600), ..Write::default() };
    cx.host.write(&dest, text.as_bytes(), &how)?;
    Ok(dest.display().to_string())
}

/// Copy a folder of the server with everything in it.
///
/// ```console
/// $ salt web1 cp.get_dir salt://app /srv
/// ```
#[function]
pub fn get_dir(
    cx: &Cx,
    /// The folder's address; a slash at its end does not count.
    path: String,
    /// Where to put it.
    dest: String,
    /// The environment.
    saltenv: Option<String>,
    /// The template engine for `path` and `dest`.
    template: Option<String>,
    /// Taken for compatibility.
    gzip: Option<Value>,
    /// Taken for compatibility.
    rest: Rest,
) -> Result<Vec<String>> {
    let _ = (gzip, rest);
    let saltenv = env_of(cx, saltenv);
    let path = rendered(cx, path, template.as_ref(), &saltenv)?;
    let dest = rendered(cx, dest, template.as_ref(), &saltenv)?;
    let (folder, env) = parse_salt(&path);
    let saltenv = env.unwrap_or(saltenv);
    let folder = folder.trim_end_matches('/').to_owned();
    let above = parent(&folder).to_owned();
    let strip = |file: &str| {
        let rest = file.strip_prefix(above.as_str()).unwrap_or(file);
        rest.trim_start_matches('/').to_owned()
    };
    let mut ret = Vec::new();
    for file in cx.files.list(&saltenv, &folder)? {
        let Some(cached) = cx.files.cache(&format!("salt://{file}"), &saltenv)? else { continue };
        let at = deliver(cx, &cached, &joined(&dest, &strip(&file)), "", true)?;
        ret.push(at.to_str().to_string());
    }
    for dir in cx.files.list_empty_dirs(&saltenv, &folder)? {
        let at = joined(&dest, &strip(&dir));
        cx.host.create_dirs(Path::new(&at), None)?;
        ret.push(at);
    }
    ret.sort();
    Ok(ret)
}

/// Fetch a file from any address: to a place, into the cache, or with `dest=None` as text.
///
/// ```console
/// $ salt web1 cp.get_url https://example.org/app.conf /srv/app/app.conf
/// ```
#[function]
pub fn get_url(
    cx: &Cx,
    /// The address.
    path: String,
    /// Where to put it; empty for the cache.
    #[default(Value::str(""))]
    dest: Value,
    /// The environment.
    saltenv: Option<String>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// The hash the file must have.
    source_hash: Option<String>,
) -> Result<Value> {
    // What is on this machine already stays where it is.
    if matches!(scheme_of(&path).as_str(), "" | "file") && !dest.is_null() {
        let path = local_path(&path);
        return match path.starts_with('/') {
            true => Ok(path.into()),
            false => Err(Error::failed(format!("Path '{path}' is not absolute"))),
        };
    }
    let cached = cache_file(cx, path.clone(), saltenv, source_hash, true, false)?;
    let Value::Str(cached) = &cached else { return Ok(false.into()) };
    match &dest {
        Value::Str(dest) if dest.is_empty() => Ok(cached.into()),
        Value::Str(dest) => {
            let name = file_name(path.split(['?', '#']).next().unwrap_or(&path)).to_owned();
            deliver(cx, Path::new(cached.as_str()), dest, &name, makedirs)
        }
        _ => Ok(cx.host.read_text(Path::new(cached.as_str()))?.into()),
    }
}

/// Return the content of a file of the server; False if there is none.
///
/// ```console
/// $ salt web1 cp.get_file_str salt://app/app.conf
/// ```
#[function]
pub fn get_file_str(
    cx: &Cx,
    /// The address.
    path: String,
    /// The environment.
    saltenv: Option<String>,
) -> Result<Value> {
    match cx.files.cache(&path, &env_of(cx, saltenv))? {
        Some(cached) => Ok(cx.host.read_text(&cached).map_or(Value::Bool(false), Value::from)),
        None => Ok(false.into()),
    }
}

/// Return the hash of a file of the server, or of this machine, with its kind.
///
/// ```console
/// $ salt web1 cp.hash_file salt://app/app.conf
/// ```
#[function]
pub fn hash_file(
    cx: &Cx,
    /// The address.
    path: String,
    /// The environment.
    saltenv: Option<String>,
) -> Result<Value> {
    let saltenv = env_of(cx, saltenv);
    let kind = cx.opt_str("hash_type").and_then(|name| Kind::named(&name)).unwrap_or(Kind::Sha256);
    if scheme_of(&path) == "salt" {
        let (file, env) = parse_salt(&path);
        let saltenv = env.unwrap_or(saltenv);
        return Ok(match cx.files.hash(&file, &saltenv)? {
            Some((kind, digits)) => entries! { "hash_type" => kind, "hsum" => digits }.into(),
            None => Value::str(""),
        });
    }
    let local = local_path(&path);
    if !cx.host.is_file(Path::new(&local))? {
        // Salt's file client answers with a pair here.
        return Ok(Value::tuple([Value::dict(), Value::Null]));
    }
    let digits = kind.of_file(&*cx.host, Path::new(&local))?;
    Ok(entries! { "hsum" => digits, "hash_type" => kind.name() }.into())
}

/// Return the mode of a file of the server.
///
/// ```console
/// $ salt web1 cp.stat_file salt://app/app.conf
/// ```
#[function]
pub fn stat_file(
    cx: &Cx,
    /// The address.
    path: String,
    /// The environment.
    saltenv: Option<String>,
    /// As octal digits, not as a number.
    #[default(true)]
    octal: bool,
) -> Result<Value> {
    if scheme_of(&path) != "salt" && !cx.host.is_file(Path::new(&local_path(&path)))? {
        return Ok(Value::Null);
    }
    Ok(match mode_of_source(cx, &path, &env_of(cx, saltenv))? {
        None => Value::Null,
        Some(mode) if octal => Mode::of(mode).as_str().into(),
        Some(mode) => (0o100_000 | mode).into(),
    })
}

/// Return the path of a file in the cache; an empty text if it is not there.
///
/// ```console
/// $ salt web1 cp.is_cached salt://app/app.conf
/// ```
#[function]
pub fn is_cached(
    cx: &Cx,
    /// The address.
    path: String,
    /// The environment.
    saltenv: Option<String>,
) -> Result<String> {
    let cached = cached_path(cx, &path, &env_of(cx, saltenv))?;
    Ok(cached.map_or_else(String::new, |path| path.display().to_string()))
}

/// List the files of the server.
///
/// ```console
/// $ salt web1 cp.list_master
/// ```
#[function]
pub fn list_master(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
    /// Only below this folder.
    #[default(String::new())]
    prefix: String,
) -> Result<Vec<String>> {
    cx.files.list(&env_of(cx, saltenv), &prefix)
}

/// List the folders of the server.
///
/// ```console
/// $ salt web1 cp.list_master_dirs
/// ```
#[function]
pub fn list_master_dirs(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
    /// Only below this folder.
    #[default(String::new())]
    prefix: String,
) -> Result<Vec<String>> {
    cx.files.list_dirs(&env_of(cx, saltenv), &prefix)
}

/// List the links of the server with what they point to.
///
/// ```console
/// $ salt web1 cp.list_master_symlinks
/// ```
#[function]
pub fn list_master_symlinks(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
    /// Only below this folder.
    #[default(String::new())]
    prefix: String,
) -> Result<Dict> {
    let links = cx.files.list_links(&env_of(cx, saltenv), &prefix)?;
    Ok(links.into_iter().map(|(link, target)| (link, Value::from(target))).collect())
}

/// List the files in the cache.
///
/// ```console
/// $ salt web1 cp.list_minion
/// ```
#[function]
pub fn list_minion(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
) -> Result<Vec<String>> {
    let saltenv = env_of(cx, saltenv);
    let cache = PathBuf::from(cx.opt_str("cachedir").unwrap_or_default().as_str());
    let mut ret = Vec::new();
    for top in [cache.join("files").join(&saltenv), cache.join("localfiles")] {
        for folder in walk(cx, &top, &|_| true)? {
            let files = folder.files.iter().map(|name| folder.path.join(name));
            ret.extend(files.map(|path| path.display().to_string()));
        }
    }
    ret.sort();
    Ok(ret)
}

/// The SLS names of a list of files.
pub fn sls_names(files: &[String]) -> Vec<String> {
    let mut names: Vec<String> = files
        .iter()
        .filter_map(|file| file.strip_suffix(".sls"))
        .filter(|name| !name.is_empty())
        .map(|name| name.strip_suffix("/init").unwrap_or(name).replace('/', "."))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// List the SLS files of the server by their names.
///
/// ```console
/// $ salt web1 cp.list_states
/// ```
#[function]
pub fn list_states(
    cx: &Cx,
    /// The environment.
    saltenv: Option<String>,
) -> Result<Vec<String>> {
    Ok(sls_names(&cx.files.list(&env_of(cx, saltenv), "")?))
}

/// Send a file of this machine to the master (which must allow it: `file_recv`).
///
/// ```console
/// $ salt web1 cp.push /srv/app/app.conf
/// ```
#[function]
pub fn push(
    cx: &Cx,
    /// The file.
    path: String,
    /// Send what a link points to under the link's own name.
    #[default(false)]
    keep_symlinks: bool,
    /// The path on the master, below the minion's folder.
    upload_path: Option<String>,
    /// Remove the file once it is sent.
    #[default(false)]
    remove_source: bool,
) -> Result<bool> {
    if path.contains("../") || !path.starts_with('/') {
        return Ok(false);
    }
    let path = if keep_symlinks { path } else { real(cx, &path)? };
    if !cx.host.is_file(Path::new(&path))? {
        return Ok(false);
    }
    let name = upload_path.filter(|path| !path.is_empty()).unwrap_or_else(|| path.clone());
    if name.contains("../") {
        return Ok(false);
    }
    let sent = cx.files.push(Path::new(&path), name.trim_start_matches('/'))?;
    if sent && remove_source {
        cx.host.remove_file(Path::new(&path))?;
    }
    Ok(sent)
}

/// Send the files of a folder to the master.
///
/// ```console
/// $ salt web1 cp.push_dir /srv/app
/// ```
#[function]
pub fn push_dir(
    cx: &Cx,
    /// The folder.
    path: String,
    /// Only files whose names match.
    glob: Option<String>,
    /// The path on the master.
    upload_path: Option<String>,
) -> Result<bool> {
    if path.contains("../") || !path.starts_with('/') {
        return Ok(false);
    }
    let path = real(cx, &path)?;
    if cx.host.is_file(Path::new(&path))? {
        return push(cx, path, false, upload_path, false);
    }
    let mut any = false;
    for folder in walk(cx, Path::new(&path), &|_| true)? {
        for name in &folder.files {
            if glob.as_ref().is_some_and(|glob| !fnmatch(name, glob)) {
                continue;
            }
            let file = folder.path.join(name).display().to_string();
            let upload = upload_path.as_ref().map(|upload| {
                let rest = file.strip_prefix(&path).unwrap_or(&file).trim_matches('/');
                format!("/{}/{rest}", upload.trim_matches('/'))
            });
            any = true;
            if !push(cx, file, false, upload, false)? {
                return Ok(false);
            }
        }
    }
    Ok(any)
}

/// Take files sent by `salt-cp`: path → text.
///
/// ```console
/// $ salt '*' cp.recv '{/etc/motd: "hello"}' /etc/motd
/// ```
#[function]
pub fn recv(
    cx: &Cx,
    /// The files.
    files: Dict,
    /// Where to put them.
    dest: String,
) -> Result<Value> {
    let ret = Dict::new();
    for (path, data) in &files {
        let path = path.to_str();
        let at = Path::new(&dest);
        let target = if cx.host.is_dir(at)? {
            joined(&dest, file_name(&path))
        } else if file_name(&path) == file_name(&dest)
            || cx.host.is_dir(Path::new(parent(&dest)))?
        {
            dest.clone()
        } else {
            return Ok("Destination unavailable".into());
        };
        let data = data.as_bytes().unwrap_or_default().to_vec();
        let written = cx.host.write(Path::new(&target), &data, &Write::default());
        ret.insert(target, written.is_ok());
    }
    Ok(ret.into())
}

/// Take a piece of a file sent by `salt-cp --chunked`.
///
/// ```console
/// $ salt '*' cp.recv_chunked /etc/motd aGVsbG8= compressed=False
/// ```
#[function]
pub fn recv_chunked(
    cx: &Cx,
    /// Where to put it.
    dest: String,
    /// The piece in base64; None makes a folder.
    #[arg(required)]
    chunk: Option<Value>,
    /// Add to the file.
    #[default(false)]
    append: bool,
    /// The piece is compressed.
    #[default(true)]
    compressed: bool,
    /// The mode of the file.
    mode: Option<i64>,
) -> Result<Value> {
    let failed = |text: String| {
        cx.job.set_retcode(1);
        Ok(text.into())
    };
    let refused = |error: halite_spec::host::Error| {
        failed(error.python_words().unwrap_or_else(|| error.to_string()))
    };
    // Where a daemon stands.
    let dest = if dest.starts_with('/') { dest } else { format!("/{dest}") };
    let at = Path::new(&dest);
    let Some(chunk) = chunk else {
        if cx.host.is_file(at)? {
            return Ok("Path exists and is a file".into());
        }
        return match cx.host.create_dirs(at, None) {
            Ok(()) => Ok(true.into()),
            Err(error) => refused(error),
        };
    };
    let encoded = chunk.as_bytes().unwrap_or_default();
    let mut bytes = match from_base64(encoded) {
        Ok(bytes) => bytes,
        Err(message) => return failed(message.to_owned()),
    };
    if compressed {
        let mut plain = Vec::new();
        let read = flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain);
        if let Err(error) = read {
            return failed(error.to_string());
        }
        bytes = plain;
    }
    let folder = Path::new(parent(&dest));
    if !cx.host.is_dir(folder)?
        && let Err(error) = cx.host.create_dirs(folder, None)
    {
        return refused(error);
    }
    let mode = mode.and_then(|mode| u32::try_from(mode).ok()).map(|mode| mode & 0o7777);
    let written = if append && cx.host.exists(at)? {
        cx.host.append(at, &bytes)
    } else {
        cx.host.write(at, &bytes, &Write { mode, ..Write::default() })
    };
    match written {
        Ok(()) => Ok(true.into()),
        Err(error) => refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sls_files() {
        let files = ["top.sls", "a/init.sls", "a/b.sls", "a/x.conf"].map(String::from);
        assert_eq!(sls_names(&files), ["a", "a.b", "top"]);
    }

    #[test]
    fn patterns_pass_and_stop() {
        let list = |text: &str| vec![text.to_owned()];
        assert!(is_included("a/b.py", &list("*.py"), &[]).unwrap());
        assert!(!is_included("a/b.py", &[], &list("E@\\.py$")).unwrap());
        assert!(!is_included("a/b.c", &list("*.py"), &list("x")).unwrap());
        assert!(is_included("a/b.c", &[], &[]).unwrap());
    }
}
