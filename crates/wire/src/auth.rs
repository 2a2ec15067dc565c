//! Sign-in: `_auth` and its answers.
//!
//! A reply body is signed as the bytes it was written in, so it is decoded from those bytes and
//! never written again: see [`AuthReply::decode`].

use halite_value::{
    Dict, SmolStr, Value, dict, entries,
    msgpack::{self, Dialect, Text},
};

use crate::{Error, Fields, MinionId};

/// What a minion says when it signs in.
#[derive(Clone, Debug)]
pub struct AuthRequest {
    pub id: MinionId,
    /// PEM.
    pub public_key: SmolStr,
    /// Absent before version 2.
    pub nonce: Option<SmolStr>,
    pub enc_algo: Option<SmolStr>,
    pub sig_algo: Option<SmolStr>,
    /// A secret for the master, if the minion knows its key already.
    pub token: Option<Vec<u8>>,
    pub autosign_grains: Dict,
    /// What a Halite minion adds: see `extension.rs`.
    pub halite: Option<Dict>,
}

impl AuthRequest {
    pub fn read(load: &Dict) -> Result<Self, Error> {
        let fields = Fields(load);
        Ok(Self {
            id: fields.minion_id("id")?,
            public_key: fields.text("pub")?,
            nonce: fields.optional("nonce").map(|nonce| nonce.to_str()),
            enc_algo: fields.optional("enc_algo").map(|name| name.to_str()),
            sig_algo: fields.optional("sig_algo").map(|name| name.to_str()),
            token: fields.optional_bytes("token")?,
            autosign_grains: fields.dict_or_empty("autosign_grains")?,
            halite: match fields.optional("halite") {
                Some(Value::Dict(own)) => Some(own),
                _ => None,
            },
        })
    }

    pub fn write(&self) -> Dict {
        let load = entries! {
            "cmd" => "_auth", "id" => &self.id, "pub" => &self.public_key,
        };
        for (key, value) in
            [("nonce", &self.nonce), ("enc_algo", &self.enc_algo), ("sig_algo", &self.sig_algo)]
        {
            if let Some(value) = value {
                load.insert(key, value);
            }
        }
        if let Some(token) = &self.token {
            load.insert("token", Value::bytes(token.clone()));
        }
        if !self.autosign_grains.is_empty() {
            load.insert("autosign_grains", &self.autosign_grains);
        }
        if let Some(halite) = &self.halite {
            load.insert("halite", halite);
        }
        load
    }
}

/// The keys a minion gets.
#[derive(Clone, Debug, Default)]
pub struct Welcome {
    /// The master's, PEM.
    pub public_key: SmolStr,
    pub publish_port: i64,
    /// The shared key, for the minion's eyes.
    pub aes: Vec<u8>,
    /// The minion's own; absent from masters older than protocol 3.
    pub session: Option<Vec<u8>>,
    /// X9.31 over the hash of the shared key.
    pub aes_sig: Vec<u8>,
    /// The minion's token, read and sent back.
    pub token: Option<Vec<u8>>,
    /// The signing key's signature over the master's key.
    pub public_key_sig: Option<Vec<u8>>,
    pub halite: Option<Dict>,
}

/// Why a minion gets no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its key waits for acceptance: try again.
    Pending,
    /// Its key is rejected or differs: a genuine minion ends itself.
    Denied,
    /// `max_minions` is reached.
    Full,
}

/// The body of an answer.
#[derive(Clone, Debug)]
pub enum AuthReply {
    Welcome(Box<Welcome>),
    Refused(Refusal),
}

