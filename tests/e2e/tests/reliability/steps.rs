//! The master dies at each step between receiving a return and acknowledging it.

use halite_e2e::site::{Make, Site, until};
use serde_json::json;

use super::{publish, returns, times_stored};

/// What `halite: {die_at: …}` knows of, in the order in which a return meets it.
const STEPS: [&str; 4] = ["return-received", "return-stored", "return-cached", "return-shown"];

#[test]
fn a_return_survives_a_master_that_dies_while_storing_it() {
    std::thread::scope(|scope| {
        for step in STEPS {
            scope.spawn(move || dies_at(step));
        }
    });
}

fn dies_at(step: &str) {
    let mut site = Site::new(Make::Ours, "");
    let config = site.read("master/etc/master");
    site.start_master();
    site.minion("one", Make::Ours, "");
    site.accept(&["one"]);
    site.answer(&["one"]);
    site.kill("master");
    site.write("master/etc/master", format!("{config}halite: {{die_at: {step}}}\n"));
    site.start_master();
    until("it is connected", || {
        site.run("salt-run", &["manage.present", "--out=json"]).out.contains("one")
    });
    let side = site.path("side").display().to_string();
    let job = publish(&site, &["one", "cmd.run", &format!("sleep 1; echo ran | tee -a {side}")]);
    until("the master dies", || site.has_ended("master"));
    site.kill("master");
    site.write("master/etc/master", config);
    site.start_master();
    until("the return is there", || returns(&site, &job)["one"] == json!("ran"));
    site.answer(&["one"]);
    assert_eq!(site.read("side"), "ran\n", "{step}: it ran once");
    assert!(times_stored(&site, &job) <= 1, "{step}: it is stored once");
    let waiting = site.run_as(Make::Ours, "salt-call", "one", &["saltutil.running", "--out=json"]);
    assert!(!waiting.out.contains(&job), "{step}: {waiting:?}");
}
