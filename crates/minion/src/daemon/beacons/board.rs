//! Which beacons are configured, and what the `beacons` module asks about them.
//!
//! Requests are events tagged `manage_beacons` with a `func`; each is answered by an event of its
//! own tag, as genuine Salt's tools expect. What the pillar configures can only be changed there.

use halite_beacons::Config;
use halite_value::{Dict, Value, entries};

/// The configured beacons.
#[derive(Default)]
pub struct Board {
    config: Dict,
    pillar: Dict,
    /// Grows with every change.
    pub(super) version: u64,
}

fn list_of(value: &Value) -> Vec<Value> {
    value.items_of_sequence().unwrap_or_default()
}

impl Board {
    pub fn new(config: &Dict) -> Self {
        Self { config: config.deep_copy(), pillar: Dict::new(), version: 0 }
    }

    /// Takes what the pillar says.
    pub fn set_pillar(&mut self, pillar: &Dict) {
        if *pillar != self.pillar {
            self.pillar = pillar.deep_copy();
            self.version += 1;
        }
    }

    fn all(&self) -> Dict {
        let all = self.config.shallow_copy();
        all.update(&self.pillar);
        all
    }

    /// Returns those that are to run.
    pub fn active(&self) -> Vec<Config> {
        let all = self.all();
        if all.get("enabled").is_some_and(|enabled| !enabled.truthy()) {
            return Vec::new();
        }
        let configs = all.entries().into_iter().filter(|(name, _)| name.to_str() != "enabled");
        configs
            .map(|(name, value)| Config::read(&name.to_str(), &value))
            .filter(Config::is_enabled)
            .collect()
    }

    /// Does what an event `manage_beacons` asks; returns the tag and the data of the answer.
    /// `custom` knows the names of users' own beacons and what they think of a configuration.
    pub fn manage(
        &mut self,
        request: &Dict,
        custom: &dyn Fn(&Config) -> Option<Result<(), String>>,
    ) -> Option<(&'static str, Dict)> {
        let func = request.get("func")?.to_str();
        let name = request.get("name").unwrap_or_default().to_str();
        let name = name.as_str();
        let data = request.get("beacon_data").unwrap_or_default();
        let told = |board: &Self, complete: bool, comment: String| {
            entries! { "complete" => complete, "comment" => comment, "beacons" => board.config.deep_copy() }
        };
        let fixed = self.pillar.contains(name);
        let in_pillar =
            |verb: &str| format!("Cannot {verb} beacon item {name}, it is configured in pillar.");
        Some(match func.as_str() {
            "list" => {
                let wanted = |key: &str| request.get(key).is_none_or(|wanted| wanted.truthy());
                let listed = Dict::new();
                if wanted("include_opts") {
                    listed.update(&self.config.deep_copy());
                }
                if wanted("include_pillar") {
                    listed.update(&self.pillar.deep_copy());
                }
                let data = entries! { "complete" => true, "beacons" => listed };
                ("/salt/minion/minion_beacons_list_complete", data)
            }
            "list_available" => {
                let names = Value::list(halite_beacons::names());
                let data = entries! { "complete" => true, "beacons" => names };
                ("/salt/minion/minion_beacons_list_available_complete", data)
            }
            "validate_beacon" => {
                let (valid, comment) = validate(&Config::read(name, &data), custom);
                let data = entries! { "complete" => true, "vcomment" => comment, "valid" => valid };
                ("/salt/minion/minion_beacon_validation_complete", data)
            }
            "add" => {
                let tag = "/salt/minion/minion_beacon_add_complete";
                if fixed {
                    return Some((tag, told(self, false, in_pillar("update"))));
                }
                let known = self.config.insert(name, data.deep_copy()).is_some();
                self.version += 1;
                let comment = if known {
                    format!("Updating settings for beacon item: {name}")
                } else {
                    format!("Added new beacon item: {name}")
                };
                (tag, told(self, true, comment))
            }
            "modify" => {
                let tag = "/salt/minion/minion_beacon_modify_complete";
                if fixed {
                    return Some((tag, told(self, false, in_pillar("modify"))));
                }
                self.config.insert(name, data.deep_copy());
                self.version += 1;
                (tag, told(self, true, format!("Updating settings for beacon item: {name}")))
            }
            "delete" => {
                let tag = "/salt/minion/minion_beacon_delete_complete";
                if fixed {
                    return Some((tag, told(self, false, in_pillar("delete"))));
                }
                self.config.remove(name);
                self.version += 1;
                (tag, told(self, true, format!("Deleting beacon item: {name}")))
            }
            "enable" | "disable" => {
                let enable = func == "enable";
                self.config.insert("enabled", enable);
                self.version += 1;
                let data = entries! { "complete" => true, "beacons" => self.config.deep_copy() };
                let tag = if enable {
                    "/salt/minion/minion_beacons_enabled_complete"
                } else {
                    "/salt/minion/minion_beacons_disabled_complete"
                };
                (tag, data)
            }
            "enable_beacon" | "disable_beacon" => {
                let enable = func == "enable_beacon";
                let (tag, verb, word) = if enable {
                    ("/salt/minion/minion_beacon_enabled_complete", "enable", "Enabling")
                } else {
                    ("/salt/minion/minion_beacon_disabled_complete", "disable", "Disabling")
                };
                if fixed {
                    return Some((tag, told(self, false, in_pillar(verb))));
                }
                self.switch(name, enable);
                (tag, told(self, true, format!("{word} beacon item {name}")))
            }
            "reset" => {
                self.config = Dict::new();
                self.version += 1;
                let tag = "/salt/minion/minion_beacon_reset_complete";
                (tag, told(self, true, "Beacons have been reset".into()))
            }
            _ => return None,
        })
    }

