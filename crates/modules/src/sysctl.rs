//! `sysctl`: settings of the kernel, now and after the next start (Salt's `linux_sysctl`).
//!
//! What is set now is read from and written to with the program `sysctl`; what is kept stands in
//! one file, by default `/etc/sysctl.d/99-salt.conf` where systemd reads that folder.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries};

use crate::{
    cmd::{Options, plain},
    file::text::read_to_edit_if_there,
};

module! {
    /// Settings of the kernel.
    "sysctl": default_config, show, get, assign, persist,
}

/// Return the file settings are kept in.
///
/// ```console
/// $ salt web1 sysctl.default_config
/// ```
#[function]
pub fn default_config(cx: &Cx) -> Result<&'static str> {
    let systemd = cx.host.is_dir(Path::new("/run/systemd/system"))?;
    Ok(if systemd { "/etc/sysctl.d/99-salt.conf" } else { "/etc/sysctl.conf" })
}

/// The settings of a file, in their order.
pub fn read(text: &str) -> Dict {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim_end(), value.trim_start()))
        .collect()
}

/// Return all settings, or those of a file.
///
/// ```console
/// $ salt web1 sysctl.show
/// ```
#[function]
pub fn show(
    cx: &Cx,
    /// The file; what the kernel has now if none is given.
    #[default(Value::Bool(false))]
    config_file: Value,
) -> Result<Value> {
    if config_file.truthy() {
        let text = cx.host.read_text_if_there(Path::new(config_file.to_str().as_str()))?;
        return Ok(text.map_or_else(|| Value::list(Vec::<Value>::new()), |text| read(&text).into()));
    }
    let output = cx.host.run(&Command::line(["sysctl", "-a"]).query())?.stdout_text();
    let pairs = output.lines().filter_map(|line| line.split_once(" = "));
    Ok(pairs.collect::<Dict>().into())
}

/// Refuses what `sysctl` would take for an option or for another setting.
fn checked(name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with('-') || name.contains(['=', '\n', '\0']) {
        return Err(Error::invalid(format!("'{name}' cannot be the name of a kernel setting")));
    }
    Ok(())
}

/// Return one setting as the kernel has it.
///
/// ```console
/// $ salt web1 sysctl.get vm.swappiness
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The setting.
    name: String,
) -> Result<String> {
    checked(&name)?;
    let options = Options { redirect_stderr: true, query: true, ..Options::default() };
    Ok(plain(cx, ["sysctl", "-n", &name], options)?.stdout)
}

/// Set one setting until the next start.
///
/// ```console
/// $ salt web1 sysctl.assign vm.swappiness 10
/// ```
#[function]
pub fn assign(
    cx: &Cx,
    /// The setting.
    name: String,
    /// Its value.
    value: String,
) -> Result<Dict> {
    checked(&name)?;
    if !cx.host.exists(&Path::new("/proc/sys").join(file_name(&name)))? {
        return Err(Error::failed(format!("sysctl {name} does not exist")));
    }
    let output = cx.host.run(&Command::line(["sysctl", "-w", &format!("{name}={value}")]))?;
    let (out, err) = (output.stdout_text(), output.stderr_text());
    // Some releases end well although the kernel refused: only the echo of the value is proof.
    let (own, new) = out.trim_end().split_once('=').unwrap_or_default();
    let (own, new) = (own.trim_end(), new.trim_start());
    if own == name && new == value && !err.contains("Invalid argument") {
        return Ok(entries! { own => new });
    }
    let told = if output.ok() || err.trim_end().is_empty() { &out } else { &err };
    Err(Error::failed(format!("sysctl -w failed: {}", told.trim_end())))
}

/// The file of a setting below `/proc/sys`.
///
/// Dots and slashes change places: `net/ipv4/conf/eth0.1` is written `net.ipv4.conf.eth0/1`.
fn file_name(name: &str) -> String {
    let swapped = |char| match char {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let path: String = name.chars().map(swapped).collect();
    path.trim_start_matches('/').to_owned()
}

/// Values as they are compared: white space of any length is one tab.
pub fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join("\t")
}

/// Writes `name = value` into the text of a file, in place of every line that sets the name
/// otherwise; `None` if a line sets it so already.
fn with_setting(text: &str, name: &str, value: &str) -> Option<String> {
    let set_to = |line: &str| -> Option<String> {
        let (key, now) = line.split_once('=')?;
        (key.trim() == name && !key.trim_start().starts_with('#')).then(|| normal(now))
    };
    let own: Vec<String> = text.lines().filter_map(set_to).collect();
    if own.contains(&normal(value)) {
        return None;
    }
    let new = format!("{name} = {value}\n");
    if own.is_empty() {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{text}{gap}{new}"));
    }
    let lines = text.split_inclusive('\n');
    Some(lines.map(|line| if set_to(line).is_some() { &*new } else { line }).collect())
}

/// Set one setting now and for every start to come.
///
/// ```console
/// $ salt web1 sysctl.persist vm.swappiness 10
/// ```
#[function]
pub fn persist(
    cx: &Cx,
    /// The setting.
    name: String,
    /// Its value.
    value: String,
    /// The file; the usual one if none is given.
    config: Option<String>,
) -> Result<&'static str> {
    checked(&name)?;
    if value.contains('\n') {
        return Err(Error::invalid("the value of a kernel setting is one line"));
    }
    let config = match config {
        Some(config) => config,
        None => default_config(cx)?.to_owned(),
    };
    let path = Path::new(&config);
    let old = read_to_edit_if_there(cx, path)?;
    let text = old.as_deref().unwrap_or("#\n# Kernel sysctl configuration\n#\n");
    match with_setting(text, &name, &value) {
        None if normal(&get(cx, name.clone())?) == normal(&value) => return Ok("Already set"),
        None => {}
        Some(new) => {
            if let Some(folder) = path.parent() {
                cx.host.create_dirs(folder, None)?;
            }
            cx.host.write(path, new.as_bytes(), &Write::default())?;
        }
    }
    assign(cx, name, value)?;
    Ok("Updated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(with_setting(text, "a.b", "1 2").as_deref(), expected);
        };
        check("a.b = 1\t2\n", None);
        check("a.b=0\n a.b =1  2\n", None);
        check("#a.b = 1 2\na.b=0\nc=1\na.b=3", Some("#a.b = 1 2\na.b = 1 2\nc=1\na.b = 1 2\n"));
        check("c", Some("c\na.b = 1 2\n"));
        assert_eq!(file_name("net.ipv4.conf.eth0/1.x"), "net/ipv4/conf/eth0.1/x");
    }

    #[test]
    fn files_are_read() {
        let read = read("# c\nnet.ipv4.ip_forward = 1\nkernel.x=a b\nbad\n");
        assert_eq!(read.get("net.ipv4.ip_forward").unwrap(), "1");
        assert_eq!(read.get("kernel.x").unwrap(), "a b");
        assert_eq!(read.len(), 2);
    }
}
