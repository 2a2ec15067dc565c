//! What can be asked of a master, and what it answers.
//!
//! A request is a map with `id` (a number the caller picks) and `do` (the verb) beside the fields
//! below. Each answer repeats the `id` and has one of `item` (part of a stream), `end` (the last
//! or only answer) or `error` (`{name, message}`, also the last). Streams are `publish` (with
//! `follow`), `follow` and `events`.

use halite_value::{Dict, Key, SmolStr, Value, dict, entries};

/// A message that does not fit the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// A job to publish.
#[derive(Clone, Debug)]
pub struct Job {
    pub tgt: Value,
    /// Salt's `tgt_type`; `nodegroup` is resolved by the master.
    pub tgt_type: SmolStr,
    /// A function, or a list of functions.
    pub fun: Value,
    /// Positional arguments, keyword arguments as one map with `__kwarg__: true` among them.
    pub arg: Vec<Value>,
    /// Returners, with commas.
    pub ret: SmolStr,
    /// Empty: the master chooses.
    pub jid: SmolStr,
    /// Whom the job is filed under (`sudo_ann`); empty: the user behind the socket.
    pub user: SmolStr,
    /// Seconds the minions have (`to`); needed by syndics only.
    pub timeout: Option<i64>,
    /// What Salt's CLI puts into `kwargs`: `metadata`, `ret_config`, `delimiter`,
    /// `module_executors`, `start_event` …
    pub kwargs: Dict,
    /// Stream [`Progress`] after the [`Published`].
    pub follow: bool,
}

impl Job {
    /// A followed job without arguments.
    pub fn new(tgt: impl Into<Value>, tgt_type: &str, fun: impl Into<Value>) -> Self {
        Self {
            tgt: tgt.into(),
            tgt_type: tgt_type.into(),
            fun: fun.into(),
            arg: Vec::new(),
            ret: SmolStr::default(),
            jid: SmolStr::default(),
            user: SmolStr::default(),
            timeout: None,
            kwargs: Dict::new(),
            follow: true,
        }
    }
}

/// What became of a wish to publish.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// Empty when nothing matched; `error` then says so.
    pub jid: SmolStr,
    /// Who is expected to answer.
    pub minions: Vec<SmolStr>,
    /// Ids that a list names and nobody has.
    pub missing: Vec<SmolStr>,
    /// Those of `minions` that are Halite minions and connected now: they are certain to be told,
    /// and their [`Progress::Lost`] comes when their connection ends.
    pub connected: Vec<SmolStr>,
    /// Those of `minions` that certainly do not get the job: not connected. Name them at once.
    pub absent: Vec<SmolStr>,
    /// Those of `minions` the master cannot tell about (genuine Salt minions): ask with
    /// `saltutil.find_job` as Salt does.
    pub unsure: Vec<SmolStr>,
    /// Syndics that pass the job on, and will tell who answers below them ([`Progress::Expect`]).
    /// They are in no other list, except in `connected` if they are Halite's and connected.
    pub relays: Vec<SmolStr>,
    pub error: Option<SmolStr>,
}

/// News about a followed job.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The minion has the job (Halite minions only).
    Received { id: SmolStr },
    /// The minion has begun (Halite minions, or `start_event`).
    Started { id: SmolStr },
    /// The return, as its event has it: `id`, `jid`, `fun`, `fun_args`, `return`, `retcode`,
    /// `success`, `out` … It is stored.
    Returned(Dict),
    /// A part of a return (`salt/job/<jid>/prog/…`), as its event has it.
    Partial(Dict),
    /// The minion's connection ended before it returned.
    Lost { id: SmolStr, reason: SmolStr },
    /// It came back.
    Back { id: SmolStr },
    /// More minions will answer: the syndic `relay` has told of them, and of syndics below itself
    /// (`relays`), which are to tell of theirs.
    Expect { ids: Vec<SmolStr>, relay: SmolStr, relays: Vec<SmolStr> },
    /// Of these minions below a syndic the end of their connection will be told.
    Sure { ids: Vec<SmolStr> },
    /// This many news were dropped because they were not read; ask for the returns by
    /// [`Request::Job`].
    Gap { missed: u64 },
    /// Everybody who is expected has returned, or is certain not to.
    Done,
}

/// One event of an [`Request::Events`] stream.
#[derive(Clone, Debug)]
pub enum EventItem {
    Event {
        /// Its place in the master's log; pass it as `after` to go on from here. 0: not logged.
        cursor: u64,
        tag: SmolStr,
        data: Dict,
    },
    /// This many events were dropped for this reader.
    Gap { missed: u64 },
}

