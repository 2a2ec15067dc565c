//! Who is connected, and the fan-out to them.
//!
//! Publications are written by one task in the order in which [`Hub::publish`] was called, so that every peer sees
//! the same order: a minion drops what does not carry a growing serial. The task gives way every few peers; each
//! publication is encoded once per wire format and its bytes are shared by all connections.
//!
//! Plain ZeroMQ subscribers are found through an index from subscription to connections: a publication is looked up by
//! those of its prefixes whose length anyone subscribed to. That makes 10,000 topics for 10,000 minions 20,000 look-ups
//! instead of a hundred million comparisons.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::outlet::{Keep, Sent};
use crate::peer::{Binding, Peer, Wire};
use crate::{tcp, ws, zeromq};

/// Peers served before the publishing task lets others run.
const SLICE: usize = 64;

/// Knows all connections of a master and publishes to them. A cheap handle.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

pub(crate) struct Inner {
    peers: Mutex<Peers>,
    serial: AtomicU64,
    jobs: mpsc::UnboundedSender<Job>,
    pub(crate) counters: Counters,
}

/// Whom a publication is for.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    ids: Option<Vec<Arc<str>>>,
    topics: Vec<Bytes>,
    bound_only: bool,
}

impl Delivery {
    /// Everyone who subscribed: plain ZeroMQ, ws and tcp subscribers, and subscribed Halite peers with a bound id.
    pub fn all() -> Self {
        Self::default()
    }

    /// Of the peers that have (or could have) a bound id, Halite and tcp, only those with one of these ids.
    ///
    /// Plain ZeroMQ and ws subscribers cannot be told apart and get it all the same (unless
    /// [`bound_only`](Self::bound_only)): on Salt's wire the minion decides whether it is meant.
    pub fn ids<I>(ids: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Arc<str>>,
    {
        Self { ids: Some(ids.into_iter().map(Into::into).collect()), ..Self::default() }
    }

    /// For plain ZeroMQ subscribers (`zmq_filtering`): one two-frame message per topic, to those whose subscription is a
    /// prefix of it. Without topics they get one single-frame message.
    #[must_use]
    pub fn topics<I>(mut self, topics: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Bytes>,
    {
        self.topics = topics.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves out the subscribers that cannot have an id.
    #[must_use]
    pub fn bound_only(mut self) -> Self {
        self.bound_only = true;
        self
    }
}

/// What became of a publication. Counts connections, not minions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Handed to the kernel.
    pub written: usize,
    /// Waiting in the connection's queue.
    pub queued: usize,
    /// Dropped, because the connection's queue is full (`pub_hwm`).
    pub dropped: usize,
    /// Ids among the dropped.
    pub dropped_ids: Vec<Arc<str>>,
    /// Ids of [`Delivery::ids`] that no subscribed connection is bound to. They may still listen as plain ZeroMQ
    /// subscribers.
    pub absent: Vec<Arc<str>>,
}

/// The future of a [`Receipt`]. The publication is on its way whether or not this is awaited.
#[derive(Debug)]
pub struct Sending(oneshot::Receiver<Receipt>);

impl Future for Sending {
    type Output = Receipt;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Receipt> {
        Pin::new(&mut self.0).poll(cx).map(Result::unwrap_or_default)
    }
}

/// A snapshot of what the hub has seen since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections with a finished handshake, now.
    pub connections: u64,
    /// Connections accepted, ever.
    pub accepted: u64,
    /// Connections refused, because there were too many.
    pub refused: u64,
    /// Connections that ended before their handshake was finished.
    pub handshakes_failed: u64,
    pub requests: u64,
    /// Requests dropped because one connection had too many waiting.
    pub requests_dropped: u64,
    pub publications: u64,
    /// Publications handed to a connection.
    pub delivered: u64,
    /// Publications dropped for a slow connection.
    pub dropped: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) requests_dropped: AtomicU64,
    publications: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[derive(Default)]
struct Peers {
    all: BTreeMap<u64, Peer>,
    by_id: HashMap<Arc<str>, Vec<Peer>>,
    /// Plain ZeroMQ subscribers, by what they subscribed to.
    by_topic: HashMap<Bytes, BTreeMap<u64, Peer>>,
    /// The lengths that occur in `by_topic`, and how often.
    topic_lengths: BTreeMap<usize, usize>,
    /// Subscribers that have, or could have, an id: tcp and extended.
    bindable: BTreeMap<u64, Peer>,
    /// Subscribers that get everything: ws.
    indiscriminate: BTreeMap<u64, Peer>,
}

enum Job {
    Publish {
        delivery: Delivery,
        body: Bytes,
        done: oneshot::Sender<Receipt>,
    },
    /// Notices that must not overtake a publication, nor be overtaken.
    Notices(Vec<(Peer, Bytes)>),
}

impl Hub {
    /// Returns a hub without peers. Must be called inside a tokio runtime: it starts the publishing task.
    #[expect(clippy::new_without_default, reason = "needs a runtime; Default promises too much")]
    pub fn new() -> Self {
        let (jobs, queue) = mpsc::unbounded_channel();
        let hub = Self(Arc::new(Inner {
            peers: Mutex::default(),
            serial: AtomicU64::new(1),
            jobs,
            counters: Counters::default(),
        }));
        tokio::spawn(publish_all(hub.downgrade(), queue));
        hub
    }

