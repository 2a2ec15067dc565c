//! `firewalld`: zones and services of the dynamic firewall.
//!
//! Everything is done in the permanent configuration and put in force by one reload at the end.
//! Salt shows what a test would change only in its comment; the changes are there for us too.

use halite_modules::firewalld::{self, Forward};
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Result, State, states};
use halite_value::{Dict, Value, dict};

states! {
    /// Zones and services of the dynamic firewall.
    "firewalld", needs = [
        Need::program(&["firewall-cmd"], "firewall-cmd is not available, firewalld is probably not installed."),
    ]: "present" => Present,
    "service" => Service,
}

/// What there is beyond what is wanted, and what is wanted beyond what there is.
#[derive(Clone, Debug, Default)]
struct Differing {
    old: Vec<String>,
    add: Vec<String>,
    remove: Vec<String>,
}

impl Differing {
    fn of(old: Vec<String>, wanted: &[String], prune: bool) -> Self {
        let add = wanted.iter().filter(|item| !old.contains(item)).cloned().collect();
        let remove = old.iter().filter(|item| prune && !wanted.contains(item)).cloned().collect();
        Self { old, add, remove }
    }

    fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    // differs: Salt's order is that of a Python set, that is chance; ours is what stays, then new.
    fn new_items(&self) -> Vec<String> {
        let stays = self.old.iter().filter(|item| !self.remove.contains(item));
        stays.chain(&self.add).cloned().collect()
    }

    fn note(&self, name: &str, changes: &Dict) {
        if !self.is_empty() {
            let (old, new) = (self.old.clone(), self.new_items());
            changes.insert(name, dict! { "old" => old, "new" => new });
        }
    }
}

/// Make sure that a zone exists and has these settings.
#[derive(Args)]
pub struct Present {
    /// The zone.
    name: String,
    /// The ICMP types to keep out.
    block_icmp: Option<Vec<String>>,
    /// Let in all the others.
    #[default(false)]
    prune_block_icmp: bool,
    /// It is the zone of interfaces nobody assigned.
    default: Option<bool>,
    /// Hide the addresses behind it.
    masquerade: Option<bool>,
    /// The open ports: `22/tcp`.
    ports: Option<Vec<String>>,
    /// Close all the others.
    #[default(false)]
    prune_ports: bool,
    /// The forwarded ports: `22:22:tcp` or `22:22:tcp:192.168.0.1`.
    port_fwd: Option<Vec<String>>,
    /// No others.
    #[default(false)]
    prune_port_fwd: bool,
    /// The services let in.
    services: Option<Vec<String>>,
    /// No others.
    #[default(false)]
    prune_services: bool,
    /// The interfaces of the zone.
    interfaces: Option<Vec<String>>,
    /// No others.
    #[default(false)]
    prune_interfaces: bool,
    /// The sources of the zone.
    sources: Option<Vec<String>>,
    /// No others.
    #[default(false)]
    prune_sources: bool,
    /// The rich rules of the zone.
    rich_rules: Option<Vec<String>>,
    /// No others.
    #[default(false)]
    prune_rich_rules: bool,
}

/// A zone as it is, compared with what is wanted.
#[derive(Default)]
pub struct Zone {
    zones: Vec<String>,
    is_new: bool,
    icmp: Differing,
    default_was: Option<String>,
    masquerade_was: Option<bool>,
    ports: Differing,
    services: Differing,
    interfaces: Differing,
    sources: Differing,
    rich_rules: Differing,
    forwards: Vec<Forward>,
    add_forwards: Vec<Forward>,
    remove_forwards: Vec<Forward>,
}

fn read_forward(text: &str) -> Result<Forward> {
    let parts: Vec<&str> = text.split(':').collect();
    let (src, dest, proto, addr) = match parts.as_slice() {
        [src, dest, proto] => (src, dest, proto, ""),
        [src, dest, proto, addr] => (src, dest, proto, *addr),
        _ => {
            let text = format!("a forwarded port is src:dest:protocol or …:address, not '{text}'");
            return Err(Error::failed(text));
        }
    };
    let text = |part: &str| part.to_owned();
    Ok(Forward { src: text(src), proto: text(proto), dest: text(dest), addr: text(addr) })
}

impl Present {
    fn compare(
        &self,
        cx: &Cx,
        zone: &Zone,
        wanted: Option<&Vec<String>>,
        prune: bool,
        look: fn(&Cx, String, bool) -> Result<Vec<String>>,
    ) -> Result<Differing> {
        if wanted.is_none() && !prune {
            return Ok(Differing::default());
        }
        // There is nothing to ask about a zone that has to be made first.
        let old = if zone.is_new { Vec::new() } else { look(cx, self.name.clone(), true)? };
        Ok(Differing::of(old, wanted.map_or(&[], Vec::as_slice), prune))
    }
}

