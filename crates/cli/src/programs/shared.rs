//! Options several programs have: one entry each, composed by the tables beside this file.

use crate::optparse::{Action, Default, Flag, Group, flag};

/// Log levels as Salt lists them in `-l`.
pub const LEVELS: &[&str] = &[
    "all", "debug", "error", "critical", "garbage", "info", "profile", "quiet", "trace", "warning",
];
/// The same levels, in order of severity.
pub const LEVELS_BY_SEVERITY: &[&str] = &[
    "all", "garbage", "trace", "debug", "profile", "info", "warning", "error", "critical", "quiet",
];

pub static VERSION: &[Flag] = &[
    flag(&["--version"], "", Action::Version, "Print the version and stop."),
    flag(
        &["-V", "--versions-report"],
        "versions_report",
        Action::True,
        "Print the version of everything that matters for a bug report, and stop.",
    )
    .dflt(Default::None),
    flag(&["-h", "--help"], "", Action::Help, "Print this help and stop."),
];

pub static SALTFILE: &[Flag] = &[flag(
    &["--saltfile"],
    "saltfile",
    Action::Str,
    "File with options for this command line. Without it, a Saltfile in the current folder or in ~/.salt is used.",
)];

pub static CONFIG_DIR: &[Flag] = &[flag(
    &["-c", "--config-dir"],
    "config_dir",
    Action::Str,
    "Folder of the configuration. Default: '%default'.",
)
.dflt(Default::Env("SALT_CONFIG_DIR", halite_config::CONFIG_DIR))];

pub static EXECUTORS: &[Flag] = &[
    flag(
        &["--module-executors"],
        "module_executors",
        Action::Str,
        "Executors to run functions with, instead of those in the minion's configuration.",
    )
    .meta("EXECUTOR_LIST"),
    flag(
        &["--executor-opts"],
        "executor_opts",
        Action::Str,
        "Settings for the executors, instead of those in the minion's configuration.",
    )
    .meta("EXECUTOR_OPTS"),
];

pub const fn timeout(seconds: i64) -> Flag {
    flag(
        &["-t", "--timeout"],
        "timeout",
        Action::Int,
        "Seconds to wait for minions before asking whether they are still at it. Default: %default.",
    )
    .dflt(Default::Int(seconds))
}

pub static ARGS_STDIN: &[Flag] = &[flag(
    &["--args-stdin"],
    "args_stdin",
    Action::True,
    "Read further options and arguments from standard input, one per line.",
)];

pub static HARD_CRASH: &[Flag] = &[flag(
    &["--hard-crash"],
    "hard_crash",
    Action::True,
    "Do not tidy up after an unexpected error; show it as it is. Default: %default.",
)
.dflt(Default::EnvFlag("SALT_HARD_CRASH"))];

pub static NO_PARSE: &[Flag] = &[flag(
    &["--no-parse"],
    "no_parse",
    Action::Str,
    "Names of keyword arguments (name=value), separated by commas, whose values are taken as they are instead of being read as YAML.",
)
.dflt(Default::Env("SALT_NO_PARSE", ""))
.meta("argname1,argname2,...")];

pub static JID: &[Flag] =
    &[flag(&["--jid"], "jid", Action::Str, "Use this job id instead of a new one.")];

pub static USER: &[Flag] = &[flag(&["-u", "--user"], "user", Action::Str, "User to run %prog as.")];

pub static PROXYID: &[Flag] =
    &[flag(&["--proxyid"], "proxyid", Action::Str, "Id of this proxy minion.")];

pub static DAEMON: Flag =
    flag(&["-d", "--daemon"], "daemon", Action::True, "Run %prog in the background.");

pub const fn pid_file(path: &'static str) -> Flag {
    flag(
        &["--pid-file"],
        "pidfile",
        Action::Str,
        "File that holds the process id. Default: '%default'.",
    )
    .dflt(Default::Str(path))
}

pub static DISABLE_KEEPALIVE: Flag = flag(
    &["--disable-keepalive"],
    "disable_keepalive",
    Action::True,
    "Do not start the daemon again when it dies, because something else (systemd, say) does.",
);

pub static TARGETS: &[Flag] = &[
    flag(&["-H", "--hosts"], "list_hosts", Action::True, "List the known hosts and stop."),
    flag(
        &["-E", "--pcre"],
        "pcre",
        Action::True,
        "The target is a regular expression for minion ids.",
    ),
    flag(
        &["-L", "--list"],
        "list",
        Action::True,
        "The target is a list of minion ids, separated by commas or blanks.",
    ),
    flag(
        &["-G", "--grain"],
        "grain",
        Action::True,
        "The target is a grain and a pattern for its value: \"os:Arch*\".",
    ),
    flag(
        &["-P", "--grain-pcre"],
        "grain_pcre",
        Action::True,
        "The target is a grain and a regular expression for its value: \"os:Arch.*\".",
    ),
    flag(
        &["-N", "--nodegroup"],
        "nodegroup",
        Action::True,
        "The target is the name of a group from the master's configuration.",
    ),
    flag(
        &["-R", "--range"],
        "range",
        Action::True,
        "The target is an expression for the range server, such as %cluster.",
    ),
];

