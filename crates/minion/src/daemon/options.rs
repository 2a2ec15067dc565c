//! The daemon's share of the configuration, read once and typed.
//!
//! Options keep whatever a file gave them (a wrong type is only a warning), so every reader here
//! has a value to fall back to: Salt's preset.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use halite_config::parse_host_port;
use halite_crypt::{EncAlgo, Hash, SigAlgo};
use halite_transport::{
    CertReqs, ClientOptions, Heartbeat, Keepalive, Kind, Reconnect, Ssl, ipc::Address,
};
use halite_value::{Dict, SmolStr, Value};

/// Reads options with a preset for each.
#[derive(Clone)]
pub(crate) struct Reader(pub(crate) Dict);

impl Reader {
    pub(crate) fn flag(&self, name: &str, preset: bool) -> bool {
        self.0.get(name).filter(|value| !value.is_null()).map_or(preset, |value| value.truthy())
    }

    pub(crate) fn text(&self, name: &str) -> Option<SmolStr> {
        match self.0.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(value) => Some(value.to_str()).filter(|text| !text.is_empty()),
        }
    }

    pub(crate) fn number(&self, name: &str, preset: f64) -> f64 {
        match self.0.get(name) {
            Some(Value::Str(text)) => text.trim().parse().unwrap_or(preset),
            Some(value) => value.as_float().unwrap_or(preset),
            None => preset,
        }
    }

    pub(crate) fn int(&self, name: &str, preset: i64) -> i64 {
        self.number(name, preset as f64) as i64
    }

    pub(crate) fn count(&self, name: &str, preset: usize) -> usize {
        usize::try_from(self.int(name, preset as i64)).unwrap_or(preset)
    }

    fn port(&self, name: &str, preset: u16) -> u16 {
        u16::try_from(self.int(name, preset.into())).unwrap_or(preset)
    }

    pub(crate) fn seconds(&self, name: &str, preset: f64) -> Duration {
        Duration::try_from_secs_f64(self.number(name, preset)).unwrap_or_default()
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<SmolStr> {
        match self.0.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(value) => value
                .items_of_sequence()
                .unwrap_or_else(|| vec![value])
                .iter()
                .map(Value::to_str)
                .filter(|text| !text.is_empty())
                .collect(),
        }
    }

    pub(crate) fn path(&self, name: &str, preset: &str) -> PathBuf {
        self.text(name).map_or_else(|| preset.into(), |text| PathBuf::from(text.as_str()))
    }
}

/// How several masters are used (`master_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterType {
    /// One, or all of a list at once.
    Hot,
    /// One of the list at a time.
    Failover,
    /// One of the list, chosen by the minion's id.
    Distributed,
    /// None at all.
    Disable,
}

/// What the daemon needs to know, typed.
#[derive(Clone)]
pub struct Settings {
    pub id: SmolStr,
    pub masters: Vec<MasterAddress>,
    pub master_type: MasterType,
    pub random_master: bool,
    pub master_tries: i64,
    pub failback: Option<Duration>,
    pub alive_interval: Duration,
    pub pki_dir: PathBuf,
    pub cachedir: PathBuf,
    pub sock_dir: PathBuf,
    pub enc_algo: EncAlgo,
    pub sig_algo: SigAlgo,
    pub hash_type: Hash,
    pub keysize: u32,
    pub key_pass: Option<SmolStr>,
    pub open_mode: bool,
    pub master_finger: Option<SmolStr>,
    pub verify_master_pubkey_sign: bool,
    pub always_verify_signature: bool,
    pub master_sign_key_name: SmolStr,
    pub autosign_grains: Vec<SmolStr>,
    pub sign_messages: bool,
    pub sign_pub_messages: bool,
    pub rejected_retry: bool,
    pub acceptance_wait: Duration,
    pub acceptance_wait_max: Duration,
    pub auth_timeout: Duration,
    pub auth_tries: u32,
    pub auth_retries: u32,
    pub request_timeout: Duration,
    pub request_tries: u32,
    pub return_retry: Duration,
    /// How often a master's name is looked up before the minion gives up; `None`: for ever.
    pub dns_tries: Option<u32>,
    pub dns_pause: Duration,
    pub return_retry_max: Duration,
    pub process_count_max: Option<usize>,
    pub jid_queue: usize,
    pub ping_interval: Option<Duration>,
    pub startup_delay: Duration,
    pub reauth_delay: Duration,
    /// The minion's own jobs and beacons do not wait for a master.
    pub fresh_grains: bool,
    pub legacy_start_events: bool,
    pub start_event_grains: Vec<SmolStr>,
    pub pub_ret: bool,
    pub cache_jobs: bool,
    pub kind: Kind,
    pub zmq_filtering: bool,
    /// The file with the master's key: a syndic has one of its own.
    pub pinned: &'static str,
    publish_port: Option<u16>,
    client: ClientOptions,
    ipc: Ipc,
}

