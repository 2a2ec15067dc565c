//! `grains`: what a minion knows about itself.
//!
//! Custom grains are kept in the file `grains` beside the minion's configuration; changing them
//! here changes that file and the grains of this run. Texts are Salt's.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Refresh, Rest, Result, alias, function, host::Write, module};
use halite_target::fnmatch;
use halite_value::{Dict, Key, List, Value, dict, lookup, merge, yaml};

module! {
    /// What a minion knows about itself.
    "grains": get, fetch, has_value, items, item, ls, equals, setvals, setval, append, remove,
    delkey, delval, set, filter_by,
}

alias! { fetch = get }

/// Grains that name a machine, and what `sanitize` says instead.
const NAMES: [(&str, &str); 6] = [
    ("id", "MINION.DOMAINNAME"),
    ("fqdn", "MINION.DOMAINNAME"),
    ("host", "MINION"),
    ("localhost", "MINION"),
    ("nodename", "MINION"),
    ("domain", "DOMAINNAME"),
];

/// Return a grain, also from within dicts and lists (`a:b:0`).
///
/// ```console
/// $ salt web1 grains.get role
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The path.
    key: String,
    /// What to return when there is no such grain.
    #[default(Value::from(""))]
    default: Value,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
    /// Accepted for old trees; grains always keep their order.
    #[default(true)]
    ordered: bool,
) -> Result<Value> {
    let _ = ordered;
    Ok(lookup::traverse(&Value::from(&cx.grains), &key, &delimiter).unwrap_or(default))
}

/// Tell whether a grain is there and not empty.
///
/// ```console
/// $ salt web1 grains.has_value role
/// ```
#[function]
pub fn has_value(
    cx: &Cx,
    /// The path.
    key: String,
) -> Result<bool> {
    Ok(cx.grain(&key).is_some_and(|value| value.truthy()))
}

/// A text whose last quarter is hidden.
fn without_end(text: &str) -> String {
    let count = text.chars().count();
    let hidden = count.div_ceil(4);
    text.chars().take(count - hidden).chain(std::iter::repeat_n('X', hidden)).collect()
}

fn sanitized(grains: &Dict) -> Dict {
    for (name, instead) in NAMES {
        if grains.contains(name) {
            grains.insert(name, instead);
        }
    }
    if let Some(serial) = grains.get("serialnumber") {
        grains.insert("serialnumber", without_end(&serial.to_str()));
    }
    grains.clone()
}

/// Return all grains.
///
/// ```console
/// $ salt web1 grains.items
/// ```
#[function]
pub fn items(
    cx: &Cx,
    /// Hide serial numbers and the like.
    #[default(false)]
    sanitize: bool,
) -> Result<Dict> {
    let grains = cx.grains.shallow_copy();
    Ok(if sanitize { sanitized(&grains) } else { grains })
}

/// Return some grains by name; those that are missing are empty.
///
/// ```console
/// $ salt '*' grains.item os osrelease
/// ```
#[function]
pub fn item(
    cx: &Cx,
    /// Names, and `default`, `delimiter`, `sanitize`.
    names: Rest,
) -> Result<Dict> {
    let default = names.kwargs.get("default").unwrap_or_else(|| "".into());
    let delimiter = names.kwargs.get("delimiter").map_or_else(|| ":".into(), |text| text.to_str());
    let found = Dict::new();
    for name in &names.args {
        let value = lookup::traverse(&Value::from(&cx.grains), &name.to_str(), &delimiter);
        found.insert(name.to_str(), value.unwrap_or_else(|| default.clone()));
    }
    let hide = names.kwargs.get("sanitize").is_some_and(|flag| flag.truthy());
    Ok(if hide { sanitized(&found) } else { found })
}

/// Return the names of all grains.
///
/// ```console
/// $ salt web1 grains.ls
/// ```
#[function]
pub fn ls(cx: &Cx) -> Result<Vec<String>> {
    let mut names: Vec<String> = cx.grains.keys().iter().map(ToString::to_string).collect();
    names.sort();
    Ok(names)
}

/// Tell whether a grain has a value, compared as texts.
///
/// ```console
/// $ salt '*' grains.equals fqdn web1.example
/// ```
#[function]
pub fn equals(
    cx: &Cx,
    /// The path.
    key: String,
    /// The value.
    value: Value,
) -> Result<bool> {
    let own = cx.grain(&key).unwrap_or_else(|| "".into());
    Ok(own.to_str() == value.to_str())
}

