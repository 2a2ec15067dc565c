//! `key`: fingerprints of this minion's key and of its master's.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, module};

use crate::hashutil::Kind;

module! {
    /// Fingerprints of this minion's key and of its master's.
    "key": finger, finger_master,
}

/// Of a key file: the hash of what stands between its first and its last line.
fn fingerprint(cx: &Cx, file: &str, hash_type: Option<String>) -> Result<String> {
    let kind = hash_type.or_else(|| cx.opt_str("hash_type").map(Into::into));
    let kind = kind.unwrap_or_else(|| "sha256".to_owned());
    let kind =
        Kind::named(&kind).ok_or_else(|| Error::invalid(format!("Invalid hash type '{kind}'")))?;
    let folder = cx.opt_str("pki_dir").unwrap_or_default();
    let path = Path::new(folder.as_str()).join(file);
    let Some(text) = cx.host.read_text_if_there(&path)? else { return Ok(String::new()) };
    Ok(of_pem(&text, kind))
}

fn of_pem(text: &str, kind: Kind) -> String {
    let body: String = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("-----"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let digits = kind.of(body.as_bytes());
    let pairs: Vec<&str> =
        (0..digits.len()).step_by(2).filter_map(|at| digits.get(at..at + 2)).collect();
    pairs.join(":")
}

/// Return the fingerprint of this minion's key; empty when it has none.
///
/// ```console
/// $ salt web1 key.finger
/// ```
#[function]
pub fn finger(
    cx: &Cx,
    /// The kind of hash; that of the configuration if not given.
    hash_type: Option<String>,
) -> Result<String> {
    fingerprint(cx, "minion.pub", hash_type)
}

/// Return the fingerprint of the master's key, as this minion knows it; empty when it does not.
///
/// ```console
/// $ salt web1 key.finger_master
/// ```
#[function]
pub fn finger_master(
    cx: &Cx,
    /// The kind of hash; that of the configuration if not given.
    hash_type: Option<String>,
) -> Result<String> {
    fingerprint(cx, "minion_master.pub", hash_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_leaves_the_frame_out() {
        let text = "-----BEGIN PUBLIC KEY-----\nYWJj\nZGVm\n-----END PUBLIC KEY-----\n";
        let expected = Kind::Md5.of(b"YWJj\nZGVm\n");
        assert_eq!(of_pem(text, Kind::Md5).replace(':', ""), expected);
    }
}
