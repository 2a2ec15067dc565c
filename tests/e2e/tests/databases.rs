//! MySQL states against a real MariaDB server.
//!
//! The server runs as an ordinary process on a socket and in a data folder of its own, and ends
//! with the test.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use halite_e2e::{halite, need};

/// A server that ends with the test.
struct Server {
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start() -> Self {
        // Only the programs: the packages around them would start a service.
        let server = need("mariadbd", &["mariadb-server-core"]);
        let install = need("mariadb-install-db", &["mariadb-server-core"]);
        need("mysql", &["mariadb-client-core", "mariadb-client"]);
        let folder = tempfile::tempdir().expect("a folder");
        let data = format!("--datadir={}", folder.path().join("data").display());
        let made = Command::new(install)
            .args(["--no-defaults", "--user=root", "--skip-test-db", &data])
            .arg("--auth-root-authentication-method=normal")
            .output()
            .expect("it can be started");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let child = Command::new(server)
            .args(["--no-defaults", "--user=root", "--skip-networking", &data])
            .arg(format!("--socket={}", folder.path().join("sock").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server can be started");
        let server = Self { child, folder };
        let end = Instant::now() + Duration::from_secs(120);
        while !server.path().join("sock").exists() {
            assert!(Instant::now() < end, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn call(&self, words: &[&str]) -> String {
        let folder = self.path().display();
        let output = Command::new(halite())
            .args(["call", "--local", "--no-color", "--out=json"])
            .arg(format!("--config-dir={folder}/etc"))
            .arg(format!("--file-root={folder}/srv"))
            .args(words)
            .output()
            .expect("the program runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

const TREE: &str = r#"
shop: {mysql_database.present: [{character_set: utf8mb4}, {collate: utf8mb4_bin}]}
user: {mysql_user.present: [{name: "o'frank"}, {password: "p'w\\x"}]}
some: {mysql_grants.present: [{grant: "SELECT,INSERT"}, {database: "shop.*"}, {user: "o'frank"}]}
all: {mysql_grants.present: [{grant: ALL}, {database: "my_x.*"}, {user: "o'frank"}, {grant_option: true}]}
"#;

const GONE: &str = r#"
some: {mysql_grants.absent: [{grant: "SELECT,INSERT"}, {database: "shop.*"}, {user: "o'frank"}]}
user: {mysql_user.absent: [{name: "o'frank"}]}
shop: {mysql_database.absent: []}
"#;

#[test]
fn mysql_comes_and_goes() {
    let server = Server::start();
    let folder = server.path().display().to_string();
    let minion = format!(
        "root_dir: {folder}/root\nid: db\nmysql.user: root\nmysql.unix_socket: {folder}/sock\n"
    );
    server.write("etc/minion", &minion);
    server.write("srv/here.sls", TREE);
    server.write("srv/gone.sls", GONE);
    let count = |out: &str, what: &str| out.matches(what).count();

    let tested = server.call(&["state.apply", "here", "test=True"]);
    assert_eq!(count(&tested, "\"result\": null"), 4, "{tested}");
    let listed = server.call(&["mysql.db_list"]);
    assert!(listed.contains("information_schema") && !listed.contains("shop"), "{listed}");

    let applied = server.call(&["state.apply", "here"]);
    assert_eq!(count(&applied, "\"result\": true"), 4, "{applied}");
    assert_eq!(count(&applied, "\"changes\": {}"), 0, "{applied}");
    let again = server.call(&["state.apply", "here"]);
    assert_eq!(count(&again, "\"changes\": {}"), 4, "{again}");
    assert_eq!(count(&again, "\"result\": true"), 4, "{again}");

    let fits = server.call(&["mysql.user_exists", "o'frank", "localhost", "p'w\\x"]);
    assert!(fits.contains("true"), "{fits}");
    let grants = server.call(&["mysql.user_grants", "o'frank"]);
    assert!(grants.contains("WITH GRANT OPTION") && grants.contains("my\\\\_x"), "{grants}");
    server.call(&["mysql.query", "shop", "create table t (a int, b varchar(20))"]);
    let two = server.call(&["mysql.query", "shop", "insert into t values (1,'x;<y'),(2,null)"]);
    assert!(two.contains("\"rows affected\": 2"), "{two}");
    let rows = server.call(&["mysql.query", "shop", "select * from t"]);
    assert!(rows.contains("x;<y") && rows.contains("null"), "{rows}");
    let none = server.call(&["mysql.query", "shop", "select * from t where a = 7"]);
    assert!(none.contains("\"a\"") && none.contains("\"rows returned\": 0"), "{none}");

    let gone = server.call(&["state.apply", "gone"]);
    assert_eq!(count(&gone, "\"result\": true"), 3, "{gone}");
    assert_eq!(count(&gone, "\"changes\": {}"), 0, "{gone}");
    let again = server.call(&["state.apply", "gone"]);
    assert_eq!(count(&again, "\"changes\": {}"), 3, "{again}");
}
