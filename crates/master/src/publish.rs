//! Jobs on their way out.
//!
//! In this order: who is meant, may the caller do that, an id, the event `salt/job/<jid>/new`, the
//! job on disk, the event `…/publish`, and only then the publication. Whoever gets the id can rely
//! on the job being stored.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use halite_client::Published;
use halite_crypt::Hash;
use halite_store::{Op, State};
use halite_target::{Expr, Options, Search, TargetType, Uncached};
use halite_transport::Delivery;
use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::{Jid, Publication, SealedPublication, Tag};

use crate::{
    Error, Master,
    acl::{self, Asked},
    blocking, encode,
    presence::Kind,
};

/// How long a syndic may take to hand a job to its own master, at least.
const SYNDIC_SECONDS: i64 = 15;

/// A wish to publish, from whomever.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) tgt: Value,
    pub(crate) tgt_type: SmolStr,
    pub(crate) fun: Value,
    pub(crate) arg: Vec<Value>,
    pub(crate) ret: SmolStr,
    pub(crate) jid: SmolStr,
    pub(crate) user: SmolStr,
    pub(crate) kwargs: Dict,
    pub(crate) timeout: Option<i64>,
    /// For a minion's wish (`peer`): its id.
    pub(crate) id: Option<SmolStr>,
    /// Keep the job in Salt's folder too.
    pub(crate) on_disk: bool,
}

impl Wish {
    /// Returns the functions with their arguments: one, or those of a compound command.
    pub(crate) fn functions(&self) -> Vec<(SmolStr, Vec<Value>)> {
        match self.fun.items_of_sequence() {
            None => vec![(self.fun.to_str(), self.arg.clone())],
            Some(functions) => {
                let args = self.arg.iter().map(|args| args.items_of_sequence().unwrap_or_default());
                functions
                    .iter()
                    .map(Value::to_str)
                    .zip(args.chain(std::iter::repeat(Vec::new())))
                    .collect()
            }
        }
    }
}

/// What the caller may do.
#[derive(Clone, Debug)]
pub(crate) enum Rights {
    All,
    /// Salt's list of permissions.
    List(Vec<Value>),
}

/// Why nothing was published.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) name: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn authorization() -> Self {
        Self { name: "AuthorizationError", message: "Authorization error occurred.".into() }
    }

    pub(crate) fn authentication() -> Self {
        Self { name: "AuthenticationError", message: "Authentication error occurred.".into() }
    }

    pub(crate) fn invocation(message: impl Into<String>) -> Self {
        Self { name: "SaltInvocationError", message: message.into() }
    }

    pub(crate) fn internal(error: &Error) -> Self {
        Self { name: "SaltMasterError", message: error.to_string() }
    }
}

/// What a target means to the master.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) minions: Vec<SmolStr>,
    pub(crate) missing: Vec<SmolStr>,
}

impl Master {
    /// Returns the minions a target means. Blocking (one `stat`, mostly).
    pub(crate) fn resolve(
        &self,
        tgt: &Value,
        tgt_type: &str,
        delimiter: Option<&str>,
        search: Search,
    ) -> Result<Resolved, halite_target::Error> {
        if let Err(error) = self.sync_accepted() {
            tracing::error!("The accepted keys cannot be listed: {error}");
        }
        let nodegroups = self.settings.opts.dict("nodegroups");
        let options = Options { nodegroups: Some(&nodegroups), delimiter };
        let expr = Expr::parse(tgt, tgt_type.parse::<TargetType>()?, &options)?;
        let found = self.index.read().search(&expr, search);
        Ok(Resolved { minions: found.ids, missing: found.missing })
    }

    fn compound(&self, target: &str) -> Vec<SmolStr> {
        self.resolve(&target.into(), "compound", None, Search::default())
            .map(|found| found.minions)
            .unwrap_or_default()
    }
}

/// A job that was published.
pub(crate) struct Done {
    pub(crate) published: Published,
}

