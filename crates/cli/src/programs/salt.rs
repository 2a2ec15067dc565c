//! `salt`: run a function on many minions.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use halite_client::{Client, Error, Gather, Job, News, Request, Silence, Waited};
use halite_value::{Dict, SmolStr, Value, dict, entries, yaml};

use crate::{
    args::{Args, share_out},
    diagnostics::Report,
    display,
    fleet::{self, batch, ticker::Ticker},
    interrupt,
    machine::Real,
    optparse::{Action, Default, Flag, Group, Program, flag},
    programs::{Context, Early, check_no_parse, check_output, check_targets, id_list, shared},
    terminal,
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
    flag(&["-s", "--static"], "static", Action::True, "Print all results at once, when the last one is in."),
    flag(&["-p", "--progress"], "progress", Action::True, "Show a progress bar."),
    flag(&["--failhard"], "failhard", Action::True, "End a batch at the first bad result."),
    flag(&["--async"], "async", Action::True, "Start the job and do not wait for results."),
    flag(
        &["--subset"],
        "subset",
        Action::Int,
        "Run on this many of the targeted minions, chosen at random among those that have the function.",
    )
    .dflt(Default::Int(0)),
    flag(
        &["-v", "--verbose"],
        "verbose",
        Action::True,
        "Print the job id, and tell when minions are asked about it.",
    ),
    flag(&["--hide-timeout"], "show_timeout", Action::False, "Do not print minions that did not return."),
    flag(&["--show-jid"], "show_jid", Action::True, "Print the job id, without what --verbose adds."),
    flag(
        &["-b", "--batch", "--batch-size"],
        "batch",
        Action::Str,
        "Run on this many minions at a time, or on this percentage of them.",
    )
    .dflt(Default::Str("")),
    flag(
        &["--batch-wait"],
        "batch_wait",
        Action::Float,
        "Seconds between the end of one minion's job and the start of the next in the batch.",
    )
    .dflt(Default::Int(0)),
    flag(
        &["--batch-safe-limit"],
        "batch_safe_limit",
        Action::Int,
        "Run in batches if at least this many minions are targeted.",
    )
    .dflt(Default::Int(0)),
    flag(
        &["--batch-safe-size"],
        "batch_safe_size",
        Action::Str,
        "Size of the batches that --batch-safe-limit makes.",
    )
    .dflt(Default::Int(8)),
    flag(
        &["--return"],
        "return",
        Action::Str,
        "Returners the minions also send their results to: databases, files, other systems.",
    )
    .dflt(Default::Str(""))
    .meta("RETURNER"),
    flag(
        &["--return_config"],
        "return_config",
        Action::Str,
        "Name of the configuration the returners use.",
    )
    .dflt(Default::Str(""))
    .meta("RETURNER_CONF"),
    flag(&["--return_kwargs"], "return_kwargs", Action::Str, "Settings for the returners.")
        .dflt(Default::EmptyDict)
        .meta("RETURNER_KWARGS"),
    flag(
        &["-d", "--doc", "--documentation"],
        "doc",
        Action::True,
        "Print the documentation of a function or module, or of all.",
    ),
    flag(
        &["--args-separator"],
        "args_separator",
        Action::Str,
        "What separates the arguments of one function from those of the next, when several are called at once. Useful when an argument holds a comma.",
    )
    .dflt(Default::Str(",")),
    flag(&["--summary"], "cli_summary", Action::True, "Print a summary at the end."),
    flag(&["--metadata"], "metadata", Action::Str, "Data to store with the job, to find it by later.")
        .dflt(Default::Str(""))
        .meta("METADATA"),
    flag(
        &["--start-event"],
        "start_event",
        Action::True,
        "Ask minions for a salt/job/<jid>/start/<minion_id> event when they begin.",
    ),
    flag(
        &["--queue-offline"],
        "queue_offline",
        Action::Int,
        "Have the job wait this many seconds for minions that are not connected; each runs it once, when it connects in time.",
    )
    .dflt(Default::Int(0))
    .meta("SECONDS"),
    flag(&["--output-diff"], "state_output_diff", Action::True, "Print only states with changes."),
    flag(&["--config-dump"], "config_dump", Action::True, "Print the configuration of the master and stop."),
    flag(
        &["--preview-target"],
        "preview_target",
        Action::True,
        "Print the minions the target is expected to match, and run nothing.",
    ),
];