impl State for Present {
    type Seen = Zone;

    fn observe(&self, cx: &Cx) -> Result<Zone> {
        let name = &self.name;
        let mut zone = Zone { zones: firewalld::get_zones(cx, true)?, ..Zone::default() };
        zone.is_new = !zone.zones.contains(name);
        let icmp = self.block_icmp.as_ref();
        zone.icmp =
            self.compare(cx, &zone, icmp, self.prune_block_icmp, firewalld::list_icmp_block)?;
        if !zone.icmp.add.is_empty() {
            // Salt passes over types nobody knows, with a line in its log.
            let known = firewalld::get_icmp_types(cx, true)?;
            zone.icmp.add.retain(|own| known.contains(own));
        }
        if self.default == Some(true) {
            let was = firewalld::default_zone(cx)?;
            zone.default_was = Some(was).filter(|was| was != name);
        }
        if let Some(wanted) = self.masquerade {
            let is = !zone.is_new && firewalld::get_masquerade(cx, Some(name.clone()), true)?;
            zone.masquerade_was = Some(is).filter(|is| *is != wanted);
        }
        zone.ports =
            self.compare(cx, &zone, self.ports.as_ref(), self.prune_ports, firewalld::list_ports)?;
        if self.port_fwd.is_some() || self.prune_port_fwd {
            let texts = self.port_fwd.iter().flatten();
            let wanted = texts.map(|text| read_forward(text)).collect::<Result<Vec<_>>>()?;
            if !zone.is_new {
                zone.forwards = firewalld::forwards(cx, name, true)?;
            }
            let old = &zone.forwards;
            zone.remove_forwards = old
                .iter()
                .filter(|own| self.prune_port_fwd && !wanted.contains(own))
                .cloned()
                .collect();
            zone.add_forwards = wanted.into_iter().filter(|own| !old.contains(own)).collect();
        }
        let services = |cx: &Cx, zone: String, permanent: bool| {
            firewalld::list_services(cx, Some(zone), permanent)
        };
        let (wanted, prune) = (self.services.as_ref(), self.prune_services);
        zone.services = self.compare(cx, &zone, wanted, prune, services)?;
        let (wanted, prune) = (self.interfaces.as_ref(), self.prune_interfaces);
        zone.interfaces = self.compare(cx, &zone, wanted, prune, firewalld::get_interfaces)?;
        let (wanted, prune) = (self.sources.as_ref(), self.prune_sources);
        zone.sources = self.compare(cx, &zone, wanted, prune, firewalld::get_sources)?;
        let (wanted, prune) = (self.rich_rules.as_ref(), self.prune_rich_rules);
        zone.rich_rules = self.compare(cx, &zone, wanted, prune, firewalld::get_rich_rules)?;
        Ok(zone)
    }

    fn plan(&self, zone: &Zone) -> Result<Plan> {
        let name = &self.name;
        let changes = Dict::new();
        if zone.is_new {
            changes.insert("new", dict! { "old" => zone.zones.clone(), "new" => name });
        }
        zone.icmp.note("icmp_types", &changes);
        if let Some(was) = &zone.default_was {
            changes.insert("default", dict! { "old" => was, "new" => name });
        }
        if let Some(was) = zone.masquerade_was {
            let done = if was { "disabled" } else { "set" };
            let new = format!("Masquerading successfully {done}.");
            let old = if was { Value::Bool(true) } else { Value::Bool(false) };
            changes.insert("masquerade", dict! { "old" => old, "new" => new });
        }
        zone.ports.note("ports", &changes);
        if !zone.add_forwards.is_empty() || !zone.remove_forwards.is_empty() {
            let shown = |own: &Forward| {
                dict! {
                    "Source port" => own.src.as_str(), "Destination port" => own.dest.as_str(),
                    "Protocol" => own.proto.as_str(), "Destination address" => own.addr.as_str(),
                }
            };
            let old = Value::list(zone.forwards.iter().map(shown));
            let stays = zone.forwards.iter().filter(|own| !zone.remove_forwards.contains(own));
            let new = Value::list(zone.add_forwards.iter().chain(stays).map(shown));
            changes.insert("port_fwd", dict! { "old" => old, "new" => new });
        }
        zone.services.note("services", &changes);
        zone.interfaces.note("interfaces", &changes);
        zone.sources.note("sources", &changes);
        zone.rich_rules.note("rich_rules", &changes);
        if changes.is_empty() {
            return Ok(Plan::nothing(format!("'{name}' is already in the desired state.")));
        }
        Ok(Plan::changes(changes)
            .pending(format!("Configuration for '{name}' will change."))
            .done(format!("'{name}' was configured.")))
    }

