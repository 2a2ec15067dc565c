//! The master's disk is full: it says so, goes on publishing, and needs no restart afterwards.

use std::{path::PathBuf, process::Command};

use halite_e2e::site::{Make, Site, until};
use serde_json::json;

use super::{publish, returns};

/// A small disk. Unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf) -> Result<Self, String> {
        std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=48m", "halite-test"]).arg(&path);
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(Self(path));
        }
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    /// Uses up what is left.
    fn fill(&self) {
        use std::io::Write as _;
        let mut file = std::fs::File::create(self.0.join("filler")).expect("a file");
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("the filler goes");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_nothing_but_the_storing() {
    let mut site = Site::new(Make::Ours, "");
    let disk = match Disk::mount(site.path("master/var/cache")) {
        Ok(disk) => disk,
        Err(why) => {
            eprintln!("skipped: no small disk can be mounted here ({why})");
            return;
        }
    };
    site.start_master();
    site.minion("one", Make::Ours, "return_retry_timer: 1\nreturn_retry_timer_max: 2\n");
    site.accept(&["one"]);
    site.answer(&["one"]);
    // The store's own reserve goes first; what does not fit then is refused.
    disk.fill();
    let text = "x".repeat(100_000);
    let mut refused = false;
    for _ in 0..200 {
        let ran = site.salt(&["one", "test.echo", &text, "--out=txt", "-t", "10"]);
        assert!(
            ran.out.contains("xxx"),
            "publishing goes on: {ran:?}\n{}",
            site.read("master.log")
        );
        disk.fill();
        refused = site.read("master.log").contains("disk is full");
        if refused && site.read("master.log").contains("was not stored") {
            break;
        }
    }
    assert!(refused, "it says what is wrong:\n{}", site.read("master.log"));
    let waits = publish(&site, &["one", "test.echo", "later"]);
    disk.free();
    until("what could not be stored is stored", || returns(&site, &waits)["one"] == json!("later"));
    let after = publish(&site, &["one", "test.echo", "after"]);
    until("new jobs are stored", || returns(&site, &after)["one"] == json!("after"));
    assert!(!site.has_ended("master"));
}
