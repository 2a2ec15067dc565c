//! `--batch`: a job on a few minions at a time; and `--static`, which is one batch of all.
//!
//! First `test.ping` tells who is there. Then minions are handed the job as slots become free: a slot
//! is free when its minion has returned or is given up, and `--batch-wait` seconds have passed.
//!
//! differs: Salt 3008 publishes all parts under one job id; here each part is a job of its own, as in
//! every release before, so that the master's books on each of them are exact.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use halite_client::{Client, Error, Gather, Job, News, Waited};
use halite_value::{Dict, SmolStr, Value};

use super::{interrupt, job, patience, retcode};
use crate::{programs::Context, terminal};

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

/// A minion's job under way, with the slots it holds.
struct Part {
    gather: Gather,
}

/// Runs the job of the command line in batches.
pub fn run(
    cx: &Context,
    client: &mut Client,
    size: &str,
    screen: &mut dyn Screen,
) -> Result<Ended, Error> {
    let whole = job(cx);
    let (present, silent) = ping(cx, client, &whole, screen)?;
    let mut ended = Ended { any: !present.is_empty(), retcode: 0 };
    if present.is_empty() {
        screen.say("No minions matched the target.\n");
        return Ok(ended);
    }
    for id in silent {
        screen.say(&format!("Minion {id} did not respond. No job will be sent.\n"));
    }
    let size = size_of(size, present.len());
    let wait = Duration::from_secs_f64(
        cx.parsed.get("batch_wait").as_float().filter(|s| *s > 0.0 && *s < 1e9).unwrap_or(0.0),
    );
    let mut pending: VecDeque<SmolStr> = present.into();
    let mut parts: Vec<Part> = Vec::new();
    // Slots that are free again, but not before a time.
    let mut resting: Vec<Instant> = Vec::new();
    let mut busy = 0;
    while !pending.is_empty() || !parts.is_empty() {
        resting.retain(|until| *until > Instant::now());
        let free = size.saturating_sub(busy + resting.len()).min(pending.len());
        if free > 0 {
            let ids: Vec<SmolStr> = pending.drain(..free).collect();
            busy += publish(cx, client, &whole, ids, &mut parts, screen)?;
        }
        let step = Instant::now() + Duration::from_millis(20);
        let mut news = Vec::new();
        for part in &mut parts {
            match part.gather.next_until(client, Some(step))? {
                Waited::News(one) => news.push(one),
                Waited::TimedOut | Waited::Over => {}
            }
        }
        parts.retain(|part| !part.gather.is_over());
        if parts.is_empty() && free == 0 && news.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        for one in news {
            match one {
                News::Returned { id, load } => {
                    let code = retcode(&load);
                    ended.retcode = ended.retcode.max(code);
                    screen.returned(&id, &load);
                    if code != 0 && cx.opts.bool("failhard") {
                        tracing::error!("Batch run stopped due to failhard");
                        return Ok(ended);
                    }
                }
                News::Missing { id, .. } => {
                    screen.say(&format!("Minion '{id}' failed to respond to job sent\n"));
                }
                _ => continue,
            }
            busy = busy.saturating_sub(1);
            if !wait.is_zero() {
                resting.push(Instant::now() + wait);
            }
        }
    }
    Ok(ended)
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

fn publish(
    cx: &Context,
    client: &mut Client,
    whole: &Job,
    mut ids: Vec<SmolStr>,
    parts: &mut Vec<Part>,
    screen: &mut dyn Screen,
) -> Result<usize, Error> {
    ids.sort();
    let shown = Value::list(&ids).repr();
    screen.say(&format!("\nExecuting run on {shown}\n\n"));
    let part = Job { tgt: Value::list(&ids), tgt_type: "list".into(), ..whole.clone() };
    let (published, stream) = client.publish(&part)?;
    if published.jid.is_empty() {
        // Their keys are gone by now.
        return Ok(0);
    }
    interrupt::names(&published.jid);
    if cx.parsed.bool("verbose") {
        screen.say(&super::header(&published.jid));
    } else if cx.parsed.bool("show_jid") {
        screen.say(&format!("jid: {}\n", published.jid));
    }
    let count = published.minions.len();
    parts.push(Part { gather: Gather::new(&published, stream, patience(cx)) });
    Ok(count)
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
