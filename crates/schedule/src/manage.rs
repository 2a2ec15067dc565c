//! What the `schedule` module asks a daemon, and the answer it waits for on the local bus.
//!
//! Requests are events tagged `manage_schedule` with a `func`; each is answered by an event of its
//! own tag, as genuine Salt's tools expect.

use halite_value::{DateTime, Dict, Value, entries};
use jiff::{Timestamp, Zoned, fmt::strtime, tz::TimeZone};

use crate::{
    job::Job,
    table::{Table, is_job},
};

/// What a request came to.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The tag of the event that tells it; `None` where genuine Salt tells nothing.
    pub tag: Option<&'static str>,
    pub data: Dict,
    /// The schedule is to be written to its file.
    pub save: bool,
}

impl Table {
    /// Does what an event `manage_schedule` asks; `None` if it is no request.
    pub fn manage(&mut self, request: &Dict, now: &Zoned) -> Option<Answer> {
        let func = request.get("func")?.to_str();
        let name = request.get("name").unwrap_or_default().to_str();
        let persist = request.get("persist").is_none_or(|persist| persist.truthy());
        let changed =
            |table: &Self, tag| Answer { tag: Some(tag), data: table.told(), save: persist };
        Some(match func.as_str() {
            "add" => {
                if let Some(Value::Dict(jobs)) = request.get("schedule") {
                    for (name, job) in &jobs {
                        if let Some(job) = job.as_dict().filter(|_| is_job(&name.to_str(), &job)) {
                            self.put(&name.to_str(), job, false);
                        }
                    }
                }
                changed(self, "/salt/minion/minion_schedule_add_complete")
            }
            "modify" => {
                if let Some(Value::Dict(job)) = request.get("schedule") {
                    self.put(&name, &job, false);
                }
                // Genuine Salt removes and adds, and this is what it tells.
                changed(self, "/salt/minion/minion_schedule_delete_complete")
            }
            "delete" => {
                self.remove(&name);
                changed(self, "/salt/minion/minion_schedule_delete_complete")
            }
            "enable_job" | "disable_job" => {
                let enable = func == "enable_job";
                if let Some(job) = self.job_mut(&name) {
                    job.config.insert("enabled", enable);
                }
                changed(
                    self,
                    if enable {
                        "/salt/minion/minion_schedule_enabled_job_complete"
                    } else {
                        "/salt/minion/minion_schedule_disabled_job_complete"
                    },
                )
            }
            "enable" | "disable" => {
                let enable = func == "enable";
                self.set_enabled(enable);
                changed(
                    self,
                    if enable {
                        "/salt/minion/minion_schedule_enabled_complete"
                    } else {
                        "/salt/minion/minion_schedule_disabled_complete"
                    },
                )
            }
            "run_job" => {
                if let Some(job) = self.job_mut(&name) {
                    job.force();
                }
                Answer { tag: None, data: Dict::new(), save: false }
            }
            "list" => {
                let place = request.get("where").filter(Value::truthy).map(|place| place.to_str());
                let data =
                    entries! { "complete" => true, "schedule" => self.listed(place.as_deref()) };
                Answer {
                    tag: Some("/salt/minion/minion_schedule_list_complete"),
                    data,
                    save: false,
                }
            }
            "save_schedule" => Answer {
                tag: Some("/salt/minion/minion_schedule_saved"),
                data: entries! { "complete" => true },
                save: true,
            },
            "reload" => {
                if let Some(Value::Dict(schedule)) = request.get("schedule") {
                    self.set_config(&schedule);
                }
                Answer { tag: None, data: Dict::new(), save: false }
            }
            "get_next_fire_time" => {
                let next = self.job(&name).and_then(Job::next);
                let next = next.map(|next| civil(next, now.time_zone(), "%Y-%m-%dT%H:%M:%S"));
                let data = entries! { "complete" => true, "next_fire_time" => next };
                Answer {
                    tag: Some("/salt/minion/minion_schedule_next_fire_time_complete"),
                    data,
                    save: false,
                }
            }
            "job_status" => {
                let data = entries! { "complete" => true, "data" => self.status(&name, now) };
                Answer {
                    tag: Some("/salt/minion/minion_schedule_job_status_complete"),
                    data,
                    save: false,
                }
            }
            "skip_job" => {
                let at = time(request, "time", now);
                if let (Some(job), Some(at)) = (self.job_mut(&name), at) {
                    job.skip(at);
                }
                Answer {
                    save: false,
                    ..changed(self, "/salt/minion/minion_schedule_skip_job_complete")
                }
            }
            "postpone_job" => {
                let (at, new) = (time(request, "time", now), time(request, "new_time", now));
                if let (Some(job), Some(at), Some(new)) = (self.job_mut(&name), at, new) {
                    job.skip(at);
                    job.run_at(new);
                }
                Answer {
                    save: false,
                    ..changed(self, "/salt/minion/minion_schedule_postpone_job_complete")
                }
            }
            _ => return None,
        })
    }

    fn told(&self) -> Dict {
        entries! { "complete" => true, "schedule" => self.listed(None) }
    }

    /// Returns a job's options and what became of it; empty if there is none.
    pub fn status(&self, name: &str, now: &Zoned) -> Dict {
        let Some(job) = self.job(name) else { return Dict::new() };
        let status = job.config.deep_copy();
        let zone = now.time_zone();
        let at = |time: Timestamp| Value::Timestamp(time.to_zoned(zone.clone()).datetime());
        let next = job.next().map(at);
        status.insert("_next_fire_time", next);
        let splay = job.splay();
        status.insert("_splay", (splay != 0).then_some(splay));
        status.insert("_run_on_start", false);
        if let Some(seconds) = job.interval() {
            status.insert("_seconds", seconds);
        }
        if !status.contains("splay") {
            status.insert("splay", Value::Null);
        }
        status.insert("run", job.skipped().is_none());
        if let Some(last) = job.last_run() {
            status.insert("_last_run", at(last));
        }
        if let Some((reason, time)) = job.skipped() {
            status.insert("_skip_reason", reason);
            status.insert("_skipped", true);
            status.insert("_skipped_time", at(time));
        }
        status
    }
}

fn civil(time: Timestamp, zone: &TimeZone, format: &str) -> String {
    strtime::format(format, &time.to_zoned(zone.clone())).unwrap_or_default()
}

/// Reads a time of a request, by its `time_fmt`.
fn time(request: &Dict, key: &str, now: &Zoned) -> Option<Timestamp> {
    let format = request.get("time_fmt").filter(Value::truthy);
    let format = format.map_or_else(|| "%Y-%m-%dT%H:%M:%S".into(), |format| format.to_str());
    let at: DateTime = match request.get(key)? {
        Value::Timestamp(at) => at,
        text => strtime::parse(format.as_str(), text.to_str().as_str()).ok()?.to_datetime().ok()?,
    };
    Some(at.to_zoned(now.time_zone().clone()).ok()?.timestamp())
}
