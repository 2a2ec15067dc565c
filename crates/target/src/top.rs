//! Top files: what each environment's `top.sls` gives a minion.
//!
//! Pure functions over rendered top files, for states and for pillar. The two differ: states know
//! merging strategies over environments ([`merge_states`]) and may name SLS of other environments
//! or filter further ([`state_matches`]); pillar merges all top files and knows `order` and
//! `ignore_missing` ([`merge_pillar`]). Who renders the files, and from where, is the caller's
//! business.
//!
//! A top file is `{environment: {target: [sls, {match: …}, …]}}`; its `include` names further top
//! files ([`take_includes`]).

use halite_value::{Dict, Key, Place, SmolStr, Value};

use crate::{Error, Expr, Kind, Minion, Options, TargetType};

/// The rendered top files, by the environment they were found in, in order. A missing file is an
/// empty list.
pub type Tops = Vec<(SmolStr, Vec<Value>)>;

/// How the top files of several environments become one: `top_file_merging_strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// `base` decides about every environment it names; others only speak for themselves.
    #[default]
    Merge,
    /// Each environment's own file decides about it, or that of `default_top` if it has none.
    Same,
    /// Everything counts.
    MergeAll,
}

impl Strategy {
    /// Returns the strategy of a name; Salt falls back to `merge` (and says so in its log) for
    /// names it does not know.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "merge" => Some(Self::Merge),
            "same" => Some(Self::Same),
            "merge_all" => Some(Self::MergeAll),
            _ => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TopError {
    #[error("Unable to render top file. No targets found.")]
    NoTargets,
    #[error("Top data was not formed as a dict")]
    NotDict,
    #[error(
        "top_file_merging_strategy set to 'same', but no default_top configuration option was set"
    )]
    NoDefaultTop,
    #[error(transparent)]
    Target(#[from] Error),
}

/// Returns the environments whose top files count for states, in order: `base` and those of
/// `file_roots`, then what the file server has besides; or `env_order`, if it is set.
pub fn environments(env_order: &[String], file_roots: &[String], served: &[String]) -> Vec<String> {
    let mut envs: Vec<String> = Vec::new();
    let mut add = |env: &String| {
        if !envs.contains(env) {
            envs.push(env.clone());
        }
    };
    if env_order.is_empty() {
        let base = "base".to_owned();
        [&base].into_iter().chain(file_roots).chain(served).for_each(&mut add);
    } else {
        let is_served = |env: &&String| served.is_empty() || served.contains(env);
        env_order.iter().filter(is_served).for_each(&mut add);
    }
    envs
}

/// Removes the `include` of a top file and returns what it names.
pub fn take_includes(top: &Value) -> Vec<SmolStr> {
    let include = top.as_dict().and_then(|top| top.remove("include"));
    let items = include.and_then(|include| include.items_of_sequence()).unwrap_or_default();
    items.iter().map(Value::to_str).collect()
}

fn sections(top: &Value) -> Result<Vec<(Key, Value)>, TopError> {
    match top {
        Value::Dict(dict) => {
            Ok(dict.entries().into_iter().filter(|(env, _)| **env != *"include").collect())
        }
        Value::Null => Ok(Vec::new()),
        _ => Err(TopError::NotDict),
    }
}

/// Returns the targets of a section of a top file.
fn targets(section: &Value) -> Result<Vec<(Key, Value)>, TopError> {
    match section {
        Value::Dict(dict) => Ok(dict.entries()),
        Value::List(list) if list.is_empty() => Ok(Vec::new()),
        Value::Str(text) if text.is_empty() => Ok(Vec::new()),
        _ => Err(TopError::NoTargets),
    }
}

fn section_of(top: &Dict, env: &Key) -> Dict {
    match top.get_or_insert_with(env, Value::dict) {
        Value::Dict(dict) => dict,
        _ => Dict::new(),
    }
}

