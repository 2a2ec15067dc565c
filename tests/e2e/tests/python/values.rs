//! What users' functions may return, how deep it may be, and interpreters that are too old.

use halite_e2e::Machine;

use crate::{returned, sync};

const MODULE: &str = r#"
import collections
import datetime
import decimal
import enum
import fractions


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Sub(dict):
    pass


Point = collections.namedtuple("Point", "x y")


def counted():
    yield 1
    yield 2


def each():
    return collections.OrderedDict([
        ("duration", datetime.timedelta(days=1, seconds=2)),
        ("date", datetime.date(2026, 1, 2)),
        ("decimal", decimal.Decimal("1.50")),
        ("fraction", fractions.Fraction(1, 3)),
        ("complex", 1 + 2j),
        ("member", Color.RED),
        ("level", Level.LOW),
        ("point", Point(1, 2)),
        ("counts", collections.defaultdict(list, a=[1])),
        ("sub", Sub(a=1)),
        ("many", counted()),
        ("keys", {"a": 1}.keys()),
        ("frozen", frozenset([1])),
        ("huge", 10 ** 40),
        ("inf", float("inf")),
    ])


def error():
    return {"k": [ValueError("bad")]}


def deep(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


def deep_pairs(levels):
    value = "x"
    for _ in range(levels):
        value = {1: value}
    return value


def depth(value):
    found = 0
    while isinstance(value, list):
        value, found = value[0], found + 1
    return found


def echoed(levels):
    return depth(__salt__["test.echo"](deep(levels)))


def rendered(levels):
    text = "{{% set ns = namespace(v='x') %}}{{% for i in range({}) %}}{{% set ns.v = [ns.v] %}}{{% endfor %}}"
    text += "{{{{ salt['odd.depth'](ns.v) }}}} {{{{ salt['odd.depth'](salt['odd.deep']({})) }}}}"
    return __salt__["slsutil.renderer"](string=text.format(levels, levels), default_renderer="jinja")
"#;

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("srv/salt/_modules/odd.py", MODULE);
    sync(&machine);
    machine
}

#[test]
fn values_that_people_write_down_are_their_text() {
    let expected = r#"{"duration": "1 day, 0:00:02", "date": "2026-01-02", "decimal": "1.50", "fraction": "1/3", "complex": "(1+2j)", "member": "Color.RED", "level": 1, "point": [1, 2], "counts": {"a": [1]}, "sub": {"a": 1}, "many": [1, 2], "keys": ["a"], "frozen": "#;
    let machine = machine();
    let each = returned(&machine, &["odd.each"]);
    assert!(each.starts_with(expected), "{each}");
    assert!(
        each.ends_with(&format!(r#""huge": 1{}, "inf": Infinity}}"#, "0".repeat(40))),
        "{each}"
    );
    machine
        .call(&["odd.error"])
        .code(1)
        .complains("'odd.error': the return['k'][0] is a ValueError, which cannot be sent");
}

#[test]
fn depth_has_one_limit_both_ways() {
    let machine = machine();
    assert_eq!(returned(&machine, &["odd.echoed", "470"]), "470");
    assert_eq!(returned(&machine, &["odd.rendered", "470"]), r#""470 470""#);
    let limit = "is nested too deeply (the limit is 480 levels), or contains itself";
    for (function, levels) in [("deep", "500"), ("deep_pairs", "200"), ("echoed", "500")] {
        let ran = machine.call(&[&format!("odd.{function}"), levels]).code(1).complains(limit);
        assert!(ran.err.contains("[0]…[0]") || ran.err.contains("[1]…[1]"), "{}", ran.err);
    }
    machine.call(&["odd.rendered", "500"]).code(1).complains(
        "what odd.depth is given cannot be sent to Python: nested deeper than 480 levels",
    );
}

#[test]
fn an_old_interpreter_is_named_with_its_version() {
    let machine = machine();
    let old = "import sys; sys.version_info = (3, 7, 16, 'final', 0); exec(sys.argv[2])";
    machine.write("python3.7", &format!("#!/bin/sh\nexec python3 -c \"{old}\" \"$@\"\n"));
    let program = machine.path("python3.7");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it is ours");
    let config = machine.read("etc/salt/minion").expect("a configuration");
    let program = program.display();
    machine.write("etc/salt/minion", &format!("{config}halite: {{python: {program}}}\n"));
    machine.call(&["test.ping"]).code(0);
    machine.call(&["odd.each"]).complains(&format!(
        "users' Python modules need `{program}`, which cannot be started: it is Python 3.7.16; install Python \
         3.8 or newer, or name it under `halite: {{python: …}}`"
    ));
}
