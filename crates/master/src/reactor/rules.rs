//! Rules with memory: «three of these within five minutes, per minion: react, then be quiet».
//!
//! ```yaml
//! halite:
//!   rules:
//!     nginx keeps dying:
//!       tag: 'salt/beacon/*/service/nginx'     # a glob, or a list of them
//!       if: "data['nginx']['running'] == false"   # Jinja, with `data` and `tag`; optional
//!       per: id                                # path into the data; without it all count as one
//!       count: 3
//!       within: 5m
//!       quiet: 30m
//!       react: /srv/reactor/page_somebody.sls  # one, several, or reactions in place
//! ```
//!
//! The file sees `rule`, `count`, `key` and `events` (the data of those that counted) beside `tag`
//! and `data`. The memory is bounded. It is kept in the store, an entry per event that counts, so
//! that a master that is restarted goes on counting; it is written without waiting, so what came in
//! the last moment before a power cut may be forgotten.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use halite_store::{Op, Store};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, SmolStr, Value, dict, entries, lookup};
use parking_lot::Mutex;

use crate::{Master, bus::Fired, settings::placed};

/// Keys one rule remembers; beyond that the oldest go.
const MOST_KEYS: usize = 100_000;
/// Events of one key.
const MOST_COUNT: usize = 10_000;

/// The bank of what rules remember.
pub const REMEMBERED: &str = "reactor_rules";
/// Between rule, key and number in the names of its entries.
const SEPARATOR: char = '\u{1f}';

/// What a rule leads to.
pub(super) enum React {
    File(String),
    /// Reactions in place, under the rule's name.
    Inline(String, Value),
}

/// What a rule says to do.
enum Given {
    File(String),
    InPlace(Dict),
}

impl Given {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Str(file) => Some(Self::File(file.to_string())),
            Value::Dict(high) => Some(Self::InPlace(high.clone())),
            _ => None,
        }
    }
}

struct Rule {
    name: String,
    tags: Vec<String>,
    condition: Option<String>,
    per: Option<String>,
    count: usize,
    within: Duration,
    quiet: Duration,
    react: Vec<Given>,
    memory: Mutex<HashMap<SmolStr, Memory>>,
    /// Numbers the entries in the store.
    next: AtomicU64,
}

#[derive(Default)]
struct Memory {
    seen: VecDeque<Seen>,
    quiet_until: Option<Instant>,
    fired: u64,
}

/// An event that counts.
struct Seen {
    at: Instant,
    number: u64,
    data: Dict,
}

/// All rules of a master.
#[derive(Default)]
pub(super) struct Rules(Vec<Rule>, Option<Arc<dyn Store>>);

