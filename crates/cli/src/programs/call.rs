//! `salt-call`: run a function on this machine.

use std::sync::Arc;

use halite_config::Machine as _;
use halite_host::Os;
use halite_minion::{
    Alone, Caller, Masterless, Pipes,
    caller::{Outcome, Setup},
    daemon::call::{self, CallError, Connected},
    proxy::NoDevice,
    registry,
};
use halite_spec::{By, Call, Error, Host, Job};
use halite_value::{Dict, Value, dict, entries, suggest};

use crate::{
    args::{Args, yamlify},
    daemon,
    diagnostics::Report,
    display,
    machine::Real,
    optparse::{Action, Default, Flag, Group, Program, flag},
    programs::{Context, Early, check_no_parse, check_output, shared},
    terminal,
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/minion'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static OWN: &[Flag] = &[
    flag(&["-g", "--grains"], "grains_run", Action::True, "Print the grains."),
    flag(
        &["-m", "--module-dirs"],
        "module_dirs",
        Action::Append,
        "A further folder with modules. May be given several times.",
    )
    .dflt(Default::EmptyList),
    flag(
        &["-d", "--doc", "--documentation"],
        "doc",
        Action::True,
        "Print the documentation of a function or module, or of all.",
    ),
    flag(
        &["--master"],
        "master",
        Action::Str,
        "Master to use, which must have accepted this minion's key; otherwise the one in the minion's configuration, or the first of several that answers.",
    )
    .dflt(Default::Str("")),
    flag(&["--return"], "return", Action::Str, "Returners the result is also sent to.")
        .dflt(Default::Str(""))
        .meta("RETURNER"),
    flag(&["--local"], "local", Action::True, "Work without a master."),
    flag(&["--file-root"], "file_root", Action::Append, "Folder to take the files of 'base' from."),
    flag(&["--pillar-root"], "pillar_root", Action::Append, "Folder to take the pillar of 'base' from."),
    flag(&["--states-dir"], "states_dir", Action::Append, "A further folder with state modules."),
    flag(
        &["--retcode-passthrough"],
        "retcode_passthrough",
        Action::True,
        "End with the exit code of the function.",
    ),
    flag(
        &["--metadata"],
        "print_metadata",
        Action::True,
        "Print what else is known about the call besides its result: outputter, exit code and so on.",
    ),
    flag(&["--set-metadata"], "metadata", Action::Str, "Data to store with the job, to find it by later.")
        .meta("METADATA"),
    flag(&["--id"], "id", Action::Str, "Minion id to use instead of the configured one.")
        .dflt(Default::Str("")),
    flag(&["--skip-grains"], "skip_grains", Action::True, "Do without grains."),
    flag(&["--refresh-grains-cache"], "refresh_grains_cache", Action::True, "Collect the grains anew."),
    flag(&["--no-return-event"], "no_return_event", Action::True, "Do not send the result to the master."),
    flag(
        &["-t", "--timeout"],
        "auth_timeout",
        Action::Int,
        "Seconds to wait for the master. Default: %default.",
    )
    .dflt(Default::Int(60)),
    flag(&["--output-diff"], "state_output_diff", Action::True, "Print only states with changes."),
    flag(&["--priv"], "user", Action::Str, "User to run as."),
    flag(
        &["-r", "--resources"],
        "resources_dispatch",
        Action::True,
        "Run on the managed resources too. --tgt and --tgt-type choose among them.",
    ),
    flag(
        &["--tgt"],
        "resources_tgt",
        Action::Str,
        "Which resources to run on, with -r. '*' is this minion and all of them.",
    )
    .dflt(Default::Str("*"))
    .meta("TGT"),
    flag(
        &["--tgt-type"],
        "resources_tgt_type",
        Action::Choice(&["glob", "list", "compound", "grain", "grain_pcre", "pcre"]),
        "How --tgt is read: glob, list, compound, grain, grain_pcre or pcre.",
    )
    .dflt(Default::Str("glob"))
    .meta("TYPE"),
];

