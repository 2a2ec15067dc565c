//! What GnuPG's status lines say about signatures, one by one.

use halite_value::{Dict, List, Value, entries};

/// One signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seal {
    pub(super) keyid: String,
    pub(super) username: String,
    /// Of the key that signed, and of the one above it.
    fingerprints: Vec<String>,
    pub(super) trust: Option<&'static str>,
    status: &'static str,
}

const VALID: &str = "signature valid";

impl Seal {
    pub(super) fn is_good(&self) -> bool {
        self.status == VALID && !self.fingerprints.is_empty()
    }

    fn is_by(&self, wanted: &str) -> bool {
        let wanted = wanted.replace(' ', "").to_uppercase();
        self.is_good() && self.fingerprints.contains(&wanted)
    }

    fn shown(&self) -> Value {
        let fingerprint = self.fingerprints.last().map(|text| Value::str(text.as_str()));
        entries! {
            "username" => Some(self.username.as_str()).filter(|name| !name.is_empty()),
            "key_id" => self.keyid.as_str(),
            "fingerprint" => fingerprint,
            "trust_level" => self.trust,
            "status" => self.status,
        }
        .into()
    }
}

/// Reads the status lines. What follows the line that begins a signature belongs to it alone.
pub(super) fn seals_in(statuses: &[Vec<String>]) -> Vec<Seal> {
    let mut seals: Vec<Seal> = Vec::new();
    for words in statuses {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let new = |status: &'static str, keyid: &str, name: &[&str]| Seal {
            keyid: keyid.to_owned(),
            username: name.join(" "),
            status,
            ..Seal::default()
        };
        match words.as_slice() {
            ["GOODSIG", keyid, name @ ..] => seals.push(new(VALID, keyid, name)),
            ["BADSIG", keyid, name @ ..] => seals.push(new("signature bad", keyid, name)),
            ["EXPSIG", keyid, name @ ..] => seals.push(new("signature expired", keyid, name)),
            ["EXPKEYSIG", keyid, name @ ..] => seals.push(new("key expired", keyid, name)),
            ["REVKEYSIG", keyid, name @ ..] => seals.push(new("key revoked", keyid, name)),
            ["ERRSIG", keyid, ..] => seals.push(new("no public key", keyid, &[])),
            ["VALIDSIG", fingerprint, .., primary] => {
                if let Some(seal) = seals.last_mut() {
                    seal.fingerprints = vec![fingerprint.to_uppercase(), primary.to_uppercase()];
                }
            }
            [trust, ..] if trust.starts_with("TRUST_") => {
                if let Some(seal) = seals.last_mut() {
                    seal.trust = Some(match *trust {
                        "TRUST_EXPIRED" => "Expired",
                        "TRUST_NEVER" => "Never",
                        "TRUST_MARGINAL" => "Marginal",
                        "TRUST_FULLY" => "Fully",
                        "TRUST_ULTIMATE" => "Ultimate",
                        _ => "Undefined",
                    });
                }
            }
            _ => {}
        }
    }
    seals
}

/// The keys named: a list, or one text, with commas or without.
pub(super) fn names(given: Value) -> Vec<String> {
    match given.items_of_sequence() {
        Some(items) => items.iter().map(|item| item.to_str().to_string()).collect(),
        None => given.to_str().split(',').map(|name| name.trim().to_owned()).collect(),
    }
}

/// Whether those signed who had to.
pub(super) fn required(seals: &[Seal], any: Option<&[String]>, all: Option<&[String]>) -> Dict {
    let signed = |name: &String| seals.iter().any(|seal| seal.is_by(name));
    let shown: List = seals.iter().map(Seal::shown).collect();
    let answer = |res: bool, message: String| {
        entries! { "res" => res, "message" => message, "signatures" => shown.clone() }
    };
    if let Some(missing) = all.and_then(|all| all.iter().find(|name| !signed(name))) {
        return answer(
            false,
            format!(
                "Public key {missing} has not provided a valid signature, but was listed in \
                 signed_by_all"
            ),
        );
    }
    if any.is_some_and(|any| !any.iter().any(signed)) {
        let text = "None of the public keys listed in signed_by_any provided a valid signature";
        return answer(false, text.into());
    }
    answer(true, "All required keys have provided a signature".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, any: &[&str], all: &[&str], expected: bool) {
        let lines: Vec<Vec<String>> =
            lines.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        let owned = |names: &[&str]| {
            (!names.is_empty()).then(|| names.iter().map(|&name| name.to_owned()).collect())
        };
        let (any, all): (Option<Vec<String>>, Option<Vec<String>>) = (owned(any), owned(all));
        let ret = required(&seals_in(&lines), any.as_deref(), all.as_deref());
        assert_eq!(ret.get("res"), Some(Value::Bool(expected)), "{lines:?}");
    }

    const GOOD: &str = "NEWSIG\nGOODSIG 11 A B <a@b>\nVALIDSIG AA11 2026-01-01 1 0 4 0 1 8 00 AA00\n\
                        TRUST_ULTIMATE 0 pgp\n";
    const BAD: &str = "NEWSIG\nBADSIG 22 C\n";
    const UNKNOWN: &str = "NEWSIG\nERRSIG 33 1 10 00 1 9\nNO_PUBKEY 33\n";
    const EXPIRED: &str =
        "NEWSIG\nEXPKEYSIG 44 D\nVALIDSIG DD44 2026-01-01 1 0 4 0 1 8 00 DD44\nTRUST_UNDEFINED\n";

    #[test]
    fn each_signature_speaks_for_itself() {
        check(GOOD, &["AA00"], &[], true);
        check(GOOD, &["aa 11"], &[], true);
        check(GOOD, &["BB"], &[], false);
        check(&format!("{GOOD}{BAD}"), &["AA00"], &[], true);
        check(&format!("{GOOD}{UNKNOWN}"), &[], &["AA00"], true);
        check(&format!("{GOOD}{UNKNOWN}"), &[], &["AA00", "33"], false);
        check(EXPIRED, &["DD44"], &[], false);
        check(&format!("{EXPIRED}{GOOD}"), &["DD44", "AA00"], &[], true);
        check(BAD, &["22"], &[], false);
    }

    #[test]
    fn a_good_signature_is_told() {
        let lines: Vec<Vec<String>> =
            GOOD.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        let seals = seals_in(&lines);
        let seal = seals.first().unwrap();
        assert_eq!((seal.username.as_str(), seal.trust), ("A B <a@b>", Some("Ultimate")));
        assert!(seal.is_good());
    }
}
