//! `group`: groups that are there as declared, or are not there.

use std::collections::BTreeSet;

use halite_modules::group;
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, host::Group, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Groups of accounts.
    "group": "present" => Present,
    "absent" => Absent,
}

/// Make sure that a group exists and has the declared members.
#[derive(Args)]
pub struct Present {
    /// The group.
    name: String,
    /// Its number.
    gid: Option<Value>,
    /// A service's group, with a small number.
    #[default(false)]
    system: bool,
    /// Accounts to add.
    addusers: Option<Vec<String>>,
    /// Accounts to remove.
    delusers: Option<Vec<String>>,
    /// Exactly these accounts.
    members: Option<Vec<String>>,
    /// Allow a number another group has.
    #[default(false)]
    non_unique: bool,
    /// Use the local files only.
    #[default(false)]
    local: bool,
}

type Differences = Vec<(&'static str, Value)>;

impl Present {
    fn find(&self, cx: &Cx) -> Result<Option<Group>> {
        group::find(cx, &self.name, self.local.then_some("/"))
    }

    fn number(&self) -> Result<Option<i64>> {
        let Some(gid) = self.gid.as_ref().filter(|gid| gid.truthy()) else { return Ok(None) };
        let number = match gid {
            Value::Str(text) => text.trim().parse().ok(),
            other => other.to_int(),
        };
        number.map(Some).ok_or_else(|| Error::failed("Invalid gid"))
    }

    /// What differs, in Salt's words and order.
    fn differences(&self, group: &Group) -> Result<Differences> {
        let mut found = Differences::new();
        if let Some(gid) = self.number()?.filter(|gid| *gid != i64::from(group.gid)) {
            found.push(("gid", gid.into()));
        }
        let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        match &self.members {
            Some(members) if set(members) == set(&group.members) => {}
            Some(members) if members.is_empty() => {
                found.push(("delusers", Value::list(group.members.clone())));
            }
            Some(members) => found.push(("members", Value::list(members.clone()))),
            None => {}
        }
        let in_it = |user: &&String| group.members.contains(user);
        let add: Vec<String> =
            self.addusers.iter().flatten().filter(|user| !in_it(user)).cloned().collect();
        if !add.is_empty() {
            found.push(("addusers", Value::list(add)));
        }
        let remove: Vec<String> = self.delusers.iter().flatten().filter(in_it).cloned().collect();
        if !remove.is_empty() {
            found.push(("delusers", Value::list(remove)));
        }
        Ok(found)
    }

    fn shown(&self, found: &Differences) -> String {
        let mut text = "The following group attributes are set to be changed:\n".to_owned();
        for (word, value) in found {
            // Salt shows the members of a group to be emptied as a set.
            let emptied = *word == "delusers" && self.members.is_some();
            let items = value.items_of_sequence().unwrap_or_default();
            let shown = if emptied {
                let items: Vec<String> = items.iter().map(Value::repr).collect();
                format!("{{{}}}", items.join(", "))
            } else {
                value.to_string()
            };
            text += &format!("{word}: {shown}\n");
        }
        text
    }

    fn change(&self, cx: &Cx, found: &Differences) -> Result<Applied> {
        let name = || self.name.clone();
        for (word, value) in found {
            let users = value.items_of_sequence().unwrap_or_default();
            match *word {
                "gid" => {
                    let gid = value.to_int().unwrap_or_default();
                    group::chgid(cx, name(), gid, None, self.non_unique)?;
                }
                "addusers" => {
                    for user in users {
                        group::adduser(cx, name(), user.to_string(), None)?;
                    }
                }
                "delusers" => {
                    for user in users {
                        group::deluser(cx, name(), user.to_string(), None)?;
                    }
                }
                _ => {
                    let users: Vec<String> = users.iter().map(Value::to_string).collect();
                    group::members(cx, name(), users.join(","), None)?;
                }
            }
        }
        let text = self.shown(found);
        let left = match self.find(cx)? {
            Some(group) => self.differences(&group)?,
            None => Vec::new(),
        };
        if !left.is_empty() {
            let left: Dict = left.into_iter().collect();
            let changes = entries! { "Failed" => left };
            return Ok(Applied::failed(changes, text + "Some changes could not be applied"));
        }
        Ok(Applied::changes(entries! { "Final" => "All changes applied successfully" }))
    }

    fn add(&self, cx: &Cx) -> Result<Applied> {
        let name = || self.name.clone();
        // Zero is no number to change to, but it is one that can be taken.
        let zero = self.gid.as_ref().filter(|gid| **gid == Value::Int(0)).map(|_| 0);
        if let Some(gid) = self.number()?.or(zero).filter(|_| !self.non_unique) {
            let taken =
                u32::try_from(gid).ok().map(|gid| cx.host.group_with_id(gid)).transpose()?;
            if let Some(other) = taken.flatten() {
                return Err(Error::failed(format!(
                    "Group {} is not present but gid {gid} is already taken by group {}",
                    self.name, other.name
                )));
            }
        }
        let gid = self.gid.clone();
        if !group::add(cx, name(), gid, self.system, None, self.non_unique, self.local)? {
            return Err(Error::failed(format!("Failed to create new group {}", self.name)));
        }
        let given = |users: &Option<Vec<String>>| users.clone().filter(|users| !users.is_empty());
        if let Some(users) = given(&self.addusers).or_else(|| given(&self.members)) {
            group::members(cx, name(), users.join(","), None)?;
        }
        let made = self.find(cx)?;
        let left = match &made {
            Some(group) => self.differences(group)?,
            None => Vec::new(),
        };
        if !left.is_empty() {
            let comment = format!(
                "Group {} has been created but, some changes could not be applied",
                self.name
            );
            let left: Dict = left.into_iter().collect();
            return Ok(Applied::failed(entries! { "Failed" => left }, comment));
        }
        let changes = made.map(|group| group::described(&group)).unwrap_or_default();
        Ok(Applied::changes(changes).comment(format!("New group {} created", self.name)))
    }
}

impl State for Present {
    type Seen = Option<Group>;

    fn observe(&self, cx: &Cx) -> Result<Option<Group>> {
        // differs: Salt's result here is None, as if it were a test; it is a mistake in the tree.
        if self.members.is_some() && (self.addusers.is_some() || self.delusers.is_some()) {
            return Err(Error::failed(
                "Error: Conflicting options \"members\" with \"addusers\" and/or \"delusers\" can \
                 not be used together. ",
            ));
        }
        let removed = self.delusers.iter().flatten();
        if removed.into_iter().any(|user| self.addusers.iter().flatten().any(|own| own == user)) {
            return Err(Error::failed(
                "Error. Same user(s) can not be added and deleted simultaneously",
            ));
        }
        self.find(cx)
    }

    fn plan(&self, seen: &Option<Group>) -> Result<Plan> {
        let name = &self.name;
        let Some(group) = seen else {
            // Its number may be the machine's choice, so nothing is foretold.
            return Ok(Plan::unknown().pending(format!("Group {name} set to be added")));
        };
        let found = self.differences(group)?;
        if found.is_empty() {
            return Ok(Plan::nothing(format!("Group {name} is present and up to date")));
        }
        let text = self.shown(&found);
        Ok(Plan::unknown().pending(&text).done(text))
    }

    fn apply(&self, cx: &Cx, seen: Option<Group>) -> Result<Applied> {
        match seen {
            Some(group) => self.change(cx, &self.differences(&group)?),
            None => self.add(cx),
        }
    }
}

/// Make sure that there is no such group.
#[derive(Args)]
pub struct Absent {
    /// The group.
    name: String,
    /// Use the local files only.
    #[default(false)]
    local: bool,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        Ok(group::find(cx, &self.name, self.local.then_some("/"))?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        if !there {
            return Ok(Plan::nothing("Group not present"));
        }
        Ok(Plan::change(name, "")
            .pending(format!("Group {name} is set for removal"))
            .done(format!("Removed group {name}")))
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        Applied::if_done(group::delete(cx, self.name.clone(), None, self.local)?, || {
            format!("Failed to remove group {}", self.name)
        })
    }
}
