//! A rendered SLS as typed data.
//!
//! [`Sls::read`] takes the dict a renderer made apart, once: includes, extensions, exclusions and
//! declarations. All later work is on these types; dicts are made again only to be shown.
//!
//! Two things are surprising, and both show in genuine Salt's data:
//! - Argument lists stay the shared [`List`]s of the renderer, and a body that two ids share by a
//!   YAML alias is read once. What is added for one (its function, its `order`) is there for the
//!   other.
//! - What has the wrong form is kept ([`Entry::Misfit`], [`Arguments::Misfit`]): an `extend` may
//!   yet replace it, and only the checks after that ([`crate::check`]) complain.

use std::collections::{HashMap, HashSet};

use halite_value::{Dict, Key, List, Place, Value, suggest};
use indexmap::IndexMap;

use crate::Problem;

/// The key under which high data shows the extensions that are still to be applied.
pub(crate) const EXTEND: &str = "__extend__";
/// The key under which high data shows the exclusions that are still to be applied.
pub(crate) const EXCLUDE: &str = "__exclude__";

/// The key under which an id shows the files that include it.
const INCLUDED_FROM: &str = "__sls_included_from__";

/// Ids in the order of their declaration.
pub(crate) type Ids = IndexMap<Key, Entry>;

/// What stands under a key of high data.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The states of an id: a position in [`Bodies`].
    Body(usize),
    /// Neither a dict nor a short declaration.
    Misfit(Value),
    /// Marks where the extensions are shown.
    Extends,
    /// Marks where the exclusions are shown.
    Excludes,
}

/// The bodies of all ids. An index, not ownership, ties an id to its body: aliases share.
pub(crate) type Bodies = Vec<Body>;

/// Where a body comes from. Each is missing in hand-written high data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) sls: Option<Value>,
    pub(crate) env: Option<Value>,
    /// The SLS files that include it, from the nearest on.
    pub(crate) included_from: Option<Value>,
}

impl Origin {
    fn of(sls: &str, env: &str) -> Self {
        Self { sls: Some(sls.into()), env: Some(env.into()), included_from: None }
    }

    fn or(&mut self, other: &Self) {
        self.sls.get_or_insert_with(|| other.sls.clone().unwrap_or_default());
        self.env.get_or_insert_with(|| other.env.clone().unwrap_or_default());
    }

    /// Returns the SLS for messages and comparisons: empty if there is none.
    pub(crate) fn sls_text(&self) -> String {
        self.sls.as_ref().map(Value::to_string).unwrap_or_default()
    }

    fn field(&mut self, key: &Key) -> Option<&mut Option<Value>> {
        match key.as_str()? {
            "__sls__" => Some(&mut self.sls),
            "__env__" => Some(&mut self.env),
            INCLUDED_FROM => Some(&mut self.included_from),
            _ => None,
        }
    }

    /// Returns what is known under the keys of high data and low chunks.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let fields =
            [("__sls__", &self.sls), ("__env__", &self.env), (INCLUDED_FROM, &self.included_from)];
        fields.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)))
    }
}

/// The arguments of a state.
#[derive(Clone, Debug)]
pub(crate) enum Arguments {
    List(List),
    /// Nothing follows the colon.
    Missing,
    Misfit(Value),
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        match value {
            Value::List(args) => Self::List(args),
            Value::Null => Self::Missing,
            other => Self::Misfit(other),
        }
    }
}

impl From<&Arguments> for Value {
    fn from(args: &Arguments) -> Self {
        match args {
            Arguments::List(args) => args.clone().into(),
            Arguments::Missing => Self::Null,
            Arguments::Misfit(other) => other.clone(),
        }
    }
}

/// The states under an id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) states: IndexMap<Key, Arguments>,
    pub(crate) origin: Origin,
    /// How many of the states, from the last, Salt shows behind the origin.
    late: usize,
}

impl Body {
    /// Takes a dict as it is.
    pub(crate) fn read(dict: &Dict) -> Self {
        let mut body = Self::default();
        for (key, value) in dict {
            match body.origin.field(&key) {
                Some(field) => *field = Some(value),
                None => {
                    body.states.insert(key, value.into());
                }
            }
        }
        body
    }

    fn from_short(module: &str, function: &str, origin: Origin) -> Self {
        let args = List::from(vec![Value::str(function)]);
        let states = [(Key::from(module), Arguments::List(args))].into_iter().collect();
        Self { states, origin, late: 1 }
    }

