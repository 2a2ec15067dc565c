//! One outgoing ZeroMQ connection: a REQ or SUB towards a genuine master, or the Halite extension.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::extension::{self, Message};
use super::pulse::Pulse;
use super::zmtp::{self, Front, malformed};
use crate::client::Event;
use crate::dial::dial;
use crate::drive::{Protocol, drive};
use crate::events::Events;
use crate::options::ClientOptions;
use crate::outlet::{Keep, Outlet, Sent, Socket};
use crate::peer::Ended;

/// What a connection is opened for.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    Requests,
    Publications { port: u16, topics: Vec<Bytes> },
}

/// An open connection. Its task ends when it is closed from either side.
pub(super) struct Link {
    pub(super) remote: SocketAddr,
    pub(super) extended: bool,
    wire: Arc<Wire>,
}

/// What the connection's task and the askers share.
struct Wire {
    outlet: Outlet,
    asks: Mutex<Asks>,
    busy: AtomicBool,
    ended: watch::Sender<Option<Arc<str>>>,
}

#[derive(Default)]
struct Asks {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
}

/// How a question fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Reply(Bytes),
    Declined,
    /// The connection ended; the master may have seen the question.
    Lost(Arc<str>),
    /// The connection had ended before: the question never left.
    NotSent,
}

/// A plain connection carries one question at a time; this is the number under which its asker waits.
const PLAIN: u64 = 0;

impl Link {
    /// Connects and finishes the handshake.
    pub(super) async fn open(
        options: &ClientOptions,
        purpose: Purpose,
        events: &Arc<Events>,
    ) -> Result<Arc<Self>, String> {
        let end = Instant::now() + options.connect_timeout;
        let (port, source_port) = match purpose {
            Purpose::Requests => (options.port, options.source_ret_port),
            Purpose::Publications { port, .. } => (port, options.source_publish_port),
        };
        let (stream, remote) =
            dial(options, port, source_port).await.map_err(|error| error.to_string())?;
        let socket = Arc::new(Socket::Tcp(stream));
        let wire = Arc::new(Wire {
            outlet: Outlet::new(Some(socket.clone()), usize::MAX),
            asks: Mutex::default(),
            busy: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        });
        let (ready, handshaken) = oneshot::channel();
        let session = Session::new(options, purpose, wire.clone(), events.clone(), ready);
        tokio::spawn(run(socket, wire.clone(), session));
        let mut ended = wire.ended.subscribe();
        let opening = Opening(&wire);
        let extended = tokio::select! {
            extended = handshaken => extended.ok(),
            () = tokio::time::sleep_until(end) => return Err("the handshake timed out".into()),
        };
        std::mem::forget(opening);
        let Some(extended) = extended else {
            let why = ended.wait_for(Option::is_some).await;
            return Err(why.ok().and_then(|why| why.clone()).as_deref().unwrap_or("closed").into());
        };
        Ok(Arc::new(Self { remote, extended, wire }))
    }

    /// Waits until the connection has ended and tells why.
    pub(super) async fn ended(&self) -> Arc<str> {
        let mut ended = self.wire.ended.subscribe();
        let why = ended.wait_for(Option::is_some).await;
        why.ok().and_then(|why| why.clone()).unwrap_or_else(|| "closed".into())
    }

    pub(super) fn is_open(&self) -> bool {
        !self.wire.outlet.has_ended()
    }

    pub(super) fn close(&self) {
        self.wire.outlet.close(Ended::Closed);
    }

    /// Takes a plain connection for one question; false if someone else has it.
    pub(super) fn claim(&self) -> bool {
        self.extended || !self.wire.busy.swap(true, Ordering::AcqRel)
    }

