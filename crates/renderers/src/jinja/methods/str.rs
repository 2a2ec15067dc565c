//! Methods of `str`.

use halite_value::{SmolStr, Value};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::{Pos, index};
use crate::jinja::{
    call::{Args, Signature},
    error::{Class, Error, type_error, value_error},
    eval::{Interp, Result},
    iter::char_count,
    lexer::is_identifier,
    objects::*,
};

method_names! {
    "capitalize" "casefold" "center" "count" "encode" "endswith" "expandtabs" "find" "format"
    "format_map" "index" "isalnum" "isalpha" "isascii" "isdecimal" "isdigit" "isidentifier"
    "islower" "isnumeric" "isprintable" "isspace" "istitle" "isupper" "join" "ljust" "lower"
    "lstrip" "maketrans" "partition" "removeprefix" "removesuffix" "replace" "rfind" "rindex"
    "rjust" "rpartition" "rsplit" "rstrip" "split" "splitlines" "startswith" "strip" "swapcase"
    "title" "translate" "upper" "zfill"
}

pub(crate) fn call(
    interp: &mut Interp<'_>,
    text: &SmolStr,
    name: &str,
    args: Args,
) -> Result<Value> {
    // Every method looks at the whole text at least once.
    interp.burn(text.len() / 32)?;
    let none = |name: &'static str, args: Args| Pos::new("str", name, args, 0, 0).map(|_| ());
    macro_rules! plain {
        ($name:literal, $value:expr) => {{
            none($name, args)?;
            Ok(Value::from($value))
        }};
    }
    match name {
        "upper" => plain!("upper", text.to_uppercase()),
        "lower" => plain!("lower", text.to_lowercase()),
        "title" => plain!("title", title(text)),
        "capitalize" => plain!("capitalize", capitalize(text)),
        "swapcase" => plain!("swapcase", swapcase(text)),
        "casefold" => plain!("casefold", casefold(text)),
        "isalnum" => plain!("isalnum", all(text, char::is_alphanumeric)),
        "isalpha" => plain!("isalpha", all(text, char::is_alphabetic)),
        "isascii" => plain!("isascii", text.is_ascii()),
        "isdecimal" => plain!("isdecimal", all(text, is_decimal)),
        "isdigit" => plain!("isdigit", all(text, is_digit)),
        "isnumeric" => plain!("isnumeric", all(text, char::is_numeric)),
        "isidentifier" => plain!("isidentifier", is_identifier(text)),
        "islower" => plain!("islower", is_case(text, char::is_lowercase, char::is_uppercase)),
        "isupper" => plain!("isupper", is_case(text, char::is_uppercase, char::is_lowercase)),
        "isprintable" => plain!("isprintable", text.chars().all(is_printable)),
        "isspace" => plain!("isspace", all(text, is_space)),
        "istitle" => plain!("istitle", is_title(text)),
        "strip" | "lstrip" | "rstrip" => strip(text, name, args),
        "split" | "rsplit" => split(interp, text, name == "rsplit", args),
        "splitlines" => {
            let mut bound = Signature::new("splitlines(keepends=)").bind(args)?;
            let keep = bound.take(0).truthy();
            Ok(Value::list(split_lines(text, keep)))
        }
        "join" => join(interp, text, args),
        "replace" => replace(interp, text, args),
        "startswith" | "endswith" => starts_or_ends(text, name == "startswith", args),
        "find" | "rfind" | "index" | "rindex" => find(text, name, args),
        "count" => {
            let mut pos = Pos::find("count", args)?;
            let part = pos.take();
            let (range, _) = window(text, &mut pos)?;
            let part = substring(&part)?;
            Ok(Value::from(range.map_or(0, |range| {
                let piece = &text[range];
                if part.is_empty() {
                    char_count(piece) + 1
                } else {
                    piece.matches(part.as_str()).count()
                }
            })))
        }
        "center" | "ljust" | "rjust" => pad(interp, text, name, args),
        "zfill" => {
            let mut pos = Pos::new("str", "zfill", args, 1, 1)?;
            let width = index(&pos.take())?;
            let missing = usize::try_from(width).unwrap_or(0).saturating_sub(char_count(text));
            interp.room(missing)?;
            let (sign, digits) = match text.strip_prefix(['+', '-']) {
                Some(digits) => (&text[..1], digits),
                None => ("", text.as_str()),
            };
            Ok(Value::from(format!("{sign}{}{digits}", "0".repeat(missing))))
        }
        "partition" | "rpartition" => partition(text, name == "partition", args),
        "removeprefix" | "removesuffix" => {
            let prefix = name == "removeprefix";
            let mut pos =
                Pos::new("str", if prefix { "removeprefix" } else { "removesuffix" }, args, 1, 1)?;
            let part = pos.text(|got| format!("{name}() argument must be str, not {got}"))?;
            let rest = if prefix {
                text.strip_prefix(part.as_str())
            } else {
                text.strip_suffix(part.as_str())
            };
            Ok(rest.map_or_else(|| Value::Str(text.clone()), Value::str))
        }
        "expandtabs" => {
            let mut bound = Signature::new("expandtabs(tabsize=)").bind(args)?;
            let size = bound.opt(0).map(|size| index(&size)).transpose()?.unwrap_or(8);
            expand_tabs(interp, text, size)
        }
        "encode" => encode(text, args),
        "format" => interp.format(text, &args.positional, &args.keyword),
        "format_map" => {
            let mut pos = Pos::new("str", "format_map", args, 1, 1)?;
            let map = pos.take();
            interp.format_map(text, &map)
        }
        "maketrans" => make_trans(interp, args),
        "translate" => {
            let mut pos = Pos::new("str", "translate", args, 1, 1)?;
            let table = pos.take();
            translate(interp, text, &table)
        }
        _ => Err(Error::new(
            Class::AttributeError,
            format!("'str' object has no attribute '{name}'"),
        )),
    }
}

