//! Names of `salt.*` that scripts and users' modules take: our small package answers as the genuine one does.
//!
//! `names.py` has the questions, one a line. The genuine interpreter asks both: with `PYTHONPATH` it finds
//! ours first. What needs a running host (rendering, pillar, syncing) is asked through a user's module.

use std::{path::Path, process::Command};

use halite_e2e::{Machine, genuine, root};
use serde_json::Value;

/// Rendering, pillar and syncing as Python code asks for them.
const MODULE: &str = r##"
import salt.loader
import salt.pillar
import salt.template
import salt.utils.compat
import salt.utils.extmods


def __init__(opts):
    salt.utils.compat.pack_dunder(__name__)


def every(template):
    rend = salt.loader.render(__opts__, __salt__)
    lists = (__opts__["renderer_blacklist"], __opts__["renderer_whitelist"])
    compiled = salt.template.compile_template
    sync = salt.utils.extmods.sync
    return [
        dict(salt.pillar.get_pillar(__opts__, __grains__, __opts__["id"], "base").compile_pillar()),
        dict(salt.pillar.Pillar(__opts__, __grains__, __opts__["id"], "base").compile_pillar()),
        sync(__opts__, "states", saltenv=["base"]),
        sync(__opts__, "states"),
        sync(__opts__, "states", extmod_whitelist={"states": ["none"]}),
        compiled(template, rend, "jinja|yaml", *lists),
        compiled(template, rend, "jinja|yaml", *lists, sls="q"),
        compiled(template + ".none", rend, "jinja|yaml", *lists),
        compiled(":string:", rend, "jinja|yaml", *lists, input_data="#!json\n[1]"),
        rend["yaml"]("a: [1]"),
        ["yaml" in rend, "none" in rend],
    ]
"##;

fn answers(machine: &Machine, python: &Path, folder: &str, shim: Option<&Path>) -> Value {
    machine.write(&format!("{folder}/.keep"), "");
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
    if let Some(shim) = shim {
        command.env("PYTHONPATH", shim);
    }
    command.arg(root().join("tests/e2e/tests/python/names.py")).arg(machine.path(folder));
    let ran = machine.run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let own = machine.path(folder).display().to_string();
    serde_json::from_str(&ran.out.replace(&own, "HERE")).expect("JSON")
}

#[test]
fn the_small_package_answers_as_the_genuine_one() {
    let [.., newest] = genuine::VERSIONS;
    let python = genuine::programs(newest).join("python");
    let machine = Machine::new();
    let shim = root().join("crates/bridge/python/shim");
    let theirs = answers(&machine, &python, "one", None);
    let ours = answers(&machine, &python, "two", Some(&shim));
    let pairs: Vec<_> = theirs
        .as_array()
        .into_iter()
        .flatten()
        .zip(ours.as_array().into_iter().flatten())
        .collect();
    assert!(pairs.len() > 200, "{theirs}");
    let wrong: Vec<String> = pairs
        .iter()
        .filter(|(theirs, ours)| theirs != ours)
        .map(|(theirs, ours)| format!("genuine {theirs}\n   ours {}", ours[1]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rendering_pillar_and_syncing_from_python() {
    let [.., newest] = genuine::VERSIONS;
    let ask = |is_genuine: bool| -> Value {
        let machine = Machine::new();
        machine.write("srv/pillar/top.sls", "base:\n  '*': [p]\n");
        machine.write("srv/pillar/p.sls", "k: {{ grains.kernel }}\nl: [1]\n");
        machine.write("srv/salt/_states/mine.py", "def x(name):\n    return {}\n");
        machine.write("srv/salt/_modules/ask.py", MODULE);
        machine.write("t.sls", "a: {{ 1 + 1 }}\nb: {{ sls }}{{ saltenv }}\n");
        machine.call(&["saltutil.sync_modules"]).code(0);
        let template = machine.path("t.sls").display().to_string();
        let args = ["--local", "--out=json", "-l", "quiet", "ask.every", &template];
        let ran = if is_genuine {
            let mut command = Command::new(genuine::programs(newest).join("salt-call"));
            machine.run(command.arg("-c").arg(machine.path("etc/salt")).args(args))
        } else {
            machine.call(&args)
        };
        assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
        serde_json::from_str(&ran.out).expect("JSON")
    };
    assert_eq!(ask(true), ask(false));
}
