//! `file_tree`: a folder per minion (`hosts/<id>`) and per nodegroup (`nodegroups/<name>`); folders
//! become dicts, files become values.

use std::path::{Path, PathBuf};

use halite_fileserver::RelPath;
use halite_spec::{Error, Host, Result, host::Kind};
use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, Value, merge};

use super::{ExtArgs, ExtCx, ExtPillar};
use crate::Source;

const MAX_DEPTH: usize = 100;

pub(super) struct FileTree;

struct Reading<'a> {
    cx: &'a ExtCx<'a>,
    follow_links: bool,
    /// `None` keeps every final newline; otherwise those of paths that match.
    keep_newline: Option<Vec<String>>,
    /// Run each file through this renderer pipe.
    template: Option<String>,
}

impl ExtPillar for FileTree {
    fn name(&self) -> &str {
        "file_tree"
    }

    fn pillar(&self, cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value> {
        let Some(root) = args.get("root_dir", 0).filter(Value::truthy) else {
            tracing::error!("file_tree: no root_dir specified");
            return Ok(Value::dict());
        };
        let keep_newline = match args.get("keep_newline", 3) {
            Some(Value::Bool(true)) => None,
            None | Some(Value::Bool(false)) => Some(Vec::new()),
            Some(Value::List(globs)) => {
                Some(globs.into_iter().map(|glob| glob.to_str().to_string()).collect())
            }
            Some(_) => {
                tracing::error!("file_tree: keep_newline must be a bool or a list of globs");
                return Ok(Value::dict());
            }
        };
        let renderer = args.get("render_default", 4).or_else(|| cx.request.opts.get("renderer"));
        let renderer = renderer.map_or_else(|| "jinja|yaml".into(), |name| name.to_str());
        let reading = Reading {
            cx,
            follow_links: args.flag("follow_dir_links", 1),
            keep_newline,
            template: args.flag("template", 7).then(|| renderer.to_string()),
        };
        let mut all = Value::dict();
        for root in roots(cx, &root.to_str()) {
            all = merged(&all, &reading.root(&root)?)?;
        }
        Ok(all)
    }
}

/// A relative root is looked for in the pillar's roots.
fn roots(cx: &ExtCx<'_>, root: &str) -> Vec<PathBuf> {
    if root.starts_with('/') {
        return vec![root.into()];
    }
    let Some(env) = cx.pillarenv else {
        tracing::error!("file_tree: root_dir is relative but pillarenv is not set");
        return Vec::new();
    };
    let options = halite_fileserver::Options::with_roots(&cx.request.opts, "pillar_roots");
    options.roots(env).iter().map(|env_root| env_root.join(root)).collect()
}

fn merged(first: &Value, second: &Value) -> Result<Value> {
    merge::merge(first, second, merge::Strategy::Recurse, false)
        .map_err(|error| Error::failed(error.to_string()))
}

impl Reading<'_> {
    fn host(&self) -> &dyn Host {
        &**self.cx.host
    }

    fn root(&self, root: &Path) -> Result<Value> {
        if !self.host().is_dir(root)? {
            tracing::error!("file_tree: {} is not a directory", root.display());
            return Ok(Value::dict());
        }
        let mut all = Value::dict();
        let groups = self.cx.request.opts.get("nodegroups");
        let groups = groups.as_ref().and_then(Value::as_dict);
        let folder = root.join("nodegroups");
        for name in self.host().read_dir(&folder).unwrap_or_default() {
            let definition = groups.and_then(|groups| groups.get(&*name.to_string_lossy()));
            if definition.is_some_and(|definition| self.cx.is_in(&definition)) {
                all = merged(&all, &self.folder(&folder.join(name), "", 0)?)?;
            }
        }
        let id = RelPath::new(self.cx.minion_id).filter(|id| !id.as_str().contains('/'));
        let own = id.map(|id| id.below(&root.join("hosts")));
        match own {
            Some(own) if self.host().is_dir(&own)? => merged(&all, &self.folder(&own, "", 0)?),
            _ => Ok(all),
        }
    }

    fn folder(&self, top: &Path, rel: &str, depth: usize) -> Result<Value> {
        let here = if rel.is_empty() { top.to_owned() } else { top.join(rel) };
        let node = Dict::new();
        if depth > MAX_DEPTH {
            return Ok(node.into());
        }
        for name in self.host().read_dir(&here)? {
            let name = name.to_string_lossy();
            let path = if rel.is_empty() { name.to_string() } else { format!("{rel}/{name}") };
            let full = top.join(&path);
            let is_link = self.host().is_link(&full)?;
            match self.host().stat(&full, true).map(|stat| stat.kind) {
                Ok(Kind::Dir) if is_link && !self.follow_links => {
                    node.insert(&*name, Value::dict());
                }
                Ok(Kind::Dir) => {
                    node.insert(&*name, self.folder(top, &path, depth + 1)?);
                }
                Ok(Kind::File) => {
                    node.insert(&*name, self.file(&full, &path)?);
                }
                _ => tracing::error!("file_tree: {}: not a regular file", full.display()),
            }
        }
        Ok(node.into())
    }

    fn file(&self, full: &Path, rel: &str) -> Result<Value> {
        let mut content = self.host().read(full)?;
        let kept = match &self.keep_newline {
            None => true,
            // Salt calls the top folder `.` here, so that globs see `./name`.
            Some(globs) => {
                let seen = if rel.contains('/') { rel.to_owned() } else { format!("./{rel}") };
                globs.iter().any(|glob| fnmatch(&seen, glob))
            }
        };
        if !kept && content.last() == Some(&b'\n') {
            content.pop();
        }
        let text = match String::from_utf8(content) {
            Ok(text) => text,
            Err(error) => return Ok(Value::bytes(error.into_bytes())),
        };
        let Some(renderer) = &self.template else { return Ok(text.into()) };
        let source = Source {
            path: full,
            text: &text,
            sls: "",
            saltenv: self.cx.pillarenv.unwrap_or("base"),
            renderer,
            defaults: &Dict::new(),
            pillar: self.cx.pillar,
            request: self.cx.request,
            files: self.cx.files,
        };
        self.cx.renderer.render(&source).map_err(|error| Error::failed(error.to_string()))
    }
}
