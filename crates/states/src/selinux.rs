//! `selinux`: the mode, the booleans, modules, file contexts and ports of SELinux.

use halite_modules::selinux;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, dict};

states! {
    /// The mode, the booleans, modules, file contexts and ports of SELinux.
    "selinux", needs = [
        Need::function("selinux.getenforce", "selinux module could not be loaded"),
    ]: "mode" => Mode,
    "boolean" => Boolean,
    "module" => Module,
    "module_install" => ModuleInstall,
    "module_remove" => ModuleRemove,
    "fcontext_policy_present" => FcontextPolicyPresent,
    "fcontext_policy_absent" => FcontextPolicyAbsent,
    "fcontext_policy_applied" => FcontextPolicyApplied,
    "port_policy_present" => PortPolicyPresent,
    "port_policy_absent" => PortPolicyAbsent,
}

/// Make sure that SELinux is in a mode, now and at the next start.
#[derive(Args)]
pub struct Mode {
    /// `enforcing`, `permissive` or `disabled`.
    name: Value,
}

impl Mode {
    fn wanted(&self) -> Option<&'static str> {
        match self.name.to_string().to_lowercase().as_str() {
            "enforcing" | "1" | "true" => Some("Enforcing"),
            "permissive" | "0" | "false" => Some("Permissive"),
            "disabled" => Some("Disabled"),
            _ => None,
        }
    }
}

impl State for Mode {
    type Seen = (String, Option<String>);

    fn observe(&self, cx: &Cx) -> Result<(String, Option<String>)> {
        Ok((selinux::getenforce(cx)?, selinux::getconfig(cx)?))
    }

    fn plan(&self, (mode, config): &(String, Option<String>)) -> Result<Plan> {
        let Some(wanted) = self.wanted() else {
            return Err(Error::failed(format!("{} is not an accepted mode", self.name)));
        };
        // A disabled SELinux is the business of the next start alone.
        let old =
            if wanted == "Disabled" { config.as_deref().map(title) } else { Some(mode.clone()) };
        let kept = config.as_deref().is_some_and(|config| config.eq_ignore_ascii_case(wanted));
        if old.as_deref() == Some(wanted) && (kept || config.is_none()) {
            return Ok(Plan::nothing(format!("SELinux is already in {wanted} mode")));
        }
        Ok(Plan::change("old", old)
            .and("new", wanted)
            .pending(format!("SELinux mode is set to be changed to {wanted}"))
            .done(format!("SELinux has been set to {wanted} mode")))
    }

    fn apply(&self, cx: &Cx, _: (String, Option<String>)) -> Result<Applied> {
        let wanted = self.wanted().unwrap_or_default();
        let mode = selinux::setenforce(cx, wanted.into())?;
        let config = selinux::getconfig(cx)?.map(|config| title(&config));
        Applied::if_done(
            mode == wanted || (wanted == "Disabled" && config.as_deref() == Some(wanted)),
            || format!("Failed to set SELinux to {wanted} mode"),
        )
    }
}

/// `Enforcing`
fn title(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars.flat_map(char::to_lowercase)).collect()
}

/// Make sure that a boolean, or several, are on or off.
#[derive(Args)]
pub struct Boolean {
    /// The boolean.
    name: String,
    /// On or off.
    value: Option<Value>,
    /// Several booleans and their values, in place of one.
    booleans: Option<Value>,
    /// For the next start, too.
    #[default(false)]
    persist: bool,
}

/// A boolean that is not as it should be: now, and at the next start.
pub struct Wrong {
    name: String,
    now: String,
    default: String,
    wanted: &'static str,
}

fn on_or_off(value: &Value) -> Option<&'static str> {
    match value.to_string().to_lowercase().as_str() {
        "on" | "true" | "1" => Some("on"),
        "off" | "false" | "0" => Some("off"),
        _ => None,
    }
}

