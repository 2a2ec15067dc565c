//! `logrotate`: the configuration of the program of that name.
//!
//! Files that `include` names are read, too; a change is made in the file asked for.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, List, Value};

use crate::file::text::read_to_edit;

module! {
    /// The configuration of logrotate.
    "logrotate": show_conf, get, set,
}

/// A word of the configuration: a number, a flag or a text.
fn value_of(words: &[&str]) -> Value {
    match words {
        [] => true.into(),
        [one] => one.parse::<i64>().map_or_else(|_| (*one).into(), Value::from),
        many => many.join(" ").into(),
    }
}

fn read(cx: &Cx, path: &Path, into: &Dict, depth: usize) -> Result<()> {
    let Some(text) = cx.host.read_text_if_there(path)? else {
        return Err(Error::failed(format!(
            "[Errno 2] No such file or directory: '{}'",
            path.display()
        )));
    };
    let mut block: Option<Dict> = None;
    let mut script = false;
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let first = words.first().copied().unwrap_or_default();
        if script {
            script = first != "endscript";
            continue;
        }
        if matches!(first, "prerotate" | "postrotate" | "firstaction" | "lastaction" | "preremove")
        {
            script = true;
            continue;
        }
        if line == "}" {
            block = None;
        } else if let Some(names) = line.strip_suffix('{') {
            let own = Dict::new();
            for name in names.split_whitespace() {
                into.insert(name, &own);
            }
            block = Some(own);
        } else if first == "include" && block.is_none() {
            let Some(target) = words.get(1).filter(|_| depth < 5) else { continue };
            let target = Path::new(target);
            let includes = into.get_or_insert_with("include files", Value::dict);
            let names = match cx.host.is_dir(target)? {
                true => cx.host.read_dir(target)?,
                false => Vec::new(),
            };
            let list = List::new();
            for name in names {
                read(cx, &target.join(&name), into, depth + 1)?;
                list.push(name.to_string_lossy().into_owned());
            }
            if let Value::Dict(includes) = includes {
                includes.insert(target.display().to_string(), list);
            }
            into.insert("include", target.display().to_string());
        } else {
            let rest = words.get(1..).unwrap_or_default();
            block.as_ref().unwrap_or(into).insert(first, value_of(rest));
        }
    }
    Ok(())
}

/// A line of the configuration; nothing for what is switched off.
fn line_of(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some(key.to_owned()),
        Value::Bool(false) => None,
        Value::Str(text) if text.is_empty() => Some(key.to_owned()),
        other => Some(format!("{key} {other}")),
    }
}

/// Replaces or adds a setting, in a block or at the top.
fn with_setting(text: &str, block: Option<&str>, key: &str, value: &Value) -> String {
    let indent = if block.is_some() { "    " } else { "" };
    let new = line_of(key, value).map(|line| format!("{indent}{line}\n"));
    let mut out = String::new();
    let (mut inside, mut depth, mut placed) = (block.is_none(), 0, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let own = trimmed.split_whitespace().next() == Some(key);
        if let Some(names) = trimmed.strip_suffix('{') {
            depth += 1;
            if block.is_some_and(|block| names.split_whitespace().any(|name| name == block)) {
                inside = true;
            }
        } else if trimmed == "}" {
            if block.is_some() && inside && !placed {
                out += new.as_deref().unwrap_or_default();
                placed = true;
            }
            depth -= 1;
            inside = block.is_none();
        } else if own && inside && (block.is_some() || depth == 0) {
            if !placed {
                out += new.as_deref().unwrap_or_default();
                placed = true;
            }
            continue;
        }
        out += line;
    }
    if placed {
        return out;
    }
    let new = new.unwrap_or_default();
    match block {
        // At the top, where it holds for every block after it.
        None => new + &out,
        Some(block) => {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out + &format!("{block} {{\n{new}}}\n")
        }
    }
}

/// Return the configuration.
///
/// ```console
/// $ salt web1 logrotate.show_conf
/// ```
#[function]
pub fn show_conf(
    cx: &Cx,
    /// The file.
    #[default("/etc/logrotate.conf".to_owned())]
    conf_file: String,
) -> Result<Dict> {
    let ret = Dict::new();
    read(cx, Path::new(&conf_file), &ret, 0)?;
    Ok(ret)
}

/// Return a setting; False when there is none.
///
/// ```console
/// $ salt '*' logrotate.get /var/log/wtmp rotate
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The setting, or the block.
    key: String,
    /// The setting of the block.
    value: Option<String>,
    /// The file.
    #[default("/etc/logrotate.conf".to_owned())]
    conf_file: String,
) -> Result<Value> {
    let conf = show_conf(cx, conf_file)?;
    let Some(found) = conf.get(key.as_str()) else { return Ok(false.into()) };
    Ok(match value {
        Some(name) => found.get(&name).unwrap_or(Value::Bool(false)),
        None => found,
    })
}

/// Set a setting, at the top or of a block.
///
/// ```console
/// $ salt web1 logrotate.set rotate 9
/// ```
#[function]
pub fn set(
    cx: &Cx,
    /// The setting, or the block.
    key: String,
    /// Its value, or the setting of the block.
    value: Value,
    /// Its value.
    setting: Option<Value>,
    /// The file.
    #[default("/etc/logrotate.conf".to_owned())]
    conf_file: String,
) -> Result<bool> {
    let path = Path::new(&conf_file);
    let conf = show_conf(cx, conf_file.clone())?;
    let is_block = matches!(conf.get(key.as_str()), Some(Value::Dict(_)));
    let text = read_to_edit(cx, path)?;
    let new = match setting {
        Some(setting) => {
            if conf.contains(key.as_str()) && !is_block {
                return Err(Error::invalid(format!(
                    "Error: A setting for a dict was specified, but the type of {key} is not a dict"
                )));
            }
            with_setting(&text, Some(&key), &value.to_string(), &setting)
        }
        None if is_block => {
            return Err(Error::invalid("Error: {} includes a dict, and a specific setting inside the dict was not declared".replace("{}", &key)));
        }
        None => with_setting(&text, None, &key, &value),
    };
    cx.host.write(path, new.as_bytes(), &Write::default())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "rotate 2\n/var/log/wtmp {\n  rotate 1\n}\n";

    #[test]
    fn sets_in_its_place() {
        let at_top = with_setting(SAMPLE, None, "rotate", &4.into());
        assert_eq!(at_top, "rotate 4\n/var/log/wtmp {\n  rotate 1\n}\n");
        let inside = with_setting(SAMPLE, Some("/var/log/wtmp"), "rotate", &7.into());
        assert_eq!(inside, "rotate 2\n/var/log/wtmp {\n    rotate 7\n}\n");
        let new = with_setting(SAMPLE, None, "compress", &true.into());
        assert_eq!(new, format!("compress\n{SAMPLE}"));
    }
}
