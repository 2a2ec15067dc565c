//! The master's two ZeroMQ ports.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::pulse::Pulse;
use super::zmtp::{self, Front, malformed};
use super::{extension, extension::Message};
use crate::drive::{Protocol, drive, drive_stream};
use crate::hub::{Hub, count};
use crate::lane::Lane;
use crate::listen::{self, Port, Shared};
use crate::options::ServerOptions;
use crate::outlet::{Keep, Outlet, Socket};
use crate::peer::{Ended, Peer, Role, Wire};
use crate::service::{ServeError, Server, Service};

/// Longest subscription prefix taken; Salt's topics have 40 characters.
const TOPIC_LIMIT: usize = 4 << 10;
/// Frames of one message: envelopes of a chain of routers, the delimiter, the body.
const FRAMES_LIMIT: usize = 64;
/// Requests a REQ peer may have waiting; a well-behaved one has at most one.
const REQ_DEPTH: usize = 16;

/// Listens on both ports and serves until the [`Server`] is dropped.
///
/// # Errors
/// If the interface cannot be resolved or a port cannot be bound.
pub async fn serve<S: Service>(
    options: &ServerOptions,
    hub: &Hub,
    service: Arc<S>,
) -> Result<Server, ServeError> {
    listen::start(options, hub, service, None, connection).await
}

async fn connection<S: Service>(
    shared: Arc<Shared<S>>,
    port: Port,
    stream: TcpStream,
    addr: SocketAddr,
) {
    count(&shared.hub.counters().accepted);
    let socket = Arc::new(Socket::Tcp(stream));
    let outlet = Outlet::new(Some(socket.clone()), shared.options.limits.outbound);
    let peer = Peer::new(&shared.hub, Some(addr), outlet, shared.options.pub_hwm);
    shared.gate.enter(&peer);
    let mut session = Session::new(shared.clone(), port, peer.clone());
    let why = drive(&socket, &peer.0.outlet, &mut session, Some(&shared.gate.budget)).await;
    peer.0.outlet.end();
    drop(socket);
    shared.gate.leave(&peer);
    session.end(&why);
}

/// Runs a connection over any stream.
pub(crate) async fn serve_stream<S: Service>(
    shared: Arc<Shared<S>>,
    port: Port,
    stream: impl AsyncRead + AsyncWrite,
) {
    count(&shared.hub.counters().accepted);
    let outlet = Outlet::new(None, shared.options.limits.outbound);
    let peer = Peer::new(&shared.hub, None, outlet, shared.options.pub_hwm);
    shared.gate.enter(&peer);
    let mut session = Session::new(shared.clone(), port, peer.clone());
    let budget = Some(&*shared.gate.budget);
    let why = drive_stream(stream, &peer.0.outlet, &mut session, budget).await;
    peer.0.outlet.end();
    shared.gate.leave(&peer);
    session.end(&why);
}

/// One connection's state.
struct Session<S> {
    shared: Arc<Shared<S>>,
    port: Port,
    peer: Peer,
    phase: Phase,
    born: Instant,
    pulse: Pulse,
    /// Frames of a message that is not complete yet.
    parts: Vec<Bytes>,
    parts_size: usize,
    /// Subscriptions, each with how often it was made.
    topics: Vec<(Bytes, u32)>,
    calls: Calls<S>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Ready,
    Subscriber,
    Requester { ordered: bool },
    Extended,
}

/// Made at the first request: most connections of a fleet are idle.
enum Calls<S> {
    None,
    Plain(Arc<Lane<S, Bytes>>),
    Extended(Arc<Lane<S, u64>>),
}

impl<S: Service> Session<S> {
    fn new(shared: Arc<Shared<S>>, port: Port, peer: Peer) -> Self {
        peer.0.outlet.send(&[zmtp::greeting()], Keep::Always);
        let pulse = Pulse::new(shared.options.heartbeat);
        Self {
            shared,
            port,
            peer,
            phase: Phase::Greeting,
            born: Instant::now(),
            pulse,
            parts: Vec::new(),
            parts_size: 0,
            topics: Vec::new(),
            calls: Calls::None,
        }
    }

    fn is_stranger(&self) -> bool {
        matches!(self.phase, Phase::Greeting | Phase::Ready)
    }

    fn end(self, why: &Ended) {
        if self.is_stranger() {
            count(&self.shared.hub.counters().handshakes_failed);
            tracing::debug!(addr = ?self.peer.addr(), %why, "handshake failed");
            return;
        }
        self.shared.hub.remove(&self.peer, self.topics.iter().map(|(topic, _)| topic));
        self.shared.service.down(&self.peer, why);
    }

