//! Jobs that wait for their turn, for whoever looks at the disk.
//!
//! Salt keeps what waits in files: `cachedir/queues/<master>/state_queue/queued_<µs>_<jid>.p` for a
//! state run behind another one, `job_queue` beside it for what `process_count_max` holds up. With
//! us a waiting job is in the minion's memory and journal; the file says that it is there and goes
//! when it begins. Nothing of ours reads it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use halite_spec::{Host, host::Write};
use halite_value::{
    Value,
    msgpack::{self, Dialect},
};

/// The folder of a queue: `state_queue` or `job_queue`. Masters that are several have one name.
pub fn queue_folder(cachedir: &Path, master: Option<&Value>, queue: &str) -> PathBuf {
    let name = match master {
        None | Some(Value::Null) => String::new(),
        Some(Value::Str(name)) => name.to_string(),
        Some(other) => match other.items_of_sequence() {
            Some(all) => all.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
            None => other.to_string(),
        },
    };
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let safe: String = name.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    // A name of dots would lead out of the folder.
    let safe = if safe.trim_matches('.').is_empty() { "_default".to_owned() } else { safe };
    cachedir.join("queues").join(safe).join(queue)
}

/// The file of a job that waits; gone when this is.
pub struct Queued {
    host: Arc<dyn Host>,
    path: PathBuf,
}

impl Queued {
    /// Writes the file. That it cannot be written is no reason not to wait.
    pub fn new(host: &Arc<dyn Host>, folder: &Path, jid: &str, load: &Value) -> Self {
        let since = host.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = folder.join(format!("queued_{}_{jid}.p", since.as_micros()));
        if let Ok(bytes) = msgpack::to_vec(load, Dialect::Modern) {
            let how = Write { mode: Some(0o600), ..Write::default() };
            let written = host
                .create_dirs(folder, Some(0o755))
                .and_then(|()| host.write(&path, &bytes, &how));
            if let Err(error) = written {
                tracing::warn!("That job {jid} waits is not written down: {error}");
            }
        }
        Self { host: Arc::clone(host), path }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        if let Err(error) = self.host.remove_file(&self.path)
            && !error.is_missing()
        {
            tracing::warn!("{} stays behind: {error}", self.path.display());
        }
    }
}

/// Removes what an earlier minion left in the queues of its master, genuine Salt's lock included: the
/// journal knows what became of the jobs.
pub fn clear_queues(host: &dyn Host, cachedir: &Path, master: Option<&Value>) {
    for queue in ["state_queue", "job_queue"] {
        let folder = queue_folder(cachedir, master, queue);
        for name in host.read_dir(&folder).unwrap_or_default() {
            if name.to_string_lossy().starts_with("queued_") {
                let _ = host.remove_file(&folder.join(&name));
            }
        }
    }
    let _ = host.remove_file(&queue_folder(cachedir, master, "queue.lock"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_a_folder_for_each_master() {
        let check = |master: Option<Value>, expected: &str| {
            let folder = queue_folder(Path::new("/c"), master.as_ref(), "state_queue");
            assert_eq!(folder, Path::new(&format!("/c/queues/{expected}/state_queue")));
        };
        check(Some("127.0.0.1".into()), "127.0.0.1");
        check(Some("salt:4506".into()), "salt_4506");
        check(Some(Value::list(["a", "b"])), "a_b");
        check(None, "_default");
        check(Some("..".into()), "_default");
    }
}
