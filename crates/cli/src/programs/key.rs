//! `salt-key`: accept, reject and list the keys of minions.

use std::path::{Path, PathBuf};

use halite_client::{Client, Request};
use halite_crypt::KeyOptions;
use halite_keys::{Include, Keys, Match, Signature};
use halite_value::{Dict, Value, dict, entries};

use crate::{
    diagnostics::Report,
    display,
    fleet::{self, sign_in},
    optparse::{Action, Default, Flag, Group, Program, flag},
    programs::{Context, Early, check_output, shared},
    terminal,
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

/// What was asked for, in the order Salt looks at its options.
enum Command {
    MakeKeys,
    MakeSignature,
    List(String),
    Print(String),
    Change(Verb, String),
    Finger(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Accept,
    Reject,
    Delete,
}

impl Verb {
    /// «accepted», «rejected», «deleted»
    fn done(self) -> &'static str {
        match self {
            Self::Accept => "accepted",
            Self::Reject => "rejected",
            Self::Delete => "deleted",
        }
    }
}

fn command(cx: &Context) -> Command {
    let given = |dest: &str| cx.parsed.str(dest).filter(|text| !text.is_empty());
    // `-a x` before `-A`: the pattern wins.
    let pattern =
        |one: &str, all: &str| given(one).or_else(|| cx.parsed.bool(all).then(|| "*".to_owned()));
    if given("gen_keys").is_some() {
        return Command::MakeKeys;
    }
    if cx.parsed.bool("gen_signature") {
        return Command::MakeSignature;
    }
    if let Some(status) = given("list") {
        return Command::List(status);
    }
    if cx.parsed.bool("list_all") {
        return Command::List("all".into());
    }
    if let Some(globs) = pattern("print", "print_all") {
        return Command::Print(globs);
    }
    let verbs = [
        (Verb::Accept, "accept", "accept_all"),
        (Verb::Reject, "reject", "reject_all"),
        (Verb::Delete, "delete", "delete_all"),
    ];
    for (verb, one, all) in verbs {
        if let Some(globs) = pattern(one, all) {
            return Command::Change(verb, globs);
        }
    }
    match pattern("finger", "finger_all") {
        Some(globs) => Command::Finger(globs),
        None => Command::List("all".into()),
    }
}

/// Does what was asked with the keys. A failure is shown and ends with 1; everything else, also
/// «no such key», ends with 0 as in Salt.
pub fn run(cx: &mut Context) -> u8 {
    if cx.parsed.bool("delete_all") && !cx.parsed.args.is_empty() {
        terminal::err("Error: Delete all takes no arguments. Use -d to delete specified keys\n");
        return 0;
    }
    if sign_in::is_asked(cx) {
        return by_wheel(cx);
    }
    let keys = Keys::from_opts(cx.opts.values());
    let done = match command(cx) {
        Command::MakeKeys => make_keys(cx, &keys),
        Command::MakeSignature => make_signature(cx, &keys),
        Command::List(status) => keys.list_status(&status).map(|lists| {
            lists.remove("local");
            show(cx, &lists.into());
        }),
        Command::Print(globs) => {
            keys.texts(&Match::of(&globs.into())).map(|texts| show(cx, &texts.into()))
        }
        Command::Finger(globs) => {
            keys.fingers(&Match::of(&globs.into()), None).map(|fingers| show(cx, &fingers.into()))
        }
        Command::Change(verb, globs) => change(cx, &keys, verb, &globs),
    };
    match done {
        Ok(()) => 0,
        Err(error) => cx.report(&Report::error(error.to_string()).exit(1)),
    }
}

/// Has the running master do it, under the rights of who signs in.
fn by_wheel(cx: &Context) -> u8 {
    let mut client = match fleet::connect(cx) {
        Ok(client) => client,
        Err(code) => return code,
    };
    let (fun, what) = match command(cx) {
        Command::List(status) if status == "all" => ("key.list_all", None),
        Command::List(status) => ("key.list", Some(status)),
        Command::Print(globs) => ("key.print", Some(globs)),
        Command::Finger(globs) => ("key.finger", Some(globs)),
        Command::Change(verb, globs) => {
            return match change_by_wheel(cx, &mut client, verb, &globs) {
                Ok(()) => 0,
                Err(error) => fleet::refused(cx, &error),
            };
        }
        Command::MakeKeys | Command::MakeSignature => {
            let why = "keys are made on this machine, by its own user: leave out --eauth";
            return cx.report(&Report::error(why.to_owned()).exit(1));
        }
    };
    let arg = what.into_iter().map(Value::from).collect();
    match client.call(&Request::Wheel { fun: fun.into(), arg, kwarg: Dict::new() }) {
        Ok(answer) => {
            let ret = answer.get("return").unwrap_or_default();
            if let Value::Dict(lists) = &ret
                && fun.starts_with("key.list")
            {
                lists.remove("local");
            }
            show(cx, &ret);
            0
        }
        Err(error) => fleet::refused(cx, &error),
    }
}

fn show(cx: &Context, ret: &Value) {
    if let Err(error) = display::show(cx, ret, "", Some("key"), 0) {
        cx.report(&Report::error(format!("cannot write the result: {error}")).exit(1));
    }
}

fn include(cx: &Context, verb: Verb) -> Include {
    let flag = |name: &str| cx.parsed.bool(name);
    Include {
        accepted: verb == Verb::Reject && (flag("include_all") || flag("include_accepted")),
        rejected: verb == Verb::Accept && (flag("include_all") || flag("include_rejected")),
        denied: flag("include_denied"),
    }
}

/// Shows which of the matching keys are meant and asks for consent; `None` if there is nothing to do.
fn chosen(cx: &Context, verb: Verb, globs: &str, matching: Dict) -> Option<Dict> {
    let include = include(cx, verb);
    if verb != Verb::Delete {
        for (status, wanted) in [
            ("minions", include.accepted),
            ("minions_rejected", include.rejected),
            ("minions_denied", include.denied),
        ] {
            if !wanted {
                matching.remove(status);
            }
        }
    }
    if matching.is_empty() {
        terminal::out(&no_match(globs, include));
        return None;
    }
    terminal::out(&format!("The following keys are going to be {}:\n", verb.done()));
    show(cx, &matching.clone().into());
    (cx.opts.bool("yes") || confirmed(verb)).then_some(matching)
}

/// Changes keys through the running master.
fn change_by_wheel(
    cx: &Context,
    client: &mut Client,
    verb: Verb,
    globs: &str,
) -> Result<(), halite_client::Error> {
    let mut wheel = |fun: &str, arg: Value, kwarg: Dict| {
        let answer = client.call(&Request::Wheel { fun: fun.into(), arg: vec![arg], kwarg })?;
        let ret = answer.get("return").and_then(|ret| ret.as_dict().cloned());
        Ok::<Dict, halite_client::Error>(ret.unwrap_or_default())
    };
    let matching = wheel("key.name_match", globs.into(), Dict::new())?;
    matching.remove("local");
    let Some(meant) = chosen(cx, verb, globs, matching) else { return Ok(()) };
    let include = include(cx, verb);
    let denied = include.denied;
    let (fun, kwarg) = match verb {
        Verb::Accept => (
            "key.accept_dict",
            entries! { "include_rejected" => include.rejected, "include_denied" => denied },
        ),
        Verb::Reject => (
            "key.reject_dict",
            entries! { "include_accepted" => include.accepted, "include_denied" => denied },
        ),
        Verb::Delete => ("key.delete_dict", Dict::new()),
    };
    wheel(fun, meant.clone().into(), kwarg)?;
    for id in meant.values().iter().flat_map(|ids| ids.items_of_sequence().unwrap_or_default()) {
        terminal::out(&format!("Key for minion {} {}.\n", id.to_str(), verb.done()));
    }
    Ok(())
}

fn change(cx: &Context, keys: &Keys, verb: Verb, globs: &str) -> Result<(), halite_keys::Error> {
    let matching = keys.matching(&Match::of(&globs.into()))?;
    let Some(meant) = chosen(cx, verb, globs, matching) else { return Ok(()) };
    let include = include(cx, verb);
    let listed = Match::Dict(meant.clone());
    let changed = match verb {
        Verb::Accept => keys.accept(&listed, include)?,
        Verb::Reject => keys.reject(&listed, include)?,
        Verb::Delete => keys.delete(&listed)?,
    };
    for id in &changed.invalid {
        terminal::err(&format!("Unable to accept invalid key for {id}.\n"));
    }
    // differs: Salt says «accepted» of a file that holds no key, and leaves it pending.
    let done = if verb == Verb::Delete { &meant } else { &changed.keys };
    for id in done.values().iter().flat_map(|ids| ids.items_of_sequence().unwrap_or_default()) {
        let id = id.to_str();
        if !changed.invalid.iter().any(|invalid| **invalid == *id) {
            terminal::out(&format!("Key for minion {id} {}.\n", verb.done()));
        }
    }
    tell_master(cx, &changed.events);
    if verb != Verb::Accept && cx.opts.bool("rotate_aes_key") {
        let cachedir = cx.opts.str("cachedir");
        halite_keys::request_rotation(Path::new(&*cachedir), &cx.opts.str("id"), owner(cx))?;
    }
    Ok(())
}

fn no_match(globs: &str, include: Include) -> String {
    let mut states = vec!["unaccepted"];
    let more = [
        ("accepted", include.accepted),
        ("rejected", include.rejected),
        ("denied", include.denied),
    ];
    states.extend(more.iter().filter(|(_, asked)| *asked).map(|(state, _)| *state));
    let states = match states.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    };
    format!("The key glob '{globs}' does not match any {states} keys.\n")
}

