//! What `--version` and `--versions-report` print.

use std::fs;

use crate::optparse::Program;

/// The version of Salt this behaves as. Scripts parse it.
pub const SALT: &str = "3008.3";
/// Our own version.
pub const HALITE: &str = env!("CARGO_PKG_VERSION");

/// Returns the line of `--version`. The second word is the version of Salt, as scripts expect.
#[must_use]
pub fn line(program: &Program) -> String {
    format!("{} {SALT} (Halite {HALITE})\n", program.name)
}

/// Returns the text of `--versions-report`, laid out as Salt's.
#[must_use]
pub fn report() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let release = read("/etc/os-release");
    let field = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_string()
    };
    let sections = [
        ("Salt Version", vec![("Salt", SALT.to_string()), ("Halite", HALITE.to_string())]),
        (
            "System Versions",
            vec![
                ("dist", format!("{} {}", field("ID"), field("VERSION_ID"))),
                ("locale", "utf-8".to_string()),
                ("machine", std::env::consts::ARCH.to_string()),
                ("release", read("/proc/sys/kernel/osrelease").trim().to_string()),
                ("system", "Linux".to_string()),
                ("version", field("PRETTY_NAME")),
            ],
        ),
    ];
    let mut text = String::new();
    for (title, lines) in sections {
        text += &format!("{title}:\n");
        for (name, value) in lines {
            text += &format!("{name:>14}: {value}\n");
        }
        text += " \n";
    }
    text
}
