//! Signing policies for OpenSSH certificates, and certificates another minion signs.
//!
//! A policy stands in `ssh_signing_policies` of the minion that signs. What it sets counts; what it
//! allows (`allowed_extensions`, `allowed_critical_options`, `allowed_valid_principals`, `max_ttl`)
//! bounds what may be asked for, and what it has for `default_…` is added unless asked otherwise.
//! Only the public key leaves the minion that asks.

use halite_spec::{Cx, Error, Rest, Result, function};
use halite_value::{Dict, Value};

use super::{ARGUMENTS, build, certificate_of, keys::Private, public_of, wire::Certificate};
use crate::{
    config,
    x509::remote::{ask_for, permits},
};

const FUNCTION: &str = "ssh_pki.sign_remote_certificate";

/// The policy of a name; empty if there is none.
pub fn policy_of(cx: &Cx, name: &str) -> Result<Dict> {
    let all = config::get(
        cx,
        "ssh_signing_policies".into(),
        Value::dict(),
        ":".into(),
        None,
        false,
        false,
        false,
        false,
    )?;
    let Some(policy) = all.get(name) else { return Ok(Dict::new()) };
    if let Value::Dict(policy) = &policy {
        return Ok(policy.shallow_copy());
    }
    // The manual shows a list of pairs, as for x509.
    let merged = Dict::new();
    for part in policy.items_of_sequence().unwrap_or_default() {
        for (key, value) in part.as_dict().into_iter().flat_map(Dict::entries) {
            merged.insert(key, value);
        }
    }
    Ok(merged)
}

/// What was asked for, without what the publisher adds.
pub fn own(given: &Dict) -> Dict {
    let given = given.entries().into_iter();
    given.filter(|(name, _)| !name.to_str().starts_with("__pub_")).collect()
}

/// The arguments with what a policy says.
pub fn under(cx: &Cx, policy: Option<&str>, given: &Dict) -> Result<Dict> {
    Ok(match policy {
        Some(policy) => merged(given, &policy_of(cx, policy)?),
        None => given.shallow_copy(),
    })
}

fn set(dict: &Dict, name: &str) -> Option<Value> {
    dict.get(name).filter(|value| !value.is_null())
}

fn list(value: &Value) -> Vec<Value> {
    match value {
        Value::Str(_) => vec![value.clone()],
        _ => value.items_of_sequence().unwrap_or_default(),
    }
}

/// Lays a policy over the arguments.
pub fn merged(given: &Dict, policy: &Dict) -> Dict {
    let result = given.shallow_copy();
    for (name, value) in policy.entries() {
        let text = name.to_str();
        if ARGUMENTS.contains(&text.as_str()) {
            result.insert(name, value);
        }
    }
    for name in ["critical_options", "extensions"] {
        let options = options(given, policy, name);
        if !options.is_empty() {
            result.insert(name, options);
        } else {
            result.remove(name);
        }
    }
    principals(&result, given, policy);
    // A bound makes the policy's time what is usual, not what must be.
    if set(policy, "max_ttl").is_some()
        && let Some(ttl) = set(given, "ttl")
    {
        result.insert("ttl", ttl);
    } else if let Some(ttl) = set(policy, "ttl") {
        // What a policy says itself is not bounded by what it lets others ask for.
        result.insert("ttl", ttl);
        result.remove("max_ttl");
    }
    if set(policy, "not_after").is_some() {
        result.remove("max_ttl");
    }
    result
}

/// Options asked for as far as they are allowed, over those that are usual, below those that are set.
fn options(given: &Dict, policy: &Dict, name: &str) -> Dict {
    let pairs = |dict: &Dict, name: &str| match set(dict, name) {
        Some(Value::Dict(options)) => options.entries(),
        _ => Vec::new(),
    };
    let allowed = set(policy, &format!("allowed_{name}")).map(|allowed| list(&allowed));
    let is_allowed = |option: &Value| {
        allowed.as_ref().is_none_or(|allowed| {
            allowed.iter().any(|own| *own == *option || own.as_str() == Some("*"))
        })
    };
    let result = Dict::new();
    for (option, value) in pairs(policy, &format!("default_{name}")) {
        result.insert(option, value);
    }
    for (option, value) in pairs(given, name).into_iter().filter(|(option, _)| is_allowed(option)) {
        result.insert(option, value);
    }
    for (option, value) in pairs(policy, name) {
        result.insert(option, value);
    }
    result
}

