//! Command lines, one argument per line; the first byte picks the program. Parsing one never prints
//! and never ends the process. What is left over is read as arguments of a function.
#![no_main]

use halite_cli::{args::Args, programs::ENTRIES};
use halite_fuzz::timed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((program, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let args: Vec<String> = text.lines().map(str::to_owned).collect();
    let entry = &ENTRIES[usize::from(*program) % ENTRIES.len()];
    timed(data, || {
        let _ = entry.program.parse(&args, &|_| None);
        let _ = Args::parse(&args, &[]).condition();
    });
});
