//! `shadow`: passwords and their ages (Salt's `linux_shadow`).
//!
//! `/etc/shadow` is read directly, as Salt does; ages are changed with `chage`, locks with
//! `passwd`. A password is written into the file in one step that keeps its owner and mode, and
//! is never on a command line (unless `use_usermod` asks for it).

use std::{
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use halite_spec::{Command, Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries};

use crate::random;

module! {
    /// Passwords and their ages.
    "shadow": default_hash, info, set_inactdays, set_maxdays, set_mindays, gen_password,
    del_password, lock_password, unlock_password, set_password, set_warndays, set_date, set_expire,
    list_users,
}

/// One line of the file. Numbers that are not there are -1, as Salt shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub passwd: String,
    pub lstchg: i64,
    pub min: i64,
    pub max: i64,
    pub warn: i64,
    pub inact: i64,
    pub expire: i64,
}

impl Entry {
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.trim().split(':');
        let (name, passwd) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let mut number = || parts.next().and_then(|text| text.parse().ok()).unwrap_or(-1);
        Some(Self {
            name,
            passwd,
            lstchg: number(),
            min: number(),
            max: number(),
            warn: number(),
            inact: number(),
            expire: number(),
        })
    }

    pub fn is_locked(&self) -> bool {
        self.passwd.starts_with('!')
    }

    /// As `shadow.info` returns it.
    pub fn described(&self) -> Dict {
        entries! {
            "name" => &self.name, "passwd" => &self.passwd, "lstchg" => self.lstchg,
            "min" => self.min, "max" => self.max, "warn" => self.warn, "inact" => self.inact,
            "expire" => self.expire,
        }
    }
}

fn file(root: Option<&str>) -> PathBuf {
    let root = root.filter(|root| !root.is_empty()).unwrap_or("/");
    Path::new(root).join("etc/shadow")
}

/// Returns an account's line; none also when the file cannot be read.
pub fn find(cx: &Cx, name: &str, root: Option<&str>) -> Result<Option<Entry>> {
    let Ok(text) = cx.host.read_text(&file(root)) else { return Ok(None) };
    Ok(text.lines().filter_map(Entry::read).find(|entry| entry.name == name))
}

/// Return what an account without a password has in its place.
///
/// ```console
/// $ salt web1 shadow.default_hash
/// ```
#[function]
pub fn default_hash(_cx: &Cx) -> Result<&'static str> {
    Ok("!")
}

/// Return the password hash of an account and its ages.
///
/// ```console
/// $ salt web1 shadow.info ada
/// ```
#[function]
pub fn info(
    cx: &Cx,
    /// The account.
    name: String,
    /// Look into the files below this folder.
    root: Option<String>,
) -> Result<Dict> {
    let nothing = || {
        let names = ["name", "passwd", "lstchg", "min", "max", "warn", "inact", "expire"];
        names.map(|name| (name, Value::from(""))).into_iter().collect()
    };
    let found = find(cx, &name, root.as_deref())?;
    Ok(found.map_or_else(nothing, |entry| entry.described()))
}

/// Return the names of all accounts in the file, sorted.
///
/// ```console
/// $ salt web1 shadow.list_users
/// ```
#[function]
pub fn list_users(
    cx: &Cx,
    /// Look into the files below this folder.
    root: Option<String>,
) -> Result<Vec<String>> {
    let text = cx.host.read_text(&file(root.as_deref()))?;
    let mut names: Vec<String> =
        text.lines().filter_map(Entry::read).map(|entry| entry.name).collect();
    names.sort();
    Ok(names)
}

fn checked(name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with('-') || name.contains([':', '\n', '\0']) {
        return Err(Error::invalid(format!("'{name}' cannot be the name of an account")));
    }
    Ok(())
}

fn run(cx: &Cx, program: &str, root: Option<&str>, words: &[&str]) -> Result<bool> {
    let root = root.map(|root| ["-R", root]).into_iter().flatten();
    let line = std::iter::once(program).chain(root).chain(words.iter().copied());
    let output = cx.host.run(&Command::line(line))?;
    cx.job.set_retcode(output.code.into());
    Ok(output.ok())
}