/// A question.
#[derive(Clone, Debug)]
pub enum Request {
    /// → `{version, master, pid, user}`
    Hello,
    /// → item [`Published`], then [`Progress`] items if followed, then end.
    Publish(Box<Job>),
    /// → [`Progress`] items, beginning with the returns that are stored already.
    Follow { jid: SmolStr },
    /// → [`EventItem`]s: from the log after `after`, then as they happen.
    Events { tag: SmolStr, after: Option<u64> },
    /// Fires an event on the master's bus. → true
    Fire { tag: SmolStr, data: Dict },
    /// Asks under other rights than the socket gives: `{token}`, or `{eauth, username, password …}`.
    As { credentials: Dict, request: Box<Request> },
    /// What minions put into the mine: all of it, or these functions. → `{id: {function: value}}`
    Mine { tgt: Value, tgt_type: SmolStr, functions: Vec<SmolStr> },
    /// Forgets what is remembered of minions: `grains`, `pillar`, `mine`, or one function of it.
    /// → the ids that were meant
    Forget { tgt: Value, tgt_type: SmolStr, what: SmolStr, function: SmolStr },
    /// Ends a token. → true
    EndToken { token: SmolStr },
    /// Makes a token from `{eauth, username, password …}`. → `{token, start, expire, name, eauth}`
    MakeToken { load: Dict },
    /// → list of `{jid, …load}`, newest first. `function`/`target`/`user` filter as
    /// `jobs.list_jobs` does (globs).
    Jobs { limit: Option<u64>, filter: Dict },
    /// → `{jid, load, minions, returns: {id: return}, states: {id: state}}`, or None.
    Job { jid: SmolStr },
    /// → list of `{jid, load, waiting: [id]}`: jobs with minions that are still to return.
    ActiveJobs,
    /// → `{connected: [id], known: [id]}`: Halite minions on a connection; accepted keys.
    Minions,
    /// → `{id: {grains, pillar}}` as cached, of the minions a target means.
    MinionData { tgt: Value, tgt_type: SmolStr },
    /// A runner function, in the master. → `{jid, return, success, fun, user}`
    Runner { fun: SmolStr, arg: Vec<Value>, kwarg: Dict, asynchronous: bool },
    /// A wheel function. → as for runners
    Wheel { fun: SmolStr, arg: Vec<Value>, kwarg: Dict },
    /// An orchestration, in the master, under this id. → as for runners; goes on when nobody listens
    Orchestrate { jid: SmolStr, fun: SmolStr, arg: Vec<Value>, kwarg: Dict },
    /// A question to a part of the master: `reactor`, `queue`, `orchestration`, `rules`, `engines`.
    Ask { what: SmolStr, load: Dict },
    /// Counters of the master.
    Statistics,
    /// Ends a stream. → nothing
    Cancel { request: u64 },
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    Item(Value),
    End(Value),
    Refused { name: SmolStr, message: SmolStr },
}

fn text(map: &Dict, name: &str) -> SmolStr {
    map.get(name).and_then(|value| value.as_str().map(SmolStr::from)).unwrap_or_default()
}

fn texts(map: &Dict, name: &str) -> Vec<SmolStr> {
    let items = map.get(name).and_then(|value| value.items_of_sequence()).unwrap_or_default();
    items.iter().map(Value::to_str).collect()
}

fn items(map: &Dict, name: &str) -> Vec<Value> {
    map.get(name).and_then(|value| value.items_of_sequence()).unwrap_or_default()
}

fn map_of(map: &Dict, name: &str) -> Dict {
    match map.get(name) {
        Some(Value::Dict(found)) => found,
        _ => Dict::new(),
    }
}

fn flag(map: &Dict, name: &str) -> bool {
    map.get(name).is_some_and(|value| value.truthy())
}

fn number(map: &Dict, name: &str) -> Option<u64> {
    map.get(name).and_then(|value| value.as_int()).and_then(|int| u64::try_from(int).ok())
}

fn list(items: &[SmolStr]) -> Value {
    Value::list(items)
}

impl Job {
    pub fn write(&self) -> Dict {
        entries! {
            "do" => "publish", "tgt" => &self.tgt, "tgt_type" => &self.tgt_type,
            "fun" => &self.fun, "arg" => self.arg.clone(), "ret" => &self.ret,
            "jid" => &self.jid, "user" => &self.user, "to" => self.timeout,
            "kwargs" => &self.kwargs, "follow" => self.follow,
        }
    }

