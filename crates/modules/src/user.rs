//! `user`: accounts of people and services (Salt's `useradd` on Linux).
//!
//! Looking goes through the host's name service, or straight to the files below another root.
//! Changing is done by the tools of the shadow suite, with argument vectors: a name never reaches
//! a shell. Where Salt decides by an exit code or by looking again, so do we.

use std::path::{Path, PathBuf};

use halite_spec::{Command, Cx, Error, Output, Result, Strings, function, host, module};
use halite_value::{Dict, Value, entries};

use crate::cmd;

module! {
    /// Accounts of people and services.
    "user": add, delete, getent, chuid, chgid, chshell, chhome, chgroups, chfullname, chroomnumber,
    chworkphone, chhomephone, chother, chloginclass, info, get_loginclass, primary_group,
    list_groups, list_users, rename,
}

/// Finds a program, or fails as Salt does.
pub(crate) fn program(cx: &Cx, name: &str) -> Result<PathBuf> {
    cx.host.which(name).ok_or_else(|| Error::failed(format!("Command '{name}' cannot be found")))
}

/// Runs a program that changes accounts; the words after it are its arguments.
pub(crate) fn change(cx: &Cx, name: &str, words: &[String]) -> Result<Output> {
    // The name, not the path found: what is run is shown, and must look the same everywhere.
    program(cx, name)?;
    let line = std::iter::once(name.to_owned()).chain(words.iter().cloned());
    let output = cx.host.run(&Command::line(line))?;
    // As with every command that Salt runs itself: its failure is the job's.
    cx.job.set_retcode(output.code.into());
    cmd::log_failure(cx, name, &output);
    Ok(output)
}

