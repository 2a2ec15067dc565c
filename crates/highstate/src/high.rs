//! High data: verify it, then fold `extend`, `*_in`, `use` and `exclude` into it.
//!
//! Afterwards every id stands for itself. Several steps keep a quirk of Salt on purpose, because
//! trees (and their orders) depend on it; each says so.

use halite_target::fnmatch;
use halite_value::{Dict, Key, List, Place, Value, dict, suggest};

use crate::{
    Graph, High, Problem, States,
    gather::{Places, first_key},
    keywords::{self, REQUISITE_IN_WORDS, REQUISITE_WORDS},
    low,
};

/// Words that act on another state while high data is folded.
const IN_WORDS: [&str; 7] =
    ["require_in", "watch_in", "onfail_in", "onchanges_in", "use", "use_in", "prereq_in"];

/// Arguments `use` never takes over.
const NOT_USED: [&str; 15] = [
    "require_in",
    "watch_in",
    "onfail_in",
    "onchanges_in",
    "use",
    "use_in",
    "prereq_in",
    "require",
    "watch",
    "prereq",
    "onfail",
    "onfail_stop",
    "onchanges",
    "name",
    "names",
];

/// Folds and verifies high data and compiles it into an ordered graph, or tells what is wrong.
pub fn compile_high(
    high: &High,
    places: &Places,
    states: &dyn States,
    settings: &low::Settings,
) -> Result<Graph, Vec<Problem>> {
    fold(high, places, &settings.disabled_requisites)?;
    compile_folded(high, places, states, settings)
}

/// Compiles high data as it was rendered, without `extend`, requisites-in and `exclude`: what
/// `state.show_low_sls` shows, in Salt and so here.
pub fn compile_unfolded(
    high: &High,
    places: &Places,
    states: &dyn States,
    settings: &low::Settings,
) -> Result<Graph, Vec<Problem>> {
    let problems = verify(high, places);
    if !problems.is_empty() {
        return Err(problems);
    }
    compile_folded(high, places, states, settings)
}

fn compile_folded(
    high: &High,
    places: &Places,
    states: &dyn States,
    settings: &low::Settings,
) -> Result<Graph, Vec<Problem>> {
    let mut graph = low::compile(high, states, settings);
    let problems = graph.resolve(states, places, &settings.disabled_requisites);
    if problems.is_empty() { Ok(graph) } else { Err(problems) }
}

/// Folds `extend`, requisites-in, `use` and `exclude` into the ids.
pub fn fold(high: &High, places: &Places, disabled: &[String]) -> Result<(), Vec<Problem>> {
    let mut problems = extend(high, places, false);
    problems.extend(verify(high, places));
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut problems = requisites_in(high, places, disabled);
    problems.extend(extend(high, places, true));
    exclude(high);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The ids of high data with their bodies, without Salt's own entries.
fn ids(high: &High) -> Vec<(String, Dict)> {
    let ids = high.into_iter().filter_map(|(id, body)| match (id.value(), body) {
        (Value::Str(id), Value::Dict(body)) if !id.starts_with("__") => {
            Some((id.to_string(), body))
        }
        _ => None,
    });
    ids.collect()
}

/// The states of an id with their arguments, without Salt's own entries.
fn states_of(body: &Dict) -> Vec<(String, List)> {
    let states = body.into_iter().filter_map(|(state, args)| match (state.value(), args) {
        (Value::Str(state), Value::List(args)) if !state.starts_with("__") => {
            Some((state.to_string(), args))
        }
        _ => None,
    });
    states.collect()
}

fn sls_of(body: &Dict) -> String {
    body.get("__sls__").map(|sls| sls.to_string()).unwrap_or_default()
}

/// Checks the form of high data.
pub fn verify(high: &High, places: &Places) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (id, body) in high {
        let Some(name) = id.as_str() else {
            let sls = body.get_str("__sls__").unwrap_or_default();
            let text = format!(
                "ID '{id}' in SLS '{sls}' is not formed as a string, but is type {}. It may need \
                 to be quoted.",
                id.type_name()
            );
            problems.push(Problem::new(text).at(places.of_id(&id.to_str())));
            continue;
        };
        if name.starts_with("__") {
            continue;
        }
        match &body {
            Value::Dict(body) => verify_id(name, body, places, &mut problems),
            _ => {
                let text = format!("The type {name} in {body} is not formatted as a dictionary");
                problems.push(Problem::new(text).at(places.of_id(name)));
            }
        }
    }
    problems
}

