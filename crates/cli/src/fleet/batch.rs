//! `--batch`: a job on a few minions at a time; and `--static`, which shows all returns at once.
//!
//! First `test.ping` tells who is there; then the client's `batch` hands the job out. As in Salt the
//! bus is told how far the batch is (`salt/batch/<jid>/new`, `progress`, `complete`, `halted`). With
//! `--async` the master drives it instead, and tells. `salt/batch/<jid>/stop` ends it (`salt-run
//! batch.stop`): nobody else gets the job.

use std::time::Duration;

use halite_client::{
    Client, Error, EventItem, Gather, Job, News, Request,
    batch::{Batch, Moment, Plan, Watch},
};
use halite_value::{Dict, SmolStr, Value, dict, entries};
use halite_wire::Jid;

use super::{job, patience};
use crate::{interrupt, programs::Context, terminal};

/// Batches of more minions are told of at their begin and end only: each telling carries all
/// returns so far.
// differs: Salt tells of every step, however large.
const TOLD: usize = 500;

/// Why a batch ends when somebody asks for it.
const STOP: &str = "stop";

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

/// Finds out who is there, and plans the batch of the command line.
fn plan(
    cx: &Context,
    client: &mut Client,
    size: &str,
    screen: &mut dyn Screen,
) -> Result<Option<Plan>, Error> {
    let whole = job(cx);
    let (all, silent) = ping(cx, client, &whole)?;
    if all.is_empty() {
        screen.say("No minions matched the target.\n");
        return Ok(None);
    }
    for id in silent {
        screen.say(&format!("Minion {id} did not respond. No job will be sent.\n"));
    }
    let wait = cx.parsed.get("batch_wait").as_float().filter(|s| *s > 0.0 && *s < 1e9);
    Ok(Some(Plan {
        size: size_of(size, all.len()),
        wait: Duration::from_secs_f64(wait.unwrap_or(0.0)),
        failhard: cx.opts.bool("failhard"),
        patience: patience(cx),
        // Each telling of a small batch carries them.
        keeps_returns: all.len() <= TOLD,
        job: Job { jid: Jid::now().to_string().into(), ..whole },
        all,
    }))
}

/// Runs the job of the command line in batches.
pub fn run(
    cx: &Context,
    client: &mut Client,
    size: &str,
    screen: &mut dyn Screen,
) -> Result<Ended, Error> {
    let Some(plan) = plan(cx, client, size, screen)? else { return Ok(Ended::default()) };
    interrupt::names(&plan.job.jid);
    let tag = format!("salt/batch/{}/stop", plan.job.jid).into();
    // Not everybody who may run jobs may listen to events.
    let stops = client.send(&Request::Events { tag, after: None }).ok();
    let mut batch = Batch::new(plan);
    let retcode = batch.run(client, &mut Watched { cx, screen, stops })?;
    Ok(Ended { any: true, retcode })
}

/// Has the master run the job of the command line in batches (`--async`); returns its id, and None
/// if nobody is there.
pub fn hand_over(
    cx: &Context,
    client: &mut Client,
    size: &str,
    screen: &mut dyn Screen,
) -> Result<Option<SmolStr>, Error> {
    let Some(plan) = plan(cx, client, size, screen)? else { return Ok(None) };
    let spec = dict! {
        "minions" => Value::list(&plan.all), "size" => plan.size, "wait" => plan.wait.as_secs_f64(),
        "failhard" => plan.failhard, "timeout" => plan.patience.timeout.as_secs_f64(),
        "gather_job_timeout" => plan.patience.gather_job_timeout.as_secs_f64(),
    };
    let job = Job { follow: false, ..plan.job };
    job.kwargs.insert(halite_client::BATCH, spec);
    let (published, _) = client.publish(&job)?;
    Ok(Some(published.jid))
}

