//! How Salt calls distributions: facts that states and formulas match on.
//!
//! An entry missing here is no error: the distribution is then called as it calls itself.

/// The `os` grain, by the first ten letters (lower case, no blanks) of the full name.
const NAMES: &[(&str, &str)] = &[
    ("redhatente", "RedHat"),
    ("gentoobase", "Gentoo"),
    ("archarm", "Arch ARM"),
    ("arch", "Arch"),
    ("debian", "Debian"),
    ("raspbian", "Raspbian"),
    ("fedoraremi", "Fedora"),
    ("chapeau", "Chapeau"),
    ("korora", "Korora"),
    ("amazonami", "Amazon"),
    ("alt", "ALT"),
    ("enterprise", "OEL"),
    ("oracleserv", "OEL"),
    ("cloudserve", "CloudLinux"),
    ("cloudlinux", "CloudLinux"),
    ("virtuozzo", "Virtuozzo"),
    ("almalinux", "AlmaLinux"),
    ("almalinuxk", "AlmaLinux"),
    ("pidora", "Fedora"),
    ("scientific", "ScientificLinux"),
    ("synology", "Synology"),
    ("nilrt", "NILinuxRT"),
    ("poky", "Poky"),
    ("manjaro", "Manjaro"),
    ("manjarolin", "Manjaro"),
    ("univention", "Univention"),
    ("antergos", "Antergos"),
    ("sles", "SUSE"),
    ("void", "Void"),
    ("slesexpand", "RES"),
    ("linuxmint", "Mint"),
    ("neon", "KDE neon"),
    ("pop", "Pop"),
    ("rocky", "Rocky"),
    ("alibabaclo", "Alinux"),
    ("mendel", "Mendel"),
    ("photon", "VMware Photon OS"),
];

/// The `os` grain, by `ID` and `NAME` of the os-release file.
const BY_ID_AND_NAME: &[(&str, &str, &str)] = &[
    ("astra", "Astra Linux (Orel)", "AstraLinuxCE"),
    ("astra", "Astra Linux (Smolensk)", "AstraLinuxSE"),
    ("pop", "Pop!_OS", "Pop"),
];

/// The `os_family` grain, and the `os` grains that belong to it beside its own name.
const FAMILIES: &[(&str, &[&str])] = &[
    (
        "RedHat",
        &[
            "Fedora",
            "Chapeau",
            "Korora",
            "FedBerry",
            "CentOS",
            "CentOS Stream",
            "GoOSe",
            "Scientific",
            "Amazon",
            "CloudLinux",
            "Virtuozzo",
            "AlmaLinux",
            "AlmaLinux Kitten",
            "OVS",
            "OEL",
            "XCP",
            "XCP-ng",
            "XenServer",
            "RES",
            "Sangoma",
            "VMware Photon OS",
            "AlterOS",
            "RED OS",
            "ALT",
            "ScientificLinux",
            "Rocky",
            "Alinux",
            "openEuler",
        ],
    ),
    (
        "Debian",
        &[
            "Ubuntu",
            "Mint",
            "Trisquel",
            "GCEL",
            "Linaro",
            "elementary OS",
            "elementary",
            "Univention",
            "Raspbian",
            "Devuan",
            "antiX",
            "Kali",
            "Parrot OS",
            "neon",
            "Cumulus",
            "Deepin",
            "KDE neon",
            "IDMS",
            "TurnKey",
            "Pop",
            "AstraLinuxCE",
            "AstraLinuxSE",
            "Mendel",
            "OSMC",
        ],
    ),
    (
        "Suse",
        &[
            "SLES",
            "SUSE Enterprise Server",
            "SUSE  Enterprise Server",
            "SLED",
            "openSUSE",
            "SUSE",
            "openSUSE Leap",
            "openSUSE Tumbleweed",
            "SLES_SAP",
            "alfaLinux",
            "alfaLinux Rise",
        ],
    ),
    ("Arch", &["Arch ARM", "Manjaro", "Manjaro ARM", "Antergos", "EndeavourOS"]),
    ("Gentoo", &["Funtoo"]),
    ("Mandriva", &["Mandrake"]),
    ("VMware", &["VMwareESX"]),
    ("Bluewhite", &["Bluewhite64"]),
    ("Slackware", &["Slamd64"]),
];

pub(crate) fn by_id_and_name(id: &str, name: &str) -> Option<&'static str> {
    let entry =
        BY_ID_AND_NAME.iter().find(|(own_id, own_name, _)| (*own_id, *own_name) == (id, name));
    entry.map(|(_, _, os)| *os)
}

pub(crate) fn by_short_name(short: &str) -> Option<&'static str> {
    NAMES.iter().find(|(own, _)| *own == short).map(|(_, os)| *os)
}

/// A distribution without an entry is its own family.
pub(crate) fn family_of(os: &str) -> &str {
    FAMILIES.iter().find(|(_, members)| members.contains(&os)).map_or(os, |(family, _)| family)
}

/// Makers of graphics cards Salt names; the first that fits wins.
pub(crate) const GPU_VENDORS: [&str; 7] =
    ["nvidia", "amd", "ati", "intel", "vmware", "matrox", "aspeed"];

/// Classes of PCI devices that count as graphics cards, and their names.
pub(crate) const GPU_CLASSES: [u32; 4] = [0x0300, 0x0302, 0x0380, 0x1200];
