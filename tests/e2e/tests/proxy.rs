//! Proxy minions: a daemon that speaks for a device, by a Python module of the state tree.
//!
//! The device is a file: its proxy module writes there what it was asked.

use halite_e2e::{
    Ran,
    site::{Make, Site, until},
};
use nix::sys::signal::Signal;
use serde_json::{Map, Value, json};

const GADGET: &str = r#"
import os

STATE = {"count": 0}


def note(what):
    with open(__opts__["proxy"]["device"], "a") as device:
        device.write(what + "\n")


def __virtual__():
    return True


def init(opts):
    if opts["proxy"].get("broken"):
        raise RuntimeError("nobody answers")
    STATE["initialized"] = True
    __context__["session"] = "s1"
    note("init " + opts["id"])


def initialized():
    return STATE.get("initialized", False)


def ping():
    return os.path.exists(__opts__["proxy"]["device"])


def alive(opts):
    return not os.path.exists(opts["proxy"]["device"] + ".lost")


def grains():
    return {"vendor": "acme", "os": "gadgetOS"}


def count(by=1):
    STATE["count"] += by
    return [STATE["count"], __context__.get("session")]


def die():
    os._exit(3)


def shutdown(opts):
    note("shutdown " + opts["id"])
"#;

const MODULE: &str = r#"
import salt.utils.platform

__proxyenabled__ = ["gadget"]


def count(by=1):
    return __proxy__["gadget.count"](by)


def die():
    return __proxy__["gadget.die"]()


def about():
    return [salt.utils.platform.is_proxy(), "gadget.count" in __proxy__, "gadget.nothing" in __proxy__, bool(__proxy__)]
"#;

const PACKAGES: &str = r#"
import salt.utils.platform

__virtualname__ = "pkg"


def __virtual__():
    return __virtualname__ if salt.utils.platform.is_proxy() else False


def list_pkgs():
    return {"firmware": __grains__["vendor"]}
"#;

const STATES: &str = r#"
def counted(name, by):
    return {"name": name, "result": True, "changes": {}, "comment": str(__proxy__["gadget.count"](by)[0])}
"#;

const GRAINS: &str = r#"
__proxyenabled__ = ["gadget"]


def of_device(proxy=None):
    return {"counted": proxy["gadget.count"](0)[0]} if proxy else {}
"#;

const OTHERS: &str = r#"
def of_machine():
    return {"of_machine": True}
"#;

/// A master with a tree for gadgets; its proxies are `g*`, and what their pillar says besides.
fn site(config: &str, pillar: &str) -> Site {
    let mut site = Site::new(Make::Ours, &format!("auto_accept: True\n{config}"));
    site.write("srv/salt/_proxy/gadget.py", GADGET);
    site.write("srv/salt/_modules/gadgets.py", MODULE);
    site.write("srv/salt/_modules/gadget_pkg.py", PACKAGES);
    site.write("srv/salt/_states/gadgets.py", STATES);
    site.write("srv/salt/_grains/gadgets.py", GRAINS);
    site.write("srv/salt/_grains/others.py", OTHERS);
    site.write("srv/salt/counted.sls", "on the device:\n  gadgets.counted:\n    - by: 10\n");
    site.write("srv/pillar/top.sls", "base:\n  'g*': [gadget]\n");
    let device = site.path("device").display().to_string();
    let text =
        format!("proxy:\n  proxytype: gadget\n  device: {device}-{{{{ grains.id }}}}\n{pillar}");
    site.write("srv/pillar/gadget.sls", text);
    site.start_master();
    site
}

/// What the device was told, a line each.
fn told(site: &Site, id: &str) -> Vec<String> {
    site.read(&format!("device-{id}")).lines().map(str::to_owned).collect()
}

fn one(site: &Site, args: &[&str]) -> Value {
    let all: Map<String, Value> = site.ask(args);
    all.get(args[0]).cloned().unwrap_or_else(|| panic!("{args:?}: {all:?}"))
}

fn call(site: &Site, id: &str, args: &[&str]) -> Ran {
    let args = [&["--proxyid", id, "--out=json"], args].concat();
    site.run_as(Make::Ours, "salt-call", "proxies", &args)
}

