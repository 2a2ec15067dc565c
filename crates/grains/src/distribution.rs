//! Which distribution this is: `os`, `os_family`, `osrelease` and their kin.
//!
//! Three sources are weighed as Salt weighs them, quirks included, because states match on the
//! results: `/etc/os-release`, `/etc/lsb-release`, and the older `/etc/*-release` files (which
//! genuine Salt reads through a library; [`Older`] answers as that one does). The third is looked
//! at only when the others are silent.
//!
//! The architecture is read from the head of the package manager's own program: the same answer as
//! asking the program, without starting it.

use std::{cell::OnceCell, collections::HashMap, io::Read, sync::LazyLock};

use halite_spec::Output;
use halite_value::{Dict, Value, dict};
use regex::Regex;

use crate::{Fragments, Slot, probe::Probe, shell, system, tables};

pub(crate) fn os(probe: &Probe<'_>) -> Fragments {
    let uname = probe.host.uname();
    let kernel = dict! {
        "num_gpus" => 0,
        "gpus" => Vec::<Value>::new(),
        "kernel" => &uname.sysname,
        "nodename" => &uname.nodename,
        "kernelrelease" => &uname.release,
        "kernelversion" => &uname.version,
        "cpuarch" => &uname.machine,
    };
    let found = Distribution::of(probe);
    let architecture = architecture(probe, &found.family, &uname.machine);
    let mut fragments = vec![
        (Slot::Kernel, kernel.as_dict().cloned().unwrap_or_default()),
        (Slot::Init, [("init", system::init(probe))].into_iter().collect()),
        (Slot::Distribution, found.grains()),
        (Slot::OsArch, [("osarch", architecture)].into_iter().collect()),
        (Slot::OsRelease, found.release_grains()),
    ];
    if let Some(selinux) = system::selinux(probe) {
        fragments.push((Slot::Selinux, [("selinux", selinux)].into_iter().collect()));
    }
    fragments
}

type Fields = HashMap<String, String>;

/// What is known so far, and the keys Salt sets on the way.
#[derive(Default)]
struct Distribution {
    os: String,
    family: String,
    full_name: String,
    release: String,
    codename: String,
    /// `lsb_distrib_id`, `…_release`, `…_codename`, `…_description`, in the order found.
    lsb: Vec<(&'static str, String)>,
}

const LSB_ID: &str = "lsb_distrib_id";
const LSB_RELEASE: &str = "lsb_distrib_release";
const LSB_CODENAME: &str = "lsb_distrib_codename";
const LSB_DESCRIPTION: &str = "lsb_distrib_description";

impl Distribution {
    fn lsb(&self, key: &str) -> Option<&str> {
        self.lsb.iter().find(|(own, _)| *own == key).map(|(_, value)| value.as_str())
    }

    fn set_lsb(&mut self, key: &'static str, value: impl Into<String>) {
        match self.lsb.iter_mut().find(|(own, _)| *own == key) {
            Some((_, old)) => *old = value.into(),
            None => self.lsb.push((key, value.into())),
        }
    }

    fn of(probe: &Probe<'_>) -> Self {
        let os_release = read_os_release(probe);
        let older = Older::new(probe);
        let mut found = Self { lsb: read_lsb(probe), ..Self::default() };
        let (mut os, mut full_name, mut release) = (None, None, None);
        if let Some(fields) = &os_release {
            let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
            os = Some(derive_os(field("NAME"), field("ID")));
            full_name = Some(field("NAME").trim().to_owned());
        }
        if found
            .lsb(LSB_DESCRIPTION)
            .is_some_and(|text| text.to_lowercase().starts_with("antergos"))
        {
            // Its lsb-release says it were Arch.
            full_name = Some("Antergos Linux".to_owned());
        } else if found.lsb(LSB_ID).is_none() {
            match &os_release {
                Some(fields) => found.lsb_from_os_release(fields, &mut os, &mut full_name),
                None => found.lsb_from_old_files(probe, &mut full_name, &mut release),
            }
        }
        found.full_name = full_name.unwrap_or_else(|| match found.lsb(LSB_ID) {
            Some(id) if id.to_lowercase().starts_with("nilrt") => "nilrt".to_owned(),
            Some(id) => id.trim().to_owned(),
            None => older.name(),
        });
        found.release = release.unwrap_or_else(|| {
            let vague =
                |name: &str| name.contains("CentOS Linux 7") || name.contains("CentOS Linux 8");
            if found.lsb(LSB_CODENAME).is_some_and(vague) {
                // Their os-release knows only the major number.
                found.lsb.retain(|(key, _)| *key != LSB_RELEASE);
            }
            found.lsb(LSB_RELEASE).map_or_else(|| older.version(), |text| text.trim().to_owned())
        });
        found.settle_codename(os.as_deref().unwrap_or_default(), &older);
        found.os = os.unwrap_or_else(|| derive_os(&found.full_name, ""));
        if let Some(fields) = &os_release {
            found.apply_support_product(fields);
        }
        found.family = tables::family_of(&found.os).to_owned();
        found
    }

