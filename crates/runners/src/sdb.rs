//! `sdb`: values kept elsewhere, named `sdb://profile/key`, as the master's configuration has them.

use halite_spec::{Call, Cx, Result, function, module};
use halite_value::Value;

module! {
    /// Values kept elsewhere.
    "sdb": get, set, delete, get_or_set_hash,
}

/// Return a value; what is no address is returned as it is.
///
/// ```console
/// $ salt-run sdb.get sdb://vault/password
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
) -> Result<Value> {
    cx.call("sdb.get", Call::of([Value::from(uri)]))
}

/// Keep a value.
///
/// ```console
/// $ salt-run sdb.set sdb://vault/password s3cret
/// ```
#[function]
pub fn set(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
    /// The value.
    value: Value,
) -> Result<Value> {
    cx.call("sdb.set", Call::of([Value::from(uri), value]))
}

/// Forget a value.
///
/// ```console
/// $ salt-run sdb.delete sdb://vault/password
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
) -> Result<Value> {
    cx.call("sdb.delete", Call::of([Value::from(uri)]))
}

/// Return a value, or make one by chance and keep it.
///
/// ```console
/// $ salt-run sdb.get_or_set_hash sdb://vault/SECRET_KEY 50
/// ```
#[function]
pub fn get_or_set_hash(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
    /// How long.
    #[default(8)]
    length: u64,
    /// Of which characters.
    #[default("abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)".to_owned())]
    chars: String,
) -> Result<Value> {
    cx.call("sdb.get_or_set_hash", Call::of([Value::from(uri), length.into(), chars.into()]))
}
