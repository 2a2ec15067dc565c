//! Outgoing connections: fresh name lookup, source binding, and the waits between attempts.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::listen::{tune, unbracketed};
use crate::options::{ClientOptions, Reconnect};
use crate::random::Random;

/// A connection that lived this long was a good one: the next wait starts from the shortest again.
const GOOD: Duration = Duration::from_secs(2);
const SHORTEST: Duration = Duration::from_millis(20);

/// Connects to a port of the master; names are looked up anew, all their addresses are tried in turn.
pub(crate) async fn dial(
    options: &ClientOptions,
    port: u16,
    source_port: u16,
) -> io::Result<(TcpStream, SocketAddr)> {
    let end = Instant::now() + options.connect_timeout;
    let addresses = lookup(options, port, end).await?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no usable address");
    for (tried, &address) in addresses.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        // An address that swallows packets must not use up the time of the others.
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match tokio::time::timeout(share, connect_one(options, address, source_port)).await {
            Ok(Ok(stream)) => return Ok((stream, address)),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "connecting timed out"),
        }
    }
    Err(last)
}

async fn lookup(options: &ClientOptions, port: u16, end: Instant) -> io::Result<Vec<SocketAddr>> {
    let host = unbracketed(&options.host);
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "the name lookup timed out");
    let found = tokio::time::timeout_at(end, tokio::net::lookup_host((host, port)))
        .await
        .map_err(timed_out)??;
    let mut found: Vec<_> = found
        .filter(|address| options.source.is_none_or(|ip| ip.is_ipv4() == address.is_ipv4()))
        .collect();
    // Stable: within a family the resolver's order stays.
    found.sort_by_key(|address| address.is_ipv6() != options.ipv6);
    Ok(found)
}

async fn connect_one(
    options: &ClientOptions,
    address: SocketAddr,
    source_port: u16,
) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    let any = || if address.is_ipv4() { [0; 4].into() } else { IpAddr::from([0_u16; 8]) };
    if options.source.is_some() || source_port != 0 {
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(options.source.unwrap_or_else(any), source_port))?;
    }
    let stream = socket.connect(address).await?;
    tune(&stream, &options.keepalive)?;
    Ok(stream)
}

/// The waits between attempts to connect.
#[derive(Debug)]
pub(crate) struct Backoff {
    attempt: u32,
    random: Random,
}

impl Backoff {
    pub(crate) fn new(random: Random) -> Self {
        Self { attempt: 0, random }
    }

    /// A connection has ended after `lived`.
    pub(crate) fn lived(&mut self, lived: Duration) {
        if lived >= GOOD {
            self.attempt = 0;
        }
    }

    /// Returns how long to wait now.
    ///
    /// differs: Salt draws one interval per process from `recon_default ..= recon_default + recon_max` and keeps it.
    /// Here every wait is drawn from nothing up to a bound that doubles from `recon_default` to `recon_max`: after a
    /// short interruption a fleet is back within the first second, after a long one it is spread just as wide.
    pub(crate) fn wait(&mut self, reconnect: &Reconnect) -> Duration {
        let bound = reconnect
            .first
            .saturating_mul(1 << self.attempt.min(20))
            .min(reconnect.max.max(reconnect.first))
            .max(SHORTEST);
        self.attempt = self.attempt.saturating_add(1);
        if reconnect.randomize { self.random.between(SHORTEST, bound) } else { bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_bound_and_start_again_after_a_good_connection() {
        let ms = Duration::from_millis;
        let fixed = Reconnect { first: ms(100), max: ms(350), randomize: false };
        let mut backoff = Backoff::new(Random::new(1));
        let waits: Vec<_> = (0..4).map(|_| backoff.wait(&fixed)).collect();
        assert_eq!(waits, [ms(100), ms(200), ms(350), ms(350)]);
        backoff.lived(ms(10));
        assert_eq!(
            backoff.wait(&fixed),
            ms(350),
            "a connection that breaks at once was no success"
        );
        backoff.lived(ms(2000));
        assert_eq!(backoff.wait(&fixed), ms(100));
        let random = Reconnect { randomize: true, ..fixed };
        assert!((0..100).all(|_| (SHORTEST..=ms(350)).contains(&backoff.wait(&random))));
    }
}
