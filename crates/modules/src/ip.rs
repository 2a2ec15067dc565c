//! `ip`: network interfaces as Debian's `ifupdown` keeps them, in `/etc/network/interfaces`.
//!
//! Only the part of the file that is about an interface is ever touched: other stanzas, comments
//! and `source` lines stay where they are.
// differs: Salt writes the whole file anew, and loses comments.

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value};

module! {
    /// Network interfaces as Debian's `ifupdown` keeps them.
    "ip": get_interface, build_interface, get_bond, build_bond, get_routes, build_routes, up, down,
    get_network_settings, build_network_settings, apply_network_settings,
}

const FILE: &str = "/etc/network/interfaces";
const KINDS: &str = "eth|bond|alias|clone|ipsec|dialup|bridge|slave|vlan|pppoe|source";

/// Bonding modes, by number.
const MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];

/// What a line of the file begins.
fn opens_stanza(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    matches!(word, "iface" | "auto" | "mapping" | "source" | "source-directory" | "no-auto-down")
        || word.starts_with("allow-")
}

/// The lines of the file that are about an interface, in one form; and all the others.
fn split(text: &str, iface: &str) -> (Vec<String>, String) {
    let (mut own, mut others) = (Vec::new(), String::new());
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let words: Vec<&str> = line.split_whitespace().collect();
        if opens_stanza(line) {
            inside = false;
            match words.as_slice() {
                ["iface", name, ..] if *name == iface => {
                    inside = true;
                    own.push(format!("{}\n", words.join(" ")));
                    continue;
                }
                [verb, names @ ..]
                    if (*verb == "auto" || verb.starts_with("allow-"))
                        && names.contains(&iface) =>
                {
                    own.push(format!("{verb} {iface}\n"));
                    let left: Vec<&str> =
                        names.iter().copied().filter(|name| *name != iface).collect();
                    if !left.is_empty() {
                        others += &format!("{verb} {}\n", left.join(" "));
                    }
                    continue;
                }
                _ => {}
            }
        } else if inside && !words.is_empty() && !line.trim_start().starts_with('#') {
            own.push(format!("    {}\n", words.join(" ")));
            continue;
        } else if inside && words.is_empty() {
            // The blank line after a stanza goes with it.
            continue;
        }
        others += line;
    }
    // `auto` first, as it is written.
    own.sort_by_key(|line| match line.split_whitespace().next() {
        Some("auto") => 0,
        Some(word) if word.starts_with("allow-") => 1,
        _ => 2,
    });
    if !own.is_empty() {
        own.push("\n".into());
    }
    (own, others)
}

fn words_of(value: &Value) -> Vec<String> {
    match value.items_of_sequence() {
        Some(items) => items.iter().map(Value::to_string).collect(),
        None => value.to_string().split_whitespace().map(str::to_owned).collect(),
    }
}

fn commands_of(value: &Value) -> Vec<String> {
    match value.items_of_sequence() {
        Some(items) => items.iter().map(Value::to_string).collect(),
        None => vec![value.to_string()],
    }
}

fn on_or_off(value: &Value) -> String {
    match value {
        Value::Bool(true) => "on".into(),
        Value::Bool(false) => "off".into(),
        other => other.to_string(),
    }
}

/// The settings of a caller, by name.
struct Given<'a>(&'a Dict);

impl Given<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| value.to_string())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| match value.as_str() {
            Some(text) => matches!(text.to_lowercase().as_str(), "yes" | "true" | "on" | "1"),
            None => value.truthy(),
        })
    }
}

