//! Which grain wins: core, users' own, static file, configuration; and what is left out.
#![expect(clippy::unwrap_used, reason = "a test may")]

use halite_grains::{Collector, SALT_VERSION, collect};
use halite_host::Fake;
use halite_value::{Dict, Value, dict, list};

fn opts(more: &Value) -> Dict {
    let opts = dict! { "id" => "web1", "conf_file" => "/etc/salt/minion", "master" => "salt" };
    let opts = opts.as_dict().unwrap().clone();
    opts.update(more.as_dict().unwrap());
    opts
}

fn machine() -> Fake {
    let fake = Fake::new();
    fake.file("/etc/os-release", "NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"12\"\n");
    fake.file(
        "/etc/salt/grains",
        "fromfile: file\nfromconf: file\ndeep: {file: 1, l: [file]}\nos: file\n",
    );
    fake
}

fn own<'a>() -> Collector<'a> {
    let give = |name: &'static str| {
        move |_: &Dict| {
            Ok(Dict::from_iter([
                ("shell", Value::from(name)),
                ("fromfile", Value::from(name)),
                ("kernel", Value::from(name)),
                ("deep", dict! { name => 1, "l" => list![name] }),
            ]))
        }
    };
    Collector::new().with("aaa", Box::new(give("aaa"))).with("zzz", Box::new(give("zzz")))
}

fn text(grains: &Dict, name: &str) -> String {
    grains.get(name).map(|value| value.to_str().to_string()).unwrap_or_default()
}

#[test]
fn later_ones_win() {
    let configured = dict! { "grains" => dict! { "fromconf" => "conf" } };
    let grains = own().collect(&machine(), &opts(&configured)).grains;
    assert_eq!(
        text(&grains, "kernel"),
        "zzz",
        "users' own override core grains, the last one wins"
    );
    assert_eq!(text(&grains, "shell"), "/bin/sh", "but not the other built-in ones");
    assert_eq!(text(&grains, "fromfile"), "file");
    assert_eq!(text(&grains, "fromconf"), "conf");
    assert_eq!(text(&grains, "os"), "file");
    assert_eq!(grains.get("deep").unwrap(), dict! { "file" => 1, "l" => list!["file"] });
}

#[test]
fn deep_merge() {
    let deep = dict! { "grains_deep_merge" => true };
    let grains = own().collect(&machine(), &opts(&deep)).grains;
    let expected = dict! { "aaa" => 1, "l" => list!["file"], "zzz" => 1, "file" => 1 };
    assert_eq!(grains.get("deep").unwrap(), expected);
    let both = dict! { "grains_deep_merge" => true, "grains" => dict! { "deep" => dict! { "conf" => 1 } } };
    let grains = own().collect(&machine(), &opts(&both)).grains;
    assert_eq!(grains.get("deep").unwrap(), dict! { "conf" => 1 }, "the configuration replaces");
}

#[test]
fn a_provider_sees_what_is_known_and_may_fail() {
    let collector = Collector::new()
        .with("broken", Box::new(|_: &Dict| Err("no such device".into())))
        .with("panics", Box::new(|_: &Dict| panic!("oh")))
        .with(
            "derived",
            Box::new(|grains: &Dict| {
                Ok(Dict::from_iter([("mine", format!("{} derived", text(grains, "kernel")))]))
            }),
        );
    let report = collector.collect(&machine(), &opts(&dict! {}));
    assert_eq!(text(&report.grains, "mine"), "Linux derived");
    assert_eq!(report.problems, ["broken: no such device", "panics: it panicked"]);
}

#[test]
fn blacklist() {
    let some = dict! { "grains_blacklist" => list!["ip*", "fromf.*e", "cpu_flags"] };
    let grains = collect(&machine(), &opts(&some));
    for gone in ["ipv4", "ip_interfaces", "fromfile", "cpu_flags"] {
        assert!(!grains.contains(gone), "{gone}");
    }
    assert!(grains.contains("cpu_model") && grains.contains("fromconf"));
}

#[test]
fn without_and_skipped() {
    let report = Collector::new().without("fqdns").collect(&machine(), &opts(&dict! {}));
    assert!(!report.grains.contains("fqdns") && report.grains.contains("fqdn"));
    assert!(report.timings.iter().all(|(name, _)| name != "fqdns"));
    let skipped = collect(&machine(), &opts(&dict! { "skip_grains" => true }));
    assert!(skipped.is_empty());
}

#[test]
fn what_templates_rely_on() {
    let grains = collect(&machine(), &opts(&dict! {}));
    assert_eq!(text(&grains, "id"), "web1");
    assert_eq!(text(&grains, "saltversion"), SALT_VERSION);
    assert_eq!(grains.get("saltversioninfo").unwrap(), list![3008, 3]);
    assert!(matches!(grains.get("osrelease_info"), Some(Value::Tuple(_))));
    assert_eq!(text(&grains, "ps"), "ps -efHww");
    assert_eq!(grains.get("gpus").unwrap(), list![]);
    assert_eq!(grains.get("package").unwrap(), Value::Null);
    assert_eq!(text(&grains, "ca_truststore"), "certifi");
}

#[test]
fn every_call_may_fail() {
    use std::sync::Arc;

    use halite_host::Failing;

    // The jobs run side by side, so which call is the nth is chance: any of them will do.
    for n in (1..400).step_by(7) {
        let failing = Failing::new(Arc::new(machine()), n);
        let report = Collector::new().collect(&failing, &opts(&dict! {}));
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!(text(&report.grains, "id"), "web1");
    }
}
