//! What a listener and a client can be told: the transport's share of Salt's options, already parsed.
//!
//! Defaults are Salt's, where Salt has the option; the limits are ours. The names of Salt's options stand beside the
//! fields, the mapping itself is done by whoever reads the configuration.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Which wire to speak (`transport`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    #[default]
    ZeroMq,
    Tcp,
    Ws,
}

impl Kind {
    /// Returns the kind for Salt's word for it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "zeromq" => Some(Self::ZeroMq),
            "tcp" => Some(Self::Tcp),
            "ws" => Some(Self::Ws),
            _ => None,
        }
    }

    /// Returns Salt's word for this kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::ZeroMq => "zeromq",
            Self::Tcp => "tcp",
            Self::Ws => "ws",
        }
    }
}

/// What a master listens on.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// `interface`: an address or a name; brackets around IPv6 are accepted.
    pub interface: String,
    /// `ret_port`; 0 picks a free one.
    pub ret_port: u16,
    /// `publish_port`; 0 picks a free one.
    pub publish_port: u16,
    /// `ipv6`: with `interface: 0.0.0.0` listen on `[::]`, for both families.
    pub ipv6: bool,
    /// `zmq_backlog` (Salt: 1000). The kernel caps it at `net.core.somaxconn`.
    pub backlog: u32,
    pub keepalive: Keepalive,
    /// `zmq_heartbeat_ivl`, `zmq_heartbeat_timeout`.
    pub heartbeat: Heartbeat,
    /// `pub_hwm`: publications waiting for one slow connection before further ones are dropped.
    pub pub_hwm: usize,
    pub limits: Limits,
    /// `ssl`, for tcp and ws.
    pub ssl: Option<Ssl>,
    /// Offer the Halite extension to peers that know it.
    pub extension: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            interface: "0.0.0.0".into(),
            ret_port: 4506,
            publish_port: 4505,
            ipv6: false,
            backlog: 4096,
            keepalive: Keepalive::default(),
            heartbeat: Heartbeat::default(),
            pub_hwm: 1000,
            limits: Limits::default(),
            ssl: None,
            extension: true,
        }
    }
}

/// How a minion or a command line tool reaches its master.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// A name or an address; looked up anew at every connect. Brackets around IPv6 are accepted.
    pub host: String,
    /// `master_port`.
    pub port: u16,
    /// `ipv6`: prefer IPv6 addresses of a name. Both families are tried in any case.
    pub ipv6: bool,
    /// `source_address`, or the address of `source_interface_name`.
    pub source: Option<IpAddr>,
    /// `source_ret_port`; 0 lets the kernel choose.
    pub source_ret_port: u16,
    /// `source_publish_port`; 0 lets the kernel choose.
    pub source_publish_port: u16,
    pub keepalive: Keepalive,
    pub heartbeat: Heartbeat,
    /// For the connection that carries publications (`recon_default`, `recon_max`, `recon_randomize`).
    pub reconnect: Reconnect,
    /// For the request connection.
    pub request_reconnect: Reconnect,
    /// How long one attempt to connect (lookup, TCP, TLS, handshake) may take.
    pub connect_timeout: Duration,
    pub limits: Limits,
    /// `ssl`, for tcp and ws.
    pub ssl: Option<Ssl>,
    /// Ask for the Halite extension.
    pub extension: bool,
}

impl ClientOptions {
    /// Returns Salt's defaults for a master at `host`, whose request port is `port`.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            ipv6: false,
            source: None,
            source_ret_port: 0,
            source_publish_port: 0,
            keepalive: Keepalive::default(),
            heartbeat: Heartbeat::default(),
            reconnect: Reconnect::default(),
            request_reconnect: Reconnect {
                first: Duration::from_millis(100),
                max: Duration::from_secs(5),
                randomize: true,
            },
            connect_timeout: Duration::from_secs(10),
            limits: Limits::default(),
            ssl: None,
            extension: true,
        }
    }
}

