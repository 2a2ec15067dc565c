//! `salt-master`: the master daemon.
//!
//! The master itself is the crate `master`. What it cannot do alone is put together here: pillar is
//! rendered with the functions of this machine, as Salt's master does it.

use std::{
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use halite_host::Os;
use halite_master::{Parts, PillarRequest, PillarSource};
use halite_minion::{Alone, Engine, Masterless, Parts as EngineParts, Pipes, registry};
use halite_pillar::{Compiler, Input, Renderer, Request, Source, unchanged};
use halite_spec::{Cx, Host, Job, Result};
use halite_value::{Dict, Value};
use parking_lot::Mutex;

use crate::{
    daemon,
    diagnostics::Report,
    logging,
    optparse::{Flag, Group, Program},
    programs::{Context, shared},
    workshop::{self, MasterWorks},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/master'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static DAEMON: &[Flag] =
    &[shared::DAEMON, shared::pid_file("/var/run/salt-master.pid"), shared::DISABLE_KEEPALIVE];

pub static PROGRAM: Program = Program {
    name: "salt-master",
    usage: "[options]",
    about: Some("The master, which controls the minions."),
    flags: &[shared::VERSION, shared::SALTFILE, shared::CONFIG_DIR, shared::USER, DAEMON],
    groups: &[LOGGING],
};

/// Runs the daemon.
pub fn run(cx: &mut Context) -> u8 {
    let failed = |cx: &Context, text: String| cx.report(&Report::error(text).exit(1));
    let own = ["pki_dir", "cachedir", "sock_dir", "token_dir"];
    if let Err(no) = daemon::free_ports(cx).and_then(|()| daemon::begin(cx, &own)) {
        return cx.report(&Report::error(no.text).exit(no.code));
    }
    let pillar: Arc<dyn PillarSource> = Arc::new(MasterPillar::new(cx.opts.values()));
    let works = Arc::new(MasterWorks::new(cx.opts.values()));
    let wheel = Arc::new(crate::wheel::Wheel::new(cx.opts.values(), works.clone()));
    let returns_events = cx.opts.get("event_return").is_some_and(|names| names.truthy());
    let parts = Parts {
        pillar: Some(pillar),
        runners: Some(works.clone()),
        wheel: Some(wheel),
        event_returner: returns_events.then(|| works.clone() as _),
        job_cache: Some(works.clone() as _),
        authenticators: workshop::authenticators(&works, cx.opts.values()),
        engines: Some(Arc::new(workshop::PythonEngines(works.clone()))),
        rendering: Some(works),
    };
    let told = halite_master::Told {
        ready: &|| daemon::notify("READY=1\nSTATUS=serving"),
        hangup: &logging::reopen,
        ending: &|| daemon::notify("STOPPING=1"),
    };
    match halite_master::run(&cx.opts, parts, told) {
        Ok(()) => 0,
        Err(error) => failed(cx, error.to_string()),
    }
}

/// Compiled pillars kept; an entry costs about as much as the pillar itself.
const MOST_KEPT: usize = 100_000;
/// For so long a look at the files counts for all who ask, if nothing was published meanwhile and nobody signed
/// in: who asks because of an edit was told by a publication, or has just come.
const LOOK: Duration = Duration::from_millis(5);

/// Compiles pillar for minions, with the functions of the master's machine.
struct MasterPillar {
    cx: Cx,
    pipes: Arc<Pipes>,
    kept: Mutex<HashMap<String, Arc<Kept>>>,
    /// Most minions' pillars are made from the same few files: each set is kept once.
    inputs: Mutex<HashSet<Arc<Inputs>>>,
    /// Looks at files count within one era only.
    era: AtomicU64,
    /// How long a pillar stays as it is, whatever it was made from (`pillar_cache`).
    // differs: Salt keeps them on disk, or in memory for each of its processes.
    lifetime: Option<Duration>,
}

/// A pillar with what it was made from.
struct Kept {
    grains: Value,
    inputs: Arc<Inputs>,
    pillar: Dict,
    at: Instant,
}

/// What pillars were made from, and what the last look at it showed.
struct Inputs {
    list: Vec<Input>,
    looked: Mutex<Option<Look>>,
}

/// What was seen of files, and when.
#[derive(Clone, Copy)]
struct Look {
    era: u64,
    at: Instant,
    same: bool,
}

impl Look {
    fn counts(&self, era: u64) -> bool {
        self.era == era && self.at.elapsed() < LOOK
    }
}

impl Inputs {
    /// Tells whether everything is as it was. Thousands of minions ask that at a time, and one look at a
    /// tree of files is enough for those that wait for it together.
    fn are_unchanged(&self, host: &dyn Host, era: u64) -> bool {
        let mut looked = self.looked.lock();
        if let Some(look) = looked.filter(|look| look.counts(era)) {
            return look.same;
        }
        let at = Instant::now();
        let same = unchanged(&self.list, host);
        *looked = Some(Look { era, at, same });
        same
    }

    /// Tells whether somebody has just seen that everything is as it was.
    fn were_unchanged(&self, era: u64) -> bool {
        let looked = self.looked.try_lock().and_then(|looked| *looked);
        looked.is_some_and(|look| look.same && look.counts(era))
    }
}

impl PartialEq for Inputs {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for Inputs {}

impl Hash for Inputs {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.list.hash(hasher);
    }
}

/// Builds what functions on the master's machine work with.
pub(crate) fn own_context(opts: &Dict) -> (Cx, Arc<Pipes>) {
    let opts = opts.shallow_copy();
    // Files come from this machine's own roots.
    opts.insert("file_client", "local");
    let host: Arc<dyn Host> = Arc::new(Os::new());
    let pipes = Arc::new(Pipes::new(&opts));
    let parts = EngineParts {
        rendering: Arc::clone(&pipes) as _,
        sources: Arc::new(Masterless::new(Arc::clone(&pipes))),
        link: Arc::new(Alone::new(Arc::clone(&host), &opts)),
        states: Arc::new(registry::Native),
    };
    let cx = Cx {
        files: Arc::new(halite_fileserver::Local::new(Arc::clone(&host), &opts)),
        host,
        opts,
        grains: Dict::new(),
        pillar: Dict::new(),
        context: Dict::new(),
        low: Dict::new(),
        job: Arc::new(Job::new("", "", "")),
        runtime: Arc::new(Engine::new(parts)),
    };
    (cx, pipes)
}

impl MasterPillar {
    fn new(opts: &Dict) -> Self {
        let (cx, pipes) = own_context(opts);
        let seconds = cx.opt("pillar_cache_ttl").and_then(|ttl| ttl.to_int()).unwrap_or(3600);
        let lifetime = cx.opt_bool("pillar_cache").then(|| u64::try_from(seconds).unwrap_or(0));
        Self {
            cx,
            pipes,
            kept: Mutex::default(),
            inputs: Mutex::default(),
            era: AtomicU64::new(0),
            lifetime: lifetime.map(Duration::from_secs),
        }
    }

    /// Which looks count now. To be asked before a look begins.
    fn era(&self) -> u64 {
        self.era.load(Ordering::SeqCst)
    }

    /// Returns the one copy of a set of inputs.
    fn shared(&self, list: Vec<Input>) -> Arc<Inputs> {
        let inputs = Inputs { list, looked: Mutex::default() };
        let mut all = self.inputs.lock();
        if let Some(known) = all.get(&inputs) {
            return Arc::clone(known);
        }
        // Sets that no pillar has any more go when a new one comes.
        all.retain(|inputs| Arc::strong_count(inputs) > 1);
        let inputs = Arc::new(inputs);
        all.insert(Arc::clone(&inputs));
        inputs
    }

    fn kept(&self, request: &PillarRequest) -> Option<Arc<Kept>> {
        self.kept.lock().get(&key(request)?).cloned()
    }

    /// The context of a minion's templates: this machine's functions, the minion's grains.
    fn cx_of(&self, request: &PillarRequest) -> Cx {
        let opts = self.cx.opts.shallow_copy();
        opts.insert("id", &request.id);
        opts.insert("grains", &request.grains);
        opts.insert("minion_id", &request.id);
        Cx { opts, grains: request.grains.clone(), context: Dict::new(), ..self.cx.clone() }
    }
}

/// Under what a pillar is kept, if it is: what was given on the command line is for once.
fn key(request: &PillarRequest) -> Option<String> {
    (request.overrides.is_empty() && request.ext.is_none())
        .then(|| format!("{}\0{:?}\0{:?}", request.id, request.saltenv, request.pillarenv))
}

impl PillarSource for MasterPillar {
    fn known(&self, request: &PillarRequest) -> Option<Dict> {
        let kept = self.kept(request)?;
        let is_current = kept.inputs.were_unchanged(self.era())
            && kept.grains.is_identical(&Value::from(&request.grains));
        is_current.then(|| kept.pillar.clone())
    }

    fn compile(&self, request: &PillarRequest) -> Dict {
        let grains = Value::from(&request.grains);
        // Files are looked at without the lock: others ask meanwhile.
        if let Some(kept) = self.kept(request) {
            // Only if it is asked for: what costs much (a database, a program) is not asked again
            // for so long, and what has changed meanwhile is not seen.
            let is_young = !request.clean_cache
                && self.lifetime.is_some_and(|seconds| kept.at.elapsed() < seconds);
            let era = self.era();
            let is_current = || {
                kept.grains.is_identical(&grains) && kept.inputs.are_unchanged(&*self.cx.host, era)
            };
            if is_young || is_current() {
                return kept.pillar.clone();
            }
        }
        let cx = self.cx_of(request);
        let functions = cx.opts.shallow_copy();
        functions.insert("id", self.cx.opts.get("id").unwrap_or_default());
        let pipes = Arc::clone(&self.pipes);
        let renderer = Arc::new(Templates { cx: cx.clone(), functions, pipes });
        let wanted = Request {
            opts: cx.opts.clone(),
            minion_id: request.id.to_string(),
            grains: request.grains.clone(),
            saltenv: request.saltenv.as_ref().map(ToString::to_string),
            pillarenv: request.pillarenv.as_ref().map(ToString::to_string),
            pillar_override: request.overrides.clone(),
            extra_minion_data: request.extra.clone(),
            ext: request.ext.clone(),
            ..Request::default()
        };
        let mut compiler = Compiler::new(Arc::clone(&cx.host), renderer);
        for users in self.pipes.ext_pillars(&cx) {
            compiler = compiler.with_ext(users);
        }
        let compiled = compiler.compile(&wanted);
        for failure in &compiled.failures {
            tracing::error!(
                "Rendering SLS '{}' of '{}' for {} failed: {}",
                failure.sls,
                failure.saltenv,
                request.id,
                failure.error
            );
        }
        if let Some(key) = key(request) {
            let inputs = self.shared(compiled.inputs);
            let mut kept = self.kept.lock();
            if kept.len() >= MOST_KEPT {
                kept.clear();
            }
            let pillar = compiled.pillar.clone();
            let at = Instant::now();
            kept.insert(key, Arc::new(Kept { grains, inputs, pillar, at }));
        }
        compiled.pillar
    }

    fn look_again(&self) {
        self.era.fetch_add(1, Ordering::SeqCst);
    }

    fn forget(&self, id: &str) {
        self.kept.lock().retain(|key, _| key.split('\0').next() != Some(id));
    }
}

/// Renders pillar files.
struct Templates {
    cx: Cx,
    /// What functions see as their configuration: the master's own. Its id is not the minion's, so
    /// `match.glob` and the like need a `minion_id` in pillar, as in Salt.
    functions: Dict,
    pipes: Arc<Pipes>,
}

impl Renderer for Templates {
    fn render(&self, source: &Source<'_>) -> Result<Value> {
        self.pipes.pillar(&self.cx, Some(&self.functions), source)
    }

    fn matches(&self, kind: &str, target: &Value) -> Option<bool> {
        self.pipes.custom_match(&self.cx, kind, target)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use halite_value::entries;

    use super::*;

    fn request(id: &str, number: i64) -> PillarRequest {
        PillarRequest {
            id: halite_wire::MinionId::new(id).unwrap(),
            grains: entries! { "id" => id, "number" => number },
            saltenv: None,
            pillarenv: None,
            overrides: Dict::new(),
            extra: Dict::new(),
            ext: None,
            clean_cache: true,
        }
    }

    #[test]
    fn a_pillar_is_known_as_long_as_nothing_changed() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        write("top.sls", "base:\n  '*': [all]\n");
        write("all.sls", "one: 1\n");
        let opts = entries! {
            "id" => "master", "pillar_roots" => halite_value::dict! {
                "base" => halite_value::list![root.path().display().to_string()],
            },
        };
        let pillar = MasterPillar::new(&opts);
        let one = |pillar: Option<Dict>| pillar.and_then(|pillar| pillar.get("one"));
        assert!(pillar.known(&request("a", 1)).is_none(), "nobody has compiled it");
        assert_eq!(pillar.compile(&request("a", 1)).get("one"), Some(1.into()));
        pillar.compile(&request("b", 2));
        assert_eq!(pillar.inputs.lock().len(), 1, "both are made of the same files");
        // A look counts for all who have the same files, for a moment: on a busy machine that may be over.
        let look = || {
            pillar.compile(&request("b", 2));
            one(pillar.known(&request("a", 1)))
        };
        assert_eq!((0..1000).find_map(|_| look()), Some(1.into()));
        assert!(pillar.known(&request("a", 3)).is_none(), "other grains");
        assert!(pillar.known(&request("c", 1)).is_none(), "another minion");
        // However short ago the look was, it ends with the next publication.
        write("all.sls", "one: 2\n");
        pillar.look_again();
        assert!(pillar.known(&request("a", 1)).is_none(), "nobody has looked since");
        assert_eq!(pillar.compile(&request("a", 1)).get("one"), Some(2.into()));
        assert!(pillar.known(&request("b", 2)).is_none(), "b's is made of what was");
        assert_eq!(pillar.compile(&request("b", 2)).get("one"), Some(2.into()));
    }
}
