//! `selinux`: the mode, the booleans, modules, file contexts and ports of SELinux.
//!
//! Over `semanage`, `setsebool`, `semodule` and `restorecon`; the mode itself is a file of the kernel.

use std::path::{Path, PathBuf};

use halite_spec::{Args, Command, Cx, Error, Need, Output, Result, function, host::Write, module};
use halite_value::{Dict, Value, dict};

module! {
    /// The mode, the booleans, modules, file contexts and ports of SELinux.
    "selinux", needs = [
        Need::program(&["semanage"], "semanage is not in the path"),
        Need::program(&["setsebool"], "setsebool is not in the path"),
        Need::program(&["semodule"], "semodule is not in the path"),
    ]: selinux_fs_path, getenforce, getconfig, setenforce, getsebool, setsebool,
    setsebools, list_sebool, getsemod, setsemod, install_semod, remove_semod, list_semod,
    filetype_id_to_string, fcontext_get_policy, fcontext_add_policy, fcontext_delete_policy,
    fcontext_policy_is_applied, fcontext_apply_policy, port_get_policy, port_add_policy,
    port_modify_policy, port_delete_policy,
}

const CONFIG: &str = "/etc/selinux/config";

/// The kinds of files, by the letters of `semanage`.
const FILETYPES: [(&str, &str); 8] = [
    ("a", "all files"),
    ("f", "regular file"),
    ("d", "directory"),
    ("c", "character device"),
    ("b", "block device"),
    ("s", "socket"),
    ("l", "symbolic link"),
    ("p", "named pipe"),
];

fn look(cx: &Cx, words: &[&str]) -> Result<String> {
    Ok(cx.host.run(&Command::line(words.iter().copied()).query())?.stdout_text())
}

fn succeeds(cx: &Cx, words: &[&str]) -> Result<bool> {
    Ok(cx.host.run(&Command::line(words.iter().copied()))?.ok())
}

/// What `cmd.run_all` would return.
fn whole(output: &Output) -> Dict {
    let ret = Dict::new();
    ret.insert("pid", output.pid);
    ret.insert("retcode", output.code);
    ret.insert("stdout", output.stdout_text().trim_end());
    ret.insert("stderr", output.stderr_text().trim_end());
    ret
}

/// Runs a command and fails with what it complained of.
fn run_all(cx: &Cx, words: &[String], what: &str) -> Result<Dict> {
    let output = cx.host.run(&Command::line(words))?;
    if output.ok() {
        return Ok(whole(&output));
    }
    Err(Error::failed(format!("{what}: {}", output.stderr_text().trim())))
}

fn fs_path(cx: &Cx) -> Option<PathBuf> {
    ["/sys/fs/selinux", "/selinux"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| cx.host.exists(&path.join("enforce")).unwrap_or(false))
}

/// One line of `semanage fcontext --list`.
fn read_policy(line: &str) -> Option<Dict> {
    let (filespec, rest) = line.split_once("  ").or_else(|| line.split_once('\t'))?;
    let rest = rest.trim();
    let (filetype, context) = rest.rsplit_once("  ").or_else(|| rest.rsplit_once('\t'))?;
    let parts: Vec<&str> = context.trim().splitn(4, ':').collect();
    let [user, role, kind, level] = parts.as_slice() else { return None };
    let ret = Dict::new();
    ret.insert("filespec", filespec.trim());
    ret.insert("filetype", filetype.trim());
    ret.insert("sel_user", *user);
    ret.insert("sel_role", *role);
    ret.insert("sel_type", *kind);
    ret.insert("sel_level", *level);
    Some(ret)
}

