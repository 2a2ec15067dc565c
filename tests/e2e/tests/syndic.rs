//! Masters below a master: jobs go down, returns come up, and everybody is accounted for.
//!
//! Genuine masters and syndics are in `interop/syndics.rs`.

use std::{
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use halite_e2e::site::{Make, Site, at_most, until};
use serde_json::{Value, json};

/// A master of masters.
fn top(more: &str) -> Site {
    let mut site = Site::new(Make::Ours, &format!("order_masters: True\n{more}"));
    site.start_master();
    site
}

/// A master with a syndic that serves these masters above, and minions of its own.
fn below(id: &str, above: &[&Site], minions: &[&str], more: &str) -> Site {
    let addresses: Vec<_> = above.iter().map(|site| format!("'127.0.0.1:{}'", site.ret)).collect();
    let config = format!("syndic_master: [{}]\n{more}", addresses.join(", "));
    let mut site = Site::new(Make::Ours, &config);
    let root = site.path("master").display().to_string();
    let minion = format!("id: {id}\nroot_dir: {root}\nuser: root\nacceptance_wait_time: 1\n");
    site.write("master/etc/minion", minion);
    symlink(site.path("master"), site.path("synd")).expect("a link");
    site.start_master();
    site.start("synd", Make::Ours, "salt-syndic", &[]);
    for minion in minions {
        site.minion(minion, Make::Ours, "");
    }
    if !minions.is_empty() {
        site.accept(minions);
        site.answer(minions);
    }
    site
}

/// Waits until a master of masters knows its syndics.
fn knows(site: &Site, syndics: &[&str]) {
    let known =
        |id: &&str| site.path(&format!("master/var/cache/salt/master/syndics/{id}")).exists();
    until("the syndics announce themselves", || syndics.iter().all(known));
}

#[track_caller]
fn pings(site: &Site, target: &[&str], expected: Value) {
    assert_eq!(json!(site.ask(&[target, &["test.ping"]].concat())), expected, "{target:?}");
}

#[test]
fn a_relay_is_transparent() {
    let acl = "external_auth: {auto: {ann: [{'d*': [test.ping]}], bob: [test.ping]}}";
    let mut top = top(acl);
    top.minion("direct", Make::Ours, "");
    let mut one = below("one", &[&top], &["a1", "a2"], "");
    let two = below("two", &[&top], &["b1"], "");
    top.accept(&["direct", "one", "two"]);
    top.answer(&["direct"]);
    knows(&top, &["one", "two"]);

    // Everybody, and no syndic; and nobody waits for a clock.
    let begun = Instant::now();
    pings(&top, &["*"], json!({"a1": true, "a2": true, "b1": true, "direct": true}));
    assert!(begun.elapsed() < at_most(3), "{:?}", begun.elapsed());
    pings(&top, &["a*"], json!({"a1": true, "a2": true}));
    pings(&top, &["-L", "a2,b1"], json!({"a2": true, "b1": true}));
    pings(&top, &["-G", "id:b1"], json!({"b1": true}));
    pings(
        &top,
        &["-C", "G@kernel:Linux and not a1 and not direct"],
        json!({"a2": true, "b1": true}),
    );
    let begun = Instant::now();
    assert!(top.ask(&["nosuch", "test.ping"]).is_empty());
    assert!(begun.elapsed() < at_most(3), "the syndics say that nobody is meant");

    let batched = top.salt(&["-b", "1", "*", "test.ping", "--out=json", "--static"]).code(0);
    for id in ["a1", "a2", "b1", "direct"] {
        assert!(batched.out.contains(&format!("\"{id}\": true")), "{}", batched.out);
    }

    // A failure is a failure, and longer than the timeout is no failure.
    top.salt(&["a1", "cmd.run", "exit 3"]).code(1).says("a1:");
    top.salt(&["a1", "test.sleep", "3", "-t", "1"]).code(0).says("True");
    two.write(
        "srv/salt/mark.sls",
        "{{ opts.root_dir }}/mark:\n  file.managed:\n    - contents: x\n",
    );
    top.salt(&["b1", "state.apply", "mark"]).code(0).says("Succeeded: 1");

    // The job is known above, with those below.
    let ran = top.salt(&["--async", "[ab]*", "test.echo", "kept"]).code(0);
    let jid = ran.out.split_whitespace().last().expect("a job id").to_owned();
    let all = json!({"a1": "kept", "a2": "kept", "b1": "kept"});
    until("the returns are kept", || top.runner(&["jobs.lookup_jid", &jid]) == all);
    until("the minions are kept", || {
        let job = top.runner(&["jobs.list_job", &jid]);
        ["a1", "a2", "b1"].iter().all(|id| job["Minions"].to_string().contains(id))
    });

    // Events of minions below, under their own tag and the syndic's.
    for tag in ["from/below", "syndic/one/from/below"] {
        std::thread::scope(|scope| {
            let ear = scope.spawn(|| top.run("salt-run", &["state.event", tag, "count=1"]).out);
            until("the event is heard", || {
                one.salt(&["a1", "event.send", "from/below"]).code(0);
                ear.is_finished()
            });
            assert!(ear.join().expect("no panic").contains(tag));
        });
    }

    // CVE-2022-22941: no minion of ours is not «any minion»; and what is allowed is checked below, too.
    let as_user = |name: &str, args: &[&str]| {
        top.salt(&[&["-a", "auto", "--username", name, "--password", "x"], args].concat())
    };
    assert!(as_user("ann", &["direct", "test.ping"]).out.contains("True"));
    for target in ["a1", "*", "nosuch"] {
        let ran = as_user("ann", &[target, "test.ping"]);
        assert!(ran.out.contains("Authorization error") && !ran.out.contains("True"), "{ran:?}");
    }
    assert!(as_user("bob", &["a1", "test.ping"]).out.contains("True"));
    assert!(as_user("bob", &["a1", "test.echo", "no"]).out.contains("Authorization error"));

    // A minion that went away is named at once, by name, as one of ours is.
    one.kill("a2");
    until("its master knows", || one.salt(&["a2", "test.ping"]).out.contains("[Not connected]"));
    let begun = Instant::now();
    let ran = top.salt(&["*", "test.ping"]).code(1);
    let ran = ran.says("a2:\n    Minion did not return. [Not connected]").says("b1:\n    True");
    assert_eq!(ran.out.matches("a2:").count(), 1, "{}", ran.out);
    assert!(begun.elapsed() < at_most(3), "{:?}", begun.elapsed());

    // A syndic that ends while a job runs: the job goes on, and what it returns comes when it is back.
    let ran = top.salt(&["--async", "a1", "test.sleep", "4"]).code(0);
    let jid = ran.out.split_whitespace().last().expect("a job id").to_owned();
    until("the job runs", || one.read("a1.log").contains(&jid));
    one.kill("synd");
    let ran = top.salt(&["*", "test.ping"]).code(1);
    ran.says("one:\n    Minion did not return. [Not connected]").says("b1:\n    True");
    std::thread::sleep(Duration::from_secs(4));
    one.start("synd", Make::Ours, "salt-syndic", &[]);
    until("the return comes up", || top.runner(&["jobs.lookup_jid", &jid]) == json!({"a1": true}));
    until("all is well again", || {
        top.ask(&["a1", "test.ping"]) == *json!({"a1": true}).as_object().expect("a map")
    });
}

#[test]
fn three_levels() {
    let top = top("");
    let mid = below("mid", &[&top], &["m1"], "order_masters: True");
    let mut low = below("low", &[&mid], &["l1", "l2"], "");
    top.accept(&["mid"]);
    mid.accept(&["low"]);
    knows(&top, &["mid"]);
    knows(&mid, &["low"]);
    let begun = Instant::now();
    pings(&top, &["*"], json!({"m1": true, "l1": true, "l2": true}));
    pings(&top, &["l2"], json!({"l2": true}));
    assert!(begun.elapsed() < at_most(5), "{:?}", begun.elapsed());
    top.salt(&["l1", "test.sleep", "3", "-t", "1"]).code(0).says("True");
    // The lowest goes away: its minions are told as missing by the one between, up to the top.
    low.kill("l1");
    until("the top is told", || {
        let ran = top.salt(&["l*", "test.ping"]);
        ran.out.contains("l1:\n    Minion did not return. [Not connected]")
            && ran.out.contains("l2:\n    True")
    });
}

#[test]
fn several_masters_above() {
    let first = top("");
    let second = Site::new(Make::Ours, "order_masters: True");
    // The pinned key is one: so is the masters'.
    let (from, to) = (first.path("master/etc/salt/pki"), second.path("master/etc/salt"));
    until("the first has its keys", || from.join("master/master.pub").exists());
    std::fs::create_dir_all(&to).expect("a folder");
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp is there").success());
    let mut second = second;
    second.start_master();
    let low = below("low", &[&first, &second], &["l1"], "syndic_failover: ordered");
    first.accept(&["low"]);
    second.accept(&["low"]);
    knows(&first, &["low"]);
    knows(&second, &["low"]);
    for (site, word) in [(&first, "one"), (&second, "two")] {
        let said = site.ask(&["*", "test.echo", word]);
        assert_eq!(json!(said), json!({"l1": word}));
    }
    // A return goes to who gave the job, and to nobody else.
    let jobs = |site: &Site| site.run("salt-run", &["jobs.list_jobs", "--out=json"]).out;
    assert!(!jobs(&first).contains("\"two\""), "{}", jobs(&first));
    drop(low);
}

#[test]
fn refused_and_unknown_keys() {
    let top = top("");
    let mut low = below("low", &[&top], &[], "");
    until("the syndic's key is shown", || {
        top.path("master/etc/salt/pki/master/minions_pre/low").exists()
    });
    top.run("salt-key", &["-r", "low", "-y"]).code(0);
    until("the syndic ends", || low.has_ended("synd"));
    assert_eq!(low.stop("synd"), Some(77));
}
