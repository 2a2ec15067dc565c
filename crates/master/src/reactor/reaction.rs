//! From rendered reactor files to reactions in their order.
//!
//! A file is high data: id → `local.state.apply` → list of arguments. The files of one event are one:
//! of an id in several the last counts, and a requisite may name a reaction of another file. Arguments come in Salt's two
//! forms: `args` (a list of names with values, or a map) is the new one, `arg` and `kwarg` the old
//! one; a runner or wheel reaction may also have them bare. Reactions run in the order of the file
//! unless `order` or a requisite says otherwise; one with a requisite waits for the other to
//! succeed, one with `onfail` for it to fail.

use halite_value::{Dict, Place, Value};

use crate::settings::placed;

/// Where a reaction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On minions.
    Local,
    Runner,
    Wheel,
    /// An execution function on this machine.
    Caller,
}

impl Kind {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            // `cmd` is the name of old.
            "local" | "cmd" => Self::Local,
            "runner" => Self::Runner,
            "wheel" => Self::Wheel,
            "caller" => Self::Caller,
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Runner => "runner",
            Self::Wheel => "wheel",
            Self::Caller => "caller",
        }
    }
}

/// Why a file has no reactions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("it does not render to a dictionary")]
    NoDict,
    #[error("{}", placed(&format!("`{id}` is no reaction: {why}"), place.as_ref()))]
    NoReaction { id: String, why: String, place: Option<Place> },
    #[error("{}", placed(&format!("`{id}` requires `{of}`, which is not there"), place.as_ref()))]
    MissingRequisite { id: String, of: String, place: Option<Place> },
    #[error("the requisites of {0} go in a circle")]
    Circle(String),
}

/// One thing to do.
#[derive(Clone, Debug)]
pub struct Reaction {
    /// The file it stands in.
    pub sls: String,
    pub id: String,
    pub kind: Kind,
    pub fun: String,
    /// Everything the author gave, `tgt` and others among it.
    pub low: Dict,
    pub args: Vec<Value>,
    pub kwargs: Dict,
    /// The reactions that must have succeeded, by their place in the list.
    pub needs: Vec<usize>,
    /// Those one of which must have failed (`onfail`).
    pub after_failure: Vec<usize>,
    /// Where it stands.
    pub place: Option<Place>,
}

/// What is about the reaction and not for the function.
const OWN: [&str; 21] = [
    "tgt",
    "tgt_type",
    "expr_form",
    "ret",
    "timeout",
    "metadata",
    "arg",
    "args",
    "kwarg",
    "name",
    "order",
    "require",
    "require_in",
    "require_any",
    "watch",
    "watch_in",
    "onchanges",
    "onfail",
    "onfail_in",
    "fun",
    "state",
];

/// The requisites that make a reaction wait.
const REQUISITES: [&str; 4] = ["require", "watch", "onchanges", "require_any"];

impl Reaction {
    /// Returns an option of the reaction as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.low.get(name).filter(|value| !value.is_null()).map(|value| value.to_string())
    }

    /// As people are shown what would happen; `all` are the reactions of its event.
    pub fn show(&self, all: &[Self]) -> Value {
        let shown = Dict::new();
        shown.insert("id", self.id.as_str());
        shown.insert("reaction", format!("{}.{}", self.kind.word(), self.fun));
        for name in ["tgt", "tgt_type", "ret"] {
            if let Some(value) = self.low.get(name) {
                shown.insert(name, value);
            }
        }
        shown.insert("args", self.args.clone());
        shown.insert("kwargs", &self.kwargs);
        for (word, others) in [("after", &self.needs), ("after_failure_of", &self.after_failure)] {
            if !others.is_empty() {
                let ids = others.iter().filter_map(|at| all.get(*at)).map(|one| one.id.as_str());
                shown.insert(word, Value::list(ids));
            }
        }
        shown.into()
    }
}

