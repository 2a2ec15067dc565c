//! Cron expressions: five fields, a sixth for seconds, and the `@daily` names.
//!
//! Rules are croniter's, which Salt uses: if both days are restricted, one of them is enough; 0 and
//! 7 are Sunday; `L` is the last day of the month, `5#2` the second Friday, `L5` the last one.

use halite_value::DateTime;
use jiff::{ToSpan, civil::Date};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    last_day: bool,
    months: u64,
    weekdays: u64,
    /// Weekday and its place in the month; 0 is the last one.
    nth: Vec<(u64, u64)>,
    any_day: bool,
    any_weekday: bool,
}

/// The expression is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cron expression `{text}` cannot be understood: {why}")]
pub struct CronError {
    text: String,
    why: String,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// February 29th on a given weekday comes every 28 years, or 40 around a century.
const HORIZON_DAYS: usize = 366 * 41;

struct Field {
    name: &'static str,
    low: u64,
    high: u64,
    names: &'static [&'static str],
    /// The number of the first name.
    first: u64,
}

const fn field(name: &'static str, low: u64, high: u64) -> Field {
    Field { name, low, high, names: &[], first: 0 }
}

const MONTH: Field = Field { name: "month", low: 1, high: 12, names: &MONTHS, first: 1 };
const WEEKDAY: Field =
    Field { name: "day of the week", low: 0, high: 7, names: &WEEKDAYS, first: 0 };

impl Field {
    fn number(&self, text: &str) -> Result<u64, String> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let number = match named {
            Some(place) => place as u64 + self.first,
            None => text.parse().map_err(|_| format!("`{text}` is no {}", self.name))?,
        };
        if (self.low..=self.high).contains(&number) {
            Ok(number)
        } else {
            Err(format!("the {} {number} is not within {} and {}", self.name, self.low, self.high))
        }
    }

    /// Reads one part of a list: `*`, `5`, `1-5`, `*/15`, `10/5`.
    fn part(&self, part: &str) -> Result<u64, String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step: u64 = step.parse().map_err(|_| format!("`{step}` is no step"))?;
                if step == 0 {
                    return Err("a step of 0".into());
                }
                (range, Some(step))
            }
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (self.low, self.high.min(self.last_of_star())),
            Some((from, to)) => (self.number(from)?, self.number(to)?),
            None => {
                let from = self.number(range)?;
                (from, if step.is_some() { self.high.min(self.last_of_star()) } else { from })
            }
        };
        let step = step.unwrap_or(1);
        let mut bits = 0;
        let mut add = |number: u64| {
            // Sunday has two numbers.
            let number = if self.high == 7 && number == 7 { 0 } else { number };
            bits |= 1_u64 << number;
        };
        if from <= to {
            (from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX)).for_each(&mut add);
        } else {
            // `fri-mon` goes around the end.
            let span = self.last_of_star() - self.low + 1;
            let mut number = from;
            while number <= to + span {
                add((number - self.low) % span + self.low);
                number += step;
            }
        }
        Ok(bits)
    }

    fn last_of_star(&self) -> u64 {
        if self.high == 7 { 6 } else { self.high }
    }

    fn read(&self, text: &str) -> Result<u64, String> {
        text.split(',').try_fold(0, |bits, part| Ok(bits | self.part(part)?))
    }
}

impl Cron {
    pub fn parse(text: &str) -> Result<Self, CronError> {
        Self::read(text).map_err(|why| CronError { text: text.into(), why })
    }

    fn read(text: &str) -> Result<Self, String> {
        let expanded = match text.trim().to_ascii_lowercase().as_str() {
            "@midnight" | "@daily" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            _ => text.trim(),
        };
        let fields: Vec<&str> = expanded.split_whitespace().collect();
        let (minutes, hours, days, months, weekdays, seconds) = match *fields {
            [minutes, hours, days, months, weekdays] => {
                (minutes, hours, days, months, weekdays, "0")
            }
            [minutes, hours, days, months, weekdays, seconds] => {
                (minutes, hours, days, months, weekdays, seconds)
            }
            _ => return Err(format!("it has {} fields, not 5 or 6", fields.len())),
        };
        let mut last_day = false;
        let mut day_bits = 0;
        for part in days.split(',') {
            if part.eq_ignore_ascii_case("l") {
                last_day = true;
            } else {
                day_bits |= field("day", 1, 31).part(part)?;
            }
        }
        let mut nth = Vec::new();
        let mut weekday_bits = 0;
        for part in weekdays.split(',') {
            if let Some((day, place)) = part.split_once('#') {
                let place: u64 = place.parse().map_err(|_| format!("`{part}` is no day"))?;
                if !(1..=5).contains(&place) {
                    return Err(format!("no month has day {part}"));
                }
                nth.push((WEEKDAY.number(day)? % 7, place));
            } else if let Some(day) = part.strip_prefix(['l', 'L']).filter(|day| !day.is_empty()) {
                nth.push((WEEKDAY.number(day)? % 7, 0));
            } else {
                weekday_bits |= WEEKDAY.part(part)?;
            }
        }
        let star = |text: &str| text.starts_with('*') || text == "?";
        Ok(Self {
            seconds: field("second", 0, 59).read(seconds)?,
            minutes: field("minute", 0, 59).read(minutes)?,
            hours: field("hour", 0, 23).read(hours)?,
            days: day_bits,
            last_day,
            months: MONTH.read(months)?,
            weekdays: weekday_bits,
            nth,
            any_day: star(days),
            any_weekday: star(weekdays),
        })
    }