/// Seconds since 1970, for the store: instants mean nothing to the next process.
fn seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Reads `30`, `30s`, `5m`, `1h`, `2d`.
fn duration(value: &Value) -> Option<Duration> {
    if let Some(seconds) = value.as_float() {
        return (0.0..1e9).contains(&seconds).then(|| Duration::from_secs_f64(seconds));
    }
    let text = value.to_str();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" | "s" | "sec" | "seconds" => 1.0,
        "m" | "min" | "minutes" => 60.0,
        "h" | "hours" => 3600.0,
        "d" | "days" => 86_400.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * factor;
    (0.0..1e9).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

impl Rule {
    fn read(name: &str, rule: &Value) -> Result<Self, String> {
        let known = ["name", "tag", "if", "per", "count", "within", "quiet", "react"];
        let Some(entries) = rule.as_dict() else {
            return Err(format!("{name}: a rule is a map with `tag` and `react`, not {rule}"));
        };
        let wrong = |key: &str, text: String| {
            let place = entries.place_of(key).or_else(|| entries.place());
            placed(&format!("{name}: {text}"), place)
        };
        for key in entries.keys() {
            let key = key.to_string();
            if !known.contains(&key.as_str()) {
                let near = halite_value::suggest::nearest(&key, known)
                    .map(|near| format!("; did you mean `{near}`?"))
                    .unwrap_or_default();
                return Err(wrong(&key, format!("`{key}` is unknown{near}")));
            }
        }
        let tags = match rule.get("tag") {
            Some(Value::Str(tag)) => vec![tag.to_string()],
            Some(list) => {
                list.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
            }
            None => Vec::new(),
        };
        if tags.is_empty() {
            return Err(wrong("tag", "`tag` is missing".into()));
        }
        let time = |key: &str| match rule.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => duration(&value).map(Some).ok_or_else(|| {
                wrong(key, format!("`{key}`: `{value}` is no time like 30s, 5m, 1h"))
            }),
        };
        let count = rule.get("count").map_or(Some(1), |count| count.to_int());
        let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        if count == 0 || count > MOST_COUNT {
            return Err(wrong("count", format!("`count` must be between 1 and {MOST_COUNT}")));
        }
        let react = match rule.get("react").filter(Value::truthy) {
            None => return Err(wrong("react", "`react` is missing".into())),
            Some(one) => one.items_of_sequence().unwrap_or_else(|| vec![one]),
        };
        let react = react.iter().map(Given::read).collect::<Option<_>>();
        let react = react.ok_or_else(|| {
            let text = "`react` must be a file, reactions in place, or a list of these";
            wrong("react", text.into())
        })?;
        let text = |key: &str| rule.get(key).filter(Value::truthy).map(|value| value.to_string());
        Ok(Self {
            name: name.to_owned(),
            tags,
            condition: text("if"),
            per: text("per"),
            count,
            within: time("within")?.unwrap_or(Duration::from_secs(60)),
            quiet: time("quiet")?.unwrap_or_default(),
            react,
            memory: Mutex::default(),
            next: AtomicU64::new(1),
        })
    }

    fn matches(&self, tag: &str) -> bool {
        self.tags.iter().any(|glob| fnmatch(tag, glob))
    }

    fn key(&self, data: &Dict) -> SmolStr {
        let Some(path) = &self.per else { return SmolStr::default() };
        let value = Value::from(data);
        let found = lookup::traverse(&value, path, ":")
            // What a minion sends lies one level deeper.
            .or_else(|| lookup::traverse(&value.get("data")?, path, ":"));
        found.map(|key| key.to_str()).unwrap_or_default()
    }

    fn entry(&self, key: &str, number: u64) -> String {
        format!("{}{SEPARATOR}{key}{SEPARATOR}{number:020}", self.name)
    }

    /// The entry with the time until which a key is quiet has the number 0.
    fn keep_quiet(&self, key: &str, until: SystemTime) -> Op {
        let value = dict! { "quiet_until" => seconds(until) };
        Op::Put { bank: REMEMBERED, key: self.entry(key, 0), value }
    }

    fn forget(&self, key: &str, number: u64) -> Op {
        Op::Delete { bank: REMEMBERED, key: self.entry(key, number) }
    }

    /// Counts an event; returns the data of those that made the number full. What the store has to
    /// be told goes to `ops`.
    fn note(
        &self,
        key: &SmolStr,
        data: &Dict,
        now: Instant,
        ops: &mut Vec<Op>,
    ) -> Option<Vec<Dict>> {
        let mut memory = self.memory.lock();
        if memory.len() >= MOST_KEYS && !memory.contains_key(key) {
            self.make_room(&mut memory, now, ops);
        }
        let own = memory.entry(key.clone()).or_default();
        if own.quiet_until.is_some_and(|until| now < until) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        own.seen.push_back(Seen { at: now, number, data: data.clone() });
        let wall = SystemTime::now();
        let value = dict! { "at" => seconds(wall), "data" => data };
        ops.push(Op::Put { bank: REMEMBERED, key: self.entry(key, number), value });
        while own.seen.front().is_some_and(|seen| now - seen.at > self.within) {
            ops.extend(own.seen.pop_front().map(|seen| self.forget(key, seen.number)));
        }
        if own.seen.len() < self.count {
            return None;
        }
        own.quiet_until = Some(now + self.quiet);
        own.fired += 1;
        if !self.quiet.is_zero() {
            ops.push(self.keep_quiet(key, wall + self.quiet));
        }
        ops.extend(own.seen.iter().map(|seen| self.forget(key, seen.number)));
        Some(own.seen.drain(..).map(|seen| seen.data).collect())
    }

    /// Forgets keys that do not matter any more, or all if every one does.
    fn make_room(&self, memory: &mut HashMap<SmolStr, Memory>, now: Instant, ops: &mut Vec<Op>) {
        let matters = |own: &Memory| {
            own.quiet_until.is_some_and(|until| until > now)
                || own.seen.back().is_some_and(|seen| now - seen.at < self.within)
        };
        let mut go = |key: &SmolStr, own: &Memory| {
            ops.extend(own.seen.iter().map(|seen| self.forget(key, seen.number)));
            if own.quiet_until.is_some() {
                ops.push(self.forget(key, 0));
            }
        };
        memory.retain(|key, own| {
            let stays = matters(own);
            if !stays {
                go(key, own);
            }
            stays
        });
        if memory.len() >= MOST_KEYS {
            tracing::warn!("The rule `{}` remembers {MOST_KEYS} keys; it starts over", self.name);
            memory.iter().for_each(|(key, own)| go(key, own));
            memory.clear();
        }
    }

    /// Takes back an entry of an earlier process; false if it does not matter any more.
    fn take_back(&self, key: &str, number: u64, value: &Value, now: (Instant, f64)) -> bool {
        let (now, wall) = now;
        let mut memory = self.memory.lock();
        self.next.fetch_max(number + 1, Ordering::Relaxed);
        if let Some(until) = value.get("quiet_until").and_then(|until| until.as_float()) {
            // A clock that was set back must not make it quiet for longer than it says.
            let left = (until - wall).min(self.quiet.as_secs_f64());
            let Some(left) = Duration::try_from_secs_f64(left).ok().filter(|left| !left.is_zero())
            else {
                return false;
            };
            memory.entry(key.into()).or_default().quiet_until = Some(now + left);
            return true;
        }
        let at = value.get("at").and_then(|at| at.as_float());
        let age =
            at.map(|at| (wall - at).max(0.0)).and_then(|age| Duration::try_from_secs_f64(age).ok());
        let (Some(age), Some(Value::Dict(data))) = (age, value.get("data")) else { return false };
        let Some(at) = now.checked_sub(age).filter(|_| age <= self.within) else { return false };
        let own = memory.entry(key.into()).or_default();
        own.seen.push_back(Seen { at, number, data });
        true
    }
}

