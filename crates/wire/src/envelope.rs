//! The outermost map of a request, and of a publication.

use halite_value::{
    Dict, SmolStr, Value, dict,
    msgpack::{self, Dialect, Text},
};

use crate::{Error, Fields, MinionId};

/// The protocol version we speak.
pub const PROTOCOL: i64 = 3;

/// A request as it arrives at the master.
#[derive(Clone, Debug)]
pub enum Envelope {
    /// Sign-in, and local clients.
    Clear { load: Dict, version: i64 },
    /// Everything else.
    Sealed(Sealed),
}

/// An encrypted request.
#[derive(Clone, Debug)]
pub struct Sealed {
    pub load: Vec<u8>,
    pub version: i64,
    /// Whose session key; absent before version 3.
    pub id: Option<MinionId>,
    /// Absent: the SHA-1 names.
    pub enc_algo: Option<SmolStr>,
    pub sig_algo: Option<SmolStr>,
}

impl Envelope {
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let Value::Dict(map) = msgpack::from_slice(bytes, Text::Guess)? else {
            return Err(Error::NotMap);
        };
        let fields = Fields(&map);
        let version = fields.int_or("version", 0)?;
        match fields.text_or("enc", "clear")?.as_str() {
            "clear" => match fields.value("load")? {
                Value::Dict(load) => Ok(Self::Clear { load, version }),
                _ => Err(Error::Type("load")),
            },
            "aes" => Ok(Self::Sealed(Sealed {
                load: fields.bytes("load")?,
                version,
                id: if fields.optional("id").is_some() {
                    Some(fields.minion_id("id")?)
                } else {
                    None
                },
                enc_algo: fields.optional("enc_algo").map(|name| name.to_str()),
                sig_algo: fields.optional("sig_algo").map(|name| name.to_str()),
            })),
            _ => Err(Error::Type("enc")),
        }
    }

    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let map = match self {
            Self::Clear { load, version } => {
                dict! { "enc" => "clear", "load" => load, "version" => *version }
            }
            Self::Sealed(sealed) => {
                let map = dict! {
                    "enc" => "aes", "load" => Value::bytes(sealed.load.clone()),
                    "version" => sealed.version,
                };
                if let (Value::Dict(map), Some(id)) = (&map, &sealed.id) {
                    map.insert("id", id);
                    for (key, algo) in
                        [("enc_algo", &sealed.enc_algo), ("sig_algo", &sealed.sig_algo)]
                    {
                        if let Some(algo) = algo {
                            map.insert(key, algo);
                        }
                    }
                }
                map
            }
        };
        Ok(msgpack::to_vec(&map, Dialect::Raw)?)
    }
}

/// A publication as it travels: the encrypted job with the master's signature over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPublication {
    pub load: Vec<u8>,
    pub sig: Option<Vec<u8>>,
    pub sig_algo: Option<SmolStr>,
}

impl SealedPublication {
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let Value::Dict(map) = msgpack::from_slice(bytes, Text::Guess)? else {
            return Err(Error::NotMap);
        };
        let fields = Fields(&map);
        Ok(Self {
            load: fields.bytes("load")?,
            sig: fields.optional_bytes("sig")?,
            sig_algo: fields.optional("sig_algo").map(|name| name.to_str()),
        })
    }

    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let map = dict! { "enc" => "aes", "load" => Value::bytes(self.load.clone()) };
        if let Value::Dict(map) = &map {
            if let Some(sig) = &self.sig {
                map.insert("sig", Value::bytes(sig.clone()));
            }
            if let Some(algo) = &self.sig_algo {
                map.insert("sig_algo", algo);
            }
        }
        Ok(msgpack::to_vec(&map, Dialect::Raw)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_round_trip() {
        let sealed = Sealed {
            load: vec![0xff, 1, 2],
            version: 3,
            id: Some(MinionId::new("m1").unwrap()),
            enc_algo: Some("OAEP-SHA1".into()),
            sig_algo: None,
        };
        let bytes = Envelope::Sealed(sealed).encode().unwrap();
        let Envelope::Sealed(back) = Envelope::decode(&bytes).unwrap() else { panic!("sealed") };
        assert_eq!((back.load, back.version), (vec![0xff, 1, 2], 3));
        assert_eq!(back.id.as_deref(), Some("m1"));
        let clear = Envelope::Clear { load: Dict::new(), version: 2 }.encode().unwrap();
        assert!(matches!(Envelope::decode(&clear), Ok(Envelope::Clear { version: 2, .. })));
    }

    #[test]
    fn bad_envelopes_are_told_apart() {
        let bytes = |value: &Value| msgpack::to_vec(value, Dialect::Raw).unwrap();
        let error = |value: &Value| Envelope::decode(&bytes(value)).unwrap_err();
        assert_eq!(error(&Value::Null), Error::NotMap);
        assert_eq!(error(&dict! { "enc" => "aes" }), Error::Missing("load"));
        assert_eq!(error(&dict! { "enc" => "pub", "load" => 1 }), Error::Type("enc"));
        let id = dict! { "enc" => "aes", "load" => "x", "id" => "../a" };
        assert!(matches!(error(&id), Error::MinionId(_)));
        assert!(matches!(Envelope::decode(b"\xc1"), Err(Error::Codec(_))));
    }
}
