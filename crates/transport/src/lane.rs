//! The requests of one connection on their way through the service.
//!
//! Each request runs as a task, so that the connection goes on reading (a peer that waits for a slow answer still has
//! its PINGs answered). A lane of width one keeps the order, as a ZeroMQ REQ peer needs it; wider lanes answer as
//! answers come.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::hub::{Hub, count};
use crate::outlet::Keep;
use crate::peer::Peer;
use crate::service::Service;

/// How the answer to one request is written; called with `None` when there is none.
pub(crate) type Frame<T> = fn(&T, Option<Bytes>) -> Vec<Bytes>;

pub(crate) struct Lane<S, T> {
    service: Arc<S>,
    hub: Hub,
    peer: Peer,
    frame: Frame<T>,
    width: usize,
    depth: usize,
    calls: Mutex<Calls<T>>,
}

struct Calls<T> {
    working: usize,
    waiting: VecDeque<(T, Bytes)>,
}

impl<S: Service, T: Clone + Send + 'static> Lane<S, T> {
    pub(crate) fn new(
        service: &Arc<S>,
        hub: &Hub,
        peer: &Peer,
        frame: Frame<T>,
        (width, depth): (usize, usize),
    ) -> Arc<Self> {
        Arc::new(Self {
            service: service.clone(),
            hub: hub.clone(),
            peer: peer.clone(),
            frame,
            width: width.max(1),
            depth,
            calls: Mutex::new(Calls { working: 0, waiting: VecDeque::new() }),
        })
    }

    /// Takes a request; `to` is what its answer needs to find the way.
    pub(crate) fn submit(self: &Arc<Self>, to: T, body: Bytes) {
        count(&self.hub.counters().requests);
        let calls = &mut *self.calls.lock();
        if calls.working < self.width {
            calls.working += 1;
            tokio::spawn(self.clone().work(to, body));
        } else if calls.waiting.len() < self.depth {
            calls.waiting.push_back((to, body));
        } else {
            count(&self.hub.counters().requests_dropped);
        }
    }

    async fn work(self: Arc<Self>, mut to: T, mut body: Bytes) {
        loop {
            let mut turn = Turn { lane: &self, to: Some(to.clone()) };
            let reply = self.service.request(&self.peer, body).await;
            turn.to = None;
            self.answer(&to, reply);
            match self.next() {
                Some(next) => (to, body) = next,
                None => return,
            }
        }
    }

    fn answer(&self, to: &T, reply: Option<Bytes>) {
        let pieces = (self.frame)(to, reply);
        if !pieces.is_empty() {
            self.peer.0.outlet.send(&pieces, Keep::Always);
        }
    }

    fn next(&self) -> Option<(T, Bytes)> {
        let calls = &mut *self.calls.lock();
        let next = calls.waiting.pop_front();
        if next.is_none() {
            calls.working -= 1;
            calls.waiting = VecDeque::new();
        }
        next
    }
}

/// Still holds `to` when dropped only if the service panicked: then the lane must not stay blocked.
struct Turn<'a, S: Service, T: Clone + Send + 'static> {
    lane: &'a Arc<Lane<S, T>>,
    to: Option<T>,
}

impl<S: Service, T: Clone + Send + 'static> Drop for Turn<'_, S, T> {
    fn drop(&mut self) {
        let Some(to) = self.to.take().filter(|_| std::thread::panicking()) else { return };
        self.lane.answer(&to, None);
        if let Some((to, body)) = self.lane.next()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(self.lane.clone().work(to, body));
        }
    }
}