    fn has_day(&self, date: Date) -> bool {
        let day = date.day().unsigned_abs().into();
        let by_month = has(self.days, day) || self.last_day && date.day() == date.days_in_month();
        let weekday: u64 = date.weekday().to_sunday_zero_offset().unsigned_abs().into();
        let nth = |(wanted, place): &(u64, u64)| {
            weekday == *wanted
                && match place {
                    0 => date.day() + 7 > date.days_in_month(),
                    place => (day - 1) / 7 + 1 == *place,
                }
        };
        let by_week = has(self.weekdays, weekday) || self.nth.iter().any(nth);
        match (self.any_day, self.any_weekday) {
            // `*/2` is a star that leaves days out.
            (true, true) => by_month && by_week,
            (true, false) => by_month && by_week,
            (false, true) => by_month && by_week,
            (false, false) => by_month || by_week,
        }
    }

    /// Returns the first time after this one; `None` if there is none (31 February).
    pub fn next_after(&self, time: DateTime) -> Option<DateTime> {
        let start = time.with().subsec_nanosecond(0).build().ok()?.checked_add(1.second()).ok()?;
        let mut date = start.date();
        let mut earliest = Some(start.time());
        for _ in 0..HORIZON_DAYS {
            let month = date.month().unsigned_abs().into();
            if has(self.months, month) && self.has_day(date) {
                let from = earliest.map_or((0, 0, 0), |time| {
                    (time.hour().into(), time.minute().into(), time.second().into())
                });
                if let Some((hour, minute, second)) = self.time_from(from) {
                    return Some(date.at(hour, minute, second, 0));
                }
            }
            earliest = None;
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// Returns the first time of a day from this one on.
    fn time_from(&self, (hour, minute, second): (i64, i64, i64)) -> Option<(i8, i8, i8)> {
        let from = |bits: u64, low: i64, high: i64| {
            (low..=high).find(|number| has(bits, number.unsigned_abs()))
        };
        let small = |number: i64| i8::try_from(number).unwrap_or(0);
        let found =
            |hour: i64, minute: i64, second: i64| Some((small(hour), small(minute), small(second)));
        if has(self.hours, hour.unsigned_abs()) {
            if has(self.minutes, minute.unsigned_abs())
                && let Some(second) = from(self.seconds, second, 59)
            {
                return found(hour, minute, second);
            }
            if let Some(minute) = from(self.minutes, minute + 1, 59) {
                return found(hour, minute, from(self.seconds, 0, 59)?);
            }
        }
        let hour = from(self.hours, hour + 1, 23)?;
        found(hour, from(self.minutes, 0, 59)?, from(self.seconds, 0, 59)?)
    }
}

fn has(bits: u64, number: u64) -> bool {
    number < 64 && bits & (1 << number) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected answers are croniter's.
    #[test]
    fn next_times() {
        for (expression, from, expected) in [
            ("* * * * *", "2026-11-16T01:02:03", "2026-11-16T01:03:00"),
            ("*/15 * * * *", "2026-11-16T01:15:00", "2026-11-16T01:30:00"),
            ("0 3 * * *", "2026-11-16T03:00:00", "2026-11-17T03:00:00"),
            ("0 3 * * 1-5", "2026-11-20T03:00:00", "2026-11-23T03:00:00"),
            ("0 0 13 * 5", "2026-11-16T00:00:00", "2026-11-20T00:00:00"),
            ("0 0 1 jan *", "2026-11-16T00:00:00", "2027-01-01T00:00:00"),
            ("0 0 L * *", "2026-02-01T00:00:00", "2026-02-28T00:00:00"),
            ("0 0 * * 5#2", "2026-11-16T00:00:00", "2026-12-11T00:00:00"),
            ("0 0 * * L5", "2026-11-16T00:00:00", "2026-11-27T00:00:00"),
            ("0 0 29 2 *", "2026-11-16T00:00:00", "2028-02-29T00:00:00"),
            ("30 8,20 * * sun", "2026-11-16T09:00:00", "2026-11-22T08:30:00"),
            ("0 0 * * 7", "2026-11-16T09:00:00", "2026-11-22T00:00:00"),
            ("0 0 * * fri-mon", "2026-11-17T09:00:00", "2026-11-20T00:00:00"),
            ("* * * * * */20", "2026-11-16T01:02:03", "2026-11-16T01:02:20"),
            ("10/20 * * * *", "2026-11-16T01:02:03", "2026-11-16T01:10:00"),
            ("@hourly", "2026-11-16T01:02:03", "2026-11-16T02:00:00"),
            ("59 23 31 12 *", "2026-12-31T23:59:00", "2027-12-31T23:59:00"),
        ] {
            let cron = Cron::parse(expression).unwrap();
            let next = cron.next_after(from.parse().unwrap()).map(|time| time.to_string());
            assert_eq!(next.as_deref(), Some(expected), "{expression} after {from}");
        }
        assert_eq!(
            Cron::parse("0 0 31 2 *")
                .unwrap()
                .next_after(DateTime::constant(2026, 1, 1, 0, 0, 0, 0)),
            None
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "* * * *",
            "60 * * * *",
            "a * * * *",
            "*/0 * * * *",
            "* * 0 * *",
            "* * * * 8",
            "0 0 * * 5#6",
        ] {
            assert!(Cron::parse(text).is_err(), "{text}");
        }
    }
}
