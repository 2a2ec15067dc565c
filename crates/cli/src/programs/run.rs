//! `salt-run`: run a runner on the master.

use std::{path::Path, sync::Arc};

use halite_client::{Client, Request};
use halite_minion::{Alone, Link};
use halite_output::{Colors, Style};
use halite_spec::{Call, Cx, Error, Event, Job, Refresh, Result};
use halite_value::{Dict, SmolStr, Value};

use crate::{
    args::Args,
    diagnostics::Report,
    display, fleet,
    optparse::{Action, Flag, Group, Program, flag},
    programs::{Context, Early, check_jid, check_no_parse, check_output, shared},
    terminal,
    workshop::{self, Workshop},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/master'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static OWN: &[Flag] = &[
    flag(
        &["-d", "--doc", "--documentation"],
        "doc",
        Action::True,
        "Print the documentation of a runner, or of all.",
    ),
    flag(&["--async"], "async", Action::True, "Start the runner and do not wait for it."),
    flag(&["--skip-grains"], "skip_grains", Action::True, "Do without grains."),
];

// Salt has two groups of this name here.
static MORE_OUTPUT: Group = Group {
    title: "Output Options",
    about: shared::OUTPUT_GROUP.about,
    flags: &[flag(&["--quiet"], "quiet", Action::True, "Do not print the result.")],
};

pub static PROGRAM: Program = Program {
    name: "salt-run",
    usage: "[options] <function> [arguments]",
    about: Some("Runs a runner: a function of the master itself."),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        &[shared::timeout(1)],
        shared::ARGS_STDIN,
        shared::JID,
        shared::HARD_CRASH,
        shared::NO_PARSE,
        OWN,
    ],
    groups: &[
        shared::EAUTH_GROUP,
        shared::OUTPUT_GROUP,
        shared::PROFILING_GROUP,
        MORE_OUTPUT,
        LOGGING,
    ],
};

/// Looks at the arguments.
pub(crate) fn check(cx: &mut Context) -> std::result::Result<(), Early> {
    check_output(cx)?;
    check_no_parse(cx);
    check_jid(cx)?;
    if cx.parsed.bool("doc") && cx.parsed.args.len() > 1 {
        let message = "You can only get documentation for one method at one time";
        return Err(Early::Usage(message.into()));
    }
    cx.opts.set("fun", cx.parsed.args.first().map_or("", String::as_str));
    Ok(())
}

/// Returns the arguments of the function.
#[must_use]
pub fn arguments(cx: &Context) -> Args {
    Args::of_call(cx.parsed.args.get(1..).unwrap_or_default(), &cx.opts.str_list("no_parse"))
}

/// Runs the runner and prints its result.
pub fn run(cx: &mut Context) -> u8 {
    if cx.parsed.bool("doc") {
        return documentation(cx);
    }
    let Some(name) = cx.parsed.args.first().cloned() else { return documentation(cx) };
    if fleet::sign_in::is_asked(cx) {
        return on_master(cx, &name);
    }
    let jid = cx.parsed.str("jid").unwrap_or_else(|| halite_wire::Jid::now().as_str().to_owned());
    let Args { args, kwargs } = arguments(cx);
    if cx.opts.bool("async") {
        return asynchronous(cx, &name, args, kwargs);
    }
    if cx.opts.bool("show_jid") {
        terminal::out(&format!("jid: {jid}\n"));
    }
    let workshop = workshop(cx);
    let own = context(&workshop, &jid, &name);
    let given = Call { args: args.clone(), kwargs: kwargs.clone() };
    let result = match in_master(cx, &name, &jid, &args, &kwargs) {
        Some(ran) => ran,
        None => {
            let about = about(&own, &name, &args, &kwargs);
            let tag = format!("salt/run/{jid}/new").into();
            tell_master(&own, &Request::Fire { tag, data: about.shallow_copy() });
            let Some(result) = workshop.runner(&own, &name, Call { args, kwargs }) else {
                return said(cx, format!("'{name}' is not available."), 0);
            };
            about.insert("success", result.is_ok());
            about.insert(
                "return",
                match &result {
                    Ok(ret) => ret.clone(),
                    Err(error) => format!("Exception occurred in runner {name}: {error}").into(),
                },
            );
            // The master keeps it among the jobs, and fires the last event.
            tell_master(&own, &Request::Ask { what: "runner_done".into(), load: about });
            result
        }
    };
    match result {
        Ok(ret) => {
            let code = retcode(&ret);
            if !cx.parsed.bool("quiet")
                && let Err(error) = show(cx, &ret)
            {
                let why = format!("cannot write the result: {error}");
                return cx.report(&Report::error(why).exit(1));
            }
            code
        }
        Err(Error::Raised { class, message, traceback: Some(trace) }) => {
            let trace = match trace.is_empty() {
                true => format!("{class}: {message}"),
                false => trace.trim_end().to_owned(),
            };
            said(cx, format!("Exception occurred in runner {name}: {trace}"), 1)
        }
        Err(error) => match workshop::usage(&name, &given, &error) {
            Some(text) => said(cx, text, 0),
            None => said(cx, format!("Exception occurred in runner {name}: {error}"), 1),
        },
    }
}

