//! `cmd`: run commands and scripts.
//!
//! The functions differ in what they return; how they run is in `execute.rs`. Their arguments are
//! nearly the same thirty, so the table of arguments is written once, in [`command!`], and each
//! function lists the names it takes, in Salt's order.

mod execute;
pub mod shlex;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, UNIX_EPOCH},
};

use halite_spec::{Command, Cx, Error, Rest, Result, Template, function, host::Write, module};
use halite_value::{Dict, Value, dict};

pub use execute::{
    Options, Ran, default_shell, execute, log_failure, plain, right_stripped, split_input,
};

module! {
    /// Run commands and scripts.
    "cmd": run, shell, run_stdout, run_stderr, run_all, retcode, run_bg, script, script_retcode,
    which, which_bin, has_exec, exec_code, exec_code_all, tty, run_chroot, shells, shell_info,
    powershell, powershell_all,
}

/// Declares a function by the names of its arguments; types, defaults and docs are here.
macro_rules! command {
    // Every argument known.
    (@args [$(#[$meta:meta])*] $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ;) => {
        $(#[$meta])*
        #[function]
        pub fn $name(
            cx: &Cx,
            $($acc)*
            /// Accepted for the sake of callers that pass more.
            rest: Rest,
        ) -> Result<Value> {
            let mut options = Options { $($id,)* ..Options::default() };
            options.read(&rest.kwargs)?;
            options.asked |= cx.job.fun == concat!("cmd.", stringify!($name));
            $body(cx, options)
        }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; cmd $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The command: a text, or a list of words.
            cmd: Value,
        ] [$($id)* cmd] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; cwd $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The folder to run in; the home of the user if not given.
            cwd: Option<String>,
        ] [$($id)* cwd] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; stdin $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// What the command reads.
            stdin: Option<String>,
        ] [$($id)* stdin] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; runas $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The user to run as, with the environment of a login.
            runas: Option<String>,
        ] [$($id)* runas] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; group $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The group to run as; wants sudo.
            group: Option<String>,
        ] [$($id)* group] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; shell $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The shell; `$SHELL`, or `/bin/sh`, if not given.
            shell: Option<String>,
        ] [$($id)* shell] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; python_shell $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Let the shell read the command; otherwise it is split into words.
            python_shell: Option<bool>,
        ] [$($id)* python_shell] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; env $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Environment variables: a dict, or a list of dicts.
            #[default(Value::Null)]
            env: Value,
        ] [$($id)* env] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; clean_env $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Start from an empty environment.
            #[default(false)]
            clean_env: bool,
        ] [$($id)* clean_env] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; template $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Render command and folder with this engine first.
            template: Option<String>,
        ] [$($id)* template] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; rstrip $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Strip white space from the end of the output.
            #[default(true)]
            rstrip: bool,
        ] [$($id)* rstrip] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; umask $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The umask, in octal.
            #[default(Value::Null)]
            umask: Value,
        ] [$($id)* umask] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; output_encoding $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// How the output is encoded; UTF-8 if not given.
            output_encoding: Option<String>,
        ] [$($id)* output_encoding] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; output_loglevel $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The level the output is logged at; `quiet` for not at all.
            #[default(Some("debug".to_owned()))]
            output_loglevel: Option<String>,
        ] [$($id)* output_loglevel] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; log_callback $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Taken for the sake of callers; of use to Python only.
            #[default(Value::Null)]
            log_callback: Value,
        ] [$($id)* log_callback] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; hide_output $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Return no output.
            #[default(false)]
            hide_output: bool,
        ] [$($id)* hide_output] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; timeout $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Seconds after which the command is ended.
            #[default(Value::Null)]
            timeout: Value,
        ] [$($id)* timeout] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; reset_system_locale $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Run with the locale `C`.
            #[default(true)]
            reset_system_locale: bool,
        ] [$($id)* reset_system_locale] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; ignore_retcode $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// A failing command is no failure of the job.
            #[default(false)]
            ignore_retcode: bool,
        ] [$($id)* ignore_retcode] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; saltenv $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The environment templates and scripts come from.
            saltenv: Option<String>,
        ] [$($id)* saltenv] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; use_vt $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Taken for the sake of callers: there is no terminal.
            #[default(false)]
            use_vt: bool,
        ] [$($id)* use_vt] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; merge_stderr $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Error output goes into the output.
            #[default(true)]
            redirect_stderr: bool,
        ] [$($id)* redirect_stderr] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; redirect_stderr $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Error output goes into the output.
            #[default(false)]
            redirect_stderr: bool,
        ] [$($id)* redirect_stderr] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; bg $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Do not wait for the end.
            #[default(false)]
            bg: bool,
        ] [$($id)* bg] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; password $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The user's password; of use on Windows only.
            password: Option<String>,
        ] [$($id)* password] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; encoded_cmd $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// The command is encoded; of use on Windows only.
            #[default(false)]
            encoded_cmd: bool,
        ] [$($id)* encoded_cmd] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; raise_err $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// A failing command is an error with its output as the text.
            #[default(false)]
            raise_err: bool,
        ] [$($id)* raise_err] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; prepend_path $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Folders to put before `PATH`.
            prepend_path: Option<String>,
        ] [$($id)* prepend_path] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; success_retcodes $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Further return codes that mean success.
            #[default(Value::Null)]
            success_retcodes: Value,
        ] [$($id)* success_retcodes] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; success_stdout $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Texts in the output that mean success.
            #[default(Value::Null)]
            success_stdout: Value,
        ] [$($id)* success_stdout] ; $($rest)* }
    };
    (@args $meta:tt $name:ident $body:ident [$($acc:tt)*] [$($id:ident)*] ; success_stderr $($rest:ident)*) => {
        command! { @args $meta $name $body [$($acc)*
            /// Texts in the error output that mean success.
            #[default(Value::Null)]
            success_stderr: Value,
        ] [$($id)* success_stderr] ; $($rest)* }
    };
    ($(#[$meta:meta])* $name:ident($($arg:ident)*) => $body:ident) => {
        command! { @args [$(#[$meta])*] $name $body [] [] ; $($arg)* }
    };
}

command! {
    /// Run a command and return its output.
    ///
    /// ```console
    /// $ salt web1 cmd.run 'systemctl is-active nginx'
    /// ```
    run(cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask
        output_encoding output_loglevel log_callback hide_output timeout reset_system_locale
        ignore_retcode saltenv use_vt merge_stderr bg password encoded_cmd raise_err prepend_path
        success_retcodes success_stdout success_stderr) => output_of
}

command! {
    /// Let a shell run a command and return its output.
    ///
    /// ```console
    /// $ salt '*' cmd.shell 'ls -l | grep foo'
    /// ```
    shell(cmd cwd stdin runas group shell env clean_env template rstrip umask output_encoding
          output_loglevel log_callback hide_output timeout reset_system_locale ignore_retcode
          saltenv use_vt bg password prepend_path success_retcodes success_stdout
          success_stderr) => shell_output_of
}

command! {
    /// Run a command and return its standard output only.
    ///
    /// ```console
    /// $ salt '*' cmd.run_stdout 'ls -l'
    /// ```
    run_stdout(cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask
               output_encoding output_loglevel log_callback hide_output timeout
               reset_system_locale ignore_retcode saltenv use_vt password prepend_path
               success_retcodes success_stdout success_stderr) => stdout_of
}

command! {
    /// Run a command and return its error output only.
    ///
    /// ```console
    /// $ salt '*' cmd.run_stderr 'ls /nowhere'
    /// ```
    run_stderr(cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask
               output_encoding output_loglevel log_callback hide_output timeout
               reset_system_locale ignore_retcode saltenv use_vt password prepend_path
               success_retcodes success_stdout success_stderr) => stderr_of
}

command! {
    /// Run a command and return everything: process id, return code, both outputs.
    ///
    /// ```console
    /// $ salt '*' cmd.run_all 'ls -l'
    /// ```
    run_all(cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask
            output_encoding output_loglevel log_callback hide_output timeout reset_system_locale
            ignore_retcode saltenv use_vt redirect_stderr password encoded_cmd prepend_path
            success_retcodes success_stdout success_stderr) => all_of
}

command! {
    /// Run a command and return its return code.
    ///
    /// ```console
    /// $ salt '*' cmd.retcode 'test -e /etc/fstab'
    /// ```
    retcode(cmd cwd stdin runas group shell python_shell env clean_env template umask
            output_encoding output_loglevel log_callback timeout reset_system_locale
            ignore_retcode saltenv use_vt password success_retcodes success_stdout
            success_stderr) => retcode_of
}

command! {
    /// Start a command and return its process id without waiting.
    ///
    /// ```console
    /// $ salt web1 cmd.run_bg '/usr/local/bin/report'
    /// ```
    run_bg(cmd cwd runas group shell python_shell env clean_env template umask timeout
           output_encoding output_loglevel log_callback reset_system_locale ignore_retcode saltenv
           password prepend_path success_retcodes success_stdout success_stderr) => started
}

fn output_of(cx: &Cx, mut options: Options) -> Result<Value> {
    options.settle_shell(cx);
    let ran = execute(cx, &options)?;
    let quiet = options.output_loglevel.as_deref().is_some_and(|l| l.eq_ignore_ascii_case("quiet"));
    let shown = if options.hide_output { String::new() } else { ran.stdout.clone() };
    if !quiet {
        execute::report_output(&options, &ran);
        if options.raise_err && !options.ignore_retcode && !ran.ok() {
            return Err(Error::failed(shown));
        }
    }
    Ok(shown.into())
}

fn shell_output_of(cx: &Cx, mut options: Options) -> Result<Value> {
    options.python_shell = Some(options.python_shell.unwrap_or(true));
    options.redirect_stderr = true;
    output_of(cx, options)
}

fn stdout_of(cx: &Cx, mut options: Options) -> Result<Value> {
    options.settle_shell(cx);
    let ran = execute(cx, &options)?;
    Ok(if options.hide_output { "".into() } else { ran.stdout.into() })
}

fn stderr_of(cx: &Cx, mut options: Options) -> Result<Value> {
    options.settle_shell(cx);
    let ran = execute(cx, &options)?;
    Ok(if options.hide_output { "".into() } else { ran.stderr.into() })
}

fn all_of(cx: &Cx, mut options: Options) -> Result<Value> {
    options.settle_shell(cx);
    let mut ran = execute(cx, &options)?;
    if options.hide_output {
        ran.stdout.clear();
        ran.stderr.clear();
    }
    Ok(ran.to_value().into())
}

fn retcode_of(cx: &Cx, mut options: Options) -> Result<Value> {
    options.settle_shell(cx);
    options.redirect_stderr = true;
    Ok(execute(cx, &options)?.retcode.into())
}

fn started(cx: &Cx, mut options: Options) -> Result<Value> {
    options.settle_shell(cx);
    options.bg = true;
    options.rstrip = false;
    Ok(dict! { "pid" => execute(cx, &options)?.pid })
}

/// Names scratch files of this process apart.
static SCRATCH: AtomicU64 = AtomicU64::new(0);

/// Returns a path nobody uses, as `mkstemp` would.
pub fn scratch_path(cx: &Cx, folder: Option<&str>, suffix: &str) -> PathBuf {
    let folder = match folder {
        Some(folder) => PathBuf::from(folder),
        None => cx.host.env(OsStr::new("TMPDIR")).map_or_else(|| "/tmp".into(), PathBuf::from),
    };
    let nanos = cx.host.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = SCRATCH.fetch_add(1, Ordering::Relaxed);
    folder.join(format!("__salt.tmp.{nanos:x}{count:x}{suffix}"))
}

/// What `cmd.script` takes beside the options of every command.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub source: String,
    /// A text, or a list of words.
    pub args: Value,
    /// Names for the template.
    pub context: Dict,
}

/// Brings a script here and runs it.
pub fn run_script(cx: &Cx, script: &Script, mut options: Options) -> Result<Dict> {
    let saltenv = options.saltenv.clone().unwrap_or_else(|| cx.saltenv());
    options.settle_shell(cx);
    let plain = script.source.split('?').next().unwrap_or_default();
    let name = plain.rsplit('/').next().unwrap_or_default();
    let suffix = match name.rfind('.') {
        Some(at) if at > 0 => &name[at..],
        _ => "",
    };
    let not_there = || {
        halite_value::entries! {
            "pid" => 0, "retcode" => 1, "stdout" => "", "stderr" => "", "cache_error" => true,
        }
    };
    let Some(cached) = cx.files.cache(&script.source, &saltenv)? else { return Ok(not_there()) };
    if !cx.host.is_file(&cached)? {
        return Ok(not_there());
    }
    let mut content = cx.host.read(&cached)?;
    if let Some(engine) = options.template.take().filter(|engine| !engine.is_empty()) {
        let template = Template {
            engine,
            text: String::from_utf8_lossy(&content).into_owned(),
            source: Some(script.source.clone()),
            saltenv: saltenv.clone(),
            sls: None,
            context: template_context(cx, script, &options)?,
        };
        content = cx.runtime.render(cx, &template)?.into_bytes();
    }
    let owner = match &options.runas {
        Some(user) => cx.host.user_named(user)?.map(|user| user.uid),
        None => None,
    };
    let path = scratch_path(cx, options.cwd.as_deref(), suffix);
    let how = Write { mode: Some(0o500), uid: owner, gid: None };
    cx.host.write(&path, &content, &how)?;

    let mut words = vec![path.display().to_string()];
    match script.args.items_of_sequence() {
        Some(items) => words.extend(items.iter().map(Value::to_string)),
        None if script.args.truthy() => {
            let args = shlex::split(&script.args.to_str()).map_err(Error::invalid)?;
            words.extend(args);
        }
        None => {}
    }
    if words.len() > 1 {
        options.python_shell = Some(false);
    }
    options.cmd = Value::list(words);
    options.asked = false;
    let ran = execute(cx, &options);
    if let Err(error) = cx.host.remove_file(&path) {
        tracing::error!("the copy of the script stays behind at {}: {error}", path.display());
    }
    let mut ran = ran?;
    if options.hide_output {
        ran.stdout.clear();
        ran.stderr.clear();
    }
    Ok(ran.to_value())
}

fn template_context(cx: &Cx, script: &Script, options: &Options) -> Result<Dict> {
    let context = script.context.shallow_copy();
    if !options.pillar.is_null() || options.pillarenv.is_some() {
        let overrides = options.pillar.as_dict().cloned().unwrap_or_default();
        let env = options.pillarenv.as_deref();
        context.insert("pillar", cx.runtime.compile_pillar(cx, &overrides, env)?);
    }
    Ok(context)
}

/// The source, the arguments and the context of a script among the other arguments.
fn script_of(source: String, args: Value, rest: &Rest) -> Script {
    let context = Dict::new();
    for (name, value) in &rest.kwargs {
        if !name.to_str().starts_with("__") && name.to_str() != "context" {
            context.insert(name, value);
        }
    }
    if let Some(Value::Dict(own)) = rest.kwargs.get("context") {
        context.update(&own);
    }
    Script { source, args, context }
}

/// Bring a script from the master (or another place) and run it.
///
/// ```console
/// $ salt web1 cmd.script salt://app/report.sh
/// ```
#[function]
pub fn script(
    cx: &Cx,
    /// Where the script is: `salt://…`, a URL or a path.
    source: String,
    /// Arguments: a text, or a list of words.
    #[default(Value::Null)]
    args: Value,
    /// The folder to run in.
    cwd: Option<String>,
    /// What the script reads.
    stdin: Option<String>,
    /// The user to run as.
    runas: Option<String>,
    /// The group to run as; wants sudo.
    group: Option<String>,
    /// The shell.
    shell: Option<String>,
    /// Let the shell run the script when it has no arguments.
    python_shell: Option<bool>,
    /// Environment variables: a dict, or a list of dicts.
    #[default(Value::Null)]
    env: Value,
    /// Render the script with this engine first.
    template: Option<String>,
    /// The umask, in octal.
    #[default(Value::Null)]
    umask: Value,
    /// How the output is encoded; UTF-8 if not given.
    output_encoding: Option<String>,
    /// The level the output is logged at; `quiet` for not at all.
    #[default(Some("debug".to_owned()))]
    output_loglevel: Option<String>,
    /// Taken for the sake of callers; of use to Python only.
    #[default(Value::Null)]
    log_callback: Value,
    /// Return no output.
    #[default(false)]
    hide_output: bool,
    /// Seconds after which the script is ended.
    #[default(Value::Null)]
    timeout: Value,
    /// Run with the locale `C`.
    #[default(true)]
    reset_system_locale: bool,
    /// The environment the script comes from.
    saltenv: Option<String>,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// Do not wait for the end.
    #[default(false)]
    bg: bool,
    /// The user's password; of use on Windows only.
    password: Option<String>,
    /// Further return codes that mean success.
    #[default(Value::Null)]
    success_retcodes: Value,
    /// Texts in the output that mean success.
    #[default(Value::Null)]
    success_stdout: Value,
    /// Texts in the error output that mean success.
    #[default(Value::Null)]
    success_stderr: Value,
    /// Names for the template (`context`), and options of other functions.
    rest: Rest,
) -> Result<Value> {
    let mut options = Options {
        cwd,
        stdin,
        runas,
        group,
        shell,
        python_shell,
        env,
        template,
        umask,
        output_encoding,
        output_loglevel,
        log_callback,
        hide_output,
        timeout,
        reset_system_locale,
        saltenv,
        use_vt,
        bg,
        password,
        success_retcodes,
        success_stdout,
        success_stderr,
        ..Options::default()
    };
    options.read(&rest.kwargs)?;
    options.asked |= cx.job.fun == "cmd.script";
    run_script(cx, &script_of(source, args, &rest), options).map(Into::into)
}

/// Bring a script from the master (or another place), run it and return its return code.
///
/// ```console
/// $ salt '*' cmd.script_retcode salt://scripts/runme.sh 'arg1 arg2'
/// ```
#[function]
pub fn script_retcode(
    cx: &Cx,
    /// Where the script is: `salt://…`, a URL or a path.
    source: String,
    /// Arguments: a text, or a list of words.
    #[default(Value::Null)]
    args: Value,
    /// The folder to run in.
    cwd: Option<String>,
    /// What the script reads.
    stdin: Option<String>,
    /// The user to run as.
    runas: Option<String>,
    /// The group to run as; wants sudo.
    group: Option<String>,
    /// The shell.
    shell: Option<String>,
    /// Let the shell run the script when it has no arguments.
    python_shell: Option<bool>,
    /// Environment variables: a dict, or a list of dicts.
    #[default(Value::Null)]
    env: Value,
    /// Render the script with this engine first.
    #[default(Some("jinja".to_owned()))]
    template: Option<String>,
    /// The umask, in octal.
    #[default(Value::Null)]
    umask: Value,
    /// Seconds after which the script is ended.
    #[default(Value::Null)]
    timeout: Value,
    /// Run with the locale `C`.
    #[default(true)]
    reset_system_locale: bool,
    /// The environment templates and scripts come from.
    saltenv: Option<String>,
    /// How the output is encoded; UTF-8 if not given.
    output_encoding: Option<String>,
    /// The level the output is logged at; `quiet` for not at all.
    #[default(Some("debug".to_owned()))]
    output_loglevel: Option<String>,
    /// Taken for the sake of callers; of use to Python only.
    #[default(Value::Null)]
    log_callback: Value,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// The user's password; of use on Windows only.
    password: Option<String>,
    /// Further return codes that mean success.
    #[default(Value::Null)]
    success_retcodes: Value,
    /// Texts in the output that mean success.
    #[default(Value::Null)]
    success_stdout: Value,
    /// Texts in the error output that mean success.
    #[default(Value::Null)]
    success_stderr: Value,
    /// Other options, as `cmd.script` takes them.
    rest: Rest,
) -> Result<Value> {
    let mut options = Options {
        cwd,
        stdin,
        runas,
        group,
        shell,
        python_shell,
        env,
        template,
        umask,
        timeout,
        reset_system_locale,
        saltenv,
        output_encoding,
        output_loglevel,
        log_callback,
        use_vt,
        password,
        success_retcodes,
        success_stdout,
        success_stderr,
        ..Options::default()
    };
    options.read(&rest.kwargs)?;
    options.asked |= cx.job.fun == "cmd.script_retcode";
    let ret = run_script(cx, &script_of(source, args, &rest), options)?;
    Ok(ret.get("retcode").unwrap_or_default())
}

/// Return the path of a program on `PATH`; None if there is none.
///
/// ```console
/// $ salt web1 cmd.which nginx
/// ```
#[function]
pub fn which(
    cx: &Cx,
    /// The program.
    cmd: Value,
) -> Result<Option<String>> {
    Ok(program(cx, &cmd)?.map(|path| path.display().to_string()))
}

/// Return the path of the first of several programs that is there.
///
/// ```console
/// $ salt web1 cmd.which_bin '[nginx, apache2]'
/// ```
#[function]
pub fn which_bin(
    cx: &Cx,
    /// The programs.
    cmds: Vec<String>,
) -> Result<Option<String>> {
    let found = cmds.iter().find_map(|cmd| cx.host.which(cmd));
    Ok(found.map(|path| path.display().to_string()))
}

/// Tell whether a program is there.
///
/// ```console
/// $ salt web1 cmd.has_exec nginx
/// ```
#[function]
pub fn has_exec(
    cx: &Cx,
    /// The program.
    cmd: Value,
) -> Result<bool> {
    Ok(program(cx, &cmd)?.is_some())
}

/// Looks a program up. Templates ask for what a table has no name for: None is nowhere.
fn program(cx: &Cx, name: &Value) -> Result<Option<PathBuf>> {
    match name {
        Value::Null => Ok(None),
        Value::Str(_) | Value::Int(_) => Ok(cx.host.which(&name.to_str())),
        other => {
            Err(Error::invalid(format!("argument `cmd` must be text, not {}", other.type_name())))
        }
    }
}

/// Run a piece of code with an interpreter and return its output.
///
/// ```console
/// $ salt web1 cmd.exec_code python3 'print(6 * 7)'
/// ```
#[function]
pub fn exec_code(
    cx: &Cx,
    /// The interpreter.
    lang: String,
    /// The code.
    code: String,
    /// The folder to run in.
    cwd: Option<String>,
    /// Arguments: one, or a list.
    #[default(Value::Null)]
    args: Value,
    /// Options of `cmd.run_all`.
    rest: Rest,
) -> Result<Value> {
    Ok(run_code(cx, &lang, &code, cwd, &args, &rest)?.get("stdout").unwrap_or_default())
}

/// Run a piece of code with an interpreter and return everything, as `cmd.run_all` does.
///
/// ```console
/// $ salt web1 cmd.exec_code_all python3 'print(6 * 7)'
/// ```
#[function]
pub fn exec_code_all(
    cx: &Cx,
    /// The interpreter.
    lang: String,
    /// The code.
    code: String,
    /// The folder to run in.
    cwd: Option<String>,
    /// Arguments: one, or a list.
    #[default(Value::Null)]
    args: Value,
    /// Options of `cmd.run_all`.
    rest: Rest,
) -> Result<Dict> {
    run_code(cx, &lang, &code, cwd, &args, &rest)
}

fn run_code(
    cx: &Cx,
    lang: &str,
    code: &str,
    cwd: Option<String>,
    args: &Value,
    rest: &Rest,
) -> Result<Dict> {
    let mut options = Options { cwd, python_shell: Some(false), ..Options::default() };
    options.read(&rest.kwargs)?;
    let powershell = lang.to_lowercase().starts_with("powershell");
    let path = scratch_path(cx, None, if powershell { ".ps1" } else { "" });
    let owner = match &options.runas {
        Some(user) => cx.host.user_named(user)?.map(|user| user.uid),
        None => None,
    };
    let how = Write { mode: Some(0o600), uid: owner, gid: None };
    cx.host.write(&path, code.as_bytes(), &how)?;
    let mut words = vec![lang.to_owned()];
    if powershell {
        words.push("-File".to_owned());
    }
    words.push(path.display().to_string());
    match args {
        Value::Str(arg) => words.push(arg.to_string()),
        other => {
            words
                .extend(other.items_of_sequence().unwrap_or_default().iter().map(Value::to_string));
        }
    }
    options.cmd = Value::list(words);
    let ret = all_of(cx, options);
    if let Err(error) = cx.host.remove_file(&path) {
        tracing::error!("the file of the code stays behind at {}: {error}", path.display());
    }
    Ok(ret?.as_dict().cloned().unwrap_or_default())
}

/// Write a text to a terminal.
///
/// ```console
/// $ salt web1 cmd.tty tty1 'The shop is closed'
/// ```
#[function]
pub fn tty(
    cx: &Cx,
    /// The terminal: `tty0`, `pts3`.
    device: String,
    /// The text.
    #[default(String::new())]
    echo: String,
) -> Result<Value> {
    let path = if device.starts_with("tty") {
        format!("/dev/{device}")
    } else if device.starts_with("pts") {
        format!("/dev/{}", device.replace("pts", "pts/"))
    } else {
        return Ok(dict! { "Error" => "The specified device is not a valid TTY" });
    };
    let there = cx.host.exists(Path::new(&path))?;
    Ok(match cx.host.append(Path::new(&path), echo.as_bytes()) {
        Ok(()) if there => {
            dict! { "Success" => format!("Message was successfully echoed to {path}") }
        }
        _ => dict! { "Error" => format!("Echoing to {path} returned error") },
    })
}

/// Run a command in a chroot, with `/dev`, `/proc` and `/sys` mounted meanwhile.
///
/// ```console
/// $ salt web1 cmd.run_chroot /srv/image 'ls /etc'
/// ```
#[function]
pub fn run_chroot(
    cx: &Cx,
    /// The new root.
    root: String,
    /// The command: a text, or a list of words.
    cmd: Value,
    /// The folder to run in, outside of the chroot.
    cwd: Option<String>,
    /// What the command reads.
    stdin: Option<String>,
    /// The user to run as, inside.
    runas: Option<String>,
    /// The group to run as, inside.
    group: Option<String>,
    /// The shell outside.
    shell: Option<String>,
    /// Let the shell read the command.
    #[default(Some(true))]
    python_shell: Option<bool>,
    /// Folders to show inside, too.
    binds: Option<Vec<String>>,
    /// Environment variables: a dict, or a list of dicts.
    #[default(Value::Null)]
    env: Value,
    /// Start from an empty environment.
    #[default(false)]
    clean_env: bool,
    /// Render command and folder with this engine first.
    template: Option<String>,
    /// Strip white space from the end of the output.
    #[default(true)]
    rstrip: bool,
    /// The umask, in octal.
    #[default(Value::Null)]
    umask: Value,
    /// How the output is encoded; UTF-8 if not given.
    output_encoding: Option<String>,
    /// The level the output is logged at; `quiet` for not at all.
    #[default(Some("quiet".to_owned()))]
    output_loglevel: Option<String>,
    /// Taken for the sake of callers; of use to Python only.
    #[default(Value::Null)]
    log_callback: Value,
    /// Return no output.
    #[default(false)]
    hide_output: bool,
    /// Seconds after which the command is ended.
    #[default(Value::Null)]
    timeout: Value,
    /// Run with the locale `C`.
    #[default(true)]
    reset_system_locale: bool,
    /// A failing command is no failure of the job.
    #[default(false)]
    ignore_retcode: bool,
    /// The environment templates and scripts come from.
    saltenv: Option<String>,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// Do not wait for the end.
    #[default(false)]
    bg: bool,
    /// Further return codes that mean success.
    #[default(Value::Null)]
    success_retcodes: Value,
    /// Texts in the output that mean success.
    #[default(Value::Null)]
    success_stdout: Value,
    /// Texts in the error output that mean success.
    #[default(Value::Null)]
    success_stderr: Value,
    /// Options of other functions.
    rest: Rest,
) -> Result<Dict> {
    let mut options = Options {
        cwd,
        stdin,
        shell,
        python_shell,
        env,
        clean_env,
        template,
        rstrip,
        umask,
        output_encoding,
        output_loglevel,
        log_callback,
        hide_output,
        timeout,
        reset_system_locale,
        ignore_retcode,
        saltenv,
        use_vt,
        bg,
        success_retcodes,
        success_stdout,
        success_stderr,
        ..Options::default()
    };
    options.read(&rest.kwargs)?;
    options.cmd = cmd;
    let binds = binds.unwrap_or_default();
    chrooted(cx, &root, runas.as_deref(), group.as_deref(), &binds, options)
}

/// Runs a command in a chroot.
pub fn chrooted(
    cx: &Cx,
    root: &str,
    runas: Option<&str>,
    group: Option<&str>,
    binds: &[String],
    mut options: Options,
) -> Result<Dict> {
    let inside = |path: &str| format!("{}/{}", root.trim_end_matches('/'), path.trim_matches('/'));
    let mut mounted: Vec<String> = Vec::new();
    let mut mount = |args: &[&str], at: String| {
        let output = cx.host.run(&Command::new("mount").args(args.iter().copied()).arg(&at));
        match output {
            Ok(output) if output.ok() => mounted.push(at),
            Ok(output) => tracing::error!("cannot mount {at}: {}", output.stderr_text().trim()),
            Err(error) => tracing::error!("cannot mount {at}: {error}"),
        }
    };
    mount(&["-t", "devtmpfs", "devtmpfs"], inside("dev"));
    mount(&["-t", "proc", "proc"], inside("proc"));
    mount(&["-t", "sysfs", "sysfs"], inside("sys"));
    for bind in binds {
        mount(&["--bind", bind], inside(bind));
    }
    let bash = cx.host.is_file(Path::new(&inside("bin/bash")))?;
    let shell = if bash { "/bin/bash" } else { "/bin/sh" };
    let cmd = match options.cmd.items_of_sequence() {
        Some(words) => words.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
        None => options.cmd.to_str().to_string(),
    };
    let user = runas
        .map(|user| format!("--userspec {user}:{}", group.unwrap_or_default()))
        .unwrap_or_default();
    options.cmd = format!("chroot {user} {root} {shell} -c {}", shlex::quote(&cmd)).into();
    options.runas = None;
    options.group = None;
    let ret = all_of(cx, options);
    end_processes_in(cx, root);
    for at in mounted.iter().rev() {
        let output = cx.host.run(&Command::new("umount").arg("--").arg(at));
        if !output.is_ok_and(|output| output.ok()) {
            tracing::error!("cannot unmount {at}");
        }
    }
    Ok(ret?.as_dict().cloned().unwrap_or_default())
}

fn processes_in(cx: &Cx, root: &str) -> Vec<u32> {
    let names = cx.host.read_dir(Path::new("/proc")).unwrap_or_default();
    let pids = names.iter().filter_map(|name| name.to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let link = cx.host.read_link(&PathBuf::from(format!("/proc/{pid}/root")));
        root != "/" && link.is_ok_and(|link| link.starts_with(root))
    })
    .collect()
}

/// Ends what still runs inside, so that nothing keeps the mounts busy.
fn end_processes_in(cx: &Cx, root: &str) {
    for attempt in 0..6 {
        let pids = processes_in(cx, root);
        if pids.is_empty() {
            return;
        }
        let signal = if attempt < 3 { 15 } else { 9 };
        for pid in pids {
            if let Err(error) = cx.host.kill(pid, signal) {
                tracing::debug!("{error}");
            }
        }
        if cx.sleep(Duration::from_millis(100)).is_err() {
            return;
        }
    }
    if !processes_in(cx, root).is_empty() {
        tracing::error!("something still runs below {root} and does not end: it stays mounted");
    }
}

/// The lines of `/etc/shells`; `None` when there is no such file.
fn listed_shells(cx: &Cx) -> Option<Vec<String>> {
    let text = cx.host.read_text(Path::new("/etc/shells")).ok()?;
    let lines = text.lines().map(str::trim);
    Some(lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Into::into).collect())
}

