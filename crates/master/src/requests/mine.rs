//! The mine: what minions publish for each other.
//!
//! Who may read: the master's `mine_get` (expression over ids → expressions over functions), then
//! what the publishing minion said (`allow_tgt` beside its data). Targets by pillar compare whole
//! values only, so that nobody can guess another's secrets by patterns.

use std::collections::HashMap;

use halite_store::Op;
use halite_target::{Regex, Search};
use halite_value::{Dict, SmolStr, Value};
use halite_wire::MinionId;

use crate::{Error, Master};

/// Marks an entry that has permissions.
const ACL: &str = "__saltmine_acl__";
const DATA: &str = "__data__";

/// Stores entries of a minion's mine.
pub(crate) async fn put(
    master: &Master,
    id: &MinionId,
    data: &Dict,
    clear: bool,
) -> Result<(), Error> {
    let opts = &master.settings.opts;
    if !opts.bool("minion_data_cache") && !opts.bool("enforce_mine_cache") {
        return Ok(());
    }
    let entries =
        data.into_iter().map(|(name, value)| (name.to_str().to_string(), value)).collect();
    master.store.write(vec![Op::Mine { minion: id.to_string(), entries, clear }]).await?;
    Ok(())
}

/// Returns what `id` may see. Blocking.
pub(crate) fn get(
    master: &Master,
    id: &MinionId,
    tgt: &Value,
    tgt_type: &str,
    functions: &Value,
) -> Result<Value, Error> {
    let (asked, by_function): (Vec<SmolStr>, bool) = match functions {
        Value::Str(text) => {
            let mut names: Vec<SmolStr> = Vec::new();
            for name in text.split(',') {
                if !names.iter().any(|known| known == name) {
                    names.push(name.into());
                }
            }
            let several = names.len() > 1;
            (names, several)
        }
        other => match other.items_of_sequence() {
            Some(names) => (names.iter().map(Value::to_str).collect(), true),
            None => return Ok(Value::dict()),
        },
    };
    let asked: Vec<SmolStr> = asked.into_iter().filter(|name| allowed(master, id, name)).collect();
    if asked.is_empty() {
        return Ok(Value::dict());
    }
    let tgt_type = match tgt_type {
        "pillar" | "pillar_pcre" => "pillar_exact",
        "compound" => "compound_pillar_exact",
        other => other,
    };
    let search = Search { greedy: false, ..Search::default() };
    let minions = match master.resolve(tgt, tgt_type, None, search) {
        Ok(found) => found.minions,
        Err(error) => {
            tracing::warn!("The mine cannot be asked by {id}: {error}");
            Vec::new()
        }
    };
    let found = Dict::new();
    let mut readers = HashMap::new();
    for minion in &minions {
        for function in &asked {
            let Some(entry) = master.store.mine(minion, function)? else { continue };
            let Some(value) = readable(master, id, entry, &mut readers) else { continue };
            if by_function {
                let of = found.get_or_insert_with(function.clone(), Value::dict);
                if let Value::Dict(of) = of {
                    of.insert(minion, value);
                }
            } else {
                found.insert(minion, value);
            }
        }
    }
    Ok(found.into())
}

/// Applies the master's `mine_get`.
fn allowed(master: &Master, id: &MinionId, function: &str) -> bool {
    let rules = match master.settings.opts.get("mine_get") {
        None => return true,
        Some(Value::Dict(rules)) => rules,
        Some(_) => return false,
    };
    let begins =
        |pattern: &str, text: &str| Regex::new(pattern).is_ok_and(|regex| regex.matches(text));
    rules.into_iter().filter(|(who, _)| begins(&who.to_str(), id)).any(|(_, what)| {
        let patterns = what.items_of_sequence().unwrap_or_default();
        patterns.iter().any(|pattern| begins(&pattern.to_str(), function))
    })
}

/// Returns an entry's data if its minion lets `id` read it.
fn readable(
    master: &Master,
    id: &MinionId,
    entry: Value,
    readers: &mut HashMap<(SmolStr, SmolStr), Vec<SmolStr>>,
) -> Option<Value> {
    let Value::Dict(marked) = &entry else { return Some(entry) };
    if !marked.contains(ACL) {
        return Some(entry);
    }
    let data = marked.get(DATA).unwrap_or_default();
    let Some(tgt) = marked.get("allow_tgt") else { return Some(data) };
    let tgt_type = marked.get("allow_tgt_type").map_or_else(|| "glob".into(), |kind| kind.to_str());
    let key = (tgt.to_str(), tgt_type.clone());
    let ids = readers.entry(key).or_insert_with(|| {
        let found = master.resolve(&tgt, &tgt_type, None, Search::default());
        found.map(|found| found.minions).unwrap_or_default()
    });
    ids.iter().any(|reader| reader.as_str() == id.as_str()).then_some(data)
}
