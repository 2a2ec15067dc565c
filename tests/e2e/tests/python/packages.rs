//! Renderers that are layers over Python packages: rendered where the package is there, and where it
//! is not, an error that names it.

use std::{path::Path, process::Command};

use halite_e2e::Machine;

/// Renderer, its package as pip knows it and as Python does, a text, and what comes of it.
const RENDERERS: [(&str, &str, &str, &str, &str); 5] = [
    ("mako", "Mako", "mako", "<%! x = 41 %>a: ${x + 1} ${grains['id']}", "{'a': '42 e2e'}"),
    ("genshi", "Genshi", "genshi", "a: ${40 + 2}", "{'a': 42}"),
    ("cheetah", "CT3", "Cheetah", "a: $saltenv", "{'a': 'base'}"),
    ("hjson", "hjson", "hjson", "{\n  a: text without quotes\n}", "{'a': 'text without quotes'}"),
    ("json5", "json5", "json5", "{a: 1,}", "{'a': 1}"),
];

/// Makes an interpreter with those of the packages that pip can get here.
fn interpreter(machine: &Machine) -> String {
    let python = halite_e2e::genuine::environment("renderers", "pyyaml").join("python");
    for (_, package, ..) in RENDERERS {
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args([
            "--retries",
            "0",
            "--timeout",
            "5",
            package,
        ]);
        // Without a network the package stays away, which is the other half of the test.
        let _ = machine.run(&mut command);
    }
    python.display().to_string()
}

fn has(machine: &Machine, python: &str, package: &str) -> bool {
    let mut command = Command::new(Path::new(python));
    machine.run(command.args(["-c", &format!("import {package}")])).code == Some(0)
}

#[test]
fn packages_render_or_are_named() {
    let machine = Machine::new();
    let python = interpreter(&machine);
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}halite: {{python: {python}}}\n"));
    for (renderer, _, package, text, expected) in RENDERERS {
        let pipe = match renderer {
            "hjson" | "json5" => renderer.to_owned(),
            _ => format!("{renderer}|yaml"),
        };
        machine.write("srv/salt/x.sls", &format!("#!{pipe}\n{text}\n"));
        let ran = machine.call(&["slsutil.renderer", "salt://x.sls", "--out=pprint"]);
        if has(&machine, &python, package) {
            assert!(ran.out.contains(expected), "{renderer}: {} {}", ran.out, ran.err);
        } else {
            let needs = format!("needs the Python package `{package}`");
            assert!(ran.err.contains(&needs), "{renderer}: {} {}", ran.out, ran.err);
        }
    }
}

#[test]
fn pyobjects_needs_no_package() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/objects.sls",
        "#!pyobjects\nwith Test.nop('first'):\n    Test.configurable_test_state('second', \
         result=True, changes=False, comment=grains('id'))\n",
    );
    machine
        .call(&["state.apply", "objects"])
        .code(0)
        .says("ID: first")
        .says("ID: second")
        .says("Comment: e2e");
    // Here the template is the first that asks what a package would have.
    machine.call(&["state.show_low_sls", "objects"]).code(0).says("first").says("second");
}

#[test]
fn sealed_values_need_pynacl() {
    let machine = Machine::new();
    machine.write("bare/nacl.py", "raise ImportError('not here')\n");
    let site = machine.path("bare").display().to_string();
    let wrapper = machine.path("python");
    machine.write("python", &format!("#!/bin/sh\nPYTHONPATH={site} exec python3 \"$@\"\n"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, mode).expect("it is ours");
    let config = machine.read("etc/salt/minion").expect("a configuration");
    let wrapper = wrapper.display();
    machine.write("etc/salt/minion", &format!("{config}halite: {{python: {wrapper}}}\n"));
    machine.write("srv/salt/plain.sls", "#!yaml|nacl\na: [nothing sealed]\n");
    machine.write("srv/salt/sealed.sls", "#!yaml|nacl\na: ['NACL[AAAA]']\n");
    let plain = machine.call(&["slsutil.renderer", "salt://plain.sls", "--out=pprint"]);
    assert!(plain.out.contains("{'a': ['nothing sealed']}"), "{} {}", plain.out, plain.err);
    let sealed = machine.call(&["slsutil.renderer", "salt://sealed.sls"]);
    assert!(sealed.err.contains("needs the Python package `PyNaCl`"), "{}", sealed.err);
}
