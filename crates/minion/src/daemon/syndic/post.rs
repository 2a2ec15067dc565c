//! What goes up: events and returns of the master below, in order, until each master above has its share.
//!
//! Returns, and what is said about a job, go to the master above that gave it; everything else to one
//! of them (`syndic_failover`: the first that is there, in random or in the configured order), or to
//! all (`syndic_forward_all_events`). What concerns a job goes at once, other events are collected for
//! `syndic_event_forward_timeout`. Nothing is dropped because a master is away: it waits here, and
//! `cachedir/syndic/cursor` says from where to read the event log after a restart.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::Write as _,
    path::{Path, PathBuf},
};

use halite_value::{
    Dict, SmolStr, Value, entries,
    msgpack::{self, Dialect},
};
use halite_wire::Tag;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What waits for one master above; beyond that events are dropped, the oldest first. Returns never.
const MOST: usize = 200_000;
/// What goes in one request.
const MOST_AT_ONCE: usize = 2000;
const MOST_BYTES: usize = 4 << 20;
/// Jobs whose giver is remembered.
const ORIGINS: usize = 20_000;

/// One thing to pass on.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Its place in the event log of the master below; 0: none.
    cursor: u64,
    /// Any master above will do.
    any: bool,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Event { tag: SmolStr, data: Dict },
    Return { jid: SmolStr, id: SmolStr, data: Dict },
}

impl What {
    /// Somebody waits for it.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Return { .. } => true,
            Self::Event { tag, .. } => tag.contains("/job/"),
        }
    }

    fn size(&self) -> usize {
        let (Self::Event { data, .. } | Self::Return { data, .. }) = self;
        msgpack::to_vec(&Value::from(data), Dialect::Modern).map_or(0, |bytes| bytes.len())
    }
}

/// What is known of the minions of a job beside their returns, for masters of ours above.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    pub(super) sure: Vec<SmolStr>,
    pub(super) started: Vec<SmolStr>,
    pub(super) lost: Vec<SmolStr>,
    pub(super) back: Vec<SmolStr>,
}

impl Aside {
    fn add(&mut self, more: Self) {
        self.sure.extend(more.sure);
        self.started.extend(more.started);
        self.lost.extend(more.lost);
        self.back.extend(more.back);
    }

    fn event(&self, jid: &str) -> Value {
        let data = entries! {};
        for (name, ids) in [
            ("sure", &self.sure),
            ("started", &self.started),
            ("lost", &self.lost),
            ("back", &self.back),
        ] {
            if !ids.is_empty() {
                data.insert(name, Value::list(ids));
            }
        }
        entries! { "tag" => format!("halite/relay/{jid}"), "data" => data }.into()
    }
}

/// The share of one master above.
struct Share {
    name: SmolStr,
    is_up: bool,
    items: VecDeque<Item>,
    asides: HashMap<SmolStr, Aside>,
    /// The first cursor of what is under way.
    under_way: Option<u64>,
    /// Jobs whose load it has.
    known: HashSet<SmolStr>,
    dropped: u64,
}

#[derive(Default)]
struct State {
    shares: Vec<Share>,
    /// In which order masters are tried with what any of them may get.
    order: Vec<usize>,
    /// Job → who gave it, the oldest first.
    origins: HashMap<SmolStr, usize>,
    origin_order: VecDeque<SmolStr>,
    /// Those of them of which the master below has said who is meant: what is said aside comes later.
    announced: HashSet<SmolStr>,
    loads: HashMap<SmolStr, Dict>,
    load_order: VecDeque<SmolStr>,
    /// How far the log was read.
    read: u64,
}

/// Everything that is to go up.
pub(super) struct Post {
    id: SmolStr,
    folder: PathBuf,
    to_all: bool,
    loads_kept: usize,
    state: Mutex<State>,
    /// Rung for each master above when there is something for it.
    bells: Vec<Notify>,
}