fn verify_id(id: &str, body: &Dict, places: &Places, problems: &mut Vec<Problem>) {
    let sls = sls_of(body);
    for (state, args) in body {
        let state = state.to_str();
        if state.starts_with("__") {
            continue;
        }
        let module = state.split('.').next().unwrap_or(&state);
        let at = places.of_state(id, module);
        match args {
            Value::List(args) => {
                verify_state(&Declared { id, state: &state, sls: &sls, places }, &args, problems);
            }
            Value::Null => {
                let text = format!(
                    "ID '{id}' in SLS '{sls}' contains a short declaration ({state}) with a \
                     trailing colon. When not passing any arguments to a state, the colon must be \
                     omitted."
                );
                problems.push(Problem::new(text).at(at));
            }
            _ => {
                let text = format!("State '{id}' in SLS '{sls}' is not formed as a list");
                let help = format!("each argument of `{state}` is an item: `- name: value`");
                problems.push(Problem::new(text).at(at).help(help));
            }
        }
    }
}

/// One state declaration, for messages.
struct Declared<'a> {
    id: &'a str,
    state: &'a str,
    sls: &'a str,
    places: &'a Places,
}

impl Declared<'_> {
    fn problem(&self, arg: Option<&str>, text: String) -> Problem {
        let module = self.state.split('.').next().unwrap_or(self.state);
        let place = match arg {
            Some(arg) => self.places.of_arg(self.id, module, arg),
            None => self.places.of_state(self.id, module),
        };
        Problem::new(text).at(place)
    }
}

fn verify_state(state: &Declared<'_>, args: &List, problems: &mut Vec<Problem>) {
    let Declared { id, sls, .. } = state;
    let mut functions: Vec<String> = Vec::new();
    functions.extend(state.state.split_once('.').map(|(_, function)| function.to_owned()));
    for arg in args {
        match &arg {
            Value::Str(function) => {
                if function.trim().contains(' ') {
                    let text = format!(
                        "The function \"{function}\" in state \"{id}\" in SLS \"{sls}\" has \
                         whitespace, a function with whitespace is not supported, perhaps this is \
                         an argument that is missing a \":\""
                    );
                    problems.push(state.problem(None, text));
                }
                functions.push(function.to_string());
            }
            Value::Dict(arg) => verify_arg(state, arg, problems),
            _ => {}
        }
    }
    if functions.is_empty() {
        let text = format!("No function declared in state '{id}' in SLS '{sls}'");
        problems.push(state.problem(None, text));
    } else if functions.len() > 1 {
        let text = format!(
            "Too many functions declared in state '{id}' in SLS '{sls}'. Please choose one of the \
             following: {}",
            functions.join(", ")
        );
        problems.push(state.problem(None, text));
    }
}