/// The parts of a bond, in the order of their names.
fn bond_parts(given: &Given) -> Result<Vec<(&'static str, String)>> {
    let mode = given.text("mode").unwrap_or_else(|| "balance-rr".into());
    let number = MODES
        .iter()
        .position(|own| *own == mode)
        .or_else(|| mode.parse::<usize>().ok().filter(|number| *number < MODES.len()));
    let Some(number) = number else {
        return Err(Error::failed(format!(
            "Invalid option -- Interface: bond, Option: mode, Expected: [{}]",
            MODES.join("|")
        )));
    };
    let mut parts = vec![("mode", number.to_string())];
    let mut add = |name: &'static str, default: Option<&str>| {
        let value = given.get(name).map(|value| on_or_off(&value));
        if let Some(value) = value.or_else(|| default.map(str::to_owned)) {
            parts.push((name, value));
        }
    };
    add("miimon", None);
    add("arp_interval", None);
    add("arp_ip_target", None);
    add("downdelay", Some("200"));
    add("updelay", Some("0"));
    add("use_carrier", Some("on"));
    add("primary", None);
    add("lacp_rate", None);
    add("ad_select", None);
    add("hashing-algorithm", None);
    add("xmit_hash_policy", None);
    add("max_bonds", None);
    Ok(parts)
}

/// The protocol part of `iface x inet …`.
fn protocol(given: &Given, key: &str) -> String {
    match given.text(key).as_deref() {
        Some("none") | None => "manual".into(),
        Some(
            "bootp" | "dhcp" | "loopback" | "static" | "manual" | "ppp" | "auto" | "v4tunnel"
            | "6to4",
        ) => given.text(key).unwrap_or_default(),
        Some(_) => "static".into(),
    }
}

fn is_address(text: &str) -> bool {
    let (address, prefix) = text.split_once('/').unwrap_or((text, "0"));
    address.parse::<std::net::IpAddr>().is_ok() && prefix.parse::<u8>().is_ok()
}

/// The lines of an interface.
pub fn lines_for(iface: &str, kind: &str, enabled: bool, settings: &Dict) -> Result<Vec<String>> {
    if !KINDS.split('|').any(|own| own == kind) {
        return Err(Error::failed(format!(
            "Invalid option -- Interface: {iface}, Option: {kind}, Expected: [{KINDS}]"
        )));
    }
    let given = Given(settings);
    if kind == "source" {
        return Ok(vec![format!("source {iface}\n"), "\n".into()]);
    }
    let mut lines = Vec::new();
    if enabled {
        lines.push(format!("auto {iface}\n"));
    }
    if given.flag("hotplug") {
        lines.push(format!("allow-hotplug {iface}\n"));
    }
    let proto = if kind == "slave" { "manual".to_owned() } else { protocol(&given, "proto") };
    lines.push(format!("iface {iface} inet {proto}\n"));
    let mut add = |name: &str, value: &str| lines.push(format!("    {name} {value}\n"));
    if kind == "vlan" {
        let device = iface.rsplit_once('.').map(|(device, _)| device.to_owned());
        if let Some(device) = given.text("vlan_raw_device").or(device) {
            add("vlan-raw-device", &device);
        }
    }
    for name in ["hwaddress", "hwaddr", "macaddr"] {
        if let Some(address) = given.text(name) {
            add("hwaddress", &address);
            break;
        }
    }
    let addresses = given.get("ipaddr").into_iter().chain(given.get("ipaddrs"));
    for address in addresses.flat_map(|value| words_of(&value)).filter(|own| is_address(own)) {
        add("address", &address);
    }
    for name in ["netmask", "gateway", "metric", "mtu"] {
        if let Some(value) = given.text(name) {
            add(name, &value);
        }
    }
    if let Some(servers) = given.get("dns") {
        add("dns-nameservers", &words_of(&servers).join(" "));
    }
    for (name, word) in [
        ("up_cmds", "up"),
        ("down_cmds", "down"),
        ("pre_up_cmds", "pre-up"),
        ("post_up_cmds", "post-up"),
        ("pre_down_cmds", "pre-down"),
        ("post_down_cmds", "post-down"),
    ] {
        for command in given.get(name).iter().flat_map(commands_of) {
            add(word, &command);
        }
    }
    for (name, word) in [("autoneg", "ethernet-autoneg"), ("duplex", "link-duplex")] {
        if let Some(value) = given.get(name) {
            add(word, &on_or_off(&value));
        }
    }
    for name in ["gro", "gso", "lro", "rx", "sg", "tso", "tx", "ufo"] {
        if let Some(value) = given.get(name) {
            add(&format!("offload-{name}"), &on_or_off(&value));
        }
    }
    match kind {
        "bond" => {
            let mut parts: Vec<(String, String)> = bond_parts(&given)?
                .into_iter()
                .map(|(name, value)| (format!("bond-{name}"), value))
                .collect();
            if let Some(slaves) = given.get("slaves") {
                parts.push(("bond-slaves".into(), words_of(&slaves).join(" ")));
            }
            parts.sort();
            for (name, value) in parts {
                add(&name, &value);
            }
        }
        "bridge" => {
            if let Some(ports) = given.get("ports") {
                add("bridge_ports", &words_of(&ports).join(" "));
            }
            for name in ["ageing", "bridgeprio", "fd", "gcint", "hello", "maxage", "maxwait"] {
                if let Some(value) = given.text(name) {
                    add(&format!("bridge_{name}"), &value);
                }
            }
            if let Some(value) = given.text("delay") {
                add("bridge_fd", &value);
            }
            if let Some(value) = given.get("stp") {
                add("bridge_stp", &on_or_off(&value));
            }
        }
        "slave" => {
            if let Some(master) = given.text("master") {
                add("bond-master", &master);
            }
        }
        _ => {}
    }
    if given.flag("enable_ipv6") {
        let proto = protocol(&given, "ipv6proto");
        lines.push(format!("iface {iface} inet6 {proto}\n"));
        let mut add = |name: &str, value: &str| lines.push(format!("    {name} {value}\n"));
        let addresses = given.get("ipv6addr").into_iter().chain(given.get("ipv6ipaddr"));
        let addresses = addresses.chain(given.get("ipv6addrs"));
        for address in addresses.flat_map(|value| words_of(&value)).filter(|own| is_address(own)) {
            add("address", &address);
        }
        for (name, word) in [
            ("ipv6netmask", "netmask"),
            ("ipv6gateway", "gateway"),
            ("ipv6metric", "metric"),
            ("ipv6mtu", "mtu"),
        ] {
            if let Some(value) = given.text(name) {
                add(word, &value);
            }
        }
    }
    lines.push("\n".into());
    Ok(lines)
}

