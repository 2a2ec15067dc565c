//! A disk that dies at any moment: what was acknowledged is there afterwards, what is there is
//! whole, and nothing is called a duplicate that is not stored.

use std::{
    collections::HashSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use halite_store::{Embedded, Op, Options, Retention, Store};
use halite_value::{Value, dict};
use parking_lot::Mutex;
use redb::StorageBackend;

/// A disk in memory. What was not synced may or may not survive a crash.
#[derive(Debug, Default)]
struct Disk {
    now: Mutex<Vec<u8>>,
    synced: Mutex<Vec<u8>>,
    unsynced: Mutex<Vec<(u64, Vec<u8>)>>,
    /// Operations until it dies; 0 for never.
    left: AtomicU64,
    dead: AtomicBool,
    full: AtomicBool,
    syncs: AtomicU64,
}

#[derive(Clone, Debug)]
struct Handle(Arc<Disk>);

impl Disk {
    fn step(&self) -> io::Result<()> {
        if self.dead.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        let left = self.left.load(Ordering::SeqCst);
        if left > 0 {
            self.left.store(left - 1, Ordering::SeqCst);
            if left == 1 {
                self.dead.store(true, Ordering::SeqCst);
                return Err(io::Error::other("the disk is gone"));
            }
        }
        Ok(())
    }

    /// What is on the platters after a crash: the synced state, and some of the later writes.
    fn after_crash(&self, luck: u64) -> Self {
        let mut image = self.synced.lock().clone();
        let mut luck = luck | 1;
        for (offset, bytes) in &*self.unsynced.lock() {
            luck ^= luck << 13;
            luck ^= luck >> 7;
            luck ^= luck << 17;
            if luck.is_multiple_of(2) {
                let end = *offset as usize + bytes.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[*offset as usize..end].copy_from_slice(bytes);
            }
        }
        let disk = Self::default();
        *disk.now.lock() = image.clone();
        *disk.synced.lock() = image;
        disk
    }
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.now.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let now = self.0.now.lock();
        let start = offset as usize;
        let bytes = now.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.step()?;
        if self.0.full.load(Ordering::SeqCst) && len > self.0.now.lock().len() as u64 {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.0.now.lock().resize(len as usize, 0);
        // A length is metadata of the file system's journal: taken as durable.
        self.0.synced.lock().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.step()?;
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        *self.0.synced.lock() = self.0.now.lock().clone();
        self.0.unsynced.lock().clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.step()?;
        let mut now = self.0.now.lock();
        let end = offset as usize + data.len();
        if now.len() < end {
            now.resize(end, 0);
        }
        now[offset as usize..end].copy_from_slice(data);
        self.0.unsynced.lock().push((offset, data.to_vec()));
        Ok(())
    }
}

fn open(disk: &Arc<Disk>, retention: Retention) -> Result<Embedded, halite_store::Error> {
    let handle = Handle(disk.clone());
    let options = Options { retention, on_expired: None };
    Embedded::with_backend(move || handle.clone(), options)
}

fn endless() -> Retention {
    Retention { job_age: std::time::Duration::ZERO, ..Retention::default() }
}

fn ret(jid: u32, minion: u32) -> Op {
    Op::Return {
        jid: format!("{jid:020}"),
        minion: format!("m{minion}"),
        load: dict! { "return" => format!("{jid}-{minion}"), "pad" => "x".repeat(300) },
    }
}

#[test]
fn a_dying_disk_keeps_what_was_acknowledged() {
    let mut deaths = 0;
    for steps in 1.. {
        let disk = Arc::new(Disk::default());
        drop(open(&disk, endless()).expect("a fresh disk"));
        disk.left.store(steps, Ordering::SeqCst);
        let mut acknowledged = HashSet::new();
        if let Ok(store) = open(&disk, endless()) {
            for jid in 0..4 {
                let writes: Vec<_> =
                    (0..3).map(|minion| (minion, store.write(vec![ret(jid, minion)]))).collect();
                for (minion, written) in writes {
                    if let Ok(receipt) = written.wait() {
                        assert_eq!(receipt.duplicates, 0, "called a duplicate, never stored");
                        acknowledged.insert((jid, minion));
                    }
                }
            }
        }
        let died = disk.dead.load(Ordering::SeqCst);
        deaths += u32::from(died);
        for luck in [1, 77, 4242] {
            let disk = Arc::new(disk.after_crash(luck));
            let store = open(&disk, endless()).expect("a crash can be recovered from");
            for jid in 0..4 {
                let found = store.returns(&format!("{jid:020}")).unwrap();
                for (minion, load) in &found {
                    let minion: u32 = minion[1..].parse().unwrap();
                    let expected = Value::from(format!("{jid}-{minion}"));
                    assert_eq!(load.get("return"), Some(expected), "half a record");
                }
                for minion in 0..3 {
                    let is_there = found.iter().any(|(id, _)| *id == format!("m{minion}"));
                    assert!(
                        is_there || !acknowledged.contains(&(jid, minion)),
                        "lost {jid}-{minion} after {steps} steps"
                    );
                    // The minion sends it again: stored, or known to be.
                    let receipt = store.write(vec![ret(jid, minion)]).wait().unwrap();
                    assert_eq!(receipt.duplicates, usize::from(is_there));
                }
                assert_eq!(store.returns(&format!("{jid:020}")).unwrap().len(), 3);
            }
        }
        if !died {
            break;
        }
    }
    assert!(deaths > 10, "the disk died only {deaths} times");
}

#[test]
fn writes_share_syncs() {
    let disk = Arc::new(Disk::default());
    let store = open(&disk, endless()).unwrap();
    let before = disk.syncs.load(Ordering::SeqCst);
    let writes: Vec<_> = (0..2000).map(|n| store.write(vec![ret(n / 50, n % 50)])).collect();
    for written in writes {
        written.wait().unwrap();
    }
    let syncs = disk.syncs.load(Ordering::SeqCst) - before;
    assert!(syncs < 400, "{syncs} syncs for 2000 returns");
    assert_eq!(store.returns(&format!("{:020}", 3)).unwrap().len(), 50);
}

#[test]
fn a_full_disk_is_survived() {
    let disk = Arc::new(Disk::default());
    let store = open(&disk, endless()).unwrap();
    let mut n = 0;
    let mut put = |store: &Embedded| {
        n += 1;
        store.write(vec![ret(n, 0)]).wait()
    };
    for _ in 0..200 {
        put(&store).unwrap();
    }
    disk.full.store(true, Ordering::SeqCst);
    let outcomes: Vec<bool> = (0..3000).map(|_| put(&store).is_ok()).collect();
    // Room is made by letting go of the oldest; the newest keep being stored.
    assert!(outcomes.iter().filter(|ok| **ok).count() > 2900);
    disk.full.store(false, Ordering::SeqCst);
    put(&store).unwrap();
    assert!(store.returns(&format!("{:020}", 3201)).unwrap().len() == 1);
}

#[test]
fn a_file_that_is_no_database_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("master.redb"), vec![7; 100_000]).unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    let job = Op::Job { jid: "20990101000000000001".into(), load: dict! { "fun" => "test.ping" } };
    store.write(vec![job]).wait().unwrap();
    assert!(store.job("20990101000000000001").unwrap().is_some());
    let names = std::fs::read_dir(folder.path()).unwrap();
    let aside = names
        .filter_map(Result::ok)
        .any(|entry| entry.file_name().to_string_lossy().contains("damaged"));
    assert!(aside, "people may want to look at it");
}