/// One master of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterAddress {
    /// As written, for messages and for `grains.master`.
    pub name: SmolStr,
    pub host: String,
    pub port: u16,
}

#[derive(Clone)]
struct Ipc {
    tcp: Option<(u16, u16)>,
}

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error(transparent)]
    Algorithm(#[from] halite_crypt::Error),
    #[error("{0}")]
    Master(String),
    #[error("Invalid keyword '{0}' for variable 'master_type'")]
    MasterType(SmolStr),
    #[error("the transport `{0}` is not known: choose zeromq, tcp or ws")]
    Transport(SmolStr),
    #[error("the minion has no id")]
    NoId,
}

impl Settings {
    pub fn read(opts: &Dict) -> Result<Self, Problem> {
        let reader = Reader(opts.clone());
        let cachedir = reader.path("cachedir", "/var/cache/salt/minion");
        let transport = reader.text("transport").unwrap_or_else(|| "zeromq".into());
        let kind = match transport.as_str() {
            // The three differ in framing only, and `detect` would find the first of them first.
            "detect" => Kind::ZeroMq,
            name => Kind::from_name(name).ok_or_else(|| Problem::Transport(transport.clone()))?,
        };
        let master_type = match reader.text("master_type").as_deref() {
            None | Some("str" | "func" | "standard") => MasterType::Hot,
            Some("failover") => MasterType::Failover,
            Some("distributed") => MasterType::Distributed,
            Some("disable") => MasterType::Disable,
            Some(other) => return Err(Problem::MasterType(other.into())),
        };
        let port = reader.port("master_port", 4506);
        let masters = reader
            .texts("master")
            .into_iter()
            .map(|name| MasterAddress::parse(&name, port))
            .collect::<Result<_, _>>()?;
        let process_count_max = usize::try_from(reader.int("process_count_max", -1)).ok();
        let failback = reader
            .flag("master_failback", false)
            .then(|| reader.seconds("master_failback_interval", 30.0))
            .map(|every| if every.is_zero() { Duration::from_secs(30) } else { every });
        let ping = reader.number("ping_interval", 0.0);
        let is_syndic = reader.text("__role").as_deref() == Some("syndic");
        Ok(Self {
            id: reader.text("id").ok_or(Problem::NoId)?,
            masters,
            master_type,
            random_master: reader.flag("random_master", false)
                || reader.flag("master_shuffle", false),
            master_tries: reader.int("master_tries", -1),
            failback,
            alive_interval: reader.seconds("master_alive_interval", 0.0),
            pki_dir: reader.path("pki_dir", "/etc/salt/pki/minion"),
            sock_dir: sock_dir(&reader, &cachedir),
            cachedir,
            enc_algo: named(&reader, "encryption_algorithm")?,
            sig_algo: named(&reader, "signing_algorithm")?,
            hash_type: named(&reader, "hash_type")?,
            keysize: u32::try_from(reader.int("keysize", 2048)).unwrap_or(2048),
            key_pass: reader.text("key_pass"),
            open_mode: reader.flag("open_mode", false),
            master_finger: reader.text("master_finger"),
            verify_master_pubkey_sign: reader.flag("verify_master_pubkey_sign", false),
            always_verify_signature: reader.flag("always_verify_signature", false),
            master_sign_key_name: reader
                .text("master_sign_key_name")
                .unwrap_or_else(|| "master_sign".into()),
            autosign_grains: reader.texts("autosign_grains"),
            sign_messages: reader.flag("minion_sign_messages", false),
            sign_pub_messages: reader.flag("sign_pub_messages", false),
            rejected_retry: reader.flag("rejected_retry", false),
            acceptance_wait: reader.seconds("acceptance_wait_time", 10.0),
            acceptance_wait_max: reader.seconds("acceptance_wait_time_max", 0.0),
            auth_timeout: at_least_a_second(reader.seconds("auth_timeout", 5.0)),
            auth_tries: u32::try_from(reader.int("auth_tries", 7)).unwrap_or(7).max(1),
            auth_retries: u32::try_from(reader.int("auth_retries", 0)).unwrap_or(0),
            request_timeout: at_least_a_second(reader.seconds("request_channel_timeout", 60.0)),
            request_tries: u32::try_from(reader.int("request_channel_tries", 3))
                .unwrap_or(3)
                .max(1),
            return_retry: reader.seconds("return_retry_timer", 5.0),
            dns_tries: opts
                .get("retry_dns_count")
                .and_then(|count| count.to_int())
                .and_then(|count| u32::try_from(count).ok()),
            dns_pause: reader.seconds("retry_dns", 30.0),
            return_retry_max: reader.seconds("return_retry_timer_max", 10.0),
            process_count_max: process_count_max.filter(|max| *max > 0),
            jid_queue: reader.count("minion_jid_queue_hwm", 100).max(1),
            ping_interval: (ping > 0.0)
                .then(|| Duration::try_from_secs_f64(ping * 60.0).ok())
                .flatten(),
            startup_delay: reader.seconds("random_startup_delay", 0.0),
            reauth_delay: reader.seconds("random_reauth_delay", 10.0),
            fresh_grains: reader.flag("grains_refresh_pre_exec", false),
            legacy_start_events: reader.flag("enable_legacy_startup_events", true),
            start_event_grains: reader.texts("start_event_grains"),
            pub_ret: reader.flag("pub_ret", true),
            cache_jobs: reader.flag("cache_jobs", false),
            kind,
            zmq_filtering: reader.flag("zmq_filtering", false),
            pinned: match is_syndic {
                true => halite_crypt::pki::SYNDIC_MASTER_PUB,
                false => halite_crypt::pki::MINION_MASTER_PUB,
            },
            // 4506 is what a configuration without the option ends up with; it means "as announced".
            // differs: a syndic of Salt needs the port in its minion's configuration.
            publish_port: Some(reader.port("publish_port", 0))
                .filter(|port| !(matches!(port, 0 | 4506) || is_syndic && *port == 4505)),
            client: client(&reader, kind),
            ipc: Ipc {
                tcp: (reader.text("ipc_mode").as_deref() == Some("tcp")).then(|| {
                    (reader.port("tcp_pub_port", 4510), reader.port("tcp_pull_port", 4511))
                }),
            },
        })
    }