    /// Brings `file.absent: [...]` into the long form `file: [..., absent]`. A second state of one
    /// module replaces the first; under an id it stays, and is returned.
    fn lengthen(&mut self, role: Role) -> Vec<(Key, String)> {
        let mut repeated = Vec::new();
        let mut seen = HashSet::new();
        for key in self.states.keys().cloned().collect::<Vec<_>>() {
            let Some(name) = key.as_str().filter(|name| !name.starts_with('_')) else { continue };
            let Some(Arguments::List(args)) = self.states.get(&key).cloned() else { continue };
            let Some((module, function)) = dotted(name) else {
                seen.insert(name.to_owned());
                continue;
            };
            let is_new = seen.insert(module.to_owned());
            if role == Role::Id && !is_new {
                let module = module.to_owned();
                repeated.push((key, module));
                continue;
            }
            args.push(function);
            let module = Key::from(module);
            self.states.shift_remove(&key);
            let replaced = self.states.insert(module, Arguments::List(args));
            // Salt notes the origin of an extension before it does this, that of an id after.
            self.late += usize::from(role == Role::Extension && replaced.is_none());
        }
        repeated
    }

    /// Returns the states that can be worked with: those with a list of arguments, without Salt's
    /// own entries.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (&str, &List)> {
        self.states.iter().filter_map(|(state, args)| match (state.as_str()?, args) {
            (state, Arguments::List(args)) if !state.starts_with("__") => Some((state, args)),
            _ => None,
        })
    }

    /// Returns the arguments of one state.
    pub(crate) fn list(&self, state: &str) -> Option<&List> {
        match self.states.get(state)? {
            Arguments::List(args) => Some(args),
            _ => None,
        }
    }

    pub(crate) fn to_dict(&self) -> Dict {
        let mut entries: Vec<(Key, Value)> =
            self.states.iter().map(|(state, args)| (state.clone(), args.into())).collect();
        let behind = entries.split_off(entries.len().saturating_sub(self.late));
        let own = |(key, value): (&str, &Value)| (Key::from(key), value.clone());
        let (included, origin): (Vec<_>, Vec<_>) =
            self.origin.entries().partition(|(key, _)| *key == INCLUDED_FROM);
        entries.extend(origin.into_iter().map(own));
        entries.extend(behind);
        entries.extend(included.into_iter().map(own));
        entries.into_iter().collect()
    }
}

/// What a body is read for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Id,
    Extension,
}

/// One item of `include`.
pub(crate) struct Include {
    /// `- env: name`, if it names one.
    pub(crate) env: Option<String>,
    pub(crate) name: String,
    pub(crate) place: Option<Place>,
}

impl Include {
    fn read(item: &Value, place: Option<&Place>) -> Option<Self> {
        let place = place.cloned();
        match item {
            Value::Dict(pair) => {
                let (env, name) = pair.entries().pop()?;
                Some(Self { env: Some(env.to_string()), name: name.to_string(), place })
            }
            name => Some(Self { env: None, name: name.to_string(), place }),
        }
    }
}

/// A rendered SLS. Extensions and exclusions have a mark among the ids if they were written.
#[derive(Default)]
pub(crate) struct Sls {
    pub(crate) includes: Vec<Include>,
    pub(crate) extends: Vec<(Key, usize)>,
    pub(crate) excludes: Vec<Value>,
    pub(crate) ids: Ids,
}

impl Sls {
    /// Reads what an SLS rendered to; its argument lists are changed.
    pub(crate) fn read(
        rendered: &Dict,
        (sls, env): (&str, &str),
        bodies: &mut Bodies,
    ) -> (Self, Vec<Problem>) {
        let (origin, known) = (Origin::of(sls, env), HashMap::new());
        let mut reader = Reader { kind: "SLS", sls, origin, bodies, known, problems: Vec::new() };
        let mut read = Self { includes: reader.includes(rendered), ..Self::default() };
        reader.extends(rendered, &mut read);
        reader.excludes(rendered, &mut read);
        reader.declarations(rendered, &mut read);
        (read, reader.problems)
    }

