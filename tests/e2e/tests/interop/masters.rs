//! Our minion on genuine masters of three releases.

use halite_e2e::{
    genuine::VERSIONS,
    site::{Make, Site},
};
use serde_json::json;

use super::{applies, salt, same, tree};

#[test]
fn our_minion_on_genuine_masters() {
    // All at once: a genuine master takes many seconds to start.
    let mut sites: Vec<Site> = VERSIONS.into_iter().map(|version| started(version, "")).collect();
    std::thread::scope(|scope| {
        for site in &mut sites {
            scope.spawn(|| all_is_well(site));
        }
    });
}

fn started(version: &'static str, more: &str) -> Site {
    let mut site = Site::new(salt(version), more);
    tree(&site);
    site.start_master();
    let mine = "mine_functions: {test.ping: [], who: [{mine_function: grains.get}, id]}";
    site.minion("ours", Make::Ours, &format!("{mine}\n{more}"));
    site
}

fn all_is_well(site: &mut Site) {
    let ids = ["ours"];
    site.accept(&ids);
    site.answer(&ids);
    applies(site, &ids);
    same(site, &ids, &["mine.update"], |_| json!(true));
    same(site, &ids, &["mine.get", "*", "who"], |_| json!({"ours": "ours"}));
    let pushed = site.path("srv/salt/web.sls").display().to_string();
    same(site, &ids, &["cp.push", &pushed], |_| json!(true));
    let copy = format!("master/var/cache/salt/master/minions/ours/files{pushed}");
    assert_eq!(site.read(&copy), site.read("srv/salt/web.sls"));
    let found = site.ask(&["-C", "G@kernel:Linux and I@who:ours", "test.ping"]);
    assert_eq!(json!(found), json!({"ours": true}));
    // Longer than the timeout: genuine asks whether it still runs.
    let ran = site.salt(&["ours", "test.sleep", "4", "-t", "1"]).code(0);
    ran.says("ours:\n    True");
    let jobs =
        site.run("salt-run", &["jobs.list_jobs", "search_function=state.apply", "--out=json"]);
    assert!(jobs.out.contains("state.apply"), "{jobs:?}");
    let call = site.run_as(Make::Ours, "salt-call", "ours", &["state.apply", "web", "test=True"]);
    call.code(0).says("Succeeded: 3");
    // It dies and comes back with other keys in its hands: the minion finds its way.
    site.kill("master");
    site.start_master();
    site.answer(&ids);
}
