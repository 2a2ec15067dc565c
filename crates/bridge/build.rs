//! Lists the Python files of this crate, so that `src/files.rs` can embed them: nobody keeps the
//! list by hand.

use std::{env, fmt::Write as _, fs, path::Path};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("python");
    println!("cargo::rerun-if-changed=python");
    let mut list = String::from("&[\n");
    for entry in sorted(&root) {
        if entry.ends_with(".py") && entry != "boot.py" {
            add(&mut list, entry.trim_end_matches(".py"), &root.join(&entry), false);
        }
    }
    walk(&mut list, "", &root.join("shim"));
    list.push(']');
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("files.rs"), list).expect("OUT_DIR can be written");
}

fn sorted(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Adds the modules of a package and what lies below it.
fn walk(list: &mut String, package: &str, folder: &Path) {
    for entry in sorted(folder) {
        let path = folder.join(&entry);
        let dotted = |name: &str| match package {
            "" => name.to_owned(),
            package => format!("{package}.{name}"),
        };
        if path.is_dir() {
            if path.join("__init__.py").is_file() {
                walk(list, &dotted(&entry), &path);
            }
        } else if entry == "__init__.py" {
            add(list, package, &path, true);
        } else if let Some(name) = entry.strip_suffix(".py") {
            add(list, &dotted(name), &path, false);
        }
    }
}

fn add(list: &mut String, name: &str, path: &Path, is_package: bool) {
    println!("cargo::rerun-if-changed={}", path.display());
    writeln!(list, "    ({name:?}, include_str!({path:?}), {is_package}),")
        .expect("writing to memory cannot fail");
}
