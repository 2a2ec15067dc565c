//! `acl`: access control lists of files.

use std::path::Path;

use halite_modules::acl;
use halite_spec::{Applied, Args, Cx, Error, Keys, Need, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, dict, entries};

states! {
    /// Access control lists of files.
    "acl", needs = [
        Need::program(&["getfacl"], "The linux_acl state cannot be loaded: the getfacl or setfacl binary is not in the path."),
        Need::program(&["setfacl"], "The linux_acl state cannot be loaded: the getfacl or setfacl binary is not in the path."),
    ]: "present" => Present,
    "absent" => Absent,
    "list_present" => ListPresent,
    "list_absent" => ListAbsent,
}

/// The number of `rwx`, in any order, with or without dashes; or a number itself.
fn octal(perms: &str) -> i64 {
    if let Ok(number) = perms.parse::<i64>() {
        return number;
    }
    let has = |letter: char| i64::from(perms.contains(letter));
    4 * has('r') + 2 * has('w') + has('x') + i64::from(perms.contains('X'))
}

fn letters(octal: i64) -> String {
    let letter = |bit: i64, letter: &'static str| if octal & bit != 0 { letter } else { "-" };
    [letter(4, "r"), letter(2, "w"), letter(1, "x")].concat()
}

/// What all four states look at.
pub struct Lists {
    /// Name → number, of the first file; everybody who has an entry.
    own: Vec<(String, i64)>,
    /// Files below that have it otherwise.
    deviating: bool,
}

fn numbers(file: &Value, acl_type: &str) -> Vec<(String, i64)> {
    let Some((letter, default)) = acl::kind_of(acl_type) else { return Vec::new() };
    let kind = match letter {
        "u" => "user",
        "g" => "group",
        "m" => "mask",
        _ => "other",
    };
    let section = if default { file.get("defaults") } else { Some(file.clone()) };
    let list = section.and_then(|section| section.get(kind));
    let list = list.and_then(|list| list.items_of_sequence()).unwrap_or_default();
    let entries = list.iter().filter_map(Value::as_dict).flatten();
    entries
        .map(|(name, about)| {
            let number = about.get("octal").and_then(|number| number.as_int()).unwrap_or(0);
            (name.to_string(), number)
        })
        .collect()
}

fn observe(
    cx: &Cx,
    path: &str,
    acl_type: &str,
    names: &[String],
    recurse: bool,
    wanted: Option<i64>,
) -> Result<Lists> {
    if !cx.host.exists(Path::new(path))? {
        return Err(Error::failed(format!("{path} does not exist")));
    }
    if acl::kind_of(acl_type).is_none() {
        return Err(Error::failed("ACL Type does not exist"));
    }
    let kwargs = entries! { "recursive" => recurse };
    let found = acl::getfacl(cx, Rest { args: vec![path.into()], kwargs })?;
    let files: Vec<Value> = found.values();
    let own = files.first().map(|file| numbers(file, acl_type)).unwrap_or_default();
    let deviating = files.iter().skip(1).any(|file| {
        let theirs = numbers(file, acl_type);
        names.iter().any(|name| {
            let number = theirs.iter().find(|(own, _)| own == name).map(|(_, number)| *number);
            match wanted {
                Some(wanted) => number != Some(wanted),
                None => number.is_some(),
            }
        })
    });
    Ok(Lists { own, deviating })
}

impl Lists {
    fn of(&self, name: &str) -> Option<i64> {
        self.own.iter().find(|(own, _)| own == name).map(|(_, number)| *number)
    }
}

fn entry(names: &str, acl_type: &str, perms: &str) -> Value {
    dict! { "acl_name" => names, "acl_type" => acl_type, "perms" => perms }
}

fn target(path: &str, recurse: bool) -> Rest {
    Rest {
        args: vec![path.into()],
        kwargs: entries! { "recursive" => recurse, "raise_err" => true },
    }
}

