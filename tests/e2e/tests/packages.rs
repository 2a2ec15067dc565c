//! Packages, repositories and services for real, on a copy of this machine.
//!
//! The copy is an overlay over `/` in a mount namespace of its own: what a test installs is gone
//! with it. That takes root, `unshare`, overlayfs and apt; where they are missing the tests say so
//! and prove nothing. The package comes from a repository in a scratch folder, so no network is
//! needed; the trees of `examples/` need Debian's mirror and run with `HALITE_E2E_NETWORK=1`.

// Says why, where a machine cannot run an example as it is written.
#![allow(clippy::print_stderr)]

use std::{path::PathBuf, process::Command};

use halite_e2e::{halite, root};

/// A copy of this machine.
struct Copy {
    folder: tempfile::TempDir,
}

impl Copy {
    /// Makes one; `None` where that is not possible.
    fn new() -> Option<Self> {
        // Not below /tmp, which may be a file system an overlay cannot lie on.
        let folder = tempfile::tempdir_in("/var/tmp").ok()?;
        for name in ["up", "work", "root"] {
            std::fs::create_dir(folder.path().join(name)).ok()?;
        }
        let copy = Self { folder };
        let (code, out) = copy.sh("command -v apt-get dpkg-deb >/dev/null && test -w /etc");
        if code != Some(0) {
            eprintln!("not run: no copy of this machine can be made here: {out}");
            return None;
        }
        Some(copy)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a script on the copy. Everything it started ends with it.
    fn sh(&self, script: &str) -> (Option<i32>, String) {
        let set_up = "set -e; cd \"$1\"
            mount -t overlay overlay -o lowerdir=/,upperdir=$PWD/up,workdir=$PWD/work root
            mount --rbind /dev root/dev; mount -t proc proc root/proc
            exec chroot root /bin/sh -c \"$2\"";
        let output = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"])
            .args(["/bin/sh", "-c", set_up, "sh"])
            .arg(self.folder.path())
            .arg(script)
            .output();
        match output {
            Ok(output) => {
                let text = [output.stdout, output.stderr].concat();
                (output.status.code(), String::from_utf8_lossy(&text).into_owned())
            }
            Err(error) => (None, error.to_string()),
        }
    }

    /// Applies an SLS of a tree and returns the terse output.
    fn apply(&self, tree: &str, sls: &str, options: &str) -> String {
        let program = halite().display();
        let command = format!(
            "{program} call --local --no-color --config-dir={tree}/etc --file-root={tree}/salt \
             --pillar-root={tree}/pillar --state-output=full state.apply {sls} {options}"
        );
        let (code, out) = self.sh(&command);
        assert!(code.is_some(), "{out}");
        out
    }
}

/// Two versions of a package that holds one file, in a repository without signatures.
const REPOSITORY: &str = r#"
set -e
mkdir -p /srv/repo /srv/build/DEBIAN /srv/build/usr/share/halite-tiny
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
cd /srv/repo; : > Packages
for version in 1.0 1.1; do
    printf 'Package: halite-tiny\nVersion: %s\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: tiny\n' $version > /srv/build/DEBIAN/control
    echo $version > /srv/build/usr/share/halite-tiny/version
    dpkg-deb --build /srv/build halite-tiny_$version.deb >/dev/null
    cat /srv/build/DEBIAN/control >> Packages
    printf 'Filename: ./halite-tiny_%s.deb\nSize: %s\nSHA256: %s\n\n' $version $(stat -c %s halite-tiny_$version.deb) $(sha256sum halite-tiny_$version.deb | cut -d' ' -f1) >> Packages
done
mkdir -p /srv/tree/etc /srv/tree/salt /srv/tree/pillar
echo 'root_dir: /srv/tree/root' > /srv/tree/etc/minion
cat > /srv/tree/salt/install.sls <<'SLS'
tiny-repo:
  pkgrepo.managed:
    - name: deb [trusted=yes] file:/srv/repo ./
    - file: /etc/apt/sources.list.d/tiny.list
halite-tiny:
  pkg.installed:
    - version: '1.0'
    - require: [{pkgrepo: tiny-repo}]
SLS
printf 'halite-tiny:\n  pkg.latest: []\n' > /srv/tree/salt/newest.sls
printf 'halite-tiny:\n  pkg.purged: []\n' > /srv/tree/salt/gone.sls
"#;

#[test]
fn a_package_comes_and_goes() {
    let Some(copy) = Copy::new() else { return };
    let (code, out) = copy.sh(REPOSITORY);
    assert_eq!(code, Some(0), "{out}");

    let tested = copy.apply("/srv/tree", "install", "test=True");
    assert!(tested.contains("Succeeded: 2 (unchanged=2, changed=2)"), "{tested}");
    assert!(!copy.path("up/etc/apt/sources.list.d/tiny.list").exists());

    let applied = copy.apply("/srv/tree", "install", "");
    assert!(applied.contains("Succeeded: 2 (changed=2)"), "{applied}");
    let version = copy.path("up/usr/share/halite-tiny/version");
    assert_eq!(std::fs::read_to_string(&version).unwrap_or_default(), "1.0\n", "{applied}");
    let again = copy.apply("/srv/tree", "install", "");
    assert!(again.contains("Succeeded: 2\n"), "{again}");

    let newest = copy.apply("/srv/tree", "newest", "");
    assert!(newest.contains("Succeeded: 1 (changed=1)"), "{newest}");
    assert_eq!(std::fs::read_to_string(&version).unwrap_or_default(), "1.1\n", "{newest}");

    let gone = copy.apply("/srv/tree", "gone", "");
    assert!(gone.contains("Succeeded: 1 (changed=1)"), "{gone}");
    let again = copy.apply("/srv/tree", "gone", "");
    assert!(again.contains("Succeeded: 1\n"), "{again}");
}

/// The states of an output that changed (or would change) something.
fn changed(out: &str) -> usize {
    out.lines().filter(|line| line.trim_start().starts_with("Changes:")).count()
        - out.lines().filter(|line| line.trim() == "Changes:").count()
}

#[test]
fn the_example_trees_work() {
    if std::env::var_os("HALITE_E2E_NETWORK").is_none() {
        eprintln!("not run: HALITE_E2E_NETWORK is not set");
        return;
    }
    let Some(copy) = Copy::new() else { return };
    let example = root().join("examples/webserver");
    let prepare = format!(
        "cp -r {} /srv/web; mkdir -p /srv/web/etc; echo 'root_dir: /srv/web/root' > \
         /srv/web/etc/minion; apt-get -qq -y purge nginx nginx-common; rm -rf /etc/nginx",
        example.display()
    );
    copy.sh(&prepare);
    let applied = copy.apply("/srv/web", "webserver", "");
    assert!(applied.contains("Succeeded: 4 (changed=4)"), "{applied}");
    let again = copy.apply("/srv/web", "webserver", "");
    // The server ended with the script; only it has to be started again.
    assert!(changed(&again) <= 1, "{again}");
    assert!(again.contains("Failed:    0"), "{again}");
}
