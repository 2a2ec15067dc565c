//! Dates and times as people write them: `5:00pm`, `Monday 9am`, `2026-11-16T17:00:00`, `11/16/2026`.
//!
//! What is not said is today, at midnight, as with Python's dateutil, which Salt uses. A weekday
//! is the next day of that name, today included.

use halite_value::DateTime;
use jiff::{
    ToSpan,
    civil::{Date, Time, Weekday},
};

/// The text is no date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no date or time")]
pub struct WhenError(pub String);

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
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
/// Words without meaning of their own.
const FILLERS: [&str; 7] = ["at", "on", "of", "and", "the", "t", "ad"];

/// Reads a date; `today` gives what it leaves out.
pub fn parse(text: &str, today: Date) -> Result<DateTime, WhenError> {
    let wrong = || WhenError(text.to_owned());
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(wrong());
    }
    let mut found = Found::default();
    let mut tokens = tokens(trimmed).into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => found.word(&word).ok_or_else(wrong)?,
            Token::Number(number) => {
                if let Some(Token::Word(word)) = tokens.peek()
                    && let Some(afternoon) = half(word)
                {
                    found.time(&number, Some(afternoon)).ok_or_else(wrong)?;
                    tokens.next();
                } else if let Some(Token::Word(word)) = tokens.peek()
                    && let Some(unit) = unit(word)
                {
                    found.part(&number, unit).ok_or_else(wrong)?;
                    tokens.next();
                } else {
                    found.number(&number, today).ok_or_else(wrong)?;
                }
            }
        }
    }
    found.finish(today).ok_or_else(wrong)
}

enum Token {
    Word(String),
    /// Digits with their separators: `17:00`, `11/16/2026`, `5`.
    Number(String),
}

/// Splits at blanks, commas, and between letters and digits.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut current = String::new();
    let mut letters = false;
    let mut push = |current: &mut String, letters: bool| {
        let taken = std::mem::take(current);
        let taken = taken.trim_end_matches(['.', '-', '/']).to_owned();
        if !taken.is_empty() {
            tokens.push(if letters {
                Token::Word(taken.to_ascii_lowercase())
            } else {
                Token::Number(taken)
            });
        }
    };
    for c in text.chars() {
        let is_letter = c.is_alphabetic();
        if c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '\'') {
            push(&mut current, letters);
        } else {
            if !current.is_empty() && is_letter != letters && !(letters && c == '.') {
                push(&mut current, letters);
            }
            if current.is_empty() {
                letters = is_letter;
            }
            current.push(c);
        }
    }
    push(&mut current, letters);
    tokens
}

/// Tells whether a word is `pm`; `None` if it is neither half of a day.
fn half(word: &str) -> Option<bool> {
    match word.replace('.', "").as_str() {
        "am" | "a" => Some(false),
        "pm" | "p" => Some(true),
        _ => None,
    }
}

/// Tells which part of a time a word stands for: hours, minutes or seconds.
fn unit(word: &str) -> Option<usize> {
    match word {
        "h" | "hour" | "hours" => Some(0),
        "m" | "minute" | "minutes" => Some(1),
        "s" | "second" | "seconds" => Some(2),
        _ => None,
    }
}

/// Returns the year that two digits mean: the nearest.
fn century(year: i16, today: Date) -> i16 {
    let year = today.year() / 100 * 100 + year;
    if year >= today.year() + 50 {
        year - 100
    } else if year < today.year() - 50 {
        year + 100
    } else {
        year
    }
}

#[derive(Default)]
struct Found {
    year: Option<i16>,
    month: Option<i8>,
    /// Numbers whose place is still open.
    open: Vec<i16>,
    weekday: Option<Weekday>,
    time: Option<Time>,
    date: Option<Date>,
}