impl Rules {
    /// Reads the option; says what is wrong with rules that cannot be used.
    pub(super) fn read(option: &Value, store: Option<Arc<dyn Store>>) -> (Self, Vec<String>) {
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        let mut add = |name: &str, rule: &Value| match Rule::read(name, rule) {
            Ok(rule) => rules.push(rule),
            Err(problem) => problems.push(problem),
        };
        match option {
            Value::Null => {}
            Value::Dict(map) => {
                for (name, rule) in map {
                    add(&name.to_str(), &rule);
                }
            }
            other => match other.items_of_sequence() {
                Some(list) => {
                    for (at, rule) in list.iter().enumerate() {
                        let name = rule.get_str("name");
                        add(&name.unwrap_or_else(|| format!("rule {at}").into()), rule);
                    }
                }
                None => problems.push(format!("a map of rules is expected, not {other}")),
            },
        }
        (Self(rules, store), problems)
    }

    /// Remembers what an earlier process counted. Blocking.
    pub(super) fn load(&self) {
        let Some(store) = &self.1 else { return };
        let all = match store.all(REMEMBERED) {
            Ok(all) => all,
            Err(error) => {
                tracing::error!("What rules remember cannot be read: {error}");
                return;
            }
        };
        let now = (Instant::now(), seconds(SystemTime::now()));
        let mut useless = Vec::new();
        for (entry, value) in all {
            let mut parts = entry.split(SEPARATOR);
            let (name, key, number) = (parts.next(), parts.next(), parts.next());
            let rule = self.0.iter().find(|rule| Some(rule.name.as_str()) == name);
            let number = number.and_then(|number| number.parse().ok());
            let kept = match (rule, key, number) {
                (Some(rule), Some(key), Some(number)) => rule.take_back(key, number, &value, now),
                _ => false,
            };
            if !kept {
                useless.push(Op::Delete { bank: REMEMBERED, key: entry });
            }
        }
        if !useless.is_empty() {
            drop(store.write(useless));
        }
    }

    pub(super) fn matches(&self, tag: &str) -> bool {
        self.0.iter().any(|rule| rule.matches(tag))
    }

    pub(super) fn names_matching(&self, tag: &str) -> Value {
        Value::list(self.0.iter().filter(|rule| rule.matches(tag)).map(|rule| rule.name.as_str()))
    }

    pub(super) fn status(&self) -> Value {
        let each: Dict = self
            .0
            .iter()
            .map(|rule| {
                let memory = rule.memory.lock();
                let fired: u64 = memory.values().map(|own| own.fired).sum();
                (rule.name.as_str(), dict! { "keys" => memory.len() as u64, "fired" => fired })
            })
            .collect();
        each.into()
    }