    fn send_ready(&self) {
        let kind: &[u8] = match self.port {
            Port::Requests => b"ROUTER",
            Port::Publications => b"PUB",
        };
        let mut properties: Vec<(&str, &[u8])> = vec![("Socket-Type", kind)];
        if self.port == Port::Requests {
            properties.push(("Identity", b""));
            if self.shared.options.extension {
                properties.push((zmtp::EXTENSION, zmtp::EXTENSION_VERSION));
            }
        }
        self.peer.0.outlet.send(&[zmtp::ready(&properties)], Keep::Always);
    }

    fn command(&mut self, body: &Bytes) -> Result<(), Ended> {
        let (name, data) = zmtp::split_command(body)?;
        match name {
            b"READY" if self.phase == Phase::Ready => self.ready(data)?,
            b"ERROR" => {
                let reason = data.get(1..).unwrap_or_default();
                return Err(malformed(&format!(
                    "the peer refused: {}",
                    String::from_utf8_lossy(reason)
                )));
            }
            _ if self.is_stranger() => return Err(malformed("a command before READY")),
            b"PING" => {
                let (pong, ttl) = zmtp::answer_ping(&data)?;
                self.pulse.ttl = ttl;
                self.peer.0.outlet.send(&[pong], Keep::Always);
            }
            b"SUBSCRIBE" if self.phase == Phase::Subscriber => self.subscribe(&data)?,
            b"CANCEL" if self.phase == Phase::Subscriber => self.cancel(&data),
            // PONG needs no more than having been heard; what we do not know may come with later versions.
            _ => {}
        }
        Ok(())
    }

    fn ready(&mut self, data: Bytes) -> Result<(), Ended> {
        let properties = zmtp::properties(data)?;
        let find = |name: &str| properties.iter().find(|(key, _)| key == name).map(|(_, v)| v);
        let kind = find("socket-type").map_or(&[][..], |value| &value[..]);
        let extended = self.shared.options.extension
            && find(&zmtp::EXTENSION.to_ascii_lowercase())
                .is_some_and(|version| !version.is_empty());
        let (phase, role, wire) = match (self.port, kind) {
            (Port::Publications, b"SUB" | b"XSUB") => {
                (Phase::Subscriber, Role::Subscriber, Wire::Zmtp)
            }
            (Port::Requests, b"REQ") if extended => {
                (Phase::Extended, Role::Extended, Wire::Extended)
            }
            (Port::Requests, b"REQ") => {
                (Phase::Requester { ordered: true }, Role::Requester, Wire::Zmtp)
            }
            (Port::Requests, b"DEALER" | b"ROUTER") => {
                (Phase::Requester { ordered: false }, Role::Requester, Wire::Zmtp)
            }
            _ => {
                let kind = String::from_utf8_lossy(kind).into_owned();
                self.peer.0.outlet.send(&[zmtp::error("Invalid socket type")], Keep::Always);
                return Err(malformed(&format!(
                    "socket type {kind:?} does not belong on this port"
                )));
            }
        };
        self.peer.become_(role, wire);
        self.phase = phase;
        self.shared.gate.settle(&self.peer);
        self.shared.hub.add(&self.peer);
        self.shared.service.up(&self.peer);
        Ok(())
    }

    fn subscribe(&mut self, topic: &Bytes) -> Result<(), Ended> {
        if topic.len() > TOPIC_LIMIT {
            return Err(Ended::TooLarge { size: topic.len() as u64, limit: TOPIC_LIMIT });
        }
        if let Some((_, times)) = self.topics.iter_mut().find(|(known, _)| known == topic) {
            *times = times.saturating_add(1);
            return Ok(());
        }
        if self.topics.len() >= self.shared.options.limits.subscriptions {
            return Err(malformed("too many subscriptions"));
        }
        self.topics.push((Bytes::copy_from_slice(topic), 1));
        if self.shared.hub.subscribe_topic(&self.peer, topic) {
            self.shared.service.subscribed(&self.peer);
        }
        Ok(())
    }

    fn cancel(&mut self, topic: &Bytes) {
        let Some(at) = self.topics.iter().position(|(known, _)| known == topic) else { return };
        self.topics[at].1 -= 1;
        if self.topics[at].1 == 0 {
            self.topics.swap_remove(at);
            self.shared.hub.unsubscribe_topic(&self.peer, topic);
        }
    }

    fn message(&mut self, body: Bytes) -> Result<(), Ended> {
        let parts = std::mem::take(&mut self.parts);
        self.parts_size = 0;
        match self.phase {
            Phase::Greeting | Phase::Ready => Err(malformed("a message before READY")),
            Phase::Subscriber => match body.first() {
                Some(1) => self.subscribe(&body.slice(1..)),
                Some(0) => {
                    self.cancel(&body.slice(1..));
                    Ok(())
                }
                _ => Ok(()),
            },
            Phase::Requester { ordered } => {
                self.request(&parts, body, ordered);
                Ok(())
            }
            Phase::Extended => self.extended(body),
        }
    }

