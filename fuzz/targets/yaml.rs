//! YAML from anywhere: state trees, configuration, command lines. What loads must dump, and what
//! was dumped must load again as the same value.
#![no_main]

use halite_fuzz::timed;
use halite_value::yaml;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    timed(data, || {
        let Ok(value) = yaml::load_str(text) else { return };
        let options = yaml::DumpOptions { sort_keys: false, ..yaml::DumpOptions::default() };
        let Ok(dumped) = yaml::dump(&value, &options) else { return };
        let again = yaml::load_str(&dumped).expect("what we dump can be loaded");
        // By `repr`: values may contain themselves, and NaN is not equal to itself. Sets are sorted.
        if !dumped.contains("!!set") {
            assert_eq!(again.repr(), value.repr(), "{dumped}");
        }
    });
});
