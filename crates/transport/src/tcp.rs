//! Tcp.
use bytes::Bytes;
pub(crate) fn publication(body: &Bytes) -> Bytes {
    body.clone()
}
