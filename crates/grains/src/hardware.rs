//! Processor, memory, firmware, graphics cards, disks.

use std::{path::Path, sync::LazyLock};

use halite_spec::Output;
use halite_value::{Dict, Value, dict};
use regex::Regex;

use crate::{Fragments, Slot, probe::Probe, tables};

fn fragment(slot: Slot, entries: &Value) -> (Slot, Dict) {
    (slot, entries.as_dict().cloned().unwrap_or_default())
}

pub(crate) fn cpu(probe: &Probe<'_>) -> Fragments {
    let text = probe.text("/proc/cpuinfo").unwrap_or_default();
    vec![
        fragment(Slot::Cpu, &processor(&text)),
        fragment(Slot::Memory, &memory(&probe.text("/proc/meminfo").unwrap_or_default())),
    ]
}

fn processor(text: &str) -> Value {
    let (mut count, mut model, mut flags) = (0_i64, "Unknown", "");
    for line in text.lines() {
        // What follows a second colon is lost, as in Salt.
        let mut cells = line.split(':').map(str::trim);
        let (Some(key), Some(value)) = (cells.next(), cells.next()) else { continue };
        match key {
            "processor" => count += 1,
            "# processors" => count = value.parse().unwrap_or(count),
            "vendor_id" | "model name" | "cpu" => model = value,
            "flags" | "Features" => flags = value,
            "Processor" => {
                model = value.split('-').next().unwrap_or_default();
                count = 1;
            }
            _ => {}
        }
    }
    let flags = Value::list(flags.split_whitespace());
    dict! { "num_cpus" => count, "cpu_model" => model, "cpu_flags" => flags }
}

fn memory(text: &str) -> Value {
    let megabytes = |name: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok()).unwrap_or(0)
            / 1024
    };
    dict! { "mem_total" => megabytes("MemTotal"), "swap_total" => megabytes("SwapTotal") }
}

/// Things found by looking through folders.
pub(crate) fn devices(probe: &Probe<'_>) -> Fragments {
    let mut fragments = vec![
        fragment(Slot::Disks, &disks(probe)),
        fragment(Slot::Uefi, &firmware_kind(probe)),
        fragment(
            Slot::FibreChannel,
            &dict! { "fibre_channel_host" => probe.is_dir("/sys/class/fc_host") },
        ),
    ];
    if let Some(gpus) = gpus(probe) {
        let entries = dict! { "num_gpus" => gpus.len(), "gpus" => gpus };
        fragments.push(fragment(Slot::Gpu, &entries));
    }
    if let Some(arrays) = probe.text("/proc/mdstat") {
        fragments.push(fragment(Slot::Mdadm, &dict! { "mdadm" => raids(&arrays) }));
    }
    fragments
}

fn disks(probe: &Probe<'_>) -> Value {
    let (mut disks, mut ssds) = (Vec::new(), Vec::new());
    for name in probe.names("/sys/block") {
        let path = format!("/sys/block/{name}");
        let target = probe.host.read_link(Path::new(&path)).unwrap_or_default();
        if target.starts_with("../devices/virtual") {
            continue;
        }
        match probe.text(&format!("{path}/queue/rotational")).unwrap_or_default().chars().next() {
            Some('0') => ssds.push(Value::from(name)),
            Some('1') => disks.push(Value::from(name)),
            _ => {}
        }
    }
    dict! { "disks" => disks, "ssds" => ssds }
}

fn firmware_kind(probe: &Probe<'_>) -> Value {
    let folders = ["/sys/firmware/efi/efivars", "/sys/firmware/efi/vars"];
    let folder = folders.into_iter().find(|folder| probe.exists(folder));
    let secure = folder.is_some_and(|folder| {
        let data = if folder.ends_with("efivars") { "" } else { "/data" };
        let names = probe.names(folder);
        let names: Vec<_> = names.iter().filter(|name| name.starts_with("SecureBoot-")).collect();
        let [name] = names.as_slice() else { return false };
        let content = probe.host.read(Path::new(&format!("{folder}/{name}{data}")));
        content.is_ok_and(|bytes| bytes.last() == Some(&1))
    });
    dict! { "efi" => folder.is_some(), "efi-secure-boot" => secure }
}

