//! All jobs of a daemon, and what is due.

use halite_value::{Dict, Place, Value};
use jiff::{Timestamp, Zoned};

use crate::job::{Globals, Job, Verdict};

/// Keys of a schedule that are not jobs.
const GLOBALS: [&str; 6] =
    ["enabled", "splay", "skip_function", "skip_during_range", "whens", "run_after_skip_range"];

/// A job to be started.
#[derive(Clone, Debug)]
pub struct Fire {
    pub name: String,
    /// The job's options.
    pub job: Dict,
    /// The function; `skip_function` when the job is skipped and one is named.
    pub function: String,
}

/// The schedule of a daemon.
#[derive(Default)]
pub struct Table {
    jobs: Vec<Job>,
    config: Dict,
    pillar: Dict,
    whens: Dict,
}

/// Returns a message with the place behind it, if that is known.
pub(crate) fn placed(message: &str, place: Option<&Place>) -> String {
    match place {
        Some(place) => format!("{message} ({place})"),
        None => message.to_owned(),
    }
}

/// Tells whether a key of a schedule is a job.
pub(crate) fn is_job(name: &str, value: &Value) -> bool {
    !GLOBALS.contains(&name) && value.as_dict().is_some()
}

impl Table {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what the configuration says; jobs that stay keep their times.
    pub fn set_config(&mut self, schedule: &Dict) {
        self.config = globals_of(schedule);
        self.replace(schedule, false);
    }

    /// Takes what the pillar says. A job of the pillar stands for one of the configuration.
    pub fn set_pillar(&mut self, schedule: &Dict) {
        self.pillar = globals_of(schedule);
        self.replace(schedule, true);
    }

    /// Names for times, used by `when`.
    pub fn set_whens(&mut self, whens: &Dict) {
        self.whens = whens.shallow_copy();
    }

    fn replace(&mut self, schedule: &Dict, from_pillar: bool) {
        let wanted = |name: &str| schedule.get(name).is_some_and(|value| is_job(name, &value));
        // The daemon's own jobs are in no file.
        let stays =
            |job: &Job| job.from_pillar != from_pillar || is_own(&job.name) || wanted(&job.name);
        self.jobs.retain(stays);
        for (name, value) in schedule {
            let name = name.to_str();
            let Some(config) = value.as_dict().filter(|_| is_job(&name, &value)) else {
                if !GLOBALS.contains(&name.as_str()) {
                    let text = format!(
                        "Scheduled job \"{name}\" should have a dict value, not {}",
                        value.type_name()
                    );
                    tracing::error!("{}", placed(&text, schedule.place_of(name.as_str())));
                }
                continue;
            };
            self.put(&name, config, from_pillar);
        }
    }

    /// Adds a job, or changes the one of that name.
    pub fn put(&mut self, name: &str, config: &Dict, from_pillar: bool) {
        let is_it = |job: &&mut Job| job.name == name && job.from_pillar == from_pillar;
        match self.jobs.iter_mut().find(is_it) {
            Some(job) => job.change(config),
            None => self.jobs.push(Job::new(name, config, from_pillar)),
        }
    }