impl AuthReply {
    /// Writes the body to be signed.
    pub fn encode(&self, nonce: Option<&str>) -> Result<Vec<u8>, Error> {
        let body = match self {
            Self::Welcome(welcome) => {
                let body = entries! {
                    "enc" => "pub", "pub_key" => &welcome.public_key,
                    "publish_port" => welcome.publish_port,
                    "aes" => Value::bytes(welcome.aes.clone()),
                    "sig" => Value::bytes(welcome.aes_sig.clone()),
                };
                for (key, value) in [
                    ("session", &welcome.session),
                    ("token", &welcome.token),
                    ("pub_sig", &welcome.public_key_sig),
                ] {
                    if let Some(value) = value {
                        body.insert(key, Value::bytes(value.clone()));
                    }
                }
                if let Some(halite) = &welcome.halite {
                    body.insert("halite", halite);
                }
                body
            }
            Self::Refused(refusal) => {
                let ret = match refusal {
                    Refusal::Pending => Value::Bool(true),
                    Refusal::Denied => Value::Bool(false),
                    Refusal::Full => "full".into(),
                };
                entries! { "ret" => ret }
            }
        };
        if let Some(nonce) = nonce {
            body.insert("nonce", nonce);
        }
        Ok(msgpack::to_vec(&body.into(), Dialect::Raw)?)
    }

    /// Reads a body; returns it with the nonce it echoes.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Option<SmolStr>), Error> {
        let Value::Dict(body) = msgpack::from_slice(bytes, Text::Guess)? else {
            return Err(Error::NotMap);
        };
        let fields = Fields(&body);
        let nonce = fields.optional("nonce").map(|nonce| nonce.to_str());
        if let Some(ret) = body.get("ret") {
            let refusal = match ret {
                Value::Bool(true) => Refusal::Pending,
                Value::Bool(false) => Refusal::Denied,
                Value::Str(word) if word == "full" => Refusal::Full,
                _ => return Err(Error::Type("ret")),
            };
            return Ok((Self::Refused(refusal), nonce));
        }
        let welcome = Welcome {
            public_key: fields.text("pub_key")?,
            publish_port: fields.int_or("publish_port", 4505)?,
            aes: fields.bytes("aes")?,
            session: fields.optional_bytes("session")?,
            aes_sig: fields.bytes("sig")?,
            token: fields.optional_bytes("token")?,
            public_key_sig: fields.optional_bytes("pub_sig")?,
            halite: match fields.optional("halite") {
                Some(Value::Dict(own)) => Some(own),
                _ => None,
            },
        };
        Ok((Self::Welcome(Box::new(welcome)), nonce))
    }

    /// Wraps a signed body for the wire.
    pub fn signed(body: Vec<u8>, sig: Vec<u8>) -> Result<Vec<u8>, Error> {
        let map =
            dict! { "enc" => "clear", "load" => Value::bytes(body), "sig" => Value::bytes(sig) };
        Ok(msgpack::to_vec(&map, Dialect::Raw)?)
    }

    /// Unwraps an answer: the body's bytes and the signature over them, if it has one.
    pub fn unwrap_signed(bytes: &[u8]) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        // The body may be valid UTF-8 by accident; its bytes count.
        let Value::Dict(map) = msgpack::from_slice(bytes, Text::KeepBytes)? else {
            return Err(Error::NotMap);
        };
        let fields = Fields(&map);
        let body = match fields.value("load")? {
            Value::Dict(body) => msgpack::to_vec(&body.into(), Dialect::Raw)?,
            other => other.as_bytes().map(<[u8]>::to_vec).ok_or(Error::Type("load"))?,
        };
        Ok((body, fields.optional_bytes("sig")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_round_trip() {
        for refusal in [Refusal::Pending, Refusal::Denied, Refusal::Full] {
            let bytes = AuthReply::Refused(refusal).encode(Some("n")).unwrap();
            let (reply, nonce) = AuthReply::decode(&bytes).unwrap();
            assert!(matches!(reply, AuthReply::Refused(back) if back == refusal));
            assert_eq!(nonce.as_deref(), Some("n"));
        }
        let welcome = Welcome {
            public_key: "PEM".into(),
            aes: vec![1],
            aes_sig: vec![2],
            ..Welcome::default()
        };
        let body = AuthReply::Welcome(Box::new(welcome)).encode(None).unwrap();
        let wire = AuthReply::signed(body.clone(), vec![0xfe; 4]).unwrap();
        let (unwrapped, sig) = AuthReply::unwrap_signed(&wire).unwrap();
        assert_eq!((unwrapped, sig), (body.clone(), Some(vec![0xfe; 4])));
        let (reply, nonce) = AuthReply::decode(&body).unwrap();
        assert!(matches!(reply, AuthReply::Welcome(welcome) if welcome.aes == [1]));
        assert_eq!(nonce, None);
    }
}
