//! The line on a terminal that tells how many minions have returned.
//!
//! It goes to standard error, and only if both ends are terminals: what programs read never changes
//! by it. It is wiped before anything else is printed.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use crate::terminal;

/// Nobody wants to see it for what is done in a moment.
const DELAY: Duration = Duration::from_millis(700);

pub struct Ticker {
    shown: bool,
    enabled: bool,
    begun: Instant,
    all: usize,
}

impl Ticker {
    #[must_use]
    pub fn new(all: usize) -> Self {
        let enabled = io::stderr().is_terminal() && io::stdout().is_terminal();
        Self { shown: false, enabled, begun: Instant::now(), all }
    }

    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Shows how things stand: minions that still run, with the first few names.
    pub fn show(&mut self, pending: &[impl AsRef<str>]) {
        if self.enabled && self.begun.elapsed() >= DELAY {
            self.shown = true;
            let line = line(self.all, pending, self.begun.elapsed().as_secs());
            terminal::err(&format!("\r\x1b[2K{line}"));
        }
    }

    /// Wipes the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            terminal::err("\r\x1b[2K");
        }
    }
}

fn line(all: usize, pending: &[impl AsRef<str>], seconds: u64) -> String {
    let names: Vec<&str> = pending.iter().take(3).map(AsRef::as_ref).collect();
    let more = pending.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "{}/{all} returned, {seconds} s, waiting for {}{more}",
        all.saturating_sub(pending.len()),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_are_named() {
        assert_eq!(line(3, &["a"], 2), "2/3 returned, 2 s, waiting for a");
        let many = ["a", "b", "c", "d", "e"];
        assert_eq!(line(9, &many, 0), "4/9 returned, 0 s, waiting for a, b, c and 2 more");
    }
}