    fn switch(&mut self, name: &str, enable: bool) {
        let Some(value) = self.config.get(name) else { return };
        match &value {
            Value::Dict(options) => {
                options.insert("enabled", enable);
            }
            // As in genuine Salt: one that is enabled says nothing of it.
            Value::List(_) => {
                let mut items = list_of(&value);
                items.retain(|item| item.get("enabled").is_none());
                if !enable {
                    items.push(entries! { "enabled" => false }.into());
                }
                self.config.insert(name, Value::list(items));
            }
            _ => {
                self.config.insert(name, Value::list([entries! { "enabled" => enable }]));
            }
        }
        self.version += 1;
    }
}

/// Says whether a configuration is right, in Salt's words.
fn validate(
    config: &Config,
    custom: &dyn Fn(&Config) -> Option<Result<(), String>>,
) -> (bool, String) {
    if let Some(beacon) = halite_beacons::beacon(&config.kind) {
        return match (beacon.validate)(config) {
            Ok(()) => (true, "Valid beacon configuration".into()),
            Err(problem) => (false, problem.text),
        };
    }
    match custom(config) {
        Some(Ok(())) => (true, "Valid beacon configuration".into()),
        Some(Err(why)) => (false, why),
        None => {
            let name = &config.name;
            (true, format!("Beacon {name} does not have a validate function, skipping validation."))
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_value::yaml;

    use super::*;

    fn ask(board: &mut Board, request: &str) -> (String, Dict) {
        let Ok(Value::Dict(request)) = yaml::load_str(request) else { panic!("{request}") };
        let (tag, data) = board.manage(&request, &|_| None).unwrap();
        (tag.trim_start_matches("/salt/minion/minion_").to_owned(), data)
    }

    #[test]
    fn beacons_come_and_go() {
        let mut board = Board::default();
        let add = "{func: add, name: ps, beacon_data: [{processes: {a: running}}]}";
        let (tag, data) = ask(&mut board, add);
        assert_eq!(tag, "beacon_add_complete");
        assert_eq!(data.get("comment"), Some("Added new beacon item: ps".into()));
        assert_eq!(board.active().len(), 1);
        ask(&mut board, "{func: disable_beacon, name: ps}");
        assert_eq!(board.active().len(), 0);
        let (_, data) = ask(&mut board, "{func: enable_beacon, name: ps}");
        let listed = data.get("beacons").unwrap().get("ps").unwrap().to_string();
        assert_eq!(listed, "[{'processes': {'a': 'running'}}]");
        ask(&mut board, "{func: disable}");
        assert_eq!(board.active().len(), 0);
        ask(&mut board, "{func: reset}");
        assert_eq!(board.all().len(), 0);
    }

    #[test]
    fn the_pillar_keeps_its_own() {
        let mut board = Board::default();
        let Ok(Value::Dict(pillar)) = yaml::load_str("ps: [{processes: {a: running}}]") else {
            panic!("a dict")
        };
        board.set_pillar(&pillar);
        let (_, data) = ask(&mut board, "{func: delete, name: ps}");
        assert_eq!(data.get("complete"), Some(false.into()));
        assert_eq!(board.active().len(), 1);
        let (_, data) = ask(&mut board, "{func: list, include_pillar: false}");
        assert_eq!(data.get("beacons"), Some(Value::dict()));
    }

    #[test]
    fn wrong_ones_are_told() {
        let mut board = Board::default();
        let (_, data) = ask(&mut board, "{func: validate_beacon, name: ps, beacon_data: [{a: 1}]}");
        let text = "Configuration for ps beacon requires processes.";
        assert_eq!(data.get("vcomment"), Some(text.into()));
        let request = "{func: validate_beacon, name: p2, beacon_data: [{processes: {}}, {beacon_module: ps}]}";
        let (_, data) = ask(&mut board, request);
        assert_eq!(data.get("valid"), Some(true.into()));
    }
}
