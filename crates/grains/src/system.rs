//! Init system, systemd, SELinux, and what follows from other grains.

use std::{collections::HashMap, io::Read, path::PathBuf, sync::Mutex};

use halite_spec::Output;
use halite_value::{Dict, Value, dict};

use crate::{Fragments, Slot, probe::Probe};

/// What `systemctl --version` said, by the program's path, inode and time of change: no file tells
/// its features, but they only change when the program does.
static SYSTEMD: Mutex<Option<HashMap<Program, (String, String)>>> = Mutex::new(None);

type Program = (PathBuf, u64, u64);

pub(crate) fn systemd(probe: &Probe<'_>) -> Fragments {
    let Some(program) = probe.host.which("systemctl").filter(|_| probe.has_program("localectl"))
    else {
        return Vec::new();
    };
    let stat = probe.host.stat(&program, true).ok();
    let key = stat.map(|stat| (program, stat.inode, stat.mtime.to_bits()));
    let known = |key: &Option<Program>| SYSTEMD.lock().ok()?.as_ref()?.get(key.as_ref()?).cloned();
    let (version, features) = known(&key).unwrap_or_else(|| {
        let output = probe.run(&["systemctl", "--version"]).filter(Output::ok);
        let answer =
            systemd_version(&output.map(|output| output.stdout_text()).unwrap_or_default());
        if let (Some(key), Ok(mut cache)) = (key, SYSTEMD.lock())
            && answer.0 != "UNDEFINED"
        {
            cache.get_or_insert_default().insert(key, answer.clone());
        }
        answer
    });
    let value = dict! { "version" => version, "features" => features };
    vec![(Slot::Systemd, [("systemd", value)].into_iter().collect())]
}

fn systemd_version(text: &str) -> (String, String) {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match (first.strip_prefix("systemd "), lines.next()) {
        (Some(rest), features) => {
            let version = rest.split_whitespace().next().unwrap_or_default();
            (version.to_owned(), features.unwrap_or_default().to_owned())
        }
        (None, _) => ("UNDEFINED".to_owned(), String::new()),
    }
}

/// Returns the `selinux` grain where the tools are installed; asked of the kernel, not of them.
pub(crate) fn selinux(probe: &Probe<'_>) -> Option<Value> {
    if !probe.has_program("selinuxenabled") {
        return None;
    }
    let enforce = probe.trimmed("/sys/fs/selinux/enforce");
    // Mounted, but without a policy everything runs as «kernel».
    let label = probe.text("/proc/self/attr/current").unwrap_or_default();
    let enabled = enforce.is_some() && label.trim_end_matches(['\0', '\n']) != "kernel";
    let value = dict! { "enabled" => enabled };
    if probe.has_program("getenforce") {
        let mode = match enforce.as_deref() {
            Some("1") if enabled => "Enforcing",
            Some(_) if enabled => "Permissive",
            _ => "Disabled",
        };
        value.as_dict()?.insert("enforced", mode);
    }
    Some(value)
}

