//! The renderer `stateconf`: state files with parameters, local ids and a goal.
//!
//! `#!stateconf [-Gops] yaml . jinja` runs the file through a template renderer and a data renderer
//! (those two unless it says otherwise) and rewrites the data:
//!
//! - an id with a dot in front (`.web`) belongs to the file and becomes `its.sls::web`, also where
//!   requisites, `include`, `exclude` and `extend` name it; further dots go up from there;
//! - a state `.goal` that requires all others of the file is added (not with `-G`), with `-s` also a
//!   `.start`; with `-o` each state requires the one before it;
//! - what `stateconf.set` states above the line `# --- end of state config ---` hold is there as a
//!   variable of their name for the rest of the file. Files that include this one change it by
//!   `extend`: the renderer remembers, for the length of a job, what they say.
//!
//! Surprising, and as Salt does it: renamed ids move behind those that keep their name; `prereq`, the
//! `_any` requisites and requisites that are a bare id are left alone; a dot in `include` is relative
//! to the name of the SLS, so that `init.sls` counts as a file beside its folder.

use halite_value::{Dict, Key, Place, Value, entries};

use crate::pipeline::{Data, Error, RenderCx, Renderer, Renderers, Step, Text};

/// The renderer `stateconf`.
#[derive(Debug)]
pub struct Stateconf {
    /// Those it may use.
    renderers: Renderers,
    /// What files said in `extend` about parameters of others, by full id.
    extended: Dict,
}

impl Stateconf {
    /// `extended` lives as long as the job and is shared by the renderings of its files.
    pub fn new(renderers: Renderers, extended: Dict) -> Self {
        Self { renderers, extended }
    }
}

/// Requisites in which ids are rewritten.
const REQUISITES: [&str; 12] = [
    "require",
    "require_in",
    "watch",
    "watch_in",
    "use",
    "use_in",
    "listen",
    "listen_in",
    "onchanges",
    "onchanges_in",
    "onfail",
    "onfail_in",
];

/// What looks like an id at the top of a file, but is none.
const DECLARATIONS: [&str; 3] = ["include", "exclude", "extend"];

#[derive(Clone, Copy, Debug, Default)]
struct Options {
    no_goal: bool,
    ordered: bool,
    start: bool,
    data: bool,
}

impl Renderer for Stateconf {
    fn name(&self) -> &str {
        "stateconf"
    }

    fn render(&self, input: Data, args: &str, cx: &RenderCx<'_>) -> Result<Data, Error> {
        let (options, rest) = options(args)?;
        let high = match input {
            Data::Value(value) => value,
            Data::Text(text) if options.data => Value::str(text.as_str()),
            Data::Text(text) => {
                let steps = self.steps(rest)?;
                let context = cx.context.shallow_copy();
                context.insert("sls_dir", sls_dir(cx.sls));
                if let Some(end) = end_of_config(text.as_str()) {
                    let top = text.rendered(text.as_str()[..end].to_owned(), None);
                    let head = Options { no_goal: true, ..Options::default() };
                    let data = run(&steps, top, cx, &context)?;
                    let data = self.process(&data, head, cx)?;
                    self.extract(&data, cx.sls, &context);
                }
                run(&steps, text, cx, &context)?
            }
        };
        Ok(Data::Value(Value::Dict(self.process(&high, options, cx)?)))
    }
}

impl Stateconf {
    /// Reads `yaml . jinja`: the data renderer, then the template renderer.
    fn steps(&self, words: &str) -> Result<[Step; 2], Error> {
        let words = if words.is_empty() { "yaml . jinja" } else { words };
        let (data, template) = words.split_once(" . ").ok_or_else(usage)?;
        let step = |words: &str| -> Result<Step, Error> {
            let mut steps = self.renderers.pipe(words.trim())?.steps;
            steps.pop().ok_or_else(usage)
        };
        Ok([step(template)?, step(data)?])
    }

