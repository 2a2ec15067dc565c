//! The back end `git` on repositories of this machine. Needs the program `git`.

use std::{path::Path, sync::Arc};

use halite_fileserver::{RelPath, backend::Backend, git::GitFs};
use halite_host::Os;
use halite_testkit::git::{commit, git};
use halite_value::{Dict, Value, json};

/// A repository with the branches master, dev and feature/x and the tag v1.
fn repository(at: &Path) {
    std::fs::create_dir_all(at).expect("made");
    git(at, &["init", "-q", "-b", "master"]);
    commit(at, &[("f", "master"), ("sub/g", "sub")]);
    git(at, &["tag", "-a", "-m", "x", "v1"]);
    git(at, &["checkout", "-q", "-b", "dev"]);
    commit(at, &[("f", "dev")]);
    git(at, &["checkout", "-q", "-b", "feature/x"]);
    commit(at, &[("x", "x")]);
    git(at, &["checkout", "-q", "master"]);
}

struct Tree {
    scratch: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { scratch: tempfile::tempdir().expect("a folder") };
        repository(&tree.repo());
        tree
    }

    fn repo(&self) -> std::path::PathBuf {
        self.scratch.path().join("repo")
    }

    /// `REPO` in the options stands for the repository's address.
    fn backend(&self, opts: &str) -> GitFs {
        let text = opts.replace("REPO", &format!("file://{}", self.repo().display()));
        let Value::Dict(opts) = json::from_str(&text).expect("JSON") else { panic!("a dict") };
        let opts: Dict = opts;
        opts.insert("cachedir", self.scratch.path().join("cache").display().to_string());
        opts.insert("gitfs_update_interval", 0);
        opts.insert("fileserver_list_cache_time", 0);
        GitFs::new(Arc::new(Os::new()), &opts)
    }
}

fn text(backend: &GitFs, path: &str, env: &str) -> Option<String> {
    let found = backend.find(&RelPath::new(path)?, env, None).expect("found")?;
    let bytes = backend.read(&found, 0, 100).expect("read");
    Some(String::from_utf8(bytes).expect("text"))
}

#[test]
fn branches_and_tags_are_environments() {
    let tree = Tree::new();
    let backend = tree.backend(r#"{"gitfs_remotes": ["REPO"]}"#);
    assert_eq!(backend.envs().expect("envs"), ["base", "dev", "feature/x", "v1"]);
    assert_eq!(text(&backend, "f", "base").as_deref(), Some("master"));
    assert_eq!(text(&backend, "f", "dev").as_deref(), Some("dev"));
    assert_eq!(text(&backend, "f", "v1").as_deref(), Some("master"));
    assert_eq!(text(&backend, "x", "feature/x").as_deref(), Some("x"));
    assert_eq!(text(&backend, "f", "nosuch"), None);
    assert_eq!(text(&backend, "nosuch", "base"), None);
    let lists = backend.lists("base").expect("lists");
    assert_eq!(
        (lists.files.as_slice(), lists.dirs.as_slice()),
        (&["f".into(), "sub/g".into()][..], &["sub".into()][..])
    );
}

#[test]
fn what_is_pushed_is_served() {
    let tree = Tree::new();
    let backend = tree.backend(r#"{"gitfs_remotes": ["REPO"]}"#);
    assert_eq!(text(&backend, "f", "base").as_deref(), Some("master"));
    commit(&tree.repo(), &[("f", "again")]);
    git(&tree.repo(), &["branch", "-q", "-D", "dev"]);
    assert_eq!(text(&backend, "f", "base").as_deref(), Some("again"));
    assert_eq!(backend.envs().expect("envs"), ["base", "feature/x", "v1"]);
    // A remote that is away is served as it was.
    std::fs::rename(tree.repo(), tree.scratch.path().join("away")).expect("moved");
    assert_eq!(text(&backend, "f", "base").as_deref(), Some("again"));
    assert_eq!(backend.fetch().len(), 1);
}

#[test]
fn settings() {
    let tree = Tree::new();
    let envs = |opts: &str| tree.backend(opts).envs().expect("envs").join(" ");
    let of = |opts: &str, path: &str, env: &str| text(&tree.backend(opts), path, env);
    let base = r#"{"gitfs_remotes": ["REPO"], "gitfs_base": "dev"}"#;
    assert_eq!(envs(base), "base feature/x master v1");
    assert_eq!(of(base, "f", "base").as_deref(), Some("dev"));
    let own = r#"{"gitfs_remotes": [{"REPO": [{"root": "sub"}, {"mountpoint": "salt://m"}]}]}"#;
    assert_eq!(of(own, "m/g", "base").as_deref(), Some("sub"));
    assert_eq!(of(own, "m/f", "base"), None);
    let by_hand = r#"{"gitfs_remotes": ["REPO"], "gitfs_saltenv": [{"test": [{"ref": "dev"}]}]}"#;
    assert_eq!(envs(by_hand), "base feature/x test v1");
    assert_eq!(of(by_hand, "f", "test").as_deref(), Some("dev"));
    assert_eq!(envs(r#"{"gitfs_remotes": ["REPO"], "gitfs_ref_types": ["tag"]}"#), "v1");
    assert_eq!(envs(r#"{"gitfs_remotes": ["REPO"], "gitfs_saltenv_whitelist": ["d*"]}"#), "dev");
    let fallback = r#"{"gitfs_remotes": ["REPO"], "gitfs_fallback": "dev"}"#;
    assert_eq!(of(fallback, "f", "nosuch").as_deref(), Some("dev"));
    let out = r#"{"gitfs_remotes": [{"REPO": [{"mountpoint": "../../x"}]}]}"#;
    assert_eq!(of(out, "f", "base"), None);
}
