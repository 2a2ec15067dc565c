//! Reads GnuPG's lists of keys (`--with-colons`).
//!
//! A record is a line of fields; `pub`/`sec` begins a key, `sub`/`ssb` a key below it, and the
//! `fpr` and `uid` after them belong to what came last.

use halite_value::{Dict, List, Value};

/// What the letters of trust mean.
fn trust(letter: &str) -> &'static str {
    match letter {
        "e" => "Expired",
        "n" => "Not Trusted",
        "m" => "Marginally Trusted",
        "f" => "Fully Trusted",
        "u" => "Ultimately Trusted",
        "r" => "Revoked",
        "d" => "Disabled",
        _ => "Unknown",
    }
}

/// `2026-11-16` of seconds since 1970.
fn date(seconds: i64) -> String {
    // Days to a date, by the calendar that repeats every 400 years.
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// One record being read.
struct Record {
    keyid: String,
    uids: Vec<String>,
    fingerprint: Option<String>,
    expires: Option<i64>,
    created: Option<i64>,
    length: String,
    owner_trust: Option<String>,
    trust: String,
    subkeys: Vec<Record>,
}

impl Record {
    fn read(fields: &[&str], is_subkey: bool) -> Self {
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        Self {
            keyid: field(4).to_owned(),
            uids: Vec::new(),
            fingerprint: None,
            expires: field(6).parse().ok(),
            created: field(5).parse().ok(),
            length: field(2).to_owned(),
            owner_trust: (!is_subkey).then(|| field(8).to_owned()),
            trust: field(1).to_owned(),
            subkeys: Vec::new(),
        }
    }

    fn shown(self, now: i64) -> Dict {
        let out = Dict::new();
        out.insert("keyid", self.keyid);
        if self.owner_trust.is_some() {
            out.insert("uids", self.uids.into_iter().collect::<List>());
        }
        if let Some(fingerprint) = self.fingerprint {
            out.insert("fingerprint", fingerprint);
        }
        if let Some(expires) = self.expires {
            out.insert("expires", date(expires));
            out.insert("expired", expires < now);
        }
        if let Some(created) = self.created {
            out.insert("created", date(created));
        }
        if !self.length.is_empty() {
            out.insert("keyLength", self.length);
        }
        if let Some(letter) = &self.owner_trust {
            out.insert("ownerTrust", trust(letter));
        }
        out.insert("trust", trust(&self.trust));
        if !self.subkeys.is_empty() {
            let subkeys = self.subkeys.into_iter().map(|key| Value::from(key.shown(now)));
            out.insert("subkeys", subkeys.collect::<List>());
        }
        out
    }
}

/// Reads `\x3a` and its like.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        rest = more;
        if first == b'\\'
            && let [b'x', digits @ ..] = more
            && let Some(hex) = digits.get(..2).and_then(|hex| std::str::from_utf8(hex).ok())
            && let Ok(byte) = u8::from_str_radix(hex, 16)
        {
            bytes.push(byte);
            rest = digits.get(2..).unwrap_or_default();
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The keys of a list; `now` tells which have ended.
pub(super) fn keys_in(text: &str, now: i64) -> Vec<Dict> {
    let mut keys: Vec<Record> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        match field(0) {
            "pub" | "sec" => keys.push(Record::read(&fields, false)),
            "sub" | "ssb" => {
                if let Some(key) = keys.last_mut() {
                    key.subkeys.push(Record::read(&fields, true));
                }
            }
            "fpr" => {
                if let Some(key) = keys.last_mut() {
                    let owner = key
                        .subkeys
                        .last_mut()
                        .map_or(&mut key.fingerprint, |sub| &mut sub.fingerprint);
                    owner.get_or_insert_with(|| field(9).to_owned());
                }
            }
            "uid" => {
                if let Some(key) = keys.last_mut() {
                    key.uids.push(unescaped(field(9)));
                }
            }
            _ => {}
        }
    }
    keys.into_iter().map(|key| key.shown(now)).collect()
}

/// The keys a server found.
pub(super) fn found_in(text: &str) -> Vec<Dict> {
    let mut keys: Vec<(Dict, List)> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        match field(0) {
            "pub" => {
                let key = Dict::new();
                key.insert("keyid", field(1));
                if let Ok(created) = field(4).parse() {
                    key.insert("created", date(created));
                }
                if let Ok(expires) = field(5).parse() {
                    key.insert("expires", date(expires));
                }
                key.insert("keyLength", field(3));
                keys.push((key, List::new()));
            }
            "uid" => {
                if let Some((_, uids)) = keys.last_mut() {
                    uids.push(Value::from(unescaped(field(1))));
                }
            }
            _ => {}
        }
    }
    let keys = keys.into_iter().map(|(key, uids)| {
        key.insert("uids", uids);
        key
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn keys_with_keys_below() {
        let text = "tru::1:1794816000:0:3:1:5\n\
            pub:u:2048:1:50A683663A37CA7A:1794817719:1797409719::u:::scESC::::::23::0:\n\
            fpr:::::::::9FEBB20E9194CA1BB814A0EF50A683663A37CA7A:\n\
            uid:u::::1794817719::AA::Test\\x3a Key <t@example.com>::::::::::0:\n\
            sub:u:2048:1:0C523C71237D4F60:1794817719::::::e::::::23:\n\
            fpr:::::::::E8C434FB9AE614FEA8540CC20C523C71237D4F60:\n";
        let subkey = dict! {
            "keyid" => "0C523C71237D4F60",
            "fingerprint" => "E8C434FB9AE614FEA8540CC20C523C71237D4F60",
            "created" => "2026-11-16", "keyLength" => "2048", "trust" => "Ultimately Trusted",
        };
        let expected = dict! {
            "keyid" => "50A683663A37CA7A", "uids" => list!["Test: Key <t@example.com>"],
            "fingerprint" => "9FEBB20E9194CA1BB814A0EF50A683663A37CA7A",
            "expires" => "2026-12-16", "expired" => false, "created" => "2026-11-16",
            "keyLength" => "2048", "ownerTrust" => "Ultimately Trusted",
            "trust" => "Ultimately Trusted", "subkeys" => list![subkey],
        };
        let found = keys_in(text, 1_794_817_800);
        assert_eq!(Value::list(found.into_iter().map(Value::from)), list![expected]);
        assert!(keys_in("gpg: nothing", 0).is_empty());
    }

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_794_817_719), "2026-11-16");
    }
}