/// Waits until a proxy has ended by itself, and returns its log.
fn end_of(site: &mut Site, id: &str) -> String {
    until("it ends", || site.has_ended(id));
    assert_eq!(site.stop(id), Some(1));
    site.read(&format!("{id}.log"))
}

#[test]
fn a_device_is_spoken_for() {
    let mut site = site("", "");
    site.proxy("g1", Make::Ours, "");
    site.proxy("g2", Make::Ours, "proxy_keep_alive: False\n");
    site.answer(&["g1", "g2"]);

    // One connection for all jobs, and what `init` left in the context.
    assert_eq!(told(&site, "g1"), ["init g1"]);
    assert_eq!(one(&site, &["g1", "gadgets.count", "5"]), json!([5, "s1"]));
    assert_eq!(one(&site, &["g1", "gadgets.count", "2"]), json!([7, "s1"]));
    assert_eq!(one(&site, &["g2", "gadgets.count"]), json!([1, "s1"]));
    assert_eq!(one(&site, &["g1", "gadgets.about"]), json!([true, true, false, true]));
    let ran = one(&site, &["g1", "state.apply", "counted"]);
    let state = ran.as_object().and_then(|all| all.values().next()).expect("a state");
    assert_eq!((&state["result"], &state["comment"]), (&json!(true), &json!("17")));

    // The grains are the device's, where it tells any; the machine's own are not there.
    let grains = one(&site, &["g1", "grains.items"]);
    for (name, expected) in [
        ("id", json!("g1")),
        ("os", json!("gadgetOS")),
        ("vendor", json!("acme")),
        ("counted", json!(0)),
        ("kernel", json!("proxy")),
        ("os_family", json!("proxy")),
    ] {
        assert_eq!(grains[name], expected, "{name}");
    }
    for name in ["of_machine", "num_cpus", "fqdn", "init", "server_id"] {
        assert_eq!(grains.get(name), None, "{name}");
    }

    // What is about the machine must come from the device's modules, or not at all.
    assert_eq!(one(&site, &["g1", "pkg.list_pkgs"]), json!({"firmware": "acme"}));
    for missing in [["pkg.install", "x"], ["service.start", "x"], ["user.add", "x"]] {
        let answer = one(&site, &["g1", missing[0], missing[1]]);
        let text = answer.as_str().unwrap_or_default();
        assert!(text.contains("is not available") || text.contains("__virtual__"), "{answer}");
    }

    // Its schedule looks after the connection, unless it is told not to.
    let schedule =
        |id: &str| one(&site, &[id, "schedule.list", "show_all=True", "return_yaml=False"]);
    let jobs = schedule("g1");
    let job = &jobs["__proxy_keepalive"];
    assert_eq!(job["function"], json!("status.proxy_reconnect"), "{job}");
    assert_eq!((&job["minutes"], &job["kwargs"]), (&json!(1), &json!({"proxy_name": "gadget"})));
    assert_eq!(schedule("g2").get("__proxy_keepalive"), None);
    site.write("device-g1.lost", "");
    assert_eq!(one(&site, &["g1", "status.proxy_reconnect", "gadget"]), json!(true));
    assert_eq!(told(&site, "g1"), ["init g1", "shutdown g1", "init g1"]);
    std::fs::remove_file(site.path("device-g1.lost")).expect("it was there");

    // Its own folders, and one key for all proxies of a machine.
    for path in [
        "var/cache/salt/proxy/g1/proc",
        "var/cache/salt/proxy/extmods/g1/proxy/gadget.py",
        "var/run/salt/g1/salt-minion.pid",
        "etc/salt/pki/proxy/minion.pem",
    ] {
        assert!(site.path("proxies").join(path).exists(), "{path}");
    }

    // `test.ping` asks the device.
    std::fs::remove_file(site.path("device-g2")).expect("it was there");
    assert_eq!(one(&site, &["g2", "test.ping"]), json!(false));

    assert_eq!(site.stop("g1"), Some(0));
    assert_eq!(told(&site, "g1").last().map(String::as_str), Some("shutdown g1"));
    assert!(site.read("g1.log").contains("ProxyMinion received a SIGTERM. Exiting."));
}