/// What restorecon says it relabelled: path → old and new, only the parts that differ.
pub fn relabelled(text: &str) -> Dict {
    let changes = Dict::new();
    for line in text.lines() {
        let line = line.trim();
        let rest = line
            .strip_prefix("Relabeled ")
            .or_else(|| line.strip_prefix("Would relabel "))
            .or_else(|| line.strip_prefix("restorecon reset "));
        let Some(rest) = rest else { continue };
        let parts = match rest.split_once(" from ") {
            Some((path, rest)) => rest.split_once(" to ").map(|(old, new)| (path, old, new)),
            None => rest
                .split_once(" context ")
                .and_then(|(path, rest)| rest.split_once("->").map(|(old, new)| (path, old, new))),
        };
        let Some((path, old, new)) = parts else { continue };
        let (was, is) = (Dict::new(), Dict::new());
        let names = ["sel_user", "sel_role", "sel_type", "sel_level"];
        for ((name, old), new) in names.iter().zip(old.splitn(4, ':')).zip(new.splitn(4, ':')) {
            if old != new {
                was.insert(*name, old);
                is.insert(*name, new);
            }
        }
        changes.insert(path.trim(), dict! { "old" => was, "new" => is });
    }
    changes
}

/// Protocol and port: given, or both in the name as `tcp/8080`.
fn protocol_and_port(
    name: &str,
    protocol: Option<String>,
    port: Option<Value>,
) -> Result<(String, String)> {
    let named = name.split_once('/').filter(|(protocol, port)| {
        matches!(*protocol, "tcp" | "udp")
            && !port.is_empty()
            && port.chars().all(|c| c.is_ascii_digit() || c == '-')
    });
    let protocol = protocol.or_else(|| named.map(|(protocol, _)| protocol.to_owned()));
    let port = port.map(|port| port.to_string()).or_else(|| named.map(|(_, port)| port.to_owned()));
    match (protocol, port) {
        (Some(protocol), Some(port)) => Ok((protocol, port)),
        _ => Err(Error::invalid(format!(
            "Invalid name \"{name}\" format and protocol and port not provided: \"None\" \"None\"."
        ))),
    }
}

/// Return where the kernel shows SELinux.
///
/// ```console
/// $ salt web1 selinux.selinux_fs_path
/// ```
#[function]
pub fn selinux_fs_path(cx: &Cx) -> Result<Option<String>> {
    Ok(fs_path(cx).map(|path| path.display().to_string()))
}

/// Return the mode: `Enforcing`, `Permissive` or `Disabled`.
///
/// ```console
/// $ salt web1 selinux.getenforce
/// ```
#[function]
pub fn getenforce(cx: &Cx) -> Result<String> {
    let Some(folder) = fs_path(cx) else { return Ok("Disabled".into()) };
    let text = cx.host.read_text_if_there(&folder.join("enforce"))?;
    Ok(match text.as_deref().map(str::trim) {
        None => "Disabled",
        Some("0") => "Permissive",
        Some(_) => "Enforcing",
    }
    .into())
}

/// Return the mode of the next start.
///
/// ```console
/// $ salt web1 selinux.getconfig
/// ```
#[function]
pub fn getconfig(cx: &Cx) -> Result<Option<String>> {
    let text = cx.host.read_text_if_there(Path::new(CONFIG))?.unwrap_or_default();
    let mode = text.lines().find_map(|line| line.trim().strip_prefix("SELINUX="));
    Ok(mode.map(|mode| mode.trim().to_lowercase()))
}

