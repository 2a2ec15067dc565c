//! Kinds of users' modules that nobody calls by name: matchers, tops, auth, engines, `mod_aggregate`.
//!
//! Each is called by Salt itself at its own moment and in its own way; what they have in common is the
//! way there, [`Python`].

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use halite_bridge::{Callbacks, Session};
use halite_spec::{Call, Cx, Result};
use halite_target::TargetType;
use halite_value::{Dict, Value, entries};

use crate::{
    python::{Back, Found, Python},
    registry,
};

/// The letter before `@` in a compound target, and the matcher it calls.
const LETTERS: [(char, &str); 9] = [
    ('G', "grain"),
    ('P', "grain_pcre"),
    ('I', "pillar"),
    ('J', "pillar_pcre"),
    ('L', "list"),
    ('N', "nodegroup"),
    ('S', "ipcidr"),
    ('E', "pcre"),
    ('R', "range"),
];
/// A glob that means every minion, and one that means none: no id has such characters.
const ALL: &str = "*";
const NONE: &str = "!/!";
/// An engine that ends is started again: at first soon, later less often.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How often a waiting engine looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);

impl Python {
    /// Tells whether users have matchers of their own.
    pub(crate) fn has_matchers(&self) -> bool {
        self.bridge().has_files("matchers")
    }

    /// Returns the names of users' matchers: `color` for `_matchers/color_match.py`.
    fn matchers(&self, cx: &Cx) -> BTreeSet<String> {
        if !self.bridge().has_files("matchers") {
            return BTreeSet::new();
        }
        self.remember(cx);
        let listing = self.names("matchers");
        let names = listing.iter().flat_map(|listing| &listing.functions);
        names.filter_map(|name| name.strip_suffix("_match.match")).map(str::to_owned).collect()
    }

    /// Asks a user's matcher, if there is one for that kind of target. One that fails matches
    /// nothing.
    pub(crate) fn matches(
        &self,
        cx: &Cx,
        kind: &str,
        target: &Value,
        delimiter: Option<&str>,
    ) -> Option<bool> {
        let own = self.matchers(cx);
        if own.contains(kind) {
            return Some(self.ask_matcher(cx, kind, target, delimiter));
        }
        let Value::Str(text) = target else { return None };
        // A compound target asks the matchers of its parts.
        if kind != "compound" || own.is_empty() {
            return None;
        }
        let replaced = self.replaced(cx, &own, text)?;
        let answer = crate::matching::matches(cx, &replaced, TargetType::Compound.name());
        Some(answer.unwrap_or_else(|error| {
            tracing::error!("the target {text} cannot be understood: {error}");
            false
        }))
    }

    /// A compound target with the answers of users' matchers in place of what they were asked.
    fn replaced(&self, cx: &Cx, own: &BTreeSet<String>, text: &str) -> Option<String> {
        let mut is_changed = false;
        let words: Vec<String> = text
            .split_whitespace()
            .map(|word| {
                let Some((kind, delimiter, rest)) = part(word) else { return word.to_owned() };
                if !own.contains(kind) {
                    return word.to_owned();
                }
                is_changed = true;
                let meant = self.ask_matcher(cx, kind, &Value::str(rest), delimiter);
                if meant { ALL.to_owned() } else { NONE.to_owned() }
            })
            .collect();
        is_changed.then(|| words.join(" "))
    }

    fn ask_matcher(&self, cx: &Cx, kind: &str, target: &Value, delimiter: Option<&str>) -> bool {
        let args = vec![kind.into(), target.clone(), delimiter.map(Value::str).unwrap_or_default()];
        match self.ask(cx, &format!("the matcher {kind}"), "matches", args) {
            Ok(answer) => answer.truthy(),
            Err(error) => {
                tracing::error!("the matcher {kind} failed for {target}: {error}");
                false
            }
        }
    }

