//! `slsutil`: helpers for SLS files and templates.

pub mod serializers;

use halite_spec::{Cx, Error, Rest, Result, Template, function, module};
use halite_value::{
    Dict, Value,
    merge::{Strategy, merge as merge_dicts},
};

use self::serializers::Serializer;
use crate::file::paths::{joined, normalized, parent};

module! {
    /// Helpers for SLS files and templates.
    "slsutil": banner, boolstr, deserialize, dir_exists, file_exists, findup, merge, merge_all,
    path_exists, renderer, serialize, update,
}

/// Brings the second dict into the first, in place: Salt's `dictupdate.update`.
pub fn update_dict(dest: &Dict, upd: &Dict, recursive: bool, merge_lists: bool) {
    if !recursive {
        dest.update(upd);
        return;
    }
    for (key, value) in upd {
        let new = match (dest.get(&key), &value) {
            (Some(Value::Dict(inner)), Value::Dict(upd)) => {
                update_dict(&inner, upd, true, merge_lists);
                Value::Dict(inner)
            }
            (Some(Value::List(old)), Value::List(new)) if merge_lists => {
                let joined = old.to_vec();
                let more: Vec<Value> =
                    new.into_iter().filter(|item| !joined.contains(item)).collect();
                Value::from([joined, more].concat())
            }
            _ => value,
        };
        dest.insert(key, new);
    }
}

fn merged(
    first: &Value,
    second: &Value,
    strategy: &str,
    renderer: &str,
    merge_lists: bool,
) -> Result<Value> {
    // With a strategy nobody knows, Salt merges as `recurse` does and forgets about the lists.
    let (strategy, merge_lists) = match Strategy::named(strategy, renderer) {
        Some(strategy) => (strategy, merge_lists),
        None => (Strategy::Recurse, false),
    };
    merge_dicts(first, second, strategy, merge_lists).map_err(|_| {
        let message = "Cannot update using non-dict types in dictupdate.update()";
        Error::raised("TypeError", message)
    })
}

/// Bring one dict into another; the second wins.
///
/// ```console
/// $ salt web1 slsutil.update '{port: 80}' '{host: db1}'
/// ```
#[function]
pub fn update(
    _cx: &Cx,
    /// The dict to change.
    dest: Dict,
    /// What to bring in.
    upd: Dict,
    /// Go into dicts inside.
    #[default(true)]
    recursive_update: bool,
    /// Join lists instead of replacing them.
    #[default(false)]
    merge_lists: bool,
) -> Result<Dict> {
    update_dict(&dest, &upd, recursive_update, merge_lists);
    Ok(dest)
}

/// Merge two dicts into a new one.
///
/// ```console
/// $ salt web1 slsutil.merge '{port: 80}' '{host: db1}'
/// ```
#[function]
pub fn merge(
    _cx: &Cx,
    /// The first.
    obj_a: Value,
    /// The second, which wins.
    obj_b: Value,
    /// `smart`, `aggregate`, `list`, `overwrite` or `recurse`.
    #[default("smart".to_owned())]
    strategy: String,
    /// The renderer the data came from; `smart` depends on it.
    #[default("yaml".to_owned())]
    renderer: String,
    /// Join lists instead of replacing them.
    #[default(false)]
    merge_lists: bool,
) -> Result<Value> {
    merged(&obj_a, &obj_b, &strategy, &renderer, merge_lists)
}

/// Merge a list of dicts, from the first to the last.
///
/// ```console
/// $ salt '*' slsutil.merge_all '[{foo: Foo}, {foo: Bar}]'
/// ```
#[function]
pub fn merge_all(
    _cx: &Cx,
    /// The dicts.
    lst: Vec<Value>,
    /// `smart`, `aggregate`, `list`, `overwrite` or `recurse`.
    #[default("smart".to_owned())]
    strategy: String,
    /// The renderer the data came from; `smart` depends on it.
    #[default("yaml".to_owned())]
    renderer: String,
    /// Join lists instead of replacing them.
    #[default(false)]
    merge_lists: bool,
) -> Result<Value> {
    lst.iter()
        .try_fold(Value::dict(), |all, next| merged(&all, next, &strategy, &renderer, merge_lists))
}