fn raids(text: &str) -> Value {
    let names = text.lines().filter(|line| {
        !line.starts_with("Personalities : ") && !line.starts_with("unused devices:")
    });
    let mut names: Vec<&str> =
        names.filter_map(|line| line.split_once(" : ")).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    Value::list(names)
}

/// Returns the graphics cards. Salt asks `lspci`; we only ask whether it is there, and look at the
/// same folders and the same list of names ourselves.
fn gpus(probe: &Probe<'_>) -> Option<Vec<Value>> {
    let wanted = probe.enabled("enable_lspci") && probe.enabled("enable_gpu_grains");
    if !wanted || !probe.has_program("lspci") {
        return None;
    }
    let cards: Vec<(u32, u32)> = pci_devices(probe)
        .into_iter()
        .filter(|device| tables::GPU_CLASSES.contains(&(device.class >> 8)))
        .map(|device| (device.vendor, device.device))
        .collect();
    // A megabyte: not read unless there is something to look up.
    let files = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids", "/usr/share/pci.ids"];
    let list = if cards.is_empty() { None } else { files.iter().find_map(|path| probe.text(path)) };
    let list = list.unwrap_or_default();
    Some(cards.into_iter().map(|(vendor, device)| gpu(&list, vendor, device)).collect())
}

pub(crate) struct PciDevice {
    pub(crate) class: u32,
    pub(crate) vendor: u32,
    pub(crate) device: u32,
}

pub(crate) fn pci_devices(probe: &Probe<'_>) -> Vec<PciDevice> {
    let folder = "/sys/bus/pci/devices";
    let number = |device: &str, file: &str| {
        let text = probe.trimmed(&format!("{folder}/{device}/{file}"))?;
        u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    };
    let names = probe.names(folder);
    let device = |name: &String| {
        Some(PciDevice {
            class: number(name, "class")?,
            vendor: number(name, "vendor")?,
            device: number(name, "device")?,
        })
    };
    names.iter().filter_map(device).collect()
}

fn gpu(list: &str, vendor: u32, device: u32) -> Value {
    let (maker, model) = pci_names(list, vendor, device);
    let lower = maker.to_lowercase();
    let words: Vec<&str> = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let known = tables::GPU_VENDORS.into_iter().find(|name| words.contains(name));
    dict! { "vendor" => known.unwrap_or("unknown"), "model" => model }
}

/// Looks up a device in the list of names: makers at the line's start, their devices behind a tab.
fn pci_names(list: &str, vendor: u32, device: u32) -> (String, String) {
    let (vendor, device) = (format!("{vendor:04x}"), format!("{device:04x}"));
    let mut lines = list.lines();
    let maker = lines.find_map(|line| line.strip_prefix(&vendor)?.strip_prefix("  "));
    let Some(maker) = maker else {
        return (format!("Vendor {vendor}"), format!("Device {device}"));
    };
    let own = lines.take_while(|line| line.starts_with(['\t', '#']) || line.is_empty());
    let model = own
        .filter(|line| !line.starts_with("\t\t"))
        .find_map(|line| line.strip_prefix('\t')?.strip_prefix(&device)?.strip_prefix("  "));
    (
        maker.trim().to_owned(),
        model.map_or_else(|| format!("Device {device}"), |name| name.trim().to_owned()),
    )
}

/// Volume groups and their volumes. Only the `lvm` program knows them all; where the device
/// manager has seen no physical volume it need not be asked.
pub(crate) fn lvm(probe: &Probe<'_>) -> Fragments {
    if !probe.has_program("lvm") {
        return Vec::new();
    }
    let groups = Dict::new();
    if may_have_volumes(probe) {
        let lines = |words: &[&str]| {
            let output = probe.run(words).map(|output| output.stdout_text()).unwrap_or_default();
            output
                .lines()
                .map(|line| line.trim().to_owned())
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
        };
        for group in lines(&["lvm", "vgs", "-o", "vg_name", "--noheadings"]) {
            groups.insert(group, Vec::<Value>::new());
        }
        if !groups.is_empty() {
            for line in lines(&["lvm", "lvs", "-o", "vg_name,lv_name", "--noheadings"]) {
                let Some((group, volume)) = line.split_once(char::is_whitespace) else { continue };
                if let Some(Value::List(list)) = groups.get(group) {
                    list.push(volume.trim());
                }
            }
        }
    }
    vec![fragment(Slot::Lvm, &dict! { "lvm" => groups })]
}

