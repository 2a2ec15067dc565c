//! What one part of a tree does to another: `extend`, `require_in` and its like, `use`, `exclude`.
//!
//! All are the same thing, an [`Edit`]: whom it is for ([`Selector`]) and what is done to them
//! ([`Change`]). Each kind is collected into a list, and one function applies a list. What states
//! ask of others is collected from unchanged data first and applied then, so that the order of the
//! files does not matter; it is one edit for each name asked for, however many ask. That is a quirk
//! of Salt's kept on purpose: the first state asked for under a name decides which id is meant.
//! After the edits every id stands for itself.

use std::collections::HashSet;

use halite_target::fnmatch;
use halite_value::{Key, List, Place, Value, dict, entries, suggest};
use indexmap::{IndexMap, IndexSet};

use crate::{
    High, Places, Problem,
    index::Index,
    keywords::{REQUISITE_IN_WORDS, REQUISITE_WORDS},
    parse::{Arguments, Body, EXCLUDE, EXTEND, has_word, only_word, word_of},
};

/// Words by which a state does something to another, or takes from it.
const ASKING_WORDS: [&str; 7] =
    ["require_in", "watch_in", "onfail_in", "onchanges_in", "use", "use_in", "prereq_in"];

/// Words that, with those, say who a state is and whom it waits for: `use` never takes them over.
const OWN_WORDS: [&str; 8] =
    ["require", "watch", "prereq", "onfail", "onfail_stop", "onchanges", "name", "names"];

/// A change to the ids it selects.
struct Edit {
    target: Selector,
    change: Change,
}

/// Whom an edit is for.
enum Selector {
    /// An id, or else the id of which `state` has an argument of that value. A `strict` one leaves
    /// out an id that does not have the state.
    State {
        name: Key,
        state: String,
        strict: bool,
    },
    Id(Key),
    /// Every id of the SLS files a glob matches.
    Sls(String),
}

enum Change {
    /// Puts these states over those of the one id selected.
    Extend(Body),
    Remove,
}

impl Edit {
    /// Returns the edit that puts states over those of an id, unless there are none.
    fn extend(name: Key, body: Body, strict: bool) -> Option<Self> {
        let state = body.lists().next()?.0.to_owned();
        let target = Selector::State { name, state, strict };
        Some(Self { target, change: Change::Extend(body) })
    }

    /// Reads an item of `exclude`: an SLS, `{sls: glob}` or `{id: name}`.
    fn exclude(item: &Value) -> Option<Self> {
        let target = match item {
            Value::Str(sls) => Selector::Sls(sls.to_string()),
            item => match only_word(item)? {
                (word, sls) if word.as_str() == Some("sls") => Selector::Sls(sls.to_string()),
                (word, id) if word.as_str() == Some("id") => Selector::Id(Key::try_from(id).ok()?),
                _ => return None,
            },
        };
        Some(Self { target, change: Change::Remove })
    }
}

impl Selector {
    /// Returns the positions of the ids selected.
    fn resolve(&self, high: &High, index: &mut Index) -> Vec<usize> {
        match self {
            Self::State { name, state, strict } => find(high, index, name, state, *strict),
            Self::Id(id) => high.ids.get_index_of(id).into_iter().collect(),
            Self::Sls(glob) => {
                let glob = fnmatch::Glob::new(glob);
                let states = high.states().filter(|(_, _, body)| {
                    let sls = body.origin.sls_text();
                    !sls.is_empty() && glob.matches(&sls)
                });
                states.map(|(position, ..)| position).collect()
            }
        }
    }
}

fn find(high: &High, index: &mut Index, name: &Key, state: &str, strict: bool) -> Vec<usize> {
    let has = |body: &Body| body.states.contains_key(state);
    if let Some(position) = high.ids.get_index_of(name)
        && (!strict || high.body_at(position).is_some_and(has))
    {
        return vec![position];
    }
    if state == "sls" { index.of_sls(high, name) } else { index.with_value(high, state, name) }
}

/// Applies what the files extend.
pub(crate) fn apply_extends(high: &mut High, places: &Places) -> Vec<Problem> {
    high.ids.shift_remove(EXTEND);
    let extends = std::mem::take(&mut high.extends).into_iter();
    let edits: Vec<Edit> = extends
        .filter_map(|(name, body)| Edit::extend(name, high.bodies.get(body)?.clone(), false))
        .collect();
    apply(high, edits, places)
}