/// Who a certificate is for: those asked for among those the policy names, or all it names.
fn principals(result: &Dict, given: &Dict, policy: &Dict) {
    let asked = set(given, "valid_principals").map(|asked| list(&asked)).unwrap_or_default();
    let named = set(policy, "valid_principals").map(|named| list(&named));
    let bound = named
        .clone()
        .or_else(|| set(policy, "allowed_valid_principals").map(|allowed| list(&allowed)));
    if let Some(bound) = bound {
        let both: Vec<Value> = asked.into_iter().filter(|name| bound.contains(name)).collect();
        let names = if both.is_empty() { named.unwrap_or_default() } else { both };
        result.insert("valid_principals", Value::list(names));
        let all = set(policy, "all_principals").is_some_and(|all| all.truthy());
        result.insert("all_principals", all);
    } else if !asked.is_empty() {
        result.insert("valid_principals", Value::list(asked));
    }
}

/// Return what a signing policy says.
///
/// ```console
/// $ salt ca ssh_pki.get_signing_policy www
/// ```
#[function]
pub fn get_signing_policy(
    cx: &Cx,
    /// The name of the policy.
    signing_policy: String,
    /// The minion that has it; this one unless said.
    ca_server: Option<String>,
) -> Result<Dict> {
    match ca_server {
        None => policy_of(cx, &signing_policy),
        Some(server) => remote_policy(cx, &server, &signing_policy),
    }
}

/// The policy of another minion.
pub fn remote_policy(cx: &Cx, server: &str, policy: &str) -> Result<Dict> {
    let data = ask_for(cx, FUNCTION, server, policy, &Dict::new(), true)?;
    Ok(data.as_dict().cloned().unwrap_or_default())
}

/// Has a certificate signed by another minion.
pub fn request(cx: &Cx, server: &str, policy: &str, given: &Dict) -> Result<Certificate> {
    let wanted = Dict::new();
    for (name, value) in given.entries() {
        let text = name.to_str();
        let own = ["private_key", "private_key_passphrase", "copypath"];
        if !own.contains(&text.as_str()) && !value.is_null() {
            wanted.insert(name, value);
        }
    }
    if let Some(key) = set(given, "private_key") {
        let passphrase = set(given, "private_key_passphrase").map(|text| text.to_str().to_string());
        let key = Private::load(cx, &key, passphrase.as_deref())?;
        wanted.insert("public_key", key.public.line());
    } else if let Some(key) = set(given, "public_key") {
        wanted.insert("public_key", public_of(cx, &key, None)?.line());
    }
    let data = ask_for(cx, FUNCTION, server, policy, &wanted, false)?;
    certificate_of(cx, &data)
}

/// Sign a certificate for another minion, which asks with `publish.publish`.
///
/// ```console
/// $ salt-call publish.publish ca ssh_pki.sign_remote_certificate '[www, {"key_id": "web1"}]'
/// ```
#[function]
pub fn sign_remote_certificate(
    cx: &Cx,
    /// The policy to sign under.
    signing_policy: String,
    /// What is asked for.
    kwargs: Dict,
    /// Only tell what the policy says.
    #[default(false)]
    get_signing_policy_only: bool,
    /// What was published.
    rest: Rest,
) -> Result<Dict> {
    let answer = |data: Value, errors: Vec<String>| {
        Ok(halite_value::entries! { "data" => data, "errors" => Value::list(errors) })
    };
    let asker = rest.kwargs.get("__pub_id").map(|id| id.to_str().to_string());
    match signed_for(cx, asker, &signing_policy, &kwargs, get_signing_policy_only) {
        Ok(data) => answer(data, Vec::new()),
        Err(error) => answer(Value::Null, vec![error.to_string()]),
    }
}

