//! A client of LDAP, as far as signing people in needs one: bind, search, STARTTLS.
//!
//! Synchronous, one question at a time, each with an end; referrals are not followed. What a
//! server sends is limited in size and in time. It knows nothing of Salt: `eauth/ldap.rs` does.

mod ber;
mod filter;

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs as _},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use halite_transport::Ssl;

use ber::{Elements, MOST, element, number, put};
pub(crate) use filter::escape;

/// How long a server may take to let us in.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may take to say all of an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Entries of one answer.
const ENTRIES: usize = 100_000;
/// The name of STARTTLS.
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("`{0}` is no address of an LDAP server")]
    Address(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("the server's answer is not understood")]
    Garbled,
    #[error("`{0}` is no search filter")]
    Filter(String),
    #[error("the server refuses: {}", told(*.code, .message))]
    Refused { code: u32, message: String },
}

/// Says in words what the commonest codes mean.
fn told(code: u32, message: &str) -> String {
    let word = match code {
        8 => "stronger authentication required",
        13 => "confidentiality required",
        32 => "no such object",
        34 => "invalid DN syntax",
        48 => "inappropriate authentication",
        49 => "invalid credentials",
        50 => "insufficient access",
        51 => "busy",
        52 => "unavailable",
        53 => "unwilling to perform",
        _ => "",
    };
    let mut text = format!("{word} ({code})").trim_start().to_owned();
    if !message.is_empty() {
        text.push_str(": ");
        text.push_str(message);
    }
    text
}

/// One found entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) dn: String,
    attributes: Vec<(String, Vec<String>)>,
}

impl Entry {
    /// Returns the values of an attribute, however its name is written.
    pub(crate) fn values(&self, name: &str) -> &[String] {
        let named = |(own, _): &&(String, Vec<String>)| own.eq_ignore_ascii_case(name);
        self.attributes.iter().find(named).map(|(_, values)| values.as_slice()).unwrap_or_default()
    }
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Base = 0,
    One = 1,
    Subtree = 2,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection to a server.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    /// For STARTTLS: the plain connection, and the host it leads to.
    plain: Option<(TcpStream, String)>,
    read: Vec<u8>,
    last: u32,
}