    /// Reads a template that is no SLS: every key is an id.
    pub(crate) fn read_template(
        rendered: &Dict,
        path: Option<&str>,
        bodies: &mut Bodies,
    ) -> (Ids, Vec<Problem>) {
        let own = path.map_or(Value::Null, Value::from);
        let origin = Origin { sls: Some(own), ..Origin::of("", "base") };
        let (sls, problems) = (path.unwrap_or("<template-str>"), Vec::new());
        let kind = "template";
        let mut reader = Reader { kind, sls, origin, bodies, known: HashMap::new(), problems };
        let mut ids = Ids::default();
        for (id, value) in rendered {
            let entry = match value {
                value @ (Value::Dict(_) | Value::Str(_)) => {
                    reader.declaration(rendered, &id, value)
                }
                other => Entry::Misfit(other),
            };
            ids.insert(id, entry);
        }
        (ids, reader.problems)
    }
}

struct Reader<'a> {
    /// `SLS`, or `template`.
    kind: &'static str,
    sls: &'a str,
    origin: Origin,
    bodies: &'a mut Bodies,
    /// Dicts read before, by identity.
    known: HashMap<usize, usize>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, text: String, place: Option<&Place>) {
        self.problems.push(Problem::new(text).at(place));
    }

    /// Reads a body, unless an alias of it was read before.
    fn body(&mut self, dict: &Dict, role: Role) -> (usize, Vec<(Key, String)>) {
        if let Some(index) = self.known.get(&dict.identity()) {
            return (*index, Vec::new());
        }
        let mut body = Body::read(dict);
        let repeated = body.lengthen(role);
        body.origin.or(&self.origin);
        let index = self.bodies.len();
        self.bodies.push(body);
        self.known.insert(dict.identity(), index);
        (index, repeated)
    }

    fn includes(&mut self, rendered: &Dict) -> Vec<Include> {
        let place = rendered.place_of("include");
        match rendered.get("include") {
            None => Vec::new(),
            Some(Value::List(list)) => {
                let items = list.into_iter().enumerate();
                let place_of = |index| list.place_of(index).or(place);
                items.filter_map(|(index, item)| Include::read(&item, place_of(index))).collect()
            }
            Some(_) => {
                let sls = self.sls;
                let text = format!("Include Declaration in SLS {sls} is not formed as a list");
                self.problem(text, place);
                Vec::new()
            }
        }
    }

    fn extends(&mut self, rendered: &Dict, into: &mut Sls) {
        let Some(extend) = rendered.get("extend") else { return };
        let (sls, place) = (self.sls, rendered.place_of("extend"));
        let Value::Dict(extend) = extend else {
            let text = format!("Extension value in SLS '{sls}' is not a dictionary");
            return self.problem(text, place);
        };
        into.ids.insert(EXTEND.into(), Entry::Extends);
        for (id, body) in &extend {
            if let Value::Dict(body) = body {
                into.extends.push((id, self.body(&body, Role::Extension).0));
            } else {
                let text = format!("Extension name '{id}' in SLS '{sls}' is not a dictionary");
                self.problem(text, extend.place_of(&id).or(place));
            }
        }
    }

    fn excludes(&mut self, rendered: &Dict, into: &mut Sls) {
        match rendered.get("exclude") {
            None => {}
            Some(Value::List(items)) => {
                into.ids.insert(EXCLUDE.into(), Entry::Excludes);
                into.excludes = items.to_vec();
            }
            Some(_) => {
                let sls = self.sls;
                let text = format!("Exclude Declaration in SLS {sls} is not formed as a list");
                self.problem(text, rendered.place_of("exclude"));
            }
        }
    }

    fn declarations(&mut self, rendered: &Dict, into: &mut Sls) {
        for (id, value) in rendered {
            let is_read = match id.as_str() {
                Some("include") => matches!(value, Value::List(_)),
                Some("extend" | "exclude" | EXTEND | EXCLUDE) => true,
                _ => false,
            };
            if !is_read {
                let entry = self.declaration(rendered, &id, value);
                into.ids.insert(id, entry);
            }
        }
    }

    fn declaration(&mut self, rendered: &Dict, id: &Key, value: Value) -> Entry {
        let (kind, sls) = (self.kind, self.sls);
        match value {
            Value::Dict(body) => {
                let (index, repeated) = self.body(&body, Role::Id);
                for (key, module) in repeated {
                    let text = format!(
                        "ID '{id}' in {kind} '{sls}' contains multiple state declarations of the \
                         same type"
                    );
                    let place = body.place_of(&key).or_else(|| rendered.place_of(id));
                    let help = format!("give the second `{module}` state an id of its own");
                    self.problems.push(Problem::new(text).at(place).help(help));
                }
                Entry::Body(index)
            }
            Value::Str(short) if short.contains('.') => {
                let (module, function) = dotted(&short).unwrap_or((&short, ""));
                self.bodies.push(Body::from_short(module, function, self.origin.clone()));
                Entry::Body(self.bodies.len() - 1)
            }
            other => {
                let text = format!("ID {id} in {kind} {sls} is not a dictionary");
                let problem = Problem::new(text).at(rendered.place_of(id));
                // What stands at the top of a file and is no id.
                let near = suggest::nearest(&id.to_str(), ["include", "extend", "exclude"])
                    .map(|near| format!("did you mean `{near}`?"));
                self.problems.push(match near {
                    Some(near) => problem.help(near),
                    None => problem,
                });
                Entry::Misfit(other)
            }
        }
    }
}

