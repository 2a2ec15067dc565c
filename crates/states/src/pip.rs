//! `pip`: Python packages.
//!
//! Which packages are missing is found out beforehand; which versions pip will choose it knows only
//! itself, so `test=True` predicts changes only where a version is named exactly.

use halite_modules::pip::{self, Env, Install, version};
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Python packages.
    "pip": "installed" => Installed,
    "removed" => Removed,
    "uptodate" => Uptodate,
}

/// A requirement, as far as we can read it.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// As given.
    pub(crate) text: String,
    /// Empty when it cannot be told: a URL without `#egg=`.
    pub(crate) name: String,
    pub(crate) clauses: Vec<version::Clause>,
}

impl Wanted {
    /// Reads `name[extra]>=1.0; marker`, `name @ url`, `…#egg=name`, or the path of a wheel.
    pub(crate) fn parse(text: &str) -> Self {
        let unknown =
            |name: &str| Self { text: text.to_owned(), name: name.to_owned(), clauses: Vec::new() };
        let plain = text.split(';').next().unwrap_or(text).trim();
        if let Some((_, egg)) = plain.split_once("#egg=") {
            return unknown(egg.split(['&', '[']).next().unwrap_or_default());
        }
        if let Some((name, _)) = plain.split_once(" @ ") {
            return unknown(name.split('[').next().unwrap_or_default().trim());
        }
        if plain.contains("://") || plain.contains('/') {
            let file = plain.rsplit('/').next().unwrap_or_default();
            let mut parts = file.strip_suffix(".whl").into_iter().flat_map(|file| file.split('-'));
            return match (parts.next(), parts.next()) {
                (Some(name), Some(version)) => {
                    Self { clauses: vec![("==".into(), version.to_owned())], ..unknown(name) }
                }
                _ => unknown(""),
            };
        }
        let end = plain
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
            .unwrap_or(plain.len());
        let (name, mut rest) = plain.split_at(end);
        if let Some(extras) = rest.trim_start().strip_prefix('[') {
            rest = extras.split_once(']').map_or("", |(_, rest)| rest);
        }
        let rest = rest.trim().trim_start_matches('(').trim_end_matches(')');
        match version::clauses(rest) {
            Some(clauses) => Self { clauses, ..unknown(name) },
            // Not a specifier: pip shall say what is wrong with it.
            None => Self { clauses: vec![("===".into(), rest.to_owned())], ..unknown(name) },
        }
    }

    pub(crate) fn version_in<'p>(&self, installed: &'p [(String, String)]) -> Option<&'p str> {
        let own = pip::normal(&self.name);
        let found = installed.iter().find(|(name, _)| pip::normal(name) == own);
        found.map(|(_, version)| version.as_str()).filter(|_| !own.is_empty())
    }

    pub(crate) fn satisfied_in(&self, installed: &[(String, String)]) -> bool {
        self.version_in(installed).is_some_and(|own| version::satisfies(own, &self.clauses))
    }

    /// The version, if exactly one will do.
    fn exact(&self) -> Option<&str> {
        match self.clauses.as_slice() {
            [(operator, version)] if operator == "==" && !version.ends_with('*') => Some(version),
            _ => None,
        }
    }

    fn shown(&self, version: &str) -> String {
        format!("{}=={version}", pip::normal(&self.name))
    }
}

/// Make sure that Python packages are installed.
#[derive(Args)]
pub struct Installed {
    /// The package, if there is no list of them: `requests`, `requests>=2.31`.
    #[arg(required)]
    name: Option<String>,
    /// Several packages.
    #[default(Value::Null)]
    pkgs: Value,
    /// The pip to use; older name of `bin_env`.
    pip_bin: Option<String>,
    /// Files of requirements; packages are not looked at then.
    #[default(Value::Null)]
    requirements: Value,
    /// A virtual environment, a `pip` or a `python`.
    bin_env: Option<String>,
    #[group]
    wheels: pip::Wheels,
    #[group]
    wire: pip::Wire,
    /// Taken for the sake of callers: Salt does nothing with it.
    #[default(Value::Null)]
    #[expect(dead_code, reason = "taken and ignored")]
    repo: Value,
    /// Sources to install in development mode.
    #[default(Value::Null)]
    editable: Value,
    #[group]
    sources: pip::Sources,
    /// Options for the `install` of the `setup.py` of packages.
    #[default(Value::Null)]
    install_options: Value,
    /// Options for the `setup.py` of packages, before its command.
    #[default(Value::Null)]
    global_options: Value,
    /// The user pip runs as.
    user: Option<String>,
    /// The folder pip runs in.
    cwd: Option<String>,
    #[group]
    trust: pip::Trust,
    /// Environment variables for pip.
    #[default(Dict::new())]
    #[shown(Value::Null)]
    env_vars: Dict,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    #[expect(dead_code, reason = "there is no terminal")]
    use_vt: bool,
    /// Hosts to trust without a certificate.
    #[default(Value::Null)]
    trusted_host: Value,
    /// Keep no downloads.
    #[default(Value::Bool(false))]
    no_cache_dir: Value,
    /// The folder downloads are kept in.
    #[default(Value::Null)]
    cache_dir: Value,
    /// Packages of which no wheel is taken; `:all:` for all.
    #[default(Value::Null)]
    no_binary: Value,
    /// Further words for pip: texts, and dicts of an option and its value.
    #[default(Value::Null)]
    extra_args: Value,
    /// `disable_version_check`; whatever else is given, Salt does nothing with.
    rest: Rest,
}

