//! The file of a store whose master is not running, for reading.
//!
//! `redb` must repair a file whose master was killed, and repairing writes. Here what is written
//! stays in memory, so the file is as it was, whatever is done with it, and a reader needs no right
//! to write. The file is locked as long as it is read: a master that starts meanwhile waits for a
//! moment.

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt as _};

use parking_lot::Mutex;
use redb::StorageBackend;

const BLOCK: u64 = 4096;

/// A file, and what was written over it.
#[derive(Debug)]
pub(crate) struct Frozen {
    file: File,
    over: Mutex<Over>,
}

#[derive(Debug)]
struct Over {
    len: u64,
    /// How much of the file counts: what was cut off and grew again is zeros.
    from_file: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Frozen {
    /// Takes a file; fails if a master has it open.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        file.try_lock_shared().map_err(io::Error::from)?;
        let len = file.metadata()?.len();
        Ok(Self { file, over: Mutex::new(Over { len, from_file: len, blocks: BTreeMap::new() }) })
    }

    /// Returns a block as it is in the file.
    fn original(&self, over: &Over, block: u64) -> io::Result<Box<[u8]>> {
        let mut bytes = vec![0; BLOCK as usize].into_boxed_slice();
        let start = block * BLOCK;
        if start < over.from_file {
            let there = BLOCK.min(over.from_file - start) as usize;
            if let Some(part) = bytes.get_mut(..there) {
                self.file.read_exact_at(part, start)?;
            }
        }
        Ok(bytes)
    }
}

/// Cuts a range into its blocks: the block, where in it, and how many bytes.
fn blocks(mut offset: u64, mut len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    std::iter::from_fn(move || {
        if len == 0 {
            return None;
        }
        let inside = (offset % BLOCK) as usize;
        let part = len.min(BLOCK as usize - inside);
        let found = (offset / BLOCK, inside, part);
        offset += part as u64;
        len -= part;
        Some(found)
    })
}

fn beyond() -> io::Error {
    io::Error::from(io::ErrorKind::UnexpectedEof)
}

impl StorageBackend for Frozen {
    fn len(&self) -> io::Result<u64> {
        Ok(self.over.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let over = self.over.lock();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > over.len) {
            return Err(beyond());
        }
        let mut rest = out;
        for (block, inside, part) in blocks(offset, rest.len()) {
            let (target, more) = rest.split_at_mut(part);
            rest = more;
            let start = block * BLOCK + inside as u64;
            match over.blocks.get(&block) {
                Some(bytes) => {
                    target.copy_from_slice(bytes.get(inside..inside + part).ok_or_else(beyond)?);
                }
                None if start + part as u64 <= over.from_file => {
                    self.file.read_exact_at(target, start)?;
                }
                None => {
                    let bytes = self.original(&over, block)?;
                    target.copy_from_slice(bytes.get(inside..inside + part).ok_or_else(beyond)?);
                }
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut over = self.over.lock();
        if len < over.len {
            over.from_file = over.from_file.min(len);
            over.blocks.retain(|block, _| block * BLOCK < len);
            let last = len / BLOCK;
            if let Some(bytes) = over.blocks.get_mut(&last)
                && let Some(gone) = bytes.get_mut((len % BLOCK) as usize..)
            {
                gone.fill(0);
            }
        }
        over.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut over = self.over.lock();
        let mut rest = data;
        for (block, inside, part) in blocks(offset, data.len()) {
            let (source, more) = rest.split_at(part);
            rest = more;
            if !over.blocks.contains_key(&block) {
                let bytes = self.original(&over, block)?;
                over.blocks.insert(block, bytes);
            }
            let bytes =
                over.blocks.get_mut(&block).and_then(|it| it.get_mut(inside..inside + part));
            bytes.ok_or_else(beyond)?.copy_from_slice(source);
        }
        over.len = over.len.max(offset + data.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_file_stays_as_it_is() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 5000]).unwrap();
        let frozen = Frozen::new(File::open(file.path()).unwrap()).unwrap();
        let read = |offset: u64, len: usize| {
            let mut out = vec![1; len];
            frozen.read(offset, &mut out).map(|()| out)
        };
        assert_eq!(read(4090, 10).unwrap(), [7; 10]);
        assert!(read(4995, 6).is_err());
        frozen.write(4094, &[9; 4]).unwrap();
        assert_eq!(read(4092, 8).unwrap(), [7, 7, 9, 9, 9, 9, 7, 7]);
        frozen.set_len(4096).unwrap();
        frozen.set_len(10_000).unwrap();
        assert_eq!(read(4094, 4).unwrap(), [9, 9, 0, 0]);
        assert_eq!(read(9_000, 2).unwrap(), [0, 0]);
        assert_eq!(std::fs::read(file.path()).unwrap(), vec![7; 5000]);
        assert!(File::open(file.path()).unwrap().try_lock().is_err());
    }
}
