//! The wire probes: a minion and a master of a few hundred lines of Python, written from the
//! protocol's description alone. What they check is said in `probes/`.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use halite_e2e::{
    free_port, genuine, root,
    site::{Make, Site, until},
};

fn probe(name: &str) -> Command {
    let script: PathBuf = root().join("tests/e2e/probes").join(name);
    let mut command = Command::new(genuine::python());
    command.arg(script).stdin(Stdio::null());
    command
}

/// Starts the minion's probe on our master.
fn minion(site: &Site, id: &str, args: &[&str]) -> Child {
    let log = std::fs::File::create(site.path(&format!("{id}.log"))).expect("a log");
    probe("probe_minion.py")
        .args(["--id", id, "--jobs", "1", "--ret-port", &site.ret.to_string()])
        .arg("--state")
        .arg(site.path(id))
        .args(args)
        .stderr(log.try_clone().expect("a handle"))
        .stdout(log)
        .spawn()
        .expect("python starts")
}

/// Runs minion probes on one of our masters: all checks pass and each answers a ping.
fn on_our_master(more: &str, kinds: &[(&str, &[&str])]) {
    let mut site = Site::new(Make::Ours, more);
    site.write("srv/salt/hello.txt", "hello\n");
    site.start_master();
    // A probe that is refused gives up.
    until("the master listens", || std::net::TcpStream::connect(("127.0.0.1", site.ret)).is_ok());
    let probes: Vec<_> = kinds.iter().map(|(id, args)| (*id, minion(&site, id, args))).collect();
    let ids: Vec<&str> = kinds.iter().map(|(id, _)| *id).collect();
    site.accept(&ids);
    for (id, mut probe) in probes {
        until("the probe waits for a job", || {
            site.read(&format!("{id}.log")).contains("READY")
                || probe.try_wait().is_ok_and(|end| end.is_some())
        });
        // Its subscription takes effect when it does: asked again until it has been reached.
        until("the probe has answered", || {
            site.salt(&[id, "test.ping", "-t", "5"]);
            probe.try_wait().is_ok_and(|end| end.is_some())
        });
        let status = probe.wait().expect("it ends");
        assert!(status.success(), "{id}: {status}\n{}", site.read(&format!("{id}.log")));
    }
}

#[test]
fn the_minions_probe_on_our_master() {
    let newer = ["--enc-algo", "OAEP-SHA224", "--sig-algo", "PKCS1v15-SHA224"];
    on_our_master("", &[("plain", &[]), ("newer", &newer)]);
}

#[test]
fn the_minions_probe_on_other_wires() {
    on_our_master("zmq_filtering: True", &[("filtered", &["--filtering"])]);
    on_our_master("transport: tcp", &[("tcp", &["--transport", "tcp"])]);
    on_our_master("transport: ws", &[("ws", &["--transport", "ws"])]);
}

#[test]
fn our_minion_on_the_masters_probe() {
    let mut site = Site::new(Make::Ours, "");
    let (ret, publish) = (free_port().to_string(), free_port().to_string());
    let log = std::fs::File::create(site.path("probe.log")).expect("a log");
    let mut master = probe("probe_master.py")
        .arg("--dir")
        .arg(site.path("probe"))
        .args(["--ret-port", &ret, "--pub-port", &publish])
        .stderr(log.try_clone().expect("a handle"))
        .stdout(log)
        .spawn()
        .expect("python starts");
    site.ret = ret.parse().expect("a number");
    site.minion("ours", Make::Ours, "");
    until("it answers the probe's ping", || {
        let log = site.read("probe.log");
        log.contains("return from ours")
    });
    let _ = master.kill();
    let _ = master.wait();
}
