//! `Cx`: everything Salt injects as dunders, as one visible argument.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use halite_value::{Dict, SmolStr, Value, lookup};

use crate::{Call, Error, Files, Function, Host, Result, StateFn, StateRequest};

/// What a function or a state works with. Cheap to clone: every part is shared.
#[derive(Clone)]
pub struct Cx {
    /// The machine.
    pub host: Arc<dyn Host>,
    /// The configuration, `__opts__`.
    pub opts: Dict,
    /// `__grains__`
    pub grains: Dict,
    /// `__pillar__`
    pub pillar: Dict,
    /// `__context__`: lives as long as the job.
    pub context: Dict,
    /// `__low__`: the chunk of the state that runs; empty outside of states.
    pub low: Dict,
    pub job: Arc<Job>,
    pub files: Arc<dyn Files>,
    pub runtime: Arc<dyn Runtime>,
}

/// The job a function runs in.
#[derive(Debug, Default)]
pub struct Job {
    pub jid: SmolStr,
    /// Who asked for it.
    pub user: SmolStr,
    /// The function asked for, `state.apply` say.
    pub fun: SmolStr,
    retcode: AtomicI64,
}

impl Job {
    pub fn new(jid: impl Into<SmolStr>, fun: impl Into<SmolStr>, user: impl Into<SmolStr>) -> Self {
        Self { jid: jid.into(), user: user.into(), fun: fun.into(), retcode: AtomicI64::new(0) }
    }

    /// Sets what the job's return code will be, as `__context__['retcode']` does.
    pub fn set_retcode(&self, code: i64) {
        self.retcode.store(code, Ordering::Relaxed);
    }

    pub fn retcode(&self) -> i64 {
        self.retcode.load(Ordering::Relaxed)
    }
}

/// An event to be fired.
#[derive(Clone, Debug)]
pub struct Event {
    pub tag: String,
    pub data: Value,
    /// Prefix under which the master shall fire it too.
    pub pretag: Option<String>,
    /// For the local bus only.
    pub local: bool,
}

/// What can be loaded anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    Grains,
    Pillar {
        /// Compiled for this, also where a master keeps it for a while (`pillar_cache`).
        fresh: bool,
    },
    Modules,
    Beacons,
    Schedule,
    Matchers,
}

/// A text to be rendered by a template engine.
#[derive(Clone, Debug)]
pub struct Template {
    /// `jinja`, `py`, `mako` …; or a renderer pipe.
    pub engine: String,
    pub text: String,
    /// Where the text came from: a `salt://` path or a file name; imports are relative to it.
    pub source: Option<String>,
    pub saltenv: String,
    /// The SLS that asks, for `sls`, `slspath` …
    pub sls: Option<String>,
    /// Further names: `context` over `defaults`.
    pub context: Dict,
}

/// The engine behind a [`Cx`].
pub trait Runtime: Send + Sync {
    /// Calls an execution function by name, native or the user's.
    fn call(&self, cx: &Cx, function: &str, call: Call) -> Result<Value>;

    /// As `call`, by a user's own module: what jobs and templates may not call, it may.
    fn call_from_module(&self, cx: &Cx, function: &str, call: Call) -> Result<Value> {
        self.call(cx, function, call)
    }

    /// Tells whether a function of that name can be called.
    fn has(&self, cx: &Cx, function: &str) -> bool;

    /// Returns the declaration of a native function, if its module exists here.
    fn function(&self, cx: &Cx, name: &str) -> Option<&'static Function>;

    /// Returns the names of all functions, sorted.
    fn function_names(&self, cx: &Cx) -> Vec<String>;

    /// Returns the names of all functions (`modules`) or states (`states`) that an installed Python
    /// package has besides; to know them all of it has to be loaded.
    fn packaged_names(&self, cx: &Cx, kind: &str) -> Vec<String> {
        let _ = (cx, kind);
        Vec::new()
    }

    /// Returns the declaration of a native state: `file.absent`.
    fn state(&self, cx: &Cx, name: &str) -> Option<&'static StateFn>;

    fn state_names(&self, cx: &Cx) -> Vec<String>;

    /// Describes functions (`modules`) or states (`states`) that are not native: name →
    /// `{doc, spec: {args, defaults, varargs, kwargs}}`.
    fn described(&self, kind: &str, names: &[String]) -> Dict {
        let _ = (kind, names);
        Dict::new()
    }

    /// Describes all functions of a kind that minions do not call themselves, `runners` or
    /// `returners`, by name, as [`Runtime::described`] does; `None` if this program has none.
    fn others(&self, kind: &str) -> Option<Dict> {
        let _ = kind;
        None
    }

    /// Renders a template to text.
    fn render(&self, cx: &Cx, template: &Template) -> Result<String>;

    /// Runs a source text through a renderer pipe (`jinja|yaml`) to data.
    fn compile(&self, cx: &Cx, template: &Template) -> Result<Value>;

    /// Fires an event; `false` when it could not be delivered.
    fn fire(&self, cx: &Cx, event: Event) -> Result<bool>;

    fn refresh(&self, cx: &Cx, what: Refresh) -> Result<bool>;

    /// Returns the state engine.
    fn states(&self) -> &dyn StateRuns;

    /// Sends a request to the master and returns its answer; an error when there is none.
    fn ask_master(&self, cx: &Cx, load: Value) -> Result<Value>;

    /// Tells whether a target expression matches this minion.
    fn matches(&self, cx: &Cx, target: &str, kind: &str) -> Result<bool>;

