//! The form of high data: what an author may have got wrong before any state is looked at.
//!
//! A check is a function from a thing to problems, and a list names those for each thing: ids,
//! states, arguments. They are independent of each other, so an author sees all at once. They run
//! after the `extend`s, which may mend what they would report.

use std::collections::HashSet;

use halite_value::{Dict, Key, List, Value, suggest};

use crate::{
    High, Places, Problem,
    keywords::REQUISITE_WORDS,
    parse::{Arguments, Body, Entry, only_word},
};

/// Checks every id.
pub(crate) fn all(high: &High, places: &Places) -> Vec<Problem> {
    let entries = high.ids.iter();
    entries.flat_map(|(id, entry)| of_id(high, id, entry, places)).collect()
}

fn of_id(high: &High, id: &Key, entry: &Entry, places: &Places) -> Vec<Problem> {
    let Some(name) = id.as_str() else {
        let body = high.body(id);
        let sls = body.and_then(|body| body.origin.sls.as_ref()?.as_str()).unwrap_or_default();
        let text = format!(
            "ID '{id}' in SLS '{sls}' is not formed as a string, but is type {}. It may need to be \
             quoted.",
            id.type_name()
        );
        return vec![Problem::new(text).at(places.of_id(&id.to_str()))];
    };
    if name.starts_with("__") {
        return Vec::new();
    }
    match (entry, high.body(id)) {
        (Entry::Misfit(other), _) => {
            let text = format!("The type {name} in {other} is not formatted as a dictionary");
            vec![Problem::new(text).at(places.of_id(name))]
        }
        (_, Some(body)) => of_body(name, body, places),
        _ => Vec::new(),
    }
}

fn of_body(id: &str, body: &Body, places: &Places) -> Vec<Problem> {
    let sls = body.origin.sls_text();
    let mut problems = Vec::new();
    for (state, args) in &body.states {
        let state = state.to_str();
        if state.starts_with("__") {
            continue;
        }
        let site = Site { id, state: &state, sls: &sls, places };
        let Arguments::List(args) = args else {
            problems.push(not_a_list(&site, args));
            continue;
        };
        for arg in args {
            problems.extend(OF_ARGUMENTS.iter().flat_map(|check| check(&site, &arg)));
        }
        problems.extend(OF_STATES.iter().flat_map(|check| check(&site, args)));
    }
    problems
}

/// Returns what is well-formed and yet hardly meant: Salt passes over it in silence, so that the
/// run goes on, and we say it in the log.
pub(crate) fn doubts(high: &High, places: &Places) -> Vec<Problem> {
    let mut doubts = Vec::new();
    for (id, _) in &high.ids {
        let (Some(id_text), Some(body)) = (id.as_str(), high.body(id)) else { continue };
        let sls = body.origin.sls_text();
        for (state, args) in &body.states {
            let Arguments::List(args) = args else { continue };
            let state = state.to_str();
            let site = Site { id: id_text, state: &state, sls: &sls, places };
            doubts.extend(DOUBTFUL.iter().flat_map(|check| check(&site, args)));
        }
    }
    doubts
}

/// One state of an id, for messages.
struct Site<'a> {
    id: &'a str,
    state: &'a str,
    sls: &'a str,
    places: &'a Places,
}

impl Site<'_> {
    fn module(&self) -> &str {
        self.state.split('.').next().unwrap_or(self.state)
    }

    fn problem(&self, text: String) -> Problem {
        Problem::new(text).at(self.places.of_state(self.id, self.module()))
    }

    fn problem_at(&self, word: &str, text: String) -> Problem {
        Problem::new(text).at(self.places.of_arg(self.id, self.module(), word))
    }
}