/// TCP keepalive (`tcp_keepalive*`); `None` leaves the kernel's value, Salt's -1.
#[derive(Debug, Clone, Copy)]
pub struct Keepalive {
    pub enabled: bool,
    pub idle: Option<Duration>,
    pub interval: Option<Duration>,
    pub count: Option<u32>,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { enabled: true, idle: Some(Duration::from_secs(300)), interval: None, count: None }
    }
}

/// How a dead link is noticed.
///
/// A PING goes out when nothing was heard for `interval`; a link on which nothing was heard for `timeout` is dead. An
/// `interval` of zero switches both off.
#[derive(Debug, Clone, Copy)]
pub struct Heartbeat {
    pub interval: Duration,
    pub timeout: Duration,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { interval: Duration::from_secs(10), timeout: Duration::from_secs(30) }
    }
}

/// How long to wait before connecting again: doubling from `first` to `max`.
#[derive(Debug, Clone, Copy)]
pub struct Reconnect {
    /// `recon_default`.
    pub first: Duration,
    /// `recon_max`.
    pub max: Duration,
    /// `recon_randomize`: the first wait is drawn from `first ..= first + max`, so that a fleet does not come back in
    /// one instant; later waits vary by half.
    pub randomize: bool,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), max: Duration::from_secs(10), randomize: true }
    }
}

/// What a stranger may cost us.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest message, in bytes. File pushes ride in one request.
    pub message: usize,
    /// How long a new connection may take until it can talk.
    pub handshake: Duration,
    /// Connections of one server; further ones are closed at once, and counted. The operating system's limit on
    /// descriptors is met earlier, and politely: connections then wait to be accepted.
    pub connections: usize,
    /// Connections that have not finished their handshake; the oldest gives way to the newest.
    pub handshakes: usize,
    /// Bytes of unfinished incoming messages, over all connections of a listener.
    pub inbound: usize,
    /// Bytes waiting to be sent to one connection; a peer that reads nothing is cut off here.
    pub outbound: usize,
    /// Requests of one connection worked on at the same time, where its protocol allows more than one.
    pub in_flight: usize,
    /// Requests of one connection waiting behind these; further ones are dropped and counted.
    pub waiting: usize,
    /// Subscriptions of one ZeroMQ subscriber.
    pub subscriptions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 100 << 20,
            handshake: Duration::from_secs(30),
            connections: 1_000_000,
            handshakes: 4096,
            inbound: 1 << 30,
            outbound: 128 << 20,
            in_flight: 64,
            waiting: 1024,
            subscriptions: 1024,
        }
    }
}

/// TLS for tcp and ws (`ssl`).
#[derive(Debug, Clone, Default)]
pub struct Ssl {
    pub certfile: Option<PathBuf>,
    pub keyfile: Option<PathBuf>,
    /// `ca_certs` and `verify_locations`: files of PEM certificates, or folders of such files (`capath`). With none the
    /// system's certificates are used, as Salt does.
    pub ca_certs: Vec<PathBuf>,
    /// `cadata` of `verify_locations`: PEM text.
    pub ca_data: Vec<String>,
    /// `verify_flags` with a `VERIFY_CRL_CHECK_…`: revocation lists are read from the same files.
    pub crl_check: Option<CrlCheck>,
    /// `None`: a server demands a certificate, a client checks the server's.
    pub cert_reqs: Option<CertReqs>,
    /// `ssl_version`, for instance `PROTOCOL_TLSv1_2`: fixes the version; anything else means "1.2 or 1.3".
    pub ssl_version: Option<String>,
    /// The name a client expects in the server's certificate, when it is not the host it connects to.
    pub server_name: Option<String>,
}

/// Which certificates are looked up in the revocation lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrlCheck {
    Leaf,
    Chain,
}

/// `cert_reqs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertReqs {
    None,
    Optional,
    Required,
}

impl CertReqs {
    /// Reads the option: a name of Python's `ssl` module, or the number behind it, which is what the configuration's
    /// loader makes of the name.
    pub fn from_option(text: &str) -> Option<Self> {
        match text {
            "CERT_NONE" | "0" => Some(Self::None),
            "CERT_OPTIONAL" | "1" => Some(Self::Optional),
            "CERT_REQUIRED" | "2" => Some(Self::Required),
            _ => None,
        }
    }
}