    /// Asks; on a plain connection the caller has claimed it. Dropping the future discards a plain connection.
    pub(super) async fn ask(&self, body: Bytes) -> Answer {
        let (reply, answer) = oneshot::channel();
        let id = {
            let asks = &mut *self.wire.asks.lock();
            if self.extended {
                asks.last += 1;
            }
            asks.waiting.insert(asks.last, reply);
            asks.last
        };
        let guard = Asking { link: self, id, answered: false };
        let sent = if self.extended {
            self.wire.outlet.send(&extension::request(id, body), Keep::Always)
        } else {
            let mut head = BytesMut::with_capacity(11);
            zmtp::put_header(&mut head, true, false, 0);
            zmtp::put_header(&mut head, false, false, body.len());
            self.wire.outlet.send(&[head.freeze(), body], Keep::Always)
        };
        if sent == Sent::Gone {
            return Answer::NotSent;
        }
        let answer = answer.await.unwrap_or_else(|_| Answer::Lost("closed".into()));
        guard.answered();
        answer
    }

    pub(super) fn send_notice(&self, body: Bytes) -> bool {
        self.extended && self.wire.outlet.send(&extension::notice(body), Keep::Always) != Sent::Gone
    }

    pub(super) fn send_subscribe(&self) {
        self.wire.outlet.send(&extension::subscribe(), Keep::Always);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

/// Ends the connection when whoever was opening it went away.
struct Opening<'a>(&'a Wire);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.outlet.close(Ended::Closed);
    }
}

struct Asking<'a> {
    link: &'a Link,
    id: u64,
    answered: bool,
}

impl Asking<'_> {
    fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let link = self.link;
        link.wire.asks.lock().waiting.remove(&self.id);
        if link.extended {
            return;
        }
        if !self.answered {
            // REQ cannot take a question back: the late reply would answer the next one.
            link.close();
        }
        link.wire.busy.store(false, Ordering::Release);
    }
}

async fn run(socket: Arc<Socket>, wire: Arc<Wire>, mut session: Session) {
    let why = drive(&socket, &wire.outlet, &mut session, None).await;
    wire.outlet.end();
    drop((socket, session));
    let why: Arc<str> = why.to_string().into();
    wire.ended.send_replace(Some(why.clone()));
    let waiting = std::mem::take(&mut wire.asks.lock().waiting);
    for (_, reply) in waiting {
        let _ = reply.send(Answer::Lost(why.clone()));
    }
}

struct Session {
    purpose: Purpose,
    wire: Arc<Wire>,
    events: Arc<Events>,
    /// Taken when the handshake is finished; its value tells whether the link is extended.
    ready: Option<oneshot::Sender<bool>>,
    phase: Phase,
    pulse: Pulse,
    offer: bool,
    minor: u8,
    limit: usize,
    parts: usize,
    parts_size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Ready,
    Plain,
    Extended,
}

impl Session {
    fn new(
        options: &ClientOptions,
        purpose: Purpose,
        wire: Arc<Wire>,
        events: Arc<Events>,
        ready: oneshot::Sender<bool>,
    ) -> Self {
        wire.outlet.send(&[zmtp::greeting()], Keep::Always);
        Self {
            offer: options.extension && matches!(purpose, Purpose::Requests),
            purpose,
            wire,
            events,
            ready: Some(ready),
            phase: Phase::Greeting,
            pulse: Pulse::new(options.heartbeat),
            minor: 0,
            limit: options.limits.message.saturating_add(extension::OVERHEAD),
            parts: 0,
            parts_size: 0,
        }
    }

    fn send_ready(&self) {
        let mut properties: Vec<(&str, &[u8])> = match self.purpose {
            Purpose::Requests => vec![("Socket-Type", b"REQ"), ("Identity", b"")],
            Purpose::Publications { .. } => vec![("Socket-Type", b"SUB")],
        };
        if self.offer {
            properties.push((zmtp::EXTENSION, zmtp::EXTENSION_VERSION));
        }
        self.wire.outlet.send(&[zmtp::ready(&properties)], Keep::Always);
    }