    /// Publishes to those `delivery` names; never waits for a reader.
    ///
    /// The place in the order is taken by the call itself, before the future is polled; await it for the receipt and
    /// so as not to run ahead of the network, or drop it.
    pub fn publish(&self, delivery: Delivery, body: Bytes) -> Sending {
        let (done, receipt) = oneshot::channel();
        count(&self.0.counters.publications);
        // The task lives as long as the hub; if the runtime is gone the receipt is empty.
        let _ = self.0.jobs.send(Job::Publish { delivery, body, done });
        Sending(receipt)
    }

    /// Sends notices to Halite peers, in order with what is published before and after.
    pub fn notices(&self, notices: Vec<(Peer, Bytes)>) {
        let _ = self.0.jobs.send(Job::Notices(notices));
    }

    /// Returns the ids that publications reach: bound to at least one subscribed connection.
    pub fn ids(&self) -> Vec<Arc<str>> {
        let peers = self.0.peers.lock();
        let reached = peers.by_id.iter().filter(|(_, peers)| peers.iter().any(Peer::is_subscribed));
        let mut ids: Vec<_> = reached.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }

    /// Tells whether publications reach this id.
    pub fn is_connected(&self, id: &str) -> bool {
        self.0.peers.lock().by_id.get(id).is_some_and(|peers| peers.iter().any(Peer::is_subscribed))
    }

    /// Returns all connections bound to an id, subscribed or not.
    pub fn peers_of(&self, id: &str) -> Vec<Peer> {
        self.0.peers.lock().by_id.get(id).cloned().unwrap_or_default()
    }

    /// Returns all connections that have finished their handshake, oldest first.
    pub fn peers(&self) -> Vec<Peer> {
        self.0.peers.lock().all.values().cloned().collect()
    }

