//! `pillar`: the data the master (or the local pillar roots) gives this minion.
//!
//! Since 3008 Salt shows pillar values as asterisks when a user asks for them by hand. So do we:
//! only the function a job asks for masks its return; templates, states and other functions get
//! the values. `unmask=True` shows them, and `pillar_mask_output: False` shows them in
//! `pillar.items`.

use halite_spec::{Args, Cx, Error, Rest, Result, Template, alias, function, module};
use halite_value::{Dict, Value, json, lookup, merge};

use crate::grains;

module! {
    /// The data the master gives this minion.
    "pillar": get, fetch, items, data, ls, item, raw, ext, keys, obfuscate, filter_by, file_exists,
}

alias! { fetch = get, data = items }

const MASK: &str = "**********";

/// Hides values; the shape and the keys stay.
fn masked(value: &Value) -> Value {
    match value {
        Value::Dict(dict) => {
            Value::Dict(dict.into_iter().map(|(key, value)| (key, masked(&value))).collect())
        }
        Value::List(list) => Value::list(list.into_iter().map(|item| masked(&item))),
        // Nothing is no secret: `false`, zero and an empty text are shown.
        plain if !plain.truthy() => plain.clone(),
        _ => MASK.into(),
    }
}

/// Masks what goes to the user who asked for it.
fn shown(cx: &Cx, value: Value, unmask: Option<bool>) -> Value {
    let asked_by_hand = cx.job.fun.starts_with("pillar.") && cx.low.is_empty();
    if asked_by_hand && !unmask.unwrap_or(false) { masked(&value) } else { value }
}

/// The pillar to look into: the present one, or one compiled for another environment.
fn pillar_of(cx: &Cx, pillarenv: Option<&str>, saltenv: Option<&str>) -> Result<Dict> {
    let from_saltenv = saltenv.filter(|_| cx.opt_bool("pillarenv_from_saltenv"));
    match pillarenv.or(from_saltenv) {
        Some(env) => cx.runtime.compile_pillar(cx, &Dict::new(), Some(env)),
        None => Ok(cx.pillar.clone()),
    }
}

/// Return a value of the pillar, also from within dicts and lists (`a:b:0`).
///
/// ```console
/// $ salt web1 pillar.get shop:colour
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The path.
    key: String,
    /// What to return when there is no such key.
    #[default(Value::str(NOT_SET))]
    default: Value,
    /// Merge the value over the default, when both are dicts or lists.
    #[default(false)]
    merge: bool,
    /// Merge lists within merged dicts too.
    merge_nested_lists: Option<bool>,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
    /// Look into the pillar of this environment.
    pillarenv: Option<String>,
    /// As `pillarenv`, with `pillarenv_from_saltenv`.
    saltenv: Option<String>,
    /// Show the value although it is asked for by hand.
    unmask: Option<bool>,
) -> Result<Value> {
    let missing = default.as_str() == Some(NOT_SET);
    let default = if missing { "".into() } else { default };
    if missing && cx.opt_bool("pillar_raise_on_missing") {
        let pillar = pillar_of(cx, pillarenv.as_deref(), saltenv.as_deref())?;
        let found = lookup::traverse(&pillar.into(), &key, &delimiter);
        let found = found.ok_or_else(|| not_found(&key))?;
        return Ok(shown(cx, found, unmask));
    }
    let pillar = Value::from(pillar_of(cx, pillarenv.as_deref(), saltenv.as_deref())?);
    let found = lookup::traverse(&pillar, &key, &delimiter);
    let value = match found {
        Some(value) if merge => {
            let lists = merge_nested_lists.unwrap_or_else(|| cx.opt_bool("pillar_merge_lists"));
            over_default(&default, &value, lists)?
        }
        Some(value) => value,
        None => default,
    };
    Ok(shown(cx, value, unmask))
}

/// The default of those who give none: `None` is a default too, and what many trees ask for.
const NOT_SET: &str = "<Constant.NOT_SET>";

fn not_found(key: &str) -> Error {
    let message = format!("'Pillar key not found: {key}'");
    Error::raised("KeyError", message)
}

