//! Functions whose work needs real programs or a real server: keys and certificates, packed trees,
//! external pillars on demand, patches, HTTPS.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
};

use halite_e2e::{Machine, fleet::Fleet, free_port, need};

/// The return of a function, as JSON on one line.
fn returned(machine: &Machine, args: &[&str]) -> String {
    let args = [args, &["--out=json", "--out-indent=-1"]].concat();
    let ran = machine.call(&args);
    let text = ran.out.trim().strip_prefix("{\"local\": ").and_then(|rest| rest.strip_suffix('}'));
    text.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

#[test]
fn openssh_certificates() {
    let keygen = need("ssh-keygen", &["openssh-client"]);
    let machine = Machine::new();
    let at = |name: &str| machine.path(name).display().to_string();
    for algo in ["rsa", "ec", "ed25519"] {
        let (key, certificate) = (at(&format!("{algo}.key")), at(&format!("{algo}.crt")));
        let made = ["ssh_pki.create_private_key", algo, &format!("path={key}")];
        assert_eq!(returned(&machine, &made), format!("\"Private key written to {key}\""));
        // OpenSSH reads what we wrote, and sees the same public key.
        let shown = machine.run(Command::new(&keygen).args(["-y", "-f", &key])).code(0);
        let public = machine.read(&format!("{algo}.key.pub")).expect("written beside it");
        assert_eq!(shown.out.trim(), public);
        let signed = [
            "ssh_pki.create_certificate",
            "cert_type=host",
            &format!("signing_private_key={key}"),
            &format!("public_key={key}.pub"),
            "valid_principals=[web1, 'a,b']",
            "key_id=web1",
            "serial_number=255",
            "critical_options={force-command: id}",
            &format!("path={certificate}"),
        ];
        assert_eq!(
            returned(&machine, &signed),
            format!("\"Certificate written to {certificate}\"")
        );
        // It checks the signature, too.
        let shown = machine.run(Command::new(&keygen).args(["-L", "-f", &certificate])).code(0);
        for part in
            ["host certificate", "Key ID: \"web1\"", "Serial: 255", "a,b", "force-command id"]
        {
            assert!(shown.out.contains(part), "{algo}: {part}: {}", shown.out);
        }
        let verify = ["ssh_pki.verify_signature", &certificate, &format!("{key}.pub")];
        assert_eq!(returned(&machine, &verify), "true");
        assert_eq!(returned(&machine, &["ssh_pki.expires", &certificate, "31d"]), "true");
        assert_eq!(returned(&machine, &["ssh_pki.expires", &certificate, "29d"]), "false");
    }
    let other = ["ssh_pki.verify_signature", &at("rsa.crt"), &at("ec.key")];
    assert_eq!(returned(&machine, &other), "false");
}

#[test]
fn openssh_keys_with_a_passphrase() {
    let keygen = need("ssh-keygen", &["openssh-client"]);
    let machine = Machine::new();
    let key = machine.path("key").display().to_string();
    let passphrase = "two words 'and' $more";
    let state = |more: &[&str]| {
        let args = ["state.single", "ssh_pki.private_key_managed", "algo=ed25519"];
        machine.call(&[&args, more, &[&format!("name={key}")]].concat())
    };
    state(&[]).code(0).says("The private key has been created");
    let public = returned(&machine, &["ssh_pki.get_public_key", &key]);
    let given = format!("passphrase={passphrase}");
    state(&[&given]).code(0).says("The private key has been encrypted");
    state(&[&given]).code(0).says("The private key is in the correct state");
    state(&[]).says("The current key is encrypted with a passphrase.");
    state(&["passphrase=another"]).says("The provided passphrase cannot decrypt the private key.");
    assert_eq!(returned(&machine, &["ssh_pki.get_public_key", &key, &given]), public);
    let shown = machine.run(Command::new(&keygen).args(["-y", "-P", passphrase, "-f", &key]));
    assert_eq!(format!("\"{}\"", shown.code(0).out.trim()), public);
    // A text without an end of line, as a pillar may hold it.
    let text = std::fs::read_to_string(&key).unwrap();
    let text = format!("\"{}\"", text.trim_end().replace('\n', "\\n"));
    assert_eq!(returned(&machine, &["ssh_pki.get_public_key", &text, &given]), public);
}

#[test]
fn bare_keys_sign_and_verify() {
    let openssl = need("openssl", &["openssl"]);
    let machine = Machine::new();
    let at = |name: &str| machine.path(name).display().to_string();
    for (name, words) in [
        ("rsa", &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"] as &[&str]),
        ("ec", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
        ("ed25519", &["ED25519"]),
    ] {
        let key = at(name);
        let mut command = Command::new(&openssl);
        command.args(["genpkey", "-algorithm"]).args(words).args(["-out", &key]);
        machine.run(&mut command).code(0);
        let public = format!("{key}.pub");
        let mut command = Command::new(&openssl);
        machine.run(command.args(["pkey", "-in", &key, "-pubout", "-out", &public])).code(0);
        let signed = returned(&machine, &["asymmetric.sign", &key, "text=data"]);
        let signature = format!("signature={}", signed.trim_matches('"'));
        let pubkey = format!("pubkey={public}");
        let verify = ["asymmetric.verify", "text=data", &pubkey, &signature];
        assert_eq!(
            returned(&machine, &verify),
            r#"{"res": true, "message": "The signature is valid"}"#
        );
        let verify = ["asymmetric.verify", "text=other", &pubkey, &signature];
        assert!(returned(&machine, &verify).contains("Invalid signature for key"), "{name}");
    }
}

#[test]
fn x509_tells_of_words_of_old_times() {
    let machine = Machine::new();
    let key = machine.path("ca.key").display().to_string();
    let warned = |args: &[&str]| -> Vec<String> {
        let ran = machine.call(args).code(0);
        let lines = ran.err.lines().filter_map(|line| line.strip_prefix("DeprecationWarning: "));
        lines.map(str::to_owned).collect()
    };
    let path = format!("path={key}");
    let told = warned(&["x509.create_private_key", "bits=2048", "verbose=True", &path]);
    assert_eq!(
        told,
        [
            "`bits` has been renamed to `keysize`. Please update your code.",
            "The following parameter(s) have been deprecated and will be removed in '3009.0': \
             'verbose'.",
        ]
    );
    let signed = ["x509.create_certificate", &format!("signing_private_key={key}"), "CN=a"];
    let short = [&signed[..], &["days_valid=3", "basicConstraints=CA:true"]].concat();
    assert_eq!(warned(&short), [""; 0], "words of today");
    let long = [&signed[..], &["commonName=b"]].concat();
    assert_eq!(
        warned(&long),
        [
            "Found commonName in keyword args. Please migrate to the short name: CN",
            "The default value for `days_valid` will change to 30. Please adapt your code \
             accordingly.",
        ]
    );
    // A state tells of what says nothing any more only when it makes the thing; a request is not
    // made for a test.
    let named = |file: &str| format!("name={}", machine.path(file).display());
    let with = ["CN=a", "version=1", "text=True"];
    let (name, key) = (named("a.csr"), format!("private_key={key}"));
    let request = [&["state.single", "x509.csr_managed", &name, &key], &with[..]].concat();
    let (name, key) = (named("a.crt"), format!("signing_{key}"));
    let days = ["days_valid=3", "days_remaining=1"];
    let certificate =
        [&["state.single", "x509.certificate_managed", &name, &key], &days[..], &with].concat();
    let unheard = "The following parameter(s) have been deprecated and will be removed in \
                   '3009.0': 'text', 'version'.";
    let tested = |given: &[&str]| warned(&[given, &["test=True"]].concat());
    assert_eq!(tested(&request), [""; 0]);
    assert_eq!(tested(&certificate), [unheard]);
    for kept in [request, certificate] {
        assert_eq!(warned(&kept), [unheard]);
        assert_eq!(warned(&kept), [""; 0]);
    }
}

#[test]
fn external_pillars_on_demand() {
    let machine = Machine::new();
    machine.write("srv/pillar/top.sls", "base: {'*': [own]}\n");
    machine.write("srv/pillar/own.sls", "own: 1\n");
    let ask = ["pillar.ext", "{cmd_yaml: \"printf 'more: 2'\"}", "unmask=True"];
    let ran = machine.call(&[&ask as &[&str], &["--out=json", "--out-indent=-1"]].concat());
    assert!(ran.out.contains(r#"{"own": 1}"#), "{ran:?}");
    assert!(ran.err.contains("`on_demand_ext_pillar` does not allow: cmd_yaml"), "{}", ran.err);
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}on_demand_ext_pillar: [cmd_yaml]\n"));
    assert_eq!(returned(&machine, &ask), r#"{"own": 1, "more": 2}"#);
    let masked = returned(&machine, &ask[..2]);
    assert_eq!(masked, r#"{"own": "**********", "more": "**********"}"#);
}

#[test]
fn packed_trees() {
    let machine = Machine::new();
    let made = machine.path("made.txt").display().to_string();
    let low = format!(
        r#"[{{"state": "file", "fun": "managed", "name": "{made}", "__id__": "made",
            "__sls__": "x", "__env__": "base", "order": 10000,
            "source": "salt://f.txt", "template": "jinja"}}]"#
    );
    machine.write("pack/lowstate.json", &low);
    machine.write("pack/pillar.json", r#"{"who": "pillar"}"#);
    machine.write("pack/roster_grains.json", r#"{"from": "roster"}"#);
    machine.write("pack/base/f.txt", "{{ pillar['who'] }} {{ grains['from'] }}\n");
    let mut tar = Command::new("tar");
    tar.args(["-czf", "tree.tgz", "-C", "pack", "."]);
    machine.run(&mut tar).code(0);
    let tree = machine.path("tree.tgz").display().to_string();
    let sum = returned(&machine, &["file.get_hash", &tree, "md5"]);
    let sum = sum.trim_matches('"');
    // A hash that does not fit, and a file that is not there: nothing is done.
    assert_eq!(returned(&machine, &["state.pkg", &tree, "aa", "md5"]), "{}");
    assert_eq!(returned(&machine, &["state.pkg", "/nowhere.tgz", sum, "md5"]), "{}");
    let told = machine.call(&["state.pkg", &tree, sum, "md7"]);
    assert!(told.err.contains("Invalid hash type: md7"), "{told:?}");
    let test = machine.call(&["state.pkg", &tree, sum, "md5", "test=True"]);
    assert!(test.out.contains("Result: None"), "{test:?}");
    assert_eq!(machine.read("made.txt"), None);
    machine.call(&["state.pkg", &tree, sum, "md5"]).code(0).says("Result: True");
    assert_eq!(machine.read("made.txt").as_deref(), Some("pillar roster\n"));
}

#[test]
fn patches_leave_no_rejects() {
    need("patch", &["patch"]);
    let machine = Machine::new();
    machine.write("text", "one\ntwo\nthree\n");
    machine.write(
        "srv/salt/wrong.patch",
        "--- a\n+++ b\n@@ -1,3 +1,3 @@\n eins\n-zwei\n+ZWEI\n drei\n",
    );
    let text = machine.path("text").display().to_string();
    let ran = machine.call(&["state.single", "file.patch", &text, "source=salt://wrong.patch"]);
    assert!(ran.out.contains("Result: False"), "{ran:?}");
    assert!(ran.out.contains("Patch would not apply cleanly"), "{ran:?}");
    assert_eq!(machine.read("text").as_deref(), Some("one\ntwo\nthree\n"));
    for leftover in ["text.rej", "text.orig"] {
        assert_eq!(machine.read(leftover), None, "{leftover}");
    }
}

/// A server of one file, with a certificate nobody trusts.
struct Https(Child);

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SERVER: &str = "
import http.server, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('cert.pem', 'key.pem')
server = http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print('ready', flush=True)
server.serve_forever()
";

fn https(machine: &Machine) -> (Https, u16) {
    let openssl = need("openssl", &["openssl"]);
    let mut command = Command::new(openssl);
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem"]);
    command.args(["-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"]);
    machine.run(command.args(["-addext", "subjectAltName=IP:127.0.0.1"])).code(0);
    machine.write("served.txt", "from afar\n");
    let port = free_port();
    let mut child = Command::new("python3")
        .args(["-c", SERVER, &port.to_string()])
        .current_dir(machine.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 starts");
    let mut ready = [0; 5];
    // The pipe stays open: it writes the end of the line by itself.
    let out = child.stdout.as_mut().expect("it is piped");
    out.read_exact(&mut ready).expect("the server starts");
    (Https(child), port)
}

#[test]
fn certificates_of_servers_are_checked_unless_told() {
    let machine = Machine::new();
    let (_server, port) = https(&machine);
    let address = format!("https://127.0.0.1:{port}/served.txt");
    let query = |more: &[&str]| machine.call(&[&["http.query", &address], more].concat());
    let refused = query(&[]);
    assert!(!refused.out.contains("from afar"), "{refused:?}");
    assert!(refused.out.contains("error"), "{refused:?}");
    let taken = query(&["verify_ssl=False"]);
    assert!(taken.out.contains("from afar"), "{taken:?}");
    let file = machine.path("got.txt").display().to_string();
    let state = |more: &[&str]| {
        let args = ["state.single", "file.managed", &file, "skip_verify=True"];
        machine.call(&[&args, &[format!("source={address}").as_str()] as &[&str], more].concat())
    };
    assert!(state(&[]).out.contains("Result: False"));
    assert_eq!(machine.read("got.txt"), None);
    assert!(state(&["verify_ssl=False"]).out.contains("Result: True"));
    assert_eq!(machine.read("got.txt").as_deref(), Some("from afar\n"));
}

#[test]
fn states_see_the_pillar_as_it_is_now() {
    let mut fleet = Fleet::new("auto_accept: true");
    let machine = &fleet.machine;
    machine.write("srv/pillar/top.sls", "base: {'*': [own]}\n");
    machine.write("srv/pillar/own.sls", "word: before\n");
    machine.write("srv/salt/said.sls", "{{ pillar['word'] }}:\n  test.nop\n");
    fleet.minion("web1", "");
    fleet.salt(&["web1", "state.apply", "said"]).code(0).says("ID: before");
    fleet.machine.write("srv/pillar/own.sls", "word: afterwards\n");
    fleet.salt(&["web1", "state.apply", "said"]).code(0).says("ID: afterwards");
}

#[test]
fn augeas_changes_files() {
    need("augtool", &["augeas-tools"]);
    let machine = Machine::new();
    machine.write("hosts", "127.0.0.1\tlocalhost\n10.0.0.1\tdb1.example db1\n");
    let file = machine.path("hosts").display().to_string();
    let context = format!("context=/files{file}");
    let execute = |commands: &str| {
        let commands = format!("commands={commands}");
        returned(&machine, &["augeas.execute", &context, "lens=Hosts.lns", &commands])
    };
    // All or nothing: the second command is none.
    let refused = execute(r#"["set 1/canonical no", "frob 1"]"#);
    assert_eq!(refused, r#"{"retval": false, "error": "Command frob is not supported (yet)"}"#);
    let refused = execute(r#"["set 1/canonical no", "set 1/nonsense 1"]"#);
    assert!(
        refused.starts_with(r#"{"retval": false, "error": "Augeas.save() failed: "#),
        "{refused}"
    );
    let before = machine.read("hosts").expect("there");
    assert_eq!(before, "127.0.0.1\tlocalhost\n10.0.0.1\tdb1.example db1\n");
    let quoted = r#"["set \"*[ipaddr = '10.0.0.1']/canonical\" db2.example", "rm 2/alias"]"#;
    assert_eq!(execute(quoted), r#"{"retval": true}"#);
    assert_eq!(
        machine.read("hosts").as_deref(),
        Some("127.0.0.1\tlocalhost\n10.0.0.1\tdb2.example\n")
    );

    machine.write(
        "srv/salt/aug.sls",
        &format!(
            "one:\n  augeas.change:\n    - context: /files{file}\n    - lens: Hosts.lns\n    - changes:\n      \
             - set 1/canonical web1\n      - ins alias after 1/canonical\n      - set 1/alias[1] w\n\
             two:\n  augeas.change:\n    - context: /files{file}\n    - lens: Hosts.lns\n    - changes:\n      \
             - setm * ipaddr 192.0.2.1\n",
        ),
    );
    let tried = returned(&machine, &["state.sls", "aug", "test=True"]);
    assert_eq!(tried.matches("\"result\": null").count(), 2, "{tried}");
    assert_eq!(
        machine.read("hosts").as_deref(),
        Some("127.0.0.1\tlocalhost\n10.0.0.1\tdb2.example\n")
    );
    let applied = returned(&machine, &["state.sls", "aug"]);
    assert_eq!(applied.matches("Changes have been saved").count(), 2, "{applied}");
    let diff = r#"{"diff": "--- \n+++ \n@@ -1,2 +1,2 @@\n-127.0.0.1\tlocalhost\n+127.0.0.1\tweb1 w\n 10.0.0.1\tdb2.example\n"}"#;
    assert!(applied.contains(diff), "{applied}");
    assert_eq!(
        machine.read("hosts").as_deref(),
        Some("192.0.2.1\tweb1 w\n192.0.2.1\tdb2.example\n")
    );
    let again = returned(&machine, &["state.sls_id", "two", "aug"]);
    assert!(again.contains("No changes made"), "{again}");
}
