//! `acl`: access control lists of files, over `getfacl` and `setfacl`.
//!
//! `linux_acl` in Salt's tree; users call it `acl`.

use halite_spec::{Command, Cx, Error, Need, Rest, Result, function, module};
use halite_value::{Dict, List, Value, dict};

module! {
    /// Access control lists of files.
    "acl", needs = [
        Need::program(&["getfacl"], "The linux_acl execution module cannot be loaded: the getfacl binary is not in the path."),
    ]: version, getfacl, wipefacls, modfacl, delfacl,
}

/// The kinds of entries, by every name people give them: the letter, and whether it is a default.
pub fn kind_of(acl_type: &str) -> Option<(&'static str, bool)> {
    let (kind, default) = match acl_type.split_once(':') {
        Some(("d" | "default", kind)) => (kind, true),
        Some(_) => return None,
        None => (acl_type, false),
    };
    let letter = match kind {
        "user" | "usr" | "u" => "u",
        "group" | "grp" | "g" => "g",
        "mask" | "m" => "m",
        "other" | "oth" | "o" => "o",
        _ => return None,
    };
    Some((letter, default))
}

fn letters(acl_type: &str) -> Result<String> {
    match kind_of(acl_type) {
        Some((letter, true)) => Ok(format!("d:{letter}")),
        Some((letter, false)) => Ok(letter.to_owned()),
        None => Err(Error::invalid("ACL Type does not exist")),
    }
}

/// Files, and whether to go into folders.
fn targets(rest: &Rest) -> Result<(Vec<String>, bool)> {
    let files: Vec<String> = rest.args.iter().map(Value::to_string).collect();
    if files.is_empty() {
        let text = "You need to specify at least one file or directory to work with!";
        return Err(Error::failed(text));
    }
    let recursive = rest.kwargs.get("recursive").is_some_and(|value| value.truthy());
    Ok((files, recursive))
}

/// `rwx` → read, write, execute and the number.
fn permissions(text: &str) -> Value {
    let has = |letter: char| text.contains(letter);
    let octal = 4 * i64::from(has('r')) + 2 * i64::from(has('w')) + i64::from(has('x'));
    dict! {
        "permissions" => dict! {
            "read" => has('r'), "write" => has('w'), "execute" => has('x'),
        },
        "octal" => octal,
    }
}

/// Reads what getfacl prints: file → comments and entries.
pub fn read(text: &str) -> Dict {
    let ret = Dict::new();
    let mut file = Dict::new();
    let mut comment = Dict::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let Some((name, value)) = rest.split_once(": ") else { continue };
            if name == "file" {
                file = Dict::new();
                comment = Dict::new();
                file.insert("comment", &comment);
                ret.insert(value, &file);
            }
            comment.insert(name, value);
            continue;
        }
        // `user:nobody:rwx   #effective:r--`, `default:user::rwx`
        let line = line.split('#').next().unwrap_or_default().trim();
        let (into, line) = match line.strip_prefix("default:") {
            Some(line) => {
                let defaults = file.get_or_insert_with("defaults", Value::dict);
                (defaults.as_dict().cloned().unwrap_or_default(), line)
            }
            None => (file.clone(), line),
        };
        let parts: Vec<&str> = line.splitn(3, ':').collect();
        let [kind, name, rights] = parts.as_slice() else { continue };
        let owner = |key: &str| comment.get(key).map(|own| own.to_string()).unwrap_or_default();
        let name = match (*kind, *name) {
            ("user", "") => owner("owner"),
            ("group", "") => owner("group"),
            (_, name) => name.to_owned(),
        };
        if let Value::List(list) = into.get_or_insert_with(*kind, || List::new().into()) {
            list.push(dict! { name => permissions(rights) });
        }
    }
    ret
}

fn set(cx: &Cx, words: Vec<String>, raise: bool) -> Result<bool> {
    let output = cx.host.run(&Command::line(words))?;
    if output.ok() || !raise {
        return Ok(output.ok());
    }
    Err(Error::failed(output.stderr_text().trim().to_owned()))
}

/// Return the version of getfacl.
///
/// ```console
/// $ salt web1 acl.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    let text = cx.host.run(&Command::line(["getfacl", "--version"]).query())?.stdout_text();
    Ok(text.split_whitespace().nth(1).unwrap_or_default().to_owned())
}

