//! `npm`: packages of Node.js.
//!
//! Without a folder packages are the machine's own (`--global`).

use halite_spec::{Cx, Error, Need, Result, function, module};
use halite_value::{Dict, Value, json};

use crate::cmd::{self, Options, Ran};

module! {
    /// Install and look at packages of Node.js.
    "npm", needs = [
        Need::program(&["npm"], "npm execution module could not be loaded because the npm binary could not be located"),
    ]: cache_clean, cache_list, cache_path, install, list_, uninstall,
}

/// Where npm works, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Env {
    pub dir: Option<String>,
    pub runas: Option<String>,
    pub env: Dict,
}

fn run(cx: &Cx, env: &Env, words: Vec<String>, query: bool) -> Result<Ran> {
    if cx.host.which("npm").is_none() {
        return Err(Error::Unavailable {
            function: "npm".into(),
            reason: "npm execution module could not be loaded because the npm binary could not \
                     be located"
                .into(),
        });
    }
    let vars = env.env.shallow_copy();
    if let Some(user) = &env.runas
        && let Some(user) = cx.host.user_named(user)?
    {
        vars.insert("SUDO_UID", user.uid.to_string());
        vars.insert("SUDO_USER", "");
    }
    let options = Options {
        cwd: env.dir.clone(),
        runas: env.runas.clone(),
        env: vars.into(),
        query,
        ..Options::default()
    };
    cmd::plain(cx, [vec!["npm".to_owned()], words].concat(), options)
}

fn owned<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// How packages are installed.
#[derive(Clone, Debug, Default)]
pub struct Install {
    pub registry: Option<String>,
    pub dry_run: bool,
    pub silent: bool,
}

/// Installs packages (or, without any, what the folder's `package.json` asks for).
pub fn add(cx: &Cx, env: &Env, pkgs: &[String], how: &Install) -> Result<Value> {
    let mut words = owned(["install", "--json"]);
    if how.silent {
        words.push("--silent".into());
    }
    if env.dir.is_none() {
        words.push("--global".into());
    }
    if let Some(registry) = &how.registry {
        words.push(format!("--registry={registry}"));
    }
    if how.dry_run {
        words.push("--dry-run".into());
    }
    words.extend(pkgs.iter().cloned());
    let ran = run(cx, env, words, false)?;
    if !ran.ok() {
        return Err(Error::failed(ran.stderr));
    }
    // npm writes other lines before its JSON.
    let start = ran.stdout.find(['{', '[']).unwrap_or(0);
    let text = ran.stdout.get(start..).unwrap_or_default();
    Ok(json::from_str(text).unwrap_or_else(|_| ran.stdout.into()))
}

/// Name → what npm knows of an installed package.
pub fn installed(cx: &Cx, env: &Env, pkg: Option<&str>, depth: Option<i64>) -> Result<Dict> {
    let mut words = owned(["list", "--json", "--silent"]);
    if env.dir.is_none() {
        words.push("--global".into());
    }
    if let Some(depth) = depth {
        words.push(format!("--depth={depth}"));
    }
    words.extend(pkg.map(|pkg| {
        if pkg.contains('@') && !pkg.starts_with('@') {
            pkg.split('@').next().unwrap_or(pkg).to_owned()
        } else {
            pkg.to_owned()
        }
    }));
    let ran = run(cx, env, words, true)?;
    // npm fails when something is missing, and prints the list all the same.
    if !ran.ok() && !ran.stderr.is_empty() {
        return Err(Error::failed(ran.stderr));
    }
    let list = json::from_str(&ran.stdout).unwrap_or_else(|_| Value::dict());
    Ok(list.get("dependencies").and_then(|all| all.as_dict().cloned()).unwrap_or_default())
}

/// Removes a package; false, with the reason in the log, if that fails.
pub fn remove(cx: &Cx, env: &Env, pkg: &str) -> Result<bool> {
    let mut words = owned(["uninstall", pkg]);
    if env.dir.is_none() {
        words.push("--global".into());
    }
    let ran = run(cx, env, words, false)?;
    if !ran.ok() {
        tracing::error!("{}", ran.stderr);
    }
    Ok(ran.ok())
}

