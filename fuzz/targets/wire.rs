//! Messages after decryption, and those that are never encrypted. The first byte picks what they are
//! taken for. What is understood can be written again.
#![no_main]

use halite_fuzz::timed;
use halite_value::{
    Value,
    msgpack::{Text, from_slice},
};
use halite_wire::{
    AuthReply, AuthRequest, ClientRequest, Envelope, Event, Jid, MinionId, MinionRequest,
    Publication, Return, SealedPublication, Tag,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    timed(data, || match kind % 5 {
        0 => {
            let _ = Envelope::decode(data).map(|envelope| envelope.encode());
        }
        1 => {
            let _ = SealedPublication::decode(data).map(|sealed| sealed.encode());
        }
        2 => {
            let _ = Event::decode(data).map(|event| event.encode());
        }
        3 => {
            let _ = AuthReply::decode(data);
            let _ = AuthReply::unwrap_signed(data);
        }
        _ => loads(data),
    });
});

/// Everything that is read from a dict.
fn loads(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = (MinionId::new(text), Jid::new(text));
        assert_eq!(Tag::from(text).to_string(), text);
    }
    let Ok(Value::Dict(load)) = from_slice(data, Text::Guess) else { return };
    let _ = AuthRequest::read(&load).map(|request| request.write());
    let _ = ClientRequest::read(&load);
    let _ = MinionRequest::read(&load);
    let _ = Publication::read(&load).map(|publication| publication.write());
    let _ = Return::read(&load);
}
