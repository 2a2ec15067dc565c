//! `x509`: private keys, requests and certificates kept in files.
//!
//! What has to be made is decided here; the file is `file.managed`'s business, which gets all
//! arguments this module does not know (`user`, `mode`, `makedirs`, `backup` …). A certificate is
//! compared with a fresh one made from the same arguments, so every extension counts.

use std::path::Path;

use halite_modules::x509::{
    Key, Shown, Wanted, appended, ends_within, key_in_form, opened_certificates, opened_key,
    opened_request, pem_entry, request_in_form, serial_is,
};
use halite_spec::{
    Applied, Args, Binder, Call, Cx, Error, Outcome, Plan, Rest, Result, State, states,
};
use halite_value::{Dict, Value, entries};

use crate::file::Managed;

states! {
    /// Keep private keys, requests and certificates in files.
    "x509": "certificate_managed" => CertificateManaged,
    "csr_managed" => CsrManaged,
    "pem_managed" => PemManaged,
    "private_key_managed" => PrivateKeyManaged,
}

/// The arguments of `file.managed` among those given.
fn file_arguments(given: &Dict) -> Dict {
    let mine = ["name", "contents", "source", "replace", "show_changes", "text"];
    let kept = Dict::new();
    for param in Managed::PARAMS.iter().filter(|param| !param.rest && !mine.contains(&param.name)) {
        if let Some(value) = given.get(param.name) {
            kept.insert(param.name, value);
        }
    }
    kept
}

/// `file.managed` with this content; without one it keeps what is there and sees to the rest.
fn managed(
    name: &str,
    content: Option<&[u8]>,
    given: &Dict,
    mode: Option<&str>,
) -> Result<Managed> {
    let kwargs = file_arguments(given);
    kwargs.insert("name", name);
    if let Some(mode) = mode {
        if kwargs.get("mode").is_none_or(|given| given.is_null()) {
            kwargs.insert("mode", mode);
        }
    }
    match content {
        Some(content) => {
            kwargs.insert("contents", match std::str::from_utf8(content) {
                Ok(text) => Value::str(text),
                Err(_) => Value::bytes(content.to_vec()),
            });
            kwargs.insert("show_changes", false);
        }
        None => {
            kwargs.insert("replace", false);
        }
    }
    let mut binder = Binder::new(Call { args: Vec::new(), kwargs }, Managed::PARAMS);
    Managed::bind(&mut binder)
}

/// Writes what was made.
fn written(
    cx: &Cx,
    name: &str,
    content: &[u8],
    given: &Dict,
    mode: Option<&str>,
) -> Result<Applied> {
    let file = managed(name, Some(content), given, mode)?;
    let outcome = halite_spec::run(&file, cx, false).unwrap_or_else(|error| Outcome::failed(error.to_string()));
    let extra = part(name, &outcome);
    if outcome.result == Some(false) {
        let text = "Could not create file, see file.managed output";
        return Ok(Applied { extra, ..Applied::failed(Dict::new(), text) });
    }
    // `create: false` leaves a file alone that is not there.
    let changes = (outcome.changes.is_empty() && !cx.host.exists(Path::new(name))?).then(Dict::new);
    let comment = changes.is_some().then(|| outcome.comment.clone());
    Ok(Applied { extra, changes, comment, ..Applied::default() })
}

/// What `file.managed` said, as a part of the state's return.
fn part(name: &str, outcome: &Outcome) -> Dict {
    let low = entries! { "name" => name, "state" => "file", "fun" => "managed", "__id__" => name };
    let part = outcome.to_value(&Value::str(name));
    part.insert("low", low);
    entries! { "sub_state_run" => Value::list([Value::from(part)]) }
}

/// The file itself where nothing has to be made.
fn kept(cx: &Cx, name: &str, what: &str, file: &Managed) -> Result<Applied> {
    let outcome = halite_spec::run(file, cx, false)?;
    let extra = part(name, &outcome);
    let right = format!("The {what} is in the correct state");
    Ok(Applied { changes: Some(Dict::new()), comment: Some(right), result: outcome.result, extra })
}