/// The file of custom grains.
fn file(cx: &Cx) -> Result<PathBuf> {
    let conf = cx
        .opt_str("conf_file")
        .ok_or_else(|| Error::failed("the configuration has no conf_file to put grains beside"))?;
    Ok(Path::new(conf.as_str()).parent().unwrap_or(Path::new("/")).join("grains"))
}

fn read_file(cx: &Cx, path: &Path) -> Result<Dict> {
    let Some(text) = cx.host.read_text_if_there(path)? else { return Ok(Dict::new()) };
    match yaml::load_str(&text) {
        Ok(Value::Dict(grains)) => Ok(grains),
        Ok(value) if !value.truthy() => Ok(Dict::new()),
        Ok(_) => Err(Error::failed(format!("{} does not hold a dict of grains", path.display()))),
        Err(error) => Err(Error::failed(format!("Unable to read existing grains file: {error}"))),
    }
}

/// Set several grains, in the grains file and for this run.
///
/// ```console
/// $ salt web1 grains.setvals '{role: web}'
/// ```
#[function]
pub fn setvals(
    cx: &Cx,
    /// Names and values.
    grains: Value,
    /// A value of None removes the grain.
    #[default(false)]
    destructive: bool,
    /// Compile the pillar anew afterwards.
    #[default(true)]
    refresh_pillar: bool,
) -> Result<Dict> {
    let Value::Dict(new) = grains else {
        let message = "setvals grains must be a dictionary.".to_owned();
        return Err(Error::raised("SaltException", message));
    };
    let path = file(cx)?;
    let kept = read_file(cx, &path)?;
    for (name, value) in &new {
        if value.is_null() && destructive {
            kept.remove(&name);
        } else {
            kept.insert(&name, &value);
        }
    }
    let text = yaml::dump(&Value::from(&kept), &yaml::DumpOptions::block())
        .map_err(|error| Error::failed(error.to_string()))?;
    cx.host.write(&path, text.as_bytes(), &Write::default())?;
    // Only now: a run whose write failed must not find the grain set.
    for (name, value) in &new {
        if value.is_null() && destructive {
            cx.grains.remove(&name);
        } else {
            cx.grains.insert(name, value);
        }
    }
    cx.runtime.refresh(cx, Refresh::Modules)?;
    if refresh_pillar {
        cx.runtime.refresh(cx, Refresh::Pillar { fresh: false })?;
    }
    Ok(new)
}

/// Set a grain, in the grains file and for this run.
///
/// ```console
/// $ salt web1 grains.setval role blue
/// ```
#[function]
pub fn setval(
    cx: &Cx,
    /// The name.
    key: String,
    /// The value.
    val: Value,
    /// None removes the grain.
    #[default(false)]
    destructive: bool,
    /// Compile the pillar anew afterwards.
    #[default(true)]
    refresh_pillar: bool,
) -> Result<Dict> {
    setvals(cx, dict! { key => val }, destructive, refresh_pillar)
}

/// Puts a value at a path into the grains file, with the dicts on the way.
fn set_at(cx: &Cx, key: &str, delimiter: &str, value: &Value) -> Result<Dict> {
    let mut steps: Vec<&str> = key.split(delimiter).collect();
    let first = steps.remove(0);
    if steps.is_empty() {
        return setval(cx, first.to_owned(), value.clone(), false, true);
    }
    let root = match cx.grains.get(first) {
        Some(Value::Dict(dict)) => dict.deep_copy(),
        _ => Dict::new(),
    };
    let mut at = root.clone();
    let last = steps.pop().unwrap_or_default();
    for step in steps {
        let next = match at.get(step) {
            Some(Value::Dict(dict)) => dict,
            _ => Dict::new(),
        };
        at.insert(step, &next);
        at = next;
    }
    at.insert(last, value);
    setval(cx, first.to_owned(), root.into(), false, true)
}

/// Append a value to a grain that is a list.
///
/// ```console
/// $ salt web1 grains.append roles web
/// ```
#[function]
pub fn append(
    cx: &Cx,
    /// The path.
    key: String,
    /// The value.
    val: Value,
    /// Make a grain that is no list the first item of one.
    #[default(false)]
    convert: bool,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
) -> Result<Value> {
    let own = lookup::traverse(&Value::from(&cx.grains), &key, &delimiter);
    let list: List = match own {
        None => List::new(),
        Some(Value::List(list)) => list.to_vec().into(),
        Some(value) if convert => vec![value].into(),
        Some(_) => return Ok(format!("The key {key} is not a valid list").into()),
    };
    if list.contains(&val) {
        return Ok(format!("The val {val} was already in the list {key}").into());
    }
    match val {
        Value::List(more) => list.extend(more.to_vec()),
        one => list.push(one),
    }
    Ok(set_at(cx, &key, &delimiter, &list.into())?.into())
}

