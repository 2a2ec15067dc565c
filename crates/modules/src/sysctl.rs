//! `sysctl`: settings of the kernel, now and after the next start (Salt's `linux_sysctl`).
//!
//! What is set now is read from and written to with the program `sysctl`; what is kept stands in
//! one file, by default `/etc/sysctl.d/99-salt.conf` where systemd reads that folder.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries};

module! {
    /// Settings of the kernel.
    "sysctl": default_config, show, get, assign, persist,
}

/// Return the file settings are kept in.
///
/// ```console
/// $ salt -G 'kernel:Linux' sysctl.default_config
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
/// $ salt '*' sysctl.show
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
/// $ salt '*' sysctl.get net.ipv4.ip_forward
/// ```
#[function]
pub fn get(
    cx: &Cx,
    /// The setting.
    name: String,
) -> Result<String> {
    checked(&name)?;
    let output = cx.host.run(&Command::line(["sysctl", "-n", &name]).query())?;
    let text = if output.ok() { output.stdout_text() } else { output.stderr_text() };
    Ok(text.trim_end().to_owned())
}

/// Set one setting until the next start.
///
/// ```console
/// $ salt '*' sysctl.assign net.ipv4.ip_forward 1
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
    // Dots and slashes change places: `net/ipv4/conf/eth0.1` is written `net.ipv4.conf.eth0/1`.
    let path: String = name
        .chars()
        .map(|char| match char {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect();
    if !cx.host.exists(&Path::new("/proc/sys").join(path.trim_start_matches('/')))? {
        return Err(Error::failed(format!("sysctl {name} does not exist")));
    }
    let output = cx.host.run(&Command::line(["sysctl", "-w", &format!("{name}={value}")]))?;
    let (out, err) = (output.stdout_text(), output.stderr_text());
    let (out, err) = (out.trim_end(), err.trim_end());
    let set = out
        .split_once('=')
        .filter(|(own, new)| own.trim_end() == name && new.trim_start() == value);
    match set {
        Some((own, new)) if !err.contains("Invalid argument") => {
            Ok(entries! { own.trim_end() => new.trim_start() })
        }
        _ => {
            let error = if !output.ok() && !err.is_empty() { err } else { out };
            Err(Error::failed(format!("sysctl -w failed: {error}")))
        }
    }
}

/// Values as they are compared: white space of any length is one tab.
pub fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join("\t")
}

/// Set one setting now and for every start to come.
///
/// ```console
/// $ salt '*' sysctl.persist net.ipv4.ip_forward 1
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
    let old = cx.host.read_text_if_there(path)?;
    let text = old.as_deref().unwrap_or("#\n# Kernel sysctl configuration\n#\n");
    let line = format!("{name} = {value}\n");
    let mut new = String::new();
    let mut placed = false;
    for own in text.split_inclusive('\n') {
        let pair = own.split_once('=').filter(|(key, _)| !key.trim_start().starts_with('#'));
        match pair {
            Some((key, now)) if key.trim() == name => {
                if normal(now) == normal(&value) {
                    if normal(&get(cx, name.clone())?) == normal(&value) {
                        return Ok("Already set");
                    }
                    assign(cx, name, value)?;
                    return Ok("Updated");
                }
                new += &line;
                placed = true;
            }
            _ => new += own,
        }
    }
    if !placed {
        if !new.ends_with('\n') {
            new.push('\n');
        }
        new += &line;
    }
    if let Some(folder) = path.parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(path, new.as_bytes(), &Write::default())?;
    assign(cx, name, value)?;
    Ok("Updated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        let read = read("# c\nnet.ipv4.ip_forward = 1\nkernel.x=a b\nbad\n");
        assert_eq!(read.get("net.ipv4.ip_forward").unwrap(), "1");
        assert_eq!(read.get("kernel.x").unwrap(), "a b");
        assert_eq!(read.len(), 2);
    }
}
