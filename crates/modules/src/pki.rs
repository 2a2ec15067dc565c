//! Signing policies, and certificates another minion signs: what `x509` and `ssh_pki` do alike.
//!
//! A policy is a set of arguments in the configuration or the pillar of the minion that signs; what
//! it says wins over what is asked for. A minion asks the signing one with `publish.publish`, so the
//! master's `peer` setting has to allow it. Only the public key leaves the minion that asks. What a
//! kind of certificate has of its own is its [`Issued`].
// gen:pub

use std::path::Path;

use halite_spec::{Args, Cx, Error, Rest, Result, host::Write};
use halite_value::{Dict, Value, entries};

use crate::{
    config,
    publish::{self, Wish},
};

pub const NO_SIGNER: &str =
    "Creating a certificate locally at least requires a signing private key.";

const NO_ANSWER: &str = "ca_server did not respond. Salt master must permit peers to call the \
                         sign_remote_certificate function.";

/// How long to wait for the minion that signs.
const PATIENCE: f64 = 30.0;

/// A certificate made from arguments, under a policy.
pub trait Issued: Sized {
    /// The option that holds the policies.
    const POLICIES: &'static str;
    /// The function a minion asks the signing one for.
    const FUNCTION: &'static str;
    /// What nobody may ask for from afar, besides keys of the signing minion and files on it.
    const WITHHELD: &'static [&'static str];

    /// Reads one.
    fn load(cx: &Cx, source: &Value) -> Result<Self>;

    /// Makes one, signed with a key of this minion's.
    fn make(cx: &Cx, given: &Dict) -> Result<Self>;

    /// What the minion that asked gets.
    fn answer(&self) -> Value;

    /// The copy that `copypath` asks for: its name, its content and its mode.
    fn copy(&self, given: &Dict) -> (String, String, Option<u32>);

    /// Tells the user of names of old times; `place` is where they stand.
    fn warn_of(given: &Dict, place: &str) {
        let _ = (given, place);
    }

    /// The arguments by the names we know them by.
    fn named(given: &Dict) -> Dict {
        given.shallow_copy()
    }

    /// The arguments with a policy laid over them.
    fn merged(given: &Dict, policy: &Dict) -> Dict;

    /// What is sent to the minion that signs: no private key, and no name of a file it would not find.
    fn portable(cx: &Cx, given: &Dict) -> Result<Dict>;

    /// Takes from a policy what other minions are not to see.
    fn redact(cx: &Cx, policy: &Dict) -> Result<()>;
}

/// An argument that says something.
pub fn set(given: &Dict, name: &str) -> Option<Value> {
    given.get(name).filter(|value| !value.is_null())
}

pub fn text(given: &Dict, name: &str) -> Option<String> {
    set(given, name).map(|value| value.to_str().to_string())
}

/// Opens the key an argument names; its passphrase is the argument beside it.
pub fn key<K>(
    cx: &Cx,
    given: &Dict,
    name: &str,
    load: fn(&Cx, &Value, Option<&str>) -> Result<K>,
) -> Result<Option<K>> {
    let Some(source) = set(given, name) else { return Ok(None) };
    let passphrase = text(given, &format!("{name}_passphrase"));
    load(cx, &source, passphrase.as_deref()).map(Some)
}

/// The policy of a name, of this minion or another one; empty if there is none.
pub fn policy<C: Issued>(cx: &Cx, name: &str, ca_server: Option<&str>) -> Result<Dict> {
    if let Some(server) = ca_server {
        let told = ask::<C>(cx, server, name, &Dict::new(), true)?;
        let told = told.as_dict().cloned().unwrap_or_default();
        C::warn_of(&told, name);
        return Ok(told);
    }
    let (key, delimiter) = (C::POLICIES.to_owned(), ":".to_owned());
    let all = config::get(cx, key, Value::dict(), delimiter, None, false, false, false, false)?;
    let merged = Dict::new();
    match all.get(name) {
        Some(Value::Dict(policy)) => merged.update(&policy),
        // The manual shows a list of pairs.
        Some(pairs) => {
            for pair in pairs.items_of_sequence().unwrap_or_default() {
                merged.update(&pair.as_dict().cloned().unwrap_or_default());
            }
        }
        None => {}
    }
    C::warn_of(&merged, name);
    Ok(C::named(&merged))
}

