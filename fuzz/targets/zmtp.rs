//! Bytes from a socket: greeting, frames, commands, messages of the extension, and the framing of
//! the TCP transport. The input arrives in two pieces, split where the first byte says: nothing may
//! depend on how the network cut it.
//!
//! The byte level is private to `transport`, so its files are compiled in here by their path.
#![no_main]
#![allow(dead_code, reason = "only the reading half is fuzzed")]

use bytes::BytesMut;
use halite_fuzz::timed;
use libfuzzer_sys::fuzz_target;

mod peer {
    /// What the files name of `transport::peer`.
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) enum Ended {
        Malformed(String),
        TooLarge { size: u64, limit: usize },
    }
}

#[path = "../../crates/transport/src/zeromq/zmtp.rs"]
mod zmtp;

#[path = "../../crates/transport/src/zeromq/extension.rs"]
mod extension;

#[path = "../../crates/transport/src/msgpack.rs"]
mod msgpack;

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&cut, data)) = data.split_first() else { return };
    timed(data, || {
        let whole = frames(&[data]);
        let (first, second) = data.split_at(usize::from(cut).min(data.len()));
        assert_eq!(frames(&[first, second]), whole, "the cut made a difference");
        let mut scanner = msgpack::Scanner::default();
        let _ = scanner.scan(data, LIMIT);
    });
});

/// Reads a connection's bytes to the end or to the first error.
fn frames(pieces: &[&[u8]]) -> Vec<String> {
    let mut seen = Vec::new();
    let mut buffer = BytesMut::new();
    let mut greeted = false;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if !greeted {
            match zmtp::take_greeting(&mut buffer) {
                Ok(Some(version)) => seen.push(format!("version {version}")),
                Ok(None) => continue,
                // Frames are read all the same: few inputs begin with a good greeting.
                Err(_) => {}
            }
            greeted = true;
        }
        loop {
            match zmtp::take_frame(&mut buffer, LIMIT) {
                Ok(zmtp::Front::Frame(frame)) => seen.push(one(&frame)),
                Ok(zmtp::Front::Wants(more)) => {
                    assert!(more > 0, "a frame that wants nothing is complete");
                    break;
                }
                Err(error) => {
                    seen.push(format!("{error:?}"));
                    return seen;
                }
            }
        }
    }
    seen
}

fn one(frame: &zmtp::Frame) -> String {
    if !frame.command {
        return format!("{:?} {:?}", frame.more, extension::parse(frame.body.clone()));
    }
    match zmtp::split_command(&frame.body) {
        Ok((b"READY", data)) => format!("{:?}", zmtp::properties(data)),
        Ok((b"PING", data)) => format!("{:?}", zmtp::answer_ping(&data)),
        other => format!("{other:?}"),
    }
}
