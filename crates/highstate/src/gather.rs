//! From SLS names to high data: find, render, follow includes, collect `extend` and `exclude`.
//!
//! Every id gets its SLS and environment, every state without an `order` the next number, so that
//! states run as written. Problems are collected, not thrown: one run shows them all.

use std::collections::{HashMap, HashSet};

use halite_spec::{Cx, Error, Result, Template};
use halite_target::fnmatch;
use halite_value::{Dict, Key, List, Place, Value, dict, entries, suggest};

use crate::{High, Problem};

/// The first automatic `order`; numbers an author writes are usually far below.
const FIRST_ORDER: i64 = 10_000;

/// What gathering yields.
#[derive(Default)]
pub struct Gathered {
    pub high: High,
    pub problems: Vec<Problem>,
    /// Where each id was declared.
    pub places: Places,
}

/// Where ids, and the states below them, stand in their sources.
#[derive(Clone, Debug, Default)]
pub struct Places {
    ids: HashMap<String, Place>,
    states: HashMap<(String, String), Place>,
    /// (id, state, argument)
    args: HashMap<(String, String, String), Place>,
    /// Ids in `extend`.
    extended: HashMap<String, Place>,
}

impl Places {
    pub fn of_id(&self, id: &str) -> Option<&Place> {
        self.ids.get(id)
    }

    /// Returns the place where an `extend` names an id.
    pub fn of_extend(&self, id: &str) -> Option<&Place> {
        self.extended.get(id)
    }

    /// Returns the place of a state declaration, or of its id.
    pub fn of_state(&self, id: &str, state: &str) -> Option<&Place> {
        self.states.get(&(id.to_owned(), state.to_owned())).or_else(|| self.of_id(id))
    }

    /// Returns the place of an argument, or of its state.
    pub fn of_arg(&self, id: &str, state: &str, arg: &str) -> Option<&Place> {
        let key = (id.to_owned(), state.to_owned(), arg.to_owned());
        self.args.get(&key).or_else(|| self.of_state(id, state))
    }

    fn note(&mut self, rendered: &Dict) {
        for (key, body) in rendered {
            let id = key.to_string();
            if let Some(place) = rendered.place_of(&key) {
                self.ids.entry(id.clone()).or_insert_with(|| place.clone());
            }
            let Value::Dict(body) = body else { continue };
            if id == "extend" {
                for id in body.keys() {
                    if let Some(place) = body.place_of(&id) {
                        self.extended.entry(id.to_string()).or_insert_with(|| place.clone());
                    }
                }
            }
            for (state, args) in &body {
                let full = state.to_string();
                let module = full.split('.').next().unwrap_or(&full).to_owned();
                if let Some(place) = body.place_of(full.as_str()) {
                    self.states
                        .entry((id.clone(), module.clone()))
                        .or_insert_with(|| place.clone());
                }
                let Value::List(args) = args else { continue };
                for arg in &args {
                    let Value::Dict(arg) = arg else { continue };
                    for name in arg.keys() {
                        if let Some(place) = arg.place_of(&name) {
                            self.args
                                .entry((id.clone(), module.clone(), name.to_string()))
                                .or_insert_with(|| place.clone());
                        }
                    }
                }
            }
        }
    }
}

/// Returns the names of the SLS files of an environment.
pub fn available(cx: &Cx, saltenv: &str) -> Result<Vec<String>> {
    Ok(cx
        .files
        .list(saltenv, "")?
        .iter()
        .filter_map(|path| path.strip_suffix(".sls"))
        .filter(|path| !path.contains('.'))
        .map(|path| path.strip_suffix("/init").unwrap_or(path).replace('/', "."))
        .collect())
}

/// Where a top file names each SLS: (environment, name) → place.
pub type Named = HashMap<(String, String), Place>;

/// Renders the SLS files named for each environment (globs allowed) into one high data.
pub fn gather(cx: &Cx, matches: &[(String, Vec<String>)]) -> Gathered {
    gather_named(cx, matches, &Named::new())
}

/// As [`gather`], when a top file named them.
pub fn gather_named(cx: &Cx, matches: &[(String, Vec<String>)], named: &Named) -> Gathered {
    let mut gatherer = Gatherer {
        cx,
        envs: matches.iter().map(|(env, _)| env.clone()).collect(),
        available: HashMap::new(),
        rendered: HashSet::new(),
        order: FIRST_ORDER,
        named,
        out: Gathered::default(),
    };
    let high = Dict::new();
    for (saltenv, names) in matches {
        for name in names {
            gatherer.top_level(saltenv, name, &high);
        }
    }
    gatherer.out.high = high;
    drop_repeated_extends(&gatherer.out.high);
    gatherer.out
}

