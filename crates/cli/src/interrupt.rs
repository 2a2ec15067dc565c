//! Ctrl-C and `SIGTERM` in the programs people call: they end with 0, as Salt's do; after Ctrl-C the
//! user is told how to find the job, which goes on.
//!
//! The signals are blocked and awaited by a thread of its own, so that nothing has to be safe in a
//! signal handler. That must happen before other threads start, as they inherit what is blocked.
//! Daemons have ways of their own to stop.

use std::sync::Mutex;

use nix::sys::signal::{SigSet, Signal};

use crate::terminal;

static JID: Mutex<Option<String>> = Mutex::new(None);

/// Says which job is under way.
pub(crate) fn names(jid: &str) {
    if let Ok(mut known) = JID.lock() {
        *known = Some(jid.to_owned());
    }
}

/// Begins to watch for the signals, save those that whoever started the program had ignored.
pub(crate) fn watch() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let is_due = |signal: &Signal| ignored & (1 << (*signal as u64 - 1)) == 0;
    let signals: SigSet =
        [Signal::SIGINT, Signal::SIGTERM].into_iter().filter(|signal| is_due(signal)).collect();
    // If they cannot be blocked they end the program at once, as usual: only the hint is lost.
    if signals.iter().next().is_none() || signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        let Ok(signal) = signals.wait() else { return };
        if signal == Signal::SIGINT {
            let jid = JID.lock().ok().and_then(|jid| jid.clone());
            terminal::err(&text(jid.as_deref()));
        }
        #[expect(clippy::exit, reason = "the main thread waits for others")]
        std::process::exit(0);
    });
}

/// Reads the mask of ignored signals out of a process's `status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

fn text(jid: Option<&str>) -> String {
    let mut text = "\nExiting gracefully on Ctrl-c\n".to_owned();
    if let Some(jid) = jid {
        text += &format!(
            "This job's jid is: {jid}\nThe minions may not have all finished running and any \
             remaining minions will return upon completion. To look up the return data for this \
             job later, run the following command:\n\nsalt-run jobs.lookup_jid {jid}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_named() {
        assert_eq!(text(None), "\nExiting gracefully on Ctrl-c\n");
        let text = text(Some("20240101120000123456"));
        assert!(text.starts_with("\nExiting gracefully on Ctrl-c\nThis job's jid is: 2024"));
        assert!(text.ends_with("\n\nsalt-run jobs.lookup_jid 20240101120000123456\n"));
    }

    #[test]
    fn what_is_ignored_stays_so() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000000002\nSigCgt:\t00\n"), 2);
        assert_eq!(ignored(""), 0);
    }
}
