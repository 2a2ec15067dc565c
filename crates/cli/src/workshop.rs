//! What functions of the master work with: in `salt-run`, in the master, in the reactor.
//!
//! A [`Workshop`] is made once: its templates stay compiled. For each call it gives a `Cx` with the
//! master's configuration, the execution functions of this machine, and the states of
//! orchestrations (`salt.*`) beside the usual ones. [`MasterWorks`] is what the master daemon gets
//! of it: runners, wheel functions and the rendering of reactor files.

use std::{
    path::Path,
    sync::{Arc, OnceLock, Weak},
};

use halite_host::Os;
use halite_master::{
    Master, Settings,
    eauth::{Authenticator, Systems},
    engines::{Engines, EventReturner},
    job_cache::{JobCache, Record, Trouble},
    reactor::{RenderError, Rendering},
    runners::{Call as RunnerCall, Outcome as RunnerOutcome, Runners},
};
use halite_minion::{
    Alone, Engine, Link, Masterless, Parts, Pipes, Python, Rendering as _, failure, kinds,
    python::Found, registry::Native,
};
use halite_spec::{Call, Cx, Error, Event, Function, Host, Job, Refresh, Result, Template};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, SmolStr, Value};

/// What functions of the master work with.
pub struct Workshop {
    host: Arc<dyn Host>,
    opts: Dict,
    pipes: Arc<Pipes>,
    grains: Option<OnceLock<Dict>>,
    python: Option<Arc<Python>>,
}

impl Workshop {
    pub fn new(opts: &Dict, grains: bool) -> Self {
        let opts = opts.shallow_copy();
        // Files come from this machine's own roots.
        opts.insert("file_client", "local");
        let host: Arc<dyn Host> = Arc::new(Os::new());
        let pipes = Arc::new(Pipes::new(&opts));
        let python = pipes.python();
        if let Some(python) = &python {
            let names = |list: Vec<(String, _)>| list.into_iter().map(|(name, _)| name).collect();
            python.bridge().add_native("runners", names(halite_runners::runners()));
            python.bridge().add_native("wheel", names(halite_runners::wheel_functions()));
            python.set_others(Arc::new(native_function));
        }
        Self { host, opts, pipes, grains: grains.then(OnceLock::new), python }
    }

    /// The users' Python, if there is any.
    pub fn python(&self) -> Option<&Arc<Python>> {
        self.python.as_ref()
    }

    /// Runs a runner: the user's if there is one, else ours, else that of an installed package;
    /// `None` if nobody has it.
    pub fn runner(&self, cx: &Cx, name: &str, call: Call) -> Option<Result<Value>> {
        self.function(cx, "runners", halite_runners::runner(name), name, call)
    }

    /// As [`Workshop::runner`], for a wheel function.
    pub fn wheel(&self, cx: &Cx, name: &str, call: Call) -> Option<Result<Value>> {
        self.function(cx, "wheel", halite_runners::wheel_function(name), name, call)
    }

    fn function(
        &self,
        cx: &Cx,
        kind: &str,
        native: Option<&Function>,
        name: &str,
        call: Call,
    ) -> Option<Result<Value>> {
        let Some(python) = &self.python else {
            return native.map(|native| (native.call)(cx, call));
        };
        python.remember(cx);
        match python.find(cx, kind, name) {
            Found::Function => return Some(python.call(cx, kind, name, call)),
            Found::Missing(reason) if !reason.is_empty() => {
                return Some(Err(Error::NotLoaded(reason)));
            }
            Found::Missing(_) => return None,
            Found::Nothing => {}
        }
        match native {
            Some(native) => Some((native.call)(cx, call)),
            None if python.package_has(cx, kind, name) => Some(python.call(cx, kind, name, call)),
            None => None,
        }
    }

    /// The link of a master that is not there.
    pub fn alone(&self) -> Alone {
        Alone::new(Arc::clone(&self.host), &self.opts)
    }