static TARGETS: Group = Group {
    title: "Target Options",
    about: shared::TARGET_GROUP.about,
    flags: &[
        shared::TARGETS[0],
        shared::TARGETS[1],
        shared::TARGETS[2],
        shared::TARGETS[3],
        shared::TARGETS[4],
        shared::TARGETS[5],
        shared::TARGETS[6],
        flag(
            &["-C", "--compound"],
            "compound",
            Action::True,
            "The target is an expression of several kinds, joined by and, or, not and brackets: 'G@os:RedHat and webser* or E@database.*'.",
        ),
        flag(
            &["-I", "--pillar"],
            "pillar_target",
            Action::True,
            "The target is a pillar key and a pattern for its value: \"role:production*\".",
        ),
        flag(
            &["-J", "--pillar-pcre"],
            "pillar_pcre",
            Action::True,
            "The target is a pillar key and a regular expression for its value: \"role:prod.*\".",
        ),
        flag(&["-S", "--ipcidr"], "ipcidr", Action::True, "The target is an address or a subnet."),
    ],
};

pub static PROGRAM: Program = Program {
    name: "salt",
    usage: "[options] '<target>' <function> [arguments]",
    about: Some("Runs a function on many minions at once, and prints what they return."),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        shared::EXECUTORS,
        &[shared::timeout(5)],
        shared::ARGS_STDIN,
        shared::HARD_CRASH,
        shared::NO_PARSE,
        OWN,
    ],
    groups: &[TARGETS, shared::DELIMITER_GROUP, shared::EAUTH_GROUP, shared::OUTPUT_GROUP, LOGGING],
};

/// Looks at target and function. The arguments are read by `args.rs`, when the job is made.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    check_no_parse(cx);
    check_targets(cx, TARGETS.flags)?;
    let doc = cx.parsed.bool("doc");
    let preview = cx.parsed.bool("preview_target");
    if cx.parsed.args.len() <= 1 && !doc && !preview && !cx.parsed.bool("config_dump") {
        terminal::out(&cx.program.help(terminal::columns(), &terminal::env));
    }
    if cx.parsed.bool("config_dump") {
        return Ok(());
    }
    let by_list = cx.parsed.bool("list");
    let args = &mut cx.parsed.args;
    if preview {
        args.push("not_a_valid_command".into());
    }
    if doc {
        if args.is_empty() {
            args.push("*".into());
        }
        if args.get(1).is_none_or(|function| function != "sys.doc") {
            args.insert(1, "sys.doc".into());
        }
        if args.len() > 3 {
            let message = "You can only get documentation for one method at one time.";
            return Err(Early::Usage(message.into()));
        }
    }
    let Some(target) = args.first() else {
        let text = "\nCannot execute command without defining a target.\n\n";
        return Err(Early::Exit(42, text.into()));
    };
    let target = if by_list { id_list(target, false) } else { Value::from(target.as_str()) };
    cx.opts.set("tgt", target);
    let [_, function, typed @ ..] = cx.parsed.args.as_slice() else {
        return Err(Early::Exit(42, "\nIncomplete options passed.\n\n".into()));
    };
    let (function, typed) = (function.clone(), typed.to_vec());
    set_function(cx, &function, &typed)
}

/// Stores function and arguments as they are published: `fun` and `arg`, or lists of both when
/// several functions are called at once.
fn set_function(cx: &Context, function: &str, typed: &[String]) -> Result<(), Early> {
    let no_parse = cx.opts.str_list("no_parse");
    let arg = |typed: &[String]| Value::list(Args::parse(typed, &no_parse).condition());
    if !function.contains(',') {
        cx.opts.set("fun", function);
        cx.opts.set("arg", arg(typed));
        return Ok(());
    }
    let functions: Vec<String> = function.split(',').map(String::from).collect();
    let separator = cx.parsed.str("args_separator").unwrap_or_default();
    let shares = share_out(functions.len(), typed, &separator)
        .map_err(|error| Early::Exit(42, error.message().into()))?;
    cx.opts.set("fun", functions);
    cx.opts.set("arg", Value::list(shares.iter().map(|typed| arg(typed))));
    Ok(())
}

