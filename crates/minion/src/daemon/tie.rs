//! The tie to one master: its pillar, its files, its publications, the jobs it gives.

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicBool, Ordering},
};

use halite_host::Cancel;
use halite_spec::{Cx, Files, Job, Refresh, Runtime};
use halite_target::{Expr, Options, TargetType};
use halite_transport::connect;
use halite_value::{Dict, SmolStr, Value, entries, msgpack};
use halite_wire::{Jid, Notice, Publication};
use parking_lot::RwLock;

use super::{
    execute,
    files::Remote,
    jobs::Ticket,
    link::{Follow, MasterLink, event_load},
    node::{Conduct, Node},
    options::MasterAddress,
    pillar::{self, FromMaster},
    session::{AskError, Master},
};
use crate::{Engine, Parts, Sources as _, matching, registry::Native};

/// One master, and what it makes of this minion.
pub(crate) struct Tie {
    pub(crate) node: Arc<Node>,
    pub(crate) master: Arc<Master>,
    opts: Dict,
    pillar: RwLock<Dict>,
    files: Arc<Remote>,
    sources: Arc<FromMaster>,
    runtime: OnceLock<Arc<dyn Runtime>>,
    /// The pillar has been loaded.
    ready: AtomicBool,
    /// Somebody asks the master to let us in again.
    pub(crate) asking: AtomicBool,
    own: Weak<Self>,
}

impl Tie {
    pub(crate) fn new(node: &Arc<Node>, address: &MasterAddress) -> Arc<Self> {
        let transport = connect(node.settings.kind, node.settings.client(address));
        let master = Master::new(
            address.clone(),
            Arc::clone(&node.settings),
            Arc::clone(&node.identity),
            transport,
            node.grains.clone(),
            node.handle.clone(),
        );
        master.will_listen();
        let opts = node.opts.shallow_copy();
        opts.insert("master", &address.name);
        opts.insert("master_uri", address.uri());
        Arc::new_cyclic(|own| Self {
            node: Arc::clone(node),
            files: Arc::new(Remote::new(Arc::clone(&master), Arc::clone(&node.host), &opts)),
            sources: Arc::new(FromMaster::new(Arc::clone(&master))),
            master,
            opts,
            pillar: RwLock::default(),
            runtime: OnceLock::new(),
            ready: AtomicBool::new(false),
            asking: AtomicBool::new(false),
            own: own.clone(),
        })
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        let make = || -> Arc<dyn Runtime> {
            let node = &self.node;
            let follow: Weak<dyn Follow> = self.own.clone();
            let link = MasterLink::of_daemon(
                Arc::clone(&self.master),
                Arc::clone(&node.host),
                node.proc_dir(),
                Arc::clone(&node.jobs),
                Arc::clone(&node.bus),
                follow,
            );
            Arc::new(Engine::new(Parts {
                rendering: Arc::clone(&node.rendering),
                sources: Arc::clone(&self.sources) as _,
                link: Arc::new(link),
                states: Arc::new(Native),
            }))
        };
        Arc::clone(self.runtime.get_or_init(make))
    }

    /// Returns what a job works with. Templates may change what they are given, so grains and
    /// pillar are copies: a job must not change the minion.
    pub(crate) fn cx(&self, job: Job, cancel: Cancel) -> Cx {
        let grains = self.node.grains.deep_copy();
        let pillar = self.pillar.read().deep_copy();
        let opts = self.opts.shallow_copy();
        opts.insert("grains", &grains);
        opts.insert("pillar", &pillar);
        self.cx_of(job, cancel, opts, grains, pillar)
    }

    /// As [`Tie::cx`], for a function that changes nothing and does not show the options: the copies
    /// would be most of its work.
    fn cx_to_look(&self, job: Job, cancel: Cancel) -> Cx {
        let (grains, pillar) = (self.node.grains.clone(), self.pillar.read().clone());
        self.cx_of(job, cancel, self.opts.clone(), grains, pillar)
    }

    fn cx_of(&self, job: Job, cancel: Cancel, opts: Dict, grains: Dict, pillar: Dict) -> Cx {
        Cx {
            host: self.node.job_host(cancel),
            opts,
            grains,
            pillar,
            context: Dict::new(),
            low: Dict::new(),
            job: Arc::new(job),
            files: Arc::clone(&self.files) as Arc<dyn Files>,
            runtime: self.runtime(),
        }
    }

    fn idle_cx(&self) -> Cx {
        self.cx(Job::default(), Cancel::new())
    }

