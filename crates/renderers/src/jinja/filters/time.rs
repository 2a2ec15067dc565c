//! Filters on dates.

use halite_value::{DateTime, Value};
use jiff::{Timestamp, ToSpan, Zoned, civil, tz::TimeZone};

use super::Row;
use crate::jinja::{
    call::Bound,
    error::value_error,
    eval::{Interp, Result},
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("strftime", "strftime(date=, format=)", date_format),
    ("date_format", "strftime(date=, format=)", date_format),
];

fn date_format(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let date = args.take(0);
    let format = match args.opt(1) {
        Some(format) => interp.str_of(&format)?,
        None => "%Y-%m-%d".into(),
    };
    if let Some(undefined) = undefined(&date) {
        return Err(interp.undefined_error(undefined));
    }
    let time = cast(&date)?;
    interp.room(format.len() * 8)?;
    strftime(&time, &format).map(Value::from)
}

/// Writes a time as Python's `strftime`; a directive that we do not know stays as it is.
pub(crate) fn strftime(time: &DateTime, format: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let mut chars = rest[at + 1..].chars();
        let Some(c) = chars.next() else {
            out.push('%');
            rest = "";
            break;
        };
        // glibc's flags: `%-d` is a day without zero.
        let (flag, c) = match c {
            '-' | '_' | '0' | '^' | '#' => (Some(c), chars.next().unwrap_or('%')),
            c => (None, c),
        };
        rest = chars.as_str();
        let text = match c {
            // A naive time has no zone.
            'z' | 'Z' => String::new(),
            'f' => format!("{:06}", time.subsec_nanosecond() / 1000),
            's' => {
                let zoned = time.to_zoned(TimeZone::system());
                zoned.map(|zoned| zoned.timestamp().as_second().to_string()).unwrap_or_default()
            }
            'c' => time.strftime("%a %b %e %H:%M:%S %Y").to_string(),
            'x' => time.strftime("%m/%d/%y").to_string(),
            'X' => time.strftime("%H:%M:%S").to_string(),
            '%' => "%".to_owned(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            c if "aAbBCdDeFgGhHIjklmMpPrRSTuUVwWyY".contains(c) => {
                time.strftime(&format!("%{c}")).to_string()
            }
            c => format!("%{c}"),
        };
        out.push_str(&match flag {
            Some('-') => {
                let trimmed = text.trim_start_matches(['0', ' ']);
                if trimmed.is_empty() && !text.is_empty() {
                    "0".to_owned()
                } else {
                    trimmed.to_owned()
                }
            }
            Some('^') => text.to_uppercase(),
            _ => text,
        });
    }
    out.push_str(rest);
    Ok(out)
}

fn cast(value: &Value) -> Result<DateTime> {
    let unable = || value_error(format!("Unable to parse {value}"));
    match value {
        Value::Null => Ok(Zoned::now().datetime()),
        Value::Timestamp(time) => Ok(*time),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
            let seconds = value.as_float().unwrap_or(0.0);
            from_seconds(seconds).ok_or_else(unable)
        }
        other => match text_of(other) {
            Some(text) => parse(text.trim())
                .or_else(|| super::words::parse_float(text).and_then(from_seconds))
                .ok_or_else(unable),
            None => Err(unable()),
        },
    }
}

fn from_seconds(seconds: f64) -> Option<DateTime> {
    if !seconds.is_finite() || seconds.abs() > 1e12 {
        return None;
    }
    let timestamp = Timestamp::from_microsecond((seconds * 1e6).round() as i64).ok()?;
    Some(timestamp.to_zoned(TimeZone::system()).datetime())
}

/// Reads dates as people write them: the common part of what PHP's `strtotime` reads, which is what
/// Salt uses. `None` for anything else.
fn parse(text: &str) -> Option<DateTime> {
    let now = Zoned::now().datetime();
    if let Some(seconds) = text.strip_prefix('@') {
        // Without a zone, `@…` is in UTC.
        let seconds: i64 = seconds.parse().ok()?;
        return Some(Timestamp::from_second(seconds).ok()?.to_zoned(TimeZone::UTC).datetime());
    }
    let lower = text.to_lowercase();
    match lower.as_str() {
        "now" => return Some(now),
        "today" | "midnight" => return Some(now.date().at(0, 0, 0, 0)),
        "noon" => return Some(now.date().at(12, 0, 0, 0)),
        "tomorrow" => return Some(now.date().tomorrow().ok()?.at(0, 0, 0, 0)),
        "yesterday" => return Some(now.date().yesterday().ok()?.at(0, 0, 0, 0)),
        _ => {}
    }
    if let Some(moved) = relative(&lower, now) {
        return Some(moved);
    }
    let mut date = None;
    let mut time = None;
    let mut words: Vec<&str> = Vec::new();
    let normal = lower.replace('t', " t").replace(',', " ");
    // Only a `t` between date and time separates them.
    let source = if lower.chars().filter(|c| *c == 't').count() == 1
        && lower.find('t').is_some_and(|at| lower[..at].ends_with(|c: char| c.is_ascii_digit()))
    {
        normal.replace(" t", " ")
    } else {
        lower.replace(',', " ")
    };
    for word in source.split_whitespace() {
        if word.contains(':') && time.is_none() {
            time = Some(clock(word)?);
        } else if date.is_none() && (word.contains(['-', '/']) || word.matches('.').count() == 2) {
            date = Some(numeric_date(word)?);
        } else if word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit()) {
            date = Some(
                civil::Date::new(
                    word[..4].parse().ok()?,
                    word[4..6].parse().ok()?,
                    word[6..].parse().ok()?,
                )
                .ok()?,
            );
        } else {
            words.push(word);
        }
    }
    let mut afternoon = None;
    let (mut day, mut month, mut year) = (None, None, None);
    for word in words {
        let bare = word.trim_end_matches(['.', ';']);
        let number = bare.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if let Some(found) =
            MONTHS.iter().position(|name| bare.len() >= 3 && name.starts_with(bare))
        {
            month = Some(i8::try_from(found + 1).ok()?);
        } else if matches!(bare, "am" | "pm") {
            afternoon = Some(bare == "pm");
        } else if DAYS.iter().any(|name| bare.len() >= 3 && name.starts_with(bare))
            || matches!(bare, "utc" | "gmt" | "z")
        {
        } else if let Ok(number) = number.parse::<i16>() {
            if number > 31 { year = Some(number) } else { day = Some(i8::try_from(number).ok()?) }
        } else {
            return None;
        }
    }
    if let Some(month) = month {
        date = Some(civil::Date::new(year.unwrap_or(now.year()), month, day.unwrap_or(1)).ok()?);
    }
    if date.is_none() && time.is_none() {
        return None;
    }
    let mut time = time.unwrap_or(civil::Time::midnight());
    if let Some(afternoon) = afternoon {
        let hour = time.hour() % 12 + if afternoon { 12 } else { 0 };
        time =
            civil::Time::new(hour, time.minute(), time.second(), time.subsec_nanosecond()).ok()?;
    }
    Some(date.unwrap_or(now.date()).to_datetime(time))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

