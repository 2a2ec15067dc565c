//! `'%s' % x`, `'{}'.format(x)` and Python's little language of widths and precisions.

use halite_value::{BigInt, SmolStr, Value, float_repr};
use num_traits::{FromPrimitive, Signed, ToPrimitive};

use super::{
    error::{Class, Error, Subject, type_error, value_error},
    eval::{Interp, Result},
    filters::text::escape,
    iter::char_count,
    objects::*,
};

impl Interp<'_> {
    // ---- %

    /// `text % value`.
    pub(crate) fn percent(&mut self, text: &Value, value: &Value) -> Result<Value> {
        let safe = is_markup(text);
        let Some(format) = text_of(text).cloned() else { return Ok(Value::Null) };
        let mut args = PercentArgs {
            items: match value {
                Value::Tuple(items) => items.to_vec(),
                other => vec![other.clone()],
            },
            at: 0,
            mapping: matches!(value, Value::Dict(_) | Value::List(_)).then(|| value.clone()),
        };
        let mut out = String::new();
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            let position = char_count(&format) - char_count(&rest[at..]);
            rest = self.percent_one(&rest[at + 1..], position, &mut args, safe, &mut out)?;
            self.room(out.len())?;
        }
        out.push_str(rest);
        if args.at < args.items.len() && args.mapping.is_none() {
            return Err(type_error("not all arguments converted during string formatting"));
        }
        Ok(if safe { markup(out) } else { Value::from(out) })
    }

    fn percent_one<'t>(
        &mut self,
        mut rest: &'t str,
        position: usize,
        args: &mut PercentArgs,
        safe: bool,
        out: &mut String,
    ) -> Result<&'t str> {
        let whole = rest;
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            return Ok(after);
        }
        let incomplete = || value_error("incomplete format");
        let mut named = None;
        if let Some(after) = rest.strip_prefix('(') {
            let Some(mapping) = args.mapping.clone() else {
                return Err(type_error("format requires a mapping"));
            };
            let mut depth = 1;
            let end = after.char_indices().find(|(_, c)| {
                depth += i32::from(*c == '(') - i32::from(*c == ')');
                depth == 0
            });
            let Some((end, _)) = end else { return Err(value_error("incomplete format key")) };
            let key = Value::str(&after[..end]);
            if matches!(mapping, Value::List(_)) {
                return Err(type_error("list indices must be integers or slices, not str"));
            }
            let found = self.own_item(&mapping, &key)?;
            named = Some(found.ok_or_else(|| Error::key(&key))?);
            // From here on the mapping itself is no argument.
            args.at = args.items.len();
            rest = &after[end + 1..];
        }
        let mut spec = Spec { align: Some('>'), ..Spec::default() };
        let mut left = false;
        let mut zero = false;
        while let Some(c) = rest.chars().next() {
            match c {
                '-' => left = true,
                '+' => spec.sign = '+',
                ' ' if spec.sign != '+' => spec.sign = ' ',
                ' ' => {}
                '#' => spec.alternate = true,
                '0' => zero = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        let mut number = |rest: &mut &'t str, args: &mut PercentArgs| -> Result<Option<usize>> {
            if let Some(after) = rest.strip_prefix('*') {
                *rest = after;
                let value = args.next()?;
                let Some(int) = value.to_int().filter(|_| !matches!(value, Value::Float(_))) else {
                    return Err(type_error("* wants int"));
                };
                left |= int < 0;
                return Ok(usize::try_from(int.unsigned_abs()).ok());
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let value = rest[..digits].parse().ok();
            if digits > 0 && value.is_none() {
                return Err(value_error("width too big"));
            }
            *rest = &rest[digits..];
            Ok(value)
        };
        spec.width = number(&mut rest, args)?.unwrap_or(0);
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            spec.precision = Some(number(&mut rest, args)?.unwrap_or(0));
        }
        rest = rest.trim_start_matches(['h', 'l', 'L']);
        let kind = rest.chars().next().ok_or_else(incomplete)?;
        let kind_at = position + 1 + char_count(whole) - char_count(rest);
        rest = &rest[kind.len_utf8()..];
        self.room(spec.width.max(spec.precision.unwrap_or(0)))?;
        if left {
            spec.align = Some('<');
        }
        let value = match named {
            Some(value) => value,
            None => args.next()?,
        };
        let text = match kind {
            's' | 'r' | 'a' => {
                let text = match kind {
                    's' if safe => escape(self, &value)?,
                    's' => self.str_of(&value)?.to_string(),
                    'r' => value.repr_by_kind(),
                    _ => ascii(&value.repr_by_kind()),
                };
                let text: String = match spec.precision {
                    Some(precision) => text.chars().take(precision).collect(),
                    None => text,
                };
                pad(&text, ' ', spec.align, spec.width, '>')
            }
            'c' => {
                let text = match &value {
                    Value::Int(int) => u32::try_from(*int)
                        .ok()
                        .and_then(char::from_u32)
                        .ok_or_else(|| {
                            Error::new(Class::OverflowError, "%c arg not in range(0x110000)")
                        })?
                        .to_string(),
                    other => match text_of(other).filter(|text| char_count(text) == 1) {
                        Some(text) => text.to_string(),
                        None => return Err(type_error("%c requires int or char")),
                    },
                };
                pad(&text, ' ', spec.align, spec.width, '>')
            }
            'd' | 'i' | 'u' | 'o' | 'x' | 'X' => {
                let int = self.percent_int(&value, kind)?;
                if zero && !left {
                    spec.align = Some('=');
                    spec.fill = '0';
                }
                let kind = if matches!(kind, 'i' | 'u') { 'd' } else { kind };
                let precision = spec.precision.take().unwrap_or(0);
                format_int(&int, kind, &spec, precision)
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let float = match undefined(&value) {
                    Some(undefined) => return Err(self.undefined_error(undefined)),
                    None => value.as_float().ok_or_else(|| {
                        type_error(format!("must be real number, not {}", value.type_name()))
                    })?,
                };
                if zero && !left {
                    spec.align = Some('=');
                    spec.fill = '0';
                }
                format_float(float, kind, &spec)
            }
            other => {
                let code = u32::from(other);
                return Err(value_error(format!(
                    "unsupported format character '{other}' (0x{code:x}) at index {kind_at}"
                )));
            }
        };
        out.push_str(&text);
        Ok(rest)
    }

    fn percent_int(&mut self, value: &Value, kind: char) -> Result<BigInt> {
        if let Some(undefined) = undefined(value) {
            return Err(self.undefined_error(undefined));
        }
        match value {
            Value::Int(int) => Ok((*int).into()),
            Value::Bool(flag) => Ok(i64::from(*flag).into()),
            Value::BigInt(int) => Ok((**int).clone()),
            Value::Float(float) if matches!(kind, 'd' | 'i' | 'u') => {
                BigInt::from_f64(float.trunc()).ok_or_else(|| {
                    if float.is_nan() {
                        value_error("cannot convert float NaN to integer")
                    } else {
                        Error::new(Class::OverflowError, "cannot convert float infinity to integer")
                    }
                })
            }
            other => {
                let got = other.type_name();
                let wanted = if matches!(kind, 'd' | 'i' | 'u') {
                    "a real number is required"
                } else {
                    "an integer is required"
                };
                Err(type_error(format!("%{kind} format: {wanted}, not {got}")))
            }
        }
    }

    // ---- {}

    pub(crate) fn format(
        &mut self,
        text: &str,
        positional: &[Value],
        keyword: &[(SmolStr, Value)],
    ) -> Result<Value> {
        let mut state = Format { positional, keyword, map: None, auto: None };
        self.format_text(text, &mut state, 2).map(Value::from)
    }

    pub(crate) fn format_map(&mut self, text: &str, map: &Value) -> Result<Value> {
        let mut state = Format { positional: &[], keyword: &[], map: Some(map), auto: None };
        self.format_text(text, &mut state, 2).map(Value::from)
    }

    fn format_text(&mut self, text: &str, state: &mut Format<'_>, depth: usize) -> Result<String> {
        if depth == 0 {
            return Err(value_error("Max string recursion exceeded"));
        }
        let mut out = String::new();
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '{' if chars.peek().is_some_and(|(_, next)| *next == '{') => {
                    chars.next();
                    out.push('{');
                }
                '}' if chars.peek().is_some_and(|(_, next)| *next == '}') => {
                    chars.next();
                    out.push('}');
                }
                '}' => return Err(value_error("Single '}' encountered in format string")),
                '{' => {
                    let mut level = 1;
                    let mut in_index = false;
                    let end = text[at + 1..].char_indices().find(|(_, c)| {
                        match c {
                            '[' => in_index = true,
                            ']' => in_index = false,
                            '{' if !in_index => level += 1,
                            '}' if !in_index => level -= 1,
                            _ => {}
                        }
                        level == 0
                    });
                    let Some((length, _)) = end else {
                        return Err(value_error(if at + 1 == text.len() {
                            "Single '{' encountered in format string"
                        } else {
                            "expected '}' before end of string"
                        }));
                    };
                    let field = &text[at + 1..at + 1 + length];
                    let value = self.format_field(field, state, depth)?;
                    out.push_str(&value);
                    self.room(out.len())?;
                    while chars.peek().is_some_and(|(next, _)| *next <= at + 1 + length) {
                        chars.next();
                    }
                }
                c => out.push(c),
            }
        }
        Ok(out)
    }

    fn format_field(
        &mut self,
        field: &str,
        state: &mut Format<'_>,
        depth: usize,
    ) -> Result<String> {
        // The name ends at the first `!` or `:` outside an index.
        let mut in_index = false;
        let split = field.char_indices().find(|(_, c)| {
            match c {
                '[' => in_index = true,
                ']' => in_index = false,
                _ => {}
            }
            !in_index && matches!(c, '!' | ':')
        });
        let (name, conversion, spec) = match split {
            None => (field, None, ""),
            Some((at, ':')) => (&field[..at], None, &field[at + 1..]),
            Some((at, _)) => {
                let mut after = field[at + 1..].chars();
                let conversion = after.next();
                let after = after.as_str();
                match (conversion, after.strip_prefix(':')) {
                    (None, _) => {
                        return Err(value_error(
                            "end of string while looking for conversion specifier",
                        ));
                    }
                    (_, None) if !after.is_empty() => {
                        return Err(value_error("expected ':' after conversion specifier"));
                    }
                    (conversion, spec) => (&field[..at], conversion, spec.unwrap_or("")),
                }
            }
        };
        let mut value = self.format_value(name, state)?;
        match conversion {
            None => {}
            Some('s') => value = Value::Str(self.str_of(&value)?),
            Some('r') => value = Value::from(value.repr_by_kind()),
            Some('a') => value = Value::from(ascii(&value.repr_by_kind())),
            Some(other) => {
                return Err(value_error(format!("Unknown conversion specifier '{other}'")));
            }
        }
        let spec = if spec.contains(['{', '}']) {
            self.format_text(spec, state, depth - 1)?
        } else {
            spec.to_owned()
        };
        self.format_spec(&value, &spec)
    }

    fn format_value(&mut self, name: &str, state: &mut Format<'_>) -> Result<Value> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut path) = name.split_at(end);
        let mut value = if first.is_empty() || first.bytes().all(|byte| byte.is_ascii_digit()) {
            let index = if first.is_empty() {
                match state.auto {
                    Some(None) => {
                        return Err(value_error(
                            "cannot switch from manual field specification to automatic field \
                             numbering",
                        ));
                    }
                    Some(Some(next)) => {
                        state.auto = Some(Some(next + 1));
                        next
                    }
                    None => {
                        state.auto = Some(Some(1));
                        0
                    }
                }
            } else {
                if matches!(state.auto, Some(Some(_))) {
                    return Err(value_error(
                        "cannot switch from automatic field numbering to manual field specification",
                    ));
                }
                state.auto = Some(None);
                first
                    .parse()
                    .map_err(|_| value_error("Too many decimal digits in format string"))?
            };
            if state.map.is_some() {
                return Err(value_error("Format string contains positional fields"));
            }
            state
                .positional
                .get(index)
                .cloned()
                .ok_or_else(|| Error::new(Class::IndexError, "tuple index out of range"))?
        } else {
            let key = Value::str(first);
            let found = match state.map {
                Some(map) => self.own_item(map, &key)?,
                None => state
                    .keyword
                    .iter()
                    .find(|(own, _)| own == first)
                    .map(|(_, value)| value.clone()),
            };
            found.ok_or_else(|| {
                let known: Vec<&str> =
                    state.keyword.iter().map(|(name, _)| name.as_str()).collect();
                let subject = Subject::Key { of: "format".into(), key: first.into() };
                Error::key(&key).about(subject, known)
            })?
        };
        while !path.is_empty() {
            if let Some(after) = path.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                if end == 0 {
                    return Err(value_error("Empty attribute in format string"));
                }
                // The sandbox looks at attributes as `a.b` in a template does.
                value = self.attribute(&value, &SmolStr::new(&after[..end]))?;
                path = &after[end..];
            } else if let Some(after) = path.strip_prefix('[') {
                let Some(end) = after.find(']') else {
                    return Err(value_error("Missing ']' in format string"));
                };
                let key = &after[..end];
                if key.is_empty() {
                    return Err(value_error("Empty attribute in format string"));
                }
                let key = key.parse::<i64>().map_or_else(|_| Value::str(key), Value::Int);
                value = self.item(&value, &key)?;
                path = &after[end + 1..];
            } else {
                return Err(value_error(
                    "Only '.' or '[' may follow ']' in format field specifier",
                ));
            }
        }
        Ok(value)
    }

    /// `format(value, spec)`.
    pub(crate) fn format_spec(&mut self, value: &Value, spec: &str) -> Result<String> {
        if let Some(undefined) = undefined(value)
            && undefined.strict
            && spec.is_empty()
        {
            return Err(self.undefined_error(undefined));
        }
        if spec.is_empty() {
            return Ok(self.str_of(value)?.to_string());
        }
        if let Value::Timestamp(time) = value {
            return super::filters::time::strftime(time, spec);
        }
        let number =
            matches!(value, Value::Int(_) | Value::BigInt(_) | Value::Bool(_) | Value::Float(_));
        if !number && text_of(value).is_none() {
            return Err(type_error(format!(
                "unsupported format string passed to {}.__format__",
                value.type_name()
            )));
        }
        let parsed = Spec::parse(spec, value)?;
        self.room(parsed.width.max(parsed.precision.unwrap_or(0)))?;
        let unknown = |kind: char| {
            value_error(format!(
                "Unknown format code '{}' for object of type '{}'",
                code_name(kind),
                value.type_name()
            ))
        };
        match value {
            Value::Int(_) | Value::BigInt(_) | Value::Bool(_) => match parsed.kind {
                None | Some('d' | 'b' | 'o' | 'x' | 'X' | 'n') => {
                    parsed.check_int()?;
                    let int = self.percent_int(value, 'd')?;
                    Ok(format_int(&int, parsed.kind.unwrap_or('d'), &parsed, 0))
                }
                Some('c') => {
                    parsed.check_int()?;
                    parsed.check_char()?;
                    let c = value
                        .to_int()
                        .and_then(|int| u32::try_from(int).ok())
                        .and_then(char::from_u32);
                    let c = c.ok_or_else(|| {
                        Error::new(Class::OverflowError, "%c arg not in range(0x110000)")
                    })?;
                    Ok(pad(&c.to_string(), parsed.fill, parsed.align, parsed.width, '<'))
                }
                Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => {
                    let float = value.as_float().unwrap_or(f64::NAN);
                    Ok(format_float(float, parsed.kind.unwrap_or('f'), &parsed))
                }
                Some(kind) => Err(unknown(kind)),
            },
            Value::Float(float) => match parsed.kind {
                None => Ok(format_float(*float, ' ', &parsed)),
                Some('n') => Ok(format_float(*float, 'g', &parsed)),
                Some(kind @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) => {
                    Ok(format_float(*float, kind, &parsed))
                }
                Some(kind) => Err(unknown(kind)),
            },
            other => {
                if let Some(kind) = parsed.kind.filter(|kind| *kind != 's') {
                    return Err(unknown(kind));
                }
                parsed.check_text()?;
                let text = self.str_of(other)?;
                let text: String = match parsed.precision {
                    Some(precision) => text.chars().take(precision).collect(),
                    None => text.to_string(),
                };
                Ok(pad(&text, parsed.fill, parsed.align, parsed.width, '<'))
            }
        }
    }
}

