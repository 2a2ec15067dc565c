//! The jobs that run now.
//!
//! Each job has a thread of its own, named after its function, and a token that ends it. At most
//! `process_count_max` run at a time; further ones wait in the order they came. What is asked about
//! jobs (`saltutil.find_job` and its like) never waits, or a busy minion would look like a dead one.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use halite_host::Cancel;
use halite_modules::state::Queued;
use halite_spec::Host;
use halite_value::{Dict, SmolStr, Value};
use indexmap::IndexMap;
use parking_lot::{Condvar, Mutex};

/// Without a configured limit; a minion with more jobs than this helps nobody by starting more.
const MOST: usize = 256;
/// Deep templates recurse; only what is used becomes memory.
const STACK: usize = 8 << 20;

/// Functions that answer at once and are never made to wait.
const URGENT: [&str; 9] = [
    "saltutil.find_job",
    "saltutil.running",
    "saltutil.is_running",
    "saltutil.kill_job",
    "saltutil.kill_all_jobs",
    "saltutil.term_job",
    "saltutil.term_all_jobs",
    "saltutil.signal_job",
    "test.ping",
];

/// Work to be done on a job's thread.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// A job that runs or waits.
#[derive(Clone)]
struct Job {
    load: Dict,
    cancel: Cancel,
    signal: Arc<Mutex<Option<i32>>>,
    /// 0 while it waits.
    thread: i32,
}

struct Waiting {
    key: SmolStr,
    work: Work,
    /// What the disk tells of it meanwhile.
    shown: Option<Queued>,
}

/// Where waiting jobs are shown.
pub(crate) struct Shelf {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) folder: PathBuf,
}

#[derive(Default)]
struct Table {
    /// In the order they came.
    jobs: IndexMap<SmolStr, Job>,
    running: usize,
    waiting: VecDeque<Waiting>,
}

/// Threads that the jobs of many minions share.
pub(crate) struct Pool(Mutex<std::sync::mpsc::Sender<Work>>);

impl Pool {
    /// Starts the threads; they end with the pool.
    pub(crate) fn new(threads: usize) -> std::io::Result<Arc<Self>> {
        let (sender, receiver) = std::sync::mpsc::channel::<Work>();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..threads.max(1) {
            let receiver = Arc::clone(&receiver);
            let run = move || loop {
                let next = receiver.lock().recv();
                let Ok(work) = next else { return };
                // A job that panics must not take the thread of the others with it.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            };
            std::thread::Builder::new().name("jobs".into()).stack_size(STACK).spawn(run)?;
        }
        Ok(Arc::new(Self(Mutex::new(sender))))
    }

    fn run(&self, brief: bool, work: Work) {
        if brief {
            // As on the threads: what panics takes nothing else with it.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            return;
        }
        // It fails only when every thread is gone, and they stay as long as the pool.
        let _ = self.0.lock().send(work);
    }
}

/// The table of jobs.
pub struct Jobs {
    most: usize,
    /// Where jobs run, if not each on a thread of its own.
    pool: Option<Arc<Pool>>,
    shelf: Option<Shelf>,
    finished: AtomicU64,
    table: Mutex<Table>,
    fewer: Condvar,
}

/// What a job's thread holds.
#[derive(Clone)]
pub(crate) struct Ticket {
    pub(crate) cancel: Cancel,
    signal: Arc<Mutex<Option<i32>>>,
}

impl Ticket {
    /// Returns the signal that was meant for the job.
    pub(crate) fn signal(&self) -> Option<i32> {
        *self.signal.lock()
    }
}

impl Jobs {
    pub fn new(most: Option<usize>) -> Arc<Self> {
        Self::on(most, None, None)
    }

    /// As [`Jobs::new`], on shared threads, and with a place where waiting jobs are shown.
    pub(crate) fn on(
        most: Option<usize>,
        pool: Option<Arc<Pool>>,
        shelf: Option<Shelf>,
    ) -> Arc<Self> {
        Arc::new(Self {
            most: most.unwrap_or(MOST),
            pool,
            shelf,
            finished: AtomicU64::new(0),
            table: Mutex::default(),
            fewer: Condvar::new(),
        })
    }

