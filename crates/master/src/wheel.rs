//! Wheel: functions about the master itself. Here: `key.*` and `minions.connected`.

use std::sync::Arc;

use halite_client::{KeyAction, KeyChange, KeyLists, KeyMatch};
use halite_crypt::{Hash, fingerprint};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::{MinionId, Tag};

use crate::{
    Error, Master,
    keyring::KeyState,
    runners::{Call, Outcome},
};

impl Master {
    /// Returns the ids of all keys by state. Blocking, like all of these.
    pub fn key_lists(&self) -> Result<KeyLists, Error> {
        let list = |state| -> Result<Vec<SmolStr>, Error> {
            Ok(self.keys.list(state)?.iter().map(|id| SmolStr::new(id.as_str())).collect())
        };
        Ok(KeyLists {
            accepted: list(KeyState::Accepted)?,
            pending: list(KeyState::Pending)?,
            rejected: list(KeyState::Rejected)?,
            denied: list(KeyState::Denied)?,
        })
    }

    /// Returns the texts of matching keys: folder → id → PEM.
    pub fn key_texts(&self, matching: &KeyMatch) -> Result<Dict, Error> {
        let found = Dict::new();
        for state in KeyState::ALL {
            let texts: Dict = self
                .keys
                .list(state)?
                .into_iter()
                .filter(|id| fits(matching, id))
                .filter_map(|id| Some((id.as_str().to_owned(), self.keys.text(state, &id)?)))
                .collect();
            if !texts.is_empty() {
                found.insert(state.folder(), texts);
            }
        }
        Ok(found)
    }

    /// Changes the states of keys, and returns what changed: each id under its new state, a
    /// deleted one under its old.
    pub fn change_keys(&self, change: &KeyChange) -> Result<KeyLists, Error> {
        use KeyState::{Accepted, Denied, Pending, Rejected};
        let mut from = Vec::new();
        match change.action {
            KeyAction::Accept => {
                from.push(Pending);
                from.extend(change.rejected.then_some(Rejected));
                from.extend(change.denied.then_some(Denied));
            }
            KeyAction::Reject => {
                from.push(Pending);
                from.extend(change.accepted.then_some(Accepted));
                from.extend(change.denied.then_some(Denied));
            }
            KeyAction::Delete => from.extend(KeyState::ALL),
        }
        let mut changed = KeyLists::default();
        let mut rotate = false;
        for state in from {
            for id in self.keys.list(state)?.into_iter().filter(|id| fits(&change.matching, id)) {
                if !change.dry_run && !self.change_key(&id, state, change.action)? {
                    continue;
                }
                rotate |= state == Accepted && change.action != KeyAction::Accept;
                let list = match change.action {
                    KeyAction::Accept => &mut changed.accepted,
                    KeyAction::Reject => &mut changed.rejected,
                    KeyAction::Delete => match state {
                        Accepted => &mut changed.accepted,
                        Pending => &mut changed.pending,
                        Rejected => &mut changed.rejected,
                        Denied => &mut changed.denied,
                    },
                };
                list.push(id.as_str().into());
            }
        }
        if rotate && !change.dry_run && self.settings.opts.bool("rotate_aes_key") {
            self.rotate()?;
        }
        Ok(changed)
    }

    fn change_key(&self, id: &MinionId, from: KeyState, action: KeyAction) -> Result<bool, Error> {
        let text = self.keys.text(from, id);
        let (done, act) = match action {
            KeyAction::Accept => {
                (self.keys.shift(id, from, KeyState::Accepted)?, KeyState::Accepted.word())
            }
            KeyAction::Reject => {
                (self.keys.shift(id, from, KeyState::Rejected)?, KeyState::Rejected.word())
            }
            KeyAction::Delete => (self.keys.delete(id, from)?, "delete"),
        };
        if !done {
            return Ok(false);
        }
        match action {
            KeyAction::Accept => self.key_accepted(id),
            KeyAction::Reject | KeyAction::Delete if from == KeyState::Accepted => {
                let keep = self.settings.opts.bool("preserve_minion_cache");
                self.key_gone(id, action == KeyAction::Delete && !keep);
            }
            KeyAction::Reject | KeyAction::Delete => {}
        }
        let event = entries! { "result" => true, "act" => act, "id" => id };
        if let Some(text) = text {
            event.insert("pub", text);
        }
        self.fire(&Tag::Key, event);
        Ok(true)
    }

    /// A minion asked for its own key to be deleted.
    pub(crate) fn revoke(&self, id: &MinionId, forget: bool) -> Result<bool, Error> {
        let gone = self.keys.delete(id, KeyState::Accepted)?;
        if gone {
            self.key_gone(id, forget);
            self.fire(&Tag::Key, entries! { "result" => true, "act" => "delete", "id" => id });
            if self.settings.opts.bool("rotate_aes_key") {
                self.rotate()?;
            }
        }
        Ok(gone)
    }