/// Runs the job of the command line on everybody at once, for `--static` without a size.
// differs: to Salt this is a batch of all, with a ping before it and every minion's name in the job;
// nobody has to be asked here, and of thousands none has to read the names of all the others.
pub fn at_once(cx: &Context, client: &mut Client, screen: &mut dyn Screen) -> Result<(), Error> {
    let job = job(cx);
    let (published, stream) = client.publish(&job)?;
    if super::means_nobody(cx, &published) {
        terminal::out(super::NOBODY);
        return Ok(());
    }
    interrupt::names(&published.jid);
    let mut gather = Gather::new(&published, stream, patience(cx)).of(&job);
    while let Some(news) = gather.next(client)? {
        if let News::Returned { id, load } = news {
            screen.returned(&id, &load);
        }
    }
    Ok(())
}

/// The terminal and the bus, beside a batch.
struct Watched<'a> {
    cx: &'a Context,
    screen: &'a mut dyn Screen,
    /// Where a wish to stop is heard.
    stops: Option<u64>,
}

impl Watch for Watched<'_> {
    fn at(&mut self, client: &mut Client, batch: &Batch, moment: Moment) {
        match moment {
            Moment::Executing(ids) => {
                let ids = Value::list(ids).repr();
                self.screen.say(&format!("\nExecuting run on {ids}\n\n"));
            }
            Moment::New => self.tell(client, batch, "new", None),
            Moment::Filled if batch.plan.all.len() <= TOLD => {
                self.tell(client, batch, "progress", None);
            }
            Moment::Filled | Moment::Moved => {}
            Moment::Complete => self.tell(client, batch, "complete", None),
            Moment::Halted(reason) => {
                self.tell(client, batch, "halted", Some(reason));
                if reason == STOP {
                    tracing::info!("Batch run stopped due to {reason}");
                } else {
                    tracing::error!("Batch run stopped due to {reason}");
                }
            }
        }
    }

    fn returned(&mut self, id: &SmolStr, load: &Dict) {
        self.screen.returned(id, load);
    }

    fn given_up(&mut self, id: &SmolStr) {
        self.screen.say(&format!("Minion '{id}' failed to respond to job sent\n"));
    }

    fn stop(&mut self, client: &mut Client) -> Option<SmolStr> {
        // What has come is waiting already: the returns are read from the same connection.
        match client.event(self.stops?, Some(std::time::Instant::now())) {
            Ok(Some(EventItem::Event { .. })) => Some(STOP.into()),
            Ok(_) => None,
            Err(_) => {
                self.stops = None;
                None
            }
        }
    }
}

impl Watched<'_> {
    /// Tells the bus how far it is.
    fn tell(&self, client: &mut Client, batch: &Batch, what: &str, halted: Option<&str>) {
        let (cx, plan, whole) = (self.cx, &batch.plan, &batch.plan.job);
        let active: Dict = batch.active.iter().map(|(id, at)| (id.as_str(), *at)).collect();
        let state = entries! {
            "jid" => &whole.jid, "driver" => "cli", "fun" => &whole.fun, "arg" => whole.arg.clone(),
            "kwargs" => Dict::new(), "tgt" => &whole.tgt, "tgt_type" => &whole.tgt_type,
            "ret" => &whole.ret, "user" => user(&whole.user), "batch_size" => plan.size,
            "batch_wait" => plan.wait.as_secs(), "failhard" => plan.failhard,
            "timeout" => cx.opts.get("timeout"),
            "gather_job_timeout" => cx.opts.get("gather_job_timeout"),
            "created" => batch.created, "last_progress" => batch.last_progress,
            "all_minions" => Value::list(&plan.all),
            "pending" => Value::list(&batch.pending), "active" => active,
            "done" => &batch.done, "failed" => &batch.failed, "wait" => Vec::<Value>::new(),
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
) -> Result<(Vec<SmolStr>, Vec<SmolStr>), Error> {
    let ping =
        Job { fun: "test.ping".into(), arg: Vec::new(), ret: SmolStr::default(), ..whole.clone() };
    let outcome = client.run(&ping, patience(cx))?;
    if outcome.published.jid.is_empty() {
        // Said even where all else is kept for the end.
        terminal::out(super::NOBODY);
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