/// Shows a runner's return. What it does not declare itself, `--out` does for it: here `highstate`
/// can be asked for, whatever the data are.
fn show(cx: &Context, ret: &Value) -> std::io::Result<()> {
    let (data, outputter) = halite_output::select::unwrap_runner(ret);
    let asked = || cx.parsed.str("output").map(SmolStr::from);
    display::show(cx, &data, "", outputter.or_else(asked).as_deref(), 0)
}

/// Shows a text as if it were the return, which it is in Salt.
fn said(cx: &Context, text: String, code: u8) -> u8 {
    match display::show(cx, &text.into(), "", None, 0) {
        Ok(()) => code,
        Err(error) => {
            cx.report(&Report::error(format!("cannot write the result: {error}")).exit(1))
        }
    }
}

/// Runs an orchestration in the running master, which writes down how far it is and goes on when
/// this program or the master itself ends; `None` for anything else, and without a master.
fn in_master(
    cx: &Context,
    fun: &str,
    jid: &str,
    args: &[Value],
    kwargs: &Dict,
) -> Option<Result<Value>> {
    if !fun.starts_with("state.orch") && fun != "state.sls" || fun.contains("show_sls") {
        return None;
    }
    let mut client = Client::connect(Path::new(&*cx.opts.str("sock_dir"))).ok()?;
    let request = Request::Orchestrate {
        jid: jid.into(),
        fun: fun.into(),
        arg: args.to_vec(),
        kwarg: kwargs.clone(),
    };
    match client.call(&request) {
        Ok(data) => {
            let ret = data.get("return").unwrap_or_default();
            let well = data.get("success").is_none_or(|success| success.truthy());
            Some(match ret {
                // An error comes as its text; to Salt wrong arguments are none.
                Value::Str(text) if !well && !text.starts_with("\nPassed invalid arguments: ") => {
                    let told = format!("Exception occurred in runner {fun}: ");
                    Err(Error::failed(text.strip_prefix(&*told).unwrap_or(&text).to_owned()))
                }
                ret => Ok(ret),
            })
        }
        Err(error @ halite_client::Error::Refused { .. }) => {
            Some(Err(Error::failed(error.to_string())))
        }
        Err(error) => Some(Err(Error::failed(format!(
            "{error}; the run goes on when the master is back: salt-run jobs.lookup_jid {jid}"
        )))),
    }
}

/// What the events of a runner say of it.
fn about(cx: &Cx, name: &str, args: &[Value], kwargs: &Dict) -> Dict {
    let given = halite_master::runners::fun_args(args, kwargs);
    halite_value::entries! {
        "fun" => format!("runner.{name}"), "jid" => &cx.job.jid, "user" => caller(cx),
        "fun_args" => given,
    }
}

fn caller(cx: &Cx) -> halite_value::SmolStr {
    if !cx.job.user.is_empty() {
        return cx.job.user.clone();
    }
    let us = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    us.map_or_else(|| "UNKNOWN".into(), |user| user.name.into())
}

/// Tells the master of the runner (`salt/run/<jid>/…`), for reactors and listeners. Without a
/// master nobody listens.
fn tell_master(cx: &Cx, request: &Request) {
    let folder = cx.opt_str("sock_dir").unwrap_or_default();
    let Ok(mut client) = Client::connect(Path::new(folder.as_str())) else { return };
    if let Err(error) = client.call(request) {
        tracing::debug!("the master was not told of the runner: {error}");
    }
}

/// Has the running master do it under somebody's rights, and prints the result.
fn on_master(cx: &Context, fun: &str) -> u8 {
    let mut client = match fleet::connect(cx) {
        Ok(client) => client,
        Err(code) => return code,
    };
    let Args { args: arg, kwargs: kwarg } = arguments(cx);
    let asynchronous = cx.opts.bool("async");
    match client.call(&Request::Runner { fun: fun.into(), arg, kwarg, asynchronous }) {
        Ok(answer) if asynchronous => {
            told_tag(&answer);
            0
        }
        Ok(answer) => {
            let ret = answer.get("return").unwrap_or_default();
            if !cx.parsed.bool("quiet") {
                let _ = show(cx, &ret);
            }
            retcode(&ret)
        }
        Err(error) => fleet::refused(cx, &error),
    }
}

fn told_tag(answer: &Value) {
    let jid = answer.get_str("jid").unwrap_or_default();
    terminal::err(&format!(
        "[WARNING ] Running in asynchronous mode. Results of this execution may be collected by attaching to the master event bus or by examining the master job cache, if configured. This execution is running under tag salt/run/{jid}\n"
    ));
}

