//! Where the minion does what it does of its own accord (scheduled jobs, beacons): beside the
//! first of its masters, or alone when it has none.
//!
//! However many masters are connected, a job of the schedule runs once, and with the first master's
//! pillar. A minion whose master went away goes on beside the last one it had.

use std::sync::{Arc, OnceLock, Weak};

use halite_fileserver::Local;
use halite_host::Cancel;
use halite_spec::{Cx, Error, Event, Files, Host, Job, Refresh, Result, Runtime};
use halite_value::{Dict, Value};
use parking_lot::RwLock;

use super::{link::Follow, node::Node, tie::Tie};
use crate::{Engine, Link, Masterless, Parts, Pipes, Sources as _, proc, registry::Native};

/// The surroundings of the minion's own jobs.
#[derive(Clone)]
pub(crate) enum Ground {
    Tie(Arc<Tie>),
    Alone(Arc<Hermit>),
}

impl Ground {
    pub(crate) fn cx(&self, job: Job, cancel: Cancel) -> Cx {
        match self {
            Self::Tie(tie) => tie.cx(job, cancel),
            Self::Alone(hermit) => hermit.cx(job, cancel),
        }
    }

    /// The options that jobs start from.
    pub(crate) fn opts(&self) -> &Dict {
        match self {
            Self::Tie(tie) => tie.opts(),
            Self::Alone(hermit) => &hermit.opts,
        }
    }

    /// The master returns go to.
    pub(crate) fn master(&self) -> Option<&str> {
        match self {
            Self::Tie(tie) => Some(&tie.master.address.name),
            Self::Alone(_) => None,
        }
    }
}

/// A minion without a master (`master_type: disable`): it has its own files and pillar.
pub(crate) struct Hermit {
    node: Weak<Node>,
    opts: Dict,
    host: Arc<dyn Host>,
    files: Arc<dyn Files>,
    sources: Masterless,
    pillar: RwLock<Dict>,
    runtime: OnceLock<Arc<dyn Runtime>>,
    own: Weak<Self>,
}

impl Hermit {
    pub(crate) fn new(node: &Arc<Node>) -> Arc<Self> {
        let host = Arc::clone(&node.host);
        let files = Arc::new(Local::new(Arc::clone(&host), &node.opts));
        let pipes = Arc::new(Pipes::new(&node.opts));
        let hermit = Arc::new_cyclic(|own| Self {
            node: Arc::downgrade(node),
            opts: node.opts.clone(),
            host,
            files,
            sources: Masterless::new(pipes),
            pillar: RwLock::default(),
            runtime: OnceLock::new(),
            own: own.clone(),
        });
        hermit.load_pillar();
        hermit
    }

    /// Compiles the pillar of this machine. Blocking.
    pub(crate) fn load_pillar(&self) {
        let cx = self.cx(Job::default(), Cancel::new());
        match self.sources.pillar(&cx, &Dict::new(), None) {
            Ok(pillar) => {
                if let Some(node) = self.node.upgrade() {
                    node.pillar_is(&pillar);
                }
                *self.pillar.write() = pillar;
            }
            Err(error) => tracing::error!("Pillar data could not be refreshed: {error}"),
        }
    }

    fn cx(&self, job: Job, cancel: Cancel) -> Cx {
        let node = self.node.upgrade();
        let grains = node.as_ref().map(|node| node.grains.deep_copy()).unwrap_or_default();
        let pillar = self.pillar.read().deep_copy();
        let opts = self.opts.shallow_copy();
        opts.insert("grains", &grains);
        opts.insert("pillar", &pillar);
        let host = node.map_or_else(|| Arc::clone(&self.host), |node| node.job_host(cancel));
        Cx {
            host,
            opts,
            grains,
            pillar,
            context: Dict::new(),
            low: Dict::new(),
            job: Arc::new(job),
            files: Arc::clone(&self.files),
            runtime: self.runtime(),
        }
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        let make = || -> Arc<dyn Runtime> {
            let pipes = Arc::new(Pipes::new(&self.opts));
            Arc::new(Engine::new(Parts {
                rendering: Arc::clone(&pipes) as _,
                sources: Arc::new(Masterless::new(pipes)),
                link: Arc::new(HermitLink { own: self.own.clone() }),
                states: Arc::new(Native),
            }))
        };
        Arc::clone(self.runtime.get_or_init(make))
    }
}

impl Follow for Hermit {
    fn refreshed(&self, cx: &Cx, what: Refresh) {
        let Some(node) = self.node.upgrade() else { return };
        match what {
            Refresh::Grains => super::tie::replace(&node.grains, &cx.grains),
            Refresh::Pillar { .. } => {
                *self.pillar.write() = cx.pillar.deep_copy();
                node.pillar_is(&cx.pillar);
            }
            other => {
                node.bus.fire(super::link::refresh_tag(other), &Dict::new());
            }
        }
    }

    fn manage(&self, tag: &str, request: &Dict) -> Option<Dict> {
        self.node.upgrade()?.manage(tag, request)
    }
}

/// The link of a [`Hermit`].
struct HermitLink {
    own: Weak<Hermit>,
}

impl HermitLink {
    fn node(&self) -> Option<Arc<Node>> {
        self.own.upgrade()?.node.upgrade()
    }
}

impl Link for HermitLink {
    fn fire(&self, _: &Cx, event: Event) -> Result<bool> {
        let data = match &event.data {
            Value::Dict(data) => data.clone(),
            other => halite_value::entries! { "data" => other },
        };
        // The local bus is the only one there is.
        Ok(self.node().is_some_and(|node| node.bus.fire(&event.tag, &data)))
    }

    fn ask(&self, _: &Cx, load: Value) -> Result<Value> {
        let what = load.get_str("cmd").unwrap_or_default();
        Err(Error::failed(format!("there is no master to ask ({what})")))
    }

    fn running(&self, _: Option<&Cx>) -> Vec<Value> {
        let Some(node) = self.node() else { return Vec::new() };
        let mut jobs = node.jobs.list();
        for job in proc::running(&*node.host, &node.proc_dir()) {
            if !jobs.iter().any(|own| own.get("jid") == job.get("jid")) {
                jobs.push(job);
            }
        }
        jobs
    }

    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value> {
        let thread = self.node().and_then(|node| node.jobs.end(jid, signal));
        Ok(match thread {
            Some(thread) => format!("Signal {signal} sent to job {jid} at pid {thread}").into(),
            None => "".into(),
        })
    }

    fn refreshed(&self, cx: &Cx, what: Refresh) -> Result<()> {
        if let Some(own) = self.own.upgrade() {
            Follow::refreshed(&*own, cx, what);
        }
        Ok(())
    }

    fn ask_daemon(
        &self,
        _: &Cx,
        tag: &str,
        request: &Dict,
        _: Option<&str>,
    ) -> Result<Option<Dict>> {
        Ok(self.own.upgrade().and_then(|own| own.manage(tag, request)))
    }
}
