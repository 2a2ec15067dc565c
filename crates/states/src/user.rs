//! `user`: accounts that are there as declared, or are not there.
//!
//! `present` compares account, groups, comment field and password ages with what is declared. What
//! the comparison finds is both the text of `test=True` and the list of things to do; afterwards
//! the account is compared again, so that nothing is reported that did not happen. What a new
//! account will look like (its number, its groups) only the machine's tools know: with `test=True`
//! its changes are therefore empty, as Salt's are.

use std::{collections::BTreeSet, path::Path, time::UNIX_EPOCH};

use halite_modules::{shadow, user};
use halite_spec::{
    Applied, Args, Cx, Error, Plan, Result, State,
    host::{Group, User},
    states,
};
use halite_value::{Dict, Value, entries};

states! {
    /// Accounts of people and services.
    "user": "present" => Present,
    "absent" => Absent,
}

/// What is changed first. A password sets its date, so the date comes after it; groups come last,
/// since the own group may be among them until it has changed.
fn rank(word: &str) -> u8 {
    match word {
        "passwd" => 0,
        "empty_password" => 1,
        "password_lock" => 2,
        "date" => 3,
        "home" | "homeDoesNotExist" => 4,
        "expire" | "inactdays" | "maxdays" | "mindays" | "warndays" => 5,
        "groups" => 7,
        _ => 6,
    }
}

/// Makes a home folder that belongs to its user, unless there is one.
fn make_home(cx: &Cx, home: &str, user: &User) -> Result<()> {
    let home = Path::new(home);
    if !cx.host.is_dir(home)? {
        cx.host.create_dirs(home, Some(0o755))?;
        cx.host.set_owner(home, Some(user.uid), Some(user.gid), true)?;
    }
    Ok(())
}

const REDACTED: &str = "XXX-REDACTED-XXX";

/// Make sure that an account exists and is as declared.
#[derive(Args)]
pub struct Present {
    /// The account.
    name: String,
    /// Its number.
    uid: Option<i64>,
    /// Its own group, by name or number.
    gid: Option<Value>,
    /// Its own group is the one of its name, which is made with it.
    usergroup: Option<bool>,
    /// Further groups; they must exist.
    groups: Option<Vec<String>>,
    /// Further groups, as far as they exist.
    optional_groups: Option<Vec<String>>,
    /// Take it out of all other groups.
    #[default(true)]
    remove_groups: bool,
    /// Its home folder.
    home: Option<String>,
    /// Make the home folder if it is missing.
    #[default(true)]
    createhome: bool,
    /// Move the old home folder when it changes.
    #[default(false)]
    persist_home: bool,
    /// The hash of its password.
    password: Option<String>,
    /// `password` is clear text, to be hashed here.
    #[default(false)]
    hash_password: bool,
    /// Also replace a password the user has set.
    #[default(true)]
    enforce_password: bool,
    /// It needs no password.
    #[default(false)]
    empty_password: bool,
    /// Its shell.
    shell: Option<String>,
    /// Refuse a number another account has.
    #[default(true)]
    unique: bool,
    /// A service's account, with a small number.
    #[default(false)]
    system: bool,
    /// The full name.
    fullname: Option<String>,
    /// The room.
    roomnumber: Option<String>,
    /// A telephone number.
    workphone: Option<String>,
    /// A telephone number.
    homephone: Option<String>,
    /// The rest of the comment field.
    other: Option<String>,
    /// For BSDs.
    #[expect(dead_code, reason = "Linux has none")]
    loginclass: Option<String>,
    /// When the password was last changed, in days since 1970 or as a date.
    date: Option<Value>,
    /// Days during which the password cannot be changed again.
    mindays: Option<i64>,
    /// Days after which the password must be changed.
    maxdays: Option<i64>,
    /// Days after which an expired password locks the account.
    inactdays: Option<i64>,
    /// Days before expiry from which on the user is warned.
    warndays: Option<i64>,
    /// When the account expires, in days since 1970 or as a date.
    expire: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "taken for trees that name it everywhere")]
    win_homedrive: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "taken for trees that name it everywhere")]
    win_profile: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "taken for trees that name it everywhere")]
    win_logonscript: Option<String>,
    /// For Windows.
    #[expect(dead_code, reason = "taken for trees that name it everywhere")]
    win_description: Option<String>,
    /// Do not add it to the logs of last logins.
    #[default(false)]
    nologinit: bool,
    /// Allow the number to change; files keep the old one.
    #[default(false)]
    allow_uid_change: bool,
    /// Allow the own group to change; files keep the old one.
    #[default(false)]
    allow_gid_change: bool,
    /// Lock or unlock the password.
    password_lock: Option<bool>,
    /// Use the local files only, not a directory service.
    #[default(false)]
    local: bool,
}