/// Set the mode, now and for the next start.
///
/// ```console
/// $ salt web1 selinux.setenforce permissive
/// ```
#[function]
pub fn setenforce(
    cx: &Cx,
    /// `Enforcing`, `Permissive` or `Disabled`; or 1 and 0.
    mode: Value,
) -> Result<String> {
    let given = mode.to_string();
    let (bit, word) = match given.to_lowercase().as_str() {
        "enforcing" | "1" | "true" => ("1", "enforcing"),
        "permissive" | "0" | "false" => ("0", "permissive"),
        "disabled" => ("0", "disabled"),
        _ => return Err(Error::invalid(format!("Invalid mode {given}"))),
    };
    if getenforce(cx)? != "Disabled"
        && let Some(folder) = fs_path(cx)
    {
        cx.host.append(&folder.join("enforce"), bit.as_bytes()).map_err(|error| {
            Error::failed(format!("Could not write SELinux config file: {error}"))
        })?;
    }
    let path = Path::new(CONFIG);
    let text = cx.host.read_text(path).map_err(|error| match error.is_missing() {
        true => Error::failed(format!(
            "Could not read SELinux config file: [Errno 2] No such file or directory: '{CONFIG}'"
        )),
        false => error.into(),
    })?;
    let mut new = String::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with("SELINUX=") {
            new += &format!("SELINUX={word}\n");
        } else {
            new += line;
        }
    }
    cx.host.write(path, new.as_bytes(), &Write::default())?;
    getenforce(cx)
}

/// Return what is known of a boolean.
///
/// ```console
/// $ salt web1 selinux.getsebool httpd_can_network_connect
/// ```
#[function]
pub fn getsebool(
    cx: &Cx,
    /// The boolean.
    boolean: String,
) -> Result<Value> {
    Ok(list_sebool(cx)?.get(boolean.as_str()).unwrap_or_else(Value::dict))
}

/// Set a boolean.
///
/// ```console
/// $ salt web1 selinux.setsebool httpd_can_network_connect on
/// ```
#[function]
pub fn setsebool(
    cx: &Cx,
    /// The boolean.
    boolean: String,
    /// On or off.
    value: Value,
    /// For the next start, too.
    #[default(false)]
    persist: bool,
) -> Result<bool> {
    let value = value.to_string();
    let mut words = vec!["setsebool"];
    words.extend(persist.then_some("-P"));
    words.extend([boolean.as_str(), &value]);
    succeeds(cx, &words)
}

/// Set several booleans at once.
///
/// ```console
/// $ salt web1 selinux.setsebools '{httpd_can_network_connect: on}'
/// ```
#[function]
pub fn setsebools(
    cx: &Cx,
    /// Booleans and values.
    pairs: Dict,
    /// For the next start, too.
    #[default(false)]
    persist: bool,
) -> Result<bool> {
    let pairs: Vec<String> =
        pairs.entries().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut words = vec!["setsebool"];
    words.extend(persist.then_some("-P"));
    words.extend(pairs.iter().map(String::as_str));
    succeeds(cx, &words)
}

/// Return all booleans.
///
/// ```console
/// $ salt web1 selinux.list_sebool
/// ```
#[function]
pub fn list_sebool(cx: &Cx) -> Result<Dict> {
    let text = look(cx, &["semanage", "boolean", "--list"])?;
    let ret = Dict::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once('(') else { continue };
        let Some((states, description)) = rest.split_once(')') else { continue };
        let Some((now, default)) = states.split_once(',') else { continue };
        let about = dict! {
            "State" => now.trim(), "Default" => default.trim(), "Description" => description.trim(),
        };
        ret.insert(name.trim(), about);
    }
    Ok(ret)
}

/// Return what is known of a module.
///
/// ```console
/// $ salt '*' selinux.getsemod abrt
/// ```
#[function]
pub fn getsemod(
    cx: &Cx,
    /// The module.
    module: String,
) -> Result<Value> {
    Ok(list_semod(cx)?.get(module.as_str()).unwrap_or_else(Value::dict))
}

/// Enable or disable a module.
///
/// ```console
/// $ salt '*' selinux.setsemod bind Disabled
/// ```
#[function]
pub fn setsemod(
    cx: &Cx,
    /// The module.
    module: String,
    /// `Enabled` or `Disabled`.
    state: String,
) -> Result<bool> {
    let verb = if state.eq_ignore_ascii_case("enabled") { "--enable" } else { "--disable" };
    succeeds(cx, &["semodule", verb, &module])
}

