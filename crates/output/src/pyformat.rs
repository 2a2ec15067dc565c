//! Python's `str.format`, as far as formats of states go: `{1}`, `{6[duration]!s:>7}`, `{4:.3f}`.
//!
//! Users write such a format into `state_tabular`. Anything that Python would refuse, and the few
//! things that nobody writes there (attributes, `e` and `g` numbers), are [`Unfit`].

use halite_value::{Key, Value};

use crate::{Unfit, python};

/// Fills a format with values.
pub(crate) fn format(template: &str, args: &[Value]) -> Result<String, Unfit> {
    Filler { args, next: 0 }.fill(template, 0)
}

struct Filler<'a> {
    args: &'a [Value],
    /// The number of the next `{}`.
    next: usize,
}

impl Filler<'_> {
    fn fill(&mut self, template: &str, depth: usize) -> Result<String, Unfit> {
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let bracket = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(bracket) {
                out.push_str(bracket);
                rest = after;
            } else if bracket == "{" && depth < 2 {
                let end = field_end(rest)?;
                out.push_str(&self.field(&rest[..end], depth)?);
                rest = &rest[end + 1..];
            } else {
                return Err(Unfit);
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn field(&mut self, field: &str, depth: usize) -> Result<String, Unfit> {
        // Brackets may hold colons: `{6[a:b]}`.
        let mut inside = false;
        let cut = field.find(|c| {
            inside = c == '[' || (inside && c != ']');
            !inside && matches!(c, '!' | ':')
        });
        let cut = cut.unwrap_or(field.len());
        let (name, rest) = field.split_at(cut);
        let value = self.value(name)?;
        let (value, rest) = match rest.strip_prefix('!') {
            None => (value, rest),
            Some(rest) if rest.starts_with('s') => (Value::from(value.to_str()), &rest[1..]),
            Some(rest) if rest.starts_with('r') => (Value::from(value.repr()), &rest[1..]),
            Some(_) => return Err(Unfit),
        };
        let spec = match rest.strip_prefix(':') {
            Some(spec) => self.fill(spec, depth + 1)?,
            None if rest.is_empty() => String::new(),
            None => return Err(Unfit),
        };
        with_spec(&value, &spec)
    }

    /// Returns the value a name like `6[start_time]` stands for.
    fn value(&mut self, name: &str) -> Result<Value, Unfit> {
        let (number, mut path) = name.split_at(name.find('[').unwrap_or(name.len()));
        let number = if number.is_empty() {
            self.next += 1;
            self.next - 1
        } else {
            number.parse().map_err(|_| Unfit)?
        };
        let mut value = self.args.get(number).ok_or(Unfit)?.clone();
        while let Some(rest) = path.strip_prefix('[') {
            let (key, after) = rest.split_once(']').ok_or(Unfit)?;
            value = item(&value, key).ok_or(Unfit)?;
            path = after;
        }
        if path.is_empty() { Ok(value) } else { Err(Unfit) }
    }
}

/// Returns where the `}` of a field is; a field may hold others in its format.
fn field_end(text: &str) -> Result<usize, Unfit> {
    let mut open = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => open += 1,
            '}' if open == 0 => return Ok(at),
            '}' => open -= 1,
            _ => {}
        }
    }
    Err(Unfit)
}

/// A key of digits is a number, any other one a text.
fn item(value: &Value, key: &str) -> Option<Value> {
    match (value, key.parse::<i64>()) {
        (Value::Dict(dict), Ok(int)) => dict.get(&Key::from(int)),
        (Value::Dict(dict), Err(_)) => dict.get(key),
        (_, Ok(int)) => value.items_of_sequence()?.get(usize::try_from(int).ok()?).cloned(),
        _ => None,
    }
}