impl Boolean {
    fn wanted(&self) -> Vec<(String, Value)> {
        let pairs = |value: &Value| match value {
            Value::Dict(dict) => {
                dict.entries().into_iter().map(|(key, value)| (key.to_string(), value)).collect()
            }
            other => vec![(other.to_string(), self.value.clone().unwrap_or_default())],
        };
        match &self.booleans {
            Some(Value::List(list)) => list.to_vec().iter().flat_map(pairs).collect(),
            Some(booleans) if !booleans.is_null() => pairs(booleans),
            _ => vec![(self.name.clone(), self.value.clone().unwrap_or_default())],
        }
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.wanted().into_iter().map(|(name, _)| name).collect();
        names.join(", ")
    }
}

impl State for Boolean {
    type Seen = Vec<Wrong>;

    fn observe(&self, cx: &Cx) -> Result<Vec<Wrong>> {
        let known = selinux::list_sebool(cx)?;
        let mut wrong = Vec::new();
        for (name, value) in self.wanted() {
            let Some(about) = known.get(name.as_str()) else {
                return Err(Error::failed(format!("Boolean {name} is not available")));
            };
            let Some(wanted) = on_or_off(&value) else {
                let text = format!("{value} is not a valid value for the boolean {name}");
                return Err(Error::failed(text));
            };
            let now = about.get_str("State").unwrap_or_default().to_string();
            let default = about.get_str("Default").unwrap_or_default().to_string();
            if now != wanted || (self.persist && default != wanted) {
                wrong.push(Wrong { name, now, default, wanted });
            }
        }
        Ok(wrong)
    }

    fn plan(&self, wrong: &Vec<Wrong>) -> Result<Plan> {
        if wrong.is_empty() {
            let names = self.names();
            let text = format!("The following booleans were in the correct state: {names}");
            return Ok(Plan::nothing(text));
        }
        let changes = Dict::new();
        for Wrong { name, now, default, wanted } in wrong {
            let change = if self.persist {
                let (old, new) = ([now, default], [*wanted; 2]);
                dict! { "old" => Value::list(old), "new" => Value::list(new) }
            } else {
                dict! { "old" => now, "new" => *wanted }
            };
            changes.insert(name, change);
        }
        let names: Vec<&str> = wrong.iter().map(|wrong| wrong.name.as_str()).collect();
        let names = names.join(", ");
        Ok(Plan::changes(changes)
            .pending(format!("The following booleans would be changed: {names}"))
            .done(format!("The following booleans have been changed: {names}")))
    }

    fn apply(&self, cx: &Cx, wrong: Vec<Wrong>) -> Result<Applied> {
        let pairs = Dict::new();
        for Wrong { name, wanted, .. } in &wrong {
            pairs.insert(name, *wanted);
        }
        if selinux::setsebools(cx, pairs, self.persist)? {
            return Ok(Applied::as_planned());
        }
        let names: Vec<&str> = wrong.iter().map(|wrong| wrong.name.as_str()).collect();
        let text = format!("Failed to set the following booleans: {}", names.join(", "));
        Err(Error::failed(text))
    }
}

/// Make sure that a module is enabled or disabled; install or remove it.
#[derive(Args)]
pub struct Module {
    /// The module.
    name: String,
    /// `enabled` or `disabled`.
    #[default("Enabled".to_owned())]
    module_state: String,
    /// The version it must have, where there are versions.
    #[default("any".to_owned())]
    version: String,
    /// `install` and `source`, or `remove`.
    kwargs: Rest,
}

impl Module {
    fn flag(&self, name: &str) -> bool {
        self.kwargs.kwargs.get(name).is_some_and(|value| value.truthy())
    }

    fn source(&self) -> String {
        let source = self.kwargs.kwargs.get("source").filter(Value::truthy);
        source.map_or_else(|| self.name.clone(), |source| source.to_string())
    }
}

