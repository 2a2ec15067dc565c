//! As much of an HTTP/1.1 server as a hook needs: one request per connection, limited in size and
//! time.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes of request line and headers.
const MOST_HEAD: usize = 16 << 10;
/// Time for a whole request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: String,
    /// Names as they were sent.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Why there is no request, as a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    Malformed,
    TooLarge,
    TooSlow,
    /// It needs what is not here.
    Unsupported,
    /// The connection ended; nobody is to be told.
    Gone,
}

impl Bad {
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Malformed | Self::Gone => "400 Bad Request",
            Self::TooLarge => "413 Content Too Large",
            Self::TooSlow => "408 Request Timeout",
            Self::Unsupported => "501 Not Implemented",
        }
    }
}

/// Reads a request.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    most: usize,
) -> Result<Request, Bad> {
    tokio::time::timeout(PATIENCE, read_all(stream, most)).await.unwrap_or(Err(Bad::TooSlow))
}

async fn read_all(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    most: usize,
) -> Result<Request, Bad> {
    let mut buffer = Vec::new();
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > MOST_HEAD {
            return Err(Bad::TooLarge);
        }
        more(stream, &mut buffer).await?;
    };
    let mut request = head(buffer.get(..end).ok_or(Bad::Malformed)?)?;
    buffer.drain(..end + 4);
    if request.header("expect").is_some_and(|word| word.eq_ignore_ascii_case("100-continue")) {
        let told = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        told.map_err(|_| Bad::Gone)?;
    }
    match request.header("transfer-encoding") {
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => {
            request.body = chunked(stream, buffer, most).await?;
        }
        Some(_) => return Err(Bad::Unsupported),
        None => {
            let length = match request.header("content-length") {
                None => 0,
                Some(text) => text.trim().parse::<usize>().map_err(|_| Bad::Malformed)?,
            };
            if length > most {
                return Err(Bad::TooLarge);
            }
            while buffer.len() < length {
                more(stream, &mut buffer).await?;
            }
            buffer.truncate(length);
            request.body = buffer;
        }
    }
    Ok(request)
}

async fn more(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Result<(), Bad> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => Err(Bad::Gone),
        Ok(_) => Ok(()),
    }
}

async fn chunked(
    stream: &mut (impl AsyncRead + Unpin),
    mut buffer: Vec<u8>,
    most: usize,
) -> Result<Vec<u8>, Bad> {
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = buffer.windows(2).position(|two| two == b"\r\n") {
                break end;
            }
            if buffer.len() > MOST_HEAD {
                return Err(Bad::Malformed);
            }
            more(stream, &mut buffer).await?;
        };
        let line = String::from_utf8_lossy(buffer.get(..end).unwrap_or_default()).into_owned();
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| Bad::Malformed)?;
        buffer.drain(..end + 2);
        if size == 0 {
            return Ok(body);
        }
        if size > most.saturating_sub(body.len()) {
            return Err(Bad::TooLarge);
        }
        while buffer.len() < size + 2 {
            more(stream, &mut buffer).await?;
        }
        body.extend(buffer.drain(..size));
        buffer.drain(..2);
    }
}

/// Reads request line and headers.
fn head(bytes: &[u8]) -> Result<Request, Bad> {
    let text = std::str::from_utf8(bytes).map_err(|_| Bad::Malformed)?;
    let mut lines = text.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = *first else { return Err(Bad::Malformed) };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(Bad::Malformed);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').ok_or(Bad::Malformed)?;
            Ok((name.to_owned(), value.trim().to_owned()))
        })
        .collect::<Result<_, Bad>>()?;
    Ok(Request {
        method: method.to_owned(),
        path: unquote(path),
        query: query.to_owned(),
        headers,
        body: Vec::new(),
    })
}

/// Undoes `%20`.
pub(super) fn unquote(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes
            .get(at + 1..at + 3)
            .filter(|_| *byte == b'%')
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        plain.push(code.unwrap_or(*byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Answers and ends the connection.
pub(super) async fn answer(stream: &mut (impl AsyncWrite + Unpin), status: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    // Who has gone away needs no answer.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(text: &str, most: usize) -> Result<Request, Bad> {
        let (mut here, mut there) = tokio::io::duplex(64);
        let text = text.to_owned();
        let sent = tokio::spawn(async move {
            let _ = there.write_all(text.as_bytes()).await;
            there
        });
        let read = read(&mut here, most).await;
        drop(here);
        drop(sent.await);
        read
    }

    #[tokio::test]
    async fn requests() {
        let plain = "POST /hook/a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbodyrest";
        let request = ask(plain, 100).await.unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/hook/a b", "x=1"));
        assert_eq!(
            (request.body.as_slice(), request.header("host")),
            (b"body".as_slice(), Some("h"))
        );
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n";
        assert_eq!(ask(chunked, 100).await.unwrap().body, b"abcde");
        assert_eq!(ask(plain, 3).await, Err(Bad::TooLarge));
        assert_eq!(ask(chunked, 4).await, Err(Bad::TooLarge));
        assert_eq!(ask("nonsense\r\n\r\n", 10).await, Err(Bad::Malformed));
        assert_eq!(
            ask("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 10).await,
            Err(Bad::Malformed)
        );
        assert_eq!(
            ask(&format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(20_000)), 10).await,
            Err(Bad::TooLarge)
        );
    }
}
