//! `external_auth` by a real OpenLDAP server that speaks TLS.
//!
//! Whom to trust is in the system's `ldap.conf`, as for every program that asks a directory: each
//! master gets one of its own, in a mount namespace.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use halite_e2e::{
    Ran, Server, free_port, need,
    site::{Make, Site, until},
};

const PEOPLE: &str = "\
dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=org
objectClass: organizationalUnit
ou: groups

dn: uid=ann,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: ann
cn: Ann
sn: Ann
userPassword: secret

dn: uid=bob,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: Bob
userPassword: secret

dn: cn=ops,ou=groups,dc=example,dc=org
objectClass: posixGroup
cn: ops
gidNumber: 1000
memberUid: bob
";

fn slapd(folder: &Path, plain: u16, tls: u16) -> Server {
    let program = need("slapd", &["slapd"]);
    let load = need("slapadd", &["slapd"]);
    let openssl = need("openssl", &["openssl"]);
    let place = folder.display().to_string();
    fs::create_dir_all(folder.join("data")).expect("a folder");
    let made = Command::new(openssl)
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=dir"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", &format!("{place}/key.pem"), "-out", &format!("{place}/cert.pem")])
        .output()
        .expect("openssl starts");
    assert!(made.status.success(), "{made:?}");
    let schemas = ["core", "cosine", "inetorgperson", "nis"];
    let schemas = schemas.map(|name| format!("include /etc/ldap/schema/{name}.schema\n")).concat();
    let config = format!(
        "{schemas}modulepath /usr/lib/ldap\nmoduleload back_mdb\nTLSCertificateFile {place}/cert.pem\n\
         TLSCertificateKeyFile {place}/key.pem\ndatabase mdb\nsuffix dc=example,dc=org\n\
         directory {place}/data\naccess to * by anonymous auth by users read\n"
    );
    let file = format!("{place}/slapd.conf");
    fs::write(&file, config).expect("a file");
    fs::write(folder.join("people.ldif"), PEOPLE).expect("a file");
    let people = format!("{place}/people.ldif");
    let loaded = Command::new(load).args(["-f", &file, "-l", &people]).output().expect("it starts");
    assert!(loaded.status.success(), "{loaded:?}");
    let at = format!("ldap://127.0.0.1:{plain} ldaps://127.0.0.1:{tls}");
    let child = Command::new(program)
        .args(["-f", &file, "-h", &at, "-d", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    until("the directory listens", || {
        [plain, tls].iter().all(|port| std::net::TcpStream::connect(("127.0.0.1", *port)).is_ok())
    });
    Server(child)
}

/// Starts a master that asks the directory in this way, with that for `ldap.conf`.
fn master(how: &str, trusts: &str) -> Site {
    let auth = "external_auth: {ldap: {ann: [test.*], 'ops%': [grains.*]}}\n\
                auth.ldap.basedn: dc=example,dc=org\nauth.ldap.groupou: groups\n\
                auth.ldap.binddn: 'uid={{ username }},ou=people,dc=example,dc=org'\n";
    let mut site = Site::new(Make::Ours, &format!("{auth}{how}"));
    site.write("ldap.conf", trusts);
    let conf = site.path("ldap.conf").display().to_string();
    let enter = "mount --bind \"$0\" /etc/ldap/ldap.conf && exec \"$@\"";
    site.start("master", Make::Ours, "salt-master", &["unshare", "-m", "sh", "-c", enter, &conf]);
    until("the master listens", || site.path("master/var/run/salt/master/halite.sock").exists());
    site
}

fn ask(site: &Site, user: &str, password: &str, fun: &str) -> Ran {
    site.salt(&["-a", "ldap", "--username", user, "--password", password, "*", fun])
}

#[test]
fn people_sign_in_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let (plain, tls) = (free_port(), free_port());
    let _server = slapd(folder.path(), plain, tls);
    let cert = folder.path().join("cert.pem").display().to_string();
    let at_tls = format!("auth.ldap.tls: True\nauth.ldap.server: 127.0.0.1\nauth.ldap.port: {tls}");
    let upgraded = format!("auth.ldap.starttls: True\nauth.ldap.uri: ldap://127.0.0.1:{plain}");
    let unverified = format!("{at_tls}\nauth.ldap.no_verify: True");
    let trusted = format!("TLS_CACERT {cert}\n");
    for (how, trusts) in [
        (&at_tls, trusted.as_str()),
        (&upgraded, &trusted),
        (&unverified, ""),
        (&at_tls, "TLS_REQCERT never\n"),
    ] {
        let site = master(how, trusts);
        let nobody = "No minions matched the target";
        let said = ask(&site, "ann", "secret", "test.ping");
        assert!(said.out.contains(nobody), "{how} {trusts}: {said:?}");
        let said = ask(&site, "bob", "secret", "grains.items");
        assert!(said.out.contains(nobody), "{how} {trusts}: groups count: {said:?}");
        let said = ask(&site, "bob", "secret", "test.ping");
        assert!(said.out.contains("Authorization error occurred"), "{how} {trusts}: {said:?}");
        let said = ask(&site, "ann", "wrong", "test.ping");
        assert!(said.out.contains("Authentication error occurred"), "{how} {trusts}: {said:?}");
    }
    // A certificate of nobody we know is nobody's.
    for how in [&at_tls, &upgraded] {
        let site = master(how, "");
        let said = ask(&site, "ann", "secret", "test.ping");
        assert!(said.out.contains("Authentication error occurred"), "{how}: {said:?}");
    }
}
