//! A job on a few minions at a time, whoever drives it: a command line or the master itself.
//!
//! Minions are handed the job as slots become free: a slot is free when its minion has returned or
//! is given up, and the pause after it is over. All parts go under one job id, so that the job's
//! history is whole; each part has its own account of who is still to answer.
//!
//! What is shown, written down or told to the bus is the business of a [`Watch`].

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use halite_value::{Dict, SmolStr, Value, dict};

use crate::{Client, Error, Gather, Job, News, Patience, Waited};

/// What a batch is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The whole job, with its id.
    pub job: Job,
    pub all: Vec<SmolStr>,
    pub size: usize,
    /// The pause between a minion's end and the next one's begin.
    pub wait: Duration,
    /// End at the first bad result.
    pub failhard: bool,
    pub patience: Patience,
    /// Keep what was returned in [`Batch::done`], not only its code.
    pub keeps_returns: bool,
}

/// A batch under way.
pub struct Batch {
    pub plan: Plan,
    /// Seconds since 1970.
    pub created: f64,
    pub last_progress: f64,
    pub pending: VecDeque<SmolStr>,
    /// Who has the job, and since when.
    pub active: HashMap<SmolStr, f64>,
    /// Minion → `ret`, `retcode`, `jid`.
    pub done: Dict,
    pub failed: Dict,
    parts: Vec<Gather>,
    /// Slots that are free again, but not before a time.
    resting: Vec<Instant>,
}

