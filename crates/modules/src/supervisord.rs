//! `supervisord`: processes under a supervisor, over `supervisorctl`.

use std::path::Path;

use halite_spec::{Args, Cx, Error, Result, function, module};
use halite_value::{Dict, Value, dict};

use crate::cmd::{Options, Ran, plain, shlex};

module! {
    /// Processes under a supervisor.
    "supervisord": start, restart, stop, add, remove, reread, update, status, status_raw,
    status_bool, custom, options,
}

/// Who asks, and which supervisor.
#[derive(Args, Clone, Debug, Default)]
pub struct Place {
    /// The user supervisorctl runs as.
    pub user: Option<String>,
    /// The configuration.
    pub conf_file: Option<String>,
    /// `supervisorctl`, or the virtual environment it is in.
    pub bin_env: Option<String>,
}

fn program(cx: &Cx, bin_env: Option<&str>) -> Result<String> {
    let Some(given) = bin_env.filter(|given| !given.is_empty()) else {
        return match cx.host.which("supervisorctl") {
            Some(_) => Ok("supervisorctl".to_owned()),
            None => Err(Error::failed("Could not find a `supervisorctl` binary")),
        };
    };
    if cx.host.is_dir(Path::new(given))? {
        let inside = format!("{}/bin/supervisorctl", given.trim_end_matches('/'));
        if cx.host.is_file(Path::new(&inside))? {
            return Ok(inside);
        }
        return Err(Error::failed("Could not find a `supervisorctl` binary"));
    }
    Ok(given.to_owned())
}

/// Runs `supervisorctl`.
pub fn ctl(cx: &Cx, words: &[&str], place: &Place, query: bool) -> Result<Ran> {
    let mut line = vec![program(cx, place.bin_env.as_deref())?];
    if let Some(file) = place.conf_file.as_deref().filter(|file| !file.is_empty()) {
        line.extend(["-c".to_owned(), file.to_owned()]);
    }
    line.extend(words.iter().map(|word| (*word).to_owned()));
    let options =
        Options { query, ignore_retcode: query, runas: place.user.clone(), ..Options::default() };
    plain(cx, line, options)
}

/// What it said: of a failure both streams.
fn said(ran: &Ran) -> String {
    if ran.ok() || ran.stderr.is_empty() {
        return ran.stdout.clone();
    }
    format!("{}{}", ran.stderr, ran.stdout)
}

