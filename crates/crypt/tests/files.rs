//! What lies in a `pki_dir` afterwards: names, modes, links, and that nothing is lost on the way.

mod common;

use common::TempDir;
use halite_crypt::pki::{MINION_MASTER_PUB, PkiDir};
use halite_crypt::{Error, Fault, KeyOptions, PrivateKey, PublicKey, file};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// Small keys: these tests are about files.
const SMALL: KeyOptions<'static> = KeyOptions { bits: 1024, passphrase: None, owner: None };

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("exists").permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("directory");
    let name = |e: std::io::Result<fs::DirEntry>| e.expect("entry").file_name().into_string();
    let mut names: Vec<_> = entries.map(|e| name(e).expect("text")).collect();
    names.sort();
    names
}

#[test]
fn a_fresh_master() {
    let tmp = TempDir::new();
    let dir = tmp.path().join("a/pki");
    let pki = PkiDir::new(&dir);
    let key = pki.master("mst_master", &SMALL).expect("made");
    assert_eq!(names(&dir), ["master.pem", "master.pub", "mst.pem", "mst.pub"]);
    assert_eq!((mode(&dir.join("mst.pem")), mode(&dir.join("mst.pub"))), (0o400, 0o400));
    assert_eq!(fs::read_link(dir.join("master.pem")).expect("link"), dir.join("mst.pem"));
    assert_eq!(fs::read_link(dir.join("master.pub")).expect("link"), dir.join("mst.pub"));
    assert_eq!(mode(&dir), 0o700);
    let pem = fs::read_to_string(dir.join("mst.pem")).expect("readable");
    assert!(pem.starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
    let again = pki.master("mst", &SMALL).expect("read");
    assert!(again.public() == key.public());
    // After a rename of the host the key stays the same.
    let renamed = pki.master("other_master", &SMALL).expect("read");
    assert!(renamed.public() == key.public());
    assert_eq!(names(&dir).len(), 4);
}

#[test]
fn a_master_named_master() {
    let tmp = TempDir::new();
    PkiDir::new(tmp.path()).master("master", &SMALL).expect("made");
    assert_eq!(names(tmp.path()), ["master.pem", "master.pub"]);
    assert!(!tmp.path().join("master.pem").is_symlink());
}

/// A pair of 3007 is moved; the text of its public file stays what the minions have pinned.
#[test]
fn an_old_master_is_adopted() {
    for with_pub in [true, false] {
        let tmp = TempDir::new();
        let key = PrivateKey::generate(1024).expect("generate");
        let old_text = key.public().to_pem().replace("-----BEGIN", "made by hand\n-----BEGIN");
        fs::write(tmp.path().join("master.pem"), key.to_pem(None).expose()).expect("write");
        if with_pub {
            fs::write(tmp.path().join("master.pub"), &old_text).expect("write");
        }
        let found = PkiDir::new(tmp.path()).master("mst_master", &SMALL).expect("adopted");
        assert!(found.public() == key.public());
        let text = fs::read_to_string(tmp.path().join("mst.pub")).expect("moved");
        assert_eq!(text, if with_pub { &old_text } else { key.public().to_pem() });
        assert_eq!(found.public().text(), text.trim());
        assert_eq!(names(tmp.path()), ["master.pem", "master.pub", "mst.pem", "mst.pub"]);
        assert!(tmp.path().join("master.pem").is_symlink());
        assert_eq!(mode(&tmp.path().join("mst.pem")), 0o400);
    }
}

#[test]
fn a_minion_and_its_pin() {
    let tmp = TempDir::new();
    let pki = PkiDir::new(tmp.path());
    let minion = pki.minion(&SMALL).expect("made");
    assert_eq!(names(tmp.path()), ["minion.pem", "minion.pub"]);
    assert!(pki.public(MINION_MASTER_PUB).expect("no pin yet").is_none());
    let (first, second) = (minion.public(), PrivateKey::generate(1024).expect("generate"));
    pki.pin(MINION_MASTER_PUB, first).expect("first contact");
    pki.pin(MINION_MASTER_PUB, first).expect("the same again");
    let refused = pki.pin(MINION_MASTER_PUB, second.public());
    assert!(matches!(refused, Err(Error::PinDiffers { .. })));
    assert!(pki.public(MINION_MASTER_PUB).expect("readable").as_ref() == Some(first));
    let path = tmp.path().join(MINION_MASTER_PUB);
    assert_eq!(fs::read_to_string(&path).expect("readable"), first.text(), "no newline is added");
    assert_eq!(mode(&path), 0o644);
    pki.replace_pin(MINION_MASTER_PUB, second.public()).expect("replaced");
    assert!(pki.public(MINION_MASTER_PUB).expect("readable").as_ref() == Some(second.public()));
    fs::write(&path, "rubbish").expect("write");
    let fault = pki.public(MINION_MASTER_PUB).expect_err("no key").to_string();
    assert_eq!(fault, format!("Unable to read key: {}; file may be corrupt", path.display()));
}

#[test]
fn pairs_that_do_not_fit() {
    let tmp = TempDir::new();
    let pki = PkiDir::new(tmp.path());
    let key = pki.load_or_create("master_sign", &SMALL).expect("made");
    let path = tmp.path().join("master_sign.pub");
    fs::remove_file(&path).expect("remove");
    pki.load_or_create("master_sign", &SMALL).expect("the public file comes back");
    assert_eq!(fs::read_to_string(&path).expect("there"), key.public().to_pem());
    let other = PrivateKey::generate(1024).expect("generate");
    file::write(&path, other.public().to_pem().as_bytes(), 0o400, None).expect("write");
    assert!(matches!(pki.load("master_sign", &SMALL), Err(Error::KeysDiffer { .. })));
    file::write(&tmp.path().join("master_sign.pem"), b"", 0o400, None).expect("write");
    let empty = pki.load_or_create("master_sign", &SMALL);
    assert!(matches!(empty, Err(Error::KeyFile { fault: Fault::Malformed, .. })), "not replaced");
}

#[test]
fn passphrases() {
    let tmp = TempDir::new();
    let pki = PkiDir::new(tmp.path());
    let locked = KeyOptions { passphrase: Some("open sesame"), ..SMALL };
    let key = pki.master("m", &locked).expect("made");
    assert!(pki.master("m", &locked).expect("read").public() == key.public());
    let fault = pki.master("m", &SMALL).expect_err("locked").to_string();
    assert!(fault.ends_with("m.pem; passphrase may be incorrect"), "{fault}");
}

#[test]
fn names_stay_inside() {
    let tmp = TempDir::new();
    let pki = PkiDir::new(tmp.path().join("pki"));
    for name in ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", "/etc/x", ".hidden"] {
        assert!(matches!(pki.load_or_create(name, &SMALL), Err(Error::KeyName(_))), "{name:?}");
        assert!(matches!(pki.public(name), Err(Error::KeyName(_))), "{name:?}");
    }
    assert!(names(tmp.path()).is_empty());
}

