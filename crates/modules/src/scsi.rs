//! `scsi`: SCSI devices, over the program `lsscsi`.

use std::path::Path;

use halite_spec::{Cx, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::cmd::{Options, plain};

module! {
    /// SCSI devices.
    "scsi": ls_, rescan_all,
}

fn unbracketed(word: &str) -> String {
    word.replace(['[', ']'], "")
}

/// Reads `lsscsi -dLv`: a line per device, and indented ones with its attributes.
fn parse(text: &str, sizes: bool) -> Dict {
    let devices = Dict::new();
    let mut device = Dict::new();
    for line in text.lines() {
        if line.starts_with('[') {
            let mut words: Vec<&str> = line.split_whitespace().collect();
            let Some(key) = words.first().copied() else { continue };
            let size = if sizes { words.pop() } else { None };
            let numbers = words.pop().filter(|word| word.starts_with('[')).map(unbracketed);
            let numbers = numbers.as_deref().and_then(|numbers| numbers.split_once(':'));
            let path = words.pop();
            device = entries! {
                "lun" => unbracketed(key), "size" => size,
                "major" => numbers.map(|(major, _)| major.to_owned()),
                "minor" => numbers.map(|(_, minor)| minor.to_owned()),
                "device" => path, "model" => words.get(3..).unwrap_or_default().join(" "),
            };
            devices.insert(key, &device);
        } else if line.starts_with(' ') {
            let line = line.trim();
            if line.starts_with("dir") {
                let words = line.split_whitespace().skip(1).take(2).map(unbracketed);
                device.insert("dir", Value::list(words.collect::<Vec<_>>()));
            } else if let Some((name, value)) = line.split_once('=') {
                device.insert(name, value.split('=').next().unwrap_or_default());
            }
        }
    }
    devices
}

/// Return the SCSI devices with what is known of them.
///
/// ```console
/// $ salt '*' scsi.ls
/// ```
#[function(name = "ls")]
pub fn ls_(
    cx: &Cx,
    /// With their sizes, which an old lsscsi cannot tell.
    #[default(true)]
    get_size: bool,
) -> Result<Value> {
    if cx.host.which("lsscsi").is_none() {
        cx.job.set_retcode(1);
        return Ok("scsi.ls not available - lsscsi command not found".into());
    }
    let options = Options { query: true, ..Options::default() };
    let ran = plain(cx, ["lsscsi", if get_size { "-dLsv" } else { "-dLv" }], options)?;
    if !ran.ok() {
        cx.job.set_retcode(ran.retcode.unwrap_or(-1));
        let error = ran.stderr.split('\n').next().unwrap_or_default();
        if error == "lsscsi: invalid option -- 's'" {
            return Ok(format!("{error} - try get_size=False").into());
        }
        return Ok(error.into());
    }
    Ok(parse(&ran.stdout, get_size).into())
}

/// Look for new devices at a host adapter.
///
/// ```console
/// $ salt '*' scsi.rescan_all 0
/// ```
#[function]
pub fn rescan_all(
    cx: &Cx,
    /// The number of the adapter.
    host: String,
) -> Result<Value> {
    let folder = format!("/sys/class/scsi_host/host{host}");
    let folder = Path::new(&folder);
    if !cx.host.is_dir(folder)? {
        return Ok(format!("Host {host} does not exist").into());
    }
    cx.host.append(&folder.join("scan"), b"- - -\n")?;
    Ok(Value::list(Vec::<Value>::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_value::json;

    #[test]
    fn devices() {
        let text = "[0:0:0:0]    disk    ATA      VBOX HARDDISK    1.0   /dev/sda [8:0]   21.4GB\n\
                    \x20 device_blocked=0\n  state=running\n  \
                    dir: /sys/bus/scsi/devices/0:0:0:0  [/sys/devices/pci0000:00/0:0:0:0]\n";
        let expected = r#"{"[0:0:0:0]": {"lun": "0:0:0:0", "size": "21.4GB", "major": "8",
            "minor": "0", "device": "/dev/sda", "model": "VBOX HARDDISK 1.0",
            "device_blocked": "0", "state": "running",
            "dir": ["/sys/bus/scsi/devices/0:0:0:0", "/sys/devices/pci0000:00/0:0:0:0"]}}"#;
        assert_eq!(Value::Dict(parse(text, true)), json::from_str(expected).unwrap());
    }
}
