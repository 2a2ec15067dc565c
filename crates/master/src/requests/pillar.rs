//! The pillar of a minion: its own, and nobody else's.
//!
//! The answer is sealed with a key of its own, which only the holder of the minion's private key can
//! read, and signed by the master together with the nonce of the question. A Halite minion may ask for
//! it under its session key instead: two RSA operations are most of what a pillar costs.

use std::sync::Arc;

use halite_crypt::{Crypticle, SessionKey};
use halite_value::{Dict, SmolStr, Value, dict, entries};
use halite_wire::{MinionId, MinionRequest, Tag};

use crate::{
    Error, Master, blocking, encode,
    service::Opened,
    settings::{enc_algo, sig_algo},
};

/// Whose pillar is wanted, and on what it depends.
#[derive(Clone, Debug)]
pub struct PillarRequest {
    pub id: MinionId,
    pub grains: Dict,
    pub saltenv: Option<SmolStr>,
    pub pillarenv: Option<SmolStr>,
    /// What the caller adds (`pillar=` of a state run).
    pub overrides: Dict,
    pub extra: Dict,
    /// An external source for this time only, if the master allows it.
    pub ext: Option<Dict>,
    pub clean_cache: bool,
}

/// Compiles pillar. Blocking, and called from many threads.
pub trait PillarSource: Send + Sync {
    /// Errors are part of the pillar (`_errors`), as in Salt; the pillar is always usable.
    fn compile(&self, request: &PillarRequest) -> Dict;

    /// Returns what [`PillarSource::compile`] would, if that is known without reading anything.
    fn known(&self, request: &PillarRequest) -> Option<Dict> {
        let _ = request;
        None
    }

    /// What was seen of files until now counts no more: who asks from now on may ask because they changed.
    fn look_again(&self) {}

    /// Forgets the pillar that is kept for a minion.
    fn forget(&self, id: &str) {
        let _ = id;
    }
}

/// A master without pillar.
pub struct EmptyPillar;

impl PillarSource for EmptyPillar {
    fn compile(&self, request: &PillarRequest) -> Dict {
        request.overrides.shallow_copy()
    }
}

/// Answers `_pillar`.
pub(crate) async fn answer(
    master: &Arc<Master>,
    opened: Opened,
    request: MinionRequest,
) -> Result<Vec<u8>, Error> {
    let MinionRequest::Pillar { grains, saltenv, pillarenv, overrides, extra, ext, clean_cache } =
        request
    else {
        return opened.seal(&Value::dict());
    };
    // Not proven (version 2): the answer is sealed for the id it names all the same.
    let is_proven = opened.id.is_some();
    let named = opened.load.get("id").map(|id| id.to_str()).unwrap_or_default();
    let Ok(id) = opened.id.clone().map_or_else(|| MinionId::new(&named), Ok) else {
        return opened.seal(&Value::dict());
    };
    grains.insert("id", &id);
    let wanted =
        PillarRequest { id, grains, saltenv, pillarenv, overrides, extra, ext, clean_cache };
    // Of thousands that ask at once most get what they had: no thread is needed for those, unless
    // there is RSA to be done.
    if opened.in_session()
        && let Some(pillar) = master.pillar.known(&wanted)
    {
        return reply(master, &opened, &wanted, is_proven, |_| pillar);
    }
    let permit = master.rendering.acquire().await;
    let owner = master.clone();
    let replied = blocking(move || {
        let compile = |request: &_| owner.pillar.compile(request);
        reply(&owner, &opened, &wanted, is_proven, compile)
    })
    .await?;
    drop(permit);
    replied
}

fn reply(
    master: &Master,
    opened: &Opened,
    request: &PillarRequest,
    is_proven: bool,
    compile: impl FnOnce(&PillarRequest) -> Dict,
) -> Result<Vec<u8>, Error> {
    let Some(accepted) = master.keys.accepted(&request.id) else {
        return opened.seal(&Value::dict());
    };
    let (Some(enc), Some(sig)) =
        (enc_algo(opened.enc_algo.as_ref()), sig_algo(opened.sig_algo.as_ref()))
    else {
        return opened.seal(&Value::dict());
    };
    let pillar = compile(request);
    if is_proven {
        master.remember(&request.id, request.grains.clone(), Some(pillar.clone()));
        if master.settings.opts.bool("minion_data_cache_events") {
            let data = entries! { "Minion data cache refresh" => &request.id };
            master.fire(&Tag::MinionRefresh(request.id.to_string()), data);
        }
    }
    if opened.in_session() {
        return opened.seal(&pillar.into());
    }
    let key = SessionKey::generate();
    let wrapped = Value::bytes(key.wrap(&accepted.key, enc)?);
    let crypticle = Crypticle::new(&key);
    let sealed = if opened.version < 2 {
        crypticle.seal(&encode(&pillar.into())?, None)
    } else {
        let nonce = opened.nonce.map(|nonce| SmolStr::new(nonce.as_str()));
        let data = encode(&dict! { "key" => &wrapped, "pillar" => pillar, "nonce" => nonce })?;
        let signature = Value::bytes(master.secrets.master.sign(sig, &data)?);
        let signed = dict! { "data" => Value::bytes(data), "sig" => signature };
        crypticle.seal(&encode(&signed)?, None)
    };
    encode(&dict! { "key" => wrapped, "pillar" => Value::bytes(sealed) })
}