/// Make sure that somebody may do this with a file.
#[derive(Args)]
pub struct Present {
    /// The file.
    name: String,
    /// `user`, `group`, `mask`, `other`; `default:user` …
    acl_type: String,
    /// Whose entry.
    #[default(String::new())]
    acl_name: String,
    /// `rwx`.
    #[default(String::new())]
    perms: String,
    /// Everything below it, too.
    #[default(false)]
    recurse: bool,
    /// Remove all other entries first.
    #[default(false)]
    force: bool,
}

impl State for Present {
    type Seen = Lists;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Lists> {
        let names = [self.acl_name.clone()];
        let wanted = Some(octal(&self.perms));
        observe(cx, &self.name, &self.acl_type, &names, self.recurse, wanted)
    }

    fn plan(&self, lists: &Lists) -> Result<Plan> {
        let Self { acl_name, acl_type, perms, .. } = self;
        let new = entry(acl_name, acl_type, perms);
        // Without a name the owner is meant.
        let own = match acl_name.is_empty() {
            true => lists.own.first().map(|(_, number)| *number),
            false => lists.of(acl_name),
        };
        match own {
            Some(own) if own == octal(perms) && !lists.deviating => {
                Ok(Plan::nothing("Permissions are in the desired state"))
            }
            Some(own) => {
                let old = entry(acl_name, acl_type, &letters(own));
                Ok(Plan::change("new", new)
                    .and("old", old)
                    .pending(format!(
                        "Updated permissions will be applied for {acl_name}: {} -> {perms}",
                        letters(own)
                    ))
                    .done(format!("Updated permissions for {acl_name}")))
            }
            None => Ok(Plan::change("new", new)
                .pending(format!("New permissions will be applied for {acl_name}: {perms}"))
                .done(format!("Applied new permissions for {acl_name}"))),
        }
    }

    fn apply(&self, cx: &Cx, _: Lists) -> Result<Applied> {
        if self.force {
            acl::wipefacls(cx, target(&self.name, self.recurse))?;
        }
        let (kind, name) = (self.acl_type.clone(), self.acl_name.as_str().into());
        match acl::modfacl(cx, kind, name, self.perms.clone(), target(&self.name, self.recurse)) {
            Ok(_) => Ok(Applied::as_planned()),
            Err(Error::Failed(text)) => {
                let name = &self.acl_name;
                Err(Error::failed(format!("Error updating permissions for {name}: {text}")))
            }
            Err(error) => Err(error),
        }
    }
}

/// Make sure that nothing is said about what somebody may do with a file.
#[derive(Args)]
pub struct Absent {
    /// The file.
    name: String,
    /// `user`, `group`, `mask`, `other`; `default:user` …
    acl_type: String,
    /// Whose entry.
    #[default(String::new())]
    acl_name: String,
    /// Not looked at.
    #[default(String::new())]
    #[expect(dead_code, reason = "Salt takes it, for symmetry with present")]
    perms: String,
    /// Everything below it, too.
    #[default(false)]
    recurse: bool,
}

impl State for Absent {
    type Seen = Lists;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Lists> {
        let names = [self.acl_name.clone()];
        observe(cx, &self.name, &self.acl_type, &names, self.recurse, None)
    }

    fn plan(&self, lists: &Lists) -> Result<Plan> {
        if lists.of(&self.acl_name).is_none() && !lists.deviating {
            return Ok(Plan::nothing("Permissions are in the desired state"));
        }
        Ok(Plan::unknown().pending("Removing permissions").done("Removing permissions"))
    }

    fn apply(&self, cx: &Cx, _: Lists) -> Result<Applied> {
        let (kind, name) = (self.acl_type.clone(), self.acl_name.as_str().into());
        if acl::delfacl(cx, kind, name, target(&self.name, self.recurse))? {
            return Ok(Applied::changes(Dict::new()));
        }
        Err(Error::failed(format!("Error removing permissions for {}", self.acl_name)))
    }
}

