//! `ini`: options and sections of INI files.
//!
//! Each state works on the parsed file in memory and writes it once, when something changed.
//!
//! differs: genuine Salt rewrites the file on every run (so that its form changes when nothing else
//! does), tells no changes in a test, and its `sections_present` always fails.

use halite_modules::{
    file::paths::expand_user,
    ini::{File, Form},
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Options and sections of INI files.
    "ini": "options_absent" => OptionsAbsent, "options_present" => OptionsPresent,
    "sections_absent" => SectionsAbsent, "sections_present" => SectionsPresent,
}

/// What a state found, and what it would write.
pub struct Found {
    path: String,
    form: Form,
    file: File,
    plan: Plan,
}

/// What a state changes, and what a test says about it.
#[derive(Default)]
struct Story {
    changes: Dict,
    lines: String,
}

impl Story {
    fn tell(&mut self, line: String) {
        self.lines.push_str(&line);
        self.lines.push('\n');
    }

    fn plan(self, nothing: &str) -> Plan {
        if self.changes.is_empty() {
            let text = if self.lines.is_empty() { nothing.to_owned() } else { self.lines };
            return Plan::nothing(text).done("No anomaly detected");
        }
        Plan::changes(self.changes).pending(self.lines).done("Changes take effect")
    }
}

fn look(
    cx: &Cx,
    name: &str,
    form: Form,
    nothing: &str,
    work: impl FnOnce(&mut File, &mut Story) -> Result<()>,
) -> Result<Found> {
    let path = expand_user(cx, name);
    let mut file = File::read(cx, &path, &form)?;
    let mut story = Story::default();
    work(&mut file, &mut story)?;
    Ok(Found { path, form, file, plan: story.plan(nothing) })
}

fn write(cx: &Cx, found: Found) -> Result<Applied> {
    found.file.write(cx, &found.path, &found.form)?;
    Ok(Applied::as_planned())
}

fn sections_of(value: Option<&Value>) -> Result<Dict> {
    match value {
        None => Ok(Dict::new()),
        Some(Value::Dict(dict)) => Ok(dict.clone()),
        Some(value) if !value.truthy() => Ok(Dict::new()),
        Some(_) => Err(Error::failed("sections must be a dict of sections and their options")),
    }
}

fn names_of(value: Option<&Value>) -> Vec<String> {
    match value {
        None => Vec::new(),
        Some(Value::Dict(dict)) => dict.keys().iter().map(|key| key.to_str().to_string()).collect(),
        Some(value) => match value.items_of_sequence() {
            Some(items) => items.iter().map(|item| item.to_str().to_string()).collect(),
            None if value.truthy() => vec![value.to_str().to_string()],
            None => Vec::new(),
        },
    }
}

/// Set options of an INI file.
#[derive(Args)]
pub struct OptionsPresent {
    /// The file.
    name: String,
    /// The options by section; a value that is no dict is an option above all sections.
    sections: Option<Value>,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// Remove every other option and section.
    #[default(false)]
    strict: bool,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
    /// Write no blanks around the separator.
    #[default(false)]
    no_spaces: bool,
}

impl OptionsPresent {
    fn form(&self) -> Form {
        Form {
            separator: self.separator.clone(),
            no_spaces: self.no_spaces,
            encoding: self.encoding.clone(),
        }
    }

    /// Takes out what is not wanted.
    fn prune(&self, file: &mut File, wanted: &Dict, story: &mut Story) {
        let gone = |before: Value| entries! { "before" => before, "after" => Value::Null };
        for (name, now) in &file.all() {
            let text = name.to_str();
            let kept = wanted.get(&name);
            match (&now, kept) {
                (Value::Dict(_), None) => {
                    story.tell(format!("Removed section {text}."));
                    file.take_section(&text);
                    story.changes.insert(name, gone(now.clone()));
                }
                (Value::Dict(options), Some(Value::Dict(kept))) => {
                    let own = Dict::new();
                    for (option, value) in options {
                        if !kept.contains(&option) {
                            story.tell(format!("Deleted key {option} in section {text}."));
                            file.take(&text, &option.to_str());
                            own.insert(option, gone(value));
                        }
                    }
                    if !own.is_empty() {
                        story.changes.insert(name, own);
                    }
                }
                (Value::Dict(_), Some(_)) => {}
                (_, None) => {
                    story.tell(format!("Removed key {text}."));
                    file.take("", &text);
                    story.changes.insert(name, gone(now.clone()));
                }
                (_, Some(_)) => {}
            }
        }
    }
}

impl State for OptionsPresent {
    type Seen = Found;

