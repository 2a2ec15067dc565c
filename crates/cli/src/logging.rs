//! Log lines as Salt writes them.
//!
//! The code logs with `tracing`; this layer prints what passes the configured levels, in the
//! layouts of `log_fmt_console` and `log_fmt_logfile`: to standard error, and to `log_file` (a
//! file or a syslog address). Salt has more levels than `tracing`: an event with a field `salt` set
//! to `"critical"`, `"profile"` or `"garbage"` has that level. A field `jid`, on an event or on a
//! span around it, is shown as `log_fmt_jid` says. What has the target `warnings` is for whoever
//! sits at the console, as Python's warnings are: no level and no layout applies.

use std::{
    fmt::{self, Write as _},
    fs::{File, OpenOptions},
    io::{self, Write as _},
    net::UdpSocket,
    os::unix::{fs::OpenOptionsExt as _, net::UnixDatagram},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use halite_config::Opts;
use halite_value::{Dict, entries};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer::Context, prelude::*, registry::LookupSpan};

use crate::{log_handlers, terminal};

/// The target of what is said whatever the level.
const WARNINGS: &str = "warnings";

/// A level by Salt's name and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u16);

impl Level {
    const NAMES: [(&'static str, u16); 11] = [
        ("all", 0),
        ("garbage", 1),
        ("trace", 5),
        ("debug", 10),
        ("profile", 15),
        ("info", 20),
        ("warning", 30),
        ("warn", 30),
        ("error", 40),
        ("critical", 50),
        ("quiet", 1000),
    ];

    pub const DEBUG: Self = Self(10);
    pub const WARNING: Self = Self(30);
    pub const ERROR: Self = Self(40);

    /// Returns the level of a name; `None` if Salt has no such level.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| Self(*level))
    }

    /// Returns Salt's number of the level.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    fn name(self) -> &'static str {
        match self.0 {
            ..5 => "GARBAGE",
            5..10 => "TRACE",
            10..15 => "DEBUG",
            15..20 => "PROFILE",
            20..30 => "INFO",
            30..40 => "WARNING",
            40..50 => "ERROR",
            _ => "CRITICAL",
        }
    }

    fn color(self) -> &'static str {
        match self.0 {
            ..10 => "\x1b[0;34m",
            10..15 => "\x1b[0;36m",
            15..20 => "\x1b[1;36m",
            20..30 => "\x1b[0;32m",
            30..40 => "\x1b[0;33m",
            40..50 => "\x1b[0;31m",
            _ => "\x1b[1;31m",
        }
    }
}

impl From<&tracing::Level> for Level {
    fn from(level: &tracing::Level) -> Self {
        Self(match *level {
            tracing::Level::ERROR => 40,
            tracing::Level::WARN => 30,
            tracing::Level::INFO => 20,
            tracing::Level::DEBUG => 10,
            tracing::Level::TRACE => 5,
        })
    }
}

/// What is logged, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    pub console: Level,
    pub console_format: String,
    pub console_dates: String,
    pub file_level: Level,
    pub file_format: String,
    pub file_dates: String,
    /// Levels of single parts, by the dotted names Salt uses.
    pub granular: Vec<(String, Level)>,
    pub jid_format: String,
    /// A file or a syslog address; empty for none.
    pub file: String,
    /// Whether there is a console at all: a daemon in the background has none.
    pub has_console: bool,
    /// Whether what has the target `warnings` is said. `PYTHONWARNINGS=ignore` silences Salt's, too.
    pub warns: bool,
}

impl Settings {
    /// Reads the settings from the configuration. `file_option` names the option with the log file.
    #[must_use]
    pub fn from_opts(opts: &Opts, file_option: &str) -> Self {
        let level = |name: &str| opts.opt_str(name).and_then(|text| Level::named(&text));
        let text = |names: &[&str], fallback: &str| {
            let found = names.iter().find_map(|name| opts.opt_str(name));
            found.map_or_else(|| fallback.to_string(), |text| text.to_string())
        };
        let console = level("log_level").unwrap_or(Level::WARNING);
        let plain = "[%(levelname)-8s] %(message)s";
        let dates = "%Y-%m-%d %H:%M:%S";
        let mut granular: Vec<_> = opts
            .dict("log_granular_levels")
            .entries()
            .into_iter()
            .filter_map(|(name, level)| {
                Some((name.value().to_str().to_string(), Level::named(&level.to_str())?))
            })
            .collect();
        // The nearest name decides: longest first.
        granular.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self {
            console,
            console_format: text(&["log_fmt_console", "log_fmt"], plain),
            console_dates: text(&["log_datefmt_console", "log_datefmt"], dates),
            file_level: level("log_level_logfile").unwrap_or(console),
            file_format: text(&["log_fmt_logfile", "log_fmt_console", "log_fmt"], plain),
            file_dates: text(&["log_datefmt_logfile", "log_datefmt_console", "log_datefmt"], dates),
            granular,
            jid_format: text(&["log_fmt_jid"], ""),
            file: opts.str(file_option).to_string(),
            has_console: true,
            warns: terminal::env("PYTHONWARNINGS").as_deref() != Some("ignore"),
        }
    }
}

