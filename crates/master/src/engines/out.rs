//! `event_out_file` and `event_out_http`: events to a file or to a web server, as JSON.
//!
//! A file gets a line per event: `{"tag": …, "data": …}`. A server gets a list of up to `batch` of
//! them per request; while it does not answer, it is tried again and again, and events wait. What
//! does not fit into the queue is counted, and the count is written or sent where the events would
//! have stood: `{"gap": 17}`.

use std::{io::Write as _, sync::Arc, time::Duration};

use halite_value::{Dict, Value, dict, json};
use tokio::task::JoinHandle;

use super::{globs, wanted};
use crate::{
    Master, blocking,
    bus::{Fired, Item, Subscription},
};

/// Events that wait for one engine.
const QUEUE: usize = 100_000;

fn line(event: &Fired) -> Value {
    dict! { "tag" => event.tag.as_str(), "data" => &event.data }
}

fn text(value: &Value) -> String {
    let style = json::Style { bytes_as_text: true, ..json::Style::default() };
    json::to_string_styled(value, &style)
        .unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}

/// Waits for events and returns up to `most` of those wanted; `None` when the bus is closed.
async fn batch(
    from: &Subscription,
    most: usize,
    white: &[String],
    black: &[String],
) -> Option<Vec<Value>> {
    let mut found = Vec::new();
    let mut linger = None;
    while found.len() < most {
        let next = match linger {
            None => from.next().await,
            Some(until) => match tokio::time::timeout_at(until, from.next()).await {
                Ok(next) => next,
                Err(_) => break,
            },
        };
        match next {
            Some(Item::One(event)) if wanted(&event.tag, white, black) => found.push(line(&event)),
            Some(Item::One(_)) => continue,
            Some(Item::Gap(missed)) => found.push(dict! { "gap" => missed }),
            None if found.is_empty() => return None,
            None => break,
        }
        linger.get_or_insert_with(|| tokio::time::Instant::now() + Duration::from_millis(50));
    }
    Some(found)
}

fn size(config: &Dict, name: &str, default: usize) -> usize {
    let given = config.get(name).and_then(|size| size.to_int());
    given.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0).unwrap_or(default)
}

/// Starts `event_out_file`.
pub(super) fn file(master: &Arc<Master>, config: &Dict) -> Result<JoinHandle<()>, String> {
    let path = super::text(config, "path").ok_or("`path` is missing")?;
    let (white, black) = (globs(config, "tags"), globs(config, "exclude"));
    let from = master.bus.subscribe("", size(config, "queue", QUEUE));
    Ok(tokio::spawn(async move {
        while let Some(events) = batch(&from, 1000, &white, &black).await {
            let path = path.clone();
            let written = blocking(move || {
                let mut lines = String::new();
                for event in &events {
                    lines += &text(event);
                    lines.push('\n');
                }
                // Opened anew each time: logs are rotated.
                let file =
                    std::fs::OpenOptions::new().create(true).append(true).open(path.as_str());
                file.and_then(|mut file| file.write_all(lines.as_bytes()))
            })
            .await;
            if let Ok(Err(error)) = written {
                tracing::error!("event_out_file: events are lost: {error}");
            }
        }
    }))
}

/// Starts `event_out_http`.
pub(super) fn http(master: &Arc<Master>, config: &Dict) -> Result<JoinHandle<()>, String> {
    let url = super::text(config, "url").ok_or("`url` is missing")?;
    let (white, black) = (globs(config, "tags"), globs(config, "exclude"));
    let most = size(config, "batch", 100);
    let headers: Vec<(String, String)> = match config.get("headers") {
        Some(Value::Dict(map)) => {
            map.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        }
        _ => Vec::new(),
    };
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(30))
        .build()
        .map_err(|error| error.to_string())?;
    let from = master.bus.subscribe("", size(config, "queue", QUEUE));
    Ok(tokio::spawn(async move {
        while let Some(events) = batch(&from, most, &white, &black).await {
            let body = text(&Value::list(events));
            let mut pause = Duration::from_millis(200);
            loop {
                let mut request =
                    client.post(url.as_str()).header("Content-Type", "application/json");
                for (name, value) in &headers {
                    request = request.header(name, value);
                }
                match request.body(body.clone()).send().await {
                    Ok(answer) if answer.status().is_success() => break,
                    // Our own fault: trying again changes nothing.
                    Ok(answer) if answer.status().is_client_error() => {
                        tracing::error!(
                            "event_out_http: {url} refuses events: {}",
                            answer.status()
                        );
                        break;
                    }
                    Ok(answer) => tracing::warn!("event_out_http: {url}: {}", answer.status()),
                    Err(error) => tracing::warn!("event_out_http: {url}: {error}"),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(30));
            }
        }
    }))
}
