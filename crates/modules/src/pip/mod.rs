//! `pip`: Python packages.
//!
//! `bin_env` names a virtual environment, a `pip` or a `python`. Without it the machine's own
//! `pip3`, `pip` or `python3 -m pip` is taken.
// differs: Salt without `bin_env` takes the Python it runs on itself; there is none here.

pub mod version;

use std::path::Path;

use halite_spec::{Args, Cx, Error, Rest, Result, function, module, option_group};
use halite_value::{Dict, Value, dict, entries, json};

use crate::cmd::{self, Options, Ran};

module! {
    /// Install and look at Python packages.
    "pip": freeze, install, is_installed, list_, list_all_versions, list_freeze_parse,
    list_upgrades, normalize, uninstall, upgrade, upgrade_available, version_,
}

/// Which pip, run by whom and where.
#[derive(Args, Clone, Debug, Default)]
pub struct Place {
    /// A virtual environment, a `pip` or a `python`.
    pub bin_env: Option<String>,
    /// The user pip runs as.
    pub user: Option<String>,
    /// The folder pip runs in.
    pub cwd: Option<String>,
}

impl Place {
    /// With variables for it.
    pub fn env(self, env_vars: Dict) -> Env {
        let Self { bin_env, user, cwd } = self;
        Env { bin_env, user, cwd, env_vars }
    }
}

/// Whom and where pip runs as.
#[derive(Clone, Debug, Default)]
pub struct Env {
    pub bin_env: Option<String>,
    pub user: Option<String>,
    pub cwd: Option<String>,
    pub env_vars: Dict,
}

/// Salt's `CommandNotFoundError`.
fn not_found(message: String) -> Error {
    Error::raised("CommandNotFoundError", message)
}

fn is_program(cx: &Cx, path: &Path) -> bool {
    cx.host
        .stat(path, true)
        .is_ok_and(|stat| stat.kind == halite_spec::host::Kind::File && stat.mode & 0o111 != 0)
}

/// The words that start pip.
fn words(cx: &Cx, bin_env: Option<&str>) -> Result<Vec<String>> {
    let Some(given) = bin_env.filter(|given| !given.is_empty()) else {
        for (program, more) in [
            ("pip3", &[][..]),
            ("pip", &[]),
            ("python3", &["-m", "pip"]),
            ("python", &["-m", "pip"]),
        ] {
            if let Some(path) = cx.host.which(program) {
                let path = path.display().to_string();
                return Ok([path]
                    .into_iter()
                    .chain(more.iter().map(|word| (*word).to_owned()))
                    .collect());
            }
        }
        return Err(not_found("Could not find a `pip` binary".into()));
    };
    let path = Path::new(given);
    if cx.host.is_dir(path)? {
        // The environment itself, or its `bin`.
        for folder in [path.join("bin"), path.to_owned()] {
            for program in ["python", "python3", "python2"] {
                let python = folder.join(program);
                if is_program(cx, &python) {
                    return Ok(vec![python.display().to_string(), "-m".into(), "pip".into()]);
                }
            }
        }
        return Err(not_found(format!("Could not find a `pip` binary in virtualenv {given}")));
    }
    if cx.host.exists(path)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut words = vec![given.to_owned()];
        if name.is_some_and(|name| name.contains("python")) {
            words.extend(["-m".into(), "pip".into()]);
        }
        return Ok(words);
    }
    if !given.contains('/')
        && let Some(found) = cx.host.which(given)
    {
        let mut words = vec![found.display().to_string()];
        if given.contains("python") {
            words.extend(["-m".into(), "pip".into()]);
        }
        return Ok(words);
    }
    Err(not_found(format!("Access denied to {given}, could not find a pip binary")))
}

fn run(cx: &Cx, env: &Env, query: bool, more: Vec<String>) -> Result<Ran> {
    let mut all = words(cx, env.bin_env.as_deref())?;
    all.extend(more);
    let vars = env.env_vars.shallow_copy();
    if let Some(bin_env) = env.bin_env.as_deref()
        && cx.host.is_dir(Path::new(bin_env))?
    {
        vars.insert("VIRTUAL_ENV", bin_env);
    }
    let options = Options {
        cwd: env.cwd.clone(),
        runas: env.user.clone(),
        env: vars.into(),
        query,
        ..Options::default()
    };
    cmd::plain(cx, all, options)
}

