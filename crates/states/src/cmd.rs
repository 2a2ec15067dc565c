//! `cmd`: run commands and scripts.
//!
//! A command's effect cannot be seen beforehand, so these states run every time (the engine asks
//! `onlyif`, `unless` and `creates` first) and every run counts as a change; `stateful` lets the
//! command itself say, in its last line, whether it changed something. `wait` and its likes do
//! nothing until a watched state changes.

use std::path::Path;

use halite_modules::cmd as module;
use halite_spec::{
    Applied, Args, Call, Cx, Error, Outcome, Plan, Rest, Result, State, Watcher, keywords, states,
};
use halite_value::{Dict, Value, entries, json};

states! {
    /// Run commands and scripts.
    "cmd": "run" => Run,
    "wait" => Wait,
    "watch" => Wait,
    "script" => Script,
    "wait_script" => WaitScript,
    "call" => CallFunction,
    "wait_call" => WaitCall,
}

/// Run a command.
#[derive(Args)]
pub struct Run {
    /// The command.
    name: String,
    /// The folder to run in; the home of the user if not given.
    cwd: Option<String>,
    /// A folder to be the root of the command (chroot).
    root: Option<String>,
    /// The user to run as, with the environment of a login.
    runas: Option<String>,
    /// The user's password; of use on Windows only.
    #[expect(dead_code, reason = "of use on Windows only")]
    password: Option<String>,
    /// The shell; the `shell` grain if not given.
    shell: Option<String>,
    /// Environment variables: a dict, or a list of dicts.
    #[default(Value::Null)]
    env: Value,
    /// Folders to put before `PATH`.
    prepend_path: Option<String>,
    /// The command says in the last line of its output whether it changed something.
    #[default(Value::Bool(false))]
    stateful: Value,
    /// The level the output is logged at; `quiet` for not at all.
    #[default(Some("debug".to_owned()))]
    output_loglevel: Option<String>,
    /// Show no output in the changes.
    #[default(false)]
    hide_output: bool,
    /// Seconds after which the command is ended.
    #[default(Value::Null)]
    timeout: Value,
    /// A command ended by the timeout did not fail.
    #[default(false)]
    ignore_timeout: bool,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// Further return codes that mean success.
    #[default(Value::Null)]
    success_retcodes: Value,
    /// Texts in the output that mean success.
    #[default(Value::Null)]
    success_stdout: Value,
    /// Texts in the error output that mean success.
    #[default(Value::Null)]
    success_stderr: Value,
    /// Further options of `cmd.run_all`: `umask`, `clean_env`, `stdin`, `template` …
    rest: Rest,
}

/// The comment of a state whose `env` cannot be understood.
const BAD_ENV: &str = "Invalidly-formatted 'env' parameter. See documentation.";

fn check_env(env: &Value) -> Result<()> {
    match env {
        Value::Null | Value::List(_) | Value::Tuple(_) | Value::Dict(_) => Ok(()),
        _ => Err(Error::failed(BAD_ENV)),
    }
}

/// Whether the command tells what it changed; a list may name a command for `test=True`.
fn is_stateful(stateful: &Value) -> bool {
    matches!(stateful, Value::Bool(true)) || stateful.as_list().is_some_and(|list| !list.is_empty())
}

fn test_name(stateful: &Value) -> Option<String> {
    let first = stateful.as_list()?.get(0)?;
    first.get("test_name").map(|name| name.to_string())
}

fn check_cwd(cx: &Cx, cwd: Option<&str>) -> Result<()> {
    match cwd.filter(|cwd| !cwd.is_empty()) {
        Some(cwd) if !cx.host.is_dir(Path::new(cwd))? => {
            Err(Error::failed(format!("Desired working directory \"{cwd}\" is not available")))
        }
        _ => Ok(()),
    }
}

fn shell_of(cx: &Cx, shell: Option<&String>) -> Option<String> {
    let given = shell.filter(|shell| !shell.is_empty()).cloned();
    given.or_else(|| cx.grain("shell").map(|shell| shell.to_string()))
}

