//! Filters on text.

use halite_value::{SmolStr, Value};

use super::{Row, argument_error};
use crate::jinja::{
    call::{Args, Bound},
    error::{Error, type_error, value_error},
    eval::{Interp, Result},
    iter::char_count,
    methods,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("upper", "do_upper(s)", |interp, args| soft(interp, &args.take(0), str::to_uppercase)),
    ("lower", "do_lower(s)", |interp, args| soft(interp, &args.take(0), str::to_lowercase)),
    ("capitalize", "do_capitalize(s)", |interp, args| {
        soft(interp, &args.take(0), methods::str::capitalize)
    }),
    ("title", "do_title(s)", |interp, args| soft(interp, &args.take(0), title)),
    ("string", "soft_str(s)", |interp, args| {
        let value = args.take(0);
        Ok(if text_of(&value).is_some() { value } else { Value::Str(interp.str_of(&value)?) })
    }),
    ("trim", "do_trim(value, chars=)", |interp, args| {
        let value = args.take(0);
        let chars = args.take(1);
        method(interp, &value, "strip", vec![chars])
    }),
    ("center", "do_center(value, width=)", |interp, args| {
        let value = args.take(0);
        let width = args.opt(1).unwrap_or(Value::Int(80));
        method(interp, &value, "center", vec![width])
    }),
    ("replace", "do_replace(!eval_ctx, s, old, new, count=)", replace),
    ("format", "do_format(value, *args, **kwargs)", format),
    ("e", "escape(s)", |interp, args| escape(interp, &args.take(0)).map(markup)),
    ("escape", "escape(s)", |interp, args| escape(interp, &args.take(0)).map(markup)),
    ("forceescape", "do_forceescape(value)", |interp, args| {
        let text = interp.str_of(&args.take(0))?;
        Ok(markup(escape_html(&text)))
    }),
    ("safe", "do_mark_safe(value)", |interp, args| {
        let value = args.take(0);
        Ok(if is_markup(&value) { value } else { markup(interp.str_of(&value)?) })
    }),
    ("striptags", "do_striptags(value)", |interp, args| {
        let text = interp.str_of(&args.take(0))?;
        Ok(Value::from(strip_tags(&text)))
    }),
    ("indent", "do_indent(s, width=, first=, blank=)", indent),
    ("truncate", "do_truncate(!env, s, length=, killwords=, end=, leeway=)", truncate),
    (
        "wordwrap",
        "do_wordwrap(!environment, s, width=, break_long_words=, wrapstring=, break_on_hyphens=)",
        wordwrap,
    ),
    ("wordcount", "do_wordcount(s)", |interp, args| {
        let text = interp.str_of(&args.take(0))?;
        let words =
            text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        Ok(Value::from(words.count()))
    }),
    ("urlencode", "do_urlencode(value)", urlencode),
    (
        "urlize",
        "do_urlize(!eval_ctx, value, trim_url_limit=, nofollow=, target=, rel=, extra_schemes=)",
        urlize,
    ),
    ("xmlattr", "do_xmlattr(!eval_ctx, d, autospace=)", xmlattr),
    ("filesizeformat", "do_filesizeformat(value, binary=)", filesizeformat),
];

/// Applies a function to the text of a value; safe text stays safe.
fn soft(interp: &mut Interp<'_>, value: &Value, run: impl Fn(&str) -> String) -> Result<Value> {
    let text = interp.str_of(value)?;
    interp.burn(text.len() / 32)?;
    let text = run(&text);
    Ok(if is_markup(value) { markup(text) } else { Value::from(text) })
}

/// Calls a method of `str` on the text of a value.
fn method(interp: &mut Interp<'_>, value: &Value, name: &str, args: Vec<Value>) -> Result<Value> {
    let text =
        if text_of(value).is_some() { value.clone() } else { Value::Str(interp.str_of(value)?) };
    methods::call(interp, &text, name, Args::new(args))
}

/// Starts every word with a capital; unlike `str.title`, only white space and brackets end a word.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut starting = true;
    for c in text.chars() {
        let separator = c.is_whitespace() || matches!(c, '-' | '(' | '{' | '[' | '<');
        if starting && !separator {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        starting = separator;
    }
    out
}

fn replace(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let (value, old, new) = (args.take(0), args.take(1), args.take(2));
    let count = match args.opt(3) {
        None | Some(Value::Null) => -1,
        Some(count) => methods::index(&count)?,
    };
    let text = interp.str_of(&value)?;
    let (old, new) = (interp.str_of(&old)?, interp.str_of(&new)?);
    methods::str::replace_text(interp, &text, &old, &new, count).map(Value::from)
}

