//! `http`: questions to web servers.
//!
//! A server that answers with an error status and one that cannot be reached at all are both
//! ordinary returns with an `error` key; only a question that cannot be asked is a failure. Every
//! `backend` of Salt is the one client here.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use halite_spec::{
    Cx, Error, Rest, Result, Template, function,
    host::{HttpRequest, HttpResponse, Write},
    module,
};
use halite_value::{Dict, Value, json, yaml};

use crate::xml;

module! {
    /// Questions to web servers.
    "http": query, wait_for_successful_query, update_ca_bundle,
}

const AGENT: &str = "Salt/3008.3 http.query()";

/// Where systems keep the certificates they trust.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.trust.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// Keyword arguments by name.
struct Given<'a>(&'a Dict);

impl Given<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.truthy())
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| value.to_string())
    }
}

/// `a=1&b=x+y`
pub fn form_encoded(pairs: &[(String, String)]) -> String {
    let parts = pairs.iter().map(|(key, value)| format!("{}={}", quoted(key), quoted(value)));
    parts.collect::<Vec<_>>().join("&")
}

/// As Python's `quote_plus`.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(byte.into());
            }
            b' ' => out.push('+'),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

fn pairs_of(value: &Value) -> Vec<(String, String)> {
    let entries = value.as_dict().into_iter().flatten();
    entries.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// `Name: value` lines; a line without a colon is left out, as in Salt.
fn headers_of_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let parts = lines.filter_map(|line| line.split_once(':'));
    parts.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// Runs a text through a template engine, if asked to.
fn rendered(cx: &Cx, given: &Given, text: String, kind: &str) -> Result<String> {
    if !given.flag(&format!("{kind}_render")) {
        return Ok(text);
    }
    let engine = given.text(&format!("{kind}_renderer")).unwrap_or_else(|| "jinja".into());
    // As Salt: without values to put in there is nothing to render.
    let Some(Value::Dict(context)) = given.get("template_dict") else { return Ok(text) };
    let saltenv = cx.saltenv();
    let template = Template { engine, text, source: None, saltenv, sls: None, context };
    cx.runtime.render(cx, &template)
}

fn body_of(cx: &Cx, given: &Given) -> Result<Option<Vec<u8>>> {
    if let Some(path) = given.text("data_file") {
        let bytes = cx.host.read(Path::new(&path)).map_err(|error| match error.is_missing() {
            true => Error::failed(format!("[Errno 2] No such file or directory: '{path}'")),
            false => error.into(),
        })?;
        return match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(rendered(cx, given, text, "data")?.into_bytes())),
            Err(error) => Ok(Some(error.into_bytes())),
        };
    }
    Ok(match given.get("data") {
        None => None,
        Some(Value::Bytes(bytes)) => Some(bytes.to_vec()),
        Some(data @ Value::Dict(_)) => Some(form_encoded(&pairs_of(&data)).into_bytes()),
        Some(data) => Some(rendered(cx, given, data.to_string(), "data")?.into_bytes()),
    })
}

fn headers_for(cx: &Cx, given: &Given) -> Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    if let Some(path) = given.text("header_file") {
        let text = rendered(cx, given, cx.host.read_text(Path::new(&path))?, "header")?;
        headers.extend(headers_of_lines(text.lines()));
    }
    match given.get("header_dict") {
        Some(dict @ Value::Dict(_)) => headers.extend(pairs_of(&dict)),
        Some(text) => headers.extend(headers_of_lines(text.to_string().lines())),
        None => {}
    }
    if let Some(list) = given.get("header_list") {
        let lines: Vec<String> = match list.items_of_sequence() {
            Some(lines) => lines.iter().map(Value::to_string).collect(),
            None => list.to_string().lines().map(str::to_owned).collect(),
        };
        headers.extend(headers_of_lines(lines.iter().map(String::as_str)));
    }
    let has = |name: &str, headers: &[(String, String)]| {
        headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    };
    if !has("user-agent", &headers) || given.get("agent").is_some() {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("user-agent"));
        let agent = given.text("agent").unwrap_or_else(|| AGENT.into());
        headers.push(("User-Agent".into(), agent));
    }
    Ok(headers)
}

