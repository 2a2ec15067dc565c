//! Messages from the network, in all three readings. What was read is written in both dialects and
//! read back.
#![no_main]

use halite_fuzz::timed;
use halite_value::msgpack::{Dialect, Text, from_slice, to_vec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    timed(data, || {
        for text in [Text::Guess, Text::Typed, Text::KeepBytes] {
            let Ok(value) = from_slice(data, text) else { continue };
            for dialect in [Dialect::Raw, Dialect::Modern] {
                let Ok(bytes) = to_vec(&value, dialect) else { continue };
                from_slice(&bytes, text).expect("what we write can be read");
            }
        }
    });
});
