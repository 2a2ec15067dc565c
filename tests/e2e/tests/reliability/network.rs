//! A link that swallows packets: nobody is told, TCP says «established».
//!
//! The minion lives in a network namespace of its own; the link is broken by giving each side a wrong
//! hardware address for the other, so that packets leave and are dropped where they arrive. That needs
//! no packet filter, only the right to administer networks; without it the test says so and ends.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use halite_e2e::site::{Make, Site, at_most, until};
use serde_json::{Value, json};

/// A namespace with a link to ours. Removed when dropped.
struct Link {
    name: String,
    here: String,
    subnet: String,
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(args).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

impl Link {
    fn new() -> Result<Self, String> {
        let pid = std::process::id() % 10_000;
        let name = format!("hxn{pid}");
        let link =
            Self { here: format!("hxv{pid}"), subnet: format!("10.213.{}", pid % 250), name };
        ip(&["netns", "add", &link.name])?;
        let (here, there) = (link.here.as_str(), "hxv0");
        ip(&["link", "add", here, "type", "veth", "peer", "name", there, "netns", &link.name])?;
        ip(&["addr", "add", &format!("{}/30", link.address(1)), "dev", here])?;
        ip(&["link", "set", here, "up"])?;
        let own = format!("{}/30", link.address(2));
        ip(&["-n", &link.name, "addr", "add", &own, "dev", there])?;
        ip(&["-n", &link.name, "link", "set", there, "up"])?;
        ip(&["-n", &link.name, "link", "set", "lo", "up"])?;
        Ok(link)
    }

    fn address(&self, end: u8) -> String {
        format!("{}.{end}", self.subnet)
    }

    /// From now on nothing arrives, in either direction.
    fn swallow(&self) {
        let wrong = ["lladdr", "02:00:00:00:00:99", "nud", "permanent", "dev"];
        let (one, two) = (self.address(1), self.address(2));
        let here = [&["neigh", "replace", &two], &wrong[..], &[&self.here]].concat();
        let there = [&["-n", &self.name, "neigh", "replace", &one], &wrong[..], &["hxv0"]].concat();
        ip(&here).and_then(|()| ip(&there)).expect("the link can be broken");
    }

    fn heal(&self) {
        let (one, two) = (self.address(1), self.address(2));
        ip(&["neigh", "del", &two, "dev", &self.here])
            .and_then(|()| ip(&["-n", &self.name, "neigh", "del", &one, "dev", "hxv0"]))
            .expect("the link can be mended");
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", &self.name]);
        let _ = ip(&["link", "del", &self.here]);
    }
}

/// Seconds; the presets are 10 and 30.
const HEARTBEAT: &str = "zmq_heartbeat_ivl: 1000\nzmq_heartbeat_timeout: 2000\n";
const TWO_HEARTBEATS: Duration = Duration::from_secs(4);
/// For the programs that look.
fn looking() -> Duration {
    at_most(3)
}

#[test]
fn a_link_that_swallows_packets_is_noticed_and_made_anew() {
    let link = match Link::new() {
        Ok(link) => link,
        Err(why) => {
            eprintln!("skipped: no network namespace can be made here ({why})");
            return;
        }
    };
    let mut site = Site::new(Make::Ours, &format!("{HEARTBEAT}interface: {}", link.address(1)));
    site.start_master();
    let config = format!("{HEARTBEAT}master: {}\nrecon_max: 500\n", link.address(1));
    site.configure("one", &config);
    site.start("one", Make::Ours, "salt-minion", &["ip", "netns", "exec", &link.name]);
    site.accept(&["one"]);
    site.answer(&["one"]);
    let is_up = || site.runner(&["manage.present"]) == json!(["one"]);
    assert!(is_up());

    // A job that ends while the link is dead: its return must not be lost either.
    let job = super::publish(&site, &["one", "test.sleep", "2"]);
    until("the job runs", || site.read("one.log").contains(&job));
    link.swallow();
    let broken = Instant::now();
    while is_up() {
        let took = broken.elapsed();
        assert!(took < TWO_HEARTBEATS + looking(), "the master does not notice: {took:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let ran = site.salt(&["one", "test.ping"]);
    assert!(ran.out.contains("Not connected"), "{ran:?}");
    std::thread::sleep(TWO_HEARTBEATS);
    link.heal();
    let mended = Instant::now();
    while !is_up() {
        let took = mended.elapsed();
        assert!(took < TWO_HEARTBEATS + looking(), "it does not come back: {took:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    site.answer(&["one"]);
    until("the return arrives", || {
        super::returns(&site, &job).get("one") == Some(&Value::Bool(true))
    });
    assert!(site.read("one.log").contains("was lost"), "the minion noticed by itself");
}
