//! `saltutil.sync_*`: the users' own Python modules, from the file server into `extension_modules`.
//!
//! Files below `_modules`, `_states` … of the environments are copied when their content differs;
//! what was copied is returned as `modules.name`. With `clean_dynamic_modules` what the file server
//! has no more is removed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use halite_spec::{
    Args, Call, Cx, Error, Refresh, Result, StateRequest, What, function, host::Write,
};
use halite_value::{Dict, Value, entries};

use crate::{file::tree::walk, hashutil::Kind};

/// Which of the modules that are served are wanted.
#[derive(Args)]
pub struct Chosen {
    /// Only these: names with commas, or a dict from kind to list.
    extmod_whitelist: Option<Value>,
    /// All but these.
    extmod_blacklist: Option<Value>,
}

/// What most functions take.
#[derive(Args)]
pub struct Wanted {
    /// The environments to look in, a list or with commas; those of the top file if absent.
    saltenv: Option<Value>,
    /// Load what was copied.
    #[default(true)]
    refresh: bool,
    #[group]
    chosen: Chosen,
}

impl Wanted {
    /// Copies the modules of one form, and loads `what` anew if that is asked for.
    fn run(&self, cx: &Cx, form: &str, what: Refresh) -> Result<Vec<String>> {
        self.run_all(cx, form, &[what])
    }

    fn run_all(&self, cx: &Cx, form: &str, what: &[Refresh]) -> Result<Vec<String>> {
        let copied = copy_modules(cx, form, self.saltenv.as_ref(), &self.chosen)?;
        refresh_if(cx, self.refresh, what)?;
        Ok(copied)
    }
}

/// Which modules of a form are (not) wanted: a text is for this form, a dict for each.
fn names_of(given: Option<&Value>, option: Option<Value>, form: &str) -> Option<Vec<String>> {
    let texts = |value: &Value| match value.items_of_sequence() {
        Some(items) => items.iter().map(|item| item.to_str().to_string()).collect(),
        None => vec![value.to_str().to_string()],
    };
    match given {
        Some(Value::Str(text)) => Some(text.split(',').map(str::to_owned).collect()),
        Some(Value::Dict(forms)) => forms.get(form).map(|names| texts(&names)),
        _ => option.and_then(|forms| forms.get(form)).map(|names| texts(&names)),
    }
}

/// The environments to sync from: those given, or those of the top file.
fn envs_of(cx: &Cx, saltenv: Option<&Value>) -> Vec<String> {
    match saltenv.filter(|env| env.truthy()) {
        Some(Value::Str(text)) => text.split(',').map(str::to_owned).collect(),
        Some(list) if list.items_of_sequence().is_some() => {
            let items = list.items_of_sequence().unwrap_or_default();
            items.iter().map(|env| env.to_str().to_string()).collect()
        }
        _ => match cx.runtime.states().show(cx, &StateRequest::new(What::Top)) {
            Ok(Value::Dict(top)) if !top.is_empty() => {
                top.keys().iter().map(|env| env.to_str().to_string()).collect()
            }
            Ok(_) => vec!["base".to_owned()],
            Err(error) => {
                tracing::warn!("the top file names no environments ({error}): taking base");
                vec!["base".to_owned()]
            }
        },
    }
}

fn is_module(path: &str) -> bool {
    [".py", ".pyx", ".so", ".zip"].iter().any(|end| path.ends_with(end))
}

