//! `ssh_pki`: OpenSSH private keys, public keys and certificates kept in files.
//!
//! What has to be made is decided here; the rest is [`pki`](crate::pki)'s. A certificate is compared
//! with what the arguments and the policy would make; its serial number and its time count only as
//! far as they are given.

use halite_modules::{
    pki::{self, Issued},
    ssh_pki::{
        self, For,
        keys::{self, NewKey, Private},
        public_of,
        wire::{Certificate, Identity, Options, Public},
    },
    x509::source::Encoding,
};
use halite_spec::{Args, Call, Cx, Error, Plan, Rest, Result, states};
use halite_value::{Dict, Value, entries};

use crate::pki::{Kept, Made, Seen, Target};

states! {
    /// Keep OpenSSH private keys, public keys and certificates in files.
    "ssh_pki": "certificate_managed" => Kept<CertificateManaged>,
    "private_key_managed" => Kept<PrivateKeyManaged>,
    "public_key_managed" => Kept<PublicKeyManaged>,
}

/// Make sure that a file holds a private key.
#[derive(Args)]
pub struct PrivateKeyManaged {
    /// The file.
    name: String,
    #[group]
    wanted: NewKey,
    /// Make a new key each time.
    #[default(false)]
    new: bool,
    /// Write over a file that holds no key, or one whose passphrase differs.
    #[default(false)]
    overwrite: bool,
    /// Arguments of `file.managed`.
    rest: Rest,
}

impl PrivateKeyManaged {
    /// Why a key cannot be opened, unless it is to be written over.
    fn unopened(&self, error: &Error) -> Result<()> {
        if self.overwrite {
            return Ok(());
        }
        Err(Error::failed(match error.class() {
            "MissingPassword" => {
                "The current key is encrypted with a passphrase. Pass overwrite: true to force \
                 regeneration"
            }
            "InvalidPassword" => {
                "The provided passphrase cannot decrypt the private key. Pass overwrite: true to \
                 force regeneration"
            }
            _ => {
                "The existing file does not seem to be a private key. Pass overwrite: true to \
                 force regeneration"
            }
        }))
    }
}

impl Made for PrivateKeyManaged {
    fn target(&self) -> Target<'_> {
        Target { mode: Some("0400"), ..Target::of("private key", &self.name, &self.rest) }
    }

    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen> {
        let changes = Dict::new();
        if self.new {
            changes.insert("replaced", self.name.as_str());
            return Ok(Seen::of(changes, false));
        }
        let mut opened = Private::open(cx, own, self.wanted.passphrase.as_deref());
        if matches!(&opened, Err(error) if error.class() == "SuperfluousPassword") {
            changes.insert("passphrase", true);
            opened = Private::open(cx, own, None);
        }
        match opened {
            Err(error @ Error::Raised { .. }) => {
                self.unopened(&error)?;
                changes.insert("replaced", self.name.as_str());
            }
            Err(error) => return Err(error),
            Ok(own) if own.public.algo() != self.wanted.algo => {
                changes.insert("algo", self.wanted.algo.as_str());
            }
            Ok(own) => {
                if own.public.size().map(Value::from).unwrap_or_default() != self.wanted.size() {
                    changes.insert("keysize", self.wanted.size());
                }
            }
        }
        Ok(Seen::of(changes, false))
    }

    fn plan(&self, seen: &Seen) -> Plan {
        let plan = self.target().plan(seen);
        match seen.only(&["passphrase"]) {
            true => plan.done("The private key has been encrypted"),
            false => plan,
        }
    }

    fn make(&self, cx: &Cx, seen: &Seen) -> Result<(Vec<u8>, Encoding)> {
        let key = match seen.only(&["passphrase"]) {
            true => Private::load(cx, &self.name.as_str().into(), None)?,
            false => self.wanted.make(cx)?,
        };
        Ok((key.encode(cx, self.wanted.passphrase.as_deref())?, Encoding::Pem))
    }
}

/// Make sure that a file holds a public key.
#[derive(Args)]
pub struct PublicKeyManaged {
    /// The file.
    name: String,
    /// The private key, certificate or public key it comes from: a file or a text.
    public_key_source: Value,
    /// The passphrase of a private key.
    passphrase: Option<String>,
    /// Arguments of `file.managed`.
    rest: Rest,
}

