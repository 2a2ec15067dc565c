//! `key`: the keys of minions, as `salt-key` manages them.

use std::path::Path;

use halite_client::Request;
use halite_crypt::PrivateKey;
use halite_keys::{Changed, Include, Keys, Match};
use halite_spec::{Cx, Error, Result, alias, function, module};
use halite_value::{Dict, Value, dict, entries};
use halite_wire::MinionId;

use crate::master;

module! {
    /// The keys of minions.
    "key": list, list_all, glob_match, name_match, accept, accept_dict, reject, reject_dict,
    delete, delete_dict, print, finger, finger_master, master_key_str, gen_pair, gen_accept, gen_keys,
    gen_signature,
}

alias! { name_match = glob_match }

fn failed(error: halite_keys::Error) -> Error {
    Error::failed(error.to_string())
}

fn keys(cx: &Cx) -> Keys {
    Keys::from_opts(&cx.opts)
}

/// Tells a running master, and asks it for a new session key where that is wanted.
fn done(cx: &Cx, changed: Changed, rotate: bool) -> Result<Dict> {
    // No master, nobody to tell.
    if let Ok(mut client) = master::connect(cx) {
        for event in &changed.events {
            let fire = Request::Fire { tag: "salt/key".into(), data: event.clone() };
            client.call(&fire).map_err(master::failed)?;
        }
    }
    if rotate && cx.opt_bool("rotate_aes_key") {
        let cachedir = cx.opt_str("cachedir").unwrap_or_default();
        halite_keys::request_rotation(Path::new(cachedir.as_str()), &cx.id(), None)
            .map_err(failed)?;
    }
    Ok(changed.keys)
}

