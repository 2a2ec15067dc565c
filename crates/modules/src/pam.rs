//! `pam`: the rules of pluggable authentication.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, module};
use halite_value::{Value, dict};

module! {
    /// Rules of pluggable authentication.
    "pam": read_file,
}

/// Reads one rule: interface, control flag (a word, or several in brackets), module, arguments.
fn rule(line: &str) -> Option<Value> {
    let mut words = line.split_whitespace();
    let interface = words.next()?;
    let first = words.next()?;
    let mut flag = first.replace('[', "");
    if first.starts_with('[') {
        for word in words.by_ref() {
            flag.push(' ');
            flag.push_str(&if word.ends_with(']') { word.replace(']', "") } else { word.into() });
            if word.ends_with(']') {
                break;
            }
        }
    } else {
        flag = first.to_owned();
    }
    let module = words.next()?;
    Some(dict! {
        "interface" => interface, "control_flag" => flag, "module" => module,
        "arguments" => Value::list(words),
    })
}

/// Return the rules of a file; False if there is none.
///
/// ```console
/// $ salt '*' pam.read_file /etc/pam.d/login
/// ```
#[function]
pub fn read_file(
    cx: &Cx,
    /// The file.
    file_name: String,
) -> Result<Value> {
    let path = Path::new(&file_name);
    if file_name.is_empty() || !cx.host.exists(path)? {
        tracing::error!("File \"{file_name}\" does not exist");
        return Ok(false.into());
    }
    let mut rules = Vec::new();
    for line in cx.host.read_text(path)?.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let rule = rule(line);
        rules.push(rule.ok_or_else(|| Error::raised("IndexError", "list index out of range"))?);
    }
    Ok(Value::list(rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_value::json;

    #[test]
    fn rules() {
        let check = |line: &str, expected: &str| {
            let own = rule(line).unwrap_or_default();
            assert_eq!(own, json::from_str(expected).unwrap(), "{line}");
        };
        check(
            "auth required pam_env.so envfile=/etc/x",
            r#"{"interface": "auth", "control_flag": "required", "module": "pam_env.so",
                "arguments": ["envfile=/etc/x"]}"#,
        );
        check(
            "auth [success=1 default=ignore] pam_unix.so nullok try_first",
            r#"{"interface": "auth", "control_flag": "success=1 default=ignore",
                "module": "pam_unix.so", "arguments": ["nullok", "try_first"]}"#,
        );
        check(
            "@include common-auth x",
            r#"{"interface": "@include", "control_flag": "common-auth", "module": "x",
                "arguments": []}"#,
        );
        check("@include common-auth", "null");
    }
}
