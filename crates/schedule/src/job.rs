//! One job: how its options become times, and whether it runs when its time has come.

use halite_value::{DateTime, Dict, Value};
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned, fmt::strtime};

use crate::{
    cron::Cron,
    table::{function_of, placed},
    when,
};

/// A wall-clock time that is noticed later than this has been missed: the machine slept, or its
/// clock was set. It is not made up for, as a job meant for the night must not run at noon.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// When a job runs.
#[derive(Clone, Debug)]
pub enum Timing {
    /// Every so many seconds.
    Every(i64),
    /// At these times; names stand for entries of `whens`.
    When(Vec<Value>),
    Cron(Cron),
    Once(DateTime),
}

impl Timing {
    /// Reads the options; `None` when the job says nothing of time.
    pub fn read(job: &Dict) -> Result<Option<Self>, String> {
        let given = |name: &str| job.get(name).filter(|value| !value.is_null());
        let intervals = ["seconds", "minutes", "hours", "days"];
        let every = intervals.iter().any(|name| given(name).is_some());
        let (when, cron, once) = (given("when"), given("cron"), given("once"));
        if every && (when.is_some() || cron.is_some()) {
            return Err("Unable to use \"seconds\", \"minutes\", \"hours\", or \"days\" with \
                        \"when\" or \"cron\" options."
                .into());
        }
        if when.is_some() && cron.is_some() {
            return Err("Unable to use \"when\" and \"cron\" options together.".into());
        }
        if every {
            let mut seconds = 0.0;
            for (name, factor) in intervals.iter().zip([1.0, 60.0, 3600.0, 86400.0]) {
                let Some(value) = given(name) else { continue };
                let number = match &value {
                    Value::Str(text) => text.trim().parse().ok(),
                    other => other.as_float(),
                };
                let number: f64 =
                    number.ok_or_else(|| format!("`{name}` is no number: {value}"))?;
                seconds += number * factor;
            }
            return if seconds >= 1.0 {
                Ok(Some(Self::Every(seconds as i64)))
            } else {
                Err("the interval is shorter than a second".into())
            };
        }
        if let Some(once) = once {
            let text = once.to_str();
            let fmt = given("once_fmt").map_or("%Y-%m-%dT%H:%M:%S".into(), |fmt| fmt.to_str());
            let at = match &once {
                Value::Timestamp(at) => Some(*at),
                _ => strtime::parse(fmt.as_str(), &text).ok().and_then(|at| at.to_datetime().ok()),
            };
            let at = at.ok_or_else(|| format!("Date string could not be parsed: {text}, {fmt}"))?;
            return Ok(Some(Self::Once(at)));
        }
        if let Some(cron) = cron {
            return Cron::parse(&cron.to_str())
                .map(|cron| Some(Self::Cron(cron)))
                .map_err(|e| e.to_string());
        }
        Ok(when.map(|when| Self::When(when.items_of_sequence().unwrap_or_else(|| vec![when]))))
    }
}

/// Says what of a job has not the form it must have, whatever its times are.
fn usable(job: &Dict) -> Result<(), String> {
    let given = |name: &str| job.get(name).filter(|value| !value.is_null());
    if function_of(job).is_none() {
        return Err("it names no function".into());
    }
    if let Some(kwargs) = given("kwargs").filter(|kwargs| kwargs.as_dict().is_none()) {
        return Err(format!("`kwargs` is no map: {kwargs}"));
    }
    match given("maxrunning").filter(|most| most.to_int().is_none()) {
        Some(most) => Err(format!("`maxrunning` is no number: {most}")),
        None => Ok(()),
    }
}

/// Reads one time; `whens` gives names to times.
pub(crate) fn moment(text: &Value, whens: &Dict, day: &Zoned) -> Result<Timestamp, String> {
    let named = whens.get(text.to_str().as_str());
    let value = named.as_ref().unwrap_or(text);
    let civil = match value {
        Value::Timestamp(at) => *at,
        // A number is a moment by itself.
        Value::Int(seconds) => {
            return Timestamp::from_second(*seconds).map_err(|error| error.to_string());
        }
        other => when::parse(&other.to_str(), day.date()).map_err(|error| error.to_string())?,
    };
    let zoned = civil.to_zoned(day.time_zone().clone()).map_err(|error| error.to_string())?;
    Ok(zoned.timestamp())
}

/// What applies to every job of a schedule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Globals {
    pub(crate) enabled: bool,
    pub(crate) splay: Option<Value>,
    pub(crate) skip_during_range: Option<Value>,
    pub(crate) whens: Dict,
}

/// Whether a job whose time has come runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Run,
    Skip(&'static str),
    /// Its options cannot be understood.
    Invalid(String),
}

