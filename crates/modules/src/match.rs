//! `match`: whether a target expression means this minion, or another name on it.
//!
//! Each kind of target has its function; an expression that cannot be read matches nothing and is
//! logged, as in Salt. `filter_by`, `search_by` and `ifelse` choose by such expressions.

use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_target::{DELIMITER, Expr, Minion, Options, TargetType};
use halite_value::{Dict, Key, Value, merge as deep};

module! {
    /// Whether a target means this minion.
    "match": compound, ipcidr, pillar_pcre, pillar, data, grain_pcre, grain, list, pcre, glob,
    filter_by, search_by, ifelse,
}

fn matches(cx: &Cx, kind: TargetType, tgt: &Value, id: Option<&str>, delimiter: &str) -> bool {
    let groups = match cx.opt("nodegroups") {
        Some(Value::Dict(groups)) => Some(groups),
        _ => None,
    };
    let options = Options { nodegroups: groups.as_ref(), delimiter: Some(delimiter) };
    let own = cx.id();
    // Another minion's grains are not known here: only its name can be matched, as in Salt.
    let minion = Minion {
        id: id.unwrap_or(&own),
        grains: Some(&cx.grains),
        pillar: Some(&cx.pillar),
        data: None,
        resources: None,
    };
    match Expr::parse(tgt, kind, &options) {
        Ok(expression) => expression.matches(&minion),
        Err(error) => {
            tracing::error!("the target {tgt} matches nothing: {error}");
            false
        }
    }
}

/// Tell whether a compound target means this minion.
///
/// ```console
/// $ salt web1 match.compound 'G@role:web and not db*'
/// ```
#[function]
pub fn compound(
    cx: &Cx,
    /// The target.
    tgt: Value,
    /// Another minion to match.
    minion_id: Option<String>,
) -> Result<bool> {
    Ok(matches(cx, TargetType::Compound, &tgt, minion_id.as_deref(), DELIMITER))
}

/// Tell whether an address or subnet means this minion.
///
/// ```console
/// $ salt web1 match.ipcidr 192.0.2.0/24
/// ```
#[function]
pub fn ipcidr(
    cx: &Cx,
    /// The address or subnet.
    tgt: Value,
) -> Result<bool> {
    Ok(matches(cx, TargetType::Ipcidr, &tgt, None, DELIMITER))
}

/// Tell whether a pillar value fits a regular expression.
///
/// ```console
/// $ salt web1 match.pillar_pcre 'shop:colour:(blue|red)'
/// ```
#[function]
pub fn pillar_pcre(
    cx: &Cx,
    /// Path and expression.
    tgt: Value,
    /// What stands between the steps of the path.
    #[default(DELIMITER.to_owned())]
    delimiter: String,
) -> Result<bool> {
    Ok(matches(cx, TargetType::PillarPcre, &tgt, None, &delimiter))
}

/// Tell whether a pillar value fits a glob.
///
/// ```console
/// $ salt web1 match.pillar shop:colour:blue
/// ```
#[function]
pub fn pillar(
    cx: &Cx,
    /// Path and glob.
    tgt: Value,
    /// What stands between the steps of the path.
    #[default(DELIMITER.to_owned())]
    delimiter: String,
) -> Result<bool> {
    Ok(matches(cx, TargetType::Pillar, &tgt, None, &delimiter))
}

/// Tell whether a value of the minion's data store fits.
///
/// ```console
/// $ salt web1 match.data colour:blue
/// ```
#[function]
pub fn data(
    cx: &Cx,
    /// Path and glob.
    tgt: String,
) -> Result<bool> {
    let store = crate::data::load(cx)?;
    let minion =
        Minion { id: &cx.id(), grains: None, pillar: None, data: Some(&store), resources: None };
    Ok(Expr::of(&tgt, TargetType::Data).is_ok_and(|expression| expression.matches(&minion)))
}

/// Tell whether a grain fits a regular expression.
///
/// ```console
/// $ salt web1 match.grain_pcre 'role:(web|db)'
/// ```
#[function]
pub fn grain_pcre(
    cx: &Cx,
    /// Path and expression.
    tgt: Value,
    /// What stands between the steps of the path.
    #[default(DELIMITER.to_owned())]
    delimiter: String,
) -> Result<bool> {
    Ok(matches(cx, TargetType::GrainPcre, &tgt, None, &delimiter))
}

/// Tell whether a grain fits a glob.
///
/// ```console
/// $ salt web1 match.grain role:web
/// ```
#[function]
pub fn grain(
    cx: &Cx,
    /// Path and glob.
    tgt: Value,
    /// What stands between the steps of the path.
    #[default(DELIMITER.to_owned())]
    delimiter: String,
) -> Result<bool> {
    Ok(matches(cx, TargetType::Grain, &tgt, None, &delimiter))
}

/// Tell whether this minion is in a list.
///
/// ```console
/// $ salt web1 match.list web1,web2
/// ```
#[function]
pub fn list(
    cx: &Cx,
    /// The list.
    tgt: Value,
    /// Another minion to match.
    minion_id: Option<String>,
) -> Result<bool> {
    Ok(matches(cx, TargetType::List, &tgt, minion_id.as_deref(), DELIMITER))
}

/// Tell whether the minion's id fits a regular expression.
///
/// ```console
/// $ salt web1 match.pcre 'web[0-9]+'
/// ```
#[function]
pub fn pcre(
    cx: &Cx,
    /// The expression.
    tgt: Value,
    /// Another minion to match.
    minion_id: Option<String>,
) -> Result<bool> {
    Ok(matches(cx, TargetType::Pcre, &tgt, minion_id.as_deref(), DELIMITER))
}