    fn lsb_from_os_release(
        &mut self,
        fields: &Fields,
        os: &mut Option<String>,
        full_name: &mut Option<String>,
    ) {
        let field = |name: &str| fields.get(name).map(String::as_str);
        if let Some(name) = field("NAME") {
            self.set_lsb(LSB_ID, name.trim());
        }
        if let Some(version) = field("VERSION_ID") {
            self.set_lsb(LSB_RELEASE, version);
        }
        if let Some(name) = field("VERSION_CODENAME").or(field("PRETTY_NAME")) {
            self.set_lsb(LSB_CODENAME, name);
        }
        if let Some((vendor, version)) = field("CPE_NAME").and_then(cpe)
            && ["suse", "opensuse"].contains(&vendor.to_lowercase().as_str())
        {
            *os = Some("SUSE".to_owned());
            if field("NAME") == Some("openSUSE Leap") {
                *full_name = Some("Leap".to_owned());
            } else if field("VERSION") == Some("Tumbleweed") {
                *full_name = Some("Tumbleweed".to_owned());
            }
            // SLES keeps its own number.
            if vendor == "opensuse" && !version.is_empty() {
                self.set_lsb(LSB_RELEASE, version);
            }
        }
        if field("ID").map(str::trim) == Some("mendel")
            && let Some(number) =
                field("PRETTY_NAME").and_then(|text| text.split_whitespace().nth(2))
        {
            self.set_lsb(LSB_RELEASE, number);
        }
    }

    fn lsb_from_old_files(
        &mut self,
        probe: &Probe<'_>,
        full_name: &mut Option<String>,
        release: &mut Option<String>,
    ) {
        let file = |path: &str| probe.is_file(path).then(|| probe.text(path).unwrap_or_default());
        if let Some(text) = file("/etc/SuSE-release") {
            self.lsb_from_suse(&text);
        } else if let Some(text) = file("/etc/altlinux-release") {
            self.set_lsb(LSB_ID, "altlinux");
            for line in text.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                if let ["ALT", _, version, codename, ..] = words.as_slice() {
                    self.set_lsb(LSB_RELEASE, *version);
                    self.set_lsb(LSB_CODENAME, codename.replace(['(', ')'], ""));
                }
            }
        } else if let Some(text) = file("/etc/centos-release") {
            static VERSION: LazyLock<Regex> =
                LazyLock::new(|| Regex::new(r"\d+\.\d+").expect("a fixed pattern"));
            self.set_lsb(LSB_ID, "CentOS");
            for line in text.lines() {
                if let Some(version) = VERSION.find(line) {
                    self.set_lsb(LSB_RELEASE, version.as_str());
                }
                let inside = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
                if let Some((codename, _)) = inside {
                    self.set_lsb(LSB_CODENAME, codename);
                }
            }
        } else if probe.is_file("/etc.defaults/synoinfo.conf")
            && let Some(text) = file("/etc.defaults/VERSION")
        {
            *full_name = Some("Synology".to_owned());
            let field = |name: &str| {
                let mut pairs = text.lines().filter_map(|line| line.split_once('='));
                pairs.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"'))
            };
            if let (Some(major), Some(minor), Some(build)) =
                (field("majorversion"), field("minorversion"), field("buildnumber"))
            {
                *release = Some(format!("{major}.{minor}-{build}"));
            }
        }
    }