    /// Returns the pillar compiled anew, without changing the current one.
    fn compile_pillar(&self, cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Result<Dict>;

    /// As [`Runtime::compile_pillar`], with one more external source for this time: its name → its
    /// arguments.
    fn compile_pillar_with(&self, cx: &Cx, overrides: &Dict, ext: &Dict) -> Result<Dict> {
        let _ = ext;
        self.compile_pillar(cx, overrides, None)
    }

    /// Returns what runs now, as `saltutil.running` shows it.
    fn running(&self) -> Vec<Value>;

    /// Returns what runs now and is in the way of a job that bears no other beside it: what came
    /// before it. Jobs of other processes may have come before; to one that `waits`, which they
    /// might do as well, only those of lower number count.
    fn ahead(&self, jid: &str, waits: bool) -> Vec<Value> {
        ahead_of(self.running(), jid, waits)
    }

    /// Sends a signal to a job; `false` if it is not running.
    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value>;

    /// Calls a function of a user's own beacon or returner (`app_latency.beacon` of the kind
    /// `beacons`), or of a returner of ours (`mysql.get_jid` of the kind `returners`); `None` if
    /// there is none of that name.
    fn call_extension(
        &self,
        cx: &Cx,
        kind: &str,
        function: &str,
        call: Call,
    ) -> Result<Option<Value>> {
        let _ = (cx, kind, function, call);
        Ok(None)
    }

    /// Returns what the programs of `master_tops` give a minion with these options: environment →
    /// list of SLS.
    fn master_tops(&self, cx: &Cx, minion_opts: &Dict) -> Dict {
        let _ = (cx, minion_opts);
        Dict::new()
    }

    /// Asks the minion's daemon of this machine (`manage_schedule`, `manage_beacons`) and waits for
    /// the event that answers, if one does; `None` when no daemon heard it.
    fn ask_daemon(
        &self,
        cx: &Cx,
        tag: &str,
        request: &Dict,
        reply: Option<&str>,
    ) -> Result<Option<Dict>> {
        let _ = (cx, tag, request, reply);
        Ok(None)
    }
}

/// Keeps of jobs whose order nobody knows those that are ahead of one, as [`Runtime::ahead`] says.
pub fn ahead_of(jobs: Vec<Value>, jid: &str, waits: bool) -> Vec<Value> {
    let is_ahead = |job: &Value| {
        let other = job.get("jid").unwrap_or_default().to_str();
        if waits { *other < *jid } else { other != jid }
    };
    jobs.into_iter().filter(is_ahead).collect()
}

/// The state engine as the `state` module drives it.
pub trait StateRuns: Send + Sync {
    /// Compiles and runs; `request` holds `mods`, `saltenv`, `test`, `pillar`, `exclude` …
    fn apply(&self, cx: &Cx, request: &StateRequest) -> Result<Value>;

    /// Compiles only: returns high data, low data, the top file …
    fn show(&self, cx: &Cx, request: &StateRequest) -> Result<Value>;
}

impl Cx {
    /// Calls another function by name; use it where the user gives the name.
    pub fn call(&self, function: &str, call: Call) -> Result<Value> {
        self.runtime.clone().call(self, function, call)
    }

    /// Tells whether a proxy minion works here: what it does concerns its device, not this machine.
    pub fn is_proxy(&self) -> bool {
        self.opts.get("proxyid").is_some_and(|id| id.truthy())
    }

    /// Calls a function of the proxy module of a proxy minion; `None` where there is no such.
    pub fn call_device(&self, function: &str, call: Call) -> Result<Option<Value>> {
        let proxy = self.opts.get("proxy").filter(|_| self.is_proxy());
        let Some(module) = proxy.and_then(|proxy| proxy.get("proxytype")) else { return Ok(None) };
        let name = format!("{module}.{function}");
        self.runtime.clone().call_extension(self, "proxy", &name, call)
    }

    /// Returns a configuration option.
    pub fn opt(&self, name: &str) -> Option<Value> {
        self.opts.get(name)
    }

    /// Returns a configuration option that is text.
    pub fn opt_str(&self, name: &str) -> Option<SmolStr> {
        match self.opts.get(name) {
            Some(Value::Str(text)) => Some(text),
            _ => None,
        }
    }

    pub fn opt_bool(&self, name: &str) -> bool {
        self.opts.get(name).is_some_and(|value| value.truthy())
    }

    /// Returns a grain by name, `a:b` paths included.
    pub fn grain(&self, path: &str) -> Option<Value> {
        lookup::traverse(&Value::from(&self.grains), path, ":")
    }

    /// Returns a text grain, or the empty text.
    pub fn grain_str(&self, name: &str) -> SmolStr {
        self.grain(name).map(|value| value.to_str()).unwrap_or_default()
    }

    /// Returns the minion's id.
    pub fn id(&self) -> SmolStr {
        self.opt_str("id").unwrap_or_default()
    }

    /// Returns the environment files are taken from when none is named: the state's, or the
    /// configured one, or `base`.
    pub fn saltenv(&self) -> String {
        let named = |dict: &Dict, key: &str| dict.get(key).filter(Value::truthy);
        named(&self.low, "saltenv")
            .or_else(|| named(&self.low, "__env__"))
            .or_else(|| named(&self.opts, "saltenv"))
            .map_or_else(|| "base".to_owned(), |env| env.to_string())
    }

    /// Returns a copy that cannot change the machine.
    pub fn looking_only(&self) -> Self {
        Self { host: Arc::new(crate::host::ReadOnly(self.host.clone())), ..self.clone() }
    }

    /// Waits, unless the job is cancelled meanwhile.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        self.host.sleep(time)?;
        if self.host.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
