//! Secrets are for the master's user alone, whatever the umask. In a file of its own: the umask belongs
//! to the whole process.

mod common;

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use common::TestMaster;
use halite_value::entries;

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_open_under_umask_000() {
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    let options = entries! {
        "master_sign_pubkey" => true,
        "external_auth" => halite_value::dict! {
            "auto" => halite_value::dict! { "ann" => halite_value::list![".*"] },
        },
    };
    let master = TestMaster::new(options).await;
    let minion = master.signed_in("web1", 0).await;
    minion.prove().await;
    let token = master
        .clear(entries! { "cmd" => "mk_token", "eauth" => "auto", "username" => "ann", "password" => "x" })
        .await;
    assert!(token.get("token").is_some(), "{token:?}");
    let mut looked = 0;
    for folder in ["pki", "cache"] {
        for file in files(&master.path().join(folder)) {
            let mode = fs::metadata(&file).expect("a file").permissions().mode() & 0o777;
            let is_public = file.extension().is_some_and(|end| end == "pub");
            // The test itself put the minion's key there.
            if is_public || file.ends_with("pki/minions/web1") {
                continue;
            }
            assert_eq!(mode & 0o077, 0, "{} has mode {mode:04o}", file.display());
            looked += 1;
        }
    }
    assert!(looked >= 5, "keys, session, user key, token: {looked}");
    for folder in ["pki", "pki/minions", "cache/sessions", "cache/tokens", "cache/halite"] {
        let path = master.path().join(folder);
        let mode = fs::metadata(&path).expect("a folder").permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{folder} has mode {mode:04o}");
    }
}
