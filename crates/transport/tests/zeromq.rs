//! The ZeroMQ wire end to end, our server against our client: plain and extended.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{SECOND, Told, any_port, bytes, master, next};
use halite_transport::{
    ClientOptions, Delivery, Event, Heartbeat, Kind, LinkError, Role, ServerOptions, Subscription,
    connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

#[tokio::test]
async fn requests_plain_and_extended() {
    let master = master(any_port()).await;
    for extension in [false, true] {
        let client = master.client(extension);
        let reply = client.request(bytes("hello"), SECOND).await.expect("a reply");
        assert_eq!(reply, "hello");
        assert_eq!(client.is_extended(), extension);
        let big = Bytes::from(vec![9; 10 << 20]);
        assert_eq!(client.request(big.clone(), 10 * SECOND).await.expect("a reply"), big);
        // A slow one does not hold up the others, whatever the wire.
        let slow = client.request(bytes("slow"), 5 * SECOND);
        let quick = async {
            for _ in 0..3 {
                client.request(bytes("quick"), SECOND).await.expect("a reply");
            }
            std::time::Instant::now()
        };
        let slow = async { (slow.await.expect("a reply"), std::time::Instant::now()) };
        let ((_, slow), quick) = tokio::join!(slow, quick);
        assert!(quick < slow);
    }
}

#[tokio::test]
async fn no_reply_and_panics() {
    let master = master(any_port()).await;
    let plain = master.client(false);
    let short = Duration::from_millis(100);
    let error = plain.request(bytes("silence"), short).await.expect_err("no reply");
    assert!(matches!(error, LinkError::Timeout { .. }), "{error}");
    assert!(!error.never_sent());
    assert_eq!(plain.request(bytes("after"), SECOND).await.expect("a fresh socket"), "after");
    let extended = master.client(true);
    for question in ["silence", "panic"] {
        let error = extended.request(bytes(question), SECOND).await.expect_err("no reply");
        assert!(matches!(error, LinkError::Declined { .. }), "{error}");
    }
    assert_eq!(extended.request(bytes("after"), SECOND).await.expect("a reply"), "after");
}

#[tokio::test]
async fn nobody_there() {
    let master = master(any_port()).await;
    let options = master.client_options(true);
    drop(master);
    let client = connect(Kind::ZeroMq, options);
    let error = client.request(bytes("x"), Duration::from_millis(300)).await.expect_err("nobody");
    assert!(matches!(error, LinkError::Unreachable { .. }), "{error}");
    assert!(error.never_sent());
    assert!(error.to_string().contains("refused"), "{error}");
    client.close();
    assert!(matches!(client.request(bytes("x"), SECOND).await, Err(LinkError::Closed)));
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn plain_subscriptions_and_topics() {
    let mut master = master(any_port()).await;
    let all = master.client(false);
    all.subscribe(master.subscription());
    let some = master.client(false);
    some.subscribe(Subscription { topics: vec![bytes("web")], ..master.subscription() });
    for client in [&all, &some] {
        assert!(matches!(next(client).await, Event::Connected(up) if !up.extended));
    }
    let mut subscribed = 0;
    while subscribed < 2 {
        subscribed += usize::from(matches!(master.told().await, Told::Subscribed(None)));
    }
    let one = master.hub.publish(Delivery::all(), bytes("one")).await;
    assert_eq!((one.written, one.queued, one.dropped), (1, 0, 0));
    let two = Delivery::all().topics([bytes("web1"), bytes("db1")]);
    let two = master.hub.publish(two, bytes("two")).await;
    assert_eq!(two.written, 3);
    for expected in ["one", "two", "two"] {
        assert_eq!(next(&all).await, Event::Publication(bytes(expected)));
    }
    assert_eq!(next(&some).await, Event::Publication(bytes("two")));
    // Ids cannot be told apart here: who subscribed to everything gets everything.
    let three = master.hub.publish(Delivery::ids(["web1"]), bytes("three")).await;
    assert_eq!((three.written, three.absent), (1, vec!["web1".into()]));
    assert_eq!(
        master.hub.publish(Delivery::ids(["web1"]).bound_only(), bytes("no")).await.written,
        0
    );
}

#[tokio::test]
async fn extended_presence_delivery_and_notices() {
    let mut master = master(any_port()).await;
    let (web, db, call) = (master.client(true), master.client(true), master.client(true));
    for (client, id, subscribes) in [(&web, "web", true), (&db, "db", true), (&call, "web", false)]
    {
        if subscribes {
            client.subscribe(master.subscription());
            assert!(matches!(next(client).await, Event::Connected(up) if up.extended));
        }
        client.request(Bytes::from(format!("bind {id}")), SECOND).await.expect("a reply");
        assert_eq!(master.told().await, Told::Up(Role::Extended));
        if subscribes {
            assert_eq!(master.told().await, Told::Subscribed(None));
        }
    }
    assert_eq!(master.hub.ids(), ["db".into(), "web".into()]);
    assert_eq!(master.hub.peers_of("web").len(), 2);
    assert_eq!(master.hub.publish(Delivery::all(), bytes("all")).await.written, 2);
    let twice = Delivery::ids(["web", "gone", "web"]);
    let receipt = master.hub.publish(twice, bytes("web only")).await;
    assert_eq!((receipt.written, receipt.absent), (1, vec!["gone".into()]));
    assert_eq!(next(&web).await, Event::Publication(bytes("all")));
    assert_eq!(next(&web).await, Event::Publication(bytes("web only")));
    assert_eq!(next(&db).await, Event::Publication(bytes("all")));
    assert!(web.notice(bytes("from below")));
    assert_eq!(master.told().await, Told::Notice(bytes("from below")));
    assert!(master.hub.peers_of("db")[0].notice(bytes("from above")));
    assert_eq!(next(&db).await, Event::Notice(bytes("from above")));
    drop(db);
    assert_eq!(master.told().await, Told::Down(Some("db".into())));
    assert!(!master.hub.is_connected("db") && master.hub.is_connected("web"));
    assert_eq!(master.hub.statistics().connections, 2, "one connection per client");
}

#[tokio::test]
async fn clients_come_back_after_a_restart_of_the_master() {
    for extension in [false, true] {
        let first = master(any_port()).await;
        let client = first.client(extension);
        client.subscribe(first.subscription());
        assert!(matches!(next(&client).await, Event::Connected(_)));
        let same_ports = ServerOptions {
            ret_port: first.server.request_addr().port(),
            publish_port: first.server.publish_addr().port(),
            ..ServerOptions::default()
        };
        drop(first);
        assert!(matches!(next(&client).await, Event::Disconnected(_)));
        let second = master(same_ports).await;
        assert!(matches!(next(&client).await, Event::Connected(_)));
        let reply = client.request(bytes("bind web"), 5 * SECOND).await.expect("a reply");
        assert_eq!(reply, "bind web");
        let mut sent = 0;
        while sent == 0 {
            sent = second.hub.publish(Delivery::all(), bytes("again")).await.written;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(next(&client).await, Event::Publication(bytes("again")));
    }
}

#[tokio::test]
async fn a_client_that_distrusts_its_connections_makes_new_ones() {
    let master = master(any_port()).await;
    for extension in [false, true] {
        let client = master.client(extension);
        client.subscribe(master.subscription());
        let Event::Connected(first) = next(&client).await else { panic!("up") };
        client.reconnect();
        assert!(matches!(next(&client).await, Event::Disconnected(_)));
        let Event::Connected(second) = next(&client).await else { panic!("up again") };
        assert_ne!(first.connection, second.connection);
        let reply = client.request(bytes("one"), 5 * SECOND).await.expect("a reply");
        assert_eq!(reply, "one");
    }
}

/// A link on which packets vanish without a word: a proxy that stops forwarding.
#[tokio::test]
async fn a_black_hole_is_noticed_by_both_ends() {
    let heartbeat =
        Heartbeat { interval: Duration::from_millis(100), timeout: Duration::from_millis(400) };
    let mut master = master(ServerOptions { heartbeat, ..any_port() }).await;
    let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = proxy.local_addr().expect("bound").port();
    let target = master.server.request_addr();
    let (open, gate) = tokio::sync::watch::channel(true);
    tokio::spawn(async move {
        while let Ok((near, _)) = proxy.accept().await {
            let far = tokio::net::TcpStream::connect(target).await.expect("the master");
            let ((nr, nw), (fr, fw)) = (near.into_split(), far.into_split());
            for (mut from, mut to) in [(nr, fw), (fr, nw)] {
                let mut gate = gate.clone();
                tokio::spawn(async move {
                    let mut buf = vec![0; 4096];
                    while let Ok(count @ 1..) = from.read(&mut buf).await {
                        let _ = gate.wait_for(|open| *open).await;
                        if to.write_all(&buf[..count]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    let client =
        connect(Kind::ZeroMq, ClientOptions { port, heartbeat, ..master.client_options(true) });
    client.subscribe(master.subscription());
    assert!(matches!(next(&client).await, Event::Connected(_)));
    client.request(bytes("bind web"), SECOND).await.expect("a reply");
    // Quiet, but alive: heartbeats keep it.
    tokio::time::sleep(SECOND).await;
    assert!(master.hub.is_connected("web"));
    open.send_replace(false);
    let start = std::time::Instant::now();
    let Event::Disconnected(why) = next(&client).await else { panic!("lost") };
    assert!(why.contains("nothing heard"), "{why}");
    assert!(start.elapsed() < SECOND);
    while master.told().await != Told::Down(Some("web".into())) {}
    assert!(start.elapsed() < SECOND && !master.hub.is_connected("web"));
    open.send_replace(true);
    assert!(matches!(next(&client).await, Event::Connected(_)));
}

#[tokio::test]
async fn a_reader_that_stands_still_costs_only_itself() {
    let mut master = master(ServerOptions { pub_hwm: 10, ..any_port() }).await;
    let good = master.client(false);
    good.subscribe(master.subscription());
    assert!(matches!(next(&good).await, Event::Connected(_)));
    // A raw subscriber that never reads.
    let addr = master.server.publish_addr();
    let mut stuck = tokio::net::TcpStream::connect(addr).await.expect("connected");
    let mut hello = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
    hello.extend_from_slice(b"NULL");
    hello.resize(64, 0);
    hello.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB\x00\x01\x01");
    stuck.write_all(&hello).await.expect("sent");
    let mut subscribed = 0;
    while subscribed < 2 {
        subscribed += usize::from(matches!(master.told().await, Told::Subscribed(None)));
    }
    let body = Bytes::from(vec![1; 256 << 10]);
    let mut dropped = 0;
    for _ in 0..100 {
        dropped += master.hub.publish(Delivery::all(), body.clone()).await.dropped;
        assert_eq!(next(&good).await, Event::Publication(body.clone()));
    }
    assert!(dropped > 20, "{dropped}");
    assert_eq!(master.hub.statistics().dropped, dropped as u64);
}

#[tokio::test]
async fn strangers_are_limited_in_time_and_number() {
    let mut options = any_port();
    options.limits.handshake = Duration::from_millis(200);
    options.limits.handshakes = 3;
    let master = master(options).await;
    let addr = master.server.request_addr();
    let mut strangers = Vec::new();
    for _ in 0..5 {
        strangers.push(tokio::net::TcpStream::connect(addr).await.expect("connected"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The two oldest made room at once, the others ran out of time; each was greeted.
    for (index, stranger) in strangers.iter_mut().enumerate() {
        let start = std::time::Instant::now();
        let mut greeting = Vec::new();
        timeout(SECOND, stranger.read_to_end(&mut greeting)).await.expect("closed").expect("read");
        assert_eq!(greeting.len(), 64);
        assert!(index > 1 || start.elapsed() < Duration::from_millis(100));
    }
    assert_eq!(master.hub.statistics().handshakes_failed, 5);
    let mut http = tokio::net::TcpStream::connect(addr).await.expect("connected");
    http.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("sent");
    let mut rest = Vec::new();
    let _ = timeout(SECOND, http.read_to_end(&mut rest)).await.expect("closed at once");
    let client = master.client(true);
    client.request(bytes("still there"), SECOND).await.expect("a reply");
}

#[tokio::test]
async fn addresses_of_both_ends() {
    let master = master(any_port()).await;
    // All of 127/8 is ours on Linux.
    let options = ClientOptions {
        source: Some("127.0.0.2".parse().expect("an address")),
        ..master.client_options(true)
    };
    let client = connect(Kind::ZeroMq, options);
    client.request(bytes("x"), SECOND).await.expect("a reply");
    let from = master.hub.peers()[0].addr().expect("an address");
    assert_eq!(from.ip().to_string(), "127.0.0.2");
    // A name, looked up; the loopback interface may lack IPv6, the name may not.
    let options = ClientOptions { host: "localhost".into(), ..master.client_options(true) };
    let named = connect(Kind::ZeroMq, options);
    named.request(bytes("x"), 5 * SECOND).await.expect("a reply");
}

#[tokio::test]
async fn too_many_connections_are_refused_and_counted() {
    let mut options = any_port();
    options.limits.connections = 1;
    let master = master(options).await;
    let first = master.client(true);
    first.request(bytes("x"), SECOND).await.expect("a reply");
    let second = master.client(true);
    let error = second.request(bytes("x"), Duration::from_millis(200)).await.expect_err("no room");
    assert!(error.never_sent(), "{error}");
    assert!(master.hub.statistics().refused > 0);
    drop(first);
    second.request(bytes("x"), 5 * SECOND).await.expect("room now");
}