fn read(cx: &Cx, path: &Path) -> Result<String> {
    Ok(cx.host.read_text_if_there(path)?.unwrap_or_default())
}

fn lines_of(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Return what is kept about an interface, line by line.
///
/// ```console
/// $ salt web1 ip.get_interface eth1
/// ```
#[function]
pub fn get_interface(
    cx: &Cx,
    /// The interface.
    iface: String,
) -> Result<Vec<String>> {
    Ok(split(&read(cx, Path::new(FILE))?, &iface).0)
}

/// Keep the settings of an interface; returns its lines.
///
/// ```console
/// $ salt '*' ip.build_interface eth0 eth True proto=static ipaddr=10.0.0.2 netmask=255.255.255.0
/// ```
#[function]
pub fn build_interface(
    cx: &Cx,
    /// The interface.
    iface: String,
    /// What it is: `eth`, `bond`, `bridge`, `vlan`, `slave` …
    iface_type: String,
    /// Bring it up at the start.
    enabled: bool,
    /// `proto`, `ipaddr`, `netmask`, `gateway`, `dns`, `mtu`, `up_cmds` …; `test` only shows.
    #[arg(by_name)]
    settings: Rest,
) -> Result<Vec<String>> {
    let lines = lines_for(&iface, &iface_type.to_lowercase(), enabled, &settings.kwargs)?;
    if settings.kwargs.get("test").is_some_and(|test| test.truthy()) {
        return Ok(lines);
    }
    let path = Path::new(FILE);
    let (_, mut others) = split(&read(cx, path)?, &iface);
    if !others.is_empty() && !others.ends_with('\n') {
        others.push('\n');
    }
    others += lines.concat().trim_end_matches('\n');
    others.push('\n');
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(path, others.as_bytes(), &Write::default())?;
    Ok(lines)
}

fn bond_file(iface: &str) -> PathBuf {
    PathBuf::from(format!("/etc/modprobe.d/{iface}.conf"))
}

/// Return what is kept about a bond, line by line.
///
/// ```console
/// $ salt web1 ip.get_bond bond0
/// ```
#[function]
pub fn get_bond(
    cx: &Cx,
    /// The bond.
    iface: String,
) -> Result<Value> {
    match cx.host.read_text_if_there(&bond_file(&iface))? {
        Some(text) => Ok(lines_of(&text).into()),
        None => Ok("".into()),
    }
}

/// The lines of a bond's module options.
pub fn bond_lines(iface: &str, settings: &Dict) -> Result<Vec<String>> {
    let parts = bond_parts(&Given(settings))?;
    let parts: Vec<String> =
        parts.into_iter().map(|(name, value)| format!("{name}={value} ")).collect();
    Ok(vec![format!("alias {iface} bonding\n"), format!("options {iface} {}", parts.concat())])
}

/// Keep the module options of a bond; returns the lines.
///
/// ```console
/// $ salt web1 ip.build_bond bond0 mode=active-backup
/// ```
#[function]
pub fn build_bond(
    cx: &Cx,
    /// The bond.
    iface: String,
    /// `mode`, `miimon`, `downdelay` …; `test` only shows.
    #[arg(by_name)]
    settings: Rest,
) -> Result<Vec<String>> {
    let lines = bond_lines(&iface, &settings.kwargs)?;
    if settings.kwargs.get("test").is_some_and(|test| test.truthy()) {
        return Ok(lines);
    }
    let path = bond_file(&iface);
    if !cx.host.is_dir(Path::new("/etc/modprobe.d"))? {
        return Err(Error::failed(format!(
            "{} cannot be written. /etc/modprobe.d/ does not exist",
            path.display()
        )));
    }
    cx.host.write(&path, lines.concat().as_bytes(), &Write::default())?;
    Ok(lines)
}

fn route_file(iface: &str, up: bool) -> PathBuf {
    let word = if up { "up" } else { "down" };
    PathBuf::from(format!("/etc/network/if-{word}.d/route-{iface}"))
}

/// The scripts that add and remove the routes of an interface.
pub fn route_lines(iface: &str, settings: &Dict) -> Result<[Vec<String>; 2]> {
    let routes = settings.get("routes").and_then(|routes| routes.items_of_sequence());
    let routes = routes.unwrap_or_default();
    let script = |verb: &str| -> Result<Vec<String>> {
        let mut lines = vec![
            "#!/bin/sh\n".to_owned(),
            format!("# {verb}\n"),
            format!("test \"${{IFACE}}\" = \"{iface}\" || exit 0\n"),
        ];
        for route in &routes {
            let Some(route) = route.as_dict() else {
                return Err(Error::invalid(format!("{} is no route", route.repr())));
            };
            let given = Given(route);
            if let Some(name) = given.text("name") {
                lines.push(format!("# {name}\n"));
            }
            let target = given.text("ipaddr").unwrap_or_else(|| "default".into());
            let mask = given.text("netmask").map(|mask| format!("/{mask}")).unwrap_or_default();
            let six = if target.contains(':') { " -6" } else { "" };
            let mut line = format!("ip{six} route {verb} {target}{mask}");
            for (name, word) in [("gateway", "via"), ("metric", "metric"), ("table", "table")] {
                if let Some(value) = given.text(name) {
                    line += &format!(" {word} {value}");
                }
            }
            lines.push(format!("{line} dev {iface}\n"));
        }
        Ok(lines)
    };
    Ok([script("add")?, script("del")?])
}

/// Return the scripts for the routes of an interface, line by line.
///
/// ```console
/// $ salt web1 ip.get_routes eth1
/// ```
#[function]
pub fn get_routes(
    cx: &Cx,
    /// The interface.
    iface: String,
) -> Result<Value> {
    let mut lines = Vec::new();
    for up in [true, false] {
        lines.extend(lines_of(&read(cx, &route_file(&iface, up))?));
    }
    Ok(if lines.is_empty() { "".into() } else { lines.into() })
}

/// Keep the routes of an interface; returns the scripts, line by line.
///
/// ```console
/// $ salt '*' ip.build_routes eth0 routes='[{ipaddr: 10.2.0.0, netmask: 255.255.0.0}]'
/// ```
#[function]
pub fn build_routes(
    cx: &Cx,
    /// The interface.
    iface: String,
    /// `routes`: a list of `name`, `ipaddr`, `netmask`, `gateway`; `test` only shows.
    #[arg(by_name)]
    settings: Rest,
) -> Result<Vec<String>> {
    let [add, del] = route_lines(&iface, &settings.kwargs)?;
    if !settings.kwargs.get("test").is_some_and(|test| test.truthy()) {
        for (up, lines) in [(true, &add), (false, &del)] {
            let path = route_file(&iface, up);
            let folder = path.parent().unwrap_or(Path::new("/"));
            if !cx.host.is_dir(folder)? {
                return Err(Error::failed(format!(
                    "{} cannot be written. {}/ does not exist",
                    path.display(),
                    folder.display()
                )));
            }
            let how = Write { mode: Some(0o755), ..Write::default() };
            cx.host.write(&path, lines.concat().as_bytes(), &how)?;
        }
    }
    Ok([add, del].concat())
}

/// Bring an interface up.
///
/// ```console
/// $ salt web1 ip.up eth1 eth
/// ```
#[function]
pub fn up(
    cx: &Cx,
    /// The interface.
    iface: String,
    /// What it is; slaves come up with their bond.
    iface_type: String,
) -> Result<Option<String>> {
    switch(cx, "ifup", &iface, &iface_type)
}

/// Take an interface down.
///
/// ```console
/// $ salt web1 ip.down eth1 eth
/// ```
#[function]
pub fn down(
    cx: &Cx,
    /// The interface.
    iface: String,
    /// What it is; slaves go down with their bond.
    iface_type: String,
) -> Result<Option<String>> {
    switch(cx, "ifdown", &iface, &iface_type)
}

fn switch(cx: &Cx, program: &str, iface: &str, kind: &str) -> Result<Option<String>> {
    if matches!(kind.to_lowercase().as_str(), "slave" | "source") || iface.starts_with('-') {
        return Ok(None);
    }
    let output = cx.host.run(&Command::line([program, iface]))?;
    Ok(Some(output.stdout_text().trim_end().to_owned()))
}

/// Whether networking comes up at the start, and the name of the machine.
fn settings_now(cx: &Cx) -> Result<Vec<String>> {
    let text = read(cx, Path::new("/etc/default/networking"))?;
    let on = text.lines().find_map(|line| line.trim().strip_prefix("CONFIGURE_INTERFACES="));
    let mut lines: Vec<String> = on.map(|on| format!("NETWORKING={on}\n")).into_iter().collect();
    let name = read(cx, Path::new("/etc/hostname"))?;
    let name = name.trim();
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    if !name.is_empty() {
        lines.push(format!("HOSTNAME={name}\n"));
    }
    Ok(lines)
}

/// Return the settings of the network as a whole.
///
/// ```console
/// $ salt web1 ip.get_network_settings
/// ```
#[function]
pub fn get_network_settings(cx: &Cx) -> Result<Vec<String>> {
    settings_now(cx)
}

/// The settings of the network as a whole, as they shall be.
pub fn wanted_settings(cx: &Cx, settings: &Dict) -> Result<Vec<String>> {
    let given = Given(settings);
    let on = match given.get("enabled").or_else(|| given.get("networking")) {
        Some(_) => given.flag("enabled") || given.flag("networking"),
        None => true,
    };
    let mut lines = vec![format!("NETWORKING={}\n", if on { "yes" } else { "no" })];
    let name = match given.text("hostname") {
        Some(name) => Some(name),
        None => Some(read(cx, Path::new("/etc/hostname"))?.trim().to_owned()),
    };
    let name = name.map(|name| name.split('.').next().unwrap_or_default().to_owned());
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        lines.push(format!("HOSTNAME={name}\n"));
    }
    Ok(lines)
}