/// A job and what became of it so far.
#[derive(Clone, Debug)]
pub struct Job {
    pub name: String,
    pub config: Dict,
    pub(crate) from_pillar: bool,
    timing: Result<Option<Timing>, String>,
    /// When it is to run, before it is spread.
    slot: Option<Timestamp>,
    splay: i64,
    last_slot: Option<Timestamp>,
    /// What the clock showed at the last look.
    seen: Option<Timestamp>,
    last_run: Option<Timestamp>,
    skipped: Option<(&'static str, Timestamp)>,
    started: bool,
    over: bool,
    forced: bool,
    skip_explicit: Vec<Timestamp>,
    run_explicit: Vec<Timestamp>,
    told: Option<String>,
}

impl Job {
    pub fn new(name: &str, config: &Dict, from_pillar: bool) -> Self {
        let config = config.shallow_copy();
        // Left over by genuine Salt in what it saves.
        for key in config.keys() {
            if key.to_str().starts_with('_') || matches!(key.to_str().as_str(), "run" | "saved") {
                config.remove(&key);
            }
        }
        if config.get("splay").is_some_and(|splay| splay.is_null()) {
            config.remove("splay");
        }
        config.insert("name", name);
        if !config.contains("jid_include") {
            config.insert("jid_include", true);
        }
        if !config.contains("maxrunning") {
            config.insert("maxrunning", 1);
        }
        Self {
            name: name.into(),
            timing: usable(&config).and_then(|()| Timing::read(&config)),
            config,
            from_pillar,
            slot: None,
            splay: 0,
            last_slot: None,
            seen: None,
            last_run: None,
            skipped: None,
            started: false,
            over: false,
            forced: false,
            skip_explicit: Vec::new(),
            run_explicit: Vec::new(),
            told: None,
        }
    }