/// Salt's repacking of a list of maps: one map. A bare word is a name without a value.
fn repack(value: &Value) -> Dict {
    let all = Dict::new();
    match value {
        Value::Dict(map) => all.update(map),
        Value::Null => {}
        other => {
            for item in other.items_of_sequence().unwrap_or_else(|| vec![other.clone()]) {
                match item {
                    Value::Dict(map) => all.update(&map),
                    word => {
                        all.insert(word.to_str(), Value::Null);
                    }
                }
            }
        }
    }
    all
}

fn arguments(kind: Kind, low: &Dict) -> (Vec<Value>, Dict) {
    if let Some(args) = low.get("args") {
        return (Vec::new(), repack(&args));
    }
    if low.contains("arg") || low.contains("kwarg") {
        let args = match low.get("arg") {
            None | Some(Value::Null) => Vec::new(),
            Some(one) => one.items_of_sequence().unwrap_or_else(|| vec![one.clone()]),
        };
        let kwargs = low.get("kwarg").map(|kwarg| repack(&kwarg)).unwrap_or_default();
        return (args, kwargs);
    }
    // differs: Salt hands them to its client for `local`, where `mods` or `pillar` mean nothing.
    let _ = kind;
    let bare = low.into_iter().filter(|(name, _)| !OWN.contains(&name.to_str().as_str())).collect();
    (Vec::new(), bare)
}

/// Reads one reaction.
fn read(
    sls: &str,
    id: &str,
    key: &str,
    body: &Value,
    place: Option<Place>,
) -> Result<(Reaction, i64), Unusable> {
    let wrong = |why: String| Unusable::NoReaction { id: id.to_owned(), why, place: place.clone() };
    let (word, rest) = key.split_once('.').unwrap_or((key, ""));
    let Some(kind) = Kind::of(word) else {
        let known = ["local", "runner", "wheel", "caller"];
        let hint = halite_value::suggest::nearest(word, known)
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        return Err(wrong(format!("`{word}` is not one of local, runner, wheel, caller{hint}")));
    };
    let mut fun = rest.to_owned();
    let low = match body {
        Value::Dict(map) => map.shallow_copy(),
        Value::Null => Dict::new(),
        other => {
            let low = Dict::new();
            let Some(items) = other.items_of_sequence() else {
                return Err(wrong(format!("its arguments are no list but {other}")));
            };
            for item in items {
                match item {
                    Value::Dict(map) => low.update(&map),
                    // The function may stand among the arguments.
                    Value::Str(name) if fun.is_empty() => fun = name.to_string(),
                    other => return Err(wrong(format!("`{other}` is no argument with a name"))),
                }
            }
            low
        }
    };
    if fun.is_empty() {
        return Err(wrong("it names no function".into()));
    }
    if kind == Kind::Local && !low.contains("tgt") {
        return Err(wrong("`tgt` is missing".into()));
    }
    let order = match low.get("order") {
        Some(Value::Str(word)) if word == "last" => i64::MAX,
        Some(Value::Str(word)) if word == "first" => 0,
        Some(number) => number.as_int().unwrap_or(10_000),
        None => 10_000,
    };
    let (args, kwargs) = arguments(kind, &low);
    let (sls, id) = (sls.to_owned(), id.to_owned());
    let (needs, after_failure) = (Vec::new(), Vec::new());
    let reaction = Reaction { sls, id, kind, fun, low, args, kwargs, needs, after_failure, place };
    Ok((reaction, order))
}

/// Returns the reactions of an event's files, each after those it needs.
pub(super) fn compile(files: &[(String, Value)]) -> Result<Vec<Reaction>, Unusable> {
    // As in Salt, where the files are merged: an id stays where it was first.
    let mut ids = ById::new();
    for (sls, high) in files {
        for (id, found) in in_file(sls, high)? {
            match ids.iter_mut().find(|(known, _)| *known == id) {
                Some((_, before)) => *before = found,
                None => ids.push((id, found)),
            }
        }
    }
    let mut found: Vec<(Reaction, i64)> = ids.into_iter().flat_map(|(_, found)| found).collect();
    found.sort_by_key(|(_, order)| *order);
    let mut all: Vec<Reaction> = found.into_iter().map(|(reaction, _)| reaction).collect();
    resolve(&mut all)?;
    sort(all)
}

