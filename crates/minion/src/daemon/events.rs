//! What the daemon does of its own accord: it listens to the local bus, pings, and looks
//! at its grains now and then.

use std::{sync::Arc, time::Duration};

use halite_host::{Cancel, Os};
use halite_spec::Job;
use halite_transport::ipc::Puller;
use halite_value::{Dict, Value};
use halite_wire::Event;
use tokio::time::sleep;

use super::{
    link::{SIGNAL, event_load},
    node::Node,
    options::Reader,
    pillar,
    tie::{self, Tie},
};

/// Hands on what local programs send, and acts on what is meant for the daemon.
pub(crate) async fn listen(node: Arc<Node>, mut puller: Puller) {
    while let Some(bytes) = puller.next().await {
        node.bus.pass_on(&bytes);
        match Event::decode(&bytes) {
            Ok(event) => act(&node, event),
            Err(error) => tracing::debug!("a local program sent no event: {error}"),
        }
    }
}

fn act(node: &Arc<Node>, event: Event) {
    let data = event.data;
    match event.tag.as_str() {
        "pillar_refresh" => refresh_pillar(node),
        // Loading modules anew collects the grains too.
        "grains_refresh" | "module_refresh" => {
            reload_python(node);
            refresh_grains(node, false);
            if data.get("notify").is_some_and(|notify| notify.truthy()) {
                let tag = "/salt/minion/minion_mod_refresh_complete";
                node.bus.fire(tag, &halite_value::entries! { "complete" => true });
            }
        }
        "beacons_refresh" | "matchers_refresh" => reload_python(node),
        "fire_master" => {
            for tie in node.ties() {
                pass_to_master(&tie, &data);
            }
        }
        "_minion_mine" => {
            for tie in node.ties() {
                send(&tie, data.shallow_copy(), "mine data");
            }
        }
        "manage_schedule" | "manage_beacons" => {
            // A beacon may be asked whether a configuration is right, which takes time.
            let (node, tag) = (Arc::clone(node), event.tag.clone());
            node.handle.clone().spawn_blocking(move || node.manage(tag.as_str(), &data));
        }
        SIGNAL => {
            let jid = data.get("jid").unwrap_or_default().to_str();
            let signal = data.get("signal").and_then(|signal| signal.to_int()).unwrap_or(15);
            node.jobs.end(&jid, i32::try_from(signal).unwrap_or(15));
        }
        _ => {}
    }
}

/// Another program of this machine may have brought new modules.
fn reload_python(node: &Arc<Node>) {
    if let Some(python) = node.rendering.python() {
        python.reload();
    }
}

fn pass_to_master(tie: &Arc<Tie>, data: &Dict) {
    let text = |name: &str| data.get(name).filter(Value::truthy).map(|value| value.to_str());
    let pretag = text("pretag");
    let load = match data.get("events").filter(Value::truthy) {
        Some(events) => {
            let load = Dict::new();
            load.insert("cmd", "_minion_event");
            load.insert("events", events);
            load.insert("pretag", pretag.map_or(Value::Null, Value::from));
            load
        }
        None => {
            let tag = text("tag").unwrap_or_default();
            event_load(&tag, data.get("data").unwrap_or_default(), pretag.as_deref())
        }
    };
    send(tie, load, "an event");
}

/// Sends to a master without waiting.
pub(super) fn send(tie: &Arc<Tie>, load: Dict, what: &'static str) {
    let tie = Arc::clone(tie);
    tie.node.handle.clone().spawn(async move {
        if let Err(error) = tie.master.ask(&load).await {
            tracing::warn!("{what} did not reach {}: {error}", tie::name_of(&tie));
        }
    });
}

fn refresh_pillar(node: &Arc<Node>) {
    for tie in node.ties() {
        node.handle.spawn(async move {
            if let Err(error) = tie.load_pillar().await {
                tracing::error!("Pillar data could not be refreshed: {error}");
                return;
            }
            let tag = "/salt/minion/minion_pillar_refresh_complete";
            tie.node.bus.fire(tag, &halite_value::entries! { "complete" => true });
        });
    }
}

fn refresh_grains(node: &Arc<Node>, only_if_changed: bool) {
    let node = Arc::clone(node);
    node.handle.clone().spawn(async move {
        let (opts, own) = (node.opts.clone(), Arc::clone(&node));
        let collecting = Arc::clone(&node);
        let collect = move || {
            let configured = match opts.get(pillar::CONFIGURED) {
                Some(Value::Dict(configured)) => configured,
                _ => Dict::new(),
            };
            let python = collecting.rendering.python();
            // A device may need functions to tell its grains.
            let ground = collecting.ground().filter(|_| collecting.device.is_some());
            let cx = ground.map(|ground| ground.cx(Job::default(), Cancel::new()));
            let users = python.as_deref().map(|python| (python, cx.as_ref()));
            pillar::grains(&Os::new(), &opts, &configured, users)
        };
        let Ok(grains) = tokio::task::spawn_blocking(collect).await else { return };
        let changed = Value::from(&grains) != Value::from(&own.grains);
        if changed || !only_if_changed {
            tie::replace(&own.grains, &grains);
            // The master learns of grains with the question for the pillar.
            refresh_pillar(&own);
        }
    });
}

/// Collects the grains again every `grains_refresh_every` minutes.
pub(crate) async fn watch_grains(node: Arc<Node>) {
    let minutes = Reader(node.opts.clone()).number("grains_refresh_every", 0.0);
    let Ok(every) = Duration::try_from_secs_f64(minutes * 60.0) else { return };
    if every.is_zero() {
        return;
    }
    loop {
        sleep(every).await;
        refresh_grains(&node, true);
    }
}

/// Fires `minion_ping` every `ping_interval` minutes.
pub(crate) async fn ping(tie: Arc<Tie>) {
    let Some(every) = tie.node.settings.ping_interval else { return };
    loop {
        sleep(every).await;
        tie.fire_later("minion_ping", "ping".into());
    }
}

/// Tells a Halite master now and then which jobs still run. Nothing is sent while none does.
pub(crate) async fn tell_running(tie: Arc<Tie>) {
    const EVERY: Duration = Duration::from_secs(30);
    loop {
        sleep(EVERY).await;
        tie.tell_running();
    }
}