fn all(text: &str, test: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(test)
}

pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn is_decimal(c: char) -> bool {
    c.general_category() == GeneralCategory::DecimalNumber
}

fn is_digit(c: char) -> bool {
    // Superscripts, subscripts and circled digits are digits to Python, though not decimals.
    is_decimal(c)
        || matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⑴'..='⑼' | '⒈'..='⒐')
}

fn is_printable(c: char) -> bool {
    use GeneralCategory as G;
    c == ' '
        || !matches!(
            c.general_category(),
            G::Control
                | G::Format
                | G::Surrogate
                | G::PrivateUse
                | G::Unassigned
                | G::LineSeparator
                | G::ParagraphSeparator
                | G::SpaceSeparator
        )
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase()
}

fn is_case(text: &str, want: impl Fn(char) -> bool, bar: impl Fn(char) -> bool) -> bool {
    text.chars().any(want) && !text.chars().any(bar)
}

fn is_title(text: &str) -> bool {
    let mut after_cased = false;
    let mut any = false;
    for c in text.chars() {
        if c.is_uppercase() {
            if after_cased {
                return false;
            }
            (after_cased, any) = (true, true);
        } else if c.is_lowercase() {
            if !after_cased {
                return false;
            }
            any = true;
        } else {
            after_cased = false;
        }
    }
    any
}

pub(crate) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_cased = false;
    for c in text.chars() {
        if after_cased {
            out.extend(c.to_lowercase());
        } else {
            push_title(&mut out, c);
        }
        after_cased = is_cased(c);
    }
    out
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => {
            let mut out = String::with_capacity(text.len());
            push_title(&mut out, first);
            out + &chars.as_str().to_lowercase()
        }
        None => String::new(),
    }
}

/// Appends the title case of a letter: of what one letter expands to, only the first is a capital.
fn push_title(out: &mut String, c: char) {
    match c {
        'ǆ' | 'Ǆ' | 'ǅ' => out.push('ǅ'),
        'ǉ' | 'Ǉ' | 'ǈ' => out.push('ǈ'),
        'ǌ' | 'Ǌ' | 'ǋ' => out.push('ǋ'),
        'ǳ' | 'Ǳ' | 'ǲ' => out.push('ǲ'),
        c => {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            upper.for_each(|c| out.extend(c.to_lowercase()));
        }
    }
}

fn swapcase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() { out.extend(c.to_lowercase()) } else { out.extend(c.to_uppercase()) }
    }
    out
}

