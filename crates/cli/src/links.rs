//! `halite install-links DIR`: links by which the one executable becomes all programs of Salt.

use std::{fs, io, os::unix::fs::symlink, path::Path};

use crate::{
    diagnostics::Report,
    optparse::{Action, Program, flag},
    programs::{self, shared},
    terminal,
};

static PROGRAM: Program = Program {
    name: "halite install-links",
    usage: "[options] DIR",
    about: Some("Makes links to this executable, named as the programs of Salt are."),
    flags: &[
        shared::VERSION,
        &[flag(
            &["-f", "--force"],
            "force",
            Action::True,
            "Replace what is there under these names.",
        )],
    ],
    groups: &[],
};

pub(crate) fn start(args: &[String]) -> u8 {
    let parsed = match PROGRAM.parse(args, &terminal::env) {
        Ok(parsed) => parsed,
        Err(stop) => return programs::stopped(&PROGRAM, &stop, args),
    };
    let format = programs::format_of(&parsed);
    let [folder] = parsed.args.as_slice() else {
        return programs::usage_error(&PROGRAM, "exactly one folder is needed", format);
    };
    let made = std::env::current_exe()
        .and_then(|executable| make(&executable, Path::new(folder), parsed.bool("force")));
    match made {
        Ok(links) => {
            terminal::out(&links.iter().map(|link| format!("{link}\n")).collect::<String>());
            0
        }
        Err(error) => {
            let report = Report::error(format!("cannot make links in {folder}: {error}"))
                .help("--force replaces files that are in the way");
            programs::show(&report, format)
        }
    }
}

/// Makes the links and returns their paths. Links that are right already stay.
fn make(executable: &Path, folder: &Path, force: bool) -> io::Result<Vec<String>> {
    fs::create_dir_all(folder)?;
    let mut made = Vec::new();
    for entry in programs::ENTRIES {
        let link = folder.join(entry.program.name);
        if fs::read_link(&link).is_ok_and(|target| target == executable) {
            continue;
        }
        if force && fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link)?;
        }
        symlink(executable, &link).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", link.display()))
        })?;
        made.push(link.display().to_string());
    }
    Ok(made)
}