static CACHEDIR: &[Flag] = &[flag(&["--cachedir"], "cachedir", Action::Str, "Cache folder.")
    .dflt(Default::Str("/var/cache/salt/"))];

pub static PROGRAM: Program = Program {
    name: "salt-call",
    usage: "[options] <function> [arguments]",
    about: Some("Runs a function on this machine, as its minion would."),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        shared::PROXYID,
        shared::EXECUTORS,
        CACHEDIR,
        shared::ARGS_STDIN,
        shared::HARD_CRASH,
        shared::NO_PARSE,
        OWN,
    ],
    groups: &[shared::OUTPUT_GROUP, shared::PROFILING_GROUP, LOGGING],
};

/// Looks at the arguments, and applies the options that replace parts of the configuration.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    check_no_parse(cx);
    let grains = cx.parsed.bool("grains_run");
    let doc = cx.parsed.bool("doc");
    match cx.parsed.args.as_slice() {
        [] if !grains && !doc => {
            return Err(Early::HelpThen("Requires function, --grains or --doc".into()));
        }
        [] => {}
        [_, ..] if grains => {
            return Err(Early::Usage("-g/--grains does not accept any arguments".into()));
        }
        [_, _, ..] if doc => {
            let message = "You can only get documentation for one method at one time";
            return Err(Early::Usage(message.into()));
        }
        [function, ..] => cx.opts.set("fun", function.as_str()),
    }
    add_module_dirs(cx);
    replace_roots(cx);
    move_cachedir(cx);
    for name in ["module_executors", "executor_opts"] {
        if let Some(text) = cx.parsed.str(name).filter(|text| !text.is_empty()) {
            cx.parsed.set(name, yamlify(&text));
        }
    }
    if cx.parsed.bool("local") {
        cx.opts.set("file_client", "local");
    }
    if !cx.parsed.bool("master") {
        // An empty preset must not replace the configured master.
        cx.parsed.adopt("master", Value::Null);
    }
    if !cx.parsed.bool("id") {
        cx.parsed.adopt("id", Value::Null);
    }
    Ok(())
}

/// Applies `--cachedir`: the folder of custom modules goes with it, unless it has a place of its own.
fn move_cachedir(cx: &mut Context) {
    let generated = format!("{}/extmods", cx.opts.str("__cachedir"));
    if !cx.parsed.is_explicit("cachedir") || cx.opts.str("extension_modules") != generated {
        return;
    }
    let here = Real.current_dir();
    let folder = halite_config::abspath(&cx.parsed.str("cachedir").unwrap_or_default(), &here);
    cx.opts.set("extension_modules", format!("{folder}/extmods"));
    cx.opts.set("cachedir", folder);
    halite_config::prepend_root_dir(&cx.opts, &["cachedir", "extension_modules"], &here);
    let folder = cx.opts.get("cachedir").unwrap_or_default();
    cx.parsed.set("cachedir", folder);
}

/// Adds `-m` folders to the configured ones; the option is then what is configured.
fn add_module_dirs(cx: &mut Context) {
    let here = Real.current_dir();
    let given = cx.parsed.get("module_dirs").items_of_sequence().unwrap_or_default();
    let given = given.iter().map(Value::to_str).collect::<Vec<_>>().join(",");
    let given = given.split(',').filter(|dir| !dir.is_empty());
    let given = given.map(|dir| Value::from(halite_config::abspath(dir, &here)));
    let all = Value::list(cx.opts.list("module_dirs").into_iter().chain(given));
    cx.parsed.set("module_dirs", all);
}

