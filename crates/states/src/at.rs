//! `at`: jobs for later.
//!
//! A job that has run is gone, so `present` leaves one at every run unless `unique_tag` says that
//! one with the tag is enough.

use halite_modules::at;
use halite_spec::{
    Applied, Args, Cx, Error, Need, Outcome, Plan, Rest, Result, State, Watcher, states,
};
use halite_value::{Dict, Value};

states! {
    /// Jobs for later.
    "at", needs = [
        Need::function("at.at", "at module could not be loaded"),
    ]: "present" => Present,
    "absent" => Absent,
    "watch" => Watch,
}

/// Make sure that a job waits.
#[derive(Args)]
pub struct Present {
    /// The command, unless `job` gives it.
    name: String,
    /// When: `9:09 11/09/26`, `now + 2 hours`.
    timespec: String,
    /// A name to find the job by.
    tag: Option<String>,
    /// The user to run as.
    user: Option<String>,
    /// The command.
    job: Option<String>,
    /// One job with this tag is enough.
    #[default(false)]
    unique_tag: bool,
}

impl Present {
    fn job(&self) -> &str {
        self.job.as_deref().unwrap_or(&self.name)
    }

    fn leave(&self, cx: &Cx) -> Result<()> {
        let kwargs = Dict::new();
        if let Some(tag) = &self.tag {
            kwargs.insert("tag", tag);
        }
        if let Some(user) = &self.user {
            kwargs.insert("runas", user);
        }
        let args = vec![Value::from(&self.timespec), Value::from(self.job())];
        let left = at::at(cx, Rest { args, kwargs })?;
        match left.get("error") {
            Some(error) => Err(Error::failed(error.to_string())),
            None => Ok(()),
        }
    }
}

impl State for Present {
    type Seen = bool;

    const REPEATS: bool = true;

    /// Tells whether a job with the tag waits.
    fn observe(&self, cx: &Cx) -> Result<bool> {
        if let Some(user) = &self.user
            && cx.host.user_named(user)?.is_none()
        {
            return Err(Error::failed(format!("user {user} does not exists")));
        }
        if !self.unique_tag {
            return Ok(false);
        }
        let Some(tag) = &self.tag else {
            return Err(Error::failed("no tag provided and unique_tag is set to True"));
        };
        let waiting = at::atq(cx, Some(Value::from(tag)))?.get("jobs").unwrap_or_default();
        Ok(waiting.items_of_sequence().is_some_and(|jobs| !jobs.is_empty()))
    }

    fn plan(&self, waits: &bool) -> Result<Plan> {
        if *waits {
            let tag = self.tag.as_deref().unwrap_or_default();
            return Ok(Plan::nothing(format!("atleast one job with tag {tag} exists.")));
        }
        let added = format!("job {} added and will run on {}", self.job(), self.timespec);
        Ok(Plan::unknown().pending(added.clone()).done(added))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        self.leave(cx)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that jobs do not wait: those with a number, or those that fit.
#[derive(Args)]
pub struct Absent {
    /// A name for the state; without any condition all jobs go.
    #[allow(dead_code)]
    name: Value,
    /// The number of the job.
    jobid: Option<Value>,
    /// What must fit: `tag`, `runas`, `hour`, `minute`, `day`, `month`, `year`.
    kwargs: Rest,
}

impl State for Absent {
    type Seen = Vec<Value>;

    fn observe(&self, cx: &Cx) -> Result<Vec<Value>> {
        if self.kwargs.kwargs.contains("limit") {
            return Err(Error::failed(format!("limit parameter not supported {}", self.name)));
        }
        let found = match (&self.jobid, self.kwargs.kwargs.is_empty()) {
            (Some(job), _) => at::atq(cx, Some(job.clone()))?.get("jobs"),
            (None, true) => at::atq(cx, None)?.get("jobs"),
            (None, false) => at::jobcheck(cx, self.kwargs.clone())?.get("jobs"),
        };
        let jobs = found.unwrap_or_default().items_of_sequence().unwrap_or_default();
        Ok(jobs.iter().filter_map(|job| job.get("job")).collect())
    }

    fn plan(&self, jobs: &Vec<Value>) -> Result<Plan> {
        if jobs.is_empty() {
            return Ok(Plan::nothing(match &self.jobid {
                Some(job) => format!("job with id {job} not present"),
                None => "removed 0 job(s)".to_owned(),
            }));
        }
        let gone: Vec<String> = jobs.iter().map(Value::to_string).collect();
        let done = match &self.jobid {
            Some(job) => format!("removed job with id {job} successfully"),
            None => format!("removed {} job(s)", jobs.len()),
        };
        Ok(Plan::change("removed", gone).pending("removed ? job(s)").done(done))
    }

    fn apply(&self, cx: &Cx, jobs: Vec<Value>) -> Result<Applied> {
        at::atrm(cx, Rest { args: jobs, kwargs: Dict::new() })?;
        Ok(Applied::as_planned())
    }
}

/// Leave a job when a watched state changes.
#[derive(Args)]
pub struct Watch(Present);

impl Watcher for Watch {
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        halite_spec::run(&self.0, cx, test)
    }
}