    /// Returns the counters.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.0.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            connections: self.0.peers.lock().all.len() as u64,
            accepted: read(&counters.accepted),
            refused: read(&counters.refused),
            handshakes_failed: read(&counters.handshakes_failed),
            requests: read(&counters.requests),
            requests_dropped: read(&counters.requests_dropped),
            publications: read(&counters.publications),
            delivered: read(&counters.delivered),
            dropped: read(&counters.dropped),
        }
    }

    pub(crate) fn next_serial(&self) -> u64 {
        self.0.serial.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// A peer has finished its handshake.
    pub(crate) fn add(&self, peer: &Peer) {
        self.0.peers.lock().all.insert(peer.serial(), peer.clone());
    }

    /// A peer with an id (now or later), or one that takes everything, wants publications.
    pub(crate) fn subscribe(&self, peer: &Peer) {
        let peers = &mut *self.0.peers.lock();
        if !peers.all.contains_key(&peer.serial()) || !peer.set_subscribed(true) {
            return;
        }
        match peer.wire() {
            Wire::Ws => peers.indiscriminate.insert(peer.serial(), peer.clone()),
            _ => peers.bindable.insert(peer.serial(), peer.clone()),
        };
    }

    /// A plain ZeroMQ subscriber adds a prefix; true if it is its first subscription ever.
    pub(crate) fn subscribe_topic(&self, peer: &Peer, topic: &Bytes) -> bool {
        let peers = &mut *self.0.peers.lock();
        if !peers.all.contains_key(&peer.serial()) {
            return false;
        }
        if let Some(listeners) = peers.by_topic.get_mut(topic) {
            listeners.insert(peer.serial(), peer.clone());
        } else {
            // Copied: the topic must not keep the read buffer it came in.
            let topic = Bytes::copy_from_slice(topic);
            *peers.topic_lengths.entry(topic.len()).or_default() += 1;
            peers.by_topic.insert(topic, BTreeMap::from([(peer.serial(), peer.clone())]));
        }
        peer.set_subscribed(true)
    }

    pub(crate) fn unsubscribe_topic(&self, peer: &Peer, topic: &Bytes) {
        self.0.peers.lock().forget_topic(peer, topic);
    }

    /// A peer's connection has ended; `topics` are its ZeroMQ subscriptions. The id stays readable on the handle.
    pub(crate) fn remove<'a>(&self, peer: &Peer, topics: impl IntoIterator<Item = &'a Bytes>) {
        let peers = &mut *self.0.peers.lock();
        peers.all.remove(&peer.serial());
        peers.bindable.remove(&peer.serial());
        peers.indiscriminate.remove(&peer.serial());
        for topic in topics {
            peers.forget_topic(peer, topic);
        }
        if let Some(id) = peer.id() {
            peers.forget_id(peer, &id);
        }
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hub").field(&self.statistics()).finish()
    }
}

impl Inner {
    pub(crate) fn bind(&self, peer: &Peer, id: &str) -> Binding {
        let peers = &mut *self.peers.lock();
        if !peers.all.contains_key(&peer.serial()) {
            return Binding::Gone;
        }
        let state = if peer.is_subscribed() { Binding::Subscribed } else { Binding::Silent };
        if peer.id().is_some_and(|old| &*old == id) {
            return state;
        }
        let id: Arc<str> =
            peers.by_id.get_key_value(id).map_or_else(|| id.into(), |(known, _)| known.clone());
        if let Some(old) = peer.set_id(Some(id.clone())) {
            peers.forget_id(peer, &old);
        }
        peers.by_id.entry(id).or_default().push(peer.clone());
        state
    }

    pub(crate) fn unbind(&self, peer: &Peer) {
        let peers = &mut *self.peers.lock();
        if let Some(old) = peer.set_id(None) {
            peers.forget_id(peer, &old);
        }
    }
}

impl Peers {
    fn forget_id(&mut self, peer: &Peer, id: &str) {
        if let Some(bound) = self.by_id.get_mut(id) {
            bound.retain(|other| other.serial() != peer.serial());
            if bound.is_empty() {
                self.by_id.remove(id);
            }
        }
    }

    fn forget_topic(&mut self, peer: &Peer, topic: &Bytes) {
        let Some(listeners) = self.by_topic.get_mut(topic) else { return };
        listeners.remove(&peer.serial());
        if listeners.is_empty() {
            self.by_topic.remove(topic);
            if let Some(count) = self.topic_lengths.get_mut(&topic.len()) {
                *count -= 1;
                if *count == 0 {
                    self.topic_lengths.remove(&topic.len());
                }
            }
        }
    }

    /// Returns the plain ZeroMQ subscribers with a subscription that is a prefix of `message`, each once.
    fn listeners(&self, message: &[u8]) -> Vec<Peer> {
        let sets: Vec<_> = self
            .topic_lengths
            .range(..=message.len())
            .filter_map(|(&length, _)| self.by_topic.get(&message[..length]))
            .collect();
        match sets.as_slice() {
            [] => Vec::new(),
            [one] => one.values().cloned().collect(),
            many => {
                let merged: BTreeMap<u64, &Peer> =
                    many.iter().flat_map(|set| set.iter().map(|(&k, v)| (k, v))).collect();
                merged.into_values().cloned().collect()
            }
        }
    }

