//! One outgoing connection, whatever the wire: opening it, asking over it, and learning that it has ended.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

use crate::client::Event;
use crate::dial::dial;
use crate::drive::{Protocol, drive, drive_stream};
use crate::events::Events;
use crate::options::{ClientOptions, Kind};
use crate::outlet::{Keep, Outlet, Sent, Socket};
use crate::peer::Ended;
use crate::random::Random;
use crate::simulated::Network;
use crate::zeromq::extension;
use crate::{tcp, tls, ws, zeromq};

/// Which network the master is reached by.
pub(crate) enum Dialer {
    Tcp,
    /// The simulated one, from the named host.
    Simulated(Network, String),
}

impl Dialer {
    pub(crate) fn random(&self) -> Random {
        match self {
            Self::Tcp => Random::from_entropy(),
            Self::Simulated(network, _) => network.fork(),
        }
    }

    pub(crate) fn repeats(&self) -> Option<Network> {
        match self {
            Self::Tcp => None,
            Self::Simulated(network, _) => Some(network.clone()),
        }
    }
}

/// What a connection is opened for.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    Requests,
    Publications { port: u16, topics: Vec<Bytes> },
}

/// What the two ends of a connection have agreed to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// ZeroMQ with a genuine master: one question at a time.
    Zmtp,
    /// ZeroMQ with a Halite master: everything on one connection.
    Extended,
    /// Salt's tcp: questions are numbered.
    Tcp,
    /// Salt's ws: one question at a time.
    Ws,
}

impl Dialect {
    /// Tells whether several questions may be open at once.
    fn is_multiplexed(self) -> bool {
        matches!(self, Self::Extended | Self::Tcp)
    }

    fn request(self, id: u64, body: Bytes) -> Vec<Bytes> {
        match self {
            Self::Zmtp => zeromq::request(body).to_vec(),
            Self::Extended => extension::request(id, body).to_vec(),
            Self::Tcp => tcp::request(id, body).to_vec(),
            Self::Ws => vec![body],
        }
    }
}

/// An open connection. Its task ends when it is closed from either side, or when the last handle is dropped.
pub(crate) struct Link {
    pub(crate) remote: Option<SocketAddr>,
    /// No other connection of this process has it.
    pub(crate) number: u64,
    dialect: Dialect,
    line: Arc<Line>,
}

/// What the connection's task and the askers share.
pub(crate) struct Line {
    pub(crate) outlet: Outlet,
    events: Arc<Events>,
    asks: Mutex<Asks>,
    busy: AtomicBool,
    ended: watch::Sender<Option<Arc<str>>>,
}

#[derive(Default)]
struct Asks {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Answer>>,
}

/// How a question fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Reply(Bytes),
    Declined,
    /// The connection ended; the master may have seen the question.
    Lost(Arc<str>),
    /// The connection had ended before: the question never left.
    NotSent,
}

/// Tells whoever opens the connection that it can be used, and what it speaks.
pub(crate) type Agreed = oneshot::Sender<Dialect>;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A connection that is not multiplexed has one asker, who waits under this number.
pub(crate) const ONLY: u64 = 0;

impl Line {
    pub(crate) fn new(socket: Option<Arc<Socket>>, events: &Arc<Events>) -> Arc<Self> {
        Arc::new(Self {
            outlet: Outlet::new(socket, usize::MAX),
            events: events.clone(),
            asks: Mutex::default(),
            busy: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        })
    }

    /// Hands an answer to whoever waits for it, if anybody still does.
    pub(crate) fn answer(&self, id: u64, answer: Answer) {
        let asker = self.asks.lock().waiting.remove(&id);
        if let Some(asker) = asker {
            let _ = asker.send(answer);
        }
    }

    pub(crate) fn event(&self, event: Event) {
        self.events.push(event);
    }

    fn end(&self, why: &Ended) {
        self.outlet.end();
        let why: Arc<str> = why.to_string().into();
        self.ended.send_replace(Some(why.clone()));
        let waiting = std::mem::take(&mut self.asks.lock().waiting);
        for (_, asker) in waiting {
            let _ = asker.send(Answer::Lost(why.clone()));
        }
    }
}

impl Link {
    /// Connects and finishes the handshake.
    pub(crate) async fn open(
        kind: Kind,
        dialer: &Dialer,
        options: &ClientOptions,
        purpose: Purpose,
        events: &Arc<Events>,
    ) -> Result<Arc<Self>, String> {
        let open = Self::open_at_length(kind, dialer, options, purpose, events);
        match tokio::time::timeout(options.connect_timeout, open).await {
            Ok(opened) => opened,
            Err(_) => Err("the handshake timed out".into()),
        }
    }