impl Run {
    fn options(&self, cx: &Cx, command: &str) -> Result<module::Options> {
        let mut options = module::Options::default();
        // What the engine or the guards use is not for the command.
        options.read(&self.rest.kwargs)?;
        Ok(module::Options {
            cmd: command.into(),
            cwd: self.cwd.clone(),
            runas: self.runas.clone(),
            shell: shell_of(cx, self.shell.as_ref()),
            python_shell: Some(true),
            env: self.env.clone(),
            prepend_path: self.prepend_path.clone(),
            output_loglevel: self.output_loglevel.clone(),
            hide_output: self.hide_output,
            timeout: self.timeout.clone(),
            use_vt: self.use_vt,
            success_retcodes: self.success_retcodes.clone(),
            success_stdout: self.success_stdout.clone(),
            success_stderr: self.success_stderr.clone(),
            asked: false,
            ..options
        })
    }

    /// Runs a command and tells what Salt tells of it.
    fn executed(&self, cx: &Cx, command: &str) -> Result<Outcome> {
        check_cwd(cx, self.cwd.as_deref())?;
        if command.trim().is_empty() {
            // Python's words, which Salt passes on: no command is a mistake in the tree.
            return Err(Error::failed("list index out of range"));
        }
        let options = self.options(cx, command)?;
        let changes = match self.root.as_deref().filter(|root| !root.is_empty()) {
            Some(root) => module::chrooted(cx, root, self.runas.as_deref(), None, &[], options),
            None => module::execute(cx, &options).map(|mut ran| {
                if options.hide_output {
                    ran.stdout.clear();
                    ran.stderr.clear();
                }
                ran.to_value()
            }),
        };
        let changes = changes.map_err(plainly)?;
        if self.ignore_timeout
            && changes.get("retcode") == Some(Value::Int(1))
            && changes.get("stdout").is_some_and(|text| text.to_str().contains("Timed out after"))
        {
            changes.insert("retcode", 0);
        }
        let ok = !changes.get("retcode").is_some_and(|code| code.truthy());
        let outcome = Outcome::new(Some(ok), changes, format!("Command \"{command}\" run"));
        if is_stateful(&self.stateful) { reinterpreted(outcome) } else { Ok(outcome) }
    }

    /// The answer with `test=True`.
    fn predicted(&self) -> Plan {
        if is_stateful(&self.stateful) {
            return Plan::unknown();
        }
        Plan::change("cmd", self.name.as_str())
            .pending(format!("Command \"{}\" would have been executed", self.name))
    }
}

/// Every failure of a command is a plain failure of the state: its text alone.
fn plainly(error: Error) -> Error {
    match error {
        Error::Cancelled => error,
        other => Error::Failed(other.to_string()),
    }
}

fn applied(outcome: Outcome) -> Applied {
    Applied {
        changes: Some(outcome.changes),
        comment: Some(outcome.comment),
        result: outcome.result,
        extra: outcome.extra,
    }
}

/// With `test=True`: the command named for it ran, and changes it told are changes to come.
fn rehearsed(mut outcome: Outcome, code: bool) -> Outcome {
    if code && !outcome.changes.is_empty() {
        outcome.result = None;
    }
    outcome
}

impl State for Run {
    type Seen = ();
    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        check_env(&self.env)?;
        Ok(self.predicted())
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        self.executed(cx, &self.name).map(applied)
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let Some(command) = test_name(&self.stateful) else { return Ok(None) };
        check_env(&self.env)?;
        let outcome = self.executed(cx, &command)?;
        let ok = outcome.result == Some(true);
        Ok(Some(rehearsed(outcome, ok)))
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        check_env(&self.env)?;
        if test {
            let plan = self.predicted();
            return Ok(Outcome::new(None, plan.changes, plan.pending));
        }
        self.executed(cx, &self.name)
    }
}

/// Run a command only when a watched state changes.
#[derive(Args)]
pub struct Wait {
    /// The command.
    name: String,
    /// The folder to run in; the home of the user if not given.
    cwd: Option<String>,
    /// A folder to be the root of the command (chroot).
    root: Option<String>,
    /// The user to run as, with the environment of a login.
    runas: Option<String>,
    /// The shell; the `shell` grain if not given.
    shell: Option<String>,
    /// Environment variables: a dict, or a list of dicts.
    #[default(Value::list(Vec::<Value>::new()))]
    env: Value,
    /// The command says in the last line of its output whether it changed something.
    #[default(Value::Bool(false))]
    stateful: Value,
    /// The level the output is logged at; `quiet` for not at all.
    #[default(Some("debug".to_owned()))]
    output_loglevel: Option<String>,
    /// Show no output in the changes.
    #[default(false)]
    hide_output: bool,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// Further return codes that mean success.
    #[default(Value::Null)]
    success_retcodes: Value,
    /// Texts in the output that mean success.
    #[default(Value::Null)]
    success_stdout: Value,
    /// Texts in the error output that mean success.
    #[default(Value::Null)]
    success_stderr: Value,
    /// The user's password; of use on Windows only.
    #[arg(by_name)]
    password: Option<String>,
    /// Folders to put before `PATH`.
    #[arg(by_name)]
    prepend_path: Option<String>,
    /// Seconds after which the command is ended.
    #[default(Value::Null)]
    #[arg(by_name)]
    timeout: Value,
    /// A command ended by the timeout did not fail.
    #[default(false)]
    #[arg(by_name)]
    ignore_timeout: bool,
    /// Further options of `cmd.run`: `umask`, `clean_env`, `stdin`, `template` …
    rest: Rest,
}

