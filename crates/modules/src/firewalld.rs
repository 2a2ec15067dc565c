//! `firewalld`: zones and services of the dynamic firewall, over `firewall-cmd`.
//!
//! What is asked and changed is the permanent configuration unless the caller says otherwise; a change
//! of it takes effect with `reload_rules`.

use halite_spec::{Command, Cx, Error, Need, Result, function, module};
use halite_value::{Dict, List, Value, dict};

module! {
    /// Zones and services of the dynamic firewall.
    "firewalld", needs = [
        Need::program(&["firewall-cmd"], "The firewalld execution module cannot be loaded: the firewall-cmd binary is not in the path."),
    ]: version, default_zone, list_zones, get_zones, get_services, get_icmp_types,
    new_zone, delete_zone, set_default_zone, new_service, delete_service, list_all, list_services,
    add_service, remove_service, add_service_port, remove_service_port, get_service_ports,
    add_service_protocol, remove_service_protocol, get_service_protocols, get_masquerade,
    add_masquerade, remove_masquerade, add_port, remove_port, list_ports, add_port_fwd,
    remove_port_fwd, list_port_fwd, block_icmp, allow_icmp, list_icmp_block, make_permanent,
    get_interfaces, add_interface, remove_interface, get_sources, add_source, remove_source,
    get_rich_rules, add_rich_rule, remove_rich_rule, reload_rules,
}

fn run(cx: &Cx, words: &[String], looks: bool) -> Result<String> {
    if cx.host.which("firewall-cmd").is_none() {
        return Err(Error::failed("Command 'firewall-cmd' cannot be found"));
    }
    let command = Command::line(["firewall-cmd".to_owned()].into_iter().chain(words.to_vec()));
    let output = cx.host.run(&if looks { command.query() } else { command })?;
    if output.ok() {
        return Ok(output.stdout_text().trim_end().to_owned());
    }
    let mut text = output.stderr_text().trim().to_owned();
    if text.is_empty() {
        text = output.stdout_text().trim().to_owned();
    }
    Err(Error::failed(format!("firewall-cmd failed: {text}")))
}

/// The words of one question or order: the zone, the option, and whether it is about the
/// permanent configuration.
fn words(zone: Option<&str>, option: String, permanent: bool) -> Vec<String> {
    let zone = zone.filter(|zone| !zone.is_empty()).map(|zone| format!("--zone={zone}"));
    let permanent = permanent.then(|| "--permanent".to_owned());
    zone.into_iter().chain([option]).chain(permanent).collect()
}

fn look(cx: &Cx, zone: Option<&str>, option: &str, permanent: bool) -> Result<String> {
    run(cx, &words(zone, option.to_owned(), permanent), true)
}

fn list(cx: &Cx, zone: Option<&str>, option: &str, permanent: bool) -> Result<Vec<String>> {
    Ok(look(cx, zone, option, permanent)?.split_whitespace().map(str::to_owned).collect())
}

fn change(cx: &Cx, zone: Option<&str>, option: String, permanent: bool) -> Result<String> {
    run(cx, &words(zone, option, permanent), false)
}

/// Makes or removes a zone or a service, which the running firewall knows after a reload only.
fn define(cx: &Cx, option: String, restart: bool) -> Result<String> {
    let answer = change(cx, None, option, true)?;
    if restart && answer == "success" { reload_rules(cx) } else { Ok(answer) }
}

/// A service's settings are only ever permanent.
fn of_service(cx: &Cx, service: &str, option: String, looks: bool) -> Result<String> {
    run(cx, &["--permanent".into(), format!("--service={service}"), option], looks)
}