/// Install a module from a file.
///
/// ```console
/// $ salt '*' selinux.install_semod /path/to/module.pp
/// ```
#[function]
pub fn install_semod(
    cx: &Cx,
    /// The file; `salt://` too.
    module_path: String,
) -> Result<bool> {
    let path = match module_path.strip_prefix("salt://") {
        Some(_) => match cx.files.cache(&module_path, &cx.saltenv())? {
            Some(path) => path.display().to_string(),
            None => return Err(Error::failed(format!("{module_path} was not found"))),
        },
        None => module_path,
    };
    succeeds(cx, &["semodule", "--install", &path])
}

/// Remove a module.
///
/// ```console
/// $ salt web1 selinux.remove_semod shop
/// ```
#[function]
pub fn remove_semod(
    cx: &Cx,
    /// The module.
    module: String,
) -> Result<bool> {
    succeeds(cx, &["semodule", "--remove", &module])
}

/// Return all modules.
///
/// ```console
/// $ salt web1 selinux.list_semod
/// ```
#[function]
pub fn list_semod(cx: &Cx) -> Result<Dict> {
    let output = cx.host.run(&Command::line(["semodule", "--list-modules=full"]).query())?;
    let ret = Dict::new();
    if output.ok() {
        for line in output.stdout_text().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, name, rest @ ..] = words.as_slice() else { continue };
            let enabled = rest.last() != Some(&"disabled");
            ret.insert(*name, dict! { "Enabled" => enabled, "Version" => Value::Null });
        }
        return Ok(ret);
    }
    // Before 2.4 there were versions, and no such option.
    for line in look(cx, &["semodule", "-l"])?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, version, rest @ ..] = words.as_slice() else { continue };
        let enabled = rest.first() != Some(&"Disabled");
        ret.insert(*name, dict! { "Enabled" => enabled, "Version" => *version });
    }
    Ok(ret)
}

/// Return the name of a kind of files.
///
/// ```console
/// $ salt '*' selinux.filetype_id_to_string f
/// ```
#[function]
pub fn filetype_id_to_string(
    _cx: &Cx,
    /// The letter.
    #[default("a".to_owned())]
    filetype: String,
) -> Result<String> {
    let known = FILETYPES.iter().find(|(letter, _)| *letter == filetype);
    Ok(known.map_or("error", |(_, name)| name).to_owned())
}

/// Return the context files of a path shall have, or nothing.
///
/// ```console
/// $ salt web1 selinux.fcontext_get_policy '/srv/app(/.*)?'
/// ```
#[function]
pub fn fcontext_get_policy(
    cx: &Cx,
    /// The path, as a pattern.
    name: String,
    /// The letter of the kind of files.
    filetype: Option<String>,
    /// The type.
    sel_type: Option<String>,
    /// The user.
    sel_user: Option<String>,
    /// The level.
    sel_level: Option<String>,
) -> Result<Option<Dict>> {
    let kind = filetype.map(|letter| filetype_id_to_string(cx, letter)).transpose()?;
    let text = look(cx, &["semanage", "fcontext", "--list"])?;
    let fits = |policy: &Dict| {
        let same = |key: &str, wanted: Option<&str>| {
            wanted.is_none_or(|wanted| {
                policy.get(key).is_some_and(|own| own.as_str() == Some(wanted))
            })
        };
        same("filespec", Some(&name))
            && same("filetype", kind.as_deref())
            && same("sel_type", sel_type.as_deref())
            && same("sel_user", sel_user.as_deref())
            && same("sel_level", sel_level.as_deref())
    };
    Ok(text.lines().filter_map(read_policy).find(fits))
}

/// The words of an order about the context of a path.
fn context_words(
    verb: &str,
    name: String,
    filetype: Option<String>,
    sel_type: Option<String>,
    sel_user: Option<String>,
    sel_level: Option<String>,
) -> Vec<String> {
    let mut words: Vec<String> = ["semanage", "fcontext", verb].map(str::to_owned).to_vec();
    // `a` is what semanage takes for granted.
    let filetype = filetype.filter(|letter| letter != "a");
    let parts = [
        ("--ftype", filetype),
        ("--type", sel_type),
        ("--seuser", sel_user),
        ("--range", sel_level),
    ];
    for (option, value) in parts {
        if let Some(value) = value {
            words.extend([option.to_owned(), value]);
        }
    }
    words.push(name);
    words
}