/// Lets a merged section know where its targets stand: of several files the first one's.
fn keep_places(top: &Dict, env: &Key, section: &Value) {
    if let (Value::Dict(section), Some(Value::Dict(merged))) = (section, top.get(env)) {
        merged.set_places(section.places().to_vec());
    }
}

fn put_all(top: &Dict, env: &Key, section: &Value) -> Result<(), TopError> {
    for (target, states) in targets(section)? {
        section_of(top, env).insert(target, states);
    }
    keep_places(top, env, section);
    Ok(())
}

/// Merges the top files of states: `{environment: {target: [sls …]}}`.
pub fn merge_states(
    tops: &Tops,
    strategy: Strategy,
    default_top: Option<&str>,
) -> Result<Dict, TopError> {
    let top = Dict::new();
    match strategy {
        Strategy::Merge => merge(tops, &top)?,
        Strategy::Same => same(tops, default_top, &top)?,
        Strategy::MergeAll => merge_all(tops, &top)?,
    }
    Ok(top)
}

fn merge(tops: &Tops, top: &Dict) -> Result<(), TopError> {
    let is_base = |(env, _): &&(SmolStr, Vec<Value>)| env == "base";
    for (_, files) in tops.iter().filter(is_base) {
        for file in files {
            for (env, section) in sections(file)? {
                put_all(top, &env, &section)?;
            }
        }
    }
    for (own, files) in tops.iter().filter(|entry| !is_base(entry)) {
        for file in files {
            for (env, section) in sections(file)? {
                if *env == *own.as_str() && !top.contains(&env) {
                    put_all(top, &env, &section)?;
                }
            }
        }
    }
    Ok(())
}

fn is_empty(files: &[Value]) -> bool {
    files.iter().all(|file| file.is_null() || file.as_dict().is_some_and(Dict::is_empty))
}

fn same(tops: &Tops, default_top: Option<&str>, top: &Dict) -> Result<(), TopError> {
    for (own, files) in tops {
        let fallback = || tops.iter().find(|(env, _)| Some(env.as_str()) == default_top);
        let files = match fallback() {
            Some((_, fallback)) if is_empty(files) => fallback,
            _ => files,
        };
        for file in files {
            for (env, section) in sections(file)? {
                if *env == *own.as_str() {
                    put_all(top, &env, &section)?;
                }
            }
        }
    }
    Ok(())
}

fn merge_all(tops: &Tops, top: &Dict) -> Result<(), TopError> {
    for file in tops.iter().flat_map(|(_, files)| files) {
        for (env, section) in sections(file)? {
            for (target, states) in targets(&section)? {
                let merged_section = section_of(top, &env);
                let merged = match merged_section.get(&target) {
                    Some(before) => joined(&before, &states),
                    None => states,
                };
                merged_section.insert(target, merged);
            }
            keep_places(top, &env, &section);
        }
    }
    Ok(())
}

/// Joins the entries of one target in two files: one matcher (the later), then every SLS once.
fn joined(before: &Value, after: &Value) -> Value {
    let (before, after) = (entries(before), entries(after));
    let count = before.len();
    let all: Vec<Value> = before.into_iter().chain(after).collect();
    let matcher = all.iter().rfind(|entry| entry.as_dict().is_some()).cloned();
    let mut merged: Vec<Value> = matcher.into_iter().collect();
    for (at, sls) in all.into_iter().enumerate().filter(|(_, entry)| entry.as_str().is_some()) {
        // What the first file names twice stays so.
        if at < count || !merged.contains(&sls) {
            merged.push(sls);
        }
    }
    merged.into()
}

/// Returns the entries of a target: a list, or one text.
fn entries(data: &Value) -> Vec<Value> {
    match data {
        Value::Str(_) => vec![data.clone()],
        Value::Dict(dict) => dict.keys().into_iter().map(Key::into_value).collect(),
        other => other.items_of_sequence().unwrap_or_default(),
    }
}

