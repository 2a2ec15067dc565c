//! One executable, many names: what each program answers before it does any work.

use std::process::Command;

use halite_e2e::Machine;

#[test]
fn every_name_of_salt_is_a_program() {
    let machine = Machine::new();
    machine.halite(&["install-links", "bin"]).code(0);
    let names = [
        "salt",
        "salt-api",
        "salt-call",
        "salt-cloud",
        "salt-cp",
        "salt-key",
        "salt-master",
        "salt-minion",
        "salt-proxy",
        "salt-run",
        "salt-ssh",
        "salt-syndic",
    ];
    for name in names {
        let link = machine.path("bin").join(name);
        let version = machine.run(Command::new(&link).arg("--version")).code(0);
        assert!(version.out.starts_with(&format!("{name} 3008.")), "{}", version.out);
        machine.run(Command::new(&link).arg("--help")).code(0).says("--version");
        machine
            .run(Command::new(&link).arg("--no-such-option"))
            .code(64)
            .complains("no such option");
    }
}

#[test]
fn a_misspelt_command_gets_a_suggestion() {
    Machine::new().halite(&["docter"]).code(64).complains("did you mean `doctor`?");
}

#[test]
fn a_misspelt_option_of_the_configuration_is_pointed_at() {
    let machine = Machine::new();
    machine.write("etc/salt/minion.d/typo.conf", "mater: salt.example.org\n");
    let config = machine.path("etc/salt");
    let ran = machine.halite(&["doctor", "--config", "-c", &config.display().to_string()]);
    let text = format!("{}{}", ran.out, ran.err);
    assert!(text.contains("mater") && text.contains("master"), "{text}");
    assert!(text.contains("typo.conf"), "{text}");
}

#[test]
fn a_daemon_of_a_user_that_does_not_exist_says_so() {
    let machine = Machine::new();
    machine.write("etc/salt/master", &format!("root_dir: {}\n", machine.path("").display()));
    let config = machine.path("etc/salt").display().to_string();
    for daemon in ["master", "minion"] {
        let ran = machine.halite(&[daemon, "-c", &config, "-u", "no-such-user-here"]);
        ran.code(67).complains("user no-such-user-here. The user is not available.");
    }
}
