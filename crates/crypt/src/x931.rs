//! ANSI X9.31 blocks: the padding around Salt's `tok` and around the inner `sig` of a sign-in reply.
//!
//! A block is as long as the modulus: `6B BB … BB BA <message> CC`, or `6A <message> CC` when the message fills it. Nothing
//! is hashed; the verifier gets the message back. Of the two numbers s and n - s the smaller is the signature, so after the
//! public operation the verifier finds either the block or n minus the block, and tells them apart by the last four bits.

/// Wraps `message` into a block of `size` bytes; `None` if it does not fit.
pub(crate) fn pad(message: &[u8], size: usize) -> Option<Vec<u8>> {
    let fill = size.checked_sub(message.len())?.checked_sub(2)?;
    let mut block = Vec::with_capacity(size);
    match fill.checked_sub(1) {
        None => block.push(0x6a),
        Some(more) => {
            block.push(0x6b);
            block.resize(1 + more, 0xbb);
            block.push(0xba);
        }
    }
    block.extend_from_slice(message);
    block.push(0xcc);
    Some(block)
}

/// Returns the message inside a block.
///
/// As strict as the C library that genuine Salt uses: a `6B` block has at least one `BB`, and the message is not empty.
pub(crate) fn unpad(block: &[u8]) -> Option<&[u8]> {
    let (last, rest) = block.split_last()?;
    let (first, rest) = rest.split_first()?;
    let message = match (first, last) {
        (0x6a, 0xcc) => rest,
        (0x6b, 0xcc) => {
            let fill = rest.iter().position(|&b| b != 0xbb).filter(|&n| n > 0)?;
            rest.get(fill..)?.strip_prefix(&[0xba])?
        }
        _ => return None,
    };
    (!message.is_empty()).then_some(message)
}

/// The smaller of `s` and `modulus - s`.
pub(crate) fn smaller(s: Vec<u8>, modulus: &[u8]) -> Vec<u8> {
    let other = minus(modulus, &s);
    if other < s { other } else { s }
}

/// What the signer had wrapped: `r`, or `modulus - r` if `r` does not end in the four bits 1100.
pub(crate) fn original(r: Vec<u8>, modulus: &[u8]) -> Vec<u8> {
    if r.last().is_some_and(|b| b & 0xf == 0xc) { r } else { minus(modulus, &r) }
}

/// a - b for big-endian numbers of equal length with b <= a. (Both are public: no need for constant time.)
fn minus(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut borrow = false;
    let mut out: Vec<u8> = a
        .iter()
        .zip(b)
        .rev()
        .map(|(&a, &b)| {
            let (x, under) = a.overflowing_sub(b);
            let (x, again) = x.overflowing_sub(u8::from(borrow));
            borrow = under || again;
            x
        })
        .collect();
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert_eq!(pad(b"salt", 10).as_deref(), Some(&b"\x6b\xbb\xbb\xbb\xbasalt\xcc"[..]));
        assert_eq!(pad(b"salt", 7).as_deref(), Some(&b"\x6b\xbasalt\xcc"[..]));
        assert_eq!(pad(b"salt", 6).as_deref(), Some(&b"\x6asalt\xcc"[..]));
        assert_eq!(pad(b"salt", 5), None);
        assert_eq!(pad(b"salt", 0), None);
    }

    #[test]
    fn refusals() {
        for (block, expected) in [
            (&b"\x6b\xbb\xbasalt\xcc"[..], Some(&b"salt"[..])),
            (b"\x6asalt\xcc", Some(b"salt")),
            (b"\x6b\xbb\xba\xba\xbb\xcc", Some(b"\xba\xbb")),
            (b"\x6b\xbasalt\xcc", None), // no BB
            (b"\x6b\xbb\xbbsalt\xcc", None),
            (b"\x6b\xbb\xba\xcc", None), // empty
            (b"\x6b\xbb\xbb\xcc", None),
            (b"\x6a\xcc", None),
            (b"\x6b\xbb\xbasalt\xcd", None),
            (b"\x6c\xbb\xbasalt\xcc", None),
            (b"\xcc", None),
            (b"", None),
        ] {
            assert_eq!(unpad(block), expected, "{block:x?}");
        }
    }

    #[test]
    fn subtraction_borrows() {
        assert_eq!(minus(&[1, 0, 0], &[0, 0, 1]), [0, 255, 255]);
        assert_eq!(minus(&[5, 4], &[5, 4]), [0, 0]);
        assert_eq!(smaller(vec![9, 0], &[10, 0]), [1, 0]);
        assert_eq!(original(vec![0, 0x1c], &[9, 9]), [0, 0x1c]);
    }
}
