//! What crosses the network and the event bus.
//!
//! Types for Salt's messages, read from and written to msgpack: envelopes, sign-in, requests of
//! minions and of local clients, publications, returns, events. What arrives is decoded into
//! closed types before anything acts on it ([`MinionRequest`], [`ClientRequest`]): an unknown
//! command is refused here, by name, once. Ids are validated newtypes ([`MinionId`], [`Jid`]), so
//! that none can name a path outside its folder.
//!
//! Absent on purpose: sockets (`transport`) and keys (`crypt`). Encrypted parts are opaque bytes.

mod auth;
mod client;
mod envelope;
mod event;
mod extension;
mod ids;
mod job;
mod minion;
mod tag;
pub mod typed;

pub use auth::{AuthReply, AuthRequest, Refusal, Welcome};
pub use client::{ClientRequest, Credentials, Publish};
pub use envelope::{Envelope, PROTOCOL, Sealed, SealedPublication};
pub use event::{Event, stamp};
pub use extension::{EXTENSION, IN_SESSION, Notice, RETURNS};
pub use ids::{Jid, MinionId};
pub use job::{Args, Publication, Return};
pub use minion::{FileRequest, MinionRequest};
pub use tag::Tag;

/// A message that does not fit its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not msgpack: {0}")]
    Codec(#[from] halite_value::msgpack::Error),
    #[error("the message is not a map")]
    NotMap,
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    #[error("the field `{0}` has the wrong type")]
    Type(&'static str),
    #[error("`{0}` is not a valid minion id")]
    MinionId(String),
    #[error("`{0}` is not a job id")]
    Jid(String),
    #[error("the command `{0}` is not known")]
    Unknown(String),
}

use halite_value::{Dict, SmolStr, Value};

/// Reads the fields of a map, each with its type.
pub(crate) struct Fields<'a>(pub(crate) &'a Dict);

impl Fields<'_> {
    pub(crate) fn value(&self, name: &'static str) -> Result<Value, Error> {
        self.0.get(name).ok_or(Error::Missing(name))
    }

    pub(crate) fn optional(&self, name: &str) -> Option<Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<SmolStr, Error> {
        match self.value(name)? {
            Value::Str(text) => Ok(text),
            _ => Err(Error::Type(name)),
        }
    }

    pub(crate) fn text_or(&self, name: &'static str, default: &str) -> Result<SmolStr, Error> {
        match self.optional(name) {
            None => Ok(default.into()),
            Some(Value::Str(text)) => Ok(text),
            Some(_) => Err(Error::Type(name)),
        }
    }

    /// Bytes, which may have arrived as text (a genuine peer guesses).
    pub(crate) fn bytes(&self, name: &'static str) -> Result<Vec<u8>, Error> {
        self.value(name)?.as_bytes().map(<[u8]>::to_vec).ok_or(Error::Type(name))
    }

    pub(crate) fn optional_bytes(&self, name: &'static str) -> Result<Option<Vec<u8>>, Error> {
        match self.optional(name) {
            None => Ok(None),
            Some(value) => {
                value.as_bytes().map(|bytes| Some(bytes.to_vec())).ok_or(Error::Type(name))
            }
        }
    }

    pub(crate) fn int_or(&self, name: &'static str, default: i64) -> Result<i64, Error> {
        match self.optional(name) {
            None => Ok(default),
            Some(value) => value.to_int().ok_or(Error::Type(name)),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.optional(name).is_some_and(|value| value.truthy())
    }

    pub(crate) fn dict_or_empty(&self, name: &'static str) -> Result<Dict, Error> {
        match self.optional(name) {
            None => Ok(Dict::new()),
            Some(Value::Dict(dict)) => Ok(dict),
            Some(_) => Err(Error::Type(name)),
        }
    }

    pub(crate) fn list_or_empty(&self, name: &'static str) -> Result<Vec<Value>, Error> {
        match self.optional(name) {
            None => Ok(Vec::new()),
            Some(value) => value.items_of_sequence().ok_or(Error::Type(name)),
        }
    }

    pub(crate) fn minion_id(&self, name: &'static str) -> Result<MinionId, Error> {
        MinionId::new(&self.text(name)?)
    }
}