/// The arguments with what a policy says, if one is named.
pub fn under<C: Issued>(
    cx: &Cx,
    policy_name: Option<&str>,
    ca_server: Option<&str>,
    given: &Dict,
) -> Result<Dict> {
    Ok(match policy_name {
        Some(name) => C::merged(given, &policy::<C>(cx, name, ca_server)?),
        None => C::named(given),
    })
}

/// Makes a certificate here, or has it made by another minion.
pub fn make<C: Issued>(
    cx: &Cx,
    ca_server: Option<&str>,
    signing_policy: Option<&str>,
    given: &Dict,
) -> Result<C> {
    match (ca_server, signing_policy) {
        (Some(_), None) => Err(Error::invalid(
            "signing_policy must be specified to request a certificate from a remote ca_server",
        )),
        (Some(server), Some(policy)) => {
            let answer = ask::<C>(cx, server, policy, &C::portable(cx, given)?, false)?;
            kept(cx, C::load(cx, &answer)?, given)
        }
        (None, policy) => {
            let given = under::<C>(cx, policy, None, given)?;
            kept(cx, C::make(cx, &given)?, &given)
        }
    }
}

/// Leaves a copy of a new certificate in the folder `copypath`.
fn kept<C: Issued>(cx: &Cx, certificate: C, given: &Dict) -> Result<C> {
    if let Some(folder) = text(given, "copypath") {
        let (name, content, mode) = certificate.copy(given);
        let how = Write { mode, ..Write::default() };
        cx.host.write(&Path::new(&folder).join(name), content.as_bytes(), &how)?;
    }
    Ok(certificate)
}

/// Asks the minion that signs by calling a function there.
fn ask<C: Issued>(
    cx: &Cx,
    server: &str,
    policy: &str,
    wanted: &Dict,
    only_policy: bool,
) -> Result<Value> {
    let mut words = vec![Value::from(policy), Value::from(wanted.clone())];
    if only_policy {
        words.push(true.into());
    }
    let wish = Wish {
        tgt: server.into(),
        fun: C::FUNCTION.to_owned(),
        arg: Some(Value::list(words)),
        tgt_type: "glob".into(),
        returner: String::new(),
        timeout: PATIENCE,
    };
    let answer = publish::publish(cx, wish, None)?;
    let answers = answer.as_dict().map(Dict::entries).unwrap_or_default();
    let (_, answer) = answers.into_iter().next().ok_or_else(|| Error::invalid(NO_ANSWER))?;
    let Value::Dict(answer) = answer else {
        return Err(Error::invalid(format!("ca_server did not respond correctly: {answer}")));
    };
    answer.get("data").filter(Value::truthy).ok_or_else(|| {
        let errors = answer.get("errors").and_then(|errors| errors.items_of_sequence());
        let errors: Vec<String> = errors.iter().flatten().map(Value::to_string).collect();
        Error::failed(format!(
            "ca_server did not sign the certificate. Errors:\n{}",
            errors.join("\n")
        ))
    })
}

/// What a minion asks the signing one for.
#[derive(Args)]
pub struct Asked {
    /// The policy to sign under.
    signing_policy: String,
    /// What is asked for.
    kwargs: Dict,
    /// Only tell what the policy says.
    #[default(false)]
    get_signing_policy_only: bool,
    /// What was published.
    rest: Rest,
}

impl Asked {
    /// Signs a certificate, or tells of the policy; errors are an answer, too.
    pub fn answer<C: Issued>(&self, cx: &Cx) -> Dict {
        let (data, errors) = match self.data::<C>(cx) {
            Ok(data) => (data, Vec::new()),
            Err(error) => (Value::Null, vec![error.to_string()]),
        };
        entries! { "data" => data, "errors" => Value::list(errors) }
    }

