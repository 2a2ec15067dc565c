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
        let mut bytes = Vec::with_capacity(self.tag.len() + msgpack::ROOM);
        bytes.extend_from_slice(self.tag.as_bytes());
        bytes.extend_from_slice(TAG_END);
        msgpack::append(&Value::from(&self.data), Dialect::Modern, &mut bytes)?;
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
    let now = jiff::tz::TimeZone::UTC.to_datetime(jiff::Timestamp::now());
    // By its parts: every event has one, and a format that is read each time costs as much as the rest.
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00",
        now.year(),
        now.month(),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.subsec_nanosecond() / 1000
    )
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[test]
    fn stamps_are_salts() {
        let stamp = stamp();
        let time = stamp.strip_suffix("+00:00").unwrap();
        assert_eq!(time.len(), "2026-11-15T22:40:46.354303".len());
        let told: jiff::civil::DateTime = time.parse().unwrap();
        let told = told.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
        assert!(jiff::Timestamp::now().duration_since(told).as_secs() < 60);
    }

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
