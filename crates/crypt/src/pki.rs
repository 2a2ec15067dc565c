//! The key files of a `pki_dir`, laid out as Salt 3008 does.
//!
//! Master: the pair is `<id>.pem`/`<id>.pub` (the id without a final `_master`), and `master.pem`/`master.pub` are links to
//! it; a pair that older releases left under the name `master` is moved on first use. Minion: `minion.pem`/`minion.pub` and
//! the pinned master key `minion_master.pub` (a syndic: `syndic_master.pub`). Signing pair: `<master_sign_key_name>.*`.
//!
//! Private *and* public files are made with mode 0400, as 3008 does. A private key is never overwritten: if two processes
//! start at once, the second uses the first one's key. A missing `.pub` is written again; a `.pub` of another key is an
//! error. The text of the `.pub` file is what peers are sent, even if it is not the text we would have written.
//!
//! Which minions are accepted (`minions/`, `minions_pre/`, …) is the master's business and not handled here.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::{Error, PrivateKey, PublicKey, Result, SigAlgo, base64, file, normalise};

/// Where a minion keeps the key of its master.
pub const MINION_MASTER_PUB: &str = "minion_master.pub";
/// Where a syndic keeps the key of its master.
pub const SYNDIC_MASTER_PUB: &str = "syndic_master.pub";

const KEY_MODE: u32 = 0o400;
const PIN_MODE: u32 = 0o644;

/// How to make or read a key pair.
#[derive(Clone, Copy)]
pub struct KeyOptions<'a> {
    /// `keysize`, for a new key.
    pub bits: u32,
    /// `key_pass` or `signing_key_pass`, already resolved.
    pub passphrase: Option<&'a str>,
    /// The user id that shall own new files; `None` leaves them to the process.
    pub owner: Option<u32>,
}

impl Default for KeyOptions<'_> {
    fn default() -> Self {
        Self { bits: 2048, passphrase: None, owner: None }
    }
}

/// A `pki_dir`.
#[derive(Debug, Clone)]
pub struct PkiDir {
    path: PathBuf,
}

impl PkiDir {
    /// Names a directory; nothing is touched yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the master's key, or makes it. `id` is the configured one, with or without `_master`.
    pub fn master(&self, id: &str, options: &KeyOptions<'_>) -> Result<PrivateKey> {
        let name = id.strip_suffix("_master").unwrap_or(id);
        if let Some(key) = self.load(name, options)? {
            return Ok(key);
        }
        if name != "master" && self.file("master", ".pem")?.exists() {
            self.adopt_old_master(name, options)
        } else {
            let key = self.create(name, options)?;
            if name != "master" {
                self.link_master(name)?;
            }
            Ok(key)
        }
    }

    /// Moves a pair named `master` to the name of 3008. At every moment one of the two names works.
    fn adopt_old_master(&self, name: &str, options: &KeyOptions<'_>) -> Result<PrivateKey> {
        let key = self.load("master", options)?.ok_or_else(|| Error::KeyName("master".into()))?;
        let old = self.file("master", ".pem")?;
        // differs: 3008 ignores a `master.pem` that is a link and makes a new key, which every minion then refuses (after
        // the host was renamed, say). We go on using the key behind the link, and leave the link alone.
        if old.is_symlink() {
            return Ok(key);
        }
        if let Some(pem) = file::read(&old)? {
            file::create(&self.file(name, ".pem")?, &pem, KEY_MODE, options.owner)?;
        }
        let text = file::read(&self.file("master", ".pub")?)?;
        let text = text.as_ref().map_or(key.public().to_pem().as_bytes(), |text| text);
        file::write(&self.file(name, ".pub")?, text, KEY_MODE, options.owner)?;
        self.link_master(name)?;
        Ok(key)
    }

    /// Leaves `master.*` behind as links, for programs (and releases) that look there.
    fn link_master(&self, name: &str) -> Result<()> {
        for suffix in [".pem", ".pub"] {
            file::link(&self.file("master", suffix)?, &self.file(name, suffix)?)?;
        }
        Ok(())
    }

    /// Reads the minion's key, or makes it.
    pub fn minion(&self, options: &KeyOptions<'_>) -> Result<PrivateKey> {
        self.load_or_create("minion", options)
    }

    /// Reads the pair `<name>.pem`/`<name>.pub`, or makes it (`master_sign_key_name`, `cluster`, `salt-key --gen-keys`).
    pub fn load_or_create(&self, name: &str, options: &KeyOptions<'_>) -> Result<PrivateKey> {
        match self.load(name, options)? {
            Some(key) => Ok(key),
            None => self.create(name, options),
        }
    }