/// Applies what states ask of others, but for words that are `disabled`.
pub(crate) fn apply_requisites(
    high: &mut High,
    places: &Places,
    disabled: &[String],
) -> Vec<Problem> {
    let (wanted, mut problems) = Requests::of(high, places, disabled);
    let edits = wanted.into_iter().filter_map(|(name, body)| Edit::extend(name, body, true));
    problems.extend(apply(high, edits, places));
    problems
}

/// Removes what the files exclude.
pub(crate) fn apply_excludes(high: &mut High) {
    high.ids.shift_remove(EXCLUDE);
    let edits: Vec<Edit> =
        high.excludes.drain(..).filter_map(|item| Edit::exclude(&item)).collect();
    apply(high, edits, &Places::default());
}

fn apply(high: &mut High, edits: impl IntoIterator<Item = Edit>, places: &Places) -> Vec<Problem> {
    let mut index = Index::default();
    let mut problems = Vec::new();
    let mut gone = HashSet::new();
    let excluded = excluded_sls(&high.excludes);
    for Edit { target, change } in edits {
        let found = target.resolve(high, &mut index);
        match (change, &target, found.as_slice()) {
            (Change::Remove, ..) => gone.extend(found),
            (Change::Extend(body), _, [position]) => {
                if !excluded.contains(&body.origin.sls_text()) {
                    extend(high, &mut index, *position, &body);
                }
            }
            (Change::Extend(body), Selector::State { name, .. } | Selector::Id(name), _) => {
                problems.push(not_there(high, name, &body, places));
            }
            (Change::Extend(_), Selector::Sls(_), _) => {}
        }
    }
    let mut position = 0..;
    high.ids.retain(|_, _| !position.next().is_some_and(|position| gone.contains(&position)));
    problems
}

/// What a file that is excluded extends does not count.
fn excluded_sls(items: &[Value]) -> HashSet<String> {
    let sls = items.iter().filter_map(|item| match item {
        Value::Str(sls) => Some(sls.to_string()),
        item => item.get("sls").map(|sls| sls.to_string()),
    });
    sls.collect()
}

fn extend(high: &mut High, index: &mut Index, position: usize, with: &Body) {
    let Some(body) = high.body_at_mut(position) else { return };
    for (state, args) in with.lists() {
        if let Some(own) = body.list(state) {
            args.into_iter().for_each(|arg| put(own, arg));
        } else {
            body.states.insert(state.into(), Arguments::List(args.clone()));
        }
        index.note(position, state, args);
    }
}

/// Puts an argument over those of a state: requisites are added to, the rest is replaced.
fn put(own: &List, arg: Value) {
    let word = word_of(&arg);
    let mut is_placed = false;
    for (number, old) in own.into_iter().enumerate() {
        match fate(&arg, word.as_ref(), &old) {
            Fate::Stays => continue,
            Fate::Grows(list, by) => list.extend(by.to_vec()),
            Fate::Goes => own.write()[number] = arg.clone(),
            // A name replaces the names, and is added once more: Salt does both.
            Fate::GoesForName => {
                own.write()[number] = arg.clone();
                continue;
            }
        }
        is_placed = true;
    }
    if !is_placed {
        own.push(arg);
    }
}

/// What a new argument does to an old one.
enum Fate {
    Stays,
    Grows(List, List),
    Goes,
    GoesForName,
}

fn fate(new: &Value, word: Option<&Key>, old: &Value) -> Fate {
    if let (Value::Str(_), Value::Str(_)) = (new, old) {
        return Fate::Goes;
    }
    let (Some(word), Some(old_word)) = (word, word_of(old)) else { return Fate::Stays };
    let name = word.as_str().unwrap_or_default();
    if old_word != *word {
        let is_name = name == "name" && old_word.as_str() == Some("names");
        return if is_name { Fate::GoesForName } else { Fate::Stays };
    }
    if !REQUISITE_WORDS.contains(&name) {
        return Fate::Goes;
    }
    match (old.get(name), new.get(name)) {
        (Some(Value::List(old)), Some(Value::List(new))) => Fate::Grows(old, new),
        _ => Fate::Goes,
    }
}