/// Applies `--file-root`, `--pillar-root` and `--states-dir`.
fn replace_roots(cx: &mut Context) {
    let here = Real.current_dir();
    let mut ignored = Vec::new();
    for (dest, option, flag) in [
        ("file_root", "file_roots", "--file-root"),
        ("pillar_root", "pillar_roots", "--pillar-root"),
        ("states_dir", "states_dirs", "--states-dir"),
    ] {
        let given = cx.parsed.get(dest).items_of_sequence().unwrap_or_default();
        if given.is_empty() {
            continue;
        }
        ignored.push(flag);
        let dirs = given.iter().map(|dir| halite_config::abspath(&dir.to_str(), &here));
        if option == "states_dirs" {
            cx.opts.set(option, Value::list(dirs));
            continue;
        }
        let dirs = dirs.flat_map(|dir| match dir.contains(['*', '?', '[']) {
            true => Real.glob(&dir),
            false => vec![dir],
        });
        cx.opts.set(option, dict! { "base" => Value::list(dirs) });
    }
    if !cx.parsed.bool("local") && !ignored.is_empty() {
        let are = if ignored.len() == 1 { "is" } else { "are" };
        terminal::err(&format!(
            "Warning: {} {are} ignored because --local was not specified; the remote file client retrieves these from the master. Re-run with --local to use the local override.\n",
            ignored.join(", ")
        ));
    }
}

/// Returns the arguments of the function.
#[must_use]
pub fn arguments(cx: &Context) -> Args {
    Args::of_call(cx.parsed.args.get(1..).unwrap_or_default(), &cx.opts.str_list("no_parse"))
}

/// Runs the function and prints its result.
pub fn run(cx: &mut Context) -> u8 {
    if let Err(no) = daemon::drop_rights(cx) {
        return cx.report(&Report::error(no.text).exit(no.code));
    }
    let host: Arc<dyn Host> = Arc::new(Os::new());
    let opts = cx.opts.values().clone();
    opts.insert("__cli", "salt-call");
    let has_master = opts.get("file_client") != Some("local".into())
        && opts.get("master_type") != Some("disable".into());
    let master = match has_master.then(|| Connected::new(&host, &opts)).transpose() {
        Ok(master) => master,
        Err(error @ CallError::NotAccepted) => {
            terminal::out(&format!("{error}\n"));
            return error.exit_code();
        }
        Err(error) => return cx.report(&Report::error(error.to_string()).exit(error.exit_code())),
    };
    let caller = match caller(host, opts, master.as_ref()) {
        Ok(caller) => caller,
        Err(error) => return failed(cx, "", &error),
    };
    if let Err(code) = begin_device(cx, &caller) {
        return code;
    }
    if cx.parsed.bool("grains_run") {
        let ret = dict! { "local" => &caller.cx.grains };
        return shown(cx, &ret, "grains.items", 0);
    }
    if cx.parsed.bool("doc") {
        return documentation(cx, &caller);
    }
    let function = cx.parsed.args.first().cloned().unwrap_or_default();
    let Args { args, kwargs } = arguments(cx);
    let call = Call { args, kwargs };
    if let Some(told) = misfit(&caller, &function, &call) {
        return told;
    }
    if let Some(refused) = unknown_keywords(&caller, &function, &call) {
        terminal::err(&format!("{refused}\n"));
        return 1;
    }
    let outcome = caller.call(&function, with_publication(&caller, &function, &call));
    if let Ok(outcome) = &outcome {
        let typed = cx.parsed.args.get(1..).unwrap_or_default();
        if let Some(shown) = caller.return_to(&function, typed, outcome) {
            terminal::out(&format!("{shown}\n"));
        }
    }
    if let Some(master) = master.filter(|_| !cx.parsed.bool("no_return_event")) {
        report(cx, &master, &function, call, &outcome);
    }
    match outcome {
        Ok(outcome) => {
            let retcode = outcome.retcode;
            let code = if cx.parsed.bool("print_metadata") {
                let ret = with_metadata(cx, &caller, &function, outcome);
                shown(cx, &dict! { "local" => ret }, "", retcode)
            } else {
                let ret = dict! { "local" => outcome.ret };
                shown_as(cx, &ret, &function, outcome.out.as_deref(), retcode)
            };
            if code != 0 {
                return code;
            }
            match retcode {
                0 => 0,
                code if cx.parsed.bool("retcode_passthrough") => {
                    u8::try_from(code & 255).unwrap_or(1)
                }
                _ => 1,
            }
        }
        Err(error) => {
            let doc = || {
                if let Some(native) = caller.cx.runtime.function(&caller.cx, &function) {
                    return Some(indented(&native.help("salt '*'", &function)).into());
                }
                let about = caller.cx.runtime.described("modules", std::slice::from_ref(&function));
                about.get(function.as_str()).and_then(|about| about.get_str("raw_doc"))
            };
            if let Error::Raised { class, message, .. } = &error
                && (class == "TypeError" || class == "SaltInvocationError")
            {
                return misused(message, &doc().unwrap_or_else(|| "None".into()));
            }
            // Salt takes what a function itself refuses for a call that does not fit, too.
            if let Error::Invalid(message) = &error {
                if message.starts_with("The following keyword arguments are not valid") {
                    terminal::err(&format!("{message}\n"));
                    return 1;
                }
                return misused(message, &doc().unwrap_or_else(|| "None".into()));
            }
            let is_missing = error.is_missing() && !caller.cx.runtime.has(&caller.cx, &function);
            let instead =
                is_missing.then(|| halite_minion::failure::instead_of(&caller.cx, &function));
            if let Some(docs) = instead.flatten() {
                let code = shown(cx, &dict! { "local" => docs }, "sys.doc", 1);
                return if code == 0 { 1 } else { code };
            }
            failed(cx, &function, &error)
        }
    }
}

