//! Many bad frames at once, and good clients beside them.
//!
//! `HALITE_FRAMES` sets how many mutated requests are sent (a million unless told). They are made
//! from good ones of every kind by a seeded generator, so a failure can be repeated: it names the
//! seed.

mod common;

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use bytes::Bytes;
use common::{TestMaster, key, pack};
use halite_crypt::Nonce;
use halite_value::{Dict, Value, dict, entries, list};
use halite_wire::Envelope;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or(0)
    }
}

/// Turns a good body into one that hardly can be.
fn mutated(good: &[u8], random: &mut Random) -> Bytes {
    let mut bytes = good.to_vec();
    for _ in 0..=random.below(6) {
        match random.below(5) {
            0 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            1 => bytes.truncate(random.below(bytes.len() + 1)),
            2 => {
                let at = random.below(bytes.len() + 1);
                bytes.splice(at..at, (0..random.below(9)).map(|_| random.next() as u8));
            }
            3 if bytes.len() > 8 => {
                // A length that promises more than there is.
                let at = random.below(bytes.len() - 5);
                bytes.splice(at..at + 5, [0xdf, 0xff, 0xff, 0xff, 0xff]);
            }
            _ => bytes.extend((0..random.below(40)).map(|_| 0x91)),
        }
    }
    bytes.into()
}

fn frames() -> usize {
    std::env::var("HALITE_FRAMES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_bad_frames_hurts_nobody() {
    let master = TestMaster::new(entries! { "file_recv" => true, "auth_events" => false }).await;
    let minion = master.signed_in("web1", 0).await;
    let mallory = master.signed_in("mallory", 1).await;
    let seed = 0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id());
    let clear = |load: Dict| -> Bytes {
        Envelope::Clear { load, version: 3 }.encode().expect("plain data").into()
    };
    let sealed = |load: &Dict| mallory.sealed(&mallory.dressed(load, Nonce::generate().as_str()));
    let good: Vec<Bytes> = vec![
        clear(mallory.auth_load(Nonce::generate().as_str())),
        clear(entries! { "cmd" => "ping" }),
        clear(entries! { "cmd" => "publish", "fun" => "test.ping", "tgt" => "*", "arg" => list![],
        "user" => "root", "key" => "x", "kwargs" => dict! {} }),
        clear(entries! { "cmd" => "wheel", "fun" => "key.list_all", "eauth" => "pam" }),
        clear(entries! { "cmd" => "get_token", "token" => "../../../etc/passwd" }),
        sealed(&entries! { "cmd" => "_file_envs" }),
        sealed(&entries! { "cmd" => "_return", "jid" => "req", "return" => dict! { "a" => 1 } }),
        sealed(
            &entries! { "cmd" => "_file_recv", "path" => list!["x"], "loc" => 0, "data" => "x" },
        ),
        pack(&Value::list(vec![0; 2000])),
    ];
    let each = frames() / 8;
    let links: Vec<_> = (0..8).map(|_| master.minion("nobody", key(1)).link).collect();
    let mut floods = Vec::new();
    for (number, link) in links.into_iter().enumerate() {
        let good = good.clone();
        floods.push(tokio::spawn(async move {
            let mut random = Random(seed.rotate_left(u32::try_from(number).unwrap_or(0) * 7) | 1);
            for _ in 0..each {
                let body = mutated(&good[random.below(good.len())], &mut random);
                // Too short, too long, cut off: an answer or none, but never an end of the master.
                let _ = link.request(body, Duration::from_secs(20)).await;
            }
        }));
    }
    let envs = entries! { "cmd" => "_file_envs" };
    let (mut asked, mut slowest) = (0, Duration::ZERO);
    while floods.iter().any(|flood| !flood.is_finished()) {
        let begun = Instant::now();
        assert_eq!(minion.ask(&envs).await, Ok(list!["base"]), "a good client is served");
        slowest = slowest.max(begun.elapsed());
        asked += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for flood in floods {
        flood.await.expect("no panic");
    }
    assert!(asked > 0 && slowest < Duration::from_secs(5), "waited {slowest:?} (seed {seed:#x})");
    assert_eq!(minion.ask(&envs).await, Ok(list!["base"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_protocol_at_all_is_let_go() {
    let master = TestMaster::new(Dict::new()).await;
    let minion = master.signed_in("web1", 0).await;
    let running = master.running.as_ref().expect("running");
    let addresses = [running.request_addr(), running.publish_addr()];
    let mut random = Random(77);
    let mut held = Vec::new();
    for round in 0..200 {
        for address in addresses {
            let Ok(mut stream) = std::net::TcpStream::connect(address) else { continue };
            let bytes: Vec<u8> = match round % 4 {
                0 => (0..random.below(300)).map(|_| random.next() as u8).collect(),
                1 => b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
                // A greeting, then a frame of 2^63 bytes.
                2 => {
                    let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 1];
                    greeting.extend(b"NULL");
                    greeting.resize(64, 0);
                    greeting.extend([2, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
                    greeting
                }
                _ => Vec::new(),
            };
            // Somebody who was cut off already cannot be written to.
            let _ = stream.write_all(&bytes);
            if round % 3 == 0 {
                held.push(stream);
            }
        }
    }
    assert_eq!(minion.ask(&entries! { "cmd" => "_file_envs" }).await, Ok(list!["base"]));
    drop(held);
}
