//! The options the master acts on, read once and checked.
//!
//! Everything here is plain data; paths are absolute. What only one handler needs stays in the
//! options themselves ([`Settings::opts`]).

use std::{path::PathBuf, time::Duration};

use halite_config::Opts;
use halite_crypt::{EncAlgo, Hash, SigAlgo};
use halite_transport::{
    CertReqs, Heartbeat, Keepalive, Kind, Limits, ServerOptions, Ssl, ipc::Address,
};
use halite_value::{Place, SmolStr, Value};

use crate::Error;

/// What a master runs with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub opts: Opts,
    pub id: SmolStr,
    pub user: SmolStr,
    pub pki_dir: PathBuf,
    pub cachedir: PathBuf,
    pub sock_dir: PathBuf,
    pub pidfile: Option<PathBuf>,
    pub transport: Kind,
    pub server: ServerOptions,
    pub hash_type: Hash,
    pub publish_signing: SigAlgo,
    pub master_signing: SigAlgo,
    pub minimum_auth_version: i64,
    pub publish_session: Duration,
    pub request_ttl: Option<Duration>,
    pub max_minions: usize,
    pub loop_interval: Duration,
    pub keep_jobs: Duration,
    pub max_event_size: usize,
    pub order_masters: bool,
    pub zmq_filtering: bool,
}

impl Settings {
    pub fn from_opts(opts: &Opts) -> Result<Self, Error> {
        let transport = opts.opt_str("transport").unwrap_or_else(|| "zeromq".into());
        let transport = Kind::from_name(&transport).ok_or_else(|| {
            Error::Config(format!("transport: `{transport}` is not one of zeromq, tcp, ws"))
        })?;
        let seconds =
            |name: &str, least: f64| Duration::from_secs_f64(opts.float(name).clamp(least, 1e9));
        let algo = |name: &str| match opts.opt_str(name) {
            None => Ok(SigAlgo::default()),
            Some(text) => text
                .parse()
                .map_err(|_| Error::Config(format!("{name}: `{text}` is not a signing algorithm"))),
        };
        let folder = |name: &str| PathBuf::from(opts.str(name).as_str());
        let cachedir = folder("cachedir");
        let sock_dir = folder("sock_dir");
        let id = opts.opt_str("id").unwrap_or_else(|| "master".into());
        let keep_hours = opts.opt_int("keep_jobs").unwrap_or(24);
        let keep = opts.opt_int("keep_jobs_seconds").unwrap_or(keep_hours * 3600);
        Ok(Self {
            user: opts.opt_str("user").unwrap_or_else(|| "root".into()),
            pki_dir: folder("pki_dir"),
            pidfile: opts.opt_str("pidfile").map(|path| PathBuf::from(path.as_str())),
            transport,
            server: server_options(opts)?,
            hash_type: opts.str("hash_type").parse().unwrap_or_default(),
            publish_signing: algo("publish_signing_algorithm")?,
            master_signing: algo("signing_algorithm")?,
            minimum_auth_version: opts.opt_int("minimum_auth_version").unwrap_or(3),
            publish_session: seconds("publish_session", 1.0),
            request_ttl: Some(seconds("request_server_ttl", 0.0)).filter(|ttl| !ttl.is_zero()),
            max_minions: usize::try_from(opts.int("max_minions")).unwrap_or(0),
            loop_interval: seconds("loop_interval", 0.1),
            keep_jobs: Duration::from_secs(u64::try_from(keep).unwrap_or(0)),
            max_event_size: usize::try_from(opts.int("max_event_size"))
                .ok()
                .filter(|size| *size > 0)
                .unwrap_or(1 << 20),
            order_masters: opts.bool("order_masters"),
            zmq_filtering: opts.bool("zmq_filtering"),
            opts: opts.clone(),
            id,
            cachedir,
            sock_dir,
        })
    }

    /// Returns where a socket of Salt's local IPC is: a file, or a loopback port.
    pub fn ipc(&self, file: &str, port: &str) -> Address {
        if self.opts.str("ipc_mode") == "tcp" {
            let port = u16::try_from(self.opts.int(port)).unwrap_or(0);
            Address::Tcp(([127, 0, 0, 1], port).into())
        } else {
            Address::Unix(self.sock_dir.join(file))
        }
    }

    /// Returns an option under `halite:`.
    pub fn own(&self, name: &str) -> Option<Value> {
        self.opts.dict("halite").get(name)
    }
}

