//! `salt-cloud`: create and destroy machines in clouds.

use halite_value::Value;

use crate::{
    optparse::{Action, Group, Program, flag},
    programs::{Context, Early, check_output, exclusive, long_name, shared},
};

static LOGGING: Group = Group {
    title: shared::LOGGING_TITLE,
    about: Some(shared::LOGGING_ABOUT),
    flags: &[
        shared::LOG_LEVEL,
        shared::log_file("log_file", "File to log to. Default: '/var/log/salt/cloud'."),
        shared::LOG_FILE_LEVEL,
    ],
};

static EXECUTION: Group = Group {
    title: "Execution Options",
    about: None,
    flags: &[
        flag(&["-L", "--location"], "location", Action::Str, "Region to work in."),
        flag(
            &["-a", "--action"],
            "action",
            Action::Str,
            "Do something this provider knows to the machines named.",
        ),
        flag(
            &["-f", "--function"],
            "function",
            Action::Several(2),
            "Call a function of a provider that is not about a machine.",
        )
        .meta("<FUNC-NAME> <PROVIDER>"),
        flag(&["-p", "--profile"], "profile", Action::Str, "Create machines by this profile."),
        flag(
            &["-m", "--map"],
            "map",
            Action::Str,
            "Create the machines a map file lists, or with -Q, -F, -S or -d do that to them; names restrict it.",
        ),
        flag(
            &["-H", "--hard"],
            "hard",
            Action::True,
            "Destroy every machine the map does not mention. CAUTION: nothing brings them back. The configuration must allow it.",
        ),
        flag(&["-d", "--destroy"], "destroy", Action::True, "Destroy the machines named."),
        flag(&["--no-deploy"], "deploy", Action::False, "Do not install anything on new machines."),
        flag(
            &["-P", "--parallel"],
            "parallel",
            Action::True,
            "Create all machines at the same time.",
        ),
        flag(
            &["-u", "--update-bootstrap"],
            "update_bootstrap",
            Action::True,
            "Fetch the newest bootstrap script.",
        ),
        flag(
            &["-y", "--assume-yes"],
            "assume_yes",
            Action::True,
            "Answer every question with yes.",
        ),
        flag(
            &["-k", "--keep-tmp"],
            "keep_tmp",
            Action::True,
            "Keep the files in /tmp when the script is done.",
        ),
        flag(
            &["--show-deploy-args"],
            "show_deploy_args",
            Action::True,
            "Also print how the minion was installed.",
        ),
        flag(&["--script-args"], "script_args", Action::Str, "Arguments for the bootstrap script."),
        flag(
            &["-b", "--bootstrap"],
            "bootstrap",
            Action::Str,
            "Install a minion on an existing machine.",
        )
        .dflt(crate::optparse::Default::Bool(false))
        .meta("<HOST> [MINION_ID] [OPTIONS...]"),
    ],
};

static QUERIES: Group = Group {
    title: "Query Options",
    about: None,
    flags: &[
        flag(
            &["-Q", "--query"],
            "query",
            Action::True,
            "Print a few facts about the machines there are.",
        ),
        flag(
            &["-F", "--full-query"],
            "full_query",
            Action::True,
            "Print all facts about the machines there are.",
        ),
        flag(
            &["-S", "--select-query"],
            "select_query",
            Action::True,
            "Print the configured facts about the machines there are.",
        ),
        flag(
            &["--list-providers"],
            "list_providers",
            Action::True,
            "List the configured providers.",
        ),
        flag(
            &["--list-profiles"],
            "list_profiles",
            Action::Str,
            "List the profiles of a provider, or of \"all\".",
        ),
    ],
};

static LISTINGS: Group = Group {
    title: "Cloud Providers Listings",
    about: None,
    flags: &[
        flag(
            &["--list-locations"],
            "list_locations",
            Action::Str,
            "List the regions of a provider, or of \"all\".",
        ),
        flag(
            &["--list-images"],
            "list_images",
            Action::Str,
            "List the images of a provider, or of \"all\".",
        ),
        flag(
            &["--list-sizes"],
            "list_sizes",
            Action::Str,
            "List the sizes of a provider, or of \"all\".",
        ),
    ],
};

static CREDENTIALS: Group = Group {
    title: "Cloud Credentials",
    about: None,
    flags: &[flag(
        &["--set-password"],
        "set_password",
        Action::Several(2),
        "Store the password of a provider in the keyring. No longer supported.",
    )
    .meta("<USERNAME> <PROVIDER>")],
};

pub static PROGRAM: Program = Program {
    name: "salt-cloud",
    usage: "[options] <-m MAP | -p PROFILE> <NAME> [NAME2 ...]",
    about: Some("Creates, lists and destroys machines in clouds, by profiles and maps."),
    flags: &[shared::VERSION, shared::SALTFILE, shared::CONFIG_DIR, shared::HARD_CRASH],
    groups: &[EXECUTION, QUERIES, LISTINGS, CREDENTIALS, shared::OUTPUT_GROUP, LOGGING],
};

/// Looks at queries and listings that exclude each other.
pub(crate) fn check(cx: &mut Context) -> Result<(), Early> {
    check_output(cx)?;
    for group in [&QUERIES, &LISTINGS] {
        let chosen = group.flags.iter().filter(|flag| cx.parsed.bool(flag.dest));
        exclusive(&chosen.map(long_name).collect::<Vec<_>>())?;
    }
    if cx.parsed.bool("list_providers") && !cx.parsed.args.is_empty() {
        let message = "'--list-providers' does not accept any arguments";
        return Err(Early::Usage(message.into()));
    }
    if let Some(function) = cx.parsed.get("function").items_of_sequence() {
        let provider = function.get(1).map(Value::to_str).unwrap_or_default();
        if provider.starts_with('-') || provider.contains('=') {
            let message = "--function expects two arguments: <function-name> <provider>";
            return Err(Early::Usage(message.into()));
        }
    }
    if !cx.parsed.args.is_empty() {
        cx.opts.set("names", Value::list(cx.parsed.args.iter()));
    }
    Ok(())
}

/// Does what was asked in the cloud.
pub fn run(cx: &mut Context) -> u8 {
    cx.missing("salt-cloud")
}
