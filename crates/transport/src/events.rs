//! The client's queue of events between its connections and the one reader of `next`.
//!
//! Bounded: a reader that stands still loses publications (counted, logged), not memory. Reading from the network goes
//! on meanwhile, since the same connection may carry the reply that the reader is waiting for.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::client::Event;
use crate::simulated::Network;

const MOST: usize = 10_000;
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<Queue>,
    arrived: Notify,
    /// The simulated network may let publications come twice.
    repeats: Option<Network>,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    bytes: usize,
    dropped: u64,
    closed: bool,
}

fn weight(event: &Event) -> usize {
    match event {
        Event::Publication(body) | Event::Notice(body) => body.len(),
        Event::Connected(_) | Event::Disconnected(_) => 0,
    }
}

impl Events {
    pub(crate) fn new(repeats: Option<Network>) -> Arc<Self> {
        Arc::new(Self { repeats, ..Self::default() })
    }

    pub(crate) fn push(&self, event: Event) {
        let publication = matches!(event, Event::Publication(_));
        if publication && self.repeats.as_ref().is_some_and(Network::repeats) {
            self.push_once(event.clone());
        }
        self.push_once(event);
    }

    fn push_once(&self, event: Event) {
        let mut queue = self.queue.lock();
        let size = weight(&event);
        let full = queue.events.len() >= MOST || queue.bytes + size > MOST_BYTES;
        let optional = matches!(event, Event::Publication(_) | Event::Notice(_));
        if queue.closed {
            return;
        }
        if full && optional {
            queue.dropped += 1;
            if queue.dropped.is_power_of_two() {
                tracing::warn!(
                    dropped = queue.dropped,
                    "publications come faster than they are read"
                );
            }
            return;
        }
        queue.bytes += size;
        queue.events.push_back(event);
        drop(queue);
        self.arrived.notify_one();
    }

    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.arrived.notify_waiters();
        self.arrived.notify_one();
    }

    pub(crate) async fn next(&self) -> Option<Event> {
        loop {
            let arrived = self.arrived.notified();
            {
                let queue = &mut *self.queue.lock();
                if let Some(event) = queue.events.pop_front() {
                    queue.bytes -= weight(&event);
                    return Some(event);
                }
                queue.events = VecDeque::new();
                if queue.closed {
                    return None;
                }
            }
            arrived.await;
        }
    }
}