    fn apply(&self, cx: &Cx, zone: Zone) -> Result<Applied> {
        let name = || self.name.clone();
        if zone.is_new {
            firewalld::new_zone(cx, name(), true)?;
        }
        for icmp in zone.icmp.add {
            firewalld::block_icmp(cx, name(), icmp, true)?;
        }
        for icmp in zone.icmp.remove {
            firewalld::allow_icmp(cx, name(), icmp, true)?;
        }
        if zone.default_was.is_some() {
            firewalld::set_default_zone(cx, name())?;
        }
        match zone.masquerade_was {
            Some(true) => drop(firewalld::remove_masquerade(cx, Some(name()), true)?),
            Some(false) => drop(firewalld::add_masquerade(cx, Some(name()), true)?),
            None => {}
        }
        for port in zone.ports.add {
            firewalld::add_port(cx, name(), port, true, false)?;
        }
        for port in zone.ports.remove {
            firewalld::remove_port(cx, name(), port, true)?;
        }
        for Forward { src, proto, dest, addr } in zone.add_forwards {
            firewalld::add_port_fwd(cx, name(), src, dest, proto, addr, true, false)?;
        }
        for Forward { src, proto, dest, addr } in zone.remove_forwards {
            firewalld::remove_port_fwd(cx, name(), src, dest, proto, addr, true)?;
        }
        for service in zone.services.add {
            firewalld::add_service(cx, service, Some(name()), true)?;
        }
        for service in zone.services.remove {
            firewalld::remove_service(cx, service, Some(name()), true)?;
        }
        for interface in zone.interfaces.add {
            firewalld::add_interface(cx, name(), interface, true)?;
        }
        for interface in zone.interfaces.remove {
            firewalld::remove_interface(cx, name(), interface, true)?;
        }
        for source in zone.sources.add {
            firewalld::add_source(cx, name(), source, true)?;
        }
        for source in zone.sources.remove {
            firewalld::remove_source(cx, name(), source, true)?;
        }
        for rule in zone.rich_rules.add {
            firewalld::add_rich_rule(cx, name(), rule, true)?;
        }
        for rule in zone.rich_rules.remove {
            firewalld::remove_rich_rule(cx, name(), rule, true)?;
        }
        firewalld::reload_rules(cx)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a service exists and has exactly these ports and protocols.
#[derive(Args)]
pub struct Service {
    /// The service.
    name: String,
    /// Its ports: `22/tcp`.
    ports: Option<Vec<String>>,
    /// Its protocols.
    protocols: Option<Vec<String>>,
}

impl State for Service {
    type Seen = (bool, Definition);

    fn observe(&self, cx: &Cx) -> Result<(bool, Definition)> {
        let is_new = !firewalld::get_services(cx, true)?.contains(&self.name);
        let (mut ports, mut protocols) = (Vec::new(), Vec::new());
        if !is_new {
            ports = firewalld::get_service_ports(cx, self.name.clone())?;
            protocols = firewalld::get_service_protocols(cx, self.name.clone())?;
        }
        let wanted = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let ports = Differing::of(ports, &wanted(&self.ports), true);
        let protocols = Differing::of(protocols, &wanted(&self.protocols), true);
        Ok((is_new, Definition { ports, protocols }))
    }

    fn plan(&self, (is_new, seen): &(bool, Definition)) -> Result<Plan> {
        let name = &self.name;
        let changes = Dict::new();
        seen.ports.note("ports", &changes);
        seen.protocols.note("protocols", &changes);
        if changes.is_empty() && !is_new {
            return Ok(Plan::nothing(format!("'{name}' is already in the desired state.")));
        }
        let plan = Plan { unknown: *is_new, ..Plan::changes(changes) };
        Ok(plan
            .pending(format!("Configuration for '{name}' will change."))
            .done(format!("'{name}' was configured.")))
    }

    fn apply(&self, cx: &Cx, (is_new, seen): (bool, Definition)) -> Result<Applied> {
        let name = || self.name.clone();
        if is_new {
            // Loaded at once, or the daemon would not know whose ports these are.
            firewalld::new_service(cx, name(), true)?;
        }
        for port in seen.ports.add {
            firewalld::add_service_port(cx, name(), port)?;
        }
        for port in seen.ports.remove {
            firewalld::remove_service_port(cx, name(), port)?;
        }
        for protocol in seen.protocols.add {
            firewalld::add_service_protocol(cx, name(), protocol)?;
        }
        for protocol in seen.protocols.remove {
            firewalld::remove_service_protocol(cx, name(), protocol)?;
        }
        firewalld::reload_rules(cx)?;
        Ok(Applied::as_planned())
    }
}

/// Ports and protocols of a service, compared with what is wanted.
pub struct Definition {
    ports: Differing,
    protocols: Differing,
}
