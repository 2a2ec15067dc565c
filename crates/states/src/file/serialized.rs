//! `file.serialize`: data written as YAML, JSON, TOML …

use std::path::Path;

use halite_modules::{
    file::{
        managed::{Request, View},
        paths::expand_user,
        perms::{Mode, Owner, Wanted},
        text::encode,
    },
    slsutil::serializers::{Serializer, merged},
};
use halite_spec::{Applied, Args, Command, Cx, Error, Keys, Plan, Result, State, host::Write};
use halite_value::{Dict, Value, dict, entries, list, lookup};

use super::{Found, managed::applied};

/// Manage a file whose content is data.
#[derive(Args)]
#[arg(open)]
pub struct Serialize {
    /// The file.
    name: String,
    /// The data.
    dataset: Option<Value>,
    /// The pillar value that is the data.
    dataset_pillar: Option<String>,
    /// The user that owns the file.
    user: Option<Owner>,
    /// The group that owns the file.
    group: Option<Owner>,
    /// The mode.
    mode: Option<Mode>,
    /// `minion` keeps a copy of the file replaced.
    #[default(String::new())]
    backup: String,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// Show the difference.
    #[default(true)]
    show_changes: bool,
    /// Make the file if it is not there.
    #[default(true)]
    create: bool,
    /// Keep what the file has beside the data.
    #[default(false)]
    merge_if_exists: bool,
    /// The encoding of the file.
    encoding: Option<String>,
    /// What to do with characters the encoding lacks.
    #[default("strict".to_owned())]
    encoding_errors: String,
    /// `yaml`, `json`, `toml`, `configparser` or `msgpack`.
    serializer: Option<String>,
    /// Options of the serializer.
    serializer_opts: Option<Dict>,
    /// Options for reading the file that is there.
    deserializer_opts: Option<Dict>,
    /// A command that must accept the new file, whose path is added to it.
    check_cmd: Option<String>,
    /// Where `check_cmd` finds the new file.
    tmp_dir: Option<String>,
    /// What the name of the new file ends with for `check_cmd`.
    #[default(String::new())]
    tmp_ext: String,
    /// Another name of `serializer`.
    #[arg(by_name)]
    formatter: Option<String>,
}

/// What is to be done.
pub struct Work {
    request: Request,
    view: View,
    /// Data before and after, when they were merged.
    merged: Option<(Value, Value)>,
}

impl Serialize {
    fn dataset(&self, cx: &Cx) -> Result<Value> {
        let given = self.dataset.as_ref().filter(|data| data.truthy());
        let pillar = self.dataset_pillar.as_ref().filter(|key| !key.is_empty());
        if given.is_some() && pillar.is_some() {
            return Err(Error::failed("Only one of 'dataset' and 'dataset_pillar' is permitted"));
        }
        let data = match pillar {
            Some(key) => Some(
                lookup::traverse(&Value::from(&cx.pillar), key, ":").unwrap_or_else(|| "".into()),
            ),
            None => self.dataset.clone(),
        };
        data.ok_or_else(|| Error::failed("Neither 'dataset' nor 'dataset_pillar' was defined"))
    }

    fn options(&self, kind: Serializer) -> Dict {
        let options = match kind {
            Serializer::Yaml => entries! { "default_flow_style" => false },
            Serializer::Json => entries! {
                "indent" => 2, "separators" => list![",", ": "], "sort_keys" => true,
            },
            _ => Dict::new(),
        };
        if self.encoding.is_some() {
            match kind {
                Serializer::Yaml => options.insert("allow_unicode", true),
                Serializer::Json => options.insert("ensure_ascii", false),
                _ => None,
            };
        }
        if let Some(given) = &self.serializer_opts {
            options.update(given);
        }
        options
    }

    fn check(&self, cx: &Cx, work: &Work) -> Result<Option<Applied>> {
        let Some(command) = &self.check_cmd else { return Ok(None) };
        let prefix = "__salt.tmp.".to_owned();
        let path =
            halite_modules::temp::file(cx, self.tmp_ext.clone(), prefix, self.tmp_dir.clone())?;
        let at = Path::new(&path);
        let content = work.request.contents.clone().unwrap_or_default();
        let output = cx
            .host
            .write(at, &content, &Write { mode: Some(0o600), ..Write::default() })
            .and_then(|()| {
                let shell = cx.grain("shell").map(|shell| shell.to_str().to_string());
                let shell = shell.unwrap_or_else(|| "/bin/sh".to_owned());
                cx.host.run(&Command::shell(shell, format!("{command} {path}")))
            });
        cx.host.remove_file(at)?;
        let output =
            output.map_err(|error| Error::failed(format!("Unable to check_cmd file: {error}")))?;
        if output.ok() {
            return Ok(None);
        }
        let mut comment = "check_cmd execution failed".to_owned();
        for text in [output.stdout_text(), output.stderr_text()] {
            let text = text.trim_end();
            if !text.is_empty() {
                comment.push_str(&format!("\n{text}"));
            }
        }
        Ok(Some(Applied {
            extra: entries! { "skip_watch" => true },
            ..Applied::failed(Dict::new(), comment)
        }))
    }
}