    fn data<C: Issued>(&self, cx: &Cx) -> Result<Value> {
        let policy = policy::<C>(cx, &self.signing_policy, None)?;
        if policy.is_empty() {
            return Err(Error::failed(
                "signing_policy must be specified and defined on signing minion",
            ));
        }
        let asker = text(&self.rest.kwargs, "__pub_id");
        if let Some(allowed) = policy.remove("minions") {
            let asker = asker.as_deref().ok_or_else(|| {
                Error::failed("minion sending this request could not be identified")
            })?;
            if !permits(cx, &allowed, asker)? {
                return Err(Error::failed("minion not permitted to use specified signing policy"));
            }
        }
        if self.get_signing_policy_only {
            C::redact(cx, &policy)?;
            return Ok(policy.into());
        }
        C::warn_of(&self.kwargs, "keyword args");
        let given = C::named(&self.kwargs);
        // Nobody may have a key of this minion's used, or a file written, that the policy does not
        // name.
        let own = ["signing_private_key", "signing_private_key_passphrase", "private_key"];
        for name in own.iter().chain(&["copypath"]).chain(C::WITHHELD) {
            given.remove(*name);
        }
        let given = C::merged(&given, &policy);
        let made = kept(cx, C::make(cx, &given)?, &given)?;
        let asker = asker.as_deref().unwrap_or("a minion unknown");
        tracing::info!("{}: signed for {asker} under {}", C::FUNCTION, self.signing_policy);
        Ok(made.answer())
    }
}

/// Tells whether a policy's `minions` names one: globs, one or several, or a compound target.
///
/// What a compound target asks about another minion only the master knows; its `peer_run` setting
/// has to allow the signing minion `match.compound_matches`.
fn permits(cx: &Cx, allowed: &Value, asker: &str) -> Result<bool> {
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

/// Tells what differs between two lists of things that have names: `added`, `changed`, `removed`;
/// nothing if nothing does.
pub fn differences<T, N: PartialEq>(
    own: &[T],
    wanted: &[T],
    key: impl Fn(&T) -> N,
    differs: impl Fn(&T, &T) -> bool,
    name: impl Fn(&T) -> String,
) -> Option<Dict> {
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for one in wanted {
        match own.iter().find(|old| key(old) == key(one)) {
            None => added.push(name(one)),
            Some(old) if differs(old, one) => changed.push(name(one)),
            Some(_) => {}
        }
    }
    let unwanted = |old: &&T| wanted.iter().all(|one| key(one) != key(old));
    let removed: Vec<String> = own.iter().filter(unwanted).map(&name).collect();
    if added.is_empty() && changed.is_empty() && removed.is_empty() {
        return None;
    }
    Some(entries! {
        "added" => Value::list(added), "changed" => Value::list(changed),
        "removed" => Value::list(removed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minions() {
        assert!(globs_name(&"web*".into(), "web1") && !globs_name(&"web*".into(), "db1"));
        assert!(globs_name(&"web*, db*".into(), "db1"));
        assert!(globs_name(&Value::list(["db1"]), "db1"));
    }

    #[test]
    fn what_differs() {
        let check = |own: &[(&str, i64)], wanted: &[(&str, i64)], expected: &str| {
            let differ = |a: &(&str, i64), b: &(&str, i64)| a.1 != b.1;
            let found =
                differences(own, wanted, |one| one.0.to_owned(), differ, |one| one.0.to_owned());
            assert_eq!(Value::from(found).repr(), expected);
        };
        check(&[("a", 1)], &[("a", 1)], "None");
        check(
            &[("a", 1), ("b", 1), ("c", 1)],
            &[("a", 1), ("b", 2), ("d", 1)],
            "{'added': ['d'], 'changed': ['b'], 'removed': ['c']}",
        );
    }
}
