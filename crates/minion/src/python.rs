//! Users' own Python, as the minion sees it: execution functions, states, grains, renderers, filters.
//!
//! A user's file takes the place of the native module of its name as a whole, as in Salt: what it does
//! not define is then missing. A file of another name with that `__virtualname__` adds to it. What neither the user nor the binary has is looked for in a `salt`
//! package of the interpreter. Nothing is started as long as there are no files to load and nothing
//! is missing.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use halite_bridge::{Bridge, Callbacks, Error as BridgeError, Listing, Nobody, Session, Settings};
use halite_highstate::{Params, States};
use halite_pillar::ext::{ExtArgs, ExtCx, ExtPillar};
use halite_spec::{
    Aggregate, Call, Cx, Error, Event, Files, Host, Job, Keys, Outcome, Result, Runtime,
};
use halite_value::{Dict, Value, entries};
use parking_lot::{Mutex, RwLock};

use crate::registry;

/// Calls a native function of another kind (`runners`, `wheel`).
pub type Others = Arc<dyn Fn(&Cx, &str, &str, Call) -> Option<Result<Value>> + Send + Sync>;

/// Loading modules, and collecting grains, must not hang a minion.
const LOADING: Duration = Duration::from_secs(120);

/// (kind, function) → what is known of it.
type Described = HashMap<(String, String), Value>;

/// Users' Python.
pub struct Python {
    bridge: Bridge,
    /// What the last call worked with: questions such as «is there a function» come without.
    seed: RwLock<Option<Seed>>,
    described: Mutex<(u64, Described)>,
    filters: Mutex<(u64, Names)>,
    others: RwLock<Option<Others>>,
}

/// Names of Jinja filters, tests and globals that users' utils declare.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub filters: Vec<String>,
    pub tests: Vec<String>,
    pub globals: Vec<String>,
}

impl Names {
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.tests.is_empty() && self.globals.is_empty()
    }
}

/// A `Cx` without its runtime, which holds us.
struct Seed {
    host: Arc<dyn Host>,
    files: Arc<dyn Files>,
    opts: Dict,
    grains: Dict,
    pillar: Dict,
    runtime: Weak<dyn Runtime>,
}

/// What users have under a name.
pub enum Found {
    /// Nothing that concerns it.
    Nothing,
    /// The function.
    Function,
    /// A module of that name without the function, or one that did not load; the reason is for people.
    Missing(String),
}

impl Python {
    /// Makes the way to users' modules; `None` where options name no place for them.
    pub fn new(opts: &Dict) -> Option<Arc<Self>> {
        opts.get("extension_modules").filter(Value::truthy)?;
        Some(Self::with_native(opts, registry::natives()))
    }

    /// As [`Python::new`], telling Python which functions of which kinds are native.
    pub fn with_native(opts: &Dict, native: Dict) -> Arc<Self> {
        Arc::new(Self {
            bridge: Bridge::new(Settings::from_opts(opts), native),
            seed: RwLock::default(),
            described: Mutex::default(),
            filters: Mutex::default(),
            others: RwLock::default(),
        })
    }

    /// Sets who calls native functions of other kinds.
    pub fn set_others(&self, others: Others) {
        *self.others.write() = Some(others);
    }

    pub fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    /// Keeps what a call works with, for questions that come without.
    pub fn remember(&self, cx: &Cx) {
        let known = |seed: &Option<Seed>| {
            seed.as_ref()
                .is_some_and(|seed| seed.opts.is_same(&cx.opts) && seed.pillar.is_same(&cx.pillar))
        };
        if known(&self.seed.read()) {
            return;
        }
        *self.seed.write() = Some(Seed {
            host: Arc::clone(&cx.host),
            files: Arc::clone(&cx.files),
            opts: cx.opts.clone(),
            grains: cx.grains.clone(),
            pillar: cx.pillar.clone(),
            runtime: Arc::downgrade(&cx.runtime),
        });
    }

    /// Returns what the last call worked with.
    fn seed(&self) -> Option<Cx> {
        let seed = self.seed.read();
        let seed = seed.as_ref()?;
        Some(Cx {
            host: Arc::clone(&seed.host),
            files: Arc::clone(&seed.files),
            opts: seed.opts.clone(),
            grains: seed.grains.clone(),
            pillar: seed.pillar.clone(),
            runtime: seed.runtime.upgrade()?,
            context: Dict::new(),
            low: Dict::new(),
            job: Arc::new(Job::default()),
        })
    }

