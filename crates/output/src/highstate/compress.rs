//! `state_compress_ids`: the many names of one ID, rolled up into one state per result.
//!
//! The rolled-up state carries its count in its ID, `web files (12)`, starts with the first of them
//! and takes as long as all together. If anything does not fit, the data is shown as it is.

use halite_value::{Dict, Value};
use smol_str::SmolStr;

use crate::{Unfit, python};

const MARK: &str = "_|-state_compressed_";

/// Returns the minions with their IDs rolled up. The sums are written into the first state of each
/// ID, so this works on a copy unless the data is `ours`.
pub(super) fn by_id(mut minions: Vec<(SmolStr, Value)>, ours: bool) -> Vec<(SmolStr, Value)> {
    if !ours {
        minions.iter_mut().for_each(|(_, data)| *data = data.deep_copy());
    }
    let rolled = minions.iter().map(|(id, data)| Some((id.clone(), roll_up(data)?)));
    // Salt, too, shows half-summed data when it fails in the middle.
    rolled.collect::<Option<Vec<_>>>().unwrap_or(minions)
}

/// Returns how many states the tag stands for.
pub(super) fn times(tag: &str) -> Result<usize, Unfit> {
    if !tag.contains(MARK) {
        return Ok(1);
    }
    let id = tag.split("_|-").nth(1).ok_or(Unfit)?;
    let count = id.strip_suffix(')').and_then(|id| id.rsplit_once('(')).map(|(_, count)| count);
    Ok(count.and_then(|count| count.parse().ok()).unwrap_or(1))
}

/// Returns how many of the rolled-up states made changes.
pub(super) fn changes_in(changes: &Dict) -> Result<usize, Unfit> {
    match changes.get("compressed changes") {
        None => Ok(1),
        Some(Value::Dict(names)) => Ok(names.len().max(1)),
        Some(_) => Err(Unfit),
    }
}

fn roll_up(states: &Value) -> Option<Value> {
    let states = states.as_dict()?;
    // Counts per module, ID, SLS and result.
    let counts = Dict::new();
    let mut groups = Vec::with_capacity(states.len());
    for (tag, ret) in states {
        let tag = SmolStr::new(tag.as_str()?);
        let module = tag.split("_|-").next().unwrap_or("");
        let of = |name: &str| ret.get(name).map(|value| value.to_str());
        let (id, sls, result) = (of("__id__")?, of("__sls__")?, of("result")?);
        let group = format!("{module}_{id}_{sls}_{result}");
        let count = counts.get(group.as_str()).and_then(|count| count.as_int()).unwrap_or(0) + 1;
        counts.insert(&group, count);
        let rolled_name = format!("state_compressed_{sls}_{id}_{result}");
        groups.push((tag, ret, group, id, rolled_name));
    }
    let out = Dict::new();
    for (tag, ret, group, id, rolled_name) in groups {
        let count = counts.get(group.as_str())?;
        if count == Value::Int(1) {
            out.insert(tag, ret);
            continue;
        }
        let mut parts: Vec<&str> = tag.split("_|-").collect();
        let rolled_id = format!("{id} ({count})");
        *parts.get_mut(2)? = &rolled_name;
        *parts.get_mut(1)? = &rolled_id;
        let tag = parts.join("_|-");
        match out.get(tag.as_str()) {
            None => {
                out.insert(tag, ret);
            }
            Some(first) => add(first.as_dict()?, ret.as_dict()?)?,
        }
    }
    Some(out.into())
}

fn add(first: &Dict, other: &Dict) -> Option<()> {
    let both = |name: &str| Some((first.get(name)?, other.get(name)?));
    let least = |name: &str| {
        let (first, other) = both(name)?;
        python::less(&other, &first).map(|less| if less { other } else { first })
    };
    first.insert("__run_num__", least("__run_num__")?);
    let (one, two) = both("duration")?;
    let sum = match (&one, &two) {
        (Value::Int(one), Value::Int(two)) => Value::from(one.checked_add(*two)?),
        _ => Value::from(python::round(two.as_float()? + one.as_float()?, 3)),
    };
    first.insert("duration", sum);
    first.insert("start_time", least("start_time")?);

    let changes = |ret: &Dict| ret.get("changes").filter(Value::truthy);
    let Some(new) = changes(other) else { return Some(()) };
    let names = match changes(first) {
        None => Dict::new(),
        Some(old) => match old.as_dict()?.get("compressed changes").filter(Value::truthy) {
            Some(names) => names.as_dict()?.clone(),
            None => {
                let names = Dict::new();
                names.insert(key_of(first)?, old);
                names
            }
        },
    };
    names.insert(key_of(other)?, new);
    let changes = Dict::new();
    changes.insert("compressed changes", names);
    first.insert("changes", changes);
    Some(())
}

fn key_of(ret: &Dict) -> Option<halite_value::Key> {
    ret.get("name")?.try_into().ok()
}