/// Puts the words of nodegroups in their place: minions know none.
fn expand(master: &Master, wish: &mut Wish) {
    let nodegroups = master.settings.opts.dict("nodegroups");
    let options = Options { nodegroups: Some(&nodegroups), delimiter: None };
    let Ok(kind) = wish.tgt_type.parse::<TargetType>() else { return };
    // What cannot be expanded matches nobody, and is told there.
    if let Ok(Some(words)) = Expr::without_nodegroups(&wish.tgt, kind, &options) {
        wish.tgt = words.into();
        wish.tgt_type = "compound".into();
    }
}

/// With `ext_job_cache` minions return there too, whoever asks.
fn return_elsewhere(master: &Master, wish: &mut Wish) {
    let Some(cache) = master.settings.opts.opt_str("ext_job_cache").filter(|name| !name.is_empty())
    else {
        return;
    };
    if wish.ret.is_empty() {
        wish.ret = cache;
    } else if !wish.ret.split(',').any(|name| name.trim() == cache.as_str()) {
        wish.ret = format!("{},{cache}", wish.ret).into();
    }
}

/// Publishes a job, if the caller may.
pub(crate) async fn publish(
    master: &Arc<Master>,
    mut wish: Wish,
    rights: Rights,
    follow: bool,
) -> Result<(Done, Option<Arc<crate::bus::Queue<halite_client::Progress>>>), Refusal> {
    expand(master, &mut wish);
    return_elsewhere(master, &mut wish);
    // What somebody may do here they may do below, and no more.
    let limits = match &rights {
        Rights::List(list) => Some(list.clone()),
        Rights::All => None,
    };
    let (owner, asked) = (master.clone(), wish.clone());
    let resolved = blocking(move || check(&owner, &asked, &rights))
        .await
        .map_err(|error| Refusal::internal(&error))??;
    let Resolved { minions, missing } = resolved;
    if minions.is_empty() && !master.settings.order_masters {
        let error = format!("Master could not resolve minions for target {}", wish.tgt.to_str());
        let published = Published { missing, error: Some(error.into()), ..Published::default() };
        return Ok((Done { published }, None));
    }
    let jid = allocate(master, &wish)?;
    let below = master.below();
    let is_relay = |id: &SmolStr| master.settings.order_masters && master.relays.contains(id);
    let own: Vec<SmolStr> = minions.iter().filter(|id| !is_relay(id)).cloned().collect();
    let mut sorted = sort(master, &own);
    // differs: Salt says nothing of a syndic that is away, nor of the minions below it.
    let found = sorted.connected.clone();
    sorted.absent.extend(below.absent.into_iter().filter(|id| minions.contains(id)));
    sorted.connected.extend(below.connected);
    let load = job_load(&wish, &jid);
    let new = entries! {
        "jid" => &jid, "tgt_type" => &wish.tgt_type, "tgt" => &wish.tgt, "user" => &wish.user,
        "fun" => &wish.fun, "arg" => wish.arg.clone(), "minions" => Value::list(&minions),
        "missing" => Value::list(&missing),
    };
    if !below.relays.is_empty() {
        // For our own master above: these never answer, and tell of those below them.
        new.insert("relays", Value::list(&below.relays));
    }
    master.bus.fire(Tag::JobNew(jid.to_string()).to_string(), new);
    let all = with_earlier(master, &wish, &jid, &minions).await;
    store_job(master, &wish, &jid, &load, &all).await.map_err(|error| {
        tracing::error!("The job {jid} was not stored, and so not published: {error}");
        Refusal::internal(&error)
    })?;
    let absent: HashSet<&SmolStr> = sorted.absent.iter().collect();
    let will_answer = own.iter().filter(|id| !absent.contains(id)).cloned();
    master.jobs.begin_below(&jid, load, will_answer, &below.relays);
    let followed = if follow { master.jobs.follow(&jid) } else { None };
    let publication = publication(master, &wish, &jid, limits);
    // The end of a connection tells of the jobs it knows of. Who went away since it was looked at,
    // and before this job was one of them, is told of here.
    let gone: HashSet<SmolStr> = found.iter().filter(|id| !is_there(master, id)).cloned().collect();
    gone.iter().for_each(|id| master.jobs.lost_one(&jid, id, "its connection ended"));
    sorted.connected.retain(|id| !gone.contains(id));
    sorted.absent.extend(gone);
    match master.time_to_live(&wish.kwargs).filter(|_| !sorted.absent.is_empty()) {
        Some(seconds) => {
            let waits = master.wait_for(&sorted.absent, &publication, seconds).await;
            waits.map_err(|error| Refusal::internal(&error))?;
        }
        None => lose_absent(master, &jid, &sorted.absent),
    }
    let event = publication.write();
    master.bus.fire(Tag::JobPublish(jid.to_string()).to_string(), event);
    let (owner, ids) = (master.clone(), minions.clone());
    blocking(move || send(&owner, &publication, &ids))
        .await
        .and_then(|sent| sent)
        .map_err(|error| Refusal::internal(&error))?;
    tracing::debug!("Published command details {jid} to {} minions", minions.len());
    let Sorted { connected, absent, unsure } = sorted;
    let jid = SmolStr::new(jid.as_str());
    // Salt's clients expect the syndics here, and leave them out themselves.
    let minions = match wish.on_disk {
        true => minions,
        false => minions.into_iter().filter(|id| !is_relay(id) || absent.contains(id)).collect(),
    };
    let relays = below.relays;
    let published =
        Published { jid, minions, missing, connected, absent, unsure, relays, error: None };
    Ok((Done { published }, followed))
}

