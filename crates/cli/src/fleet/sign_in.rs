//! Signing in as somebody else: `-a SYSTEM`, `--username`, `--password`, `-T`.
//!
//! What is not given on the command line is asked for. `-T` trades the password for a token, which
//! is kept in `token_file` and used by later commands until it ends.

use std::{
    io::{self, IsTerminal as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
};

use halite_client::{Client, Error, Request};
use halite_value::{Dict, entries};
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

use crate::{diagnostics::Report, programs::Context, terminal};

/// Tells whether other rights than the caller's are to be used.
#[must_use]
pub fn is_asked(cx: &Context) -> bool {
    cx.parsed.str("eauth").is_some_and(|eauth| !eauth.is_empty()) || kept_token(cx).is_some()
}

/// A token an earlier `-T` left: for those who have no rights of their own.
fn kept_token(cx: &Context) -> Option<halite_value::SmolStr> {
    let token = cx.opts.opt_str("token").filter(|token| !token.is_empty())?;
    (!nix::unistd::geteuid().is_root()).then_some(token)
}

/// Gives the connection the rights the command line asks for. Without `-a` they stay those of the
/// user who calls, or of the token an earlier `-T` left.
pub fn sign_in(cx: &Context, client: &mut Client) -> Result<(), u8> {
    if let Some(eauth) = cx.parsed.str("eauth").filter(|eauth| !eauth.is_empty()) {
        let mut known: Vec<_> = halite_master::eauth::built_in().into_keys().collect();
        // Whether a user's own system is there is for the master to say.
        known.extend(cx.opts.dict("external_auth").keys().iter().map(|name| name.to_str()));
        known.sort_unstable();
        known.dedup();
        if !known.iter().any(|name| *name == eauth) {
            terminal::out(&format!(
                "The specified external authentication system \"{eauth}\" is not available\n\
                 Available eauth types: {}\n",
                known.join(", ")
            ));
            // Only `salt` itself ends for it; the other programs write it to the log.
            if cx.program.name == "salt" {
                terminal::err("ERROR: Authentication failed\n");
                return Err(2);
            }
            tracing::error!("Authentication failed");
            return Err(0);
        }
    }
    let Some(credentials) = credentials(cx) else { return Ok(()) };
    let makes_token = cx.parsed.bool("mktoken") && !credentials.contains("token");
    if !makes_token {
        client.sign_in(credentials);
        return Ok(());
    }
    match client.call(&Request::MakeToken { load: credentials.clone() }) {
        Ok(made) => {
            let token = made.get_str("token").unwrap_or_default();
            keep(cx, &token)?;
            client.sign_in(entries! { "token" => token });
            Ok(())
        }
        // Salt goes on without a token here, and is refused for that.
        Err(Error::Refused { .. }) => {
            client.sign_in(credentials);
            Ok(())
        }
        Err(error) => Err(cx.report(&Report::error(error.to_string()).exit(2))),
    }
}

/// Returns what to sign in with; `None`: as the calling user.
fn credentials(cx: &Context) -> Option<Dict> {
    let given = |dest: &str| cx.parsed.str(dest).filter(|text| !text.is_empty());
    let Some(eauth) = given("eauth") else {
        return kept_token(cx).map(|token| entries! { "token" => token });
    };
    let username = given("username").unwrap_or_else(|| ask("username: ", true));
    let password = given("password").unwrap_or_else(|| ask("password: ", false));
    Some(entries! { "eauth" => eauth, "username" => username, "password" => password })
}

fn keep(cx: &Context, token: &str) -> Result<(), u8> {
    let path = cx.opts.str("token_file");
    let write = || -> io::Result<()> {
        // Never readable by others, not even for a moment.
        let _ = std::fs::remove_file(&*path);
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.write(true).create_new(true).mode(0o600).open(&*path)?;
        file.write_all(token.as_bytes())
    };
    write().map_err(|error| cx.report(&Report::error(format!("{path}: {error}")).exit(1)))
}

/// Asks the user; a secret is not shown while it is typed.
fn ask(question: &str, visible: bool) -> String {
    let stdin = io::stdin();
    terminal::err(question);
    let shown = (!visible && stdin.is_terminal())
        .then(|| {
            let before = tcgetattr(&stdin).ok()?;
            let mut silent = before.clone();
            silent.local_flags.remove(LocalFlags::ECHO);
            tcsetattr(&stdin, SetArg::TCSADRAIN, &silent).ok()?;
            Some(before)
        })
        .flatten();
    let mut line = String::new();
    let _ = stdin.read_line(&mut line);
    if let Some(before) = shown {
        let _ = tcsetattr(&stdin, SetArg::TCSADRAIN, &before);
        terminal::err("\n");
    }
    line.trim_end_matches(['\n', '\r']).to_owned()
}