/// Keep the settings of the network as a whole; returns them.
///
/// ```console
/// $ salt '*' ip.build_network_settings enabled=True hostname=web1
/// ```
#[function]
pub fn build_network_settings(
    cx: &Cx,
    /// `enabled`, `hostname`, `domain`; `test` only shows.
    #[arg(by_name)]
    settings: Rest,
) -> Result<Vec<String>> {
    let wanted = wanted_settings(cx, &settings.kwargs)?;
    if settings.kwargs.get("test").is_some_and(|test| test.truthy()) {
        return Ok(wanted);
    }
    let path = Path::new("/etc/default/networking");
    let on =
        wanted.first().and_then(|line| line.trim().split_once('=')).map_or("yes", |(_, on)| on);
    let text = read(cx, path)?;
    let mut new = String::new();
    let mut placed = false;
    for line in text.split_inclusive('\n') {
        let plain = line.trim_start_matches(['#', ' ']);
        if plain.starts_with("CONFIGURE_INTERFACES=") && !placed {
            new += &format!("CONFIGURE_INTERFACES={on}\n");
            placed = true;
        } else {
            new += line;
        }
    }
    if !placed {
        new += &format!("CONFIGURE_INTERFACES={on}\n");
    }
    cx.host.create_dirs(Path::new("/etc/default"), None)?;
    cx.host.write(path, new.as_bytes(), &Write::default())?;
    if let Some(name) = Given(&settings.kwargs).text("hostname") {
        cx.host.write(
            Path::new("/etc/hostname"),
            format!("{name}\n").as_bytes(),
            &Write::default(),
        )?;
    }
    Ok(wanted)
}