    /// Modules changed on disk.
    pub fn reload(&self) {
        self.bridge.reload();
    }

    fn within<R>(&self, cx: &Cx, extra: Dict, work: impl FnOnce(&Session<'_>) -> R) -> R {
        self.answering(cx, extra, false, work)
    }

    fn answering<R>(
        &self,
        cx: &Cx,
        extra: Dict,
        is_module: bool,
        work: impl FnOnce(&Session<'_>) -> R,
    ) -> R {
        let others = self.others.read().clone();
        let back = Back { cx, others, is_module };
        let saltenv = cx.saltenv();
        work(&Session {
            opts: &cx.opts,
            grains: &cx.grains,
            pillar: &cx.pillar,
            low: &cx.low,
            jid: &cx.job.jid,
            saltenv: &saltenv,
            extra,
            callbacks: &back,
            limit: None,
        })
    }

    fn listing(&self, cx: &Cx, kind: &str) -> Result<Arc<Listing>> {
        self.within(cx, Dict::new(), |session| self.bridge.listing(session, kind))
            .map_err(Error::from)
    }

    /// Says what users have under a name.
    pub fn find(&self, cx: &Cx, kind: &str, name: &str) -> Found {
        if !self.bridge.has_files(kind) {
            return Found::Nothing;
        }
        let listing = match self.listing(cx, kind) {
            Ok(listing) => listing,
            Err(error) => {
                tracing::error!("{error}");
                return match kind_has_native(cx, kind, name) {
                    true => Found::Nothing,
                    false => Found::Missing(error.to_string()),
                };
            }
        };
        let module = name.split('.').next().unwrap_or(name);
        if listing.has(name) {
            Found::Function
        } else if listing.modules.contains(module) {
            Found::Missing(String::new())
        } else {
            match listing.reason(name) {
                // A module that does not load does not hide the native one.
                Some(reason) if !kind_has_native(cx, kind, name) => Found::Missing(reason),
                _ => Found::Nothing,
            }
        }
    }

    /// As [`Python::find`], outside of a call.
    fn find_later(&self, kind: &str, name: &str) -> Found {
        if !self.bridge.has_files(kind) {
            return Found::Nothing;
        }
        self.seed().map_or(Found::Nothing, |cx| self.find(&cx, kind, name))
    }

    /// Tells whether an execution function can be called, wherever it comes from.
    pub fn has(&self, cx: &Cx, function: &str) -> bool {
        match self.find(cx, "modules", function) {
            Found::Function => true,
            Found::Missing(_) => false,
            Found::Nothing => {
                registry::function_here(cx, function).is_some()
                    || self.package_has(cx, "modules", function)
            }
        }
    }

    /// Tells whether something of users takes the place of a native function.
    pub fn hides(&self, kind: &str, name: &str) -> bool {
        self.names(kind).is_some_and(|users| users.hides(name))
    }

    /// Tells whether an installed `salt` package has what is missing. It is not asked for a module
    /// that we have and this machine has no program for: its own would do no better.
    pub fn package_has(&self, cx: &Cx, kind: &str, name: &str) -> bool {
        registry::missing_anyhow(cx, kind, name).is_none() && self.package_knows(cx, kind, name)
    }

    /// Returns the names of all that an installed package has of a kind, but for what it is not
    /// asked for.
    pub fn packaged_names(&self, cx: &Cx, kind: &str) -> Vec<String> {
        self.remember(cx);
        let mut names =
            self.within(cx, Dict::new(), |session| self.bridge.package_names(session, kind));
        names.retain(|name| registry::missing_anyhow(cx, kind, name).is_none());
        names
    }

    fn package_knows(&self, cx: &Cx, kind: &str, name: &str) -> bool {
        self.within(cx, Dict::new(), |session| self.bridge.package_has(session, kind, name))
    }

    /// Calls a function of users or of an installed package.
    pub fn call(&self, cx: &Cx, kind: &str, name: &str, call: Call) -> Result<Value> {
        Ok(self.call_in(cx, kind, name, call, Dict::new())?)
    }

    fn call_in(
        &self,
        cx: &Cx,
        kind: &str,
        name: &str,
        call: Call,
        extra: Dict,
    ) -> std::result::Result<Value, BridgeError> {
        let is_module = kind == "modules";
        let answer = self.answering(cx, extra, is_module, |session| {
            self.bridge.run(session, kind, name, call)
        })?;
        if let Some(code) = answer.retcode {
            cx.job.set_retcode(code);
        }
        Ok(answer.value)
    }

    /// Has a proxy module connect with its device. Returns whether the module can tell how the
    /// connection is, or, of one that is no proxy module, as text why.
    pub(crate) fn begin_device(&self, cx: &Cx, module: &str) -> Result<Value> {
        // What was loaded so far knows of no device.
        self.reload();
        let begun = self.ask(cx, &format!("{module}.init"), "proxy_begin", vec![module.into()])?;
        if begun.as_str().is_none() {
            self.bridge.set_device(module);
        }
        Ok(begun)
    }

    /// Has the proxy module disconnect from its device.
    pub(crate) fn end_device(&self, cx: &Cx) {
        if let Err(error) =
            self.ask(cx, "the shutdown of the proxy module", "proxy_end", Vec::new())
        {
            tracing::error!("{error}");
        }
    }

    /// Asks anything else of the Python side.
    pub fn ask(&self, cx: &Cx, what: &str, verb: &str, args: Vec<Value>) -> Result<Value> {
        let answer =
            self.within(cx, Dict::new(), |session| self.bridge.ask(session, what, verb, args));
        Ok(answer?.value)
    }

    /// Returns the names of users' functions of a kind, with the modules that hide native ones.
    pub fn names(&self, kind: &str) -> Option<Arc<Listing>> {
        if !self.bridge.has_files(kind) {
            return None;
        }
        self.listing(&self.seed()?, kind).ok()
    }

    /// Describes functions of users and of packages: name → `{doc, spec}`.
    pub fn describe(&self, kind: &str, names: &[String]) -> Dict {
        let Some(cx) = self.seed() else { return Dict::new() };
        let generation = self.bridge.generation();
        let key = |name: &String| (kind.to_owned(), name.clone());
        let mut wanted = Vec::new();
        let found = Dict::new();
        {
            let mut described = self.described.lock();
            if described.0 != generation {
                *described = (generation, HashMap::new());
            }
            for name in names {
                match described.1.get(&key(name)) {
                    Some(known) => {
                        found.insert(name, known);
                    }
                    None => wanted.push(name.clone()),
                }
            }
        }
        if wanted.is_empty() {
            return found;
        }
        let fresh =
            self.within(&cx, Dict::new(), |session| self.bridge.describe(session, kind, &wanted));
        match fresh {
            Ok(fresh) => {
                let mut described = self.described.lock();
                for (name, value) in &fresh {
                    let name = name.to_str().to_string();
                    described.1.insert(key(&name), value.clone());
                    found.insert(name, value);
                }
            }
            Err(error) => tracing::warn!("{error}"),
        }
        found
    }

    /// Collects users' grains: what each function gave, in order. Without a `Cx` (a daemon collects
    /// before it has one) grains modules can call no functions.
    pub fn grains(
        &self,
        opts: &Dict,
        so_far: &Dict,
        cx: Option<&Cx>,
    ) -> std::result::Result<Dict, String> {
        let merged = Dict::new();
        // A device tells its own.
        if !self.bridge.has_files("grains") && !self.bridge.settings().proxy {
            return Ok(merged);
        }
        let deep = opts.get("grains_deep_merge") == Some(true.into());
        let back = cx.map(Back::of);
        let nobody = Nobody;
        let (empty, grains) = (Dict::new(), so_far.deep_copy());
        // A proxy module that tells its grains has its pillar, as ever.
        let pillar = cx.filter(|cx| cx.is_proxy()).map_or_else(Dict::new, |cx| cx.pillar.clone());
        let session = Session {
            opts,
            grains: &grains,
            pillar: &pillar,
            low: &empty,
            jid: "",
            saltenv: "base",
            extra: Dict::new(),
            callbacks: back.as_ref().map_or(&nobody as &dyn Callbacks, |back| back),
            limit: Some(LOADING),
        };
        let answer = self.bridge.ask(&session, "collecting grains", "grains", Vec::new());
        let fragments = answer.map_err(|error| error.to_string())?.value;
        for fragment in fragments.items_of_sequence().unwrap_or_default() {
            if let Some(Value::Dict(given)) =
                fragment.items_of_sequence().and_then(|pair| pair.get(1).cloned())
            {
                merge_grains(&merged, &given, deep);
            }
        }
        Ok(merged)
    }

    /// Returns the filters, tests and globals users' utils add to Jinja.
    pub fn jinja_names(&self, cx: &Cx) -> Names {
        if !self.bridge.has_files("utils") {
            return Names::default();
        }
        let generation = self.bridge.generation();
        {
            let known = self.filters.lock();
            if known.0 == generation {
                return known.1.clone();
            }
        }
        let value = match self.ask(cx, "looking for Jinja filters", "jinja_names", Vec::new()) {
            Ok(value) => value,
            Err(error) => {
                tracing::error!("{error}");
                return Names::default();
            }
        };
        let list = |name: &str| -> Vec<String> {
            let items = value.get(name).and_then(|list| list.items_of_sequence());
            items.unwrap_or_default().iter().map(|item| item.to_str().into()).collect()
        };
        let names =
            Names { filters: list("filters"), tests: list("tests"), globals: list("globals") };
        *self.filters.lock() = (generation, names.clone());
        names
    }

    /// Returns users' external pillars.
    pub fn ext_pillars(self: &Arc<Self>, cx: &Cx) -> Vec<Arc<dyn ExtPillar>> {
        if !self.bridge.has_files("pillar") {
            return Vec::new();
        }
        let listing = match self.listing(cx, "pillar") {
            Ok(listing) => listing,
            Err(error) => {
                tracing::error!("{error}");
                return Vec::new();
            }
        };
        let names = listing.functions.iter().filter_map(|name| name.strip_suffix(".ext_pillar"));
        names
            .map(|name| {
                let (python, cx) = (Arc::clone(self), cx.clone());
                Arc::new(UserPillar { python, cx, name: name.to_owned() }) as Arc<dyn ExtPillar>
            })
            .collect()
    }
}

/// Adds what one function gave; with `grains_deep_merge` maps under the same name become one.
fn merge_grains(merged: &Dict, given: &Dict, deep: bool) {
    use halite_value::merge::{Strategy, merge};
    for (key, value) in given {
        let value = match (merged.get(&key), &value) {
            (Some(old @ Value::Dict(_)), Value::Dict(_)) if deep => {
                merge(&old, &value, Strategy::Recurse, false).unwrap_or(value)
            }
            _ => value,
        };
        merged.insert(key, value);
    }
}

/// Calls a user's function of a kind that is not called by name elsewhere, or one of an installed
/// package; `None` if nobody has it.
pub fn extension(
    rendering: &dyn crate::Rendering,
    cx: &Cx,
    kind: &str,
    function: &str,
    call: Call,
) -> Result<Option<Value>> {
    let Some(python) = rendering.python() else { return Ok(None) };
    python.remember(cx);
    let there = match python.find(cx, kind, function) {
        Found::Function => true,
        Found::Missing(reason) if !reason.is_empty() => {
            return Err(Error::NotLoaded(reason));
        }
        Found::Missing(_) => false,
        Found::Nothing => python.package_has(cx, kind, function),
    };
    if !there {
        return Ok(None);
    }
    if kind == "returners"
        && let (Some(name), Some(ret)) = (function.strip_suffix(".returner"), call.args.first())
    {
        return python.ask(cx, function, "returner", vec![name.into(), ret.clone()]).map(Some);
    }
    if kind == "executors"
        && let Some(name) = function.strip_suffix(".execute")
    {
        let args = std::iter::once(name.into()).chain(call.args).collect();
        return python.ask(cx, function, "execute", args).map(Some);
    }
    python.call(cx, kind, function, call).map(Some)
}

/// Tells whether the binary has a function, and the machine what it needs.
fn kind_has_native(cx: &Cx, kind: &str, name: &str) -> bool {
    match kind {
        "modules" => registry::function_here(cx, name).is_some(),
        "states" => registry::state_here(cx, name).is_some(),
        _ => false,
    }
}

/// A user's `_pillar` module.
struct UserPillar {
    python: Arc<Python>,
    cx: Cx,
    name: String,
}

impl ExtPillar for UserPillar {
    fn name(&self) -> &str {
        &self.name
    }

    fn pillar(&self, ext: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value> {
        // A copy: what the module gives is added to the pillar, which it must not take for this one.
        let cx = Cx { pillar: ext.pillar.shallow_copy(), ..self.cx.clone() };
        let args = vec![
            self.name.as_str().into(),
            ext.minion_id.into(),
            ext.pillar.into(),
            args.0.clone(),
        ];
        self.python.ask(&cx, &format!("ext_pillar {}", self.name), "ext_pillar", args)
    }
}

/// Answers Python with the functions of a minion.
pub(crate) struct Back<'a> {
    cx: &'a Cx,
    others: Option<Others>,
    /// An execution module asks, not a template or a renderer.
    is_module: bool,
}

impl<'a> Back<'a> {
    /// Answers with the functions of a minion alone.
    pub(crate) fn of(cx: &'a Cx) -> Self {
        Self { cx, others: None, is_module: false }
    }
}

/// A call that does not fit ends in Python with a `TypeError` of Python's own.
fn in_pythons_words(cx: &Cx, name: &str, error: Error) -> Error {
    match &error {
        Error::Args(mismatch) => {
            let function = registry::function_here(cx, name);
            let text = crate::failure::python_text(name, function, mismatch);
            Error::raised("TypeError", text)
        }
        _ => error,
    }
}

impl Callbacks for Back<'_> {
    fn call(&self, kind: &str, name: &str, call: Call) -> Result<Value> {
        match kind {
            "modules" if self.is_module => {
                let runtime = self.cx.runtime.clone();
                runtime
                    .call_from_module(self.cx, name, call)
                    .map_err(|error| in_pythons_words(self.cx, name, error))
            }
            "modules" => {
                self.cx.call(name, call).map_err(|error| in_pythons_words(self.cx, name, error))
            }
            "states" => {
                let state = registry::state_here(self.cx, name)
                    .ok_or_else(|| Error::NotFound(name.into()))?;
                let title = call.kwargs.get("name").or_else(|| call.args.first().cloned());
                let test = self.cx.opt_bool("test");
                let (outcome, _) = (state.run)(self.cx, call, test)?;
                Ok(outcome.to_value(&title.unwrap_or_default()).into())
            }
            _ => {
                let answer = self.others.as_ref().and_then(|own| own(self.cx, kind, name, call));
                answer.unwrap_or_else(|| Err(Error::NotFound(name.into())))
            }
        }
    }

    fn describe(&self, kind: &str, name: &str) -> Option<Value> {
        let doc = match kind {
            "modules" => registry::function_here(self.cx, name)?.help("salt '*'", name),
            "states" => (registry::state_here(self.cx, name)?.doc)().to_owned(),
            _ => return None,
        };
        Some(entries! { "doc" => doc }.into())
    }

    fn fire(&self, tag: &str, data: Value) -> Result<bool> {
        let event = Event { tag: tag.into(), data, pretag: None, local: false };
        self.cx.runtime.fire(self.cx, event)
    }

    fn cancelled(&self) -> bool {
        self.cx.host.cancelled()
    }
}

/// The native states, with those of users before and those of packages behind them.
pub(crate) struct AllStates {
    pub(crate) native: Arc<dyn States>,
    pub(crate) python: Arc<Python>,
}

impl AllStates {
    fn is_users(&self, state: &str) -> bool {
        matches!(self.python.find_later("states", state), Found::Function)
    }

