//! `cron`: jobs and variables of users' crontabs.

use halite_modules::{
    cron::{self, Filter, Job, Status, Tab, When},
    file::diff,
    user,
};
use halite_spec::{
    Applied, Args, Cx, Error, Keys, Need, Plan, Rest, Result, State, Template, states,
};
use halite_value::{Dict, Value, entries};

states! {
    /// Jobs and variables of users' crontabs.
    "cron", needs = [
        Need::function("cron.list_tab", "cron module could not be loaded"),
    ]: "present" => Present,
    "absent" => Absent,
    "env_present" => EnvPresent,
    "env_absent" => EnvAbsent,
    "file" => File,
}

/// A job's identifier: False (the default) means its command.
fn identifier(given: &Value, cmd: &str) -> Option<String> {
    match given {
        Value::Bool(false) => Some(cmd.to_owned()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// Make sure that a job is in a crontab.
#[derive(Args)]
pub struct Present {
    /// The command.
    name: String,
    /// Whose crontab.
    #[default("root".to_owned())]
    user: String,
    /// Minute, `random`, or a range to pick from (`10:20`).
    #[default("*".to_owned())]
    minute: String,
    /// Hour, as minute.
    #[default("*".to_owned())]
    hour: String,
    /// Day of the month, or `random`.
    #[default("*".to_owned())]
    daymonth: String,
    /// Month, as minute.
    #[default("*".to_owned())]
    month: String,
    /// Day of the week, as minute.
    #[default("*".to_owned())]
    dayweek: String,
    /// The comment above it.
    comment: Option<String>,
    /// Disabled by a comment sign.
    #[default(false)]
    commented: bool,
    /// What it is found by when the command changes; the command if none is given.
    #[default(Value::Bool(false))]
    identifier: Value,
    /// A word like `@daily`, in place of the fields.
    special: Option<String>,
}

impl Present {
    fn job(&self) -> Job {
        let cmd = self.name.trim().to_owned();
        let when = match &self.special {
            Some(special) => When::Special(special.clone()),
            None => When::Fields(
                [&self.minute, &self.hour, &self.daymonth, &self.month, &self.dayweek]
                    .map(|field| field.to_lowercase()),
            ),
        };
        Job {
            when,
            identifier: identifier(&self.identifier, &cmd),
            cmd,
            comment: self.comment.clone(),
            commented: self.commented,
        }
    }
}

impl State for Present {
    type Seen = Tab;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Tab> {
        cron::tab_of(cx, &self.user)
    }

    fn plan(&self, tab: &Tab) -> Result<Plan> {
        let (job, user) = (self.job(), &self.user);
        let name = &job.cmd;
        let plan = Plan::change(user, name);
        Ok(match tab.status(&job) {
            Status::Present => Plan::nothing(format!("Cron {name} already present")),
            Status::Absent => plan
                .pending(format!("Cron {name} is set to be added"))
                .done(format!("Cron {name} added to {user}'s crontab")),
            Status::Update => plan
                .pending(format!("Cron {name} is set to be updated"))
                .done(format!("Cron {name} updated")),
        })
    }

    fn apply(&self, cx: &Cx, _: Tab) -> Result<Applied> {
        let job = self.job();
        match cron::put(cx, &self.user, &job)?.as_str() {
            "new" | "updated" | "present" => Ok(Applied::as_planned()),
            complaint => Err(Error::failed(format!(
                "Cron {} for user {} failed to commit with error \n{complaint}",
                job.cmd, self.user
            ))),
        }
    }
}

/// Make sure that a job is not in a crontab.
#[derive(Args)]
pub struct Absent {
    /// The command.
    name: String,
    /// Whose crontab.
    #[default("root".to_owned())]
    user: String,
    /// What it is found by; the command if none is given.
    #[default(Value::Bool(false))]
    identifier: Value,
    /// A word like `@daily`: look among those jobs.
    special: Option<String>,
    /// Fields of the job, accepted for trees that leave them there.
    #[expect(dead_code, reason = "taken and ignored, as Salt does")]
    rest: Rest,
}

impl Absent {
    fn filter(&self) -> Filter {
        match &self.special {
            Some(special) => Filter::Special(Some(special.clone())),
            None => Filter::Fields(Default::default()),
        }
    }
}

impl State for Absent {
    type Seen = Tab;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Tab> {
        cron::tab_of(cx, &self.user)
    }

    fn plan(&self, tab: &Tab) -> Result<Plan> {
        let (name, user) = (self.name.trim(), &self.user);
        let own = identifier(&self.identifier, name);
        if !tab.clone().remove(name, own.as_deref(), &self.filter()) {
            return Ok(Plan::nothing(format!("Cron {name} is absent"))
                .done(format!("Cron {name} already absent")));
        }
        Ok(Plan::change(user, name)
            .pending(format!("Cron {name} is set to be removed"))
            .done(format!("Cron {name} removed from {user}'s crontab")))
    }

    fn apply(&self, cx: &Cx, _: Tab) -> Result<Applied> {
        let (name, user) = (self.name.trim(), &self.user);
        let own = identifier(&self.identifier, name);
        match cron::take(cx, user, name, own.as_deref(), &self.filter())?.as_str() {
            "removed" | "absent" => Ok(Applied::as_planned()),
            complaint => Err(Error::failed(format!(
                "Cron {name} for user {user} failed to commit with error {complaint}"
            ))),
        }
    }
}

/// Make sure that a variable is set in a crontab.
#[derive(Args)]
pub struct EnvPresent {
    /// The variable.
    name: String,
    /// Its value.
    value: Option<String>,
    /// Whose crontab.
    #[default("root".to_owned())]
    user: String,
}

impl State for EnvPresent {
    type Seen = Tab;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Tab> {
        cron::tab_of(cx, &self.user)
    }

    fn plan(&self, tab: &Tab) -> Result<Plan> {
        let (name, user) = (&self.name, &self.user);
        let plan = Plan::change(user, name);
        Ok(match tab.env_status(name, self.value.as_deref().unwrap_or_default()) {
            Status::Present => Plan::nothing(format!("Cron env {name} already present")),
            Status::Absent => plan
                .pending(format!("Cron env {name} is set to be added"))
                .done(format!("Cron env {name} added to {user}'s crontab")),
            Status::Update => plan
                .pending(format!("Cron env {name} is set to be updated"))
                .done(format!("Cron env {name} updated")),
        })
    }

    fn apply(&self, cx: &Cx, _: Tab) -> Result<Applied> {
        let (name, user) = (&self.name, &self.user);
        match cron::set_env(cx, user.clone(), name.clone(), self.value.clone())?.as_str() {
            "new" | "updated" | "present" => Ok(Applied::as_planned()),
            complaint => Err(Error::failed(format!(
                "Cron env {name} for user {user} failed to commit with error \n{complaint}"
            ))),
        }
    }
}

/// Make sure that a variable is not set in a crontab.
#[derive(Args)]
pub struct EnvAbsent {
    /// The variable.
    name: String,
    /// Whose crontab.
    #[default("root".to_owned())]
    user: String,
}

impl State for EnvAbsent {
    type Seen = Tab;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Tab> {
        cron::tab_of(cx, &self.user)
    }

    fn plan(&self, tab: &Tab) -> Result<Plan> {
        let (name, user) = (self.name.trim(), &self.user);
        if !tab.env.iter().any(|(own, _)| own == name) {
            return Ok(Plan::nothing(format!("Cron env {name} is absent"))
                .done(format!("Cron env {name} already absent")));
        }
        Ok(Plan::change(user, name)
            .pending(format!("Cron env {name} is set to be removed"))
            .done(format!("Cron env {name} removed from {user}'s crontab")))
    }

    fn apply(&self, cx: &Cx, _: Tab) -> Result<Applied> {
        let (name, user) = (self.name.trim(), &self.user);
        match cron::rm_env(cx, user.clone(), name.to_owned())?.as_str() {
            "removed" | "absent" => Ok(Applied::as_planned()),
            complaint => Err(Error::failed(format!(
                "Cron env {name} for user {user} failed to commit with error {complaint}"
            ))),
        }
    }
}

/// Make a file the whole crontab of a user.
#[derive(Args)]
pub struct File {
    /// The source: `salt://…`, a URL or a path.
    name: String,
    /// The hash of a remote source.
    #[default(String::new())]
    source_hash: String,
    /// The name the source has in a file of hashes.
    #[expect(dead_code, reason = "the hash is looked up by the file client")]
    source_hash_name: Option<String>,
    /// Whose crontab.
    #[default("root".to_owned())]
    user: String,
    /// A template engine to render the source with.
    template: Option<String>,
    /// Names for the template.
    context: Option<Dict>,
    /// Replace a crontab that is there.
    #[default(true)]
    replace: bool,
    /// Names for the template, below `context`.
    defaults: Option<Dict>,
    /// Accepted for old trees: a crontab has no backup.
    #[expect(dead_code, reason = "taken and ignored")]
    #[default(Value::from(""))]
    backup: Value,
    /// Accepted for old trees.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

/// The crontab there is, and the one there shall be.
pub struct Tabs {
    old: String,
    new: String,
    keeps: bool,
}

impl State for File {
    type Seen = Tabs;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Tabs> {
        let user = &self.user;
        if user::find(cx, user, None)?.is_none() {
            return Err(Error::failed(format!("Could not identify group for user {user}")));
        }
        let mut old = cron::text_of(cx, user)?;
        if !old.ends_with('\n') {
            old.push('\n');
        }
        // Salt compares with at least one line end, so there is always something to keep.
        if !self.replace {
            return Ok(Tabs { new: old.clone(), old, keeps: true });
        }
        let env = cx.saltenv();
        let how = halite_spec::Fetch {
            source_hash: Some(self.source_hash.clone()).filter(|hash| !hash.is_empty()),
            ..halite_spec::Fetch::default()
        };
        let Some(path) = cx.files.cache_with(&self.name, &env, &how)? else {
            let name = &self.name;
            return Err(Error::failed(format!("Source file {name} not found in saltenv '{env}'")));
        };
        let mut new = cx.host.read_text(&path)?;
        if let Some(engine) = &self.template {
            let context = Dict::new();
            self.defaults.iter().chain(&self.context).for_each(|names| context.update(names));
            let template = Template {
                engine: engine.clone(),
                text: new,
                source: Some(self.name.clone()),
                saltenv: env,
                sls: cx.low.get("__sls__").map(|sls| sls.to_string()),
                context,
            };
            new = cx.runtime.render(cx, &template)?;
        }
        Ok(Tabs { old, new, keeps: false })
    }

    fn plan(&self, tabs: &Tabs) -> Result<Plan> {
        let user = &self.user;
        if tabs.keeps {
            let comment = format!("User {user} already has a crontab. No changes made");
            return Ok(Plan::nothing(comment));
        }
        if tabs.old == tabs.new {
            return Ok(Plan::nothing(format!("Crontab for user {user} is in the correct state")));
        }
        let lines =
            |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<String>>();
        let difference = diff::unified(&lines(&tabs.old), &lines(&tabs.new));
        let pending = format!("The following values are set to be changed:\ndiff: {difference}\n");
        Ok(Plan::changes(entries! { "diff" => difference })
            .pending(pending)
            .done(format!("Crontab for user {user} was updated")))
    }

    fn apply(&self, cx: &Cx, tabs: Tabs) -> Result<Applied> {
        let user = &self.user;
        match cron::install(cx, user, &tabs.new)? {
            Ok(()) => Ok(Applied::as_planned()),
            Err(complaint) => Err(Error::failed(format!(
                "Unable to update user {user} crontab {}. Error: {complaint}",
                self.name
            ))),
        }
    }
}
