//! Signing policies for OpenSSH certificates, and certificates another minion signs.
//!
//! A policy stands in `ssh_signing_policies` of the minion that signs. What it sets counts; what it
//! allows (`allowed_extensions`, `allowed_critical_options`, `allowed_valid_principals`, `max_ttl`)
//! bounds what may be asked for, and what it has for `default_…` is added unless asked otherwise.
//! Only the public key leaves the minion that asks.

use halite_spec::{Cx, Result, function};
use halite_value::{Dict, Value};

use super::{ARGUMENTS, build, certificate_of, keys::Private, public_of, wire::Certificate};
use crate::pki::{self, Issued, set};

impl Issued for Certificate {
    const POLICIES: &'static str = "ssh_signing_policies";
    const FUNCTION: &'static str = "ssh_pki.sign_remote_certificate";
    const WITHHELD: &'static [&'static str] = &["max_ttl"];

    fn load(cx: &Cx, source: &Value) -> Result<Self> {
        certificate_of(cx, source)
    }

    fn make(cx: &Cx, given: &Dict) -> Result<Self> {
        build(cx, given)?.sign(cx)
    }

    fn answer(&self) -> Value {
        self.line().into()
    }

    fn copy(&self, _: &Dict) -> (String, String, Option<u32>) {
        (format!("{:x}.crt", self.serial), self.line(), None)
    }

    fn merged(given: &Dict, policy: &Dict) -> Dict {
        merged(given, policy)
    }

    fn portable(cx: &Cx, given: &Dict) -> Result<Dict> {
        let wanted = Dict::new();
        for (name, value) in given.entries() {
            let own = ["private_key", "private_key_passphrase", "copypath"];
            if !own.contains(&name.to_str().as_str()) && !value.is_null() {
                wanted.insert(name, value);
            }
        }
        if let Some(key) = pki::key(cx, given, "private_key", Private::load)? {
            wanted.insert("public_key", key.public.line());
        } else if let Some(key) = set(given, "public_key") {
            wanted.insert("public_key", public_of(cx, &key, None)?.line());
        }
        Ok(wanted)
    }

    /// What is compared is who signs; the key itself stays.
    fn redact(cx: &Cx, policy: &Dict) -> Result<()> {
        if let Some(key) = pki::key(cx, policy, "signing_private_key", Private::load)? {
            policy.insert("signing_public_key", key.public.line());
        }
        for secret in ["signing_private_key", "signing_private_key_passphrase"] {
            policy.remove(secret);
        }
        Ok(())
    }
}

fn list(value: &Value) -> Vec<Value> {
    match value {
        Value::Str(_) => vec![value.clone()],
        _ => value.items_of_sequence().unwrap_or_default(),
    }
}

/// Lays a policy over the arguments.
fn merged(given: &Dict, policy: &Dict) -> Dict {
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
    pki::policy::<Certificate>(cx, &signing_policy, ca_server.as_deref())
}

/// Sign a certificate for another minion, which asks with `publish.publish`.
///
/// ```console
/// $ salt-call publish.publish ca ssh_pki.sign_remote_certificate '[www, {"key_id": "web1"}]'
/// ```
#[function]
pub fn sign_remote_certificate(cx: &Cx, #[group] asked: pki::Asked) -> Result<Dict> {
    Ok(asked.answer::<Certificate>(cx))
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
