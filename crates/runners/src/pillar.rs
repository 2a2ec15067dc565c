//! `pillar`: what a minion's pillar would be now.

use std::sync::Arc;

use halite_spec::{Call, Cx, Rest, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::cache::{self, Whose};

module! {
    /// What a minion's pillar would be now.
    "pillar": show_pillar, show_top, show_pillar_cache, clear_pillar_cache,
}

/// Return the top file of the pillar, as it is rendered for a minion.
///
/// ```console
/// $ salt-run pillar.show_top minion=web1
/// ```
#[function]
pub fn show_top(
    cx: &Cx,
    /// The minion.
    minion: Option<String>,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Value> {
    // A top file of pillar is one like any other, in other roots.
    let opts = cx.opts.shallow_copy();
    opts.insert("file_roots", cx.opt("pillar_roots").unwrap_or_else(Value::dict));
    let grains = match &minion {
        Some(minion) => {
            let known = cache::data(cx, minion.as_str().into(), "glob", "grains")?;
            let grains = known.get(minion.as_str()).and_then(|own| own.as_dict().cloned());
            opts.insert("id", minion.as_str());
            grains.unwrap_or_default().shallow_copy()
        }
        None => Dict::new(),
    };
    grains.insert("id", minion.as_deref().unwrap_or_default());
    opts.insert("grains", &grains);
    let files = Arc::new(halite_fileserver::Local::new(Arc::clone(&cx.host), &opts));
    let cx = Cx { opts, grains, files, pillar: Dict::new(), ..cx.clone() };
    let top = Dict::new();
    for env in cx.files.envs()? {
        if saltenv != "base" && env != saltenv {
            continue;
        }
        let Some(path) = cx.files.cache("salt://top.sls", &env)? else { continue };
        let rendered = cx.call(
            "slsutil.renderer",
            Call { args: vec![path.to_string_lossy().into_owned().into()], kwargs: Dict::new() },
        )?;
        if let Value::Dict(rendered) = rendered {
            top.update(&rendered);
        }
    }
    Ok(top.into())
}

/// Return the pillar that is kept for minions. Halite keeps it in memory, and compares its sources
/// before each use, unless `pillar_cache` is on.
///
/// ```console
/// $ salt-run pillar.show_pillar_cache
/// ```
#[function]
pub fn show_pillar_cache(
    cx: &Cx,
    /// Whose.
    #[default("*".to_owned())]
    minion: String,
    _rest: Rest,
) -> Result<Dict> {
    cache::data(cx, minion.as_str().into(), "glob", "pillar")
}

/// Forget the pillar that is kept for minions. False if the master is not asked to keep it
/// (`pillar_cache`, `minion_data_cache`).
///
/// ```console
/// $ salt-run pillar.clear_pillar_cache minion=web1
/// ```
#[function]
pub fn clear_pillar_cache(
    cx: &Cx,
    /// Whose.
    #[default("*".to_owned())]
    minion: String,
    _rest: Rest,
) -> Result<bool> {
    cache::clear_pillar(cx, Whose { tgt: Some(minion.into()), ..Whose::default() })?;
    Ok(cx.opt_bool("pillar_cache") && cx.opt_bool("minion_data_cache"))
}

/// Return the pillar of a minion, compiled now. Further arguments stand for grains.
///
/// ```console
/// $ salt-run pillar.show_pillar web1
/// $ salt-run pillar.show_pillar os=Ubuntu role=web
/// ```
#[function]
pub fn show_pillar(
    cx: &Cx,
    /// The minion.
    #[default("*".to_owned())]
    minion: String,
    rest: Rest,
) -> Result<Dict> {
    // Without a master there are no grains to be had, but there may be a pillar.
    let known = cache::data(cx, minion.as_str().into(), "glob", "grains").unwrap_or_default();
    let (id, grains) = match known.entries().into_iter().next() {
        Some((id, Value::Dict(grains))) => (id.to_str().to_string(), grains.shallow_copy()),
        Some((id, _)) => (id.to_str().to_string(), Dict::new()),
        None => (minion.clone(), entries! { "fqdn" => &minion }),
    };
    let mut pillarenv = None;
    let opts = cx.opts.shallow_copy();
    for (name, value) in rest.kwargs.entries() {
        match name.to_str().as_str() {
            "saltenv" => drop(opts.insert("saltenv", value)),
            "pillarenv" => pillarenv = Some(value.to_string()),
            name if name.starts_with("__") => {}
            name => drop(grains.insert(name, value)),
        }
    }
    grains.insert("id", &id);
    opts.insert("id", &id);
    opts.insert("grains", &grains);
    let cx = Cx { opts, grains, pillar: Dict::new(), ..cx.clone() };
    cx.runtime.clone().compile_pillar(&cx, &Dict::new(), pillarenv.as_deref())
}