/// Asks the user. No answer at all (no input) is no.
fn confirmed(verb: Verb) -> bool {
    let (question, silence) = match verb {
        Verb::Delete => ("Proceed? [N/y] ", false),
        _ => ("Proceed? [n/Y] ", true),
    };
    terminal::out(question);
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => false,
        Ok(_) => match answer.trim_end_matches('\n') {
            "" => silence,
            answer => answer.to_lowercase().starts_with('y'),
        },
    }
}

/// Fires `salt/key` events, if a master runs.
fn tell_master(cx: &Context, events: &[Dict]) {
    if events.is_empty() {
        return;
    }
    let Ok(mut master) = Client::connect(Path::new(&*cx.opts.str("sock_dir"))) else { return };
    let keep = cx.parsed.bool("preserve_minions");
    for event in events {
        let data = event.shallow_copy();
        if keep {
            data.insert(halite_client::PRESERVE, true);
        }
        let fire = Request::Fire { tag: "salt/key".into(), data };
        if let Err(error) = master.call(&fire) {
            tracing::warn!("the master did not take an event: {error}");
            return;
        }
    }
}

/// Returns the user id of the master's user, when files shall belong to it.
fn owner(cx: &Context) -> Option<u32> {
    let user = nix::unistd::User::from_name(&cx.opts.str("user")).ok()??;
    nix::unistd::geteuid().is_root().then(|| user.uid.as_raw())
}

