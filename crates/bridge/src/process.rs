//! One interpreter: starting it, talking to it, ending it.
//!
//! The control socket is the child's standard input; it carries new conversations (a descriptor
//! each) and interrupts. Each [`Talk`] is one conversation, used by one thread at a time.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, ErrorKind, IoSlice, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use halite_value::{Dict, Value};
use nix::{
    sys::{
        signal::{Signal, killpg},
        socket::{ControlMessage, MsgFlags, sendmsg},
    },
    unistd::Pid,
};
use parking_lot::Mutex;

use crate::{
    error::{Error, Result},
    files, notation,
    settings::Settings,
};

/// How often a waiting call looks after limits.
const LOOK: Duration = Duration::from_millis(100);
/// How long an interrupted call has before the process is ended.
const GRACE: Duration = Duration::from_millis(1500);
/// No message is longer.
const MAX_MESSAGE: usize = 1 << 30;
/// Lines of standard error kept for messages.
const KEPT: usize = 8;
/// How `boot.py` ends where Python is too old.
const TOO_OLD: i32 = 88;
const WANTED: &str = "install Python 3.8 or newer, or name it under `halite: {python: …}`";
/// Dicts (options, grains, pillar) known to the process at a time; it keeps more than that.
const KNOWN: usize = 48;

pub(crate) struct Process {
    child: Mutex<Child>,
    control: Mutex<UnixStream>,
    idle: Mutex<Vec<Talk>>,
    next: AtomicU32,
    pid: u32,
    python: String,
    known: Mutex<Known>,
    said: Arc<Mutex<VecDeque<String>>>,
    /// Standard error has ended.
    heard: Arc<AtomicBool>,
    killed: AtomicBool,
}

/// Dicts the process has, by identity. A handle is kept, so that an identity is not used again.
#[derive(Default)]
struct Known {
    dicts: VecDeque<(Dict, i64)>,
    last: i64,
}

/// A conversation.
pub(crate) struct Talk {
    stream: UnixStream,
    pub(crate) number: u32,
    buffer: Vec<u8>,
}

/// What ends a wait early.
pub(crate) struct Watch<'a> {
    pub(crate) what: &'a str,
    pub(crate) started: Instant,
    pub(crate) limit: Option<Duration>,
    pub(crate) memory: Option<u64>,
    pub(crate) cancelled: &'a dyn Fn() -> bool,
    /// Since when the call is asked to end, and why.
    pub(crate) ending: Option<(Instant, Why)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Time,
    Cancelled,
}

