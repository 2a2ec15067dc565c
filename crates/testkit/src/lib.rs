//! Fixtures for tests: a minion on a machine in memory, and a runner of case files.
//!
//! [`Kit`] is a whole minion without a daemon: native functions and states, `salt://` files from a
//! map, YAML rendering, on a [`Fake`] machine (or any other host). [`cases`] runs the YAML files
//! below a crate's `tests/cases`: arguments, the machine as found, the expected return, the
//! machine after. [`git`] makes repositories.

pub mod cases;
pub mod git;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use halite_highstate::{Params, States};
use halite_host::Fake;
use halite_minion::{
    Engine, Link, Parts, Rendering, Sources,
    daemon::beacons::Board,
    registry::{self, Native},
};
use halite_schedule::Table;
use halite_spec::{
    Aggregate, Call, Cx, Error, Event, Files, Host, Job, Outcome, Refresh, Result, StateRequest,
    Template, What,
};
use halite_value::{
    Dict, Value, entries,
    yaml::{self, ErrorKind},
};
use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;

/// A minion for tests.
#[derive(Clone)]
pub struct Kit {
    pub cx: Cx,
    /// The machine, when it is one in memory.
    pub fake: Fake,
    link: Arc<Recorder>,
}

impl Default for Kit {
    fn default() -> Self {
        Self::new()
    }
}

impl Kit {
    /// Returns a minion named `kit` on an empty machine that says it is a Debian.
    pub fn new() -> Self {
        let fake = Fake::new();
        Self::on(Arc::new(fake.clone()), fake)
    }

    /// Returns a minion on another host (the real one, a failing one).
    pub fn on(host: Arc<dyn Host>, fake: Fake) -> Self {
        let link = Arc::new(Recorder::default());
        let parts = Parts {
            rendering: Arc::new(Plain),
            sources: Arc::new(Fixed),
            link: link.clone(),
            states: Arc::new(Equipped),
        };
        let opts = entries! {
            "id" => "kit", "cachedir" => "/var/cache/salt/minion", "file_client" => "local",
            "renderer" => "yaml", "saltenv" => "base", "test" => false, "hash_type" => "sha256",
            "conf_file" => "/etc/salt/minion", "config_dir" => "/etc/salt",
        };
        let grains = entries! {
            "id" => "kit", "os" => "Debian", "os_family" => "Debian", "kernel" => "Linux",
            "osrelease" => "12", "osmajorrelease" => 12, "oscodename" => "bookworm",
            "osarch" => "amd64", "cpuarch" => "x86_64", "init" => "systemd", "shell" => "/bin/sh",
            "virtual" => "physical", "num_cpus" => 2,
        };
        let cx = Cx {
            host,
            opts,
            grains,
            pillar: Dict::new(),
            context: Dict::new(),
            low: Dict::new(),
            job: Arc::new(Job::new("20260101000000000000", "test.ping", "root")),
            files: Arc::new(Served::default()),
            runtime: Arc::new(Engine::new(parts)),
        };
        Self { cx, fake, link }
    }

    /// Serves `salt://` files of the environment `base`.
    #[must_use]
    pub fn serving(mut self, files: &[(&str, &str)]) -> Self {
        let served =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        let files = Served(served.collect());
        for (path, content) in &files.0 {
            self.fake.file(Served::cached(path), content);
        }
        self.cx.files = Arc::new(files);
        self
    }

    /// Calls an execution function.
    pub fn call(&self, function: &str, call: Call) -> Result<Value> {
        match registry::function(function) {
            Some(native) => (native.call)(&self.cx, call),
            None => self.cx.call(function, call),
        }
    }

    /// Runs one state and returns its return dict.
    pub fn state(&self, state: &str, args: &Dict, test: bool) -> Dict {
        let (module, function) = state.split_once('.').unwrap_or((state, ""));
        let low = args.deep_copy();
        low.insert("state", module);
        low.insert("fun", function);
        low.get_or_insert_with("name", || "kit".into());
        low.insert("__id__", low.get("name"));
        let request = StateRequest {
            test: Some(test),
            ..StateRequest::new(What::Low(Value::list([Value::Dict(low)])))
        };
        let ret = self.cx.runtime.states().apply(&self.cx, &request);
        match ret {
            Ok(Value::Dict(returns)) => match returns.values().into_iter().next() {
                Some(Value::Dict(ret)) => ret,
                other => panic!("no return of {state}: {other:?}"),
            },
            other => panic!("{state} did not run: {other:?}"),
        }
    }

    /// Runs an SLS given as YAML text and returns tag → return.
    pub fn apply(&self, sls: &str, test: bool) -> Value {
        let request = StateRequest {
            test: Some(test),
            ..StateRequest::new(What::TemplateText { text: sls.to_owned(), path: None })
        };
        self.cx.runtime.states().apply(&self.cx, &request).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the events fired so far.
    pub fn events(&self) -> Vec<Event> {
        self.link.events.lock().clone()
    }
}

/// The native states of a machine that has every program: a case says what a program answers, not
/// where it is installed.
struct Equipped;

impl States for Equipped {
    fn has(&self, _: &Cx, state: &str) -> bool {
        registry::state(state).is_some()
    }

    fn missing_reason(&self, _: &Cx, _: &str) -> Option<String> {
        None
    }

    fn names(&self, _: &Cx) -> Vec<String> {
        registry::state_names()
    }

    fn params(&self, state: &str) -> Params {
        Native.params(state)
    }

    fn watches(&self, module: &str) -> bool {
        Native.watches(module)
    }

    fn aggregate(&self, module: &str) -> Option<Aggregate> {
        Native.aggregate(module)
    }