impl Watcher for Wait {
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let run = Run {
            name: self.name.clone(),
            cwd: self.cwd.clone(),
            root: self.root.clone(),
            runas: self.runas.clone(),
            password: self.password.clone(),
            shell: self.shell.clone(),
            env: self.env.clone(),
            prepend_path: self.prepend_path.clone(),
            stateful: self.stateful.clone(),
            output_loglevel: self.output_loglevel.clone(),
            hide_output: self.hide_output,
            timeout: self.timeout.clone(),
            ignore_timeout: self.ignore_timeout,
            use_vt: self.use_vt,
            success_retcodes: self.success_retcodes.clone(),
            success_stdout: self.success_stdout.clone(),
            success_stderr: self.success_stderr.clone(),
            rest: self.rest.clone(),
        };
        run.watch(cx, test)
    }
}

/// Bring a script from the master (or another place) and run it.
#[derive(Args)]
pub struct Script {
    /// The script, with its arguments if there is a `source`.
    name: String,
    /// Where the script is, if the name does not say so.
    source: Option<String>,
    /// Render the script with this engine first.
    template: Option<String>,
    /// The folder to run in.
    cwd: Option<String>,
    /// The user to run as, with the environment of a login.
    runas: Option<String>,
    /// The user's password; of use on Windows only.
    #[expect(dead_code, reason = "of use on Windows only")]
    password: Option<String>,
    /// The shell; the `shell` grain if not given.
    shell: Option<String>,
    /// Environment variables: a dict, or a list of dicts.
    #[default(Value::Null)]
    env: Value,
    /// The script says in the last line of its output whether it changed something.
    #[default(Value::Bool(false))]
    stateful: Value,
    /// Seconds after which the script is ended.
    #[default(Value::Null)]
    timeout: Value,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// The level the output is logged at; `quiet` for not at all.
    #[default(Some("debug".to_owned()))]
    output_loglevel: Option<String>,
    /// Show no output in the changes.
    #[default(false)]
    hide_output: bool,
    /// Names for the template that `context` may replace.
    #[default(Value::Null)]
    defaults: Value,
    /// Names for the template.
    #[default(Value::Null)]
    context: Value,
    /// Arguments: a text, or a list of words.
    #[default(Value::Null)]
    #[arg(by_name)]
    args: Value,
    /// Further return codes that mean success.
    #[default(Value::Null)]
    success_retcodes: Value,
    /// Texts in the output that mean success.
    #[default(Value::Null)]
    success_stdout: Value,
    /// Texts in the error output that mean success.
    #[default(Value::Null)]
    success_stderr: Value,
    /// Further options of `cmd.script`: `umask`, `stdin`, `group` …
    rest: Rest,
}

impl Script {
    fn check(&self) -> Result<()> {
        check_env(&self.env)?;
        for (name, value) in [("context", &self.context), ("defaults", &self.defaults)] {
            if value.truthy() && value.as_dict().is_none() {
                return Err(Error::failed(format!(
                    "Invalidly-formatted '{name}' parameter. Must be formed as a dict."
                )));
            }
        }
        Ok(())
    }

