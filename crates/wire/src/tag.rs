//! Event tags: one type, so that no sender formats and no reader splits by hand.

use std::fmt;

/// The name of an event, as reactors and API clients match on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `salt/auth`
    Auth,
    /// `salt/key`
    Key,
    /// `salt/minion/<id>/start`
    MinionStart(String),
    /// `minion/refresh/<id>`
    MinionRefresh(String),
    /// `salt/presence/present`
    Present,
    /// `salt/presence/change`
    PresenceChange,
    /// `salt/job/<jid>/new`
    JobNew(String),
    /// `salt/job/<jid>/publish`
    JobPublish(String),
    /// `salt/job/<jid>/ret/<minion>`
    JobReturn(String, String),
    /// `salt/job/<jid>/start/<minion>`
    JobStart(String, String),
    /// `salt/job/<jid>/prog/<minion>/<number>`
    JobProgress(String, String, String),
    /// `salt/run/<jid>/new`
    RunNew(String),
    /// `salt/run/<jid>/ret`
    RunReturn(String),
    /// `salt/wheel/<jid>/new`
    WheelNew(String),
    /// `salt/wheel/<jid>/ret`
    WheelReturn(String),
    /// `salt/beacon/<minion>/<beacon>/<rest>`
    Beacon(String, String, String),
    /// Anything else, among them what users fire themselves.
    Other(String),
}

impl From<&str> for Tag {
    fn from(tag: &str) -> Self {
        let own = str::to_owned;
        match *tag.split('/').collect::<Vec<_>>() {
            ["salt", "auth"] => Self::Auth,
            ["salt", "key"] => Self::Key,
            ["salt", "minion", id, "start"] => Self::MinionStart(own(id)),
            ["minion", "refresh", id] => Self::MinionRefresh(own(id)),
            ["salt", "presence", "present"] => Self::Present,
            ["salt", "presence", "change"] => Self::PresenceChange,
            ["salt", "job", jid, "new"] => Self::JobNew(own(jid)),
            ["salt", "job", jid, "publish"] => Self::JobPublish(own(jid)),
            ["salt", "job", jid, "ret", id] => Self::JobReturn(own(jid), own(id)),
            ["salt", "job", jid, "start", id] => Self::JobStart(own(jid), own(id)),
            ["salt", "job", jid, "prog", id, number] => {
                Self::JobProgress(own(jid), own(id), own(number))
            }
            ["salt", "run", jid, "new"] => Self::RunNew(own(jid)),
            ["salt", "run", jid, "ret"] => Self::RunReturn(own(jid)),
            ["salt", "wheel", jid, "new"] => Self::WheelNew(own(jid)),
            ["salt", "wheel", jid, "ret"] => Self::WheelReturn(own(jid)),
            ["salt", "beacon", id, beacon, ref rest @ ..] => {
                Self::Beacon(own(id), own(beacon), rest.join("/"))
            }
            _ => Self::Other(own(tag)),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auth => f.write_str("salt/auth"),
            Self::Key => f.write_str("salt/key"),
            Self::MinionStart(id) => write!(f, "salt/minion/{id}/start"),
            Self::MinionRefresh(id) => write!(f, "minion/refresh/{id}"),
            Self::Present => f.write_str("salt/presence/present"),
            Self::PresenceChange => f.write_str("salt/presence/change"),
            Self::JobNew(jid) => write!(f, "salt/job/{jid}/new"),
            Self::JobPublish(jid) => write!(f, "salt/job/{jid}/publish"),
            Self::JobReturn(jid, id) => write!(f, "salt/job/{jid}/ret/{id}"),
            Self::JobStart(jid, id) => write!(f, "salt/job/{jid}/start/{id}"),
            Self::JobProgress(jid, id, number) => write!(f, "salt/job/{jid}/prog/{id}/{number}"),
            Self::RunNew(jid) => write!(f, "salt/run/{jid}/new"),
            Self::RunReturn(jid) => write!(f, "salt/run/{jid}/ret"),
            Self::WheelNew(jid) => write!(f, "salt/wheel/{jid}/new"),
            Self::WheelReturn(jid) => write!(f, "salt/wheel/{jid}/ret"),
            Self::Beacon(id, beacon, rest) => write!(f, "salt/beacon/{id}/{beacon}/{rest}"),
            Self::Other(tag) => f.write_str(tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_is_the_inverse_of_reading() {
        for tag in [
            "salt/auth",
            "salt/key",
            "salt/minion/m/start",
            "minion/refresh/m",
            "salt/presence/present",
            "salt/presence/change",
            "salt/job/1/new",
            "salt/job/1/publish",
            "salt/job/1/ret/m",
            "salt/job/1/start/m",
            "salt/job/1/prog/m/3",
            "salt/run/1/new",
            "salt/run/1/ret",
            "salt/wheel/1/new",
            "salt/wheel/1/ret",
            "salt/beacon/m/load/x/y",
            "salt/beacon/m/load/",
            "my/own/tag",
            "salt/job/1/ret/m/extra",
            "",
        ] {
            assert_eq!(Tag::from(tag).to_string(), tag);
        }
        assert!(matches!(Tag::from("salt/job/1/ret/m"), Tag::JobReturn(..)));
    }
}
