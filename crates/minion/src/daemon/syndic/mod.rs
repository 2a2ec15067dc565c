//! `salt-syndic`: what a master of masters sees of the master on this machine.
//!
//! Upwards it is a minion, with the key and the id of the minion on this machine: it signs in to every
//! master of `syndic_master`, takes all their jobs whatever the target, and gives each to the master
//! on this machine under the same job id (`local.rs`, over its control socket). What that master's
//! event bus says then goes up (`post.rs`): who is meant, what the minions return, and other events.
//!
//! A master of ours above is told besides which minions have begun and which went away, so that it
//! accounts for them as for its own. Nothing runs here: no job, no schedule, no beacon.

mod local;
mod post;

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use halite_client::{Answer, EventItem, Job, Progress, Published, Request};
use halite_host::Os;
use halite_transport::{Event, Kind, Linked, Subscription, connect};
use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::{Notice, Publication};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use self::{
    local::Link,
    post::{Aside, Batch, Post},
};
use super::{
    Signals, StartError,
    auth::{Identity, SignInError},
    fatal,
    link::event_load,
    node::random_part,
    options::{MasterAddress, Reader, Settings},
    pillar,
    session::{AskError, Master},
};

/// How long a job waits for the master on this machine, if that is just starting.
const LOCAL: Duration = Duration::from_secs(30);
/// How often the place in the event log is written down.
const NOTED: Duration = Duration::from_secs(1);

/// What the syndic is started with.
pub struct Start {
    /// The syndic's configuration, complete.
    pub opts: Dict,
    /// Where the master on this machine has its sockets.
    pub sock_dir: PathBuf,
}

/// What all masters above share.
struct Shared {
    settings: Arc<Settings>,
    identity: Arc<Identity>,
    grains: Dict,
    post: Post,
    sock_dir: PathBuf,
    /// For jobs; events have a connection of their own.
    link: Mutex<Option<Arc<Link>>>,
    forward_after: Duration,
    master_id: Option<SmolStr>,
    exit: Mutex<Option<u8>>,
    exiting: Notify,
}

/// Runs the syndic until it is told to end; returns the exit code.
pub fn run(start: Start) -> Result<u8, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::io("cannot start"))?;
    let code = runtime.block_on(daemon(start))?;
    runtime.shutdown_background();
    Ok(code)
}

async fn daemon(start: Start) -> Result<u8, StartError> {
    let mut signals = Signals::new()?;
    let opts = start.opts;
    // How the minion on this machine deals with several masters is no matter here.
    opts.insert("master_type", "str");
    opts.insert("master_finger", opts.get("syndic_finger").unwrap_or_default());
    let settings = Arc::new(Settings::read(&opts)?);
    let reader = Reader(opts.clone());
    let identity = Arc::new(Identity::open(&settings)?);
    let configured = match opts.get("grains") {
        Some(Value::Dict(configured)) => configured,
        _ => Dict::new(),
    };
    let grains = {
        let opts = opts.clone();
        let collect = move || pillar::grains(&Os::new(), &opts, &configured, None);
        tokio::task::spawn_blocking(collect).await.unwrap_or_default()
    };
    let names: Vec<SmolStr> = settings.masters.iter().map(|master| master.name.clone()).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    if reader.text("syndic_failover").as_deref() != Some("ordered") {
        for last in (1..order.len()).rev() {
            let other = (random_part() * (last + 1) as f64) as usize;
            order.swap(last, other.min(last));
        }
    }
    let shared = Arc::new(Shared {
        post: Post::new(
            &settings.id,
            &settings.cachedir.join("syndic"),
            &names,
            order,
            reader.flag("syndic_forward_all_events", false),
            reader.count("syndic_jid_forward_cache_hwm", 100).max(1000),
        ),
        forward_after: reader.seconds("syndic_event_forward_timeout", 0.5),
        master_id: reader.text("master_id"),
        settings: Arc::clone(&settings),
        identity,
        grains,
        sock_dir: start.sock_dir,
        link: Mutex::default(),
        exit: Mutex::default(),
        exiting: Notify::new(),
    });
    tokio::spawn(pump(Arc::clone(&shared)));
    for (at, address) in settings.masters.iter().enumerate() {
        tokio::spawn(Upper::keep(Arc::clone(&shared), at, address.clone()));
    }
    tokio::select! {
        name = signals.next() => tracing::warn!("Syndic received a {name}. Exiting."),
        () = shared.exiting.notified() => {}
    }
    shared.post.save_cursor();
    let code = shared.exit.lock().unwrap_or(0);
    Ok(code)
}

