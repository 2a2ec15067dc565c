//! `iptables`: packet filter rules, chains and policies.
//!
//! What changed is told under Salt's odd key `locale`. Absent: joining rules of several states into
//! one (`mod_aggregate`), which changes nothing but speed.

use halite_modules::iptables;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Packet filter rules, chains and policies.
    "iptables", needs = [
        Need::function("iptables.version", "iptables module could not be loaded"),
    ]: "append" => Append,
    "insert" => Insert,
    "delete" => Delete,
    "chain_present" => ChainPresent,
    "chain_absent" => ChainAbsent,
    "set_policy" => SetPolicy,
    "flush" => Flush,
}

/// A rule, by its parts.
#[derive(Args)]
pub struct Rule {
    /// A name, for people.
    name: String,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// `chain`, `position`, `save`, and the parts of the rule.
    kwargs: Rest,
}

impl Rule {
    fn wanted(&self) -> Result<Wanted> {
        Wanted::of(&self.table, &self.family, &self.kwargs.kwargs)
    }
}

/// What a rule state was given, read.
struct Wanted {
    table: String,
    family: String,
    chain: String,
    position: Option<i64>,
    rule: String,
    save: Option<Option<String>>,
}

impl Wanted {
    fn of(table: &str, family: &str, kwargs: &Dict) -> Result<Self> {
        let chain = kwargs.get("chain").filter(Value::truthy);
        let chain = chain.ok_or_else(|| Error::failed("Error: Chain needs to be specified"))?;
        let rule = iptables::build(kwargs).map_err(Error::failed)?;
        let save = match kwargs.get("save").filter(Value::truthy) {
            None => None,
            Some(Value::Bool(_)) => Some(None),
            Some(path) => Some(Some(path.to_string())),
        };
        let position = match kwargs.get("position") {
            Some(Value::Str(text)) => text.parse().ok(),
            Some(other) => other.to_int(),
            None => None,
        };
        let (table, family) = (table.to_owned(), family.to_owned());
        Ok(Self { table, family, chain: chain.to_string(), position, rule, save })
    }

    fn shown(&self, command: &str) -> String {
        let position = self.position.map(|position| position.to_string()).unwrap_or_default();
        let path = if self.family == "ipv6" { "/usr/sbin/ip6tables" } else { "/usr/sbin/iptables" };
        iptables::shown(path, &self.table, command, &self.chain, &position, &self.rule)
    }

    fn in_force(&self, cx: &Cx) -> Result<bool> {
        let (table, family) = (self.table.clone(), self.family.clone());
        let answer =
            iptables::check(cx, table, Some(self.chain.clone()), Some(self.rule.clone()), family)?;
        match answer {
            Value::Bool(flag) => Ok(flag),
            error => Err(Error::failed(error.to_str())),
        }
    }

    /// Keeps the rules if asked; the comment that says so.
    fn saved(&self, cx: &Cx, word: &str, name: &str, command: &str) -> Result<Option<String>> {
        let Some(path) = &self.save else { return Ok(None) };
        let out = iptables::save(cx, path.clone(), self.family.clone())?;
        Ok(Some(format!(
            "{word} and saved iptables rule {name} for {}\n{command}\n{out}",
            self.family
        )))
    }
}

/// Make sure that a rule is there; append it if not.
#[derive(Args)]
pub struct Append(Rule);