    /// Runs work as a job, now or when its turn comes. `load` is what others are shown of it.
    /// `brief`: it waits for nothing, so where threads are shared it needs none of them.
    pub(crate) fn start(
        self: &Arc<Self>,
        jid: &str,
        load: Dict,
        brief: bool,
        work: impl FnOnce(&Ticket) + Send + 'static,
    ) {
        let fun = load.get("fun").unwrap_or_default();
        let urgent = fun.as_str().is_some_and(|fun| URGENT.contains(&fun));
        let ticket = Ticket { cancel: Cancel::new(), signal: Arc::default() };
        let job = Job {
            load,
            cancel: ticket.cancel.clone(),
            signal: Arc::clone(&ticket.signal),
            thread: 0,
        };
        let key = SmolStr::from(jid);
        let (jobs, own) = (Arc::clone(self), key.clone());
        let work: Work = Box::new(move || {
            let _end = End { jobs: &jobs, key: &own, counted: !urgent };
            jobs.is_on_thread(&own);
            work(&ticket);
        });
        let mut table = self.table.lock();
        table.jobs.insert(key.clone(), job);
        if urgent {
            drop(table);
            self.spawn(&key, &fun, brief, work);
        } else if table.running < self.most {
            table.running += 1;
            drop(table);
            self.spawn(&key, &fun, brief, work);
        } else {
            tracing::warn!(
                "Maximum number of jobs reached while executing jid {key}, waiting... (running: {}, max: {})",
                table.running,
                self.most
            );
            let load = table.jobs.get(&key).map(|job| Value::from(&job.load));
            let shown = self.shelf.as_ref().zip(load);
            let shown = shown.map(|(to, load)| Queued::new(&to.host, &to.folder, &key, &load));
            table.waiting.push_back(Waiting { key, work, shown });
        }
    }

    fn spawn(self: &Arc<Self>, key: &SmolStr, fun: &Value, brief: bool, work: Work) {
        if let Some(pool) = &self.pool {
            return pool.run(brief, work);
        }
        let name = fun.as_str().map_or_else(|| "job".to_owned(), str::to_owned);
        let builder = std::thread::Builder::new().name(name).stack_size(STACK);
        let slot = Arc::new(Mutex::new(Some(work)));
        let own = Arc::clone(&slot);
        let spawned = builder.spawn(move || {
            let work = own.lock().take();
            if let Some(work) = work {
                work();
            }
        });
        if let Err(error) = spawned {
            tracing::error!("no thread for job {key} ({error}): it is done on this one");
            let work = slot.lock().take();
            if let Some(work) = work {
                work();
            }
        }
    }

    fn is_on_thread(&self, key: &str) {
        let thread = nix::unistd::gettid().as_raw();
        if let Some(job) = self.table.lock().jobs.get_mut(key) {
            job.thread = thread;
        }
    }

    fn ended(self: &Arc<Self>, key: &str, counted: bool) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        let mut table = self.table.lock();
        table.jobs.shift_remove(key);
        if counted {
            table.running -= 1;
        }
        let next = if table.running < self.most { table.waiting.pop_front() } else { None };
        if next.is_some() {
            table.running += 1;
        }
        drop(table);
        self.fewer.notify_all();
        if let Some(Waiting { key, work, shown }) = next {
            drop(shown);
            let load = self.table.lock().jobs.get(&key).map(|job| job.load.clone());
            let fun = load.and_then(|load| load.get("fun")).unwrap_or_default();
            self.spawn(&key, &fun, false, work);
        }
    }

    /// Returns what runs or waits, as `saltutil.running` shows it, in the order it came.
    pub fn list(&self) -> Vec<Value> {
        self.table.lock().jobs.values().map(shown).collect()
    }

    /// Ends a job. Returns the number of its thread, or `None` if it does not run.
    pub fn end(&self, jid: &str, signal: i32) -> Option<i32> {
        let job = self.table.lock().jobs.get(jid).cloned()?;
        if signal != 0 {
            *job.signal.lock() = Some(signal);
            job.cancel.cancel();
        }
        Some(job.thread)
    }

