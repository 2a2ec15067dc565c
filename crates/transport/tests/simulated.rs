//! A fleet on the simulated network: the real protocol code under loss, partitions and duplicates, by seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use halite_transport::simulated::{Conditions, Network};
use halite_transport::{
    ClientOptions, Delivery, Ended, Event, Hub, LinkError, Peer, ServerOptions, Service,
    Subscription, Transport,
};
use parking_lot::Mutex;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

type Log = Arc<Mutex<Vec<String>>>;

struct Master {
    log: Log,
    start: Instant,
}

impl Master {
    fn note(&self, what: &str, peer: &Peer) {
        let id = peer.id().unwrap_or_else(|| "?".into());
        self.log.lock().push(format!("{:?} {what} {id}", self.start.elapsed()));
    }
}

impl Service for Master {
    async fn request(&self, peer: &Peer, body: Bytes) -> Option<Bytes> {
        peer.bind(&String::from_utf8_lossy(&body));
        self.note("request", peer);
        Some(body)
    }

    fn down(&self, peer: &Peer, _: &Ended) {
        self.note("down", peer);
    }
}

fn fleet(network: &Network, count: usize, extension: bool) -> Vec<(String, Arc<dyn Transport>)> {
    (0..count)
        .map(|n| {
            let id = format!("minion{n}");
            let options = ClientOptions { extension, ..ClientOptions::new("master", 4506) };
            let client = network.connect(&id, options);
            client.subscribe(Subscription::everything(4505));
            (id, client)
        })
        .collect()
}

/// Signs in whenever connected, and logs what comes.
async fn minion(id: String, client: Arc<dyn Transport>, log: Log, start: Instant) {
    while let Some(event) = client.next().await {
        let text = match &event {
            Event::Connected(_) => "connected".to_owned(),
            Event::Disconnected(why) => format!("disconnected: {why}"),
            Event::Publication(body) | Event::Notice(body) => String::from_utf8_lossy(body).into(),
        };
        log.lock().push(format!("{:?} {id} {text}", start.elapsed()));
        if matches!(event, Event::Connected(_)) {
            let client = client.clone();
            let body = Bytes::from(id.clone());
            tokio::spawn(async move {
                while let Err(error) = client.request(body.clone(), 5 * SECOND).await {
                    if matches!(error, LinkError::Closed) {
                        return;
                    }
                }
            });
        }
    }
}

/// Five bad minutes, then good weather. Returns everything that was seen.
async fn bad_day(seed: u64) -> Vec<String> {
    let log = Log::default();
    let start = Instant::now();
    let network = Network::new(seed);
    let hub = Hub::new();
    let master = || Arc::new(Master { log: log.clone(), start });
    let mut server = Some(network.serve("master", &ServerOptions::default(), &hub, master()));
    let fleet = fleet(&network, 30, true);
    for (id, client) in &fleet {
        tokio::spawn(minion(id.clone(), client.clone(), log.clone(), start));
    }
    network.set_conditions(Conditions {
        delay: (Duration::from_millis(1), Duration::from_millis(80)),
        loss: 0.01,
        duplicate: 0.05,
    });
    for minute in 0..5_usize {
        for (id, _) in fleet.iter().skip(minute).step_by(5) {
            network.partition("master", id);
        }
        network.cut("master", &fleet[minute].0);
        tokio::time::sleep(20 * SECOND).await;
        let _ = hub.publish(Delivery::all(), Bytes::from(format!("job {minute}"))).await;
        if minute == 3 {
            drop(server.take());
        }
        tokio::time::sleep(25 * SECOND).await;
        server.get_or_insert_with(|| {
            network.serve("master", &ServerOptions::default(), &hub, master())
        });
        for (id, _) in fleet.iter().skip(minute).step_by(5) {
            network.heal("master", id);
        }
        tokio::time::sleep(15 * SECOND).await;
    }
    network.set_conditions(Conditions::default());
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(hub.ids().len(), fleet.len(), "everybody is back: {:?}", hub.ids());
    assert_eq!(hub.statistics().connections, fleet.len() as u64, "and nobody twice");
    let receipt = hub.publish(Delivery::all(), Bytes::from_static(b"last job")).await;
    assert_eq!(receipt.queued + receipt.written, fleet.len());
    tokio::time::sleep(SECOND).await;
    let seen: BTreeSet<String> = {
        let log = log.lock();
        let last = log.iter().filter_map(|line| line.strip_suffix(" last job"));
        last.filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect()
    };
    assert_eq!(seen.len(), fleet.len(), "everybody got the last job");
    fleet.iter().for_each(|(_, client)| client.close());
    let log = log.lock();
    log.clone()
}

#[tokio::test(start_paused = true)]
async fn a_fleet_survives_a_bad_day() {
    for seed in 0..3 {
        let log = bad_day(seed).await;
        assert!(log.iter().any(|line| line.contains("nothing heard")), "seed {seed}");
        assert!(log.iter().any(|line| line.contains("reset")), "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_day() {
    let run = |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(bad_day(seed))
    };
    let (one, two, other) = (run(42), run(42), run(43));
    for (line, (a, b)) in one.iter().zip(&two).enumerate() {
        assert_eq!(a, b, "line {line}");
    }
    assert_eq!(one.len(), two.len());
    assert_ne!(one, other);
}

#[tokio::test(start_paused = true)]
async fn a_partition_is_noticed_within_the_heartbeat_timeout_on_both_wires() {
    for extension in [true, false] {
        let (log, start) = (Log::default(), Instant::now());
        let network = Network::new(1);
        let hub = Hub::new();
        let service = Arc::new(Master { log: log.clone(), start });
        let _server = network.serve("master", &ServerOptions::default(), &hub, service);
        let fleet = fleet(&network, 1, extension);
        let (_, client) = &fleet[0];
        assert!(matches!(client.next().await, Some(Event::Connected(_))));
        client.request(Bytes::from_static(b"minion0"), SECOND).await.expect("a reply");
        tokio::time::sleep(300 * SECOND).await;
        network.partition("minion0", "master");
        let cut = Instant::now();
        let Some(Event::Disconnected(why)) = client.next().await else { panic!("lost") };
        assert!(cut.elapsed() <= 30 * SECOND, "{why} after {:?}", cut.elapsed());
        tokio::time::sleep(60 * SECOND - cut.elapsed()).await;
        assert_eq!(hub.statistics().connections, 0, "the master knows, too");
        network.heal("minion0", "master");
        let healed = Instant::now();
        assert!(matches!(client.next().await, Some(Event::Connected(_))));
        assert!(healed.elapsed() < 25 * SECOND, "{:?}", healed.elapsed());
    }
}