impl State for Append {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.0.wanted()?.in_force(cx)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let command = wanted.shown("A");
        if *there {
            let text = format!("iptables rule for {name} already set ({command}) for {family}");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("iptables rule for {name} needs to be set ({command}) for {family}"))
            .done(format!("Set iptables rule for {name} to: {command} for {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let command = wanted.shown("A");
        let (table, chain) = (wanted.table.clone(), wanted.chain.clone());
        let answer =
            iptables::append(cx, table, Some(chain), Some(wanted.rule.clone()), family.clone())?;
        if answer != Value::Bool(true) {
            return Err(Error::failed(format!(
                "Failed to set iptables rule for {name}.\nAttempted rule was {command} for {family}"
            )));
        }
        let comment = wanted.saved(cx, "Set", name, &command)?;
        Ok(Applied { comment, ..Applied::as_planned() })
    }
}

/// Make sure that a rule is there; insert it at a position if not.
#[derive(Args)]
pub struct Insert(Rule);

impl State for Insert {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.0.wanted()?.in_force(cx)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let command = wanted.shown("I");
        if *there {
            let text = format!("iptables rule for {name} already set for {family} ({command})");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("iptables rule for {name} needs to be set for {family} ({command})"))
            .done(format!("Set iptables rule for {name} to: {command} for {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let command = wanted.shown("I");
        let (table, chain) = (wanted.table.clone(), Some(wanted.chain.clone()));
        let rule = Some(wanted.rule.clone());
        let answer = iptables::insert(cx, table, chain, wanted.position, rule, family.clone())?;
        if answer.truthy() {
            return Err(Error::failed(format!(
                "Failed to set iptables rule for {name}.\nAttempted rule was {command}"
            )));
        }
        let comment = wanted.saved(cx, "Set", name, &command)?;
        Ok(Applied { comment, ..Applied::as_planned() })
    }
}

/// Make sure that a rule is not there.
#[derive(Args)]
pub struct Delete(Rule);

impl State for Delete {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let wanted = self.0.wanted()?;
        // A position means whichever rule is there.
        if wanted.rule.is_empty() { Ok(wanted.position.is_some()) } else { wanted.in_force(cx) }
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let command = wanted.shown("D");
        if !there && wanted.position.is_none() {
            let text = format!("iptables rule for {name} already absent for {family} ({command})");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!(
                "iptables rule for {name} needs to be deleted for {family} ({command})"
            ))
            .done(format!("Delete iptables rule for {name} {command}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let command = wanted.shown("D");
        let rule = wanted.position.is_none().then(|| wanted.rule.clone());
        let (table, chain) = (wanted.table.clone(), Some(wanted.chain.clone()));
        let text = iptables::delete(cx, table, chain, wanted.position, rule, family.clone())?;
        if !text.is_empty() {
            return Err(Error::failed(format!(
                "Failed to delete iptables rule for {name}.\nAttempted rule was {command}"
            )));
        }
        let comment = wanted.saved(cx, "Deleted", name, &command)?;
        Ok(Applied { comment, ..Applied::as_planned() })
    }
}

/// A chain, by name.
#[derive(Args)]
pub struct Chain {
    /// The chain.
    name: String,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
}

impl Chain {
    fn is_there(&self, cx: &Cx) -> Result<bool> {
        let Self { name, table, family } = self;
        let answer = iptables::check_chain(cx, table.clone(), Some(name.clone()), family.clone())?;
        Ok(answer == Value::Bool(true))
    }
}

/// Make sure that a chain is there.
#[derive(Args)]
pub struct ChainPresent(Chain);

impl State for ChainPresent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.0.is_there(cx)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Chain { name, table, family } = &self.0;
        if *there {
            return Ok(Plan::nothing(format!(
                "iptables {name} chain is already exist in {table} table for {family}"
            )));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("iptables {name} chain in {table} table needs to be set for {family}"))
            .done(format!("iptables {name} chain in {table} table create success for {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Chain { name, table, family } = &self.0;
        match iptables::new_chain(cx, table.clone(), Some(name.clone()), family.clone())? {
            Value::Bool(true) => Ok(Applied::as_planned()),
            text => Err(Error::failed(format!(
                "Failed to create {name} chain in {table} table: {} for {family}",
                text.to_str().trim()
            ))),
        }
    }
}

/// Make sure that a chain is not there.
#[derive(Args)]
pub struct ChainAbsent(Chain);

impl State for ChainAbsent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.0.is_there(cx)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Chain { name, table, family } = &self.0;
        if !there {
            return Ok(Plan::nothing(format!(
                "iptables {name} chain is already absent in {table} table for {family}"
            )));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("iptables {name} chain in {table} table needs to be removed {family}"))
            .done(format!("iptables {name} chain in {table} table delete success for {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Chain { name, table, family } = &self.0;
        let text = iptables::flush(cx, table.clone(), name.clone(), family.clone())?;
        if !text.is_empty() {
            return Err(Error::failed(format!(
                "Failed to flush {name} chain in {table} table: {text} for {family}"
            )));
        }
        match iptables::delete_chain(cx, table.clone(), Some(name.clone()), family.clone())? {
            Value::Bool(true) => Ok(Applied::as_planned()),
            text => Err(Error::failed(format!(
                "Failed to delete {name} chain in {table} table: {} for {family}",
                text.to_str().trim()
            ))),
        }
    }
}

/// Make sure that a chain has a policy.
#[derive(Args)]
#[arg(open)]
pub struct SetPolicy {
    /// A name, for people.
    name: String,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// The chain.
    #[arg(by_name)]
    chain: String,
    /// The policy.
    #[arg(by_name)]
    policy: String,
    /// Keep it: True, or a file.
    #[arg(by_name)]
    #[default(Value::Bool(false))]
    save: Value,
}

impl State for SetPolicy {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let (table, chain) = (self.table.clone(), Some(self.chain.clone()));
        let own = iptables::get_policy(cx, table, chain, self.family.clone())?;
        Ok(own.is_some_and(|own| own == self.policy.as_str()))
    }

    fn plan(&self, right: &bool) -> Result<Plan> {
        let Self { name, table, family, chain, policy, .. } = self;
        let what =
            format!("iptables default policy for chain {chain} on table {table} for {family}");
        if *right {
            return Ok(Plan::nothing(format!("{what} already set to {policy}")));
        }
        let and_saved = if self.save.truthy() { " and saved" } else { "" };
        Ok(Plan::change("locale", name)
            .pending(format!("{what} needs to be set to {policy}"))
            .done(format!("Set{and_saved} default policy for {chain} to {policy} family {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let (chain, policy) = (Some(self.chain.clone()), Some(self.policy.clone()));
        let text =
            iptables::set_policy(cx, self.table.clone(), chain, policy, self.family.clone())?;
        if !text.is_empty() {
            return Err(Error::failed("Failed to set iptables default policy"));
        }
        if self.save.truthy() {
            let path = self.save.as_str().map(str::to_owned);
            iptables::save(cx, path, self.family.clone())?;
        }
        Ok(Applied::as_planned())
    }
}

/// Delete all rules of a chain, or of a table.
#[derive(Args)]
#[arg(open)]
pub struct Flush {
    /// A name, for people.
    name: String,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// The chain; all of the table if none is given.
    #[arg(by_name)]
    #[default(String::new())]
    chain: String,
}

impl State for Flush {
    type Seen = ();
    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let Self { name, table, family, chain } = self;
        Ok(Plan::change("locale", name)
            .pending(format!(
                "iptables rules in {name} table {table} chain {family} family needs to be flushed"
            ))
            .done(format!("Flush iptables rules in {table} table {chain} chain {family} family")))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let text =
            iptables::flush(cx, self.table.clone(), self.chain.clone(), self.family.clone())?;
        Applied::if_done(text.is_empty(), || "Failed to flush iptables rules".to_owned())
    }
}
