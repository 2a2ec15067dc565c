//! `kmod`: modules of the Linux kernel that are loaded, or are not.
//!
//! Salt orders names by chance here (they come out of sets); we keep the order of the tree.

use halite_modules::kmod;
use halite_spec::{Applied, Args, Cx, Plan, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Modules of the Linux kernel.
    "kmod": "present" => Present,
    "absent" => Absent,
}

/// «module x is», «modules x, y are».
fn are(names: &[String], what: &str) -> String {
    match names {
        [one] => format!("Kernel module {one} is {what}"),
        many => format!("Kernel modules {} are {what}", many.join(", ")),
    }
}

/// «Loaded kernel module x», «Loaded kernel modules x, y».
fn did(names: &[String], what: &str) -> Option<String> {
    match names {
        [] => None,
        [one] => Some(format!("{what} kernel module {one}")),
        many => Some(format!("{what} kernel modules {}", many.join(", "))),
    }
}

/// The answers of the loader, collected.
#[derive(Default)]
struct Tally {
    yes: Vec<String>,
    no: Vec<String>,
    failed: Vec<(String, String)>,
    changes: Dict,
}

impl Tally {
    fn add(&mut self, name: &str, word: &str, answer: std::result::Result<Vec<String>, String>) {
        match answer {
            Ok(names) if names.is_empty() => self.no.push(name.to_owned()),
            Ok(names) => {
                for own in names {
                    self.changes.insert(own, word);
                }
                self.yes.push(name.to_owned());
            }
            Err(text) => self.failed.push((name.to_owned(), text)),
        }
    }

    fn applied(self, mut texts: Vec<String>, mut right: bool, past: &str, verb: &str) -> Applied {
        right &= self.no.is_empty() && self.failed.is_empty();
        texts.extend(did(&self.yes, past));
        texts.extend(did(&self.no, &format!("Failed to {verb}")));
        for (name, text) in &self.failed {
            texts.push(format!("Failed to {verb} kernel module {name}: {text}"));
        }
        Applied {
            changes: Some(self.changes),
            comment: Some(texts.join("\n")),
            result: Some(right),
            extra: Dict::new(),
        }
    }
}

fn planned(names: &[String], word: &str) -> Dict {
    names.iter().map(|name| (name.as_str(), Value::from(word))).collect()
}

/// Make sure that kernel modules are loaded.
#[derive(Args)]
pub struct Present {
    /// The module.
    name: String,
    /// At every start, too.
    #[default(false)]
    persist: bool,
    /// Several modules, in place of the name.
    mods: Option<Vec<String>>,
}

/// What is to load and what is there.
pub struct Seen {
    missing: Vec<String>,
    there: Vec<String>,
    available: Vec<String>,
}

impl State for Present {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let wanted = self.mods.clone().unwrap_or_else(|| vec![self.name.clone()]);
        let mut loaded = kmod::mod_list(cx, false)?;
        if self.persist {
            let kept = kmod::mod_list(cx, true)?;
            loaded.retain(|name| kept.contains(name));
        }
        let (there, missing): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|name| loaded.contains(name));
        let available = if missing.is_empty() { Vec::new() } else { kmod::available(cx)? };
        Ok(Seen { missing, there, available })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        let there =
            if seen.there.is_empty() { String::new() } else { are(&seen.there, "already present") };
        if seen.missing.is_empty() {
            return Ok(Plan::nothing(there));
        }
        let mut text = are(&seen.missing, "set to be loaded");
        if !there.is_empty() {
            text = format!("{there}\n{text}");
        }
        let there = |name: &&String| seen.available.contains(*name);
        let can: Vec<String> = seen.missing.iter().filter(there).cloned().collect();
        let mut plan = Plan { unknown: true, ..Plan::changes(planned(&can, "loaded")) };
        plan.pending = text;
        Ok(plan)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        let mut texts = Vec::new();
        if !seen.there.is_empty() {
            texts.push(are(&seen.there, "already present"));
        }
        let (can, cannot): (Vec<String>, Vec<String>) =
            seen.missing.into_iter().partition(|name| seen.available.contains(name));
        if !cannot.is_empty() {
            texts.push(are(&cannot, "unavailable"));
        }
        let mut tally = Tally::default();
        for name in can {
            if tally.changes.contains(name.as_str()) {
                tally.yes.push(name);
                continue;
            }
            let answer = kmod::insert(cx, &name, self.persist)?;
            tally.add(&name, "loaded", answer);
        }
        Ok(tally.applied(texts, cannot.is_empty(), "Loaded", "load"))
    }
}

/// Make sure that kernel modules are not loaded.
#[derive(Args)]
pub struct Absent {
    /// The module.
    name: String,
    /// Nor at any start.
    #[default(false)]
    persist: bool,
    /// Comment the line out, do not delete it.
    #[default(true)]
    comment: bool,
    /// Several modules, in place of the name.
    mods: Option<Vec<String>>,
}

impl Absent {
    fn wanted(&self) -> Vec<String> {
        self.mods.clone().unwrap_or_else(|| vec![self.name.clone()])
    }
}

impl State for Absent {
    type Seen = Vec<String>;

    fn observe(&self, cx: &Cx) -> Result<Vec<String>> {
        let mut loaded = kmod::mod_list(cx, false)?;
        if self.persist {
            loaded.extend(kmod::mod_list(cx, true)?);
        }
        Ok(self.wanted().into_iter().filter(|name| loaded.contains(name)).collect())
    }

    fn plan(&self, loaded: &Vec<String>) -> Result<Plan> {
        if loaded.is_empty() {
            return Ok(Plan::nothing(are(&self.wanted(), "already removed")));
        }
        Ok(Plan::changes(planned(loaded, "removed")).pending(are(loaded, "set to be removed")))
    }

    fn apply(&self, cx: &Cx, loaded: Vec<String>) -> Result<Applied> {
        let mut tally = Tally::default();
        for name in loaded {
            let answer = kmod::take(cx, &name, self.persist, self.comment)?;
            tally.add(&name, "removed", answer);
        }
        Ok(tally.applied(Vec::new(), true, "Removed", "remove"))
    }
}
