//! Signing policies for certificates.
//!
//! A policy stands in `x509_signing_policies` of the minion that signs. What it says wins over what
//! is asked for; parts of a subject are joined with those asked for.

use halite_spec::{Cx, Result, function};
use halite_value::{Dict, Value};

use super::{
    certificate::{Builder, Certificate},
    extensions,
    keys::{self, Private},
    old, request, source,
};
use crate::{
    hashutil,
    pki::{self, Issued, set},
};

impl Issued for Certificate {
    const POLICIES: &'static str = "x509_signing_policies";
    const FUNCTION: &'static str = "x509.sign_remote_certificate";
    const WITHHELD: &'static [&'static str] = &["signing_cert", "prepend_cn"];

    fn load(cx: &Cx, source: &Value) -> Result<Self> {
        Self::load(cx, source)
    }

    fn make(cx: &Cx, given: &Dict) -> Result<Self> {
        Builder { given: given.shallow_copy() }.build(cx)?.sign(cx)
    }

    fn answer(&self) -> Value {
        Value::bytes(self.der.clone())
    }

    /// Named after its number and, with `prepend_cn`, who it is for.
    fn copy(&self, given: &Dict) -> (String, String, Option<u32>) {
        let digits = hashutil::hex(&self.serial);
        let mut name = format!("{}.crt", digits.trim_start_matches('0'));
        if given.get("prepend_cn").is_some_and(|flag| flag.truthy())
            && let Some(owner) = self.subject.common_name()
        {
            name = format!("{owner}-{name}");
        }
        // A subject is not to choose another folder.
        (name.replace('/', "_"), source::pem("CERTIFICATE", &self.der), Some(0o600))
    }

    fn warn_of(given: &Dict, place: &str) {
        old::long_names(given, place);
    }

    fn named(given: &Dict) -> Dict {
        short_names(given)
    }

    fn merged(given: &Dict, policy: &Dict) -> Dict {
        let merged = short_names(given);
        merge(&merged, &short_names(policy));
        merged
    }

    fn portable(cx: &Cx, given: &Dict) -> Result<Dict> {
        let wanted = Dict::new();
        for (name, value) in given.entries() {
            let name = name.to_str();
            let secret = ["private_key", "private_key_passphrase"].contains(&name.as_str());
            if !secret && super::is_certificate_argument(&name) && !value.is_null() {
                wanted.insert(name.as_str(), value);
            }
        }
        if let Some(key) = pki::key(cx, given, "private_key", Private::load)? {
            wanted.insert("public_key", key.public.pem());
        } else if let Some(key) = set(given, "public_key") {
            wanted.insert("public_key", keys::public_of(cx, &key, None)?.pem());
        }
        if let Some(asked) = set(given, "csr") {
            wanted.insert("csr", request::of(cx, &asked)?.pem());
        }
        Ok(wanted)
    }

    fn redact(cx: &Cx, policy: &Dict) -> Result<()> {
        for secret in ["signing_private_key", "signing_private_key_passphrase"] {
            policy.remove(secret);
        }
        if let Some(source) = policy.get("signing_cert") {
            policy.insert("signing_cert", Self::load(cx, &source)?.answer());
        }
        Ok(())
    }
}

/// The arguments by their short names only: `CN`, not `commonName`.
pub fn short_names(given: &Dict) -> Dict {
    let short = Dict::new();
    for (name, value) in given.entries() {
        let text = name.to_str();
        match super::name::short(&text).or_else(|| extensions::short(&text)) {
            Some(own) => short.insert(own, value),
            None => short.insert(name, value),
        };
    }
    short
}

/// Lays a policy over the arguments. Subjects of the same kind are joined; a policy that names
/// parts of the subject does not let `subject`, which counts for more, get round them.
fn merge(given: &Dict, policy: &Dict) {
    let names_parts = policy.keys().iter().any(|name| super::is_part(&name.to_str()));
    let subject = match (given.remove("subject"), policy.get("subject")) {
        (Some(Value::Dict(asked)), Some(Value::Dict(own))) => {
            let joined = short_names(&asked);
            for (part, value) in short_names(&own).entries() {
                joined.insert(part, value);
            }
            Some(joined.into())
        }
        (Some(Value::List(asked)), Some(Value::List(own))) => {
            let own = Value::List(own).items_of_sequence().unwrap_or_default();
            let asked = Value::List(asked).items_of_sequence().unwrap_or_default();
            let more: Vec<Value> = asked.into_iter().filter(|part| !own.contains(part)).collect();
            Some(Value::list([own, more].concat()))
        }
        (_, Some(own)) if !own.is_null() => Some(own),
        (asked, _) => asked.filter(|_| !names_parts),
    };
    for (name, value) in policy.entries() {
        given.insert(name, value);
    }
    given.remove("subject");
    if let Some(subject) = subject {
        given.insert("subject", subject);
    }
}

/// Return what a signing policy says.
///
/// ```console
/// $ salt ca x509.get_signing_policy www
/// ```
#[function]
pub fn get_signing_policy(
    cx: &Cx,
    /// The name of the policy.
    signing_policy: String,
    /// The minion that has it; this one unless said.
    ca_server: Option<String>,
) -> Result<Dict> {
    let policy = pki::policy::<Certificate>(cx, &signing_policy, ca_server.as_deref())?;
    // It travels as DER, and is shown as text.
    if let Some(Value::Bytes(der)) = policy.get("signing_cert") {
        policy.insert("signing_cert", source::pem("CERTIFICATE", &der));
    }
    Ok(policy)
}

/// Sign a certificate for another minion, which asks with `publish.publish`.
///
/// ```console
/// $ salt-call publish.publish ca x509.sign_remote_certificate '[www, {"CN": "www.example.com"}]'
/// ```
#[function]
pub fn sign_remote_certificate(cx: &Cx, #[group] asked: pki::Asked) -> Result<Dict> {
    Ok(asked.answer::<Certificate>(cx))
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    fn merged(given: Dict, policy: Dict) -> Dict {
        Certificate::merged(&given, &policy)
    }

    #[test]
    fn policies_win() {
        let subject = |value: Value| entries! { "subject" => value };
        let asked = || Value::from(entries! { "CN" => "me", "O" => "mine" });
        let both = merged(subject(asked()), subject(entries! { "CN" => "you" }.into()));
        assert_eq!(
            both.get("subject").map(|all| all.repr()).as_deref(),
            Some("{'CN': 'you', 'O': 'mine'}")
        );
        let lists = merged(subject(Value::list(["CN=me"])), subject(Value::list(["O=you"])));
        assert_eq!(lists.get("subject"), Some(Value::list(["O=you", "CN=me"])));
        let other = merged(subject(asked()), subject("CN=you".into()));
        assert_eq!(other.get("subject"), Some("CN=you".into()));
        let parts = merged(subject(asked()), entries! { "commonName" => "you" });
        assert_eq!((parts.get("subject"), parts.get("CN")), (None, Some("you".into())));
        let none = merged(subject("CN=me".into()), entries! { "days_valid" => 3 });
        assert_eq!(none.get("subject"), Some("CN=me".into()));
        let long = merged(entries! { "commonName" => "me" }, entries! { "CN" => "you" });
        assert_eq!((long.get("commonName"), long.get("CN")), (None, Some("you".into())));
    }
}