/// Starts logging. Later calls change nothing: tests and embedded runs may come here twice.
pub fn init(settings: Settings) -> io::Result<()> {
    let sink = Sink::open(&settings)?;
    let lowest = settings
        .granular
        .iter()
        .map(|(_, level)| *level)
        .chain([settings.console, settings.file_level])
        .min()
        .unwrap_or(Level::WARNING);
    let layer = SaltLog { settings, sink: sink.map(Mutex::new), lowest };
    // Failure means that someone else logs already.
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Ok(())
}

/// How often log files were to be opened anew.
static REOPENED: AtomicU64 = AtomicU64::new(0);

/// Has log files opened anew with the next line: `logrotate` has moved them. On SIGHUP.
pub fn reopen() {
    REOPENED.fetch_add(1, Ordering::Relaxed);
}

fn append_to(path: &str) -> io::Result<File> {
    // What is logged is not for everybody.
    OpenOptions::new().create(true).append(true).mode(0o640).open(path)
}

enum Sink {
    /// With its path, and how often log files had been opened anew when it was opened.
    File(File, String, u64),
    Unix(UnixDatagram, u8),
    Udp(UdpSocket, u8),
}

impl Sink {
    fn open(settings: &Settings) -> io::Result<Option<Self>> {
        let target = settings.file.as_str();
        if target.is_empty() || settings.file_level >= Level(1000) {
            return Ok(None);
        }
        if let Some(rest) = target.strip_prefix("file://") {
            let (path, facility) = facility_of(rest);
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            return Ok(Some(Self::Unix(socket, facility)));
        }
        if let Some(rest) = target.strip_prefix("udp://") {
            let (host, facility) = facility_of(rest);
            let address = if host.contains(':') { host.to_string() } else { format!("{host}:514") };
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.connect(address)?;
            return Ok(Some(Self::Udp(socket, facility)));
        }
        let times = REOPENED.load(Ordering::Relaxed);
        Ok(Some(Self::File(append_to(target)?, target.to_owned(), times)))
    }

    fn write(&mut self, level: Level, line: &str) {
        // A log that cannot be written has nowhere to say so.
        let _ = match self {
            Self::File(file, path, times) => {
                let now = REOPENED.load(Ordering::Relaxed);
                // The old file may be gone, or somebody's archive.
                if now != *times
                    && let Ok(new) = append_to(path)
                {
                    (*file, *times) = (new, now);
                }
                writeln!(file, "{line}")
            }
            Self::Unix(socket, facility) => {
                socket.send(syslog(level, *facility, line).as_bytes()).map(drop)
            }
            Self::Udp(socket, facility) => {
                socket.send(syslog(level, *facility, line).as_bytes()).map(drop)
            }
        };
    }
}

/// Splits a trailing `/LOG_…` facility off a syslog address; `LOG_USER` if there is none.
fn facility_of(target: &str) -> (&str, u8) {
    const NAMES: [&str; 24] = [
        "KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON",
        "AUTHPRIV", "FTP", "", "", "", "", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4",
        "LOCAL5", "LOCAL6", "LOCAL7",
    ];
    if let Some((rest, name)) = target.rsplit_once("/LOG_") {
        let found = NAMES.iter().position(|known| *known == name);
        return (rest, found.and_then(|at| u8::try_from(at).ok()).unwrap_or(1));
    }
    (target.trim_end_matches('/'), 1)
}

fn syslog(level: Level, facility: u8, line: &str) -> String {
    let severity = match level.0 {
        ..20 => 7,
        20..30 => 6,
        30..40 => 4,
        40..50 => 3,
        _ => 2,
    };
    format!("<{}>{line}", u16::from(facility) * 8 + severity)
}

struct SaltLog {
    settings: Settings,
    sink: Option<Mutex<Sink>>,
    lowest: Level,
}

/// The job a span belongs to.
struct Jid(String);

/// What a line can be made of.
#[derive(Default)]
struct Record {
    level: Option<Level>,
    message: String,
    fields: String,
    jid: Option<String>,
    /// The minion a line of the master's is about.
    minion_id: Option<String>,
    name: String,
    file: String,
    line: u32,
}

