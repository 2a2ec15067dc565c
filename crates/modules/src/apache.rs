//! `apache`: the Apache web server.
//!
//! What `apachectl` says about the server, Debian's switches for modules, sites and pieces of
//! configuration (`a2enmod` and its kin), and configuration files made from data.

use std::path::{Path, PathBuf};

use halite_spec::{
    Command, Cx, Error, Need, Result, function,
    host::{HttpRequest, Write},
    module,
};
use halite_value::{Dict, List, Value, dict};

module! {
    /// The Apache web server.
    "apache", needs = [
        Need::test(is_installed, "The apache execution module cannot be loaded: apache is not installed."),
    ]: version, fullversion, modules, servermods, directives, vhosts, signal, useradd,
    userdel, server_status, config, check_site_enabled, a2ensite, a2dissite, check_mod_enabled,
    a2enmod, a2dismod, check_conf_enabled, a2enconf, a2disconf,
}

fn program(cx: &Cx) -> &'static str {
    match cx.grain_str("os_family").as_str() {
        "RedHat" => "apachectl",
        "Debian" | "Suse" => "apache2ctl",
        _ => "apachectl",
    }
}

fn is_installed(cx: &Cx) -> bool {
    cx.host.which(program(cx)).is_some()
}

fn look(cx: &Cx, option: &str) -> Result<String> {
    let program = program(cx);
    if cx.host.which(program).is_none() {
        return Err(Error::failed(format!("Command '{program}' cannot be found")));
    }
    Ok(cx.host.run(&Command::line([program, option]).query())?.stdout_text())
}

/// What Debian switches: modules, sites, pieces of configuration.
#[derive(Clone, Copy, Debug)]
pub enum Switch {
    Mod,
    Site,
    Conf,
}

impl Switch {
    fn word(self) -> &'static str {
        match self {
            Self::Mod => "mod",
            Self::Site => "site",
            Self::Conf => "conf",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Mod => "Mod",
            Self::Site => "Site",
            Self::Conf => "Conf",
        }
    }

    /// The file that is there when it is on.
    fn file(self, name: &str) -> PathBuf {
        let end = match self {
            Self::Mod => "load",
            Self::Site | Self::Conf => "conf",
        };
        let file = match Path::new(name).extension() {
            Some(own) if own == "load" || own == "conf" => name.to_owned(),
            // The one site whose link is not named after it.
            _ if matches!(self, Self::Site) && name == "default" => "000-default".to_owned(),
            _ => format!("{name}.{end}"),
        };
        let folder = match self {
            Self::Mod => "mods-enabled",
            Self::Site => "sites-enabled",
            Self::Conf => "conf-enabled",
        };
        Path::new("/etc/apache2").join(folder).join(file)
    }
}

/// Tells whether something is on.
pub fn is_on(cx: &Cx, switch: Switch, name: &str) -> bool {
    cx.host.stat(&switch.file(name), false).is_ok()
}

/// Turns something on or off; the return of `a2enmod` and its kin.
pub fn turn(cx: &Cx, switch: Switch, name: &str, on: bool) -> Result<Dict> {
    let (verb, done) = if on { ("Enable", "enabled") } else { ("Disable", "disabled") };
    let program = format!("a2{}{}", if on { "en" } else { "dis" }, switch.word());
    let ret = Dict::new();
    ret.insert("Name", format!("Apache2 {verb} {}", switch.title()));
    ret.insert(switch.title(), name);
    if name.starts_with('-') {
        return Err(Error::invalid(format!("'{name}' cannot be a name")));
    }
    let output = cx.host.run(&Command::line([program.as_str(), name]))?;
    let title = switch.title();
    ret.insert(
        "Status",
        match output.code {
            0 => format!("{title} {name} {done}"),
            1 => format!("{title} {name} Not found"),
            code => code.to_string(),
        },
    );
    Ok(ret)
}

/// Writes one container or directive, as deep as it goes.
fn section(name: &str, body: &Value, out: &mut String) {
    let Value::Dict(body) = body else {
        for item in body.items_of_sequence().unwrap_or_else(|| vec![body.clone()]) {
            out.push_str(&format!("{name} {item}\n"));
        }
        return;
    };
    let this = body.get("this").map(|this| format!(" {this}")).unwrap_or_default();
    out.push_str(&format!("<{name}{this}>\n"));
    for (key, value) in body.entries() {
        let key = key.to_string();
        if key == "this" {
            continue;
        }
        match &value {
            Value::Dict(_) => section(&key, &value, out),
            Value::List(items) if items.read().iter().any(|item| item.as_dict().is_some()) => {
                for item in items.to_vec() {
                    section(&key, &item, out);
                }
            }
            _ => section(&key, &value, out),
        }
    }
    out.push_str(&format!("\n</{name}>\n"));
}