    fn command(&mut self, body: &Bytes) -> Result<(), Ended> {
        let (name, data) = zmtp::split_command(body)?;
        match name {
            b"READY" if self.phase == Phase::Ready => self.ready(data),
            b"ERROR" => {
                let reason = data.get(1..).unwrap_or_default();
                let reason = String::from_utf8_lossy(reason);
                Err(malformed(&format!("the master refused: {reason}")))
            }
            _ if matches!(self.phase, Phase::Greeting | Phase::Ready) => {
                Err(malformed("a command before READY"))
            }
            b"PING" => {
                let (pong, ttl) = zmtp::answer_ping(&data)?;
                self.pulse.ttl = ttl;
                self.wire.outlet.send(&[pong], Keep::Always);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn ready(&mut self, data: Bytes) -> Result<(), Ended> {
        let properties = zmtp::properties(data)?;
        let find = |name: &str| properties.iter().find(|(key, _)| key == name).map(|(_, v)| v);
        let kind = find("socket-type").map_or(&[][..], |value| &value[..]);
        let fits = match self.purpose {
            Purpose::Requests => matches!(kind, b"ROUTER" | b"REP"),
            Purpose::Publications { .. } => matches!(kind, b"PUB" | b"XPUB"),
        };
        if !fits {
            let kind = String::from_utf8_lossy(kind);
            return Err(malformed(&format!("the other end is a {kind:?} socket")));
        }
        let extended = self.offer
            && find(&zmtp::EXTENSION.to_ascii_lowercase())
                .is_some_and(|version| !version.is_empty());
        self.phase = if extended { Phase::Extended } else { Phase::Plain };
        if let Purpose::Publications { topics, .. } = &self.purpose {
            for topic in topics {
                let piece = if self.minor >= 1 {
                    zmtp::command("SUBSCRIBE", topic)
                } else {
                    let mut message = BytesMut::with_capacity(topic.len() + 10);
                    zmtp::put_header(&mut message, false, false, topic.len() + 1);
                    message.put_u8(1);
                    message.put_slice(topic);
                    message.freeze()
                };
                self.wire.outlet.send(&[piece], Keep::Always);
            }
        }
        if let Some(ready) = self.ready.take() {
            // Whoever was waiting may have run out of time; its guard closes the connection.
            let _ = ready.send(extended);
        }
        Ok(())
    }

    fn message(&mut self, body: Bytes) -> Result<(), Ended> {
        match (self.phase, &self.purpose) {
            (Phase::Greeting | Phase::Ready, _) => return Err(malformed("a message before READY")),
            (Phase::Plain, Purpose::Requests) => self.answer(PLAIN, Answer::Reply(body)),
            (Phase::Plain, Purpose::Publications { .. }) => {
                self.events.push(Event::Publication(body));
            }
            (Phase::Extended, _) => {
                match extension::parse(body).ok_or_else(|| malformed("a frame cut short"))? {
                    Message::Reply(id, body) => self.answer(id, Answer::Reply(body)),
                    Message::Declined(id) => self.answer(id, Answer::Declined),
                    Message::Publication(body) => self.events.push(Event::Publication(body)),
                    Message::Notice(body) => self.events.push(Event::Notice(body)),
                    Message::Request(..) | Message::Subscribe | Message::Unknown => {}
                }
            }
        }
        Ok(())
    }

    fn answer(&self, id: u64, answer: Answer) {
        let asker = self.wire.asks.lock().waiting.remove(&id);
        if let Some(asker) = asker {
            let _ = asker.send(answer);
        }
    }
}

impl Protocol for Session {
    fn input(&mut self, buf: &mut BytesMut) -> Result<usize, Ended> {
        if self.phase == Phase::Greeting {
            let Some(minor) = zmtp::take_greeting(buf)? else { return Ok(zmtp::GREETING_LEN) };
            self.minor = minor;
            self.pulse.speaks = minor >= 1;
            self.phase = Phase::Ready;
            self.send_ready();
        }
        loop {
            let frame = match zmtp::take_frame(buf, self.limit)? {
                Front::Frame(frame) => frame,
                Front::Wants(bytes) => return Ok(bytes),
            };
            if frame.command {
                self.command(&frame.body)?;
            } else if frame.more {
                // Topics, delimiters: nothing before the last frame is for our user.
                self.parts += 1;
                self.parts_size = self.parts_size.saturating_add(frame.body.len());
                if self.parts > 64 || self.parts_size > self.limit {
                    return Err(malformed("a message of too many parts"));
                }
            } else {
                (self.parts, self.parts_size) = (0, 0);
                self.message(frame.body)?;
            }
        }
    }

    fn tick(&mut self, now: Instant, heard: Instant) -> Result<Option<Instant>, Ended> {
        match self.phase {
            // Whoever opens the connection keeps the time.
            Phase::Greeting | Phase::Ready => Ok(None),
            Phase::Plain | Phase::Extended => self.pulse.tick(now, heard, &self.wire.outlet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn session(purpose: Purpose) -> (Session, oneshot::Receiver<bool>) {
        let wire = Arc::new(Wire {
            outlet: Outlet::new(None, usize::MAX),
            asks: Mutex::default(),
            busy: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        });
        let (ready, handshaken) = oneshot::channel();
        let options = ClientOptions::new("localhost", 1);
        (Session::new(&options, purpose, wire, Events::new(), ready), handshaken)
    }

    fn greeted(kind: &[u8], extended: bool) -> BytesMut {
        let mut bytes = BytesMut::from(&zmtp::greeting()[..]);
        let mut properties: Vec<(&str, &[u8])> = vec![("Socket-Type", kind)];
        if extended {
            properties.push((zmtp::EXTENSION, b"1"));
        }
        bytes.extend_from_slice(&zmtp::ready(&properties));
        bytes
    }

    #[test]
    fn the_extension_needs_both_ends() {
        for extended in [true, false] {
            let (mut session, mut handshaken) = session(Purpose::Requests);
            session.input(&mut greeted(b"ROUTER", extended)).expect("a good handshake");
            assert_eq!(handshaken.try_recv(), Ok(extended));
        }
        let (mut wrong, _) = session(Purpose::Requests);
        assert!(wrong.input(&mut greeted(b"PUB", false)).is_err());
    }

    #[test]
    fn subscriptions_take_the_form_the_peer_understands() {
        for (minor, expected) in [(0, &b"\x00\x03\x01ab"[..]), (1, &b"\x04\x0c\x09SUBSCRIBEab"[..])]
        {
            let topics = vec![Bytes::from_static(b"ab")];
            let (mut session, _) = session(Purpose::Publications { port: 1, topics });
            let mut bytes = greeted(b"PUB", false);
            bytes[11] = minor;
            session.input(&mut bytes).expect("a good handshake");
            let sent: Vec<_> = std::iter::from_fn(|| session.wire.outlet.pop()).collect();
            assert_eq!(sent.last().expect("a subscription")[0], expected);
        }
    }

    #[test]
    fn a_hostile_master_cannot_make_us_panic() {
        let mut random = Random::new(11);
        for round in 0..5_000 {
            let purpose = if round % 2 == 0 {
                Purpose::Requests
            } else {
                Purpose::Publications { port: 1, topics: vec![Bytes::new()] }
            };
            let kind: &[u8] = if round % 2 == 0 { b"ROUTER" } else { b"PUB" };
            let (mut session, _kept) = session(purpose);
            let mut bytes = greeted(kind, round % 3 == 0);
            let clean = bytes.len();
            bytes.extend((0..random.below(200)).map(|_| (random.next() & 7) as u8));
            let first = if random.chance(0.8) { clean } else { 0 };
            for _ in 0..random.below(8) {
                let at = first + random.below((bytes.len() - first) as u64 + 1) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            // In pieces of any size, as the network may cut it.
            let mut buf = BytesMut::new();
            for piece in bytes.chunks(1 + random.below(40) as usize) {
                buf.extend_from_slice(piece);
                if session.input(&mut buf).is_err() {
                    break;
                }
            }
        }
    }
}