    /// Grains cost a moment; only what may look at them gets them.
    fn grains(&self, fun: &str) -> Dict {
        match &self.grains {
            Some(grains)
                if fun.starts_with("state.") || fun.starts_with("salt.") || fun.is_empty() =>
            {
                grains.get_or_init(|| halite_grains::collect(&*self.host, &self.opts)).clone()
            }
            _ => Dict::new(),
        }
    }

    /// Builds the context of one call.
    pub fn cx(&self, link: Arc<dyn Link>, job: Job) -> Cx {
        let parts = Parts {
            sources: Arc::new(Masterless::new(Arc::clone(&self.pipes))),
            rendering: Arc::clone(&self.pipes) as _,
            link,
            states: Arc::new(Native),
        };
        // The same for all, so that Python gets it once: who changes an option copies them first.
        let opts = self.opts.clone();
        Cx {
            files: Arc::new(halite_fileserver::Local::new(Arc::clone(&self.host), &opts)),
            runtime: Arc::new(Engine::new(parts)),
            grains: self.grains(&job.fun),
            job: Arc::new(job),
            pillar: Dict::new(),
            context: Dict::new(),
            low: Dict::new(),
            host: Arc::clone(&self.host),
            opts,
        }
    }
}

/// What users' Python calls of ours.
fn native_function(cx: &Cx, kind: &str, name: &str, call: Call) -> Option<Result<Value>> {
    let found = match kind {
        "runners" => halite_runners::runner(name),
        "wheel" => halite_runners::wheel_function(name),
        _ => None,
    };
    found.map(|function| (function.call)(cx, call))
}

/// The tag of an event a runner fires: its own ones stand below its job.
pub fn runner_tag(jid: &str, tag: &str) -> String {
    match tag {
        "progress" | "args" => format!("salt/run/{jid}/{tag}"),
        other => other.to_owned(),
    }
}

/// Everything the master daemon gets from here.
pub struct MasterWorks {
    workshop: Workshop,
}

impl MasterWorks {
    pub fn new(opts: &Dict) -> Self {
        Self { workshop: Workshop::new(opts, true) }
    }

    fn cx(&self, master: &Arc<Master>, jid: &str, fun: &str, user: &str) -> Cx {
        // `salt-run saltutil.sync_modules` is another process, and people copy files there.
        if let Some(python) = self.workshop.python() {
            // Nobody's: a reaction, or a minion that asks for its tops.
            match user.is_empty() {
                true => python.bridge().look_again_at_times(),
                false => python.bridge().look_again(),
            }
        }
        let link = InMaster {
            alone: self.workshop.alone(),
            master: Arc::clone(master),
            jid: jid.to_owned(),
        };
        self.workshop.cx(Arc::new(link), Job::new(jid, fun, user))
    }

    fn call(&self, master: &Arc<Master>, call: &RunnerCall) -> Option<RunnerOutcome> {
        let user = if call.user == halite_master::reactor::USER { "" } else { call.user.as_str() };
        let cx = self.cx(master, call.jid.as_str(), &call.function, user);
        let arguments = Call { args: call.args.clone(), kwargs: call.kwargs.clone() };
        let ran = self.workshop.runner(&cx, &call.function, arguments)?;
        Some(outcome("runner", &call.function, &cx, call, ran))
    }
}

impl MasterWorks {
    /// Runs a wheel function that the binary lacks: the user's, or that of an installed package.
    pub fn users_wheel(&self, master: &Arc<Master>, call: &RunnerCall) -> Option<RunnerOutcome> {
        let cx = self.cx(master, call.jid.as_str(), &call.function, &call.user);
        let arguments = Call { args: call.args.clone(), kwargs: call.kwargs.clone() };
        let ran = self.workshop.wheel(&cx, &call.function, arguments)?;
        Some(outcome("wheel", &call.function, &cx, call, ran))
    }
}

