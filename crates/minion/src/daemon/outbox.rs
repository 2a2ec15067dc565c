//! The way returns go: from the journal to the master that gave the job, until it has them.
//!
//! A return is sent as soon as it is there. Where the master is ours, those that are ready while one
//! is under way wait for the answer and then go in one piece: a minion with much to tell (several
//! jobs at once, or all that an hour without its master has left) costs both ends one message, one
//! write to the disk and one answer. Large ones, and all that go to a master of Salt's, go alone.
//!
//! What was not acknowledged is sent again and again, to the master that gave the job or, when
//! masters are used one at a time, to the present one.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::RETURNS;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::node::{Node, random_part};

/// Returns that go alone and are under way at the same time.
const IN_FLIGHT: usize = 16;
/// From this size on a return goes alone.
const LARGE: u64 = 64 << 10;
/// What goes together at most, in number and in size.
const MOST: usize = 100;
const MOST_BYTES: u64 = 1 << 20;
/// An answer that takes longer than this is not waited for with the next ones.
const PATIENCE: Duration = Duration::from_secs(1);
/// Messages of several under way to one master at the same time.
const COURIERS: usize = 4;
/// So often a return may fail in company; then it goes alone, for it may be what the master cannot take.
const FAILURES: u8 = 2;

/// Returns that wait to go together.
pub(crate) struct Outbox {
    lanes: Mutex<HashMap<SmolStr, Lane>>,
    turns: Semaphore,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { lanes: Mutex::default(), turns: Semaphore::new(IN_FLIGHT) }
    }
}

/// Those for one master.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Parcel>,
    couriers: usize,
    /// When the last courier left.
    left: Option<Instant>,
}

/// A return on its way.
pub(crate) struct Parcel {
    key: SmolStr,
    contents: Contents,
    size: u64,
    /// How often it failed together with others.
    failures: u8,
}

/// Where a return is while it is being sent.
pub(crate) enum Contents {
    /// In memory for the first attempt, and in the journal.
    First(Dict),
    /// In memory only.
    Unkept(Dict),
    /// In the journal.
    Kept,
}

impl Parcel {
    pub(crate) fn new(key: &str, contents: Contents, size: u64) -> Self {
        Self { key: key.into(), contents, size, failures: 0 }
    }

    /// The disk has it: no need to keep it in memory while the master is away.
    fn rest(&mut self) {
        if let Contents::First(_) = self.contents {
            self.contents = Contents::Kept;
        }
    }
}

impl Outbox {
    /// Adds a return; true if somebody has to leave with it.
    fn put(&self, master: &str, parcel: Parcel) -> bool {
        let mut lanes = self.lanes.lock();
        let lane = lanes.entry(master.into()).or_default();
        lane.waiting.push_back(parcel);
        let is_late = lane.left.is_some_and(|left| left.elapsed() > PATIENCE);
        let leaves = lane.couriers == 0 || is_late && lane.couriers < COURIERS;
        if leaves {
            lane.couriers += 1;
            lane.left = Some(Instant::now());
        }
        leaves
    }

    /// Returns what a courier takes along; `None` if nothing is left, and it is done.
    fn next(&self, master: &str) -> Option<Vec<Parcel>> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.get_mut(master)?;
        let mut room = MOST_BYTES;
        let fit = |parcel: &&Parcel| {
            let fits = parcel.size <= room;
            room = room.saturating_sub(parcel.size);
            fits
        };
        let number = lane.waiting.iter().take(MOST).take_while(fit).count();
        // One that would never fit must not stay for ever.
        let number = number.max(1).min(lane.waiting.len());
        if number == 0 {
            lane.couriers -= 1;
            if lane.couriers == 0 {
                lanes.remove(master);
            }
            return None;
        }
        lane.left = Some(Instant::now());
        Some(lane.waiting.drain(..number).collect())
    }
}

impl Node {
    /// Sees to it that a return reaches its master.
    pub(crate) fn post(self: &Arc<Self>, master: SmolStr, parcel: Parcel) {
        let node = Arc::clone(self);
        if !self.goes_in_company(&master, &parcel) {
            self.handle.spawn(node.send(master, parcel, None));
        } else if self.outbox.put(&master, parcel) {
            self.handle.spawn(node.carry(master));
        }
    }

    fn goes_in_company(&self, master: &str, parcel: &Parcel) -> bool {
        parcel.size < LARGE && parcel.failures < FAILURES && self.may_take_several(master)
    }

    fn may_take_several(&self, master: &str) -> bool {
        let keys = self.master_for(master).and_then(|master| master.keys());
        keys.is_some_and(|keys| keys.takes_returns())
    }

    /// Takes returns to their master as long as there are any.
    async fn carry(self: Arc<Self>, master: SmolStr) {
        while let Some(parcels) = self.outbox.next(&master) {
            match self.hand_over(&master, &parcels).await {
                Ok(()) => self.forget(parcels.iter().map(|parcel| parcel.key.as_str())),
                Err(why) => {
                    for mut parcel in parcels {
                        parcel.failures += 1;
                        let node = Arc::clone(&self);
                        self.handle.spawn(node.send(master.clone(), parcel, Some(why.clone())));
                    }
                }
            }
        }
    }

