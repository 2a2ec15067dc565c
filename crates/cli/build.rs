//! Tells the linker where the executable is to lie: at a fixed address, as Go's do.
//!
//! The tables of functions, options and arguments hold a hundred thousand pointers. In an executable that can lie
//! anywhere each of them is computed at every start: two of three milliseconds, and four megabytes that would
//! otherwise stay in the file. Heap, stack and libraries are placed at random all the same.
//!
//! In a release the functions that commands call stand together at the front, so that a command brings six megabytes
//! less of the file into memory (`cargo xtask layout`, docs/decisions/0023-functions-in-order.md).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if is("PROFILE", "release") {
            let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
            println!("cargo:rerun-if-changed=layout.ld");
            println!("cargo:rustc-link-arg-bins=-T{folder}/layout.ld");
        }
    }
}
