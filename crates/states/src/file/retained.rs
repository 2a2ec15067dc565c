//! `file.retention_schedule`: which backups of a folder to keep.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, SystemTime},
};

use halite_modules::file::paths::joined;
use halite_spec::{Applied, Args, Cx, Error, FromArg, Plan, Result, State};
use halite_value::{Dict, Value, entries};
use jiff::{Timestamp, civil::DateTime, fmt::strtime, tz::TimeZone};

use super::{Found, given};

/// Keep backups of a folder by a schedule, and remove the others.
#[derive(Args)]
pub struct RetentionSchedule {
    /// The folder.
    name: String,
    /// How many of which kind to keep: `most_recent`, `first_of_hour`, `first_of_day`,
    /// `first_of_week`, `first_of_month`, `first_of_year`; a number or `all`.
    retain: Dict,
    /// How the time stands in names; the time of the last change, if not given.
    strptime_format: Option<String>,
    /// The time zone of times of change.
    timezone: Option<String>,
}

/// Files by time, in levels: the way to each is a list of numbers.
type Levels = BTreeMap<Vec<i64>, String>;

/// The first file below each of the newest `count` ways of this depth.
fn newest_ways(levels: &Levels, depth: usize, count: usize) -> BTreeSet<String> {
    let mut ways: BTreeMap<&[i64], &String> = BTreeMap::new();
    for (way, file) in levels {
        ways.entry(&way[..depth.min(way.len())]).or_insert(file);
    }
    ways.into_values().rev().take(count).cloned().collect()
}

impl RetentionSchedule {
    fn time_of(&self, cx: &Cx, folder: &str, file: &str) -> Option<(DateTime, f64)> {
        let zone = match &self.timezone {
            Some(name) => TimeZone::get(name).unwrap_or(TimeZone::UTC),
            None => TimeZone::system(),
        };
        match &self.strptime_format {
            Some(format) => {
                let parsed = strtime::parse(format, file).ok()?;
                let time = parsed
                    .to_datetime()
                    .ok()
                    .or_else(|| parsed.to_date().ok().map(|date| date.at(0, 0, 0, 0)))?;
                let seconds = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
                Some((time, seconds.as_duration().as_secs_f64()))
            }
            None => {
                if file == "." || file == ".." {
                    return None;
                }
                let path = joined(folder, file);
                let stat = cx.host.stat(Path::new(&path), false).ok()?;
                let time = SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(stat.mtime).ok()?;
                let time = Timestamp::try_from(time).ok()?.to_zoned(zone).datetime();
                Some((time, stat.mtime))
            }
        }
    }

    fn sorted_out(&self, cx: &Cx, folder: &str) -> Result<Dict> {
        let names = cx.host.read_dir(Path::new(folder))?;
        let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
        let (mut by_day, mut by_week) = (Levels::new(), Levels::new());
        let (mut relevant, mut ignored) = (BTreeSet::new(), BTreeSet::new());
        for file in [".".to_owned(), "..".to_owned()].into_iter().chain(names) {
            let Some((time, seconds)) = self.time_of(cx, folder, &file) else {
                ignored.insert(file);
                continue;
            };
            // A way must be whole numbers; parts of a second count, too.
            let instant = (seconds * 1_000_000.0) as i64;
            let (year, month, day) =
                (i64::from(time.year()), i64::from(time.month()), i64::from(time.day()));
            let week = i64::from(time.date().iso_week_date().week());
            let weekday = i64::from(time.date().weekday().to_monday_zero_offset());
            by_day.insert(vec![year, month, day, i64::from(time.hour()), instant], file.clone());
            by_week.insert(vec![year, week, weekday, instant], file.clone());
            relevant.insert(file);
        }
        let mut kept = BTreeSet::new();
        for (rule, count) in &self.retain {
            let count = if count.to_str() == "all" {
                usize::MAX
            } else {
                let number = i64::from_arg(count.clone()).map_err(|_| {
                    Error::failed(format!(
                        "invalid literal for int() with base 10: {}",
                        count.repr()
                    ))
                })?;
                usize::try_from(number).unwrap_or(0)
            };
            kept.extend(match rule.to_str().as_str() {
                "first_of_week" => newest_ways(&by_week, 2, count.saturating_add(1)),
                "first_of_year" => newest_ways(&by_day, 1, count),
                "first_of_month" => newest_ways(&by_day, 2, count),
                "first_of_day" => newest_ways(&by_day, 3, count),
                "first_of_hour" => newest_ways(&by_day, 4, count),
                "most_recent" => newest_ways(&by_day, 5, count),
                other => return Err(Error::failed(format!("unknown retention rule '{other}'"))),
            });
        }
        let newest_first =
            |set: Vec<&String>| -> Value { Value::list(set.into_iter().rev().map(String::as_str)) };
        Ok(entries! {
            "retained" => newest_first(kept.iter().collect()),
            "deleted" => newest_first(relevant.difference(&kept).collect()),
            "ignored" => newest_first(ignored.iter().collect()),
        })
    }
}

impl State for RetentionSchedule {
    type Seen = Found<(String, Vec<String>)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = given(cx, &self.name, "retention_schedule")?;
        if !cx.host.is_dir(Path::new(&name))? {
            return Err(Error::failed("Name provided to file.retention must be a directory"));
        }
        let changes = self.sorted_out(cx, &name)?;
        let deleted = changes.get("deleted").unwrap_or_default();
        let deleted = Vec::<String>::from_arg(deleted).unwrap_or_default();
        let count = deleted.len();
        let (pending, done) = (
            format!("{count} backups would have been removed from {name}.\n"),
            format!("{count} backups were removed from {name}.\n"),
        );
        if deleted.is_empty() {
            return Ok(Found::right_but(pending, done));
        }
        let plan = Plan::changes(changes).pending(pending).done(done);
        Ok(Found::todo(plan, (name, deleted)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        if let Some((name, deleted)) = seen.work {
            for file in deleted {
                cx.host.remove_all(Path::new(&joined(&name, &file)))?;
            }
        }
        Ok(Applied::as_planned())
    }
}
