//! `sys`: what functions there are, and how they are called.
//!
//! Everything comes from the registry: the declarations the functions are called by are those
//! shown here, so they cannot disagree. Documentation is our own. Runners and returners are not a
//! minion's to call; the program tells which it has.

use halite_spec::{By, Cx, Error, Function, Param, Refresh, Rest, Result, function, module};
use halite_target::fnmatch;
use halite_value::{Dict, Value, dict, entries};

module! {
    /// What functions there are, and how they are called.
    "sys": doc, argspec, list_functions, list_modules, state_doc, state_argspec, state_schema,
    list_state_functions, list_state_modules, reload_modules, list_runners, list_runner_functions,
    runner_doc, runner_argspec, list_returners, list_returner_functions, returner_doc,
    returner_argspec, list_renderers, renderer_doc,
}

/// The renderers, by Salt's names.
const RENDERERS: [(&str, &str); 15] = [
    ("aws_kms", "Decrypt values with AWS KMS."),
    ("cheetah", "Render with Cheetah."),
    ("genshi", "Render with Genshi."),
    ("gpg", "Decrypt values with GnuPG."),
    ("jinja", "Render with Jinja."),
    ("json", "Read JSON."),
    ("json5", "Read JSON5."),
    ("mako", "Render with Mako."),
    ("nacl", "Decrypt values with NaCl."),
    ("pass", "Look values up in the password store."),
    ("py", "Run a Python file's `run`."),
    ("pydsl", "Run a Python file that declares states."),
    ("stateconf", "Read YAML with relative names and goals."),
    ("toml", "Read TOML."),
    ("yaml", "Read YAML."),
];

/// Picks names as `sys.doc` does: a module, a full name, or a glob.
fn documented<'a>(names: &'a [String], wanted: &str) -> Vec<&'a String> {
    if wanted.contains('*') {
        return names.iter().filter(|name| fnmatch::fnmatch(name, wanted)).collect();
    }
    let prefix = match wanted {
        "" => String::new(),
        word if word.ends_with('.') => word.to_owned(),
        word => format!("{word}."),
    };
    names.iter().filter(|name| *name == wanted || name.starts_with(&prefix)).collect()
}

/// Picks those that some words ask for, each as [`documented`] does; without words all.
fn asked_for<'a>(names: &'a [String], words: &Rest) -> Vec<&'a String> {
    if words.args.is_empty() {
        return names.iter().collect();
    }
    words.args.iter().flat_map(|word| documented(names, &word.to_str())).collect()
}

/// The functions to pick from by some words.
fn function_names(cx: &Cx, words: &[Value]) -> Vec<String> {
    with_packaged(cx, "modules", cx.runtime.function_names(cx), words)
}

/// The states to pick from by some words.
fn state_names(cx: &Cx, words: &[Value]) -> Vec<String> {
    with_packaged(cx, "states", cx.runtime.state_names(cx), words)
}

/// Adds the names of an installed Python package. To list it all of it has to be loaded, so that
/// is only done for words that may mean any of it.
fn with_packaged(cx: &Cx, kind: &str, names: Vec<String>, words: &[Value]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| word.to_str().into()).collect();
    let is_open = |word: &String| word.contains('*') || word.is_empty();
    let unknown = words.iter().filter(|word| !is_open(word) && documented(&names, word).is_empty());
    let (full, modules): (Vec<&String>, Vec<&String>) =
        unknown.partition(|word| word.contains('.'));
    let more = if words.is_empty() || !modules.is_empty() || words.iter().any(is_open) {
        cx.runtime.packaged_names(cx, kind)
    } else {
        let is_there =
            |name: &&String| !cx.runtime.described(kind, std::slice::from_ref(*name)).is_empty();
        full.into_iter().filter(is_there).cloned().collect()
    };
    let mut names: Vec<String> = names.into_iter().chain(more).collect();
    names.sort();
    names.dedup();
    names
}

/// Picks functions as `sys.list_functions` does.
fn functions(names: Vec<String>, wanted: &Rest) -> Vec<String> {
    if wanted.args.is_empty() {
        return names;
    }
    let fits = |name: &String| {
        wanted.args.iter().map(Value::to_str).any(|word| {
            if word.contains('*') || word.contains('.') {
                fnmatch::fnmatch(name, &word)
            } else {
                name.split_once('.').is_some_and(|(module, _)| module == word.as_str())
            }
        })
    };
    names.into_iter().filter(fits).collect()
}

