//! `fileserver`: what the master serves.

use halite_spec::{Cx, Rest, Result, function, module};
use halite_value::{Dict, Value};

module! {
    /// What the master serves.
    "fileserver": envs, file_list, dir_list, empty_dir_list, symlink_list, update, clear_cache,
}

/// Return the environments.
///
/// ```console
/// $ salt-run fileserver.envs
/// ```
#[function]
pub fn envs(cx: &Cx) -> Result<Value> {
    let mut envs = cx.files.envs()?;
    envs.sort();
    Ok(envs.into())
}

/// Return the files of an environment.
///
/// ```console
/// $ salt-run fileserver.file_list saltenv=prod
/// ```
#[function]
pub fn file_list(
    cx: &Cx,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Value> {
    Ok(cx.files.list(&saltenv, "")?.into())
}

/// Return the folders of an environment.
///
/// ```console
/// $ salt-run fileserver.dir_list saltenv=prod
/// ```
#[function]
pub fn dir_list(
    cx: &Cx,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Value> {
    Ok(cx.files.list_dirs(&saltenv, "")?.into())
}

/// Return the empty folders of an environment.
///
/// ```console
/// $ salt-run fileserver.empty_dir_list saltenv=prod
/// ```
#[function]
pub fn empty_dir_list(
    cx: &Cx,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Value> {
    Ok(cx.files.list_empty_dirs(&saltenv, "")?.into())
}

/// Return the links of an environment, with what they point to.
///
/// ```console
/// $ salt-run fileserver.symlink_list saltenv=prod
/// ```
#[function]
pub fn symlink_list(
    cx: &Cx,
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
) -> Result<Dict> {
    Ok(cx.files.list_links(&saltenv, "")?.into_iter().collect())
}

/// Bring the back ends up to date. `roots` always is.
///
/// ```console
/// $ salt-run fileserver.update
/// ```
#[function]
pub fn update(_: &Cx, _rest: Rest) -> Result<bool> {
    Ok(true)
}

/// Empty the caches of the back ends. `roots` has none.
///
/// ```console
/// $ salt-run fileserver.clear_cache
/// ```
#[function]
pub fn clear_cache(_: &Cx, _rest: Rest) -> Result<Value> {
    Ok("No cache was cleared".into())
}