impl Found {
    fn word(&mut self, word: &str) -> Option<()> {
        let is = |name: &str| word == name || word.len() >= 3 && name.starts_with(word);
        if let Some(place) = MONTHS.iter().position(|name| is(name)) {
            self.month = i8::try_from(place + 1).ok();
        } else if let Some((_, day)) = WEEKDAYS.iter().find(|(name, _)| is(name)) {
            self.weekday = Some(*day);
        } else if !FILLERS.contains(&word)
            && !matches!(word, "z" | "utc" | "gmt" | "st" | "nd" | "rd" | "th")
        {
            return None;
        }
        Some(())
    }

    fn time(&mut self, text: &str, afternoon: Option<bool>) -> Option<()> {
        // A fraction of a second and a zone are of no use to a schedule.
        let text = text.split(['.', '+']).next()?;
        let mut parts = text.split(':').map(|part| part.parse::<i8>().ok());
        let mut hour = parts.next()??;
        let minute = parts.next().unwrap_or(Some(0))?;
        let second = parts.next().unwrap_or(Some(0))?;
        if let Some(afternoon) = afternoon {
            hour = match (hour, afternoon) {
                (0..12, true) => hour + 12,
                (12, false) => 0,
                _ => hour,
            };
        }
        self.time = Some(Time::new(hour, minute, second, 0).ok()?);
        Some(())
    }

    /// Takes one part of a time that is written with units: `5h30m`.
    fn part(&mut self, text: &str, unit: usize) -> Option<()> {
        let time = self.time.unwrap_or(Time::midnight());
        let mut parts = [time.hour(), time.minute(), time.second()];
        *parts.get_mut(unit)? = text.parse().ok()?;
        let [hour, minute, second] = parts;
        self.time = Some(Time::new(hour, minute, second, 0).ok()?);
        Some(())
    }

