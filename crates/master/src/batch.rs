//! Batches the master drives itself (`salt -b 2 --async …`), and what it hears of others.
//!
//! Each runs on a thread of its own, which asks the master by its control socket as any program
//! would; what it does is the client's `batch`. Before every step the batch is written down, so a
//! master that comes up goes on with it: who had the job and has not returned gets it again under
//! its id, which no minion runs twice.
//!
//! The bus is told in the words of genuine Salt: `salt/batch/<jid>/new`, `progress`, `complete`,
//! `halted`. The same words come from a command line that drives its batch itself; they are written
//! down, so that the runner `batch` shows it and can stop it. When the connection of such a program
//! ends before its batch does, the batch is halted.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use halite_client::{
    Client, Job, Patience, Published, Request,
    batch::{Batch, Moment, Plan, Watch},
};
use halite_store::Op;
use halite_target::Search;
use halite_value::{Dict, SmolStr, Value, dict, entries};
use halite_wire::Jid;
use parking_lot::Mutex;

use crate::{
    Error, Master, blocking,
    clients::Caller,
    publish::{self, Refusal, Rights, Wish},
};

/// The banks of batches, by job id: what they are to do, which is written once, and how far they
/// are, which is short.
const PLANS: &str = "batch_plans";
const BANK: &str = "batches";
/// Who drives a batch that the master only hears of.
const CLI: &str = "cli";
/// Why a batch of a program that was ended is halted.
const GONE: &str = "driver gone";
/// How long minions may take to come back after the master did.
const RETURN: Duration = Duration::from_secs(30);

/// The batches under way: job id → why it has to stop, if it has to.
#[derive(Default)]
pub(crate) struct Batches(Mutex<HashMap<SmolStr, Arc<Mutex<Option<SmolStr>>>>>);

fn seconds(of: &Dict, name: &str, preset: f64) -> Duration {
    let given = of.get(name).and_then(|value| value.as_float());
    Duration::from_secs_f64(given.filter(|s| *s >= 0.0 && *s < 1e9).unwrap_or(preset))
}

fn ids(of: &Dict, name: &str) -> Vec<SmolStr> {
    let ids = of.get(name).and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
    ids.iter().map(Value::to_str).collect()
}

/// Starts a batch, if the caller may.
pub(crate) async fn start(
    master: &Arc<Master>,
    caller: &Caller,
    wish: Wish,
    spec: Dict,
) -> Result<Published, Refusal> {
    let part =
        Wish { tgt: Value::list(ids(&spec, "minions")), tgt_type: "list".into(), ..wish.clone() };
    let (owner, rights) = (master.clone(), caller.rights.clone());
    let internal = |error: Error| Refusal::internal(&error);
    let found =
        blocking(move || publish::check(&owner, &part, &rights)).await.map_err(internal)??;
    if found.minions.is_empty() {
        return Ok(Published { missing: found.missing, ..Published::default() });
    }
    let jid = match wish.jid.as_str() {
        "" => master.jobs.next_jid(),
        given => Jid::new(given).map_err(|error| Refusal::invocation(error.to_string()))?,
    };
    let job = Job {
        arg: wish.arg,
        ret: wish.ret,
        jid: jid.to_string().into(),
        user: wish.user,
        timeout: wish.timeout,
        kwargs: wish.kwargs,
        ..Job::new(wish.tgt, &wish.tgt_type, wish.fun)
    };
    let size = spec.get("size").and_then(|size| size.as_int()).unwrap_or(1);
    let patience = Patience {
        timeout: seconds(&spec, "timeout", 5.0),
        gather_job_timeout: seconds(&spec, "gather_job_timeout", 10.0),
        syndic_wait: seconds(&spec, "syndic_wait", 5.0),
    };
    let plan = Plan {
        job,
        all: found.minions.clone(),
        size: usize::try_from(size).unwrap_or(1).max(1),
        wait: seconds(&spec, "wait", 0.0),
        failhard: spec.get("failhard").is_some_and(|flag| flag.truthy()),
        patience,
        keeps_returns: false,
    };
    let batch = Batch::new(plan);
    let written = master.store.write(first_ops(&batch));
    written.await.map_err(|error| Refusal::internal(&error.into()))?;
    // Who hears of the batch may look for it.
    let (owner, key, state) = (master.clone(), jid.clone(), state_of(&batch, None));
    blocking(move || owner.show_batch(key.as_str(), &state)).await.map_err(internal)?;
    drive(master, batch, false);
    let jid = SmolStr::new(jid.as_str());
    Ok(Published { jid, minions: found.minions, missing: found.missing, ..Published::default() })
}

