//! `group`: groups of accounts (Salt's `groupadd` on Linux).
//!
//! As in `user`: looking through the name service or the files below a root, changing with the
//! tools of the shadow suite.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host, module};
use halite_value::{Dict, Value, entries};

use crate::user::change;

module! {
    /// Groups of accounts.
    "group": add, delete, info, getent, chgid, adduser, deluser, members,
}

fn groups_below(cx: &Cx, root: &str) -> Result<Vec<host::Group>> {
    let root = if root.is_empty() { "/" } else { root };
    let text = cx.host.read_text(&Path::new(root).join("etc/group"))?;
    let groups = text.lines().filter_map(|line| {
        let mut parts = line.trim().split(':');
        let (name, passwd, gid) = (parts.next()?, parts.next()?, parts.next()?);
        let members = parts.next()?.split(',').filter(|name| !name.is_empty());
        Some(host::Group {
            name: name.into(),
            gid: gid.parse().ok()?,
            members: members.map(str::to_owned).collect(),
            passwd: passwd.into(),
        })
    });
    Ok(groups.collect())
}

/// Returns a group, from the name service or the files below a root.
pub fn find(cx: &Cx, name: &str, root: Option<&str>) -> Result<Option<host::Group>> {
    match root {
        None => Ok(cx.host.group_named(name)?),
        Some(root) => Ok(groups_below(cx, root)?.into_iter().find(|group| group.name == name)),
    }
}

fn checked(name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with('-') || name.contains([':', '\n', '\0', '/']) {
        return Err(Error::invalid(format!("'{name}' cannot be the name of a group")));
    }
    Ok(())
}

/// Describes a group as `group.info` does.
pub fn described(group: &host::Group) -> Dict {
    entries! {
        "name" => &group.name, "passwd" => &group.passwd, "gid" => group.gid,
        "members" => Value::list(group.members.clone()),
    }
}

/// Add a group.
///
/// ```console
/// $ salt web1 group.add ops
/// ```
#[function]
pub fn add(
    cx: &Cx,
    /// Its name.
    name: String,
    /// Its number.
    gid: Option<Value>,
    /// A service's group, with a small number.
    #[default(false)]
    system: bool,
    /// Work on the files below this folder.
    root: Option<String>,
    /// Allow a number another group has.
    #[default(false)]
    non_unique: bool,
    /// Use the local files only.
    #[default(false)]
    local: bool,
) -> Result<bool> {
    checked(&name)?;
    let mut line = Vec::new();
    if let Some(gid) = gid.filter(Value::truthy) {
        line.extend(["-g".to_owned(), gid.to_string()]);
        if non_unique && !local {
            line.push("-o".to_owned());
        }
    }
    if system {
        line.push("-r".to_owned());
    }
    if let Some(root) = root.filter(|_| !local) {
        line.extend(["-R".to_owned(), root]);
    }
    line.push(name);
    Ok(change(cx, if local { "lgroupadd" } else { "groupadd" }, &line)?.ok())
}

/// Remove a group.
///
/// ```console
/// $ salt web1 group.delete ops
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// Its name.
    name: String,
    /// Work on the files below this folder.
    root: Option<String>,
    /// Use the local files only.
    #[default(false)]
    local: bool,
) -> Result<bool> {
    checked(&name)?;
    let mut line = Vec::new();
    if let Some(root) = root.filter(|_| !local) {
        line.extend(["-R".to_owned(), root]);
    }
    line.push(name);
    Ok(change(cx, if local { "lgroupdel" } else { "groupdel" }, &line)?.ok())
}

/// Return what is known of a group; an empty dict if there is none.
///
/// ```console
/// $ salt web1 group.info ops
/// ```
#[function]
pub fn info(
    cx: &Cx,
    /// The group.
    name: String,
    /// Look into the files below this folder.
    root: Option<String>,
) -> Result<Dict> {
    Ok(find(cx, &name, root.as_deref())?.map(|group| described(&group)).unwrap_or_default())
}

/// Return what is known of every group.
///
/// ```console
/// $ salt web1 group.getent
/// ```
#[function]
pub fn getent(
    cx: &Cx,
    /// Accepted for old callers: nothing is remembered between calls.
    #[default(false)]
    refresh: bool,
    /// Look into the files below this folder.
    root: Option<String>,
) -> Result<Value> {
    let _ = refresh;
    let groups = match root {
        Some(root) => groups_below(cx, &root)?,
        None => cx.host.groups()?,
    };
    Ok(Value::list(groups.iter().map(described)))
}

/// Change the number of a group.
///
/// ```console
/// $ salt web1 group.chgid ops 2100
/// ```
#[function]
pub fn chgid(
    cx: &Cx,
    /// The group.
    name: String,
    /// The number.
    gid: i64,
    /// Work on the files below this folder.
    root: Option<String>,
    /// Allow a number another group has.
    #[default(false)]
    non_unique: bool,
) -> Result<bool> {
    checked(&name)?;
    let root = root.as_deref();
    let has = |group: &host::Group| i64::from(group.gid) == gid;
    match find(cx, &name, root)? {
        None => return Ok(false),
        Some(group) if has(&group) => return Ok(true),
        Some(_) => {}
    }
    let mut line = Vec::new();
    if let Some(root) = root {
        line.extend(["-R".to_owned(), root.to_owned()]);
    }
    let option = if non_unique { "-og" } else { "-g" };
    line.extend([option.to_owned(), gid.to_string(), name.clone()]);
    change(cx, "groupmod", &line)?;
    Ok(find(cx, &name, root)?.is_some_and(|group| has(&group)))
}

fn gpasswd(cx: &Cx, option: &str, user: &str, group: &str, root: Option<&str>) -> Result<bool> {
    checked(group)?;
    if user.starts_with('-') {
        return Err(Error::invalid(format!("'{user}' cannot be the name of an account")));
    }
    let mut line = vec![option.to_owned(), user.to_owned(), group.to_owned()];
    if let Some(root) = root {
        line.extend(["--root".to_owned(), root.to_owned()]);
    }
    Ok(change(cx, "gpasswd", &line)?.ok())
}

/// Put an account into a group.
///
/// ```console
/// $ salt web1 group.adduser ops ada
/// ```
#[function]
pub fn adduser(
    cx: &Cx,
    /// The group.
    name: String,
    /// The account.
    username: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    gpasswd(cx, "--add", &username, &name, root.as_deref())
}

/// Take an account out of a group.
///
/// ```console
/// $ salt web1 group.deluser ops ada
/// ```
#[function]
pub fn deluser(
    cx: &Cx,
    /// The group.
    name: String,
    /// The account.
    username: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    let member = find(cx, &name, None)?.is_some_and(|group| group.members.contains(&username));
    if !member {
        return Ok(true);
    }
    gpasswd(cx, "--del", &username, &name, root.as_deref())
}

/// Set the accounts a group has.
///
/// ```console
/// $ salt web1 group.members ops ada
/// ```
#[function]
pub fn members(
    cx: &Cx,
    /// The group.
    name: String,
    /// The accounts, with commas.
    members_list: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    checked(&name)?;
    let mut line = vec!["--members".to_owned(), members_list, name];
    if let Some(root) = root {
        line.extend(["--root".to_owned(), root]);
    }
    Ok(change(cx, "gpasswd", &line)?.ok())
}
