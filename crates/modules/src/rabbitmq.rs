//! `rabbitmq`: users, virtual hosts, policies and plugins of a RabbitMQ server.
//!
//! Over `rabbitmqctl` and `rabbitmq-plugins`. Their tables changed over the years: headings, notes and
//! bracketed lists are all understood.

use halite_spec::{Args, Command, Cx, Error, Need, Rest, Result, function, module};
use halite_value::{Dict, Value, dict, json};

use crate::random;

module! {
    /// Users, virtual hosts, policies and plugins of a RabbitMQ server.
    "rabbitmq", needs = [
        Need::program(&["rabbitmqctl"], "Module rabbitmq: module only works when RabbitMQ is installed"),
    ]: list_users, list_vhosts, user_exists, vhost_exists, add_user, delete_user,
    change_password, clear_password, check_password, add_vhost, delete_vhost, set_permissions,
    list_permissions, list_user_permissions, set_user_tags, status, cluster_status, stop_app,
    start_app, reset, force_reset, join_cluster, list_queues, list_queues_vhost, list_policies,
    set_policy, delete_policy, policy_exists, list_available_plugins, list_enabled_plugins,
    plugin_is_enabled, enable_plugin, disable_plugin, list_upstreams, upstream_exists,
    set_upstream, delete_upstream,
}

fn run(cx: &Cx, runas: Option<&String>, words: &[&str], looks: bool) -> Result<String> {
    let program = words.first().copied().unwrap_or_default();
    if cx.host.which(program).is_none() {
        return Err(Error::failed(format!("Command '{program}' cannot be found")));
    }
    let mut command = Command::line(words.iter().copied());
    command.user = runas.cloned();
    command.query = looks;
    let output = cx.host.run(&command)?;
    if output.ok() {
        return Ok(output.stdout_text().trim_end().to_owned());
    }
    let stderr = output.stderr_text();
    let said = if stderr.trim().is_empty() { output.stdout_text() } else { stderr };
    Err(Error::failed(format!("RabbitMQ command failed: {}", said.trim())))
}

fn ctl(cx: &Cx, runas: Option<&String>, words: &[&str], looks: bool) -> Result<String> {
    let line: Vec<&str> = ["rabbitmqctl"].into_iter().chain(words.iter().copied()).collect();
    run(cx, runas, &line, looks)
}

fn plugins(cx: &Cx, runas: Option<&String>, words: &[&str], looks: bool) -> Result<String> {
    let line: Vec<&str> = ["rabbitmq-plugins"].into_iter().chain(words.iter().copied()).collect();
    run(cx, runas, &line, looks)
}

/// The rows of a table, without notes and without the headings newer versions print.
fn rows<'a>(text: &'a str, headings: &[&str]) -> Vec<Vec<&'a str>> {
    let rows = text.lines().filter(|line| !line.is_empty() && !line.contains("...")).map(|line| {
        let row: Vec<&str> = line.split('\t').collect();
        row
    });
    let is_heading = |row: &[&str]| row.first().is_some_and(|first| headings.contains(first));
    let mut rows: Vec<Vec<&str>> = rows.collect();
    if rows.first().is_some_and(|row| is_heading(row)) {
        rows.remove(0);
    }
    rows
}

/// `{"Added": "what it said"}`, or a failure.
fn said(key: &str, text: String) -> Dict {
    let ret = Dict::new();
    ret.insert(key, text);
    ret
}

fn permissions(text: &str, by: &str) -> Result<Dict> {
    let list = json::from_str(text).map_err(|error| Error::failed(error.to_string()))?;
    let ret = Dict::new();
    for entry in list.items_of_sequence().unwrap_or_default() {
        let part = |name: &str| entry.get(name).unwrap_or_default();
        let rights = dict! {
            "configure" => part("configure"), "write" => part("write"), "read" => part("read"),
        };
        ret.insert(part(by).to_str(), rights);
    }
    Ok(ret)
}

/// As Python's `json.dumps` writes a definition; a text stays as it is.
fn as_json(definition: &Value) -> Result<String> {
    match definition {
        Value::Str(text) => Ok(text.to_string()),
        other => json::to_string(other).map_err(|error| Error::failed(error.to_string())),
    }
}

