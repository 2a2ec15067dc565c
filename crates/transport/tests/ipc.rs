//! The local event bus over real sockets.

use std::path::PathBuf;
use std::time::Duration;

use halite_transport::ipc::{
    Address, Listener, Prefix, Publisher, PublisherOptions, Puller, Pusher,
};
use tokio::time::timeout;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("halite-ipc-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn socket(&self, name: &str) -> Address {
        Address::Unix(self.0.join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn listeners(publisher: &Publisher, count: usize) {
    while publisher.listeners() != count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn every_listener_gets_every_event() {
    let folder = Folder::new("pub");
    for (name, prefix) in
        [("bare", Prefix::Never), ("prefixed", Prefix::Always), ("seen", Prefix::Recognise)]
    {
        let options = PublisherOptions { prefix, ..PublisherOptions::default() };
        let address = folder.socket(name);
        let publisher = Publisher::bind(&address, options).await.expect("bound");
        let mut one = Listener::connect(&address).await.expect("connected");
        let mut two = Listener::connect(&address).await.expect("connected");
        listeners(&publisher, 2).await;
        for event in [&b"first"[..], &[1; 100_000]] {
            assert_eq!(publisher.publish(event).listeners, 2);
            assert_eq!(one.next().await.expect("read").expect("an event"), event);
            assert_eq!(two.next().await.expect("read").expect("an event"), event);
        }
        drop(two);
        listeners(&publisher, 1).await;
        drop(publisher);
        assert_eq!(one.next().await.expect("read"), None);
        assert!(Listener::connect(&address).await.is_err(), "the file is gone");
    }
}

#[tokio::test]
async fn a_slow_listener_loses_events_and_holds_nobody_up() {
    let options = PublisherOptions { queue: 5, ..PublisherOptions::default() };
    let any = Address::Tcp("127.0.0.1:0".parse().expect("an address"));
    let publisher = Publisher::bind(&any, options).await.expect("bound");
    let _slow = Listener::connect(publisher.address()).await.expect("connected");
    let mut quick = Listener::connect(publisher.address()).await.expect("connected");
    listeners(&publisher, 2).await;
    let event = vec![3; 200_000];
    for _ in 0..100 {
        publisher.publish(&event);
        let got = timeout(Duration::from_secs(5), quick.next()).await.expect("in time");
        assert_eq!(got.expect("read").expect("an event").len(), event.len());
    }
    assert!(publisher.dropped() > 20, "{}", publisher.dropped());
}

#[tokio::test]
async fn programs_write_with_and_without_length() {
    let folder = Folder::new("pull");
    let address = folder.socket("pull");
    let mut puller = Puller::bind(&address, 0o600).await.expect("bound");
    for prefix in [false, true, false] {
        let mut pusher = Pusher::connect(&address, prefix).await.expect("connected");
        for event in ["one", "two"] {
            pusher.send(event.as_bytes()).await.expect("sent");
            assert_eq!(puller.next().await.expect("an event"), event);
        }
    }
}

#[tokio::test]
async fn socket_files_have_their_mode_and_are_replaced_only_when_dead() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("files");
    let address = folder.socket("pull");
    let puller = Puller::bind(&address, 0o600).await.expect("bound");
    let Address::Unix(path) = &address else { panic!("a path") };
    let mode = std::fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = Puller::bind(&address, 0o600).await.expect_err("in use");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    drop(puller);
    // What a killed process leaves behind.
    drop(std::os::unix::net::UnixListener::bind(path).expect("bound"));
    let mut puller = Puller::bind(&address, 0o600).await.expect("replaced");
    Pusher::connect(&address, true).await.expect("connected").send(b"x").await.expect("sent");
    assert_eq!(puller.next().await.expect("an event"), "x");
    assert_eq!(std::fs::read_dir(&folder.0).expect("a folder").count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_and_then_fires_hears_itself() {
    let folder = Folder::new("itself");
    let (heard, fired) = (folder.socket("pub"), folder.socket("pull"));
    let publisher = Publisher::bind(&heard, PublisherOptions::default()).await.expect("bound");
    let mut puller = Puller::bind(&fired, 0o600).await.expect("bound");
    let relay = tokio::spawn(async move {
        while let Some(event) = puller.next().await {
            publisher.publish(&event);
        }
    });
    for round in 0..50 {
        let mut listener = Listener::connect(&heard).await.expect("connected");
        let mut pusher = Pusher::connect(&fired, false).await.expect("connected");
        let event = format!("tag\n\n\u{1}{round}");
        pusher.send(event.as_bytes()).await.expect("sent");
        let limit = Duration::from_secs(2);
        let got = tokio::time::timeout(limit, listener.next()).await.expect("in time");
        assert_eq!(got.expect("a bus").expect("an event"), event);
    }
    relay.abort();
}