    fn request(&mut self, parts: &[Bytes], body: Bytes, ordered: bool) {
        // Everything up to the empty frame is the way back. Without one (a careless DEALER) it is all but the body.
        let delimiter = parts.iter().position(Bytes::is_empty);
        if delimiter.is_some_and(|at| at + 1 != parts.len()) {
            tracing::debug!(addr = ?self.peer.addr(), "a request of several frames was ignored");
            return;
        }
        let mut envelope = BytesMut::new();
        for part in parts {
            zmtp::put_header(&mut envelope, true, false, part.len());
            envelope.put_slice(part);
        }
        if let Calls::None = self.calls {
            let limits = &self.shared.options.limits;
            let size = if ordered { (1, REQ_DEPTH) } else { (limits.in_flight, limits.waiting) };
            let shared = &self.shared;
            let lane = Lane::new(&shared.service, &shared.hub, &self.peer, enveloped, size);
            self.calls = Calls::Plain(lane);
        }
        if let Calls::Plain(lane) = &self.calls {
            lane.submit(envelope.freeze(), body);
        }
    }

    fn extended(&mut self, body: Bytes) -> Result<(), Ended> {
        match extension::parse(body).ok_or_else(|| malformed("a frame cut short"))? {
            Message::Request(id, body) => {
                if let Calls::None = self.calls {
                    let limits = &self.shared.options.limits;
                    let size = (limits.in_flight, limits.waiting);
                    let shared = &self.shared;
                    let lane = Lane::new(&shared.service, &shared.hub, &self.peer, numbered, size);
                    self.calls = Calls::Extended(lane);
                }
                if let Calls::Extended(lane) = &self.calls {
                    lane.submit(id, body);
                }
            }
            Message::Subscribe => {
                self.shared.hub.subscribe(&self.peer);
                self.shared.service.subscribed(&self.peer);
            }
            Message::Notice(body) => self.shared.service.notice(&self.peer, body),
            Message::Reply(..)
            | Message::Publication(_)
            | Message::Declined(_)
            | Message::Unknown => {}
        }
        Ok(())
    }
}

fn enveloped(envelope: &Bytes, reply: Option<Bytes>) -> Vec<Bytes> {
    let Some(reply) = reply else { return Vec::new() };
    let mut head = BytesMut::with_capacity(envelope.len() + 9);
    head.put_slice(envelope);
    zmtp::put_header(&mut head, false, false, reply.len());
    vec![head.freeze(), reply]
}

fn numbered(&id: &u64, reply: Option<Bytes>) -> Vec<Bytes> {
    reply.map_or_else(|| extension::declined(id).to_vec(), |r| extension::reply(id, r).to_vec())
}

impl<S: Service> Protocol for Session<S> {
    fn input(&mut self, buf: &mut BytesMut) -> Result<usize, Ended> {
        if self.phase == Phase::Greeting {
            let Some(minor) = zmtp::take_greeting(buf)? else { return Ok(zmtp::GREETING_LEN) };
            self.pulse.speaks = minor >= 1;
            self.phase = Phase::Ready;
            self.send_ready();
        }
        loop {
            let limit = if self.is_stranger() {
                zmtp::HANDSHAKE_LIMIT
            } else {
                self.shared.options.limits.message.saturating_add(extension::OVERHEAD)
            };
            let frame = match zmtp::take_frame(buf, limit)? {
                Front::Frame(frame) => frame,
                Front::Wants(bytes) => return Ok(bytes),
            };
            if frame.command {
                self.command(&frame.body)?;
            } else if frame.more {
                self.parts_size = self.parts_size.saturating_add(frame.body.len());
                if self.is_stranger() || self.parts.len() >= FRAMES_LIMIT || self.parts_size > limit
                {
                    return Err(malformed("a message of too many parts"));
                }
                self.parts.push(frame.body);
            } else {
                self.message(frame.body)?;
            }
        }
    }

