//! What Halite ends say to each other beside Salt's messages.
//!
//! In `_auth` a Halite minion adds `halite: {version, listens?}` (`listens`: it is going to take
//! jobs, which the master holds for it until then); the answer has `halite: {version, first}`
//! (`first`: the first serial under the shared key). Notices are small clear maps on the extended
//! connection: they carry job ids and nothing secret, and the connection they come in on says who
//! speaks. From version 2 on a minion may add [`IN_SESSION`] to a question whose answer Salt seals
//! with RSA for it alone (`_pillar`): the answer then comes as any other does, under the session key
//! that only this minion and the master know. From version 3 on it may hand over several returns at
//! once ([`RETURNS`]): `returns` is a list of what it would send as `_return` one by one, and the
//! answer means that all of them are kept.

use halite_value::{
    Dict, Value, entries,
    msgpack::{self, Dialect, Text},
};

use crate::{Error, Fields, Jid};

/// The version of what is described here.
pub const EXTENSION: i64 = 3;

/// The field by which a minion asks for a private answer under its session key.
pub const IN_SESSION: &str = "halite_in_session";

/// The command by which a minion hands over several returns at once.
pub const RETURNS: &str = "halite_returns";

/// A one-way message between Halite ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Minion: I have the job (it is in my journal).
    Received(Jid),
    /// Minion: it runs now.
    Started(Jid),
    /// Minion: it still runs. With every heartbeat of a long job.
    Running(Jid),
    /// Minion: I will not run it, and this is why (not for me, expired, run before …).
    Refused(Jid, String),
    /// Master: a new shared key, sealed under the minion's session key: a map with `is: key`, `aes`
    /// (the key string) and `first` (the first serial under it, which grows from key to key).
    Key(Vec<u8>),
    /// Master: your key is not accepted any more, or the shared key has changed: sign in again.
    SignIn,
}

impl Notice {
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let map: Dict = match self {
            Self::Received(jid) => entries! { "is" => "received", "jid" => jid },
            Self::Started(jid) => entries! { "is" => "started", "jid" => jid },
            Self::Running(jid) => entries! { "is" => "running", "jid" => jid },
            Self::Refused(jid, why) => {
                entries! { "is" => "refused", "jid" => jid, "why" => why }
            }
            Self::Key(sealed) => {
                entries! { "is" => "key", "sealed" => Value::bytes(sealed.clone()) }
            }
            Self::SignIn => entries! { "is" => "sign_in" },
        };
        Ok(msgpack::to_vec(&map.into(), Dialect::Modern)?)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let Value::Dict(map) = msgpack::from_slice(bytes, Text::Typed)? else {
            return Err(Error::NotMap);
        };
        let fields = Fields(&map);
        let jid = || Jid::new(&fields.text("jid")?);
        Ok(match fields.text("is")?.as_str() {
            "received" => Self::Received(jid()?),
            "started" => Self::Started(jid()?),
            "running" => Self::Running(jid()?),
            "refused" => Self::Refused(jid()?, fields.text_or("why", "")?.to_string()),
            "key" => Self::Key(fields.bytes("sealed")?),
            "sign_in" => Self::SignIn,
            other => return Err(Error::Unknown(other.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_round_trip() {
        let jid = Jid::now();
        for notice in [
            Notice::Received(jid.clone()),
            Notice::Started(jid.clone()),
            Notice::Running(jid.clone()),
            Notice::Refused(jid, "no".into()),
            Notice::Key(vec![0, 0xff, b'a']),
            Notice::SignIn,
        ] {
            assert_eq!(Notice::decode(&notice.encode().unwrap()).unwrap(), notice);
        }
    }
}