/// The proxy of the configuration, unless the host is excepted.
fn proxy_for(cx: &Cx, url: &str) -> Option<String> {
    let host = cx.opt_str("proxy_host").filter(|host| !host.is_empty())?;
    let port = cx.opt("proxy_port").filter(Value::truthy)?;
    let name = url.split("://").nth(1)?.split(['/', ':', '?']).next()?;
    let excepted = cx.opt("no_proxy").and_then(|list| list.items_of_sequence()).unwrap_or_default();
    if excepted.iter().any(|own| own.as_str() == Some(name)) {
        return None;
    }
    let user = cx.opt_str("proxy_username").filter(|user| !user.is_empty());
    let login =
        user.map(|user| format!("{user}:{}@", cx.opt_str("proxy_password").unwrap_or_default()));
    Some(format!("http://{}{host}:{port}", login.unwrap_or_default()))
}

fn paths_of(value: &Value) -> Vec<PathBuf> {
    let items = value.items_of_sequence().unwrap_or_else(|| vec![value.clone()]);
    items.iter().map(|path| PathBuf::from(path.to_string())).collect()
}

fn request_of(cx: &Cx, url: &str, given: &Given) -> Result<HttpRequest> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    if !matches!(scheme, Some("http" | "https")) {
        return Err(Error::failed(format!("Unsupported url scheme: {url}")));
    }
    let method = given.text("method").unwrap_or_else(|| "GET".into()).to_uppercase();
    let mut request = HttpRequest::new(method, url);
    let params = given.get("params").map(|params| match params {
        Value::Dict(_) => form_encoded(&pairs_of(&params)),
        text => text.to_string(),
    });
    if let Some(params) = params.filter(|params| !params.is_empty()) {
        let joint = if url.contains('?') { '&' } else { '?' };
        request.url = format!("{url}{joint}{params}");
    }
    request.headers = headers_for(cx, given)?;
    request.body = body_of(cx, given)?;
    if given.flag("formdata") {
        multipart(given, &mut request);
    }
    let typed = request.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case("content-type"));
    // Of other methods the client says no type, so that servers guess as they do for Salt.
    if !typed && request.method == "POST" {
        let kind = "application/x-www-form-urlencoded";
        request.headers.push(("Content-Type".into(), kind.into()));
    }
    if let (Some(user), Some(password)) = (given.text("username"), given.text("password")) {
        request.basic_auth = Some((user, password));
    } else if let Some(auth) = given.get("auth").and_then(|auth| auth.items_of_sequence())
        && let [user, password] = auth.as_slice()
    {
        request.basic_auth = Some((user.to_string(), password.to_string()));
    }
    request.verify = match given.get("verify_ssl") {
        Some(verify) => verify.truthy(),
        None => cx.opt("verify_ssl").is_none_or(|verify| verify.truthy()),
    };
    request.ca_bundle =
        given.text("ca_bundle").or_else(|| cx.opt_str("ca_bundle").map(Into::into)).map(Into::into);
    request.client_cert = given.get("cert").map(|cert| paths_of(&cert)).unwrap_or_default();
    request.proxy = proxy_for(cx, url);
    let seconds = |name: &str| {
        let seconds = cx.opt(name).and_then(|seconds| seconds.as_float());
        seconds.filter(|seconds| *seconds > 0.0).map(Duration::from_secs_f64)
    };
    if let Some(time) = seconds("http_connect_timeout") {
        request.connect_timeout = time;
    }
    if let Some(time) = seconds("http_request_timeout") {
        request.timeout = time;
    }
    let limit = cx.opt("http_max_body").and_then(|limit| limit.to_int());
    if let Some(limit) = limit.and_then(|limit| u64::try_from(limit).ok()) {
        request.max_body = limit;
    }
    Ok(request)
}

/// The body as a file of a form.
fn multipart(given: &Given, request: &mut HttpRequest) {
    let boundary = "----halite-form-7MA4YWxkTrZu0gW";
    let field = given.text("formdata_fieldname").unwrap_or_else(|| "file".into());
    let name = given.text("formdata_filename").unwrap_or_else(|| "file".into());
    let mut body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    body.extend(request.body.take().unwrap_or_default());
    body.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
    request.body = Some(body);
    request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
    let kind = format!("multipart/form-data; boundary={boundary}");
    request.headers.push(("Content-Type".into(), kind));
}

