//! `salt`: run a function on many minions.

use halite_value::{Value, yaml};

use crate::{
    args::{Args, share_out},
    diagnostics::Report,
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

/// Prints the configuration of the master as YAML.
fn dump_config(cx: &Context) -> u8 {
    let values = Value::Dict(cx.opts.values().clone());
    match yaml::dump(&values, &yaml::DumpOptions::block()) {
        Ok(text) => {
            terminal::out(&text);
            0
        }
        Err(error) => cx.report(&Report::error(error.to_string())),
    }
}

/// Sends the job and prints the results.
pub fn run(cx: &mut Context) -> u8 {
    if cx.parsed.bool("config_dump") {
        return dump_config(cx);
    }
    cx.missing("salt")
}
