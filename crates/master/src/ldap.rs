//! A connection to an LDAP server, as far as signing people in needs one.
//!
//! The protocol is the crate `ldap3`'s; here are time limits, our TLS settings, several servers of
//! which the first that answers is taken, and errors in words. `eauth/ldap.rs` knows what to ask.

use std::{sync::Arc, time::Duration};

use halite_transport::Ssl;
use ldap3::{LdapConn, LdapConnSettings, LdapError, LdapResult, SearchEntry, SearchOptions};

pub(crate) use ldap3::{Scope, dn_escape as escape_name, ldap_escape as escape};

/// How long a server may take to let us in.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may take to say all of an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Entries of one answer.
const ENTRIES: i32 = 100_000;
/// Where a server of this machine listens, unless the address says so.
const SOCKET: &str = "ldapi://%2Fvar%2Frun%2Fslapd%2Fldapi";

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Failed(#[from] LdapError),
    #[error("`{0}` is no address of an LDAP server")]
    Address(String),
    #[error("TLS: {0}")]
    Tls(String),
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
#[derive(Debug)]
pub(crate) struct Entry(SearchEntry);

impl Entry {
    pub(crate) fn dn(&self) -> &str {
        &self.0.dn
    }

    /// Returns the values of an attribute, however its name is written.
    pub(crate) fn values(&self, name: &str) -> &[String] {
        let named = |(own, _): &(&String, &Vec<String>)| own.eq_ignore_ascii_case(name);
        self.0.attrs.iter().find(named).map(|(_, values)| values.as_slice()).unwrap_or_default()
    }
}

/// A connection to a server.
pub(crate) struct Connection(LdapConn);

impl Connection {
    /// Connects to the first of these servers (URIs with spaces or commas) that answers; with
    /// `start_tls` to go on encrypted.
    pub(crate) fn open(uris: &str, ssl: &Ssl, start_tls: bool) -> Result<Self, Error> {
        let mut failed = Error::Address(uris.to_owned());
        for uri in uris.split([' ', ',']).filter(|uri| !uri.is_empty()) {
            match Self::open_one(uri, ssl, start_tls) {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn open_one(uri: &str, ssl: &Ssl, start_tls: bool) -> Result<Self, Error> {
        let (scheme, place) =
            uri.split_once("://").ok_or_else(|| Error::Address(uri.to_owned()))?;
        let is_local = scheme.eq_ignore_ascii_case("ldapi");
        let uri = if is_local && place.trim_end_matches('/').is_empty() { SOCKET } else { uri };
        let mut settings = LdapConnSettings::new().set_conn_timeout(CONNECT);
        if start_tls || scheme.eq_ignore_ascii_case("ldaps") {
            let config = halite_transport::tls_client(ssl).map_err(Error::Tls)?;
            settings = settings.set_config(Arc::new(config)).set_starttls(start_tls);
        }
        LdapConn::with_settings(settings, uri).map(Self).map_err(|error| match error {
            LdapError::UrlParsing { .. } | LdapError::UnknownScheme(_) => {
                Error::Address(uri.to_owned())
            }
            other => other.into(),
        })
    }

    /// Signs in with a name and a password.
    pub(crate) fn bind(&mut self, dn: &str, password: &str) -> Result<(), Error> {
        accepted(self.0.with_timeout(ANSWER).simple_bind(dn, password)?)
    }

    /// Searches. References to other servers are left out.
    pub(crate) fn search(
        &mut self,
        base: &str,
        scope: Scope,
        filter: &str,
        attributes: &[&str],
    ) -> Result<Vec<Entry>, Error> {
        self.0.with_timeout(ANSWER).with_search_options(SearchOptions::new().sizelimit(ENTRIES));
        let found = self.0.search(base, scope, filter, attributes)?;
        accepted(found.1)?;
        let entries = found.0.into_iter().filter(|one| !one.is_ref() && !one.is_intermediate());
        Ok(entries.map(|entry| Entry(SearchEntry::construct(entry))).collect())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A courtesy, so it does not matter whether it arrives.
        let _ = self.0.unbind();
    }
}

fn accepted(result: LdapResult) -> Result<(), Error> {
    match result.rc {
        0 => Ok(()),
        code => Err(Error::Refused { code, message: result.text }),
    }
}

/// A directory for tests: it knows passwords, and what to say to which search.
#[cfg(test)]
pub(crate) mod directory {
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
    };

    use bytes::BytesMut;
    use ldap3::{
        asn1::{
            ASNTag as _, Enumerated, Integer, OctetString, PL, Sequence, Set, StructureTag, Tag,
            TagClass, parse_tag, parse_uint, write,
        },
        parse_filter,
    };

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
                    self.talk(stream);
                }
            });
            uri
        }

        /// Answers until the client is gone.
        fn talk(&self, mut stream: TcpStream) {
            let mut read = Vec::new();
            let mut chunk = [0; 4096];
            loop {
                while let Ok((rest, message)) = parse_tag(&read) {
                    let rest = rest.to_vec();
                    let mut message = parts(message).into_iter();
                    let (Some(id), Some(question)) = (message.next(), message.next()) else {
                        return;
                    };
                    let id = parse_uint(&bytes(id)).unwrap().1;
                    for answer in self.answers(question) {
                        let message = Tag::Sequence(Sequence {
                            inner: vec![
                                Tag::Integer(Integer {
                                    inner: i64::try_from(id).unwrap(),
                                    ..Integer::default()
                                }),
                                answer,
                            ],
                            ..Sequence::default()
                        });
                        let mut written = BytesMut::new();
                        write::encode_into(&mut written, message.into_structure()).unwrap();
                        if stream.write_all(&written).is_err() {
                            return;
                        }
                    }
                    read = rest;
                }
                match stream.read(&mut chunk) {
                    Ok(count) if count > 0 => read.extend_from_slice(&chunk[..count]),
                    _ => return,
                }
            }
        }

        fn answers(&self, question: StructureTag) -> Vec<Tag> {
            match question.id {
                0 => {
                    let mut bind = parts(question).into_iter().skip(1).map(bytes);
                    let name = String::from_utf8(bind.next().unwrap()).unwrap();
                    let password = String::from_utf8(bind.next().unwrap()).unwrap();
                    // As real ones do: without a password everybody is welcome, as nobody.
                    let well = password.is_empty()
                        || self.passwords.iter().any(|own| *own == (&*name, &*password));
                    vec![ended(1, if well { 0 } else { 49 })]
                }
                3 => {
                    let search = parts(question);
                    let base = String::from_utf8(bytes(search[0].clone())).unwrap();
                    let is_it =
                        |own: &&str| parse_filter(*own).unwrap().into_structure() == search[6];
                    let mut known = self.searches.iter();
                    let known = known.find(|(own, filter, _)| *own == base && is_it(filter));
                    let (_, _, answer) = known.expect("a search that is foreseen");
                    answer.iter().map(|(dn, has)| entry(dn, has)).chain([ended(5, 0)]).collect()
                }
                _ => Vec::new(),
            }
        }
    }

    fn parts(tag: StructureTag) -> Vec<StructureTag> {
        tag.expect_constructed().expect("something with parts")
    }

    fn bytes(tag: StructureTag) -> Vec<u8> {
        match tag.payload {
            PL::P(bytes) => bytes,
            PL::C(parts) => panic!("{parts:?}"),
        }
    }

    fn text(text: &str) -> Tag {
        Tag::OctetString(OctetString { inner: text.into(), ..OctetString::default() })
    }

    fn answer(id: u64, inner: Vec<Tag>) -> Tag {
        Tag::Sequence(Sequence { id, class: TagClass::Application, inner })
    }

    fn ended(id: u64, code: i64) -> Tag {
        let code = Tag::Enumerated(Enumerated { inner: code, ..Enumerated::default() });
        answer(id, vec![code, text(""), text("")])
    }

    fn entry(dn: &str, attributes: &[(&str, &str)]) -> Tag {
        let list = |inner| Tag::Sequence(Sequence { inner, ..Sequence::default() });
        let attribute = |(name, value): &(&str, &str)| {
            list(vec![text(name), Tag::Set(Set { inner: vec![text(value)], ..Set::default() })])
        };
        answer(4, vec![text(dn), list(attributes.iter().map(attribute).collect())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for uri in ["", "nothing", "ldap:x", "http://x", "ldap://x:y"] {
            let failed = Connection::open(uri, &Ssl::default(), false);
            assert!(matches!(failed, Err(Error::Address(_))), "{uri}");
        }
        // The last one's error is told.
        let failed = Connection::open("http://x, ldap://127.0.0.1:1", &Ssl::default(), false);
        assert!(matches!(failed, Err(Error::Failed(LdapError::Io { .. }))));
    }

    #[test]
    fn refusals_in_words() {
        let error = Error::Refused { code: 49, message: "x".into() };
        assert_eq!(error.to_string(), "the server refuses: invalid credentials (49): x");
        let error = Error::Refused { code: 80, message: String::new() };
        assert_eq!(error.to_string(), "the server refuses: (80)");
    }
}
