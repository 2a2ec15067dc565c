//! `gem`: Ruby packages.
//!
//! `ruby` names a Ruby of rbenv or rvm, whichever the machine has; without it the machine's own
//! `gem` is run.

use halite_spec::{Args, Cx, Error, Result, function, module};
use halite_value::{Dict, Value};

use crate::cmd::{self, Options};

module! {
    /// Install and look at Ruby packages.
    "gem": install, list_, list_upgrades, sources_add, sources_list, sources_remove, uninstall,
    update, update_system, version_,
}

/// Which `gem` to run, and as whom.
#[derive(Args, Clone, Debug, Default)]
pub struct Env {
    /// The Ruby of rbenv or rvm to use.
    pub ruby: Option<String>,
    /// The user gem runs as.
    pub runas: Option<String>,
    /// The `gem` to run.
    pub gem_bin: Option<String>,
}

/// How gems are installed.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Install {
    /// The version.
    pub version: Option<String>,
    /// With documentation.
    #[default(false)]
    pub rdoc: bool,
    /// With documentation for `ri`.
    #[default(false)]
    pub ri: bool,
    /// Pre-releases, too.
    #[default(false)]
    pub pre_releases: bool,
    /// The proxy to use.
    pub proxy: Option<String>,
    /// The place the gem comes from.
    pub source: Option<String>,
}

/// Runs `gem`; the error is what it wrote.
fn run(cx: &Cx, env: &Env, words: &[&str], query: bool) -> Result<String> {
    let program = env.gem_bin.clone().unwrap_or_else(|| "gem".into());
    let mut line = Vec::new();
    let mut vars = Dict::new();
    if env.gem_bin.is_none()
        && let Some(ruby) = &env.ruby
    {
        if cx.host.which("rbenv").is_some() {
            line.extend(["rbenv".to_owned(), "exec".into()]);
            vars = halite_value::entries! { "RBENV_VERSION" => ruby.as_str() };
        } else if cx.host.which("rvm").is_some() {
            line.extend(["rvm".to_owned(), ruby.clone(), "do".into()]);
        }
    }
    line.push(program);
    line.extend(words.iter().map(|word| (*word).to_owned()));
    let options =
        Options { runas: env.runas.clone(), env: vars.into(), query, ..Options::default() };
    let ran = cmd::plain(cx, line, options)?;
    if ran.ok() { Ok(ran.stdout) } else { Err(Error::failed(ran.stderr)) }
}

fn own_version(cx: &Cx, env: &Env) -> Result<String> {
    let text = run(cx, env, &["--version"], true)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Name → versions of what is installed.
pub fn installed(cx: &Cx, env: &Env, prefix: &str) -> Result<Dict> {
    let mut words = vec!["list"];
    if !prefix.is_empty() {
        words.push(prefix);
    }
    Ok(parse(&run(cx, env, &words, true)?))
}

fn parse(text: &str) -> Dict {
    let gems = Dict::new();
    for line in text.lines() {
        if let Some((name, versions)) = line.trim().split_once(" (")
            && let Some(versions) = versions.strip_suffix(')')
            && !name.contains(' ')
        {
            gems.insert(name, Value::list(versions.split(", ")));
        }
    }
    gems
}

/// Installs gems; returns what `gem` said.
pub fn add(cx: &Cx, env: &Env, gems: &[String], how: &Install) -> Result<String> {
    let version = own_version(cx, env)?;
    let major: u32 = version.split('.').next().and_then(|part| part.parse().ok()).unwrap_or(3);
    let mut words: Vec<&str> = vec!["install"];
    words.extend(gems.iter().map(String::as_str));
    if let Some(version) = &how.version {
        words.extend(["--version", version]);
    }
    if major >= 3 {
        if !how.rdoc && !how.ri {
            words.push("--no-document");
        }
    } else {
        if !how.rdoc {
            words.push("--no-rdoc");
        }
        if !how.ri {
            words.push("--no-ri");
        }
    }
    if how.pre_releases {
        words.push("--prerelease");
    }
    if let Some(proxy) = &how.proxy {
        words.extend(["-p", proxy]);
    }
    if let Some(source) = &how.source {
        words.extend(["--source", source]);
    }
    run(cx, env, &words, false)
}

/// Removes a gem with all its versions and programs.
pub fn remove(cx: &Cx, env: &Env, gems: &[String]) -> Result<String> {
    let mut words: Vec<&str> = vec!["uninstall"];
    words.extend(gems.iter().map(String::as_str));
    words.extend(["-a", "-x"]);
    run(cx, env, &words, false)
}

/// The places gems come from.
pub fn sources(cx: &Cx, env: &Env) -> Result<Vec<String>> {
    let text = run(cx, env, &["sources"], true)?;
    Ok(text.lines().skip(2).map(str::to_owned).collect())
}

/// Adds or removes a place gems come from.
pub fn change_source(cx: &Cx, env: &Env, uri: &str, add: bool) -> Result<String> {
    run(cx, env, &["sources", if add { "--add" } else { "--remove" }, uri], false)
}

fn words(gems: &Value) -> Vec<String> {
    match gems.as_str() {
        Some(text) => text.split_whitespace().map(str::to_owned).collect(),
        None => cmd::split_input(gems),
    }
}

/// Install gems.
///
/// ```console
/// $ salt '*' gem.install vagrant
/// ```
#[function]
pub fn install(
    cx: &Cx,
    /// The gems.
    gems: Value,
    #[group] how: Install,
    #[group] env: Env,
) -> Result<String> {
    add(cx, &env, &words(&gems), &how)
}

/// Remove gems with all their versions.
///
/// ```console
/// $ salt '*' gem.uninstall vagrant
/// ```
#[function]
pub fn uninstall(
    cx: &Cx,
    /// The gems.
    gems: Value,
    #[group] env: Env,
) -> Result<String> {
    remove(cx, &env, &words(&gems))
}

/// Bring gems up to date.
///
/// ```console
/// $ salt '*' gem.update vagrant
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// The gems.
    gems: Value,
    #[group] env: Env,
) -> Result<String> {
    let gems = words(&gems);
    let all: Vec<&str> = ["update"].into_iter().chain(gems.iter().map(String::as_str)).collect();
    run(cx, &env, &all, false)
}

