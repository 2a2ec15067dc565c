//! States of accounts and crontabs, on a machine whose tools really change it.

#![expect(clippy::unwrap_used, reason = "a test may end when its own set-up is wrong")]

use std::path::Path;

use halite_host::{Fake, fake::prints};
use halite_spec::host::{Command, Host, Output, Write};
use halite_testkit::Kit;
use halite_value::{Dict, Value, dict, entries, yaml};

fn word(command: &Command, at: usize) -> String {
    command.argv.get(at).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

fn after(command: &Command, option: &str) -> Option<String> {
    let at = command.argv.iter().position(|word| word == option)?;
    Some(word(command, at + 1))
}

/// Rewrites the line of a name in a file of colons.
fn edit(fake: &Fake, path: &str, name: &str, change: impl Fn(&mut Vec<String>)) {
    let text = fake.text(path);
    let lines = text.lines().map(|line| {
        let mut parts: Vec<String> = line.split(':').map(str::to_owned).collect();
        if parts[0] == name {
            change(&mut parts);
        }
        parts.join(":") + "\n"
    });
    let new: String = lines.collect();
    let host: &dyn Host = fake;
    host.write(Path::new(path), new.as_bytes(), &Write::default()).unwrap();
}

/// A machine with the tools of the shadow suite and of cron.
fn kit() -> Kit {
    let kit = Kit::new();
    let fake = &kit.fake;
    for tool in ["useradd", "usermod", "userdel", "groupadd", "groupmod", "groupdel", "gpasswd"] {
        fake.program(format!("/usr/sbin/{tool}"));
    }
    fake.file("/etc/shadow", "root:*:1:0:99999:7:::\n").dir("/home");
    fake.on(&["useradd"], |command, fake| {
        let name = command.argv.last().unwrap().to_string_lossy().into_owned();
        let uid = after(command, "-u").and_then(|uid| uid.parse().ok()).unwrap_or(1000);
        fake.user(&name, uid, uid).group(&name, uid, &[]).dir(format!("/home/{name}"));
        let text = fake.text("/etc/shadow") + &format!("{name}:!:19000:0:99999:7:::\n");
        fake.file("/etc/shadow", text);
        if let Some(shell) = after(command, "-s") {
            edit(fake, "/etc/passwd", &name, |parts| parts[6].clone_from(&shell));
        }
        prints("")
    });
    fake.on(&["usermod"], |command, fake| {
        let name = command.argv.last().unwrap().to_string_lossy().into_owned();
        for (option, field) in [("-s", 6), ("-d", 5), ("-c", 4), ("-u", 2), ("-g", 3)] {
            if let Some(value) = after(command, option) {
                edit(fake, "/etc/passwd", &name, |parts| parts[field].clone_from(&value));
            }
        }
        if let Some(groups) = after(command, "-G") {
            let groups: Vec<String> = groups.split(',').map(str::to_owned).collect();
            for line in fake.text("/etc/group").lines() {
                let group = line.split(':').next().unwrap().to_owned();
                edit(fake, "/etc/group", &group, |parts| {
                    parts[3] = if groups.contains(&group) { name.clone() } else { String::new() };
                });
            }
        }
        prints("")
    });
    fake.on(&["chage", "-m"], |command, fake| {
        let (days, name) = (word(command, 2), word(command, 3));
        edit(fake, "/etc/shadow", &name, |parts| parts[3].clone_from(&days));
        prints("")
    });
    fake.on(&["groupadd"], |command, fake| {
        let name = command.argv.last().unwrap().to_string_lossy().into_owned();
        fake.group(&name, after(command, "-g").map_or(900, |gid| gid.parse().unwrap()), &[]);
        prints("")
    });
    fake.on(&["gpasswd", "--members"], |command, fake| {
        let (users, group) = (word(command, 2), word(command, 3));
        edit(fake, "/etc/group", &group, |parts| parts[3].clone_from(&users));
        prints("")
    });
    fake.on(&["gpasswd", "--add"], |command, fake| {
        let (user, group) = (word(command, 2), word(command, 3));
        edit(fake, "/etc/group", &group, |parts| {
            parts[3] =
                if parts[3].is_empty() { user.clone() } else { format!("{},{user}", parts[3]) };
        });
        prints("")
    });
    fake.on(&["crontab", "-l"], |_, fake| {
        if fake.has("/tab") {
            prints(fake.text("/tab"))
        } else {
            Output { code: 1, ..Output::default() }
        }
    });
    fake.on(&["crontab", "-"], |command, fake| {
        fake.file("/tab", command.stdin.clone().unwrap());
        prints("")
    });
    kit
}

fn args(text: &str) -> Dict {
    match yaml::load_str(text).unwrap() {
        Value::Dict(args) => args,
        _ => panic!("{text}"),
    }
}

/// Runs a state and checks result, comment and changes.
fn check(
    kit: &Kit,
    state: &str,
    given: &str,
    test: bool,
    result: Value,
    comment: &str,
    changes: Value,
) {
    let ret = kit.state(state, &args(given), test);
    assert_eq!(ret.get("comment").unwrap(), comment, "{state} {given}");
    assert_eq!(ret.get("changes").unwrap(), changes, "{state} {given}");
    assert_eq!(ret.get("result").unwrap(), result, "{state} {given}");
}

#[test]
fn a_user_is_made_then_changed_then_right() {
    let kit = kit();
    let first = "{name: ann, uid: 1500, shell: /bin/sh, fullname: Ann B}";
    check(
        &kit,
        "user.present",
        first,
        true,
        Value::Null,
        "User ann set to be added",
        Value::dict(),
    );
    let made = dict! {
        "gid" => 1500, "groups" => Value::list(["ann"]), "home" => "/home/ann", "name" => "ann",
        "passwd" => "x", "shell" => "/bin/sh", "uid" => 1500, "fullname" => "Ann B",
        "roomnumber" => "", "workphone" => "", "homephone" => "", "other" => "",
    };
    check(&kit, "user.present", first, false, true.into(), "New user ann created", made);
    let fine = "User ann is present and up to date";
    check(&kit, "user.present", first, false, true.into(), fine, Value::dict());

    kit.fake.group("daemon", 1, &[]);
    let second = "{name: ann, shell: /bin/bash, groups: [daemon], password: $6$x$y, mindays: 3}";
    // The fake clock stands at the start of 2026.
    let changes = dict! {
        "groups" => Value::list(["ann", "daemon"]), "shell" => "/bin/bash",
        "passwd" => "XXX-REDACTED-XXX", "lstchg" => 20454, "min" => 3,
    };
    let pending = "The following user attributes are set to be changed:\ngroups: ['daemon']\n\
                   shell: /bin/bash\npasswd: XXX-REDACTED-XXX\nmindays: 3\n";
    check(&kit, "user.present", second, true, Value::Null, pending, changes.clone());
    check(&kit, "user.present", second, false, true.into(), "Updated user ann", changes);
    check(&kit, "user.present", second, false, true.into(), fine, Value::dict());
    let none = "{name: ann, groups: []}";
    let changes = dict! { "groups" => Value::list(["ann"]) };
    check(
        &kit,
        "user.present",
        none,
        true,
        Value::Null,
        "The following user attributes are set to be changed:\ngroups: []\n",
        changes.clone(),
    );
    check(&kit, "user.present", none, false, true.into(), "Updated user ann", changes);
}

#[test]
fn a_group_is_made_then_changed() {
    let kit = kit();
    let made =
        dict! { "name" => "web", "passwd" => "x", "gid" => 900, "members" => Value::list(["ann"]) };
    let first = "{name: web, members: [ann]}";
    check(
        &kit,
        "group.present",
        first,
        true,
        Value::Null,
        "Group web set to be added",
        Value::dict(),
    );
    check(&kit, "group.present", first, false, true.into(), "New group web created", made);
    let second = "{name: web, addusers: [bob]}";
    let text = "The following group attributes are set to be changed:\naddusers: ['bob']\n";
    let changes = dict! { "Final" => "All changes applied successfully" };
    check(&kit, "group.present", second, true, Value::Null, text, Value::dict());
    check(&kit, "group.present", second, false, true.into(), text, changes);
    let fine = "Group web is present and up to date";
    check(&kit, "group.present", second, false, true.into(), fine, Value::dict());
}

#[test]
fn a_job_is_added_changed_and_removed() {
    let kit = kit();
    let change = Value::Dict(entries! { "root" => "run it" });
    let first = "{name: run it, minute: 5, identifier: one}";
    check(
        &kit,
        "cron.present",
        first,
        true,
        Value::Null,
        "Cron run it is set to be added",
        change.clone(),
    );
    check(
        &kit,
        "cron.present",
        first,
        false,
        true.into(),
        "Cron run it added to root's crontab",
        change.clone(),
    );
    assert_eq!(
        kit.fake.text("/tab"),
        "# Lines below here are managed by Salt, do not edit\n# SALT_CRON_IDENTIFIER:one\n5 * * * * run it\n"
    );
    check(
        &kit,
        "cron.present",
        first,
        false,
        true.into(),
        "Cron run it already present",
        Value::dict(),
    );
    let second = "{name: run it, hour: 3, identifier: one, comment: why}";
    check(&kit, "cron.present", second, false, true.into(), "Cron run it updated", change.clone());
    assert!(kit.fake.text("/tab").contains("# why SALT_CRON_IDENTIFIER:one\n* 3 * * * run it\n"));
    let env = "{name: MAILTO, value: me}";
    let set = dict! { "root" => "MAILTO" };
    check(
        &kit,
        "cron.env_present",
        env,
        false,
        true.into(),
        "Cron env MAILTO added to root's crontab",
        set,
    );
    check(
        &kit,
        "cron.env_present",
        env,
        false,
        true.into(),
        "Cron env MAILTO already present",
        Value::dict(),
    );
    let gone = "{name: run it, identifier: one}";
    check(
        &kit,
        "cron.absent",
        gone,
        true,
        Value::Null,
        "Cron run it is set to be removed",
        change.clone(),
    );
    check(
        &kit,
        "cron.absent",
        gone,
        false,
        true.into(),
        "Cron run it removed from root's crontab",
        change,
    );
    check(
        &kit,
        "cron.absent",
        gone,
        false,
        true.into(),
        "Cron run it already absent",
        Value::dict(),
    );
}
