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
use halite_value::{Dict, SmolStr, Value, entries};
use tokio::{task::JoinHandle, time::Instant};

use crate::{Master, blocking, bus::Item};

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

/// Reads the option: name and configuration of each engine.
fn configured(option: &Value) -> Vec<(String, Dict)> {
    let items = match option {
        Value::Dict(_) => vec![option.clone()],
        other => other.items_of_sequence().unwrap_or_default(),
    };
    let mut found = Vec::new();
    for item in items {
        match &item {
            Value::Dict(map) => {
                for (name, config) in map {
                    let config = match config {
                        Value::Dict(config) => config,
                        Value::Null => Dict::new(),
                        // A list of maps is one map.
                        list => {
                            let all = Dict::new();
                            for part in list.items_of_sequence().unwrap_or_default() {
                                part.as_dict().into_iter().for_each(|part| all.update(part));
                            }
                            all
                        }
                    };
                    found.push((name.to_string(), config));
                }
            }
            name => found.push((name.to_string(), Dict::new())),
        }
    }
    found
}

/// Starts all that are configured; one that cannot start is named in the log.
pub(crate) fn start(master: &Arc<Master>, more: Option<&dyn Engines>) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    let option = master.settings.opts.get("engines").unwrap_or_default();
    for (name, config) in configured(&option) {
        // Several of a kind: the name is free, the module is named.
        let module = text(&config, "engine_module").unwrap_or_else(|| name.as_str().into());
        let started = match module.as_str() {
            "webhook" => Some(Ok(webhook::start(master, &config))),
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
            None => tracing::error!("The engine {name} is not available"),
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
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn the_option_has_many_forms() {
        let option = list![
            "bare",
            dict! { "webhook" => dict! { "port" => 1 } },
            dict! { "listed" => list![dict! { "a" => 1 }, dict! { "b" => 2 }] },
        ];
        let all = configured(&option);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["bare", "webhook", "listed"]);
        assert_eq!(Value::from(all[2].1.clone()), dict! { "a" => 1, "b" => 2 });
    }

    #[test]
    fn tags_are_chosen() {
        let globs = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(wanted("a/b", &[], &[]) && wanted("a/b", &globs(&["a/*"]), &[]));
        assert!(!wanted("a/b", &globs(&["x"]), &[]) && !wanted("a/b", &[], &globs(&["a/*"])));
    }
}