/// Copies the modules of one form, for whoever keeps them: a minion, or a master.
pub fn copy_modules(
    cx: &Cx,
    form: &str,
    saltenv: Option<&Value>,
    chosen: &Chosen,
) -> Result<Vec<String>> {
    let folder = module_dir(cx, form)?;
    let only = names_of(chosen.extmod_whitelist.as_ref(), cx.opt("extmod_whitelist"), form);
    let without = names_of(chosen.extmod_blacklist.as_ref(), cx.opt("extmod_blacklist"), form);
    let prefix = format!("_{form}");
    let mut copied = Vec::new();
    let mut served = BTreeSet::new();
    for env in envs_of(cx, saltenv) {
        for path in cx.files.list(&env, &prefix)? {
            let Some(rel) = path.strip_prefix(&format!("{prefix}/")).filter(|_| is_module(&path))
            else {
                continue;
            };
            let name = rel.rsplit_once('.').map_or(rel, |(name, _)| name).replace('/', ".");
            // An empty list allows nothing.
            let is_allowed = only.as_ref().is_none_or(|only| only.contains(&name));
            if !is_allowed || without.as_ref().is_some_and(|without| without.contains(&name)) {
                continue;
            }
            let Some(source) = cx.files.cache(&format!("salt://{path}"), &env)? else { continue };
            served.insert(rel.to_owned());
            if copy(cx, &source, &folder.join(rel))? {
                copied.push(format!("{form}.{name}"));
            }
        }
    }
    if cx.opt("clean_dynamic_modules") == Some(Value::Bool(true)) && cx.host.is_dir(&folder)? {
        clean(cx, &folder, &served)?;
    }
    Ok(copied)
}

fn module_dir(cx: &Cx, form: &str) -> Result<PathBuf> {
    let folder = cx
        .opt_str("extension_modules")
        .ok_or_else(|| Error::failed("extension_modules is not set"))?;
    Ok(PathBuf::from(folder.as_str()).join(form))
}

/// Copies a file unless it is there already; tells whether it did.
fn copy(cx: &Cx, source: &Path, dest: &Path) -> Result<bool> {
    if cx.host.is_file(dest)? {
        let hash = |path: &Path| Kind::Sha256.of_file(&*cx.host, path);
        if hash(source)? == hash(dest)? {
            return Ok(false);
        }
    }
    if let Some(parent) = dest.parent() {
        cx.host.create_dirs(parent, Some(0o700))?;
    }
    let mut content = cx.host.open(source)?;
    let how = Write { mode: Some(0o600), ..Write::default() };
    cx.host.write_from(dest, &mut content, &how)?;
    Ok(true)
}

fn clean(cx: &Cx, folder: &Path, served: &BTreeSet<String>) -> Result<()> {
    let mut folders = Vec::new();
    for visited in walk(cx, folder, &|_| true)? {
        for name in &visited.files {
            let path = visited.path.join(name);
            let rel = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if !served.contains(&rel) {
                cx.host.remove_file(&path)?;
            }
        }
        folders.push(visited.path);
    }
    // The deepest first; those that are not empty stay.
    folders.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    for empty in folders {
        if empty != folder && cx.host.read_dir(&empty).is_ok_and(|names| names.is_empty()) {
            cx.host.remove_dir(&empty)?;
        }
    }
    Ok(())
}

fn masterless_only(cx: &Cx, what: &str) -> Result<()> {
    if cx.opt_str("file_client").as_deref() == Some("local") {
        return Ok(());
    }
    Err(Error::failed(format!("{what} can only be synced to masterless minions")))
}

fn refresh_if(cx: &Cx, wanted: bool, what: &[Refresh]) -> Result<()> {
    for what in what.iter().filter(|_| wanted) {
        cx.runtime.refresh(cx, *what)?;
    }
    Ok(())
}

/// Copy the users' own beacons from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_beacons
/// ```
#[function]
pub fn sync_beacons(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.run(cx, "beacons", Refresh::Beacons)
}

/// Declares the functions that copy one folder of modules each: its name, and what is in it.
macro_rules! copies {
    ($($name:ident, $folder:literal, $what:literal;)*) => {$(
        #[doc = concat!("Copy the users' own ", $what, " from the file server to this machine.")]
        #[doc = ""]
        #[doc = "```console"]
        #[doc = concat!("$ salt web1 saltutil.", stringify!($name))]
        #[doc = "```"]
        #[function]
        pub fn $name(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
            wanted.run(cx, $folder, Refresh::Modules)
        }
    )*};
}

copies! {
    sync_clouds, "clouds", "cloud modules";
    sync_executors, "executors", "executors";
    sync_log_handlers, "log_handlers", "log handlers";
    sync_modules, "modules", "execution modules";
    sync_output, "output", "outputters";
    sync_outputters, "output", "outputters";
    sync_renderers, "renderers", "renderers";
    sync_resources, "resources", "resource modules";
    sync_returners, "returners", "returners";
    sync_serializers, "serializers", "serializers";
    sync_states, "states", "state modules";
    sync_utils, "utils", "utility modules";
}