/// Takes rendered data as high data, as `state.template` does: no includes, no SLS name.
pub fn declare(rendered: &Dict, into: &mut Gathered) {
    let rendered = rendered.deep_copy();
    into.places.note(&rendered);
    for body in rendered.values() {
        let Value::Dict(body) = body else { continue };
        for key in body.keys() {
            if let Some((module, function)) = dotted(&key)
                && let Some(Value::List(args)) = body.get(&key)
            {
                body.remove(&key);
                args.push(function);
                body.insert(module, args);
            }
        }
        body.get_or_insert_with("__sls__", || Value::Null);
        body.get_or_insert_with("__env__", || "base".into());
    }
    into.high = rendered;
}

struct Gatherer<'a> {
    cx: &'a Cx,
    /// The environments asked for; includes marked `_xenv` are looked up in all of them.
    envs: Vec<String>,
    available: HashMap<String, Vec<String>>,
    /// `env:sls` of everything rendered so far: each SLS once.
    rendered: HashSet<String>,
    order: i64,
    named: &'a Named,
    out: Gathered,
}

impl Gatherer<'_> {
    fn problem(&mut self, problem: Problem) {
        tracing::error!("{problem}");
        self.out.problems.push(problem);
    }

    fn top_level(&mut self, saltenv: &str, name: &str, high: &Dict) {
        let known = self.available(saltenv);
        let mut found: Vec<String> = matching(&known, name);
        if found.is_empty() {
            found.push(name.to_owned());
        }
        for sls in found {
            if self.rendered.contains(&format!("{saltenv}:{sls}")) {
                continue;
            }
            if let Some(state) = self.sls(&sls, saltenv, None) {
                self.merge(high, &state);
            }
        }
    }

    fn available(&mut self, saltenv: &str) -> Vec<String> {
        if let Some(names) = self.available.get(saltenv) {
            return names.clone();
        }
        let names = available(self.cx, saltenv).unwrap_or_default();
        self.available.insert(saltenv.to_owned(), names.clone());
        names
    }

    /// Renders one SLS and what it includes. `asked` is where an include stands.
    fn sls(&mut self, sls: &str, saltenv: &str, asked: Option<&Place>) -> Option<Dict> {
        let Some((path, source)) = self.find(sls, saltenv) else {
            self.missing(sls, saltenv, asked);
            return None;
        };
        self.rendered.insert(format!("{saltenv}:{sls}"));
        let state = self.render(sls, saltenv, &path, &source)?;
        let includes = self.take_includes(sls, &state);
        self.take_extend(sls, saltenv, &state);
        self.take_exclude(sls, &state);
        self.declare(sls, saltenv, &state);
        let is_init = source.ends_with("/init.sls");
        for (include, place) in includes {
            self.include(sls, saltenv, is_init, include, place.as_ref(), &state);
        }
        self.number(&state);
        Some(state)
    }

    fn find(&mut self, sls: &str, saltenv: &str) -> Option<(std::path::PathBuf, String)> {
        let base = sls.replace('.', "/");
        [format!("{base}.sls"), format!("{base}/init.sls")].into_iter().find_map(|path| {
            let url = format!("salt://{path}");
            match self.cx.files.cache(&url, saltenv) {
                Ok(Some(file)) => Some((file, path)),
                Ok(None) => None,
                Err(error) => {
                    self.out.problems.push(Problem::new(error.to_string()));
                    None
                }
            }
        })
    }

    fn missing(&mut self, sls: &str, saltenv: &str, asked: Option<&Place>) {
        let known = self.available(saltenv);
        let text = if asked.is_some() {
            format!(
                "Specified SLS {sls} in saltenv {saltenv} is not available on the salt master or \
                 through a configured fileserver"
            )
        } else {
            format!("No matching sls found for '{sls}' in env '{saltenv}'")
        };
        let named = || self.named.get(&(saltenv.to_owned(), sls.to_owned()));
        let mut problem = Problem::new(text).at(asked.or_else(named));
        if let Some(near) = suggest::nearest(sls, known.iter().map(String::as_str)) {
            problem = problem.help(format!("did you mean `{near}`?"));
        }
        self.problem(problem);
    }

    fn render(
        &mut self,
        sls: &str,
        saltenv: &str,
        path: &std::path::Path,
        source: &str,
    ) -> Option<Dict> {
        let text = match self.cx.host.read_text(path) {
            Ok(text) => text,
            Err(error) => {
                let text = format!("Rendering SLS '{saltenv}:{sls}' failed: {error}");
                self.problem(Problem::new(text));
                return None;
            }
        };
        let template = Template {
            engine: self.cx.opt_str("renderer").map_or_else(|| "jinja|yaml".into(), Into::into),
            text,
            source: Some(source.to_owned()),
            saltenv: saltenv.to_owned(),
            sls: Some(sls.to_owned()),
            context: entries! { "tplpath" => path.to_string_lossy().into_owned() },
        };
        match self.cx.runtime.compile(self.cx, &template) {
            Ok(Value::Dict(state)) => {
                let state = state.deep_copy();
                self.out.places.note(&state);
                Some(state)
            }
            Ok(value) if !value.truthy() => Some(Dict::new()),
            Ok(_) => {
                let place = Place::new(source, 1, 0);
                let text = format!("SLS {sls} does not render to a dictionary");
                self.problem(Problem::new(text).at(Some(&place)));
                None
            }
            Err(error) => {
                self.problem(render_problem(sls, saltenv, &error));
                None
            }
        }
    }

    fn take_includes(&mut self, sls: &str, state: &Dict) -> Vec<(Value, Option<Place>)> {
        let place = state.place_of("include").cloned();
        match state.get("include") {
            None => Vec::new(),
            Some(Value::List(list)) => {
                state.remove("include");
                list.into_iter()
                    .enumerate()
                    .map(|(index, item)| (item, list.place_of(index).or(place.as_ref()).cloned()))
                    .collect()
            }
            Some(_) => {
                let text = format!("Include Declaration in SLS {sls} is not formed as a list");
                self.problem(Problem::new(text).at(place.as_ref()));
                Vec::new()
            }
        }
    }

    fn take_extend(&mut self, sls: &str, saltenv: &str, state: &Dict) {
        let place = state.place_of("extend").cloned();
        let Some(extend) = state.remove("extend") else { return };
        let Value::Dict(extend) = extend else {
            let text = format!("Extension value in SLS '{sls}' is not a dictionary");
            return self.problem(Problem::new(text).at(place.as_ref()));
        };
        for (name, body) in &extend {
            let Value::Dict(body) = body else {
                let text = format!("Extension name '{name}' in SLS '{sls}' is not a dictionary");
                self.problem(Problem::new(text).at(extend.place_of(&name).or(place.as_ref())));
                continue;
            };
            body.get_or_insert_with("__sls__", || sls.into());
            body.get_or_insert_with("__env__", || saltenv.into());
            for key in body.keys() {
                if let Some((module, function)) = dotted(&key)
                    && let Some(Value::List(args)) = body.get(&key)
                {
                    body.remove(&key);
                    args.push(function);
                    body.insert(module, args);
                }
            }
        }
        append(state, "__extend__", [Value::Dict(extend)]);
    }

    fn take_exclude(&mut self, sls: &str, state: &Dict) {
        let place = state.place_of("exclude").cloned();
        match state.remove("exclude") {
            None => {}
            Some(Value::List(items)) => append(state, "__exclude__", items.to_vec()),
            Some(_) => {
                let text = format!("Exclude Declaration in SLS {sls} is not formed as a list");
                self.problem(Problem::new(text).at(place.as_ref()));
            }
        }
    }

    /// Brings every id into the long form: `file.absent: [...]` becomes `file: [..., absent]`.
    fn declare(&mut self, sls: &str, saltenv: &str, state: &Dict) {
        for (id, body) in state {
            if matches!(id.as_str(), Some("__extend__" | "__exclude__")) {
                continue;
            }
            let place = state.place_of(&id).cloned();
            let body = match body {
                Value::Dict(body) => body,
                Value::Str(short) if short.contains('.') => {
                    let (module, function) = short.split_once('.').unwrap_or((&short, ""));
                    let function = function.split('.').next().unwrap_or(function);
                    let body = Dict::new();
                    body.insert("__sls__", sls);
                    body.insert("__env__", saltenv);
                    body.insert(module, vec![Value::str(function)]);
                    state.insert(id, body);
                    continue;
                }
                _ => {
                    let text = format!("ID {id} in SLS {sls} is not a dictionary");
                    self.problem(Problem::new(text).at(place.as_ref()));
                    continue;
                }
            };
            let mut seen = HashSet::new();
            for key in body.keys() {
                let Some(name) = key.as_str() else { continue };
                if name.starts_with('_') {
                    continue;
                }
                let Some(Value::List(args)) = body.get(&key) else { continue };
                let Some((module, function)) = dotted(&key) else {
                    seen.insert(name.to_owned());
                    continue;
                };
                if seen.contains(&module) {
                    let text = format!(
                        "ID '{id}' in SLS '{sls}' contains multiple state declarations of the \
                         same type"
                    );
                    let help = format!("give the second `{module}` state an id of its own");
                    let place = body.place_of(&key).or(place.as_ref());
                    self.problem(Problem::new(text).at(place).help(help));
                    continue;
                }
                body.remove(&key);
                args.push(function);
                seen.insert(module.clone());
                body.insert(module, args);
            }
            body.get_or_insert_with("__sls__", || sls.into());
            body.get_or_insert_with("__env__", || saltenv.into());
        }
    }

    fn include(
        &mut self,
        sls: &str,
        saltenv: &str,
        is_init: bool,
        include: Value,
        place: Option<&Place>,
        state: &Dict,
    ) {
        let (env_key, name) = match include {
            Value::Dict(pair) => match pair.entries().pop() {
                Some((env, name)) => (env.to_string(), name.to_string()),
                None => return,
            },
            other => (saltenv.to_owned(), other.to_string()),
        };
        let across = env_key == "_xenv";
        let Some(name) = absolute(&name, sls, is_init) else {
            let text = format!(
                "Attempted relative include of '{name}' within SLS '{saltenv}:{sls}' goes \
                 beyond top level package "
            );
            return self.problem(Problem::new(text).at(place));
        };
        if !across
            && self.cx.files.envs().is_ok_and(|envs| {
                !envs.contains(&env_key) && !envs.iter().any(|env| env == "__env__")
            })
        {
            let text = format!(
                "Nonexistent saltenv '{env_key}' found in include of '{name}' within SLS \
                 '{saltenv}:{sls}'"
            );
            return self.problem(Problem::new(text).at(place));
        }
        let resolved: Vec<String> = if across {
            let envs = self.envs.clone();
            envs.into_iter()
                .filter(|env| !matching(&self.available(env), &name).is_empty())
                .collect()
        } else if self.envs.contains(&env_key)
            || !matching(&self.available(&env_key), &name).is_empty()
        {
            vec![env_key.clone()]
        } else {
            Vec::new()
        };
        if resolved.len() != 1 && !resolved.iter().any(|env| env == saltenv) {
            return self.unresolved(&env_key, &name, across, &resolved, place);
        }
        let env = if resolved.len() == 1 { resolved[0].clone() } else { saltenv.to_owned() };
        let mut targets = matching(&self.available(saltenv), &name);
        if targets.is_empty() {
            targets.push(name);
        }
        for target in targets {
            if self.rendered.contains(&format!("{env}:{target}")) {
                continue;
            }
            let Some(included) = self.sls(&target, &env, place.or(Some(&Place::new(sls, 1, 0))))
            else {
                continue;
            };
            for (id, body) in &included {
                if let (Some(id), Value::Dict(body)) = (id.as_str(), body)
                    && !id.starts_with("__")
                {
                    append(&body, "__sls_included_from__", [Value::from(sls)]);
                }
            }
            self.merge(state, &included);
        }
    }

    fn unresolved(
        &mut self,
        env: &str,
        name: &str,
        across: bool,
        resolved: &[String],
        place: Option<&Place>,
    ) {
        let text = if resolved.is_empty() {
            let envs = if across { self.envs.join(", ") } else { env.to_owned() };
            format!(
                "Unknown include: Specified SLS {env}: {name} is not available on the salt master \
                 in saltenv(s): {envs} "
            )
        } else {
            format!(
                "Ambiguous include: Specified SLS {env}: {name} is available on the salt master \
                 in multiple available saltenvs: {}",
                resolved.join(", ")
            )
        };
        self.problem(Problem::new(text).at(place));
    }

    /// Adds rendered ids to those we have; an id declared twice is a problem.
    fn merge(&mut self, into: &Dict, from: &Dict) {
        for list in ["__extend__", "__exclude__"] {
            if let Some(Value::List(items)) = from.remove(list) {
                append(into, list, items.to_vec());
            }
        }
        for (id, body) in from {
            if let Some(Value::Dict(old)) = into.get(&id)
                && Value::Dict(old.clone()) != body
            {
                let from = |body: &Value, key: &str| body.get_str(key).unwrap_or_default();
                let old = Value::Dict(old);
                let text = format!(
                    "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The \
                     conflicting ID is '{id}' and is found in SLS '{}:{}' and SLS '{}:{}'",
                    from(&old, "__env__"),
                    from(&old, "__sls__"),
                    from(&body, "__env__"),
                    from(&body, "__sls__"),
                );
                let place = self.out.places.of_id(&id.to_str()).cloned();
                self.problem(Problem::new(text).at(place.as_ref()));
            }
            into.insert(id, body);
        }
    }

    /// Gives every state without an `order` the next number.
    fn number(&mut self, state: &Dict) {
        if !self.cx.opt("state_auto_order").is_none_or(|auto| auto.truthy()) {
            return;
        }
        for (_, body) in state {
            let Value::Dict(body) = body else { continue };
            for (module, args) in &body {
                let Value::List(args) = args else { continue };
                if module.as_str().is_none_or(|module| module.starts_with('_')) {
                    continue;
                }
                let ordered =
                    args.into_iter().any(|arg| first_key(&arg).is_some_and(|key| *key == "order"));
                if !ordered {
                    args.push(dict! { "order" => self.order });
                    self.order += 1;
                }
            }
        }
    }
}

