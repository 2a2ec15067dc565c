//! What trees of old times say, and what their authors are told about it.
//!
//! The warnings go to the console of whoever calls, as Salt's do ([`warn`]); what was said counts
//! all the same.

use halite_value::{Dict, Value};

use super::{extensions, name};

/// Arguments that say nothing any more.
pub const CERTIFICATE: [&str; 3] = ["serial_bits", "text", "version"];
pub const REQUEST: [&str; 2] = ["text", "version"];
pub const KEY: [&str; 3] = ["cipher", "text", "verbose"];
pub const LIST: [&str; 1] = ["text"];

fn warn(what: &str) {
    tracing::warn!(target: "warnings", "DeprecationWarning: {what}");
}

fn renamed(given: &Dict, old: &str, new: &str) {
    if given.get(old).is_some() {
        warn(&format!("`{old}` has been renamed to `{new}`. Please update your code."));
    }
}

/// A default value that will be another one.
pub fn changing(name: &str, to: i64) {
    warn(&format!(
        "The default value for `{name}` will change to {to}. Please adapt your code accordingly."
    ));
}

/// Arguments that were given and say nothing.
pub fn ignored(given: &Dict, names: &[&str]) {
    let found: Vec<String> = names
        .iter()
        .filter(|name| given.get(**name).is_some())
        .map(|name| format!("'{name}'"))
        .collect();
    if !found.is_empty() {
        warn(&format!(
            "The following parameter(s) have been deprecated and will be removed in '3009.0': {}.",
            found.join(", ")
        ));
    }
}

/// Parts of a subject and extensions by their long names; `place` is where they stand.
pub fn long_names(given: &Dict, place: &str) {
    for long in given.keys() {
        let long = long.to_str();
        if let Some(short) = name::short(&long).or_else(|| extensions::short(&long)) {
            warn(&format!("Found {long} in {place}. Please migrate to the short name: {short}"));
        }
    }
}

/// What a certificate or a request is made from.
pub fn signed(given: &Dict) {
    renamed(given, "algorithm", "digest");
    long_names(given, "keyword args");
}

/// What a certificate is made from.
pub fn certificate(given: &Dict) {
    ignored(given, &CERTIFICATE);
    managed_certificate(given);
}

/// The same in a state, which tells of [`ignored`] arguments only when it makes one.
pub fn managed_certificate(given: &Dict) {
    signed(given);
    let says = |name: &str| given.get(name).is_some_and(|value| !value.is_null());
    if !says("days_valid") && !says("not_after") {
        changing("days_valid", 30);
    }
}

/// What a request is made from.
pub fn request(given: &Dict) {
    ignored(given, &REQUEST);
    signed(given);
}

/// What a key is made from.
pub fn key(given: &Dict) {
    renamed(given, "bits", "keysize");
    ignored(given, &KEY);
}

/// What a revocation list is made from.
pub fn list(given: &Dict, days_valid: Option<i64>, revoked: &[Value]) {
    ignored(given, &LIST);
    if days_valid.is_none() {
        changing("days_valid", 7);
    }
    for entry in revoked.iter().filter_map(Value::as_dict) {
        let parts = parts_of(entry);
        if parts.is_some() {
            warn("Revoked certificates should be specified as a simple list of dicts.");
        }
        if parts.as_ref().unwrap_or(entry).get("reason").is_some() {
            warn(
                "The `reason` parameter for revoked certificates should be specified in \
                 extensions:CRLReason.",
            );
        }
    }
}

/// The parts of an entry that is written as `{name: [{serial_number: …}, {reason: …}]}`.
fn parts_of(entry: &Dict) -> Option<Dict> {
    let pairs = entry.entries();
    let [(_, parts)] = pairs.as_slice() else { return None };
    if matches!(parts, Value::Str(_) | Value::Dict(_)) {
        return None;
    }
    let merged = Dict::new();
    for part in parts.items_of_sequence()?.iter().filter_map(Value::as_dict) {
        merged.update(part);
    }
    Some(merged)
}

/// An entry of a revocation list as it is written today.
pub fn entry(given: &Dict) -> Dict {
    let entry = parts_of(given).unwrap_or_else(|| given.shallow_copy());
    if let Some(reason) = entry.remove("reason") {
        let extensions = match entry.get("extensions") {
            Some(Value::Dict(given)) => given.shallow_copy(),
            _ => Dict::new(),
        };
        extensions.insert("CRLReason", reason);
        entry.insert("extensions", extensions);
    }
    entry
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries};

    use super::*;

    #[test]
    fn entries_of_old_times() {
        let shown = |given: Dict| Value::from(entry(&given)).repr();
        let reason = || entries! { "reason" => "superseded" };
        let parts =
            Value::list([Value::from(entries! { "serial_number" => "AA" }), Value::from(reason())]);
        let expected = "{'serial_number': 'AA', 'extensions': {'CRLReason': 'superseded'}}";
        assert_eq!(shown(entries! { "www" => parts }), expected);
        let plain = entries! { "serial_number" => "AA", "reason" => "superseded" };
        assert_eq!(shown(plain.shallow_copy()), expected);
        assert!(plain.get("reason").is_some(), "what was given stays");
        let dated = dict! { "invalidityDate" => "2024-01-01 00:00:00" };
        assert_eq!(
            shown(entries! { "extensions" => dated, "reason" => "superseded" }),
            "{'extensions': {'invalidityDate': '2024-01-01 00:00:00', 'CRLReason': 'superseded'}}"
        );
    }
}
