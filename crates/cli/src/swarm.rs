//! `halite swarm`: many minions on this machine, to see how a master bears them.
//!
//! Prints one line of JSON every interval: how many are connected, how many jobs they did. The
//! descriptors of one process are limited, so a large swarm lives in several: each is this program
//! again with its part of the numbers, and their lines are added up.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use halite_config::{Request, Role};
use halite_minion::{
    Pipes,
    daemon::swarm::{self, Mischief, Swarm},
};
use halite_value::{Dict, Value, json};

use crate::{
    diagnostics::Report,
    machine::Real,
    optparse::{Action, Default, Flag, Parsed, Program, flag},
    programs::{self, shared},
    terminal,
};

static OWN: &[Flag] = &[
    flag(&["-n", "--count"], "count", Action::Int, "How many minions.").dflt(Default::Int(100)),
    flag(&["--master"], "master", Action::Str, "The master's address; else the configuration's."),
    flag(&["--port"], "port", Action::Int, "The master's request port."),
    flag(&["--root"], "root", Action::Str, "The folder the minions live in (made if missing)."),
    flag(&["--prefix"], "prefix", Action::Str, "What ids begin with.").dflt(Default::Str("swarm-")),
    flag(&["--first"], "first", Action::Int, "Number of the first.").dflt(Default::Int(0)),
    flag(&["--keys"], "keys", Action::Int, "Different keys to share; 0: one for each minion.")
        .dflt(Default::Int(16)),
    flag(&["--processes"], "processes", Action::Int, "Processes to spread the minions over.")
        .dflt(Default::Int(1)),
    flag(&["--threads"], "threads", Action::Int, "Threads that do jobs, for each process.")
        .dflt(Default::Int(4)),
    flag(&["--at-once"], "at_once", Action::Int, "Minions that sign in at the same time.")
        .dflt(Default::Int(256)),
    flag(
        &["--per-address"],
        "per_address",
        Action::Int,
        "Minions for each address of 127.0.0.0/8.",
    )
    .dflt(Default::Int(1000)),
    flag(&["--slow"], "slow", Action::Int, "Minions that answer late.").dflt(Default::Int(0)),
    flag(&["--delay"], "delay", Action::Float, "How late, in seconds.").dflt(Default::Float(5.0)),
    flag(&["--dead"], "dead", Action::Int, "Minions that never answer.").dflt(Default::Int(0)),
    flag(&["--flapping"], "flapping", Action::Int, "Minions that come and go.")
        .dflt(Default::Int(0)),
    flag(
        &["--hostile"],
        "hostile",
        Action::Int,
        "Minions that try to speak for others, to read what is not theirs, and to break the master.",
    )
    .dflt(Default::Int(0)),
    flag(
        &["--period"],
        "period",
        Action::Float,
        "How often those that come and go do, and hostile ones try, in seconds.",
    )
    .dflt(Default::Float(10.0)),
    flag(&["--offline"], "offline", Action::Int, "Minions that come once and stay away.")
        .dflt(Default::Int(0)),
    flag(&["--every"], "every", Action::Float, "Seconds between reports.")
        .dflt(Default::Float(1.0)),
];

static PROGRAM: Program = Program {
    name: "halite swarm",
    usage: "[options]",
    about: Some(
        "Runs many minions, each with its own id and connection, against a master. For tests and \
         measurements: point it at no master that others depend on.",
    ),
    flags: &[shared::VERSION, shared::CONFIG_DIR, OWN],
    groups: &[],
};

pub(crate) fn start(args: &[String]) -> u8 {
    let parsed = match PROGRAM.parse(args, &terminal::env) {
        Ok(parsed) => parsed,
        Err(stop) => return programs::stopped(&PROGRAM, &stop, args),
    };
    let failed = |text: String| programs::show(&Report::error(text), programs::format_of(&parsed));
    let negative = OWN.iter().find(|flag| parsed.int(flag.dest).is_some_and(|number| number < 0));
    if let Some(flag) = negative {
        let name = flag.names.last().copied().unwrap_or_default();
        let message = format!("{name} must not be negative");
        return programs::usage_error(&PROGRAM, &message, programs::format_of(&parsed));
    }
    if terminal::env(PART).is_some() {
        // A part must not outlive the whole.
        let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM);
    }
    if number(&parsed, "processes") > 1 {
        return match several(&parsed, args) {
            Ok(code) => code,
            Err(error) => failed(format!("the swarm cannot be spread: {error}")),
        };
    }
    let opts = match configuration(&parsed) {
        Ok(opts) => opts,
        Err(report) => return programs::show(&report, programs::format_of(&parsed)),
    };
    match swarm::run(described(&parsed, opts), |report| show(&report.to_value())) {
        Ok(()) => 0,
        Err(error) => failed(error.to_string()),
    }
}

