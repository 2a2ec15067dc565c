//! `npm`: packages of Node.js.

use halite_modules::npm::{self, Env, Install};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Packages of Node.js.
    "npm", needs = [
        Need::function("npm.list", "'npm' binary not found on system"),
    ]: "installed" => Installed,
    "removed" => Removed,
    "bootstrap" => Bootstrap,
}

/// Make sure that packages of Node.js are installed.
#[derive(Args)]
pub struct Installed {
    /// The package, with its version perhaps: `left-pad@1.3.0`.
    name: String,
    /// Several packages.
    #[default(Vec::new())]
    pkgs: Vec<String>,
    /// The folder; without it the machine's own packages.
    dir: Option<String>,
    /// The user npm runs as.
    user: Option<String>,
    /// Install again what is there.
    #[default(false)]
    force_reinstall: bool,
    /// The registry.
    registry: Option<String>,
    /// Environment variables for npm.
    #[default(Dict::new())]
    env: Dict,
}

/// `@scope/name@1.0` → name and version.
fn split(pkg: &str) -> (&str, Option<&str>) {
    match pkg.char_indices().skip(1).find(|(_, letter)| *letter == '@') {
        Some((at, _)) => (pkg.get(..at).unwrap_or(pkg), pkg.get(at + 1..)),
        None => (pkg, None),
    }
}

fn is_url(pkg: &str) -> bool {
    pkg.contains("://") || pkg.ends_with(".tgz") || pkg.starts_with(['/', '.'])
}

impl Installed {
    fn env(&self) -> Env {
        Env { dir: self.dir.clone(), runas: self.user.clone(), env: self.env.clone() }
    }

    fn wanted(&self) -> Vec<String> {
        if self.pkgs.is_empty() { vec![self.name.clone()] } else { self.pkgs.clone() }
    }
}

/// What looking told: what is missing, and what satisfies the rest.
pub struct Seen {
    missing: Vec<String>,
    satisfied: Vec<String>,
}

impl State for Installed {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let found = npm::installed(cx, &self.env(), None, Some(0)).map_err(|error| {
            Error::failed(format!("Error looking up '{}': {error}", self.wanted().join(", ")))
        })?;
        let mut seen = Seen { missing: Vec::new(), satisfied: Vec::new() };
        for pkg in self.wanted() {
            let (name, version) = split(&pkg);
            let own = found.get(name).and_then(|known: Value| known.get_str("version"));
            let fits = own.as_ref().filter(|own| {
                !self.force_reinstall
                    && !is_url(&pkg)
                    && version.is_none_or(|wanted| wanted == own.as_str())
            });
            match fits {
                Some(own) => seen.satisfied.push(format!("{name}@{own}")),
                None => seen.missing.push(pkg),
            }
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let all = self.wanted().join(", ");
        let satisfied = format!("Package(s) '{all}' satisfied by {}", seen.satisfied.join(", "));
        if seen.missing.is_empty() {
            return Ok(Plan::nothing(satisfied));
        }
        let missing = seen.missing.join(", ");
        let mut pending = format!("NPM package(s) '{missing}' are set to be installed");
        if !seen.satisfied.is_empty() {
            pending.push_str(&format!(". {satisfied}"));
        }
        let changes = entries! { "old" => Value::list::<Value>([]), "new" => Value::list(seen.missing.clone()) };
        Ok(Plan::changes(changes)
            .pending(pending)
            .done(format!("Package(s) '{missing}' successfully installed")))
    }

    fn apply(&self, cx: &Cx, _: Seen) -> Result<Applied> {
        let how = Install { registry: self.registry.clone(), dry_run: false, silent: true };
        let wanted = self.wanted();
        npm::add(cx, &self.env(), &wanted, &how).map_err(|error| {
            Error::failed(format!("Error installing '{}': {error}", wanted.join(", ")))
        })?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a package of Node.js is not installed.
#[derive(Args)]
pub struct Removed {
    /// The package.
    name: String,
    /// The folder; without it the machine's own packages.
    dir: Option<String>,
    /// The user npm runs as.
    user: Option<String>,
}

impl Removed {
    fn env(&self) -> Env {
        Env { dir: self.dir.clone(), runas: self.user.clone(), env: Dict::new() }
    }
}

impl State for Removed {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let found = npm::installed(cx, &self.env(), None, Some(0)).map_err(|error| {
            Error::failed(format!("Error uninstalling '{}': {error}", self.name))
        })?;
        Ok(found.contains(split(&self.name).0))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing(format!("Package '{name}' is not installed")));
        }
        Ok(Plan::change(name.as_str(), "Removed")
            .pending(format!("Package '{name}' is set to be removed"))
            .done(format!("Package '{name}' was successfully removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        Applied::if_done(npm::remove(cx, &self.env(), &self.name)?, || {
            format!("Error removing package '{}'", self.name)
        })
    }
}

/// Install what a folder's `package.json` asks for. npm alone knows whether that changes anything.
#[derive(Args)]
pub struct Bootstrap {
    /// The folder.
    name: String,
    /// The user npm runs as.
    user: Option<String>,
    /// Print less.
    #[default(true)]
    silent: bool,
}

impl State for Bootstrap {
    type Seen = ();
    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let name = &self.name;
        Ok(Plan::change(name.as_str(), "Bootstrapped")
            .pending(format!("{name} is set to be bootstrapped"))
            .done("Directory was successfully bootstrapped"))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let env = Env { dir: Some(self.name.clone()), runas: self.user.clone(), env: Dict::new() };
        let how = Install { registry: None, dry_run: false, silent: self.silent };
        let ret = npm::add(cx, &env, &[], &how).map_err(|error| {
            Error::failed(format!("Error Bootstrapping '{}': {error}", self.name))
        })?;
        if ret.truthy() {
            return Ok(Applied::as_planned());
        }
        Ok(Applied::changes(Dict::new()).comment("Directory is already bootstrapped"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(split("left-pad@1.3.0"), ("left-pad", Some("1.3.0")));
        assert_eq!(split("@scope/x@2"), ("@scope/x", Some("2")));
        assert_eq!(split("@scope/x"), ("@scope/x", None));
    }
}
