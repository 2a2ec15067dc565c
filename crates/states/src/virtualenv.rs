//! `virtualenv`: virtual environments of Python, with packages in them.

use std::path::Path;

use halite_modules::{
    pip::{self, Env, Install},
    virtualenv::{self, Create},
};
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, dict, entries};

use crate::pip::Wanted;

states! {
    /// Virtual environments of Python.
    "virtualenv": "managed" => Managed,
    "manage" => Managed,
}

/// Make sure that there is a virtual environment, with these packages in it.
#[derive(Args)]
pub struct Managed {
    /// The folder of the environment.
    name: String,
    /// The tool: `virtualenv`, `venv`, a `python`, or a path.
    venv_bin: Option<String>,
    /// A file of requirements to install.
    requirements: Option<String>,
    /// The machine's packages can be seen inside.
    #[default(false)]
    system_site_packages: bool,
    /// Accepted, as Salt does.
    #[default(false)]
    distribute: bool,
    /// Accepted, as Salt does.
    #[default(false)]
    use_wheel: bool,
    /// Empty the environment first.
    #[default(false)]
    clear: bool,
    /// The Python of the environment.
    python: Option<String>,
    /// Further folders with packages for the start.
    #[default(Vec::new())]
    #[shown(None::<bool>)]
    extra_search_dir: Vec<String>,
    /// Do not fetch anything for the environment itself.
    never_download: Option<bool>,
    /// What the shell shows.
    prompt: Option<String>,
    /// The user the tools run as.
    user: Option<String>,
    /// The folder pip runs in.
    cwd: Option<String>,
    /// The package index.
    index_url: Option<String>,
    /// A further package index.
    extra_index_url: Option<String>,
    /// Pre-releases, too.
    #[default(false)]
    pre_releases: bool,
    /// Without dependencies.
    #[default(false)]
    no_deps: bool,
    /// Fetch packages into this folder instead of installing.
    pip_download: Option<String>,
    /// The cache of pip; older name of `pip_cache_dir`.
    pip_download_cache: Option<String>,
    /// What pip does with a path that exists: `s`, `i`, `w` or `b`.
    pip_exists_action: Option<String>,
    /// Install over what is there.
    #[default(false)]
    pip_ignore_installed: bool,
    /// The proxy pip uses.
    proxy: Option<String>,
    /// Accepted, as Salt does.
    #[default(false)]
    use_vt: bool,
    /// Environment variables for the tools.
    #[default(Dict::new())]
    #[shown(None::<bool>)]
    env_vars: Dict,
    /// Accepted, as Salt does.
    #[default(false)]
    no_use_wheel: bool,
    /// Take the newest versions.
    #[default(false)]
    pip_upgrade: bool,
    /// Packages to install.
    #[default(Value::Null)]
    pip_pkgs: Value,
    /// Do not cache packages.
    #[default(false)]
    pip_no_cache_dir: bool,
    /// The cache of pip.
    pip_cache_dir: Option<String>,
    /// Follow links of dependencies.
    #[default(false)]
    process_dependency_links: bool,
    /// Packages to build from source.
    #[default(Value::Null)]
    no_binary: Value,
    /// Accepted, as Salt does.
    rest: Rest,
}

/// What looking told.
pub struct Seen {
    exists: bool,
    /// What is in it, as `name==version`.
    packages: Vec<String>,
    /// pip has something to do.
    install: bool,
}

impl Managed {
    fn env(&self) -> Env {
        Env {
            bin_env: Some(self.name.clone()),
            user: self.user.clone(),
            cwd: self.cwd.clone(),
            env_vars: self.env_vars.clone(),
        }
    }

    fn python(&self) -> std::path::PathBuf {
        Path::new(&self.name).join("bin/python")
    }

    /// The packages asked for; `None` when only pip can tell what a file means.
    fn wanted(&self, cx: &Cx) -> Result<Option<Vec<Wanted>>> {
        let list = self.pip_pkgs.items_of_sequence().unwrap_or_else(|| {
            if self.pip_pkgs.truthy() { vec![self.pip_pkgs.clone()] } else { Vec::new() }
        });
        let mut wanted: Vec<Wanted> =
            list.iter().map(|text| Wanted::parse(&text.to_str())).collect();
        if let Some(file) = &self.requirements {
            let text = match cx.files.cache(file, &cx.saltenv())? {
                Some(path) => cx.host.read_text(&path)?,
                None => {
                    return Err(Error::failed(format!("pip requirements file '{file}' not found")));
                }
            };
            for line in text.lines().map(str::trim) {
                let line = line.split(" #").next().unwrap_or_default().trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                if line.starts_with('-') || line.contains("://") {
                    return Ok(None);
                }
                wanted.push(Wanted::parse(line));
            }
        }
        Ok(Some(wanted))
    }

    fn wants_packages(&self) -> bool {
        self.pip_pkgs.truthy() || self.requirements.is_some()
    }

    fn note(&self, exists: bool) -> &'static str {
        match (exists, self.clear) {
            (true, true) => "Cleared existing virtualenv",
            (true, false) => "virtualenv exists",
            (false, _) => "Created new virtualenv",
        }
    }
}

fn shown(packages: Vec<(String, String)>) -> Vec<String> {
    packages.into_iter().map(|(name, version)| format!("{name}=={version}")).collect()
}