fn bits(cx: &Context) -> u32 {
    cx.parsed.int("keysize").and_then(|bits| u32::try_from(bits).ok()).unwrap_or(2048)
}

fn make_keys(cx: &Context, keys: &Keys) -> Result<(), halite_keys::Error> {
    let name = cx.parsed.str("gen_keys").unwrap_or_default();
    let folder = cx.parsed.str("gen_keys_dir").unwrap_or_else(|| ".".into());
    let owner = cx.parsed.is_explicit("user").then(|| owner(cx)).flatten();
    let options = KeyOptions { bits: bits(cx), owner, ..KeyOptions::default() };
    // differs: 3008 makes a pair for the master beside it, and ends with a traceback.
    let finger = keys.make_pair(Some(Path::new(&folder)), &name, &options)?;
    show(cx, &dict! { "return" => finger });
    Ok(())
}

fn make_signature(cx: &Context, keys: &Keys) -> Result<(), halite_keys::Error> {
    let given = |dest: &str| cx.parsed.str(dest).filter(|text| !text.is_empty()).map(PathBuf::from);
    let (private, public, folder) = (given("priv"), given("pub"), given("signature_path"));
    let configured = cx.opts.opt_str("master_pubkey_signature");
    let file_name = halite_keys::signature_file(configured.as_deref(), &cx.opts.str("id"));
    let sign_name = cx.opts.opt_str("master_sign_key_name").unwrap_or_else(|| "master_sign".into());
    let passphrase = cx.opts.opt_str("signing_key_pass").filter(|pass| !pass.is_empty());
    let algo = cx.opts.str("signing_algorithm").parse().unwrap_or_default();
    let signed = keys.sign(&Signature {
        private: private.as_deref(),
        public: public.as_deref(),
        folder: folder.as_deref(),
        auto_create: cx.parsed.bool("auto_create"),
        sign_name: &sign_name,
        passphrase: passphrase.as_deref(),
        bits: bits(cx),
        algo,
        file_name: &file_name,
    })?;
    let ret = match signed {
        Ok(new) => Value::from(new),
        Err(why) => why.into(),
    };
    show(cx, &dict! { "return" => ret });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_match() {
        let check = |include: Include, states: &str| {
            let expected = format!("The key glob 'x' does not match any {states} keys.\n");
            assert_eq!(no_match("x", include), expected);
        };
        check(Include::default(), "unaccepted");
        check(Include { denied: true, ..Include::default() }, "unaccepted or denied");
        let all = Include { accepted: true, rejected: true, denied: true };
        check(all, "unaccepted, accepted, rejected or denied");
    }
}
