//! How programs on the master's host talk to a running master: the control socket.
//!
//! The socket is `sock_dir/halite.sock`. A frame is four bytes of length (big-endian) and one
//! msgpack map. Who is calling is known from the socket itself (`SO_PEERCRED`), so there are no
//! keys here; passwords and tokens only where a user signs in as somebody else (`salt -a`).
//!
//! ```no_run
//! # use std::{path::Path, time::{Duration, Instant}};
//! # use halite_client::{Client, Job, Progress};
//! # fn main() -> Result<(), halite_client::Error> {
//! let mut master = Client::connect(Path::new("/var/run/salt/master"))?;
//! let (published, job) = master.publish(&Job::new("*", "glob", "test.ping"))?;
//! println!("{} minions, {} not connected", published.minions.len(), published.absent.len());
//! let deadline = Instant::now() + Duration::from_secs(5);
//! while let Some(progress) = master.progress(job, Some(deadline))? {
//!     match progress {
//!         Progress::Returned(load) => println!("{:?}", load.get("return")),
//!         Progress::Lost { id, .. } => println!("{id} went away"),
//!         Progress::Done => break,
//!         _ => {}
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! Read `protocol.rs` for what can be asked ([`Request`]) and what comes back; `gather.rs` waits for
//! returns, `batch.rs` has a job run on a few minions at a time. Blocking, on one
//! thread: command line programs need nothing more. Several requests and streams may be open on
//! one connection; what belongs to another one waits in its queue.

pub mod batch;
mod frame;
mod gather;
mod protocol;

