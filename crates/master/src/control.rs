//! The control socket: what our own programs ask (see the crate `client` for the protocol).
//!
//! The kernel tells who is at the other end. The master's user and root may do everything; others
//! can connect only if `publisher_acl` or `external_auth` names anybody, and may then do what it
//! allows. Whoever brings credentials (`salt -a`) has their rights, and no others.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use halite_client::{
    Answer, BATCH, EventItem, Job, PRESERVE, Progress, Request, SOCKET, encode, read_frame,
};
use halite_store::history;
use halite_target::{Search, fnmatch::fnmatch};
use halite_value::{Dict, SmolStr, Value, dict};
use halite_wire::{Event, Jid};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::mpsc,
    task::{AbortHandle, JoinHandle},
};

use crate::{
    Error, Master, acl, batch, blocking,
    bus::Item,
    clients::{self, Caller},
    publish::{self, Refusal, Rights, Wish},
    runners::{self, Call},
};

/// Frames waiting to be written to one program.
const WAITING: usize = 1024;
/// Frames written together.
const TOGETHER: usize = 64;
/// How long somebody who reads jobs from a database waits for it to have them all.
const FLUSH: Duration = Duration::from_secs(10);
/// Events waiting for one program before it gets a gap.
const EVENTS: usize = 100_000;

/// Listens; the task runs until aborted.
pub(crate) async fn listen(master: &Arc<Master>) -> Result<JoinHandle<()>, Error> {
    let path = master.settings.sock_dir.join(SOCKET);
    if UnixStream::connect(&path).await.is_ok() {
        return Err(Error::Running(path.display().to_string()));
    }
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(|source| Error::io(&path, source))?;
    let opts = &master.settings.opts;
    let is_open = ["publisher_acl", "external_auth"].iter().any(|acl| !opts.dict(acl).is_empty());
    let mode = if is_open { 0o666 } else { 0o600 };
    fs::set_permissions(&path, fs::Permissions::from_mode(mode))
        .map_err(|source| Error::io(&path, source))?;
    let master = master.clone();
    Ok(tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve(master.clone(), stream));
                }
                Err(error) => {
                    tracing::warn!("The control socket cannot accept: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }))
}

/// Finds out who is at the other end.
fn caller(master: &Master, stream: &UnixStream) -> Option<Caller> {
    let uid = stream.peer_cred().ok()?.uid();
    let name = nix::unistd::User::from_uid(uid.into()).ok().flatten().map(|user| user.name);
    let name = SmolStr::from(name.unwrap_or_else(|| uid.to_string()));
    if uid == 0 || uid == nix::unistd::geteuid().as_raw() {
        return Some(Caller { name, rights: Rights::All, is_master_user: true });
    }
    let list = acl::publisher_list(&master.settings.opts.dict("publisher_acl"), &name);
    let rights = Rights::List(list);
    Some(Caller { name, rights, is_master_user: false })
}

type Out = mpsc::Sender<Vec<u8>>;

async fn serve(master: Arc<Master>, stream: UnixStream) {
    let Some(caller) = caller(&master, &stream) else { return };
    let (mut reader, mut writer) = stream.into_split();
    let (out, mut frames) = mpsc::channel::<Vec<u8>>(WAITING);
    let writing = tokio::spawn(async move {
        let mut waiting = Vec::new();
        // What has come together goes together: thousands of returns would be as many writes.
        while frames.recv_many(&mut waiting, TOGETHER).await > 0 {
            if writer.write_all(&waiting.concat()).await.is_err() {
                break;
            }
            waiting.clear();
        }
    });
    let mut streams: HashMap<u64, AbortHandle> = HashMap::new();
    // The batches the program at the other end drives: they end with it.
    let mut batches: Vec<SmolStr> = Vec::new();
    let mut buffer = BytesMut::new();
    'connection: loop {
        loop {
            match read_frame(&mut buffer) {
                Ok(None) => break,
                Ok(Some(Value::Dict(message))) => match Request::read(&message) {
                    Ok((_, Request::Cancel { request })) => {
                        if let Some(task) = streams.remove(&request) {
                            task.abort();
                        }
                    }
                    Ok((id, request)) => {
                        streams.retain(|_, task| !task.is_finished());
                        match batch_told(&request) {
                            Some((jid, "new")) => batches.push(jid.into()),
                            Some((jid, "complete" | "halted")) => batches.retain(|own| own != jid),
                            _ => {}
                        }
                        let (master, caller, out) = (master.clone(), caller.clone(), out.clone());
                        let task = tokio::spawn(async move {
                            let answered = answer(&master, &caller, id, request, &out).await;
                            let last = answered.unwrap_or_else(|refusal| Answer::Refused {
                                name: refusal.name.into(),
                                message: refusal.message.into(),
                            });
                            send(&out, id, &last).await;
                        });
                        streams.insert(id, task.abort_handle());
                    }
                    Err(error) => {
                        let id = message.get("id").and_then(|id| id.as_int()).unwrap_or(0);
                        let id = u64::try_from(id).unwrap_or(0);
                        let message = format!("the request is not understood: {error}");
                        let answer = Answer::Refused {
                            name: "SaltInvocationError".into(),
                            message: message.into(),
                        };
                        send(&out, id, &answer).await;
                    }
                },
                Ok(Some(_)) | Err(_) => break 'connection,
            }
        }
        let mut chunk = [0; 16 << 10];
        match reader.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => buffer.extend_from_slice(&chunk[..read]),
        }
    }
    for task in streams.values() {
        task.abort();
    }
    drop(out);
    writing.abort();
    if !batches.is_empty() {
        let ended = blocking(move || batches.iter().for_each(|jid| master.abandon_batch(jid)));
        if let Err(error) = ended.await {
            tracing::error!("A batch without its driver is not marked as ended: {error}");
        }
    }
}

