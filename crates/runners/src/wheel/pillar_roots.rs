//! `pillar_roots`: the files of `pillar_roots`, to look at and to change.
//!
//! Every path is one below a root of its environment; what would leave it is refused.

use halite_spec::{Cx, Result, function, module};
use halite_value::{Dict, Value};

use super::roots;

module! {
    /// The files of `pillar_roots`.
    "pillar_roots": find, list_env, list_roots, read, write,
}

const OPTION: &str = "pillar_roots";

/// Return where a pillar file is, in each root of an environment that has it.
///
/// ```console
/// $ curl … -d client=wheel -d fun=pillar_roots.find -d path=top.sls
/// ```
#[function]
pub fn find(
    cx: &Cx,
    /// The path.
    path: String,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Value> {
    roots::find(cx, OPTION, &path, &saltenv)
}

/// Return the tree of each root of an environment.
///
/// ```console
/// $ curl … -d client=wheel -d fun=pillar_roots.list_env
/// ```
#[function]
pub fn list_env(
    cx: &Cx,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Dict> {
    roots::list_env(cx, OPTION, &saltenv)
}

/// Return the trees of all environments.
///
/// ```console
/// $ curl … -d client=wheel -d fun=pillar_roots.list_roots
/// ```
#[function]
pub fn list_roots(cx: &Cx) -> Result<Dict> {
    roots::list_roots(cx, OPTION)
}

/// Return the content of a pillar file, from each root of an environment that has it.
///
/// ```console
/// $ curl … -d client=wheel -d fun=pillar_roots.read -d path=top.sls
/// ```
#[function]
pub fn read(
    cx: &Cx,
    /// The path.
    path: String,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Value> {
    roots::read(cx, OPTION, &path, &saltenv)
}

/// Write a pillar file into a root of an environment.
///
/// ```console
/// $ curl … -d client=wheel -d fun=pillar_roots.write -d path=web.sls -d data='…'
/// ```
#[function]
pub fn write(
    cx: &Cx,
    /// The content.
    data: String,
    /// The path.
    path: String,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
    /// Which root of it, counted from 0.
    #[default(0)]
    index: i64,
) -> Result<Value> {
    roots::write(cx, OPTION, &data, &path, &saltenv, index)
}