/// Connects with the device of a proxy minion (`--proxyid`), or returns the exit code.
fn begin_device(cx: &Context, caller: &Caller) -> Result<(), u8> {
    if !caller.cx.is_proxy() {
        return Ok(());
    }
    let text = match halite_minion::proxy::begin(&caller.cx, &[], &*caller.rendering) {
        Ok(_) => return Ok(()),
        Err(NoDevice::NoKey(id)) => format!(
            "No \"proxy\" configuration key found in pillar or opts dictionaries for id {id}. Check \
             your pillar/options configuration and contents. Salt-proxy aborted."
        ),
        Err(error) => error.to_string(),
    };
    Err(cx.report(&Report::error(text).exit(1)))
}

/// Returns what is known about a call besides its result (`--metadata`).
fn with_metadata(cx: &Context, caller: &Caller, function: &str, outcome: Outcome) -> Dict {
    let ret = entries! {
        "jid" => &caller.cx.job.jid, "return" => outcome.ret, "retcode" => outcome.retcode,
    };
    if let Some(out) = outcome.out {
        ret.insert("out", out);
    }
    ret.insert("id", caller.cx.id());
    ret.insert("fun", function);
    // As they were typed.
    ret.insert("fun_args", Value::list(cx.parsed.args.get(1..).unwrap_or_default()));
    if let Some(metadata) = cx.opts.get("metadata").filter(Value::truthy) {
        ret.insert("metadata", metadata);
    }
    ret
}

/// Says what does not fit about a call of a native function, and returns the exit code.
fn misfit(caller: &Caller, function: &str, call: &Call) -> Option<u8> {
    let native = caller.cx.runtime.function(&caller.cx, function)?;
    let unknown = halite_minion::failure::unknown_keywords(native, call);
    if !unknown.is_empty() {
        // Told by the call itself.
        return None;
    }
    let why = halite_minion::failure::misfit(native, call)?;
    Some(misused(&why, &indented(&native.help("salt '*'", function))))
}

/// Says that a function was called wrongly: the reason is an error, its manual is a result.
fn misused(why: &str, doc: &str) -> u8 {
    terminal::err(&format!("\nPassed invalid arguments: {why}.\n\nUsage:\n"));
    terminal::out(&format!("{doc}\n"));
    1
}

