//! `devmap`: disks reached over several paths, by the program `multipath`.

use std::path::Path;

use halite_spec::{Cx, Result, function, module};
use halite_value::Value;

use crate::cmd::{Options, execute};

module! {
    /// Disks reached over several paths.
    "devmap": multipath_list, multipath_flush,
}

fn lines(cx: &Cx, command: String, query: bool) -> Result<Value> {
    let options =
        Options { cmd: command.into(), redirect_stderr: true, query, ..Options::default() };
    Ok(Value::list(execute(cx, &options)?.stdout.lines()))
}

/// Return what multipath says of its maps.
///
/// ```console
/// $ salt '*' devmap.multipath_list
/// ```
#[function]
pub fn multipath_list(cx: &Cx) -> Result<Value> {
    lines(cx, "multipath -l".into(), true)
}

/// Remove an unused map.
///
/// ```console
/// $ salt '*' devmap.multipath_flush /dev/mapper/mpath1
/// ```
#[function]
pub fn multipath_flush(
    cx: &Cx,
    /// The map's device.
    device: String,
) -> Result<Value> {
    if !cx.host.exists(Path::new(&device))? {
        return Ok(format!("{device} does not exist").into());
    }
    lines(cx, format!("multipath -f {device}"), false)
}
