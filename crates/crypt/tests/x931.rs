//! X9.31 against numbers computed with Python's integers (`record/x931.py`), for modulus lengths of every kind.

mod common;

use common::{list, text, unhex};
use halite_crypt::{Error, PrivateKey};
use serde_json::Value;

#[test]
fn vectors() {
    let recorded: Value = serde_json::from_str(include_str!("data/x931.json")).expect("JSON");
    let mut counted = (0, 0);
    for key in list(&recorded["keys"]) {
        let private = PrivateKey::from_pem(text(&key["pem"]).as_bytes(), None).expect("key");
        for vector in list(&key["vectors"]) {
            let message = unhex(&vector["message"]);
            let ours = private.sign_x931(&message);
            if vector["sig"].is_null() {
                // The block is not below the modulus: such a key cannot sign, and says so.
                assert!(matches!(ours, Err(Error::Sign)), "{} bits", key["bits"]);
                counted.1 += 1;
                continue;
            }
            let expected = unhex(&vector["sig"]);
            assert_eq!(ours.expect("sign"), expected, "{} bits", key["bits"]);
            assert_eq!(private.public().recover_x931(&expected).expect("recover"), message);
            counted.0 += 1;
        }
        let size = private.public().bits().div_ceil(8) as usize;
        assert!(matches!(private.sign_x931(&vec![1; size - 1]), Err(Error::TooLong)));
    }
    assert_eq!(counted, (28, 14));
}