/// Declares a function about one zone: one that lists something of it, or, with an argument more,
/// one that changes something.
macro_rules! of_zone {
    ($(#[$doc:meta])* $name:ident, $option:literal) => {
        $(#[$doc])*
        #[function]
        pub fn $name(
            cx: &Cx,
            /// The zone.
            zone: String,
            /// In the permanent configuration.
            #[default(true)]
            permanent: bool,
        ) -> Result<Vec<String>> {
            list(cx, Some(&zone), $option, permanent)
        }
    };
    ($(#[$doc:meta])* $name:ident, $option:literal, $(#[$about:meta])* $what:ident) => {
        $(#[$doc])*
        #[function]
        pub fn $name(
            cx: &Cx,
            /// The zone.
            zone: String,
            $(#[$about])*
            $what: String,
            /// In the permanent configuration.
            #[default(true)]
            permanent: bool,
        ) -> Result<String> {
            change(cx, Some(&zone), format!(concat!($option, "={}"), $what), permanent)
        }
    };
}

/// Declares a function that makes or removes a zone or a service.
macro_rules! defines {
    ($(#[$doc:meta])* $name:ident, $option:literal, $(#[$about:meta])* $what:ident) => {
        $(#[$doc])*
        #[function]
        pub fn $name(
            cx: &Cx,
            $(#[$about])*
            $what: String,
            /// Load the rules anew.
            #[default(true)]
            restart: bool,
        ) -> Result<String> {
            define(cx, format!(concat!($option, "={}"), $what), restart)
        }
    };
}

/// Reads what `--list-all` prints: zone → setting → lines.
fn settings(text: &str) -> Dict {
    let zones = Dict::new();
    let mut zone = Dict::new();
    let mut lines = List::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if !line.starts_with([' ', '\t']) {
            zone = Dict::new();
            zones.insert(line.trim_end(), &zone);
        } else if let Some((name, value)) = line.trim().split_once(':')
            && !line.starts_with('\t')
        {
            lines = List::new();
            lines.push(value.trim());
            zone.insert(name, lines.clone());
        } else {
            // Rich rules follow their heading, one a line, further in.
            lines.push(line.trim());
        }
    }
    zones
}

/// A port that is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    pub src: String,
    pub proto: String,
    pub dest: String,
    pub addr: String,
}

impl Forward {
    fn read(line: &str) -> Self {
        let part = |name: &str| {
            let parts = line.split(':').filter_map(|part| part.split_once('='));
            let mut own = parts.filter(|(own, _)| *own == name);
            own.next().map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        Self { src: part("port"), proto: part("proto"), dest: part("toport"), addr: part("toaddr") }
    }

    fn option(&self, verb: &str) -> String {
        let Self { src, proto, dest, addr } = self;
        format!("--{verb}-forward-port=port={src}:proto={proto}:toport={dest}:toaddr={addr}")
    }

    pub fn to_value(&self) -> Value {
        dict! {
            "Source port" => self.src.as_str(), "Protocol" => self.proto.as_str(),
            "Destination port" => self.dest.as_str(), "Destination address" => self.addr.as_str(),
        }
    }
}

/// The ports a zone forwards.
pub fn forwards(cx: &Cx, zone: &str, permanent: bool) -> Result<Vec<Forward>> {
    let text = look(cx, Some(zone), "--list-forward-ports", permanent)?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(Forward::read).collect())
}

/// Return the version of firewall-cmd.
///
/// ```console
/// $ salt web1 firewalld.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    run(cx, &["--version".into()], true)
}

/// Return the zone of interfaces nobody assigned.
///
/// ```console
/// $ salt web1 firewalld.default_zone
/// ```
#[function]
pub fn default_zone(cx: &Cx) -> Result<String> {
    run(cx, &["--get-default-zone".into()], true)
}

/// Return everything about every zone.
///
/// ```console
/// $ salt web1 firewalld.list_zones
/// ```
#[function]
pub fn list_zones(
    cx: &Cx,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Dict> {
    Ok(settings(&look(cx, None, "--list-all-zones", permanent)?))
}

/// Return the names of the zones.
///
/// ```console
/// $ salt web1 firewalld.get_zones
/// ```
#[function]
pub fn get_zones(
    cx: &Cx,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Vec<String>> {
    list(cx, None, "--get-zones", permanent)
}

/// Return the names of the services.
///
/// ```console
/// $ salt web1 firewalld.get_services
/// ```
#[function]
pub fn get_services(
    cx: &Cx,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Vec<String>> {
    list(cx, None, "--get-services", permanent)
}

/// Return the ICMP types known.
///
/// ```console
/// $ salt web1 firewalld.get_icmp_types
/// ```
#[function]
pub fn get_icmp_types(
    cx: &Cx,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Vec<String>> {
    list(cx, None, "--get-icmptypes", permanent)
}

defines! {
    /// Make a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.new_zone dmz
    /// ```
    new_zone, "--new-zone",
    /// The zone.
    zone
}

defines! {
    /// Remove a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.delete_zone dmz
    /// ```
    delete_zone, "--delete-zone",
    /// The zone.
    zone
}

/// Choose the zone of interfaces nobody assigned.
///
/// ```console
/// $ salt web1 firewalld.set_default_zone dmz
/// ```
#[function]
pub fn set_default_zone(
    cx: &Cx,
    /// The zone.
    zone: String,
) -> Result<String> {
    run(cx, &[format!("--set-default-zone={zone}")], false)
}

defines! {
    /// Make a service.
    ///
    /// ```console
    /// $ salt web1 firewalld.new_service shop
    /// ```
    new_service, "--new-service",
    /// The service.
    name
}

defines! {
    /// Remove a service.
    ///
    /// ```console
    /// $ salt web1 firewalld.delete_service shop
    /// ```
    delete_service, "--delete-service",
    /// The service.
    name
}

/// Return everything about a zone.
///
/// ```console
/// $ salt web1 firewalld.list_all
/// ```
#[function]
pub fn list_all(
    cx: &Cx,
    /// The zone; the default one unless given.
    zone: Option<String>,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Dict> {
    Ok(settings(&look(cx, zone.as_deref(), "--list-all", permanent)?))
}

/// Return the services a zone lets in.
///
/// ```console
/// $ salt web1 firewalld.list_services
/// ```
#[function]
pub fn list_services(
    cx: &Cx,
    /// The zone; the default one unless given.
    zone: Option<String>,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Vec<String>> {
    list(cx, zone.as_deref(), "--list-services", permanent)
}

/// Let a service in.
///
/// ```console
/// $ salt web1 firewalld.add_service http
/// ```
#[function]
pub fn add_service(
    cx: &Cx,
    /// The service.
    service: String,
    /// The zone; the default one unless given.
    zone: Option<String>,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<String> {
    change(cx, zone.as_deref(), format!("--add-service={service}"), permanent)
}

/// No longer let a service in.
///
/// ```console
/// $ salt '*' firewalld.remove_service ssh my_zone
/// ```
#[function]
pub fn remove_service(
    cx: &Cx,
    /// The service.
    service: String,
    /// The zone; the default one unless given.
    zone: Option<String>,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<String> {
    change(cx, zone.as_deref(), format!("--remove-service={service}"), permanent)
}

/// Open a port of a service.
///
/// ```console
/// $ salt web1 firewalld.add_service_port http 8443/tcp
/// ```
#[function]
pub fn add_service_port(
    cx: &Cx,
    /// The service.
    service: String,
    /// The port: `80/tcp`.
    port: String,
) -> Result<String> {
    known_service(cx, &service)?;
    of_service(cx, &service, format!("--add-port={port}"), false)
}

/// Close a port of a service.
///
/// ```console
/// $ salt web1 firewalld.remove_service_port http 8443/tcp
/// ```
#[function]
pub fn remove_service_port(
    cx: &Cx,
    /// The service.
    service: String,
    /// The port: `80/tcp`.
    port: String,
) -> Result<String> {
    known_service(cx, &service)?;
    of_service(cx, &service, format!("--remove-port={port}"), false)
}

fn known_service(cx: &Cx, service: &str) -> Result<()> {
    if get_services(cx, true)?.iter().any(|own| own == service) {
        return Ok(());
    }
    Err(Error::failed("The service does not exist."))
}

/// Return the ports of a service.
///
/// ```console
/// $ salt web1 firewalld.get_service_ports http
/// ```
#[function]
pub fn get_service_ports(
    cx: &Cx,
    /// The service.
    service: String,
) -> Result<Vec<String>> {
    let text = of_service(cx, &service, "--get-ports".into(), true)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Add a protocol to a service.
///
/// ```console
/// $ salt web1 firewalld.add_service_protocol http tcp
/// ```
#[function]
pub fn add_service_protocol(
    cx: &Cx,
    /// The service.
    service: String,
    /// The protocol.
    protocol: String,
) -> Result<String> {
    of_service(cx, &service, format!("--add-protocol={protocol}"), false)
}

/// Remove a protocol from a service.
///
/// ```console
/// $ salt web1 firewalld.remove_service_protocol http tcp
/// ```
#[function]
pub fn remove_service_protocol(
    cx: &Cx,
    /// The service.
    service: String,
    /// The protocol.
    protocol: String,
) -> Result<String> {
    of_service(cx, &service, format!("--remove-protocol={protocol}"), false)
}

/// Return the protocols of a service.
///
/// ```console
/// $ salt web1 firewalld.get_service_protocols http
/// ```
#[function]
pub fn get_service_protocols(
    cx: &Cx,
    /// The service.
    service: String,
) -> Result<Vec<String>> {
    let text = of_service(cx, &service, "--get-protocols".into(), true)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Tell whether a zone hides the addresses behind it.
///
/// ```console
/// $ salt web1 firewalld.get_masquerade
/// ```
#[function]
pub fn get_masquerade(
    cx: &Cx,
    /// The zone; the default one unless given.
    zone: Option<String>,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<bool> {
    let zones = list_all(cx, zone, permanent)?;
    let said = zones.values().into_iter().find_map(|zone| zone.get("masquerade"));
    Ok(said.is_some_and(|said| said.to_string().contains("yes")))
}

/// Hide the addresses behind a zone.
///
/// ```console
/// $ salt web1 firewalld.add_masquerade
/// ```
#[function]
pub fn add_masquerade(
    cx: &Cx,
    /// The zone; the default one unless given.
    zone: Option<String>,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<String> {
    change(cx, zone.as_deref(), "--add-masquerade".into(), permanent)
}

/// No longer hide the addresses behind a zone.
///
/// ```console
/// $ salt web1 firewalld.remove_masquerade
/// ```
#[function]
pub fn remove_masquerade(
    cx: &Cx,
    /// The zone; the default one unless given.
    zone: Option<String>,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<String> {
    change(cx, zone.as_deref(), "--remove-masquerade".into(), permanent)
}

fn masquerade(cx: &Cx, zone: &str, permanent: bool) -> Result<()> {
    if !get_masquerade(cx, Some(zone.to_owned()), permanent)? {
        add_masquerade(cx, Some(zone.to_owned()), permanent)?;
    }
    Ok(())
}

/// Open a port.
///
/// ```console
/// $ salt web1 firewalld.add_port dmz 8443/tcp
/// ```
#[function]
pub fn add_port(
    cx: &Cx,
    /// The zone.
    zone: String,
    /// The port: `443/tcp`.
    port: String,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
    /// Hide the addresses of the zone, if it does not yet.
    #[default(false)]
    force_masquerade: bool,
) -> Result<String> {
    if force_masquerade {
        masquerade(cx, &zone, permanent)?;
    }
    change(cx, Some(&zone), format!("--add-port={port}"), permanent)
}

of_zone! {
    /// Close a port.
    ///
    /// ```console
    /// $ salt web1 firewalld.remove_port dmz 8443/tcp
    /// ```
    remove_port, "--remove-port",
    /// The port: `443/tcp`.
    port
}

of_zone! {
    /// Return the open ports of a zone.
    ///
    /// ```console
    /// $ salt '*' firewalld.list_ports internal
    /// ```
    list_ports, "--list-ports"
}

/// Forward a port.
///
/// ```console
/// $ salt web1 firewalld.add_port_fwd dmz 443 8443 tcp
/// ```
#[function]
pub fn add_port_fwd(
    cx: &Cx,
    /// The zone.
    zone: String,
    /// The port.
    src: String,
    /// Where to.
    dest: String,
    /// The protocol.
    #[default("tcp".to_owned())]
    proto: String,
    /// The other machine.
    #[default(String::new())]
    dstaddr: String,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
    /// Hide the addresses of the zone, if it does not yet.
    #[default(false)]
    force_masquerade: bool,
) -> Result<String> {
    if force_masquerade {
        masquerade(cx, &zone, permanent)?;
    }
    let forward = Forward { src, proto, dest, addr: dstaddr };
    change(cx, Some(&zone), forward.option("add"), permanent)
}

/// No longer forward a port.
///
/// ```console
/// $ salt web1 firewalld.remove_port_fwd dmz 443 8443 tcp
/// ```
#[function]
pub fn remove_port_fwd(
    cx: &Cx,
    /// The zone.
    zone: String,
    /// The port.
    src: String,
    /// Where to.
    dest: String,
    /// The protocol.
    #[default("tcp".to_owned())]
    proto: String,
    /// The other machine.
    #[default(String::new())]
    dstaddr: String,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<String> {
    let forward = Forward { src, proto, dest, addr: dstaddr };
    change(cx, Some(&zone), forward.option("remove"), permanent)
}

/// Return the forwarded ports of a zone.
///
/// ```console
/// $ salt web1 firewalld.list_port_fwd dmz
/// ```
#[function]
pub fn list_port_fwd(
    cx: &Cx,
    /// The zone.
    zone: String,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Value> {
    Ok(Value::list(forwards(cx, &zone, permanent)?.iter().map(Forward::to_value)))
}

/// Keep a type of ICMP messages out; False when there is no such type.
///
/// ```console
/// $ salt web1 firewalld.block_icmp dmz redirect
/// ```
#[function]
pub fn block_icmp(
    cx: &Cx,
    /// The zone.
    zone: String,
    /// The ICMP type.
    icmp: String,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Value> {
    if !get_icmp_types(cx, permanent)?.contains(&icmp) {
        return Ok(false.into());
    }
    if list_icmp_block(cx, zone.clone(), permanent)?.contains(&icmp) {
        return Ok("success".into());
    }
    change(cx, Some(&zone), format!("--add-icmp-block={icmp}"), permanent).map(Value::from)
}

/// Let a type of ICMP messages in again; False when there is no such type.
///
/// ```console
/// $ salt web1 firewalld.allow_icmp dmz redirect
/// ```
#[function]
pub fn allow_icmp(
    cx: &Cx,
    /// The zone.
    zone: String,
    /// The ICMP type.
    icmp: String,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Value> {
    if !get_icmp_types(cx, permanent)?.contains(&icmp) {
        return Ok(false.into());
    }
    if !list_icmp_block(cx, zone.clone(), permanent)?.contains(&icmp) {
        return Ok("success".into());
    }
    change(cx, Some(&zone), format!("--remove-icmp-block={icmp}"), permanent).map(Value::from)
}

of_zone! {
    /// Return the ICMP types a zone keeps out.
    ///
    /// ```console
    /// $ salt '*' firewalld.list_icmp_block zlist
    /// ```
    list_icmp_block, "--list-icmp-blocks"
}

/// Keep the rules in force.
///
/// ```console
/// $ salt web1 firewalld.make_permanent
/// ```
#[function]
pub fn make_permanent(cx: &Cx) -> Result<String> {
    run(cx, &["--runtime-to-permanent".into()], false)
}

of_zone! {
    /// Return the interfaces of a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.get_interfaces dmz
    /// ```
    get_interfaces, "--list-interfaces"
}

of_zone! {
    /// Put an interface into a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.add_interface dmz eth1
    /// ```
    add_interface, "--add-interface",
    /// The interface.
    interface
}

of_zone! {
    /// Take an interface out of a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.remove_interface dmz eth1
    /// ```
    remove_interface, "--remove-interface",
    /// The interface.
    interface
}

of_zone! {
    /// Return the sources of a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.get_sources dmz
    /// ```
    get_sources, "--list-sources"
}

of_zone! {
    /// Put a source into a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.add_source dmz 192.0.2.0/24
    /// ```
    add_source, "--add-source",
    /// The addresses.
    source
}

of_zone! {
    /// Take a source out of a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.remove_source dmz 192.0.2.0/24
    /// ```
    remove_source, "--remove-source",
    /// The addresses.
    source
}

/// Return the rich rules of a zone.
///
/// ```console
/// $ salt web1 firewalld.get_rich_rules dmz
/// ```
#[function]
pub fn get_rich_rules(
    cx: &Cx,
    /// The zone.
    zone: String,
    /// In the permanent configuration.
    #[default(true)]
    permanent: bool,
) -> Result<Vec<String>> {
    let text = look(cx, Some(&zone), "--list-rich-rules", permanent)?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

of_zone! {
    /// Add a rich rule to a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.add_rich_rule dmz 'rule service name="http" accept'
    /// ```
    add_rich_rule, "--add-rich-rule",
    /// The rule.
    rule
}

of_zone! {
    /// Remove a rich rule from a zone.
    ///
    /// ```console
    /// $ salt web1 firewalld.remove_rich_rule dmz 'rule service name="http" accept'
    /// ```
    remove_rich_rule, "--remove-rich-rule",
    /// The rule.
    rule
}

/// Put the permanent configuration in force.
///
/// ```console
/// $ salt web1 firewalld.reload_rules
/// ```
#[function]
pub fn reload_rules(cx: &Cx) -> Result<String> {
    run(cx, &["--reload".into()], false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_settings_and_rules_below_them() {
        let text = "public (active)\n  target: default\n  services: dhcpv6-client ssh\n  \
            rich rules: \n\trule family=\"ipv4\" accept\n";
        let zones = settings(text);
        assert_eq!(
            Value::from(&zones).repr(),
            "{'public (active)': {'target': ['default'], 'services': ['dhcpv6-client ssh'], \
             'rich rules': ['', 'rule family=\"ipv4\" accept']}}"
        );
    }

    #[test]
    fn reads_forwards() {
        let forward = Forward::read("port=80:proto=tcp:toport=8080:toaddr=10.0.0.1");
        assert_eq!(
            forward.option("add"),
            "--add-forward-port=port=80:proto=tcp:toport=8080:toaddr=10.0.0.1"
        );
    }
}