    /// Takes new options; what it did so far stays.
    pub(crate) fn change(&mut self, config: &Dict) {
        let new = Self::new(&self.name, config, self.from_pillar);
        let same = Value::from(&new.config) == Value::from(&self.config);
        if !same {
            *self = Self { last_run: self.last_run, started: self.started, ..new };
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.config.get("enabled").is_none_or(|enabled| enabled.truthy())
    }

    /// Returns how many of it may run at a time; `None` is any number.
    pub fn max_running(&self) -> Option<usize> {
        let max = self.config.get("maxrunning").and_then(|max| max.to_int())?;
        usize::try_from(max).ok().filter(|max| *max > 0)
    }

    /// Returns when it runs next, as far as that is known.
    pub fn next(&self) -> Option<Timestamp> {
        if self.forced {
            return Some(Timestamp::MIN);
        }
        let regular =
            self.slot.map(|slot| slot.saturating_add(self.splay.seconds()).unwrap_or(slot));
        regular.into_iter().chain(self.run_explicit.iter().copied()).min()
    }

    pub(crate) fn last_run(&self) -> Option<Timestamp> {
        self.last_run
    }

    pub(crate) fn skipped(&self) -> Option<(&'static str, Timestamp)> {
        self.skipped
    }

    pub(crate) fn interval(&self) -> Option<i64> {
        match self.timing {
            Ok(Some(Timing::Every(seconds))) => Some(seconds),
            _ => None,
        }
    }

    pub(crate) fn splay(&self) -> i64 {
        self.splay
    }

    /// Runs it at the next look, whatever its times say.
    pub(crate) fn force(&mut self) {
        self.forced = true;
    }

    pub(crate) fn skip(&mut self, at: Timestamp) {
        self.skip_explicit.push(at);
    }

    pub(crate) fn run_at(&mut self, at: Timestamp) {
        self.run_explicit.push(at);
    }

    /// Takes back what [`Job::tick`] did: it could not be started.
    pub(crate) fn did_not_run(&mut self, reason: &'static str, now: &Zoned) {
        self.skipped = Some((reason, now.timestamp()));
    }

    pub(crate) fn ran(&mut self, now: &Zoned) {
        self.last_run = Some(now.timestamp());
        self.skipped = None;
    }

    /// Tells whether the job is to run now.
    pub(crate) fn tick(
        &mut self,
        now: &Zoned,
        globals: &Globals,
        random: &dyn Fn(u64) -> u64,
    ) -> Option<Verdict> {
        if std::mem::take(&mut self.forced) {
            return Some(Verdict::Run);
        }
        let at = now.timestamp();
        let seen = self.seen.replace(at);
        if let Some(place) = self.run_explicit.iter().position(|time| *time <= at) {
            let time = self.run_explicit.remove(place);
            if at.duration_since(time) <= LATE && globals.enabled && self.is_enabled() {
                return Some(Verdict::Run);
            }
        }
        let timing = match &self.timing {
            Ok(Some(timing)) => timing.clone(),
            Ok(None) => return self.tell("it has no time to run at: give `seconds`, `minutes`, `hours`, `days`, `when`, `cron` or `once`".into()),
            Err(why) => return self.tell(why.clone()),
        };
        if self.over {
            return None;
        }
        if self.slot.is_none() {
            let first = !std::mem::replace(&mut self.started, true);
            let asked = self.config.get("run_on_start").map(|asked| asked.truthy());
            let at_start = asked.unwrap_or(matches!(timing, Timing::Every(_)));
            if first && at_start {
                // The beat begins with this run.
                self.slot = Some(at);
                self.splay = 0;
            } else if let Err(why) = self.plan(&timing, now, globals, random) {
                return self.tell(why);
            }
        }
        // The clock was set back: an interval must not wait for the old time to come again.
        if let (Timing::Every(seconds), Some(slot)) = (&timing, self.slot)
            && slot.duration_since(at) > SignedDuration::from_secs(*seconds)
        {
            self.slot = at.saturating_add(seconds.seconds()).ok();
        }
        // Times of the day come again.
        if matches!(timing, Timing::Cron(_) | Timing::When(_))
            && seen.is_some_and(|seen| seen.duration_since(at) > LATE)
            && let Err(why) = self.plan(&timing, now, globals, random)
        {
            return self.tell(why);
        }
        let (slot, due) = (self.slot?, self.next()?);
        if at < due {
            return None;
        }
        self.last_slot = Some(slot);
        if let Err(why) = self.plan(&timing, now, globals, random) {
            return self.tell(why);
        }
        let missed = !matches!(timing, Timing::Every(_)) && at.duration_since(due) > LATE;
        let verdict = if missed { Verdict::Skip("missed") } else { self.judge(slot, now, globals) };
        if let Verdict::Skip(reason) = verdict {
            self.skipped = Some((reason, at));
        }
        Some(verdict)
    }

    /// Says once what is wrong with the options.
    fn tell(&mut self, why: String) -> Option<Verdict> {
        if self.told.as_ref() == Some(&why) {
            return None;
        }
        self.told = Some(why.clone());
        Some(Verdict::Invalid(why))
    }

    /// Sets the next slot.
    fn plan(
        &mut self,
        timing: &Timing,
        now: &Zoned,
        globals: &Globals,
        random: &dyn Fn(u64) -> u64,
    ) -> Result<(), String> {
        let at = now.timestamp();
        // Never the same moment twice, though the clock may show it again.
        let after = self
            .last_slot
            .filter(|slot| slot.duration_since(at) <= LATE)
            .map_or(at, |slot| slot.max(at));
        let zone = now.time_zone();
        self.slot = match timing {
            Timing::Every(seconds) => {
                let beat = self.last_slot.and_then(|slot| slot.checked_add(seconds.seconds()).ok());
                beat.filter(|beat| *beat > at).or_else(|| at.checked_add(seconds.seconds()).ok())
            }
            Timing::Once(time) => {
                let time =
                    time.to_zoned(zone.clone()).map_err(|error| error.to_string())?.timestamp();
                let missed = at.duration_since(time) > LATE;
                (self.last_slot.is_none() && !missed).then_some(time)
            }
            Timing::Cron(cron) => {
                let next_after = |after: Timestamp| {
                    let next = cron.next_after(after.to_zoned(zone.clone()).datetime())?;
                    Some(next.to_zoned(zone.clone()).ok()?.timestamp())
                };
                match next_after(after) {
                    Some(next) if self.last_slot == Some(next) => next_after(next),
                    next => next,
                }
            }
            Timing::When(times) => {
                let mut next: Option<Timestamp> = None;
                for time in times {
                    let found = next_of(time, &globals.whens, now, after, self.last_slot)?;
                    next = next.into_iter().chain(found).min();
                }
                next
            }
        };
        self.over = self.slot.is_none();
        let splay = self.config.get("splay").or_else(|| globals.splay.clone());
        // As in Salt: a splay that means nothing does not keep the job from running.
        self.splay = match splay.map_or(Ok(0), |splay| spread(&splay, random)) {
            Ok(seconds) => seconds,
            Err(why) => {
                if self.told.as_ref() != Some(&why) {
                    let text = format!("Scheduled job \"{}\": {why}", self.name);
                    tracing::error!("{}", placed(&text, self.config.place_of("splay")));
                    self.told = Some(why);
                }
                0
            }
        };
        Ok(())
    }

    fn judge(&self, slot: Timestamp, now: &Zoned, globals: &Globals) -> Verdict {
        match self.try_judge(slot, now, globals) {
            Ok(None) => Verdict::Run,
            Ok(Some(reason)) => Verdict::Skip(reason),
            Err(why) => Verdict::Invalid(why),
        }
    }

    fn try_judge(
        &self,
        slot: Timestamp,
        now: &Zoned,
        globals: &Globals,
    ) -> Result<Option<&'static str>, String> {
        let at = now.timestamp();
        let given = |name: &str| self.config.get(name).filter(Value::truthy);
        let moment = |value: &Value| moment(value, &globals.whens, now);
        if !globals.enabled || !self.is_enabled() {
            return Ok(Some("disabled"));
        }
        if let Some(until) = given("until")
            && at >= moment(&until)?
        {
            return Ok(Some("until_passed"));
        }
        if let Some(after) = given("after")
            && at <= moment(&after)?
        {
            return Ok(Some("after_not_passed"));
        }
        if let Some(range) = given("range") {
            let inside = within(&range, globals, now)?;
            if range.get("invert").is_some_and(|invert| invert.truthy()) {
                if inside {
                    return Ok(Some("in_skip_range"));
                }
            } else if !inside {
                return Ok(Some("not_in_range"));
            }
        }
        if let Some(range) =
            given("skip_during_range").or_else(|| globals.skip_during_range.clone())
            && within(&range, globals, now)?
        {
            return Ok(Some("in_skip_range"));
        }
        // Times of people have no fraction of a second.
        let same = |time: &Timestamp| time.as_second() == slot.as_second();
        if self.skip_explicit.iter().any(same) {
            return Ok(Some("skip_explicit"));
        }
        Ok(None)
    }

