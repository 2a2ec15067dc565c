//! `saltutil`: users' own Python modules for the master, from the file server into
//! `extension_modules`.

use halite_modules::saltutil::{Chosen, copy_modules};
use halite_spec::{Args, Cx, Result, function, module};
use halite_value::{Dict, Value};

module! {
    /// Users' own modules for the master.
    "saltutil": sync_all,
    sync_cache, sync_clouds, sync_eauth_tokens, sync_engines, sync_executors, sync_fileserver,
    sync_grains, sync_modules, sync_output, sync_pillar, sync_proxymodules, sync_queues,
    sync_renderers, sync_returners, sync_roster, sync_runners, sync_sdb, sync_serializers,
    sync_states, sync_thorium, sync_tops, sync_utils, sync_wheel, sync_wrapper,
}

/// What every function takes.
#[derive(Args)]
pub struct Wanted {
    /// The environment to look in.
    #[default(Value::from("base"))]
    saltenv: Value,
    #[group]
    chosen: Chosen,
}

impl Wanted {
    fn copy(&self, cx: &Cx, folder: &str) -> Result<Vec<String>> {
        copy_modules(cx, folder, Some(&self.saltenv), &self.chosen)
    }
}

/// Every kind, by the name of its function, with its folder on the file server (without `_`).
const KINDS: &[(&str, &str)] = &[
    ("cache", "cache"),
    ("clouds", "clouds"),
    ("engines", "engines"),
    ("executors", "executors"),
    ("fileserver", "fileserver"),
    ("grains", "grains"),
    ("modules", "modules"),
    ("output", "output"),
    ("pillar", "pillar"),
    ("proxymodules", "proxy"),
    ("queues", "queues"),
    ("renderers", "renderers"),
    ("returners", "returners"),
    ("roster", "roster"),
    ("runners", "runners"),
    ("sdb", "sdb"),
    ("serializers", "serializers"),
    ("states", "states"),
    ("thorium", "thorium"),
    ("tokens", "tokens"),
    ("tops", "tops"),
    ("utils", "utils"),
    ("wheel", "wheel"),
    ("wrapper", "wrapper"),
];

/// Copy all of the users' own modules from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_all
/// ```
#[function]
pub fn sync_all(cx: &Cx, #[group] wanted: Wanted) -> Result<Dict> {
    let all = Dict::new();
    for (kind, folder) in KINDS {
        all.insert(*kind, wanted.copy(cx, folder)?);
    }
    Ok(all)
}

/// Copy the users' own cache from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_cache
/// ```
#[function]
pub fn sync_cache(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "cache")
}

/// Copy the users' own clouds from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_clouds
/// ```
#[function]
pub fn sync_clouds(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "clouds")
}

/// Copy the users' own eauth tokens from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_eauth_tokens
/// ```
#[function]
pub fn sync_eauth_tokens(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "tokens")
}

/// Copy the users' own engines from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_engines
/// ```
#[function]
pub fn sync_engines(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "engines")
}

/// Copy the users' own executors from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_executors
/// ```
#[function]
pub fn sync_executors(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "executors")
}

/// Copy the users' own fileserver from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_fileserver
/// ```
#[function]
pub fn sync_fileserver(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "fileserver")
}

/// Copy the users' own grains from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_grains
/// ```
#[function]
pub fn sync_grains(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "grains")
}

/// Copy the users' own modules from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_modules
/// ```
#[function]
pub fn sync_modules(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "modules")
}

/// Copy the users' own output from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_output
/// ```
#[function]
pub fn sync_output(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "output")
}

/// Copy the users' own pillar from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_pillar
/// ```
#[function]
pub fn sync_pillar(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "pillar")
}

/// Copy the users' own proxymodules from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_proxymodules
/// ```
#[function]
pub fn sync_proxymodules(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "proxy")
}

/// Copy the users' own queues from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_queues
/// ```
#[function]
pub fn sync_queues(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "queues")
}

/// Copy the users' own renderers from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_renderers
/// ```
#[function]
pub fn sync_renderers(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "renderers")
}

/// Copy the users' own returners from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_returners
/// ```
#[function]
pub fn sync_returners(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "returners")
}

/// Copy the users' own roster from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_roster
/// ```
#[function]
pub fn sync_roster(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "roster")
}

/// Copy the users' own runners from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_runners
/// ```
#[function]
pub fn sync_runners(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "runners")
}

/// Copy the users' own sdb from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_sdb
/// ```
#[function]
pub fn sync_sdb(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "sdb")
}

/// Copy the users' own serializers from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_serializers
/// ```
#[function]
pub fn sync_serializers(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "serializers")
}

/// Copy the users' own states from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_states
/// ```
#[function]
pub fn sync_states(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "states")
}

/// Copy the users' own thorium from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_thorium
/// ```
#[function]
pub fn sync_thorium(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "thorium")
}

/// Copy the users' own tops from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_tops
/// ```
#[function]
pub fn sync_tops(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "tops")
}

/// Copy the users' own utils from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_utils
/// ```
#[function]
pub fn sync_utils(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "utils")
}

/// Copy the users' own wheel from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_wheel
/// ```
#[function]
pub fn sync_wheel(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "wheel")
}

/// Copy the users' own wrapper from the file server to the master.
///
/// ```console
/// $ salt-run saltutil.sync_wrapper
/// ```
#[function]
pub fn sync_wrapper(cx: &Cx, #[group] wanted: Wanted) -> Result<Vec<String>> {
    wanted.copy(cx, "wrapper")
}
