//! `--batch`: a job on a few minions at a time; and `--static`, which shows all returns at once.
//!
//! First `test.ping` tells who is there. Then minions are handed the job as slots become free: a slot
//! is free when its minion has returned or is given up, and `--batch-wait` seconds have passed. All
//! parts go under one job id, so that the job's history is whole; each part has its own account
//! of who is still to answer. As in Salt the bus is told how far the batch is
//! (`salt/batch/<jid>/new`, `progress`, `complete`, `halted`).

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use halite_client::{Client, Error, Gather, Job, News, Request, Waited};
use halite_value::{Dict, SmolStr, Value, dict, entries};
use halite_wire::Jid;

use super::{interrupt, job, patience, retcode};
use crate::{programs::Context, terminal};

/// Batches of more minions are told of at their begin and end only: each telling carries all
/// returns so far.
// differs: Salt tells of every step, however large.
const TOLD: usize = 500;

/// What a batch needs of the terminal.
pub trait Screen {
    /// A return arrived.
    fn returned(&mut self, id: &SmolStr, load: &Dict);
    /// Something to say besides.
    fn say(&mut self, text: &str);
}

/// How a batch ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Whether anybody was there at all.
    pub any: bool,
    /// The highest code of all returns.
    pub retcode: i64,
}

/// A batch under way.
struct Batch<'a> {
    cx: &'a Context,
    whole: Job,
    all: Vec<SmolStr>,
    size: usize,
    wait: Duration,
    created: f64,
    pending: VecDeque<SmolStr>,
    /// Who has the job, and since when.
    active: HashMap<SmolStr, f64>,
    parts: Vec<Gather>,
    /// Slots that are free again, but not before a time.
    resting: Vec<Instant>,
    done: Dict,
    failed: Dict,
}

/// Runs the job of the command line in batches.
pub fn run(
    cx: &Context,
    client: &mut Client,
    size: &str,
    screen: &mut dyn Screen,
) -> Result<Ended, Error> {
    let mut whole = job(cx);
    let (present, silent) = ping(cx, client, &whole, screen)?;
    let mut ended = Ended { any: !present.is_empty(), retcode: 0 };
    if present.is_empty() {
        screen.say("No minions matched the target.\n");
        return Ok(ended);
    }
    for id in silent {
        screen.say(&format!("Minion {id} did not respond. No job will be sent.\n"));
    }
    whole.jid = Jid::now().to_string().into();
    let wait = cx.parsed.get("batch_wait").as_float().filter(|s| *s > 0.0 && *s < 1e9);
    let mut batch = Batch {
        cx,
        whole,
        size: size_of(size, present.len()),
        wait: Duration::from_secs_f64(wait.unwrap_or(0.0)),
        created: now(),
        pending: present.iter().cloned().collect(),
        all: present,
        active: HashMap::new(),
        parts: Vec::new(),
        resting: Vec::new(),
        done: Dict::new(),
        failed: Dict::new(),
    };
    interrupt::names(&batch.whole.jid);
    batch.tell(client, "new", None);
    batch.fill(client, screen)?;
    while !batch.is_over() {
        let news = batch.hear(client)?;
        let mut returned = Vec::new();
        for one in news {
            match one {
                News::Returned { id, load } if batch.take(&id, &load) => {
                    returned.push((id, load));
                }
                News::Missing { id, .. } if batch.give_up(&id) => {
                    screen.say(&format!("Minion '{id}' failed to respond to job sent\n"));
                }
                _ => {}
            }
        }
        let is_bad = |(_, load): &&(SmolStr, Dict)| retcode(load) != 0;
        let stops = cx.opts.bool("failhard") && returned.iter().any(|one| is_bad(&one));
        if !stops {
            // As Salt does: first the next ones, then what came.
            batch.fill(client, screen)?;
        }
        for (id, load) in returned {
            let code = retcode(&load);
            ended.retcode = ended.retcode.max(code);
            screen.returned(&id, &load);
            if code != 0 && stops {
                batch.tell(client, "halted", Some("failhard"));
                tracing::error!("Batch run stopped due to failhard");
                return Ok(ended);
            }
        }
    }
    batch.tell(client, "complete", None);
    Ok(ended)
}