    fn lsb_from_suse(&mut self, text: &str) {
        static BRACKETS: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\(.+\)").expect("a fixed pattern"));
        let digits = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>();
        let (mut version, mut patch) = (String::new(), String::new());
        self.set_lsb(LSB_ID, "SUSE");
        for line in text.lines() {
            let lower = line.to_lowercase();
            if lower.contains("enterprise") {
                self.set_lsb(LSB_ID, "SLES");
                self.set_lsb(LSB_CODENAME, BRACKETS.replace_all(line, "").trim());
            } else if lower.contains("version") {
                version = digits(line);
            } else if lower.contains("patchlevel") {
                patch = digits(line);
            }
        }
        if patch.is_empty() {
            self.set_lsb(LSB_RELEASE, version);
        } else {
            self.set_lsb(LSB_RELEASE, format!("{version}.{patch}"));
            let codename = self.lsb(LSB_CODENAME).unwrap_or_default().to_owned();
            if !codename.is_empty() && !codename.contains(&format!("SP{patch}")) {
                self.set_lsb(LSB_CODENAME, format!("{codename} SP{patch}"));
            }
        }
        if self.lsb(LSB_CODENAME).unwrap_or_default().is_empty() {
            self.set_lsb(LSB_CODENAME, "n.a");
        }
    }

    fn settle_codename(&mut self, os: &str, older: &Older<'_, '_>) {
        let bracketed = ["Rocky", "AlmaLinux", "AstraLinuxSE"].iter().any(|name| os.contains(name));
        if bracketed
            && let Some((_, rest)) = self.lsb(LSB_CODENAME).and_then(|name| name.split_once('('))
        {
            let inside = rest.split_once(')').map_or(rest, |(inside, _)| inside).to_owned();
            if os == "AstraLinuxSE" {
                let first = inside.split_whitespace().next().unwrap_or_default().to_lowercase();
                self.set_lsb(LSB_CODENAME, first);
            } else {
                self.set_lsb(LSB_CODENAME, inside);
            }
        }
        let own = self.lsb(LSB_CODENAME).unwrap_or_default().trim().to_owned();
        let vague = own.is_empty() || own.contains("Red Hat");
        self.codename = if vague { older.codename() } else { own };
    }

    /// SL Micro 6.2 calls itself SLES 16, but says what it supports.
    fn apply_support_product(&mut self, fields: &Fields) {
        let field = |name: &str| fields.get(name).map(String::as_str);
        let (Some(product), Some(version)) =
            (field("SUSE_SUPPORT_PRODUCT"), field("SUSE_SUPPORT_PRODUCT_VERSION"))
        else {
            return;
        };
        self.codename =
            field("SUSE_PRETTY_NAME").map_or_else(|| format!("{product} {version}"), str::to_owned);
        version.clone_into(&mut self.release);
        if product == "SUSE Linux Micro" {
            "SL-Micro".clone_into(&mut self.full_name);
        }
    }

    fn grains(&self) -> Dict {
        let grains: Dict = [
            ("os", &self.os),
            ("os_family", &self.family),
            ("oscodename", &self.codename),
            ("osfullname", &self.full_name),
        ]
        .into_iter()
        .collect();
        for (key, value) in &self.lsb {
            grains.insert(*key, value);
        }
        grains.insert("osrelease", &self.release);
        grains
    }

    fn release_grains(&self) -> Dict {
        let grains = Dict::new();
        if self.release.is_empty() {
            return grains;
        }
        let parts: Vec<Value> = self
            .release
            .split('.')
            .map(|part| {
                let number = part.parse::<i64>().ok();
                number
                    .filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()))
                    .map_or_else(|| Value::from(part), Value::from)
            })
            .collect();
        let first = parts.first().cloned().unwrap_or_default();
        grains.insert("osrelease_info", Value::tuple(parts));
        if let Value::Int(major) = first {
            grains.insert("osmajorrelease", major);
        }
        const BY_OS: [&str; 3] = ["Debian", "Raspbian", "AlmaLinux"];
        let name = if BY_OS.contains(&self.os.as_str()) { &self.os } else { &self.full_name };
        let whole = ["Ubuntu", "Pop", "NixOS"].contains(&self.os.as_str());
        let number = if whole { self.release.as_str().into() } else { first.to_str() };
        grains.insert("osfinger", format!("{name}-{number}"));
        grains
    }
}