/// Reads the events of the master on this machine, for ever.
async fn pump(shared: Arc<Shared>) {
    let mut was_told = false;
    loop {
        match read_events(&shared).await {
            Ok(()) => tracing::warn!("the master on this machine has ended"),
            Err(error) if !was_told => tracing::warn!(
                "the master on this machine is not there ({}): {error}",
                shared.sock_dir.display()
            ),
            Err(_) => {}
        }
        was_told = true;
        sleep(Duration::from_millis(500)).await;
    }
}

async fn read_events(shared: &Shared) -> std::io::Result<()> {
    let link = Link::open(&shared.sock_dir).await?;
    let after = shared.post.cursor();
    let mut events = link.ask(&Request::Events { tag: SmolStr::default(), after }).await?;
    let mut note = tokio::time::interval(NOTED);
    loop {
        tokio::select! {
            answer = events.recv() => match answer {
                Some(Answer::Item(Value::Dict(item))) => match EventItem::read(&item) {
                    Ok(EventItem::Event { cursor, tag, data }) => shared.post.take(cursor, tag, data),
                    Ok(EventItem::Gap { missed }) => {
                        tracing::warn!("{missed} events of the master on this machine are missing");
                    }
                    Err(error) => tracing::warn!("an event cannot be read: {error}"),
                },
                Some(Answer::Refused { message, .. }) => {
                    return Err(std::io::Error::other(message.to_string()));
                }
                Some(_) => {}
                None => return Ok(()),
            },
            _ = note.tick() => shared.post.save_cursor(),
        }
    }
}