impl PublicKeyManaged {
    fn wanted(&self, cx: &Cx) -> Result<Public> {
        public_of(cx, &self.public_key_source, self.passphrase.as_deref())
    }
}

impl Made for PublicKeyManaged {
    const REHEARSES_FILE: bool = false;

    fn target(&self) -> Target<'_> {
        Target::of("public key", &self.name, &self.rest)
    }

    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen> {
        let own = Identity::read(&String::from_utf8_lossy(own));
        if own.is_none() {
            // What is no key is not ours to replace.
            return Err(Error::failed("Could not load OpenSSH public key."));
        }
        let changes = Dict::new();
        if own != Some(Identity::Key(self.wanted(cx)?)) {
            changes.insert("updated", self.name.as_str());
        }
        Ok(Seen::of(changes, false))
    }

    fn plan(&self, seen: &Seen) -> Plan {
        let plan = self.target().plan(seen);
        match seen.only(&["updated"]) {
            true => plan
                .pending("The public key would have been updated")
                .done("The public key has been updated"),
            false => plan,
        }
    }

    fn make(&self, cx: &Cx, _: &Seen) -> Result<(Vec<u8>, Encoding)> {
        Ok((self.wanted(cx)?.line().into_bytes(), Encoding::Pem))
    }
}

/// Make sure that a file holds an OpenSSH certificate that is as asked and does not end soon.
#[derive(Args)]
pub struct CertificateManaged {
    /// The file.
    name: String,
    /// Make a new one when the old one ends within this time: seconds, or `12h`; 7 days for hosts
    /// and one hour for users unless said.
    #[default(Value::Null)]
    ttl_remaining: Value,
    /// The minion that signs; it is asked through the master.
    ca_server: Option<String>,
    /// Another module that makes certificates and knows policies.
    backend: Option<String>,
    /// What that module gets besides.
    backend_args: Option<Dict>,
    /// The name of a set of rules in `ssh_signing_policies`.
    signing_policy: Option<String>,
    /// A folder for copies.
    #[default(Value::Null)]
    copypath: Value,
    /// `user` or `host`.
    #[default(Value::Null)]
    cert_type: Value,
    /// The key that signs: a file or a text.
    #[default(Value::Null)]
    signing_private_key: Value,
    /// That key's passphrase.
    #[default(Value::Null)]
    signing_private_key_passphrase: Value,
    /// The key to certify.
    #[default(Value::Null)]
    public_key: Value,
    /// The key to certify, as private key.
    #[default(Value::Null)]
    private_key: Value,
    /// That key's passphrase.
    #[default(Value::Null)]
    private_key_passphrase: Value,
    /// Its number.
    #[default(Value::Null)]
    serial_number: Value,
    /// From when it counts: `2024-01-31 12:00:00`.
    #[default(Value::Null)]
    not_before: Value,
    /// Until when it counts.
    #[default(Value::Null)]
    not_after: Value,
    /// How long it counts; 30 days for hosts and one for users unless said.
    #[default(Value::Null)]
    ttl: Value,
    /// Options a server must know: name → value, or True.
    #[default(Value::Null)]
    critical_options: Value,
    /// What it permits: name → value, or True.
    #[default(Value::Null)]
    extensions: Value,
    /// Who it is for.
    #[default(Value::Null)]
    valid_principals: Value,
    /// It is for everybody.
    #[default(false)]
    all_principals: bool,
    /// The name logs show.
    #[default(Value::Null)]
    key_id: Value,
    /// Arguments of `file.managed`.
    rest: Rest,
}

impl CertificateManaged {
    /// What the certificate is made from.
    fn given(&self) -> Dict {
        let given = Dict::new();
        for (name, value) in [
            ("copypath", &self.copypath),
            ("cert_type", &self.cert_type),
            ("signing_private_key", &self.signing_private_key),
            ("signing_private_key_passphrase", &self.signing_private_key_passphrase),
            ("public_key", &self.public_key),
            ("private_key", &self.private_key),
            ("private_key_passphrase", &self.private_key_passphrase),
            ("serial_number", &self.serial_number),
            ("not_before", &self.not_before),
            ("not_after", &self.not_after),
            ("ttl", &self.ttl),
            ("critical_options", &self.critical_options),
            ("extensions", &self.extensions),
            ("valid_principals", &self.valid_principals),
            ("key_id", &self.key_id),
        ] {
            if !value.is_null() {
                given.insert(name, value);
            }
        }
        if self.all_principals {
            given.insert("all_principals", true);
        }
        given
    }

