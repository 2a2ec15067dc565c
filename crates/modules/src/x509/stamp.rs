//! Times as certificates have them: whole seconds of UTC.

use halite_spec::{Error, Result};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::der::{self, Item};

const FORMAT: &str = "%Y-%m-%d %H:%M:%S";

/// Reads `2024-01-31 12:00:00`.
pub fn parse(text: &str) -> Result<Timestamp> {
    let read = DateTime::strptime(FORMAT, text.trim()).ok();
    let read = read.and_then(|time| time.to_zoned(TimeZone::UTC).ok());
    let read = read.map(|time| time.timestamp());
    read.ok_or_else(|| {
        Error::invalid(format!("time data '{text}' does not match format '{FORMAT}'"))
    })
}

/// `2024-01-31 12:00:00`
pub fn shown(time: Timestamp) -> String {
    time.strftime(FORMAT).to_string()
}

/// Now, without a fraction.
pub fn now(cx: &halite_spec::Cx) -> Timestamp {
    let since = cx.host.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    Timestamp::from_second(seconds).unwrap_or_default()
}

pub fn after_days(time: Timestamp, days: i64) -> Result<Timestamp> {
    let later = days.checked_mul(86_400).and_then(|seconds| time.as_second().checked_add(seconds));
    let later = later.and_then(|seconds| Timestamp::from_second(seconds).ok());
    later.ok_or_else(|| Error::invalid(format!("{days} days are too many")))
}

/// `20240131120000Z`
pub fn long(time: Timestamp) -> String {
    time.strftime("%Y%m%d%H%M%SZ").to_string()
}

/// Writes a time: two digits of the year before 2050, four from then on, as the standard wants it.
pub fn write(time: Timestamp) -> Vec<u8> {
    let text = long(time);
    match text.get(2..).filter(|_| (1950..2050).contains(&time.to_zoned(TimeZone::UTC).year())) {
        Some(short) => der::element(der::UTC_TIME, short.as_bytes()),
        None => der::element(der::GENERALIZED_TIME, text.as_bytes()),
    }
}

pub fn read(item: Item) -> Option<Timestamp> {
    let text = item.text();
    let digits = text.trim_end_matches('Z');
    let text = match item.tag {
        der::UTC_TIME => {
            let year: u32 = digits.get(..2)?.parse().ok()?;
            format!("{}{digits}", if year < 50 { "20" } else { "19" })
        }
        der::GENERALIZED_TIME => digits.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for text in [
            "2020-01-02 03:04:05",
            "2049-12-31 23:59:59",
            "2050-01-01 00:00:00",
            "1960-01-01 00:00:00",
        ] {
            let written = write(parse(text).unwrap());
            let item = der::Items::of(&written).next().unwrap();
            assert_eq!(shown(read(item).unwrap()), text);
        }
        assert_eq!(write(parse("2050-01-01 00:00:00").unwrap())[0], der::GENERALIZED_TIME);
        let error = parse("x").unwrap_err().to_string();
        assert_eq!(error, "time data 'x' does not match format '%Y-%m-%d %H:%M:%S'");
    }
}
