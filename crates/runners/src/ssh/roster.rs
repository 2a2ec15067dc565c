//! The roster: the hosts that are reached by ssh, and how each is.
//!
//! Of Salt's kinds there is `flat`: one file, `roster` beside the master's configuration or
//! `roster_file`, rendered like an SLS. An entry is a dictionary, or just the host's address. What an
//! entry lacks comes from `roster_defaults`, then from the options `ssh_*`. An entry that cannot be
//! used is an answer about that host alone.

use std::path::{Path, PathBuf};

use halite_modules::sdb;
use halite_spec::{Cx, Error, Result, Template};
use halite_target::{Expr, Minion, Options, TargetType};
use halite_value::{Dict, Value};

/// How one host is reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    /// The minion's id.
    pub id: String,
    /// Name or address.
    pub host: String,
    pub user: Option<String>,
    pub port: u16,
    /// The file of the private key; none leaves the choice to ssh and its agent.
    pub key: Option<PathBuf>,
    /// Commands run by sudo, as root or as `sudo_user`.
    pub sudo: bool,
    pub sudo_user: Option<String>,
    /// Commands get a terminal, which some rules of sudo ask for.
    pub tty: bool,
    /// Seconds until a host that does not answer is given up.
    pub timeout: u64,
    /// Further `-o` options.
    pub options: Vec<String>,
}

/// All hosts, by id.
pub(crate) struct Roster {
    entries: Dict,
    /// What entries lack.
    defaults: Dict,
    nodegroups: Dict,
}

impl Roster {
    /// Reads the roster; `kind` and `defaults` come before the configuration's.
    pub(crate) fn read(cx: &Cx, kind: Option<&str>, defaults: &Dict) -> Result<Self> {
        let configured = cx.opt_str("roster").filter(|kind| !kind.is_empty());
        let kind = kind.or(configured.as_deref()).unwrap_or("flat");
        if kind != "flat" {
            return Err(Error::failed(format!(
                "The roster `{kind}` is not part of Halite: write the hosts into a file, the roster `flat`"
            )));
        }
        let path = file(cx);
        let Some(text) = cx.host.read_text_if_there(&path)? else {
            return Err(Error::failed(format!(
                "Can't access roster for backend flat: Roster file \"{}\" not found",
                path.display()
            )));
        };
        let template = Template {
            engine: cx.opt_str("renderer").unwrap_or("jinja|yaml".into()).into(),
            text,
            source: Some(path.display().to_string()),
            saltenv: "base".into(),
            sls: Some(String::new()),
            context: Dict::new(),
        };
        let entries = match cx.runtime.compile(cx, &template)? {
            Value::Dict(entries) => entries,
            Value::Null => Dict::new(),
            _ => {
                let path = path.display();
                return Err(Error::failed(format!("The roster {path} is no dictionary of hosts")));
            }
        };
        let dict = |name: &str| cx.opt(name).and_then(|value| value.as_dict().cloned());
        let all = configured_defaults(cx);
        for more in [dict("roster_defaults").unwrap_or_default(), defaults.clone()] {
            more.entries().into_iter().for_each(|(name, value)| drop(all.insert(name, value)));
        }
        let nodegroups = dict("ssh_list_nodegroups").unwrap_or_default();
        Ok(Self { entries, defaults: all, nodegroups })
    }

    /// Returns the hosts a target means, in the roster's order.
    pub(crate) fn targets(
        &self,
        cx: &Cx,
        target: &str,
        tgt_type: &str,
    ) -> Result<Vec<(String, Result<Target>)>> {
        let (target, kind) = match tgt_type {
            "nodegroup" => (self.nodegroups.get(target).unwrap_or_default(), TargetType::List),
            "glob" | "pcre" | "list" => {
                (target.into(), tgt_type.parse().unwrap_or(TargetType::Glob))
            }
            other => {
                return Err(Error::failed(format!(
                    "The roster knows nothing a target of the kind `{other}` could match: glob, list, pcre \
                     and nodegroup mean ids"
                )));
            }
        };
        let meant = Expr::parse(&target, kind, &Options::default())
            .map_err(|error| Error::failed(error.to_string()))?;
        let matched = self.entries.entries().into_iter().filter_map(|(id, entry)| {
            let id = id.to_str().to_string();
            meant.matches(&Minion { id: &id, ..Minion::default() }).then(|| {
                let target = self.target(cx, &id, entry);
                (id, target)
            })
        });
        Ok(matched.collect())
    }