/// What is written down of a batch before it begins.
fn first_ops(batch: &Batch) -> Vec<Op> {
    let plan = &batch.plan;
    let key = plan.job.jid.to_string();
    let value = dict! {
        "job" => plan.job.write(), "all" => Value::list(&plan.all), "size" => plan.size,
        "wait" => plan.wait.as_secs_f64(), "failhard" => plan.failhard,
        "timeout" => plan.patience.timeout.as_secs_f64(),
        "gather_job_timeout" => plan.patience.gather_job_timeout.as_secs_f64(),
        "created" => batch.created,
    };
    vec![
        Op::Put { bank: PLANS, key: key.clone(), value },
        Op::Put { bank: BANK, key, value: record(batch, "running", None).into() },
    ]
}

/// How far it is. Minions get the job in the order of the plan.
fn record(batch: &Batch, state: &str, reason: Option<&str>) -> Dict {
    let active: Dict = batch.active.iter().map(|(id, at)| (id.as_str(), *at)).collect();
    entries! {
        "last_progress" => batch.last_progress, "pending" => batch.pending.len(),
        "active" => active, "done" => batch.done.len(), "failed" => batch.failed.shallow_copy(),
        "state" => state, "reason" => reason,
    }
}

fn map(of: &Dict, name: &str) -> Dict {
    of.get(name).and_then(|map| map.as_dict().cloned()).unwrap_or_default()
}

