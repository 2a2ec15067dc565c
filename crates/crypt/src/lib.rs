//! Keys, sessions and signatures of Salt's wire.
//!
//! Start with [`PkiDir`] (who am I: key files), then [`PrivateKey`]/[`PublicKey`] (sign-in), then [`SessionKey`] and
//! [`Crypticle`] (everything after it). A sign-in in full, both sides:
//!
//! ```
//! use halite_crypt::{Crypticle, EncAlgo, Nonce, PrivateKey, SessionKey, SigAlgo};
//! # fn main() -> halite_crypt::Result<()> {
//! let (master, minion) = (PrivateKey::generate(2048)?, PrivateKey::generate(2048)?);
//! // master: the reply to `_auth`
//! let shared = SessionKey::generate();
//! let (aes, sig) = (shared.wrap(minion.public(), EncAlgo::OaepSha1)?, shared.proof(&master)?);
//! let outer = master.sign(SigAlgo::Pkcs1v15Sha1, b"the packed body")?;
//! // minion
//! master.public().verify(SigAlgo::Pkcs1v15Sha1, b"the packed body", &outer)?;
//! let shared = SessionKey::unwrap_from(&aes, &minion, EncAlgo::OaepSha1)?;
//! shared.verify_proof(master.public(), &sig)?;
//! let nonce = Nonce::generate();
//! let answer = Crypticle::new(&shared).seal(b"packed answer", Some(&nonce));
//! assert_eq!(Crypticle::new(&shared).open(&answer, Some(&nonce))?, b"packed answer");
//! // master: the `tok` of a request
//! minion.public().verify_token(&minion.token()?)?;
//! # Ok(())
//! # }
//! ```
//!
//! What is absent: network, msgpack, `async`, passwords, tokens of users, protection against replay, key *states* (accepted,
//! pending, …). RSA comes from AWS-LC through one file of foreign calls (`ffi.rs`); the rest is safe Rust.
//!
//! Secrets are wiped when dropped and mute in `Debug`; [`Secret::expose`] is the one way to see them.
#![warn(missing_docs)]

mod algo;
mod base64;
mod crypticle;
mod error;
mod ffi;
pub mod file;
mod key;
pub mod pem;
pub mod pki;
mod secret;
mod x931;

pub use algo::{EncAlgo, Hash, SigAlgo};
pub use crypticle::{Crypticle, Nonce, SessionKey};
pub use error::{Error, Fault, Result};
pub use key::{PrivateKey, PublicKey, TOKEN, same_key};
pub use pem::{fingerprint, fingerprint_of_text, normalise};
pub use pki::{KeyOptions, PkiDir};
pub use secret::{Secret, same};