/// What differs between two dicts: `{key: {new, old}}`, at every depth.
fn differing(old: &Value, new: &Value) -> Value {
    let out = Dict::new();
    let (Value::Dict(old), Value::Dict(new)) = (old, new) else { return out.into() };
    for (key, value) in new {
        match old.get(&key) {
            None => {
                out.insert(key, dict! { "new" => value, "old" => "<_null_>" });
            }
            Some(before) if before != value => {
                if before.as_dict().is_some() && value.as_dict().is_some() {
                    let inner = differing(&before, &value);
                    if inner.truthy() {
                        out.insert(key, inner);
                    }
                } else {
                    out.insert(key, dict! { "new" => value, "old" => before });
                }
            }
            Some(_) => {}
        }
    }
    out.into()
}

impl State for Serialize {
    type Seen = Found<Work>;
    const KEYS: Keys = Keys(["changes", "comment", "name", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = expand_user(cx, &self.name);
        if name.is_empty() {
            return Err(Error::failed("Must provide name to file.serialize"));
        }
        let at = Path::new(&name);
        let is_file = cx.host.is_file(at)?;
        if !self.create && !is_file {
            return Ok(Found::right(format!(
                "File {name} is not present and is not set for creation"
            )));
        }
        if self.serializer.is_some() && self.formatter.is_some() {
            return Err(Error::failed("Only one of serializer and formatter are allowed"));
        }
        let kind_name = self.serializer.as_ref().or(self.formatter.as_ref());
        let kind_name = kind_name.map_or("yaml", String::as_str).to_lowercase();
        let mut data = self.dataset(cx)?;
        let kind = Serializer::named(&kind_name).ok_or_else(|| {
            Error::failed(format!(
                "The {kind_name} serializer could not be found. It either does not exist or its \
                 prerequisites are not installed."
            ))
        })?;
        let mut merged_data = None;
        if self.merge_if_exists && is_file {
            let content = cx.host.read(at)?;
            let options = self.deserializer_opts.clone().unwrap_or_default();
            let before = kind.read(&content, &options).map_err(|error| {
                Error::failed(format!("Failed to deserialize existing data: {error}"))
            })?;
            if !before.is_null() {
                let after = merged(&before, &data);
                if before == after {
                    return Ok(Found::right(format!("The file {name} is in the correct state")));
                }
                data = after.clone();
                merged_data = Some((before, after));
            }
        }
        let content = kind
            .write(&data, &self.options(kind))
            .map_err(|error| Error::failed(error.to_string()))?;
        let mut request = Request::new(&name, &cx.saltenv());
        request.contents = Some(match &content {
            Value::Bytes(bytes) => bytes.to_vec(),
            text => {
                let text = format!("{}\n", text.to_str());
                match &self.encoding {
                    Some(encoding) => encode(&text, encoding, &self.encoding_errors)
                        .map_err(|error| Error::failed(error.to_string()))?,
                    None => text.into_bytes(),
                }
            }
        });
        request.wanted = Wanted::new(self.user.clone(), self.group.clone(), self.mode.clone());
        request.show_changes = self.show_changes;
        request.backup.clone_from(&self.backup);
        request.makedirs = self.makedirs;
        let view = request.look(cx)?;
        let changes = view.expected(&request);
        let mut found = if changes.is_empty() {
            Found::right_but(
                format!("The file {name} is in the correct state"),
                format!("File {name} is in the correct state"),
            )
        } else {
            if !self.show_changes {
                changes.insert("diff", "<show_changes=False>");
            }
            if let Some((before, after)) = &merged_data {
                changes.insert("diff", differing(before, after));
            }
            let plan = Plan::changes(changes)
                .pending(format!("Dataset will be serialized and stored into {name}"));
            Found::todo(plan, Work { request, view, merged: merged_data })
        };
        if self.deserializer_opts.is_some() && !self.merge_if_exists {
            found.plan = found.plan.warn(
                "The 'deserializer_opts' option is ignored unless merge_if_exists is set to True.",
            );
        }
        Ok(found)
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(work) = seen.work else { return Ok(Applied::as_planned()) };
        if let Some(refused) = self.check(cx, &work)? {
            return Ok(refused);
        }
        let done = work.request.perform(cx, work.view)?;
        if let Some((before, after)) = &work.merged {
            done.changes.insert("diff", differing(before, after));
        }
        Ok(applied(done))
    }
}
