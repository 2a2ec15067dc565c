//! `schedule`: which jobs a minion runs by itself.
//!
// differs: with `test=True` genuine Salt says True where a run would change something; here it is
// None, as for every state, and names the changes.

use halite_modules::schedule as module;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Which jobs a minion runs by itself.
    "schedule":
    "present" => Present,
    "absent" => Absent,
    "enabled" => Enabled,
    "disabled" => Disabled,
}

/// Returns a job of the daemon's schedule.
fn job(cx: &Cx, name: &str) -> Result<Option<Dict>> {
    let jobs = module::list(cx, true, true, None, false, false)?;
    Ok(jobs.get(name).and_then(|job| job.as_dict().cloned()))
}

fn comment(answer: &Value) -> String {
    answer.get("comment").unwrap_or_default().to_str().to_string()
}

/// Returns the answer, or its comment as an error.
fn succeeded(answer: Value) -> Result<Value> {
    if answer.get("result").is_some_and(|result| result.truthy()) {
        Ok(answer)
    } else {
        Err(Error::failed(comment(&answer)))
    }
}

fn changes(answer: &Value) -> Dict {
    answer.get("changes").and_then(|changes| changes.as_dict().cloned()).unwrap_or_default()
}

/// Have a job in the schedule.
///
/// ```console
/// $ salt '*' state.single schedule.present name=job1 function=state.apply hours=1
/// ```
#[derive(Args)]
pub struct Present {
    /// The job.
    name: String,
    /// Its options, as `schedule.add` takes them; `persist`, `offline`.
    rest: Rest,
}

impl Present {
    fn options(&self, test: bool) -> Rest {
        let kwargs = self.rest.kwargs.shallow_copy();
        kwargs.insert("test", test);
        Rest { args: Vec::new(), kwargs }
    }
}

impl State for Present {
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);
    /// The job there is, and what the module would say.
    type Seen = (bool, Value);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let there = job(cx, &self.name)?.is_some();
        let answer = if there {
            module::modify(cx, self.name.clone(), self.options(true))
        } else {
            module::add(cx, self.name.clone(), self.options(true))
        };
        Ok((there, succeeded(answer?)?))
    }

    fn plan(&self, (there, answer): &Self::Seen) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::change(name.as_str(), "added")
                .pending(comment(answer))
                .done(format!("Adding new job {name} to schedule")));
        }
        let changes = changes(answer);
        if changes.is_empty() {
            return Ok(Plan::nothing(format!("Job {name} in correct state")));
        }
        Ok(Plan::changes(changes)
            .pending(comment(answer))
            .done(format!("Modifying job {name} in schedule")))
    }

    fn apply(&self, cx: &Cx, (there, _): Self::Seen) -> Result<Applied> {
        let answer = if there {
            module::modify(cx, self.name.clone(), self.options(false))
        } else {
            module::add(cx, self.name.clone(), self.options(false))
        };
        succeeded(answer?)?;
        Ok(Applied::as_planned())
    }
}

/// Have no job of that name in the schedule.
///
/// ```console
/// $ salt '*' state.single schedule.absent name=job1
/// ```
#[derive(Args)]
pub struct Absent {
    /// The job.
    name: String,
    /// `persist`, `offline`.
    rest: Rest,
}

impl State for Absent {
    type Seen = bool;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(job(cx, &self.name)?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        Ok(if *there {
            Plan::change(name.as_str(), "removed")
                .pending(format!("Job: {name} would be deleted from schedule."))
                .done(format!("Removed job {name} from schedule"))
        } else {
            Plan::nothing(format!("Job {name} not present in schedule"))
        })
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        succeeded(module::delete(cx, self.name.clone(), self.rest.clone())?)?;
        Ok(Applied::as_planned())
    }
}

/// What [`Enabled`] and [`Disabled`] do.
fn switch(name: &str, seen: Option<bool>, enable: bool) -> Plan {
    let (word, title) = if enable { ("enabled", "Enabled") } else { ("disabled", "Disabled") };
    match seen {
        None => Plan::nothing(format!("Job {name} not present in schedule")),
        // Salt says the same whether it did something or not.
        Some(now) if now == enable => Plan::nothing(format!("{title} job {name} from schedule")),
        Some(_) => Plan::changes(entries! { name => word })
            .pending(format!("Job: {name} would be {word} in schedule."))
            .done(format!("{title} job {name} from schedule")),
    }
}

fn is_enabled(cx: &Cx, name: &str) -> Result<Option<bool>> {
    let job = job(cx, name)?;
    Ok(job.map(|job| job.get("enabled").is_none_or(|enabled| enabled.truthy())))
}

/// Have a job of the schedule run.
///
/// ```console
/// $ salt '*' state.single schedule.enabled name=job1
/// ```
#[derive(Args)]
pub struct Enabled {
    /// The job.
    name: String,
    /// `persist`.
    rest: Rest,
}

impl State for Enabled {
    type Seen = Option<bool>;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Option<bool>> {
        is_enabled(cx, &self.name)
    }

    fn plan(&self, seen: &Option<bool>) -> Result<Plan> {
        Ok(switch(&self.name, *seen, true))
    }

    fn apply(&self, cx: &Cx, _: Option<bool>) -> Result<Applied> {
        succeeded(module::enable_job(cx, self.name.clone(), self.rest.clone())?)?;
        Ok(Applied::as_planned())
    }
}

/// Keep a job of the schedule from running.
///
/// ```console
/// $ salt '*' state.single schedule.disabled name=job1
/// ```
#[derive(Args)]
pub struct Disabled {
    /// The job.
    name: String,
    /// `persist`.
    rest: Rest,
}

impl State for Disabled {
    type Seen = Option<bool>;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Option<bool>> {
        is_enabled(cx, &self.name)
    }

    fn plan(&self, seen: &Option<bool>) -> Result<Plan> {
        Ok(switch(&self.name, *seen, false))
    }

    fn apply(&self, cx: &Cx, _: Option<bool>) -> Result<Applied> {
        succeeded(module::disable_job(cx, self.name.clone(), self.rest.clone())?)?;
        Ok(Applied::as_planned())
    }
}
