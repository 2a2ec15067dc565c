//! Minions that have signed in and are not quite there yet.
//!
//! A sign-in proves nothing (anybody can ask in anybody's name), so a connection gets its name only
//! by the first request that is sealed with the session. On a busy machine seconds pass between
//! the two, and again until the connection asks for publications. A job that is published
//! meanwhile must not pass the minion by: it is held for it here and sent when the minion is
//! there, or given up when it does not come: at once when the connection ends that it signed in
//! on, else after a while. It may get there twice, over an older connection nobody knew to be
//! dead: a minion runs a job id once.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use halite_value::SmolStr;
use halite_wire::Publication;
use parking_lot::Mutex;

/// How long a minion may take from its sign-in to being there. Whoever waits for its answer waits
/// as long, and Salt would give up after fifteen seconds.
const PATIENCE: Duration = Duration::from_secs(15);
/// Jobs held for one minion. Whoever knows an accepted key can have jobs held, not more.
const MOST: usize = 100;

/// Who is on the way, and what is held for it.
#[derive(Default)]
pub(crate) struct Arriving(Mutex<HashMap<SmolStr, Waiting>>);

struct Waiting {
    until: Instant,
    /// The connection it signed in on, by its number.
    on: u64,
    jobs: Vec<Publication>,
}

impl Arriving {
    /// A minion has signed in on a connection that is not known to be its own yet.
    pub(crate) fn expect(&self, id: &str, on: u64) {
        let until = Instant::now() + PATIENCE;
        let mut all = self.0.lock();
        let waiting = all.entry(id.into()).or_insert(Waiting { until, on, jobs: Vec::new() });
        (waiting.until, waiting.on) = (until, on);
    }

    /// A connection has ended: forgets who was to come on it; returns those for whom jobs were held.
    pub(crate) fn ended(&self, connection: u64) -> Vec<SmolStr> {
        self.forget(|waiting| waiting.on == connection)
    }

    pub(crate) fn is_coming(&self, id: &str) -> bool {
        self.0.lock().get(id).is_some_and(|waiting| waiting.until > Instant::now())
    }

    /// Holds a job for those of these who are on the way; `None`: for all who are.
    pub(crate) fn hold(&self, ids: Option<&[SmolStr]>, publication: &Publication) {
        let all = &mut *self.0.lock();
        if all.is_empty() {
            return;
        }
        let now = Instant::now();
        let keep = |waiting: &mut Waiting| {
            if waiting.until > now && waiting.jobs.len() < MOST {
                waiting.jobs.push(publication.clone());
            }
        };
        match ids {
            Some(ids) => {
                for id in ids {
                    all.get_mut(id).into_iter().for_each(keep);
                }
            }
            None => all.values_mut().for_each(keep),
        }
    }

    /// A minion is there: takes what was held for it, oldest first.
    pub(crate) fn take(&self, id: &str) -> Vec<Publication> {
        self.0.lock().remove(id).map(|waiting| waiting.jobs).unwrap_or_default()
    }

    /// Forgets those who did not come; returns those for whom jobs were held.
    pub(crate) fn expired(&self) -> Vec<SmolStr> {
        let now = Instant::now();
        self.forget(|waiting| waiting.until <= now)
    }

    fn forget(&self, is_over: impl Fn(&Waiting) -> bool) -> Vec<SmolStr> {
        let over = self.0.lock().extract_if(|_, waiting| is_over(waiting)).collect::<Vec<_>>();
        over.into_iter().filter(|(_, waiting)| !waiting.jobs.is_empty()).map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    fn job(jid: &str) -> Publication {
        let load = entries! {
            "jid" => jid, "fun" => "test.ping", "arg" => Vec::<halite_value::Value>::new(),
            "tgt" => "*", "tgt_type" => "glob", "ret" => "", "user" => "root",
        };
        Publication::read(&load).unwrap()
    }

    #[test]
    fn only_for_who_is_on_the_way_in_order_and_once() {
        let arriving = Arriving::default();
        arriving.expect("a", 1);
        let ids: Vec<SmolStr> = vec!["a".into(), "b".into()];
        arriving.hold(Some(&ids), &job("20240101000000000001"));
        arriving.hold(None, &job("20240101000000000002"));
        arriving.hold(Some(&ids[1..]), &job("20240101000000000003"));
        assert!(arriving.is_coming("a") && !arriving.is_coming("b"));
        let jids = |id: &str| -> Vec<String> {
            arriving.take(id).iter().map(|job| job.jid.to_string()).collect()
        };
        assert_eq!(jids("a"), ["20240101000000000001", "20240101000000000002"]);
        assert!(jids("a").is_empty() && jids("b").is_empty());
        assert!(!arriving.is_coming("a"));
    }

    #[test]
    fn nobody_comes_on_a_connection_that_has_ended() {
        let arriving = Arriving::default();
        for (id, connection) in [("a", 1), ("b", 2), ("c", 1), ("d", 1)] {
            arriving.expect(id, connection);
        }
        arriving.expect("d", 3);
        arriving.hold(Some(&["a".into(), "b".into(), "d".into()]), &job("20240101000000000001"));
        assert_eq!(arriving.ended(1), ["a"]);
        let coming: Vec<&str> =
            ["a", "b", "c", "d"].into_iter().filter(|id| arriving.is_coming(id)).collect();
        assert_eq!(coming, ["b", "d"]);
    }

    #[test]
    fn what_is_held_is_limited() {
        let arriving = Arriving::default();
        arriving.expect("a", 1);
        for _ in 0..MOST + 5 {
            arriving.hold(None, &job("20240101000000000001"));
        }
        assert_eq!(arriving.take("a").len(), MOST);
    }
}
