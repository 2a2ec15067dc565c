//! RSA keys: reading, writing, signing, encrypting, in exactly the algorithms of Salt's wire.
//!
//! Keys are immutable and cheap to clone; every operation may run on many threads at once. A [`PublicKey`] remembers the
//! text it was read from, because genuine peers compare texts: a master must keep sending the very text that its minions
//! pinned. Equality of keys, on the other hand, means equality of numbers.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Fault, Result};
use crate::ffi::{self, Pkey};
use crate::{EncAlgo, Hash, Secret, SigAlgo, pem, secret, x931};

/// What a minion signs to prove that it holds its key (`tok`).
pub const TOKEN: &[u8] = b"salt";

/// Sizes we read and make. Below, RSA is broken; above, a single signature takes longer than a peer waits.
const SIZES: std::ops::RangeInclusive<u32> = 1024..=16384;

/// A public key is at most a few kilobytes of text; anything longer is not worth parsing.
const MAX_PEM: usize = 64 * 1024;

/// An RSA public key.
#[derive(Clone)]
pub struct PublicKey {
    pkey: Arc<Pkey>,
    text: Arc<str>,
    canonical: Arc<str>,
}

impl PublicKey {
    /// Reads a PEM text (`BEGIN PUBLIC KEY`).
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        let bad = Error::PublicKey;
        let text = std::str::from_utf8(pem).map_err(|_| bad(Fault::Malformed))?;
        let pkey = read(pem, false, None).map_err(bad)?;
        let canonical = pkey.public_pem().and_then(|pem| String::from_utf8(pem).ok());
        let canonical = canonical.ok_or(bad(Fault::Malformed))?;
        let text = pem::normalise(text).into();
        Ok(Self { pkey: Arc::new(pkey), text, canonical: canonical.into() })
    }

    /// The text this key was read from, in the form of the wire. What a peer pins and compares.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The key written anew, with a final newline: the same for everyone who holds it, free of whatever surrounded it.
    pub fn to_pem(&self) -> &str {
        &self.canonical
    }

    /// Length of the modulus in bits.
    pub fn bits(&self) -> u32 {
        self.pkey.bits()
    }

    /// The fingerprint that `master_finger` and `key.finger` use. See [`pem::fingerprint`].
    pub fn fingerprint(&self, hash: Hash) -> String {
        pem::fingerprint(self.text.as_bytes(), hash)
    }

    /// Encrypts a short message (a key string, a token) for the holder of the private key.
    pub fn encrypt(&self, algo: EncAlgo, clear: &[u8]) -> Result<Vec<u8>> {
        self.pkey.oaep(algo.hash(), true, clear).ok_or(Error::TooLong)
    }

    /// Checks a signature made with [`PrivateKey::sign`].
    pub fn verify(&self, algo: SigAlgo, data: &[u8], sig: &[u8]) -> Result<()> {
        self.verify_with(algo.hash(), data, sig)
    }

    /// Checks a signature made with [`PrivateKey::sign_sha256`].
    pub fn verify_sha256(&self, data: &[u8], sig: &[u8]) -> Result<()> {
        self.verify_with(Hash::Sha256, data, sig)
    }

    fn verify_with(&self, hash: Hash, data: &[u8], sig: &[u8]) -> Result<()> {
        let good = self.pkey.verify(hash, &hash.digest(data), sig);
        if good { Ok(()) } else { Err(Error::Signature) }
    }

    /// Returns the message inside an X9.31 signature.
    pub fn recover_x931(&self, sig: &[u8]) -> Result<Vec<u8>> {
        let recover = || {
            let r = self.pkey.raw(false, sig)?;
            let block = x931::original(r, &self.pkey.modulus()?);
            x931::unpad(&block).map(<[u8]>::to_vec)
        };
        recover().ok_or(Error::Signature)
    }

    /// Checks that `sig` is the X9.31 signature of `message`.
    pub fn verify_x931(&self, message: &[u8], sig: &[u8]) -> Result<()> {
        let found = self.recover_x931(sig)?;
        if secret::same(&found, message) { Ok(()) } else { Err(Error::Signature) }
    }

    /// Checks a minion's `tok`: it proves possession of the key (not freshness; it never changes).
    pub fn verify_token(&self, tok: &[u8]) -> Result<()> {
        self.verify_x931(TOKEN, tok)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} bits, {})", self.bits(), self.fingerprint(Hash::Sha256))
    }
}

/// Tells whether two PEM texts are the same key: equal after normalising, or equal in numbers.
pub fn same_key(a: &str, b: &str) -> bool {
    pem::normalise(a) == pem::normalise(b)
        || matches!(
            (PublicKey::from_pem(a.as_bytes()), PublicKey::from_pem(b.as_bytes())),
            (Ok(a), Ok(b)) if a == b
        )
}

