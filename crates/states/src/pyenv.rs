//! `pyenv`: Pythons built by pyenv.
//!
//! A test does not look: it says what is asked for, as Salt's does.

use halite_modules::pyenv;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, states};
use halite_value::{Dict, entries};

states! {
    /// Pythons built by pyenv.
    "pyenv": "installed" => Installed,
    "absent" => Absent,
    "install_pyenv" => InstallPyenv,
}

fn bare(name: &str) -> &str {
    name.strip_prefix("python-").unwrap_or(name)
}

/// Make sure that a Python is there; pyenv, too.
///
/// ```yaml
/// python-3.12.4:
///   pyenv.installed:
///     - default: True
/// ```
#[derive(Args)]
pub struct Installed {
    /// The version, with or without `python-` before it.
    name: String,
    /// Use it unless another one is named.
    #[default(false)]
    default: bool,
    /// Whose pyenv; the machine's by default.
    user: Option<String>,
}

impl State for Installed {
    type Seen = ();
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);
    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let python = bare(&self.name);
        Ok(Plan::unknown().pending(format!("python {python} is set to be installed")))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let (python, user) = (bare(&self.name), self.user.as_deref());
        if !pyenv::is_there(cx, user)? && !pyenv::install(cx, self.user.clone(), None)? {
            return Err(Error::failed("pyenv failed to install"));
        }
        let (changes, comment, is_default);
        if pyenv::installed(cx, user)?.iter().any(|own| own == python) {
            (changes, comment) = (Dict::new(), "Requested python exists.");
            is_default = pyenv::chosen(cx, user)? == python;
        } else if pyenv::install_python(cx, python.to_owned(), self.user.clone())?.truthy() {
            (changes, comment) =
                (entries! { python => "Installed" }, "Successfully installed python");
            is_default = self.default;
        } else {
            return Err(Error::failed("Could not install python."));
        }
        if self.default {
            pyenv::default(cx, Some(python.to_owned()), self.user.clone())?;
        }
        let extra = entries! { "default" => is_default };
        Ok(Applied { extra, ..Applied::changes(changes).comment(comment) })
    }
}

/// Make sure that a Python is not there.
///
/// ```yaml
/// python-3.7.17:
///   pyenv.absent
/// ```
#[derive(Args)]
pub struct Absent {
    /// The version, with or without `python-` before it.
    name: String,
    /// Whose pyenv.
    user: Option<String>,
}

impl State for Absent {
    type Seen = ();
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);
    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let python = bare(&self.name);
        Ok(Plan::unknown().pending(format!("python {python} is set to be uninstalled")))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let (python, user) = (bare(&self.name), self.user.as_deref());
        let nothing = |comment: String| Ok(Applied::changes(Dict::new()).comment(comment));
        if !pyenv::is_there(cx, user)? {
            return nothing(format!("pyenv not installed, {python} not either"));
        }
        if !pyenv::installed(cx, user)?.iter().any(|own| own == python) {
            return nothing(format!("python {python} is already absent"));
        }
        let is_default = pyenv::chosen(cx, user)? == python;
        if is_default {
            pyenv::default(cx, Some("system".into()), self.user.clone())?;
        }
        pyenv::uninstall_python(cx, python.to_owned(), self.user.clone())?;
        let extra = entries! { "default" => is_default };
        let changes = entries! { python => "Uninstalled" };
        Ok(Applied { extra, ..Applied::changes(changes).comment("Successfully removed python") })
    }
}

/// Make sure that pyenv itself is there.
///
/// ```yaml
/// pyenv:
///   pyenv.install_pyenv
/// ```
#[derive(Args)]
pub struct InstallPyenv {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: String,
    /// Whose pyenv.
    user: Option<String>,
}

impl State for InstallPyenv {
    type Seen = bool;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, cx: &Cx) -> Result<bool> {
        pyenv::is_there(cx, self.user.as_deref())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        Ok(if *there {
            Plan::nothing("pyenv is already installed")
        } else {
            Plan::unknown().pending("pyenv is set to be installed").done("pyenv installed")
        })
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let done = pyenv::install(cx, self.user.clone(), None)?;
        Applied::if_done(done, || "pyenv failed to install".into())
    }
}