/// Returns the `os` grain of a full name: known ones by the table, others without their «Linux».
fn derive_os(full_name: &str, id: &str) -> String {
    static LINUX: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)\W(?:gnu/)?linux").expect("a fixed pattern"));
    if let Some(os) = tables::by_id_and_name(id, full_name) {
        return os.to_owned();
    }
    let name = LINUX.replace_all(full_name, "").trim().to_owned();
    let short: String = name.replace(' ', "").to_lowercase().chars().take(10).collect();
    tables::by_short_name(&short).map_or(name, str::to_owned)
}

/// Returns vendor and version of a platform name (`cpe:/o:opensuse:leap:15.5`).
fn cpe(name: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = name.split(':').collect();
    match parts.as_slice() {
        ["cpe", part, vendor, _, version, ..] if part.starts_with('/') => Some((vendor, version)),
        ["cpe", "2.3", _, vendor, _, version] => Some((star(vendor), star(version))),
        ["cpe", "2.3", _, vendor, _, version, _, _, ..] if parts.len() <= 13 => {
            Some((star(vendor), star(version)))
        }
        _ => None,
    }
}

/// A star means «any».
fn star(part: &str) -> &str {
    if part == "*" { "" } else { part }
}

fn read_os_release(probe: &Probe<'_>) -> Option<Fields> {
    let text = probe.text("/etc/os-release").or_else(|| probe.text("/usr/lib/os-release"))?;
    let mut fields: Fields = [("NAME", "Linux"), ("ID", "linux"), ("PRETTY_NAME", "Linux")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else { continue };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            continue;
        }
        fields.insert(name.to_owned(), unquoted(value));
    }
    Some(fields)
}

fn unquoted(value: &str) -> String {
    let inner = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote)));
    let mut text = String::with_capacity(value.len());
    let mut letters = inner.unwrap_or(value).chars().peekable();
    while let Some(letter) = letters.next() {
        let escapes = letter == '\\'
            && letters.peek().is_some_and(|next| matches!(next, '\\' | '$' | '"' | '\'' | '`'));
        text.push(if escapes { letters.next().unwrap_or(letter) } else { letter });
    }
    text
}

fn read_lsb(probe: &Probe<'_>) -> Vec<(&'static str, String)> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^DISTRIB_(ID|RELEASE|CODENAME|DESCRIPTION)=(?:'|")?([\w\s.\-_]+)"#)
            .expect("a fixed pattern")
    });
    let mut found = Distribution::default();
    for line in probe.text("/etc/lsb-release").unwrap_or_default().lines() {
        let Some(parts) = LINE.captures(line) else { continue };
        let key = match &parts[1] {
            "ID" => LSB_ID,
            "RELEASE" => LSB_RELEASE,
            "CODENAME" => LSB_CODENAME,
            _ => LSB_DESCRIPTION,
        };
        found.set_lsb(key, parts[2].trim_end());
    }
    found.lsb
}

/// The older `/etc/*-release` files, the `lsb_release` program, and what they say between them.
/// Nothing is looked at before it is asked for.
struct Older<'a, 'b> {
    probe: &'a Probe<'b>,
    os_release: OnceCell<Fields>,
    file: OnceCell<ReleaseLine>,
    program: OnceCell<Fields>,
}

/// What one line of such a file says: `CentOS Linux release 7.9.2009 (Core)`.
#[derive(Clone, Default)]
struct ReleaseLine {
    name: String,
    version: String,
    codename: String,
}

impl<'a, 'b> Older<'a, 'b> {
    fn new(probe: &'a Probe<'b>) -> Self {
        Self { probe, os_release: OnceCell::new(), file: OnceCell::new(), program: OnceCell::new() }
    }

