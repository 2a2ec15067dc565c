//! `random`: random numbers and texts, and password hashes.
//!
//! Where a seed is given the answer is Python's: trees spread cron minutes over a fleet with
//! `random.seed`, and a minion must not move to another minute because it runs Halite. Without a
//! seed everything comes from the kernel's source.

mod mersenne;

use std::{io::Read, path::Path};

use halite_spec::{Cx, Error, Result, function, host, module};
use halite_value::Value;

use self::mersenne::Mersenne;
use crate::hashutil;

module! {
    /// Random numbers and texts, and password hashes.
    "random": get_str, hash, rand_int, sample, seed, shadow_hash, shuffle, str_encode,
}

/// Returns bytes of the kernel's random source.
pub fn bytes(cx: &Cx, count: usize) -> Result<Vec<u8>> {
    let path = Path::new("/dev/urandom");
    let mut bytes = vec![0; count];
    let mut source = cx.host.open(path)?;
    source.read_exact(&mut bytes).map_err(|error| host::Error::io("read", path, error))?;
    Ok(bytes)
}

/// Returns a random number below a limit (0 for a limit of 0).
pub fn below(cx: &Cx, limit: u64) -> Result<u64> {
    if limit <= 1 {
        return Ok(0);
    }
    // Numbers past the last whole multiple would favour the small ones.
    let usable = u64::MAX - u64::MAX % limit;
    loop {
        let raw: [u8; 8] = bytes(cx, 8)?.try_into().unwrap_or_default();
        let number = u64::from_le_bytes(raw);
        if number < usable {
            return Ok(number % limit);
        }
    }
}

/// Returns the hash of data as hexadecimal digits.
pub fn digest(algorithm: &str, data: &[u8]) -> Result<String> {
    hashutil::Kind::named(algorithm)
        .map(|kind| kind.of(data))
        .ok_or_else(|| Error::raised("SaltException", "You must specify a valid algorithm."))
}

/// Return the hash of a text.
///
/// ```console
/// $ salt web1 random.hash 'some text'
/// ```
#[function]
pub fn hash(
    _cx: &Cx,
    /// The text.
    value: Value,
    /// `md5`, `sha1`, `sha224`, `sha256`, `sha384` or `sha512`.
    #[default("sha512".to_owned())]
    algorithm: String,
) -> Result<String> {
    match value.as_bytes() {
        Some(bytes) => digest(&algorithm, bytes),
        None => Err(Error::raised("TypeError", "object supporting the buffer API required")),
    }
}

/// Return a text encoded.
///
/// ```console
/// $ salt web1 random.str_encode 'some text'
/// ```
#[function]
pub fn str_encode(
    _cx: &Cx,
    /// The text.
    value: Value,
    /// The encoding; `base64`.
    #[default("base64".to_owned())]
    encoder: String,
) -> Result<String> {
    match (encoder.as_str(), value.as_bytes()) {
        ("base64", Some(bytes)) => Ok(hashutil::base64(bytes)),
        _ => Err(Error::invalid("Value must be an encode-able string")),
    }
}

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const WHITESPACE: &str = " \t\n\r\x0b\x0c";

/// Returns a text of characters picked at random.
pub fn text_of(cx: &Cx, length: usize, chars: &str) -> Result<String> {
    let chars: Vec<char> = chars.chars().collect();
    if chars.is_empty() {
        return Err(Error::failed("there are no characters to choose from"));
    }
    (0..length).map(|_| Ok(chars[below(cx, chars.len() as u64)? as usize])).collect()
}

/// Return a random text.
///
/// ```console
/// $ salt '*' random.get_str 16 chars='abc123.!()'
/// $ salt '*' random.get_str 16 lowercase=False
/// ```
#[function]
pub fn get_str(
    cx: &Cx,
    /// How many characters.
    #[default(20)]
    length: u64,
    /// The characters to choose from; goes before all flags.
    chars: Option<String>,
    /// Use lower-case letters.
    #[default(true)]
    lowercase: bool,
    /// Use upper-case letters.
    #[default(true)]
    uppercase: bool,
    /// Use digits.
    #[default(true)]
    digits: bool,
    /// Use punctuation.
    #[default(true)]
    punctuation: bool,
    /// Use white space.
    #[default(false)]
    whitespace: bool,
    /// Use everything printable.
    #[default(false)]
    printable: bool,
) -> Result<String> {
    const LIMIT: u64 = 16 << 20;
    if length > LIMIT {
        return Err(Error::invalid(format!("a random text has at most {LIMIT} characters")));
    }
    let sets = [
        (lowercase, LOWER),
        (uppercase, UPPER),
        (digits, DIGITS),
        (punctuation, PUNCTUATION),
        (whitespace, WHITESPACE),
    ];
    let all = || [DIGITS, LOWER, UPPER, PUNCTUATION, WHITESPACE].concat();
    let chosen = if printable {
        all()
    } else {
        chars.filter(|chars| !chars.is_empty()).unwrap_or_else(|| {
            sets.iter().filter(|(wanted, _)| *wanted).map(|(_, set)| *set).collect()
        })
    };
    text_of(cx, length as usize, &chosen)
}

