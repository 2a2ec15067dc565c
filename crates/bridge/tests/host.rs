//! A real interpreter: calls that nest, calls side by side, modules that change.
//!
//! Where there is no `python3` there is nothing to try, and the tests say so.

// Says why, where there is no Python.

use std::sync::atomic::{AtomicUsize, Ordering};

use halite_bridge::{Bridge, Callbacks, Error, Session, Settings};
use halite_spec::{Call, Result};
use halite_value::{Dict, Value, dict, entries, list};

/// Counts what it is asked, and asks back where told to.
struct Back<'a> {
    bridge: &'a Bridge,
    asked: AtomicUsize,
}

impl Callbacks for Back<'_> {
    fn call(&self, _: &str, name: &str, call: Call) -> Result<Value> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match name {
            "native.echo" => Ok(call.args.first().cloned().unwrap_or_default()),
            "native.deeper" => {
                let answer = within(self, |session| {
                    self.bridge.run(session, "modules", "own.deep", Call { ..call })
                });
                Ok(answer?.value)
            }
            _ => Err(halite_spec::Error::failed("refused")),
        }
    }

    fn describe(&self, _: &str, _: &str) -> Option<Value> {
        None
    }

    fn fire(&self, _: &str, _: Value) -> Result<bool> {
        Ok(true)
    }

    fn cancelled(&self) -> bool {
        false
    }
}

fn within<R>(back: &Back<'_>, work: impl FnOnce(&Session<'_>) -> R) -> R {
    let (opts, grains, empty) =
        (entries! { "test" => true }, entries! { "os" => "X" }, Dict::new());
    work(&Session {
        opts: &opts,
        grains: &grains,
        pillar: &empty,
        low: &empty,
        jid: "1",
        saltenv: "base",
        extra: Dict::new(),
        callbacks: back,
        limit: None,
    })
}

const MODULE: &str = "
def echo(*args, **kwargs):
    return [list(args), kwargs, __opts__['test'], __grains__['os']]


def back(value):
    return __salt__['native.echo'](value)


def deep(n):
    return n if n == 0 else __salt__['native.deeper'](n - 1)


def refused():
    try:
        __salt__['native.no']()
    except Exception as error:
        return type(error).__name__ + ' ' + str(error)
";

/// Makes a bridge to a folder with one module.
fn bridge(folder: &tempfile::TempDir) -> Bridge {
    let modules = folder.path().join("modules");
    std::fs::create_dir_all(&modules).expect("a folder");
    std::fs::write(modules.join("own.py"), MODULE).expect("a module");
    let opts = entries! {
        "extension_modules" => folder.path().display().to_string(),
        "halite" => dict! { "python_packages" => false },
    };
    let native = entries! { "modules" => list!["native.echo", "native.deeper", "native.no"] };
    Bridge::new(Settings::from_opts(&opts), native)
}

fn run(bridge: &Bridge, name: &str, call: Call) -> std::result::Result<Value, Error> {
    let back = Back { bridge, asked: AtomicUsize::new(0) };
    within(&back, |session| bridge.run(session, "modules", name, call)).map(|answer| answer.value)
}

#[test]
fn values_come_through_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = bridge(&folder);
    let value = dict! {
        1 => list![(), true, -5, 2.5, "é", Value::bytes([0, 255]), Value::tuple([1, 2])],
        "big" => Value::from_bigint("-99999999999999999999999".parse().expect("digits")),
    };
    let call = Call::of([value.clone()]).with("key", 7);
    let expected = list![list![value.clone()], dict! { "key" => 7 }, true, "X"];
    assert_eq!(run(&bridge, "own.echo", call).expect("an answer").repr(), expected.repr());
    assert_eq!(run(&bridge, "own.back", Call::of([value.clone()])).expect("an answer"), value);
    let refused = run(&bridge, "own.refused", Call::default()).expect("an answer");
    assert_eq!(refused, "CommandExecutionError refused");
}

#[test]
fn calls_nest_and_run_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = bridge(&folder);
    assert_eq!(run(&bridge, "own.deep", Call::of([30])).expect("an answer"), Value::Int(0));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let bridge = &bridge;
            scope.spawn(move || {
                for turn in 0..40 {
                    let value = thread * 1000 + turn;
                    let answer = run(bridge, "own.back", Call::of([value])).expect("an answer");
                    assert_eq!(answer, Value::Int(value.into()));
                }
            });
        }
    });
}