    fn observe(&self, cx: &Cx) -> Result<Found> {
        let wanted = sections_of(self.sections.as_ref())?;
        look(cx, &self.name, self.form(), "", |file, story| {
            if self.strict {
                self.prune(file, &wanted, story);
            }
            for (name, value) in &wanted {
                let name = name.to_str();
                let Value::Dict(options) = &value else {
                    let same = file.value("", &name) == Some(value.to_str().as_str());
                    let word = if same { "Unchanged" } else { "Changed" };
                    story.tell(format!("{word} key {name}."));
                    continue;
                };
                for (option, value) in options {
                    let same = file.value(&name, &option.to_str()) == Some(value.to_str().as_str());
                    let word = if same { "Unchanged" } else { "Changed" };
                    story.tell(format!("{word} key {option} in section {name}."));
                }
            }
            for (name, change) in &file.set(&wanted) {
                match (story.changes.get(&name), &change) {
                    (Some(Value::Dict(own)), Value::Dict(more)) => own.update(more),
                    _ => {
                        story.changes.insert(name, change);
                    }
                }
            }
            Ok(())
        })
    }

    fn plan(&self, found: &Found) -> Result<Plan> {
        Ok(found.plan.clone())
    }

    fn apply(&self, cx: &Cx, found: Found) -> Result<Applied> {
        write(cx, found)
    }
}

/// A file, and what is meant of it.
#[derive(Args)]
pub struct Sections {
    /// The file.
    name: String,
    /// The sections: a list of names, or a dict with options of each.
    sections: Option<Value>,
    /// What stands between an option and its value.
    #[default("=".to_owned())]
    separator: String,
    /// The encoding of the file; UTF-8 if none is given.
    encoding: Option<String>,
}

impl Sections {
    fn look(
        &self,
        cx: &Cx,
        change: impl FnOnce(&mut File, &mut Story) -> Result<()>,
    ) -> Result<Found> {
        let form = Form {
            separator: self.separator.clone(),
            no_spaces: false,
            encoding: self.encoding.clone(),
        };
        look(cx, &self.name, form, "No changes detected.", change)
    }
}

/// Remove options of an INI file.
#[derive(Args)]
pub struct OptionsAbsent(Sections);

impl State for OptionsAbsent {
    type Seen = Found;

    fn observe(&self, cx: &Cx) -> Result<Found> {
        let unwanted = sections_of(self.0.sections.as_ref())?;
        self.0.look(cx, |file, story| {
            for (section, options) in &unwanted {
                let name = section.to_str();
                let gone = Dict::new();
                for option in names_of(Some(&options)) {
                    match file.take(&name, &option) {
                        Some(value) => {
                            story.tell(format!("Deleted key {option} in section {name}."));
                            gone.insert(option, value);
                        }
                        None => {
                            story.tell(format!("Key {option} in section {name} does not exist."));
                        }
                    }
                }
                if !gone.is_empty() {
                    story.changes.insert(section, gone);
                }
            }
            Ok(())
        })
    }

    fn plan(&self, found: &Found) -> Result<Plan> {
        Ok(found.plan.clone())
    }

    fn apply(&self, cx: &Cx, found: Found) -> Result<Applied> {
        write(cx, found)
    }
}

/// Have sections in an INI file, with the options given for new ones.
#[derive(Args)]
pub struct SectionsPresent(Sections);

impl State for SectionsPresent {
    type Seen = Found;

    fn observe(&self, cx: &Cx) -> Result<Found> {
        self.0.look(cx, |file, story| {
            let new = Dict::new();
            for name in names_of(self.0.sections.as_ref()) {
                if file.section(&name).is_some() {
                    story.tell(format!("Section unchanged {name}."));
                    continue;
                }
                story.tell(format!("Created new section {name}."));
                let options = self.0.sections.as_ref().and_then(|all| all.get(name.as_str()));
                let options = options.filter(|options| options.as_dict().is_some());
                new.insert(name, options.unwrap_or_else(Value::dict));
            }
            story.changes.update(&file.set(&new));
            Ok(())
        })
    }

    fn plan(&self, found: &Found) -> Result<Plan> {
        Ok(found.plan.clone())
    }

    fn apply(&self, cx: &Cx, found: Found) -> Result<Applied> {
        write(cx, found)
    }
}

/// Remove sections of an INI file.
#[derive(Args)]
pub struct SectionsAbsent(Sections);

impl State for SectionsAbsent {
    type Seen = Found;

    fn observe(&self, cx: &Cx) -> Result<Found> {
        self.0.look(cx, |file, story| {
            for name in names_of(self.0.sections.as_ref()) {
                match file.take_section(&name) {
                    Some(options) => {
                        story.tell(format!("Deleted section {name}."));
                        story.changes.insert(name, options);
                    }
                    None => story.tell(format!("Section {name} does not exist.")),
                }
            }
            Ok(())
        })
    }

    fn plan(&self, found: &Found) -> Result<Plan> {
        Ok(found.plan.clone())
    }

    fn apply(&self, cx: &Cx, found: Found) -> Result<Applied> {
        write(cx, found)
    }
}
