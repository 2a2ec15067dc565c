//! Engines: what brings events in and out. The option `engines`, as Salt's.
//!
//! ```yaml
//! engines:
//!   - webhook: {address: 0.0.0.0, port: 8000, token: secret}
//!   - event_out_file: {path: /var/log/salt/events.jsonl, tags: ['salt/job/*/ret/*']}
//! ```
//!
//! Built in: `webhook.rs` (with `http.rs` below it), `out.rs` (`event_out_http`, `event_out_file`),
//! `script.rs`. The reactor is no engine here, but whoever lists it as one gets it.
//! Others come from whoever made the master ([`Engines`]): users' own, in Python. Event returners
//! (`event_return`) are fed from here as well.

mod http;
mod out;
mod script;
mod webhook;

use std::{sync::Arc, time::Duration};

use halite_target::fnmatch::fnmatch;
use halite_value::{Dict, Place, SmolStr, Value, entries, suggest};
use tokio::{task::JoinHandle, time::Instant};

use crate::{Master, blocking, bus::Item, settings::placed};

/// Engines beyond the built-in ones.
pub trait Engines: Send + Sync {
    /// Starts one, which ends with the master; `None` if there is none of that name.
    fn start(&self, master: &Arc<Master>, name: &str, config: &Dict) -> Option<Result<(), String>>;
}

/// Takes events away: Salt's `event_return`. Called on a thread that may block.
pub trait EventReturner: Send + Sync {
    /// Each event is `{tag, data}`.
    fn return_events(&self, master: &Arc<Master>, events: &[Value]) -> Result<(), String>;
}

/// An engine of the configuration.
struct Wanted {
    name: String,
    config: Dict,
    place: Option<Place>,
}

/// Reads the option; says what in it is no engine.
fn configured(option: &Value) -> (Vec<Wanted>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let items = match option {
        Value::Null => Vec::new(),
        Value::Dict(_) => vec![option.clone()],
        other => other.items_of_sequence().unwrap_or_else(|| {
            problems.push(format!("engines: a list of engines is expected, not {other}"));
            Vec::new()
        }),
    };
    for (at, item) in items.iter().enumerate() {
        let place = match option {
            Value::List(list) => list.place_of(at).cloned(),
            _ => None,
        };
        match item {
            Value::Dict(map) => {
                for (name, config) in map {
                    let place = map.place_of(&name).cloned().or_else(|| place.clone());
                    let name = name.to_string();
                    match settings_of(&config) {
                        Some(config) => found.push(Wanted { name, config, place }),
                        None => {
                            let text = format!("engines: {name}: {config} is no map of settings");
                            problems.push(placed(&text, place.as_ref()));
                        }
                    }
                }
            }
            Value::Str(name) => {
                found.push(Wanted { name: name.to_string(), config: Dict::new(), place });
            }
            other => {
                problems.push(placed(&format!("engines: {other} is no engine"), place.as_ref()));
            }
        }
    }
    (found, problems)
}

/// A list of maps is one map.
fn settings_of(config: &Value) -> Option<Dict> {
    match config {
        Value::Dict(config) => Some(config.clone()),
        Value::Null => Some(Dict::new()),
        list => {
            let (all, mut places) = (Dict::new(), Vec::new());
            for part in list.items_of_sequence()? {
                let part = part.as_dict()?.clone();
                all.update(&part);
                places.extend_from_slice(part.places());
            }
            all.set_places(places);
            Some(all)
        }
    }
}

/// Fails on a setting that an engine does not have.
fn only(config: &Dict, known: &[&str]) -> Result<(), String> {
    for key in config.keys() {
        let name = key.to_str();
        if name == "engine_module" || known.contains(&name.as_str()) {
            continue;
        }
        let near = suggest::nearest(&name, known.iter().copied())
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        let text = format!("it has no setting `{name}`{near}");
        return Err(placed(&text, config.place_of(&key)));
    }
    Ok(())
}

/// Reads a whole number within bounds; `None` if it is not given.
fn whole(config: &Dict, name: &str, least: i64, most: i64) -> Result<Option<usize>, String> {
    let Some(value) = config.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let number = match &value {
        Value::Int(number) => Some(*number),
        Value::Str(text) => text.trim().parse().ok(),
        _ => None,
    };
    let number = number.filter(|number| (least..=most).contains(number));
    let number = number.and_then(|number| usize::try_from(number).ok()).ok_or_else(|| {
        let text = format!("`{name}` is a number from {least} to {most}, not {value}");
        placed(&text, config.place_of(name))
    })?;
    Ok(Some(number))
}

/// Starts all that are configured; one that cannot start is named in the log.
pub(crate) fn start(master: &Arc<Master>, more: Option<&dyn Engines>) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    let option = master.settings.opts.get("engines").unwrap_or_default();
    let (wanted, problems) = configured(&option);
    for problem in problems {
        tracing::error!("{problem}");
    }
    for Wanted { name, config, place } in wanted {
        // Several of a kind: the name is free, the module is named.
        let module = text(&config, "engine_module").unwrap_or_else(|| name.as_str().into());
        let started = match module.as_str() {
            "webhook" => Some(webhook::start(master, &config)),
            "event_out_http" => Some(out::http(master, &config)),
            "event_out_file" => Some(out::file(master, &config)),
            "script" => Some(script::start(master, &config)),
            "test" => Some(Ok(show(master))),
            // It runs already: see `reactor::start`.
            "reactor" => continue,
            "thorium" => Some(Err("it is not built; `halite: {rules: …}` count events".into())),
            _ => match more.and_then(|more| more.start(master, &name, &config)) {
                // It runs on a thread of its own, and tells by itself.
                Some(Ok(())) => continue,
                Some(Err(error)) => Some(Err(error)),
                None => None,
            },
        };
        match started {
            Some(Ok(task)) => {
                tracing::info!("Starting Engine({name})");
                tasks.push(task);
            }
            Some(Err(error)) => tracing::error!("The engine {name} does not start: {error}"),
            None => {
                let text = format!("The engine {name} is not available");
                tracing::error!("{}", placed(&text, place.as_ref()));
            }
        }
    }
    tasks
}