#[test]
fn modules_are_loaded_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = bridge(&folder);
    let back = Back { bridge: &bridge, asked: AtomicUsize::new(0) };
    let has = |name: &str| {
        within(&back, |session| bridge.listing(session, "modules").expect("a listing").has(name))
    };
    assert!(has("own.echo") && !has("own.later"));
    let file = folder.path().join("modules/own.py");
    std::fs::write(&file, format!("{MODULE}\n\ndef later():\n    return 'now'\n")).expect("a file");
    assert!(!has("own.later"));
    bridge.look_again();
    assert!(has("own.later"));
    assert_eq!(run(&bridge, "own.later", Call::default()).expect("an answer"), "now");
    std::fs::remove_file(&file).expect("it is there");
    bridge.reload();
    assert!(!has("own.echo"));
}

#[test]
fn who_asks_while_modules_load_waits_for_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = bridge(&folder);
    // `a` comes first and takes its time; one that asks meanwhile without a job has to hear of both.
    let slow = "import time\ntime.sleep(0.5)\n\n\ndef one():\n    return 1\n";
    std::fs::write(folder.path().join("modules/a.py"), slow).expect("a module");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let bridge = &bridge;
            scope.spawn(move || {
                let back = Back { bridge, asked: AtomicUsize::new(0) };
                let listing = within(&back, |session| bridge.listing(session, "modules"));
                let listing = listing.expect("a listing");
                assert!(listing.has("a.one") && listing.has("own.echo"), "{listing:?}");
            });
        }
    });
}

#[test]
fn a_module_imports_the_files_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = bridge(&folder);
    let modules = folder.path().join("modules");
    std::fs::write(modules.join("shared.py"), "def twice(n): return 2 * n\n").expect("a module");
    let text = "import shared\nimport json\n\n\ndef four():\n    return json.loads(str(shared.twice(2)))\n";
    std::fs::write(modules.join("asks.py"), text).expect("a module");
    // Named as one of Python's own: that must stay the one imported.
    std::fs::write(modules.join("json.py"), "def other(): return 1\n").expect("a module");
    assert_eq!(run(&bridge, "asks.four", Call::default()).expect("an answer"), Value::Int(4));
    assert_eq!(run(&bridge, "json.other", Call::default()).expect("an answer"), Value::Int(1));
}

#[test]
fn a_file_of_another_name_adds_to_a_module() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = bridge(&folder);
    let modules = folder.path().join("modules");
    let write = |name: &str, text: &str| {
        std::fs::write(modules.join(name), text).expect("a module");
    };
    let virtual_native = "def __virtual__(): return 'native'\n";
    write(
        "more_native.py",
        &format!("{virtual_native}def echo(): return 'mine'\ndef more(): return 1\n"),
    );
    write("mypkg.py", "def __virtual__(): return 'pkg'\ndef version(): return 'mine'\n");
    let native = list!["native.echo", "pkg.version", "pkg.remove", "own.gone"];
    bridge.add_native(
        "modules",
        native.items_of_sequence().into_iter().flatten().map(|name| name.to_str().into()).collect(),
    );
    let back = Back { bridge: &bridge, asked: AtomicUsize::new(0) };
    let listing = within(&back, |session| bridge.listing(session, "modules")).expect("a listing");
    // The binary's function stays, as its module's own file comes first; a virtual module has none.
    assert!(!listing.hides("native.echo") && listing.has("native.more"));
    assert!(listing.has("pkg.version") && !listing.hides("pkg.remove"));
    // A file of the same name hides all.
    assert!(listing.hides("own.gone") && !listing.has("own.gone"));
}

const HANDLERS: &str = "
import logging

SEEN = []


class Own(logging.Handler):
    def emit(self, record):
        SEEN.append([record.levelno, record.name, self.format(record)])


class Broken(logging.Handler):
    def handle(self, record):
        raise RuntimeError('broken')


def setup_handlers():
    broken = Broken()
    broken.setLevel(40)
    return [broken, Own(30)]


def seen():
    return SEEN
";

