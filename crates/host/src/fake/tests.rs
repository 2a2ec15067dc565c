//! The machine in memory behaves as a machine does.

use super::*;

fn host(fake: &Fake) -> &dyn Host {
    fake
}

#[test]
fn files_folders_and_links() {
    let fake = Fake::new();
    fake.file("/srv/a/f", "one").link("/srv/l", "a").link("/abs", "/srv/l/f");
    assert_eq!(fake.text("/srv/l/f"), "one");
    assert_eq!(fake.text("/abs"), "one");
    assert_eq!(fake.text("/srv/l/../a/f"), "one");
    assert_eq!(fake.real_path(Path::new("/srv/l/f")).unwrap(), Path::new("/srv/a/f"));
    assert_eq!(fake.real_path(Path::new("/")).unwrap(), Path::new("/"));
    assert_eq!(fake.read_dir(Path::new("/srv")).unwrap(), ["a", "l"]);
    assert_eq!(fake.stat(Path::new("/abs"), false).unwrap().kind, Kind::Link);
    assert_eq!(fake.stat(Path::new("/abs"), true).unwrap().size, 3);
    assert!(host(&fake).is_dir(Path::new("/srv/l")).unwrap());
    assert!(host(&fake).is_link(Path::new("/srv/l")).unwrap());
    fake.remove_all(Path::new("/srv/l")).unwrap();
    assert!(fake.has("/srv/a/f"), "only the link");
    fake.remove_all(Path::new("/srv")).unwrap();
    assert!(!fake.has("/srv"));
}

#[test]
fn errors_are_the_systems() {
    let fake = Fake::new();
    fake.file("/f", "").link("/loop", "loop").dir("/d/e");
    let check = |result: Result<()>, expected: &str| {
        assert_eq!(result.unwrap_err().to_string(), expected);
    };
    let open = |path: &str| fake.open(Path::new(path)).map(drop);
    check(open("/none"), "cannot read /none: No such file or directory");
    check(open("/f/x"), "cannot read /f/x: Not a directory");
    check(open("/d"), "cannot read /d: Is a directory");
    check(open("/loop"), "cannot read /loop: Too many levels of symbolic links");
    check(fake.create_dir(Path::new("/d"), None), "cannot create /d: File exists");
    check(fake.remove_dir(Path::new("/d")), "cannot remove /d: Directory not empty");
    check(fake.remove_dir(Path::new("/f")), "cannot remove /f: Not a directory");
    check(fake.remove_file(Path::new("/d")), "cannot remove /d: Is a directory");
    check(fake.rename(Path::new("/d"), Path::new("/d/e/x")), "cannot rename /d: Invalid argument");
    check(
        host(&fake).write(Path::new("/no/f"), b"", &Write::default()),
        "cannot write /no/f: No such file or directory",
    );
}

#[test]
fn writing_keeps_what_is_not_asked() {
    let fake = Fake::new();
    fake.file("/f", "old").mode("/f", 0o640).owner("/f", 5, 6).xattr("/f", "user.a", "b");
    fake.link("/l", "f").link("/dangling", "/etc/made");
    host(&fake).write(Path::new("/l"), b"new", &Write::default()).unwrap();
    let stat = fake.stat(Path::new("/f"), false).unwrap();
    assert_eq!((stat.mode, stat.uid, stat.gid), (0o640, 5, 6));
    assert_eq!(fake.get_xattr(Path::new("/f"), "user.a").unwrap().unwrap(), b"b");
    let how = Write { mode: Some(0o600), uid: Some(7), gid: None };
    host(&fake).write(Path::new("/dangling"), b"x", &how).unwrap();
    let stat = fake.stat(Path::new("/etc/made"), false).unwrap();
    assert_eq!((stat.mode, stat.uid, stat.gid), (0o600, 7, 0));
}

#[test]
fn hard_links_share_a_node_until_one_is_replaced() {
    let fake = Fake::new();
    fake.file("/a", "1");
    fake.hard_link(Path::new("/a"), Path::new("/b")).unwrap();
    assert_eq!(fake.stat(Path::new("/a"), false).unwrap().links, 2);
    fake.append(Path::new("/b"), b"2").unwrap();
    assert_eq!(fake.text("/a"), "12");
    fake.file("/b", "other");
    assert_eq!((fake.text("/a"), fake.text("/b")), ("12".into(), "other".into()));
    assert_eq!(fake.stat(Path::new("/a"), false).unwrap().links, 1);
}