/// `test=True`, with what it means for the file.
fn rehearsed<S: State<Seen = Seen>>(
    state: &S,
    cx: &Cx,
    name: &str,
    what: &str,
    file: &Managed,
) -> Result<Option<Outcome>> {
    let seen = state.observe(&cx.looking_only())?;
    let plan = state.plan(&seen)?;
    let sub = halite_spec::run(file, cx, true)?;
    let extra = part(name, &sub);
    Ok(Some(match seen {
        Seen::Make { .. } => {
            Outcome { extra, ..Outcome::new(plan.test_result, plan.changes, plan.pending) }
        }
        Seen::Right(_) => {
            let right = format!("The {what} is in the correct state");
            Outcome { extra, ..Outcome::new(sub.result, Dict::new(), right) }
        }
    }))
}

/// What was found: nothing to make (and what the file itself lacks), or what to make and why.
pub enum Seen {
    Right(Box<<Managed as State>::Seen>),
    Make { changes: Dict, made: Option<String>, new: bool },
}

/// The rest of a state, the same for all that is made.
fn plan_of(what: &str, seen: &Seen, file: &Managed) -> Result<Plan> {
    match seen {
        Seen::Right(found) => {
            let right = format!("The {what} is in the correct state");
            let plan = file.plan(found)?;
            if plan.is_empty() {
                return Ok(Plan::nothing(right));
            }
            Ok(Plan::unknown().pending(right))
        }
        Seen::Make { changes, new, .. } => {
            let verb = if *new { "created" } else { "recreated" };
            Ok(Plan::changes(changes.clone())
                .pending(format!("The {what} would have been {verb}"))
                .done(format!("The {what} has been {verb}")))
        }
    }
}

/// Nothing but the form in the file changes.
fn only_form(changes: &Dict, words: &[&str]) -> bool {
    changes.keys().iter().all(|key| words.contains(&key.to_str().as_str()))
}

fn one(key: &str, value: impl Into<Value>) -> Dict {
    let changes = Dict::new();
    changes.insert(key, value);
    changes
}

/// Make sure that a file holds a private key.
#[derive(Args)]
pub struct PrivateKeyManaged {
    /// The file.
    name: String,
    /// `rsa`, `ec`, `ed25519` or `ed448`.
    #[default("rsa".into())]
    algo: String,
    /// Its size in bits; 2048 for RSA and 256 for EC unless said.
    keysize: Option<i64>,
    /// Its passphrase.
    passphrase: Option<String>,
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Encrypt a PKCS12 container so that old programs can read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Make a new key each time.
    #[default(false)]
    new: bool,
    /// Write over a file that holds no key, or one whose passphrase differs.
    #[default(false)]
    overwrite: bool,
    /// Arguments of `file.managed`, and the old names `bits` and `cipher`.
    rest: Rest,
}

impl PrivateKeyManaged {
    fn wanted(&self) -> Key {
        let bits = self.rest.kwargs.get("bits").and_then(|bits| bits.to_int());
        let size = self.keysize.or(bits).or_else(|| Key::default_size(&self.algo));
        Key { algo: self.algo.clone(), size }
    }

    fn file(&self) -> Result<Managed> {
        managed(&self.name, None, &self.rest.kwargs, Some("0400"))
    }
}

