//! Reading configuration files: the main one, `*.d/*.conf`, and what they include.

use std::collections::HashMap;

use halite_value::{
    Dict, Place, SmolStr, Value,
    merge::{Strategy, merge},
    yaml::{self, LoadOptions},
};

use crate::{Error, Machine, Warning, WarningKind, paths};

/// What the files say, before presets.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) values: Dict,
    pub(crate) places: HashMap<SmolStr, Place>,
    pub(crate) warnings: Vec<Warning>,
    /// Whether an error in an included file stops everything instead of leaving that file out.
    pub(crate) strict: bool,
}

impl Found {
    /// Reads the main file, then the files of `default_include`, then those of `include`.
    ///
    /// `path` is what the caller asked for, `file` what it came down to after a look at the
    /// environment: includes are relative to the former. (So it is in Salt.)
    pub(crate) fn read(
        path: &str,
        file: &str,
        default_include: &str,
        machine: &dyn Machine,
        strict: bool,
    ) -> Result<Self, Error> {
        let mut found = Self { strict, ..Self::default() };
        found.main(file, machine)?;
        found.includes(path, default_include, machine)?;
        Ok(found)
    }

    /// Reads the main file. A missing one is worth a warning only.
    fn main(&mut self, file: &str, machine: &dyn Machine) -> Result<(), Error> {
        if !machine.is_file(file) {
            let message = format!("Missing configuration file: {file}");
            self.warnings.push(Warning { kind: WarningKind::Missing, message, place: None });
            return Ok(());
        }
        let dict = read(file, machine)?;
        self.note(&dict);
        self.values.update(&dict);
        self.values.insert("conf_file", file);
        Ok(())
    }

    /// Reads the files the options found so far ask for.
    pub(crate) fn includes(
        &mut self,
        path: &str,
        default_include: &str,
        machine: &dyn Machine,
    ) -> Result<(), Error> {
        // Both are looked up before either is read: an included file cannot change them.
        let default = self.values.get("default_include");
        let default = default.unwrap_or_else(|| Value::from(default_include));
        let include = self.values.get("include").unwrap_or(Value::Null);
        for (patterns, loud) in [(default, false), (include, true)] {
            let strict = self.strict;
            let included = self.include(&patterns, path, loud, strict, machine)?;
            self.values.update(&included);
        }
        Ok(())
    }

    /// Returns what a list of patterns brings in. Files are merged into each other at every depth.
    fn include(
        &mut self,
        patterns: &Value,
        relative_to: &str,
        loud: bool,
        strict: bool,
        machine: &dyn Machine,
    ) -> Result<Dict, Error> {
        let mut merged = Dict::new();
        if !patterns.truthy() {
            return Ok(merged);
        }
        let patterns = patterns.items_of_sequence().unwrap_or_else(|| vec![patterns.clone()]);
        for pattern in &patterns {
            let pattern = paths::expand_home(&pattern.to_str(), &machine.home());
            let pattern = paths::os_join(paths::dirname(relative_to), &pattern);
            let mut files = expand(&pattern, machine);
            files.sort();
            if files.is_empty() && loud {
                self.warnings.push(Warning {
                    kind: WarningKind::NoMatch,
                    message: format!(
                        "Warning parsing configuration file: \"include\" path/glob '{pattern}' matches no files"
                    ),
                    place: self.places.get("include").cloned(),
                });
            }
            for file in files {
                let dict = match read(&file, machine) {
                    Ok(dict) => dict,
                    Err(error) if strict => return Err(error),
                    // differs: Salt also renames a broken `_schedule.conf`, and dies of a folder.
                    Err(error) => {
                        self.skipped(&file, &error);
                        continue;
                    }
                };
                self.note(&dict);
                if let Some(include) = dict.get("include").filter(Value::truthy) {
                    let inner = self.include(&include, &file, loud, false, machine)?;
                    dict.update(&inner);
                }
                merged = merged_with(&merged, &dict);
            }
        }
        Ok(merged)
    }

    fn note(&mut self, dict: &Dict) {
        self.places.extend(places(dict));
    }

    fn skipped(&mut self, file: &str, error: &Error) {
        let (line, column) = match error {
            Error::Syntax { line, column, .. } => (*line, *column),
            _ => (1, 0),
        };
        self.warnings.push(Warning {
            kind: WarningKind::Skipped,
            message: error.to_string(),
            place: Some(Place::new(file, line, column)),
        });
    }
}

/// Returns where each option of a file stands.
pub(crate) fn places(dict: &Dict) -> Vec<(SmolStr, Place)> {
    let place = |name: &str| dict.place_of(name).or_else(|| dict.place()).cloned();
    let keys = dict.keys().into_iter();
    keys.filter_map(|key| Some((SmolStr::new(key.as_str()?), place(key.as_str()?)?))).collect()
}

fn expand(pattern: &str, machine: &dyn Machine) -> Vec<String> {
    if pattern.contains(['*', '?', '[']) {
        machine.glob(pattern)
    } else if machine.is_file(pattern) || machine.is_dir(pattern) {
        vec![pattern.into()]
    } else {
        Vec::new()
    }
}

/// Merges an included file into those before it. Jobs of the schedule replace each other as wholes.
fn merged_with(before: &Dict, dict: &Dict) -> Dict {
    let schedules = (before.get("schedule"), dict.get("schedule"));
    let first = Value::Dict(before.clone());
    let second = Value::Dict(dict.clone());
    let merged = match merge(&first, &second, Strategy::Recurse, true) {
        Ok(Value::Dict(merged)) => merged,
        // Both are dicts: this cannot happen, and losing nothing is the best answer.
        _ => dict.clone(),
    };
    if let (Some(Value::Dict(old)), Some(Value::Dict(new))) = schedules {
        let jobs = old.shallow_copy();
        jobs.update(&new);
        merged.insert("schedule", jobs);
    }
    merged
}

/// Reads one file of options.
pub fn read(file: &str, machine: &dyn Machine) -> Result<Dict, Error> {
    let bytes = machine.read(file).map_err(|source| Error::Read { file: file.into(), source })?;
    let value = parse(file, &bytes)?;
    let dict = match value {
        Value::Dict(dict) => dict,
        other if !other.truthy() => Dict::new(),
        other => {
            let found = other.type_name().into_owned();
            return Err(Error::NotAMap { file: file.into(), found });
        }
    };
    // Ids may be written as numbers.
    if let Some(id) = dict.get("id").filter(|id| id.as_str().is_none()) {
        dict.insert("id", id.to_str());
    }
    Ok(dict)
}

fn parse(file: &str, bytes: &[u8]) -> Result<Value, Error> {
    let syntax = |line, column, message| Error::Syntax { file: file.into(), line, column, message };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|&&b| b == b'\n').count() as u32 + 1;
        syntax(line, 0, format!("the file is no UTF-8 text: {error}"))
    })?;
    let options = LoadOptions { name: file, places: true, ..LoadOptions::default() };
    yaml::load(text, &options).map_err(|error| {
        let (line, column) = error.place().map_or((1, 0), |place| (place.line, place.column));
        syntax(line, column, error.to_string())
    })
}
