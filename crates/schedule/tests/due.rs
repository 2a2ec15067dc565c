//! Schedules over a fake clock: which jobs run, and when.

use halite_schedule::Table;
use halite_value::{Dict, Value, yaml};
use jiff::{ToSpan, Zoned, civil::DateTime, tz::TimeZone};

fn dict(text: &str) -> Dict {
    match yaml::load_str(text).expect("YAML") {
        Value::Dict(dict) => dict,
        other => panic!("{other:?} is no dict"),
    }
}

fn at(text: &str) -> Zoned {
    text.parse::<DateTime>().expect("a time").to_zoned(TimeZone::UTC).expect("UTC has it")
}

/// Looks every second from one time to another; returns who ran when.
fn runs(table: &mut Table, from: &str, to: &str) -> Vec<(String, String)> {
    let (mut now, end) = (at(from), at(to));
    let mut ran = Vec::new();
    while now <= end {
        for fire in table.tick(&now, &|_| 0, &|most| most) {
            ran.push((fire.function, now.datetime().to_string()));
        }
        now = now.checked_add(1.second()).expect("time goes on");
    }
    ran
}

#[track_caller]
fn check(job: &str, from: &str, to: &str, expected: &[&str]) {
    let mut table = Table::new();
    table.set_config(&dict(&format!("job: {{function: a.b, {job}}}")));
    let times: Vec<String> = runs(&mut table, from, to).into_iter().map(|(_, time)| time).collect();
    assert_eq!(times, expected, "{job}");
}

const DAY: &str = "2026-11-16T";

fn day(time: &str) -> String {
    format!("{DAY}{time}")
}

#[test]
fn intervals_run_at_start_and_keep_their_beat() {
    let from = day("10:00:00");
    check("seconds: 10", &from, &day("10:00:25"), &[&from, &day("10:00:10"), &day("10:00:20")]);
    check(
        "seconds: 10, run_on_start: False",
        &from,
        &day("10:00:25"),
        &[&day("10:00:10"), &day("10:00:20")],
    );
    check(
        "minutes: 1, seconds: 30",
        &from,
        &day("10:03:10"),
        &[&from, &day("10:01:30"), &day("10:03:00")],
    );
    check("hours: 1, enabled: False", &from, &day("11:10:00"), &[]);
    check("hours: '1'", &day("10:00:00"), &day("11:00:00"), &[&from, &day("11:00:00")]);
}

#[test]
fn times_of_the_day() {
    check("when: '10:05am'", &day("10:00:00"), &day("10:10:00"), &[&day("10:05:00")]);
    check(
        "when: ['10:05am', '10:07']",
        &day("10:00:00"),
        &day("10:10:00"),
        &[&day("10:05:00"), &day("10:07:00")],
    );
    check("when: '10:05am'", &day("10:06:00"), "2026-11-17T10:06:00", &["2026-11-17T10:05:00"]);
    check(
        "when: 'Tuesday 1:00am'",
        &day("23:00:00"),
        "2026-11-17T02:00:00",
        &["2026-11-17T01:00:00"],
    );
    check("when: '2026-11-15T10:00:00'", &day("09:59:00"), &day("10:01:00"), &[]);
    check(
        "cron: '*/5 10 * * *'",
        &day("10:01:00"),
        &day("10:11:00"),
        &[&day("10:05:00"), &day("10:10:00")],
    );
    check("once: '2026-11-16T10:05:00'", &day("10:00:00"), &day("10:10:00"), &[&day("10:05:00")]);
    check(
        "once: '16.11.2026 10:05', once_fmt: '%d.%m.%Y %H:%M'",
        &day("10:00:00"),
        &day("10:10:00"),
        &[&day("10:05:00")],
    );
}

#[test]
fn names_stand_for_times() {
    let mut table = Table::new();
    table.set_whens(&dict("tea time: '10:05am'"));
    table.set_config(&dict("job: {function: a.b, when: tea time}"));
    assert_eq!(runs(&mut table, &day("10:00:00"), &day("10:10:00")).len(), 1);
}