/// Returns what a program tells of a batch it drives: the id, and how far it is.
fn batch_told(request: &Request) -> Option<(&str, &str)> {
    match request {
        Request::Fire { tag, .. } => tag.strip_prefix("salt/batch/")?.split_once('/'),
        Request::As { request, .. } => batch_told(request),
        _ => None,
    }
}

async fn send(out: &Out, id: u64, answer: &Answer) -> bool {
    let frame = encode(&answer.write(id).into()).or_else(|error| {
        let refused =
            Answer::Refused { name: "SaltMasterError".into(), message: error.to_string().into() };
        encode(&refused.write(id).into())
    });
    match frame {
        Ok(frame) => out.send(frame).await.is_ok(),
        Err(_) => false,
    }
}

async fn item(out: &Out, id: u64, value: Dict) -> bool {
    send(out, id, &Answer::Item(value.into())).await
}

fn internal(error: Error) -> Refusal {
    Refusal::internal(&error)
}

fn only_master_user(caller: &Caller) -> Result<(), Refusal> {
    match caller.rights {
        Rights::All => Ok(()),
        Rights::List(_) => Err(Refusal::authorization()),
    }
}

/// Runs something that blocks.
async fn off<T: Send + 'static>(
    master: &Arc<Master>,
    work: impl FnOnce(&Master) -> Result<T, Error> + Send + 'static,
) -> Result<T, Refusal> {
    let owner = master.clone();
    blocking(move || work(&owner)).await.and_then(|done| done).map_err(internal)
}

