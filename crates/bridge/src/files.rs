//! The Python files that are sent to the interpreter; `build.rs` lists them.

use halite_value::{Dict, Value};

/// Runs first, by `-c`.
pub(crate) const BOOT: &str = include_str!("../python/boot.py");

/// Module name, source, and whether it is a package.
const FILES: &[(&str, &str, bool)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Returns all files as the boot code wants them: name → [file, source, package].
pub(crate) fn all() -> Value {
    let files: Dict = FILES
        .iter()
        .map(|(name, source, package)| {
            // The loader leaves out frames of `halite_*` files; `present()` looks for `<halite`.
            let file = match name.starts_with("halite_") {
                true => format!("{name}.py"),
                false => format!("<halite>/{}", name.replace('.', "/")),
            };
            (*name, Value::list([file.into(), Value::str(source), Value::Bool(*package)]))
        })
        .collect();
    files.into()
}
