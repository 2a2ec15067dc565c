//! The way out of one connection: written at once if the kernel takes it, queued otherwise, never waited for.
//!
//! Whoever sends writes to the socket directly (`try_write`); only what does not fit goes into the queue, and the
//! connection's own task is woken to flush it. So an idle connection holds no buffer, a fan-out touches no other task,
//! and a reader that stands still costs its own queue and nobody's time. Wires that cannot be written from outside (TLS,
//! ws) have no socket here: all goes through the queue.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::{Interest, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;

use crate::peer::Ended;

/// How many pieces go into one write call.
const PIECES: usize = 32;

/// A socket that can be read and written without waiting.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await,
            Self::Unix(stream) => stream.ready(interest).await,
        }
    }

    /// Reads what is there. A read that leaves room has emptied the socket: it is not asked again before
    /// the kernel tells of more, which saves every message a call that would only say so.
    pub(crate) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        let fd = self.as_fd();
        // Both in one `try_io`: what arrives after the read makes a new event, which is not taken back.
        let read = || {
            count = (&*SockRef::from(&fd)).read(into)?;
            match count {
                1.. if count < into.len() => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        };
        let done = match self {
            Self::Tcp(stream) => stream.try_io(Interest::READABLE, read),
            Self::Unix(stream) => stream.try_io(Interest::READABLE, read),
        };
        if count > 0 { Ok(count) } else { done.map(|()| 0) }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }

    pub(crate) fn try_read_buf(&self, into: &mut bytes::BytesMut) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read_buf(into),
            Self::Unix(stream) => stream.try_read_buf(into),
        }
    }

    fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write_vectored(pieces),
            Self::Unix(stream) => stream.try_write_vectored(pieces),
        }
    }
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The kernel has all of it.
    Written,
    /// It waits in the queue.
    Queued,
    /// The queue is full; it is gone.
    Dropped,
    /// The connection has ended.
    Gone,
}

/// What to do when the reader is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Replies and control: kept until the byte limit, then the connection ends.
    Always,
    /// Publications: dropped when so many messages wait.
    UpTo(usize),
}

#[derive(Debug)]
pub(crate) struct Outlet {
    queue: Mutex<Queue>,
    wake: Notify,
    limit: usize,
}

#[derive(Debug, Default)]
struct Queue {
    socket: Option<Arc<Socket>>,
    chunks: VecDeque<Chunk>,
    bytes: usize,
    messages: usize,
    /// Set once: why the connection's task must end.
    closing: Option<Ended>,
    ended: bool,
}

#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    last: bool,
}

impl Outlet {
    /// Returns an outlet that queues at most `limit` bytes; `socket` is for direct writes.
    pub(crate) fn new(socket: Option<Arc<Socket>>, limit: usize) -> Self {
        Self { queue: Mutex::new(Queue { socket, ..Queue::default() }), wake: Notify::new(), limit }
    }