/// Prints the configuration of the master as YAML: what the files say, without the command line.
fn dump_config(cx: &Context) -> u8 {
    let folder = cx.parsed.str("config_dir").unwrap_or_default();
    let request = halite_config::Request {
        role: halite_config::Role::Master,
        config_dir: &folder,
        minion_id: None,
        remember_id: false,
        strict: false,
        program: cx.program.name,
    };
    let opts = match halite_config::load(&request, &Real) {
        Ok(opts) => opts,
        Err(error) => return cx.report(&Report::from(&error)),
    };
    let values = Value::Dict(opts.values().clone());
    match yaml::dump(&values, &yaml::DumpOptions::block()) {
        Ok(text) => {
            terminal::out(&text);
            0
        }
        Err(error) => cx.report(&Report::error(error.to_string())),
    }
}

/// Returns the first nodegroup of the target that the configuration does not have.
fn unknown_nodegroup(cx: &Context) -> Option<SmolStr> {
    let target = cx.opts.opt_str("tgt").unwrap_or_default();
    let named: Vec<&str> = match fleet::target_type(cx).as_str() {
        "nodegroup" => vec![&target],
        "compound" => {
            target.split_whitespace().filter_map(|word| word.strip_prefix("N@")).collect()
        }
        _ => return None,
    };
    let known = cx.opts.dict("nodegroups");
    named.into_iter().find(|group| !known.contains(*group)).map(SmolStr::from)
}

/// Sends the job and prints the results.
pub fn run(cx: &mut Context) -> u8 {
    if cx.parsed.bool("config_dump") {
        return dump_config(cx);
    }
    if let Some(group) = unknown_nodegroup(cx) {
        let file = cx.opts.str("conf_file");
        terminal::out(&format!("Node group {group} unavailable in {file}\n"));
        return 0;
    }
    let mut client = match fleet::connect(cx) {
        Ok(client) => client,
        Err(code) => return code,
    };
    let done = match () {
        () if cx.parsed.bool("preview_target") => preview(cx, &mut client),
        () if cx.parsed.bool("batch") || cx.parsed.bool("static") => batched(cx, &mut client),
        () if is_too_many(cx, &mut client) => {
            terminal::out("\nNOTICE: Too many minions targeted, switching to batch execution.\n");
            let size = cx.parsed.get("batch_safe_size").to_string();
            cx.parsed.set("batch", size);
            batched(cx, &mut client)
        }
        () => run_job(cx, &mut client),
    };
    done.unwrap_or_else(|error| fleet::refused(cx, &error))
}

/// Returns the minions a target means, as the master sees it.
fn targeted(cx: &Context, client: &mut Client) -> Result<Vec<SmolStr>, Error> {
    let tgt = cx.opts.get("tgt").unwrap_or_default();
    let kind = fleet::target_type(cx);
    let load = entries! { "tgt" => tgt, "tgt_type" => kind, "names_only" => true };
    let found = client.call(&Request::Ask { what: "resolve".into(), load })?;
    let ids = found.get("minions").and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
    let mut ids: Vec<SmolStr> = ids.iter().map(Value::to_str).collect();
    ids.sort();
    Ok(ids)
}

fn preview(cx: &Context, client: &mut Client) -> Result<u8, Error> {
    let ids = targeted(cx, client)?;
    if ids.is_empty() {
        return Ok(no_return());
    }
    Ok(shown(cx, &Value::list(&ids), None, 0, false))
}

fn is_too_many(cx: &Context, client: &mut Client) -> bool {
    let limit = cx.parsed.int("batch_safe_limit").unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(0);
    limit > 1 && targeted(cx, client).is_ok_and(|ids| ids.len() >= limit)
}

/// Says that the target means nobody, and shows the returns there are: none.
fn nobody(cx: &Context) -> u8 {
    terminal::out(fleet::NOBODY);
    // Where only progress is shown, no return is none that is missed.
    if cx.parsed.bool("progress") {
        return 0;
    }
    match shown(cx, &Value::Dict(Dict::new()), None, 0, false) {
        0 => no_return(),
        code => code,
    }
}

