//! The master's two tcp ports.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::drive::{Protocol, drive, drive_stream};
use crate::hub::{Hub, count};
use crate::lane::Lane;
use crate::listen::{self, Port, Shared};
use crate::msgpack::{self, Scanner};
use crate::options::ServerOptions;
use crate::outlet::{Outlet, Socket};
use crate::peer::{Ended, Peer, Role, Wire};
use crate::service::{ServeError, Server, Service};
use crate::tls;

/// Longest head echoed; Salt's have some fifty bytes.
const HEAD_LIMIT: usize = 4 << 10;

/// Listens on both ports and serves until the [`Server`] is dropped; with TLS if `options.ssl` is set.
///
/// # Errors
/// If a port cannot be bound, or the certificates cannot be used.
pub async fn serve<S: Service>(
    options: &ServerOptions,
    hub: &Hub,
    service: Arc<S>,
) -> Result<Server, ServeError> {
    let tls = options.ssl.as_ref().map(tls::acceptor).transpose().map_err(ServeError::Ssl)?;
    listen::start(options, hub, service, tls, connection).await
}

async fn connection<S: Service>(
    shared: Arc<Shared<S>>,
    port: Port,
    stream: TcpStream,
    addr: SocketAddr,
) {
    count(&shared.hub.counters().accepted);
    let options = &shared.options;
    let budget = Some(&*shared.gate.budget);
    if let Some(tls) = &shared.tls {
        let outlet = Outlet::new(None, options.limits.outbound);
        let peer = Peer::new(&shared.hub, Some(addr), outlet, options.pub_hwm);
        shared.gate.enter(&peer);
        match tls::accept(tls, stream, &peer, options.limits.handshake).await {
            Ok(stream) => {
                let mut session = Session::new(shared.clone(), port, peer.clone());
                let why = drive_stream(stream, &peer.0.outlet, &mut session, budget).await;
                session.end(&why);
            }
            Err(why) => {
                count(&shared.hub.counters().handshakes_failed);
                tracing::debug!(%addr, %why, "handshake failed");
                peer.0.outlet.end();
                shared.gate.leave(&peer);
            }
        }
    } else {
        let socket = Arc::new(Socket::Tcp(stream));
        let outlet = Outlet::new(Some(socket.clone()), options.limits.outbound);
        let peer = Peer::new(&shared.hub, Some(addr), outlet, options.pub_hwm);
        shared.gate.enter(&peer);
        let mut session = Session::new(shared.clone(), port, peer.clone());
        let why = drive(&socket, &peer.0.outlet, &mut session, budget).await;
        drop(socket);
        session.end(&why);
    }
}

struct Session<S> {
    shared: Arc<Shared<S>>,
    port: Port,
    peer: Peer,
    scanner: Scanner,
    lane: Option<Arc<Lane<S, Bytes>>>,
}

impl<S: Service> Session<S> {
    fn new(shared: Arc<Shared<S>>, port: Port, peer: Peer) -> Self {
        let role = match port {
            Port::Requests => Role::Requester,
            Port::Publications => Role::Subscriber,
        };
        peer.become_(role, Wire::Tcp);
        shared.gate.settle(&peer);
        shared.hub.add(&peer);
        shared.service.up(&peer);
        if port == Port::Publications {
            shared.hub.subscribe(&peer);
        }
        Self { shared, port, peer, scanner: Scanner::default(), lane: None }
    }

    fn end(self, why: &Ended) {
        self.peer.0.outlet.end();
        self.shared.gate.leave(&self.peer);
        self.shared.hub.remove(&self.peer, []);
        self.shared.service.down(&self.peer, why);
    }

    fn request(&mut self, head: Bytes, body: Bytes) {
        let lane = self.lane.get_or_insert_with(|| {
            let shared = &self.shared;
            let size = (shared.options.limits.in_flight, shared.options.limits.waiting);
            Lane::new(&shared.service, &shared.hub, &self.peer, reply, size)
        });
        lane.submit(head, body);
    }

    fn identify(&self, body: Bytes) {
        let (service, peer) = (self.shared.service.clone(), self.peer.clone());
        tokio::spawn(async move {
            if let Some(id) = service.identify(&peer, body).await {
                peer.bind(&id);
                service.subscribed(&peer);
            }
        });
    }
}

fn reply(head: &Bytes, reply: Option<Bytes>) -> Vec<Bytes> {
    reply.map_or_else(Vec::new, |reply| super::frame(head, reply).to_vec())
}

impl<S: Service> Protocol for Session<S> {
    fn input(&mut self, buf: &mut BytesMut) -> Result<usize, Ended> {
        let limit = self.shared.options.limits.message.saturating_add(super::OVERHEAD);
        loop {
            let object = match msgpack::take(&mut self.scanner, buf, limit)? {
                Ok(object) => object,
                Err(wants) => return Ok(wants),
            };
            let parts = msgpack::lookup(&object, ["head", "body"]);
            let Some([head, Some(body)]) = parts else {
                return Err(Ended::Malformed("a frame without a body".into()));
            };
            let head = head.unwrap_or_else(|| Bytes::from_static(super::NO_HEAD));
            if head.len() > HEAD_LIMIT {
                return Err(Ended::TooLarge { size: head.len() as u64, limit: HEAD_LIMIT });
            }
            match self.port {
                Port::Requests => self.request(head, body),
                Port::Publications => self.identify(body),
            }
        }
    }

    fn tick(&mut self, _: Instant, _: Instant) -> Result<Option<Instant>, Ended> {
        Ok(None)
    }
}