fn words(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// Refuses what would be taken for an option, or would break the line of an account file.
fn checked(name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with('-') || name.contains([':', '\n', '\0', '/']) {
        return Err(Error::invalid(format!("'{name}' cannot be the name of an account")));
    }
    Ok(())
}

/// Reads `etc/passwd` below a root.
fn users_below(cx: &Cx, root: &str) -> Result<Vec<host::User>> {
    let root = if root.is_empty() { "/" } else { root };
    let text = cx.host.read_text(&Path::new(root).join("etc/passwd"))?;
    let users = text.lines().filter_map(|line| {
        let parts: Vec<&str> = line.trim().split(':').collect();
        let &[name, passwd, uid, gid, gecos, home, shell] = parts.as_slice() else { return None };
        Some(host::User {
            name: name.into(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            gecos: gecos.into(),
            home: home.into(),
            shell: shell.into(),
            passwd: passwd.into(),
        })
    });
    Ok(users.collect())
}

/// Returns an account, from the name service or the files below a root.
pub fn find(cx: &Cx, name: &str, root: Option<&str>) -> Result<Option<host::User>> {
    match root {
        None => Ok(cx.host.user_named(name)?),
        Some(root) => Ok(users_below(cx, root)?.into_iter().find(|user| user.name == name)),
    }
}

/// Returns the names of the groups an account is in, its own among them, sorted.
pub fn groups_of(cx: &Cx, name: &str) -> Result<Vec<String>> {
    let own = cx.host.user_named(name)?.map(|user| user.gid);
    let groups = cx.host.groups()?;
    let in_it = |group: &&host::Group| {
        Some(group.gid) == own || group.members.iter().any(|member| member == name)
    };
    let gids: Vec<u32> = groups.iter().filter(in_it).map(|group| group.gid).collect();
    // Every name of a number counts: two groups may share one.
    let mut names: Vec<String> = groups
        .into_iter()
        .filter(|group| gids.contains(&group.gid))
        .map(|group| group.name)
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The five parts of the comment field.
fn gecos(user: &host::User) -> [String; 5] {
    let mut parts = user.gecos.splitn(5, ',').map(str::to_owned);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

const GECOS: [&str; 5] = ["fullname", "roomnumber", "workphone", "homephone", "other"];

fn described(cx: &Cx, user: &host::User) -> Result<Dict> {
    let info = entries! {
        "gid" => user.gid, "groups" => Value::list(groups_of(cx, &user.name)?),
        "home" => &user.home, "name" => &user.name, "passwd" => &user.passwd,
        "shell" => &user.shell, "uid" => user.uid,
    };
    for (field, value) in GECOS.iter().zip(gecos(user)) {
        info.insert(*field, value);
    }
    Ok(info)
}

/// Return what is known of an account; an empty dict if there is none.
///
/// ```console
/// $ salt web1 user.info ada
/// ```
#[function]
pub fn info(
    cx: &Cx,
    /// The account.
    name: String,
    /// Look into the files below this folder.
    root: Option<String>,
) -> Result<Dict> {
    match find(cx, &name, root.as_deref())? {
        Some(user) => described(cx, &user),
        None => Ok(Dict::new()),
    }
}

/// Return what is known of every account.
///
/// ```console
/// $ salt web1 user.getent
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
    let users = match root {
        Some(root) => users_below(cx, &root)?,
        None => cx.host.users()?,
    };
    let list = users.iter().map(|user| described(cx, user).map(Value::Dict));
    Ok(list.collect::<Result<Vec<Value>>>()?.into())
}

/// Return the names of all accounts, sorted.
///
/// ```console
/// $ salt web1 user.list_users
/// ```
#[function]
pub fn list_users(
    cx: &Cx,
    /// Look into the files below this folder.
    root: Option<String>,
) -> Result<Vec<String>> {
    let users = match root {
        Some(root) => users_below(cx, &root)?,
        None => cx.host.users()?,
    };
    let mut names: Vec<String> = users.into_iter().map(|user| user.name).collect();
    names.sort();
    Ok(names)
}

/// Return the names of the groups an account is in.
///
/// ```console
/// $ salt web1 user.list_groups ada
/// ```
#[function]
pub fn list_groups(
    cx: &Cx,
    /// The account.
    name: String,
) -> Result<Vec<String>> {
    groups_of(cx, &name)
}

/// Return the name of an account's own group.
///
/// ```console
/// $ salt web1 user.primary_group ada
/// ```
#[function]
pub fn primary_group(
    cx: &Cx,
    /// The account.
    name: String,
) -> Result<String> {
    let output = cx.host.run(&Command::line(["id", "-g", "-n", name.as_str()]).query())?;
    let text = if output.ok() { output.stdout_text() } else { output.stderr_text() };
    Ok(text.trim_end().to_owned())
}

/// What a new account shall be; the arguments of `user.add`.
#[derive(Clone, Debug, Default)]
pub struct New {
    pub uid: Option<i64>,
    pub gid: Option<Value>,
    pub groups: Option<Vec<String>>,
    pub home: Option<String>,
    pub shell: Option<String>,
    pub shared_uid: bool,
    pub system: bool,
    /// In the order of the comment field.
    pub gecos: [Option<String>; 5],
    pub createhome: bool,
    pub nologinit: bool,
    pub root: Option<String>,
    pub usergroup: Option<bool>,
    pub local: bool,
}

/// An option of a tool: left out, given, or given with a value.
enum Given {
    No,
    Yes,
    With(String),
}

impl From<bool> for Given {
    fn from(given: bool) -> Self {
        if given { Self::Yes } else { Self::No }
    }
}

impl From<Option<&str>> for Given {
    fn from(value: Option<&str>) -> Self {
        value.map_or(Self::No, |value| Self::With(value.to_owned()))
    }
}

/// The words of a table of options.
fn options(table: impl IntoIterator<Item = (&'static str, Given)>) -> Vec<String> {
    let words = table.into_iter().flat_map(|(option, given)| match given {
        Given::No => vec![],
        Given::Yes => vec![option.to_owned()],
        Given::With(value) => vec![option.to_owned(), value],
    });
    words.collect()
}

fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// The group a new account is put into, where we have to choose it.
fn group_of_new(cx: &Cx, name: &str, new: &New) -> Result<Option<String>> {
    if let Some(gid) = new.gid.as_ref().map(Value::to_str).filter(|gid| !gid.is_empty()) {
        return Ok(Some(gid.to_string()));
    }
    let has_own_name = new.groups.iter().flatten().any(|own| own == name);
    if new.usergroup == Some(true) || !has_own_name || !makes_groups(cx)? {
        return Ok(None);
    }
    // useradd would refuse to make a group of the user's name when there is one already.
    Ok(cx.host.group_named(name)?.map(|group| group.gid.to_string()))
}

/// Tells whether this machine gives new accounts a group of their own.
fn makes_groups(cx: &Cx) -> Result<bool> {
    const SWITCH: &str = "USERGROUPS_ENAB";
    let text = cx.host.read_text_if_there(Path::new("/etc/login.defs"))?.unwrap_or_default();
    Ok(text.lines().find(|line| line.starts_with(SWITCH)).is_some_and(|line| line.contains("yes")))
}

/// Adds an account; false if the tool refused.
pub fn create(cx: &Cx, name: &str, new: &New) -> Result<bool> {
    checked(name)?;
    let group = group_of_new(cx, name, new)?;
    // luseradd of libuser makes a home and a group unless it is told not to.
    let own_group = group.is_none() && new.usergroup == Some(true) && !new.local;
    let no_group = new.usergroup == Some(false);
    let mut line = options([
        ("-s", filled(new.shell.as_ref()).into()),
        ("-u", new.uid.map_or(Given::No, |uid| Given::With(uid.to_string()))),
        ("-g", group.as_deref().into()),
        ("-U", own_group.into()),
        ("-n", (no_group && new.local).into()),
        ("-N", (no_group && !new.local).into()),
        ("-M", (!new.createhome).into()),
        ("-m", (new.createhome && !new.local).into()),
        ("-l", new.nologinit.into()),
        ("-d", new.home.as_deref().into()),
        ("-o", new.shared_uid.into()),
        ("-r", new.system.into()),
    ]);
    line.push(name.to_owned());
    let root = new.root.as_deref();
    line.extend(options([("-R", root.filter(|_| !new.local).into())]));
    let tool = if new.local { "luseradd" } else { "useradd" };
    let output = change(cx, tool, &line)?;
    if !output.ok() {
        return Ok(false);
    }
    if let Some(groups) = new.groups.as_ref().filter(|groups| !groups.is_empty()) {
        set_groups(cx, name, groups, false, root)?;
    }
    for (at, value) in new.gecos.iter().enumerate() {
        if let Some(value) = filled(value.as_ref()) {
            set_gecos(cx, name, at, value, root)?;
        }
    }
    Ok(true)
}

/// Add an account.
///
/// ```console
/// $ salt web1 user.add ada 2100 ops
/// ```
#[function]
#[expect(clippy::too_many_arguments, reason = "they are Salt's")]
pub fn add(
    cx: &Cx,
    /// Its name.
    name: String,
    /// Its number.
    uid: Option<i64>,
    /// Its own group, by name or number.
    gid: Option<Value>,
    /// Further groups.
    groups: Option<Strings>,
    /// Its home folder.
    home: Option<String>,
    /// Its shell.
    shell: Option<String>,
    /// Refuse a number another account has.
    #[default(true)]
    unique: bool,
    /// A service's account, with a small number.
    #[default(false)]
    system: bool,
    /// The full name.
    #[default(String::new())]
    fullname: String,
    /// The room.
    #[default(String::new())]
    roomnumber: String,
    /// A telephone number.
    #[default(String::new())]
    workphone: String,
    /// A telephone number.
    #[default(String::new())]
    homephone: String,
    /// The rest of the comment field.
    #[default(String::new())]
    other: String,
    /// Make the home folder.
    #[default(true)]
    createhome: bool,
    /// For BSDs.
    loginclass: Option<String>,
    /// Do not add it to the logs of last logins.
    #[default(false)]
    nologinit: bool,
    /// Work on the files below this folder.
    root: Option<String>,
    /// Make a group of the same name: yes, no, or as the machine is configured.
    usergroup: Option<bool>,
    /// Use the local files only, not a directory service.
    #[default(false)]
    local: bool,
) -> Result<bool> {
    let _ = loginclass;
    let new = New {
        uid,
        gid,
        groups: groups.map(|groups| groups.0),
        home,
        shell,
        shared_uid: !unique,
        system,
        gecos: [fullname, roomnumber, workphone, homephone, other].map(Some),
        createhome,
        nologinit,
        root,
        usergroup,
        local,
    };
    create(cx, &name, &new)
}

/// Remove an account.
///
/// ```console
/// $ salt '*' user.delete name remove=True force=True
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// Its name.
    name: String,
    /// Remove its home folder and mail too.
    #[default(false)]
    remove: bool,
    /// Also while it is in use.
    #[default(false)]
    force: bool,
    /// Work on the files below this folder.
    root: Option<String>,
    /// Use the local files only.
    #[default(false)]
    local: bool,
) -> Result<bool> {
    checked(&name)?;
    let mut line = Vec::new();
    if remove {
        line.push("-r".to_owned());
    }
    if force && !local {
        line.push("-f".to_owned());
    }
    line.push(name);
    if let Some(root) = root.filter(|_| !local) {
        line.extend(["-R".to_owned(), root]);
    }
    let output = change(cx, if local { "luserdel" } else { "userdel" }, &line)?;
    // Debian's userdel ends with 12 when there was no mail to remove.
    let no_mail = || {
        let text = output.stderr_text();
        output.code == 12
            && cx.grain_str("os_family") == "Debian"
            && (text.contains("var/mail") || text.contains("var/spool/mail"))
    };
    if no_mail() {
        cx.job.set_retcode(0);
        return Ok(true);
    }
    Ok(output.ok())
}

fn set_attribute(
    cx: &Cx,
    name: &str,
    has: impl Fn(&host::User) -> bool,
    option: &[&str],
    value: &str,
    root: Option<&str>,
) -> Result<bool> {
    checked(name)?;
    let missing = || Error::failed(format!("User '{name}' does not exist"));
    if has(&find(cx, name, root)?.ok_or_else(missing)?) {
        return Ok(true);
    }
    let mut line = Vec::new();
    if let Some(root) = root {
        line.extend(words(&["-R", root]));
    }
    line.extend(words(option));
    line.extend(words(&[value, name]));
    change(cx, "usermod", &line)?;
    Ok(find(cx, name, root)?.is_some_and(|user| has(&user)))
}

/// Change the number of an account.
///
/// ```console
/// $ salt web1 user.chuid ada 2100
/// ```
#[function]
pub fn chuid(
    cx: &Cx,
    /// The account.
    name: String,
    /// The number.
    uid: i64,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    let has = |user: &host::User| i64::from(user.uid) == uid;
    set_attribute(cx, &name, has, &["-u"], &uid.to_string(), root.as_deref())
}

/// Change the own group of an account.
///
/// ```console
/// $ salt web1 user.chgid ada 2100
/// ```
#[function]
pub fn chgid(
    cx: &Cx,
    /// The account.
    name: String,
    /// The group, by name or number.
    gid: Value,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    let number = match &gid {
        Value::Int(gid) => Some(*gid),
        other => cx.host.group_named(&other.to_str())?.map(|group| i64::from(group.gid)),
    };
    let has = |user: &host::User| Some(i64::from(user.gid)) == number;
    set_attribute(cx, &name, has, &["-g"], &gid.to_str(), root.as_deref())
}

/// Change the shell of an account.
///
/// ```console
/// $ salt web1 user.chshell ada /bin/sh
/// ```
#[function]
pub fn chshell(
    cx: &Cx,
    /// The account.
    name: String,
    /// The shell.
    shell: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_attribute(cx, &name, |user| user.shell == shell, &["-s"], &shell, root.as_deref())
}

/// Change the home folder of an account.
///
/// ```console
/// $ salt web1 user.chhome ada /srv/home/ada
/// ```
#[function]
pub fn chhome(
    cx: &Cx,
    /// The account.
    name: String,
    /// The folder.
    home: String,
    /// Move what is in the old one.
    #[default(false)]
    persist: bool,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    let option: &[&str] = if persist { &["-m", "-d"] } else { &["-d"] };
    set_attribute(cx, &name, |user| user.home == home, option, &home, root.as_deref())
}

/// Puts an account into groups.
pub fn set_groups(
    cx: &Cx,
    name: &str,
    groups: &[String],
    append: bool,
    root: Option<&str>,
) -> Result<bool> {
    checked(name)?;
    let wanted: std::collections::BTreeSet<&String> = groups.iter().collect();
    if groups_of(cx, name)?.iter().eq(wanted) {
        return Ok(true);
    }
    let mut line = options([("-a", append.into()), ("-G", Given::With(groups.join(",")))]);
    line.push(name.to_owned());
    line.extend(options([("-R", root.into())]));
    let output = change(cx, "usermod", &line)?;
    if output.ok() || !output.stderr_text().contains("not found in") {
        return Ok(output.ok());
    }
    // A user of a directory service is in no local file: gpasswd can add it all the same.
    groups.iter().try_fold(true, |all, group| {
        Ok(cx.host.run(&Command::line(["gpasswd", "-a", name, group]))?.ok() && all)
    })
}

/// Change the groups of an account.
///
/// ```console
/// $ salt web1 user.chgroups ada ops
/// ```
#[function]
pub fn chgroups(
    cx: &Cx,
    /// The account.
    name: String,
    /// The groups.
    groups: Strings,
    /// Keep those it is in.
    #[default(false)]
    append: bool,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_groups(cx, &name, &groups, append, root.as_deref())
}

/// Changes one part of the comment field, by its position.
fn set_gecos(cx: &Cx, name: &str, at: usize, value: &str, root: Option<&str>) -> Result<bool> {
    checked(name)?;
    let Some(user) = find(cx, name, root)? else {
        let message = format!("\"getpwnam(): name not found: '{name}'\"");
        return Err(Error::raised("KeyError", message));
    };
    let mut parts = gecos(&user);
    if parts[at] == value {
        return Ok(true);
    }
    parts[at] = value.to_owned();
    let joined = parts.join(",");
    let mut line = Vec::new();
    if let Some(root) = root {
        line.extend(words(&["-R", root]));
    }
    line.extend(words(&["-c", joined.trim_end_matches(','), name]));
    change(cx, "usermod", &line)?;
    Ok(find(cx, name, root)?.is_some_and(|user| gecos(&user)[at] == value))
}

/// Change the full name of an account.
///
/// ```console
/// $ salt web1 user.chfullname ada 'Ada Byron'
/// ```
#[function]
pub fn chfullname(
    cx: &Cx,
    /// The account.
    name: String,
    /// The full name.
    #[arg(required)]
    fullname: Option<String>,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_gecos(cx, &name, 0, &fullname.unwrap_or_default(), root.as_deref())
}

/// Change the room of an account.
///
/// ```console
/// $ salt web1 user.chroomnumber ada 12
/// ```
#[function]
pub fn chroomnumber(
    cx: &Cx,
    /// The account.
    name: String,
    /// The room.
    #[arg(required)]
    roomnumber: Option<String>,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_gecos(cx, &name, 1, &roomnumber.unwrap_or_default(), root.as_deref())
}

/// Change the work telephone of an account.
///
/// ```console
/// $ salt web1 user.chworkphone ada 5550101
/// ```
#[function]
pub fn chworkphone(
    cx: &Cx,
    /// The account.
    name: String,
    /// The number.
    #[arg(required)]
    workphone: Option<String>,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_gecos(cx, &name, 2, &workphone.unwrap_or_default(), root.as_deref())
}

/// Change the home telephone of an account.
///
/// ```console
/// $ salt web1 user.chhomephone ada 5550100
/// ```
#[function]
pub fn chhomephone(
    cx: &Cx,
    /// The account.
    name: String,
    /// The number.
    #[arg(required)]
    homephone: Option<String>,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_gecos(cx, &name, 3, &homephone.unwrap_or_default(), root.as_deref())
}

/// Change the rest of the comment field of an account.
///
/// ```console
/// $ salt '*' user.chother foo fizzbuzz
/// ```
#[function]
pub fn chother(
    cx: &Cx,
    /// The account.
    name: String,
    /// The text.
    #[arg(required)]
    other: Option<String>,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_gecos(cx, &name, 4, &other.unwrap_or_default(), root.as_deref())
}

/// Changes a part of the comment field by Salt's word for it.
pub fn change_gecos(cx: &Cx, name: &str, field: &str, value: &str) -> Result<bool> {
    match GECOS.iter().position(|own| *own == field) {
        Some(at) => set_gecos(cx, name, at, value, None),
        None => Ok(false),
    }
}

/// Change the login class of an account; BSDs only, so False here.
///
/// ```console
/// $ salt web1 user.chloginclass ada staff
/// ```
#[function]
pub fn chloginclass(
    _cx: &Cx,
    /// The account.
    name: String,
    /// The class.
    loginclass: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    let _ = (name, loginclass, root);
    Ok(false)
}

/// Return the login class of an account; BSDs only, so False here.
///
/// ```console
/// $ salt web1 user.get_loginclass ada
/// ```
#[function]
pub fn get_loginclass(
    _cx: &Cx,
    /// The account.
    name: String,
) -> Result<bool> {
    let _ = name;
    Ok(false)
}

/// Give an account another name.
///
/// ```console
/// $ salt web1 user.rename ada lovelace
/// ```
#[function]
pub fn rename(
    cx: &Cx,
    /// The account.
    name: String,
    /// Its new name.
    new_name: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    checked(&name)?;
    checked(&new_name)?;
    let root = root.as_deref();
    if find(cx, &new_name, root)?.is_some() {
        return Err(Error::failed(format!("User '{new_name}' already exists")));
    }
    if find(cx, &name, root)?.is_none() {
        return Err(Error::failed(format!("User '{name}' does not exist")));
    }
    let mut line = Vec::new();
    if let Some(root) = root {
        line.extend(words(&["-R", root]));
    }
    line.extend(words(&["-l", &new_name, &name]));
    change(cx, "usermod", &line)?;
    Ok(find(cx, &new_name, root)?.is_some())
}