fn over_default(default: &Value, value: &Value, lists: bool) -> Result<Value> {
    match (default, value) {
        (Value::Dict(_), Value::Dict(_)) => {
            merge::merge(&default.deep_copy(), value, merge::Strategy::Recurse, lists)
                .map_err(|error| Error::failed(error.to_string()))
        }
        (Value::List(first), Value::List(second)) => {
            let mut all = first.to_vec();
            for item in second.to_vec() {
                if !all.contains(&item) {
                    all.push(item);
                }
            }
            Ok(all.into())
        }
        (Value::Dict(_) | Value::List(_), _) => {
            let kind = if matches!(default, Value::Dict(_)) { "dict" } else { "list" };
            tracing::error!(
                "pillar.get: Default ({default}) is a {kind}, but the returned pillar value \
                 ({value}) is of type '{}'. Merge will be skipped.",
                value.type_name()
            );
            Ok(value.clone())
        }
        _ => {
            tracing::error!(
                "pillar.get: Default ({default}) is of type '{}', must be a dict or list to merge. \
                 Merge will be skipped.",
                default.type_name()
            );
            Ok(value.clone())
        }
    }
}

/// How to compile the pillar anew.
#[derive(Args)]
pub struct Compiling {
    /// Further pillar data.
    #[arg(keyword)]
    pillar: Option<Value>,
    /// The renderer that decrypts this data; one of `decrypt_pillar_renderers`.
    #[arg(keyword)]
    pillar_enc: Option<String>,
    /// Compile the pillar of this environment.
    #[arg(keyword)]
    pillarenv: Option<String>,
    /// As `pillarenv`, with `pillarenv_from_saltenv`.
    #[arg(keyword)]
    saltenv: Option<String>,
    /// Show the values although they are asked for by hand.
    #[arg(keyword)]
    unmask: Option<bool>,
}

impl Compiling {
    /// Whether the values are shown: because they are to be, or because none are hidden here.
    fn unmask(&self, cx: &Cx) -> Option<bool> {
        let shows = cx.opt("pillar_mask_output") == Some(Value::Bool(false));
        self.unmask.or(shows.then_some(true))
    }
}

/// Decrypts pillar data somebody gave, with one of the renderers that may be used for it.
pub fn decrypted(cx: &Cx, pillar: &Value, renderer: &str) -> Result<Value> {
    let failed = |why: String| {
        let message = format!("Failed to decrypt pillar override: {why}");
        Error::raised("CommandExecutionError", message)
    };
    let valid = cx.opt("decrypt_pillar_renderers").and_then(|list| list.items_of_sequence());
    let valid = valid.unwrap_or_else(|| vec!["gpg".into()]);
    if !valid.iter().any(|own| own.as_str() == Some(renderer)) {
        let valid: Vec<String> = valid.iter().map(Value::to_string).collect();
        return Err(failed(format!(
            "'{renderer}' is not a valid decryption renderer. Valid choices are: {}",
            valid.join(", ")
        )));
    }
    let text = match pillar {
        Value::Str(text) => text.to_string(),
        data => json::to_string(data).map_err(|error| failed(error.to_string()))?,
    };
    // What is decrypted is YAML, of which JSON is a part.
    let template = Template {
        engine: format!("yaml|{renderer}"),
        text,
        source: None,
        saltenv: "base".into(),
        sls: None,
        context: Dict::new(),
    };
    cx.runtime.clone().compile(cx, &template).map_err(|error| failed(error.to_string()))
}