fn may_have_volumes(probe: &Probe<'_>) -> bool {
    let seen: Vec<String> = probe
        .names("/run/udev/data")
        .into_iter()
        .filter(|name| name.starts_with('b'))
        .filter_map(|name| probe.text(&format!("/run/udev/data/{name}")))
        .collect();
    seen.is_empty() || seen.iter().any(|text| text.contains("ID_FS_TYPE=LVM2_member"))
}

/// What the firmware says about the machine: maker, model, serial number …
pub(crate) fn firmware(probe: &Probe<'_>) -> Dict {
    const FILES: [(&str, &str); 8] = [
        ("biosversion", "bios_version"),
        ("biosvendor", "bios_vendor"),
        ("boardname", "board_name"),
        ("productname", "product_name"),
        ("manufacturer", "sys_vendor"),
        ("biosreleasedate", "bios_date"),
        ("uuid", "product_uuid"),
        ("serialnumber", "product_serial"),
    ];
    if probe.exists("/sys/class/dmi/id") {
        let read = |(grain, file): (&'static str, &str)| {
            // Some of them only root may read.
            let text = probe.trimmed(&format!("/sys/class/dmi/id/{file}"))?;
            Some((grain, if grain == "uuid" { text.to_lowercase() } else { text }))
        };
        return FILES.into_iter().filter_map(read).collect();
    }
    if probe.has_program("dmidecode") {
        return firmware_by_program(probe);
    }
    if probe.has_program("fw_printenv") {
        return boot_loader(probe);
    }
    Dict::new()
}

fn firmware_by_program(probe: &Probe<'_>) -> Dict {
    const WORDS: [(&str, &str); 6] = [
        ("biosversion", "bios-version"),
        ("biosvendor", "bios-vendor"),
        ("productname", "system-product-name"),
        ("manufacturer", "system-manufacturer"),
        ("biosreleasedate", "bios-release-date"),
        ("uuid", "system-uuid"),
    ];
    let ask = |word: &str| {
        let text = probe.run(&["dmidecode", "-s", word])?.stdout_text();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let text = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
        is_sound(word, &text).then_some(text)
    };
    let grains: Dict = WORDS
        .into_iter()
        .filter_map(|(grain, word)| {
            let text = ask(word)?;
            Some((grain, if grain == "uuid" { text.to_lowercase() } else { text }))
        })
        .collect();
    let serials = ["system-serial-number", "chassis-serial-number", "baseboard-serial-number"];
    if let Some(serial) = serials.into_iter().find_map(ask) {
        grains.insert("serialnumber", serial);
    }
    grains
}

/// Small ARM machines keep such things in the boot loader's environment.
fn boot_loader(probe: &Probe<'_>) -> Dict {
    let grains = Dict::new();
    for (grain, variable) in [
        ("manufacturer", "manufacturer"),
        ("serialnumber", "serial#"),
        ("productname", "DeviceDesc"),
    ] {
        let Some(output) = probe.run(&["fw_printenv", variable]).filter(Output::ok) else {
            continue;
        };
        let text = output.stdout_text();
        let value = text.trim_end().split('=').nth(1).unwrap_or_default();
        grains.insert(grain, is_sound(grain, value).then_some(value));
    }
    grains
}

/// Tells real values from what makers leave in the fields they do not use.
fn is_sound(key: &str, value: &str) -> bool {
    static SERIAL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)^0+$|^0?12345678?9?0?|sernum|part[_-]?number|specified|filled|applicable")
            .expect("a fixed pattern")
    });
    static MAKER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)manufacturer|to be filled|available|asset|^no(ne|t)")
            .expect("a fixed pattern")
    });
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?i)to be filled|un(known|specified)|no(t|ne)? (asset|provided|defined|available|present|specified)",
        )
        .expect("a fixed pattern")
    });
    if value.is_empty() || value.to_lowercase().starts_with("none") {
        return false;
    }
    let has = |words: &[&str]| words.iter().any(|word| key.contains(word));
    if key.contains("uuid") {
        let digits = value.replace(['-', '{', '}'], "");
        let digits = digits.strip_prefix("urn:uuid:").unwrap_or(&digits);
        return digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    let nonsense = if has(&["serial", "part", "version"]) {
        &SERIAL
    } else if has(&["asset", "manufacturer"]) {
        &MAKER
    } else {
        &OTHER
    };
    !nonsense.is_match(value)
}

