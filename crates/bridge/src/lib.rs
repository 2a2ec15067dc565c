//! Users' own Python, in a process of its own.
//!
//! A [`Bridge`] starts an interpreter when something is first asked of it, keeps it, and starts
//! another when it died. What is asked goes through [`Bridge::ask`]: a verb of the Python side
//! (`python/halite_*.py`) with arguments, in a [`Session`], which says what the dunders show and how
//! Python's questions back are answered ([`Callbacks`]). Questions come on the thread that asked, so
//! calls nest as deep as anybody likes.
//!
//! Read [`notation`] for what travels, `process.rs` for the process and its limits, and
//! `python/halite_host.py` for the other side.
//!
//! Absent on purpose: any knowledge of what functions the binary has. They are handed in.

mod error;
mod files;
pub mod notation;
mod process;
mod settings;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

pub use error::{Error, Raised, Result};
use halite_spec::Call;
use halite_value::{Dict, Value, entries};
use parking_lot::Mutex;
pub use settings::{KINDS, Settings};

use crate::process::{Process, Watch, ended_for};

/// Answers what Python asks while it works.
pub trait Callbacks {
    /// Calls a function of the binary; `kind` is `modules`, `states`, `runners`, `wheel` …
    fn call(&self, kind: &str, name: &str, call: Call) -> halite_spec::Result<Value>;

    /// Describes a function of the binary: `{doc, …}`.
    fn describe(&self, kind: &str, name: &str) -> Option<Value>;

    /// Fires an event.
    fn fire(&self, tag: &str, data: Value) -> halite_spec::Result<bool>;

    /// Tells whether the job has been ended.
    fn cancelled(&self) -> bool;
}

/// Answers where there is nobody to ask: grains are collected before there is a minion.
#[derive(Debug)]
pub struct Nobody;

impl Callbacks for Nobody {
    fn call(&self, _: &str, name: &str, _: Call) -> halite_spec::Result<Value> {
        Err(halite_spec::Error::Unavailable {
            function: name.into(),
            reason: "no functions can be called from here".into(),
        })
    }

    fn describe(&self, _: &str, _: &str) -> Option<Value> {
        None
    }

    fn fire(&self, _: &str, _: Value) -> halite_spec::Result<bool> {
        Ok(false)
    }

    fn cancelled(&self) -> bool {
        false
    }
}

/// What a call works with.
pub struct Session<'a> {
    pub opts: &'a Dict,
    pub grains: &'a Dict,
    pub pillar: &'a Dict,
    pub low: &'a Dict,
    pub jid: &'a str,
    pub saltenv: &'a str,
    /// Further values the Python side looks at.
    pub extra: Dict,
    pub callbacks: &'a dyn Callbacks,
    /// Shorter than the configured limit, or where none is configured.
    pub limit: Option<Duration>,
}

/// What a call gave.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub value: Value,
    /// What `__context__['retcode']` was set to.
    pub retcode: Option<i64>,
}

/// The folders are looked at so often by those who come by the thousand.
const OFTEN: Duration = Duration::from_millis(200);

/// Calls that nest, Python into native and back, have the number of the outermost one, so that
/// Python knows a question of its own from another's.
struct Chain(i64, bool);

thread_local! {
    static CHAIN: Cell<Option<i64>> = const { Cell::new(None) };
}

impl Chain {
    fn enter() -> Self {
        static NEXT: AtomicI64 = AtomicI64::new(1);
        let outer = CHAIN.get();
        let number = outer.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        CHAIN.set(Some(number));
        Self(number, outer.is_none())
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        if self.1 {
            CHAIN.set(None);
        }
    }
}

/// The modules of a kind.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// `mod.fun`, sorted.
    pub functions: Vec<String>,
    /// Names of the modules whose file has the same name: each hides what else has its name.
    pub modules: HashSet<String>,
    /// Why others are not there, by module.
    pub missing: HashMap<String, String>,
    /// Outputters that modules ask for, by function.
    pub outputters: HashMap<String, String>,
    set: HashSet<String>,
}

impl Listing {
    pub fn has(&self, function: &str) -> bool {
        self.set.contains(function)
    }

