//! Salt's `transport: ws`: binary WebSocket messages, one per request, reply or publication.
//!
//! A publication is packed twice: the message is one msgpack byte string that holds the packed envelope. There are no
//! topics and no identification: every subscriber gets every publication. The path of the request line means nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, client_async_with_config};

use crate::client::Event;
use crate::drive::FAREWELL;
use crate::hub::{Hub, count};
use crate::lane::Lane;
use crate::link::{Agreed, Answer, Dialect, Line, ONLY};
use crate::listen::{self, Port, Shared};
use crate::msgpack;
use crate::options::{ClientOptions, Heartbeat, Limits, ServerOptions};
use crate::outlet::Outlet;
use crate::peer::{Ended, Peer, Role, Wire};
use crate::service::{ServeError, Server, Service};
use crate::tls::{self, Stream};

type Socket = WebSocketStream<Box<dyn Stream>>;

/// Returns a publication: the envelope as one msgpack byte string.
pub(crate) fn publication(body: &Bytes) -> Bytes {
    let mut out = Vec::with_capacity(5 + body.len());
    msgpack::put_bin_header(&mut out, body.len());
    out.extend_from_slice(body);
    out.into()
}

fn config(limits: &Limits) -> WebSocketConfig {
    let most = limits.message.saturating_add(16);
    WebSocketConfig::default()
        .read_buffer_size(4 << 10)
        .write_buffer_size(0)
        .max_message_size(Some(most))
        .max_frame_size(Some(most))
}

/// Listens on both ports and serves until the [`Server`] is dropped; with TLS if `options.ssl` is set.
///
/// # Errors
/// If a port cannot be bound, or the certificates cannot be used.
pub async fn serve<S: Service>(
    options: &ServerOptions,
    hub: &Hub,
    service: Arc<S>,
) -> Result<Server, ServeError> {
    let tls = options.ssl.as_ref().map(tls::acceptor).transpose().map_err(ServeError::Ssl)?;
    listen::start(options, hub, service, tls, connection).await
}

async fn connection<S: Service>(
    shared: Arc<Shared<S>>,
    port: Port,
    stream: TcpStream,
    addr: SocketAddr,
) {
    count(&shared.hub.counters().accepted);
    let options = &shared.options;
    let outlet = Outlet::new(None, options.limits.outbound);
    let peer = Peer::new(&shared.hub, Some(addr), outlet, options.pub_hwm);
    shared.gate.enter(&peer);
    let why = match handshake(&shared, stream, &peer).await {
        Ok(socket) => {
            let role = match port {
                Port::Requests => Role::Requester,
                Port::Publications => Role::Subscriber,
            };
            peer.become_(role, Wire::Ws);
            shared.gate.settle(&peer);
            shared.hub.add(&peer);
            shared.service.up(&peer);
            if port == Port::Publications {
                shared.hub.subscribe(&peer);
                shared.service.subscribed(&peer);
            }
            Ok(run_server(&shared, port, &peer, socket).await)
        }
        Err(why) => Err(why),
    };
    peer.0.outlet.end();
    shared.gate.leave(&peer);
    match why {
        Ok(why) => {
            shared.hub.remove(&peer, []);
            shared.service.down(&peer, &why);
        }
        Err(why) => {
            count(&shared.hub.counters().handshakes_failed);
            tracing::debug!(%addr, %why, "handshake failed");
        }
    }
}

async fn handshake<S: Service>(
    shared: &Shared<S>,
    stream: TcpStream,
    peer: &Peer,
) -> Result<Socket, Ended> {
    let limits = &shared.options.limits;
    let work = async {
        let stream = match &shared.tls {
            Some(tls) => tls::boxed(tls::accept(tls, stream, peer, limits.handshake).await?),
            None => tls::boxed(stream),
        };
        let accepted = accept_async_with_config(stream, Some(config(limits))).await;
        accepted.map_err(|error| broken(&error))
    };
    tokio::select! {
        done = tokio::time::timeout(limits.handshake, work) => {
            done.unwrap_or(Err(Ended::HandshakeTimeout))
        }
        () = peer.0.outlet.closed() => Err(peer.0.outlet.closing().unwrap_or(Ended::Closed)),
    }
}