impl Process {
    pub(crate) fn start(
        settings: &Settings,
        native: Dict,
        device: Option<&str>,
    ) -> Result<Arc<Self>> {
        let failed = |reason: String| Error::Start { python: settings.python.clone(), reason };
        let io = |error: std::io::Error| failed(error.to_string());
        let (ours, theirs) = UnixStream::pair().map_err(io)?;
        let mut child = Command::new(&settings.python)
            .args(["-c", files::BOOT])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Its own group, so that what modules leave running can be ended with it.
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => failed(format!("{error}; {WANTED}")),
                _ => io(error),
            })?;
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let heard = Arc::new(AtomicBool::new(false));
        if let Some(stderr) = child.stderr.take() {
            let (said, heard) = (Arc::clone(&said), Arc::clone(&heard));
            let reader = move || {
                listen(stderr, &said);
                heard.store(true, Ordering::Release);
            };
            std::thread::Builder::new().name("python".into()).spawn(reader).map_err(io)?;
        }
        let pid = child.id();
        let process = Arc::new(Self {
            child: Mutex::new(child),
            control: Mutex::new(ours),
            idle: Mutex::default(),
            next: AtomicU32::new(1),
            pid,
            python: settings.python.clone(),
            known: Mutex::default(),
            said,
            heard,
            killed: AtomicBool::new(false),
        });
        {
            let mut control = process.control.lock();
            let settled = settings.to_value(native, log_level(), device);
            let sent = write_frame(&mut control, &files::all())
                .and_then(|()| write_frame(&mut control, &settled));
            if let Err(error) = sent {
                drop(control);
                let (status, said) = process.last_words();
                if let Some(too_old) = process.too_old(status, &said) {
                    return Err(too_old);
                }
                return Err(failed(format!("{error} ({}){}", told(status), last(&said))));
            }
        }
        Ok(process)
    }

    /// Returns a free conversation, or a new one.
    pub(crate) fn talk(&self) -> Result<Talk> {
        if let Some(talk) = self.idle.lock().pop() {
            return Ok(talk);
        }
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(LOOK))?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.order(b'n', number, Some(&theirs))?;
        Ok(Talk { stream: ours, number, buffer: Vec::with_capacity(4096) })
    }

    pub(crate) fn give_back(&self, talk: Talk) {
        let mut idle = self.idle.lock();
        if idle.len() < 16 {
            idle.push(talk);
        }
    }

    fn order(&self, what: u8, number: u32, fd: Option<&UnixStream>) -> Result<()> {
        let [a, b, c, d] = number.to_le_bytes();
        let order = [what, a, b, c, d];
        let fds = fd.map(|stream| [stream.as_raw_fd()]);
        let rights = fds.as_ref().map(|fds| [ControlMessage::ScmRights(fds)]);
        let rights: &[ControlMessage<'_>] = rights.as_ref().map_or(&[], |rights| rights);
        let control = self.control.lock();
        let data = [IoSlice::new(&order)];
        sendmsg::<()>(control.as_raw_fd(), &data, rights, MsgFlags::MSG_NOSIGNAL, None)
            .map_err(std::io::Error::from)?;
        Ok(())
    }

    /// Asks a conversation's thread to give up.
    fn interrupt(&self, number: u32) {
        // A process that cannot be told is dealt with by the grace period.
        let _ = self.order(b'i', number, None);
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.killed.load(Ordering::Relaxed) && matches!(self.child.lock().try_wait(), Ok(None))
    }

    /// Ends the process with everything it started.
    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
        let group = Pid::from_raw(i32::try_from(self.pid).unwrap_or(0));
        if group.as_raw() > 0 {
            // It may be gone already.
            let _ = killpg(group, Signal::SIGKILL);
        }
        let _ = self.child.lock().wait();
    }

    /// Returns how it ended, and what it said last.
    fn last_words(&self) -> (Option<ExitStatus>, Vec<String>) {
        let deadline = Instant::now() + Duration::from_millis(500);
        let mut child = self.child.lock();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                _ if Instant::now() > deadline => break None,
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        drop(child);
        // The reader of standard error may be a moment behind; what the process left running may hold it open.
        let deadline = Instant::now() + Duration::from_millis(300);
        while !self.heard.load(Ordering::Acquire) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        (status, self.said.lock().iter().cloned().collect())
    }

    /// Tells whether it ended because it cannot run what it is sent.
    fn too_old(&self, status: Option<ExitStatus>, said: &[String]) -> Option<Error> {
        if status?.code() != Some(TOO_OLD) {
            return None;
        }
        let version = said.last().map_or("it is too old", String::as_str);
        let reason = format!("{version}; {WANTED}");
        Some(Error::Start { python: self.python.clone(), reason })
    }

    pub(crate) fn ended(&self, what: &str) -> Error {
        let (status, said) = self.last_words();
        // What it started must not stay behind.
        self.kill();
        self.too_old(status, &said).unwrap_or_else(|| Error::Ended {
            what: what.to_owned(),
            how: told(status),
            said: last(&said),
        })
    }

    /// Returns the number the process knows a dict by; sends the dict first if it does not.
    pub(crate) fn token(&self, talk: &mut Talk, dict: &Dict, without: &[&str]) -> Result<i64> {
        let token = {
            let mut known = self.known.lock();
            if let Some((_, token)) = known.dicts.iter().find(|(own, _)| own.is_same(dict)) {
                return Ok(*token);
            }
            known.last += 1;
            let token = known.last;
            known.dicts.push_back((dict.clone(), token));
            if known.dicts.len() > KNOWN {
                known.dicts.pop_front();
            }
            token
        };
        let sent = match without.is_empty() {
            true => dict.clone(),
            false => {
                let copy = dict.shallow_copy();
                without.iter().for_each(|name| drop(copy.remove(*name)));
                copy
            }
        };
        talk.send(&Value::list([Value::str("data"), token.into(), sent.into()]))?;
        Ok(token)
    }

    /// Forgets which dicts the process has: they changed in place.
    pub(crate) fn forget(&self) {
        self.known.lock().dicts.clear();
    }

    /// Waits for the next message of a conversation, within limits.
    pub(crate) fn receive(&self, talk: &mut Talk, watch: &mut Watch<'_>) -> Result<Value> {
        loop {
            if let Some(message) = talk.take()? {
                return Ok(message);
            }
            match talk.read() {
                Ok(0) => return Err(self.over(watch)),
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => self.look(talk.number, watch)?,
                    ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                        return Err(self.over(watch));
                    }
                    _ => return Err(error.into()),
                },
            }
        }
    }

    fn over(&self, watch: &Watch<'_>) -> Error {
        match watch.ending {
            Some((_, why)) => ended_for(watch, why),
            None => self.ended(watch.what),
        }
    }

    /// Ends a call that must not go on.
    fn look(&self, number: u32, watch: &mut Watch<'_>) -> Result<()> {
        if let Some((since, why)) = watch.ending {
            if since.elapsed() > GRACE {
                self.kill();
                return Err(ended_for(watch, why));
            }
            return Ok(());
        }
        let why = if (watch.cancelled)() {
            Why::Cancelled
        } else if watch.limit.is_some_and(|limit| watch.started.elapsed() > limit) {
            Why::Time
        } else {
            return self.look_at_memory(watch);
        };
        watch.ending = Some((Instant::now(), why));
        self.interrupt(number);
        Ok(())
    }

    fn look_at_memory(&self, watch: &Watch<'_>) -> Result<()> {
        let Some(limit) = watch.memory else { return Ok(()) };
        let statm =
            std::fs::read_to_string(format!("/proc/{}/statm", self.pid)).unwrap_or_default();
        let pages: u64 = statm.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        if pages * 4096 <= limit {
            return Ok(());
        }
        self.kill();
        Err(Error::Memory { what: watch.what.to_owned(), limit_mb: limit >> 20 })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Says why a call was ended.
pub(crate) fn ended_for(watch: &Watch<'_>, why: Why) -> Error {
    match why {
        Why::Cancelled => Error::Cancelled,
        Why::Time => {
            Error::TimedOut { what: watch.what.to_owned(), limit: watch.limit.unwrap_or_default() }
        }
    }
}

impl Talk {
    pub(crate) fn send(&mut self, message: &Value) -> Result<()> {
        write_frame(&mut self.stream, message)
    }

    fn read(&mut self) -> std::io::Result<usize> {
        let start = self.buffer.len();
        // A message longer than this is read in pieces.
        let wanted = self.wanted().saturating_sub(start).clamp(4096, 1 << 20);
        self.buffer.resize(start + wanted, 0);
        let read = self.stream.read(&mut self.buffer[start..]);
        self.buffer.truncate(start + read.as_ref().copied().unwrap_or(0));
        read
    }

    /// Bytes of the message under way, once its length is known.
    fn wanted(&self) -> usize {
        self.buffer.first_chunk().map_or(4, |len| 4 + u32::from_le_bytes(*len) as usize)
    }

    fn take(&mut self) -> Result<Option<Value>> {
        let wanted = self.wanted();
        if wanted > MAX_MESSAGE {
            return Err(notation::Error::TooLong.into());
        }
        if wanted == 4 && self.buffer.len() < 4 || self.buffer.len() < wanted {
            return Ok(None);
        }
        let value = notation::from_slice(&self.buffer[4..wanted])?;
        self.buffer.drain(..wanted);
        Ok(Some(value))
    }
}

fn write_frame(stream: &mut UnixStream, message: &Value) -> Result<()> {
    // The length is put in front when it is known.
    let mut frame = String::from("\0\0\0\0");
    notation::write(message, &mut frame)?;
    let mut frame = frame.into_bytes();
    let length = u32::try_from(frame.len() - 4).map_err(|_| notation::Error::TooLong)?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    Ok(stream.write_all(&frame)?)
}

/// Standard error of the process: what modules write past Python's logging.
fn listen(stderr: impl Read, said: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stderr).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if line.is_empty() {
            continue;
        }
        tracing::info!(target: "python", "{line}");
        let mut said = said.lock();
        if said.len() >= KEPT {
            said.pop_front();
        }
        said.push_back(line);
    }
}

fn told(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    let Some(status) = status else { return "it closed its connection".to_owned() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => {
            let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
            format!("signal {signal}, {name}")
        }
        _ => status.to_string(),
    }
}

/// What it said before it ended, for the end of a message.
fn last(said: &[String]) -> String {
    match said.is_empty() {
        true => String::new(),
        false => format!("\nIts last words:\n{}", said.join("\n")),
    }
}

/// What Python should log at all, by its numbers.
fn log_level() -> i64 {
    use tracing::level_filters::LevelFilter;
    match LevelFilter::current() {
        LevelFilter::TRACE => 1,
        LevelFilter::DEBUG => 10,
        LevelFilter::INFO => 20,
        LevelFilter::WARN => 30,
        LevelFilter::ERROR => 40,
        _ => 30,
    }
}
