//! The client: keeps its connections to one master, whatever the wire.
//!
//! One task keeps the main connection to the request port, as long as anybody needs it: for a request, or for the
//! subscription. If the master is Halite, that connection is all there is. If not, a second task keeps a connection to the
//! publish port; and where the main connection carries only one question at a time (REQ), further concurrent questions get
//! connections of their own for the while, as genuine clients do.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::client::{Ask, Event, LinkError, Linked, Subscription, Transport};
use crate::dial::Backoff;
use crate::events::Events;
use crate::link::{Answer, Dialer, Link, Purpose};
use crate::options::{ClientOptions, Kind};

/// Connections for concurrent questions to a genuine master, beside the main one.
const EXTRAS: usize = 16;

/// A client of one master. Ends its connections when dropped.
pub(crate) struct Client {
    core: Arc<Core>,
}

struct Core {
    kind: Kind,
    dialer: Dialer,
    options: ClientOptions,
    address: String,
    events: Arc<Events>,
    link: watch::Sender<Main>,
    /// Requests waiting for the main connection.
    waiters: AtomicUsize,
    subscription: Mutex<Option<Subscription>>,
    /// Tells the keeper that there is something to do.
    demand: Notify,
    started: AtomicBool,
    closed: watch::Sender<bool>,
    extras: Semaphore,
    /// The connection to the publish port, where there is one.
    stream: Mutex<Weak<Link>>,
}

impl Core {
    async fn open(&self, purpose: Purpose) -> Result<Arc<Link>, String> {
        Link::open(self.kind, &self.dialer, &self.options, purpose, &self.events).await
    }
}

/// The main connection.
#[derive(Clone)]
enum Main {
    Down(Arc<str>),
    Up(Arc<Link>),
}

impl Client {
    /// Returns a client that connects when first used. To be used inside a tokio runtime.
    pub(crate) fn new(kind: Kind, options: ClientOptions) -> Self {
        Self::with(kind, options, Dialer::Tcp)
    }

    pub(crate) fn with(kind: Kind, options: ClientOptions, dialer: Dialer) -> Self {
        let address = format!("{}:{}", options.host, options.port);
        let core = Core {
            kind,
            options,
            address,
            events: Events::new(dialer.repeats()),
            dialer,
            link: watch::Sender::new(Main::Down("not connected yet".into())),
            waiters: AtomicUsize::new(0),
            subscription: Mutex::new(None),
            demand: Notify::new(),
            started: AtomicBool::new(false),
            closed: watch::Sender::new(false),
            extras: Semaphore::new(EXTRAS),
            stream: Mutex::new(Weak::new()),
        };
        Self { core: Arc::new(core) }
    }

    fn start(&self) {
        if !self.core.started.swap(true, Ordering::AcqRel) {
            tokio::spawn(keep(self.core.clone()));
        }
        self.core.demand.notify_one();
    }

    fn main(&self) -> Option<Arc<Link>> {
        match &*self.core.link.borrow() {
            Main::Up(link) if link.is_open() => Some(link.clone()),
            _ => None,
        }
    }

    async fn ask(&self, body: Bytes, timeout: Duration) -> Result<(Bytes, u64), LinkError> {
        let core = &self.core;
        let limit = core.options.limits.message;
        if body.len() > limit {
            return Err(LinkError::TooLarge { size: body.len(), limit });
        }
        let mut closed = core.closed.subscribe();
        tokio::select! {
            biased;
            answer = self.ask_until(body, timeout) => answer,
            _ = closed.wait_for(|&closed| closed) => Err(LinkError::Closed),
        }
    }

    async fn ask_until(&self, body: Bytes, timeout: Duration) -> Result<(Bytes, u64), LinkError> {
        let end = Instant::now() + timeout;
        let address = || self.core.address.clone();
        loop {
            let link = self.link(end, timeout).await?;
            let asking = tokio::time::timeout_at(end, link.0.ask(body.clone()));
            let Ok(answer) = asking.await else {
                return Err(LinkError::Timeout { address: address(), waited: timeout });
            };
            match answer {
                Answer::Reply(reply) => return Ok((reply, link.0.number)),
                Answer::Declined => return Err(LinkError::Declined { address: address() }),
                Answer::Lost(reason) => {
                    return Err(LinkError::Lost { address: address(), reason: reason.to_string() });
                }
                // It never left this machine: take the next connection.
                Answer::NotSent => tokio::task::yield_now().await,
            }
        }
    }

