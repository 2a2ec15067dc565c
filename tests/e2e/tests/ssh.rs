//! What the master does on other machines by ssh, with a real server on loopback.
//!
//! The server runs as an ordinary process with keys of its own and ends with the test. There is one
//! machine to sign in to; which minion's `salt-call` answers there is said by a variable that an
//! entry of the roster sends along.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use halite_e2e::{
    Server, free_port, halite, need,
    site::{Make, Site, until},
};
use serde_json::Value;

/// Starts a server that lets the key `ssh/id` of the site in.
fn sshd(site: &Site, port: u16) -> Server {
    need("ssh", &["openssh-client"]);
    let program = need("sshd", &["openssh-server"]);
    // Where it goes without rights; the package's service would make it.
    fs::create_dir_all("/run/sshd").expect("a folder");
    fs::create_dir_all(site.path("ssh")).expect("a folder");
    for key in ["id", "host"] {
        let file = site.path(&format!("ssh/{key}")).display().to_string();
        site.command(Command::new("ssh-keygen").args(["-qt", "ed25519", "-N", "", "-f", &file]))
            .code(0);
    }
    let folder = site.path("ssh").display().to_string();
    let bin = site.path("bin").display().to_string();
    site.write(
        "ssh/config",
        format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n\
             AuthorizedKeysFile {folder}/id.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             PermitRootLogin prohibit-password\nAcceptEnv MINION\nSetEnv PATH={bin}:/usr/bin:/bin\n"
        ),
    );
    let host = site.read("ssh/host.pub");
    site.write("ssh/known", format!("[127.0.0.1]:{port} {host}"));
    let child = Command::new(program)
        .args(["-D", "-e", "-f", &format!("{folder}/config")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(site.path("sshd.log")).expect("a log"))
        .spawn()
        .expect("the server starts");
    until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    Server(child)
}

/// Returns a site with a roster of these entries; `{}` in each is what reaches the server.
fn with_roster(entries: &str) -> (Site, Server) {
    let port = free_port();
    let site = Site::new(Make::Ours, "");
    let server = sshd(&site, port);
    let folder = site.path("ssh").display().to_string();
    let reach = format!("host: 127.0.0.1, port: {port}, user: root, priv: {folder}/id");
    site.write("master/etc/roster", entries.replace("{}", &reach));
    let mut config = site.read("master/etc/master");
    config.push_str(&format!("known_hosts_file: {folder}/known\nssh_timeout: 20\n"));
    site.write("master/etc/master", config);
    (site, server)
}

/// What was said on the way, and what was returned.
fn answer(out: &str) -> (&str, Value) {
    let (said, data) = out.split_at(out.find("\n[").expect("a list") + 1);
    (said, serde_json::from_str(data).expect("JSON"))
}

