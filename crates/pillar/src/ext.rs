//! External pillar: data from elsewhere, laid over what the SLS give.
//!
//! A back end is named in `ext_pillar` with its arguments: a dict (by name), a list (in order) or
//! one value. Built in are `cmd_yaml`, `cmd_json`, `nodegroups`, `file_tree`, `git`
//! and `extra_minion_data_in_pillar`; programs add others by implementing [`ExtPillar`].

mod cmd;
mod file_tree;
mod git;

use std::sync::Arc;

use halite_spec::{Error, Host, Result};
use halite_target::{Expr, Minion, Options, TargetType};
use halite_value::{Dict, Value};

use crate::{Compiler, PillarFiles, Renderer, Request};

/// What an external pillar may look at.
pub struct ExtCx<'a> {
    pub host: &'a Arc<dyn Host>,
    pub minion_id: &'a str,
    /// What is compiled so far.
    pub pillar: &'a Dict,
    pub pillarenv: Option<&'a str>,
    pub renderer: &'a dyn Renderer,
    pub request: &'a Request,
    pub files: &'a Arc<PillarFiles>,
    /// For sources that are pillar files themselves.
    pub compiler: &'a Compiler,
}

impl ExtCx<'_> {
    /// Tells whether the minion belongs to a nodegroup's definition.
    fn is_in(&self, definition: &Value) -> bool {
        let nodegroups = self.request.opts.get("nodegroups");
        let nodegroups = nodegroups.as_ref().and_then(Value::as_dict);
        let options = Options { nodegroups, delimiter: None };
        let minion = Minion {
            id: self.minion_id,
            grains: Some(&self.request.grains),
            pillar: Some(self.pillar),
            ..Minion::default()
        };
        Expr::parse(definition, TargetType::Compound, &options)
            .is_ok_and(|expr| expr.matches(&minion))
    }
}

/// The arguments a configuration gives to a back end.
pub struct ExtArgs<'a>(pub &'a Value);

impl ExtArgs<'_> {
    /// Returns an argument by its name, or by its position among the back end's arguments.
    pub fn get(&self, name: &str, position: usize) -> Option<Value> {
        match self.0 {
            Value::Dict(dict) => dict.get(name),
            Value::List(list) => list.get(position),
            Value::Null => None,
            other => (position == 0).then(|| other.clone()),
        }
    }

    pub fn flag(&self, name: &str, position: usize) -> bool {
        self.get(name, position).is_some_and(|value| value.truthy())
    }
}

/// A source of external pillar.
pub trait ExtPillar: Send + Sync {
    /// Returns the name used in `ext_pillar`.
    fn name(&self) -> &str;

    /// Returns data to be merged over the pillar.
    fn pillar(&self, cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value>;
}

/// Fetches every remote of `git` pillars now; returns each as it is written, with what came of it.
pub fn update_git(host: &Arc<dyn Host>, opts: &Dict) -> Vec<(String, Result<()>)> {
    git::update(host, opts)
}

/// Returns the built-in back ends.
pub fn built_in() -> Vec<Arc<dyn ExtPillar>> {
    vec![
        Arc::new(cmd::CmdYaml),
        Arc::new(cmd::CmdJson),
        Arc::new(Nodegroups),
        Arc::new(file_tree::FileTree),
        Arc::new(git::GitPillar),
        Arc::new(ExtraMinionData),
    ]
}

/// `nodegroups`: the names of those the minion belongs to.
struct Nodegroups;

impl ExtPillar for Nodegroups {
    fn name(&self) -> &str {
        "nodegroups"
    }

    fn pillar(&self, cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value> {
        let name = args.get("pillar_name", 0).filter(Value::truthy);
        let name = name.map_or_else(|| "nodegroups".into(), |name| name.to_str());
        let groups = cx.request.opts.get("nodegroups");
        let groups = groups.as_ref().and_then(Value::as_dict).map(Dict::entries);
        let own: Vec<Value> = groups
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, definition)| cx.is_in(definition))
            .map(|(group, _)| group.into_value())
            .collect();
        Ok(Value::Dict([(name, Value::from(own))].into_iter().collect()))
    }
}

/// `extra_minion_data_in_pillar`: what the minion sent along, or parts of it.
struct ExtraMinionData;

impl ExtPillar for ExtraMinionData {
    fn name(&self) -> &str {
        "extra_minion_data_in_pillar"
    }

    fn pillar(&self, cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value> {
        let include = args
            .get("include", 0)
            .ok_or_else(|| Error::invalid("extra_minion_data_in_pillar needs `include`"))?;
        let data = Value::from(&cx.request.extra_minion_data);
        if include == "*" || include == "<all>" {
            return Ok(data);
        }
        let merged = Dict::new();
        for key in include.items_of_sequence().unwrap_or_default() {
            let key = key.to_str();
            if let Some(found) = halite_value::lookup::traverse_dict(&data, &key, ":") {
                let nested = key
                    .rsplit(':')
                    .fold(found, |inner, step| Value::Dict([(step, inner)].into_iter().collect()));
                if let Value::Dict(nested) = nested {
                    merged.update(&nested);
                }
            }
        }
        Ok(merged.into())
    }
}
