//! Fetching from other servers: what the file client asks, whoever answers.
//!
//! [`Fetcher`] keeps the HTTP client out of everything else: tests hand in their own, a program
//! that never downloads need not make one. [`Net`] is the real one: HTTP by [`crate::http`], FTP by
//! [`crate::ftp`].

use std::{io::Read, path::PathBuf, time::Duration};

use halite_value::{Dict, Value};

use crate::{ftp, http, url::Url};

/// What to fetch, and how.
#[derive(Clone, Debug)]
pub struct Request {
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub verify_ssl: bool,
    pub settings: Settings,
}

/// What the configuration says about downloads.
#[derive(Clone, Debug)]
pub struct Settings {
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    /// `proxy_host`, `proxy_port`, and user with password.
    pub proxy: Option<Proxy>,
    pub no_proxy: Vec<String>,
    pub ca_bundle: Option<PathBuf>,
    pub max_body: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    pub host: String,
    pub port: u16,
    pub credentials: Option<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(20),
            request_timeout: Duration::from_secs(3600),
            proxy: None,
            no_proxy: Vec::new(),
            ca_bundle: None,
            max_body: 100 << 30,
        }
    }
}

impl Settings {
    pub fn from_opts(opts: &Dict) -> Self {
        let default = Self::default();
        let seconds = |name: &str, default| {
            let given = opts.get(name).and_then(|value| value.as_float());
            given.and_then(|given| Duration::try_from_secs_f64(given).ok()).unwrap_or(default)
        };
        let text = |name: &str| {
            let value = opts.get(name).filter(Value::truthy);
            value.map(|value| value.to_str().to_string())
        };
        let port = opts.get("proxy_port").and_then(|port| port.to_str().parse().ok());
        let proxy = text("proxy_host").zip(port.filter(|port| *port != 0));
        let items = opts.get("no_proxy").and_then(|list| list.items_of_sequence());
        Self {
            connect_timeout: seconds("http_connect_timeout", default.connect_timeout),
            request_timeout: seconds("http_request_timeout", default.request_timeout),
            proxy: proxy.map(|(host, port)| Proxy {
                host,
                port,
                credentials: text("proxy_username").zip(text("proxy_password")),
            }),
            no_proxy: items
                .unwrap_or_default()
                .iter()
                .map(|host| host.to_str().to_string())
                .collect(),
            ca_bundle: text("ca_bundle").map(PathBuf::from),
            max_body: opts
                .get("http_max_body")
                .and_then(|max| max.to_int())
                .and_then(|max| u64::try_from(max).ok())
                .unwrap_or(default.max_body),
        }
    }

    /// Returns the proxy for a host, if one is to be used.
    pub fn proxy_for(&self, host: &str) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| !self.no_proxy.iter().any(|own| own == host))
    }
}

/// The answer: its head now, its body as it comes.
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Box<dyn Read + Send>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// Why nothing came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// «HTTP 404: Not Found»
    #[error("HTTP {status}: {reason}")]
    Status { status: u16, reason: String },
    /// «[Errno 111] Connection refused»
    #[error("{0}")]
    Failed(String),
}

impl FetchError {
    /// Words an I/O error as Python does.
    pub fn of_io(error: &std::io::Error) -> Self {
        let text = error.to_string();
        let words = text.split(" (os error").next().unwrap_or(&text);
        Self::Failed(match error.raw_os_error() {
            Some(code) => format!("[Errno {code}] {words}"),
            None => words.to_owned(),
        })
    }
}

/// Fetches.
pub trait Fetcher: Send + Sync {
    fn fetch(&self, request: &Request) -> Result<Response, FetchError>;
}

/// The real network.
#[derive(Debug, Default)]
pub struct Net;

impl Fetcher for Net {
    fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        match request.url.scheme.as_str() {
            "http" | "https" => http::fetch(request),
            "ftp" => ftp::fetch(request),
            other => Err(FetchError::Failed(format!("{other}:// sources are not supported"))),
        }
    }
}
