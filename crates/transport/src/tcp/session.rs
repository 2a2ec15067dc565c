//! The client's end of a tcp connection.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::time::Instant;

use crate::client::Event;
use crate::drive::Protocol;
use crate::link::{Agreed, Answer, Dialect, Line, Purpose};
use crate::msgpack::{self, Scanner};
use crate::options::ClientOptions;
use crate::peer::Ended;

pub(crate) struct Session {
    publications: bool,
    line: Arc<Line>,
    limit: usize,
    scanner: Scanner,
}

impl Session {
    pub(crate) fn new(
        options: &ClientOptions,
        purpose: &Purpose,
        line: Arc<Line>,
        agreed: Agreed,
    ) -> Self {
        // There is no handshake: a connection can be used as soon as it is there.
        let _ = agreed.send(Dialect::Tcp);
        Self {
            publications: matches!(purpose, Purpose::Publications { .. }),
            line,
            limit: options.limits.message.saturating_add(super::OVERHEAD),
            scanner: Scanner::default(),
        }
    }
}

impl Protocol for Session {
    fn input(&mut self, buf: &mut BytesMut) -> Result<usize, Ended> {
        loop {
            let object = match msgpack::take(&mut self.scanner, buf, self.limit)? {
                Ok(object) => object,
                Err(wants) => return Ok(wants),
            };
            let parts = msgpack::lookup(&object, ["head", "body"]);
            let Some([head, Some(body)]) = parts else {
                return Err(Ended::Malformed("a frame without a body".into()));
            };
            if self.publications {
                let body = msgpack::content(&body).unwrap_or(body);
                self.line.event(Event::Publication(body));
            } else if let Some(id) = head.as_ref().and_then(super::number) {
                self.line.answer(id, Answer::Reply(body));
            }
        }
    }

    fn tick(&mut self, _: Instant, _: Instant) -> Result<Option<Instant>, Ended> {
        Ok(None)
    }
}