fn casefold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'ß' | 'ẞ' => out.push_str("ss"),
            'ſ' => out.push('s'),
            'ς' => out.push('σ'),
            'ŉ' => out.push_str("ʼn"),
            'ﬁ' => out.push_str("fi"),
            'ﬂ' => out.push_str("fl"),
            'ﬀ' => out.push_str("ff"),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

fn strip(text: &SmolStr, name: &str, args: Args) -> Result<Value> {
    let own: &'static str = match name {
        "strip" => "strip",
        "lstrip" => "lstrip",
        _ => "rstrip",
    };
    let mut pos = Pos::new("str", own, args, 0, 1)?;
    let set: Option<SmolStr> = match pos.next() {
        None | Some(Value::Null) => None,
        Some(value) => match text_of(&value) {
            Some(set) => Some(set.clone()),
            None => return Err(type_error(format!("{own} arg must be None or str"))),
        },
    };
    let cut = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(c));
    let text = text.as_str();
    Ok(Value::str(match own {
        "strip" => text.trim_matches(cut),
        "lstrip" => text.trim_start_matches(cut),
        _ => text.trim_end_matches(cut),
    }))
}

fn split(interp: &mut Interp<'_>, text: &SmolStr, from_right: bool, args: Args) -> Result<Value> {
    let name = if from_right { "rsplit(sep=, maxsplit=)" } else { "split(sep=, maxsplit=)" };
    let (separator, most) = if args.keyword.is_empty() && args.positional.len() <= 2 {
        let mut given = args.positional.into_iter();
        (given.next(), given.next())
    } else {
        let mut bound = Signature::new(name).bind(args)?;
        (bound.opt(0), bound.opt(1))
    };
    let most = most.map(|most| index(&most)).transpose()?.unwrap_or(-1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let parts: Vec<Value> = match separator {
        None | Some(Value::Null) => split_space(text, most, from_right),
        Some(separator) => {
            let Some(separator) = text_of(&separator) else {
                return Err(type_error(format!(
                    "must be str or None, not {}",
                    separator.type_name()
                )));
            };
            if separator.is_empty() {
                return Err(value_error("empty separator"));
            }
            let separator = separator.as_str();
            let most = most.saturating_add(1);
            if from_right {
                let mut parts: Vec<Value> = text.rsplitn(most, separator).map(Value::str).collect();
                parts.reverse();
                parts
            } else {
                text.splitn(most, separator).map(Value::str).collect()
            }
        }
    };
    interp.burn(parts.len())?;
    Ok(Value::from(parts))
}

fn split_space(text: &str, most: usize, from_right: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut rest = if from_right {
        text.trim_end_matches(is_space)
    } else {
        text.trim_start_matches(is_space)
    };
    while !rest.is_empty() {
        if parts.len() == most {
            let last = if from_right {
                rest.trim_start_matches(is_space)
            } else {
                rest.trim_end_matches(is_space)
            };
            // Only the outer side is trimmed when the number of splits is used up.
            let _ = last;
            parts.push(Value::str(rest));
            break;
        }
        let found = if from_right { rest.rfind(is_space) } else { rest.find(is_space) };
        match found {
            None => {
                parts.push(Value::str(rest));
                break;
            }
            Some(at) if from_right => {
                let width = rest[at..].chars().next().map_or(1, char::len_utf8);
                parts.push(Value::str(&rest[at + width..]));
                rest = rest[..at].trim_end_matches(is_space);
            }
            Some(at) => {
                parts.push(Value::str(&rest[..at]));
                rest = rest[at..].trim_start_matches(is_space);
            }
        }
    }
    if from_right {
        parts.reverse();
    }
    parts
}

/// Splits as `str.splitlines`: at more than line feeds.
pub(crate) fn split_lines(text: &str, keep: bool) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut from = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(
            c,
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        ) {
            continue;
        }
        let mut end = at + c.len_utf8();
        if c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n') {
            chars.next();
            end += 1;
        }
        lines.push(Value::str(&text[from..if keep { end } else { at }]));
        from = end;
    }
    if from < text.len() {
        lines.push(Value::str(&text[from..]));
    }
    lines
}