/// Return the keys of one state: `accepted`, `pre`, `rejected`, `denied`, or `all`.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.list -d match=accepted
/// ```
#[function]
pub fn list(
    cx: &Cx,
    /// The state.
    r#match: String,
) -> Result<Dict> {
    keys(cx).list_status(&r#match).map_err(failed)
}

/// Return all keys by state, the master's own among them.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.list_all
/// ```
#[function]
pub fn list_all(cx: &Cx) -> Result<Dict> {
    keys(cx).all().map_err(failed)
}

/// Return the keys that match globs, by state.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.glob_match -d match='web*'
/// ```
#[function]
pub fn glob_match(
    cx: &Cx,
    /// Globs, with commas or as a list.
    r#match: Value,
) -> Result<Dict> {
    keys(cx).matching(&Match::of(&r#match)).map_err(failed)
}

/// Accept waiting keys.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.accept -d match=web1
/// ```
#[function]
pub fn accept(
    cx: &Cx,
    /// Globs, with commas or as a list.
    r#match: Value,
    /// Consider rejected keys too.
    #[default(false)]
    include_rejected: bool,
    /// Consider denied keys too.
    #[default(false)]
    include_denied: bool,
) -> Result<Dict> {
    let include = Include { rejected: include_rejected, denied: include_denied, accepted: false };
    let changed = keys(cx).accept(&Match::of(&r#match), include).map_err(failed)?;
    done(cx, changed, false)
}

/// Accept exactly these keys, given by state.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.accept_dict -d match='{"minions_pre": ["web1"]}'
/// ```
#[function]
pub fn accept_dict(
    cx: &Cx,
    /// The keys.
    r#match: Dict,
    /// Consider rejected keys too.
    #[default(false)]
    include_rejected: bool,
    /// Consider denied keys too.
    #[default(false)]
    include_denied: bool,
) -> Result<Dict> {
    accept(cx, r#match.into(), include_rejected, include_denied)
}

/// Reject waiting keys.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.reject -d match=web1
/// ```
#[function]
pub fn reject(
    cx: &Cx,
    /// Globs, with commas or as a list.
    r#match: Value,
    /// Consider accepted keys too.
    #[default(false)]
    include_accepted: bool,
    /// Consider denied keys too.
    #[default(false)]
    include_denied: bool,
) -> Result<Dict> {
    let include = Include { accepted: include_accepted, denied: include_denied, rejected: false };
    let changed = keys(cx).reject(&Match::of(&r#match), include).map_err(failed)?;
    done(cx, changed, true)
}

/// Reject exactly these keys, given by state.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.reject_dict -d match='{"minions_pre": ["web1"]}'
/// ```
#[function]
pub fn reject_dict(
    cx: &Cx,
    /// The keys.
    r#match: Dict,
    /// Consider accepted keys too.
    #[default(false)]
    include_accepted: bool,
    /// Consider denied keys too.
    #[default(false)]
    include_denied: bool,
) -> Result<Dict> {
    reject(cx, r#match.into(), include_accepted, include_denied)
}

/// Delete keys.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.delete -d match=web1
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// Globs, with commas or as a list.
    r#match: Value,
) -> Result<Dict> {
    let changed = keys(cx).delete(&Match::of(&r#match)).map_err(failed)?;
    done(cx, changed, true)
}

/// Delete exactly these keys, given by state.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.delete_dict -d match='{"minions": ["web1"]}'
/// ```
#[function]
pub fn delete_dict(
    cx: &Cx,
    /// The keys.
    r#match: Dict,
) -> Result<Dict> {
    delete(cx, r#match.into())
}

/// Return the texts of keys, by state.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.print -d match=web1
/// ```
#[function]
pub fn print(
    cx: &Cx,
    /// Globs, with commas or as a list.
    r#match: Value,
) -> Result<Dict> {
    keys(cx).texts(&Match::of(&r#match)).map_err(failed)
}

/// Return the fingerprints of keys, by state.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.finger -d match=web1
/// ```
#[function]
pub fn finger(
    cx: &Cx,
    /// Globs, with commas or as a list.
    r#match: Value,
    /// The hash.
    hash_type: Option<String>,
) -> Result<Dict> {
    let hash = hash_type.and_then(|hash| hash.parse().ok());
    keys(cx).fingers(&Match::of(&r#match), hash).map_err(failed)
}

/// Return the fingerprint of the master's key.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.finger_master
/// ```
#[function]
pub fn finger_master(
    cx: &Cx,
    /// The hash.
    hash_type: Option<String>,
) -> Result<Value> {
    let name = hash_type.or_else(|| cx.opt_str("hash_type").map(Into::into));
    let hash = name.and_then(|hash| hash.parse().ok()).unwrap_or_default();
    let folder = cx.opt_str("pki_dir").unwrap_or_default();
    let path = Path::new(folder.as_str()).join("master.pub");
    let text = cx.host.read(&path)?;
    let finger = halite_crypt::fingerprint(&text, hash);
    Ok(dict! { "local" => dict! { "master.pub" => finger } })
}

/// Return the text of the master's public key.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.master_key_str
/// ```
#[function]
pub fn master_key_str(cx: &Cx) -> Result<Value> {
    let id = cx.id();
    let name = format!("{}.pub", id.strip_suffix("_master").unwrap_or(&id));
    let folder = cx.opt_str("pki_dir").unwrap_or_default();
    let own = Path::new(folder.as_str()).join(&name);
    let path = if cx.host.is_file(&own)? { own } else { own.with_file_name("master.pub") };
    let text = String::from_utf8_lossy(&cx.host.read(&path)?).into_owned();
    Ok(dict! { "local" => dict! { name.as_str() => text } })
}

/// Make a pair of keys in a folder, and return its fingerprint.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.gen_keys -d keydir=/root/keys -d keyname=web1
/// ```
#[function]
pub fn gen_keys(
    cx: &Cx,
    /// The folder; the master's own if absent.
    keydir: Option<String>,
    /// The name of the pair.
    keyname: Option<String>,
    /// Its size in bits.
    keysize: Option<u64>,
    /// Whom the files belong to; not used.
    user: Option<String>,
) -> Result<String> {
    let _ = user;
    let name = keyname.ok_or_else(|| Error::invalid("keyname must be given"))?;
    if name.is_empty() || name.contains(['/', '\\', '\0']) || name.starts_with('.') {
        return Err(Error::invalid(format!("`{name}` cannot be the name of a pair of keys")));
    }
    let bits = keysize.and_then(|bits| u32::try_from(bits).ok()).unwrap_or(2048);
    let options = halite_crypt::KeyOptions { bits, ..halite_crypt::KeyOptions::default() };
    keys(cx).make_pair(keydir.as_deref().map(Path::new), &name, &options).map_err(failed)
}

/// Sign the master's public key, so that minions can check it.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.gen_signature -d priv= -d pub= -d signature_path= -d auto_create=True
/// ```
#[function]
pub fn gen_signature(
    cx: &Cx,
    /// The private key that signs; `master_sign.pem` if empty.
    r#priv: String,
    /// The public key to sign; the master's if empty.
    r#pub: String,
    /// The folder for the signature; the master's if empty.
    signature_path: String,
    /// Make the pair that signs, if it is missing.
    #[default(false)]
    auto_create: bool,
    /// The size of that pair in bits.
    keysize: Option<u64>,
) -> Result<Value> {
    let given = |text: &str| (!text.is_empty()).then(|| Path::new(text).to_owned());
    let (private, public, folder) = (given(&r#priv), given(&r#pub), given(&signature_path));
    let configured = cx.opt_str("master_pubkey_signature");
    let file_name = halite_keys::signature_file(configured.as_deref(), &cx.id());
    let sign_name = cx.opt_str("master_sign_key_name").unwrap_or_else(|| "master_sign".into());
    let passphrase = cx.opt_str("signing_key_pass").filter(|pass| !pass.is_empty());
    let algo = cx.opt_str("signing_algorithm").and_then(|algo| algo.parse().ok());
    let signed = keys(cx).sign(&halite_keys::Signature {
        private: private.as_deref(),
        public: public.as_deref(),
        folder: folder.as_deref(),
        auto_create,
        sign_name: &sign_name,
        passphrase: passphrase.as_deref(),
        bits: keysize.and_then(|bits| u32::try_from(bits).ok()).unwrap_or(2048),
        algo: algo.unwrap_or_default(),
        file_name: &file_name,
    });
    Ok(match signed.map_err(failed)? {
        Ok(new) => new.into(),
        Err(why) => why.into(),
    })
}

/// Make a pair of keys and return it; nothing is stored.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.gen
/// ```
#[function(name = "gen")]
pub fn gen_pair(
    _: &Cx,
    /// The minion it is for; not used.
    id_: Option<String>,
    /// Its size in bits.
    #[default(2048)]
    keysize: u64,
) -> Result<Dict> {
    let _ = id_;
    let bits = u32::try_from(keysize).unwrap_or(u32::MAX);
    let key = PrivateKey::generate(bits).map_err(|error| Error::failed(error.to_string()))?;
    let private = String::from_utf8_lossy(key.to_pem(None).expose()).into_owned();
    Ok(entries! { "priv" => private, "pub" => key.public().to_pem() })
}

/// Make a pair of keys for a minion, and accept it beforehand.
///
/// ```console
/// $ curl … -d client=wheel -d fun=key.gen_accept -d id_=web1
/// ```
#[function]
pub fn gen_accept(
    cx: &Cx,
    /// The minion.
    id_: String,
    /// Its size in bits.
    #[default(2048)]
    keysize: u64,
    /// Replace a key that is there.
    #[default(false)]
    force: bool,
) -> Result<Dict> {
    let id = MinionId::new(&id_).map_err(|error| Error::invalid(error.to_string()))?;
    let pair = gen_pair(cx, None, keysize)?;
    let text = pair.get("pub").unwrap_or_default().to_str();
    let stored = keys(cx).put_accepted(&id, &text, force).map_err(failed)?;
    Ok(if stored { pair } else { Dict::new() })
}
