//! One SLS of pillar and what it includes.
//!
//! What an SLS includes is merged first, its own values last, so they win. Kept from Salt, because
//! trees in the field rely on the outcome: `defaults` given to one include stay in force for the
//! includes after it; a relative include (`.x`) also takes an `x` at the top; an SLS that is
//! included a second time counts again, but without what it includes itself; and the error of an
//! include that names a known SLS is told twice.

use std::collections::HashMap;

use halite_target::fnmatch::Glob;
use halite_value::{Dict, List, SmolStr, Value, suggest};

use crate::compile::Run;

/// Includes nested deeper than this are refused.
const MAX_DEPTH: usize = 200;

/// What was rendered so far in an environment, without includes.
type Mods = HashMap<String, Value>;

impl Run<'_> {
    /// Renders the SLS that a minion gets of an environment, in order.
    pub(crate) fn environment(
        &mut self,
        saltenv: &str,
        names: &[SmolStr],
        errors: &mut Vec<String>,
    ) -> Vec<Value> {
        let mut all = Vec::new();
        for name in names {
            let matched = match self.files.states(saltenv) {
                Some(states) => filter(&states, name),
                None => {
                    errors.push(no_environment(saltenv));
                    Vec::new()
                }
            };
            if matched.is_empty() {
                all.push(name.to_string());
            }
            all.extend(matched);
        }
        let mut mods = Mods::new();
        let mut rendered = Vec::new();
        for sls in all {
            let (state, sls_errors) = self.sls(&sls, saltenv, &mut mods, &Dict::new(), 0);
            errors.extend(sls_errors);
            rendered.extend(state.filter(|state| state.as_dict().is_some()));
        }
        rendered
    }

    fn sls(
        &mut self,
        sls: &str,
        saltenv: &str,
        mods: &mut Mods,
        defaults: &Dict,
        depth: usize,
    ) -> (Option<Value>, Vec<String>) {
        let mut errors = Vec::new();
        let (state, is_init) = match self.files.clone().sls(saltenv, sls) {
            Ok(Some(found)) => {
                let rendered = self.render(&found.path, &found.text, sls, saltenv, defaults);
                let state = rendered.unwrap_or_else(|why| {
                    errors.push(self.render_error(sls, &why));
                    Value::Null
                });
                (state, found.is_init)
            }
            Ok(None) => match self.missing(sls, saltenv) {
                Some(error) => {
                    errors.push(error);
                    (Value::dict(), false)
                }
                None => return (None, errors),
            },
            Err(error) => {
                let why = self.failed(sls, saltenv, error);
                errors.push(self.render_error(sls, &why));
                (Value::Null, false)
            }
        };
        mods.insert(sls.to_owned(), state.clone());
        if !state.truthy() {
            return (Some(state), errors);
        }
        let Value::Dict(dict) = &state else {
            let place = state.as_list().and_then(|list| list.place_of(0));
            if let Some(place) = place {
                tracing::error!("a pillar file is a dict: `key: value`, no list\n  --> {place}");
            }
            errors.push(format!("SLS '{sls}' does not render to a dictionary"));
            return (Some(state), errors);
        };
        let includes = match dict.get("include") {
            None => return (Some(state), errors),
            Some(Value::List(includes)) => includes,
            Some(_) => {
                if let Some(place) = dict.place_of("include") {
                    tracing::error!("`include` of a pillar file is a list of SLS\n  --> {place}");
                }
                errors.push(format!("Include Declaration in SLS '{sls}' is not formed as a list"));
                return (Some(state), errors);
            }
        };
        dict.remove("include");
        if depth >= MAX_DEPTH {
            errors.push(format!("SLS '{sls}' includes too deeply"));
            return (Some(state), errors);
        }
        let include = Include { sls, saltenv, is_init, depth };
        let merged = self.included(&include, &includes, &state, mods, defaults, &mut errors);
        (Some(merged), errors)
    }

    /// Returns the error for a missing SLS; `None` if it may be missing.
    fn missing(&self, sls: &str, saltenv: &str) -> Option<String> {
        let ignored = self.ignore_missing.get(saltenv);
        let ignored = ignored.and_then(|list| list.items_of_sequence()).unwrap_or_default();
        if ignored.iter().any(|own| own == sls) {
            return None;
        }
        if self.files.roots(saltenv).is_some_and(|roots| !roots.is_empty()) {
            let known = self.files.states(saltenv);
            let known = known.iter().flat_map(|names| names.iter()).map(String::as_str);
            let near = suggest::nearest(sls, known);
            let place = self.named.get(&(saltenv.to_owned(), sls.to_owned()));
            let at = place.map(|place| format!("\n  --> {place}")).unwrap_or_default();
            match near {
                Some(near) => {
                    tracing::error!("there is no pillar file `{sls}`; did you mean `{near}`?{at}");
                }
                None if !at.is_empty() => tracing::error!("there is no pillar file `{sls}`{at}"),
                None => {}
            }
            return Some(format!(
                "Specified SLS '{sls}' in environment '{saltenv}' is not available on the salt \
                 master"
            ));
        }
        tracing::debug!("Specified SLS '{sls}' in environment '{saltenv}' was not found");
        None
    }

    fn render_error(&self, sls: &str, why: &str) -> String {
        if self.request.opt_flag("pillar_safe_render_error", true) {
            format!("Rendering SLS '{sls}' failed. Please see master log for details.")
        } else {
            format!("Rendering SLS '{sls}' failed, render error:\n{why}")
        }
    }

    fn included(
        &mut self,
        include: &Include<'_>,
        items: &List,
        own: &Value,
        mods: &mut Mods,
        defaults: &Dict,
        errors: &mut Vec<String>,
    ) -> Value {
        let includes_win = self.request.opt_flag("pillar_includes_override_sls", false);
        let mut defaults = defaults.clone();
        let mut sls_errors = Vec::new();
        let mut parts: Vec<Value> = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let mut key = None;
            let name = match &item {
                Value::Dict(dict) => {
                    let Some((name, options)) = dict.entries().into_iter().next() else { continue };
                    defaults = match options.get("defaults") {
                        Some(Value::Dict(defaults)) => defaults,
                        _ => Dict::new(),
                    };
                    key = options.get("key").filter(Value::truthy).map(|key| key.to_str());
                    name.to_str()
                }
                other => other.to_str(),
            };
            for sls in self.named(include, &name, errors) {
                let state = match mods.get(&sls) {
                    Some(known) => Some(known.clone()),
                    None => {
                        let depth = include.depth + 1;
                        let (state, new) = self.sls(&sls, include.saltenv, mods, &defaults, depth);
                        sls_errors = new;
                        let missing = format!("Specified SLS '{sls}'");
                        if sls_errors.iter().any(|error| error.starts_with(&missing))
                            && let Some(place) = items.place_of(index)
                        {
                            tracing::error!("`{sls}` is included here\n  --> {place}");
                        }
                        state
                    }
                };
                let state = state.filter(|state| state.truthy() && state.as_dict().is_some());
                if let Some(state) = state {
                    let steps = key.iter().flat_map(|key| key.rsplit(':'));
                    parts.push(steps.fold(state, |inner, step| {
                        Value::Dict([(step, inner)].into_iter().collect())
                    }));
                }
                errors.extend(sls_errors.iter().cloned());
            }
        }
        let own = own.clone();
        let mut order: Vec<Value> = Vec::with_capacity(parts.len() + 1);
        if includes_win {
            order.push(own);
            order.extend(parts);
        } else {
            order.extend(parts);
            order.push(own);
        }
        let merge = |first: Value, second: Value| self.merging.merge(&first, &second);
        order.into_iter().reduce(merge).unwrap_or_default()
    }

    /// Returns the SLS an include names, wildcards resolved.
    fn named(&self, include: &Include<'_>, name: &str, errors: &mut Vec<String>) -> Vec<String> {
        let Some(states) = self.files.states(include.saltenv) else {
            errors.push(no_environment(include.saltenv));
            return vec![name.to_owned()];
        };
        let mut matched = filter(&states, &name.trim_start_matches('.').replace('/', "."));
        let full = match name.strip_prefix('.') {
            Some(rest) if include.is_init => format!("{}.{rest}", include.sls),
            Some(rest) => match include.sls.rsplit_once('.') {
                Some((folder, _)) => format!("{folder}.{rest}"),
                None => rest.to_owned(),
            },
            None => name.to_owned(),
        };
        matched.extend(filter(&states, &full));
        if matched.is_empty() { vec![full] } else { matched }
    }
}

/// The SLS that includes.
struct Include<'a> {
    sls: &'a str,
    saltenv: &'a str,
    is_init: bool,
    depth: usize,
}

fn filter(states: &[String], pattern: &str) -> Vec<String> {
    let glob = Glob::new(pattern);
    states.iter().filter(|state| glob.matches(state)).cloned().collect()
}

fn no_environment(saltenv: &str) -> String {
    format!("No matching pillar environment for environment '{saltenv}' found")
}