/// Return the shells that `/etc/shells` lists.
///
/// ```console
/// $ salt web1 cmd.shells
/// ```
#[function]
pub fn shells(cx: &Cx) -> Result<Vec<String>> {
    Ok(listed_shells(cx).unwrap_or_default())
}

/// How an interpreter tells its version: the text before it, and the command.
fn version_command(shell: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match shell {
        "bash" => ("version ", &["bash", "--version"]),
        "zsh" => ("zsh ", &["zsh", "--version"]),
        "tcsh" => ("tcsh ", &["tcsh", "--version"]),
        "perl" => ("", &["perl", "-e", "printf \"%vd\\n\", $^V;"]),
        "python" => ("Python ", &["python", "-V"]),
        "ruby" => ("ruby ", &["ruby", "-v"]),
        "php" => ("PHP ", &["php", "-v"]),
        "cmd" => ("Version ", &["cmd.exe", "/C", "ver"]),
        "powershell" => ("PSVersion", &["powershell", "-NonInteractive", "$PSVersionTable"]),
        _ => return None,
    })
}

/// Return the path and the version of a shell or script language.
///
/// ```console
/// $ salt web1 cmd.shell_info /bin/sh
/// ```
#[function]
pub fn shell_info(
    cx: &Cx,
    /// `bash`, `zsh`, `tcsh`, `perl`, `python`, `ruby`, `php`.
    shell: String,
    /// Of use on Windows only.
    #[default(false)]
    list_modules: bool,
) -> Result<Value> {
    let _ = list_modules;
    let Some((before, words)) = version_command(&shell) else {
        let error = format!("Salt does not know how to get the version number for {shell}");
        return Ok(dict! { "error" => error, "installed" => Value::Null });
    };
    let (program, args) = words.split_first().expect("the table has no empty command");
    let mut command = Command::new(*program).args(args.iter().copied()).query();
    command.timeout = Some(Duration::from_secs(10));
    command.merge_stderr = true;
    let trouble = |reason: &str| {
        let error = format!("Unable to run command '{}' Reason: {reason}", words.join(" "));
        dict! { "error" => error, "installed" => false }
    };
    let output = match cx.host.run(&command) {
        Err(halite_spec::host::Error::Spawn { reason, .. }) => {
            return Ok(trouble(&format!("[Errno 2] {reason}: '{program}'")));
        }
        other => other?,
    };
    if output.timed_out {
        return Ok(trouble("Timed out."));
    }
    let text = output.stdout_text();
    let path = cx.host.which(program).map(|path| path.display().to_string());
    let Some(raw) = version_in(&text, before) else {
        let error = format!(
            "The version regex pattern for shell {shell}, could not find the version string"
        );
        return Ok(dict! {
            "installed" => Value::Null, "path" => path, "error" => error, "stdout" => text,
        });
    };
    let digits: String =
        raw.chars().take_while(|char| char.is_ascii_digit() || *char == '.').collect();
    let mut parts: Vec<&str> = digits.split('.').take(3).collect();
    if parts.len() == 1 {
        parts.push("0");
    }
    Ok(dict! {
        "installed" => true, "path" => path, "version_raw" => raw, "version" => parts.join("."),
    })
}

