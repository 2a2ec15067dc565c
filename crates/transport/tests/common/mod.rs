//! A master that answers every request with the request, and tells the test what it was told.
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use halite_transport::{
    Binding, ClientOptions, Ended, Event, Hub, Kind, Peer, Reconnect, Role, Server, ServerOptions,
    Service, Subscription, Transport, connect, tcp, ws, zeromq,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

pub const SECOND: Duration = Duration::from_secs(1);

/// What the service was told.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    Up(Role),
    Subscribed(Option<String>),
    Notice(Bytes),
    Down(Option<String>),
}

pub struct Echo {
    pub told: mpsc::UnboundedSender<Told>,
}

impl Service for Echo {
    async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
        if let Some(id) = body.strip_prefix(b"bind ") {
            let id = String::from_utf8_lossy(id);
            assert_ne!(peer.bind(&id), Binding::Gone);
        }
        match &body[..] {
            b"silence" => return None,
            b"panic" => panic!("a defect in the master"),
            b"slow" => tokio::time::sleep(Duration::from_millis(300)).await,
            _ => {}
        }
        Some(body)
    }

    async fn identify(&self, _: &Peer, body: Bytes) -> Option<String> {
        // A msgpack string of fewer than 32 bytes.
        body.get(1..).map(|id| String::from_utf8_lossy(id).into_owned()).filter(|id| id != "nobody")
    }

    fn up(&self, peer: &Peer) {
        let _ = self.told.send(Told::Up(peer.role()));
    }

    fn subscribed(&self, peer: &Peer) {
        let _ = self.told.send(Told::Subscribed(peer.id().map(|id| id.to_string())));
    }

    fn notice(&self, _: &Peer, body: Bytes) {
        let _ = self.told.send(Told::Notice(body));
    }

    fn down(&self, peer: &Peer, _: &Ended) {
        let _ = self.told.send(Told::Down(peer.id().map(|id| id.to_string())));
    }
}

pub struct Master {
    pub kind: Kind,
    pub hub: Hub,
    pub server: Server,
    told: mpsc::UnboundedReceiver<Told>,
}

pub async fn master(options: ServerOptions) -> Master {
    master_of(Kind::ZeroMq, options).await
}

pub async fn master_of(kind: Kind, options: ServerOptions) -> Master {
    let (told, heard) = mpsc::unbounded_channel();
    let hub = Hub::new();
    let options = ServerOptions { interface: "127.0.0.1".into(), ..options };
    let echo = Arc::new(Echo { told });
    let server = match kind {
        Kind::ZeroMq => zeromq::serve(&options, &hub, echo).await,
        Kind::Tcp => tcp::serve(&options, &hub, echo).await,
        Kind::Ws => ws::serve(&options, &hub, echo).await,
    };
    let server = server.expect("listening");
    Master { kind, hub, server, told: heard }
}

pub fn any_port() -> ServerOptions {
    ServerOptions { ret_port: 0, publish_port: 0, ..ServerOptions::default() }
}

impl Master {
    pub fn client_options(&self, extension: bool) -> ClientOptions {
        let quick = Reconnect {
            first: Duration::from_millis(20),
            max: Duration::from_millis(100),
            randomize: true,
        };
        ClientOptions {
            extension,
            reconnect: quick,
            request_reconnect: quick,
            ..ClientOptions::new("127.0.0.1", self.server.request_addr().port())
        }
    }

    pub fn client(&self, extension: bool) -> Arc<dyn Transport> {
        connect(self.kind, self.client_options(extension))
    }

    pub fn subscription(&self) -> Subscription {
        Subscription::everything(self.server.publish_addr().port())
    }

    pub async fn told(&mut self) -> Told {
        timeout(5 * SECOND, self.told.recv()).await.expect("in time").expect("a service")
    }
}

pub async fn next(client: &Arc<dyn Transport>) -> Event {
    timeout(5 * SECOND, client.next()).await.expect("in time").expect("open")
}

pub fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}