struct Spec {
    fill: char,
    align: Option<char>,
    sign: Option<char>,
    width: usize,
    comma: bool,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Result<Self, Unfit> {
        let mut chars = text.chars().peekable();
        let mut ahead = text.chars();
        let (first, second) = (ahead.next(), ahead.next());
        let is_align = |c: Option<char>| matches!(c, Some('<' | '>' | '^' | '='));
        let mut spec = Self {
            fill: ' ',
            align: None,
            sign: None,
            width: 0,
            comma: false,
            precision: None,
            kind: None,
        };
        if is_align(second) {
            spec.fill = first.unwrap_or(' ');
            spec.align = second;
            chars.nth(1);
        } else if is_align(first) {
            spec.align = chars.next();
        }
        spec.sign = chars.next_if(|c| matches!(c, '+' | '-' | ' '));
        if chars.next_if_eq(&'0').is_some() && spec.align.is_none() {
            (spec.fill, spec.align) = ('0', Some('0'));
        }
        let mut number = || {
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits
        };
        let width = number();
        // A limit, so that a format cannot ask for all memory.
        let limited = |digits: &str| digits.parse().ok().filter(|n| *n <= 10_000).ok_or(Unfit);
        spec.width = if width.is_empty() { 0 } else { limited(&width)? };
        spec.comma = chars.next_if_eq(&',').is_some();
        if chars.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            spec.precision = Some(limited(&digits)?);
        }
        spec.kind = chars.next();
        if chars.next().is_none() { Ok(spec) } else { Err(Unfit) }
    }

    /// Pads a body behind its sign; numbers stand right unless told otherwise.
    fn pad(&self, sign: &str, body: &str, number: bool) -> Result<String, Unfit> {
        let spare = self.width.saturating_sub(python::len(body) + sign.len());
        let fill = |count: usize| self.fill.to_string().repeat(count);
        Ok(match self.align.unwrap_or(if number { '>' } else { '<' }) {
            '>' => fill(spare) + sign + body,
            '^' => fill(spare / 2) + sign + body + &fill(spare - spare / 2),
            '0' | '=' if number => format!("{sign}{}{body}", fill(spare)),
            '=' => return Err(Unfit),
            _ => format!("{sign}{body}{}", fill(spare)),
        })
    }

    fn number(&self, digits: &str) -> Result<String, Unfit> {
        let (minus, body) = match digits.strip_prefix('-') {
            Some(body) => (true, body),
            None => (false, digits),
        };
        let sign = match self.sign {
            _ if minus => "-",
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        };
        let body = if self.comma { grouped(body) } else { body.to_owned() };
        self.pad(sign, &body, true)
    }
}

fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

fn with_spec(value: &Value, spec: &str) -> Result<String, Unfit> {
    if spec.is_empty() {
        return Ok(value.to_str().into());
    }
    let spec = Spec::parse(spec)?;
    match (value, spec.kind) {
        (Value::Str(text), None | Some('s')) if spec.sign.is_none() && !spec.comma => {
            let cut: String = match spec.precision {
                Some(most) => text.chars().take(most).collect(),
                None => text.to_string(),
            };
            spec.pad("", &cut, false)
        }
        (Value::Int(_) | Value::BigInt(_) | Value::Bool(_), None | Some('d'))
            if spec.precision.is_none() =>
        {
            let digits = match value {
                Value::Bool(flag) => i64::from(*flag).to_string(),
                int => int.repr(),
            };
            spec.number(&digits)
        }
        (Value::Float(float), None) if spec.precision.is_none() => {
            spec.number(&halite_value::float_repr(*float))
        }
        (number, Some('f' | 'F')) => {
            let float = number.as_float().filter(|float| float.is_finite()).ok_or(Unfit)?;
            spec.number(&format!("{float:.*}", spec.precision.unwrap_or(6)))
        }
        (number, Some('%')) => {
            let float = number.as_float().filter(|float| float.is_finite()).ok_or(Unfit)?;
            spec.number(&format!("{:.*}%", spec.precision.unwrap_or(6), float * 100.0))
        }
        _ => Err(Unfit),
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    fn check(template: &str, expected: &str) {
        let args = [
            Value::from("name"),
            Value::Int(-1234),
            Value::Float(2.5),
            dict! { "duration" => 12.345, "x:y" => list![7], 3 => "three" },
            Value::Null,
        ];
        let found = format(template, &args).unwrap_or_else(|_| "unfit".into());
        assert_eq!(found, expected, "{template}");
    }

    #[test]
    fn fields() {
        check("{0} {1}{{}}", "name -1234{}");
        check("{} {}", "name -1234");
        check("[{0:>7}|{0:<7}|{0:^7}|{0:*^8}|{0:.2}]", "[   name|name   | name  |**name**|na]");
        check("[{1:7}|{1:07}|{1:,}|{1:<7}|{1:=+8}]", "[  -1234|-001234|-1,234|-1234  |-   1234]");
        check("{2:.1f} {2:8.3f} {2:>5} {2:%}", "2.5    2.500   2.5 250.000000%");
        check("{3[duration]!s:>8} {3[x:y][0]} {3[3]!r}", "  12.345 7 'three'");
        check("{0:{1}}", "unfit");
        check("{0:>{3[x:y][0]}}", "   name");
        check("{4} {4!s:6}|", "None None  |");
    }

    #[test]
    fn what_python_refuses() {
        for template in ["{", "}", "{9}", "{0:d}", "{4:>5}", "{3[no]}", "{0.upper}", "{x}", "{0!z}"]
        {
            check(template, "unfit");
        }
    }
}