pub static TARGET_GROUP: Group =
    Group { title: "Target Options", about: Some("How the target is read."), flags: TARGETS };

pub static DELIMITER_GROUP: Group = Group {
    title: "Additional Target Options",
    about: Some("Details of targeting."),
    flags: &[flag(
        &["--delimiter"],
        "delimiter",
        Action::Str,
        "What separates the levels of nested data in a target. Default: '%default'.",
    )
    .dflt(Default::Str(":"))],
};

const EAUTH: &str = "Sign in through this external authentication system.";
const MAKE_TOKEN: Flag = flag(
    &["-T", "--make-token"],
    "mktoken",
    Action::True,
    "Sign in once, and keep a token for later commands as long as the master allows.",
);
const USERNAME: Flag = flag(&["--username"], "username", Action::Str, "User to sign in as.");
const PASSWORD: Flag = flag(&["--password"], "password", Action::Str, "Password to sign in with.");

pub static EAUTH_GROUP: Group = Group {
    title: "External Authentication",
    about: None,
    flags: &[
        flag(&["-a", "--auth", "--eauth", "--external-auth"], "eauth", Action::Str, EAUTH)
            .dflt(Default::Str("")),
        MAKE_TOKEN,
        USERNAME,
        PASSWORD,
    ],
};

/// As [`EAUTH_GROUP`], without `-a`, which means something else in salt-key.
pub static EAUTH_GROUP_LONG: Group = Group {
    title: "External Authentication",
    about: None,
    flags: &[
        flag(&["--auth", "--eauth", "--external-auth"], "eauth", Action::Str, EAUTH)
            .dflt(Default::Str("")),
        MAKE_TOKEN,
        USERNAME,
        PASSWORD,
    ],
};

pub static OUTPUT_GROUP: Group = Group {
    title: "Output Options",
    about: Some("How results are printed."),
    flags: &[
        flag(&["--out", "--output"], "output", Action::Str, "Outputter for the results of %prog."),
        flag(
            &["--out-indent", "--output-indent"],
            "output_indent",
            Action::Int,
            "Spaces to indent by, in outputters that indent; a negative number for none.",
        ),
        flag(
            &["--out-file", "--output-file"],
            "output_file",
            Action::Str,
            "File to write the results to.",
        ),
        flag(
            &["--out-file-append", "--output-file-append"],
            "output_file_append",
            Action::True,
            "Add to that file instead of replacing it.",
        ),
        flag(&["--no-color", "--no-colour"], "no_color", Action::True, "Print without colour."),
        flag(
            &["--force-color", "--force-colour"],
            "force_color",
            Action::True,
            "Print in colour, whatever the output is.",
        ),
        flag(
            &["--state-output", "--state_output"],
            "state_output",
            Action::Str,
            "How much to print per state: 'full', 'terse', 'mixed', 'changes' or 'filter', instead of what the configuration says. Default: '%default'.",
        ),
        flag(
            &["--state-verbose", "--state_verbose"],
            "state_verbose",
            Action::Str,
            "Whether to print states that were fine, True or False, instead of what the configuration says. Default: %default.",
        ),
    ],
};

pub static PROFILING_GROUP: Group = Group {
    title: "Profiling support",
    about: None,
    flags: &[
        flag(
            &["--profiling-path"],
            "profiling_path",
            Action::Str,
            "Folder for profiles. Default: '%default'.",
        )
        .dflt(Default::Str("/tmp/stats")),
        flag(
            &["--enable-profiling"],
            "profiling_enabled",
            Action::True,
            "Write profiles. See also: --profiling-path.",
        ),
    ],
};

const LOG_LEVEL_HELP: &str = "Least severe level shown on the terminal: 'all', 'garbage', 'trace', 'debug', 'profile', 'info', 'warning', 'error', 'critical' or 'quiet'. Default: 'warning'. Below 'info' secrets may be shown.";
const LOG_FILE_LEVEL_HELP: &str = "Least severe level written to the log file: 'all', 'garbage', 'trace', 'debug', 'profile', 'info', 'warning', 'error', 'critical' or 'quiet'. Default: 'warning'. Below 'info' secrets may be written.";

pub const LOG_LEVEL: Flag =
    flag(&["-l", "--log-level"], "log_level", Action::Choice(LEVELS), LOG_LEVEL_HELP);
/// As [`LOG_LEVEL`], without `-l`, which means something else in salt-key.
pub const LOG_LEVEL_LONG: Flag =
    flag(&["--log-level"], "log_level", Action::Choice(LEVELS), LOG_LEVEL_HELP);
pub const LOG_FILE_LEVEL: Flag = flag(
    &["--log-file-level"],
    "log_level_logfile",
    Action::Choice(LEVELS_BY_SEVERITY),
    LOG_FILE_LEVEL_HELP,
);

pub const fn log_file(dest: &'static str, help: &'static str) -> Flag {
    flag(&["--log-file"], dest, Action::LogFile, help)
}

/// Heading of the logging group.
pub const LOGGING_TITLE: &str = "Logging Options";
/// Sentence under it.
pub const LOGGING_ABOUT: &str = "What is logged, instead of what the configuration says.";
