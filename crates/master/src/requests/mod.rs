//! What minions ask, one handler each.
//!
//! Who asks is `Opened::id`, proven. A version 2 minion may ask a few things without proof: files
//! and options (which every accepted minion may see), and its pillar, which is sealed for the key
//! of the id it names. Everything else needs a proven id.

mod events;
mod mine;
mod peer;
pub(crate) mod pillar;
mod receive;

use std::sync::Arc;

use halite_store::Op;
use halite_value::{Dict, Value, dict, entries};
use halite_wire::{MinionId, MinionRequest};

use crate::{Counters, Error, Master, SERVING, blocking, brief, returns, service::Opened};

/// Tells of a command that does not exist. Anybody can send one, so little of it is shown.
pub(crate) fn not_exposed(command: &str) {
    let shown: String = command.chars().take(100).flat_map(char::escape_debug).collect();
    tracing::error!("Requested method not exposed: {shown}");
}

/// Answers a request.
pub(crate) async fn answer(master: &Arc<Master>, opened: Opened) -> Result<Option<Vec<u8>>, Error> {
    let request = match MinionRequest::read(&opened.load) {
        Ok(request) => request,
        Err(error) => {
            Counters::count(&master.counters.unknown_commands);
            match &error {
                halite_wire::Error::Unknown(command) => not_exposed(command),
                _ => tracing::debug!("{:?} asked what it cannot: {error}", opened.id.as_deref()),
            }
            let nothing = match error {
                halite_wire::Error::Unknown(_) => Value::dict(),
                // Salt: an exception inside a command.
                _ => "".into(),
            };
            return opened.seal(&nothing).map(Some);
        }
    };
    if let MinionRequest::Pillar { .. } = request {
        return pillar::answer(master, opened, request).await.map(Some);
    }
    let Some(id) = opened.id.clone() else {
        let reply = match file_command(&request) {
            Some(command) => serve(master, command, &opened.load).await?,
            None => match request {
                MinionRequest::MasterOpts { env_only } => master_opts(master, env_only).await?,
                MinionRequest::MasterTops { .. } => Value::dict(),
                _ => {
                    Counters::count(&master.counters.impersonations);
                    Value::dict()
                }
            },
        };
        return opened.seal(&reply).map(Some);
    };
    let reply = match handle(master, &id, request, &opened).await {
        Ok(reply) => reply,
        Err(Error::Unanswered) => return Ok(None),
        Err(error) => {
            tracing::error!("A request of {id} failed: {error}");
            "".into()
        }
    };
    opened.seal(&reply).map(Some)
}

async fn handle(
    master: &Arc<Master>,
    id: &MinionId,
    request: MinionRequest,
    opened: &Opened,
) -> Result<Value, Error> {
    if let Some(command) = file_command(&request) {
        return serve(master, command, &opened.load).await;
    }
    let owner = master.clone();
    let sender = id.clone();
    Ok(match request {
        MinionRequest::Return(ret) => {
            let load = opened.load.clone();
            if returns::take(master, id, &ret, load).await? { Value::Null } else { false.into() }
        }
        MinionRequest::Returns(all) => {
            returns::take_all(master, id, all, opened.load.get("ts")).await?;
            Value::Null
        }
        MinionRequest::SyndicReturn { load } => {
            returns::take_syndic(master, id, &load).await?;
            Value::Null
        }
        MinionRequest::Event { load } => {
            events::take_in_turn(master, id, &load).await;
            Value::Null
        }
        MinionRequest::MasterOpts { env_only } => master_opts(master, env_only).await?,
        MinionRequest::MasterTops { opts } => {
            if !master.settings.opts.get("master_tops").is_some_and(|tops| tops.truthy()) {
                return Ok(Value::dict());
            }
            let opts = opts.shallow_copy();
            // Whom it is for is not for the minion to say.
            opts.insert("id", id.as_str());
            blocking(move || owner.runners.clone().tops(&owner, &opts)).await?.into()
        }
        MinionRequest::FileReceive { path, offset, size, data } => {
            brief(&SERVING, move || receive::take(&owner, &sender, &path, offset, size, &data))
                .await?
                .into()
        }
        MinionRequest::Mine { data, clear } => {
            mine::put(master, id, &data, clear).await?;
            true.into()
        }
        MinionRequest::MineGet { tgt, tgt_type, functions } => {
            brief(&SERVING, move || mine::get(&owner, &sender, &tgt, &tgt_type, &functions))
                .await??
        }
        MinionRequest::MineDelete { function } => {
            let op = Op::MineDelete { minion: id.to_string(), function: function.to_string() };
            master.store.write(vec![op]).await?;
            true.into()
        }
        MinionRequest::MineFlush => {
            let op = Op::Mine { minion: id.to_string(), entries: Vec::new(), clear: true };
            master.store.write(vec![op]).await?;
            true.into()
        }
        MinionRequest::RegisterResources { load } => {
            register(master, id, &load);
            true.into()
        }
        MinionRequest::RevokeAuth { preserve_cache } => {
            if !master.settings.opts.bool("allow_minion_key_revoke") {
                tracing::warn!("Minion {id} requested key revoke, but it is not allowed here");
                return Ok(opened.load.clone().into());
            }
            let forget = !preserve_cache && !master.settings.opts.bool("preserve_minion_cache");
            let gone = blocking(move || owner.revoke(&sender, forget)).await?;
            gone?.into()
        }
        MinionRequest::Publish { load } => peer::publish(master, id, &load).await?,
        MinionRequest::PublishReturn { jid } => {
            blocking(move || peer::returns(&owner, &sender, &jid)).await??
        }
        MinionRequest::PublishAndWait { load } => peer::publish_and_wait(master, id, &load).await?,
        MinionRequest::Runner { function, args, load } => {
            peer::runner(master, id, &function, args, &load).await?
        }
        // Dealt with before.
        MinionRequest::Pillar { .. }
        | MinionRequest::FileEnvs
        | MinionRequest::FileList(_)
        | MinionRequest::FileListEmptyDirs(_)
        | MinionRequest::DirList(_)
        | MinionRequest::SymlinkList(_)
        | MinionRequest::FileFind(_)
        | MinionRequest::FileHash(_)
        | MinionRequest::FileHashAndStat(_)
        | MinionRequest::ServeFile { .. } => Value::dict(),
    })
}