/// Run a file or a text through renderers and return the data.
///
/// ```console
/// $ salt web1 slsutil.renderer salt://web/nginx/init.sls
/// ```
#[function]
pub fn renderer(
    cx: &Cx,
    /// The file's address.
    path: Option<String>,
    /// A text instead.
    string: Option<String>,
    /// The renderers, unless a first line names others.
    #[default("jinja|yaml".to_owned())]
    default_renderer: String,
    /// Names for the templates; `saltenv`.
    rest: Rest,
) -> Result<Value> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let env = rest.kwargs.remove("saltenv").filter(Value::truthy);
    let saltenv = env.map_or_else(|| "base".to_owned(), |env| env.to_str().to_string());
    let (text, source) = match (given(&path), given(&string)) {
        (None, None) => return Err(Error::invalid("Must pass path or string.")),
        (Some(_), Some(_)) => return Err(Error::invalid("Must not pass both path and string.")),
        (None, Some(text)) => (text, None),
        (Some(path), None) => {
            let cached = cx.files.cache(&path, &saltenv)?.ok_or_else(|| {
                Error::failed(format!("Could not find {path} in saltenv {saltenv}"))
            })?;
            // A path of this machine where nothing is renders to nothing, as in Salt.
            if !cx.host.is_file(&cached)? {
                return Ok(Value::Dict(Dict::new()));
            }
            (cx.host.read_text(&cached)?, Some(path))
        }
    };
    let template = Template {
        engine: default_renderer,
        text,
        source,
        saltenv,
        sls: Some(String::new()),
        context: rest.kwargs,
    };
    cx.runtime.compile(cx, &template)
}

fn serializer(name: &str) -> Result<Serializer> {
    Serializer::named(name).ok_or_else(|| Error::failed(format!("Serializer '{name}' not found.")))
}

fn public(options: &Dict) -> Dict {
    options.into_iter().filter(|(name, _)| !name.to_str().starts_with("__")).collect()
}

/// Write data as text.
///
/// ```console
/// $ salt '*' slsutil.serialize json '{foo: 1}' indent=2
/// ```
#[function]
pub fn serialize(
    _cx: &Cx,
    /// `yaml`, `json`, `toml`, `configparser` or `msgpack`.
    #[arg(name = "serializer")]
    kind: String,
    /// The data.
    obj: Value,
    /// Options of the serializer.
    rest: Rest,
) -> Result<Value> {
    serializer(&kind)?
        .write(&obj, &public(&rest.kwargs))
        .map_err(|error| Error::raised("SerializationError", error.to_string()))
}

/// Read data from text.
///
/// ```console
/// $ salt web1 slsutil.deserialize yaml '{colour: blue}'
/// ```
#[function]
pub fn deserialize(
    _cx: &Cx,
    /// `yaml`, `json`, `toml`, `configparser` or `msgpack`.
    #[arg(name = "serializer")]
    kind: String,
    /// The text.
    stream_or_string: Value,
    /// Options of the serializer.
    rest: Rest,
) -> Result<Value> {
    let text = stream_or_string.as_bytes().map(<[u8]>::to_vec);
    let text = text.unwrap_or_else(|| stream_or_string.to_str().as_bytes().to_vec());
    serializer(&kind)?
        .read(&text, &public(&rest.kwargs))
        .map_err(|error| Error::raised("DeserializationError", error.to_string()))
}