    /// Returns the subscribers that can be told apart by id, and the ids that nobody has.
    fn recipients(&self, ids: Option<&[Arc<str>]>) -> (Vec<Peer>, Vec<Arc<str>>) {
        let Some(ids) = ids else {
            // An extended peer without an id has not signed in; a tcp one is sent what is for everybody.
            let wanted = |peer: &&Peer| peer.wire() == Wire::Tcp || peer.id().is_some();
            return (self.bindable.values().filter(wanted).cloned().collect(), Vec::new());
        };
        let (mut found, mut absent) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            let before = found.len();
            let bound = self.by_id.get(id).map_or(&[][..], Vec::as_slice);
            found.extend(
                bound.iter().filter(|peer| self.bindable.contains_key(&peer.serial())).cloned(),
            );
            if found.len() == before {
                absent.push(id.clone());
            }
        }
        // An id may be named twice; nobody gets it twice for that.
        found.sort_unstable_by_key(Peer::serial);
        found.dedup_by_key(|peer| peer.serial());
        (found, absent)
    }
}

async fn publish_all(hub: Weak<Inner>, mut queue: mpsc::UnboundedReceiver<Job>) {
    while let Some(job) = queue.recv().await {
        let Some(hub) = hub.upgrade() else { return };
        match job {
            Job::Publish { delivery, body, done } => {
                let receipt = publish_one(&hub, &delivery, &body).await;
                // Whoever asked may have gone.
                let _ = done.send(receipt);
            }
            Job::Notices(notices) => {
                for (number, (peer, body)) in notices.into_iter().enumerate() {
                    peer.notice(body);
                    if number % SLICE == SLICE - 1 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
}

async fn publish_one(hub: &Inner, delivery: &Delivery, body: &Bytes) -> Receipt {
    let mut batches: Vec<(Vec<Peer>, Option<Bytes>)> = Vec::new();
    let absent = {
        let peers = hub.peers.lock();
        let (found, absent) = peers.recipients(delivery.ids.as_deref());
        batches.push((found, None));
        if !delivery.bound_only {
            batches.push((peers.indiscriminate.values().cloned().collect(), None));
            if delivery.topics.is_empty() {
                batches.push((peers.listeners(body), None));
            }
            for topic in &delivery.topics {
                batches.push((peers.listeners(topic), Some(topic.clone())));
            }
        }
        absent
    };
    let mut receipt = Receipt { absent, ..Receipt::default() };
    let mut forms = Forms::default();
    let mut served = 0;
    for (peers, topic) in batches {
        forms.topical = None;
        for peer in peers {
            let pieces = forms.of(peer.wire(), body, topic.as_ref());
            match peer.0.outlet.send(pieces, Keep::UpTo(peer.0.hwm)) {
                Sent::Written => receipt.written += 1,
                Sent::Queued => receipt.queued += 1,
                Sent::Gone => {}
                Sent::Dropped => {
                    receipt.dropped += 1;
                    receipt.dropped_ids.extend(peer.id());
                }
            }
            served += 1;
            if served % SLICE == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
    let counters = &hub.counters;
    counters.delivered.fetch_add((receipt.written + receipt.queued) as u64, Ordering::Relaxed);
    counters.dropped.fetch_add(receipt.dropped as u64, Ordering::Relaxed);
    receipt
}

/// One publication as each wire writes it, made when first needed and shared from then on.
#[derive(Default)]
struct Forms {
    zmtp: Option<[Bytes; 1]>,
    topical: Option<[Bytes; 1]>,
    extended: Option<[Bytes; 1]>,
    tcp: Option<[Bytes; 1]>,
    ws: Option<[Bytes; 1]>,
}

impl Forms {
    fn of(&mut self, wire: Wire, body: &Bytes, topic: Option<&Bytes>) -> &[Bytes] {
        match (wire, topic) {
            (Wire::Zmtp, Some(topic)) => {
                self.topical.get_or_insert_with(|| [zeromq::publication(Some(topic), body)])
            }
            (Wire::Zmtp, None) => {
                self.zmtp.get_or_insert_with(|| [zeromq::publication(None, body)])
            }
            (Wire::Extended, _) => {
                self.extended.get_or_insert_with(|| [zeromq::extension::publication(body)])
            }
            (Wire::Tcp, _) => self.tcp.get_or_insert_with(|| [tcp::publication(body)]),
            (Wire::Ws, _) => self.ws.get_or_insert_with(|| [ws::publication(body)]),
        }
    }
}