/// Resolves and authorises. Blocking.
pub(crate) fn check(master: &Master, wish: &Wish, rights: &Rights) -> Result<Resolved, Refusal> {
    let functions = wish.functions();
    let names: Vec<SmolStr> = functions.iter().map(|(name, _)| name.clone()).collect();
    let blacklist = master.settings.opts.dict("publisher_acl_blacklist");
    if acl::is_blacklisted(&blacklist, &wish.user, &names) {
        tracing::error!(
            "publisher_acl_blacklist keeps {} from running {}",
            wish.user,
            wish.fun.to_str()
        );
        return Err(Refusal::authorization());
    }
    let delimiter = wish.kwargs.get("delimiter").map(|delimiter| delimiter.to_str());
    let resolved = master
        .resolve(&wish.tgt, &wish.tgt_type, delimiter.as_deref(), Search::default())
        .unwrap_or_else(|error| {
            // Salt matches nobody then; the reason goes to the log.
            tracing::error!("{error}");
            Resolved::default()
        });
    if let Rights::List(list) = rights {
        let asked = Asked { functions, minions: &resolved.minions };
        if !acl::allows(list, &asked, &|target| master.compound(target)) {
            return Err(Refusal::authorization());
        }
    }
    Ok(resolved)
}

fn allocate(master: &Master, wish: &Wish) -> Result<Jid, Refusal> {
    if wish.jid.is_empty() {
        return Ok(master.jobs.next_jid());
    }
    Jid::new(&wish.jid).map_err(|error| Refusal::invocation(error.to_string()))
}

pub(crate) struct Sorted {
    pub(crate) connected: Vec<SmolStr>,
    pub(crate) absent: Vec<SmolStr>,
    pub(crate) unsure: Vec<SmolStr>,
}

/// Sorts the expected minions by what is known about their connection.
pub(crate) fn sort(master: &Master, minions: &[SmolStr]) -> Sorted {
    let mut sorted = Sorted { connected: Vec::new(), absent: Vec::new(), unsure: Vec::new() };
    for id in minions {
        let list = if is_there(master, id) {
            &mut sorted.connected
        } else if master.presence.kind(id) == Some(Kind::Named) {
            &mut sorted.absent
        } else {
            &mut sorted.unsure
        };
        list.push(id.clone());
    }
    sorted
}

/// Tells whether a minion will get what is published now.
fn is_there(master: &Master, id: &str) -> bool {
    master.hub.is_connected(id) || master.arriving.is_coming(id)
}

fn lose_absent(master: &Master, jid: &Jid, absent: &[SmolStr]) {
    if absent.is_empty() {
        return;
    }
    let ops = absent
        .iter()
        .map(|id| Op::State { jid: jid.to_string(), minion: id.to_string(), state: State::Lost })
        .collect();
    let _stored_later = master.store.write(ops);
}