/// The text of a configuration given as data.
pub fn written(config: &[Value]) -> Result<String> {
    let mut parts = Vec::new();
    for entry in config {
        let Value::Dict(entry) = entry else {
            return Err(Error::invalid(format!("{} is no dict of directives", entry.repr())));
        };
        for (name, body) in entry.entries() {
            let mut part = String::new();
            section(&name.to_string(), &body, &mut part);
            parts.push(part);
        }
    }
    Ok(parts.join("\n"))
}

/// Return the version of the server.
///
/// ```console
/// $ salt web1 apache.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    let text = look(cx, "-v")?;
    let line = text.lines().next().unwrap_or_default();
    Ok(line.split_once(": ").map_or(line, |(_, version)| version).trim().to_owned())
}

/// Return the version and how the server was built.
///
/// ```console
/// $ salt web1 apache.fullversion
/// ```
#[function]
pub fn fullversion(cx: &Cx) -> Result<Dict> {
    let text = look(cx, "-V")?;
    let (ret, with) = (Dict::new(), List::new());
    ret.insert("compiled_with", with.clone());
    for line in text.lines() {
        if let Some(define) = line.trim().strip_prefix("-D ") {
            with.push(define.trim());
        } else if let Some((name, value)) = line.split_once(": ") {
            ret.insert(name.trim().to_lowercase().replace(' ', "_"), value.trim());
        }
    }
    Ok(ret)
}

/// Return the modules loaded: `static` and `shared`.
///
/// ```console
/// $ salt web1 apache.modules
/// ```
#[function]
pub fn modules(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for line in look(cx, "-M")?.lines() {
        let Some((name, kind)) = line.trim().split_once(" (") else { continue };
        let kind = kind.trim_end_matches(')');
        if let Value::List(list) = ret.get_or_insert_with(kind, || List::new().into()) {
            list.push(name);
        }
    }
    Ok(ret)
}

/// Return the modules built in.
///
/// ```console
/// $ salt web1 apache.servermods
/// ```
#[function]
pub fn servermods(cx: &Cx) -> Result<Vec<String>> {
    let text = look(cx, "-l")?;
    Ok(text.lines().map(str::trim).filter(|line| line.ends_with(".c")).map(str::to_owned).collect())
}

/// Return the directives the server knows, each with its description.
///
/// ```console
/// $ salt web1 apache.directives
/// ```
#[function]
pub fn directives(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    let mut name = String::new();
    for line in look(cx, "-L")?.lines() {
        if !line.starts_with(['\t', ' ']) {
            name = line.trim().to_owned();
            ret.insert(name.as_str(), "");
        } else if let Some(text) = ret.get(name.as_str()) {
            let text = text.to_string();
            let joint = if text.is_empty() { "" } else { "\n" };
            ret.insert(name.as_str(), format!("{text}{joint}{}", line.trim()));
        }
    }
    Ok(ret)
}

/// Return the virtual hosts, by address.
///
/// ```console
/// $ salt '*' apache.vhosts
/// ```
#[function]
pub fn vhosts(cx: &Cx) -> Result<Dict> {
    Ok(hosts_shown(&look(cx, "-S")?))
}

/// Reads what `-S` shows: address → host → where it is configured.
fn hosts_shown(text: &str) -> Dict {
    let addresses: Vec<(&str, Dict)> = Vec::new();
    let found = text.lines().fold(addresses, |mut found, line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let conf = words.last().copied().unwrap_or_default().trim_matches(['(', ')']);
        match (&*words, found.last()) {
            ([address, ..], _) if line.contains("is a NameVirtualHost") => {
                found.push((address, Dict::new()));
            }
            (["default", rest @ ..], Some((_, hosts))) => {
                let host = rest.get(1).copied().unwrap_or_default();
                hosts.insert("default", dict! { "vhost" => host, "conf" => conf });
            }
            (["port", rest @ ..], Some((_, hosts))) => {
                let at = |place: usize| rest.get(place).copied().unwrap_or_default();
                let host = dict! { "vhost" => at(2), "conf" => conf, "port" => at(0) };
                hosts.insert(at(2), host);
            }
            _ => {}
        }
        found
    });
    found.into_iter().collect()
}

