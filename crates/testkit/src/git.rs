//! Repositories for tests, made by the program `git`.

use std::{path::Path, process::Command};

/// Runs git as nobody in particular, whatever is configured on this machine.
pub fn git(repo: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(repo).args(words).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", repo);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example");
    }
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Writes files and commits all there is.
pub fn commit(repo: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = repo.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    git(repo, &["add", "-A"]);
    git(repo, &["commit", "-qm", "x"]);
}