fn verify_arg(state: &Declared<'_>, arg: &Dict, problems: &mut Vec<Problem>) {
    let Declared { id, sls, .. } = state;
    let Some((word, value)) = arg.entries().into_iter().next() else { return };
    let word = word.to_str();
    if word == "names" && value.as_list().is_none() {
        let text = format!(
            "The 'names' argument in state '{id}' in SLS '{sls}' needs to be formed as a list"
        );
        problems.push(state.problem(Some(&word), text));
    }
    if !REQUISITE_WORDS.contains(&word.as_str()) {
        return;
    }
    let Value::List(requisites) = value else {
        let text = format!(
            "The {word} statement in state '{id}' in SLS '{sls}' needs to be formed as a list"
        );
        return problems.push(state.problem(Some(&word), text));
    };
    for requisite in &requisites {
        let pair = match &requisite {
            Value::Str(_) => continue,
            Value::Dict(pair) if pair.len() == 1 => pair.entries().into_iter().next(),
            _ => None,
        };
        let Some((kind, target)) = pair else {
            let text = format!(
                "Requisite declaration {requisite} in state {id} in SLS {sls} is not formed as a \
                 single key dictionary"
            );
            problems.push(state.problem(Some(&word), text));
            continue;
        };
        let kind = kind.to_str();
        if let Some((module, _)) = kind.split_once('.') {
            let text = format!(
                "Invalid requisite type '{kind}' in state '{id}', in SLS '{sls}'. Requisite types \
                 must not contain dots, did you mean '{module}'?"
            );
            problems.push(state.problem(Some(&word), text));
        }
        if matches!(target, Value::List(_) | Value::Dict(_)) {
            let text = format!(
                "Illegal requisite \"{target}\" in SLS \"{sls}\", please check your syntax.\n"
            );
            problems.push(state.problem(Some(&word), text));
        }
    }
    if arg.len() != 1 {
        let text =
            format!("Multiple dictionaries defined in argument of state '{id}' in SLS '{sls}'");
        problems.push(state.problem(Some(&word), text));
    }
}

/// Folds `__extend__` into the ids it names.
fn extend(high: &High, places: &Places, strict: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Some(Value::List(extends)) = high.remove("__extend__") else { return problems };
    let excluded = excluded_sls(high);
    for chunk in &extends {
        let Value::Dict(chunk) = chunk else { continue };
        for (name, body) in &chunk {
            let Value::Dict(body) = body else { continue };
            if let Err(problem) = extend_id(high, &name, &body, &excluded, places, strict) {
                problems.push(problem);
            }
        }
    }
    problems
}

fn extend_id(
    high: &High,
    name: &Key,
    body: &Dict,
    excluded: &[String],
    places: &Places,
    strict: bool,
) -> Result<(), Problem> {
    let states = states_of(body);
    let Some((first, _)) = states.first() else { return Ok(()) };
    let is_there =
        |id: &Key| matches!(high.get(id), Some(Value::Dict(b)) if b.contains(first.as_str()));
    let id = if is_there(name) {
        name.clone()
    } else {
        let mut found = named(high, name, first, strict);
        if found.len() != 1 {
            return Err(not_there(high, name, body, places));
        }
        found.remove(0)
    };
    if excluded.contains(&sls_of(body)) {
        return Ok(());
    }
    let Some(Value::Dict(target)) = high.get(&id) else { return Ok(()) };
    for (state, args) in states {
        match target.get(state.as_str()) {
            Some(Value::List(own)) => args.into_iter().for_each(|arg| extend_arg(&own, arg)),
            _ => {
                target.insert(state, args);
            }
        }
    }
    Ok(())
}

/// Puts one argument over those of the state: requisites are added to, the rest is replaced.
fn extend_arg(own: &List, arg: Value) {
    let word = first_key(&arg);
    let mut placed = false;
    for (index, old) in own.into_iter().enumerate() {
        match (&arg, &old) {
            (Value::Str(_), Value::Str(_)) => {
                own.write()[index] = arg.clone();
                placed = true;
            }
            (Value::Dict(new), Value::Dict(old)) => {
                let Some(word) = &word else { continue };
                let old_word = first_key(&Value::from(old));
                if old_word.as_ref() == Some(word) {
                    let is_requisite =
                        word.as_str().is_some_and(|word| REQUISITE_WORDS.contains(&word));
                    match (old.get(word), new.get(word)) {
                        (Some(Value::List(old)), Some(Value::List(new))) if is_requisite => {
                            old.extend(new.to_vec());
                        }
                        _ => own.write()[index] = arg.clone(),
                    }
                    placed = true;
                } else if **word == "name" && old_word.is_some_and(|old| *old == "names") {
                    // A name replaces the names, and is added once more: Salt does both.
                    own.write()[index] = arg.clone();
                }
            }
            _ => {}
        }
    }
    if !placed {
        own.push(arg);
    }
}