fn version_of(cx: &Cx, python: &Path) -> String {
    let command = halite_spec::Command::line([python.display().to_string(), "-V".into()]).query();
    // Python 2 wrote it to stderr, and that is all Salt reads.
    cx.host.run(&command).map(|output| output.stderr_text().trim().to_owned()).unwrap_or_default()
}

impl State for Managed {
    type Seen = Seen;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let exists = cx.host.exists(&self.python())?;
        let installed = if exists && (self.clear || self.wants_packages()) {
            pip::installed(cx, &self.env())?
        } else {
            Vec::new()
        };
        let install = self.wants_packages()
            && (self.pip_upgrade
                || self.pip_ignore_installed
                || self.pip_download.is_some()
                || !exists
                || self.clear
                || match self.wanted(cx)? {
                    None => true,
                    Some(all) => !all.iter().all(|wanted| wanted.satisfied_in(&installed)),
                });
        if self.requirements.is_some() && !install {
            self.wanted(cx)?;
        }
        Ok(Seen { exists, packages: shown(installed), install })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let name = &self.name;
        let note = self.note(seen.exists);
        if seen.exists && self.clear {
            let changes = entries! {
                "cleared_packages" => Value::list(seen.packages.clone()), "old" => "",
            };
            return Ok(Plan::changes(changes)
                .pending(format!("Virtualenv {name} is set to be cleared"))
                .done(note));
        }
        if !seen.exists {
            return Ok(Plan::change("new", "")
                .pending(format!("Virtualenv {name} is set to be created"))
                .done(note));
        }
        let plan = if seen.install { Plan::unknown() } else { Plan::default() };
        // differs: Salt's `test=True` does not mention packages it would install.
        let pending = if seen.install {
            format!("Packages in virtualenv {name} are set to be installed")
        } else {
            format!("Virtualenv {name} is already created")
        };
        Ok(plan.pending(pending).done(note))
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let changes = Dict::new();
        if seen.exists && self.clear {
            changes.insert("cleared_packages", Value::list(seen.packages.clone()));
            changes.insert("old", version_of(cx, &self.python()));
        }
        let note = self.note(seen.exists);
        if !seen.exists || self.clear {
            let how = Create {
                venv_bin: self.venv_bin.clone(),
                system_site_packages: self.system_site_packages,
                clear: self.clear,
                python: self.python.clone(),
                extra_search_dir: self.extra_search_dir.clone(),
                never_download: self.never_download,
                prompt: self.prompt.clone(),
                user: self.user.clone(),
                env_vars: self.env_vars.clone(),
                ..Create::default()
            };
            let ran = virtualenv::make(cx, &self.name, &how)?;
            if !ran.ok() {
                return Ok(Applied::failed(Dict::new(), format!("{}{}", ran.stdout, ran.stderr)));
            }
            changes.insert("new", version_of(cx, &self.python()));
        }
        if !seen.install {
            return Ok(Applied::changes(changes).comment(note));
        }
        let before = if seen.exists && !self.clear {
            seen.packages.clone()
        } else {
            shown(pip::installed(cx, &self.env())?)
        };
        let more = self.rest.kwargs.shallow_copy();
        for (key, flag) in [
            ("no_deps", self.no_deps),
            ("pre_releases", self.pre_releases),
            ("ignore_installed", self.pip_ignore_installed),
            ("upgrade", self.pip_upgrade),
            ("no_cache_dir", self.pip_no_cache_dir),
            ("process_dependency_links", self.process_dependency_links),
        ] {
            more.insert(key, flag);
        }
        for (key, text) in [
            ("index_url", &self.index_url),
            ("extra_index_url", &self.extra_index_url),
            ("download", &self.pip_download),
            ("download_cache", &self.pip_download_cache),
            ("exists_action", &self.pip_exists_action),
            ("proxy", &self.proxy),
            ("cache_dir", &self.pip_cache_dir),
        ] {
            if let Some(text) = text {
                more.insert(key, text.as_str());
            }
        }
        more.insert("no_binary", self.no_binary.clone());
        let request = Install {
            env: self.env(),
            pkgs: self.pip_pkgs.clone(),
            requirements: self.requirements.as_deref().map_or(Value::Null, Into::into),
            editable: Value::Null,
            saltenv: cx.saltenv(),
            more,
        };
        let ret = pip::run_install(cx, &request)?;
        if ret.get("retcode") != Some(Value::Int(0)) {
            let text = |key: &str| ret.get(key).map(|text| text.to_string()).unwrap_or_default();
            let said = [text("stdout"), text("stderr")].join("\n");
            return Ok(Applied::failed(changes, format!("{note}\n{said}")));
        }
        let after = shown(pip::installed(cx, &self.env())?);
        let new: Vec<String> = after.iter().filter(|one| !before.contains(one)).cloned().collect();
        let old: Vec<String> = before.iter().filter(|one| !after.contains(one)).cloned().collect();
        if !new.is_empty() || !old.is_empty() {
            let list = |list: Vec<String>| {
                if list.is_empty() { Value::from("") } else { Value::list(list) }
            };
            changes.insert("packages", dict! { "new" => list(new), "old" => list(old) });
        }
        let _ = (self.distribute, self.use_wheel, self.use_vt, self.no_use_wheel);
        Ok(Applied::changes(changes).comment(note))
    }
}