#[test]
fn keys_are_accepted_whose_fingerprint_ssh_confirms() {
    let (mut site, _server) = with_roster(
        "web1: {{}, ssh_options: [SetEnv=MINION=web1]}\n\
         web2: {{}, ssh_options: [SetEnv=MINION=web1]}\n\
         new: {{}, ssh_options: [SetEnv=MINION=web1]}\n\
         empty: {{}, ssh_options: [SetEnv=MINION=empty]}\n\
         strange: {{}, known_hosts_file: /dev/null}\n\
         gone: {host: 127.0.0.1, port: 1}\n\
         word: {host: 127.0.0.1, passwd: secret}\n",
    );
    let call = format!(
        "#!/bin/sh\necho welcome\nexec {} call -c {}/$MINION/etc \"$@\"\n",
        halite().display(),
        site.path("").display()
    );
    site.write("bin/salt-call", call);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.path("bin/salt-call"), mode).expect("a program");
    site.configure("empty", "");
    site.start_master();
    for id in ["web1", "web2"] {
        site.minion(id, Make::Ours, "hash_type: sha512");
    }
    let pending = site.path("master/etc/salt/pki/master/minions_pre");
    until("the keys are shown", || ["web1", "web2"].iter().all(|id| pending.join(id).exists()));

    let ran = site.run("salt-run", &["manage.safe_accept", "*", "--out=json"]).code(0);
    let (said, data) = answer(&ran.out);
    let finger = data[0]["web1"].as_str().unwrap_or_else(|| panic!("{data}")).to_owned();
    assert_eq!(finger.len(), 32 * 3 - 1, "hashed as the master hashes: {finger}");
    assert_eq!(data[0].as_object().map(serde_json::Map::len), Some(1), "{data}");
    let failed = |id: &str| data[1][id].as_str().unwrap_or_default().to_owned();
    let other = format!("Minion key {finger} does not match the key in salt-key: ");
    assert!(failed("web2").starts_with(&other), "{data}");
    assert_eq!(failed("new"), "Minion key new not found by salt-key");
    assert_eq!(failed("empty"), "The minion there has no key yet");
    assert!(failed("strange").contains("Host key verification failed"), "{data}");
    assert!(failed("gone").contains("Connection refused"), "{data}");
    assert!(failed("word").starts_with("`passwd` of the roster is not part of Halite"), "{data}");
    assert!(said.starts_with("safe_accept failed on the following minions:\n"), "{said}");
    assert!(said.contains("new\n---\nMinion key new not found by salt-key\n"), "{said}");
    assert!(site.path("master/etc/salt/pki/master/minions/web1").exists());
    assert!(pending.join("web2").exists(), "who does not match goes on waiting");
    site.answer(&["web1"]);

    // Accepted before: nothing to do, nothing to tell.
    let again = site.run("salt-run", &["manage.safe_accept", "web1", "--out=json"]).code(0);
    assert_eq!(answer(&again.out).1, serde_json::json!([{}, {}]));
}

#[test]
fn a_script_runs_on_hosts_of_the_roster() {
    let (site, _server) =
        with_roster("web1: {{}}\nweb2: {{}, tty: True}\ngone: {host: 127.0.0.1, port: 1}\n");
    let out = site.path("out").display().to_string();
    let script = format!(
        "#!/bin/sh\nfor word; do echo \"<$word>\" >> {out}; done\necho \"from ${{0%-*}}\"\n\
         test \"$1\" != fail || {{ echo broken >&2; exit 3; }}\n"
    );
    site.write("srv/salt/install.sh", &script);
    site.write("install.sh", &script);
    let tmp = format!("tmp_dir={}", site.path("tmp/boot").display());
    let run = |args: &[&str]| {
        site.run("salt-run", &[&["manage.bootstrap", &tmp, "--out=json"], args].concat())
    };
    let from = format!("from {}", site.path("tmp/boot").display());

    let args = "script_args='a b' $(touch x) *";
    let ran = run(&["hosts=web1,web2", "script=salt://install.sh", args]).code(0);
    let returned: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(returned, serde_json::json!({"web1": from, "web2": from}));
    let mut words: Vec<_> =
        fs::read_to_string(&out).expect("it ran").lines().map(str::to_owned).collect();
    words.sort();
    assert_eq!(words, ["<$(touch>", "<$(touch>", "<*>", "<*>", "<a b>", "<a b>", "<x)>", "<x)>"]);
    assert_eq!(fs::read_dir(site.path("tmp")).expect("a folder").count(), 0, "it cleans up");

    let file = format!("script={}", site.path("install.sh").display());
    let ran = run(&["hosts=web1,gone,nobody", &file, "script_args=fail"]).code(0);
    assert_eq!(ran.err.matches("the script failed or did not run").count(), 3, "{ran:?}");
    let returned: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(returned["web1"], format!("{from}\nbroken"));
    assert!(returned["gone"].to_string().contains("Connection refused"), "{returned}");
    assert_eq!(returned["nobody"], "No matching targets found in roster.");
    assert_eq!(fs::read_dir(site.path("tmp")).expect("a folder").count(), 0, "it cleans up");

    let ran = run(&["hosts=web1"]).code(1);
    assert!(ran.out.contains("fetches nothing by itself"), "{ran:?}");
    let ran = run(&["hosts=web1", &file, "ssh_password=secret"]).code(0);
    assert!(ran.out.contains("`passwd` of the roster is not part of Halite"), "{ran:?}");
}
