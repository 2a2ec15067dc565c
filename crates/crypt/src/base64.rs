//! Standard base64 without look-up tables: key strings are secrets, and table indices leak through the cache.
//!
//! Only what Salt's key strings and signature files need: one line, alphabet `A-Za-z0-9+/`, full padding.

/// Encodes on one line.
pub(crate) fn encode(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for chunk in data.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let six = (bits >> (18 - 6 * i) & 63) as i16;
            out.push(if i <= chunk.len() { char::from(letter(six)) } else { '=' });
        }
    }
    out
}

/// Decodes; `None` for anything that is not complete base64 without white space.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|&&b| b == b'=').count();
    let (letters, _) = text.split_at(text.len() - padding);
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut wrong = 0i16;
    for chunk in letters.chunks(4) {
        let mut bits = 0u32;
        for i in 0..4 {
            let six = chunk.get(i).map_or(0, |&b| value(b));
            wrong |= six;
            bits = bits << 6 | (six & 63) as u32;
        }
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(bytes.get(1..chunk.len())?);
    }
    (wrong >= 0).then_some(out)
}

/// The letter of a 6-bit value: range by range, each comparison a mask.
fn letter(six: i16) -> u8 {
    let mut c = six + i16::from(b'A');
    c += ((25 - six) >> 8) & 6;
    c -= ((51 - six) >> 8) & 75;
    c -= ((61 - six) >> 8) & 15;
    c += ((62 - six) >> 8) & 3;
    c as u8
}

/// The value of a letter, or -1.
fn value(letter: u8) -> i16 {
    let c = i16::from(letter);
    let within = |low: u8, high: u8| ((i16::from(low) - 1 - c) & (c - i16::from(high) - 1)) >> 8;
    let mut six = -1;
    six += within(b'A', b'Z') & (c - 64);
    six += within(b'a', b'z') & (c - 70);
    six += within(b'0', b'9') & (c + 5);
    six += within(b'+', b'+') & 63;
    six += within(b'/', b'/') & 64;
    six
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts() {
        for (clear, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(encode(clear.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(clear.as_bytes()));
        }
    }

    #[test]
    fn alphabet() {
        let all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for (six, c) in (0..).zip(all.bytes()) {
            assert_eq!((letter(six), value(c)), (c, six));
        }
        for c in (0..=255u8).filter(|c| !all.as_bytes().contains(c)) {
            assert_eq!(value(c), -1, "{c}");
        }
    }

    #[test]
    fn refusals() {
        for text in ["Z", "Zg", "Zg=", "Zg==\n", "Z===", "====", "Zm9v!m9v", "Zg==Zg=="] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
