//! Sign-in tokens of users.
//!
//! Random, known here only by their hash, each with an end that is looked at before anything else.
//! They live in the folder `token_dir` (one file each, 0600), so that they survive a restart and
//! can be revoked by removing the file.

use std::{
    fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use halite_crypt::{Hash, SessionKey, file};
use halite_value::{
    Dict, SmolStr, Value,
    msgpack::{self, Dialect, Text},
};

use crate::Error;

/// The tokens of a master.
pub(crate) struct Tokens {
    dir: PathBuf,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Tokens {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn path(&self, token: &str) -> PathBuf {
        self.dir.join(Hash::Sha256.hex(token.as_bytes()))
    }

    /// Makes a token for what `data` says, for so many seconds. Blocking.
    pub(crate) fn make(&self, data: &Dict, seconds: f64) -> Result<Dict, Error> {
        let secret = SessionKey::generate();
        let token = Hash::Sha256.hex(secret.text().expose());
        let start = now();
        let full = Dict::new();
        full.insert("start", start);
        full.insert("expire", start + seconds);
        full.update(data);
        let bytes = msgpack::to_vec(&Value::from(&full), Dialect::Modern)?;
        fs::create_dir_all(&self.dir).map_err(|source| Error::io(&self.dir, source))?;
        file::write(&self.path(&token), &bytes, 0o600, None)?;
        full.insert("token", token);
        Ok(full)
    }

    /// Returns what a token says, unless it has ended. Blocking.
    pub(crate) fn get(&self, token: &str) -> Option<Dict> {
        if token.len() < 32 || token.len() > 256 {
            return None;
        }
        let (path, data) = self.read(self.path(token)).or_else(|| self.foreign(token))?;
        let expire = data.get("expire").and_then(|at| at.as_float()).unwrap_or(0.0);
        if now() >= expire {
            let _ = fs::remove_file(&path);
            return None;
        }
        data.insert("token", token);
        Some(data)
    }

    fn read(&self, path: PathBuf) -> Option<(PathBuf, Dict)> {
        let bytes = file::read(&path).ok()??;
        let Ok(Value::Dict(data)) = msgpack::from_slice(&bytes, Text::Typed) else { return None };
        // Salt 3008 keeps it inside an entry of its cache.
        let inner = data.get("data").and_then(|inner| inner.as_dict().cloned());
        Some((path, inner.unwrap_or(data)))
    }

    /// Reads a token that a Python program made with Salt's own `LoadAuth`: the file has its name.
    fn foreign(&self, token: &str) -> Option<(PathBuf, Dict)> {
        if !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let files = [self.dir.join(format!("{token}.p")), self.dir.join(token)];
        let (path, data) = files.into_iter().find_map(|path| self.read(path))?;
        // Ours are filed under their hash: a name found in the folder must not serve as a token.
        let is_it = data.get("token").is_some_and(|own| own == token);
        is_it.then_some((path, data))
    }

    /// Ends a token; tells whether there was one. Blocking.
    pub(crate) fn revoke(&self, token: &str) -> bool {
        let own = fs::remove_file(self.path(token)).is_ok();
        let foreign = self.foreign(token);
        own | foreign.is_some_and(|(path, _)| fs::remove_file(path).is_ok())
    }

    /// Removes tokens that have ended. Blocking.
    pub(crate) fn tidy(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let Some((_, data)) = self.read(entry.path()) else { continue };
            let expire = data.get("expire").and_then(|at| at.as_float()).unwrap_or(0.0);
            if now() >= expire {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns the name a token was made for.
    pub(crate) fn name(data: &Dict) -> SmolStr {
        data.get("name").map(|name| name.to_str()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[test]
    fn a_token_ends() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(dir.path().join("tokens"));
        let made = tokens.make(&entries! { "name" => "ann" }, 100.0).unwrap();
        let token = made.get("token").unwrap().to_str();
        assert_eq!(Tokens::name(&tokens.get(&token).unwrap()), "ann");
        for file in fs::read_dir(dir.path().join("tokens")).unwrap() {
            assert!(!file.unwrap().file_name().to_string_lossy().contains(token.as_str()));
        }
        assert!(tokens.revoke(&token) && !tokens.revoke(&token));
        assert!(tokens.get(&token).is_none());
        let short = tokens.make(&entries! { "name" => "ann" }, -1.0).unwrap();
        assert!(tokens.get(&short.get("token").unwrap().to_str()).is_none());
        // One that Salt's own library made.
        let name = "ab".repeat(32);
        let data = halite_value::dict! {
            "name" => "bob", "eauth" => "pam", "token" => &name, "expire" => now() + 100.0,
        };
        let entry = halite_value::dict! { "data" => data, "_expires" => 1 };
        let file = dir.path().join("tokens").join(format!("{name}.p"));
        fs::write(&file, msgpack::to_vec(&entry, Dialect::Modern).unwrap()).unwrap();
        assert_eq!(Tokens::name(&tokens.get(&name).unwrap()), "bob");
        assert!(tokens.revoke(&name));
        assert!(tokens.get(&name).is_none() && !file.exists());
        let made = tokens.make(&entries! { "name" => "ann" }, 100.0).unwrap();
        let hash = tokens.path(&made.get("token").unwrap().to_str());
        assert!(tokens.get(&hash.file_name().unwrap().to_string_lossy()).is_none());
        for hostile in ["", "../../etc/passwd", &"a/".repeat(30), &"x".repeat(500)] {
            assert!(tokens.get(hostile).is_none());
        }
    }
}