#[test]
fn renaming() {
    let fake = Fake::new();
    fake.file("/a", "1").file("/b", "2").dir("/d").file("/e/f", "");
    fake.rename(Path::new("/a"), Path::new("/b")).unwrap();
    assert!(!fake.has("/a") && fake.text("/b") == "1");
    fake.rename(Path::new("/e"), Path::new("/d")).unwrap();
    assert!(fake.has("/d/f") && !fake.has("/e"));
    assert!(fake.rename(Path::new("/b"), Path::new("/d")).is_err());
    fake.rename(Path::new("/b"), Path::new("/b")).unwrap();
    assert!(fake.has("/b"));
}

#[test]
fn the_clock_moves_when_told() {
    let fake = Fake::new();
    let start = fake.now();
    fake.sleep(Duration::from_secs(90)).unwrap();
    assert_eq!(fake.now().duration_since(start).unwrap(), Duration::from_secs(90));
    fake.file("/f", "");
    assert_eq!(fake.stat(Path::new("/f"), true).unwrap().mtime, 1_767_225_690.0);
}

#[test]
fn accounts_are_the_files() {
    let fake = Fake::new();
    fake.user("ann", 1000, 100).group("staff", 50, &["ann", "root"]);
    assert_eq!(fake.user_named("ann").unwrap().unwrap().home, "/home/ann");
    assert_eq!(fake.user_with_id(0).unwrap().unwrap().name, "root");
    assert_eq!(fake.group_named("staff").unwrap().unwrap().members, ["ann", "root"]);
    assert_eq!(fake.group_with_id(50).unwrap().unwrap().name, "staff");
    assert_eq!(fake.user_named("bob").unwrap(), None);
    fake.file("/etc/passwd", "");
    assert!(fake.users().unwrap().is_empty());
}

#[test]
fn scripted_commands() {
    let fake = Fake::new();
    fake.on(&["useradd"], |command, fake| {
        let name = command.argv.last().unwrap().to_string_lossy().into_owned();
        fake.user(&name, 1001, 1001);
        prints("")
    });
    fake.on(&["systemctl"], |_, _| fails(4, "no\n"));
    fake.on(&["systemctl", "is-active"], |_, _| prints("active\n"));
    let run = |words: &[&str]| fake.run(&Command::new(words[0]).args(&words[1..])).unwrap();
    assert!(run(&["useradd", "-m", "bob"]).ok());
    assert_eq!(fake.user_named("bob").unwrap().unwrap().uid, 1001);
    assert_eq!(run(&["systemctl", "start", "x"]).code, 4);
    assert_eq!(run(&["systemctl", "is-active", "x"]).stdout_text(), "active\n");
    assert_eq!(run(&["what"]).code, 127);
    assert_eq!(fake.command_lines().len(), 4);
}

#[test]
fn snapshots_tell_what_changed() {
    let fake = Fake::new();
    fake.file("/etc/x", "a").file("/etc/y", "b");
    let before = fake.snapshot();
    assert!(fake.read_dir(Path::new("/etc")).is_ok() && before == fake.snapshot());
    fake.mode("/etc/x", 0o600).file("/etc/z", "").remove_file(Path::new("/etc/y")).unwrap();
    fake.set_env(OsStr::new("A"), Some(OsStr::new("b"))).unwrap();
    let after = fake.snapshot();
    assert_ne!(before, after);
    assert_eq!(
        before.diff(&after),
        ["~ /etc/x mode: 0644 -> 0600", "- /etc/y", "+ /etc/z", "~ $A: None -> Some(\"b\")"]
    );
    assert!(after.diff(&fake.snapshot()).is_empty());
}

#[test]
fn which_finds_programs() {
    let fake = Fake::new();
    fake.program("/usr/bin/git").file("/usr/sbin/data", "");
    assert_eq!(host(&fake).which("git"), Some("/usr/bin/git".into()));
    assert_eq!(host(&fake).which("data"), None, "no program");
}

#[test]
fn a_cancelled_job_changes_nothing_more() {
    let fake = Fake::new();
    fake.cancel();
    assert!(matches!(fake.run(&Command::new("x")), Err(Error::Cancelled)));
    assert!(matches!(fake.set_mode(Path::new("/tmp"), 0), Err(Error::Cancelled)));
}