struct PercentArgs {
    items: Vec<Value>,
    at: usize,
    /// What `%(key)s` looks in: as in Python, anything with `[]` that is no tuple.
    mapping: Option<Value>,
}

impl PercentArgs {
    fn next(&mut self) -> Result<Value> {
        let value = self.items.get(self.at).cloned();
        self.at += 1;
        value.ok_or_else(|| type_error("not enough arguments for format string"))
    }
}

struct Format<'a> {
    positional: &'a [Value],
    keyword: &'a [(SmolStr, Value)],
    map: Option<&'a Value>,
    /// `None`: not known yet; `Some(None)`: fields are numbered by hand.
    auto: Option<Option<usize>>,
}

struct Spec {
    fill: char,
    align: Option<char>,
    /// `'\0'` if none is given.
    sign: char,
    /// `z`: a zero that comes of rounding has no sign.
    no_negative_zero: bool,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            fill: ' ',
            align: None,
            sign: '\0',
            no_negative_zero: false,
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        }
    }
}

impl Spec {
    fn parse(text: &str, value: &Value) -> Result<Self> {
        let is_text = text_of(value).is_some();
        let mut spec = Self::default();
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let is_align = |c: Option<&char>| c.is_some_and(|c| matches!(c, '<' | '>' | '=' | '^'));
        if is_align(chars.get(1)) {
            (spec.fill, spec.align) = (chars[0], Some(chars[1]));
            at = 2;
        } else if is_align(chars.first()) {
            spec.align = Some(chars[0]);
            at = 1;
        }
        if let Some(sign @ ('+' | '-' | ' ')) = chars.get(at) {
            spec.sign = *sign;
            at += 1;
        }
        if chars.get(at) == Some(&'z') {
            spec.no_negative_zero = true;
            at += 1;
        }
        if chars.get(at) == Some(&'#') {
            spec.alternate = true;
            at += 1;
        }
        if chars.get(at) == Some(&'0') {
            // A fill of its own would have come before an alignment.
            if !is_align(chars.get(1)) {
                spec.fill = '0';
            }
            spec.align = spec.align.or(Some(if is_text { '<' } else { '=' }));
            at += 1;
        }
        let number_at = |at: &mut usize| -> Result<Option<usize>> {
            let start = *at;
            while chars.get(*at).is_some_and(char::is_ascii_digit) {
                *at += 1;
            }
            if start == *at {
                return Ok(None);
            }
            let digits: String = chars[start..*at].iter().collect();
            digits
                .parse()
                .map(Some)
                .map_err(|_| value_error("Too many decimal digits in format string"))
        };
        spec.width = number_at(&mut at)?.unwrap_or(0);
        if let Some(grouping @ (',' | '_')) = chars.get(at) {
            spec.grouping = Some(*grouping);
            at += 1;
            let second = chars.get(at).filter(|c| matches!(c, ',' | '_'));
            if second.is_some_and(|second| *second == '_' || *grouping == '_' && *second == ',') {
                return Err(value_error("Cannot specify both ',' and '_'."));
            }
        }
        if chars.get(at) == Some(&'.') {
            at += 1;
            spec.precision = Some(
                number_at(&mut at)?
                    .ok_or_else(|| value_error("Format specifier missing precision"))?,
            );
        }
        match chars[at.min(chars.len())..] {
            [] => {}
            [kind] => spec.kind = Some(kind),
            _ => {
                let type_name = value.type_name();
                return Err(value_error(format!(
                    "Invalid format specifier '{text}' for object of type '{type_name}'"
                )));
            }
        }
        if let Some(grouping) = spec.grouping {
            match (spec.kind, grouping) {
                (None, _) if !is_text => {}
                (Some('d' | 'e' | 'f' | 'g' | 'E' | 'F' | 'G' | '%'), _) => {}
                (Some('b' | 'o' | 'x' | 'X'), '_') => {}
                (kind, _) => {
                    let kind = code_name(kind.unwrap_or('s'));
                    return Err(value_error(format!("Cannot specify '{grouping}' with '{kind}'.")));
                }
            }
        }
        Ok(spec)
    }

