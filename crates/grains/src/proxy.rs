//! What a proxy minion keeps of the grains: the machine it runs on is not the one it speaks for.
//!
//! What remains is what tells where the minion is (`machine_id`, `path`, `dns`) and how it runs. The
//! system is called `proxy`, which takes modules away that look for a distribution they know.

use halite_value::{Dict, Value, dict, entries, list};

use crate::{Fragments, Slot};

/// What is told of the machine all the same.
const KEPT: [Slot; 23] = [
    Slot::AppendDomain,
    Slot::Cwd,
    Slot::Gateway,
    Slot::Dns,
    Slot::FibreChannel,
    Slot::Fqdns,
    Slot::MachineId,
    Slot::Master,
    Slot::HwaddrInterfaces,
    Slot::Id,
    Slot::KernelParams,
    Slot::Locale,
    Slot::Kernel,
    Slot::OsArch,
    Slot::Memory,
    Slot::Virtual,
    Slot::Ps,
    Slot::Path,
    Slot::Versions,
    Slot::GrainsFile,
    Slot::Shell,
    Slot::Transactional,
    Slot::Uefi,
];

pub(crate) fn without_machine(fragments: Fragments) -> Fragments {
    let kernel = fragments.iter().find(|(slot, _)| *slot == Slot::Kernel);
    let machine = kernel.and_then(|(_, kernel)| kernel.get("cpuarch")).unwrap_or_default();
    let own = |slot: Slot, fragment: Dict| match slot {
        Slot::Kernel => {
            fragment.update(&entries! {
                "kernel" => "proxy", "kernelrelease" => "proxy", "kernelversion" => "proxy",
            });
            fragment
        }
        Slot::Locale => entries! { "locale_info" => Value::dict() },
        Slot::OsArch => entries! { "osarch" => machine.clone() },
        Slot::Memory => entries! { "mem_total" => 0 },
        Slot::Versions => {
            fragment.remove("package");
            fragment
        }
        _ => fragment,
    };
    let mut kept: Fragments = fragments
        .into_iter()
        .filter(|(slot, _)| KEPT.contains(slot))
        .map(|(slot, fragment)| (slot, own(slot, fragment)))
        .collect();
    let names = ["osrelease", "os", "os_family", "osfullname"];
    kept.push((Slot::Distribution, names.into_iter().map(|name| (name, "proxy")).collect()));
    let release = dict! { "osrelease_info" => list!["proxy"], "osfinger" => "proxy-proxy" };
    kept.push((Slot::OsRelease, release.as_dict().cloned().unwrap_or_default()));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_not_the_device() {
        let one = |slot: Slot, key: &str, value: Value| (slot, entries! { key => value });
        let given = vec![
            one(Slot::Kernel, "cpuarch", "riscv64".into()),
            one(Slot::Hostname, "fqdn", "here".into()),
            one(Slot::Distribution, "os", "Debian".into()),
            one(Slot::OsArch, "osarch", "amd64".into()),
            one(Slot::Memory, "swap_total", 5.into()),
            one(Slot::MachineId, "machine_id", "ab".into()),
        ];
        let all = Dict::new();
        without_machine(given).iter().for_each(|(_, fragment)| all.update(fragment));
        let expected = entries! {
            "cpuarch" => "riscv64", "kernel" => "proxy", "kernelrelease" => "proxy",
            "kernelversion" => "proxy", "osarch" => "riscv64", "mem_total" => 0,
            "machine_id" => "ab", "osrelease" => "proxy", "os" => "proxy", "os_family" => "proxy",
            "osfullname" => "proxy", "osrelease_info" => list!["proxy"], "osfinger" => "proxy-proxy",
        };
        assert_eq!(Value::from(all), Value::from(expected));
    }
}