type Check<T> = fn(&Site<'_>, &T) -> Vec<Problem>;

const OF_ARGUMENTS: [Check<Value>; 5] = [
    function_without_space,
    names_as_list,
    requisite_as_list,
    requisite_targets,
    requisite_by_itself,
];

const OF_STATES: [Check<List>; 1] = [one_function];

const DOUBTFUL: [Check<List>; 6] = [
    order_that_counts,
    words_once,
    name_is_text,
    names_are_texts,
    guards_call,
    retry_is_understood,
];

/// The values of an argument that is written as an item of its own.
fn values_of(args: &List, word: &str) -> Vec<Value> {
    args.into_iter()
        .filter_map(|arg| only_word(&arg))
        .filter(|(own, _)| **own == *word)
        .map(|(_, value)| value)
        .collect()
}

fn order_that_counts(site: &Site<'_>, args: &List) -> Vec<Problem> {
    let odd = values_of(args, "order").into_iter().filter(|order| match order {
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => false,
        word => !matches!(word.as_str(), Some("first" | "last")),
    });
    odd.map(|order| {
        let text = format!("`order: {order}` does not count: it is a number, `first` or `last`");
        let problem = site.problem_at("order", text);
        match suggest::nearest(&order.to_str(), ["first", "last"]) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        }
    })
    .collect()
}

fn words_once(site: &Site<'_>, args: &List) -> Vec<Problem> {
    let mut seen = HashSet::new();
    let words =
        args.into_iter().filter_map(|arg| only_word(&arg)).map(|(word, _)| word.to_string());
    let again = words.filter(|word| !seen.insert(word.clone()));
    again
        .map(|word| {
            let text = format!("`{word}` is given twice to `{}`; only the last counts", site.id);
            site.problem_at(&word, text)
        })
        .collect()
}

fn name_is_text(site: &Site<'_>, args: &List) -> Vec<Problem> {
    let odd = values_of(args, "name").into_iter().filter(|name| name.as_str().is_none());
    odd.map(|name| {
        let text = format!("`name: {name}` is no text, so that the id `{}` counts", site.id);
        site.problem_at("name", text).help("put quotes around it")
    })
    .collect()
}

fn retry_is_understood(site: &Site<'_>, args: &List) -> Vec<Problem> {
    let odd = values_of(args, "retry").into_iter().filter(|retry| match retry {
        Value::Bool(_) | Value::Dict(_) => false,
        // `retry: [attempts: 3]` is a common way to write it, and taken for a dict.
        other => other.as_list().is_none(),
    });
    odd.map(|_| {
        let text = "State is set to retry, but retry: True or a valid dict for retry configuration \
                    was not found.  Using retry defaults";
        site.problem_at("retry", text.to_owned())
    })
    .collect()
}

fn names_are_texts(site: &Site<'_>, args: &List) -> Vec<Problem> {
    let names = values_of(args, "names").into_iter();
    let empty = names.flat_map(|names| names.items_of_sequence().unwrap_or_default());
    let empty = empty.filter(Value::is_null);
    empty
        .map(|_| {
            site.problem_at("names", "one of the `names` is empty, and counts as `None`".into())
        })
        .collect()
}

fn guards_call(site: &Site<'_>, args: &List) -> Vec<Problem> {
    let mut problems = Vec::new();
    for word in ["onlyif", "unless"] {
        let items = values_of(args, word).into_iter();
        for item in items.flat_map(|value| value.items_of_sequence().unwrap_or_default()) {
            let Value::Dict(call) = &item else { continue };
            if !call.contains("fun") {
                let text = format!("no `fun` argument in {word}: {}", item.repr());
                problems.push(site.problem_at(word, text));
            }
        }
    }
    problems
}

fn not_a_list(site: &Site<'_>, args: &Arguments) -> Problem {
    let Site { id, state, sls, .. } = site;
    if matches!(args, Arguments::Missing) {
        return site.problem(format!(
            "ID '{id}' in SLS '{sls}' contains a short declaration ({state}) with a trailing \
             colon. When not passing any arguments to a state, the colon must be omitted."
        ));
    }
    let problem = site.problem(format!("State '{id}' in SLS '{sls}' is not formed as a list"));
    if has_no_break_space(args) {
        return problem.help("a no-break space stands behind a dash: write an ordinary one");
    }
    problem.help(format!("each argument of `{state}` is an item: `- name: value`"))
}