fn not_there(high: &High, name: &Key, body: &Body, places: &Places) -> Problem {
    let text = |field: &Option<Value>| field.as_ref().map_or("base".into(), Value::to_str);
    let (env, sls) = (text(&body.origin.env), text(&body.origin.sls));
    let text = format!(
        "Cannot extend ID '{name}' in '{env}:{sls}'. It is not part of the high state.\nThis is \
         likely due to a missing include statement or an incorrectly typed ID.\nEnsure that a \
         state with an ID of '{name}' is available\nin environment '{env}' and to SLS '{sls}'"
    );
    let asked = asked_at(high, name);
    let problem = Problem::new(text).at(places.of_extend(&name.to_str()).or(asked.as_ref()));
    match suggest::nearest(&name.to_str(), high.states().map(|(_, id, _)| id)) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    }
}

/// Finds where a `require_in` or its like names this id.
fn asked_at(high: &High, name: &Key) -> Option<Place> {
    let lists = high.states().flat_map(|(_, _, body)| body.lists());
    let mut args = lists.flat_map(|(_, args)| args).filter_map(|arg| arg.as_dict().cloned());
    args.find_map(|arg| {
        arg.into_iter().find_map(|(word, targets)| {
            let is_in = REQUISITE_IN_WORDS.contains(&word.as_str()?);
            let Value::List(targets) = targets else { return None };
            let number = targets.into_iter().position(|item| match item {
                Value::Dict(pair) => pair.values().first() == Some(name.value()),
                bare => bare == *name.value(),
            });
            let place = |number| targets.place_of(number).or_else(|| arg.place_of(&word)).cloned();
            // One that is found has been asked for there, with or without a place.
            number.filter(|_| is_in).map(place)
        })
    })?
}

/// What all states ask of others, by the name they ask for.
struct Requests<'a> {
    high: &'a High,
    places: &'a Places,
    index: Index,
    wanted: IndexMap<Key, Body>,
    problems: Vec<Problem>,
}

/// The state that asks, and by which word.
struct Asker<'a> {
    position: usize,
    id: &'a str,
    state: &'a str,
    body: &'a Body,
    word: &'a str,
}

impl Asker<'_> {
    /// `require_in` → `require`
    fn plain(&self) -> &str {
        self.word.split('_').next().unwrap_or(self.word)
    }
}

impl<'a> Requests<'a> {
    fn of(
        high: &'a High,
        places: &'a Places,
        disabled: &[String],
    ) -> (IndexMap<Key, Body>, Vec<Problem>) {
        let (index, wanted) = (Index::default(), IndexMap::new());
        let mut requests = Self { high, places, index, wanted, problems: Vec::new() };
        for (position, id, body) in high.states() {
            for (state, args) in body.lists() {
                for arg in args {
                    let Some(word) = word_of(&arg) else { continue };
                    let Some(word) = word.as_str().filter(|word| ASKING_WORDS.contains(word))
                    else {
                        continue;
                    };
                    if disabled.iter().any(|off| off == word) {
                        tracing::warn!("The {word} requisite has been disabled, Ignoring.");
                        continue;
                    }
                    let from = Asker { position, id, state, body, word };
                    requests.read(&from, arg.get(word).unwrap_or_default());
                }
            }
        }
        (requests.wanted, requests.problems)
    }