    fn run(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome> {
        Native.run(cx, state, call, test)
    }

    fn watch(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome> {
        Native.watch(cx, state, call, test)
    }
}

/// Renders nothing: the text is YAML already.
struct Plain;

impl Rendering for Plain {
    fn render(&self, _: &Cx, template: &Template) -> Result<String> {
        let mut text = template.text.clone();
        // Enough of a template language to see that a template was rendered with its context.
        for (name, value) in &template.context {
            text = text.replace(&format!("{{{{ {name} }}}}"), &value.to_str());
        }
        Ok(text)
    }

    fn compile(&self, _: &Cx, template: &Template) -> Result<Value> {
        yaml::load_str(&template.text).map_err(|error| Error::Source {
            message: error.to_string(),
            class: match error.kind() {
                ErrorKind::Scanner
                | ErrorKind::Parser
                | ErrorKind::Constructor
                | ErrorKind::Limit => None,
                other => Some(other.class().to_owned()),
            },
            place: None,
            excerpt: None,
            help: None,
        })
    }
}

struct Fixed;

impl Sources for Fixed {
    fn grains(&self, cx: &Cx) -> Result<Dict> {
        Ok(cx.grains.shallow_copy())
    }

    fn pillar(&self, cx: &Cx, overrides: &Dict, _: Option<&str>) -> Result<Dict> {
        let pillar = cx.pillar.shallow_copy();
        pillar.update(overrides);
        Ok(pillar)
    }
}

#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<Event>>,
    daemon: Mutex<Option<Daemon>>,
}

/// What a daemon would know: the schedule and the beacons of the configuration.
struct Daemon {
    schedule: Table,
    beacons: Board,
}

impl Daemon {
    fn new(cx: &Cx) -> Self {
        let part = |source: &Dict, name: &str| match source.get(name) {
            Some(Value::Dict(part)) => part,
            _ => Dict::new(),
        };
        let mut schedule = Table::new();
        schedule.set_config(&part(&cx.opts, "schedule"));
        schedule.set_pillar(&part(&cx.pillar, "schedule"));
        let mut beacons = Board::new(&part(&cx.opts, "beacons"));
        beacons.set_pillar(&part(&cx.pillar, "beacons"));
        Self { schedule, beacons }
    }
}

impl Link for Recorder {
    fn fire(&self, _: &Cx, event: Event) -> Result<bool> {
        self.events.lock().push(event);
        Ok(true)
    }

    fn ask(&self, _: &Cx, _: Value) -> Result<Value> {
        Err(Error::failed("there is no master"))
    }

    fn running(&self, _: Option<&Cx>) -> Vec<Value> {
        Vec::new()
    }

    fn signal_job(&self, _: &str, _: i32) -> Result<Value> {
        Ok(Value::Bool(false))
    }

    fn refreshed(&self, _: &Cx, _: Refresh) -> Result<()> {
        Ok(())
    }

    fn ask_daemon(
        &self,
        cx: &Cx,
        tag: &str,
        request: &Dict,
        _: Option<&str>,
    ) -> Result<Option<Dict>> {
        let mut daemon = self.daemon.lock();
        let daemon = daemon.get_or_insert_with(|| Daemon::new(cx));
        Ok(match tag {
            "manage_schedule" => {
                let now = Timestamp::try_from(cx.host.now()).unwrap_or_default();
                let now = now.to_zoned(TimeZone::UTC);
                daemon.schedule.tick(&now, &|_| 0, &|_| 0);
                daemon.schedule.manage(request, &now).map(|answer| answer.data)
            }
            "manage_beacons" => daemon.beacons.manage(request, &|_| None).map(|(_, data)| data),
            _ => None,
        })
    }
}

/// `salt://` files from a map; they lie in the fake machine's cache already.
#[derive(Default)]
struct Served(BTreeMap<String, Vec<u8>>);

impl Served {
    fn cached(path: &str) -> PathBuf {
        Path::new("/var/cache/salt/minion/files/base").join(path)
    }

    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a String> {
        let prefix = prefix.trim_matches('/');
        self.0.keys().filter(move |path| {
            prefix.is_empty() || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

impl Files for Served {
    fn envs(&self) -> Result<Vec<String>> {
        Ok(vec!["base".into()])
    }

    fn cache(&self, source: &str, _: &str) -> Result<Option<PathBuf>> {
        let Some(path) = source.strip_prefix("salt://") else {
            return Ok(Some(PathBuf::from(source.strip_prefix("file://").unwrap_or(source))));
        };
        let path = path.split('?').next().unwrap_or(path);
        Ok(self.0.contains_key(path).then(|| Self::cached(path)))
    }

    fn hash(&self, _: &str, _: &str) -> Result<Option<(String, String)>> {
        Ok(None)
    }

    fn list(&self, _: &str, prefix: &str) -> Result<Vec<String>> {
        Ok(self.below(prefix).cloned().collect())
    }

    fn list_dirs(&self, _: &str, prefix: &str) -> Result<Vec<String>> {
        let mut dirs: Vec<String> = self
            .below(prefix)
            .filter_map(|path| Path::new(path).parent())
            .map(|dir| dir.display().to_string())
            .collect();
        dirs.dedup();
        Ok(dirs)
    }

    fn list_empty_dirs(&self, _: &str, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn list_links(&self, _: &str, _: &str) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn stat(&self, _: &str, _: &str) -> Result<Option<Value>> {
        Ok(None)
    }

    fn push(&self, _: &Path, _: &str) -> Result<bool> {
        Ok(false)
    }

    fn master_opts(&self) -> Result<Value> {
        Ok(Value::dict())
    }

    fn master_tops(&self) -> Result<Value> {
        Ok(Value::dict())
    }
}
