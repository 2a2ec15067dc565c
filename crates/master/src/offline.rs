//! Jobs that wait for minions that are not connected.
//!
//! Salt's jobs reach who listens, and nobody else. A job with a time to live (`ttl` seconds, from
//! `salt --queue-offline` or the option `halite: {job_ttl: …}`) waits for those it did not reach: when one
//! of them is connected again in time it gets the job, once, in the order the jobs were given. What
//! was not fetched in time is recorded as lost. The queue is in the store: it survives a restart.
//!
//! Only minions whose connection has a name can be waited for; a genuine minion on ZeroMQ gets a job
//! or does not, and nobody knows.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use halite_store::{Op, State, Store};
use halite_transport::Delivery;
use halite_value::{Dict, SmolStr, Value, entries};
use halite_wire::Publication;
use parking_lot::Mutex;

use crate::{Error, Master, blocking, publish};

const BANK: &str = "queue";
/// Jobs that wait for one minion; the oldest give way.
const MOST: usize = 1000;

struct Waiting {
    expires: i64,
    publication: Dict,
}

/// What waits, by minion and job.
#[derive(Default)]
pub(crate) struct Offline(Mutex<HashMap<SmolStr, BTreeMap<SmolStr, Waiting>>>);

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn key(id: &str, jid: &str) -> String {
    format!("{id}/{jid}")
}

impl Offline {
    /// Brings back what was waiting when the master ended. Blocking.
    pub(crate) fn load(store: &dyn Store) -> Result<Self, Error> {
        let mut all: HashMap<SmolStr, BTreeMap<SmolStr, Waiting>> = HashMap::new();
        for (key, entry) in store.all(BANK)? {
            let Some((id, jid)) = key.rsplit_once('/') else { continue };
            let expires = entry.get("expires").and_then(|at| at.as_int()).unwrap_or(0);
            let Some(Value::Dict(publication)) = entry.get("publication") else { continue };
            let waiting = Waiting { expires, publication };
            all.entry(id.into()).or_default().insert(jid.into(), waiting);
        }
        Ok(Self(Mutex::new(all)))
    }

    /// Has a job wait for minions; what is to be written comes back.
    fn add(&self, ids: &[SmolStr], jid: &str, expires: i64, publication: &Dict) -> Vec<Op> {
        let mut ops = Vec::new();
        let mut all = self.0.lock();
        for id in ids {
            let value = entries! { "expires" => expires, "publication" => publication };
            ops.push(Op::Put { bank: BANK, key: key(id, jid), value: value.into() });
            let state = State::Queued;
            ops.push(Op::State { jid: jid.into(), minion: id.to_string(), state });
            let own = all.entry(id.clone()).or_default();
            let waiting = Waiting { expires, publication: publication.clone() };
            own.insert(jid.into(), waiting);
            while own.len() > MOST {
                let Some((oldest, _)) = own.pop_first() else { break };
                ops.push(Op::Delete { bank: BANK, key: key(id, &oldest) });
                let (jid, minion) = (oldest.to_string(), id.to_string());
                ops.push(Op::State { jid, minion, state: State::Lost });
            }
        }
        ops
    }

    /// Takes what waits for a minion, oldest first.
    fn take(&self, id: &str) -> Vec<(SmolStr, Waiting)> {
        self.0.lock().remove(id).unwrap_or_default().into_iter().collect()
    }

    /// Takes everything that is too old: minion and job.
    fn expired(&self) -> Vec<(SmolStr, SmolStr)> {
        let (now, mut gone) = (now(), Vec::new());
        self.0.lock().retain(|id, jobs| {
            jobs.retain(|jid, waiting| {
                let keep = waiting.expires > now;
                if !keep {
                    gone.push((id.clone(), jid.clone()));
                }
                keep
            });
            !jobs.is_empty()
        });
        gone
    }
}

impl Master {
    /// Returns how long a job waits for who is not connected; `None`: not at all.
    pub(crate) fn time_to_live(&self, kwargs: &Dict) -> Option<i64> {
        let given = kwargs.get("ttl").or_else(|| self.settings.own("job_ttl"));
        let seconds = given.and_then(|seconds| seconds.to_int()).unwrap_or(0);
        (seconds > 0).then(|| seconds.min(30 * 86_400))
    }