/// Picks modules as `sys.list_modules` does. A glob is matched against full function names.
fn modules(names: &[String], wanted: &Rest) -> Vec<String> {
    let fits = |name: &&String| {
        wanted.args.is_empty()
            || wanted.args.iter().map(Value::to_str).any(|word| {
                if word.contains('*') {
                    fnmatch::fnmatch(name, &word)
                } else {
                    name.split_once('.').is_some_and(|(module, _)| module == word.as_str())
                }
            })
    };
    let mut found: Vec<String> = names
        .iter()
        .filter(fits)
        .map(|name| name.split_once('.').map_or(name.as_str(), |(module, _)| module).to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Describes arguments as Salt does: names, then the defaults of the last of them.
pub fn spec_of(params: &[Param]) -> Dict {
    let named: Vec<&Param> = params.iter().filter(|param| param.is_listed()).collect();
    let defaults: Vec<Value> =
        named.iter().filter_map(|param| param.default.map(|make| make())).collect();
    let keywords = params.iter().any(|param| param.by == By::Name || param.takes_names());
    let positions = params.iter().any(Param::takes_positions);
    let names = named.iter().map(|param| param.name);
    entries! {
        "args" => if named.is_empty() { Value::Null } else { Value::list(names) },
        "defaults" => if defaults.is_empty() { Value::Null } else { Value::list(defaults) },
        "varargs" => positions.then_some(true),
        "kwargs" => keywords.then_some(true),
    }
}

/// Adds what is known of functions that are not native, in the order asked for.
fn with_described(
    cx: &Cx,
    kind: &str,
    wanted: &[&String],
    native: impl Fn(&str) -> Option<Value>,
    pick: impl Fn(&Value) -> Value,
) -> Dict {
    let native: Vec<Option<Value>> = wanted.iter().map(|name| native(name)).collect();
    let others: Vec<String> = wanted
        .iter()
        .zip(&native)
        .filter(|(_, found)| found.is_none())
        .map(|(name, _)| (*name).clone())
        .collect();
    let others = match others.is_empty() {
        true => Dict::new(),
        false => cx.runtime.described(kind, &others),
    };
    let found = Dict::new();
    for (name, own) in wanted.iter().zip(native) {
        let value = own.or_else(|| others.get(name.as_str()).map(|about| pick(&about)));
        if let Some(value) = value {
            found.insert(*name, value);
        }
    }
    found
}

/// The documentation of a user's Python, as it stands there but for some words of its markup.
fn users_doc(about: &Value) -> Value {
    match about.get_str("raw_doc") {
        Some(doc) => unmarked(&doc).into(),
        None => about.get("doc").unwrap_or_default(),
    }
}

/// Puts words in place of the directives that say something, and takes those away that only say
/// what a block is.
fn unmarked(doc: &str) -> String {
    const WORDS: [(&str, &str); 4] = [
        (".. note::", "Note:"),
        (".. warning::", "Warning:"),
        (".. versionadded::", "New in version"),
        (".. versionchanged::", "Changed in version"),
    ];
    let is_block = |line: &str| {
        let language = line.trim_start().strip_prefix(".. code-block:: ");
        language.is_some_and(|word| word.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    let mut text = String::with_capacity(doc.len());
    let mut lines = doc.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if is_block(line.trim_end_matches('\n')) {
            while lines.next_if(|line| *line == "\n").is_some() {}
        } else {
            text.push_str(line);
        }
    }
    for (directive, word) in WORDS {
        text = text.replace(directive, word);
    }
    text
}

/// The part of a description that `argspec` shows.
fn shown_spec(about: &Value) -> Value {
    let spec = about.get("spec").unwrap_or_default();
    let part = |name: &str| spec.get(name).unwrap_or_default();
    let list = |name: &str| Some(part(name)).filter(Value::truthy).unwrap_or_default();
    let flag = |name: &str| part(name).truthy().then_some(true);
    dict! {
        "args" => list("args"), "defaults" => list("defaults"),
        "varargs" => flag("varargs"), "kwargs" => flag("kwargs"),
    }
}

/// Return the documentation of functions.
///
/// ```console
/// $ salt '*' sys.doc sys network.ping
/// $ salt '*' sys.doc 'file.is_*'
/// ```
#[function]
pub fn doc(
    cx: &Cx,
    /// Modules, functions or globs; everything if none is given.
    #[arg(by_position)]
    args: Rest,
) -> Result<Dict> {
    let names = function_names(cx, &args.args);
    let wanted = asked_for(&names, &args);
    let help = |function: &Function, name: &str| function.help("salt '*'", name).into();
    let native = |name: &str| cx.runtime.function(cx, name).map(|function| help(function, name));
    Ok(with_described(cx, "modules", &wanted, native, users_doc))
}

/// Return the names and defaults of the arguments of functions.
///
/// ```console
/// $ salt web1 sys.argspec file.find
/// ```
#[function]
pub fn argspec(
    cx: &Cx,
    /// A module, a function or a glob.
    #[default(String::new())]
    module: String,
) -> Result<Dict> {
    if module.is_empty() {
        return Ok(Dict::new());
    }
    let names = function_names(cx, &[module.as_str().into()]);
    let wanted = documented(&names, &module);
    let native =
        |name: &str| cx.runtime.function(cx, name).map(|function| spec_of(function.params).into());
    Ok(with_described(cx, "modules", &wanted, native, shown_spec))
}

/// Return the names of functions.
///
/// ```console
/// $ salt web1 sys.list_functions
/// ```
#[function]
pub fn list_functions(
    cx: &Cx,
    /// Modules or globs; everything if none is given.
    args: Rest,
) -> Result<Vec<String>> {
    Ok(functions(function_names(cx, &args.args), &args))
}

/// Return the names of modules.
///
/// ```console
/// $ salt web1 sys.list_modules 'net*'
/// ```
#[function]
pub fn list_modules(
    cx: &Cx,
    /// Modules or globs; everything if none is given.
    #[arg(by_position)]
    args: Rest,
) -> Result<Vec<String>> {
    Ok(modules(&function_names(cx, &args.args), &args))
}

/// Return the documentation of states.
///
/// ```console
/// $ salt web1 sys.state_doc
/// ```
#[function]
pub fn state_doc(
    cx: &Cx,
    /// Modules, states or globs; everything if none is given.
    #[arg(by_position)]
    args: Rest,
) -> Result<Dict> {
    let names = state_names(cx, &args.args);
    let wanted = asked_for(&names, &args);
    // Python's modules tell about themselves, too.
    let mut modules: Vec<String> = wanted
        .iter()
        .filter(|name| cx.runtime.state(cx, name).is_none())
        .filter_map(|name| name.split_once('.'))
        .map(|(module, _)| module.to_owned())
        .collect();
    modules.dedup();
    let wanted: Vec<_> = modules.iter().chain(wanted).collect();
    let native = |name: &str| cx.runtime.state(cx, name).map(|state| (state.doc)().into());
    Ok(with_described(cx, "states", &wanted, native, users_doc))
}

/// Return the names and defaults of the arguments of states.
///
/// ```console
/// $ salt web1 sys.state_argspec
/// ```
#[function]
pub fn state_argspec(
    cx: &Cx,
    /// A module, a state or a glob.
    #[default(String::new())]
    module: String,
) -> Result<Dict> {
    if module.is_empty() {
        return Ok(Dict::new());
    }
    let names = state_names(cx, &[module.as_str().into()]);
    let wanted = documented(&names, &module);
    let native = |name: &str| {
        let state = cx.runtime.state(cx, name)?;
        let spec = spec_of((state.params)());
        if state.open {
            spec.insert("kwargs", true);
        }
        Some(spec.into())
    };
    Ok(with_described(cx, "states", &wanted, native, shown_spec))
}

/// Return JSON schemas of the arguments of states.
///
/// ```console
/// $ salt web1 sys.state_schema
/// ```
#[function]
pub fn state_schema(
    cx: &Cx,
    /// A module, a state or a glob.
    #[default(String::new())]
    module: String,
) -> Result<Vec<Value>> {
    if module.is_empty() {
        return Ok(Vec::new());
    }
    let mut schemas = Vec::new();
    for name in documented(&state_names(cx, &[module.as_str().into()]), &module) {
        let Some(state) = cx.runtime.state(cx, name) else { continue };
        let properties = Dict::new();
        let mut required = Vec::new();
        for param in (state.params)().iter().filter(|param| !param.rest) {
            let choices = ["boolean", "integer", "number", "string"].map(|kind| {
                let item = entries! {
                    "type" => kind, "title" => param.name, "description" => param.name,
                };
                if let Some(default) = param.default {
                    item.insert("default", default());
                }
                Value::Dict(item)
            });
            properties.insert(param.name, dict! { "oneOf" => Value::list(choices) });
            if param.default.is_none() {
                required.push(param.name);
            }
        }
        schemas.push(dict! {
            "$schema" => "http://json-schema.org/draft-04/schema#", "title" => name,
            "description" => name, "type" => "object", "properties" => properties,
            "required" => Value::list(required),
            "x-ordering" => Value::list((state.params)().iter().filter(|p| !p.rest).map(|p| p.name)),
            "additionalProperties" => false,
        });
    }
    Ok(schemas)
}

/// Return the names of states.
///
/// ```console
/// $ salt '*' sys.list_state_functions file 'pkg.i*'
/// ```
#[function]
pub fn list_state_functions(
    cx: &Cx,
    /// Modules or globs; everything if none is given.
    args: Rest,
) -> Result<Vec<String>> {
    Ok(functions(state_names(cx, &args.args), &args))
}

/// Return the names of state modules.
///
/// ```console
/// $ salt web1 sys.list_state_modules
/// ```
#[function]
pub fn list_state_modules(
    cx: &Cx,
    /// Modules or globs; everything if none is given.
    #[arg(by_position)]
    args: Rest,
) -> Result<Vec<String>> {
    Ok(modules(&state_names(cx, &args.args), &args))
}

/// Load the modules anew.
///
/// ```console
/// $ salt web1 sys.reload_modules
/// ```
#[function]
pub fn reload_modules(
    cx: &Cx,
    /// Accepted for old callers.
    #[default(false)]
    initial_load: bool,
    /// Accepted for old callers.
    context: Option<Value>,
) -> Result<()> {
    let _ = (initial_load, context);
    cx.runtime.refresh(cx, Refresh::Modules).map(|_| ())
}

/// Describes the functions of a kind: name → `{doc, spec}`.
fn others(cx: &Cx, function: &str, kind: &str) -> Result<Dict> {
    cx.runtime.others(kind).ok_or_else(|| Error::Unavailable {
        function: function.into(),
        reason: format!("this program has no {kind}"),
    })
}

fn names_of(all: &Dict) -> Vec<String> {
    all.keys().iter().map(|name| name.to_str().to_string()).collect()
}

/// What `pick` makes of the wanted ones.
fn picked(all: &Dict, wanted: &Rest, pick: impl Fn(&Value) -> Value) -> Dict {
    let names = names_of(all);
    let wanted: Vec<&String> = if wanted.args.is_empty() {
        names.iter().collect()
    } else {
        wanted.args.iter().flat_map(|word| documented(&names, &word.to_str())).collect()
    };
    let one = |name: &String| Some((name.as_str().to_owned(), pick(&all.get(name.as_str())?)));
    wanted.into_iter().filter_map(one).collect()
}

/// Return the names of runner modules.
///
/// ```console
/// $ salt web1 sys.list_runners
/// ```
#[function]
pub fn list_runners(
    cx: &Cx,
    /// Modules or globs.
    #[arg(by_position)]
    args: Rest,
) -> Result<Vec<String>> {
    Ok(modules(&names_of(&others(cx, "sys.list_runners", "runners")?), &args))
}

/// Return the names of runner functions.
///
/// ```console
/// $ salt web1 sys.list_runner_functions
/// ```
#[function]
pub fn list_runner_functions(
    cx: &Cx,
    /// Modules or globs.
    args: Rest,
) -> Result<Vec<String>> {
    Ok(functions(names_of(&others(cx, "sys.list_runner_functions", "runners")?), &args))
}

/// Return the documentation of runners.
///
/// ```console
/// $ salt web1 sys.runner_doc
/// ```
#[function]
pub fn runner_doc(
    cx: &Cx,
    /// Modules or functions.
    #[arg(by_position)]
    args: Rest,
) -> Result<Dict> {
    let all = others(cx, "sys.runner_doc", "runners")?;
    Ok(picked(&all, &args, users_doc))
}

/// Return the arguments of runners.
///
/// ```console
/// $ salt web1 sys.runner_argspec
/// ```
#[function]
pub fn runner_argspec(
    cx: &Cx,
    /// A module or function.
    #[default(String::new())]
    module: String,
) -> Result<Dict> {
    if module.is_empty() {
        return Ok(Dict::new());
    }
    let all = others(cx, "sys.runner_argspec", "runners")?;
    let wanted = Rest { args: vec![module.into()], ..Rest::default() };
    Ok(picked(&all, &wanted, shown_spec))
}

/// Return the names of returners.
///
/// ```console
/// $ salt web1 sys.list_returners
/// ```
#[function]
pub fn list_returners(
    cx: &Cx,
    /// Modules or globs.
    #[arg(by_position)]
    args: Rest,
) -> Result<Vec<String>> {
    Ok(modules(&names_of(&others(cx, "sys.list_returners", "returners")?), &args))
}

/// Return the names of returner functions.
///
/// ```console
/// $ salt web1 sys.list_returner_functions
/// ```
#[function]
pub fn list_returner_functions(
    cx: &Cx,
    /// Modules or globs.
    args: Rest,
) -> Result<Vec<String>> {
    Ok(functions(names_of(&others(cx, "sys.list_returner_functions", "returners")?), &args))
}

/// Return the documentation of returners.
///
/// ```console
/// $ salt web1 sys.returner_doc
/// ```
#[function]
pub fn returner_doc(
    cx: &Cx,
    /// Modules or functions.
    #[arg(by_position)]
    args: Rest,
) -> Result<Dict> {
    let all = others(cx, "sys.returner_doc", "returners")?;
    Ok(picked(&all, &args, users_doc))
}

/// Return the arguments of returners.
///
/// ```console
/// $ salt '*' sys.returner_argspec local
/// ```
#[function]
pub fn returner_argspec(
    cx: &Cx,
    /// A module or function.
    #[default(String::new())]
    module: String,
) -> Result<Dict> {
    if module.is_empty() {
        return Ok(Dict::new());
    }
    let all = others(cx, "sys.returner_argspec", "returners")?;
    let wanted = Rest { args: vec![module.into()], ..Rest::default() };
    Ok(picked(&all, &wanted, shown_spec))
}

/// Return the names of renderers.
///
/// ```console
/// $ salt web1 sys.list_renderers
/// ```
#[function]
pub fn list_renderers(
    _cx: &Cx,
    /// Names or globs.
    #[arg(by_position)]
    args: Rest,
) -> Result<Vec<String>> {
    let fits = |name: &str| {
        args.args.is_empty() || args.args.iter().any(|word| fnmatch::fnmatch(name, &word.to_str()))
    };
    Ok(RENDERERS.iter().map(|(name, _)| *name).filter(|name| fits(name)).map(Into::into).collect())
}

/// Return the documentation of renderers.
///
/// ```console
/// $ salt '*' sys.renderer_doc yaml
/// ```
#[function]
pub fn renderer_doc(
    _cx: &Cx,
    /// Names or globs.
    #[arg(by_position)]
    args: Rest,
) -> Result<Dict> {
    let fits = |name: &str| {
        args.args.is_empty()
            || args
                .args
                .iter()
                .any(|word| fnmatch::fnmatch(name, word.to_str().trim_end_matches('.')))
    };
    Ok(RENDERERS.iter().filter(|(name, _)| fits(name)).map(|(name, doc)| (*name, *doc)).collect())
}

#[cfg(test)]
mod tests {
    use super::unmarked;

    #[test]
    fn markup_becomes_words() {
        for (doc, shown) in [
            (
                "\n    A.\n\n    .. code-block:: bash\n\n        salt x\n    ",
                "\n    A.\n\n        salt x\n    ",
            ),
            ("A.\n    .. code-block:: yaml\n        a: b", "A.\n        a: b"),
            (".. code-block::\n\n    a", ".. code-block::\n\n    a"),
            (".. versionadded:: 1\n.. note:: x", "New in version 1\nNote: x"),
            (".. deprecated:: 2", ".. deprecated:: 2"),
        ] {
            assert_eq!(unmarked(doc), shown);
        }
    }
}
