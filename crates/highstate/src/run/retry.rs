//! `retry`: a state again and again, until it has the result that is wanted.

use halite_value::{Dict, Value};

use super::returns;
use crate::low::text;

/// `retry:` as the author wrote it; what is missing or wrong has its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    until: bool,
    attempts: i64,
    interval: i64,
    splay: i64,
}

impl Retry {
    pub(super) fn read(value: &Value) -> Self {
        let usual = Self { until: true, attempts: 2, interval: 30, splay: 0 };
        // A list of one-key dicts is taken as the dict that was meant.
        let get = |word: &str| match value {
            Value::List(list) => list.into_iter().find_map(|item| item.get(word)),
            Value::Dict(dict) => dict.get(word),
            _ => None,
        };
        let int = |word: &str, usual: i64| match get(word) {
            Some(Value::Int(int)) => int,
            _ => usual,
        };
        if matches!(value, Value::Bool(false)) {
            return Self { attempts: 0, ..usual };
        }
        Self {
            until: get("until").and_then(|until| until.as_bool()).unwrap_or(usual.until),
            attempts: int("attempts", usual.attempts),
            interval: int("interval", usual.interval),
            splay: int("splay", usual.splay),
        }
    }

    /// Tells whether nothing is left to try after so many attempts, the last with this return.
    pub(super) fn is_over(&self, attempts: i64, ret: &Dict) -> bool {
        attempts >= self.attempts || ret.get("result") == Some(Value::Bool(self.until))
    }

    /// What `test=True` adds to the comment.
    pub(super) fn announcement(&self) -> String {
        format!(
            "  The state would be retried every {} seconds (with a splay of up to {} seconds) a \
             maximum of {} times or until a result of {} is returned",
            self.interval,
            self.splay,
            self.attempts,
            Value::Bool(self.until)
        )
    }

    /// Seconds until the next attempt: the interval and a number below the splay. The clock's lowest
    /// digits are random enough to spread load.
    pub(super) fn pause(&self) -> i64 {
        let splay = self.splay.max(0);
        let nanos = jiff::Timestamp::now().subsec_nanosecond();
        self.interval + i64::from(nanos.unsigned_abs()) / 1000 % (splay + 1)
    }
}

/// What earlier attempts leave in the return of the last.
#[derive(Default)]
pub(super) struct Attempts {
    count: i64,
    comments: String,
    milliseconds: f64,
    start_time: Option<Value>,
}

impl Attempts {
    pub(super) fn count(&self) -> i64 {
        self.count
    }

    /// Takes down an attempt that is not the last, and the pause behind it.
    pub(super) fn add(&mut self, ret: &Dict, pause: i64) {
        self.count += 1;
        self.comments += &format!(
            "Attempt {}: Returned a result of \"{}\", with the following comment: \"{}\"\n",
            self.count,
            ret.get("result").unwrap_or_default(),
            text(ret, "comment")
        );
        self.milliseconds += returns::duration(ret) + (pause * 1000) as f64;
        self.start_time = self.start_time.take().or_else(|| ret.get("start_time"));
    }

    pub(super) fn close(self, ret: Dict) -> Dict {
        if self.count > 0 {
            ret.insert("comment", self.comments + &text(&ret, "comment"));
            ret.insert("duration", returns::duration(&ret) + self.milliseconds);
            ret.insert("start_time", self.start_time);
        }
        ret
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries, list};

    use super::*;

    #[track_caller]
    fn check(written: impl Into<Value>, until: bool, attempts: i64, interval: i64, splay: i64) {
        let expected = Retry { until, attempts, interval, splay };
        assert_eq!(Retry::read(&written.into()), expected);
    }

    #[test]
    fn what_is_missing_or_wrong_has_its_default() {
        check(true, true, 2, 30, 0);
        check(false, true, 0, 30, 0);
        check("often", true, 2, 30, 0);
        check(dict! { "attempts" => 5, "interval" => "long" }, true, 5, 30, 0);
        check(list![dict! { "until" => false }, dict! { "splay" => 3 }], false, 2, 30, 3);
    }

    #[test]
    fn the_last_return_tells_of_all_attempts() {
        let ret = |comment: &str, time: &str| {
            entries! {
                "result" => false, "comment" => comment, "duration" => 1.5, "start_time" => time,
            }
        };
        let mut attempts = Attempts::default();
        attempts.add(&ret("one", "10:00"), 2);
        attempts.add(&ret("two", "10:02"), 0);
        let last = attempts.close(ret("three", "10:04"));
        let told = "Attempt 1: Returned a result of \"False\", with the following comment: \
                    \"one\"\nAttempt 2: Returned a result of \"False\", with the following \
                    comment: \"two\"\nthree";
        assert_eq!(text(&last, "comment"), told);
        assert_eq!(returns::duration(&last), 2004.5);
        assert_eq!(text(&last, "start_time"), "10:00");
    }
}
