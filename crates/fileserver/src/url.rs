//! URLs as Salt reads them.
//!
//! `salt://path?saltenv=env` is no proper URL: `?` and `&` may be part of a file name, and
//! `salt://|name` says that everything after the bar is one. Other URLs are taken apart as
//! Python's `urlparse` does.

/// A `salt://` source, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaltUrl {
    /// Relative, `|` removed.
    pub path: String,
    pub saltenv: Option<String>,
    /// It was written with `|`: nothing in the path is an option.
    pub escaped: bool,
}

/// Takes a `salt://` URL apart; `None` for any other text.
pub fn parse_salt(url: &str) -> Option<SaltUrl> {
    let resource = url.strip_prefix("salt://")?;
    let (path, saltenv) = match (resource.split_once("?env="), resource.split_once("?saltenv=")) {
        // `env` has long been refused; Salt ignores it.
        (Some((path, _)), _) => (path, None),
        (None, Some((path, saltenv))) => (path, Some(saltenv.to_owned())),
        (None, None) => (resource, None),
    };
    let path = path.trim_start_matches('/');
    let escaped = path.starts_with('|');
    Some(SaltUrl { path: path.trim_start_matches('|').to_owned(), saltenv, escaped })
}

/// Returns the `salt://` URL of a path.
pub fn create_salt(path: &str, saltenv: Option<&str>) -> String {
    let path = path.replace('\\', "/");
    match saltenv {
        Some(saltenv) => format!("salt://{path}?saltenv={saltenv}"),
        None => format!("salt://{path}"),
    }
}

/// A URL, taken apart; without a scheme all is path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case; empty if there is none.
    pub scheme: String,
    pub user: Option<String>,
    pub password: Option<String>,
    /// Host and port as written, without user and password.
    pub host_port: String,
    pub path: String,
    pub query: String,
}

impl Url {
    pub fn parse(text: &str) -> Self {
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme))
        else {
            return Self { path: text.to_owned(), ..Self::default() };
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) => match after.find('/') {
                Some(at) => after.split_at(at),
                None => (after, ""),
            },
            None => ("", rest),
        };
        let (credentials, host_port) = match authority.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, authority),
        };
        let (user, password) = match credentials.map(|both| both.split_once(':').ok_or(both)) {
            Some(Ok((user, password))) => (Some(user.to_owned()), Some(password.to_owned())),
            Some(Err(user)) => (Some(user.to_owned()), None),
            None => (None, None),
        };
        Self {
            scheme: scheme.to_ascii_lowercase(),
            user,
            password,
            host_port: host_port.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        }
    }

    /// Returns host and port; `None` for the second if it is not given.
    pub fn host_and_port(&self) -> (&str, Option<u16>) {
        if let Some(rest) = self.host_port.strip_prefix('[')
            && let Some((host, after)) = rest.split_once(']')
        {
            return (host, after.strip_prefix(':').and_then(|port| port.parse().ok()));
        }
        match self.host_port.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()),
            None => (&self.host_port, None),
        }
    }

    /// Returns the URL without user and password: fit to be sent, shown and logged.
    pub fn without_credentials(&self) -> String {
        let query = if self.query.is_empty() { "" } else { "?" };
        format!("{}://{}{}{query}{}", self.scheme, self.host_port, self.path, self.query)
    }
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    // One letter is a drive of Windows, not a scheme.
    text.len() > 1
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Returns a text with user and password of HTTP URLs taken out, for messages.
pub fn redacted(text: &str) -> String {
    for scheme in ["https://", "http://"] {
        if let Some(start) = text.to_ascii_lowercase().find(scheme)
            && let Some(at) = text[start..].rfind('@')
        {
            let head = &text[..start + scheme.len()];
            return format!("{head}<redacted>{}", &text[start + at..]);
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salt(url: &str, path: &str, saltenv: Option<&str>, escaped: bool) {
        let parsed = parse_salt(url).expect("a salt URL");
        assert_eq!((parsed.path.as_str(), parsed.saltenv.as_deref()), (path, saltenv), "{url}");
        assert_eq!(parsed.escaped, escaped, "{url}");
    }

    #[test]
    fn salt_urls() {
        salt("salt://a/b", "a/b", None, false);
        salt("salt:///a/b", "a/b", None, false);
        salt("salt://a?saltenv=dev", "a", Some("dev"), false);
        salt("salt://|a?b&c", "a?b&c", None, true);
        salt("salt://|a?b?saltenv=x", "a?b", Some("x"), true);
        assert_eq!(parse_salt("http://x"), None);
    }

    #[test]
    fn other_urls() {
        let url = Url::parse("HTTPS://joe:pa:ss@host.example:8443/a/b?x=1&y#frag");
        assert_eq!(url.scheme, "https");
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("joe"), Some("pa:ss")));
        assert_eq!(url.host_and_port(), ("host.example", Some(8443)));
        assert_eq!(url.without_credentials(), "https://host.example:8443/a/b?x=1&y");
        assert_eq!(Url::parse("/etc/x:y").path, "/etc/x:y");
        assert_eq!(Url::parse("http://[::1]:80/").host_and_port(), ("::1", Some(80)));
        assert_eq!(redacted("see https://a:b@c/d"), "see https://<redacted>@c/d");
    }
}
