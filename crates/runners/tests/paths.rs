//! Wheel functions and runners that take paths: nothing leaves its folder, whatever is asked
//! (CVE-2020-11652, CVE-2021-25282, CVE-2025-22238).

use std::{fs, path::Path, sync::Arc};

use halite_host::{Fake, Os};
use halite_spec::{Call, Cx, Result};
use halite_testkit::Kit;
use halite_value::{Value, dict};

const HOSTILE: &[&str] = &[
    "..",
    "../secret",
    "../../../../../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "sub/../../secret",
    "./../secret",
    "link/secret",
    "sub/link/secret",
    "a\0b",
    "",
    "~/.ssh/id_rsa",
    "%2e%2e/secret",
    "..\\secret",
];

fn call(cx: &Cx, name: &str, args: &[&str]) -> Result<Value> {
    let function = halite_runners::wheel_function(name).or_else(|| halite_runners::runner(name));
    let function = function.unwrap_or_else(|| panic!("no function {name}"));
    let args = args.iter().map(|text| Value::from(*text)).collect();
    (function.call)(cx, Call { args, kwargs: halite_value::Dict::new() })
}

fn everything(folder: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let content = path.is_file().then(|| fs::read(&path).unwrap_or_default());
        found.push((path.display().to_string(), content));
        if path.is_dir() && !path.is_symlink() {
            found.extend(everything(&path));
        }
    }
    found.sort();
    found
}

/// A master's folders in a place where anything outside of them is noticed.
fn master() -> (tempfile::TempDir, Cx) {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).to_str().expect("text").to_owned();
    for folder in ["outside", "in/srv/sub", "in/pillar/sub", "in/cache", "in/etc"] {
        fs::create_dir_all(path(folder)).expect("a folder");
    }
    fs::write(path("outside/secret"), "secret").expect("a file");
    fs::write(path("in/secret"), "secret").expect("a file");
    fs::write(path("in/srv/top.sls"), "base: {}").expect("a file");
    for link in ["in/srv/link", "in/srv/sub/link", "in/pillar/link", "in/pillar/sub/link"] {
        std::os::unix::fs::symlink(path("outside"), path(link)).expect("a link");
    }
    let cx = Kit::on(Arc::new(Os::new()), Fake::new()).cx;
    cx.opts.insert("file_roots", dict! { "base" => Value::list([path("in/srv")]) });
    cx.opts.insert("pillar_roots", dict! { "base" => Value::list([path("in/pillar")]) });
    cx.opts.insert("cachedir", path("in/cache"));
    cx.opts.insert("sock_dir", path("in/nowhere"));
    cx.opts.insert("conf_file", path("in/etc/master"));
    cx.opts.insert("default_include", "master.d/*.conf");
    (place, cx)
}

#[test]
fn nothing_leaves_its_folder() {
    let (place, cx) = master();
    let before = everything(place.path());
    for path in HOSTILE {
        for module in ["file_roots", "pillar_roots"] {
            for function in ["find", "read"] {
                let found = call(&cx, &format!("{module}.{function}"), &[path]).expect("an answer");
                assert!(!found.truthy(), "{module}.{function} {path:?}: {found:?}");
            }
            let written = call(&cx, &format!("{module}.write"), &["x", path]);
            let said = written.expect("an answer").to_str();
            assert!(
                !said.starts_with("Wrote")
                    || *path == "~/.ssh/id_rsa"
                    || path.contains("%2e")
                    || path.contains('\\'),
                "{module}.write {path:?}: {said}"
            );
        }
    }
    let after: Vec<_> = everything(place.path())
        .into_iter()
        // Odd, but plain names: they stay inside.
        .filter(|(path, _)| !path.contains('~') && !path.contains("%2e") && !path.contains('\\'))
        .collect();
    assert_eq!(after, before);
    for path in HOSTILE.iter().filter(|path| !path.starts_with(['~', '%'])) {
        for (function, args) in [
            ("cache.store", vec![*path, "key", "x"]),
            ("cache.store", vec!["bank", *path, "x"]),
            ("cache.fetch", vec![*path, "key"]),
            ("cache.fetch", vec!["bank", *path]),
            ("cache.list", vec![*path]),
            ("cache.flush", vec![*path]),
            ("cache.flush", vec!["bank", *path]),
        ] {
            // A bank may be a path of plain names.
            if args[0] == *path && path.starts_with(['s', 'l']) && !path.contains("..") {
                continue;
            }
            let done = call(&cx, function, &args);
            assert!(done.is_err(), "{function} {args:?}: {done:?}");
        }
        let done = call(&cx, "config.update_config", &[*path, "a: 1"]);
        assert_eq!(done.ok(), Some("Invalid path".into()), "{path}");
    }
    let secrets = everything(place.path()).into_iter().filter(|(path, _)| path.contains("secret"));
    assert!(secrets.count() >= 2, "they are still there");
    let written = call(&cx, "file_roots.write", &["new", "web/init.sls"]).expect("an answer");
    assert!(written.to_str().starts_with("Wrote data to file"), "{written:?}");
    let read = call(&cx, "file_roots.read", &["web/init.sls"]).expect("an answer");
    assert_eq!(read.items_of_sequence().map(|all| all.len()), Some(1));
}

#[test]
fn a_cache_keeps_what_it_is_given() {
    let (_place, cx) = master();
    call(&cx, "cache.store", &["my/bank", "key", "value"]).expect("stored");
    let fetched = call(&cx, "cache.fetch", &["my/bank", "key"]).expect("an answer");
    assert_eq!(fetched, Value::from("value"));
    let keys = call(&cx, "cache.list", &["my/bank"]).expect("an answer");
    assert_eq!(keys, Value::list(["key"]));
    let banks = call(&cx, "cache.list", &["my"]).expect("an answer");
    assert_eq!(banks, Value::list(["bank"]));
    assert_eq!(
        call(&cx, "cache.flush", &["my/bank", "key"]).expect("an answer"),
        Value::from(true)
    );
    assert_eq!(
        call(&cx, "cache.flush", &["my/bank", "key"]).expect("an answer"),
        Value::from(false)
    );
    assert_eq!(call(&cx, "cache.fetch", &["my/bank", "key"]).expect("an answer"), Value::dict());
}
