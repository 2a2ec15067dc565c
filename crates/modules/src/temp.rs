//! `temp`: temporary folders and files, with names nobody guesses.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    path::{Path, PathBuf},
};

use halite_spec::{Cx, Result, function, host::Write, module};

module! {
    /// Temporary folders and files.
    "temp": dir, file,
}

/// Returns a path in a folder where nothing is yet.
pub fn fresh_path(cx: &Cx, folder: &str, prefix: &str, suffix: &str) -> PathBuf {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_";
    loop {
        // Each state is seeded from the system's randomness.
        let mut chance = RandomState::new().build_hasher().finish();
        let mut name = prefix.to_owned();
        for _ in 0..8 {
            name.push(char::from(LETTERS[(chance % LETTERS.len() as u64) as usize]));
            chance /= LETTERS.len() as u64;
        }
        let path = Path::new(folder).join(name + suffix);
        if cx.host.stat(&path, false).is_err() {
            return path;
        }
    }
}

/// The folder for temporary files.
pub(crate) fn folder(cx: &Cx) -> String {
    let set = ["TMPDIR", "TEMP", "TMP"].into_iter().find_map(|name| cx.host.env(name.as_ref()));
    set.map(|folder| folder.to_string_lossy().into_owned())
        .filter(|folder| cx.host.is_dir(Path::new(folder)).unwrap_or(false))
        .unwrap_or_else(|| "/tmp".to_owned())
}

/// Make a temporary folder and return its path.
///
/// ```console
/// $ salt web1 temp.dir prefix=shop-
/// ```
#[function]
pub fn dir(
    cx: &Cx,
    /// What the name ends with.
    #[default(String::new())]
    suffix: String,
    /// What the name begins with.
    #[default("tmp".to_owned())]
    prefix: String,
    /// The folder to make it in.
    parent: Option<String>,
) -> Result<String> {
    let path = fresh_path(cx, &parent.unwrap_or_else(|| folder(cx)), &prefix, &suffix);
    cx.host.create_dir(&path, Some(0o700))?;
    Ok(path.display().to_string())
}

/// Make an empty temporary file and return its path.
///
/// ```console
/// $ salt web1 temp.file prefix=shop-
/// ```
#[function]
pub fn file(
    cx: &Cx,
    /// What the name ends with.
    #[default(String::new())]
    suffix: String,
    /// What the name begins with.
    #[default("tmp".to_owned())]
    prefix: String,
    /// The folder to make it in.
    parent: Option<String>,
) -> Result<String> {
    let path = fresh_path(cx, &parent.unwrap_or_else(|| folder(cx)), &prefix, &suffix);
    cx.host.write(&path, b"", &Write { mode: Some(0o600), ..Write::default() })?;
    Ok(path.display().to_string())
}
