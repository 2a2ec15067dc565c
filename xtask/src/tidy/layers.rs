//! Dependencies point one way: programs → engine, content → mechanisms → words.
//!
//! Inside a layer crates may lean on each other (cargo forbids circles), except in `content`, where
//! the only arrows go to `modules`: a state may call an execution module, never the reverse. The
//! engine and the content do not know each other; programs hand the engine its registry. What only
//! tests depend on is free.

use super::{Findings, Package};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// No I/O.
    Words,
    Mechanisms,
    Content,
    Engine,
    Programs,
    /// `xtask`, `xtask/reference`, `tests/e2e`: nothing may lean on them.
    Beside,
}

use Layer::{Beside, Content, Engine, Mechanisms, Programs, Words};

/// Every package, by name without `halite-`.
const LAYERS: [(Layer, &[&str]); 6] = [
    (Words, &["value", "wire", "target", "config", "spec", "macros", "pyregex", "schedule"]),
    (
        Mechanisms,
        &[
            "host",
            "crypt",
            "keys",
            "transport",
            "client",
            "renderers",
            "fileserver",
            "pillar",
            "output",
            "bridge",
            "grains",
            "store",
        ],
    ),
    (Content, &["modules", "states", "runners", "beacons", "returners"]),
    (Engine, &["highstate"]),
    (Programs, &["master", "minion", "api", "halite", "testkit"]),
    (Beside, &["xtask", "e2e", "reference"]),
];

pub(super) fn check(packages: &[Package]) -> Findings {
    let mut findings = Findings::new();
    for package in packages {
        let from = short(&package.name);
        let Some(layer) = layer_of(from) else {
            findings.push(format!(
                "{}: belongs to no layer: add it to xtask/src/tidy/layers.rs",
                package.name
            ));
            continue;
        };
        for to in package.depends_on.iter().map(|name| short(name)) {
            if layer_of(to).is_some_and(|other| !allowed((from, layer), (to, other))) {
                findings.push(format!(
                    "{from} ({layer:?}) must not depend on {to}: arrows go programs → engine, \
                     content → mechanisms → words"
                ));
            }
        }
    }
    findings
}

fn allowed((from, layer): (&str, Layer), (to, other): (&str, Layer)) -> bool {
    match (layer, other) {
        (_, Beside) => false,
        (Beside, _) => true,
        // Fixtures may know everything; only tests and programs may know fixtures.
        (Programs, _) if from == "testkit" => true,
        (_, Programs) if to == "testkit" => false,
        (Programs, _) => true,
        (Content, Content) => to == "modules" && from != "modules",
        (Engine, Content) | (Content, Engine) => false,
        (Engine | Content, Mechanisms | Words) => true,
        (Mechanisms, Mechanisms | Words) => true,
        (one, other) => one == other,
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("halite-").unwrap_or(name)
}

fn layer_of(name: &str) -> Option<Layer> {
    LAYERS.iter().find(|(_, names)| names.contains(&name)).map(|(layer, _)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_arrow(from: &str, to: &str) -> bool {
        let package = |name: &str, depends_on: &[&str]| Package {
            name: name.to_owned(),
            depends_on: depends_on.iter().map(|name| (*name).to_owned()).collect(),
            folder: "/".into(),
            roots: Vec::new(),
        };
        check(&[package(from, &[to]), package(to, &[])]).is_empty()
    }

    #[test]
    fn arrows_go_one_way() {
        assert!(check_arrow("halite-spec", "halite-value"));
        assert!(check_arrow("halite-states", "halite-modules"));
        assert!(check_arrow("halite", "halite-states"));
        assert!(check_arrow("halite-highstate", "halite-renderers"));
        assert!(!check_arrow("halite-value", "halite-host"));
        assert!(!check_arrow("halite-modules", "halite-states"));
        assert!(!check_arrow("halite-highstate", "halite-states"));
        assert!(!check_arrow("halite-states", "halite-highstate"));
        assert!(!check_arrow("halite-minion", "xtask"));
        assert!(!check_arrow("halite-minion", "halite-testkit"));
    }

    #[test]
    fn a_newcomer_must_be_placed() {
        assert!(!check_arrow("halite-novel", "halite-value"));
    }
}
