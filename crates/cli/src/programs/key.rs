//! `salt-key`: accept, reject and list the keys of minions.

use crate::{
    optparse::{Action, Default, Flag, Group, Program, flag},
    programs::{Context, Early, check_output, shared},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL_LONG,
        shared::log_file("key_logfile", "File to log to. Default: '/var/log/salt/key'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static OWN: &[Flag] = &[
    flag(&["-q", "--quiet"], "quiet", Action::True, "Print nothing."),
    flag(&["-y", "--yes"], "yes", Action::True, "Answer every question with yes. Default: %default."),
    flag(
        &["--rotate-aes-key"],
        "rotate_aes_key",
        Action::Str,
        "Whether the master changes its session key when keys are deleted or rejected. False is less secure. Default: %default.",
    )
    .dflt(Default::Bool(true)),
    flag(
        &["--preserve-minions"],
        "preserve_minions",
        Action::Str,
        "Whether the data of minions is kept when their keys are deleted. Default: %default.",
    )
    .dflt(Default::Bool(false)),
];

static ACTIONS: Group = Group {
    title: "Actions",
    about: None,
    flags: &[
        flag(
            &["-l", "--list"],
            "list",
            Action::Str,
            "List keys: 'pre', 'un' or 'unaccepted' for those that wait, 'acc' or 'accepted', 'rej' or 'rejected', 'den' or 'denied', or 'all'.",
        )
        .dflt(Default::Str(""))
        .meta("ARG"),
        flag(&["-L", "--list-all"], "list_all", Action::True, "List all keys, as \"--list all\" does."),
        flag(
            &["-a", "--accept"],
            "accept",
            Action::Str,
            "Accept the waiting keys that match a pattern; with --include-rejected and --include-denied also those.",
        )
        .dflt(Default::Str("")),
        flag(&["-A", "--accept-all"], "accept_all", Action::True, "Accept all waiting keys."),
        flag(
            &["-r", "--reject"],
            "reject",
            Action::Str,
            "Reject the waiting keys that match a pattern; with --include-accepted and --include-denied also those.",
        )
        .dflt(Default::Str("")),
        flag(&["-R", "--reject-all"], "reject_all", Action::True, "Reject all waiting keys."),
        flag(
            &["--include-all"],
            "include_all",
            Action::True,
            "Consider rejected keys when accepting, and accepted ones when rejecting. Better say which.",
        ),
        flag(&["--include-accepted"], "include_accepted", Action::True, "Consider accepted keys when rejecting."),
        flag(&["--include-rejected"], "include_rejected", Action::True, "Consider rejected keys when accepting."),
        flag(
            &["--include-denied"],
            "include_denied",
            Action::True,
            "Consider denied keys when accepting or rejecting.",
        ),
        flag(&["-p", "--print"], "print", Action::Str, "Print the keys that match a pattern.")
            .dflt(Default::Str("")),
        flag(&["-P", "--print-all"], "print_all", Action::True, "Print all keys."),
        flag(&["-d", "--delete"], "delete", Action::Str, "Delete the keys that match a pattern.")
            .dflt(Default::Str("")),
        flag(&["-D", "--delete-all"], "delete_all", Action::True, "Delete all keys."),
        flag(
            &["-f", "--finger"],
            "finger",
            Action::Str,
            "Print the fingerprints of the keys that match a pattern.",
        )
        .dflt(Default::Str("")),
        flag(&["-F", "--finger-all"], "finger_all", Action::True, "Print all fingerprints."),
    ],
};

static GENERATION: Group = Group {
    title: "Key Generation Options",
    about: None,
    flags: &[
        flag(&["--gen-keys"], "gen_keys", Action::Str, "Make a pair of keys under this name.")
            .dflt(Default::Str("")),
        flag(
            &["--gen-keys-dir"],
            "gen_keys_dir",
            Action::Str,
            "Folder for that pair. Default: '%default'.",
        )
        .dflt(Default::Str(".")),
        flag(
            &["--keysize"],
            "keysize",
            Action::Int,
            "Bits of that pair, 2048 or more. Default: %default.",
        )
        .dflt(Default::Int(2048)),
        flag(
            &["--gen-signature"],
            "gen_signature",
            Action::True,
            "Sign the master's public key, so that minions can check it without asking. The signature is written to master_pubkey_signature; --auto-create makes the key that signs.",
        ),
        flag(&["--priv"], "priv", Action::Str, "Private key that signs.").dflt(Default::Str("")),
        flag(&["--signature-path"], "signature_path", Action::Str, "Folder for the signature.")
            .dflt(Default::Str("")),
        flag(&["--pub"], "pub", Action::Str, "Public key to sign.").dflt(Default::Str("")),
        flag(
            &["--auto-create"],
            "auto_create",
            Action::True,
            "Make the pair of keys that signs, if it is missing.",
        ),
    ],
};

pub static PROGRAM: Program = Program {
    name: "salt-key",
    usage: "[options]",
    about: Some("Manages the keys by which minions and master know each other."),
    flags: &[
        shared::VERSION,
        shared::SALTFILE,
        shared::CONFIG_DIR,
        shared::USER,
        shared::HARD_CRASH,
        OWN,
    ],
    groups: &[shared::EAUTH_GROUP_LONG, shared::OUTPUT_GROUP, ACTIONS, GENERATION, LOGGING],
};

/// Looks at the options: words that stand for truth, lists that exist, sizes that make sense.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    for dest in ["rotate_aes_key", "preserve_minions"] {
        match cx.parsed.str(dest).map(|word| word.to_lowercase()).as_deref() {
            Some("true") if cx.parsed.is_explicit(dest) => cx.parsed.set(dest, true),
            Some("false") if cx.parsed.is_explicit(dest) => cx.parsed.set(dest, false),
            _ => {}
        }
    }
    let list = cx.parsed.str("list").unwrap_or_default();
    let known = ["acc", "pre", "un", "rej", "den", "all"];
    if !list.is_empty() && !known.iter().any(|start| list.starts_with(start)) {
        return Err(Early::Usage(format!("'{list}' is not a valid argument to '--list'")));
    }
    match cx.parsed.int("keysize").unwrap_or(2048) {
        ..2048 => Err(Early::Usage("The minimum value for keysize is 2048".into())),
        32769.. => Err(Early::Usage("The maximum value for keysize is 32768".into())),
        _ => Ok(()),
    }
}

/// Does what was asked with the keys.
pub fn run(cx: &mut Context) -> u8 {
    cx.missing("salt-key")
}