#[test]
fn ranges() {
    let (from, to) = (day("10:00:00"), day("10:04:30"));
    let inside = "minutes: 1, range: {start: '10:02', end: '10:03'";
    check(&format!("{inside}}}"), &from, &to, &[&day("10:02:00"), &day("10:03:00")]);
    check(
        &format!("{inside}, invert: True}}"),
        &from,
        &to,
        &[&from, &day("10:01:00"), &day("10:04:00")],
    );
    let skipping = "minutes: 1, skip_during_range: {start: '10:01', end: '10:02:30'}";
    check(skipping, &from, &to, &[&from, &day("10:03:00"), &day("10:04:00")]);
    check(
        &format!("{skipping}, run_after_skip_range: True"),
        &from,
        &day("10:02:59"),
        &[&from, &day("10:02:31")],
    );
    check("minutes: 1, after: '10:02', until: '10:04'", &from, &to, &[&day("10:03:00")]);
    check("minutes: 1, range: {start: '11:00', end: '10:00'}", &from, &to, &[]);
}

#[test]
fn a_splay_that_means_nothing_is_left_out() {
    let from = day("10:00:00");
    for splay in ["soon", "{start: 7, end: 3}", "-1"] {
        check(
            &format!("seconds: 10, splay: {splay}"),
            &from,
            &day("10:00:15"),
            &[&from, &day("10:00:10")],
        );
    }
}

#[test]
fn a_job_of_the_wrong_form_does_not_run() {
    let from = day("10:00:00");
    check("seconds: 10, kwargs: [a]", &from, &day("10:00:15"), &[]);
    check("seconds: 10, maxrunning: many", &from, &day("10:00:15"), &[]);
    let mut table = Table::new();
    table.set_config(&dict("job: {seconds: 10}"));
    assert_eq!(runs(&mut table, &from, &day("10:00:15")), []);
}

#[test]
fn splay_puts_off() {
    // The fake dice always show the most.
    check(
        "seconds: 60, run_on_start: False, splay: 5",
        &day("10:00:00"),
        &day("10:02:30"),
        &[&day("10:01:05"), &day("10:02:05")],
    );
    check(
        "when: '10:01', splay: {start: 3, end: 7}",
        &day("10:00:00"),
        &day("10:02:30"),
        &[&day("10:01:07")],
    );
}

#[test]
fn what_contradicts_itself_does_not_run() {
    for job in [
        "seconds: 5, when: '10:00'",
        "when: '10:00', cron: '* * * * *'",
        "cron: nonsense",
        "",
        "seconds: x",
        "seconds: 0",
    ] {
        check(job, &day("09:59:00"), &day("10:01:00"), &[]);
    }
}

#[test]
fn no_more_than_allowed_run_at_a_time() {
    let mut table = Table::new();
    table.set_config(&dict(
        "a: {function: a.b, seconds: 5}\nb: {function: a.b, seconds: 5, maxrunning: 3}",
    ));
    let fires = table.tick(&at(&day("10:00:00")), &|_| 1, &|_| 0);
    let names: Vec<_> = fires.iter().map(|fire| fire.name.as_str()).collect();
    assert_eq!(names, ["b"]);
    let status = table.status("a", &at(&day("10:00:00")));
    assert_eq!(status.get("_skip_reason"), Some("maxrunning".into()));
}

#[test]
fn the_whole_schedule_can_be_off() {
    let mut table = Table::new();
    table.set_config(&dict("enabled: False\na: {function: a.b, seconds: 5}"));
    assert_eq!(runs(&mut table, &day("10:00:00"), &day("10:01:00")), []);
}

#[test]
fn skipped_jobs_run_the_skip_function() {
    let mut table = Table::new();
    table.set_config(&dict("skip_function: x.y\na: {function: a.b, when: '10:05', skip_during_range: {start: '10:00', end: '11:00'}}"));
    let ran = runs(&mut table, &day("10:00:00"), &day("10:10:00"));
    assert_eq!(ran, [("x.y".into(), day("10:05:00"))]);
}