async fn answer(
    master: &Arc<Master>,
    caller: &Caller,
    id: u64,
    request: Request,
    out: &Out,
) -> Result<Answer, Refusal> {
    if let Request::Publish(job) = request {
        return publish_job(master, caller, id, *job, out).await;
    }
    if let Request::As { credentials, request } = request {
        let special = matches!(*request, Request::Runner { .. } | Request::Wheel { .. });
        let told = |refusal: Refusal| match special {
            // Salt has one word for both here: what was not allowed was not authenticated.
            true => clients::refusal_of(&credentials),
            false => refusal,
        };
        let caller = clients::sign_in(master, &credentials).await.map_err(&told)?;
        let answered = Box::pin(answer(master, &caller, id, *request, out)).await;
        return answered.map_err(|refusal| match refusal.name {
            "AuthorizationError" => told(refusal),
            _ => refusal,
        });
    }
    if let Request::MakeToken { load } = request {
        return clients::new_token(master, load).await.map(|token| Answer::End(token.into()));
    }
    if matches!(request, Request::Hello) {
        return Ok(Answer::End(dict! {
            "version" => 1, "master" => &master.settings.id, "pid" => std::process::id(),
            "user" => &caller.name,
        }));
    }
    match &request {
        Request::Runner { fun, arg, kwarg, .. } | Request::Orchestrate { fun, arg, kwarg, .. } => {
            may(caller, "runner", fun, arg, kwarg)?;
        }
        Request::Wheel { fun, arg, kwarg } => may(caller, "wheel", fun, arg, kwarg)?,
        _ => only_master_user(caller)?,
    }
    let end = |value: Value| Ok(Answer::End(value));
    match request {
        Request::Follow { jid } => follow(master, id, &jid, out).await,
        Request::Events { tag, after } => events(master, id, &tag, after, out).await,
        Request::Fire { tag, data } => {
            if tag == "salt/key" {
                // `salt-key` has changed a file; what follows from it need not wait.
                let keep = data.remove(PRESERVE).is_some_and(|keep| keep.truthy());
                off(master, move |master| match keep {
                    true => master.sync_keys(true),
                    false => master.sync_accepted(),
                })
                .await?;
            }
            if tag.starts_with("salt/batch/") {
                let (tag, data) = (tag.clone(), data.clone());
                off(master, move |master| {
                    master.hear_of_batch(&tag, &data);
                    Ok(())
                })
                .await?;
            }
            master.bus.fire(tag.to_string(), data);
            end(true.into())
        }
        Request::Jobs { limit, filter } => {
            end(off(master, move |master| jobs(master, limit, &filter)).await?)
        }
        Request::Job { jid } => end(off(master, move |master| job(master, &jid)).await?),
        Request::ActiveJobs => {
            let active = master.jobs.active().into_iter().map(|(jid, load, waiting)| {
                dict! { "jid" => jid, "load" => load, "waiting" => Value::list(waiting) }
            });
            end(Value::list(active))
        }
        Request::Minions => {
            let known = off(master, |master| {
                master.sync_accepted()?;
                Ok(master.index.read().accepted())
            });
            let known = known.await?;
            let addresses = Dict::new();
            for peer in master.hub.peers() {
                if let (Some(id), Some(addr)) = (peer.id(), peer.addr()) {
                    addresses.insert(&*id, addr.ip().to_string());
                }
            }
            end(dict! {
                "connected" => Value::list(master.presence.ids()), "known" => Value::list(known),
                "addresses" => addresses,
            })
        }
        Request::MinionData { tgt, tgt_type } => {
            end(off(master, move |master| minion_data(master, &tgt, &tgt_type)).await?)
        }
        Request::Mine { tgt, tgt_type, functions } => {
            end(off(master, move |master| mine(master, &tgt, &tgt_type, &functions)).await?)
        }
        Request::Forget { tgt, tgt_type, what, function } => {
            let found = off(master, move |master| {
                let found = found(master, &tgt, &tgt_type)?;
                master.forget(&found, &what, &function)?;
                Ok(Value::list(found))
            });
            end(found.await?)
        }
        Request::EndToken { token } => {
            end(off(master, move |master| Ok(master.revoke_token(&token))).await?.into())
        }
        Request::Runner { fun, arg, kwarg, asynchronous } => {
            let call = call(master, caller, fun, arg, kwarg);
            if asynchronous {
                let (owner, jid) = (master.clone(), call.jid.clone());
                tokio::spawn(async move { runners::run(&owner, call).await });
                return end(dict! { "tag" => format!("salt/run/{jid}"), "jid" => &jid });
            }
            end(runners::run(master, call).await.into())
        }
        Request::Wheel { fun, arg, kwarg } => {
            let call = call(master, caller, fun, arg, kwarg);
            end(runners::wheel(master, call).await.into())
        }
        Request::Orchestrate { jid, fun, arg, kwarg } => {
            let mut call = call(master, caller, fun, arg, kwarg);
            if !jid.is_empty() {
                call.jid =
                    Jid::new(&jid).map_err(|error| Refusal::invocation(error.to_string()))?;
            }
            end(runners::run(master, call).await.into())
        }
        Request::Ask { what, load } => end(ask(master, &what, load).await?),
        Request::Statistics => end(statistics(master)),
        Request::Hello
        | Request::Publish(_)
        | Request::Cancel { .. }
        | Request::As { .. }
        | Request::MakeToken { .. } => end(Value::Null),
    }
}