/// The exit code a runner asks for, in its return or one level below.
fn retcode(ret: &Value) -> u8 {
    let own = ret.get("retcode").or_else(|| ret.get("data")?.get("retcode"));
    let code = own.and_then(|code| code.as_int()).unwrap_or(0);
    u8::try_from(code & 255).unwrap_or(1)
}

/// Has the running master do it.
fn asynchronous(cx: &Context, fun: &str, arg: Vec<Value>, kwarg: Dict) -> u8 {
    let mut client = match fleet::connect(cx) {
        Ok(client) => client,
        Err(code) => return code,
    };
    let request = Request::Runner { fun: fun.into(), arg, kwarg, asynchronous: true };
    match client.call(&request) {
        Ok(answer) => {
            told_tag(&answer);
            0
        }
        Err(error) => fleet::refused(cx, &error),
    }
}

fn documentation(cx: &Context) -> u8 {
    let wanted = cx.parsed.args.first().cloned().unwrap_or_default();
    let is_wanted =
        |name: &str| wanted.is_empty() || name == wanted || name.starts_with(&format!("{wanted}."));
    let mut docs: Vec<(String, String)> = halite_runners::runners()
        .into_iter()
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, function)| (name.clone(), function.help("salt-run", &name)))
        .collect();
    let workshop = workshop(cx);
    let own = context(&workshop, "", "");
    let python = workshop.python();
    if let Some(python) = python {
        python.remember(&own);
        if let Some(users) = python.names("runners") {
            docs.retain(|(name, _)| !users.hides(name));
            let names: Vec<String> =
                users.functions.iter().filter(|name| is_wanted(name)).cloned().collect();
            for (name, about) in &python.describe("runners", &names) {
                let doc = about.get("doc").filter(Value::truthy).unwrap_or_default();
                docs.push((name.to_string(), doc.to_str().into()));
            }
            docs.sort();
        }
    }
    for (name, doc) in docs {
        terminal::out(&format!("{name}:\n{doc}\n\n"));
    }
    0
}

/// Builds what a runner works with: the master's configuration, and the engine for execution
/// functions and pillar.
fn workshop(cx: &Context) -> Workshop {
    Workshop::new(cx.opts.values(), !cx.parsed.bool("skip_grains"))
}

fn context(workshop: &Workshop, jid: &str, fun: &str) -> Cx {
    let link = Terminal { alone: workshop.alone(), jid: jid.to_owned() };
    workshop.cx(Arc::new(link), Job::new(jid, fun, fleet::user()))
}

/// Where the events of a runner go: what it prints to the terminal, the rest to the master.
struct Terminal {
    alone: Alone,
    jid: String,
}

impl Link for Terminal {
    fn fire(&self, cx: &Cx, event: Event) -> Result<bool> {
        if event.tag == halite_runners::PRINT {
            terminal::out(&format!("{}\n", event.data));
            return Ok(true);
        }
        if event.tag == "progress" {
            // As Salt prints it: the event, and the end of its tag.
            let shown = event.data.as_dict().map(Dict::shallow_copy).unwrap_or_default();
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string();
            shown.get_or_insert_with("_stamp", || now.as_str().into());
            let shown = halite_value::dict! { "suffix" => "progress", "event" => shown };
            let style = Style { colors: Colors::off(), ..Style::default() };
            let output = cx.opts.get("selected_output_option").filter(Value::truthy);
            let output = output.map_or_else(|| "nested".into(), |output| output.to_str());
            terminal::out(&format!("{}\n", halite_output::format(&output, &shown, &style)));
        }
        let tag = workshop::runner_tag(&self.jid, &event.tag);
        let data = event.data.as_dict().cloned().unwrap_or_default();
        let folder = cx.opt_str("sock_dir").unwrap_or_default();
        // Without a master nobody listens.
        let Ok(mut client) = Client::connect(Path::new(folder.as_str())) else { return Ok(false) };
        Ok(client.call(&Request::Fire { tag: tag.into(), data }).is_ok())
    }

    fn ask(&self, cx: &Cx, load: Value) -> Result<Value> {
        halite_runners::answer(cx, &load).unwrap_or_else(|| self.alone.ask(cx, load))
    }

    fn running(&self, cx: Option<&Cx>) -> Vec<Value> {
        self.alone.running(cx)
    }

    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value> {
        self.alone.signal_job(jid, signal)
    }

    fn refreshed(&self, cx: &Cx, what: Refresh) -> Result<()> {
        self.alone.refreshed(cx, what)
    }
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn codes_of_runners() {
        assert_eq!(retcode(&true.into()), 0);
        assert_eq!(retcode(&dict! { "retcode" => 1 }), 1);
        assert_eq!(retcode(&dict! { "data" => dict! { "retcode" => 3 } }), 3);
    }
}