    /// Removes a job; those of the pillar stay.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| job.name != name || job.from_pillar);
        self.jobs.len() < before
    }

    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs().find(|job| job.name == name)
    }

    pub(crate) fn job_mut(&mut self, name: &str) -> Option<&mut Job> {
        let shadows = self.shadows();
        self.jobs.iter_mut().find(|job| job.name == name && is_seen(job, &shadows))
    }

    /// Returns the jobs that count: one of the pillar stands for that of the configuration.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        let shadows = self.shadows();
        self.jobs.iter().filter(move |job| is_seen(job, &shadows))
    }

    /// The names the pillar has jobs for.
    fn shadows(&self) -> Vec<String> {
        self.jobs.iter().filter(|job| job.from_pillar).map(|job| job.name.clone()).collect()
    }

    pub(crate) fn set_enabled(&mut self, enabled: bool) {
        self.config.insert("enabled", enabled);
    }

    fn global(&self, name: &str) -> Option<Value> {
        self.pillar.get(name).or_else(|| self.config.get(name))
    }

    fn globals(&self) -> Globals {
        let whens = self.whens.shallow_copy();
        if let Some(Value::Dict(own)) = self.global("whens") {
            whens.update(&own);
        }
        Globals {
            enabled: self.global("enabled").is_none_or(|enabled| enabled.truthy()),
            splay: self.global("splay"),
            skip_during_range: self.global("skip_during_range"),
            whens,
        }
    }

    /// Returns what is to be started now. `running` tells how many of a job still run; `random` a
    /// number from 0 up to and with the given one.
    pub fn tick(
        &mut self,
        now: &Zoned,
        running: &dyn Fn(&str) -> usize,
        random: &dyn Fn(u64) -> u64,
    ) -> Vec<Fire> {
        let globals = self.globals();
        let skip_function = self.global("skip_function").filter(Value::truthy);
        let mut fires = Vec::new();
        let shadows = self.shadows();
        for job in self.jobs.iter_mut().filter(|job| is_seen(job, &shadows)) {
            let Some(verdict) = job.tick(now, &globals, random) else { continue };
            match verdict {
                Verdict::Invalid(why) => {
                    let text = format!("Scheduled job \"{}\" does not run: {why}", job.name);
                    tracing::error!("{}", placed(&text, job.config.place()));
                }
                Verdict::Skip(reason) => {
                    tracing::debug!("Scheduled job \"{}\" is skipped: {reason}", job.name);
                    if reason == "missed" {
                        tracing::warn!(
                            "Scheduled job \"{}\" missed its time: the machine slept, or its clock was set",
                            job.name
                        );
                    }
                    if reason == "in_skip_range" {
                        job.make_up(now, &globals);
                    }
                    let instead = match reason {
                        "skip_explicit" | "in_skip_range" | "not_in_range" => &skip_function,
                        _ => &None,
                    };
                    if let Some(function) = instead {
                        fires.push(fire(job, function.to_str().to_string()));
                    }
                }
                Verdict::Run => {
                    let Some(function) = function_of(&job.config) else {
                        let text = format!("Scheduled job \"{}\" names no function", job.name);
                        tracing::error!("{}", placed(&text, job.config.place()));
                        job.did_not_run("invalid", now);
                        continue;
                    };
                    if let Some(max) = job.max_running()
                        && running(&job.name) >= max
                    {
                        tracing::info!(
                            "The scheduled job \"{}\" was not started, {max} already running",
                            job.name
                        );
                        job.did_not_run("maxrunning", now);
                        continue;
                    }
                    job.ran(now);
                    if job.config.get("dry_run").is_some_and(|dry| dry.truthy()) {
                        tracing::debug!("Job: {} not run: dry_run is set", job.name);
                        continue;
                    }
                    fires.push(fire(job, function));
                }
            }
        }
        fires
    }

    /// Returns when to look again; `None` when nothing is planned.
    pub fn next(&self) -> Option<Timestamp> {
        self.jobs().filter_map(Job::next).min()
    }

    /// Returns what belongs into `_schedule.conf`: everything that is not of the pillar.
    pub fn saved(&self) -> Dict {
        let saved = Dict::new();
        for job in self.jobs.iter().filter(|job| !job.from_pillar && !is_own(&job.name)) {
            saved.insert(job.name.as_str(), job.config.deep_copy());
        }
        saved.update(&self.config);
        saved
    }

    /// Returns the schedule as `schedule.list` gets it: of the configuration, the pillar, or both.
    pub fn listed(&self, place: Option<&str>) -> Dict {
        let listed = Dict::new();
        let wanted = |job: &&Job| match place {
            Some("pillar") => job.from_pillar,
            Some("opts") => !job.from_pillar,
            _ => true,
        };
        for job in self.jobs().filter(wanted) {
            listed.insert(job.name.as_str(), job.config.deep_copy());
        }
        if place != Some("pillar") {
            listed.update(&self.config);
        }
        if place != Some("opts") {
            listed.update(&self.pillar);
        }
        listed
    }
}

fn is_seen(job: &Job, shadows: &[String]) -> bool {
    job.from_pillar || !shadows.contains(&job.name)
}

/// The daemon's own jobs.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with("__")
}

fn globals_of(schedule: &Dict) -> Dict {
    let is_global = |key: &halite_value::Key| GLOBALS.contains(&key.to_str().as_str());
    schedule.entries().into_iter().filter(|(key, _)| is_global(key)).collect()
}

pub(crate) fn function_of(config: &Dict) -> Option<String> {
    let named = config.get("function").or_else(|| config.get("func")).or_else(|| config.get("fun"));
    named.filter(Value::truthy).map(|name| name.to_str().to_string())
}

fn fire(job: &Job, function: String) -> Fire {
    Fire { name: job.name.clone(), job: job.config.deep_copy(), function }
}
