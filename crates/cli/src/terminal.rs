//! Standard output and standard error.
//!
//! Nobody minds when the reader goes away (`salt … | head`): writing then simply ends.

use std::io::{self, IsTerminal as _, Write as _};

/// Prints to standard output.
pub fn out(text: &str) {
    let _ = try_out(text);
}

/// As [`out`], for what somebody waits for: a full disk behind standard output is a failure.
pub fn try_out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints to standard error.
pub fn err(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Tells whether people read standard output while it is written.
#[must_use]
pub fn out_is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Tells whether people read standard error, and do not mind colour.
#[must_use]
pub fn err_wants_color() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the width that help texts are wrapped to, as Python finds it.
#[must_use]
pub fn columns() -> usize {
    env("COLUMNS").and_then(|columns| columns.trim().parse().ok()).unwrap_or(80)
}

/// Returns an environment variable, if it is text.
#[must_use]
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