    fn check_int(&self) -> Result<()> {
        if self.precision.is_some() {
            return Err(value_error("Precision not allowed in integer format specifier"));
        }
        self.check_zero("integer")
    }

    fn check_zero(&self, of: &str) -> Result<()> {
        if self.no_negative_zero {
            return Err(value_error(format!(
                "Negative zero coercion (z) not allowed in {of} format specifier"
            )));
        }
        Ok(())
    }

    fn check_char(&self) -> Result<()> {
        if self.sign != '\0' {
            return Err(value_error("Sign not allowed with integer format specifier 'c'"));
        }
        if self.alternate {
            return Err(value_error(
                "Alternate form (#) not allowed with integer format specifier 'c'",
            ));
        }
        Ok(())
    }

    fn check_text(&self) -> Result<()> {
        let what = match self.sign {
            '\0' => None,
            ' ' => Some("Space"),
            _ => Some("Sign"),
        };
        if let Some(what) = what {
            return Err(value_error(format!("{what} not allowed in string format specifier")));
        }
        self.check_zero("string")?;
        if self.alternate {
            return Err(value_error("Alternate form (#) not allowed in string format specifier"));
        }
        if self.align == Some('=') {
            return Err(value_error("'=' alignment not allowed in string format specifier"));
        }
        Ok(())
    }
}