    /// The os-release file once more, read as a shell would; keys in lower case.
    fn os_release(&self) -> &Fields {
        self.os_release.get_or_init(|| {
            let text = self.probe.text("/etc/os-release");
            let text = text.or_else(|| self.probe.text("/usr/lib/os-release")).unwrap_or_default();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            let words = shell::split(&lines.collect::<Vec<_>>().join("\n"));
            let pairs = words.iter().filter_map(|word| word.split_once('='));
            pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect()
        })
    }

    fn program(&self) -> &Fields {
        self.program.get_or_init(|| {
            let output = self.probe.run(&["lsb_release", "-a"]).filter(Output::ok);
            let text = output.map(|output| output.stdout_text()).unwrap_or_default();
            let pairs = text.lines().filter_map(|line| line.split_once(':'));
            pairs
                .map(|(name, value)| {
                    (name.replace(' ', "_").to_lowercase(), value.trim().to_owned())
                })
                .collect()
        })
    }

    fn file(&self) -> &ReleaseLine {
        const OTHERS: [&str; 9] = [
            "debian_version",
            "lsb-release",
            "oem-release",
            "os-release",
            "system-release",
            "plesk-release",
            "iredmail-release",
            "board-release",
            "ec2_version",
        ];
        static NAME: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"^\w+[-_](release|version)$").expect("a fixed pattern"));
        self.file.get_or_init(|| {
            let names = self.probe.names("/etc");
            let fitting =
                names.iter().filter(|name| !OTHERS.contains(&name.as_str()) && NAME.is_match(name));
            fitting
                .filter(|name| self.probe.is_file(&format!("/etc/{name}")))
                .filter_map(|name| self.probe.text(&format!("/etc/{name}")))
                .map(|text| ReleaseLine::parse(text.lines().next().unwrap_or_default()))
                .find(|line| !line.name.is_empty())
                .unwrap_or_default()
        })
    }

    fn name(&self) -> String {
        let name = self.os_release().get("name").filter(|name| !name.is_empty());
        let name = name.or_else(|| self.program().get("distributor_id"));
        unquoted_ends(name.unwrap_or(&self.file().name))
    }

    /// The most precise of all version numbers: the one with most dots, the first of those.
    fn version(&self) -> String {
        let field = |name: &str| self.os_release().get(name).cloned().unwrap_or_default();
        let said = |name: &str| self.program().get(name).cloned().unwrap_or_default();
        let mut candidates = vec![
            field("version_id"),
            said("release"),
            self.file().version.clone(),
            ReleaseLine::parse(&field("pretty_name")).version,
            ReleaseLine::parse(&said("description")).version,
        ];
        if field("id") == "debian" || field("id_like").split_whitespace().any(|id| id == "debian") {
            let text = self.probe.text("/etc/debian_version").unwrap_or_default();
            candidates.push(text.lines().next().unwrap_or_default().trim_end().to_owned());
        }
        let dots = |text: &str| text.matches('.').count();
        let best = candidates.into_iter().fold(String::new(), |best, next| {
            if best.is_empty() || dots(&next) > dots(&best) { next } else { best }
        });
        unquoted_ends(&best)
    }

    fn codename(&self) -> String {
        static IN_VERSION: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\((\D+)\)|,\s*(\D+)").expect("a fixed pattern"));
        let fields = self.os_release();
        let own = fields.get("version_codename").or_else(|| fields.get("ubuntu_codename")).cloned();
        let own = own.or_else(|| {
            let parts = IN_VERSION.captures(fields.get("version")?)?;
            parts.get(1).or(parts.get(2)).map(|part| part.as_str().to_owned())
        });
        // One that is set but empty means: there is none.
        let name = own.unwrap_or_else(|| {
            let said = self.program().get("codename").filter(|name| !name.is_empty());
            said.unwrap_or(&self.file().codename).clone()
        });
        unquoted_ends(&name)
    }
}

fn unquoted_ends(text: &str) -> String {
    text.trim_matches('"').trim_matches('\'').to_owned()
}