/// Compiles the pillar anew, as `pillar.items` does, and picks the keys that are asked for.
fn compiled(cx: &Cx, keys: &Rest, how: &Compiling) -> Result<Dict> {
    let given = how.pillar.clone().filter(Value::truthy);
    let given = match (given, how.pillar_enc.as_deref().filter(|name| !name.is_empty())) {
        (Some(pillar), Some(renderer)) => Some(decrypted(cx, &pillar, renderer)?),
        (given, _) => given,
    };
    let overrides = match given {
        Some(Value::Dict(pillar)) => pillar,
        Some(_) => {
            tracing::error!("Pillar data must be a dictionary");
            Dict::new()
        }
        None => Dict::new(),
    };
    let env = |env: &Option<String>| env.clone().filter(|env| !env.is_empty());
    let from_saltenv = || env(&how.saltenv).filter(|_| cx.opt_bool("pillarenv_from_saltenv"));
    let env = env(&how.pillarenv).or_else(from_saltenv);
    let pillar = cx.runtime.compile_pillar(cx, &overrides, env.as_deref())?;
    if keys.args.is_empty() {
        return Ok(pillar);
    }
    let keys = keys.args.iter().map(Value::to_str);
    Ok(keys
        .map(|key| {
            let value = pillar.get(key.as_str()).unwrap_or_else(|| "".into());
            (key, value)
        })
        .collect())
}

/// Compile the pillar anew and return all of it, or some keys.
///
/// ```console
/// $ salt '*' pillar.items unmask=True
/// ```
#[function]
pub fn items(
    cx: &Cx,
    /// Keys; all if none is given.
    #[arg(by_position)]
    args: Rest,
    #[group] how: Compiling,
) -> Result<Value> {
    let pillar = compiled(cx, &args, &how)?;
    Ok(shown(cx, pillar.into(), how.unmask(cx)))
}

/// Return the names of the pillar's keys.
///
/// ```console
/// $ salt web1 pillar.ls
/// ```
#[function]
pub fn ls(
    cx: &Cx,
    /// Keys; all if none is given.
    #[arg(by_position)]
    args: Rest,
    #[group] how: Compiling,
) -> Result<Value> {
    Ok(Value::list(compiled(cx, &args, &how)?.keys()))
}

/// Return some keys of the pillar; those that are missing are empty.
///
/// ```console
/// $ salt web1 pillar.item shop
/// ```
#[function]
pub fn item(
    cx: &Cx,
    /// Keys, or paths.
    #[arg(by_position)]
    args: Rest,
    /// What stands for a key that is missing; an empty text if not given.
    #[arg(keyword)]
    default: Option<Value>,
    /// What stands between the steps of a path; a colon if not given.
    #[arg(keyword)]
    delimiter: Option<String>,
    /// Look into the pillar of this environment.
    #[arg(keyword)]
    pillarenv: Option<String>,
    /// As `pillarenv`, with `pillarenv_from_saltenv`.
    #[arg(keyword)]
    saltenv: Option<String>,
    /// Show the values although they are asked for by hand.
    #[arg(keyword)]
    unmask: Option<bool>,
) -> Result<Value> {
    let default = default.unwrap_or_else(|| "".into());
    let delimiter = delimiter.filter(|text| !text.is_empty()).unwrap_or_else(|| ":".into());
    let env = |env: Option<String>| env.filter(|env| !env.is_empty());
    let pillar = pillar_of(cx, env(pillarenv).as_deref(), env(saltenv).as_deref())?;
    let pillar = Value::from(pillar);
    let found = Dict::new();
    for key in args.args.iter().map(Value::to_str) {
        let value = lookup::traverse(&pillar, &key, &delimiter);
        found.insert(key, value.unwrap_or_else(|| default.clone()));
    }
    Ok(shown(cx, found.into(), unmask))
}

/// Return the pillar as it is in memory, or one key of it.
///
/// ```console
/// $ salt web1 pillar.raw shop
/// ```
#[function]
pub fn raw(
    cx: &Cx,
    /// The key.
    key: Option<Value>,
    /// Show the values although they are asked for by hand.
    unmask: Option<bool>,
) -> Result<Value> {
    let value = match key {
        Some(key) if key.truthy() => {
            cx.pillar.get(key.to_str().as_str()).unwrap_or_else(Value::dict)
        }
        _ => Value::from(&cx.pillar),
    };
    // What is in memory is shown as it is: Salt masks only if told to.
    Ok(if unmask == Some(false) { shown(cx, value, unmask) } else { value })
}