/// Copy the users' own engines from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_engines
/// ```
#[function]
pub fn sync_engines(
    cx: &Cx,
    /// The environments to look in, a list or with commas; those of the top file if absent.
    saltenv: Option<Value>,
    /// Load what was copied.
    #[default(false)]
    refresh: bool,
    #[group] chosen: Chosen,
) -> Result<Vec<String>> {
    Wanted { saltenv, refresh, chosen }.run(cx, "engines", Refresh::Modules)
}

/// Copy the users' own grain modules from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_grains
/// ```
#[function]
pub fn sync_grains(
    cx: &Cx,
    #[group] wanted: Wanted,
    /// Have the master compile the pillar afresh.
    #[default(false)]
    clean_pillar_cache: bool,
) -> Result<Vec<String>> {
    let pillar = Refresh::Pillar { fresh: clean_pillar_cache };
    wanted.run_all(cx, "grains", &[Refresh::Grains, pillar])
}

/// Copy the users' own matchers from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_matchers
/// ```
#[function]
pub fn sync_matchers(
    cx: &Cx,
    /// The environments to look in, a list or with commas; those of the top file if absent.
    saltenv: Option<Value>,
    /// Load what was copied.
    #[default(false)]
    refresh: bool,
    #[group] chosen: Chosen,
) -> Result<Vec<String>> {
    Wanted { saltenv, refresh, chosen }.run(cx, "matchers", Refresh::Modules)
}

/// Copy the users' own pillar modules from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_pillar
/// ```
#[function]
pub fn sync_pillar(
    cx: &Cx,
    #[group] wanted: Wanted,
    /// Have the master compile the pillar afresh.
    #[default(false)]
    clean_pillar_cache: bool,
) -> Result<Vec<String>> {
    masterless_only(cx, "Pillar modules")?;
    let pillar = Refresh::Pillar { fresh: clean_pillar_cache };
    wanted.run_all(cx, "pillar", &[Refresh::Modules, pillar])
}

/// Copy the users' own proxy modules from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_proxymodules
/// ```
#[function]
pub fn sync_proxymodules(
    cx: &Cx,
    /// The environments to look in, a list or with commas; those of the top file if absent.
    saltenv: Option<Value>,
    /// Load what was copied.
    #[default(false)]
    refresh: bool,
    #[group] chosen: Chosen,
) -> Result<Vec<String>> {
    Wanted { saltenv, refresh, chosen }.run(cx, "proxy", Refresh::Modules)
}

/// Copy the users' own sdb modules from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_sdb
/// ```
#[function]
pub fn sync_sdb(
    cx: &Cx,
    /// The environments to look in, a list or with commas; those of the top file if absent.
    saltenv: Option<Value>,
    #[group] chosen: Chosen,
) -> Result<Vec<String>> {
    copy_modules(cx, "sdb", saltenv.as_ref(), &chosen)
}

/// Copy the users' own thorium modules from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_thorium
/// ```
#[function]
pub fn sync_thorium(
    cx: &Cx,
    /// The environments to look in, a list or with commas; those of the top file if absent.
    saltenv: Option<Value>,
    /// Load what was copied.
    #[default(false)]
    refresh: bool,
    #[group] chosen: Chosen,
) -> Result<Vec<String>> {
    Wanted { saltenv, refresh, chosen }.run(cx, "thorium", Refresh::Modules)
}

/// Copy the users' own master top modules from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_tops
/// ```
#[function]
pub fn sync_tops(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    masterless_only(cx, "Master top modules")?;
    copy_modules(cx, "tops", wanted.saltenv.as_ref(), &wanted.chosen)
}

/// Copy the users' own wrapper modules from the file server to this machine.
///
/// ```console
/// $ salt web1 saltutil.sync_wrapper
/// ```
#[function]
pub fn sync_wrapper(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    masterless_only(cx, "Wrapper modules")?;
    wanted.run(cx, "wrapper", Refresh::Modules)
}