    pub fn read(map: &Dict) -> Result<Self, Malformed> {
        Ok(Self {
            tgt: map.get("tgt").ok_or(Malformed("tgt"))?,
            tgt_type: text(map, "tgt_type"),
            fun: map.get("fun").ok_or(Malformed("fun"))?,
            arg: items(map, "arg"),
            ret: text(map, "ret"),
            jid: text(map, "jid"),
            user: text(map, "user"),
            timeout: map.get("to").and_then(|value| value.as_int()),
            kwargs: map_of(map, "kwargs"),
            follow: flag(map, "follow"),
        })
    }
}

impl Published {
    pub fn write(&self) -> Dict {
        entries! {
                   "jid" => &self.jid, "minions" => list(&self.minions),
                   "missing" => list(&self.missing), "connected" => list(&self.connected),
        "absent" => list(&self.absent), "unsure" => list(&self.unsure),
                   "relays" => list(&self.relays), "error" => self.error.clone(),
               }
    }

    pub fn read(map: &Dict) -> Result<Self, Malformed> {
        Ok(Self {
            jid: text(map, "jid"),
            minions: texts(map, "minions"),
            missing: texts(map, "missing"),
            connected: texts(map, "connected"),
            absent: texts(map, "absent"),
            unsure: texts(map, "unsure"),
            relays: texts(map, "relays"),
            error: Some(text(map, "error")).filter(|error| !error.is_empty()),
        })
    }
}

impl Progress {
    pub fn write(&self) -> Dict {
        match self {
            Self::Received { id } => entries! { "is" => "received", "id" => id },
            Self::Started { id } => entries! { "is" => "started", "id" => id },
            Self::Returned(load) => entries! { "is" => "returned", "load" => load },
            Self::Partial(load) => entries! { "is" => "partial", "load" => load },
            Self::Lost { id, reason } => {
                entries! { "is" => "lost", "id" => id, "reason" => reason }
            }
            Self::Back { id } => entries! { "is" => "back", "id" => id },
            Self::Expect { ids, relay, relays } => entries! {
                "is" => "expect", "ids" => list(ids), "relay" => relay, "relays" => list(relays),
            },
            Self::Sure { ids } => entries! { "is" => "sure", "ids" => list(ids) },
            Self::Gap { missed } => entries! { "is" => "gap", "missed" => *missed },
            Self::Done => entries! { "is" => "done" },
        }
    }

    pub fn read(map: &Dict) -> Result<Self, Malformed> {
        let id = text(map, "id");
        Ok(match text(map, "is").as_str() {
            "received" => Self::Received { id },
            "started" => Self::Started { id },
            "returned" => Self::Returned(map_of(map, "load")),
            "partial" => Self::Partial(map_of(map, "load")),
            "lost" => Self::Lost { id, reason: text(map, "reason") },
            "back" => Self::Back { id },
            "expect" => Self::Expect {
                ids: texts(map, "ids"),
                relay: text(map, "relay"),
                relays: texts(map, "relays"),
            },
            "sure" => Self::Sure { ids: texts(map, "ids") },
            "gap" => Self::Gap { missed: number(map, "missed").unwrap_or(0) },
            "done" => Self::Done,
            _ => return Err(Malformed("progress")),
        })
    }
}

impl EventItem {
    pub fn write(&self) -> Dict {
        match self {
            Self::Event { cursor, tag, data } => {
                entries! { "cursor" => *cursor, "tag" => tag, "data" => data }
            }
            Self::Gap { missed } => entries! { "gap" => *missed },
        }
    }

    pub fn read(map: &Dict) -> Result<Self, Malformed> {
        if let Some(missed) = number(map, "gap") {
            return Ok(Self::Gap { missed });
        }
        Ok(Self::Event {
            cursor: number(map, "cursor").ok_or(Malformed("cursor"))?,
            tag: text(map, "tag"),
            data: map_of(map, "data"),
        })
    }
}

