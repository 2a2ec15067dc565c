//! Masters of both makes above and below each other.
//!
//! A genuine syndic is 3007's: one of 3008.3 stalls after its sign-in, below a genuine master too.

use std::os::unix::fs::symlink;

use halite_e2e::{
    genuine::{NEWEST, VERSIONS},
    site::{Make, Site, until},
};
use serde_json::json;

use super::salt;

/// A master of masters of one make, and below it a master and a syndic of another with our minion.
fn two(top: Make, low: Make, syndic: Make) -> (Site, Site) {
    let options = match top {
        // Other genuine programs start on the same machine meanwhile: a syndic of theirs is slow to tell.
        Make::Ours => "order_masters: True\nsyndic_wait: 20",
        // Waits as long with every command.
        Make::Salt(_) => "order_masters: True",
    };
    let mut above = Site::new(top, options);
    above.start_master();
    let more = format!("syndic_master: 127.0.0.1\nsyndic_master_port: {}", above.ret);
    let mut below = Site::new(low, &more);
    let minion = format!(
        "id: low\nroot_dir: {}\nuser: root\nacceptance_wait_time: 1\npublish_port: {}\n",
        below.path("master").display(),
        above.publish
    );
    below.write("master/etc/minion", minion);
    symlink(below.path("master"), below.path("synd")).expect("a link");
    below.start_master();
    below.minion("m1", Make::Ours, "");
    below.minion("m2", Make::Ours, "");
    below.accept(&["m1", "m2"]);
    below.answer(&["m1", "m2"]);
    below.start("synd", syndic, "salt-syndic", &[]);
    above.accept(&["low"]);
    let mark = above.path("master/var/cache/salt/master/syndics/low");
    until("the syndic announces itself", || match top {
        Make::Ours => mark.exists(),
        // A genuine master notes it at the first return.
        Make::Salt(_) => mark.exists() || !above.ask(&["m1", "test.ping"]).is_empty(),
    });
    (above, below)
}

fn all_is_well(above: &Site) {
    let everybody = json!({"m1": true, "m2": true});
    until("everybody answers", || json!(above.ask(&["*", "test.ping"])) == everybody);
    assert_eq!(json!(above.ask(&["-L", "m1,m2", "test.ping"])), everybody);
    assert_eq!(json!(above.ask(&["-G", "id:m2", "test.ping"])), json!({"m2": true}));
    above.salt(&["m1", "test.sleep", "7", "-t", "1"]).says("m1:\n    True");
    let ran = above.salt(&["--async", "m1", "test.echo", "kept"]).code(0);
    let jid = ran.out.split_whitespace().last().expect("a job id").to_owned();
    until("the return is kept", || {
        above.runner(&["jobs.lookup_jid", &jid]).to_string().contains("kept")
    });
}

#[test]
fn ours_below_a_genuine_master() {
    let (above, _below) = two(salt(NEWEST), Make::Ours, Make::Ours);
    all_is_well(&above);
}

#[test]
fn genuine_below_ours() {
    let (above, _below) = two(Make::Ours, salt(NEWEST), salt(VERSIONS[1]));
    all_is_well(&above);
}

#[test]
fn a_genuine_syndic_on_our_master() {
    let (above, _below) = two(Make::Ours, Make::Ours, salt(VERSIONS[1]));
    all_is_well(&above);
}