/// Bring rubygems itself up to date.
///
/// ```console
/// $ salt '*' gem.update_system
/// ```
#[function]
pub fn update_system(
    cx: &Cx,
    /// The version wanted.
    #[default(String::new())]
    version: String,
    #[group] env: Env,
) -> Result<String> {
    let mut words = vec!["update", "--system"];
    if !version.is_empty() {
        words.push(&version);
    }
    run(cx, &env, &words, false)
}

/// Return the version of rubygems.
///
/// ```console
/// $ salt '*' gem.version
/// ```
#[function(name = "version")]
pub fn version_(cx: &Cx, #[group] env: Env) -> Result<String> {
    own_version(cx, &env)
}

/// Return the installed gems: name → versions.
///
/// ```console
/// $ salt '*' gem.list
/// ```
#[function(name = "list")]
pub fn list_(
    cx: &Cx,
    /// Only gems whose names begin so.
    #[default(String::new())]
    prefix: String,
    #[group] env: Env,
) -> Result<Dict> {
    installed(cx, &env, &prefix)
}

/// Return gems for which there is a newer version: name → version.
///
/// ```console
/// $ salt '*' gem.list_upgrades
/// ```
#[function]
pub fn list_upgrades(cx: &Cx, #[group] env: Env) -> Result<Dict> {
    let text = run(cx, &env, &["outdated"], true)?;
    let pair = |line: &str| {
        let (name, versions) = line.split_once(" (")?;
        let (_, new) = versions.strip_suffix(')')?.split_once('<')?;
        Some((name.trim().to_owned(), new.trim().to_owned()))
    };
    Ok(text.lines().filter_map(pair).collect())
}

/// Add a place gems come from.
///
/// ```console
/// $ salt '*' gem.sources_add http://gems.example/
/// ```
#[function]
pub fn sources_add(
    cx: &Cx,
    /// The place.
    source_uri: String,
    #[group] env: Env,
) -> Result<String> {
    change_source(cx, &env, &source_uri, true)
}

/// Remove a place gems come from.
///
/// ```console
/// $ salt '*' gem.sources_remove http://gems.example/
/// ```
#[function]
pub fn sources_remove(
    cx: &Cx,
    /// The place.
    source_uri: String,
    #[group] env: Env,
) -> Result<String> {
    change_source(cx, &env, &source_uri, false)
}

/// Return the places gems come from.
///
/// ```console
/// $ salt '*' gem.sources_list
/// ```
#[function]
pub fn sources_list(cx: &Cx, #[group] env: Env) -> Result<Vec<String>> {
    sources(cx, &env)
}

#[cfg(test)]
mod tests {
    use halite_value::list;

    use super::*;

    #[test]
    fn gems() {
        let text = "*** LOCAL GEMS ***\n\nbundler (default: 2.1.4)\nrake (13.0.6, 12.0)\n";
        let found = parse(text);
        assert_eq!(found.get("rake"), Some(list!["13.0.6", "12.0"]));
        assert_eq!(found.get("bundler"), Some(list!["default: 2.1.4"]));
        assert_eq!(found.len(), 2);
    }
}