/// Changes an age with `chage`. Salt looks again for some of them and trusts the tool for others.
fn set_age(
    cx: &Cx,
    name: &str,
    option: &str,
    value: &Value,
    root: Option<&str>,
    field: fn(&Entry) -> i64,
    look_again: bool,
) -> Result<bool> {
    checked(name)?;
    let has = |entry: &Entry| Value::Int(field(entry)) == *value;
    match find(cx, name, root)? {
        None => return Ok(false),
        Some(entry) if has(&entry) => return Ok(true),
        Some(_) => {}
    }
    let done = run(cx, "chage", root, &[option, &value.to_str(), name])?;
    if look_again {
        return Ok(find(cx, name, root)?.is_some_and(|entry| has(&entry)));
    }
    Ok(done)
}

/// Set the days after which an expired password locks the account.
///
/// ```console
/// $ salt web1 shadow.set_inactdays ada 10
/// ```
#[function]
pub fn set_inactdays(
    cx: &Cx,
    /// The account.
    name: String,
    /// Days.
    inactdays: Value,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_age(cx, &name, "-I", &inactdays, root.as_deref(), |entry| entry.inact, true)
}

/// Set the days after which a password must be changed.
///
/// ```console
/// $ salt web1 shadow.set_maxdays ada 180
/// ```
#[function]
pub fn set_maxdays(
    cx: &Cx,
    /// The account.
    name: String,
    /// Days.
    maxdays: Value,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_age(cx, &name, "-M", &maxdays, root.as_deref(), |entry| entry.max, true)
}

/// Set the days during which a password cannot be changed again.
///
/// ```console
/// $ salt web1 shadow.set_mindays ada 1
/// ```
#[function]
pub fn set_mindays(
    cx: &Cx,
    /// The account.
    name: String,
    /// Days.
    mindays: Value,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_age(cx, &name, "-m", &mindays, root.as_deref(), |entry| entry.min, true)
}

/// Set the days before expiry from which on the user is warned.
///
/// ```console
/// $ salt web1 shadow.set_warndays ada 14
/// ```
#[function]
pub fn set_warndays(
    cx: &Cx,
    /// The account.
    name: String,
    /// Days.
    warndays: Value,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_age(cx, &name, "-W", &warndays, root.as_deref(), |entry| entry.warn, true)
}

/// Set when the password was last changed.
///
/// ```console
/// $ salt web1 shadow.set_date ada 0
/// ```
#[function]
pub fn set_date(
    cx: &Cx,
    /// The account.
    name: String,
    /// Days since 1970, or a date.
    date: Value,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_age(cx, &name, "-d", &date, root.as_deref(), |entry| entry.lstchg, false)
}

/// Set when the account expires.
///
/// ```console
/// $ salt web1 shadow.set_expire ada 20000
/// ```
#[function]
pub fn set_expire(
    cx: &Cx,
    /// The account.
    name: String,
    /// Days since 1970, or a date; -1 for never.
    expire: Value,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_age(cx, &name, "-E", &expire, root.as_deref(), |entry| entry.expire, false)
}

/// Return the hash of a password.
///
/// ```console
/// $ salt web1 shadow.gen_password s3cret
/// ```
#[function]
pub fn gen_password(
    cx: &Cx,
    /// The password.
    password: String,
    /// The salt; a random one if none is given.
    crypt_salt: Option<String>,
    /// `sha512` or `sha256`.
    #[default("sha512".to_owned())]
    algorithm: String,
) -> Result<String> {
    random::crypt(cx, &password, crypt_salt.as_deref(), &algorithm)
}

/// Remove the password of an account: it needs none any more.
///
/// ```console
/// $ salt web1 shadow.del_password ada
/// ```
#[function]
pub fn del_password(
    cx: &Cx,
    /// The account.
    name: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    checked(&name)?;
    run(cx, "passwd", root.as_deref(), &["-d", &name])?;
    Ok(find(cx, &name, root.as_deref())?.is_some_and(|entry| entry.passwd.is_empty()))
}

