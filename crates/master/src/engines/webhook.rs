//! `webhook`: HTTP in, events out.
//!
//! `POST /hook/build/done` (or `/build/done`, as Salt's engine has it) becomes the event
//! `salt/engines/hook/build/done` with `headers` and `body`; a body that is JSON is there as `data`
//! too. What Prometheus' Alertmanager posts to `/hook/alertmanager` becomes one event per alert as
//! well: `salt/engines/hook/alertmanager/<firing|resolved>/<alertname>`.
//!
//! Options: `address`, `port`, `ssl_crt`, `ssl_key` as Salt's; `token` (a word that must come as
//! `X-Auth-Token`, bearer or `?token=`), `hmac_secret` with `hmac_header` (`X-Hub-Signature-256`),
//! `max_size` of a body in bytes.

use std::sync::Arc;

use halite_transport::{CertReqs, Ssl};
use halite_value::{Dict, SmolStr, Value, entries, json};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Semaphore,
    task::JoinHandle,
};

use super::http::{self, Bad, Request};
use crate::{Master, settings::placed};

/// Where Salt's engine puts its events.
const PREFIX: &str = "salt/engines/hook";
/// Connections at a time.
const MOST_CONNECTIONS: usize = 256;

#[derive(Clone, Debug, Default)]
struct Options {
    address: String,
    token: Option<SmolStr>,
    hmac_secret: Option<SmolStr>,
    hmac_header: String,
    max_size: usize,
    ssl: Option<(String, String)>,
}

/// What can be set.
const SETTINGS: [&str; 8] =
    ["address", "port", "ssl_crt", "ssl_key", "token", "hmac_secret", "hmac_header", "max_size"];

impl Options {
    fn read(config: &Dict) -> Result<Self, String> {
        super::only(config, &SETTINGS)?;
        let text = |name: &str| config.get(name).filter(Value::truthy).map(|value| value.to_str());
        // Salt's default is every address, with nothing to keep strangers out.
        // differs: without a secret of any kind it listens on this machine only.
        let is_open = text("token").is_none() && text("hmac_secret").is_none();
        let usual = if is_open { "127.0.0.1" } else { "0.0.0.0" };
        let host = text("address").unwrap_or_else(|| usual.into());
        let port = super::whole(config, "port", 0, 65_535)?.unwrap_or(8000);
        let host = if host.contains(':') { format!("[{host}]").into() } else { host };
        let ssl = match (text("ssl_crt"), text("ssl_key")) {
            (Some(crt), Some(key)) => Some((crt.into(), key.into())),
            (None, None) => None,
            // Who wants TLS does not want secrets to cross the network in the clear.
            (crt, _) => {
                let (given, missing) = match crt {
                    Some(_) => ("ssl_crt", "ssl_key"),
                    None => ("ssl_key", "ssl_crt"),
                };
                let text = format!("`{given}` is given, but `{missing}` is not");
                return Err(placed(&text, config.place_of(given)));
            }
        };
        Ok(Self {
            address: format!("{host}:{port}"),
            token: text("token"),
            hmac_secret: text("hmac_secret"),
            hmac_header: text("hmac_header")
                .map_or_else(|| "X-Hub-Signature-256".into(), Into::into),
            max_size: super::whole(config, "max_size", 1, 1 << 32)?.unwrap_or(1 << 20),
            ssl,
        })
    }
}

pub(super) fn start(master: &Arc<Master>, config: &Dict) -> Result<JoinHandle<()>, String> {
    let options = Arc::new(Options::read(config)?);
    let master = master.clone();
    let tls = match &options.ssl {
        None => None,
        Some((crt, key)) => {
            let ssl = Ssl {
                certfile: Some(crt.into()),
                keyfile: Some(key.into()),
                cert_reqs: Some(CertReqs::None),
                ..Ssl::default()
            };
            let acceptor = halite_transport::tls_acceptor(&ssl);
            Some(acceptor.map_err(|error| placed(&error, config.place_of("ssl_crt")))?)
        }
    };
    Ok(tokio::spawn(async move {
        let listener = match TcpListener::bind(&options.address).await {
            Ok(listener) => listener,
            Err(error) => {
                return tracing::error!(
                    "The engine webhook cannot listen on {}: {error}",
                    options.address
                );
            }
        };
        tracing::info!("The webhook engine listens on {}", options.address);
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let (master, options, tls) = (master.clone(), options.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => serve(&master, &options, stream).await,
                    Some(tls) => {
                        let limit = std::time::Duration::from_secs(10);
                        if let Ok(Ok(stream)) =
                            tokio::time::timeout(limit, tls.accept(stream)).await
                        {
                            serve(&master, &options, stream).await;
                        }
                    }
                }
                drop(place);
            });
        }
    }))
}