/// Many processes (here: threads) start at once: all end up with one key.
#[test]
fn the_first_key_wins() {
    let tmp = TempDir::new();
    let dir = tmp.path();
    let keys: Vec<_> = std::thread::scope(|scope| {
        let start = || PkiDir::new(dir).minion(&SMALL).expect("a key").public().clone();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        all.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    let stored = fs::read(dir.join("minion.pem")).expect("there");
    let stored = PrivateKey::from_pem(&stored, None).expect("whole");
    assert!(keys.iter().all(|key| key == stored.public()));
    let written = PublicKey::from_pem(&fs::read(dir.join("minion.pub")).expect("there"));
    assert!(&written.expect("whole") == stored.public());
    assert_eq!(names(dir), ["minion.pem", "minion.pub"]);
}

#[test]
fn planted_links_are_replaced_not_followed() {
    let tmp = TempDir::new();
    let (victim, path) = (tmp.path().join("victim"), tmp.path().join("key"));
    fs::write(&victim, "precious").expect("write");
    symlink(&victim, &path).expect("link");
    assert!(!file::create(&path, b"secret", 0o600, None).expect("refused"));
    file::write(&path, b"secret", 0o600, None).expect("replaced");
    assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
    assert_eq!((fs::read(&path).expect("there"), mode(&path)), (b"secret".to_vec(), 0o600));
    assert!(file::write(&tmp.path().join("no/dir"), b"", 0o600, None).is_err());
    assert!(file::write(tmp.path(), b"", 0o600, None).is_err(), "a directory");
    assert_eq!(names(tmp.path()), ["key", "victim"], "no temporary file stays");
}

/// Runs itself under three umasks; the umask belongs to the whole process.
#[test]
fn modes_do_not_depend_on_the_umask() {
    const DIR: &str = "HALITE_CRYPT_TEST_DIR";
    if let Some(dir) = std::env::var_os(DIR) {
        let dir = Path::new(&dir);
        file::write(&dir.join("w"), b"x", 0o400, None).expect("write");
        file::create(&dir.join("c"), b"x", 0o600, None).expect("create");
        return;
    }
    let exe = std::env::current_exe().expect("own path");
    for umask in ["000", "077", "777"] {
        let tmp = TempDir::new();
        let script = format!("umask {umask}; exec \"$0\" --exact modes_do_not_depend_on_the_umask");
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", &script]).arg(&exe).env(DIR, tmp.path());
        let done = shell.output().expect("sh");
        assert!(done.status.success(), "{umask}: {}", String::from_utf8_lossy(&done.stdout));
        let modes = (mode(&tmp.path().join("w")), mode(&tmp.path().join("c")));
        assert_eq!(modes, (0o400, 0o600), "umask {umask}");
    }
}