fn set_lock(cx: &Cx, name: &str, root: Option<&str>, lock: bool) -> Result<bool> {
    checked(name)?;
    match find(cx, name, root)? {
        None => return Ok(false),
        Some(entry) if entry.is_locked() == lock => return Ok(true),
        Some(_) => {}
    }
    run(cx, "passwd", root, &[if lock { "-l" } else { "-u" }, name])?;
    Ok(find(cx, name, root)?.map_or(!lock, |entry| entry.is_locked() == lock))
}

/// Lock the password of an account.
///
/// ```console
/// $ salt web1 shadow.lock_password ada
/// ```
#[function]
pub fn lock_password(
    cx: &Cx,
    /// The account.
    name: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_lock(cx, &name, root.as_deref(), true)
}

/// Unlock the password of an account.
///
/// ```console
/// $ salt web1 shadow.unlock_password ada
/// ```
#[function]
pub fn unlock_password(
    cx: &Cx,
    /// The account.
    name: String,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<bool> {
    set_lock(cx, &name, root.as_deref(), false)
}

/// Set the password hash of an account.
///
/// ```console
/// $ salt web1 shadow.set_password ada '$6$salt$hash'
/// ```
#[function]
pub fn set_password(
    cx: &Cx,
    /// The account.
    name: String,
    /// The hash, not the password.
    password: String,
    /// Have `usermod` do it.
    #[default(false)]
    use_usermod: bool,
    /// Work on the files below this folder.
    root: Option<String>,
) -> Result<Value> {
    checked(&name)?;
    if cx.host.user_named(&name)?.is_none() {
        tracing::warn!("user {name} does not exist, cannot set password");
        return Ok(false.into());
    }
    if password.contains([':', '\n']) {
        return Err(Error::invalid("a password hash holds no colon and no line end"));
    }
    let root = root.as_deref();
    if use_usermod {
        run(cx, "usermod", root, &["-p", &password, &name])?;
    } else {
        let path = file(root);
        let Some(text) = cx.host.read_text_if_there(&path)? else { return Ok(Value::dict()) };
        let since = cx.host.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let today = since.as_secs() / 86_400;
        cx.host.write(
            &path,
            with_password(&text, &name, &password, today).as_bytes(),
            &Write::default(),
        )?;
    }
    Ok(find(cx, &name, root)?.is_some_and(|entry| entry.passwd == password).into())
}

fn with_password(text: &str, name: &str, password: &str, today: u64) -> String {
    let mut found = false;
    let mut new = String::with_capacity(text.len() + 120);
    for line in text.split_inclusive('\n') {
        let mut parts: Vec<&str> = line.trim().split(':').take(9).collect();
        if parts.first() != Some(&name) {
            new += line;
            continue;
        }
        found = true;
        parts.resize(9, "");
        let day = today.to_string();
        parts[1] = password;
        parts[2] = &day;
        new += &parts.join(":");
        new.push('\n');
    }
    if !found {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &format!("{name}:{password}:{today}::::::\n");
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_replace_or_join() {
        let check = |text: &str, expected: &str| {
            assert_eq!(with_password(text, "ann", "H", 7), expected);
        };
        check(
            "root:*:1:0:9:7:::\nann:!:1:0:99999:7:::\n",
            "root:*:1:0:9:7:::\nann:H:7:0:99999:7:::\n",
        );
        check("ann:!\n", "ann:H:7::::::\n");
        check("root:*:1:0:9:7:::", "root:*:1:0:9:7:::\nann:H:7::::::\n");
    }

    #[test]
    fn missing_numbers_are_minus_one() {
        let entry = Entry::read("ann:!:19000:0:99999:7:::").unwrap();
        assert_eq!((entry.lstchg, entry.max, entry.inact, entry.expire), (19000, 99999, -1, -1));
    }
}