async fn run_server<S: Service>(
    shared: &Shared<S>,
    port: Port,
    peer: &Peer,
    mut socket: Socket,
) -> Ended {
    // One question at a time: the replies carry no number.
    let lane: Arc<Lane<S, ()>> =
        Lane::new(&shared.service, &shared.hub, peer, bare, (1, shared.options.limits.waiting));
    loop {
        if let Err(why) = send_all(&mut socket, &peer.0.outlet).await {
            return why;
        }
        if peer.0.outlet.has_pending() {
            continue;
        }
        let message = tokio::select! {
            message = socket.next() => message,
            () = peer.0.outlet.woken() => continue,
        };
        match received(message) {
            Ok(Some(body)) if port == Port::Requests => lane.submit((), body),
            Ok(_) => {}
            Err(why) => return why,
        }
    }
}

fn bare((): &(), reply: Option<Bytes>) -> Vec<Bytes> {
    reply.into_iter().collect()
}

/// Sends all that waits; an error if the connection is to be closed, also while the peer does not read.
async fn send_all(socket: &mut Socket, outlet: &Outlet) -> Result<(), Ended> {
    let sent = tokio::select! {
        biased;
        sent = send_pending(socket, outlet) => sent,
        () = outlet.closed() => Ok(()),
    };
    match outlet.closing() {
        Some(why) => {
            let _ = tokio::time::timeout(FAREWELL, socket.close(None)).await;
            Err(why)
        }
        None => sent,
    }
}

async fn send_pending(socket: &mut Socket, outlet: &Outlet) -> Result<(), Ended> {
    while let Some(pieces) = outlet.pop() {
        let body = match <[Bytes; 1]>::try_from(pieces) {
            Ok([whole]) => whole,
            Err(pieces) => {
                let mut whole = BytesMut::new();
                pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
                whole.freeze()
            }
        };
        socket.feed(Message::Binary(body)).await.map_err(|error| broken(&error))?;
    }
    socket.flush().await.map_err(|error| broken(&error))
}

/// Returns the body of a binary message, `None` for what needs no answer from us.
fn received(message: Option<Result<Message, Error>>) -> Result<Option<Bytes>, Ended> {
    match message {
        None | Some(Ok(Message::Close(_))) => Err(Ended::PeerClosed),
        Some(Ok(Message::Binary(body))) => Ok(Some(body)),
        Some(Ok(Message::Text(text))) if text.as_str() == "close" => Err(Ended::PeerClosed),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(broken(&error)),
    }
}

fn broken(error: &Error) -> Ended {
    match error {
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Ended::PeerClosed,
        Error::Io(error) => crate::drive::broken(error),
        other => Ended::Malformed(other.to_string()),
    }
}

/// Asks a master for a WebSocket.
pub(crate) async fn upgrade(
    options: &ClientOptions,
    port: u16,
    stream: Box<dyn Stream>,
) -> Result<Socket, String> {
    let scheme = if options.ssl.is_some() { "wss" } else { "ws" };
    let host = listen::unbracketed(&options.host);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let uri = format!("{scheme}://{host}:{port}/ws");
    let upgraded = client_async_with_config(uri, stream, Some(config(&options.limits))).await;
    upgraded.map(|(socket, _)| socket).map_err(|error| error.to_string())
}

/// Runs a client's connection.
pub(crate) async fn run_client(
    mut socket: Socket,
    line: &Line,
    publications: Option<Heartbeat>,
    agreed: Agreed,
) -> Ended {
    let _ = agreed.send(Dialect::Ws);
    let mut heard = Instant::now();
    let mut pinged = heard;
    loop {
        if let Err(why) = send_all(&mut socket, &line.outlet).await {
            return why;
        }
        if line.outlet.has_pending() {
            continue;
        }
        // A genuine master reads nothing while it works on a request, so only the stream has a heartbeat.
        let beat = publications.filter(|beat| !beat.interval.is_zero());
        let due = async {
            match beat {
                Some(beat) => tokio::time::sleep_until(heard.max(pinged) + beat.interval).await,
                None => std::future::pending().await,
            }
        };
        let message = tokio::select! {
            message = socket.next() => message,
            () = line.outlet.woken() => continue,
            () = due => {
                let most = beat.map_or(std::time::Duration::MAX, |beat| beat.timeout.max(beat.interval));
                if heard.elapsed() >= most {
                    return Ended::Silent(most);
                }
                pinged = Instant::now();
                match socket.send(Message::Ping(Bytes::new())).await {
                    Ok(()) => continue,
                    Err(error) => return broken(&error),
                }
            }
        };
        heard = Instant::now();
        match received(message) {
            Ok(None) => {}
            Ok(Some(body)) if publications.is_some() => {
                line.event(Event::Publication(msgpack::content(&body).unwrap_or(body)));
            }
            Ok(Some(body)) => line.answer(ONLY, Answer::Reply(body)),
            Err(why) => return why,
        }
    }
}
