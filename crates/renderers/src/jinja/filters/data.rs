//! Filters that write data as YAML, JSON, XML or Python, and read it again.

use halite_value::{
    Dict, Value, json,
    yaml::{self, DumpOptions},
};

use super::{Row, first_undefined, words::class_of};
use crate::jinja::{
    call::Bound,
    error::{Class, Error, type_error, value_error},
    eval::{Interp, Result},
    iter::char_count,
    methods,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("yaml", "SerializerExtension.format_yaml(!self, value, flow_style=)", |interp, args| {
        let value = args.take(0);
        let flow = args.opt(1).unwrap_or(Value::Bool(true));
        format_yaml(interp, &value, &flow)
    }),
    (
        "dict_to_sls_yaml_params",
        "SerializerExtension.dict_to_sls_yaml_params(!self, value, flow_style=)",
        |interp, args| {
            let value = args.take(0);
            let flow = args.opt(1).unwrap_or(Value::Bool(false));
            if let Some(undefined) = first_undefined(interp, &value) {
                return Ok(undefined);
            }
            let Value::Dict(dict) = &value else { return Err(no_items(&value)) };
            let params =
                dict.entries().into_iter().map(|entry| Value::Dict(Dict::from_iter([entry])));
            format_yaml(interp, &Value::list(params), &flow)
        },
    ),
    (
        "json",
        "SerializerExtension.format_json(!self, value, sort_keys=, indent=)",
        |interp, args| {
            let value = args.take(0);
            if let Some(undefined) = first_undefined(interp, &value) {
                return Ok(undefined);
            }
            let mut style =
                json::Style { sort_keys: true, ensure_ascii: false, ..json::Style::default() };
            if let Some(sort) = args.opt(1) {
                style.sort_keys = sort.truthy();
            }
            if let Some(indent) = args.opt(2) {
                set_indent(&mut style, &indent)?;
            }
            let text = to_json(interp, &value, &style, None)?;
            Ok(markup(text.trim()))
        },
    ),
    ("tojson", "tojson(val, indent=, **options)", tojson),
    ("xml", "SerializerExtension.format_xml(!self, value)", xml),
    ("python", "SerializerExtension.format_python(!self, value)", |interp, args| {
        let value = args.take(0);
        if let Some(undefined) = first_undefined(interp, &value) {
            return Ok(undefined);
        }
        Ok(markup(pretty(interp, &value)?.trim()))
    }),
    ("pprint", "do_pprint(value)", |interp, args| pretty(interp, &args.take(0)).map(Value::from)),
    ("load_yaml", "SerializerExtension.load_yaml(!self, value)", load_yaml),
    ("load_json", "SerializerExtension.load_json(!self, value)", load_json),
    ("load_text", "SerializerExtension.load_text(!self, value)", |interp, args| {
        let value = args.take(0);
        if let Some(undefined) = first_undefined(interp, &value) {
            return Ok(undefined);
        }
        Ok(match value.as_object::<Module>() {
            Some(module) => Value::Str(module.body.clone()),
            None => value,
        })
    }),
    ("yaml_dquote", "yaml_dquote(text)", |interp, args| {
        let text = interp.str_of(&args.take(0))?;
        interp.room(text.len())?;
        Ok(Value::from(yaml::dquote(&text)))
    }),
    ("yaml_squote", "yaml_squote(text)", |interp, args| {
        let text = interp.str_of(&args.take(0))?;
        interp.room(text.len())?;
        Ok(Value::from(yaml::squote(&text)))
    }),
    ("yaml_encode", "yaml_encode(data)", |interp, args| {
        let value = args.take(0);
        if let Some(undefined) = undefined(&value) {
            // PyYAML cannot represent it; in strict mode the message is ours.
            if undefined.strict {
                return Err(interp.undefined_error(undefined));
            }
        }
        match yaml::encode_scalar(&plain(&value)) {
            Some(text) => Ok(Value::from(text)),
            None => Err(type_error(format!(
                "yaml_encode() only works with YAML scalar data; failed for {}",
                class_of(&value)
            ))),
        }
    }),
];

fn no_items(value: &Value) -> Error {
    Error::new(
        Class::AttributeError,
        format!("'{}' object has no attribute 'items'", value.type_name()),
    )
}

