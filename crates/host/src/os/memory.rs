//! Memory that a daemon at rest does not need.
//!
//! Starting touches most of the executable once: the kernel maps every page of it that is read, with
//! its neighbours, and counts them as the process's own. Afterwards a few of them are enough. Those
//! that hold nothing but the file's content can be let go: what is needed again comes back from the
//! file, without a copy as long as the kernel still has it. Freed heap goes back, too.
#![expect(unsafe_code, reason = "madvise and the allocator's purge")]

/// Lets go of mapped file pages and freed heap. For a process that is going to wait.
pub fn give_back() {
    purge();
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (start, len) in untouched(&maps) {
        // SAFETY: the range is mapped from a file, cannot be written and was never changed (it has no
        // anonymous page): whoever reads it again reads the same bytes. If it were gone meanwhile,
        // the call would fail.
        unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_DONTNEED) };
    }
}

/// Returns freed heap to the system. The allocator does so by itself, but only while it is used.
fn purge() {
    // 4096 stands for all arenas (`MALLCTL_ARENAS_ALL`).
    let name = c"arena.4096.purge";
    let nothing = std::ptr::null_mut();
    // SAFETY: the name ends with a zero; this one reads and writes nothing else, and returns only
    // memory that nobody holds.
    unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), nothing, nothing.cast(), nothing, 0) };
}

/// Finds mappings of files that cannot be written and never were: start and length.
fn untouched(smaps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
        if let Some((start, end)) = first.split_once('-')
            && let (Ok(start), Ok(end)) =
                (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16))
        {
            let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
            let is_plain = second.starts_with("r-") && second.ends_with('p');
            current = (is_file && is_plain && end > start).then_some((start, end - start));
        } else if first == "Anonymous:" && second == "0" {
            found.extend(current.take());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_file_still_holds_is_let_go() {
        let smaps = "\
10000-30000 r-xp 00000000 fe:00 99 /usr/bin/halite
Rss:                 128 kB
Anonymous:             0 kB
30000-40000 r--p 00020000 fe:00 99 /usr/bin/halite
Anonymous:            16 kB
40000-50000 rw-p 00030000 fe:00 99 /usr/bin/halite
Anonymous:             0 kB
50000-60000 r--p 00000000 00:00 0
Anonymous:             0 kB
60000-70000 r--s 00000000 fe:00 98 /dev/shm/shared
Anonymous:             0 kB
";
        assert_eq!(untouched(smaps), [(0x10000, 0x20000)]);
    }

    #[test]
    fn the_process_goes_on() {
        give_back();
        let sum: usize = include_str!("memory.rs").bytes().map(usize::from).sum();
        assert!(sum > 0);
    }
}
