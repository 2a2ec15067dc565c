//! The event bus of a minion on this machine, as `state.event node=minion` watches it.
//!
//! It is Salt's own local socket: a stream of msgpack maps whose `body` is the event.

use std::{
    io::{ErrorKind, Read},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use halite_spec::{Cx, Error, Result};
use halite_value::{
    Value,
    msgpack::{self, Text},
};
use halite_wire::Event;

/// No event is larger.
const LARGEST: usize = 64 << 20;
/// How often a quiet bus lets somebody look around.
const LOOK: Duration = Duration::from_millis(500);

/// A minion's bus.
pub(crate) struct MinionBus {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl MinionBus {
    /// Connects to the one minion whose sockets lie in the folder, or to the one beside the master.
    pub(crate) fn connect(cx: &Cx, sock_dir: Option<&str>) -> Result<Self> {
        let own = cx.opt_str("sock_dir").unwrap_or_default();
        let own = Path::new(own.as_str());
        let beside = own.parent().map(|folder| folder.join("minion"));
        let folders: Vec<PathBuf> = match sock_dir {
            Some(folder) => vec![folder.into()],
            None => beside.into_iter().chain([own.to_owned()]).collect(),
        };
        let mut found: Vec<PathBuf> = folders.iter().flat_map(|folder| sockets(folder)).collect();
        // Those of minions that are gone stay behind.
        let mut streams: Vec<(PathBuf, UnixStream)> = found
            .drain(..)
            .filter_map(|path| UnixStream::connect(&path).ok().map(|stream| (path, stream)))
            .collect();
        let stream = match (streams.pop(), streams.pop()) {
            (Some((_, stream)), None) => stream,
            (None, _) => {
                let folders: Vec<String> =
                    folders.iter().map(|folder| folder.display().to_string()).collect();
                let text = format!("no minion runs on this machine ({})", folders.join(", "));
                return Err(Error::failed(text));
            }
            (Some((one, _)), Some((other, _))) => {
                let text = format!(
                    "several minions run on this machine ({}, {}): give sock_dir",
                    one.display(),
                    other.display()
                );
                return Err(Error::failed(text));
            }
        };
        stream.set_read_timeout(Some(LOOK)).map_err(|error| Error::failed(error.to_string()))?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Waits for the next event; `None` when there was none for a while.
    pub(crate) fn next(&mut self) -> Result<Option<Event>> {
        loop {
            match msgpack::read_prefix(&self.buffer, Text::Typed) {
                Ok((value, taken)) => {
                    self.buffer.drain(..taken);
                    let body = match value.get("body") {
                        Some(Value::Bytes(body)) => body.to_vec(),
                        Some(Value::Str(body)) => body.as_bytes().to_vec(),
                        _ => continue,
                    };
                    match Event::decode(&body) {
                        Ok(event) => return Ok(Some(event)),
                        Err(error) => tracing::debug!("no event: {error}"),
                    }
                }
                Err(msgpack::Error::Truncated) if self.buffer.len() < LARGEST => {
                    let mut part = [0; 65_536];
                    match self.stream.read(&mut part) {
                        Ok(0) => return Err(Error::failed("the minion ended")),
                        Ok(n) => self.buffer.extend(part.iter().take(n)),
                        Err(error) if is_pause(error.kind()) => return Ok(None),
                        Err(error) => return Err(Error::failed(error.to_string())),
                    }
                }
                Err(error) => return Err(Error::failed(error.to_string())),
            }
        }
    }
}

fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("minion_event_") && name.ends_with("_pub.ipc")
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
