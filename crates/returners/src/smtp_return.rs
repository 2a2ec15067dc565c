//! `smtp_return`: returns by mail. Options go by the name `smtp`, as in Salt.

use halite_spec::{Call, Cx, Error, Result, Template};
use halite_value::{Dict, Value, entries};

use crate::{Options, returner};

returner! {
    /// Mail returns and events.
    "smtp": ret, events = events
}

/// What stands in the message when nothing else is asked for.
const TEMPLATE: &str = "id: {{id}}\r\nfunction: {{fun}}\r\nfunction args: {{fun_args}}\r\n\
                        jid: {{jid}}\r\nreturn: {{return}}";

fn mail(cx: &Cx, options: &Options, subject: &str, content: &str) -> Result<()> {
    if !cx.runtime.has(cx, "smtp.send_msg") {
        return Err(Error::failed("returner smtp: the module smtp is not available"));
    }
    let to = options.texts(cx, "to").join(",");
    if to.is_empty() {
        return Err(Error::failed("returner smtp: smtp.to says nobody"));
    }
    let call = Call::of([to.as_str(), content]).with("subject", subject);
    for (argument, option) in
        [("sender", "from"), ("username", "username"), ("password", "password")]
    {
        if let Some(value) = options.get(cx, option).filter(Value::truthy) {
            call.kwargs.insert(argument, value);
        }
    }
    if let Some(host) = options.get(cx, "host").filter(Value::truthy) {
        let port = options.get(cx, "port").filter(Value::truthy);
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        call.kwargs.insert("server", format!("{host}{port}"));
    }
    let tls = options.get(cx, "tls").is_some_and(|tls| tls.truthy());
    call.kwargs.insert("use_ssl", if tls { "True" } else { "False" });
    match cx.call("smtp.send_msg", call)? {
        Value::Bool(false) => Err(Error::failed("returner smtp: the mail was not taken")),
        _ => Ok(()),
    }
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    let mut subject = options.text(cx, "subject", "Salt return");
    for field in options.texts(cx, "fields").iter().flat_map(|fields| fields.split(',')) {
        if let Some(value) = ret.get(field.trim()) {
            subject = format!("{subject} {value}");
        }
    }
    let template = Template {
        engine: "jinja".into(),
        text: match options.get(cx, "template").filter(Value::truthy) {
            Some(path) => cx.host.read_text(path.to_str().as_str().as_ref())?,
            None => TEMPLATE.to_owned(),
        },
        source: None,
        saltenv: cx.saltenv(),
        sls: None,
        context: ret.shallow_copy(),
    };
    let content = cx.runtime.render(cx, &template)?;
    mail(cx, options, &subject, &content)
}

fn events(cx: &Cx, options: &Options, events: &[Value]) -> Result<()> {
    let wanted = options.texts(cx, "event_returner_tags");
    for event in events {
        let tag = event.get_str("tag").unwrap_or_default();
        if wanted.is_empty() || wanted.iter().any(|own| *own == *tag) {
            let data = entries! { "tag" => &tag, "data" => event.get("data").unwrap_or_default() };
            mail(cx, options, &format!("Salt event {tag}"), &Value::from(data).to_string())?;
        }
    }
    Ok(())
}
