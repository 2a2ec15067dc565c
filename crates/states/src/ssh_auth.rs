//! `ssh_auth`: keys that may sign in as a user.

use halite_modules::ssh::{self, Key, Source, Status};
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::Dict;

states! {
    /// Keys that may sign in as a user.
    "ssh_auth": "present" => Present,
    "absent" => Absent,
    "manage" => Manage,
}

const FAILED: &str =
    "Failed to add the ssh key. Is the home directory available, and/or does the key file exist?";
const INVALID: &str = "Invalid public ssh key, most likely has spaces or invalid syntax";

/// Reads a key given as text: a whole line, or the key with a comment. What the line does not say
/// comes from the other arguments.
fn key_of(text: &str, enc: &str, comment: &str, options: &[String]) -> Key {
    let mut key = Key {
        enc: enc.to_owned(),
        key: String::new(),
        comment: comment.to_owned(),
        options: options.to_vec(),
    };
    match Key::read(text) {
        Some(line) => {
            key.enc = line.enc;
            key.key = line.key;
            if !line.options.is_empty() {
                key.options = line.options;
            }
            if !line.comment.is_empty() {
                // As it stands there, with its spaces.
                let rest = text.trim().split_once(key.key.as_str()).map(|(_, rest)| rest.trim());
                key.comment = rest.unwrap_or_default().to_owned();
            }
        }
        None => {
            let mut words = text.trim().splitn(2, char::is_whitespace);
            key.key = words.next().unwrap_or_default().to_owned();
            if let Some(comment) = words.next() {
                key.comment = comment.trim_start().to_owned();
            }
        }
    }
    key
}

/// A key, or a file of them, and the user they are for.
#[derive(Args)]
struct Wanted {
    /// The key: a whole line, or only the key.
    name: String,
    /// The user.
    user: String,
    /// The kind of key, if the line does not say.
    #[default("ssh-rsa".to_owned())]
    enc: String,
    /// The comment, if the line does not say.
    #[default(String::new())]
    comment: String,
    /// A file of keys, in place of the name.
    #[default(String::new())]
    source: String,
    /// The options, if the line does not say.
    options: Option<Vec<String>>,
    /// The user's file, relative to the home folder.
    #[default(".ssh/authorized_keys".to_owned())]
    config: String,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
}

impl Wanted {
    /// The key of the name.
    fn named(&self) -> Key {
        key_of(&self.name, &self.enc, &self.comment, &self.options())
    }

    fn options(&self) -> Vec<String> {
        self.options.clone().unwrap_or_default()
    }
}

/// Make sure that a key may sign in as a user.
#[derive(Args)]
pub struct Present {
    #[group]
    wanted: Wanted,
    /// Accepted for old trees.
    #[expect(dead_code, reason = "taken and ignored, as Salt does")]
    rest: Rest,
}

/// Keys and how they stand to the user's file.
pub enum Seen {
    One(Key, Status),
    File(Vec<(Key, Status)>),
}

fn look(cx: &Cx, user: &str, config: &str, mut key: Key) -> Result<(Key, Status)> {
    key.enc = ssh::refined(&key.enc)?;
    let status = ssh::status_of(cx, user, &key, config)?;
    Ok((key, status))
}

