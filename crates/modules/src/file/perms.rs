//! Owners, modes and attributes of files: reading them, and bringing them to what is wanted.

use std::path::Path;

use halite_spec::{
    Args, Command, Cx, Error, FromArg, Rest, Result, Stat, ToDefault, function,
    host::{self, Kind as FileKind},
};
use halite_value::{Dict, Value, dict, entries};

use super::paths::{expand_user, normalized, real};

/// A user or a group as callers give it: a name, or an id in digits without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    Id(u32),
    Name(String),
}

impl Owner {
    /// An empty name means nobody in particular.
    pub fn given(owner: Option<&Self>) -> Option<&Self> {
        owner.filter(|owner| **owner != Self::Name(String::new()))
    }

    /// Returns the user's id; `None` if there is no such user, or nobody can say.
    pub fn uid(&self, cx: &Cx) -> Option<u32> {
        match self {
            Self::Id(id) => Some(*id),
            Self::Name(_) => self.look_up_uid(cx).ok().flatten(),
        }
    }

    /// As [`Self::uid`], but an error when the look failed.
    pub fn look_up_uid(&self, cx: &Cx) -> Result<Option<u32>> {
        Ok(match self {
            Self::Id(id) => Some(*id),
            Self::Name(name) => cx.host.user_named(name)?.map(|user| user.uid),
        })
    }

    /// As [`Self::gid`], but an error when the look failed.
    pub fn look_up_gid(&self, cx: &Cx) -> Result<Option<u32>> {
        Ok(match self {
            Self::Id(id) => Some(*id),
            Self::Name(name) => cx.host.group_named(name)?.map(|group| group.gid),
        })
    }

    /// Returns the group's id; `None` if there is no such group, or nobody can say.
    pub fn gid(&self, cx: &Cx) -> Option<u32> {
        match self {
            Self::Id(id) => Some(*id),
            Self::Name(_) => self.look_up_gid(cx).ok().flatten(),
        }
    }

    /// Returns the user's id, or an error.
    pub fn known_uid(&self, cx: &Cx) -> Result<u32> {
        self.uid(cx).ok_or_else(|| Error::failed(format!("User {self} is not available ")))
    }