/// Copy the users' own modules of every kind from the file server to this machine.
///
/// ```console
/// $ salt '*' saltutil.sync_all saltenv=dev,base
/// ```
#[function]
pub fn sync_all(
    cx: &Cx,
    /// The environments to look in, a list or with commas; those of the top file if absent.
    saltenv: Option<Value>,
    /// Load what was copied, and refresh the pillar.
    #[default(true)]
    refresh: bool,
    #[group] chosen: Chosen,
    /// Have the master compile the pillar afresh.
    #[default(false)]
    clean_pillar_cache: bool,
) -> Result<Dict> {
    let local = cx.opt_str("file_client").as_deref() == Some("local");
    // The top file is looked at once for all.
    let saltenv = Some(Value::list(envs_of(cx, saltenv.as_ref())));
    let copy = |form: &str| copy_modules(cx, form, saltenv.as_ref(), &chosen);
    let copied = entries! {};
    if local {
        copied.insert("tops", copy("tops")?);
    }
    for (key, form) in [
        ("clouds", "clouds"),
        ("beacons", "beacons"),
        ("modules", "modules"),
        ("states", "states"),
        ("sdb", "sdb"),
        ("grains", "grains"),
        ("renderers", "renderers"),
        ("returners", "returners"),
        ("output", "output"),
        ("utils", "utils"),
        ("log_handlers", "log_handlers"),
        ("executors", "executors"),
        ("proxymodules", "proxy"),
        ("engines", "engines"),
        ("thorium", "thorium"),
        ("serializers", "serializers"),
        ("matchers", "matchers"),
        ("resources", "resources"),
    ] {
        copied.insert(key, copy(form)?);
    }
    if local {
        copied.insert("pillar", copy("pillar")?);
        copied.insert("wrapper", copy("wrapper")?);
    }
    let grains = copied.get("grains").is_some_and(|list| list.truthy());
    let first = if grains { Refresh::Grains } else { Refresh::Modules };
    refresh_if(cx, refresh, &[first, Refresh::Pillar { fresh: clean_pillar_cache }])?;
    Ok(copied)
}

/// Brings users' modules over before a highstate, unless there are none anywhere.
pub(crate) fn before_highstate(cx: &Cx) -> Result<()> {
    if !cx.opt_bool("autoload_dynamic_modules") {
        return Ok(());
    }
    let envs = envs_of(cx, None);
    let served = envs.iter().any(|env| {
        let folders = cx.files.list_dirs(env, "").unwrap_or_default();
        folders.iter().any(|folder| folder.starts_with('_'))
    });
    let extension = cx.opt_str("extension_modules").unwrap_or_default();
    let here = || cx.host.read_dir(Path::new(extension.as_str())).is_ok_and(|all| !all.is_empty());
    if extension.is_empty() || !served && !here() {
        return Ok(());
    }
    let call = Call::default().with("saltenv", Value::list(envs)).with("refresh", false);
    let copied = cx.call("saltutil.sync_all", call)?;
    let any = |kind: &str| copied.get(kind).is_some_and(|list| list.truthy());
    let kinds = copied.as_dict().map(Dict::keys).unwrap_or_default();
    if any("grains") {
        cx.runtime.refresh(cx, Refresh::Grains)?;
    } else if kinds.iter().any(|kind| any(&kind.to_str())) {
        cx.runtime.refresh(cx, Refresh::Modules)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn lists_of_allowed_modules() {
        let given = dict! { "modules" => list!["one"], "states" => list![] };
        let names = |form: &str| names_of(Some(&given), None, form);
        assert_eq!(names("modules"), Some(vec!["one".to_owned()]));
        // An empty list is a list; a form that is not named is free.
        assert_eq!(names("states"), Some(Vec::new()));
        assert_eq!(names("grains"), None);
        let text = Value::from("a,b");
        assert_eq!(names_of(Some(&text), None, "grains").map(|names| names.len()), Some(2));
        assert_eq!(
            names_of(None, Some(dict! { "sdb" => list!["x"] }), "sdb"),
            Some(vec!["x".into()])
        );
    }
}
