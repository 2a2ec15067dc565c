//! The little of BER that LDAP needs: tags of one byte, lengths that are told.

use super::Error;

/// The largest message that is believed.
pub(super) const MOST: usize = 16 << 20;

/// Appends one element.
pub(super) fn put(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    match u8::try_from(body.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let bytes = body.len().to_be_bytes();
            let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
            let bytes = &bytes[from..];
            // At most eight, so it fits beside the mark.
            out.push(0x80 | u8::try_from(bytes.len()).unwrap_or(8));
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(body);
}

/// Makes one element.
pub(super) fn element(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 6);
    put(&mut out, tag, body);
    out
}

/// Makes a number; never a negative one.
pub(super) fn number(tag: u8, value: u32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let mut body = Vec::with_capacity(5);
    if bytes[from] >= 0x80 {
        // The first bit is the sign.
        body.push(0);
    }
    body.extend_from_slice(&bytes[from..]);
    element(tag, &body)
}

/// Reads how long an element is: the length, and how many bytes said so. `None`: more has to come.
pub(super) fn length(bytes: &[u8]) -> Result<Option<(usize, usize)>, Error> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    if first < 0x80 {
        return Ok(Some((first.into(), 1)));
    }
    let count = usize::from(first & 0x7f);
    if count == 0 || count > 4 {
        return Err(Error::Garbled);
    }
    let Some(digits) = rest.get(..count) else { return Ok(None) };
    let length = digits.iter().fold(0, |sum: usize, digit| (sum << 8) | usize::from(*digit));
    if length > MOST { Err(Error::Garbled) } else { Ok(Some((length, count + 1))) }
}

/// The elements of a body, one after the other.
pub(super) struct Elements<'a>(pub(super) &'a [u8]);

impl<'a> Elements<'a> {
    /// Takes the next element: its tag and its body.
    pub(super) fn next(&mut self) -> Result<Option<(u8, &'a [u8])>, Error> {
        let Some((&tag, rest)) = self.0.split_first() else { return Ok(None) };
        let (length, told) = length(rest)?.ok_or(Error::Garbled)?;
        let rest = &rest[told..];
        let body = rest.get(..length).ok_or(Error::Garbled)?;
        self.0 = &rest[length..];
        Ok(Some((tag, body)))
    }

    /// Takes the next element, which must be of this kind.
    pub(super) fn take(&mut self, wanted: u8) -> Result<&'a [u8], Error> {
        match self.next()? {
            Some((tag, body)) if tag == wanted => Ok(body),
            _ => Err(Error::Garbled),
        }
    }

    /// Takes a number that is not negative.
    pub(super) fn number(&mut self, tag: u8) -> Result<u32, Error> {
        let body = self.take(tag)?;
        if body.is_empty() || body.len() > 5 || body[0] >= 0x80 {
            return Err(Error::Garbled);
        }
        let sum = body.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
        u32::try_from(sum).map_err(|_| Error::Garbled)
    }

    /// Takes a text.
    pub(super) fn text(&mut self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(self.take(0x04)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back() {
        for size in [0, 1, 127, 128, 255, 256, 70_000] {
            let body = vec![7; size];
            let bytes = element(0x04, &body);
            let mut all = Elements(&bytes);
            assert_eq!(all.take(0x04).unwrap(), body, "{size}");
            assert!(all.next().unwrap().is_none());
        }
        for value in [0, 1, 127, 128, 255, 256, 40_000, u32::MAX] {
            let bytes = number(0x02, value);
            assert_eq!(Elements(&bytes).number(0x02).unwrap(), value);
        }
        assert_eq!(number(0x02, 128), [2, 2, 0, 128]);
    }

    #[test]
    fn what_is_broken_is_refused() {
        for bytes in [&[4][..], &[4, 5, 1], &[4, 0x80], &[4, 0x85, 1, 1, 1, 1, 1], &[4, 0x82, 1]] {
            assert!(Elements(bytes).next().is_err(), "{bytes:?}");
        }
        assert!(Elements(&[4, 0x84, 0xff, 0xff, 0xff, 0xff]).next().is_err(), "too large");
        assert!(Elements(&[2, 0]).number(2).is_err() && Elements(&[2, 1, 0x80]).number(2).is_err());
    }
}
