//! What is wrong with a chunk, or may be: mistakes that keep it from running, and warnings beside
//! its return, each with the place the author wrote it and what may have been meant.

use std::path::Path;

use halite_spec::Error;
use halite_value::{Dict, Value, suggest};

use super::{returns, step::Deed};
use crate::{keywords, low::text};

impl Deed<'_> {
    /// Returns what keeps the chunk from being run, line by line.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> =
            self.bad_name().into_iter().chain(self.bad_umask()).collect();
        if !self.exists {
            problems.extend(self.no_such_state());
            return problems;
        }
        let missing = self.params.required.iter().filter(|name| !self.low.contains(name.as_str()));
        for name in missing {
            problems.push(format!("Missing parameter {name} for state {}", self.state));
            problems.extend(self.place());
        }
        if self.params.closed {
            problems.extend(self.invalid_arguments());
        } else if self.caller.options.strict {
            problems.extend(self.unknown_arguments());
        }
        problems
    }

    /// Tells of arguments that Salt refuses. There the whole run ends with these words; here it
    /// is this state that fails.
    fn invalid_arguments(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for word in self.unknown_words() {
            lines.push(format!("'{word}' is an invalid keyword argument for '{}'.", self.state));
            lines.extend(self.place_of(&word).map(|place| format!("  --> {place}")));
            let own = suggest::nearest(&word, self.params.names.iter().map(String::as_str));
            let near = own.or_else(|| keywords::suggest_keyword(&word));
            lines.extend(near.map(|near| format!("   = help: did you mean `{near}`?")));
        }
        lines
    }

    fn bad_name(&self) -> Option<String> {
        let Some(name) = self.low.get("name") else {
            return Some("Missing \"name\" data".to_owned());
        };
        (name.as_str().is_none() && name.truthy()).then(|| {
            format!(
                "ID '{name}' in SLS '{}' is not formed as a string, but is a {}",
                text(self.low, "__sls__"),
                name.type_name()
            )
        })
    }

    fn bad_umask(&self) -> Option<String> {
        let written = self.low.get("umask")?;
        super::umask(self.low).is_none().then(|| format!("Invalid umask: {written}"))
    }

    fn no_such_state(&self) -> Vec<String> {
        let (state, states, cx) = (&self.state, &self.caller.states, &self.caller.cx);
        let reason = states.missing_reason(cx, state);
        // What is known but cannot run here was not misspelt, nor was a beacon, which is asked for
        // by the name of the state.
        let is_known = reason.is_some() || self.is_beacon();
        let reason = reason.unwrap_or_else(|| format!("'{state}' is not available."));
        let mut lines = match self.low.get("__sls__").filter(|sls| !sls.is_null()) {
            Some(sls) => vec![
                format!("State '{state}' was not found in SLS '{sls}'"),
                format!("Reason: {reason}"),
            ],
            None => vec![format!("Specified state '{state}' was not found")],
        };
        lines.extend(self.place());
        let names = if is_known { Vec::new() } else { states.names(cx) };
        let near = suggest::nearest(state, names.iter().map(String::as_str));
        lines.extend(near.map(|near| format!("   = help: did you mean `{near}`?")));
        lines
    }

    /// The line that says where the state stands.
    fn place(&self) -> Option<String> {
        let place =
            self.caller.places.of_state(&text(self.low, "__id__"), &text(self.low, "state"))?;
        Some(format!("  --> {place}"))
    }

    /// Where an argument stands.
    fn place_of(&self, word: &str) -> Option<String> {
        let (id, state) = (text(self.low, "__id__"), text(self.low, "state"));
        self.caller.places.of_arg(&id, &state, word).map(ToString::to_string)
    }

    /// Where an exception came from: an argument, or else the state. What is expected to fail is
    /// told in Salt's words alone.
    pub(super) fn place_of_mistake(&self, error: &Error) -> Option<String> {
        let word = match error {
            Error::Failed(_) | Error::Invalid(_) | Error::Source { .. } | Error::Cancelled => {
                return None;
            }
            Error::Args(error) => error.argument().unwrap_or_default(),
            _ => "",
        };
        self.place_of(word)
    }

    /// Where the cause of a failure stands: the argument its words are about, or else the state.
    /// Exceptions name their place themselves.
    pub(super) fn place_of_failure(&self, ret: &Dict) -> Option<String> {
        let comment = text(ret, "comment");
        if !returns::is_failure(ret) || comment.contains("\n  --> ") {
            return None;
        }
        self.place_of(&self.blamed(&comment))
    }

    /// The argument a comment is about: the one whose value it tells, the longest if several, or
    /// whose name; empty for none.
    fn blamed(&self, comment: &str) -> String {
        let words = self.low.into_iter().map(|(word, value)| (word.to_string(), value));
        let own: Vec<(String, Value)> = words
            .filter(|(word, _)| word != "name" && !keywords::is_engine_keyword(word))
            .collect();
        let told = own.iter().filter_map(|(word, value)| {
            let value = match value {
                Value::Str(_) | Value::Int(_) => value.to_str(),
                _ => return None,
            };
            (value.len() > 1 && comment.contains(value.as_str())).then_some((value.len(), word))
        });
        let value = told.max_by_key(|(length, _)| *length).map(|(_, word)| word.as_str());
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let named = || {
            let names = comment.split(|c: char| !is_part(c)).map(|name| name.trim_matches('.'));
            let mut names = names.filter(|name| name.len() > 2);
            names.find(|name| own.iter().any(|(word, _)| word.eq_ignore_ascii_case(name)))
        };
        value.or_else(named).unwrap_or("name").to_lowercase()
    }

    /// Where an argument stands, to begin a line with.
    fn at(&self, word: &str) -> String {
        self.place_of(word).map(|place| place + ": ").unwrap_or_default()
    }

    /// Returns warnings for arguments nobody declared.
    pub(super) fn unknown_arguments(&self) -> Vec<String> {
        let unknown = self.unknown_words().map(|word| self.unknown_argument(&word));
        unknown.chain(self.bad_retry()).collect()
    }

    /// Options of `retry` that there are not.
    fn bad_retry(&self) -> Option<String> {
        let retry = self.low.get("retry")?;
        let words = retry.as_dict()?.keys();
        let word = words.iter().map(ToString::to_string).find(|word| !RETRY.contains(&&**word))?;
        let near = suggest::nearest(&word, RETRY)
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        Some(format!("{}`retry` has no option `{word}`{near}", self.at("retry")))
    }

    fn unknown_words(&self) -> impl Iterator<Item = String> {
        let arguments = self.low.into_iter().map(|(word, value)| (word.to_string(), value));
        arguments.filter(|(word, value)| self.is_unknown(word, value)).map(|(word, _)| word)
    }

    fn is_unknown(&self, word: &str, value: &Value) -> bool {
        if self.declares(word) || keywords::is_engine_keyword(word) {
            return false;
        }
        // A state that takes anything takes a misspelt requisite too; a list gives it away. A guard
        // that guards nothing is worse than a warning too many.
        !self.params.open
            || (is_list_of_ids(value) && is_nearly_requisite(word))
            || keywords::is_slip_of_guard(word)
    }

    fn unknown_argument(&self, word: &str) -> String {
        let (place, state) = (self.at(word), &self.state);
        let own = suggest::nearest(word, self.params.names.iter().map(String::as_str))
            .filter(|_| !self.params.open);
        match (own, keywords::suggest_keyword(word)) {
            (Some(near), _) => format!(
                "{place}unknown argument `{word}` for state `{state}`; did you mean `{near}`?"
            ),
            (None, Some(near)) => {
                format!("{place}`{word}` is not a requisite; did you mean `{near}`?")
            }
            (None, None) => format!("{place}unknown argument `{word}` for state `{state}`"),
        }
    }

    /// Of a state that failed: which sources are not there, where they are asked for, and what they
    /// may have been meant to be.
    pub(super) fn missing_sources(&self) -> Vec<String> {
        let Some(source) = self.low.get("source") else { return Vec::new() };
        let sources = source.items_of_sequence().unwrap_or_else(|| vec![source]);
        let texts: Option<Vec<&str>> = sources.iter().map(Value::as_str).collect();
        let Some(sources) = texts else { return Vec::new() };
        if !sources.iter().any(|source| source.starts_with("salt:") || source.starts_with('/')) {
            return Vec::new();
        }
        let cx = &self.caller.cx;
        let saltenv = cx.saltenv();
        let files = cx.files.list(&saltenv, "").unwrap_or_default();
        let missing = sources.iter().map(|source| match source.strip_prefix("salt://") {
            Some(address) if address.contains('|') => None,
            Some(address) => match address.split_once("?saltenv=") {
                Some((_, env)) => self.missing_env(env),
                None => missing_path(address, &saltenv, &files),
            },
            None => self.meant_address(source, &files),
        });
        // A list names alternatives: it failed for another reason if one of them is there.
        let told: Option<Vec<String>> = missing.collect();
        told.unwrap_or_default().into_iter().map(|told| self.at("source") + &told).collect()
    }

    fn missing_env(&self, env: &str) -> Option<String> {
        let known = self.caller.cx.files.envs().ok()?;
        let near = suggest::nearest(env, known.iter().map(String::as_str))
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        (!known.iter().any(|known| known == env || known == "__env__"))
            .then(|| format!("there is no environment {env}{near}"))
    }

    /// Of a path of this machine, or an address with a slash too few, that the tree has.
    fn meant_address(&self, source: &str, files: &[String]) -> Option<String> {
        let path = source.strip_prefix("salt:").unwrap_or(source).trim_start_matches('/');
        let host = &self.caller.cx.host;
        let is_here = matches!(host.stat_if_there(Path::new(source), true), Ok(Some(_)));
        (!is_here && is_served(path, files))
            .then(|| format!("there is no {source}; did you mean `salt://{path}`?"))
    }
}