/// The job as it is kept: what the client sent, without credentials.
fn job_load(wish: &Wish, jid: &Jid) -> Dict {
    let kwargs = wish.kwargs.shallow_copy();
    for secret in ["token", "eauth", "username", "password", "key", "auth_list"] {
        kwargs.remove(secret);
    }
    let load = entries! {
        "cmd" => "publish", "tgt" => &wish.tgt, "fun" => &wish.fun, "arg" => wish.arg.clone(),
        "tgt_type" => &wish.tgt_type, "ret" => &wish.ret, "jid" => jid, "user" => &wish.user,
        "kwargs" => kwargs,
    };
    if let Some(id) = &wish.id {
        load.insert("id", id);
    }
    load
}

/// Returns the minions of a job, with those of its earlier parts: a batch has one job id for all.
async fn with_earlier(
    master: &Arc<Master>,
    wish: &Wish,
    jid: &Jid,
    minions: &[SmolStr],
) -> Vec<SmolStr> {
    let own = minions.to_vec();
    if wish.jid.is_empty() {
        return own;
    }
    let (owner, jid) = (master.clone(), jid.clone());
    let stored = blocking(move || owner.store.job(&jid)).await;
    let Ok(Ok(Some(stored))) = stored else { return own };
    let earlier = stored.load.get("minions").and_then(|ids| ids.items_of_sequence());
    let mut all: Vec<SmolStr> = earlier.unwrap_or_default().iter().map(Value::to_str).collect();
    let known: std::collections::HashSet<SmolStr> = all.iter().cloned().collect();
    all.extend(own.into_iter().filter(|id| !known.contains(id)));
    all
}

async fn store_job(
    master: &Arc<Master>,
    wish: &Wish,
    jid: &Jid,
    load: &Dict,
    minions: &[SmolStr],
) -> Result<(), Error> {
    let is_kept = !wish.kwargs.get("nocache").is_some_and(|flag| flag.truthy());
    let kept = load.shallow_copy();
    kept.insert("minions", Value::list(minions));
    let job = Op::Job { jid: jid.to_string(), load: kept.into() };
    let written = is_kept.then(|| master.store.write(vec![job]));
    if wish.on_disk || master.local_cache.always {
        let (owner, jid, load, minions) =
            (master.clone(), jid.clone(), load.clone(), minions.to_vec());
        let saved = blocking(move || owner.local_cache.save_load(&jid, &load, &minions)).await?;
        saved.map_err(|source| Error::io(master.settings.cachedir.join("jobs"), source))?;
    } else {
        master.local_cache.note(jid, false);
    }
    match written {
        None => Ok(()),
        Some(written) => match written.await {
            // Jobs go on when the disk is full; their history does not.
            Err(error @ (halite_store::Error::Full(_) | halite_store::Error::Busy)) => {
                tracing::error!("The job {jid} is not kept: {error}");
                Ok(())
            }
            other => Ok(other.map(|_| ())?),
        },
    }
}

fn publication(master: &Master, wish: &Wish, jid: &Jid, limits: Option<Vec<Value>>) -> Publication {
    let extra = Dict::new();
    if let Some(id) = &wish.id {
        extra.insert("id", id);
    }
    let passed = |name: &str| wish.kwargs.get(name).filter(|value| !value.is_null());
    if let Some(master_id) =
        passed("master_id").or_else(|| master.settings.opts.opt_str("master_id").map(Value::from))
    {
        extra.insert("master_id", master_id);
    }
    if let Some(delimiter) = passed("delimiter").filter(|text| *text != *halite_target::DELIMITER) {
        extra.insert("delimiter", delimiter);
    }
    for name in ["metadata", "module_executors", "executor_opts", "ret_config", "ret_kwargs"] {
        if let Some(value) = passed(name) {
            extra.insert(name, value);
        }
    }
    if passed("start_event").is_some_and(|flag| flag.truthy()) {
        extra.insert("start_event", true);
    }
    if master.settings.order_masters {
        // A genuine syndic gives its own master one second less than this to take the job, and loses the
        // job when that is not enough: the patience of who asked (`-t 1`) is no measure for it.
        extra.insert("to", wish.timeout.unwrap_or(0).max(SYNDIC_SECONDS));
        extra.insert("auth_list", limits.unwrap_or_default());
    }
    Publication {
        jid: jid.clone(),
        fun: wish.fun.clone(),
        arg: wish.arg.clone(),
        tgt: wish.tgt.clone(),
        tgt_type: wish.tgt_type.clone(),
        ret: wish.ret.clone(),
        user: wish.user.clone(),
        serial: None,
        extra,
    }
}

