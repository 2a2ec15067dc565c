//! Sign-in: who we are, what we ask, and what we believe of the answer.
//!
//! [`Identity`] is the minion's key with the rules about its master's. It builds an `_auth` request
//! and checks the answer, in Salt's order: the master's key against the pinned one (or pin it),
//! the proof of the shared key, the token we sent, the signature over the whole answer, the nonce,
//! and only then what the answer says. An answer that says «rejected» is believed only after these
//! checks, so nobody but a master whose key we know can stop us (on first contact no key is known,
//! and the answer is believed as genuine minions do).
//!
//! No network here: bytes in, bytes out.

use halite_crypt::{
    Crypticle, EncAlgo, Error as CryptError, Hash, KeyOptions, Nonce, PkiDir, PrivateKey,
    PublicKey, Secret, SessionKey, SigAlgo, pki,
};
use halite_transport::LinkError;
use halite_value::{
    Dict, SmolStr, Value,
    msgpack::{self, Text},
};
use halite_wire::{AuthReply, AuthRequest, Envelope, MinionId, PROTOCOL, Refusal, Welcome};

use super::options::Settings;

/// What a master gave us, ready for use.
pub struct Keys {
    /// Opens publications.
    pub shared: Crypticle,
    /// Seals our requests; absent from masters that speak protocol 2.
    session: Option<Crypticle>,
    shared_key: SessionKey,
    pub master: PublicKey,
    pub publish_port: u16,
    /// What a Halite master adds.
    pub halite: Option<Dict>,
}

impl Keys {
    /// Returns what seals requests and opens their replies.
    pub fn requests(&self) -> &Crypticle {
        self.session.as_ref().unwrap_or(&self.shared)
    }

    /// Returns the protocol's version the master speaks.
    pub fn version(&self) -> i64 {
        if self.session.is_some() { PROTOCOL } else { 2 }
    }

    /// Tells whether the master gives private answers under our session key.
    pub fn in_session(&self) -> bool {
        self.session.is_some() && self.extension() >= 2
    }

    /// Tells whether the master takes several returns at once.
    pub fn takes_returns(&self) -> bool {
        self.extension() >= 3
    }

    /// Returns the version of what the master understands beside Salt's messages; 0: nothing.
    fn extension(&self) -> i64 {
        let version = self.halite.as_ref().and_then(|own| own.get("version")?.to_int());
        version.unwrap_or(0)
    }

    /// Tells whether the master says that it has nothing of us.
    pub fn is_unknown(&self) -> bool {
        let known = self.halite.as_ref().and_then(|own| own.get("known"));
        known.is_some_and(|known| !known.truthy())
    }

    /// Returns the first serial under the shared key, as a Halite master counts.
    fn first(&self) -> i64 {
        let first = self.halite.as_ref().and_then(|own| own.get("first"));
        first.and_then(|first| first.to_int()).unwrap_or(i64::MAX)
    }

    /// Opens the new shared key that a Halite master gives those it knows; `None` if it is none, or
    /// not newer than ours: an old one that somebody recorded must not come back.
    pub fn renewed(&self, sealed: &[u8]) -> Option<Self> {
        let packed = self.session.as_ref()?.open(sealed, None).ok()?;
        let load = msgpack::from_slice(&packed, Text::KeepBytes).ok()?;
        let first = load.get("first").and_then(|first| first.to_int())?;
        let is_key = load.get("is").is_some_and(|is| is.as_bytes() == Some(b"key"));
        if !is_key || first <= self.first() {
            return None;
        }
        let shared_key = SessionKey::parse(load.get("aes")?.as_bytes()?).ok()?;
        let halite = self.halite.as_ref()?.shallow_copy();
        halite.insert("first", first);
        Some(Self {
            shared: Crypticle::new(&shared_key),
            session: self.session.clone(),
            shared_key,
            master: self.master.clone(),
            publish_port: self.publish_port,
            halite: Some(halite),
        })
    }