/// Says how a native runner is called, if that is what went wrong: in Salt this is its return.
pub fn usage(name: &str, call: &Call, error: &Error) -> Option<String> {
    let function = halite_runners::runner(name);
    let why = match error {
        Error::Args(wrong) => function
            .and_then(|function| failure::misfit(function, call))
            .unwrap_or_else(|| failure::python_text(name, function, wrong)),
        Error::Invalid(why) => why.clone(),
        _ => return None,
    };
    let doc = function.map(|function| function.help("salt-run", name)).unwrap_or_default();
    Some(format!("\nPassed invalid arguments: {why}\n\nUsage:\n\n{doc}"))
}

fn outcome(
    form: &str,
    name: &str,
    cx: &Cx,
    call: &RunnerCall,
    ran: Result<Value>,
) -> RunnerOutcome {
    match ran {
        Ok(value) => {
            let code = value.get("retcode").and_then(|code| code.as_int()).unwrap_or(0);
            RunnerOutcome { success: code == 0 && cx.job.retcode() == 0, value }
        }
        Err(error) => {
            let given = Call { args: call.args.clone(), kwargs: call.kwargs.clone() };
            let usage = if form == "runner" { usage(name, &given, &error) } else { None };
            let text =
                usage.unwrap_or_else(|| format!("Exception occurred in {form} {name}: {error}"));
            RunnerOutcome { value: text.into(), success: false }
        }
    }
}

/// What a Python engine of the master sees, for as long as there is a master.
struct EngineGround {
    works: Arc<MasterWorks>,
    master: Weak<Master>,
}

/// Users' own engines.
pub struct PythonEngines(pub Arc<MasterWorks>);

impl Engines for PythonEngines {
    fn start(
        &self,
        master: &Arc<Master>,
        name: &str,
        config: &Dict,
    ) -> Option<std::result::Result<(), String>> {
        let ground =
            Arc::new(EngineGround { works: Arc::clone(&self.0), master: Arc::downgrade(master) });
        let engine = kinds::python_engine(name, config);
        let surroundings = Arc::clone(&ground);
        let cx = move || {
            let master = surroundings.master.upgrade()?;
            let cx = surroundings.works.cx(&master, "", "", "root");
            let opts = cx.opts.shallow_copy();
            opts.insert("__role", "master");
            Some(Cx { opts, ..cx })
        };
        let is_wanted = move || ground.master.upgrade().is_some_and(|master| !master.is_stopping());
        Some(kinds::keep_on_thread(engine, cx, is_wanted).map_err(|error| error.to_string()))
    }
}

/// A user's `_auth` module, or one of an installed package.
struct PythonAuth {
    works: Arc<MasterWorks>,
    name: String,
}

impl PythonAuth {
    fn ask(&self, what: &str, fields: &Dict) -> Value {
        let workshop = &self.works.workshop;
        let Some(python) = workshop.python() else { return Value::Null };
        let cx = workshop.cx(Arc::new(workshop.alone()), Job::new("", "", ""));
        python.remember(&cx);
        python.authenticate(&cx, &self.name, what, fields).unwrap_or_else(|error| {
            tracing::error!("eauth `{}`: {error}", self.name);
            Value::Null
        })
    }
}

impl Authenticator for PythonAuth {
    fn check(&self, _: &Settings, fields: &Dict) -> bool {
        self.ask("auth", fields).truthy()
    }

    fn groups(&self, _: &Settings, fields: &Dict) -> Vec<SmolStr> {
        let groups = self.ask("groups", fields);
        groups.items_of_sequence().unwrap_or_default().iter().map(Value::to_str).collect()
    }

    fn acl(&self, _: &Settings, fields: &Dict) -> Option<Vec<Value>> {
        self.ask("acl", fields).items_of_sequence()
    }
}

