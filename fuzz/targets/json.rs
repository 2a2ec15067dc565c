//! JSON from the API, the command line and templates. What loads is written and read back equal.
#![no_main]

use halite_fuzz::timed;
use halite_value::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    timed(data, || {
        let Ok(value) = json::from_str(text) else { return };
        let Ok(written) = json::to_string(&value) else { return };
        let again = json::from_str(&written).expect("what we write can be read");
        // NaN is not equal to itself, in Python as here.
        assert!(again == value || written.contains("NaN"), "{written}");
    });
});
