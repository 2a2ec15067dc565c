//! `cryptdev`: encrypted devices: `/etc/crypttab`, and what is open of them.

use std::path::Path;

use halite_spec::{Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value, dict};

use crate::{
    cmd::{Options, plain},
    file::text::read_to_edit_if_there,
};

module! {
    /// Encrypted devices.
    "cryptdev": active, crypttab, rm_crypttab, set_crypttab, open, close,
}

/// A line of the table: name, device, password, options.
fn fields(line: &str) -> Option<[&str; 4]> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let mut words = line.split_whitespace();
    let (name, device) = (words.next()?, words.next()?);
    Some([name, device, words.next().unwrap_or("none"), words.next().unwrap_or_default()])
}

fn spell([name, device, password, options]: [&str; 4]) -> String {
    format!("{name:<12} {device:<44} {password:<22} {options}\n")
}

/// Return the open devices.
///
/// ```console
/// $ salt '*' cryptdev.active
/// ```
#[function]
pub fn active(cx: &Cx) -> Result<Dict> {
    let look = Options { query: true, ..Options::default() };
    let text = plain(cx, ["dmsetup", "ls", "--target", "crypt"], look)?.stdout;
    let ret = Dict::new();
    // `data (253:0)` or `data (253, 0)`
    for line in text.lines() {
        let Some((name, numbers)) = line.split_once('(') else { continue };
        let mut numbers = numbers.trim_end_matches(')').split([':', ',']).map(str::trim);
        let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else { continue };
        let name = name.trim();
        ret.insert(name, dict! { "devname" => name, "major" => major, "minor" => minor });
    }
    Ok(ret)
}

/// Return the table of encrypted devices.
///
/// ```console
/// $ salt web1 cryptdev.crypttab
/// ```
#[function]
pub fn crypttab(
    cx: &Cx,
    /// Its file.
    #[default("/etc/crypttab".to_owned())]
    config: String,
) -> Result<Dict> {
    let ret = Dict::new();
    let Some(text) = cx.host.read_text_if_there(Path::new(&config))? else { return Ok(ret) };
    for [name, device, password, options] in text.lines().filter_map(fields) {
        let options = options.split(',').filter(|option| !option.is_empty());
        ret.insert(
            name,
            dict! { "device" => device, "password" => password, "options" => Value::list(options) },
        );
    }
    Ok(ret)
}

/// Remove a device from the table: `change` or `absent`.
///
/// ```console
/// $ salt web1 cryptdev.rm_crypttab vault
/// ```
#[function]
pub fn rm_crypttab(
    cx: &Cx,
    /// Its name.
    name: String,
    /// The file.
    #[default("/etc/crypttab".to_owned())]
    config: String,
) -> Result<String> {
    let text = read_to_edit_if_there(cx, Path::new(&config))?.unwrap_or_default();
    let is_it = |line: &&str| fields(line).is_some_and(|[own, ..]| own == name);
    let left: String = text.split_inclusive('\n').filter(|line| !is_it(line)).collect();
    if left == text {
        return Ok("absent".to_owned());
    }
    cx.host.write(Path::new(&config), left.as_bytes(), &Write::default())?;
    Ok("change".to_owned())
}

/// Make sure that a device is in the table: `new`, `change` or `present`.
///
/// ```console
/// $ salt web1 cryptdev.set_crypttab vault /dev/vdb
/// ```
#[function]
pub fn set_crypttab(
    cx: &Cx,
    /// Its name.
    name: String,
    /// The device.
    device: String,
    /// The password, or the file it is in.
    #[default("none".to_owned())]
    password: String,
    /// Its options: a text with commas, or a list.
    #[default(Value::from(""))]
    options: Value,
    /// The file.
    #[default("/etc/crypttab".to_owned())]
    config: String,
    /// Only tell.
    #[default(false)]
    test: bool,
    /// What tells one device from another: `name`, `device` …, or several of them.
    #[default(Value::from("name"))]
    match_on: Value,
) -> Result<String> {
    let options = match options.items_of_sequence() {
        Some(words) => words.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
        None if options.is_null() => String::new(),
        None => options.to_string(),
    };
    let wanted = [name.as_str(), &device, &password, &options];
    let keys = ["name", "device", "password", "options"];
    let on = match_on.items_of_sequence().unwrap_or_else(|| vec![match_on]);
    let mut places = Vec::new();
    for key in on {
        let key = key.to_string();
        let Some(place) = keys.iter().position(|own| *own == key) else {
            return Err(Error::failed(format!("Unrecognized match_on parameter: {key}")));
        };
        places.push(place);
    }
    let text = read_to_edit_if_there(cx, Path::new(&config))?.unwrap_or_default();
    let (mut new, mut status) = (String::new(), "new");
    for line in text.split_inclusive('\n') {
        let own = fields(line);
        let fits = own.is_some_and(|own| places.iter().all(|at| own.get(*at) == wanted.get(*at)));
        if !fits {
            new += line;
        } else if own == Some(wanted) {
            status = "present";
            new += line;
        } else {
            status = "change";
            new += &spell(wanted);
        }
    }
    if status == "new" {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &spell(wanted);
    }
    if status != "present" && !test {
        cx.host.write(Path::new(&config), new.as_bytes(), &Write::default())?;
    }
    Ok(status.to_owned())
}

fn cryptsetup(cx: &Cx, words: &[&str]) -> Result<bool> {
    let words = ["cryptsetup"].into_iter().chain(words.iter().copied());
    Ok(plain(cx, words, Options::default())?.ok())
}

/// Open an encrypted device.
///
/// ```console
/// $ salt web1 cryptdev.open vault /dev/vdb /srv/tls/vault.key
/// ```
#[function]
pub fn open(
    cx: &Cx,
    /// The name to open it under.
    name: String,
    /// The device.
    device: String,
    /// The file with its key.
    keyfile: String,
) -> Result<bool> {
    cryptsetup(cx, &["open", "--key-file", &keyfile, &device, &name])
}

/// Close an encrypted device.
///
/// ```console
/// $ salt web1 cryptdev.close vault
/// ```
#[function]
pub fn close(
    cx: &Cx,
    /// The name it is open under.
    name: String,
) -> Result<bool> {
    cryptsetup(cx, &["close", &name])
}