    /// Rewrites high data.
    fn process(&self, high: &Value, options: Options, cx: &RenderCx<'_>) -> Result<Dict, Error> {
        let Value::Dict(high) = high else {
            return Err(Error::new("High data is not a dictionary and is invalid"));
        };
        for (id, states) in states_of(high) {
            if let Value::Str(state) = states {
                let long = entries! { state.as_str() => Value::list(Vec::<Value>::new()) };
                high.insert(id, long);
            }
        }
        check_shape(high)?;
        if options.ordered {
            order(high)?;
        }
        if options.start {
            add_start(high)?;
        }
        if !options.no_goal {
            add_goal(high)?;
        }
        self.rename(high, cx)?;
        Ok(high.clone())
    }

    fn rename(&self, high: &Dict, cx: &RenderCx<'_>) -> Result<(), Error> {
        let sls = cx.sls;
        if let Some(Value::List(list)) = high.get("include") {
            let relative = |item: &Value| -> Result<Value, Error> {
                Ok(match item {
                    Value::Str(name) if name.starts_with('.') => {
                        entries! { cx.saltenv => included(name, sls)? }.into()
                    }
                    other => other.clone(),
                })
            };
            let new: Vec<Value> = list.to_vec().iter().map(relative).collect::<Result<_, _>>()?;
            high.insert("include", new);
        }
        if let Some(Value::List(list)) = high.get("exclude") {
            for item in list.to_vec() {
                let Value::Dict(item) = item else { continue };
                let name = item.get("sls");
                if let Some(Value::Str(name)) = name.filter(|_| item.len() == 1)
                    && name.starts_with('.')
                {
                    item.insert("sls", included(&name, sls)?);
                }
            }
        }
        if let Some(Value::Dict(extend)) = high.get("extend") {
            rename_ids(&extend, sls)?;
            for (id, states) in extend.entries() {
                let Some(set) = parameters(&states) else { continue };
                let known = self.extended.get_or_insert_with(id, Value::dict);
                if let Value::Dict(known) = known {
                    known.update(&set);
                }
            }
        }
        rename_ids(high, sls)
    }

    /// Makes a variable of each `stateconf.set`.
    fn extract(&self, high: &Dict, sls: &str, context: &Dict) {
        let own = format!("{sls}::");
        for (id, states) in states_of(high) {
            let (Some(set), Some(id)) = (parameters(&states), id.as_str()) else { continue };
            if let Some(Value::Dict(extended)) = self.extended.get(id) {
                set.update(&extended);
            }
            context.insert(id.strip_prefix(&own).unwrap_or(id), set);
        }
    }
}

/// Runs a text through the template renderer and the data renderer.
fn run(steps: &[Step], text: Text, cx: &RenderCx<'_>, context: &Dict) -> Result<Value, Error> {
    let cx = RenderCx { context, ..*cx };
    let mut data = Data::Text(text);
    for step in steps {
        data = step.renderer.render(data, &step.args, &cx)?;
    }
    Ok(data.into_value())
}

/// Splits the options off: `-Go yaml . jinja`.
fn options(args: &str) -> Result<(Options, &str), Error> {
    let mut options = Options::default();
    let mut rest = args.trim();
    while let Some(flags) = rest.strip_prefix('-') {
        let (flags, after) = flags.split_once(char::is_whitespace).unwrap_or((flags, ""));
        for flag in flags.chars() {
            match flag {
                'G' => options.no_goal = true,
                'o' => options.ordered = true,
                's' => options.start = true,
                'p' => options.data = true,
                other => {
                    let message = format!("option -{other} not recognized");
                    return Err(Error::of_class("GetoptError", message));
                }
            }
        }
        rest = after.trim_start();
    }
    Ok((options, rest))
}

fn usage() -> Error {
    Error::new(
        "Invalid use of stateconf.py renderer!\n\
         Usage: #!stateconf [-Gops] [<data_renderer> [options] . <template_renderer> [options]]\n\
         such as `#!stateconf -o yaml . jinja`",
    )
}

/// Returns where the line begins that ends the parameters.
fn end_of_config(text: &str) -> Option<usize> {
    let is_end = |line: &str| -> Option<bool> {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix('-')?.trim_start_matches('-').trim_start();
        Some(rest.strip_prefix("end of state config")?.trim_start().starts_with('-'))
    };
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if is_end(line) == Some(true) {
            return Some(start);
        }
        start += line.len();
    }
    None
}