macro_rules! verb {
    ($(#[$doc:meta])* $name:ident, $word:literal, $($default:tt)*) => {
        $(#[$doc])*
        #[function]
        pub fn $name(
            cx: &Cx,
            /// The process, or a group: `group:*`.
            $($default)*
            name: String,
            #[group] place: Place,
        ) -> Result<String> {
            Ok(said(&ctl(cx, &[$word, &name], &place, false)?))
        }
    };
}

verb! {
    /// Start a process, or all.
    ///
    /// ```console
    /// $ salt '*' supervisord.start web
    /// ```
    start, "start", #[default("all".to_owned())]
}

verb! {
    /// Restart a process, or all.
    ///
    /// ```console
    /// $ salt '*' supervisord.restart web
    /// ```
    restart, "restart", #[default("all".to_owned())]
}

verb! {
    /// Stop a process, or all.
    ///
    /// ```console
    /// $ salt '*' supervisord.stop web
    /// ```
    stop, "stop", #[default("all".to_owned())]
}

verb! {
    /// Make what the configuration says about a process active.
    ///
    /// ```console
    /// $ salt '*' supervisord.add web
    /// ```
    add, "add",
}

verb! {
    /// Remove a process from what is active.
    ///
    /// ```console
    /// $ salt '*' supervisord.remove web
    /// ```
    remove, "remove",
}

/// Read the configuration again, without acting on it.
///
/// ```console
/// $ salt web1 supervisord.reread
/// ```
#[function]
pub fn reread(cx: &Cx, #[group] place: Place) -> Result<String> {
    Ok(said(&ctl(cx, &["reread"], &place, false)?))
}

/// Read the configuration again and act on it, or only on one process of it.
///
/// ```console
/// $ salt web1 supervisord.update
/// ```
#[function]
pub fn update(
    cx: &Cx,
    #[group] place: Place,
    /// The process; all if none is given.
    name: Option<String>,
) -> Result<String> {
    let mut words = vec!["update"];
    words.extend(name.as_deref());
    Ok(said(&ctl(cx, &words, &place, false)?))
}

fn told(cx: &Cx, name: Option<&str>, place: &Place) -> Result<String> {
    let mut words = vec!["status"];
    words.extend(name);
    Ok(said(&ctl(cx, &words, place, true)?))
}

/// The state of processes: name → state and reason.
pub fn states(cx: &Cx, name: Option<&str>, place: &Place) -> Result<Dict> {
    let ret = Dict::new();
    for line in told(cx, name, place)?.lines() {
        let mut words = line.split_whitespace();
        // `unix:///var/run/supervisor.sock no such file` is no process.
        let (Some(name), Some(state)) = (words.next(), words.next()) else { continue };
        let reason: Vec<&str> = words.collect();
        ret.insert(name, dict! { "state" => state, "reason" => reason.join(" ") });
    }
    Ok(ret)
}

/// Return the state of processes, and why.
///
/// ```console
/// $ salt web1 supervisord.status
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// The process; all if none is given.
    name: Option<String>,
    #[group] place: Place,
) -> Result<Dict> {
    states(cx, name.as_deref(), &place)
}

/// Return the state of processes, as the program writes it.
///
/// ```console
/// $ salt web1 supervisord.status_raw
/// ```
#[function]
pub fn status_raw(
    cx: &Cx,
    /// The process; all if none is given.
    name: Option<String>,
    #[group] place: Place,
) -> Result<String> {
    told(cx, name.as_deref(), &place)
}

/// Tell whether a process runs, or is in another state.
///
/// ```console
/// $ salt web1 supervisord.status_bool shop
/// ```
#[function]
pub fn status_bool(
    cx: &Cx,
    /// The process.
    name: String,
    /// The state it should be in; `RUNNING` if none is given.
    expected_state: Option<String>,
    #[group] place: Place,
) -> Result<bool> {
    let text = told(cx, Some(&name), &place)?;
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let wanted = expected_state.as_deref().unwrap_or("RUNNING");
    Ok(lines.next().is_none() && words.get(1) == Some(&wanted))
}

/// Run any command of the program.
///
/// ```console
/// $ salt web1 supervisord.custom 'tail shop'
/// ```
#[function]
pub fn custom(
    cx: &Cx,
    /// The command with its arguments.
    command: String,
    #[group] place: Place,
) -> Result<String> {
    let words = shlex::split(&command).map_err(Error::failed)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(said(&ctl(cx, &words, &place, false)?))
}

/// Return what the configuration says about a process.
///
/// ```console
/// $ salt web1 supervisord.options shop
/// ```
#[function]
pub fn options(
    cx: &Cx,
    /// The process.
    name: String,
    /// The configuration of the supervisor.
    conf_file: Option<String>,
) -> Result<Dict> {
    let usual = ["/etc/supervisord.conf", "/etc/supervisor/supervisord.conf"];
    let mut path = conf_file.filter(|path| !path.is_empty());
    for usual in usual {
        if path.is_none() && cx.host.is_file(Path::new(usual))? {
            path = Some(usual.to_owned());
        }
    }
    let Some(path) = path else { return Err(Error::failed("No suitable config files found")) };
    let text = cx.host.read_text(Path::new(&path))?;
    let wanted = format!("[program:{name}]");
    let mut lines = text.lines().skip_while(|line| line.trim() != wanted).peekable();
    if lines.next().is_none() {
        return Err(Error::failed(format!("Process '{name}' not found")));
    }
    let ret = Dict::new();
    for line in lines.take_while(|line| !line.trim_start().starts_with('[')) {
        let line = line.split(" ;").next().unwrap_or_default();
        if line.trim_start().starts_with([';', '#']) {
            continue;
        }
        let Some((key, value)) = line.split_once(['=', ':']) else { continue };
        ret.insert(key.trim().to_lowercase(), number_or_text(value.trim()));
    }
    Ok(ret)
}

fn number_or_text(text: &str) -> Value {
    match text.to_lowercase().as_str() {
        "true" => true.into(),
        "false" => false.into(),
        _ => text.parse::<i64>().map_or_else(|_| text.into(), Value::from),
    }
}
