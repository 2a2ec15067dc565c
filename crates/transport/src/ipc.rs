//! The local event bus of Salt: streams of `{"head": {}, "body": <event bytes>}` between programs of one host.
//!
//! Two sockets each for master and minion: from the *pub* side listeners read every event ([`Publisher`], [`Listener`]), to
//! the *pull* side programs write theirs ([`Puller`], [`Pusher`]). Always this framing, whatever `transport` is.
//!
//! Releases differ in whether four bytes of length stand before each element. What comes in is recognised by its first
//! byte: an element is a map (0x80 and up), a length below 2 GiB begins below 0x80. What a listener wants must be known
//! beforehand: [`Prefix`].

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::dialect;
use crate::drive::{Protocol, drive};
use crate::msgpack::{self, Scan, Scanner};
use crate::outlet::{Keep, Outlet, Sent, Socket};
use crate::peer::Ended;
use crate::random::Random;
use crate::tcp;

/// The largest element taken. Salt trims events to `max_event_size`, 1 MiB.
const ELEMENT_LIMIT: usize = 64 << 20;

/// Events waiting between the pull side's connections and its reader; then the writers wait.
const PULL_QUEUE: usize = 1024;

/// Where a bus socket is (`ipc_mode`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket file in `sock_dir`.
    Unix(PathBuf),
    /// A port of the loopback interface.
    Tcp(SocketAddr),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// Whether four bytes of length go before each event to a listener.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prefix {
    /// As the listener's own release of Salt has it, as far as that can be seen.
    #[default]
    Recognise,
    Never,
    /// As 3006.26 and later 3006 releases expect it.
    Always,
}

/// How events go out to listeners.
#[derive(Debug, Clone, Copy)]
pub struct PublisherOptions {
    /// The socket file's permissions.
    pub mode: u32,
    pub prefix: Prefix,
    /// Events waiting for one slow listener; further ones are dropped for it, and counted.
    pub queue: usize,
    /// Bytes waiting for one slow listener.
    pub queue_bytes: usize,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        // Bytes are the true limit; the number is there for what each event costs beside its own.
        Self { mode: 0o660, prefix: Prefix::default(), queue: 200_000, queue_bytes: 64 << 20 }
    }
}

/// The outgoing side of the bus. Dropping it ends listening and removes the socket file.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Listeners>,
    door: Door,
}

#[derive(Debug)]
struct Listeners {
    options: PublisherOptions,
    /// Each with whether it wants lengths.
    outlets: Mutex<BTreeMap<u64, (Arc<Outlet>, bool)>>,
    next: AtomicU64,
    dropped: AtomicU64,
}

/// What became of one event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Published {
    /// Listeners it was handed to.
    pub listeners: usize,
    /// Listeners it was dropped for.
    pub dropped: usize,
}

impl Publisher {
    /// Listens at `address`. A socket file left behind by a dead process is replaced.
    ///
    /// # Errors
    /// If the address cannot be used, or another process listens there.
    pub async fn bind(address: &Address, options: PublisherOptions) -> io::Result<Self> {
        let shared = Arc::new(Listeners {
            options,
            outlets: Mutex::default(),
            next: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let listeners = shared.clone();
        let door = Door::open(address, options.mode, move |socket| {
            // Registered here, not in the task: whoever is connected hears what comes from now on.
            let listener = Registered::new(&listeners, socket);
            tokio::spawn(serve_listener(listeners.clone(), listener));
        })
        .await?;
        Ok(Self { shared, door })
    }

    /// Hands one event (tag, two line feeds, packed data) to every listener; never waits.
    pub fn publish(&self, event: &[u8]) -> Published {
        let outlets: Vec<_> = self.shared.outlets.lock().values().cloned().collect();
        if outlets.is_empty() {
            return Published::default();
        }
        let mut pieces: [Option<[Bytes; 1]>; 2] = [None, None];
        let mut published = Published::default();
        for (outlet, prefix) in outlets {
            let piece = pieces[usize::from(prefix)].get_or_insert_with(|| [element(event, prefix)]);
            match outlet.send(piece, Keep::UpTo(self.shared.options.queue)) {
                Sent::Written | Sent::Queued => published.listeners += 1,
                Sent::Dropped => published.dropped += 1,
                Sent::Gone => {}
            }
        }
        self.shared.dropped.fetch_add(published.dropped as u64, Ordering::Relaxed);
        published
    }

    /// Returns how many listen now.
    pub fn listeners(&self) -> usize {
        self.shared.outlets.lock().len()
    }

    /// Returns how many deliveries were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Returns where it listens, with the real port if 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.door.address
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        for (outlet, _) in self.shared.outlets.lock().values() {
            outlet.close(Ended::Closed);
        }
    }
}

/// A listener that is on the list.
struct Registered {
    socket: Arc<Socket>,
    outlet: Arc<Outlet>,
    number: u64,
}

impl Registered {
    fn new(shared: &Listeners, socket: Socket) -> Self {
        let prefix = match (shared.options.prefix, &socket) {
            (Prefix::Always, _) => true,
            (Prefix::Never, _) | (_, Socket::Tcp(_)) => false,
            (Prefix::Recognise, Socket::Unix(stream)) => {
                let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
                pid.is_some_and(dialect::wants_prefix)
            }
        };
        let socket = Arc::new(socket);
        let outlet = Arc::new(Outlet::new(Some(socket.clone()), shared.options.queue_bytes));
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        shared.outlets.lock().insert(number, (outlet.clone(), prefix));
        Self { socket, outlet, number }
    }
}

async fn serve_listener(shared: Arc<Listeners>, listener: Registered) {
    let Registered { socket, outlet, number } = listener;
    // A listener has nothing to say; what it says anyway is thrown away.
    drive(&socket, &outlet, &mut Deaf, None).await;
    shared.outlets.lock().remove(&number);
    outlet.end();
}

struct Deaf;

impl Protocol for Deaf {
    fn input(&mut self, buf: &mut BytesMut) -> Result<usize, Ended> {
        buf.clear();
        Ok(0)
    }