    fn executed(&self, cx: &Cx, name: &str) -> Result<Outcome> {
        check_cwd(cx, self.cwd.as_deref())?;
        let mut options = module::Options::default();
        options.read(&self.rest.kwargs)?;
        let saltenv = cx.saltenv();
        let options = module::Options {
            cwd: self.cwd.clone(),
            runas: self.runas.clone(),
            shell: shell_of(cx, self.shell.as_ref()),
            python_shell: Some(true),
            env: self.env.clone(),
            template: self.template.clone(),
            timeout: self.timeout.clone(),
            output_loglevel: self.output_loglevel.clone(),
            hide_output: self.hide_output,
            use_vt: self.use_vt,
            saltenv: Some(saltenv.clone()),
            success_retcodes: self.success_retcodes.clone(),
            success_stdout: self.success_stdout.clone(),
            success_stderr: self.success_stderr.clone(),
            asked: false,
            ..options
        };
        let context = keywords::strays(&self.rest.kwargs, &[]);
        for names in [&self.defaults, &self.context] {
            if let Value::Dict(names) = names {
                context.update(names);
            }
        }
        let source = self.source.clone().unwrap_or_else(|| name.to_owned());
        let args = match name.split_once(' ') {
            Some((_, args)) if !self.args.truthy() && !args.trim().is_empty() => args.into(),
            _ => self.args.clone(),
        };
        let script = module::Script { source: source.clone(), args, context };
        let changes = module::run_script(cx, &script, options).map_err(plainly)?;
        let ok = !changes.get("retcode").is_some_and(|code| code.truthy());
        let comment = if changes.get("cache_error").is_some_and(|error| error.truthy()) {
            format!("Unable to cache script {source} from saltenv '{saltenv}'")
        } else {
            format!("Command '{name}' run")
        };
        let outcome = Outcome::new(Some(ok), changes, comment);
        if is_stateful(&self.stateful) { reinterpreted(outcome) } else { Ok(outcome) }
    }

    fn predicted(&self) -> Plan {
        if is_stateful(&self.stateful) {
            return Plan::unknown();
        }
        Plan::unknown().pending(format!("Command '{}' would have been executed", self.name))
    }
}

impl State for Script {
    type Seen = ();
    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        self.check()?;
        Ok(self.predicted())
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        self.executed(cx, &self.name).map(applied)
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let Some(command) = test_name(&self.stateful) else { return Ok(None) };
        self.check()?;
        let outcome = self.executed(cx, &command)?;
        let ok = outcome.result == Some(true);
        Ok(Some(rehearsed(outcome, ok)))
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        self.check()?;
        if test {
            let plan = self.predicted();
            return Ok(Outcome::new(None, plan.changes, plan.pending));
        }
        self.executed(cx, &self.name)
    }
}

/// Run a script only when a watched state changes.
#[derive(Args)]
pub struct WaitScript {
    /// The script, with its arguments if there is a `source`.
    name: String,
    /// Where the script is, if the name does not say so.
    source: Option<String>,
    /// Render the script with this engine first.
    template: Option<String>,
    /// The folder to run in.
    cwd: Option<String>,
    /// The user to run as, with the environment of a login.
    runas: Option<String>,
    /// The shell; the `shell` grain if not given.
    shell: Option<String>,
    /// Environment variables: a dict, or a list of dicts.
    #[default(Value::Null)]
    env: Value,
    /// The script says in the last line of its output whether it changed something.
    #[default(Value::Bool(false))]
    stateful: Value,
    /// Taken for the sake of callers: there is no terminal.
    #[default(false)]
    use_vt: bool,
    /// The level the output is logged at; `quiet` for not at all.
    #[default(Some("debug".to_owned()))]
    output_loglevel: Option<String>,
    /// Show no output in the changes.
    #[default(false)]
    hide_output: bool,
    /// Further return codes that mean success.
    #[default(Value::Null)]
    success_retcodes: Value,
    /// Texts in the output that mean success.
    #[default(Value::Null)]
    success_stdout: Value,
    /// Texts in the error output that mean success.
    #[default(Value::Null)]
    success_stderr: Value,
    /// The user's password; of use on Windows only.
    #[arg(by_name)]
    password: Option<String>,
    /// Seconds after which the script is ended.
    #[default(Value::Null)]
    #[arg(by_name)]
    timeout: Value,
    /// Names for the template that `context` may replace.
    #[default(Value::Null)]
    #[arg(by_name)]
    defaults: Value,
    /// Names for the template.
    #[default(Value::Null)]
    #[arg(by_name)]
    context: Value,
    /// Arguments: a text, or a list of words.
    #[default(Value::Null)]
    #[arg(by_name)]
    args: Value,
    /// Further options of `cmd.script`: `umask`, `stdin`, `group` …
    rest: Rest,
}