/// Returns what is odd about one top file as its author wrote it, each with its place: for logs,
/// beside what users are told in Salt's words. A single SLS may do without its list in pillar.
pub fn oddities(top: &Value, file: &str, is_pillar: bool) -> Vec<String> {
    let beginning = Place::new(file, 1, 0);
    let told = |text: String, place: Option<&Place>| {
        format!("{text}\n  --> {}", place.unwrap_or(&beginning))
    };
    const SHAPE: &str = "a top file names environments, below them targets, and below those a list \
                         of SLS";
    let dict = match top {
        Value::Dict(dict) => dict,
        Value::Null => return Vec::new(),
        other => {
            let text = format!("{SHAPE}; this one is no dict but a {}", other.type_name());
            return vec![told(text, other.as_list().and_then(|list| list.place_of(0)))];
        }
    };
    let mut odd = Vec::new();
    for (env, section) in dict.into_iter().filter(|(env, _)| **env != *"include") {
        if !section.truthy() {
            continue;
        }
        let Value::Dict(targets) = &section else {
            let text = format!(
                "{SHAPE}; `{env}` stands where an environment is named, and has no targets"
            );
            odd.push(told(text, dict.place_of(&env)));
            continue;
        };
        for (target, entries) in targets {
            let may_stand = is_pillar && entries.as_str().is_some();
            if !may_stand && entries.items_of_sequence().is_none() {
                let text = format!("the SLS of target `{target}` are not a list: `- name` each");
                odd.push(told(text, targets.place_of(&target)));
            }
        }
    }
    odd
}

/// Returns every SLS that a top file names, with its environment and place.
pub fn named(top: &Value) -> Vec<(String, String, Place)> {
    let mut all = Vec::new();
    let sections = top.as_dict().map(Dict::entries).unwrap_or_default();
    for (env, section) in sections {
        let targets = section.as_dict().map(Dict::entries).unwrap_or_default();
        for list in targets.iter().filter_map(|(_, entries)| entries.as_list()) {
            for (index, sls) in list.into_iter().enumerate() {
                if let (Value::Str(sls), Some(place)) = (sls, list.place_of(index)) {
                    all.push((env.to_string(), sls.to_string(), place.clone()));
                }
            }
        }
    }
    all
}

/// Returns where a target of a merged top stands that cannot be understood: its line, or that of
/// its kind of match (`- match: grain`) if nobody knows that one.
pub fn place_of_mistake(merged: &Dict, target: &Value, error: &Error) -> Option<Place> {
    let key = Key::try_from(target.clone()).ok()?;
    let is_kind = matches!(error.kind, Kind::Engine(_)) && target.to_str() != error.expr;
    if !is_kind {
        let own = |section: Value| section.as_dict()?.place_of(&key).cloned();
        return merged.values().into_iter().find_map(own);
    }
    let lines = merged.values().into_iter().filter_map(|section| section.as_dict()?.get(&key));
    lines
        .flat_map(|entries| entries.items_of_sequence().unwrap_or_default())
        .find_map(|entry| entry.as_dict()?.place_of("match").cloned())
}

/// Returns what is malformed in the merged top of states, as users are told it.
pub fn verify(top: &Value) -> Vec<String> {
    let Value::Dict(top) = top else { return vec![TopError::NotDict.to_string()] };
    let envs = top.entries().into_iter().filter(|(env, _)| env.as_str() != Some("include"));
    envs.flat_map(|(env, matches)| {
        let mut errors = wrong_env(&env);
        match &matches {
            Value::Dict(matches) => {
                let targets = matches.entries();
                errors.extend(targets.iter().flat_map(|(tgt, own)| wrong_target(&env, tgt, own)));
            }
            _ => errors.push(format!(
                "The top file matches for saltenv {env} are not formatted as a dict"
            )),
        }
        errors
    })
    .collect()
}