/// Under each id its reactions, each with the order it asks for.
type ById = Vec<(String, Vec<(Reaction, i64)>)>;

/// Reads what one file says, by id.
fn in_file(sls: &str, high: &Value) -> Result<ById, Unusable> {
    let high = match high {
        Value::Dict(high) => high,
        // A file whose condition was not met renders to nothing.
        Value::Null => return Ok(Vec::new()),
        Value::Str(text) if text.trim().is_empty() => return Ok(Vec::new()),
        _ => return Err(Unusable::NoDict),
    };
    let is_own = |key: &str| key.starts_with("__");
    let mut found = Vec::new();
    for (id, body) in high {
        let id = id.to_string();
        if is_own(&id) {
            continue;
        }
        let Value::Dict(body) = &body else {
            let why = "it is no map of one function with its arguments".to_owned();
            let place = high.place_of(id.as_str()).cloned();
            return Err(Unusable::NoReaction { id, why, place });
        };
        let functions = body.into_iter().map(|(key, arguments)| (key.to_string(), arguments));
        let reactions = functions
            .filter(|(key, _)| !is_own(key))
            .map(|(key, arguments)| {
                let place = body.place_of(key.as_str()).cloned();
                read(sls, &id, &key, &arguments, place)
            })
            .collect::<Result<_, _>>()?;
        found.push((id, reactions));
    }
    Ok(found)
}

/// Finds who needs whom.
fn resolve(all: &mut [Reaction]) -> Result<(), Unusable> {
    let names: Vec<(Kind, String, String)> = all
        .iter()
        .map(|one| (one.kind, one.id.clone(), one.text("name").unwrap_or_else(|| one.id.clone())))
        .collect();
    let find = |item: &Value| -> (Vec<usize>, String) {
        let (kind, name) = match item {
            Value::Dict(map) => match map.entries().into_iter().next() {
                Some((kind, name)) => (Some(kind.to_string()), name.to_string()),
                None => (None, String::new()),
            },
            other => (None, other.to_string()),
        };
        let kind = kind.as_deref().map(|word| word.split('.').next().unwrap_or(word).to_owned());
        let found = names.iter().enumerate().filter(|(_, (own, id, other))| {
            kind.as_deref().is_none_or(|kind| Kind::of(kind) == Some(*own))
                && (*id == name || *other == name)
        });
        (found.map(|(at, _)| at).collect(), name)
    };
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut after_failure = needs.clone();
    for (at, reaction) in all.iter().enumerate() {
        let others = |words: &[&str]| -> Result<Vec<usize>, Unusable> {
            let mut others = Vec::new();
            for item in words.iter().flat_map(|word| items(reaction, word)) {
                let (found, of) = find(&item);
                if found.is_empty() {
                    let (id, place) = (reaction.id.clone(), reaction.place.clone());
                    return Err(Unusable::MissingRequisite { id, of, place });
                }
                others.extend(found);
            }
            Ok(others)
        };
        needs[at].extend(others(&REQUISITES)?);
        after_failure[at].extend(others(&["onfail"])?);
        for other in others(&["require_in", "watch_in"])? {
            needs[other].push(at);
        }
        for other in others(&["onfail_in"])? {
            after_failure[other].push(at);
        }
    }
    for (reaction, (own, failures)) in all.iter_mut().zip(needs.into_iter().zip(after_failure)) {
        reaction.needs = once(own);
        reaction.after_failure = once(failures);
    }
    Ok(())
}

