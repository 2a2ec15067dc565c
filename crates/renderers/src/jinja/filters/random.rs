//! Filters that draw lots.
//!
//! With a seed, the result must be the one that Python draws with this seed, on every run: so the
//! generator (MT19937) and what is built on it are Python's. Without a seed, the system's entropy is
//! used.

use halite_value::{BigInt, Value};
use num_traits::Signed;

use super::{
    Row,
    hash::{base64, hash, int_arg, optional_text},
};
use crate::jinja::{
    call::Bound,
    error::{Class, Error, type_error, value_error},
    eval::{Interp, Result},
    methods,
    objects::*,
};

pub(crate) const FILTERS: &[Row] = &[
    ("random", "do_random(!context, seq)", random),
    ("random_sample", "sample(value, size, seed=)", |interp, args| {
        let value = args.take(0);
        let size = methods::index(&args.take(1))?;
        let seed = args.opt(2).filter(|seed| !seed.is_null());
        sample(interp, &value, size, seed.as_ref())
    }),
    ("random_shuffle", "shuffle(value, seed=)", |interp, args| {
        let value = args.take(0);
        let seed = args.opt(1).filter(|seed| !seed.is_null());
        let size = interp.len(&value)? as i64;
        sample(interp, &value, size, seed.as_ref())
    }),
    ("random_hash", "random_hash(size=, hash_type=)", random_hash),
    ("rand_str", "random_hash(size=, hash_type=)", random_hash),
    ("random_str", "random(size=)", |interp, args| {
        let size = usize::try_from(int_arg(args.opt(0), 32)?)
            .map_err(|_| value_error("negative argument not allowed"))?;
        interp.room(size.saturating_mul(2))?;
        let mut key = vec![0; size];
        fill(&mut key);
        let mut text = base64(&key);
        text.truncate(size);
        Ok(Value::from(text))
    }),
    ("gen_mac", "gen_mac(prefix=)", |interp, args| {
        let prefix = match args.opt(0) {
            Some(prefix) => interp.str_of(&prefix)?,
            None => "AC:DE:48".into(),
        };
        let mut bytes = [0; 3];
        fill(&mut bytes);
        Ok(Value::from(format!("{prefix}:{:02X}:{:02X}:{:02X}", bytes[0], bytes[1], bytes[2])))
    }),
];

/// Fills a buffer with entropy of the system; never fails.
pub(crate) fn fill(buffer: &mut [u8]) {
    use std::{
        hash::{BuildHasher, Hasher},
        io::Read,
    };
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(buffer));
    if read.is_err() {
        // Each `RandomState` has its own keys, seeded by the system.
        for chunk in buffer.chunks_mut(8) {
            let word = std::collections::hash_map::RandomState::new().build_hasher().finish();
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}

fn below(limit: u64) -> u64 {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    (u128::from_le_bytes(bytes) % u128::from(limit.max(1))) as u64
}

fn random(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let length = interp.len(&value)?;
    if length == 0 {
        let hint = Missing::Hint("No random item, sequence was empty.".into());
        return Ok(Undefined::value(interp.strict(), hint));
    }
    let at = Value::from(below(length as u64));
    match interp.own_item(&value, &at)? {
        Some(item) => Ok(item),
        None if matches!(value, Value::Dict(_)) => Err(Error::key(&at)),
        None => Err(type_error(format!("'{}' object is not subscriptable", value.type_name()))),
    }
}

fn random_hash(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let size = args.opt(0);
    let kind = args.opt(1);
    let size = match size {
        None => 9_999_999_999,
        Some(size) => int_arg(Some(size), 0)?,
    };
    let kind = optional_text(kind.as_ref())
        .filter(|kind| !kind.is_empty())
        .unwrap_or_else(|| "md5".into());
    let size = u64::try_from(size).map_err(|_| {
        value_error(format!("empty range for randrange() (0, {}, {})", size + 1, size + 1))
    })?;
    interp.step()?;
    let number = below(size.saturating_add(1)).to_string();
    hash(&kind, number.as_bytes()).map(Value::from).ok_or_else(|| {
        Error::new(Class::AttributeError, format!("module 'hashlib' has no attribute '{kind}'"))
    })
}

fn sample(
    interp: &mut Interp<'_>,
    value: &Value,
    size: i64,
    seed: Option<&Value>,
) -> Result<Value> {
    let sequence = matches!(value, Value::List(_) | Value::Tuple(_)) || text_of(value).is_some();
    if !sequence && value.as_object::<Range>().is_none() {
        return Err(type_error(
            "Population must be a sequence.  For dicts or sets, use sorted(d).",
        ));
    }
    let items = interp.collect(value)?;
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size <= items.len())
        .ok_or_else(|| value_error("Sample larger than population or is negative"))?;
    interp.burn(items.len())?;
    let mut twister = match seed {
        Some(seed) => Twister::new(&seed_number(seed)?),
        None => {
            let mut bytes = [0; 32];
            fill(&mut bytes);
            Twister::new(&BigInt::from_bytes_le(num_bigint::Sign::Plus, &bytes))
        }
    };
    let picked = twister.sample(items.len(), size);
    Ok(Value::list(picked.into_iter().map(|at| items[at].clone())))
}

