//! Simulated.
use bytes::Bytes;
pub(crate) fn publication(body: &Bytes) -> Bytes {
    body.clone()
}
pub(crate) fn notice(body: Bytes) -> [Bytes; 2] {
    [body.clone(), body]
}
