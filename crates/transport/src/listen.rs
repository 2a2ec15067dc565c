//! Listening sockets, the accept loop, and what strangers may do before they are known.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::drive::Budget;
use crate::hub::{Hub, count};
use crate::options::{Keepalive, Limits, ServerOptions};
use crate::peer::{Ended, Peer};
use crate::service::{ServeError, Server, Service};

/// Which of the master's two ports a connection came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    Requests,
    Publications,
}

/// What all connections of one server share.
pub(crate) struct Shared<S> {
    pub(crate) options: ServerOptions,
    pub(crate) hub: Hub,
    pub(crate) service: Arc<S>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Listens on both ports and runs `connection` as a task for whatever comes.
pub(crate) async fn start<S, F>(
    options: &ServerOptions,
    hub: &Hub,
    service: Arc<S>,
    tls: Option<TlsAcceptor>,
    connection: fn(Arc<Shared<S>>, Port, TcpStream, SocketAddr) -> F,
) -> Result<Server, ServeError>
where
    S: Service,
    F: Future<Output = ()> + Send + 'static,
{
    let requests = bind(options, options.ret_port).await?;
    let publications = bind(options, options.publish_port).await?;
    let local = |listener: &TcpListener| {
        let source = |source| ServeError::Bind { address: options.interface.clone(), source };
        listener.local_addr().map_err(source)
    };
    let gate = Gate::new(options.limits);
    let server = Server {
        requests: local(&requests)?,
        publications: local(&publications)?,
        gate: gate.clone(),
    };
    let (options, hub) = (options.clone(), hub.clone());
    let shared = Arc::new(Shared { options, hub, service, gate, tls });
    for (listener, port) in [(requests, Port::Requests), (publications, Port::Publications)] {
        let shared = shared.clone();
        tokio::spawn(async move {
            let take = |stream, addr| {
                if shared.gate.is_full() {
                    count(&shared.hub.counters().refused);
                } else {
                    tokio::spawn(connection(shared.clone(), port, stream, addr));
                }
            };
            shared.gate.accept(listener, shared.options.keepalive, take).await;
        });
    }
    Ok(server)
}

/// Returns a listener for the given port of the configured interface.
pub(crate) async fn bind(options: &ServerOptions, port: u16) -> Result<TcpListener, ServeError> {
    let ip = interface(options).await?;
    let address = SocketAddr::new(ip, port);
    let listen = || -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if ip.is_ipv6() {
            // `[::]` serves IPv4 too, as libzmq does once IPV4ONLY is cleared.
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        socket.listen(i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
        socket.set_nonblocking(true)?;
        TcpListener::from_std(socket.into())
    };
    listen().map_err(|source| ServeError::Bind { address: address.to_string(), source })
}

async fn interface(options: &ServerOptions) -> Result<IpAddr, ServeError> {
    let name = unbracketed(&options.interface);
    let ip = match name.parse::<IpAddr>() {
        Ok(ip) => ip,
        Err(_) => {
            let fail = |source| ServeError::Resolve { name: name.to_owned(), source };
            let mut found = tokio::net::lookup_host((name, 0)).await.map_err(fail)?;
            let none = || fail(io::Error::new(io::ErrorKind::NotFound, "no address"));
            found.next().ok_or_else(none)?.ip()
        }
    };
    let any_v4 = ip.is_unspecified() && ip.is_ipv4();
    Ok(if options.ipv6 && any_v4 { Ipv6Addr::UNSPECIFIED.into() } else { ip })
}

/// Returns a host without the brackets around an IPv6 literal.
pub(crate) fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

/// Sets what every connection of ours has: no delay, and keepalive as configured.
pub(crate) fn tune(stream: &TcpStream, keepalive: &Keepalive) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    if !keepalive.enabled {
        return socket.set_keepalive(false);
    }
    let mut wanted = TcpKeepalive::new();
    if let Some(idle) = keepalive.idle {
        wanted = wanted.with_time(idle);
    }
    if let Some(interval) = keepalive.interval {
        wanted = wanted.with_interval(interval);
    }
    if let Some(count) = keepalive.count {
        wanted = wanted.with_retries(count);
    }
    socket.set_tcp_keepalive(&wanted)
}

/// Who may come in: who is here, who is still a stranger, and the way to end them all.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) limits: Limits,
    pub(crate) budget: Arc<Budget>,
    connections: Mutex<Connections>,
    stopped: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Connections {
    live: BTreeMap<u64, Peer>,
    strangers: BTreeMap<u64, Peer>,
}

impl Gate {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            budget: Budget::new(limits.inbound),
            connections: Mutex::default(),
            stopped: watch::Sender::new(false),
        })
    }

    /// A connection was accepted. If too many are unfinished, the oldest of them has had its time.
    pub(crate) fn enter(&self, peer: &Peer) {
        let connections = &mut *self.connections.lock();
        if *self.stopped.borrow() {
            peer.close();
        }
        connections.live.insert(peer.serial(), peer.clone());
        connections.strangers.insert(peer.serial(), peer.clone());
        if connections.strangers.len() > self.limits.handshakes.max(1)
            && let Some((_, oldest)) = connections.strangers.pop_first()
        {
            oldest.0.outlet.close(Ended::HandshakeTimeout);
        }
    }

    /// A connection has finished its handshake.
    pub(crate) fn settle(&self, peer: &Peer) {
        self.connections.lock().strangers.remove(&peer.serial());
    }

    /// A connection has ended.
    pub(crate) fn leave(&self, peer: &Peer) {
        let connections = &mut *self.connections.lock();
        connections.strangers.remove(&peer.serial());
        connections.live.remove(&peer.serial());
    }

    /// Ends listening and all connections.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
        for peer in self.connections.lock().live.values() {
            peer.close();
        }
    }

    fn is_full(&self) -> bool {
        self.connections.lock().live.len() >= self.limits.connections
    }

    /// Accepts until stopped. Running out of descriptors is a pause, not an end.
    pub(crate) async fn accept(
        &self,
        listener: TcpListener,
        keepalive: Keepalive,
        mut take: impl FnMut(TcpStream, SocketAddr),
    ) {
        let mut stopped = self.stopped.subscribe();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|&stop| stop) => return,
            };
            match accepted {
                Ok((stream, addr)) => {
                    // The peer may be gone already; the connection's own loop will find out.
                    let _ = tune(&stream, &keepalive);
                    take(stream, addr);
                }
                Err(error) if is_transient(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again in a moment");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }
}

/// Tells whether the error concerns the one connection that was to be accepted.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