    /// Tells whether publications come under the same key, so that their serials go on.
    pub fn same_shared_key(&self, other: &Self) -> bool {
        self.shared_key == other.shared_key
    }
}

/// Why signing in did not work.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The key waits for acceptance.
    #[error("the master has not accepted this minion's key yet")]
    Pending,
    /// The key is rejected.
    #[error("the master has rejected this minion's key")]
    Rejected,
    #[error("the master has as many minions as it takes")]
    Full,
    /// The master of a cluster is not ready.
    #[error("the master is not ready yet")]
    NotReady,
    #[error("Invalid master key: {0}")]
    MasterKey(String),
    /// The fingerprint is not the configured one.
    #[error(
        "The specified fingerprint in the master configuration file:\n{expected}\nDoes not match \
         the authenticating master's key:\n{found}\nVerify that the configured fingerprint matches \
         the fingerprint of the correct master and that this minion is not subject to a \
         man-in-the-middle attack."
    )]
    Finger { expected: String, found: String },
    #[error("Invalid signature")]
    Signature,
    #[error("Invalid nonce")]
    Nonce,
    #[error("the master does not support the {0} algorithm of this minion")]
    Algorithm(&'static str),
    #[error("Sign-in attempt failed: {0}")]
    Reply(String),
    #[error(transparent)]
    Crypt(#[from] CryptError),
    #[error(transparent)]
    Wire(#[from] halite_wire::Error),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// A minion's key, and its rules about masters.
pub struct Identity {
    pub id: MinionId,
    pub key: PrivateKey,
    pub enc_algo: EncAlgo,
    pub sig_algo: SigAlgo,
    pki: PkiDir,
    pinned: &'static str,
    /// Kept for the life of the process; a master that returns it holds the pinned key.
    token: Secret,
    tok: Vec<u8>,
    hash_type: Hash,
    open_mode: bool,
    finger: Option<SmolStr>,
    verify_sign: bool,
    always_verify: bool,
    sign_key_file: String,
    autosign_grains: Vec<SmolStr>,
}

/// A request on its way: what its answer must fit.
pub struct Asked {
    pub nonce: Nonce,
    with_token: bool,
}

impl Identity {
    /// Reads the key pair, or makes it.
    pub fn open(settings: &Settings) -> Result<Self, SignInError> {
        let pki = PkiDir::new(&settings.pki_dir);
        let options = KeyOptions {
            bits: settings.keysize,
            passphrase: settings.key_pass.as_deref(),
            owner: None,
        };
        let key = pki.minion(&options)?;
        Ok(Self {
            id: MinionId::new(&settings.id)?,
            tok: key.token()?,
            key,
            enc_algo: settings.enc_algo,
            sig_algo: settings.sig_algo,
            pki,
            pinned: settings.pinned,
            token: SessionKey::generate().text().clone(),
            hash_type: settings.hash_type,
            open_mode: settings.open_mode,
            finger: settings.master_finger.clone(),
            verify_sign: settings.verify_master_pubkey_sign,
            always_verify: settings.always_verify_signature,
            sign_key_file: format!("{}.pub", settings.master_sign_key_name),
            autosign_grains: settings.autosign_grains.clone(),
        })
    }

    /// Returns what proves with every request that we hold our key.
    pub fn tok(&self) -> &[u8] {
        &self.tok
    }

    /// Returns the master's pinned key.
    pub fn pinned(&self) -> Result<Option<PublicKey>, SignInError> {
        Ok(self.pki.public(self.pinned)?)
    }

    /// Builds an `_auth` request.
    pub fn ask(
        &self,
        grains: &Dict,
        halite: Option<Dict>,
    ) -> Result<(Vec<u8>, Asked), SignInError> {
        let nonce = Nonce::generate();
        // A pinned key that cannot be read is told when the answer is checked; Salt asks without.
        let pinned = self.pinned().ok().flatten();
        let token =
            pinned.map(|master| master.encrypt(self.enc_algo, self.token.expose())).transpose()?;
        let asked = Asked { nonce, with_token: token.is_some() };
        let autosign = self
            .autosign_grains
            .iter()
            .map(|name| (name.clone(), grains.get(name.as_str()).unwrap_or_default()));
        let request = AuthRequest {
            id: self.id.clone(),
            public_key: self.key.public().text().into(),
            nonce: Some(nonce.as_str().into()),
            enc_algo: Some(self.enc_algo.name().into()),
            sig_algo: Some(self.sig_algo.name().into()),
            token,
            autosign_grains: autosign.collect(),
            halite,
        };
        let envelope = Envelope::Clear { load: request.write(), version: PROTOCOL };
        Ok((envelope.encode()?, asked))
    }

    /// Checks an answer and takes the keys out of it.
    pub fn check(&self, reply: &[u8], asked: &Asked) -> Result<Keys, SignInError> {
        unsigned(reply)?;
        let (body, sig) = AuthReply::unwrap_signed(reply).map_err(|_| not_an_answer(reply))?;
        let sig = sig.ok_or_else(|| SignInError::Reply("the answer is not signed".into()))?;
        let (answer, nonce) = AuthReply::decode(&body)?;
        let pinned = self.pinned()?;
        let (keys, known) = match &answer {
            AuthReply::Welcome(welcome) => {
                let (keys, master) = self.welcome(welcome, pinned, asked)?;
                (Some(keys), Some(master))
            }
            AuthReply::Refused(_) => (None, pinned),
        };
        if let Some(master) = known {
            master.verify(self.sig_algo, &body, &sig).map_err(|_| SignInError::Signature)?;
        }
        if nonce.as_deref() != Some(asked.nonce.as_str()) {
            return Err(SignInError::Nonce);
        }
        match (answer, keys) {
            (_, Some(keys)) => {
                // Only now: an answer that fails its signature must not become the pin.
                self.pin(&keys.master)?;
                Ok(keys)
            }
            (AuthReply::Refused(Refusal::Denied), _) => Err(SignInError::Rejected),
            (AuthReply::Refused(Refusal::Full), _) => Err(SignInError::Full),
            (_, None) => Err(SignInError::Pending),
        }
    }

    fn welcome(
        &self,
        welcome: &Welcome,
        pinned: Option<PublicKey>,
        asked: &Asked,
    ) -> Result<(Keys, PublicKey), SignInError> {
        let offered = PublicKey::from_pem(welcome.public_key.as_bytes())?;
        let same = pinned.as_ref().map(|pinned| *pinned == offered);
        self.check_master(welcome, same)?;
        if let Some(expected) = &self.finger {
            let found = offered.fingerprint(self.hash_type);
            if found != *expected.as_str() {
                return Err(SignInError::Finger { expected: expected.to_string(), found });
            }
        }
        let shared_key = SessionKey::unwrap_from(&welcome.aes, &self.key, self.enc_algo)?;
        shared_key
            .verify_proof(&offered, &welcome.aes_sig)
            .map_err(|_| SignInError::MasterKey("it did not sign the shared key".into()))?;
        // A master whose key has changed cannot have read a token made for the old one.
        if asked.with_token && same == Some(true) {
            let echoed = welcome.token.as_deref().map(|sealed| {
                self.key
                    .decrypt(self.enc_algo, sealed)
                    .is_ok_and(|back| self.token.equals(back.expose()))
            });
            if echoed != Some(true) {
                let text = "The master failed to decrypt the random minion token";
                return Err(SignInError::MasterKey(text.into()));
            }
        }
        let session = welcome
            .session
            .as_deref()
            .map(|sealed| SessionKey::unwrap_from(sealed, &self.key, self.enc_algo))
            .transpose()?;
        let keys = Keys {
            shared: Crypticle::new(&shared_key),
            session: session.as_ref().map(Crypticle::new),
            shared_key,
            master: offered.clone(),
            publish_port: u16::try_from(welcome.publish_port).unwrap_or(4505),
            halite: welcome.halite.clone(),
        };
        Ok((keys, offered))
    }

    /// Decides whether the offered key may be our master's. `same`: it is the pinned one.
    fn check_master(&self, welcome: &Welcome, same: Option<bool>) -> Result<(), SignInError> {
        let invalid = |text: &str| Err(SignInError::MasterKey(text.into()));
        match (welcome.public_key_sig.is_some(), self.verify_sign) {
            (true, false) => {
                return invalid(
                    "master sent a public key signature, but verify_master_pubkey_sign is off here",
                );
            }
            (false, true) => {
                return invalid("The master does not sign its key, but we are told to verify it");
            }
            _ => {}
        }
        let needed = self.verify_sign && (same != Some(true) || self.always_verify);
        if needed && !self.is_signed(welcome)? {
            return invalid("the signature of the master's key does not fit");
        }
        if same == Some(false) && !self.verify_sign && !self.open_mode {
            return invalid(
                "The master key has changed, the salt master could have been subverted, verify \
                 salt master's public key",
            );
        }
        Ok(())
    }

    fn is_signed(&self, welcome: &Welcome) -> Result<bool, SignInError> {
        let signing = self.pki.public(&self.sign_key_file)?.ok_or_else(|| {
            SignInError::MasterKey(format!("there is no {} to verify with", self.sign_key_file))
        })?;
        let sig = welcome.public_key_sig.clone().unwrap_or_default();
        let sig = String::from_utf8_lossy(&sig).into_owned();
        let is_signed =
            pki::verify_pubkey(&signing, self.sig_algo, &welcome.public_key, &sig).is_ok();
        if is_signed {
            tracing::debug!(
                "Successfully verified signature of master public key with verification public \
                 key {}",
                self.sign_key_file
            );
        }
        Ok(is_signed)
    }

    fn pin(&self, master: &PublicKey) -> Result<(), SignInError> {
        match self.pki.pin(self.pinned, master) {
            Err(CryptError::PinDiffers { .. }) if self.verify_sign || self.open_mode => {
                Ok(self.pki.replace_pin(self.pinned, master)?)
            }
            done => Ok(done?),
        }
    }
}

/// Reads the few answers that come without a signature.
fn unsigned(reply: &[u8]) -> Result<(), SignInError> {
    let value = msgpack::from_slice(reply, Text::Guess).map_err(|_| not_an_answer(reply))?;
    let Value::Dict(map) = &value else { return Err(not_an_answer(reply)) };
    let Some(Value::Dict(load)) = map.get("load") else { return Ok(()) };
    if load.get("cluster_retry").is_some_and(|retry| retry.truthy()) {
        return Err(SignInError::NotReady);
    }
    match load.get("ret").and_then(|ret| ret.as_str().map(SmolStr::from)).as_deref() {
        Some("bad enc algo") => Err(SignInError::Algorithm("encryption")),
        Some("bad sig algo") => Err(SignInError::Algorithm("signing")),
        _ => Ok(()),
    }
}

fn not_an_answer(reply: &[u8]) -> SignInError {
    let shown = match msgpack::from_slice(reply, Text::Guess) {
        Ok(Value::Str(text)) => text.chars().take(200).collect(),
        Ok(other) => format!("a {} is no answer", other.type_name()),
        Err(error) => error.to_string(),
    };
    SignInError::Reply(shown)
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries, msgpack::Dialect};

    use super::*;

    struct Master {
        key: PrivateKey,
        shared: SessionKey,
        session: Option<SessionKey>,
    }

    impl Master {
        fn new() -> Self {
            let (shared, session) = (SessionKey::generate(), Some(SessionKey::generate()));
            Self { key: PrivateKey::generate(1024).unwrap(), shared, session }
        }

        fn welcome(&self, request: &AuthRequest) -> Welcome {
            let minion = PublicKey::from_pem(request.public_key.as_bytes()).unwrap();
            let algo = EncAlgo::OaepSha1;
            Welcome {
                public_key: self.key.public().text().into(),
                publish_port: 4505,
                aes: self.shared.wrap(&minion, algo).unwrap(),
                session: self.session.as_ref().map(|key| key.wrap(&minion, algo).unwrap()),
                aes_sig: self.shared.proof(&self.key).unwrap(),
                token: request.token.as_ref().map(|token| {
                    let clear = self.key.decrypt(algo, token).unwrap();
                    minion.encrypt(algo, clear.expose()).unwrap()
                }),
                ..Welcome::default()
            }
        }

        fn sign(&self, reply: &AuthReply, request: &AuthRequest) -> Vec<u8> {
            let body = reply.encode(request.nonce.as_deref()).unwrap();
            let sig = self.key.sign(SigAlgo::Pkcs1v15Sha1, &body).unwrap();
            AuthReply::signed(body, sig).unwrap()
        }
    }

    fn read(bytes: &[u8]) -> AuthRequest {
        let Envelope::Clear { load, version: 3 } = Envelope::decode(bytes).unwrap() else {
            panic!("clear, version 3")
        };
        AuthRequest::read(&load).unwrap()
    }

    fn identity(more: &Dict) -> (tempfile::TempDir, Identity) {
        let folder = tempfile::tempdir().unwrap();
        let opts = entries! {
            "id" => "m", "master" => "x", "keysize" => 1024,
            "pki_dir" => folder.path().join("pki").display().to_string(),
        };
        opts.update(more);
        let identity = Identity::open(&Settings::read(&opts).unwrap()).unwrap();
        (folder, identity)
    }

    fn sign_in(identity: &Identity, master: &Master) -> Result<Keys, SignInError> {
        sign_in_with(identity, master, |_| {})
    }

    fn sign_in_with(
        identity: &Identity,
        master: &Master,
        change: impl FnOnce(&mut Welcome),
    ) -> Result<Keys, SignInError> {
        let (bytes, asked) = identity.ask(&Dict::new(), None).unwrap();
        let request = read(&bytes);
        let mut welcome = master.welcome(&request);
        change(&mut welcome);
        identity.check(&master.sign(&AuthReply::Welcome(Box::new(welcome)), &request), &asked)
    }

    #[test]
    fn the_first_master_is_pinned_and_another_refused() {
        let (_folder, identity) = identity(&Dict::new());
        let (master, other) = (Master::new(), Master::new());
        let keys = sign_in(&identity, &master).unwrap();
        assert_eq!(keys.version(), 3);
        assert_eq!(identity.pinned().unwrap().as_ref(), Some(master.key.public()));
        assert!(sign_in(&identity, &master).is_ok(), "again, with a token");
        let again = sign_in_with(&identity, &master, |welcome| welcome.token = None);
        assert!(matches!(again, Err(SignInError::MasterKey(_))), "the token must come back");
        let (bytes, asked) = identity.ask(&Dict::new(), None).unwrap();
        let request = AuthRequest { token: None, ..read(&bytes) };
        let welcome = AuthReply::Welcome(Box::new(other.welcome(&request)));
        let refused = identity.check(&other.sign(&welcome, &request), &asked);
        assert!(matches!(refused, Err(SignInError::MasterKey(_))));
        assert_eq!(identity.pinned().unwrap().as_ref(), Some(master.key.public()));
    }

    #[test]
    fn without_a_session_key_the_protocol_is_two() {
        let (_folder, identity) = identity(&Dict::new());
        let keys = sign_in(&identity, &Master { session: None, ..Master::new() }).unwrap();
        assert_eq!(keys.version(), 2);
    }

    #[test]
    fn a_forged_rejection_is_not_believed() {
        let (_folder, identity) = identity(&Dict::new());
        let (master, forger) = (Master::new(), Master::new());
        sign_in(&identity, &master).unwrap();
        let answer = |signer: &Master, refusal| {
            let (bytes, asked) = identity.ask(&Dict::new(), None).unwrap();
            let reply = signer.sign(&AuthReply::Refused(refusal), &read(&bytes));
            identity.check(&reply, &asked).err().unwrap()
        };
        assert!(matches!(answer(&forger, Refusal::Denied), SignInError::Signature));
        assert!(matches!(answer(&master, Refusal::Denied), SignInError::Rejected));
        assert!(matches!(answer(&master, Refusal::Pending), SignInError::Pending));
        assert!(matches!(answer(&master, Refusal::Full), SignInError::Full));
    }

    #[test]
    fn an_answer_to_another_question_is_refused() {
        let (_folder, identity) = identity(&Dict::new());
        let master = Master::new();
        let (bytes, _) = identity.ask(&Dict::new(), None).unwrap();
        let (_, asked) = identity.ask(&Dict::new(), None).unwrap();
        let request = read(&bytes);
        let welcome = AuthReply::Welcome(Box::new(master.welcome(&request)));
        let replayed = identity.check(&master.sign(&welcome, &request), &asked);
        assert!(matches!(replayed, Err(SignInError::Nonce)));
        assert!(identity.pinned().unwrap().is_none(), "nothing is pinned by it");
    }

    #[test]
    fn the_fingerprint_is_checked_before_anything_is_kept() {
        let master = Master::new();
        let finger = master.key.public().fingerprint(Hash::Sha256);
        let (_folder, good) = identity(&entries! { "master_finger" => finger });
        assert!(sign_in(&good, &master).is_ok());
        let (_folder, bad) = identity(&entries! { "master_finger" => "aa:bb" });
        assert!(matches!(sign_in(&bad, &master), Err(SignInError::Finger { .. })));
        assert!(bad.pinned().unwrap().is_none());
    }

    #[test]
    fn a_signed_key_may_change() {
        let signing = PrivateKey::generate(1024).unwrap();
        let (folder, identity) = identity(&entries! { "verify_master_pubkey_sign" => true });
        let file = folder.path().join("pki/master_sign.pub");
        std::fs::write(file, signing.public().to_pem()).unwrap();
        let sign = |welcome: &mut Welcome| {
            let algo = SigAlgo::Pkcs1v15Sha1;
            let sig = pki::sign_pubkey(&signing, algo, &welcome.public_key).unwrap();
            welcome.public_key_sig = Some(sig.into_bytes());
        };
        let (first, second) = (Master::new(), Master::new());
        assert!(sign_in_with(&identity, &first, sign).is_ok());
        assert!(sign_in(&identity, &first).is_err(), "unsigned");
        let (bytes, asked) = identity.ask(&Dict::new(), None).unwrap();
        let request = AuthRequest { token: None, ..read(&bytes) };
        let mut welcome = second.welcome(&request);
        sign(&mut welcome);
        let welcome = AuthReply::Welcome(Box::new(welcome));
        assert!(identity.check(&second.sign(&welcome, &request), &asked).is_ok());
        assert_eq!(identity.pinned().unwrap().as_ref(), Some(second.key.public()));
    }

    #[test]
    fn answers_without_a_signature() {
        let (_folder, identity) = identity(&Dict::new());
        let (_, asked) = identity.ask(&Dict::new(), None).unwrap();
        let check = |value: &Value| {
            let bytes = msgpack::to_vec(value, Dialect::Raw).unwrap();
            identity.check(&bytes, &asked).err().unwrap()
        };
        let ret = |ret: Value| dict! { "enc" => "clear", "load" => dict! { "ret" => ret } };
        assert!(matches!(check(&ret("bad sig algo".into())), SignInError::Algorithm("signing")));
        assert!(matches!(check(&ret("bad enc algo".into())), SignInError::Algorithm("encryption")));
        // Never a reason to give up: anybody could have sent it.
        assert!(matches!(check(&ret(false.into())), SignInError::Reply(_)));
        assert!(
            matches!(check(&"bad load".into()), SignInError::Reply(text) if text == "bad load")
        );
        assert!(matches!(check(&Value::Null), SignInError::Reply(_)));
        let cluster = dict! { "load" => dict! { "ret" => false, "cluster_retry" => true } };
        assert!(matches!(check(&cluster), SignInError::NotReady));
        assert!(identity.check(b"\xc1", &asked).is_err());
    }
}
