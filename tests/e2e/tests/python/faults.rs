//! Modules that misbehave: a clear error each, and the minion serves on.

use std::time::{Duration, Instant};

use halite_e2e::{
    Machine,
    site::{Make, Site},
};

use crate::{returned, sync};

const MODULE: &str = r##"
import os, sys, time, threading


def fine():
    return "fine"


def raises():
    raise ValueError("on purpose")


def garbage():
    os.write(1, b"\x00\xff\x10 garbage")
    print("more")
    sys.stdout.write("x" * 100000)
    sys.stderr.write("err\n")
    return "fine"


def leaves():
    os._exit(3)


def crashes():
    os.kill(os.getpid(), 11)
    time.sleep(60)


def loops():
    while True:
        pass


def sleeps():
    time.sleep(1000)


def stubborn():
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass


def eats():
    held = []
    while True:
        held.append(bytearray(10000000))


def unsendable():
    return {"a": [1, object()]}


def circular():
    value = {}
    value["self"] = value
    return value


def forks():
    if os.fork() == 0:
        return "child"
    os.wait()
    return "parent"


def leaves_child(path):
    if os.fork() == 0:
        with open(path, "w") as f:
            f.write(str(os.getpid()))
        time.sleep(1000)
    return "parent"


def threads():
    found = []
    started = [threading.Thread(target=lambda: found.append(__salt__["test.echo"](1))) for _ in range(4)]
    [one.start() for one in started]
    [one.join() for one in started]
    return found


def deep(n):
    return "bottom" if n <= 0 else __salt__["faulty.deeper"](n)


def deeper(n):
    return __salt__["slsutil.renderer"](string="#!jinja|yaml\n{{ salt['faulty.deep'](%d) }}" % (n - 1))
"##;

const LIMITS: &str = "halite: {python_timeout: 2, python_memory_mb: 120}\n";

#[test]
fn one_call_each() {
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}{LIMITS}"));
    machine.write("srv/salt/_modules/faulty.py", MODULE);
    sync(&machine);
    let call = |function: &str| machine.call(&[&format!("faulty.{function}")]);
    call("raises").code(1).complains("ValueError: on purpose");
    call("unsendable").code(1).complains("the return['a'][1] is a object, which cannot be sent");
    call("circular").code(1).complains("(the limit is 480 levels), or contains itself");
    call("leaves")
        .code(1)
        .complains("the Python process ended (exit code 3) while it ran faulty.leaves");
    call("crashes").code(1).complains("signal 11, SIGSEGV");
    call("loops").code(1).complains("faulty.loops took longer than 2 s and was ended");
    call("stubborn").code(1).complains("faulty.stubborn took longer than 2 s and was ended");
    call("eats").code(1).complains("more than 120 MB of memory");
    assert_eq!(returned(&machine, &["faulty.garbage"]), r#""fine""#);
    assert_eq!(returned(&machine, &["faulty.forks"]), r#""parent""#);
    assert_eq!(returned(&machine, &["faulty.threads"]), "[1, 1, 1, 1]");
    assert_eq!(returned(&machine, &["faulty.deep", "5"]), r#""bottom""#);
}

/// Returns the interpreters a daemon has as children.
fn interpreters(site: &Site, daemon: &str) -> usize {
    let parent = site.pid(daemon).to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let is_child = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        after.split_whitespace().nth(1) == Some(parent.as_str())
    };
    entries.flatten().filter(|entry| is_child(&entry.file_name().to_string_lossy())).count()
}

#[test]
fn a_minion_serves_on() {
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    site.write("srv/salt/_modules/faulty.py", MODULE);
    site.start_master();
    site.minion("m", Make::Ours, LIMITS.trim_end());
    site.answer(&["m"]);
    site.salt(&["m", "saltutil.sync_modules"]).code(0).says("modules.faulty");
    let ask = |function: &str| {
        let answer = site.ask(&["m", &format!("faulty.{function}")]);
        answer.get("m").cloned().unwrap_or_default().to_string()
    };
    for (function, text) in [
        ("raises", "ValueError: on purpose"),
        ("leaves", "exit code 3"),
        ("crashes", "SIGSEGV"),
        ("unsendable", "cannot be sent"),
        ("loops", "took longer than 2 s"),
        ("sleeps", "took longer than 2 s"),
        ("eats", "120 MB of memory"),
        ("garbage", "fine"),
        ("forks", "parent"),
    ] {
        let answer = ask(function);
        assert!(answer.contains(text), "{function}: {answer}");
        assert_eq!(ask("fine"), r#""fine""#, "after {function}");
    }
    assert_eq!(interpreters(&site, "m"), 1, "interpreters pile up");
    // A job can be ended, and so can what a module left running: by the end of the minion.
    let left = site.path("left");
    let left = left.display().to_string();
    site.ask(&["m", "faulty.leaves_child", &left]);
    let pid = site.read("left");
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    site.stop("m");
    let until = Instant::now() + Duration::from_secs(10);
    while std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
    {
        assert!(Instant::now() < until, "process {pid} was left behind");
        std::thread::sleep(Duration::from_millis(50));
    }
}
