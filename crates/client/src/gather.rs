//! Waiting for the returns of a job, with exact accounting where the master can give it.
//!
//! A Halite minion that has begun is waited for until it returns or its connection ends; one that is
//! not connected is named at once. All others (genuine Salt minions, and any that took a job and
//! said nothing since) are asked as Salt asks: after `timeout` without all answers, `saltutil.find_job` goes to the
//! silent ones, and who does not say within `gather_job_timeout` that it is still at it is given up.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use halite_value::{Dict, SmolStr, Value};

use crate::{Answer, Client, Error, Job, Malformed, Progress, Published};

/// How long minions are waited for that the master knows nothing about.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// `timeout`: until the silent ones are asked.
    pub timeout: Duration,
    /// `gather_job_timeout`: until they must have answered that.
    pub gather_job_timeout: Duration,
    /// `syndic_wait`: until a syndic must have told who answers below it.
    pub syndic_wait: Duration,
}

impl Patience {
    /// Reads the options; zero and nonsense mean Salt's defaults.
    pub fn from_opts(opts: &Dict) -> Self {
        let seconds = |name: &str, default: f64| {
            let given = opts.get(name).and_then(|value| value.as_float());
            Duration::from_secs_f64(given.filter(|s| *s > 0.0 && *s < 1e9).unwrap_or(default))
        };
        Self {
            timeout: seconds("timeout", 5.0),
            gather_job_timeout: seconds("gather_job_timeout", 10.0),
            syndic_wait: seconds("syndic_wait", 5.0),
        }
    }
}

/// What is known about a minion that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It is not connected, or its connection ended.
    NotConnected,
    /// It does not answer.
    NoResponse,
}

impl Silence {
    /// Returns Salt's words, which stand where the return would.
    pub fn text(self, jid: &str) -> String {
        match self {
            Self::NotConnected => "Minion did not return. [Not connected]".into(),
            Self::NoResponse => format!(
                "Minion did not return. [No response]\nThe minions may not have all finished \
                 running and any remaining minions will return upon completion. To look up the \
                 return data for this job later, run the following command:\n\nsalt-run \
                 jobs.lookup_jid {jid}"
            ),
        }
    }
}

/// One piece of news about a job.
#[derive(Clone, Debug)]
pub enum News {
    /// A return, as its event has it.
    Returned {
        id: SmolStr,
        load: Dict,
    },
    /// A part of a return.
    Partial(Dict),
    /// A minion that will not return, or not in time.
    Missing {
        id: SmolStr,
        silence: Silence,
    },
    /// The silent ones are being asked.
    Asking(Vec<SmolStr>),
    Started(SmolStr),
}

/// A job under way.
pub struct Gather {
    jid: SmolStr,
    stream: u64,
    patience: Patience,
    pending: Pending,
    /// Those the master cannot tell about.
    unsure: HashSet<SmolStr>,
    /// Syndics that have not told yet who answers below them, and until when they may.
    relays: HashMap<SmolStr, Instant>,
    /// What to ask, and when, so that syndics say what they hold back.
    nudge: Option<(Instant, Box<Job>)>,
    ready: Vec<News>,
    returned: HashSet<SmolStr>,
    /// How often a minion answered, and could not say.
    untold: HashMap<SmolStr, u32>,
    deadline: Instant,
    asked: Option<Asked>,
    done: bool,
}

/// Who is still to answer, in the order of the publication.
#[derive(Default)]
struct Pending {
    by_place: BTreeMap<usize, SmolStr>,
    places: HashMap<SmolStr, usize>,
    next: usize,
    /// Places of those that did not say they have begun. Of the others the end of their connection
    /// would be told. Kept apart: it is looked at before every wait, and a fleet is large.
    silent: BTreeSet<usize>,
}

