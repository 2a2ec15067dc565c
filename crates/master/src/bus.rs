//! The event bus: one publisher, a bounded queue for every subscriber.
//!
//! [`Bus::fire`] never waits. A subscriber that does not keep up finds a [`Item::Gap`] with the
//! number of events it missed, and slows nobody else. Every event gets a cursor: its place in the
//! log (see `store`), so that a reader can go on where it stopped. Salt's own local sockets are fed
//! from here too.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use halite_transport::ipc;
use halite_value::{Dict, Value};
use halite_wire::Event;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// An event that was fired. Its data must not be changed any more.
#[derive(Debug)]
pub struct Fired {
    pub cursor: u64,
    pub tag: String,
    pub data: Dict,
    /// As it travels: tag, two line feeds, msgpack.
    pub bytes: Bytes,
}

/// What a subscriber finds in its queue.
#[derive(Clone, Debug)]
pub enum Item<T> {
    One(T),
    /// This many were dropped.
    Gap(u64),
}

/// What waits for one subscriber may take this much memory.
const LARGEST_QUEUE: usize = 64 << 20;

/// How much memory an item takes, roughly.
pub trait Weigh {
    fn weight(&self) -> usize {
        0
    }
}

/// How a job goes: its returns are in the store anyway.
impl Weigh for halite_client::Progress {}

impl Weigh for Arc<Fired> {
    fn weight(&self) -> usize {
        // The bytes, and about as much again for the data.
        self.bytes.len() * 2 + 200
    }
}

/// A bounded queue with one reader: full means that the newest are counted, not kept.
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    arrived: Notify,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    weight: usize,
    missed: u64,
    closed: bool,
}

impl<T: Weigh> Queue<T> {
    pub fn new(limit: usize) -> Arc<Self> {
        let state = State { items: VecDeque::new(), weight: 0, missed: 0, closed: false };
        Arc::new(Self { state: Mutex::new(state), arrived: Notify::new(), limit })
    }