fn indented(help: &str) -> String {
    let lines = help.lines().map(|line| format!("    {line}").trim_end().to_owned());
    format!("\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// Refuses keywords that a function does not take, before anything else can be wrong with the call.
fn unknown_keywords(caller: &Caller, function: &str, call: &Call) -> Option<String> {
    let runtime = &caller.cx.runtime;
    if call.kwargs.is_empty() {
        return None;
    }
    let (unknown, known) = match runtime.function(&caller.cx, function) {
        Some(native) => {
            let known = native.params.iter().map(|param| param.name).collect();
            (halite_minion::failure::unknown_keywords(native, call), known)
        }
        None if runtime.has(&caller.cx, function) => {
            let about = runtime.described("modules", &[function.to_owned()]).get(function)?;
            (halite_minion::failure::unknown_to_users(&about, call), Vec::new())
        }
        None => return None,
    };
    let first = unknown.first()?.split('=').next().unwrap_or_default();
    let hint = suggest::nearest(first, known).map(|word| format!("; did you mean `{word}`?"));
    let refused = halite_minion::failure::refused_keywords(&unknown);
    Some(format!("{refused}{}", hint.unwrap_or_default()))
}

/// Tells a function that takes any keyword how it was called, as Salt does.
fn with_publication(caller: &Caller, function: &str, call: &Call) -> Call {
    let runtime = &caller.cx.runtime;
    let users_takes_any = || {
        let about = runtime.described("modules", &[function.to_owned()]).get(function)?;
        about.get("spec")?.get("kwargs").filter(Value::truthy)
    };
    let takes_any = match runtime.function(&caller.cx, function) {
        Some(native) => {
            native.params.iter().any(|param| param.by == By::Name || param.takes_names())
        }
        None => runtime.has(&caller.cx, function) && users_takes_any().is_some(),
    };
    // Set by the `Caller` of our Python package.
    if !takes_any || terminal::env("HALITE_UNPUBLISHED").is_some() {
        return call.clone();
    }
    let kwargs = call.kwargs.shallow_copy();
    kwargs.insert("__pub_fun", function);
    kwargs.insert("__pub_pid", std::process::id());
    kwargs.insert("__pub_jid", &caller.cx.job.jid);
    kwargs.insert("__pub_tgt", "salt-call");
    Call { args: call.args.clone(), kwargs }
}

/// Builds the minion that answers: this machine, alone or with a master.
fn caller(host: Arc<dyn Host>, opts: Dict, master: Option<&Connected>) -> Result<Caller, Error> {
    let jid = halite_wire::Jid::now();
    let user = opts.get("user").unwrap_or_default().to_str();
    let fun = opts.get("fun").unwrap_or_default().to_str();
    let pipes = Arc::new(Pipes::new(&opts));
    let job = Job::new(jid.as_str(), fun, user);
    let setup = match master {
        Some(master) => Setup {
            files: Arc::clone(&master.files),
            sources: Arc::clone(&master.sources),
            rendering: pipes,
            link: Arc::clone(&master.link),
            job,
            host,
            opts,
        },
        None => Setup {
            files: Arc::new(halite_fileserver::Local::new(Arc::clone(&host), &opts)),
            sources: Arc::new(Masterless::new(Arc::clone(&pipes))),
            rendering: pipes,
            link: Arc::new(Alone::new(Arc::clone(&host), &opts)),
            job,
            host,
            opts,
        },
    };
    Caller::new(setup)
}

/// Tells the master what came out; that it cannot be told is no reason to fail.
fn report(
    cx: &Context,
    master: &Connected,
    function: &str,
    call: Call,
    outcome: &Result<Outcome, Error>,
) {
    let (ret, retcode, out) = match outcome {
        Ok(outcome) => (outcome.ret.clone(), outcome.retcode, outcome.out.clone()),
        Err(error) => {
            let text = halite_minion::failure::text(function, registry::function(function), error);
            (text.into(), 1, None)
        }
    };
    let done = call::Report {
        fun: function.into(),
        call,
        ret,
        retcode,
        out,
        user: cx.opts.str("user"),
        metadata: Some(cx.opts.get("metadata").unwrap_or_default()).filter(Value::truthy),
    };
    if let Err(error) = master.report(&done) {
        tracing::error!("Could not send the return to the master: {error}");
    }
}

fn shown(cx: &Context, ret: &Value, fun: &str, retcode: i64) -> u8 {
    shown_as(cx, ret, fun, None, retcode)
}

fn shown_as(cx: &Context, ret: &Value, fun: &str, out: Option<&str>, retcode: i64) -> u8 {
    match display::show(cx, ret, fun, out, retcode) {
        Ok(()) => 0,
        Err(error) => {
            cx.report(&Report::error(format!("cannot write the result: {error}")).exit(1))
        }
    }
}

/// Prints the documentation of a function, a module, or everything.
fn documentation(cx: &Context, caller: &Caller) -> u8 {
    let wanted = cx.parsed.args.first().cloned().unwrap_or_default();
    let names = caller.cx.runtime.function_names(&caller.cx);
    let is_wanted = |name: &String| {
        wanted.is_empty()
            || *name == wanted
            || name.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('.'))
    };
    let names: Vec<String> = names.into_iter().filter(is_wanted).collect();
    let native = |name: &String| caller.cx.runtime.function(&caller.cx, name);
    let others: Vec<String> = names.iter().filter(|name| native(name).is_none()).cloned().collect();
    let others = match others.is_empty() {
        true => Dict::new(),
        false => caller.cx.runtime.described("modules", &others),
    };
    for name in &names {
        let text = match native(name) {
            Some(function) => indented(&function.help("salt '*'", name)),
            None => match others.get(name.as_str()).and_then(|about| about.get_str("raw_doc")) {
                Some(doc) => format!("{doc}\n"),
                None => continue,
            },
        };
        terminal::out(&format!("{name}:\n{text}\n"));
    }
    // Nothing found is no failure: scripts ask whether there is something to read.
    0
}

/// Says why there is no result, in Salt's words where scripts look for them.
fn failed(cx: &Context, function: &str, error: &Error) -> u8 {
    match error {
        Error::NotFound(name) => {
            terminal::err(&format!("'{name}' is not available.\n"));
            255
        }
        Error::NotLoaded(why) => {
            terminal::err(&format!("{why}\n"));
            255
        }
        Error::Unavailable { function, reason } => {
            terminal::err(&format!("'{function}' is not available: {reason}\n"));
            255
        }
        Error::Args(wrong) => {
            let found = registry::function(function);
            let usage = found.map(|found| found.help("salt '*'", function)).unwrap_or_default();
            misused(&halite_minion::failure::python_text(function, found, wrong), &indented(&usage))
        }
        Error::Source { message, place, help, .. } => {
            let mut report = Report::error(message.clone()).at(place.clone()).exit(1);
            if let Some(help) = help {
                report = report.help(help.clone());
            }
            cx.report(&report)
        }
        Error::Raised { class, message, .. } if class == "SystemExit" => {
            // A module that calls `sys.exit` ends genuine salt-call, too.
            message.parse().unwrap_or(1)
        }
        Error::Raised { class, message, .. } if class == "CommandNotFoundError" => {
            terminal::err(&format!("Command required for '{function}' not found: {message}\n"));
            1
        }
        Error::Raised { class, message, traceback: Some(trace) } => {
            tracing::error!("{function} raised {class}: {message}\n{}", trace.trim_end());
            1
        }
        other if function.is_empty() => cx.report(&Report::error(other.to_string()).exit(1)),
        other => {
            terminal::err(&format!("Error running '{function}': {other}\n"));
            1
        }
    }
}