    fn tick(&mut self, _: Instant, _: Instant) -> Result<Option<Instant>, Ended> {
        Ok(None)
    }
}

/// The incoming side of the bus. Dropping it ends listening and removes the socket file.
#[derive(Debug)]
pub struct Puller {
    events: mpsc::Receiver<Bytes>,
    door: Door,
}

impl Puller {
    /// Listens at `address`; `mode` is for the socket file (Salt: 0600).
    ///
    /// # Errors
    /// If the address cannot be used, or another process listens there.
    pub async fn bind(address: &Address, mode: u32) -> io::Result<Self> {
        let (sender, events) = mpsc::channel(PULL_QUEUE);
        let door = Door::open(address, mode, move |socket| {
            tokio::spawn(pull(socket, sender.clone()));
        })
        .await?;
        Ok(Self { events, door })
    }

    /// Waits for the next event from anybody. While nobody calls this, the writers wait.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.events.recv().await
    }

    /// Returns where it listens, with the real port if 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.door.address
    }
}

/// How long a program that comes to write waits. Programs open their ear first, then fire, and
/// expect to hear themselves: the listener that came just before must be on the list by then.
const SETTLE: Duration = Duration::from_millis(5);

async fn pull(socket: Socket, sender: mpsc::Sender<Bytes>) {
    tokio::time::sleep(SETTLE).await;
    let mut reader = Reader::new(socket);
    loop {
        let event = tokio::select! {
            event = reader.next() => event,
            () = sender.closed() => return,
        };
        match event {
            Ok(Some(event)) => {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "a program wrote rubbish to the event bus");
                return;
            }
        }
    }
}

/// A program that reads the bus.
pub struct Listener {
    reader: Reader,
}

impl Listener {
    /// Connects to the pub side.
    ///
    /// # Errors
    /// If nobody listens there, or it is not allowed.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        Ok(Self { reader: Reader::new(dial(address).await?) })
    }

    /// Waits for the next event; `None` once the bus has gone. Cancel safe.
    ///
    /// # Errors
    /// If the connection breaks, or what comes is not a bus.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        self.reader.next().await
    }
}

/// A program that writes to the bus.
pub struct Pusher {
    socket: Socket,
    prefix: bool,
}

impl Pusher {
    /// Connects to the pull side. Masters from 3006.26 and 3008.2 on want `prefix`; ours takes both.
    ///
    /// # Errors
    /// If nobody listens there, or it is not allowed.
    pub async fn connect(address: &Address, prefix: bool) -> io::Result<Self> {
        Ok(Self { socket: dial(address).await?, prefix })
    }

    /// Writes one event.
    ///
    /// # Errors
    /// If the bus has gone.
    pub async fn send(&mut self, event: &[u8]) -> io::Result<()> {
        let element = element(event, self.prefix);
        match &mut self.socket {
            Socket::Unix(stream) => stream.write_all(&element).await,
            Socket::Tcp(stream) => stream.write_all(&element).await,
        }
    }
}

fn element(event: &[u8], prefix: bool) -> Bytes {
    let element = tcp::bytes_frame(b"\x80", event);
    if !prefix {
        return element;
    }
    let mut out = BytesMut::with_capacity(4 + element.len());
    out.put_u32(u32::try_from(element.len()).expect("events are limited far below 4 GiB"));
    out.put_slice(&element);
    out.freeze()
}

/// Takes elements off a stream, with or without lengths before them.
struct Reader {
    socket: Socket,
    buf: BytesMut,
    elements: Elements,
}

#[derive(Default)]
struct Elements {
    scanner: Scanner,
}