    /// Returns how to reach one master.
    pub fn client(&self, master: &MasterAddress) -> ClientOptions {
        ClientOptions { host: master.host.clone(), port: master.port, ..self.client.clone() }
    }

    /// Returns the port publications come from.
    pub fn publish_port(&self, announced: u16) -> u16 {
        self.publish_port.unwrap_or(announced)
    }

    /// Returns the two addresses of the local event bus: to listeners, from programs.
    pub fn bus(&self) -> (Address, Address) {
        if let Some((publisher, puller)) = self.ipc.tcp {
            let local = |port| Address::Tcp((IpAddr::from([127, 0, 0, 1]), port).into());
            return (local(publisher), local(puller));
        }
        let digits = self.hash_type.hex(self.id.as_bytes());
        let name = digits.get(..10).unwrap_or(&digits);
        let socket = |side: &str| {
            Address::Unix(self.sock_dir.join(format!("minion_event_{name}_{side}.ipc")))
        };
        (socket("pub"), socket("pull"))
    }
}

impl MasterAddress {
    pub fn parse(name: &str, port: u16) -> Result<Self, Problem> {
        let (host, own) = parse_host_port(name).map_err(Problem::Master)?;
        Ok(Self { name: name.into(), host, port: own.unwrap_or(port) })
    }

    /// As Salt writes it: `tcp://10.1.2.3:4506`.
    pub fn uri(&self) -> String {
        if self.host.contains(':') {
            format!("tcp://[{}]:{}", self.host, self.port)
        } else {
            format!("tcp://{}:{}", self.host, self.port)
        }
    }
}

fn at_least_a_second(time: Duration) -> Duration {
    time.max(Duration::from_secs(1))
}

fn named<T>(reader: &Reader, option: &str) -> Result<T, halite_crypt::Error>
where
    T: std::str::FromStr<Err = halite_crypt::Error> + Default,
{
    reader.text(option).map_or_else(|| Ok(T::default()), |name| name.parse())
}

/// Salt moves the sockets when their folder's name is much longer than the cache's.
fn sock_dir(reader: &Reader, cachedir: &Path) -> PathBuf {
    let configured = reader.path("sock_dir", "/var/run/salt/minion");
    if configured.as_os_str().len() > cachedir.as_os_str().len() + 10 {
        cachedir.join(".salt-unix")
    } else {
        configured
    }
}

