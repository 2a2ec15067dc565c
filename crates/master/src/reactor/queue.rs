//! What waits for the reactor: in memory up to a limit, then on disk.
//!
//! Once something lies on disk, everything that follows goes there too, until it is empty: the
//! order is kept. A write that fails is told to the watcher, with its event.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use halite_store::{Error, Op, Store, Written};
use halite_value::Value;
use halite_wire::Event;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::{Master, blocking, bus::Fired};

/// The bank of events that did not fit into memory, by cursor.
pub const SPILLED: &str = "reactor_queue";

/// Events read back at a time.
const PAGE: usize = 1000;

type Kept = (Arc<Fired>, Written);

pub(super) struct Waiting {
    state: Mutex<State>,
    arrived: Notify,
    limit: usize,
    store: Arc<dyn Store>,
    /// One worker reads back at a time.
    refill: tokio::sync::Mutex<()>,
    writes: mpsc::UnboundedSender<Kept>,
    written: tokio::sync::Mutex<mpsc::UnboundedReceiver<Kept>>,
    spilled: AtomicU64,
}

#[derive(Default)]
struct State {
    memory: VecDeque<Arc<Fired>>,
    on_disk: u64,
    /// Distinguishes events that have no cursor of their own.
    number: u64,
}

impl Waiting {
    pub(super) fn new(store: Arc<dyn Store>, limit: usize) -> Self {
        let (writes, written) = mpsc::unbounded_channel();
        Self {
            state: Mutex::default(),
            arrived: Notify::new(),
            limit,
            store,
            refill: tokio::sync::Mutex::default(),
            writes,
            written: tokio::sync::Mutex::new(written),
            spilled: AtomicU64::new(0),
        }
    }

    /// Takes an event. Returns at once.
    pub(super) fn push(&self, event: &Arc<Fired>) {
        {
            let mut state = self.state.lock();
            if state.on_disk == 0 && state.memory.len() < self.limit {
                state.memory.push_back(event.clone());
            } else {
                state.on_disk += 1;
                state.number += 1;
                let key = format!("{:020}-{:020}", event.cursor, state.number);
                let value = Value::bytes(event.bytes.to_vec());
                let write = self.store.write(vec![Op::Put { bank: SPILLED, key, value }]);
                self.spilled.fetch_add(1, Ordering::Relaxed);
                let _ = self.writes.send((event.clone(), write));
            }
        }
        self.arrived.notify_one();
    }

    /// Counts what an earlier master left on disk. Blocking.
    pub(super) fn find_left_over(&self) {
        match self.store.all(SPILLED) {
            Ok(left) if !left.is_empty() => {
                tracing::info!("{} events of an earlier run wait for the reactor", left.len());
                self.state.lock().on_disk += left.len() as u64;
                self.arrived.notify_one();
            }
            Ok(_) => {}
            Err(error) => tracing::error!("The reactor's queue cannot be read: {error}"),
        }
    }

    /// Tells of every event that could not be written, for ever.
    pub(super) async fn watch(&self, lost: impl Fn(&Fired, &Error)) {
        let mut written = self.written.lock().await;
        while let Some((event, write)) = written.recv().await {
            if let Err(error) = write.await {
                let mut state = self.state.lock();
                state.on_disk = state.on_disk.saturating_sub(1);
                drop(state);
                lost(&event, &error);
            }
        }
    }

    /// Waits for the next event.
    pub(super) async fn next(&self, master: &Arc<Master>) -> Arc<Fired> {
        loop {
            let on_disk = {
                let mut state = self.state.lock();
                if let Some(event) = state.memory.pop_front() {
                    if !state.memory.is_empty() {
                        // The next worker need not wait for the next event.
                        self.arrived.notify_one();
                    }
                    return event;
                }
                state.on_disk
            };
            if on_disk > 0 {
                self.read_back(master).await;
            } else {
                self.arrived.notified().await;
            }
        }
    }

    /// Brings a page from disk to memory.
    async fn read_back(&self, master: &Arc<Master>) {
        let _one = self.refill.lock().await;
        {
            let state = self.state.lock();
            if !state.memory.is_empty() || state.on_disk == 0 {
                return;
            }
        }
        // What was pushed so far must be there to be read.
        let _ = self.store.write(Vec::new()).await;
        let owner = master.clone();
        let page = blocking(move || owner.store.some(SPILLED, "", PAGE)).await;
        let page = match page {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => {
                tracing::error!("The reactor's queue cannot be read: {error}");
                tokio::time::sleep(Duration::from_secs(1)).await;
                return;
            }
            Err(_) => return,
        };
        let keys: Vec<String> = page.iter().map(|(key, _)| key.clone()).collect();
        let events: Vec<Arc<Fired>> = page.into_iter().filter_map(read).collect();
        let ops = keys.iter().map(|key| Op::Delete { bank: SPILLED, key: key.clone() }).collect();
        // The next page must not see them again.
        if let Err(error) = self.store.write(ops).await {
            tracing::error!("The reactor's queue cannot be changed: {error}");
        }
        let mut state = self.state.lock();
        state.memory.extend(events);
        state.on_disk = match keys.is_empty() {
            // Whatever was counted is not there.
            true => 0,
            false => state.on_disk.saturating_sub(keys.len() as u64),
        };
        drop(state);
        self.arrived.notify_one();
    }

    pub(super) fn len(&self) -> u64 {
        let state = self.state.lock();
        state.memory.len() as u64 + state.on_disk
    }

    pub(super) fn on_disk(&self) -> u64 {
        self.state.lock().on_disk
    }

    pub(super) fn spilled_ever(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }
}

fn read((key, value): (String, Value)) -> Option<Arc<Fired>> {
    let Value::Bytes(bytes) = value else { return None };
    let cursor = key.split('-').next().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let event = Event::decode(&bytes)
        .inspect_err(|error| tracing::error!("A queued event is damaged: {error}"))
        .ok()?;
    let bytes = bytes.to_vec().into();
    Some(Arc::new(Fired { cursor, tag: event.tag, data: event.data, bytes }))
}