fn wrong_env(env: &Key) -> Vec<String> {
    match env.as_str() {
        None => vec![format!("Environment {env} in top file is not formed as a string")],
        Some("") => vec!["Empty saltenv statement in top file".into()],
        Some(_) => Vec::new(),
    }
}

fn wrong_target(env: &Key, target: &Key, entries: &Value) -> Vec<String> {
    match entries {
        Value::List(entries) => {
            entries.into_iter().flat_map(|entry| wrong_entry(env, &entry)).collect()
        }
        other => vec![format!(
            "Malformed topfile: state declarations for matcher {} in saltenv {} are not formed as \
             a list (got {})",
            target.repr(),
            env.repr(),
            other.type_name()
        )],
    }
}

fn wrong_entry(env: &Key, entry: &Value) -> Vec<String> {
    match entry {
        Value::Dict(options) => {
            let empty = options.values().into_iter().filter(|value| !value.truthy());
            empty
                .map(|value| {
                    format!(
                        "Improperly formatted top file matcher in saltenv {}: {value} file",
                        entry.repr()
                    )
                })
                .collect()
        }
        Value::Str(sls) if sls.is_empty() => {
            vec![format!("Environment {env} contains an empty sls index")]
        }
        _ => Vec::new(),
    }
}

/// Tells whether a line of a top file means this minion. The kind of match is named in its
/// entries (`- match: grain`); without that it is `compound`.
pub fn confirm(
    target: &Value,
    entries: &[Value],
    minion: &Minion<'_>,
    nodegroups: Option<&Dict>,
) -> Result<bool, Error> {
    let named = entries.iter().rev().find_map(|entry| entry.get("match"));
    let kind: TargetType = match named {
        Some(name) => name.to_str().parse()?,
        None => TargetType::Compound,
    };
    // A key such as `5` is a number to YAML; it can only have been meant as an id.
    let target = match target {
        Value::Str(_) | Value::List(_) | Value::Tuple(_) => target.clone(),
        other => Value::Str(other.to_str()),
    };
    let expr = Expr::parse(&target, kind, &Options { nodegroups, delimiter: None })?;
    Ok(expr.matches(minion))
}

/// Says whether a minion is meant, given the kind of match and the target; `None`: it does not know.
pub type Matcher<'a> = dyn Fn(&str, &Value) -> Option<bool> + 'a;

/// What a top file is matched for.
pub struct Matching<'a> {
    /// Only this environment, if one is set.
    pub env: Option<&'a str>,
    pub minion: Minion<'a>,
    pub nodegroups: Option<&'a Dict>,
    /// Users' own matchers: are asked first, with the kind of match and the target.
    pub custom: Option<&'a Matcher<'a>>,
    /// Is told of every target that cannot be understood; such a line matches nothing.
    pub on_error: &'a mut dyn FnMut(&Value, Error),
}

impl Matching<'_> {
    fn confirms(&mut self, target: &Value, entries: &[Value]) -> bool {
        if let Some(custom) = self.custom {
            let named = entries.iter().rev().find_map(|entry| entry.get("match"));
            let kind =
                named.map_or_else(|| TargetType::Compound.name().into(), |name| name.to_str());
            if let Some(answer) = custom(&kind, target) {
                return answer;
            }
        }
        confirm(target, entries, &self.minion, self.nodegroups).unwrap_or_else(|error| {
            (self.on_error)(target, error);
            false
        })
    }
}

/// Returns the SLS of every environment that the merged top gives a minion:
/// `{environment: [sls …]}`. An entry `{other_env: sls}` counts if the file server has that
/// environment; `subfilter` holds further lines for those who matched.
pub fn state_matches(top: &Dict, envs: &[String], matching: &mut Matching<'_>) -> Dict {
    let found = Dict::new();
    for (env, section) in top {
        if matching.env.is_some_and(|only| *env != *only) {
            continue;
        }
        for (target, data) in section.as_dict().map(Dict::entries).unwrap_or_default() {
            state_line(&env, &target, &data, envs, matching, &found);
        }
    }
    found
}

