//! `state.pkg`: a packed state tree, as salt-ssh sends it.
//!
//! The archive holds the low chunks (`lowstate.json`), the pillar (`pillar.json`), grains of the
//! roster (`roster_grains.json`) and the files the states ask for, one folder per environment. It
//! is unpacked to a folder that goes away afterwards; the states see its files in place of the file
//! server's.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use halite_spec::{Command, Cx, Error, Files, Host, Rest, Result, What, function, host::Kind};
use halite_value::{Dict, Value, json};

use super::{request, run};
use crate::{hashutil, temp};

/// Run a packed state tree, as salt-ssh sends it.
///
/// ```console
/// $ salt web1 state.pkg /srv/run/states.tgz d41d8cd98f00b204e9800998ecf8427e sha256
/// ```
#[function]
pub fn pkg(
    cx: &Cx,
    /// The archive.
    pkg_path: String,
    /// Its hash.
    pkg_sum: String,
    /// The hash's kind.
    hash_type: String,
    /// Only show what would change.
    test: Option<bool>,
    /// As for `state.sls`.
    rest: Rest,
) -> Result<Value> {
    let archive = Path::new(&pkg_path);
    if !cx.host.is_file(archive)? {
        return Ok(Value::dict());
    }
    let kind = hashutil::Kind::named(&hash_type)
        .ok_or_else(|| Error::raised("ValueError", format!("Invalid hash type: {hash_type}")))?;
    if kind.of_file(&*cx.host, archive)? != pkg_sum {
        return Ok(Value::dict());
    }
    let root = PathBuf::from(temp::dir(cx, String::new(), "tmp".into(), None)?);
    let ret = unpacked(cx, archive, &root).and_then(|()| run_in(cx, &root, test, &rest.kwargs));
    cx.host.remove_all(&root)?;
    ret
}

fn unpacked(cx: &Cx, archive: &Path, root: &Path) -> Result<()> {
    let tar = |words: &[&str]| {
        let mut command = Command::line(["tar"]).args(words.iter().copied());
        command.cwd = Some(root.to_owned());
        let output = cx.host.run(&command)?;
        match output.ok() {
            true => Ok(output.stdout_text()),
            false => Err(Error::raised("ReadError", output.stderr_text().trim().to_owned())),
        }
    };
    let archive = archive.display().to_string();
    let members = tar(&["-tzf", &archive])?;
    let outside = |name: &&str| {
        Path::new(name)
            .components()
            .any(|part| matches!(part, Component::ParentDir | Component::RootDir))
    };
    if let Some(name) = members.lines().find(outside) {
        return Err(Error::failed(format!("The archive has a member outside of it: {name}")));
    }
    tar(&["-xzf", &archive]).map(drop)
}

/// Reads a JSON file of the archive.
fn part(cx: &Cx, root: &Path, name: &str) -> Result<Option<Value>> {
    let Some(bytes) = cx.host.read_if_there(&root.join(name))? else { return Ok(None) };
    let value = json::from_str(&String::from_utf8_lossy(&bytes));
    value.map(Some).map_err(|error| Error::failed(format!("{name}: {error}")))
}

fn run_in(cx: &Cx, root: &Path, test: Option<bool>, given: &Dict) -> Result<Value> {
    let chunks = part(cx, root, "lowstate.json")?
        .ok_or_else(|| Error::failed("The archive has no lowstate.json"))?;
    // What was shown to people is no part of a chunk.
    for chunk in chunks.items_of_sequence().unwrap_or_default() {
        if let Value::Dict(chunk) = chunk {
            for name in chunk.keys() {
                if name.to_str().starts_with("__run_") {
                    chunk.remove(&name);
                }
            }
        }
    }
    let pillar = match part(cx, root, "pillar.json")? {
        Some(Value::Dict(pillar)) => pillar,
        _ => Dict::new(),
    };
    let grains = cx.grains.shallow_copy();
    if let Some(Value::Dict(more)) = part(cx, root, "roster_grains.json")? {
        grains.update(&more);
    }
    let opts = cx.opts.shallow_copy();
    opts.insert("file_client", "local");
    opts.insert("grains", &grains);
    let files = Packed {
        root: root.to_owned(),
        host: Arc::clone(&cx.host),
        outside: Arc::clone(&cx.files),
    };
    let own = Cx { opts, grains, pillar: pillar.clone(), files: Arc::new(files), ..cx.clone() };
    let mut wanted = request(cx, What::Low(chunks), test, given)?;
    pillar.update(&wanted.pillar.take().unwrap_or_default());
    wanted.pillar = Some(pillar);
    run(&own, None, &wanted)
}