use std::{
    collections::{HashMap, VecDeque},
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use halite_value::{Dict, SmolStr, Value};

pub use frame::{MAX_FRAME, encode, read_frame};
pub use gather::{Gather, News, Outcome, Patience, Silence, Waited};
pub use protocol::{Answer, EventItem, Job, Malformed, Progress, Published, Request};

/// In the data of a `salt/key` event from `salt-key`: what is remembered of the minion stays.
pub const PRESERVE: &str = "__preserve__";

/// In the `kwargs` of a job: the master is to run it in batches, and this is how.
pub const BATCH: &str = "__batch__";

/// The socket's name in `sock_dir`.
pub const SOCKET: &str = "halite.sock";

/// What can go wrong between a program and its master.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No master runs here (or not with this configuration).
    #[error("no master listens at {}: {source}", path.display())]
    NotRunning { path: PathBuf, source: io::Error },
    #[error("you may not talk to the master at {}: {source}", path.display())]
    Forbidden { path: PathBuf, source: io::Error },
    #[error("the connection to the master broke: {0}")]
    Lost(#[from] io::Error),
    #[error("the master says what this program does not understand: {0}")]
    Malformed(#[from] Malformed),
    /// The master refused; `name` is Salt's word for the kind (`AuthorizationError` …).
    #[error("{message}")]
    Refused { name: SmolStr, message: SmolStr },
}

/// A connection to the master.
pub struct Client {
    stream: UnixStream,
    next: u64,
    buffer: BytesMut,
    /// Under whose rights to ask, if not those of the socket.
    credentials: Option<Dict>,
    /// What arrived for requests nobody is waiting for at the moment.
    waiting: HashMap<u64, VecDeque<Answer>>,
}

impl Client {
    /// Connects to the master whose sockets are in `sock_dir`.
    pub fn connect(sock_dir: &Path) -> Result<Self, Error> {
        let path = sock_dir.join(SOCKET);
        let stream = UnixStream::connect(&path).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Forbidden { path, source },
            _ => Error::NotRunning { path, source },
        })?;
        let (buffer, waiting) = (BytesMut::new(), HashMap::new());
        Ok(Self { stream, next: 0, buffer, credentials: None, waiting })
    }

    /// From here on asks under these rights: `{token}`, or `{eauth, username, password …}`.
    pub fn sign_in(&mut self, credentials: Dict) {
        self.credentials = Some(credentials);
    }

    /// Sends a request and returns its number, by which [`Client::next`] finds the answers.
    pub fn send(&mut self, request: &Request) -> Result<u64, Error> {
        self.next += 1;
        let message = match &self.credentials {
            Some(credentials) if !request.is_free() => {
                let request = Box::new(request.clone());
                Request::As { credentials: credentials.clone(), request }.write()
            }
            _ => request.write(),
        };
        message.insert("id", self.next);
        let frame = encode(&message.into())?;
        io::Write::write_all(&mut self.stream, &frame)?;
        Ok(self.next)
    }

    /// Waits for the next answer to a request; `None` when the deadline has passed.
    pub fn next(
        &mut self,
        request: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<Answer>, Error> {
        Ok(self.next_of(&[request], deadline)?.map(|(_, answer)| answer))
    }

    /// Waits for the next answer to any of several requests; `None` when the deadline has passed.
    pub fn next_of(
        &mut self,
        requests: &[u64],
        deadline: Option<Instant>,
    ) -> Result<Option<(u64, Answer)>, Error> {
        loop {
            for request in requests {
                match self.waiting.get_mut(request).and_then(VecDeque::pop_front) {
                    Some(Answer::Refused { name, message }) => {
                        return Err(Error::Refused { name, message });
                    }
                    Some(answer) => return Ok(Some((*request, answer))),
                    None => {}
                }
            }
            let Some(message) = self.read(deadline)? else { return Ok(None) };
            let (id, answer) = Answer::read(&message)?;
            self.waiting.entry(id).or_default().push_back(answer);
        }
    }

    /// Asks a question that has one answer.
    pub fn call(&mut self, request: &Request) -> Result<Value, Error> {
        let id = self.send(request)?;
        loop {
            match self.next(id, None)? {
                Some(Answer::End(value)) => {
                    self.waiting.remove(&id);
                    return Ok(value);
                }
                Some(_) => {}
                None => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        }
    }

    /// Publishes a job. The number is for [`Client::progress`].
    pub fn publish(&mut self, job: &Job) -> Result<(Published, u64), Error> {
        let id = self.send(&Request::Publish(Box::new(job.clone())))?;
        match self.next(id, None)? {
            Some(Answer::Item(Value::Dict(item)) | Answer::End(Value::Dict(item))) => {
                Ok((Published::read(&item)?, id))
            }
            _ => Err(Malformed("publish").into()),
        }
    }

    /// Waits for news about a followed job; `None` when the deadline has passed, and
    /// [`Progress::Done`] when there is nothing more to come.
    pub fn progress(
        &mut self,
        job: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<Progress>, Error> {
        match self.next(job, deadline)? {
            None => Ok(None),
            Some(Answer::End(_)) => Ok(Some(Progress::Done)),
            Some(Answer::Item(Value::Dict(item))) => Ok(Some(Progress::read(&item)?)),
            Some(_) => Err(Malformed("progress").into()),
        }
    }

    /// Waits for the next event of an [`Request::Events`] stream; `None` when the deadline has
    /// passed or the stream has ended.
    pub fn event(
        &mut self,
        stream: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<EventItem>, Error> {
        match self.next(stream, deadline)? {
            Some(Answer::Item(Value::Dict(item))) => Ok(Some(EventItem::read(&item)?)),
            None | Some(Answer::End(_)) => Ok(None),
            Some(_) => Err(Malformed("event").into()),
        }
    }

    /// Ends a stream that is no longer wanted.
    pub fn cancel(&mut self, stream: u64) -> Result<(), Error> {
        self.send(&Request::Cancel { request: stream })?;
        self.waiting.remove(&stream);
        Ok(())
    }

    /// Reads one whole frame; `None` when the deadline has passed. What was read of an unfinished
    /// one is kept.
    fn read(&mut self, deadline: Option<Instant>) -> Result<Option<Dict>, Error> {
        loop {
            if let Some(frame) = read_frame(&mut self.buffer)? {
                return match frame {
                    Value::Dict(message) => Ok(Some(message)),
                    _ => Err(Malformed("frame").into()),
                };
            }
            let timeout = match deadline {
                None => None,
                Some(at) => match at.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => Some(left.max(Duration::from_micros(1))),
                    _ => return Ok(None),
                },
            };
            self.stream.set_read_timeout(timeout)?;
            let mut chunk = [0; 64 << 10];
            match io::Read::read(&mut self.stream, &mut chunk) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(read) => self.buffer.extend_from_slice(&chunk[..read]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error.into()),
                },
            }
        }
    }
}
