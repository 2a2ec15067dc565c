//! `file`: states of files, folders and links.
//!
//! Each state computes in `observe` everything it would do, with the pure functions of
//! `modules::file`; [`Found`] carries the plan and the prepared work to `apply`. So `test=True`
//! shows exactly what would be written.
//!
//! Surprising: for some states Salt tells other `changes` in a test than after the work (`newfile`
//! against `diff: New file`). Tools read both, so both are told as Salt tells them.

mod absent;
mod accumulated;
mod cached;
mod clean;
mod copied;
mod directory;
mod edited;
mod grown;
mod keyvalue;
mod linked;
mod managed;
mod node;
mod patched;
mod recursed;
mod retained;
mod serialized;
mod touched;

use halite_modules::file::{
    paths::{expand_user, is_abs},
    perms::Owner,
};
use halite_spec::{Cx, Error, Plan, Result, states};
use halite_value::Value;

use crate::beacon::{self, Watched};

pub use self::{
    absent::{Absent, Exists, Missing, Pruned, Tidied},
    accumulated::Accumulated,
    cached::{Cached, Decode, NotCached},
    copied::{Copied, Rename},
    directory::Directory,
    edited::{Blockreplace, Comment, Line, Replace, Uncomment},
    grown::{Append, Prepend},
    keyvalue::Keyvalue,
    linked::{Hardlink, Symlink},
    managed::Managed,
    node::Mknod,
    patched::Patch,
    recursed::Recurse,
    retained::RetentionSchedule,
    serialized::Serialize,
    touched::Touch,
};

states! {
    /// Manage files, folders and links.
    "file": "absent" => Absent,
    "accumulated" => Accumulated,
    "append" => Append,
    "blockreplace" => Blockreplace,
    "cached" => Cached,
    "comment" => Comment,
    "copy" => Copied,
    "decode" => Decode,
    "directory" => Directory,
    "exists" => Exists,
    "hardlink" => Hardlink,
    "keyvalue" => Keyvalue,
    "line" => Line,
    "managed" => Managed,
    "missing" => Missing,
    "mknod" => Mknod,
    "mod_beacon" => Watched<beacon::Files>,
    "not_cached" => NotCached,
    "patch" => Patch,
    "prepend" => Prepend,
    "pruned" => Pruned,
    "recurse" => Recurse,
    "rename" => Rename,
    "replace" => Replace,
    "retention_schedule" => RetentionSchedule,
    "serialize" => Serialize,
    "symlink" => Symlink,
    "tidied" => Tidied,
    "touch" => Touch,
    "uncomment" => Uncomment,
}

/// What a look found: the plan for it, and the work prepared.
pub struct Found<W> {
    pub(crate) plan: Plan,
    pub(crate) work: Option<W>,
}

impl<W> Found<W> {
    /// Nothing to do.
    pub(crate) fn right(comment: impl Into<String>) -> Self {
        Self { plan: Plan::nothing(comment), work: None }
    }

    /// Nothing to do; Salt says it in other words in a test.
    pub(crate) fn right_but(in_test: impl Into<String>, comment: impl Into<String>) -> Self {
        Self { plan: Plan::nothing(in_test).done(comment), work: None }
    }

    pub(crate) fn todo(plan: Plan, work: W) -> Self {
        Self { plan, work: Some(work) }
    }
}

/// The name with its `~` replaced; it must be there and absolute.
fn absolute(cx: &Cx, name: &str, state: &str) -> Result<String> {
    let name = given(cx, name, state)?;
    must_be_absolute(&name)?;
    Ok(name)
}

fn must_be_absolute(name: &str) -> Result<()> {
    if is_abs(name) {
        return Ok(());
    }
    Err(Error::failed(format!("Specified file {name} is not an absolute path")))
}

fn given(cx: &Cx, name: &str, state: &str) -> Result<String> {
    if name.is_empty() {
        return Err(Error::failed(format!("Must provide name to file.{state}")));
    }
    Ok(expand_user(cx, name))
}

/// The name of a file that must be there.
fn existing(cx: &Cx, name: &str, state: &str) -> Result<String> {
    let name = absolute(cx, name, state)?;
    if cx.host.exists(std::path::Path::new(&name))? {
        Ok(name)
    } else {
        Err(Error::failed(format!("{name}: file not found")))
    }
}

/// Users and groups that do not exist. Salt tells it only when it works, not in a test: an earlier
/// state may be about to make them.
fn unknown_owners(cx: &Cx, user: Option<&Owner>, group: Option<&Owner>) -> Option<String> {
    let mut text = String::new();
    if let Some(user) = Owner::given(user)
        && user.uid(cx).is_none()
    {
        text.push_str(&format!("User {user} is not available "));
    }
    if let Some(group) = Owner::given(group)
        && group.gid(cx).is_none()
    {
        text.push_str(&format!("Group {group} is not available"));
    }
    (!text.is_empty()).then_some(text)
}

/// The user the minion runs as, and that user's group: who owns what nobody is named for.
fn default_owner(cx: &Cx, user: Option<&Owner>, group: Option<&Owner>) -> Result<(Owner, Owner)> {
    let user = Owner::given(user).cloned().unwrap_or_else(|| {
        let name = cx.opt_str("user").filter(|name| !name.is_empty());
        Owner::Name(name.map_or_else(|| "root".to_owned(), |name| name.to_string()))
    });
    if let Some(group) = Owner::given(group) {
        return Ok((user, group.clone()));
    }
    let account = match &user {
        Owner::Id(id) => cx.host.user_with_id(*id)?,
        Owner::Name(name) => cx.host.user_named(name)?,
    };
    let gid = account.map_or(0, |account| account.gid);
    let group = match cx.host.group_with_id(gid)? {
        Some(group) => Owner::Name(group.name),
        None => Owner::Id(gid),
    };
    Ok((user, group))
}

/// The value as Python's `str` writes it; what YAML says is an `OrderedDict` there.
fn text_by_kind(value: &Value) -> String {
    match value {
        Value::Dict(_) | Value::List(_) | Value::Tuple(_) => value.repr_by_kind(),
        other => other.to_str().to_string(),
    }
}

/// Texts given as one, as a list, or as anything else that can be written.
fn texts(value: &Value) -> Vec<String> {
    match value.items_of_sequence() {
        Some(items) => items.iter().map(text_by_kind).collect(),
        None => match value {
            Value::Bytes(bytes) => vec![String::from_utf8_lossy(bytes).into_owned()],
            other => vec![text_by_kind(other)],
        },
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{Dict, Value};

    use super::texts;

    #[test]
    fn what_yaml_says_is_an_ordered_dict() {
        let dict = Dict::new();
        dict.insert("a", 1);
        assert_eq!(texts(&Value::Dict(dict.clone())), ["{'a': 1}"]);
        dict.set_ordered();
        assert_eq!(texts(&Value::Dict(dict.clone())), ["OrderedDict([('a', 1)])"]);
        assert_eq!(
            texts(&Value::list([Value::Dict(dict), 2.into()])),
            ["OrderedDict([('a', 1)])", "2"]
        );
    }
}