/// Of a `salt://` path that is not there, what it may have been meant to be.
fn missing_path(path: &str, saltenv: &str, files: &[String]) -> Option<String> {
    let near = || {
        let near = nearest_source(path, files)?;
        Some(format!("; did you mean `salt://{near}`?"))
    };
    (!path.contains('?') && !is_served(path, files)).then(|| {
        let near = near().unwrap_or_default();
        format!("there is no salt://{path} in environment {saltenv}{near}")
    })
}

const RETRY: [&str; 4] = ["attempts", "interval", "splay", "until"];

/// Tells whether there is a file or a folder of that path.
fn is_served(path: &str, files: &[String]) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    files.iter().any(|file| file == path || file.starts_with(&folder))
}

fn nearest_source<'f>(path: &str, files: &'f [String]) -> Option<&'f str> {
    let folders =
        files.iter().flat_map(|file| file.match_indices('/').map(|(end, _)| &file[..end]));
    suggest::nearest(path, files.iter().map(String::as_str).chain(folders))
}

/// Tells whether a value is written as requisites are: `- pkg: nginx`. A list of plain words may be
/// what the state is after, as the `match` of an `iptables` rule.
fn is_list_of_ids(value: &Value) -> bool {
    value.as_list().is_some_and(|items| items.into_iter().any(|item| item.as_dict().is_some()))
}

/// Tells whether a word looks like a requisite that was misspelt.
fn is_nearly_requisite(word: &str) -> bool {
    keywords::suggest_keyword(word).is_some_and(|near| {
        keywords::REQUISITE_WORDS.contains(&near) || keywords::REQUISITE_IN_WORDS.contains(&near)
    })
}

#[cfg(test)]
mod tests {
    use halite_value::{Value, dict};

    use super::{is_list_of_ids, is_nearly_requisite};

    #[test]
    fn lists_of_words_are_not_taken_for_requisites() {
        assert!(is_nearly_requisite("wacth") && is_nearly_requisite("match"));
        assert!(is_list_of_ids(&Value::list([dict! { "pkg" => "nginx" }])));
        assert!(!is_list_of_ids(&Value::list(["limit", "comment"])));
        assert!(!is_list_of_ids(&Value::from("limit")));
    }
}