fn state_line(
    env: &Key,
    target: &Value,
    data: &Value,
    envs: &[String],
    matching: &mut Matching<'_>,
    found: &Dict,
) {
    let items = entries(data);
    if !matching.confirms(target, &items) {
        return;
    }
    let list_of = |env: &Key| found.get_or_insert_with(env, || Value::from(Vec::<Value>::new()));
    let own = list_of(env);
    for item in &items {
        match item {
            Value::Str(_) => push(&own, item.clone()),
            Value::Dict(options) => {
                if let Some(Value::Dict(further)) = options.get("subfilter") {
                    for (target, data) in &further {
                        state_line(env, &target, &data, envs, matching, found);
                    }
                }
                let other = options.entries().into_iter().rfind(|(key, _)| **key != *"subfilter");
                if let Some((other_env, sls)) = other
                    && envs.iter().any(|env| *other_env == *env.as_str())
                {
                    push(&list_of(&other_env), sls);
                }
            }
            _ => {}
        }
    }
}

fn push(list: &Value, item: Value) {
    if let Value::List(list) = list {
        list.push(item);
    }
}

/// Adds what `master_tops` gives, before or after the top file's own; repeats are dropped.
pub fn add_master_tops(matches: &Dict, master_tops: &Dict, first: bool) {
    for (env, extra) in master_tops {
        let own = matches.get(&env).and_then(|own| own.items_of_sequence()).unwrap_or_default();
        let extra = extra.items_of_sequence().unwrap_or_default();
        let (mut all, second) = if first { (extra, own) } else { (own, extra) };
        let more: Vec<Value> = second.into_iter().filter(|sls| !all.contains(sls)).collect();
        all.extend(more);
        matches.insert(env, Value::from(all));
    }
}

/// The merged top files of pillar.
#[derive(Clone, Debug, Default)]
pub struct PillarTop {
    /// `{environment: {target: [{match: …}, sls …]}}`, the targets in their `order`.
    pub top: Dict,
    /// SLS that may be missing, by environment: `{environment: [sls …]}`.
    pub ignore_missing: Dict,
}

/// Merges the top files of pillar. Later files replace the lines of earlier ones.
pub fn merge_pillar(tops: &Tops) -> Result<PillarTop, TopError> {
    let merged = PillarTop::default();
    let mut orders: Vec<(Key, Key, i64)> = Vec::new();
    for file in tops.iter().flat_map(|(_, files)| files) {
        for (env, section) in sections(file)? {
            for (target, data) in targets(&section)? {
                let line = pillar_line(&data)?;
                orders.retain(|(own_env, own, _)| !(*own_env == env && *own == target));
                orders.push((env.clone(), target.clone(), line.order));
                if line.ignore_missing {
                    let list = merged
                        .ignore_missing
                        .get_or_insert_with(&env, || Value::from(Vec::<Value>::new()));
                    line.states.iter().for_each(|sls| push(&list, sls.clone()));
                }
                let entries: Vec<Value> = line.matches.into_iter().chain(line.states).collect();
                section_of(&merged.top, &env).insert(target, Value::from(entries));
            }
        }
    }
    let order_of = |env: &Key, target: &Key| {
        orders.iter().find(|(e, t, _)| e == env && t == target).map_or(0, |(_, _, order)| *order)
    };
    for (env, section) in &merged.top {
        let mut lines = section.as_dict().map(Dict::entries).unwrap_or_default();
        lines.sort_by_key(|(target, _)| order_of(&env, target));
        merged.top.insert(env, lines.into_iter().collect::<Dict>());
    }
    Ok(merged)
}

#[derive(Default)]
struct PillarLine {
    matches: Vec<Value>,
    states: Vec<Value>,
    order: i64,
    ignore_missing: bool,
}