fn join(interp: &mut Interp<'_>, text: &SmolStr, args: Args) -> Result<Value> {
    let mut pos = Pos::new("str", "join", args, 1, 1)?;
    let iterable = pos.take();
    let items = interp.collect(&iterable).map_err(|error| {
        if *error.class() == Class::TypeError {
            type_error("can only join an iterable")
        } else {
            error
        }
    })?;
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        let Some(item) = text_of(item) else {
            let got = item.type_name();
            return Err(type_error(format!(
                "sequence item {index}: expected str instance, {got} found"
            )));
        };
        if index > 0 {
            out.push_str(text);
        }
        out.push_str(item);
    }
    interp.room(out.len())?;
    Ok(Value::from(out))
}

fn replace(interp: &mut Interp<'_>, text: &SmolStr, args: Args) -> Result<Value> {
    let mut pos = Pos::new("str", "replace", args, 2, 3)?;
    let old = pos.text(|got| format!("replace() argument 1 must be str, not {got}"))?;
    let new = pos.text(|got| format!("replace() argument 2 must be str, not {got}"))?;
    let count = match pos.next() {
        Some(count) => index(&count)?,
        None => -1,
    };
    replace_text(interp, text, &old, &new, count).map(Value::from)
}

pub(crate) fn replace_text(
    interp: &mut Interp<'_>,
    text: &str,
    old: &str,
    new: &str,
    count: i64,
) -> Result<String> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    // One character is found many times faster than a text of one character.
    if let [only @ 0..128] = old.as_bytes() {
        let only = char::from(*only);
        let found = text.matches(only).count();
        interp.room(text.len() + found.min(most).saturating_mul(new.len()))?;
        return Ok(text.replacen(only, new, most));
    }
    let found = if old.is_empty() { char_count(text) + 1 } else { text.matches(old).count() };
    interp.room(text.len() + found.min(most).saturating_mul(new.len()))?;
    Ok(text.replacen(old, new, most))
}

/// Reads optional start and end arguments as a byte range; `None` when it is empty the wrong way
/// round. Also returns the start in characters.
fn window(text: &str, pos: &mut Pos) -> Result<(Option<std::ops::Range<usize>>, usize)> {
    let length = char_count(text) as i64;
    let (start, end) = (pos.bound()?.unwrap_or(0), pos.bound()?.unwrap_or(i64::MAX));
    let from_end = |at: i64| if at < 0 { (at + length).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(length));
    if start > end {
        return Ok((None, 0));
    }
    let byte = |at: i64| {
        if text.is_ascii() {
            at as usize
        } else {
            text.char_indices().nth(at as usize).map_or(text.len(), |(at, _)| at)
        }
    };
    Ok((Some(byte(start)..byte(end)), start as usize))
}

fn substring(part: &Value) -> Result<&SmolStr> {
    text_of(part).ok_or_else(|| type_error(format!("must be str, not {}", part.type_name())))
}

fn starts_or_ends(text: &SmolStr, starts: bool, args: Args) -> Result<Value> {
    let name = if starts { "startswith" } else { "endswith" };
    let mut pos = Pos::find(name, args)?;
    let what = pos.take();
    let (range, _) = window(text, &mut pos)?;
    let test = |part: &str| {
        range.clone().is_some_and(|range| {
            if starts { text[range].starts_with(part) } else { text[range].ends_with(part) }
        })
    };
    if let Some(part) = text_of(&what) {
        return Ok(Value::Bool(test(part)));
    }
    let Value::Tuple(parts) = &what else {
        let got = what.type_name();
        return Err(type_error(format!(
            "{name} first arg must be str or a tuple of str, not {got}"
        )));
    };
    for part in parts.iter() {
        match text_of(part) {
            Some(part) if test(part) => return Ok(Value::Bool(true)),
            Some(_) => {}
            None => {
                let got = part.type_name();
                return Err(type_error(format!(
                    "tuple for {name} must only contain str, not {got}"
                )));
            }
        }
    }
    Ok(Value::Bool(false))
}

