//! What a connection costs and how long a publication takes: `fanout [connections] [rounds] [plain|extended]`, one JSON
//! object per mode.
//!
//! The master runs in this process, the subscribers in a second one (this program again), so that memory is told apart. An
//! idle connection is measured twice: resident memory of the process, divided; and what is left after the publications.
#![expect(clippy::print_stdout, reason = "a program")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use halite_transport::{Delivery, Hub, Peer, ServerOptions, Service, zeromq};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const BODY: usize = 1024;

struct Binder;

impl Service for Binder {
    async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
        peer.bind(&String::from_utf8_lossy(&body));
        Some(body)
    }
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default| args.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let runtime = tokio::runtime::Runtime::new()?;
    if args.get(1).is_some_and(|mode| mode == "subscribers") {
        let (addr, count) = (args[3].clone(), number(4, 0));
        return runtime.block_on(subscribers(args[2] == "extended", addr, count));
    }
    if let Some(mode) = args.get(3) {
        return runtime.block_on(master(mode, number(1, 5000), number(2, 20)));
    }
    // Each mode in a process of its own: memory that one has used is cheaper for the next.
    for mode in ["plain", "extended"] {
        let counts = [number(1, 5000), number(2, 20)].map(|n: usize| n.to_string());
        Command::new(std::env::current_exe()?).args(counts).arg(mode).status()?;
    }
    Ok(())
}

async fn master(mode: &str, count: usize, rounds: usize) -> Outcome {
    let hub = Hub::new();
    let options = ServerOptions {
        interface: "127.0.0.1".into(),
        ret_port: 0,
        publish_port: 0,
        ..ServerOptions::default()
    };
    let server = zeromq::serve(&options, &hub, Arc::new(Binder)).await?;
    let before = resident();
    let addr = if mode == "plain" { server.publish_addr() } else { server.request_addr() };
    let mut child = Command::new(std::env::current_exe()?)
        .args(["subscribers", mode, &addr.to_string(), &count.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("a pipe")?).lines();
    let mut line = move || lines.next().ok_or("the subscribers have gone")?.map_err(Box::from);
    let start = SystemTime::now();
    let (mut line, ready): (_, Outcome<String>) = tokio::task::spawn_blocking(move || {
        let ready: Outcome<String> = line();
        (line, ready)
    })
    .await?;
    ready?;
    let connect_ms = start.elapsed()?.as_millis();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let idle = resident();
    let (mut medians, mut lasts, mut written) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let mut body = vec![0; BODY];
        body[..8].copy_from_slice(&now().to_be_bytes());
        written = hub.publish(Delivery::all(), body.into()).await.written;
        let (again, text): (_, Outcome<String>) = tokio::task::spawn_blocking(move || {
            let text: Outcome<String> = line();
            (line, text)
        })
        .await?;
        line = again;
        let text = text?;
        let mut figures = text.split(' ').filter_map(|n| n.parse::<f64>().ok());
        medians.push(figures.next().unwrap_or(0.0));
        lasts.push(figures.next().unwrap_or(0.0));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let after = resident();
    child.kill()?;
    child.wait()?;
    let middle = |figures: &mut Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    println!(
        "{{\"mode\": \"{mode}\", \"connections\": {count}, \"connect_ms\": {connect_ms}, \
         \"idle_bytes_per_connection\": {}, \"bytes_per_connection_after\": {}, \
         \"body_bytes\": {BODY}, \"written\": {written}, \"rounds\": {rounds}, \
         \"median_receiver_ms\": {:.2}, \"last_receiver_ms\": {:.2}, \"worst_last_ms\": {:.2}}}",
        (idle.saturating_sub(before)) / count.max(1),
        (after.saturating_sub(before)) / count.max(1),
        middle(&mut medians),
        middle(&mut lasts),
        lasts.last().copied().unwrap_or(0.0),
    );
    Ok(())
}

/// Many bare subscribers: enough of the protocol to be served, and no more.
async fn subscribers(extended: bool, addr: String, count: usize) -> Outcome {
    let (sender, mut arrivals) = mpsc::unbounded_channel::<u64>();
    let mut up = 0;
    for batch in (0..count).collect::<Vec<_>>().chunks(200) {
        let tasks: Vec<_> =
            batch.iter().map(|&n| tokio::spawn(handshake(extended, addr.clone(), n))).collect();
        for task in tasks {
            tokio::spawn(receive(extended, task.await??, sender.clone()));
            up += 1;
        }
    }
    // The last subscriptions are still on their way.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut out = std::io::stdout();
    writeln!(out, "ready {up}")?;
    loop {
        let mut took = Vec::with_capacity(count);
        for _ in 0..count {
            took.push(arrivals.recv().await.ok_or("the master has gone")?);
        }
        took.sort_unstable();
        let ms = |nanos: u64| nanos as f64 / 1e6;
        writeln!(out, "{} {}", ms(took[count / 2]), ms(took[count - 1]))?;
        out.flush()?;
    }
}

async fn handshake(extended: bool, addr: String, number: usize) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(addr).await?;
    let mut hello = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    hello.extend_from_slice(b"NULL");
    hello.resize(64, 0);
    if extended {
        hello.extend_from_slice(b"\x04\x27\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ");
        hello.extend_from_slice(b"\x08X-Halite\x00\x00\x00\x011\x00\x01\x05");
        let id = format!("minion{number:06}");
        hello.extend_from_slice(&[0, 9 + u8::try_from(id.len())?, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        hello.extend_from_slice(id.as_bytes());
    } else {
        hello.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB");
        hello.extend_from_slice(b"\x04\x0a\x09SUBSCRIBE");
    }
    stream.write_all(&hello).await?;
    // The greeting, then READY; an extended one waits for the reply that says it is bound.
    let mut greeting = [0; 64];
    stream.read_exact(&mut greeting).await?;
    frame(&mut stream).await?;
    if extended {
        frame(&mut stream).await?;
    }
    Ok(stream)
}

async fn receive(
    extended: bool,
    mut stream: TcpStream,
    sender: mpsc::UnboundedSender<u64>,
) -> Outcome {
    loop {
        let body = frame(&mut stream).await?;
        let at = usize::from(extended);
        if body.len() == BODY + at {
            let sent = u64::from_be_bytes(body[at..at + 8].try_into()?);
            sender.send(now().saturating_sub(sent))?;
        } else if body.starts_with(b"\x04PING") {
            stream.write_all(b"\x04\x05\x04PONG").await?;
        }
    }
}

async fn frame(stream: &mut TcpStream) -> Outcome<Vec<u8>> {
    let flags = stream.read_u8().await?;
    let size =
        if flags & 2 == 0 { u64::from(stream.read_u8().await?) } else { stream.read_u64().await? };
    let mut body = vec![0; usize::try_from(size)?];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns this process's resident memory in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