    /// Returns what `master_tops` modules of users and packages give a minion with these options.
    pub fn tops(&self, cx: &Cx, names: &[String], opts: &Dict) -> Dict {
        let grains = opts.get("grains").unwrap_or_else(Value::dict);
        let id = opts.get("id").unwrap_or_default();
        let all = Dict::new();
        for name in names {
            let function = format!("{name}.top");
            let there = match self.find(cx, "tops", &function) {
                Found::Function => true,
                Found::Missing(reason) => {
                    tracing::error!("master_tops: {name} is not available: {reason}");
                    false
                }
                Found::Nothing => self.package_has(cx, "tops", &function),
            };
            if !there {
                continue;
            }
            let args = vec![name.as_str().into(), opts.into(), grains.clone()];
            match self.ask(cx, &function, "top", args) {
                Ok(Value::Dict(given)) => halite_target::top::add_master_tops(&all, &given, false),
                Ok(_) => {}
                Err(error) => {
                    tracing::error!("Top function {function} failed for minion {id}: {error}");
                }
            }
        }
        all
    }

    /// Calls `auth`, `groups` or `acl` of an authentication module; null if it has none.
    pub fn authenticate(&self, cx: &Cx, system: &str, what: &str, fields: &Dict) -> Result<Value> {
        let args = vec![system.into(), what.into(), fields.into()];
        self.ask(cx, &format!("{system}.{what}"), "authenticate", args)
    }

    /// Lets a user's state module join chunks; `None` if it cannot. The module may change the others.
    pub(crate) fn aggregate(
        &self,
        cx: &Cx,
        module: &str,
        low: &Dict,
        group: &[Dict],
        running: &Dict,
    ) -> Option<Dict> {
        let own = group.iter().position(|chunk| chunk.is_same(low))?;
        let chunks = Value::list(group.iter().cloned().map(Value::from).collect::<Vec<_>>());
        let args = vec![module.into(), own.into(), chunks, running.into()];
        let answer = match self.ask(cx, &format!("{module}.mod_aggregate"), "aggregate", args) {
            Ok(answer) => answer.items_of_sequence().unwrap_or_default(),
            Err(error) => {
                tracing::error!("Failed to execute aggregate for state {module}: {error}");
                return None;
            }
        };
        let changed = answer.get(1).and_then(Value::items_of_sequence).unwrap_or_default();
        for (place, (chunk, changed)) in group.iter().zip(changed).enumerate() {
            if let (true, Value::Dict(changed)) = (place != own, changed) {
                chunk.update(&changed);
            }
        }
        answer.first()?.as_dict().cloned()
    }
}

/// `ext_nodes`: a command that is given the minion's id and prints `classes` and `environment`.
fn external_nodes(cx: &Cx, command: &str, id: &str) -> Result<Dict> {
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { return Ok(Dict::new()) };
    let command = halite_spec::host::Command::new(program).args(words).arg(id);
    let output = cx.host.run(&command.query().timeout(Duration::from_secs(60)))?;
    let data = halite_value::yaml::load_str(&output.stdout_text())
        .map_err(|error| halite_spec::Error::failed(error.to_string()))?;
    let environment = data.get("environment").filter(Value::truthy);
    let environment = environment.map_or_else(|| "base".into(), |name| name.to_str());
    let classes = match data.get("classes") {
        Some(Value::Dict(classes)) => {
            classes.keys().iter().map(|name| Value::from(name.to_str())).collect()
        }
        Some(list) => list.items_of_sequence().unwrap_or_default(),
        None => return Ok(Dict::new()),
    };
    Ok(entries! { environment => Value::from(classes) })
}