/// A moment at which others may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment<'a> {
    /// Nothing is published yet.
    New,
    /// The job goes to these next.
    Executing(&'a [SmolStr]),
    /// It went to some more.
    Filled,
    /// Somebody returned or was given up.
    Moved,
    Complete,
    /// It ends before its time, and this is why.
    Halted(&'a str),
}

/// Who watches a batch. Nothing of it can hold the batch up but its slowness.
pub trait Watch {
    fn at(&mut self, client: &mut Client, batch: &Batch, moment: Moment);
    fn returned(&mut self, id: &SmolStr, load: &Dict);
    fn given_up(&mut self, id: &SmolStr);

    /// Tells why the batch has to end now, if it has to.
    fn stop(&mut self, client: &mut Client) -> Option<SmolStr> {
        let _ = client;
        None
    }
}

/// Returns the code of a return: the worst one of a compound command, of which those functions have
/// one that gave something. That none did is a failure.
pub fn retcode(load: &Dict) -> i64 {
    let number = |value: &Value| match value {
        Value::Bool(flag) => i64::from(*flag),
        other => other.as_int().unwrap_or(0),
    };
    match load.get("retcode") {
        Some(Value::Dict(codes)) => codes.values().iter().map(number).max().unwrap_or(1),
        Some(list @ (Value::List(_) | Value::Tuple(_))) => {
            list.items_of_sequence().unwrap_or_default().iter().map(number).max().unwrap_or(0)
        }
        Some(code) => number(&code),
        None => 0,
    }
}

fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

impl Batch {
    pub fn new(plan: Plan) -> Self {
        Self {
            created: now(),
            last_progress: now(),
            pending: plan.all.iter().cloned().collect(),
            plan,
            active: HashMap::new(),
            done: Dict::new(),
            failed: Dict::new(),
            parts: Vec::new(),
            resting: Vec::new(),
        }
    }

    /// Runs it to its end; returns the highest code of all returns.
    pub fn run(&mut self, client: &mut Client, watch: &mut dyn Watch) -> Result<i64, Error> {
        let mut worst = 0;
        watch.at(client, self, Moment::New);
        self.fill(client, watch)?;
        while !self.is_over() {
            if let Some(reason) = watch.stop(client) {
                self.last_progress = now();
                watch.at(client, self, Moment::Halted(&reason));
                return Ok(worst);
            }
            let news = self.hear(client)?;
            let mut returned = Vec::new();
            let mut has_moved = false;
            for one in news {
                match one {
                    News::Returned { id, load } if self.take(&id, &load) => {
                        returned.push((id, load));
                    }
                    News::Missing { id, .. } if self.give_up(&id) => {
                        has_moved = true;
                        watch.given_up(&id);
                    }
                    _ => {}
                }
            }
            let is_bad = |(_, load): &(SmolStr, Dict)| retcode(load) != 0;
            let stops = self.plan.failhard && returned.iter().any(is_bad);
            if !stops {
                // As Salt does: first the next ones, then what came.
                self.fill(client, watch)?;
            }
            if has_moved || !returned.is_empty() {
                self.last_progress = now();
                watch.at(client, self, Moment::Moved);
            }
            for (id, load) in returned {
                let code = retcode(&load);
                worst = worst.max(code);
                watch.returned(&id, &load);
                if code != 0 && stops {
                    watch.at(client, self, Moment::Halted("failhard"));
                    return Ok(worst);
                }
            }
        }
        watch.at(client, self, Moment::Complete);
        Ok(worst)
    }

    fn is_over(&self) -> bool {
        self.pending.is_empty() && self.active.is_empty()
    }

    /// Hands the job to as many as there are free slots.
    fn fill(&mut self, client: &mut Client, watch: &mut dyn Watch) -> Result<(), Error> {
        self.resting.retain(|until| *until > Instant::now());
        let taken = self.active.len() + self.resting.len();
        let free = self.plan.size.saturating_sub(taken).min(self.pending.len());
        if free == 0 {
            return Ok(());
        }
        let mut ids: Vec<SmolStr> = self.pending.drain(..free).collect();
        ids.sort();
        // Before they have it: who writes down must not forget them.
        let since = now();
        self.active.extend(ids.iter().map(|id| (id.clone(), since)));
        watch.at(client, self, Moment::Executing(&ids));
        let job = Job { tgt: Value::list(&ids), tgt_type: "list".into(), ..self.plan.job.clone() };
        let (published, stream) = client.publish(&job)?;
        // Below a syndic there are others.
        let is_all = published.relays.is_empty();
        for id in ids.iter().filter(|id| is_all && !published.minions.contains(id)) {
            // It has lost its key since it was found.
            self.active.remove(id);
        }
        if !is_all || !published.minions.is_empty() {
            self.parts.push(Gather::new(&published, stream, self.plan.patience).of(&job));
        }
        watch.at(client, self, Moment::Filled);
        Ok(())
    }

    /// Waits a moment for news of any part.
    fn hear(&mut self, client: &mut Client) -> Result<Vec<News>, Error> {
        const STEP: Duration = Duration::from_millis(20);
        let (until, mut news) = (Instant::now() + STEP, Vec::new());
        for part in &mut self.parts {
            match part.next_until(client, Some(until))? {
                Waited::News(one) => news.push(one),
                Waited::TimedOut | Waited::Over => continue,
            }
            // What has come besides is taken at once.
            while let Waited::News(one) = part.next_until(client, Some(Instant::now()))? {
                news.push(one);
            }
        }
        self.parts.retain(|part| !part.is_over());
        if self.parts.is_empty() && news.is_empty() {
            // Nobody can be at it any more; the pause may still hold the next ones back.
            self.active.clear();
            std::thread::sleep(STEP);
        }
        Ok(news)
    }

    /// A minion has returned; false if that is known, or is the business of another job.
    fn take(&mut self, id: &SmolStr, load: &Dict) -> bool {
        if self.active.remove(id).is_none() {
            return false;
        }
        let ret = load.get("return").filter(|_| self.plan.keeps_returns);
        let code = retcode(load);
        let ret = dict! { "ret" => ret, "retcode" => code, "jid" => &self.plan.job.jid };
        self.done.insert(id.as_str(), ret);
        self.rest();
        true
    }

    fn give_up(&mut self, id: &SmolStr) -> bool {
        if self.active.remove(id).is_none() {
            return false;
        }
        self.failed.insert(id.as_str(), "timeout");
        self.rest();
        true
    }

    fn rest(&mut self) {
        if !self.plan.wait.is_zero() {
            self.resting.push(Instant::now() + self.plan.wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{entries, list};

    use super::*;

    #[test]
    fn codes_of_returns() {
        assert_eq!(retcode(&Dict::new()), 0);
        assert_eq!(retcode(&entries! { "retcode" => 3 }), 3);
        assert_eq!(retcode(&entries! { "retcode" => dict! { "a.b" => 0, "c.d" => 2 } }), 2);
        assert_eq!(retcode(&entries! { "retcode" => list![0, 1] }), 1);
        assert_eq!(retcode(&entries! { "retcode" => Dict::new() }), 1);
    }
}
