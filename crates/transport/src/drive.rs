//! The loop of one connection: read, hand the bytes to a protocol, flush, keep time.
//!
//! A protocol is a plain state machine over a byte buffer, so it can be tested (and fed rubbish) without a socket. It
//! sends through the connection's [`Outlet`]. An idle connection owns no buffer: bytes are read into one scratch buffer
//! per thread, and only an incomplete message is kept.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::time::Instant;

use crate::outlet::{Outlet, Socket};
use crate::peer::Ended;

const SCRATCH: usize = 64 << 10;

/// Reads of one connection before others get their turn.
const TURNS: usize = 16;

/// A timer that comes later than this means that we were not running (stopped, swapped out, asleep).
const ABSENT: Duration = Duration::from_secs(2);

/// How long the polite end of a TLS connection may take.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// What a wire does with bytes and time.
pub(crate) trait Protocol {
    /// Consumes the complete messages at the front of `buf`; returns how many more bytes the next one wants.
    fn input(&mut self, buf: &mut BytesMut) -> Result<usize, Ended>;

    /// Does what is due at `now`; `heard` is when bytes last came. Returns when to be asked again, at the latest.
    fn tick(&mut self, now: Instant, heard: Instant) -> Result<Option<Instant>, Ended>;
}

/// Bytes of unfinished messages, shared by all connections of a listener.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }
}

/// One connection's share of the budget; given back when dropped.
struct Share<'a> {
    budget: Option<&'a Budget>,
    held: usize,
}

impl Share<'_> {
    fn hold(&mut self, bytes: usize) -> Result<(), Ended> {
        let Some(budget) = self.budget else { return Ok(()) };
        // Small remainders are free: they are bounded by the number of connections.
        let bytes = if bytes > SCRATCH { bytes } else { 0 };
        if bytes > self.held {
            let more = bytes - self.held;
            let used = budget.used.fetch_add(more, Ordering::Relaxed).saturating_add(more);
            self.held = bytes;
            if used > budget.limit {
                return Err(Ended::Crowded);
            }
        } else if bytes < self.held {
            budget.used.fetch_sub(self.held - bytes, Ordering::Relaxed);
            self.held = bytes;
        }
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if let Some(budget) = self.budget {
            budget.used.fetch_sub(self.held, Ordering::Relaxed);
        }
    }
}

/// Runs a connection over a plain socket until it ends.
pub(crate) async fn drive(
    socket: &Socket,
    outlet: &Outlet,
    protocol: &mut impl Protocol,
    budget: Option<&Budget>,
) -> Ended {
    match run(socket, outlet, protocol, budget).await {
        Ok(never) => match never {},
        Err(why) => why,
    }
}