impl Request {
    /// Writes the request, without its number.
    pub fn write(&self) -> Dict {
        let verb = |verb: &str| entries! { "do" => verb };
        match self {
            Self::Hello => verb("hello"),
            Self::Publish(job) => job.write(),
            Self::Follow { jid } => entries! { "do" => "follow", "jid" => jid },
            Self::Events { tag, after } => {
                entries! { "do" => "events", "tag" => tag, "after" => *after }
            }
            Self::Fire { tag, data } => entries! { "do" => "fire", "tag" => tag, "data" => data },
            Self::As { credentials, request } => {
                entries! { "do" => "as", "credentials" => credentials, "request" => request.write() }
            }
            Self::Mine { tgt, tgt_type, functions } => entries! {
                "do" => "mine", "tgt" => tgt, "tgt_type" => tgt_type, "functions" => list(functions),
            },
            Self::Forget { tgt, tgt_type, what, function } => entries! {
                "do" => "forget", "tgt" => tgt, "tgt_type" => tgt_type, "what" => what,
                "function" => function,
            },
            Self::EndToken { token } => entries! { "do" => "end_token", "token" => token },
            Self::MakeToken { load } => entries! { "do" => "make_token", "load" => load },
            Self::Jobs { limit, filter } => {
                entries! { "do" => "jobs", "limit" => *limit, "filter" => filter }
            }
            Self::Job { jid } => entries! { "do" => "job", "jid" => jid },
            Self::ActiveJobs => verb("active_jobs"),
            Self::Minions => verb("minions"),
            Self::MinionData { tgt, tgt_type } => {
                entries! { "do" => "minion_data", "tgt" => tgt, "tgt_type" => tgt_type }
            }
            Self::Runner { fun, arg, kwarg, asynchronous } => entries! {
                "do" => "runner", "fun" => fun, "arg" => arg.clone(), "kwarg" => kwarg,
                "async" => *asynchronous,
            },
            Self::Wheel { fun, arg, kwarg } => entries! {
                "do" => "wheel", "fun" => fun, "arg" => arg.clone(), "kwarg" => kwarg,
            },
            Self::Orchestrate { jid, fun, arg, kwarg } => entries! {
                "do" => "orchestrate", "jid" => jid, "fun" => fun, "arg" => arg.clone(),
                "kwarg" => kwarg,
            },
            Self::Ask { what, load } => {
                entries! { "do" => "ask", "what" => what, "load" => load }
            }
            Self::Statistics => verb("statistics"),
            Self::Cancel { request } => entries! { "do" => "cancel", "request" => *request },
        }
    }

    /// Tells whether anybody may ask this, without rights.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Self::Hello | Self::Cancel { .. } | Self::As { .. } | Self::MakeToken { .. })
    }

    /// Reads a request with its number.
    pub fn read(map: &Dict) -> Result<(u64, Self), Malformed> {
        let id = number(map, "id").ok_or(Malformed("id"))?;
        let request = match text(map, "do").as_str() {
            "hello" => Self::Hello,
            "publish" => Self::Publish(Box::new(Job::read(map)?)),
            "follow" => Self::Follow { jid: text(map, "jid") },
            "events" => Self::Events { tag: text(map, "tag"), after: number(map, "after") },
            "fire" => Self::Fire { tag: text(map, "tag"), data: map_of(map, "data") },
            "as" => {
                // Its number is that of the whole.
                let inner = map_of(map, "request").shallow_copy();
                // One level only: who asks for somebody who asks for somebody?
                if text(&inner, "do") == "as" {
                    return Err(Malformed("request"));
                }
                inner.insert("id", map.get("id").unwrap_or_else(|| 0.into()));
                let (_, request) = Self::read(&inner)?;
                let credentials = map_of(map, "credentials");
                Self::As { credentials, request: Box::new(request) }
            }
            "mine" => Self::Mine {
                tgt: map.get("tgt").ok_or(Malformed("tgt"))?,
                tgt_type: text(map, "tgt_type"),
                functions: texts(map, "functions"),
            },
            "forget" => Self::Forget {
                tgt: map.get("tgt").ok_or(Malformed("tgt"))?,
                tgt_type: text(map, "tgt_type"),
                what: text(map, "what"),
                function: text(map, "function"),
            },
            "end_token" => Self::EndToken { token: text(map, "token") },
            "make_token" => Self::MakeToken { load: map_of(map, "load") },
            "jobs" => Self::Jobs { limit: number(map, "limit"), filter: map_of(map, "filter") },
            "job" => Self::Job { jid: text(map, "jid") },
            "active_jobs" => Self::ActiveJobs,
            "minions" => Self::Minions,
            "minion_data" => Self::MinionData {
                tgt: map.get("tgt").ok_or(Malformed("tgt"))?,
                tgt_type: text(map, "tgt_type"),
            },
            "runner" => Self::Runner {
                fun: text(map, "fun"),
                arg: items(map, "arg"),
                kwarg: map_of(map, "kwarg"),
                asynchronous: flag(map, "async"),
            },
            "wheel" => Self::Wheel {
                fun: text(map, "fun"),
                arg: items(map, "arg"),
                kwarg: map_of(map, "kwarg"),
            },
            "orchestrate" => Self::Orchestrate {
                jid: text(map, "jid"),
                fun: text(map, "fun"),
                arg: items(map, "arg"),
                kwarg: map_of(map, "kwarg"),
            },
            "ask" => Self::Ask { what: text(map, "what"), load: map_of(map, "load") },
            "statistics" => Self::Statistics,
            "cancel" => {
                Self::Cancel { request: number(map, "request").ok_or(Malformed("request"))? }
            }
            _ => return Err(Malformed("do")),
        };
        Ok((id, request))
    }
}