fn no_return() -> u8 {
    terminal::err("ERROR: No return received\n");
    2
}

fn shown(cx: &Context, ret: &Value, out: Option<&str>, retcode: i64, all_at_once: bool) -> u8 {
    let fun = cx.opts.opt_str("fun").unwrap_or_default();
    match display::show_at_once(cx, ret, &fun, out, retcode, all_at_once) {
        Ok(()) => 0,
        Err(error) => {
            cx.report(&Report::error(format!("cannot write the result: {error}")).exit(1))
        }
    }
}

/// `--batch` and `--static`.
fn batched(cx: &Context, client: &mut Client) -> Result<u8, Error> {
    let size = cx.parsed.str("batch").filter(|size| !size.is_empty());
    if let Some(size) = size.as_deref().filter(|size| !batch::is_size(size)) {
        let why = format!(
            "Invalid batch specification '{size}': must be an integer or percentage string like '10' or '25%'."
        );
        return Ok(cx.report(&Report::error(why).exit(1)));
    }
    if let Some(size) = size.as_deref().filter(|_| cx.opts.bool("async")) {
        let mut screen = batch::Printed(cx);
        if let Some(jid) = batch::hand_over(cx, client, size, &mut screen)? {
            terminal::out(&format!("Executed batch command with job ID: {jid}\n"));
        }
        return Ok(0);
    }
    if cx.parsed.bool("static") {
        let mut screen = batch::Silent::default();
        if let Some(size) = size {
            batch::run(cx, client, &size, &mut screen)?;
        } else {
            batch::at_once(cx, client, &mut screen)?;
        }
        let any = !screen.returns.is_empty();
        return Ok(match shown(cx, &screen.returns.into(), None, 0, true) {
            0 if !any => no_return(),
            code => code,
        });
    }
    let ended = batch::run(cx, client, &size.unwrap_or_default(), &mut batch::Printed(cx))?;
    if !ended.any {
        return Ok(no_return());
    }
    Ok(u8::try_from(ended.retcode & 255).unwrap_or(1))
}

/// The ordinary case: one job, its returns printed as they arrive.
fn run_job(cx: &Context, client: &mut Client) -> Result<u8, Error> {
    let mut job = fleet::job(cx);
    if cx.opts.bool("async") {
        job.follow = false;
        let (published, _) = client.publish(&job)?;
        if published.jid.is_empty() {
            terminal::out(fleet::NOBODY);
        }
        let jid = if published.jid.is_empty() { "0" } else { published.jid.as_str() };
        terminal::out(&format!("Executed command with job ID: {jid}\n"));
        return Ok(0);
    }
    if let Some(count) = cx.parsed.int("subset").filter(|count| *count > 0) {
        let chosen = subset(cx, client, &job, count)?;
        if chosen.is_empty() {
            return Ok(nobody(cx));
        }
        job.tgt = Value::list(&chosen);
        job.tgt_type = "list".into();
    }
    let (published, stream) = client.publish(&job)?;
    if fleet::means_nobody(cx, &published) {
        return Ok(nobody(cx));
    }
    interrupt::names(&published.jid);
    if cx.parsed.bool("verbose") {
        terminal::out(&fleet::header(&published.jid));
    } else if cx.parsed.bool("show_jid") {
        terminal::out(&format!("jid: {}\n", published.jid));
    }
    let mut gather = Gather::new(&published, stream, fleet::patience(cx)).of(&job);
    let mut book = Book::default();
    let mut ticker = Ticker::new(published.minions.len());
    loop {
        let until = ticker.is_enabled().then(|| Instant::now() + Duration::from_millis(250));
        match gather.next_until(client, until)? {
            Waited::News(news) => {
                ticker.clear();
                book.take(cx, gather.jid(), news, published.minions.len());
            }
            Waited::TimedOut => ticker.show(&gather.pending()),
            Waited::Over => break,
        }
    }
    ticker.clear();
    // Named by the user, and without an accepted key: the master knows nothing of them.
    // Those below a syndic it knows by now.
    for id in published.missing.iter().filter(|id| !gather.has_returned(id)) {
        if !book.names(id) {
            book.missing(cx, id, Silence::NoResponse, &published.jid);
        }
    }
    Ok(book.close(cx))
}