    /// Tells whether a function of that name elsewhere is out of reach.
    pub fn hides(&self, function: &str) -> bool {
        self.has(function) || self.modules.contains(function.split('.').next().unwrap_or(function))
    }

    fn read(value: &Value) -> Self {
        let texts = |name: &str| -> Vec<String> {
            let list = value.get(name).and_then(|list| list.items_of_sequence());
            list.unwrap_or_default().iter().map(|item| item.to_str().into()).collect()
        };
        let pairs = |name: &str| -> HashMap<String, String> {
            let dict = value.get(name).and_then(|dict| dict.as_dict().cloned()).unwrap_or_default();
            let entries = dict.entries().into_iter();
            entries.map(|(key, value)| (key.to_str().into(), value.to_str().into())).collect()
        };
        let functions = texts("functions");
        Self {
            set: functions.iter().cloned().collect(),
            functions,
            modules: texts("modules").into_iter().collect(),
            missing: pairs("missing"),
            outputters: pairs("outputters"),
        }
    }

    /// Says why a function is not there, if its module is the reason.
    pub fn reason(&self, function: &str) -> Option<String> {
        let module = function.split('.').next().unwrap_or(function);
        self.missing.get(module).map(|reason| match reason.starts_with('\'') {
            true => reason.clone(),
            false => format!("'{module}' __virtual__ returned False: {reason}"),
        })
    }
}

