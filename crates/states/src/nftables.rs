//! `nftables`: packet filter rules, chains and tables of the newer kind.
//!
//! What changed is told under Salt's odd key `locale`, as by `iptables`.

use halite_modules::nftables;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Packet filter rules, chains and tables of the newer kind.
    "nftables", needs = [
        Need::function("nftables.version", "nftables module could not be loaded"),
    ]: "append" => Append,
    "insert" => Insert,
    "delete" => Delete,
    "chain_present" => ChainPresent,
    "chain_absent" => ChainAbsent,
    "table_present" => TablePresent,
    "table_absent" => TableAbsent,
    "set_policy" => SetPolicy,
    "flush" => Flush,
}

fn worked(answer: &Dict) -> bool {
    answer.get("result").is_some_and(|result| result.truthy())
}

fn said(answer: &Dict) -> String {
    answer.get("comment").map(|comment| comment.to_string()).unwrap_or_default()
}

fn text_of(kwargs: &Dict, name: &str) -> Option<String> {
    kwargs.get(name).filter(Value::truthy).map(|value| value.to_string())
}

/// A rule, by its parts.
#[derive(Args)]
pub struct Rule {
    /// Any name.
    name: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
    /// `table`, `chain`, `position`, `save`, and the parts of the rule.
    kwargs: Rest,
}

impl Rule {
    fn wanted(&self) -> Result<Wanted> {
        Wanted::of(&self.family, &self.kwargs.kwargs)
    }
}

/// What a rule state was given, read.
struct Wanted {
    table: String,
    chain: String,
    rule: String,
    position: Option<Value>,
    save: bool,
}

impl Wanted {
    fn of(family: &str, kwargs: &Dict) -> Result<Self> {
        let rule = nftables::build(family, kwargs).map_err(Error::failed)?;
        let chain = text_of(kwargs, "chain");
        Ok(Self {
            table: text_of(kwargs, "table").unwrap_or_else(|| "filter".into()),
            chain: chain.ok_or_else(|| Error::failed("Chain needs to be specified"))?,
            rule,
            position: kwargs.get("position"),
            save: kwargs.get("save").is_some_and(|save| save.truthy()),
        })
    }

    fn in_force(&self, cx: &Cx, family: &str) -> Result<bool> {
        let (table, chain) = (self.table.clone(), Some(self.chain.clone()));
        let rule = Some(self.rule.clone());
        Ok(worked(&nftables::check(cx, table, chain, rule, family.to_owned())?))
    }

    fn kept(&self, cx: &Cx, family: &str) -> Result<()> {
        if self.save {
            nftables::save(cx, None, family.to_owned())?;
        }
        Ok(())
    }

    /// What was done with a rule, if it was.
    fn set(&self, name: &str, family: &str) -> String {
        let verb = if self.save { "Set and Saved" } else { "Set" };
        format!("{verb} nftables rule for {name} to: {} for {family}", self.rule)
    }
}

/// Make sure that a rule is in force; at the end of its chain if it is new.
#[derive(Args)]
pub struct Append(Rule);

impl State for Append {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.0.wanted()?.in_force(cx, &self.0.family)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let rule = &wanted.rule;
        if *there {
            let text = format!("nftables rule for {name} already set ({rule}) for {family}");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("nftables rule for {name} needs to be set ({rule}) for {family}"))
            .done(wanted.set(name, family)))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let (table, chain) = (wanted.table.clone(), Some(wanted.chain.clone()));
        let rule = Some(wanted.rule.clone());
        let answer = nftables::append(cx, table, chain, rule, family.clone())?;
        if !worked(&answer) {
            return Err(Error::failed(format!(
                "Failed to set nftables rule for {name}.\nAttempted rule was {} for {family}.\n{}",
                wanted.rule,
                said(&answer)
            )));
        }
        wanted.kept(cx, family)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a rule is in force; at a position of its chain if it is new.
#[derive(Args)]
pub struct Insert(Rule);

impl State for Insert {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.0.wanted()?.in_force(cx, &self.0.family)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let rule = &wanted.rule;
        if *there {
            let text = format!("nftables rule for {name} already set for {family} ({rule})");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("nftables rule for {name} needs to be set for {family} ({rule})"))
            .done(wanted.set(name, family)))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let (table, chain) = (wanted.table.clone(), Some(wanted.chain.clone()));
        let rule = Some(wanted.rule.clone());
        let answer =
            nftables::insert(cx, table, chain, wanted.position.clone(), rule, family.clone())?;
        if !worked(&answer) {
            return Err(Error::failed(format!(
                "Failed to set nftables rule for {name}.\nAttempted rule was {} for {family}.\n{}",
                wanted.rule,
                said(&answer)
            )));
        }
        wanted.kept(cx, family)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a rule is not in force.
