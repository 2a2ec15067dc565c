//! How a command is run: what every function of `cmd` and every other module that runs a user's
//! command goes through.
//!
//! [`Options`] are the arguments the functions share, [`execute`] runs. As with Salt, the locale is
//! reset to `C` (other modules parse the output), the folder is the user's home unless told, and
//! the environment of another user is that of a login (`su -`). The return code becomes the job's.
//!
//! Surprising: a time-out is no error but a return with code 1, and leaves the job's return code
//! alone. Absent: a terminal; `use_vt` runs the command without one.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use halite_spec::{
    Command, Cx, Error, FromArg, Output, Result, Template,
    host::{self, Kind},
};
use halite_value::{Dict, Value};

use super::shlex;

/// What the functions of `cmd` take.
#[derive(Clone, Debug)]
pub struct Options {
    /// A text, or a list of words.
    pub cmd: Value,
    pub cwd: Option<String>,
    pub stdin: Option<String>,
    pub runas: Option<String>,
    pub group: Option<String>,
    /// `$SHELL`, or `/bin/sh`, unless told.
    pub shell: Option<String>,
    pub python_shell: Option<bool>,
    pub env: Value,
    pub clean_env: bool,
    pub prepend_path: Option<String>,
    pub template: Option<String>,
    pub rstrip: bool,
    pub umask: Value,
    pub output_encoding: Option<String>,
    pub output_loglevel: Option<String>,
    pub log_callback: Value,
    pub hide_output: bool,
    pub timeout: Value,
    pub reset_system_locale: bool,
    pub ignore_retcode: bool,
    pub saltenv: Option<String>,
    pub use_vt: bool,
    pub redirect_stderr: bool,
    pub bg: bool,
    pub password: Option<String>,
    pub encoded_cmd: bool,
    pub raise_err: bool,
    pub success_retcodes: Value,
    pub success_stdout: Value,
    pub success_stderr: Value,
    /// Backslash-n in `stdin` stays as it is.
    pub stdin_raw_newlines: bool,
    /// For templates: pillar to be compiled anew.
    pub pillar: Value,
    pub pillarenv: Option<String>,
    /// The job asked for this very command, so the command lists of the configuration apply.
    pub asked: bool,
    /// It changes nothing.
    pub query: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cmd: Value::Null,
            cwd: None,
            stdin: None,
            runas: None,
            group: None,
            shell: None,
            python_shell: None,
            env: Value::Null,
            clean_env: false,
            prepend_path: None,
            template: None,
            rstrip: true,
            umask: Value::Null,
            output_encoding: None,
            output_loglevel: Some("debug".into()),
            log_callback: Value::Null,
            hide_output: false,
            timeout: Value::Null,
            reset_system_locale: true,
            ignore_retcode: false,
            saltenv: None,
            use_vt: false,
            redirect_stderr: false,
            bg: false,
            password: None,
            encoded_cmd: false,
            raise_err: false,
            success_retcodes: Value::Null,
            success_stdout: Value::Null,
            success_stderr: Value::Null,
            stdin_raw_newlines: false,
            pillar: Value::Null,
            pillarenv: None,
            asked: false,
            query: false,
        }
    }
}

