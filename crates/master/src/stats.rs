//! `master_stats`: how often each request came, and how long it took.
//!
//! As in genuine Salt an event tells it, at most every `master_stats_event_iter` seconds and only
//! when requests come. There the numbers are of one worker process each; here there is one of them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use halite_value::{Dict, dict, entries};
use parking_lot::Mutex;

use crate::{Master, settings::Settings};

/// The name of the first worker of genuine Salt.
const WORKER: &str = "MWorker-default-0";
/// Names of commands that are kept apart; a hostile one may send many.
const MOST: usize = 64;

/// Command → how often it came, and how long it took on average.
type Counted = BTreeMap<String, (u64, f64)>;

/// What came since the last event.
pub(crate) struct Stats {
    every: Option<Duration>,
    counted: Mutex<(Instant, Counted)>,
}

impl Stats {
    pub(crate) fn new(settings: &Settings) -> Self {
        let seconds = settings.opts.opt_int("master_stats_event_iter");
        let seconds = seconds.and_then(|n| u64::try_from(n).ok()).unwrap_or(60);
        let is_on = settings.opts.bool("master_stats");
        Self {
            every: is_on.then(|| Duration::from_secs(seconds)),
            counted: Mutex::new((Instant::now(), Counted::new())),
        }
    }

    /// Begins to measure a request, if anybody wants to know.
    pub(crate) fn begin(&self, load: &Dict) -> Option<(String, Instant)> {
        self.every?;
        Some((load.get("cmd")?.to_str().to_string(), Instant::now()))
    }
}

impl Master {
    /// A request is answered.
    pub(crate) fn count_request(&self, begun: Option<(String, Instant)>) {
        let (Some(every), Some((command, begun))) = (self.stats.every, begun) else { return };
        let taken = begun.elapsed().as_secs_f64();
        let (elapsed, counted) = {
            let (since, counted) = &mut *self.stats.counted.lock();
            if counted.len() < MOST || counted.contains_key(&command) {
                let (runs, mean) = counted.entry(command).or_default();
                *runs += 1;
                *mean += (taken - *mean) / *runs as f64;
            }
            if since.elapsed() < every {
                return;
            }
            let elapsed = std::mem::replace(since, Instant::now()).elapsed();
            (elapsed, std::mem::take(counted))
        };
        let each = |(command, (runs, mean))| (command, dict! { "mean" => mean, "runs" => runs });
        let stats: Dict = counted.into_iter().map(each).collect();
        let data = entries! {
            "time" => elapsed.as_secs_f64(), "worker" => WORKER, "pool" => "default",
            "pool_index" => 0, "stats" => stats,
        };
        self.bus.fire(format!("salt/stats/{WORKER}"), data);
    }
}