fn format(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let text = if text_of(&value).is_some() { value } else { Value::Str(interp.str_of(&value)?) };
    if !args.rest.is_empty() && !args.more.is_empty() {
        return Err(argument_error(
            "can't handle positional and keyword arguments at the same time",
        ));
    }
    let values = if args.more.is_empty() {
        interp.tuple(std::mem::take(&mut args.rest))?
    } else {
        Value::Dict(args.more.drain(..).collect())
    };
    interp.percent(&text, &values)
}

// ---- HTML

pub(crate) fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns the text of a value with what HTML would misread replaced, unless it is safe already.
pub(crate) fn escape(interp: &mut Interp<'_>, value: &Value) -> Result<String> {
    let text = interp.str_of(value)?;
    interp.room(text.len())?;
    Ok(if is_markup(value) { text.to_string() } else { escape_html(&text) })
}

pub(crate) fn escape_args(interp: &mut Interp<'_>, args: Args) -> Result<Args> {
    let mut one = |value: Value| -> Result<Value> {
        Ok(match &value {
            Value::List(_) | Value::Tuple(_) => {
                let mut items = Vec::new();
                for item in interp.collect(&value)? {
                    items.push(match text_of(&item) {
                        Some(_) => Value::from(escape(interp, &item)?),
                        None => item,
                    });
                }
                Value::from(items)
            }
            other if text_of(other).is_some() => Value::from(escape(interp, other)?),
            _ => value,
        })
    };
    Ok(Args {
        positional: args.positional.into_iter().map(&mut one).collect::<Result<_>>()?,
        keyword: args
            .keyword
            .into_iter()
            .map(|(name, value)| Ok((name, one(value)?)))
            .collect::<Result<_>>()?,
    })
}

pub(crate) fn strip_tags(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let tag = &rest[at..];
        let end = if tag.starts_with("<!--") {
            tag.find("-->").map(|end| end + 3)
        } else {
            tag.find('>').map(|end| end + 1)
        };
        match end {
            Some(end) => rest = &tag[end..],
            None => {
                out.push_str(tag);
                rest = "";
            }
        }
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split_whitespace().collect();
    unescape_html(&words.join(" "))
}

