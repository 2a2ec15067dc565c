//! `smtp`: mails.
//!
//! With a `profile` everything but recipients and text comes from an option of that name, as
//! `smtp.server`, `smtp.tls`, `smtp.sender`, `smtp.username` and `smtp.password`.
//!
//! Beyond genuine Salt, which then has no server to ask: what neither the call nor a profile says is
//! taken from options of those names in configuration or pillar.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Mail, module};
use halite_value::{Dict, Value};

use crate::hashutil::base64;

module! {
    /// Mails.
    "smtp": send_msg,
}

/// What stands between the parts of a message: no line of base64 or of people begins so.
const BOUNDARY: &str = "===============halite-2f6d1a9c5b3e==";

/// Send a mail.
///
/// ```console
/// $ salt web1 smtp.send_msg 'ops@example.com' 'The disk is full' profile='my-smtp-account'
/// $ salt web1 smtp.send_msg 'ops@example.com,me@example.com' 'Done' subject='Deployment' sender='salt@example.com' server='mail.example.com' use_ssl=False
/// ```
///
/// The server is spoken to with TLS (port 465), or with `use_ssl=False` without (port 25); another
/// port follows its name after a colon.
#[expect(clippy::too_many_arguments, reason = "Salt's signature")]
#[function]
pub fn send_msg(
    cx: &Cx,
    /// Who gets it; several with commas between them.
    recipient: String,
    /// The text.
    message: String,
    /// The subject.
    #[default("Message from Salt".to_owned())]
    subject: String,
    /// Who sends it.
    sender: Option<String>,
    /// The server.
    server: Option<String>,
    /// Speak TLS.
    #[default(Value::from("True"))]
    use_ssl: Value,
    /// Who logs in.
    username: Option<String>,
    /// With which password.
    password: Option<String>,
    /// The option that holds all of these.
    profile: Option<String>,
    /// Files to attach.
    attachments: Option<Vec<String>>,
) -> Result<bool> {
    let account = match &profile {
        None => Dict::new(),
        Some(name) => match crate::config::option(
            cx,
            name.clone(),
            Value::Null,
            false,
            false,
            false,
            false,
            false,
            false,
        )? {
            Value::Dict(account) => account,
            _ => return Err(Error::failed(format!("there is no smtp profile `{name}`"))),
        },
    };
    let usual = |key: &str| cx.opts.get(key).or_else(|| cx.pillar.get(key));
    let own = |key: &str, given: Option<String>| {
        let text = |value: Value| value.to_str().to_string();
        let found = account.get(key).filter(Value::truthy).map(text);
        found.or(given).or_else(|| usual(key).filter(Value::truthy).map(text))
    };
    let usual_tls = usual("smtp.tls").filter(|_| server.is_none());
    let tls = account.get("smtp.tls").or(usual_tls).unwrap_or(use_ssl);
    let tls = !matches!(tls.to_str().as_str(), "False" | "false" | "no" | "0" | "None" | "");
    let Some(server) = own("smtp.server", server) else {
        return Err(Error::failed("smtp.send_msg: which server? Give `server`, or a `profile`"));
    };
    let (server, port) = match server.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') => {
            let port = port.parse().map_err(|_| Error::failed(format!("no port: {port}")))?;
            (name.to_owned(), port)
        }
        _ => (server, if tls { 465 } else { 25 }),
    };
    let Some(sender) = own("smtp.sender", sender) else {
        return Err(Error::failed("smtp.send_msg: who sends it? Give `sender`, or a `profile`"));
    };
    let recipients: Vec<String> = recipient
        .split(',')
        .map(|one| one.trim().to_owned())
        .filter(|one| !one.is_empty())
        .collect();
    for address in recipients.iter().chain([&sender]) {
        // What ends a line would begin a command of its own.
        if address.contains(|c: char| c.is_control() || matches!(c, '<' | '>')) {
            return Err(Error::failed(format!(
                "no address: {}",
                Value::from(address.as_str()).repr()
            )));
        }
    }
    let username = own("smtp.username", username);
    let login = username.zip(own("smtp.password", password));
    let head = format!(
        "Subject: {}\nFrom: {sender}\nTo: {}\n",
        word(&subject),
        recipient.replace(['\r', '\n'], " ")
    );
    let message = composed(cx, &head, &message, &attachments.unwrap_or_default())?;
    cx.host.mail(&Mail { server, port, tls, login, sender, recipients, message })?;
    Ok(true)
}

/// Returns a header's text; one that is not plain is wrapped up.
fn word(text: &str) -> String {
    let text = text.replace(['\r', '\n'], " ");
    if text.is_ascii() { text } else { format!("=?utf-8?b?{}?=", base64(text.as_bytes())) }
}

/// Returns a text with the headers that say how it is written.
fn part(text: &str) -> (String, String) {
    let head = |charset: &str, encoding: &str| {
        format!(
            "Content-Type: text/plain; charset=\"{charset}\"\nMIME-Version: 1.0\n\
             Content-Transfer-Encoding: {encoding}\n"
        )
    };
    if text.is_ascii() {
        (head("us-ascii", "7bit"), text.to_owned())
    } else {
        (head("utf-8", "base64"), lines(text.as_bytes()))
    }
}

fn lines(bytes: &[u8]) -> String {
    bytes.chunks(57).map(|chunk| base64(chunk) + "\n").collect()
}

fn composed(cx: &Cx, head: &str, text: &str, attachments: &[String]) -> Result<String> {
    let (kind, text) = part(text);
    if attachments.is_empty() {
        return Ok(format!("{kind}{head}\n{text}"));
    }
    let mut message = format!(
        "Content-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\nMIME-Version: 1.0\n{head}\n\
         --{BOUNDARY}\n{kind}\n{text}\n"
    );
    for path in attachments {
        let bytes = cx.host.read(Path::new(path))?;
        let name = path.rsplit('/').next().unwrap_or(path).replace(['"', '\r', '\n'], "_");
        message.push_str(&format!(
            "--{BOUNDARY}\nContent-Type: application/octet-stream; Name=\"{name}\"\nMIME-Version: 1.0\n\
             Content-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"{name}\"\n\n{}\n",
            lines(&bytes)
        ));
    }
    message.push_str(&format!("--{BOUNDARY}--\n"));
    Ok(message)
}
