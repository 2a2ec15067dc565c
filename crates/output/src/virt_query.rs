//! `virt_query`: virtual machines by host, as the `virt.query` runner finds them.

use std::fmt::Write as _;

use halite_value::{Dict, Value};

use crate::{Style, Unfit};

pub(crate) fn render(ret: &Value, _: &Style, out: &mut String) -> Result<(), Unfit> {
    for (host, data) in &dict_at(ret, "data")? {
        writeln!(out, "{host}").map_err(|_| Unfit)?;
        for (name, machine) in &dict_at(&data, "vm_info")? {
            writeln!(out, "  {name}").map_err(|_| Unfit)?;
            show(&host.to_str(), machine.as_dict().ok_or(Unfit)?, out)?;
        }
    }
    Ok(())
}

fn dict_at(value: &Value, key: &str) -> Result<Dict, Unfit> {
    value.get(key).and_then(|value| value.as_dict().cloned()).ok_or(Unfit)
}

fn show(host: &str, machine: &Dict, out: &mut String) -> Result<(), Unfit> {
    let mut line = |label: &str, value: &dyn std::fmt::Display| {
        writeln!(out, "    {label}: {value}").map_err(|_| Unfit)
    };
    for (key, label) in [("cpu", "CPU"), ("mem", "Memory"), ("state", "State")] {
        if let Some(value) = machine.get(key) {
            line(label, &value)?;
        }
    }
    if let Some(graphics) = machine.get("graphics")
        && graphics.get("type").is_some_and(|kind| kind == "vnc")
    {
        let port = graphics.get("port").ok_or(Unfit)?;
        line("Graphics", &format_args!("vnc - {host}:{port}"))?;
    }
    if let Some(disks) = machine.get("disks") {
        for (name, disk) in disks.as_dict().ok_or(Unfit)? {
            writeln!(out, "    Disk - {name}:").map_err(|_| Unfit)?;
            for (key, label) in
                [("disk size", "Size"), ("file", "File"), ("file format", "File Format")]
            {
                let value = disk.get(key).ok_or(Unfit)?;
                writeln!(out, "      {label}: {value}").map_err(|_| Unfit)?;
            }
        }
    }
    if let Some(nics) = machine.get("nics") {
        for (mac, nic) in nics.as_dict().ok_or(Unfit)? {
            let source = dict_at(&nic, "source")?.values().into_iter().next().ok_or(Unfit)?;
            let kind = nic.get("type").ok_or(Unfit)?;
            writeln!(out, "    Nic - {mac}:\n      Source: {source}\n      Type: {kind}")
                .map_err(|_| Unfit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    #[test]
    fn one_machine() {
        let machine = dict! {
            "cpu" => 2, "graphics" => dict! { "type" => "vnc", "port" => 5900 },
            "nics" => dict! { "aa:bb" => dict! {
                "source" => dict! { "bridge" => "br0" }, "type" => "bridge" } },
        };
        let ret = dict! { "data" => dict! {
        "hv1" => dict! { "vm_info" => dict! { "web" => machine } } } };
        let mut out = String::new();
        render(&ret, &Style::default(), &mut out).expect("machines");
        let lines = [
            "hv1",
            "  web",
            "    CPU: 2",
            "    Graphics: vnc - hv1:5900",
            "    Nic - aa:bb:",
            "      Source: br0",
            "      Type: bridge",
            "",
        ];
        assert_eq!(out, lines.join("\n"));
    }
}
