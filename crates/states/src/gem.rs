//! `gem`: Ruby packages.

use halite_modules::gem::{self, Env};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Ruby packages.
    "gem": "installed" => Installed,
    "removed" => Removed,
    "sources_add" => SourcesAdd,
    "sources_remove" => SourcesRemove,
}

/// Make sure that a gem is installed.
#[derive(Args)]
pub struct Installed {
    /// The gem.
    name: String,
    /// The Ruby of rbenv or rvm to use.
    ruby: Option<String>,
    /// The `gem` to run.
    gem_bin: Option<String>,
    /// The user gem runs as.
    user: Option<String>,
    /// The version, or a condition: `>= 2.0`.
    version: Option<String>,
    /// With documentation.
    #[default(false)]
    rdoc: bool,
    /// With documentation for `ri`.
    #[default(false)]
    ri: bool,
    /// Pre-releases, too.
    #[default(false)]
    pre_releases: bool,
    /// The proxy to use.
    proxy: Option<String>,
    /// The place the gem comes from.
    source: Option<String>,
}

/// Reads a condition: operator and version.
fn condition(text: &str) -> Option<(&str, &str)> {
    let operator =
        ["~>", ">=", "<=", "!=", "=", ">", "<"].into_iter().find(|op| text.starts_with(op))?;
    Some((operator, text.get(operator.len()..)?.trim()))
}

fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

fn fits(own: &str, (operator, wanted): (&str, &str)) -> bool {
    let (own, wanted) = (numbers(own), numbers(wanted));
    let longest = own.len().max(wanted.len());
    let padded = |parts: &[u64]| -> Vec<u64> {
        (0..longest).map(|at| parts.get(at).copied().unwrap_or(0)).collect()
    };
    let order = padded(&own).cmp(&padded(&wanted));
    match operator {
        ">=" => order.is_ge(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        "<" => order.is_lt(),
        "!=" => order.is_ne(),
        "~>" => {
            let prefix = wanted.len().saturating_sub(1);
            order.is_ge() && own.iter().take(prefix).eq(wanted.iter().take(prefix))
        }
        _ => order.is_eq(),
    }
}

impl Installed {
    fn env(&self) -> Env {
        Env { ruby: self.ruby.clone(), runas: self.user.clone(), gem_bin: self.gem_bin.clone() }
    }
}

impl State for Installed {
    /// The comment of a gem that is as it should be.
    type Seen = Option<&'static str>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let gems = gem::installed(cx, &self.env(), &self.name)?;
        let Some(versions) = gems.get(self.name.as_str()) else { return Ok(None) };
        let versions: Vec<String> = versions
            .items_of_sequence()
            .unwrap_or_default()
            .iter()
            .map(|version| {
                let text = version.to_str();
                // A gem that came with Ruby, or one for this machine only.
                let text = text.strip_prefix("default: ").unwrap_or(&text);
                text.split_whitespace().next().unwrap_or_default().to_owned()
            })
            .collect();
        const THERE: &str = "Gem is already installed.";
        Ok(match &self.version {
            None => Some(THERE),
            Some(wanted) if versions.contains(wanted) => Some(THERE),
            Some(wanted) => {
                let all: Option<Vec<_>> =
                    wanted.split(',').map(|part| condition(part.trim())).collect();
                all.filter(|all| versions.iter().any(|own| all.iter().all(|one| fits(own, *one))))
                    .map(|_| "Installed Gem meets version requirements.")
            }
        })
    }

    fn plan(&self, right: &Self::Seen) -> Result<Plan> {
        if let Some(comment) = right {
            return Ok(Plan::nothing(*comment));
        }
        let name = &self.name;
        Ok(Plan::change(name.as_str(), "Installed")
            .pending(format!("The gem {name} would have been installed"))
            .done("Gem was successfully installed"))
    }

    fn apply(&self, cx: &Cx, _: Self::Seen) -> Result<Applied> {
        let how = gem::Install {
            version: self.version.clone(),
            rdoc: self.rdoc,
            ri: self.ri,
            pre_releases: self.pre_releases,
            proxy: self.proxy.clone(),
            source: self.source.clone(),
        };
        gem::add(cx, &self.env(), std::slice::from_ref(&self.name), &how)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a gem is not installed.
#[derive(Args)]
pub struct Removed {
    /// The gem.
    name: String,
    /// The Ruby of rbenv or rvm to use.
    ruby: Option<String>,
    /// The user gem runs as.
    user: Option<String>,
    /// The `gem` to run.
    gem_bin: Option<String>,
}

impl Removed {
    fn env(&self) -> Env {
        Env { ruby: self.ruby.clone(), runas: self.user.clone(), gem_bin: self.gem_bin.clone() }
    }
}

impl State for Removed {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let gems = gem::installed(cx, &self.env(), &self.name)?;
        Ok(gems.get(self.name.as_str()).is_some_and(|versions: Value| versions.truthy()))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        if !there {
            return Ok(Plan::nothing("Gem is not installed."));
        }
        let name = &self.name;
        Ok(Plan::change(name.as_str(), "Removed")
            .pending(format!("The gem {name} would have been removed"))
            .done("Gem was successfully removed."))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        gem::remove(cx, &self.env(), std::slice::from_ref(&self.name))
            .map_err(|_| Error::failed("Could not remove gem."))?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that gems come from a place.
#[derive(Args)]
pub struct SourcesAdd {
    /// The place.
    name: String,
    /// The Ruby of rbenv or rvm to use.
    ruby: Option<String>,
    /// The user gem runs as.
    user: Option<String>,
}

impl SourcesAdd {
    fn env(&self) -> Env {
        Env { ruby: self.ruby.clone(), runas: self.user.clone(), gem_bin: None }
    }
}

impl State for SourcesAdd {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(gem::sources(cx, &self.env())?.contains(&self.name))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        if *there {
            return Ok(Plan::nothing("Gem source is already added."));
        }
        let name = &self.name;
        Ok(Plan::change(name.as_str(), "Installed")
            .pending(format!("The gem source {name} would have been added."))
            .done("Gem source was successfully added."))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        gem::change_source(cx, &self.env(), &self.name, true)
            .map_err(|_| Error::failed("Could not add gem source."))?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that gems do not come from a place.
#[derive(Args)]
pub struct SourcesRemove {
    /// The place.
    name: String,
    /// The Ruby of rbenv or rvm to use.
    ruby: Option<String>,
    /// The user gem runs as.
    user: Option<String>,
}

impl SourcesRemove {
    fn env(&self) -> Env {
        Env { ruby: self.ruby.clone(), runas: self.user.clone(), gem_bin: None }
    }
}

impl State for SourcesRemove {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(gem::sources(cx, &self.env())?.contains(&self.name))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        if !*there {
            return Ok(Plan::nothing("Gem source is already removed."));
        }
        let name = &self.name;
        Ok(Plan::change(name.as_str(), "Removed")
            .pending("The gem source would have been removed")
            .done("Gem source was successfully removed."))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        gem::change_source(cx, &self.env(), &self.name, false)
            .map_err(|_| Error::failed("Could not remove gem source."))?;
        Ok(Applied::as_planned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let check = |own: &str, text: &str, expected: bool| {
            assert_eq!(fits(own, condition(text).unwrap()), expected, "{own} {text}");
        };
        check("13.0.6", "> 1", true);
        check("13.0.6", "~> 13.0", true);
        check("14.0", "~> 13.0", false);
        check("2.0", ">=2.0.0", true);
        check("2.0", "!= 2.0.0", false);
        assert!(condition("2.0").is_none());
    }
}
