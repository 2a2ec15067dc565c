//! `event_out_file` and `event_out_http`: events to a file or to a web server, as JSON.
//!
//! A file gets a line per event: `{"tag": …, "data": …}`. A server gets a list of up to `batch` of
//! them per request. While it does not answer, or the file cannot be written, it is tried again and
//! again, and events wait. What
//! does not fit into the queue is counted, and the count is written or sent where the events would
//! have stood: `{"gap": 17}`.

use std::{io::Write as _, sync::Arc, time::Duration};

use halite_value::{Dict, Value, dict, json};
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::task::JoinHandle;

use super::{globs, wanted};
use crate::{
    Master, blocking,
    bus::{Fired, Item, Subscription},
    settings::placed,
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

fn size(config: &Dict, name: &str, default: usize) -> Result<usize, String> {
    Ok(super::whole(config, name, 1, 10_000_000)?.unwrap_or(default))
}

/// Writes all lines or none: what was written of them is taken back.
fn append(path: &str, lines: &str) -> std::io::Result<()> {
    // Opened anew each time: logs are rotated.
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    let before = file.metadata()?;
    file.write_all(lines.as_bytes()).inspect_err(|_| {
        if before.is_file() {
            let _ = file.set_len(before.len());
        }
    })
}

/// Starts `event_out_file`.
pub(super) fn file(master: &Arc<Master>, config: &Dict) -> Result<JoinHandle<()>, String> {
    super::only(config, &["path", "tags", "exclude", "queue"])?;
    let path = super::text(config, "path").ok_or("`path` is missing")?;
    let (white, black) = (globs(config, "tags"), globs(config, "exclude"));
    let from = master.bus.subscribe("", size(config, "queue", QUEUE)?);
    // Said at once, not when the first event comes.
    if let Err(error) = append(&path, "") {
        tracing::error!("event_out_file: {path}: {error}; events wait until it can be written");
    }
    Ok(tokio::spawn(async move {
        while let Some(events) = batch(&from, 1000, &white, &black).await {
            let mut lines = String::new();
            for event in &events {
                lines += &text(event);
                lines.push('\n');
            }
            let lines: Arc<str> = lines.into();
            let mut pause = Duration::from_millis(200);
            loop {
                let (path, lines) = (path.clone(), lines.clone());
                let written = blocking(move || (append(&path, &lines), path)).await;
                // Else it is written, or the master ends.
                let Ok((Err(error), path)) = written else { break };
                tracing::error!("event_out_file: {path}: {error}; it is tried again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(30));
            }
        }
    }))
}

/// Reads the headers of the requests.
fn headers(config: &Dict) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let given = match config.get("headers") {
        None | Some(Value::Null) => return Ok(headers),
        Some(Value::Dict(given)) => given,
        Some(other) => {
            let text = format!("`headers` is a map, not {other}");
            return Err(placed(&text, config.place_of("headers")));
        }
    };
    for (name, value) in &given {
        let wrong =
            |what: &str| placed(&format!("`headers`: {name}: {what}"), given.place_of(&name));
        let key = HeaderName::from_bytes(name.to_str().as_bytes());
        let key = key.map_err(|_| wrong("this is no name of a header"))?;
        // A secret may stand here: it is not repeated in a log.
        let text = HeaderValue::from_str(&value.to_str());
        headers.insert(key, text.map_err(|_| wrong("its value cannot be sent"))?);
    }
    Ok(headers)
}

/// Tells whether a server that answers so may think otherwise later.
fn is_passing(status: StatusCode) -> bool {
    !status.is_client_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

/// The last of the causes: «Connection refused» tells more than that a request was not sent.
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), cause)
}

/// Starts `event_out_http`.
pub(super) fn http(master: &Arc<Master>, config: &Dict) -> Result<JoinHandle<()>, String> {
    super::only(config, &["url", "headers", "batch", "tags", "exclude", "queue"])?;
    let url = super::text(config, "url").ok_or("`url` is missing")?;
    let place = config.place_of("url");
    let url = reqwest::Url::parse(&url)
        .map_err(|error| placed(&format!("`url`: {url}: {error}"), place))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(placed(&format!("`url`: {url} is no address of a web server"), place));
    }
    let (white, black) = (globs(config, "tags"), globs(config, "exclude"));
    let most = size(config, "batch", 100)?;
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(30))
        .default_headers(headers(config)?)
        .build()
        .map_err(|error| error.to_string())?;
    let from = master.bus.subscribe("", size(config, "queue", QUEUE)?);
    Ok(tokio::spawn(async move {
        while let Some(events) = batch(&from, most, &white, &black).await {
            let body = text(&Value::list(events));
            let mut pause = Duration::from_millis(200);
            loop {
                match client.post(url.clone()).body(body.clone()).send().await {
                    Ok(answer) if answer.status().is_success() => break,
                    // Our own fault: trying again changes nothing.
                    Ok(answer) if !is_passing(answer.status()) => {
                        tracing::error!(
                            "event_out_http: {url} refuses events: {}",
                            answer.status()
                        );
                        break;
                    }
                    Ok(answer) => tracing::warn!("event_out_http: {url}: {}", answer.status()),
                    Err(error) => tracing::warn!("event_out_http: {url}: {}", cause(&error)),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(30));
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let path = path.to_str().unwrap();
        append(path, "one\n").unwrap();
        append(path, "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
        assert!(append(folder.path().to_str().unwrap(), "x").is_err(), "a folder is no file");
        assert!(append("/dev/full", "x").is_err());
    }

    #[test]
    fn headers_are_checked() {
        let check = |value: Value| {
            headers(dict! { "headers" => value }.as_dict().unwrap()).map(|all| all.len())
        };
        assert_eq!(check(dict! { "Authorization" => "Bearer x" }), Ok(2));
        assert_eq!(check(Value::Null), Ok(1));
        let error = check(dict! { "A" => "secret\n" }).unwrap_err();
        assert_eq!(error, "`headers`: A: its value cannot be sent");
        assert!(check(dict! { "a b" => "x" }).is_err() && check("x".into()).is_err());
    }

    #[test]
    fn who_is_busy_is_asked_again() {
        let is_passing = |code: u16| is_passing(StatusCode::from_u16(code).unwrap());
        assert!(is_passing(503) && is_passing(429) && is_passing(408));
        assert!(!is_passing(401) && !is_passing(404));
    }
}
