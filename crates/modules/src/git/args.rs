//! What the functions of `git` take alike: who runs git, with which options, with which keys.
//!
//! Windows' passwords and whether a failure is logged are taken and not looked at; git's output is
//! read as UTF-8 whatever the encoding given.

use halite_spec::{Args, Cx, Result};
use halite_value::Value;

use super::{Git, here, options};

/// Who runs git.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Who {
    /// Who runs git.
    pub user: Option<String>,
    /// For Windows.
    pub password: Option<String>,
}

impl Who {
    /// Git as run by them in a working copy.
    pub fn at(self, cx: &Cx, cwd: &str) -> Result<Git> {
        let cwd = Some(here(cx, cwd, self.user.as_ref())?);
        Ok(Git { cwd, user: self.user, ..Git::default() })
    }
}

/// What becomes of git's output.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Output {
    /// Do not log a failure as an error.
    #[default(false)]
    pub ignore_retcode: bool,
    /// The encoding of the output; UTF-8 is assumed.
    pub output_encoding: Option<String>,
}

/// What even the simplest functions take.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Plain {
    #[group]
    pub who: Who,
    #[group]
    pub output: Output,
}

/// Options the caller adds.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Options {
    /// Further options of the command.
    #[default(Value::from(""))]
    pub opts: Value,
    /// Options of git itself, before the command.
    #[default(Value::from(""))]
    pub git_opts: Value,
    #[group]
    pub who: Who,
}

impl Options {
    /// Git in a working copy, or in none, and the options for its command.
    pub fn at(self, cx: &Cx, cwd: Option<&str>) -> Result<(Git, Vec<String>)> {
        let Self { opts, git_opts, who: Who { user, .. } } = self;
        let before = options(&git_opts)?;
        let cwd = cwd.map(|cwd| here(cx, cwd, user.as_ref())).transpose()?;
        Ok((Git { before, cwd, user, ..Git::default() }, options(&opts)?))
    }
}

/// What commands take that stay on the machine.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Local {
    #[group]
    pub options: Options,
    #[group]
    pub output: Output,
}

/// What commands take that may need keys all the same: for submodules, or files kept elsewhere.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Keyed {
    #[group]
    pub options: Options,
    /// Private keys for ssh.
    #[default(Vec::new())]
    #[shown(Value::Null)]
    pub identity: Vec<String>,
    #[group]
    pub output: Output,
}

impl Keyed {
    /// Git in a working copy, and the options for its command.
    pub fn at(self, cx: &Cx, cwd: &str) -> Result<(Git, Vec<String>)> {
        let (git, opts) = self.options.at(cx, Some(cwd))?;
        Ok((Git { identity: self.identity, ..git }, opts))
    }
}

/// What commands take that talk to another machine.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Abroad {
    #[group]
    pub options: Options,
    /// Private keys for ssh.
    #[default(Vec::new())]
    #[shown(Value::Null)]
    pub identity: Vec<String>,
    /// Do not log a failure as an error.
    #[default(false)]
    pub ignore_retcode: bool,
    /// The environment `salt://` keys come from.
    #[default("base".to_owned())]
    pub saltenv: String,
    /// The encoding of the output; UTF-8 is assumed.
    pub output_encoding: Option<String>,
}

impl Abroad {
    /// Git in a working copy, and the options for its command.
    pub fn at(self, cx: &Cx, cwd: &str) -> Result<(Git, Vec<String>)> {
        let (git, opts) = self.options.at(cx, Some(cwd))?;
        Ok((Git { identity: self.identity, saltenv: Some(self.saltenv), ..git }, opts))
    }
}

/// How to log in over https.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Https {
    /// The user for https.
    pub https_user: Option<String>,
    /// The password for https.
    pub https_pass: Option<String>,
}

impl Https {
    /// The address with name and password in it.
    pub fn url(&self, url: &str) -> Result<String> {
        super::with_auth(url, self.https_user.as_deref(), self.https_pass.as_deref())
    }
}

/// How to log in elsewhere.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Login {
    /// Private keys for ssh.
    #[default(Vec::new())]
    #[shown(Value::Null)]
    pub identity: Vec<String>,
    #[group]
    pub https: Https,
}