/// Compile the pillar of an external source given here.
///
/// ```console
/// $ salt '*' pillar.ext '{cmd_yaml: "cat /tmp/x"}'
/// ```
#[function]
pub fn ext(
    cx: &Cx,
    /// The source, as in `ext_pillar`; the option `on_demand_ext_pillar` has to allow it.
    external: Value,
    /// Further pillar data.
    pillar: Option<Value>,
    /// Show the values although they are asked for by hand.
    unmask: Option<bool>,
) -> Result<Value> {
    let overrides = match pillar {
        Some(Value::Dict(pillar)) => pillar,
        Some(other) if other.truthy() => {
            tracing::error!("Pillar data must be a dictionary");
            Dict::new()
        }
        _ => Dict::new(),
    };
    let compiled = match external {
        Value::Dict(external) if !external.is_empty() => {
            cx.runtime.compile_pillar_with(cx, &overrides, &external)?
        }
        external => {
            if external.truthy() {
                tracing::error!("On-demand pillar {external} is not formatted as a dictionary");
            }
            cx.runtime.compile_pillar(cx, &overrides, None)?
        }
    };
    Ok(shown(cx, compiled.into(), unmask))
}

/// Return the keys of a dict in the pillar.
///
/// ```console
/// $ salt web1 pillar.keys shop
/// ```
#[function]
pub fn keys(
    cx: &Cx,
    /// The path.
    key: String,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
    /// Accepted as in Salt; keys are never hidden.
    unmask: Option<bool>,
) -> Result<Value> {
    let _ = unmask;
    match lookup::traverse(&Value::from(&cx.pillar), &key, &delimiter) {
        Some(Value::Dict(dict)) => Ok(Value::list(dict.keys())),
        Some(_) => {
            Err(Error::raised("ValueError", format!("Pillar value in key {key} is not a dict")))
        }
        None => Err(not_found(&key)),
    }
}

/// Return the pillar with the kinds of its values in place of them.
///
/// ```console
/// $ salt web1 pillar.obfuscate
/// ```
#[function]
pub fn obfuscate(
    cx: &Cx,
    /// Keys; all if none is given.
    #[arg(by_position)]
    args: Rest,
    #[group] how: Compiling,
) -> Result<Value> {
    fn kinds(value: &Value) -> Value {
        match value {
            Value::Dict(dict) => {
                Value::Dict(dict.into_iter().map(|(key, value)| (key, kinds(&value))).collect())
            }
            Value::List(list) => Value::list(list.into_iter().map(|item| kinds(&item))),
            other => format!("<{}>", other.type_name()).into(),
        }
    }
    // Salt looks at what `pillar.items` shows: behind a mask everything is a text.
    let pillar = shown(cx, compiled(cx, &args, &how)?.into(), how.unmask(cx));
    Ok(kinds(&pillar))
}

/// Pick an entry of a dict by a pillar value.
///
/// ```console
/// $ salt '*' pillar.filter_by '{web: Serve it up, db: I query}' role
/// ```
#[function]
pub fn filter_by(
    cx: &Cx,
    /// Values by what the pillar value may be; globs allowed.
    lookup_dict: Value,
    /// The path into the pillar.
    pillar: String,
    /// Merged over the result.
    merge: Option<Value>,
    /// The key to take when none matches.
    #[default(Value::from("default"))]
    default: Value,
    /// The key of values the result is merged over.
    base: Option<String>,
) -> Result<Value> {
    let data = Value::from(&cx.pillar);
    grains::pick(&lookup_dict, &pillar, &data, merge.as_ref(), &default, base.as_deref())
}

/// Tell whether a file is in the pillar roots of this machine.
///
/// ```console
/// $ salt web1 pillar.file_exists shop/init.sls
/// ```
#[function]
pub fn file_exists(
    cx: &Cx,
    /// The path below a pillar root.
    path: String,
    /// The environment; all of them if none is given.
    saltenv: Option<String>,
) -> Result<bool> {
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Ok(false);
    }
    let Some(Value::Dict(roots)) = cx.opt("pillar_roots") else { return Ok(false) };
    for (env, folders) in &roots {
        if saltenv.as_ref().is_some_and(|wanted| *env != **wanted) {
            continue;
        }
        for root in folders.items_of_sequence().unwrap_or_default() {
            if cx.host.is_file(&std::path::Path::new(root.to_str().as_str()).join(&path))? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