#[test]
fn log_handlers_get_the_records_they_want() {
    let folder = tempfile::tempdir().expect("a folder");
    let bridge = bridge(&folder);
    let back = Back { bridge: &bridge, asked: AtomicUsize::new(0) };
    let ask = |records: Value| {
        let args = vec![records];
        within(&back, |session| bridge.ask(session, "a test", "log_records", args))
            .expect("an answer")
            .value
    };
    let record =
        |level: i64| dict! { "levelno" => level, "name" => "salt.x", "msg" => "100% of it" };
    assert_eq!(ask(list![record(50)]), Value::Null, "there is no handler");
    let handlers = folder.path().join("log_handlers");
    std::fs::create_dir_all(&handlers).expect("a folder");
    std::fs::write(handlers.join("fails.py"), "def setup_handlers():\n    1 / 0\n")
        .expect("a module");
    std::fs::write(handlers.join("own.py"), HANDLERS).expect("a module");
    // Handlers are set up once in the life of an interpreter.
    bridge.stop();
    bridge.reload();
    assert_eq!(ask(list![record(20), record(30), record(50)]), Value::Int(30));
    let call = || bridge_run(&bridge, &back, "own.seen");
    assert_eq!(call(), list![list![30, "salt.x", "100% of it"], list![50, "salt.x", "100% of it"]]);
}

fn bridge_run(bridge: &Bridge, back: &Back<'_>, name: &str) -> Value {
    let call = Call::default();
    within(back, |session| bridge.run(session, "log_handlers", name, call))
        .expect("an answer")
        .value
}

const GADGET: &str = "
STATE = {'calls': 0}


def init(opts):
    STATE['begun'] = __salt__['native.echo'](opts['id'])
    __context__['session'] = 's1'


def call():
    STATE['calls'] += 1
    return [STATE['begun'], STATE['calls'], __context__.get('session')]


def shutdown(opts):
    __salt__['native.echo']('bye')
";

#[test]
fn a_device_is_connected_once_in_each_process() {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, name, text) in [
        ("proxy", "gadget", GADGET),
        ("proxy", "half", "def init(opts):\n    pass\n"),
        (
            "modules",
            "own",
            "def call():\n    return __proxy__['gadget.call']()\n\n\ndef there():\n    return [bool(__proxy__), list(__proxy__)]\n",
        ),
    ] {
        let kind = folder.path().join(kind);
        std::fs::create_dir_all(&kind).expect("a folder");
        std::fs::write(kind.join(format!("{name}.py")), text).expect("a module");
    }
    let opts = entries! {
        "extension_modules" => folder.path().display().to_string(), "id" => "p1",
        "proxyid" => "p1", "halite" => dict! { "python_packages" => false },
    };
    let bridge =
        Bridge::new(Settings::from_opts(&opts), entries! { "modules" => list!["native.echo"] });
    let back = Back { bridge: &bridge, asked: AtomicUsize::new(0) };
    let empty = Dict::new();
    let ask = |jid: &str, verb: &str, args: Vec<Value>| {
        let session = Session {
            opts: &opts,
            grains: &empty,
            pillar: &empty,
            low: &empty,
            jid,
            saltenv: "base",
            extra: Dict::new(),
            callbacks: &back,
            limit: None,
        };
        bridge.ask(&session, verb, verb, args).expect("an answer").value
    };
    let run = |jid: &str, name: &str| {
        ask(jid, "run", vec!["modules".into(), name.into(), list![], Value::dict()])
    };
    assert_eq!(run("1", "own.there"), list![false, list![]]);
    let lacks = ask("", "proxy_begin", vec!["half".into()]);
    assert_eq!(lacks, Value::from("'half.shutdown' is not available."));
    // It cannot tell how the connection is.
    assert_eq!(ask("", "proxy_begin", vec!["gadget".into()]), Value::Bool(false));
    bridge.set_device("gadget");
    let names = list!["gadget.call", "gadget.init", "gadget.shutdown"];
    assert_eq!(run("2", "own.there"), list![true, names]);
    assert_eq!(run("3", "own.call"), list!["p1", 1, "s1"]);
    bridge.reload();
    assert_eq!(run("4", "own.call"), list!["p1", 2, "s1"]);
    assert_eq!(back.asked.load(Ordering::Relaxed), 1);
    // A module that changed is another connection: the old one is ended first.
    std::fs::write(folder.path().join("proxy/gadget.py"), GADGET.replace("s1", "s2"))
        .expect("a file");
    std::fs::File::open(folder.path().join("proxy/gadget.py"))
        .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
        .expect("a time");
    bridge.reload();
    assert_eq!(run("5", "own.call"), list!["p1", 1, "s2"]);
    assert_eq!(back.asked.load(Ordering::Relaxed), 3);
    // A process that is started later knows what to connect with.
    bridge.stop();
    assert_eq!(run("6", "own.call"), list!["p1", 1, "s2"]);
    ask("", "proxy_end", Vec::new());
    assert_eq!(back.asked.load(Ordering::Relaxed), 5);
}
