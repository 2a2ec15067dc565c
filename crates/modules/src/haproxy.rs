//! `haproxy`: a running HAProxy, over its admin socket.
//!
//! Functions that change something take the server first and its backend second, as Salt's do.
//!
//! differs: given the other way round (`disable_server web-backend web1`, as many guides write it)
//! they are understood too, when only that makes sense.

use std::{path::Path, time::Duration};

use halite_spec::{Args, Cx, Error, Result, function, module};
use halite_value::{Dict, Value, entries};

module! {
    /// A running HAProxy, over its admin socket.
    "haproxy": list_servers, wait_state, get_backend, enable_server, disable_server, get_weight,
    set_weight, set_state, show_frontends, list_frontends, show_backends, list_backends,
    get_sessions,
}

/// Where Salt looks for the socket.
const SOCKET: &str = "/var/run/haproxy.sock";

/// Asks one question.
fn ask(cx: &Cx, socket: &str, question: &str, query: bool) -> Result<String> {
    let path = socket.strip_prefix("unix://").unwrap_or(socket);
    let answer = cx.host.ask_socket(Path::new(path), format!("{question}\n").as_bytes(), query)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// One line of `show stat`, by column.
struct Row(Vec<(String, String)>);

impl Row {
    fn get(&self, column: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or("", |(_, value)| value.as_str())
    }

    fn is_server(&self) -> bool {
        !matches!(self.get("svname"), "FRONTEND" | "BACKEND")
    }
}

/// Reads the table of `show stat`: a line of names after `# `, then lines of values.
fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(head) = lines.find_map(|line| line.strip_prefix("# ")) else { return Vec::new() };
    let names: Vec<&str> = head.trim_end_matches(',').split(',').collect();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let values = line.split(',').chain(std::iter::repeat(""));
            Row(names.iter().zip(values).map(|(n, v)| ((*n).to_owned(), v.to_owned())).collect())
        })
        .collect()
}

fn table(cx: &Cx, socket: &str) -> Result<Vec<Row>> {
    Ok(rows(&ask(cx, socket, "show stat", true)?))
}

/// A word of the admin language; anything else could be a second command.
fn word(text: &str) -> Result<&str> {
    let is_fine =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:*".contains(c));
    if is_fine { Ok(text) } else { Err(Error::failed(format!("`{text}` is no name of HAProxy's"))) }
}

/// Returns the servers meant, as (backend, server); `*` means all.
fn meant(cx: &Cx, name: &str, backend: &str, socket: &str) -> Result<Vec<(String, String)>> {
    let (name, backend) = (word(name)?, word(backend)?);
    let table = table(cx, socket)?;
    let find = |name: &str, backend: &str| -> Vec<(String, String)> {
        table
            .iter()
            .filter(|row| row.is_server())
            .filter(|row| backend == "*" || row.get("pxname") == backend)
            .filter(|row| name == "*" || row.get("svname") == name)
            .map(|row| (row.get("pxname").to_owned(), row.get("svname").to_owned()))
            .collect()
    };
    let mut found = find(name, backend);
    if found.is_empty() {
        found = find(backend, name);
    }
    if found.is_empty() {
        return Err(Error::failed(format!(
            "HAProxy has no server `{name}` in a backend `{backend}`"
        )));
    }
    Ok(found)
}

/// Gives a command, and fails with whatever HAProxy says against it.
fn order(cx: &Cx, socket: &str, command: &str) -> Result<()> {
    let answer = ask(cx, socket, command, false)?;
    match answer.trim() {
        "" => Ok(()),
        complaint => Err(Error::failed(format!("haproxy: {command}: {complaint}"))),
    }
}

/// Returns the servers of a backend, those that are up.
fn servers(cx: &Cx, backend: &str, socket: &str) -> Result<Vec<String>> {
    Ok(table(cx, socket)?
        .iter()
        .filter(|row| row.is_server() && row.get("pxname") == backend)
        .map(|row| row.get("svname").to_owned())
        .collect())
}

/// Return the servers of a backend.
///
/// ```console
/// $ salt '*' haproxy.list_servers mysql
/// ```
#[function]
pub fn list_servers(
    cx: &Cx,
    /// The backend.
    backend: String,
    /// The admin socket.
    #[default(SOCKET.to_owned())]
    socket: String,
    /// Return a table with details.
    #[default(false)]
    objectify: bool,
) -> Result<Value> {
    if !objectify {
        return Ok(Value::list(servers(cx, &backend, &socket)?));
    }
    let table = table(cx, &socket)?;
    let rows = table.iter().filter(|row| row.is_server() && row.get("pxname") == backend);
    Ok(Value::list(rows.map(|row| -> Dict {
        row.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    })))
}