/// The first word with a digit in front, after a text (in any case).
fn version_in(text: &str, before: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let before = before.to_ascii_lowercase();
    let starts = lower.match_indices(&before).map(|(at, _)| at + before.len());
    starts
        .filter_map(|at| text.get(at..))
        .map(|rest| rest.trim_start_matches([' ', '\t']))
        .find(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
        .and_then(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
}

fn no_powershell(function: &str) -> Error {
    Error::Unavailable {
        function: function.to_owned(),
        reason: "there is PowerShell on Windows only".to_owned(),
    }
}

/// Run a PowerShell command; on Windows only.
///
/// ```console
/// $ salt 'windows-*' cmd.powershell '$PSVersionTable.CLRVersion'
/// ```
#[function]
pub fn powershell(
    _cx: &Cx,
    /// The command.
    cmd: Value,
    /// Options of `cmd.run`.
    rest: Rest,
) -> Result<Value> {
    let _ = (cmd, rest);
    Err(no_powershell("cmd.powershell"))
}

/// Run a PowerShell command and return everything; on Windows only.
///
/// ```console
/// $ salt 'windows-*' cmd.powershell_all '$PSVersionTable.CLRVersion'
/// ```
#[function]
pub fn powershell_all(
    _cx: &Cx,
    /// The command.
    cmd: Value,
    /// Options of `cmd.run_all`.
    rest: Rest,
) -> Result<Value> {
    let _ = (cmd, rest);
    Err(no_powershell("cmd.powershell_all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let bash = "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n";
        assert_eq!(version_in(bash, "version ").unwrap(), "5.2.15(1)-release");
        assert_eq!(version_in("Python 3.11.2\n", "Python ").unwrap(), "3.11.2");
        assert_eq!(version_in("5.36.0", "").unwrap(), "5.36.0");
        assert_eq!(version_in("nothing", "version "), None);
    }
}
