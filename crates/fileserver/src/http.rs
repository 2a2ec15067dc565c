//! HTTP and HTTPS, on a thread of its own.
//!
//! The blocking client may not be used on a thread that serves asynchronous tasks, and callers do
//! not know whether theirs does; so a plain thread does the work and hands the body over in
//! pieces, few at a time.

use std::{
    error::Error as _,
    io::{self, Read},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use reqwest::{
    blocking::{Client, Response as Answer},
    redirect::Policy,
};

use crate::fetch::{FetchError, Request, Response};

const PIECE: usize = 256 << 10;
const MAX_REDIRECTS: usize = 10;

type Piece = Result<Vec<u8>, FetchError>;

struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

pub(crate) fn fetch(request: &Request) -> Result<Response, FetchError> {
    let (give_head, head) = sync_channel(1);
    let (give_body, body) = sync_channel(4);
    let request = request.clone();
    thread::Builder::new()
        .name("fetch".into())
        .spawn(move || work(&request, &give_head, &give_body))
        .map_err(|error| FetchError::of_io(&error))?;
    let ended = |_| FetchError::Failed("the download ended unexpectedly".into());
    let Head { status, headers } = head.recv().map_err(ended)??;
    Ok(Response { status, headers, body: Box::new(Body { pieces: body, left: Vec::new(), at: 0 }) })
}

fn work(
    request: &Request,
    give_head: &SyncSender<Result<Head, FetchError>>,
    give_body: &SyncSender<Piece>,
) {
    let mut answer = match ask(request) {
        Ok(answer) => answer,
        Err(error) => {
            let _ = give_head.send(Err(error));
            return;
        }
    };
    let headers = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    if give_head.send(Ok(Head { status: answer.status().as_u16(), headers })).is_err() {
        return;
    }
    let mut budget = request.settings.max_body;
    loop {
        let mut piece = vec![0; PIECE];
        let piece = match answer.read(&mut piece) {
            Ok(0) => return,
            Ok(read) => {
                piece.truncate(read);
                match budget.checked_sub(read as u64) {
                    Some(left) => {
                        budget = left;
                        Ok(piece)
                    }
                    None => Err(FetchError::Failed("the body is longer than http_max_body".into())),
                }
            }
            Err(error) => Err(FetchError::of_io(&error)),
        };
        let failed = piece.is_err();
        if give_body.send(piece).is_err() || failed {
            return;
        }
    }
}

fn client(request: &Request, with_system_roots: bool) -> Result<Client, FetchError> {
    let settings = &request.settings;
    let failed = |error: reqwest::Error| worded(&error);
    let mut client = Client::builder()
        .connect_timeout(settings.connect_timeout)
        .timeout(settings.request_timeout)
        .redirect(Policy::limited(MAX_REDIRECTS))
        .user_agent(concat!("Salt/3008.3 halite/", env!("CARGO_PKG_VERSION")));
    if !request.verify_ssl {
        client = client.tls_danger_accept_invalid_certs(true);
    }
    let mut own = Vec::new();
    if let Some(bundle) = &settings.ca_bundle {
        let pem = std::fs::read(bundle).map_err(|error| FetchError::of_io(&error))?;
        own = reqwest::Certificate::from_pem_bundle(&pem).map_err(failed)?;
    }
    client = match with_system_roots && own.is_empty() {
        true => client,
        // As Salt: a bundle takes the place of the system's certificates.
        false => client.tls_certs_only(own),
    };
    let (host, _) = request.url.host_and_port();
    // The environment's proxies count too, as they do for Salt's HTTP clients.
    if let Some(proxy) = settings.proxy_for(host) {
        let address = format!("http://{}:{}", proxy.host, proxy.port);
        let mut by = reqwest::Proxy::all(address).map_err(failed)?;
        if let Some((user, password)) = &proxy.credentials {
            by = by.basic_auth(user, password);
        }
        client = client.proxy(by);
    }
    client.build().map_err(failed)
}

fn ask(request: &Request) -> Result<Answer, FetchError> {
    let failed = |error: reqwest::Error| worded(&error);
    // A machine without any certificates can still speak plain HTTP; a redirect to HTTPS will
    // then be refused, not trusted.
    let client = match client(request, true) {
        Err(_) if request.url.scheme == "http" => client(request, false)?,
        other => other?,
    };
    let mut query = client.get(request.url.without_credentials());
    if let Some(user) = &request.url.user {
        query = query.basic_auth(decoded(user), request.url.password.as_deref().map(decoded));
    }
    for (name, value) in &request.headers {
        query = query.header(name, value);
    }
    let answer = query.send().map_err(failed)?;
    let status = answer.status();
    if status.as_u16() >= 400 {
        let reason = status.canonical_reason().unwrap_or("Unknown").to_owned();
        return Err(FetchError::Status { status: status.as_u16(), reason });
    }
    Ok(answer)
}

/// Decodes `%40` in user names and passwords.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Finds the system's own words at the bottom of an error.
fn worded(error: &reqwest::Error) -> FetchError {
    let mut deepest: &dyn std::error::Error = error;
    loop {
        if let Some(io) = deepest.downcast_ref::<io::Error>()
            && io.raw_os_error().is_some()
        {
            return FetchError::of_io(io);
        }
        match deepest.source() {
            Some(source) => deepest = source,
            None => break,
        }
    }
    if error.is_timeout() {
        return FetchError::Failed("HTTP 599: Timeout while connecting or reading".into());
    }
    let top = error.source().map_or_else(|| error.to_string(), |_| deepest.to_string());
    FetchError::Failed(halite_spec::host::network_words(&top))
}

struct Body {
    pieces: Receiver<Piece>,
    left: Vec<u8>,
    at: usize,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.left.len() {
            match self.pieces.recv() {
                Ok(Ok(piece)) => (self.left, self.at) = (piece, 0),
                Ok(Err(error)) => return Err(io::Error::other(error)),
                Err(_) => return Ok(0),
            }
        }
        let count = buffer.len().min(self.left.len() - self.at);
        buffer[..count].copy_from_slice(&self.left[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_decoded() {
        assert_eq!(decoded("a%40b%2"), "a@b%2");
    }
}