impl State for Module {
    type Seen = Option<(bool, Value)>;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let known = selinux::list_semod(cx)?.get(self.name.as_str());
        Ok(known.map(|about| {
            let enabled = about.get("Enabled").is_some_and(|enabled| enabled.truthy());
            (enabled, about.get("Version").unwrap_or_default())
        }))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        let name = &self.name;
        if self.flag("install") && self.flag("source") {
            return Ok(Plan::unknown().pending(format!("Module {name} is set to be installed")));
        }
        if self.flag("remove") {
            if seen.is_none() {
                return Err(Error::failed(format!("Module {name} is not available")));
            }
            return Ok(Plan::unknown().pending(format!("Module {name} is set to be removed")));
        }
        let Some((enabled, version)) = seen else {
            return Err(Error::failed(format!("Module {name} is not available")));
        };
        let wanted = match self.module_state.to_lowercase().as_str() {
            "enabled" => true,
            "disabled" => false,
            other => {
                let text = format!("{other} is not a valid state for the {name} module.");
                return Err(Error::failed(text));
            }
        };
        if self.version != "any" && version.to_string() != self.version {
            return Err(Error::failed(format!(
                "Module version is {version} and does not match the desired version of {} or you \
                 are using semodule >= 2.4",
                self.version
            )));
        }
        if *enabled == wanted {
            return Ok(Plan::nothing(format!("Module {name} is in the desired state")));
        }
        let state = &self.module_state;
        Ok(Plan::unknown().pending(format!("Module {name} is set to be toggled to {state}")))
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let name = &self.name;
        let nothing = || Applied::changes(Dict::new());
        if self.flag("install") && self.flag("source") {
            let source = self.source();
            if !selinux::install_semod(cx, source.clone())? {
                return Err(Error::failed(format!("Failed to install module {source}")));
            }
            if seen.is_none_or(|(enabled, _)| enabled) {
                return Ok(nothing().comment(format!("Module {name} is in the desired state")));
            }
        }
        if self.flag("remove") {
            if selinux::remove_semod(cx, name.clone())? {
                return Ok(nothing().comment(format!("Module {name} has been removed")));
            }
            return Err(Error::failed(format!("Failed to remove module {name}")));
        }
        let state = &self.module_state;
        if selinux::setsemod(cx, name.clone(), state.clone())? {
            return Ok(nothing().comment(format!("Module {name} has been set to {state}")));
        }
        Err(Error::failed(format!("Failed to set the Module {name} to {state}")))
    }
}

/// Install a module from a file.
#[derive(Args)]
pub struct ModuleInstall {
    /// The file.
    name: String,
}

impl State for ModuleInstall {
    type Seen = ();

    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::unknown().pending(format!("Module {} is set to be installed", self.name)))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let name = &self.name;
        if selinux::install_semod(cx, name.clone())? {
            let text = format!("Module {name} has been installed");
            return Ok(Applied::changes(Dict::new()).comment(text));
        }
        Err(Error::failed(format!("Failed to install module {name}")))
    }
}

/// Remove a module.
#[derive(Args)]
pub struct ModuleRemove {
    /// The module.
    name: String,
}

impl State for ModuleRemove {
    type Seen = bool;

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(selinux::list_semod(cx)?.contains(self.name.as_str()))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Err(Error::failed(format!("Module {name} is not available")));
        }
        Ok(Plan::unknown().pending(format!("Module {name} is set to be removed")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let name = &self.name;
        if selinux::remove_semod(cx, name.clone())? {
            let text = format!("Module {name} has been removed");
            return Ok(Applied::changes(Dict::new()).comment(text));
        }
        Err(Error::failed(format!("Failed to remove module {name}")))
    }
}

/// Make sure that files of a path shall have a context.
#[derive(Args)]
pub struct FcontextPolicyPresent {
    /// The path, as a pattern.
    name: String,
    /// The type.
    sel_type: String,
    /// The letter of the kind of files.
    #[default("a".to_owned())]
    filetype: String,
    /// The user.
    sel_user: Option<String>,
    /// The level.
    sel_level: Option<String>,
}

impl State for FcontextPolicyPresent {
    type Seen = (bool, String);

    fn observe(&self, cx: &Cx) -> Result<(bool, String)> {
        let there = selinux::fcontext_get_policy(
            cx,
            self.name.clone(),
            Some(self.filetype.clone()),
            Some(self.sel_type.clone()),
            self.sel_user.clone(),
            self.sel_level.clone(),
        )?;
        let kind = selinux::filetype_id_to_string(cx, self.filetype.clone())?;
        Ok((there.is_some(), kind))
    }