/// What looking told.
#[derive(Default)]
pub struct Seen {
    /// To install.
    targets: Vec<Wanted>,
    notes: Vec<String>,
}

impl Installed {
    /// The package of a state without a list of them; None is given with a list.
    fn own_name(&self) -> &str {
        self.name.as_deref().unwrap_or("None")
    }

    fn env(&self) -> Env {
        Env {
            bin_env: self.bin_env.clone().or_else(|| self.pip_bin.clone()),
            user: self.user.clone(),
            cwd: self.cwd.clone(),
            env_vars: self.env_vars.clone(),
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let list = match self.pkgs.items_of_sequence().filter(|list| !list.is_empty()) {
            Some(list) => list.iter().map(Value::to_string).collect(),
            None => vec![self.own_name().to_owned()],
        };
        list.iter().map(|text| Wanted::parse(text)).collect()
    }

    fn is_files(&self) -> bool {
        self.requirements.truthy() || self.editable.truthy()
    }

    /// Decides about an installed package that satisfies: `None` if nothing is to be done.
    fn newer(&self, cx: &Cx, wanted: &Wanted, current: &str) -> Result<Option<bool>> {
        let text = |value: &Value| Some(value).filter(|url| url.truthy()).map(Value::to_string);
        let all = pip::versions(
            cx,
            &self.env(),
            &wanted.name,
            text(&self.sources.index_url).as_deref(),
            text(&self.sources.extra_index_url).as_deref(),
        )?;
        let fits = |version: &&String| {
            let pre = version::Version::parse(version).is_some_and(|own| own.is_prerelease());
            (self.trust.pre_releases.truthy() || !pre)
                && version::satisfies(version, &wanted.clauses)
        };
        let newest = all.as_ref().and_then(|all| all.iter().rfind(fits));
        Ok(newest.map(|newest| version::Version::parse(newest) != version::Version::parse(current)))
    }

    fn request(&self, pkgs: Value) -> Install {
        let more = entries! {
            "global_options" => self.global_options.clone(),
            "install_options" => self.install_options.clone(),
            "trusted_host" => self.trusted_host.clone(),
            "no_cache_dir" => self.no_cache_dir.clone(),
            "extra_args" => self.extra_args.clone(),
            "cache_dir" => self.cache_dir.clone(),
            "no_binary" => self.no_binary.clone(),
            "disable_version_check" => self.rest.kwargs.get("disable_version_check"),
        };
        self.wheels.put(&more);
        self.wire.put(&more);
        self.sources.put(&more);
        self.trust.put(&more);
        Install {
            env: self.env(),
            pkgs,
            requirements: self.requirements.clone(),
            editable: self.editable.clone(),
            saltenv: String::new(),
            more,
        }
    }

    fn planned(&self, seen: &Seen) -> Plan {
        if self.requirements.truthy() {
            let file = list_text(&self.requirements);
            return Plan::change("requirements", true)
                .pending(format!("Requirements file '{file}' will be processed."))
                .done(format!("Successfully processed requirements file {file}."));
        }
        if self.editable.truthy() {
            let source = list_text(&self.editable);
            return Plan::change("editable", true)
                .pending(format!(
                    "Package will be installed in editable mode (i.e. setuptools \"develop \
                     mode\") from {source}."
                ))
                .done(
                    "Package successfully installed from VCS checkout ".to_owned() + &source + ".",
                );
        }
        if seen.targets.is_empty() {
            let mut notes = seen.notes.clone();
            let newest = if self.sources.upgrade.truthy() { " and up-to-date" } else { "" };
            notes.push(format!("All specified packages are already installed{newest}"));
            return Plan::nothing(notes.join("\n"));
        }
        let pkgs = self.pkgs.items_of_sequence().unwrap_or_default();
        let names: Vec<String> = pkgs.iter().map(Value::to_string).collect();
        let pending = match &names[..] {
            [] => format!("Python package {} is set to be installed", self.own_name()),
            [one] => format!("Python package {one} is set to be installed"),
            several => format!("Python package(s) set to be installed:\n{}", several.join("\n")),
        };
        let exact: Option<Dict> = seen
            .targets
            .iter()
            .map(|wanted| Some((wanted.shown(wanted.exact()?), "Installed")))
            .collect::<Option<Vec<_>>>()
            .map(|pairs| pairs.into_iter().collect());
        let plan = exact.map_or_else(Plan::unknown, Plan::changes);
        let mut done = seen.notes.clone();
        done.push("All packages were successfully installed".into());
        plan.pending(pending).done(done.join("\n"))
    }
}

fn list_text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let items = value.items_of_sequence().unwrap_or_default();
            items.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
        }
    }
}

