//! `salt-ssh`: run functions over ssh, without a minion.

use halite_value::Value;

use crate::{
    optparse::{Action, Default, Flag, Group, Program, flag},
    programs::{
        Context, Early, check_jid, check_no_parse, check_output, check_targets, id_list, shared,
    },
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("ssh_log_file", "File to log to. Default: '/var/log/salt/ssh'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static OWN: &[Flag] = &[
    flag(
        &["-r", "--raw", "--raw-shell"],
        "raw_shell",
        Action::True,
        "Run a plain shell command instead of a function.",
    ),
    flag(
        &["--roster"],
        "roster",
        Action::Str,
        "Where the list of targets comes from. Default: '%default'.",
    )
    .dflt(Default::Str("flat")),
    flag(
        &["--roster-file"],
        "roster_file",
        Action::Str,
        "File with the list of targets, instead of the file 'roster' beside the master's configuration.",
    )
    .dflt(Default::Str("")),
    flag(
        &["--refresh", "--refresh-cache"],
        "refresh_cache",
        Action::True,
        "Collect what is known about the targets (grains, say) anew.",
    ),
    flag(
        &["--max-procs"],
        "ssh_max_procs",
        Action::Int,
        "Targets to reach at a time. Default: %default.",
    )
    .dflt(Default::Int(25)),
    flag(&["--extra-filerefs"], "extra_filerefs", Action::Str, "Further files to send with the states."),
    flag(
        &["--min-extra-modules"],
        "min_extra_mods",
        Action::Str,
        "Further Python modules for the small package, separated by commas.",
    ),
    flag(
        &["--thin-extra-modules"],
        "thin_extra_mods",
        Action::Str,
        "Further Python modules for the package, separated by commas.",
    ),
    flag(
        &["--thin-exclude-saltexts"],
        "thin_exclude_saltexts",
        Action::True,
        "Leave Salt extensions out of the package.",
    ),
    flag(&["-v", "--verbose"], "verbose", Action::True, "Print the job id."),
    flag(&["-s", "--static"], "static", Action::True, "Print all results at once, when the last one is in."),
    flag(&["-w", "--wipe"], "ssh_wipe", Action::True, "Remove everything from the target afterwards."),
    flag(
        &["-W", "--rand-thin-dir"],
        "rand_thin_dir",
        Action::True,
        "Use a folder with a random name on the target, and remove it afterwards.",
    ),
    flag(
        &["-t", "--regen-thin", "--thin"],
        "regen_thin",
        Action::True,
        "Build the package anew: needed after custom modules have changed.",
    ),
    flag(&["--relenv"], "relenv", Action::True, "Use a Python of our own on the target."),
    flag(&["--python2-bin"], "python2_bin", Action::Str, "A python2 that has Salt.")
        .dflt(Default::Str("python2")),
    flag(&["--python3-bin"], "python3_bin", Action::Str, "A python3 that has Salt.")
        .dflt(Default::Str("python3")),
    flag(
        &["--pre-flight"],
        "ssh_run_pre_flight",
        Action::True,
        "Run the ssh_pre_flight script that the roster names.",
    ),
];

static SSH: Group = Group {
    title: "SSH Options",
    about: Some("Settings of the ssh client."),
    flags: &[
        flag(
            &["--remote-port-forwards"],
            "ssh_remote_port_forwards",
            Action::Str,
            "Ports to forward from the target, written as for ssh -R, separated by commas.",
        ),
        flag(
            &["--disable-keepalive"],
            "ssh_keepalive",
            Action::False,
            "Do not send keep-alive probes (ServerAliveInterval).",
        ),
        flag(
            &["--keepalive-interval"],
            "ssh_keepalive_interval",
            Action::Str,
            "Seconds between two probes (ServerAliveInterval).",
        ),
        flag(
            &["--keepalive-count-max"],
            "ssh_keepalive_count_max",
            Action::Str,
            "Lost probes after which the connection ends (ServerAliveCountMax).",
        ),
        flag(
            &["--ssh-option"],
            "ssh_options",
            Action::Append,
            "An option for ssh -o. May be given several times.",
        ),
    ],
};

static SIGN_IN: Group = Group {
    title: "Authentication Options",
    about: Some("How to sign in to the targets."),
    flags: &[
        flag(&["--priv"], "ssh_priv", Action::Str, "Private key."),
        flag(&["--priv-passwd"], "ssh_priv_passwd", Action::Str, "Passphrase of the private key.")
            .dflt(Default::Str("")),
        flag(
            &["-i", "--ignore-host-keys"],
            "ignore_host_keys",
            Action::True,
            "Accept unknown host keys without asking (StrictHostKeyChecking off).",
        ),
        flag(&["--no-host-keys"], "no_host_keys", Action::True, "Do not look at host keys at all."),
        flag(
            &["--user"],
            "ssh_user",
            Action::Str,
            "User to sign in as, where the roster names none.",
        )
        .dflt(Default::Str("root")),
        flag(&["--passwd"], "ssh_passwd", Action::Str, "Password, where the roster names none.")
            .dflt(Default::Str("")),
        flag(
            &["--askpass"],
            "ssh_askpass",
            Action::True,
            "Ask for the password on the terminal, so that nobody sees it in the list of processes.",
        ),
        flag(
            &["--key-deploy"],
            "ssh_key_deploy",
            Action::True,
            "Install the public key on the targets; together with --passwd a quick way to begin.",
        ),
        flag(
            &["--identities-only"],
            "ssh_identities_only",
            Action::True,
            "Use only the keys named in the configuration of ssh (IdentitiesOnly).",
        ),
        flag(&["--sudo"], "ssh_sudo", Action::True, "Run commands with sudo."),
        flag(
            &["--update-roster"],
            "ssh_update_roster",
            Action::True,
            "Add a host that the roster does not know to the roster file.",
        ),
    ],
};

static SCAN: Group = Group {
    title: "Scan Roster Options",
    about: Some("Settings of the scan roster."),
    flags: &[
        flag(
            &["--scan-ports"],
            "ssh_scan_ports",
            Action::Str,
            "Ports to look at, separated by commas.",
        )
        .dflt(Default::Str("22")),
        flag(&["--scan-timeout"], "ssh_scan_timeout", Action::Str, "Seconds to wait per port.")
            .dflt(Default::Float(0.01)),
    ],
};

pub static PROGRAM: Program = Program {
    name: "salt-ssh",
    usage: "[options] '<target>' <function> [arguments]",
    about: None,
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        shared::JID,
        shared::HARD_CRASH,
        shared::NO_PARSE,
        OWN,
    ],
    groups: &[
        shared::TARGET_GROUP,
        shared::DELIMITER_GROUP,
        shared::OUTPUT_GROUP,
        SSH,
        SIGN_IN,
        SCAN,
        LOGGING,
    ],
};

/// Looks at target and function.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    check_no_parse(cx);
    check_jid(cx)?;
    check_targets(cx, shared::TARGETS)?;
    let [target, rest @ ..] = cx.parsed.args.as_slice() else {
        return Err(Early::HelpThen("Insufficient arguments".into()));
    };
    let by_list = cx.parsed.bool("list");
    let target = if by_list { id_list(target, true) } else { Value::from(target.as_str()) };
    if rest.is_empty() || !target.truthy() {
        return Err(Early::HelpThen("Insufficient arguments".into()));
    }
    cx.opts.set("tgt", target);
    cx.opts.set("argv", Value::list(rest.iter()));
    if cx.parsed.bool("regen_thin") && cx.parsed.bool("relenv") {
        return Err(Early::Usage("--thin and --relenv are mutually exclusive".into()));
    }
    Ok(())
}

/// Runs the function over ssh and prints the results.
pub fn run(cx: &mut Context) -> u8 {
    cx.missing("salt-ssh")
}
