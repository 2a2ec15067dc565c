//! Watching files with the kernel's inotify.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use halite_spec::host::{Error, FileEvent, FileWatch, Result};
use nix::{
    errno::Errno,
    sys::inotify::{AddWatchFlags, InitFlags, Inotify as Kernel, WatchDescriptor},
};

/// An inotify instance.
pub(crate) struct Inotify {
    kernel: Kernel,
    watches: Vec<(i32, WatchDescriptor)>,
}

impl Inotify {
    pub(crate) fn new() -> Result<Self> {
        let flags = InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK;
        let kernel = Kernel::init(flags)
            .map_err(|error| Error::Other(format!("files cannot be watched: {error}")))?;
        Ok(Self { kernel, watches: Vec::new() })
    }
}

/// The number of a watch; `nix` keeps it to itself, but for its `Debug`.
fn number(watch: WatchDescriptor) -> i32 {
    let text = format!("{watch:?}");
    let digits = |c: char| c.is_ascii_digit() || c == '-';
    let start = text.find(digits).unwrap_or(text.len());
    let end = text.get(start..).and_then(|rest| rest.find(|c| !digits(c)));
    let end = end.map_or(text.len(), |end| start + end);
    text.get(start..end).and_then(|number| number.parse().ok()).unwrap_or(-1)
}

impl FileWatch for Inotify {
    fn add(&mut self, path: &Path, mask: u32) -> Result<i32> {
        let flags = AddWatchFlags::from_bits_truncate(mask);
        let watch = self.kernel.add_watch(path, flags).map_err(|error| {
            let source = match error {
                Errno::ENOSPC => io::Error::other(
                    "the limit of watches is reached (raise fs.inotify.max_user_watches)",
                ),
                other => io::Error::from_raw_os_error(other as i32),
            };
            Error::io("watch", path, source)
        })?;
        let number = number(watch);
        self.watches.retain(|(known, _)| *known != number);
        self.watches.push((number, watch));
        Ok(number)
    }

    fn remove(&mut self, watch: i32) -> Result<()> {
        if let Some(place) = self.watches.iter().position(|(known, _)| *known == watch) {
            let (_, watch) = self.watches.swap_remove(place);
            // The kernel may have removed it with the file.
            let _ = self.kernel.rm_watch(watch);
        }
        Ok(())
    }

    fn events(&mut self) -> Result<Vec<FileEvent>> {
        let mut all = Vec::new();
        loop {
            match self.kernel.read_events() {
                Ok(events) => all.extend(events.into_iter().map(|event| FileEvent {
                    watch: number(event.wd),
                    mask: event.mask.bits(),
                    name: event.name,
                })),
                Err(Errno::EAGAIN) => return Ok(all),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(Error::Other(format!("cannot read changes: {error}"))),
            }
            // One round is enough while a program writes without end.
            if all.len() > 65_536 {
                return Ok(all);
            }
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.kernel.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut inotify = Inotify::new().unwrap();
        let create = AddWatchFlags::IN_CREATE.bits();
        let watch = inotify.add(folder.path(), create).unwrap();
        assert_eq!(inotify.events().unwrap(), []);
        std::fs::write(folder.path().join("a"), "x").unwrap();
        let expected = FileEvent { watch, mask: create, name: Some("a".into()) };
        assert_eq!(inotify.events().unwrap(), [expected]);
        inotify.remove(watch).unwrap();
        assert!(inotify.add(&folder.path().join("missing"), create).is_err());
    }
}