impl Options {
    /// Takes the options it knows from a dict; others are ignored, as Salt ignores them.
    pub fn read(&mut self, kwargs: &Dict) -> Result<()> {
        fn set<T: FromArg>(field: &mut T, name: &str, value: Value) -> Result<()> {
            *field = T::from_arg(value)
                .map_err(|_| Error::invalid(format!("`{name}` must be {}", T::KIND)))?;
            Ok(())
        }
        for (key, value) in kwargs {
            let name = key.to_str();
            let name = name.as_str();
            match name {
                "cmd" => self.cmd = value,
                "cwd" => set(&mut self.cwd, name, value)?,
                "stdin" => set(&mut self.stdin, name, value)?,
                "runas" => set(&mut self.runas, name, value)?,
                "group" => set(&mut self.group, name, value)?,
                "shell" => set(&mut self.shell, name, value)?,
                "python_shell" => set(&mut self.python_shell, name, value)?,
                "env" => self.env = value,
                "clean_env" => set(&mut self.clean_env, name, value)?,
                "prepend_path" => set(&mut self.prepend_path, name, value)?,
                "template" => set(&mut self.template, name, value)?,
                "rstrip" => set(&mut self.rstrip, name, value)?,
                "umask" => self.umask = value,
                "output_encoding" => set(&mut self.output_encoding, name, value)?,
                "output_loglevel" => set(&mut self.output_loglevel, name, value)?,
                "hide_output" => set(&mut self.hide_output, name, value)?,
                "timeout" => self.timeout = value,
                "reset_system_locale" => set(&mut self.reset_system_locale, name, value)?,
                "ignore_retcode" => set(&mut self.ignore_retcode, name, value)?,
                "saltenv" => set(&mut self.saltenv, name, value)?,
                "use_vt" => set(&mut self.use_vt, name, value)?,
                "redirect_stderr" => set(&mut self.redirect_stderr, name, value)?,
                "bg" => set(&mut self.bg, name, value)?,
                "raise_err" => set(&mut self.raise_err, name, value)?,
                "success_retcodes" => self.success_retcodes = value,
                "success_stdout" => self.success_stdout = value,
                "success_stderr" => self.success_stderr = value,
                "stdin_raw_newlines" => set(&mut self.stdin_raw_newlines, name, value)?,
                "pillar" => self.pillar = value,
                "pillarenv" => set(&mut self.pillarenv, name, value)?,
                "__pub_jid" => self.asked = value.truthy(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Decides whether a shell reads the command when the caller left it open: yes if the user asked
    /// for it directly, or if the configuration says `cmd_safe: False`.
    pub fn settle_shell(&mut self, cx: &Cx) {
        if self.python_shell.is_none() {
            let unsafe_allowed = cx.opt("cmd_safe") == Some(Value::Bool(false));
            self.python_shell = (self.asked || unsafe_allowed).then_some(true);
        }
    }

    fn quiet(&self) -> bool {
        self.output_loglevel.as_deref().is_some_and(|level| level.eq_ignore_ascii_case("quiet"))
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub pid: u32,
    /// `None` of a command in the background.
    pub retcode: Option<i64>,
    pub stdout: String,
    pub stderr: String,
    /// It was ended because it took too long; its return has another order then.
    pub timed_out: bool,
}

impl Ran {
    /// The dict that `cmd.run_all` returns.
    pub fn to_value(&self) -> Dict {
        let (pid, retcode) = (self.pid, self.retcode);
        let (stdout, stderr) = (self.stdout.as_str(), self.stderr.as_str());
        if self.timed_out {
            return halite_value::entries! {
                "stdout" => stdout, "stderr" => stderr, "retcode" => retcode, "pid" => pid,
            };
        }
        halite_value::entries! {
            "pid" => pid, "retcode" => retcode, "stdout" => stdout, "stderr" => stderr,
        }
    }

    pub fn ok(&self) -> bool {
        self.retcode == Some(0)
    }
}

/// Runs a command.
pub fn execute(cx: &Cx, options: &Options) -> Result<Ran> {
    let prepared = Prepared::of(cx, options)?;
    let success = Success::of(options)?;
    let output = cx.host.run(&prepared.command).map_err(|error| prepared.unable(options, error))?;
    if output.timed_out {
        let time = text_of(&options.timeout);
        let stdout = format!("{} : Timed out after {time} seconds", prepared.shown());
        let (pid, stderr) = (output.pid, String::new());
        return Ok(Ran { pid, retcode: Some(1), stdout, stderr, timed_out: true });
    }
    let decode = |bytes: &[u8]| {
        let text = decoded(bytes, options.output_encoding.as_deref());
        if options.rstrip { right_stripped(&text).to_owned() } else { text }
    };
    let mut ran = Ran {
        pid: output.pid,
        retcode: (!options.bg).then_some(i64::from(output.code)),
        stdout: decode(&output.stdout),
        stderr: decode(&output.stderr),
        timed_out: false,
    };
    success.judge(&mut ran);
    let counts = !options.ignore_retcode && !options.bg;
    cx.job.set_retcode(ran.retcode.filter(|_| counts).unwrap_or(0));
    report(options, &prepared.cmd, &ran);
    Ok(ran)
}

/// A command that was looked at and found fit to be run.
struct Prepared {
    /// As it was asked for, rendered.
    cmd: Value,
    /// Its words; one if a shell takes it apart.
    words: Vec<String>,
    shell: String,
    in_shell: bool,
    cwd: PathBuf,
    command: Command,
}

impl Prepared {
    fn of(cx: &Cx, options: &Options) -> Result<Self> {
        let shell = options.shell.clone().unwrap_or_else(|| default_shell(cx));
        check_shell(cx, &shell, options)?;
        let (cmd, cwd) = rendered(cx, options)?;
        if options.asked && !is_permitted(cx, &cmd) {
            let shown = text_of(&cmd);
            return Err(Error::failed(format!("The shell command \"{shown}\" is not permitted")));
        }
        let own_env = environment(&options.env);
        announce(options, &cmd, &cwd);
        check_identity(cx, options)?;
        let mut env = match (&options.runas, &options.group) {
            (None, None) => own_env,
            _ => login_environment(cx, options, &shell, own_env)?,
        };
        if options.reset_system_locale {
            reset_locale(&mut env);
        }
        let umask = umask_of(&options.umask)?;
        if !cwd.is_absolute() || !cx.host.is_dir(&cwd)? {
            return Err(Error::failed(format!(
                "Specified cwd '{}' either not absolute or does not exist",
                cwd.display()
            )));
        }
        let in_shell = options.python_shell == Some(true);
        let words = words_of(&cmd, in_shell)?;
        let shell_words: &[&str] = if in_shell { &[&shell, "-c"] } else { &[] };
        let argv = shell_words.iter().copied().chain(words.iter().map(String::as_str));
        let mut command = Command {
            argv: argv.map(Into::into).collect(),
            cwd: Some(cwd.clone()),
            stdin: stdin_of(options),
            timeout: timeout_of(&options.timeout),
            user: options.runas.clone(),
            group: options.group.clone(),
            umask,
            merge_stderr: options.redirect_stderr,
            background: options.bg,
            query: options.query,
            ..Command::new("")
        };
        set_environment(cx, options, env, &mut command);
        Ok(Self { cmd, words, shell, in_shell, cwd, command })
    }

    /// The command as people are told of it.
    fn shown(&self) -> String {
        match &self.cmd {
            Value::List(_) => Value::list(self.words.clone()).repr(),
            cmd if self.in_shell => text_of(cmd),
            _ => Value::list(self.words.clone()).repr(),
        }
    }

    /// Says why it could not even be started.
    fn unable(&self, options: &Options, error: host::Error) -> Error {
        let host::Error::Spawn { reason, .. } = error else { return error.into() };
        let context = context_of(options, &self.cwd, &self.shell, self.in_shell);
        let first = self.words.first().map(String::as_str).unwrap_or_default();
        let program = if self.in_shell { &*self.shell } else { first };
        let shown = if options.quiet() { "REDACTED".to_owned() } else { self.shown() };
        Error::failed(format!(
            "Unable to run command '{shown}' with the context '{context}', reason: {}",
            system_error(&reason, program)
        ))
    }
}

/// Checks that there are the user and the group to run as.
fn check_identity(cx: &Cx, options: &Options) -> Result<()> {
    let wrong = if let Some(user) = &options.runas
        && cx.host.user_named(user)?.is_none()
    {
        format!("User '{user}' is not available")
    } else if let Some(group) = &options.group {
        if cx.host.which("sudo").is_none() {
            "group argument requires sudo but not found".to_owned()
        } else if cx.host.group_named(group)?.is_none() {
            format!("Group '{group}' is not available")
        } else {
            return Ok(());
        }
    } else {
        return Ok(());
    };
    Err(Error::failed(wrong))
}

/// What the command reads; nothing if nobody waits for it.
fn stdin_of(options: &Options) -> Option<Vec<u8>> {
    let text = options.stdin.as_ref().filter(|_| !options.bg)?;
    Some(match options.stdin_raw_newlines {
        true => text.clone().into_bytes(),
        false => text.replace("\\n", "\n").into_bytes(),
    })
}

/// Runs a command whose words are known, as other modules do: no shell, output not shown.
pub fn plain<T: Into<String>>(
    cx: &Cx,
    words: impl IntoIterator<Item = T>,
    mut options: Options,
) -> Result<Ran> {
    options.cmd = Value::list(words.into_iter().map(Into::into).collect::<Vec<String>>());
    options.python_shell = Some(false);
    execute(cx, &options)
}

/// `$SHELL` of the program we are, or `/bin/sh`.
pub fn default_shell(cx: &Cx) -> String {
    let set = cx.host.env(OsStr::new("SHELL")).filter(|shell| !shell.is_empty());
    set.map_or_else(|| "/bin/sh".to_owned(), |shell| shell.to_string_lossy().into_owned())
}

fn check_shell(cx: &Cx, shell: &str, options: &Options) -> Result<()> {
    // Without a shell at work, only one that somebody asked for has to exist.
    if shell.is_empty() || (options.shell.is_none() && options.python_shell != Some(true)) {
        return Ok(());
    }
    let is_program = cx
        .host
        .stat(Path::new(shell), true)
        .is_ok_and(|stat| stat.kind == Kind::File && stat.mode & 0o111 != 0);
    if !is_program {
        return Err(Error::failed(format!("The shell {shell} is not available")));
    }
    if !options.quiet()
        && !super::listed_shells(cx).is_none_or(|shells| shells.contains(&shell.to_owned()))
    {
        tracing::warn!(
            "/etc/shells does not list {shell}; running the command with it all the same"
        );
    }
    Ok(())
}

/// The command and the folder, rendered if the caller asks for it.
fn rendered(cx: &Cx, options: &Options) -> Result<(Value, PathBuf)> {
    let cwd = match options.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
        Some(cwd) => cwd.to_owned(),
        None => home_of(cx, options.runas.as_deref())?,
    };
    let Some(engine) = options.template.as_deref().filter(|engine| !engine.is_empty()) else {
        return Ok((options.cmd.clone(), cwd.into()));
    };
    const ENGINES: [&str; 6] = ["jinja", "mako", "py", "wempy", "genshi", "cheetah"];
    if !ENGINES.contains(&engine) {
        return Err(Error::failed(format!(
            "Attempted to render file paths with unavailable engine {engine}"
        )));
    }
    let context = Dict::new();
    if !options.pillar.is_null() || options.pillarenv.is_some() {
        let overrides = options.pillar.as_dict().cloned().unwrap_or_default();
        let env = options.pillarenv.as_deref();
        context.insert("pillar", cx.runtime.compile_pillar(cx, &overrides, env)?);
    }
    let render = |text: String| {
        let template = Template {
            engine: engine.to_owned(),
            text,
            source: None,
            saltenv: options.saltenv.clone().unwrap_or_else(|| cx.saltenv()),
            sls: None,
            context: context.clone(),
        };
        cx.runtime
            .render(cx, &template)
            .map_err(|error| Error::failed(format!("Failed to execute cmd with error: {error}")))
    };
    let cmd = render(text_of(&options.cmd))?;
    Ok((cmd.into(), render(cwd)?.into()))
}

fn home_of(cx: &Cx, user: Option<&str>) -> Result<String> {
    let home = match user {
        Some(user) => cx.host.user_named(user)?.map(|user| user.home),
        None => match cx.host.env(OsStr::new("HOME")) {
            Some(home) => Some(home.to_string_lossy().into_owned()),
            None => cx.host.user_with_id(cx.host.uid())?.map(|user| user.home),
        },
    };
    // Whoever became another user may still have the home of the first, and no right to enter it.
    let may_enter = |home: &str| {
        let is_own = user.is_some() || cx.host.uid() == 0;
        is_own || cx.host.read_dir(Path::new(home)).is_ok()
    };
    match home {
        Some(home) if cx.host.is_dir(Path::new(&home))? && may_enter(&home) => Ok(home),
        _ => Ok("/".to_owned()),
    }
}

fn is_permitted(cx: &Cx, cmd: &Value) -> bool {
    let text = match cmd.items_of_sequence() {
        Some(words) => words.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
        None => text_of(cmd),
    };
    let globs = |name: &str| {
        let set = cx.opt(name).filter(Value::truthy).or_else(|| cx.pillar.get(name));
        set.as_ref().map(split_input).unwrap_or_default()
    };
    let fits = |glob: &String| halite_target::fnmatch::fnmatch(&text, glob);
    let allowed = globs("cmd_whitelist_glob");
    !globs("cmd_blacklist_glob").iter().any(fits)
        && (allowed.is_empty() || allowed.iter().any(fits))
}

/// A text with commas, or a list, as a list of texts.
pub fn split_input(value: &Value) -> Vec<String> {
    match value.items_of_sequence() {
        Some(items) => items.iter().map(Value::to_string).collect(),
        None if value.is_null() => Vec::new(),
        None => value.to_str().split(',').map(|part| part.trim().to_owned()).collect(),
    }
}

/// `env` as users write it: a dict, or a list of dicts.
fn environment(env: &Value) -> Vec<(String, String)> {
    let dicts = match env {
        Value::Dict(dict) => vec![dict.clone()],
        other => other
            .items_of_sequence()
            .unwrap_or_default()
            .iter()
            .filter_map(|item| item.as_dict().cloned())
            .collect(),
    };
    let mut entries: Vec<(String, String)> = Vec::new();
    for (name, value) in dicts.iter().flatten() {
        if value.is_null() {
            tracing::error!("the environment variable {name} came with no value: it will be empty");
        }
        let value = if value.is_null() { String::new() } else { text_of(&value) };
        put(&mut entries, &name.to_str(), value);
    }
    entries
}

fn put(env: &mut Vec<(String, String)>, name: &str, value: String) {
    match env.iter_mut().find(|(own, _)| own == name) {
        Some(entry) => entry.1 = value,
        None => env.push((name.to_owned(), value)),
    }
}

const MARK: &str = "<<<halite:environment>>>";

/// The environment of a login of the user, below what the caller sets.
fn login_environment(
    cx: &Cx,
    options: &Options,
    shell: &str,
    own: Vec<(String, String)>,
) -> Result<Vec<(String, String)>> {
    // Profiles may print: what counts stands between two marks.
    let script = format!("printf %s '{MARK}'; env -0; printf %s '{MARK}'");
    let mut words: Vec<&str> = Vec::new();
    match &options.group {
        Some(group) => {
            words.push("sudo");
            if let Some(user) = &options.runas {
                words.extend(["-u", user]);
            }
            words.extend(["-g", group]);
            if *shell == default_shell(cx) {
                words.extend(["-i", "--", "sh", "-c"]);
            } else {
                words.extend(["-s", "--", shell, "-c"]);
            }
        }
        None => {
            words.push("su");
            if !shell.is_empty() {
                words.extend(["-s", shell]);
            }
            words.extend(["-", options.runas.as_deref().unwrap_or_default(), "-c"]);
        }
    }
    let mut env = Vec::new();
    if let Some((program, args)) = words.split_first() {
        let command = Command::new(*program)
            .args(args.iter().copied())
            .arg(script)
            .timeout(Duration::from_secs(10))
            .query();
        let output = cx.host.run(&command);
        let stdout = output.as_ref().map(halite_spec::Output::stdout_text).unwrap_or_default();
        let mut parts = stdout.split(MARK);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(_), Some(found), Some(_)) => {
                let entries = found.split('\0').filter_map(|entry| entry.split_once('='));
                env.extend(entries.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            _ => tracing::error!(
                "the login shell of '{}' did not tell its environment; errors {:?}, output {stdout:?}",
                options.runas.as_deref().unwrap_or_default(),
                output.map(|output| output.stderr_text()).unwrap_or_default(),
            ),
        }
    }
    env.retain(|(name, _)| name != "_");
    for (name, value) in own {
        put(&mut env, &name, value);
    }
    if let Some(user) = &options.runas {
        put(&mut env, "USER", user.clone());
        let home = cx.host.user_named(user)?.map(|user| user.home).unwrap_or_default();
        put(&mut env, "HOME", home);
    }
    Ok(env)
}

fn reset_locale(env: &mut Vec<(String, String)>) {
    const NAMES: [&str; 13] = [
        "LC_CTYPE",
        "LC_NUMERIC",
        "LC_TIME",
        "LC_COLLATE",
        "LC_MONETARY",
        "LC_MESSAGES",
        "LC_PAPER",
        "LC_NAME",
        "LC_ADDRESS",
        "LC_TELEPHONE",
        "LC_MEASUREMENT",
        "LC_IDENTIFICATION",
        "LANGUAGE",
    ];
    for name in NAMES {
        if !env.iter().any(|(own, _)| own == name) {
            env.push((name.to_owned(), "C".to_owned()));
        }
    }
}

fn set_environment(
    cx: &Cx,
    options: &Options,
    mut env: Vec<(String, String)>,
    command: &mut Command,
) {
    if let Some(first) = options.prepend_path.as_deref().filter(|path| !path.is_empty()) {
        let own = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let path = own.or_else(|| {
            let inherited = cx.host.env(OsStr::new("PATH")).filter(|_| !options.clean_env);
            inherited.map(|path| path.to_string_lossy().into_owned())
        });
        let path = path.map_or_else(|| first.to_owned(), |path| format!("{first}:{path}"));
        put(&mut env, "PATH", path);
    }
    command.clear_env = options.clean_env;
    if !env.iter().any(|(name, _)| name == "NOTIFY_SOCKET") {
        // A daemon started by the command must not talk to our service manager.
        command.env.push(("NOTIFY_SOCKET".into(), None));
    }
    command.env.extend(env.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
}

fn umask_of(umask: &Value) -> Result<Option<u32>> {
    if umask.is_null() {
        return Ok(None);
    }
    let text = text_of(umask);
    let digits = text.trim_start_matches('0');
    if digits.is_empty() {
        return Err(Error::failed("Zero umask is not allowed."));
    }
    let mask = u32::from_str_radix(digits, 8);
    mask.map(Some).map_err(|_| Error::failed(format!("Invalid umask: '{text}'")))
}

fn words_of(cmd: &Value, in_shell: bool) -> Result<Vec<String>> {
    Ok(match cmd.items_of_sequence() {
        Some(items) => items.iter().map(text_of).collect(),
        None if in_shell => vec![text_of(cmd)],
        None => {
            shlex::split(&text_of(cmd)).map_err(|problem| Error::raised("ValueError", problem))?
        }
    })
}

fn timeout_of(timeout: &Value) -> Option<Duration> {
    let seconds = match timeout {
        Value::Str(text) => text.trim().parse().ok(),
        other => other.as_float(),
    };
    seconds.filter(|seconds| *seconds > 0.0).and_then(|time| Duration::try_from_secs_f64(time).ok())
}

/// What counts as success beside code 0.
struct Success {
    codes: Vec<i64>,
    stdout: Vec<String>,
    stderr: Vec<String>,
}

impl Success {
    fn of(options: &Options) -> Result<Self> {
        let codes = split_input(&options.success_retcodes)
            .iter()
            .map(|code| code.trim().parse::<i64>())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| Error::invalid("success_retcodes must be a list of integers"))?;
        Ok(Self {
            codes,
            stdout: split_input(&options.success_stdout),
            stderr: split_input(&options.success_stderr),
        })
    }

    fn judge(&self, ran: &mut Ran) {
        let listed = ran.retcode.is_some_and(|code| self.codes.contains(&code));
        let said = self.stdout.iter().any(|text| ran.stdout.contains(text))
            || self.stderr.iter().any(|text| ran.stderr.contains(text));
        if listed || said {
            ran.retcode = Some(0);
        }
    }
}

/// The text of a value, as Python's `str`.
fn text_of(value: &Value) -> String {
    value.to_str().to_string()
}

fn decoded(bytes: &[u8], encoding: Option<&str>) -> String {
    match encoding.map(|name| name.to_ascii_lowercase().replace('_', "-")).as_deref() {
        Some("latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1") => {
            bytes.iter().map(|byte| char::from(*byte)).collect()
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Python's `rstrip`: white space, and four separators Rust does not count.
pub fn right_stripped(text: &str) -> &str {
    text.trim_end_matches(|char: char| char.is_whitespace() || ('\x1c'..='\x1f').contains(&char))
}

/// `[Errno 2] No such file or directory: 'x'`
fn system_error(reason: &str, program: &str) -> String {
    let number = match reason {
        "No such file or directory" => 2,
        "Argument list too long" => 7,
        "Exec format error" => 8,
        "Cannot allocate memory" => 12,
        "Permission denied" => 13,
        "Not a directory" => 20,
        "Text file busy" => 26,
        _ => return reason.to_owned(),
    };
    format!("[Errno {number}] {reason}: {}", Value::from(program).repr())
}

fn context_of(options: &Options, cwd: &Path, shell: &str, in_shell: bool) -> String {
    let context = halite_value::entries! {
        "cwd" => cwd.display().to_string(), "shell" => in_shell, "stdout" => -1,
        "stderr" => if options.redirect_stderr { -2 } else { -1 },
        "with_communicate" => !options.bg, "timeout" => &options.timeout, "bg" => options.bg,
    };
    if in_shell {
        context.insert("executable", shell);
    }
    context.insert("close_fds", true);
    Value::Dict(context).repr()
}

/// The program's name: logs do not show arguments.
fn program_of(cmd: &Value) -> String {
    match cmd.items_of_sequence() {
        Some(words) => words.first().map(text_of).unwrap_or_default(),
        None => text_of(cmd).split_whitespace().next().unwrap_or_default().to_owned(),
    }
}

fn announce(options: &Options, cmd: &Value, cwd: &Path) {
    if options.quiet() {
        return;
    }
    let quote = if matches!(cmd, Value::List(_)) { "" } else { "'" };
    let user = options.runas.as_ref().map(|user| format!("as user '{user}' ")).unwrap_or_default();
    let group =
        options.group.as_ref().map(|group| format!("in group '{group}' ")).unwrap_or_default();
    let end = if options.bg {
        ". Executing command in the background, no output will be logged."
    } else {
        ""
    };
    tracing::info!(
        "Executing command {quote}{}{quote} {user}{group}in directory '{}'{end}",
        program_of(cmd),
        cwd.display()
    );
}

/// Logs at the level the caller chose, or as an error if the command failed.
fn report(options: &Options, cmd: &Value, ran: &Ran) {
    if options.quiet() {
        return;
    }
    let failed = !options.ignore_retcode && !options.bg && !ran.ok();
    if failed {
        tracing::error!("Command '{}' failed with return code: {}", program_of(cmd), code_of(ran));
    }
    let mut lines = Vec::new();
    if !ran.stdout.is_empty() {
        lines.push(format!("stdout: {}", ran.stdout));
    }
    if !ran.stderr.is_empty() {
        lines.push(format!("stderr: {}", ran.stderr));
    }
    if ran.retcode.is_some_and(|code| code != 0) {
        lines.push(format!("retcode: {}", ran.retcode.unwrap_or_default()));
    }
    for line in lines {
        log_at(options, failed, &line);
    }
}

fn code_of(ran: &Ran) -> String {
    ran.retcode.map_or_else(|| "None".to_owned(), |code| code.to_string())
}

/// Logs a program of another module that failed, as one that `cmd` ran.
pub fn log_failure(cx: &Cx, program: &str, output: &Output) {
    if output.ok() {
        return;
    }
    let path = cx.host.which(program);
    let path = path.map_or_else(|| program.to_owned(), |path| path.display().to_string());
    tracing::error!("Command '{path}' failed with return code: {}", output.code);
    for (stream, text) in [("stdout", output.stdout_text()), ("stderr", output.stderr_text())] {
        let text = text.trim_end();
        if !text.is_empty() {
            tracing::error!("{stream}: {text}");
        }
    }
    tracing::error!("retcode: {}", output.code);
}

/// As `cmd.run` does once more for what it returns.
pub(super) fn report_output(options: &Options, ran: &Ran) {
    if options.quiet() {
        return;
    }
    let failed = !options.ignore_retcode && !options.bg && !ran.ok();
    if failed {
        tracing::error!(
            "Command '{}' failed with return code: {}",
            program_of(&options.cmd),
            code_of(ran)
        );
    }
    log_at(options, failed, &format!("output: {}", ran.stdout));
}

fn log_at(options: &Options, failed: bool, line: &str) {
    let level = options.output_loglevel.as_deref().unwrap_or("info").to_ascii_lowercase();
    match level.as_str() {
        "critical" | "error" => tracing::error!("{line}"),
        _ if failed => tracing::error!("{line}"),
        "warning" | "warn" => tracing::warn!("{line}"),
        "debug" => tracing::debug!("{line}"),
        "trace" | "garbage" | "all" | "profile" => tracing::trace!("{line}"),
        _ => tracing::info!("{line}"),
    }
}