/// Tells whether a dict stands there because of dashes that YAML takes for part of the keys.
fn has_no_break_space(args: &Arguments) -> bool {
    let Arguments::Misfit(Value::Dict(args)) = args else { return false };
    args.keys().iter().any(|key| key.to_str().starts_with("-\u{a0}"))
}

fn function_without_space(site: &Site<'_>, arg: &Value) -> Vec<Problem> {
    let Site { id, sls, .. } = site;
    let spaced = arg.as_str().filter(|function| function.trim().contains(' '));
    let problem = spaced.map(|function| {
        site.problem(format!(
            "The function \"{function}\" in state \"{id}\" in SLS \"{sls}\" has whitespace, a \
             function with whitespace is not supported, perhaps this is an argument that is \
             missing a \":\""
        ))
    });
    problem.into_iter().collect()
}

fn one_function(site: &Site<'_>, list: &List) -> Vec<Problem> {
    let Site { id, state, sls, .. } = site;
    let dotted = state.split_once('.').map(|(_, function)| function.to_owned());
    let args = list.to_vec();
    let listed = args.iter().filter_map(|arg| arg.as_str().map(str::to_owned));
    let functions: Vec<String> = dotted.into_iter().chain(listed).collect();
    let text = match functions.len() {
        0 => format!("No function declared in state '{id}' in SLS '{sls}'"),
        1 => return Vec::new(),
        _ => format!(
            "Too many functions declared in state '{id}' in SLS '{sls}'. Please choose one of the \
             following: {}",
            functions.join(", ")
        ),
    };
    let problem = site.problem(text);
    // `- name:/srv/app` is one text to YAML, and a function to Salt.
    let glued = functions.iter().find_map(|text| {
        let (word, value) = text.split_once(':')?;
        let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_word.then(|| (text, format!("`- {word}: {value}` needs a space after the colon")))
    });
    if let Some((text, help)) = glued {
        let at = args.iter().position(|arg| arg.as_str() == Some(text));
        let place = at.and_then(|at| list.place_of(at));
        let problem = if place.is_some() { problem.at(place) } else { problem };
        return vec![problem.help(help)];
    }
    vec![match site.places.of_extend(id).filter(|_| functions.is_empty()) {
        Some(place) => problem.help(format!(
            "the `extend` at {place} adds a state `{state}` to it; it has none to extend"
        )),
        None => problem,
    }]
}

/// Returns an argument's first word and value: Salt looks at no others.
fn first_of(arg: &Value) -> Option<(String, Value)> {
    let arg: &Dict = arg.as_dict()?;
    arg.read().first().map(|(word, value)| (word.to_string(), value.clone()))
}

fn requisite(arg: &Value) -> Option<(String, Value)> {
    first_of(arg).filter(|(word, _)| REQUISITE_WORDS.contains(&word.as_str()))
}

fn names_as_list(site: &Site<'_>, arg: &Value) -> Vec<Problem> {
    let Site { id, sls, .. } = site;
    match first_of(arg) {
        Some((word, value)) if word == "names" && value.as_list().is_none() => {
            let text = format!(
                "The 'names' argument in state '{id}' in SLS '{sls}' needs to be formed as a list"
            );
            vec![site.problem_at(&word, text)]
        }
        _ => Vec::new(),
    }
}

fn requisite_as_list(site: &Site<'_>, arg: &Value) -> Vec<Problem> {
    let Site { id, sls, .. } = site;
    match requisite(arg) {
        Some((word, value)) if value.as_list().is_none() => {
            let text = format!(
                "The {word} statement in state '{id}' in SLS '{sls}' needs to be formed as a list"
            );
            vec![site.problem_at(&word, text)]
        }
        _ => Vec::new(),
    }
}