/// Return the access control lists of files.
///
/// ```console
/// $ salt web1 acl.getfacl
/// ```
#[function]
pub fn getfacl(
    cx: &Cx,
    /// The files; `recursive=True` goes into folders.
    args: Rest,
) -> Result<Dict> {
    let (files, recursive) = targets(&args)?;
    let mut words = vec!["getfacl".to_owned(), "--absolute-names".to_owned()];
    words.extend(recursive.then(|| "-R".to_owned()));
    words.push("--".to_owned());
    words.extend(files);
    let output = cx.host.run(&Command::line(words).query())?;
    Ok(read(&output.stdout_text()))
}

/// Remove the access control lists of files.
///
/// ```console
/// $ salt web1 acl.wipefacls
/// ```
#[function]
pub fn wipefacls(
    cx: &Cx,
    /// The files; `recursive=True` goes into folders.
    args: Rest,
) -> Result<bool> {
    let (files, recursive) = targets(&args)?;
    let mut words = vec!["setfacl".to_owned(), "-b".to_owned()];
    words.extend(recursive.then(|| "-R".to_owned()));
    words.push("--".to_owned());
    words.extend(files);
    set(cx, words, false)
}

/// Add or change an entry of the access control lists of files.
///
/// ```console
/// $ salt web1 acl.modfacl user ada rw /srv/app
/// ```
#[function]
pub fn modfacl(
    cx: &Cx,
    /// `user`, `group`, `mask`, `other`; `default:user` …
    acl_type: String,
    /// Whose.
    #[default(Value::from(""))]
    acl_name: Value,
    /// `rwx`.
    #[default(String::new())]
    perms: String,
    /// The files; `recursive=True` goes into folders.
    args: Rest,
) -> Result<bool> {
    let (files, recursive) = targets(&args)?;
    let names = match acl_name.items_of_sequence() {
        Some(names) => names.iter().map(Value::to_string).collect(),
        None => vec![acl_name.to_string()],
    };
    let kind = letters(&acl_type)?;
    let entries: Vec<String> = names.iter().map(|name| format!("{kind}:{name}:{perms}")).collect();
    let mut words = vec!["setfacl".to_owned()];
    words.extend(recursive.then(|| "-R".to_owned()));
    words.extend(["-m".to_owned(), entries.join(","), "--".to_owned()]);
    words.extend(files);
    let raise = args.kwargs.get("raise_err").is_some_and(|raise| raise.truthy());
    set(cx, words, raise)
}

/// Remove an entry of the access control lists of files.
///
/// ```console
/// $ salt web1 acl.delfacl user ada /srv/app
/// ```
#[function]
pub fn delfacl(
    cx: &Cx,
    /// `user`, `group`, `mask`, `other`; `default:user` …
    acl_type: String,
    /// Whose.
    #[default(Value::from(""))]
    acl_name: Value,
    /// The files; `recursive=True` goes into folders.
    args: Rest,
) -> Result<bool> {
    let (files, recursive) = targets(&args)?;
    let names = match acl_name.items_of_sequence() {
        Some(names) => names.iter().map(Value::to_string).collect(),
        None => vec![acl_name.to_string()],
    };
    let kind = letters(&acl_type)?;
    let entries: Vec<String> = names.iter().map(|name| format!("{kind}:{name}")).collect();
    let mut words = vec!["setfacl".to_owned()];
    words.extend(recursive.then(|| "-R".to_owned()));
    words.extend(["-x".to_owned(), entries.join(","), "--".to_owned()]);
    words.extend(files);
    set(cx, words, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_entries_and_defaults() {
        let text = "# file: /srv/x\n# owner: root\n# group: www\nuser::rw-\nuser:nobody:r-x\n\
            group::r--\nmask::rwx\nother::---\ndefault:user:nobody:rwx\n\n";
        let file = read(text).get("/srv/x").unwrap();
        let shown = |key: &str| file.get(key).unwrap().repr();
        assert!(shown("user").contains("'nobody': {'permissions': {'read': True, 'write': False"));
        assert!(shown("group").starts_with("[{'www': "));
        assert!(shown("defaults").contains("'octal': 7"));
    }
}
