//! `bridge`: network bridges, over `brctl`.

use halite_spec::{Cx, Error, Need, Rest, Result, function, module};
use halite_value::{Dict, List, Value};

use crate::cmd::{Options, plain};

module! {
    /// Network bridges.
    "bridge", needs = [
        Need::program(&["brctl"], "The bridge execution module failed to load: requires one of the following tool/os combinations: ifconfig on FreeBSD/OpenBSD, brctl on Linux or brconfig on NetBSD."),
    ]: show, list, interfaces, find_interfaces, add, delete, addif, delif, stp,
}

fn run(cx: &Cx, words: &[&str], query: bool) -> Result<String> {
    let words = ["brctl"].into_iter().chain(words.iter().copied());
    let options = Options { query, ignore_retcode: query, ..Options::default() };
    Ok(plain(cx, words, options)?.stdout)
}

/// `br0  8000.00  no  eth1`, and further interfaces on lines of their own.
fn read(text: &str) -> Dict {
    let ret = Dict::new();
    let mut last = None;
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name, id, stp, interfaces @ ..] => {
                let own = Dict::new();
                own.insert("id", *id);
                own.insert("stp", *stp);
                if !interfaces.is_empty() {
                    own.insert("interfaces", Value::list(interfaces.iter().copied()));
                }
                ret.insert(*name, &own);
                last = Some(own);
            }
            [interface] => {
                let Some(own) = &last else { continue };
                let list = own.get_or_insert_with("interfaces", || List::new().into());
                if let Value::List(list) = list {
                    list.push(*interface);
                }
            }
            _ => {}
        }
    }
    ret
}

fn bridges(cx: &Cx, br: Option<&str>) -> Result<Dict> {
    let mut words = vec!["show"];
    words.extend(br.filter(|br| !br.is_empty()));
    Ok(read(&run(cx, &words, true)?))
}

/// Return bridges with their interfaces.
///
/// ```console
/// $ salt web1 bridge.show
/// ```
#[function]
pub fn show(
    cx: &Cx,
    /// The bridge; all if none is given.
    br: Option<String>,
) -> Result<Value> {
    let found = bridges(cx, br.as_deref())?;
    Ok(match br {
        Some(br) => found.get(br.as_str()).map_or(Value::Null, |own| {
            halite_value::dict! { br => own }
        }),
        None => found.into(),
    })
}

/// Return the names of all bridges.
///
/// ```console
/// $ salt web1 bridge.list
/// ```
#[function]
pub fn list(cx: &Cx) -> Result<Value> {
    let found = bridges(cx, None)?;
    if found.is_empty() {
        return Ok(Value::Null);
    }
    Ok(Value::list(found.keys().iter().map(|name| name.to_str().to_string())))
}

/// Return the interfaces of a bridge.
///
/// ```console
/// $ salt web1 bridge.interfaces br1
/// ```
#[function]
pub fn interfaces(
    cx: &Cx,
    /// The bridge.
    br: Option<String>,
) -> Result<Value> {
    let br = br.unwrap_or_default();
    let own = bridges(cx, Some(&br))?.get(br.as_str());
    Ok(own.and_then(|own| own.get("interfaces")).unwrap_or_default())
}

/// Return the bridges that interfaces belong to.
///
/// ```console
/// $ salt web1 bridge.find_interfaces
/// ```
#[function]
pub fn find_interfaces(
    cx: &Cx,
    /// The interfaces.
    args: Rest,
) -> Result<Dict> {
    let (ret, found) = (Dict::new(), bridges(cx, None)?);
    for wanted in &args.args {
        for (name, own) in found.entries() {
            let members = own.get("interfaces").and_then(|own| own.items_of_sequence());
            if members.unwrap_or_default().contains(wanted) {
                ret.insert(wanted.to_string(), name.to_str().to_string());
            }
        }
    }
    Ok(ret)
}

/// Make a bridge.
///
/// ```console
/// $ salt web1 bridge.add
/// ```
#[function]
pub fn add(
    cx: &Cx,
    /// Its name.
    br: Option<String>,
) -> Result<String> {
    run(cx, &["addbr", &br.unwrap_or_default()], false)
}

/// Remove a bridge.
///
/// ```console
/// $ salt web1 bridge.delete
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// Its name.
    br: Option<String>,
) -> Result<String> {
    run(cx, &["delbr", &br.unwrap_or_default()], false)
}

/// Add an interface to a bridge.
///
/// ```console
/// $ salt web1 bridge.addif br1 eth1
/// ```
#[function]
pub fn addif(
    cx: &Cx,
    /// The bridge.
    br: Option<String>,
    /// The interface.
    iface: Option<String>,
) -> Result<String> {
    run(cx, &["addif", &br.unwrap_or_default(), &iface.unwrap_or_default()], false)
}

/// Remove an interface from a bridge.
///
/// ```console
/// $ salt web1 bridge.delif br1 eth1
/// ```
#[function]
pub fn delif(
    cx: &Cx,
    /// The bridge.
    br: Option<String>,
    /// The interface.
    iface: Option<String>,
) -> Result<String> {
    run(cx, &["delif", &br.unwrap_or_default(), &iface.unwrap_or_default()], false)
}

/// Turn the spanning tree protocol on or off.
///
/// ```console
/// $ salt web1 bridge.stp br1 enable
/// ```
#[function]
pub fn stp(
    cx: &Cx,
    /// The bridge.
    br: Option<String>,
    /// `enable` or `disable`.
    #[default("disable".to_owned())]
    state: String,
    /// For BSD.
    iface: Option<String>,
) -> Result<String> {
    let _ = iface;
    let word = match state.as_str() {
        "enable" => "on",
        "disable" => "off",
        other => return Err(Error::invalid(format!("'{other}' is neither enable nor disable"))),
    };
    run(cx, &["stp", &br.unwrap_or_default(), word], false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_table() {
        let text = "bridge name\tbridge id\t\tSTP enabled\tinterfaces\nbr0\t\t8000.0\tno\t\teth1\n\
                    \t\t\t\teth2\nbr1\t\t8000.1\tyes\n";
        let expected = "{'br0': {'id': '8000.0', 'stp': 'no', 'interfaces': ['eth1', 'eth2']}, \
                        'br1': {'id': '8000.1', 'stp': 'yes'}}";
        assert_eq!(Value::from(read(text)).repr(), expected);
    }
}
