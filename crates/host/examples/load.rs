//! Runs many commands from many threads and writes many files; prints rates, and what was left
//! behind: descriptors, zombies, temporary files (all should be none).
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "it is a program for developers")]

use std::{fs, path::Path, thread, time::Instant};

use halite_host::Os;
use halite_spec::{Command, Host, host::Write};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn zombies() -> usize {
    let own = format!(" {} ", std::process::id());
    let stats = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    stats.filter(|stat| stat.contains(&format!(") Z{own}"))).count()
}

fn main() {
    let (threads, rounds) = (8, 250);
    let os = Os::new();
    let host: &dyn Host = &os;
    host.run(&Command::new("true")).unwrap();
    let before = descriptors();
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for round in 0..rounds {
                    let text = format!("echo {round}; echo x >&2");
                    let output = host.run(&Command::shell("/bin/sh", text)).unwrap();
                    assert_eq!(output.stdout, format!("{round}\n").into_bytes());
                }
            });
        }
    });
    let rate = f64::from(threads * rounds) / started.elapsed().as_secs_f64();
    println!("{rate:.0} shell commands per second");
    let folder = std::env::temp_dir().join(format!("halite-load-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let started = Instant::now();
    for round in 0..500 {
        host.write(&folder.join(format!("f{}", round % 10)), b"text", &Write::default()).unwrap();
    }
    println!("{:.0} atomic writes per second", 500.0 / started.elapsed().as_secs_f64());
    let left = host.read_dir(Path::new(&folder)).unwrap().len() - 10;
    fs::remove_dir_all(&folder).unwrap();
    println!(
        "left behind: {} descriptors, {} zombies, {left} temporary files",
        descriptors() - before,
        zombies()
    );
}
