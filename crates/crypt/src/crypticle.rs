//! Sealed messages ("Crypticle"): AES-192-CBC, then HMAC-SHA256 over IV and ciphertext.
//!
//! A key string is the base64 text of 56 random bytes, 24 for AES and 32 for the HMAC. It travels, and is hashed, as text.
//! Sealed bytes are IV (16) || ciphertext || HMAC (32). The plain text starts with the magic `pickle::` (nothing is
//! pickled), then the 32 bytes of a nonce where the kind of message has one (nothing marks it; both sides know), then the
//! payload, which this crate does not look into. Opening checks the HMAC first, in constant time, and only then looks at
//! padding, magic and nonce. There is no protection against replay down here; nonces and serials are the caller's.

use std::fmt;

use aes::Aes192;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use crate::key::random;
use crate::{EncAlgo, Error, Hash, PrivateKey, PublicKey, Result, Secret, base64, ffi, secret};

const AES_KEY: usize = 24;
const MAC: usize = 32;
const BLOCK: usize = 16;
const MAGIC: &[u8] = b"pickle::";

/// A symmetric key as it travels: the shared key of all minions, a session key, or a one-shot key.
#[derive(Clone)]
pub struct SessionKey {
    text: Secret,
    bytes: Zeroizing<[u8; AES_KEY + MAC]>,
}

impl SessionKey {
    /// Makes a new key.
    pub fn generate() -> Self {
        let bytes = random();
        Self { text: Secret::new(base64::encode(&*bytes).into_bytes()), bytes }
    }

    /// Takes a key string as received. White space around it (a file's last newline) is kept in the text, since
    /// signatures cover it, and ignored for the key.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let decoded = base64::decode(text.trim_ascii()).map(Zeroizing::new);
        let decoded = decoded.ok_or(Error::SessionKey)?;
        let bytes = <[u8; AES_KEY + MAC]>::try_from(&**decoded).map_err(|_| Error::SessionKey)?;
        Ok(Self { text: Secret::new(text.to_vec()), bytes: Zeroizing::new(bytes) })
    }

    /// The key string, to be written to a 0600 file and nowhere else; for the wire use [`Self::wrap`].
    pub fn text(&self) -> &Secret {
        &self.text
    }

    /// Encrypts the key string for one peer (`aes`, `session`, the pillar's `key`).
    pub fn wrap(&self, peer: &PublicKey, algo: EncAlgo) -> Result<Vec<u8>> {
        peer.encrypt(algo, self.text.expose())
    }

    /// The inverse of [`Self::wrap`].
    pub fn unwrap_from(sealed: &[u8], own: &PrivateKey, algo: EncAlgo) -> Result<Self> {
        Self::parse(own.decrypt(algo, sealed)?.expose())
    }

    /// The inner `sig` of a sign-in reply: X9.31 over the hex SHA-256 of the key string.
    pub fn proof(&self, master: &PrivateKey) -> Result<Vec<u8>> {
        master.sign_x931(self.digest().as_bytes())
    }

    /// Checks the inner `sig` of a sign-in reply.
    pub fn verify_proof(&self, master: &PublicKey, sig: &[u8]) -> Result<()> {
        master.verify_x931(self.digest().as_bytes(), sig)
    }

    fn digest(&self) -> String {
        Hash::Sha256.hex(self.text.expose())
    }
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        secret::same(&*self.bytes, &*other.bytes)
    }
}

impl Eq for SessionKey {}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

/// A question's number: 32 bytes of text, echoed by the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce([u8; 32]);

impl Nonce {
    /// Makes a fresh one: 32 lower-case hex digits.
    pub fn generate() -> Self {
        let mut text = [0; 32];
        let digits = crate::algo::hex(&*random::<16>(), "");
        text.copy_from_slice(digits.as_bytes());
        Self(text)
    }

    /// Takes a peer's nonce. Any 32 bytes of text will do; they are only echoed and compared.
    pub fn parse(text: &str) -> Result<Self> {
        text.as_bytes().try_into().map(Self).map_err(|_| Error::Nonce)
    }

    /// The nonce as text, as it stands in a request.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("made from text")
    }
}

/// Seals and opens messages under one [`SessionKey`]. Keeps the expanded keys, so make one per key and share it.
#[derive(Clone)]
pub struct Crypticle {
    aes: Aes192,
    mac: Hmac<Sha256>,
}

impl Crypticle {
    /// Expands a key.
    pub fn new(key: &SessionKey) -> Self {
        let (aes, mac) = key.bytes.split_at(AES_KEY);
        let fixed = "the lengths are constants";
        Self {
            aes: Aes192::new_from_slice(aes).expect(fixed),
            mac: Hmac::new_from_slice(mac).expect(fixed),
        }
    }

    /// Seals a payload, behind the nonce of the question if this is an answer.
    pub fn seal(&self, payload: &[u8], nonce: Option<&Nonce>) -> Vec<u8> {
        self.encrypt_parts(&[MAGIC, nonce.map_or(&[][..], |n| &n.0), payload])
    }

    /// Opens a message; with a nonce it must be the answer to that question. Returns the payload.
    pub fn open(&self, sealed: &[u8], nonce: Option<&Nonce>) -> Result<Vec<u8>> {
        let mut clear = self.decrypt(sealed)?;
        let rest = clear.strip_prefix(MAGIC).ok_or(Error::Malformed)?;
        let skip = MAGIC.len() + nonce.map_or(0, |n| n.0.len());
        if let Some(nonce) = nonce {
            let found = rest.get(..nonce.0.len()).ok_or(Error::NonceMismatch)?;
            if !secret::same(found, &nonce.0) {
                clear.zeroize();
                return Err(Error::NonceMismatch);
            }
        }
        clear.drain(..skip);
        Ok(clear)
    }

