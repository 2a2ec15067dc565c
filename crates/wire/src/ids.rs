//! Names that become file names and routing keys: validated once, here.

use std::{fmt, ops::Deref};

use halite_value::{SmolStr, Value};

use crate::Error;

/// A minion's id. Never empty, never a path out of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinionId(SmolStr);

impl MinionId {
    /// Checks an id as it came from outside.
    pub fn new(text: &str) -> Result<Self, Error> {
        let bad = text.is_empty()
            || text.len() > 255
            || text == "."
            || text == ".."
            || text.bytes().any(|byte| matches!(byte, b'/' | b'\\' | b'\0' | b'\n' | b'\r'));
        if bad {
            Err(Error::MinionId(text.escape_debug().to_string()))
        } else {
            Ok(Self(text.into()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Sorts many ids: most are told apart by a number made of their first letters.
    pub fn sort(ids: Vec<Self>) -> Vec<Self> {
        let numbered = |id: Self| {
            let mut letters = [0; size_of::<u128>()];
            let len = id.0.len().min(letters.len());
            letters[..len].copy_from_slice(&id.0.as_bytes()[..len]);
            // No id has a zero in it, so a shorter one comes first, as it should.
            (u128::from_be_bytes(letters), id)
        };
        let mut ids: Vec<(u128, Self)> = ids.into_iter().map(numbered).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }
}

impl Deref for MinionId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MinionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&MinionId> for Value {
    fn from(id: &MinionId) -> Self {
        Self::Str(id.0.clone())
    }
}

impl std::borrow::Borrow<str> for MinionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A job id: 20 digits of UTC time, optionally `_` and a process id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jid(SmolStr);

impl Jid {
    pub fn new(text: &str) -> Result<Self, Error> {
        let (time, rest) = text.split_at_checked(20).unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let tail_ok = rest.is_empty()
            || rest
                .strip_prefix('_')
                .is_some_and(|pid| !pid.is_empty() && pid.len() <= 20 && digits(pid));
        if time.len() == 20 && digits(time) && tail_ok {
            Ok(Self(text.into()))
        } else {
            Err(Error::Jid(text.chars().take(64).collect::<String>().escape_debug().to_string()))
        }
    }

    /// Returns the id of this microsecond. Two calls may meet: the master keeps its last one.
    pub fn now() -> Self {
        let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
        let micros = now.subsec_nanosecond() / 1000;
        Self(format!("{}{micros:06}", now.strftime("%Y%m%d%H%M%S")).into())
    }

    /// Returns the smallest id that is greater than the last one and not in the past.
    pub fn after(last: Option<&Self>) -> Self {
        let now = Self::now();
        match last {
            Some(last) if last.0 >= now.0 => {
                let next = last.0[..20].parse::<u128>().map_or(0, |time| time + 1);
                Self(format!("{next:020}").into())
            }
            _ => now,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Jid {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Jid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&Jid> for Value {
    fn from(jid: &Jid) -> Self {
        Self::Str(jid.0.clone())
    }
}

impl std::borrow::Borrow<str> for Jid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_leave_their_folder() {
        for bad in ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "a\nb"] {
            assert!(MinionId::new(bad).is_err(), "{bad:?}");
        }
        for good in ["web1.example", "a b", "...", "ü", "-x"] {
            assert!(MinionId::new(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn many_are_sorted_as_one_would() {
        let texts =
            ["b", "a", "ab", "a b", "web-0000000000000002", "web-0000000000000001", "ü", "web-1"];
        let ids = texts.iter().map(|id| MinionId::new(id).expect("an id"));
        let sorted = MinionId::sort(ids.collect());
        let mut texts = texts;
        texts.sort_unstable();
        assert!(sorted.iter().map(MinionId::as_str).eq(texts));
    }

    #[test]
    fn job_ids_are_digits() {
        assert!(Jid::new("20261115224046354303").is_ok());
        assert!(Jid::new("20261115224046354303_4711").is_ok());
        for bad in [
            "",
            "req",
            "2026111522404635430",
            "20261115224046354303_",
            "../../../etc/passwd12",
            "2026111522404635430é",
        ] {
            assert!(Jid::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_later_id_is_greater() {
        let first = Jid::now();
        let second = Jid::after(Some(&first));
        assert!(second > first);
        assert!(Jid::after(Some(&second)) > second);
    }
}