/// The way to users' Python.
pub struct Bridge {
    settings: Settings,
    /// Names of the binary's functions, by kind: Python sees them in `__salt__`.
    native: Dict,
    /// The proxy module of a proxy minion: a process that is started later connects with the device, too.
    device: Mutex<Option<String>>,
    process: Mutex<Option<Arc<Process>>>,
    listings: Mutex<HashMap<String, Arc<Listing>>>,
    files: Mutex<HashMap<String, bool>>,
    packaged: Mutex<HashMap<(String, String), bool>>,
    package: Mutex<Option<bool>>,
    stale: Mutex<bool>,
    generation: AtomicU64,
    /// What the folders looked like.
    seen: AtomicU64,
    /// When that was looked at.
    looked: Mutex<Option<Instant>>,
    /// A start that failed is not repeated for every question.
    failed: Mutex<Option<(Instant, String)>>,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Bridge {
    /// Makes a bridge; nothing is started. `native` holds lists of names by kind.
    pub fn new(settings: Settings, native: Dict) -> Self {
        Self {
            seen: AtomicU64::new(settings.fingerprint()),
            looked: Mutex::default(),
            settings,
            native,
            device: Mutex::default(),
            process: Mutex::default(),
            listings: Mutex::default(),
            files: Mutex::default(),
            packaged: Mutex::default(),
            package: Mutex::default(),
            stale: Mutex::default(),
            generation: AtomicU64::new(1),
            failed: Mutex::default(),
        }
    }

    /// Adds native names of a kind; they count when the process is started next.
    pub fn add_native(&self, kind: &str, names: Vec<String>) {
        self.native.insert(kind, Value::list(names));
    }

    /// Names the proxy module that a process started from now on connects with its device.
    pub fn set_device(&self, module: &str) {
        *self.device.lock() = Some(module.to_owned());
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tells whether users have any modules of that kind; asks the file system only.
    pub fn has_files(&self, kind: &str) -> bool {
        if let Some(known) = self.files.lock().get(kind) {
            return *known;
        }
        let found = self.settings.has_files(kind);
        self.files.lock().insert(kind.to_owned(), found);
        found
    }

    /// Returns a number that changes when modules are loaded anew.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Modules changed on disk: forgets what was loaded.
    pub fn reload(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        *self.stale.lock() = true;
        self.listings.lock().clear();
        self.files.lock().clear();
        self.packaged.lock().clear();
        *self.failed.lock() = None;
        self.forget();
    }

    /// As [`Bridge::look_again`], for those who come by the thousand and whom a file that was put there in
    /// this moment need not concern.
    pub fn look_again_at_times(&self) {
        let is_due = |looked: &Option<Instant>| looked.is_none_or(|at| at.elapsed() > OFTEN);
        if is_due(&self.looked.lock()) {
            self.look_again();
        }
    }

    /// Forgets what was loaded if the files are no longer the same: other programs may have put new
    /// ones there.
    pub fn look_again(&self) {
        *self.looked.lock() = Some(Instant::now());
        let now = self.settings.fingerprint();
        let before = self.seen.swap(now, Ordering::Relaxed);
        if before != now && before != 0 {
            self.reload();
        }
    }

    /// Grains, pillar or options changed in place.
    pub fn forget(&self) {
        if let Some(process) = &*self.process.lock() {
            process.forget();
        }
    }

    /// Ends the process, if there is one.
    pub fn stop(&self) {
        if let Some(process) = self.process.lock().take() {
            process.kill();
        }
    }

    /// Ends the process unless somebody uses it: a template in Python may be what asks.
    fn stop_if_idle(&self) {
        let idle = self.process.lock().take_if(|process| Arc::strong_count(process) == 1);
        if let Some(process) = idle {
            process.kill();
        }
    }

    fn process(&self) -> Result<Arc<Process>> {
        let mut process = self.process.lock();
        if let Some(running) = process.as_ref().filter(|running| running.is_alive()) {
            return Ok(Arc::clone(running));
        }
        if let Some((when, reason)) = &*self.failed.lock()
            && when.elapsed() < Duration::from_secs(10)
        {
            let python = self.settings.python.clone();
            return Err(Error::Start { python, reason: reason.clone() });
        }
        let device = self.device.lock().clone();
        match Process::start(&self.settings, self.native.clone(), device.as_deref()) {
            Ok(started) => {
                *process = Some(Arc::clone(&started));
                Ok(started)
            }
            Err(error) => {
                if let Error::Start { reason, .. } = &error {
                    *self.failed.lock() = Some((Instant::now(), reason.clone()));
                }
                Err(error)
            }
        }
    }

    /// Asks the Python side; `what` names the work in messages.
    pub fn ask(
        &self,
        session: &Session<'_>,
        what: &str,
        verb: &str,
        args: Vec<Value>,
    ) -> Result<Answer> {
        let process = self.process()?;
        {
            // Held meanwhile: nobody may see the modules from before.
            let mut stale = self.stale.lock();
            if std::mem::take(&mut *stale) {
                self.exchange(&process, session, "the reload", "reload", Vec::new())?;
            }
        }
        self.exchange(&process, session, what, verb, args)
    }

    fn exchange(
        &self,
        process: &Process,
        session: &Session<'_>,
        what: &str,
        verb: &str,
        args: Vec<Value>,
    ) -> Result<Answer> {
        // Nothing of what cannot be written down has been sent.
        let gone = |error: Error| match error {
            Error::Io(_) => process.ended(what),
            Error::Wire(error) => Error::Given { what: what.to_owned(), error },
            other => other,
        };
        let mut talk = process.talk().map_err(gone)?;
        let chain = Chain::enter();
        let given = entries! {
            "grains" => process.token(&mut talk, session.grains, &[]).map_err(gone)?,
            "pillar" => process.token(&mut talk, session.pillar, &[]).map_err(gone)?,
            "opts" => process.token(&mut talk, session.opts, &["grains", "pillar"]).map_err(gone)?,
            "jid" => session.jid, "env" => session.saltenv, "chain" => chain.0,
        };
        if !session.low.is_empty() {
            given.insert("low", session.low);
        }
        if !session.extra.is_empty() {
            given.insert("extra", &session.extra);
        }
        let call = Value::list([Value::str("call"), verb.into(), args.into(), given.into()]);
        talk.send(&call).map_err(gone)?;
        let cancelled = || session.callbacks.cancelled();
        let mut watch = Watch {
            what,
            started: Instant::now(),
            limit: match (session.limit, self.settings.timeout) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
            memory: self.settings.memory,
            cancelled: &cancelled,
            ending: None,
        };
        let outcome = loop {
            let message = process.receive(&mut talk, &mut watch)?;
            let parts = message.items_of_sequence().unwrap_or_default();
            match parts.first().and_then(Value::as_str).unwrap_or_default() {
                "ret" => {
                    let retcode = parts.get(2).and_then(|notes| notes.get("retcode")?.as_int());
                    break Ok(Answer { value: parts.get(1).cloned().unwrap_or_default(), retcode });
                }
                "err" => break Err(raised(&parts)),
                "ask" => {
                    let before = Instant::now();
                    let answer = answered(session.callbacks, &parts);
                    // What the binary does is not Python's time.
                    watch.started += before.elapsed();
                    match talk.send(&answer) {
                        Err(Error::Wire(error)) => {
                            talk.send(&unsendable(&parts, &error)).map_err(gone)?;
                        }
                        sent => sent.map_err(gone)?,
                    }
                }
                "log" => logged(&parts),
                // differs: what users' modules print is logged; Salt's lets it stand between the lines of
                // the output, which nobody can read by machine then.
                "out" => {
                    let line = parts.get(1).map(Value::to_str).unwrap_or_default();
                    tracing::info!(target: "python", "{line}");
                }
                other => {
                    process.kill();
                    let how = format!("it sent {other:?}");
                    return Err(Error::Ended { what: what.into(), how, said: String::new() });
                }
            }
        };
        process.give_back(talk);
        match (outcome, watch.ending) {
            (Err(Error::Raised(raised)), Some((_, why)))
                if raised.is("TimeoutError") || raised.classes.is_empty() =>
            {
                Err(ended_for(&watch, why))
            }
            (outcome, _) => outcome,
        }
    }

    /// Returns the modules of a kind; loads them if need be. Without files nothing is started.
    pub fn listing(&self, session: &Session<'_>, kind: &str) -> Result<Arc<Listing>> {
        if let Some(known) = self.listings.lock().get(kind) {
            return Ok(Arc::clone(known));
        }
        let generation = self.generation();
        let (listing, is_whole) = if self.has_files(kind) {
            let what = format!("loading {kind}");
            let answer = self.ask(session, &what, "listing", vec![kind.into()])?.value;
            let is_whole = answer.get("whole").is_some_and(|whole| whole.truthy());
            (Listing::read(&answer), is_whole)
        } else {
            (Listing::default(), true)
        };
        let listing = Arc::new(listing);
        if is_whole && generation == self.generation() {
            self.listings.lock().insert(kind.to_owned(), Arc::clone(&listing));
        }
        Ok(listing)
    }

    /// Calls a function of users, or of an installed package.
    pub fn run(&self, session: &Session<'_>, kind: &str, name: &str, call: Call) -> Result<Answer> {
        let args = vec![kind.into(), name.into(), call.args.into(), call.kwargs.into()];
        self.ask(session, name, "run", args)
    }

    /// Describes functions: name → `{doc, spec: {args, defaults, varargs, kwargs}}`.
    pub fn describe(&self, session: &Session<'_>, kind: &str, names: &[String]) -> Result<Dict> {
        let args = vec![kind.into(), Value::list(names.to_vec())];
        let answer = self.ask(session, "the documentation", "describe", args)?;
        Ok(answer.value.as_dict().cloned().unwrap_or_default())
    }

    /// Tells whether an installed `salt` package can be asked at all.
    pub fn has_package(&self, session: &Session<'_>) -> bool {
        if !self.settings.packages {
            return false;
        }
        if let Some(known) = *self.package.lock() {
            return known;
        }
        let answer = self.ask(session, "looking for a salt package", "package_present", Vec::new());
        let found = match answer {
            Ok(answer) => answer.value.truthy(),
            Err(error) => {
                tracing::debug!("{error}");
                false
            }
        };
        *self.package.lock() = Some(found);
        if !found && !KINDS.iter().any(|kind| self.has_files(kind)) {
            // Nothing else will be asked of it: a minion without Python modules stays small.
            self.stop_if_idle();
        }
        found
    }

    /// Returns the names of all functions of a kind in an installed package.
    pub fn package_names(&self, session: &Session<'_>, kind: &str) -> Vec<String> {
        if !self.has_package(session) {
            return Vec::new();
        }
        match self.ask(
            session,
            "the functions of a salt package",
            "package_names",
            vec![kind.into()],
        ) {
            Ok(answer) => {
                let names = answer.value.items_of_sequence().unwrap_or_default();
                names.iter().map(Value::to_string).collect()
            }
            Err(error) => {
                tracing::warn!("the installed salt package cannot be listed: {error}");
                Vec::new()
            }
        }
    }

    /// Tells whether an installed package has a function.
    pub fn package_has(&self, session: &Session<'_>, kind: &str, name: &str) -> bool {
        if !name.contains('.') || !self.has_package(session) {
            return false;
        }
        let key = (kind.to_owned(), name.to_owned());
        if let Some(known) = self.packaged.lock().get(&key) {
            return *known;
        }
        let args = vec![kind.into(), Value::list([name])];
        let found = match self.ask(session, name, "package_has", args) {
            Ok(answer) => answer.value.truthy(),
            Err(error) => {
                tracing::warn!("the installed salt package cannot be asked for {name}: {error}");
                false
            }
        };
        self.packaged.lock().insert(key, found);
        found
    }
}

fn raised(parts: &[Value]) -> Error {
    let text =
        |at: usize| parts.get(at).map(|value| value.to_str().to_string()).unwrap_or_default();
    let mut classes: Vec<String> = parts
        .get(4)
        .and_then(Value::items_of_sequence)
        .unwrap_or_default()
        .iter()
        .map(|name| name.to_str().into())
        .collect();
    if classes.is_empty() {
        classes.push(text(1));
    }
    let more = parts.get(5).cloned().unwrap_or_default();
    Error::Raised(Box::new(Raised {
        classes,
        message: text(2),
        traceback: text(3),
        code: more.get("code").and_then(|code| code.as_int()),
        info: more.get("info").unwrap_or_default(),
    }))
}

/// Does what Python asks, and words the answer.
fn answered(callbacks: &dyn Callbacks, parts: &[Value]) -> Value {
    let text = |at: usize| parts.get(at).map(Value::to_str).unwrap_or_default();
    let given = |at: usize| parts.get(at).cloned().unwrap_or_default();
    let outcome = match text(1).as_str() {
        "call" => {
            let call = Call {
                args: given(4).items_of_sequence().unwrap_or_default(),
                kwargs: given(5).as_dict().cloned().unwrap_or_default(),
            };
            callbacks.call(&text(2), &text(3), call)
        }
        "describe" => Ok(callbacks.describe(&text(2), &text(3)).unwrap_or_default()),
        "fire" => callbacks.fire(&text(2), given(3)).map(Value::from),
        other => Err(halite_spec::Error::failed(format!("Python asked for {other:?}"))),
    };
    match outcome {
        Ok(value) => Value::list([Value::str("ret"), value]),
        Err(error) => {
            let trace = match &error {
                halite_spec::Error::Raised { traceback, .. } => traceback.clone(),
                _ => None,
            };
            let message = error.to_string();
            let class = error.class();
            Value::list([Value::str("err"), class.into(), message.into(), trace.into()])
        }
    }
}

/// The answer where the answer cannot be written down.
fn unsendable(parts: &[Value], error: &notation::Error) -> Value {
    let name = parts.get(3).map(Value::to_str).unwrap_or_default();
    let message = format!("what {name} returns cannot be sent to Python: {error}");
    Value::list([Value::str("err"), "CommandExecutionError".into(), message.into(), Value::Null])
}

/// A line of Python's logging.
fn logged(parts: &[Value]) {
    let level = parts.get(1).and_then(Value::as_int).unwrap_or(20);
    let name = parts.get(2).map(Value::to_str).unwrap_or_default();
    let text = parts.get(3).map(Value::to_str).unwrap_or_default();
    match level {
        50.. => tracing::error!(target: "python", salt = "critical", logger = %name, "{text}"),
        40.. => tracing::error!(target: "python", logger = %name, "{text}"),
        30.. => tracing::warn!(target: "python", logger = %name, "{text}"),
        20.. => tracing::info!(target: "python", logger = %name, "{text}"),
        10.. => tracing::debug!(target: "python", logger = %name, "{text}"),
        _ => tracing::trace!(target: "python", logger = %name, "{text}"),
    }
}