    /// Encrypts bare bytes, without magic.
    pub fn encrypt(&self, clear: &[u8]) -> Vec<u8> {
        self.encrypt_parts(&[clear])
    }

    /// Decrypts bare bytes, without looking at any magic.
    pub fn decrypt(&self, sealed: &[u8]) -> Result<Vec<u8>> {
        let (signed, tag) = sealed.split_last_chunk::<MAC>().ok_or(Error::Authentication)?;
        let mac = self.mac.clone().chain_update(signed);
        mac.verify_slice(tag).map_err(|_| Error::Authentication)?;
        let (iv, body) = signed.split_first_chunk::<BLOCK>().ok_or(Error::Malformed)?;
        let mut clear = body.to_vec();
        let cbc = cbc::Decryptor::<&Aes192>::inner_iv_init(&self.aes, iv.into());
        let len = cbc.decrypt_padded::<Pkcs7>(&mut clear).map_err(|_| Error::Malformed)?.len();
        clear.truncate(len);
        Ok(clear)
    }

    fn encrypt_parts(&self, parts: &[&[u8]]) -> Vec<u8> {
        let clear: usize = parts.iter().map(|p| p.len()).sum();
        let padded = (clear / BLOCK + 1) * BLOCK;
        let mut out = Vec::with_capacity(BLOCK + padded + MAC);
        out.resize(BLOCK, 0);
        for part in parts {
            out.extend_from_slice(part);
        }
        out.resize(BLOCK + padded, 0);
        let (iv, body) = out.split_at_mut(BLOCK);
        ffi::random(iv);
        let iv = (&*iv).try_into().expect("split at the block size");
        cbc::Encryptor::<&Aes192>::inner_iv_init(&self.aes, iv)
            .encrypt_padded::<Pkcs7>(body, clear)
            .expect("the buffer has room for the padding");
        let tag = self.mac.clone().chain_update(&out).finalize().into_bytes();
        out.extend_from_slice(&tag);
        out
    }
}

impl fmt::Debug for Crypticle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crypticle(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crypticle() -> Crypticle {
        Crypticle::new(&SessionKey::generate())
    }

    #[test]
    fn lengths() {
        let c = crypticle();
        for n in 0..70 {
            let clear = vec![7; n];
            let sealed = c.encrypt(&clear);
            assert_eq!(sealed.len(), 16 + (n / 16 + 1) * 16 + 32);
            assert_eq!(c.decrypt(&sealed).expect("own message"), clear);
        }
    }

    #[test]
    fn nonces_bind() {
        let c = crypticle();
        let (a, b) = (Nonce::generate(), Nonce::generate());
        let sealed = c.seal(b"x", Some(&a));
        assert_eq!(c.open(&sealed, Some(&a)).expect("right nonce"), b"x");
        assert!(matches!(c.open(&sealed, Some(&b)), Err(Error::NonceMismatch)));
        assert!(matches!(c.open(&c.seal(b"", None), Some(&a)), Err(Error::NonceMismatch)));
        assert!(matches!(c.open(&c.encrypt(b"pickle:"), None), Err(Error::Malformed)));
        assert_eq!(c.open(&c.seal(b"", None), None).expect("empty payload"), b"");
        assert!(Nonce::parse("short").is_err());
        assert_eq!(Nonce::parse(a.as_str()).expect("own nonce"), a);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let c = crypticle();
        let sealed = c.seal(b"payload", None);
        for i in 0..sealed.len() * 8 {
            let mut bad = sealed.clone();
            bad[i / 8] ^= 1 << (i % 8);
            assert!(matches!(c.open(&bad, None), Err(Error::Authentication)), "bit {i}");
        }
        for n in 0..sealed.len() {
            assert!(matches!(c.open(&sealed[..n], None), Err(Error::Authentication)), "length {n}");
        }
        assert!(matches!(crypticle().open(&sealed, None), Err(Error::Authentication)));
    }

    /// Authentic but senseless bodies: what a peer with the key but without our code could send.
    #[test]
    fn authentic_nonsense() {
        let c = crypticle();
        for n in [0, 1, 15, 16, 17, 31, 33] {
            let mut bytes = vec![0; n];
            let tag = c.mac.clone().chain_update(&bytes).finalize().into_bytes();
            bytes.extend_from_slice(&tag);
            assert!(matches!(c.decrypt(&bytes), Err(Error::Malformed)), "{n}");
        }
    }

    #[test]
    fn key_strings() {
        let key = SessionKey::generate();
        let text = key.text().expose_str().expect("text").to_owned();
        assert_eq!((text.len(), text.ends_with('=')), (76, true));
        assert!(SessionKey::parse(format!("{text}\n").as_bytes()).expect("with newline") == key);
        for bad in ["", "AAAA", &text[4..], &format!("{text}AAAA")] {
            assert!(SessionKey::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(
            format!("{key:?} {:?} {:?}", key.text(), Crypticle::new(&key)),
            "SessionKey(..) Secret(..) Crypticle(..)"
        );
        assert!(SessionKey::generate() != key);
    }
}
