//! Random kills, from one seed, with a checker.
//!
//! Jobs are published all the time while masters and minions are killed and started again. Each job
//! writes a line to a file when it runs. Afterwards: no job ran twice on a minion; every job that ran
//! to its end has its return; every return belongs to a job that ran; a job that a death interrupted
//! is reported so.

use std::{collections::BTreeMap, time::Duration};

use halite_e2e::site::{Make, Site, until};

use super::{fleet, jid_in, returns};

const IDS: [&str; 3] = ["one", "two", "three"];

/// Small and good enough: the same seed gives the same plan.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn number(name: &str, preset: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(preset)
}

#[test]
fn random_kills_lose_nothing_and_double_nothing() {
    let seed = number("HALITE_SEED", 20_260_801);
    let kills = number("HALITE_KILLS", 200);
    eprintln!("seed {seed}, {kills} kills");
    let mut dice = Dice(seed | 1);
    let quick = "return_retry_timer: 1\nreturn_retry_timer_max: 1\nauth_timeout: 2\n";
    let mut site = fleet(&IDS, quick);
    let side = site.path("side");
    std::fs::create_dir_all(&side).expect("a folder");
    let mut jobs: BTreeMap<String, u64> = BTreeMap::new();
    let mut unknown = 0;
    for _ in 0..kills {
        // Usually a job or two is under way when somebody dies.
        for _ in 0..=dice.below(2) {
            let number = jobs.len() as u64 + unknown;
            let side = side.display();
            let nap = dice.below(4);
            let run = format!(
                "echo {number} >> {side}/{{{{ grains.id }}}}; sleep 0.{nap}; echo {number}"
            );
            let ran = site.salt(&["--async", "*", "cmd.run", &run, "template=jinja"]);
            match jid_in(&ran.out) {
                Some(jid) => {
                    jobs.insert(jid, number);
                }
                // The master died while it was asked.
                None => unknown += 1,
            }
        }
        std::thread::sleep(Duration::from_millis(dice.below(120)));
        let victim = ["master", IDS[0], IDS[1], IDS[2]][dice.below(4) as usize];
        site.kill(victim);
        std::thread::sleep(Duration::from_millis(dice.below(60)));
        match victim {
            "master" => site.start_master(),
            id => site.start_minion(id, Make::Ours),
        }
    }
    site.answer(&IDS);
    let mut wrong = Vec::new();
    until("everything that ran is told", || {
        wrong = check(&site, &jobs);
        // The last job may run while it is looked: what ran is read before what is stored.
        !wrong.iter().any(|text| text.contains("lost") || text.contains("never ran"))
    });
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
}

/// Compares what ran with what is stored; returns what does not fit.
fn check(site: &Site, jobs: &BTreeMap<String, u64>) -> Vec<String> {
    let mut wrong = Vec::new();
    let ran: Vec<BTreeMap<u64, usize>> = IDS
        .iter()
        .map(|id| {
            let mut times = BTreeMap::new();
            for line in site.read(&format!("side/{id}")).lines() {
                *times.entry(line.parse().expect("a number")).or_default() += 1;
            }
            times
        })
        .collect();
    for (id, times) in IDS.iter().zip(&ran) {
        for (number, times) in times.iter().filter(|(_, times)| **times > 1) {
            wrong.push(format!("job {number} ran {times} times on {id}"));
        }
    }
    let mut told = 0;
    for (jid, number) in jobs {
        let returns = returns(site, jid);
        for (id, times) in IDS.iter().zip(&ran) {
            let text = returns.get(id).map(|ret| ret.as_str().unwrap_or_default().to_owned());
            told += usize::from(text.is_some());
            match (times.contains_key(number), text) {
                (true, None) => {
                    wrong.push(format!("job {jid} ({number}) on {id}: its return is lost"));
                }
                (ran, Some(text)) if text == number.to_string() => {
                    if !ran {
                        wrong
                            .push(format!("job {jid} ({number}) on {id}: returned, but never ran"));
                    }
                }
                (_, Some(text))
                    if text.contains("stopped while job") || text.contains("ended by") => {}
                (_, Some(text)) => wrong.push(format!("job {jid} on {id}: an odd return: {text}")),
                (false, None) => {}
            }
        }
    }
    let stored = site.read("master.log").lines().filter(|line| line.contains("Got return")).count();
    eprintln!("{} jobs, {told} returns of them, {stored} stored in all", jobs.len());
    wrong
}