/// Chooses at random among the minions that have the function.
fn subset(cx: &Context, client: &mut Client, job: &Job, count: i64) -> Result<Vec<SmolStr>, Error> {
    let ask = Job {
        fun: "sys.list_functions".into(),
        arg: Vec::new(),
        ret: SmolStr::default(),
        ..job.clone()
    };
    let outcome = client.run(&ask, fleet::patience(cx))?;
    // Salt's second job, for the chosen, says it once more.
    if outcome.published.jid.is_empty() {
        terminal::out(fleet::NOBODY);
    }
    let has = |load: &Dict| {
        let functions = load.get("return").and_then(|ret| ret.items_of_sequence());
        functions.is_some_and(|functions| functions.contains(&job.fun))
    };
    let mut ids: Vec<SmolStr> =
        outcome.returned.into_iter().filter(|(_, load)| has(load)).map(|(id, _)| id).collect();
    let mut chosen = Vec::new();
    while !ids.is_empty() && (chosen.len() as i64) < count {
        chosen.push(ids.swap_remove(random_below(ids.len())));
    }
    Ok(chosen)
}

/// Good enough to spread work; not for secrets.
fn random_below(limit: usize) -> usize {
    use std::hash::{BuildHasher as _, Hasher as _};
    let random = std::hash::RandomState::new().build_hasher().finish();
    usize::try_from(random % limit.max(1) as u64).unwrap_or(0)
}

/// What has been heard, for the summary and the exit code.
#[derive(Default)]
struct Book {
    returned: usize,
    failed: Vec<SmolStr>,
    not_connected: Vec<SmolStr>,
    no_response: Vec<SmolStr>,
    /// Collected instead of printed: `sys.doc`.
    docs: Dict,
    bad: bool,
    /// What was to be shown could not be written; said once.
    unwritten: bool,
}

impl Book {
    /// Tells whether a minion was said to be missing.
    fn names(&self, id: &SmolStr) -> bool {
        self.not_connected.contains(id) || self.no_response.contains(id)
    }

    fn take(&mut self, cx: &Context, jid: &str, news: News, all: usize) {
        match news {
            News::Returned { id, load } => self.returned(cx, &id, &load, all),
            News::Missing { id, silence } => self.missing(cx, &id, silence, jid),
            News::Partial(load) => {
                // A part of a state run: shown as the whole will be.
                let data = load.get("data").or_else(|| load.get("return")).unwrap_or_default();
                let id = load.get("id").unwrap_or_default().to_str();
                let ret = data.get("ret").unwrap_or(data);
                if ret.truthy() {
                    self.show(cx, &dict! { id.as_str() => ret }, Some("highstate"), 0);
                }
            }
            News::Asking(_) | News::Started(_) => {}
        }
    }

    fn show(&mut self, cx: &Context, ret: &Value, out: Option<&str>, code: i64) {
        if !self.unwritten {
            self.unwritten = shown(cx, ret, out, code, false) != 0;
        }
    }

    fn returned(&mut self, cx: &Context, id: &SmolStr, load: &Dict, all: usize) {
        let ret = load.get("return").unwrap_or_default();
        let code = fleet::retcode(load);
        self.returned += 1;
        if code != 0 {
            self.bad = true;
            self.failed.push(id.clone());
        }
        if is_doc(cx) {
            self.docs.insert(id.as_str(), ret);
        } else if cx.parsed.bool("progress") {
            bar(self.returned, all);
        } else {
            let out = load.get("out").map(|out| out.to_str()).filter(|out| !out.is_empty());
            self.show(cx, &dict! { id.as_str() => ret }, out.as_deref(), code);
        }
    }

