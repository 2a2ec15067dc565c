//! The programs of Salt: their command lines, and what all of them do before they run.
//!
//! [`start`] parses the command line, finds the Saltfile, loads the configuration, lays the command
//! line over it, starts logging, and calls the program's `run` with a [`Context`]. A program is one
//! file here: a table of options, a `check` where arguments need looking at, and `run`.

pub mod api;
pub mod call;
pub mod cloud;
pub mod cp;
pub mod key;
pub mod master;
pub mod minion;
pub mod proxy;
pub mod run;
pub mod salt;
pub mod shared;
pub mod ssh;
pub mod syndic;

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt as _, path::Path};

use halite_config::{Machine as _, Opts, Request, Role, WarningKind};
use halite_value::Value;

use crate::{
    diagnostics::{Format, Report, Severity},
    interrupt, log_handlers, logging,
    machine::Real,
    optparse::{EX_USAGE, Parsed, Program, Stop},
    sdb, terminal, version,
};

/// One program: everything [`start`] needs to know about it.
pub struct Entry {
    pub program: &'static Program,
    pub role: Role,
    /// The option that names the log file.
    pub log_file: &'static str,
    /// Looks at arguments and options once the configuration is there.
    pub check: fn(&mut Context) -> Result<(), Early>,
    pub run: fn(&mut Context) -> u8,
}

/// A program that ends before it has begun.
#[derive(Debug)]
pub enum Early {
    /// A wrong command line: usage line and message.
    Usage(String),
    /// Print the help first, then as `Usage`.
    HelpThen(String),
    /// Just end, with this text on standard error.
    Exit(u8, String),
}

pub static ENTRIES: &[Entry] = &[
    Entry {
        program: &salt::PROGRAM,
        role: Role::Client,
        log_file: "log_file",
        check: salt::check,
        run: salt::run,
    },
    Entry {
        program: &call::PROGRAM,
        role: Role::Minion,
        log_file: "log_file",
        check: call::check,
        run: call::run,
    },
    Entry {
        program: &key::PROGRAM,
        role: Role::Client,
        log_file: "key_logfile",
        check: key::check,
        run: key::run,
    },
    Entry {
        program: &run::PROGRAM,
        role: Role::Client,
        log_file: "log_file",
        check: run::check,
        run: run::run,
    },
    Entry {
        program: &cp::PROGRAM,
        role: Role::Master,
        log_file: "log_file",
        check: cp::check,
        run: cp::run,
    },
    Entry {
        program: &master::PROGRAM,
        role: Role::Master,
        log_file: "log_file",
        check: |_| Ok(()),
        run: master::run,
    },
    Entry {
        program: &minion::PROGRAM,
        role: Role::Minion,
        log_file: "log_file",
        check: |_| Ok(()),
        run: minion::run,
    },
    Entry {
        program: &syndic::PROGRAM,
        role: Role::Syndic,
        log_file: "syndic_log_file",
        check: |_| Ok(()),
        run: syndic::run,
    },
    Entry {
        program: &proxy::PROGRAM,
        role: Role::Proxy,
        log_file: "log_file",
        check: proxy::check,
        run: proxy::run,
    },
    Entry {
        program: &api::PROGRAM,
        role: Role::Api,
        log_file: "api_logfile",
        check: |_| Ok(()),
        run: api::run,
    },
    Entry {
        program: &ssh::PROGRAM,
        role: Role::Master,
        log_file: "ssh_log_file",
        check: ssh::check,
        run: ssh::run,
    },
    Entry {
        program: &cloud::PROGRAM,
        role: Role::Cloud,
        log_file: "log_file",
        check: cloud::check,
        run: cloud::run,
    },
];

/// Returns the program of a name, as in `argv[0]` (`salt-call`).
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.program.name == name)
}

/// What a program runs with.
pub struct Context {
    pub program: &'static Program,
    pub parsed: Parsed,
    /// The configuration, with the command line laid over it.
    pub opts: Opts,
    pub format: Format,
}

impl Context {
    /// Shows a problem, and returns the exit code it asks for.
    pub fn report(&self, report: &Report) -> u8 {
        terminal::err(&report.render(self.format));
        report.exit
    }

    /// Says that a program is not there yet.
    pub fn missing(&self, what: &str) -> u8 {
        let help = "its command line and its configuration were checked; nothing was run";
        self.report(&not_built(what).help(help))
    }
}

pub(crate) fn not_built(what: &str) -> Report {
    Report::error(format!("{what} is not built yet")).exit(69)
}

