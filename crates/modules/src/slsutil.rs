//! `slsutil`: what SLS files need to work with data.

use std::path::Path;

use halite_spec::{Cx, Error, Rest, Result, Template, function, module};
use halite_value::{Dict, Value, json, merge as deep, msgpack, yaml};

module! {
    /// Work with data in SLS files.
    "slsutil": update, merge, merge_all, renderer, serialize, deserialize, boolstr, banner,
    dir_exists, file_exists, path_exists, findup,
}

fn dict_of(value: Value) -> Result<Dict> {
    match value {
        Value::Dict(dict) => Ok(dict),
        _ => Err(Error::Raised {
            class: "TypeError".into(),
            message: "Cannot update using non-dict types in dictupdate.update()".into(),
            traceback: None,
        }),
    }
}

/// Merge a dict into another, at every depth and in place.
///
/// ```console
/// $ salt '*' slsutil.update '{foo: Foo}' '{bar: Bar}'
/// ```
#[function]
pub fn update(
    _cx: &Cx,
    /// The dict merged into.
    dest: Value,
    /// The dict that wins.
    upd: Value,
    /// Merge dicts within; otherwise they are replaced.
    #[default(true)]
    recursive_update: bool,
    /// Join lists instead of replacing them.
    #[default(false)]
    merge_lists: bool,
) -> Result<Dict> {
    let (dest, upd) = (dict_of(dest)?, dict_of(upd)?);
    if recursive_update {
        deep::update(&dest, &upd, merge_lists);
    } else {
        dest.update(&upd);
    }
    Ok(dest)
}