/// Put the settings of the network in force.
///
/// ```console
/// $ salt web1 ip.apply_network_settings
/// ```
#[function]
pub fn apply_network_settings(
    cx: &Cx,
    /// `require_reboot`: only say that a restart is needed; `apply_hostname`; `hostname`.
    #[arg(by_name)]
    settings: Rest,
) -> Result<bool> {
    let given = Given(&settings.kwargs);
    if let (true, Some(name)) = (given.flag("apply_hostname"), given.text("hostname")) {
        crate::network::mod_hostname(cx, Some(name))?;
    }
    if given.flag("require_reboot") {
        tracing::warn!("The network settings take effect with the next start of the machine.");
        return Ok(true);
    }
    cx.call("service.restart", halite_spec::Call::of(["networking"])).map(|ret| ret.truthy())
}

#[cfg(test)]
mod tests {
    use halite_value::{entries, list};

    use super::*;

    const SAMPLE: &str = "# mine\nauto lo eth0\niface lo inet loopback\n\niface eth0 inet dhcp\n\
        \tmtu 1400\n\nsource /etc/network/interfaces.d/*\n";

    #[test]
    fn takes_an_interface_out_of_the_file() {
        let (own, others) = split(SAMPLE, "eth0");
        assert_eq!(own, ["auto eth0\n", "iface eth0 inet dhcp\n", "    mtu 1400\n", "\n"]);
        assert_eq!(
            others,
            "# mine\nauto lo\niface lo inet loopback\n\nsource /etc/network/interfaces.d/*\n"
        );
    }