fn count(of: &Dict, name: &str) -> usize {
    of.get(name).and_then(|n| n.as_int()).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

fn is_running(record: &Dict) -> bool {
    record.get("state").is_some_and(|state| state == *"running")
}

/// Somebody else drives it: a command line.
fn is_told(record: &Dict) -> bool {
    record.get("driver").is_some_and(|driver| driver == *CLI)
}

/// Brings a batch back from what was written down.
fn read(plan: &Dict, record: &Dict) -> Option<Batch> {
    let number = |of: &Dict, name: &str| of.get(name).and_then(|value| value.as_float());
    let created = number(plan, "created").unwrap_or(0.0);
    let mut batch = Batch::new(Plan {
        job: Job::read(plan.get("job")?.as_dict()?).ok()?,
        all: ids(plan, "all"),
        size: count(plan, "size").max(1),
        wait: seconds(plan, "wait", 0.0),
        failhard: plan.get("failhard").is_some_and(|flag| flag.truthy()),
        patience: Patience {
            timeout: seconds(plan, "timeout", 5.0),
            gather_job_timeout: seconds(plan, "gather_job_timeout", 10.0),
            syndic_wait: seconds(plan, "syndic_wait", 5.0),
        },
        keeps_returns: false,
    });
    batch.created = created;
    batch.last_progress = number(record, "last_progress").unwrap_or(created);
    batch.failed = map(record, "failed");
    let rest = batch.plan.all.len().saturating_sub(count(record, "pending"));
    // Who had it comes first.
    batch.pending = map(record, "active").keys().iter().map(|id| id.to_str()).collect();
    batch.pending.extend(batch.plan.all[rest..].iter().cloned());
    // What is still to come has to stand at the end of the plan.
    let is_open: std::collections::HashSet<&SmolStr> = batch.pending.iter().collect();
    let ended: Vec<SmolStr> =
        batch.plan.all.iter().filter(|id| !is_open.contains(id)).cloned().collect();
    batch.plan.all = ended.into_iter().chain(batch.pending.iter().cloned()).collect();
    Some(batch)
}

/// Goes on with what an earlier master began, and forgets what is old.
pub(crate) async fn resume(master: Arc<Master>) {
    let owner = master.clone();
    let read_all = move || -> Result<Vec<Batch>, Error> {
        let mut open = Vec::new();
        for (jid, record) in owner.store.all(BANK)? {
            let plan = owner.store.get(PLANS, &jid)?;
            let (Value::Dict(record), Some(Value::Dict(plan))) = (record, plan) else { continue };
            if is_running(&record) && is_told(&record) {
                // Who drives it will tell again, if it is still there.
                record.update(&entries! { "state" => "halted", "reason" => "abandoned" });
                drop(owner.store.write(vec![Op::Put {
                    bank: BANK,
                    key: jid,
                    value: record.into(),
                }]));
            } else if is_running(&record) {
                open.extend(read(&plan, &record));
            } else if owner.store.job(&jid)?.is_none() {
                // Its job is no longer kept.
                let gone = [PLANS, BANK].map(|bank| Op::Delete { bank, key: jid.clone() });
                drop(owner.store.write(gone.to_vec()));
            }
        }
        Ok(open)
    };
    match blocking(read_all).await {
        Ok(Ok(batches)) => batches.into_iter().for_each(|batch| drive(&master, batch, true)),
        Ok(Err(error)) | Err(error) => tracing::error!("Batches cannot be resumed: {error}"),
    }
}

/// Runs a batch on a thread of its own.
fn drive(master: &Arc<Master>, batch: Batch, is_resumed: bool) {
    let stop = Arc::new(Mutex::new(None));
    let jid = batch.plan.job.jid.clone();
    master.batches.0.lock().insert(jid.clone(), stop.clone());
    let (owner, folder) = (Arc::downgrade(master), master.settings.sock_dir.clone());
    let name = jid.clone();
    let work = move || {
        let watcher = Watcher { master: owner.clone(), stop, is_new: !is_resumed };
        if let Err(error) = work(batch, watcher, &folder, is_resumed)
            && let Some(master) = owner.upgrade()
            && !master.is_stopping()
        {
            tracing::error!("The batch {name} broke off: {error}");
        }
        if let Some(master) = owner.upgrade() {
            master.batches.0.lock().remove(&name);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("batch".into()).spawn(work) {
        tracing::error!("The batch {jid} cannot be started: {error}");
        master.batches.0.lock().remove(&jid);
    }
}

fn work(
    mut batch: Batch,
    mut watcher: Watcher,
    folder: &Path,
    is_resumed: bool,
) -> Result<(), halite_client::Error> {
    let mut client = Client::connect(folder)?;
    if is_resumed {
        catch_up(&mut batch, &mut client)?;
        let is_bad = |done: &Value| done.get("retcode").is_some_and(|code| code.truthy());
        if batch.plan.failhard && batch.done.values().iter().any(is_bad) {
            watcher.at(&mut client, &batch, Moment::Halted("failhard"));
            return Ok(());
        }
    }
    batch.run(&mut client, &mut watcher)?;
    Ok(())
}

/// Sees what came while the master was away, and gives minions a moment to come back.
fn catch_up(batch: &mut Batch, client: &mut Client) -> Result<(), halite_client::Error> {
    let begun = Instant::now();
    loop {
        let stored = client.call(&Request::Job { jid: batch.plan.job.jid.clone() })?;
        if let Some(Value::Dict(returns)) = stored.get("returns") {
            for (id, load) in &returns {
                let (id, Value::Dict(load)) = (id.to_str(), load) else { continue };
                batch.pending.retain(|own| *own != id);
                let code = halite_client::batch::retcode(&load);
                let ret =
                    dict! { "ret" => Value::Null, "retcode" => code, "jid" => &batch.plan.job.jid };
                batch.done.insert(id.as_str(), ret);
            }
        }
        let tgt = Value::list(&batch.pending);
        let load = entries! { "tgt" => tgt, "tgt_type" => "list" };
        let found = client.call(&Request::Ask { what: "resolve".into(), load })?;
        let is_settled = !found.get("absent").is_some_and(|absent| absent.truthy());
        if is_settled || begun.elapsed() >= RETURN {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Writes the batch down and tells the bus.
struct Watcher {
    master: Weak<Master>,
    stop: Arc<Mutex<Option<SmolStr>>>,
    is_new: bool,
}

impl Watch for Watcher {
    fn at(&mut self, _: &mut Client, batch: &Batch, moment: Moment) {
        let Some(master) = self.master.upgrade() else { return };
        let (state, reason) = match moment {
            Moment::Complete => ("complete", None),
            Moment::Halted(reason) => ("halted", Some(reason)),
            _ => ("running", None),
        };
        // Before somebody gets it, and at the end, it has to be on disk; else it may be seen late.
        let matters = matches!(moment, Moment::Executing(_)) || state != "running";
        let (key, value) = (batch.plan.job.jid.to_string(), record(batch, state, reason).into());
        let op = Op::Put { bank: BANK, key, value };
        let ops = if moment == Moment::New { first_ops(batch) } else { vec![op] };
        let written = master.store.write(ops);
        if matters && let Err(error) = written.wait() {
            tracing::error!("The batch {} is not written down: {error}", batch.plan.job.jid);
        }
        if matters || moment == Moment::New {
            master.show_batch(&batch.plan.job.jid, &state_of(batch, reason));
        }
        match moment {
            Moment::Filled if self.is_new => {
                self.is_new = false;
                tell(&master, batch, "new", None);
            }
            Moment::Moved => tell(&master, batch, "progress", None),
            Moment::Complete => tell(&master, batch, "complete", None),
            Moment::Halted(reason) => tell(&master, batch, "halted", Some(reason)),
            Moment::New | Moment::Executing(_) | Moment::Filled => {}
        }
    }

    fn returned(&mut self, _: &SmolStr, _: &Dict) {}

    fn given_up(&mut self, id: &SmolStr) {
        tracing::warn!("Minion '{id}' failed to respond to job sent");
    }

    fn stop(&mut self, _: &mut Client) -> Option<SmolStr> {
        self.stop.lock().clone()
    }
}

/// The batch as Salt writes it into its job cache.
fn state_of(batch: &Batch, halted: Option<&str>) -> Dict {
    let (plan, job) = (&batch.plan, &batch.plan.job);
    let active: Dict = batch.active.iter().map(|(id, at)| (id.as_str(), *at)).collect();
    let user = if job.user.is_empty() { "root" } else { job.user.as_str() };
    entries! {
        "jid" => &job.jid, "all_minions" => Value::list(&plan.all),
        "pending" => Value::list(&batch.pending), "active" => active, "done" => &batch.done,
        "failed" => &batch.failed, "wait" => Vec::<Value>::new(), "batch_size" => plan.size,
        "fun" => &job.fun, "arg" => job.arg.clone(), "kwargs" => Dict::new(), "tgt" => &job.tgt,
        "tgt_type" => &job.tgt_type, "failhard" => plan.failhard,
        "batch_wait" => plan.wait.as_secs_f64(),
        "timeout" => plan.patience.timeout.as_secs_f64(),
        "gather_job_timeout" => plan.patience.gather_job_timeout.as_secs_f64(),
        "last_progress" => batch.last_progress, "created" => batch.created,
        "halted" => halted.is_some(), "halted_reason" => halted, "driver" => "master",
        "ret" => &job.ret, "user" => user,
    }
}

fn tell(master: &Master, batch: &Batch, what: &str, reason: Option<&str>) {
    let job = &batch.plan.job;
    let user = if job.user.is_empty() { "root" } else { job.user.as_str() };
    let data = entries! {
        "jid" => &job.jid, "fun" => &job.fun, "tgt" => &job.tgt, "tgt_type" => &job.tgt_type,
        "user" => user,
    };
    let (done, failed, all) = (batch.done.len(), batch.failed.len(), batch.plan.all.len());
    let duration = batch.last_progress - batch.created;
    data.update(&match what {
        "new" => entries! {
            "total_minions" => all, "batch_size" => batch.plan.size, "driver" => "master",
            "created" => batch.created,
        },
        "progress" => entries! {
            "total" => all, "completed" => done, "active" => batch.active.len(),
            "pending" => batch.pending.len(), "failed" => failed, "iter" => Value::Null,
            "last_progress" => batch.last_progress,
        },
        "complete" => entries! {
            "completed" => done, "failed" => failed, "total_minions" => all,
            "duration" => duration,
        },
        _ => {
            let mut active: Vec<&SmolStr> = batch.active.keys().collect();
            active.sort();
            entries! {
                "reason" => reason, "completed" => done, "failed" => failed,
                "abandoned_active" => Value::list(active),
                "abandoned_pending" => Value::list(&batch.pending), "duration" => duration,
            }
        }
    });
    master.bus.fire(format!("salt/batch/{}/{what}", job.jid), data);
}

/// What people see of a batch.
fn summary(plan: &Dict, record: &Dict) -> Option<Value> {
    let job = Job::read(plan.get("job")?.as_dict()?).ok()?;
    let user = if job.user.is_empty() { "root" } else { job.user.as_str() };
    let now = jiff::Timestamp::now().as_microsecond() as f64 / 1e6;
    let last = record.get("last_progress").and_then(|time| time.as_float()).unwrap_or(now);
    Some(dict! {
        "jid" => &job.jid, "fun" => &job.fun, "tgt" => &job.tgt, "tgt_type" => &job.tgt_type,
        "total" => ids(plan, "all").len(), "completed" => count(record, "done"),
        "active" => map(record, "active").len(), "pending" => count(record, "pending"),
        "failed" => map(record, "failed").len(), "batch_size" => count(plan, "size"),
        "halted" => record.get("state").is_some_and(|state| state == *"halted"),
        "halted_reason" => record.get("reason"),
        "driver" => record.get("driver").unwrap_or_else(|| "master".into()), "user" => user,
        "created" => plan.get("created"), "last_progress" => last, "age_seconds" => now - last,
    })
}

impl Master {
    /// Lets others see a batch where Salt has it. Blocking.
    fn show_batch(&self, jid: &str, state: &Dict) {
        let saved = Jid::new(jid).map(|jid| self.local_cache.save_batch(&jid, state));
        if let Ok(Err(error)) = saved {
            tracing::warn!("The batch {jid} is not in the job cache: {error}");
        }
    }

    /// Writes down what a program tells of a batch it drives itself. Blocking.
    pub(crate) fn hear_of_batch(&self, tag: &str, data: &Dict) {
        let rest = tag.strip_prefix("salt/batch/").and_then(|rest| rest.split_once('/'));
        let Some((jid, what)) = rest.filter(|_| is_told(data)) else { return };
        let state = match what {
            "new" | "progress" => "running",
            "complete" | "halted" => what,
            _ => return,
        };
        // A batch of the master's own is nobody else's.
        if Jid::new(jid).is_err() || self.batches.0.lock().contains_key(jid) {
            return;
        }
        let Some(Value::Dict(told)) = data.get("state") else { return };
        let text = |name: &str| told.get(name).map(|value| value.to_str()).unwrap_or_default();
        let (pending, done) = (ids(&told, "pending").len(), map(&told, "done").len());
        let record = entries! {
            "last_progress" => told.get("last_progress"), "pending" => pending,
            "active" => map(&told, "active"), "done" => done, "failed" => map(&told, "failed"),
            "state" => state, "reason" => told.get("halted_reason"), "driver" => CLI,
        };
        let mut ops = vec![Op::Put { bank: BANK, key: jid.to_owned(), value: record.into() }];
        if what == "new" {
            let tgt = told.get("tgt").unwrap_or_default();
            let mut job = Job::new(tgt, &text("tgt_type"), text("fun"));
            (job.jid, job.user) = (jid.into(), text("user"));
            let plan = dict! {
                "job" => job.write(), "all" => told.get("all_minions"),
                "size" => told.get("batch_size"), "created" => told.get("created"),
            };
            ops.push(Op::Put { bank: PLANS, key: jid.to_owned(), value: plan });
        }
        drop(self.store.write(ops));
        if what != "progress" {
            self.show_batch(jid, &told);
        }
    }

    /// Whoever drove a batch is gone: nobody else gets its job. Blocking.
    pub(crate) fn abandon_batch(&self, jid: &str) {
        let record = match self.store.get(BANK, jid) {
            Ok(Some(Value::Dict(record))) if is_told(&record) && is_running(&record) => record,
            Ok(_) => return,
            Err(error) => return tracing::error!("The batch {jid} cannot be read: {error}"),
        };
        record.insert("state", "halted");
        record.insert("reason", GONE);
        let active = map(&record, "active").keys();
        let (done, failed) = (record.get("done"), map(&record, "failed").len());
        drop(self.store.write(vec![Op::Put {
            bank: BANK,
            key: jid.to_owned(),
            value: record.into(),
        }]));
        let told = entries! {
            "jid" => jid, "driver" => CLI, "reason" => GONE, "completed" => done,
            "failed" => failed,
            "abandoned_active" => Value::list(active.iter().map(|id| id.to_str())),
        };
        self.bus.fire(format!("salt/batch/{jid}/halted"), told);
    }

    /// Answers the runner `batch`: `status`, `list`, `stop`. Blocking.
    pub(crate) fn batch(self: &Arc<Self>, load: &Dict) -> Result<Value, Error> {
        let text = |name: &str| load.get(name).map(|value| value.to_str()).unwrap_or_default();
        let jid = text("jid");
        match text("do").as_str() {
            "status" => Ok(self.batch_summary(&jid, |_| true)?.unwrap_or_default()),
            "list" => {
                let mut all = Vec::new();
                for (jid, _) in self.store.all(BANK)? {
                    all.extend(self.batch_summary(&jid, is_running)?);
                }
                Ok(Value::list(all))
            }
            "stop" => self.stop_batch(&jid, load.get("kill").is_some_and(|kill| kill.truthy())),
            other => Err(Error::Other(format!("a batch cannot be told to `{other}`"))),
        }
    }

    fn batch_summary(
        &self,
        jid: &str,
        is_wanted: impl Fn(&Dict) -> bool,
    ) -> Result<Option<Value>, Error> {
        let (plan, record) = (self.store.get(PLANS, jid)?, self.store.get(BANK, jid)?);
        let (Some(Value::Dict(plan)), Some(Value::Dict(record))) = (plan, record) else {
            return Ok(None);
        };
        Ok(summary(&plan, &record).filter(|_| is_wanted(&record)))
    }

    fn stop_batch(self: &Arc<Self>, jid: &str, kill: bool) -> Result<Value, Error> {
        let own = self.batches.0.lock().get(jid).cloned();
        let is_over = match &own {
            Some(stop) => stop.lock().is_some(),
            None => !self.is_told_of(jid)?,
        };
        if is_over {
            return Ok(false.into());
        }
        self.bus
            .fire(format!("salt/batch/{jid}/stop"), entries! { "jid" => jid, "reason" => "stop" });
        if let Some(stop) = &own {
            *stop.lock() = Some("stop".into());
        }
        // Who asks next is to see it.
        let end = Instant::now() + Duration::from_secs(2);
        let goes_on = || match &own {
            Some(_) => Ok(self.batches.0.lock().contains_key(jid)),
            None => self.is_told_of(jid),
        };
        while goes_on()? && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Only now: who is ended before would make room for the next one.
        if kill && let Some(Value::Dict(record)) = self.store.get(BANK, jid)? {
            let active = record.get("active").and_then(|map| map.as_dict().map(Dict::keys));
            let active: Vec<SmolStr> =
                active.unwrap_or_default().iter().map(|id| id.to_str()).collect();
            self.kill_job(jid, &active);
        }
        Ok(true.into())
    }

    /// Somebody drives a batch of that id, and has not told of its end.
    fn is_told_of(&self, jid: &str) -> Result<bool, Error> {
        let record = self.store.get(BANK, jid)?;
        let record = record.as_ref().and_then(Value::as_dict);
        Ok(record.is_some_and(|record| is_told(record) && is_running(record)))
    }

    fn kill_job(self: &Arc<Self>, jid: &str, minions: &[SmolStr]) {
        let known = self.resolve(&Value::list(minions), "list", None, Search::default());
        if known.is_ok_and(|known| known.minions.is_empty()) {
            return;
        }
        let wish = Wish {
            tgt: Value::list(minions),
            tgt_type: "list".into(),
            fun: "saltutil.kill_job".into(),
            arg: vec![jid.into()],
            ret: SmolStr::default(),
            jid: SmolStr::default(),
            user: "root".into(),
            kwargs: Dict::new(),
            timeout: None,
            id: None,
            on_disk: false,
        };
        let (master, Ok(runtime)) = (self.clone(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            if let Err(refusal) = publish::publish(&master, wish, Rights::All, false).await {
                tracing::error!("A batch's jobs are not ended: {}", refusal.message);
            }
        });
    }
}