impl State for Present {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let kind = self.wanted.fingerprint_hash_type.as_deref();
        if self.wanted.source.is_empty() {
            let key = self.wanted.named();
            let (key, status) = look(cx, &self.wanted.user, &self.wanted.config, key)?;
            if ssh::fingerprint(&key.key, kind)?.is_none() {
                return Err(Error::failed(INVALID));
            }
            return Ok(Seen::One(key, status));
        }
        match ssh::source(cx, &self.wanted.source, &cx.saltenv(), kind)? {
            Source::Missing => Err(Error::failed(format!(
                "Failed to add the ssh key. Source file {} is missing",
                self.wanted.source
            ))),
            Source::Empty(message) => Err(Error::failed(message)),
            Source::Keys(keys) => {
                let options = self.wanted.options();
                let looked = keys.into_iter().map(|mut key| {
                    if !options.is_empty() {
                        key.options.clone_from(&options);
                    }
                    look(cx, &self.wanted.user, &self.wanted.config, key)
                });
                Ok(Seen::File(looked.collect::<Result<_>>()?))
            }
        }
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let user = &self.wanted.user;
        let (name, status, pending) = match seen {
            Seen::One(key, status) => {
                let name = &key.key;
                let how = if *status == Status::Update { "updated" } else { "added" };
                (name.as_str(), *status, format!("Key {name} for user {user} is set to be {how}"))
            }
            Seen::File(keys) => {
                let has = |wanted: Status| keys.iter().any(|(_, status)| *status == wanted);
                let status = if has(Status::Update) {
                    Status::Update
                } else if has(Status::Add) {
                    Status::Add
                } else {
                    Status::Exists
                };
                let mut pending = String::new();
                for (key, status) in keys.iter().filter(|(_, status)| *status != Status::Exists) {
                    pending += &format!("Set to {}: {}\n", status.word(), key.key);
                }
                (self.wanted.name.as_str(), status, pending)
            }
        };
        let there = format!("The authorized host key {name} is already present for user {user}");
        Ok(match status {
            Status::Exists if self.wanted.source.is_empty() => Plan::nothing(there),
            Status::Exists => {
                let source = &self.wanted.source;
                Plan::nothing(format!("All host keys in file {source} are already present"))
                    .done(there)
            }
            Status::Update => Plan::change(name, "Updated")
                .pending(pending)
                .done(format!("The authorized host key {name} for user {user} was updated")),
            Status::Add => Plan::change(name, "New")
                .pending(pending)
                .done(format!("The authorized host key {name} for user {user} was added")),
        })
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let kind = self.wanted.fingerprint_hash_type.as_deref();
        let keys = match seen {
            Seen::One(key, _) => vec![key],
            Seen::File(keys) => keys.into_iter().map(|(key, _)| key).collect(),
        };
        for key in keys {
            match ssh::put_key(cx, &self.wanted.user, &key, &self.wanted.config, kind)? {
                "fail" => return Err(Error::failed(FAILED)),
                "invalid" | "Invalid public key" => return Err(Error::failed(INVALID)),
                _ => {}
            }
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that a key may not sign in as a user.
#[derive(Args)]
pub struct Absent(Wanted);

impl State for Absent {
    /// The keys there are of those to remove.
    type Seen = Vec<String>;

    fn observe(&self, cx: &Cx) -> Result<Vec<String>> {
        let kind = self.0.fingerprint_hash_type.as_deref();
        let named = if self.0.source.is_empty() {
            vec![self.0.named().key]
        } else {
            match ssh::source(cx, &self.0.source, &cx.saltenv(), kind)? {
                // Salt says nothing at all here.
                Source::Missing => Vec::new(),
                Source::Empty(message) => return Err(Error::failed(message)),
                Source::Keys(keys) => keys.into_iter().map(|key| key.key).collect(),
            }
        };
        let there = ssh::keys_of(cx, &self.0.user, &self.0.config, None)?;
        Ok(named.into_iter().filter(|key| there.iter().any(|(own, _)| own.key == *key)).collect())
    }

    fn plan(&self, keys: &Vec<String>) -> Result<Plan> {
        let user = &self.0.user;
        let Some(first) = keys.first() else {
            let pending = if self.0.source.is_empty() {
                "Key is already absent".to_owned()
            } else {
                format!("All host keys in file {} are already absent", self.0.source)
            };
            return Ok(Plan::nothing(pending).done("Key not present"));
        };
        if self.0.source.is_empty() {
            return Ok(Plan::change(first, "Removed")
                .pending(format!("Key {first} for user {user} is set for removal"))
                .done("Key removed"));
        }
        let pending: String = keys.iter().map(|key| format!("Set to remove: {key}\n")).collect();
        Ok(Plan::change(&self.0.name, "Removed").pending(pending).done("Key removed"))
    }

    fn apply(&self, cx: &Cx, keys: Vec<String>) -> Result<Applied> {
        for key in keys {
            ssh::take_key(cx, &self.0.user, &key, &self.0.config)?;
        }
        Ok(Applied::as_planned())
    }
}

/// Make sure that exactly these keys may sign in as a user.
#[derive(Args)]
pub struct Manage {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: String,
    /// The keys.
    ssh_keys: Vec<String>,
    /// The user.
    user: String,
    /// The kind of key, where the line does not say.
    #[default("ssh-rsa".to_owned())]
    enc: String,
    /// The comment, where the line does not say.
    #[default(String::new())]
    comment: String,
    /// Accepted for old trees.
    #[expect(dead_code, reason = "keys are given by name here")]
    #[default(String::new())]
    source: String,
    /// The options, where the line does not say.
    options: Option<Vec<String>>,
    /// The user's file, relative to the home folder.
    #[default(".ssh/authorized_keys".to_owned())]
    config: String,
    /// The hash of fingerprints.
    fingerprint_hash_type: Option<String>,
    /// Accepted for old trees.
    #[expect(dead_code, reason = "taken and ignored, as Salt does")]
    rest: Rest,
}

/// What `manage` has to do.
pub struct Work {
    extra: Vec<String>,
    /// The keys in their order; none for what is no key.
    keys: Vec<Option<(Key, Status)>>,
}

impl Work {
    fn is_bad(&self) -> bool {
        self.keys.iter().any(Option::is_none)
    }
}

impl State for Manage {
    type Seen = Work;

    fn observe(&self, cx: &Cx) -> Result<Work> {
        let kind = self.fingerprint_hash_type.as_deref();
        let words: Vec<&str> = self.ssh_keys.iter().flat_map(|key| key.split(' ')).collect();
        let there = ssh::keys_of(cx, &self.user, &self.config, None)?;
        let extra = there.into_iter().map(|(key, _)| key.key);
        let extra = extra.filter(|key| !words.contains(&key.as_str())).collect();
        let options = self.options.clone().unwrap_or_default();
        let mut keys = Vec::new();
        for text in &self.ssh_keys {
            let key = key_of(text, &self.enc, &self.comment, &options);
            keys.push(match ssh::fingerprint(&key.key, kind)? {
                Some(_) => Some(look(cx, &self.user, &self.config, key)?),
                None => None,
            });
        }
        Ok(Work { extra, keys })
    }

    fn plan(&self, work: &Work) -> Result<Plan> {
        let user = &self.user;
        let changes = Dict::new();
        let (mut pending, mut done) = (Vec::new(), Vec::new());
        for key in &work.extra {
            changes.insert(key, "Key removed");
            pending.push(format!("{key} Key set for removal"));
        }
        for key in &work.keys {
            let Some((key, status)) = key else {
                pending.push(INVALID.to_owned());
                done.push(INVALID.to_owned());
                continue;
            };
            let name = &key.key;
            match status {
                Status::Exists => {
                    let text = format!(
                        "The authorized host key {name} is already present for user {user}"
                    );
                    pending.push(text.clone());
                    done.push(text);
                }
                Status::Add => {
                    changes.insert(name, "New");
                    pending.push(format!("Key {name} for user {user} is set to be added"));
                }
                Status::Update => {
                    changes.insert(name, "Updated");
                    pending.push(format!("Key {name} for user {user} is set to be updated"));
                }
            }
        }
        if work.is_bad() && changes.is_empty() {
            return Err(Error::failed(done.join("\n")));
        }
        let mut plan = Plan::changes(changes).pending(pending.join("\n")).done(done.join("\n"));
        if work.is_bad() {
            plan.test_result = Some(false);
        }
        Ok(plan)
    }

    fn apply(&self, cx: &Cx, work: Work) -> Result<Applied> {
        for key in &work.extra {
            ssh::take_key(cx, &self.user, key, &self.config)?;
        }
        let kind = self.fingerprint_hash_type.as_deref();
        for (key, _) in work.keys.iter().flatten() {
            match ssh::put_key(cx, &self.user, key, &self.config, kind)? {
                "fail" => return Err(Error::failed(FAILED)),
                "invalid" | "Invalid public key" => return Err(Error::failed(INVALID)),
                _ => {}
            }
        }
        // The other keys are seen to; then the state fails of those that are none.
        let result = work.is_bad().then_some(false);
        Ok(Applied { result, ..Applied::as_planned() })
    }
}
