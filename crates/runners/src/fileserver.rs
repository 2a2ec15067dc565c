//! `fileserver`: what the master serves.

use halite_client::Request;
use halite_spec::{Args, Cx, Rest, Result, function, module};
use halite_value::{Dict, Value, dict};

use crate::master;

module! {
    /// What the master serves.
    "fileserver": envs, file_list, dir_list, empty_dir_list, symlink_list, update, clear_cache,
    clear_file_list_cache, clear_lock, lock,
}

/// Return the environments.
///
/// ```console
/// $ salt-run fileserver.envs
/// ```
#[function]
pub fn envs(
    cx: &Cx,
    /// Only these back ends.
    backend: Option<Value>,
    /// Tell which back end has which.
    #[default(false)]
    sources: bool,
) -> Result<Value> {
    if !has_roots(backend.as_ref()) {
        return Ok(if sources { Value::dict() } else { Value::list(Vec::<Value>::new()) });
    }
    let mut envs = cx.files.envs()?;
    envs.sort();
    Ok(if sources {
        dict! { "roots" => envs }
    } else {
        envs.into()
    })
}

/// Where to look.
#[derive(Args)]
pub struct Within {
    /// The environment.
    #[default("base".to_owned())]
    saltenv: String,
    /// Only these back ends.
    backend: Option<Value>,
}

impl Within {
    fn has_roots(&self) -> bool {
        has_roots(self.backend.as_ref())
    }
}

/// Return the files of an environment.
///
/// ```console
/// $ salt-run fileserver.file_list
/// ```
#[function]
pub fn file_list(cx: &Cx, #[group] within: Within) -> Result<Value> {
    if !within.has_roots() {
        return Ok(Value::list(Vec::<Value>::new()));
    }
    Ok(cx.files.list(&within.saltenv, "")?.into())
}

/// Return the folders of an environment.
///
/// ```console
/// $ salt-run fileserver.dir_list saltenv=base
/// ```
#[function]
pub fn dir_list(cx: &Cx, #[group] within: Within) -> Result<Value> {
    if !within.has_roots() {
        return Ok(Value::list(Vec::<Value>::new()));
    }
    Ok(cx.files.list_dirs(&within.saltenv, "")?.into())
}

/// Return the empty folders of an environment.
///
/// ```console
/// $ salt-run fileserver.empty_dir_list
/// ```
#[function]
pub fn empty_dir_list(cx: &Cx, #[group] within: Within) -> Result<Value> {
    if !within.has_roots() {
        return Ok(Value::list(Vec::<Value>::new()));
    }
    Ok(cx.files.list_empty_dirs(&within.saltenv, "")?.into())
}

/// Return the links of an environment, with what they point to.
///
/// ```console
/// $ salt-run fileserver.symlink_list
/// ```
#[function]
pub fn symlink_list(cx: &Cx, #[group] within: Within) -> Result<Dict> {
    if !within.has_roots() {
        return Ok(Dict::new());
    }
    Ok(cx.files.list_links(&within.saltenv, "")?.into_iter().collect())
}

/// Bring the back ends up to date: `git` fetches its remotes, `roots` always is.
///
/// ```console
/// $ salt-run fileserver.update
/// ```
#[function]
pub fn update(
    cx: &Cx,
    /// Only these back ends.
    backend: Option<Value>,
    _rest: Rest,
) -> Result<bool> {
    let wanted = |name: &str| match &backend {
        Some(Value::Str(names)) => names.split(',').any(|own| own.trim() == name),
        Some(names) => names.items_of_sequence().unwrap_or_default().iter().any(|own| own == name),
        None => true,
    };
    let configured = cx.opt("fileserver_backend").and_then(|all| all.items_of_sequence());
    let has_git =
        configured.unwrap_or_default().iter().any(|name| name == "git" || name == "gitfs");
    let mut well = true;
    if has_git && wanted("git") {
        let files = halite_fileserver::git::GitFs::new(cx.host.clone(), &cx.opts);
        for (remote, error) in files.fetch() {
            tracing::error!("gitfs: {remote}: {error}");
            well = false;
        }
    }
    if cx.opt_bool("fileserver_events") {
        // Without a master there is nobody to tell.
        let request = Request::Ask { what: "fileserver_update".into(), load: Dict::new() };
        let _ = master::ask(cx, &request);
    }
    Ok(well)
}

/// Empty the caches of the back ends. `roots` has none that could be emptied.
///
/// ```console
/// $ salt-run fileserver.clear_cache
/// ```
#[function]
pub fn clear_cache(
    _: &Cx,
    /// Only these back ends.
    backend: Option<Value>,
) -> Result<Value> {
    let _ = backend;
    Ok("No cache was cleared".into())
}

/// Forget the lists of files that are kept. They are compared with the folders whenever they are
/// used, so there is nothing that could be out of date.
///
/// ```console
/// $ salt-run fileserver.clear_file_list_cache
/// ```
#[function]
pub fn clear_file_list_cache(
    _: &Cx,
    /// The environments, with commas.
    saltenv: Option<Value>,
    /// Only these back ends.
    backend: Option<Value>,
) -> Result<Dict> {
    let _ = (saltenv, backend);
    Ok(Dict::new())
}

/// Remove the locks of remotes. `roots` has none.
///
/// ```console
/// $ salt-run fileserver.clear_lock
/// ```
#[function]
pub fn clear_lock(
    _: &Cx,
    /// Only these back ends.
    backend: Option<Value>,
    /// Only remotes that match this glob.
    remote: Option<String>,
) -> Result<Value> {
    let _ = (backend, remote);
    Ok("No locks were removed".into())
}

/// Lock remotes. `roots` has none.
///
/// ```console
/// $ salt-run fileserver.lock
/// ```
#[function]
pub fn lock(
    _: &Cx,
    /// Only these back ends.
    backend: Option<Value>,
    /// Only remotes that match this glob.
    remote: Option<String>,
) -> Result<Value> {
    let _ = (backend, remote);
    Ok("No locks were set".into())
}

/// Tells whether `roots` is among the back ends that were asked for; `-roots` leaves it out.
fn has_roots(backend: Option<&Value>) -> bool {
    let Some(backend) = backend.filter(|backend| backend.truthy()) else { return true };
    let names: Vec<String> = match backend.items_of_sequence() {
        Some(names) => names.iter().map(|name| name.to_str().to_string()).collect(),
        None => backend.to_str().split(',').map(|name| name.trim().to_owned()).collect(),
    };
    if names.iter().all(|name| name.starts_with('-')) {
        return !names.iter().any(|name| name == "-roots");
    }
    names.iter().any(|name| name == "roots" || name == "file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_ends() {
        assert!(has_roots(None) && has_roots(Some(&"git,roots".into())));
        assert!(!has_roots(Some(&"git".into())) && !has_roots(Some(&"-roots".into())));
        assert!(has_roots(Some(&"-git".into())));
    }
}