fn strings<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Returns pip's own version. Who does not say one is no pip: a Python without the module.
pub fn own_version(cx: &Cx, env: &Env) -> Result<String> {
    let ran = run(cx, env, true, strings(["--version"]))?;
    let text = ran.stdout.strip_prefix("pip ").unwrap_or_default();
    let version = text.split_whitespace().next().map(str::to_owned);
    version.ok_or_else(|| not_found("Could not find a `pip` binary".into()))
}

/// Runs pip. Where that fails because there is none, this is what the error says.
fn run_pip(cx: &Cx, env: &Env, query: bool, more: Vec<String>) -> Result<Ran> {
    let ran = run(cx, env, query, more)?;
    if !ran.ok() {
        own_version(cx, env)?;
    }
    Ok(ran)
}

/// The name as indexes compare it: `Foo_bar.baz` is `foo-bar-baz`.
pub fn normal(name: &str) -> String {
    let mut ret = String::new();
    for letter in name.chars() {
        if matches!(letter, '-' | '_' | '.') {
            if !ret.ends_with('-') {
                ret.push('-');
            }
        } else {
            ret.extend(letter.to_lowercase());
        }
    }
    ret
}

/// Returns what is installed: name → version.
pub fn installed(cx: &Cx, env: &Env) -> Result<Vec<(String, String)>> {
    let words = strings(["list", "--format=json", "--disable-pip-version-check"]);
    let ran = run_pip(cx, env, true, words)?;
    if !ran.ok() {
        return Err(Error::failed(failure(&ran)));
    }
    let list = json::from_str(&ran.stdout).map_err(|error| Error::failed(error.to_string()))?;
    let text = |item: &Value, name: &str| item.get_str(name).unwrap_or_default().to_string();
    let items = list.items_of_sequence().unwrap_or_default();
    Ok(items.iter().map(|item| (text(item, "name"), text(item, "version"))).collect())
}

fn failure(ran: &Ran) -> String {
    if ran.stderr.is_empty() { ran.stdout.clone() } else { ran.stderr.clone() }
}

fn with_prefix(pkgs: Vec<(String, String)>, prefix: Option<&str>) -> Dict {
    let prefix = prefix.unwrap_or_default().to_lowercase();
    pkgs.into_iter().filter(|(name, _)| name.to_lowercase().starts_with(&prefix)).collect()
}

/// Return the version of pip.
///
/// ```console
/// $ salt '*' pip.version bin_env=/opt/venv
/// ```
#[function(name = "version")]
pub fn version_(
    cx: &Cx,
    /// A virtual environment, a `pip` or a `python`.
    bin_env: Option<String>,
    /// The folder pip runs in.
    cwd: Option<String>,
    /// The user pip runs as.
    user: Option<String>,
) -> Result<String> {
    own_version(cx, &Env { bin_env, user, cwd, env_vars: Dict::new() })
}