/// Say which context files of a path shall have.
///
/// ```console
/// $ salt web1 selinux.fcontext_add_policy '/srv/app(/.*)?'
/// ```
#[function]
pub fn fcontext_add_policy(
    cx: &Cx,
    /// The path, as a pattern.
    name: String,
    /// The letter of the kind of files.
    filetype: Option<String>,
    /// The type.
    sel_type: Option<String>,
    /// The user.
    sel_user: Option<String>,
    /// The level.
    sel_level: Option<String>,
) -> Result<Dict> {
    let there = fcontext_get_policy(cx, name.clone(), filetype.clone(), None, None, None)?;
    let verb = if there.is_some() { "--modify" } else { "--add" };
    let words = context_words(verb, name, filetype, sel_type, sel_user, sel_level);
    run_all(cx, &words, "Error adding fcontext policy")
}

/// Forget which context files of a path shall have.
///
/// ```console
/// $ salt web1 selinux.fcontext_delete_policy '/srv/app(/.*)?'
/// ```
#[function]
pub fn fcontext_delete_policy(
    cx: &Cx,
    /// The path, as a pattern.
    name: String,
    /// The letter of the kind of files.
    filetype: Option<String>,
    /// The type.
    sel_type: Option<String>,
    /// The user.
    sel_user: Option<String>,
    /// The level.
    sel_level: Option<String>,
) -> Result<Dict> {
    let words = context_words("--delete", name, filetype, sel_type, sel_user, sel_level);
    run_all(cx, &words, "Error deleting fcontext policy")
}

/// Return what restorecon would change; an empty text if nothing.
///
/// ```console
/// $ salt web1 selinux.fcontext_policy_is_applied '/srv/app(/.*)?'
/// ```
#[function]
pub fn fcontext_policy_is_applied(
    cx: &Cx,
    /// The path.
    name: String,
    /// Everything below it, too.
    #[default(false)]
    recursive: bool,
) -> Result<String> {
    let mut words = vec!["restorecon", "-n", "-v"];
    words.extend(recursive.then_some("-R"));
    words.push(&name);
    Ok(look(cx, &words)?.trim_end().to_owned())
}

/// Give files the context they shall have; returns what changed.
///
/// ```console
/// $ salt web1 selinux.fcontext_apply_policy '/srv/app(/.*)?'
/// ```
#[function]
pub fn fcontext_apply_policy(
    cx: &Cx,
    /// The path.
    name: String,
    /// Everything below it, too.
    #[default(false)]
    recursive: bool,
) -> Result<Dict> {
    let mut words = vec!["restorecon", "-v", "-F"];
    words.extend(recursive.then_some("-R"));
    words.push(&name);
    let output = cx.host.run(&Command::line(words))?;
    if !output.ok() {
        let text = output.stderr_text();
        return Err(Error::failed(format!("Error applying fcontext policy: {}", text.trim())));
    }
    let ret = whole(&output);
    let changes = relabelled(&output.stdout_text());
    if !changes.is_empty() {
        ret.insert("changes", changes);
    }
    Ok(ret)
}