/// Remove a value from a grain that is a list.
///
/// ```console
/// $ salt web1 grains.remove roles web
/// ```
#[function]
pub fn remove(
    cx: &Cx,
    /// The path.
    key: String,
    /// The value.
    val: Value,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
) -> Result<Value> {
    let own = lookup::traverse(&Value::from(&cx.grains), &key, &delimiter);
    let mut items = match own {
        Some(Value::List(list)) => list.to_vec(),
        Some(_) => return Ok(format!("The key {key} is not a valid list").into()),
        None => Vec::new(),
    };
    let Some(at) = items.iter().position(|item| *item == val) else {
        return Ok(format!("The val {val} was not in the list {key}").into());
    };
    items.remove(at);
    Ok(set_at(cx, &key, &delimiter, &items.into())?.into())
}

/// Set a grain, also within dicts; refuses to replace a dict or list unless forced.
///
/// ```console
/// $ salt web1 grains.set shop:colour blue
/// ```
#[function]
pub fn set(
    cx: &Cx,
    /// The path.
    key: String,
    /// The value.
    #[default(Value::from(""))]
    val: Value,
    /// Replace dicts and lists too.
    #[default(false)]
    force: bool,
    /// None removes the grain.
    #[default(false)]
    destructive: bool,
    /// What stands between the steps of the path.
    #[default(":".to_owned())]
    delimiter: String,
) -> Result<Value> {
    let own = lookup::traverse(&Value::from(&cx.grains), &key, &delimiter);
    if own.as_ref() == Some(&val) {
        let comment = "Grain is already set";
        return Ok(dict! { "comment" => comment, "changes" => Value::dict(), "result" => true });
    }
    if let Some(comment) = refusal(&cx.grains, &key, &val, force, &delimiter) {
        return Ok(dict! { "comment" => comment, "changes" => Value::dict(), "result" => false });
    }
    let changes = if val.is_null() && destructive {
        remove_at(cx, &key, &delimiter)?
    } else {
        set_at(cx, &key, &delimiter, &val)?
    };
    Ok(dict! { "comment" => "", "changes" => changes, "result" => true })
}

/// Says why `grains.set` would not set a grain.
pub fn refusal(
    grains: &Dict,
    key: &str,
    val: &Value,
    force: bool,
    delimiter: &str,
) -> Option<String> {
    if force {
        return None;
    }
    let complex = |value: &Value| matches!(value, Value::Dict(_) | Value::List(_));
    let all = Value::from(grains);
    let own = lookup::traverse(&all, key, delimiter);
    if own.as_ref() == Some(val) {
        return None;
    }
    if own.as_ref().is_some_and(complex) {
        return Some(format!(
            "The key '{key}' exists but is a dict or a list. Use 'force=True' to overwrite."
        ));
    }
    if own.is_some() && complex(val) {
        return Some(format!(
            "The key '{key}' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
        ));
    }
    // A step of the path may be a plain value, in the way.
    let mut steps: Vec<&str> = key.split(delimiter).collect();
    while let Some(last) = steps.pop() {
        let path = steps.join(delimiter);
        if path.is_empty() {
            break;
        }
        match lookup::traverse(&all, &path, delimiter) {
            Some(Value::Dict(_)) | None => {}
            Some(value) => {
                return Some(format!(
                    "The key '{path}' value is '{value}', which is different from the provided \
                     key '{last}'. Use 'force=True' to overwrite."
                ));
            }
        }
    }
    None
}

/// Removes a grain whatever it holds.
pub fn delete_at(cx: &Cx, key: &str) -> Result<Dict> {
    remove_at(cx, key, ":")
}

fn remove_at(cx: &Cx, key: &str, delimiter: &str) -> Result<Dict> {
    match key.rsplit_once(delimiter) {
        None => setval(cx, key.to_owned(), Value::Null, true, true),
        Some((parent, last)) => {
            let above = lookup::traverse(&Value::from(&cx.grains), parent, delimiter);
            let above = match above {
                Some(Value::Dict(dict)) => dict.deep_copy(),
                _ => Dict::new(),
            };
            above.remove(last);
            set_at(cx, parent, delimiter, &above.into())
        }
    }
}