    /// Brings the pillar from the master.
    pub(crate) async fn load_pillar(&self) -> Result<(), AskError> {
        let load = pillar::question(&self.idle_cx(), &Dict::new(), None);
        let fetched = self.sources.fetch(&load).await?;
        *self.pillar.write() = fetched;
        self.tell_pillar();
        Ok(())
    }

    /// The minion's own jobs may run beside this tie from now on.
    pub(crate) fn is_settled(&self) {
        if !self.ready.swap(true, Ordering::AcqRel)
            && let Some(own) = self.own.upgrade()
        {
            self.node.is_ready(own);
        }
    }

    pub(crate) fn opts(&self) -> &Dict {
        &self.opts
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// The minion's own jobs follow the pillar of its first master.
    pub(crate) fn tell_pillar(&self) {
        let is_first = self
            .node
            .ties()
            .first()
            .is_none_or(|first| Arc::as_ptr(first) == std::ptr::from_ref(self));
        if is_first {
            let pillar = self.pillar.read().clone();
            self.node.pillar_is(&pillar);
        }
    }

    /// Tells whether a publication is for us.
    fn is_meant(&self, publication: &Publication) -> bool {
        let Ok(kind) = publication.tgt_type.parse::<TargetType>() else { return false };
        let delimiter = publication.extra.get("delimiter").map(|text| text.to_str());
        let groups = match self.opts.get("nodegroups") {
            Some(Value::Dict(groups)) => Some(groups),
            _ => None,
        };
        let options = Options { nodegroups: groups.as_ref(), delimiter: delimiter.as_deref() };
        let expr = match Expr::parse(&publication.tgt, kind, &options) {
            Ok(expr) => expr,
            Err(error) => {
                tracing::warn!("a target cannot be understood: {error}");
                return false;
            }
        };
        let pillar = self.pillar.read().clone();
        let id = &self.node.settings.id;
        expr.matches(&matching::minion(id, &self.node.grains, &pillar))
    }

    /// Takes a publication: runs it, if it is for us and new.
    pub(crate) fn receive(self: &Arc<Self>, load: &Dict) {
        // The serial belongs to the sealing; functions that are told what was published do not get it.
        let shown = load.shallow_copy();
        shown.remove("serial");
        let publication = match Publication::read(&shown) {
            Ok(publication) => publication,
            Err(error) => {
                tracing::debug!("a publication that is none: {error}");
                return;
            }
        };
        // Users' matchers take their time.
        if let Some(python) = self.node.rendering.python().filter(|python| python.has_matchers()) {
            let tie = Arc::clone(self);
            self.node.handle.spawn_blocking(move || {
                let delimiter = publication.extra.get("delimiter").map(|text| text.to_str());
                let (kind, tgt) = (publication.tgt_type.clone(), publication.tgt.clone());
                let answer = python.matches(&tie.idle_cx(), &kind, &tgt, delimiter.as_deref());
                if answer.unwrap_or_else(|| tie.is_meant(&publication)) {
                    tie.take(publication, shown);
                }
            });
            return;
        }
        if self.is_meant(&publication) {
            self.take(publication, shown);
        }
    }

    /// Takes a publication that is for us, if it is new.
    fn take(self: &Arc<Self>, publication: Publication, shown: Dict) {
        if !self.node.journal.claim(&publication.jid) {
            tracing::debug!("job {} came again", publication.jid);
            return;
        }
        tracing::info!(
            "User {} Executing command {} with jid {}",
            publication.user,
            publication.fun,
            publication.jid
        );
        // What is over at once is recorded and told of by its return, and not before.
        if !is_instant(&publication.fun) {
            // In the journal before anybody is told that we have it; the job's thread waits for the disk.
            let master = &self.master.address.name;
            if let Err(error) = self.node.journal.start(&publication.jid, master, &shown, false) {
                tracing::error!("job {} runs without a record of it: {error}", publication.jid);
            }
            self.notice(&Notice::Received(publication.jid.clone()));
        }
        match self.node.conduct {
            Conduct::Good => self.begin(publication, shown),
            Conduct::Silent => {}
            Conduct::Late(delay) => {
                let tie = Arc::clone(self);
                self.node.handle.spawn(async move {
                    tokio::time::sleep(delay).await;
                    tie.begin(publication, shown);
                });
            }
        }
    }

    fn begin(self: &Arc<Self>, publication: Publication, shown: Dict) {
        let tie = Arc::clone(self);
        let brief = only_looks(&publication);
        self.node.jobs.start(&publication.jid.clone(), shown.clone(), brief, move |ticket| {
            tie.work(&publication, &shown, ticket);
        });
    }

    /// Does a job, on its thread.
    fn work(&self, publication: &Publication, load: &Dict, ticket: &Ticket) {
        let node = &self.node;
        let jid = publication.jid.as_str();
        let durable = !is_harmless(&publication.fun);
        let master = &self.master.address.name;
        if durable && let Err(error) = node.journal.flush() {
            tracing::error!("the journal cannot be brought to the disk: {error}");
        }
        let record = (!is_instant(&publication.fun)).then(|| {
            self.notice(&Notice::Started(publication.jid.clone()));
            Record::write(self, jid, load)
        });
        if node.settings.fresh_grains
            && let Ok(grains) = self.sources.grains(&self.idle_cx())
        {
            replace(&node.grains, &grains);
        }
        let job = Job::new(jid, publication.fun.to_str(), publication.user.clone());
        let cx = match only_looks(publication) {
            true => self.cx_to_look(job, ticket.cancel.clone()),
            false => self.cx(job, ticket.cancel.clone()),
        };
        if publication.extra.get("start_event").is_some_and(|wanted| wanted.truthy()) {
            self.tell_start(publication);
        }
        let ret = execute::run(&cx, publication, ticket);
        drop(record);
        self.returners(&cx, publication, &ret);
        node.deliver(jid, master, ret, durable);
    }

    /// Tells a Halite master; others have no ear for it.
    fn notice(&self, notice: &Notice) {
        if self.master.transport.is_extended()
            && let Ok(bytes) = notice.encode()
        {
            self.master.transport.notice(bytes.into());
        }
    }

    /// Tells a Halite master which of its jobs still run.
    pub(crate) fn tell_running(&self) {
        for job in self.node.jobs.list() {
            let jid = job.get("jid").unwrap_or_default().to_str();
            if let Ok(jid) = Jid::new(&jid) {
                self.notice(&Notice::Running(jid));
            }
        }
    }

    fn tell_start(&self, publication: &Publication) {
        let data = entries! {
            "id" => &self.node.settings.id, "jid" => &publication.jid, "fun" => &publication.fun,
            "tgt" => &publication.tgt, "tgt_type" => &publication.tgt_type,
            "user" => &publication.user,
        };
        for extra in ["master_id", "metadata"] {
            if let Some(value) = publication.extra.get(extra).filter(|value| !value.is_null()) {
                data.insert(extra, value);
            }
        }
        let tag = format!("salt/job/{}/start/{}", publication.jid, self.node.settings.id);
        self.fire_later(&tag, data.into());
    }

    /// Sends an event without waiting for it.
    pub(crate) fn fire_later(&self, tag: &str, data: Value) {
        let (master, load) = (Arc::clone(&self.master), event_load(tag, data, None));
        let tag = tag.to_owned();
        self.node.handle.spawn(async move {
            if let Err(error) = master.ask(&load).await {
                tracing::warn!("the event {tag} did not reach the master: {error}");
            }
        });
    }

    /// Hands a return to the returners that were asked for, and to the configured ones.
    fn returners(&self, cx: &Cx, publication: &Publication, ret: &Dict) {
        let mut names: Vec<SmolStr> = publication.ret.split(',').map(SmolStr::from).collect();
        if let Some(configured) = self.opts.get("return").filter(Value::truthy) {
            let items = configured.items_of_sequence().unwrap_or_else(|| vec![configured]);
            let split =
                |item: &Value| item.to_str().split(',').map(SmolStr::from).collect::<Vec<_>>();
            names.extend(items.iter().flat_map(split));
        }
        let extra = |name: &str| publication.extra.get(name);
        let options = halite_returners::Options::given(extra("ret_config"), extra("ret_kwargs"));
        halite_returners::deliver_all(cx, names.iter().map(SmolStr::as_str), &options, ret);
    }

    /// Runs the states configured to run at start; the master allots the job id.
    pub(crate) fn run_startup_states(self: &Arc<Self>) {
        let list = |name: &str| self.opts.get(name).unwrap_or_default();
        let text = |name: &str| list(name).to_str();
        let (fun, arg): (&str, Vec<Value>) = match text("startup_states").as_str() {
            "" | "None" => return,
            "sls" => ("state.sls", vec![list("sls_list")]),
            "top" => ("state.top", vec![list("top_file")]),
            _ => ("state.highstate", Vec::new()),
        };
        let jid = Jid::now();
        let load = entries! {
            "fun" => fun, "arg" => arg, "tgt" => &self.node.settings.id, "jid" => &jid,
            "ret" => text("ext_job_cache"), "user" => "root", "tgt_type" => "glob",
        };
        let Ok(publication) = Publication::read(&load) else { return };
        let tie = Arc::clone(self);
        self.node.jobs.start(&jid.clone(), load, false, move |ticket| {
            let job = Job::new(jid.as_str(), publication.fun.to_str(), "root");
            let cx = tie.cx(job, ticket.cancel.clone());
            let ret = execute::run(&cx, &publication, ticket);
            ret.insert("jid", "req");
            let key = format!("req-{jid}");
            tie.node.deliver(&key, &tie.master.address.name, ret, true);
        });
    }
}

impl Follow for Tie {
    fn other_masters(&self) -> Vec<Arc<Master>> {
        let ties = self.node.ties().into_iter().map(|tie| Arc::clone(&tie.master));
        ties.filter(|master| !Arc::ptr_eq(master, &self.master)).collect()
    }