/// Returns the file server's name for a request; `None` if it is none of its.
fn file_command(request: &MinionRequest) -> Option<&'static str> {
    Some(match request {
        MinionRequest::FileEnvs => "_file_envs",
        MinionRequest::FileList(_) => "_file_list",
        MinionRequest::FileListEmptyDirs(_) => "_file_list_emptydirs",
        MinionRequest::DirList(_) => "_dir_list",
        MinionRequest::SymlinkList(_) => "_symlink_list",
        MinionRequest::FileFind(_) => "_file_find",
        MinionRequest::FileHash(_) => "_file_hash",
        MinionRequest::FileHashAndStat(_) => "_file_hash_and_stat",
        MinionRequest::ServeFile { .. } => "_serve_file",
        _ => return None,
    })
}

async fn serve(master: &Arc<Master>, command: &'static str, load: &Dict) -> Result<Value, Error> {
    let (files, load) = (master.files.clone(), Value::from(load));
    let answer = brief(&SERVING, move || files.answer(command, &load)).await?;
    match answer {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Error::Other(error.to_string())),
        None => Ok(Value::dict()),
    }
}

async fn master_opts(master: &Arc<Master>, env_only: bool) -> Result<Value, Error> {
    let files = master.files.clone();
    let envs = brief(&SERVING, move || files.envs()).await?;
    let envs = envs.map_err(|error| Error::Other(error.to_string()))?;
    let opts = &master.settings.opts;
    let roots: Dict = envs.into_iter().map(|env| (env, Value::from(Vec::<Value>::new()))).collect();
    let reply = entries! { "file_roots" => roots };
    let mut names = vec!["top_file_merging_strategy", "env_order", "default_top"];
    if !env_only {
        names.extend([
            "renderer",
            "failhard",
            "state_top",
            "state_top_saltenv",
            "nodegroups",
            "state_auto_order",
            "state_events",
            "state_aggregate",
            "jinja_env",
            "jinja_sls_env",
            "jinja_lstrip_blocks",
            "jinja_trim_blocks",
        ]);
    }
    for name in names {
        reply.insert(name, opts.get(name));
    }
    Ok(reply.into())
}

/// Remembers what a minion manages besides itself.
fn register(master: &Master, id: &MinionId, load: &Dict) {
    let Some(Value::Dict(resources)) = load.get("resources") else { return };
    master.index.write().set_resources(id, Some(resources.clone()));
    let put = Op::Put { bank: "resources", key: id.to_string(), value: resources.into() };
    let _stored_later = master.store.write(vec![put]);
    let refreshed: Value = dict! { "Resource cache refresh" => id };
    if let Value::Dict(data) = refreshed {
        master.bus.fire(format!("resource/refresh/{id}"), data);
    }
}