fn call(
    master: &Master,
    caller: &Caller,
    function: SmolStr,
    args: Vec<Value>,
    kwargs: Dict,
) -> Call {
    Call { function, args, kwargs, user: caller.name.clone(), jid: master.jobs.next_jid() }
}

fn may(caller: &Caller, form: &str, fun: &str, arg: &[Value], kwarg: &Dict) -> Result<(), Refusal> {
    match &caller.rights {
        Rights::All => Ok(()),
        Rights::List(list) if acl::allows_special(list, form, fun, arg, kwarg) => Ok(()),
        Rights::List(_) => Err(Refusal::authorization()),
    }
}

async fn publish_job(
    master: &Arc<Master>,
    caller: &Caller,
    id: u64,
    job: Job,
    out: &Out,
) -> Result<Answer, Refusal> {
    // Only root may act under another name (`sudo_ann`).
    let user = match caller.rights {
        Rights::All if !job.user.is_empty() => job.user.clone(),
        _ => caller.name.clone(),
    };
    let batch = job.kwargs.remove(BATCH).and_then(|spec| spec.as_dict().cloned());
    let wish = Wish {
        tgt: job.tgt,
        tgt_type: job.tgt_type,
        fun: job.fun,
        arg: job.arg,
        ret: job.ret,
        jid: job.jid,
        user,
        kwargs: job.kwargs,
        timeout: job.timeout,
        id: None,
        on_disk: false,
    };
    if let Some(spec) = batch {
        let published = batch::start(master, caller, wish, spec).await?;
        return Ok(Answer::End(published.write().into()));
    }
    // What a syndic passes on for its user; whoever is limited already cannot be less so.
    let passed = wish.kwargs.get("auth_list").and_then(|list| list.items_of_sequence());
    let rights = match (&caller.rights, passed.filter(|list| !list.is_empty())) {
        (Rights::All, Some(list)) => Rights::List(list),
        (rights, _) => rights.clone(),
    };
    let (done, queue) = publish::publish(master, wish, rights, job.follow).await?;
    let published = done.published.write();
    let Some(queue) = queue else {
        if job.follow {
            item(out, id, published).await;
            return Ok(Answer::End(Value::Null));
        }
        return Ok(Answer::End(published.into()));
    };
    if item(out, id, published).await {
        pass_on(id, &queue, out).await;
    }
    Ok(Answer::End(Value::Null))
}

/// Passes progress on until the job is done or the program gone.
async fn pass_on(id: u64, queue: &crate::bus::Queue<Progress>, out: &Out) {
    while let Some(next) = queue.next().await {
        let progress = match next {
            Item::One(Progress::Done) => return,
            Item::One(progress) => progress,
            Item::Gap(missed) => Progress::Gap { missed },
        };
        if !item(out, id, progress.write()).await {
            return;
        }
    }
}

async fn follow(master: &Arc<Master>, id: u64, jid: &str, out: &Out) -> Result<Answer, Refusal> {
    let jid = Jid::new(jid).map_err(|error| Refusal::invocation(error.to_string()))?;
    // First the queue, then what is stored: nothing falls between, something may come twice.
    let queue = master.jobs.follow(&jid);
    let wanted = jid.clone();
    let stored = off(master, move |master| Ok(master.store.returns(&wanted)?)).await?;
    for (_, load) in stored {
        if let Value::Dict(load) = load
            && !item(out, id, Progress::Returned(load).write()).await
        {
            return Ok(Answer::End(Value::Null));
        }
    }
    if let Some(queue) = queue {
        pass_on(id, &queue, out).await;
    }
    Ok(Answer::End(Value::Null))
}

/// Sends one item of an event stream; false when the program is gone.
async fn event_item(out: &Out, id: u64, one: EventItem) -> bool {
    item(out, id, one.write()).await
}

