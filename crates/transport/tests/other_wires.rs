//! tcp and ws end to end, plain and with TLS, our server against our client.

mod common;

use std::path::PathBuf;

use bytes::Bytes;
use common::{Master, SECOND, Told, any_port, bytes, master_of, next};
use halite_transport::{
    CertReqs, ClientOptions, Delivery, Event, Kind, LinkError, ServerOptions, Ssl, connect, tcp,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// `text` as a msgpack string, which tcp needs around a body.
fn packed(text: &str) -> Bytes {
    let mut out = vec![0xa0 | u8::try_from(text.len()).expect("short")];
    out.extend_from_slice(text.as_bytes());
    out.into()
}

async fn check_requests(master: &Master, options: ClientOptions) {
    let client = connect(master.kind, options);
    for text in ["one", "two"] {
        assert_eq!(client.request(packed(text), 5 * SECOND).await.expect("a reply"), packed(text));
    }
    let mut big = vec![0xc6, 0, 0x50, 0, 0];
    big.resize(5 + 0x50_0000, 9);
    let big = Bytes::from(big);
    assert_eq!(client.request(big.clone(), 10 * SECOND).await.expect("a reply"), big);
    let many = (0..50).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            let body = packed(&format!("request {n}"));
            assert_eq!(client.request(body.clone(), 5 * SECOND).await.expect("a reply"), body);
        })
    });
    for one in many.collect::<Vec<_>>() {
        one.await.expect("joined");
    }
    assert!(!client.is_extended() && !client.notice(bytes("x")));
}

async fn check_publications(master: &mut Master, options: ClientOptions) {
    let client = connect(master.kind, options);
    client.subscribe(master.subscription());
    assert!(matches!(next(&client).await, Event::Connected(up) if !up.extended));
    if master.kind == Kind::Tcp {
        assert!(client.identify(packed("web")));
        while master.told().await != Told::Subscribed(Some("web".into())) {}
        assert_eq!(master.hub.ids(), ["web".into()]);
    } else {
        while master.told().await != Told::Subscribed(None) {}
    }
    for delivery in [Delivery::all(), Delivery::ids(["web"])] {
        let receipt = master.hub.publish(delivery, bytes("sealed")).await;
        assert_eq!(receipt.written + receipt.queued, 1, "{receipt:?}");
        assert_eq!(next(&client).await, Event::Publication(bytes("sealed")));
    }
    drop(client);
    let expected = (master.kind == Kind::Tcp).then(|| "web".to_owned());
    while master.told().await != Told::Down(expected.clone()) {}
    assert_eq!(master.hub.publish(Delivery::ids(["web"]), bytes("late")).await.written, 0);
}

#[tokio::test]
async fn plain() {
    for kind in [Kind::Tcp, Kind::Ws] {
        let mut master = master_of(kind, any_port()).await;
        check_requests(&master, master.client_options(true)).await;
        let options = master.client_options(true);
        check_publications(&mut master, options).await;
    }
}

#[tokio::test]
async fn an_unidentified_tcp_subscriber_gets_only_what_is_for_all() {
    let mut master = master_of(Kind::Tcp, any_port()).await;
    let client = master.client(true);
    client.subscribe(master.subscription());
    assert!(matches!(next(&client).await, Event::Connected(_)));
    assert!(client.identify(packed("nobody")));
    assert!(matches!(master.told().await, Told::Up(_)));
    while master.hub.publish(Delivery::all(), bytes("all")).await.written == 0 {}
    let receipt = master.hub.publish(Delivery::ids(["web"]), bytes("web")).await;
    assert_eq!((receipt.written, receipt.absent), (0, vec!["web".into()]));
    assert_eq!(next(&client).await, Event::Publication(bytes("all")));
}

