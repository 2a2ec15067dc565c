//! What the machine runs on: `virtual`, `virtual_subtype`, and the firmware they are told by.
//!
//! Salt asks programs, in this order: `virt-what` alone if it is installed, else
//! `systemd-detect-virt`, `dmidecode`, `lspci`; the first that knows something wins. We only ask
//! whether the program is there, and answer in its place from what it would look at: the firmware's
//! names, the processor's hypervisor signature, PCI ids, marks that container managers leave. Then
//! come the looks Salt takes itself, which may override that.

use std::path::Path;

use halite_value::Dict;

use crate::{
    Fragments, Slot,
    hardware::{self, device_tree, firmware},
    probe::Probe,
};

pub(crate) fn machine(probe: &Probe<'_>) -> Fragments {
    let mut fragments = Vec::new();
    let hardware = firmware(probe);
    let tree = if probe.is_dir("/proc/device-tree") { device_tree(probe) } else { Dict::new() };
    let product = hardware.get("productname").or_else(|| tree.get("productname"));
    let product = product.map(|name| name.to_str().to_string()).unwrap_or_default();
    let guess = Guess::of(probe, &product);
    let grains: Dict = [("virtual", guess.kind.as_str())].into_iter().collect();
    if let Some(subtype) = &guess.subtype {
        grains.insert("virtual_subtype", subtype);
    }
    if guess.kind.contains("xen") {
        xen_details(probe, &grains);
    }
    fragments.push((Slot::Hardware, hardware));
    fragments.push((Slot::DeviceTree, tree));
    fragments.push((Slot::Virtual, grains));
    fragments
}