fn pillar_line(data: &Value) -> Result<PillarLine, TopError> {
    // differs: a single SLS need not be in a list; Salt takes a text apart into letters here.
    if !matches!(data, Value::List(_) | Value::Tuple(_) | Value::Str(_) | Value::Dict(_)) {
        return Err(TopError::NoTargets);
    }
    let mut line = PillarLine::default();
    for entry in entries(data) {
        match &entry {
            Value::Dict(options) => {
                if let Some(order) = options.get("order") {
                    let spelt = |text: &str| text.trim().parse().ok();
                    let number = order.to_int().or_else(|| order.as_str().and_then(spelt));
                    line.order = number.unwrap_or(0);
                }
                line.ignore_missing |=
                    options.get("ignore_missing").is_some_and(|flag| flag.truthy());
                if options.contains("match") {
                    line.matches.push(entry);
                }
            }
            Value::Str(_) if !line.states.contains(&entry) => line.states.push(entry),
            _ => {}
        }
    }
    Ok(line)
}

/// Returns the SLS of every environment that the merged pillar top gives a minion, each once.
pub fn pillar_matches(top: &Dict, matching: &mut Matching<'_>) -> Vec<(SmolStr, Vec<SmolStr>)> {
    let mut found: Vec<(SmolStr, Vec<SmolStr>)> = Vec::new();
    for (env, section) in top {
        if matching.env.is_some_and(|only| *env != *only) {
            continue;
        }
        let mut own: Option<Vec<SmolStr>> = None;
        for (target, data) in section.as_dict().map(Dict::entries).unwrap_or_default() {
            let items = entries(&data);
            if !matching.confirms(&target, &items) {
                continue;
            }
            let own = own.get_or_insert_default();
            for item in items {
                if let Value::Str(sls) = item
                    && !own.contains(&sls)
                {
                    own.push(sls);
                }
            }
        }
        found.extend(own.map(|own| (env.to_str(), own)));
    }
    found
}

#[cfg(test)]
mod tests {
    use halite_value::{
        dict, list,
        yaml::{self, LoadOptions},
    };

    use super::*;

