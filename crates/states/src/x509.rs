//! `x509`: private keys, requests and certificates kept in files.
//!
//! What has to be made is decided here; the file is `file.managed`'s business, which gets all
//! arguments this module does not know (`user`, `mode`, `makedirs`, `backup` …). A certificate is
//! compared with a fresh one made from the same arguments, so every extension counts.

use std::path::Path;

use halite_modules::x509::{Key, Shown, Wanted, ends_within, pem_entry};
use halite_spec::{Applied, Args, Binder, Call, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

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
fn managed(name: &str, content: Option<&str>, given: &Dict, mode: Option<&str>) -> Result<Managed> {
    let kwargs = file_arguments(given);
    kwargs.insert("name", name);
    if let Some(mode) = mode {
        kwargs.get_or_insert_with("mode", || mode.into());
    }
    match content {
        Some(content) => {
            kwargs.insert("contents", content);
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
    content: &str,
    given: &Dict,
    mode: Option<&str>,
) -> Result<Applied> {
    let outcome = halite_spec::run(&managed(name, Some(content), given, mode)?, cx, false)?;
    if outcome.result == Some(false) {
        return Err(Error::failed(format!(
            "Could not create file, see file.managed output: {}",
            outcome.comment
        )));
    }
    Ok(Applied::as_planned())
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
            Ok(plan)
        }
        Seen::Make { changes, new, .. } => {
            let verb = if *new { "created" } else { "recreated" };
            Ok(Plan::changes(changes.clone())
                .pending(format!("The {what} would have been {verb}"))
                .done(format!("The {what} has been {verb}")))
        }
    }
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
    /// `pem`.
    #[default("pem".into())]
    encoding: String,
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
        if self.encoding != "pem" {
            let encoding = &self.encoding;
            return Err(Error::failed(format!(
                "x509: the encoding '{encoding}' is not supported yet"
            )));
        }
        let name = self.name.as_str();
        let Some(own) = cx.host.read_if_there(Path::new(name))? else {
            return Ok(Seen::Make { changes: one("created", name), made: None, new: true });
        };
        let wanted = self.wanted();
        let changes = match Key::of(cx, &own, self.passphrase.as_deref()) {
            Err(_) if self.overwrite => one("created", name),
            Err(_) => {
                return Err(Error::failed(
                    "The existing file does not seem to be a private key formatted as DER, PEM or \
                     embedded in PKCS12. Pass overwrite: true to force regeneration",
                ));
            }
            Ok(_) if self.new => one("replaced", name),
            Ok(own) => {
                let changes = Dict::new();
                if own.algo != wanted.algo {
                    changes.insert("algo", wanted.algo.as_str());
                }
                if own.size != wanted.size
                    && let Some(size) = wanted.size
                {
                    changes.insert("keysize", size);
                }
                changes
            }
        };
        if changes.is_empty() {
            return Ok(Seen::Right(Box::new(self.file()?.observe(cx)?)));
        }
        Ok(Seen::Make { changes, made: None, new: false })
    }

    fn plan(&self, seen: &Seen) -> Result<Plan> {
        plan_of("private key", seen, &self.file()?)
    }

    fn apply(&self, cx: &Cx, seen: Seen) -> Result<Applied> {
        match seen {
            Seen::Right(found) => self.file()?.apply(cx, *found),
            Seen::Make { .. } => {
                let key = self.wanted().make(cx, self.passphrase.as_deref())?;
                written(cx, &self.name, &key, &self.rest.kwargs, Some("0400"))
            }
        }
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

    /// The certificates that follow.
    fn appended(&self, cx: &Cx) -> Result<String> {
        let sources = match self.append_certs.items_of_sequence() {
            Some(items) => items,
            None if self.append_certs.truthy() => vec![self.append_certs.clone()],
            None => Vec::new(),
        };
        let mut all = String::new();
        for source in sources {
            let source = source.to_string();
            let text = match source.contains("-----BEGIN ") {
                true => source,
                false => cx.host.read_text(Path::new(&source))?,
            };
            all.push_str(&pem_entry(&text, Some("CERTIFICATE"))?);
        }
        Ok(all)
    }
}

impl State for CertificateManaged {
    type Seen = Seen;

    fn observe(&self, cx: &Cx) -> Result<Seen> {
        let name = self.name.as_str();
        let fresh = Wanted { given: self.rest.kwargs.clone() }.certificate(cx)?;
        let appended = self.appended(cx)?;
        let made = Some(format!("{fresh}{appended}"));
        let Some(own) = cx.host.read_text_if_there(Path::new(name))? else {
            return Ok(Seen::Make { changes: one("created", name), made, new: true });
        };
        let Ok(first) = pem_entry(&own, Some("CERTIFICATE")) else {
            return Ok(Seen::Make { changes: one("replaced", name), made, new: false });
        };
        let wanted = Shown::of(cx, "x509", fresh.as_bytes())?;
        let changes = Shown::of(cx, "x509", first.as_bytes())?.differences(&wanted);
        if ends_within(cx, first.as_bytes(), self.days_remaining.unwrap_or(90))? {
            changes.insert("expiration", true);
        }
        let rest = own.split_once("-----END CERTIFICATE-----").map_or("", |(_, rest)| rest);
        let plain =
            |text: &str| text.chars().filter(|one| !one.is_whitespace()).collect::<String>();
        if plain(rest) != plain(&appended) {
            changes.insert("additional_certs", true);
        }
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
            Seen::Right(found) => self.file()?.apply(cx, *found),
            Seen::Make { made, .. } => {
                let made = made.unwrap_or_default();
                written(cx, &self.name, &made, &self.rest.kwargs, None)
            }
        }
    }
}

/// Make sure that a file holds a certificate request that is as asked.
#[derive(Args)]
pub struct CsrManaged {
    /// The file.
    name: String,
    /// The file of the key it is for.
    private_key: String,
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
        let changes = match Shown::of(cx, "req", &own) {
            Ok(own) => own.differences(&wanted),
            Err(_) => one("replaced", name),
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
            Seen::Right(found) => self.file()?.apply(cx, *found),
            Seen::Make { made, .. } => {
                let made = made.unwrap_or_default();
                written(cx, &self.name, &made, &self.rest.kwargs, None)
            }
        }
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
        managed(&self.name, Some(&text), &self.rest.kwargs, None)
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