/// Something in the firmware's names that tells a hypervisor.
enum Clue {
    /// A part of any name.
    Any(&'static str),
    /// How the name of the BIOS's maker begins.
    Bios(&'static str),
    /// How the name of a maker begins: of the system, the board or the chassis.
    Maker(&'static str),
    /// One or the other.
    MakerOrBios(&'static str),
    /// How the name of the product or the board begins.
    Product(&'static str),
}

impl Clue {
    fn fits(&self, names: &Firmware) -> bool {
        match self {
            Self::Any(text) => names.all().any(|name| name.contains(text)),
            Self::Bios(text) => names.bios_vendor.starts_with(text),
            Self::Maker(text) => names.makers().any(|name| name.starts_with(text)),
            Self::MakerOrBios(text) => {
                Self::Maker(text).fits(names) || Self::Bios(text).fits(names)
            }
            Self::Product(text) => names.products().any(|name| name.starts_with(text)),
        }
    }
}

/// The kind and subtype that clues tell, where all of them fit. Names that products share (the
/// BIOS, the emulator) come last, since they say less.
const FIRMWARES: &[(&[Clue], &str, Option<&str>)] = &[
    (&[Clue::Any("BHYVE")], "bhyve", None),
    (&[Clue::Maker("oVirt")], "kvm", Some("ovirt")),
    (&[Clue::Product("RHEV Hypervisor")], "kvm", Some("rhev")),
    (&[Clue::Any("VirtualBox")], "VirtualBox", None),
    (&[Clue::Any("VMware")], "VMware", None),
    (&[Clue::MakerOrBios("Microsoft"), Clue::Any("Virtual Machine")], "VirtualPC", None),
    (&[Clue::Any("Parallels Software")], "Parallels", None),
    (&[Clue::Maker("Google")], "kvm", None),
    (&[Clue::Maker("Nutanix"), Clue::Product("AHV")], "kvm", Some("Nutanix AHV")),
    (&[Clue::Bios("SeaBIOS")], "kvm", None),
    (&[Clue::MakerOrBios("Bochs")], "kvm", None),
    (&[Clue::MakerOrBios("QEMU")], "kvm", None),
];

struct Guess {
    kind: String,
    subtype: Option<String>,
}

impl Guess {
    fn set(&mut self, kind: &str, subtype: Option<&str>) {
        kind.clone_into(&mut self.kind);
        if let Some(subtype) = subtype {
            self.subtype = Some(subtype.to_owned());
        }
    }

    fn of(probe: &Probe<'_>, product: &str) -> Self {
        let mut guess = Self { kind: "physical".to_owned(), subtype: None };
        if probe.host.uname().version.contains("BrandZ virtual linux") {
            guess.set("zone", None);
            return guess;
        }
        let names = Firmware::read(probe);
        guess.ask_programs(probe, &names);
        guess.look_around(probe, product);
        if guess.subtype.is_some() && guess.kind == "physical" {
            // It is virtual, we just do not know how.
            "virtual".clone_into(&mut guess.kind);
        }
        guess.look_for_clouds(probe, &names);
        guess
    }

    fn ask_programs(&mut self, probe: &Probe<'_>, names: &Firmware) {
        if probe.has_program("virt-what") {
            self.virt_what(detected(probe, names));
            return;
        }
        if probe.has_program("systemd-detect-virt") && self.detect_virt(detected(probe, names)) {
            return;
        }
        if probe.has_program("dmidecode") && !names.is_empty() {
            self.dmidecode(names);
            return;
        }
        if probe.enabled("enable_lspci")
            && probe.exists("/proc/bus/pci")
            && probe.has_program("lspci")
        {
            self.lspci(probe);
        }
    }

    fn virt_what(&mut self, found: &str) {
        match found {
            "kvm" | "qemu" | "uml" | "xen" => self.set(found, None),
            // It counts both as KVM, and says so after their own names, which Salt does not know.
            "amazon" | "google" => self.set("kvm", None),
            "lxc" | "lxc-libvirt" => self.set("container", Some("LXC")),
            "docker" => self.set("container", Some("Docker")),
            "vmware" => self.set("VMware", None),
            "parallels" => self.set("Parallels", None),
            "microsoft" => self.set("HyperV", None),
            _ => {}
        }
    }

    /// Tells whether the answer means something to Salt.
    fn detect_virt(&mut self, found: &str) -> bool {
        match found {
            "qemu" | "kvm" | "oracle" | "xen" | "bochs" | "uml" | "systemd-nspawn" => {
                self.set(found, None);
            }
            "vmware" => self.set("VMware", None),
            "microsoft" => self.set("VirtualPC", None),
            "lxc" | "lxc-libvirt" => self.set("container", Some("LXC")),
            "podman" => self.set("container", Some("Podman")),
            "docker" => self.set("container", Some("Docker")),
            "amazon" => self.set("Nitro", Some("Amazon EC2")),
            _ => return false,
        }
        true
    }

    fn dmidecode(&mut self, names: &Firmware) {
        let told = FIRMWARES.iter().find(|(clues, _, _)| clues.iter().all(|clue| clue.fits(names)));
        if let Some((_, kind, subtype)) = told {
            self.set(kind, *subtype);
        }
    }

    fn lspci(&mut self, probe: &Probe<'_>) {
        let devices = hardware::pci_devices(probe);
        let has = |vendor: u32| devices.iter().any(|device| device.vendor == vendor);
        if has(0x15ad) {
            self.set("VMware", None);
        } else if has(0x80ee) {
            self.set("VirtualBox", None);
        } else if has(0x1b36) || has(0x1af4) {
            self.set("kvm", None);
        }
    }

    /// The looks Salt takes itself.
    fn look_around(&mut self, probe: &Probe<'_>, product: &str) {
        let place = |path: &str| {
            let found = probe.host.stat(Path::new(path), true).ok()?;
            Some((found.device, found.inode))
        };
        if let (Some(own), Some(first)) = (place("/"), place("/proc/1/root/."))
            && own != first
        {
            self.subtype = Some("chroot".to_owned());
        }
        self.look_for_openvz(probe);
        self.look_for_xen(probe, product);
        if probe.text("/proc/cpuinfo").is_some_and(|text| text.contains("QEMU Virtual CPU")) {
            self.set("kvm", None);
        }
        let name = probe.text("/sys/devices/virtual/dmi/id/product_name").unwrap_or_default();
        if name.contains("VirtualBox") {
            self.set("VirtualBox", None);
        } else if name.contains("RHEV Hypervisor") {
            self.set("kvm", Some("rhev"));
        } else if name.contains("oVirt Node") {
            self.set("kvm", Some("ovirt"));
        } else if name.contains("Google") {
            self.set("gce", None);
        } else if name.contains("BHYVE") {
            self.set("bhyve", None);
        }
        self.look_for_containers(probe);
    }

    fn look_for_openvz(&mut self, probe: &Probe<'_>) {
        if probe.is_dir("/proc/vz") {
            if probe.is_file("/proc/vz/version") {
                self.set("openvzhn", None);
            } else if probe.is_file("/proc/vz/veinfo") {
                self.set("openvzve", None);
            }
        }
        let status = probe.text("/proc/self/status").unwrap_or_default();
        let number = status.lines().find_map(|line| line.strip_prefix("envID:"));
        if let Some(number) = number.and_then(|text| text.trim().parse::<u64>().ok()) {
            self.set(if number == 0 { "openvzhn" } else { "openvzve" }, None);
        }
    }

    fn look_for_xen(&mut self, probe: &Probe<'_>, product: &str) {
        if !["/proc/sys/xen", "/sys/bus/xen", "/proc/xen"].iter().any(|path| probe.is_dir(path)) {
            return;
        }
        let capabilities = probe.text("/proc/xen/capabilities");
        let subtype = if probe.is_file("/proc/xen/xsd_kva") {
            Some("Xen Dom0")
        } else if product == "HVM domU" {
            Some("Xen HVM DomU")
        } else if let Some(text) = capabilities {
            Some(if text.contains("control_d") { "Xen Dom0" } else { "Xen PV DomU" })
        } else if probe.is_dir("/sys/bus/xen/drivers/xenconsole") {
            Some("Xen PV DomU")
        } else {
            None
        };
        if let Some(subtype) = subtype {
            self.subtype = Some(subtype.to_owned());
        }
        if self.subtype.as_ref().is_some_and(|text| text.to_lowercase().contains("dom")) {
            self.set("xen", None);
        }
    }

    fn look_for_containers(&mut self, probe: &Probe<'_>) {
        let groups = probe.text("/proc/1/cgroup").unwrap_or_default();
        let docker = [":/system.slice/docker", ":/docker/", ":/docker-ce/"];
        if groups.contains(":/lxc/") {
            self.set("container", Some("LXC"));
        } else if groups.contains(":/kubepods/") {
            self.subtype = Some("kubernetes".to_owned());
        } else if groups.contains(":/libpod_parent/") {
            self.subtype = Some("libpod".to_owned());
        } else if docker.iter().any(|mark| groups.contains(mark)) {
            self.set("container", Some("Docker"));
        }
        if self.subtype.as_deref() != Some("LXC")
            && probe.text("/proc/1/environ").is_some_and(|text| text.contains("container=lxc"))
        {
            self.set("container", Some("LXC"));
        }
    }

    fn look_for_clouds(&mut self, probe: &Probe<'_>, names: &Firmware) {
        let candidate = ["qemu", "kvm", "xen", "amazon"].contains(&self.kind.as_str());
        if !candidate || !probe.has_program("dmidecode") {
            return;
        }
        if names.system_vendor.starts_with("Amazon EC2") {
            if self.kind != "xen" {
                "Nitro".clone_into(&mut self.kind);
            }
            self.subtype = Some(match names.product.as_str() {
                "" => "Amazon EC2".to_owned(),
                product => format!("Amazon EC2 ({product})"),
            });
        } else if names.product_version.contains(".amazon") {
            self.subtype = Some("Amazon EC2".to_owned());
        } else if names.system_vendor.starts_with("Nutanix") && names.product.starts_with("AHV") {
            self.subtype = Some("Nutanix AHV".to_owned());
        }
    }
}

/// The names the firmware gives, as far as they tell hypervisors apart.
#[derive(Default)]
struct Firmware {
    bios_vendor: String,
    system_vendor: String,
    board_vendor: String,
    chassis_vendor: String,
    product: String,
    product_version: String,
    board: String,
}

impl Firmware {
    fn read(probe: &Probe<'_>) -> Self {
        let name = |file: &str| {
            let text = probe.trimmed(&format!("/sys/class/dmi/id/{file}"));
            text.unwrap_or_default()
        };
        Self {
            bios_vendor: name("bios_vendor"),
            system_vendor: name("sys_vendor"),
            board_vendor: name("board_vendor"),
            chassis_vendor: name("chassis_vendor"),
            product: name("product_name"),
            product_version: name("product_version"),
            board: name("board_name"),
        }
    }

    fn makers(&self) -> impl Iterator<Item = &str> {
        [&self.system_vendor, &self.board_vendor, &self.chassis_vendor]
            .into_iter()
            .map(String::as_str)
    }

    fn products(&self) -> impl Iterator<Item = &str> {
        [&self.product, &self.board].into_iter().map(String::as_str)
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let rest = [&self.bios_vendor, &self.product_version].into_iter().map(String::as_str);
        self.makers().chain(self.products()).chain(rest)
    }

    fn is_empty(&self) -> bool {
        self.all().all(str::is_empty)
    }
}

/// Answers as `systemd-detect-virt` does: the innermost layer, containers before machines.
fn detected(probe: &Probe<'_>, names: &Firmware) -> &'static str {
    container(probe).unwrap_or_else(|| hypervisor(probe, names))
}

fn container(probe: &Probe<'_>) -> Option<&'static str> {
    const KNOWN: [&str; 10] = [
        "lxc",
        "lxc-libvirt",
        "systemd-nspawn",
        "docker",
        "podman",
        "rkt",
        "wsl",
        "proot",
        "pouch",
        "openvz",
    ];
    if probe.exists("/proc/vz") && !probe.exists("/proc/bc") {
        return Some("openvz");
    }
    let release = probe.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    if release.contains("Microsoft") || release.contains("WSL") {
        return Some("wsl");
    }
    let line = |path: &str| {
        let text = probe.text(path)?;
        Some(text.lines().next().unwrap_or_default().to_owned()).filter(|line| !line.is_empty())
    };
    let said = line("/run/host/container-manager")
        .or_else(|| line("/run/systemd/container"))
        .or_else(|| {
            let variables = probe.text("/proc/1/environ")?;
            let value = variables.split('\0').find_map(|entry| entry.strip_prefix("container="))?;
            Some(value.to_owned()).filter(|value| !value.is_empty())
        });
    match said.as_deref() {
        Some("oci") | None if probe.exists("/run/.containerenv") => Some("podman"),
        Some("oci") | None if probe.exists("/.dockerenv") => Some("docker"),
        Some("oci") | None => None,
        Some(name) => Some(KNOWN.into_iter().find(|known| *known == name).unwrap_or("other")),
    }
}

fn hypervisor(probe: &Probe<'_>, names: &Firmware) -> &'static str {
    let by_name = named(names);
    if ["oracle", "xen", "amazon", "parallels", "google"].contains(&by_name) {
        let metal = by_name == "amazon" && is_metal(probe, names);
        return if metal { "none" } else { by_name };
    }
    let processor = probe.text("/proc/cpuinfo").unwrap_or_default();
    if processor.contains("vendor_id\t: User Mode Linux") {
        return "uml";
    }
    let dom0 = || {
        let features = probe.trimmed("/sys/hypervisor/properties/features");
        let features =
            features.and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        features.map_or_else(
            || probe.text("/proc/xen/capabilities").is_some_and(|text| text.contains("control_d")),
            |features| features & (1 << 11) != 0,
        )
    };
    if probe.exists("/proc/xen") && !dom0() {
        return "xen";
    }
    let signature = match probe.host.hypervisor().as_deref() {
        Some("XenVMMXenVMM") if dom0() => "none",
        Some("XenVMMXenVMM") => "xen",
        Some("KVMKVMKVM" | "Linux KVM Hv") => "kvm",
        Some("TCGTCGTCGTCG") => "qemu",
        Some("VMwareVMware") => "vmware",
        Some("Microsoft Hv") => "microsoft",
        Some("bhyve bhyve ") => "bhyve",
        Some("ACRNACRNACRN") => "acrn",
        _ => "none",
    };
    if signature != "none" {
        return signature;
    }
    if by_name != "none" {
        return by_name;
    }
    if probe.trimmed("/sys/hypervisor/type").as_deref() == Some("xen") && !dom0() {
        return "xen";
    }
    by_device_tree(probe, &processor)
}

fn named(names: &Firmware) -> &'static str {
    const STARTS: [(&str, &str); 17] = [
        ("KVM", "kvm"),
        ("OpenStack", "kvm"),
        ("KubeVirt", "kvm"),
        ("Amazon EC2", "amazon"),
        ("QEMU", "qemu"),
        ("VMware", "vmware"),
        ("VMW", "vmware"),
        ("innotek GmbH", "oracle"),
        ("VirtualBox", "oracle"),
        ("Oracle Corporation", "oracle"),
        ("Xen", "xen"),
        ("Bochs", "bochs"),
        ("Parallels", "parallels"),
        ("BHYVE", "bhyve"),
        ("Hyper-V", "microsoft"),
        ("Apple Virtualization", "apple"),
        ("Google Compute Engine", "google"),
    ];
    let fields = [
        &names.product,
        &names.system_vendor,
        &names.board_vendor,
        &names.bios_vendor,
        &names.product_version,
    ];
    let found = fields.into_iter().find_map(|field| {
        STARTS.iter().find(|(start, _)| field.starts_with(start)).map(|(_, kind)| *kind)
    });
    found.unwrap_or("none")
}

/// Amazon's bare machines have the same names as its virtual ones; a bit in the tables tells.
fn is_metal(probe: &Probe<'_>, names: &Firmware) -> bool {
    let table = probe.host.read(Path::new("/sys/firmware/dmi/entries/0-0/raw"));
    match table.ok().and_then(|bytes| bytes.get(0x13).copied()) {
        Some(features) => features & (1 << 4) == 0,
        None => names.product.ends_with(".metal"),
    }
}

fn by_device_tree(probe: &Probe<'_>, processor: &str) -> &'static str {
    let text = |name: &str| {
        let text = probe.text(&format!("/proc/device-tree/{name}"))?;
        Some(text.trim_end_matches('\0').to_owned())
    };
    match text("hypervisor/compatible").as_deref() {
        Some("linux,kvm") => return "kvm",
        Some(name) if name.contains("xen") => return "xen",
        Some(name) if name.contains("vmware") => return "vmware",
        _ => {}
    }
    if text("compatible").as_deref() == Some("qemu,pseries") {
        return "qemu";
    }
    if probe.names("/proc/device-tree").iter().any(|name| name.contains("fw-cfg")) {
        return "qemu";
    }
    // Mainframes tell in a list of their own.
    let control = probe.text("/proc/sysinfo").unwrap_or_default();
    let control = control.lines().find_map(|line| line.strip_prefix("VM00 Control Program:"));
    match control.map(str::trim) {
        Some(name) if name.starts_with("z/VM") => "zvm",
        Some(_) => "kvm",
        None if processor.contains("QEMU Virtual CPU") => "qemu",
        None => "none",
    }
}

fn xen_details(probe: &Probe<'_>, grains: &Dict) {
    const FEATURES: [(u32, &str); 14] = [
        (0, "writable_page_tables"),
        (1, "writable_descriptor_tables"),
        (2, "auto_translated_physmap"),
        (3, "supervisor_mode_kernel"),
        (4, "pae_pgdir_above_4gb"),
        (5, "mmu_pt_update_preserve_ad"),
        (7, "gnttab_map_avail_bits"),
        (8, "hvm_callback_vector"),
        (9, "hvm_safe_pvclock"),
        (10, "hvm_pirqs"),
        (11, "dom0"),
        (12, "grant_map_identity"),
        (13, "memory_op_vnode_supported"),
        (14, "ARM_SMCCC_supported"),
    ];
    let part = |name: &str| probe.trimmed(&format!("/sys/hypervisor/version/{name}"));
    if let (Some(major), Some(minor), Some(extra)) = (part("major"), part("minor"), part("extra")) {
        grains.insert("virtual_hv_version", format!("{major}.{minor}{extra}"));
        grains.insert("virtual_hv_version_info", vec![major, minor, extra]);
    }
    let text = probe.trimmed("/sys/hypervisor/properties/features");
    let bits =
        text.as_ref().and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    if let (Some(text), Some(bits)) = (text, bits) {
        let set = FEATURES.iter().filter(|(bit, _)| bits & (1 << bit) != 0);
        grains.insert("virtual_hv_features", text);
        grains.insert(
            "virtual_hv_features_list",
            halite_value::Value::list(set.map(|(_, name)| *name)),
        );
    }
}

#[cfg(test)]
mod tests {
    use halite_host::Fake;

    use super::*;

    fn check(fake: &Fake, kind: &str, subtype: Option<&str>) {
        let opts = Dict::new();
        let fragments = machine(&Probe::new(fake, &opts));
        let (_, grains) = fragments.iter().find(|(slot, _)| *slot == Slot::Virtual).unwrap();
        let text = |name: &str| grains.get(name).map(|value| value.to_str().to_string());
        assert_eq!(text("virtual").as_deref(), Some(kind));
        assert_eq!(text("virtual_subtype").as_deref(), subtype);
    }

    fn with_systemd() -> Fake {
        let fake = Fake::new();
        fake.program("/usr/bin/systemd-detect-virt");
        fake
    }

    fn dmi(fake: &Fake, file: &str, text: &str) {
        fake.file(format!("/sys/class/dmi/id/{file}"), format!("{text}\n"));
        fake.file(format!("/sys/devices/virtual/dmi/id/{file}"), format!("{text}\n"));
    }

    #[test]
    fn bare_metal() {
        check(&Fake::new(), "physical", None);
        let fake = with_systemd();
        dmi(&fake, "sys_vendor", "Dell Inc.");
        check(&fake, "physical", None);
    }

    #[test]
    fn kvm_guests() {
        let fake = with_systemd();
        dmi(&fake, "sys_vendor", "QEMU");
        check(&fake, "qemu", None);
        fake.set_hypervisor("KVMKVMKVM");
        check(&fake, "kvm", None);
        dmi(&fake, "sys_vendor", "Nutanix");
        dmi(&fake, "product_name", "AHV");
        check(&fake, "kvm", None);
        fake.program("/usr/sbin/dmidecode");
        check(&fake, "kvm", Some("Nutanix AHV"));
    }

    #[test]
    fn vmware_hyperv_virtualbox() {
        let fake = with_systemd();
        fake.set_hypervisor("VMwareVMware");
        check(&fake, "VMware", None);
        fake.set_hypervisor("Microsoft Hv");
        check(&fake, "VirtualPC", None);
        fake.program("/usr/sbin/virt-what");
        check(&fake, "HyperV", None);
        let fake = with_systemd();
        dmi(&fake, "sys_vendor", "innotek GmbH");
        check(&fake, "oracle", None);
        dmi(&fake, "product_name", "VirtualBox");
        check(&fake, "VirtualBox", None);
    }

    #[test]
    fn clouds() {
        let fake = with_systemd();
        dmi(&fake, "sys_vendor", "Amazon EC2");
        dmi(&fake, "product_name", "m5.large");
        check(&fake, "Nitro", Some("Amazon EC2"));
        dmi(&fake, "product_name", "m5.metal");
        check(&fake, "physical", None);
        let fake = with_systemd();
        dmi(&fake, "sys_vendor", "Google");
        dmi(&fake, "product_name", "Google Compute Engine");
        check(&fake, "gce", None);
        let fake = Fake::new();
        fake.program("/usr/sbin/dmidecode");
        dmi(&fake, "sys_vendor", "Amazon EC2");
        dmi(&fake, "bios_vendor", "SeaBIOS");
        dmi(&fake, "product_name", "t3.micro");
        check(&fake, "Nitro", Some("Amazon EC2 (t3.micro)"));
    }

    #[test]
    fn containers() {
        let fake = with_systemd();
        fake.file("/.dockerenv", "");
        check(&fake, "container", Some("Docker"));
        fake.file("/run/.containerenv", "");
        check(&fake, "container", Some("Podman"));
        let fake = with_systemd();
        fake.file("/proc/1/environ", "PATH=/bin\0container=lxc\0");
        check(&fake, "container", Some("LXC"));
        let fake = Fake::new();
        fake.file("/proc/1/cgroup", "12:cpu:/kubepods/besteffort/pod1\n");
        check(&fake, "virtual", Some("kubernetes"));
        fake.file("/proc/1/cgroup", "12:cpu:/docker/abc\n");
        check(&fake, "container", Some("Docker"));
        let fake = with_systemd();
        fake.file("/run/systemd/container", "systemd-nspawn\n");
        check(&fake, "systemd-nspawn", None);
    }

    #[test]
    fn xen() {
        let fake = Fake::new();
        fake.file("/proc/xen/capabilities", "control_d\n");
        check(&fake, "xen", Some("Xen Dom0"));
        fake.file("/proc/xen/capabilities", "\n");
        for (part, text) in [("major", "4"), ("minor", "17"), ("extra", ".1")] {
            fake.file(format!("/sys/hypervisor/version/{part}"), format!("{text}\n"));
        }
        fake.file("/sys/hypervisor/properties/features", "00000705\n");
        check(&fake, "xen", Some("Xen PV DomU"));
        let opts = Dict::new();
        let fragments = machine(&Probe::new(&fake, &opts));
        let (_, grains) = fragments.iter().find(|(slot, _)| *slot == Slot::Virtual).unwrap();
        assert_eq!(grains.get("virtual_hv_version").unwrap().to_str(), "4.17.1");
        assert_eq!(
            grains.get("virtual_hv_features_list").unwrap().repr(),
            "['writable_page_tables', 'auto_translated_physmap', 'hvm_callback_vector', \
             'hvm_safe_pvclock', 'hvm_pirqs']"
        );
    }

    #[test]
    fn by_pci_devices() {
        let fake = Fake::new();
        fake.program("/usr/bin/lspci").dir("/proc/bus/pci");
        for (file, text) in [("class", "0x020000"), ("vendor", "0x1af4"), ("device", "0x1000")] {
            fake.file(format!("/sys/bus/pci/devices/0000:00:01.0/{file}"), text);
        }
        check(&fake, "kvm", None);
    }

    #[test]
    fn changed_roots() {
        let fake = Fake::new();
        fake.dir("/proc/1/root");
        check(&fake, "virtual", Some("chroot"));
    }
}