/// Turns a body into data, or finds that it is text.
fn decoded(answer: &HttpResponse, text: &str, kind: Option<&str>) -> Result<Option<Value>> {
    let kind = match kind {
        Some(kind) if kind != "auto" => kind,
        _ => match answer.header("content-type").unwrap_or_default() {
            found if found.contains("application/json") => "json",
            found if found.contains("xml") => "xml",
            _ => "plain",
        },
    };
    let failed = |error: String| Error::failed(error);
    Ok(match kind {
        "json" => Some(json::from_str(text).map_err(|error| Error::failed(error.to_string()))?),
        "xml" => {
            let root = xml::parse(text).map_err(failed)?;
            Some(Value::list(root.children.iter().map(xml::Element::to_value)))
        }
        "yaml" => Some(yaml::load_str(text).map_err(|error| Error::failed(error.to_string()))?),
        _ => None,
    })
}

/// Asks a server and returns what [`query`] does.
pub fn ask(cx: &Cx, url: &str, kwargs: &Dict) -> Result<Dict> {
    let given = Given(kwargs);
    let ret = Dict::new();
    if given.flag("test") {
        if given.get("test_url").is_none() {
            return Ok(ret);
        }
        ret.insert("test", true);
    }
    let request = request_of(cx, url, &given)?;
    let answer = match cx.host.http(&request) {
        Ok(answer) => answer,
        Err(halite_spec::host::Error::Other(text)) => {
            if given.flag("status") {
                ret.insert("status", 0);
            }
            ret.insert("error", text);
            return Ok(ret);
        }
        Err(error) => return Err(error.into()),
    };
    let body = if given.get("decode_body").is_none_or(|decode| decode.truthy()) {
        Value::from(String::from_utf8_lossy(&answer.body).into_owned())
    } else {
        Value::Bytes(answer.body.as_slice().into())
    };
    let raises = given.get("raise_error").is_none_or(|raise| raise.truthy());
    if answer.status >= 400 && raises {
        ret.insert("status", i64::from(answer.status));
        ret.insert("error", format!("HTTP {}: {}", answer.status, answer.reason));
        ret.insert("body", body);
        return Ok(ret);
    }
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    ret.insert("body", body);
    if let Some(path) = given.text("text_out") {
        cx.host.write(Path::new(&path), &answer.body, &Write::default())?;
    }
    let lines = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
    let lines = lines.collect::<String>();
    if let Some(path) = given.text("headers_out")
        && cx.host.exists(Path::new(&path))?
    {
        cx.host.write(Path::new(&path), lines.as_bytes(), &Write::default())?;
    }
    if given.flag("status") {
        ret.insert("status", i64::from(answer.status));
    }
    if given.flag("headers") {
        ret.insert("headers", lines);
    }
    if given.flag("decode") {
        match decoded(&answer, &text, given.text("decode_type").as_deref())? {
            Some(data) => ret.insert("dict", data),
            None => ret.insert("text", text.as_str()),
        };
        if let Some(path) = given.text("decode_out") {
            cx.host.write(Path::new(&path), text.as_bytes(), &Write::default())?;
        }
    }
    if given.flag("text") {
        ret.insert("text", text);
    }
    Ok(ret)
}

/// Ask a web server; returns `body`, and on wish `status`, `headers`, `text` and, decoded, `dict`.
///
/// ```console
/// $ salt '*' http.query http://somelink.com/ status=True decode=True
/// ```
///
/// With a number as `status` the command has failed unless the server's is that one.
#[function]
pub fn query(
    cx: &Cx,
    /// The address.
    url: String,
    /// `method`, `params`, `data`, `data_file`, `header_dict`, `header_list`, `header_file`,
    /// `username`, `password`, `decode`, `decode_type`, `status`, `headers`, `text`, `text_out`,
    /// `verify_ssl`, `ca_bundle`, `cert`, `agent`, `raise_error` …
    kwargs: Rest,
) -> Result<Dict> {
    let ret = ask(cx, &url, &kwargs.kwargs)?;
    // differs: whoever writes `status: 200` means that one. Another ends with 1, so that an
    // orchestration tries again or stops; what is returned stays genuine Salt's.
    if let Some(expected @ Value::Int(_)) = kwargs.kwargs.get("status")
        && ret.get("status") != Some(expected)
    {
        cx.job.set_retcode(1);
    }
    Ok(ret)
}

