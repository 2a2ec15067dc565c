//! What would be applied, without applying it: the data in each of its forms, and what uses what.

use halite_spec::{Cx, Result, What, function};
use halite_value::{Dict, Value, entries};

use super::{COMPILE_ERROR, How, Later, PILLAR_ERROR, error_code, names};

/// Turns the engine's errors into the return code they mean.
fn told(cx: &Cx, ret: Value, is_data: bool) -> Value {
    if let Value::List(errors) = &ret
        && !is_data
    {
        cx.job.set_retcode(error_code(errors));
    }
    ret
}

/// Tells whether a list holds low chunks rather than error texts.
fn is_chunks(ret: &Value) -> bool {
    ret.as_list().is_some_and(|list| list.into_iter().all(|item| item.as_dict().is_some()))
}

/// Show the high data of SLS files.
///
/// ```console
/// $ salt web1 state.show_sls web.nginx
/// ```
#[function]
pub fn show_sls(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    #[group] how: How,
) -> Result<Value> {
    let ret = how.show(cx, What::Sls(names(&mods)), "checked")?;
    Ok(told(cx, ret, false))
}

/// Show the low data of SLS files, in the order of a run.
///
/// ```console
/// $ salt web1 state.show_low_sls web.nginx
/// ```
#[function]
pub fn show_low_sls(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    #[group] how: How,
) -> Result<Value> {
    let ret = how.show(cx, What::Sls(names(&mods)), "low")?;
    let data = is_chunks(&ret);
    Ok(told(cx, ret, data))
}

/// Show the high data the top file leads to.
///
/// ```console
/// $ salt web1 state.show_highstate
/// ```
#[function]
pub fn show_highstate(cx: &Cx, #[group] later: Later) -> Result<Value> {
    let how = later.tested()?;
    let ret = how.show(cx, What::Highstate, "high")?;
    if ret.as_dict().is_some_and(Dict::is_empty) {
        // As in Salt, which says nothing of the kind of low data.
        cx.job.set_retcode(COMPILE_ERROR);
    }
    Ok(told(cx, ret, false))
}

/// Show the low data the top file leads to, in the order of a run.
///
/// ```console
/// $ salt web1 state.show_lowstate
/// ```
#[function]
pub fn show_lowstate(cx: &Cx, #[group] later: Later) -> Result<Value> {
    let how = later.tested()?;
    let ret = how.show(cx, What::Highstate, "low")?;
    // What is wrong with the tree is no failure here, as in Salt; a pillar that does not render is.
    let is_fine = ret.as_list().is_none_or(|errors| error_code(errors) != PILLAR_ERROR);
    Ok(told(cx, ret, is_fine))
}

/// Show which SLS the top file gives this minion, by environment.
///
/// ```console
/// $ salt web1 state.show_top
/// ```
#[function]
pub fn show_top(cx: &Cx, #[group] later: Later) -> Result<Value> {
    let how = later.untested();
    let ret = how.show(cx, What::Top, "top")?;
    Ok(told(cx, ret, false))
}

/// Show the SLS this minion gets, includes and all.
///
/// ```console
/// $ salt web1 state.show_states
/// ```
#[function]
pub fn show_states(cx: &Cx, #[group] later: Later) -> Result<Value> {
    let how = later.untested();
    let ret = how.show(cx, What::Highstate, "low")?;
    if !is_chunks(&ret) {
        return Ok(told(cx, ret, false));
    }
    let mut names: Vec<Value> = Vec::new();
    for chunk in ret.items_of_sequence().unwrap_or_default() {
        // In the order in which they begin.
        if let Some(name) = chunk.get("__sls__").filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    Ok(names.into())
}

/// Show which SLS of the file server this minion uses, and which it does not.
///
/// ```console
/// $ salt web1 state.show_state_usage
/// ```
#[function]
pub fn show_state_usage(cx: &Cx, #[group] later: Later) -> Result<Value> {
    let how = later.untested();
    let top = how.show(cx, What::Top, "usage")?;
    let Value::Dict(top) = top else { return Ok(told(cx, top, false)) };
    let usage = Dict::new();
    for env in cx.files.envs()? {
        let used: Vec<Value> =
            top.get(env.as_str()).and_then(|used| used.items_of_sequence()).unwrap_or_default();
        let all = sls_names(cx, &env)?;
        let unused: Vec<Value> =
            all.iter().map(Value::from).filter(|sls| !used.contains(sls)).collect();
        usage.insert(
            env.as_str(),
            Value::from(entries! {
                "used" => Value::from(used.clone()), "unused" => Value::from(unused.clone()),
                "count_all" => all.len(), "count_used" => used.len(),
                "count_unused" => unused.len(),
            }),
        );
    }
    Ok(usage.into())
}

fn sls_names(cx: &Cx, env: &str) -> Result<Vec<String>> {
    let paths = cx.files.list(env, "")?;
    let names = paths
        .iter()
        .filter_map(|path| path.strip_suffix(".sls"))
        .map(|path| path.strip_suffix("/init").unwrap_or(path).replace('/', "."));
    Ok(names.collect())
}

/// Tell whether SLS files exist and render.
///
/// ```console
/// $ salt web1 state.sls_exists web.nginx
/// ```
#[function]
pub fn sls_exists(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    #[group] how: How,
) -> Result<bool> {
    let ret = how.show(cx, What::Sls(names(&mods)), "checked")?;
    let exists = ret.as_dict().is_some() && !names(&mods).is_empty();
    if !exists {
        cx.job.set_retcode(1);
    }
    Ok(exists)
}

/// Tell whether ids exist in SLS files.
///
/// ```console
/// $ salt web1 state.id_exists app_conf web.nginx
/// ```
#[function]
pub fn id_exists(
    cx: &Cx,
    /// The ids.
    ids: Value,
    /// SLS names.
    mods: Value,
    #[group] how: How,
) -> Result<bool> {
    let ret = how.show(cx, What::Sls(names(&mods)), "low")?;
    let chunks = ret.items_of_sequence().unwrap_or_default();
    let has =
        |id: &String| chunks.iter().any(|chunk| chunk.get_str("__id__").as_deref() == Some(id));
    Ok(names(&ids).iter().all(has))
}

/// Draw the requisite graph of SLS files, in Graphviz' language.
///
/// ```console
/// $ salt '*' state.graph my_sls --out=txt
/// ```
#[function]
pub fn graph(
    cx: &Cx,
    /// SLS names.
    mods: Value,
    #[group] how: How,
) -> Result<Value> {
    let ret = how.show(cx, What::Sls(names(&mods)), "dot")?;
    Ok(told(cx, ret, false))
}

/// Draw the requisite graph of the highstate, in Graphviz' language.
///
/// ```console
/// $ salt '*' state.graph_highstate --out=txt
/// ```
#[function]
pub fn graph_highstate(cx: &Cx, #[group] later: Later) -> Result<Value> {
    let how = later.untested();
    let ret = how.show(cx, What::Highstate, "dot")?;
    Ok(told(cx, ret, false))
}
