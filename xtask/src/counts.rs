//! Prints how many recorded cases each file in `tests/spec` holds. The runners beside the code
//! fail unless every one of them passes; this says what «every» is.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// Prints one line per case file.
pub(crate) fn run(root: &Path) -> Result<()> {
    for file in crate::tree::files(&root.join("tests/spec"))? {
        if file.extension().is_none_or(|ext| ext != "json") {
            continue;
        }
        let name = crate::tree::shown(root, &file);
        let data: Value =
            serde_json::from_str(&fs::read_to_string(&file)?).with_context(|| name.clone())?;
        // Other data (lists of names) lies there too.
        if let Some(cases) = data.as_array() {
            println!("{name}: {}", describe(cases));
        }
    }
    Ok(())
}

/// «257 cases, 54 of them must fail (228 load, 29 dump)».
fn describe(cases: &[Value]) -> String {
    let failing = cases.iter().filter(|case| case.get("error_type").is_some()).count();
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for kind in cases.iter().filter_map(|case| case.get("kind")?.as_str()) {
        match kinds.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    format!("{} cases, {failing} of them must fail{kinds}", cases.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_counted_apart() {
        let cases = [
            json!({"kind": "load"}),
            json!({"kind": "dump"}),
            json!({"kind": "load", "error_type": "X"}),
        ];
        assert_eq!(describe(&cases), "3 cases, 1 of them must fail (2 load, 1 dump)");
        assert_eq!(describe(&[json!({})]), "1 cases, 0 of them must fail");
    }
}
