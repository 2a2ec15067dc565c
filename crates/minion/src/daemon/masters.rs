//! Staying connected: to one master, to all of a list, or to one of a list at a time.
//!
//! Signing in waits as long as it must: a key that is not accepted yet, a master that is not there,
//! are conditions, not errors. Only a rejected key and a wrong fingerprint end the minion.

use std::{
    net::IpAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use halite_transport::{Event, Kind, LinkError, Linked, Subscription};
use halite_value::{Dict, entries};
use halite_wire::Notice;
use tokio::time::{Instant, sleep};

use super::{
    EX_GENERIC,
    auth::SignInError,
    fatal,
    link::event_load,
    node::{Node, random_part},
    options::{MasterAddress, MasterType},
    own::Ground,
    session::AskError,
    tie::Tie,
};

/// How long a master of several may be away before the next one is tried.
const PATIENCE: Duration = Duration::from_secs(10);

/// Keeps the minion connected, as configured, for ever.
pub(crate) async fn keep(node: Arc<Node>) {
    let settings = Arc::clone(&node.settings);
    let delay = settings.startup_delay.mul_f64(random_part());
    if !delay.is_zero() {
        tracing::info!("Minion sleeping for {} seconds before sign-in", delay.as_secs());
        sleep(delay).await;
    }
    let mut masters = settings.masters.clone();
    if masters.is_empty() {
        tracing::error!("no master is configured");
        node.exit(EX_GENERIC);
        return;
    }
    if settings.random_master {
        shuffle(&mut masters);
    }
    match settings.master_type {
        MasterType::Disable => {}
        MasterType::Failover => one_of(&node, masters).await,
        MasterType::Distributed => {
            let number = crc32fast::hash(node.settings.id.as_bytes()) as usize % masters.len();
            let chosen = masters.swap_remove(number);
            always(&node, chosen).await;
        }
        MasterType::Hot => {
            for master in masters {
                let node = Arc::clone(&node);
                tokio::spawn(async move { always(&node, master).await });
            }
        }
    }
}

fn shuffle(masters: &mut [MasterAddress]) {
    for last in (1..masters.len()).rev() {
        let other = (random_part() * (last + 1) as f64) as usize;
        masters.swap(last, other.min(last));
    }
}

/// One master, for ever.
async fn always(node: &Arc<Node>, address: MasterAddress) {
    let tie = Tie::new(node, &address);
    if sign_in(&tie, None).await.is_err() {
        return;
    }
    node.add(&tie);
    serve(&tie, None).await;
    node.remove(&tie);
}

/// One of several masters at a time.
async fn one_of(node: &Arc<Node>, mut list: Vec<MasterAddress>) {
    let first = list.first().cloned();
    let mut rounds = 0;
    loop {
        let mut lost = None;
        for (index, address) in list.clone().into_iter().enumerate() {
            let tie = Tie::new(node, &address);
            if let Err(error) = sign_in(&tie, Some(1)).await {
                tracing::error!("no luck with the master {}: {error}", address.name);
                tie.master.transport.close();
                continue;
            }
            tracing::info!("this minion now serves {}", address.name);
            rounds = 0;
            node.add(&tie);
            let home = first.as_ref().filter(|first| **first != address);
            let why = serve(&tie, Some(home.cloned())).await;
            node.remove(&tie);
            tie.master.transport.close();
            lost = Some((index, why));
            break;
        }
        match lost {
            Some((_, Ended::Home)) => {
                if let Some(home) = &first
                    && let Some(at) = list.iter().position(|master| master == home)
                {
                    list.rotate_left(at);
                }
            }
            Some((index, Ended::Lost)) => {
                // The one that went away is tried last.
                let dead = list.remove(index);
                list.push(dead);
            }
            None => {
                rounds += 1;
                let tries = node.settings.master_tries;
                if tries >= 0 && rounds >= tries.max(1) {
                    tracing::error!("none of the masters lets us in, and there are no tries left");
                    node.exit(EX_GENERIC);
                    return;
                }
                sleep(node.settings.acceptance_wait.max(Duration::from_secs(1))).await;
            }
        }
    }
}

/// Signs in; waits for acceptance. `tries` limits the attempts at a master that does not answer.
async fn sign_in(tie: &Tie, tries: Option<u32>) -> Result<(), SignInError> {
    let settings = &tie.node.settings;
    let mut wait = settings.acceptance_wait;
    let mut attempts = 0;
    loop {
        let Err(error) = tie.master.sign_in().await else { return Ok(()) };
        attempts += 1;
        if told(tie, &error).await {
            return Err(error);
        }
        if tries.is_some_and(|tries| attempts >= tries && !matches!(error, SignInError::Pending)) {
            return Err(error);
        }
        if settings.auth_retries > 0 && attempts >= settings.auth_retries {
            tracing::error!("Failed to authenticate with the master after {attempts} attempts");
            tie.node.exit(EX_GENERIC);
            return Err(error);
        }
        if !wait.is_zero() {
            tracing::info!("Waiting {} seconds before retry.", wait.as_secs());
        }
        sleep(wait.max(Duration::from_millis(100))).await;
        if wait < settings.acceptance_wait_max {
            wait += settings.acceptance_wait;
        }
    }
}

/// Says what a failed sign-in means to the operator; true if it ends the minion.
async fn told(tie: &Tie, error: &SignInError) -> bool {
    let settings = &tie.node.settings;
    match error {
        SignInError::Pending => tracing::error!(
            "our key waits at the master to be accepted (salt-key -a); asking again in {} seconds",
            settings.acceptance_wait.as_secs()
        ),
        SignInError::Rejected if settings.rejected_retry => tracing::error!(
            "the master refuses our key; we go on asking. To let this minion in, delete its key on the master"
        ),
        SignInError::Rejected => {
            tracing::error!(
                "the master refuses our key, so this minion ends. To let it in, delete its key on the master and start the minion again"
            );
            // A service manager that starts us again at once must not make a storm of it.
            sleep(Duration::from_secs(10) + Duration::from_secs(10).mul_f64(random_part())).await;
        }
        SignInError::MasterKey(_) => tracing::error!(
            "{error}\nThis is not the master we know. If it has a new key and you trust it, remove {} and start the minion again",
            settings.pki_dir.join("minion_master.pub").display()
        ),
        _ => tracing::error!("cannot sign in to {}: {error}", tie.master.address.name),
    }
    let retried = matches!(error, SignInError::Rejected) && settings.rejected_retry;
    match fatal(error).filter(|_| !retried) {
        Some(code) => {
            tie.node.exit(code);
            true
        }
        None => false,
    }
}

/// Why a master is not served any more.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It went away for too long.
    Lost,
    /// The first of the list is back.
    Home,
}

