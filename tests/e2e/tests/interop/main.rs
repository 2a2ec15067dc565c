//! Interoperability with genuine Salt, in both directions: real daemons of both makes on loopback.
//!
//! Genuine Salt 3006, 3007 and 3008 is installed by pip into the build folder at the first run. Each
//! test is a scenario with all of its daemons started at once: genuine ones need seconds to start, so
//! many small tests would take for ever.

mod command_line;
mod masters;
mod minions;
mod probes;
mod syndics;
mod wires;

use halite_e2e::site::{Make, Site};
use serde_json::{Value, json};

/// A tree that uses a template, pillar, a binary file longer than a chunk, and requisites.
fn tree(site: &Site) {
    site.write("srv/pillar/top.sls", "base:\n  '*':\n    - data\n");
    site.write(
        "srv/pillar/data.sls",
        "who: {{ grains.id }}\nports: [80, 443]\ngreeting: grüß dich\n",
    );
    site.write(
        "srv/salt/web.sls",
        "{% set root = opts.root_dir %}\n\
         {{ root }}/srv/web.conf:\n  file.managed:\n    - source: salt://web.conf.jinja\n    \
         - template: jinja\n    - makedirs: True\n    - context: {word: moin}\n\
         {{ root }}/srv/big.bin:\n  file.managed:\n    - source: salt://big.bin\n    \
         - require:\n      - file: {{ root }}/srv/web.conf\n\
         {{ root }}/srv/tree:\n  file.recurse:\n    - source: salt://tree\n    - include_empty: True\n",
    );
    site.write(
        "srv/salt/web.conf.jinja",
        "{{ word }} {{ pillar.who }} {{ pillar.ports | join('+') }} {{ pillar.greeting }} {{ grains.id }}\n",
    );
    site.write("srv/salt/big.bin", big());
    site.write("srv/salt/tree/a/one", "1\n");
    site.write("srv/salt/tree/b/c/two", "2\n");
}

/// More than two chunks, and no text in any encoding.
fn big() -> Vec<u8> {
    (0..2_500_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Applies the tree on minions and looks at what it made.
fn applies(site: &Site, ids: &[&str]) {
    let ran = site.ask(&["-L", &ids.join(","), "state.apply", "web"]);
    for id in ids {
        let states =
            ran.get(*id).and_then(Value::as_object).unwrap_or_else(|| panic!("{id}: {ran:?}"));
        assert_eq!(states.len(), 3, "{id}: {states:?}");
        for (name, state) in states {
            assert_eq!(state["result"], json!(true), "{id}: {name}: {state}");
            assert!(
                state["changes"].as_object().is_some_and(|changes| !changes.is_empty()),
                "{id}"
            );
        }
        let text = site.read(&format!("{id}/srv/web.conf"));
        assert_eq!(text, format!("moin {id} 80+443 grüß dich {id}\n"));
        let copy = std::fs::read(site.path(&format!("{id}/srv/big.bin"))).unwrap_or_default();
        assert!(copy == big(), "{id}: big.bin is not what the master has");
        assert_eq!(site.read(&format!("{id}/srv/tree/b/c/two")), "2\n", "{id}");
    }
}

/// Asks minions for something and compares each answer.
#[track_caller]
fn same(site: &Site, ids: &[&str], args: &[&str], expected: impl Fn(&str) -> Value) {
    let list = ids.join(",");
    let got = site.ask(&[&["-L", &list], args].concat());
    for id in ids {
        assert_eq!(got.get(*id), Some(&expected(id)), "{id}: {args:?}");
    }
}

/// The short name of a release: `m3008` for `3008.3`.
fn short(version: &str) -> String {
    format!("m{}", version.split('.').next().expect("a release has a number"))
}

fn salt(version: &'static str) -> Make {
    Make::Salt(version)
}