/// Install packages.
///
/// ```console
/// $ salt web1 npm.install left-pad
/// ```
#[function]
pub fn install(
    cx: &Cx,
    /// The package.
    pkg: Option<String>,
    /// Several packages.
    #[default(Vec::new())]
    #[shown(None::<bool>)]
    pkgs: Vec<String>,
    /// The folder; without it the machine's own packages.
    dir: Option<String>,
    /// The user npm runs as.
    runas: Option<String>,
    /// The registry.
    registry: Option<String>,
    /// Environment variables for npm.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    env: Dict,
    /// Only say what would be done.
    #[default(false)]
    dry_run: bool,
    /// Print less.
    #[default(true)]
    silent: bool,
) -> Result<Value> {
    let pkgs = if pkgs.is_empty() { pkg.into_iter().collect() } else { pkgs };
    add(cx, &Env { dir, runas, env }, &pkgs, &Install { registry, dry_run, silent })
}

/// Remove a package.
///
/// ```console
/// $ salt web1 npm.uninstall left-pad
/// ```
#[function]
pub fn uninstall(
    cx: &Cx,
    /// The package.
    pkg: String,
    /// The folder; without it the machine's own packages.
    dir: Option<String>,
    /// The user npm runs as.
    runas: Option<String>,
    /// Environment variables for npm.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    env: Dict,
) -> Result<bool> {
    remove(cx, &Env { dir, runas, env }, &pkg)
}

/// Return the installed packages: name → what npm knows of it.
///
/// ```console
/// $ salt web1 npm.list left-pad
/// ```
#[function(name = "list")]
pub fn list_(
    cx: &Cx,
    /// Only this package.
    pkg: Option<String>,
    /// The folder; without it the machine's own packages.
    dir: Option<String>,
    /// The user npm runs as.
    runas: Option<String>,
    /// Environment variables for npm.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    env: Dict,
    /// How deep to look.
    depth: Option<i64>,
) -> Result<Dict> {
    installed(cx, &Env { dir, runas, env }, pkg.as_deref(), depth)
}

/// Empty the cache of npm.
///
/// ```console
/// $ salt web1 npm.cache_clean
/// ```
#[function]
pub fn cache_clean(
    cx: &Cx,
    /// Only this part.
    path: Option<String>,
    /// The user npm runs as.
    runas: Option<String>,
    /// Environment variables for npm.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    env: Dict,
    /// Even if it is not needed.
    #[default(false)]
    force: bool,
) -> Result<bool> {
    let mut words = owned(["cache", "clean"]);
    words.extend(path);
    if force {
        words.push("--force".into());
    }
    Ok(run(cx, &Env { dir: None, runas, env }, words, false)?.ok())
}

/// Return what is in the cache of npm.
///
/// ```console
/// $ salt '*' npm.cache_list
/// ```
#[function]
pub fn cache_list(
    cx: &Cx,
    /// Only this part.
    path: Option<String>,
    /// The user npm runs as.
    runas: Option<String>,
    /// Environment variables for npm.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    env: Dict,
) -> Result<String> {
    let mut words = owned(["cache", "ls"]);
    words.extend(path);
    let ran = run(cx, &Env { dir: None, runas, env }, words, true)?;
    if ran.ok() { Ok(ran.stdout) } else { Err(Error::failed(ran.stderr)) }
}

/// Return where the cache of npm is.
///
/// ```console
/// $ salt web1 npm.cache_path
/// ```
#[function]
pub fn cache_path(
    cx: &Cx,
    /// The user npm runs as.
    runas: Option<String>,
    /// Environment variables for npm.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    env: Dict,
) -> Result<String> {
    let words = owned(["config", "get", "cache"]);
    let ran = run(cx, &Env { dir: None, runas, env }, words, true)?;
    Ok(if ran.ok() { ran.stdout } else { ran.stderr })
}