impl Connection {
    /// Connects to the first of these servers (URIs with spaces or commas) that answers.
    pub(crate) fn open(uris: &str, ssl: &Ssl) -> Result<Self, Error> {
        let mut failed = Error::Address(uris.to_owned());
        for uri in uris.split([' ', ',']).filter(|uri| !uri.is_empty()) {
            match Self::open_one(uri, ssl) {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn open_one(uri: &str, ssl: &Ssl) -> Result<Self, Error> {
        let wrong = || Error::Address(uri.to_owned());
        let (scheme, place) = uri.split_once("://").ok_or_else(wrong)?;
        let place = place.split('/').next().unwrap_or_default();
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "ldapi" {
            let path = unquoted(place).filter(|path| !path.is_empty());
            let stream =
                UnixStream::connect(path.unwrap_or_else(|| "/var/run/slapd/ldapi".into()))?;
            stream.set_read_timeout(Some(ANSWER))?;
            stream.set_write_timeout(Some(ANSWER))?;
            return Ok(Self { stream: Box::new(stream), plain: None, read: Vec::new(), last: 0 });
        }
        let is_safe = match scheme.as_str() {
            "ldap" => false,
            "ldaps" => true,
            _ => return Err(wrong()),
        };
        let (host, port) =
            host_and_port(place, if is_safe { 636 } else { 389 }).ok_or_else(wrong)?;
        let stream = reach(&host, port)?;
        let plain = stream.try_clone()?;
        if is_safe {
            let stream = secured(ssl, &host, stream)?;
            return Ok(Self { stream, plain: None, read: Vec::new(), last: 0 });
        }
        let plain = Some((plain, host));
        Ok(Self { stream: Box::new(stream), plain, read: Vec::new(), last: 0 })
    }

    /// Goes on encrypted.
    pub(crate) fn start_tls(&mut self, ssl: &Ssl) -> Result<(), Error> {
        let answer = self.ask(&element(0x77, &element(0x80, START_TLS)), 0x78)?;
        done(&answer)?;
        let (stream, host) = self.plain.take().ok_or_else(|| Error::Tls("already on".into()))?;
        // Whatever came in the clear after that answer is not the server's word.
        self.read.clear();
        self.stream = secured(ssl, &host, stream)?;
        Ok(())
    }

    /// Signs in with a name and a password.
    pub(crate) fn bind(&mut self, dn: &str, password: &str) -> Result<(), Error> {
        let mut body = number(0x02, 3);
        put(&mut body, 0x04, dn.as_bytes());
        put(&mut body, 0x80, password.as_bytes());
        done(&self.ask(&element(0x60, &body), 0x61)?)
    }

    /// Searches. References to other servers are left out.
    pub(crate) fn search(
        &mut self,
        base: &str,
        scope: Scope,
        filter: &str,
        attributes: &[&str],
    ) -> Result<Vec<Entry>, Error> {
        let mut body = element(0x04, base.as_bytes());
        body.extend(number(0x0a, scope as u32));
        // Aliases are not followed; no limits of ours; values, too.
        body.extend([0x0a, 1, 0, 0x02, 1, 0, 0x02, 1, 0, 0x01, 1, 0]);
        body.extend(filter::encode(filter)?);
        let mut names = Vec::new();
        for name in attributes {
            put(&mut names, 0x04, name.as_bytes());
        }
        put(&mut body, 0x30, &names);
        self.send(&element(0x63, &body))?;
        let until = Instant::now() + ANSWER;
        let mut found = Vec::new();
        loop {
            match self.receive(until)? {
                (0x64, entry) if found.len() < ENTRIES => found.push(read_entry(&entry)?),
                (0x73, _) => {}
                (0x65, answer) => return done(&answer).map(|()| found),
                _ => return Err(Error::Garbled),
            }
        }
    }

    fn ask(&mut self, question: &[u8], wanted: u8) -> Result<Vec<u8>, Error> {
        self.send(question)?;
        match self.receive(Instant::now() + ANSWER)? {
            (tag, answer) if tag == wanted => Ok(answer),
            _ => Err(Error::Garbled),
        }
    }

    fn send(&mut self, question: &[u8]) -> Result<(), Error> {
        self.last += 1;
        let mut body = number(0x02, self.last);
        body.extend_from_slice(question);
        self.stream.write_all(&element(0x30, &body))?;
        Ok(self.stream.flush()?)
    }

    /// Returns the next answer to the last question.
    fn receive(&mut self, until: Instant) -> Result<(u8, Vec<u8>), Error> {
        loop {
            let message = self.message(until)?;
            let mut parts = Elements(&message);
            let id = parts.number(0x02)?;
            let (tag, body) = parts.next()?.ok_or(Error::Garbled)?;
            if id == self.last {
                return Ok((tag, body.to_vec()));
            }
            if id == 0 {
                // A notice of disconnection.
                done(body)?;
                return Err(Error::Garbled);
            }
        }
    }

    /// Reads one message.
    fn message(&mut self, until: Instant) -> Result<Vec<u8>, Error> {
        loop {
            if let Some((&tag, rest)) = self.read.split_first() {
                if tag != 0x30 {
                    return Err(Error::Garbled);
                }
                if let Some((length, told)) = ber::length(rest)?
                    && rest.len() >= told + length
                {
                    let message = rest[told..told + length].to_vec();
                    self.read.drain(..1 + told + length);
                    return Ok(message);
                }
            }
            if Instant::now() > until || self.read.len() > MOST + 8 {
                return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
            }
            let mut chunk = [0; 8192];
            match self.stream.read(&mut chunk)? {
                0 => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
                count => self.read.extend_from_slice(&chunk[..count]),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Unbind: a courtesy, so it does not matter whether it arrives.
        let _ = self.send(&[0x42, 0]);
    }
}

/// Reads the end of an answer.
fn done(answer: &[u8]) -> Result<(), Error> {
    let mut parts = Elements(answer);
    let code = parts.number(0x0a)?;
    let _matched = parts.text()?;
    let message = parts.text()?;
    if code == 0 { Ok(()) } else { Err(Error::Refused { code, message }) }
}

fn read_entry(body: &[u8]) -> Result<Entry, Error> {
    let mut parts = Elements(body);
    let dn = parts.text()?;
    let mut list = Elements(parts.take(0x30)?);
    let mut attributes = Vec::new();
    while let Some((_, attribute)) = list.next()? {
        let mut parts = Elements(attribute);
        let name = parts.text()?;
        let mut set = Elements(parts.take(0x31)?);
        let mut values = Vec::new();
        while let Some((_, value)) = set.next()? {
            values.push(String::from_utf8_lossy(value).into_owned());
        }
        attributes.push((name, values));
    }
    Ok(Entry { dn, attributes })
}

fn reach(host: &str, port: u16) -> Result<TcpStream, Error> {
    let mut failed = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(ANSWER))?;
                stream.set_write_timeout(Some(ANSWER))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed.into())
}

fn secured(ssl: &Ssl, host: &str, stream: TcpStream) -> Result<Box<dyn Stream>, Error> {
    let stream = halite_transport::tls_over(ssl, host, stream).map_err(Error::Tls)?;
    Ok(Box::new(stream))
}

fn host_and_port(place: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        Some(port) if !port.is_empty() => port.parse().ok()?,
        _ => usual,
    };
    let host = if host.is_empty() { "localhost" } else { host };
    Some((host.to_owned(), port))
}

/// Undoes the percent signs of a path.
fn unquoted(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

/// A directory for tests: it knows passwords, and what to say to which search.
#[cfg(test)]
pub(crate) mod directory {
    use std::net::TcpListener;

    use super::*;

    /// Entries, each a name with its attributes.
    pub(crate) type Answer = Vec<(&'static str, Vec<(&'static str, &'static str)>)>;

    pub(crate) struct Directory {
        pub(crate) passwords: Vec<(&'static str, &'static str)>,
        /// Base and filter, with what is found.
        pub(crate) searches: Vec<(&'static str, &'static str, Answer)>,
    }

    impl Directory {
        /// Serves on a port of its own until the process ends; returns the address.
        pub(crate) fn serve(self) -> String {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let uri = format!("ldap://{}", listener.local_addr().unwrap());
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    // A client that is gone is no failure of the test.
                    let _ = self.talk(stream);
                }
            });
            uri
        }

        fn talk(&self, mut stream: TcpStream) -> Result<(), Error> {
            let server = stream.try_clone()?;
            let mut connection =
                Connection { stream: Box::new(server), plain: None, read: Vec::new(), last: 0 };
            loop {
                let message = connection.message(Instant::now() + ANSWER)?;
                let mut parts = Elements(&message);
                let id = parts.number(0x02)?;
                let Some((tag, body)) = parts.next()? else { return Err(Error::Garbled) };
                let mut say = |answer: &[u8]| {
                    let mut body = number(0x02, id);
                    body.extend_from_slice(answer);
                    stream.write_all(&element(0x30, &body))
                };
                let ended = |tag: u8, code: u8| element(tag, &[0x0a, 1, code, 4, 0, 4, 0]);
                match tag {
                    0x60 => {
                        let mut bind = Elements(body);
                        bind.number(0x02)?;
                        let name = bind.text()?;
                        let password = String::from_utf8_lossy(bind.take(0x80)?).into_owned();
                        // As real ones do: without a password everybody is welcome, as nobody.
                        let well = password.is_empty()
                            || self.passwords.iter().any(|own| *own == (&*name, &*password));
                        say(&ended(0x61, if well { 0 } else { 49 }))?;
                    }
                    0x63 => {
                        for (name, attributes) in self.found(body)? {
                            say(&element(0x64, &written(name, attributes)))?;
                        }
                        say(&ended(0x65, 0))?;
                    }
                    _ => return Ok(()),
                }
            }
        }

        fn found(&self, body: &[u8]) -> Result<&Answer, Error> {
            let mut search = Elements(body);
            let base = search.text()?;
            for tag in [0x0a, 0x0a, 0x02, 0x02, 0x01] {
                search.take(tag)?;
            }
            let rest = search.0;
            let known = self.searches.iter().find(|(own, filter, _)| {
                *own == base && rest.starts_with(&filter::encode(filter).unwrap())
            });
            known.map(|(_, _, answer)| answer).ok_or(Error::Garbled)
        }
    }

    fn written(name: &str, attributes: &[(&str, &str)]) -> Vec<u8> {
        let mut list = Vec::new();
        for (name, value) in attributes {
            let mut attribute = element(0x04, name.as_bytes());
            put(&mut attribute, 0x31, &element(0x04, value.as_bytes()));
            put(&mut list, 0x30, &attribute);
        }
        let mut body = element(0x04, name.as_bytes());
        put(&mut body, 0x30, &list);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |place: &str| host_and_port(place, 389);
        let is = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(check("ldap.example"), is("ldap.example", 389));
        assert_eq!(check("ldap.example:1389"), is("ldap.example", 1389));
        assert_eq!(check("[::1]:636"), is("::1", 636));
        assert_eq!(check("[::1]"), is("::1", 389));
        assert_eq!(check(""), is("localhost", 389));
        assert_eq!(check("a:b"), None);
        assert_eq!(unquoted("%2Fvar%2frun%2fldapi").as_deref(), Some("/var/run/ldapi"));
        for uri in ["", "nothing", "http://x", "ldap://x:y"] {
            assert!(matches!(Connection::open(uri, &Ssl::default()), Err(Error::Address(_))));
        }
    }

    #[test]
    fn answers() {
        assert!(done(&[0x0a, 1, 0, 4, 0, 4, 0]).is_ok());
        let error = done(&[0x0a, 1, 49, 4, 0, 4, 1, b'x']).unwrap_err();
        assert_eq!(error.to_string(), "the server refuses: invalid credentials (49): x");
        assert!(matches!(done(&[0x0a, 1]), Err(Error::Garbled)));
        let mut values = Vec::new();
        put(&mut values, 4, b"admins");
        let mut attribute = element(4, b"CN");
        put(&mut attribute, 0x31, &values);
        let mut body = element(4, b"cn=admins,dc=x");
        put(&mut body, 0x30, &element(0x30, &attribute));
        let entry = read_entry(&body).unwrap();
        assert_eq!(
            (entry.dn.as_str(), entry.values("cn")),
            ("cn=admins,dc=x", &["admins".to_owned()][..])
        );
        assert!(entry.values("other").is_empty());
    }
}