impl ReleaseLine {
    /// Reads from the end: the name may have numbers in it, but what follows it is regular.
    fn parse(line: &str) -> Self {
        static BACKWARDS: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"^(?:[^)]*\)(.*)\()? *(?:STL )?([\d.+\-a-z]*\d) *(?:esaeler *)?(.+)")
                .expect("a fixed pattern")
        });
        let reversed: String = line.trim().chars().rev().collect();
        let Some(parts) = BACKWARDS.captures(&reversed) else {
            return Self { name: line.trim().to_owned(), ..Self::default() };
        };
        let part = |at: usize| {
            parts.get(at).map(|part| part.as_str().chars().rev().collect()).unwrap_or_default()
        };
        Self { name: part(3), version: part(2), codename: part(1) }
    }
}

/// Returns the `osarch` grain: what packages for this machine are called.
fn architecture(probe: &Probe<'_>, family: &str, machine: &str) -> Value {
    match family {
        "Debian" => program_head(probe, "dpkg")
            .and_then(debian_architecture)
            .map(Value::from)
            .or_else(|| said(probe, &["dpkg", "--print-architecture"]))
            .unwrap_or_else(|| machine.into()),
        "RedHat" | "Suse" => match program_head(probe, "rpm").map(rpm_architecture) {
            Some(Some(name)) => name.into(),
            Some(None) => {
                said(probe, &["rpm", "--eval", "%{_host_cpu}"]).unwrap_or_else(|| "unknown".into())
            }
            None => machine.into(),
        },
        "NILinuxRT" | "Poky" => opkg_architectures(probe),
        _ => machine.into(),
    }
}

fn said(probe: &Probe<'_>, words: &[&str]) -> Option<Value> {
    let text = probe.run(words)?.stdout_text();
    Some(Value::from(text.trim())).filter(Value::truthy)
}

/// All of them, the preferred one first.
fn opkg_architectures(probe: &Probe<'_>) -> Value {
    let text = probe.run(&["opkg", "print-architecture"]).map(|output| output.stdout_text());
    let text = text.unwrap_or_default();
    let mut found: Vec<(i64, &str)> = text
        .lines()
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["arch", name, priority] => Some((priority.parse().ok()?, *name)),
            _ => None,
        })
        .collect();
    found.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    Value::list(found.into_iter().map(|(_, name)| name))
}

/// What the first bytes of a program say about the machine it is for.
#[derive(Clone, Copy)]
struct Head {
    machine: u16,
    is_64: bool,
    is_little: bool,
    flags: u32,
}

fn program_head(probe: &Probe<'_>, program: &str) -> Option<Head> {
    let path = probe.host.which(program)?;
    let mut bytes = Vec::new();
    probe.host.open(&path).ok()?.take(64).read_to_end(&mut bytes).ok()?;
    // Not a binary (a script, say): unknown, to be asked.
    Head::parse(&bytes).or(Some(Head { machine: 0, is_64: true, is_little: true, flags: 0 }))
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let is_64 = *bytes.get(4)? == 2;
        let is_little = *bytes.get(5)? == 1;
        let two = |at: usize| {
            let pair = bytes.get(at..at + 2)?.try_into().ok()?;
            Some(if is_little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
        };
        let at = if is_64 { 48 } else { 36 };
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        let flags = if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) };
        bytes.starts_with(b"\x7fELF").then_some(Self { machine: two(18)?, is_64, is_little, flags })
    }
}

const HARD_FLOAT: u32 = 0x400;

fn debian_architecture(head: Head) -> Option<&'static str> {
    Some(match (head.machine, head.is_64, head.is_little) {
        (3, ..) => "i386",
        (62, true, _) => "amd64",
        (62, false, _) => "x32",
        (183, true, true) => "arm64",
        (40, false, true) if head.flags & HARD_FLOAT != 0 => "armhf",
        (40, false, true) => "armel",
        (21, true, true) => "ppc64el",
        (21, true, false) => "ppc64",
        (20, false, false) => "powerpc",
        (22, true, _) => "s390x",
        (243, true, true) => "riscv64",
        (258, true, true) => "loong64",
        (8, true, true) => "mips64el",
        (8, false, true) => "mipsel",
        (8, false, false) => "mips",
        _ => return None,
    })
}

