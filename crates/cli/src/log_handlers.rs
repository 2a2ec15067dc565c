//! Users' log handlers: Python that is handed what is logged (`log_handlers_dirs`).
//!
//! A module there has a function `setup_handlers`, which returns handlers of Python's `logging`.
//! They get an interpreter of their own, so that one that waits for its server holds up nobody's
//! functions. A thread hands the records over in batches; nothing that logs ever waits for it, so
//! what comes faster than handlers can take it is lost. What is logged while records are handed
//! over, by handlers too, is not handed over itself: it would never end.
//!
//! A daemon sets its handlers up at once, a command when the first warning is logged; then it hands
//! over what came before.

use std::{
    cell::Cell,
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::Duration,
};

use halite_bridge::{Bridge, Nobody, Session, Settings};
use halite_config::Opts;
use halite_value::{Dict, Value};

use crate::logging::Level;

/// The kind of these modules.
const KIND: &str = "log_handlers";
/// So many records may wait.
const MOST_WAITING: usize = 10_000;
/// So many are handed over at once.
const MOST_AT_ONCE: usize = 256;
/// How long the end of a program waits for handlers.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How long handlers may take for a batch.
const LONGEST: Duration = Duration::from_secs(60);

enum Message {
    Record(Level, Dict),
    /// The program ends; says when the handlers have everything.
    End(SyncSender<()>),
}

/// The lowest level that handlers want; above all levels while there are none.
static WANTED: AtomicU16 = AtomicU16::new(u16::MAX);
static RECORDS: OnceLock<SyncSender<Message>> = OnceLock::new();

thread_local! {
    /// This thread hands records over.
    static HANDS_OVER: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether records of a level are wanted.
pub(crate) fn want(level: Level) -> bool {
    level.number() >= WANTED.load(Ordering::Relaxed) && !HANDS_OVER.get()
}

/// Tells whether records of a level may be wanted by any thread.
pub(crate) fn may_want(level: Level) -> bool {
    level.number() >= WANTED.load(Ordering::Relaxed)
}

fn set_wanted(level: u16) {
    if WANTED.swap(level, Ordering::Relaxed) != level {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Hands a record over; it has the names of Python's `LogRecord`.
pub(crate) fn hand_over(level: Level, record: Dict) {
    if let Some(records) = RECORDS.get() {
        let _ = records.try_send(Message::Record(level, record));
    }
}

/// Starts handing over, if users have handlers. No fork may follow.
pub(crate) fn start(opts: &Opts, is_daemon: bool) {
    let settings = Settings::from_opts(opts.values());
    if !settings.has_files(KIND) {
        return;
    }
    let (sender, receiver) = sync_channel(MOST_WAITING);
    if RECORDS.set(sender).is_err() {
        return;
    }
    // What the handlers want is known once they are there.
    set_wanted(Level::DEBUG.number());
    let handlers = Handlers {
        bridge: Bridge::new(settings, Dict::new()),
        opts: opts.values().shallow_copy(),
        // differs: log handlers of a command are set up when it logs a warning. Salt does so at once;
        // most commands end without a warning, and need not wait for an interpreter.
        needs: if is_daemon { None } else { Some(Level::WARNING) },
        waiting: Vec::new(),
    };
    let work = move || handlers.serve(&receiver);
    if let Err(error) = std::thread::Builder::new().name("log handlers".into()).spawn(work) {
        set_wanted(u16::MAX);
        tracing::error!("log handlers cannot be started: {error}");
    }
}

/// Waits a moment until handlers have what was logged. The program ends.
pub(crate) fn finish() {
    let Some(records) = RECORDS.get() else { return };
    set_wanted(u16::MAX);
    let (sender, done) = sync_channel(1);
    if records.try_send(Message::End(sender)).is_ok() {
        let _ = done.recv_timeout(LAST_WORDS);
    }
}

struct Handlers {
    bridge: Bridge,
    opts: Dict,
    /// Nothing is set up before a record of this level has come.
    needs: Option<Level>,
    waiting: Vec<Value>,
}

impl Handlers {
    fn serve(mut self, records: &Receiver<Message>) {
        HANDS_OVER.set(true);
        if self.needs.is_none() && self.flush().is_err() {
            return;
        }
        let mut ended = None;
        while ended.is_none() {
            let Ok(first) = records.recv() else { break };
            let mut next = Ok(first);
            while let Ok(message) = next {
                match message {
                    Message::Record(level, record) => self.add(level, record),
                    Message::End(done) => ended = Some(done),
                }
                if ended.is_some() || self.waiting.len() >= MOST_AT_ONCE {
                    break;
                }
                next = records.recv_timeout(Duration::ZERO).map_err(|_: RecvTimeoutError| ());
            }
            if self.needs.is_none() && self.flush().is_err() {
                break;
            }
        }
        if self.needs.is_none() {
            let _ = self.ask("close_log_handlers", Vec::new());
        }
        self.bridge.stop();
        if let Some(done) = ended {
            let _ = done.send(());
        }
    }

    fn add(&mut self, level: Level, record: Dict) {
        if self.needs.is_some_and(|needs| level >= needs) {
            self.needs = None;
        }
        if self.needs.is_some() && self.waiting.len() >= MOST_AT_ONCE {
            // A long command without a warning keeps the latest.
            self.waiting.remove(0);
        }
        self.waiting.push(record.into());
    }

    /// Hands over what waits, and hears which level is wanted. Without any handler, or with an
    /// interpreter that does not work, there is an end to it.
    fn flush(&mut self) -> Result<(), ()> {
        let records = std::mem::take(&mut self.waiting);
        match self.ask("log_records", vec![records.into()]) {
            Ok(Value::Int(lowest)) => {
                set_wanted(u16::try_from(lowest.max(1)).unwrap_or(u16::MAX));
                Ok(())
            }
            Ok(_) => {
                set_wanted(u16::MAX);
                Err(())
            }
            Err(error) => {
                set_wanted(u16::MAX);
                tracing::error!("log handlers get no more records: {error}");
                Err(())
            }
        }
    }

    fn ask(&self, verb: &str, args: Vec<Value>) -> halite_bridge::Result<Value> {
        let none = Dict::new();
        let session = Session {
            opts: &self.opts,
            grains: &none,
            pillar: &none,
            low: &none,
            jid: "",
            saltenv: "base",
            extra: Dict::new(),
            callbacks: &Nobody,
            limit: Some(LONGEST),
        };
        self.bridge.ask(&session, "the log handlers", verb, args).map(|answer| answer.value)
    }
}