/// Salt's idea of the folder of an SLS; it does not know of `init.sls`.
fn sls_dir(sls: &str) -> String {
    match sls.rsplit_once('.') {
        Some((folder, _)) => folder.replace('.', "/"),
        None if sls.is_empty() => ".".to_owned(),
        None => sls.to_owned(),
    }
}

/// Returns ids and their states.
fn states_of(high: &Dict) -> Vec<(Key, Value)> {
    let mut all = high.entries();
    all.retain(|(id, _)| !id.as_str().is_some_and(|id| DECLARATIONS.contains(&id)));
    all
}

fn check_shape(high: &Dict) -> Result<(), Error> {
    for (id, states) in states_of(high) {
        if !matches!(states, Value::Dict(_)) {
            return Err(Error::new(format!(
                "The type {} in {} is not formatted as a dictionary",
                id.to_str(),
                states.repr()
            )));
        }
    }
    Ok(())
}

/// Returns all (id, state, arguments): `cmd` of `cmd.run`.
fn declared(high: &Dict) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (id, states) in states_of(high) {
        let Value::Dict(states) = states else { continue };
        for (state, args) in states.entries() {
            let state = state.to_str();
            if !state.starts_with("__") {
                let state = state.split('.').next().unwrap_or_default();
                found.push((id.to_str().to_string(), state.to_owned(), args));
            }
        }
    }
    found
}

/// Returns the pairs `state: id` under a requisite.
fn references(requisites: &Value) -> Vec<(String, String)> {
    let items = requisites.items_of_sequence().unwrap_or_default();
    let pairs = items.iter().filter_map(Value::as_dict).flat_map(Dict::entries);
    pairs.map(|(state, id)| (state.to_str().to_string(), id.to_str().to_string())).collect()
}

/// Lets each state require the one before it.
fn order(high: &Dict) -> Result<(), Error> {
    let all = declared(high);
    let place_of = |state: &str, id: &str| {
        all.iter().position(|(known, kind, _)| known == id && kind == state)
    };
    for (at, (id, state, args)) in all.iter().enumerate() {
        let Some(args) = args.as_list() else { continue };
        let mut required = None;
        for arg in args.to_vec() {
            let Value::Dict(arg) = arg else { continue };
            for (name, value) in arg.entries() {
                let name = name.to_str();
                let (wrong, kinds, side): (fn(usize, usize) -> bool, _, _) = match &*name {
                    "require" | "watch" | "listen" | "onchanges" | "onfail" => {
                        (|other, own| other > own, "require/watch/listen/onchanges/onfail", "after")
                    }
                    "require_in" | "watch_in" | "listen_in" | "onchanges_in" | "onfail_in" => (
                        |other, own| other < own,
                        "require_in/watch_in/listen_in/onchanges_in/onfail_in",
                        "before",
                    ),
                    _ => continue,
                };
                for (other_state, other) in references(&value) {
                    if place_of(&other_state, &other).is_some_and(|place| wrong(place, at)) {
                        return Err(Error::new(format!(
                            "State({id}:{state}) can't {kinds} a state({other}:{other_state}) defined {side} it!"
                        )));
                    }
                }
                if name == "require" {
                    required = value.as_list().cloned();
                }
            }
        }
        let Some((last_id, last_state, _)) = at.checked_sub(1).and_then(|last| all.get(last))
        else {
            continue;
        };
        let last: Value = entries! { last_state.as_str() => last_id.as_str() }.into();
        match required {
            Some(list) => list.write().insert(0, last),
            None => args.push(entries! { "require" => Value::list([last]) }),
        }
    }
    Ok(())
}

fn add(high: &Dict, id: &str, what: &str, requisite: &str, of: Vec<Value>) -> Result<(), Error> {
    if high.contains(id) {
        return Err(Error::new(format!(
            "Can't generate {what} state({id})! The same state id already exists!"
        )));
    }
    let args: Value = entries! { requisite => of }.into();
    high.insert(id, entries! { "stateconf.set" => Value::list([args]) });
    Ok(())
}

fn add_start(high: &Dict) -> Result<(), Error> {
    match declared(high).first() {
        Some((id, state, _)) => {
            let first = entries! { state.as_str() => id.as_str() };
            add(high, ".start", "start", "require_in", vec![first.into()])
        }
        None => Ok(()),
    }
}