/// Return the type of a port, or nothing.
///
/// ```console
/// $ salt web1 selinux.port_get_policy tcp/8443
/// ```
#[function]
pub fn port_get_policy(
    cx: &Cx,
    /// `tcp/8080`, or anything when protocol and port are given.
    name: String,
    /// The type.
    sel_type: Option<String>,
    /// `tcp` or `udp`.
    protocol: Option<String>,
    /// The port, or a range.
    port: Option<Value>,
) -> Result<Option<Dict>> {
    let (protocol, port) = protocol_and_port(&name, protocol, port)?;
    let text = look(cx, &["semanage", "port", "--list"])?;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(own)) = (words.next(), words.next()) else { continue };
        let ports = words.collect::<Vec<_>>().join(" ");
        let holds = ports.split(", ").any(|own| own == port);
        if own == protocol && holds && sel_type.as_deref().is_none_or(|wanted| wanted == kind) {
            let ret = Dict::new();
            ret.insert("sel_type", kind);
            ret.insert("protocol", own);
            ret.insert("port", ports);
            return Ok(Some(ret));
        }
    }
    Ok(None)
}

fn port_words(
    verb: &str,
    protocol: String,
    port: String,
    sel_type: Option<String>,
    sel_range: Option<String>,
) -> Vec<String> {
    let mut words: Vec<String> = ["semanage", "port", verb, "--proto"].map(str::to_owned).to_vec();
    words.push(protocol);
    for (option, value) in [("--type", sel_type), ("--range", sel_range)] {
        if let Some(value) = value {
            words.extend([option.to_owned(), value]);
        }
    }
    words.push(port);
    words
}

/// A port and what it shall be.
#[derive(Args)]
pub struct PortPolicy {
    /// `tcp/8080`, or anything when protocol and port are given.
    pub name: String,
    /// The type.
    pub sel_type: Option<String>,
    /// `tcp` or `udp`.
    pub protocol: Option<String>,
    /// The port, or a range.
    pub port: Option<Value>,
    /// The range of levels.
    pub sel_range: Option<String>,
}

impl PortPolicy {
    fn words(self, verb: &str) -> Result<Vec<String>> {
        let (protocol, port) = protocol_and_port(&self.name, self.protocol, self.port)?;
        Ok(port_words(verb, protocol, port, self.sel_type, self.sel_range))
    }
}

/// Give a port a type.
///
/// ```console
/// $ salt web1 selinux.port_add_policy tcp/8443 http_port_t
/// ```
#[function]
pub fn port_add_policy(cx: &Cx, #[group] policy: PortPolicy) -> Result<Dict> {
    run_all(cx, &policy.words("--add")?, "Error adding port policy")
}

/// Give a port another type.
///
/// ```console
/// $ salt web1 selinux.port_modify_policy tcp/8443 http_port_t
/// ```
#[function]
pub fn port_modify_policy(cx: &Cx, #[group] policy: PortPolicy) -> Result<Dict> {
    run_all(cx, &policy.words("--modify")?, "Error modifying port policy")
}

/// Take the type of a port away.
///
/// ```console
/// $ salt web1 selinux.port_delete_policy tcp/8443
/// ```
#[function]
pub fn port_delete_policy(
    cx: &Cx,
    /// `tcp/8080`, or anything when protocol and port are given.
    name: String,
    /// `tcp` or `udp`.
    protocol: Option<String>,
    /// The port, or a range.
    port: Option<Value>,
) -> Result<Dict> {
    let (protocol, port) = protocol_and_port(&name, protocol, port)?;
    let words = port_words("--delete", protocol, port, None, None);
    run_all(cx, &words, "Error deleting port policy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_policies() {
        let line = "/srv/www(/.*)?            all files          \
                    system_u:object_r:httpd_sys_content_t:s0";
        let policy = read_policy(line).unwrap();
        assert_eq!(policy.get("filespec"), Some("/srv/www(/.*)?".into()));
        assert_eq!(policy.get("filetype"), Some("all files".into()));
        assert_eq!(policy.get("sel_level"), Some("s0".into()));
    }

    #[test]
    fn reads_what_was_relabelled() {
        let text = "Relabeled /srv/x from u:object_r:var_t:s0 to u:object_r:httpd_t:s0\n";
        assert_eq!(
            Value::from(relabelled(text)).repr(),
            "{'/srv/x': {'old': {'sel_type': 'var_t'}, 'new': {'sel_type': 'httpd_t'}}}"
        );
    }
}