/// Start, stop or restart the server; anything else does nothing.
///
/// ```console
/// $ salt web1 apache.signal
/// ```
#[function]
pub fn signal(
    cx: &Cx,
    /// `start`, `stop`, `restart`, `graceful` or `graceful-stop`.
    signal: Option<String>,
) -> Result<Option<String>> {
    let Some(signal) = signal else { return Ok(None) };
    let words: Vec<&str> = match signal.as_str() {
        "start" | "stop" | "restart" | "graceful" | "graceful-stop" => vec!["-k", &signal],
        "configtest" => vec!["-t"],
        _ => return Ok(None),
    };
    let output = cx.host.run(&Command::line([program(cx)]).args(words))?;
    let text = if output.ok() { output.stdout_text() } else { output.stderr_text() };
    let text = text.trim_end();
    Ok(Some(match text.is_empty() && output.ok() {
        true => format!("Command: \"{} -k {signal}\" completed successfully!", program(cx)),
        false => text.to_owned(),
    }))
}

/// Set the password of a user in a password file.
///
/// ```console
/// $ salt web1 apache.useradd /srv/app/htpasswd ada s3cret
/// ```
#[function]
pub fn useradd(
    cx: &Cx,
    /// The file.
    pwfile: String,
    /// The user.
    user: String,
    /// The password.
    password: String,
    /// Letters of htpasswd.
    #[default(String::new())]
    opts: String,
) -> Result<Dict> {
    let mut words = vec!["htpasswd".to_owned(), format!("-b{opts}")];
    if !cx.host.exists(Path::new(&pwfile))? {
        words.push("-c".to_owned());
    }
    words.extend([pwfile, user, password]);
    let output = cx.host.run(&Command::line(words))?;
    let ret = Dict::new();
    ret.insert("pid", output.pid);
    ret.insert("retcode", output.code);
    ret.insert("stdout", output.stdout_text().trim_end());
    ret.insert("stderr", output.stderr_text().trim_end());
    Ok(ret)
}

/// Remove a user from a password file.
///
/// ```console
/// $ salt web1 apache.userdel /srv/app/htpasswd ada
/// ```
#[function]
pub fn userdel(
    cx: &Cx,
    /// The file.
    pwfile: String,
    /// The user.
    user: String,
) -> Result<Value> {
    if !cx.host.exists(Path::new(&pwfile))? {
        return Ok("Error: The specified htpasswd file does not exist".into());
    }
    let output = cx.host.run(&Command::line(["htpasswd", "-D", &pwfile, &user]))?;
    let mut text = output.stdout_text();
    text += &output.stderr_text();
    Ok(Value::list(text.trim_end().lines()))
}

/// Return what the server tells of its work; False when it does not answer.
///
/// ```console
/// $ salt web1 apache.server_status
/// ```
#[function]
pub fn server_status(
    cx: &Cx,
    /// The section `apache.server-status:<profile>` of the configuration.
    #[default("default".to_owned())]
    profile: String,
) -> Result<Value> {
    let setting = |name: &str| {
        let value = cx.grain(&format!("apache.server-status:{profile}:{name}"));
        let opts = Value::from(&cx.opts);
        value.or_else(|| {
            halite_value::lookup::traverse(
                &opts,
                &format!("apache.server-status:{profile}:{name}"),
                ":",
            )
        })
    };
    let url =
        setting("url").map_or("http://localhost/server-status".to_owned(), |url| url.to_string());
    let mut request = HttpRequest::new("GET", format!("{url}?auto"));
    if let (Some(user), Some(password)) = (setting("user"), setting("pass")) {
        request.basic_auth = Some((user.to_string(), password.to_string()));
    }
    request.timeout = std::time::Duration::from_secs(5);
    let answer = match cx.host.http(&request) {
        Ok(answer) if answer.status < 400 => answer,
        _ => return Ok("error".into()),
    };
    let ret = Dict::new();
    for line in String::from_utf8_lossy(&answer.body).lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        let value = value.trim();
        let number = value
            .parse::<i64>()
            .map(Value::from)
            .or_else(|_| value.parse::<f64>().map(Value::from));
        ret.insert(name.trim(), number.unwrap_or_else(|_| value.into()));
    }
    Ok(ret.into())
}