/// Returns the systems of `external_auth` that are not built in.
pub fn authenticators(works: &Arc<MasterWorks>, opts: &Dict) -> Systems {
    let Some(Value::Dict(wanted)) = opts.get("external_auth") else { return Systems::new() };
    let own = halite_master::eauth::built_in();
    let names = wanted.keys().into_iter().map(|name| name.to_str());
    names
        .filter(|name| !own.contains_key(name))
        .map(|name| {
            let system = PythonAuth { works: Arc::clone(works), name: name.to_string() };
            (name, Box::new(system) as Box<dyn Authenticator>)
        })
        .collect()
}

impl EventReturner for MasterWorks {
    fn return_events(
        &self,
        master: &Arc<Master>,
        events: &[Value],
    ) -> std::result::Result<(), String> {
        let cx = self.cx(master, "", "event_return", "root");
        let Some(names) = cx.opt("event_return").filter(Value::truthy) else { return Ok(()) };
        let names = names.items_of_sequence().unwrap_or_else(|| vec![names]);
        let mut failed = Vec::new();
        for name in names.iter().map(Value::to_str) {
            if let Err(error) = halite_returners::deliver_events(&cx, &name, events) {
                failed.push(error.to_string());
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
    }
}

impl JobCache for MasterWorks {
    fn save(
        &self,
        master: &Arc<Master>,
        returner: &str,
        records: &[Record],
    ) -> std::result::Result<(), Trouble> {
        use halite_returners::cache;
        let cx = self.cx(master, "", "save_load", "root");
        let own = |record: &Record| match record.clone() {
            Record::Load { jid, load } => cache::Record::Load { jid, load },
            Record::Return(ret) => cache::Record::Return(ret),
        };
        let records: Vec<_> = records.iter().map(own).collect();
        match cache::save(&cx, returner, &records) {
            Ok(refused) if refused.is_empty() => Ok(()),
            Ok(refused) => Err(Trouble::Rejected(refused)),
            Err(cache::Refused::Unreachable(why)) => Err(Trouble::Unreachable(why)),
            Err(cache::Refused::Rejected(why)) => Err(Trouble::Rejected(vec![(0, why)])),
        }
    }

    fn clean(&self, master: &Arc<Master>, returner: &str) -> std::result::Result<(), String> {
        let cx = self.cx(master, "", "clean_old_jobs", "root");
        halite_returners::cache::clean(&cx, returner).map_err(|error| error.to_string())
    }
}

impl Runners for MasterWorks {
    fn run(&self, master: &Arc<Master>, call: &RunnerCall) -> Option<RunnerOutcome> {
        self.call(master, call)
    }

    fn deliver(&self, master: &Arc<Master>, returners: &[String], job: &Dict, ret: &Dict) {
        let cx = self.cx(master, "", "", "root");
        let given = (job.get("return_config"), job.get("return_kwargs"));
        let options = halite_returners::Options::given(given.0, given.1);
        halite_returners::deliver_all(&cx, returners.iter().map(String::as_str), &options, ret);
    }

    fn tops(&self, master: &Arc<Master>, minion_opts: &Dict) -> Dict {
        let cx = self.cx(master, "", "", "");
        cx.runtime.clone().master_tops(&cx, minion_opts)
    }

    fn execution(&self, master: &Arc<Master>, call: &RunnerCall) -> Option<RunnerOutcome> {
        let cx = self.cx(master, call.jid.as_str(), &call.function, &call.user);
        if !cx.runtime.has(&cx, &call.function) {
            return None;
        }
        let arguments = Call { args: call.args.clone(), kwargs: call.kwargs.clone() };
        let ran = cx.call(&call.function, arguments);
        Some(outcome("caller", &call.function, &cx, call, ran))
    }
}

impl Rendering for MasterWorks {
    fn files(
        &self,
        master: &Arc<Master>,
        entry: &str,
        names: &Dict,
    ) -> std::result::Result<Vec<(String, Value)>, RenderError> {
        let cx = self.cx(master, "", "", "");
        let failed = |error: Error| RenderError::Failed(error.to_string());
        let paths = if entry.starts_with("salt://") {
            cx.files.cache(entry, "base").map_err(failed)?.into_iter().collect()
        } else {
            expand(&*cx.host, entry)
        };
        if paths.is_empty() {
            return Err(RenderError::Missing);
        }
        let mut rendered = Vec::new();
        for path in paths {
            let text = cx.host.read_text(&path).map_err(|_| RenderError::Missing)?;
            let name = path.to_string_lossy().into_owned();
            let template = Template {
                engine: cx.opt_str("renderer").map_or_else(|| "jinja|yaml".into(), Into::into),
                text,
                source: Some(name.clone()),
                saltenv: "base".into(),
                sls: Some(String::new()),
                context: names.clone(),
            };
            let value = cx.runtime.compile(&cx, &template).map_err(failed)?;
            let shown = if entry.starts_with("salt://") { entry.to_owned() } else { name };
            rendered.push((shown, value));
        }
        Ok(rendered)
    }

    fn text(
        &self,
        master: &Arc<Master>,
        text: &str,
        names: &Dict,
    ) -> std::result::Result<String, RenderError> {
        let cx = self.cx(master, "", "", "");
        let template = Template {
            engine: "jinja".into(),
            text: text.to_owned(),
            source: None,
            saltenv: "base".into(),
            sls: None,
            context: names.clone(),
        };
        cx.runtime.render(&cx, &template).map_err(|error| RenderError::Failed(error.to_string()))
    }
}

/// Returns the files a path or a glob means, sorted.
fn expand(host: &dyn Host, entry: &str) -> Vec<std::path::PathBuf> {
    let is_glob = |part: &str| part.contains(['*', '?', '[']);
    if !is_glob(entry) {
        let path = Path::new(entry);
        return if host.is_file(path).unwrap_or(false) {
            vec![path.to_owned()]
        } else {
            Vec::new()
        };
    }
    let mut found = vec![std::path::PathBuf::from(if entry.starts_with('/') { "/" } else { "" })];
    for part in entry.split('/').filter(|part| !part.is_empty()) {
        found = found
            .into_iter()
            .flat_map(|folder| {
                if !is_glob(part) {
                    return vec![folder.join(part)];
                }
                let mut names: Vec<String> = host
                    .read_dir(&folder)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|name| name.to_string_lossy().into_owned())
                    .filter(|name| !name.starts_with('.') && fnmatch(name, part))
                    .collect();
                names.sort();
                names.into_iter().map(|name| folder.join(name)).collect()
            })
            .collect();
    }
    found.retain(|path| host.is_file(path).unwrap_or(false));
    found
}

/// The way from a function in the master to the master itself.
struct InMaster {
    alone: Alone,
    master: Arc<Master>,
    jid: String,
}

impl Link for InMaster {
    fn fire(&self, _: &Cx, event: Event) -> Result<bool> {
        if event.tag == halite_runners::PRINT {
            tracing::info!("{}", event.data);
            return Ok(true);
        }
        let data = event.data.as_dict().cloned().unwrap_or_default();
        self.master.bus.fire(runner_tag(&self.jid, &event.tag), data);
        Ok(true)
    }

    fn ask(&self, cx: &Cx, load: Value) -> Result<Value> {
        if let (Some("halite_orchestration"), Value::Dict(load)) =
            (load.get_str("cmd").as_deref(), &load)
        {
            let answered = self.master.orchestration(load);
            return answered.map_err(|error| Error::failed(error.to_string()));
        }
        halite_runners::answer(cx, &load).unwrap_or_else(|| self.alone.ask(cx, load))
    }

    fn running(&self, cx: Option<&Cx>) -> Vec<Value> {
        self.alone.running(cx)
    }

    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value> {
        self.alone.signal_job(jid, signal)
    }

    fn refreshed(&self, cx: &Cx, what: Refresh) -> Result<()> {
        self.alone.refreshed(cx, what)
    }
}