    /// Returns a connection for one question: the main one, or one of its own if a plain main one is busy.
    async fn link(&self, end: Instant, timeout: Duration) -> Result<Lease<'_>, LinkError> {
        // The usual case needs nobody's attention.
        if let Some(main) = self.main().filter(|main| main.claim()) {
            return Ok(Lease(main, None));
        }
        let core = &self.core;
        let unreachable = |reason: &str| LinkError::Unreachable {
            address: core.address.clone(),
            waited: timeout,
            reason: reason.to_owned(),
        };
        let main = {
            let _waiting = Waiting::new(&core.waiters);
            self.start();
            let mut states = core.link.subscribe();
            let up = states.wait_for(|main| matches!(main, Main::Up(link) if link.is_open()));
            match tokio::time::timeout_at(end, up).await {
                Ok(Ok(main)) => main.clone(),
                Ok(Err(_)) => return Err(LinkError::Closed),
                Err(_) => {
                    return Err(match &*core.link.borrow() {
                        Main::Down(reason) => unreachable(reason),
                        Main::Up(_) => unreachable("the connection was lost"),
                    });
                }
            }
        };
        let Main::Up(main) = main else { return Err(LinkError::Closed) };
        if main.claim() {
            return Ok(Lease(main, None));
        }
        let extra = async {
            let permit = core.extras.acquire().await.map_err(|error| error.to_string())?;
            // While we waited for our turn the main connection may have become free.
            if main.is_open() && main.claim() {
                return Ok(Lease(main, None));
            }
            let link = core.open(Purpose::Requests).await?;
            link.claim();
            Ok::<_, String>(Lease(link, Some(permit)))
        };
        match tokio::time::timeout_at(end, extra).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(reason)) => Err(unreachable(&reason)),
            Err(_) => Err(unreachable("too many requests at once")),
        }
    }
}

impl Transport for Client {
    fn request_on(
        &self,
        body: Bytes,
        timeout: Duration,
    ) -> Ask<'_, Result<(Bytes, u64), LinkError>> {
        Box::pin(self.ask(body, timeout))
    }

    fn subscribe(&self, subscription: Subscription) {
        *self.core.subscription.lock() = Some(subscription);
        self.start();
    }

    fn identify(&self, body: Bytes) -> bool {
        let stream = self.core.stream.lock().upgrade();
        match stream {
            Some(link) => link.send_identification(body),
            // On an extended link the master knows us by our requests.
            None => self.is_extended(),
        }
    }

    fn notice(&self, body: Bytes) -> bool {
        self.main().is_some_and(|link| link.send_notice(body))
    }

    fn is_extended(&self) -> bool {
        self.main().is_some_and(|link| link.is_extended())
    }

    fn next(&self) -> Ask<'_, Option<Event>> {
        Box::pin(self.core.events.next())
    }

    fn reconnect(&self) {
        let stream = self.core.stream.lock().upgrade();
        for link in self.main().into_iter().chain(stream) {
            link.close();
        }
    }

    fn close(&self) {
        self.core.closed.send_replace(true);
        self.core.events.close();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

/// A connection for one question, and the right to have it if it is not the main one.
struct Lease<'a>(
    Arc<Link>,
    #[expect(dead_code, reason = "held, not read")] Option<SemaphorePermit<'a>>,
);

/// Counts a request that waits for the main connection, for as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Keeps the main connection, until the client is closed.
async fn keep(core: Arc<Core>) {
    let mut closed = core.closed.subscribe();
    let mut keeper =
        Keeper { core: core.clone(), backoff: Backoff::new(core.dialer.random()), stream: None };
    tokio::select! {
            biased;
        () = keeper.run() => {}
        _ = closed.wait_for(|&closed| closed) => {}
    }
    // The links end with their last handle.
    core.link.send_replace(Main::Down("closed".into()));
}

struct Keeper {
    core: Arc<Core>,
    backoff: Backoff,
    /// The task of the connection to the publish port, and what it was started for.
    stream: Option<(JoinHandle<()>, Subscription, Arc<AtomicBool>)>,
}