/// Write a configuration file from data; returns its text.
///
/// ```console
/// $ salt web1 apache.config /etc/apache2/conf.d/shop.conf "[{KeepAlive: 'On'}]"
/// ```
#[function]
pub fn config(
    cx: &Cx,
    /// The file.
    name: String,
    /// Containers and directives.
    config: Vec<Value>,
    /// Write the file.
    #[default(true)]
    edit: bool,
) -> Result<String> {
    let text = written(&config)?;
    if edit {
        cx.host.write(Path::new(&name), format!("{text}\n").as_bytes(), &Write::default())?;
    }
    Ok(text)
}

/// Tell whether a site is on.
///
/// ```console
/// $ salt '*' apache.check_site_enabled example.com
/// ```
#[function]
pub fn check_site_enabled(
    cx: &Cx,
    /// The site.
    site: String,
) -> Result<bool> {
    Ok(is_on(cx, Switch::Site, &site))
}

/// Turn a site on.
///
/// ```console
/// $ salt '*' apache.a2ensite example.com
/// ```
#[function]
pub fn a2ensite(
    cx: &Cx,
    /// The site.
    site: String,
) -> Result<Dict> {
    turn(cx, Switch::Site, &site, true)
}

/// Turn a site off.
///
/// ```console
/// $ salt '*' apache.a2dissite example.com
/// ```
#[function]
pub fn a2dissite(
    cx: &Cx,
    /// The site.
    site: String,
) -> Result<Dict> {
    turn(cx, Switch::Site, &site, false)
}

/// Tell whether a module is on.
///
/// ```console
/// $ salt '*' apache.check_mod_enabled status
/// ```
#[function]
pub fn check_mod_enabled(
    cx: &Cx,
    /// The module.
    r#mod: String,
) -> Result<bool> {
    Ok(is_on(cx, Switch::Mod, &r#mod))
}

/// Turn a module on.
///
/// ```console
/// $ salt '*' apache.a2enmod vhost_alias
/// ```
#[function]
pub fn a2enmod(
    cx: &Cx,
    /// The module.
    r#mod: String,
) -> Result<Dict> {
    turn(cx, Switch::Mod, &r#mod, true)
}

/// Turn a module off.
///
/// ```console
/// $ salt '*' apache.a2dismod vhost_alias
/// ```
#[function]
pub fn a2dismod(
    cx: &Cx,
    /// The module.
    r#mod: String,
) -> Result<Dict> {
    turn(cx, Switch::Mod, &r#mod, false)
}

/// Tell whether a piece of configuration is on.
///
/// ```console
/// $ salt '*' apache.check_conf_enabled security
/// ```
#[function]
pub fn check_conf_enabled(
    cx: &Cx,
    /// The piece of configuration.
    conf: String,
) -> Result<bool> {
    Ok(is_on(cx, Switch::Conf, &conf))
}

/// Turn a piece of configuration on.
///
/// ```console
/// $ salt '*' apache.a2enconf security
/// ```
#[function]
pub fn a2enconf(
    cx: &Cx,
    /// The piece of configuration.
    conf: String,
) -> Result<Dict> {
    turn(cx, Switch::Conf, &conf, true)
}

/// Turn a piece of configuration off.
///
/// ```console
/// $ salt '*' apache.a2disconf security
/// ```
#[function]
pub fn a2disconf(
    cx: &Cx,
    /// The piece of configuration.
    conf: String,
) -> Result<Dict> {
    turn(cx, Switch::Conf, &conf, false)
}

#[cfg(test)]
mod tests {
    use halite_value::yaml;

    use super::*;

    #[test]
    fn writes_containers() {
        let config = yaml::load_str("[{VirtualHost: {this: '*:80', ServerName: [website.com]}}]");
        let config = config.unwrap().items_of_sequence().unwrap();
        let expected = "<VirtualHost *:80>\nServerName website.com\n\n</VirtualHost>\n";
        assert_eq!(written(&config).unwrap(), expected);
    }

    #[test]
    fn what_is_on_is_a_file() {
        let shown = |switch: Switch, name: &str| switch.file(name).display().to_string();
        assert_eq!(shown(Switch::Mod, "rewrite"), "/etc/apache2/mods-enabled/rewrite.load");
        assert_eq!(shown(Switch::Site, "default"), "/etc/apache2/sites-enabled/000-default");
        assert_eq!(shown(Switch::Conf, "x.conf"), "/etc/apache2/conf-enabled/x.conf");
    }
}