    /// The other module to ask, if there is one.
    fn other(&self) -> Option<&str> {
        self.backend.as_deref().filter(|backend| *backend != "ssh_pki")
    }

    /// The arguments as the policy, wherever it is, makes them.
    fn merged(&self, cx: &Cx) -> Result<Dict> {
        let given = self.given();
        let Some(name) = &self.signing_policy else { return Ok(given) };
        let policy = match (self.other(), &self.ca_server) {
            (Some(backend), server) => {
                let kwargs = self.backend_args.clone().unwrap_or_default().shallow_copy();
                kwargs.insert("ca_server", server.as_deref());
                let call = Call { args: vec![name.as_str().into()], kwargs };
                let policy = cx.call(&format!("{backend}.get_signing_policy"), call)?;
                policy.as_dict().cloned().unwrap_or_default()
            }
            (None, server) => pki::policy::<Certificate>(cx, name, server.as_deref())?,
        };
        let merged = Certificate::merged(&given, &policy);
        if let Some(key) = policy.get("signing_public_key") {
            merged.insert("signing_public_key", key);
        }
        Ok(merged)
    }

    fn issued(&self, cx: &Cx) -> Result<Certificate> {
        let Some(backend) = self.other() else {
            let (server, policy) = (self.ca_server.as_deref(), self.signing_policy.as_deref());
            return pki::make(cx, server, policy, &self.given());
        };
        let kwargs = self.given();
        kwargs.insert("ca_server", self.ca_server.as_deref());
        kwargs.insert("signing_policy", self.signing_policy.as_deref());
        for (name, value) in self.backend_args.iter().flat_map(Dict::entries) {
            kwargs.insert(name, value);
        }
        let call = Call { args: Vec::new(), kwargs };
        let made = cx.call(&format!("{backend}.create_certificate"), call)?;
        ssh_pki::certificate_of(cx, &made)
    }

    /// What differs between the certificate there and the one wanted.
    fn differences(&self, cx: &Cx, own: &Certificate) -> Result<Dict> {
        let changes = Dict::new();
        let merged = self.merged(cx)?;
        let value = |name: &str| pki::set(&merged, name);
        let text = |name: &str| pki::text(&merged, name);
        let kind = ssh_pki::kind_of(&merged)?;
        let remaining = match &self.ttl_remaining {
            // By what is there: one made for users does not end too soon for a host.
            Value::Null if own.kind == For::Host => Value::from("7d"),
            Value::Null => Value::from("1h"),
            given => given.clone(),
        };
        if own.kind != kind {
            changes.insert("cert_type", kind.name());
        }
        if let Some(serial) = value("serial_number")
            && ssh_pki::serial_of(&serial)? != own.serial
        {
            changes.insert("serial_number", serial);
        }
        if ssh_pki::ends_within(cx, own, &remaining)? {
            changes.insert("expiration", true);
        }
        let key = match (value("public_key"), value("private_key")) {
            (Some(key), _) => public_of(cx, &key, None)?,
            (None, Some(key)) => public_of(cx, &key, text("private_key_passphrase").as_deref())?,
            (None, None) => {
                return Err(Error::failed(
                    "Need public_key or private_key to derive public key to sign",
                ));
            }
        };
        if key != own.key {
            changes.insert("private_key", true);
        }
        let signer = match (value("signing_private_key"), value("signing_public_key")) {
            (Some(key), _) => {
                Some(public_of(cx, &key, text("signing_private_key_passphrase").as_deref())?)
            }
            (None, Some(key)) => Some(public_of(cx, &key, None)?),
            (None, None) if self.ca_server.is_none() && self.other().is_none() => {
                return Err(Error::failed(
                    "signing_private_key is required - this is most likely a bug",
                ));
            }
            // Another minion or module has the key and does not say which.
            (None, None) => None,
        };
        if let Some(signer) = signer
            && (signer != own.signer || !keys::verify(cx, &signer, &own.signature, &own.body())?)
        {
            changes.insert("signing_private_key", true);
        }
        let id = text("key_id").unwrap_or_default();
        if id != own.key_id {
            let change = entries! { "old" => own.key_id.as_str(), "new" => id };
            changes.insert("key_id", change);
        }
        for (name, own) in [("extensions", &own.extensions), ("critical_options", &own.critical)] {
            let wanted = ssh_pki::options_of(value(name))?;
            if let Some(change) = options_change(own, &wanted) {
                changes.insert(name, change);
            }
        }
        let wanted = ssh_pki::principals_of(&merged)?;
        if let Some(change) = principals_change(&own.principals, &wanted) {
            changes.insert("principals", change);
        }
        Ok(changes)
    }
}

