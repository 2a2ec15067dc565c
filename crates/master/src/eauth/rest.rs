//! `rest`: a web service says who people are, and what they may do.
//!
//! Name and password are posted as a form to `^url`. An answer of 200 is a yes; its body may be a
//! list of permissions, which is joined with what the configuration has for exactly that name.

use std::thread;

use halite_fileserver::fetch;
use halite_value::{Dict, Value, json};

use super::{Authenticator, text};
use crate::Settings;

/// People a web service knows.
pub(super) struct Rest;

/// The largest answer that is believed.
const MOST: u64 = 16 << 20;

impl Rest {
    /// Asks the service: `None` is a no, else what it allows.
    fn ask(settings: &Settings, fields: &Dict) -> Option<Value> {
        let (user, password) = (text(fields, "username")?, text(fields, "password")?);
        let config = config(settings);
        let url = config.get("^url").filter(Value::truthy).map(|url| url.to_str());
        let Some(url) = url else {
            tracing::error!("eauth `rest`: `^url` is missing");
            return None;
        };
        let wishes = fetch::Settings::from_opts(settings.opts.values());
        // Unless it is said otherwise, whoever answers has to prove who they are.
        let verify = settings.opts.get("verify_ssl").is_none_or(|verify| verify.truthy());
        // The client may not be used where asynchronous tasks are served.
        let asked = thread::spawn(move || post(&url, &user, &password, &wishes, verify)).join();
        match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::error!("eauth `rest`: {error}");
                None
            }
            Err(_) => None,
        }
    }
}

fn config(settings: &Settings) -> Dict {
    match settings.opts.dict("external_auth").get("rest") {
        Some(Value::Dict(config)) => config,
        _ => Dict::new(),
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn post(
    url: &str,
    user: &str,
    password: &str,
    wishes: &fetch::Settings,
    verify: bool,
) -> Result<Option<Value>, Failed> {
    let mut client = reqwest::blocking::Client::builder()
        .connect_timeout(wishes.connect_timeout)
        .timeout(wishes.request_timeout)
        .tls_danger_accept_invalid_certs(!verify);
    if let Some(bundle) = &wishes.ca_bundle {
        let roots = reqwest::Certificate::from_pem_bundle(&std::fs::read(bundle)?)?;
        client = client.tls_certs_only(roots);
    }
    let form = format!("username={}&password={}", quoted(user), quoted(password));
    let answer = client
        .build()?
        .post(url)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .map_err(reqwest::Error::without_url)?;
    if answer.status().as_u16() != 200 {
        return Ok(None);
    }
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    let mut body = String::new();
    std::io::Read::read_to_string(&mut std::io::Read::take(answer, MOST), &mut body)?;
    decoded(&kind, &body)
}

/// Salt believes what the answer says it is; what is neither JSON nor YAML is no answer to it.
fn decoded(kind: &str, body: &str) -> Result<Option<Value>, Failed> {
    if kind.contains("json") {
        return Ok(Some(json::from_str(body)?));
    }
    if kind.contains("yaml") {
        return Ok(Some(halite_value::yaml::load_str(body)?));
    }
    Err(format!("the service answers with `{kind}`, not with JSON or YAML").into())
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

impl Authenticator for Rest {
    fn check(&self, settings: &Settings, fields: &Dict) -> bool {
        Self::ask(settings, fields).is_some()
    }

    fn acl(&self, settings: &Settings, fields: &Dict) -> Option<Vec<Value>> {
        // A token has no password: then the configuration decides.
        let user = text(fields, "username")?;
        text(fields, "password")?;
        let own = config(settings).get(&*user);
        let mut list = own.and_then(|list| list.items_of_sequence()).unwrap_or_default();
        match Self::ask(settings, fields)? {
            Value::Null => {}
            given => list.extend(given.items_of_sequence()?),
        }
        (!list.is_empty()).then_some(list)
    }
}

#[cfg(test)]
mod tests {
    use halite_value::list;

    use super::*;

    #[test]
    fn answers() {
        let check = |kind: &str, body: &str| decoded(kind, body).ok().flatten();
        assert_eq!(check("application/json", "[\"test.*\"]"), Some(list!["test.*"]));
        assert_eq!(check("application/json; charset=utf-8", "null"), Some(Value::Null));
        assert_eq!(check("application/x-yaml", "- test.*\n"), Some(list!["test.*"]));
        assert_eq!(check("application/json", "yes"), None);
        assert_eq!(check("text/html", "<p>Sign in</p>"), None, "a page that asks is no yes");
        assert_eq!(quoted("a b&c=ä"), "a+b%26c%3D%C3%A4");
    }
}