fn render_problem(sls: &str, saltenv: &str, error: &Error) -> Problem {
    let (place, help) = match error {
        Error::Source { place, help, .. } => (place.as_ref(), help.clone()),
        _ => (None, None),
    };
    let text = format!("Rendering SLS '{saltenv}:{sls}' failed: {error}");
    Problem { text, place: place.cloned(), help }
}

/// Splits `file.absent`; further dots are dropped, as Salt drops them.
fn dotted(key: &Key) -> Option<(String, String)> {
    let key = key.as_str().filter(|key| !key.starts_with('_'))?;
    let (module, function) = key.split_once('.')?;
    Some((module.to_owned(), function.split('.').next().unwrap_or(function).to_owned()))
}

pub(crate) fn first_key(arg: &Value) -> Option<Key> {
    arg.as_dict()?.read().first().map(|(key, _)| key.clone())
}

/// Makes `.name` and `..name` absolute; `None` when it climbs above the root.
fn absolute(name: &str, sls: &str, is_init: bool) -> Option<String> {
    let rest = name.trim_start_matches('.');
    let levels = name.len() - rest.len();
    if levels == 0 {
        return Some(name.to_owned());
    }
    let mut parts: Vec<&str> = sls.split('.').collect();
    if is_init {
        parts.push("init");
    }
    if levels > parts.len() {
        return None;
    }
    parts.truncate(parts.len() - levels);
    parts.push(rest);
    Some(parts.join("."))
}

fn append(dict: &Dict, key: &str, items: impl IntoIterator<Item = Value>) {
    let Value::List(list) = dict.get_or_insert_with(key, || List::new().into()) else { return };
    list.extend(items);
}

/// The same SLS can be reached twice; its `extend` counts once.
fn drop_repeated_extends(high: &Dict) {
    let Some(Value::List(extends)) = high.get("__extend__") else { return };
    let mut seen: Vec<(Key, Value)> = Vec::new();
    for extend in &extends {
        let Value::Dict(extend) = extend else { continue };
        for entry in &extend {
            if !seen.contains(&entry) {
                seen.push(entry);
            }
        }
    }
    let one = |(id, body): (Key, Value)| Value::Dict([(id, body)].into_iter().collect());
    high.insert("__extend__", seen.into_iter().map(one).collect::<List>());
}

/// Returns the names a glob matches.
fn matching(names: &[String], glob: &str) -> Vec<String> {
    if !fnmatch::is_pattern(glob) {
        return names.iter().filter(|name| *name == glob).cloned().collect();
    }
    let glob = fnmatch::Glob::new(glob);
    names.iter().filter(|name| glob.matches(name)).cloned().collect()
}
