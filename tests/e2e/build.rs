//! Takes the state out of CONTRIBUTING.md, so that `tests/contributing.rs` can compile and run what
//! newcomers are told to type.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=../../CONTRIBUTING.md");
    let page = fs::read_to_string("../../CONTRIBUTING.md").expect("the guide is committed");
    let code = page.split("```rust\n").nth(1).expect("the guide shows a state");
    // The block ends with a fence at the start of a line; those in doc comments are further in.
    let code: String = code
        .split("\n```")
        .next()
        .unwrap_or_default()
        .lines()
        // A module's own comment cannot stand inside `include!`.
        .filter(|line| !line.starts_with("//!"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("motd.rs"), code).expect("OUT_DIR can be written");
}