/// An RSA private key, with its public half.
#[derive(Clone)]
pub struct PrivateKey {
    pkey: Arc<Pkey>,
    public: PublicKey,
    token: Arc<OnceLock<Vec<u8>>>,
}

impl PrivateKey {
    /// Makes a new key. `bits` is `keysize`; sizes that are not a multiple of 128 are rounded down.
    pub fn generate(bits: u32) -> Result<Self> {
        if !SIZES.contains(&bits) {
            return Err(Error::KeySize(bits));
        }
        Self::of(Pkey::generate(bits).ok_or(Error::KeySize(bits))?)
    }

    /// Reads PKCS#1 (`BEGIN RSA PRIVATE KEY`) or PKCS#8. An empty passphrase counts as none; one that is not needed is
    /// not used.
    pub fn from_pem(pem: &[u8], passphrase: Option<&str>) -> Result<Self> {
        let pass = passphrase.filter(|p| !p.is_empty()).map(str::as_bytes);
        Self::of(read(pem, true, pass).map_err(Error::PrivateKey)?)
    }

    fn of(pkey: Pkey) -> Result<Self> {
        let public = pkey.public_pem().ok_or(Error::PrivateKey(Fault::Malformed))?;
        let public = PublicKey::from_pem(&public)?;
        Ok(Self { pkey: Arc::new(pkey), public, token: Arc::default() })
    }

    /// Writes PKCS#1, encrypted with AES-256-CBC if there is a passphrase.
    pub fn to_pem(&self, passphrase: Option<&str>) -> Secret {
        let pass = passphrase.filter(|p| !p.is_empty()).map(str::as_bytes);
        let mut pem =
            self.pkey.private_pem(pass).expect("writing to memory, fails only for want of it");
        Secret::new(std::mem::take(&mut *pem))
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Takes `public` (another text of the same key) as the public half; `None` if it is another key.
    pub fn with_public(self, public: PublicKey) -> Option<Self> {
        (self.public == public).then_some(Self { public, ..self })
    }

    /// Signs `data`.
    pub fn sign(&self, algo: SigAlgo, data: &[u8]) -> Result<Vec<u8>> {
        self.sign_with(algo.hash(), data)
    }

    /// Signs with SHA-256, for documents that only our own programs read; Salt's wire does not know it.
    pub fn sign_sha256(&self, data: &[u8]) -> Result<Vec<u8>> {
        self.sign_with(Hash::Sha256, data)
    }

    fn sign_with(&self, hash: Hash, data: &[u8]) -> Result<Vec<u8>> {
        self.pkey.sign(hash, &hash.digest(data)).ok_or(Error::Sign)
    }

    /// Decrypts what [`PublicKey::encrypt`] made. Every failure looks the same.
    pub fn decrypt(&self, algo: EncAlgo, sealed: &[u8]) -> Result<Secret> {
        self.pkey.oaep(algo.hash(), false, sealed).map(Secret::new).ok_or(Error::Decrypt)
    }

    /// Signs a message of at most (modulus - 2) bytes so that the verifier gets it back (X9.31, nothing is hashed).
    pub fn sign_x931(&self, message: &[u8]) -> Result<Vec<u8>> {
        let modulus = self.pkey.modulus().ok_or(Error::Sign)?;
        let block = x931::pad(message, modulus.len()).ok_or(Error::TooLong)?;
        let s = self.pkey.raw(true, &block).ok_or(Error::Sign)?;
        Ok(x931::smaller(s, &modulus))
    }

    /// The minion's `tok`. It never changes for a key, so it is computed once.
    pub fn token(&self) -> Result<Vec<u8>> {
        if let Some(tok) = self.token.get() {
            return Ok(tok.clone());
        }
        let tok = self.sign_x931(TOKEN)?;
        Ok(self.token.get_or_init(|| tok).clone())
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(.., {:?})", self.public)
    }
}

fn read(pem: &[u8], private: bool, pass: Option<&[u8]>) -> Result<Pkey, Fault> {
    if pem.len() > MAX_PEM {
        return Err(Fault::Malformed);
    }
    let pkey = Pkey::from_pem(pem, private, pass)?;
    if SIZES.contains(&pkey.bits()) { Ok(pkey) } else { Err(Fault::NotRsa) }
}

/// Returns `n` random bytes.
pub(crate) fn random<const N: usize>() -> zeroize::Zeroizing<[u8; N]> {
    let mut bytes = zeroize::Zeroizing::new([0; N]);
    ffi::random(&mut *bytes);
    bytes
}