/// The files of an unpacked archive.
struct Packed {
    root: PathBuf,
    host: Arc<dyn Host>,
    /// For everything that is no `salt://` address.
    outside: Arc<dyn Files>,
}

impl Packed {
    /// A path below an environment; none for one that leaves it.
    fn place(&self, path: &str, saltenv: &str) -> Option<PathBuf> {
        let path = path.split_once('?').map_or(path, |(path, _)| path).trim_start_matches('/');
        let inside = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
        let both = [Path::new(saltenv), Path::new(path)];
        let inside = both.iter().all(|path| path.components().all(inside));
        inside.then(|| self.root.join(saltenv).join(path))
    }

    /// Everything below a folder: path relative to the environment, and its kind.
    fn below(&self, saltenv: &str, prefix: &str) -> Result<Vec<(String, Kind)>> {
        let Some(top) = self.place("", saltenv) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let path = top.join(&folder);
            if !self.host.is_dir(&path)? {
                continue;
            }
            for name in self.host.read_dir(&path)? {
                let name = name.to_string_lossy();
                let own =
                    if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
                let kind = self.host.stat(&top.join(&own), true)?.kind;
                if kind == Kind::Dir {
                    folders.push(own.clone());
                }
                if own.starts_with(prefix) {
                    found.push((own, kind));
                }
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    fn names(&self, saltenv: &str, prefix: &str, folders: bool) -> Result<Vec<String>> {
        let all = self.below(saltenv, prefix)?;
        let kept = all.into_iter().filter(|(_, kind)| (*kind == Kind::Dir) == folders);
        Ok(kept.map(|(name, _)| name).collect())
    }
}

impl Files for Packed {
    fn envs(&self) -> Result<Vec<String>> {
        let names = self.host.read_dir(&self.root)?;
        let names = names.iter().map(|name| name.to_string_lossy().into_owned());
        Ok(names.filter(|name| !name.ends_with(".json")).collect())
    }

    fn cache(&self, source: &str, saltenv: &str) -> Result<Option<PathBuf>> {
        let Some(path) = source.strip_prefix("salt://") else {
            return self.outside.cache(source, saltenv);
        };
        let saltenv = source.split_once("?saltenv=").map_or(saltenv, |(_, env)| env);
        let Some(place) = self.place(path, saltenv) else { return Ok(None) };
        Ok(self.host.is_file(&place)?.then_some(place))
    }

    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<(String, String)>> {
        let path = path.strip_prefix("salt://").unwrap_or(path);
        let Some(place) = self.place(path, saltenv) else { return Ok(None) };
        if !self.host.is_file(&place)? {
            return Ok(None);
        }
        let digits = hashutil::Kind::Sha256.of_file(&*self.host, &place)?;
        Ok(Some(("sha256".to_owned(), digits)))
    }

    fn list(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.names(saltenv, prefix, false)
    }

    fn list_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        self.names(saltenv, prefix, true)
    }

    fn list_empty_dirs(&self, saltenv: &str, prefix: &str) -> Result<Vec<String>> {
        let all = self.below(saltenv, prefix)?;
        let is_empty = |folder: &String| {
            let inside = format!("{folder}/");
            !all.iter().any(|(name, _)| name.starts_with(&inside))
        };
        let folders = all.iter().filter(|(_, kind)| *kind == Kind::Dir).map(|(name, _)| name);
        Ok(folders.filter(|folder| is_empty(folder)).cloned().collect())
    }

    fn list_links(&self, _: &str, _: &str) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn stat(&self, _: &str, _: &str) -> Result<Option<Value>> {
        Ok(None)
    }

    fn push(&self, path: &Path, as_path: &str) -> Result<bool> {
        self.outside.push(path, as_path)
    }

    fn master_opts(&self) -> Result<Value> {
        self.outside.master_opts()
    }

    fn master_tops(&self) -> Result<Value> {
        Ok(Value::dict())
    }
}