    /// Says which conditions are no Jinja, before an event comes. Blocking.
    pub(super) fn check(&self, master: &Arc<Master>) {
        let Some(rendering) = &master.reactor.rendering else { return };
        for rule in &self.0 {
            let Some(condition) = &rule.condition else { continue };
            // Read, but not evaluated: there are no data yet.
            let text = format!("{{% if false %}}{{{{ {condition} }}}}{{% endif %}}");
            if let Err(error) = rendering.text(master, &text, &Dict::new()) {
                tracing::error!("halite: rules: {}: `if`: {error}", rule.name);
            }
        }
    }

    /// Shows an event to the rules; returns what they lead to. Blocking.
    pub(super) fn see(&self, master: &Arc<Master>, event: &Fired) -> Vec<(React, Dict)> {
        let mut fired = Vec::new();
        for rule in self.0.iter().filter(|rule| rule.matches(&event.tag)) {
            let names = entries! { "tag" => event.tag.as_str(), "data" => &event.data };
            if let Some(condition) = &rule.condition {
                match holds(master, condition, &names) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        let error = format!("The condition of the rule `{}`: {error}", rule.name);
                        tracing::error!("{error}");
                        super::failed(&master.reactor, event, &rule.name, None, &error);
                        continue;
                    }
                }
            }
            let key = rule.key(&event.data);
            let mut ops = Vec::new();
            let full = rule.note(&key, &event.data, Instant::now(), &mut ops);
            if let Some(store) = self.1.as_ref().filter(|_| !ops.is_empty()) {
                drop(store.write(ops));
            }
            let Some(events) = full else { continue };
            tracing::info!("The rule `{}` holds for {key:?}", rule.name);
            names.insert("rule", rule.name.as_str());
            names.insert("count", events.len());
            names.insert("key", key.as_str());
            names.insert("events", Value::list(events));
            for (number, given) in rule.react.iter().enumerate() {
                let react = match given {
                    Given::File(file) => React::File(file.clone()),
                    Given::InPlace(high) => {
                        let high = fill(master, &Value::from(high), &names);
                        let part = if number == 0 { String::new() } else { format!(" {number}") };
                        React::Inline(format!("{}{part}", rule.name), high)
                    }
                };
                fired.push((react, names.clone()));
            }
        }
        fired
    }
}

/// Evaluates a condition.
fn holds(master: &Arc<Master>, condition: &str, names: &Dict) -> Result<bool, String> {
    let Some(rendering) = &master.reactor.rendering else {
        return Err("this master cannot render".into());
    };
    let text = format!("{{% if {condition} %}}yes{{% endif %}}");
    let text = rendering.text(master, &text, names).map_err(|error| error.to_string())?;
    Ok(text.trim() == "yes")
}

