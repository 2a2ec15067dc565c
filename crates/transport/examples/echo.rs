//! A master that knows nothing: answers every request with the request, and publishes a line every second.
//!
//! For trying the wire by hand: `cargo run --example echo -- 127.0.0.1 4506 4505 [zeromq|tcp|ws] [sock_dir]`; with a
//! `sock_dir` there is an event bus too.
#![expect(clippy::print_stderr, reason = "a program")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use halite_transport::ipc::{Address, Publisher, PublisherOptions, Puller};
use halite_transport::{Delivery, Ended, Hub, Kind, Peer, ServerOptions, Service, tcp, ws, zeromq};

struct Echo;

impl Service for Echo {
    async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
        if let Some(id) = body.strip_prefix(b"bind ") {
            peer.bind(&String::from_utf8_lossy(id));
        }
        if body.starts_with(b"slow") {
            tokio::time::sleep(Duration::from_secs(8)).await;
        }
        Some(body)
    }

    async fn identify(&self, _: &Peer, body: Bytes) -> Option<String> {
        Some(format!("{} bytes", body.len()))
    }

    fn up(&self, peer: &Peer) {
        eprintln!("up {peer:?}");
    }

    fn subscribed(&self, peer: &Peer) {
        eprintln!("subscribed {peer:?}");
    }

    fn down(&self, peer: &Peer, why: &Ended) {
        eprintln!("down {peer:?}: {why}");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let port = |at: usize| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(0);
    let hub = Hub::new();
    let options = ServerOptions {
        interface: args.get(1).cloned().unwrap_or_else(|| "127.0.0.1".into()),
        ret_port: port(2),
        publish_port: port(3),
        ..ServerOptions::default()
    };
    let kind = args.get(4).and_then(|name| Kind::from_name(name)).unwrap_or_default();
    let server = match kind {
        Kind::ZeroMq => zeromq::serve(&options, &hub, Arc::new(Echo)).await?,
        Kind::Tcp => tcp::serve(&options, &hub, Arc::new(Echo)).await?,
        Kind::Ws => ws::serve(&options, &hub, Arc::new(Echo)).await?,
    };
    eprintln!("requests {}, publications {}", server.request_addr(), server.publish_addr());
    if let Some(folder) = args.get(5) {
        let at = |name: &str| Address::Unix(std::path::Path::new(folder).join(name));
        let options = PublisherOptions::default();
        let publisher = Publisher::bind(&at("master_event_pub.ipc"), options).await?;
        let mut puller = Puller::bind(&at("master_event_pull.ipc"), 0o600).await?;
        tokio::spawn(async move {
            while let Some(event) = puller.next().await {
                eprintln!("event {event:?}: {:?}", publisher.publish(&event));
            }
        });
    }
    for number in 0.. {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let body = Bytes::from(format!("publication {number}"));
        let topics = if number % 2 == 0 { vec![] } else { vec![Bytes::from_static(b"topic")] };
        let receipt = hub.publish(Delivery::all().topics(topics), body).await;
        eprintln!("{receipt:?} {:?}", hub.statistics());
    }
    Ok(())
}