/// Seals, signs and sends. Blocking.
pub(crate) fn send(
    master: &Master,
    publication: &Publication,
    minions: &[SmolStr],
) -> Result<(), Error> {
    if master.settings.opts.bool("dummy_pub") {
        return Ok(());
    }
    let is_by_id = matches!(publication.tgt_type.as_str(), "glob" | "pcre" | "list");
    let ids = recipients(master, publication, minions, is_by_id);
    // First held, then sent: who arrives in between gets it twice rather than not at all.
    master.arriving.hold(ids.as_deref(), publication);
    send_to(master, publication, delivery(master, minions, ids.as_deref(), is_by_id))
}

/// Returns whom a job is sent to, as far as connections have names; `None`: everybody.
fn recipients(
    master: &Master,
    publication: &Publication,
    minions: &[SmolStr],
    is_by_id: bool,
) -> Option<Vec<SmolStr>> {
    if master.settings.order_masters {
        return None;
    }
    if is_by_id {
        return Some(minions.to_vec());
    }
    // Whoever may match decides for itself: its grains may be newer than what we remember.
    let search = Search { uncached: Uncached::MayMatch, ..Search::default() };
    let delimiter = publication.extra.get("delimiter").map(|delimiter| delimiter.to_str());
    let found =
        master.resolve(&publication.tgt, &publication.tgt_type, delimiter.as_deref(), search);
    Some(found.map_or_else(|_| minions.to_vec(), |found| found.minions))
}

/// Seals, signs and sends to whom `delivery` says. Blocking.
pub(crate) fn send_to(
    master: &Master,
    publication: &Publication,
    delivery: Delivery,
) -> Result<(), Error> {
    let load = publication.write();
    // Files of the pillar may have been edited before somebody asked for this job.
    master.pillar.look_again();
    // From the serial to the queue nobody may come between: a minion drops what comes late.
    let _order = master.publishing.lock();
    let shared = master.secrets.shared();
    load.insert("serial", shared.next_serial());
    let sealed = shared.crypticle.seal(&encode(&load.into())?, None);
    let signs = master.settings.opts.get("sign_pub_messages").is_none_or(|sign| sign.truthy());
    let algo = master.settings.publish_signing;
    let sig = if signs { Some(master.secrets.master.sign(algo, &sealed)?) } else { None };
    let sig_algo = signs.then(|| algo.name().into());
    let bytes = SealedPublication { load: sealed, sig, sig_algo }.encode()?;
    // The receipt is not waited for: delivery is the hub's business from here on.
    drop(master.hub.publish(delivery, Bytes::from(bytes)));
    Ok(())
}

fn delivery(
    master: &Master,
    minions: &[SmolStr],
    ids: Option<&[SmolStr]>,
    is_by_id: bool,
) -> Delivery {
    let mut delivery = match ids {
        None => Delivery::all(),
        Some(ids) => Delivery::ids(ids.iter().map(|id| Arc::<str>::from(id.as_str()))),
    };
    if master.settings.zmq_filtering {
        let mut topics: Vec<Bytes> = if is_by_id {
            minions.iter().map(|id| Hash::Sha1.hex(id.as_bytes()).into()).collect()
        } else {
            vec![Bytes::from_static(b"broadcast")]
        };
        if master.settings.order_masters {
            topics.push(Bytes::from_static(b"syndic"));
        }
        delivery = delivery.topics(topics);
    }
    delivery
}