async fn run(
    socket: &Socket,
    outlet: &Outlet,
    protocol: &mut impl Protocol,
    budget: Option<&Budget>,
) -> Result<std::convert::Infallible, Ended> {
    let mut share = Share { budget, held: 0 };
    let mut buf = BytesMut::new();
    let mut wants = 0;
    let mut heard = Instant::now();
    let mut clock = Clock::new();
    loop {
        let now = Instant::now();
        if clock.is_late(now) {
            heard = now;
        }
        clock.set(protocol.tick(now, heard)?);
        if let Some(why) = outlet.closing() {
            return Err(why);
        }
        let interest = if outlet.has_pending() {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        tokio::select! {
            biased;
            ready = socket.ready(interest) => {
                let ready = ready.map_err(|error| broken(&error))?;
                if ready.is_writable() {
                    outlet.flush().map_err(|error| broken(&error))?;
                }
                if ready.is_readable() || ready.is_read_closed() || ready.is_error() {
                    let mut turns = 0;
                    while read(socket, &mut buf, wants)? {
                        heard = Instant::now();
                        wants = protocol.input(&mut buf)?;
                        if buf.is_empty() {
                            buf = BytesMut::new();
                        }
                        share.hold(buf.len())?;
                        turns += 1;
                        if turns == TURNS {
                            tokio::task::yield_now().await;
                            break;
                        }
                    }
                }
            }
            () = outlet.woken() => {}
            () = clock.rings() => {}
        }
    }
}

/// Reads what is there; false if nothing is.
fn read(socket: &Socket, buf: &mut BytesMut, wants: usize) -> Result<bool, Ended> {
    let result = if buf.is_empty() && wants <= SCRATCH {
        BUFFER.with_borrow_mut(|scratch| {
            let count = socket.try_read(scratch)?;
            buf.extend_from_slice(&scratch[..count]);
            Ok(count)
        })
    } else {
        // Grow with what has really arrived: a promised length alone gets at most this much.
        buf.reserve(wants.clamp(4 << 10, 256 << 10));
        socket.try_read_buf(buf)
    };
    match result {
        Ok(0) => Err(Ended::PeerClosed),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(broken(&error)),
    }
}

/// Runs a connection over any stream (TLS) until it ends. Costs a buffer, unlike [`drive`].
pub(crate) async fn drive_stream(
    stream: impl AsyncRead + AsyncWrite,
    outlet: &Outlet,
    protocol: &mut impl Protocol,
    budget: Option<&Budget>,
) -> Ended {
    let (mut reader, mut writer) = tokio::io::split(stream);
    // One side at a time must not block the other: a TLS peer that only sends would deadlock a single loop.
    let writing = async {
        loop {
            while let Some(pieces) = outlet.pop() {
                for piece in pieces {
                    // A peer that does not read must not keep us from closing.
                    tokio::select! {
                        biased;
                        written = writer.write_all(&piece) => written?,
                        () = outlet.closed() => return Ok(()),
                    }
                }
            }
            tokio::select! {
                biased;
                flushed = writer.flush() => flushed?,
                () = outlet.closed() => return Ok(()),
            }
            if outlet.closing().is_some() {
                let _ = tokio::time::timeout(FAREWELL, writer.shutdown()).await;
                return Ok::<(), io::Error>(());
            }
            if !outlet.has_pending() {
                outlet.woken().await;
            }
        }
    };
    let reading = async {
        let mut share = Share { budget, held: 0 };
        let mut buf = BytesMut::new();
        let mut wants = 0_usize;
        let mut heard = Instant::now();
        let mut clock = Clock::new();
        loop {
            let now = Instant::now();
            if clock.is_late(now) {
                heard = now;
            }
            clock.set(protocol.tick(now, heard)?);
            buf.reserve(wants.clamp(4 << 10, 256 << 10));
            tokio::select! {
            biased;
                count = reader.read_buf(&mut buf) => {
                    match count {
                        Ok(0) => return Err(Ended::PeerClosed),
                        Ok(_) => {}
                        Err(error) => return Err(broken(&error)),
                    }
                    heard = Instant::now();
                    wants = protocol.input(&mut buf)?;
                    share.hold(buf.len())?;
                }
                () = clock.rings() => {}
            }
        }
    };
    tokio::select! {
            biased;
        written = writing => match written {
            Ok(()) => outlet.closing().unwrap_or(Ended::Closed),
            Err(error) => broken(&error),
        },
        read = reading => {
            let read: Result<std::convert::Infallible, Ended> = read;
            match read {
                Ok(never) => match never {},
                Err(why) => why,
            }
        }
    }
}

pub(crate) fn broken(error: &io::Error) -> Ended {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Ended::PeerClosed,
        _ => Ended::Io(error.to_string()),
    }
}

/// One reusable timer, touched only when it must ring earlier than it would, or has rung.
struct Clock {
    sleep: std::pin::Pin<Box<tokio::time::Sleep>>,
    armed: bool,
}

impl Clock {
    fn new() -> Self {
        Self { sleep: Box::pin(tokio::time::sleep_until(Instant::now())), armed: false }
    }

    fn set(&mut self, when: Option<Instant>) {
        let Some(when) = when else {
            self.armed = false;
            return;
        };
        if !self.armed || self.sleep.is_elapsed() || when < self.sleep.deadline() {
            self.sleep.as_mut().reset(when);
        }
        self.armed = true;
    }

    /// Tells whether the timer should have rung long ago: then silence says nothing about the other end.
    fn is_late(&self, now: Instant) -> bool {
        self.armed && now > self.sleep.deadline() + ABSENT
    }

    async fn rings(&mut self) {
        if self.armed {
            self.sleep.as_mut().await;
        } else {
            std::future::pending::<()>().await;
        }
    }
}
