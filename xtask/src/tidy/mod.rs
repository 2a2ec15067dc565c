//! `tidy`: what neither the compiler nor clippy can see. Every check returns all its findings, so
//! that one run shows everything there is to mend.

mod dead;
mod dependencies;
mod layers;
mod options;
mod text;

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{generated, tree};

/// What a check found, one line for people each.
type Findings = Vec<String>;

/// Runs every check and fails if one of them found something.
pub(crate) fn run(root: &Path) -> Result<()> {
    let packages = packages(root)?;
    let mut findings = layers::check(&packages);
    findings.extend(dead::check(root, &packages)?);
    findings.extend(text::check(root)?);
    findings.extend(options::check(root)?);
    findings.extend(dependencies::check(root)?);
    for file in generated::stale(root)? {
        let name = tree::shown(root, &file.path);
        findings.push(format!("{name}: a generated part is stale: run `make gen`"));
    }
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found one thing to mend"),
        count => bail!("tidy found {count} things to mend"),
    }
}

/// A workspace member, as far as the checks care.
pub(crate) struct Package {
    name: String,
    /// Names of the packages of ours it depends on, tests' dependencies left out.
    depends_on: Vec<String>,
    folder: std::path::PathBuf,
    /// The files the compiler starts from.
    roots: Vec<std::path::PathBuf>,
}

fn packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("starting cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let package = |package: &Value| Package {
        name: text(&package["name"]),
        depends_on: list(&package["dependencies"])
            .iter()
            .filter(|dependency| dependency["path"].is_string() && dependency["kind"] != "dev")
            .map(|dependency| text(&dependency["name"]))
            .collect(),
        folder: Path::new(&text(&package["manifest_path"])).parent().unwrap_or(root).to_owned(),
        roots: list(&package["targets"])
            .iter()
            .map(|target| text(&target["src_path"]).into())
            .collect(),
    };
    Ok(list(&metadata["packages"]).iter().map(package).collect())
}
