//! `http`: a web server answers as it should.
//!
//! A question may change something on the other side, so with `test=True` none is asked, unless
//! the author names an address for it (`test_url`). Salt counts a check that did not happen as
//! «not found», and so do we.

use halite_modules::http;
use halite_pyregex::{Flags, PyRegex};
use halite_spec::{Applied, Args, Cx, Error, Keys, Outcome, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value};

states! {
    /// Answers of web servers.
    "http": "query" => Query,
    "wait_for_successful_query" => WaitForSuccessfulQuery,
}

const NOTHING_ASKED: &str = " Either match text (match) or a status code (status) is required.";

/// What is expected of an answer.
struct Wanted {
    r#match: Option<String>,
    match_type: String,
    status: Option<Value>,
    status_type: String,
}

impl Wanted {
    fn is_empty(&self) -> bool {
        self.r#match.is_none() && self.status.is_none()
    }

    /// Compares; the result (None: nothing was compared) and the comment.
    fn judge(&self, answer: &Dict) -> Result<(Option<bool>, String)> {
        let mut result = None;
        let mut comments = Vec::new();
        let searched = |pattern: &str, text: &str| -> Result<bool> {
            let pattern = PyRegex::cached(pattern, Flags::default())
                .map_err(|error| Error::failed(error.to_string()))?;
            pattern.is_match(text).map_err(|error| Error::failed(error.to_string()))
        };
        if let Some(wanted) = &self.r#match {
            let text = answer.get("text").map(|text| text.to_string()).unwrap_or_default();
            let (found, what) = match self.match_type.as_str() {
                "string" => (text.contains(wanted.as_str()), "text"),
                "pcre" => (searched(wanted, &text)?, "pattern"),
                _ => (false, ""),
            };
            if !what.is_empty() {
                result = Some(found);
                let not = if found { "" } else { "not " };
                comments.push(format!("Match {what} \"{wanted}\" was {not}found."));
            }
        }
        if let Some(wanted) = &self.status {
            let got = answer.get("status").map(|status| status.to_string()).unwrap_or_default();
            let verdict = match self.status_type.as_str() {
                "list" => {
                    let items = wanted.items_of_sequence().unwrap_or_else(|| vec![wanted.clone()]);
                    let found = items.iter().any(|item| item.to_string() == got);
                    let text = if found {
                        format!("Status {got} was found.")
                    } else {
                        format!("Statuses {wanted} were not found.")
                    };
                    Some((found, text))
                }
                "pcre" => {
                    let found = searched(&wanted.to_string(), &got)?;
                    let not = if found { "" } else { "not " };
                    Some((found, format!("Status pattern \"{wanted}\" was {not}found.")))
                }
                "string" => {
                    let found = wanted.to_string() == got;
                    let not = if found { "" } else { "not " };
                    Some((found, format!("Status {wanted} was {not}found.")))
                }
                _ => None,
            };
            if let Some((found, text)) = verdict {
                result = Some(found && result != Some(false));
                comments.push(text);
            }
        }
        Ok((result, comments.join(" ")))
    }
}

/// What both states do.
struct Check<'a> {
    url: &'a str,
    wait_for: Option<i64>,
    wanted: Wanted,
    kwargs: &'a Dict,
}

impl Check<'_> {
    fn asked(&self, cx: &Cx, url: &str) -> Result<Dict> {
        let kwargs = self.kwargs.shallow_copy();
        if self.wanted.r#match.is_some() {
            kwargs.insert("text", true);
        }
        if self.wanted.status.is_some() {
            kwargs.insert("status", true);
        }
        match self.wait_for {
            Some(seconds) => http::ask_until(cx, url, seconds, &kwargs),
            None => http::ask(cx, url, &kwargs),
        }
    }

    fn plan(&self) -> Result<Plan> {
        if self.wanted.is_empty() {
            return Err(Error::failed(NOTHING_ASKED));
        }
        Ok(Plan::unknown())
    }

    fn apply(&self, cx: &Cx) -> Result<Applied> {
        let answer = self.asked(cx, self.url)?;
        let (result, comment) = self.wanted.judge(&answer)?;
        let mut applied = Applied::changes(Dict::new()).comment(comment);
        applied.result = result.or(Some(true));
        applied.extra.insert("data", answer);
        Ok(applied)
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        self.plan()?;
        let test_url = self.kwargs.get("test_url").filter(Value::truthy);
        let (answer, text) = match test_url {
            Some(url) => {
                let url = url.to_string();
                (self.asked(cx, &url)?, format!(" (TEST MODE, TEST URL WAS: {url})"))
            }
            None => (Dict::new(), " (TEST MODE)".to_owned()),
        };
        let (_, comment) = self.wanted.judge(&answer)?;
        let outcome = Outcome::new(None, Dict::new(), comment + &text);
        outcome.extra.insert("data", answer);
        Ok(Some(outcome))
    }
}

/// Ask a web server, and check what it says.
#[derive(Args)]
pub struct Query {
    /// The address.
    name: String,
    /// A text, or a pattern, that must be in the answer.
    r#match: Option<String>,
    /// `string` or `pcre`.
    #[default("string".to_owned())]
    match_type: String,
    /// The status the answer must have; a list or a pattern with `status_type`.
    status: Option<Value>,
    /// `string`, `list` or `pcre`.
    #[default("string".to_owned())]
    status_type: String,
    /// Ask again for so many seconds until there is no error.
    wait_for: Option<i64>,
    /// As for the function `http.query`: `method`, `data`, `header_dict`, `verify_ssl` …
    kwargs: Rest,
}

impl Query {
    fn check(&self) -> Check<'_> {
        let wanted = Wanted {
            r#match: self.r#match.clone(),
            match_type: self.match_type.clone(),
            status: self.status.clone(),
            status_type: self.status_type.clone(),
        };
        Check { url: &self.name, wait_for: self.wait_for, wanted, kwargs: &self.kwargs.kwargs }
    }
}

impl State for Query {
    type Seen = ();
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        self.check().plan()
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        self.check().apply(cx)
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        self.check().rehearse(cx)
    }
}

/// Ask a web server until it answers without an error, and check what it says.
#[derive(Args)]
pub struct WaitForSuccessfulQuery {
    /// The address.
    name: String,
    /// For how many seconds to try.
    #[default(300)]
    wait_for: i64,
    /// As for `http.query`; `request_interval` is the pause between two tries.
    kwargs: Rest,
}

impl WaitForSuccessfulQuery {
    fn check(&self) -> Check<'_> {
        let text = |name: &str| {
            let value = self.kwargs.kwargs.get(name).filter(|value| !value.is_null());
            value.map(|value| value.to_string())
        };
        let wanted = Wanted {
            r#match: text("match"),
            match_type: text("match_type").unwrap_or_else(|| "string".into()),
            status: self.kwargs.kwargs.get("status").filter(|value| !value.is_null()),
            status_type: text("status_type").unwrap_or_else(|| "string".into()),
        };
        let wait_for = Some(self.wait_for);
        Check { url: &self.name, wait_for, wanted, kwargs: &self.kwargs.kwargs }
    }
}

impl State for WaitForSuccessfulQuery {
    type Seen = ();

    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        self.check().plan()
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        self.check().apply(cx)
    }

    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        self.check().rehearse(cx)
    }
}
