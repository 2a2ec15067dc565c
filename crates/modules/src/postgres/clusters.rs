//! Clusters of servers, as Debian keeps them: several versions and several servers of one version
//! beside each other, made, listed and removed by the programs of `postgresql-common`.

use halite_spec::{Args, Cx, Result, function};
use halite_value::{Dict, Value, entries};

use crate::cmd::{self, Options};

/// What a new cluster shall be.
#[derive(Args, Clone)]
pub struct NewCluster {
    /// Its port; the next free one if not given.
    #[default(Value::Null)]
    pub port: Value,
    /// The locale.
    pub locale: Option<String>,
    /// How letters are stored.
    pub encoding: Option<String>,
    /// Where its data is kept.
    pub datadir: Option<String>,
    /// Let the group of its owner read the data.
    pub allow_group_access: Option<bool>,
    /// Check data pages.
    pub data_checksums: Option<bool>,
    /// The size of a segment of the write-ahead log, in megabytes.
    #[default(Value::Null)]
    pub wal_segsize: Value,
}

impl NewCluster {
    /// The words of the command; what `initdb` is told comes after the name.
    fn words(&self, version: &Value, name: &str) -> Vec<String> {
        let text = |value: &Value| value.truthy().then(|| value.to_string());
        let mut words = vec!["pg_createcluster".to_owned()];
        for (option, value) in [
            ("--port", text(&self.port)),
            ("--locale", self.locale.clone()),
            ("--encoding", self.encoding.clone()),
            ("--datadir", self.datadir.clone()),
        ] {
            words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        words.extend([version.to_string(), name.to_owned()]);
        let mut inner = Vec::new();
        inner
            .extend((self.allow_group_access == Some(true)).then(|| "--allow-group-access".into()));
        inner.extend((self.data_checksums == Some(true)).then(|| "--data-checksums".into()));
        inner.extend(text(&self.wal_segsize).map(|size| format!("--wal-segsize={size}")));
        if !inner.is_empty() {
            words.push("--".into());
            words.extend(inner);
        }
        words
    }
}

/// What `pg_lsclusters --no-header` says, by `version/name`.
fn listed(lines: &str) -> Dict {
    let cluster = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [version, name, port, status, user, datadir, log] = words[..] else { return None };
        let port = port.parse::<i64>().map_or_else(|_| port.into(), Value::from);
        let cluster = entries! {
            "port" => port, "status" => status, "user" => user, "datadir" => datadir, "log" => log,
        };
        Some((format!("{version}/{name}"), cluster))
    };
    lines.lines().filter_map(cluster).collect()
}

/// Returns the clusters of this machine, by `version/name`.
pub fn clusters(cx: &Cx) -> Result<Dict> {
    let options = Options { query: true, ..Options::default() };
    Ok(listed(&cmd::plain(cx, ["pg_lsclusters", "--no-header"], options)?.stdout))
}

/// Returns how the program ended, or False if it failed.
fn told(ran: &cmd::Ran) -> Value {
    if ran.ok() { ran.to_value().into() } else { false.into() }
}

/// Make a cluster; return how the program ended, or False.
///
/// ```console
/// $ salt web1 postgres.cluster_create 15 main port=5433
/// ```
#[function]
pub fn cluster_create(
    cx: &Cx,
    /// The version of the server.
    version: Value,
    /// Its name.
    #[default("main".to_owned())]
    name: String,
    #[group] how: NewCluster,
) -> Result<Value> {
    Ok(told(&cmd::plain(cx, how.words(&version, &name), Options::default())?))
}

/// Return the clusters of this machine as `version/name`.
///
/// ```console
/// $ salt web1 postgres.cluster_list
/// ```
#[function]
pub fn cluster_list(
    cx: &Cx,
    /// Return what each of them is, too.
    #[default(false)]
    verbose: bool,
) -> Result<Value> {
    let all = clusters(cx)?;
    Ok(if verbose { all.into() } else { Value::list(all.into_iter().map(|(name, _)| name)) })
}

/// Tell whether there is a cluster.
///
/// ```console
/// $ salt web1 postgres.cluster_exists 15 main
/// ```
#[function]
pub fn cluster_exists(
    cx: &Cx,
    /// The version of the server.
    version: Value,
    /// Its name.
    #[default("main".to_owned())]
    name: String,
) -> Result<bool> {
    Ok(clusters(cx)?.contains(format!("{version}/{name}").as_str()))
}

/// Remove a cluster with its data; return how the program ended, or False.
///
/// ```console
/// $ salt web1 postgres.cluster_remove 15 main stop=True
/// ```
#[function]
pub fn cluster_remove(
    cx: &Cx,
    /// The version of the server.
    version: Value,
    /// Its name.
    #[default("main".to_owned())]
    name: String,
    /// Stop it first.
    #[default(false)]
    stop: bool,
) -> Result<Value> {
    let mut words = vec!["pg_dropcluster".to_owned()];
    words.extend(stop.then(|| "--stop".to_owned()));
    words.extend([version.to_string(), name]);
    Ok(told(&cmd::plain(cx, words, Options::default())?))
}
