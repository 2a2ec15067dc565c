//! Prints this machine's grains as JSON, and on stderr how long it took.
//!
//! ```console
//! $ cargo run --release -p halite-grains --example collect -- id=web1 conf_file=/etc/salt/minion
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::time::Instant;

use halite_grains::Collector;
use halite_host::Os;
use halite_value::{Dict, Value, json};

fn main() {
    let opts: Dict = std::env::args()
        .skip(1)
        .filter_map(|arg| {
            arg.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        })
        .collect();
    let host = Os::new();
    let mut reports = Vec::new();
    for round in ["cold", "warm"] {
        let started = Instant::now();
        let report = Collector::new().collect(&host, &opts);
        eprintln!("{round}: {:.2?}", started.elapsed());
        reports.push(report);
    }
    for (job, time) in &reports[0].timings {
        eprintln!("  {job:12} {time:.2?}");
    }
    let problems = reports.iter().flat_map(|report| &report.problems);
    for problem in problems {
        eprintln!("problem: {problem}");
    }
    match json::to_string(&Value::from(&reports[0].grains)) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
}