/// Breaks a text into lines of a width, at spaces; a word too long is cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let room = width - line.chars().count().min(width);
            let gap = usize::from(!line.is_empty());
            if word.chars().count() + gap <= room {
                if gap == 1 {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            if line.is_empty() {
                let cut = word.char_indices().nth(width).map_or(word.len(), |(at, _)| at);
                lines.push(word[..cut].to_owned());
                word = &word[cut..];
                if word.is_empty() {
                    break;
                }
            } else {
                lines.push(std::mem::take(&mut line));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Python's `str.center`: of an odd rest, the left gets more only when the width is odd, too.
fn centered(text: &str, width: usize) -> String {
    let length = text.chars().count();
    let rest = width.saturating_sub(length);
    let left = rest / 2 + (rest & width & 1);
    format!("{}{text}{}", " ".repeat(left), " ".repeat(rest - left))
}

/// Return a comment block for the head of a managed file.
///
/// ```console
/// $ salt '*' slsutil.banner commentchar='#' width=72
/// ```
#[function]
pub fn banner(
    _cx: &Cx,
    /// The width in characters.
    #[default(72)]
    width: u64,
    /// What begins (and ends) each line.
    #[default("#".to_owned())]
    commentchar: String,
    /// The border.
    #[default("#".to_owned())]
    borderchar: String,
    /// What begins the block.
    blockstart: Option<String>,
    /// What ends the block.
    blockend: Option<String>,
    /// The title.
    title: Option<String>,
    /// The text.
    text: Option<String>,
    /// End with a line end.
    #[default(false)]
    newline: bool,
) -> Result<String> {
    let title = title.as_deref().unwrap_or("THIS FILE IS MANAGED BY SALT - DO NOT EDIT");
    let text = text.as_deref().unwrap_or(
        "The contents of this file are managed by Salt. Any changes to this file may be \
         overwritten automatically and without warning.",
    );
    let length = |text: &str| text.chars().count();
    let width = usize::try_from(width).unwrap_or(usize::MAX).min(10_000);
    let (left, right) = (commentchar.trim_end(), commentchar.trim());
    let room = width.saturating_sub(length(left) + length(right) + 2);
    if room == 0 {
        return Err(Error::raised("ArgumentValueError", "Width is too small to render banner"));
    }
    let border: String = borderchar.chars().take(1).collect();
    let border = border.repeat(width.saturating_sub(length(left) + length(right)));
    let border = format!("{commentchar}{border}{right}");
    let spaces = " ".repeat(width.saturating_sub(length(&commentchar) * 2));
    let spacer = format!("{commentchar}{spaces}{commentchar}");
    let mut block: Vec<String> = Vec::new();
    block.extend(blockstart);
    block.push(border.clone());
    block.push(spacer.clone());
    for line in wrapped(title, room) {
        block.push(format!("{left} {} {right}", centered(&line, room)));
    }
    block.push(spacer);
    for line in wrapped(text, room) {
        let fill = " ".repeat(room - length(&line).min(room));
        block.push(format!("{left} {line}{fill} {right}"));
    }
    block.push(border);
    block.extend(blockend);
    let end = if newline { "\n" } else { "" };
    Ok(block.join("\n") + end)
}

/// Return one of two texts by the truth of a value.
///
/// ```console
/// $ salt '*' slsutil.boolstr True yes no
/// ```
#[function]
pub fn boolstr(
    _cx: &Cx,
    /// The value.
    value: Value,
    /// The text for true.
    #[default(Value::str("true"))]
    r#true: Value,
    /// The text for false.
    #[default(Value::str("false"))]
    r#false: Value,
) -> Result<Value> {
    Ok(if value.truthy() { r#true } else { r#false })
}

/// Tell whether the file server has a file.
///
/// ```console
/// $ salt web1 slsutil.file_exists web/nginx/map.jinja
/// ```
#[function]
pub fn file_exists(
    cx: &Cx,
    /// The path.
    path: Value,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<bool> {
    listed(cx, "slsutil.files", &saltenv, &path.to_str(), |cx, env| cx.files.list(env, ""))
}

/// Tell whether the file server has a folder.
///
/// ```console
/// $ salt web1 slsutil.dir_exists web/nginx
/// ```
#[function]
pub fn dir_exists(
    cx: &Cx,
    /// The path.
    path: Value,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<bool> {
    listed(cx, "slsutil.dirs", &saltenv, &path.to_str(), |cx, env| cx.files.list_dirs(env, ""))
}

/// The lists are asked for once a job: templates ask often.
fn listed(
    cx: &Cx,
    what: &str,
    saltenv: &str,
    path: &str,
    list: fn(&Cx, &str) -> Result<Vec<String>>,
) -> Result<bool> {
    let key = format!("{what} {saltenv}");
    let known = match cx.context.get(key.as_str()) {
        Some(Value::Dict(known)) => known,
        _ => {
            let known: Dict = list(cx, saltenv)?.into_iter().map(|path| (path, true)).collect();
            cx.context.insert(key, &known);
            known
        }
    };
    Ok(known.contains(path))
}

/// Tell whether the file server has a file or a folder.
///
/// ```console
/// $ salt web1 slsutil.path_exists web/nginx
/// ```
#[function]
pub fn path_exists(
    cx: &Cx,
    /// The path.
    path: Value,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<bool> {
    Ok(file_exists(cx, path.clone(), saltenv.clone())? || dir_exists(cx, path, saltenv)?)
}

/// Find the nearest file of a name, from a folder of the server upwards.
///
/// ```console
/// $ salt web1 slsutil.findup web/nginx map.jinja
/// ```
#[function]
pub fn findup(
    cx: &Cx,
    /// Where to begin.
    #[arg(required)]
    startpath: Option<String>,
    /// A name or a list of names.
    filenames: Value,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<String> {
    let mut at = startpath.filter(|path| !path.is_empty()).map(|path| normalized(&path));
    if let Some(path) = &at
        && !path_exists(cx, path.clone().into(), saltenv.clone())?
    {
        return Err(Error::invalid(format!("Starting path not found in the state tree: {path}")));
    }
    let names: Vec<String> = match &filenames {
        Value::Str(name) => vec![name.to_string()],
        Value::List(names) => names.into_iter().map(|name| name.to_str().to_string()).collect(),
        _ => {
            return Err(Error::invalid("Filenames argument must be a string or list of strings"));
        }
    };
    loop {
        let folder = at.clone().unwrap_or_default();
        for name in &names {
            let path = normalized(&joined(&folder, name));
            if path_exists(cx, path.clone().into(), saltenv.clone())? {
                return Ok(path);
            }
        }
        match at.as_deref() {
            None | Some("") => {
                return Err(Error::failed("File pattern(s) not found in path ancestry"));
            }
            Some(path) => at = Some(parent(path).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_wrapped_and_centered() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("abcdefg h", 3), ["abc", "def", "g h"]);
        assert_eq!(centered("ab", 5), "  ab ");
        assert_eq!(centered("abc", 6), " abc  ");
    }
}