    /// Sends one message made of pieces, without waiting.
    pub(crate) fn send(&self, pieces: &[Bytes], keep: Keep) -> Sent {
        let queue = &mut *self.queue.lock();
        if queue.ended || queue.closing.is_some() {
            return Sent::Gone;
        }
        let total = pieces.iter().map(Bytes::len).sum::<usize>();
        let written = if queue.chunks.is_empty() { queue.write_now(pieces, total) } else { Ok(0) };
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                queue.closing = Some(Ended::Io(error.to_string()));
                self.wake.notify_one();
                return Sent::Gone;
            }
        };
        if written == total {
            return Sent::Written;
        }
        if written == 0 {
            // Once a part has left, the rest must follow, whatever the limits say.
            let crowded =
                queue.bytes.saturating_add(total) > self.limit && !queue.chunks.is_empty();
            match keep {
                Keep::UpTo(most) if crowded || queue.messages >= most.max(1) => {
                    return Sent::Dropped;
                }
                Keep::Always if crowded => {
                    queue.closing = Some(Ended::Clogged);
                    self.wake.notify_one();
                    return Sent::Gone;
                }
                _ => {}
            }
        }
        queue.push(pieces, written);
        self.wake.notify_one();
        Sent::Queued
    }

    /// Writes what the kernel takes of the queue. For the connection's own task.
    pub(crate) fn flush(&self) -> io::Result<()> {
        let queue = &mut *self.queue.lock();
        let Some(socket) = queue.socket.clone() else { return Ok(()) };
        while !queue.chunks.is_empty() {
            let slices: Vec<IoSlice<'_>> =
                queue.chunks.iter().take(PIECES).map(|chunk| IoSlice::new(&chunk.bytes)).collect();
            match socket.try_write(&slices) {
                Ok(written) => queue.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // A burst must not leave its ring buffer behind on an idle connection.
        queue.chunks.shrink_to(0);
        Ok(())
    }

    /// Takes the oldest message out of the queue, for wires without a socket here.
    pub(crate) fn pop(&self) -> Option<Vec<Bytes>> {
        let queue = &mut *self.queue.lock();
        let mut message = Vec::new();
        while let Some(chunk) = queue.chunks.pop_front() {
            queue.bytes -= chunk.bytes.len();
            message.push(chunk.bytes);
            if chunk.last {
                queue.messages -= 1;
                return Some(message);
            }
        }
        None
    }

    /// Tells whether anything waits to be written.
    pub(crate) fn has_pending(&self) -> bool {
        !self.queue.lock().chunks.is_empty()
    }

    /// Returns how many bytes wait.
    #[cfg(test)]
    pub(crate) fn pending_bytes(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Waits until something was queued or the connection is to be closed.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Waits until the connection is to be closed. Swallows other wake-ups: look for pending data afterwards.
    pub(crate) async fn closed(&self) {
        while self.closing().is_none() {
            self.woken().await;
        }
    }

    /// Asks the connection's task to end.
    pub(crate) fn close(&self, why: Ended) {
        let mut queue = self.queue.lock();
        if queue.closing.is_none() && !queue.ended {
            queue.closing = Some(why);
        }
        drop(queue);
        self.wake.notify_one();
    }

    /// Returns why the connection's task must end, if it must.
    pub(crate) fn closing(&self) -> Option<Ended> {
        self.queue.lock().closing.clone()
    }

    /// Lets go of the socket and of all that waits; handles that outlive the connection keep nothing open.
    pub(crate) fn end(&self) {
        let queue = &mut *self.queue.lock();
        *queue = Queue { ended: true, closing: queue.closing.take(), ..Queue::default() };
    }

    pub(crate) fn has_ended(&self) -> bool {
        let queue = self.queue.lock();
        queue.ended || queue.closing.is_some()
    }
}

impl Queue {
    fn write_now(&self, pieces: &[Bytes], total: usize) -> io::Result<usize> {
        let Some(socket) = &self.socket else { return Ok(0) };
        let mut slices = [IoSlice::new(&[]); 8];
        if pieces.len() > slices.len() || total == 0 {
            return Ok(0);
        }
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
        }
        loop {
            match socket.try_write(&slices[..pieces.len()]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn push(&mut self, pieces: &[Bytes], mut skip: usize) {
        for (index, piece) in pieces.iter().enumerate() {
            let mut bytes = piece.clone();
            let cut = skip.min(bytes.len());
            bytes.advance(cut);
            skip -= cut;
            let last = index + 1 == pieces.len();
            if !bytes.is_empty() || last {
                self.bytes += bytes.len();
                self.chunks.push_back(Chunk { bytes, last });
            }
        }
        self.messages += 1;
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(front) = self.chunks.front_mut() {
            if front.bytes.len() > written {
                front.bytes.advance(written);
                return;
            }
            written -= front.bytes.len();
            if front.last {
                self.messages -= 1;
            }
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_are_dropped_at_the_high_water_mark_and_replies_are_not() {
        let outlet = Outlet::new(None, 1000);
        let piece = [Bytes::from_static(b"0123456789")];
        assert_eq!(outlet.send(&piece, Keep::UpTo(2)), Sent::Queued);
        assert_eq!(outlet.send(&piece, Keep::UpTo(2)), Sent::Queued);
        assert_eq!(outlet.send(&piece, Keep::UpTo(2)), Sent::Dropped);
        assert_eq!(outlet.send(&piece, Keep::Always), Sent::Queued);
        assert_eq!(outlet.pending_bytes(), 30);
        assert_eq!(outlet.pop(), Some(piece.to_vec()));
        assert_eq!(outlet.pending_bytes(), 20);
    }

    #[test]
    fn a_reader_that_never_reads_is_cut_off() {
        let outlet = Outlet::new(None, 15);
        let piece = [Bytes::from_static(b"0123456789")];
        assert_eq!(outlet.send(&piece, Keep::Always), Sent::Queued);
        assert_eq!(outlet.send(&piece, Keep::Always), Sent::Gone);
        assert_eq!(outlet.closing(), Some(Ended::Clogged));
    }

    #[test]
    fn a_partly_written_message_is_finished_first() {
        let mut queue = Queue::default();
        queue.push(&[Bytes::from_static(b"abc"), Bytes::from_static(b"defg")], 4);
        assert_eq!((queue.bytes, queue.messages), (3, 1));
        queue.advance(3);
        assert_eq!((queue.bytes, queue.messages, queue.chunks.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn what_the_kernel_does_not_take_is_flushed_later() {
        let (near, far) = UnixStream::pair().expect("socket pair");
        let socket = Arc::new(Socket::Unix(near));
        let outlet = Outlet::new(Some(socket.clone()), usize::MAX);
        let big = Bytes::from(vec![7_u8; 4 << 20]);
        socket.ready(Interest::WRITABLE).await.expect("writable");
        assert_eq!(outlet.send(std::slice::from_ref(&big), Keep::Always), Sent::Queued);
        let reader = tokio::spawn(async move {
            let (mut far, mut got) = (far, Vec::new());
            let mut take = tokio::io::AsyncReadExt::take(&mut far, 4 << 20);
            tokio::io::AsyncReadExt::read_to_end(&mut take, &mut got).await.expect("read");
            got
        });
        while outlet.has_pending() {
            socket.ready(Interest::WRITABLE).await.expect("writable");
            outlet.flush().expect("flush");
        }
        assert_eq!(reader.await.expect("joined"), big);
    }
}
