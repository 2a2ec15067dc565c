//! `supervisord`: processes under a supervisor run, or do not.
//!
//! Genuine Salt has these states in an extension; trees written before that use them as they are.

use halite_modules::supervisord::{self, Place, ctl};
use halite_spec::{Applied, Args, Cx, Error, Outcome, Plan, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Processes under a supervisor.
    "supervisord": "running" => Running,
    "dead" => Dead,
}

/// The state of a process, or of all of a group (`web:` or `web:*`); `None`: not known.
fn state_of(cx: &Cx, name: &str, place: &Place) -> Result<Option<String>> {
    let all = supervisord::states(cx, None, place)?;
    let group = name.strip_suffix('*').unwrap_or(name);
    let mut found = None;
    for (own, status) in all.entries() {
        let own = own.to_str();
        if own.as_str() != name && !(group.ends_with(':') && own.starts_with(group)) {
            continue;
        }
        let state: String = status.get_str("state").unwrap_or_default().into();
        // Of a group, the one that does not run counts.
        if state != "RUNNING" || found.is_none() {
            found = Some(state);
        }
    }
    Ok(found)
}

fn is_up(state: Option<&str>) -> bool {
    matches!(state, Some("RUNNING" | "STARTING"))
}

/// What a command that must not fail says.
fn must(cx: &Cx, words: &[&str], place: &Place) -> Result<String> {
    let ran = ctl(cx, words, place, false)?;
    if ran.ok() && !ran.stdout.contains("ERROR") {
        return Ok(ran.stdout);
    }
    let said = if ran.stderr.is_empty() { ran.stdout } else { ran.stderr };
    Err(Error::failed(said.trim().to_owned()))
}

/// Make sure that a process runs.
#[derive(Args)]
pub struct Running {
    /// The process, or a group: `web:*`.
    name: String,
    /// Restart it if it runs already.
    #[default(false)]
    restart: bool,
    /// Have the supervisor read its configuration first.
    #[default(false)]
    update: bool,
    /// The user to ask as.
    user: Option<String>,
    /// The configuration of the supervisor.
    conf_file: Option<String>,
    /// The program, or the virtual environment it is in.
    bin_env: Option<String>,
}

impl Running {
    fn place(&self) -> Place {
        Place {
            user: self.user.clone(),
            conf_file: self.conf_file.clone(),
            bin_env: self.bin_env.clone(),
        }
    }
}

impl State for Running {
    type Seen = Option<String>;

    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        state_of(cx, &self.name, &self.place())
    }

    fn plan(&self, state: &Self::Seen) -> Result<Plan> {
        let name = &self.name;
        if is_up(state.as_deref()) && !self.restart {
            return Ok(Plan::nothing(format!("Not starting already running service: {name}")));
        }
        let (verb, done) = match (state, is_up(state.as_deref())) {
            (_, true) => ("restarted", "Restarting"),
            (None, _) => ("added", "Adding"),
            _ => ("started", "Starting"),
        };
        Ok(Plan::change(name.as_str(), format!("{done} service: {name}"))
            .pending(format!("Service {name} is set to be {verb}"))
            .done(format!("{done} service: {name}")))
    }

    fn apply(&self, cx: &Cx, state: Self::Seen) -> Result<Applied> {
        let (name, place) = (self.name.as_str(), self.place());
        if self.update {
            must(cx, &["update"], &place)?;
        }
        if state.is_none() {
            // The configuration may know a process the supervisor has not read of.
            if !self.update {
                must(cx, &["reread"], &place)?;
                must(cx, &["add", name.trim_end_matches(['*', ':'])], &place)?;
            }
            if is_up(state_of(cx, name, &place)?.as_deref()) {
                return Ok(Applied::as_planned());
            }
        }
        let verb = if is_up(state.as_deref()) { "restart" } else { "start" };
        let said = must(cx, &[verb, name], &place)?;
        Ok(Applied::changes([(name, Value::from(said))].into_iter().collect()))
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let name = &self.name;
        if test {
            let comment = format!("Service {name} is set to be restarted");
            return Ok(Outcome::new(None, Dict::new(), comment));
        }
        let said = must(cx, &["restart", name], &self.place())?;
        let changes: Dict = [(name.as_str(), Value::from(said))].into_iter().collect();
        Ok(Outcome::new(Some(true), changes, format!("Restarting service: {name}")))
    }
}

/// Make sure that a process does not run.
#[derive(Args)]
#[arg(open)]
pub struct Dead {
    /// The process, or a group: `web:*`.
    name: String,
    /// The user to ask as.
    user: Option<String>,
    /// The configuration of the supervisor.
    conf_file: Option<String>,
    /// The program, or the virtual environment it is in.
    bin_env: Option<String>,
}

impl Dead {
    fn place(&self) -> Place {
        Place {
            user: self.user.clone(),
            conf_file: self.conf_file.clone(),
            bin_env: self.bin_env.clone(),
        }
    }
}

impl State for Dead {
    type Seen = Option<String>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        state_of(cx, &self.name, &self.place())
    }

    fn plan(&self, state: &Self::Seen) -> Result<Plan> {
        let name = &self.name;
        Ok(match state.as_deref() {
            None => Plan::nothing(format!("Service {name} doesn't exist")),
            Some("STOPPED" | "EXITED" | "FATAL") => {
                Plan::nothing(format!("Service {name} is not running"))
            }
            Some(_) => Plan::change(name.as_str(), format!("Stopping service: {name}"))
                .pending(format!("Service {name} is set to be stopped"))
                .done(format!("Stopping service: {name}")),
        })
    }

    fn apply(&self, cx: &Cx, _: Self::Seen) -> Result<Applied> {
        let said = must(cx, &["stop", &self.name], &self.place())?;
        Ok(Applied::changes([(self.name.as_str(), Value::from(said))].into_iter().collect()))
    }
}