    /// Ends all jobs and waits for them, but not for ever.
    pub fn end_all(&self, patience: Duration) -> usize {
        let mut table = self.table.lock();
        table.waiting.clear();
        for job in table.jobs.values() {
            *job.signal.lock() = Some(15);
            job.cancel.cancel();
        }
        let running = |table: &mut Table| table.running > 0;
        self.fewer.wait_while_for(&mut table, running, patience);
        table.running
    }

    /// Returns how many have ended.
    pub(crate) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Returns how many run.
    pub fn running(&self) -> usize {
        self.table.lock().running
    }
}

struct End<'a> {
    jobs: &'a Arc<Jobs>,
    key: &'a SmolStr,
    counted: bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.jobs.ended(self.key, self.counted);
    }
}

fn shown(job: &Job) -> Value {
    let load = job.load.shallow_copy();
    load.insert("pid", job.thread);
    if job.thread == 0 {
        load.insert("queued", true);
    }
    load.into()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use halite_value::entries;

    use super::*;

    #[test]
    fn jobs_wait_for_their_turn_in_order() {
        let jobs = Jobs::new(Some(1));
        let (go, gate) = mpsc::channel::<()>();
        let (told, heard) = mpsc::channel();
        let first = told.clone();
        jobs.start("1", entries! { "fun" => "a.b", "jid" => "1" }, false, move |_| {
            gate.recv().unwrap();
            first.send("1").unwrap();
        });
        for jid in ["2", "3"] {
            let told = told.clone();
            jobs.start(jid, entries! { "fun" => "a.b", "jid" => jid }, false, move |_| {
                told.send(jid).unwrap();
            });
        }
        let urgent = told.clone();
        jobs.start(
            "4",
            entries! { "fun" => "saltutil.find_job", "jid" => "4" },
            false,
            move |_| {
                urgent.send("4").unwrap();
            },
        );
        assert_eq!(heard.recv().unwrap(), "4", "questions about jobs do not wait");
        let listed = jobs.list();
        assert!(listed.iter().any(|job| job.get("queued") == Some(true.into())));
        go.send(()).unwrap();
        let order: Vec<_> = (0..3).map(|_| heard.recv().unwrap()).collect();
        assert_eq!(order, ["1", "2", "3"]);
    }

    #[test]
    fn jobs_are_listed_in_the_order_they_came() {
        let jobs = Jobs::new(None);
        let gates: Vec<_> = ["3", "1", "2"]
            .map(|jid| {
                let (go, gate) = mpsc::channel::<()>();
                jobs.start(jid, entries! { "fun" => "a.b", "jid" => jid }, false, move |_| {
                    let _ = gate.recv();
                });
                go
            })
            .into();
        let listed = || -> Vec<String> {
            jobs.list().iter().map(|job| job.get_str("jid").unwrap().into()).collect()
        };
        assert_eq!(listed(), ["3", "1", "2"]);
        drop(gates);
        assert_eq!(jobs.end_all(Duration::from_secs(10)), 0);
        assert_eq!(listed(), [""; 0]);
    }

    #[test]
    fn a_job_can_be_ended_and_a_panic_frees_its_place() {
        let jobs = Jobs::new(Some(1));
        let (told, heard) = mpsc::channel();
        jobs.start("1", entries! { "fun" => "a.b" }, false, move |ticket| {
            let ended = ticket.cancel.wait(Duration::from_secs(60)).unwrap();
            told.send((ended, ticket.signal())).unwrap();
            std::panic::resume_unwind(Box::new("as a job may"));
        });
        while jobs.end("1", 0) == Some(0) {
            std::thread::yield_now();
        }
        assert!(jobs.end("1", 15).is_some());
        assert_eq!(heard.recv().unwrap(), (true, Some(15)));
        assert_eq!(jobs.end_all(Duration::from_secs(10)), 0);
        assert_eq!(jobs.end("1", 9), None);
    }
}