    fn plan(&self, (there, kind): &(bool, String)) -> Result<Plan> {
        let Self { name, sel_type, .. } = self;
        if *there {
            return Ok(Plan::nothing(format!(
                "SELinux policy for \"{name}\" already present with specified filetype \"{kind}\" \
                 and sel_type \"{sel_type}\"."
            )));
        }
        let new = Dict::new();
        new.insert("filetype", kind);
        new.insert("sel_type", sel_type);
        for (key, value) in [("sel_user", &self.sel_user), ("sel_level", &self.sel_level)] {
            if let Some(value) = value {
                new.insert(key, value);
            }
        }
        Ok(Plan::change("old", Dict::new()).and("new", dict! { name.as_str() => new }))
    }

    fn apply(&self, cx: &Cx, _: (bool, String)) -> Result<Applied> {
        selinux::fcontext_add_policy(
            cx,
            self.name.clone(),
            Some(self.filetype.clone()),
            Some(self.sel_type.clone()),
            self.sel_user.clone(),
            self.sel_level.clone(),
        )?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that nothing is said about the context of a path.
#[derive(Args)]
pub struct FcontextPolicyAbsent {
    /// The path, as a pattern.
    name: String,
    /// The letter of the kind of files.
    #[default("a".to_owned())]
    filetype: String,
    /// The type.
    sel_type: Option<String>,
    /// The user.
    sel_user: Option<String>,
    /// The level.
    sel_level: Option<String>,
}

impl State for FcontextPolicyAbsent {
    type Seen = Option<Dict>;

    fn observe(&self, cx: &Cx) -> Result<Option<Dict>> {
        selinux::fcontext_get_policy(
            cx,
            self.name.clone(),
            Some(self.filetype.clone()),
            self.sel_type.clone(),
            self.sel_user.clone(),
            self.sel_level.clone(),
        )
    }

    fn plan(&self, there: &Option<Dict>) -> Result<Plan> {
        let name = &self.name;
        let Some(policy) = there else {
            let kind = self.sel_type.as_deref().unwrap_or("None");
            return Ok(Plan::nothing(format!(
                "SELinux policy for \"{name}\" already absent with specified filetype \"{}\" and \
                 sel_type \"{kind}\".",
                self.filetype
            )));
        };
        Ok(Plan::change("old", dict! { name.as_str() => policy }).and("new", Dict::new()))
    }

    fn apply(&self, cx: &Cx, _: Option<Dict>) -> Result<Applied> {
        selinux::fcontext_delete_policy(
            cx,
            self.name.clone(),
            Some(self.filetype.clone()),
            self.sel_type.clone(),
            self.sel_user.clone(),
            self.sel_level.clone(),
        )?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that files have the context they shall have.
#[derive(Args)]
pub struct FcontextPolicyApplied {
    /// The path.
    name: String,
    /// Everything below it, too.
    #[default(false)]
    recursive: bool,
}

impl State for FcontextPolicyApplied {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        selinux::fcontext_policy_is_applied(cx, self.name.clone(), self.recursive)
    }

    fn plan(&self, wrong: &String) -> Result<Plan> {
        if wrong.is_empty() {
            let name = &self.name;
            return Ok(Plan::nothing(format!(
                "SElinux policies are already applied for filespec \"{name}\""
            )));
        }
        Ok(Plan { unknown: true, ..Plan::changes(selinux::relabelled(wrong)) })
    }

    fn apply(&self, cx: &Cx, _: String) -> Result<Applied> {
        let ret = selinux::fcontext_apply_policy(cx, self.name.clone(), self.recursive)?;
        let changes = ret.get("changes").and_then(|changes| changes.as_dict().cloned());
        Ok(Applied::changes(changes.unwrap_or_default()))
    }
}

/// The words of the comments about ports.
fn port_words(sel_type: Option<&str>, protocol: Option<&str>, port: Option<&Value>) -> String {
    let text = |value: Option<&str>| value.unwrap_or("None").to_owned();
    let port = port.map_or("None".to_owned(), Value::to_string);
    format!(
        "with specified sel_type \"{}\", protocol \"{}\" and port \"{port}\".",
        text(sel_type),
        text(protocol)
    )
}

/// Make sure that a port has a type.
#[derive(Args)]
pub struct PortPolicyPresent {
    /// `tcp/8080`, or anything when protocol and port are given.
    name: String,
    /// The type.
    sel_type: String,
    /// `tcp` or `udp`.
    protocol: Option<String>,
    /// The port, or a range.
    port: Option<Value>,
    /// The range of levels.
    sel_range: Option<String>,
}

/// The policy of a port: any, and the one wanted.
pub struct Policies {
    any: Option<Dict>,
    wanted: Option<Dict>,
}

impl State for PortPolicyPresent {
    type Seen = Policies;

    fn observe(&self, cx: &Cx) -> Result<Policies> {
        let get = |sel_type: Option<String>| {
            let (protocol, port) = (self.protocol.clone(), self.port.clone());
            selinux::port_get_policy(cx, self.name.clone(), sel_type, protocol, port)
        };
        Ok(Policies { wanted: get(Some(self.sel_type.clone()))?, any: get(None)? })
    }

    fn plan(&self, seen: &Policies) -> Result<Plan> {
        if seen.wanted.is_some() {
            let what =
                port_words(Some(&self.sel_type), self.protocol.as_deref(), self.port.as_ref());
            let text = format!("SELinux policy for \"{}\" already present {what}", self.name);
            return Ok(Plan::nothing(text));
        }
        let new = Dict::new();
        new.insert("sel_type", &self.sel_type);
        Ok(Plan::change("old", seen.any.clone()).and("new", new))
    }

    fn apply(&self, cx: &Cx, seen: Policies) -> Result<Applied> {
        let order =
            if seen.any.is_some() { selinux::port_modify_policy } else { selinux::port_add_policy };
        let policy = selinux::PortPolicy {
            name: self.name.clone(),
            sel_type: Some(self.sel_type.clone()),
            protocol: self.protocol.clone(),
            port: self.port.clone(),
            sel_range: self.sel_range.clone(),
        };
        order(cx, policy)?;
        let (protocol, port) = (self.protocol.clone(), self.port.clone());
        let new = selinux::port_get_policy(cx, self.name.clone(), None, protocol, port)?;
        let changes = Dict::new();
        changes.insert("old", seen.any);
        changes.insert("new", new);
        Ok(Applied::changes(changes))
    }
}

/// Make sure that a port has no type of its own.
#[derive(Args)]
pub struct PortPolicyAbsent {
    /// `tcp/8080`, or anything when protocol and port are given.
    name: String,
    /// Only if it has this type.
    sel_type: Option<String>,
    /// `tcp` or `udp`.
    protocol: Option<String>,
    /// The port, or a range.
    port: Option<Value>,
}

impl State for PortPolicyAbsent {
    type Seen = Option<Dict>;

    fn observe(&self, cx: &Cx) -> Result<Option<Dict>> {
        let (protocol, port) = (self.protocol.clone(), self.port.clone());
        selinux::port_get_policy(cx, self.name.clone(), self.sel_type.clone(), protocol, port)
    }

    fn plan(&self, there: &Option<Dict>) -> Result<Plan> {
        let Some(policy) = there else {
            let kind = self.sel_type.as_deref();
            let what = port_words(kind, self.protocol.as_deref(), self.port.as_ref());
            let text = format!("SELinux policy for \"{}\" already absent {what}", self.name);
            return Ok(Plan::nothing(text));
        };
        Ok(Plan::change("old", policy).and("new", Value::Null))
    }

    fn apply(&self, cx: &Cx, there: Option<Dict>) -> Result<Applied> {
        let (protocol, port) = (self.protocol.clone(), self.port.clone());
        let name = self.name.clone();
        selinux::port_delete_policy(cx, name.clone(), protocol.clone(), port.clone())?;
        let new = selinux::port_get_policy(cx, name, None, protocol, port)?;
        let changes = Dict::new();
        changes.insert("old", there);
        changes.insert("new", new);
        Ok(Applied::changes(changes))
    }
}
