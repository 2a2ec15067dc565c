//! `ipset`: sets of addresses for the packet filter.
//!
//! Salt calls every change `locale`; so do we.

use halite_modules::ipset;
use halite_spec::{Applied, Args, Cx, Error, Need, Plan, Rest, Result, State, states};
use halite_value::Value;

states! {
    /// Sets of addresses for the packet filter.
    "ipset", needs = [
        Need::function("ipset.version", "ipset module could not be loaded"),
    ]: "set_present" => SetPresent,
    "set_absent" => SetAbsent,
    "present" => Present,
    "absent" => Absent,
    "flush" => Flush,
}

fn is_there(cx: &Cx, name: &str, family: &str) -> Result<bool> {
    let found = ipset::check_set(cx, Some(name.to_owned()), family.to_owned())?;
    Ok(found == Value::Bool(true))
}

/// Make sure that a set exists.
#[derive(Args)]
pub struct SetPresent {
    /// Its name.
    name: String,
    /// Its type: `hash:ip` …
    set_type: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// `comment`, and what the type takes: `hashsize`, `timeout` …
    kwargs: Rest,
}

impl State for SetPresent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        is_there(cx, &self.name, &self.family)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let (name, family) = (&self.name, &self.family);
        if *there {
            return Ok(Plan::nothing(format!("ipset set {name} already exists for {family}")));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("ipset set {name} would be added for {family}"))
            .done(format!("ipset set {name} created successfully for {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let (name, family) = (self.name.clone(), self.family.clone());
        let kwargs = self.kwargs.clone();
        let comment = kwargs.kwargs.remove("comment").is_some_and(|comment| comment.truthy());
        let kind = Some(self.set_type.clone());
        let made = ipset::new_set(cx, Some(name.clone()), kind, family.clone(), comment, kwargs)?;
        Applied::if_done(made == Value::Bool(true), || {
            format!("Failed to create set {name} for {family}: {made}")
        })
    }
}

/// Make sure that a set does not exist.
#[derive(Args)]
#[arg(open)]
pub struct SetAbsent {
    /// Its name.
    name: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
}