/// Set for a process that is one of several.
const PART: &str = "HALITE_SWARM_PART";

fn number(parsed: &Parsed, name: &str) -> usize {
    parsed.int(name).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

fn seconds(parsed: &Parsed, name: &str) -> Duration {
    let seconds = parsed.get(name).as_float().unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn configuration(parsed: &Parsed) -> Result<Dict, Box<Report>> {
    let dir = parsed.str("config_dir").unwrap_or_default();
    let mut request = Request::new(Role::Minion, &dir);
    // Each minion is given an id of its own.
    request.minion_id = Some("swarm");
    let opts = halite_config::load(&request, &Real)
        .map_err(|error| Box::new(Report::error(error.to_string())))?
        .values()
        .clone();
    if let Some(master) = parsed.str("master") {
        opts.insert("master", master);
    }
    if let Some(port) = parsed.int("port") {
        opts.insert("master_port", port);
    }
    Ok(opts)
}

fn described(parsed: &Parsed, opts: Dict) -> Swarm {
    let root =
        parsed.str("root").map_or_else(|| std::env::temp_dir().join("halite-swarm"), Into::into);
    Swarm {
        rendering: Arc::new(Pipes::new(&opts)),
        opts,
        root,
        prefix: parsed.str("prefix").unwrap_or_default(),
        first: number(parsed, "first"),
        count: number(parsed, "count"),
        keys: number(parsed, "keys"),
        threads: number(parsed, "threads"),
        at_once: number(parsed, "at_once"),
        per_address: number(parsed, "per_address"),
        mischief: Mischief {
            slow: number(parsed, "slow"),
            delay: seconds(parsed, "delay"),
            dead: number(parsed, "dead"),
            flapping: number(parsed, "flapping"),
            period: seconds(parsed, "period"),
            offline: number(parsed, "offline"),
            hostile: number(parsed, "hostile"),
        },
        every: seconds(parsed, "every"),
    }
}

fn show(report: &Value) {
    if let Ok(text) = json::to_string(report) {
        terminal::out(&format!("{text}\n"));
    }
}

/// Runs the swarm in several processes and adds up what they tell.
fn several(parsed: &Parsed, args: &[String]) -> std::io::Result<u8> {
    let (count, processes) = (number(parsed, "count"), number(parsed, "processes"));
    let program = std::env::current_exe()?;
    let (sender, receiver) = mpsc::channel::<(usize, Dict)>();
    let mut children: Vec<Child> = Vec::new();
    let mut next = number(parsed, "first");
    for index in 0..processes {
        let part = count / processes + usize::from(index < count % processes);
        let mut command = Command::new(&program);
        command.env(PART, "1").arg("swarm").args(args).args(["--processes", "1"]);
        command.args(["--first", &next.to_string(), "--count", &part.to_string()]);
        if index > 0 {
            // Mischief is counted in the first part.
            for kind in ["--slow", "--dead", "--flapping", "--offline", "--hostile"] {
                command.args([kind, "0"]);
            }
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        next += part;
        let lines = child.stdout.take().map(BufReader::new);
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in lines.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                if let Ok(Value::Dict(report)) = json::from_str(&line)
                    && sender.send((index, report)).is_err()
                {
                    return;
                }
            }
        });
        children.push(child);
    }
    drop(sender);
    let mut latest: Vec<Option<Dict>> = vec![None; processes];
    let every = seconds(parsed, "every").max(Duration::from_millis(50));
    loop {
        match receiver.recv_timeout(every) {
            Ok((index, report)) => {
                latest[index] = Some(report);
                if latest.iter().all(Option::is_some) {
                    show(&sum(&latest));
                    latest.fill(None);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let mut code = 0;
    for mut child in children {
        let status = child.wait()?;
        code = code.max(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1));
    }
    Ok(code)
}

fn sum(reports: &[Option<Dict>]) -> Value {
    let total = Dict::new();
    for (name, value) in reports.iter().flatten().flat_map(Dict::entries) {
        let before = total.get(&name).unwrap_or_default();
        let sum = match (before, value) {
            (Value::Int(a), Value::Int(b)) => Value::Int(a + b),
            // Seconds: the longest.
            (Value::Float(a), Value::Float(b)) => Value::Float(a.max(b)),
            (_, value) => value,
        };
        total.insert(name, sum);
    }
    total.into()
}
