//! What minions may ask of each other through the master (`peer`, `peer_run`).

use std::{sync::Arc, time::Duration};

use halite_store::Op;
use halite_target::Regex;
use halite_value::{Dict, SmolStr, Value, dict, entries};
use halite_wire::{Jid, MinionId};

use crate::{
    Error, Master,
    acl::{self, Asked},
    blocking,
    bus::Item,
    publish::{self, Rights, Wish},
    runners::Call,
};

fn nobody() -> Value {
    Value::dict()
}

/// Returns the permissions of a minion under `peer` or `peer_run`.
fn permissions(master: &Master, option: &str, id: &MinionId) -> Vec<Value> {
    master
        .settings
        .opts
        .dict(option)
        .iter_matching(id)
        .flat_map(|entries| entries.items_of_sequence().unwrap_or_else(|| vec![entries]))
        .collect()
}

trait Matching {
    fn iter_matching(&self, id: &MinionId) -> impl Iterator<Item = Value>;
}

impl Matching for Dict {
    fn iter_matching(&self, id: &MinionId) -> impl Iterator<Item = Value> {
        self.into_iter().filter_map(move |(pattern, entries)| {
            let fits = Regex::new(&pattern.to_str()).is_ok_and(|regex| regex.matches(id));
            fits.then_some(entries)
        })
    }
}

fn wish(id: &MinionId, load: &Dict) -> Option<Wish> {
    let text = |name: &str, default: &str| match load.get(name) {
        Some(Value::Str(text)) => text,
        _ => default.into(),
    };
    let fun = load.get("fun")?;
    let arg = match load.get("arg")? {
        Value::Str(one) => vec![Value::Str(one)],
        other => other.items_of_sequence()?,
    };
    Some(Wish {
        tgt: load.get("tgt")?,
        tgt_type: text("tgt_type", "glob"),
        fun,
        arg,
        ret: text("ret", ""),
        jid: SmolStr::default(),
        user: format!("peer_{id}").into(),
        kwargs: Dict::new(),
        timeout: load.get("tmo").and_then(|tmo| tmo.to_int()),
        id: Some(id.as_str().into()),
        on_disk: false,
    })
}

/// Publishes for a minion; `None` if it may not.
async fn publish_for(
    master: &Arc<Master>,
    id: &MinionId,
    load: &Dict,
    follow: bool,
) -> Option<(halite_client::Published, Option<Arc<crate::bus::Queue<halite_client::Progress>>>)> {
    let wish = wish(id, load)?;
    let functions = wish.functions();
    // A job that publishes jobs would go round for ever.
    if functions.iter().any(|(name, _)| name.starts_with("publish.")) {
        return None;
    }
    let list = permissions(master, "peer", id);
    let (owner, asked) = (master.clone(), wish.clone());
    let allowed = blocking(move || {
        let search = halite_target::Search::default();
        let exact = match asked.tgt_type.as_str() {
            "pillar" | "pillar_pcre" => "pillar_exact",
            "compound" => "compound_pillar_exact",
            other => other,
        };
        let found = |tgt_type: &str| {
            owner
                .resolve(&asked.tgt, tgt_type, None, search)
                .map(|found| found.minions)
                .unwrap_or_default()
        };
        let (loose, strict) = (found(&asked.tgt_type), found(exact));
        // More by patterns than by whole values: it is guessing at pillar.
        let guesses = loose.iter().any(|minion| !strict.contains(minion));
        let asked = Asked { functions, minions: &loose };
        let resolve = |target: &str| {
            owner
                .resolve(&target.into(), "compound", None, search)
                .map(|found| found.minions)
                .unwrap_or_default()
        };
        !guesses && acl::allows(&list, &asked, &resolve)
    })
    .await
    .ok()?;
    if !allowed {
        tracing::warn!(
            "The minion {id} is not authorized to execute {}",
            load.get("fun").unwrap_or_default().to_str()
        );
        return None;
    }
    let (done, queue) = publish::publish(master, wish, Rights::All, follow).await.ok()?;
    if !done.published.jid.is_empty() {
        let owner = Op::Put {
            bank: "publish_auth",
            key: done.published.jid.to_string(),
            value: id.as_str().into(),
        };
        let _stored_later = master.store.write(vec![owner]);
    }
    Some((done.published, queue))
}