/// Returns the form in which problems are wanted.
pub(crate) fn format_of(parsed: &Parsed) -> Format {
    let format = parsed.str("error_format").or_else(|| terminal::env("HALITE_ERROR_FORMAT"));
    match format.as_deref() {
        Some("json") => Format::Json,
        _ if parsed.bool("no_color") || !terminal::err_wants_color() => Format::Plain,
        _ => Format::Colored,
    }
}

/// Returns the form in which problems of a command line are wanted that cannot be read as a whole.
pub(crate) fn format_in(args: &[String]) -> Format {
    let is_json = |(at, arg): (usize, &String)| match arg.strip_prefix("--error-format") {
        Some("=json") => true,
        Some("") => args.get(at + 1).is_some_and(|format| format == "json"),
        _ => false,
    };
    let by_environment = || terminal::env("HALITE_ERROR_FORMAT").as_deref() == Some("json");
    if args.iter().enumerate().any(is_json) || by_environment() {
        Format::Json
    } else {
        Format::Plain
    }
}

/// Prints the usage line and a message, as optparse does.
pub(crate) fn usage_error(program: &Program, message: &str, format: Format) -> u8 {
    let usage = program.usage_line();
    if format == Format::Json {
        let report = Report::error(message).help(usage.trim_end()).exit(EX_USAGE);
        return show(&report, format);
    }
    terminal::err(&format!("{usage}\n{}: error: {message}\n", program.name));
    EX_USAGE
}

/// Deals with the ends of parsing that are no command.
pub(crate) fn stopped(program: &Program, stop: &Stop, args: &[String]) -> u8 {
    match stop {
        Stop::Help => {
            terminal::out(&program.help(terminal::columns(), &terminal::env));
            0
        }
        Stop::Version => {
            terminal::out(&version::line(program));
            0
        }
        Stop::Error(message) => usage_error(program, message, format_in(args)),
    }
}

/// Runs a program with its arguments, and returns its exit code.
#[must_use]
pub fn start(entry: &'static Entry, args: &[String]) -> u8 {
    let program = entry.program;
    let mut parsed = match parse(program, args) {
        Ok(parsed) => parsed,
        Err(stop) => return stopped(program, &stop, args),
    };
    if parsed.bool("versions_report") {
        terminal::out(&version::report());
        return 0;
    }
    if !is_daemon(program) {
        interrupt::watch();
    }
    let format = format_of(&parsed);
    let opts = match prepare(entry, &mut parsed, format) {
        Ok(opts) => opts,
        Err(code) => return code,
    };
    let mut cx = Context { program, parsed, opts, format };
    if let Err(early) = (entry.check)(&mut cx) {
        return end_early(&cx, &early);
    }
    merge(&mut cx);
    if let Err(report) = start_logging(&cx, entry) {
        return cx.report(&report);
    }
    if !is_daemon(program) {
        log_handlers::start(&cx.opts, false);
    }
    log_warnings(&cx.opts);
    sdb::resolve(&cx.opts);
    let code = (entry.run)(&mut cx);
    log_handlers::finish();
    code
}

fn is_daemon(program: &Program) -> bool {
    program.all().any(|flag| flag.dest == "daemon")
}

fn parse(program: &'static Program, args: &[String]) -> Result<Parsed, Stop> {
    let mut parsed = program.parse(args, &terminal::env)?;
    if parsed.bool("args_stdin") {
        let lines: Vec<String> = std::io::stdin().lines().map_while(Result::ok).collect();
        program.parse_into(&mut parsed, &lines)?;
    }
    Ok(parsed)
}

/// Finds the Saltfile and the configuration folder, and loads the configuration.
fn prepare(entry: &'static Entry, parsed: &mut Parsed, format: Format) -> Result<Opts, u8> {
    if let Err(message) = apply_saltfile(entry.program, parsed) {
        return Err(usage_error(entry.program, &message, format));
    }
    let dir = expand_home(&parsed.str("config_dir").unwrap_or_default());
    if !Path::new(&dir).is_dir() {
        terminal::err(&format!("WARNING: CONFIG '{dir}' directory does not exist.\n"));
    }
    let dir = halite_config::abspath(&dir, &Real.current_dir());
    parsed.adopt("config_dir", Value::from(dir.as_str()));
    let proxy_id = parsed.str("proxyid");
    let is_call = entry.program.name == "salt-call";
    let role = if is_call && proxy_id.is_some() { Role::Proxy } else { entry.role };
    let is_minion = entry.program.name == "salt-minion";
    let request = Request {
        role,
        config_dir: &dir,
        minion_id: proxy_id.as_deref(),
        remember_id: is_call || is_minion,
        strict: is_minion,
        program: entry.program.name,
    };
    halite_config::load(&request, &Real).map_err(|error| {
        let report = Report::from(&error).with_source(|file| std::fs::read_to_string(file).ok());
        terminal::err(&report.render(format));
        report.exit
    })
}

