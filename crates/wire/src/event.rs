//! An event as the buses carry it: tag, two line feeds, a msgpack map.

use halite_value::{
    Dict, Value,
    msgpack::{self, Dialect, Text},
};

use crate::Error;

const TAG_END: &[u8] = b"\n\n";

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    pub tag: String,
    pub data: Dict,
}

impl Event {
    /// Returns an event stamped with the present time, unless it has a stamp.
    pub fn new(tag: impl Into<String>, data: Dict) -> Self {
        data.get_or_insert_with("_stamp", || stamp().into());
        Self { tag: tag.into(), data }
    }

    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = self.tag.as_bytes().to_vec();
        bytes.extend_from_slice(TAG_END);
        bytes.extend(msgpack::to_vec(&Value::from(&self.data), Dialect::Modern)?);
        Ok(bytes)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let end = bytes.windows(2).position(|pair| pair == TAG_END).ok_or(Error::Missing("tag"))?;
        let tag = std::str::from_utf8(&bytes[..end]).map_err(|_| Error::Type("tag"))?;
        match msgpack::from_slice(&bytes[end + 2..], Text::Typed)? {
            Value::Dict(data) => Ok(Self { tag: tag.to_owned(), data }),
            _ => Err(Error::NotMap),
        }
    }
}

/// The time as Salt 3008 stamps events: `2026-11-15T22:40:46.354303+00:00`.
pub fn stamp() -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    format!("{}.{:06}+00:00", now.strftime("%Y-%m-%dT%H:%M:%S"), now.subsec_nanosecond() / 1000)
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[test]
    fn events_round_trip() {
        let event =
            Event::new("salt/x", entries! { "a" => "b\n\nc", "raw" => Value::bytes([0xff]) });
        let back = Event::decode(&event.encode().unwrap()).unwrap();
        assert_eq!(back.tag, "salt/x");
        assert_eq!(Value::from(&back.data), Value::from(&event.data));
        assert!(back.data.contains("_stamp"));
        assert!(Event::decode(b"no end").is_err());
    }
}