/// What a failed command said.
fn complaint(ret: &Dict) -> String {
    match ret.get("comment") {
        Some(comment) => comment.to_string(),
        None => {
            let text = |name: &str| ret.get(name).unwrap_or_default().to_str();
            format!("{} {}", text("stdout"), text("stderr"))
        }
    }
}

fn failed(ret: &Dict) -> bool {
    ret.get("retcode").is_none_or(|code| code != Value::Int(0))
}

impl State for Installed {
    type Seen = Seen;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let env = self.env();
        let explain = |error: Error| match error {
            Error::Raised { class, message, .. } if class == "CommandNotFoundError" => {
                Error::failed(format!("Error installing '{}': {message}", self.own_name()))
            }
            other => other,
        };
        if self.wheels.use_wheel.truthy() || self.wheels.no_use_wheel.truthy() {
            let own = pip::own_version(cx, &env).map_err(explain)?;
            let clauses = [("<=".to_owned(), "9.0.3".to_owned())];
            if !version::satisfies(&own, &clauses) {
                let name =
                    if self.wheels.use_wheel.truthy() { "use_wheel" } else { "no_use_wheel" };
                return Err(Error::failed(format!(
                    "The '{name}' option is only supported in pip between 1.4 and 9.0.3. The \
                     version of pip detected was {own}."
                )));
            }
        }
        let mut seen = Seen::default();
        if self.is_files() {
            // What the files ask for is not known, but there must be a pip to ask.
            pip::own_version(cx, &env).map_err(explain)?;
            return Ok(seen);
        }
        let installed = pip::installed(cx, &env).map_err(explain)?;
        for wanted in self.wanted() {
            let text = &wanted.text;
            let current = wanted.version_in(&installed).filter(|own| {
                version::satisfies(own, &wanted.clauses)
                    && !self.sources.force_reinstall.truthy()
                    && !self.sources.ignore_installed.truthy()
            });
            let Some(current) = current else {
                seen.targets.push(wanted);
                continue;
            };
            if !self.sources.upgrade.truthy() {
                seen.notes.push(format!("Python package {text} was already installed"));
                continue;
            }
            match self.newer(cx, &wanted, current)? {
                Some(true) => seen.targets.push(wanted),
                Some(false) => {
                    seen.notes.push(format!("Python package {text} was already installed"));
                }
                None => seen.notes.push(format!(
                    "Python package {text} was already installed and\nthe available upgrade \
                     doesn't fulfills the version requirements"
                )),
            }
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let mut plan = self.planned(seen);
        if let Some(list) = self.pkgs.items_of_sequence().filter(|list| !list.is_empty()) {
            // Salt's return is named after the packages.
            let names: Vec<String> = list.iter().map(Value::to_string).collect();
            plan.extra = entries! { "name" => names.join(";") };
        }
        Ok(plan)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let pkgs = seen.targets.iter().map(|wanted| Value::from(wanted.text.as_str()));
        let mut request = self.request(Value::list(pkgs));
        request.saltenv = cx.saltenv();
        let ret = pip::run_install(cx, &request)?;
        if self.is_files() {
            if !failed(&ret) {
                return Ok(Applied::as_planned());
            }
            return Err(Error::failed(if self.requirements.truthy() {
                format!(
                    "Unable to process requirements file \"{}\" Error: {}",
                    list_text(&self.requirements),
                    complaint(&ret)
                )
            } else {
                format!(
                    "Unable to install from VCS checkout {}. Error: {}",
                    list_text(&self.editable),
                    complaint(&ret)
                )
            }));
        }
        let mut notes = seen.notes;
        if failed(&ret) {
            let names: Vec<&str> = seen.targets.iter().map(|wanted| wanted.text.as_str()).collect();
            notes.push(format!(
                "Failed to install packages: {}. Error: {}",
                names.join(", "),
                complaint(&ret)
            ));
            return Ok(Applied::failed(Dict::new(), notes.join("\n")));
        }
        let after = pip::installed(cx, &self.env())?;
        let changes = Dict::new();
        let mut hidden = Vec::new();
        for wanted in &seen.targets {
            if wanted.name.is_empty() {
                changes.insert(format!("{}==???", wanted.text), "Installed");
                continue;
            }
            match wanted.version_in(&after) {
                Some(version) => {
                    changes.insert(wanted.shown(version), "Installed");
                }
                None => hidden.push(format!(
                    "There was no error installing package '{}' although it does not show when \
                     calling 'pip.freeze'.",
                    wanted.text
                )),
            }
        }
        if !changes.is_empty() || hidden.is_empty() {
            notes.push("All packages were successfully installed".into());
        }
        notes.extend(hidden);
        Ok(Applied::changes(changes).comment(notes.join("\n")))
    }
}