/// Finds where a `require_in` or its like names this id.
fn asked_in(high: &High, name: &Key) -> Option<Place> {
    for (_, body) in ids(high) {
        for (_, args) in states_of(&body) {
            for arg in &args {
                let Value::Dict(arg) = arg else { continue };
                for (word, list) in &arg {
                    let is_in =
                        word.as_str().is_some_and(|word| REQUISITE_IN_WORDS.contains(&word));
                    let Value::List(list) = list else { continue };
                    let position = list.into_iter().position(|item| match item {
                        Value::Dict(pair) => pair.values().first() == Some(name.value()),
                        bare => bare == *name.value(),
                    });
                    if let Some(index) = position.filter(|_| is_in) {
                        return list.place_of(index).or_else(|| arg.place_of(&word)).cloned();
                    }
                }
            }
        }
    }
    None
}

fn not_there(high: &High, name: &Key, body: &Dict, places: &Places) -> Problem {
    let env = body.get("__env__").map_or_else(|| "base".into(), |env| env.to_str());
    let sls = body.get("__sls__").map_or_else(|| "base".into(), |sls| sls.to_str());
    let text = format!(
        "Cannot extend ID '{name}' in '{env}:{sls}'. It is not part of the high state.\nThis is \
         likely due to a missing include statement or an incorrectly typed ID.\nEnsure that a \
         state with an ID of '{name}' is available\nin environment '{env}' and to SLS '{sls}'"
    );
    let asked = asked_in(high, name);
    let problem = Problem::new(text).at(places.of_extend(&name.to_str()).or(asked.as_ref()));
    let known: Vec<String> = ids(high).into_iter().map(|(id, _)| id).collect();
    match suggest::nearest(&name.to_str(), known.iter().map(String::as_str)) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    }
}

/// Finds the ids a name may mean: the id itself, everything of an SLS, or a state with an
/// argument of that value.
fn named(high: &High, name: &Key, state: &str, strict: bool) -> Vec<Key> {
    let has = |id: &Key| matches!(high.get(id), Some(Value::Dict(body)) if body.contains(state));
    if high.contains(name) && (!strict || has(name)) {
        return vec![name.clone()];
    }
    let mut found = Vec::new();
    for (id, body) in ids(high) {
        if state == "sls" {
            if body.get("__sls__").as_ref() == Some(name.value()) {
                found.push(Key::from(id));
            }
            continue;
        }
        let Some(Value::List(args)) = body.get(state) else { continue };
        for arg in &args {
            if let Value::Dict(arg) = arg
                && arg.len() == 1
                && arg.values().first() == Some(name.value())
            {
                found.push(Key::from(&id));
            }
        }
    }
    found
}

fn excluded_sls(high: &High) -> Vec<String> {
    let Some(Value::List(items)) = high.get("__exclude__") else { return Vec::new() };
    let sls = items.into_iter().filter_map(|item| match item {
        Value::Str(sls) => Some(sls.into()),
        Value::Dict(item) => item.get("sls").map(|sls| sls.to_string()),
        _ => None,
    });
    sls.collect()
}

