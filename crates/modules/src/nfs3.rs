//! `nfs3`: what this machine exports over NFS.
//!
//! `/etc/exports` has paths, and clients with their options; several paths of one line are written
//! back as a line each.

use std::path::Path;

use halite_spec::{Cx, Error, Need, Result, function, host::Write, module};
use halite_value::{Dict, Value, dict, entries};

use crate::cmd::{Options, plain};

module! {
    /// What this machine exports over NFS.
    "nfs3", needs = [
        Need::program(&["showmount"], "The nfs3 execution module failed to load: the showmount binary is not in the path."),
    ]: list_exports, del_export, add_export, reload_exports,
}

fn read(cx: &Cx, exports: &str) -> Result<Dict> {
    let found = Dict::new();
    for line in cx.host.read_text(Path::new(exports))?.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let Some(path) = words.next() else {
            return Err(Error::raised("IndexError", "list index out of range"));
        };
        let (mut more, mut clients) = (Vec::new(), Vec::new());
        for word in words {
            if word.starts_with('/') {
                more.push(word);
                continue;
            }
            let Some((hosts, options)) = word.split_once('(') else {
                return Err(Error::raised("IndexError", "list index out of range"));
            };
            let options = options.split('(').next().unwrap_or_default().replace(')', "");
            clients.push(Value::Dict(entries! {
                "hosts" => hosts, "options" => Value::list(options.split(',')),
            }));
        }
        // A path that stands twice has the clients of both.
        let mut all = found.get(path).and_then(|own| own.items_of_sequence()).unwrap_or_default();
        all.extend(clients);
        for name in std::iter::once(path).chain(more) {
            found.insert(name, Value::list(all.clone()));
        }
    }
    Ok(found)
}

fn write(cx: &Cx, exports: &str, all: &Dict) -> Result<()> {
    let mut text = String::new();
    for (path, clients) in all {
        text.push_str(&path.to_str());
        for client in clients.items_of_sequence().unwrap_or_default() {
            let options = client.get("options").and_then(|options| options.items_of_sequence());
            let options: Vec<String> =
                options.unwrap_or_default().iter().map(Value::to_string).collect();
            let hosts = client.get("hosts").unwrap_or_default().to_str().to_string();
            text.push_str(&format!(" {hosts}({})", options.join(",")));
        }
        text.push('\n');
    }
    Ok(cx.host.write(Path::new(exports), text.as_bytes(), &Write::default())?)
}

/// Return what is exported: path → clients with their options.
///
/// ```console
/// $ salt '*' nfs3.list_exports
/// ```
#[function]
pub fn list_exports(
    cx: &Cx,
    /// The file.
    #[default("/etc/exports".to_owned())]
    exports: String,
) -> Result<Dict> {
    read(cx, &exports)
}

/// Export a path no more. Returns what is left.
///
/// ```console
/// $ salt '*' nfs3.del_export path=/media/storage
/// ```
#[function]
pub fn del_export(
    cx: &Cx,
    /// The file.
    #[default("/etc/exports".to_owned())]
    exports: String,
    /// The path.
    path: Option<String>,
) -> Result<Dict> {
    let all = read(cx, &exports)?;
    if path.as_ref().is_none_or(|path| all.remove(path.as_str()).is_none()) {
        let shown = path.map_or_else(|| "None".to_owned(), |path| format!("'{path}'"));
        return Err(Error::raised("KeyError", shown));
    }
    write(cx, &exports, &all)?;
    Ok(all)
}

/// Export a path to one more client.
///
/// ```console
/// $ salt '*' nfs3.add_export path=/srv/test hosts=127.0.0.1 options="['rw']"
/// ```
#[function]
pub fn add_export(
    cx: &Cx,
    /// The file.
    #[default("/etc/exports".to_owned())]
    exports: String,
    /// The path.
    path: Option<String>,
    /// Who may mount it: one name, address, network or pattern.
    hosts: Option<Value>,
    /// How.
    options: Option<Vec<String>>,
) -> Result<Dict> {
    let Some(Value::Str(hosts)) = hosts else {
        return Err(Error::raised("TypeError", "hosts argument must be a string"));
    };
    let path = path.ok_or_else(|| Error::invalid("path must be given"))?;
    let all = read(cx, &exports)?;
    let new = dict! { "hosts" => hosts.to_string(), "options" => Value::list(options.unwrap_or_default()) };
    let mut clients =
        all.get(path.as_str()).and_then(|own| own.items_of_sequence()).unwrap_or_default();
    clients.push(new.clone());
    all.insert(path, Value::list(clients));
    write(cx, &exports, &all)?;
    Ok(new.as_dict().cloned().unwrap_or_default())
}

/// Make the kernel export what the file says.
///
/// ```console
/// $ salt '*' nfs3.reload_exports
/// ```
#[function]
pub fn reload_exports(cx: &Cx) -> Result<Dict> {
    let ran = plain(cx, ["exportfs", "-r"], Options::default())?;
    // The program always exits with 0: what it complains about tells.
    let fine = ran.stderr.is_empty();
    Ok(entries! { "stdout" => ran.stdout, "stderr" => ran.stderr, "result" => fine })
}