impl crate::Engine {
    /// Returns what the programs of `master_tops` give a minion with these options.
    pub(crate) fn given_tops(&self, cx: &Cx, minion_opts: &Dict) -> Dict {
        let Some(Value::Dict(wanted)) = cx.opt("master_tops") else { return Dict::new() };
        let all = Dict::new();
        let mut others = Vec::new();
        for (name, config) in &wanted {
            match name.to_str().as_str() {
                "ext_nodes" => {
                    let id = minion_opts.get("id").unwrap_or_default().to_str();
                    match external_nodes(cx, &config.to_str(), &id) {
                        Ok(given) => halite_target::top::add_master_tops(&all, &given, false),
                        Err(error) => tracing::error!("master_tops: ext_nodes: {error}"),
                    }
                }
                other => others.push(other.to_owned()),
            }
        }
        match &self.python {
            Some(python) if !others.is_empty() => {
                python.remember(cx);
                let given = python.tops(cx, &others, minion_opts);
                halite_target::top::add_master_tops(&all, &given, false);
            }
            _ => {}
        }
        all
    }
}

/// Matcher, delimiter and text of a part of a compound target; `None` for its operators.
fn part(word: &str) -> Option<(&'static str, Option<&str>, &str)> {
    if ["and", "or", "not", "(", ")"].contains(&word) {
        return None;
    }
    if let Some((head, rest)) = word.split_once('@')
        && let Some(letter) = head.chars().next()
        && let Some((_, kind)) = LETTERS.iter().find(|(own, _)| *own == letter)
        && head.chars().count() <= 2
    {
        return Some((kind, head.get(1..).filter(|text| !text.is_empty()), rest));
    }
    Some(("glob", None, word))
}

/// A Python engine, kept running in an interpreter of its own.
pub struct PythonEngine {
    pub name: String,
    /// What the file is called; several engines may come from one.
    pub module: String,
    pub config: Dict,
}

impl PythonEngine {
    /// Runs the engine until it is no longer wanted: it is started again whenever it ends, and when
    /// its file arrives later. `cx` gives the surroundings of each call it makes. Blocks.
    pub fn keep(&self, cx: &dyn Fn() -> Option<Cx>, is_wanted: &(dyn Fn() -> bool + Sync)) {
        let (mut pause, longest) = AGAIN;
        let mut told = String::new();
        while is_wanted() {
            let begun = Instant::now();
            let Some(surroundings) = cx() else {
                std::thread::sleep(LOOK);
                continue;
            };
            match self.run(&surroundings, cx, is_wanted) {
                Ok(()) if !is_wanted() => return,
                Ok(()) => tracing::warn!("The engine {} ended; it is started again", self.name),
                // The same reason is not told again and again.
                Err(error) if error == told => {}
                Err(error) => {
                    tracing::error!("The engine {} could not run: {error}", self.name);
                    told = error;
                }
            }
            pause = match begun.elapsed() > longest {
                true => AGAIN.0,
                false => (pause * 2).min(longest),
            };
            let until = Instant::now() + pause;
            while Instant::now() < until && is_wanted() {
                std::thread::sleep(LOOK);
            }
        }
    }