impl Visit for Record {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.into(),
            "salt" => self.level = Level::named(value),
            "jid" => self.jid = Some(value.into()),
            "minion_id" => self.minion_id = Some(value.into()),
            // Lines of users' Python say which logger they came from.
            "logger" => self.name = value.into(),
            name => {
                let _ = write!(self.fields, " {name}={value}");
            }
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SaltLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        // Levels between those of tracing are only known once the event is there.
        let highest_of = match *metadata.level() {
            tracing::Level::ERROR => Level(50),
            tracing::Level::INFO => Level(20),
            ref level => Level::from(level),
        };
        metadata.is_span()
            || highest_of >= self.lowest
            || log_handlers::may_want(highest_of)
            || self.lowest <= Level(5)
            || metadata.target() == WARNINGS
    }

    fn on_new_span(&self, attrs: &span::Attributes<'_>, id: &span::Id, cx: Context<'_, S>) {
        let mut record = Record::default();
        attrs.record(&mut record);
        if let (Some(jid), Some(span)) = (record.jid, cx.span(id)) {
            span.extensions_mut().insert(Jid(jid));
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let metadata = event.metadata();
        let mut record = Record {
            name: salt_name(metadata.target()),
            file: metadata.file().unwrap_or_default().into(),
            line: metadata.line().unwrap_or_default(),
            ..Record::default()
        };
        event.record(&mut record);
        if metadata.target() == WARNINGS {
            if self.settings.has_console && self.settings.warns {
                let _ = writeln!(io::stderr().lock(), "{}", record.message);
            }
            return;
        }
        if record.jid.is_none()
            && let Some(mut scope) = cx.event_scope(event)
        {
            record.jid = scope.find_map(|span| span.extensions().get::<Jid>().map(|j| j.0.clone()));
        }
        let level = record.level.unwrap_or_else(|| metadata.level().into());
        record.level = Some(level);
        self.print(level, &record);
        if log_handlers::want(level) {
            log_handlers::hand_over(level, record.to_python());
        }
    }
}

impl SaltLog {
    fn print(&self, level: Level, record: &Record) {
        let settings = &self.settings;
        let own = settings.granular.iter().find(|(name, _)| {
            record.name == *name
                || record.name.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
        });
        // A nearer level replaces the general one in both directions, as in Python's logging.
        let passes = |general: Level| match own {
            Some((_, own)) => level >= *own && general < Level(1000),
            None => level >= general,
        };
        let jid = match &record.jid {
            Some(jid) => settings.jid_format.replace("%(jid)s", jid),
            None => String::new(),
        };
        if settings.has_console && passes(settings.console) {
            let line = record.line_of(&settings.console_format, &settings.console_dates, &jid);
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
        if let Some(sink) = &self.sink
            && passes(settings.file_level)
        {
            let line = record.line_of(&settings.file_format, &settings.file_dates, &jid);
            if let Ok(mut sink) = sink.lock() {
                sink.write(level, &line);
            }
        }
    }
}

/// Returns the name by which Salt's users know a part: `halite_minion::job` is `salt.minion.job`.
fn salt_name(target: &str) -> String {
    let dotted = target.replace("::", ".");
    match dotted.strip_prefix("halite_") {
        Some(rest) => format!("salt.{rest}"),
        None => dotted,
    }
}

impl Record {
    /// Returns what Python's `LogRecord` consists of.
    fn to_python(&self) -> Dict {
        let level = self.level.unwrap_or(Level::WARNING);
        let now = jiff::Timestamp::now();
        let file = self.file.rsplit('/').next().unwrap_or_default();
        let record = entries! {
            "name" => self.name.as_str(), "levelno" => i64::from(level.0),
            "levelname" => level.name(), "msg" => format!("{}{}", self.message, self.fields),
            "pathname" => self.file.as_str(), "filename" => file,
            "module" => file.trim_end_matches(".rs"), "lineno" => i64::from(self.line),
            "created" => now.as_microsecond() as f64 / 1e6,
            "msecs" => f64::from(now.subsec_millisecond()),
            "process" => i64::from(std::process::id()), "processName" => "MainProcess",
            "threadName" => std::thread::current().name().unwrap_or("MainThread"),
        };
        if let Some(jid) = &self.jid {
            record.insert("jid", jid.as_str());
        }
        record
    }

