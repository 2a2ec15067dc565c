//! `ssh_known_hosts`: keys by which hosts are recognised.

use std::path::Path;

use halite_modules::ssh::{Change, Entry, KnownHost, SILENT, Store, Wanted, described};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Keys by which hosts are recognised.
    "ssh_known_hosts": "present" => Present,
    "absent" => Absent,
}

fn config_of(user: Option<&String>, config: Option<&String>) -> Result<String> {
    let has_user = user.is_some_and(|user| !user.is_empty());
    let usual = if has_user { ".ssh/known_hosts" } else { "/etc/ssh/ssh_known_hosts" };
    let config = config.filter(|config| !config.is_empty()).map_or(usual, String::as_str);
    if !has_user && !Path::new(config).is_absolute() {
        return Err(Error::failed("If not specifying a \"user\", specify an absolute \"config\"."));
    }
    Ok(config.to_owned())
}

/// Make sure that a host's key is known.
#[derive(Args)]
pub struct Present {
    /// The host.
    name: String,
    /// Whose file; the machine's if none is given.
    user: Option<String>,
    #[group]
    host: KnownHost,
}

impl Present {
    fn store(&self) -> Result<Store> {
        let config = config_of(self.user.as_ref(), self.host.config.as_ref())?;
        Ok(self.host.store(self.user.as_ref(), Some(config)))
    }

    fn wanted(&self) -> Wanted {
        self.host.wanted(&self.name)
    }
}

impl State for Present {
    type Seen = Change;

    fn observe(&self, cx: &Cx) -> Result<Change> {
        if self.host.key.is_some() && self.host.fingerprint.is_some() {
            return Err(Error::failed("Specify either \"key\" or \"fingerprint\", not both."));
        }
        if self.host.key.is_some() && self.host.enc.is_none() {
            return Err(Error::failed("Required argument \"enc\" if using \"key\" argument."));
        }
        self.store()?.compare(cx, &self.wanted())
    }

    fn plan(&self, seen: &Change) -> Result<Plan> {
        let name = &self.name;
        let config = config_of(self.user.as_ref(), self.host.config.as_ref())?;
        let pending = |old: &[Entry]| match old.is_empty() {
            true => format!("Key for {name} is set to be added to {config}"),
            false => format!("Key for {name} is set to be updated in {config}"),
        };
        let (old, new) = match seen {
            Change::Refused(text) => return Err(Error::failed(text)),
            // With `test=True` nobody needs the host: it may be up by the time of the run.
            Change::Silent(old) => return Ok(Plan::unknown().pending(pending(old))),
            Change::Exists(_) => {
                return Ok(Plan::nothing(format!("Host {name} is already in {config}"))
                    .done(format!("{name} already exists in {config}")));
            }
            Change::Update { old, new } => (old, new),
        };
        let first = new.first();
        let key = first.map(|entry| entry.key.as_str()).unwrap_or_default();
        let print = first.and_then(|entry| entry.fingerprint.as_deref()).unwrap_or_default();
        let done = match (&self.host.key, &self.host.fingerprint, &self.host.enc) {
            (Some(_), ..) => format!("{name}'s key saved to {config} (key: {key})"),
            (_, Some(_), _) => format!("{name}'s key saved to {config} (fingerprint: {print})"),
            (_, _, Some(enc)) => format!("{name}'s {enc} key saved to {config} (key: {key})"),
            _ => format!("{name}'s key(s) saved to {config}"),
        };
        let plan = Plan::change("old", described(old)).and("new", described(new));
        Ok(plan.pending(pending(old)).done(done))
    }

    fn apply(&self, cx: &Cx, seen: Change) -> Result<Applied> {
        match seen {
            Change::Update { new, .. } => self.store()?.update(cx, &self.wanted(), &new)?,
            Change::Silent(_) => return Err(Error::failed(SILENT)),
            _ => {}
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that a host's key is not known.
#[derive(Args)]
pub struct Absent {
    /// The host.
    name: String,
    /// Whose file; the machine's if none is given.
    user: Option<String>,
    /// The file.
    config: Option<String>,
}

impl Absent {
    fn store(&self) -> Result<Store> {
        let config = Some(config_of(self.user.as_ref(), self.config.as_ref())?);
        Ok(Store { user: self.user.clone(), config, ..Store::default() })
    }
}

impl State for Absent {
    /// `None`: the user does not exist. With `test=True` another state may be about to add them.
    type Seen = Option<Vec<Entry>>;

    fn observe(&self, cx: &Cx) -> Result<Option<Vec<Entry>>> {
        if let Some(user) = &self.user
            && cx.host.user_named(user)?.is_none()
        {
            return Ok(None);
        }
        self.store()?.entries(cx, &self.name).map(Some)
    }

    fn plan(&self, entries: &Option<Vec<Entry>>) -> Result<Plan> {
        let plan = match entries {
            Some(entries) if entries.is_empty() => {
                return Ok(Plan::nothing("Host is already absent"));
            }
            Some(entries) => Plan::change("old", described(entries)).and("new", Value::Null),
            None => Plan::unknown(),
        };
        let config = config_of(self.user.as_ref(), self.config.as_ref())?;
        Ok(plan.pending(format!("Key for {} is set to be removed from {config}", self.name)))
    }

    fn apply(&self, cx: &Cx, _: Option<Vec<Entry>>) -> Result<Applied> {
        let said = self.store()?.remove(cx, &self.name)?;
        Ok(Applied::as_planned().comment(said))
    }
}
