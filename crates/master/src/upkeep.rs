//! What has to be done now and then: key rotation, presence, old jobs and tokens.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use halite_value::{SmolStr, Value, entries};
use halite_wire::Tag;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{Master, blocking, start};

/// How often the disk is looked at for what other programs left there.
const LOOK: Duration = Duration::from_secs(1);
/// When memory that starting needed is given back, and how often that of busy times is.
const STARTED: Duration = Duration::from_secs(4);
const AT_REST: Duration = Duration::from_secs(600);

impl Master {
    /// Somebody came or went.
    pub(crate) fn upkeep_presence(&self) {
        self.presence_changed.notify_one();
    }
}

/// Runs for as long as the master does.
pub(crate) async fn run(master: Arc<Master>) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let every = master.settings.loop_interval;
    let mut next = Instant::now() + every;
    let mut rest = Instant::now() + STARTED;
    let mut present = BTreeSet::new();
    let owner = master.clone();
    let _ = blocking(move || owner.look_at_roots()).await;
    loop {
        tokio::select! {
            _ = look.tick() => {}
            () = master.presence_changed.notified() => tell_presence(&master, &mut present, false),
        }
        master.give_up_arriving(master.arriving.expired());
        let owner = master.clone();
        // A panic there was told by the runtime; the next round may do better.
        let _ = blocking(move || look_at_disk(&owner)).await;
        if Instant::now() >= rest {
            rest = Instant::now() + AT_REST;
            let _ = blocking(halite_host::give_back).await;
        }
        if Instant::now() >= next {
            next = Instant::now() + every;
            tell_presence(&master, &mut present, true);
            master.jobs.tidy();
            master.expire_waiting();
            let owner = master.clone();
            let tidying = move || {
                owner.tokens.tidy();
                owner.look_at_roots();
            };
            let _ = blocking(tidying).await;
            // An empty write makes an idle store look at what has grown old.
            drop(master.store.write(Vec::new()));
        }
    }
}

/// Sees what `salt-key` and others did to the files.
fn look_at_disk(master: &Master) {
    if start::takes_drop_file(&master.settings)
        && let Err(error) = master.rotate()
    {
        tracing::error!("The shared key was not changed: {error}");
    }
    if let Err(error) = master.sync_accepted() {
        tracing::error!("The accepted keys cannot be listed: {error}");
    }
}

/// Fires presence events, if they are wanted.
fn tell_presence(master: &Master, present: &mut BTreeSet<SmolStr>, is_regular: bool) {
    if !master.settings.opts.bool("presence_events") {
        return;
    }
    let now: BTreeSet<SmolStr> = master.presence.ids().into_iter().collect();
    if now != *present {
        let new = Value::list(now.difference(present));
        let lost = Value::list(present.difference(&now));
        master.fire(&Tag::PresenceChange, entries! { "new" => new, "lost" => lost });
    }
    if is_regular {
        master.fire(&Tag::Present, entries! { "present" => Value::list(&now) });
    }
    *present = now;
}
