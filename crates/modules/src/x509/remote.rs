//! Signing policies, and certificates another minion signs.
//!
//! A policy is a set of arguments in the configuration or the pillar of the minion that signs
//! (`x509_signing_policies`); what it says wins over what is asked for. A minion asks the signing
//! one with `publish.publish`, so the master's `peer` setting has to allow it. Only the public key
//! leaves the minion.

use halite_spec::{Cx, Error, Rest, Result, function};
use halite_value::{Dict, Value};

use super::{
    certificate::{Builder, Certificate},
    extensions,
    keys::Private,
    source, stamp,
};
use crate::{config, publish};

const NO_ANSWER: &str = "ca_server did not respond. Salt master must permit peers to call the \
                         sign_remote_certificate function.";

/// How long to wait for the minion that signs.
const PATIENCE: f64 = 30.0;

/// The policy of a name; empty if there is none.
fn policy_of(cx: &Cx, name: &str) -> Result<Dict> {
    let all = config::get(
        cx,
        "x509_signing_policies".into(),
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
        return Ok(short_names(policy));
    }
    // Older trees write a list of pairs.
    let merged = Dict::new();
    for part in policy.items_of_sequence().unwrap_or_default() {
        for (key, value) in part.as_dict().into_iter().flat_map(Dict::entries) {
            merged.insert(key, value);
        }
    }
    Ok(short_names(&merged))
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

/// The arguments with what a policy says.
pub fn under_policy(cx: &Cx, policy: Option<&str>, given: &Dict) -> Result<Builder> {
    let merged = short_names(given);
    if let Some(policy) = policy {
        merge(&merged, &policy_of(cx, policy)?);
    }
    Ok(Builder { given: merged })
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
    match ca_server {
        None => policy_of(cx, &signing_policy),
        Some(server) => {
            let data = ask(cx, &server, &signing_policy, &Dict::new(), true)?;
            let policy = data.as_dict().cloned().unwrap_or_default();
            // It travels as DER, and is shown as text.
            if let Some(Value::Bytes(der)) = policy.get("signing_cert") {
                policy.insert("signing_cert", source::pem("CERTIFICATE", &der));
            }
            Ok(policy)
        }
    }
}

fn ask(cx: &Cx, server: &str, policy: &str, wanted: &Dict, only_policy: bool) -> Result<Value> {
    ask_for(cx, "x509.sign_remote_certificate", server, policy, wanted, only_policy)
}

/// Asks the minion that signs by calling a function there.
pub(crate) fn ask_for(
    cx: &Cx,
    function: &str,
    server: &str,
    policy: &str,
    wanted: &Dict,
    only_policy: bool,
) -> Result<Value> {
    let mut words = vec![Value::from(policy), Value::from(wanted.clone())];
    if only_policy {
        words.push(true.into());
    }
    let answer = publish::publish(
        cx,
        server.into(),
        function.to_owned(),
        Some(Value::list(words)),
        "glob".into(),
        String::new(),
        PATIENCE,
        None,
    )?;
    let no_answer = || Error::invalid(NO_ANSWER);
    let answers = answer.as_dict().map(Dict::entries).unwrap_or_default();
    let (_, answer) = answers.into_iter().next().ok_or_else(no_answer)?;
    let Value::Dict(answer) = answer else {
        return Err(Error::invalid(format!("ca_server did not respond correctly: {answer}")));
    };
    let errors = answer.get("errors").and_then(|errors| errors.items_of_sequence());
    match answer.get("data").filter(Value::truthy) {
        Some(data) => Ok(data),
        None => {
            let errors = errors.unwrap_or_default();
            let errors: Vec<String> = errors.iter().map(Value::to_string).collect();
            Err(Error::failed(format!(
                "ca_server did not sign the certificate. Errors:\n{}",
                errors.join("\n")
            )))
        }
    }
}

/// What is sent: no private key, and no name of a file the other minion would not find.
fn portable(cx: &Cx, given: &Dict) -> Result<Dict> {
    let wanted = Dict::new();
    for (name, value) in given.entries() {
        let name = name.to_str();
        let secret = ["private_key", "private_key_passphrase"].contains(&name.as_str());
        if !secret && super::is_certificate_argument(&name) && !value.is_null() {
            wanted.insert(name.as_str(), value);
        }
    }
    let text = |name: &str| given.get(name).filter(|value| !value.is_null());
    if let Some(key) = text("private_key") {
        let passphrase = text("private_key_passphrase").map(|text| text.to_str().to_string());
        let key = Private::load(cx, &key, passphrase.as_deref())?;
        wanted.insert("public_key", key.public.pem());
    } else if let Some(key) = text("public_key") {
        wanted.insert("public_key", super::keys::public_of(cx, &key, None)?.pem());
    }
    if let Some(request) = text("csr") {
        let (der, _) = super::request::load(&source::load(cx, &request)?)?;
        wanted.insert("csr", source::pem("CERTIFICATE REQUEST", &der));
    }
    Ok(wanted)
}

/// Has a certificate signed by another minion.
pub fn request(cx: &Cx, server: &str, policy: &str, given: &Dict) -> Result<Certificate> {
    let data = ask(cx, server, policy, &portable(cx, given)?, false)?;
    let found = source::certificates(cx, &source::load(cx, &data)?, None)?;
    let first = found.certificates.first().and_then(|der| Certificate::read(der));
    first.ok_or_else(|| Error::failed("ca_server did not answer with a certificate"))
}

/// What another minion would sign, without its signature: for comparing.
pub fn expected(cx: &Cx, server: &str, policy: &str, given: &Dict) -> Result<Expected> {
    let policy = ask(cx, server, policy, &Dict::new(), true)?;
    let policy = policy.as_dict().cloned().unwrap_or_default();
    let merged = short_names(given);
    merge(&merged, &short_names(&policy));
    Ok(Expected { given: merged })
}

/// The arguments as the signing minion's policy makes them.
pub struct Expected {
    pub given: Dict,
}

/// Sign a certificate for another minion, which asks with `publish.publish`.
///
/// ```console
/// $ salt-call publish.publish ca x509.sign_remote_certificate '[www, {"CN": "www.example.com"}]'
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
    let signed = signed_for(cx, asker, &signing_policy, &kwargs, get_signing_policy_only);
    match signed {
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
    let asker = asker
        .ok_or_else(|| Error::failed("minion sending this request could not be identified"))?;
    let policy = policy_of(cx, name)?;
    if policy.is_empty() {
        return Err(Error::failed(
            "signing_policy must be specified and defined on signing minion",
        ));
    }
    let allowed = policy.remove("minions");
    if let Some(allowed) = allowed
        && !permits(cx, &allowed, &asker)?
    {
        return Err(Error::failed("minion not permitted to use specified signing policy"));
    }
    if only_policy {
        for secret in ["signing_private_key", "signing_private_key_passphrase"] {
            policy.remove(secret);
        }
        if let Some(source) = policy.get("signing_cert") {
            policy.insert("signing_cert", Value::bytes(Certificate::load(cx, &source)?.der));
        }
        return Ok(policy.into());
    }
    let given = short_names(wanted);
    // Nobody may have a key of this minion's used that the policy does not name.
    for own in
        ["signing_private_key", "signing_private_key_passphrase", "signing_cert", "private_key"]
    {
        given.remove(own);
    }
    merge(&given, &policy);
    let made = Builder { given }.build(cx)?.sign(cx)?;
    tracing::info!(
        "signed a certificate for {asker} under {name}, valid until {}",
        stamp::shown(made.not_after)
    );
    Ok(Value::bytes(made.der))
}

/// Tells whether a policy's `minions` names one: globs, one or several, or a compound target.
///
/// What a compound target asks about another minion only the master knows; its `peer_run` setting
/// has to allow the signing minion `match.compound_matches`.
pub(crate) fn permits(cx: &Cx, allowed: &Value, asker: &str) -> Result<bool> {
    if let Value::Str(target) = allowed
        && target.contains('@')
    {
        let words = Value::list([Value::from(target.as_str()), Value::from(asker)]);
        let found = publish::runner(cx, "match.compound_matches".into(), Some(words), 5.0)?;
        return Ok(found.get("res").is_some_and(|found| found.to_str() == asker));
    }
    Ok(globs_name(allowed, asker))
}

fn globs_name(allowed: &Value, asker: &str) -> bool {
    let allowed = match allowed {
        Value::Str(text) => text.split(',').map(|glob| glob.trim().to_owned()).collect(),
        _ => {
            let globs = allowed.items_of_sequence().unwrap_or_default();
            globs.iter().map(Value::to_string).collect::<Vec<_>>()
        }
    };
    allowed.iter().any(|glob| halite_target::fnmatch::Glob::new(glob).matches(asker))
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[test]
    fn minions() {
        assert!(globs_name(&"web*".into(), "web1") && !globs_name(&"web*".into(), "db1"));
        assert!(globs_name(&"web*, db*".into(), "db1"));
        assert!(globs_name(&Value::list(["db1"]), "db1"));
    }

    fn merged(given: Dict, policy: Dict) -> Dict {
        let given = short_names(&given);
        merge(&given, &short_names(&policy));
        given
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