/// Splits `file.absent`; further dots are dropped, as Salt drops them.
fn dotted(state: &str) -> Option<(&str, &str)> {
    let (module, rest) = state.split_once('.')?;
    Some((module, rest.split('.').next().unwrap_or(rest)))
}

/// Returns the word of an argument: the first key of its dict.
pub(crate) fn word_of(arg: &Value) -> Option<Key> {
    arg.as_dict()?.read().first().map(|(word, _)| word.clone())
}

/// Returns the word and value of an argument that has no others.
pub(crate) fn only_word(arg: &Value) -> Option<(Key, Value)> {
    let arg = arg.as_dict()?.read();
    let (word, value) = arg.first().filter(|_| arg.len() == 1)?;
    Some((word.clone(), value.clone()))
}

/// Tells whether the word of an argument is the given one.
pub(crate) fn has_word(arg: &Value, word: &str) -> bool {
    word_of(arg).is_some_and(|own| own.as_str() == Some(word))
}

#[cfg(test)]
mod tests {
    use halite_value::{json, yaml};

    use super::*;

    /// Reads an SLS and returns its ids as they are shown, with the problems.
    fn read(sls: &str) -> (String, Vec<String>) {
        let Ok(Value::Dict(rendered)) = yaml::load_str(sls) else { panic!("not a dict: {sls}") };
        let mut bodies = Bodies::new();
        let (read, problems) = Sls::read(&rendered, ("web", "base"), &mut bodies);
        let ids = read.ids.iter().filter_map(|(id, entry)| match entry {
            Entry::Body(body) => Some((id.clone(), Value::Dict(bodies[*body].to_dict()))),
            _ => None,
        });
        let shown = json::to_string(&Value::Dict(ids.collect())).expect("JSON");
        let shown = shown.replace(r#""__sls__": "web", "__env__": "base""#, "*");
        (shown, problems.into_iter().map(|problem| problem.text).collect())
    }

    #[track_caller]
    fn check(sls: &str, shown: &str) {
        assert_eq!(read(sls), (shown.to_owned(), Vec::new()));
    }

    #[test]
    fn states_are_spelt_out() {
        check("a: {file.absent: [{name: x}]}", r#"{"a": {"file": [{"name": "x"}, "absent"], *}}"#);
        check("a: file.absent", r#"{"a": {*, "file": ["absent"]}}"#);
        // Those already in the long form come first.
        check(
            "a: {pkg.installed: [], file: [absent]}",
            r#"{"a": {"file": ["absent"], "pkg": ["installed"], *}}"#,
        );
        check("a: {file.x.y: []}", r#"{"a": {"file": ["x"], *}}"#);
    }

    #[test]
    fn an_alias_shares() {
        let nop = r#"{"test": ["nop"], *}"#;
        check("a: &x {test.nop: []}\nb: *x", &format!(r#"{{"a": {nop}, "b": {nop}}}"#));
        let twice = r#"{"test": ["nop", "nop"], *}"#;
        check(
            "a: {test.nop: &x []}\nb: {test.nop: *x}",
            &format!(r#"{{"a": {twice}, "b": {twice}}}"#),
        );
    }

    #[test]
    fn misfits_are_told() {
        let (_, problems) =
            read("include: a\nextend: [b]\nexclude: c\nd: 3\ne: {file.a: [], file.b: []}\nf: g.h");
        let told: Vec<&str> =
            problems.iter().map(|text| text.split_whitespace().next().unwrap_or("")).collect();
        assert_eq!(told, ["Include", "Extension", "Exclude", "ID", "ID", "ID"]);
    }
}
