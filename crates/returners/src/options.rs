//! A returner's options.

use halite_spec::Cx;
use halite_value::{Dict, Value, lookup};

// gen:pub

/// Where a returner looks for its options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    name: String,
    /// `--return_config`: the name of an alternative set.
    pub config: Option<String>,
    /// `--return_kwargs`.
    pub kwargs: Dict,
}

impl Options {
    /// Takes what came with a job: `return_config` and `return_kwargs`.
    pub fn given(config: Option<Value>, kwargs: Option<Value>) -> Self {
        Self {
            name: String::new(),
            config: config.filter(Value::truthy).map(|name| name.to_str().to_string()),
            kwargs: kwargs.and_then(|kwargs| kwargs.as_dict().cloned()).unwrap_or_default(),
        }
    }

    /// Puts them into a return, where Salt's returners look for them.
    pub(crate) fn within(&self, ret: &Dict) -> Dict {
        let ret = ret.shallow_copy();
        if let Some(config) = &self.config {
            ret.insert("ret_config", config.as_str());
        }
        if !self.kwargs.is_empty() {
            ret.insert("ret_kwargs", &self.kwargs);
        }
        ret
    }

    /// The same, for a returner of that name.
    #[must_use]
    pub fn of(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Returns an option: from `--return_kwargs`, else of the alternative set, else by its name.
    pub fn get(&self, cx: &Cx, option: &str) -> Option<Value> {
        self.get_of(cx, &self.name, option)
    }

    /// As [`Options::get`], for returners whose options go by another name.
    pub fn get_of(&self, cx: &Cx, name: &str, option: &str) -> Option<Value> {
        if let Some(value) = self.kwargs.get(option) {
            return Some(value);
        }
        let alternative = self.config.as_ref().map(|config| format!("{config}.{name}.{option}"));
        let usual = format!("{name}.{option}");
        alternative.iter().chain([&usual]).find_map(|key| configured(cx, key))
    }

    pub fn text(&self, cx: &Cx, option: &str, preset: &str) -> String {
        self.text_of(cx, &self.name, option, preset)
    }

    /// As [`Options::text`], for returners whose options go by another name.
    pub fn text_of(&self, cx: &Cx, name: &str, option: &str, preset: &str) -> String {
        let value = self.get_of(cx, name, option).filter(|value| !value.is_null());
        value.map_or_else(|| preset.to_owned(), |value| value.to_str().to_string())
    }

    /// Returns a list given as such or as one text.
    pub fn texts(&self, cx: &Cx, option: &str) -> Vec<String> {
        let Some(value) = self.get(cx, option).filter(Value::truthy) else { return Vec::new() };
        let items = value.items_of_sequence().unwrap_or_else(|| vec![value]);
        items.iter().map(|item| item.to_str().to_string()).collect()
    }
}

/// `a.b` as one key, or as nested ones.
fn configured(cx: &Cx, key: &str) -> Option<Value> {
    [&cx.opts, &cx.pillar, &cx.grains].iter().find_map(|source| {
        source.get(key).or_else(|| lookup::traverse(&Value::from(*source), key, "."))
    })
}