    pub fn push(&self, item: T) {
        {
            let mut state = self.state.lock();
            if state.closed {
                return;
            }
            // Once something was dropped, the gap comes first: order is kept.
            let is_full = state.items.len() >= self.limit || state.weight > LARGEST_QUEUE;
            if state.missed > 0 || is_full {
                state.missed += 1;
            } else {
                state.weight += item.weight();
                state.items.push_back(item);
            }
        }
        self.arrived.notify_one();
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Takes what is there without waiting.
    pub fn try_next(&self) -> Option<Item<T>> {
        let mut state = self.state.lock();
        if let Some(item) = state.items.pop_front() {
            state.weight = state.weight.saturating_sub(item.weight());
            return Some(Item::One(item));
        }
        match std::mem::take(&mut state.missed) {
            0 => None,
            missed => Some(Item::Gap(missed)),
        }
    }

    /// Waits for the next; `None` once closed and empty. Cancel safe.
    pub async fn next(&self) -> Option<Item<T>> {
        loop {
            if let Some(item) = self.try_next() {
                return Some(item);
            }
            if self.state.lock().closed {
                return None;
            }
            self.arrived.notified().await;
        }
    }

    /// Returns how many wait.
    pub fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Takes events to keep them.
pub trait Log: Send + Sync {
    /// Must return at once.
    fn append(&self, event: &Fired);
}

/// Sees every event in the moment it is fired, in order, and loses none.
pub trait Tap: Send + Sync {
    /// Must return at once; the bus waits.
    fn offer(&self, event: &Arc<Fired>);
}

/// The bus.
pub struct Bus {
    subscribers: Mutex<Vec<Subscriber>>,
    taps: Mutex<Vec<Arc<dyn Tap>>>,
    next: AtomicU64,
    local: Mutex<Option<Arc<ipc::Publisher>>>,
    log: Mutex<Option<Arc<dyn Log>>>,
    largest: usize,
}

struct Subscriber {
    prefix: String,
    queue: Weak<Queue<Arc<Fired>>>,
}

/// A place at the bus. Ends when dropped.
pub struct Subscription {
    queue: Arc<Queue<Arc<Fired>>>,
    /// The cursor of the first event it can see.
    pub first: u64,
}

impl Subscription {
    pub async fn next(&self) -> Option<Item<Arc<Fired>>> {
        self.queue.next().await
    }
}

impl Bus {
    /// `first` is the cursor of the next event, `largest` the limit of Salt's `max_event_size`.
    pub fn new(first: u64, largest: usize) -> Self {
        Self {
            subscribers: Mutex::default(),
            taps: Mutex::default(),
            next: first.max(1).into(),
            local: Mutex::default(),
            log: Mutex::default(),
            largest,
        }
    }

    /// Feeds Salt's local socket from now on.
    pub fn feed(&self, publisher: Arc<ipc::Publisher>) {
        *self.local.lock() = Some(publisher);
    }

    /// Writes all events to a log from now on.
    pub fn log_to(&self, log: Arc<dyn Log>) {
        *self.log.lock() = Some(log);
    }

    /// Ends all subscriptions and the local socket.
    pub fn close(&self) {
        for subscriber in self.subscribers.lock().drain(..) {
            if let Some(queue) = subscriber.queue.upgrade() {
                queue.close();
            }
        }
        self.taps.lock().clear();
        *self.local.lock() = None;
        *self.log.lock() = None;
    }

    /// Shows every event to somebody from now on.
    pub fn tap(&self, tap: Arc<dyn Tap>) {
        self.taps.lock().push(tap);
    }

    /// Returns how many subscriptions there are.
    pub fn subscriptions(&self) -> usize {
        self.subscribers.lock().len()
    }

    /// Fires an event; a time stamp is added. `data` must not be changed afterwards.
    pub fn fire(&self, tag: impl Into<String>, data: Dict) -> Arc<Fired> {
        self.fire_event(Event::new(tag, data))
    }

    /// Fires an event as it came.
    pub fn fire_event(&self, event: Event) -> Arc<Fired> {
        let bytes = event.encode().unwrap_or_else(|error| {
            // Only what never was data (an object of a template) cannot be written.
            tracing::error!("The event {} cannot be sent: {error}", event.tag);
            Vec::new()
        });
        // The order on the bus is the order of the cursors.
        let mut subscribers = self.subscribers.lock();
        let fired = Arc::new(Fired {
            cursor: self.next.fetch_add(1, Ordering::Relaxed),
            tag: event.tag,
            data: event.data,
            bytes: bytes.into(),
        });
        subscribers.retain(|subscriber| {
            let Some(queue) = subscriber.queue.upgrade() else { return false };
            if fired.tag.starts_with(&subscriber.prefix) {
                queue.push(fired.clone());
            }
            true
        });
        if let Some(log) = &*self.log.lock() {
            log.append(&fired);
        }
        for tap in &*self.taps.lock() {
            tap.offer(&fired);
        }
        if let Some(local) = &*self.local.lock()
            && !fired.bytes.is_empty()
        {
            if fired.bytes.len() > self.largest {
                local.publish(&trimmed(&fired, self.largest));
            } else {
                local.publish(&fired.bytes);
            }
        }
        fired
    }

    /// Returns the events whose tag begins with `prefix`, from now on.
    pub fn subscribe(&self, prefix: &str, limit: usize) -> Subscription {
        let queue = Queue::new(limit);
        let subscriber = Subscriber { prefix: prefix.to_owned(), queue: Arc::downgrade(&queue) };
        let mut subscribers = self.subscribers.lock();
        subscribers.push(subscriber);
        Subscription { queue, first: self.next.load(Ordering::Relaxed) }
    }
}

/// Salt's placeholder for what is too large for its bus.
const TRIMMED: &str = "VALUE_TRIMMED";

/// Returns an event without its largest values.
fn trimmed(event: &Fired, largest: usize) -> Vec<u8> {
    let mut each = largest / 4;
    loop {
        let data = trim(&Value::Dict(event.data.clone()), each);
        let Value::Dict(data) = data else { return Vec::new() };
        let bytes = Event { tag: event.tag.clone(), data }.encode().unwrap_or_default();
        if bytes.len() <= largest || each == 0 {
            return bytes;
        }
        each /= 4;
    }
}

fn trim(value: &Value, each: usize) -> Value {
    match value {
        Value::Str(text) if text.len() > each => TRIMMED.into(),
        Value::Bytes(bytes) if bytes.len() > each => TRIMMED.into(),
        Value::Dict(dict) => dict
            .entries()
            .into_iter()
            .map(|(key, value)| (key, trim(&value, each)))
            .collect::<Dict>()
            .into(),
        Value::List(_) | Value::Tuple(_) => {
            let items = value.items_of_sequence().unwrap_or_default();
            if each == 0 && items.len() > 100 {
                return TRIMMED.into();
            }
            Value::list(items.iter().map(|item| trim(item, each)))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[tokio::test]
    async fn a_slow_reader_gets_a_gap() {
        let bus = Bus::new(1, 1 << 20);
        let slow = bus.subscribe("a", 2);
        let all = bus.subscribe("", 100);
        for n in 0..5 {
            bus.fire("a", entries! { "n" => n });
        }
        bus.fire("b", Dict::new());
        let next = async |subscription: &Subscription| match subscription.next().await.unwrap() {
            Item::One(event) => format!("{} {}", event.cursor, event.tag),
            Item::Gap(missed) => format!("gap {missed}"),
        };
        assert_eq!(next(&slow).await, "1 a");
        assert_eq!(next(&slow).await, "2 a");
        assert_eq!(next(&slow).await, "gap 3");
        bus.fire("a", Dict::new());
        assert_eq!(next(&slow).await, "7 a");
        for n in 1..=5 {
            assert_eq!(next(&all).await, format!("{n} a"));
        }
        assert_eq!(next(&all).await, "6 b");
    }

    #[test]
    fn large_events_are_trimmed() {
        let data = entries! { "big" => "x".repeat(10_000), "small" => "y" };
        let bus = Bus::new(1, 1000);
        let fired = bus.fire("t", data);
        let event = Event::decode(&trimmed(&fired, 1000)).unwrap();
        assert_eq!(event.data.get("big"), Some(TRIMMED.into()));
        assert_eq!(event.data.get("small"), Some("y".into()));
    }
}