pub(crate) fn unescape_html(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(';').filter(|end| *end <= 10);
        let c = end.and_then(|end| match &rest[1..end] {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "nbsp" => Some('\u{a0}'),
            code => {
                let code = code.strip_prefix('#')?;
                let number = match code.strip_prefix(['x', 'X']) {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => code.parse().ok()?,
                };
                char::from_u32(number)
            }
        });
        match (c, end) {
            (Some(c), Some(end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            _ => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn xmlattr(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let autospace = args.opt(1).is_none_or(|value| value.truthy());
    let Value::Dict(dict) = &value else {
        let name = value.type_name();
        return Err(Error::new(
            crate::jinja::error::Class::AttributeError,
            format!("'{name}' object has no attribute 'items'"),
        ));
    };
    let mut items = Vec::new();
    for (key, value) in dict {
        if value.is_null() || undefined(&value).is_some() {
            continue;
        }
        let Some(key) = text_of(&key) else {
            let name = key.type_name();
            return Err(type_error(format!("expected string or bytes-like object, got '{name}'")));
        };
        if key.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '>' | '=')) {
            let key = halite_value::str_repr(key);
            return Err(value_error(format!("Invalid character in attribute name: {key}")));
        }
        let value = escape(interp, &value)?;
        items.push(format!("{}=\"{value}\"", escape_html(key)));
    }
    let text = items.join(" ");
    let escaping = interp.current.as_ref().is_some_and(|context| context.autoescape());
    let text = if autospace && !text.is_empty() { format!(" {text}") } else { text };
    Ok(if escaping { markup(text) } else { Value::from(text) })
}

// ---- layout

fn indent(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let width = args.opt(1).unwrap_or(Value::Int(4));
    let first = args.take(2).truthy();
    let blank = args.take(3).truthy();
    if let Some(undefined) = undefined(&value) {
        return Err(interp.undefined_error(undefined));
    }
    let Some(text) = text_of(&value) else {
        let name = value.type_name();
        return Err(type_error(format!("unsupported operand type(s) for +=: '{name}' and 'str'")));
    };
    let indention = match text_of(&width) {
        Some(text) => text.to_string(),
        None => {
            let width = methods::index(&width).map_err(|error| match &width {
                Value::BigInt(_) => error,
                other => type_error(format!(
                    "can't multiply sequence by non-int of type '{}'",
                    other.type_name()
                )),
            })?;
            let width = usize::try_from(width).unwrap_or(0);
            interp.room(width)?;
            " ".repeat(width)
        }
    };
    let lines = methods::str::split_lines(&format!("{text}\n"), false);
    interp.room(text.len() + lines.len().saturating_mul(indention.len()))?;
    let mut out = String::with_capacity(text.len() + lines.len() * indention.len());
    for (index, line) in lines.iter().enumerate() {
        let line = line.as_str().unwrap_or_default();
        if index > 0 {
            out.push('\n');
        }
        if (index > 0 && (blank || !line.is_empty())) || (index == 0 && first) {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(if is_markup(&value) { markup(out) } else { Value::from(out) })
}

fn truncate(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let length = args.opt(1).unwrap_or(Value::Int(255));
    let killwords = args.take(2).truthy();
    let end = match args.opt(3) {
        Some(end) => interp.str_of(&end)?,
        None => SmolStr::new("..."),
    };
    let leeway = match args.opt(4) {
        None | Some(Value::Null) => Value::Int(5),
        Some(leeway) => leeway,
    };
    let end_length = char_count(&end) as i64;
    let (number, slack) = (at_least(&length)?, at_least(&leeway)?);
    if number < end_length as f64 {
        return Err(Error::new(
            crate::jinja::error::Class::Other("AssertionError".into()),
            format!("expected length >= {end_length}, got {}", length.to_str()),
        ));
    }
    if slack < 0.0 {
        return Err(Error::new(
            crate::jinja::error::Class::Other("AssertionError".into()),
            format!("expected leeway >= 0, got {}", leeway.to_str()),
        ));
    }
    let count = interp.len(&value)?;
    if count as f64 <= number + slack {
        return Ok(value);
    }
    let length = crate::jinja::attrs::slice_bound(&length)?.unwrap_or(i64::MAX);
    let text = interp.str_of(&value)?;
    let cut: String =
        text.chars().take(usize::try_from(length - end_length).unwrap_or(0)).collect();
    let cut = if killwords {
        cut.as_str()
    } else {
        cut.rsplit_once(' ').map_or(&*cut, |(start, _)| start)
    };
    Ok(Value::from(format!("{cut}{end}")))
}

/// A number that Python only compares, so that it need not be whole.
fn at_least(value: &Value) -> Result<f64> {
    value.as_float().ok_or_else(|| {
        let name = value.type_name();
        type_error(format!("'>=' not supported between instances of '{name}' and 'int'"))
    })
}

fn wordwrap(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let width = args.opt(1).map(|width| methods::index(&width)).transpose()?.unwrap_or(79);
    let break_long = args.opt(2).is_none_or(|value| value.truthy());
    let wrap = match args.opt(3) {
        None | Some(Value::Null) => SmolStr::new("\n"),
        Some(wrap) => interp.str_of(&wrap)?,
    };
    let hyphens = args.opt(4).is_none_or(|value| value.truthy());
    if width <= 0 {
        return Err(value_error(format!("invalid width {width} (must be > 0)")));
    }
    let Some(text) = text_of(&value).cloned() else {
        if let Some(undefined) = undefined(&value) {
            return Err(interp.undefined_error(undefined));
        }
        return Err(Error::new(
            crate::jinja::error::Class::AttributeError,
            format!("'{}' object has no attribute 'splitlines'", value.type_name()),
        ));
    };
    interp.room(text.len().saturating_mul(2))?;
    let width = usize::try_from(width).unwrap_or(1);
    let lines: Vec<String> = methods::str::split_lines(&text, false)
        .iter()
        .map(|line| {
            wrap_line(line.as_str().unwrap_or_default(), width, break_long, hyphens).join(&wrap)
        })
        .collect();
    Ok(Value::from(lines.join(&wrap)))
}

/// Breaks a line as Python's `textwrap` does.
fn wrap_line(line: &str, width: usize, break_long: bool, hyphens: bool) -> Vec<String> {
    let mut chunks: std::collections::VecDeque<String> = chunks(line, hyphens).into();
    let mut lines = Vec::new();
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.front().is_some_and(|chunk| chunk.trim().is_empty()) {
            chunks.pop_front();
        }
        let mut current: Vec<String> = Vec::new();
        let mut length = 0;
        while let Some(chunk) = chunks.front() {
            let count = char_count(chunk);
            if length + count > width {
                break;
            }
            length += count;
            current.extend(chunks.pop_front());
        }
        if let Some(chunk) = chunks.front().filter(|chunk| char_count(chunk) > width) {
            if break_long {
                let space = (width - length).max(usize::from(width == 0));
                let cut = if hyphens && char_count(chunk) > space {
                    // After a hyphen that is not at the start, if there is one in reach.
                    let reach: String = chunk.chars().take(space).collect();
                    match reach.rfind('-') {
                        Some(at) if at > 0 && reach[..at].contains(|c| c != '-') => {
                            char_count(&reach[..=at])
                        }
                        _ => space,
                    }
                } else {
                    space
                };
                let chunk = chunks.pop_front().unwrap_or_default();
                let head: String = chunk.chars().take(cut).collect();
                let tail: String = chunk.chars().skip(cut).collect();
                if !head.is_empty() {
                    current.push(head);
                }
                if !tail.is_empty() {
                    chunks.push_front(tail);
                }
            } else if current.is_empty() {
                current.extend(chunks.pop_front());
            }
        }
        if current.last().is_some_and(|chunk| chunk.trim().is_empty()) {
            current.pop();
        }
        if current.is_empty() {
            if chunks.is_empty() {
                break;
            }
            continue;
        }
        lines.push(current.concat());
    }
    lines
}

fn chunks(line: &str, hyphens: bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut current = String::new();
    let chars: Vec<char> = line.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let space = c.is_whitespace();
        let turns = current.chars().next_back().is_some_and(|last| last.is_whitespace() != space);
        if turns {
            out.push(std::mem::take(&mut current));
        }
        current.push(*c);
        // A hyphen between letters ends a chunk.
        let letter =
            |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphabetic());
        if hyphens
            && *c == '-'
            && letter(at.checked_sub(1))
            && letter(at.checked_sub(2))
            && letter(Some(at + 1))
            && letter(Some(at + 2))
        {
            out.push(std::mem::take(&mut current));
        }
    }
    if !current.is_empty() {
        out.push(current);
    }
    out
}

fn filesizeformat(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let binary = args.take(1).truthy();
    let bytes = super::words::to_float(interp, &value)?;
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return Ok(Value::str("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::from(format!("{} Bytes", bytes.trunc())));
    }
    let prefixes = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    let mut unit = base;
    let mut shown = String::new();
    for prefix in prefixes {
        let size = bytes / unit;
        unit *= base;
        let prefix =
            if binary { format!("{}iB", prefix.to_uppercase()) } else { format!("{prefix}B") };
        shown = format!("{size:.1} {prefix}");
        if bytes < unit {
            break;
        }
    }
    Ok(Value::from(shown))
}

// ---- URLs

pub(crate) fn url_quote(text: &[u8], query: bool) -> String {
    let mut out = String::new();
    for &byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(char::from(byte));
            }
            b'/' if !query => out.push('/'),
            b' ' if query => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn urlencode(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let quote = |interp: &mut Interp<'_>, value: &Value, query| -> Result<String> {
        if let Value::Bytes(bytes) = value {
            return Ok(url_quote(bytes, query));
        }
        let text = interp.str_of(value)?;
        Ok(url_quote(text.as_bytes(), query))
    };
    let pairs = match &value {
        Value::Dict(dict) => dict
            .entries()
            .into_iter()
            .map(|(key, value)| Value::tuple([key.into_value(), value]))
            .collect(),
        Value::List(_) | Value::Tuple(_) => interp.collect(&value)?,
        other if text_of(other).is_none() && interp.iter(other).is_ok() => interp.collect(other)?,
        other => return quote(interp, other, false).map(Value::from),
    };
    let mut parts = Vec::new();
    for pair in pairs {
        let pair = interp.collect(&pair)?;
        let [key, value] = &pair[..] else {
            return Err(value_error(format!(
                "not enough values to unpack (expected 2, got {})",
                pair.len()
            )));
        };
        parts.push(format!("{}={}", quote(interp, key, true)?, quote(interp, value, true)?));
    }
    Ok(Value::from(parts.join("&")))
}

fn urlize(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let text = interp.str_of(&args.take(0))?;
    let limit = match args.opt(1) {
        None | Some(Value::Null) => None,
        Some(limit) => Some(limit),
    };
    let nofollow = args.take(2).truthy();
    let target = args.opt(3).filter(|target| !target.is_null());
    let mut rel: Vec<String> = match args.opt(4) {
        Some(rel) => interp.str_of(&rel)?.split_whitespace().map(ToString::to_string).collect(),
        None => Vec::new(),
    };
    if nofollow {
        rel.push("nofollow".into());
    }
    rel.push("noopener".into());
    rel.sort();
    rel.dedup();
    let rel = format!(" rel=\"{}\"", rel.join(" "));
    let target = match target {
        Some(target) => format!(" target=\"{}\"", escape(interp, &target)?),
        None => String::new(),
    };
    let shorten = |url: &str| -> Result<String> {
        let Some(limit) = &limit else { return Ok(url.to_owned()) };
        if char_count(url) as f64 <= at_least(limit)? {
            return Ok(url.to_owned());
        }
        let limit = crate::jinja::attrs::slice_bound(limit)?.unwrap_or(i64::MAX);
        let limit = usize::try_from(limit).unwrap_or(0);
        Ok(format!("{}...", url.chars().take(limit).collect::<String>()))
    };
    let escaped = escape_html(&text);
    let mut out = String::new();
    let mut rest = escaped.as_str();
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        out.push_str(&rest[..blank]);
        rest = &rest[blank..];
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        let start = word.find(|c: char| !matches!(c, '(' | '<')).unwrap_or(word.len());
        let (head, middle) = word.split_at(start);
        let trimmed = middle.trim_end_matches([')', '.', ',', '\n']);
        // A closing bracket belongs to the address if it was opened in it.
        let trimmed = if trimmed.matches('(').count() > trimmed.matches(')').count()
            && middle[trimmed.len()..].starts_with(')')
        {
            &middle[..=trimmed.len()]
        } else {
            trimmed
        };
        let after = &middle[trimmed.len()..];
        let link = if is_web(trimmed) {
            let shown = shorten(trimmed)?;
            let scheme = if trimmed.contains("://") { "" } else { "https://" };
            Some(format!("<a href=\"{scheme}{trimmed}\"{rel}{target}>{shown}</a>"))
        } else if is_mail(trimmed) {
            Some(format!("<a href=\"mailto:{trimmed}\">{trimmed}</a>"))
        } else {
            let mail = trimmed.strip_prefix("mailto:").filter(|mail| is_mail(mail));
            mail.map(|mail| format!("<a href=\"{trimmed}\">{mail}</a>"))
        };
        match link {
            Some(link) => out.push_str(&format!("{head}{link}{after}")),
            None => out.push_str(word),
        }
    }
    let escaping = interp.current.as_ref().is_some_and(|context| context.autoescape());
    Ok(if escaping { markup(out) } else { Value::from(out) })
}

