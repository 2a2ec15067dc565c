//! Ctrl-C while minions are at work: the job goes on, and the user is told how to find it.
//!
//! The signal is blocked and awaited by a thread of its own, so that nothing has to be safe in a
//! signal handler.

use std::sync::{Arc, Mutex, OnceLock};

use nix::sys::signal::{SigSet, Signal};

use crate::terminal;

static JID: OnceLock<Arc<Mutex<Option<String>>>> = OnceLock::new();

/// Says which job is under way. The first call begins to watch for Ctrl-C.
pub fn names(jid: &str) {
    let known = JID.get_or_init(|| {
        let known = Arc::new(Mutex::new(None));
        watch(&known);
        known
    });
    if let Ok(mut known) = known.lock() {
        *known = Some(jid.to_owned());
    }
}

fn watch(known: &Arc<Mutex<Option<String>>>) {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    // Without it, Ctrl-C ends the program at once, as usual: nothing is lost but the hint.
    if signals.thread_block().is_err() {
        return;
    }
    let known = Arc::clone(known);
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            let jid = known.lock().ok().and_then(|jid| jid.clone()).unwrap_or_default();
            terminal::err(&text(&jid));
            #[expect(clippy::exit, reason = "the main thread waits for minions")]
            std::process::exit(1);
        }
    });
}

fn text(jid: &str) -> String {
    format!(
        "\nThis job's jid is: {jid}\nExiting gracefully on Ctrl-c\nThe minions may not have all \
         finished running and any remaining minions will return upon completion. To look up the \
         return data for this job later, run the following command:\n\nsalt-run jobs.lookup_jid \
         {jid}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_named() {
        let text = text("20240101120000123456");
        assert!(text.starts_with("\nThis job's jid is: 20240101120000123456\nExiting gracefully"));
        assert!(text.ends_with("\n\nsalt-run jobs.lookup_jid 20240101120000123456\n"));
    }
}
