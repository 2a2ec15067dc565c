//! Genuine minions of three releases, and one of ours, on our master.

use halite_e2e::{
    genuine::VERSIONS,
    site::{Make, Site, until},
};
use serde_json::{Value, json};

use super::{applies, salt, same, short, tree};

#[test]
fn genuine_minions_on_our_master() {
    let mut site = Site::new(Make::Ours, "peer: {'.*': ['test.*']}");
    tree(&site);
    site.start_master();
    let names: Vec<String> = VERSIONS.iter().map(|version| short(version)).collect();
    let mut ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let mine = "mine_functions: {test.ping: [], who: [{mine_function: grains.get}, id]}";
    for (version, id) in VERSIONS.into_iter().zip(&ids) {
        site.minion(id, salt(version), mine);
    }
    site.minion("ours", Make::Ours, mine);
    ids.push("ours");
    let events = watch(&site);
    // Those that wait for acceptance sign in again and again, which is heard.
    until("the watcher hears", || site.read("events").contains("salt/auth"));
    site.accept(&ids);
    site.answer(&ids);

    for (version, id) in VERSIONS.into_iter().zip(&ids) {
        same(&site, &[id], &["grains.get", "saltversion"], |_| json!(version));
    }
    // Targets: what the master knows of grains and pillar came from the minions themselves.
    let found = site.ask(&["-G", "saltversion:3006.*", "test.ping"]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["m3006"]);
    let found = site.ask(&["-C", "I@who:m3007 or E@^m3008$", "test.ping"]);
    assert_eq!(found.len(), 2, "{found:?}");
    for (id, ret) in site.ask(&["*", "test.arg", "a", "b=[1, 2]"]) {
        assert_eq!((&ret["args"], &ret["kwargs"]["b"]), (&json!(["a"]), &json!([1, 2])), "{id}");
    }
    same(&site, &ids, &["pillar.ls"], |_| json!(["who", "ports", "greeting"]));
    applies(&site, &ids);
    mine_and_files(&site, &ids);
    history(&site, &ids);
    a_long_job_is_waited_for(&site, &ids);
    told(&site, &ids, events);

    // A deleted key takes the shared key with it; everybody else notices and signs in again.
    site.kill("m3006");
    site.run("salt-key", &["-d", "m3006", "-y"]).code(0);
    site.answer(&ids[1..]);
    // The master dies and comes back: nobody has to be told.
    site.kill("master");
    site.start_master();
    site.answer(&ids[1..]);
}

/// The mine, files pushed to the master, and publishing through it.
fn mine_and_files(site: &Site, ids: &[&str]) {
    let everybody: Value = ids.iter().map(|id| ((*id).to_owned(), json!(id))).collect();
    same(site, ids, &["mine.update"], |_| json!(true));
    same(site, ids, &["mine.get", "*", "who"], |_| everybody.clone());
    let pushed = site.path("srv/salt/web.sls").display().to_string();
    same(site, ids, &["cp.push", &pushed], |_| json!(true));
    for id in ids {
        let copy = format!("master/var/cache/salt/master/minions/{id}/files{pushed}");
        assert_eq!(site.read(&copy), site.read("srv/salt/web.sls"), "{id}");
    }
    same(site, ids, &["publish.publish", "ours", "test.echo", "hi"], |_| json!({"ours": "hi"}));
    same(site, ids, &["cp.hash_file", "salt://tree/a/one"], |_| {
        json!({
            "hash_type": "sha256",
            "hsum": "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865",
        })
    });
}

/// What was done can be looked up.
fn history(site: &Site, ids: &[&str]) {
    let jobs = site.runner(&["jobs.list_jobs", "search_function=state.apply"]);
    let jid = jobs.as_object().and_then(|jobs| jobs.keys().next_back()).expect("a job").clone();
    let looked = site.runner(&["jobs.lookup_jid", &jid]);
    let returns = looked.get("data").unwrap_or(&looked);
    for id in ids {
        assert_eq!(returns[id].as_object().map(serde_json::Map::len), Some(3), "{id}: {looked}");
    }
}

/// Genuine minions say nothing while they work: the command line has to ask them.
fn a_long_job_is_waited_for(site: &Site, ids: &[&str]) {
    let ran = site.salt(&["*", "test.sleep", "4", "-t", "1", "--out=json"]).code(0);
    let got = halite_e2e::site::documents(&ran.out);
    for id in ids {
        assert_eq!(got.get(*id), Some(&json!(true)), "{id}: {ran:?}");
    }
}

/// Starts to listen to the master's events; what is heard is written to a file.
fn watch(site: &Site) -> std::process::Child {
    until("the bus is there", || {
        site.path("master/var/run/salt/master/master_event_pub.ipc").exists()
    });
    let out = std::fs::File::create(site.path("events")).expect("a file");
    let mut command = Make::Ours.program("salt-run");
    command.arg("-c").arg(site.path("master/etc")).args(["state.event", "count=-1"]);
    command.stdout(out).spawn().expect("a watcher")
}

/// Every minion's events are on the master's bus.
fn told(site: &Site, ids: &[&str], mut watcher: std::process::Child) {
    same(site, ids, &["event.send", "my/own", "{n: 7}"], |_| json!(true));
    until("the events are seen", || {
        let heard = site.read("events");
        ids.iter().all(|id| {
            let mut own = heard.lines().filter(|line| line.contains(&format!("\"{id}\"")));
            own.any(|line| line.starts_with("my/own\t") && line.contains("\"n\": 7"))
        })
    });
    let heard = site.read("events");
    for id in ids {
        for tag in
            [format!("salt/minion/{id}/start\t"), "salt/auth\t".into(), "minion/refresh".into()]
        {
            assert!(heard.lines().any(|line| line.starts_with(&tag)), "{tag} in\n{heard}");
        }
    }
    let _ = watcher.kill();
    let _ = watcher.wait();
}