/// The number that a text seeds Python's generator with, after Salt has hashed it.
fn seed_number(seed: &Value) -> Result<BigInt> {
    use sha2::Digest;
    let bytes = match (text_of(seed), seed) {
        (Some(text), _) => text.as_bytes(),
        (None, Value::Bytes(bytes)) => bytes,
        _ => return Err(type_error("object supporting the buffer API required")),
    };
    let mut key = hash("sha512", bytes).unwrap_or_default().into_bytes();
    let digest = sha2::Sha512::digest(&key);
    key.extend_from_slice(&digest);
    Ok(BigInt::from_bytes_be(num_bigint::Sign::Plus, &key))
}

/// The Mersenne Twister, as Python's `random.Random`.
struct Twister {
    state: [u32; 624],
    at: usize,
}

impl Twister {
    fn new(seed: &BigInt) -> Self {
        let key = seed.abs().to_u32_digits().1;
        let key = if key.is_empty() { vec![0] } else { key };
        let mut state = [0u32; 624];
        state[0] = 19_650_218;
        for at in 1..624 {
            let before = state[at - 1];
            state[at] =
                1_812_433_253u32.wrapping_mul(before ^ before >> 30).wrapping_add(at as u32);
        }
        let (mut i, mut j) = (1, 0);
        for _ in 0..624.max(key.len()) {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ before >> 30).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            j = (j + 1) % key.len();
            if i >= 624 {
                state[0] = state[623];
                i = 1;
            }
        }
        for _ in 0..623 {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ before >> 30).wrapping_mul(1_566_083_941))
                .wrapping_sub(i as u32);
            i += 1;
            if i >= 624 {
                state[0] = state[623];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        Self { state, at: 624 }
    }

    fn next(&mut self) -> u32 {
        if self.at >= 624 {
            for at in 0..624 {
                let y = self.state[at] & 0x8000_0000 | self.state[(at + 1) % 624] & 0x7fff_ffff;
                let mixed = if y & 1 == 0 { 0 } else { 0x9908_b0df };
                self.state[at] = self.state[(at + 397) % 624] ^ y >> 1 ^ mixed;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }

    /// Python's `_randbelow`.
    fn below(&mut self, limit: usize) -> usize {
        let bits = usize::BITS - limit.leading_zeros();
        if bits == 0 {
            return 0;
        }
        loop {
            let drawn = (self.next() >> (32 - bits.min(32))) as usize;
            if drawn < limit {
                return drawn;
            }
        }
    }

    /// Python's `sample`, as positions.
    fn sample(&mut self, total: usize, size: usize) -> Vec<usize> {
        let mut set_size = 21;
        if size > 5 {
            let power = ((size * 3) as f64).log(4.0).ceil();
            set_size += 4usize.saturating_pow(power as u32);
        }
        if total <= set_size {
            let mut pool: Vec<usize> = (0..total).collect();
            return (0..size)
                .map(|drawn| {
                    let at = self.below(total - drawn);
                    let picked = pool[at];
                    pool[at] = pool[total - drawn - 1];
                    picked
                })
                .collect();
        }
        let mut seen = std::collections::HashSet::new();
        (0..size)
            .map(|_| {
                loop {
                    let at = self.below(total);
                    if seen.insert(at) {
                        return at;
                    }
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_what_python_draws() {
        let mut twister = Twister::new(&BigInt::from(42));
        assert_eq!([twister.next(), twister.next()], [2_746_317_213, 478_163_327]);
        // random.Random(7).sample(range(10), 10)
        let picked = Twister::new(&BigInt::from(7)).sample(10, 10);
        assert_eq!(picked, [5, 2, 6, 9, 0, 7, 4, 1, 3, 8]);
    }
}