    fn missing(&mut self, cx: &Context, id: &SmolStr, silence: Silence, jid: &str) {
        match silence {
            Silence::NotConnected => self.not_connected.push(id.clone()),
            Silence::NoResponse => self.no_response.push(id.clone()),
        }
        let waits = cx.parsed.int("queue_offline").unwrap_or(0);
        if waits > 0 && silence == Silence::NotConnected {
            let text =
                format!("Minion is not connected. The job waits for it for {waits} seconds.");
            self.show(cx, &dict! { id.as_str() => text }, Some("no_return"), 0);
            return;
        }
        // differs: 3008.3 prints them in spite of --hide-timeout.
        if cx.parsed.is_explicit("show_timeout") && !cx.parsed.bool("show_timeout") {
            return;
        }
        self.bad = true;
        if !is_doc(cx) && !cx.parsed.bool("progress") {
            let ret = dict! { id.as_str() => silence.text(jid) };
            self.show(cx, &ret, Some("no_return"), 1);
        }
    }

    /// Prints what comes last, and returns the exit code.
    fn close(self, cx: &Context) -> u8 {
        if is_doc(cx) {
            return print_docs(cx, &self.docs);
        }
        let progress = cx.parsed.bool("progress");
        if progress && terminal::out_is_watched() {
            terminal::out("\n");
        }
        let asked = cx.opts.bool("cli_summary") && cx.parsed.str("output").is_none();
        if progress || asked {
            terminal::out(&self.summary(cx.parsed.bool("verbose")));
        }
        if self.unwritten {
            return 1;
        }
        if self.bad && !progress {
            terminal::err("ERROR: Minions returned with non-zero exit code\n");
            return 1;
        }
        0
    }

    fn summary(&self, verbose: bool) -> String {
        let rule = "-".repeat(43);
        let silent = self.not_connected.len() + self.no_response.len();
        let mut text = format!(
            "\n\n{rule}\nSummary\n{rule}\n# of minions targeted: {}\n# of minions returned: {}\n\
             # of minions that did not return: {silent}\n# of minions with errors: {}\n",
            self.returned + silent,
            self.returned,
            self.failed.len(),
        );
        if verbose {
            for (title, ids) in [
                ("Minions not connected", &self.not_connected),
                ("Minions not responding", &self.no_response),
                ("Minions with failures", &self.failed),
            ] {
                if !ids.is_empty() {
                    text += &format!("{title}: {}\n", ids.join(" "));
                }
            }
        }
        text + &rule + "\n"
    }
}

fn is_doc(cx: &Context) -> bool {
    cx.opts.str("fun") == "sys.doc"
}

/// `--progress`: how many have returned, on one line, where somebody watches it grow.
fn bar(returned: usize, all: usize) {
    if !terminal::out_is_watched() {
        return;
    }
    let all = all.max(1);
    let percent = (returned * 100 / all).min(100);
    let filled = "#".repeat(percent / 2);
    terminal::out(&format!("\r{percent:3}% [{filled:50}] {returned}/{all}"));
}

/// Prints the documentation that minions returned, each function once.
fn print_docs(cx: &Context, returns: &Dict) -> u8 {
    if returns.is_empty() {
        terminal::err("No minions found to gather docs from\n");
        return 2;
    }
    let docs: BTreeMap<SmolStr, Value> = returns
        .values()
        .iter()
        .rev()
        .filter_map(|ret| ret.as_dict().map(Dict::entries))
        .flatten()
        .filter(|(_, doc)| doc.truthy())
        .map(|(fun, doc)| (fun.to_str(), doc))
        .collect();
    for (fun, doc) in docs {
        if cx.parsed.str("output").is_some() {
            let _ = display::show(cx, &dict! { fun.as_str() => doc }, "", Some("nested"), 0);
        } else {
            terminal::out(&format!("{fun}:\n{doc}\n\n"));
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_everybody() {
        let book = Book {
            returned: 2,
            failed: vec!["b".into()],
            not_connected: vec!["c".into(), "d".into()],
            ..Book::default()
        };
        let short = book.summary(false);
        assert!(short.starts_with("\n\n-------------------------------------------\nSummary\n---"));
        assert!(short.contains("\n# of minions targeted: 4\n# of minions returned: 2\n"));
        assert!(short.contains("\n# of minions that did not return: 2\n"));
        assert!(short.contains("\n# of minions with errors: 1\n------"));
        let long = book.summary(true);
        assert!(long.contains("\nMinions not connected: c d\nMinions with failures: b\n---"));
    }
}