    /// After a skipped range, the job runs when the range ends (`run_after_skip_range`).
    pub(crate) fn make_up(&mut self, now: &Zoned, globals: &Globals) {
        let wanted = self.config.get("run_after_skip_range").is_some_and(|wanted| wanted.truthy());
        let range =
            self.config.get("skip_during_range").or_else(|| globals.skip_during_range.clone());
        let Some(end) = range.filter(|_| wanted).and_then(|range| range.get("end")) else { return };
        if let Ok(end) = moment(&end, &globals.whens, now)
            && let Ok(end) = end.checked_add(1.second())
            && !self.run_explicit.contains(&end)
        {
            self.run_explicit.push(end);
        }
    }
}

/// Returns the next time a `when` names; `None` if it will not come again.
fn next_of(
    time: &Value,
    whens: &Dict,
    now: &Zoned,
    after: Timestamp,
    last: Option<Timestamp>,
) -> Result<Option<Timestamp>, String> {
    let today = moment(time, whens, now)?;
    // One that is just now counts, unless it was done.
    let second = |time: Timestamp| time.as_second();
    if second(today) >= second(after) && Some(today) != last {
        return Ok(Some(today));
    }
    let tomorrow = now.tomorrow().map_err(|error| error.to_string())?;
    let next = moment(time, whens, &tomorrow)?;
    Ok((next > after && next != today).then_some(next))
}

/// Tells whether now is within a range of times.
fn within(range: &Value, globals: &Globals, now: &Zoned) -> Result<bool, String> {
    let (Some(start), Some(end)) = (range.get("start"), range.get("end")) else {
        return Err(
            "Unable to handle range: \"start\" and \"end\" must be specified. Ignoring job.".into(),
        );
    };
    let start = moment(&start, &globals.whens, now)?;
    let end = moment(&end, &globals.whens, now)?;
    if end <= start {
        return Err("Invalid range, end must be larger than start. Ignoring job.".into());
    }
    Ok((start..=end).contains(&now.timestamp()))
}

/// Returns by how many seconds a run is put off: up to a number, or within `start` and `end`.
fn spread(splay: &Value, random: &dyn Fn(u64) -> u64) -> Result<i64, String> {
    let number = |value: Option<Value>| value.and_then(|value| value.to_int()).filter(|n| *n >= 0);
    let (low, high) = match splay {
        Value::Null => (0, 0),
        Value::Dict(range) => {
            let (start, end) = (number(range.get("start")), number(range.get("end")));
            match (start, end) {
                (Some(start), Some(end)) if end >= start => (start, end),
                _ => {
                    return Err(
                        "Invalid Splay, end must be larger than start. Ignoring splay.".into()
                    );
                }
            }
        }
        other => {
            let most = number(Some(other.clone()));
            (0, most.ok_or_else(|| format!("`splay` is no number: {other}. Ignoring splay."))?)
        }
    };
    let drawn = random(high.abs_diff(low));
    Ok(low + i64::try_from(drawn).unwrap_or(0))
}
