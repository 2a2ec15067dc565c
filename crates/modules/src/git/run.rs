//! How git is run: as a user, in a folder, with identities for ssh; never through a shell, never
//! asking anybody. Credentials in URLs are blotted out of every message.

use std::path::PathBuf;

use halite_pyregex::{Flags, PyRegex};
use halite_spec::{Command, Cx, Error, Result};

use crate::cmd::shlex;

/// The circumstances of a run.
#[derive(Clone, Debug, Default)]
pub struct Git {
    pub cwd: Option<PathBuf>,
    pub user: Option<String>,
    /// Private keys to try, one after the other; `salt://` ones are fetched.
    pub identity: Vec<String>,
    pub saltenv: Option<String>,
    /// Options of git itself, before the command.
    pub before: Vec<String>,
}

/// What git said.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Hides user and password of URLs.
pub fn redacted(text: &str) -> String {
    let regex = PyRegex::cached(r"(https?)://.*@", Flags::NONE);
    let hidden = regex.and_then(|regex| {
        let template = regex.template(r"\1://<redacted>@")?;
        regex.sub(&template, text, 0)
    });
    hidden.map_or_else(|_| text.to_owned(), |(text, _)| text)
}

/// Puts user and password into an `https` URL.
pub fn with_auth(url: &str, user: Option<&str>, password: Option<&str>) -> Result<String> {
    let Some(user) = user.filter(|user| !user.is_empty()) else {
        if password.is_some_and(|password| !password.is_empty()) {
            return Err(Error::invalid("A user is required when a password is supplied"));
        }
        return Ok(url.to_owned());
    };
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(Error::invalid("Basic Auth only supported for HTTPS"));
    };
    let rest = match rest.split_once('@') {
        Some((auth, rest)) if !auth.contains('/') => rest,
        _ => rest,
    };
    let password = password.map(|password| format!(":{}", quoted(password))).unwrap_or_default();
    Ok(format!("https://{}{password}@{rest}", quoted(user)))
}

/// Percent-encodes as Python's `quote(text, safe='')`.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

impl Git {
    pub fn at(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..Self::default() }
    }

    fn command(&self, words: &[String], looks: bool, merged: bool) -> Command {
        let line =
            std::iter::once("git".to_owned()).chain(self.before.iter().chain(words).cloned());
        let mut command = Command::line(line).env("GIT_TERMINAL_PROMPT", "0");
        command.cwd.clone_from(&self.cwd);
        command.user.clone_from(&self.user);
        command.merge_stderr = merged;
        if looks { command.query() } else { command }
    }

    fn once(&self, cx: &Cx, command: &Command) -> Result<Ran> {
        let output = cx.host.run(command)?;
        let text = |text: String| text.trim_end_matches('\n').to_owned();
        Ok(Ran {
            code: output.code,
            stdout: text(output.stdout_text()),
            stderr: text(output.stderr_text()),
        })
    }

    /// Runs git whatever comes of it; tries the identities in turn.
    fn attempt(&self, cx: &Cx, words: &[String], looks: bool, merged: bool) -> Result<Ran> {
        let command = self.command(words, looks, merged);
        if self.identity.is_empty() {
            return self.once(cx, &command);
        }
        let (mut missing, mut errors) = (Vec::new(), Vec::new());
        for identity in &self.identity {
            let path = if identity.contains("://") {
                let env = self.saltenv.as_deref().unwrap_or("base");
                cx.files.cache(identity, env)?
            } else {
                let path = PathBuf::from(identity);
                cx.host.exists(&path)?.then_some(path)
            };
            let Some(path) = path else {
                missing.push(identity.clone());
                continue;
            };
            let ssh = format!(
                "ssh -oStrictHostKeyChecking=no -oPasswordAuthentication=no \
                 -oKbdInteractiveAuthentication=no -oChallengeResponseAuthentication=no \
                 -oIdentitiesOnly=yes -oBatchMode=yes -i {}",
                shlex::quote(&path.to_string_lossy())
            );
            let ran = self.once(cx, &command.clone().env("GIT_SSH_COMMAND", ssh))?;
            if ran.code == 0 {
                return Ok(ran);
            }
            errors.push(redacted(if merged { &ran.stdout } else { &ran.stderr }));
        }
        let mut text =
            format!("Unable to authenticate using identity file:\n\n{}", errors.join("\n"));
        if !missing.is_empty() {
            if !errors.is_empty() {
                text += "\n\n";
            }
            let missing = missing.join(", ");
            text += &format!("The following identity file(s) were not found: {missing}");
        }
        Err(Error::failed(text))
    }

    fn succeed(&self, cx: &Cx, words: &[String], looks: bool, merged: bool) -> Result<String> {
        let ran = self.attempt(cx, words, looks, merged)?;
        if ran.code == 0 {
            return Ok(ran.stdout);
        }
        let words: Vec<&str> = self.before.iter().chain(words).map(String::as_str).collect();
        let mut text = format!("Command 'git {}' failed", redacted(&words.join(" ")));
        let said = if merged { &ran.stdout } else { &ran.stderr };
        if !said.is_empty() {
            text += &format!(": {}", redacted(said));
        }
        Err(Error::failed(text))
    }

    /// Runs a command that only looks; its output.
    pub fn ask<T: Into<String>>(
        &self,
        cx: &Cx,
        words: impl IntoIterator<Item = T>,
    ) -> Result<String> {
        self.succeed(cx, &all(words), true, false)
    }

    /// As [`Git::ask`], with everything it said, also when it failed.
    pub fn ask_all<T: Into<String>>(
        &self,
        cx: &Cx,
        words: impl IntoIterator<Item = T>,
    ) -> Result<Ran> {
        self.attempt(cx, &all(words), true, false)
    }

    /// Runs a command that changes something; its output.
    pub fn run<T: Into<String>>(
        &self,
        cx: &Cx,
        words: impl IntoIterator<Item = T>,
    ) -> Result<String> {
        self.succeed(cx, &all(words), false, false)
    }

    /// As [`Git::run`], with complaints among the output, in the order written.
    pub fn run_merged<T: Into<String>>(
        &self,
        cx: &Cx,
        words: impl IntoIterator<Item = T>,
    ) -> Result<String> {
        self.succeed(cx, &all(words), false, true)
    }

    /// As [`Git::run`], with everything it said, also when it failed.
    pub fn run_all<T: Into<String>>(
        &self,
        cx: &Cx,
        words: impl IntoIterator<Item = T>,
    ) -> Result<Ran> {
        self.attempt(cx, &all(words), false, false)
    }
}

fn all<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Vec<String> {
    words.into_iter().map(Into::into).collect()
}

/// Takes the command line off an error, as states show it.
pub fn without_command(error: &Error) -> String {
    let text = error.to_string();
    match text.split_once("' failed: ").or_else(|| text.split_once("\" failed: ")) {
        Some((start, rest)) if start.starts_with("Command ") => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials() {
        let url = with_auth("https://x.example/r.git", Some("me"), Some("a b/c")).unwrap();
        assert_eq!(url, "https://me:a%20b%2Fc@x.example/r.git");
        assert_eq!(redacted(&url), "https://<redacted>@x.example/r.git");
        assert!(with_auth("http://x", Some("me"), None).is_err());
        assert_eq!(with_auth("git@x:y", None, None).unwrap(), "git@x:y");
        assert_eq!(redacted("git@x:y"), "git@x:y");
    }
}
