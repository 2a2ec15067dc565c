//! FTP, as much of it as fetching one file needs: sign in, binary, passive, `RETR`.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use crate::fetch::{FetchError, Request, Response};

/// Time without any answer after which we give up.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A line of an answer longer than this is no FTP server's.
const MAX_LINE: u64 = 4096;

pub(crate) fn fetch(request: &Request) -> Result<Response, FetchError> {
    let (host, port) = request.url.host_and_port();
    let timeout = request.settings.connect_timeout.min(TIMEOUT);
    let mut control = Control::connect(host, port.unwrap_or(21), timeout)?;
    control.expect("", 2)?;
    let user = request.url.user.as_deref().unwrap_or("anonymous");
    let password = request.url.password.as_deref().unwrap_or("anonymous@");
    if control.ask(&format!("USER {user}"))?.0 == 331 {
        control.expect(&format!("PASS {password}"), 2)?;
    }
    control.expect("TYPE I", 2)?;
    let data = control.passive(host, timeout)?;
    let path = request.url.path.trim_start_matches('/');
    control.expect(&format!("RETR {path}"), 1)?;
    let body = Box::new(Body { data, control });
    Ok(Response { status: 200, headers: Vec::new(), body })
}

fn connect(host: &str, port: u16, timeout: Duration) -> Result<TcpStream, FetchError> {
    let failed = |error: io::Error| FetchError::of_io(&error);
    let mut last = FetchError::Failed(format!("no address for {host}"));
    for address in (host, port).to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
                stream.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
                return Ok(stream);
            }
            Err(error) => last = failed(error),
        }
    }
    Err(last)
}

struct Control(BufReader<TcpStream>);

impl Control {
    fn connect(host: &str, port: u16, timeout: Duration) -> Result<Self, FetchError> {
        connect(host, port, timeout).map(|stream| Self(BufReader::new(stream)))
    }

    /// Sends a command (none, if empty) and returns code and text of the answer.
    fn ask(&mut self, command: &str) -> Result<(u16, String), FetchError> {
        let failed = |error: io::Error| FetchError::of_io(&error);
        if command.contains(['\r', '\n']) {
            return Err(FetchError::Failed("a line break in an FTP command".into()));
        }
        if !command.is_empty() {
            self.0.get_mut().write_all(format!("{command}\r\n").as_bytes()).map_err(failed)?;
        }
        loop {
            let mut line = Vec::new();
            self.0.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(failed)?;
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if line.is_empty() {
                return Err(FetchError::Failed("the FTP server closed the connection".into()));
            }
            // Lines `123-…` and those in between go before the last, `123 …`.
            let code = line.get(..3).and_then(|code| code.parse().ok());
            if let Some(code) = code
                && line.as_bytes().get(3).is_none_or(|byte| *byte == b' ')
            {
                return Ok((code, line));
            }
        }
    }

    /// As [`Control::ask`]; the answer must be of a class: 2 for done, 1 for begun.
    fn expect(&mut self, command: &str, class: u16) -> Result<String, FetchError> {
        let (code, line) = self.ask(command)?;
        if code / 100 == class { Ok(line) } else { Err(FetchError::Failed(line)) }
    }

    /// Opens the connection for data: the port the server names, on the host we know.
    fn passive(&mut self, host: &str, timeout: Duration) -> Result<TcpStream, FetchError> {
        let (code, line) = self.ask("EPSV")?;
        let port = if code == 229 {
            line.rsplit_once('(').and_then(|(_, rest)| rest.split('|').nth(3)?.parse().ok())
        } else {
            let line = self.expect("PASV", 2)?;
            let numbers = line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')'));
            numbers.and_then(|(numbers, _)| {
                let numbers: Vec<u16> =
                    numbers.split(',').filter_map(|number| number.trim().parse().ok()).collect();
                // The address in the answer is not used: it may point elsewhere.
                match numbers[..] {
                    [_, _, _, _, high, low] => high.checked_mul(256)?.checked_add(low),
                    _ => None,
                }
            })
        };
        let port =
            port.ok_or_else(|| FetchError::Failed("no passive port in the answer".into()))?;
        connect(host, port, timeout)
    }
}

struct Body {
    data: TcpStream,
    control: Control,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.data.read(buffer)?;
        // At the end the server says whether that was all.
        if count == 0 && !buffer.is_empty() {
            self.control.expect("", 2).map_err(io::Error::other)?;
        }
        Ok(count)
    }
}
