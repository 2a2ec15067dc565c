//! YAML from anywhere: state trees, configuration, command lines. What loads must dump, and what
//! was dumped must load again as an equal value.
#![no_main]

use halite_fuzz::timed;
use halite_value::yaml;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    timed(data, || {
        let Ok(value) = yaml::load_str(text) else { return };
        let Ok(dumped) = yaml::dump(&value, &yaml::DumpOptions::default()) else { return };
        let again = yaml::load_str(&dumped).expect("what we dump can be loaded");
        assert!(again == value || dumped.contains(".nan"), "{dumped}");
    });
});