/// Tell whether the minion's id fits a glob.
///
/// ```console
/// $ salt web1 match.glob 'web*'
/// ```
#[function]
pub fn glob(
    cx: &Cx,
    /// The glob.
    tgt: Value,
    /// Another minion to match.
    minion_id: Option<String>,
) -> Result<bool> {
    Ok(matches(cx, TargetType::Glob, &tgt, minion_id.as_deref(), DELIMITER))
}

fn kind_named(name: &str) -> Result<TargetType> {
    let known = [
        "compound",
        "ipcidr",
        "pillar_pcre",
        "pillar",
        "grain_pcre",
        "grain",
        "list",
        "pcre",
        "glob",
    ];
    if !known.contains(&name) {
        let message = Value::str(name).repr();
        return Err(Error::raised("KeyError", message));
    }
    name.parse().map_err(|error: halite_target::Error| Error::invalid(error.to_string()))
}

fn salt_exception(message: &str) -> Error {
    Error::raised("SaltException", message)
}

fn pick(
    cx: &Cx,
    table: &[(Value, Value)],
    kind: TargetType,
    id: Option<&str>,
    over: Option<&Value>,
    merge_lists: bool,
) -> Result<Option<Value>> {
    let id = id.filter(|id| !id.is_empty());
    let Some((_, value)) = table.iter().find(|(key, _)| matches(cx, kind, key, id, DELIMITER))
    else {
        return Ok(None);
    };
    let Some(over) = over.filter(|over| over.truthy()) else { return Ok(Some(value.clone())) };
    if over.as_dict().is_none() {
        return Err(salt_exception("filter_by merge argument must be a dictionary."));
    }
    if value.is_null() {
        return Ok(Some(over.clone()));
    }
    deep::merge(value, &over.deep_copy(), deep::Strategy::Recurse, merge_lists)
        .map(Some)
        .map_err(|error| Error::failed(error.to_string()))
}

/// Pick the entry of a dict whose key, a target, means this minion.
///
/// ```console
/// $ salt '*' match.filter_by '{foo*: Foo rules!, bar*: Bar rules!}' minion_id=bar03
/// ```
#[function]
pub fn filter_by(
    cx: &Cx,
    /// Values by target.
    lookup: Dict,
    /// The kind of the targets.
    #[default("compound".to_owned())]
    tgt_type: String,
    /// Another minion to match.
    minion_id: Option<String>,
    /// Merged over the result.
    merge: Option<Value>,
    /// Lists are joined when merging.
    #[default(false)]
    merge_lists: bool,
    /// The key to take when none matches.
    #[default(Value::from("default"))]
    default: Value,
) -> Result<Value> {
    let table: Vec<(Value, Value)> =
        lookup.into_iter().map(|(key, value)| (key.into_value(), value)).collect();
    let kind = kind_named(&tgt_type)?;
    let id = minion_id.as_deref();
    let found = pick(cx, &table, kind, id, merge.as_ref(), merge_lists)?;
    let fallback = || Key::try_from(default).ok().and_then(|key| lookup.get(&key));
    Ok(found.or_else(fallback).unwrap_or_default())
}

/// Return the keys of a dict whose lists of targets mean this minion.
///
/// ```console
/// $ salt web1 match.search_by "{shop: ['web*'], data: ['db*']}"
/// ```
#[function]
pub fn search_by(
    cx: &Cx,
    /// Lists of targets by key.
    lookup: Dict,
    /// The kind of the targets.
    #[default("compound".to_owned())]
    tgt_type: String,
    /// Another minion to match.
    minion_id: Option<String>,
) -> Result<Value> {
    let kind = kind_named(&tgt_type)?;
    let id = minion_id.as_deref().filter(|id| !id.is_empty());
    let mut found = Vec::new();
    for (key, targets) in &lookup {
        for target in targets.items_of_sequence().unwrap_or_default() {
            if matches(cx, kind, &target, id, DELIMITER) {
                found.push(key.value().clone());
            }
        }
    }
    Ok(if found.is_empty() { Value::Null } else { found.into() })
}

/// Pick by pairs of target and value; the last argument is taken when no target matches.
///
/// ```console
/// $ salt '*' match.ifelse 'foo*' 'Foo rules!' 'bar*' 'Bar rules!' 'nobody rules'
/// ```
#[function]
pub fn ifelse(
    cx: &Cx,
    /// Target, value, target, value …, default.
    #[arg(by_position)]
    args: Rest,
    /// What kind the targets are of.
    #[arg(keyword)]
    #[default("compound".to_owned())]
    tgt_type: String,
    /// Another minion to match.
    #[arg(keyword)]
    minion_id: Option<String>,
    /// Merged over the result.
    #[arg(keyword)]
    merge: Option<Value>,
    /// Merge lists, too.
    #[arg(keyword)]
    #[default(false)]
    merge_lists: bool,
) -> Result<Value> {
    let Some((default, pairs)) = args.args.split_last().filter(|(_, pairs)| pairs.len() % 2 == 0)
    else {
        return Err(salt_exception("The ifelse function must have an odd number of arguments!"));
    };
    let table: Vec<(Value, Value)> = pairs
        .chunks_exact(2)
        .map(|pair| {
            let target = match &pair[0] {
                Value::Bool(true) => "*".into(),
                Value::Bool(false) => "SALT_IFELSE_MATCH_NOTHING".into(),
                other => other.clone(),
            };
            (target, pair[1].clone())
        })
        .collect();
    let kind = kind_named(&tgt_type)?;
    let found = pick(cx, &table, kind, minion_id.as_deref(), merge.as_ref(), merge_lists)?;
    Ok(found.unwrap_or_else(|| default.clone()))
}
