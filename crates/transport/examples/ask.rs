//! Asks a master and prints what it publishes: `ask HOST RET_PORT PUBLISH_PORT [zeromq|tcp|ws] [count]`.
#![expect(clippy::print_stdout, reason = "a program")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use halite_transport::{ClientOptions, Kind, Subscription, connect};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(0);
    let host = args.get(1).map_or("127.0.0.1", String::as_str);
    let kind = args.get(4).and_then(|name| Kind::from_name(name)).unwrap_or_default();
    let client = connect(kind, ClientOptions::new(host, number(2)));
    // A clear `ping`, which a genuine master answers with the load.
    let ping = b"\x83\xa3enc\xa5clear\xa4load\x81\xa3cmd\xa4ping\xa7version\x03";
    for _ in 0..2 {
        let start = Instant::now();
        let reply = client.request(Bytes::from_static(ping), Duration::from_secs(5)).await?;
        println!("{reply:?} after {:?}, extended {}", start.elapsed(), client.is_extended());
    }
    client.subscribe(Subscription::everything(number(3)));
    for _ in 0..number(5).max(5) {
        println!("{:?}", client.next().await);
    }
    Ok(())
}
