//! A master that knows nothing: answers every request with the request, and publishes a line every second.
//!
//! For trying the wire by hand: `cargo run --example echo -- 127.0.0.1 4506 4505 [zeromq|tcp|ws]`.
#![expect(clippy::print_stderr, reason = "a program")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use halite_transport::{Delivery, Ended, Hub, Peer, ServerOptions, Service, zeromq};

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
    let server = zeromq::serve(&options, &hub, Arc::new(Echo)).await?;
    eprintln!("requests {}, publications {}", server.request_addr(), server.publish_addr());
    for number in 0.. {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let body = Bytes::from(format!("publication {number}"));
        let topics = if number % 2 == 0 { vec![] } else { vec![Bytes::from_static(b"topic")] };
        let receipt = hub.publish(Delivery::all().topics(topics), body).await;
        eprintln!("{receipt:?} {:?}", hub.statistics());
    }
    Ok(())
}