async fn serve(
    master: &Arc<Master>,
    options: &Options,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) {
    let (status, body) = match http::read(&mut stream, options.max_size).await {
        Err(Bad::Gone) => return,
        Err(bad) => (bad.status(), r#"{"success": false}"#),
        Ok(request) => match accept(options, &request) {
            Err(status) => (status, r#"{"success": false}"#),
            Ok(()) => {
                for (tag, data) in events(&request) {
                    master.bus.fire(tag, data);
                }
                ("200 OK", r#"{"success": true}"#)
            }
        },
    };
    http::answer(&mut stream, status, body).await;
}

fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// Checks method and secrets.
fn accept(options: &Options, request: &Request) -> Result<(), &'static str> {
    if !matches!(request.method.as_str(), "POST" | "PUT") {
        return Err("405 Method Not Allowed");
    }
    if let Some(token) = &options.token {
        let bearer = request
            .header("authorization")
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, word)| word.trim().to_owned());
        let query = request
            .query
            .split('&')
            .find_map(|pair| pair.strip_prefix("token="))
            .map(http::unquote);
        let given = request.header("x-auth-token").map(str::to_owned).or(bearer).or(query);
        if !given.is_some_and(|given| same(given.as_bytes(), token.as_bytes())) {
            return Err("401 Unauthorized");
        }
    }
    if let Some(secret) = &options.hmac_secret {
        let given = request.header(&options.hmac_header).unwrap_or_default();
        let given = given.strip_prefix("sha256=").unwrap_or(given).trim().to_ascii_lowercase();
        if !same(given.as_bytes(), signature(secret, &request.body).as_bytes()) {
            return Err("401 Unauthorized");
        }
    }
    Ok(())
}