impl Keeper {
    async fn run(&mut self) {
        loop {
            while !self.is_needed() {
                self.core.demand.notified().await;
            }
            let link = self.core.open(Purpose::Requests).await;
            match link {
                Ok(link) => self.hold(link).await,
                Err(reason) => {
                    tracing::debug!(address = %self.core.address, %reason, "cannot connect");
                    self.core.link.send_replace(Main::Down(reason.into()));
                }
            }
            // A question that waits wants an answer soon; a fleet that merely lost its master comes back spread out.
            let options = &self.core.options;
            let waiting = self.core.waiters.load(Ordering::Acquire) > 0;
            let pace = if waiting { &options.request_reconnect } else { &options.reconnect };
            if self.is_needed() {
                let wait = self.backoff.wait(pace);
                self.pause(wait, waiting).await;
            }
        }
    }

    /// Waits, but not longer than a request's pace once a request is waiting.
    async fn pause(&mut self, wait: Duration, waiting: bool) {
        let start = Instant::now();
        let mut end = start + wait;
        let mut waiting = waiting;
        loop {
            tokio::select! {
            biased;
                () = tokio::time::sleep_until(end) => return,
                () = self.core.demand.notified(), if !waiting => {
                    waiting = self.core.waiters.load(Ordering::Acquire) > 0;
                    if waiting {
                        end = end.min(start + self.core.options.request_reconnect.max);
                    }
                }
            }
        }
    }

    fn is_needed(&self) -> bool {
        self.core.waiters.load(Ordering::Acquire) > 0 || self.wants_stream()
    }

    fn wants_stream(&self) -> bool {
        let wanted = self.core.subscription.lock();
        wanted.is_some() && wanted.as_ref() != self.stream.as_ref().map(|(_, known, _)| known)
    }

    /// Holds an open main connection until it ends.
    async fn hold(&mut self, link: Arc<Link>) {
        let since = Instant::now();
        let mut subscribed = false;
        self.core.link.send_replace(Main::Up(link.clone()));
        let why = loop {
            if link.is_extended() {
                if !subscribed && self.core.subscription.lock().is_some() {
                    subscribed = true;
                    self.end_stream("one connection is enough now");
                    link.send_subscribe();
                    let linked =
                        Linked { extended: true, connection: link.number, remote: link.remote };
                    self.core.events.push(Event::Connected(linked));
                }
            } else if self.wants_stream() {
                self.start_stream();
            }
            tokio::select! {
            biased;
                why = link.ended() => break why,
                () = self.core.demand.notified() => {}
            }
        };
        self.core.link.send_replace(Main::Down(why.clone()));
        self.backoff.lived(since.elapsed());
        if subscribed {
            self.core.events.push(Event::Disconnected(why.to_string()));
        }
    }

    fn start_stream(&mut self) {
        self.end_stream("the subscription has changed");
        let Some(wanted) = self.core.subscription.lock().clone() else { return };
        let up = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(stream(self.core.clone(), wanted.clone(), up.clone()));
        self.stream = Some((task, wanted, up));
    }

    fn end_stream(&mut self, why: &str) {
        if let Some((task, _, up)) = self.stream.take() {
            task.abort();
            if up.load(Ordering::Acquire) {
                self.core.events.push(Event::Disconnected(why.to_owned()));
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end_stream("closed");
    }
}

/// Keeps the connection to the publish port.
async fn stream(core: Arc<Core>, wanted: Subscription, up: Arc<AtomicBool>) {
    let purpose = Purpose::Publications { port: wanted.port, topics: wanted.topics };
    let mut backoff = Backoff::new(core.dialer.random());
    loop {
        match core.open(purpose.clone()).await {
            Ok(link) => {
                let since = Instant::now();
                up.store(true, Ordering::Release);
                *core.stream.lock() = Arc::downgrade(&link);
                let linked =
                    Linked { extended: false, connection: link.number, remote: link.remote };
                core.events.push(Event::Connected(linked));
                let why = link.ended().await;
                up.store(false, Ordering::Release);
                core.events.push(Event::Disconnected(why.to_string()));
                backoff.lived(since.elapsed());
            }
            Err(reason) => {
                tracing::debug!(address = %core.address, %reason, "cannot subscribe");
            }
        }
        tokio::time::sleep(backoff.wait(&core.options.reconnect)).await;
    }
}