fn signed_for(
    cx: &Cx,
    asker: Option<String>,
    name: &str,
    wanted: &Dict,
    only_policy: bool,
) -> Result<Value> {
    let policy = policy_of(cx, name)?;
    if policy.is_empty() {
        return Err(Error::failed(
            "signing_policy must be specified and defined on signing minion",
        ));
    }
    if let Some(allowed) = policy.remove("minions") {
        let asker = asker
            .as_deref()
            .ok_or_else(|| Error::failed("minion sending this request could not be identified"))?;
        if !permits(cx, &allowed, asker)? {
            return Err(Error::failed("minion not permitted to use specified signing policy"));
        }
    }
    if only_policy {
        // What is compared is who signs; the key itself stays.
        if let Some(key) = policy.remove("signing_private_key") {
            let passphrase = policy.remove("signing_private_key_passphrase");
            let passphrase = passphrase.map(|text| text.to_str().to_string());
            let key = Private::load(cx, &key, passphrase.as_deref())?;
            policy.insert("signing_public_key", key.public.line());
        }
        return Ok(policy.into());
    }
    let given = wanted.shallow_copy();
    // Nobody may have a key of this minion's used, or a file written, that the policy does not name.
    for own in [
        "signing_private_key",
        "signing_private_key_passphrase",
        "private_key",
        "copypath",
        "max_ttl",
    ] {
        given.remove(own);
    }
    let merged = merged(&given, &policy);
    let made = build(cx, &merged)?.sign(cx)?;
    super::keep_copy(cx, &made, &merged)?;
    tracing::info!("signed an OpenSSH certificate for {asker:?} under {name}");
    Ok(made.line().into())
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries};

    use super::*;

    fn check(given: Dict, policy: Dict, name: &str, expected: &str) {
        let result = merged(&given, &policy);
        let shown = result.get(name).map(|value| value.repr());
        assert_eq!(shown.as_deref().unwrap_or("-"), expected, "{given:?} under {policy:?}");
    }

    fn names(names: &[&str]) -> Dict {
        entries! { "valid_principals" => Value::list(names.iter().copied()) }
    }

    #[test]
    fn principals_are_bounded() {
        let policy = || names(&["x", "y"]);
        check(Dict::new(), policy(), "valid_principals", "['x', 'y']");
        check(names(&["y", "z"]), policy(), "valid_principals", "['y']");
        check(names(&["z"]), policy(), "valid_principals", "['x', 'y']");
        check(entries! { "all_principals" => true }, policy(), "all_principals", "False");
        let all = || entries! { "all_principals" => true };
        check(names(&["q"]), all(), "valid_principals", "['q']");
        check(Dict::new(), all(), "all_principals", "True");
        let allowed = || entries! { "allowed_valid_principals" => Value::list(["x"]) };
        check(names(&["x", "z"]), allowed(), "valid_principals", "['x']");
        check(names(&["z"]), allowed(), "valid_principals", "[]");
    }

    #[test]
    fn options_are_bounded() {
        let given = || entries! { "extensions" => dict! { "a" => "1", "c" => true } };
        let policy = |name: &str, value: Value| entries! { name => value };
        check(given(), Dict::new(), "extensions", "{'a': '1', 'c': True}");
        check(
            given(),
            policy("allowed_extensions", Value::list(["c"])),
            "extensions",
            "{'c': True}",
        );
        check(
            given(),
            policy("allowed_extensions", Value::list(Vec::<Value>::new())),
            "extensions",
            "-",
        );
        let all = policy("allowed_extensions", Value::list(["*"]));
        check(given(), all, "extensions", "{'a': '1', 'c': True}");
        let own = policy("extensions", dict! { "a" => false });
        check(given(), own, "extensions", "{'a': False, 'c': True}");
        let usual = policy("default_extensions", dict! { "a" => "0", "b" => true });
        check(given(), usual, "extensions", "{'a': '1', 'b': True, 'c': True}");
    }

    #[test]
    fn lifetimes_are_bounded() {
        let given = || entries! { "ttl" => "10d" };
        check(given(), entries! { "ttl" => "5d" }, "ttl", "'5d'");
        check(given(), entries! { "ttl" => "5d", "max_ttl" => "2d" }, "ttl", "'10d'");
        check(given(), entries! { "ttl" => "5d", "max_ttl" => "2d" }, "max_ttl", "'2d'");
        check(Dict::new(), entries! { "ttl" => "5d", "max_ttl" => "2d" }, "max_ttl", "-");
        check(given(), entries! { "max_ttl" => "2d" }, "max_ttl", "'2d'");
    }
}