/// Turns `require_in`, `use` … into an `__extend__` of the states they name.
fn requisites_in(high: &High, places: &Places, disabled: &[String]) -> Vec<Problem> {
    let mut folder = InFolder { high, places, extend: Dict::new(), problems: Vec::new() };
    for (id, body) in ids(high) {
        for (state, args) in states_of(&body) {
            for arg in &args {
                let Some(word) = first_key(&arg) else { continue };
                let Some(word) = word.as_str().filter(|word| IN_WORDS.contains(word)) else {
                    continue;
                };
                if disabled.iter().any(|off| off == word) {
                    tracing::warn!("The {word} requisite has been disabled, Ignoring.");
                    continue;
                }
                let from = Asker { id: &id, state: &state, body: &body, word };
                folder.fold(&from, arg.get(word).unwrap_or_default());
            }
        }
    }
    let InFolder { extend, problems, .. } = folder;
    let chunks =
        extend.into_iter().map(|(id, body)| Value::Dict([(id, body)].into_iter().collect()));
    high.insert("__extend__", chunks.collect::<List>());
    problems
}

struct InFolder<'a> {
    high: &'a High,
    places: &'a Places,
    extend: Dict,
    problems: Vec<Problem>,
}

/// The state that declares a requisite-in.
struct Asker<'a> {
    id: &'a str,
    state: &'a str,
    body: &'a Dict,
    word: &'a str,
}

impl Asker<'_> {
    /// `require_in` → `require`
    fn plain(&self) -> &str {
        self.word.split('_').next().unwrap_or(self.word)
    }
}

