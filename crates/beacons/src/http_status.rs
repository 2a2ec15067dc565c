//! `http_status`: an event when a site answers other than it should.

use halite_spec::{Call, Cx, Result};
use halite_value::{Dict, Value, entries, json, lookup};

use crate::{Config, Problem, Watch, beacon, config::number};

beacon! {
    /// Tell when a site's status or content is as described.
    "http_status": HttpStatus
}

#[derive(Default)]
pub struct HttpStatus;

const COMPARISONS: [&str; 7] = ["<", "<=", "==", "!=", ">=", ">", "search"];

impl Watch for HttpStatus {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        let wrong = |text: String| Err(config.problem_at("sites", text));
        let Some(Value::Dict(sites)) = config.get("sites") else {
            return wrong("Configuration for http_status beacon must contain sites.".into());
        };
        for (site, options) in &sites {
            if options.get("url").is_none() {
                return wrong(format!("Sites for http_status beacon must contain a url: {site}"));
            }
            for check in checks(&options, "status").into_iter().chain(checks(&options, "content")) {
                let comp = check.get_str("comp").unwrap_or_else(|| "==".into());
                if !COMPARISONS.contains(&comp.as_str()) {
                    return wrong(format!("{site}: `{comp}` is no comparison"));
                }
            }
        }
        Ok(())
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let Some(Value::Dict(sites)) = config.get("sites") else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        for (site, options) in &sites {
            let url = options.get_str("url").unwrap_or_default();
            let is_json = options.get_str("content-type").is_none_or(|kind| kind == "json");
            let mut call = Call::of([url.as_str()]).with("status", true).with("text", true);
            if let Some(timeout) = options.get("timeout") {
                call = call.with("timeout", timeout);
            }
            let site = site.to_str();
            let answer = match cx.call("http.query", call) {
                Ok(answer) => answer,
                Err(error) => {
                    let error = error.to_string();
                    events.push(entries! { "tag" => site, "site" => url, "error" => error });
                    continue;
                }
            };
            let found = Dict::new();
            for check in checks(&options, "status") {
                let status = answer.get("status").unwrap_or_default();
                if holds(&status, &check) {
                    found.insert("status", status);
                }
            }
            // With an error's status there is a body only.
            let text = answer.get("text").or_else(|| answer.get("body")).unwrap_or_default();
            // An error page of a site that speaks JSON is text, and can be searched as such.
            let decoded = is_json.then(|| json::from_str(&text.to_str()).ok()).flatten();
            let content = decoded.unwrap_or(text);
            for check in checks(&options, "content") {
                let path = check.get_str("path").filter(|path| !path.is_empty());
                let part = match &path {
                    Some(path) => lookup::traverse(&content, path, ":").unwrap_or_default(),
                    None => content.clone(),
                };
                if holds(&part, &check) {
                    found.insert(path.unwrap_or_else(|| "content".into()), part);
                }
            }
            // Without an answer there is no status.
            let status = answer.get("status").filter(Value::truthy);
            if let Some(error) = answer.get("error").filter(|_| status.is_none()) {
                found.insert("error", error);
            }
            if !found.is_empty() {
                found.insert("site", url);
                found.insert("tag", site);
                events.push(found);
            }
        }
        Ok(events)
    }
}

fn checks(options: &Value, key: &str) -> Vec<Value> {
    match options.get(key) {
        None | Some(Value::Null) => Vec::new(),
        Some(value) => match value.items_of_sequence() {
            Some(list) => list,
            None if value.as_dict().is_some() => vec![value],
            None => vec![entries! { "value" => value }.into()],
        },
    }
}

fn holds(found: &Value, check: &Value) -> bool {
    let wanted = check.get("value").unwrap_or_default();
    let comp = check.get_str("comp").unwrap_or_else(|| "==".into());
    let numbers = number(found).zip(number(&wanted));
    match (comp.as_str(), numbers) {
        ("==", Some((one, other))) => one == other,
        ("==", None) => found.to_str() == wanted.to_str(),
        ("!=", Some((one, other))) => one != other,
        ("!=", None) => found.to_str() != wanted.to_str(),
        ("<", Some((one, other))) => one < other,
        ("<=", Some((one, other))) => one <= other,
        (">", Some((one, other))) => one > other,
        (">=", Some((one, other))) => one >= other,
        ("search", _) => {
            let regex =
                halite_pyregex::PyRegex::cached(&wanted.to_str(), halite_pyregex::Flags::default());
            regex.is_ok_and(|regex| regex.is_match(&found.to_str()).unwrap_or(false))
        }
        _ => false,
    }
}