#[test]
fn a_clock_that_jumps() {
    let jump = |job: &str, from: &str, to: &str, until: &str| {
        let mut table = Table::new();
        table.set_config(&dict(&format!("job: {{function: a.b, {job}}}")));
        runs(&mut table, &day("10:00:00"), &day(from));
        runs(&mut table, &day(to), &day(until))
            .into_iter()
            .map(|(_, time)| time)
            .collect::<Vec<_>>()
    };
    // Forward: an interval runs once, a time of the day that was slept through does not.
    assert_eq!(
        jump("minutes: 1", "10:00:30", "13:00:00", "13:01:00"),
        [day("13:00:00"), day("13:01:00")]
    );
    assert_eq!(jump("when: '11:00'", "10:00:30", "13:00:00", "13:01:00"), [""; 0]);
    assert_eq!(jump("cron: '0 11 * * *'", "10:00:30", "13:00:00", "13:01:00"), [""; 0]);
    // A little late is not missed.
    assert_eq!(jump("cron: '1 10 * * *'", "10:00:30", "10:01:20", "10:01:40"), [day("10:01:20")]);
    // Back: an interval goes on, a moment that was does not come again at once.
    assert_eq!(jump("minutes: 1", "10:30:30", "09:00:00", "09:01:00"), [day("09:01:00")]);
    assert_eq!(jump("cron: '5 10 * * *'", "10:05:01", "10:04:58", "10:05:30"), [""; 0]);
    assert_eq!(jump("when: '10:05'", "10:05:01", "10:04:58", "10:05:30"), [""; 0]);
    // Far back: times of the day come again, but for the one that was served last.
    assert_eq!(jump("cron: '* * * * *'", "10:30:30", "09:00:20", "09:01:30"), [day("09:01:00")]);
    assert_eq!(jump("when: '09:05'", "10:30:00", "09:00:00", "09:06:00"), [day("09:05:00")]);
    assert_eq!(jump("when: '10:20'", "10:30:00", "10:10:00", "10:21:00"), [""; 0]);
    assert_eq!(jump("cron: '20 10 * * *'", "10:30:00", "10:10:00", "10:21:00"), [""; 0]);
}

#[test]
fn managing() {
    let mut table = Table::new();
    let now = at(&day("10:00:00"));
    let ask = |table: &mut Table, request: &str| table.manage(&dict(request), &now).unwrap();
    let added =
        ask(&mut table, "{func: add, name: j, schedule: {j: {function: a.b, when: '10:05'}}}");
    assert!(added.save && added.tag == Some("/salt/minion/minion_schedule_add_complete"));
    table.tick(&now, &|_| 0, &|_| 0);
    let next = ask(&mut table, "{func: get_next_fire_time, name: j}");
    assert_eq!(next.data.get("next_fire_time"), Some(day("10:05:00").into()));
    ask(
        &mut table,
        "{func: postpone_job, name: j, time: '2026-11-16T10:05:00', new_time: '2026-11-16T10:07:00', time_fmt: '%Y-%m-%dT%H:%M:%S'}",
    );
    let ran = runs(&mut table, &day("10:00:01"), &day("10:10:00"));
    assert_eq!(ran, [("a.b".into(), day("10:07:00"))]);
    ask(&mut table, "{func: run_job, name: j}");
    assert_eq!(runs(&mut table, &day("10:11:00"), &day("10:12:00")).len(), 1);
    ask(&mut table, "{func: disable_job, name: j}");
    let saved = table.saved().get("j").unwrap();
    assert_eq!(saved.get("enabled"), Some(false.into()));
    assert!(!ask(&mut table, "{func: delete, name: j, persist: false}").save);
    assert_eq!(table.jobs().count(), 0);
    assert!(table.manage(&dict("{func: nonsense}"), &now).is_none());
}

#[test]
fn the_pillar_wins_and_can_take_back() {
    let mut table = Table::new();
    table.set_config(&dict("j: {function: a.b, seconds: 60}"));
    table.set_pillar(&dict("j: {function: c.d, seconds: 60}\nk: {function: e.f, seconds: 60}"));
    let ran = runs(&mut table, &day("10:00:00"), &day("10:00:01"));
    assert_eq!(ran.iter().map(|(fun, _)| fun.as_str()).collect::<Vec<_>>(), ["c.d", "e.f"]);
    assert!(!table.remove("k"), "the pillar's jobs are the pillar's");
    assert_eq!(table.saved().len(), 1);
    table.set_pillar(&Dict::new());
    assert!(table.job("k").is_none());
    let job = table.job("j").unwrap();
    assert_eq!(job.config.get("function"), Some("a.b".into()));
}

/// A file saved by genuine Salt has its own notes in it.
#[test]
fn notes_of_genuine_salt_are_left_out() {
    let mut table = Table::new();
    table.set_config(&dict(
        "j: {function: a.b, seconds: 60, run: true, splay: null, name: j, _last_run: x}",
    ));
    let saved = table.saved().get("j").unwrap();
    let expected = dict("{function: a.b, seconds: 60, name: j, jid_include: true, maxrunning: 1}");
    assert_eq!(saved, Value::from(expected));
}