/// What a look at the machine found.
pub struct Seen {
    account: Option<Account>,
    groups: Vec<Group>,
    missing_groups: Vec<String>,
    optional_groups: Vec<String>,
    /// The password's hash, when the password is set here.
    password: Option<String>,
    /// Days since 1970.
    today: i64,
}

#[derive(Clone)]
struct Account {
    user: User,
    info: Dict,
    groups: Vec<String>,
    shadow: Option<shadow::Entry>,
    has_home: bool,
}

type Differences = Vec<(&'static str, Value)>;

impl Seen {
    fn gid_of(&self, group: &Value) -> Option<u32> {
        match group {
            Value::Int(gid) => u32::try_from(*gid).ok(),
            other => {
                let name = other.to_str();
                self.groups.iter().find(|group| group.name == name.as_str()).map(|group| group.gid)
            }
        }
    }

    /// The name of a group given by number; a name stays as it is.
    fn group_name(&self, group: &Value) -> String {
        let number = match group {
            Value::Int(gid) => Some(*gid),
            other => other.to_str().parse().ok(),
        };
        let named =
            number.and_then(|gid| self.groups.iter().find(|group| i64::from(group.gid) == gid));
        named.map_or_else(|| group.to_string(), |group| group.name.clone())
    }

    /// All names of the group that has this name.
    fn twins<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let gid = self.gid_of(&Value::from(name));
        let same = move |group: &&Group| group.name == name || Some(group.gid) == gid;
        self.groups.iter().filter(same).map(|group| group.name.as_str())
    }
}

