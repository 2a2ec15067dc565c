//! Configuration of git: of a repository, or of a user.

use halite_spec::{Args, Cx, Error, Rest, Result, alias, function};
use halite_value::{Dict, Value};

use super::{Git, Plain, Who, here, words};

alias! { config_get_regex = config_get_regexp }

/// Which configuration is meant, and who asks.
#[derive(Args, Clone, Debug)]
#[arg(defaults)]
pub struct Place {
    /// The working copy.
    pub cwd: Option<String>,
    #[group]
    pub plain: Plain,
}

/// Where configuration is read and written.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub git: Git,
    pub global: bool,
}

impl Config {
    fn of(cx: &Cx, place: Place, global: bool) -> Result<Self> {
        let Place { cwd, plain: Plain { who: Who { user, .. }, .. } } = place;
        let cwd = match cwd {
            Some(cwd) => Some(here(cx, &cwd, user.as_ref())?),
            None if global => None,
            None => {
                return Err(Error::invalid("'cwd' argument required unless global=True"));
            }
        };
        Ok(Self { git: Git { cwd, user, ..Git::default() }, global })
    }

    fn line(&self, words_after: &[&str]) -> Vec<String> {
        let mut line = words(&["config"]);
        line.push(if self.global { "--global" } else { "--local" }.to_owned());
        line.extend(words(words_after));
        line
    }

    /// All values of a key; `None` if it is not set.
    pub fn get(&self, cx: &Cx, key: &str) -> Result<Option<Vec<String>>> {
        let ran = self.git.ask_all(cx, self.line(&["--get-all", key]))?;
        match ran.code {
            0 => Ok(Some(ran.stdout.lines().map(str::to_owned).collect())),
            1 => Ok(None),
            _ => Err(Error::failed(ran.stderr)),
        }
    }

    /// Keys that fit an expression, with their values.
    pub fn matching(
        &self,
        cx: &Cx,
        key: &str,
        value: Option<&str>,
    ) -> Result<Vec<(String, Vec<String>)>> {
        let mut line = self.line(&["--get-regexp", key]);
        line.extend(value.map(str::to_owned));
        let ran = self.git.ask_all(cx, line)?;
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for line in ran.stdout.lines() {
            let Some((key, value)) = line.split_once(char::is_whitespace) else { continue };
            match found.iter_mut().find(|(own, _)| own == key) {
                Some((_, values)) => values.push(value.to_owned()),
                None => found.push((key.to_owned(), vec![value.to_owned()])),
            }
        }
        Ok(found)
    }

    /// Replaces the values of a key.
    pub fn set(&self, cx: &Cx, key: &str, values: &[String], add: bool) -> Result<()> {
        for (at, value) in values.iter().enumerate() {
            let how = if at == 0 && !add { "--replace-all" } else { "--add" };
            self.git.run(cx, self.line(&[how, key, value]))?;
        }
        Ok(())
    }

    /// Removes a key, or those of its values that fit.
    pub fn unset(&self, cx: &Cx, key: &str, value: Option<&str>, all: bool) -> Result<()> {
        let mut line = self.line(&[if all { "--unset-all" } else { "--unset" }, key]);
        line.extend(value.map(str::to_owned));
        let ran = self.git.run_all(cx, line)?;
        let text = match ran.code {
            0 => return Ok(()),
            1 => "Section or key is invalid".to_owned(),
            5 if self.get(cx, key)?.is_none() => format!("Key '{key}' does not exist"),
            5 => {
                let too =
                    if value.is_some() { " and value_regex matches multiple values" } else { "" };
                format!("Multiple values exist for key '{key}'{too}")
            }
            6 => "The value_regex is invalid".to_owned(),
            code => {
                let said =
                    if ran.stderr.is_empty() { String::new() } else { format!("; {}", ran.stderr) };
                format!("Failed to unset key '{key}', git config returned exit code {code}{said}")
            }
        };
        Err(Error::failed(text))
    }
}

fn flag(kwargs: &Rest, name: &str) -> bool {
    kwargs.kwargs.get(name).is_some_and(|flag| flag.truthy())
}

/// Return a configured value.
///
/// ```console
/// $ salt web1 git.config_get user.name cwd=/srv/app
/// ```
#[function]
pub fn config_get(
    cx: &Cx,
    /// The key.
    key: String,
    #[group] place: Place,
    /// `global`, `all`.
    kwargs: Rest,
) -> Result<Value> {
    kwargs.only(&["global", "all"])?;
    let config = Config::of(cx, place, flag(&kwargs, "global"))?;
    Ok(match config.get(cx, &key)? {
        None => {
            // git's own answer to a key that is not there.
            cx.job.set_retcode(1);
            Value::Null
        }
        Some(values) if flag(&kwargs, "all") => Value::list(values),
        Some(values) => values.last().cloned().unwrap_or_default().into(),
    })
}

/// Return configured values whose keys fit an expression.
///
/// ```console
/// $ salt myminion git.config_get_regexp '^user\..+' cwd=/path/to/repo
/// ```
#[function]
pub fn config_get_regexp(
    cx: &Cx,
    /// The expression.
    key: String,
    /// An expression for values.
    value_regex: Option<String>,
    #[group] place: Place,
    /// `global`.
    kwargs: Rest,
) -> Result<Dict> {
    kwargs.only(&["global"])?;
    let config = Config::of(cx, place, flag(&kwargs, "global"))?;
    let found = config.matching(cx, &key, value_regex.as_deref())?;
    Ok(found.into_iter().map(|(key, values)| (key, Value::list(values))).collect())
}

/// Set a configured value.
///
/// ```console
/// $ salt web1 git.config_set user.name value=Ada cwd=/srv/app
/// ```
#[function]
pub fn config_set(
    cx: &Cx,
    /// The key.
    key: String,
    /// The value.
    value: Option<String>,
    /// Several values.
    multivar: Option<halite_spec::Strings>,
    #[group] place: Place,
    /// `global`, `add`.
    kwargs: Rest,
) -> Result<Value> {
    kwargs.only(&["global", "add"])?;
    let config = Config::of(cx, place, flag(&kwargs, "global"))?;
    let (values, add) = match (value, multivar) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("Only one of 'value' and 'multivar' is permitted"));
        }
        (Some(value), None) => (vec![value], flag(&kwargs, "add")),
        (None, several) => (several.map(|several| several.0).unwrap_or_default(), false),
    };
    config.set(cx, &key, &values, add)?;
    Ok(config.get(cx, &key)?.map(Value::list).unwrap_or_default())
}

/// Remove a configured value.
///
/// ```console
/// $ salt myminion git.config_unset mysection.mykey cwd=/path/to/repo
/// ```
#[function]
pub fn config_unset(
    cx: &Cx,
    /// The key.
    key: String,
    /// Only values that fit.
    value_regex: Option<String>,
    #[group] place: Place,
    /// `global`, `all`.
    kwargs: Rest,
) -> Result<bool> {
    kwargs.only(&["global", "all"])?;
    let config = Config::of(cx, place, flag(&kwargs, "global"))?;
    config.unset(cx, &key, value_regex.as_deref(), flag(&kwargs, "all"))?;
    Ok(true)
}
