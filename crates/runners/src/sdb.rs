//! `sdb`: values kept elsewhere, as the master sees them.

use halite_modules::sdb;
use halite_spec::{Cx, Result, function, module};
use halite_value::Value;

module! {
    /// Values kept elsewhere.
    "sdb": get, set, delete, get_or_set_hash,
}

/// Return a value; what is no address is returned as it is.
///
/// ```console
/// $ salt-run sdb.get sdb://shop/colour
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
) -> Result<Value> {
    sdb::get(cx, uri, false)
}

/// Keep a value.
///
/// ```console
/// $ salt-run sdb.set sdb://shop/colour blue
/// ```
#[function]
pub fn set(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
    /// The value.
    value: Value,
) -> Result<Value> {
    sdb::set(cx, uri, value)
}

/// Forget a value.
///
/// ```console
/// $ salt-run sdb.delete sdb://shop/colour
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// `sdb://profile/key`.
    uri: String,
) -> Result<Value> {
    sdb::delete(cx, uri)
}

/// Return a value, or make one by chance and keep it.
///
/// ```console
/// $ salt-run sdb.get_or_set_hash sdb://mymemcached/SECRET_KEY 50
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
    sdb::get_or_set_hash(cx, uri, length, chars)
}