impl Pending {
    fn of<'a>(ids: impl Iterator<Item = &'a SmolStr>) -> Self {
        let mut pending = Self::default();
        for id in ids {
            pending.add(id.clone());
        }
        pending
    }

    /// Adds one; false if it was there.
    fn add(&mut self, id: SmolStr) -> bool {
        if self.places.contains_key(&id) {
            return false;
        }
        self.by_place.insert(self.next, id.clone());
        self.places.insert(id, self.next);
        self.silent.insert(self.next);
        self.next += 1;
        true
    }

    /// Takes one out; false if it was not there.
    fn remove(&mut self, id: &SmolStr) -> bool {
        let Some(place) = self.places.remove(id) else { return false };
        self.silent.remove(&place);
        self.by_place.remove(&place).is_some()
    }

    /// One has begun: it need not be asked.
    fn has_begun(&mut self, id: &SmolStr) {
        if let Some(place) = self.places.get(id) {
            self.silent.remove(place);
        }
    }

    /// Returns those that must be asked.
    fn silent(&self) -> impl Iterator<Item = &SmolStr> {
        self.silent.iter().filter_map(|place| self.by_place.get(place))
    }

    fn ids(&self) -> impl Iterator<Item = &SmolStr> {
        self.by_place.values()
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Rounds in which a minion that lives may fail to say whether it is at work.
const MOST_UNTOLD: u32 = 5;

/// A round of `saltutil.find_job`.
struct Asked {
    stream: u64,
    until: Instant,
    open: HashSet<SmolStr>,
    running: HashSet<SmolStr>,
}

impl Gather {
    /// Begins to wait for a job that was published with `follow`.
    pub fn new(published: &Published, stream: u64, patience: Patience) -> Self {
        let absent = &published.absent;
        let mut ready: Vec<News> =
            absent.iter().map(|id| missing(id, Silence::NotConnected)).collect();
        ready.reverse();
        let gone: HashSet<&SmolStr> = absent.iter().collect();
        let now = Instant::now();
        // Ours always tell. Genuine ones are silent when nobody below them is meant.
        let tells = |id: &SmolStr| match published.connected.contains(id) {
            true => now + patience.timeout + patience.syndic_wait,
            false => now + patience.syndic_wait,
        };
        Self {
            jid: published.jid.clone(),
            stream,
            patience,
            pending: Pending::of(published.minions.iter().filter(|id| !gone.contains(id))),
            unsure: published.unsure.iter().cloned().collect(),
            relays: published.relays.iter().map(|id| (id.clone(), tells(id))).collect(),
            nudge: None,
            ready,
            returned: HashSet::new(),
            untold: HashMap::new(),
            deadline: now + patience.timeout,
            asked: None,
            done: false,
        }
    }

    /// Tells which job it is. A genuine syndic that has just sent something keeps what comes next
    /// until more comes: somebody below it has to be asked something.
    #[must_use]
    pub fn of(mut self, job: &Job) -> Self {
        let delimiter = job.kwargs.get("delimiter");
        let kwargs = delimiter.into_iter().map(|value| ("delimiter", value)).collect();
        let ask = Job {
            arg: vec![Value::from(&self.jid)],
            follow: false,
            kwargs,
            ..Job::new(job.tgt.clone(), &job.tgt_type, "saltutil.find_job")
        };
        let at = Instant::now() + self.patience.timeout.min(NUDGE);
        self.nudge = (!self.relays.is_empty()).then(|| (at, Box::new(ask)));
        self
    }

    pub fn jid(&self) -> &str {
        &self.jid
    }

    /// Tells whether a minion has returned.
    pub fn has_returned(&self, id: &str) -> bool {
        self.returned.contains(id)
    }

    /// Returns who is still to answer.
    pub fn pending(&self) -> Vec<SmolStr> {
        self.pending.ids().cloned().collect()
    }

    /// Tells whether there is nothing more to come.
    pub fn is_over(&self) -> bool {
        self.ready.is_empty() && self.is_complete()
    }

    fn is_complete(&self) -> bool {
        self.done || (self.pending.is_empty() && self.relays.is_empty())
    }

    /// Waits for the next news; `None` when there is nothing more to wait for.
    pub fn next(&mut self, client: &mut Client) -> Result<Option<News>, Error> {
        loop {
            match self.next_until(client, None)? {
                Waited::News(news) => return Ok(Some(news)),
                Waited::Over => return Ok(None),
                Waited::TimedOut => {}
            }
        }
    }

    /// As [`Gather::next`], but comes back at the latest at `until`.
    pub fn next_until(
        &mut self,
        client: &mut Client,
        until: Option<Instant>,
    ) -> Result<Waited, Error> {
        loop {
            if let Some(news) = self.ready.pop() {
                return Ok(Waited::News(news));
            }
            if self.is_complete() {
                self.done = true;
                return Ok(Waited::Over);
            }
            let mut streams = vec![self.stream];
            streams.extend(self.asked.as_ref().map(|asked| asked.stream));
            // Halite minions that have begun need no clock.
            let clock = match &self.asked {
                Some(asked) => Some(asked.until),
                None if self.pending.silent.is_empty() => None,
                None => Some(self.deadline),
            };
            let nudge = self.nudge.as_ref().filter(|_| !self.relays.is_empty()).map(|(at, _)| *at);
            let clock = clock.into_iter().chain(nudge).chain(self.relays.values().copied()).min();
            let wake = [clock, until].into_iter().flatten().min();
            match client.next_of(&streams, wake)? {
                Some((stream, answer)) if stream == self.stream => self.heard(answer)?,
                Some((_, answer)) => self.answered(client, answer)?,
                None if clock.is_some_and(|at| at <= Instant::now()) => self.tick(client)?,
                None => return Ok(Waited::TimedOut),
            }
        }
    }

    /// Returns those of the pending that must be asked: genuine minions, and any other that did not
    /// say it has begun.
    fn silent(&self) -> Vec<SmolStr> {
        self.pending.silent().cloned().collect()
    }

    fn heard(&mut self, answer: Answer) -> Result<(), Error> {
        let progress = match answer {
            Answer::End(_) => Progress::Done,
            Answer::Item(Value::Dict(item)) => Progress::read(&item)?,
            _ => return Err(Malformed("progress").into()),
        };
        match progress {
            Progress::Returned(load) => {
                let id = load.get("id").map(|id| id.to_str()).unwrap_or_default();
                self.pending.remove(&id);
                // A return may be sent twice; it is one return.
                if self.returned.insert(id.clone()) {
                    self.ready.push(News::Returned { id, load });
                }
            }
            Progress::Partial(load) => self.ready.push(News::Partial(load)),
            Progress::Started { id } => {
                if !self.unsure.contains(&id) {
                    self.pending.has_begun(&id);
                }
                self.ready.push(News::Started(id));
            }
            Progress::Lost { id, .. } => self.give_up(&id, Silence::NotConnected),
            Progress::Expect { ids, relay, relays } => {
                self.relays.remove(&relay);
                let until = Instant::now() + self.patience.timeout + self.patience.syndic_wait;
                self.relays.extend(relays.into_iter().map(|relay| (relay, until)));
                for id in ids {
                    if !self.returned.contains(&id) && self.pending.add(id.clone()) {
                        self.unsure.insert(id);
                    }
                }
            }
            Progress::Sure { ids } => ids.iter().for_each(|id| {
                self.unsure.remove(id);
            }),
            Progress::Done => {
                for id in std::mem::take(&mut self.pending).ids() {
                    self.ready.push(missing(id, Silence::NoResponse));
                }
                self.done = true;
            }
            Progress::Received { .. } | Progress::Back { .. } | Progress::Gap { .. } => {}
        }
        Ok(())
    }

    fn give_up(&mut self, id: &SmolStr, silence: Silence) {
        if self.pending.remove(id) {
            self.ready.push(missing(id, silence));
        }
    }

    /// The clock has run out: time to ask, or to draw the conclusion.
    fn tick(&mut self, client: &mut Client) -> Result<(), Error> {
        let now = Instant::now();
        self.relays.retain(|_, until| *until > now);
        if let Some((at, ask)) = &mut self.nudge
            && *at <= now
            && !self.relays.is_empty()
        {
            // Again and again: what it sends then may be of the reminder alone.
            *at = now + NUDGE;
            match client.publish(ask) {
                Ok(_) | Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match &self.asked {
            Some(asked) if asked.until <= now => return self.conclude(client),
            Some(_) => return Ok(()),
            // Only a syndic's time had come.
            None if self.deadline > now => return Ok(()),
            None => {}
        }
        let silent = self.silent();
        if silent.is_empty() {
            return Ok(());
        }
        let job = Job {
            arg: vec![Value::from(&self.jid)],
            ..Job::new(Value::list(&silent), "list", "saltutil.find_job")
        };
        let until = Instant::now() + self.patience.gather_job_timeout;
        self.ready.push(News::Asking(silent.clone()));
        match client.publish(&job) {
            Ok((published, stream)) if published.error.is_none() => {
                let open = silent.into_iter().collect();
                self.asked = Some(Asked { stream, until, open, running: HashSet::new() });
            }
            // Nobody to ask.
            Ok(_) => silent.iter().for_each(|id| self.give_up(id, Silence::NoResponse)),
            Err(Error::Refused { .. }) => {
                silent.iter().for_each(|id| self.give_up(id, Silence::NoResponse));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A minion has said whether it is still at it.
    fn answered(&mut self, client: &mut Client, answer: Answer) -> Result<(), Error> {
        let Some(asked) = &mut self.asked else { return Ok(()) };
        let over = match answer {
            Answer::Item(Value::Dict(item)) => match Progress::read(&item) {
                Ok(Progress::Returned(load)) => {
                    let id = load.get("id").map(|id| id.to_str()).unwrap_or_default();
                    asked.open.remove(&id);
                    let answer = load.get("return").filter(Value::truthy);
                    let runs = match &answer {
                        Some(Value::Dict(_)) => true,
                        // An error, say: it lives, but may never be able to tell.
                        Some(_) => {
                            let rounds = self.untold.entry(id.clone()).or_default();
                            *rounds += 1;
                            *rounds <= MOST_UNTOLD
                        }
                        None => false,
                    };
                    if runs {
                        asked.running.insert(id);
                    }
                    asked.open.is_empty()
                }
                _ => false,
            },
            _ => true,
        };
        if over { self.conclude(client) } else { Ok(()) }
    }

    fn conclude(&mut self, client: &mut Client) -> Result<(), Error> {
        let Some(asked) = self.asked.take() else { return Ok(()) };
        client.cancel(asked.stream)?;
        // What has arrived meanwhile counts before anybody is given up.
        while let Some((_, answer)) =
            client.next_of(&[self.stream], Some(Instant::now() + MOMENT))?
        {
            self.heard(answer)?;
        }
        for id in self.silent() {
            if !asked.running.contains(&id) {
                self.give_up(&id, Silence::NoResponse);
            }
        }
        self.deadline = Instant::now() + self.patience.timeout;
        Ok(())
    }
}

/// When a syndic that has said nothing is reminded.
const NUDGE: Duration = Duration::from_secs(2);

/// Long enough for what has arrived already to be read.
const MOMENT: Duration = Duration::from_millis(5);

/// What came of waiting.
#[derive(Clone, Debug)]
pub enum Waited {
    News(News),
    TimedOut,
    /// Everybody has answered or is given up.
    Over,
}

fn missing(id: &SmolStr, silence: Silence) -> News {
    News::Missing { id: id.clone(), silence }
}

impl Client {
    /// Runs a job to its end and returns who returned and who did not: Salt's `cmd`, for runners.
    pub fn run(&mut self, job: &Job, patience: Patience) -> Result<Outcome, Error> {
        let (published, stream) = self.publish(job)?;
        let mut outcome = Outcome { published, ..Outcome::default() };
        if outcome.published.error.is_some() || outcome.published.jid.is_empty() {
            return Ok(outcome);
        }
        let mut gather = Gather::new(&outcome.published, stream, patience).of(job);
        while let Some(news) = gather.next(self)? {
            match news {
                News::Returned { id, load } => outcome.returned.push((id, load)),
                News::Missing { id, silence } => outcome.missing.push((id, silence)),
                News::Partial(_) | News::Asking(_) | News::Started(_) => {}
            }
        }
        Ok(outcome)
    }
}

/// What a whole job gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub published: Published,
    /// The returns, as their events have them.
    pub returned: Vec<(SmolStr, Dict)>,
    pub missing: Vec<(SmolStr, Silence)>,
}

impl Outcome {
    /// Returns id → return, with False for who did not return, as Salt's `cmd` does.
    pub fn returns(&self) -> Dict {
        let returns = Dict::new();
        for (id, load) in &self.returned {
            returns.insert(id.as_str(), load.get("return").unwrap_or_default());
        }
        for (id, _) in &self.missing {
            returns.insert(id.as_str(), false);
        }
        returns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_begun_is_not_asked() {
        let ids: Vec<SmolStr> = ["a", "b", "c", "d"].map(SmolStr::from).to_vec();
        let mut pending = Pending::of(ids.iter());
        pending.has_begun(&"b".into());
        pending.has_begun(&"nobody".into());
        assert!(pending.remove(&"a".into()) && !pending.remove(&"a".into()));
        let silent: Vec<_> = pending.silent().cloned().collect();
        assert_eq!(silent, ["c", "d"]);
        assert!(pending.add("a".into()) && !pending.add("b".into()));
        let silent: Vec<_> = pending.silent().cloned().collect();
        assert_eq!(silent, ["c", "d", "a"]);
        for id in ["a", "c", "d"] {
            pending.has_begun(&id.into());
        }
        assert!(pending.silent.is_empty() && !pending.is_empty());
    }

    #[test]
    fn syndics_are_waited_for_and_those_they_name() {
        let published = Published {
            jid: "1".into(),
            relays: vec!["low".into(), "dumb".into()],
            connected: vec!["low".into()],
            ..Published::default()
        };
        let patience = Patience {
            timeout: Duration::from_secs(50),
            gather_job_timeout: Duration::from_secs(5),
            syndic_wait: Duration::ZERO,
        };
        let mut gather = Gather::new(&published, 1, patience);
        assert!(!gather.is_over());
        let hear = |gather: &mut Gather, progress: Progress| {
            gather.heard(Answer::Item(progress.write().into())).unwrap();
        };
        let ids = vec!["a".into(), "b".into()];
        let relays = vec!["low/deep".into()];
        hear(&mut gather, Progress::Expect { ids: ids.clone(), relay: "low".into(), relays });
        assert_eq!(gather.relays.len(), 2, "itself has told, one below it has not");
        hear(&mut gather, Progress::Sure { ids: vec!["a".into()] });
        for id in &ids {
            hear(&mut gather, Progress::Started { id: id.clone() });
        }
        assert_eq!(gather.silent(), ["b"], "nobody would tell of its end");
        let none = Vec::new();
        hear(
            &mut gather,
            Progress::Expect { ids: none.clone(), relay: "low/deep".into(), relays: none },
        );
        for id in &ids {
            let load = halite_value::entries! { "id" => id };
            hear(&mut gather, Progress::Returned(load));
        }
        assert!(gather.pending.is_empty() && !gather.is_complete());
        gather.relays.retain(|_, until| *until > Instant::now());
        assert!(gather.is_complete(), "the silent one's time is over");
    }

    #[test]
    fn a_large_fleet_costs_little() {
        let ids: Vec<SmolStr> = (0..10_000).map(|n| format!("m{n}").into()).collect();
        let published = Published { jid: "1".into(), minions: ids.clone(), ..Published::default() };
        let patience = Patience {
            timeout: Duration::from_secs(5),
            gather_job_timeout: Duration::from_secs(5),
            syndic_wait: Duration::from_secs(5),
        };
        let mut gather = Gather::new(&published, 1, patience);
        let begun = Instant::now();
        for id in &ids {
            let step = Progress::Started { id: id.clone() }.write();
            gather.heard(Answer::Item(step.into())).unwrap();
            assert!(gather.pending.silent.len() < ids.len());
        }
        for id in &ids {
            let load = halite_value::entries! { "id" => id };
            gather.heard(Answer::Item(Progress::Returned(load).write().into())).unwrap();
        }
        // A look at everybody for everybody took tens of seconds without optimisation.
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(gather.pending.is_empty());
    }
}