/// Return what `pip freeze` prints, as a list of lines.
///
/// ```console
/// $ salt '*' pip.freeze bin_env=/opt/venv
/// ```
#[function]
pub fn freeze(
    cx: &Cx,
    #[group] place: Place,
    /// Accepted, as Salt does.
    #[default(false)]
    use_vt: bool,
    /// Environment variables for pip.
    #[default(Dict::new())]
    #[shown(Value::Null)]
    env_vars: Dict,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Vec<String>> {
    let _ = (use_vt, rest);
    frozen(cx, &place.env(env_vars))
}

fn frozen(cx: &Cx, env: &Env) -> Result<Vec<String>> {
    let ran = run_pip(cx, env, true, strings(["freeze", "--all", "--disable-pip-version-check"]))?;
    if !ran.ok() {
        return Err(Error::failed(failure(&ran)));
    }
    Ok(ran.stdout.lines().map(str::to_owned).collect())
}

/// Return the installed packages: name → version.
///
/// ```console
/// $ salt web1 pip.list
/// ```
#[function(name = "list")]
pub fn list_(
    cx: &Cx,
    /// Only packages whose names begin so.
    prefix: Option<String>,
    #[group] place: Place,
    /// Environment variables for pip.
    #[default(Dict::new())]
    #[shown(Value::Null)]
    env_vars: Dict,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    let found = installed(cx, &place.env(env_vars))?;
    Ok(with_prefix(found, prefix.as_deref()))
}

/// Return the installed packages as `pip freeze` knows them: name → version.
///
/// ```console
/// $ salt web1 pip.list_freeze_parse
/// ```
#[function]
pub fn list_freeze_parse(
    cx: &Cx,
    /// Only packages whose names begin so.
    prefix: Option<String>,
    #[group] place: Place,
    /// Environment variables for pip.
    #[default(Dict::new())]
    #[shown(Value::Null)]
    env_vars: Dict,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = rest;
    let env = place.env(env_vars);
    let lines = frozen(cx, &env)?;
    let mut found = Vec::new();
    // pip does not list itself.
    if prefix.as_deref().is_none_or(|prefix| "pip".starts_with(prefix)) {
        found.push(("pip".to_owned(), own_version(cx, &env)?));
    }
    for line in &lines {
        if let Some(editable) = line.strip_prefix("-e ") {
            if let Some((source, name)) = editable.split_once("#egg=") {
                found.push((name.to_owned(), source.to_owned()));
            }
        } else if let Some((name, version)) = line.split_once("==")
            && name != "pip"
        {
            found.push((name.to_owned(), version.to_owned()));
        }
    }
    Ok(with_prefix(found, prefix.as_deref()))
}

/// Tell whether a package is installed.
///
/// ```console
/// $ salt web1 pip.is_installed flask
/// ```
#[function]
pub fn is_installed(
    cx: &Cx,
    /// The package.
    pkgname: String,
    #[group] place: Place,
) -> Result<bool> {
    let found = installed(cx, &place.env(Dict::new()))?;
    Ok(found.iter().any(|(name, _)| normal(name) == normal(&pkgname)))
}

/// Return the name of a package as indexes compare it.
///
/// ```console
/// $ salt '*' pip.normalize Foo_Bar
/// ```
#[function]
pub fn normalize(
    _cx: &Cx,
    /// The package.
    name: String,
) -> Result<String> {
    Ok(normal(&name))
}

/// Return packages for which there is a newer version: name → version.
///
/// ```console
/// $ salt '*' pip.list_upgrades bin_env=/opt/venv
/// ```
#[function]
pub fn list_upgrades(cx: &Cx, #[group] place: Place) -> Result<Dict> {
    upgrades(cx, &place.env(Dict::new()))
}

/// Name → newest version and its kind in brackets.
pub fn upgrades(cx: &Cx, env: &Env) -> Result<Dict> {
    let words = strings(["list", "--outdated", "--disable-pip-version-check", "--format=json"]);
    let ran = run_pip(cx, env, true, words)?;
    if !ran.ok() {
        return Err(Error::failed(failure(&ran)));
    }
    let list = json::from_str(&ran.stdout).map_err(|error| Error::failed(error.to_string()))?;
    let text = |item: &Value, name: &str| item.get_str(name).unwrap_or_default().to_string();
    let items = list.items_of_sequence().unwrap_or_default().into_iter().map(|item| {
        let shown =
            format!("{} [{}]", text(&item, "latest_version"), text(&item, "latest_filetype"));
        (text(&item, "name"), shown)
    });
    Ok(items.collect())
}

/// Tell whether there is a newer version of a package.
///
/// ```console
/// $ salt '*' pip.upgrade_available salt
/// ```
#[function]
pub fn upgrade_available(
    cx: &Cx,
    /// The package.
    pkg: String,
    #[group] place: Place,
) -> Result<bool> {
    Ok(list_upgrades(cx, place)?.contains(pkg.as_str()))
}

/// Bring all packages up to date and return what changed.
///
/// ```console
/// $ salt '*' pip.upgrade bin_env=/opt/venv
/// ```
#[function]
pub fn upgrade(
    cx: &Cx,
    #[group] place: Place,
    /// Accepted, as Salt does.
    #[default(false)]
    use_vt: bool,
) -> Result<Dict> {
    let _ = use_vt;
    let env = place.env(Dict::new());
    let old = installed(cx, &env)?;
    let ret = entries! { "changes" => Value::dict(), "result" => true, "comment" => "" };
    let mut errors = Vec::new();
    for name in upgrades(cx, &env)?.keys() {
        let ran = run_pip(cx, &env, false, vec!["install".into(), "-U".into(), name.to_string()])?;
        if !ran.ok() {
            errors.push(ran.stderr);
        }
    }
    if !errors.is_empty() {
        ret.insert("result", false);
        ret.insert("comment", errors.join("\n"));
    }
    let changes = Dict::new();
    for (name, new) in installed(cx, &env)? {
        let before = old.iter().find(|(own, _)| *own == name).map(|(_, version)| version.clone());
        if before.as_ref() != Some(&new) {
            changes.insert(name, dict! { "old" => before.unwrap_or_default(), "new" => new });
        }
    }
    ret.insert("changes", changes);
    Ok(ret)
}

/// Return all versions of a package that can be had, oldest first.
///
/// ```console
/// $ salt '*' pip.list_all_versions salt
/// ```
#[function]
pub fn list_all_versions(
    cx: &Cx,
    /// The package.
    pkg: String,
    /// A virtual environment, a `pip` or a `python`.
    bin_env: Option<String>,
    /// Alpha versions, too.
    #[default(false)]
    include_alpha: bool,
    /// Beta versions, too.
    #[default(false)]
    include_beta: bool,
    /// Release candidates, too.
    #[default(false)]
    include_rc: bool,
    /// The user pip runs as.
    user: Option<String>,
    /// The folder pip runs in.
    cwd: Option<String>,
    /// The package index.
    index_url: Option<String>,
    /// A further package index.
    extra_index_url: Option<String>,
) -> Result<Option<Vec<String>>> {
    let env = Env { bin_env, user, cwd, env_vars: Dict::new() };
    let kinds = [("a", include_alpha), ("b", include_beta), ("rc", include_rc)];
    let all = versions(cx, &env, &pkg, index_url.as_deref(), extra_index_url.as_deref())?;
    Ok(all.map(|all| {
        let wanted = |version: &String| {
            kinds.iter().all(|(kind, include)| *include || !version.contains(kind))
        };
        all.into_iter().filter(wanted).collect()
    }))
}

/// All versions of a package, oldest first; `None` if the index does not say.
pub fn versions(
    cx: &Cx,
    env: &Env,
    pkg: &str,
    index_url: Option<&str>,
    extra_index_url: Option<&str>,
) -> Result<Option<Vec<String>>> {
    let mut sources = Vec::new();
    for (option, url) in [("--index-url", index_url), ("--extra-index-url", extra_index_url)] {
        if let Some(url) = url {
            check_url(url)?;
            sources.extend([option.to_owned(), url.to_owned()]);
        }
    }
    let pip = |words: &[&str]| {
        run_pip(
            cx,
            env,
            true,
            words.iter().map(|word| (*word).to_owned()).chain(sources.clone()).collect(),
        )
    };
    let ran = pip(&["--disable-pip-version-check", "index", "versions", pkg])?;
    let mut line =
        ran.stdout.lines().find_map(|line| line.trim().strip_prefix("Available versions:"));
    let mut asked;
    if !ran.ok() {
        if !ran.stderr.contains("unknown command \"index\"") {
            return Ok(None);
        }
        // Before 21.2 pip only tells when asked for a version that cannot be; 20.3 with its old resolver.
        let none = format!("{pkg}==versions");
        asked = pip(&["install", &none])?.stderr;
        if !asked.contains(FROM_VERSIONS) {
            asked = pip(&["install", "--use-deprecated=legacy-resolver", &none])?.stderr;
        }
        let rest = asked.split_once(FROM_VERSIONS).and_then(|(_, rest)| rest.split_once(')'));
        line = rest.map(|(versions, _)| versions).filter(|versions| versions.trim() != "none");
    }
    let Some(line) = line else { return Ok(None) };
    let mut all: Vec<String> = line.split(',').map(|version| version.trim().to_owned()).collect();
    all.sort_by_key(|version| version::Version::parse(version));
    Ok(Some(all))
}

/// How an older pip begins its list of versions.
const FROM_VERSIONS: &str = "(from versions:";

fn check_url(url: &str) -> Result<()> {
    let known = ["http:", "https:", "ftp:", "file:"].iter().any(|start| url.starts_with(start));
    if known { Ok(()) } else { Err(Error::failed(format!("'{url}' is not a valid URL"))) }
}

/// What is not asked for.
const NO: Value = Value::Bool(false);

option_group! {
    /// Wheels, in pip before 9.0.3.
    Wheels:
    /// Prefer wheels; only in pip before 9.0.3.
    use_wheel = NO,
    /// Take no wheels; only in pip before 9.0.3.
    no_use_wheel = NO,
}

option_group! {
    /// How pip goes about it.
    Wire:
    /// A file pip writes its log to.
    log = Value::Null,
    /// A proxy: `user:password@host:port`.
    proxy = Value::Null,
    /// Seconds to wait for an answer.
    timeout = Value::Null,
}

option_group! {
    /// Where packages come from and go to.
    Sources:
    /// Further places to look for packages: addresses or folders.
    find_links = Value::Null,
    /// The package index.
    index_url = Value::Null,
    /// A further package index.
    extra_index_url = Value::Null,
    /// Look only where `find_links` says.
    no_index = NO,
    /// Mirrors; only in pip before 7.0.0.
    mirrors = Value::Null,
    /// The folder to unpack and build in.
    build = Value::Null,
    /// The folder to install into.
    target = Value::Null,
    /// Only download, into this folder.
    download = Value::Null,
    /// The folder downloads are kept in.
    download_cache = Value::Null,
    /// The folder editable packages are checked out in.
    source = Value::Null,
    /// Take the newest version that fits.
    upgrade = NO,
    /// Install again what is there.
    force_reinstall = NO,
    /// Install over what is there.
    ignore_installed = NO,
    /// What to do if a path is there: `s`witch, `i`gnore, `w`ipe or `b`ackup.
    exists_action = Value::Null,
    /// Without what it depends on.
    no_deps = NO,
    /// Download and unpack only.
    no_install = NO,
    /// Download nothing: install what was downloaded.
    no_download = NO,
}

option_group! {
    /// Which packages will do.
    Trust:
    /// Pre-releases, too.
    pre_releases = NO,
    /// A bundle of certificates.
    cert = Value::Null,
    /// Packages hosted elsewhere, too.
    allow_all_external = NO,
    /// These packages may be hosted elsewhere.
    allow_external = Value::Null,
    /// These packages need not be verified.
    allow_unverified = Value::Null,
    /// Follow the links packages name.
    process_dependency_links = NO,
}

/// What `pip install` is told.
#[derive(Clone, Debug, Default)]
pub struct Install {
    pub env: Env,
    pub pkgs: Value,
    pub requirements: Value,
    pub editable: Value,
    pub saltenv: String,
    /// All other arguments of [`install()`], by name.
    pub more: Dict,
}

impl Install {
    fn text(&self, name: &str) -> Option<String> {
        self.more.get(name).filter(Value::truthy).map(|value| value.to_string())
    }

    fn flag(&self, name: &str) -> bool {
        self.more.get(name).is_some_and(|value| value.truthy())
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.more
            .get(name)
            .filter(Value::truthy)
            .map(|value| cmd::split_input(&value))
            .unwrap_or_default()
    }

    /// The words behind `pip install`.
    fn words(&self, cx: &Cx) -> Result<Vec<String>, Failed> {
        let mut words = strings(["install"]);
        let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for file in requirement_files(cx, &self.requirements, &self.saltenv)? {
            push("--requirement", file);
        }
        let no_binary = self.list("no_binary");
        if !no_binary.is_empty() {
            push("--no-binary", no_binary.join(","));
        }
        for (name, option) in [("log", "--log"), ("proxy", "--proxy")] {
            if let Some(text) = self.text(name) {
                push(option, text);
            }
        }
        if let Some(timeout) = self.text("timeout") {
            push("--timeout", check_timeout(&timeout)?);
        }
        for link in self.list("find_links") {
            let is_path = cx.host.exists(Path::new(&link))?;
            if !is_path && check_url(&link).is_err() {
                return Err(Error::failed(format!("'{link}' is not a valid URL or path")).into());
            }
            push("--find-links", link);
        }
        let no_index = self.flag("no_index");
        if no_index && (self.flag("index_url") || self.flag("extra_index_url")) {
            return Err(Error::failed(
                "'no_index' and ('index_url' or 'extra_index_url') are mutually exclusive.",
            )
            .into());
        }
        for (name, option) in
            [("index_url", "--index-url"), ("extra_index_url", "--extra-index-url")]
        {
            if let Some(url) = self.text(name) {
                check_url(&url)?;
                push(option, url);
            }
        }
        if self.flag("mirrors") {
            return Err(Error::failed(
                "pip >= 7.0.0 does not support mirror argument: use index_url and/or \
                 extra_index_url instead",
            )
            .into());
        }
        let flag = |words: &mut Vec<String>, name: &str, option: &str| {
            if self.flag(name) {
                words.push(option.to_owned());
            }
        };
        let text = |words: &mut Vec<String>, name: &str, option: &str| {
            if let Some(text) = self.text(name) {
                words.extend([option.to_owned(), text]);
            }
        };
        flag(&mut words, "no_index", "--no-index");
        flag(&mut words, "disable_version_check", "--disable-pip-version-check");
        for (name, option) in
            [("build", "--build"), ("target", "--target"), ("download", "--download")]
        {
            text(&mut words, name, option);
        }
        // Two names for one folder; the older wins.
        let cache = if self.flag("download_cache") { "download_cache" } else { "cache_dir" };
        text(&mut words, cache, "--cache-dir");
        text(&mut words, "source", "--source");
        for (name, option) in [
            ("upgrade", "--upgrade"),
            ("force_reinstall", "--force-reinstall"),
            ("ignore_installed", "--ignore-installed"),
        ] {
            flag(&mut words, name, option);
        }
        if let Some(action) = self.text("exists_action") {
            if !["s", "i", "w", "b"].contains(&action.as_str()) {
                return Err(Error::failed(format!(
                    "The exists_action pip option only supports the values s, i, w, and b. \
                     '{action}' is not valid."
                ))
                .into());
            }
            words.extend(["--exists-action".to_owned(), action]);
        }
        for (name, option) in [
            ("no_deps", "--no-deps"),
            ("no_install", "--no-install"),
            ("no_download", "--no-download"),
            ("no_cache_dir", "--no-cache-dir"),
            ("pre_releases", "--pre"),
        ] {
            flag(&mut words, name, option);
        }
        text(&mut words, "cert", "--cert");
        for option in self.list("global_options") {
            words.extend(["--global-option".to_owned(), option]);
        }
        for option in self.list("install_options") {
            words.extend(["--install-option".to_owned(), option]);
        }
        words.extend(package_words(&self.pkgs));
        for source in if self.editable.truthy() { cmd::split_input(&self.editable) } else { vec![] }
        {
            if source.contains("://") && !source.contains("egg=") {
                return Err(Error::failed("You must specify an egg for this editable").into());
            }
            words.extend(["--editable".to_owned(), source]);
        }
        flag(&mut words, "allow_all_external", "--allow-all-external");
        for (name, option) in
            [("allow_external", "--allow-external"), ("allow_unverified", "--allow-unverified")]
        {
            for pkg in self.list(name) {
                words.extend([option.to_owned(), pkg]);
            }
        }
        flag(&mut words, "process_dependency_links", "--process-dependency-links");
        // differs: Salt passes a list as the text of a Python list.
        for host in self.list("trusted_host") {
            words.extend(["--trusted-host".to_owned(), host]);
        }
        words.extend(extra_words(self.more.get("extra_args").unwrap_or_default())?);
        Ok(words)
    }
}

/// Why nothing was run: a return of its own, or an error.
enum Failed {
    /// Salt answers with a dict of result and comment.
    Said(String),
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<halite_spec::host::Error> for Failed {
    fn from(error: halite_spec::host::Error) -> Self {
        Self::Error(error.into())
    }
}

impl Failed {
    fn into_return(self) -> Result<Dict> {
        match self {
            Self::Said(comment) => Ok(entries! { "result" => false, "comment" => comment }),
            Self::Error(error) => Err(error),
        }
    }
}

fn check_timeout(text: &str) -> Result<String> {
    if text.parse::<f64>().is_ok() {
        return Ok(text.to_owned());
    }
    Err(Error::raised("ValueError", format!("'{text}' is not a valid timeout, must be an integer")))
}

/// The packages of an argument, a text with commas split unless the commas belong to a version.
fn package_words(pkgs: &Value) -> Vec<String> {
    if !pkgs.truthy() {
        return Vec::new();
    }
    let Some(text) = pkgs.as_str() else { return cmd::split_input(pkgs) };
    let mut words: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match words.last_mut() {
            Some(last) if part.starts_with(['<', '>', '=', '!', '~']) => {
                last.push(',');
                last.push_str(part);
            }
            _ => words.push(part.trim_matches(['\'', '"']).to_owned()),
        }
    }
    words
}

fn extra_words(extra: Value) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for item in extra.items_of_sequence().unwrap_or_default() {
        match item.as_dict() {
            Some(dict) => {
                for (key, value) in dict {
                    if value.items_of_sequence().is_some() || value.as_dict().is_some() {
                        return Err(Error::raised(
                            "TypeError",
                            format!("Too many levels in: {key}"),
                        ));
                    }
                    words.extend([key.to_string(), value.to_string()]);
                }
            }
            None => words.push(item.to_string()),
        }
    }
    Ok(words)
}