/// Return a password hash as `/etc/shadow` holds it.
///
/// ```console
/// $ salt '*' random.shadow_hash 'My5alT' 'MyP@asswd'
/// ```
#[function]
pub fn shadow_hash(
    cx: &Cx,
    /// The salt; a random one if none is given.
    crypt_salt: Option<String>,
    /// The password; a random one if none is given.
    password: Option<String>,
    /// `sha512` or `sha256`.
    #[default("sha512".to_owned())]
    algorithm: String,
) -> Result<String> {
    let password = match password {
        Some(password) => password,
        None => get_str(cx, 20, None, true, true, true, true, false, false)?,
    };
    crypt(cx, &password, crypt_salt.as_deref(), &algorithm)
}

const CRYPT: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Hashes a password as `crypt(3)` does. The salt may begin with `rounds=N$`.
pub fn crypt(cx: &Cx, password: &str, salt: Option<&str>, algorithm: &str) -> Result<String> {
    let id = match algorithm {
        "sha512" => "6",
        "sha256" => "5",
        other => {
            return Err(Error::invalid(format!(
                "Cannot hash using '{other}' hash algorithm. Natively supported algorithms are: \
                 ['sha512', 'sha256']."
            )));
        }
    };
    let made;
    let salt = match salt {
        Some(salt) => salt,
        None => {
            made = text_of(cx, 16, &String::from_utf8_lossy(CRYPT))?;
            &made
        }
    };
    let (rounds, salt) = match salt.strip_prefix("rounds=").and_then(|rest| rest.split_once('$')) {
        Some((rounds, salt)) if rounds.parse::<u64>().is_ok() => {
            let rounds = rounds.parse::<u64>().unwrap_or_default();
            (Some(rounds.clamp(1000, 999_999_999) as u32), salt)
        }
        _ => (None, salt),
    };
    // As crypt(3): the salt ends at a dollar sign or after sixteen bytes.
    let salt = salt.split('$').next().unwrap_or_default();
    let cut = (0..=salt.len().min(16)).rev().find(|at| salt.is_char_boundary(*at)).unwrap_or(0);
    let salt = &salt[..cut];
    let params = match rounds {
        Some(rounds) => sha_crypt::Params::new(rounds)
            .map_err(|error| Error::invalid(format!("cannot hash the password: {error}")))?,
        None => sha_crypt::Params::default(),
    };
    let (password, bytes) = (password.as_bytes(), salt.as_bytes());
    let hash = if id == "6" {
        encode_512(&sha_crypt::sha512_crypt(password, bytes, params))
    } else {
        encode_256(&sha_crypt::sha256_crypt(password, bytes, params))
    };
    let rounds = rounds.map(|rounds| format!("rounds={rounds}$")).unwrap_or_default();
    Ok(format!("${id}${rounds}{salt}${hash}"))
}

/// Writes up to three bytes, the lowest six bits first.
fn encode(text: &mut String, bytes: [u8; 3], digits: usize) {
    let word = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
    text.extend((0..digits).map(|at| char::from(CRYPT[(word >> (6 * at) & 63) as usize])));
}

fn encode_512(hash: &[u8; 64]) -> String {
    let mut text = String::new();
    let (mut a, mut b, mut c) = (0, 21, 42);
    for _ in 0..21 {
        encode(&mut text, [hash[a], hash[b], hash[c]], 4);
        (a, b, c) = (b + 1, c + 1, a + 1);
    }
    encode(&mut text, [0, 0, hash[63]], 2);
    text
}

fn encode_256(hash: &[u8; 32]) -> String {
    let mut text = String::new();
    let (mut a, mut b, mut c) = (0, 10, 20);
    for _ in 0..10 {
        encode(&mut text, [hash[a], hash[b], hash[c]], 4);
        (a, b, c) = (c + 1, a + 1, b + 1);
    }
    encode(&mut text, [0, hash[31], hash[30]], 3);
    text
}

/// A generator: Python's for a seed, one begun with kernel randomness otherwise.
fn generator(cx: &Cx, seed: Option<&Value>) -> Result<Mersenne> {
    match seed {
        Some(seed) => Ok(Mersenne::seeded(seed)),
        None => Ok(Mersenne::from_bytes(&bytes(cx, 64)?)),
    }
}