impl Elements {
    /// Takes the next event off the buffer.
    fn take(&mut self, buf: &mut BytesMut) -> Result<Option<Bytes>, Ended> {
        let skip = match buf.first() {
            None => return Ok(None),
            Some(0..0x80) => 4,
            Some(_) => 0,
        };
        if buf.len() <= skip {
            return Ok(None);
        }
        // The length is not needed: the element shows its own end. It only must not be huge.
        match self.scanner.scan(&buf[skip..], ELEMENT_LIMIT)? {
            Scan::Wants(_) => Ok(None),
            Scan::Ends(end) => {
                let element = buf.split_to(skip + end).freeze().slice(skip..);
                let body = msgpack::lookup(&element, ["body"]).and_then(|[body]| body);
                let event = body.as_ref().and_then(msgpack::content);
                event
                    .map(Some)
                    .ok_or_else(|| Ended::Malformed("an element without an event".into()))
            }
        }
    }
}

impl Reader {
    fn new(socket: Socket) -> Self {
        Self { socket, buf: BytesMut::new(), elements: Elements::default() }
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let taken = self.elements.take(&mut self.buf);
            if let Some(event) = taken.map_err(|why| io::Error::other(why.to_string()))? {
                return Ok(Some(event));
            }
            self.buf.reserve(16 << 10);
            let count = match &mut self.socket {
                Socket::Unix(stream) => stream.read_buf(&mut self.buf).await?,
                Socket::Tcp(stream) => stream.read_buf(&mut self.buf).await?,
            };
            if count == 0 {
                return Ok(None);
            }
        }
    }
}

async fn dial(address: &Address) -> io::Result<Socket> {
    Ok(match address {
        Address::Unix(path) => Socket::Unix(UnixStream::connect(path).await?),
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Socket::Tcp(stream)
        }
    })
}

/// A listening socket and its accept loop.
#[derive(Debug)]
struct Door {
    address: Address,
    accepting: JoinHandle<()>,
    /// What identifies our socket file, so that we do not remove someone else's.
    file: Option<(u64, u64)>,
}

impl Door {
    async fn open(
        address: &Address,
        mode: u32,
        mut take: impl FnMut(Socket) + Send + 'static,
    ) -> io::Result<Self> {
        match address {
            Address::Unix(path) => {
                let listener = bind_unix(path, mode).await?;
                let file = inode(path);
                let accepting = tokio::spawn(async move {
                    loop {
                        match listener.accept().await {
                            Ok((stream, _)) => take(Socket::Unix(stream)),
                            Err(error) => pause(&error).await,
                        }
                    }
                });
                Ok(Self { address: address.clone(), accepting, file })
            }
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).await?;
                let address = Address::Tcp(listener.local_addr()?);
                let accepting = tokio::spawn(async move {
                    loop {
                        match listener.accept().await {
                            Ok((stream, _)) => {
                                let _ = stream.set_nodelay(true);
                                take(Socket::Tcp(stream));
                            }
                            Err(error) => pause(&error).await,
                        }
                    }
                });
                Ok(Self { address, accepting, file: None })
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Address::Unix(path) = &self.address
            && self.file.is_some()
            && inode(path) == self.file
        {
            // Someone may have been quicker; then there is nothing left to do.
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "cannot accept local connections; trying again in a moment");
    tokio::time::sleep(Duration::from_millis(200)).await;
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Binds under another name and moves it into place, so that nobody ever sees it with the wrong permissions.
async fn bind_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt;
    if UnixStream::connect(path).await.is_ok() {
        let text = format!("another process listens at {}", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    let name = format!(".{:06x}", Random::from_entropy().next() & 0xff_ffff);
    let temporary = path.with_file_name(name);
    let listener = UnixListener::bind(&temporary)?;
    let placed = std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(mode))
        .and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = placed {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_with_and_without_length_are_told_apart() {
        let mut stream = BytesMut::new();
        let events = [&b"a/tag\n\n\x80"[..], &[7; 70_000], b""];
        for (event, prefix) in events.iter().flat_map(|event| [(event, false), (event, true)]) {
            stream.extend_from_slice(&element(event, prefix));
        }
        for step in [1, 5, 1000, 1 << 20] {
            let (mut elements, mut buf, mut found) = (Elements::default(), BytesMut::new(), vec![]);
            for piece in stream.chunks(step) {
                buf.extend_from_slice(piece);
                while let Some(event) = elements.take(&mut buf).expect("well-formed") {
                    found.push(event);
                }
            }
            let expected: Vec<_> = events.iter().flat_map(|event| [*event, *event]).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn rubbish_is_an_error_and_never_a_panic() {
        let mut random = Random::new(5);
        let mut refused = 0;
        for _ in 0..5_000 {
            let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
            let (mut elements, mut buf) = (Elements::default(), BytesMut::from(&bytes[..]));
            loop {
                match elements.take(&mut buf) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => {
                        refused += 1;
                        break;
                    }
                }
            }
        }
        assert!(refused > 1000);
    }
}