/// Wait until a server is in a state.
///
/// ```console
/// $ salt '*' haproxy.wait_state mysql server01 up 60
/// ```
#[function]
pub fn wait_state(
    cx: &Cx,
    /// The backend.
    backend: String,
    /// The server.
    server: String,
    /// `up` or `down`.
    #[default("up".to_owned())]
    value: String,
    /// Seconds to wait.
    #[default(300)]
    timeout: i64,
    /// The admin socket.
    #[default(SOCKET.to_owned())]
    socket: String,
) -> Result<bool> {
    let mut left = timeout.max(0);
    loop {
        let table = table(cx, &socket)?;
        let status = table
            .iter()
            .find(|row| row.get("pxname") == backend && row.get("svname") == server)
            .map(|row| row.get("status").to_ascii_lowercase());
        let is_up = status.is_some_and(|status| status.starts_with("up") || status == "no check");
        if is_up == value.eq_ignore_ascii_case("up") {
            return Ok(true);
        }
        if left == 0 {
            return Ok(false);
        }
        left -= 1;
        cx.sleep(Duration::from_secs(1))?;
    }
}

/// Return the details of a backend.
///
/// ```console
/// $ salt '*' haproxy.get_backend mysql
/// ```
#[function]
pub fn get_backend(
    cx: &Cx,
    /// The backend.
    backend: String,
    /// The admin socket.
    #[default(SOCKET.to_owned())]
    socket: String,
) -> Result<Dict> {
    let servers = servers(cx, &backend, &socket)?;
    Ok(entries! { "name" => backend, "servers" => Value::list(servers) })
}

/// A server, or several.
#[derive(Args)]
pub struct Which {
    /// The server; `*` for all.
    name: String,
    /// Its backend; `*` for all.
    backend: String,
    /// The admin socket.
    #[default(SOCKET.to_owned())]
    socket: String,
}

/// Changes servers, and returns the servers of their backends.
fn change(
    cx: &Cx,
    name: &str,
    backend: &str,
    socket: &str,
    command: impl Fn(&str, &str) -> String,
) -> Result<Dict> {
    let found = meant(cx, name, backend, socket)?;
    let changed = Dict::new();
    for (backend, server) in &found {
        order(cx, socket, &command(backend, server))?;
        changed.insert(backend.as_str(), Value::list(servers(cx, backend, socket)?));
    }
    Ok(changed)
}

/// Let a server take requests again.
///
/// ```console
/// $ salt '*' haproxy.enable_server web1.example.com www
/// ```
#[function]
pub fn enable_server(cx: &Cx, #[group] which: Which) -> Result<Dict> {
    let Which { name, backend, socket } = &which;
    change(cx, name, backend, socket, |backend, server| format!("enable server {backend}/{server}"))
}

/// Let a server take no more requests.
///
/// ```console
/// $ salt '*' haproxy.disable_server web1.example.com www
/// ```
#[function]
pub fn disable_server(cx: &Cx, #[group] which: Which) -> Result<Dict> {
    let Which { name, backend, socket } = &which;
    change(cx, name, backend, socket, |backend, server| {
        format!("disable server {backend}/{server}")
    })
}

/// Return the weight of a server.
///
/// ```console
/// $ salt '*' haproxy.get_weight web1.example.com www
/// ```
#[function]
pub fn get_weight(cx: &Cx, #[group] which: Which) -> Result<Value> {
    let found = meant(cx, &which.name, &which.backend, &which.socket)?;
    let Some((backend, server)) = found.first() else { return Ok(Value::Null) };
    let answer = ask(cx, &which.socket, &format!("get weight {backend}/{server}"), true)?;
    // `1 (initial 1)`
    let number = answer.split_whitespace().next().and_then(|word| word.parse::<i64>().ok());
    match number {
        Some(number) => Ok(number.into()),
        None => Err(Error::failed(format!("haproxy: {}", answer.trim()))),
    }
}