fn add_goal(high: &Dict) -> Result<(), Error> {
    let all = declared(high).into_iter();
    let all = all.map(|(id, state, _)| entries! { state.as_str() => id }.into()).collect();
    add(high, ".goal", "goal", "require", all)
}

/// Renames the ids of a dict of states, and what its requisites name.
fn rename_ids(high: &Dict, sls: &str) -> Result<(), Error> {
    let mut places: Vec<(Key, Place)> = Vec::new();
    for (id, states) in states_of(high) {
        let local = id.as_str().filter(|id| id.starts_with('.'));
        let place = high.place_of(&id).cloned();
        if let Value::Dict(states) = &states {
            for (state, args) in states.entries() {
                let Value::List(args) = args else { continue };
                for arg in args.to_vec().iter().filter_map(Value::as_dict) {
                    rewrite(arg, sls)?;
                }
                let state = state.to_str();
                if let Some(local) = local
                    && state != "stateconf"
                    && !state.starts_with("stateconf.")
                    && !has_name(&args.to_vec())
                {
                    args.write().insert(0, entries! { "name" => &local[1..] }.into());
                }
            }
        }
        let new = match local {
            Some(local) => {
                let new = Key::from(full_id(local, sls)?);
                high.remove(&id);
                high.insert(new.clone(), states);
                new
            }
            None => id,
        };
        places.extend(place.map(|place| (new, place)));
    }
    if !places.is_empty() {
        high.set_places(places);
    }
    Ok(())
}

fn has_name(args: &[Value]) -> bool {
    args.iter().filter_map(Value::as_dict).any(|arg| arg.contains("name"))
}

/// Gives the ids that a requisite names their full names.
fn rewrite(arg: &Dict, sls: &str) -> Result<(), Error> {
    for (name, value) in arg.entries() {
        if !name.as_str().is_some_and(|name| REQUISITES.contains(&name)) {
            continue;
        }
        let items = value.items_of_sequence().unwrap_or_default();
        for item in items.iter().filter_map(Value::as_dict) {
            for (state, id) in item.entries() {
                if let Some(id) = id.as_str().filter(|id| id.starts_with('.')) {
                    item.insert(state, full_id(id, sls)?);
                }
            }
        }
    }
    Ok(())
}

/// Returns the parameters of a `stateconf.set`; of each item the first counts.
fn parameters(states: &Value) -> Option<Dict> {
    let states = states.as_dict()?;
    let args = states.get("stateconf.set").or_else(|| {
        let args = states.get("stateconf")?;
        args.items_of_sequence()?.contains(&Value::str("set")).then_some(args)
    })?;
    let set = Dict::new();
    for arg in args.items_of_sequence()? {
        if let Some((name, value)) = arg.as_dict().and_then(|arg| arg.entries().into_iter().next())
        {
            set.insert(name, value);
        }
    }
    Some(set)
}

/// Splits the dots in front off.
fn dots(name: &str) -> (usize, &str) {
    let rest = name.trim_start_matches('.');
    (name.len() - rest.len(), rest)
}

/// Takes names off the end of an SLS.
fn up(sls: &str, levels: usize) -> &str {
    let mut sls = sls;
    for _ in 0..levels {
        sls = sls.rsplit_once('.').map_or("", |(above, _)| above);
    }
    sls
}

/// Returns the full name of an id that begins with a dot: `.web`, or `.other::web` of a neighbour.
fn full_id(id: &str, sls: &str) -> Result<String, Error> {
    let (count, rest) = dots(id);
    if id.contains("::") {
        return included(id, sls);
    }
    Ok(match up(sls, count - 1) {
        "" if count > 1 => rest.to_owned(),
        base => format!("{base}::{rest}"),
    })
}

/// Returns the name of an SLS that begins with a dot.
fn included(name: &str, sls: &str) -> Result<String, Error> {
    let (count, rest) = dots(name);
    if count > sls.split('.').count() {
        return Err(Error::new("Attempted relative include goes beyond top level package"));
    }
    Ok(match up(sls, count) {
        "" => rest.to_owned(),
        base => format!("{base}.{rest}"),
    })
}