/// A format code as Python's messages show it.
fn code_name(code: char) -> String {
    if code.is_ascii_graphic() { code.to_string() } else { format!("\\x{:x}", u32::from(code)) }
}

fn pad(text: &str, fill: char, align: Option<char>, width: usize, default: char) -> String {
    let missing = width.saturating_sub(char_count(text));
    if missing == 0 {
        return text.to_owned();
    }
    let repeat = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    match align.unwrap_or(default) {
        '<' => format!("{text}{}", repeat(missing)),
        '^' => format!("{}{text}{}", repeat(missing / 2), repeat(missing - missing / 2)),
        _ => format!("{}{text}", repeat(missing)),
    }
}

/// Puts sign, prefix and digits together, padded and grouped.
fn number(negative: bool, prefix: &str, digits: &str, spec: &Spec, group: usize) -> String {
    let sign = match (negative, spec.sign) {
        (true, _) => "-",
        (false, '+') => "+",
        (false, ' ') => " ",
        _ => "",
    };
    let whole_end = digits.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(digits.len());
    // In a float, an exponent is no part of the whole either.
    let whole_end = if group == 3 {
        digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()).min(whole_end)
    } else {
        whole_end
    };
    let (whole, tail) = digits.split_at(whole_end);
    let zero_padded = spec.align == Some('=') && spec.fill == '0';
    let whole = match spec.grouping {
        None => whole.to_owned(),
        Some(separator) => {
            let used = sign.len() + prefix.len() + tail.len();
            let least = if zero_padded { spec.width.saturating_sub(used) } else { 0 };
            grouped(whole, separator, group, least)
        }
    };
    let body = format!("{whole}{tail}");
    if spec.align == Some('=') {
        let missing = spec.width.saturating_sub(sign.len() + prefix.len() + char_count(&body));
        let fill: String = std::iter::repeat_n(spec.fill, missing).collect();
        return format!("{sign}{prefix}{fill}{body}");
    }
    pad(&format!("{sign}{prefix}{body}"), spec.fill, spec.align, spec.width, '>')
}