impl State for SetAbsent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        is_there(cx, &self.name, &self.family)
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let (name, family) = (&self.name, &self.family);
        if !there {
            return Ok(Plan::nothing(format!("ipset set {name} for {family} is already absent")));
        }
        Ok(Plan::change("locale", name)
            .pending(format!("ipset set {name} for {family} would be removed"))
            .done(format!("ipset set {name} deleted successfully for family {family}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        let (name, family) = (&self.name, &self.family);
        ipset::flush(cx, Some(name.clone()), family.clone())?;
        let gone = ipset::delete_set(cx, Some(name.clone()), family.clone())?;
        Applied::if_done(gone == Value::Bool(true), || {
            format!("Failed to delete set {name} for {family}: {gone}")
        })
    }
}

/// The entries given as one or as several.
fn entries_of(entry: Option<&Value>) -> Result<Vec<String>> {
    let Some(entry) = entry.filter(|entry| entry.truthy()) else {
        return Err(Error::failed("ipset entry must be specified"));
    };
    let entries = entry.items_of_sequence().unwrap_or_else(|| vec![entry.clone()]);
    Ok(entries.iter().map(Value::to_string).collect())
}

fn holds(cx: &Cx, set: &str, entry: &str, family: &str) -> Result<bool> {
    let found = ipset::check(cx, Some(set.to_owned()), Some(entry.into()), family.to_owned())?;
    Ok(found == Value::Bool(true))
}

fn meant(set: &str, entry: &str, family: &str) -> ipset::Entry {
    ipset::Entry {
        name: Some(set.to_owned()),
        entry: Some(entry.to_owned()),
        family: family.to_owned(),
        kwargs: Rest::default(),
    }
}

/// Make sure that entries are in a set.
#[derive(Args)]
pub struct Present {
    /// A name for the state.
    name: String,
    /// The entry, or several.
    entry: Option<Value>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// The set.
    #[arg(by_name)]
    #[default(String::new())]
    set_name: String,
    /// A comment for the entry.
    #[arg(by_name)]
    comment: Option<String>,
    /// `timeout` and what else an entry takes.
    kwargs: Rest,
}

impl Present {
    /// As it is written with its options.
    fn spelt(&self, entry: &str) -> String {
        let timeout = self.kwargs.kwargs.get("timeout").map(|time| format!(" timeout {time}"));
        let comment = self.comment.as_ref().filter(|_| !entry.contains("comment"));
        let comment = comment.map(|comment| format!(" comment {comment}"));
        format!("{entry}{}{}", timeout.unwrap_or_default(), comment.unwrap_or_default())
    }

    fn lines(&self, missing: &[(String, bool)], verb: &str) -> String {
        let (set, family) = (&self.set_name, &self.family);
        let line = |(entry, there): &(String, bool)| match there {
            true => format!("entry for {entry} already in set {set} for {family}\n"),
            false => format!("entry {entry} {verb} to set {set} for family {family}\n"),
        };
        missing.iter().map(line).collect()
    }
}

impl State for Present {
    type Seen = Vec<(String, bool)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let mut seen = Vec::new();
        for entry in entries_of(self.entry.as_ref())? {
            let there = holds(cx, &self.set_name, &entry, &self.family)?;
            seen.push((self.spelt(&entry), there));
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        if seen.iter().all(|(_, there)| *there) {
            return Ok(Plan::nothing(self.lines(seen, "")));
        }
        Ok(Plan::change("locale", &self.name)
            .pending(self.lines(seen, "would be added"))
            .done(self.lines(seen, "added")))
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let (set, family) = (&self.set_name, &self.family);
        for (entry, _) in seen.iter().filter(|(_, there)| !there) {
            let said = ipset::add(cx, meant(set, entry, family))?.to_string();
            if said.starts_with("Error") {
                return Err(Error::failed(format!(
                    "Failed to add to entry {entry} to set {set} for family {family}.\n{said}"
                )));
            }
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that entries are not in a set.
#[derive(Args)]
#[arg(open)]
pub struct Absent {
    /// A name for the state.
    name: String,
    /// The entry, or several.
    entry: Option<Value>,
    /// Several entries.
    entries: Option<Value>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// The set.
    #[arg(by_name)]
    #[default(String::new())]
    set_name: String,
}

impl Absent {
    fn lines(&self, seen: &[(String, bool)], verb: &str) -> String {
        let (set, family) = (&self.set_name, &self.family);
        let line = |(entry, there): &(String, bool)| match there {
            true => format!("ipset entry {entry} {verb} from set {set} for {family}\n"),
            false => format!("ipset entry for {entry} not present in set {set} for {family}\n"),
        };
        seen.iter().map(line).collect()
    }
}

impl State for Absent {
    type Seen = Vec<(String, bool)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let mut seen = Vec::new();
        for entry in entries_of(self.entries.as_ref().or(self.entry.as_ref()))? {
            let there = holds(cx, &self.set_name, &entry, &self.family)?;
            seen.push((entry, there));
        }
        Ok(seen)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        if seen.iter().all(|(_, there)| !there) {
            return Ok(Plan::nothing(self.lines(seen, "")));
        }
        Ok(Plan::change("locale", &self.name)
            .pending(self.lines(seen, "would be removed"))
            .done(self.lines(seen, "removed")))
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let (set, family) = (&self.set_name, &self.family);
        for (entry, _) in seen.iter().filter(|(_, there)| *there) {
            let said = ipset::delete(cx, meant(set, entry, family))?.to_string();
            if said.starts_with("Error") {
                return Err(Error::failed(format!(
                    "Failed to delete ipset entry from set {set} for {family}. Attempted entry was \
                     {entry}.\n{said}\n"
                )));
            }
        }
        Ok(Applied::as_planned())
    }
}

/// Empty a set.
#[derive(Args)]
#[arg(open)]
pub struct Flush {
    /// The set.
    name: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
}

impl State for Flush {
    type Seen = ();

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<()> {
        let (name, family) = (&self.name, &self.family);
        if is_there(cx, name, family)? {
            return Ok(());
        }
        Err(Error::failed(format!("ipset set {name} does not exist for {family}")))
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let (name, family) = (&self.name, &self.family);
        Ok(Plan::change("locale", name)
            .pending(format!("ipset entries in set {name} for {family} would be flushed"))
            .done(format!("Flushed ipset entries from set {name} for {family}")))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let (name, family) = (&self.name, &self.family);
        Applied::if_done(ipset::flush(cx, Some(name.clone()), family.clone())?, || {
            format!("Failed to flush ipset entries from set {name} for {family}")
        })
    }
}
