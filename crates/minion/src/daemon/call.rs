//! `salt-call` with a master: the same session, files and pillar as the daemon's, for one function.
//!
//! The runtime has a thread of its own, so that the caller's thread can simply wait for answers.

use std::{path::PathBuf, sync::Arc, time::Duration};

use halite_spec::{Call, Files, Host};
use halite_transport::connect;
use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::Args;
use tokio::{runtime::Handle, sync::oneshot};

use super::{
    auth::{Identity, SignInError},
    files::Remote,
    link::MasterLink,
    options::{MasterType, Problem, Settings},
    pillar::{self, FromMaster},
    session::Master,
};
use crate::{Link, Sources};

/// Why there is no master to call with.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Exit code 2, and these words.
    #[error("Minion failed to authenticate with the master, has the minion key been accepted?")]
    NotAccepted,
    #[error("{0}")]
    NoMaster(String),
    #[error(transparent)]
    Options(#[from] Problem),
    #[error(transparent)]
    Key(SignInError),
    #[error("cannot start: {0}")]
    Runtime(#[from] std::io::Error),
}

impl CallError {
    /// Returns the exit code Salt ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotAccepted => 2,
            Self::Key(SignInError::Finger { .. }) => super::EX_FINGER,
            Self::Key(SignInError::Rejected) => super::EX_NOPERM,
            _ => 1,
        }
    }
}

/// A master to call with. Ends its connection when dropped.
pub struct Connected {
    pub files: Arc<dyn Files>,
    pub sources: Arc<dyn Sources>,
    pub link: Arc<dyn Link>,
    master: Arc<Master>,
    handle: Handle,
    /// Dropped, it ends the runtime's thread.
    _stop: oneshot::Sender<()>,
}

impl Connected {
    /// Signs in to the first master that answers. `opts` learns which one it is.
    pub fn new(host: &Arc<dyn Host>, opts: &Dict) -> Result<Self, CallError> {
        let configured = match opts.get("grains") {
            Some(Value::Dict(configured)) => configured,
            _ => Dict::new(),
        };
        opts.insert(pillar::CONFIGURED, &configured);
        let settings = Arc::new(Settings::read(opts)?);
        let identity = Arc::new(Identity::open(&settings).map_err(CallError::Key)?);
        let (handle, stop) = runtime()?;
        let grains = Dict::new();
        if !settings.autosign_grains.is_empty() {
            grains.update(&pillar::grains(&**host, opts, &configured, None));
        }
        let mut masters = settings.masters.clone();
        if settings.master_type == MasterType::Distributed && masters.len() > 1 {
            masters.truncate(1);
        }
        let several = masters.len() > 1;
        let mut why = CallError::NoMaster("no master is configured".into());
        for address in masters {
            let transport = connect(settings.kind, settings.client(&address));
            let master = Master::new(
                address.clone(),
                Arc::clone(&settings),
                Arc::clone(&identity),
                transport,
                grains.clone(),
                handle.clone(),
            );
            match handle.block_on(master.sign_in()) {
                Ok(_) => {
                    opts.insert("master", &address.name);
                    opts.insert("master_uri", address.uri());
                    return Ok(Self::with(host, opts, &settings, master, handle, stop));
                }
                Err(error) => {
                    if several {
                        tracing::error!("Master {} does not take us: {error}", address.name);
                    }
                    master.transport.close();
                    why = of_sign_in(error, &address.name);
                }
            }
        }
        Err(why)
    }

    fn with(
        host: &Arc<dyn Host>,
        opts: &Dict,
        settings: &Settings,
        master: Arc<Master>,
        handle: Handle,
        stop: oneshot::Sender<()>,
    ) -> Self {
        let proc: PathBuf = settings.cachedir.join("proc");
        let link = MasterLink::of_caller(
            Arc::clone(&master),
            Arc::clone(host),
            proc,
            handle.clone(),
            settings.bus(),
        );
        Self {
            files: Arc::new(Remote::new(Arc::clone(&master), Arc::clone(host), opts)),
            sources: Arc::new(FromMaster::new(Arc::clone(&master))),
            link: Arc::new(link),
            master,
            handle,
            _stop: stop,
        }
    }

    /// Tells the master what a function gave, as a job whose id the master makes up.
    pub fn report(&self, done: &Report) -> Result<(), String> {
        let args = Args { args: done.call.args.clone(), kwargs: done.call.kwargs.clone() };
        let load = entries! {
            "cmd" => "_return", "id" => &self.master.identity.id, "jid" => "req",
            "fun" => &done.fun, "fun_args" => args.write(), "return" => &done.ret,
            "retcode" => done.retcode, "success" => done.retcode == 0, "user" => &done.user,
        };
        if let Some(out) = &done.out {
            load.insert("out", out);
        }
        if let Some(metadata) = &done.metadata {
            load.insert("metadata", metadata);
        }
        let patience = Duration::from_secs(30);
        let sent = self.handle.block_on(self.master.ask_within(&load, patience));
        sent.map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.master.transport.close();
    }
}

/// What a function gave, for the master.
pub struct Report {
    pub fun: SmolStr,
    pub call: Call,
    pub ret: Value,
    pub retcode: i64,
    pub out: Option<SmolStr>,
    pub user: SmolStr,
    pub metadata: Option<Value>,
}

fn of_sign_in(error: SignInError, master: &str) -> CallError {
    match error {
        SignInError::Pending => CallError::NotAccepted,
        error @ (SignInError::Rejected | SignInError::Finger { .. }) => CallError::Key(error),
        error => CallError::NoMaster(format!("Unable to sign_in to master {master}: {error}")),
    }
}

/// Starts a runtime on a thread of its own.
fn runtime() -> std::io::Result<(Handle, oneshot::Sender<()>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::Builder::new().name("master".into()).spawn(move || {
        runtime.block_on(async {
            // Ends when the sender is dropped.
            let _ = stopped.await;
        });
    })?;
    Ok((handle, stop))
}