/// Return users and their tags.
///
/// ```console
/// $ salt web1 rabbitmq.list_users
/// ```
#[function]
pub fn list_users(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["list_users", "-q"], true)?;
    let ret = Dict::new();
    for row in rows(&text, &["user"]) {
        let [user, tags @ ..] = row.as_slice() else { continue };
        let tags = tags.first().copied().unwrap_or_default().trim_matches(['[', ']']);
        let tags = tags.split(", ").map(str::trim).filter(|tag| !tag.is_empty());
        ret.insert(*user, Value::list(tags));
    }
    Ok(ret)
}

/// Return the virtual hosts.
///
/// ```console
/// $ salt web1 rabbitmq.list_vhosts
/// ```
#[function]
pub fn list_vhosts(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Vec<String>> {
    let text = ctl(cx, runas.as_ref(), &["list_vhosts", "-q"], true)?;
    let names = rows(&text, &["name"])
        .into_iter()
        .filter_map(|row| row.first().map(|own| (*own).to_owned()));
    Ok(names.collect())
}

/// Tell whether there is a user.
///
/// ```console
/// $ salt web1 rabbitmq.user_exists ada
/// ```
#[function]
pub fn user_exists(
    cx: &Cx,
    /// The user.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    Ok(list_users(cx, runas)?.contains(name.as_str()))
}

/// Tell whether there is a virtual host.
///
/// ```console
/// $ salt web1 rabbitmq.vhost_exists shop
/// ```
#[function]
pub fn vhost_exists(
    cx: &Cx,
    /// The virtual host.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    Ok(list_vhosts(cx, runas)?.contains(&name))
}

/// Add a user; without a password, one who cannot log in with one.
///
/// ```console
/// $ salt web1 rabbitmq.add_user ada
/// ```
#[function]
pub fn add_user(
    cx: &Cx,
    /// The user.
    name: String,
    /// The password.
    password: Option<String>,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let clear = password.is_none();
    let password = match password {
        Some(password) => password,
        // It has to have one for a moment; nobody ever sees it.
        None => random::text_of(cx, 15, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")?,
    };
    let text = ctl(cx, runas.as_ref(), &["add_user", &name, &password], false)?;
    if clear && let Err(error) = clear_password(cx, name.clone(), runas.clone()) {
        // A user with a password nobody knows is worse than none.
        delete_user(cx, name, runas)?;
        return Err(error);
    }
    Ok(said("Added", text))
}

/// Remove a user.
///
/// ```console
/// $ salt web1 rabbitmq.delete_user ada
/// ```
#[function]
pub fn delete_user(
    cx: &Cx,
    /// The user.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["delete_user", &name], false)?;
    Ok(said("Deleted", text))
}

/// Set the password of a user.
///
/// ```console
/// $ salt web1 rabbitmq.change_password ada s3cret
/// ```
#[function]
pub fn change_password(
    cx: &Cx,
    /// The user.
    name: String,
    /// The password.
    password: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["change_password", &name, &password], false)?;
    Ok(said("Password Changed", text))
}

/// Take the password of a user away.
///
/// ```console
/// $ salt web1 rabbitmq.clear_password ada
/// ```
#[function]
pub fn clear_password(
    cx: &Cx,
    /// The user.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["clear_password", &name], false)?;
    Ok(said("Password Cleared", text))
}

/// Tell whether a password is the one of a user.
///
/// ```console
/// $ salt web1 rabbitmq.check_password ada s3cret
/// ```
#[function]
pub fn check_password(
    cx: &Cx,
    /// The user.
    name: String,
    /// The password.
    password: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    match ctl(cx, runas.as_ref(), &["authenticate_user", &name, &password], true) {
        Ok(_) => Ok(true),
        Err(Error::Failed(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Add a virtual host.
///
/// ```console
/// $ salt '*' rabbitmq.add_vhost test
/// ```
#[function]
pub fn add_vhost(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["add_vhost", &vhost], false)?;
    Ok(said("Added", text))
}

/// Remove a virtual host.
///
/// ```console
/// $ salt '*' rabbitmq.delete_vhost test
/// ```
#[function]
pub fn delete_vhost(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["delete_vhost", &vhost], false)?;
    Ok(said("Deleted", text))
}

/// Say what a user may do on a virtual host.
///
/// ```console
/// $ salt web1 rabbitmq.set_permissions shop ada
/// ```
#[function]
pub fn set_permissions(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The user.
    user: String,
    /// What to configure, as a pattern.
    #[default(".*".to_owned())]
    conf: String,
    /// What to write.
    #[default(".*".to_owned())]
    write: String,
    /// What to read.
    #[default(".*".to_owned())]
    read: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let words = ["set_permissions", "-p", &vhost, &user, &conf, &write, &read];
    Ok(said("Permissions Set", ctl(cx, runas.as_ref(), &words, false)?))
}

/// Return who may do what on a virtual host.
///
/// ```console
/// $ salt web1 rabbitmq.list_permissions shop
/// ```
#[function]
pub fn list_permissions(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text =
        ctl(cx, runas.as_ref(), &["list_permissions", "--formatter=json", "-p", &vhost], true)?;
    permissions(&text, "user")
}

/// Return what a user may do where.
///
/// ```console
/// $ salt web1 rabbitmq.list_user_permissions ada
/// ```
#[function]
pub fn list_user_permissions(
    cx: &Cx,
    /// The user.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text =
        ctl(cx, runas.as_ref(), &["list_user_permissions", &name, "--formatter=json"], true)?;
    permissions(&text, "vhost")
}

/// Set the tags of a user.
///
/// ```console
/// $ salt web1 rabbitmq.set_user_tags ada monitoring
/// ```
#[function]
pub fn set_user_tags(
    cx: &Cx,
    /// The user.
    name: String,
    /// The tags: a list, or one.
    tags: Vec<String>,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let words: Vec<&str> =
        ["set_user_tags", &name].into_iter().chain(tags.iter().map(String::as_str)).collect();
    Ok(said("Tag(s) set", ctl(cx, runas.as_ref(), &words, false)?))
}

/// Return the state of the server.
///
/// ```console
/// $ salt web1 rabbitmq.status
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<String> {
    ctl(cx, runas.as_ref(), &["status"], true)
}

/// Return the state of the cluster.
///
/// ```console
/// $ salt web1 rabbitmq.cluster_status
/// ```
#[function]
pub fn cluster_status(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<String> {
    ctl(cx, runas.as_ref(), &["cluster_status"], true)
}

/// Stop the application in the server.
///
/// ```console
/// $ salt web1 rabbitmq.stop_app
/// ```
#[function]
pub fn stop_app(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<String> {
    ctl(cx, runas.as_ref(), &["stop_app"], false)
}

/// Start the application in the server.
///
/// ```console
/// $ salt web1 rabbitmq.start_app
/// ```
#[function]
pub fn start_app(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<String> {
    ctl(cx, runas.as_ref(), &["start_app"], false)
}

/// Return the server to its first state.
///
/// ```console
/// $ salt web1 rabbitmq.reset
/// ```
#[function]
pub fn reset(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<String> {
    ctl(cx, runas.as_ref(), &["reset"], false)
}

/// Return the server to its first state, whatever the cluster says.
///
/// ```console
/// $ salt web1 rabbitmq.force_reset
/// ```
#[function]
pub fn force_reset(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<String> {
    ctl(cx, runas.as_ref(), &["force_reset"], false)
}

/// Join the cluster of another server.
///
/// ```console
/// $ salt web1 rabbitmq.join_cluster db1.example.org
/// ```
#[function]
pub fn join_cluster(
    cx: &Cx,
    /// The other machine.
    host: String,
    /// The user the server runs as there.
    #[default("rabbit".to_owned())]
    user: String,
    /// Keep the data in memory only.
    ram_node: Option<bool>,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let node = format!("{user}@{host}");
    let mut words = vec!["join_cluster"];
    words.extend(ram_node.unwrap_or(false).then_some("--ram"));
    words.push(&node);
    stop_app(cx, runas.clone())?;
    let joined = ctl(cx, runas.as_ref(), &words, false);
    start_app(cx, runas.clone())?;
    Ok(said("Join", joined?))
}

fn queues(cx: &Cx, runas: Option<&String>, words: &[&str]) -> Result<Dict> {
    let text = ctl(cx, runas, words, true)?;
    let ret = Dict::new();
    for row in rows(&text, &["name"]) {
        if let [name, rest @ ..] = row.as_slice() {
            ret.insert(*name, Value::list(rest.iter().copied()));
        }
    }
    Ok(ret)
}

/// Return the queues and their lengths.
///
/// ```console
/// $ salt web1 rabbitmq.list_queues
/// ```
#[function]
pub fn list_queues(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
    /// What to show of each.
    args: Rest,
) -> Result<Dict> {
    let args: Vec<String> = args.args.iter().map(Value::to_string).collect();
    let words: Vec<&str> =
        ["list_queues", "-q"].into_iter().chain(args.iter().map(String::as_str)).collect();
    queues(cx, runas.as_ref(), &words)
}

/// Return the queues of a virtual host.
///
/// ```console
/// $ salt '*' rabbitmq.list_queues_vhost / messages
/// ```
#[function]
pub fn list_queues_vhost(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The user to run as.
    runas: Option<String>,
    /// What to show of each.
    args: Rest,
) -> Result<Dict> {
    let args: Vec<String> = args.args.iter().map(Value::to_string).collect();
    let words: Vec<&str> = ["list_queues", "-q", "-p", &vhost]
        .into_iter()
        .chain(args.iter().map(String::as_str))
        .collect();
    queues(cx, runas.as_ref(), &words)
}

/// Return the policies of a virtual host.
///
/// ```console
/// $ salt web1 rabbitmq.list_policies
/// ```
#[function]
pub fn list_policies(
    cx: &Cx,
    /// The virtual host.
    #[default("/".to_owned())]
    vhost: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["list_policies", "-q", "-p", &vhost], true)?;
    let ret = Dict::new();
    for row in rows(&text, &["vhost"]) {
        let [vhost, name, rest @ ..] = row.as_slice() else { continue };
        // Since 3.7 the pattern comes first, before it did what it applies to.
        let [one, two, definition, priority] = rest else { continue };
        let old = matches!(*one, "all" | "exchanges" | "queues");
        let (apply_to, pattern) = if old { (one, two) } else { (two, one) };
        let policies = ret.get_or_insert_with(*vhost, Value::dict);
        if let Value::Dict(policies) = policies {
            let policy = dict! {
                "apply_to" => *apply_to, "pattern" => *pattern, "definition" => *definition,
                "priority" => *priority,
            };
            policies.insert(*name, policy);
        }
    }
    Ok(ret)
}

/// Set a policy.
///
/// ```console
/// $ salt web1 rabbitmq.set_policy shop mirrored '^orders' '{"max-length": 100}'
/// ```
#[function]
pub fn set_policy(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The policy.
    name: String,
    /// Which queues and exchanges.
    pattern: String,
    /// What holds for them: JSON text, or a dict.
    definition: Value,
    /// Which policy wins.
    priority: Option<Value>,
    /// The user to run as.
    runas: Option<String>,
    /// `queues`, `exchanges` or `all`.
    apply_to: Option<String>,
) -> Result<Dict> {
    let priority = priority.map(|priority| priority.to_string());
    let definition = as_json(&definition)?;
    let mut words = vec!["set_policy", "-p", &vhost];
    if let Some(priority) = &priority {
        words.extend(["--priority", priority]);
    }
    if let Some(apply_to) = &apply_to {
        words.extend(["--apply-to", apply_to]);
    }
    words.extend([name.as_str(), &pattern, &definition]);
    Ok(said("Set", ctl(cx, runas.as_ref(), &words, false)?))
}

/// Remove a policy.
///
/// ```console
/// $ salt web1 rabbitmq.delete_policy shop mirrored
/// ```
#[function]
pub fn delete_policy(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The policy.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["clear_policy", "-p", &vhost, &name], false)?;
    Ok(said("Deleted", text))
}

/// Tell whether there is a policy.
///
/// ```console
/// $ salt web1 rabbitmq.policy_exists shop mirrored
/// ```
#[function]
pub fn policy_exists(
    cx: &Cx,
    /// The virtual host.
    vhost: String,
    /// The policy.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    let policies = list_policies(cx, vhost.clone(), runas)?;
    Ok(policies.get(vhost.as_str()).is_some_and(|policies| policies.get(&name).is_some()))
}

/// Return all plugins.
///
/// ```console
/// $ salt web1 rabbitmq.list_available_plugins
/// ```
#[function]
pub fn list_available_plugins(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Vec<String>> {
    let text = plugins(cx, runas.as_ref(), &["list", "-m"], true)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Return the enabled plugins.
///
/// ```console
/// $ salt web1 rabbitmq.list_enabled_plugins
/// ```
#[function]
pub fn list_enabled_plugins(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Vec<String>> {
    let text = plugins(cx, runas.as_ref(), &["list", "-m", "-e"], true)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Tell whether a plugin is enabled.
///
/// ```console
/// $ salt '*' rabbitmq.plugin_is_enabled rabbitmq_management
/// ```
#[function]
pub fn plugin_is_enabled(
    cx: &Cx,
    /// The plugin.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    Ok(list_enabled_plugins(cx, runas)?.contains(&name))
}

/// Enable a plugin.
///
/// ```console
/// $ salt web1 rabbitmq.enable_plugin rabbitmq_shovel
/// ```
#[function]
pub fn enable_plugin(
    cx: &Cx,
    /// The plugin.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    Ok(said("Enabled", plugins(cx, runas.as_ref(), &["enable", &name], false)?))
}

/// Disable a plugin.
///
/// ```console
/// $ salt web1 rabbitmq.disable_plugin rabbitmq_shovel
/// ```
#[function]
pub fn disable_plugin(
    cx: &Cx,
    /// The plugin.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    Ok(said("Disabled", plugins(cx, runas.as_ref(), &["disable", &name], false)?))
}

/// Return the upstreams of federation.
///
/// ```console
/// $ salt web1 rabbitmq.list_upstreams
/// ```
#[function]
pub fn list_upstreams(
    cx: &Cx,
    /// The user to run as.
    runas: Option<String>,
) -> Result<Dict> {
    let text = ctl(cx, runas.as_ref(), &["list_parameters", "-q"], true)?;
    let ret = Dict::new();
    for row in rows(&text, &["component"]) {
        if let [component, name, value, ..] = row.as_slice()
            && *component == "federation-upstream"
        {
            ret.insert(*name, *value);
        }
    }
    Ok(ret)
}

/// Tell whether there is an upstream.
///
/// ```console
/// $ salt '*' rabbitmq.upstream_exists upstream_name
/// ```
#[function]
pub fn upstream_exists(
    cx: &Cx,
    /// The upstream.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    Ok(list_upstreams(cx, runas)?.contains(name.as_str()))
}

/// An upstream of federation.
#[derive(Args)]
pub struct Upstream {
    /// Its address, or several.
    uri: Value,
    /// How many messages may be on the way.
    prefetch_count: Option<Value>,
    /// Seconds before connecting again.
    reconnect_delay: Option<Value>,
    /// `on-confirm`, `on-publish` or `no-ack`.
    ack_mode: Option<Value>,
    /// Keep the user of messages.
    trust_user_id: Option<Value>,
    /// The exchange over there.
    exchange: Option<Value>,
    /// How far messages may go.
    max_hops: Option<Value>,
    /// How long the queue lives.
    expires: Option<Value>,
    /// How long messages live.
    message_ttl: Option<Value>,
    /// The policy of the queue.
    ha_policy: Option<Value>,
    /// The queue over there.
    queue: Option<Value>,
    /// The user to run as.
    pub runas: Option<String>,
}

impl Upstream {
    /// As the server keeps it.
    pub fn parameters(&self) -> Dict {
        let parameters = Dict::new();
        parameters.insert("uri", &self.uri);
        for (name, value) in [
            ("prefetch-count", &self.prefetch_count),
            ("reconnect-delay", &self.reconnect_delay),
            ("ack-mode", &self.ack_mode),
            ("trust-user-id", &self.trust_user_id),
            ("exchange", &self.exchange),
            ("max-hops", &self.max_hops),
            ("expires", &self.expires),
            ("message-ttl", &self.message_ttl),
            ("ha-policy", &self.ha_policy),
            ("queue", &self.queue),
        ] {
            if let Some(value) = value.as_ref().filter(|value| !value.is_null()) {
                parameters.insert(name, value);
            }
        }
        parameters
    }

    pub fn set(&self, cx: &Cx, name: &str) -> Result<()> {
        let parameters = as_json(&self.parameters().into())?;
        let words = ["set_parameter", "federation-upstream", name, &parameters];
        ctl(cx, self.runas.as_ref(), &words, false)?;
        Ok(())
    }
}

/// Set an upstream of federation.
///
/// ```console
/// $ salt '*' rabbitmq.set_upstream upstream_name amqp://foo
/// ```
#[function]
pub fn set_upstream(
    cx: &Cx,
    /// The upstream.
    name: String,
    #[group] upstream: Upstream,
) -> Result<bool> {
    upstream.set(cx, &name)?;
    Ok(true)
}

/// Remove an upstream of federation.
///
/// ```console
/// $ salt web1 rabbitmq.delete_upstream north
/// ```
#[function]
pub fn delete_upstream(
    cx: &Cx,
    /// The upstream.
    name: String,
    /// The user to run as.
    runas: Option<String>,
) -> Result<bool> {
    ctl(cx, runas.as_ref(), &["clear_parameter", "federation-upstream", &name], false)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_headings_are_no_rows() {
        let text = "Listing users ...\nuser\ttags\nguest\t[administrator]\n";
        assert_eq!(rows(text, &["user"]), [["guest", "[administrator]"]]);
    }
}
