//! Asking HTTP servers, and trying whether somebody listens.
//!
//! The blocking client may not be used on a thread that serves asynchronous tasks, and callers do
//! not know whether theirs does; so each question has a plain thread of its own.

use std::{
    error::Error as _,
    io::{self, Read},
    net::{TcpStream, ToSocketAddrs, UdpSocket},
    thread,
    time::Duration,
};

use halite_spec::host::{Error, HttpRequest, HttpResponse, Result, network_words};
use reqwest::{
    Certificate, Identity, Method, Proxy,
    blocking::{Client, Response},
    redirect::Policy,
};

const MAX_REDIRECTS: usize = 10;

pub(super) fn ask(request: &HttpRequest) -> Result<HttpResponse> {
    let request = request.clone();
    let worker = thread::Builder::new().name("http".into()).spawn(move || work(&request));
    let worker = worker.map_err(|error| Error::Other(words_of(&error)))?;
    worker.join().unwrap_or_else(|_| Err(Error::Other("the request ended unexpectedly".into())))
}

fn work(request: &HttpRequest) -> Result<HttpResponse> {
    // A machine without any certificates can still speak plain HTTP.
    let client = match client(request, true) {
        Err(_) if request.url.starts_with("http://") => client(request, false)?,
        other => other?,
    };
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| Error::Other(format!("Unknown method {}", request.method)))?;
    let mut query = client.request(method, &request.url);
    for (name, value) in &request.headers {
        query = query.header(name, value);
    }
    if let Some((user, password)) = &request.basic_auth {
        query = query.basic_auth(user, Some(password));
    }
    if let Some(body) = &request.body {
        query = query.body(body.clone());
    }
    let answer = query.send().map_err(|error| worded(&error))?;
    read(answer, request.max_body)
}

fn read(answer: Response, limit: u64) -> Result<HttpResponse> {
    let status = answer.status();
    let headers = answer.headers().iter().map(|(name, value)| {
        (titled(name.as_str()), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let headers = headers.collect();
    let mut body = Vec::new();
    answer
        .take(limit.saturating_add(1))
        .read_to_end(&mut body)
        .map_err(|error| Error::Other(words_of(&error)))?;
    if body.len() as u64 > limit {
        return Err(Error::Other("the body is longer than http_max_body".into()));
    }
    let reason = status.canonical_reason().unwrap_or("Unknown").to_owned();
    Ok(HttpResponse { status: status.as_u16(), reason, headers, body })
}

/// `Content-Type`, as servers write it and users compare it: the client hands names out in lower
/// case.
fn titled(name: &str) -> String {
    let parts = name.split('-').map(|part| {
        let mut chars = part.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    parts.collect::<Vec<_>>().join("-")
}

fn client(request: &HttpRequest, with_system_roots: bool) -> Result<Client> {
    let failed = |error: reqwest::Error| worded(&error);
    let file = |path| std::fs::read(path).map_err(|error| Error::io("read", path, error));
    let redirects =
        if request.follow_redirects { Policy::limited(MAX_REDIRECTS) } else { Policy::none() };
    let mut client = Client::builder()
        .connect_timeout(request.connect_timeout)
        .timeout(request.timeout)
        .redirect(redirects)
        .http1_title_case_headers();
    if !request.verify {
        client = client.tls_danger_accept_invalid_certs(true);
    }
    if !request.client_cert.is_empty() {
        let mut pem = Vec::new();
        for path in &request.client_cert {
            pem.extend(file(path)?);
            pem.push(b'\n');
        }
        client = client.identity(Identity::from_pem(&pem).map_err(failed)?);
    }
    let mut own = Vec::new();
    if let Some(bundle) = &request.ca_bundle {
        own = Certificate::from_pem_bundle(&file(bundle)?).map_err(failed)?;
    }
    if !own.is_empty() || !with_system_roots {
        // A bundle takes the place of the system's certificates.
        client = client.tls_certs_only(own);
    }
    if let Some(proxy) = &request.proxy {
        client = client.proxy(Proxy::all(proxy).map_err(failed)?);
    }
    client.build().map_err(failed)
}

/// `[Errno 111] Connection refused`, as Python writes it.
fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    error.raw_os_error().map_or_else(|| words.to_owned(), |code| format!("[Errno {code}] {words}"))
}

/// Finds the system's own words at the bottom of an error.
fn worded(error: &reqwest::Error) -> Error {
    let mut deepest: &dyn std::error::Error = error;
    loop {
        if let Some(io) = deepest.downcast_ref::<io::Error>()
            && io.raw_os_error().is_some()
        {
            return Error::Other(words_of(io));
        }
        match deepest.source() {
            Some(source) => deepest = source,
            None => break,
        }
    }
    if error.is_timeout() {
        let what = if error.is_connect() { "connecting" } else { "during request" };
        return Error::Other(match what {
            "connecting" => "HTTP 599: Timeout while connecting".into(),
            _ => "HTTP 599: Timeout during request".into(),
        });
    }
    let top = error.source().map_or_else(|| error.to_string(), |_| deepest.to_string());
    Error::Other(network_words(&top))
}

pub(super) fn connect(host: &str, port: u16, udp: bool, timeout: Duration) -> Result<()> {
    let refused = |error: io::Error| Error::Other(words_of(&error));
    let addresses: Vec<_> = (host, port).to_socket_addrs().map_err(refused)?.collect();
    let mut last = Error::Other("[Errno -5] No address associated with hostname".into());
    for address in addresses {
        let tried = if udp {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            UdpSocket::bind(any).and_then(|socket| {
                socket.connect(address)?;
                socket.send(&[]).map(drop)
            })
        } else {
            TcpStream::connect_timeout(&address, timeout.max(Duration::from_millis(1))).map(drop)
        };
        match tried {
            Ok(()) => return Ok(()),
            Err(error) => last = refused(error),
        }
    }
    Err(last)
}

pub(super) fn send_datagram(host: &str, port: u16, body: &[u8]) -> Result<()> {
    let refused = |error: io::Error| Error::Other(words_of(&error));
    let mut addresses = (host, port).to_socket_addrs().map_err(refused)?;
    let none = || Error::Other("[Errno -5] No address associated with hostname".into());
    let address = addresses.next().ok_or_else(none)?;
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let sent = UdpSocket::bind(any).and_then(|socket| {
        socket.set_broadcast(true)?;
        socket.send_to(body, address)
    });
    sent.map(drop).map_err(refused)
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, net::TcpListener};

    use super::*;

    #[test]
    fn a_datagram_arrives() {
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        there.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        send_datagram("127.0.0.1", there.local_addr().unwrap().port(), b"wake up").unwrap();
        let mut buffer = [0; 16];
        let (size, _) = there.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..size], b"wake up");
    }

    fn serve_once(answer: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        port
    }

    #[test]
    fn an_error_status_is_an_answer() {
        let port = serve_once(
            "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nContent-Length: 4\r\n\r\ngone",
        );
        let answer = ask(&HttpRequest::new("GET", format!("http://127.0.0.1:{port}/"))).unwrap();
        assert_eq!((answer.status, answer.reason.as_str()), (404, "Not Found"));
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        assert_eq!(answer.body, b"gone");
    }

    #[test]
    fn nobody_there_is_an_error_in_pythons_words() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error = ask(&HttpRequest::new("GET", format!("http://127.0.0.1:{port}/"))).unwrap_err();
        assert_eq!(error.to_string(), "[Errno 111] Connection refused");
        let error = connect("127.0.0.1", port, false, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.to_string(), "[Errno 111] Connection refused");
    }
}
