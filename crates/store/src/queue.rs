//! What waits to be written.
//!
//! Many threads bring batches, one writer takes them in groups. The writer is woken only by what it
//! waits for: anything while it has nothing, something urgent while it waits with what nobody waits
//! for, and nobody while it waits for company. A channel would wake it for every batch, which costs
//! both sides more than the batch itself.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

/// What can wait in a [`Queue`].
pub(crate) trait Waits {
    /// How much of a group it makes.
    fn size(&self) -> usize;
    /// Nobody waits for it.
    fn is_lazy(&self) -> bool;
}

/// A queue with one reader, who takes groups.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    /// So much makes a group that waits for no more.
    full: usize,
}

struct State<T> {
    items: VecDeque<T>,
    /// Of all items together.
    size: usize,
    urgent: usize,
    reader: Reader,
    closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Busy,
    /// Waits for anything.
    Idle,
    /// Has only what nobody waits for.
    Lazy,
    /// Waits until its time is over, or a group is full.
    Gathering,
}

/// How long a group may wait for more.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// With nothing in it that anybody waits for.
    pub(crate) lazy: Duration,
    pub(crate) urgent: Duration,
}

impl<T: Waits> Queue<T> {
    pub(crate) fn new(full: usize) -> Self {
        let items = VecDeque::new();
        let state = State { items, size: 0, urgent: 0, reader: Reader::Busy, closed: false };
        Self { state: Mutex::new(state), arrived: Condvar::new(), full }
    }

    /// Adds an item; hands it back if the queue is closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(item);
        }
        let is_lazy = item.is_lazy();
        state.size += item.size();
        state.urgent += usize::from(!is_lazy);
        state.items.push_back(item);
        let wakes = match state.reader {
            Reader::Busy => false,
            Reader::Idle => true,
            Reader::Lazy => !is_lazy || state.size >= self.full,
            Reader::Gathering => state.size >= self.full,
        };
        if wakes {
            state.reader = Reader::Busy;
            drop(state);
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Nothing more is taken; what is there is still handed out.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_all();
    }

    /// As [`Queue::close`], and what is there is dropped: nobody will take it any more.
    pub(crate) fn abandon(&self) {
        let dropped = {
            let mut state = self.state.lock();
            state.closed = true;
            (state.size, state.urgent) = (0, 0);
            std::mem::take(&mut state.items)
        };
        drop(dropped);
    }

    /// Waits for the next group; `None` once closed and empty.
    pub(crate) fn take(&self, patience: Patience) -> Option<Vec<T>> {
        let mut state = self.state.lock();
        while state.items.is_empty() {
            if state.closed {
                return None;
            }
            state.reader = Reader::Idle;
            self.arrived.wait(&mut state);
        }
        let begun = Instant::now();
        while !state.closed && state.size < self.full {
            let (reader, limit) = match state.urgent {
                0 => (Reader::Lazy, patience.lazy),
                _ => (Reader::Gathering, patience.urgent),
            };
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            state.reader = reader;
            self.arrived.wait_for(&mut state, left);
        }
        state.reader = Reader::Busy;
        let mut group = Vec::with_capacity(state.items.len());
        let mut size = 0;
        while size < self.full
            && let Some(item) = state.items.pop_front()
        {
            size += item.size();
            state.urgent -= usize::from(!item.is_lazy());
            group.push(item);
        }
        state.size -= size;
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    impl Waits for (usize, bool) {
        fn size(&self) -> usize {
            self.0
        }
        fn is_lazy(&self) -> bool {
            self.1
        }
    }

    const LONG: Duration = Duration::from_secs(600);
    const FULL: usize = 10;

    fn patience(lazy: Duration, urgent: Duration) -> Patience {
        Patience { lazy, urgent }
    }

    /// Takes on a thread of its own, which waits already when this returns.
    fn taking(
        queue: &Arc<Queue<(usize, bool)>>,
        patience: Patience,
        waits: Reader,
    ) -> thread::JoinHandle<Option<Vec<(usize, bool)>>> {
        let own = Arc::clone(queue);
        let thread = thread::spawn(move || own.take(patience));
        while queue.state.lock().reader != waits {
            thread::yield_now();
        }
        thread
    }

    #[test]
    fn what_is_there_is_taken_in_order_and_not_more_than_a_group() {
        let queue = Queue::new(FULL);
        for size in 1..=6 {
            queue.push((size, false)).unwrap();
        }
        let sizes = |group: Option<Vec<(usize, bool)>>| -> Vec<usize> {
            group.unwrap().iter().map(|(size, _)| *size).collect()
        };
        assert_eq!(sizes(queue.take(patience(LONG, LONG))), [1, 2, 3, 4]);
        assert_eq!(sizes(queue.take(patience(LONG, LONG))), [5, 6]);
    }

    #[test]
    fn something_urgent_ends_the_wait_of_what_is_lazy() {
        let queue = Arc::new(Queue::new(FULL));
        queue.push((1, true)).unwrap();
        let taken = taking(&queue, patience(LONG, Duration::ZERO), Reader::Lazy);
        queue.push((1, true)).unwrap();
        queue.push((1, false)).unwrap();
        assert_eq!(taken.join().unwrap().unwrap().len(), 3);
    }

    #[test]
    fn a_full_group_waits_no_longer() {
        for lazy in [true, false] {
            let queue = Arc::new(Queue::new(FULL));
            let waits = if lazy { Reader::Lazy } else { Reader::Gathering };
            queue.push((1, lazy)).unwrap();
            let taken = taking(&queue, patience(LONG, LONG), waits);
            queue.push((4, lazy)).unwrap();
            queue.push((6, lazy)).unwrap();
            assert_eq!(taken.join().unwrap().unwrap().len(), 3);
        }
    }

    #[test]
    fn closing_hands_out_what_is_left() {
        let queue = Arc::new(Queue::new(FULL));
        let empty = taking(&queue, patience(LONG, LONG), Reader::Idle);
        queue.push((1, false)).unwrap();
        queue.close();
        assert_eq!(empty.join().unwrap(), Some(vec![(1, false)]));
        assert_eq!(queue.take(patience(LONG, LONG)), None);
        assert_eq!(queue.push((1, false)), Err((1, false)));
    }
}