#[tokio::test]
async fn tcp_frames_may_be_cut_and_merged_and_masters_may_send_maps() {
    let master = master_of(Kind::Tcp, any_port()).await;
    let mut raw = TcpStream::connect(master.server.request_addr()).await.expect("connected");
    let one = b"\x82\xa4head\x81\xa3mid\xa1a\xa4body\x81\xa1k\x01";
    let two = b"\x82\xa4body\xa1x\xa4head\x81\xa3mid\xa1b";
    for byte in one {
        raw.write_all(&[*byte]).await.expect("sent");
        raw.flush().await.expect("sent");
    }
    let mut reply = vec![0; one.len()];
    raw.read_exact(&mut reply).await.expect("a reply");
    assert_eq!(reply, one);
    raw.write_all(&[&two[..], &two[..]].concat()).await.expect("sent");
    let mut replies = vec![0; two.len() * 2];
    raw.read_exact(&mut replies).await.expect("replies");
    let expected = b"\x82\xa4head\x81\xa3mid\xa1b\xa4body\xa1x";
    assert_eq!(replies, [&expected[..], &expected[..]].concat());
    raw.write_all(b"\xc1").await.expect("sent");
    let closed = timeout(SECOND, raw.read(&mut [0; 1])).await.expect("closed at once");
    assert!(matches!(closed, Ok(0) | Err(_)));

    // A 3006 master sends the envelope itself, a newer one its packed bytes.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let client = connect(Kind::Tcp, ClientOptions::new("127.0.0.1", port));
    client.subscribe(halite_transport::Subscription::everything(port));
    let map = b"\x82\xa4head\x80\xa4body\x81\xa1k\x01".to_vec();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream
                .write_all(&[&map[..], b"\x82\xa4head\x80\xa4body\xc4\x02\x01\x02"].concat())
                .await;
            held.push(stream);
        }
    });
    assert!(matches!(next(&client).await, Event::Connected(_)));
    assert_eq!(next(&client).await, Event::Publication(Bytes::from_static(b"\x81\xa1k\x01")));
    assert_eq!(next(&client).await, Event::Publication(Bytes::from_static(b"\x01\x02")));
}

#[tokio::test]
async fn ws_strangers_and_limits() {
    let mut options = any_port();
    options.limits.handshake = std::time::Duration::from_millis(200);
    options.limits.message = 1000;
    let master = master_of(Kind::Ws, options).await;
    let mut silent = TcpStream::connect(master.server.request_addr()).await.expect("connected");
    let closed = timeout(SECOND, silent.read(&mut [0; 1])).await.expect("closed in time");
    assert!(matches!(closed, Ok(0) | Err(_)));
    let client = master.client(true);
    let error = client.request(Bytes::from(vec![0; 2000]), SECOND).await.expect_err("too large");
    assert!(matches!(error, LinkError::Lost { .. }), "{error}");
    client.request(packed("still there"), SECOND).await.expect("a reply");
}

struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes an authority, a certificate for 127.0.0.1 and one for a minion.
    fn new(name: &str) -> Self {
        use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
        let folder = std::env::temp_dir().join(format!("halite-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let write =
            |file: &str, text: String| std::fs::write(folder.join(file), text).expect("written");
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        write("ca.pem", authority.self_signed(&authority_key).expect("signed").pem());
        let issuer = Issuer::from_params(&authority, &authority_key);
        for (file, host) in [("master", "127.0.0.1"), ("minion", "minion.example")] {
            let key = KeyPair::generate().expect("a key");
            let parameters = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
            let signed = parameters.signed_by(&key, &issuer).expect("signed");
            write(&format!("{file}.pem"), signed.pem());
            write(&format!("{file}.key"), key.serialize_pem());
        }
        // What `openssl req -x509` makes: it is its own authority, and says that it is one.
        let now = rcgen::date_time_ymd(2020, 1, 1);
        for (file, until) in [("own", 2120), ("old", 2021)] {
            let key = KeyPair::generate().expect("a key");
            let mut own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
            own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            own.not_before = now;
            own.not_after = rcgen::date_time_ymd(until, 1, 1);
            write(&format!("{file}.pem"), own.self_signed(&key).expect("signed").pem());
            write(&format!("{file}.key"), key.serialize_pem());
        }
        Self { folder }
    }

    /// One certificate for everybody.
    fn themselves(&self, name: &str) -> Ssl {
        let trusted = self.folder.join(format!("{name}.pem"));
        Ssl { ca_certs: vec![trusted], ..self.ssl(Some(name)) }
    }

    fn ssl(&self, name: Option<&str>) -> Ssl {
        Ssl {
            certfile: name.map(|name| self.folder.join(format!("{name}.pem"))),
            keyfile: name.map(|name| self.folder.join(format!("{name}.key"))),
            ca_certs: vec![self.folder.join("ca.pem")],
            ..Ssl::default()
        }
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn tls() {
    for kind in [Kind::Tcp, Kind::Ws] {
        let files = Certificates::new(kind.name());
        let ssl = Some(files.ssl(Some("master")));
        let mut master = master_of(kind, ServerOptions { ssl, ..any_port() }).await;
        let with = |master: &Master, ssl: Ssl| ClientOptions {
            ssl: Some(ssl),
            ..master.client_options(true)
        };
        let minion = with(&master, files.ssl(Some("minion")));
        check_requests(&master, minion.clone()).await;
        check_publications(&mut master, minion.clone()).await;

        // The server demands a certificate, the client the right name.
        let short = SECOND / 2;
        let nameless = connect(kind, with(&master, files.ssl(None)));
        nameless.request(packed("x"), short).await.expect_err("no certificate");
        let wrong = Ssl { server_name: Some("other.example".into()), ..files.ssl(Some("minion")) };
        let wrong = connect(kind, with(&master, wrong));
        let error = wrong.request(packed("x"), short).await.expect_err("the wrong name");
        assert!(error.to_string().contains("certificate"), "{error}");
        let plain = connect(kind, ClientOptions { ssl: None, ..minion.clone() });
        plain.request(packed("x"), short).await.expect_err("no TLS");

        let lenient = Ssl { cert_reqs: Some(CertReqs::None), ..files.ssl(Some("master")) };
        let lenient = master_of(kind, ServerOptions { ssl: Some(lenient), ..any_port() }).await;
        let anyone = Ssl { cert_reqs: Some(CertReqs::None), ..Ssl::default() };
        let anyone = connect(kind, with(&lenient, anyone));
        anyone.request(packed("x"), 5 * SECOND).await.expect("a reply");
    }
}

#[tokio::test]
async fn who_signed_themselves_is_taken_for_themselves() {
    let files = Certificates::new("themselves");
    let ssl = |name: &str| Some(files.themselves(name));
    let master = master_of(Kind::Tcp, ServerOptions { ssl: ssl("own"), ..any_port() }).await;
    let usual = ClientOptions { ssl: ssl("own"), ..master.client_options(true) };
    check_requests(&master, usual.clone()).await;
    // The name still has to be right, and so has the time; and who is not named is a stranger.
    let refused = async |ssl: Ssl| {
        let client = connect(Kind::Tcp, ClientOptions { ssl: Some(ssl), ..usual.clone() });
        client.request(packed("x"), SECOND / 2).await.expect_err("refused").to_string()
    };
    let name = Some("other.example".to_owned());
    let error = refused(Ssl { server_name: name, ..files.themselves("own") }).await;
    assert!(error.contains("certificate"), "{error}");
    refused(files.themselves("old")).await;
    refused(Ssl { ca_certs: files.themselves("own").ca_certs, ..files.ssl(Some("minion")) }).await;
    let old = master_of(Kind::Tcp, ServerOptions { ssl: ssl("old"), ..any_port() }).await;
    let client = ClientOptions { ssl: ssl("old"), ..old.client_options(true) };
    let asked = connect(Kind::Tcp, client).request(packed("x"), SECOND / 2).await;
    asked.expect_err("its time is over");
}

#[tokio::test]
async fn unusable_certificates_are_named() {
    let hub = halite_transport::Hub::new();
    let (told, _heard) = tokio::sync::mpsc::unbounded_channel();
    let echo = std::sync::Arc::new(common::Echo { told });
    let missing = Ssl { certfile: Some("/nonexistent/cert.pem".into()), ..Ssl::default() };
    let options = ServerOptions { ssl: Some(missing), ..any_port() };
    let error = tcp::serve(&options, &hub, echo).await.expect_err("no such file");
    assert!(error.to_string().contains("/nonexistent/cert.pem"), "{error}");
}