/// Make sure that several may do this with a file.
#[derive(Args)]
pub struct ListPresent {
    /// The file.
    name: String,
    /// `user`, `group`, `mask`, `other`; `default:user` …
    acl_type: String,
    /// Whose entries.
    acl_names: Option<Vec<String>>,
    /// `rwx`.
    #[default(String::new())]
    perms: String,
    /// Everything below it, too.
    #[default(false)]
    recurse: bool,
    /// Remove all other entries first.
    #[default(false)]
    force: bool,
}

impl ListPresent {
    fn names(&self) -> Vec<String> {
        self.acl_names.clone().unwrap_or_default()
    }
}

impl State for ListPresent {
    type Seen = Lists;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    fn observe(&self, cx: &Cx) -> Result<Lists> {
        let wanted = Some(octal(&self.perms));
        observe(cx, &self.name, &self.acl_type, &self.names(), self.recurse, wanted)
    }

    fn plan(&self, lists: &Lists) -> Result<Plan> {
        let (names, wanted) = (self.names(), octal(&self.perms));
        let right = names.iter().all(|name| lists.of(name) == Some(wanted));
        if right && !lists.deviating {
            return Ok(Plan::nothing("Permissions are in the desired state"));
        }
        let all = names.join(", ");
        let new = entry(&all, &self.acl_type, &self.perms);
        let known: Vec<&String> = names.iter().filter(|name| lists.of(name).is_some()).collect();
        if let Some(first) = known.first() {
            let was = letters(lists.of(first).unwrap_or(0));
            let old = entry(&all, &self.acl_type, &was);
            return Ok(Plan::change("new", new)
                .and("old", old)
                .pending(format!(
                    "Updated permissions will be applied for {all}: {was} -> {}",
                    self.perms
                ))
                .done(format!("Applied new permissions for {all}")));
        }
        Ok(Plan::change("new", new)
            .pending(format!("New permissions will be applied for {all}: {}", self.perms))
            .done(format!("Applied new permissions for {all}")))
    }

    fn apply(&self, cx: &Cx, _: Lists) -> Result<Applied> {
        if self.force {
            acl::wipefacls(cx, target(&self.name, self.recurse))?;
        }
        let (kind, names) = (self.acl_type.clone(), Value::list(self.names()));
        match acl::modfacl(cx, kind, names, self.perms.clone(), target(&self.name, self.recurse)) {
            Ok(_) => Ok(Applied::as_planned()),
            Err(Error::Failed(text)) => {
                let names = self.names().join(", ");
                Err(Error::failed(format!("Error updating permissions for {names}: {text}")))
            }
            Err(error) => Err(error),
        }
    }
}

/// Make sure that nothing is said about what several may do with a file.
#[derive(Args)]
pub struct ListAbsent {
    /// The file.
    name: String,
    /// `user`, `group`, `mask`, `other`; `default:user` …
    acl_type: String,
    /// Whose entries.
    acl_names: Option<Vec<String>>,
    /// Everything below it, too.
    #[default(false)]
    recurse: bool,
}

impl State for ListAbsent {
    type Seen = Lists;
    const KEYS: Keys = Keys(["name", "result", "changes", "comment"]);

    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Lists> {
        let names = self.acl_names.clone().unwrap_or_default();
        observe(cx, &self.name, &self.acl_type, &names, self.recurse, None)
    }

    fn plan(&self, lists: &Lists) -> Result<Plan> {
        let mut names = self.acl_names.iter().flatten();
        if names.all(|name| lists.of(name).is_none()) && !lists.deviating {
            return Ok(Plan::nothing("Permissions are in the desired state"));
        }
        Ok(Plan::unknown().pending("Removing permissions").done("Removing permissions"))
    }

    fn apply(&self, cx: &Cx, lists: Lists) -> Result<Applied> {
        // Those without an entry would make setfacl fail.
        let names = self.acl_names.iter().flatten();
        let names = names.filter(|name| lists.of(name).is_some() || lists.deviating).cloned();
        let (kind, names) = (self.acl_type.clone(), Value::list(names));
        if acl::delfacl(cx, kind, names, target(&self.name, self.recurse))? {
            return Ok(Applied::changes(Dict::new()));
        }
        Err(Error::failed("Error removing permissions"))
    }
}
