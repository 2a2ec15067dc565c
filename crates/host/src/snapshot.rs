//! What a daemon does at the moment, for whoever sends it SIGUSR1.
//!
//! Genuine Salt writes its Python stack to `salt-debug-<time>.log` in the folder for temporary files,
//! and its troubleshooting guide sends people there. A compiled program has no such stack; what helps
//! instead is which threads there are, what each waits for in the kernel, and what the daemon counts.

use std::{
    fmt::Write as _,
    fs, io,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Writes the threads of this process, and what else there is to say, to a new file; returns its
/// path.
pub fn write_snapshot(about: &str) -> io::Result<PathBuf> {
    write_into(&std::env::temp_dir(), about)
}

fn write_into(folder: &Path, about: &str) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let pid = std::process::id();
    let names = [format!("salt-debug-{now}.log"), format!("salt-debug-{now}-{pid}.log")];
    let mut failure = io::Error::from(io::ErrorKind::AlreadyExists);
    for name in names {
        let path = folder.join(name);
        // The name can be guessed and the folder is everybody's: only a file that was not there.
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(format!("{about}\n{}", threads()).as_bytes())?;
                return Ok(path);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// One line per thread: its name, its state, and the kernel function it waits in.
fn threads() -> String {
    let mut text = String::new();
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let (name, stat, waits) = (read("comm"), read("stat"), read("wchan"));
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        let id = thread.file_name();
        let (id, name) = (id.to_string_lossy(), name.trim_end());
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "thread {id} {name}: {} {waits}", state.unwrap_or('?'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_new_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = write_into(folder.path(), "counters: 3").expect("a file");
        let text = fs::read_to_string(&one).expect("its text");
        assert!(text.starts_with("counters: 3\n") && text.contains("thread "), "{text}");
        assert!(one.extension().is_some_and(|ending| ending == "log"));
        assert_ne!(write_into(folder.path(), "").ok(), Some(one));
        assert!(write_into(&folder.path().join("gone"), "").is_err());
    }
}