/// Renders the texts of reactions given in place.
fn fill(master: &Arc<Master>, value: &Value, names: &Dict) -> Value {
    match value {
        Value::Str(text) if text.contains("{{") || text.contains("{%") => {
            let rendered = master
                .reactor
                .rendering
                .as_ref()
                .and_then(|rendering| rendering.text(master, text, names).ok());
            rendered.map_or_else(|| value.clone(), Value::from)
        }
        Value::Dict(map) => map
            .into_iter()
            .map(|(key, value)| (key, fill(master, &value, names)))
            .collect::<Dict>()
            .into(),
        Value::List(_) | Value::Tuple(_) => {
            let items = value.items_of_sequence().unwrap_or_default();
            Value::list(items.iter().map(|item| fill(master, item, names)))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{
        list,
        yaml::{self, LoadOptions},
    };

    use super::*;

    fn rule(value: Value) -> Rule {
        Rule::read("r", &value).unwrap()
    }

    #[test]
    fn counts_within_a_time_and_then_is_quiet() {
        let rule = rule(dict! {
            "tag" => "a/*", "count" => 3, "within" => "10s", "quiet" => "1m", "per" => "id", "react" => "/x",
        });
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let data = entries! { "id" => "m1" };
        let key = rule.key(&data);
        assert_eq!(key, "m1");
        let mut ops = Vec::new();
        let mut note = |seconds: u64| rule.note(&key, &data, at(seconds), &mut ops).is_some();
        assert!(!note(0) && !note(1));
        assert!(!note(20), "the first two are too old");
        assert!(!note(21) && note(22));
        assert!(!note(23) && !note(24) && !note(25) && !note(80), "quiet");
        assert!(!note(83) && !note(84) && note(85));
        assert!(
            rule.note(&"m2".into(), &data, at(85), &mut ops).is_none(),
            "another key has its own count"
        );
    }

    /// Applies what a rule tells the store.
    fn apply(stored: &mut std::collections::BTreeMap<String, Value>, ops: Vec<Op>) {
        for op in ops {
            match op {
                Op::Put { key, value, .. } => drop(stored.insert(key, value)),
                Op::Delete { key, .. } => drop(stored.remove(&key)),
                _ => panic!("rules do nothing else"),
            }
        }
    }

    #[test]
    fn another_process_goes_on_counting() {
        let make = || {
            rule(dict! {
                "tag" => "a", "count" => 3, "within" => "1h", "quiet" => "1h", "per" => "id", "react" => "/x",
            })
        };
        let data = entries! { "id" => "m1" };
        let mut stored = std::collections::BTreeMap::new();
        let mut note = |rule: &Rule| {
            let mut ops = Vec::new();
            let full = rule.note(&"m1".into(), &data, Instant::now(), &mut ops);
            apply(&mut stored, ops);
            (full.map(|events| events.len()), stored.clone())
        };
        let again = |stored: &std::collections::BTreeMap<String, Value>| {
            let rule = make();
            let now = (Instant::now(), seconds(SystemTime::now()));
            for (entry, value) in stored {
                let parts: Vec<&str> = entry.split(SEPARATOR).collect();
                assert!(rule.take_back(parts[1], parts[2].parse().unwrap(), value, now));
            }
            rule
        };
        let first = make();
        assert_eq!(note(&first).0, None);
        let (full, kept) = note(&first);
        assert_eq!((full, kept.len()), (None, 2));
        let second = again(&kept);
        let (full, kept) = note(&second);
        assert_eq!(full, Some(3), "two of the first process, one of the second");
        assert_eq!(kept.len(), 1, "what counted is forgotten, that it is quiet is not: {kept:?}");
        let third = again(&kept);
        for _ in 0..3 {
            assert_eq!(note(&third).0, None, "still quiet");
        }
        // What is too old does not come back.
        let old = dict! { "at" => seconds(SystemTime::now()) - 7200.0, "data" => data.clone() };
        let now = (Instant::now(), seconds(SystemTime::now()));
        assert!(!make().take_back("m1", 7, &old, now));
    }

    #[test]
    fn the_key_may_lie_in_what_the_minion_sent() {
        let rule = rule(dict! { "tag" => "a", "per" => "disk", "react" => "/x" });
        assert_eq!(rule.key(&entries! { "id" => "m", "data" => dict! { "disk" => "/" } }), "/");
    }

    #[test]
    fn files_and_reactions_in_place_may_stand_together() {
        let several = list!["/x", dict! { "a" => dict! { "runner.test.arg" => list![] } }];
        let rule = rule(dict! { "tag" => "a", "react" => several });
        assert!(matches!(&*rule.react, [Given::File(file), Given::InPlace(_)] if file == "/x"));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |value: Value| Rule::read("r", &value).err().unwrap();
        assert_eq!(error(dict! { "react" => "/x" }), "r: `tag` is missing");
        assert_eq!(error(dict! { "tag" => "a" }), "r: `react` is missing");
        assert!(
            error(dict! { "tag" => "a", "react" => "/x", "within" => "soon" }).contains("`soon`")
        );
        assert!(error(dict! { "tag" => "a", "react" => "/x", "conut" => 1 }).contains("`count`"));
        assert!(
            error(dict! { "tag" => "a", "react" => list!["/x", 1] }).contains("must be a file")
        );
        assert_eq!(duration(&"5m".into()), Some(Duration::from_secs(300)));
        assert_eq!(duration(&30.into()), Some(Duration::from_secs(30)));
        assert_eq!(duration(&"30".into()), Some(Duration::from_secs(30)));
        assert_eq!(duration(&"".into()), None);
        assert!(error("no map".into()).starts_with("r: a rule is a map"));
        let problems = |option: Value| Rules::read(&option, None).1;
        assert_eq!(problems("odd".into()), ["a map of rules is expected, not odd"]);
        assert!(problems(Value::Null).is_empty());
        let text = "r:\n  tag: a\n  react: /x\n  wihtin: 5m\n";
        let options = LoadOptions { name: "master", places: true, ..LoadOptions::default() };
        assert_eq!(
            problems(yaml::load(text, &options).unwrap()),
            ["r: `wihtin` is unknown; did you mean `within`? (master:4:3)"]
        );
    }
}