/// Answers `minion_pub`.
pub(crate) async fn publish(
    master: &Arc<Master>,
    id: &MinionId,
    load: &Dict,
) -> Result<Value, Error> {
    let Some((published, _)) = publish_for(master, id, load, false).await else {
        return Ok(nobody());
    };
    if published.jid.is_empty() {
        return Ok(dict! { "jid" => 0, "minions" => Vec::<Value>::new() });
    }
    Ok(dict! { "jid" => &published.jid, "minions" => Value::list(&published.minions) })
}

/// Answers `pub_ret`: the returns of a job that this minion published. Blocking.
pub(crate) fn returns(master: &Master, id: &MinionId, jid: &Jid) -> Result<Value, Error> {
    let owner = master.store.get("publish_auth", jid)?;
    if owner.is_none_or(|owner| owner != *id.as_str()) {
        return Ok(nobody());
    }
    let found: Dict = master
        .store
        .returns(jid)?
        .into_iter()
        .map(|(minion, load)| {
            let entry = entries! { "ret" => load.get("return") };
            if let Some(out) = load.get("out") {
                entry.insert("out", out);
            }
            (minion, Value::from(entry))
        })
        .collect();
    Ok(found.into())
}

/// Answers `minion_publish`: publishes and collects for a while.
pub(crate) async fn publish_and_wait(
    master: &Arc<Master>,
    id: &MinionId,
    load: &Dict,
) -> Result<Value, Error> {
    let Some((published, Some(queue))) = publish_for(master, id, load, true).await else {
        return Ok(nobody());
    };
    let seconds = load.get("timeout").or_else(|| load.get("tmo")).and_then(|tmo| tmo.to_int());
    let seconds = u64::try_from(seconds.unwrap_or(5)).unwrap_or(5).min(3600);
    let is_full = load.get("form").is_some_and(|form| form == *"full");
    let found = Dict::new();
    if is_full {
        found.insert("__jid__", &published.jid);
    }
    let collect = async {
        while let Some(item) = queue.next().await {
            match item {
                Item::One(halite_client::Progress::Returned(load)) => {
                    let minion = load.get("id").unwrap_or_default().to_str();
                    let value = if is_full {
                        dict! { "ret" => load.get("return"), "out" => load.get("out") }
                    } else {
                        load.get("return").unwrap_or_default()
                    };
                    found.insert(minion, value);
                }
                Item::One(halite_client::Progress::Done) => break,
                Item::One(_) | Item::Gap(_) => {}
            }
        }
    };
    // Who has not answered by then is left out, as in Salt.
    let _ = tokio::time::timeout(Duration::from_secs(seconds), collect).await;
    Ok(found.into())
}

/// Answers `minion_runner`.
pub(crate) async fn runner(
    master: &Arc<Master>,
    id: &MinionId,
    function: &str,
    args: Vec<Value>,
    load: &Dict,
) -> Result<Value, Error> {
    let allowed = permissions(master, "peer_run", id)
        .iter()
        .any(|pattern| Regex::new(&pattern.to_str()).is_ok_and(|regex| regex.matches(function)));
    if !allowed {
        tracing::warn!("The minion {id} may not run {function}");
        return Ok(nobody());
    }
    let call = halite_wire::Args::read(&args);
    let kwargs = match load.get("kwargs") {
        Some(Value::Dict(kwargs)) => kwargs,
        _ => Dict::new(),
    };
    kwargs.update(&call.kwargs);
    let call = Call {
        function: function.into(),
        args: call.args,
        kwargs,
        user: format!("peer_{id}").into(),
        jid: master.jobs.next_jid(),
    };
    let outcome = crate::runners::run(master, call).await;
    Ok(outcome.get("return").unwrap_or_default())
}
