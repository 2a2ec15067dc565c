//! The running master, as runners reach it.

use std::path::Path;

use halite_client::{Client, Job, Outcome, Patience, Request};
use halite_spec::{Cx, Error, Event, Result};
use halite_value::{Dict, Value};

/// Connects to the master's control socket.
pub(crate) fn connect(cx: &Cx) -> Result<Client> {
    let folder = cx.opt_str("sock_dir").unwrap_or_default();
    Client::connect(Path::new(folder.as_str())).map_err(failed)
}

pub(crate) fn failed(error: halite_client::Error) -> Error {
    Error::failed(error.to_string())
}

/// Asks one question.
pub(crate) fn ask(cx: &Cx, request: &Request) -> Result<Value> {
    connect(cx)?.call(request).map_err(failed)
}

/// Runs a job on minions to its end.
pub(crate) fn run(cx: &Cx, job: &Job, patience: Option<Patience>) -> Result<Outcome> {
    let patience = patience.unwrap_or_else(|| Patience::from_opts(&cx.opts));
    connect(cx)?.run(job, patience).map_err(failed)
}

/// Prints a line on the user's terminal, where there is one.
pub(crate) fn say(cx: &Cx, text: impl Into<Value>) -> Result<()> {
    let event = Event { tag: crate::PRINT.into(), data: text.into(), pretag: None, local: true };
    cx.runtime.clone().fire(cx, event).map(drop)
}

/// Tells how far a runner is: an event `progress` of its job.
pub(crate) fn progress(cx: &Cx, data: Dict) -> Result<()> {
    let event = Event { tag: "progress".into(), data: data.into(), pretag: None, local: false };
    cx.runtime.clone().fire(cx, event).map(drop)
}