/// Serves one master that we are signed in to. `several`: there are others (and which one to go
/// back to, unless this is it); then it ends when this one is lost.
async fn serve(tie: &Arc<Tie>, several: Option<Option<MasterAddress>>) -> Ended {
    let subscription = subscription(tie);
    tie.master.transport.subscribe(subscription);
    prepare(tie).await;
    announce(tie);
    tie.run_startup_states();
    super::schedule::update_mine(tie);
    let mut state = Serving { tie, up: None, was_up: false, remote: None };
    let settings = &tie.node.settings;
    let ping = tokio::spawn(super::events::ping(Arc::clone(tie)));
    let alive = tokio::spawn(super::events::tell_running(Arc::clone(tie)));
    let mut down_since = None;
    let patience = if settings.alive_interval.is_zero() {
        PATIENCE
    } else {
        settings.alive_interval.max(Duration::from_secs(1))
    };
    let home = several.as_ref().and_then(Clone::clone).filter(|_| settings.failback.is_some());
    let mut look_home = Instant::now() + settings.failback.unwrap_or(PATIENCE);
    // Beside the rest: a master that is away takes its time not to answer.
    let mut looking = None;
    let watched = Some(settings.alive_interval).filter(|interval| !interval.is_zero());
    let mut look_up = Instant::now() + watched.unwrap_or(PATIENCE);
    let mut looking_up = None;
    let ended = loop {
        let lost_at = down_since.map(|since: Instant| since + patience);
        tokio::select! {
            biased;
            event = tie.master.transport.next() => match event {
                None => break Ended::Lost,
                Some(event) => {
                    match &event {
                        Event::Connected(_) => down_since = None,
                        Event::Disconnected(_) => {
                            down_since.get_or_insert_with(Instant::now);
                        }
                        _ => {}
                    }
                    state.handle(event).await;
                }
            },
            () = until(lost_at), if several.is_some() => break Ended::Lost,
            () = tie.master.forgotten.notified() => tell_again(Arc::clone(tie)),
            () = tokio::time::sleep_until(look_home), if home.is_some() && looking.is_none() => {
                let node = Arc::clone(&tie.node);
                looking = home.clone().map(|home| tokio::spawn(is_back(node, home)));
            }
            () = tokio::time::sleep_until(look_up), if watched.is_some() && looking_up.is_none() => {
                let address = tie.master.address.clone();
                looking_up = state.up.and(state.remote).map(|at| tokio::spawn(moved(address, at)));
                look_up = Instant::now() + watched.unwrap_or(PATIENCE);
            }
            new = looked(&mut looking_up), if looking_up.is_some() => {
                looking_up = None;
                if let Some(new) = new.flatten() {
                    state.is_at(new);
                    tie.master.transport.reconnect();
                }
            }
            is_back = looked(&mut looking), if looking.is_some() => {
                if is_back == Some(true) {
                    break Ended::Home;
                }
                looking = None;
                look_home = Instant::now() + settings.failback.unwrap_or(PATIENCE);
            }
        }
    };
    ping.abort();
    alive.abort();
    if let Some(looking) = looking {
        looking.abort();
    }
    if let Some(looking_up) = looking_up {
        looking_up.abort();
    }
    ended
}