/// Returns what a requisite of a reaction lists.
fn items(reaction: &Reaction, word: &str) -> Vec<Value> {
    let list = reaction.low.get(word).unwrap_or_default();
    if list.is_null() {
        return Vec::new();
    }
    list.items_of_sequence().unwrap_or_else(|| vec![list])
}

fn once(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Puts everybody behind those it needs, and else keeps the order.
fn sort(all: Vec<Reaction>) -> Result<Vec<Reaction>, Unusable> {
    let mut place: Vec<Option<usize>> = vec![None; all.len()];
    let mut sorted: Vec<Reaction> = Vec::with_capacity(all.len());
    let mut open: Vec<(usize, Reaction)> = all.into_iter().enumerate().collect();
    while !open.is_empty() {
        let ready = open.iter().position(|(_, reaction)| {
            let others = reaction.needs.iter().chain(&reaction.after_failure);
            others.into_iter().all(|other| place[*other].is_some())
        });
        let Some(ready) = ready else {
            let ids: Vec<_> = open.iter().map(|(_, reaction)| reaction.id.as_str()).collect();
            return Err(Unusable::Circle(ids.join(", ")));
        };
        let (was, mut reaction) = open.remove(ready);
        place[was] = Some(sorted.len());
        for others in [&mut reaction.needs, &mut reaction.after_failure] {
            *others = others.iter().filter_map(|other| place[*other]).collect();
        }
        sorted.push(reaction);
    }
    Ok(sorted)
}

/// The arguments of a job: those with names as one marked map at the end.
pub(super) fn job_args(reaction: &Reaction) -> Vec<Value> {
    let mut args = reaction.args.clone();
    if !reaction.kwargs.is_empty() {
        let kwargs = reaction.kwargs.shallow_copy();
        kwargs.insert("__kwarg__", true);
        args.push(kwargs.into());
    }
    args
}

#[cfg(test)]
mod tests {
    use halite_value::{
        dict, entries, list,
        yaml::{self, LoadOptions},
    };

    use super::*;

    fn compile_one(high: Value) -> Result<Vec<Reaction>, Unusable> {
        compile(&[("x.sls".to_owned(), high)])
    }

    fn ids(high: Value) -> Result<Vec<String>, Unusable> {
        compile_one(high).map(|all| all.into_iter().map(|one| one.id).collect())
    }

    fn one(key: &str, body: Value) -> Reaction {
        compile_one(dict! { "x" => dict! { key => body } }).unwrap().remove(0)
    }

    #[test]
    fn old_and_new_arguments() {
        let tgt = || dict! { "tgt" => "web*" };
        let old = one(
            "local.test.arg",
            list![tgt(), dict! { "arg" => list![1, 2] }, dict! { "kwarg" => dict! { "a" => 3 } }],
        );
        assert_eq!((old.kind, old.fun.as_str()), (Kind::Local, "test.arg"));
        assert_eq!(job_args(&old), [1.into(), 2.into(), dict! { "a" => 3, "__kwarg__" => true }]);
        let new = one(
            "local.state.single",
            list![tgt(), dict! { "args" => list![dict! { "fun" => "pkg.installed" }, "bare"] }],
        );
        assert_eq!(Value::from(new.kwargs), dict! { "fun" => "pkg.installed", "bare" => () });
        let bare = one(
            "runner.state.orchestrate",
            list![dict! { "mods" => "orch.x" }, dict! { "pillar" => dict! { "a" => 1 } }],
        );
        assert_eq!(
            Value::from(bare.kwargs),
            dict! { "mods" => "orch.x", "pillar" => dict! { "a" => 1 } }
        );
        let wheel = one("wheel.key.accept", list![dict! { "match" => "web1" }]);
        assert_eq!(Value::from(wheel.kwargs), dict! { "match" => "web1" });
        let ordered = one("cmd.test.ping", list![tgt()]);
        assert_eq!(ordered.kind, Kind::Local);
        let split = one("local", list!["test.ping", tgt()]);
        assert_eq!(split.fun, "test.ping");
    }

    #[test]
    fn requisites_come_first() {
        let run = |more: Value| dict! { "runner.test.arg" => list![more] };
        let high = entries! {
            "a" => run(dict! { "require" => list![dict! { "runner" => "c" }] }),
            "b" => run(dict! { "order" => 1 }),
            "c" => run(dict! { "x" => 1 }),
        };
        assert_eq!(ids(high.clone().into()).unwrap(), ["b", "c", "a"]);
        let all = compile_one(high.into()).unwrap();
        assert_eq!(all[2].needs, [1]);
        assert!(all[2].kwargs.is_empty(), "requisites are not for the function");
    }

    #[test]
    fn a_failure_may_be_waited_for() {
        let run = |more: Value| dict! { "runner.test.arg" => list![more] };
        let high = dict! {
            "alarm" => run(dict! { "onfail" => list![dict! { "runner" => "work" }] }),
            "work" => run(dict! { "onfail_in" => list![dict! { "runner" => "clean up" }] }),
            "clean up" => run(dict! { "x" => 1 }),
        };
        let all = compile_one(high).unwrap();
        let told: Vec<_> =
            all.iter().map(|one| (one.id.as_str(), one.after_failure.as_slice())).collect();
        assert_eq!(told, [("work", [].as_slice()), ("alarm", &[0]), ("clean up", &[0])]);
        assert!(all.iter().all(|one| one.needs.is_empty()));
        assert_eq!(all[1].show(&all).get("after_failure_of"), Some(list!["work"]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |high: Value| compile_one(high).unwrap_err().to_string();
        assert_eq!(
            error(dict! { "x" => dict! { "local.a.b" => list![] } }),
            "`x` is no reaction: `tgt` is missing"
        );
        assert!(
            error(dict! { "x" => dict! { "locl.a.b" => list![] } })
                .ends_with("did you mean `local`?")
        );
        assert!(
            error(dict! { "x" => dict! { "runner" => list![] } }).ends_with("it names no function")
        );
        let me = dict! { "runner.a.b" => list![dict! { "require" => list![dict! { "runner" => "x" }] }] };
        assert!(error(dict! { "x" => me }).starts_with("the requisites of x"));
        let other = dict! { "runner.a.b" => list![dict! { "require" => list!["y"] }] };
        assert!(error(dict! { "x" => other }).contains("`y`, which is not there"));
        let text = "a:\n  runner.test.arg: []\nb:\n  wheel.key.accept: text\n";
        let options = LoadOptions { name: "r.sls", places: true, ..LoadOptions::default() };
        assert_eq!(
            error(yaml::load(text, &options).unwrap()),
            "`b` is no reaction: its arguments are no list but text (r.sls:4:3)"
        );
        assert!(compile_one(Value::Null).unwrap().is_empty());
        assert_eq!(compile_one(1.into()).unwrap_err(), Unusable::NoDict);
    }

    #[test]
    fn files_of_an_event_are_one() {
        let run =
            |n: i64, more: Value| dict! { "runner.test.arg" => list![dict! { "n" => n }, more] };
        let none = || dict! { "order" => 10_000 };
        let first = dict! {
            "twice" => run(1, none()),
            "last" => run(2, dict! { "require" => list![dict! { "runner" => "other" }] }),
        };
        let second = dict! { "other" => run(3, none()), "twice" => run(4, none()) };
        let all = compile(&[("a.sls".into(), first.clone()), ("b.sls".into(), second)]).unwrap();
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.sls.as_str(), one.id.as_str(), one.kwargs.get("n").unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                ("b.sls", "twice", 4.into()),
                ("b.sls", "other", 3.into()),
                ("a.sls", "last", 2.into())
            ]
        );
        assert_eq!(all[2].show(&all).get("after"), Some(list!["other"]));
        assert!(compile(&[("a.sls".into(), first)]).is_err(), "alone it lacks what it requires");
    }
}