impl Watcher for WaitScript {
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let script = Script {
            name: self.name.clone(),
            source: self.source.clone(),
            template: self.template.clone(),
            cwd: self.cwd.clone(),
            runas: self.runas.clone(),
            password: self.password.clone(),
            shell: self.shell.clone(),
            env: self.env.clone(),
            stateful: self.stateful.clone(),
            timeout: self.timeout.clone(),
            use_vt: self.use_vt,
            output_loglevel: self.output_loglevel.clone(),
            hide_output: self.hide_output,
            defaults: self.defaults.clone(),
            context: self.context.clone(),
            args: self.args.clone(),
            success_retcodes: self.success_retcodes.clone(),
            success_stdout: self.success_stdout.clone(),
            success_stderr: self.success_stderr.clone(),
            rest: self.rest.clone(),
        };
        script.watch(cx, test)
    }
}

/// Call a function and take what it returns as the state's result.
// differs: Salt takes a Python function, which only its `pydsl` can hand over; we take the name of
// an execution function.
#[derive(Args)]
pub struct CallFunction {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// The name of an execution function.
    func: String,
    /// Its arguments.
    #[default(Vec::new())]
    args: Vec<Value>,
    /// Its arguments by name.
    kws: Option<Dict>,
    /// Taken for the sake of callers: a function has no output.
    #[default(Some("debug".to_owned()))]
    #[expect(dead_code, reason = "a function has no output")]
    output_loglevel: Option<String>,
    /// Taken for the sake of callers: a function has no output.
    #[default(false)]
    #[expect(dead_code, reason = "a function has no output")]
    hide_output: bool,
    /// Taken for the sake of callers: a function needs no terminal.
    #[default(false)]
    #[expect(dead_code, reason = "a function needs no terminal")]
    use_vt: bool,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

/// Calls a function; a dict it returns is the result, anything else a change.
fn called(cx: &Cx, func: &str, args: &[Value], kws: Option<&Dict>) -> Result<Outcome> {
    let kwargs = kws.map(Dict::shallow_copy).unwrap_or_default();
    let call = Call { args: args.to_vec(), kwargs };
    Ok(match cx.call(func, call)? {
        Value::Dict(ret) => {
            let result = match ret.get("result") {
                Some(Value::Null) => None,
                result => Some(result.is_some_and(|result| result.truthy())),
            };
            let changes = ret.get("changes").and_then(|changes| changes.as_dict().cloned());
            let comment = ret.get("comment").map(|text| text.to_string()).unwrap_or_default();
            Outcome::new(result, changes.unwrap_or_default(), comment)
        }
        value => {
            let comment = value.as_str().unwrap_or_default().to_owned();
            let result = value.is_null() || value.truthy();
            Outcome::new(Some(result), entries! { "retval" => value }, comment)
        }
    })
}

fn would_call(func: &str) -> String {
    format!("Function {func} would have been called")
}

impl State for CallFunction {
    type Seen = ();
    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        // differs: Salt calls the function with `test=True`, too.
        Ok(Plan::unknown().pending(would_call(&self.func)))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        called(cx, &self.func, &self.args, self.kws.as_ref()).map(applied)
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        if test {
            return Ok(Outcome::new(None, Dict::new(), would_call(&self.func)));
        }
        called(cx, &self.func, &self.args, self.kws.as_ref())
    }
}

/// Call a function only when a watched state changes.
#[derive(Args)]
pub struct WaitCall {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// The name of an execution function.
    func: String,
    /// Its arguments.
    #[default(Vec::new())]
    args: Vec<Value>,
    /// Its arguments by name.
    kws: Option<Dict>,
    /// Taken for the sake of callers: what a function returns is always read.
    #[default(Value::Bool(false))]
    #[expect(dead_code, reason = "what a function returns is always read")]
    stateful: Value,
    /// Taken for the sake of callers: a function needs no terminal.
    #[default(false)]
    #[expect(dead_code, reason = "a function needs no terminal")]
    use_vt: bool,
    /// Taken for the sake of callers: a function has no output.
    #[default(Some("debug".to_owned()))]
    #[expect(dead_code, reason = "a function has no output")]
    output_loglevel: Option<String>,
    /// Taken for the sake of callers: a function has no output.
    #[default(false)]
    #[expect(dead_code, reason = "a function has no output")]
    hide_output: bool,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

impl Watcher for WaitCall {
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        if test {
            return Ok(Outcome::new(None, Dict::new(), would_call(&self.func)));
        }
        called(cx, &self.func, &self.args, self.kws.as_ref())
    }
}

/// What a stateful command says of itself.
struct Report {
    data: Dict,
    rest: Remainder,
}

/// How much of the output is not the report.
enum Remainder {
    Nothing,
    /// All before the last line.
    Until(usize),
    /// All but the last character: what genuine Salt leaves of a single line.
    AllButOne,
}