    fn tick(&mut self, now: Instant, heard: Instant) -> Result<Option<Instant>, Ended> {
        if self.is_stranger() {
            let end = self.born + self.shared.options.limits.handshake;
            return if now >= end { Err(Ended::HandshakeTimeout) } else { Ok(Some(end)) };
        }
        self.pulse.tick(now, heard, &self.peer.0.outlet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::Gate;
    use crate::random::Random;

    struct Echo;

    impl Service for Echo {
        async fn request(&self, _: &Peer, body: Bytes) -> Option<Bytes> {
            Some(body)
        }
    }

    fn shared() -> Arc<Shared<Echo>> {
        let options = ServerOptions::default();
        let gate = Gate::new(options.limits);
        Arc::new(Shared { options, hub: Hub::new(), service: Arc::new(Echo), gate, tls: None })
    }

    fn session(shared: &Arc<Shared<Echo>>, port: Port) -> Session<Echo> {
        let peer = Peer::new(&shared.hub, None, Outlet::new(None, 1 << 20), 10);
        Session::new(shared.clone(), port, peer)
    }

    fn hello(kind: &[u8], extended: bool) -> BytesMut {
        let mut bytes = BytesMut::from(&zmtp::greeting()[..]);
        let mut properties: Vec<(&str, &[u8])> = vec![("Socket-Type", kind)];
        if extended {
            properties.push((zmtp::EXTENSION, b"1"));
        }
        bytes.extend_from_slice(&zmtp::ready(&properties));
        bytes
    }

    #[tokio::test]
    async fn envelopes_come_back_unchanged() {
        let shared = shared();
        for envelope in [&b"\x01\x00"[..], b"\x01\x02ab\x01\x01c\x01\x00", b""] {
            let mut session = session(&shared, Port::Requests);
            let mut bytes = hello(b"DEALER", false);
            bytes.extend_from_slice(envelope);
            bytes.extend_from_slice(b"\x00\x02hi");
            session.input(&mut bytes).expect("well-formed");
            tokio::task::yield_now().await;
            let sent: Vec<_> = std::iter::from_fn(|| session.peer.0.outlet.pop()).collect();
            let reply = sent.last().expect("a reply").concat();
            assert_eq!(reply, [envelope, b"\x00\x02hi"].concat());
        }
    }

    #[tokio::test]
    async fn subscriptions_are_counted() {
        let shared = shared();
        let mut session = session(&shared, Port::Publications);
        session.input(&mut hello(b"SUB", false)).expect("well-formed");
        let mut feed =
            |bytes: &[u8]| session.input(&mut BytesMut::from(bytes)).expect("well-formed");
        let peer = || shared.hub.peers()[0].is_subscribed();
        assert!(!peer());
        feed(b"\x04\x0b\x09SUBSCRIBEa\x00\x02\x01a");
        assert!(peer());
        feed(b"\x04\x08\x06CANCELa");
        let publish = async || {
            let body = Bytes::from_static(b"abc");
            shared.hub.publish(crate::Delivery::all(), body).await.queued
        };
        assert_eq!(publish().await, 1);
        feed(b"\x00\x02\x00a\x00\x02\x00a");
        assert_eq!(publish().await, 0);
    }

    #[tokio::test]
    async fn hostile_peers_cannot_make_us_panic() {
        let shared = shared();
        let mut random = Random::new(23);
        let (mut refused, mut served) = (0, 0);
        for round in 0..8_000 {
            let (port, kind, extended) = match round % 4 {
                0 => (Port::Publications, &b"SUB"[..], false),
                1 => (Port::Requests, &b"REQ"[..], false),
                2 => (Port::Requests, &b"REQ"[..], true),
                _ => (Port::Requests, &b"DEALER"[..], false),
            };
            let mut bytes = hello(kind, extended);
            let clean = if random.chance(0.8) { bytes.len() } else { 0 };
            for _ in 0..random.below(6) {
                bytes.extend_from_slice(match random.below(7) {
                    0 => b"\x04\x0b\x09SUBSCRIBEa",
                    1 => b"\x04\x08\x06CANCELa",
                    2 => b"\x04\x0b\x04PING\x00\x0aabcd",
                    3 => b"\x01\x00\x00\x03abc",
                    4 => b"\x00\x0b\x01\0\0\0\0\0\0\0\x07xy",
                    5 => b"\x00\x01\x05",
                    _ => b"\x02\0\0\0\0\0\0\0\x03\x01ab",
                });
            }
            for _ in 0..random.below(4) {
                let at = clean + random.below((bytes.len() - clean) as u64 + 1) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            bytes.truncate(bytes.len() - random.below(4) as usize);
            let mut session = session(&shared, port);
            let mut buf = BytesMut::new();
            let mut result = Ok(0);
            for piece in bytes.chunks(1 + random.below(50) as usize) {
                buf.extend_from_slice(piece);
                result = session.input(&mut buf);
                if result.is_err() {
                    break;
                }
            }
            refused += usize::from(result.is_err());
            served += usize::from(result.is_ok());
            session.end(&result.err().unwrap_or(Ended::PeerClosed));
        }
        tokio::task::yield_now().await;
        assert!(refused > 500 && served > 500, "{refused} {served}");
        assert_eq!(shared.hub.statistics().connections, 0);
        let body = Bytes::from_static(b"abc");
        let receipt = shared.hub.publish(crate::Delivery::all(), body).await;
        assert_eq!(receipt, crate::Receipt::default(), "nothing is left of them");
    }
}