fn requisite_targets(site: &Site<'_>, arg: &Value) -> Vec<Problem> {
    let Some((word, Value::List(targets))) = requisite(arg) else { return Vec::new() };
    let targets = targets.to_vec();
    let texts = targets.iter().flat_map(|target| wrong_target(site, target));
    texts.map(|text| site.problem_at(&word, text)).collect()
}

/// Says what is wrong with a target, `{state: name}` or a bare name.
fn wrong_target(site: &Site<'_>, target: &Value) -> Vec<String> {
    let Site { id, sls, .. } = site;
    if target.as_str().is_some() {
        return Vec::new();
    }
    let Some((kind, name)) = only_word(target) else {
        return vec![format!(
            "Requisite declaration {target} in state {id} in SLS {sls} is not formed as a single \
             key dictionary"
        )];
    };
    let kind = kind.to_str();
    let dotted = kind.split_once('.').map(|(module, _)| {
        format!(
            "Invalid requisite type '{kind}' in state '{id}', in SLS '{sls}'. Requisite types must \
             not contain dots, did you mean '{module}'?"
        )
    });
    let nested = matches!(name, Value::List(_) | Value::Dict(_)).then(|| {
        format!("Illegal requisite \"{name}\" in SLS \"{sls}\", please check your syntax.\n")
    });
    dotted.into_iter().chain(nested).collect()
}

fn requisite_by_itself(site: &Site<'_>, arg: &Value) -> Vec<Problem> {
    let Site { id, sls, .. } = site;
    match requisite(arg) {
        Some((word, _)) if only_word(arg).is_none() => {
            let text =
                format!("Multiple dictionaries defined in argument of state '{id}' in SLS '{sls}'");
            vec![site.problem_at(&word, text)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use halite_testkit::Kit;

    use super::*;

    #[test]
    fn a_requisite_stands_by_itself_whatever_its_value_is() {
        let kit = Kit::new().serving(&[("a.sls", "a:\n  x.run:\n    - require:\n      x: b\n")]);
        let gathered = crate::gather(&kit.cx, &[("base".into(), vec!["a".into()])]);
        let told: Vec<String> = crate::form_problems(&gathered.high, &gathered.places)
            .into_iter()
            .map(|problem| problem.text)
            .collect();
        assert_eq!(
            told,
            [
                "The require statement in state 'a' in SLS 'a' needs to be formed as a list",
                "Multiple dictionaries defined in argument of state 'a' in SLS 'a'"
            ]
        );
    }

    fn doubted(text: &str) -> Vec<String> {
        let kit = Kit::new().serving(&[("a.sls", text)]);
        let gathered = crate::gather(&kit.cx, &[("base".into(), vec!["a".into()])]);
        doubts(&gathered.high, &gathered.places).into_iter().map(|doubt| doubt.text).collect()
    }

    #[test]
    fn what_is_usual_is_not_doubted() {
        let usual = "a:\n  x.run:\n    - name: b\n    - names: [c, {d: [mode: 1]}]\n    - order: last\n    \
                     - retry: {attempts: 2}\n    - onlyif: [ls, {fun: test.true}]\nb:\n  x.run:\n    \
                     - order: -1\n    - retry: true\nc: x.run\n";
        assert_eq!(doubted(usual), Vec::<String>::new());
    }

    #[test]
    fn what_hardly_is_meant_is_doubted() {
        let check = |args: &str, text: &str| {
            let doubts = doubted(&format!("a:\n  x.run:\n{args}"));
            assert!(doubts.len() == 1 && doubts[0].contains(text), "{args}: {doubts:?}");
        };
        check("    - order: lats\n", "does not count");
        check("    - order: '5'\n", "does not count");
        check("    - require: [x: b]\n    - require: [x: c]\n", "only the last counts");
        check("    - name: 5\n", "the id `a` counts");
        check("    - names: [b, null]\n", "is empty");
        check("    - unless: [{func: test.true}]\n", "no `fun` argument in unless");
        check("    - retry: many\n", "Using retry defaults");
    }
}