fn format_yaml(interp: &mut Interp<'_>, value: &Value, flow: &Value) -> Result<Value> {
    if let Some(undefined) = first_undefined(interp, value) {
        return Ok(undefined);
    }
    let flow = if flow.is_null() { None } else { Some(interp.truthy(flow)?) };
    let options = DumpOptions { default_flow_style: flow, ..DumpOptions::default() };
    interp.burn(weight(value, 0))?;
    let text = yaml::dump(value, &options)
        .map_err(|error| Error::other("RepresenterError", error.to_string()))?;
    interp.room(text.len())?;
    let text = text.trim();
    Ok(markup(text.strip_suffix("\n...").unwrap_or(text)))
}

/// Returns roughly how much work a walk over the value is.
fn weight(value: &Value, depth: usize) -> usize {
    if depth > 100 {
        return 1;
    }
    match value {
        Value::List(list) => {
            list.read().iter().fold(1usize, |sum, item| sum.saturating_add(weight(item, depth + 1)))
        }
        Value::Tuple(items) => {
            items.iter().fold(1usize, |sum, item| sum.saturating_add(weight(item, depth + 1)))
        }
        Value::Dict(dict) => dict
            .read()
            .values()
            .fold(1usize, |sum, item| sum.saturating_add(weight(item, depth + 1))),
        Value::Str(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

fn set_indent(style: &mut json::Style, indent: &Value) -> Result<()> {
    style.indent = match indent {
        Value::Null => None,
        other => Some(usize::try_from(methods::index(other)?).unwrap_or(0).min(64)),
    };
    Ok(())
}

fn to_json(
    interp: &mut Interp<'_>,
    value: &Value,
    style: &json::Style,
    separators: Option<(String, String)>,
) -> Result<String> {
    interp.burn(weight(value, 0))?;
    if style.sort_keys {
        check_keys(interp, value, 0)?;
    }
    let value = plain(value);
    let text = json::to_string_styled(&value, style).map_err(|error| match error {
        json::WriteError::TooDeep => value_error("Circular reference detected"),
        other => type_error(other.to_string()),
    })?;
    interp.room(text.len())?;
    Ok(match separators {
        None => text,
        // Written with a mark that no JSON text holds, then replaced.
        Some((item, key)) => text.replace('\u{1}', &item).replace('\u{2}', &key),
    })
}

/// Python sorts keys before it turns them into text: mixed types are an error.
fn check_keys(interp: &mut Interp<'_>, value: &Value, depth: usize) -> Result<()> {
    if depth > 400 {
        return Ok(());
    }
    match value {
        Value::Dict(dict) => {
            let entries = dict.entries();
            if !entries.iter().all(|(key, _)| text_of(key).is_some()) {
                let keyed =
                    entries.iter().map(|(key, _)| (key.value().clone(), Value::Null)).collect();
                interp.sort(keyed, false)?;
            }
            entries.iter().try_for_each(|(_, value)| check_keys(interp, value, depth + 1))
        }
        Value::List(list) => {
            list.to_vec().iter().try_for_each(|item| check_keys(interp, item, depth + 1))
        }
        Value::Tuple(items) => {
            items.iter().try_for_each(|item| check_keys(interp, item, depth + 1))
        }
        _ => Ok(()),
    }
}

fn tojson(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if let Some(undefined) = first_undefined(interp, &value) {
        return Ok(undefined);
    }
    let mut style = json::Style::default();
    if let Some(indent) = args.opt(1) {
        set_indent(&mut style, &indent)?;
    }
    let mut separators = None;
    for (name, option) in &args.more {
        match name.as_str() {
            "sort_keys" => style.sort_keys = option.truthy(),
            "ensure_ascii" => style.ensure_ascii = option.truthy(),
            "separators" if !option.is_null() => {
                let pair = interp.collect(option)?;
                let [item, key] = &pair[..] else {
                    return Err(value_error("not enough values to unpack (expected 2)"));
                };
                separators =
                    Some((interp.str_of(item)?.to_string(), interp.str_of(key)?.to_string()));
                style.item_separator = "\u{1}";
                style.key_separator = "\u{2}";
            }
            "separators" | "allow_nan" | "check_circular" | "skipkeys" | "default" | "cls" => {}
            other => {
                return Err(type_error(format!(
                    "JSONEncoder.__init__() got an unexpected keyword argument '{other}'"
                )));
            }
        }
    }
    let text = to_json(interp, &value, &style, separators)?;
    Ok(Value::from(
        text.replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\'', "\\u0027"),
    ))
}

fn load_yaml(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if let Some(undefined) = first_undefined(interp, &value) {
        return Ok(undefined);
    }
    let text = match (&value, value.as_object::<Module>()) {
        (_, Some(module)) => module.body.clone(),
        (Value::Bytes(bytes), _) => String::from_utf8_lossy(bytes).into(),
        _ => match text_of(&value) {
            Some(text) => text.clone(),
            None => return Err(type_error("a string or stream input is required")),
        },
    };
    interp.room(text.len() * 16)?;
    yaml::load_str(&text).map_err(|error| {
        let text = format!("Encountered error loading yaml: {error}");
        let told = Error::new(Class::TemplateRuntimeError, text);
        // Salt calls an imported file «a text».
        let name = value.as_object::<Module>().and_then(|module| module.name.clone());
        match name.zip(error.mark()) {
            Some((name, mark)) => told.with_note(format!("see {name}, line {}", mark.line + 1)),
            None => told,
        }
    })
}

fn load_json(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if let Some(undefined) = first_undefined(interp, &value) {
        return Ok(undefined);
    }
    let text = match (&value, value.as_object::<Module>()) {
        (_, Some(module)) => Some(module.body.clone()),
        (Value::Bytes(bytes), _) => std::str::from_utf8(bytes).ok().map(Into::into),
        _ => text_of(&value).cloned(),
    };
    let shown = match &text {
        Some(text) => text.clone(),
        None => interp.str_of(&value)?,
    };
    interp.room(shown.len() * 16)?;
    let told =
        || Error::new(Class::TemplateRuntimeError, format!("Unable to load json from {shown}"));
    let Some(text) = text else { return Err(told()) };
    json::from_str(&text).map_err(|error| {
        // Salt shows the text alone.
        let name = value.as_object::<Module>().and_then(|module| module.name.clone());
        told().with_note(match name {
            Some(name) => format!("see {name}, line {}: {}", error.line, error.message),
            None => error.to_string(),
        })
    })
}

// ---- XML

struct Element {
    tag: String,
    attributes: Vec<(String, String)>,
    text: Option<String>,
    children: Vec<Element>,
}

fn xml(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if let Some(undefined) = first_undefined(interp, &value) {
        return Ok(undefined);
    }
    let mut top: Vec<Element> = Vec::new();
    let pairs = xml_pairs(interp, &value)?;
    elements(interp, pairs, &mut top, 0)?;
    // Every entry of the outermost dict starts a document; the last one is shown.
    let Some(root) = top.pop() else {
        return Err(type_error("'NoneType' object is not iterable"));
    };
    let mut out = String::from("<?xml version=\"1.0\" ?>\n");
    write_element(&root, 0, &mut out);
    interp.room(out.len())?;
    Ok(markup(out))
}

fn xml_pairs(interp: &mut Interp<'_>, value: &Value) -> Result<Vec<Value>> {
    match value {
        Value::Dict(dict) => Ok(View { dict: dict.clone(), kind: ViewKind::Items }.to_vec()),
        Value::List(_) | Value::Tuple(_) => {
            let items = interp.collect(value)?;
            match items.first() {
                None => Err(Error::new(Class::IndexError, "list index out of range")),
                Some(first) if text_of(first).is_some() => Ok(items),
                Some(_) => Ok(Vec::new()),
            }
        }
        _ => Err(Error::new(
            Class::TemplateRuntimeError,
            "Value is not a dict or list. Cannot render as XML",
        )),
    }
}

fn elements(
    interp: &mut Interp<'_>,
    pairs: Vec<Value>,
    into: &mut Vec<Element>,
    depth: usize,
) -> Result<()> {
    if depth > 100 {
        return Err(crate::jinja::ops::recursion("while rendering XML"));
    }
    for pair in pairs {
        interp.step()?;
        let pair = interp.collect(&pair)?;
        let [tag, attributes] = &pair[..] else {
            let count = pair.len();
            return Err(value_error(if count > 2 {
                "too many values to unpack (expected 2)".to_owned()
            } else {
                format!("not enough values to unpack (expected 2, got {count})")
            }));
        };
        let Some(name) = text_of(tag).map(ToString::to_string) else {
            return Err(type_error(format!(
                "cannot serialize {} (type {})",
                tag.repr(),
                tag.type_name()
            )));
        };
        if let Value::List(items) = attributes {
            for item in items {
                elements(interp, vec![Value::tuple([tag.clone(), item])], into, depth + 1)?;
            }
            // Salt goes on with the list itself, which adds nothing more if its items are no texts.
            let rest = xml_pairs(interp, attributes)?;
            if let Some(first) = rest.first().and_then(text_of) {
                return Err(match char_count(first) {
                    0 | 1 => Error::new(Class::IndexError, "string index out of range"),
                    _ => type_error("'NoneType' object is not iterable"),
                });
            }
            continue;
        }
        let mut element =
            Element { tag: name, attributes: Vec::new(), text: None, children: Vec::new() };
        match attributes {
            Value::Int(_) | Value::BigInt(_) | Value::Bool(_) | Value::Float(_) => {
                element.text = Some(attributes.to_str().to_string());
                into.push(element);
                continue;
            }
            other if text_of(other).is_some() => {
                element.text = Some(other.to_str().to_string());
                into.push(element);
                continue;
            }
            _ => {}
        }
        if let Value::Dict(dict) = attributes {
            for (key, value) in dict {
                if !matches!(value, Value::Dict(_) | Value::List(_)) {
                    let value = interp.str_of(&value)?;
                    element.attributes.push((key.to_string(), value.to_string()));
                }
            }
        }
        let nested: Vec<Value> = xml_pairs(interp, attributes)?
            .into_iter()
            .filter(|pair| {
                matches!(pair, Value::Tuple(items) if items.len() > 1
                    && matches!(items[1], Value::Dict(_) | Value::List(_)))
            })
            .collect();
        elements(interp, nested, &mut element.children, depth + 1)?;
        into.push(element);
    }
    Ok(())
}

fn write_element(element: &Element, depth: usize, out: &mut String) {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let indent = " ".repeat(depth);
    out.push_str(&format!("{indent}<{}", element.tag));
    for (name, value) in &element.attributes {
        let value = escape(value).replace('"', "&quot;");
        out.push_str(&format!(" {name}=\"{value}\""));
    }
    match (&element.text, element.children.is_empty()) {
        (None, true) => out.push_str("/>\n"),
        (Some(text), true) if text.is_empty() => out.push_str("/>\n"),
        (Some(text), true) => out.push_str(&format!(">{}</{}>\n", escape(text), element.tag)),
        (_, false) => {
            out.push_str(">\n");
            for child in &element.children {
                write_element(child, depth + 1, out);
            }
            out.push_str(&format!("{indent}</{}>\n", element.tag));
        }
    }
}

// ---- pprint

const WIDTH: usize = 80;

/// Python's `pprint.pformat`: on one line if it fits, broken and aligned otherwise.
fn pretty(interp: &mut Interp<'_>, value: &Value) -> Result<String> {
    let mut printer = Printer { interp, out: String::new() };
    printer.write(value, 0, 0, 1)?;
    let out = printer.out;
    Ok(out)
}

struct Printer<'a, 'e> {
    interp: &'a mut Interp<'e>,
    out: String,
}

impl Printer<'_, '_> {
    /// `repr`, with the keys of dicts in order.
    fn flat(&mut self, value: &Value, depth: usize) -> Result<String> {
        if depth > 200 {
            return Err(crate::jinja::ops::recursion("while pretty-printing"));
        }
        self.interp.step()?;
        Ok(match value {
            Value::Dict(dict) if dict.is_ordered() => value.repr_by_kind(),
            Value::Dict(dict) => {
                let mut parts = Vec::new();
                for (key, value) in self.sorted(dict)? {
                    parts.push(format!(
                        "{}: {}",
                        self.flat(&key, depth + 1)?,
                        self.flat(&value, depth + 1)?
                    ));
                }
                format!("{{{}}}", parts.join(", "))
            }
            Value::List(_) | Value::Tuple(_) => {
                let items = self.interp.collect(value)?;
                let mut parts = Vec::new();
                for item in &items {
                    parts.push(self.flat(item, depth + 1)?);
                }
                let inner = parts.join(", ");
                match (value, parts.len()) {
                    (Value::List(_), _) => format!("[{inner}]"),
                    (_, 1) => format!("({inner},)"),
                    _ => format!("({inner})"),
                }
            }
            other => other.repr(),
        })
    }

    fn sorted(&mut self, dict: &Dict) -> Result<Vec<(Value, Value)>> {
        let entries = dict.entries();
        let keyed: Vec<(Value, Value)> = entries
            .iter()
            .map(|(key, value)| {
                (key.value().clone(), Value::tuple([key.value().clone(), value.clone()]))
            })
            .collect();
        // Keys that cannot be compared are ordered by their type, as Python's `_safe_key` does.
        let sorted = self.interp.sort(keyed, false).or_else(|_| {
            let keyed = entries
                .iter()
                .map(|(key, value)| {
                    let by = Value::from(format!("{}{}", class_of(key), key.repr()));
                    (by, Value::tuple([key.value().clone(), value.clone()]))
                })
                .collect();
            self.interp.sort(keyed, false)
        })?;
        Ok(sorted
            .into_iter()
            .filter_map(|pair| match pair {
                Value::Tuple(pair) => Some((pair[0].clone(), pair[1].clone())),
                _ => None,
            })
            .collect())
    }

    fn write(
        &mut self,
        value: &Value,
        indent: usize,
        allowance: usize,
        level: usize,
    ) -> Result<()> {
        let flat = self.flat(value, 0)?;
        self.interp.room(self.out.len() / 16)?;
        if char_count(&flat) <= WIDTH.saturating_sub(indent + allowance) || level > 100 {
            self.out.push_str(&flat);
            return Ok(());
        }
        match value {
            Value::Dict(dict) if dict.is_ordered() => {
                let open = "OrderedDict(";
                self.out.push_str(open);
                let items =
                    dict.into_iter().map(|(key, value)| Value::tuple([key.into_value(), value]));
                let items = Value::list(items.collect::<Vec<_>>());
                self.write(&items, indent + open.len(), allowance + 1, level + 1)?;
                self.out.push(')');
            }
            Value::Dict(dict) if !dict.is_empty() => {
                self.out.push('{');
                let entries = self.sorted(dict)?;
                let last = entries.len() - 1;
                for (at, (key, value)) in entries.iter().enumerate() {
                    let key = self.flat(key, 0)?;
                    self.out.push_str(&key);
                    self.out.push_str(": ");
                    let allowance = if at == last { allowance + 1 } else { 1 };
                    self.write(value, indent + 1 + char_count(&key) + 2, allowance, level + 1)?;
                    if at < last {
                        self.out.push_str(",\n");
                        self.out.push_str(&" ".repeat(indent + 1));
                    }
                }
                self.out.push('}');
            }
            Value::List(_) | Value::Tuple(_) => {
                let items = self.interp.collect(value)?;
                let (open, close) = match (value, items.len()) {
                    (Value::List(_), _) => ("[", "]"),
                    (_, 1) => ("(", ",)"),
                    _ => ("(", ")"),
                };
                self.out.push_str(open);
                let last = items.len().saturating_sub(1);
                for (at, item) in items.iter().enumerate() {
                    let allowance = if at == last { allowance + close.len() } else { 1 };
                    self.write(item, indent + 1, allowance, level + 1)?;
                    if at < last {
                        self.out.push_str(",\n");
                        self.out.push_str(&" ".repeat(indent + 1));
                    }
                }
                self.out.push_str(close);
            }
            Value::Str(text) => self.write_text(text, indent, allowance, level),
            _ => self.out.push_str(&flat),
        }
        Ok(())
    }

    fn write_text(&mut self, text: &str, indent: usize, allowance: usize, level: usize) {
        let (indent, allowance) =
            if level == 1 { (indent + 1, allowance + 1) } else { (indent, allowance) };
        let width = WIDTH.saturating_sub(indent);
        let lines = methods::str::split_lines(text, true);
        let mut chunks: Vec<String> = Vec::new();
        let mut last_repr = String::new();
        for (at, line) in lines.iter().enumerate() {
            let line = line.as_str().unwrap_or_default();
            let last_line = at + 1 == lines.len();
            last_repr = halite_value::str_repr(line);
            let room = if last_line { width.saturating_sub(allowance) } else { width };
            if char_count(&last_repr) <= room {
                chunks.push(last_repr.clone());
                continue;
            }
            let parts = words_with_space(line);
            let mut current = String::new();
            for (index, part) in parts.iter().enumerate() {
                let candidate = format!("{current}{part}");
                let last_part = last_line && index + 1 == parts.len();
                let room = if last_part { width.saturating_sub(allowance) } else { width };
                if char_count(&halite_value::str_repr(&candidate)) > room {
                    if !current.is_empty() {
                        chunks.push(halite_value::str_repr(&current));
                    }
                    current = (*part).to_owned();
                } else {
                    current = candidate;
                }
            }
            if !current.is_empty() {
                chunks.push(halite_value::str_repr(&current));
            }
        }
        if chunks.len() == 1 {
            self.out.push_str(&last_repr);
            return;
        }
        if level == 1 {
            self.out.push('(');
        }
        self.out.push_str(&chunks.join(&format!("\n{}", " ".repeat(indent))));
        if level == 1 {
            self.out.push(')');
        }
    }
}

/// Splits into words, each with the white space that follows it.
fn words_with_space(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let space = rest[word..].len() - rest[word..].trim_start().len();
        let (part, tail) = rest.split_at(word + space);
        parts.push(part);
        rest = tail;
    }
    parts
}
