//! Grains of this machine, pillar of the master.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use halite_spec::{Cx, Error, Host, Result, host::Write};
use halite_transport::LinkError;
use halite_value::{
    Dict, SmolStr, Value, dict, entries, lookup, merge,
    msgpack::{self, Dialect, Text},
};

use super::{
    link::of_ask,
    session::{AskError, Master},
};
use crate::{Python, Sources};

/// Where a minion of a master gets its grains and pillar from.
pub struct FromMaster {
    master: Arc<Master>,
    python: OnceLock<Arc<Python>>,
}

impl FromMaster {
    pub fn new(master: Arc<Master>) -> Self {
        Self { master, python: OnceLock::new() }
    }

    /// Asks the master for the pillar.
    pub async fn fetch(&self, load: &Dict) -> Result<Dict, AskError> {
        match self.master.ask_private(load).await? {
            Value::Dict(pillar) => Ok(pillar),
            Value::Bool(false) | Value::Null => Ok(Dict::new()),
            other => Err(AskError::Reply(format!(
                "Got a bad pillar from master, type {}, expecting dict",
                other.type_name()
            ))),
        }
    }
}

/// Builds the question for a pillar.
pub(crate) fn question(cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Dict {
    let env = |given: Option<SmolStr>| given.map_or(Value::Null, Value::from);
    let saltenv = cx.opt_str("saltenv");
    let pillarenv = pillarenv.map(SmolStr::from).or_else(|| cx.opt_str("pillarenv"));
    let pillarenv = pillarenv
        .or_else(|| cx.opt_bool("pillarenv_from_saltenv").then(|| saltenv.clone()).flatten());
    entries! {
        "cmd" => "_pillar", "id" => cx.id(), "grains" => &cx.grains, "saltenv" => env(saltenv),
        "pillarenv" => env(pillarenv), "pillar_override" => overrides,
        "extra_minion_data" => passed_on(&cx.opts), "ver" => "2",
    }
}

/// Returns the parts of the configuration that external pillars are to see (`pass_to_ext_pillars`:
/// `name`, or `name:part`). What is not there is left out.
fn passed_on(opts: &Dict) -> Dict {
    let data = Dict::new();
    let names = opts.get("pass_to_ext_pillars").and_then(|names| names.items_of_sequence());
    let all = Value::from(opts);
    for name in names.unwrap_or_default() {
        let name = name.to_str();
        let Some(found) = lookup::traverse_dict(&all, &name, ":") else { continue };
        let nested = name.rsplit(':').fold(found, |inner, step| dict! { step => inner });
        if let Value::Dict(nested) = nested {
            merge::update(&data, &nested, false);
        }
    }
    data
}

/// Collects the grains, or takes the stored ones.
pub(crate) fn grains(
    host: &dyn Host,
    opts: &Dict,
    configured: &Dict,
    users: Option<(&Python, Option<&Cx>)>,
) -> Dict {
    if let Some(grains) = halite_grains::load_cached(host, opts) {
        return grains;
    }
    // `opts["grains"]` holds what was collected last; the configuration's own must be given.
    let opts = opts.shallow_copy();
    opts.insert("grains", configured);
    let mut collector = halite_grains::Collector::new();
    if let Some((python, cx)) = users {
        let own = opts.clone();
        collector = collector
            .with("users' grains", Box::new(move |grains| python.grains(&own, grains, cx)));
    }
    let report = collector.collect(host, &opts);
    for problem in &report.problems {
        tracing::warn!("grains: {problem}");
    }
    if let Err(error) = halite_grains::store_cached(host, &opts, &report.grains) {
        tracing::warn!("the grains are not stored: {error}");
    }
    report.grains
}

/// Under this name `opts` keeps what the configuration says about grains.
pub(crate) const CONFIGURED: &str = "__grains_configured";

impl Sources for FromMaster {
    fn use_python(&self, python: &Arc<Python>) {
        // The first one stays: there is one per program.
        let _ = self.python.set(Arc::clone(python));
    }

    fn grains(&self, cx: &Cx) -> Result<Dict> {
        let configured = match cx.opt(CONFIGURED) {
            Some(Value::Dict(configured)) => configured,
            _ => Dict::new(),
        };
        let users = self.python.get().map(|python| (&**python, Some(cx)));
        let grains = grains(&*cx.host, &cx.opts, &configured, users);
        self.master.show_grains(&grains);
        Ok(grains)
    }

    fn pillar(&self, cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Result<Dict> {
        self.asked(cx, overrides, &question(cx, overrides, pillarenv))
    }

    fn fresh_pillar(&self, cx: &Cx) -> Result<Dict> {
        let none = Dict::new();
        let load = question(cx, &none, None);
        load.insert("clean_cache", true);
        self.asked(cx, &none, &load)
    }

    fn pillar_with(&self, cx: &Cx, overrides: &Dict, ext: &Dict) -> Result<Dict> {
        let load = question(cx, overrides, None);
        load.insert("ext", ext);
        self.master.wait(self.fetch(&load), &|| cx.host.cancelled()).map_err(no_pillar)
    }
}

impl FromMaster {
    /// Asks for the pillar; without a master takes the one on disk, if that is wanted.
    fn asked(&self, cx: &Cx, overrides: &Dict, load: &Dict) -> Result<Dict> {
        let fetched = self.master.wait(self.fetch(load), &|| cx.host.cancelled());
        let cached = cx.opt_bool("minion_pillar_cache").then(|| cache_file(cx)).flatten();
        match (fetched, cached) {
            (Ok(pillar), Some(file)) if overrides.is_empty() => {
                store(cx, &file, &pillar);
                Ok(pillar)
            }
            (Ok(pillar), _) => Ok(pillar),
            (Err(AskError::Link(error)), Some(file)) if overrides.is_empty() => {
                tracing::warn!("the master gives no pillar ({error}): using the stored one");
                stored(cx, &file).ok_or_else(|| Error::failed(error.to_string()))
            }
            (Err(error), _) => Err(no_pillar(error)),
        }
    }
}

/// Says why there is no pillar: of a master that takes too long, in Salt's words.
fn no_pillar(error: AskError) -> Error {
    match error {
        AskError::Link(LinkError::Timeout { waited, .. }) => {
            Error::failed(format!("Pillar timed out after {} seconds", waited.as_secs()))
        }
        other => of_ask(other),
    }
}

fn cache_file(cx: &Cx) -> Option<PathBuf> {
    Some(PathBuf::from(cx.opt_str("cachedir")?.as_str()).join("pillar.cache.p"))
}

fn store(cx: &Cx, file: &std::path::Path, pillar: &Dict) {
    let how = Write { mode: Some(0o600), ..Write::default() };
    let written = msgpack::to_vec(&Value::from(pillar), Dialect::Modern)
        .map_err(|error| error.to_string())
        .and_then(|bytes| cx.host.write(file, &bytes, &how).map_err(|error| error.to_string()));
    if let Err(error) = written {
        tracing::warn!("the pillar is not stored: {error}");
    }
}

fn stored(cx: &Cx, file: &std::path::Path) -> Option<Dict> {
    let bytes = cx.host.read(file).ok()?;
    match msgpack::from_slice(&bytes, Text::Typed) {
        Ok(Value::Dict(pillar)) => Some(pillar),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use halite_value::list;

    use super::*;

    #[test]
    fn a_master_that_takes_too_long() {
        let waited = std::time::Duration::from_secs(5);
        let slow = LinkError::Timeout { address: "a:1".into(), waited };
        let told = no_pillar(AskError::Link(slow)).to_string();
        assert_eq!(told, "Pillar timed out after 5 seconds");
    }

    #[test]
    fn parts_of_the_configuration_for_external_pillars() {
        let opts = entries! {
            "add_me" => dict! { "deep" => "z", "other" => 1, "third" => 3 }, "plain" => 5,
            "pass_to_ext_pillars" => list!["add_me:deep", "plain", "nosuch", "plain:x", "add_me:third"],
        };
        let expected = entries! {
            "add_me" => dict! { "deep" => "z", "third" => 3 }, "plain" => 5,
        };
        assert_eq!(Value::from(passed_on(&opts)), Value::from(expected));
        assert!(passed_on(&Dict::new()).is_empty());
    }
}