#[derive(Args)]
pub struct Delete(Rule);

impl State for Delete {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        self.0.wanted()?.in_force(cx, &self.0.family)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Rule { name, family, .. } = &self.0;
        let rule = self.0.wanted()?.rule;
        if !there {
            let text = format!("nftables rule for {name} already absent for {family} ({rule})");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("nftables rule for {name} needs to be deleted for {family} ({rule})"))
            .done(format!("Delete nftables rule for {name} {rule}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Rule { name, family, .. } = &self.0;
        let wanted = self.0.wanted()?;
        let (table, chain) = (wanted.table.clone(), Some(wanted.chain.clone()));
        let rule = Some(wanted.rule.clone());
        let answer = nftables::delete(cx, table, chain, None, rule, family.clone())?;
        if !worked(&answer) {
            return Err(Error::failed(format!(
                "Failed to delete nftables rule for {name}.\nAttempted rule was {}",
                wanted.rule
            )));
        }
        wanted.kept(cx, family)?;
        Ok(Applied::as_planned())
    }
}

/// Make sure that a chain exists.
#[derive(Args)]
pub struct ChainPresent {
    /// The chain.
    name: String,
    /// Its table.
    #[default("filter".to_owned())]
    table: String,
    /// What it filters: `filter`, `nat`, `route`.
    table_type: Option<String>,
    /// Where it hooks in.
    hook: Option<String>,
    /// In which order.
    priority: Option<Value>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
}

impl State for ChainPresent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let (table, family) = (self.table.clone(), self.family.clone());
        Ok(worked(&nftables::check_chain(cx, table, Some(self.name.clone()), family)?))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Self { name, table, family, .. } = self;
        if *there {
            return Ok(Plan::nothing(format!(
                "nftables {name} chain is already exist in {table} table for {family}"
            )));
        }
        Ok(Plan::change("locale", name)
            .pending(format!(
                "nftables chain {name} would be created in table {table} for family {family}"
            ))
            .done(format!("nftables {name} chain in {table} table create success for {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Self { name, table, family, .. } = self;
        let answer = nftables::new_chain(
            cx,
            table.clone(),
            Some(name.clone()),
            self.table_type.clone(),
            self.hook.clone(),
            self.priority.clone(),
            family.clone(),
        )?;
        Applied::if_done(worked(&answer), || {
            format!(
                "Failed to create {name} chain in {table} table: {} for {family}",
                said(&answer)
            )
        })
    }
}

/// Make sure that a chain does not exist.
#[derive(Args)]
pub struct ChainAbsent {
    /// The chain.
    name: String,
    /// Its table.
    #[default("filter".to_owned())]
    table: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
}

impl State for ChainAbsent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let (table, family) = (self.table.clone(), self.family.clone());
        Ok(worked(&nftables::check_chain(cx, table, Some(self.name.clone()), family)?))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Self { name, table, family } = self;
        if !there {
            return Ok(Plan::nothing(format!(
                "nftables {name} chain is already absent in {table} table for {family}"
            )));
        }
        Ok(Plan::change("locale", name)
            .pending(format!(
                "nftables chain {name} would be deleted from table {table} for family {family}"
            ))
            .done(format!("nftables {name} chain in {table} table delete success for {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Self { name, table, family } = self;
        // A chain with rules cannot be removed.
        nftables::flush(cx, table.clone(), name.clone(), family.clone())?;
        let answer = nftables::delete_chain(cx, table.clone(), Some(name.clone()), family.clone())?;
        Applied::if_done(worked(&answer), || {
            format!(
                "Failed to delete {name} chain in {table} table: {} for {family}",
                said(&answer)
            )
        })
    }
}

/// Make sure that a table exists.
#[derive(Args)]
pub struct TablePresent {
    /// The table.
    name: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
    /// Not looked at.
    #[expect(dead_code, reason = "Salt takes anything here")]
    kwargs: Rest,
}

impl State for TablePresent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(worked(&nftables::check_table(cx, Some(self.name.clone()), self.family.clone())?))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Self { name, family, .. } = self;
        if *there {
            let text = format!("nftables table {name} already exists in family {family}");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("nftables table {name} would be created in family {family}"))
            .done(format!("nftables table {name} successfully created in family {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Self { name, family, .. } = self;
        if worked(&nftables::new_table(cx, name.clone(), family.clone())?) {
            return Ok(Applied::as_planned());
        }
        let text = format!("Failed to create table {name} for family {family}");
        Err(Error::failed(text))
    }
}

/// Make sure that a table does not exist.
#[derive(Args)]
pub struct TableAbsent {
    /// The table.
    name: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
    /// Not looked at.
    #[expect(dead_code, reason = "Salt takes anything here")]
    kwargs: Rest,
}

impl State for TableAbsent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(worked(&nftables::check_table(cx, Some(self.name.clone()), self.family.clone())?))
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let Self { name, family, .. } = self;
        if !there {
            let text = format!("nftables table {name} is already absent from family {family}");
            return Ok(Plan::nothing(text));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("nftables table {name} would be deleted from family {family}"))
            .done(format!("nftables table {name} successfully deleted from family {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let Self { name, family, .. } = self;
        if worked(&nftables::delete_table(cx, name.clone(), family.clone())?) {
            return Ok(Applied::as_planned());
        }
        let text = format!("Failed to delete table {name} from family {family}");
        Err(Error::failed(text))
    }
}

/// Make sure of what happens to packets no rule speaks of.
#[derive(Args)]
pub struct SetPolicy {
    /// Any name.
    name: String,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
    /// `chain`, `policy`, `save`.
    kwargs: Rest,
}

impl SetPolicy {
    fn part(&self, name: &str) -> String {
        text_of(&self.kwargs.kwargs, name).unwrap_or_default()
    }

    fn saves(&self) -> bool {
        self.kwargs.kwargs.get("save").is_some_and(|save| save.truthy())
    }
}

impl State for SetPolicy {
    type Seen = Option<String>;

    fn observe(&self, cx: &Cx) -> Result<Option<String>> {
        let (table, family) = (self.table.clone(), self.family.clone());
        nftables::get_policy(cx, table, Some(self.part("chain")), family)
    }

    fn plan(&self, policy: &Option<String>) -> Result<Plan> {
        let Self { name, table, family, .. } = self;
        let (chain, wanted) = (self.part("chain"), self.part("policy"));
        let what =
            format!("nftables default policy for chain {chain} on table {table} for {family}");
        if policy.as_ref().is_some_and(|policy| policy.eq_ignore_ascii_case(&wanted)) {
            return Ok(Plan::nothing(format!("{what} already set to {wanted}")));
        }
        let verb = if self.saves() { "Set and saved" } else { "Set" };
        Ok(Plan::change("locale", name)
            .pending(format!("{what} needs to be set to {wanted}"))
            .done(format!("{verb} default policy for {chain} to {wanted} family {family}")))
    }

    fn apply(&self, cx: &Cx, _: Option<String>) -> Result<Applied> {
        let (table, family) = (self.table.clone(), self.family.clone());
        let (chain, policy) = (self.part("chain"), self.part("policy").to_lowercase());
        if !nftables::set_policy(cx, table, Some(chain), Some(policy), family.clone())? {
            return Err(Error::failed("Failed to set nftables default policy"));
        }
        if self.saves() {
            nftables::save(cx, None, family)?;
        }
        Ok(Applied::as_planned())
    }
}

/// Remove all rules of a chain, or of a table.
#[derive(Args)]
pub struct Flush {
    /// Any name.
    name: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
    /// It is well when there is no such table or chain.
    #[default(false)]
    ignore_absence: bool,
    /// `table`, `chain`.
    kwargs: Rest,
}

impl State for Flush {
    type Seen = ();

    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::change("locale", &self.name).pending("nftables flush not performed in test mode."))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let family = &self.family;
        let part = |name: &str| text_of(&self.kwargs.kwargs, name);
        let table = part("table").unwrap_or_else(|| "filter".into());
        let chain = part("chain").unwrap_or_default();
        let answer = nftables::flush(cx, table.clone(), chain.clone(), family.clone())?;
        if worked(&answer) {
            let text =
                format!("Flush nftables rules in {table} table {chain} chain {family} family");
            return Ok(Applied::as_planned().comment(text));
        }
        if self.ignore_absence && said(&answer).contains("does not exist") {
            return Ok(Applied::changes(Dict::new()).comment(said(&answer)));
        }
        let place = match chain.as_str() {
            "" => None,
            chain => {
                let there =
                    nftables::check_chain(cx, table.clone(), Some(chain.into()), family.clone())?;
                (!worked(&there))
                    .then(|| format!("chain {chain} in table {table} in family {family}, chain"))
            }
        };
        let there = nftables::check_table(cx, Some(table.clone()), family.clone())?;
        let place = match worked(&there) {
            true => place,
            false => Some(format!("table {table} in family {family}, table")),
        };
        Err(Error::failed(match place {
            Some(place) => format!("Failed to flush {place} does not exist."),
            None => "Failed to flush nftables rules".to_owned(),
        }))
    }
}
