//! `pillar`: what a minion's pillar would be now.

use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::cache;

module! {
    /// What a minion's pillar would be now.
    "pillar": show_pillar,
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
