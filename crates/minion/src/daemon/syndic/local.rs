//! The master on this machine, as a syndic talks to it: its control socket, without blocking.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use halite_client::{Answer, Request, SOCKET, encode, read_frame};
use halite_value::Value;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};

/// Answers waiting for whoever asked; then the master waits.
const WAITING: usize = 1024;

type Streams = Mutex<HashMap<u64, mpsc::Sender<Answer>>>;

/// One connection. It ends when it is dropped, and every stream on it ends with it.
pub(super) struct Link {
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    next: AtomicU64,
    streams: Arc<Streams>,
    reading: tokio::task::AbortHandle,
}

impl Link {
    /// Connects to the master whose sockets are in `sock_dir`.
    pub(super) async fn open(sock_dir: &Path) -> io::Result<Self> {
        let (reader, writer) = UnixStream::connect(sock_dir.join(SOCKET)).await?.into_split();
        let streams = Arc::new(Streams::default());
        let reading = tokio::spawn(read(reader, Arc::clone(&streams))).abort_handle();
        let writer = tokio::sync::Mutex::new(writer);
        Ok(Self { writer, next: AtomicU64::new(0), streams, reading })
    }

    /// Tells whether the master is still at the other end.
    pub(super) fn is_open(&self) -> bool {
        !self.reading.is_finished()
    }

    /// Asks; the answers come one by one, and end when the connection does.
    pub(super) async fn ask(&self, request: &Request) -> io::Result<mpsc::Receiver<Answer>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let message = request.write();
        message.insert("id", id);
        let frame = encode(&message.into()).map_err(io::Error::other)?;
        let (answers, stream) = mpsc::channel(WAITING);
        self.streams.lock().insert(id, answers);
        // What came between the end of the reader and the line above would wait for ever.
        if !self.is_open() {
            self.streams.lock().clear();
        }
        self.writer.lock().await.write_all(&frame).await?;
        Ok(stream)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reading.abort();
        self.streams.lock().clear();
    }
}

async fn read(mut reader: OwnedReadHalf, streams: Arc<Streams>) {
    let mut buffer = bytes::BytesMut::new();
    let mut chunk = vec![0; 64 << 10];
    'connection: loop {
        loop {
            let message = match read_frame(&mut buffer) {
                Ok(None) => break,
                Ok(Some(Value::Dict(message))) => message,
                Ok(Some(_)) | Err(_) => break 'connection,
            };
            let Ok((id, answer)) = Answer::read(&message) else { continue };
            let is_last = !matches!(answer, Answer::Item(_));
            let stream = match is_last {
                true => streams.lock().remove(&id),
                false => streams.lock().get(&id).cloned(),
            };
            if let Some(stream) = stream
                && stream.send(answer).await.is_err()
            {
                streams.lock().remove(&id);
            }
        }
        match reader.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => buffer.extend_from_slice(&chunk[..read]),
        }
    }
    streams.lock().clear();
}