/// Tells whether a word is an address of the web: with a scheme or `www.`, or with a known ending.
fn is_web(text: &str) -> bool {
    let lower = text.to_lowercase();
    let bare = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
    let marked = bare.is_some() || lower.starts_with("www.");
    let rest = bare.or_else(|| lower.strip_prefix("www.")).unwrap_or(&lower);
    let end = rest.find(['/', '?', '#', ':']).unwrap_or(rest.len());
    let (host, tail) = rest.split_at(end);
    if let Some(port) = tail.strip_prefix(':') {
        let digits = port.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0
            || digits > 5
            || !matches!(port[digits..].chars().next(), None | Some('/' | '?' | '#'))
        {
            return false;
        }
    }
    let labels: Vec<&str> = host.split('.').collect();
    let fine = |label: &&str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '%' | '-'))
    };
    let Some((last, front)) = labels.split_last() else { return false };
    if !front.iter().all(fine) {
        return false;
    }
    let letters = last.len() >= 2 && last.chars().all(|c| c.is_ascii_lowercase());
    let numbers = bare.is_some() && labels.len() == 4 && host.parse::<std::net::Ipv4Addr>().is_ok();
    let known = matches!(*last, "com" | "net" | "int" | "edu" | "gov" | "org" | "info" | "mil");
    if marked { letters || last.starts_with("xn--") || numbers } else { !front.is_empty() && known }
}

fn is_mail(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '%');
        !user.is_empty()
            && user.chars().all(plain)
            && host.contains('.')
            && !host.ends_with('.')
            && host.chars().all(plain)
    })
}