fn find(text: &SmolStr, name: &str, args: Args) -> Result<Value> {
    let own: &'static str = match name {
        "find" => "find",
        "rfind" => "rfind",
        "index" => "index",
        _ => "rindex",
    };
    let mut pos = Pos::find(own, args)?;
    let part = pos.take();
    let (range, start) = window(text, &mut pos)?;
    let part = substring(&part)?;
    let found = range.and_then(|range| {
        let piece = &text[range];
        let at = if own.starts_with('r') {
            piece.rfind(part.as_str())
        } else {
            piece.find(part.as_str())
        };
        at.map(|at| char_count(&piece[..at]) + start)
    });
    match found {
        Some(at) => Ok(Value::from(at)),
        None if own.ends_with("find") => Ok(Value::Int(-1)),
        None => Err(value_error("substring not found")),
    }
}

fn pad(interp: &mut Interp<'_>, text: &SmolStr, name: &str, args: Args) -> Result<Value> {
    let own: &'static str = match name {
        "center" => "center",
        "ljust" => "ljust",
        _ => "rjust",
    };
    let mut pos = Pos::new("str", own, args, 1, 2)?;
    let width = index(&pos.take())?;
    let fill = match pos.next() {
        None => ' ',
        Some(fill) => {
            let Some(text) = text_of(&fill) else {
                let got = fill.type_name();
                return Err(type_error(format!(
                    "The fill character must be a unicode character, not {got}"
                )));
            };
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => c,
                _ => {
                    return Err(type_error(
                        "The fill character must be exactly one character long",
                    ));
                }
            }
        }
    };
    let length = char_count(text);
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(length);
    interp.room(missing.saturating_mul(4))?;
    let (left, right) = match own {
        "ljust" => (0, missing),
        "rjust" => (missing, 0),
        // Python puts the odd one on the left only if the width is odd too.
        _ => {
            let left = missing / 2 + (missing & width & 1);
            (left, missing - left)
        }
    };
    let repeat = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    Ok(Value::from(format!("{}{text}{}", repeat(left), repeat(right))))
}

fn partition(text: &SmolStr, first: bool, args: Args) -> Result<Value> {
    let mut pos = Pos::new("str", if first { "partition" } else { "rpartition" }, args, 1, 1)?;
    let separator = pos.text(|got| format!("must be str, not {got}"))?;
    if separator.is_empty() {
        return Err(value_error("empty separator"));
    }
    let found = if first {
        text.split_once(separator.as_str())
    } else {
        text.rsplit_once(separator.as_str())
    };
    Ok(match found {
        Some((before, after)) => Value::tuple([before, separator.as_str(), after]),
        None if first => Value::tuple([text.as_str(), "", ""]),
        None => Value::tuple(["", "", text.as_str()]),
    })
}

fn expand_tabs(interp: &mut Interp<'_>, text: &str, size: i64) -> Result<Value> {
    let size = usize::try_from(size).unwrap_or(0);
    interp.room(text.matches('\t').count().saturating_mul(size))?;
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size > 0 => {
                let width = size - column % size;
                out.extend(std::iter::repeat_n(' ', width));
                column += width;
            }
            '\t' => {}
            c => {
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                out.push(c);
            }
        }
    }
    Ok(Value::from(out))
}

fn encode(text: &SmolStr, args: Args) -> Result<Value> {
    let mut bound = Signature::new("encode(encoding=, errors=)").bind(args)?;
    let name = |value: Option<Value>, default: &str, which: &str| match value {
        None => Ok(default.to_owned()),
        Some(value) => text_of(&value).map(ToString::to_string).ok_or_else(|| {
            type_error(format!(
                "encode() argument '{which}' must be str, not {}",
                value.type_name()
            ))
        }),
    };
    let encoding = name(bound.opt(0), "utf-8", "encoding")?;
    let errors = name(bound.opt(1), "strict", "errors")?;
    encode_text(text, &encoding, &errors).map(Value::bytes)
}