/// The files of requirements, fetched where they are on the file server.
fn requirement_files(cx: &Cx, given: &Value, saltenv: &str) -> Result<Vec<String>, Failed> {
    let mut files = Vec::new();
    if !given.truthy() {
        return Ok(files);
    }
    for file in cmd::split_input(given) {
        if file.contains("://") {
            match cx.files.cache(&file, saltenv)? {
                Some(path) => files.push(path.display().to_string()),
                None => {
                    return Err(Failed::Said(format!("pip requirements file '{file}' not found")));
                }
            }
        } else {
            files.push(file);
        }
    }
    Ok(files)
}

/// Installs; returns as Salt's function does.
pub fn run_install(cx: &Cx, request: &Install) -> Result<Dict> {
    let empty = |value: &Value| !value.truthy();
    if empty(&request.pkgs) && empty(&request.requirements) && empty(&request.editable) {
        return Ok(entries! { "retcode" => 0, "stdout" => "No packages to install." });
    }
    let words = match request.words(cx) {
        Ok(words) => words,
        Err(failed) => return failed.into_return(),
    };
    Ok(run_pip(cx, &request.env, false, words)?.to_value())
}

/// Install packages; returns the result of the command.
///
/// ```console
/// $ salt '*' pip.install django,requests==2.31.0 bin_env=/opt/venv
/// $ salt '*' pip.install requirements=salt://app/requirements.txt upgrade=True
/// ```
#[function]
pub fn install(
    cx: &Cx,
    /// The packages, as a list or with commas.
    #[default(Value::Null)]
    pkgs: Value,
    /// Files of requirements.
    #[default(Value::Null)]
    requirements: Value,
    /// A virtual environment, a `pip` or a `python`.
    bin_env: Option<String>,
    #[group] wheels: Wheels,
    #[group] wire: Wire,
    /// Sources to install in development mode.
    #[default(Value::Null)]
    editable: Value,
    #[group] sources: Sources,
    /// Options for the `setup.py` of packages, before its command.
    #[default(Value::Null)]
    global_options: Value,
    /// Options for the `install` of the `setup.py` of packages.
    #[default(Value::Null)]
    install_options: Value,
    /// The user pip runs as.
    user: Option<String>,
    /// The folder pip runs in.
    cwd: Option<String>,
    #[group] trust: Trust,
    /// The environment files come from.
    #[default("base".to_owned())]
    saltenv: String,
    /// Environment variables for pip.
    #[default(Dict::new())]
    #[shown(Value::Null)]
    env_vars: Dict,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// Hosts to trust without a certificate.
    #[default(Value::Null)]
    trusted_host: Value,
    /// Keep no downloads.
    #[default(Value::Bool(false))]
    no_cache_dir: Value,
    /// Further words for pip: texts, and dicts of an option and its value.
    #[default(Value::Null)]
    extra_args: Value,
    /// The folder downloads are kept in.
    #[default(Value::Null)]
    cache_dir: Value,
    /// Packages of which no wheel is taken; `:all:` for all.
    #[default(Value::Null)]
    no_binary: Value,
    /// Do not ask whether there is a newer pip.
    #[default(Value::Bool(false))]
    disable_version_check: Value,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Dict> {
    let _ = (use_vt, rest);
    let env = Env { bin_env, user, cwd, env_vars };
    let more = entries! {
        "global_options" => global_options, "install_options" => install_options,
        "trusted_host" => trusted_host, "no_cache_dir" => no_cache_dir,
        "extra_args" => extra_args, "cache_dir" => cache_dir, "no_binary" => no_binary,
        "disable_version_check" => disable_version_check,
    };
    wheels.put(&more);
    wire.put(&more);
    sources.put(&more);
    trust.put(&more);
    run_install(cx, &Install { env, pkgs, requirements, editable, saltenv, more })
}

/// Uninstalls; returns as Salt's function does.
pub fn run_uninstall(cx: &Cx, request: &Install) -> Result<Dict> {
    let mut words = strings(["uninstall", "-y"]);
    match requirement_files(cx, &request.requirements, &request.saltenv) {
        Ok(files) => {
            for file in files {
                words.extend(["--requirement".to_owned(), file]);
            }
        }
        Err(failed) => return failed.into_return(),
    }
    for (name, option) in [("log", "--log"), ("proxy", "--proxy")] {
        if let Some(text) = request.text(name) {
            words.extend([option.to_owned(), text]);
        }
    }
    if let Some(timeout) = request.text("timeout") {
        words.extend(["--timeout".to_owned(), check_timeout(&timeout)?]);
    }
    words.extend(package_words(&request.pkgs));
    words.extend(extra_words(request.more.get("extra_args").unwrap_or_default())?);
    Ok(run(cx, &request.env, false, words)?.to_value())
}

/// Remove packages; returns the result of the command.
///
/// ```console
/// $ salt '*' pip.uninstall django bin_env=/opt/venv
/// ```
#[function]
pub fn uninstall(
    cx: &Cx,
    /// The packages, as a list or with commas.
    #[default(Value::Null)]
    pkgs: Value,
    /// Files of requirements.
    #[default(Value::Null)]
    requirements: Value,
    /// A virtual environment, a `pip` or a `python`.
    bin_env: Option<String>,
    #[group] wire: Wire,
    /// The user pip runs as.
    user: Option<String>,
    /// The folder pip runs in.
    cwd: Option<String>,
    /// The environment files come from.
    #[default("base".to_owned())]
    saltenv: String,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// Further words for pip: texts, and dicts of an option and its value.
    #[default(Value::Null)]
    extra_args: Value,
) -> Result<Dict> {
    let _ = use_vt;
    let env = Env { bin_env, user, cwd, env_vars: Dict::new() };
    let more = entries! { "extra_args" => extra_args };
    wire.put(&more);
    let request = Install { env, pkgs, requirements, editable: Value::Null, saltenv, more };
    run_uninstall(cx, &request)
}
