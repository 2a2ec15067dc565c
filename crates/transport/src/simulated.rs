//! A network in memory, for tests: delays, lost connections, partitions and duplicates, all from one seed.
//!
//! Only the wire is simulated. Above it runs the real ZeroMQ code (handshake, extension, heartbeats, reconnects), so what
//! is tested here is what runs. With a paused clock (`#[tokio::test(start_paused = true)]`, which is single-threaded) a run
//! takes no time and the same seed gives the same run.
//!
//! * A *partition* swallows packets: nobody is told, connections look alive until a heartbeat misses, and what was sent
//!   arrives after healing if both ends still wait for it, as TCP would do it.
//! * A *loss* or a *cut* resets the connection at both ends.
//! * A *duplicate* is what retries look like from above: a request handled twice, a publication received twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, Sleep};

use crate::client::Transport;
use crate::hub::Hub;
use crate::keeper::Client;
use crate::link::Dialer;
use crate::listen::{Gate, Port, Shared};
use crate::options::{ClientOptions, Kind, ServerOptions};
use crate::peer::{Ended, Peer};
use crate::random::Random;
use crate::service::Service;
use crate::zeromq;

/// Bytes on their way in one direction before the writer has to wait.
const WINDOW: usize = 256 << 10;

/// How the network behaves.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// How long a packet takes: anything from the first to the second. Order is kept within a connection.
    pub delay: (Duration, Duration),
    /// The chance, per packet, that it takes the whole connection with it.
    pub loss: f64,
    /// The chance that a request is handled twice, or a publication received twice.
    pub duplicate: f64,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            delay: (Duration::from_micros(100), Duration::from_millis(2)),
            loss: 0.0,
            duplicate: 0.0,
        }
    }
}

/// The simulated network. A cheap handle.
#[derive(Clone)]
pub struct Network(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// Told when a partition heals: those who wait to connect try again.
    healed: Notify,
}

struct State {
    random: Random,
    conditions: Conditions,
    listeners: BTreeMap<(String, u16), mpsc::UnboundedSender<Stream>>,
    partitions: BTreeSet<(String, String)>,
    /// All pipes, by the hosts at their ends (in order), to wake and to cut.
    pipes: Vec<(Route, Weak<Pipe>)>,
}

type Route = (String, String);

fn route(a: &str, b: &str) -> Route {
    if a <= b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) }
}

/// A listening master. Dropping it is the death of its process: all its connections are reset.
pub struct Server {
    network: Network,
    host: String,
    ports: [u16; 2],
    gate: Arc<Gate>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.gate.stop();
        let mut state = self.network.0.state.lock();
        for port in self.ports {
            state.listeners.remove(&(self.host.clone(), port));
        }
    }
}

impl Network {
    /// Returns a network without hosts. Print the seed when a test fails.
    pub fn new(seed: u64) -> Self {
        let state = State {
            random: Random::new(seed),
            conditions: Conditions::default(),
            listeners: BTreeMap::new(),
            partitions: BTreeSet::new(),
            pipes: Vec::new(),
        };
        Self(Arc::new(Inner { state: Mutex::new(state), healed: Notify::new() }))
    }

    /// Changes the weather, for what is sent from now on.
    pub fn set_conditions(&self, conditions: Conditions) {
        self.0.state.lock().conditions = conditions;
    }

    /// Starts a master on `host`, with the ports of `options`.
    pub fn serve<S: Service>(
        &self,
        host: &str,
        options: &ServerOptions,
        hub: &Hub,
        service: Arc<S>,
    ) -> Server {
        let gate = Gate::new(options.limits);
        let service = Arc::new(Repeating { service, network: self.clone() });
        let shared = Arc::new(Shared {
            options: options.clone(),
            hub: hub.clone(),
            service,
            gate: gate.clone(),
            tls: None,
        });
        let ports = [options.ret_port, options.publish_port];
        for (port, purpose) in ports.into_iter().zip([Port::Requests, Port::Publications]) {
            let (sender, mut streams) = mpsc::unbounded_channel();
            self.0.state.lock().listeners.insert((host.to_owned(), port), sender);
            let shared = shared.clone();
            tokio::spawn(async move {
                while let Some(stream) = streams.recv().await {
                    tokio::spawn(zeromq::serve_stream(shared.clone(), purpose, stream));
                }
            });
        }
        Server { network: self.clone(), host: host.to_owned(), ports, gate }
    }

    /// Returns a client on host `from`; `options.host` is the master's host.
    pub fn connect(&self, from: &str, options: ClientOptions) -> Arc<dyn Transport> {
        let dialer = Dialer::Simulated(self.clone(), from.to_owned());
        Arc::new(Client::with(Kind::ZeroMq, options, dialer))
    }

    /// Lets packets between two hosts vanish.
    pub fn partition(&self, a: &str, b: &str) {
        self.0.state.lock().partitions.insert(route(a, b));
    }

    /// Ends a partition.
    pub fn heal(&self, a: &str, b: &str) {
        let route = route(a, b);
        self.0.state.lock().partitions.remove(&route);
        for pipe in self.pipes(&route) {
            pipe.wake();
        }
        self.0.healed.notify_waiters();
    }

    /// Resets all connections between two hosts.
    pub fn cut(&self, a: &str, b: &str) {
        for pipe in self.pipes(&route(a, b)) {
            pipe.reset();
        }
    }

    fn pipes(&self, route: &Route) -> Vec<Arc<Pipe>> {
        let state = &mut *self.0.state.lock();
        state.pipes.retain(|(_, pipe)| pipe.strong_count() > 0);
        let on_route = state.pipes.iter().filter(|(other, _)| other == route);
        on_route.filter_map(|(_, pipe)| pipe.upgrade()).collect()
    }