fn grouped(whole: &str, separator: char, size: usize, least: usize) -> String {
    let mut out = String::new();
    let mut digits: Vec<char> = whole.chars().collect();
    // Leading zeros are grouped too.
    while digits.len() + (digits.len().max(1) - 1) / size < least {
        digits.insert(0, '0');
    }
    for (index, digit) in digits.iter().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(size) {
            out.push(separator);
        }
        out.push(*digit);
    }
    out
}

fn format_int(int: &BigInt, kind: char, spec: &Spec, precision: usize) -> String {
    let positive = int.abs();
    let (radix, prefix) = match kind {
        'b' => (2, "0b"),
        'o' => (8, "0o"),
        'x' => (16, "0x"),
        'X' => (16, "0X"),
        _ => (10, ""),
    };
    let mut digits = positive.to_str_radix(radix);
    if kind == 'X' {
        digits = digits.to_uppercase();
    }
    if digits.len() < precision {
        digits = format!("{}{digits}", "0".repeat(precision - digits.len()));
    }
    let prefix = if spec.alternate { prefix } else { "" };
    number(int.is_negative(), prefix, &digits, spec, if radix == 10 { 3 } else { 4 })
}

fn format_float(float: f64, kind: char, spec: &Spec) -> String {
    let upper = kind.is_ascii_uppercase();
    let float = if kind == '%' { float * 100.0 } else { float };
    let positive = float.abs();
    let negative = float.is_sign_negative() && !float.is_nan();
    let mut digits = if float.is_nan() {
        "nan".to_owned()
    } else if float.is_infinite() {
        "inf".to_owned()
    } else {
        // Longer ones are all zeros.
        let precision = spec.precision.map(|precision| precision.min(1100));
        match kind.to_ascii_lowercase() {
            'f' | '%' => format!("{positive:.*}", precision.unwrap_or(6)),
            'e' => exponent_form(positive, precision.unwrap_or(6)),
            'g' => general(positive, precision.unwrap_or(6).max(1), spec.alternate),
            _ => match precision {
                None => float_repr(positive),
                Some(precision) => {
                    let text = general(positive, precision.max(1), false);
                    if text.contains(['.', 'e']) || text.len() > precision.max(1) {
                        text
                    } else {
                        format!("{text}.0")
                    }
                }
            },
        }
    };
    let is_zero = float.is_finite() && !digits.contains(|c: char| matches!(c, '1'..='9'));
    let negative = negative && !(is_zero && spec.no_negative_zero);
    if kind == '%' {
        digits.push('%');
    }
    if upper {
        digits = digits.to_uppercase();
    }
    number(negative, "", &digits, spec, 3)
}