/// Returns the HMAC of a body, in hex.
fn signature(secret: &str, body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(body);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the events of a request.
fn events(request: &Request) -> Vec<(String, Dict)> {
    // differs: Salt's engine has no `/hook` of its own; its REST API has.
    let path = request.path.trim_matches('/');
    let path = if path == "hook" { "" } else { path.strip_prefix("hook/").unwrap_or(path) };
    let tag = if path.is_empty() { PREFIX.to_owned() } else { format!("{PREFIX}/{path}") };
    let secrets = ["authorization", "x-auth-token"];
    let headers: Dict = request
        .headers
        .iter()
        .filter(|(name, _)| !secrets.contains(&name.to_ascii_lowercase().as_str()))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let text = String::from_utf8_lossy(&request.body);
    let data = entries! { "headers" => headers, "body" => text.as_ref() };
    let parsed =
        json::from_str(&text).ok().filter(|parsed| !text.trim().is_empty() && !parsed.is_null());
    let mut events = Vec::new();
    if let Some(parsed) = parsed {
        if is_alertmanager(path, &parsed) {
            events.extend(alerts(&tag, &parsed));
        }
        data.insert("data", parsed);
    }
    events.insert(0, (tag, data));
    events
}

fn is_alertmanager(path: &str, parsed: &Value) -> bool {
    (path == "alertmanager" || path.starts_with("alertmanager/"))
        && parsed.get("alerts").is_some_and(|alerts| alerts.items_of_sequence().is_some())
}

/// One event per alert: what a reactor wants to know without loops and conditions.
fn alerts(tag: &str, message: &Value) -> Vec<(String, Dict)> {
    let list = message.get("alerts").and_then(|list| list.items_of_sequence()).unwrap_or_default();
    let text =
        |value: &Value, name: &str| value.get(name).map(|found| found.to_str()).unwrap_or_default();
    list.iter()
        .map(|alert| {
            let labels = alert.get("labels").unwrap_or_else(Value::dict);
            let name = text(&labels, "alertname");
            let status = match text(alert, "status") {
                status if status.is_empty() => text(message, "status"),
                status => status,
            };
            let instance = text(&labels, "instance");
            let host = instance.rsplit_once(':').map_or(instance.as_str(), |(host, _)| host);
            let data = entries! {
                "alertname" => &name, "status" => &status, "labels" => &labels,
                "annotations" => alert.get("annotations").unwrap_or_else(Value::dict),
                "instance" => &instance, "host" => host, "severity" => text(&labels, "severity"),
                "startsAt" => alert.get("startsAt"), "endsAt" => alert.get("endsAt"),
                "fingerprint" => alert.get("fingerprint"),
                "generatorURL" => alert.get("generatorURL"),
                "receiver" => message.get("receiver"), "groupKey" => message.get("groupKey"),
                "externalURL" => message.get("externalURL"),
            };
            (format!("{tag}/{status}/{name}"), data)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    fn post(path: &str, body: &str, headers: &[(&str, &str)]) -> Request {
        Request {
            method: "POST".into(),
            path: path.into(),
            headers: headers.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect(),
            body: body.into(),
            ..Request::default()
        }
    }

    #[test]
    fn paths_become_tags() {
        let tag = |path: &str| events(&post(path, "x", &[])).remove(0).0;
        assert_eq!(tag("/hook/build/done"), "salt/engines/hook/build/done");
        assert_eq!(tag("/build/done"), "salt/engines/hook/build/done");
        assert_eq!(tag("/"), "salt/engines/hook");
        let (_, data) =
            events(&post("/a", r#"{"b": 1}"#, &[("X-Auth-Token", "s"), ("Host", "h")])).remove(0);
        assert_eq!(data.get("data"), Some(dict! { "b" => 1 }));
        assert_eq!(data.get("headers"), Some(dict! { "Host" => "h" }), "secrets stay here");
    }

    #[test]
    fn settings_are_checked() {
        let error = |config: Value| Options::read(config.as_dict().unwrap()).unwrap_err();
        assert_eq!(
            error(dict! { "tokn" => "x" }),
            "it has no setting `tokn`; did you mean `token`?"
        );
        assert!(error(dict! { "port" => "http" }).starts_with("`port` is a number"));
        assert!(error(dict! { "max_size" => 0 }).starts_with("`max_size` is a number"));
        assert_eq!(
            error(dict! { "ssl_crt" => "/a.crt" }),
            "`ssl_crt` is given, but `ssl_key` is not"
        );
        let address = |config: Value| Options::read(config.as_dict().unwrap()).unwrap().address;
        assert_eq!(address(dict! {}), "127.0.0.1:8000");
        assert_eq!(address(dict! { "token" => "x", "port" => "9000" }), "0.0.0.0:9000");
        assert_eq!(address(dict! { "address" => "::1" }), "[::1]:8000");
    }

    #[test]
    fn secrets_are_checked() {
        let options = Options { token: Some("word".into()), ..Options::default() };
        assert!(accept(&options, &post("/", "", &[])).is_err());
        assert!(accept(&options, &post("/", "", &[("X-Auth-Token", "word")])).is_ok());
        assert!(accept(&options, &post("/", "", &[("Authorization", "Bearer word")])).is_ok());
        assert!(accept(&options, &post("/", "", &[("Authorization", "Bearer wrong")])).is_err());
        let query = Request { query: "a=1&token=word".into(), ..post("/", "", &[]) };
        assert!(accept(&options, &query).is_ok());
        // The example of GitHub's documentation.
        let hash = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(signature("It's a Secret to Everybody", b"Hello, World!"), hash);
        let options = Options {
            hmac_secret: Some("It's a Secret to Everybody".into()),
            hmac_header: "X-Hub-Signature-256".into(),
            ..Options::default()
        };
        let signed = format!("sha256={hash}");
        assert!(
            accept(&options, &post("/", "Hello, World!", &[("x-hub-signature-256", &signed)]))
                .is_ok()
        );
        assert!(
            accept(&options, &post("/", "Hello, World?", &[("x-hub-signature-256", &signed)]))
                .is_err()
        );
        let get = Request { method: "GET".into(), ..post("/", "", &[]) };
        assert_eq!(accept(&Options::default(), &get), Err("405 Method Not Allowed"));
    }

    #[test]
    fn alerts_of_alertmanager() {
        let body = r#"{"receiver": "salt", "status": "firing", "alerts": [
            {"status": "firing", "labels": {"alertname": "DiskFull", "instance": "web1:9100", "severity": "page"},
             "annotations": {"summary": "full"}, "startsAt": "2026-01-01T00:00:00Z"},
            {"status": "resolved", "labels": {"alertname": "Down"}}]}"#;
        let all = events(&post("/hook/alertmanager", body, &[]));
        let tags: Vec<&str> = all.iter().map(|(tag, _)| tag.as_str()).collect();
        assert_eq!(
            tags,
            [
                "salt/engines/hook/alertmanager",
                "salt/engines/hook/alertmanager/firing/DiskFull",
                "salt/engines/hook/alertmanager/resolved/Down",
            ]
        );
        assert_eq!(all[1].1.get("host"), Some("web1".into()));
        assert_eq!(all[1].1.get("annotations"), Some(dict! { "summary" => "full" }));
    }
}
