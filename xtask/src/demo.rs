//! `make demo`: the commands a newcomer would try, on the tree in `examples/demo`.
//!
//! Everything happens in a scratch folder below the build folder; `DEMO_KEEP=1` leaves it there. A
//! step whose program is not built yet says so and the demo goes on; any other surprise (a step that
//! should work fails, or the other way round) fails the demo.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::shell;

/// The exit code of a program that is not built yet.
const NOT_BUILT: i32 = 69;

struct Step {
    say: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    ends: Ends,
}

/// How a step should end.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Well,
    Badly,
    Somehow,
}

/// How steps end that need the `file` states: as they please, until those are there.
const SOON: Ends = Ends::Somehow;

const STEPS: [Step; 8] = [
    Step {
        say: "One executable, known by all of Salt's names.",
        program: "salt-call",
        args: &["--version"],
        ends: Ends::Well,
    },
    Step {
        say: "A configuration file with a misspelt option, which Salt ignores silently.",
        program: "halite",
        args: &["doctor", "--config", "--quiet", "-c", "slip"],
        ends: Ends::Somehow,
    },
    Step {
        say: "What does the tree say? Jinja and YAML are rendered; nothing is changed.",
        program: "salt-call",
        args: &["-c", "etc", "state.show_sls", "web", "--out", "yaml"],
        ends: Ends::Well,
    },
    Step {
        say: "What would it change?",
        program: "salt-call",
        args: &["-c", "etc", "state.apply", "test=True"],
        ends: SOON,
    },
    Step { say: "Do it.", program: "salt-call", args: &["-c", "etc", "state.apply"], ends: SOON },
    Step {
        say: "Again: nothing is left to do.",
        program: "salt-call",
        args: &["-c", "etc", "state.apply", "--state-output=terse"],
        ends: SOON,
    },
    Step {
        say: "Two slips of the pen. Salt writes an empty file and says that all is well.",
        program: "salt-call",
        args: &["-c", "etc", "state.apply", "typo"],
        ends: Ends::Somehow,
    },
    Step {
        say: "A template that does not render.",
        program: "salt-call",
        args: &["-c", "etc", "--retcode-passthrough", "state.apply", "broken"],
        ends: Ends::Badly,
    },
];

/// Builds the executable and walks through the steps.
pub(crate) fn run(root: &Path) -> Result<()> {
    println!("Building …");
    shell::run(shell::cargo().args(["build", "--quiet", "--package", "halite"]).current_dir(root))?;
    let scratch = shell::target_dir(root).join("demo");
    prepare(root, &scratch).with_context(|| format!("preparing {}", scratch.display()))?;
    let mut missing = 0;
    for step in &STEPS {
        missing += u32::from(!walk(&scratch, step)?);
    }
    println!();
    if missing > 0 {
        println!("{missing} of {} steps wait for programs that are not built yet.", STEPS.len());
    }
    if std::env::var_os("DEMO_KEEP").is_some() {
        println!("Kept: {}", scratch.display());
    } else {
        fs::remove_dir_all(&scratch)?;
        println!("Cleaned up. DEMO_KEEP=1 make demo keeps {}.", scratch.display());
    }
    Ok(())
}

/// Makes a machine in a folder: the programs, the example tree, a configuration.
fn prepare(root: &Path, scratch: &Path) -> Result<()> {
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    for folder in ["bin", "etc", "root", "slip"] {
        fs::create_dir_all(scratch.join(folder))?;
    }
    let halite = shell::target_dir(root).join("debug/halite");
    std::os::unix::fs::symlink(&halite, scratch.join("bin/halite"))?;
    shell::output(Command::new(&halite).arg("install-links").arg(scratch.join("bin")))?;
    let example = root.join("examples/demo");
    let config = format!(
        "id: demo\nroot_dir: {}\nfile_client: local\nfile_roots: {{base: [{}]}}\n\
         pillar_roots: {{base: [{}]}}\n",
        scratch.join("root").display(),
        example.join("salt").display(),
        example.join("pillar").display(),
    );
    fs::write(scratch.join("etc/minion"), config)?;
    fs::write(scratch.join("slip/minion"), "id: demo\nfile_client: local\nlog_levle: info\n")?;
    Ok(())
}

/// Shows one step; returns false when its program is not built yet.
fn walk(scratch: &Path, step: &Step) -> Result<bool> {
    println!("\n── {}\n$ {} {}", step.say, step.program, step.args.join(" "));
    let program: PathBuf = scratch.join("bin").join(step.program);
    let before = Instant::now();
    let status = Command::new(&program)
        .args(step.args)
        .current_dir(scratch)
        .status()
        .with_context(|| format!("starting {}", program.display()))?;
    let took = before.elapsed().as_millis();
    let code = status.code().with_context(|| format!("{} was killed", step.program))?;
    println!("({took} ms, exit code {code})");
    let well = code == 0;
    match step.ends {
        _ if code == NOT_BUILT => return Ok(false),
        Ends::Well if !well => bail!("this step should have worked"),
        Ends::Badly if well => bail!("this step should have failed"),
        Ends::Well | Ends::Badly | Ends::Somehow => {}
    }
    Ok(true)
}