    fn minion(id: &str) -> Minion<'_> {
        Minion { id, ..Minion::default() }
    }

    fn tops() -> Tops {
        let base = dict! {
            "base" => dict! { "*" => list!["core"], "web*" => list!["web", dict! { "dev" => "x" }] },
            "dev" => dict! { "*" => list!["from_base"] },
        };
        let dev = dict! {
            "dev" => dict! { "*" => list!["from_dev"] },
            "base" => dict! { "*" => list!["stray"] },
        };
        let qa = dict! { "qa" => dict! { "G@os:X" => list!["qa"], "db1" => list!["db"] } };
        vec![("base".into(), vec![base]), ("dev".into(), vec![dev]), ("qa".into(), vec![qa])]
    }

    fn check(strategy: Strategy, expected: &Value) {
        let merged = merge_states(&tops(), strategy, Some("base")).expect("well formed");
        assert_eq!(&Value::from(merged), expected);
    }

    #[test]
    fn strategies() {
        let web = list!["web", dict! { "dev" => "x" }];
        let qa = dict! { "G@os:X" => list!["qa"], "db1" => list!["db"] };
        check(
            Strategy::Merge,
            &dict! {
                "base" => dict! { "*" => list!["core"], "web*" => web.clone() },
                "dev" => dict! { "*" => list!["from_base"] }, "qa" => qa.clone(),
            },
        );
        check(
            Strategy::Same,
            &dict! {
                "base" => dict! { "*" => list!["core"], "web*" => web.clone() },
                "dev" => dict! { "*" => list!["from_dev"] }, "qa" => qa.clone(),
            },
        );
        check(
            Strategy::MergeAll,
            &dict! {
                "base" => dict! { "*" => list!["core", "stray"], "web*" => web },
                "dev" => dict! { "*" => list!["from_base", "from_dev"] }, "qa" => qa,
            },
        );
    }

    #[test]
    fn an_environment_without_a_file_asks_the_default_top() {
        let mut tops = tops();
        tops[1].1 = vec![Value::dict()];
        let merged = merge_states(&tops, Strategy::Same, Some("base")).expect("well formed");
        assert_eq!(merged.get("dev"), Some(dict! { "*" => list!["from_base"] }));
    }

    #[test]
    fn what_is_odd_has_its_place() {
        let odd = |text: &str| {
            let options = LoadOptions { name: "top.sls", places: true, ..LoadOptions::default() };
            let top = yaml::load(text, &options).expect("YAML");
            oddities(&top, "top.sls", false).join("\n")
        };
        assert_eq!(odd("base:\n  '*':\n    - web\n  'x': []\n"), "");
        assert!(odd("- base\n").ends_with("no dict but a list\n  --> top.sls:1:3"));
        assert!(odd("base:\n  '*': web\n").ends_with("  --> top.sls:2:3"));
        assert!(odd("include: [a]\n'*':\n  - web\n").ends_with("  --> top.sls:2:1"));
    }

    #[test]
    fn a_minion_gets_its_lines() {
        let top = merge_states(&tops(), Strategy::Merge, None).expect("well formed");
        let envs = ["base".to_owned(), "dev".to_owned()];
        let mut on_error = |target: &Value, error: Error| panic!("{target}: {error}");
        let mut matching = Matching {
            custom: None,
            env: None,
            minion: minion("web1"),
            nodegroups: None,
            on_error: &mut on_error,
        };
        let found = state_matches(&top, &envs, &mut matching);
        let expected = dict! { "base" => list!["core", "web"], "dev" => list!["x", "from_base"] };
        assert_eq!(Value::from(&found), expected);
        let master = dict! { "base" => list!["web", "more"], "new" => list!["n"] };
        add_master_tops(&found, master.as_dict().expect("dict"), false);
        assert_eq!(found.get("base"), Some(list!["core", "web", "more"]));
        add_master_tops(&found, master.as_dict().expect("dict"), true);
        assert_eq!(found.get("base"), Some(list!["web", "more", "core"]));
    }

    #[test]
    fn pillar_lines_are_ordered_and_may_be_missing() {
        let file = dict! { "base" => dict! {
            "*" => list!["late", dict! { "order" => "5" }],
            "web1" => list!["early", "early", dict! { "ignore_missing" => true }],
            "os:X" => list![dict! { "match" => "grain" }, "never"],
        } };
        let merged = merge_pillar(&vec![("base".into(), vec![file])]).expect("well formed");
        let mut on_error = |_: &Value, _: Error| {};
        let mut matching = Matching {
            custom: None,
            env: None,
            minion: minion("web1"),
            nodegroups: None,
            on_error: &mut on_error,
        };
        let found = pillar_matches(&merged.top, &mut matching);
        assert_eq!(found, [("base".into(), vec!["early".into(), "late".into()])]);
        assert_eq!(Value::from(&merged.ignore_missing), dict! { "base" => list!["early"] });
    }

    #[test]
    fn malformed_tops_are_told_in_salts_words() {
        let top = dict! { "base" => dict! { "*" => "x", "a" => list!["", dict! { "match" => "" }] },
        "dev" => 5 };
        assert_eq!(
            verify(&top),
            [
                "Malformed topfile: state declarations for matcher '*' in saltenv 'base' are not \
                 formed as a list (got str)",
                "Environment base contains an empty sls index",
                "Improperly formatted top file matcher in saltenv {'match': ''}:  file",
                "The top file matches for saltenv dev are not formatted as a dict",
            ]
        );
        let none = vec![("base".into(), vec![dict! { "base" => () }])];
        let error = merge_states(&none, Strategy::Merge, None).expect_err("no targets");
        assert_eq!(error.to_string(), "Unable to render top file. No targets found.");
    }
}