async fn events(
    master: &Arc<Master>,
    id: u64,
    prefix: &str,
    after: Option<u64>,
    out: &Out,
) -> Result<Answer, Refusal> {
    let ended = Ok(Answer::End(Value::Null));
    let subscription = master.bus.subscribe(prefix, EVENTS);
    if let Some(after) = after
        && !replay(master, id, prefix, after, subscription.first, out).await?
    {
        return ended;
    }
    while let Some(next) = subscription.next().await {
        let one = match next {
            Item::One(event) => EventItem::Event {
                cursor: event.cursor,
                tag: event.tag.as_str().into(),
                data: event.data.clone(),
            },
            Item::Gap(missed) => EventItem::Gap { missed },
        };
        if !event_item(out, id, one).await {
            break;
        }
    }
    ended
}

/// Sends what the log has from after a cursor up to the first event that comes by itself, with a
/// gap for whatever the log has not. False when the program is gone.
async fn replay(
    master: &Arc<Master>,
    id: u64,
    prefix: &str,
    after: u64,
    until: u64,
    out: &Out,
) -> Result<bool, Refusal> {
    // The log lags behind the bus: wait until it has what was fired before the subscription.
    if let Err(error) = master.store.write(Vec::new()).await {
        tracing::warn!("The event log may be incomplete: {error}");
    }
    let mut cursor = after;
    while cursor + 1 < until {
        let from = cursor;
        let page = off(master, move |master| Ok(master.store.events(from, 1000)?)).await?;
        if page.is_empty() {
            break;
        }
        for (at, bytes) in page {
            if at >= until {
                cursor = until - 1;
                break;
            }
            // From the beginning (0) means from the oldest there is.
            let missed = at - cursor - 1;
            if missed > 0 && cursor > 0 && !event_item(out, id, EventItem::Gap { missed }).await {
                return Ok(false);
            }
            cursor = at;
            let Ok(event) = Event::decode(&bytes) else { continue };
            if !event.tag.starts_with(prefix) {
                continue;
            }
            let one = EventItem::Event { cursor, tag: event.tag.into(), data: event.data };
            if !event_item(out, id, one).await {
                return Ok(false);
            }
        }
    }
    let missed = until.saturating_sub(cursor + 1);
    Ok(missed == 0 || cursor == 0 || event_item(out, id, EventItem::Gap { missed }).await)
}

/// Asks a part of the master. Blocking parts run on threads that may block.
async fn ask(master: &Arc<Master>, what: &str, load: Dict) -> Result<Value, Refusal> {
    match what {
        "reactor" => crate::reactor::answer(master, &load).await,
        "queue" => off(master, move |master| master.queues.answer(&*master.store, &load)).await,
        "resolve" => off(master, move |master| resolve(master, &load)).await,
        "runner_done" => {
            let done = runners::done(master, load).await;
            done.map(|()| true.into()).map_err(|error| Refusal::invocation(error.to_string()))
        }
        "orchestration" => off(master, move |master| master.orchestration(&load)).await,
        "batch" => {
            let owner = master.clone();
            blocking(move || owner.batch(&load)).await.and_then(|done| done).map_err(internal)
        }
        "fileserver_update" => {
            off(master, |master| {
                master.look_at_roots();
                Ok(true.into())
            })
            .await
        }
        // Who reads jobs from a database wants to find there what was shown already.
        "flush_jobs" => {
            off(master, |master| {
                master.mirrors.iter().for_each(|mirror| mirror.flush(FLUSH));
                Ok(true.into())
            })
            .await
        }
        other => Err(Refusal::invocation(format!("the master has no part `{other}`"))),
    }
}

