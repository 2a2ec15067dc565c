//! The client's end of a ZeroMQ connection: a REQ or SUB towards a genuine master, or the Halite extension.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::time::Instant;

use super::extension::{self, Message};
use super::pulse::Pulse;
use super::zmtp::{self, Front, malformed};
use crate::client::Event;
use crate::drive::Protocol;
use crate::link::{Agreed, Answer, Dialect, Line, ONLY, Purpose};
use crate::options::ClientOptions;
use crate::outlet::Keep;
use crate::peer::Ended;

/// The client's end of one ZeroMQ connection.
pub(crate) struct Session {
    purpose: Purpose,
    line: Arc<Line>,
    /// Taken when the handshake is finished.
    agreed: Option<Agreed>,
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
    pub(crate) fn new(
        options: &ClientOptions,
        purpose: Purpose,
        line: Arc<Line>,
        agreed: Agreed,
    ) -> Self {
        line.outlet.send(&[zmtp::greeting()], Keep::Always);
        Self {
            offer: options.extension && matches!(purpose, Purpose::Requests),
            purpose,
            line,
            agreed: Some(agreed),
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
        self.line.outlet.send(&[zmtp::ready(&properties)], Keep::Always);
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
                self.line.outlet.send(&[pong], Keep::Always);
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
                self.line.outlet.send(&[piece], Keep::Always);
            }
        }
        if let Some(agreed) = self.agreed.take() {
            // Whoever was waiting may have run out of time; its guard closes the connection.
            let _ = agreed.send(if extended { Dialect::Extended } else { Dialect::Zmtp });
        }
        Ok(())
    }

    fn message(&mut self, body: Bytes) -> Result<(), Ended> {
        match (self.phase, &self.purpose) {
            (Phase::Greeting | Phase::Ready, _) => return Err(malformed("a message before READY")),
            (Phase::Plain, Purpose::Requests) => self.line.answer(ONLY, Answer::Reply(body)),
            (Phase::Plain, Purpose::Publications { .. }) => {
                self.line.event(Event::Publication(body));
            }
            (Phase::Extended, _) => {
                match extension::parse(body).ok_or_else(|| malformed("a frame cut short"))? {
                    Message::Reply(id, body) => self.line.answer(id, Answer::Reply(body)),
                    Message::Declined(id) => self.line.answer(id, Answer::Declined),
                    Message::Publication(body) => self.line.event(Event::Publication(body)),
                    Message::Notice(body) => self.line.event(Event::Notice(body)),
                    Message::Request(..) | Message::Subscribe | Message::Unknown => {}
                }
            }
        }
        Ok(())
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
            Phase::Plain | Phase::Extended => self.pulse.tick(now, heard, &self.line.outlet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Events;
    use crate::random::Random;
    use tokio::sync::oneshot;

    fn session(purpose: Purpose) -> (Session, oneshot::Receiver<Dialect>) {
        let line = Line::new(None, &Events::new(None));
        let (agree, agreed) = oneshot::channel();
        (Session::new(&ClientOptions::new("localhost", 1), purpose, line, agree), agreed)
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
            let expected = if extended { Dialect::Extended } else { Dialect::Zmtp };
            assert_eq!(handshaken.try_recv(), Ok(expected));
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
            let sent: Vec<_> = std::iter::from_fn(|| session.line.outlet.pop()).collect();
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