/// Set the weight of a server.
///
/// ```console
/// $ salt '*' haproxy.set_weight web1.example.com www 13
/// ```
#[function]
pub fn set_weight(
    cx: &Cx,
    /// The server.
    name: String,
    /// Its backend.
    backend: String,
    /// The weight.
    #[default(0)]
    weight: i64,
    /// The admin socket.
    #[default(SOCKET.to_owned())]
    socket: String,
) -> Result<Value> {
    change(cx, &name, &backend, &socket, |backend, server| {
        format!("set weight {backend}/{server} {weight}")
    })?;
    get_weight(cx, Which { name, backend, socket })
}

/// Set the administrative state of a server: `ready`, `drain` or `maint`.
///
/// ```console
/// $ salt '*' haproxy.set_state my_proxy_server my_backend ready
/// ```
#[function]
pub fn set_state(
    cx: &Cx,
    /// The server.
    name: String,
    /// Its backend.
    backend: String,
    /// The state.
    state: String,
    /// The admin socket.
    #[default(SOCKET.to_owned())]
    socket: String,
) -> Result<Value> {
    if !matches!(state.as_str(), "ready" | "drain" | "maint") {
        return Err(Error::failed(format!("`{state}` is not one of ready, drain, maint")));
    }
    change(cx, &name, &backend, &socket, |backend, server| {
        format!("set server {backend}/{server} state {state}")
    })?;
    Ok("".into())
}

fn proxies(cx: &Cx, socket: &str, kind: &str) -> Result<Vec<String>> {
    Ok(table(cx, socket)?
        .iter()
        .filter(|row| row.get("svname") == kind)
        .map(|row| row.get("pxname").to_owned())
        .collect())
}

/// Declares the two functions that return the names of a kind of proxies.
macro_rules! names {
    ($kind:literal, $(#[$doc:meta])* $lines:ident, $(#[$list_doc:meta])* $list:ident) => {
        $(#[$doc])*
        #[function]
        pub fn $lines(
            cx: &Cx,
            /// The admin socket.
            #[default(SOCKET.to_owned())]
            socket: String,
        ) -> Result<String> {
            Ok(proxies(cx, &socket, $kind)?.join("\n"))
        }

        $(#[$list_doc])*
        #[function]
        pub fn $list(
            cx: &Cx,
            /// The admin socket.
            #[default(SOCKET.to_owned())]
            socket: String,
        ) -> Result<Vec<String>> {
            proxies(cx, &socket, $kind)
        }
    };
}

names! {
    "FRONTEND",
    /// Return the names of the frontends, as lines.
    ///
    /// ```console
    /// $ salt '*' haproxy.show_frontends
    /// ```
    show_frontends,
    /// Return the names of the frontends.
    ///
    /// ```console
    /// $ salt '*' haproxy.list_frontends
    /// ```
    list_frontends
}

names! {
    "BACKEND",
    /// Return the names of the backends, as lines.
    ///
    /// ```console
    /// $ salt '*' haproxy.show_backends
    /// ```
    show_backends,
    /// Return the names of the backends.
    ///
    /// ```console
    /// $ salt '*' haproxy.list_backends
    /// ```
    list_backends
}

/// Return the number of current sessions of a server.
///
/// ```console
/// $ salt '*' haproxy.get_sessions web1.example.com www
/// ```
#[function]
pub fn get_sessions(cx: &Cx, #[group] which: Which) -> Result<i64> {
    let found = meant(cx, &which.name, &which.backend, &which.socket)?;
    let table = table(cx, &which.socket)?;
    let is_meant = |row: &&Row| {
        found
            .iter()
            .any(|(backend, server)| row.get("pxname") == backend && row.get("svname") == server)
    };
    Ok(table.iter().filter(is_meant).filter_map(|row| row.get("scur").parse::<i64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "# pxname,svname,qcur,scur,status,weight,\n\
        www,FRONTEND,,1,OPEN,,\nweb,web1,0,2,UP,100,\nweb,web2,0,0,MAINT,100,\nweb,BACKEND,0,2,UP,200,\n\n";

    #[test]
    fn the_table_is_read() {
        let rows = rows(STAT);
        assert_eq!(rows.len(), 4);
        let servers: Vec<&str> =
            rows.iter().filter(|row| row.is_server()).map(|row| row.get("svname")).collect();
        assert_eq!(servers, ["web1", "web2"]);
        assert_eq!((rows[1].get("scur"), rows[2].get("status")), ("2", "MAINT"));
    }

    #[test]
    fn names_are_single_words() {
        assert!(word("web1.example.com").is_ok() && word("*").is_ok());
        for bad in ["", "a b", "x; disable server a/b", "a\nb"] {
            assert!(word(bad).is_err(), "{bad:?}");
        }
    }
}