#[test]
fn a_module_that_dies_or_changes_connects_again() {
    let mut site = site("", "");
    site.proxy("g1", Make::Ours, "");
    site.answer(&["g1"]);
    let died = one(&site, &["g1", "gadgets.die"]);
    assert!(died.as_str().is_some_and(|text| text.contains("ended")), "{died}");
    assert_eq!(one(&site, &["g1", "gadgets.count"]), json!([1, "s1"]));
    assert_eq!(told(&site, "g1"), ["init g1", "init g1"]);

    // Bringing nothing new leaves the connection alone; a new module makes one of its own.
    one(&site, &["g1", "saltutil.sync_all"]);
    assert_eq!(one(&site, &["g1", "gadgets.count"]), json!([2, "s1"]));
    site.write("srv/salt/_proxy/gadget.py", GADGET.replace("\"s1\"", "\"s2\""));
    let synced = one(&site, &["g1", "saltutil.sync_proxymodules", "refresh=True"]);
    assert_eq!(synced, json!(["proxy.gadget"]));
    assert_eq!(one(&site, &["g1", "gadgets.count"]), json!([1, "s2"]));
    assert_eq!(told(&site, "g1")[2..], ["shutdown g1", "init g1"]);
}

#[test]
fn a_call_speaks_for_a_device() {
    let mut site = site("", "");
    site.proxy("g1", Make::Ours, "");
    site.answer(&["g1"]);
    let ran = call(&site, "g1", &["gadgets.count", "3"]).code(0);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).expect("JSON")["local"], json!([3, "s1"]));
    call(&site, "g1", &["test.ping"]).code(0).says("true");
    let ran = call(&site, "none", &["test.ping"]).code(1);
    assert!(ran.err.contains("No \"proxy\" configuration key found in pillar or opts"), "{ran:?}");
}

#[test]
fn what_keeps_a_proxy_from_starting_is_said() {
    let mut site = site("", "{% if 'broken' in grains.id %}\n  broken: True\n{% endif %}\n");
    site.proxy("none", Make::Ours, "");
    site.proxy("absent", Make::Ours, "proxy: {proxytype: nosuch}\n");
    site.proxy("g-broken", Make::Ours, "");
    site.proxy("g-delta", Make::Ours, "metaproxy: deltaproxy\n");
    let log = end_of(&mut site, "none");
    let expected = "No proxy key found in pillar or opts for id none. Check your pillar/opts";
    assert!(log.contains(expected), "{log}");
    let log = end_of(&mut site, "absent");
    let expected = "Proxymodule nosuch could not be loaded: 'nosuch.init' is not available.";
    assert!(log.contains(expected), "{log}");
    let log = end_of(&mut site, "g-broken");
    assert!(log.contains("Proxymodule gadget failed to connect: "), "{log}");
    assert!(log.contains("nobody answers"), "{log}");
    let log = end_of(&mut site, "g-delta");
    assert!(log.contains("metaproxy: deltaproxy is not available"), "{log}");
}

#[test]
fn pillar_and_module_become_options() {
    let mut site = site("", "color: red\n");
    let more = "proxy_merge_pillar_in_opts: True\nadd_proxymodule_to_opts: True\n\
                proxy_merge_grains_in_module: False\n";
    site.write(
        "srv/salt/_modules/look.py",
        "def at():\n    return __opts__['proxymodule']['gadget.count'](4)\n",
    );
    site.proxy("g1", Make::Ours, more);
    site.answer(&["g1"]);
    assert_eq!(one(&site, &["g1", "config.get", "color"]), json!("red"));
    assert_eq!(one(&site, &["g1", "look.at"]), json!([4, "s1"]));
    assert_eq!(one(&site, &["g1", "grains.get", "vendor"]), json!(""));
    // A signal of the keyboard ends it, too.
    site.signal("g1", Signal::SIGINT);
    until("it ends", || told(&site, "g1").len() == 2);
}
