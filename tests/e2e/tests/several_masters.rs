//! One minion, several masters: all at once, or one at a time.

#![expect(clippy::print_stderr, reason = "what tests have to say is for people")]

use std::time::Instant;

use halite_e2e::site::{Make, Site, at_most, until};
use serde_json::{Value, json};

/// Two masters with one key pair, the first of which has a configured minion `one`, accepted by both.
fn two(more: &str) -> (Site, Site) {
    let mut first = Site::new(Make::Ours, "");
    let second = Site::new(Make::Ours, "");
    first.start_master();
    let masters = format!("master: ['127.0.0.1:{}', '127.0.0.1:{}']", first.ret, second.ret);
    first.minion("one", Make::Ours, &format!("{masters}\n{more}"));
    first.accept(&["one"]);
    let (from, to) = (first.path("master/etc/salt/pki"), second.path("master/etc/salt"));
    std::fs::create_dir_all(&to).expect("a folder");
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp is there").success());
    (first, second)
}

fn is_up(site: &Site) -> bool {
    // A master that is just starting does not answer.
    let ran = site.run("salt-run", &["manage.present", "--out=json"]);
    serde_json::from_str::<Value>(&ran.out).is_ok_and(|present| present == json!(["one"]))
}

#[test]
fn all_at_once() {
    let (mut first, mut second) = two("");
    second.start_master();
    first.answer(&["one"]);
    second.answer(&["one"]);
    // A job belongs to the master that gave it, and so does its return.
    let ran = second.salt(&["one", "test.echo", "from the second"]).code(0);
    ran.says("from the second");
    assert!(!first.read("master.log").contains("test.echo"));
    // An event is for all of them.
    let heard = |site: &Site| {
        let known = site.run("salt-run", &["state.event", "all/of/us", "count=1"]).out;
        known.contains("all/of/us")
    };
    std::thread::scope(|scope| {
        let ears = [&first, &second].map(|site| scope.spawn(move || heard(site)));
        let mut told = 0;
        until("both heard it", || {
            second.salt(&["one", "event.send", "all/of/us"]).code(0);
            told += 1;
            ears.iter().all(std::thread::ScopedJoinHandle::is_finished)
        });
        assert!(ears.into_iter().all(|ear| ear.join().expect("no panic")), "{told}");
    });
    first.kill("master");
    second.salt(&["one", "test.ping"]).code(0).says("True");
    first.start_master();
    first.answer(&["one"]);
}

#[test]
fn one_at_a_time_and_back() {
    let more = "master_type: failover\nmaster_alive_interval: 1\nmaster_failback: True\n\
                master_failback_interval: 1\nauth_timeout: 5\nauth_tries: 1\nretry_dns: 0";
    let (mut first, mut second) = two(more);
    second.start_master();
    first.answer(&["one"]);
    assert!(!is_up(&second), "one at a time");
    // A job that ends while nobody is there to take its return: the next master gets it.
    let side = first.path("side").display().to_string();
    let command = format!("sleep 10; echo ran >> {side}");
    let ran = first.salt(&["--async", "one", "cmd.run", &command]).code(0);
    let jid = ran.out.split_whitespace().last().expect("a job id").to_owned();
    until("the job runs", || first.read("one.log").contains("cmd.run"));
    first.kill("master");
    let before = Instant::now();
    until("the minion goes to the other", || is_up(&second));
    let took = before.elapsed();
    assert!(took < at_most(15), "{took:?}");
    second.answer(&["one"]);
    until("the job ends", || first.read("side") == "ran\n");
    until("its return is told", || {
        let log = second.read("master.log");
        log.lines().any(|line| line.contains("Got return from one") && line.contains(&jid))
    });
    first.start_master();
    until("it comes back", || is_up(&first));
    first.answer(&["one"]);
    until("it leaves the other", || !is_up(&second));
    assert_eq!(first.read("side"), "ran\n");
}

#[test]
fn six() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let mut site = Site::new(Make::Ours, "interface: '::1'\nipv6: True");
    site.start_master();
    site.minion("one", Make::Ours, "master: '::1'\nipv6: True");
    site.minion("two", Make::Ours, &format!("master: '[::1]:{}'", site.ret));
    site.accept(&["one", "two"]);
    site.answer(&["one", "two"]);
}

#[test]
fn states_at_start() {
    let mut site = Site::new(Make::Ours, "");
    site.write("srv/salt/top.sls", "base:\n  'high':\n    - mark\n");
    site.write("srv/salt/own.sls", "base:\n  '*':\n    - mark\n");
    site.write(
        "srv/salt/mark.sls",
        "{{ opts.root_dir }}/mark:\n  file.managed:\n    - contents: {{ grains.id }}\n",
    );
    site.start_master();
    site.minion("high", Make::Ours, "startup_states: highstate");
    site.minion("sls", Make::Ours, "startup_states: sls\nsls_list: [mark]");
    site.minion("top", Make::Ours, "startup_states: top\ntop_file: own.sls");
    let ids = ["high", "sls", "top"];
    site.accept(&ids);
    for id in ids {
        until(&format!("{id} applies its states"), || {
            site.read(&format!("{id}/mark")) == format!("{id}\n")
        });
    }
    // The master files what they returned as jobs of its own making.
    until("the returns are in the history", || {
        let jobs = site.runner(&["jobs.list_jobs"]).to_string();
        ["state.highstate", "state.sls", "state.top"].iter().all(|fun| jobs.contains(fun))
    });
}

#[test]
fn the_schedule_runs_once_for_all_masters() {
    let job = "schedule: {only: {function: cmd.run, args: ['echo ran >> RAN'], seconds: 3600}}\n";
    let (mut first, mut second) = {
        let mut first = Site::new(Make::Ours, "");
        let second = Site::new(Make::Ours, "");
        first.start_master();
        let masters = format!("master: ['127.0.0.1:{}', '127.0.0.1:{}']", first.ret, second.ret);
        let ran = first.path("ran").display().to_string();
        let more = format!("{masters}\n{}", job.replace("RAN", &ran));
        first.configure("one", &more);
        (first, second)
    };
    // Both masters know the key before the minion comes: it has them at the same time.
    first.start_minion("one", Make::Ours);
    first.accept(&["one"]);
    let (from, to) = (first.path("master/etc/salt/pki"), second.path("master/etc/salt"));
    std::fs::create_dir_all(&to).expect("a folder");
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp is there").success());
    second.start_master();
    first.answer(&["one"]);
    second.answer(&["one"]);
    until("the job has run", || first.read("ran").contains("ran"));
    let kept = |site: &Site| {
        let jobs = site.run("salt-run", &["jobs.list_jobs", "--out=json"]).out;
        jobs.matches("echo ran >>").count()
    };
    until("its return is kept", || kept(&first) + kept(&second) > 0);
    // A second start of the minion, with both masters there from the first moment.
    first.kill("one");
    first.start_minion("one", Make::Ours);
    until("it has run again", || first.read("ran").lines().count() > 1);
    first.answer(&["one"]);
    second.answer(&["one"]);
    until("both returns are kept", || kept(&first) + kept(&second) > 1);
    assert_eq!(first.read("ran").lines().count(), 2, "{}", first.read("one.log"));
    assert_eq!(kept(&first) + kept(&second), 2);
}
