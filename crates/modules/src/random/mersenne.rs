//! The generator of Python's `random` module: MT19937, seeded and drawn from as Python does.
//!
//! Only for numbers that must equal Python's; nothing secret comes from here.

use halite_value::Value;
use sha2::{Digest, Sha512};

const SIZE: usize = 624;
const SHIFT: usize = 397;

pub(super) struct Mersenne {
    state: [u32; SIZE],
    at: usize,
}

impl Mersenne {
    /// Seeds from a value as `random.seed` does: numbers as they are, texts with their hash.
    pub(super) fn seeded(seed: &Value) -> Self {
        let mut bytes = match seed {
            Value::Int(int) => int.unsigned_abs().to_be_bytes().to_vec(),
            Value::Bool(flag) => vec![u8::from(*flag)],
            Value::BigInt(int) => int.to_bytes_be().1,
            other => {
                let mut text = match other.as_bytes() {
                    Some(bytes) => bytes.to_vec(),
                    None => other.to_str().as_bytes().to_vec(),
                };
                let hash = Sha512::digest(&text);
                text.extend_from_slice(&hash);
                text
            }
        };
        bytes.reverse();
        Self::from_bytes(&bytes)
    }

    /// Seeds from a number given as bytes, the lowest first.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut key: Vec<u32> = bytes
            .chunks(4)
            .map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)))
            .collect();
        while key.len() > 1 && key.last() == Some(&0) {
            key.pop();
        }
        if key.is_empty() {
            key.push(0);
        }
        let mut state = [0; SIZE];
        state[0] = 19_650_218;
        for at in 1..SIZE {
            let last = state[at - 1];
            state[at] = 1_812_433_253_u32.wrapping_mul(last ^ last >> 30).wrapping_add(at as u32);
        }
        let (mut at, mut from) = (1, 0);
        for _ in 0..SIZE.max(key.len()) {
            let last = state[at - 1];
            state[at] = (state[at] ^ (last ^ last >> 30).wrapping_mul(1_664_525))
                .wrapping_add(key[from])
                .wrapping_add(from as u32);
            at += 1;
            from = (from + 1) % key.len();
            if at == SIZE {
                state[0] = state[SIZE - 1];
                at = 1;
            }
        }
        for _ in 1..SIZE {
            let last = state[at - 1];
            state[at] = (state[at] ^ (last ^ last >> 30).wrapping_mul(1_566_083_941))
                .wrapping_sub(at as u32);
            at += 1;
            if at == SIZE {
                state[0] = state[SIZE - 1];
                at = 1;
            }
        }
        state[0] = 1 << 31;
        Self { state, at: SIZE }
    }

    fn next(&mut self) -> u32 {
        if self.at == SIZE {
            for at in 0..SIZE {
                let mixed =
                    self.state[at] & 1 << 31 | self.state[(at + 1) % SIZE] & (u32::MAX >> 1);
                let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] = self.state[(at + SHIFT) % SIZE] ^ mixed >> 1 ^ odd;
            }
            self.at = 0;
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn bits(&mut self, count: u32) -> u64 {
        match count {
            0 => 0,
            1..=32 => u64::from(self.next() >> (32 - count)),
            _ => {
                let low = u64::from(self.next());
                low | u64::from(self.next() >> (64 - count)) << 32
            }
        }
    }

    /// Returns a number below a limit, which is not 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        let count = 64 - limit.leading_zeros();
        loop {
            let number = self.bits(count);
            if number < limit {
                return number;
            }
        }
    }

    /// Picks positions below a count, as `random.sample` does.
    pub(super) fn sample(&mut self, count: u64, size: u64) -> Vec<u64> {
        let mut limit = 21;
        if size > 5 {
            limit += 4_u64.saturating_pow(((size as f64 * 3.0).ln() / 4_f64.ln()).ceil() as u32);
        }
        if count <= limit {
            let mut pool: Vec<u64> = (0..count).collect();
            return (0..size)
                .map(|done| {
                    let at = self.below(count - done) as usize;
                    pool.swap_remove(at)
                })
                .collect();
        }
        let mut picked = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while (picked.len() as u64) < size {
            let at = self.below(count);
            if seen.insert(at) {
                picked.push(at);
            }
        }
        picked
    }
}