    /// Fills in a layout of Python's `logging`.
    fn line_of(&self, layout: &str, dates: &str, jid: &str) -> String {
        let now = jiff::Zoned::now();
        let level = self.level.unwrap_or(Level::WARNING);
        let mut line = String::new();
        let mut rest = layout;
        while let Some(at) = rest.find('%') {
            line += &rest[..at];
            rest = &rest[at..];
            let Some((key, spec, kind, tail)) = placeholder(rest) else {
                line.push('%');
                rest = rest[1..].strip_prefix('%').unwrap_or(&rest[1..]);
                continue;
            };
            rest = tail;
            let pid = || std::process::id().to_string();
            let value = match key {
                "message" => format!("{}{}", self.message, self.fields),
                "levelname" => level.name().into(),
                "levelno" => level.0.to_string(),
                "name" => self.name.clone(),
                "asctime" => now.strftime(dates).to_string(),
                "msecs" => (now.subsec_nanosecond() / 1_000_000).to_string(),
                "created" => now.timestamp().as_second().to_string(),
                "lineno" => self.line.to_string(),
                "pathname" => self.file.clone(),
                "filename" | "module" => {
                    let file = self.file.rsplit('/').next().unwrap_or_default();
                    if key == "module" { file.trim_end_matches(".rs").into() } else { file.into() }
                }
                "process" => pid(),
                "processName" => "MainProcess".into(),
                "threadName" => std::thread::current().name().unwrap_or("MainThread").to_string(),
                "jid" => jid.into(),
                "minion_id" => {
                    self.minion_id.as_ref().map(|id| format!("[{id}]")).unwrap_or_default()
                }
                "colorlevel" => format!("{}[{:<8}]\x1b[0;0m", level.color(), level.name()),
                "colorname" => format!("\x1b[0;32m[{:<17}]\x1b[0;0m", self.name),
                "colorprocess" => format!("\x1b[0;34m[{:>5}]\x1b[0;0m", pid()),
                "colormsg" => format!("{}{}\x1b[0;0m", level.color(), self.message),
                "bracketlevel" => format!("[{:<8}]", level.name()),
                "bracketname" => format!("[{:<17}]", self.name),
                "bracketprocess" => format!("[{:>5}]", pid()),
                _ => String::new(),
            };
            line += &padded(&value, spec, kind);
        }
        line += rest;
        line
    }
}

/// Reads `%(key)-8s` off the front of a layout: key, flags and width, kind, and the rest.
fn placeholder(text: &str) -> Option<(&str, &str, char, &str)> {
    let (key, rest) = text.strip_prefix("%(")?.split_once(')')?;
    let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
    let kind = rest[end..].chars().next()?;
    Some((key, &rest[..end], kind, &rest[end + 1..]))
}

fn padded(value: &str, spec: &str, kind: char) -> String {
    let left = spec.contains('-');
    let digits = spec.trim_start_matches(['-', '+', ' ', '#']);
    let zero = digits.starts_with('0') && matches!(kind, 'd' | 'i' | 'f');
    let width = digits.split('.').next().and_then(|width| width.parse::<usize>().ok()).unwrap_or(0);
    if left {
        format!("{value:<width$}")
    } else if zero {
        format!("{value:0>width$}")
    } else {
        format!("{value:>width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            level: Level::named("warning"),
            message: "all is lost".into(),
            name: salt_name("halite_minion::job"),
            line: 7,
            ..Record::default()
        }
    }

    #[test]
    fn console_line() {
        let line = record().line_of("[%(levelname)-8s] %(message)s", "", "");
        assert_eq!(line, "[WARNING ] all is lost");
    }

    #[test]
    fn file_line() {
        let layout = "%(asctime)s,%(msecs)03d [%(name)-17s:%(lineno)-4d][%(levelname)-8s][%(process)d] %(message)s";
        let line = record().line_of(layout, "%Y", "");
        let (time, rest) = line.split_once(' ').expect("time first");
        assert!(time.len() == 8 && time.contains(','), "{time}");
        let pid = std::process::id();
        assert_eq!(rest, format!("[salt.minion.job  :7   ][WARNING ][{pid}] all is lost"));
    }

    #[test]
    fn odd_layouts() {
        assert_eq!(record().line_of("100%% %(nope)s|%(message", "", ""), "100% |%(message");
        assert_eq!(
            Record { minion_id: Some("m".into()), ..record() }.line_of("%(minion_id)s", "", ""),
            "[m]"
        );
        assert_eq!(
            record().line_of("%(levelname)10s%(jid)s", "", "[JID: 1]"),
            "   WARNING[JID: 1]"
        );
    }

    #[test]
    fn levels() {
        let names =
            ["garbage", "trace", "debug", "profile", "info", "warning", "error", "critical"];
        let levels: Vec<_> = names.iter().filter_map(|name| Level::named(name)).collect();
        assert!(levels.is_sorted() && levels.len() == names.len());
        for (name, level) in names.iter().zip(levels) {
            assert_eq!(level.name().to_lowercase(), *name);
        }
    }

    #[test]
    fn syslog_addresses() {
        assert_eq!(facility_of("/dev/log/LOG_DAEMON"), ("/dev/log", 3));
        assert_eq!(facility_of("loghost:10514/LOG_LOCAL7"), ("loghost:10514", 23));
        assert_eq!(facility_of("/dev/log"), ("/dev/log", 1));
        assert_eq!(syslog(Level(30), 3, "x"), "<28>x");
    }
}