    /// Makes a new shared key, and says so.
    pub(crate) fn rotate(&self) -> Result<(), Error> {
        // Not between the serial and the queue of a publication.
        let _order = self.publishing.lock();
        self.secrets.rotate()?;
        tracing::info!("Rotating master AES key");
        self.bus.fire("key", entries! { "rotate_aes_key" => true });
        Ok(())
    }
}

fn fits(matching: &KeyMatch, id: &MinionId) -> bool {
    match matching {
        KeyMatch::All => true,
        KeyMatch::Glob(glob) => fnmatch(id, glob),
    }
}

/// Runs a wheel function; `None` if there is none of that name.
pub(crate) fn run(master: &Arc<Master>, call: &Call) -> Option<Outcome> {
    let argument =
        |at: usize, name: &str| call.kwargs.get(name).or_else(|| call.args.get(at).cloned());
    let flag = |name: &str| call.kwargs.get(name).is_some_and(|value| value.truthy());
    let matching = || match argument(0, "match") {
        Some(Value::Str(glob)) => Some(KeyMatch::Glob(glob)),
        _ => None,
    };
    let change = |action, matching| KeyChange {
        action,
        matching,
        accepted: flag("include_accepted"),
        rejected: flag("include_rejected"),
        denied: flag("include_denied"),
        dry_run: false,
    };
    let lists = |lists: &KeyLists| {
        let all = lists.write();
        for name in all.keys() {
            if !all.get(&name).is_some_and(|list| list.truthy()) {
                all.remove(&name);
            }
        }
        Value::from(all)
    };
    let changed = |action| -> Result<Value, Error> {
        let Some(matching) = matching() else {
            return Err(Error::Other("the argument `match` is missing".into()));
        };
        Ok(lists(&master.change_keys(&change(action, matching))?))
    };
    let result = match call.function.as_str() {
        "key.list_all" => master.key_lists().map(|lists| {
            let all = lists.write();
            all.insert("local", Value::list(["master.pem", "master.pub"]));
            all.into()
        }),
        "key.list" => master.key_lists().map(|lists| {
            let all = lists.write();
            let wanted = match argument(0, "match").map(|word| word.to_str()).as_deref() {
                Some("acc" | "accepted") => "minions",
                Some("pre" | "un" | "unaccepted" | "unsigned") => "minions_pre",
                Some("rej" | "rejected") => "minions_rejected",
                Some("den" | "denied") => "minions_denied",
                _ => return all.into(),
            };
            entries! { wanted => all.get(wanted) }.into()
        }),
        "key.name_match" => Ok(lists(&name_match(master, matching()?).ok()?)),
        "key.key_str" => master.key_texts(&matching()?).map(Value::from),
        "key.finger" => fingers(master, &matching()?, call),
        "key.accept" => changed(KeyAction::Accept),
        "key.reject" => changed(KeyAction::Reject),
        "key.delete" => changed(KeyAction::Delete),
        "minions.connected" => Ok(Value::list(master.presence.ids())),
        _ => return None,
    };
    Some(match result {
        Ok(value) => Outcome { value, success: true },
        Err(error) => Outcome {
            value: format!("Exception occurred in wheel {}: {error}", call.function).into(),
            success: false,
        },
    })
}

fn name_match(master: &Master, matching: KeyMatch) -> Result<KeyLists, Error> {
    let mut lists = master.key_lists()?;
    let keep = |list: &mut Vec<SmolStr>| {
        list.retain(|id| match &matching {
            KeyMatch::All => true,
            KeyMatch::Glob(glob) => fnmatch(id, glob),
        });
    };
    for list in [&mut lists.accepted, &mut lists.pending, &mut lists.rejected, &mut lists.denied] {
        keep(list);
    }
    Ok(lists)
}

fn fingers(master: &Master, matching: &KeyMatch, call: &Call) -> Result<Value, Error> {
    let hash = call.kwargs.get("hash_type").map(|name| name.to_str());
    let hash: Hash = hash.and_then(|name| name.parse().ok()).unwrap_or(master.settings.hash_type);
    let texts = master.key_texts(matching)?;
    let fingers: Dict = texts
        .into_iter()
        .map(|(folder, texts)| {
            let each: Dict = texts
                .as_dict()
                .into_iter()
                .flatten()
                .map(|(id, text)| (id, fingerprint(text.to_str().as_bytes(), hash)))
                .collect();
            (folder, Value::from(each))
        })
        .collect();
    Ok(fingers.into())
}