/// Return a random number between two others, both included.
///
/// ```console
/// $ salt '*' random.rand_int 1 100 seed=web1
/// ```
#[function]
pub fn rand_int(
    cx: &Cx,
    /// The smallest.
    #[default(1)]
    start: i64,
    /// The largest.
    #[default(10)]
    end: i64,
    /// The same seed gives the same number, everywhere and always.
    seed: Option<Value>,
) -> Result<i64> {
    let range = (i128::from(end) - i128::from(start) + 1).try_into().unwrap_or(0);
    if range == 0 {
        return Err(value_error(format!("empty range in randrange({start}, {})", end + 1)));
    }
    let offset = generator(cx, seed.as_ref())?.below(range);
    Ok(start.wrapping_add_unsigned(offset))
}

fn value_error(message: String) -> Error {
    Error::raised("ValueError", message)
}

/// Return a number below a limit that is always the same for this minion.
///
/// ```console
/// $ salt web1 random.seed
/// ```
#[function]
pub fn seed(
    cx: &Cx,
    /// The limit.
    #[default(10)]
    range: i64,
    /// What to derive it from; the minion's id if nothing is given.
    hash: Option<Value>,
) -> Result<u64> {
    let Ok(range) = u64::try_from(range) else {
        return Err(value_error("empty range for randrange()".into()));
    };
    if range == 0 {
        return Err(value_error("empty range for randrange()".into()));
    }
    let seed = hash.unwrap_or_else(|| cx.grain("id").unwrap_or_else(|| cx.id().into()));
    Ok(Mersenne::seeded(&seed).below(range))
}

/// Return some items of a list, picked at random.
///
/// ```console
/// $ salt web1 random.sample '[red, blue, green]' 2
/// ```
#[function]
pub fn sample(
    cx: &Cx,
    /// The list.
    value: Value,
    /// How many.
    size: u64,
    /// The same seed picks the same items.
    seed: Option<Value>,
) -> Result<Value> {
    let items = match &value {
        Value::Str(text) => text.chars().map(|c| Value::from(c.to_string())).collect(),
        other => other.items_of_sequence().ok_or_else(|| {
            Error::raised(
                "TypeError",
                "Population must be a sequence.  For dicts or sets, use sorted(d).",
            )
        })?,
    };
    if size > items.len() as u64 {
        return Err(value_error("Sample larger than population or is negative".into()));
    }
    // Salt hashes the seed first here, and only here.
    let seed = match seed {
        Some(seed) => match seed.as_bytes() {
            Some(bytes) => Some(Value::from(digest("sha512", bytes)?)),
            None => {
                return Err(Error::raised(
                    "TypeError",
                    "object supporting the buffer API required",
                ));
            }
        },
        None => None,
    };
    let picked = generator(cx, seed.as_ref())?.sample(items.len() as u64, size);
    Ok(Value::list(picked.into_iter().filter_map(|at| items.get(at as usize).cloned())))
}

/// Return the items of a list in random order.
///
/// ```console
/// $ salt web1 random.shuffle '[red, blue, green]'
/// ```
#[function]
pub fn shuffle(
    cx: &Cx,
    /// The list.
    value: Value,
    /// The same seed gives the same order.
    seed: Option<Value>,
) -> Result<Value> {
    let size = match &value {
        Value::Str(text) => text.chars().count(),
        other => other.items_of_sequence().unwrap_or_default().len(),
    };
    sample(cx, value, size as u64, seed)
}

#[cfg(test)]
mod tests {
    use halite_testkit::Kit;

    use super::*;

    #[test]
    fn passwords_are_hashed_as_crypt_does() {
        let cx = Kit::new().cx;
        let check = |salt: &str, algorithm: &str, expected: &str| {
            assert_eq!(crypt(&cx, "pw", Some(salt), algorithm).unwrap(), expected);
        };
        check(
            "abc",
            "sha512",
            "$6$abc$MtSdWSZbhct2oe.SOqOUM2M/GA/uj5.vyVtJgRHgKi9uqXuWuJqOYE7H/YlsYGVg/YYzDV0xt3fEIwYt580.5.",
        );
        check("abc", "sha256", "$5$abc$/LKlXd6vuvdFX3oWbf2vGk3DgflzzsvOtMZsiOxqqY5");
    }

    #[test]
    fn seeds_give_pythons_numbers() {
        let cx = Kit::new().cx;
        assert_eq!(rand_int(&cx, 1, 100, Some(5.into())).unwrap(), 80);
        assert_eq!(seed(&cx, 10, Some("web1".into())).unwrap(), 5);
        assert_eq!(seed(&cx, 60, Some("oracle".into())).unwrap(), 33);
        let ten = Value::list(1..=10_i64);
        let picked = sample(&cx, ten, 3, Some("abc".into())).unwrap();
        assert_eq!(picked, Value::list([4, 8, 5_i64]));
    }
}
