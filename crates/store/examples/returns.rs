//! How many returns a second are durable: `returns [minions] [jobs] [folder]`, one JSON object.
//!
//! Every minion's return is a write of its own, as it is in the master; one counts when its write is
//! done, which is after the sync. All minions of a job return at once.
#![expect(clippy::print_stdout, reason = "a program")]

use std::{path::PathBuf, time::Instant};

use halite_store::{Embedded, Op, Options, Store};
use halite_value::dict;
use tokio::task::JoinSet;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default| args.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let (minions, jobs): (usize, usize) = (number(1, 10_000), number(2, 10));
    let folder = args.get(3).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("halite-returns-{}", std::process::id()));
    let outcome = tokio::runtime::Builder::new_current_thread()
        .build()?
        .block_on(measure(&folder, minions, jobs));
    std::fs::remove_dir_all(&folder)?;
    let seconds = outcome?;
    let count = minions * jobs;
    let rate = f64::from(u32::try_from(count)?) / seconds;
    println!("{{\"returns\": {count}, \"seconds\": {seconds:.3}, \"per_second\": {rate:.0}}}");
    Ok(())
}

async fn measure(folder: &std::path::Path, minions: usize, jobs: usize) -> Outcome<f64> {
    let store = Embedded::open(folder, Options::default())?;
    let started = Instant::now();
    for job in 0..jobs {
        let jid = format!("20260101{job:012}");
        let load = dict! { "jid" => &*jid, "fun" => "test.ping", "tgt" => "*" };
        store.write(vec![Op::Job { jid: jid.clone(), load }]).await?;
        let mut waiting = JoinSet::new();
        for minion in 0..minions {
            let minion = format!("minion-{minion:05}");
            let load = dict! {
                "jid" => &*jid, "fun" => "test.ping", "fun_args" => halite_value::list![],
                "id" => &*minion, "return" => true, "success" => true, "retcode" => 0,
            };
            waiting.spawn(store.write(vec![Op::Return { jid: jid.clone(), minion, load }]));
        }
        while let Some(done) = waiting.join_next().await {
            done??;
        }
    }
    Ok(started.elapsed().as_secs_f64())
}