/// Runs the job of the command line on everybody at once, for `--static` without a size.
// differs: to Salt this is a batch of all, with a ping before it and every minion's name in the job;
// nobody has to be asked here, and of thousands none has to read the names of all the others.
pub fn at_once(cx: &Context, client: &mut Client, screen: &mut dyn Screen) -> Result<(), Error> {
    let (published, stream) = client.publish(&job(cx))?;
    interrupt::names(&published.jid);
    let mut gather = Gather::new(&published, stream, patience(cx));
    while let Some(news) = gather.next(client)? {
        if let News::Returned { id, load } = news {
            screen.returned(&id, &load);
        }
    }
    Ok(())
}

fn now() -> f64 {
    jiff::Timestamp::now().as_microsecond() as f64 / 1e6
}

impl Batch<'_> {
    fn is_over(&self) -> bool {
        self.pending.is_empty() && self.active.is_empty()
    }

    /// Hands the job to as many as there are free slots.
    fn fill(&mut self, client: &mut Client, screen: &mut dyn Screen) -> Result<(), Error> {
        self.resting.retain(|until| *until > Instant::now());
        let taken = self.active.len() + self.resting.len();
        let free = self.size.saturating_sub(taken).min(self.pending.len());
        if free == 0 {
            return Ok(());
        }
        let mut ids: Vec<SmolStr> = self.pending.drain(..free).collect();
        ids.sort();
        screen.say(&format!("\nExecuting run on {}\n\n", Value::list(&ids).repr()));
        let part = Job { tgt: Value::list(&ids), tgt_type: "list".into(), ..self.whole.clone() };
        let (published, stream) = client.publish(&part)?;
        let since = now();
        // Who is not among them has lost its key since the ping.
        self.active.extend(published.minions.iter().map(|id| (id.clone(), since)));
        if !published.minions.is_empty() {
            self.parts.push(Gather::new(&published, stream, patience(self.cx)));
        }
        self.progress(client);
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
            // Nobody can be at it any more; `--batch-wait` may still hold the next ones back.
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
        let ret = dict! {
            "ret" => load.get("return"), "retcode" => retcode(load), "jid" => &self.whole.jid,
        };
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
        if !self.wait.is_zero() {
            self.resting.push(Instant::now() + self.wait);
        }
    }

    fn progress(&self, client: &mut Client) {
        if self.all.len() <= TOLD {
            self.tell(client, "progress", None);
        }
    }

    /// Tells the bus how far it is.
    fn tell(&self, client: &mut Client, what: &str, halted: Option<&str>) {
        let (cx, whole) = (self.cx, &self.whole);
        let active: Dict = self.active.iter().map(|(id, at)| (id.as_str(), *at)).collect();
        let state = entries! {
            "jid" => &whole.jid, "driver" => "cli", "fun" => &whole.fun, "arg" => whole.arg.clone(),
            "kwargs" => Dict::new(), "tgt" => &whole.tgt, "tgt_type" => &whole.tgt_type,
            "ret" => &whole.ret, "user" => user(&whole.user), "batch_size" => self.size,
            "batch_wait" => self.wait.as_secs(), "failhard" => cx.opts.bool("failhard"),
            "timeout" => cx.opts.get("timeout"),
            "gather_job_timeout" => cx.opts.get("gather_job_timeout"),
            "created" => self.created, "last_progress" => now(),
            "all_minions" => Value::list(&self.all),
            "pending" => Value::list(&self.pending), "active" => active,
            "done" => &self.done, "failed" => &self.failed, "wait" => Vec::<Value>::new(),
            "halted" => halted.is_some(), "halted_reason" => halted,
        };
        let data = entries! {
            "jid" => &whole.jid, "driver" => "cli", "fun" => &whole.fun, "tgt" => &whole.tgt,
            "tgt_type" => &whole.tgt_type, "user" => user(&whole.user), "state" => state,
        };
        let tag = format!("salt/batch/{}/{what}", whole.jid).into();
        // Not everybody who may run jobs may fire events.
        if let Err(error) = client.call(&Request::Fire { tag, data }) {
            tracing::debug!("the bus is not told of the batch: {error}");
        }
    }
}