    /// Returns the group's id, or an error.
    pub fn known_gid(&self, cx: &Cx) -> Result<u32> {
        self.gid(cx).ok_or_else(|| Error::failed(format!("Group {self} is not available")))
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl From<&Owner> for Value {
    fn from(owner: &Owner) -> Self {
        match owner {
            Owner::Id(id) => (*id).into(),
            Owner::Name(name) => name.into(),
        }
    }
}

impl FromArg for Owner {
    const KIND: &'static str = "a name or an id";

    fn from_arg(value: Value) -> Result<Self, String> {
        match value {
            Value::Int(id) => u32::try_from(id).map(Self::Id).map_err(|_| String::new()),
            Value::Bool(false) => Ok(Self::Name(String::new())),
            other => String::from_arg(other).map(Self::Name),
        }
    }
}

impl ToDefault for Owner {
    fn to_default(&self) -> Value {
        self.into()
    }
}

/// The permission bits as callers give them: `644`, `"0644"`, `0o644`; kept as Salt writes them,
/// with four digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode(String);

impl Mode {
    /// Brings a text to four digits or more; whether they are octal is told by [`Mode::bits`].
    pub fn new(text: &str) -> Self {
        let text = text.replace("0o", "0");
        let text = text.trim_matches('"').trim_matches('\'').trim_start_matches('0');
        Self(format!("{text:0>4}"))
    }

    pub fn of(bits: u32) -> Self {
        Self(format!("{bits:04o}"))
    }

    /// `keep` asks for the mode of the source.
    pub fn is_keep(&self) -> bool {
        self.0.eq_ignore_ascii_case("keep")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn bits(&self) -> Option<u32> {
        u32::from_str_radix(&self.0, 8).ok().filter(|bits| *bits <= 0o7777)
    }

    /// As [`Mode::bits`], or why not.
    pub fn checked(&self) -> Result<u32> {
        self.bits().ok_or_else(|| {
            Error::failed(format!("Invalid Mode {}", self.0.trim_start_matches('0')))
        })
    }

    /// The mode of folders made on the way to a file of this mode: who may read may enter.
    #[must_use]
    pub fn for_folders(&self) -> Self {
        let last: Vec<char> = self.0.chars().rev().take(3).collect();
        let digits = last.into_iter().rev().map(|digit| match digit.to_digit(8) {
            Some(bits) if bits != 0 => char::from_digit(bits | 1, 8).unwrap_or(digit),
            _ => digit,
        });
        Self::new(&digits.collect::<String>())
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromArg for Mode {
    const KIND: &'static str = "a file mode in octal digits";

    fn from_arg(value: Value) -> Result<Self, String> {
        String::from_arg(value).map(|text| Self::new(&text))
    }
}

impl ToDefault for Mode {
    fn to_default(&self) -> Value {
        (&self.0).into()
    }
}

/// What the security label of a file shall be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    pub user: Option<String>,
    pub role: Option<String>,
    pub kind: Option<String>,
    pub range: Option<String>,
}

impl Label {
    pub fn from_dict(dict: &Dict) -> Self {
        let part =
            |key: &str| dict.get(key).filter(Value::truthy).map(|value| value.to_str().to_string());
        Self {
            user: part("seuser"),
            role: part("serole"),
            kind: part("setype"),
            range: part("serange"),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a file's owner, mode and attributes shall be; `None` is left alone.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub user: Option<Owner>,
    pub group: Option<Owner>,
    pub mode: Option<Mode>,
    pub attrs: Option<String>,
    pub label: Label,
}

/// What enforcing did.
#[derive(Clone, Debug, Default)]
pub struct Enforced {
    pub changes: Dict,
    pub problems: Vec<String>,
}

impl Wanted {
    pub fn new(user: Option<Owner>, group: Option<Owner>, mode: Option<Mode>) -> Self {
        Self { user, group, mode, ..Self::default() }
    }

    /// Names what differs: `user`, `group`, `mode`, `attrs`, `selinux`.
    pub fn differences(&self, cx: &Cx, path: &Path, stat: &Stat) -> Dict {
        let changes = Dict::new();
        if let Some(user) = Owner::given(self.user.as_ref())
            && user.uid(cx) != Some(stat.uid)
        {
            changes.insert("user", user);
        }
        if let Some(group) = Owner::given(self.group.as_ref())
            && group.gid(cx) != Some(stat.gid)
        {
            changes.insert("group", group);
        }
        if let Some(mode) = &self.mode
            && mode.bits() != Some(stat.mode)
            && stat.kind != FileKind::Link
        {
            changes.insert("mode", mode.as_str());
        }
        if let Some(attrs) = &self.attrs
            && stat.kind == FileKind::File
            && attr_changes(cx, path, attrs).is_some()
        {
            changes.insert("attrs", attrs.as_str());
        }
        if let Some((_, new)) = self.label_changes(cx, path) {
            changes.insert("selinux", new);
        }
        changes
    }

    /// The differing parts of the label: as it is, as it shall be.
    fn label_changes(&self, cx: &Cx, path: &Path) -> Option<(Value, Value)> {
        if self.label.is_empty() {
            return None;
        }
        let now = context_of(cx, path)?;
        let mut parts = now.splitn(4, ':');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let now = [next(), next(), next(), next()];
        let wanted = [&self.label.user, &self.label.role, &self.label.kind, &self.label.range];
        let mut texts = (Vec::new(), Vec::new());
        for ((title, now), wanted) in ["User", "Role", "Type", "Range"].iter().zip(now).zip(wanted)
        {
            if let Some(wanted) = wanted
                && *wanted != now
            {
                texts.0.push(format!("{title}: {now}"));
                texts.1.push(format!("{title}: {wanted}"));
            }
        }
        (!texts.1.is_empty()).then(|| (texts.0.join(" ").into(), texts.1.join(" ").into()))
    }

    /// Changes what differs. What cannot be changed is told, and the rest done all the same.
    pub fn enforce(&self, cx: &Cx, path: &Path, follow: bool) -> Result<Enforced> {
        let stat = stat_of(cx, path, follow)?;
        let changes = Dict::new();
        let mut problems = Vec::new();
        let link = stat.kind == FileKind::Link;
        let user = Owner::given(self.user.as_ref());
        let group = Owner::given(self.group.as_ref());
        let uid = user.map(|user| user.uid(cx));
        let gid = group.map(|group| group.gid(cx));
        if uid == Some(None) {
            problems.push("User does not exist\n".to_owned());
        }
        if gid == Some(None) {
            problems.push("Group does not exist\n".to_owned());
        }
        let new_uid = uid.flatten().filter(|uid| *uid != stat.uid);
        let new_gid = gid.flatten().filter(|gid| *gid != stat.gid);
        let mut mode_now = stat.mode;
        if problems.is_empty() && (new_uid.is_some() || new_gid.is_some()) {
            match cx.host.set_owner(path, new_uid, new_gid, !link) {
                Ok(()) => {
                    if let (Some(_), Some(user)) = (new_uid, user) {
                        changes.insert("user", user);
                    }
                    if let (Some(_), Some(group)) = (new_gid, group) {
                        changes.insert("group", group);
                    }
                    // Changing the owner takes the set-id bits away.
                    if !link && stat.mode & 0o6000 != 0 {
                        cx.host.set_mode(path, stat.mode)?;
                    }
                }
                Err(host::Error::Cancelled) => return Err(Error::Cancelled),
                Err(_) => {
                    if let (Some(_), Some(user)) = (new_uid, user) {
                        problems.push(format!("Failed to change user to {user}"));
                    }
                    if let (Some(_), Some(group)) = (new_gid, group) {
                        problems.push(format!("Failed to change group to {group}"));
                    }
                }
            }
        } else if !problems.is_empty() {
            if let (Some(None), Some(user)) = (uid, user) {
                problems.push(format!("Failed to change user to {user}"));
            }
            if let (Some(None), Some(group)) = (gid, group) {
                problems.push(format!("Failed to change group to {group}"));
            }
        }
        if let Some(mode) = &self.mode
            && !link
            && mode.bits() != Some(mode_now)
        {
            let set = mode.bits().map(|bits| cx.host.set_mode(path, bits).map(|()| bits));
            match set {
                Some(Ok(bits)) => {
                    mode_now = bits;
                    changes.insert("mode", mode.as_str());
                }
                Some(Err(host::Error::Cancelled)) => return Err(Error::Cancelled),
                _ => problems.push(format!("Failed to change mode to {mode}")),
            }
        }
        let _ = mode_now;
        if stat.kind == FileKind::File {
            self.enforce_attrs(cx, path, &changes, &mut problems)?;
        }
        self.enforce_label(cx, path, &changes, &mut problems)?;
        Ok(Enforced { changes, problems })
    }

    fn enforce_attrs(
        &self,
        cx: &Cx,
        path: &Path,
        changes: &Dict,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        let Some(attrs) = &self.attrs else { return Ok(()) };
        let Some((old, added, removed)) = attr_changes(cx, path, attrs) else { return Ok(()) };
        for (sign, letters) in [('+', added), ('-', removed)] {
            if !letters.is_empty() {
                let change = format!("{sign}{letters}");
                cx.host.run(&Command::new("chattr").arg(change).arg("--").arg(path))?;
            }
        }
        let new = match attr_changes(cx, path, attrs) {
            None => attrs.clone(),
            Some((now, ..)) => {
                problems.push(format!("Failed to change attributes to {attrs}"));
                now
            }
        };
        if old != new {
            changes.insert("attrs", dict! { "old" => old, "new" => new });
        }
        Ok(())
    }

    fn enforce_label(
        &self,
        cx: &Cx,
        path: &Path,
        changes: &Dict,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        if self.label.is_empty() {
            return Ok(());
        }
        if context_of(cx, path).is_none() {
            problems.push("Failed to get selinux attributes".to_owned());
            return Ok(());
        }
        let Some((old, new)) = self.label_changes(cx, path) else { return Ok(()) };
        let mut command = Command::new("chcon");
        for (flag, part) in [
            ("-u", &self.label.user),
            ("-r", &self.label.role),
            ("-t", &self.label.kind),
            ("-l", &self.label.range),
        ] {
            if let Some(part) = part {
                command = command.arg(flag).arg(part);
            }
        }
        if cx.host.run(&command.arg("--").arg(path))?.ok() {
            changes.insert("selinux", dict! { "Old" => old, "New" => new });
        } else {
            problems.push("Failed to set selinux attributes".to_owned());
        }
        Ok(())
    }
}

/// The security label, if the file has one.
fn context_of(cx: &Cx, path: &Path) -> Option<String> {
    let query = Command::new("stat").args(["-c", "%C"]).arg("--").arg(path).query();
    let output = cx.host.run(&query).ok().filter(halite_spec::Output::ok)?;
    let text = output.stdout_text().trim().to_owned();
    (text.split(':').count() >= 4).then_some(text)
}

/// The letters of `lsattr` a user may set.
const ATTRIBUTES: &str = "aAcCdDeijPsStTu";

fn attributes_of(cx: &Cx, path: &Path) -> Option<Vec<(String, Vec<String>)>> {
    cx.host.which("lsattr")?;
    let query = Command::new("lsattr").arg(path).query();
    let output = cx.host.run(&query).ok()?;
    let text = output.stdout_text();
    let lines = text.lines().filter(|line| !line.starts_with("lsattr: "));
    Some(
        lines
            .filter_map(|line| line.split_once(char::is_whitespace))
            .map(|(letters, file)| {
                let letters = letters.chars().filter(|c| ATTRIBUTES.contains(*c));
                (file.trim_start().to_owned(), letters.map(String::from).collect())
            })
            .collect(),
    )
}

/// The attributes now, those to add, those to remove; `None` if nothing is to be done.
fn attr_changes(cx: &Cx, path: &Path, wanted: &str) -> Option<(String, String, String)> {
    let all = attributes_of(cx, path)?;
    let now: String = all.into_iter().next().map(|(_, letters)| letters.concat())?;
    let mut wanted = wanted.to_owned();
    // The kernel decides on extents.
    if now.contains('e') && !wanted.contains('e') {
        wanted.push('e');
    }
    let added: String = wanted.chars().filter(|c| !now.contains(*c)).collect();
    let removed: String = now.chars().filter(|c| !wanted.contains(*c)).collect();
    (!added.is_empty() || !removed.is_empty()).then_some((now, added, removed))
}

/// As Salt's `stats`: a dangling link is looked at itself.
pub(super) fn stat_of(cx: &Cx, path: &Path, follow: bool) -> Result<Stat> {
    cx.host
        .stat(path, follow)
        .or_else(|_| cx.host.stat(path, false))
        .map_err(|_| Error::failed(format!("Path not found: {}", path.display())))
}

/// Returns a user's name, or the id if nobody has it.
pub fn user_name(cx: &Cx, uid: u32) -> Value {
    match cx.host.user_with_id(uid) {
        Ok(Some(user)) => user.name.into(),
        _ => uid.into(),
    }
}

/// Returns a group's name, or the id if nobody has it.
pub fn group_name(cx: &Cx, gid: u32) -> Value {
    match cx.host.group_with_id(gid) {
        Ok(Some(group)) => group.name.into(),
        _ => gid.into(),
    }
}

/// Return a group's name for its id; a name is returned as it is.
///
/// ```console
/// $ salt web1 file.gid_to_group 2100
/// ```
#[function]
pub fn gid_to_group(
    cx: &Cx,
    /// The id.
    gid: Value,
) -> Result<Value> {
    let id = match i64::from_arg(gid.clone()) {
        Ok(id) => u32::try_from(id).ok(),
        Err(_) => Owner::from_arg(gid.clone()).ok().and_then(|group| group.gid(cx)),
    };
    Ok(id.map_or_else(|| Value::str(""), |id| group_name(cx, id)))
}

/// Return a group's id for its name; an empty text if there is none.
///
/// ```console
/// $ salt web1 file.group_to_gid
/// ```
#[function]
pub fn group_to_gid(
    cx: &Cx,
    /// The name.
    #[arg(required)]
    group: Option<Owner>,
) -> Result<Value> {
    Ok(group.and_then(|group| group.gid(cx)).map_or_else(|| Value::str(""), Value::from))
}

/// Return a user's name for an id.
///
/// ```console
/// $ salt web1 file.uid_to_user 2100
/// ```
#[function]
pub fn uid_to_user(
    cx: &Cx,
    /// The id.
    uid: Value,
) -> Result<Value> {
    match uid.as_int().and_then(|id| u32::try_from(id).ok()) {
        Some(id) => Ok(user_name(cx, id)),
        None => Ok(uid),
    }
}

/// Return a user's id for a name; an empty text if there is none.
///
/// ```console
/// $ salt web1 file.user_to_uid
/// ```
#[function]
pub fn user_to_uid(
    cx: &Cx,
    /// The name; the running user if none is given.
    #[arg(required)]
    user: Option<Owner>,
) -> Result<Value> {
    let uid = match user {
        Some(user) => user.uid(cx),
        None => Some(cx.host.uid()),
    };
    Ok(uid.map_or_else(|| Value::str(""), Value::from))
}

/// Return what is known of a file: owner, mode, size, times, type.
///
/// ```console
/// $ salt web1 file.stats /srv/app/app.conf
/// ```
#[function]
pub fn stats(
    cx: &Cx,
    /// The path.
    path: String,
    /// Add a digest of this kind as `sum`.
    hash_type: Option<String>,
    /// Look at what a link points to.
    #[default(true)]
    follow_symlinks: bool,
) -> Result<Dict> {
    let path = expand_user(cx, &path);
    let stat = stat_of(cx, Path::new(&path), follow_symlinks)?;
    let ret = entries! {
        "inode" => stat.inode, "uid" => stat.uid, "gid" => stat.gid,
        "group" => group_name(cx, stat.gid), "user" => user_name(cx, stat.uid),
        "atime" => stat.atime, "mtime" => stat.mtime, "ctime" => stat.ctime,
        "size" => stat.size, "mode" => stat.mode_text(),
    };
    if let Some(kind) = hash_type.filter(|kind| !kind.is_empty()) {
        ret.insert("sum", super::hashes::hash_of(cx, &path, &kind)?);
    }
    ret.insert("type", stat.kind.word());
    ret.insert("target", if follow_symlinks { real(cx, &path)? } else { normalized(&path) });
    Ok(ret)
}

/// What to look at.
#[derive(Args)]
pub struct Looked {
    /// The path.
    path: String,
    /// Look at what a link points to.
    #[default(true)]
    follow_symlinks: bool,
}

fn stat_part(cx: &Cx, looked: &Looked, part: impl FnOnce(&Stat) -> Value) -> Result<Value> {
    let path = expand_user(cx, &looked.path);
    stat_of(cx, Path::new(&path), looked.follow_symlinks).map(|stat| part(&stat))
}

/// Return the id of the group a file belongs to.
///
/// ```console
/// $ salt web1 file.get_gid /srv/app/app.conf
/// ```
#[function]
pub fn get_gid(cx: &Cx, #[group] looked: Looked) -> Result<Value> {
    stat_part(cx, &looked, |stat| stat.gid.into())
}

/// Return the group a file belongs to.
///
/// ```console
/// $ salt web1 file.get_group /srv/app/app.conf
/// ```
#[function]
pub fn get_group(cx: &Cx, #[group] looked: Looked) -> Result<Value> {
    stat_part(cx, &looked, |stat| group_name(cx, stat.gid))
}

/// Return the id of the user a file belongs to.
///
/// ```console
/// $ salt web1 file.get_uid /srv/app/app.conf
/// ```
#[function]
pub fn get_uid(cx: &Cx, #[group] looked: Looked) -> Result<Value> {
    stat_part(cx, &looked, |stat| stat.uid.into())
}

/// Return the user a file belongs to.
///
/// ```console
/// $ salt web1 file.get_user /srv/app/app.conf
/// ```
#[function]
pub fn get_user(cx: &Cx, #[group] looked: Looked) -> Result<Value> {
    stat_part(cx, &looked, |stat| user_name(cx, stat.uid))
}

/// Return the mode of a file, with four digits.
///
/// ```console
/// $ salt web1 file.get_mode /srv/app/app.conf
/// ```
#[function]
pub fn get_mode(cx: &Cx, #[group] looked: Looked) -> Result<Value> {
    stat_part(cx, &looked, |stat| stat.mode_text().into())
}

/// Set the mode of a file and return it.
///
/// ```console
/// $ salt web1 file.set_mode /srv/app/app.conf 0640
/// ```
#[function]
pub fn set_mode(
    cx: &Cx,
    /// The path.
    path: String,
    /// The mode, in octal digits.
    mode: Value,
) -> Result<Value> {
    let path = expand_user(cx, &path);
    let mode = mode.to_str();
    let digits = mode.trim_start_matches(['0', 'O', 'o']);
    let digits = if digits.is_empty() { "0" } else { digits };
    if !cx.host.exists(Path::new(&path))? {
        return Err(Error::failed(format!("{path}: File not found")));
    }
    let set = u32::from_str_radix(digits, 8)
        .ok()
        .filter(|bits| *bits <= 0o7777)
        .map(|bits| cx.host.set_mode(Path::new(&path), bits));
    match set {
        Some(Ok(())) => get_mode(cx, Looked { path, follow_symlinks: true }),
        _ => Ok(format!("Invalid Mode {digits}").into()),
    }
}

fn change_owner(
    cx: &Cx,
    path: &str,
    user: Option<&Owner>,
    group: Option<&Owner>,
    follow: bool,
) -> Result<Value> {
    let path = expand_user(cx, path);
    let (user, group) = (Owner::given(user), Owner::given(group));
    let (uid, gid) = (user.map(|user| user.uid(cx)), group.map(|group| group.gid(cx)));
    let mut problems = String::new();
    if uid == Some(None) {
        problems.push_str("User does not exist\n");
    }
    if gid == Some(None) {
        problems.push_str("Group does not exist\n");
    }
    let at = Path::new(&path);
    let follow = follow && cx.host.exists(at)?;
    if !cx.host.is_there(at)? {
        problems.push_str("File not found");
    }
    if !problems.is_empty() {
        return Ok(problems.into());
    }
    cx.host.set_owner(at, uid.flatten(), gid.flatten(), follow)?;
    Ok(Value::Null)
}

/// Set the owner and group of a file; of what a link points to.
///
/// ```console
/// $ salt web1 file.chown /srv/app/app.conf ada ops
/// ```
#[function]
pub fn chown(
    cx: &Cx,
    /// The path.
    path: String,
    /// The user.
    #[arg(required)]
    user: Option<Owner>,
    /// The group.
    #[arg(required)]
    group: Option<Owner>,
) -> Result<Value> {
    change_owner(cx, &path, user.as_ref(), group.as_ref(), true)
}

/// Set the owner and group of a file; of a link itself.
///
/// ```console
/// $ salt '*' file.lchown /etc/passwd root root
/// ```
#[function]
pub fn lchown(
    cx: &Cx,
    /// The path.
    path: String,
    /// The user.
    #[arg(required)]
    user: Option<Owner>,
    /// The group.
    #[arg(required)]
    group: Option<Owner>,
) -> Result<Value> {
    change_owner(cx, &path, user.as_ref(), group.as_ref(), false)
}

/// Set the group of a file.
///
/// ```console
/// $ salt web1 file.chgrp /srv/app/app.conf ops
/// ```
#[function]
pub fn chgrp(
    cx: &Cx,
    /// The path.
    path: String,
    /// The group.
    #[arg(required)]
    group: Option<Owner>,
) -> Result<Value> {
    // Salt asks for the owner first, so here a missing file is an error.
    stat_of(cx, Path::new(&expand_user(cx, &path)), true)?;
    change_owner(cx, &path, None, group.as_ref(), true)
}

/// Return the attributes of a file, or of the files of a folder, as `lsattr` tells them.
///
/// ```console
/// $ salt web1 file.lsattr /srv/app/app.conf
/// ```
#[function]
pub fn lsattr(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<Value> {
    if cx.host.which("lsattr").is_none() {
        return Ok(Value::Null);
    }
    if !cx.host.exists(Path::new(&path))? {
        return Err(Error::invalid(format!("File or directory does not exist: {path}")));
    }
    let files = attributes_of(cx, Path::new(&path)).unwrap_or_default();
    Ok(Value::Dict(files.into_iter().map(|(file, letters)| (file, Value::from(letters))).collect()))
}

/// Change attributes of files with `chattr`.
///
/// ```console
/// $ salt web1 file.chattr
/// ```
#[function]
pub fn chattr(
    cx: &Cx,
    /// The files; `operator` (`add` or `remove`), `attributes`, `flags` and `version` by name.
    files: Rest,
) -> Result<bool> {
    let option = |name: &str| files.kwargs.get(name).filter(|value| !value.is_null());
    let sign = match option("operator").map(|word| word.to_str()).as_deref() {
        Some("add") => '+',
        Some("remove") => '-',
        _ => {
            return Err(Error::invalid(
                "Need an operator: 'add' or 'remove' to modify attributes.",
            ));
        }
    };
    let attributes = option("attributes")
        .ok_or_else(|| Error::invalid("Need attributes: [aAcCdDeijPsStTu]"))?
        .to_str();
    let mut command = Command::new("chattr").arg(format!("{sign}{attributes}"));
    if let Some(flags) = option("flags") {
        command = command.arg(format!("-{}", flags.to_str()));
    }
    if let Some(version) = option("version") {
        command = command.arg("-v").arg(version.to_str().as_str());
    }
    command = command.args(files.args.iter().map(|file| file.to_str().to_string()));
    command.merge_stderr = true;
    Ok(cx.host.run(&command)?.stdout.is_empty())
}

/// Bring the owner, mode and attributes of a file to what is wanted, and return what changed.
///
/// ```console
/// $ salt '*' file.check_perms /etc/sudoers '{}' root root 400
/// ```
#[function]
pub fn check_perms(
    cx: &Cx,
    /// The path.
    name: String,
    /// A state's return to add to; a new one if empty.
    #[arg(required)]
    ret: Option<Dict>,
    /// The user.
    #[arg(required)]
    user: Option<Owner>,
    /// The group.
    #[arg(required)]
    group: Option<Owner>,
    /// The mode.
    #[arg(required)]
    mode: Option<Mode>,
    /// The attributes, as letters.
    attrs: Option<String>,
    /// Work on what a link points to.
    #[default(false)]
    follow_symlinks: bool,
    /// The user of the SELinux label.
    seuser: Option<String>,
    /// The role of the SELinux label.
    serole: Option<String>,
    /// The type of the SELinux label.
    setype: Option<String>,
    /// The range of the SELinux label.
    serange: Option<String>,
) -> Result<Value> {
    let name = expand_user(cx, &name);
    let path = Path::new(&name);
    let stat = stat_of(cx, path, follow_symlinks)?;
    let fresh = ret.as_ref().is_none_or(Dict::is_empty);
    let ret = ret.filter(|ret| !ret.is_empty()).unwrap_or_else(|| {
        entries! {
            "name" => &name, "changes" => Value::dict(), "comment" => "", "result" => true,
        }
    });
    let perms = entries! {
        "luser" => match user { Some(Owner::Id(_)) => stat.uid.into(), _ => user_name(cx, stat.uid) },
        "lgroup" => match group { Some(Owner::Id(_)) => stat.gid.into(), _ => group_name(cx, stat.gid) },
        "lmode" => stat.mode_text(),
    };
    let label = Label { user: seuser, role: serole, kind: setype, range: serange };
    let wanted = Wanted { user, group, mode, attrs, label };
    let differing = wanted.differences(cx, path, &stat);
    for (word, key) in [("cuser", "user"), ("cgroup", "group"), ("cmode", "mode")] {
        if let Some(value) = differing.get(key) {
            perms.insert(word, value);
        }
    }
    let changes = match ret.get("changes") {
        Some(Value::Dict(changes)) => changes,
        _ => Dict::new(),
    };
    let test = cx.opt_bool("test");
    let mut problems = Vec::new();
    if test {
        changes.update(&differing);
        if !changes.is_empty() {
            ret.insert("result", Value::Null);
        }
    } else {
        let done = wanted.enforce(cx, path, follow_symlinks)?;
        changes.update(&done.changes);
        problems = done.problems;
        if !problems.is_empty() {
            ret.insert("result", false);
        }
    }
    ret.insert("changes", changes);
    if fresh {
        ret.insert("comment", problems.join("; "));
    } else if let Some(Value::Str(text)) = ret.get("comment") {
        let before = (!text.is_empty()).then(|| text.to_string());
        let all: Vec<String> = before.into_iter().chain(problems).collect();
        ret.insert("comment", all.join("; "));
    }
    Ok(Value::tuple([Value::Dict(ret), Value::Dict(perms)]))
}

/// Return the SELinux label of a file.
///
/// ```console
/// $ salt web1 file.get_selinux_context /srv/app/app.conf
/// ```
#[function]
pub fn get_selinux_context(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<String> {
    let query = Command::new("stat").args(["-c", "%C"]).arg("--").arg(&path).query();
    let output = cx.host.run(&query)?;
    cx.job.set_retcode(output.code.into());
    Ok(if output.ok() {
        output.stdout_text().trim_end().to_owned()
    } else {
        format!("No selinux context information is available for {path}")
    })
}

/// Set parts of the SELinux label of a file.
///
/// ```console
/// $ salt web1 file.set_selinux_context /srv/app/app.conf type=etc_t
/// ```
#[function]
pub fn set_selinux_context(
    cx: &Cx,
    /// The path.
    path: String,
    /// The user of the label.
    user: Option<String>,
    /// The role of the label.
    role: Option<String>,
    /// The type of the label.
    r#type: Option<String>,
    /// The range of the label.
    range: Option<String>,
    /// Keep it over a relabelling.
    #[default(false)]
    persist: bool,
) -> Result<Value> {
    let parts = [("-u", &user), ("-r", &role), ("-t", &r#type), ("-l", &range)];
    if parts.iter().all(|(_, part)| part.as_deref().unwrap_or_default().is_empty()) {
        return Ok(false.into());
    }
    if persist {
        let call = halite_spec::Call::of([path.as_str()])
            .with("sel_type", r#type.clone())
            .with("sel_user", user.clone())
            .with("sel_level", range.clone());
        cx.call("selinux.fcontext_add_policy", call)?;
    }
    let mut command = Command::new("chcon");
    for (flag, part) in parts {
        if let Some(part) = part.as_deref().filter(|part| !part.is_empty()) {
            command = command.arg(flag).arg(part);
        }
    }
    if cx.host.run(&command.arg("--").arg(&path))?.ok() {
        get_selinux_context(cx, path).map(Value::from)
    } else {
        Ok(false.into())
    }
}

/// Give a file the SELinux label the policy says.
///
/// ```console
/// $ salt web1 file.restorecon /srv/app/app.conf
/// ```
#[function]
pub fn restorecon(
    cx: &Cx,
    /// The path.
    path: String,
    /// With everything below it.
    #[default(false)]
    recursive: bool,
) -> Result<bool> {
    let flags = if recursive { "-FR" } else { "-F" };
    Ok(cx.host.run(&Command::new("restorecon").arg(flags).arg("--").arg(&path))?.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_four_digits() {
        for (given, expected) in
            [("644", "0644"), ("0644", "0644"), ("0o644", "0644"), ("01777", "1777"), ("0", "0000")]
        {
            assert_eq!(Mode::new(given).as_str(), expected);
        }
        assert_eq!(Mode::new("abc").bits(), None);
        assert_eq!(Mode::new("640").for_folders().as_str(), "0750");
        assert_eq!(Mode::new("600").for_folders().as_str(), "0700");
    }
}