    /// Has a job wait for minions that are not connected.
    pub(crate) async fn wait_for(
        &self,
        ids: &[SmolStr],
        publication: &Publication,
        seconds: i64,
    ) -> Result<(), Error> {
        let ops = self.offline.add(ids, &publication.jid, now() + seconds, &publication.write());
        self.store.write(ops).await?;
        Ok(())
    }

    /// A minion is connected: it gets what waited for it.
    pub(crate) fn catch_up(self: &Arc<Self>, id: &str) {
        let (held, jobs) = (self.arriving.take(id), self.offline.take(id));
        if held.is_empty() && jobs.is_empty() {
            return;
        }
        let (master, id) = (self.clone(), SmolStr::new(id));
        tokio::spawn(async move {
            let _ = blocking(move || {
                for publication in held {
                    let delivery = Delivery::ids([Arc::<str>::from(id.as_str())]).bound_only();
                    if let Err(error) = publish::send_to(&master, &publication, delivery) {
                        tracing::error!("The job {} did not reach {id}: {error}", publication.jid);
                    }
                }
                for (jid, waiting) in jobs {
                    master.deliver_late(&id, &jid, &waiting);
                }
            })
            .await;
        });
    }

    fn deliver_late(&self, id: &SmolStr, jid: &str, waiting: &Waiting) {
        let mut ops = vec![Op::Delete { bank: BANK, key: key(id, jid) }];
        let mut state = State::Lost;
        if waiting.expires > now()
            && let Ok(publication) = Publication::read(&waiting.publication)
        {
            self.jobs.resume(jid, waiting.publication.clone(), id);
            let delivery = Delivery::ids([Arc::<str>::from(id.as_str())]).bound_only();
            match publish::send_to(self, &publication, delivery) {
                Ok(()) => state = State::Delivered,
                Err(error) => tracing::error!("The job {jid} did not reach {id}: {error}"),
            }
        }
        ops.push(Op::State { jid: jid.into(), minion: id.to_string(), state });
        let _stored_later = self.store.write(ops);
    }

    /// Gives up who signed in and never came.
    pub(crate) fn give_up_arriving(&self, ids: Vec<SmolStr>) {
        for id in ids {
            // It may have been there all the time, on another connection.
            if self.hub.is_connected(&id) {
                continue;
            }
            let lost = |jid: SmolStr| Op::State {
                jid: jid.to_string(),
                minion: id.to_string(),
                state: State::Lost,
            };
            let jids = self.jobs.lost(&id, "it signed in and did not come");
            let _stored_later = self.store.write(jids.into_iter().map(lost).collect());
        }
    }

    /// Gives up what waited too long.
    pub(crate) fn expire_waiting(&self) {
        let mut ops = Vec::new();
        for (id, jid) in self.offline.expired() {
            tracing::info!("The job {jid} waited in vain for {id}");
            ops.push(Op::Delete { bank: BANK, key: key(&id, &jid) });
            let (jid, minion) = (jid.to_string(), id.to_string());
            ops.push(Op::State { jid, minion, state: State::Lost });
        }
        if !ops.is_empty() {
            let _stored_later = self.store.write(ops);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_once_and_not_for_ever() {
        let offline = Offline::default();
        let ids: Vec<SmolStr> = vec!["a".into(), "b".into()];
        let load = Dict::new();
        assert_eq!(offline.add(&ids, "2", now() + 100, &load).len(), 4);
        offline.add(&ids[..1], "1", now() + 100, &load);
        offline.add(&ids[1..], "0", now() - 1, &load);
        assert_eq!(offline.expired(), [("b".into(), "0".into())]);
        let jids = |id: &str| -> Vec<SmolStr> {
            offline.take(id).into_iter().map(|(jid, _)| jid).collect()
        };
        assert_eq!(jids("a"), ["1", "2"]);
        assert!(jids("a").is_empty());
        assert_eq!(jids("b"), ["2"]);
    }

    #[test]
    fn the_oldest_give_way() {
        let offline = Offline::default();
        for jid in 0..MOST + 5 {
            offline.add(&["a".into()], &format!("{jid:020}"), now() + 100, &Dict::new());
        }
        let left = offline.take("a");
        assert_eq!((left.len(), left[0].0.as_str()), (MOST, "00000000000000000005"));
    }
}