/// Merge two dicts by a strategy: smart, aggregate, list, overwrite or recurse.
///
/// ```console
/// $ salt '*' slsutil.merge '{foo: Foo}' '{bar: Bar}'
/// ```
#[function]
pub fn merge(
    _cx: &Cx,
    /// The first dict.
    obj_a: Value,
    /// The dict that wins.
    obj_b: Value,
    /// How.
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

fn merged(a: &Value, b: &Value, strategy: &str, renderer: &str, lists: bool) -> Result<Value> {
    let strategy = deep::Strategy::named(strategy, renderer).unwrap_or_else(|| {
        tracing::warn!("Unknown merging strategy '{strategy}', fallback to recurse");
        deep::Strategy::Recurse
    });
    dict_of(a.clone())?;
    dict_of(b.clone())?;
    deep::merge(&a.deep_copy(), b, strategy, lists)
        .map_err(|error| Error::failed(error.to_string()))
}

/// Merge a list of dicts, the later ones win.
///
/// ```console
/// $ salt '*' slsutil.merge_all '[{foo: Foo}, {foo: Bar}]'
/// ```
#[function]
pub fn merge_all(
    _cx: &Cx,
    /// The dicts.
    lst: Vec<Value>,
    /// How.
    #[default("smart".to_owned())]
    strategy: String,
    /// The renderer the data came from.
    #[default("yaml".to_owned())]
    renderer: String,
    /// Join lists instead of replacing them.
    #[default(false)]
    merge_lists: bool,
) -> Result<Value> {
    lst.iter()
        .try_fold(Value::dict(), |all, one| merged(&all, one, &strategy, &renderer, merge_lists))
}

/// Render a file or a text to data.
///
/// ```console
/// $ salt '*' slsutil.renderer salt://path/to/file
/// $ salt '*' slsutil.renderer string='Inline template! {{ saltenv }}' default_renderer='jinja'
/// ```
#[function]
pub fn renderer(
    cx: &Cx,
    /// The file: `salt://`, `http://` or a path.
    path: Option<String>,
    /// The text.
    string: Option<String>,
    /// The pipe, unless the text names its own.
    #[default("jinja|yaml".to_owned())]
    default_renderer: String,
    /// Names for the template; `saltenv` is the file's environment.
    rest: Rest,
) -> Result<Value> {
    let saltenv = rest.kwargs.get("saltenv").filter(Value::truthy);
    let saltenv = saltenv.map_or_else(|| cx.saltenv(), |env| env.to_string());
    let (text, source) = match (path, string) {
        (Some(path), _) => {
            let file = if path.contains("://") {
                let found = cx.files.cache(&path, &saltenv)?;
                found.ok_or_else(|| Error::failed(format!("Path not found: {path}")))?
            } else {
                Path::new(&path).to_owned()
            };
            (cx.host.read_text(&file)?, Some(path.trim_start_matches("salt://").to_owned()))
        }
        (None, Some(text)) => (text, None),
        (None, None) => return Err(Error::invalid("Must pass either path or string")),
    };
    let template = Template {
        engine: default_renderer,
        text,
        source,
        saltenv,
        sls: None,
        context: rest.kwargs,
    };
    cx.runtime.compile(cx, &template)
}

fn unknown(serializer: &str) -> Error {
    Error::failed(format!(
        "there is no serializer `{serializer}`; known: configparser, json, msgpack, python, toml, yaml"
    ))
}

/// Write data as text in a format.
///
/// ```console
/// $ salt '*' slsutil.serialize yaml '{foo: Foo!}'
/// ```
#[function]
pub fn serialize(
    _cx: &Cx,
    /// `yaml`, `json`, `msgpack`, `python` …
    serializer: String,
    /// The data.
    obj: Value,
    /// Options of the format.
    rest: Rest,
) -> Result<Value> {
    Ok(match serializer.as_str() {
        "yaml" | "yamlex" => {
            let mut options = yaml::DumpOptions::block();
            options.set_all(&rest.kwargs).map_err(|error| Error::invalid(error.to_string()))?;
            yaml::dump(&obj, &options).map_err(|error| Error::failed(error.to_string()))?.into()
        }
        "json" => {
            let style = json::Style {
                indent: rest
                    .kwargs
                    .get("indent")
                    .and_then(|indent| indent.to_int())
                    .and_then(|indent| usize::try_from(indent).ok()),
                sort_keys: rest.kwargs.get("sort_keys").is_some_and(|sort| sort.truthy()),
                ..json::Style::default()
            };
            json::to_string_styled(&obj, &style)
                .map_err(|error| Error::failed(error.to_string()))?
                .into()
        }
        "python" => obj.repr().into(),
        "msgpack" => Value::bytes(
            msgpack::to_vec(&obj, msgpack::Dialect::Modern)
                .map_err(|error| Error::failed(error.to_string()))?,
        ),
        other => return Err(unknown(other)),
    })
}

/// Read data from a text in a format.
///
/// ```console
/// $ salt '*' slsutil.deserialize json '{"foo": "Foo!"}'
/// ```
#[function]
pub fn deserialize(
    _cx: &Cx,
    /// `yaml`, `json`, `msgpack` …
    serializer: String,
    /// The text.
    stream_or_string: Value,
    /// Options of the format.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    let text = stream_or_string.to_str();
    match serializer.as_str() {
        "yaml" | "yamlex" => {
            let options = yaml::LoadOptions { dialect: yaml::Dialect::Plain, ..Default::default() };
            yaml::load(&text, &options).map_err(|error| Error::failed(error.to_string()))
        }
        "json" => json::from_str(&text).map_err(|error| Error::failed(error.to_string())),
        "msgpack" => {
            let bytes = stream_or_string.as_bytes().unwrap_or_default();
            msgpack::from_slice(bytes, msgpack::Text::Typed)
                .map_err(|error| Error::failed(error.to_string()))
        }
        other => Err(unknown(other)),
    }
}

/// Return one text for true and another for false.
///
/// ```console
/// $ salt '*' slsutil.boolstr True yes no
/// ```
#[function]
pub fn boolstr(
    _cx: &Cx,
    /// The value.
    value: Value,
    /// For true.
    #[default("true".to_owned())]
    #[arg(name = "true")]
    yes: String,
    /// For false.
    #[default("false".to_owned())]
    #[arg(name = "false")]
    no: String,
) -> Result<String> {
    Ok(if value.truthy() { yes } else { no })
}

/// Return a comment block for the head of a managed file.
///
/// ```console
/// $ salt '*' slsutil.banner width=120 commentchar='//'
/// ```
#[function]
pub fn banner(
    _cx: &Cx,
    /// Columns.
    #[default(72)]
    width: i64,
    /// What begins a comment line.
    #[default("#".to_owned())]
    commentchar: String,
    /// What the frame's sides are drawn with.
    #[default("#".to_owned())]
    borderchar: String,
    /// Before the block.
    blockstart: Option<String>,
    /// After the block.
    blockend: Option<String>,
    /// The heading.
    title: Option<String>,
    /// The text.
    text: Option<String>,
    /// End with a line break.
    #[default(false)]
    newline: bool,
) -> Result<String> {
    let title = title.unwrap_or_else(|| "THIS FILE IS MANAGED BY SALT - DO NOT EDIT".into());
    let text = text.unwrap_or_else(|| {
        "The contents of this file are managed by Salt. Any changes to this file may be \
         overwritten automatically and without warning."
            .into()
    });
    let width = usize::try_from(width).unwrap_or(72);
    let ledge = commentchar.trim_end().to_owned();
    let redge: String = ledge.chars().rev().collect();
    let inner = width.saturating_sub(ledge.chars().count() + redge.chars().count());
    if inner < 4 || borderchar.is_empty() {
        return Err(Error::invalid("Width is too small to render banner"));
    }
    let border = borderchar.repeat(inner / borderchar.chars().count().max(1) + 1);
    let border: String = border.chars().take(inner).collect();
    let line = |text: &str, centred: bool| {
        let room = inner - 2;
        let body = if centred { format!("{text:^room$}") } else { format!("{text:<room$}") };
        format!("{ledge} {body} {redge}")
    };
    let mut lines = Vec::new();
    lines.extend(blockstart);
    lines.push(format!("{ledge}{border}{redge}"));
    lines.push(line("", false));
    lines.extend(wrapped(&title, inner - 2).iter().map(|text| line(text, true)));
    lines.push(line("", false));
    lines.extend(wrapped(&text, inner - 2).iter().map(|text| line(text, false)));
    lines.push(line("", false));
    lines.push(format!("{ledge}{border}{redge}"));
    lines.extend(blockend);
    let mut out = lines.join("\n");
    if newline {
        out.push('\n');
    }
    Ok(out)
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Tell whether a folder is on the file server.
///
/// ```console
/// $ salt '*' slsutil.dir_exists nginx/files
/// ```
#[function]
pub fn dir_exists(
    cx: &Cx,
    /// The path below the root.
    path: String,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<bool> {
    let path = path.trim_matches('/').to_owned();
    Ok(cx.files.list_dirs(&saltenv, "")?.contains(&path))
}

/// Tell whether a file is on the file server.
///
/// ```console
/// $ salt '*' slsutil.file_exists nginx/defaults.yaml
/// ```
#[function]
pub fn file_exists(
    cx: &Cx,
    /// The path below the root.
    path: String,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<bool> {
    Ok(cx.files.list(&saltenv, "")?.contains(&path))
}

/// Tell whether a file or folder is on the file server.
///
/// ```console
/// $ salt '*' slsutil.path_exists nginx/defaults.yaml
/// ```
#[function]
pub fn path_exists(
    cx: &Cx,
    /// The path below the root.
    path: String,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<bool> {
    Ok(file_exists(cx, path.clone(), saltenv.clone())? || dir_exists(cx, path, saltenv)?)
}

/// Find a file in a folder or the nearest one above it.
///
/// ```console
/// $ salt '*' slsutil.findup formulas/shared/nginx map.jinja
/// ```
#[function]
pub fn findup(
    cx: &Cx,
    /// Where to begin.
    startpath: String,
    /// A name, or several.
    filenames: Vec<String>,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<String> {
    let files = cx.files.list(&saltenv, "")?;
    let start = startpath.trim_matches('/');
    let mut folder = Path::new(start);
    if !start.is_empty() && !path_exists(cx, start.to_owned(), saltenv.clone())? {
        return Err(Error::invalid(format!("Starting path not found: {startpath}")));
    }
    loop {
        for name in &filenames {
            let path = folder.join(name).display().to_string();
            if files.contains(&path) {
                return Ok(path);
            }
        }
        match folder.parent() {
            Some(parent) => folder = parent,
            None => break,
        }
    }
    Err(Error::failed(format!(
        "File pattern(s) not found in path ancestry: {}",
        filenames.join(", ")
    )))
}