fn client(reader: &Reader, kind: Kind) -> ClientOptions {
    let some = |value: f64| (value >= 0.0).then(|| Duration::from_secs_f64(value));
    let mut client = ClientOptions::new("", 0);
    client.ipv6 = reader.flag("ipv6", false);
    client.source = match reader.text("source_address") {
        Some(text) => text.parse().ok(),
        None => {
            reader.text("source_interface_name").and_then(|name| address_of(&name, client.ipv6))
        }
    };
    client.source_ret_port = reader.port("source_ret_port", 0);
    client.source_publish_port = reader.port("source_publish_port", 0);
    client.keepalive = Keepalive {
        enabled: reader.flag("tcp_keepalive", true),
        idle: some(reader.number("tcp_keepalive_idle", 300.0)),
        interval: some(reader.number("tcp_keepalive_intvl", -1.0)),
        count: u32::try_from(reader.int("tcp_keepalive_cnt", -1)).ok(),
    };
    let millis = |name: &str, preset: f64| {
        Duration::try_from_secs_f64(reader.number(name, preset) / 1000.0).unwrap_or_default()
    };
    client.heartbeat = Heartbeat {
        interval: millis("zmq_heartbeat_ivl", 10_000.0),
        timeout: millis("zmq_heartbeat_timeout", 30_000.0),
    };
    client.reconnect = if kind == Kind::Tcp {
        let pause = reader.seconds("tcp_reconnect_backoff", 1.0);
        Reconnect { first: pause, max: pause.max(Duration::from_secs(10)), randomize: true }
    } else {
        Reconnect {
            first: millis("recon_default", 1000.0),
            max: millis("recon_max", 10_000.0),
            randomize: reader.flag("recon_randomize", true),
        }
    };
    client.ssl = ssl(reader);
    client.extension = own_flag(reader, "extension", true);
    client
}

/// Returns the first address of an interface of this machine.
fn address_of(interface: &str, ipv6: bool) -> Option<IpAddr> {
    let all = nix::ifaddrs::getifaddrs().ok()?;
    let own = all.filter(|one| one.interface_name == interface).filter_map(|one| one.address);
    let found = own.into_iter().find_map(|address| match ipv6 {
        true => address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())),
        false => address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip())),
    });
    if found.is_none() {
        tracing::error!("The interface {interface} (source_interface_name) has no address to use");
    }
    found
}

/// Reads a switch below `halite:`.
fn own_flag(reader: &Reader, name: &str, preset: bool) -> bool {
    let own = reader.0.get("halite").and_then(|own| own.get(name));
    own.filter(|value| !value.is_null()).map_or(preset, |value| value.truthy())
}

fn ssl(reader: &Reader) -> Option<Ssl> {
    let given = match reader.0.get("ssl") {
        Some(Value::Dict(given)) => Reader(given),
        Some(other) if other.truthy() => Reader(Dict::new()),
        _ => return None,
    };
    let mut ca_certs: Vec<PathBuf> =
        given.texts("ca_certs").iter().map(|file| file.as_str().into()).collect();
    let mut ca_data = Vec::new();
    let places = given.0.get("verify_locations").and_then(|value| value.items_of_sequence());
    for place in places.unwrap_or_default() {
        match &place {
            Value::Dict(place) => {
                let place = Reader(place.clone());
                ca_certs.extend(place.text("cafile").map(|file| PathBuf::from(file.as_str())));
                ca_certs.extend(place.text("capath").map(|dir| PathBuf::from(dir.as_str())));
                ca_data.extend(place.text("cadata").map(String::from));
            }
            file => ca_certs.push(file.to_str().as_str().into()),
        }
    }
    Some(Ssl {
        certfile: given.text("certfile").map(|file| file.as_str().into()),
        keyfile: given.text("keyfile").map(|file| file.as_str().into()),
        ca_certs,
        ca_data,
        cert_reqs: given.text("cert_reqs").and_then(|text| CertReqs::from_option(&text)),
        ssl_version: given.text("ssl_version").map(String::from),
        ..Ssl::default()
    })
}

#[cfg(test)]
mod tests {
    use halite_value::{entries, list};

    use super::*;

    #[test]
    fn masters_and_ports() {
        let opts = entries! {
            "id" => "m", "master" => list!["a", "b:1234", "::1"], "master_port" => "4606",
            "publish_port" => 4506, "cachedir" => "/var/cache/salt/minion",
        };
        let settings = Settings::read(&opts).unwrap();
        let ports: Vec<u16> = settings.masters.iter().map(|master| master.port).collect();
        assert_eq!(ports, [4606, 1234, 4606]);
        assert_eq!(settings.masters[2].uri(), "tcp://[::1]:4606");
        assert_eq!(settings.publish_port(4505), 4505);
        opts.insert("publish_port", 5000);
        assert_eq!(Settings::read(&opts).unwrap().publish_port(4505), 5000);
    }

    #[test]
    fn the_bus_is_named_after_the_id() {
        let opts = entries! { "id" => "m1", "sock_dir" => "/run/s", "master" => "x" };
        let (publisher, _) = Settings::read(&opts).unwrap().bus();
        let name = Hash::Sha256.hex(b"m1");
        let expected = format!("/run/s/minion_event_{}_pub.ipc", &name[..10]);
        assert_eq!(publisher, Address::Unix(expected.into()));
    }

    #[test]
    fn wrong_words_are_told() {
        for (option, value) in
            [("transport", "carrier pigeon"), ("master_type", "x"), ("encryption_algorithm", "y")]
        {
            let opts = entries! { "id" => "m", "master" => "x", option => value };
            assert!(Settings::read(&opts).is_err(), "{option}");
        }
    }
}