/// Takes options for this program from a Saltfile, where the command line says nothing.
fn apply_saltfile(program: &'static Program, parsed: &mut Parsed) -> Result<(), String> {
    if !program.all().any(|flag| flag.dest == "saltfile") {
        return Ok(());
    }
    let named = parsed.str("saltfile").or_else(|| terminal::env("SALT_SALTFILE"));
    let named = named.filter(|file| !file.is_empty());
    let usual = || {
        let here = format!("{}/Saltfile", Real.current_dir());
        let home = format!("{}/.salt/Saltfile", Real.home());
        [here, home].into_iter().find(|file| Path::new(file).is_file())
    };
    let Some(file) = named.or_else(usual) else { return Ok(()) };
    if !Path::new(&file).is_file() {
        return Err(format!("'{file}' file does not exist.\n"));
    }
    let options = halite_config::read_file(&file, &Real).map_err(|error| error.to_string())?;
    let Some(Value::Dict(own)) = options.get(program.name) else { return Ok(()) };
    for flag in program.all().filter(|flag| !flag.dest.is_empty()) {
        if let Some(value) = own.get(flag.dest).filter(|_| !parsed.is_explicit(flag.dest)) {
            parsed.set(flag.dest, value);
        }
    }
    Ok(())
}

fn expand_home(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", Real.home()),
        _ => path.into(),
    }
}

/// Lays the command line over the configuration, and tells the command line what is configured.
///
/// What the user typed wins; a preset of the command line only fills gaps.
fn merge(cx: &mut Context) {
    let dests: Vec<&'static str> =
        cx.program.all().map(|flag| flag.dest).filter(|dest| !dest.is_empty()).collect();
    for dest in dests {
        let value = cx.parsed.get(dest);
        let configured = cx.opts.get(dest).unwrap_or(Value::Null);
        if !value.is_null() && (configured.is_null() || cx.parsed.is_explicit(dest)) {
            cx.opts.set(dest, value);
        } else if !configured.is_null() {
            cx.parsed.adopt(dest, configured);
        }
    }
}

fn start_logging(cx: &Context, entry: &Entry) -> Result<(), Box<Report>> {
    let mut settings = logging::Settings::from_opts(&cx.opts, entry.log_file);
    if cx.parsed.str("output").as_deref() == Some("yaml") {
        // Whoever reads YAML from a terminal shall be able to.
        settings.console_format = format!("# {}", settings.console_format);
    }
    settings.has_console = !cx.parsed.bool("daemon");
    let is_daemon = is_daemon(cx.program);
    let is_named = cx.parsed.is_explicit("log_file") && !settings.file.contains("://");
    if is_named && Path::new(&settings.file).is_dir() {
        let text = format!("cannot log to {}: it is a folder", settings.file);
        return Err(Box::new(Report::error(text).exit(64)));
    }
    if (is_daemon || is_named)
        && let Some(folder) = Path::new(&settings.file).parent()
    {
        // An error shows when the file is opened.
        let _ = DirBuilder::new().recursive(true).mode(0o750).create(folder);
    }
    let file = settings.file.clone();
    match logging::init(settings.clone()) {
        Ok(()) => Ok(()),
        Err(error) if is_daemon => {
            Err(Box::new(Report::error(format!("cannot log to {file}: {error}")).exit(69)))
        }
        // A command may well be run by a user who cannot write there.
        Err(_) => {
            // Salt says so before its own layout holds, and only to those who look closely.
            if file.starts_with("file://") && settings.console <= logging::Level::DEBUG {
                terminal::err(
                    "[WARNING ] The log_file does not exist. Logging not setup correctly or \
                     syslog service not started.\n",
                );
            }
            settings.file.clear();
            let _ = logging::init(settings);
            Ok(())
        }
    }
}

/// Logs which configuration this is, and what is odd in it. Data the user keeps there is not.
fn log_warnings(opts: &Opts) {
    if let Some(file) = opts.opt_str("conf_file") {
        tracing::debug!(target: "halite_config", "Reading configuration from {file}");
    }
    for warning in opts.warnings() {
        match warning.kind {
            WarningKind::Foreign { .. } | WarningKind::Missing => {
                tracing::debug!(target: "halite_config", "{warning}");
            }
            WarningKind::Skipped => tracing::error!(target: "halite_config", "{warning}"),
            _ => tracing::warn!(target: "halite_config", "{warning}"),
        }
    }
}