    fn target(&self, cx: &Cx, id: &str, entry: Value) -> Result<Target> {
        let own = match entry {
            Value::Dict(own) => own,
            host @ Value::Str(_) => Dict::from_iter([("host", host)]),
            _ => return Err(Error::failed(format!("The roster's entry `{id}` is no dictionary"))),
        };
        let get = |name: &str| -> Result<Option<Value>> {
            let value = own.get(name).or_else(|| self.defaults.get(name));
            match value.filter(Value::truthy) {
                Some(Value::Str(uri)) if uri.starts_with("sdb://") => {
                    sdb::get(cx, uri.to_string(), false)
                        .map(|value| Some(value).filter(Value::truthy))
                }
                value => Ok(value),
            }
        };
        let text = |name: &str| Ok::<_, Error>(get(name)?.map(|value| value.to_str().to_string()));
        for (name, instead) in [
            ("passwd", "a key that the host knows (`priv`)"),
            ("priv_passwd", "a key without a passphrase, or one that ssh-agent holds"),
            ("winrm", "a host with an ssh server"),
        ] {
            if get(name)?.is_some() {
                return Err(Error::failed(format!(
                    "`{name}` of the roster is not part of Halite: use {instead}"
                )));
            }
        }
        let host = text("host")?.unwrap_or_default();
        // Brackets are for addresses beside a port; ssh has none of these here.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_name = |host: &str| {
            let odd = |letter: char| letter.is_control() || letter.is_whitespace();
            !host.is_empty() && !host.starts_with('-') && !host.contains(odd)
        };
        if !is_name(&host) {
            return Err(Error::failed(format!("The roster has no usable `host` for `{id}`")));
        }
        let port = text("port")?.unwrap_or_else(|| "22".into());
        let port = port
            .parse()
            .map_err(|_| Error::failed(format!("The roster's port of `{id}` is none: {port}")))?;
        let timeout = text("timeout")?.and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
        let flag = |name: &str| Ok::<_, Error>(get(name)?.is_some());
        let mut options = Vec::new();
        if flag("identities_only")? {
            options.push("IdentitiesOnly=yes".to_owned());
        }
        if flag("keepalive")? {
            for (ours, theirs) in [
                ("keepalive_interval", "ServerAliveInterval"),
                ("keepalive_count_max", "ServerAliveCountMax"),
            ] {
                options.extend(text(ours)?.map(|number| format!("{theirs}={number}")));
            }
        }
        options.extend(text("known_hosts_file")?.map(|file| format!("UserKnownHostsFile={file}")));
        let more = get("ssh_options")?.and_then(|list| list.items_of_sequence());
        options.extend(more.unwrap_or_default().iter().map(|option| option.to_str().to_string()));
        Ok(Target {
            id: id.to_owned(),
            host,
            user: text("user")?,
            port,
            key: text("priv")?.filter(|key| key != "agent-forwarding").map(PathBuf::from),
            sudo: flag("sudo")?,
            sudo_user: text("sudo_user")?,
            tty: flag("tty")?,
            timeout,
            options,
        })
    }
}

/// Where the file is.
fn file(cx: &Cx) -> PathBuf {
    if let Some(file) = cx.opt_str("roster_file").filter(|file| !file.is_empty()) {
        return PathBuf::from(file.as_str());
    }
    let config = cx.opt_str("conf_file").unwrap_or("/etc/salt/master".into());
    Path::new(config.as_str()).with_file_name("roster")
}

/// What the options `ssh_*` say of every host.
fn configured_defaults(cx: &Cx) -> Dict {
    let defaults: Dict = [
        ("user", "ssh_user"),
        ("port", "ssh_port"),
        ("passwd", "ssh_passwd"),
        ("priv", "ssh_priv"),
        ("priv_passwd", "ssh_priv_passwd"),
        ("timeout", "ssh_timeout"),
        ("sudo", "ssh_sudo"),
        ("sudo_user", "ssh_sudo_user"),
        ("identities_only", "ssh_identities_only"),
        ("keepalive", "ssh_keepalive"),
        ("keepalive_interval", "ssh_keepalive_interval"),
        ("keepalive_count_max", "ssh_keepalive_count_max"),
        ("known_hosts_file", "known_hosts_file"),
        ("ssh_options", "ssh_options"),
    ]
    .into_iter()
    .filter_map(|(name, option)| Some((name, cx.opt(option).filter(Value::truthy)?)))
    .collect();
    // The key salt-ssh makes for itself, where it has.
    let pki = cx.opt_str("pki_dir").unwrap_or_default();
    let own = Path::new(pki.as_str()).join("ssh/salt-ssh.rsa");
    if !defaults.contains("priv") && cx.host.is_file(&own).unwrap_or(false) {
        defaults.insert("priv", own.display().to_string());
    }
    defaults
}