/// What goes in one go.
#[derive(Default)]
pub(super) struct Batch {
    items: Vec<Item>,
    asides: HashMap<SmolStr, Aside>,
    pub(super) events: Vec<Value>,
    pub(super) returns: Vec<Value>,
}

impl Post {
    pub(super) fn new(
        id: &str,
        folder: &Path,
        names: &[SmolStr],
        order: Vec<usize>,
        to_all: bool,
        loads_kept: usize,
    ) -> Self {
        let share = |name: &SmolStr| Share {
            name: name.clone(),
            is_up: false,
            items: VecDeque::new(),
            asides: HashMap::new(),
            under_way: None,
            known: HashSet::new(),
            dropped: 0,
        };
        let state = State { shares: names.iter().map(share).collect(), order, ..State::default() };
        let post = Self {
            id: id.into(),
            folder: folder.into(),
            to_all,
            loads_kept,
            state: Mutex::new(state),
            bells: names.iter().map(|_| Notify::new()).collect(),
        };
        post.load_origins();
        post
    }

    /// Returns from where the event log is to be read; `None`: from now on.
    pub(super) fn cursor(&self) -> Option<u64> {
        let read = self.state.lock().read;
        if read > 0 {
            return Some(read);
        }
        std::fs::read_to_string(self.folder.join("cursor")).ok()?.trim().parse().ok()
    }