impl Report {
    /// Reads JSON, or `changed=yes comment='…'` in the last line. The error is the comment, with
    /// whether the output is to be shown beside it.
    fn read(out: &str) -> std::result::Result<Self, (&'static str, bool)> {
        match json::from_str(out) {
            Ok(Value::Dict(data)) => return Ok(Self { data, rest: Remainder::Nothing }),
            Ok(_) => return Err(("script JSON output must be a JSON object (e.g., {})!", false)),
            Err(_) => {}
        }
        let (last, rest) = match module::right_stripped(out).rfind('\n') {
            Some(at) => (&out[at + 1..], Remainder::Until(at)),
            None => (out, Remainder::AllButOne),
        };
        let comment = "Failed parsing script output! Stdout must be JSON or a line of name=value \
                       pairs.";
        pairs_of(last).map(|data| Self { data, rest }).ok_or((comment, true))
    }
}

impl Remainder {
    fn of(&self, stdout: &str) -> String {
        let end = match *self {
            Self::Nothing => 0,
            Self::Until(at) if stdout.is_char_boundary(at) => at,
            Self::Until(_) => stdout.len(),
            Self::AllButOne => stdout.char_indices().next_back().map_or(0, |(at, _)| at),
        };
        stdout[..end].to_owned()
    }
}

/// Makes a result of what a stateful command says.
fn reinterpreted(outcome: Outcome) -> Result<Outcome> {
    let Outcome { changes: ran, result, .. } = outcome;
    let text = |from: &Dict, key: &str| from.get(key).unwrap_or_else(|| "".into()).to_string();
    let unchanged = |result, comment: &str| Ok(Outcome::new(result, Dict::new(), comment));
    let out = text(&ran, "stdout");
    if out.is_empty() {
        return unchanged(result, &text(&ran, "stderr"));
    }
    let Report { data, rest } = match Report::read(&out) {
        Ok(report) => report,
        Err((comment, true)) => return Ok(Outcome::new(Some(false), ran, comment)),
        Err((comment, false)) => return unchanged(Some(false), comment),
    };
    let changed = truth_of(&data.get("changed").unwrap_or_else(|| "no".into()))?;
    let comment = data.remove("comment").unwrap_or_else(|| "".into()).to_string();
    if !changed {
        return unchanged(result, &comment);
    }
    for (key, value) in &ran {
        data.get_or_insert_with(key, || value);
    }
    let stdout = text(&data, "stdout");
    data.insert("stdout", rest.of(&stdout));
    Ok(Outcome::new(result, data, comment))
}

fn pairs_of(line: &str) -> Option<Dict> {
    let data = Dict::new();
    for word in module::shlex::split(line).ok()? {
        let (key, value) = word.split_once('=').filter(|(_, value)| !value.contains('='))?;
        data.insert(key, value);
    }
    Some(data)
}

fn truth_of(value: &Value) -> Result<bool> {
    match value.to_str().to_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(Error::raised("ValueError", format!("Failed parsing boolean value: {value}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdout: &str, result: bool, comment: &str, changes: &[(&str, &str)]) {
        let ran = entries! { "pid" => 1, "retcode" => 0, "stdout" => stdout, "stderr" => "" };
        let outcome = reinterpreted(Outcome::new(Some(true), ran, "")).unwrap();
        assert_eq!(outcome.result, Some(result), "{stdout}");
        assert_eq!(outcome.comment, comment, "{stdout}");
        for (key, value) in changes {
            assert_eq!(outcome.changes.get(*key), Some(Value::from(*value)), "{stdout}: {key}");
        }
        assert_eq!(outcome.changes.is_empty(), changes.is_empty(), "{stdout}");
    }

    #[test]
    fn stateful() {
        check("", true, "", &[]);
        check("changed=no comment='as it was'", true, "as it was", &[]);
        check(
            "working\n\nchanged=yes comment='done' a=1",
            true,
            "done",
            &[("a", "1"), ("changed", "yes"), ("stdout", "working\n")],
        );
        check("changed=yes", true, "", &[("stdout", "changed=ye")]);
        check(r#"{"changed": "yes", "comment": "j", "x": "y"}"#, true, "j", &[("stdout", "")]);
        check("[1]", false, "script JSON output must be a JSON object (e.g., {})!", &[]);
        check(
            "no pairs",
            false,
            "Failed parsing script output! Stdout must be JSON or a line of name=value pairs.",
            &[("stdout", "no pairs")],
        );
    }
}