impl State for PrivateKeyManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let Some(own) = cx.host.read_if_there(Path::new(name))? else {
            return Ok(Seen::Make { changes: one("created", name), made: None, new: true });
        };
        let wanted = self.wanted();
        let refused = |text: &str| {
            Error::failed(format!("{text}. Pass overwrite: true to force regeneration"))
        };
        let passphrase = self.passphrase.as_deref();
        let opened = opened_key(cx, &own, passphrase);
        let is_pem = opened.as_ref().is_some_and(|(form, _)| *form == "pem");
        let encrypted = is_pem && opened.as_ref().is_some_and(|(_, pem)| pem.contains("ENCRYPTED"));
        let key = opened.as_ref().and_then(|(form, pem)| {
            let passphrase = passphrase.filter(|_| *form == "pem");
            Key::of(cx, pem.as_bytes(), passphrase).ok()
        });
        let kept = opened.as_ref().map(|(_, pem)| pem.clone());
        let readable = key.is_some();
        let changes = match (key, opened) {
            (None, _) if encrypted && self.overwrite => one("passphrase", true),
            (None, _) if encrypted && passphrase.is_none() => {
                return Err(Error::failed(
                    "The existing file is encrypted. Pass overwrite: true to force regeneration \
                     without passphrase",
                ));
            }
            (None, _) if encrypted => {
                return Err(refused("The provided passphrase cannot decrypt the private key"));
            }
            (None, _) | (_, None) if self.overwrite => one("created", name),
            (None, _) | (_, None) => {
                return Err(refused(
                    "The existing file does not seem to be a private key formatted as DER, PEM or \
                     embedded in PKCS12",
                ));
            }
            (Some(_), Some(_)) if self.new => one("replaced", name),
            (Some(own), Some((form, _))) => {
                let changes = Dict::new();
                if own.algo != wanted.algo {
                    changes.insert("algo", wanted.algo.as_str());
                } else if own.size != wanted.size
                    && let Some(size) = wanted.size
                {
                    changes.insert("keysize", size);
                }
                if form != self.encoding {
                    changes.insert("encoding", self.encoding.as_str());
                }
                if is_pem && passphrase.is_some() && !encrypted {
                    changes.insert("passphrase", true);
                }
                changes
            }
        };
        if changes.is_empty() {
            return Ok(Seen::Right(Box::new(self.file()?.observe(cx)?)));
        }
        let made = kept.filter(|_| readable && only_form(&changes, &["encoding", "passphrase"]));
        Ok(Seen::Make { changes, made, new: false })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        plan_of("private key", seen, &self.file()?)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        match seen {
            Seen::Right(_) => kept(cx, &self.name, "private key", &self.file()?),
            Seen::Make { made, .. } => {
                let passphrase = self.passphrase.as_deref();
                let compatible = self.pkcs12_encryption_compat;
                let form = self.encoding.as_str();
                let key = match made {
                    // Only its form changes: it stays the same key.
                    Some(pem) => key_in_form(cx, &pem, form, passphrase, passphrase, compatible)?,
                    None if form == "pem" => self.wanted().make(cx, passphrase)?.into_bytes(),
                    None => {
                        let pem = self.wanted().make(cx, None)?;
                        key_in_form(cx, &pem, form, passphrase, None, compatible)?
                    }
                };
                written(cx, &self.name, &key, &self.rest.kwargs, Some("0400"))
            }
        }
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        rehearsed(self, cx, &self.name, "private key", &self.file()?)
    }
}

/// Make sure that a file holds a certificate that is as asked and does not end soon.
#[derive(Args)]
pub struct CertificateManaged {
    /// The file.
    name: String,
    /// Make a new one when the old one ends within these days; 90 unless said.
    days_remaining: Option<i64>,
    /// Certificates that follow in the file: files or PEM texts.
    #[default(Value::Null)]
    append_certs: Value,
    /// Keys (`private_key`, `signing_private_key`), `signing_cert`, `csr`, subject (`CN` …),
    /// extensions (`basicConstraints` …), `days_valid`, `digest`, and arguments of `file.managed`.
    rest: Rest,
}

impl CertificateManaged {
    fn file(&self) -> Result<Managed> {
        managed(&self.name, None, &self.rest.kwargs, None)
    }

    fn wanted(&self, cx: &Cx) -> Result<Wanted> {
        Wanted { given: self.rest.kwargs.clone() }.policed(cx)
    }
}