/// Asks until the answer is no error, or the time is over.
pub fn ask_until(cx: &Cx, url: &str, wait_for: i64, kwargs: &Dict) -> Result<Dict> {
    let pause = kwargs.get("request_interval").and_then(|pause| pause.as_float()).unwrap_or(1.0);
    let pause = Duration::try_from_secs_f64(pause).unwrap_or(Duration::from_secs(1));
    let began = cx.host.now();
    loop {
        let ret = ask(cx, url, kwargs)?;
        let gone = cx.host.now().duration_since(began).unwrap_or_default().as_secs_f64();
        if !ret.contains("error") || gone > wait_for as f64 {
            return Ok(ret);
        }
        cx.sleep(pause.max(Duration::from_millis(10)))?;
    }
}

/// Ask a web server again and again until it answers without an error.
///
/// ```console
/// $ salt web1 http.wait_for_successful_query https://example.org/health
/// ```
#[function]
pub fn wait_for_successful_query(
    cx: &Cx,
    /// The address.
    url: String,
    /// For how many seconds to try.
    #[default(300)]
    wait_for: i64,
    /// As for `http.query`, and `request_interval`, the seconds between two tries.
    kwargs: Rest,
) -> Result<Dict> {
    ask_until(cx, &url, wait_for, &kwargs.kwargs)
}

/// Fetch the file of certificates the machine trusts, and add own ones to it.
///
/// ```console
/// $ salt '*' http.update_ca_bundle target=/path/to/cacerts.pem merge_files=/path/to/mycert.pem
/// ```
#[function]
pub fn update_ca_bundle(
    cx: &Cx,
    /// The file; the system's own unless given.
    target: Option<String>,
    /// Where to fetch it from.
    source: Option<String>,
    /// PEM files to append: a list, or texts with commas.
    merge_files: Option<halite_spec::Strings>,
) -> Result<Value> {
    let usual = || {
        let found = BUNDLES.iter().find(|path| cx.host.exists(Path::new(path)).unwrap_or(false));
        found.copied().unwrap_or(BUNDLES[0]).to_owned()
    };
    let target = target.or_else(|| cx.opt_str("ca_bundle").map(Into::into)).unwrap_or_else(usual);
    let target = Path::new(&target);
    let source = source.unwrap_or_else(|| "https://curl.se/ca/cacert.pem".into());
    let answer = cx.host.http(&request_of(cx, &source, &Given(&Dict::new()))?);
    let answer = match answer {
        Ok(answer) if answer.status < 400 => answer,
        Ok(answer) => {
            let text = format!("HTTP {}: {}", answer.status, answer.reason);
            return Err(Error::failed(format!("cannot fetch {source}: {text}")));
        }
        Err(error) => return Err(Error::failed(format!("cannot fetch {source}: {error}"))),
    };
    let mut bundle = answer.body;
    for file in merge_files.unwrap_or_default().iter() {
        let path = Path::new(file);
        let added = cx.host.read(path)?;
        if !bundle.windows(added.len().max(1)).any(|part| part == added) {
            bundle.push(b'\n');
            bundle.extend(added);
        }
    }
    if let Some(folder) = target.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(target, &bundle, &Write::default())?;
    Ok(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_encoded_as_python_does() {
        let pairs = [("a".to_owned(), "x y".to_owned()), ("b".into(), "[1, 2]".into())];
        assert_eq!(form_encoded(&pairs), "a=x+y&b=%5B1%2C+2%5D");
    }

    #[test]
    fn lines_without_a_colon_are_no_headers() {
        let found = headers_of_lines(["X-B: c:d", "Y"].into_iter());
        assert_eq!(found, [("X-B".to_owned(), "c:d".to_owned())]);
    }
}