/// Make sure that a Python package is not installed.
#[derive(Args)]
pub struct Removed {
    /// The package.
    name: String,
    /// Files of requirements: what they name goes, too.
    #[default(Value::Null)]
    requirements: Value,
    /// A virtual environment, a `pip` or a `python`.
    bin_env: Option<String>,
    #[group]
    wire: pip::Wire,
    /// The user pip runs as.
    user: Option<String>,
    /// The folder pip runs in.
    cwd: Option<String>,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    #[expect(dead_code, reason = "there is no terminal")]
    use_vt: bool,
}

impl Removed {
    fn env(&self) -> Env {
        Env {
            bin_env: self.bin_env.clone(),
            user: self.user.clone(),
            cwd: self.cwd.clone(),
            env_vars: Dict::new(),
        }
    }
}

impl State for Removed {
    type Seen = bool;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let installed = pip::installed(cx, &self.env()).map_err(|error| match error {
            Error::Cancelled => error,
            error => Error::failed(format!("Error uninstalling '{}': {error}", self.name)),
        })?;
        Ok(Wanted::parse(&self.name).version_in(&installed).is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing("Package is not installed."));
        }
        Ok(Plan::change(name.as_str(), "Removed")
            .pending(format!("Package {name} is set to be removed"))
            .done("Package was successfully removed."))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let more = Dict::new();
        self.wire.put(&more);
        let request = Install {
            env: self.env(),
            pkgs: self.name.as_str().into(),
            requirements: self.requirements.clone(),
            editable: Value::Null,
            saltenv: cx.saltenv(),
            more,
        };
        if failed(&pip::run_uninstall(cx, &request)?) {
            return Err(Error::failed("Could not remove package."));
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that all Python packages are up to date.
#[derive(Args)]
pub struct Uptodate {
    /// A name for the state.
    #[expect(dead_code, reason = "an id only")]
    name: String,
    #[group]
    place: pip::Place,
    /// Accepted, as Salt does.
    #[default(false)]
    use_vt: bool,
}

impl State for Uptodate {
    type Seen = Dict;

    fn observe(&self, cx: &Cx) -> Result<Dict> {
        let env = self.place.clone().env(Dict::new());
        pip::upgrades(cx, &env).map_err(|error| Error::failed(error.to_string()))
    }

    fn plan(&self, upgrades: &Dict) -> Result<Plan> {
        if upgrades.is_empty() {
            return Ok(Plan::nothing("System is already up-to-date."));
        }
        Ok(Plan::unknown().pending("System update will be performed").done("Upgrade successful."))
    }

    fn apply(&self, cx: &Cx, _: Dict) -> Result<Applied> {
        let ret = pip::upgrade(cx, self.place.clone(), self.use_vt)?;
        let done = ret.get("changes").is_some_and(|changes| changes.truthy());
        if done {
            return Ok(Applied::changes(ret));
        }
        Ok(Applied::failed(entries! {}, "Upgrade failed."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements() {
        let check = |text: &str, name: &str, clauses: usize| {
            let wanted = Wanted::parse(text);
            assert_eq!((wanted.name.as_str(), wanted.clauses.len()), (name, clauses), "{text}");
        };
        check("hpkg", "hpkg", 0);
        check("hpkg[extra]>=1,<2", "hpkg", 2);
        check("hpkg < 1.1", "hpkg", 1);
        check("hpkg>=1 ; python_version > '3'", "hpkg", 1);
        check("git+https://x/foo.git@v1#egg=foo", "foo", 0);
        check("foo @ https://x/y.tar.gz", "foo", 0);
        check("/w/hpkg-1.1-py3-none-any.whl", "hpkg", 1);
        check("https://x/y.tar.gz", "", 0);
    }
}
