//! Packages, repositories and services for real, on a copy of this machine.
//!
//! The copy is an overlay over `/` in a mount namespace of its own: what a test installs is gone
//! with it. That takes root, `unshare`, overlayfs and apt; where they are missing the tests fail and
//! say so. The packages come from a repository in a scratch folder, so no network is needed: the
//! web server of `examples/` is a stand-in with the name, version and files of the real one.

use std::{path::PathBuf, process::Command};

use halite_e2e::{halite, root};

/// A copy of this machine.
struct Copy {
    folder: tempfile::TempDir,
}

impl Copy {
    /// Makes one, with a repository of nothing but these packages.
    fn new(packages: &str) -> Self {
        // Not below /tmp, which may be a file system an overlay cannot lie on.
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder in /var/tmp");
        for name in ["up", "work", "root"] {
            std::fs::create_dir(folder.path().join(name)).expect("a new folder");
        }
        let copy = Self { folder };
        let (code, out) = copy.sh("command -v apt-get dpkg-deb >/dev/null && test -w /etc");
        assert_eq!(
            code,
            Some(0),
            "no copy of this machine can be made here, which takes root, unshare, overlayfs and \
             apt: {out}"
        );
        let (code, out) = copy.sh(&format!("{REPOSITORY}\n{packages}"));
        assert_eq!(code, Some(0), "{out}");
        copy
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

/// An empty repository without signatures, and `pack NAME VERSION`, which adds what lies in
/// `/srv/build`.
const REPOSITORY: &str = r#"
set -e
mkdir -p /srv/repo /srv/build/DEBIAN
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
cd /srv/repo; : > Packages
pack() {
    printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: tiny\n' $1 $2 > /srv/build/DEBIAN/control
    dpkg-deb --build /srv/build $1_$2.deb >/dev/null
    cat /srv/build/DEBIAN/control >> Packages
    printf 'Filename: ./%s_%s.deb\nSize: %s\nSHA256: %s\n\n' $1 $2 $(stat -c %s $1_$2.deb) $(sha256sum $1_$2.deb | cut -d' ' -f1) >> Packages
}
"#;

/// Two versions of a package that holds one file.
const TINY: &str = r#"
mkdir -p /srv/build/usr/share/halite-tiny
for version in 1.0 1.1; do
    echo $version > /srv/build/usr/share/halite-tiny/version
    pack halite-tiny $version
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

/// A web server that does nothing but remember whether it runs, and how often it was reloaded.
const NGINX: &str = r#"
mkdir -p /srv/build/etc/nginx/sites-enabled /srv/build/etc/init.d
echo '# as packaged' > /srv/build/etc/nginx/nginx.conf
cat > /srv/build/etc/init.d/nginx <<'INIT'
#!/bin/sh
### BEGIN INIT INFO
# Provides: nginx
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
case "$1" in
    start) touch /srv/running ;;
    stop) rm -f /srv/running ;;
    restart|reload|force-reload) touch /srv/running; echo "$1" >> /srv/reloads ;;
    status) test -e /srv/running ;;
esac
INIT
chmod 755 /srv/build/etc/init.d/nginx
pack nginx 1.22.1-9
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list.d/here.list
apt-get -qq -y purge nginx nginx-common >/dev/null 2>&1 || true
rm -rf /etc/nginx
cp -r "$TREE" /srv/web
mkdir -p /srv/web/etc
echo 'root_dir: /srv/web/root' > /srv/web/etc/minion
"#;

#[test]
fn a_package_comes_and_goes() {
    let copy = Copy::new(TINY);

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

#[test]
fn the_example_tree_works() {
    let tree = root().join("examples/webserver");
    let copy = Copy::new(&format!("TREE='{}'\n{NGINX}", tree.display()));
    let tested = copy.apply("/srv/web", "webserver", "test=True");
    assert!(tested.contains("Succeeded: 4 (unchanged=4, changed=3)"), "{tested}");
    assert!(!copy.path("up/etc/nginx").exists(), "{tested}");
    let applied = copy.apply("/srv/web", "webserver", "");
    assert!(applied.contains("Succeeded: 4 (changed=4)"), "{applied}");
    assert!(copy.path("up/srv/running").exists(), "{applied}");
    let site = std::fs::read_to_string(copy.path("up/etc/nginx/sites-enabled/default"));
    assert!(site.unwrap_or_default().contains("server_name"), "{applied}");
    let again = copy.apply("/srv/web", "webserver", "");
    assert!(again.contains("Succeeded: 4\n"), "{again}");
    let (_, out) = copy.sh("echo '# more' >> /srv/web/salt/webserver/files/nginx.conf");
    let reloaded = copy.apply("/srv/web", "webserver", "");
    assert!(reloaded.contains("Succeeded: 4 (changed=2)"), "{out}{reloaded}");
    let reloads = std::fs::read_to_string(copy.path("up/srv/reloads")).unwrap_or_default();
    assert_eq!(reloads, "reload\n", "{reloaded}");
}