impl InFolder<'_> {
    fn fold(&mut self, from: &Asker<'_>, items: Value) {
        match items {
            Value::Dict(items) => {
                for (state, name) in &items {
                    let state = self.without_dots(from, &state.to_str(), &name);
                    self.require(from, &name, &state);
                }
            }
            Value::List(items) => {
                // Salt keeps the earlier targets of the list while it works on the later ones, so
                // they get the requisite once more for each: visible in the low data.
                let mut targets: Vec<(Value, String)> = Vec::new();
                for item in &items {
                    let Some((state, name)) = self.target(item) else { continue };
                    if state == "sls" {
                        targets = self.of_sls(&name);
                    } else {
                        targets.push((name.clone(), state.clone()));
                    }
                    self.without_dots(from, &state, &name);
                    for (name, state) in targets.clone() {
                        match from.word {
                            "use_in" => self.use_in(from, &name, &state),
                            "use" => self.use_from(from, &name, &state),
                            _ => self.require(from, &name, &state),
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Reads one item: `{state: name}`, or a bare id or name.
    fn target(&self, item: Value) -> Option<(String, Value)> {
        if let Value::Dict(pair) = &item {
            let (state, name) = pair.entries().into_iter().next()?;
            return Some((state.to_string(), name));
        }
        let key = Key::try_from(item.clone()).ok()?;
        if let Some(Value::Dict(body)) = self.high.get(&key) {
            let (state, _) = states_of(&body).into_iter().next()?;
            return Some((state, item));
        }
        let mut found = None;
        for (id, body) in ids(self.high) {
            for (state, args) in states_of(&body) {
                if args.into_iter().any(|arg| arg.get("name").as_ref() == Some(&item)) {
                    found = Some((state, Value::from(&id)));
                }
            }
        }
        found
    }

    fn of_sls(&self, sls: &Value) -> Vec<(Value, String)> {
        let of_sls = ids(self.high)
            .into_iter()
            .filter(|(_, body)| body.get("__sls__").as_ref() == Some(sls));
        of_sls
            .flat_map(|(id, body)| {
                let states = states_of(&body).into_iter();
                states.map(move |(state, _)| (Value::from(&id), state)).collect::<Vec<_>>()
            })
            .collect()
    }

    fn without_dots(&mut self, from: &Asker<'_>, state: &str, name: &Value) -> String {
        let Some((module, _)) = state.split_once('.') else { return state.to_owned() };
        let text = format!(
            "Invalid requisite in {}: {state} for {name}, in SLS '{}'. Requisites must not contain \
             dots, did you mean '{module}'?",
            from.plain(),
            sls_of(from.body)
        );
        let place = self.places.of_arg(from.id, from.state, from.word);
        self.problems.push(Problem::new(text).at(place));
        module.to_owned()
    }

    fn extension(&self, id: &Value) -> Option<Dict> {
        let key = Key::try_from(id.clone()).ok()?;
        match self.extend.get_or_insert_with(key, Value::dict) {
            Value::Dict(body) => Some(body),
            _ => None,
        }
    }

    fn require(&mut self, from: &Asker<'_>, name: &Value, state: &str) {
        let Some(body) = self.extension(name) else { return };
        let Value::List(args) = body.get_or_insert_with(state, || List::new().into()) else {
            return;
        };
        body.insert("__env__", from.body.get("__env__"));
        body.insert("__sls__", from.body.get("__sls__"));
        let requisite = Dict::new();
        requisite.insert(from.state, from.id);
        let word = from.plain();
        let mut found = false;
        for arg in &args {
            if first_key(&arg).is_some_and(|key| *key == *word)
                && let Some(Value::List(list)) = arg.get(word)
            {
                list.push(&requisite);
                found = true;
            }
        }
        if !found {
            args.push(dict! { word => vec![Value::Dict(requisite)] });
        }
    }

    fn use_in(&self, from: &Asker<'_>, name: &Value, state: &str) {
        let Ok(key) = Key::try_from(name.clone()) else { return };
        for id in named(self.high, &key, state, true) {
            self.copy_args((from.id.into(), from.state), (id.value().clone(), state));
        }
    }

    fn use_from(&self, from: &Asker<'_>, name: &Value, state: &str) {
        let Ok(key) = Key::try_from(name.clone()) else { return };
        for id in named(self.high, &key, state, true) {
            self.copy_args((id.value().clone(), state), (from.id.into(), from.state));
        }
    }

    /// Lets one state have the arguments of another that it does not set itself.
    fn copy_args(&self, from: (Value, &str), to: (Value, &str)) {
        let args_of = |(id, state): &(Value, &str)| {
            let key = Key::try_from(id.clone()).ok()?;
            match self.high.get(&key)?.get(state)? {
                Value::List(args) => Some(args),
                _ => None,
            }
        };
        let Some(extension) = self.extension(&to.0) else { return };
        let Value::List(into) = extension.get_or_insert_with(to.1, || List::new().into()) else {
            return;
        };
        let own: Vec<Key> =
            args_of(&to).iter().flatten().filter_map(|arg| single_key(&arg)).collect();
        for arg in args_of(&from).iter().flatten() {
            let Some(word) = single_key(&arg) else { continue };
            let is_own = own.contains(&word);
            if !is_own && !word.as_str().is_some_and(|word| NOT_USED.contains(&word)) {
                into.push(arg);
            }
        }
    }
}

fn single_key(arg: &Value) -> Option<Key> {
    arg.as_dict().filter(|arg| arg.len() == 1).and_then(|arg| arg.keys().pop())
}

/// Removes what `exclude` names.
fn exclude(high: &High) {
    let Some(Value::List(items)) = high.remove("__exclude__") else { return };
    let mut sls_globs = Vec::new();
    let mut gone: Vec<Key> = Vec::new();
    for item in &items {
        match item {
            Value::Str(sls) => sls_globs.push(sls.to_string()),
            Value::Dict(item) if item.len() == 1 => {
                if let Some(sls) = item.get("sls") {
                    sls_globs.push(sls.to_string());
                } else if let Some(id) = item.get("id") {
                    gone.extend(Key::try_from(id).ok());
                }
            }
            _ => {}
        }
    }
    for (id, body) in ids(high) {
        let sls = sls_of(&body);
        if !sls.is_empty() && sls_globs.iter().any(|glob| fnmatch::fnmatch(&sls, glob)) {
            gone.push(id.into());
        }
    }
    for id in gone {
        high.remove(&id);
    }
}

/// Suggests the requisite an unknown argument may have meant.
pub(crate) fn suggest_keyword(word: &str) -> Option<&'static str> {
    suggest::nearest(word, keywords::all_words())
}