/// The engine `test`: every event goes to the log, for those who debug.
fn show(master: &Arc<Master>) -> JoinHandle<()> {
    let subscription = master.bus.subscribe("", 1000);
    tokio::spawn(async move {
        while let Some(item) = subscription.next().await {
            if let Item::One(event) = item {
                let data = Value::from(event.data.clone());
                tracing::debug!("==== EVENT ==== {} {data}", event.tag);
            }
        }
    })
}

fn text(config: &Dict, name: &str) -> Option<SmolStr> {
    config.get(name).filter(Value::truthy).map(|value| value.to_str())
}

/// Globs of an option that is a text or a list.
fn globs(config: &Dict, name: &str) -> Vec<String> {
    match config.get(name) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Str(one)) => vec![one.to_string()],
        Some(list) => {
            list.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
        }
    }
}

fn wanted(tag: &str, white: &[String], black: &[String]) -> bool {
    (white.is_empty() || white.iter().any(|glob| fnmatch(tag, glob)))
        && !black.iter().any(|glob| fnmatch(tag, glob))
}

/// Feeds an event returner: `event_return_queue` events at a time, none older than
/// `event_return_queue_max_seconds`.
pub(crate) fn return_events(
    master: &Arc<Master>,
    returner: Arc<dyn EventReturner>,
) -> JoinHandle<()> {
    let opts = &master.settings.opts;
    let list = |name: &str| opts.str_list(name).iter().map(ToString::to_string).collect::<Vec<_>>();
    let (white, black) = (list("event_return_whitelist"), list("event_return_blacklist"));
    let most =
        opts.opt_int("event_return_queue").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let age = opts.opt_int("event_return_queue_max_seconds").unwrap_or(0);
    let age = Duration::from_secs(u64::try_from(age).ok().filter(|age| *age > 0).unwrap_or(1));
    let master = master.clone();
    tokio::spawn(async move {
        let subscription = master.bus.subscribe("", 100_000);
        let mut waiting: Vec<Value> = Vec::new();
        let mut since = Instant::now();
        loop {
            let next = tokio::time::timeout_at(since + age, subscription.next()).await;
            let mut is_due = false;
            match next {
                Ok(Some(Item::One(event))) => {
                    if wanted(&event.tag, &white, &black) {
                        if waiting.is_empty() {
                            since = Instant::now();
                        }
                        let one = entries! { "tag" => event.tag.as_str(), "data" => &event.data };
                        waiting.push(one.into());
                    }
                }
                Ok(Some(Item::Gap(missed))) => {
                    tracing::error!("{missed} events were not returned: the returner is too slow");
                }
                Ok(None) => return,
                // Too long for the oldest of them.
                Err(_) => is_due = true,
            }
            is_due |= since.elapsed() >= age || waiting.len() > most;
            if !waiting.is_empty() && is_due {
                let (owner, batch) = (master.clone(), std::mem::take(&mut waiting));
                let returner = returner.clone();
                let sent = blocking(move || returner.return_events(&owner, &batch)).await;
                if let Ok(Err(error)) = sent {
                    tracing::error!("Could not store events: {error}");
                }
            }
            if is_due {
                since = Instant::now();
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use halite_value::{
        dict, list,
        yaml::{self, LoadOptions},
    };

    use super::*;

    #[test]
    fn the_option_has_many_forms() {
        let option = list![
            "bare",
            dict! { "webhook" => dict! { "port" => 1 } },
            dict! { "listed" => list![dict! { "a" => 1 }, dict! { "b" => 2 }] },
        ];
        let (all, problems) = configured(&option);
        let names: Vec<&str> = all.iter().map(|wanted| wanted.name.as_str()).collect();
        assert_eq!(names, ["bare", "webhook", "listed"]);
        assert_eq!(Value::from(all[2].config.clone()), dict! { "a" => 1, "b" => 2 });
        assert!(problems.is_empty());
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let load = |text: &str| {
            let options = LoadOptions { name: "master", places: true, ..LoadOptions::default() };
            yaml::load(text, &options).unwrap()
        };
        let (all, problems) = configured(&load("- webhook: 8000\n- 5\n- script:\n"));
        assert_eq!(all.len(), 1);
        assert_eq!(
            problems,
            [
                "engines: webhook: 8000 is no map of settings (master:1:3)",
                "engines: 5 is no engine (master:2:3)",
            ]
        );
        assert_eq!(configured(&load("webhook")).1.len(), 1);
        let config = load("prot: 1\nport: 70000\n").as_dict().unwrap().clone();
        assert_eq!(
            only(&config, &["port"]),
            Err("it has no setting `prot`; did you mean `port`? (master:1:1)".into())
        );
        assert_eq!(
            whole(&config, "port", 0, 65_535),
            Err("`port` is a number from 0 to 65535, not 70000 (master:2:1)".into())
        );
        assert_eq!(whole(&config, "prot", 0, 9), Ok(Some(1)));
    }

    #[test]
    fn tags_are_chosen() {
        let globs = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(wanted("a/b", &[], &[]) && wanted("a/b", &globs(&["a/*"]), &[]));
        assert!(!wanted("a/b", &globs(&["x"]), &[]) && !wanted("a/b", &[], &globs(&["a/*"])));
    }
}