    /// Sends one return until it is acknowledged; `failed`: it was tried, and this came of it.
    // differs: Salt gives up after `return_retry_tries`; a return is kept on disk and sent until the master has it.
    async fn send(
        self: Arc<Self>,
        master: SmolStr,
        mut parcel: Parcel,
        mut failed: Option<String>,
    ) {
        loop {
            if let Some(why) = failed.take() {
                tracing::warn!("the return of job {} is still to be sent: {why}", parcel.key);
                parcel.rest();
                tokio::select! {
                    () = tokio::time::sleep(self.pause()) => {}
                    () = self.reachable.notified() => {}
                }
                if self.goes_in_company(&master, &parcel) {
                    return self.post(master, parcel);
                }
            }
            let Ok(_turn) = self.outbox.turns.acquire().await else { return };
            match self.hand_over(&master, std::slice::from_ref(&parcel)).await {
                Ok(()) => return self.forget([parcel.key.as_str()]),
                Err(why) => failed = Some(why),
            }
        }
    }

    /// Tries once; all of them have arrived, or none counts as arrived.
    async fn hand_over(&self, master: &str, parcels: &[Parcel]) -> Result<(), String> {
        let Some(to) = self.master_for(master) else {
            return Err("no master is connected".to_owned());
        };
        let load = |parcel: &Parcel| match &parcel.contents {
            Contents::First(load) | Contents::Unkept(load) => Some(load.clone()),
            // Acknowledged meanwhile.
            Contents::Kept => self.journal.kept(&parcel.key).map(|kept| kept.load),
        };
        let mut loads: Vec<Dict> = parcels.iter().filter_map(load).collect();
        let (load, is_one) = match loads.len() {
            0 => return Ok(()),
            1 => (loads.remove(0), true),
            _ => (entries! { "cmd" => RETURNS, "returns" => Value::list(loads) }, false),
        };
        match to.ask(&load).await {
            // Whatever a master says of one return, it has taken it.
            Ok(answer) if is_one || answer.is_null() => Ok(()),
            Ok(_) => Err("the master takes returns one by one only".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn pause(&self) -> Duration {
        let (low, high) = (self.settings.return_retry, self.settings.return_retry_max);
        low.max(Duration::from_secs(1)) + high.saturating_sub(low).mul_f64(random_part())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(key: &str, size: u64) -> Parcel {
        Parcel::new(key, Contents::Kept, size)
    }

    fn keys(parcels: Option<Vec<Parcel>>) -> Option<Vec<String>> {
        Some(parcels?.iter().map(|parcel| parcel.key.to_string()).collect())
    }

    #[test]
    fn what_is_ready_meanwhile_goes_together() {
        let outbox = Outbox::default();
        assert!(outbox.put("salt", parcel("1", 10)), "the first leaves at once");
        assert_eq!(keys(outbox.next("salt")).unwrap(), ["1"]);
        assert!(!outbox.put("salt", parcel("2", 10)) && !outbox.put("salt", parcel("3", 10)));
        assert!(outbox.put("other", parcel("4", 10)), "another master is no matter");
        assert_eq!(keys(outbox.next("salt")).unwrap(), ["2", "3"]);
        assert_eq!(keys(outbox.next("salt")), None);
        assert!(outbox.put("salt", parcel("5", 10)), "its courier is done");
    }

    #[test]
    fn a_message_has_limits() {
        let outbox = Outbox::default();
        for number in 0..MOST + 5 {
            outbox.put("salt", parcel(&number.to_string(), 1));
        }
        assert_eq!(outbox.next("salt").unwrap().len(), MOST);
        outbox.put("salt", parcel("big", MOST_BYTES - 2));
        outbox.put("salt", parcel("huge", MOST_BYTES * 2));
        assert_eq!(keys(outbox.next("salt")).unwrap(), ["100", "101", "102", "103", "104"]);
        assert_eq!(keys(outbox.next("salt")).unwrap(), ["big"]);
        assert_eq!(keys(outbox.next("salt")).unwrap(), ["huge"]);
    }

    #[test]
    fn a_slow_answer_holds_nobody_up() {
        let outbox = Outbox::default();
        assert!(outbox.put("salt", parcel("1", 1)) && outbox.next("salt").is_some());
        outbox.lanes.lock().get_mut("salt").unwrap().left =
            Instant::now().checked_sub(2 * PATIENCE);
        assert!(outbox.put("salt", parcel("2", 1)), "another leaves");
        assert!(!outbox.put("salt", parcel("3", 1)));
        assert_eq!(keys(outbox.next("salt")).unwrap(), ["2", "3"]);
        assert_eq!(keys(outbox.next("salt")), None);
        assert!(!outbox.put("salt", parcel("4", 1)), "the first courier is still under way");
        assert_eq!(keys(outbox.next("salt")).unwrap(), ["4"]);
    }
}
