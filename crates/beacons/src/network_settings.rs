//! `network_settings`: an event when a setting of an interface changes.

use std::{collections::HashMap, path::Path};

use halite_spec::{Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell of changed settings of network interfaces.
    "network_settings": NetworkSettings
}

/// The names Salt knows.
const SETTINGS: [&str; 24] = [
    "family",
    "txqlen",
    "ipdb_scope",
    "index",
    "operstate",
    "group",
    "carrier_changes",
    "ipaddr",
    "neighbours",
    "ifname",
    "promiscuity",
    "linkmode",
    "broadcast",
    "address",
    "num_tx_queues",
    "ipdb_priority",
    "kind",
    "qdisc",
    "mtu",
    "num_rx_queues",
    "carrier",
    "flags",
    "ifi_type",
    "ports",
];

#[derive(Default)]
pub struct NetworkSettings {
    last: Option<HashMap<String, Dict>>,
}

impl Watch for NetworkSettings {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let wrong = |text: String| Err(config.problem_at("interfaces", text));
        let interfaces = match config.get("interfaces") {
            None => return Ok(()),
            Some(Value::Dict(interfaces)) => interfaces,
            Some(_) => {
                return wrong(
                    "interfaces section for network_settings beacon must be a dictionary.".into(),
                );
            }
        };
        for settings in interfaces.values() {
            let Value::Dict(settings) = settings else {
                return wrong(
                    "Interface attributes for network_settings beacon must be a dictionary.".into(),
                );
            };
            if !settings.keys().iter().all(|key| SETTINGS.contains(&key.to_str().as_str())) {
                return wrong("Invalid attributes in beacon configuration.".into());
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let now = settings(cx)?;
        let Some(last) = self.last.replace(now.clone()) else { return Ok(Vec::new()) };
        let Some(Value::Dict(wanted)) = config.get("interfaces") else { return Ok(Vec::new()) };
        let mut names: Vec<&String> = now.keys().collect();
        names.sort();
        let mut events = Vec::new();
        for (pattern, settings) in &wanted {
            let Value::Dict(settings) = settings else { continue };
            let pattern = pattern.to_str();
            for name in &names {
                if !halite_target::fnmatch::fnmatch(name, &pattern) {
                    continue;
                }
                let (Some(now), Some(before)) = (now.get(*name), last.get(*name)) else { continue };
                let changes = changes(now, before, &settings);
                if !changes.is_empty() {
                    let name = name.as_str();
                    events
                        .push(entries! { "tag" => name, "interface" => name, "change" => changes });
                }
            }
        }
        if config.flag("coalesce", false) && !events.is_empty() {
            let all: Vec<Value> = events.into_iter().map(Value::from).collect();
            return Ok(vec![entries! { "tag" => "result", "result" => all }]);
        }
        Ok(events)
    }
}

fn changes(now: &Dict, before: &Dict, wanted: &Dict) -> Dict {
    let changes = Dict::new();
    for (setting, how) in wanted {
        let (new, old) = (now.get(&setting), before.get(&setting));
        let (Some(new), Some(old)) = (new, old) else { continue };
        if new == old {
            continue;
        }
        match how.get("onvalue") {
            Some(value) if value.to_str() != new.to_str() => {}
            _ => {
                changes.insert(setting, new);
            }
        }
    }
    changes
}

/// Collects the settings of all interfaces.
fn settings(cx: &Cx) -> Result<HashMap<String, Dict>> {
    let root = Path::new("/sys/class/net");
    let addresses = cx.host.interfaces().unwrap_or_default();
    let mut all = HashMap::new();
    for name in cx.host.read_dir(root).unwrap_or_default() {
        let name = name.to_string_lossy().into_owned();
        let folder = root.join(&name);
        let read = |file: &str| {
            let text = cx.host.read_text(&folder.join(file)).ok()?;
            Some(text.trim().to_owned())
        };
        let settings = entries! { "ifname" => name.as_str() };
        let text = [("address", "address"), ("broadcast", "broadcast")];
        for (setting, file) in text {
            if let Some(value) = read(file) {
                settings.insert(setting, value);
            }
        }
        if let Some(state) = read("operstate") {
            settings.insert("operstate", state.to_ascii_uppercase());
        }
        for (setting, file) in [
            ("mtu", "mtu"),
            ("index", "ifindex"),
            ("txqlen", "tx_queue_len"),
            ("carrier", "carrier"),
            ("carrier_changes", "carrier_changes"),
            ("linkmode", "link_mode"),
            ("ifi_type", "type"),
            ("group", "netdev_group"),
        ] {
            if let Some(number) = read(file).and_then(|text| text.parse::<i64>().ok()) {
                settings.insert(setting, number);
            }
        }
        if let Some(own) = addresses.iter().find(|own| own.name == name) {
            let list = own.addresses.iter().map(|address| {
                // A pair, as pyroute2 tells it.
                Value::list([
                    Value::from(address.ip.to_string()),
                    Value::from(i64::from(address.prefix)),
                ])
            });
            settings.insert("ipaddr", Value::list(list));
            for (setting, number) in [
                ("flags", own.flags),
                ("promiscuity", own.promiscuity),
                ("num_tx_queues", own.tx_queues),
                ("num_rx_queues", own.rx_queues),
            ] {
                settings.insert(setting, i64::from(number));
            }
            for (setting, name) in [("qdisc", &own.qdisc), ("kind", &own.kind)] {
                settings.insert(setting, name.as_deref());
            }
        }
        all.insert(name, settings);
    }
    Ok(all)
}
