//! Handing a mail to a server, by the oldest of dialogues (RFC 5321).
//!
//! Each line of ours is answered by a number; one that does not begin with 2 or 3 ends it. With TLS
//! the server is believed by the certificates of this machine. A line of the message that begins
//! with a dot gets a second one, so that none is taken for the end.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use halite_spec::host::{Error, Mail, Result, network_words};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};

/// Nobody waits longer for a word of the server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where systems keep the certificates they believe.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub(super) fn send(mail: &Mail) -> Result<()> {
    let done = if mail.tls {
        encrypted(mail).and_then(|stream| talk(stream, mail))
    } else {
        connected(mail).and_then(|stream| talk(stream, mail))
    };
    done.map_err(|error| {
        let text = match error.raw_os_error() {
            Some(code) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                format!("[Errno {code}] {text}")
            }
            None => network_words(&error.to_string()),
        };
        Error::Other(format!("{}:{}: {text}", mail.server, mail.port))
    })
}

fn connected(mail: &Mail) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (mail.server.as_str(), mail.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn encrypted(mail: &Mail) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    for bundle in BUNDLES {
        if let Ok(found) = CertificateDer::pem_file_iter(bundle) {
            roots.add_parsable_certificates(found.filter_map(std::result::Result::ok));
            break;
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(mail.server.clone()).map_err(io::Error::other)?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(client, connected(mail)?))
}

fn talk<S: Read + Write>(stream: S, mail: &Mail) -> io::Result<()> {
    let mut dialogue = Dialogue { stream: BufReader::new(stream) };
    dialogue.answer()?;
    dialogue.say("EHLO [127.0.0.1]")?;
    if let Some((user, password)) = &mail.login {
        let words = base64(format!("\0{user}\0{password}").as_bytes());
        dialogue.say(&format!("AUTH PLAIN {words}"))?;
    }
    dialogue.say(&format!("MAIL FROM:<{}>", mail.sender))?;
    for recipient in &mail.recipients {
        dialogue.say(&format!("RCPT TO:<{recipient}>"))?;
    }
    dialogue.say("DATA")?;
    let mut text = String::new();
    for line in mail.message.lines() {
        if line.starts_with('.') {
            text.push('.');
        }
        text.push_str(line);
        text.push_str("\r\n");
    }
    dialogue.say(&format!("{text}."))?;
    // It has the mail; how it says good-bye is its own business.
    let _ = dialogue.say("QUIT");
    Ok(())
}

struct Dialogue<S> {
    stream: BufReader<S>,
}

impl<S: Read + Write> Dialogue<S> {
    fn say(&mut self, line: &str) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{line}\r\n").as_bytes())?;
        stream.flush()?;
        self.answer()
    }

    /// Reads an answer of one or more lines; the last has a blank behind its number.
    fn answer(&mut self) -> io::Result<()> {
        loop {
            let mut line = String::new();
            if (&mut self.stream).take(64 << 10).read_line(&mut line)? == 0 {
                return Err(io::Error::other("Connection unexpectedly closed"));
            }
            let line = line.trim_end();
            if line.as_bytes().get(3) == Some(&b'-') {
                continue;
            }
            return match line.starts_with(['2', '3']) {
                true => Ok(()),
                false => Err(io::Error::other(format!("the server refuses: {line}"))),
            };
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place) & 0x3f) as usize);
            let letter = letter.filter(|_| place <= chunk.len());
            text.push(letter.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// A server that refuses one recipient and writes down what it is told.
    fn server() -> (u16, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut heard, mut in_data) = (String::new(), false);
            stream.write_all(b"220 ready\r\n").unwrap();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return heard;
                }
                heard.push_str(&line.replace("\r\n", "\n"));
                let line = line.trim_end();
                let answer: &[u8] = match line {
                    "." => {
                        in_data = false;
                        b"250 taken\r\n"
                    }
                    _ if in_data => continue,
                    "DATA" => {
                        in_data = true;
                        b"354 go on\r\n"
                    }
                    "QUIT" => b"221 bye\r\n",
                    _ if line.starts_with("EHLO") => b"250-hello\r\n250 AUTH PLAIN\r\n",
                    _ if line.contains("nobody") => b"550 no such user\r\n",
                    _ => b"250 fine\r\n",
                };
                stream.write_all(answer).unwrap();
            }
        });
        (port, heard)
    }

    fn mail(port: u16, to: &str) -> Mail {
        Mail {
            server: "127.0.0.1".into(),
            port,
            tls: false,
            login: Some(("u".into(), "p".into())),
            sender: "me@x.org".into(),
            recipients: vec!["a@x.org".into(), to.into()],
            message: "Subject: S\n\nfirst\n.\nlast".into(),
        }
    }

    #[test]
    fn a_mail_is_handed_over() {
        let (port, heard) = server();
        send(&mail(port, "b@x.org")).unwrap();
        let expected = "EHLO [127.0.0.1]\nAUTH PLAIN AHUAcA==\nMAIL FROM:<me@x.org>\n\
                        RCPT TO:<a@x.org>\nRCPT TO:<b@x.org>\nDATA\nSubject: S\n\nfirst\n..\nlast\n.\nQUIT\n";
        assert_eq!(heard.join().unwrap(), expected);
    }

    #[test]
    fn a_refusal_is_told() {
        let (port, _heard) = server();
        let text = send(&mail(port, "nobody@x.org")).unwrap_err().to_string();
        assert!(text.ends_with("the server refuses: 550 no such user"), "{text}");
        let text = send(&mail(1, "b@x.org")).unwrap_err().to_string();
        assert_eq!(text, "127.0.0.1:1: [Errno 111] Connection refused");
    }

    #[test]
    fn letters() {
        for (text, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