    /// Reads the pair `<name>.pem`/`<name>.pub`; `None` if there is no private key.
    pub fn load(&self, name: &str, options: &KeyOptions<'_>) -> Result<Option<PrivateKey>> {
        let path = self.file(name, ".pem")?;
        let Some(pem) = file::read(&path)? else { return Ok(None) };
        let key = PrivateKey::from_pem(&pem, options.passphrase).map_err(|e| e.at(&path))?;
        let path = self.file(name, ".pub")?;
        let Some(text) = file::read(&path)? else {
            file::write(&path, key.public().to_pem().as_bytes(), KEY_MODE, options.owner)?;
            return Ok(Some(key));
        };
        let public = PublicKey::from_pem(&text).map_err(|e| e.at(&path))?;
        key.with_public(public).ok_or(Error::KeysDiffer { path }).map(Some)
    }

    /// Makes the pair `<name>.pem`/`<name>.pub`. If there is a private key by now, that one is returned instead.
    pub fn create(&self, name: &str, options: &KeyOptions<'_>) -> Result<PrivateKey> {
        let (private, public) = (self.file(name, ".pem")?, self.file(name, ".pub")?);
        let key = PrivateKey::generate(options.bits)?;
        self.ensure()?;
        let pem = key.to_pem(options.passphrase);
        if !file::create(&private, pem.expose(), KEY_MODE, options.owner)? {
            return self.load(name, options)?.ok_or_else(|| Error::KeyName(name.into()));
        }
        file::write(&public, key.public().to_pem().as_bytes(), KEY_MODE, options.owner)?;
        Ok(key)
    }

    /// Reads a public key file such as [`MINION_MASTER_PUB`] or `master_sign.pub`; `None` if there is none.
    pub fn public(&self, file_name: &str) -> Result<Option<PublicKey>> {
        let path = self.file(file_name, "")?;
        let text = file::read(&path)?;
        text.map(|text| PublicKey::from_pem(&text).map_err(|e| e.at(&path))).transpose()
    }

    /// Pins a master key on first contact. Another key that is already pinned is an error; the same one is fine.
    pub fn pin(&self, file_name: &str, key: &PublicKey) -> Result<()> {
        let path = self.file(file_name, "")?;
        self.ensure()?;
        let new = file::create(&path, key.text().as_bytes(), PIN_MODE, None)?;
        if new || self.public(file_name)?.as_ref() == Some(key) {
            return Ok(());
        }
        Err(Error::PinDiffers { path })
    }

    /// Replaces the pin: only after the new key was verified with the signing key, or in `open_mode`.
    pub fn replace_pin(&self, file_name: &str, key: &PublicKey) -> Result<()> {
        self.ensure()?;
        file::write(&self.file(file_name, "")?, key.text().as_bytes(), PIN_MODE, None)
    }

    /// Reads a signature that was computed beforehand (`master_use_pubkey_signature`); `None` if there is none.
    pub fn pubkey_signature(&self, file_name: &str) -> Result<Option<String>> {
        let text = file::read(&self.file(file_name, "")?)?;
        Ok(text.map(|text| normalise(&String::from_utf8_lossy(&text))))
    }

    /// Writes such a signature (`salt-key --gen-signature`). Tells whether it was new; an old one is left alone.
    pub fn write_pubkey_signature(&self, file_name: &str, signature: &str) -> Result<bool> {
        file::create(&self.file(file_name, "")?, signature.as_bytes(), KEY_MODE, None)
    }

    fn ensure(&self) -> Result<()> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(Error::io(&self.path))
    }

    /// The only place where a name becomes a path: one component, not hidden behind dots.
    fn file(&self, name: &str, suffix: &str) -> Result<PathBuf> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            return Err(Error::KeyName(name.into()));
        }
        Ok(self.path.join(format!("{name}{suffix}")))
    }
}

/// Signs a master's public key text with the signing key (`pub_sig`): base64 with a final newline.
pub fn sign_pubkey(signing: &PrivateKey, algo: SigAlgo, pub_key: &str) -> Result<String> {
    let sig = signing.sign(algo, pub_key.as_bytes())?;
    Ok(base64::encode(&sig) + "\n")
}

/// Checks a `pub_sig` over the public key text exactly as received.
pub fn verify_pubkey(
    signing: &PublicKey,
    algo: SigAlgo,
    pub_key: &str,
    pub_sig: &str,
) -> Result<()> {
    let text: Vec<u8> = pub_sig.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let sig = base64::decode(&text).ok_or(Error::Signature)?;
    signing.verify(algo, pub_key.as_bytes(), &sig)
}