impl Answer {
    pub fn write(&self, id: u64) -> Dict {
        match self {
            Self::Item(value) => entries! { "id" => id, "item" => value },
            Self::End(value) => entries! { "id" => id, "end" => value },
            Self::Refused { name, message } => entries! {
                "id" => id, "error" => dict! { "name" => name, "message" => message },
            },
        }
    }

    pub fn read(map: &Dict) -> Result<(u64, Self), Malformed> {
        let id = number(map, "id").ok_or(Malformed("id"))?;
        let field = |name: &str| map.get(&Key::from(name));
        let answer = if let Some(item) = field("item") {
            Self::Item(item)
        } else if let Some(end) = field("end") {
            Self::End(end)
        } else if let Some(Value::Dict(error)) = field("error") {
            Self::Refused { name: text(&error, "name"), message: text(&error, "message") }
        } else {
            return Err(Malformed("answer"));
        };
        Ok((id, answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_trip() {
        let requests = [
            Request::Hello,
            Request::Publish(Box::new(Job::new("*", "glob", "test.ping"))),
            Request::Follow { jid: "1".into() },
            Request::Events { tag: "salt/".into(), after: Some(7) },
            Request::Fire { tag: "x".into(), data: entries! { "a" => 1 } },
            Request::As {
                credentials: entries! { "token" => "x" },
                request: Box::new(Request::Minions),
            },
            Request::Mine {
                tgt: "*".into(),
                tgt_type: "glob".into(),
                functions: vec!["a.b".into()],
            },
            Request::Forget {
                tgt: "*".into(),
                tgt_type: "glob".into(),
                what: "mine".into(),
                function: "a.b".into(),
            },
            Request::EndToken { token: "x".into() },
            Request::MakeToken { load: entries! { "eauth" => "pam" } },
            Request::Jobs { limit: Some(3), filter: Dict::new() },
            Request::Job { jid: "1".into() },
            Request::ActiveJobs,
            Request::Minions,
            Request::MinionData { tgt: "*".into(), tgt_type: "glob".into() },
            Request::Runner {
                fun: "a.b".into(),
                arg: vec![1.into()],
                kwarg: Dict::new(),
                asynchronous: true,
            },
            Request::Wheel { fun: "a.b".into(), arg: Vec::new(), kwarg: Dict::new() },
            Request::Orchestrate {
                jid: "1".into(),
                fun: "state.orchestrate".into(),
                arg: vec!["orch.x".into()],
                kwarg: Dict::new(),
            },
            Request::Ask { what: "queue".into(), load: entries! { "action" => "list" } },
            Request::Statistics,
            Request::Cancel { request: 4 },
        ];
        for request in requests {
            let map = request.write();
            map.insert("id", 9);
            let (id, back) = Request::read(&map).unwrap();
            let again = back.write();
            again.insert("id", 9);
            assert_eq!((id, Value::from(again)), (9, Value::from(map)));
        }
    }

    #[test]
    fn answers_round_trip() {
        for answer in [
            Answer::Item(1.into()),
            Answer::End(Value::Null),
            Answer::Refused { name: "AuthorizationError".into(), message: "no".into() },
        ] {
            let map = answer.write(3);
            let (id, back) = Answer::read(&map).unwrap();
            assert_eq!((id, Value::from(back.write(3))), (3, Value::from(map)));
        }
        for progress in [
            Progress::Received { id: "m".into() },
            Progress::Lost { id: "m".into(), reason: "why".into() },
            Progress::Returned(entries! { "id" => "m" }),
            Progress::Expect {
                ids: vec!["a".into()],
                relay: "r".into(),
                relays: vec!["r/s".into()],
            },
            Progress::Sure { ids: vec!["c".into()] },
            Progress::Gap { missed: 2 },
            Progress::Done,
        ] {
            let map = progress.write();
            assert_eq!(
                Value::from(Progress::read(&map).unwrap().write()),
                Value::from(map.clone())
            );
        }
    }
}
