//! What can go wrong with keys and sealed messages.
//!
//! One variant per thing a caller treats differently. Nothing here tells a remote peer *why* its bytes were refused: a
//! failed decryption or signature is one flat variant on purpose (padding oracles live on such details).

use std::io;
use std::path::{Path, PathBuf};

/// Everything this crate can refuse.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A PEM text that is no usable private key.
    #[error("Encountered bad RSA private key: {0}")]
    PrivateKey(Fault),
    /// A PEM text that is no usable public key.
    #[error("Encountered bad RSA public key: {0}")]
    PublicKey(Fault),
    /// A key file that could not be used; the words are those of Salt's log.
    #[error("Unable to read key: {path}; {fault}", path = path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// `<name>.pub` is not the public half of `<name>.pem`.
    #[error("{path} does not belong to the private key beside it; remove it to have it rewritten", path = path.display())]
    KeysDiffer {
        /// The public key file.
        path: PathBuf,
    },
    /// A pin is already there and names another key.
    #[error("{path} holds another master key", path = path.display())]
    PinDiffers {
        /// The pin file.
        path: PathBuf,
    },
    /// A key size outside of what we make.
    #[error("keysize {0} is not between 1024 and 16384")]
    KeySize(u32),
    /// A name that may not become a file name.
    #[error("{0:?} is not a valid key name")]
    KeyName(String),
    /// An encryption algorithm name that is not in the closed list.
    #[error("Invalid encryption algorithm: {0}")]
    UnknownEncAlgo(String),
    /// A signing algorithm name that is not in the closed list.
    #[error("Invalid signing algorithm: {0}")]
    UnknownSigAlgo(String),
    /// A `hash_type` that is not in the closed list.
    #[error("Invalid hash type: {0}")]
    UnknownHash(String),
    /// The plain text does not fit the key.
    #[error("the message is too long for the RSA key")]
    TooLong,
    /// RSA decryption failed.
    #[error("RSA decryption failed")]
    Decrypt,
    /// The private key refused to sign (its modulus is too small for the block).
    #[error("RSA signing failed")]
    Sign,
    /// A signature is not what it should be.
    #[error("signature verification failed")]
    Signature,
    /// A session key string is not the base64 of 56 bytes.
    #[error("invalid session key")]
    SessionKey,
    /// A nonce is not 32 bytes of text.
    #[error("invalid nonce")]
    Nonce,
    /// The HMAC does not fit: other key, damaged, or not a sealed message at all. The signal to sign in again.
    #[error("message authentication failed")]
    Authentication,
    /// Authentic, but not what a peer would seal (length, padding or magic).
    #[error("authentic message with malformed content")]
    Malformed,
    /// Authentic, but the answer to another question.
    #[error("nonce verification error")]
    NonceMismatch,
    /// The file system said no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Why a PEM text gave no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not PEM, or its content does not hang together.
    #[error("file may be corrupt")]
    Malformed,
    /// A key of another kind, or of a size we refuse.
    #[error("key contains unsupported algorithm")]
    NotRsa,
    /// Encrypted, and the passphrase is missing or wrong.
    #[error("passphrase may be incorrect")]
    Passphrase,
}

/// Short for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// Names the file a key came from.
    pub(crate) fn at(self, path: &Path) -> Self {
        match self {
            Self::PrivateKey(fault) | Self::PublicKey(fault) => {
                Self::KeyFile { path: path.to_owned(), fault }
            }
            other => other,
        }
    }
}