/// Remove a grain from the grains file.
///
/// ```console
/// $ salt web1 grains.delkey role
/// ```
#[function]
pub fn delkey(
    cx: &Cx,
    /// The path.
    key: String,
    /// Remove dicts and lists too.
    #[default(false)]
    force: bool,
) -> Result<Value> {
    delval(cx, key, true, force)
}

/// Empty a grain, or remove it.
///
/// ```console
/// $ salt web1 grains.delval role
/// ```
#[function]
pub fn delval(
    cx: &Cx,
    /// The path.
    key: String,
    /// Remove the name too.
    #[default(false)]
    destructive: bool,
    /// Also dicts and lists.
    #[default(false)]
    force: bool,
) -> Result<Value> {
    set(cx, key, Value::Null, force, destructive, ":".to_owned())
}

/// Pick an entry of a dict by a grain, as `map.jinja` files do.
///
/// ```console
/// $ salt web1 grains.filter_by '{default: {port: 80}}'
/// ```
#[function]
pub fn filter_by(
    cx: &Cx,
    /// Values by what the grain may be; globs allowed.
    lookup_dict: Value,
    /// The grain.
    #[default("os_family".to_owned())]
    grain: String,
    /// Merged over the result.
    merge: Option<Value>,
    /// The key to take when none matches.
    #[default(Value::from("default"))]
    default: Value,
    /// The key of values the result is merged over.
    base: Option<String>,
) -> Result<Value> {
    pick(&lookup_dict, &grain, &Value::from(&cx.grains), merge.as_ref(), &default, base.as_deref())
}

fn salt_exception(message: &str) -> Error {
    Error::raised("SaltException", message)
}

/// The choice behind `grains.filter_by`, `pillar.filter_by` and others.
pub fn pick(
    table: &Value,
    path: &str,
    data: &Value,
    over: Option<&Value>,
    default: &Value,
    base: Option<&str>,
) -> Result<Value> {
    let Value::Dict(table) = table else {
        return Err(Error::invalid("the look-up table must be a dictionary"));
    };
    let own = lookup::traverse(data, path, ":").unwrap_or_else(|| Value::from(Vec::<Value>::new()));
    let own = own.items_of_sequence().unwrap_or_else(|| vec![own.clone()]);
    let matching = |value: &Value| {
        let text = value.to_str();
        table.into_iter().find(|(key, _)| fnmatch::fnmatch(&text, &key.to_str()))
    };
    let mut found = own.iter().find_map(matching).map(|(_, value)| value);
    if found.as_ref().is_none_or(Value::is_null) {
        found = Key::try_from(default.clone()).ok().and_then(|key| table.get(&key));
    }
    if let Some(below) = base.and_then(|base| table.get(base)) {
        found = Some(match (found, &below) {
            (None | Some(Value::Null), _) => below,
            (Some(value @ Value::Dict(_)), Value::Dict(_)) => merged(&below.deep_copy(), &value)?,
            (Some(_), Value::Dict(_)) => {
                return Err(salt_exception(
                    "filter_by default and look-up values must both be dictionaries.",
                ));
            }
            (Some(value), _) => value,
        });
    }
    if let Some(over) = over.filter(|over| over.truthy()) {
        if over.as_dict().is_none() {
            return Err(salt_exception("filter_by merge argument must be a dictionary."));
        }
        found = Some(match (found, over.deep_copy()) {
            (None | Some(Value::Null), _) => over.clone(),
            (Some(Value::Dict(value)), Value::Dict(over)) => {
                // In place, as in Salt: the table's own entry changes.
                merge::update(&value, &over, false);
                value.into()
            }
            (Some(value), over) => merged(&value, &over)?,
        });
    }
    Ok(found.unwrap_or_default())
}

fn merged(first: &Value, second: &Value) -> Result<Value> {
    merge::merge(first, second, merge::Strategy::Recurse, false).map_err(|_| {
        Error::raised("TypeError", "Cannot update using non-dict types in dictupdate.update()")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_quarter_is_hidden() {
        let all = ["", "a", "abc", "abcde", "abcdefgh", "abcdefghi"].map(without_end);
        assert_eq!(all, ["", "X", "abX", "abcXX", "abcdefXX", "abcdefXXX"]);
    }
}
