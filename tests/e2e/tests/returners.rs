//! Returners against real servers: MariaDB, PostgreSQL and Redis.
//!
//! Each server runs as an ordinary process on loopback, on a port and in a data folder of its own,
//! and ends with the test. The tables are those genuine Salt's documentation tells to make.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use halite_e2e::{
    fleet::{Fleet, until},
    free_port, need,
};

/// Who a server runs as that refuses to run as root.
const NOBODY: u32 = 65_534;

/// A server that ends with the test.
struct Server {
    child: Option<Child>,
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { child: None, folder, port: free_port() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&mut self, command: &mut Command) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let log = fs::File::create(self.path("server.log")).expect("a log");
        self.child = Some(command.stderr(log).spawn().expect("the server can be started"));
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            halite_e2e::show_logs(self.folder.path());
        }
        self.kill();
    }
}

/// Runs a command with a text as its input; returns what it prints, or why it failed.
fn piped(command: &mut Command, input: &str) -> Result<String, String> {
    use std::io::Write as _;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Runs a command that has to succeed.
fn done(command: &mut Command) {
    let output = command.output().expect("the program can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What must survive every kind of quoting.
const AWKWARD: &str = r#"it's "all" \n ünï; :'x' $$ %s"#;

/// A master with one minion, both with these options.
fn fleet(master: &str, server: &str) -> Fleet {
    let mut fleet =
        Fleet::new(&format!("auto_accept: true\nkeep_jobs_seconds: 3600\n{master}\n{server}"));
    fleet.minion("m1", server);
    fleet
}

/// The id of the last job with this function.
fn last_job(fleet: &Fleet, function: &str) -> String {
    let shown = fleet.run(&["jobs.last_run", &format!("function={function}"), "--out=json"]);
    let jobs = halite_e2e::site::documents(&shown.code(0).out);
    jobs.keys().next().expect("a job").clone()
}

/// Runs a job and reads it back from where jobs are kept.
fn a_job_comes_back(fleet: &Fleet, returner: &str) {
    let args = ["m1", "test.arg", AWKWARD, "--return", returner, "--out=json"];
    fleet.salt(&args).code(0).says("ünï");
    let jid = last_job(fleet, "test.arg");
    let found = fleet.run(&["jobs.lookup_jid", &jid, "--out=json"]).code(0);
    let found = halite_e2e::site::documents(&found.out);
    assert_eq!(found["m1"]["args"][0], AWKWARD, "{found:?}");
    let whole = fleet.run(&["jobs.list_job", &jid, "--out=json"]).code(0);
    let whole = halite_e2e::site::documents(&whole.out);
    assert_eq!((&whole["Target"], &whole["Function"]), (&"m1".into(), &"test.arg".into()));
    // A returner gives returns whole.
    assert_eq!(whole["Result"]["m1"]["return"]["args"][0], AWKWARD, "{whole:?}");
    let listed = fleet.run(&["jobs.list_jobs", "search_function=test.arg", "--out=json"]).code(0);
    assert!(listed.out.contains(&jid), "{}", listed.out);
}

const MYSQL: &str = "
CREATE DATABASE salt DEFAULT CHARACTER SET utf8 DEFAULT COLLATE utf8_general_ci;
CREATE DATABASE other DEFAULT CHARACTER SET utf8 DEFAULT COLLATE utf8_general_ci;
CREATE USER 'salt'@'%' IDENTIFIED BY 'se''cret';
GRANT ALL ON salt.* TO 'salt'@'%';
GRANT ALL ON other.* TO 'salt'@'%';
USE salt;
SET default_storage_engine = InnoDB;
CREATE TABLE jids (
  jid varchar(255) PRIMARY KEY,
  `load` mediumtext NOT NULL
);
CREATE TABLE salt_returns (
  id varchar(255) NOT NULL, jid varchar(255) NOT NULL, fun varchar(50) NOT NULL,
  success varchar(10) NOT NULL, `return` mediumtext NOT NULL, full_ret mediumtext NOT NULL,
  alter_time timestamp DEFAULT current_timestamp(),
  INDEX (jid, id)
);
CREATE TABLE salt_events (
  id bigint AUTO_INCREMENT PRIMARY KEY,
  master_id varchar(255) NOT NULL, tag varchar(255) NOT NULL, data mediumtext NOT NULL,
  alter_time timestamp DEFAULT current_timestamp()
);
CREATE TABLE other.salt_returns LIKE salt.salt_returns;
";

#[test]
fn mysql_keeps_jobs_returns_and_events() {
    let program = need("mariadbd", &["mariadb-server-core"]);
    let install = need("mariadb-install-db", &["mariadb-server-core"]);
    need("mysql", &["mariadb-client-core", "mariadb-client"]);
    let mut server = Server::new();
    let (data, socket) = (server.path("data"), server.path("sock"));
    let data = format!("--datadir={}", data.display());
    done(
        Command::new(install)
            .args(["--no-defaults", "--user=root", "--skip-test-db", &data])
            .arg("--auth-root-authentication-method=normal"),
    );
    server.start(
        Command::new(program)
            .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", &data])
            .args([format!("--port={}", server.port), format!("--socket={}", socket.display())]),
    );
    let ask = |text: &str| {
        let socket = format!("--socket={}", socket.display());
        piped(Command::new("mysql").args(["--no-defaults", "-u", "root", "-N", &socket]), text)
    };
    until("the server answers", || ask("SELECT 1;").is_ok());
    ask(MYSQL).expect("the tables are made");
    let port = server.port;
    let options = format!(
        "mysql.host: 127.0.0.1\nmysql.port: {port}\nmysql.pass: \"se'cret\"\n\
         second.mysql.db: other\n"
    );
    let fleet = fleet("master_job_cache: mysql\nevent_return: mysql\n", &options);
    a_job_comes_back(&fleet, "mysql");
    let count = |what: &str| ask(&format!("SELECT count(*) FROM salt.{what};")).unwrap_or_default();
    // One by the minion, one by the master.
    assert_eq!(count("salt_returns WHERE fun = 'test.arg' AND id = 'm1' AND success = '1'"), "2");
    assert_eq!(count("jids WHERE `load` LIKE '%\"fun\": \"test.arg\"%'"), "1");
    until("events are kept", || {
        count("salt_events WHERE tag LIKE 'salt/job/%/ret/m1' AND master_id = 'boss_master'") != "0"
    });
    // Another database, by an alternative set of options, and by options of the call.
    let other = || ask("SELECT count(*) FROM other.salt_returns WHERE fun = 'test.version';");
    fleet.salt(&["m1", "test.version", "--return", "mysql", "--return_config", "second"]).code(0);
    until("it returned there", || other().as_deref() == Ok("1"));
    let db = r#"{"db": "other"}"#;
    fleet.salt(&["m1", "test.version", "--return", "mysql", "--return_kwargs", db]).code(0);
    until("it returned there", || other().as_deref() == Ok("2"));
}

/// Returns a program of PostgreSQL, which Debian keeps out of the way.
fn postgres(program: &str) -> PathBuf {
    let find = || {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
        let mut paths: Vec<PathBuf> = versions
            .filter_map(|entry| Some(entry.ok()?.path().join("bin").join(program)))
            .filter(|path| path.is_file())
            .collect();
        paths.sort();
        paths.pop()
    };
    find().unwrap_or_else(|| {
        need("pg_createcluster", &["postgresql"]);
        find().expect("the package has it")
    })
}

/// Lets the server's user into its folder, and makes commands run as that user.
fn as_nobody<'a>(folder: &Path, command: &'a mut Command) -> &'a mut Command {
    let command = command.current_dir("/").env_clear().env("PATH", "/usr/bin:/bin");
    if !nix::unistd::geteuid().is_root() {
        return command;
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("our own folder");
    let home = folder.join("pg");
    fs::create_dir_all(&home).expect("a folder");
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).expect("root may");
    command.uid(NOBODY).gid(NOBODY)
}

const POSTGRES: &str = "
CREATE ROLE salt WITH LOGIN PASSWORD 'salt';
CREATE DATABASE jsonb WITH OWNER salt;
CREATE DATABASE texts WITH OWNER salt;
CREATE DATABASE columns WITH OWNER salt;
\\c jsonb
SET ROLE salt;
CREATE TABLE jids (jid varchar(255) PRIMARY KEY, load jsonb NOT NULL);
CREATE TABLE salt_returns (
  id varchar(255) NOT NULL, jid varchar(255) NOT NULL, fun varchar(50) NOT NULL,
  success varchar(10) NOT NULL, return jsonb NOT NULL, full_ret jsonb NOT NULL,
  alter_time timestamptz DEFAULT current_timestamp
);
CREATE TABLE salt_events (
  id bigint GENERATED BY DEFAULT AS IDENTITY,
  master_id varchar(255) NOT NULL, tag varchar(255) NOT NULL, data jsonb NOT NULL,
  alter_time timestamptz DEFAULT current_timestamp
);
\\c texts
SET ROLE salt;
CREATE TABLE jids (jid varchar(20) PRIMARY KEY, load text NOT NULL);
CREATE TABLE salt_returns (
  id text NOT NULL, jid varchar(20) NOT NULL, fun text NOT NULL,
  success boolean, return text NOT NULL, full_ret text
);
CREATE TABLE salt_events (
  id bigint GENERATED BY DEFAULT AS IDENTITY,
  master_id varchar(255) NOT NULL, tag varchar(255) NOT NULL, data text NOT NULL,
  alter_time timestamptz DEFAULT current_timestamp
);
\\c columns
SET ROLE salt;
CREATE TABLE jids (
  jid varchar(20) PRIMARY KEY, fun text NOT NULL, arg text NOT NULL, kwargs text NOT NULL,
  tgt text NOT NULL, tgt_type text NOT NULL, cmd text NOT NULL, ret text NOT NULL,
  username text NOT NULL, started timestamptz DEFAULT current_timestamp
);
CREATE TABLE salt_returns (
  id text NOT NULL, jid varchar(20) NOT NULL, fun text NOT NULL,
  success boolean, return text NOT NULL, added timestamptz DEFAULT current_timestamp
);
CREATE TABLE salt_events (
  id bigint GENERATED BY DEFAULT AS IDENTITY,
  master_id text NOT NULL, tag text NOT NULL, data text NOT NULL,
  alter_time timestamptz DEFAULT current_timestamp
);
";

#[test]
fn postgres_keeps_jobs_returns_and_events() {
    let (initdb, program) = (postgres("initdb"), postgres("postgres"));
    need("psql", &["postgresql-client"]);
    let mut server = Server::new();
    let (folder, data) = (server.path(""), server.path("pg/data"));
    done(
        as_nobody(&folder, &mut Command::new(initdb))
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data),
    );
    server.start(
        as_nobody(&folder, &mut Command::new(program))
            .args(["-h", "127.0.0.1", "-F", "-p", &server.port.to_string(), "-k"])
            .arg(server.path("pg"))
            .arg("-D")
            .arg(&data),
    );
    let port = server.port;
    let ask = |db: &str, text: &str| {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
        piped(psql.args(["-p", &port.to_string(), "-U", "postgres", "-d", db, "-f", "-"]), text)
    };
    until("the server answers", || ask("postgres", "SELECT 1;").is_ok());
    ask("postgres", POSTGRES).expect("the tables are made");
    let options: String = [
        ("returner.pgjsonb", "pass", "jsonb"),
        ("returner.postgres", "passwd", "texts"),
        ("master_job_cache.postgres", "passwd", "columns"),
    ]
    .iter()
    .map(|(name, word, db)| {
        format!(
            "{name}.host: 127.0.0.1\n{name}.port: {port}\n{name}.user: salt\n\
             {name}.{word}: salt\n{name}.db: {db}\n"
        )
    })
    .collect();
    let count = |db: &str, what: &str| {
        ask(db, &format!("SELECT count(*) FROM {what};")).unwrap_or_default()
    };
    let returned = |id: &str| format!("salt_returns WHERE fun = 'test.arg' AND id = '{id}'");
    {
        let fleet =
            fleet("master_job_cache: pgjsonb\nevent_return: [pgjsonb, postgres]\n", &options);
        a_job_comes_back(&fleet, "pgjsonb,postgres");
        assert_eq!(count("jsonb", &format!("{} AND success = 'true'", returned("m1"))), "2");
        assert_eq!(
            count("jsonb", "jids WHERE load @> '{\"fun\": \"test.arg\", \"tgt\": \"m1\"}'"),
            "1"
        );
        assert_eq!(count("texts", &format!("{} AND success", returned("m1"))), "1");
        for db in ["jsonb", "texts"] {
            let events = "salt_events WHERE tag LIKE 'salt/job/%/ret/m1'";
            until("events are kept", || count(db, events).parse().is_ok_and(|n: u32| n > 0));
        }
    }
    // Minions return by themselves, and the master keeps the jobs, in two places.
    let own = "ext_job_cache: postgres\nmaster_job_cache: postgres_local_cache\n";
    let fleet = fleet(own, &options);
    let events = fleet.follow();
    fleet.salt(&["m1", "test.arg", AWKWARD, "--out=json"]).code(0).says("ünï");
    until("it is published with it", || events.text().contains(r#""ret": "postgres""#));
    let jid = last_job(&fleet, "test.arg");
    let found = fleet.run(&["jobs.lookup_jid", &jid, "--out=json"]).code(0);
    assert_eq!(halite_e2e::site::documents(&found.out)["m1"]["args"][0], AWKWARD);
    assert_eq!(count("texts", &returned("m1")), "2");
    assert_eq!(count("columns", "jids WHERE fun = 'test.arg' AND tgt = 'm1'"), "1");
    assert_eq!(count("columns", &returned("m1")), "0");
}

#[test]
fn redis_keeps_jobs_and_returns_and_gets_what_it_missed() {
    let program = need("redis-server", &["redis-server"]);
    need("redis-cli", &["redis-tools"]);
    let mut server = Server::new();
    let port = server.port.to_string();
    let start = |server: &mut Server| {
        let folder = server.path("").display().to_string();
        server.start(
            Command::new(&program)
                .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--dir", &folder])
                .args(["--requirepass", "se cret"]),
        );
    };
    let ask = |text: &str| {
        let mut cli = Command::new("redis-cli");
        piped(cli.args(["-p", &port]).env("REDISCLI_AUTH", "se cret"), text)
    };
    start(&mut server);
    until("the server answers", || ask("PING").as_deref() == Ok("PONG"));
    let options = format!("redis.host: 127.0.0.1\nredis.port: {port}\nredis.password: se cret\n");
    let fleet = fleet("master_job_cache: redis\n", &options);
    a_job_comes_back(&fleet, "redis");
    let jid = last_job(&fleet, "test.arg");
    let says = |text: &str, answer: &str| {
        assert_eq!(ask(text).as_deref(), Ok(answer), "{text}");
    };
    says("SISMEMBER minions m1", "1");
    says("GET m1:test.arg", &jid);
    says(&format!("HEXISTS ret:{jid} m1"), "1");
    let left: u32 = ask(&format!("TTL load:{jid}")).ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    assert!((1..=3600).contains(&left), "{left}");

    // Without the server jobs go on, and it gets them once it is back.
    server.kill();
    fleet.salt(&["m1", "test.version", "--out=json"]).code(0).says("m1");
    until("it is told", || fleet.log().contains("The job cache redis cannot be reached"));
    start(&mut server);
    until("what it missed has come", || {
        ask("GET m1:test.version").is_ok_and(|jid| jid.len() == 20)
    });
    fleet.run(&["jobs.lookup_jid", &last_job(&fleet, "test.version")]).code(0).says("m1");
}
