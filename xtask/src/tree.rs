//! The files of the repository: where the root is, and a walk over what belongs to it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// Folders that hold no sources of ours.
const SKIPPED: [&str; 6] = ["target", "scratch", ".git", "corpus", "artifacts", "__pycache__"];

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies one folder below the root")
}

/// Returns every file below `folder` that is ours, sorted.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(folder, &mut found).with_context(|| format!("reading {}", folder.display()))?;
    found.sort();
    Ok(found)
}

/// Returns the Rust files below `folder`, sorted.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files(folder)?;
    files.retain(|file| file.extension().is_some_and(|ext| ext == "rs"));
    Ok(files)
}

/// Returns a file's text, or None for what is not text.
pub(crate) fn text(file: &Path) -> Result<Option<String>> {
    let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
}

/// Returns a file's name relative to the root, for messages and lists.
pub(crate) fn shown(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                collect(&entry.path(), found)?;
            }
        } else if kind.is_file() && name != ".git" {
            found.push(entry.path());
        }
    }
    Ok(())
}