    fn manage(&self, tag: &str, request: &Dict) -> Option<Dict> {
        self.node.manage(tag, request)
    }

    fn refreshed(&self, cx: &Cx, what: Refresh) {
        match what {
            Refresh::Grains => replace(&self.node.grains, &cx.grains),
            Refresh::Pillar { .. } => {
                *self.pillar.write() = cx.pillar.deep_copy();
                self.tell_pillar();
                let tag = "/salt/minion/minion_pillar_refresh_complete";
                self.node.bus.fire(tag, &entries! { "complete" => true });
            }
            Refresh::Modules => {
                // As in Salt, loading modules collects the grains too: `grains.setval` counts on it.
                if let Ok(grains) = self.sources.grains(cx) {
                    replace(&self.node.grains, &grains);
                }
                self.node.bus.fire("salt/minion/minion_mod_complete", &Dict::new());
            }
            Refresh::Beacons | Refresh::Schedule | Refresh::Matchers => {
                self.node.bus.fire(super::link::refresh_tag(what), &Dict::new());
            }
        }
    }
}

/// Puts the entries of one dict into another, which keeps its identity.
pub(crate) fn replace(old: &Dict, new: &Dict) {
    let entries = new.deep_copy().entries();
    let mut map = old.write();
    map.clear();
    map.extend(entries);
}

/// Functions that change nothing, or only bring up to date: running one twice after a power cut
/// would do no harm, so they need not wait for the disk.
fn is_harmless(fun: &Value) -> bool {
    let Some(fun) = fun.as_str() else { return false };
    let (module, name) = fun.split_once('.').unwrap_or((fun, ""));
    match module {
        "test" | "sys" | "status" | "disk" | "network" | "ps" => true,
        "grains" => matches!(name, "get" | "item" | "items" | "ls" | "has_value" | "fetch"),
        "pillar" => matches!(name, "get" | "item" | "items" | "ls" | "keys" | "raw"),
        "saltutil" => {
            name.starts_with("refresh_")
                || matches!(name, "find_job" | "running" | "is_running" | "find_cached_job")
        }
        "config" => matches!(name, "get" | "option" | "items"),
        "mine" => matches!(name, "get" | "update"),
        _ => false,
    }
}

/// Functions that are over before anybody could ask about them.
fn is_instant(fun: &Value) -> bool {
    fun.as_str().is_some_and(|fun| {
        matches!(
            fun,
            "test.ping"
                | "test.version"
                | "test.echo"
                | "grains.get"
                | "grains.item"
                | "grains.items"
                | "grains.ls"
                | "pillar.get"
                | "config.get"
                | "saltutil.find_job"
                | "saltutil.running"
        )
    })
}

/// Tells whether a job looks at what the minion knows, shows no options, and is returned to the
/// master alone: it needs no copies, and waits for nothing.
fn only_looks(publication: &Publication) -> bool {
    is_instant(&publication.fun)
        && publication.fun.as_str() != Some("config.get")
        && publication.ret.is_empty()
}

/// The record of a running job in `cachedir/proc`, for other processes of this machine.
struct Record {
    path: Option<std::path::PathBuf>,
}

impl Record {
    fn write(tie: &Tie, jid: &str, load: &Dict) -> Self {
        let folder = tie.node.proc_dir();
        let path = folder.join(jid);
        let record = load.shallow_copy();
        record.insert("pid", nix::unistd::gettid().as_raw());
        record.insert("thread", true);
        let bytes = msgpack::to_vec(&record.into(), msgpack::Dialect::Modern);
        // Not synced: after a crash the record would be stale anyway.
        let written = bytes.map_err(std::io::Error::other).and_then(|bytes| {
            std::fs::create_dir_all(&folder)?;
            std::fs::write(&path, bytes)
        });
        match written {
            Ok(()) => Self { path: Some(path) },
            Err(error) => {
                tracing::warn!("other programs will not see job {jid}: {error}");
                Self { path: None }
            }
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Names a master in messages.
pub(crate) fn name_of(tie: &Tie) -> SmolStr {
    tie.master.address.name.clone()
}
