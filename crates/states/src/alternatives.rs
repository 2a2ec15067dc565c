//! `alternatives`: which of several programs a name stands for.

use halite_modules::alternatives;
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::{Dict, entries};

states! {
    /// Which of several programs a name stands for.
    "alternatives": "install" => Install,
    "remove" => Remove,
    "auto" => Auto,
    "set" => Set,
}

/// Make sure that a path is one of the alternatives of a name.
#[derive(Args)]
pub struct Install {
    /// The name: `editor`.
    name: String,
    /// The link the name is for: `/usr/bin/editor`.
    link: String,
    /// The path of the alternative.
    path: String,
    /// In automatic mode the highest wins.
    priority: i64,
}

/// What there is of a name.
pub struct Seen {
    exists: bool,
    current: Option<String>,
}

fn look(cx: &Cx, name: &str, path: &str) -> Result<Seen> {
    let exists = alternatives::check_exists(cx, name.to_owned(), path.to_owned())?;
    Ok(Seen { exists, current: alternatives::current(cx, name) })
}

impl State for Install {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        look(cx, &self.name, &self.path)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let Self { name, link, path, priority } = self;
        if seen.exists {
            return Ok(Plan::nothing(format!(
                "Alternative {path} for {name} is already registered"
            )));
        }
        let changes = entries! {
            "name" => name.as_str(), "link" => link.as_str(), "path" => path.as_str(),
            "priority" => *priority,
        };
        Ok(Plan::changes(changes)
            .pending(format!(
                "Alternative will be set for {name} to {path} with priority {priority}"
            ))
            .done(format!("Alternative for {name} set to path {path} with priority {priority}")))
    }

    fn apply(&self, cx: &Cx, _: Seen) -> Result<Applied> {
        let Self { name, link, path, priority } = self;
        alternatives::add(cx, name, link, path, *priority).map_err(|text| {
            Error::failed(format!("Alternative for {name} not installed: {text}"))
        })?;
        let applied = Applied::as_planned();
        if alternatives::current(cx, name).as_ref() == Some(path) {
            return Ok(applied);
        }
        Ok(applied.comment(format!(
            "Alternative {path} for {name} registered with priority {priority} and not set to \
             default"
        )))
    }
}

/// Make sure that a path is none of the alternatives of a name.
#[derive(Args)]
pub struct Remove {
    /// The name.
    name: String,
    /// The path of the alternative.
    path: String,
}

impl State for Remove {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        look(cx, &self.name, &self.path)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let Self { name, path } = self;
        match &seen.current {
            _ if seen.exists => {
                // What the name falls back to only the tool knows.
                let changes = entries! { "path" => path.as_str() };
                Ok(Plan::changes(changes)
                    .pending(format!("Alternative for {name} will be removed"))
                    .done(format!("Alternative for {name} removed")))
            }
            Some(current) => Ok(Plan::nothing(format!(
                "Alternative for {name} is set to it's default path {current}"
            ))),
            None => Err(Error::failed(format!("Alternative for {name} doesn't exist"))),
        }
    }

    fn apply(&self, cx: &Cx, _: Seen) -> Result<Applied> {
        let Self { name, path } = self;
        alternatives::remove(cx, name.clone(), path.clone())?;
        match alternatives::current(cx, name) {
            Some(current) => Ok(Applied::changes(entries! { "path" => current.as_str() }).comment(
                format!("Alternative for {name} removed. Falling back to path {current}"),
            )),
            None => Ok(Applied::changes(Dict::new())),
        }
    }
}

/// Make sure that a name follows the highest priority.
#[derive(Args)]
pub struct Auto {
    /// The name.
    name: String,
}

impl State for Auto {
    /// What the tool says about the name.
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        alternatives::display(cx, self.name.clone())
    }

    fn plan(&self, display: &String) -> Result<Plan> {
        let name = &self.name;
        let auto = display
            .lines()
            .next()
            .is_some_and(|line| line.ends_with(" auto mode") || line.ends_with("status is auto."));
        if auto {
            return Ok(Plan::nothing(format!("{name} already in auto mode")));
        }
        Ok(Plan::unknown().pending(format!("{name} will be put in auto mode")))
    }

    fn apply(&self, cx: &Cx, _: String) -> Result<Applied> {
        let said = alternatives::auto(cx, self.name.clone())?;
        Ok(Applied::changes(entries! { "result" => said }).comment(""))
    }
}

/// Make sure that a name stands for a path.
#[derive(Args)]
pub struct Set {
    /// The name.
    name: String,
    /// The path of the alternative.
    path: String,
}

impl State for Set {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        look(cx, &self.name, &self.path)
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let Self { name, path } = self;
        if seen.current.as_ref() == Some(path) {
            return Ok(Plan::nothing(format!("Alternative for {name} already set to {path}")));
        }
        if !seen.exists {
            return Err(Error::failed(format!("Alternative {path} for {name} doesn't exist")));
        }
        Ok(Plan::change("path", path.as_str())
            .pending(format!("Alternative for {name} will be set to path {path}"))
            .done(format!("Alternative for {name} set to path {path}")))
    }

    fn apply(&self, cx: &Cx, _: Seen) -> Result<Applied> {
        let Self { name, path } = self;
        alternatives::set_(cx, name.clone(), path.clone())?;
        Applied::if_done(alternatives::current(cx, name).as_ref() == Some(path), || {
            format!("Alternative for {name} not updated")
        })
    }
}