fn clock(word: &str) -> Option<civil::Time> {
    let word = word.trim_end_matches('z');
    // A zone behind the time is read over: the result has none.
    let end = word.find(['+']).or_else(|| word.rfind('-')).unwrap_or(word.len());
    let (word, afternoon) = match &word[..end] {
        word if word.ends_with("pm") => (&word[..word.len() - 2], Some(true)),
        word if word.ends_with("am") => (&word[..word.len() - 2], Some(false)),
        word => (word, None),
    };
    let mut parts = word.split(':');
    let mut hour: i8 = parts.next()?.parse().ok()?;
    if let Some(afternoon) = afternoon {
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    let minute: i8 = parts.next()?.parse().ok()?;
    let seconds = parts.next().unwrap_or("0");
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let nanos: i32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    civil::Time::new(hour, minute, second.parse().ok()?, nanos).ok()
}

fn numeric_date(word: &str) -> Option<civil::Date> {
    let separator = word.chars().find(|c| matches!(c, '-' | '/' | '.'))?;
    let parts: Vec<&str> = word.split(separator).collect();
    let number = |at: usize| -> Option<i16> { parts.get(at)?.parse().ok() };
    let small = |at: usize| -> Option<i8> { parts.get(at)?.parse().ok() };
    match (parts.len(), separator) {
        (3, _) if parts[0].len() == 4 => civil::Date::new(number(0)?, small(1)?, small(2)?).ok(),
        // American order with slashes, European with the others.
        (3, '/') => civil::Date::new(full_year(number(2)?), small(0)?, small(1)?).ok(),
        (3, _) => civil::Date::new(full_year(number(2)?), small(1)?, small(0)?).ok(),
        (2, '-') if parts[0].len() == 4 => civil::Date::new(number(0)?, small(1)?, 1).ok(),
        _ => None,
    }
}

fn full_year(year: i16) -> i16 {
    match year {
        0..=69 => 2000 + year,
        70..=99 => 1900 + year,
        other => other,
    }
}

/// `+1 day`, `2 weeks ago`, `next month`.
fn relative(text: &str, now: DateTime) -> Option<DateTime> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (amount, unit, ago) = match words[..] {
        [amount, unit] => (amount, unit, false),
        [amount, unit, "ago"] => (amount, unit, true),
        [one] if one.starts_with(['+', '-']) => {
            let split = one.find(|c: char| c.is_ascii_alphabetic())?;
            (&one[..split], &one[split..], false)
        }
        _ => return None,
    };
    let amount: i64 = match amount {
        "next" => 1,
        "last" | "previous" => -1,
        other => other.parse().ok()?,
    };
    let amount = if ago { -amount } else { amount };
    if amount.abs() > 1_000_000 {
        return None;
    }
    let span = match unit.trim_end_matches('s') {
        "sec" | "second" => amount.seconds(),
        "min" | "minute" => amount.minutes(),
        "hour" => amount.hours(),
        "day" => amount.days(),
        "week" => amount.weeks(),
        "fortnight" => (amount * 2).weeks(),
        "month" => amount.months(),
        "year" => amount.years(),
        _ => return None,
    };
    now.checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let time = parse(text).map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
        assert_eq!(time.as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn dates_are_read_as_people_write_them() {
        check("2002/12/25", "2002-12-25 00:00:00");
        check("12/25/2002", "2002-12-25 00:00:00");
        check("25.12.2002", "2002-12-25 00:00:00");
        check("2002-12-25T10:11:12", "2002-12-25 10:11:12");
        check("2002-12-25 10:11", "2002-12-25 10:11:00");
        check("25 December 2002", "2002-12-25 00:00:00");
        check("Dec 25, 2002 3:04pm", "2002-12-25 15:04:00");
        check("20021225", "2002-12-25 00:00:00");
        assert!(parse("rubbish").is_none());
    }

    #[test]
    fn directives_are_pythons() {
        let time = civil::date(2024, 3, 5).at(6, 7, 8, 9_000_000);
        for (format, expected) in [
            ("%Y-%m-%d", "2024-03-05"),
            ("%-d.%-m.%y", "5.3.24"),
            ("%f|%z|%%", "009000||%"),
            ("%A %B %j", "Tuesday March 065"),
            ("100%", "100%"),
        ] {
            assert_eq!(strftime(&time, format).expect("fine"), expected);
        }
    }
}
