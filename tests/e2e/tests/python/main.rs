//! Users' own Python: modules, states, grains, renderers, runners, scripts; and what must not happen
//! when they misbehave.

mod faults;
mod fleet;
mod kinds;
mod masterless;
mod names;
mod package;
mod packages;
mod seeds;
mod values;

use std::process::Command;

use halite_e2e::{Machine, Ran, root};

/// Copies a file of `examples/`.
pub fn example(path: &str) -> String {
    let file = root().join("examples").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Brings the tree's modules to the minion.
pub fn sync(machine: &Machine) {
    machine.call(&["saltutil.sync_all"]).code(0);
}

/// Calls a function; returns its return as JSON on one line.
pub fn returned(machine: &Machine, args: &[&str]) -> String {
    let args = [args, &["--out=json", "--out-indent=-1"]].concat();
    let ran = machine.call(&args);
    let text = ran.out.trim().strip_prefix("{\"local\": ").and_then(|rest| rest.strip_suffix('}'));
    text.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

/// Runs a shell script in a mount namespace of its own, where the machine's `etc` and `opt` are
/// `/etc` and `/opt`.
pub fn inside(machine: &Machine, script: &str) -> Ran {
    let allowed = |flags: &[&str]| {
        let mut tried = Command::new("unshare");
        tried.args(flags).args(["mount", "-t", "tmpfs", "none", "/opt"]);
        tried.output().is_ok_and(|output| output.status.success())
    };
    let flags: &[&str] = if allowed(&["-m"]) {
        &["-m"]
    } else if allowed(&["-Umr"]) {
        &["-Umr"]
    } else {
        panic!("this test needs mount namespaces (`unshare -m` or `unshare -Umr`), refused here");
    };
    for name in ["passwd", "group", "hosts", "nsswitch.conf", "resolv.conf", "os-release"] {
        let text = std::fs::read_to_string(format!("/etc/{name}")).unwrap_or_default();
        machine.write(&format!("ns/etc/{name}"), &text);
    }
    machine.write("ns/opt/.keep", "");
    let here = machine.path("");
    let here = here.display().to_string();
    let here = here.trim_end_matches('/');
    let script = format!(
        "set -e\nmount --bind {here}/ns/etc /etc\nmount --bind {here}/ns/opt /opt\n{script}"
    );
    let mut command = Command::new("unshare");
    command.args(flags).args(["sh", "-c", &script]);
    machine.run(&mut command)
}