pub(crate) fn encode_text(text: &str, encoding: &str, errors: &str) -> Result<Vec<u8>> {
    let (own, limit) = match encoding.to_lowercase().replace(['_', ' '], "-").as_str() {
        "utf-8" | "utf8" | "u8" => return Ok(text.as_bytes().to_vec()),
        "utf-8-sig" => return Ok([b"\xef\xbb\xbf", text.as_bytes()].concat()),
        "ascii" | "us-ascii" | "646" => ("ascii", 0x80),
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => ("latin-1", 0x100),
        "utf-16" | "utf16" => {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            return Ok(units.flat_map(u16::to_le_bytes).collect());
        }
        "utf-16-le" | "utf-16le" => {
            return Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
        }
        "utf-16-be" | "utf-16be" => {
            return Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
        }
        _ => return Err(Error::new(Class::LookupError, format!("unknown encoding: {encoding}"))),
    };
    let mut out = Vec::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        let code = u32::from(c);
        match u8::try_from(code) {
            Ok(byte) if code < limit => out.push(byte),
            _ => match errors {
                "ignore" => {}
                "replace" => out.push(b'?'),
                "xmlcharrefreplace" => out.extend(format!("&#{code};").bytes()),
                "backslashreplace" => out.extend(match code {
                    0..=0xff => format!("\\x{code:02x}").into_bytes(),
                    0x100..=0xffff => format!("\\u{code:04x}").into_bytes(),
                    _ => format!("\\U{code:08x}").into_bytes(),
                }),
                _ => {
                    let escaped = halite_value::str_repr(&c.to_string());
                    let escaped = if c.is_ascii() { escaped } else { escape_char(c) };
                    return Err(Error::new(
                        Class::UnicodeEncodeError,
                        format!(
                            "'{own}' codec can't encode character {escaped} in position {at}: ordinal \
                             not in range({limit})"
                        ),
                    ));
                }
            },
        }
    }
    Ok(out)
}

fn escape_char(c: char) -> String {
    let code = u32::from(c);
    match code {
        0..=0xff => format!("'\\x{code:02x}'"),
        0x100..=0xffff => format!("'\\u{code:04x}'"),
        _ => format!("'\\U{code:08x}'"),
    }
}

fn make_trans(interp: &mut Interp<'_>, args: Args) -> Result<Value> {
    let mut pos = Pos::new("str", "maketrans", args, 1, 3)?;
    let table = halite_value::Dict::new();
    let first = pos.take();
    let code = |c: char| Value::Int(i64::from(u32::from(c)));
    match (&first, pos.given) {
        (Value::Dict(map), 1) => {
            for (key, value) in map {
                let key = match text_of(&key).map(|text| text.chars().collect::<Vec<_>>()) {
                    Some(chars) => match chars[..] {
                        [c] => code(c),
                        _ => {
                            return Err(value_error(
                                "string keys in translate table must be of length 1",
                            ));
                        }
                    },
                    None => key.into_value(),
                };
                table.insert(interp.key(key)?, value);
            }
        }
        (_, 1) => {
            return Err(type_error("if you give only one argument to maketrans it must be a dict"));
        }
        _ => {
            let second = pos.take();
            let (Some(from), Some(to)) = (text_of(&first), text_of(&second)) else {
                return Err(type_error(
                    "first maketrans argument must be a string if there is a second argument",
                ));
            };
            if char_count(from) != char_count(to) {
                return Err(value_error(
                    "the first two maketrans arguments must have equal length",
                ));
            }
            for (from, to) in from.chars().zip(to.chars()) {
                table.insert(interp.key(code(from))?, code(to));
            }
            if let Some(gone) = pos.next() {
                for c in text_of(&gone).map(SmolStr::as_str).unwrap_or_default().chars() {
                    table.insert(interp.key(code(c))?, Value::Null);
                }
            }
        }
    }
    Ok(Value::Dict(table))
}

fn translate(interp: &mut Interp<'_>, text: &str, table: &Value) -> Result<Value> {
    let mut out = String::new();
    for c in text.chars() {
        let found = interp.own_item(table, &Value::Int(i64::from(u32::from(c))))?;
        match found {
            None => out.push(c),
            Some(Value::Null) => {}
            Some(Value::Int(int)) => {
                let c = u32::try_from(int).ok().and_then(char::from_u32);
                out.push(
                    c.ok_or_else(|| value_error("character mapping must be in range(0x110000)"))?,
                );
            }
            Some(other) => match text_of(&other) {
                Some(text) => out.push_str(text),
                None => {
                    return Err(type_error("character mapping must return integer, None or str"));
                }
            },
        }
    }
    interp.room(out.len())?;
    Ok(Value::from(out))
}