fn exponent_form(float: f64, precision: usize) -> String {
    let text = format!("{float:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn general(float: f64, precision: usize, keep_zeros: bool) -> String {
    if float == 0.0 {
        return if keep_zeros { format!("0.{}", "0".repeat(precision - 1)) } else { "0".into() };
    }
    let scientific = exponent_form(float, precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if keep_zeros || !text.contains('.') {
            text.to_owned()
        } else {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    if (-4..precision.to_i32().unwrap_or(i32::MAX)).contains(&power) {
        let after = usize::try_from(precision as i64 - 1 - i64::from(power)).unwrap_or(0);
        trim(&format!("{float:.after$}"))
    } else {
        format!("{}e{exponent}", trim(mantissa))
    }
}

/// Python's `ascii()` of a text that `repr` has made already.
fn ascii(repr: &str) -> String {
    let mut out = String::new();
    for c in repr.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        let code = u32::from(c);
        out.push_str(&match code {
            0..=0xff => format!("\\x{code:02x}"),
            0x100..=0xffff => format!("\\u{code:04x}"),
            _ => format!("\\U{code:08x}"),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(kind: char, precision: Option<usize>, value: f64, expected: &str) {
        let spec = Spec { precision, ..Spec::default() };
        assert_eq!(format_float(value, kind, &spec), expected);
    }

    #[test]
    fn floats_format_as_in_python() {
        float('f', None, 3.5, "3.500000");
        float('e', None, 1234.5, "1.234500e+03");
        float('g', None, 0.0001, "0.0001");
        float('g', None, 1e20, "1e+20");
        float('g', Some(3), 1234.0, "1.23e+03");
        float(' ', Some(3), 1.0, "1.0");
        float('%', Some(1), 0.25, "25.0%");
    }

    #[test]
    fn zeros_are_grouped() {
        assert_eq!(grouped("1234567", ',', 3, 0), "1,234,567");
        assert_eq!(grouped("1234", ',', 3, 9), "0,001,234");
    }
}