    fn is_packaged(&self, cx: &Cx, state: &str) -> bool {
        !self.native.has(cx, state) && self.python.package_has(cx, "states", state)
    }

    /// Runs a state function of Python's, and checks what it returns.
    fn run_python(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome> {
        // A `prereq` is tried out in an ordinary run: `__opts__` and states called from there show it.
        let tried = (cx.opt_bool("test") != test).then(|| {
            let opts = cx.opts.shallow_copy();
            opts.insert("test", test);
            Cx { opts, ..cx.clone() }
        });
        let cx = tried.as_ref().unwrap_or(cx);
        let extra = entries! { "test" => test };
        match self.python.call_in(cx, "states", state, call, extra) {
            Ok(value) => Ok(outcome(&value)),
            Err(BridgeError::Raised(raised)) if !raised.traceback.is_empty() => {
                Err(Error::Raised {
                    class: raised.class().to_owned(),
                    message: raised.message.clone(),
                    traceback: Some(raised.traceback.trim_end().to_owned()),
                })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads what a state function returned; Salt's words for what is no state return.
fn outcome(value: &Value) -> Outcome {
    let malformed =
        |why: &str| Outcome::failed(format!("An exception occurred in this state: {why}"));
    let Value::Dict(ret) = value else {
        return malformed("Malformed state return. Data must be a dictionary type.");
    };
    let needed = ["name", "changes", "result", "comment"];
    let absent: Vec<&str> = needed.into_iter().filter(|key| !ret.contains(*key)).collect();
    if !absent.is_empty() {
        let keys = absent.join(",");
        return malformed(&format!(
            "The following keys were not present in the state return: {keys}"
        ));
    }
    let Some(Value::Dict(changes)) = ret.get("changes") else {
        return malformed("'Changes' should be a dictionary.");
    };
    let result = match ret.get("result").unwrap_or_default() {
        Value::Null => None,
        other => Some(other.truthy()),
    };
    let comment = ret.get("comment").unwrap_or_default();
    let comment = match comment.items_of_sequence() {
        Some(lines) => lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        None => comment.to_str().into(),
    };
    let mut outcome = Outcome::new(result, changes, comment).with_keys(Keys::of(ret));
    for (key, value) in ret {
        match key.to_str().as_str() {
            "changes" | "result" | "comment" => {}
            "warnings" => {
                let items = value.items_of_sequence().unwrap_or_else(|| vec![value.clone()]);
                outcome.warnings = items.iter().map(Value::to_string).collect();
            }
            _ => {
                outcome.extra.insert(key, value);
            }
        }
    }
    outcome
}

impl States for AllStates {
    fn has(&self, cx: &Cx, state: &str) -> bool {
        match self.python.find(cx, "states", state) {
            Found::Function => true,
            Found::Missing(_) => false,
            Found::Nothing => self.native.has(cx, state) || self.is_packaged(cx, state),
        }
    }

    fn missing_reason(&self, cx: &Cx, state: &str) -> Option<String> {
        match self.python.find(cx, "states", state) {
            Found::Missing(reason) if !reason.is_empty() => Some(reason),
            _ => self.native.missing_reason(cx, state),
        }
    }

    fn names(&self, cx: &Cx) -> Vec<String> {
        with_users(self.native.names(cx), self.python.names("states").as_deref())
    }

    fn params(&self, state: &str) -> Params {
        if !self.is_users(state) && registry::state(state).is_some() {
            return self.native.params(state);
        }
        let described = self.python.describe("states", &[state.to_owned()]);
        let Some(spec) = described.get(state).and_then(|found| found.get("spec")) else {
            return self.native.params(state);
        };
        params_of(&spec)
    }

    fn keys(&self, state: &str) -> Keys {
        if self.is_users(state) { Keys::USUAL } else { self.native.keys(state) }
    }

    fn watches(&self, module: &str) -> bool {
        let name = format!("{module}.mod_watch");
        match self.python.find_later("states", &name) {
            Found::Function => true,
            Found::Missing(_) => false,
            Found::Nothing => self.native.watches(module),
        }
    }

    fn aggregate(&self, module: &str) -> Option<Aggregate> {
        match self.python.find_later("states", &format!("{module}.")) {
            Found::Nothing => self.native.aggregate(module),
            _ => None,
        }
    }

    fn can_aggregate(&self, module: &str) -> bool {
        let users = self.python.find_later("states", &format!("{module}.mod_aggregate"));
        matches!(users, Found::Function) || self.aggregate(module).is_some()
    }

    fn aggregate_users(&self, cx: &Cx, low: &Dict, group: &[Dict], running: &Dict) -> Option<Dict> {
        let module = low.get("state")?.to_str();
        match self.python.find(cx, "states", &format!("{module}.mod_aggregate")) {
            Found::Function => self.python.aggregate(cx, &module, low, group, running),
            _ => None,
        }
    }

    fn run(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome> {
        self.python.remember(cx);
        match self.python.find(cx, "states", state) {
            Found::Function => self.run_python(cx, state, call, test),
            _ if self.native.has(cx, state) => self.native.run(cx, state, call, test),
            _ => self.run_python(cx, state, call, test),
        }
    }

    fn watch(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome> {
        let (module, function) = state.split_once('.').unwrap_or((state, ""));
        let users = matches!(self.python.find(cx, "states", state), Found::Function);
        if !users && self.native.has(cx, state) {
            return self.native.watch(cx, state, call, test);
        }
        let name = format!("{module}.mod_watch");
        let params = self.params(&name);
        let kwargs = match params.open {
            true => call.kwargs,
            false => call
                .kwargs
                .entries()
                .into_iter()
                .filter(|(key, _)| params.names.iter().any(|own| *own == *key.to_str()))
                .collect(),
        };
        for wanted in &params.names {
            if let Some(value) = cx.low.get(wanted.as_str()) {
                kwargs.insert(wanted, value);
            }
        }
        if params.open || params.names.iter().any(|own| own == "sfun") {
            kwargs.insert("sfun", function);
        }
        self.run_python(cx, &name, Call { args: Vec::new(), kwargs }, test)
    }
}

/// Reads an argspec.
fn params_of(spec: &Value) -> Params {
    let texts = |name: &str| -> Vec<String> {
        let items = spec.get(name).and_then(|list| list.items_of_sequence());
        items.unwrap_or_default().iter().map(|item| item.to_str().into()).collect()
    };
    let names = texts("args");
    let keyword_only = texts("keyword_only");
    let defaults = spec.get("defaults").and_then(|list| list.items_of_sequence());
    let defaulted = defaults.map_or(0, |list| list.len());
    let required_keywords = texts("required_keywords");
    // Defaults belong to the last positional arguments, then to keyword-only ones.
    let positional = names.len().saturating_sub(keyword_only.len());
    let keyword_defaults = keyword_only.len().saturating_sub(required_keywords.len());
    let first_default = positional.saturating_sub(defaulted.saturating_sub(keyword_defaults));
    let mut required: Vec<String> = names.iter().take(first_default).cloned().collect();
    required.extend(required_keywords);
    let open = spec.get("kwargs").is_some_and(|name| name.truthy());
    Params { names, required, open, closed: !open }
}

/// Adds users' functions to native names, and takes away what their modules hide.
pub(crate) fn with_users(native: Vec<String>, users: Option<&Listing>) -> Vec<String> {
    let Some(users) = users else { return native };
    let mut names: Vec<String> = native.into_iter().filter(|name| !users.hides(name)).collect();
    names.extend(users.functions.iter().cloned());
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn returns_are_checked_in_salts_words() {
        let comment = |value: Value| outcome(&value).comment;
        let prefix = "An exception occurred in this state: ";
        let wrong = "Malformed state return. Data must be a dictionary type.";
        assert_eq!(comment("text".into()), format!("{prefix}{wrong}"));
        assert_eq!(comment(Value::Null), format!("{prefix}{wrong}"));
        let wrong = dict! { "name" => "x", "changes" => "x", "result" => true, "comment" => "" };
        assert_eq!(comment(wrong), format!("{prefix}'Changes' should be a dictionary."));
        let wrong = dict! { "name" => "x", "result" => true, "comment" => "" };
        let keys = "The following keys were not present in the state return: changes";
        assert_eq!(comment(wrong), format!("{prefix}{keys}"));
        let good = outcome(&dict! {
            "name" => "x", "changes" => dict! {}, "result" => "yes",
            "comment" => list!["a", "b"], "warnings" => list!["w"], "pchanges" => 1,
        });
        assert_eq!((good.result, good.comment.as_str()), (Some(true), "a\nb"));
        assert_eq!(good.warnings, ["w"]);
        assert!(good.extra.contains("pchanges") && !good.extra.contains("changes"));
    }

    #[test]
    fn grains_of_several_functions() {
        for (deep, expected) in [(false, dict! { "b" => 2 }), (true, dict! { "a" => 1, "b" => 2 })]
        {
            let merged = Dict::new();
            merge_grains(&merged, &entries! { "x" => dict! { "a" => 1 } }, deep);
            merge_grains(&merged, &entries! { "x" => dict! { "b" => 2 } }, deep);
            assert_eq!(merged.get("x"), Some(expected));
        }
    }

    #[test]
    fn arguments_of_a_python_function() {
        let spec = dict! {
            "args" => list!["name", "a", "b", "k", "r"], "defaults" => list![1, 2],
            "keyword_only" => list!["k", "r"], "required_keywords" => list!["r"],
            "kwargs" => "kwargs",
        };
        let params = params_of(&spec);
        assert_eq!(params.required, ["name", "a", "r"]);
        assert!(params.open && params.names.len() == 5);
    }
}
