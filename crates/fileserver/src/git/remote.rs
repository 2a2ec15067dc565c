//! Remotes as they are written: an address, or an address with its own settings, which win over
//! those that hold for all (`gitfs_root`, `git_pillar_privkey` …).

use halite_value::{Dict, Value};

use super::repo::Access;

/// A remote with its settings.
#[derive(Clone, Debug)]
pub struct Remote {
    /// What was written: for a pillar with the branch in front.
    pub id: String,
    prefix: &'static str,
    own: Dict,
    opts: Dict,
}

impl Remote {
    /// Reads a list of remotes; `prefix` is that of the options which hold for all of them.
    pub fn all(list: Option<&Value>, prefix: &'static str, opts: &Dict) -> Vec<Self> {
        let one = |id: String, own: Dict| Self { id, prefix, own, opts: opts.clone() };
        let items = list.and_then(Value::items_of_sequence).unwrap_or_default();
        let read = |item: Value| match item {
            Value::Dict(item) => {
                let entries = item.entries().into_iter();
                entries.map(|(id, own)| one(id.to_str().to_string(), flat(&own))).collect()
            }
            item => vec![one(item.to_str().to_string(), Dict::new())],
        };
        items.into_iter().flat_map(read).collect()
    }

    /// A setting: the remote's own, or that of all.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.own.get(name).or_else(|| self.opts.get(format!("{}_{name}", self.prefix).as_str()))
    }

    /// A setting the remote has of its own.
    pub fn own(&self, name: &str) -> Option<Value> {
        self.own.get(name)
    }

    pub fn text(&self, name: &str) -> String {
        let value = self.get(name).filter(Value::truthy);
        value.map(|value| value.to_str().to_string()).unwrap_or_default()
    }

    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| value.truthy())
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        texts(self.get(name).as_ref())
    }

    pub fn access(&self) -> Access {
        let mut refspecs = self.list("refspecs");
        if refspecs.is_empty() {
            refspecs = vec![
                "+refs/heads/*:refs/remotes/origin/*".into(),
                "+refs/tags/*:refs/tags/*".into(),
            ];
        }
        Access {
            user: self.text("user"),
            password: self.text("password"),
            privkey: self.text("privkey"),
            proxy: self.text("proxy"),
            skip_tls_check: !self.flag("ssl_verify", true),
            refspecs,
        }
    }
}

/// A list of one-word dicts as one dict.
pub(super) fn flat(value: &Value) -> Dict {
    match value {
        Value::Dict(own) => own.clone(),
        other => {
            let all = Dict::new();
            for item in other.items_of_sequence().unwrap_or_default() {
                if let Value::Dict(item) = item {
                    all.update(&item);
                }
            }
            all
        }
    }
}

/// A list of texts, or texts in one with commas.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Str(text)) => {
            text.split(',').map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect()
        }
        Some(other) => {
            let items = other.items_of_sequence().unwrap_or_default();
            items.iter().map(|item| item.to_str().to_string()).collect()
        }
        None => Vec::new(),
    }
}