/// Returns a message with the place behind it, if that is known: `no number (master:3:7)`.
pub(crate) fn placed(message: &str, place: Option<&Place>) -> String {
    match place {
        Some(place) => format!("{message} ({place})"),
        None => message.to_owned(),
    }
}

fn server_options(opts: &Opts) -> Result<ServerOptions, Error> {
    let port = |name: &'static str| {
        u16::try_from(opts.int(name))
            .map_err(|_| Error::Config(format!("{name}: {} is not a port", opts.int(name))))
    };
    let millis = |name: &str, default: u64| {
        let given = opts.opt_int(name).and_then(|millis| u64::try_from(millis).ok());
        Duration::from_millis(given.unwrap_or(default))
    };
    // -1 leaves it to the kernel.
    let seconds = |name: &str| {
        let given = opts.float(name);
        (given > 0.0).then(|| Duration::from_secs_f64(given.min(1e6)))
    };
    let positive =
        |name: &str| opts.opt_int(name).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    Ok(ServerOptions {
        interface: opts.opt_str("interface").unwrap_or_else(|| "0.0.0.0".into()).to_string(),
        ret_port: port("ret_port")?,
        publish_port: port("publish_port")?,
        ipv6: opts.bool("ipv6"),
        backlog: positive("zmq_backlog").and_then(|n| u32::try_from(n).ok()).unwrap_or(1000),
        keepalive: Keepalive {
            enabled: opts.get("tcp_keepalive").is_none_or(|on| on.truthy()),
            idle: seconds("tcp_keepalive_idle"),
            interval: seconds("tcp_keepalive_intvl"),
            count: u32::try_from(opts.int("tcp_keepalive_cnt")).ok().filter(|count| *count > 0),
        },
        heartbeat: Heartbeat {
            interval: millis("zmq_heartbeat_ivl", 10_000),
            timeout: millis("zmq_heartbeat_timeout", 30_000),
        },
        pub_hwm: positive("pub_hwm").unwrap_or(1000),
        limits: Limits::default(),
        ssl: ssl(opts.get("ssl"))?,
        extension: true,
    })
}

/// Reads Salt's `ssl` option.
pub fn ssl(option: Option<Value>) -> Result<Option<Ssl>, Error> {
    let map = match option {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(None),
        Some(Value::Bool(true)) => return Ok(Some(Ssl::default())),
        Some(Value::Dict(map)) => map,
        Some(_) => return Err(Error::Config("ssl: neither a bool nor a map".into())),
    };
    let text = |name: &str| map.get(name).filter(halite_value::Value::truthy).map(|v| v.to_str());
    let path = |name: &str| text(name).map(|path| PathBuf::from(path.as_str()));
    let mut ssl = Ssl {
        certfile: path("certfile"),
        keyfile: path("keyfile"),
        ca_certs: path("ca_certs").into_iter().collect(),
        ssl_version: text("ssl_version").map(|text| text.to_string()),
        ..Ssl::default()
    };
    for place in map.get("verify_locations").and_then(|v| v.items_of_sequence()).unwrap_or_default()
    {
        match &place {
            Value::Dict(place) => {
                for name in ["cafile", "capath"] {
                    if let Some(path) = place.get(name) {
                        ssl.ca_certs.push(PathBuf::from(path.to_str().as_str()));
                    }
                }
                if let Some(data) = place.get("cadata") {
                    ssl.ca_data.push(data.to_str().to_string());
                }
            }
            other => ssl.ca_certs.push(PathBuf::from(other.to_str().as_str())),
        }
    }
    ssl.cert_reqs =
        match map.get("cert_reqs").filter(|given| !given.is_null()) {
            None => None,
            Some(given) => {
                let text = given.to_str();
                let known = CertReqs::from_option(&text);
                Some(known.ok_or_else(|| {
                    Error::Config(format!("ssl: cert_reqs: `{text}` is not known"))
                })?)
            }
        };
    Ok(Some(ssl))
}

/// The algorithms a peer may name, with what silence means.
pub fn enc_algo(name: Option<&SmolStr>) -> Option<EncAlgo> {
    name.map_or(Some(EncAlgo::default()), |name| name.parse().ok())
}

/// As [`enc_algo`], for signatures.
pub fn sig_algo(name: Option<&SmolStr>) -> Option<SigAlgo> {
    name.map_or(Some(SigAlgo::default()), |name| name.parse().ok())
}