    fn read(&mut self, from: &Asker<'_>, asked: Value) {
        match asked {
            Value::Dict(pairs) => {
                for (state, name) in &pairs {
                    let state = state.to_str();
                    self.refuse_dots(from, &state, &name);
                    let module = state.split('.').next().unwrap_or(&state);
                    self.require(from, &name, module);
                }
            }
            Value::List(items) => {
                // Salt keeps the earlier targets of the list while it works on the later ones, so
                // they get the requisite once more for each: visible in the low data.
                let mut targets: Vec<(Value, String)> = Vec::new();
                for item in &items {
                    let Some((name, state)) = self.target(item) else { continue };
                    self.refuse_dots(from, &state, &name);
                    if state == "sls" {
                        targets = self.states_of_sls(&name);
                    } else {
                        targets.push((name, state));
                    }
                    for (name, state) in &targets {
                        match from.word {
                            "use" | "use_in" => self.share(from, name, state),
                            _ => self.require(from, name, state),
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Reads one item: `{state: name}`, or a bare id or name.
    fn target(&mut self, item: Value) -> Option<(Value, String)> {
        if let Value::Dict(pair) = &item {
            let pair = pair.read();
            return pair.first().map(|(state, name)| (name.clone(), state.to_string()));
        }
        let key = Key::try_from(item.clone()).ok()?;
        if let Some(body) = self.high.body(&key) {
            return body.lists().next().map(|(state, _)| (item, state.to_owned()));
        }
        let (position, state) = self.index.with_name(self.high, &key)?;
        let (id, _) = self.high.ids.get_index(position)?;
        Some((id.value().clone(), state))
    }

    fn states_of_sls(&mut self, sls: &Value) -> Vec<(Value, String)> {
        let Ok(sls) = Key::try_from(sls.clone()) else { return Vec::new() };
        let mut states = Vec::new();
        for position in self.index.of_sls(self.high, &sls) {
            let Some((id, _)) = self.high.ids.get_index(position) else { continue };
            let lists = self.high.body_at(position).into_iter().flat_map(Body::lists);
            states.extend(lists.map(|(state, _)| (id.value().clone(), state.to_owned())));
        }
        states
    }

    fn refuse_dots(&mut self, from: &Asker<'_>, state: &str, name: &Value) {
        let Some((module, _)) = state.split_once('.') else { return };
        let text = format!(
            "Invalid requisite in {}: {state} for {name}, in SLS '{}'. Requisites must not contain \
             dots, did you mean '{module}'?",
            from.plain(),
            from.body.origin.sls_text()
        );
        let place = self.places.of_arg(from.id, from.state, from.word);
        self.problems.push(Problem::new(text).at(place));
    }

    /// Returns the body that will extend an id, and the arguments for a state in it.
    fn wanted(&mut self, name: Key, state: &str) -> (&mut Body, List) {
        let body = self.wanted.entry(name).or_default();
        let args = body.list(state).cloned().unwrap_or_else(|| {
            let args = List::new();
            body.states.insert(state.into(), Arguments::List(args.clone()));
            args
        });
        (body, args)
    }

    /// Has a state wait for the asker.
    fn require(&mut self, from: &Asker<'_>, name: &Value, state: &str) {
        let Ok(name) = Key::try_from(name.clone()) else { return };
        let (body, args) = self.wanted(name, state);
        body.origin.env = Some(from.body.origin.env.clone().unwrap_or_default());
        body.origin.sls = Some(from.body.origin.sls.clone().unwrap_or_default());
        let (word, requisite) = (from.plain(), entries! { from.state => from.id });
        let same = args.into_iter().filter(|arg| has_word(arg, word));
        let lists = same.filter_map(|arg| arg.get(word)?.as_list().cloned()).collect::<Vec<_>>();
        if lists.is_empty() {
            args.push(dict! { word => vec![Value::Dict(requisite)] });
        } else {
            lists.iter().for_each(|list| list.push(&requisite));
        }
    }

    /// Lets a state have the arguments of another: the asker those of its targets (`use`), or they
    /// the asker's (`use_in`).
    fn share(&mut self, from: &Asker<'_>, name: &Value, state: &str) {
        let Ok(name) = Key::try_from(name.clone()) else { return };
        let found = find(self.high, &mut self.index, &name, state, true);
        if found.is_empty() {
            // Salt says nothing: the state runs without what it was to have.
            let text = format!("`{}` names {state}: {name}, which is not there", from.word);
            let place = self.places.of_arg(from.id, from.state, from.word);
            tracing::warn!("{}", Problem::new(text).at(place));
        }
        for position in found {
            let (asker, other) = ((from.position, from.state), (position, state));
            let (giver, taker) = if from.word == "use" { (other, asker) } else { (asker, other) };
            self.copy_args(giver, taker);
        }
    }

    /// Copies the arguments the taker does not set itself.
    fn copy_args(&mut self, giver: (usize, &str), taker: (usize, &str)) {
        let high = self.high;
        let args_of = |(position, state): (usize, &str)| {
            let args = high.body_at(position).and_then(|body| body.list(state));
            args.map(List::to_vec).unwrap_or_default()
        };
        let Some((id, _)) = high.ids.get_index(taker.0) else { return };
        let (_, into) = self.wanted(id.clone(), taker.1);
        let own: IndexSet<Key> =
            args_of(taker).iter().filter_map(only_word).map(|(word, _)| word).collect();
        for arg in args_of(giver) {
            let Some((word, _)) = only_word(&arg) else { continue };
            let is_bound = word
                .as_str()
                .is_some_and(|word| ASKING_WORDS.contains(&word) || OWN_WORDS.contains(&word));
            if !is_bound && !own.contains(&word) {
                into.push(arg);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{Dict, json, yaml};

    use super::*;
    use crate::parse::{Bodies, Sls};

    /// Applies all edits of an SLS and returns its ids as they are shown, or the problems.
    fn edited(sls: &str) -> Result<String, Vec<String>> {
        let Ok(Value::Dict(rendered)) = yaml::load_str(sls) else { panic!("not a dict: {sls}") };
        let mut bodies = Bodies::new();
        let (read, _) = Sls::read(&rendered, ("web", "base"), &mut bodies);
        let Sls { ids, extends, excludes, .. } = read;
        let mut high = High { ids, bodies, extends, excludes };
        let places = Places::default();
        let mut problems = apply_extends(&mut high, &places);
        problems.extend(apply_requisites(&mut high, &places, &[]));
        apply_excludes(&mut high);
        if !problems.is_empty() {
            return Err(problems.iter().map(ToString::to_string).collect());
        }
        let shown = json::to_string(&Value::Dict(Dict::from(&high))).expect("JSON");
        Ok(shown.replace(r#", "__sls__": "web", "__env__": "base""#, ""))
    }

    #[track_caller]
    fn check(sls: &str, shown: &str) {
        assert_eq!(edited(sls), Ok(shown.to_owned()));
    }

    #[test]
    fn an_extension_replaces_and_adds() {
        check(
            "a: {file: [run, mode: 1, require: [b]]}\n\
             extend: {a: {file: [go, mode: 2, require: [c], user: x]}}",
            r#"{"a": {"file": ["go", {"mode": 2}, {"require": ["b", "c"]}, {"user": "x"}]}}"#,
        );
        check(
            "a: {file: [run, names: [x, y]]}\nextend: {a: {file: [name: z]}}",
            r#"{"a": {"file": ["run", {"name": "z"}, {"name": "z"}]}}"#,
        );
    }

    #[test]
    fn a_state_is_found_by_what_it_says() {
        check(
            "a: {file: [run, name: /x]}\nb: {cmd: [run, require_in: [file: /x]]}",
            r#"{"a": {"file": ["run", {"name": "/x"}, {"require": [{"cmd": "b"}]}]}, "b": {"cmd": ["run", {"require_in": [{"file": "/x"}]}]}}"#,
        );
        // What an extension said counts for the next.
        check(
            "a: {file: [run]}\nextend: {a: {file: [name: /x]}, /x: {file: [mode: 1]}}",
            r#"{"a": {"file": ["run", {"name": "/x"}, {"mode": 1}]}}"#,
        );
    }

    #[test]
    fn use_takes_what_is_not_set() {
        check(
            "a: {file: [run, mode: 1, user: x, require: [c]]}\n\
             b: {file: [run, mode: 2, use: [file: a]]}",
            r#"{"a": {"file": ["run", {"mode": 1}, {"user": "x"}, {"require": ["c"]}]}, "b": {"file": ["run", {"mode": 2}, {"use": [{"file": "a"}]}, {"user": "x"}]}}"#,
        );
    }

    #[test]
    fn what_is_excluded_is_gone() {
        check("a: {cmd: [run]}\nb: {cmd: [run]}\nexclude: [id: a]", r#"{"b": {"cmd": ["run"]}}"#);
        check("a: {cmd: [run]}\nexclude: [sls: w*]", "{}");
    }

    #[test]
    fn an_unknown_id_is_told() {
        let told = edited("nginx: {cmd: [run]}\nextend: {ngnix: {cmd: [x: 1]}}").unwrap_err();
        assert!(told[0].starts_with("Cannot extend ID 'ngnix' in 'base:web'."), "{told:?}");
        assert!(told[0].ends_with("did you mean `nginx`?"), "{told:?}");
    }
}