impl Present {
    fn root(&self) -> Option<&'static str> {
        self.local.then_some("/")
    }

    fn account(&self, cx: &Cx) -> Result<Option<Account>> {
        let Some(user) = user::find(cx, &self.name, self.root())? else { return Ok(None) };
        let home = self.home.as_deref().filter(|home| !home.is_empty()).unwrap_or(&user.home);
        Ok(Some(Account {
            info: user::info(cx, self.name.clone(), self.root().map(Into::into))?,
            groups: user::groups_of(cx, &self.name)?,
            shadow: shadow::find(cx, &self.name, None)?,
            has_home: cx.host.is_dir(Path::new(home))?,
            user,
        }))
    }

    /// The hash to have: as given, or of the clear text with the salt in use.
    fn hash(&self, cx: &Cx, account: Option<&Account>) -> Result<Option<String>> {
        let Some(password) = self.password.as_ref().filter(|password| !password.is_empty()) else {
            return Ok(None);
        };
        if !self.hash_password {
            return Ok(Some(password.clone()));
        }
        let old = account.and_then(|account| account.shadow.as_ref());
        let parts: Vec<&str> = old.map(|old| old.passwd.split('$').collect()).unwrap_or_default();
        let (algorithm, salt) = match parts.as_slice() {
            ["", "6", salt, _] => ("sha512", Some((*salt).to_owned())),
            ["", "5", salt, _] => ("sha256", Some((*salt).to_owned())),
            ["", "6", rounds, salt, _] => ("sha512", Some(format!("{rounds}${salt}"))),
            ["", "5", rounds, salt, _] => ("sha256", Some(format!("{rounds}${salt}"))),
            _ => ("sha512", None),
        };
        shadow::gen_password(cx, password.clone(), salt, algorithm.into()).map(Some)
    }

    /// What differs, in Salt's words and order.
    fn differences(&self, seen: &Seen, account: &Account, again: bool) -> Differences {
        let mut found = Differences::new();
        let own = &account.user;
        if let Some(uid) = self.uid.filter(|uid| *uid != 0 && *uid != i64::from(own.uid)) {
            found.push(("uid", uid.into()));
        }
        let by_name = self.usergroup == Some(true) && !again;
        let by_name = by_name && seen.gid_of(&Value::from(self.name.as_str())).is_some();
        let gid = if by_name { Some(Value::from(self.name.as_str())) } else { self.gid.clone() };
        if let Some(gid) = gid.as_ref().filter(|gid| seen.gid_of(gid) != Some(own.gid)) {
            found.push(("gid", gid.clone()));
        }
        if let Some(groups) = self.group_difference(seen, account, gid.as_ref()) {
            found.push(("groups", Value::list(groups)));
        }
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        if let Some(home) = given(&self.home).filter(|home| *home != own.home) {
            found.push(("home", home.into()));
        }
        if self.createhome && !account.has_home {
            let home = given(&self.home).unwrap_or_else(|| own.home.clone());
            found.push(("homeDoesNotExist", home.into()));
        }
        if let Some(shell) = given(&self.shell).filter(|shell| *shell != own.shell) {
            found.push(("shell", shell.into()));
        }
        self.shadow_difference(seen, account.shadow.as_ref(), &mut found);
        let gecos = [
            ("fullname", &self.fullname),
            ("roomnumber", &self.roomnumber),
            ("workphone", &self.workphone),
            ("homephone", &self.homephone),
            ("other", &self.other),
        ];
        for (field, value) in gecos {
            if let Some(value) = value
                && account.info.get(field).is_some_and(|own| own != value.as_str())
            {
                found.push((field, value.into()));
            }
        }
        found
    }

    /// The groups to be in beside the own one, if they are not those the account is in.
    fn group_difference(
        &self,
        seen: &Seen,
        account: &Account,
        gid: Option<&Value>,
    ) -> Option<Vec<String>> {
        let old_own = seen.group_name(&account.user.gid.into());
        let own = gid.map_or_else(|| old_own.clone(), |gid| seen.group_name(gid));
        let own: BTreeSet<&str> = seen.twins(&own).collect();
        let keeps =
            !self.remove_groups || (self.groups.is_none() && seen.optional_groups.is_empty());
        let named = self.groups.iter().flatten();
        let wanted: BTreeSet<&str> = named
            .filter(|name| !seen.missing_groups.contains(name))
            .chain(&seen.optional_groups)
            .chain(account.groups.iter().filter(|_| keeps))
            .map(String::as_str)
            .filter(|name| !own.contains(name))
            .collect();
        // Groups that go with the account, or went with it, count for nothing unless they are
        // asked for.
        let by_name = seen.twins(&self.name).filter(|_| !wanted.contains(&*self.name));
        let aside: BTreeSet<&str> =
            own.iter().copied().chain(seen.twins(&old_own)).chain(by_name).collect();
        let have = account.groups.iter().map(String::as_str).filter(|name| !aside.contains(name));
        // Two names of one number are one group.
        let number = |name: &str| seen.gid_of(&Value::from(name));
        let have: BTreeSet<Option<u32>> = have.map(number).collect();
        let numbers: BTreeSet<Option<u32>> = wanted.iter().map(|name| number(name)).collect();
        let right = if self.remove_groups { have == numbers } else { numbers.is_subset(&have) };
        (!right).then(|| wanted.into_iter().map(str::to_owned).collect())
    }

    fn shadow_difference(
        &self,
        seen: &Seen,
        entry: Option<&shadow::Entry>,
        found: &mut Differences,
    ) {
        let passwd = entry.map_or("", |entry| entry.passwd.as_str());
        if let Some(password) = seen.password.as_ref().filter(|_| !self.empty_password)
            && (passwd == "!" || self.enforce_password)
            && passwd != password
        {
            found.push(("passwd", password.into()));
        }
        if self.empty_password && !passwd.is_empty() {
            found.push(("empty_password", true.into()));
        }
        let mut age = |word, wanted: Option<Value>, own: fn(&shadow::Entry) -> i64| {
            if let Some(wanted) = wanted
                && entry.map(own).map(Value::Int).as_ref() != Some(&wanted)
            {
                found.push((word, wanted));
            }
        };
        let int = |days: Option<i64>| days.map(Value::Int);
        age("date", self.date.clone(), |entry| entry.lstchg);
        age("mindays", int(self.mindays), |entry| entry.min);
        age("maxdays", int(self.maxdays), |entry| entry.max);
        age("inactdays", int(self.inactdays), |entry| entry.inact);
        age("warndays", int(self.warndays), |entry| entry.warn);
        age("expire", self.expire.clone().filter(Value::truthy), |entry| entry.expire);
        if let Some(lock) = self.password_lock
            && lock != passwd.starts_with('!')
        {
            found.push(("password_lock", lock.into()));
        }
    }

    /// The changes these differences will make, as they are told afterwards.
    fn predicted(&self, seen: &Seen, account: &Account, found: &Differences) -> Dict {
        let changes = Dict::new();
        let get = |word: &str| found.iter().find(|(own, _)| *own == word).map(|(_, value)| value);
        let gid = get("gid").and_then(|gid| seen.gid_of(gid)).unwrap_or(account.user.gid);
        if gid != account.user.gid {
            changes.insert("gid", gid);
        }
        let own = seen.groups.iter().filter(|group| group.gid == gid);
        let mut after: BTreeSet<String> = own.map(|group| group.name.clone()).collect();
        match get("groups").and_then(Value::items_of_sequence) {
            Some(groups) => {
                after.extend(groups.iter().map(Value::to_string));
                if !self.remove_groups {
                    after.extend(account.groups.iter().cloned());
                }
            }
            None => {
                let old_own = |name: &&String| {
                    seen.gid_of(&Value::from(name.as_str())) != Some(account.user.gid)
                };
                after.extend(account.groups.iter().filter(old_own).cloned());
            }
        }
        let after = Value::list(after);
        if account.info.get("groups").is_some_and(|own| own != after) {
            changes.insert("groups", after);
        }
        for word in
            ["home", "shell", "uid", "fullname", "roomnumber", "workphone", "homephone", "other"]
        {
            if let Some(value) = get(word) {
                changes.insert(word, value);
            }
        }
        let entry = account.shadow.as_ref();
        if ["passwd", "empty_password", "password_lock"].iter().any(|word| get(word).is_some()) {
            changes.insert("passwd", REDACTED);
        }
        let sets_date = get("passwd").is_some() && entry.is_none_or(|own| own.lstchg != seen.today);
        match get("date") {
            Some(date @ Value::Int(_)) => {
                changes.insert("lstchg", date);
            }
            _ if sets_date => {
                changes.insert("lstchg", seen.today);
            }
            _ => {}
        }
        let ages = [
            ("mindays", "min"),
            ("maxdays", "max"),
            ("warndays", "warn"),
            ("inactdays", "inact"),
            ("expire", "expire"),
        ];
        for (word, field) in ages {
            if let Some(value) = get(word) {
                changes.insert(field, value);
            }
        }
        changes
    }

    fn add(&self, cx: &Cx, seen: &Seen) -> Result<Applied> {
        let name = &self.name;
        let groups = match (&self.groups, seen.optional_groups.as_slice()) {
            (None, []) => None,
            (groups, more) => {
                let own = groups.iter().flatten().cloned();
                Some(own.chain(more.iter().cloned()).collect())
            }
        };
        let gecos =
            [&self.fullname, &self.roomnumber, &self.workphone, &self.homephone, &self.other];
        let new = user::New {
            uid: self.uid,
            gid: self.gid.clone(),
            groups,
            home: self.home.clone(),
            shell: self.shell.clone(),
            shared_uid: !self.unique,
            system: self.system,
            gecos: gecos.map(Clone::clone),
            createhome: self.createhome,
            nologinit: self.nologinit,
            root: None,
            usergroup: self.usergroup,
            local: self.local,
        };
        if !user::create(cx, name, &new)? {
            return Err(Error::failed(format!("Failed to create new user {name}")));
        }
        let changes = user::info(cx, name.clone(), self.root().map(Into::into))?;
        if !self.createhome {
            changes.insert("home", "");
        }
        let mut failed = None;
        let look = |field: fn(&shadow::Entry) -> Value| -> Result<Value> {
            Ok(shadow::find(cx, name, None)?.as_ref().map_or_else(|| "".into(), field))
        };
        if let Some(password) = seen.password.as_ref().filter(|_| !self.empty_password) {
            shadow::set_password(cx, name.clone(), password.clone(), false, None)?;
            if look(|entry| entry.passwd.as_str().into())? != password.as_str() {
                failed = Some(format!("password to {REDACTED}"));
            }
            changes.insert("password", REDACTED);
        }
        let mut empty = false;
        if self.empty_password && seen.password.is_none() {
            shadow::del_password(cx, name.clone(), None)?;
            empty = look(|entry| entry.passwd.as_str().into())? != "";
            changes.insert("password", "");
        }
        type Set = fn(&Cx, String, Value, Option<String>) -> Result<bool>;
        type Field = fn(&shadow::Entry) -> Value;
        let int = |days: Option<i64>| days.filter(|days| *days != 0).map(Value::Int);
        let expire = self.expire.clone().filter(Value::truthy);
        let ages: [(&str, &str, Option<Value>, Set, Field); 6] = [
            ("date", "last change date", self.date.clone(), shadow::set_date, |e| e.lstchg.into()),
            ("mindays", "minimum days", int(self.mindays), shadow::set_mindays, |e| e.min.into()),
            ("maxdays", "maximum days", int(self.maxdays), shadow::set_maxdays, |e| e.max.into()),
            ("inactdays", "inactive days", int(self.inactdays), shadow::set_inactdays, |e| {
                e.inact.into()
            }),
            ("warndays", "warn days", int(self.warndays), shadow::set_warndays, |e| e.warn.into()),
            ("expire", "expire days", expire, shadow::set_expire, |e| e.expire.into()),
        ];
        for (word, shown, wanted, set, field) in ages {
            let Some(wanted) = wanted else { continue };
            set(cx, name.clone(), wanted.clone(), None)?;
            if look(field)? != wanted {
                failed = Some(format!("{shown} to {wanted}"));
            }
            changes.insert(word, wanted);
        }
        if let Some(what) = failed {
            return Ok(Applied::failed(
                changes,
                format!("User {name} created but failed to set {what}"),
            ));
        }
        if empty {
            return Ok(Applied::failed(
                changes,
                format!("User {name} created but failed to empty password"),
            ));
        }
        Ok(Applied::changes(changes).comment(format!("New user {name} created")))
    }

    fn change(&self, cx: &Cx, seen: &Seen, account: &Account) -> Result<Applied> {
        let mut found = self.differences(seen, account, false);
        found.sort_by_key(|(word, _)| rank(word));
        // A home that is missing is set and made at once.
        let no_home = found.iter().any(|(word, _)| *word == "homeDoesNotExist");
        for (word, value) in found.iter().filter(|(word, _)| !(no_home && *word == "home")) {
            self.change_one(cx, account, word, value)?;
        }
        self.compared(cx, seen, account)
    }

    /// Makes one thing what it should be.
    fn change_one(&self, cx: &Cx, account: &Account, word: &str, value: &Value) -> Result<()> {
        let (name, own) = (self.name.clone(), value.clone());
        match word {
            "passwd" => drop(shadow::set_password(cx, name, own.to_string(), false, None)?),
            "empty_password" => drop(shadow::del_password(cx, name, None)?),
            "password_lock" => match self.password_lock {
                Some(true) => drop(shadow::lock_password(cx, name, None)?),
                Some(false) => drop(shadow::unlock_password(cx, name, None)?),
                None => {}
            },
            "date" => drop(shadow::set_date(cx, name, own, None)?),
            "expire" => drop(shadow::set_expire(cx, name, own, None)?),
            "inactdays" => drop(shadow::set_inactdays(cx, name, own, None)?),
            "maxdays" => drop(shadow::set_maxdays(cx, name, own, None)?),
            "mindays" => drop(shadow::set_mindays(cx, name, own, None)?),
            "warndays" => drop(shadow::set_warndays(cx, name, own, None)?),
            "home" => drop(user::chhome(cx, name, own.to_string(), self.persist_home, None)?),
            "homeDoesNotExist" => {
                user::chhome(cx, name, own.to_string(), self.persist_home, None)?;
                make_home(cx, &own.to_str(), &account.user)?;
            }
            "uid" => drop(user::chuid(cx, name, own.to_int().unwrap_or_default(), None)?),
            "gid" => drop(user::chgid(cx, name, own, None)?),
            "shell" => drop(user::chshell(cx, name, own.to_string(), None)?),
            "fullname" | "roomnumber" | "workphone" | "homephone" | "other" => {
                user::change_gecos(cx, &self.name, word, &own.to_str())?;
            }
            "groups" => {
                if let Some(groups) = own.items_of_sequence() {
                    let groups: Vec<String> = groups.iter().map(Value::to_string).collect();
                    user::set_groups(cx, &self.name, &groups, !self.remove_groups, None)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks again, and tells what has changed and what has not.
    fn compared(&self, cx: &Cx, seen: &Seen, before: &Account) -> Result<Applied> {
        let name = &self.name;
        let Some(after) = self.account(cx)? else {
            return Err(Error::failed(format!("the user {name} has vanished meanwhile")));
        };
        let changes = Dict::new();
        for (key, value) in &after.info {
            if before.info.get(&key).as_ref() != Some(&value) {
                changes.insert(key, value);
            }
        }
        let described = |entry: Option<&shadow::Entry>| entry.map(shadow::Entry::described);
        let old = described(before.shadow.as_ref()).unwrap_or_default();
        let password_in_place = seen.password.as_deref()
            == Some(before.shadow.as_ref().map_or("", |entry| entry.passwd.as_str()));
        // Salt looks at the shadow entry again only when the password was not the wanted one.
        let new = described(after.shadow.as_ref()).filter(|_| !password_in_place);
        for (key, value) in new.iter().flatten() {
            if old.get(&key).as_ref() != Some(&value) {
                let shown = if key.as_str() == Some("passwd") { REDACTED.into() } else { value };
                changes.insert(key, shown);
            }
        }
        let comment = if changes.is_empty() {
            format!("User {name} is present and up to date")
        } else {
            format!("Updated user {name}")
        };
        let seen = Seen { groups: cx.host.groups()?, ..Seen::again(seen) };
        let left: Dict = self.differences(&seen, &after, true).into_iter().collect();
        if !left.is_empty() {
            if left.contains("passwd") {
                left.insert("passwd", REDACTED);
            }
            let comment =
                format!("These values could not be changed: {}", Value::Dict(left).repr());
            return Ok(Applied::failed(changes, comment));
        }
        Ok(Applied::changes(changes).comment(comment))
    }
}

impl Seen {
    fn again(seen: &Self) -> Self {
        Self {
            account: None,
            groups: Vec::new(),
            missing_groups: seen.missing_groups.clone(),
            optional_groups: seen.optional_groups.clone(),
            password: seen.password.clone(),
            today: seen.today,
        }
    }
}

impl State for Present {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        for field in [&self.fullname, &self.roomnumber, &self.workphone].into_iter().flatten() {
            if field.contains(',') {
                return Err(Error::failed(format!("Unsupported char ',' in {field}")));
            }
        }
        let account = self.account(cx)?;
        let there = |group: &&String| cx.host.group_named(group).is_ok_and(|own| own.is_some());
        let named = |groups: &Option<Vec<String>>| groups.clone().unwrap_or_default();
        let now = cx.host.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Seen {
            groups: cx.host.groups()?,
            missing_groups: named(&self.groups)
                .iter()
                .filter(|group| !there(group))
                .cloned()
                .collect(),
            optional_groups: named(&self.optional_groups).iter().filter(there).cloned().collect(),
            password: self.hash(cx, account.as_ref())?,
            account,
            today: (now.as_secs() / 86_400) as i64,
        })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let name = &self.name;
        let missing = seen.missing_groups.join(",");
        let Some(account) = &seen.account else {
            let groups =
                if missing.is_empty() { missing } else { format!(" (pending groups: {missing})") };
            return Ok(Plan::unknown().pending(format!("User {name} set to be added{groups}")));
        };
        let found = self.differences(seen, account, false);
        let mut errors = String::new();
        for (word, allowed, own) in [
            ("uid", self.allow_uid_change, account.user.uid),
            ("gid", self.allow_gid_change, account.user.gid),
        ] {
            if let Some((_, new)) = found.iter().find(|(own, _)| *own == word)
                && !allowed
            {
                errors += &format!(
                    "\n\n- Changing {word} ({own} -> {new}) not permitted, set allow_{word}_change \
                     to True to force this change. Note that this will not change file ownership."
                );
            }
        }
        if !errors.is_empty() {
            return Err(Error::failed(format!(
                "Encountered error checking for needed changes. Additional info follows:{}",
                errors.replace(".\n\n- ", ".\n- ")
            )));
        }
        if found.is_empty() {
            let fine = format!("User {name} is present and up to date");
            if missing.is_empty() {
                return Ok(Plan::nothing(fine));
            }
            // Only a real run complains about groups: in a test they may be made before.
            return Ok(Plan { test_result: Some(true), ..Plan::unknown().pending(fine) });
        }
        let mut text = "The following user attributes are set to be changed:\n".to_owned();
        for (word, value) in &found {
            let value = if *word == "passwd" { REDACTED.into() } else { value.to_string() };
            text += &format!("{word}: {value}\n");
        }
        if !missing.is_empty() {
            text += &format!("groups (pending creation): {missing}\n");
        }
        let changes = self.predicted(seen, account, &found);
        Ok(Plan { unknown: true, ..Plan::changes(changes).pending(text) })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        if !seen.missing_groups.is_empty() {
            let missing = seen.missing_groups.join(",");
            return Err(Error::failed(format!(
                "The following group(s) are not present: {missing}"
            )));
        }
        match &seen.account {
            Some(account) => self.change(cx, &seen, account),
            None => self.add(cx, &seen),
        }
    }
}

/// Make sure that there is no such account.
#[derive(Args)]
pub struct Absent {
    /// The account.
    name: String,
    /// Remove its files (home folder, mail) too.
    #[default(false)]
    purge: bool,
    /// Also while it is in use.
    #[default(false)]
    force: bool,
    /// Use the local files only.
    #[default(false)]
    local: bool,
}

/// What goes away with an account: the groups that go with it, in order.
pub struct Leaving {
    there: bool,
    groups: Vec<String>,
    goes_too: Option<String>,
}

impl State for Absent {
    type Seen = Leaving;

    fn observe(&self, cx: &Cx) -> Result<Leaving> {
        let root = self.local.then_some("/");
        let Some(user) = user::find(cx, &self.name, root)? else {
            return Ok(Leaving { there: false, groups: Vec::new(), goes_too: None });
        };
        // userdel removes a group of the same name that nobody else is in, if so configured.
        let text = cx.host.read_text_if_there(Path::new("/etc/login.defs"))?.unwrap_or_default();
        let configured = text.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some("USERGROUPS_ENAB") && words.next() == Some("yes")
        });
        let shared = |group: &Group| -> Result<bool> {
            let others = cx.host.users()?;
            let primary = others.iter().any(|own| own.gid == group.gid && own.name != user.name);
            Ok(primary || group.members.iter().any(|member| *member != user.name))
        };
        let mut goes_too = None;
        if let Some(group) = cx.host.group_named(&self.name)?.filter(|_| configured)
            && !shared(&group)?
            && (group.gid == user.gid || group.members.contains(&user.name))
        {
            goes_too = Some(group.name);
        }
        Ok(Leaving { there: true, groups: user::groups_of(cx, &self.name)?, goes_too })
    }

    fn plan(&self, seen: &Leaving) -> Result<Plan> {
        let name = &self.name;
        if !seen.there {
            return Ok(Plan::nothing(format!("User {name} is not present")));
        }
        let changes = Dict::new();
        if let Some(group) = &seen.goes_too {
            changes.insert(format!("{group} group"), "removed");
        }
        changes.insert(name, "removed");
        Ok(Plan::changes(changes)
            .pending(format!("User {name} set for removal"))
            .done(format!("Removed user {name}")))
    }

    fn apply(&self, cx: &Cx, seen: Leaving) -> Result<Applied> {
        let name = &self.name;
        if !user::delete(cx, name.clone(), self.purge, self.force, None, self.local)? {
            return Err(Error::failed(format!("Failed to remove user {name}")));
        }
        let changes = Dict::new();
        for group in seen.groups {
            if cx.host.group_named(&group)?.is_none() {
                changes.insert(format!("{group} group"), "removed");
            }
        }
        changes.update(&entries! { name => "removed" });
        Ok(Applied::changes(changes))
    }
}