impl Shared {
    /// Returns the connection for jobs; waits for the master on this machine if it must.
    async fn local(&self) -> std::io::Result<Arc<Link>> {
        let until = Instant::now() + LOCAL;
        loop {
            if let Some(link) = self.link.lock().clone().filter(|link| link.is_open()) {
                return Ok(link);
            }
            match Link::open(&self.sock_dir).await {
                Ok(link) => {
                    let link = Arc::new(link);
                    *self.link.lock() = Some(Arc::clone(&link));
                    return Ok(link);
                }
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    fn exit(&self, code: u8) {
        self.exit.lock().get_or_insert(code);
        self.exiting.notify_one();
    }
}

/// One master above.
struct Upper {
    shared: Arc<Shared>,
    at: usize,
    master: Arc<Master>,
    /// Something to try again with: it is reachable.
    reachable: Notify,
    was_up: AtomicBool,
}

impl Upper {
    /// Serves one master above, for ever.
    async fn keep(shared: Arc<Shared>, at: usize, address: MasterAddress) {
        let settings = Arc::clone(&shared.settings);
        let transport = connect(settings.kind, settings.client(&address));
        let master = Master::new(
            address,
            settings,
            Arc::clone(&shared.identity),
            transport,
            shared.grains.clone(),
            tokio::runtime::Handle::current(),
        );
        master.will_listen();
        let (reachable, was_up) = (Notify::new(), AtomicBool::new(false));
        let upper = Arc::new(Self { shared, at, master, reachable, was_up });
        if upper.sign_in().await {
            upper.serve().await;
        }
    }

    /// Signs in; waits for acceptance. False if it is no use.
    async fn sign_in(&self) -> bool {
        let settings = &self.shared.settings;
        let mut wait = settings.acceptance_wait;
        loop {
            match self.master.sign_in().await {
                Ok(_) => return true,
                Err(error) if self.told(&error).await => return false,
                Err(_) => {}
            }
            sleep(wait.max(Duration::from_millis(100))).await;
            if wait < settings.acceptance_wait_max {
                wait += settings.acceptance_wait;
            }
        }
    }

    /// Says what a failed sign-in means to the operator; true if it ends the syndic.
    async fn told(&self, error: &SignInError) -> bool {
        let (settings, name) = (&self.shared.settings, &self.master.address.name);
        match error {
            SignInError::Pending => tracing::error!(
                "our key waits at {name} to be accepted (salt-key -a); asking again in {} seconds",
                settings.acceptance_wait.as_secs()
            ),
            SignInError::MasterKey(_) => tracing::error!(
                "{error}\nThis is not the master of masters we know. If it has a new key and you \
                 trust it, remove {} and start the syndic again",
                settings.pki_dir.join(halite_crypt::pki::SYNDIC_MASTER_PUB).display()
            ),
            _ => tracing::error!("cannot sign in to {name}: {error}"),
        }
        let retried = matches!(error, SignInError::Rejected) && settings.rejected_retry;
        let Some(code) = fatal(error).filter(|_| !retried) else { return false };
        if matches!(error, SignInError::Rejected) {
            // A service manager that starts us again at once must not make a storm of it.
            sleep(Duration::from_secs(10)).await;
        }
        self.shared.exit(code);
        true
    }

    async fn serve(self: &Arc<Self>) {
        let settings = &self.shared.settings;
        let announced = self.master.keys().map_or(4505, |keys| keys.publish_port);
        let mut subscription = Subscription::everything(settings.publish_port(announced));
        if settings.zmq_filtering && settings.kind == Kind::ZeroMq {
            subscription.topics = vec!["broadcast".into(), "syndic".into()];
        }
        self.master.transport.subscribe(subscription);
        let beginning = Arc::clone(self);
        tokio::spawn(async move {
            beginning.show_grains().await;
            beginning.announce().await;
        });
        tokio::spawn(Arc::clone(self).send());
        while let Some(event) = self.master.transport.next().await {
            self.handle(event).await;
        }
    }

    /// A syndic has no use for a pillar: asking for it shows the master above our grains.
    async fn show_grains(&self) {
        let load = entries! {
            "cmd" => "_pillar", "id" => &self.shared.settings.id, "grains" => &self.shared.grains,
            "saltenv" => (), "pillarenv" => (), "pillar_override" => Value::dict(),
            "extra_minion_data" => Value::dict(), "ver" => "2",
        };
        if let Err(error) = self.master.ask_private(&load).await {
            tracing::debug!("no pillar from {}: {error}", self.master.address.name);
        }
    }

    /// Fires the start events.
    async fn announce(&self) {
        let settings = &self.shared.settings;
        let id = &settings.id;
        let now = jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
        let text = format!("Syndic {id} started at {now}");
        let legacy = settings.legacy_start_events.then(|| "syndic_start".to_owned());
        for tag in legacy.into_iter().chain([format!("salt/syndic/{id}/start")]) {
            let load = event_load(&tag, text.as_str().into(), None);
            if let Err(error) = self.master.ask(&load).await {
                tracing::warn!("the event {tag} did not reach the master: {error}");
            }
        }
        if !self.was_up.swap(true, Ordering::AcqRel) {
            tracing::info!("Syndic successfully connected to {}", self.master.address.name);
        }
    }

    async fn handle(self: &Arc<Self>, event: Event) {
        match event {
            Event::Publication(sealed) => match self.master.open(&sealed).await {
                Ok(Some(load)) => self.receive(&load),
                Ok(None) => {}
                Err(AskError::SignIn(error)) => {
                    self.told(&error).await;
                }
                Err(error) => tracing::warn!("a publication cannot be read: {error}"),
            },
            Event::Connected(linked) => self.connected(linked).await,
            Event::Disconnected(why) => {
                tracing::warn!("the connection to {} was lost: {why}", self.master.address.name);
                self.shared.post.is_up(self.at, false);
            }
            Event::Notice(body) => match Notice::decode(&body) {
                Ok(Notice::SignIn) => {
                    let (upper, known) = (Arc::clone(self), self.master.keys());
                    tokio::spawn(async move {
                        let delay = upper.shared.settings.reauth_delay.mul_f64(random_part());
                        sleep(delay).await;
                        if let Err(error) = upper.master.sign_in_unless_done(known.as_ref()).await {
                            upper.told(&error).await;
                        }
                    });
                }
                Ok(Notice::Key(sealed)) => self.master.take_key(&sealed),
                _ => {}
            },
        }
    }

    async fn connected(self: &Arc<Self>, linked: Linked) {
        let again = self.was_up.load(Ordering::Acquire);
        let kind = self.shared.settings.kind;
        let needs_sign_in = match kind {
            _ if linked.extended => self.master.connection() != linked.connection,
            Kind::Tcp => again,
            _ => false,
        };
        let resumed =
            needs_sign_in && linked.extended && self.master.resume(linked.connection).await;
        if needs_sign_in
            && !resumed
            && let Err(error) = self.master.sign_in().await
        {
            self.told(&error).await;
        }
        if kind == Kind::Tcp
            && let Some(frame) = self.master.identification()
        {
            self.master.transport.identify(frame);
        }
        self.shared.post.is_up(self.at, true);
        self.reachable.notify_waiters();
        if again {
            tracing::info!("connected to {} again", self.master.address.name);
            let upper = Arc::clone(self);
            tokio::spawn(async move { upper.announce().await });
        }
    }

    /// Takes a job: whomever it is for, it goes to the master on this machine.
    fn receive(self: &Arc<Self>, load: &Dict) {
        let publication = match Publication::read(load) {
            Ok(publication) => publication,
            Err(error) => {
                tracing::debug!("a publication that is none: {error}");
                return;
            }
        };
        let giver = publication.extra.get("master_id").map(|id| id.to_str());
        if giver.is_some() && giver == self.shared.master_id {
            tracing::debug!("job {} came from here", publication.jid);
            return;
        }
        tracing::debug!("job {} from {}", publication.jid, self.master.address.name);
        self.shared.post.came(&publication.jid, self.at);
        let upper = Arc::clone(self);
        tokio::spawn(async move { upper.pass_down(publication).await });
    }

    /// Gives a job to the master on this machine and, for a master of ours above, follows it.
    async fn pass_down(&self, publication: Publication) {
        let jid = publication.jid.clone();
        let follow = self.master.transport.is_extended();
        let job = down(&publication, follow);
        let asked = async {
            let link = self.shared.local().await?;
            let answers = link.ask(&Request::Publish(Box::new(job))).await?;
            Ok::<_, std::io::Error>((link, answers))
        };
        let (_link, mut answers) = match asked.await {
            Ok(asked) => asked,
            Err(error) => {
                tracing::error!("job {jid} did not reach the master on this machine: {error}");
                return self.nobody(&publication);
            }
        };
        let published = match answers.recv().await {
            Some(Answer::Item(Value::Dict(item)) | Answer::End(Value::Dict(item))) => {
                Published::read(&item).ok()
            }
            Some(Answer::Refused { message, .. }) => {
                tracing::warn!("the master on this machine refuses job {jid}: {message}");
                None
            }
            _ => None,
        };
        let Some(published) = published.filter(|done| done.error.is_none()) else {
            return self.nobody(&publication);
        };
        if !follow {
            return;
        }
        let gone: HashSet<&SmolStr> = published.absent.iter().chain(&published.unsure).collect();
        let sure = published.minions.iter().filter(|id| !gone.contains(id)).cloned();
        let mut pending: HashSet<SmolStr> = sure.collect();
        let sure = pending.iter().cloned().collect();
        self.aside(&jid, Aside { sure, lost: published.absent.clone(), ..Aside::default() });
        while let Some(Answer::Item(Value::Dict(item))) = answers.recv().await {
            match Progress::read(&item) {
                Ok(Progress::Started { id }) => {
                    self.aside(&jid, Aside { started: vec![id], ..Aside::default() });
                }
                Ok(Progress::Lost { id, .. }) => {
                    self.aside(&jid, Aside { lost: vec![id], ..Aside::default() });
                }
                Ok(Progress::Back { id }) => {
                    self.aside(&jid, Aside { back: vec![id], ..Aside::default() });
                }
                Ok(Progress::Returned(load)) => {
                    pending.remove(&load.get("id").unwrap_or_default().to_str());
                }
                Ok(Progress::Done) => return,
                _ => {}
            }
        }
        // The stream ended with the job, or with the master: then nobody would tell of the rest.
        if !self.shared.link.lock().as_ref().is_some_and(|link| link.is_open()) {
            let lost = pending.into_iter().collect();
            self.aside(&jid, Aside { lost, ..Aside::default() });
        }
    }

    fn aside(&self, jid: &str, aside: Aside) {
        self.shared.post.aside(self.at, jid, aside);
    }

    /// Tells the master above that nobody answers here. A master that finds nobody fires no event.
    fn nobody(&self, publication: &Publication) {
        let none = || Value::from(Vec::<Value>::new());
        let data = entries! {
            "jid" => &publication.jid, "tgt_type" => &publication.tgt_type,
            "tgt" => &publication.tgt, "user" => &publication.user, "fun" => &publication.fun,
            "arg" => publication.arg.clone(), "minions" => none(), "missing" => none(),
            "_stamp" => halite_wire::stamp(),
        };
        self.shared.post.nobody(self.at, data);
    }

    /// Sends what is for this master above, for ever.
    async fn send(self: Arc<Self>) {
        let post = &self.shared.post;
        loop {
            if !post.wait(self.at).await {
                let until = Instant::now() + self.shared.forward_after;
                // What is urgent does not wait for the rest.
                while tokio::time::timeout_at(until, post.more(self.at)).await.is_ok() {
                    if post.wait(self.at).await {
                        break;
                    }
                }
            }
            let batch = post.next(self.at, self.master.transport.is_extended());
            match self.send_batch(&batch).await {
                Ok(()) => post.done(self.at),
                Err((events_too, error)) => {
                    tracing::warn!(
                        "returns for {} are still to be sent: {error}",
                        self.master.address.name
                    );
                    post.give_back(self.at, batch, events_too);
                    let (low, high) =
                        (self.shared.settings.return_retry, self.shared.settings.return_retry_max);
                    let pause = low.max(Duration::from_secs(1))
                        + high.saturating_sub(low).mul_f64(random_part());
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = self.reachable.notified() => {}
                    }
                }
            }
        }
    }

    /// Sends events, then returns: who is meant must be known before somebody answers. The error tells
    /// whether the events did not arrive either.
    async fn send_batch(&self, batch: &Batch) -> Result<(), (bool, AskError)> {
        if !batch.events.is_empty() {
            let load = entries! {
                "cmd" => "_minion_event", "events" => batch.events.clone(),
                "pretag" => format!("syndic/{}", self.shared.settings.id),
            };
            self.master.ask(&load).await.map_err(|error| (true, error))?;
        }
        if !batch.returns.is_empty() {
            let load = entries! { "cmd" => "_syndic_return", "load" => batch.returns.clone() };
            self.master.ask(&load).await.map_err(|error| (false, error))?;
        }
        Ok(())
    }
}

/// The job as the master on this machine gets it.
fn down(publication: &Publication, follow: bool) -> Job {
    let kwargs = Dict::new();
    // differs: Salt's syndics pass on the first two only.
    for name in [
        "auth_list",
        "master_id",
        "metadata",
        "delimiter",
        "module_executors",
        "executor_opts",
        "ret_config",
        "ret_kwargs",
        "start_event",
    ] {
        if let Some(value) = publication.extra.get(name).filter(|value| !value.is_null()) {
            kwargs.insert(name, value);
        }
    }
    let to = publication.extra.get("to").and_then(|to| to.to_int());
    Job {
        arg: publication.arg.clone(),
        ret: publication.ret.clone(),
        jid: publication.jid.as_str().into(),
        user: publication.user.clone(),
        timeout: to.map(|to| (to - 1).max(1)),
        kwargs,
        follow,
        ..Job::new(publication.tgt.clone(), &publication.tgt_type, publication.fun.clone())
    }
}

#[cfg(test)]
mod tests {
    use halite_value::list;

    use super::*;

    #[test]
    fn a_job_goes_down_as_it_came() {
        let load = entries! {
            "jid" => "20261116185120265096", "fun" => "test.echo", "arg" => list!["hi"],
            "tgt" => list!["a"], "tgt_type" => "list", "ret" => "mysql", "user" => "ann", "to" => 5,
            "auth_list" => list!["test.*"], "metadata" => "m",
        };
        let job = down(&Publication::read(&load).unwrap(), true);
        assert_eq!((job.jid.as_str(), job.user.as_str()), ("20261116185120265096", "ann"));
        assert_eq!((job.timeout, job.ret.as_str()), (Some(4), "mysql"));
        assert_eq!(job.kwargs.get("auth_list"), Some(list!["test.*"]));
        assert_eq!(job.kwargs.get("metadata"), Some("m".into()));
    }
}
