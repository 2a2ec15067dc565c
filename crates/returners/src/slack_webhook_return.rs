//! `slack_webhook`: returns as messages of a Slack channel, by its webhook.

use halite_spec::{Call, Cx, Error, Result};
use halite_value::{Dict, Value, dict, list};

use crate::{Options, line, returner};

returner! {
    /// Post returns to a Slack channel.
    "slack_webhook": ret, events = events
}

fn post(cx: &Cx, options: &Options, title: &str, text: &str, good: bool) -> Result<()> {
    let webhook = options.text(cx, "webhook", "");
    if webhook.is_empty() {
        return Err(Error::failed("slack_webhook.webhook not defined in salt config"));
    }
    let url = if webhook.starts_with("http") {
        webhook
    } else {
        format!("https://hooks.slack.com/services/{webhook}")
    };
    let color = if good { "good" } else { "danger" };
    let body = dict! {
        "attachments" => list![dict! { "fallback" => title, "color" => color, "title" => title, "text" => text }],
    };
    let call = Call::of([url.as_str()])
        .with("method", "POST")
        .with("data", line(&body))
        .with("header_dict", dict! { "Content-Type" => "application/json" })
        .with("status", true);
    let answer = cx.call("http.query", call)?;
    match answer.get("status").and_then(|status| status.to_int()) {
        Some(200..300) => Ok(()),
        _ => Err(Error::failed(format!("slack_webhook: {answer}"))),
    }
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    let text = |key: &str| ret.get(key).unwrap_or_default().to_str();
    let good = ret.get("success").is_none_or(|success| success.truthy());
    let word = if good { "succeeded" } else { "failed" };
    let title = format!("{} {word} on {}", text("fun"), text("id"));
    let content = line(&ret.get("return").unwrap_or_default());
    post(cx, options, &title, &content, good)
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    events.iter().try_for_each(|event| {
        let tag = event.get_str("tag").unwrap_or_default();
        post(cx, options, &tag, &line(&event.get("data").unwrap_or_default()), true)
    })
}