fn options_change(own: &Options, wanted: &Options) -> Option<Dict> {
    let sorted = |options: &Options| {
        let mut sorted = options.clone();
        sorted.sort();
        sorted
    };
    let differs = |old: &(String, _), new: &(String, _)| old.1 != new.1;
    let name = |option: &(String, _)| option.0.clone();
    pki::differences(&sorted(own), &sorted(wanted), name, differs, name)
}

/// Nobody named means everybody.
fn principals_change(own: &[String], wanted: &[String]) -> Option<Dict> {
    let without = |all: &[String], others: &[String]| {
        Value::list(all.iter().filter(|name| !others.contains(name)).map(String::as_str))
    };
    let (added, removed) = match (own.is_empty(), wanted.is_empty()) {
        (true, true) => return None,
        (true, false) => (without(wanted, &[]), Value::from("*ALL*")),
        (false, true) => (Value::from("*ALL*"), Value::list(Vec::<Value>::new())),
        (false, false) => (without(wanted, own), without(own, wanted)),
    };
    (added.truthy() || removed.truthy())
        .then(|| entries! { "added" => added, "removed" => removed })
}

impl Made for CertificateManaged {
    fn target(&self) -> Target<'_> {
        Target::of("certificate", &self.name, &self.rest)
    }

    fn compare(&self, cx: &Cx, own: &[u8]) -> Result<Seen> {
        match Identity::read(&String::from_utf8_lossy(own)) {
            Some(Identity::Certificate(own)) => Ok(Seen::of(self.differences(cx, &own)?, false)),
            _ => {
                let changes = entries! { "replaced" => self.name.as_str() };
                Ok(Seen::of(changes, true))
            }
        }
    }

    fn make(&self, cx: &Cx, _: &Seen) -> Result<(Vec<u8>, Encoding)> {
        Ok((self.issued(cx)?.line().into_bytes(), Encoding::Pem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(change: Option<Dict>) -> String {
        change.map_or_else(|| "-".to_owned(), |change| Value::from(change).repr())
    }

    #[test]
    fn principals() {
        let check = |own: &[&str], wanted: &[&str], expected: &str| {
            let owned = |names: &[&str]| -> Vec<String> {
                names.iter().map(|&name| name.to_owned()).collect()
            };
            assert_eq!(shown(principals_change(&owned(own), &owned(wanted))), expected);
        };
        check(&[], &[], "-");
        check(&["a"], &["a"], "-");
        check(&["a"], &["a", "b"], "{'added': ['b'], 'removed': []}");
        check(&["a", "b"], &["a"], "{'added': [], 'removed': ['b']}");
        check(&[], &["a"], "{'added': ['a'], 'removed': '*ALL*'}");
        check(&["a"], &[], "{'added': '*ALL*', 'removed': []}");
    }

    #[test]
    fn options() {
        let own: Options =
            vec![("a".into(), None), ("b".into(), Some("1".into())), ("c".into(), None)];
        let wanted: Options =
            vec![("a".into(), None), ("b".into(), Some("2".into())), ("d".into(), None)];
        assert_eq!(
            shown(options_change(&own, &wanted)),
            "{'added': ['d'], 'changed': ['b'], 'removed': ['c']}"
        );
        assert_eq!(shown(options_change(&own, &own)), "-");
    }
}
