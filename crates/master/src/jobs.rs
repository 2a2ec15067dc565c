//! Jobs that are under way: who is still to answer, and who wants to know.
//!
//! The store remembers jobs; this remembers what is needed while they run. A follower gets every
//! step in a bounded queue. Ids of jobs grow, whatever the clock does.

use std::{
    collections::{BTreeMap, HashMap, HashSet, btree_map::Entry},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use halite_client::Progress;
use halite_store::State;
use halite_value::{Dict, SmolStr};
use halite_wire::Jid;
use parking_lot::Mutex;

use crate::bus::Queue;

/// Jobs that are watched at most; the oldest are no longer.
const MOST: usize = 20_000;
/// How long a job that nobody follows is watched.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);
/// How long a job is that only syndics could say more about.
const RELAYED: Duration = Duration::from_secs(60);
/// Tables with less room are left alone.
const ROOM: usize = 32;
/// Steps waiting for one follower.
const FOLLOWER: usize = 100_000;

/// The jobs under way.
#[derive(Default)]
pub struct Jobs {
    state: Mutex<Live>,
    last: Mutex<Option<Jid>>,
}

#[derive(Default)]
struct Live {
    jobs: BTreeMap<SmolStr, Job>,
    /// Minion → jobs it is still to answer.
    of: HashMap<SmolStr, HashSet<SmolStr>>,
}

struct Job {
    begun: Instant,
    load: Dict,
    waiting: HashMap<SmolStr, State>,
    /// Syndics that have not told yet who answers below them.
    relays: HashSet<SmolStr>,
    /// If there are or were such: who has returned, possibly before its syndic told of it.
    returned: Option<HashSet<SmolStr>>,
    /// By which syndic those below one are reached.
    via: HashMap<SmolStr, SmolStr>,
    followers: Vec<Weak<Queue<Progress>>>,
}

impl Job {
    fn has_returned(&self, id: &str) -> bool {
        self.returned.as_ref().is_some_and(|ids| ids.contains(id))
    }

    fn tell(&mut self, progress: &Progress) {
        self.followers.retain(|follower| {
            let Some(queue) = follower.upgrade() else { return false };
            queue.push(progress.clone());
            true
        });
    }
}

impl Jobs {
    /// Returns a new job id, greater than all before.
    pub fn next_jid(&self) -> Jid {
        let mut last = self.last.lock();
        let jid = Jid::after(last.as_ref());
        *last = Some(jid.clone());
        jid
    }

    /// A job is about to be published to these minions; with the same id there may be several
    /// publications, each to others.
    pub fn begin(&self, jid: &str, load: Dict, minions: impl IntoIterator<Item = SmolStr>) {
        self.begin_below(jid, load, minions, &[]);
    }

    /// As [`Jobs::begin`]; these syndics are to tell who answers below them.
    pub fn begin_below(
        &self,
        jid: &str,
        load: Dict,
        minions: impl IntoIterator<Item = SmolStr>,
        relays: &[SmolStr],
    ) {
        let jid = SmolStr::new(jid);
        let waiting: HashMap<_, _> = minions.into_iter().map(|id| (id, State::Queued)).collect();
        let live = &mut *self.state.lock();
        for id in waiting.keys() {
            live.of.entry(id.clone()).or_default().insert(jid.clone());
        }
        let begun = Instant::now();
        match live.jobs.entry(jid) {
            Entry::Vacant(place) => {
                let relays: HashSet<_> = relays.iter().cloned().collect();
                let returned = (!relays.is_empty()).then(HashSet::new);
                let (via, followers) = (HashMap::new(), Vec::new());
                place.insert(Job { begun, load, waiting, relays, returned, via, followers });
            }
            Entry::Occupied(mut known) => {
                let job = known.get_mut();
                (job.begun, job.load) = (begun, load);
                job.waiting.extend(waiting);
                job.relays.extend(relays.iter().cloned());
            }
        }
        while live.jobs.len() > MOST {
            let Some(oldest) = live.jobs.keys().next().cloned() else { break };
            live.remove(&oldest);
        }
    }

    /// Returns a queue with every further step of a job; `None` if it is not under way.
    pub fn follow(&self, jid: &str) -> Option<Arc<Queue<Progress>>> {
        let queue = Queue::new(FOLLOWER);
        let live = &mut *self.state.lock();
        live.jobs.get_mut(jid)?.followers.push(Arc::downgrade(&queue));
        Some(queue)
    }

    /// Returns the minions a job still waits for.
    pub fn waiting(&self, jid: &str) -> Vec<SmolStr> {
        let live = self.state.lock();
        let mut ids: Vec<_> =
            live.jobs.get(jid).map(|job| job.waiting.keys().cloned().collect()).unwrap_or_default();
        ids.sort();
        ids
    }

    /// Returns all jobs under way: id, load, who is still to answer.
    pub fn active(&self) -> Vec<(SmolStr, Dict, Vec<SmolStr>)> {
        let live = self.state.lock();
        live.jobs
            .iter()
            .filter(|(_, job)| !job.waiting.is_empty())
            .map(|(jid, job)| {
                let mut ids: Vec<_> = job.waiting.keys().cloned().collect();
                ids.sort();
                (jid.clone(), job.load.clone(), ids)
            })
            .collect()
    }

    /// A minion has made a step.
    pub fn step(&self, jid: &str, id: &str, state: State) {
        let live = &mut *self.state.lock();
        let Some(job) = live.jobs.get_mut(jid) else { return };
        let Some(known) = job.waiting.get_mut(id) else { return };
        if *known != State::Lost && *known >= state {
            return;
        }
        *known = state;
        let id = SmolStr::new(id);
        match state {
            State::Received => job.tell(&Progress::Received { id }),
            State::Started => job.tell(&Progress::Started { id }),
            State::Refused => {
                job.tell(&Progress::Lost { id: id.clone(), reason: "refused".into() });
                live.answered(jid, &id);
            }
            _ => {}
        }
    }

    /// A minion has returned; `load` is the event's.
    pub fn returned(&self, jid: &str, id: &str, load: &Dict) {
        let live = &mut *self.state.lock();
        if let Some(job) = live.jobs.get_mut(jid) {
            job.tell(&Progress::Returned(load.clone()));
        }
        live.answered(jid, id);
    }

    /// Something else came for a job, such as a part of a return.
    pub fn tell(&self, jid: &str, progress: &Progress) {
        if let Some(job) = self.state.lock().jobs.get_mut(jid) {
            job.tell(progress);
        }
    }

    /// A job that was given before reaches a minion now.
    pub fn resume(&self, jid: &str, load: Dict, id: &str) {
        let known = self.state.lock().jobs.contains_key(jid);
        if known {
            self.expect(jid, &[id.into()], "", &[]);
        } else {
            self.begin(jid, load, [id.into()]);
        }
    }

    /// More minions are to answer: those below the syndic `relay`, which has others (`relays`) below
    /// itself that are to tell of theirs. Who has returned already is not asked again.
    pub fn expect(&self, jid: &str, ids: &[SmolStr], relay: &str, relays: &[SmolStr]) {
        let live = &mut *self.state.lock();
        let Some(job) = live.jobs.get_mut(jid) else { return };
        let is_news = |id: &&SmolStr| !job.has_returned(id) && !job.waiting.contains_key(*id);
        let ids: Vec<SmolStr> = ids.iter().filter(is_news).cloned().collect();
        for id in &ids {
            job.waiting.entry(id.clone()).or_insert(State::Queued);
            live.of.entry(id.clone()).or_default().insert(jid.into());
            if let Some(first) = relay.split('/').next().filter(|first| !first.is_empty()) {
                job.via.insert(id.clone(), first.into());
            }
        }
        job.relays.remove(relay);
        job.relays.extend(relays.iter().cloned());
        job.tell(&Progress::Expect { ids, relay: relay.into(), relays: relays.to_vec() });
        live.end_if_complete(jid);
    }

    /// A minion that a syndic answers for is not there.
    pub fn lost_one(&self, jid: &str, id: &str, reason: &str) {
        let live = &mut *self.state.lock();
        let Some(job) = live.jobs.get_mut(jid) else { return };
        if let Some(state) = job.waiting.get_mut(id) {
            *state = State::Lost;
            job.tell(&Progress::Lost { id: id.into(), reason: reason.into() });
        }
    }

    /// A syndic's connection has ended: it tells nothing now.
    fn relay_lost(&self, id: &str) {
        let live = &mut *self.state.lock();
        let below = format!("{id}/");
        let jids: Vec<SmolStr> = live.jobs.keys().cloned().collect();
        for jid in jids {
            let Some(job) = live.jobs.get_mut(&jid) else { continue };
            let gone: Vec<SmolStr> = job
                .relays
                .iter()
                .filter(|relay| *relay == id || relay.starts_with(&below))
                .cloned()
                .collect();
            let waiting = job.via.iter().filter(|(below, via)| {
                *via == id && job.waiting.get(*below).is_some_and(|state| *state != State::Lost)
            });
            let cut_off: Vec<SmolStr> = waiting.map(|(below, _)| below.clone()).collect();
            for below in cut_off {
                job.waiting.insert(below.clone(), State::Lost);
                job.tell(&Progress::Lost { id: below, reason: format!("{id} is gone").into() });
            }
            for relay in gone {
                job.relays.remove(&relay);
                job.tell(&Progress::Expect { ids: Vec::new(), relay, relays: Vec::new() });
            }
            live.end_if_complete(&jid);
        }
    }

    /// A minion's connection has ended. Returns the jobs it had not answered.
    pub fn lost(&self, id: &str, reason: &str) -> Vec<SmolStr> {
        self.relay_lost(id);
        self.each_of(id, |job, id| {
            if let Some(state) = job.waiting.get_mut(&id) {
                *state = State::Lost;
            }
            job.tell(&Progress::Lost { id, reason: reason.into() });
        })
    }

    /// A minion is connected again. Returns the jobs it had not answered.
    pub fn back(&self, id: &str) -> Vec<SmolStr> {
        self.each_of(id, |job, id| {
            if job.waiting.get(&id) == Some(&State::Lost) {
                job.waiting.insert(id.clone(), State::Delivered);
                job.tell(&Progress::Back { id });
            }
        })
    }

    fn each_of(&self, id: &str, act: impl Fn(&mut Job, SmolStr)) -> Vec<SmolStr> {
        let live = &mut *self.state.lock();
        let jids: Vec<SmolStr> =
            live.of.get(id).map(|jids| jids.iter().cloned().collect()).unwrap_or_default();
        for jid in &jids {
            if let Some(job) = live.jobs.get_mut(jid) {
                act(job, id.into());
            }
        }
        jids
    }

    /// Stops watching jobs that nobody follows and that take longer than anybody waits.
    pub fn tidy(&self) {
        let live = &mut *self.state.lock();
        let old: Vec<SmolStr> = live
            .jobs
            .iter_mut()
            .filter_map(|(jid, job)| {
                job.followers.retain(|follower| follower.strong_count() > 0);
                // Who is still to tell of it may be a genuine syndic with nobody to tell of.
                let patience = if job.waiting.is_empty() { RELAYED } else { PATIENCE };
                let is_old = job.followers.is_empty() && job.begun.elapsed() > patience;
                is_old.then(|| jid.clone())
            })
            .collect();
        for jid in old {
            live.remove(&jid);
        }
    }

    pub fn len(&self) -> usize {
        self.state.lock().jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Live {
    /// A minion has answered a job; the last one ends it.
    fn answered(&mut self, jid: &str, id: &str) {
        if let Some(jids) = self.of.get_mut(id) {
            jids.remove(jid);
            if jids.is_empty() {
                self.of.remove(id);
            }
        }
        let Some(job) = self.jobs.get_mut(jid) else { return };
        job.waiting.remove(id);
        // A minion that was lost keeps its job for hours, but not the room of all that have answered.
        if job.waiting.capacity() > ROOM.max(4 * job.waiting.len()) {
            job.waiting.shrink_to(2 * job.waiting.len());
        }
        job.via.remove(id);
        if let Some(returned) = &mut job.returned {
            returned.insert(id.into());
        }
        self.end_if_complete(jid);
    }

    fn end_if_complete(&mut self, jid: &str) {
        let is_complete = |job: &Job| job.waiting.is_empty() && job.relays.is_empty();
        if self.jobs.get(jid).is_some_and(is_complete) {
            self.remove(jid);
        }
    }

    fn remove(&mut self, jid: &str) {
        let Some(mut job) = self.jobs.remove(jid) else { return };
        job.tell(&Progress::Done);
        for id in job.waiting.keys() {
            if let Some(jids) = self.of.get_mut(id) {
                jids.remove(jid);
                if jids.is_empty() {
                    self.of.remove(id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Item;

    fn steps(queue: &Queue<Progress>) -> Vec<String> {
        std::iter::from_fn(|| queue.try_next())
            .map(|item| match item {
                Item::One(progress) => {
                    let map = progress.write();
                    let id = map.get("id").map(|id| id.to_str()).unwrap_or_default();
                    format!("{} {id}", map.get("is").unwrap_or_default().to_str())
                }
                Item::Gap(missed) => format!("gap {missed}"),
            })
            .collect()
    }

    #[test]
    fn a_job_ends_with_its_last_answer() {
        let jobs = Jobs::default();
        jobs.begin("1", Dict::new(), ["a".into(), "b".into()]);
        let queue = jobs.follow("1").unwrap();
        jobs.step("1", "a", State::Received);
        jobs.step("1", "a", State::Received);
        jobs.returned("1", "a", &Dict::new());
        assert_eq!(jobs.lost("b", "gone"), ["1"]);
        assert!(jobs.lost("a", "gone").is_empty());
        jobs.back("b");
        assert_eq!(jobs.waiting("1"), ["b"]);
        jobs.returned("1", "b", &Dict::new());
        assert_eq!(
            steps(&queue),
            ["received a", "returned ", "lost b", "back b", "returned ", "done "]
        );
        assert!(jobs.is_empty() && jobs.follow("1").is_none());
    }

    #[test]
    fn a_job_may_be_given_to_more_minions() {
        let jobs = Jobs::default();
        jobs.begin("1", Dict::new(), ["a".into(), "b".into()]);
        let first = jobs.follow("1").unwrap();
        jobs.returned("1", "a", &Dict::new());
        jobs.begin("1", Dict::new(), ["c".into()]);
        let second = jobs.follow("1").unwrap();
        assert_eq!(jobs.waiting("1"), ["b", "c"]);
        jobs.returned("1", "b", &Dict::new());
        jobs.returned("1", "c", &Dict::new());
        assert_eq!(steps(&first), ["returned ", "returned ", "returned ", "done "]);
        assert_eq!(steps(&second), ["returned ", "returned ", "done "]);
        assert!(jobs.is_empty());
    }

    #[test]
    fn a_job_that_waits_for_one_has_room_for_few() {
        let jobs = Jobs::default();
        let ids: Vec<SmolStr> = (0..1000).map(|n| format!("m{n}").into()).collect();
        jobs.begin("1", Dict::new(), ids.clone());
        for id in &ids[1..] {
            jobs.returned("1", id, &Dict::new());
        }
        assert_eq!(jobs.waiting("1"), ["m0"]);
        let live = jobs.state.lock();
        assert!(live.jobs["1"].waiting.capacity() <= ROOM && live.of.len() == 1);
    }

    #[test]
    fn ids_grow() {
        let jobs = Jobs::default();
        let ids: Vec<_> = (0..1000).map(|_| jobs.next_jid()).collect();
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