    async fn open_at_length(
        kind: Kind,
        dialer: &Dialer,
        options: &ClientOptions,
        purpose: Purpose,
        events: &Arc<Events>,
    ) -> Result<Arc<Self>, String> {
        let (port, source_port) = match purpose {
            Purpose::Requests => (options.port, options.source_ret_port),
            Purpose::Publications { port, .. } => (port, options.source_publish_port),
        };
        let (agree, agreed) = oneshot::channel();
        let (line, remote) = match dialer {
            Dialer::Tcp => {
                let dialed = dial(options, port, source_port).await;
                let (stream, remote) = dialed.map_err(|error| error.to_string())?;
                (start(kind, options, purpose, events, agree, stream, port).await?, Some(remote))
            }
            Dialer::Simulated(network, from) => {
                let dialed = network.dial(from, &options.host, port).await;
                let stream = dialed.map_err(|error| error.to_string())?;
                let line = Line::new(None, events);
                let mut session = zeromq::Session::new(options, purpose, line.clone(), agree);
                tokio::spawn(end_with(line.clone(), async move |line| {
                    drive_stream(stream, &line.outlet, &mut session, None).await
                }));
                (line, None)
            }
        };
        let opening = Opening(&line);
        let dialect = agreed.await.ok();
        std::mem::forget(opening);
        let Some(dialect) = dialect else {
            return Err(ended(&line).await.to_string());
        };
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Self { remote, number, dialect, line }))
    }

    /// Waits until the connection has ended and tells why.
    pub(crate) async fn ended(&self) -> Arc<str> {
        ended(&self.line).await
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.line.outlet.has_ended()
    }

    pub(crate) fn is_extended(&self) -> bool {
        self.dialect == Dialect::Extended
    }

    pub(crate) fn close(&self) {
        self.line.outlet.close(Ended::Closed);
    }

    /// Takes the connection for one question; false if it can carry only one and someone else has it.
    pub(crate) fn claim(&self) -> bool {
        self.dialect.is_multiplexed() || !self.line.busy.swap(true, Ordering::AcqRel)
    }

    /// Asks; the caller has claimed the connection. Dropping the future discards one that is not multiplexed.
    pub(crate) async fn ask(&self, body: Bytes) -> Answer {
        let (reply, answer) = oneshot::channel();
        let id = {
            let asks = &mut *self.line.asks.lock();
            if self.dialect.is_multiplexed() {
                asks.last += 1;
            }
            asks.waiting.insert(asks.last, reply);
            asks.last
        };
        let guard = Asking { link: self, id, reusable: false };
        if self.line.outlet.send(&self.dialect.request(id, body), Keep::Always) == Sent::Gone {
            return Answer::NotSent;
        }
        let answer = answer.await.unwrap_or_else(|_| Answer::Lost("closed".into()));
        guard.answered();
        answer
    }

    pub(crate) fn send_notice(&self, body: Bytes) -> bool {
        self.is_extended() && self.send(&extension::notice(body))
    }

    /// Sends the identification frame of Salt's tcp; other wires have none, and that is fine.
    pub(crate) fn send_identification(&self, body: Bytes) -> bool {
        self.dialect != Dialect::Tcp || self.send(&tcp::identification(body))
    }

    pub(crate) fn send_subscribe(&self) {
        self.send(&extension::subscribe());
    }

    fn send(&self, pieces: &[Bytes]) -> bool {
        self.line.outlet.send(pieces, Keep::Always) != Sent::Gone
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

async fn ended(line: &Line) -> Arc<str> {
    let mut ended = line.ended.subscribe();
    let why = ended.wait_for(Option::is_some).await;
    why.ok().and_then(|why| why.clone()).unwrap_or_else(|| "closed".into())
}

/// Starts the task of a connection over a real socket.
async fn start(
    kind: Kind,
    options: &ClientOptions,
    purpose: Purpose,
    events: &Arc<Events>,
    agree: Agreed,
    stream: TcpStream,
    port: u16,
) -> Result<Arc<Line>, String> {
    Ok(match (kind, &options.ssl) {
        (Kind::ZeroMq, _) => {
            let make = |line| zeromq::Session::new(options, purpose, line, agree);
            spawn_plain(stream, events, make)
        }
        (Kind::Tcp, None) => {
            let make = |line| tcp::Session::new(options, &purpose, line, agree);
            spawn_plain(stream, events, make)
        }
        (Kind::Tcp, Some(ssl)) => {
            let stream = tls::connect(ssl, &options.host, stream).await?;
            let line = Line::new(None, events);
            let mut session = tcp::Session::new(options, &purpose, line.clone(), agree);
            tokio::spawn(end_with(line.clone(), async move |line| {
                drive_stream(stream, &line.outlet, &mut session, None).await
            }));
            line
        }
        (Kind::Ws, ssl) => {
            let stream = match ssl {
                Some(ssl) => tls::boxed(tls::connect(ssl, &options.host, stream).await?),
                None => tls::boxed(stream),
            };
            let line = Line::new(None, events);
            let socket = ws::upgrade(options, port, stream).await?;
            let publications = matches!(purpose, Purpose::Publications { .. });
            let publications = publications.then_some(options.heartbeat);
            tokio::spawn(end_with(line.clone(), async move |line| {
                ws::run_client(socket, line, publications, agree).await
            }));
            line
        }
    })
}

/// Starts the task of a connection over a bare socket.
fn spawn_plain<P: Protocol + Send + 'static>(
    stream: TcpStream,
    events: &Arc<Events>,
    make: impl FnOnce(Arc<Line>) -> P,
) -> Arc<Line> {
    let socket = Arc::new(Socket::Tcp(stream));
    let line = Line::new(Some(socket.clone()), events);
    let mut session = make(line.clone());
    tokio::spawn(end_with(line.clone(), async move |line| {
        drive(&socket, &line.outlet, &mut session, None).await
    }));
    line
}

/// Runs a connection and tells everybody when it has ended.
async fn end_with(line: Arc<Line>, run: impl AsyncFnOnce(&Line) -> Ended) {
    // What `run` owns (the socket, the promise of an agreement) is gone before the end is told.
    let why = run(&line).await;
    line.end(&why);
}

/// Ends the connection when whoever was opening it went away.
struct Opening<'a>(&'a Line);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.outlet.close(Ended::Closed);
    }
}

struct Asking<'a> {
    link: &'a Link,
    id: u64,
    reusable: bool,
}

impl Asking<'_> {
    fn answered(mut self) {
        self.reusable = true;
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let link = self.link;
        link.line.asks.lock().waiting.remove(&self.id);
        if link.dialect.is_multiplexed() {
            return;
        }
        if !self.reusable {
            // REQ cannot take a question back: the late reply would answer the next one.
            link.close();
        }
        link.line.busy.store(false, Ordering::Release);
    }
}