    /// Writes down from where to read after a restart.
    pub(super) fn save_cursor(&self) {
        let cursor = {
            let state = self.state.lock();
            let waiting = state.shares.iter().flat_map(|share| {
                share.under_way.into_iter().chain(share.items.iter().map(|item| item.cursor).next())
            });
            let first = waiting.filter(|cursor| *cursor > 0).min();
            first.map_or(state.read, |first| first - 1)
        };
        if cursor == 0 {
            return;
        }
        let path = self.folder.join("cursor");
        let temp = self.folder.join("cursor.tmp");
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| std::fs::write(&temp, cursor.to_string()))
            .and_then(|()| std::fs::rename(&temp, &path));
        if let Err(error) = written {
            tracing::warn!("{}: {error}", path.display());
        }
    }

    fn load_origins(&self) {
        // With one master above there is nothing to remember.
        if self.bells.len() < 2 {
            return;
        }
        let text = std::fs::read_to_string(self.folder.join("origins")).unwrap_or_default();
        let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        let mut state = self.state.lock();
        for (jid, name) in lines.iter().skip(lines.len().saturating_sub(ORIGINS)) {
            if let Some(at) = state.shares.iter().position(|share| share.name == *name) {
                state.came(jid, at);
            }
        }
        let kept: String = state
            .origin_order
            .iter()
            .filter_map(|jid| {
                let name = &state.shares.get(*state.origins.get(jid)?)?.name;
                Some(format!("{jid} {name}\n"))
            })
            .collect();
        drop(state);
        let _ = std::fs::write(self.folder.join("origins"), kept);
    }

    /// A master above has given a job.
    pub(super) fn came(&self, jid: &str, from: usize) {
        let mut state = self.state.lock();
        state.came(jid, from);
        if self.bells.len() < 2 {
            return;
        }
        let line = state.shares.get(from).map(|share| format!("{jid} {}\n", share.name));
        drop(state);
        let append = || -> std::io::Result<()> {
            std::fs::create_dir_all(&self.folder)?;
            let path = self.folder.join("origins");
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            file.write_all(line.unwrap_or_default().as_bytes())
        };
        if let Err(error) = append() {
            tracing::warn!("who gave the job {jid} is not written down: {error}");
        }
    }

    /// Takes an event of the master below.
    pub(super) fn take(&self, cursor: u64, tag: SmolStr, data: Dict) {
        let mut state = self.state.lock();
        state.read = state.read.max(cursor);
        let (jid, what) = match Tag::from(tag.as_str()) {
            Tag::JobReturn(jid, id) if data.get("return").is_some() => {
                let jid = SmolStr::from(jid);
                (jid.clone(), What::Return { jid, id: id.into(), data })
            }
            // Salt's syndics leave out whatever has a return code: what failed in a state run, say.
            _ if data.get("retcode").is_some() => return,
            parsed => {
                let jid = match parsed {
                    Tag::JobNew(jid) => {
                        state.keep_load(&jid, &data, self.loads_kept);
                        jid
                    }
                    Tag::JobPublish(jid) | Tag::JobStart(jid, _) | Tag::JobProgress(jid, _, _) => {
                        jid
                    }
                    _ => jid_of(&tag).unwrap_or_default(),
                };
                (jid.into(), What::Event { tag, data })
            }
        };
        match (state.origins.get(&jid).copied(), self.to_all) {
            (Some(origin), false) => {
                self.push(&mut state, origin, Item { cursor, any: false, what });
            }
            (Some(origin), true) if matches!(what, What::Return { .. }) => {
                self.push(&mut state, origin, Item { cursor, any: false, what });
            }
            (_, true) => {
                for at in 0..self.bells.len() {
                    self.push(&mut state, at, Item { cursor, any: false, what: what.clone() });
                }
            }
            (None, false) => {
                let at = state.first_up();
                self.push(&mut state, at, Item { cursor, any: true, what });
            }
        }
    }

    /// Says for a job that nobody below is meant, as an event of the master below would say who is.
    pub(super) fn nobody(&self, to: usize, data: Dict) {
        let jid = data.get("jid").unwrap_or_default().to_str();
        let what = What::Event { tag: Tag::JobNew(jid.to_string()).to_string().into(), data };
        self.push(&mut self.state.lock(), to, Item { cursor: 0, any: false, what });
    }

    /// Adds to what is said of a job's minions.
    pub(super) fn aside(&self, to: usize, jid: &str, aside: Aside) {
        let mut state = self.state.lock();
        if let Some(share) = state.shares.get_mut(to) {
            share.asides.entry(jid.into()).or_default().add(aside);
            self.ring(to);
        }
    }

    fn push(&self, state: &mut State, to: usize, item: Item) {
        let Some(share) = state.shares.get_mut(to) else { return };
        share.items.push_back(item);
        if share.items.len() > MOST {
            let old = share.items.iter().position(|item| matches!(item.what, What::Event { .. }));
            if let Some(old) = old {
                share.items.remove(old);
                share.dropped += 1;
                if share.dropped.is_power_of_two() {
                    tracing::warn!("{} events for {} were dropped", share.dropped, share.name);
                }
            }
        }
        self.ring(to);
    }

    fn ring(&self, to: usize) {
        if let Some(bell) = self.bells.get(to) {
            bell.notify_one();
        }
    }

    /// Waits until there is something for a master above; true if somebody waits for it.
    pub(super) async fn wait(&self, at: usize) -> bool {
        loop {
            {
                let state = self.state.lock();
                if let Some(share) = state.shares.get(at) {
                    let has_asides = share.asides.keys().any(|jid| state.is_announced(jid));
                    if has_asides || !share.items.is_empty() {
                        return has_asides || share.items.iter().any(|item| item.what.is_urgent());
                    }
                }
            }
            match self.bells.get(at) {
                Some(bell) => bell.notified().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until more comes for a master above.
    pub(super) async fn more(&self, at: usize) {
        match self.bells.get(at) {
            Some(bell) => bell.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Takes what goes next to a master above. It must be given back or said to be done.
    pub(super) fn next(&self, at: usize, with_asides: bool) -> Batch {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(share) = state.shares.get_mut(at) else { return Batch::default() };
        let mut batch = Batch::default();
        let mut bytes = 0;
        while let Some(item) = share.items.front() {
            bytes += item.what.size();
            if !batch.items.is_empty() && (bytes > MOST_BYTES || batch.items.len() >= MOST_AT_ONCE)
            {
                break;
            }
            batch.items.extend(share.items.pop_front());
        }
        share.under_way = batch.items.iter().map(|item| item.cursor).find(|cursor| *cursor > 0);
        let mut groups: Vec<(Value, Dict)> = Vec::new();
        for item in &batch.items {
            match &item.what {
                What::Event { tag, data } => {
                    batch.events.push(entries! { "tag" => tag, "data" => data }.into());
                }
                What::Return { jid, id, data } => {
                    let of = |name: &str| data.get(name).unwrap_or_default();
                    let key = Value::list([of("jid"), of("fun"), of("out"), of("master_id")]);
                    let at = groups.iter().position(|(known, _)| *known == key);
                    let group = match at.and_then(|at| groups.get(at)) {
                        Some((_, group)) => group.clone(),
                        None => {
                            let load = state.loads.get(jid);
                            let is_news = share.known.insert(jid.clone());
                            let group = heading(&self.id, jid, data, load, is_news);
                            groups.push((key, group.clone()));
                            group
                        }
                    };
                    if let Some(Value::Dict(returns)) = group.get("return") {
                        returns.insert(id.as_str(), ret(data));
                    }
                }
            }
        }
        if share.known.len() > self.loads_kept.max(ORIGINS) {
            share.known.clear();
        }
        batch.returns = groups.into_iter().map(|(_, group)| group.into()).collect();
        if with_asides {
            let (now, later) =
                std::mem::take(&mut share.asides).into_iter().partition(|(jid, _)| {
                    !state.origins.contains_key(jid) || state.announced.contains(jid)
                });
            (batch.asides, share.asides) = (now, later);
            batch.events.extend(batch.asides.iter().map(|(jid, aside)| aside.event(jid)));
        } else {
            share.asides.clear();
        }
        batch
    }

    /// What was taken has arrived.
    pub(super) fn done(&self, at: usize) {
        if let Some(share) = self.state.lock().shares.get_mut(at) {
            share.under_way = None;
        }
    }

    /// What was taken has not arrived. `events_too`: nor have its events.
    pub(super) fn give_back(&self, at: usize, batch: Batch, events_too: bool) {
        let mut state = self.state.lock();
        let Some(share) = state.shares.get_mut(at) else { return };
        for item in batch.items.into_iter().rev() {
            match &item.what {
                What::Event { .. } if !events_too => {}
                What::Event { .. } => share.items.push_front(item),
                What::Return { jid, .. } => {
                    share.known.remove(jid);
                    share.items.push_front(item);
                }
            }
        }
        if events_too {
            for (jid, mut aside) in batch.asides {
                let later = share.asides.remove(&jid).unwrap_or_default();
                aside.add(later);
                share.asides.insert(jid, aside);
            }
        }
        share.under_way = None;
        drop(state);
        self.spread();
    }

    /// A master above has come, or gone.
    pub(super) fn is_up(&self, at: usize, is_up: bool) {
        if let Some(share) = self.state.lock().shares.get_mut(at) {
            share.is_up = is_up;
        }
        self.spread();
        self.ring(at);
    }

    /// Gives what any master may get to one that is there.
    fn spread(&self) {
        let mut state = self.state.lock();
        let to = state.first_up();
        if !state.shares.get(to).is_some_and(|share| share.is_up) {
            return;
        }
        for at in 0..state.shares.len() {
            let Some(share) = state.shares.get_mut(at).filter(|share| !share.is_up) else {
                continue;
            };
            let (moved, kept): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut share.items).into_iter().partition(|item| item.any);
            share.items = kept;
            for item in moved {
                self.push(&mut state, to, item);
            }
        }
    }
}

impl State {
    fn came(&mut self, jid: &str, from: usize) {
        let jid = SmolStr::new(jid);
        if self.origins.insert(jid.clone(), from).is_none() {
            self.origin_order.push_back(jid);
        }
        while self.origin_order.len() > ORIGINS {
            if let Some(old) = self.origin_order.pop_front() {
                self.origins.remove(&old);
                self.announced.remove(&old);
            }
        }
    }

    fn keep_load(&mut self, jid: &str, data: &Dict, most: usize) {
        let jid = SmolStr::new(jid);
        if self.origins.contains_key(&jid) {
            self.announced.insert(jid.clone());
        }
        if self.loads.insert(jid.clone(), data.clone()).is_none() {
            self.load_order.push_back(jid);
        }
        while self.load_order.len() > most {
            if let Some(old) = self.load_order.pop_front() {
                self.loads.remove(&old);
            }
        }
    }

    fn is_announced(&self, jid: &SmolStr) -> bool {
        !self.origins.contains_key(jid) || self.announced.contains(jid)
    }

    fn first_up(&self) -> usize {
        let is_up = |at: &&usize| self.shares.get(**at).is_some_and(|share| share.is_up);
        self.order.iter().find(is_up).or(self.order.first()).copied().unwrap_or(0)
    }
}

/// The job of `…/salt/job/<jid>/…`, also of an event that came from further below.
fn jid_of(tag: &str) -> Option<String> {
    let (_, rest) = tag.split_once("salt/job/")?;
    Some(rest.split('/').next()?.to_owned())
}

/// The part of a collection of returns that they have in common.
fn heading(id: &str, jid: &str, data: &Dict, load: Option<&Dict>, is_news: bool) -> Dict {
    let of = |name: &str| load.and_then(|load| load.get(name)).unwrap_or_default();
    let group = entries! {
        "id" => id, "jid" => jid, "fun" => data.get("fun"), "arg" => of("arg"), "tgt" => of("tgt"),
        "tgt_type" => of("tgt_type"), "load" => Value::dict(), "return" => Value::dict(),
    };
    for name in ["master_id", "out"] {
        if let Some(value) = data.get(name).filter(|value| !value.is_null()) {
            group.insert(name, value);
        }
    }
    if let Some(load) = load.filter(|_| is_news) {
        let items = |name: &str| load.get(name).and_then(|ids| ids.items_of_sequence());
        let relays = items("relays").unwrap_or_default();
        let mut minions = items("minions").unwrap_or_default();
        minions.retain(|id| !relays.contains(id));
        group.insert(
            "load",
            entries! {
                "cmd" => "publish", "tgt" => of("tgt"), "fun" => of("fun"), "arg" => of("arg"),
                "tgt_type" => of("tgt_type"), "ret" => "", "jid" => jid, "user" => of("user"),
                "Minions" => minions,
            },
        );
    }
    group
}

/// What is one minion's own in it.
fn ret(data: &Dict) -> Value {
    let names = ["return", "retcode", "success", "fun_args", "metadata"];
    let kept: Dict = names.into_iter().filter_map(|name| Some((name, data.get(name)?))).collect();
    kept.into()
}

#[cfg(test)]
mod tests {
    use halite_value::list;

    use super::*;

    const JID: &str = "20261116185120265096";

    fn post(names: &[&str], to_all: bool) -> (tempfile::TempDir, Post) {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<SmolStr> = names.iter().map(SmolStr::new).collect();
        let order = (0..names.len()).collect();
        let post = Post::new("low", folder.path(), &names, order, to_all, 1000);
        (folder, post)
    }

    fn new_job(post: &Post, cursor: u64) {
        let data = entries! {
            "fun" => "test.ping", "arg" => list![], "tgt" => "*", "tgt_type" => "glob",
            "user" => "root", "minions" => list!["a", "b", "sub"], "relays" => list!["sub"],
        };
        post.take(cursor, format!("salt/job/{JID}/new").into(), data);
    }

    fn returned(post: &Post, cursor: u64, id: &str) {
        let data = entries! {
            "id" => id, "jid" => JID, "fun" => "test.ping", "fun_args" => list![],
            "return" => true, "retcode" => 0, "success" => true, "cmd" => "_return",
        };
        post.take(cursor, format!("salt/job/{JID}/ret/{id}").into(), data);
    }

    #[test]
    fn returns_of_a_job_go_together_with_its_load_once() {
        let (_folder, post) = post(&["top"], false);
        new_job(&post, 1);
        returned(&post, 2, "a");
        returned(&post, 3, "b");
        let batch = post.next(0, false);
        assert_eq!((batch.events.len(), batch.returns.len()), (1, 1));
        let group = &batch.returns[0];
        assert_eq!(group.get("load").unwrap().get("Minions").unwrap(), list!["a", "b"]);
        let returns = group.get("return").unwrap();
        let a = returns.get("a").unwrap();
        assert_eq!((a.get("return"), a.get("cmd")), (Some(Value::Bool(true)), None));
        assert!(returns.get("b").is_some());
        post.done(0);
        returned(&post, 4, "c");
        let later = post.next(0, false);
        assert!(!later.returns[0].get("load").unwrap().truthy(), "it has that");
    }

    #[test]
    fn what_did_not_arrive_goes_again_and_the_cursor_waits_for_it() {
        let (folder, post) = post(&["top"], false);
        let cursor = || {
            post.save_cursor();
            std::fs::read_to_string(folder.path().join("cursor")).unwrap()
        };
        new_job(&post, 7);
        returned(&post, 8, "a");
        assert_eq!(cursor(), "6");
        let batch = post.next(0, true);
        assert_eq!(cursor(), "6", "it is only under way");
        post.give_back(0, batch, false);
        assert_eq!(cursor(), "7", "its events have arrived");
        let batch = post.next(0, true);
        assert_eq!((batch.events.len(), batch.returns.len()), (0, 1));
        assert!(batch.returns[0].get("load").unwrap().truthy(), "with its load, again");
        post.done(0);
        assert_eq!(cursor(), "8");
        assert_eq!(post.cursor(), Some(8));
    }

    #[test]
    fn each_master_above_gets_its_own() {
        let (folder, post) = post(&["one", "two"], false);
        post.came(JID, 1);
        new_job(&post, 1);
        returned(&post, 2, "a");
        post.take(3, "my/tag".into(), entries! { "x" => 1 });
        post.take(4, "with/code".into(), entries! { "retcode" => 1 });
        assert_eq!(post.next(1, false).items.len(), 2);
        // The first is away: what anybody may get goes to the other.
        post.is_up(1, true);
        assert!(post.next(0, false).items.is_empty());
        let moved = post.next(1, false);
        assert_eq!(moved.events.len(), 1);
        drop(post);
        let names = ["one", "two"].map(SmolStr::new);
        let again = Post::new("low", folder.path(), &names, vec![0, 1], true, 10);
        returned(&again, 9, "b");
        assert_eq!(again.next(1, false).returns.len(), 1, "remembered over a restart");
        again.take(10, "my/tag".into(), entries! { "x" => 1 });
        assert_eq!([0, 1].map(|at| again.next(at, false).events.len()), [1, 1]);
    }

    #[test]
    fn asides_are_for_masters_of_ours() {
        let (_folder, post) = post(&["top"], false);
        let aside = Aside { lost: vec!["a".into()], ..Aside::default() };
        post.aside(0, JID, aside.clone());
        assert!(post.next(0, false).events.is_empty());
        post.aside(0, JID, aside);
        post.came(JID, 0);
        assert!(post.next(0, true).events.is_empty(), "first who is meant");
        new_job(&post, 1);
        let mut batch = post.next(0, true);
        assert_eq!(batch.events.len(), 2);
        batch.events.remove(0);
        assert_eq!(batch.events[0].get("tag").unwrap(), *format!("halite/relay/{JID}").as_str());
        post.give_back(0, batch, true);
        assert_eq!(post.next(0, true).events.len(), 2);
    }
}