    fn is_cut_off(&self, route: &Route) -> bool {
        self.0.state.lock().partitions.contains(route)
    }

    /// Tells whether this request or publication is to come twice.
    pub(crate) fn repeats(&self) -> bool {
        let state = &mut *self.0.state.lock();
        state.conditions.duplicate > 0.0 && state.random.chance(state.conditions.duplicate)
    }

    /// Returns a generator of its own for something that draws at its own pace.
    pub(crate) fn fork(&self) -> Random {
        Random::new(self.0.state.lock().random.next())
    }

    pub(crate) async fn dial(&self, from: &str, to: &str, port: u16) -> io::Result<Stream> {
        let route = route(from, to);
        loop {
            let healed = self.0.healed.notified();
            if !self.is_cut_off(&route) {
                break;
            }
            // As a SYN that nobody answers; whoever calls keeps the time.
            healed.await;
        }
        let delay = {
            let state = &mut *self.0.state.lock();
            let (least, most) = state.conditions.delay;
            state.random.between(least, most)
        };
        tokio::time::sleep(2 * delay).await;
        let state = &mut *self.0.state.lock();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listener = state.listeners.get(&(to.to_owned(), port)).ok_or_else(refused)?.clone();
        let (there, back) = (Arc::new(Pipe::default()), Arc::new(Pipe::default()));
        if state.pipes.len() % 64 == 63 {
            state.pipes.retain(|(_, pipe)| pipe.strong_count() > 0);
        }
        for pipe in [&there, &back] {
            state.pipes.push((route.clone(), Arc::downgrade(pipe)));
        }
        let end = |incoming: &Arc<Pipe>, outgoing: &Arc<Pipe>| Stream {
            network: self.clone(),
            route: route.clone(),
            incoming: incoming.clone(),
            outgoing: outgoing.clone(),
            arrival: Box::pin(tokio::time::sleep(Duration::ZERO)),
        };
        listener.send(end(&there, &back)).map_err(|_| refused())?;
        Ok(end(&back, &there))
    }
}

/// One direction of a connection.
#[derive(Default)]
struct Pipe {
    flow: Mutex<Flow>,
}

#[derive(Default)]
struct Flow {
    packets: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    last: Option<Instant>,
    finished: bool,
    reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Flow {
    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

impl Pipe {
    fn wake(&self) {
        self.flow.lock().wake();
    }

    fn reset(&self) {
        let flow = &mut *self.flow.lock();
        flow.reset = true;
        flow.packets.clear();
        flow.wake();
    }

    fn finish(&self) {
        let flow = &mut *self.flow.lock();
        flow.finished = true;
        flow.wake();
    }
}

/// One end of a simulated connection.
pub(crate) struct Stream {
    network: Network,
    route: Route,
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    arrival: Pin<Box<Sleep>>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The other end reads what is on its way, then the end; what it sends goes nowhere.
        self.outgoing.finish();
        let flow = &mut *self.incoming.flow.lock();
        flow.reset = true;
        flow.wake();
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let cut_off = this.network.is_cut_off(&this.route);
        let flow = &mut *this.incoming.flow.lock();
        if flow.reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        flow.reader = Some(cx.waker().clone());
        if cut_off {
            return Poll::Pending;
        }
        let Some((due, packet)) = flow.packets.front_mut() else {
            return if flow.finished { Poll::Ready(Ok(())) } else { Poll::Pending };
        };
        if *due > Instant::now() {
            this.arrival.as_mut().reset(*due);
            if this.arrival.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        let count = packet.len().min(buf.remaining());
        buf.put_slice(&packet.split_to(count));
        flow.bytes -= count;
        if !packet.has_remaining() {
            flow.packets.pop_front();
        }
        if let Some(writer) = flow.writer.take() {
            writer.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let (delay, lost) = {
            let state = &mut *self.network.0.state.lock();
            let Conditions { delay: (least, most), loss, .. } = state.conditions;
            (state.random.between(least, most), loss > 0.0 && state.random.chance(loss))
        };
        if lost {
            self.incoming.reset();
            self.outgoing.reset();
        }
        let flow = &mut *self.outgoing.flow.lock();
        if flow.reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if flow.bytes >= WINDOW {
            flow.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = bytes.len().min(WINDOW);
        // Later packets do not overtake earlier ones.
        let due = (Instant::now() + delay).max(flow.last.unwrap_or_else(Instant::now));
        flow.last = Some(due);
        flow.bytes += count;
        flow.packets.push_back((due, Bytes::copy_from_slice(&bytes[..count])));
        if let Some(reader) = flow.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.finish();
        Poll::Ready(Ok(()))
    }
}

/// Handles some requests twice, as a retry after a lost reply would.
struct Repeating<S> {
    service: Arc<S>,
    network: Network,
}

impl<S: Service> Service for Repeating<S> {
    async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
        if self.network.repeats() {
            self.service.request(peer, body.clone()).await;
        }
        self.service.request(peer, body).await
    }

    async fn identify(&self, peer: &Peer, body: Bytes) -> Option<String> {
        self.service.identify(peer, body).await
    }

    fn up(&self, peer: &Peer) {
        self.service.up(peer);
    }

    fn subscribed(&self, peer: &Peer) {
        self.service.subscribed(peer);
    }

    fn notice(&self, peer: &Peer, body: Bytes) {
        self.service.notice(peer, body);
    }

    fn down(&self, peer: &Peer, why: &Ended) {
        self.service.down(peer, why);
    }
}