    fn run(
        &self,
        cx: &Cx,
        fresh: &dyn Fn() -> Option<Cx>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> std::result::Result<(), String> {
        // An engine runs for as long as it likes.
        let opts = cx.opts.shallow_copy();
        let own = opts.get("halite").and_then(|own| own.as_dict().map(Dict::shallow_copy));
        let own = own.unwrap_or_default();
        own.remove("python_timeout");
        opts.insert("halite", own);
        let python = Python::with_native(&opts, registry::natives());
        python.remember(cx);
        let function = format!("{}.start", self.module);
        let there = match python.find(cx, "engines", &function) {
            Found::Function => true,
            Found::Missing(reason) if !reason.is_empty() => return Err(reason),
            Found::Missing(_) => false,
            Found::Nothing => python.package_has(cx, "engines", &function),
        };
        if !there {
            return Err(format!("'{function}' is not available"));
        }
        tracing::info!("Starting Engine({})", self.name);
        let back = EngineBack { fresh, is_wanted };
        let saltenv = cx.saltenv();
        let session = Session {
            opts: &opts,
            grains: &cx.grains,
            pillar: &cx.pillar,
            low: &Dict::new(),
            jid: "",
            saltenv: &saltenv,
            extra: Dict::new(),
            callbacks: &back,
            limit: None,
        };
        let args = vec![self.module.as_str().into(), (&self.config).into()];
        let what = format!("the engine {}", self.name);
        let ended = python.bridge().ask(&session, &what, "engine", args);
        python.bridge().stop();
        match ended {
            Ok(_) => Ok(()),
            Err(_) if !is_wanted() => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Answers an engine: each call in the surroundings of its moment, for masters come and go.
struct EngineBack<'a> {
    fresh: &'a dyn Fn() -> Option<Cx>,
    is_wanted: &'a (dyn Fn() -> bool + Sync),
}

impl EngineBack<'_> {
    fn cx(&self) -> Result<Cx> {
        (self.fresh)().ok_or_else(|| halite_spec::Error::failed("no master is connected"))
    }
}

impl Callbacks for EngineBack<'_> {
    fn call(&self, kind: &str, name: &str, call: Call) -> Result<Value> {
        Back::of(&self.cx()?).call(kind, name, call)
    }

    fn describe(&self, kind: &str, name: &str) -> Option<Value> {
        Back::of(&self.cx().ok()?).describe(kind, name)
    }

    fn fire(&self, tag: &str, data: Value) -> Result<bool> {
        Back::of(&self.cx()?).fire(tag, data)
    }

    fn cancelled(&self) -> bool {
        !(self.is_wanted)()
    }
}

/// Reads the option `engines`: name and configuration of each.
pub fn configured_engines(option: &Value) -> Vec<(String, Dict)> {
    let items = match option {
        Value::Dict(_) => vec![option.clone()],
        Value::Str(_) => vec![option.clone()],
        other => other.items_of_sequence().unwrap_or_default(),
    };
    let mut found = Vec::new();
    for item in items {
        let Value::Dict(map) = &item else {
            found.push((item.to_string(), Dict::new()));
            continue;
        };
        for (name, config) in map {
            let all = Dict::new();
            match config {
                Value::Dict(config) => all.update(&config),
                // A list of maps is one map.
                list => {
                    for part in list.items_of_sequence().unwrap_or_default() {
                        part.as_dict().into_iter().for_each(|part| all.update(part));
                    }
                }
            }
            found.push((name.to_string(), all));
        }
    }
    found
}

/// Makes the engine of an entry: `engine_module` names the file if the entry's name does not.
pub fn python_engine(name: &str, config: &Dict) -> PythonEngine {
    let config = config.shallow_copy();
    let module = config.remove("engine_module").map(|module| module.to_str().to_string());
    let module = module.unwrap_or_else(|| name.to_owned());
    PythonEngine { name: name.to_owned(), module, config }
}

/// Keeps an engine on a thread of its own.
pub fn keep_on_thread(
    engine: PythonEngine,
    cx: impl Fn() -> Option<Cx> + Send + 'static,
    is_wanted: impl Fn() -> bool + Send + Sync + 'static,
) -> std::io::Result<()> {
    let name = format!("engine {}", engine.name);
    let work = move || engine.keep(&cx, &is_wanted);
    std::thread::Builder::new().name(name).spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn parts_of_a_compound_target() {
        assert_eq!(part("G@os:x"), Some(("grain", None, "os:x")));
        assert_eq!(part("G|@os|x"), Some(("grain", Some("|"), "os|x")));
        assert_eq!(part("web*"), Some(("glob", None, "web*")));
        assert_eq!(part("and"), None);
        assert_eq!(part("user@host"), Some(("glob", None, "user@host")));
    }

    #[test]
    fn engines_are_configured_in_many_ways() {
        let option = list![
            "plain",
            dict! { "one" => dict! { "a" => 1 }, "two" => Value::Null },
            dict! { "three" => list![dict! { "b" => 2 }, dict! { "engine_module" => "other" }] },
        ];
        let all = configured_engines(&option);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["plain", "one", "two", "three"]);
        let engine = python_engine(&all[3].0, &all[3].1);
        assert_eq!((engine.name.as_str(), engine.module.as_str()), ("three", "other"));
        assert_eq!(Value::from(engine.config), dict! { "b" => 2 });
    }
}