/// Returns whom a target means, and who of them is there.
fn resolve(master: &Master, load: &Dict) -> Result<Value, Error> {
    let kind = load.get("tgt_type").map_or_else(|| "glob".into(), |kind| kind.to_str());
    let found = master
        .resolve(&load.get("tgt").unwrap_or_default(), &kind, None, Search::default())
        .map_err(|error| Error::Other(error.to_string()))?;
    if load.get("names_only").is_some_and(|only| only.truthy()) {
        return Ok(dict! { "minions" => Value::list(&found.minions) });
    }
    let sorted = publish::sort(master, &found.minions);
    Ok(dict! {
        "connected" => Value::list(&sorted.connected), "absent" => Value::list(&sorted.absent),
        "unsure" => Value::list(&sorted.unsure), "minions" => Value::list(&found.minions),
        "missing" => Value::list(&found.missing),
        "uptime" => master.started.elapsed().as_secs_f64(),
    })
}

fn jobs(master: &Master, limit: Option<u64>, filter: &Dict) -> Result<Value, Error> {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let fits = |load: &Value| {
        filter.into_iter().all(|(name, pattern)| {
            let field = match name.to_str().as_str() {
                "function" => "fun",
                "target" => "tgt",
                "user" => "user",
                _ => return true,
            };
            let text = load.get(field).unwrap_or_default().to_str();
            pattern
                .items_of_sequence()
                .unwrap_or_else(|| vec![pattern.clone()])
                .iter()
                .any(|pattern| fnmatch(&text, &pattern.to_str()))
        })
    };
    Ok(history::jobs(&*master.store, limit, fits)?)
}

fn job(master: &Master, jid: &str) -> Result<Value, Error> {
    // Salt looks for whatever it is given, and finds nothing under what cannot be a job's number.
    let Ok(jid) = Jid::new(jid) else { return Ok(Value::Null) };
    Ok(history::job(&*master.store, &jid)?)
}

/// The minions a target means.
fn found(master: &Master, tgt: &Value, tgt_type: &str) -> Result<Vec<SmolStr>, Error> {
    let found = master.resolve(tgt, tgt_type, None, Search::default());
    Ok(found.map_err(|error| Error::Other(error.to_string()))?.minions)
}

fn mine(master: &Master, tgt: &Value, tgt_type: &str, only: &[SmolStr]) -> Result<Value, Error> {
    let all = Dict::new();
    for id in found(master, tgt, tgt_type)? {
        let own = Dict::new();
        for function in master.store.mine_names(&id)? {
            if only.is_empty() || only.iter().any(|wanted| *wanted == *function) {
                own.insert(function.as_str(), master.store.mine(&id, &function)?);
            }
        }
        all.insert(id, own);
    }
    Ok(all.into())
}

fn minion_data(master: &Master, tgt: &Value, tgt_type: &str) -> Result<Value, Error> {
    let found = found(master, tgt, tgt_type)?;
    let index = master.index.read();
    let data: Dict = found
        .into_iter()
        .map(|id| {
            let entry = dict! {
                "grains" => index.grains(&id).cloned(), "pillar" => index.pillar(&id).cloned(),
            };
            (id, entry)
        })
        .collect();
    Ok(data.into())
}

pub(crate) fn statistics(master: &Master) -> Value {
    let read = |counter: &AtomicU64| Value::from(counter.load(Ordering::Relaxed));
    let hub = master.hub.statistics();
    let sizes = master.store.sizes();
    let counters = &master.counters;
    let caches = Dict::new();
    for mirror in &master.mirrors {
        let (name, waiting, dropped) = mirror.counters();
        caches.insert(name, dict! { "waiting" => waiting, "dropped" => dropped });
    }
    dict! {
        "connections" => hub.connections, "accepted" => hub.accepted, "requests" => hub.requests,
        "publications" => hub.publications, "delivered" => hub.delivered, "dropped" => hub.dropped,
        "jobs_running" => master.jobs.len(), "jobs" => sizes.jobs, "job_bytes" => sizes.job_bytes,
        "events" => sizes.events, "event_bytes" => sizes.event_bytes, "commits" => sizes.commits,
        "failed_writes" => sizes.failed, "bad_loads" => read(&counters.bad_loads),
        "replays" => read(&counters.replays),
        "unknown_commands" => read(&counters.unknown_commands),
        "refused_events" => read(&counters.refused_events),
        "impersonations" => read(&counters.impersonations),
        "dropped_events" => read(&counters.dropped_events),
        "dead_letters" => master.reactor.dead_letters(), "job_caches" => caches,
    }
}