/// Boards described by a device tree: maker and model, and a serial number if there is one.
pub(crate) fn device_tree(probe: &Probe<'_>) -> Dict {
    let grains = Dict::new();
    let read = |name: &str| {
        let text = probe.text(&format!("/proc/device-tree/{name}"))?;
        Some(text.trim_end_matches('\0').to_owned()).filter(|text| !text.is_empty())
    };
    if let Some(model) = read("model") {
        match model.split_once(',') {
            Some((maker, product)) => {
                grains.insert("manufacturer", maker);
                grains.insert("productname", product);
            }
            None => {
                grains.insert("productname", model);
            }
        }
    }
    if let Some(serial) = read("serial-number").or_else(|| read("system-id")) {
        grains.insert("serialnumber", serial);
    }
    grains
}

#[cfg(test)]
mod tests {
    use halite_host::{Fake, fake};
    use halite_value::list;

    use super::*;

    fn with<T>(fake: &Fake, look: impl FnOnce(&Probe<'_>) -> T) -> T {
        look(&Probe::new(fake, &Dict::new()))
    }

    #[test]
    fn processors() {
        let check = |text: &str, count: i64, model: &str, flags: &Value| {
            let expected =
                dict! { "num_cpus" => count, "cpu_model" => model, "cpu_flags" => flags };
            assert_eq!(processor(text), expected);
        };
        check(
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon @ 2: x\nflags\t\t: fpu vme\n\
             processor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon @ 2: x\n",
            2,
            "Xeon @ 2",
            &list!["fpu", "vme"],
        );
        check(
            "Processor\t: ARMv6-compatible processor rev 7 (v6l)\nFeatures\t: swp half\n",
            1,
            "ARMv6",
            &list!["swp", "half"],
        );
        check("vendor_id       : IBM/S390\n# processors    : 2\n", 2, "IBM/S390", &list![]);
        check(
            "processor\t: 0\ncpu\t\t: POWER9 (architected)\n",
            1,
            "POWER9 (architected)",
            &list![],
        );
        check("", 0, "Unknown", &list![]);
    }

    #[test]
    fn megabytes() {
        let text = "MemTotal:       24682332 kB\nMemFree: 1 kB\nSwapTotal:       2097148 kB\n";
        assert_eq!(memory(text), dict! { "mem_total" => 24103, "swap_total" => 2047 });
        assert_eq!(memory(""), dict! { "mem_total" => 0, "swap_total" => 0 });
    }

    #[test]
    fn disks_by_kind() {
        let fake = Fake::new();
        for (name, place, rotational) in [
            ("sda", "pci0000:00/ata1", "1\n"),
            ("nvme0n1", "pci0000:00/nvme", "0\n"),
            ("loop0", "virtual/block", "1\n"),
        ] {
            fake.file(format!("/sys/devices/{place}/{name}/queue/rotational"), rotational);
            fake.link(format!("/sys/block/{name}"), format!("../devices/{place}/{name}"));
        }
        let expected = dict! { "disks" => list!["sda"], "ssds" => list!["nvme0n1"] };
        assert_eq!(with(&fake, disks), expected);
    }

    #[test]
    fn secure_boot() {
        let fake = Fake::new();
        let check = |efi: bool, secure: bool| {
            let expected = dict! { "efi" => efi, "efi-secure-boot" => secure };
            assert_eq!(with(&fake, firmware_kind), expected);
        };
        check(false, false);
        fake.file("/sys/firmware/efi/efivars/SecureBoot-8be4", [6, 0, 0, 0, 1]);
        check(true, true);
        fake.file("/sys/firmware/efi/efivars/SecureBoot-8be4", [6, 0, 0, 0, 0]);
        check(true, false);
    }

    #[test]
    fn software_raids() {
        let text = "Personalities : [raid1]\nmd1 : active raid1 sdb1[1]\n  1 blocks\nmd0 : active\nunused devices: <none>\n";
        assert_eq!(raids(text), list!["md0", "md1"]);
    }

    #[test]
    fn graphics_cards() {
        let fake = Fake::new();
        let card = |at: &str, class: &str, vendor: &str, device: &str| {
            for (file, text) in [("class", class), ("vendor", vendor), ("device", device)] {
                fake.file(format!("/sys/bus/pci/devices/{at}/{file}"), format!("{text}\n"));
            }
        };
        card("0000:00:02.0", "0x030000", "0x10de", "0x1eb8");
        card("0000:00:03.0", "0x030200", "0x1002", "0xffff");
        card("0000:00:04.0", "0x020000", "0x8086", "0x1234");
        assert_eq!(with(&fake, gpus), None, "without lspci Salt knows none");
        fake.program("/usr/bin/lspci");
        fake.file(
            "/usr/share/misc/pci.ids",
            "# names\n1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t1304  Kaveri\n\
             10de  NVIDIA Corporation\n\t1eb8  TU104GL [Tesla T4]\n\t\t10de 12a2  Tesla T4\n",
        );
        let expected = vec![
            dict! { "vendor" => "nvidia", "model" => "TU104GL [Tesla T4]" },
            dict! { "vendor" => "amd", "model" => "Device ffff" },
        ];
        assert_eq!(with(&fake, gpus), Some(expected));
        let off = dict! { "enable_gpu_grains" => false };
        assert_eq!(gpus(&Probe::new(&fake, off.as_dict().unwrap())), None);
    }

    #[test]
    fn volumes() {
        let fake = Fake::new();
        assert!(with(&fake, lvm).is_empty());
        fake.program("/usr/sbin/lvm");
        fake.on(&["/usr/sbin/lvm", "vgs"], |_, _| fake::prints("  vg0\n  empty\n"));
        fake.on(&["/usr/sbin/lvm", "lvs"], |_, _| fake::prints("  vg0 root\n  vg0 swap\n"));
        let expected =
            dict! { "lvm" => dict! { "vg0" => list!["root", "swap"], "empty" => list![] } };
        assert_eq!(Value::from(&with(&fake, lvm)[0].1), expected);
        fake.file("/run/udev/data/b8:0", "E:ID_FS_TYPE=ext4\n");
        let ran = fake.commands().len();
        assert_eq!(Value::from(&with(&fake, lvm)[0].1), dict! { "lvm" => dict! {} });
        assert_eq!(fake.commands().len(), ran, "nobody was asked");
    }

    #[test]
    fn firmware_files() {
        let fake = Fake::new();
        fake.file("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n");
        fake.file("/sys/class/dmi/id/product_uuid", "4C4C4544-0051\n");
        let expected = dict! { "manufacturer" => "Dell Inc.", "uuid" => "4c4c4544-0051" };
        assert_eq!(Value::from(with(&fake, firmware)), expected);
    }

    #[test]
    fn firmware_programs() {
        let fake = Fake::new();
        fake.program("/usr/sbin/dmidecode");
        fake.on(&["/usr/sbin/dmidecode", "-s"], |command, _| {
            fake::prints(match command.argv[2].to_str().unwrap() {
                "bios-vendor" => "# a remark\nPhoenix\n",
                "system-manufacturer" => "To be filled by O.E.M.\n",
                "system-serial-number" => "0123456789\n",
                "baseboard-serial-number" => "XY42\n",
                _ => "",
            })
        });
        let expected = dict! { "biosvendor" => "Phoenix", "serialnumber" => "XY42" };
        assert_eq!(Value::from(with(&fake, firmware)), expected);
    }

    #[test]
    fn device_trees() {
        let fake = Fake::new();
        fake.file("/proc/device-tree/model", "IBM,9009-22A\0")
            .file("/proc/device-tree/system-id", "IBM,1\0");
        let expected = dict! { "manufacturer" => "IBM", "productname" => "9009-22A", "serialnumber" => "IBM,1" };
        assert_eq!(Value::from(with(&fake, device_tree)), expected);
    }
}