fn user(given: &SmolStr) -> SmolStr {
    if given.is_empty() { "root".into() } else { given.clone() }
}

/// Finds out who is there: who answers, and who does not.
fn ping(
    cx: &Context,
    client: &mut Client,
    whole: &Job,
    screen: &mut dyn Screen,
) -> Result<(Vec<SmolStr>, Vec<SmolStr>), Error> {
    let ping =
        Job { fun: "test.ping".into(), arg: Vec::new(), ret: SmolStr::default(), ..whole.clone() };
    let outcome = client.run(&ping, patience(cx))?;
    if outcome.published.jid.is_empty() {
        screen.say(super::NOBODY);
    }
    let present = outcome.returned.into_iter().map(|(id, _)| id).collect();
    Ok((present, outcome.missing.into_iter().map(|(id, _)| id).collect()))
}

/// Reads the size of a batch: a number, or a percentage of all.
pub fn size_of(spec: &str, all: usize) -> usize {
    let spec = spec.trim();
    let size = if spec.contains('%') {
        let percent: f64 = spec.trim_matches('%').trim().parse().unwrap_or(0.0);
        let share = percent / 100.0 * all as f64;
        if share < 1.0 { share.ceil() } else { share.floor() }
    } else {
        spec.parse().unwrap_or(0.0)
    };
    // A saturating cast; nonsense becomes 1.
    (size as usize).max(1)
}

/// Tells whether a text can be the size of a batch.
pub fn is_size(spec: &str) -> bool {
    let number = spec.trim();
    match number.contains('%') {
        true => number.trim_matches('%').trim().parse::<f64>().is_ok_and(f64::is_finite),
        false => number.parse::<i64>().is_ok(),
    }
}

/// Shows nothing and keeps everything: `--static`.
#[derive(Default)]
pub struct Silent {
    pub returns: Dict,
}

impl Screen for Silent {
    fn returned(&mut self, id: &SmolStr, load: &Dict) {
        self.returns.insert(id.as_str(), load.get("return").unwrap_or_default());
    }

    fn say(&mut self, _: &str) {}
}

/// Prints as things happen.
pub struct Printed<'a>(pub &'a Context);

impl Screen for Printed<'_> {
    /// Salt prints what it knows of the return beside the return.
    fn returned(&mut self, id: &SmolStr, load: &Dict) {
        let shown = Dict::new();
        for name in ["retcode", "jid"] {
            if let Some(value) = load.get(name) {
                shown.insert(name, value);
            }
        }
        shown.insert(id.as_str(), load.get("return").unwrap_or_default());
        let out = load.get("out").map(|out| out.to_str());
        let cx = self.0;
        let fun = cx.opts.str("fun");
        if let Err(error) = crate::display::show(cx, &shown.into(), &fun, out.as_deref(), 0) {
            tracing::error!("cannot write the result: {error}");
        }
    }

    fn say(&mut self, text: &str) {
        terminal::out(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size_of("3", 10), 3);
        assert_eq!(size_of("25%", 10), 2);
        assert_eq!(size_of("%25", 10), 2);
        assert_eq!(size_of("1%", 10), 1);
        assert_eq!(size_of("0", 10), 1);
        assert!(is_size("10%") && is_size(" 4 ") && !is_size("few") && !is_size("%"));
    }
}