fn end_early(cx: &Context, early: &Early) -> u8 {
    match early {
        Early::Usage(message) => usage_error(cx.program, message, cx.format),
        Early::HelpThen(message) => {
            terminal::out(&cx.program.help(terminal::columns(), &terminal::env));
            usage_error(cx.program, message, cx.format)
        }
        Early::Exit(code, text) => {
            terminal::err(text);
            *code
        }
    }
}

/// Checks that at most one way of targeting was chosen, and stores which.
pub(crate) fn check_targets(
    cx: &mut Context,
    flags: &[crate::optparse::Flag],
) -> Result<(), Early> {
    let chosen: Vec<_> = flags.iter().filter(|flag| cx.parsed.bool(flag.dest)).collect();
    exclusive(&chosen.iter().map(|flag| long_name(flag)).collect::<Vec<_>>())?;
    let chosen = chosen.first().map(|flag| match flag.dest {
        "pillar_target" => "pillar",
        dest => dest,
    });
    cx.opts.set("selected_target_option", Value::from(chosen));
    Ok(())
}

pub(crate) fn long_name(flag: &crate::optparse::Flag) -> &'static str {
    flag.names.iter().find(|name| name.starts_with("--")).copied().unwrap_or_default()
}

pub(crate) fn exclusive(names: &[&str]) -> Result<(), Early> {
    if names.len() < 2 {
        return Ok(());
    }
    Err(Early::Usage(format!(
        "The options {} are mutually exclusive. Please only choose one of them",
        names.join("/")
    )))
}

/// Brings the output options into shape: `--state-verbose`, `--out-file`.
pub(crate) fn check_output(cx: &mut Context) -> Result<(), Early> {
    match cx.parsed.str("state_verbose").as_deref() {
        Some("True" | "true") => cx.parsed.set("state_verbose", true),
        Some("False" | "false") => cx.parsed.set("state_verbose", false),
        _ => {}
    }
    cx.opts.set("selected_output_option", cx.parsed.get("output"));
    let Some(file) = cx.parsed.str("output_file") else { return Ok(()) };
    if !cx.parsed.bool("output_file_append") && Path::new(&file).is_file() {
        // Emptied, not removed: its permissions stay.
        std::fs::write(&file, "")
            .map_err(|error| Early::Usage(format!("{file}: Access denied: {error}")))?;
    }
    Ok(())
}

/// Turns `--no-parse a,b` into a list.
pub(crate) fn check_no_parse(cx: &mut Context) {
    let names = cx.parsed.str("no_parse").unwrap_or_default();
    let names: Vec<&str> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let names = Value::list(names);
    cx.parsed.adopt("no_parse", names.clone());
    cx.opts.set("no_parse", names);
}

pub(crate) fn check_jid(cx: &Context) -> Result<(), Early> {
    match cx.parsed.str("jid") {
        Some(jid) if !is_jid(&jid) => Err(Early::Usage(format!("'{jid}' is not a valid JID"))),
        _ => Ok(()),
    }
}

/// Tells whether a text is a job id: twenty digits, maybe with a process id behind `_`.
///
/// Salt lets Python read the number, which allows for a sign and for underscores.
#[must_use]
pub fn is_jid(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let shape = chars.len() == 20 || (chars.len() > 21 && chars[20] == '_');
    if !shape {
        return false;
    }
    let number: String = chars[..20].iter().collect();
    let number = number.trim();
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// Splits a list of minion ids, at commas or else at blanks.
pub(crate) fn id_list(target: &str, keep_blanks: bool) -> Value {
    if target.contains(',') {
        let target = if keep_blanks { target.into() } else { target.replace(' ', "") };
        return Value::list(target.split(',').map(String::from).collect::<Vec<_>>());
    }
    Value::list(target.split_whitespace().map(String::from).collect::<Vec<_>>())
}

/// Shows a report of a severity on standard error, for commands without a context.
pub(crate) fn show(report: &Report, format: Format) -> u8 {
    terminal::err(&report.render(format));
    if report.severity == Severity::Error { report.exit.max(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_ids() {
        assert!(is_jid("20240101120000123456") && is_jid("20240101120000123456_77"));
        assert!(
            !is_jid("2024") && !is_jid("2024010112000012345x") && !is_jid("20240101120000123456_")
        );
    }

    #[test]
    fn lists_of_ids() {
        assert_eq!(id_list("a, b", false), Value::list(["a", "b"]));
        assert_eq!(id_list("a, b", true), Value::list(["a", " b"]));
        assert_eq!(id_list("a b", false), Value::list(["a", "b"]));
    }

    #[test]
    fn spellings_are_unique() {
        for entry in ENTRIES {
            let mut names: Vec<_> = entry.program.all().flat_map(|flag| flag.names).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", entry.program.name);
        }
    }
}