/// Tells a master about us that has forgotten everything: our key was deleted there and accepted anew.
fn tell_again(tie: Arc<Tie>) {
    tie.node.handle.clone().spawn(async move {
        if let Err(error) = tie.load_pillar().await {
            tracing::error!("no pillar from {}: {error}", tie.master.address.name);
        }
        super::schedule::update_mine(&tie);
    });
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits for what a look gives; `None` if it failed.
async fn looked<T>(looking: &mut Option<tokio::task::JoinHandle<T>>) -> Option<T> {
    match looking {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}

/// Returns where a master is now whose name does not lead to `at` any more.
///
/// A connection to an address that was taken from its machine may look well for hours.
async fn moved(master: MasterAddress, at: IpAddr) -> Option<IpAddr> {
    let host = master.host.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((host, master.port)).await.ok()?;
    new_home(at, found.map(|address| address.ip()))
}

fn new_home(at: IpAddr, found: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let found: Vec<IpAddr> = found.collect();
    if found.contains(&at) {
        return None;
    }
    let alike = found.iter().find(|ip| ip.is_ipv4() == at.is_ipv4());
    alike.or_else(|| found.first()).copied()
}

/// Tells whether another master takes us.
async fn is_back(node: Arc<Node>, address: MasterAddress) -> bool {
    let tie = Tie::new(&node, &address);
    let back = tie.master.sign_in().await.is_ok();
    tie.master.transport.close();
    back
}

fn subscription(tie: &Tie) -> Subscription {
    let settings = &tie.node.settings;
    let announced = tie.master.keys().map_or(4505, |keys| keys.publish_port);
    let mut subscription = Subscription::everything(settings.publish_port(announced));
    if settings.zmq_filtering && settings.kind == Kind::ZeroMq {
        let own = halite_crypt::Hash::Sha1.hex(settings.id.as_bytes());
        subscription.topics = vec!["broadcast".into(), own.into()];
    }
    subscription
}

/// Brings the pillar; without one no job would be right, nor without the device of a proxy minion.
async fn prepare(tie: &Arc<Tie>) {
    loop {
        match tie.load_pillar().await {
            Ok(()) if super::proxy::begin(&tie.node, Ground::Tie(Arc::clone(tie))).await => {
                return tie.is_settled();
            }
            // The minion ends.
            Ok(()) => return std::future::pending().await,
            Err(AskError::SignIn(error)) if told(tie, &error).await => {
                return std::future::pending().await;
            }
            Err(error) => tracing::error!("no pillar from {}: {error}", tie.master.address.name),
        }
        sleep(Duration::from_secs(1) + Duration::from_secs(4).mul_f64(random_part())).await;
    }
}

/// Fires the start events.
fn announce(tie: &Arc<Tie>) {
    let tie = Arc::clone(tie);
    tie.node.handle.clone().spawn(async move {
        let settings = &tie.node.settings;
        let id = &settings.id;
        let now = jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
        let text = format!("Minion {id} started at {now}");
        let tags = [
            settings.legacy_start_events.then(|| "minion_start".to_owned()),
            Some(format!("salt/minion/{id}/start")),
        ];
        for tag in tags.into_iter().flatten() {
            let load = event_load(&tag, text.as_str().into(), None);
            let wanted = &settings.start_event_grains;
            if !wanted.is_empty() {
                let grains = &tie.node.grains;
                let pick =
                    |name: &halite_value::SmolStr| Some((name.clone(), grains.get(name.as_str())?));
                let picked: Dict = wanted.iter().filter_map(pick).collect();
                load.insert("grains", picked);
            }
            if let Err(error) = tie.master.ask(&load).await {
                tracing::warn!("the event {tag} did not reach the master: {error}");
            }
        }
    });
}

/// Signs in after a random while (`random_reauth_delay`): the master has told everybody at once.
/// What comes under the new key meanwhile makes us sign in at once.
fn sign_in_later(tie: Arc<Tie>) {
    let known = tie.master.keys();
    tie.node.handle.clone().spawn(async move {
        sleep(tie.node.settings.reauth_delay.mul_f64(random_part())).await;
        if let Err(error) = tie.master.sign_in_unless_done(known.as_ref()).await
            && !told(&tie, &error).await
        {
            ask_again(&tie);
        }
    });
}

/// Goes on asking to be let in, beside what is served: somebody has deleted our key, and may accept
/// it again.
fn ask_again(tie: &Arc<Tie>) {
    if tie.asking.swap(true, Ordering::AcqRel) {
        return;
    }
    let tie = Arc::clone(tie);
    tie.node.handle.clone().spawn(async move {
        let settings = &tie.node.settings;
        let known = tie.master.keys();
        let mut wait = settings.acceptance_wait;
        let is_in = loop {
            sleep(wait.max(Duration::from_millis(100))).await;
            match tie.master.sign_in_unless_done(known.as_ref()).await {
                Ok(()) => break true,
                Err(SignInError::Link(LinkError::Closed)) => break false,
                Err(error) if told(&tie, &error).await => break false,
                Err(_) if wait < settings.acceptance_wait_max => wait += settings.acceptance_wait,
                Err(_) => {}
            }
        };
        tie.asking.store(false, Ordering::Release);
        if is_in {
            identify(&tie);
            tie.node.reachable.notify_waiters();
            announce(&tie);
        }
    });
}

/// Says on a tcp connection who we are; others know by the session.
fn identify(tie: &Tie) {
    if tie.node.settings.kind == Kind::Tcp
        && let Some(frame) = tie.master.identification()
    {
        tie.master.transport.identify(frame);
    }
}

struct Serving<'a> {
    tie: &'a Arc<Tie>,
    up: Option<Linked>,
    was_up: bool,
    /// Where the master was last.
    remote: Option<IpAddr>,
}

impl Serving<'_> {
    async fn handle(&mut self, event: Event) {
        let tie = self.tie;
        match event {
            Event::Publication(sealed) => match tie.master.open(&sealed).await {
                Ok(Some(load)) => tie.receive(&load),
                Ok(None) => {}
                Err(AskError::SignIn(error)) => {
                    if !told(tie, &error).await {
                        ask_again(tie);
                    }
                }
                Err(error) => tracing::warn!("a publication cannot be read: {error}"),
            },
            Event::Connected(linked) => self.connected(linked).await,
            Event::Disconnected(why) => {
                tracing::warn!("the connection to {} was lost: {why}", tie.master.address.name);
                self.up = None;
                let data = entries! { "master" => &tie.master.address.name };
                tie.node.bus.fire("__master_disconnected", &data);
            }
            Event::Notice(body) => match Notice::decode(&body) {
                Ok(Notice::SignIn) => sign_in_later(Arc::clone(tie)),
                Ok(Notice::Key(sealed)) => tie.master.take_key(&sealed),
                _ => {}
            },
        }
    }

    /// Tells that the master is elsewhere now.
    fn is_at(&mut self, new: IpAddr) {
        if let Some(old) = self.remote.replace(new)
            && old != new
        {
            tracing::info!("Master ip address changed from {old} to {new}");
        }
    }

    async fn connected(&mut self, linked: Linked) {
        let tie = self.tie;
        if let Some(remote) = linked.remote {
            self.is_at(remote.ip());
        }
        let again = std::mem::replace(&mut self.was_up, true);
        self.up = Some(linked);
        let settings = &tie.node.settings;
        let needs_sign_in = match settings.kind {
            _ if linked.extended => tie.master.connection() != linked.connection,
            Kind::Tcp => again,
            _ => false,
        };
        // A master knows us by our session, on any connection: RSA only if it does not.
        let resumed =
            needs_sign_in && linked.extended && tie.master.resume(linked.connection).await;
        if needs_sign_in
            && !resumed
            && let Err(error) = tie.master.sign_in().await
            && !told(tie, &error).await
        {
            ask_again(tie);
        }
        identify(tie);
        tie.node.reachable.notify_waiters();
        let data = entries! { "master" => &tie.master.address.name };
        tie.node.bus.fire("__master_connected", &data);
        if again {
            tracing::info!("connected to {} again", tie.master.address.name);
            announce(tie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_has_moved_when_its_name_leads_elsewhere() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let check = |at, found: &[&str], expected: Option<&str>| {
            assert_eq!(new_home(ip(at), found.iter().map(|text| ip(text))), expected.map(ip));
        };
        check("10.0.0.1", &["10.0.0.1"], None);
        check("10.0.0.1", &["10.0.0.2", "10.0.0.1"], None);
        check("10.0.0.1", &["::1", "10.0.0.2"], Some("10.0.0.2"));
        check("10.0.0.1", &["::1"], Some("::1"));
        check("10.0.0.1", &[], None);
    }
}