    fn number(&mut self, text: &str, today: Date) -> Option<()> {
        if text.contains(':') {
            return self.time(text, None);
        }
        // `31-Dec-2030`
        let text = match text.strip_prefix('-') {
            Some(rest) if self.month.is_some() && self.time.is_none() => rest,
            _ => text,
        };
        if text.starts_with(['+', '-']) {
            // A zone after a time.
            return self.time.map(drop);
        }
        if let Some(separator) = ['-', '/', '.'].into_iter().find(|c| text.contains(*c)) {
            let parts: Vec<&str> = text.split(separator).collect();
            let numbers: Vec<i16> =
                parts.iter().map(|part| part.parse().ok()).collect::<Option<_>>()?;
            return match *numbers {
                [year, month, day] if parts.first()?.len() == 4 => self.set(year, month, day),
                [one, other, year] => {
                    let year = if parts.last()?.len() <= 2 { century(year, today) } else { year };
                    let (month, day) = if one > 12 { (other, one) } else { (one, other) };
                    self.set(year, month, day)
                }
                // `Dec-31-2030`
                [day, year] if self.month.is_some() && parts.last()?.len() == 4 => {
                    self.open.push(day);
                    self.year = Some(year);
                    Some(())
                }
                [one, other] => {
                    let (month, day) = if one > 12 { (other, one) } else { (one, other) };
                    self.month = i8::try_from(month).ok();
                    self.open.push(day);
                    Some(())
                }
                _ => None,
            };
        }
        let part = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse().ok());
        match text.len() {
            8 | 12 | 14 => {
                self.set(part(0, 4)?, part(4, 6)?, part(6, 8)?)?;
                if text.len() > 8 {
                    let second = part(12, 14).unwrap_or(0);
                    let small = |number: i16| i8::try_from(number).ok();
                    let time =
                        Time::new(small(part(8, 10)?)?, small(part(10, 12)?)?, small(second)?, 0);
                    self.time = Some(time.ok()?);
                }
                Some(())
            }
            4 if self.date.is_some() && self.time.is_none() => {
                let small = |number: i16| i8::try_from(number).ok();
                self.time = Some(Time::new(small(part(0, 2)?)?, small(part(2, 4)?)?, 0, 0).ok()?);
                Some(())
            }
            4 => {
                self.year = Some(part(0, 4)?);
                Some(())
            }
            6 if self.date.is_some() => {
                let small = |number: i16| i8::try_from(number).ok();
                let time =
                    Time::new(small(part(0, 2)?)?, small(part(2, 4)?)?, small(part(4, 6)?)?, 0);
                self.time = Some(time.ok()?);
                Some(())
            }
            1 | 2 => {
                let number = text.parse().ok()?;
                if number > 31 && self.year.is_none() {
                    self.year = Some(century(number, today));
                } else {
                    self.open.push(number);
                }
                Some(())
            }
            _ => None,
        }
    }

    fn set(&mut self, year: i16, month: i16, day: i16) -> Option<()> {
        let small = |number: i16| i8::try_from(number).ok();
        self.date = Some(Date::new(year, small(month)?, small(day)?).ok()?);
        Some(())
    }

    fn finish(self, today: Date) -> Option<DateTime> {
        let date = match self.date {
            Some(date) => date,
            None => {
                let (month, open) = match (self.month, self.open.as_slice()) {
                    // Two numbers beside the year are day and month, whichever fits.
                    (None, &[one, other]) if self.year.is_some() => {
                        let (month, day) = if one > 12 { (other, one) } else { (one, other) };
                        (i8::try_from(month).ok(), vec![day])
                    }
                    (month, _) => (month, self.open),
                };
                let mut open = open.into_iter();
                let month = month.unwrap_or(today.month());
                let day = open.next().map_or(Some(today.day()), |day| i8::try_from(day).ok())?;
                let year = match (self.year, open.next()) {
                    (Some(year), None) => year,
                    (None, Some(year)) if self.month.is_some() => century(year, today),
                    (None, None) => today.year(),
                    _ => return None,
                };
                Date::new(year, month, day).ok()?
            }
        };
        let date = match self.weekday {
            Some(weekday) => {
                let ahead = weekday.since(date.weekday());
                date.checked_add(i64::from(ahead).days()).ok()?
            }
            None => date,
        };
        Some(date.to_datetime(self.time.unwrap_or(Time::midnight())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected answers are dateutil's, with 16 November 2026 (a Monday) as today.
    #[test]
    fn as_dateutil() {
        for (text, expected) in [
            ("5:00pm", "2026-11-16T17:00:00"),
            ("5pm", "2026-11-16T17:00:00"),
            ("5:30 PM", "2026-11-16T17:30:00"),
            ("12am", "2026-11-16T00:00:00"),
            ("12:30pm", "2026-11-16T12:30:00"),
            ("20:15:30", "2026-11-16T20:15:30"),
            ("Monday 5:00pm", "2026-11-16T17:00:00"),
            ("Tue 5:00pm", "2026-11-17T17:00:00"),
            ("Sunday 08:00", "2026-11-22T08:00:00"),
            ("2026-12-01T17:00:00", "2026-12-01T17:00:00"),
            ("2026-12-01 17:00", "2026-12-01T17:00:00"),
            ("11/29/2017 4:00pm", "2017-11-29T16:00:00"),
            ("12/13/2017 1:00pm", "2017-12-13T13:00:00"),
            ("13.12.2017", "2017-12-13T00:00:00"),
            ("Nov 29 2017 4pm", "2017-11-29T16:00:00"),
            ("29 November 2017, 16:00", "2017-11-29T16:00:00"),
            ("20171129T160000", "2017-11-29T16:00:00"),
            ("8/15", "2026-08-15T00:00:00"),
            ("2026-12-01", "2026-12-01T00:00:00"),
            ("2026-12-01T17:00:00.123456", "2026-12-01T17:00:00"),
            ("December 24th 6pm", "2026-12-24T18:00:00"),
        ] {
            let today = Date::constant(2026, 11, 16);
            let found = parse(text, today).map(|time| time.to_string());
            assert_eq!(found.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "garbage", "25:00", "25pm", "2026-13-01", "5:61pm", "x5"] {
            assert!(parse(text, Date::constant(2026, 11, 16)).is_err(), "{text}");
        }
    }
}