/// Returns the `init` grain.
pub(crate) fn init(probe: &Probe<'_>) -> &'static str {
    if probe.exists("/run/systemd/system") {
        return "systemd";
    }
    let line = probe.text("/proc/1/cmdline").unwrap_or_default();
    let words: Vec<&str> =
        line.split(['\0', ' ', '\n', '\t']).filter(|word| !word.is_empty()).collect();
    init_named(probe, &words).unwrap_or("unknown")
}

/// Tells the init system by the command line of the first process.
fn init_named(probe: &Probe<'_>, words: &[&str]) -> Option<&'static str> {
    let program = probe.host.which(words.first()?);
    if let Some(program) = program.filter(|path| path.to_string_lossy().ends_with("bin/init")) {
        return named_in(probe, &program);
    }
    // A container's init may be run by an interpreter, so every word counts; but only the full path.
    let runs = |name: &&str| {
        let path = probe.host.which(name);
        path.is_some_and(|path| words.iter().any(|word| path.as_os_str() == *word))
    };
    let is_runit = *words == ["runit"] || words.contains(&"/sbin/my_init");
    ["supervisord", "dumb-init", "tini"].into_iter().find(runs).or(is_runit.then_some("runit"))
}

/// Looks for the name of an init system inside the program itself.
fn named_in(probe: &Probe<'_>, program: &std::path::Path) -> Option<&'static str> {
    const NAMES: [&str; 3] = ["upstart", "sysvinit", "systemd"];
    const OVERLAP: usize = 7;
    let mut file = probe.host.open(program).ok()?;
    let mut window: Vec<u8> = Vec::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = file.read(&mut buffer).ok().filter(|count| *count > 0)?;
        window.extend(buffer[..count].to_ascii_lowercase());
        let has = |name: &&str| window.windows(name.len()).any(|part| part == name.as_bytes());
        if let Some(name) = NAMES.into_iter().find(|name| has(name)) {
            return Some(name);
        }
        window.drain(..window.len().saturating_sub(OVERLAP));
    }
}

/// What follows from other grains: `ps`.
pub(crate) fn derived(fragments: &Fragments) -> Fragments {
    let text = |name: &str| {
        let value = fragments.iter().find_map(|(_, grains)| grains.get(name));
        value.map(|value| value.to_str().to_string()).unwrap_or_default()
    };
    let ps = if text("virtual") == "openvzhn" {
        concat!(
            r#"ps -fH -p $(grep -l "^envID:[[:space:]]*0\$" "#,
            r#"/proc/[0-9]*/status | sed -e "s=/proc/\([0-9]*\)/.*=\1=")  "#,
            r#"| awk '{ $7=""; print }'"#
        )
    } else if text("os_family") == "NILinuxRT" {
        "ps -o user,pid,ppid,tty,time,comm"
    } else {
        "ps -efHww"
    };
    let known = fragments.iter().any(|(slot, _)| *slot == Slot::Distribution);
    if known { vec![(Slot::Ps, Dict::from_iter([("ps", ps)]))] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use halite_host::{Fake, fake};
    use halite_spec::Host;

    use super::*;

    fn with<T>(fake: &Fake, look: impl FnOnce(&Probe<'_>) -> T) -> T {
        look(&Probe::new(fake, &Dict::new()))
    }

    #[test]
    fn init_systems() {
        let fake = Fake::new();
        let check = |expected: &str| assert_eq!(with(&fake, init), expected);
        check("unknown");
        fake.file("/proc/1/cmdline", "/sbin/init\0splash\0");
        check("unknown");
        fake.file("/sbin/init", [vec![b'x'; 300_000], b"SysVinit 2.9".to_vec()].concat());
        fake.mode("/sbin/init", 0o755);
        check("sysvinit");
        fake.program("/usr/bin/tini").file("/proc/1/cmdline", "/usr/bin/tini\0--\0app\0");
        check("tini");
        fake.file("/proc/1/cmdline", "runit\0");
        check("runit");
        fake.dir("/run/systemd/system");
        check("systemd");
    }

    #[test]
    fn systemd_versions() {
        let text = "systemd 252 (252.30-1~deb12u2)\n+PAM +AUDIT -BPF default-hierarchy=unified\n";
        let (version, features) = systemd_version(text);
        assert_eq!(
            (version.as_str(), features.as_str()),
            ("252", "+PAM +AUDIT -BPF default-hierarchy=unified")
        );
        assert_eq!(systemd_version(""), ("UNDEFINED".to_owned(), String::new()));
    }

    #[test]
    fn systemd_is_asked_once() {
        let fake = Fake::new();
        assert!(with(&fake, systemd).is_empty());
        fake.program("/usr/bin/systemctl").program("/usr/bin/localectl");
        fake.set_times("/usr/bin/systemctl".as_ref(), None, Some(4_242.5)).unwrap();
        fake.on(&["/usr/bin/systemctl"], |_, _| fake::prints("systemd 999 (x)\n+A\n"));
        for _ in 0..2 {
            let grains = with(&fake, systemd);
            let expected = dict! { "systemd" => dict! { "version" => "999", "features" => "+A" } };
            assert_eq!(Value::from(&grains[0].1), expected);
        }
        assert_eq!(fake.commands().len(), 1);
    }

    #[test]
    fn selinux_modes() {
        let fake = Fake::new();
        assert_eq!(with(&fake, selinux), None);
        fake.program("/usr/sbin/selinuxenabled");
        assert_eq!(with(&fake, selinux), Some(dict! { "enabled" => false }));
        fake.program("/usr/sbin/getenforce");
        let check = |enabled: bool, mode: &str| {
            let expected = dict! { "enabled" => enabled, "enforced" => mode };
            assert_eq!(with(&fake, selinux), Some(expected));
        };
        check(false, "Disabled");
        fake.file("/sys/fs/selinux/enforce", "1");
        check(true, "Enforcing");
        fake.file("/sys/fs/selinux/enforce", "0");
        check(true, "Permissive");
    }
}