fn rpm_architecture(head: Head) -> Option<&'static str> {
    Some(match (head.machine, head.is_64, head.is_little) {
        (62, true, _) => "x86_64",
        (183, true, true) => "aarch64",
        (21, true, true) => "ppc64le",
        (22, true, _) => "s390x",
        (243, true, true) => "riscv64",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use halite_host::{Fake, fake};

    use super::*;

    #[test]
    fn names() {
        let check = |name: &str, os: &str| assert_eq!(derive_os(name, ""), os, "{name}");
        check("Debian GNU/Linux", "Debian");
        check("Red Hat Enterprise Linux Server", "RedHat");
        check("CentOS Linux", "CentOS");
        check("Arch Linux", "Arch");
        check("Kali GNU/Linux", "Kali");
        check("SLES", "SUSE");
        check("Oracle Linux Server", "OEL");
        check("My Own OS", "My Own OS");
        assert_eq!(derive_os("Astra Linux (Orel)", "astra"), "AstraLinuxCE");
    }

    #[test]
    fn release_lines() {
        let check = |line: &str, name: &str, version: &str, codename: &str| {
            let parsed = ReleaseLine::parse(line);
            assert_eq!(
                (parsed.name.as_str(), parsed.version.as_str(), parsed.codename.as_str()),
                (name, version, codename)
            );
        };
        check("CentOS Linux release 7.9.2009 (Core)", "CentOS Linux", "7.9.2009", "Core");
        check("Fedora release 38 (Thirty Eight)", "Fedora", "38", "Thirty Eight");
        check("Arch Linux", "Arch Linux", "", "");
        check("Slackware 15.0", "Slackware", "15.0", "");
        check("", "", "", "");
    }

    #[test]
    fn platform_names() {
        assert_eq!(cpe("cpe:/o:opensuse:leap:15.5"), Some(("opensuse", "15.5")));
        assert_eq!(cpe("cpe:2.3:o:amazon:amazon_linux:2"), Some(("amazon", "2")));
        assert_eq!(cpe("cpe:2.3:o:suse:x:*:sp1:*:*:*:*:*:*"), Some(("suse", "")));
        assert_eq!(cpe("nonsense"), None);
    }

    #[test]
    fn quotes() {
        assert_eq!(unquoted(r#""a \"b\" \$c""#), r#"a "b" $c"#);
        assert_eq!(unquoted("'a'"), "a");
        assert_eq!(unquoted(r#""open"#), r#""open"#);
        assert_eq!(unquoted("plain"), "plain");
    }

    fn elf(machine: u8, is_64: bool, flags: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(b"\x7fELF");
        (bytes[4], bytes[5], bytes[18]) = (if is_64 { 2 } else { 1 }, 1, machine);
        let at = if is_64 { 48 } else { 36 };
        bytes[at..at + 4].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    #[test]
    fn architectures() {
        let fake = Fake::new();
        let opts = Dict::new();
        let probe = Probe::new(&fake, &opts);
        let check = |family: &str, expected: Value| {
            assert_eq!(architecture(&probe, family, "x86_64"), expected, "{family}");
        };
        check("Arch", "x86_64".into());
        check("Debian", "x86_64".into());
        check("RedHat", "x86_64".into());
        fake.file("/usr/bin/dpkg", elf(62, true, 0)).mode("/usr/bin/dpkg", 0o755);
        check("Debian", "amd64".into());
        fake.file("/usr/bin/dpkg", elf(40, false, 0x400));
        check("Debian", "armhf".into());
        fake.file("/usr/bin/dpkg", "#!/bin/sh\n");
        fake.on(&["/usr/bin/dpkg"], |_, _| fake::prints("hurd-i386\n"));
        check("Debian", "hurd-i386".into());
        fake.program("/usr/bin/opkg");
        fake.on(&["/usr/bin/opkg"], |_, _| {
            fake::prints("arch all 1\narch cortexa9 31\narch any 6\n")
        });
        check("Poky", halite_value::list!["cortexa9", "any", "all"]);
    }
}
