//! The minion's local event bus, for programs on this machine: two sockets, as genuine tools expect.
//!
//! What the daemon fires is handed to every listener; what programs send in is handed to every
//! listener too, and to the daemon, which acts on some of it.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use halite_transport::ipc::{Address, Listener, Publisher, PublisherOptions, Puller, Pusher};
use halite_value::Dict;
use halite_wire::Event;

/// The bus as the daemon holds it.
pub struct Bus {
    publisher: Option<Publisher>,
}

impl Bus {
    /// Opens both sockets. A bus that cannot be opened is no reason not to run: genuine tools will
    /// miss it, the master will not.
    pub async fn open(addresses: &(Address, Address)) -> (Arc<Self>, Option<Puller>) {
        for address in [&addresses.0, &addresses.1] {
            if let Address::Unix(path) = address
                && let Some(folder) = path.parent()
                && let Err(error) = std::fs::create_dir_all(folder)
            {
                tracing::warn!("cannot make {}: {error}", folder.display());
            }
        }
        let options = PublisherOptions { mode: 0o600, ..PublisherOptions::default() };
        let publisher = Publisher::bind(&addresses.0, options).await;
        let puller = Puller::bind(&addresses.1, 0o600).await;
        for error in [publisher.as_ref().err(), puller.as_ref().err()].into_iter().flatten() {
            tracing::warn!("the local event bus is not available: {error}");
        }
        (Arc::new(Self { publisher: publisher.ok() }), puller.ok())
    }

    /// A bus nobody listens to.
    pub fn closed() -> Arc<Self> {
        Arc::new(Self { publisher: None })
    }

    /// Fires an event to the listeners on this machine.
    pub fn fire(&self, tag: &str, data: &Dict) -> bool {
        let Some(publisher) = &self.publisher else { return false };
        match Event::new(tag, data.shallow_copy()).encode() {
            Ok(bytes) => {
                publisher.publish(&bytes);
                true
            }
            Err(error) => {
                tracing::warn!("the event {tag} cannot be fired: {error}");
                false
            }
        }
    }

    /// Hands on what a program sent.
    pub(crate) fn pass_on(&self, event: &Bytes) {
        if let Some(publisher) = &self.publisher {
            publisher.publish(event);
        }
    }
}

/// Sends an event to the daemon that runs on this machine, if one does.
pub(crate) async fn tell_daemon(address: &Address, tag: &str, data: &Dict) -> io::Result<()> {
    let event = Event::new(tag, data.shallow_copy()).encode().map_err(io::Error::other)?;
    let send = async {
        let mut pusher = Pusher::connect(address, true).await?;
        pusher.send(&event).await
    };
    tokio::time::timeout(Duration::from_secs(5), send).await.map_err(io::Error::other)?
}

/// Asks the daemon on this machine and waits for the event that answers; `None` without one.
pub(crate) async fn ask_daemon(
    daemon: &Address,
    listen: &Address,
    tag: &str,
    request: &Dict,
    reply: Option<&str>,
    patience: Duration,
) -> io::Result<Option<Dict>> {
    // Listening comes first, or the answer may be missed.
    let mut answers = match reply {
        Some(_) => Some(Listener::connect(listen).await?),
        None => None,
    };
    tell_daemon(daemon, tag, request).await?;
    let (Some(answers), Some(reply)) = (&mut answers, reply) else { return Ok(Some(Dict::new())) };
    let wait = async {
        while let Ok(Some(bytes)) = answers.next().await {
            if let Ok(event) = Event::decode(&bytes)
                && event.tag.as_str() == reply
            {
                return Some(event.data);
            }
        }
        None
    };
    Ok(tokio::time::timeout(patience, wait).await.unwrap_or(None))
}

/// As [`ask_daemon`], for who has no runtime of its own.
pub(crate) fn ask_daemon_now(
    opts: &Dict,
    tag: &str,
    request: &Dict,
    reply: Option<&str>,
) -> io::Result<Option<Dict>> {
    // The bus goes by the minion's id; whether there is a master does not matter here.
    let settings = super::options::Settings::read(opts).map_err(io::Error::other)?;
    let (listen, daemon) = settings.bus();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let patience = Duration::from_secs(5);
    runtime.block_on(ask_daemon(&daemon, &listen, tag, request, reply, patience))
}