    #[test]
    fn writes_static_settings() {
        let settings = entries! {
            "proto" => "static", "ipaddr" => "172.20.5.11", "netmask" => "255.255.252.0",
            "gateway" => "172.20.4.1", "dns" => list!["9.9.9.9", "149.112.112.112"], "mtu" => 1442,
        };
        let lines = lines_for("ens6", "eth", true, &settings).unwrap();
        assert_eq!(
            lines.concat(),
            "auto ens6\niface ens6 inet static\n    address 172.20.5.11\n    netmask 255.255.252.0\n    \
             gateway 172.20.4.1\n    mtu 1442\n    dns-nameservers 9.9.9.9 149.112.112.112\n\n"
        );
    }

    #[test]
    fn routes_are_scripts() {
        let route = entries! {
            "name" => "lab", "ipaddr" => "192.0.2.0", "netmask" => "255.255.252.0",
            "gateway" => "172.20.4.9",
        };
        let settings = entries! { "routes" => list![route] };
        let [add, _] = route_lines("ens6", &settings).unwrap();
        assert_eq!(
            add.concat(),
            "#!/bin/sh\n# add\ntest \"${IFACE}\" = \"ens6\" || exit 0\n# lab\n\
             ip route add 192.0.2.0/255.255.252.0 via 172.20.4.9 dev ens6\n"
        );
    }
}
