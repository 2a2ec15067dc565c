//! `file_roots` and `pillar_roots`: environments and their folders.

use halite_value::{Dict, Value};

use crate::{Machine, Opts};

/// Brings an option of folders per environment into shape.
///
/// Environment names become text, folders with wild cards become the folders they match. What is
/// no list of folders becomes an empty one: Salt drops a lone string as well.
pub(crate) fn normalize(
    opts: &mut Opts,
    option: &str,
    called: &str,
    fallback: &str,
    machine: &dyn Machine,
) {
    match opts.get(option) {
        Some(Value::Dict(roots)) => opts.set(option, Value::Dict(environments(&roots, machine))),
        _ => {
            let message =
                format!("The {called} parameter is not properly formatted, using defaults");
            opts.adjusted(option, message);
            let base: Dict = [("base", Value::list([fallback]))].into_iter().collect();
            opts.set(option, base);
        }
    }
}

fn environments(roots: &Dict, machine: &dyn Machine) -> Dict {
    let normal = Dict::new();
    // differs: Salt dies when an environment's name is a number.
    for (env, folders) in roots {
        let folders = folders.items_of_sequence().unwrap_or_default();
        let found = folders.iter().flat_map(|folder| expand(folder, machine));
        normal.insert(env.value().to_str(), Value::list(found));
    }
    normal
}

fn expand(folder: &Value, machine: &dyn Machine) -> Vec<Value> {
    match folder.as_str() {
        Some(pattern) if pattern.contains(['*', '?', '[']) => {
            let mut found = machine.glob(pattern);
            found.sort();
            found.into_iter().map(Value::from).collect()
        }
        _ => vec![folder.clone()],
    }
}
