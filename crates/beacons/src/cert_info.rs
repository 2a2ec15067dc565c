//! `cert_info`: an event with the certificates that expire soon.
//!
//! Certificates are read by the program `openssl`.

use halite_spec::{Cx, Error, Result, host::Command};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon, config::number};

beacon! {
    /// Tell of certificates that expire soon.
    "cert_info": CertInfo
}

/// Salt tells this many days ahead.
const DAYS: f64 = 45.0;

#[derive(Default)]
pub struct CertInfo;

impl Watch for CertInfo {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list()?;
        match config.get("files") {
            None => {
                Err(config.problem("Configuration for cert_info beacon must contain files option."))
            }
            Some(files) if files.items_of_sequence().is_none() => Err(config
                .problem_at("files", "Configuration for cert_info beacon: files must be a list.")),
            Some(_) => Ok(()),
        }
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let preset = config.get("notify_days").and_then(|days| number(&days)).unwrap_or(DAYS);
        let files = config.get("files").and_then(|files| files.items_of_sequence());
        let now = jiff::Timestamp::try_from(cx.host.now()).unwrap_or_default().as_second();
        let mut found = Vec::new();
        for file in files.unwrap_or_default() {
            let wanted: Vec<(String, f64)> = match &file {
                Value::Dict(files) => files
                    .entries()
                    .into_iter()
                    .map(|(path, options)| {
                        let days = options.get("notify_days").and_then(|days| number(&days));
                        (path.to_str().to_string(), days.unwrap_or(preset))
                    })
                    .collect(),
                path => vec![(path.to_str().to_string(), preset)],
            };
            for (path, days) in wanted {
                match certificate(cx, &path) {
                    Ok((info, until)) => {
                        let left = (until - now) / 86_400;
                        // A negative number of days means always.
                        if days < 0.0 || (left as f64) < days {
                            info.insert("has_expired", until < now);
                            found.push(Value::from(info));
                        }
                    }
                    Err(error) => tracing::error!("Unable to load certificate {path}: {error}"),
                }
            }
        }
        Ok(if found.is_empty() { Vec::new() } else { vec![entries! { "certificates" => found }] })
    }
}

/// Returns what a certificate says, and when it ends.
fn certificate(cx: &Cx, path: &str) -> Result<(Dict, i64)> {
    let options = ["-noout", "-dates", "-serial", "-subject", "-issuer", "-nameopt"];
    let command = Command::line(["openssl", "x509", "-in", path])
        .args(options)
        .args(["sep_multiline,utf8", "-dateopt", "iso_8601"])
        .query();
    let output = cx.host.run(&command)?;
    if !output.ok() {
        return Err(Error::failed(output.stderr_text().trim().to_owned()));
    }
    read(path, &output.stdout_text())
        .ok_or_else(|| Error::failed(format!("openssl says what cannot be understood of {path}")))
}

fn read(path: &str, text: &str) -> Option<(Dict, i64)> {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::trim)
    };
    let (after, before) = (value("notAfter")?, value("notBefore")?);
    let until: jiff::Timestamp = after.replace(' ', "T").parse().ok()?;
    let raw = |date: &str| {
        let digits: String = date.chars().filter(char::is_ascii_digit).collect();
        format!("{digits}Z")
    };
    let (subject, issuer) = (name(text, "subject"), name(text, "issuer"));
    let joined = |name: &Dict| {
        let parts = name.entries();
        let parts: Vec<String> =
            parts.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
        parts.join(",")
    };
    let info = entries! {
        "cert_path" => path, "issuer" => joined(&issuer), "issuer_dict" => &issuer,
        "notAfter_raw" => raw(after), "notAfter" => after, "notBefore_raw" => raw(before),
        "notBefore" => before, "serial_number" => value("serial").unwrap_or_default(),
        "subject" => joined(&subject), "subject_dict" => &subject,
    };
    Some((info, until.as_second()))
}

/// Reads a name that openssl wrote on lines of its own.
fn name(text: &str, which: &str) -> Dict {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("{which}=")));
    lines.next();
    lines
        .take_while(|line| line.starts_with(' '))
        .filter_map(|line| line.trim().split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_openssl_says() {
        let text = "notBefore=2026-11-16 02:03:28Z\nnotAfter=2026-12-16 02:03:28Z\nserial=71A5\n\
                    subject=\n    C=US\n    O=Example\n    CN=www.example.com\n\
                    issuer=\n    CN=Example CA\n";
        let (info, until) = read("/c.pem", text).unwrap();
        assert_eq!(until, 1_797_386_608);
        assert_eq!(
            info.get("subject"),
            Some("C=\"US\",O=\"Example\",CN=\"www.example.com\"".into())
        );
        assert_eq!(info.get("issuer"), Some("CN=\"Example CA\"".into()));
        assert_eq!(info.get("notAfter_raw"), Some("20261216020328Z".into()));
    }
}