impl State for CertificateManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let asked = self.wanted(cx)?;
        let fresh = asked.certificate(cx)?;
        let appended = appended(cx, &self.append_certs)?;
        let made = Some(fresh.clone());
        let Some(own) = cx.host.read_if_there(Path::new(name))? else {
            return Ok(Seen::Make { changes: one("created", name), made, new: true });
        };
        let passphrase = asked.text("pkcs12_passphrase");
        let opened = opened_certificates(cx, &own, passphrase.as_deref());
        let Some((form, first, own)) = opened.and_then(|(form, own)| {
            pem_entry(&own, Some("CERTIFICATE")).ok().map(|first| (form, first, own))
        }) else {
            return Ok(Seen::Make { changes: one("replaced", name), made, new: false });
        };
        let wanted = Shown::of(cx, "x509", fresh.as_bytes())?;
        let changes = Shown::of(cx, "x509", first.as_bytes())?.differences(&wanted);
        if ends_within(cx, first.as_bytes(), self.days_remaining.unwrap_or(90))? {
            changes.insert("expiration", true);
        }
        let rest = own.split_once("-----END CERTIFICATE-----").map_or("", |(_, rest)| rest);
        if bodies(rest) != bodies(&appended) {
            changes.insert("additional_certs", true);
        }
        let encoding = asked.text("encoding").unwrap_or_else(|| "pem".into());
        if form != encoding {
            changes.insert("encoding", encoding);
        }
        if let Some(serial) = asked.text("serial_number")
            && !serial_is(cx, &first, &serial)?
        {
            changes.insert("serial_number", serial);
        }
        let made = match only_form(&changes, &["encoding", "additional_certs"]) {
            true => Some(first.clone()),
            false => made,
        };
        if changes.is_empty() {
            return Ok(Seen::Right(Box::new(self.file()?.observe(cx)?)));
        }
        Ok(Seen::Make { changes, made, new: false })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        plan_of("certificate", seen, &self.file()?)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        match seen {
            Seen::Right(_) => kept(cx, &self.name, "certificate", &self.file()?),
            Seen::Make { made, .. } => {
                let asked = self.wanted(cx)?;
                let pem = made.unwrap_or_default();
                let content = asked.in_form(cx, &pem, &appended(cx, &self.append_certs)?)?;
                asked.keep_copy(cx, &pem)?;
                written(cx, &self.name, &content, &self.rest.kwargs, None)
            }
        }
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        rehearsed(self, cx, &self.name, "certificate", &self.file()?)
    }
}

/// The pieces of PEM in a text, without what stands around them.
fn bodies(text: &str) -> Vec<String> {
    let pieces = text.split("-----BEGIN CERTIFICATE-----").skip(1);
    let bodies = pieces.filter_map(|piece| piece.split("-----END").next());
    bodies.map(|body| body.chars().filter(|one| !one.is_whitespace()).collect()).collect()
}

/// Make sure that a file holds a certificate request that is as asked.
#[derive(Args)]
pub struct CsrManaged {
    /// The file.
    name: String,
    /// The key it is for: a file or a PEM text.
    private_key: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    /// Subject (`CN`, `O` …), extensions (`subjectAltName` …), `digest`,
    /// `private_key_passphrase`, and arguments of `file.managed`.
    rest: Rest,
}

impl CsrManaged {
    fn file(&self) -> Result<Managed> {
        managed(&self.name, None, &self.rest.kwargs, None)
    }
}

impl State for CsrManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let given = self.rest.kwargs.shallow_copy();
        given.insert("private_key", self.private_key.as_str());
        let fresh = Wanted { given }.request(cx)?;
        let made = Some(fresh.clone());
        let Some(own) = cx.host.read_if_there(Path::new(name))? else {
            return Ok(Seen::Make { changes: one("created", name), made, new: true });
        };
        let wanted = Shown::of(cx, "req", fresh.as_bytes())?;
        let changes = match opened_request(cx, &own) {
            Some((form, own)) => {
                let changes = Shown::of(cx, "req", own.as_bytes())?.differences(&wanted);
                if form != self.encoding {
                    changes.insert("encoding", self.encoding.as_str());
                }
                changes
            }
            None => one("replaced", name),
        };
        if changes.is_empty() {
            return Ok(Seen::Right(Box::new(self.file()?.observe(cx)?)));
        }
        Ok(Seen::Make { changes, made, new: false })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        plan_of("certificate signing request", seen, &self.file()?)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        match seen {
            Seen::Right(_) => kept(cx, &self.name, "certificate signing request", &self.file()?),
            Seen::Make { made, .. } => {
                let made = made.unwrap_or_default();
                let content = request_in_form(cx, &made, Some(&self.encoding))?;
                written(cx, &self.name, &content, &self.rest.kwargs, None)
            }
        }
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        rehearsed(self, cx, &self.name, "certificate signing request", &self.file()?)
    }
}

/// Make sure that a file holds a piece of PEM, written evenly.
#[derive(Args)]
pub struct PemManaged {
    /// The file.
    name: String,
    /// The text.
    text: String,
    /// Arguments of `file.managed`.
    rest: Rest,
}

impl PemManaged {
    fn file(&self) -> Result<Managed> {
        let text = pem_entry(&self.text, None)?;
        managed(&self.name, Some(text.as_bytes()), &self.rest.kwargs, None)
    }
}

impl State for PemManaged {
    type Seen = <Managed as State>::Seen;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        self.file()?.observe(cx)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        self.file()?.plan(seen)
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        self.file()?.apply(cx, seen)
    }
}
